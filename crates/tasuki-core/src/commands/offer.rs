// SPDX-License-Identifier: Apache-2.0
//! Opening tasks and offering them to a receiver.

use std::collections::BTreeSet;

use super::escalate::{self, Admitted};
use super::{Case, Changes, Footprint, Stated, lifts, review};
use crate::canonical::Body;
use crate::contract::{AFTER_MAX, APPROVERS_MAX, Contract, FALLBACKS_MAX};
use crate::decide::{Decision, NewEvent, Outcome};
use crate::envelope::{Control, Target};
use crate::event::{Actor, BranchOf, Closed, DeadReason, Event, Key, Offered, Opened};
use crate::handoff::{Handoff, PRIORITY_MAX};
use crate::ids::{
    AgentId, ChannelId, CorrelationId, HandoffId, Hash, OrderingKey, Project, TaskId, Timestamp,
};
use crate::quota;
use crate::refusal::Refusal;
use crate::task::Task;
use crate::terms::Terms;
use crate::tree::{Follows, Hangs, OnParentEnd};

/// Opens a task, which is then owned by the agent who wished for it.
#[derive(Debug, Clone)]
pub struct OpenTask {
    pub task: TaskId,
    /// A body with the member `intent`.
    pub intent: Body,
    pub correlation_id: Option<CorrelationId>,
    pub parent: Option<TaskId>,
    pub coordinator: Option<AgentId>,
    pub channel: Option<ChannelId>,
    pub project: Option<Project>,
    /// What becomes of it when its parent ends without it.
    pub on_parent_end: OnParentEnd,
}

/// Hands a task to a receiver, which owns it once it claims. In a command of its own, the sender is the agent who wishes for it.
#[derive(Debug, Clone)]
pub struct Offer {
    pub handoff: HandoffId,
    pub task: OfferTask,
    pub from: AgentId,
    pub to: Target,
    pub control: Control,
    pub envelope: Body,
    /// The handoff whose envelope this one follows. Lifts that came to it meanwhile must be in it.
    pub after: Option<HandoffId>,
    /// What the envelope says of itself; checked against the task.
    pub hop: u32,
    pub previous: Option<Hash>,
    pub priority: u8,
    pub terms: Terms,
    pub contract: Contract,
    /// Constraints that this hop lifts, and that were lifted since the envelope before.
    pub lifted: Vec<Hash>,
    pub expires_at: Timestamp,
    pub not_before: Option<Timestamp>,
    pub needs_approval: bool,
    pub ordering_key: Option<OrderingKey>,
    /// The tasks above the one that it moves or is opened below, the nearest first.
    pub above: Vec<TaskId>,
    /// Why it cannot go on from here, if it cannot: it is kept as a dead letter.
    pub dead_end: Option<DeadReason>,
    /// Of a call: those who could answer it, if each of them works on one thing at a time, so that
    /// none can answer while it waits for an answer itself. Nobody where others might.
    pub answered_by: Vec<AgentId>,
}

/// Which task an offer moves.
#[derive(Debug, Clone)]
pub enum OfferTask {
    /// One that is there already; its owner hands it on.
    Existing(TaskId),
    /// A new one, below its parent if it has one.
    New {
        task: TaskId,
        intent: Hash,
        correlation_id: Option<CorrelationId>,
        parent: Option<TaskId>,
        coordinator: Option<AgentId>,
        project: Option<Project>,
        branch_of: Option<BranchOf>,
        on_parent_end: OnParentEnd,
    },
}

impl OfferTask {
    #[must_use]
    pub fn id(&self) -> TaskId {
        match self {
            Self::Existing(task) | Self::New { task, .. } => *task,
        }
    }
}

/// Publishes to many: a task, and one below it for each receiver, in one step.
#[derive(Debug, Clone)]
pub struct Publish {
    pub open: OpenTask,
    pub offers: Vec<Offer>,
}

impl Stated for OpenTask {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            tasks: self.parent.as_slice(),
            opens: Some(self.task),
            brings_work: true,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let owner = case.agent();
        quota::check(case.view, owner.tenant(), 0, self.intent.text().len())?;
        let (mut hangs, mut follows) = (None, None);
        if let Some(parent) = self.parent {
            let parent = case.task(parent)?;
            owned(parent, owner)?;
            // As of a call: the user's own words, and the chain that it is part of.
            if parent.intent != self.intent.hash {
                return Err(Refusal::IntentAltered { task: parent.id });
            }
            let hop = under_way(parent, case);
            hangs = Some(Box::new(Hangs::below(parent, hop, self.on_parent_end)?));
            let last = parent.envelope.zip(parent.last);
            follows = last.map(|((envelope, hop), handoff)| Follows { envelope, hop, handoff });
        }
        let opened = Opened {
            owner: owner.clone(),
            intent: self.intent.hash,
            correlation_id: self.correlation_id.clone(),
            parent_task_id: self.parent,
            coordinator: self.coordinator.clone(),
            channel: self.channel.clone(),
            project: self.project.clone(),
            branch_of: None,
            hangs,
            follows,
            key: case.key.cloned(),
        };
        let event = NewEvent::on_task(self.task, case.actor(), Event::TaskOpened(opened));
        let events = vec![event.with(Some(self.intent.clone()))];
        Ok(Decision::of(events, Outcome::of_task(self.task)))
    }
}

impl Stated for Publish {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            others: awaited(&self.offers),
            offers: &self.offers,
            breakers: Changes::OfAny,
            ..self.open.footprint()
        }
    }

    /// Opens a task and offers one below it to each receiver: all of them or none.
    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (task, owner) = (self.open.task, case.agent());
        let mut decision = self.open.decide(case)?;
        let bytes = self.offers.iter().map(|offer| offer.envelope.text().len()).sum();
        quota::check(case.view, owner.tenant(), self.offers.len(), bytes)?;
        for offer in &self.offers {
            check_terms(offer, None, case.now)?;
            waits_for_known(offer, &[], case)?;
            let below = match &offer.task {
                OfferTask::New { parent, .. } => *parent == Some(task),
                OfferTask::Existing(_) => false,
            };
            if offer.from != *owner || !below {
                return Err(Refusal::InvalidFollowUps(
                    "a receiver gets a task below the one published",
                ));
            }
            // One receiver that is away must not keep the others from hearing it.
            let admitted = escalate::admit(offer, true, case)?;
            let hangs = Hangs { above: vec![task], ..Hangs::default() };
            let setting = Setting { hangs: Some(hangs), ..Setting::default() };
            decision.events.extend(offered(offer, admitted, setting, offer.dead_end, None));
        }
        // Nobody was there to be told, so nobody has to come to an end.
        if self.offers.is_empty() {
            let event = Event::TaskCompleted { result: None };
            decision.events.push(NewEvent::on_task(task, Actor::Broker, event));
        }
        let handoffs = self.offers.iter().map(|offer| offer.handoff).collect();
        decision.outcome = Ok(Outcome { handoffs, ..Outcome::of_task(task) });
        Ok(decision)
    }
}

impl Stated for Offer {
    fn footprint(&self) -> Footprint<'_> {
        let tasks = match &self.task {
            OfferTask::Existing(task) => std::slice::from_ref(task),
            OfferTask::New { parent, .. } => parent.as_slice(),
        };
        Footprint {
            tasks,
            others: {
                let mut others = awaited(std::slice::from_ref(self));
                others.extend(&self.above);
                others
            },
            handoffs: self.after.as_slice(),
            offers: std::slice::from_ref(self),
            breakers: Changes::OfAny,
            brings_work: true,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        quota::check(case.view, self.from.tenant(), 1, self.envelope.text().len())?;
        let mut closed = None;
        let mut setting = Setting::default();
        match &self.task {
            OfferTask::Existing(id) => {
                let task = case.task(*id)?;
                owned(task, &self.from)?;
                if let Some(handoff) = task.live {
                    return Err(Refusal::HandoffOpen { task: *id, handoff });
                }
                follows(self, task)?;
                may_spend(&self.above, Some(task), case)?;
                setting.blocked = task.is_blocked();
                setting.limit = task.tree.deadline;
                let above = self.above.iter().filter_map(|id| case.view.task(*id));
                waits_for_none_above(self, task.on_parent_end(), above)?;
                closed = review::closed(self.after, task, Closed::TaskOfferedAnew, case);
            }
            OfferTask::New { parent: Some(parent), on_parent_end, .. } => {
                let parent = case.task(*parent)?;
                owned(parent, &self.from)?;
                follows(self, parent)?;
                may_spend(&self.above, Some(parent), case)?;
                no_circle(self, parent, case)?;
                let above = self.above.iter().filter_map(|id| case.view.task(*id));
                waits_for_none_above(self, *on_parent_end, std::iter::once(parent).chain(above))?;
                let hangs = Hangs::below(parent, under_way(parent, case), *on_parent_end)?;
                setting.blocked = parent.is_blocked();
                setting.limit = hangs.deadline;
                setting.hangs = Some(hangs);
            }
            OfferTask::New { parent: None, .. } => {}
        }
        check_terms(self, setting.limit, case.now)?;
        waits_for_known(self, &[], case)?;
        lifts::knows_lifts(self, case.view)?;
        let admitted = escalate::admit(self, false, case)?;
        let outcome = Outcome { task: Some(self.task.id()), ..Outcome::of(self.handoff) };
        let mut events = offered(self, admitted, setting, self.dead_end, case.key);
        events.splice(0..0, closed);
        Ok(Decision::of(events, outcome))
    }
}

/// What holds for an offer because of what it hangs from.
#[derive(Debug, Default)]
pub(super) struct Setting {
    /// Whether that is built on something that no longer holds.
    pub(super) blocked: bool,
    /// When it must be finished at the latest.
    pub(super) limit: Option<Timestamp>,
    /// For a task that is opened by it.
    pub(super) hangs: Option<Hangs>,
}

/// The handoff of a task that is not at its end.
pub(super) fn under_way<'v>(task: &Task, case: &Case<'v>) -> Option<&'v Handoff> {
    task.live.and_then(|live| case.view.handoff(live))
}

/// Refuses another hop where a task, or one above it, has nothing left to spend.
pub(super) fn may_spend(
    above: &[TaskId],
    task: Option<&Task>,
    case: &Case<'_>,
) -> Result<(), Refusal> {
    let above = above.iter().filter_map(|id| case.view.task(*id));
    for task in task.into_iter().chain(above) {
        if let Some(left) = task.tree.left().filter(|left| left.is_exhausted()) {
            return Err(Refusal::BudgetExhausted { task: task.id, left });
        }
    }
    Ok(())
}

/// Refuses a call that nobody can answer: each of those who could waits, over calls above this one, for
/// the caller's own answer.
pub(super) fn no_circle(offer: &Offer, parent: &Task, case: &Case<'_>) -> Result<(), Refusal> {
    // Who asks itself knows whether it takes its own work while it waits.
    if offer.answered_by.is_empty() || offer.answered_by.contains(&offer.from) {
        return Ok(());
    }
    let above = offer.above.iter().filter_map(|id| case.view.task(*id));
    let mut free: BTreeSet<_> = offer.answered_by.iter().collect();
    // Each owner from the top down waits for the one after it.
    let mut path = vec![offer.from.clone()];
    for task in waiting(parent.on_parent_end(), above) {
        path.push(task.owner.clone());
        free.remove(&task.owner);
        if free.is_empty() {
            path.reverse();
            path.push(task.owner.clone());
            return Err(Refusal::Deadlock { path, task: task.id });
        }
    }
    Ok(())
}

/// Refuses work that waits for a task above it whose owner waits for this very work. `first` says
/// what becomes of the lowest task when the first of `above` ends.
pub(super) fn waits_for_none_above<'v>(
    offer: &Offer,
    first: OnParentEnd,
    above: impl Iterator<Item = &'v Task>,
) -> Result<(), Refusal> {
    let after = offer.contract.after.as_ref();
    let Some(after) = after.filter(|after| after.need as usize == after.tasks.len()) else {
        return Ok(());
    };
    let mut path = vec![offer.from.clone()];
    for task in waiting(first, above) {
        if path.last() != Some(&task.owner) {
            path.push(task.owner.clone());
        }
        if after.tasks.contains(&task.id) {
            path.reverse();
            if let Target::Agent(to) = &offer.to {
                path.push(to.clone());
            }
            path.push(task.owner.clone());
            return Err(Refusal::Deadlock { path, task: task.id });
        }
    }
    Ok(())
}

/// The tasks above something, the nearest first, as long as the owner of each waits for what is below.
fn waiting<'v>(
    mut below: OnParentEnd,
    above: impl Iterator<Item = &'v Task>,
) -> impl Iterator<Item = &'v Task> {
    above.take_while(move |task| {
        let waits = std::mem::replace(&mut below, task.on_parent_end()) == OnParentEnd::Cancel;
        waits && task.channel.is_none() && !task.state.is_terminal()
    })
}

/// The tasks that offers wait for.
pub(super) fn awaited(offers: &[Offer]) -> Vec<TaskId> {
    let after = offers.iter().filter_map(|offer| offer.contract.after.as_ref());
    after.flat_map(|after| &after.tasks).copied().collect()
}

/// What is waited for is there, and is the sender's own tenant's. `made` are tasks that the same
/// command opens.
pub(super) fn waits_for_known(
    offer: &Offer,
    made: &[TaskId],
    case: &Case<'_>,
) -> Result<(), Refusal> {
    let Some(after) = &offer.contract.after else { return Ok(()) };
    for id in after.tasks.iter().filter(|id| !made.contains(id)) {
        let known = case.view.task(*id).filter(|_| *id != TaskId::STORE);
        if known.is_none_or(|task| task.owner.tenant() != offer.from.tenant()) {
            return Err(Refusal::TaskNotFound(*id));
        }
        if *id == offer.task.id() {
            return Err(Refusal::InvalidTerms("after names the task itself".into()));
        }
    }
    Ok(())
}

/// The events that an admitted offer becomes: it waits, or it is a dead letter from the start.
pub(super) fn offered(
    offer: &Offer,
    admitted: Admitted,
    setting: Setting,
    dead_end: Option<DeadReason>,
    key: Option<&Key>,
) -> Vec<NewEvent> {
    let mut events = vec![offer_event(offer, admitted, setting, key, None)];
    events.extend(dead_end.map(|reason| NewEvent {
        handoff: Some(offer.handoff),
        ..NewEvent::on_task(offer.task.id(), Actor::Broker, Event::dead_letter(reason))
    }));
    events
}

pub(super) fn offer_event(
    offer: &Offer,
    admitted: Admitted,
    setting: Setting,
    key: Option<&Key>,
    amends: Option<HandoffId>,
) -> NewEvent {
    let Setting { blocked, limit, hangs } = setting;
    let opens = match &offer.task {
        OfferTask::Existing(_) => None,
        OfferTask::New {
            intent, correlation_id, parent, coordinator, project, branch_of, ..
        } => Some(Opened {
            owner: offer.from.clone(),
            intent: *intent,
            correlation_id: correlation_id.clone(),
            parent_task_id: *parent,
            coordinator: coordinator.clone(),
            channel: None,
            project: project.clone(),
            branch_of: *branch_of,
            hangs: hangs.map(Box::new),
            follows: None,
            key: None,
        }),
    };
    let mut contract = offer.contract.clone();
    let to = match admitted.instead {
        Some(other) => {
            contract.routing.diverted_from = Some(offer.to.clone());
            other
        }
        None => offer.to.clone(),
    };
    let must = offer.needs_approval || !offer.contract.approvers.is_empty();
    let facts = Box::new(Offered {
        opens,
        from: offer.from.clone(),
        to,
        envelope: offer.envelope.hash,
        hop: offer.hop,
        priority: offer.priority,
        terms: offer.terms,
        contract,
        lifted: offer.lifted.clone(),
        expires_at: ends_at(offer, limit),
        not_before: admitted.not_before,
        needs_approval: must || blocked,
        blocked: blocked && !must,
        ordering_key: offer.ordering_key.clone(),
        key: key.cloned(),
        probe: admitted.probe,
        amends,
        redrive_of: None,
    });
    let event = match offer.control {
        Control::Passed => Event::TransferOffered(facts),
        Control::Awaited => Event::CallOffered(facts),
    };
    let actor = Actor::Agent(offer.from.clone());
    NewEvent { handoff: Some(offer.handoff), ..NewEvent::on_task(offer.task.id(), actor, event) }
        .with(Some(offer.envelope.clone()))
}

/// Never later than what it hangs from.
fn ends_at(offer: &Offer, limit: Option<Timestamp>) -> Timestamp {
    limit.map_or(offer.expires_at, |limit| limit.min(offer.expires_at))
}

pub(super) fn check_terms(
    offer: &Offer,
    limit: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), Refusal> {
    let elsewhere = |target: &Target| target.tenant() != offer.from.tenant();
    if elsewhere(&offer.to) || offer.contract.routing.fallbacks.iter().any(elsewhere) {
        return Err(Refusal::OtherTenant);
    }
    if offer.contract.routing.fallbacks.len() > FALLBACKS_MAX {
        let count = offer.contract.routing.fallbacks.len();
        let text = format!("fallbacks has {count} entries, expected at most {FALLBACKS_MAX}");
        return Err(Refusal::InvalidTerms(text));
    }
    check_approvers(offer)?;
    if let Some(after) = &offer.contract.after {
        let tasks = after.tasks.len();
        let need = after.need as usize;
        if !(1..=AFTER_MAX).contains(&tasks) || !(1..=tasks).contains(&need) {
            let text = format!(
                "after names {tasks} tasks and needs {need}; expected 1 to {AFTER_MAX}, and to \
                 need at least one and not more than there are"
            );
            return Err(Refusal::InvalidTerms(text));
        }
        let mut each = BTreeSet::new();
        if let Some(twice) = after.tasks.iter().find(|task| !each.insert(**task)) {
            // One result would count as two.
            return Err(Refusal::InvalidTerms(format!("after names {twice} twice")));
        }
    }
    offer.terms.check().map_err(Refusal::InvalidTerms)?;
    if offer.priority > PRIORITY_MAX {
        let text = format!("priority is {}, expected 0 to {PRIORITY_MAX}", offer.priority);
        return Err(Refusal::InvalidTerms(text));
    }
    let expires_at = ends_at(offer, limit);
    if expires_at <= now {
        return Err(Refusal::DeadlinePassed);
    }
    if offer.not_before.is_some_and(|start| start >= expires_at) {
        return Err(Refusal::InvalidTerms("not_before lies at or after the deadline".into()));
    }
    Ok(())
}

/// Whoever asks for work and whoever does it are not those who approve it.
fn check_approvers(offer: &Offer) -> Result<(), Refusal> {
    let named = &offer.contract.approvers;
    if named.len() > APPROVERS_MAX {
        let text = format!("approvers has {}, expected at most {APPROVERS_MAX}", named.len());
        return Err(Refusal::InvalidTerms(text));
    }
    if named.iter().any(|agent| agent.tenant() != offer.from.tenant()) {
        return Err(Refusal::OtherTenant);
    }
    let receivers = || std::iter::once(&offer.to).chain(&offer.contract.routing.fallbacks);
    let part = named.iter().find(|agent| {
        let is_them = |target: &Target| matches!(target, Target::Agent(to) if to == *agent);
        **agent == offer.from || receivers().any(is_them)
    });
    if let Some(agent) = part {
        let text = format!("approvers names {agent}, who sends or may receive this work");
        return Err(Refusal::InvalidTerms(text));
    }
    Ok(())
}

pub(super) fn owned(task: &Task, agent: &AgentId) -> Result<(), Refusal> {
    if task.state.is_terminal() {
        return Err(Refusal::TaskFinished { task: task.id, state: task.state });
    }
    if task.owner != *agent {
        return Err(Refusal::NotOwner {
            task: task.id,
            owner: task.owner.clone(),
            agent: agent.clone(),
        });
    }
    Ok(())
}

/// The envelope was made from what the task looked like a moment ago; it must still be so.
pub(super) fn follows(offer: &Offer, task: &Task) -> Result<(), Refusal> {
    let expected = match task.envelope {
        Some((hash, hop)) => (Some(hash), hop + 1),
        None => (None, 0),
    };
    if (offer.previous, offer.hop) == expected { Ok(()) } else { Err(Refusal::TaskMoved(task.id)) }
}
