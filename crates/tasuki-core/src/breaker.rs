// SPDX-License-Identifier: Apache-2.0
//! Circuit breakers, one for each target that fails. Handoffs in a row that used up their tries open
//! it; while it is open nothing is sent there. Then one handoff is let through to see how it fares:
//! a result closes the breaker, another failure opens it again. All of it follows from the log.

use serde::{Deserialize, Serialize};

use crate::envelope::Target;
use crate::event::{Enters, Event, Sealed, words};
use crate::ids::{Position, Timestamp};

/// How many handoffs in a row must use up their tries before nothing more is sent.
pub const EXHAUSTED_MAX: u32 = 3;
/// How long nothing is sent, and how long one that is let through may take to show how it fares.
pub const OPEN_MS: u64 = 60_000;
/// How many targets that fail are remembered.
pub const TARGETS_MAX: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Breaker {
    pub target: Target,
    /// Handoffs that used up their tries since the last result.
    pub in_row: u32,
    pub failed_at: Timestamp,
    /// Until when the one that was let through may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probing_until: Option<Timestamp>,
    /// The last event about this target.
    pub at: Position,
}

/// What a breaker lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Everything.
    Closed,
    /// Nothing, until then.
    Open { until: Timestamp },
    /// One, to see how it fares.
    HalfOpen,
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
            Self::HalfOpen => BreakerName::HalfOpen,
        }
    }
}

impl Breaker {
    fn new(target: &Target) -> Self {
        Self {
            target: target.clone(),
            in_row: 0,
            failed_at: Timestamp(0),
            probing_until: None,
            at: Position(0),
        }
    }

    #[must_use]
    pub fn state(&self, now: Timestamp) -> BreakerState {
        if self.in_row < EXHAUSTED_MAX {
            return BreakerState::Closed;
        }
        let reset = self.failed_at.plus_ms(OPEN_MS);
        let until = self.probing_until.map_or(reset, |probing| probing.max(reset));
        if now < until { BreakerState::Open { until } } else { BreakerState::HalfOpen }
    }
}

/// The breaker as it is after an event, from how it was before. One without failures is worth
/// nothing to anybody but a store, which has a row for it.
#[must_use]
pub fn after(known: Option<&Breaker>, target: &Target, sealed: &Sealed) -> Breaker {
    let now = sealed.record.at;
    let mut breaker = known.cloned().unwrap_or_else(|| Breaker::new(target));
    match &sealed.record.event {
        Event::DeadLettered { .. } | Event::Escalated { .. } => {
            breaker.in_row = breaker.in_row.saturating_add(1);
            breaker.failed_at = now;
            breaker.probing_until = None;
        }
        Event::Completed { .. } => {
            breaker.in_row = 0;
            breaker.probing_until = None;
        }
        event => {
            if let Enters::Offered(_) = event.facts().enters {
                breaker.probing_until = Some(now.plus_ms(OPEN_MS));
            }
        }
    }
    breaker.at = sealed.position;
    breaker
}
