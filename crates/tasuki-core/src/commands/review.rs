// SPDX-License-Identifier: Apache-2.0
//! Decisions about a handoff from outside the work itself: approval, cancelling, and what becomes
//! of dead letters.

use super::{Case, Changes, Footprint, Offer, Returns, Stated, escalate, offer};
use crate::canonical::Body;
use crate::contract::Contract;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::envelope::{Control, Target};
use crate::event::{Actor, Closed, DeadReason, Event, Offered, Redrive as RedriveOf};
use crate::handoff::{Handoff, Review, State};
use crate::ids::{HandoffId, Hash, TaskId, Timestamp};
use crate::refusal::Refusal;
use crate::task::Task;
use crate::tree::{Above, time_again};

#[derive(Debug, Clone)]
pub struct Approve {
    pub handoff: HandoffId,
}

/// Stops work that waits for approval, for a reason.
#[derive(Debug, Clone)]
pub struct Reject {
    pub handoff: HandoffId,
    pub reason: Body,
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
    /// The dead letter that its last handoff became, if it did.
    pub letter: Option<HandoffId>,
}

/// Sends a dead letter on its way again, to the same target or to another: a new handoff with the
/// same envelope, linked to the old.
#[derive(Debug, Clone)]
pub struct Redrive {
    pub handoff: HandoffId,
    pub new: HandoffId,
    pub to: Option<Target>,
    /// How long it may take this time.
    pub expires_in_ms: Option<u64>,
    /// The tasks above its own.
    pub above: Vec<TaskId>,
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

/// Closes a dead letter for good, with a reason.
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
        let event = Event::DeadLettered {
            reason: DeadReason::Rejected,
            against: None,
            limits: None,
            because: Some(self.reason.hash),
        };
        let event = NewEvent::on(handoff, case.actor(), event).with(Some(self.reason.clone()));
        Ok(Decision::of(vec![event], Outcome::of(self.handoff)))
    }
}

/// Nobody approves what it asked for itself, or what it would do itself; and where approvers are
/// named, nobody else does.
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
    let by = case.agent();
    // It may still come to those who are asked next.
    let is_them = |target: &Target| matches!(target, Target::Agent(to) if to == by);
    let receives = is_them(&handoff.to) || handoff.contract.routing.fallbacks.iter().any(is_them);
    let named = &handoff.contract.approvers;
    if handoff.from == *by || receives || !(named.is_empty() || named.contains(by)) {
        let agent = by.clone();
        return Err(Refusal::NotPermitted { handoff: id, agent, wish });
    }
    Ok(handoff)
}

impl Stated for Cancel {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            breakers: Changes::OfNamed,
            reservations: Changes::OfNamed,
            ..Footprint::of_handoff(&self.handoff)
        }
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
        Footprint {
            breakers: Changes::OfNamed,
            reservations: Changes::OfNamed,
            ..Footprint::of_handoff(&self.handoff)
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, by) = (self.handoff, case.agent());
        let handoff = case.handoff(id)?;
        if let State::Aborted { .. } = handoff.state {
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
        Footprint {
            handoffs: self.letter.as_slice(),
            breakers: Changes::OfAny,
            reservations: Changes::OfAny,
            ..Footprint::of_task(&self.task)
        }
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
            // Its holder is told why.
            let event = Event::Cancelled { reason: self.reason.as_ref().map(|body| body.hash) };
            let event = NewEvent::on(handoff, case.actor(), event).with(self.reason.clone());
            events.push(event);
        }
        events.extend(closed(self.letter, task, Closed::TaskCancelled, case));
        let event = Event::TaskCancelled { reason: self.reason.as_ref().map(|body| body.hash) };
        events.push(NewEvent::on_task(id, case.actor(), event).with(self.reason.clone()));
        Ok(Decision::of(events, Outcome::of_task(id)))
    }
}

impl Stated for Redrive {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            others: self.above.clone(),
            returns: Returns::Anew { handoff: self.new, to: self.to.as_ref() },
            brings_work: true,
            ..Footprint::of_handoff(&self.handoff)
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, new) = (self.handoff, self.new);
        let handoff = case.handoff(id)?;
        let changed = match (&self.to, self.expires_in_ms) {
            (to, None) => to.as_ref().map(|to| Body::of(to).hash),
            (to, Some(span)) => Some(Body::of(&(to, span)).hash),
        };
        let task = match again(handoff, changed, case)? {
            Again::Was(before) => return Ok(Decision::unchanged(Outcome::repeated(before))),
            Again::May(task) => task,
        };
        if self.to.as_ref().is_some_and(|to| to.tenant() != handoff.from.tenant()) {
            return Err(Refusal::OtherTenant);
        }
        offer::may_spend(&self.above, Some(task), case)?;
        let span_ms = span(handoff, self.expires_in_ms, case)?;
        let anew = case.now.plus_ms(span_ms);
        let limit = in_time(task, &self.above, case);
        let expires_at = limit.map_or(anew, |limit| limit.min(anew));
        let offered = Box::new(Offered {
            opens: None,
            from: handoff.from.clone(),
            to: self.to.clone().unwrap_or_else(|| handoff.to.clone()),
            envelope: handoff.envelope,
            hop: handoff.hop,
            priority: handoff.priority,
            terms: handoff.terms,
            contract: Contract::clone(&handoff.contract),
            lifted: Vec::new(),
            expires_at,
            not_before: waits_anew(handoff, case.now).filter(|start| *start < expires_at),
            needs_approval: handoff.needs_approval || task.is_blocked(),
            blocked: task.is_blocked() && (handoff.blocked || !handoff.needs_approval),
            ordering_key: handoff.ordering_key.clone(),
            key: None,
            probe: false,
            amends: None,
            redrive_of: Some(RedriveOf {
                handoff_id: id,
                envelope_pos: handoff.envelope_pos,
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

/// How long a dead letter that is sent again may take: what was asked for, or as long as before. What
/// was too short before is no shorter than the broker's own.
pub(super) fn span(
    letter: &Handoff,
    asked_ms: Option<u64>,
    case: &Case<'_>,
) -> Result<u64, Refusal> {
    if asked_ms == Some(0) {
        return Err(Refusal::InvalidTerms("expires_in_ms is 0, expected at least 1".into()));
    }
    Ok(asked_ms.unwrap_or_else(|| again_ms(letter, case.house.expires_in_ms)))
}

/// Until when a dead letter that is sent again waits for other tasks. What went on already goes on at
/// once, with what they have come to by now.
#[must_use]
pub fn waits_anew(letter: &Handoff, now: Timestamp) -> Option<Timestamp> {
    letter.contract.after.as_ref()?;
    if letter.waits_for_tasks().is_none() {
        return Some(now);
    }
    let waited = letter.not_before.filter(|start| *start < letter.expires_at)?;
    Some(now.plus_ms(waited.ms_after(letter.offered_at)))
}

/// The span by default.
#[must_use]
pub fn again_ms(letter: &Handoff, house_ms: u64) -> u64 {
    let before = letter.expires_at.ms_after(letter.offered_at).max(1);
    match &letter.state {
        State::DeadLettered { reason: DeadReason::Expired, .. } => before.max(house_ms),
        State::DeadLettered { .. }
        | State::AwaitingApproval
        | State::Scheduled { .. }
        | State::Pending { .. }
        | State::Claimed(_)
        | State::InProgress(_)
        | State::InputRequired(_)
        | State::Answered(_)
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Aborted { .. }
        | State::Cancelled { .. } => before,
    }
}

/// The end of the decision that a task's last handoff asks for, if the task goes on without it.
pub(super) fn closed(
    letter: Option<HandoffId>,
    task: &Task,
    because: Closed,
    case: &Case<'_>,
) -> Option<NewEvent> {
    let letter = case.view.handoff(letter?).filter(|letter| letter.task_id == task.id)?;
    let State::DeadLettered { review: None, .. } = letter.state else { return None };
    let by = case.by.agent().map_or(Actor::Broker, |agent| Actor::Agent(agent.clone()));
    Some(NewEvent::on(letter, by, Event::LetterClosed { because }))
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
        Some(review) => {
            let decided = review.decided();
            return Err(Refusal::AlreadyReviewed { handoff: handoff.id, decided });
        }
    }
    free_to(handoff, case)?;
    let task = case.task(handoff.task_id)?;
    if let Some(letter) = task.tree.on_hold {
        return Err(Refusal::OnHold { task: task.id, letter });
    }
    if let Some(live) = task.live {
        return Err(Refusal::HandoffOpen { task: task.id, handoff: live });
    }
    // The task may have gone on by other hops since; then it is no longer this sender's to offer.
    offer::owned(task, &handoff.from)?;
    Ok(Again::May(task))
}

/// When what a reviewer sends on must be finished.
fn in_time(task: &Task, above: &[TaskId], case: &Case<'_>) -> Option<Timestamp> {
    let above = above.iter().filter_map(|id| case.view.task(*id)).map(|task| {
        let live = task.live.and_then(|live| case.view.handoff(live));
        Above { task, live }
    });
    time_again(task, above, case.now)
}

/// Somebody else may be deciding just now.
fn free_to(handoff: &Handoff, case: &Case<'_>) -> Result<(), Refusal> {
    let Some((reviewer, until)) = handoff.state.reviewer() else { return Ok(()) };
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
            others: {
                let mut others = offer::awaited(std::slice::from_ref(&self.offer));
                others.extend(&self.offer.above);
                others
            },
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
        let limit = in_time(task, &offer.above, case);
        offer::check_terms(offer, limit, case.now)?;
        offer::waits_for_known(offer, &[], case)?;
        offer::follows(offer, task)?;
        // Whoever gives it a budget anew decides so for its own task, and not for those above.
        let own = Some(task).filter(|_| offer.contract.budget.is_none());
        offer::may_spend(&offer.above, own, case)?;
        if offer.from != handoff.from || offer.task.id() != handoff.task_id {
            return Err(Refusal::TaskMoved(handoff.task_id));
        }
        let admitted = escalate::admit(offer, false, case)?;
        let to = offer.handoff;
        let redriven = NewEvent::on(handoff, case.actor(), Event::Redriven { to, changed });
        let setting = offer::Setting { blocked: task.is_blocked(), limit, hangs: None };
        let mut offered = offer::offer_event(offer, admitted, setting, None, Some(self.handoff));
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
            Some(review) => {
                let decided = review.decided();
                return Err(Refusal::AlreadyReviewed { handoff: id, decided });
            }
        }
        free_to(handoff, case)?;
        let event = match self.until {
            Some(until) => Event::ReviewTaken { by: case.agent().clone(), until },
            None if handoff.state.reviewer().is_none() => {
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
            Some(review @ (Review::Redriven { .. } | Review::Closed { .. })) => {
                let decided = review.decided();
                return Err(Refusal::AlreadyReviewed { handoff: id, decided });
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
