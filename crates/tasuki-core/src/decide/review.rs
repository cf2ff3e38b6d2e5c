// SPDX-License-Identifier: Apache-2.0
//! Decisions about a handoff from outside the work itself: approval, cancelling, and what becomes
//! of dead letters.

use super::{Decision, NewEvent, View, escalate, find_handoff, find_task, offer};
use crate::canonical::Body;
use crate::command::{Offer, Outcome};
use crate::envelope::{Control, Target};
use crate::event::{Actor, DeadReason, Event, Offered, Redrive};
use crate::handoff::{Handoff, Review, State};
use crate::ids::{AgentId, HandoffId, Hash, TaskId, Timestamp};
use crate::refusal::Refusal;
use crate::task::Task;

pub(super) fn approve(id: HandoffId, by: AgentId, view: &dyn View) -> Result<Decision, Refusal> {
    let handoff = awaiting(id, &by, "approve", view)?;
    let event = NewEvent::on(handoff, Actor::Agent(by), Event::Approved);
    Ok(Decision::of(vec![event], Outcome::of(id)))
}

pub(super) fn reject(id: HandoffId, by: AgentId, view: &dyn View) -> Result<Decision, Refusal> {
    let handoff = awaiting(id, &by, "reject", view)?;
    let event = Event::DeadLettered { reason: DeadReason::Rejected, against: None };
    let event = NewEvent::on(handoff, Actor::Agent(by), event);
    Ok(Decision::of(vec![event], Outcome::of(id)))
}

/// Nobody approves what it asked for itself.
fn awaiting<'v>(
    id: HandoffId,
    by: &AgentId,
    wish: &'static str,
    view: &'v dyn View,
) -> Result<&'v Handoff, Refusal> {
    let handoff = find_handoff(view, id, by)?;
    match handoff.state {
        State::AwaitingApproval if handoff.from == *by => {
            Err(Refusal::NotPermitted { handoff: id, agent: by.clone(), wish })
        }
        State::AwaitingApproval => Ok(handoff),
        _ => Err(Refusal::WrongState {
            handoff: id,
            state: handoff.state.name(),
            wanted: if wish == "approve" { "approved" } else { "rejected" },
        }),
    }
}

pub(super) fn cancel(
    id: HandoffId,
    by: AgentId,
    reason: Option<Body>,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &by)?;
    if let State::Cancelled { .. } = handoff.state {
        return Ok(Decision::unchanged(Outcome::repeated(id)));
    }
    not_ended(handoff, "cancelled")?;
    let task = find_task(view, handoff.task_id, &by)?;
    if by != handoff.from && by != task.opened_by && by != *task.decider() {
        return Err(Refusal::NotPermitted { handoff: id, agent: by, wish: "cancel" });
    }
    let event = Event::Cancelled { reason: reason.as_ref().map(|body| body.hash) };
    let event = NewEvent::on(handoff, Actor::Agent(by), event).with(reason);
    Ok(Decision::of(vec![event], Outcome::of(id)))
}

/// Ends a handoff as failed. Only the one who decides about the task can say that it is over.
pub(super) fn abort(
    id: HandoffId,
    by: AgentId,
    reason: Option<Body>,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &by)?;
    if let State::Failed { aborted: true, .. } = handoff.state {
        return Ok(Decision::unchanged(Outcome::repeated(id)));
    }
    not_ended(handoff, "aborted")?;
    let task = find_task(view, handoff.task_id, &by)?;
    if by != task.opened_by && by != *task.decider() {
        return Err(Refusal::NotPermitted { handoff: id, agent: by, wish: "abort" });
    }
    let event = Event::Aborted { reason: reason.as_ref().map(|body| body.hash) };
    let event = NewEvent::on(handoff, Actor::Agent(by), event).with(reason);
    Ok(Decision::of(vec![event], Outcome::of(id)))
}

fn not_ended(handoff: &Handoff, wanted: &'static str) -> Result<(), Refusal> {
    if handoff.state.is_terminal() {
        let state = handoff.state.name();
        return Err(Refusal::WrongState { handoff: handoff.id, state, wanted });
    }
    Ok(())
}

pub(super) fn cancel_task(
    id: TaskId,
    by: AgentId,
    reason: Option<Body>,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let task = find_task(view, id, &by)?;
    if task.state.is_terminal() {
        return Err(Refusal::TaskFinished { task: id, state: task.state });
    }
    if by != task.opened_by && by != task.owner && by != *task.decider() {
        return Err(Refusal::NotPermittedTask { task: id, agent: by });
    }
    let actor = Actor::Agent(by);
    let mut events = Vec::new();
    if let Some(handoff) = task.live.and_then(|live| view.handoff(live)) {
        let event = Event::Cancelled { reason: None };
        events.push(NewEvent::on(handoff, actor.clone(), event));
    }
    let event = Event::TaskCancelled { reason: reason.as_ref().map(|body| body.hash) };
    events.push(NewEvent { task: id, handoff: None, actor, event, body: reason, turn: None });
    Ok(Decision::of(events, Outcome { task: Some(id), ..Outcome::default() }))
}

/// Sends a dead letter on its way again: a new handoff with the same envelope, linked to the old.
pub(super) fn redrive(
    id: HandoffId,
    by: AgentId,
    new: HandoffId,
    to: Option<Target>,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &by)?;
    let changed = to.as_ref().map(|to| Body::of(to).hash);
    match again(handoff, &by, changed, view, now)? {
        Again::Was(before) => return Ok(Decision::unchanged(Outcome::repeated(before))),
        Again::May(_) => {}
    }
    if to.as_ref().is_some_and(|to| to.tenant() != handoff.from.tenant()) {
        return Err(Refusal::OtherTenant);
    }
    // The old deadline has often passed; the new handoff gets as much time as the old one had.
    let span_ms = handoff.expires_at.ms_after(handoff.offered_at);
    let offered = Box::new(Offered {
        opens: None,
        from: handoff.from.clone(),
        to: to.unwrap_or_else(|| handoff.to.clone()),
        envelope: handoff.envelope,
        hop: handoff.hop,
        priority: handoff.priority,
        terms: handoff.terms,
        contract: handoff.contract.clone(),
        lifted: Vec::new(),
        expires_at: now.plus_ms(span_ms),
        not_before: None,
        needs_approval: handoff.needs_approval,
        ordering_key: handoff.ordering_key.clone(),
        key: None,
        probe: false,
        amends: None,
        redrive_of: Some(Redrive {
            handoff_id: id,
            envelope_at: handoff.envelope_at,
            opened_task: handoff.opened_task,
        }),
    });
    let actor = Actor::Agent(by);
    let redriven = NewEvent::on(handoff, actor.clone(), Event::Redriven { to: new, changed });
    let offered = NewEvent {
        task: handoff.task_id,
        handoff: Some(new),
        actor,
        event: match handoff.control {
            Control::Passed => Event::TransferOffered(offered),
            Control::Awaited => Event::CallOffered(offered),
        },
        body: None,
        turn: None,
    };
    Ok(Decision::of(vec![redriven, offered], Outcome::of(new)))
}

/// Whether a dead letter may be sent again, or was.
enum Again<'v> {
    Was(HandoffId),
    May(&'v Task),
}

fn again<'v>(
    handoff: &Handoff,
    by: &AgentId,
    changed: Option<Hash>,
    view: &'v dyn View,
    now: Timestamp,
) -> Result<Again<'v>, Refusal> {
    match dead_letter(handoff)? {
        None => {}
        Some(Review::Redriven { to, changed: before }) if *before == changed => {
            return Ok(Again::Was(*to));
        }
        Some(Review::Redriven { changed: Some(_), .. }) => {
            let decided = "sent on with something changed";
            return Err(Refusal::AlreadyReviewed { handoff: handoff.id, decided });
        }
        Some(Review::Redriven { changed: None, .. }) => {
            return Err(Refusal::AlreadyReviewed { handoff: handoff.id, decided: "redriven" });
        }
        Some(Review::Discarded { .. }) => {
            return Err(Refusal::AlreadyReviewed { handoff: handoff.id, decided: "discarded" });
        }
    }
    free_to(handoff, by, now)?;
    let task = find_task(view, handoff.task_id, by)?;
    if let Some(live) = task.live {
        return Err(Refusal::HandoffOpen { task: task.id, handoff: live });
    }
    // The task may have gone on by other hops since; then it is no longer this sender's to offer.
    offer::owned(task, &handoff.from)?;
    Ok(Again::May(task))
}

/// Somebody else may be deciding just now.
fn free_to(handoff: &Handoff, by: &AgentId, now: Timestamp) -> Result<(), Refusal> {
    match &handoff.reviewer {
        Some((reviewer, until)) if reviewer != by && now < *until => Err(Refusal::ReviewTaken {
            handoff: handoff.id,
            by: reviewer.clone(),
            left_ms: until.ms_after(now),
        }),
        _ => Ok(()),
    }
}

/// Sends a dead letter on its way again with an envelope that says more, or other things, than the
/// one before, which it is linked to.
pub(super) fn amend(
    id: HandoffId,
    by: AgentId,
    changed: Hash,
    mut offer: Offer,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let changed = Some(changed);
    let handoff = find_handoff(view, id, &by)?;
    let task = match again(handoff, &by, changed, view, now)? {
        Again::Was(before) => return Ok(Decision::unchanged(Outcome::repeated(before))),
        Again::May(task) => task,
    };
    offer::check_terms(&offer, now)?;
    offer::follows(&offer, task)?;
    if offer.from != handoff.from || offer.task.id() != handoff.task_id {
        return Err(Refusal::TaskMoved(handoff.task_id));
    }
    let probe = escalate::admit(&mut offer, false, view, now)?;
    let actor = Actor::Agent(by);
    let redriven =
        NewEvent::on(handoff, actor.clone(), Event::Redriven { to: offer.handoff, changed });
    let outcome = Outcome::of(offer.handoff);
    let mut offered = offer::offer_event(offer, probe, Some(id));
    offered.actor = actor;
    Ok(Decision::of(vec![redriven, offered], outcome))
}

/// Keeps others from deciding meanwhile, or no longer.
pub(super) fn take(
    id: HandoffId,
    by: AgentId,
    until: Option<Timestamp>,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &by)?;
    match dead_letter(handoff)? {
        None => {}
        Some(Review::Redriven { .. }) => {
            return Err(Refusal::AlreadyReviewed { handoff: id, decided: "redriven" });
        }
        Some(Review::Discarded { .. }) => {
            return Err(Refusal::AlreadyReviewed { handoff: id, decided: "discarded" });
        }
    }
    free_to(handoff, &by, now)?;
    let event = match until {
        Some(until) => Event::ReviewTaken { by: by.clone(), until },
        None if handoff.reviewer.is_none() => {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        None => Event::ReviewReleased,
    };
    let event = NewEvent::on(handoff, Actor::Agent(by), event);
    Ok(Decision::of(vec![event], Outcome::of(id)))
}

pub(super) fn discard(
    id: HandoffId,
    by: AgentId,
    reason: Body,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &by)?;
    match dead_letter(handoff)? {
        None => {}
        Some(Review::Discarded { .. }) => {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        Some(Review::Redriven { .. }) => {
            return Err(Refusal::AlreadyReviewed { handoff: id, decided: "redriven" });
        }
    }
    free_to(handoff, &by, now)?;
    let event = Event::Discarded { reason: reason.hash };
    let event = NewEvent::on(handoff, Actor::Agent(by), event).with(Some(reason));
    Ok(Decision::of(vec![event], Outcome::of(id)))
}

fn dead_letter(handoff: &Handoff) -> Result<Option<&Review>, Refusal> {
    match &handoff.state {
        State::DeadLettered { review, .. } => Ok(review.as_ref()),
        _ => Err(Refusal::NotDeadLettered { handoff: handoff.id, state: handoff.state.name() }),
    }
}
