// SPDX-License-Identifier: Apache-2.0
//! How targets fare, for those who watch: what fails in a row, what is not sent to, how deep chains
//! are and how full.

use std::collections::BTreeMap;
use std::sync::Arc;

use tasuki_core::breaker::{Breaker, BreakerState, Limits};
use tasuki_core::commands::RegistryWish;
use tasuki_core::observe::Facts;
use tasuki_core::registry::rules::Permission;
use tasuki_core::{AgentId, Refusal, Target, Timestamp};

use crate::desk::Desk;
use crate::error::Error;

/// What is known of one target.
#[derive(Debug, Clone, Default)]
pub struct TargetHealth {
    pub breaker: Option<Arc<Breaker>>,
    pub facts: Facts,
    pub live: bool,
    /// By which numbers its failures count.
    pub limits: Limits,
}

impl TargetHealth {
    #[must_use]
    pub fn state(&self, now: Timestamp) -> BreakerState {
        self.breaker.as_ref().map_or(BreakerState::Closed, |breaker| breaker.state(now))
    }
}

impl Desk {
    /// All targets of the caller's tenant that something is known of.
    pub async fn health(&self) -> Result<BTreeMap<Target, TargetHealth>, Error> {
        self.caller.must(Permission::Read, None)?;
        self.engine.observed().await;
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
        for (target, breaker) in &self.engine.registry().guards.breakers {
            if ours(target) {
                all.entry(target.clone()).or_default().breaker = Some(breaker.clone());
            }
        }
        for (target, health) in &mut all {
            health.live = self.engine.presence.is_live(target, now);
            let own = health.breaker.as_ref().and_then(|breaker| breaker.own);
            health.limits = own.unwrap_or(self.engine.settings.breakers);
        }
        Ok(all)
    }

    /// Sets when the breaker of an agent opens. An agent does not do so for itself.
    pub async fn set_breaker(
        &self,
        agent: &AgentId,
        limits: Option<Limits>,
    ) -> Result<(Target, TargetHealth), Error> {
        let agent = self.caller.agent_named(agent);
        if agent.tenant() != self.caller.tenant().as_str() {
            return Err(Refusal::AgentNotFound(agent).into());
        }
        self.caller.must(Permission::Administer, Some(agent.name()))?;
        let target = Target::Agent(agent);
        let wish = RegistryWish::SetLimits { target: target.clone(), limits };
        self.engine.change(&self.caller, vec![wish]).await?;
        let registry = self.engine.registry();
        let now = self.now();
        let breaker = registry.guards.breakers.get(&target).cloned();
        let limits = limits.unwrap_or(self.engine.settings.breakers);
        let live = self.engine.presence.is_live(&target, now);
        let facts = {
            let records = self.engine.records.lock().expect("no holder of this lock panics");
            records.targets.get(&target).cloned().unwrap_or_default()
        };
        Ok((target, TargetHealth { breaker, facts, live, limits }))
    }
}
