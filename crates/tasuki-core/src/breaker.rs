// SPDX-License-Identifier: Apache-2.0
//! Circuit breakers, one for each agent that fails. Handoffs in a row that used up their tries with it
//! open it; while it is open nothing is sent to the agent and it claims nothing. Then one handoff is
//! let through, whatever else waits: a result closes the breaker, another failure opens it again. All
//! of it follows from the log: an event that counts says by which numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::envelope::Target;
use crate::event::{Enters, Event, FailureClass, Sealed, words};
use crate::ids::{HandoffId, Position, Timestamp};
use crate::terms::Terms;

/// How many agents that fail are remembered.
pub const TARGETS_MAX: usize = 10_000;
/// The largest numbers that may be set.
pub const FAILURES_MAX: u32 = 1000;
pub const OPEN_MS_MIN: u64 = 100;
pub const OPEN_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// How many handoffs in a row must use up their tries before nothing more is sent.
    #[schemars(range(min = 1, max = 1000))]
    pub failures: u32,
    /// How long nothing is sent, in milliseconds.
    #[schemars(range(min = 100, max = 86_400_000))]
    pub open_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { failures: 3, open_ms: 60_000 }
    }
}

impl Limits {
    /// What is wrong with them, if something is.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=FAILURES_MAX).contains(&self.failures) {
            return Err(format!("failures is {}, expected 1 to {FAILURES_MAX}", self.failures));
        }
        if !(OPEN_MS_MIN..=OPEN_MS_MAX).contains(&self.open_ms) {
            let problem = format!("expected {OPEN_MS_MIN} to {OPEN_MS_MAX}");
            return Err(format!("open_ms is {}, {problem}", self.open_ms));
        }
        Ok(())
    }
}

/// What holds at this broker where nobody said otherwise: its breakers, the terms by which a worker
/// that falls silent is judged, and how long a handoff may take from offer to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct House {
    pub breakers: Limits,
    pub terms: Terms,
    pub expires_in_ms: u64,
}

impl Default for House {
    fn default() -> Self {
        let expires_in_ms = 24 * 60 * 60 * 1000;
        Self { breakers: Limits::default(), terms: Terms::default(), expires_in_ms }
    }
}

/// Keeps work from an agent that keeps failing, for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breaker {
    pub target: Target,
    /// Handoffs that used up their tries since the last result.
    pub in_row: u32,
    pub failed_at: Timestamp,
    /// By which numbers the last failure counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The numbers that were set for this target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Limits>,
    /// Until when the one that was let through may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probing_until: Option<Timestamp>,
    /// The claim that shows how the target fares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<HandoffId>,
    /// The last event about this target.
    #[serde(rename = "at")]
    pub last_pos: Position,
}

/// What a breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Everything.
    Closed,
    /// Nothing, until then.
    Open { until: Timestamp },
    /// One, to see how it fares. `claimed` is whether somebody is at it.
    HalfOpen { claimed: bool, until: Option<Timestamp> },
}

/// A breaker's state without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerName {
    Closed,
    Open,
    HalfOpen,
}

words!(BreakerName { Closed = "closed", Open = "open", HalfOpen = "half_open" });

impl BreakerState {
    #[must_use]
    pub fn name(self) -> BreakerName {
        match self {
            Self::Closed => BreakerName::Closed,
            Self::Open { .. } => BreakerName::Open,
            Self::HalfOpen { .. } => BreakerName::HalfOpen,
        }
    }

    /// Until when nothing new is sent, if nothing is. The one that was let through may show earlier
    /// how the target fares.
    #[must_use]
    pub fn sends_from(self) -> Option<Timestamp> {
        match self {
            Self::Closed => None,
            Self::Open { until } => Some(until),
            Self::HalfOpen { until, .. } => until,
        }
    }

    /// How many claims the agent may make.
    #[must_use]
    pub fn claims_max(self) -> usize {
        match self {
            Self::Closed => usize::MAX,
            Self::HalfOpen { claimed: false, .. } => 1,
            Self::Open { .. } | Self::HalfOpen { claimed: true, .. } => 0,
        }
    }
}

impl Breaker {
    pub(crate) fn new(target: &Target) -> Self {
        Self {
            target: target.clone(),
            in_row: 0,
            failed_at: Timestamp(0),
            limits: None,
            own: None,
            probing_until: None,
            probe: None,
            last_pos: Position(0),
        }
    }

    /// Whether anything has to be known of it: it counts failures, or by numbers of its own. Work
    /// that is open to many fails by those who do it, so nothing counts against a capability.
    #[must_use]
    pub fn matters(&self) -> bool {
        match self.target {
            Target::Agent(_) => self.in_row > 0 || self.own.is_some(),
            Target::Capability(_) => false,
        }
    }

    #[must_use]
    pub fn state(&self, now: Timestamp) -> BreakerState {
        let limits = self.limits.unwrap_or_default();
        if self.in_row < limits.failures {
            return BreakerState::Closed;
        }
        let until = self.failed_at.plus_ms(limits.open_ms);
        if now < until {
            return BreakerState::Open { until };
        }
        let until = self.probing_until.filter(|until| now < *until);
        BreakerState::HalfOpen { claimed: until.is_some() && self.probe.is_some(), until }
    }
}

/// The breaker as it is after an event, from how it was before. One that does not matter is worth
/// nothing to anybody but a store, which has a row for it.
#[must_use]
pub fn after(known: Option<&Breaker>, target: &Target, sealed: &Sealed) -> Breaker {
    let now = sealed.record.at;
    let mut breaker = known.cloned().unwrap_or_else(|| Breaker::new(target));
    let open_ms = breaker.limits.unwrap_or_default().open_ms;
    match &sealed.record.event {
        Event::DeadLettered { limits, .. } | Event::Escalated { limits, .. } => {
            breaker.in_row = breaker.in_row.saturating_add(1);
            breaker.failed_at = now;
            breaker.limits = *limits;
            breaker.probing_until = None;
            breaker.probe = None;
        }
        Event::Completed { .. } => {
            breaker.in_row = 0;
            breaker.probing_until = None;
            breaker.probe = None;
        }
        Event::Claimed(claimed) => {
            breaker.probe = sealed.record.handoff_id;
            breaker.probing_until = Some(claimed.hard_until);
        }
        // It was let through and failed: there is no need to see it fail to the end.
        Event::AttemptFailed { class: FailureClass::Retryable | FailureClass::Unknown, .. } => {
            breaker.failed_at = now;
            breaker.probing_until = None;
            breaker.probe = None;
        }
        event => match event.facts().enters {
            Enters::Offered(_) => breaker.probing_until = Some(now.plus_ms(open_ms)),
            // The one that was let through ended without a word on how the target fares.
            Enters::Nothing
            | Enters::Own
            | Enters::OwnIfHeld
            | Enters::OwnIfScheduled
            | Enters::OfAgentIfPending(_)
            | Enters::Of(_) => {
                breaker.probing_until = None;
                breaker.probe = None;
            }
        },
    }
    breaker.last_pos = sealed.position;
    breaker
}
