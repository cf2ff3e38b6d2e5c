// SPDX-License-Identifier: Apache-2.0
//! How agents fare: what they were asked for, what became of it, how long it took, and whether
//! that is what they promise. A fold over the log, kept in integers, small for each agent and
//! capability however long it works.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelope::Target;
use crate::event::{Event, Offered, Sealed};
use crate::handoff::{Attempt, AttemptEnd, Handoff};
use crate::ids::{AgentId, Capability, HandoffId};

/// How many of the last attempts count as lately.
const LATELY: u32 = 64;
/// How many handoffs are known to be held; beyond it the oldest is given up.
const HELD_MAX: usize = 200_000;

/// How an agent has done in one capability, or in work that named none: attempts, failures, times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Track {
    /// Attempts that ended, in all, and how many of them in a result.
    pub tries: u64,
    pub successes: u64,
    /// Attempts that were lost by silence or took longer than they might.
    pub losses: u64,
    /// Results that took longer than the agent's own `timeout_seconds`.
    pub late: u64,
    /// How long a result took on average, of late ones more than of old ones, in milliseconds.
    pub mean_ms: u64,
    /// The last attempts, one bit each, the latest lowest: set if it ended in a result.
    pub lately: u64,
    /// How many of these bits count.
    pub lately_count: u32,
}

impl Track {
    fn note(&mut self, success: bool) {
        self.tries += 1;
        self.successes += u64::from(success);
        self.lately = (self.lately << 1) | u64::from(success);
        self.lately_count = (self.lately_count + 1).min(LATELY);
    }

    fn took(&mut self, ms: u64) {
        let before = self.successes.saturating_sub(1).min(15);
        self.mean_ms = (self.mean_ms.saturating_mul(before) + ms) / (before + 1);
    }

    /// How many of the last attempts ended in a result, and how many there were.
    #[must_use]
    pub fn recent(&self) -> (u32, u32) {
        (self.lately.count_ones(), self.lately_count)
    }
}

/// What is watched about a target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Attempts in a row that did not end in a result.
    pub failures_in_row: u32,
    pub offers: u64,
    /// How many of them came after how many hops; the last number is for all beyond.
    pub hops: Vec<u64>,
    /// Of those whose sender said it: how many, how many tokens they had and might have had, and how
    /// complete they were in all.
    pub filled: u64,
    pub tokens: u64,
    pub budget: u64,
    pub completeness_per_mille: u64,
}

/// How deep chains are told apart.
const HOPS_TOLD: usize = 16;
/// How many targets are watched.
const TARGETS_MAX: usize = 10_000;

/// How every agent fares. How an attempt went is told by the handoff that it was made at, and who
/// holds what by the handoffs themselves, so neither has to be kept over a restart.
#[derive(Debug, Default)]
pub struct Records {
    pub tracks: BTreeMap<(AgentId, Option<Capability>), Track>,
    pub targets: BTreeMap<Target, Facts>,
    held: BTreeMap<HandoffId, AgentId>,
    holding: BTreeMap<AgentId, u64>,
}

impl Records {
    /// What was known, to go on from there.
    #[must_use]
    pub fn from(
        tracks: BTreeMap<(AgentId, Option<Capability>), Track>,
        targets: BTreeMap<Target, Facts>,
    ) -> Self {
        Self { tracks, targets, ..Self::default() }
    }

    /// What is known of a target, if there is room to know more of it.
    fn target(&mut self, target: Target) -> Option<&mut Facts> {
        if self.targets.len() >= TARGETS_MAX && !self.targets.contains_key(&target) {
            return None;
        }
        Some(self.targets.entry(target).or_default())
    }

    fn failed(&mut self, agent: &AgentId, failed: bool) {
        if let Some(facts) = self.target(Target::Agent(agent.clone())) {
            facts.failures_in_row = if failed { facts.failures_in_row + 1 } else { 0 };
        }
    }

    fn offered_to(&mut self, offered: &Offered) {
        let Some(facts) = self.target(offered.to.clone()) else { return };
        facts.offers += 1;
        facts.hops.resize(HOPS_TOLD, 0);
        facts.hops[(offered.hop as usize).min(HOPS_TOLD - 1)] += 1;
        if let Some(fill) = offered.contract.fill {
            facts.filled += 1;
            facts.tokens += fill.token_count;
            facts.budget += fill.budget;
            facts.completeness_per_mille += fill.completeness_per_mille.min(1000);
        }
    }

    /// Takes an event in, with the handoff that it is about as it is after it or later.
    /// `declared_ms` tells how long an agent says that a capability takes.
    pub fn note(
        &mut self,
        sealed: &Sealed,
        handoff: Option<&Handoff>,
        declared_ms: impl Fn(&AgentId, &Capability) -> Option<u64>,
    ) {
        let Some(id) = sealed.record.handoff_id else { return };
        let event = &sealed.record.event;
        if let Some((offered, _)) = event.offered() {
            self.offered_to(offered);
        }
        if let Event::Claimed(claimed) = event {
            self.holds(id, &claimed.agent);
        }
        let facts = event.facts();
        if let Some(how) = facts.ends_attempt {
            self.let_go(id);
            let attempt = handoff.and_then(|handoff| ended_by(sealed, how, handoff));
            if let (Some(handoff), Some(attempt)) = (handoff, attempt) {
                self.ended(handoff, attempt, how, declared_ms);
            }
        }
        if facts.ends_handoff {
            self.let_go(id);
        }
    }

    /// An agent holds a handoff, whoever held it before.
    pub fn holds(&mut self, id: HandoffId, agent: &AgentId) {
        self.let_go(id);
        if self.held.len() >= HELD_MAX
            && let Some((oldest, _)) = self.held.first_key_value()
        {
            self.let_go(*oldest);
        }
        self.held.insert(id, agent.clone());
        *self.holding.entry(agent.clone()).or_default() += 1;
    }

    /// Nobody is known to hold anything.
    pub fn forget_holders(&mut self) {
        self.held.clear();
        self.holding.clear();
    }

    fn let_go(&mut self, id: HandoffId) {
        let Some(agent) = self.held.remove(&id) else { return };
        if let Some(holding) = self.holding.get_mut(&agent) {
            *holding -= 1;
            if *holding == 0 {
                self.holding.remove(&agent);
            }
        }
    }

    fn ended(
        &mut self,
        handoff: &Handoff,
        attempt: &Attempt,
        how: AttemptEnd,
        declared_ms: impl Fn(&AgentId, &Capability) -> Option<u64>,
    ) {
        let agent = &attempt.agent;
        let capability = asked(handoff);
        match how {
            AttemptEnd::Completed => {
                let ended = attempt.ended.as_ref().map_or(attempt.claimed_at, |ended| ended.at);
                let ms = ended.ms_after(attempt.claimed_at);
                self.failed(agent, false);
                let declared = capability.and_then(|capability| declared_ms(agent, capability));
                let track = self.track(agent, capability);
                track.note(true);
                track.took(ms);
                track.late += u64::from(declared.is_some_and(|declared| ms > declared));
            }
            AttemptEnd::FailedRetryable
            | AttemptEnd::FailedPermanent
            | AttemptEnd::FailedUnknown => {
                self.failed(agent, true);
                self.track(agent, capability).note(false);
            }
            AttemptEnd::LostSilence
            | AttemptEnd::LostHardDeadline
            | AttemptEnd::LostRestored
            | AttemptEnd::LostRevoked => {
                self.failed(agent, true);
                let track = self.track(agent, capability);
                track.note(false);
                track.losses += 1;
            }
            // Nobody failed: the work was given back, or taken away.
            AttemptEnd::Released
            | AttemptEnd::Asked
            | AttemptEnd::PutBack
            | AttemptEnd::Declined
            | AttemptEnd::Cancelled
            | AttemptEnd::Aborted => {}
        }
    }

    fn track(&mut self, agent: &AgentId, capability: Option<&Capability>) -> &mut Track {
        self.tracks.entry((agent.clone(), capability.cloned())).or_default()
    }

    /// How many handoffs an agent holds, as far as was seen.
    #[must_use]
    pub fn holding(&self, agent: &AgentId) -> u64 {
        self.holding.get(agent).copied().unwrap_or(0)
    }
}

/// The attempt that an event ended. The handoff may have gone on since.
fn ended_by<'h>(sealed: &Sealed, how: AttemptEnd, handoff: &'h Handoff) -> Option<&'h Attempt> {
    let at = sealed.record.at;
    let ended = |attempt: &&Attempt| {
        attempt.ended.as_ref().is_some_and(|ended| ended.at == at && ended.how == how)
    };
    handoff.attempts.iter().find(ended)
}

/// Which capability a handoff asked for, whoever it was passed on to since.
fn asked(handoff: &Handoff) -> Option<&Capability> {
    // Whom the sender asked before it was diverted never got it.
    let diverted = usize::from(handoff.contract.routing.diverted_from.is_some());
    match handoff.tried.get(diverted).unwrap_or(&handoff.to) {
        Target::Capability(capability) => Some(capability),
        Target::Agent(_) => handoff.contract.agreement.capability.as_ref(),
    }
}
