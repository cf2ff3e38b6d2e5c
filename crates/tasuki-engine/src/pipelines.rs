// SPDX-License-Identifier: Apache-2.0
//! Declared pipelines. The file is read by whoever starts the broker, and again when it changes; what
//! runs goes on by the version that it began with, which the registry keeps.

use std::sync::{Arc, RwLock};

use tasuki_core::AgentId;
use tasuki_core::commands::{Command, Offer, RegistryWish};
use tasuki_core::contract::{After, Successors};
use tasuki_core::envelope::{Action, Control, Payload};
use tasuki_core::event::Actor;
use tasuki_core::ids::TenantId;
use tasuki_core::pipeline::{Next, Pipeline, Pipelines, Stage, StageRef};
use tasuki_core::registry::rules::Permission;

use tasuki_protocol::StartPipeline;

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::held::Lacks;
use crate::keys;
use crate::offer::Ending;
use crate::operations::asked;
use crate::requests::{FollowUp, NewOffer, Offered};

/// What can be started. Every version that ever could is in the registry.
#[derive(Default)]
pub(crate) struct Declared {
    now: RwLock<Arc<Pipelines>>,
}

impl Declared {
    fn now(&self) -> Arc<Pipelines> {
        self.now.read().expect("no holder of this lock panics").clone()
    }
}

impl Engine {
    /// Declares pipelines, in place of those before. Each version is kept, so that what runs on it goes
    /// on after a restart, at any broker; a version that says something else than before is refused.
    pub async fn declare_pipelines(&self, pipelines: Pipelines) -> Result<(), Error> {
        for pipeline in &pipelines.pipelines {
            let wish = RegistryWish::DeclarePipeline(Box::new(pipeline.clone()));
            self.one(Command::registry(Actor::Broker, None, wish)).await?;
        }
        *self.pipelines.now.write().expect("no holder of this lock panics") = Arc::new(pipelines);
        Ok(())
    }

    /// The version of a pipeline that a handoff began with. Of one from before versions were kept, what
    /// is declared now.
    fn pipeline_of(&self, at: &StageRef) -> Option<Arc<Pipeline>> {
        let known = self.registry().pipelines.get(&(at.pipeline.clone(), at.version)).cloned();
        known.or_else(|| self.pipelines.now().get(&at.pipeline).cloned().map(Arc::new))
    }

    async fn start_pipeline(&self, name: &str, mut new: NewOffer) -> Result<Offered, Error> {
        let now = self.pipelines.now();
        let Some(pipeline) = now.get(name) else {
            let known: Vec<_> = now.pipelines.iter().map(|it| it.name.as_str()).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return Err(invalid(
                "pipeline",
                format!("there is no {name:?}; declared are: {known}"),
            ));
        };
        let first = pipeline.first().ok_or_else(|| invalid("pipeline", "has no first stage"))?;
        let tenant = tenant_of(&new.from)?;
        let hop = self.hop_to(pipeline, first, new.hop.payload.clone(), new.hop.action, &tenant);
        new.hop = FollowUp {
            to: hop.to,
            fallbacks: hop.fallbacks,
            stage: hop.stage,
            terms: new.hop.terms.or(hop.terms),
            budget_tokens: new.hop.budget_tokens.or(hop.budget_tokens),
            needs_approval: new.hop.needs_approval || hop.needs_approval,
            said: if new.hop.said.ask.is_none() {
                tasuki_core::envelope::Said { ask: hop.said.ask, ..new.hop.said }
            } else {
                new.hop.said
            },
            ..new.hop
        };
        self.offer(new).await
    }

    /// What follows a stage of a pipeline that ended with this result, where its agent names no
    /// successor itself.
    pub(crate) async fn next_stages(
        &self,
        from: Ending<'_>,
        action: Action,
        payload: &Payload,
        lacks: Lacks<'_>,
    ) -> Result<(Vec<Offer>, Successors), Error> {
        let handoff = from.handoff;
        let Some(at) = handoff.contract.agreement.route() else {
            return Ok((Vec::new(), Successors::Named));
        };
        let gone = || {
            let problem = format!(
                "stage {:?} of pipeline {:?} is no longer declared; name a follow-up, or declare it",
                at.stage, at.pipeline
            );
            invalid("follow_ups", problem)
        };
        let pipeline = self.pipeline_of(at).ok_or_else(gone)?;
        let tenant = tenant_of(&handoff.from)?;
        let next = pipeline.next(&at.stage, action, payload).ok_or_else(gone)?;
        let hop = |stage: &Stage| {
            let mut hop = self.hop_to(&pipeline, stage, payload.clone(), action, &tenant);
            lacks.pass_on(&mut hop);
            hop
        };
        let declared = |offers: &[Offer]| {
            let stages = offers.iter().filter_map(|offer| offer.contract.agreement.stage.clone());
            Successors::Declared(stages.collect())
        };
        let offers = match next {
            Next::End => Vec::new(),
            Next::Stage(stage) => {
                self.onward(from).await?.follow_ups(self, vec![hop(stage)]).await?
            }
            Next::Fan { stages, join, need, deadline_ms } => {
                let branch = |stage: &&Stage| {
                    let mut hop = hop(stage);
                    hop.control = Control::Awaited;
                    hop.stage = hop.stage.map(|at| StageRef { branch: true, ..at });
                    hop
                };
                let branches = stages.iter().map(branch).collect();
                let onward = self.onward(from).await?;
                let mut offers = onward.follow_ups(self, branches).await?;
                let tasks = offers.iter().map(|offer| offer.task.id()).collect();
                let mut last = hop(join);
                last.after = Some(After { tasks, need });
                last.start_in_ms = deadline_ms;
                offers.extend(onward.follow_ups(self, vec![last]).await?);
                offers
            }
        };
        let successors = declared(&offers);
        Ok((offers, successors))
    }

    fn hop_to(
        &self,
        pipeline: &Pipeline,
        stage: &Stage,
        payload: Payload,
        action: Action,
        tenant: &TenantId,
    ) -> FollowUp {
        let mut hop = FollowUp::new(stage.to.seen_from(tenant), payload);
        hop.action = action;
        hop.fallbacks = stage.fallbacks.iter().map(|to| to.seen_from(tenant)).collect();
        hop.said.ask.clone_from(&stage.ask);
        hop.budget_tokens = stage.budget_tokens;
        hop.needs_approval = stage.needs_approval;
        hop.stage = Some(StageRef {
            pipeline: pipeline.name.clone(),
            version: pipeline.version,
            stage: stage.name.clone(),
            branch: false,
        });
        let usual = self.settings.terms;
        if stage.timeout_ms.or(stage.ack_ms).is_some() || stage.attempts.is_some() {
            hop.terms = Some(tasuki_core::Terms {
                work_ms: stage.timeout_ms.unwrap_or(usual.work_ms),
                ack_ms: stage.ack_ms.or(usual.ack_ms),
                attempts: stage.attempts.unwrap_or(usual.attempts),
                ..usual
            });
        }
        hop
    }
}

fn tenant_of(agent: &AgentId) -> Result<TenantId, Error> {
    agent.tenant().parse().map_err(|_| invalid("from_agent", "has no tenant"))
}

impl Desk {
    /// Begins a task along a declared route.
    pub async fn start_pipeline(&self, name: &str, new: StartPipeline) -> Result<Offered, Error> {
        asked::check_none(&new.more)?;
        let from_agent = self.caller.speaks_for(&new.from_agent)?;
        self.caller.must_to(Permission::Send, name, new.project.as_ref())?;
        let coordinator = new.coordinator.map(|it| self.coordinator(it));
        let new = StartPipeline { from_agent, coordinator, ..new };
        let key = keys::of(&new, Some(name));
        let mut new = NewOffer { key, ..asked::pipeline_start(new) };
        new.hop.instructs = self.instructs_all();
        Box::pin(self.engine.start_pipeline(name, new)).await
    }

    #[must_use]
    pub fn pipelines(&self) -> Arc<Pipelines> {
        self.engine.pipelines.now()
    }
}
