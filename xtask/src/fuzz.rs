// SPDX-License-Identifier: Apache-2.0
//! Random and randomly altered bytes for every parser that reads what strangers send. Each target takes
//! any bytes, must not panic, and says of what it takes that it holds together. Cases follow from a
//! seed, so that one that fails can be played again.

mod targets;

use std::fmt;
use std::panic::{catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use targets::{TARGETS, Target};

/// How long a case may become.
const CASE_BYTES_MAX: usize = 4096;
/// How many cases that were taken are kept as the beginning of others.
const KEPT_MAX: usize = 256;

/// The stack of the threads that read what strangers send.
const STACK_BYTES: usize = 2 << 20;

/// How long is played on a target.
#[derive(Clone, Copy)]
enum Span {
    Cases(u64),
    Time(Duration),
}

impl Span {
    /// So many cases (`1000000`), or so many seconds (`60s`), of which each of so many targets has its
    /// part.
    fn parse(text: &str, targets: usize) -> anyhow::Result<Self> {
        let targets = targets.max(1) as u64;
        let wrong = || format!("{text} is neither a number of cases nor, with an s, of seconds");
        match text.strip_suffix('s') {
            Some(seconds) => {
                let seconds: u64 = seconds.parse().with_context(wrong)?;
                Ok(Self::Time(Duration::from_millis(seconds * 1000 / targets)))
            }
            None => Ok(Self::Cases(text.parse::<u64>().with_context(wrong)?.div_ceil(targets))),
        }
    }

    fn is_over(self, cases: u64, began: Instant) -> bool {
        match self {
            Self::Cases(all) => cases >= all,
            Self::Time(all) => began.elapsed() >= all,
        }
    }
}

/// `cargo xtask fuzz [CASES|SECONDSs] [TARGET…]`: so much in all, over all targets or those named.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let named = words.get(1..).unwrap_or_default();
    if let Some(unknown) = named.iter().find(|name| TARGETS.iter().all(|it| it.name != **name)) {
        let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        bail!("no target is called {unknown}; there are {}", known.join(", "));
    }
    let chosen = |target: &&Target| named.is_empty() || named.contains(&target.name);
    let chosen: Vec<_> = TARGETS.iter().filter(chosen).collect();
    let span = Span::parse(words.first().unwrap_or(&"1000000"), chosen.len())?;
    let seed = match std::env::var("TASUKI_SEED") {
        Ok(seed) => seed.parse().with_context(|| format!("TASUKI_SEED is {seed}, no number"))?,
        Err(_) => u64::from(std::process::id()),
    };
    println!("seed {seed}; TASUKI_SEED={seed} plays it again");
    let mut all = 0;
    for target in chosen {
        let seeds = seeds(root, target.name);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let played = thread.spawn(move || play(target, seed, span, &seeds))?.join();
        let Ok(played) = played else { bail!("{} does not bear what strangers send", target.name) };
        all += played.cases;
        println!("{:<12} {played}", target.name);
    }
    println!("{all} cases, no failure");
    Ok(())
}

/// What is known to be good, besides what a target brings: files of the repository.
fn seeds(root: &Path, target: &str) -> Vec<Vec<u8>> {
    let events = root.join("crates/tasuki-core/tests/golden/events.jsonl");
    match target {
        "json" | "canonical" => std::fs::read_to_string(events)
            .map(|text| text.lines().map(|line| line.as_bytes().to_vec()).collect())
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// What playing on a target came to.
struct Played {
    cases: u64,
    taken: u64,
    took: Duration,
    /// How long the slowest case took.
    slowest: Duration,
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cases, taken, took, slowest } = self;
        let (took, slowest) = (took.as_secs(), slowest.as_millis());
        write!(f, "{cases} cases, {taken} of them taken, {took} s, the slowest {slowest} ms")
    }
}

/// Plays cases on one target. One that it does not bear is shown.
fn play(target: &Target, seed: u64, span: Span, more: &[Vec<u8>]) -> Played {
    let mut random = Random::of(seed);
    let mut kept: Vec<Vec<u8>> = target.seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    kept.extend(more.iter().cloned());
    let began = Instant::now();
    let mut played = Played { cases: 0, taken: 0, took: began.elapsed(), slowest: began.elapsed() };
    while !span.is_over(played.cases, began) {
        let case = random.case(&kept, target.words);
        let asked = Instant::now();
        let taken = catch_unwind(|| (target.takes)(&case)).unwrap_or_else(|panic| {
            println!("{}: {:?}", target.name, String::from_utf8_lossy(&case));
            resume_unwind(panic)
        });
        played.slowest = played.slowest.max(asked.elapsed());
        played.cases += 1;
        if taken {
            played.taken += 1;
            if kept.len() < KEPT_MAX {
                kept.push(case);
            } else if random.below(64) == 0 {
                let place = random.below(KEPT_MAX);
                kept[place] = case;
            }
        }
    }
    played.took = began.elapsed();
    played
}

/// A generator that needs nothing but its seed (splitmix64).
struct Random(u64);

impl Random {
    fn of(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("less than a usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// A case: one that was good before, altered a few times, or bytes of no meaning.
    fn case(&mut self, kept: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
        if kept.is_empty() || self.below(16) == 0 {
            let length = self.below(64);
            return (0..length).map(|_| self.byte()).collect();
        }
        let mut case = kept[self.below(kept.len())].clone();
        for _ in 0..=self.below(4) {
            self.alter(&mut case, kept, words);
        }
        case.truncate(CASE_BYTES_MAX);
        case
    }

    fn alter(&mut self, case: &mut Vec<u8>, kept: &[Vec<u8>], words: &[&str]) {
        let at = self.below(case.len() + 1);
        match self.below(8) {
            0 if at < case.len() => case[at] ^= 1 << self.below(8),
            1 if at < case.len() => case[at] = self.byte(),
            2 => case.insert(at, self.byte()),
            3 => {
                let end = (at + 1 + self.below(16)).min(case.len());
                case.drain(at.min(end)..end);
            }
            4 => {
                // A piece comes once more, somewhere else.
                let end = (at + self.below(64)).min(case.len());
                let piece = case[at.min(end)..end].to_vec();
                let to = self.below(case.len() + 1);
                case.splice(to..to, piece);
            }
            5 => {
                let other = &kept[self.below(kept.len())];
                let from = self.below(other.len() + 1);
                let end = (from + self.below(128)).min(other.len());
                case.splice(at..at, other[from..end].iter().copied());
            }
            _ if !words.is_empty() => {
                let word = words[self.below(words.len())];
                case.splice(at..at, word.bytes());
            }
            _ => case.truncate(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few seconds of what `cargo xtask fuzz` does for as long as it is told to.
    #[test]
    fn every_parser_bears_what_strangers_send() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for target in TARGETS {
            let played = play(target, 7, Span::Cases(5_000), &seeds(root, target.name));
            assert!(played.taken > 0, "{}: what is known to be good is not taken", target.name);
        }
    }

    #[test]
    fn a_span_is_told_in_cases_or_in_seconds_and_ends() {
        let target = TARGETS.iter().find(|target| target.name == "digest").unwrap();
        let cases = Span::parse("1001", 10).unwrap();
        assert_eq!(play(target, 1, cases, &[]).cases, 101);
        let time = Span::parse("1s", 100).unwrap();
        assert!(play(target, 1, time, &[]).took >= Duration::from_millis(10));
        assert!(Span::parse("soon", 1).is_err());
    }

    #[test]
    fn a_seed_plays_the_same_cases_again() {
        let cases = |seed| {
            let mut random = Random::of(seed);
            let kept = [b"{\"a\":1}".to_vec()];
            (0..50).map(|_| random.case(&kept, &["null"])).collect::<Vec<_>>()
        };
        assert_eq!(cases(1), cases(1));
        assert_ne!(cases(1), cases(2));
    }
}
