// SPDX-License-Identifier: Apache-2.0
//! How targets fare, for those who watch: what fails in a row, what is not sent to, how deep chains
//! are and how full.

use std::collections::BTreeMap;
use std::sync::Arc;

use tasuki_core::breaker::{Breaker, BreakerState};
use tasuki_core::observe::Facts;
use tasuki_core::registry::rules::Permission;
use tasuki_core::{Target, Timestamp};

use crate::desk::Desk;
use crate::error::Error;

/// What is known of one target.
#[derive(Debug, Clone, Default)]
pub struct TargetHealth {
    pub breaker: Option<Arc<Breaker>>,
    pub facts: Facts,
    pub live: bool,
}

impl TargetHealth {
    #[must_use]
    pub fn state(&self, now: Timestamp) -> BreakerState {
        self.breaker.as_ref().map_or(BreakerState::Closed, |breaker| breaker.state(now))
    }
}

impl Desk {
    /// All targets of the caller's tenant that something is known of.
    pub fn health(&self) -> Result<BTreeMap<Target, TargetHealth>, Error> {
        self.caller.must(Permission::Read, None)?;
        let tenant = self.caller.tenant();
        let ours = |target: &Target| target.tenant() == tenant.as_str();
        let now = self.now();
        let mut all: BTreeMap<Target, TargetHealth> = BTreeMap::new();
        {
            let records = self.engine.records.lock().expect("no holder of this lock panics");
            for (target, facts) in records.targets.iter().filter(|(target, _)| ours(target)) {
                all.entry(target.clone()).or_default().facts = facts.clone();
            }
        }
        for (target, breaker) in &self.engine.registry().breakers {
            if ours(target) {
                all.entry(target.clone()).or_default().breaker = Some(breaker.clone());
            }
        }
        for (target, health) in &mut all {
            health.live = self.engine.presence.is_live(target, now);
        }
        Ok(all)
    }
}
