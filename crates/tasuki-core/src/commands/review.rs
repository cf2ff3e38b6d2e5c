// SPDX-License-Identifier: Apache-2.0
//! Decisions about a handoff from outside the work itself: approval, cancelling, and what becomes
//! of dead letters.

use super::{Case, Changes, Footprint, Offer, Returns, Stated, escalate, offer};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::envelope::{Control, Target};
use crate::event::{DeadReason, Event, Offered, Redrive as RedriveOf};
use crate::handoff::{Handoff, Review, State};
use crate::ids::{HandoffId, Hash, TaskId, Timestamp};
use crate::refusal::Refusal;
use crate::task::Task;

#[derive(Debug, Clone)]
pub struct Approve {
    pub handoff: HandoffId,
}

#[derive(Debug, Clone)]
pub struct Reject {
    pub handoff: HandoffId,
}

/// Withdraws a handoff.
#[derive(Debug, Clone)]
pub struct Cancel {
    pub handoff: HandoffId,
    pub reason: Option<Body>,
}

/// Ends a handoff as failed. Only the one who decides about the task can say that it is over.
#[derive(Debug, Clone)]
pub struct Abort {
    pub handoff: HandoffId,
    pub reason: Option<Body>,
}

#[derive(Debug, Clone)]
pub struct CancelTask {
    pub task: TaskId,
    pub reason: Option<Body>,
}

/// Sends a dead letter on its way again, to the same target or to another: a new handoff with the
/// same envelope, linked to the old.
#[derive(Debug, Clone)]
pub struct Redrive {
    pub handoff: HandoffId,
    pub new: HandoffId,
    pub to: Option<Target>,
}

/// Sends a dead letter on its way again with an envelope that says more, or other things, than the
/// one before, which it is linked to.
#[derive(Debug, Clone)]
pub struct Amend {
    pub handoff: HandoffId,
    /// The address of what the reviewer wants changed.
    pub changed: Hash,
    pub offer: Offer,
}

/// Keeps others from deciding on a dead letter for a while, or no longer.
#[derive(Debug, Clone)]
pub struct TakeReview {
    pub handoff: HandoffId,
    pub until: Option<Timestamp>,
}

/// Puts a dead letter away.
#[derive(Debug, Clone)]
pub struct Discard {
    pub handoff: HandoffId,
    pub reason: Body,
}

impl Stated for Approve {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { returns: Returns::Again, ..Footprint::of_handoff(&self.handoff) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let handoff = awaiting(self.handoff, "approve", "approved", case)?;
        let event = NewEvent::on(handoff, case.actor(), Event::Approved);
        Ok(Decision::of(vec![event], Outcome::of(self.handoff)))
    }
}

impl Stated for Reject {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_handoff(&self.handoff)
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let handoff = awaiting(self.handoff, "reject", "rejected", case)?;
        let event = Event::DeadLettered { reason: DeadReason::Rejected, against: None };
        let event = NewEvent::on(handoff, case.actor(), event);
        Ok(Decision::of(vec![event], Outcome::of(self.handoff)))
    }
}

/// Nobody approves what it asked for itself.
fn awaiting<'v>(
    id: HandoffId,
    wish: &'static str,
    wanted: &'static str,
    case: &Case<'v>,
) -> Result<&'v Handoff, Refusal> {
    let handoff = case.handoff(id)?;
    if !matches!(handoff.state, State::AwaitingApproval) {
        return Err(Refusal::WrongState { handoff: id, state: handoff.state.name(), wanted });
    }
    if handoff.from == *case.agent() {
        let agent = case.agent().clone();
        return Err(Refusal::NotPermitted { handoff: id, agent, wish });
    }
    Ok(handoff)
}

impl Stated for Cancel {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { reservations: Changes::OfNamed, ..Footprint::of_handoff(&self.handoff) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, by) = (self.handoff, case.agent());
        let handoff = case.handoff(id)?;
        if let State::Cancelled { .. } = handoff.state {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        not_ended(handoff, "cancelled")?;
        let task = case.task(handoff.task_id)?;
        if *by != handoff.from && *by != task.opened_by && by != task.decider() {
            return Err(Refusal::NotPermitted { handoff: id, agent: by.clone(), wish: "cancel" });
        }
        let event = Event::Cancelled { reason: self.reason.as_ref().map(|body| body.hash) };
        let event = NewEvent::on(handoff, case.actor(), event).with(self.reason.clone());
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}

impl Stated for Abort {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { reservations: Changes::OfNamed, ..Footprint::of_handoff(&self.handoff) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, by) = (self.handoff, case.agent());
        let handoff = case.handoff(id)?;
        if let State::Failed { aborted: true, .. } = handoff.state {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        not_ended(handoff, "aborted")?;
        let task = case.task(handoff.task_id)?;
        if *by != task.opened_by && by != task.decider() {
            return Err(Refusal::NotPermitted { handoff: id, agent: by.clone(), wish: "abort" });
        }
        let event = Event::Aborted { reason: self.reason.as_ref().map(|body| body.hash) };
        let event = NewEvent::on(handoff, case.actor(), event).with(self.reason.clone());
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}

fn not_ended(handoff: &Handoff, wanted: &'static str) -> Result<(), Refusal> {
    if handoff.state.is_terminal() {
        let state = handoff.state.name();
        return Err(Refusal::WrongState { handoff: handoff.id, state, wanted });
    }
    Ok(())
}

impl Stated for CancelTask {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { reservations: Changes::OfAny, ..Footprint::of_task(&self.task) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, by) = (self.task, case.agent());
        let task = case.task(id)?;
        if task.state.is_terminal() {
            return Err(Refusal::TaskFinished { task: id, state: task.state });
        }
        if *by != task.opened_by && *by != task.owner && by != task.decider() {
            return Err(Refusal::NotPermittedTask { task: id, agent: by.clone() });
        }
        let mut events = Vec::new();
        if let Some(handoff) = task.live.and_then(|live| case.view.handoff(live)) {
            let event = Event::Cancelled { reason: None };
            events.push(NewEvent::on(handoff, case.actor(), event));
        }
        let event = Event::TaskCancelled { reason: self.reason.as_ref().map(|body| body.hash) };
        events.push(NewEvent::on_task(id, case.actor(), event).with(self.reason.clone()));
        Ok(Decision::of(events, Outcome::of_task(id)))
    }
}

impl Stated for Redrive {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            returns: Returns::Anew { handoff: self.new, to: self.to.as_ref() },
            brings_work: true,
            ..Footprint::of_handoff(&self.handoff)
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, new) = (self.handoff, self.new);
        let handoff = case.handoff(id)?;
        let changed = self.to.as_ref().map(|to| Body::of(to).hash);
        match again(handoff, changed, case)? {
            Again::Was(before) => return Ok(Decision::unchanged(Outcome::repeated(before))),
            Again::May(_) => {}
        }
        if self.to.as_ref().is_some_and(|to| to.tenant() != handoff.from.tenant()) {
            return Err(Refusal::OtherTenant);
        }
        // The old deadline has often passed; the new handoff gets as much time as the old one had.
        let span_ms = handoff.expires_at.ms_after(handoff.offered_at);
        let offered = Box::new(Offered {
            opens: None,
            from: handoff.from.clone(),
            to: self.to.clone().unwrap_or_else(|| handoff.to.clone()),
            envelope: handoff.envelope,
            hop: handoff.hop,
            priority: handoff.priority,
            terms: handoff.terms,
            contract: handoff.contract.clone(),
            lifted: Vec::new(),
            expires_at: case.now.plus_ms(span_ms),
            not_before: None,
            needs_approval: handoff.needs_approval,
            ordering_key: handoff.ordering_key.clone(),
            key: None,
            probe: false,
            amends: None,
            redrive_of: Some(RedriveOf {
                handoff_id: id,
                envelope_at: handoff.envelope_at,
                opened_task: handoff.opened_task,
            }),
        });
        let redriven = NewEvent::on(handoff, case.actor(), Event::Redriven { to: new, changed });
        let event = match handoff.control {
            Control::Passed => Event::TransferOffered(offered),
            Control::Awaited => Event::CallOffered(offered),
        };
        let offered = NewEvent { handoff: Some(new), ..NewEvent::on(handoff, case.actor(), event) };
        Ok(Decision::of(vec![redriven, offered], Outcome::of(new)))
    }
}

/// Whether a dead letter may be sent again, or was.
enum Again<'v> {
    Was(HandoffId),
    May(&'v Task),
}

fn again<'v>(
    handoff: &Handoff,
    changed: Option<Hash>,
    case: &Case<'v>,
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
    free_to(handoff, case)?;
    let task = case.task(handoff.task_id)?;
    if let Some(live) = task.live {
        return Err(Refusal::HandoffOpen { task: task.id, handoff: live });
    }
    // The task may have gone on by other hops since; then it is no longer this sender's to offer.
    offer::owned(task, &handoff.from)?;
    Ok(Again::May(task))
}

/// Somebody else may be deciding just now.
fn free_to(handoff: &Handoff, case: &Case<'_>) -> Result<(), Refusal> {
    let Some((reviewer, until)) = &handoff.reviewer else { return Ok(()) };
    if reviewer == case.agent() || case.now >= *until {
        return Ok(());
    }
    Err(Refusal::ReviewTaken {
        handoff: handoff.id,
        by: reviewer.clone(),
        left_ms: until.ms_after(case.now),
    })
}

impl Stated for Amend {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            offers: std::slice::from_ref(&self.offer),
            breakers: Changes::OfAny,
            brings_work: true,
            ..Footprint::of_handoff(&self.handoff)
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (changed, offer) = (Some(self.changed), &self.offer);
        let handoff = case.handoff(self.handoff)?;
        let task = match again(handoff, changed, case)? {
            Again::Was(before) => return Ok(Decision::unchanged(Outcome::repeated(before))),
            Again::May(task) => task,
        };
        offer::check_terms(offer, case.now)?;
        offer::follows(offer, task)?;
        if offer.from != handoff.from || offer.task.id() != handoff.task_id {
            return Err(Refusal::TaskMoved(handoff.task_id));
        }
        let admitted = escalate::admit(offer, false, case)?;
        let to = offer.handoff;
        let redriven = NewEvent::on(handoff, case.actor(), Event::Redriven { to, changed });
        let mut offered = offer::offer_event(offer, admitted, false, None, Some(self.handoff));
        offered.actor = case.actor();
        Ok(Decision::of(vec![redriven, offered], Outcome::of(to)))
    }
}

impl Stated for TakeReview {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_handoff(&self.handoff)
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let id = self.handoff;
        let handoff = case.handoff(id)?;
        match dead_letter(handoff)? {
            None => {}
            Some(Review::Redriven { .. }) => {
                return Err(Refusal::AlreadyReviewed { handoff: id, decided: "redriven" });
            }
            Some(Review::Discarded { .. }) => {
                return Err(Refusal::AlreadyReviewed { handoff: id, decided: "discarded" });
            }
        }
        free_to(handoff, case)?;
        let event = match self.until {
            Some(until) => Event::ReviewTaken { by: case.agent().clone(), until },
            None if handoff.reviewer.is_none() => {
                return Ok(Decision::unchanged(Outcome::repeated(id)));
            }
            None => Event::ReviewReleased,
        };
        let event = NewEvent::on(handoff, case.actor(), event);
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}

impl Stated for Discard {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_handoff(&self.handoff)
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let id = self.handoff;
        let handoff = case.handoff(id)?;
        match dead_letter(handoff)? {
            None => {}
            Some(Review::Discarded { .. }) => {
                return Ok(Decision::unchanged(Outcome::repeated(id)));
            }
            Some(Review::Redriven { .. }) => {
                return Err(Refusal::AlreadyReviewed { handoff: id, decided: "redriven" });
            }
        }
        free_to(handoff, case)?;
        let event = Event::Discarded { reason: self.reason.hash };
        let event = NewEvent::on(handoff, case.actor(), event).with(Some(self.reason.clone()));
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}

fn dead_letter(handoff: &Handoff) -> Result<Option<&Review>, Refusal> {
    let State::DeadLettered { review, .. } = &handoff.state else {
        let state = handoff.state.name();
        return Err(Refusal::NotDeadLettered { handoff: handoff.id, state });
    };
    Ok(review.as_ref())
}
