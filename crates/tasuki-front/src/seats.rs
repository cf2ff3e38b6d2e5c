// SPDX-License-Identifier: Apache-2.0
//! Who has a connection. There are so many places, and a few more that are kept for health checks and
//! for those who look after the broker. Agents, tenants and addresses have their share.
//!
//! Under pressure places are given up, in this order: by strangers that say nothing, by strangers that
//! take long to say it, by those who are known and ask for nothing at the moment, and last by those who
//! look after the broker and ask for nothing. A connection is of whoever its last request was from.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tasuki_core::AgentId;
use tasuki_core::ids::TenantId;
use tokio::sync::Notify;

/// Places beyond the limit, for health checks and administrators.
pub(crate) const KEPT: usize = 32;
/// How long a stranger's request may take before its place is given to somebody else.
pub(crate) const STRANGER_MAX: Duration = Duration::from_secs(2);

/// How many connections there may be at once.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    pub max: usize,
    /// 0 is no limit. Addresses of this machine have none.
    pub per_address: usize,
    pub per_agent: usize,
    pub per_tenant: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self { max: 10_000, per_address: 1000, per_agent: 1024, per_tenant: 8192 }
    }
}

/// The time since some moment.
pub type Elapsed = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Whose request a connection brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    Strangers,
    /// Of somebody, where nobody has to say who it is.
    Anybodys,
    Agents(AgentId, TenantId),
    /// Of somebody who looks after the whole broker.
    Keepers,
}

#[derive(Debug)]
struct State {
    from: Option<IpAddr>,
    /// Whether it is one of those that are kept.
    is_kept: bool,
    whose: Whose,
    /// How many requests are being served; the body of a reply belongs to it.
    serving: usize,
    /// Whether who sends the request that is being served is known.
    is_met: bool,
    /// When the request that is being served began.
    began: Duration,
    /// Its turn among all that happened here, when it last began or ended to be served.
    since: u64,
    /// Told when the place is given to somebody else.
    gone: Arc<Notify>,
}

impl State {
    /// Whether it gives its place up: who is first, and who of those.
    fn gives_way(&self, now: Duration) -> Option<(u8, u64)> {
        let order = match (&self.whose, self.serving > 0) {
            (Whose::Strangers, false) => 0,
            (_, true) if self.is_met || now.saturating_sub(self.began) < STRANGER_MAX => {
                return None;
            }
            (_, true) => 1,
            (Whose::Anybodys | Whose::Agents(..), false) => 2,
            (Whose::Keepers, false) => 3,
        };
        Some((order, self.since))
    }

    /// The same of one of those that are kept: only who looks after the broker stays.
    fn gives_kept_way(&self) -> Option<(u8, u64)> {
        match (&self.whose, self.serving > 0) {
            (Whose::Keepers, true) => None,
            (Whose::Keepers, false) => Some((1, self.since)),
            _ => Some((0, self.since)),
        }
    }
}

/// Why there is no place for a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The address has its share.
    OfAddress,
    All,
}

/// Why somebody who is known is not served on its connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Crowded {
    /// Every place is in use, and the connection has one that is kept for others.
    All,
    /// An agent or a tenant has its share.
    Share(String),
}

pub(crate) struct Seats {
    places: Places,
    now: Elapsed,
    taken: Mutex<Taken>,
    /// Told when a place becomes free.
    pub(crate) freed: Notify,
}

impl fmt::Debug for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seats").field("places", &self.places).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: BTreeMap<u64, State>,
    /// How many of them are kept ones.
    kept: usize,
    by_address: HashMap<IpAddr, usize>,
    by_agent: HashMap<AgentId, usize>,
    by_tenant: HashMap<TenantId, usize>,
}

impl Seats {
    pub(crate) fn new(places: Places, now: Elapsed) -> Arc<Self> {
        Arc::new(Self { places, now, taken: Mutex::default(), freed: Notify::new() })
    }

    /// A place for a new connection.
    pub(crate) fn take(self: &Arc<Self>, from: Option<IpAddr>) -> Result<Place, Full> {
        let now = (self.now)();
        let from = from.map(network);
        let per_address = match from {
            Some(from) if !from.is_loopback() => self.places.per_address,
            _ => 0,
        };
        let mut taken = self.taken();
        let of_address = from.and_then(|from| taken.by_address.get(&from).copied()).unwrap_or(0);
        // One address does not use up what others need, and its own go first.
        if per_address > 0 && of_address >= per_address {
            let its_own = |seat: &State| if seat.from == from { seat.gives_way(now) } else { None };
            taken.give_up(its_own).ok_or(Full::OfAddress)?;
        }
        let is_kept = taken.make_room(self.places.max, now).is_none();
        if is_kept && taken.kept >= KEPT {
            let kept = |seat: &State| if seat.is_kept { seat.gives_kept_way() } else { None };
            taken.give_up(kept).ok_or(Full::All)?;
        }
        let number = taken.turn();
        let gone = Arc::new(Notify::new());
        let state = State {
            from,
            is_kept,
            whose: Whose::Strangers,
            serving: 0,
            is_met: false,
            began: now,
            since: number,
            gone: gone.clone(),
        };
        taken.seats.insert(number, state);
        taken.kept += usize::from(is_kept);
        if let Some(from) = from {
            *taken.by_address.entry(from).or_default() += 1;
        }
        drop(taken);
        Ok(Place { seat: Arc::new(Seat { seats: self.clone(), number, gone }) })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().expect("no holder of this lock panics")
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.taken().seats.len()
    }
}

/// What counts as one address: who has one of IPv6 has the whole network around it.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) if !six.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX)))
        }
        other => other,
    }
}

impl Taken {
    fn turn(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Sees to it that one of the places that are not kept is free, if it can be done.
    fn make_room(&mut self, max: usize, now: Duration) -> Option<()> {
        if self.seats.len() - self.kept < max {
            return Some(());
        }
        self.give_up(|seat| if seat.is_kept { None } else { seat.gives_way(now) })
    }

    /// Takes the place of the first connection that gives it up.
    fn give_up(&mut self, order: impl Fn(&State) -> Option<(u8, u64)>) -> Option<()> {
        let seats = self.seats.iter();
        let first = seats.filter_map(|(number, seat)| Some((order(seat)?, *number))).min()?;
        self.free(first.1);
        Some(())
    }

    fn free(&mut self, number: u64) {
        let Some(seat) = self.seats.remove(&number) else { return };
        seat.gone.notify_one();
        self.kept -= usize::from(seat.is_kept);
        if let Some(from) = seat.from {
            one_less(&mut self.by_address, &from);
        }
        self.counts_no_more(&seat.whose);
    }

    fn counts_no_more(&mut self, whose: &Whose) {
        if let Whose::Agents(agent, tenant) = whose {
            one_less(&mut self.by_agent, agent);
            one_less(&mut self.by_tenant, tenant);
        }
    }

    /// Counts a connection among those of an agent and of its tenant, whose oldest one that asks for
    /// nothing gives way.
    fn count(&mut self, whose: &Whose, places: &Places) -> Result<(), Crowded> {
        let Whose::Agents(agent, tenant) = whose else { return Ok(()) };
        let is_idle = |seat: &State| (seat.serving == 0).then_some((0, seat.since));
        if self.by_agent.get(agent).is_some_and(|count| *count >= places.per_agent) {
            let its_own = |seat: &State| match &seat.whose {
                Whose::Agents(other, _) if other == agent => is_idle(seat),
                _ => None,
            };
            let share = || format!("agent {agent} has {} connections at once", places.per_agent);
            self.give_up(its_own).ok_or_else(|| Crowded::Share(share()))?;
        }
        if self.by_tenant.get(tenant).is_some_and(|count| *count >= places.per_tenant) {
            let its_own = |seat: &State| match &seat.whose {
                Whose::Agents(_, other) if other == tenant => is_idle(seat),
                _ => None,
            };
            let share = || format!("tenant {tenant} has {} connections at once", places.per_tenant);
            self.give_up(its_own).ok_or_else(|| Crowded::Share(share()))?;
        }
        *self.by_agent.entry(agent.clone()).or_default() += 1;
        *self.by_tenant.entry(tenant.clone()).or_default() += 1;
        Ok(())
    }
}

fn one_less<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// One connection's place.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    number: u64,
    gone: Arc<Notify>,
}

impl Seat {
    /// A request is being served, until what is returned is dropped.
    pub(crate) fn begins(self: &Arc<Self>) -> Serving {
        let now = (self.seats.now)();
        let mut taken = self.seats.taken();
        let turn = taken.turn();
        if let Some(seat) = taken.seats.get_mut(&self.number) {
            seat.serving += 1;
            seat.is_met = false;
            seat.began = now;
            seat.since = turn;
        }
        Serving(self.clone())
    }

    fn ends(&self) {
        let mut taken = self.seats.taken();
        let turn = taken.turn();
        let Some(seat) = taken.seats.get_mut(&self.number) else { return };
        seat.serving -= 1;
        seat.since = turn;
        // Who sent the last request was not found out: what is known of others does not count.
        if !seat.is_met && seat.serving == 0 {
            let was = std::mem::replace(&mut seat.whose, Whose::Strangers);
            taken.counts_no_more(&was);
        }
    }

    /// The request is somebody's. In the places that are kept for those who look after the broker
    /// nobody else is served; whoever else has one moves to one that has become free.
    pub(crate) fn is(&self, whose: Whose) -> Result<(), Crowded> {
        let now = (self.seats.now)();
        let places = &self.seats.places;
        let mut taken = self.seats.taken();
        // Its place was given away, and the connection ends.
        let Some(seat) = taken.seats.get(&self.number) else { return Ok(()) };
        let is_kept = seat.is_kept;
        let moves = is_kept && taken.make_room(places.max, now).is_some();
        if is_kept && !moves && whose != Whose::Keepers {
            return Err(Crowded::All);
        }
        if taken.seats.get(&self.number).is_some_and(|seat| seat.whose != whose) {
            taken.count(&whose, places)?;
        }
        taken.kept -= usize::from(moves);
        let Some(seat) = taken.seats.get_mut(&self.number) else { return Ok(()) };
        seat.is_kept = is_kept && !moves;
        seat.is_met = true;
        if seat.whose != whose {
            let was = std::mem::replace(&mut seat.whose, whose);
            taken.counts_no_more(&was);
        }
        Ok(())
    }

    pub(crate) async fn is_taken(&self) {
        self.gone.notified().await;
    }
}

/// A request that is being served.
#[derive(Debug)]
pub(crate) struct Serving(Arc<Seat>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.ends();
    }
}

/// A place that is given back when its connection ends.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) seat: Arc<Seat>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let seats = &self.seat.seats;
        seats.taken().free(self.seat.number);
        seats.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
