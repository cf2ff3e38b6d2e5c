// SPDX-License-Identifier: Apache-2.0
//! Opening tasks and offering them to a receiver.

use super::escalate::{self, Admitted};
use super::{Case, Changes, Footprint, Stated, lifts};
use crate::canonical::Body;
use crate::contract::{AFTER_MAX, Contract, FALLBACKS_MAX};
use crate::decide::{Decision, NewEvent, Outcome};
use crate::envelope::{Control, Target};
use crate::event::{Actor, BranchOf, DeadReason, Event, Key, Offered, Opened};
use crate::handoff::PRIORITY_MAX;
use crate::ids::{
    AgentId, ChannelId, CorrelationId, HandoffId, Hash, OrderingKey, Project, TaskId, Timestamp,
};
use crate::quota;
use crate::refusal::Refusal;
use crate::task::Task;
use crate::terms::Terms;

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
}

/// Offers a task to a receiver. In a command of its own, the sender is the agent who wishes for it.
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
    /// Why it cannot go on from here, if it cannot: it is kept as a dead letter.
    pub dead_end: Option<DeadReason>,
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

/// Tells something to many: a task, and one below it for each receiver, in one step.
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
        if let Some(parent) = self.parent {
            owned(case.task(parent)?, owner)?;
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
            key: case.key.cloned(),
        };
        let event = NewEvent::on_task(self.task, case.actor(), Event::TaskOpened(opened));
        let events = vec![event.with(Some(self.intent.clone()))];
        Ok(Decision::of(events, Outcome::of_task(self.task)))
    }
}

impl Stated for Publish {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { offers: &self.offers, breakers: Changes::OfAny, ..self.open.footprint() }
    }

    /// Opens a task and offers one below it to each receiver: all of them or none.
    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (task, owner) = (self.open.task, case.agent());
        let mut decision = self.open.decide(case)?;
        let bytes = self.offers.iter().map(|offer| offer.envelope.text().len()).sum();
        quota::check(case.view, owner.tenant(), self.offers.len(), bytes)?;
        for offer in &self.offers {
            check_terms(offer, case.now)?;
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
            decision.events.extend(offered(offer, admitted, false, None));
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
            handoffs: self.after.as_slice(),
            offers: std::slice::from_ref(self),
            breakers: Changes::OfAny,
            brings_work: true,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        check_terms(self, case.now)?;
        quota::check(case.view, self.from.tenant(), 1, self.envelope.text().len())?;
        let mut blocked = false;
        match &self.task {
            OfferTask::Existing(id) => {
                let task = case.task(*id)?;
                owned(task, &self.from)?;
                if let Some(handoff) = task.live {
                    return Err(Refusal::HandoffOpen { task: *id, handoff });
                }
                follows(self, task)?;
                blocked = task.is_blocked();
            }
            OfferTask::New { parent: Some(parent), .. } => {
                let parent = case.task(*parent)?;
                owned(parent, &self.from)?;
                follows(self, parent)?;
                blocked = parent.is_blocked();
            }
            OfferTask::New { parent: None, .. } => {}
        }
        lifts::knows_lifts(self, case.view)?;
        let admitted = escalate::admit(self, false, case)?;
        let outcome = Outcome { task: Some(self.task.id()), ..Outcome::of(self.handoff) };
        Ok(Decision::of(offered(self, admitted, blocked, case.key), outcome))
    }
}

/// The events that an admitted offer becomes: it waits, or it is a dead letter from the start.
pub(super) fn offered(
    offer: &Offer,
    admitted: Admitted,
    blocked: bool,
    key: Option<&Key>,
) -> Vec<NewEvent> {
    let mut events = vec![offer_event(offer, admitted, blocked, key, None)];
    events.extend(offer.dead_end.map(|reason| NewEvent {
        handoff: Some(offer.handoff),
        ..NewEvent::on_task(
            offer.task.id(),
            Actor::Broker,
            Event::DeadLettered { reason, against: None },
        )
    }));
    events
}

/// `blocked` is whether the task is built on something that no longer holds.
pub(super) fn offer_event(
    offer: &Offer,
    admitted: Admitted,
    blocked: bool,
    key: Option<&Key>,
    amends: Option<HandoffId>,
) -> NewEvent {
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
            key: None,
        }),
    };
    let mut contract = offer.contract.clone();
    let to = match admitted.instead {
        Some(other) => {
            contract.diverted_from = Some(offer.to.clone());
            other
        }
        None => offer.to.clone(),
    };
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
        expires_at: offer.expires_at,
        not_before: admitted.not_before,
        needs_approval: offer.needs_approval || blocked,
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

pub(super) fn check_terms(offer: &Offer, now: Timestamp) -> Result<(), Refusal> {
    let elsewhere = |target: &Target| target.tenant() != offer.from.tenant();
    if elsewhere(&offer.to) || offer.contract.fallbacks.iter().any(elsewhere) {
        return Err(Refusal::OtherTenant);
    }
    if offer.contract.fallbacks.len() > FALLBACKS_MAX {
        let count = offer.contract.fallbacks.len();
        let text = format!("fallbacks has {count} entries, expected at most {FALLBACKS_MAX}");
        return Err(Refusal::InvalidTerms(text));
    }
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
    }
    offer.terms.check().map_err(Refusal::InvalidTerms)?;
    if offer.priority > PRIORITY_MAX {
        let text = format!("priority is {}, expected 0 to {PRIORITY_MAX}", offer.priority);
        return Err(Refusal::InvalidTerms(text));
    }
    if offer.expires_at <= now {
        return Err(Refusal::DeadlinePassed);
    }
    if offer.not_before.is_some_and(|start| start >= offer.expires_at) {
        return Err(Refusal::InvalidTerms("not_before lies at or after the deadline".into()));
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
