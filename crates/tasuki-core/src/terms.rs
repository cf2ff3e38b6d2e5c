// SPDX-License-Identifier: Apache-2.0
//! The terms of a handoff: how long a claim holds without a heartbeat, how long an attempt may
//! take, how often it is tried, and how long to wait in between.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Timestamp;

pub const LEASE_MS_MIN: u64 = 100;
/// How long brokers may not look after leases before that is a silence of their own, by which no
/// holder is judged.
pub const SILENCE_MS: u64 = 2_000;
pub const LEASE_MS_MAX: u64 = 24 * 60 * 60 * 1000;
pub const WORK_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;
pub const ATTEMPTS_MAX: u32 = 100;
pub const BACKOFF_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// How long a claim holds, how long the work may take, and how often it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// How long a claim holds without a heartbeat.
    #[schemars(range(min = 100, max = 86_400_000))]
    pub lease_ms: u64,
    /// How long one attempt may take in all, however many heartbeats it sends.
    #[schemars(range(min = 100, max = 2_592_000_000_i64))]
    pub work_ms: u64,
    /// How many attempts may end in a declared failure before the handoff is dead-lettered.
    #[schemars(range(min = 1, max = 100))]
    pub attempts: u32,
    /// How many leases in a row may be lost without progress before it is quarantined as poison.
    #[schemars(range(min = 1, max = 100))]
    pub losses: u32,
    /// The longest pause before a retry; 0 retries at once.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub backoff_ms: u64,
    /// How long it may wait to be claimed before it goes to the next one, or to the dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 2_592_000_000_i64))]
    pub ack_ms: Option<u64>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lease_ms: 30_000,
            work_ms: 3_600_000,
            attempts: 3,
            losses: 3,
            backoff_ms: 30_000,
            ack_ms: None,
        }
    }
}

impl Terms {
    /// The first term that is out of its range, with its name and the range.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: u64, min: u64, max: u64| {
            if (min..=max).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name} is {value}, expected {min} to {max}"))
            }
        };
        within("lease_ms", self.lease_ms, LEASE_MS_MIN, LEASE_MS_MAX)?;
        within("work_ms", self.work_ms, LEASE_MS_MIN, WORK_MS_MAX)?;
        within("attempts", self.attempts.into(), 1, ATTEMPTS_MAX.into())?;
        within("losses", self.losses.into(), 1, ATTEMPTS_MAX.into())?;
        within("backoff_ms", self.backoff_ms, 0, BACKOFF_MS_MAX)?;
        self.ack_ms.map_or(Ok(()), |ack_ms| within("ack_ms", ack_ms, LEASE_MS_MIN, WORK_MS_MAX))
    }

    /// When to try again after `failures` declared failures: full jitter over
    /// `min(2^failures s, backoff_ms)`, but never before the time the failing agent asked for.
    #[must_use]
    pub fn retry_at(
        &self,
        now: Timestamp,
        failures: u32,
        asked_ms: Option<u64>,
        entropy: u64,
    ) -> Timestamp {
        let ceiling = 2_u64.saturating_pow(failures).saturating_mul(1000).min(self.backoff_ms);
        let jittered = entropy % (ceiling + 1);
        let asked = asked_ms.unwrap_or(0).min(BACKOFF_MS_MAX);
        now.plus_ms(jittered.max(asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_waits_up_to_two_to_the_power_of_the_failures_and_at_most_thirty_seconds() {
        let terms = Terms::default();
        let longest = |failures| {
            (0..100_000)
                .map(|entropy| terms.retry_at(Timestamp(0), failures, None, entropy).0)
                .max()
                .unwrap()
        };
        assert_eq!([1, 2, 3, 4, 5, 60].map(longest), [2000, 4000, 8000, 16_000, 30_000, 30_000]);
    }

    #[test]
    fn a_retry_never_comes_before_the_time_the_agent_asked_for() {
        let at = Terms::default().retry_at(Timestamp(0), 1, Some(60_000), 7);
        assert_eq!(at, Timestamp(60_000));
    }

    #[test]
    fn terms_out_of_range_are_named() {
        let terms = Terms { lease_ms: 1, ..Terms::default() };
        assert_eq!(terms.check().unwrap_err(), "lease_ms is 1, expected 100 to 86400000");
    }
}
