// SPDX-License-Identifier: Apache-2.0
//! Which rules hold, from the meters, on a clock that is told. Rules are looked at on a fixed grid of
//! times, and only where something can have changed since: so whoever reads the same log, at once or
//! later, comes to the same alerts at the same times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::rules::{DAY, RULES, Rule, Test};
use crate::breaker::BreakerName;
use crate::ids::Timestamp;
use crate::meter::histogram::Histogram;
use crate::meter::{Meters, Name};

/// How often rules are looked at.
pub const TICK_MS: u64 = 5_000;
/// How many changes are remembered.
const HISTORY_MAX: usize = 200;
/// The name of all targets together.
const ALL: Name = 0;

/// An alert that began or ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    pub rule: String,
    pub target: Option<String>,
    pub at: Timestamp,
    pub fires: bool,
    pub value: String,
}

/// Something that holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Since when it holds.
    pub since: Timestamp,
    /// Since when somebody is to be told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fires_since: Option<Timestamp>,
    /// What was found, for people.
    pub value: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Window {
    /// What was counted when it was looked at last: a part, and the whole.
    last: Vec<(Name, u64, u64)>,
    /// What was added, and when.
    added: VecDeque<(Timestamp, Name, u64, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alerts {
    ticked: Timestamp,
    /// The next time on the grid after the last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unseen: Option<Timestamp>,
    /// When rules have to be looked at though nothing happened, as it was found when they were last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again: Option<Timestamp>,
    windows: BTreeMap<String, Window>,
    standing: Vec<(String, Name, Standing)>,
    history: VecDeque<Moved>,
    /// How many changes there were.
    moves: u64,
}

/// The first time on the grid after this one.
fn tick_after(at: Timestamp) -> Timestamp {
    let tick = TICK_MS as i64;
    Timestamp(at.0 - at.0.rem_euclid(tick) + tick)
}

impl Alerts {
    /// Something happened at this time. What was due before must be looked at before.
    pub(crate) fn hear(&mut self, at: Timestamp) {
        if self.unseen.is_none() {
            self.unseen = Some(tick_after(at.max(self.ticked)));
        }
    }

    /// When rules have to be looked at next if nothing happens.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.unseen.into_iter().chain(self.again).min()
    }

    /// When something may change by time alone. What events change is looked at after them.
    fn next(&self, meters: &Meters) -> Option<Timestamp> {
        let next = tick_after(self.ticked);
        let pending = self.standing.iter().any(|(_, _, it)| it.fires_since.is_none());
        let moving = RULES.iter().any(|rule| {
            let Some(window) = self.windows.get(rule.name) else { return false };
            let last = window.added.back().map(|(at, ..)| *at);
            last.is_some_and(|last| self.ticked.ms_after(last) <= window_ms(rule))
        });
        let open = !meters.circuits(BreakerName::Open, self.ticked).is_empty();
        let soon = (pending || moving || open).then_some(next);
        let aged = RULES.iter().filter_map(|rule| {
            let Test::LetterOlder { ms } = rule.test else { return None };
            let known = self.standing.iter().any(|(name, ..)| name == rule.name);
            let oldest = meters.oldest_letter().filter(|_| !known)?;
            Some(tick_after(oldest.plus_ms(ms)).max(next))
        });
        soon.into_iter().chain(aged).min()
    }

    /// Looks at the rules at every time on the grid up to this one at which something may change.
    pub(crate) fn until(&mut self, meters: &Meters, now: Timestamp) {
        while let Some(at) = self.due().filter(|at| *at <= now) {
            self.tick(meters, at);
        }
    }

    fn tick(&mut self, meters: &Meters, at: Timestamp) {
        self.ticked = at;
        self.unseen = None;
        for rule in RULES.iter().filter(|rule| rule.is_built_in()) {
            if let Some(counted) = counted(rule, meters) {
                self.windows.entry(rule.name.to_owned()).or_default().take(rule, counted, at);
            }
            let holds = self.holding(rule, meters, at);
            self.stand(rule, &holds, meters, at);
        }
        self.again = self.next(meters);
    }

    /// For which targets a rule holds, and by what.
    fn holding(&self, rule: &Rule, meters: &Meters, at: Timestamp) -> BTreeMap<Name, String> {
        let sums = |from_ms: u64, to_ms: u64| {
            let window = self.windows.get(rule.name);
            window.map(|window| window.sums(at, from_ms, to_ms)).unwrap_or_default()
        };
        let share = |part: u64, whole: u64| part.saturating_mul(1000).checked_div(whole);
        let found = |name: Name, value: Option<String>| value.map(|value| (name, value));
        match rule.test {
            Test::Any { window_ms, .. } => sums(window_ms, 0)
                .into_iter()
                .filter_map(|(name, (part, _))| found(name, (part > 0).then(|| part.to_string())))
                .collect(),
            Test::ShareOver { window_ms, per_mille, .. }
            | Test::ManyAbove { window_ms, per_mille, .. } => sums(window_ms, 0)
                .into_iter()
                .filter_map(|(name, (part, whole))| {
                    // Exact where the share in whole thousandths would round a little off.
                    let over = part.saturating_mul(1000) > whole.saturating_mul(per_mille);
                    found(name, share(part, whole).filter(|_| over).map(shown))
                })
                .collect(),
            Test::MeanUnder { window_ms, per_mille, .. } => sums(window_ms, 0)
                .into_iter()
                .filter_map(|(name, (sum, count))| {
                    let under = sum < count.saturating_mul(per_mille);
                    found(name, sum.checked_div(count).filter(|_| under).map(shown))
                })
                .collect(),
            Test::Rising { window_ms, times_per_mille, over_per_mille, .. } => {
                let before = sums(DAY + window_ms, DAY);
                sums(window_ms, 0)
                    .into_iter()
                    .filter_map(|(name, (sum, count))| {
                        let mean = share(sum, count)?;
                        let (sum, count) = before.get(&name)?;
                        let before = share(*sum, *count)?;
                        let rises = mean > over_per_mille
                            && mean.saturating_mul(1000) > before.saturating_mul(times_per_mille);
                        found(name, rises.then(|| shown(mean)))
                    })
                    .collect()
            }
            Test::RunAtLeast(run) => {
                let long = meters.runs().filter(|(_, length)| *length >= run);
                long.map(|(name, length)| (name, length.to_string())).collect()
            }
            Test::CircuitOpen => {
                let open = meters.circuits(BreakerName::Open, at).into_iter();
                open.map(|name| (name, "open".to_owned())).collect()
            }
            Test::LetterOlder { ms } => {
                let age = meters.oldest_letter().map(|since| at.ms_after(since));
                let old = age.filter(|age| *age > ms);
                old.map(|age| (ALL, format!("{} s", age / 1000))).into_iter().collect()
            }
            Test::Down => BTreeMap::new(),
        }
    }

    fn stand(
        &mut self,
        rule: &Rule,
        holds: &BTreeMap<Name, String>,
        meters: &Meters,
        at: Timestamp,
    ) {
        let target = |name: Name| rule.by_target.then(|| meters.target_named(name));
        let mut moved = Vec::new();
        let mut tell = |name: Name, fires: bool, value: &str| {
            let (rule, value) = (rule.name.to_owned(), value.to_owned());
            moved.push(Moved { rule, target: target(name), at, fires, value });
        };
        let mut known = BTreeSet::new();
        self.standing.retain_mut(|(of, name, standing)| {
            if of != rule.name {
                return true;
            }
            known.insert(*name);
            let Some(value) = holds.get(name) else {
                if standing.fires_since.is_some() {
                    tell(*name, false, &standing.value);
                }
                return false;
            };
            standing.value.clone_from(value);
            if standing.fires_since.is_none() && at.ms_after(standing.since) >= rule.for_ms {
                standing.fires_since = Some(at);
                tell(*name, true, value);
            }
            true
        });
        for (name, value) in holds.iter().filter(|(name, _)| !known.contains(*name)) {
            let fires_since = (rule.for_ms == 0).then_some(at);
            if fires_since.is_some() {
                tell(*name, true, value);
            }
            let standing = Standing { since: at, fires_since, value: value.clone() };
            self.standing.push((rule.name.to_owned(), *name, standing));
        }
        self.moves += moved.len() as u64;
        self.history.extend(moved);
        while self.history.len() > HISTORY_MAX {
            self.history.pop_front();
        }
    }

    /// Everything that holds, with its rule and target.
    pub(crate) fn standing<'a>(
        &'a self,
        meters: &'a Meters,
    ) -> impl Iterator<Item = (&'static Rule, Option<String>, &'a Standing)> {
        self.standing.iter().filter_map(|(name, target, standing)| {
            let rule = super::rules::named(name)?;
            Some((rule, rule.by_target.then(|| meters.target_named(*target)), standing))
        })
    }

    /// How many changes there were so far.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// The last changes, the oldest first.
    pub fn history(&self) -> impl Iterator<Item = &Moved> {
        self.history.iter()
    }
}

fn shown(per_mille: u64) -> String {
    (per_mille as f64 / 1000.0).to_string()
}

/// How far back a rule looks, without what it compares that with.
fn window_ms(rule: &Rule) -> u64 {
    match rule.test {
        Test::Any { window_ms, .. }
        | Test::ShareOver { window_ms, .. }
        | Test::MeanUnder { window_ms, .. }
        | Test::ManyAbove { window_ms, .. }
        | Test::Rising { window_ms, .. } => window_ms,
        Test::RunAtLeast(_) | Test::CircuitOpen | Test::LetterOlder { .. } | Test::Down => 0,
    }
}

fn keeps_ms(rule: &Rule) -> u64 {
    match rule.test {
        Test::Rising { window_ms, .. } => DAY + window_ms,
        _ => window_ms(rule),
    }
}

/// What a rule with a window counts, for each name: a part, and the whole.
fn counted(rule: &Rule, meters: &Meters) -> Option<BTreeMap<Name, (u64, u64)>> {
    let sum = |counts: &Histogram| counts.sum;
    let (parts, wholes) = match rule.test {
        Test::Any { of, words, .. } | Test::ShareOver { of, words, .. } => {
            (meters.totals(of, words, Histogram::count), meters.totals(of, &[], Histogram::count))
        }
        Test::MeanUnder { of, .. } | Test::Rising { of, .. } => {
            (meters.totals(of, &[], sum), meters.totals(of, &[], Histogram::count))
        }
        Test::ManyAbove { of, bound, .. } => {
            let above = |counts: &Histogram| of.scale().map_or(0, |it| counts.above(it, bound));
            (meters.totals(of, &[], above), meters.totals(of, &[], Histogram::count))
        }
        Test::RunAtLeast(_) | Test::CircuitOpen | Test::LetterOlder { .. } | Test::Down => {
            return None;
        }
    };
    let mut counted: BTreeMap<Name, (u64, u64)> = BTreeMap::new();
    for (name, whole) in wholes {
        let name = if rule.by_target { name } else { ALL };
        counted.entry(name).or_default().1 += whole;
    }
    for (name, part) in parts {
        let name = if rule.by_target { name } else { ALL };
        counted.entry(name).or_default().0 += part;
    }
    Some(counted)
}

impl Window {
    fn take(&mut self, rule: &Rule, counted: BTreeMap<Name, (u64, u64)>, at: Timestamp) {
        let before: BTreeMap<Name, (u64, u64)> =
            self.last.iter().map(|(name, part, whole)| (*name, (*part, *whole))).collect();
        for (name, (part, whole)) in &counted {
            let (old_part, old_whole) = before.get(name).copied().unwrap_or_default();
            let more = (part.saturating_sub(old_part), whole.saturating_sub(old_whole));
            if more != (0, 0) {
                self.added.push_back((at, *name, more.0, more.1));
            }
        }
        self.last = counted.into_iter().map(|(name, (part, whole))| (name, part, whole)).collect();
        let keeps = keeps_ms(rule);
        while self.added.front().is_some_and(|(added, ..)| at.ms_after(*added) >= keeps) {
            self.added.pop_front();
        }
    }

    /// What was added between two spans ago.
    fn sums(&self, at: Timestamp, from_ms: u64, to_ms: u64) -> BTreeMap<Name, (u64, u64)> {
        let mut sums: BTreeMap<Name, (u64, u64)> = BTreeMap::new();
        for (added, name, part, whole) in &self.added {
            let ago = at.ms_after(*added);
            if ago < from_ms && ago >= to_ms {
                let sum = sums.entry(*name).or_default();
                (sum.0, sum.1) = (sum.0 + part, sum.1 + whole);
            }
        }
        sums
    }
}
