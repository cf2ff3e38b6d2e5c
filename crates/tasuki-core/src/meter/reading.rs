// SPDX-License-Identifier: Apache-2.0
//! What the meters show at a time: every series of every target that is known, those at 0 too.

use std::collections::BTreeMap;

use super::families::{CIRCUITS, Family, Label};
use super::histogram::Histogram;
use super::hop::Place;
use super::{Key, Meters, NO_PIPELINE, Name, OTHER};
use crate::breaker::BreakerName;
use crate::envelope::Target;
use crate::ids::{TENANT_DEFAULT, TenantId, Timestamp};

/// One series and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub family: Family,
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Whole(u64),
    Number(f64),
    Counts(Histogram),
}

/// How one target stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub target: Target,
    pub queue: u64,
    pub oldest_ms: u64,
    pub inflight: u64,
    pub dead_letters: u64,
    pub failures_in_row: u64,
    pub breaker: BreakerName,
}

impl Standing {
    /// Whether there is anything to say of it.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let counts = [self.queue, self.inflight, self.dead_letters, self.failures_in_row];
        counts.iter().all(|count| *count == 0) && self.breaker == BreakerName::Closed
    }
}

/// A target as it is told apart in metrics and alerts.
#[must_use]
pub fn label_of(target: &Target) -> String {
    match target {
        Target::Agent(agent) => format!("agent:{agent}"),
        Target::Capability(capability) => format!("capability:{capability}"),
    }
}

impl Meters {
    /// Everything that follows from the log, as it is at this time. Of a tenant, what is told apart by
    /// its targets.
    #[must_use]
    pub fn samples(&self, now: Timestamp, tenant: Option<&TenantId>) -> Vec<Sample> {
        let gauges = self.gauges(now);
        let mut samples = Vec::new();
        let is_own = |name: &Name| match (self.target(*name), tenant) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(target), Some(tenant)) => target.tenant() == tenant.as_str(),
        };
        let targets: Vec<Name> = (0..self.targets.len() as Name).filter(is_own).collect();
        let pipelines: Vec<Name> = (0..self.pipelines.len() as Name).collect();
        for family in Family::ALL.iter().copied().filter(|family| family.is_of_log()) {
            if tenant.is_some() && !family.by_target() {
                continue;
            }
            let names: &[Name] = match family.facts().labels.first() {
                Some(Label::Target) => &targets,
                Some(Label::Pipeline) => &pipelines,
                Some(Label::Word(..) | Label::Listed(_)) | None => &[0],
            };
            let words = family.words().map_or(1, |(_, words)| words.len());
            for name in names {
                for word in 0..words {
                    let key = Key::new(family, *name, word);
                    let labels = self.labels(family, *name, word);
                    samples.push(Sample {
                        family,
                        labels,
                        value: self.value(family, key, &gauges),
                    });
                }
            }
        }
        samples
    }

    fn target(&self, name: Name) -> Option<&Target> {
        self.targets.get(usize::from(name))?.as_ref()
    }

    /// The name of a target by its number.
    #[must_use]
    pub(crate) fn target_named(&self, name: Name) -> String {
        self.target(name).map_or_else(|| "other".into(), label_of)
    }

    fn value(&self, family: Family, key: Key, gauges: &BTreeMap<Key, Value>) -> Value {
        if let Some(scale) = family.scale() {
            let known = self.histograms.get(&key).cloned();
            return Value::Counts(known.unwrap_or_else(|| Histogram::new(scale)));
        }
        let counted = || self.counters.get(&key).map(|count| Value::Whole(*count));
        gauges.get(&key).cloned().or_else(counted).unwrap_or(Value::Whole(0))
    }

    fn labels(&self, family: Family, name: Name, word: usize) -> Vec<(&'static str, String)> {
        let labels = family.facts().labels.iter().map(|label| {
            let value = match label {
                Label::Target => self.target_named(name),
                Label::Pipeline => self.pipelines[usize::from(name)].clone(),
                Label::Word(_, words) => words[word].to_owned(),
                Label::Listed(_) => String::new(),
            };
            (label.name(), value)
        });
        labels.collect()
    }

    fn gauges(&self, now: Timestamp) -> BTreeMap<Key, Value> {
        let mut gauges: BTreeMap<Key, Value> = BTreeMap::new();
        let mut add = |family: Family, name: Name, word: usize| {
            let value = gauges.entry(Key::new(family, name, word)).or_insert(Value::Whole(0));
            if let Value::Whole(count) = value {
                *count += 1;
            }
        };
        let mut oldest: BTreeMap<Name, Timestamp> = BTreeMap::new();
        for hop in self.hops.values() {
            match hop.place {
                Place::Queued => {
                    add(Family::Queue, hop.to, 0);
                    let since = oldest.entry(hop.to).or_insert(hop.since);
                    *since = (*since).min(hop.since);
                }
                Place::Waiting => add(Family::Waiting, hop.to, 0),
                Place::Claimed | Place::Working | Place::Asking => add(Family::Inflight, hop.to, 0),
            }
        }
        for letter in self.letters.values() {
            add(Family::Letters, letter.to, usize::from(letter.reason));
        }
        let seconds = |since: Timestamp| Value::Number(now.ms_after(since) as f64 / 1000.0);
        for (name, since) in oldest {
            gauges.insert(Key::new(Family::QueueAge, name, 0), seconds(since));
        }
        let age = self.oldest_letter().map_or(Value::Number(0.0), seconds);
        gauges.insert(Key::new(Family::LetterAge, 0, 0), age);
        for (name, run) in &self.runs {
            gauges.insert(Key::new(Family::Run, *name, 0), Value::Whole(*run));
        }
        for name in 0..self.targets.len() as Name {
            let state = self.circuit(name, now);
            let word = CIRCUITS.iter().position(|word| *word == state.as_str()).unwrap_or(0);
            gauges.insert(Key::new(Family::Circuit, name, word), Value::Whole(1));
        }
        gauges
    }

    /// How each target stands that has a name here.
    #[must_use]
    pub fn standings(&self, now: Timestamp, tenant: Option<&TenantId>) -> Vec<Standing> {
        let mut all: BTreeMap<Name, Standing> = BTreeMap::new();
        for (name, target) in self.targets.iter().enumerate() {
            let (Some(target), name) = (target, name as Name) else { continue };
            if tenant.is_some_and(|tenant| target.tenant() != tenant.as_str()) {
                continue;
            }
            let standing = Standing {
                target: target.clone(),
                queue: 0,
                oldest_ms: 0,
                inflight: 0,
                dead_letters: 0,
                failures_in_row: self.runs.get(&name).copied().unwrap_or(0),
                breaker: self.circuit(name, now),
            };
            all.insert(name, standing);
        }
        for hop in self.hops.values() {
            let Some(standing) = all.get_mut(&hop.to) else { continue };
            if hop.place == Place::Queued {
                standing.queue += 1;
                standing.oldest_ms = standing.oldest_ms.max(now.ms_after(hop.since));
            } else if hop.place.is_held() {
                standing.inflight += 1;
            }
        }
        for letter in self.letters.values() {
            if let Some(standing) = all.get_mut(&letter.to) {
                standing.dead_letters += 1;
            }
        }
        all.into_values().collect()
    }

    /// How many were counted with a word, or with any, of a tenant's targets or of all.
    #[must_use]
    pub fn counted(&self, family: Family, word: Option<&str>, tenant: Option<&TenantId>) -> u64 {
        let samples = self.samples_of(family, tenant).into_iter();
        let meant = samples.filter(|sample| {
            word.is_none_or(|word| sample.labels.iter().any(|(_, it)| it == word))
        });
        let counts = meant.map(|sample| match sample.value {
            Value::Whole(count) => count,
            Value::Number(_) => 0,
            Value::Counts(counts) => counts.count(),
        });
        counts.sum()
    }

    /// When the oldest dead letter died that nobody has decided on.
    #[must_use]
    pub(crate) fn oldest_letter(&self) -> Option<Timestamp> {
        self.letters.values().map(|letter| letter.at).min()
    }

    fn circuit(&self, name: Name, now: Timestamp) -> BreakerName {
        let known = self.breakers.get(&name);
        known.map_or(BreakerName::Closed, |breaker| breaker.state(now).name())
    }

    /// Targets whose breaker is in a state.
    pub(crate) fn circuits(&self, state: BreakerName, now: Timestamp) -> Vec<Name> {
        let known = self.breakers.iter();
        let known = known.filter(|(_, breaker)| breaker.state(now).name() == state);
        known.map(|(name, _)| *name).collect()
    }

    /// How many attempts in a row failed, of targets with any.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Name, u64)> {
        self.runs.iter().map(|(name, run)| (*name, *run))
    }

    /// A counter, or how many values a histogram has, added up over some words, for each name.
    pub(crate) fn totals(
        &self,
        family: Family,
        words: &[&str],
        take: impl Fn(&Histogram) -> u64,
    ) -> BTreeMap<Name, u64> {
        let all = family.words().map_or(&[][..], |(_, all)| all);
        let meant = |word: u8| {
            words.is_empty() || all.get(usize::from(word)).is_some_and(|it| words.contains(it))
        };
        let (first, last) = (Key::new(family, OTHER, 0), Key::new(family, Name::MAX, 255));
        let mut totals: BTreeMap<Name, u64> = BTreeMap::new();
        for (key, count) in self.counters.range(first..=last).filter(|(key, _)| meant(key.2)) {
            *totals.entry(key.1).or_default() += count;
        }
        for (key, counts) in self.histograms.range(first..=last).filter(|(key, _)| meant(key.2)) {
            *totals.entry(key.1).or_default() += take(counts);
        }
        totals
    }

    /// All of a histogram's series of a tenant's targets, or of all, as one.
    #[must_use]
    pub fn together(
        &self,
        family: Family,
        word: Option<&str>,
        tenant: Option<&TenantId>,
    ) -> Histogram {
        let mut sum = family.scale().map(Histogram::new).unwrap_or_default();
        for sample in self.samples_of(family, tenant) {
            let meant = word.is_none_or(|word| sample.labels.iter().any(|(_, it)| it == word));
            if let (true, Value::Counts(counts)) = (meant, &sample.value) {
                sum.add(counts);
            }
        }
        sum
    }

    /// The series of one metric that have a value.
    #[must_use]
    pub fn samples_of(&self, family: Family, tenant: Option<&TenantId>) -> Vec<Sample> {
        let (first, last) = (Key::new(family, OTHER, 0), Key::new(family, Name::MAX, 255));
        let own = |key: &Key| match (tenant, family.by_target()) {
            (None, _) => true,
            (Some(tenant), true) => {
                self.target(key.1).is_some_and(|target| target.tenant() == tenant.as_str())
            }
            (Some(tenant), false) => tenant.as_str() == TENANT_DEFAULT,
        };
        let sample = |key: &Key, value: Value| Sample {
            family,
            labels: self.labels(family, key.1, usize::from(key.2)),
            value,
        };
        let counters = self.counters.range(first..=last).filter(|(key, _)| own(key));
        let counters = counters.map(|(key, count)| sample(key, Value::Whole(*count)));
        let counts = self.histograms.range(first..=last).filter(|(key, _)| own(key));
        let counts = counts.map(|(key, counts)| sample(key, Value::Counts(counts.clone())));
        const { assert!(NO_PIPELINE > OTHER) };
        counters.chain(counts).collect()
    }
}
