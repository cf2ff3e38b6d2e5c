// SPDX-License-Identifier: Apache-2.0
//! Opening tasks and offering them to a receiver.

use super::{Decision, NewEvent, View, find_task, sash};
use crate::command::{Offer, OfferTask, OpenTask, Outcome};
use crate::envelope::Control;
use crate::event::{Actor, Event, Key, Offered, Opened};
use crate::handoff::PRIORITY_MAX;
use crate::ids::{AgentId, TaskId, Timestamp};
use crate::quota;
use crate::refusal::Refusal;
use crate::task::Task;

pub(super) fn open_task(open: OpenTask, view: &dyn View) -> Result<Decision, Refusal> {
    if let Some(outcome) = replayed(&open.owner, open.key.as_ref(), view)? {
        return Ok(Decision::unchanged(outcome));
    }
    quota::check(view, open.owner.tenant(), 0, open.intent.text().len())?;
    if let Some(parent) = open.parent {
        owned(find_task(view, parent, &open.owner)?, &open.owner)?;
    }
    let opened = Opened {
        owner: open.owner.clone(),
        intent: open.intent.hash,
        correlation_id: open.correlation_id,
        parent_task_id: open.parent,
        key: open.key,
    };
    let event = NewEvent {
        task: open.task,
        handoff: None,
        actor: Actor::Agent(open.owner),
        event: Event::TaskOpened(opened),
        body: Some(open.intent),
        turn: None,
    };
    Ok(Decision::of(vec![event], Outcome { task: Some(open.task), ..Outcome::default() }))
}

pub(super) fn offer(offer: Offer, view: &dyn View, now: Timestamp) -> Result<Decision, Refusal> {
    if let Some(outcome) = replayed(&offer.from, offer.key.as_ref(), view)? {
        return Ok(Decision::unchanged(outcome));
    }
    check_terms(&offer, now)?;
    quota::check(view, offer.from.tenant(), 1, offer.envelope.text().len())?;
    match &offer.task {
        OfferTask::Existing(id) => {
            let task = find_task(view, *id, &offer.from)?;
            owned(task, &offer.from)?;
            if let Some(handoff) = task.live {
                return Err(Refusal::HandoffOpen { task: *id, handoff });
            }
            follows(&offer, task)?;
        }
        OfferTask::New { parent: Some(parent), .. } => {
            let parent = find_task(view, *parent, &offer.from)?;
            owned(parent, &offer.from)?;
            follows(&offer, parent)?;
        }
        OfferTask::New { parent: None, .. } => {}
    }
    sash::knows_lifts(&offer, view)?;
    let outcome = Outcome { task: Some(offer.task.id()), ..Outcome::of(offer.handoff) };
    Ok(Decision::of(vec![offered(offer)], outcome))
}

/// The event that an admitted offer becomes.
pub(super) fn offered(offer: Offer) -> NewEvent {
    let task = offer.task.id();
    let opens = match offer.task {
        OfferTask::Existing(_) => None,
        OfferTask::New { intent, correlation_id, parent, .. } => Some(Opened {
            owner: offer.from.clone(),
            intent,
            correlation_id,
            parent_task_id: parent,
            key: None,
        }),
    };
    let facts = Box::new(Offered {
        opens,
        from: offer.from.clone(),
        to: offer.to,
        envelope: offer.envelope.hash,
        hop: offer.hop,
        priority: offer.priority,
        terms: offer.terms,
        contract: offer.contract,
        lifted: offer.lifted,
        expires_at: offer.expires_at,
        not_before: offer.not_before,
        needs_approval: offer.needs_approval,
        ordering_key: offer.ordering_key,
        key: offer.key,
        redrive_of: None,
    });
    NewEvent {
        task,
        handoff: Some(offer.handoff),
        actor: Actor::Agent(offer.from),
        event: match offer.control {
            Control::Passed => Event::TransferOffered(facts),
            Control::Awaited => Event::CallOffered(facts),
        },
        body: Some(offer.envelope),
        turn: None,
    }
}

pub(super) fn check_terms(offer: &Offer, now: Timestamp) -> Result<(), Refusal> {
    if offer.to.tenant() != offer.from.tenant() {
        return Err(Refusal::OtherTenant);
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
fn follows(offer: &Offer, task: &Task) -> Result<(), Refusal> {
    let expected = match task.envelope {
        Some((hash, hop)) => (Some(hash), hop + 1),
        None => (None, 0),
    };
    if (offer.previous, offer.hop) == expected { Ok(()) } else { Err(moved(task.id)) }
}

fn moved(task: TaskId) -> Refusal {
    Refusal::TaskMoved(task)
}

pub(super) fn replayed(
    agent: &AgentId,
    key: Option<&Key>,
    view: &dyn View,
) -> Result<Option<Outcome>, Refusal> {
    let Some(key) = key else { return Ok(None) };
    match view.replay(agent, &key.key) {
        None => Ok(None),
        Some(first) if first.request == key.request => Ok(Some(Outcome {
            handoffs: first.handoff.into_iter().collect(),
            task: (first.task != TaskId::STORE).then_some(first.task),
            document: first.document,
            repeated: true,
        })),
        Some(_) => Err(Refusal::IdempotencyConflict { key: key.key.clone() }),
    }
}
