// SPDX-License-Identifier: Apache-2.0
//! Opening tasks and offering them to a receiver.

use super::{Decision, NewEvent, View, escalate, find_task, sash};
use crate::command::{Offer, OfferTask, OpenTask, Outcome};
use crate::contract::{AFTER_MAX, FALLBACKS_MAX};
use crate::envelope::{Control, Target};
use crate::event::{Actor, Event, Key, Offered, Opened};
use crate::handoff::PRIORITY_MAX;
use crate::ids::{AgentId, HandoffId, TaskId, Timestamp};
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
        coordinator: open.coordinator,
        channel: open.channel,
        project: open.project,
        branch_of: None,
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

/// Opens a task and offers one below it to each receiver: all of them or none.
pub(super) fn publish(
    open: OpenTask,
    offers: Vec<Offer>,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let (task, owner) = (open.task, open.owner.clone());
    let mut decision = open_task(open, view)?;
    if decision.events.is_empty() {
        return Ok(decision);
    }
    let bytes = offers.iter().map(|offer| offer.envelope.text().len()).sum();
    quota::check(view, owner.tenant(), offers.len(), bytes)?;
    let mut handoffs = Vec::with_capacity(offers.len());
    for mut offer in offers {
        check_terms(&offer, now)?;
        let below =
            matches!(&offer.task, OfferTask::New { parent: Some(parent), .. } if *parent == task);
        if offer.from != owner || !below {
            return Err(Refusal::InvalidFollowUps(
                "a receiver gets a task below the one published",
            ));
        }
        // One receiver that is away must not keep the others from hearing it.
        let probe = escalate::admit(&mut offer, true, view, now)?;
        handoffs.push(offer.handoff);
        decision.events.extend(offered(offer, probe));
    }
    decision.outcome = Ok(Outcome { handoffs, task: Some(task), ..Outcome::default() });
    Ok(decision)
}

pub(super) fn offer(
    mut offer: Offer,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    if let Some(outcome) = replayed(&offer.from, offer.key.as_ref(), view)? {
        return Ok(Decision::unchanged(outcome));
    }
    check_terms(&offer, now)?;
    quota::check(view, offer.from.tenant(), 1, offer.envelope.text().len())?;
    let mut blocked = false;
    match &offer.task {
        OfferTask::Existing(id) => {
            let task = find_task(view, *id, &offer.from)?;
            owned(task, &offer.from)?;
            if let Some(handoff) = task.live {
                return Err(Refusal::HandoffOpen { task: *id, handoff });
            }
            follows(&offer, task)?;
            blocked = task.is_blocked();
        }
        OfferTask::New { parent: Some(parent), .. } => {
            let parent = find_task(view, *parent, &offer.from)?;
            owned(parent, &offer.from)?;
            follows(&offer, parent)?;
            blocked = parent.is_blocked();
        }
        OfferTask::New { parent: None, .. } => {}
    }
    sash::knows_lifts(&offer, view)?;
    offer.needs_approval |= blocked;
    let probe = escalate::admit(&mut offer, false, view, now)?;
    let outcome = Outcome { task: Some(offer.task.id()), ..Outcome::of(offer.handoff) };
    Ok(Decision::of(offered(offer, probe), outcome))
}

/// The events that an admitted offer becomes: it waits, or it is a dead letter from the start.
pub(super) fn offered(offer: Offer, probe: bool) -> Vec<NewEvent> {
    let (task, handoff, dead_end) = (offer.task.id(), offer.handoff, offer.dead_end);
    let mut events = vec![offer_event(offer, probe, None)];
    events.extend(dead_end.map(|reason| NewEvent {
        task,
        handoff: Some(handoff),
        actor: Actor::Broker,
        event: Event::DeadLettered { reason, against: None },
        body: None,
        turn: None,
    }));
    events
}

pub(super) fn offer_event(offer: Offer, probe: bool, amends: Option<HandoffId>) -> NewEvent {
    let task = offer.task.id();
    let opens = match offer.task {
        OfferTask::Existing(_) => None,
        OfferTask::New {
            intent, correlation_id, parent, coordinator, project, branch_of, ..
        } => Some(Opened {
            owner: offer.from.clone(),
            intent,
            correlation_id,
            parent_task_id: parent,
            coordinator,
            channel: None,
            project,
            branch_of,
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
        probe,
        amends,
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
