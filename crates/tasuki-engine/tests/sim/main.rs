// SPDX-License-Identifier: Apache-2.0
//! Seeded simulation: agents that crash, pause past their lease and come back; a network that
//! loses replies and repeats requests; a clock that jumps; a broker that restarts; a disk that is full,
//! is busy, or fails without saying what it has written. A judge reads
//! the log and asserts that the promises hold. One seed gives one play, so a failure can be played
//! again: `TASUKI_SEED=7 cargo test -p tasuki-engine --test sim`. `TASUKI_SEEDS` says how
//! many are played.
#![cfg(test)]
#![allow(clippy::disallowed_methods, reason = "a wait by the real clock is a safety net")]

mod cast;
mod judge;
mod play;
mod random;
#[allow(dead_code, reason = "the engine's own tests use the rest")]
#[path = "../engine/support.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use play::{Place, Play};
use tasuki_engine::Entry;
use tasuki_store::Mishap;

/// Says which seed it was when a play fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the play of seed {} failed; TASUKI_SEED={} plays it again", self.0, self.0);
        }
    }
}

fn seeds(count: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("TASUKI_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TASUKI_SEEDS").unwrap_or(count),
    }
}

/// Plays to the end and returns the log, and what went wrong with the disk.
fn play(seed: u64, place: Place, acts: usize) -> (Vec<Entry>, BTreeSet<Mishap>) {
    let _seed = Seed(seed);
    // One thread and one thing at a time, so that only the seed decides.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(support::soon(async {
        let mut play = Play::new(seed, place).await;
        for _ in 0..acts {
            play.act().await;
        }
        play.end().await
    }))
}

#[test]
fn the_promises_hold_whatever_agents_network_clock_and_disk_do() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut mishaps = BTreeSet::new();
    for seed in seeds(300) {
        let (log, wrong) = play(seed, Place::Volatile, 400);
        mishaps.extend(wrong);
        for entry in log {
            *seen.entry(entry.sealed.record.event.kind()).or_default() += 1;
        }
    }
    // Plays in which nothing goes wrong would prove nothing.
    assert!(mishaps.len() == 4 || std::env::var("TASUKI_SEED").is_ok(), "{mishaps:?}");
    for kind in [
        "attempt_failed",
        "call_offered",
        "cancelled",
        "claimed",
        "completed",
        "dead_lettered",
        "declined",
        "discarded",
        "expired",
        "late_report",
        "lease_lost",
        "progressed",
        "readied",
        "redriven",
        "released",
        "retry_scheduled",
        "started",
        "transfer_offered",
    ] {
        assert!(
            seen.contains_key(kind) || std::env::var("TASUKI_SEED").is_ok(),
            "{kind}: {seen:?}"
        );
    }
}

#[test]
fn the_promises_hold_while_the_broker_restarts_and_crashes() {
    for seed in seeds(10) {
        play(seed, Place::Sqlite, 200);
    }
}

#[test]
fn one_seed_gives_one_play() {
    let log = |seed| {
        let (log, _) = play(seed, Place::Volatile, 300);
        log.into_iter().map(|entry| entry.encoded).collect::<Vec<_>>()
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
}
