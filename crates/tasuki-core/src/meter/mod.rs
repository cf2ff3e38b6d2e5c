// SPDX-License-Identifier: Apache-2.0
//! What is measured of the work, from the log alone: whoever takes the same events gets the same
//! numbers, at every broker, after a restart, and from an export. All of it is counted in whole numbers
//! and bounded: so many targets, pipelines and handoffs are told apart, and no more.

pub mod exposition;
pub mod families;
pub mod histogram;
mod hop;
mod reading;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::families::{CAUSES, ENDS, Family, MODES, RESULTS};
use self::histogram::{Example, Histogram};
use self::hop::{Hop, Place};
use crate::breaker::{self, Breaker, BreakerName};
use crate::envelope::Target;
use crate::event::{DeadReason, Enters, Event, LossCause, Offered, Sealed, TaintPolicy};
use crate::handoff::AttemptEnd;
use crate::ids::{HandoffId, Timestamp};
use crate::registry::Change;

pub use reading::{Sample, Standing, Value, label_of};

/// How many targets are told apart by name, and how many pipelines.
pub const TARGETS_MAX: usize = 200;
pub const PIPELINES_MAX: usize = 50;
/// How many handoffs that are not at their end are followed, and how many dead letters; beyond that the
/// oldest is given up, by everybody who reads the same log.
const HOPS_MAX: usize = 100_000;
const LETTERS_MAX: usize = 100_000;

/// A target or a pipeline by its number; 0 stands for all beyond.
pub(crate) type Name = u16;
const OTHER: Name = 0;
/// The number of work that belongs to no pipeline.
const NO_PIPELINE: Name = 1;

/// One series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key(u8, Name, u8);

impl Key {
    pub(crate) fn new(family: Family, name: Name, word: usize) -> Self {
        Self(family as u8, name, word as u8)
    }
}

/// A dead letter that nobody has decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Letter {
    to: Name,
    reason: u8,
    at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meters {
    /// What it was saved as has this shape, or is of no use.
    shape: u64,
    #[serde(with = "pairs")]
    counters: BTreeMap<Key, u64>,
    #[serde(with = "pairs")]
    histograms: BTreeMap<Key, Histogram>,
    /// Targets by number, the first for all beyond.
    targets: Vec<Option<Target>>,
    pipelines: Vec<String>,
    #[serde(skip)]
    numbers: BTreeMap<Target, Name>,
    #[serde(with = "pairs")]
    hops: BTreeMap<HandoffId, Hop>,
    #[serde(with = "pairs")]
    letters: BTreeMap<HandoffId, Letter>,
    #[serde(with = "pairs")]
    runs: BTreeMap<Name, u64>,
    #[serde(with = "pairs")]
    breakers: BTreeMap<Name, Breaker>,
    /// When the last event was.
    pub at: Timestamp,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            shape: families::shape(),
            counters: BTreeMap::new(),
            histograms: BTreeMap::new(),
            targets: vec![None],
            pipelines: vec!["other".into(), "none".into()],
            numbers: BTreeMap::new(),
            hops: BTreeMap::new(),
            letters: BTreeMap::new(),
            runs: BTreeMap::new(),
            breakers: BTreeMap::new(),
            at: Timestamp(0),
        }
    }
}

impl Meters {
    /// From how they were saved, if that is of this shape.
    #[must_use]
    pub fn restored(mut self) -> Option<Self> {
        if self.shape != families::shape() {
            return None;
        }
        let known = self.targets.iter().enumerate();
        let known =
            known.filter_map(|(at, target)| Some((target.clone()?, Name::try_from(at).ok()?)));
        self.numbers = known.collect();
        Some(self)
    }

    /// Takes note of a target, so that its series are there at 0 before anything happens to it.
    pub fn registers(&mut self, target: &Target) {
        self.number(target);
    }

    fn number(&mut self, target: &Target) -> Name {
        if let Some(known) = self.numbers.get(target) {
            return *known;
        }
        if self.targets.len() > TARGETS_MAX {
            return OTHER;
        }
        let number = self.targets.len() as Name;
        self.targets.push(Some(target.clone()));
        self.numbers.insert(target.clone(), number);
        number
    }

    fn pipeline(&mut self, offered: &Offered) -> Name {
        let Some(stage) = &offered.contract.agreement.stage else { return NO_PIPELINE };
        if let Some(known) = self.pipelines.iter().skip(2).position(|it| *it == stage.pipeline) {
            return known as Name + 2;
        }
        if self.pipelines.len() > PIPELINES_MAX + 1 {
            return OTHER;
        }
        self.pipelines.push(stage.pipeline.clone());
        self.pipelines.len() as Name - 1
    }

    fn count(&mut self, family: Family, name: Name, word: usize) {
        *self.counters.entry(Key::new(family, name, word)).or_default() += 1;
    }

    fn histogram(&mut self, family: Family, name: Name, word: usize) -> Option<&mut Histogram> {
        let scale = family.scale()?;
        let key = Key::new(family, name, word);
        Some(self.histograms.entry(key).or_insert_with(|| Histogram::new(scale)))
    }

    fn observe(&mut self, family: Family, name: Name, value: u64) {
        let Some(scale) = family.scale() else { return };
        if let Some(histogram) = self.histogram(family, name, 0) {
            histogram.take(scale, value);
        }
    }

    fn observe_time(
        &mut self,
        family: Family,
        name: Name,
        word: usize,
        hop: &Hop,
        since: Timestamp,
    ) {
        let Some(scale) = family.scale() else { return };
        let value = self.at.ms_after(since).saturating_mul(1000);
        let example = Example { task: hop.task, value, at: self.at };
        if let Some(histogram) = self.histogram(family, name, word) {
            histogram.take_example(scale, example);
        }
    }

    /// Takes the next event of the log.
    pub fn note(&mut self, sealed: &Sealed) {
        let record = &sealed.record;
        self.at = self.at.max(record.at);
        match &record.event {
            Event::RegistryChanged(change) => return self.known(change),
            Event::LateReport { .. } => self.count(Family::Late, 0, 0),
            Event::ConstraintLifted { .. } => self.count(Family::Lifted, 0, 0),
            _ => {}
        }
        self.breaker_moves(sealed);
        let Some(id) = record.handoff_id else { return };
        if let Some((offered, _)) = record.event.offered() {
            self.offered(id, offered, sealed);
            return;
        }
        match &record.event {
            Event::Redriven { .. } | Event::Discarded { .. } | Event::LetterClosed { .. } => {
                self.letters.remove(&id);
            }
            _ => {}
        }
        // What is no longer followed is not counted: whoever reads the same log does the same.
        let Some(mut hop) = self.hops.remove(&id) else { return };
        if self.moved(id, &mut hop, sealed) {
            self.hops.insert(id, hop);
        }
    }

    fn known(&mut self, change: &Change) {
        match change {
            Change::ManifestPublished { agent, .. }
            | Change::KeyEnrolled { agent, .. }
            | Change::StandingSet { agent, .. } => self.registers(&Target::Agent(agent.clone())),
            Change::AccessDenied { code, .. } => {
                let kind = match code.as_str() {
                    "constraint_dropped" => 0,
                    "constraint_altered" => 1,
                    "constraint_not_yours" => 2,
                    "intent_altered" => 3,
                    _ => return,
                };
                self.count(Family::Violations, 0, kind);
            }
            _ => {}
        }
    }

    fn offered(&mut self, id: HandoffId, offered: &Offered, sealed: &Sealed) {
        let at = sealed.record.at;
        let to = self.number(&offered.to);
        let pipeline = self.pipeline(offered);
        let is_told = offered.opens.as_ref().is_some_and(|opened| opened.channel.is_some());
        let mode = match (is_told, pipeline) {
            (true, _) => 1,
            (false, NO_PIPELINE) => 0,
            (false, _) => 2,
        };
        debug_assert!(mode < MODES.len());
        self.count(Family::Offers, to, mode);
        if offered.contract.agreement.has_gaps {
            self.count(Family::Gaps, to, 0);
        }
        if let Some(fill) = offered.contract.fill {
            self.observe(Family::Completeness, to, fill.completeness_per_mille.min(1000));
            self.observe(Family::Tokens, 0, fill.token_count);
            if let Some(share) = fill.token_count.saturating_mul(1000).checked_div(fill.budget) {
                self.observe(Family::Utilisation, to, share);
            }
        }
        let decided = offered.redrive_of.map(|redrive| redrive.handoff_id).or(offered.amends);
        if let Some(letter) = decided {
            self.letters.remove(&letter);
        }
        let hop = Hop::new(sealed.record.task_id, to, pipeline, offered, at);
        self.hops.insert(id, hop);
        if self.hops.len() > HOPS_MAX {
            self.hops.pop_first();
        }
    }

    /// Moves a handoff along an event. Returns whether it is followed on.
    fn moved(&mut self, id: HandoffId, hop: &mut Hop, sealed: &Sealed) -> bool {
        let at = sealed.record.at;
        let event = &sealed.record.event;
        let facts = event.facts();
        match event {
            Event::Claimed(claimed) => {
                if hop.place == Place::Queued {
                    self.observe_time(Family::Stage, 0, 0, hop, hop.since);
                }
                if !std::mem::replace(&mut hop.delivered, true) {
                    self.observe_time(Family::Delivery, hop.to, 0, hop, hop.offered_at);
                }
                hop.moves(Place::Claimed, at);
                hop.holder = Some(self.number(&Target::Agent(claimed.agent.clone())));
            }
            Event::Started if hop.place == Place::Claimed => {
                self.observe_time(Family::Stage, 0, 1, hop, hop.since);
                hop.place = Place::Working;
            }
            Event::TrimFetched { .. } => self.count(Family::Fetched, hop.to, 0),
            Event::LeaseLost { cause, .. } => {
                let word = LossCause::ALL.iter().position(|it| it == cause).unwrap_or(0);
                debug_assert!(word < CAUSES.len());
                self.count(Family::Lost, 0, word);
            }
            Event::Approved => hop.unapproved = false,
            Event::Readied | Event::Joined { .. } => (hop.joins, hop.starts_at) = (false, None),
            Event::TaskHeld { .. } => {
                hop.on_hold = true;
                hop.keep_back(at);
            }
            Event::TaskResumed { .. } => hop.on_hold = false,
            Event::Tainted { policy: TaintPolicy::Block, .. } => {
                hop.unapproved = true;
                hop.keep_back(at);
            }
            Event::TaintCleared { releases: true, .. } => hop.unapproved = false,
            Event::RetryScheduled { due } | Event::PutBack { until: due, .. } => {
                hop.starts_at = Some(*due);
            }
            Event::Escalated { .. } => {
                self.count(Family::Escalated, hop.to, 0);
                hop.starts_at = None;
            }
            _ => {}
        }
        if let Some(how) = facts.ends_attempt
            && hop.place.is_held()
        {
            self.attempt_ended(hop, how);
            let next = if how == AttemptEnd::Asked { Place::Asking } else { Place::Waiting };
            hop.moves(next, at);
        }
        if let Event::DeadLettered { reason, .. } = event {
            self.dead_lettered(id, hop, *reason);
        }
        if facts.ends_handoff {
            self.ended(hop, event);
            return false;
        }
        self.enters(hop, facts.enters, at);
        true
    }

    fn enters(&mut self, hop: &mut Hop, enters: Enters<'_>, at: Timestamp) {
        match enters {
            Enters::Nothing | Enters::Offered(_) => {}
            // By now it is held no more, whoever held it.
            Enters::Own => hop.ready(at),
            Enters::OwnIfHeld if hop.since == at && hop.place == Place::Waiting => hop.ready(at),
            Enters::OwnIfScheduled if hop.place == Place::Waiting => hop.ready(at),
            Enters::OwnIfHeld | Enters::OwnIfScheduled => {}
            Enters::OfAgentIfPending(agent) => {
                hop.to = self.number(&Target::Agent(agent.clone()));
                if hop.place == Place::Queued {
                    hop.ready(at);
                }
            }
            Enters::Of(to) => {
                hop.to = self.number(to);
                hop.ready(at);
            }
        }
    }

    fn attempt_ended(&mut self, hop: &Hop, how: AttemptEnd) {
        let (result, fails) = match how {
            AttemptEnd::Completed => (0, Some(false)),
            AttemptEnd::FailedRetryable
            | AttemptEnd::FailedPermanent
            | AttemptEnd::FailedUnknown => (1, Some(true)),
            AttemptEnd::LostSilence | AttemptEnd::LostHardDeadline => (2, Some(true)),
            // The store's doing, or the administrator's.
            AttemptEnd::LostRestored | AttemptEnd::LostRevoked => (2, None),
            AttemptEnd::Released | AttemptEnd::PutBack | AttemptEnd::Declined => (3, None),
            AttemptEnd::Cancelled | AttemptEnd::Aborted => (4, None),
            // It goes on with the answer.
            AttemptEnd::Asked => return,
        };
        debug_assert!(result < RESULTS.len());
        self.count(Family::Attempts, hop.to, result);
        if how == AttemptEnd::Completed {
            self.observe_time(Family::Stage, 0, 2, hop, hop.since);
        }
        let Some(failed) = fails else { return };
        let holder = hop.holder.filter(|holder| *holder != hop.to);
        for name in std::iter::once(hop.to).chain(holder).filter(|name| *name != OTHER) {
            match failed {
                true => *self.runs.entry(name).or_default() += 1,
                false => drop(self.runs.remove(&name)),
            }
        }
    }

    fn dead_lettered(&mut self, id: HandoffId, hop: &Hop, reason: DeadReason) {
        let word = DeadReason::ALL.iter().position(|it| *it == reason).unwrap_or(0);
        self.count(Family::DeadLettered, hop.to, word);
        match reason {
            DeadReason::HopLimit => self.count(Family::HopLimit, 0, 0),
            DeadReason::Cycle => self.count(Family::Cycles, 0, 0),
            _ => {}
        }
        if !hop.delivered {
            let outcome = match reason {
                DeadReason::Declined | DeadReason::Rejected => 1,
                DeadReason::Expired | DeadReason::Unacknowledged => 2,
                _ => 3,
            };
            self.observe_time(Family::Delivery, hop.to, outcome, hop, hop.offered_at);
        }
        self.letters.insert(id, Letter { to: hop.to, reason: word as u8, at: self.at });
        if self.letters.len() > LETTERS_MAX {
            self.letters.pop_first();
        }
    }

    fn ended(&mut self, hop: &Hop, event: &Event) {
        let outcome = match event {
            Event::Completed { next, .. } => {
                if next.is_none() {
                    self.observe(Family::Hops, hop.pipeline, hop.hop.into());
                }
                0
            }
            Event::DeadLettered { .. } => 1,
            Event::Cancelled { .. } => 2,
            _ => 3,
        };
        debug_assert!(outcome < ENDS.len());
        self.count(Family::Terminal, hop.to, outcome);
        self.observe_time(Family::Stage, 0, 3, hop, hop.offered_at);
    }

    /// Breakers by the same rule as those who decide.
    fn breaker_moves(&mut self, sealed: &Sealed) {
        let facts = sealed.record.event.facts();
        let name = match facts.breaker {
            Some(target) => self.number(target),
            None => {
                let ends = facts.ends_attempt.is_some() || facts.ends_handoff;
                let Some(id) = sealed.record.handoff_id.filter(|_| ends) else { return };
                let probed = self.breakers.iter().find(|(_, breaker)| breaker.probe == Some(id));
                let Some((name, _)) = probed else { return };
                *name
            }
        };
        let Some(target) = self.targets.get(usize::from(name)).cloned().flatten() else { return };
        let now = sealed.record.at;
        let is_open = |breaker: Option<&Breaker>| {
            breaker.is_some_and(|breaker| breaker.state(now).name() != BreakerName::Closed)
        };
        let before = self.breakers.get(&name);
        let was_open = is_open(before);
        let after = breaker::after(before, &target, sealed);
        let opens = is_open(Some(&after));
        if opens != was_open {
            self.count(Family::CircuitMoves, name, usize::from(opens));
        }
        match after.matters() {
            true => drop(self.breakers.insert(name, after)),
            false => drop(self.breakers.remove(&name)),
        }
    }
}

/// Maps with keys that are no texts, as lists of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<
        'de,
        K: DeserializeOwned + Ord,
        V: DeserializeOwned,
        D: Deserializer<'de>,
    >(
        from: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}
