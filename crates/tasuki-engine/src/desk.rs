// SPDX-License-Identifier: Apache-2.0
//! Where callers are served: the engine as one caller may use it. Each method says what the caller
//! must be allowed to do, resolves the names in the request within the caller's tenant, and makes
//! one call. What a caller may not see is not there: see [`seeing`].

mod advice;
mod seeing;
mod sessions;
mod work;

use std::sync::Arc;

use tasuki_core::identity::PublicKey;
use tasuki_core::ids::{Project, TenantId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::Signed;
use tasuki_core::registry::rules::Permission;
use tasuki_core::terms::LEASE_MS_MIN;
use tasuki_core::{AgentId, Handoff, HandoffId, Refusal, Task, TaskId, Terms, Timestamp};
use tasuki_protocol::{
    Claim, Complete, CompleteTask, Coordinator, Fail, FollowUp, Offer, OpenTask, Peek, ReadBack,
};
use tasuki_store::{Counts, Needs, Sight, Stats};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;
use crate::held::completed;
use crate::keys;
use crate::lobby::Lobby;
use crate::operations::asked;
use crate::requests::{
    ClaimOneRequest, CompleteRequest, CounterRequest, FailRequest, FollowUp as Hop, Granted,
    Holder, NewOffer, NewTask, Offered, Proof,
};
use crate::sight::handoff_in;

#[derive(Clone)]
pub struct Desk {
    pub(crate) engine: Arc<Engine>,
    pub(crate) caller: Caller,
}

impl Engine {
    /// Serves a caller.
    #[must_use]
    pub fn desk(self: &Arc<Self>, caller: Caller) -> Desk {
        Desk { engine: self.clone(), caller }
    }
}

/// A page of what a caller may see, and where the next one begins.
pub struct Page<T, I> {
    pub items: Vec<Arc<T>>,
    pub next: Option<I>,
}

/// How much there is, as far as it is a caller's business.
#[derive(Debug, Clone)]
pub struct SeenStats {
    pub tenant: TenantId,
    pub usage: Usage,
    pub disk_full: bool,
    /// What is in which state: of all tenants for an operator, and otherwise of the caller's.
    pub counts: Counts,
    /// Of all tenants together.
    pub store: Option<Stats>,
}

impl Desk {
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.engine.now()
    }

    #[must_use]
    pub fn lobby(&self) -> Lobby {
        self.engine.clone().into()
    }

    /// The key with which the broker signs what it delivers.
    #[must_use]
    pub fn broker_key(&self) -> Option<PublicKey> {
        self.engine.broker_key()
    }

    /// The terms that hold where an offer names none.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.engine.terms()
    }

    /// The caller as the holder of a claim, where it is known.
    pub(crate) fn holder(&self, signed: Option<Signed>) -> Option<Holder> {
        self.caller.agent().cloned().map(|agent| Holder { agent, signed })
    }

    pub async fn open_task(&self, new: OpenTask) -> Result<(Arc<Task>, bool), Error> {
        let from_agent = self.caller.speaks_for(&new.from_agent)?;
        let project = match new.parent_task_id {
            Some(parent) if self.caller.is_project_scoped() => {
                self.engine.project_below(parent, &from_agent, new.project.clone()).await?
            }
            _ => new.project.clone(),
        };
        self.caller.must_in(Permission::Send, project.as_ref())?;
        let coordinator = new.coordinator.map(|it| self.coordinator(it));
        let new = OpenTask { from_agent, coordinator, ..new };
        let key = keys::of(&new, None);
        self.engine.open_task(NewTask { key, ..asked::task(new) }).await
    }

    pub async fn cancel_task(
        &self,
        id: TaskId,
        by: &AgentId,
        reason: Option<String>,
    ) -> Result<Arc<Task>, Error> {
        let by = self.caller.speaks_for(by)?;
        self.caller.must(Permission::Send, None)?;
        self.engine.cancel_task(id, by, reason).await
    }

    fn hop(&self, hop: FollowUp, project: Option<&Project>) -> Result<FollowUp, Error> {
        let to = self.caller.target(&hop.to);
        let capability = hop.capability.map(|capability| self.caller.capability(&capability));
        // Before anything of another tenant is looked at: its manifests are not ours to quote.
        let approvers = hop.approvers.iter().map(|it| self.caller.agent_named(it)).collect();
        let tenant = self.caller.tenant();
        let ours = capability.as_ref().is_none_or(|it| it.tenant() == tenant.as_str());
        if to.tenant() != tenant.as_str() || !ours {
            return Err(Refusal::OtherTenant.into());
        }
        self.caller.must_to(Permission::Send, to.name(), project)?;
        let mut fallbacks = Vec::with_capacity(hop.fallbacks.len());
        for other in &hop.fallbacks {
            let other = self.caller.target(other);
            if other.tenant() != tenant.as_str() {
                return Err(Refusal::OtherTenant.into());
            }
            self.caller.must_to(Permission::Send, other.name(), project)?;
            fallbacks.push(other);
        }
        Ok(FollowUp { to, capability, fallbacks, approvers, ..hop })
    }

    /// Whether the caller may say something to a target that is more than an agent's data.
    fn instructs(&self, to: &tasuki_core::Target, project: Option<&Project>) -> bool {
        let may = |permission| self.caller.may_to(permission, to.name(), project);
        may(Permission::Operate) || may(Permission::Administer)
    }

    /// The same towards many, of whom not all are known yet.
    pub(crate) fn instructs_all(&self) -> bool {
        self.caller.may_all(Permission::Operate) || self.caller.may_all(Permission::Administer)
    }

    pub(crate) fn coordinator(&self, named: Coordinator) -> Coordinator {
        match named {
            Coordinator::Agent(agent) => Coordinator::Agent(self.caller.agent_named(&agent)),
            role => role,
        }
    }

    fn offer_of(&self, sight: &Sight, new: Offer) -> Result<NewOffer, Error> {
        asked::check_members(&new.hop, "")?;
        let from_agent = self.caller.speaks_for(&new.from_agent)?;
        let project = match new.task_id {
            Some(id) => self.project_in(sight, id),
            None => new.project.as_ref(),
        };
        let coordinator = new.coordinator.clone().map(|it| self.coordinator(it));
        let hop = self.hop(new.hop, project)?;
        let instructs = self.instructs(&hop.to, project);
        let new = Offer { from_agent, coordinator, hop, ..new };
        let key = keys::of(&new, None);
        let mut offer = NewOffer { key, ..asked::offer(new, self.terms()) };
        offer.hop.instructs = instructs;
        Ok(offer)
    }

    /// The project of a task in sight, where it makes a difference to the caller. What belongs to
    /// another tenant is not there.
    fn project_in<'s>(&self, sight: &'s Sight, id: TaskId) -> Option<&'s Project> {
        if !self.caller.is_project_scoped() {
            return None;
        }
        let tenant = self.caller.tenant();
        let task = sight.task(id).filter(|task| task.owner.tenant() == tenant.as_str());
        task.and_then(|task| task.project.as_ref())
    }

    /// Whether somebody is there who takes work for a handoff's target.
    #[must_use]
    pub fn listening(&self, handoff: &Handoff) -> bool {
        self.engine.presence.is_live(&handoff.to, self.now())
    }

    pub async fn offer(&self, new: Offer) -> Result<Offered, Error> {
        let sight = self.engine.look_for(new.task_id).await?;
        let new = self.offer_of(&sight, new)?;
        self.may_await([&new.hop]).await?;
        let offered = self.engine.offer_in(sight, new.clone()).await?;
        Ok(self.advised(&new, offered).await)
    }

    /// Whoever names tasks that work waits for passes on what they come to, so it must see them.
    pub(crate) async fn may_await(
        &self,
        hops: impl IntoIterator<Item = &Hop>,
    ) -> Result<(), Error> {
        if self.caller.agent().is_none() {
            return Ok(());
        }
        let after = hops.into_iter().filter_map(|hop| hop.after.as_ref());
        let named: Vec<_> = after.flat_map(|after| &after.tasks).copied().collect();
        if named.is_empty() {
            return Ok(());
        }
        let sight = self.engine.look(Needs::default().and_tasks(named.iter().copied())).await?;
        for id in named {
            self.task_in(&sight, id).await?;
        }
        Ok(())
    }

    /// Offers work that must be claimed within some time, unless its terms say otherwise.
    pub async fn offer_within(&self, new: Offer, patience_ms: u64) -> Result<Offered, Error> {
        let sight = self.engine.look_for(new.task_id).await?;
        let mut new = self.offer_of(&sight, new)?;
        self.may_await([&new.hop]).await?;
        let terms = new.hop.terms.unwrap_or(self.terms());
        let ack_ms = terms.ack_ms.or(Some(patience_ms.max(LEASE_MS_MIN)));
        new.hop.terms = Some(Terms { ack_ms, ..terms });
        let offered = self.engine.offer_in(sight, new.clone()).await?;
        Ok(self.advised(&new, offered).await)
    }

    /// Offers many, each on its own.
    pub async fn offer_many(&self, many: Vec<Offer>) -> Result<Vec<Result<Offered, Error>>, Error> {
        let sight = self.engine.look_for(many.iter().filter_map(|new| new.task_id)).await?;
        let mut checked = Vec::with_capacity(many.len());
        for new in many {
            checked.push(match self.offer_of(&sight, new) {
                Ok(new) => self.may_await([&new.hop]).await.map(|()| new),
                Err(error) => Err(error),
            });
        }
        let (good, slots) = part(checked);
        let mut answers = self.engine.offer_many_in(&sight, good).await?.into_iter();
        Ok(slots.into_iter().map(|slot| fill(slot, &mut answers)).collect())
    }

    pub async fn claim(&self, wish: Claim) -> Result<Vec<Granted>, Error> {
        self.claim_if(wish, || Ok(())).await
    }

    /// Claims as long as the caller may, and as long as something else holds.
    pub(crate) async fn claim_if(
        &self,
        wish: Claim,
        holds: impl Fn() -> Result<(), Error>,
    ) -> Result<Vec<Granted>, Error> {
        let (agent, capabilities) = self.seeker(&wish.agent, &wish.capabilities)?;
        let capabilities = self.declared_too(&agent, capabilities).await?;
        let (named, able) = (wish.agent.clone(), wish.capabilities.clone());
        let still_may = || {
            self.renewed()?.seeker(&named, &able)?;
            holds()
        };
        self.engine.claim_while(Claim { agent, capabilities, ..wish }, still_may).await
    }

    pub async fn claim_one(&self, wish: ClaimOneRequest) -> Result<Granted, Error> {
        let (agent, capabilities) = self.seeker(&wish.agent, &wish.capabilities)?;
        let capabilities = self.declared_too(&agent, capabilities).await?;
        let (named, able) = (wish.agent.clone(), wish.capabilities.clone());
        let still_may = || self.renewed()?.seeker(&named, &able).map(drop);
        let wish = ClaimOneRequest { agent, capabilities, ..wish };
        self.engine.claim_one_while(wish, still_may).await
    }

    pub async fn peek(&self, wish: Peek) -> Result<Vec<Granted>, Error> {
        let (agent, capabilities) = self.seeker(&wish.agent, &wish.capabilities)?;
        let capabilities = self.declared_too(&agent, capabilities).await?;
        self.engine.peek(Peek { agent, capabilities, ..wish }).await
    }

    /// What an agent can do: what it says now, and what its manifest says, as far as it has leave. Who
    /// is known says nothing now that its manifest does not say to everybody.
    async fn declared_too(
        &self,
        agent: &AgentId,
        mut said: Vec<tasuki_core::Capability>,
    ) -> Result<Vec<tasuki_core::Capability>, Error> {
        let registry = self.engine.registry();
        let known = registry.agents.get(agent);
        let listing = match known.and_then(|known| known.manifest.as_ref()) {
            Some(_) => self.engine.listing().await?,
            None => Arc::default(),
        };
        let entries = listing.agents.get(agent).map(|listed| &*listed.manifest.capabilities);
        let tenant = agent.tenant().parse().unwrap_or_default();
        let declared: Vec<_> =
            entries.into_iter().flatten().map(|entry| entry.name.seen_from(&tenant)).collect();
        // Where nobody is asked who it is, anybody could publish any manifest.
        if !self.engine.settings.open
            && let Some(capability) = said.iter().find(|able| !declared.contains(able))
        {
            let (agent, capability) = (agent.clone(), capability.clone());
            return Err(Error::Undeclared { agent, capability });
        }
        for declared in declared {
            let allowed = self.caller.may(Permission::Claim, Some(declared.name()));
            if allowed && !said.contains(&declared) {
                said.push(declared);
            }
        }
        Ok(said)
    }

    /// Whoever looks for work needs leave for its own name and for each capability.
    fn seeker(
        &self,
        agent: &AgentId,
        capabilities: &[tasuki_core::Capability],
    ) -> Result<(AgentId, Vec<tasuki_core::Capability>), Error> {
        let agent = self.caller.speaks_for(agent)?;
        self.caller.must(Permission::Claim, Some(agent.name()))?;
        let capabilities: Vec<_> =
            capabilities.iter().map(|capability| self.caller.capability(capability)).collect();
        for capability in &capabilities {
            if capability.tenant() != agent.tenant() {
                return Err(Refusal::OtherTenant.into());
            }
            self.caller.must(Permission::Claim, Some(capability.name()))?;
        }
        Ok((agent, capabilities))
    }

    pub async fn start_work(
        &self,
        id: HandoffId,
        proof: Proof,
        signed: Option<Signed>,
        read_back: Option<ReadBack>,
    ) -> Result<Arc<Handoff>, Error> {
        self.may_report(id).await?;
        self.engine.start_work(id, proof, self.holder(signed), read_back).await
    }

    pub async fn progress(
        &self,
        id: HandoffId,
        proof: Proof,
        percent: Option<u8>,
        note: Option<String>,
    ) -> Result<Arc<Handoff>, Error> {
        self.may_report(id).await?;
        self.engine.progress(id, proof, self.holder(None), percent, note).await
    }

    /// Who reports on a handoff needs leave for its target. Who needs none need not look.
    pub(crate) async fn may_report(&self, id: HandoffId) -> Result<(), Error> {
        if self.caller.may_all(Permission::Complete) {
            return Ok(());
        }
        self.caller.must(Permission::Complete, None)?;
        self.may_report_in(&self.engine.look(Needs::handoff(id)).await?, id)
    }

    fn may_report_in(&self, sight: &Sight, id: HandoffId) -> Result<(), Error> {
        let (Some(me), false) = (self.caller.agent(), self.caller.may_all(Permission::Complete))
        else {
            return Ok(());
        };
        self.caller.must(Permission::Complete, None)?;
        let handoff = handoff_in(sight, id)?;
        if !handoff.attempts.iter().any(|attempt| attempt.agent == *me) {
            return Err(Refusal::HandoffNotFound(id).into());
        }
        self.caller.must(Permission::Complete, Some(handoff.to.name()))
    }

    fn completion(
        &self,
        sight: &Sight,
        id: HandoffId,
        asked: Complete,
    ) -> Result<CompleteRequest, Error> {
        asked::check_follow_ups(&asked)?;
        self.may_report_in(sight, id)?;
        let task = sight.handoff(id).map(|handoff| handoff.task_id);
        let project = task.and_then(|task| self.project_in(sight, task));
        let follow_ups = asked.follow_ups.into_iter().map(|hop| self.hop(hop, project));
        let follow_ups = follow_ups.collect::<Result<_, _>>()?;
        let by = self.holder(asked.signed.clone());
        let asked = Complete { follow_ups, ..asked };
        let mut complete = CompleteRequest { by, ..asked::complete(id, asked, self.terms()) };
        for hop in &mut complete.follow_ups {
            hop.instructs = self.instructs(&hop.to, project);
        }
        Ok(complete)
    }

    /// Completes handoffs, each on its own. All of them are looked at once.
    pub async fn complete(
        &self,
        many: Vec<(HandoffId, Complete)>,
    ) -> Result<Vec<Result<Arc<Handoff>, Error>>, Error> {
        let each = many.iter().map(|(id, asked)| (*id, !asked.follow_ups.is_empty()));
        let sight = self.engine.look(completed(each)).await?;
        let mut checked = Vec::with_capacity(many.len());
        for (id, asked) in many {
            checked.push(match self.completion(&sight, id, asked) {
                Ok(new) => self.may_await(&new.follow_ups).await.map(|()| new),
                Err(error) => Err(error),
            });
        }
        let (good, slots) = part(checked);
        let mut answers = self.engine.complete_in(&sight, good).await?.into_iter();
        Ok(slots.into_iter().map(|slot| fill(slot, &mut answers)).collect())
    }

    pub async fn fail(&self, id: HandoffId, asked: Fail) -> Result<Arc<Handoff>, Error> {
        self.may_report(id).await?;
        let by = self.holder(asked.signed.clone());
        self.engine.fail(FailRequest { by, ..asked::fail(id, asked) }).await
    }

    pub async fn release(&self, id: HandoffId, proof: Proof) -> Result<Arc<Handoff>, Error> {
        self.may_report(id).await?;
        self.engine.release(id, proof, self.holder(None)).await
    }

    pub async fn decline(
        &self,
        id: HandoffId,
        agent: &AgentId,
        proof: Option<Proof>,
        reason: Option<String>,
    ) -> Result<Arc<Handoff>, Error> {
        let agent = self.caller.speaks_for(agent)?;
        self.caller.must(Permission::Claim, Some(agent.name()))?;
        self.engine.decline(id, agent, proof, self.holder(None), reason).await
    }

    pub async fn counter(&self, wish: CounterRequest) -> Result<Arc<Handoff>, Error> {
        let (agent, capabilities) = self.seeker(&wish.agent, &wish.capabilities)?;
        let capabilities = self.declared_too(&agent, capabilities).await?;
        self.engine.counter(CounterRequest { agent, capabilities, ..wish }).await
    }

    pub async fn settle_counter(
        &self,
        id: HandoffId,
        by: &AgentId,
        agent: &AgentId,
        accept: bool,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.caller.speaks_for(by)?;
        self.caller.must(Permission::Send, None)?;
        self.engine.settle_counter(id, by, self.caller.agent_named(agent), accept).await
    }

    pub async fn cancel(
        &self,
        id: HandoffId,
        by: &AgentId,
        reason: Option<String>,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.caller.speaks_for(by)?;
        self.caller.must(Permission::Send, None)?;
        self.engine.cancel(id, by, reason).await
    }

    pub async fn abort(
        &self,
        id: HandoffId,
        by: &AgentId,
        reason: Option<String>,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.caller.speaks_for(by)?;
        self.caller.must(Permission::Send, None)?;
        self.engine.abort(id, by, reason).await
    }

    pub async fn approve(&self, id: HandoffId, by: &AgentId) -> Result<Arc<Handoff>, Error> {
        let by = self.decides(Permission::Approve, id, by).await?;
        self.engine.approve(id, by).await
    }

    pub async fn reject(
        &self,
        id: HandoffId,
        by: &AgentId,
        reason: String,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.decides(Permission::Approve, id, by).await?;
        self.engine.reject(id, by, reason).await
    }

    /// Ends a task with a result, as its owner.
    pub async fn complete_task(&self, id: TaskId, asked: CompleteTask) -> Result<Arc<Task>, Error> {
        let by = self.caller.speaks_for(&asked.by)?;
        self.caller.must(Permission::Send, None)?;
        let CompleteTask { payload, metadata, below, .. } = asked;
        self.engine.complete_task(id, by, payload, metadata, below).await
    }

    pub async fn redrive(
        &self,
        id: HandoffId,
        by: &AgentId,
        expires_in_ms: Option<u64>,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.decides(Permission::Redrive, id, by).await?;
        self.engine.redrive(id, by, None, expires_in_ms).await
    }

    pub async fn discard(
        &self,
        id: HandoffId,
        by: &AgentId,
        reason: String,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.decides(Permission::Redrive, id, by).await?;
        self.engine.discard(id, by, reason).await
    }

    /// Who decides about a handoff from outside needs leave for the handoff's target.
    pub(crate) async fn decides(
        &self,
        permission: Permission,
        id: HandoffId,
        by: &AgentId,
    ) -> Result<AgentId, Error> {
        let by = self.caller.speaks_for(by)?;
        if let Caller::Known(_) = self.caller {
            let sight = self.engine.look(Needs::handoff(id)).await?;
            let handoff = handoff_in(&sight, id)?;
            // Whoever was named for it may do what it was named for, and nothing else.
            let task = sight.task_of(handoff);
            let coordinates = task.is_some_and(|task| task.coordinator.as_ref() == Some(&by));
            let named = match permission {
                // Where approvers were named, it is them and nobody else who happens to coordinate;
                // and nobody releases what it sends or receives itself.
                Permission::Approve if handoff.contract.approvers.is_empty() => {
                    let receives =
                        matches!(&handoff.to, tasuki_core::Target::Agent(to) if *to == by);
                    coordinates && handoff.from != by && !receives
                }
                Permission::Approve => handoff.contract.approvers.contains(&by),
                Permission::Redrive => coordinates,
                Permission::Send
                | Permission::Claim
                | Permission::Complete
                | Permission::Read
                | Permission::WriteMemory
                | Permission::WriteSharedContext
                | Permission::Operate
                | Permission::Administer => false,
            };
            let allowed = named || self.caller.may(permission, Some(handoff.to.name()));
            let seen = allowed || self.handoff_in(&sight, id).is_ok();
            if handoff.from.tenant() != by.tenant() || !seen {
                return Err(Refusal::HandoffNotFound(id).into());
            }
            if !named {
                self.caller.must(permission, Some(handoff.to.name()))?;
            }
        }
        Ok(by)
    }
}

/// Sets aside what was refused, and remembers its place.
fn part<T>(checked: Vec<Result<T, Error>>) -> (Vec<T>, Vec<Option<Error>>) {
    let mut good = Vec::with_capacity(checked.len());
    let mut slots = Vec::with_capacity(checked.len());
    for one in checked {
        match one {
            Ok(one) => {
                good.push(one);
                slots.push(None);
            }
            Err(error) => slots.push(Some(error)),
        }
    }
    (good, slots)
}

fn fill<T>(
    slot: Option<Error>,
    answers: &mut impl Iterator<Item = Result<T, Error>>,
) -> Result<T, Error> {
    match slot {
        Some(error) => Err(error),
        None => answers.next().unwrap_or(Err(Error::Store(tasuki_store::Error::Unknown))),
    }
}
