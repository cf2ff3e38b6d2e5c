// SPDX-License-Identifier: Apache-2.0
//! How targets fare, for those who watch: what fails in a row, what is not sent to, how deep chains
//! are and how full.

use std::collections::BTreeMap;
use std::sync::Arc;

use tasuki_core::breaker::{Breaker, BreakerState, Limits};
use tasuki_core::commands::RegistryWish;
use tasuki_core::observe::Facts;
use tasuki_core::registry::Pause;
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
    /// Somebody paused it.
    pub pause: Option<Pause>,
}

/// For how long a target is paused: until a time, for a span, or until somebody resumes it.
#[derive(Debug, Clone, Copy)]
pub struct PausedFor {
    pub until: Option<Timestamp>,
    pub for_ms: Option<u64>,
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
        Ok(self.faring().await)
    }

    async fn faring(&self) -> BTreeMap<Target, TargetHealth> {
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
        for target in self.engine.registry().pauses.keys().filter(|target| ours(target)) {
            all.entry(target.clone()).or_default();
        }
        for (target, health) in &mut all {
            health.pause = self.engine.registry().pause_of(target, now).cloned();
            health.live = self.engine.presence.is_live(target, now);
            let own = health.breaker.as_ref().and_then(|breaker| breaker.own);
            health.limits = own.unwrap_or(self.engine.settings.breakers);
        }
        all
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
        self.caller.must(Permission::Operate, Some(agent.name()))?;
        let target = Target::Agent(agent);
        let wish = RegistryWish::SetLimits { target: target.clone(), limits };
        self.engine.change(&self.caller, vec![wish]).await?;
        let health = self.health_of(&target).await;
        Ok((target, health))
    }

    /// Lets nothing be claimed of a target, or lets it again.
    pub async fn set_pause(
        &self,
        target: &Target,
        pause: Option<PausedFor>,
    ) -> Result<(Target, TargetHealth), Error> {
        let target = self.caller.target(target);
        if target.tenant() != self.caller.tenant().as_str() {
            return Err(Refusal::OtherTenant.into());
        }
        self.caller.must(Permission::Operate, Some(target.name()))?;
        let wish = match pause {
            Some(pause) => {
                let span = pause.for_ms.map(|ms| self.now().plus_ms(ms));
                let until = match (pause.until, span) {
                    (Some(until), Some(span)) => Some(until.min(span)),
                    (until, span) => until.or(span),
                };
                RegistryWish::Pause { target: target.clone(), until }
            }
            None => RegistryWish::Resume { target: target.clone() },
        };
        self.engine.change(&self.caller, vec![wish]).await?;
        let health = self.health_of(&target).await;
        Ok((target, health))
    }

    /// How one target fares, told to who may say how it should: that is more than reading.
    async fn health_of(&self, target: &Target) -> TargetHealth {
        let own = |(of, health): (Target, TargetHealth)| (of == *target).then_some(health);
        let known = self.faring().await.into_iter().find_map(own);
        let limits = self.engine.settings.breakers;
        known.unwrap_or_else(|| TargetHealth { limits, ..TargetHealth::default() })
    }
}
