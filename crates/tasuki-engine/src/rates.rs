// SPDX-License-Identifier: Apache-2.0
//! How often something happened lately: requests of a tenant, refusals of an agent.

use std::collections::HashMap;
use std::sync::Mutex;

use tasuki_core::ids::TenantId;
use tasuki_core::{AgentId, Timestamp};

/// How many kinds of refusals are remembered; beyond it all are forgotten.
const DENIALS_MAX: usize = 10_000;
/// The same refusal of the same agent is written down once in this time: whoever repeats itself
/// must not fill the log.
const DENIAL_MS: u64 = 10_000;

/// A bucket of requests for each tenant that has a limit: a second's worth at once, refilled all the
/// time. The unit is a thousandth of a request.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    buckets: Mutex<HashMap<TenantId, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    left: u64,
    at: Timestamp,
}

impl Rates {
    /// Takes one request out, or says how long to wait for it, in milliseconds.
    pub(crate) fn take(&self, tenant: &TenantId, rate: u32, now: Timestamp) -> Result<(), u64> {
        let full = u64::from(rate.max(1)) * 1000;
        let mut buckets = self.buckets.lock().expect("no holder of this lock panics");
        let bucket = buckets.entry(tenant.clone()).or_insert(Bucket { left: full, at: now });
        // So many thousandths come in each millisecond.
        let come = now.ms_after(bucket.at).saturating_mul(u64::from(rate.max(1)));
        bucket.left = bucket.left.saturating_add(come).min(full);
        bucket.at = bucket.at.max(now);
        match bucket.left.checked_sub(1000) {
            Some(left) => {
                bucket.left = left;
                Ok(())
            }
            None => Err((1000 - bucket.left).div_ceil(u64::from(rate.max(1)))),
        }
    }
}

impl Rates {
    /// Takes more out for a request that was let in and then took much work, in thousandths of a
    /// request. The next one waits for it.
    pub(crate) fn charge(&self, tenant: &TenantId, thousandths: u64) {
        let mut buckets = self.buckets.lock().expect("no holder of this lock panics");
        if let Some(bucket) = buckets.get_mut(tenant) {
            bucket.left = bucket.left.saturating_sub(thousandths);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Denials {
    last: Mutex<HashMap<(AgentId, String), Timestamp>>,
}

impl Denials {
    /// Whether this is the first of its kind for a while.
    pub(crate) fn first(&self, agent: &AgentId, code: &str, now: Timestamp) -> bool {
        let mut last = self.last.lock().expect("no holder of this lock panics");
        if last.len() >= DENIALS_MAX {
            last.clear();
        }
        let known = last.get(&(agent.clone(), code.to_owned()));
        if known.is_some_and(|at| now < at.plus_ms(DENIAL_MS)) {
            return false;
        }
        last.insert((agent.clone(), code.to_owned()), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_gets_a_seconds_worth_at_once_and_then_its_rate() {
        let rates = Rates::default();
        let tenant = TenantId::default();
        for _ in 0..10 {
            assert_eq!(rates.take(&tenant, 10, Timestamp(0)), Ok(()));
        }
        assert_eq!(rates.take(&tenant, 10, Timestamp(0)), Err(100));
        assert_eq!(rates.take(&tenant, 10, Timestamp(99)), Err(1));
        assert_eq!(rates.take(&tenant, 10, Timestamp(100)), Ok(()));
        assert_eq!(rates.take(&tenant, 10, Timestamp(100)), Err(100));
        let other: TenantId = "other".parse().unwrap();
        assert_eq!(rates.take(&other, 10, Timestamp(100)), Ok(()));
    }

    #[test]
    fn the_same_refusal_counts_once_in_a_while() {
        let denials = Denials::default();
        let agent: AgentId = "coder".parse().unwrap();
        assert!(denials.first(&agent, "not_permitted", Timestamp(0)));
        assert!(!denials.first(&agent, "not_permitted", Timestamp(9999)));
        assert!(denials.first(&agent, "other_tenant", Timestamp(9999)));
        assert!(denials.first(&agent, "not_permitted", Timestamp(10_000)));
    }
}
