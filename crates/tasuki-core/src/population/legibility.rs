// SPDX-License-Identifier: Apache-2.0
//! Senders whose messages turn into words that nobody used before. The vocabulary is made of one half of
//! the baseline's sessions; the other half shows how many words are unknown when all is well. A message
//! counts by how much its share of unknown words differs from that of others for the same capability at the same
//! time, so a subject that is new to everybody is nobody's drift. Each sender is compared with itself
//! before, its messages shuffled between then and now.

use std::collections::{BTreeMap, HashSet};

use super::choices::{Asked, behind};
use super::collect::Handed;
use super::excess::{ROUNDS, share_above};
use super::names::{NONE, Name};
use super::random::Random;
use super::report::{BEHIND_MAX, FINDINGS_MAX, Finding, Kind, Looked};

/// How many words are remembered.
pub const VOCABULARY_MAX: usize = 200_000;
/// How many words a message must have.
const WORDS_MIN: usize = 5;
/// How many messages before and now a sender must have.
const MESSAGES_MIN: usize = 8;
/// How much larger the share of unknown words must be to be worth somebody's time.
const MORE_MIN: f64 = 0.1;
/// Behaviour that began later than the baseline's end is looked for from this many starts.
const STARTS: usize = 6;
const STRATUM: usize = 64;

/// A message, or several in a row of one session.
struct Unit {
    of: u32,
    session: u64,
    value: f64,
    merged: u32,
    usual: bool,
}

pub(super) struct Unknown {
    /// The share of unknown words of each handoff that has enough of them.
    pub(super) shares: BTreeMap<u32, f64>,
    pub(super) vocabulary_full: bool,
}

fn teaches(handed: &Handed) -> bool {
    handed.session.count_ones().is_multiple_of(2)
}

/// How many words of each message are unknown to the baseline.
pub(super) fn unknown(asked: &Asked<'_>) -> Unknown {
    let collected = asked.collected;
    let mut known = HashSet::new();
    let mut vocabulary_full = false;
    let baseline = &collected.handed[asked.baseline.clone()];
    for handed in baseline.iter().filter(|handed| teaches(handed)) {
        if known.len() + usize::from(handed.words.1) > VOCABULARY_MAX {
            vocabulary_full = true;
            break;
        }
        known.extend(collected.words_of(handed).iter().copied());
    }
    let mut shares = BTreeMap::new();
    for at in asked.baseline.clone().chain(asked.current.clone()) {
        let handed = &collected.handed[at];
        let words = collected.words_of(handed);
        let learned = asked.baseline.contains(&at) && teaches(handed);
        if words.len() >= WORDS_MIN && !learned {
            let unknown = words.iter().filter(|word| !known.contains(word)).count();
            shares.insert(at as u32, unknown as f64 / words.len() as f64);
        }
    }
    Unknown { shares, vocabulary_full }
}

/// What differs from others at the same time, by sender.
fn units(asked: &Asked<'_>, unknown: &Unknown) -> BTreeMap<Name, Vec<Unit>> {
    let handed = &asked.collected.handed;
    let mut by_capability: BTreeMap<Name, Vec<(u32, f64)>> = BTreeMap::new();
    for (at, share) in &unknown.shares {
        by_capability.entry(handed[*at as usize].capability).or_default().push((*at, *share));
    }
    let mut values: Vec<(u32, f64)> = Vec::with_capacity(unknown.shares.len());
    for messages in by_capability.values() {
        for stratum in messages.chunks(STRATUM) {
            let mean = stratum.iter().map(|(_, share)| share).sum::<f64>() / stratum.len() as f64;
            values.extend(stratum.iter().map(|(at, share)| (*at, share - mean)));
        }
    }
    values.sort_unstable_by_key(|(at, _)| *at);
    let mut units: BTreeMap<Name, Vec<Unit>> = BTreeMap::new();
    for (of, value) in values {
        let handed = &handed[of as usize];
        if handed.from == NONE {
            continue;
        }
        let usual = asked.baseline.contains(&(of as usize));
        let of_sender = units.entry(handed.from).or_default();
        match of_sender.last_mut() {
            // What is said within a session is about the same, and no news each time.
            Some(last) if last.session == handed.session && last.usual == usual => {
                last.merged += 1;
                last.value += (value - last.value) / f64::from(last.merged);
                last.of = of;
            }
            _ => of_sender.push(Unit { of, session: handed.session, value, merged: 1, usual }),
        }
    }
    units.retain(|_, units| {
        let usual = units.iter().filter(|unit| unit.usual).count();
        usual >= MESSAGES_MIN && units.len() - usual >= MESSAGES_MIN
    });
    units
}

/// A sender's messages: how many of them are from before, and from where on each start looks at them.
struct Sender {
    usual: usize,
    starts: Vec<usize>,
}

impl Sender {
    fn of(units: &[Unit]) -> Self {
        let usual = units.iter().filter(|unit| unit.usual).count();
        let now = units.len() - usual;
        let starts = (0..STARTS).map(|start| usual + now * start / STARTS);
        let starts = starts.filter(|start| units.len() - start >= MESSAGES_MIN / 2).collect();
        Self { usual, starts }
    }

    /// How much larger the mean is from some start on, in its own standard errors, and from which.
    fn strongest(&self, values: &[f64]) -> (f64, f64, usize) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let spread = variance.sqrt().max(0.02);
        let before = values[..self.usual].iter().sum::<f64>() / self.usual as f64;
        let (mut sum, mut end) = (0.0, values.len());
        let mut best = (0.0, 0.0, 0);
        for start in self.starts.iter().rev() {
            sum += values[*start..end].iter().sum::<f64>();
            end = *start;
            let now = (values.len() - start) as f64;
            let more = sum / now - before;
            let strength = more / (spread * (1.0 / now + 1.0 / self.usual as f64).sqrt());
            if strength > best.0 {
                best = (strength, more, *start);
            }
        }
        best
    }
}

/// Senders that use more unknown words than they used to, compared with others.
pub(super) fn drift(
    asked: &Asked<'_>,
    unknown: &Unknown,
    random: &mut Random,
) -> (Looked, Vec<Finding>) {
    let units = units(asked, unknown);
    let all: usize = units.values().map(Vec::len).sum();
    let mut looked = Looked {
        kind: Kind::IllegibilityDrift,
        n: all as u64,
        tested: units.len() as u64,
        permutations: 0,
        false_alarm_rate: asked.alpha,
        unjudged: None,
    };
    if units.is_empty() {
        looked.unjudged =
            Some(format!("no sender has {MESSAGES_MIN} messages in the baseline and after it"));
        return (looked, Vec::new());
    }
    let mut best = vec![0.0_f64; ROUNDS];
    looked.permutations = best.len() as u64;
    let mut seen = Vec::new();
    for (name, units) in &units {
        let sender = Sender::of(units);
        let mut values: Vec<f64> = units.iter().map(|unit| unit.value).collect();
        seen.push((*name, units, sender.strongest(&values)));
        for best in &mut best {
            random.shuffle(&mut values);
            *best = best.max(sender.strongest(&values).0);
        }
    }
    let mut findings = Vec::new();
    for (name, units, (strength, more, start)) in seen {
        let p = share_above(strength, &best);
        if p > asked.alpha || more < MORE_MIN {
            continue;
        }
        let from = asked.collected.agents.told(name);
        let since = &units[start..];
        let handed = |unit: &Unit| &asked.collected.handed[unit.of as usize];
        let mut worst: Vec<&Unit> = since.iter().collect();
        worst.sort_by(|a, b| b.value.total_cmp(&a.value));
        worst.truncate(BEHIND_MAX);
        worst.sort_by_key(|unit| unit.of);
        let summary = format!(
            "{from} uses unknown words {:.0} points more often than it used to, compared with others",
            more * 100.0
        );
        findings.push(Finding {
            kind: Kind::IllegibilityDrift,
            agents: vec![from],
            summary,
            effect: more,
            unit: "more of its words unknown, as a share".into(),
            n: since.len() as u64,
            p,
            since: since.first().map(|unit| handed(unit).at),
            behind: worst.into_iter().map(|unit| behind(handed(unit))).collect(),
        });
    }
    findings.sort_by(|a, b| a.p.total_cmp(&b.p).then(b.effect.total_cmp(&a.effect)));
    findings.truncate(FINDINGS_MAX);
    (looked, findings)
}
