// SPDX-License-Identifier: Apache-2.0
//! How agents fare: what they were asked for, what became of it, how long it took, and whether
//! that is what they promise. A fold over the log, kept in integers, small for each agent and
//! capability however long it works.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelope::Target;
use crate::event::{Claimed, Event, Offered, Sealed};
use crate::handoff::AttemptEnd;
use crate::ids::{AgentId, Capability, HandoffId, Position, Timestamp};

/// How many of the last attempts count as lately.
const LATELY: u32 = 64;
/// How many attempts that are under way are followed; beyond it the oldest is given up.
const UNDER_WAY_MAX: usize = 200_000;

/// An agent's record in one capability, or in work that named none.
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

/// An attempt that is under way.
#[derive(Debug, Clone)]
struct UnderWay {
    agent: AgentId,
    capability: Option<Capability>,
    claimed_at: Timestamp,
}

/// How every agent fares, up to a position of the log.
#[derive(Debug, Default)]
pub struct Records {
    pub tracks: BTreeMap<(AgentId, Option<Capability>), Track>,
    pub targets: BTreeMap<Target, Facts>,
    pub at: Position,
    offered: BTreeMap<HandoffId, Option<Capability>>,
    under_way: BTreeMap<HandoffId, UnderWay>,
    holding: BTreeMap<AgentId, u64>,
}

impl Records {
    /// What was known at a position, to go on from there.
    #[must_use]
    pub fn from(
        tracks: BTreeMap<(AgentId, Option<Capability>), Track>,
        targets: BTreeMap<Target, Facts>,
        at: Position,
    ) -> Self {
        Self { tracks, targets, at, ..Self::default() }
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

    /// Takes an event in. `declared_ms` tells how long an agent says that a capability takes.
    pub fn note(
        &mut self,
        sealed: &Sealed,
        declared_ms: impl Fn(&AgentId, &Capability) -> Option<u64>,
    ) {
        self.at = sealed.position;
        let Some(id) = sealed.record.handoff_id else { return };
        let now = sealed.record.at;
        if let Some((offered, _)) = sealed.record.event.offered() {
            self.offered_to(offered);
            let asked = match &offered.to {
                Target::Capability(capability) => Some(capability.clone()),
                Target::Agent(_) => offered.contract.capability.clone(),
            };
            if asked.is_some() {
                self.offered.insert(id, asked);
            }
        }
        if let Event::Claimed(claimed) = &sealed.record.event {
            self.claimed(id, claimed, now);
        }
        let facts = sealed.record.event.facts();
        if let Some(how) = facts.ends_attempt
            && let Some(attempt) = self.end(id)
        {
            self.ended(&attempt, how, now, declared_ms);
        }
        if facts.ends_handoff {
            self.end(id);
            self.offered.remove(&id);
        }
    }

    fn claimed(&mut self, id: HandoffId, claimed: &Claimed, now: Timestamp) {
        let capability = self.offered.get(&id).cloned().flatten();
        if self.under_way.len() >= UNDER_WAY_MAX
            && let Some((oldest, _)) = self.under_way.first_key_value()
        {
            let oldest = *oldest;
            self.end(oldest);
        }
        let agent = claimed.agent.clone();
        *self.holding.entry(agent.clone()).or_default() += 1;
        self.under_way.insert(id, UnderWay { agent, capability, claimed_at: now });
    }

    fn ended(
        &mut self,
        attempt: &UnderWay,
        how: AttemptEnd,
        now: Timestamp,
        declared_ms: impl Fn(&AgentId, &Capability) -> Option<u64>,
    ) {
        match how {
            AttemptEnd::Completed => {
                let ms = now.ms_after(attempt.claimed_at);
                self.failed(&attempt.agent, false);
                let declared =
                    attempt.capability.as_ref().and_then(|it| declared_ms(&attempt.agent, it));
                let track = self.track(attempt);
                track.note(true);
                track.took(ms);
                track.late += u64::from(declared.is_some_and(|declared| ms > declared));
            }
            AttemptEnd::FailedRetryable
            | AttemptEnd::FailedPermanent
            | AttemptEnd::FailedUnknown => {
                self.failed(&attempt.agent, true);
                self.track(attempt).note(false);
            }
            AttemptEnd::LostSilence
            | AttemptEnd::LostHardDeadline
            | AttemptEnd::LostRestored
            | AttemptEnd::LostRevoked => {
                self.failed(&attempt.agent, true);
                let track = self.track(attempt);
                track.note(false);
                track.losses += 1;
            }
            // Nobody failed: the work was given back, or taken away.
            AttemptEnd::Released
            | AttemptEnd::Declined
            | AttemptEnd::Cancelled
            | AttemptEnd::Aborted => {}
        }
    }

    fn end(&mut self, id: HandoffId) -> Option<UnderWay> {
        let attempt = self.under_way.remove(&id)?;
        if let Some(holding) = self.holding.get_mut(&attempt.agent) {
            *holding -= 1;
            if *holding == 0 {
                self.holding.remove(&attempt.agent);
            }
        }
        Some(attempt)
    }

    fn track(&mut self, attempt: &UnderWay) -> &mut Track {
        self.tracks.entry((attempt.agent.clone(), attempt.capability.clone())).or_default()
    }

    /// How many handoffs an agent holds, as far as was seen.
    #[must_use]
    pub fn holding(&self, agent: &AgentId) -> u64 {
        self.holding.get(agent).copied().unwrap_or(0)
    }
}
