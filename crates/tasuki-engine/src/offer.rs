// SPDX-License-Identifier: Apache-2.0
//! Making envelopes. For a task that is there already, the intent and the link to the envelope
//! before come from the store; the store's transaction checks that they still hold.

use std::sync::Arc;

use tasuki_core::budget::Budget;
use tasuki_core::canonical::Object;
use tasuki_core::commands::{Command, Offer, OfferTask};
use tasuki_core::contract::Contract;
use tasuki_core::envelope::inherit::{Hand, Inherited, inherit, still_holds};
use tasuki_core::envelope::parts::Gap;
use tasuki_core::envelope::project::ProjectRules;
use tasuki_core::envelope::{Control, Envelope, VERSION, authored, path};
use tasuki_core::event::{BranchOf, TaintPolicy};
use tasuki_core::handoff::PRIORITY_DEFAULT;
use tasuki_core::identity::statement;
use tasuki_core::ids::{CorrelationId, IdempotencyKey, Project};
use tasuki_core::join::Member;
use tasuki_core::registry::Standing;
use tasuki_core::report::Intent;
use tasuki_core::trace::Context;
use tasuki_core::tree::OnParentEnd;
use tasuki_core::trust::{self, Ceiling};
use tasuki_core::{
    AgentId, Handoff, HandoffId, Hash, Refusal, Target, Task, TaskId, TaskState, Timestamp,
};

use tasuki_store::{HandoffFilter, Needs, PAGE_MAX, Sight};

use crate::directory::Listed;
use crate::engine::{Engine, check_intent};
use crate::error::{Error, invalid};
use crate::keys;
use crate::requests::{Coordinator, FollowUp, NewOffer, Offered};
use crate::trace_context::{self, Made};

/// How often an offer is made anew when its task moved on meanwhile.
const TRIES_MAX: usize = 3;

/// Where in a chain an envelope stands.
pub(crate) struct Place {
    pub(crate) task: OfferTask,
    pub(crate) from: AgentId,
    pub(crate) intent: Arc<str>,
    pub(crate) correlation_id: Option<CorrelationId>,
    pub(crate) parent: Option<TaskId>,
    pub(crate) previous: Option<Hash>,
    pub(crate) hop: u32,
    /// The envelope before this one, and who decides about the task.
    pub(crate) before: Option<Before>,
    pub(crate) coordinator: AgentId,
    /// Whose words they are, if not the sender's: a reviewer's.
    pub(crate) author: Option<AgentId>,
    /// The tasks above the one that it moves or is opened below, and what these allow to be spent.
    pub(crate) above: Vec<TaskId>,
    pub(crate) left: Option<Budget>,
    /// When it must be finished at the latest, by what it hangs from.
    pub(crate) limit: Option<Timestamp>,
    /// What the task is built on that no longer holds.
    pub(crate) taints: Vec<(HandoffId, TaintPolicy)>,
    /// What binds it because of its project.
    pub(crate) project: Option<Arc<ProjectRules>>,
}

/// The envelope that a new one follows.
#[derive(Clone)]
pub(crate) struct Before {
    pub(crate) handoff: HandoffId,
    /// As it was, but for constraints that were lifted since.
    pub(crate) envelope: Arc<Envelope>,
    pub(crate) lifted_since: Vec<Hash>,
}

/// A handoff that is about to end, as somebody saw it: with its task and, where it matters, its
/// envelope.
pub(crate) struct Ending<'s> {
    pub(crate) handoff: &'s Arc<Handoff>,
    pub(crate) task: &'s Arc<Task>,
    pub(crate) envelope: Option<Arc<Envelope>>,
}

/// What the offers that follow a handoff are made from, the same for all of them.
pub(crate) struct Onward<'s> {
    handoff: &'s Arc<Handoff>,
    task: &'s Arc<Task>,
    intent: Arc<str>,
    before: Option<Before>,
}

impl Onward<'_> {
    /// The offers that follow from a completion.
    pub(crate) async fn follow_ups(
        &self,
        engine: &Engine,
        hops: Vec<FollowUp>,
    ) -> Result<Vec<Offer>, Error> {
        let Self { handoff, task, intent, before } = self;
        let holder = holder(handoff);
        let left = engine.left_of(task).await?;
        let project = engine.rules_of(holder.tenant(), task.project.as_ref()).await?;
        let mut offers = Vec::with_capacity(hops.len());
        for hop in hops {
            let place = Place {
                task: OfferTask::Existing(task.id),
                from: holder.clone(),
                intent: intent.clone(),
                correlation_id: task.correlation_id.clone(),
                parent: task.parent_task_id,
                previous: Some(handoff.envelope),
                hop: handoff.hop + 1,
                before: before.clone(),
                coordinator: task.decider().clone(),
                author: None,
                above: task.above().to_vec(),
                left,
                limit: Some(handoff.expires_at),
                taints: task.taints.clone(),
                project: project.clone(),
            };
            let place = match hop.control {
                Control::Passed => place,
                Control::Awaited => engine.below(task, place, hop.on_parent_end),
            };
            offers.push(engine.make_offer(place, hop, None).await?);
        }
        Ok(offers)
    }
}

impl Engine {
    pub async fn offer(&self, new: NewOffer) -> Result<Offered, Error> {
        let sight = self.look_for(new.task_id).await?;
        self.offer_in(sight, new).await
    }

    /// The same, by a look that was taken already.
    pub(crate) async fn offer_in(&self, sight: Sight, mut new: NewOffer) -> Result<Offered, Error> {
        let offered = self.try_offer(sight, &new).await;
        let Err(error) = &offered else { return offered };
        let Some(key) = keys::formerly(new.key.as_ref(), &new, error) else { return offered };
        new.key = Some(key);
        self.try_offer(self.look_for(new.task_id).await?, &new).await
    }

    async fn try_offer(&self, mut sight: Sight, new: &NewOffer) -> Result<Offered, Error> {
        let mut last = None;
        for _ in 0..TRIES_MAX {
            if last.is_some() {
                sight = self.look_for(new.task_id).await?;
            }
            let command = self.offer_command(&sight, new).await?;
            match self.one(command).await {
                Ok(done) => {
                    // Who hands on what was a dead letter has decided about what is below it.
                    let dead = |id| sight.task(id).filter(|t| t.state == TaskState::DeadLettered);
                    if let Some(task) = new.task_id.and_then(dead) {
                        self.settle_tree(task.id).await;
                    }
                    let repeated = done.outcome.repeated;
                    let handoff = done.handoffs.into_iter().next();
                    let handoff = handoff.ok_or(Error::Store(tasuki_store::Error::Unknown))?;
                    return Ok(self.offered(handoff, repeated));
                }
                Err(Error::Refused(Refusal::TaskMoved(task))) => last = Some(task),
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(Refusal::TaskMoved(last.unwrap_or(TaskId::STORE))))
    }

    /// What offers must see: the tasks that they hand on, with what is under way for them.
    pub(crate) async fn look_for(
        &self,
        tasks: impl IntoIterator<Item = TaskId>,
    ) -> Result<Sight, Error> {
        let tasks: Vec<_> = tasks.into_iter().collect();
        if tasks.is_empty() {
            return Ok(Sight::default());
        }
        self.look(Needs::default().and_tasks(tasks).with_envelopes()).await
    }

    /// Offers many, each on its own, all with one commit.
    pub async fn offer_many(
        &self,
        many: Vec<NewOffer>,
    ) -> Result<Vec<Result<Offered, Error>>, Error> {
        let sight = self.look_for(many.iter().filter_map(|new| new.task_id)).await?;
        self.offer_many_in(&sight, many).await
    }

    pub(crate) async fn offer_many_in(
        &self,
        sight: &Sight,
        many: Vec<NewOffer>,
    ) -> Result<Vec<Result<Offered, Error>>, Error> {
        let mut commands = Vec::with_capacity(many.len());
        let mut slots = Vec::with_capacity(many.len());
        for new in &many {
            match self.offer_command(sight, new).await {
                Ok(command) => {
                    commands.push(command);
                    slots.push(None);
                }
                Err(error) => slots.push(Some(error)),
            }
        }
        let mut replies = self.execute(commands).await?.into_iter();
        let answers = slots.into_iter().map(|error| {
            if let Some(error) = error {
                return Err(error);
            }
            let done = replies.next().unwrap_or(Err(tasuki_store::Error::Unknown))?;
            let handoff = done.handoffs.into_iter().next();
            let handoff = handoff.ok_or(Error::Store(tasuki_store::Error::Unknown))?;
            Ok(self.offered(handoff, done.outcome.repeated))
        });
        let mut answers: Vec<_> = answers.collect();
        for (answer, mut new) in answers.iter_mut().zip(many) {
            let Err(error) = answer else { continue };
            if let Some(key) = keys::formerly(new.key.as_ref(), &new, error) {
                new.key = Some(key);
                let sight = self.look_for(new.task_id).await?;
                *answer = self.try_offer(sight, &new).await;
            }
        }
        Ok(answers)
    }

    pub(crate) fn offered(&self, handoff: Arc<Handoff>, repeated: bool) -> Offered {
        let now = self.now();
        let listening = self.presence.is_live(&handoff.to, now);
        let pause = self.registry().pause_of(&handoff.to, now).cloned();
        Offered { handoff, listening, pause, repeated, warnings: Vec::new() }
    }

    async fn offer_command(&self, sight: &Sight, new: &NewOffer) -> Result<Command, Error> {
        let key = new.key.clone();
        let idempotency_key = key.as_ref().map(|key| key.key.clone());
        let place = match new.task_id {
            None => self.new_chain(new).await?,
            Some(id) => self.next_in_chain(sight, new, id).await?,
        };
        let offer = self.make_offer(place, new.hop.clone(), idempotency_key).await?;
        Ok(Command::offer(offer).with_key(key))
    }

    async fn new_chain(&self, new: &NewOffer) -> Result<Place, Error> {
        let Some(intent) = new.intent.as_deref() else {
            return Err(invalid("intent", "a new task needs the user's own words"));
        };
        check_intent(intent)?;
        let coordinator = self.coordinator(&new.from, new.coordinator.as_ref()).await?;
        Ok(Place {
            task: OfferTask::New {
                task: self.ids.task(),
                intent: Intent::address(intent),
                correlation_id: new.correlation_id.clone(),
                parent: None,
                coordinator: coordinator.clone(),
                project: new.project.clone(),
                branch_of: None,
                on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
            },
            from: new.from.clone(),
            intent: intent.into(),
            correlation_id: new.correlation_id.clone(),
            parent: None,
            previous: None,
            hop: 0,
            before: None,
            coordinator: coordinator.unwrap_or_else(|| new.from.clone()),
            author: None,
            above: Vec::new(),
            left: None,
            limit: None,
            taints: Vec::new(),
            project: self.rules_of(new.from.tenant(), new.project.as_ref()).await?,
        })
    }

    async fn next_in_chain(
        &self,
        sight: &Sight,
        new: &NewOffer,
        id: TaskId,
    ) -> Result<Place, Error> {
        let task = sight.task(id).filter(|task| task.owner.tenant() == new.from.tenant());
        let task = task.ok_or(Refusal::TaskNotFound(id))?;
        if let Some(given) = &new.intent {
            task.keeps_intent(given)?;
        }
        same_project(task, new.project.as_ref())?;
        let (previous, hop) = match task.envelope {
            Some((hash, hop)) => (Some(hash), hop + 1),
            None => (None, 0),
        };
        let before = self.last_envelope(sight, task).await?;
        let intent = self.intent_before(task, before.as_ref()).await?;
        let place = Place {
            task: OfferTask::Existing(id),
            from: new.from.clone(),
            intent,
            correlation_id: new.correlation_id.clone().or_else(|| task.correlation_id.clone()),
            parent: task.parent_task_id,
            previous,
            hop,
            before,
            coordinator: task.decider().clone(),
            author: None,
            above: task.above().to_vec(),
            left: self.left_of(task).await?,
            limit: task.tree.deadline,
            taints: task.taints.clone(),
            project: self.rules_of(new.from.tenant(), task.project.as_ref()).await?,
        };
        Ok(match new.hop.control {
            Control::Passed => place,
            Control::Awaited => {
                let live = sight.under_way(task);
                let limit = live.map(|live| live.expires_at).or(task.tree.deadline);
                self.below(task, Place { limit, ..place }, new.hop.on_parent_end)
            }
        })
    }

    /// What a task below another belongs to. A task never changes its project, so it need not be
    /// looked at again when the command is carried out.
    pub(crate) async fn project_below(
        &self,
        parent: TaskId,
        by: &AgentId,
        given: Option<Project>,
    ) -> Result<Option<Project>, Error> {
        in_project(&*self.parent(parent, by).await?, given)
    }

    /// The task that another one is to be opened below.
    pub(crate) async fn parent(&self, id: TaskId, by: &AgentId) -> Result<Arc<Task>, Error> {
        let sight = self.look(Needs::task(id)).await?;
        let task = sight.task(id).filter(|task| task.owner.tenant() == by.tenant());
        Ok(task.ok_or(Refusal::TaskNotFound(id))?.clone())
    }

    /// A call is a task of its own below the caller's, so that each has one owner.
    fn below(&self, parent: &Task, place: Place, on_parent_end: Option<OnParentEnd>) -> Place {
        let task = OfferTask::New {
            task: self.ids.task(),
            intent: parent.intent,
            correlation_id: place.correlation_id.clone(),
            parent: Some(parent.id),
            coordinator: parent.coordinator.clone(),
            project: parent.project.clone(),
            branch_of: None,
            on_parent_end: on_parent_end.unwrap_or_default(),
        };
        Place { task, parent: Some(parent.id), ..place }
    }

    /// The first offer of a task that begins anew from a hop of another.
    #[allow(clippy::too_many_arguments, reason = "each is a part of where it comes from")]
    pub(crate) async fn branch_offer(
        &self,
        origin: &Task,
        from: AgentId,
        intent: Arc<str>,
        before: &Handoff,
        branch_of: BranchOf,
        hop: FollowUp,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<Offer, Error> {
        let correlation_id = origin.correlation_id.clone();
        let project = self.rules_of(from.tenant(), origin.project.as_ref()).await?;
        let task = OfferTask::New {
            task: self.ids.task(),
            intent: origin.intent,
            correlation_id: correlation_id.clone(),
            parent: None,
            project: origin.project.clone(),
            branch_of: Some(branch_of),
            coordinator: origin.coordinator.clone(),
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        };
        let place = Place {
            task,
            coordinator: origin.coordinator.clone().unwrap_or_else(|| from.clone()),
            from,
            intent,
            correlation_id,
            parent: None,
            previous: None,
            hop: 0,
            before: match self.envelope_at(before.envelope_pos).await? {
                Some(envelope) => Some(self.before(before, envelope).await?),
                None => None,
            },
            author: None,
            above: Vec::new(),
            left: None,
            limit: None,
            taints: Vec::new(),
            project,
        };
        // It comes to where it has been before because somebody wants it to.
        let offer = self.make_offer(place, hop, idempotency_key).await?;
        Ok(Offer { dead_end: None, ..offer })
    }

    pub(crate) async fn onward<'s>(&self, from: Ending<'s>) -> Result<Onward<'s>, Error> {
        let Ending { handoff, task, envelope } = from;
        let before = match envelope {
            Some(envelope) => Some(self.before(handoff, envelope).await?),
            None => None,
        };
        let intent = self.intent_before(task, before.as_ref()).await?;
        Ok(Onward { handoff, task, intent, before })
    }

    /// The user's own words: every envelope has them.
    pub(crate) async fn intent_before(
        &self,
        task: &Task,
        before: Option<&Before>,
    ) -> Result<Arc<str>, Error> {
        match before {
            Some(before) => Ok(before.envelope.intent.as_str().into()),
            None => self.intent_of(task).await,
        }
    }

    pub(crate) async fn intent_of(&self, task: &Task) -> Result<Arc<str>, Error> {
        let sight = self.look(Needs::default().and_bodies([task.intent_pos])).await?;
        let body = sight.intent(task);
        let intent: Option<Intent> = body.and_then(|body| serde_json::from_str(body.text()).ok());
        let lost = || invalid("task_id", "the user's own words were erased, so nothing can follow");
        Ok(intent.ok_or_else(lost)?.intent.into())
    }

    pub(crate) async fn make_offer(
        &self,
        place: Place,
        mut hop: FollowUp,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<Offer, Error> {
        let now = self.store.clock().now();
        // What binds the task was in there.
        if place.previous.is_some() && place.before.is_none() {
            let problem = "the envelope before was erased, so nothing can follow it";
            return Err(invalid("task_id", problem));
        }
        let Inherited { parts, mut lifts, .. } = inherited(&place, &mut hop, now)?;
        let after = place.before.as_ref().map(|before| before.handoff);
        lifts.extend(place.before.iter().flat_map(|before| &before.lifted_since));
        let expires_at = self.expiry(now, &hop)?;
        let expires_at = place.limit.map_or(expires_at, |limit| limit.min(expires_at));
        let mut settled = self.settle(&place.from, &hop, &parts).await?;
        settled.contract.agreement.has_gaps = !parts.gaps.is_empty();
        check_trust(&hop, &place)?;
        if let Some(signed) = &hop.signed {
            let said = authored(
                &place.from,
                &hop.to,
                hop.action,
                hop.control,
                &place.intent,
                &hop.payload,
            );
            self.check_signature(&place.from, signed, &statement::envelope(said))?;
        }
        let before = place.before.as_ref().map(|before| &*before.envelope);
        let path = path::so_far(before);
        let hops_max = self.settings.hops_max;
        let dead_end =
            path::dead_end(&path, place.hop, &place.from, &settled.to, &hop.payload, hops_max);
        let tainted = place.parent.filter(|_| matches!(place.task, OfferTask::New { .. }));
        let tainted = tainted.unwrap_or_else(|| place.task.id());
        let taints = path::taints(before, tainted, &place.taints);
        let correlated = place.correlation_id.clone();
        let handoff = self.ids.handoff();
        let root = place.above.last().copied().unwrap_or_else(|| place.task.id());
        let made = Made { before: before.map(|before| &before.metadata), root, handoff };
        trace_context::put(&mut hop.metadata, &made, self.settings.tracing);
        let trace = Context::of(&hop.metadata);
        let envelope = Envelope {
            envelope_version: VERSION.into(),
            task_id: place.task.id(),
            correlation_id: place.correlation_id,
            parent_task_id: place.parent,
            hop: place.hop,
            previous: place.previous,
            from_agent: place.from.clone(),
            to: settled.to.clone(),
            asked_to: (settled.to != hop.to).then(|| hop.to.clone()),
            action: hop.action,
            control: hop.control,
            idempotency_key,
            deadline: (hop.deadline.is_some()
                || hop.expires_in_ms.is_some()
                || before.is_some_and(|before| before.deadline.is_some()))
            .then_some(expires_at),
            budget: match (place.left, settled.contract.budget) {
                (Some(left), Some(given)) => Some(left.within(given)),
                (left, given) => left.or(given),
            },
            intent: place.intent.to_string(),
            parts,
            payload: hop.payload,
            path,
            taints,
            after: hop.after.clone(),
            metadata: hop.metadata,
            created_at: now,
            signed: hop.signed,
            more: carried(place.before.as_ref(), hop.more),
        };
        let answered_by = match hop.control {
            Control::Awaited => self.answered_by(&settled.to).await?,
            Control::Passed => Vec::new(),
        };
        Ok(Offer {
            handoff,
            task: place.task,
            from: place.from,
            to: settled.to,
            control: hop.control,
            envelope: envelope.body(),
            after,
            hop: place.hop,
            previous: place.previous,
            priority: hop.priority.unwrap_or(PRIORITY_DEFAULT),
            terms: settled.terms,
            contract: Contract { correlation_id: correlated, trace, ..settled.contract },
            lifted: lifts,
            expires_at,
            not_before: hop
                .start_in_ms
                .map(|ms| now.plus_ms(ms))
                // What waits for others until then waits no longer than there is time.
                .filter(|start| hop.after.is_none() || *start < expires_at),
            needs_approval: hop.needs_approval,
            ordering_key: hop.ordering_key,
            above: place.above,
            dead_end,
            answered_by,
        })
    }

    /// Those who could answer a call, if each of them does one thing at a time. Nobody where somebody
    /// else might: one of them that does more, or one that asks for such work at this moment.
    async fn answered_by(&self, to: &Target) -> Result<Vec<AgentId>, Error> {
        let capability = match to {
            Target::Agent(agent) => {
                let one = self.works_on_one(agent).await?;
                return Ok(one.then(|| agent.clone()).into_iter().collect());
            }
            Target::Capability(capability) => capability,
        };
        if self.presence.is_waiting(to) {
            return Ok(Vec::new());
        }
        let listing = self.listing().await?;
        let able = listing.able(capability).iter();
        let able: Vec<_> = able.filter(|it| it.agent.standing == Standing::Active).collect();
        let one = |listed: &&Arc<Listed>| listed.manifest.concurrency.is_none_or(|most| most <= 1);
        Ok(match able.iter().all(one) {
            true => able.iter().map(|listed| listed.agent.id.clone()).collect(),
            false => Vec::new(),
        })
    }

    /// Whether an agent does one thing at a time, as far as it says.
    pub(crate) async fn works_on_one(&self, agent: &AgentId) -> Result<bool, Error> {
        let listing = self.listing().await?;
        let said = listing.agents.get(agent).and_then(|listed| listed.manifest.concurrency);
        Ok(said.is_none_or(|most| most <= 1))
    }

    /// The agent that decides about a task, where the sender names one or its role.
    pub(crate) async fn coordinator(
        &self,
        from: &AgentId,
        wanted: Option<&Coordinator>,
    ) -> Result<Option<AgentId>, Error> {
        let role = match wanted {
            None => return Ok(None),
            Some(Coordinator::Agent(agent)) if agent.tenant() != from.tenant() => {
                return Err(Refusal::OtherTenant.into());
            }
            Some(Coordinator::Agent(agent)) => return Ok(Some(agent.clone())),
            Some(Coordinator::Role(role)) => role,
        };
        let listing = self.listing().await?;
        let now = self.now();
        let has_role = |listed: &&Arc<Listed>| {
            listed.agent.id.tenant() == from.tenant()
                && listed.agent.standing == Standing::Active
                && listed.manifest.role.as_deref() == Some(role)
        };
        let live = |listed: &&Arc<Listed>| {
            self.presence.is_live(&Target::Agent(listed.agent.id.clone()), now)
        };
        let mut able = listing.agents.values().filter(has_role).peekable();
        let first = able.peek().map(|listed| listed.agent.id.clone());
        let found = able.find(live).map(|listed| listed.agent.id.clone()).or(first);
        match found {
            Some(agent) => Ok(Some(agent)),
            None => Err(invalid("coordinator", format!("no agent has the role {role:?}"))),
        }
    }

    /// The envelope that a new one follows, if there is one. Whether it still is the last one, the
    /// command finds out.
    pub(crate) async fn last_envelope(
        &self,
        sight: &Sight,
        task: &Task,
    ) -> Result<Option<Before>, Error> {
        let Some(last) = self.last_handoff(sight, task).await? else { return Ok(None) };
        match self.envelope_of(sight, &last).await? {
            Some(envelope) => Ok(Some(self.before(&last, envelope).await?)),
            None => Ok(None),
        }
    }

    /// The last handoff with an envelope of a task.
    pub(crate) async fn last_handoff(
        &self,
        sight: &Sight,
        task: &Task,
    ) -> Result<Option<Arc<Handoff>>, Error> {
        let Some((hash, _)) = task.envelope else { return Ok(None) };
        let under_way = sight.under_way(task).filter(|live| live.envelope == hash);
        if let Some(under_way) = under_way {
            return Ok(Some(under_way.clone()));
        }
        if let Some(id) = task.last {
            let last = self.look(Needs::handoff(id)).await?.handoff(id).cloned();
            return Ok(last.filter(|last| last.envelope == hash));
        }
        // A task from before its last handoff was noted.
        let filter =
            HandoffFilter { task: Some(task.id), max: PAGE_MAX, ..HandoffFilter::default() };
        let handoffs = self.store.list_handoffs(filter).await?;
        Ok(handoffs.into_iter().find(|handoff| handoff.envelope == hash))
    }

    /// A handoff's envelope, without the constraints that were lifted since.
    pub(crate) async fn before(
        &self,
        handoff: &Handoff,
        mut envelope: Arc<Envelope>,
    ) -> Result<Before, Error> {
        let since = self.lifted_since(handoff).await?;
        if !since.is_empty() {
            let whole = Arc::make_mut(&mut envelope);
            let parts = std::mem::take(&mut whole.parts);
            whole.parts = still_holds(parts, &since, handoff.hop + 1);
        }
        // What it waited for and did not get is missing for those who build on it, too.
        for (reference, reason) in handoff.joined().iter().filter_map(Member::gap) {
            let whole = Arc::make_mut(&mut envelope);
            if !whole.parts.gaps.iter().any(|gap| gap.reference == reference) {
                let (by, hop) = (handoff.from.clone(), handoff.hop);
                whole.parts.gaps.push(Gap { reference, reason: Some(reason), by, hop });
            }
        }
        let lifted_since = since.iter().map(|lift| lift.id).collect();
        Ok(Before { handoff: handoff.id, envelope, lifted_since })
    }

    fn expiry(&self, now: Timestamp, hop: &FollowUp) -> Result<Timestamp, Error> {
        if hop.expires_in_ms == Some(0) {
            return Err(invalid("expires_in_ms", "expected at least 1"));
        }
        let by_span = hop.expires_in_ms.map(|ms| now.plus_ms(ms));
        Ok(match (hop.deadline, by_span) {
            (Some(deadline), Some(span)) => deadline.min(span),
            (Some(time), None) | (None, Some(time)) => time,
            (None, None) => now.plus_ms(self.settings.expires_in_ms),
        })
    }
}

/// What a task below another belongs to.
pub(crate) fn in_project(parent: &Task, given: Option<Project>) -> Result<Option<Project>, Error> {
    if parent.project.is_some() {
        same_project(parent, given.as_ref())?;
        return Ok(parent.project.clone());
    }
    Ok(given)
}

/// What belongs to one project is not handed on into another.
fn same_project(task: &Task, given: Option<&Project>) -> Result<(), Error> {
    match given {
        Some(given) if task.project.as_ref() != Some(given) => {
            let where_ = task
                .project
                .as_ref()
                .map_or("no project".to_owned(), |project| format!("project {project}"));
            Err(invalid("project", format!("is {given}, and task {} is in {where_}", task.id)))
        }
        _ => Ok(()),
    }
}

/// Who holds a handoff, or held it last; the decision itself checks that the claim still holds.
fn holder(handoff: &Handoff) -> AgentId {
    let held = handoff.state.claim().map(|claim| claim.agent.clone());
    held.or_else(|| handoff.attempts.last().map(|attempt| attempt.agent.clone()))
        .unwrap_or_else(|| handoff.from.clone())
}

/// What the hop carries, by the rules of inheritance. What its constraints say about terms becomes
/// the hop's.
fn inherited(place: &Place, hop: &mut FollowUp, now: Timestamp) -> Result<Inherited, Error> {
    if let Some(schema) = hop.output_schema.take() {
        let expected = hop.said.expected_output.get_or_insert_default();
        if expected.schema.as_ref().is_some_and(|other| *other != schema) {
            return Err(invalid("output_schema", "is another than expected_output.schema"));
        }
        expected.schema = Some(schema);
    }
    let hand = Hand {
        from: place.author.as_ref().unwrap_or(&place.from),
        coordinator: Some(&place.coordinator),
        hop: place.hop,
        now,
        project: place.project.as_deref(),
    };
    let before = place.before.as_ref().map(|before| &before.envelope.parts);
    let inherited = inherit(before, &hop.said, hand).map_err(Error::Envelope)?;
    hop.budget_tokens = hop.budget_tokens.or(inherited.budget_tokens);
    hop.deadline = match (hop.deadline, inherited.deadline) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    Ok(inherited)
}

/// Members that are not known here go on from hop to hop, and a hop may say its own.
fn carried(before: Option<&Before>, own: Object) -> Object {
    let mut more = before.map(|before| before.envelope.more.clone()).unwrap_or_default();
    more.0.extend(own.0);
    more
}

/// What the parts of a payload claim about themselves must be so.
fn check_trust(hop: &FollowUp, place: &Place) -> Result<(), Error> {
    let parts = trust::parts(&hop.payload).map_err(Error::Trust)?;
    if parts.is_empty() {
        return Ok(());
    }
    // Only the first envelope of a chain is by the one who gives the task.
    let ceiling = match (hop.instructs, place.hop) {
        (false, _) => Ceiling::DATA,
        (true, 0) => Ceiling::OPERATOR,
        (true, _) => Ceiling::AGENT,
    };
    let before = place.before.as_ref();
    let before = before.and_then(|before| trust::parts(&before.envelope.payload).ok());
    trust::check(&parts, &before.unwrap_or_default(), ceiling).map_err(Error::Trust)
}
