// SPDX-License-Identifier: Apache-2.0
//! Who has a connection. There are so many places, and a few more that are kept for health checks and
//! for those who look after the broker. Under pressure a stranger that says nothing gives its place
//! up at once: whoever has shown who it is, or is being served, keeps it.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

/// Places beyond the limit, for health checks and administrators.
pub(crate) const KEPT: usize = 32;

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Standing {
    /// Nothing that counts was said on it.
    Silent = 0,
    /// A request of somebody who is not known yet is under way.
    Served = 1,
    /// Somebody who is known uses it.
    Known = 2,
}

/// One connection's place.
#[derive(Debug)]
pub(crate) struct Seat {
    number: u64,
    from: Option<IpAddr>,
    /// Whether it is one of those that are kept.
    pub(crate) is_kept: bool,
    standing: AtomicU8,
    /// Told when the place is given to somebody else.
    gone: Notify,
}

impl Seat {
    /// While a request is being served, its connection is not taken away.
    pub(crate) fn begins(&self) {
        let _ = self.change(Standing::Silent, Standing::Served);
    }

    pub(crate) fn ends(&self) {
        let _ = self.change(Standing::Served, Standing::Silent);
    }

    pub(crate) fn is_known(&self) {
        self.standing.store(Standing::Known as u8, Ordering::Relaxed);
    }

    fn change(&self, from: Standing, to: Standing) -> Result<u8, u8> {
        let order = Ordering::Relaxed;
        self.standing.compare_exchange(from as u8, to as u8, order, order)
    }

    fn is_silent(&self) -> bool {
        self.standing.load(Ordering::Relaxed) == Standing::Silent as u8
    }

    pub(crate) async fn is_taken(&self) {
        self.gone.notified().await;
    }
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The address has its share.
    OfAddress,
    All,
}

#[derive(Debug)]
pub(crate) struct Seats {
    max: usize,
    per_address: usize,
    taken: Mutex<Taken>,
    /// Told when a place becomes free.
    pub(crate) freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: BTreeMap<u64, Arc<Seat>>,
    by_address: HashMap<IpAddr, usize>,
}

impl Seats {
    /// `per_address` is how many of them one address may have; 0 is no limit of its own.
    pub(crate) fn new(max: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self { max, per_address, taken: Mutex::default(), freed: Notify::new() })
    }

    /// A place for a new connection.
    pub(crate) fn take(self: &Arc<Self>, from: Option<IpAddr>) -> Result<Place, Full> {
        let mut taken = self.taken.lock().expect("no holder of this lock panics");
        let of_address = from.and_then(|from| taken.by_address.get(&from).copied()).unwrap_or(0);
        // One address does not use up what others need, and its own silent ones go first.
        if self.per_address > 0 && of_address >= self.per_address {
            taken.give_up(|seat| seat.from == from).ok_or(Full::OfAddress)?;
        } else if taken.seats.len() >= self.max {
            let _ = taken.give_up(|_| true);
        }
        let is_kept = taken.seats.len() >= self.max;
        if taken.seats.len() >= self.max + KEPT {
            return Err(Full::All);
        }
        let number = taken.next;
        taken.next += 1;
        let standing = AtomicU8::new(Standing::Silent as u8);
        let seat = Arc::new(Seat { number, from, is_kept, standing, gone: Notify::new() });
        taken.seats.insert(number, seat.clone());
        if let Some(from) = from {
            *taken.by_address.entry(from).or_default() += 1;
        }
        Ok(Place { seats: self.clone(), seat })
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.taken.lock().unwrap().seats.len()
    }
}

impl Taken {
    /// Takes the place of the oldest connection that is silent and meant.
    fn give_up(&mut self, is_meant: impl Fn(&Seat) -> bool) -> Option<()> {
        let silent = self.seats.values().find(|seat| seat.is_silent() && is_meant(seat))?.clone();
        silent.gone.notify_one();
        self.free(&silent);
        Some(())
    }

    fn free(&mut self, seat: &Seat) {
        if self.seats.remove(&seat.number).is_none() {
            return;
        }
        let Some(from) = seat.from else { return };
        if let Some(count) = self.by_address.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&from);
            }
        }
    }
}

/// A place that is given back when its connection ends.
#[derive(Debug)]
pub(crate) struct Place {
    seats: Arc<Seats>,
    pub(crate) seat: Arc<Seat>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.seats.taken.lock().expect("no holder of this lock panics").free(&self.seat);
        self.seats.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    #[test]
    fn a_silent_stranger_gives_its_place_up_and_others_do_not() {
        let seats = Seats::new(2, 0);
        let [first, second] = [(); 2].map(|()| seats.take(HERE).unwrap());
        first.seat.is_known();
        let third = seats.take(HERE).unwrap();
        assert!(!third.seat.is_kept, "it has the place of the second");
        assert_eq!(seats.count(), 2);
        drop(second);
        assert_eq!(seats.count(), 2, "the second had given its place up");
        third.seat.begins();
        let fourth = seats.take(HERE).unwrap();
        assert!(fourth.seat.is_kept, "nobody is silent");
        third.seat.ends();
        drop(fourth);
        assert!(!seats.take(HERE).unwrap().seat.is_kept);
        drop((first, third));
    }

    #[test]
    fn the_places_that_are_kept_end_too() {
        let seats = Seats::new(1, 0);
        let all: Vec<_> = (0..=KEPT)
            .map(|_| seats.take(HERE).unwrap())
            .inspect(|place| place.seat.is_known())
            .collect();
        assert_eq!(seats.take(HERE).unwrap_err(), Full::All);
        drop(all);
        assert_eq!(seats.count(), 0);
        assert!(seats.taken.lock().unwrap().by_address.is_empty());
    }

    #[test]
    fn one_address_has_its_share_and_no_more() {
        let seats = Seats::new(100, 2);
        let there: Option<IpAddr> = Some([10, 0, 0, 1].into());
        let both = [(); 2].map(|()| seats.take(there).unwrap());
        both.iter().for_each(|place| place.seat.is_known());
        assert_eq!(seats.take(there).unwrap_err(), Full::OfAddress);
        assert!(seats.take(HERE).is_ok(), "others have theirs");
    }
}
