// SPDX-License-Identifier: Apache-2.0
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

fn there() -> Option<IpAddr> {
    Some([10, 0, 0, 1].into())
}

/// Places by a clock that is told the time.
fn seats(places: Places) -> (Arc<Seats>, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(0));
    let told = clock.clone();
    let now = Arc::new(move || Duration::from_millis(told.load(Ordering::Relaxed)));
    (Seats::new(places, now), clock)
}

fn of(max: usize) -> Places {
    Places { max, ..Places::default() }
}

fn agent(name: &str) -> Whose {
    Whose::Agents(name.parse().unwrap(), TenantId::default())
}

/// A connection on which somebody known is being served.
fn busy(seats: &Arc<Seats>, whose: &Whose) -> (Place, Serving) {
    let place = seats.take(HERE).unwrap();
    let serving = place.seat.begins();
    place.seat.is(whose.clone()).unwrap();
    (place, serving)
}

fn is_there(place: &Place) -> bool {
    place.seat.seats.taken().seats.contains_key(&place.seat.number)
}

fn is_kept(place: &Place) -> bool {
    place.seat.seats.taken().seats[&place.seat.number].is_kept
}

#[test]
fn a_silent_stranger_gives_its_place_up_and_who_is_served_does_not() {
    let (seats, _) = seats(of(2));
    let (first, _serving) = busy(&seats, &agent("a"));
    let second = seats.take(HERE).unwrap();
    let third = seats.take(HERE).unwrap();
    assert!(!is_kept(&third), "it has the place of the second");
    assert!(is_there(&first) && !is_there(&second));
    drop(second);
    assert_eq!(seats.count(), 2, "the second had given its place up");
    let begun = third.seat.begins();
    let fourth = seats.take(HERE).unwrap();
    assert!(is_kept(&fourth), "nobody is silent");
    drop((begun, fourth));
    assert!(!is_kept(&seats.take(HERE).unwrap()));
}

#[test]
fn a_stranger_that_is_served_for_long_gives_its_place_up_before_anybody_known_does() {
    let (seats, clock) = seats(of(2));
    let (known, serving) = busy(&seats, &agent("a"));
    drop(serving);
    let slow = seats.take(HERE).unwrap();
    let _slow = slow.seat.begins();
    clock.store(2000, Ordering::Relaxed);
    let next = seats.take(HERE).unwrap();
    assert!(is_there(&known) && !is_there(&slow) && !is_kept(&next));
}

#[test]
fn who_is_known_and_asks_for_nothing_gives_way_the_longest_idle_first() {
    let (seats, _) = seats(of(3));
    let (keeper, served) = busy(&seats, &Whose::Keepers);
    drop(served);
    let (first, served) = busy(&seats, &agent("a"));
    drop(served);
    let (second, served) = busy(&seats, &agent("a"));
    drop(served);
    // The first asks once more.
    drop(first.seat.begins());
    assert_eq!(
        seats.taken().by_agent.get(&"a".parse().unwrap()),
        Some(&1),
        "its last was nobody's"
    );
    let serving = first.seat.begins();
    first.seat.is(agent("a")).unwrap();
    drop(serving);
    let (third, _serving) = busy(&seats, &agent("b"));
    assert!(is_there(&first) && !is_there(&second) && !is_kept(&third));
    let (fourth, _serving) = busy(&seats, &agent("b"));
    assert!(is_there(&keeper) && !is_there(&first) && !is_kept(&fourth));
    let (fifth, _serving) = busy(&seats, &agent("b"));
    assert!(!is_there(&keeper) && !is_kept(&fifth));
}

#[test]
fn a_kept_place_serves_those_who_look_after_the_broker_and_is_never_used_up() {
    let (seats, _) = seats(of(1));
    let (worker, served) = busy(&seats, &agent("a"));
    let slow: Vec<_> = (0..2 * KEPT)
        .map(|_| seats.take(HERE).unwrap())
        .map(|place| (place.seat.begins(), place))
        .collect();
    assert_eq!(seats.count(), 1 + KEPT);
    assert!(is_there(&worker), "a worker that is served stays");
    let place = seats.take(HERE).unwrap();
    let _serving = place.seat.begins();
    assert_eq!(place.seat.is(agent("b")), Err(Crowded::All));
    place.seat.is(Whose::Keepers).unwrap();
    drop(served);
    let (_, next) = &slow[2 * KEPT - 1];
    next.seat.is(agent("b")).unwrap();
    assert!(!is_kept(next), "it moved to the place of the worker, which asks for nothing");
    assert!(!is_there(&worker));
}

#[test]
fn the_places_that_are_kept_end_too() {
    let (seats, _) = seats(of(1));
    let all: Vec<_> = (0..=KEPT).map(|_| busy(&seats, &Whose::Keepers)).collect();
    assert_eq!(seats.take(HERE).unwrap_err(), Full::All);
    drop(all);
    assert_eq!(seats.count(), 0);
    let taken = seats.taken();
    assert!(taken.by_address.is_empty() && taken.kept == 0);
}

#[test]
fn an_agent_and_a_tenant_have_their_share_and_no_more() {
    let (seats, _) = seats(Places { per_agent: 2, per_tenant: 3, ..of(100) });
    let (first, idle) = busy(&seats, &agent("a"));
    let (_second, _serving) = busy(&seats, &agent("a"));
    drop(idle);
    let (_third, _serving) = busy(&seats, &agent("a"));
    assert!(!is_there(&first), "its own that asks for nothing gives way");
    let refused = |whose: Whose| {
        let place = seats.take(HERE).unwrap();
        let _serving = place.seat.begins();
        place.seat.is(whose).unwrap_err()
    };
    let share = |text: &str| Crowded::Share(text.to_owned());
    assert_eq!(refused(agent("a")), share("agent a has 2 connections at once"));
    let (_fourth, _serving) = busy(&seats, &agent("b"));
    assert_eq!(refused(agent("c")), share("tenant default has 3 connections at once"));
    let other = Whose::Agents("acme/c".parse().unwrap(), "acme".parse().unwrap());
    let _other = busy(&seats, &other);
    let _keeper = busy(&seats, &Whose::Keepers);
    drop((_second, _third, _fourth, _other, _keeper));
    let taken = seats.taken();
    assert!(taken.by_agent.is_empty() && taken.by_tenant.is_empty());
}

#[test]
fn one_address_has_its_share_and_no_more() {
    let (seats, _) = seats(Places { per_address: 2, ..of(100) });
    let both = [(); 2].map(|()| {
        let place = seats.take(there()).unwrap();
        let serving = place.seat.begins();
        place.seat.is(agent("a")).unwrap();
        (place, serving)
    });
    assert_eq!(seats.take(there()).unwrap_err(), Full::OfAddress);
    assert!(seats.take(Some([10, 0, 0, 2].into())).is_ok(), "others have theirs");
    let here: Vec<_> = (0..3).map(|_| busy(&seats, &agent("b"))).collect();
    assert_eq!(here.len(), 3, "what is on this machine has no share");
    drop(both);
    assert!(seats.take(there()).is_ok());
}

#[test]
fn a_network_of_ipv6_counts_as_one_address() {
    let one: IpAddr = "2001:db8::1".parse().unwrap();
    assert_eq!(network(one), network("2001:db8::ffff:1".parse().unwrap()));
    assert_ne!(network(one), network("2001:db8:0:1::1".parse().unwrap()));
    assert_eq!(network("::ffff:10.0.0.1".parse().unwrap()), IpAddr::from([10, 0, 0, 1]));
    assert!(network("::1".parse().unwrap()).is_loopback());
}
