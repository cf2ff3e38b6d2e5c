// SPDX-License-Identifier: Apache-2.0
//! What only the holder of a claim may do. Every call shows the claim id and the fence; if either
//! differs, or the hard deadline has passed, the claim is stale.

use super::{Decision, NewEvent, View, claim, escalate, find_handoff, offer};
use crate::canonical::Body;
use crate::command::{Act, FOLLOW_UPS_MAX, Holder, Offer, OfferTask, Outcome, Proof};
use crate::contract::{Checked, Successors};
use crate::envelope::Control;
use crate::event::{Acknowledged, Actor, DeadReason, Event, FailureClass};
use crate::handoff::{Attempt, AttemptEnd, Claim, Handoff, State};
use crate::ids::{HandoffId, Timestamp};
use crate::quota;
use crate::refusal::Refusal;
use crate::reserve::{RESOURCES_MAX, Resource};
use crate::task::Task;

pub(super) fn held(
    id: HandoffId,
    proof: Proof,
    by: Option<Holder>,
    act: Act,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let handoff = match &by {
        Some(by) => find_handoff(view, id, &by.agent)?,
        None => view.handoff(id).ok_or(Refusal::HandoffNotFound(id))?,
    };
    // A claim that leaked is of no use to others: to them the handoff is not there.
    if let Some(Holder { agent, .. }) = &by {
        let mut theirs = handoff.attempts.iter().filter(|a| a.agent == *agent).peekable();
        if theirs.peek().is_none() {
            return Err(Refusal::HandoffNotFound(id));
        }
        if !theirs.any(|attempt| attempt.claim_id == proof.claim_id) {
            return Err(Refusal::StaleClaim { handoff: id, state: handoff.state.name() });
        }
    }
    let current = handoff.state.claim().filter(|claim| {
        claim.claim_id == proof.claim_id
            && claim.fence == proof.fence
            && claim.fence.epoch() == view.epoch()
            && now < claim.hard_until
    });
    let acknowledged = by.and_then(|by| acknowledged(handoff, proof, by, &act));
    match current {
        Some(claim) => {
            let mut decision = act_as_holder(handoff, claim, act, view, now)?;
            // What was there already was acknowledged then.
            if decision.outcome.as_ref().is_ok_and(|outcome| !outcome.repeated) {
                decision.events.splice(0..0, acknowledged);
            }
            Ok(decision)
        }
        None => Ok(stale(handoff, proof, act)),
    }
}

/// The holder's own signature over what it does, which stands in the log before what it did.
fn acknowledged(handoff: &Handoff, proof: Proof, by: Holder, act: &Act) -> Option<NewEvent> {
    let signed = by.signed?;
    let (word, body) = act.acknowledgment()?;
    let event = Event::Acknowledged(Acknowledged {
        act: word.to_owned(),
        claim_id: proof.claim_id,
        fence: proof.fence,
        body,
        signed,
    });
    Some(NewEvent::on(handoff, Actor::Agent(by.agent), event))
}

fn act_as_holder(
    handoff: &Handoff,
    claim: &Claim,
    act: Act,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let actor = || Actor::Agent(claim.agent.clone());
    let done = Outcome::of(handoff.id);
    read_back(handoff, &act)?;
    Ok(match act {
        Act::Start | Act::ReadBack(_) => match handoff.state {
            State::Claimed(_) => {
                let mut decision =
                    Decision::of(vec![NewEvent::on(handoff, actor(), Event::Started)], done);
                decision.renewals.push(handoff.id);
                decision
            }
            _ => Decision::unchanged(Outcome::repeated(handoff.id)),
        },
        Act::Heartbeat => {
            let mut decision = Decision::unchanged(done);
            decision.renewals.push(handoff.id);
            decision
        }
        Act::Progress { percent, note } => {
            let event = Event::Progressed { percent, note: note.as_ref().map(|body| body.hash) };
            Decision::of(vec![NewEvent::on(handoff, actor(), event).with(note)], done)
        }
        Act::Complete { result, follow_ups, checked } => {
            agreed(handoff, checked.as_ref(), &follow_ups)?;
            // Ending one and making one is no more in flight than before.
            if !follow_ups.is_empty() {
                let bytes = follow_ups.iter().map(|offer| offer.envelope.text().len()).sum();
                let more = follow_ups.len() - 1;
                quota::check(view, claim.agent.tenant(), more, bytes)?;
            }
            Decision::of(completed(handoff, claim, result, follow_ups, view, now)?, done)
        }
        Act::Fail { class, failure, retry_after_ms, entropy } => {
            let after = Retry { asked_ms: retry_after_ms, entropy };
            Decision::of(failed(handoff, claim, class, failure, after, view, now), done)
        }
        Act::Decline { reason } => {
            Decision::of(claim::declined(handoff, claim.agent.clone(), reason, view, now), done)
        }
        Act::Release => {
            let event = Event::Released { fence: claim.fence };
            Decision::of(vec![NewEvent::on(handoff, actor(), event)], done)
        }
        Act::Reserve { resources } => return reserve(handoff, claim, resources, view),
        Act::Unreserve { resources } => {
            let had = view.registry().reservations.get(&handoff.id);
            let has = |it: &Resource| had.is_some_and(|known| known.resources.contains(it));
            let resources: Vec<_> = resources.into_iter().filter(has).collect();
            if resources.is_empty() {
                return Ok(Decision::unchanged(Outcome::repeated(handoff.id)));
            }
            let event = Event::Unreserved { resources };
            Decision::of(vec![NewEvent::on(handoff, actor(), event)], done)
        }
    })
}

/// Gives the holder all of them or none.
fn reserve(
    handoff: &Handoff,
    claim: &Claim,
    resources: Vec<Resource>,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let known = &view.registry().reservations;
    let own = known.get(&handoff.id);
    let new: Vec<_> = resources
        .into_iter()
        .filter(|it| !own.is_some_and(|own| own.resources.contains(it)))
        .collect();
    if new.is_empty() {
        return Ok(Decision::unchanged(Outcome::repeated(handoff.id)));
    }
    if new.len() + own.map_or(0, |own| own.resources.len()) > RESOURCES_MAX {
        let text = format!("a handoff takes at most {RESOURCES_MAX} resources");
        return Err(Refusal::InvalidResource(text));
    }
    for resource in &new {
        resource
            .check()
            .map_err(|problem| Refusal::InvalidResource(format!("{resource}: {problem}")))?;
        let others = known.values().filter(|other| other.handoff != handoff.id);
        let mut theirs = others.filter(|other| other.agent.tenant() == claim.agent.tenant());
        let taken = theirs.find(|other| other.resources.iter().any(|it| it.overlaps(resource)));
        if let Some(taken) = taken {
            return Err(Refusal::Reserved {
                resource: resource.clone(),
                holder: taken.agent.clone(),
                handoff: taken.handoff,
            });
        }
    }
    let event = Event::Reserved { fence: claim.fence, resources: new };
    let event = NewEvent::on(handoff, Actor::Agent(claim.agent.clone()), event);
    Ok(Decision::of(vec![event], Outcome::of(handoff.id)))
}

/// Until the receiver has repeated what binds it, all it can do is that, wait, or give it back.
fn read_back(handoff: &Handoff, act: &Act) -> Result<(), Refusal> {
    let Some(expected) = handoff.contract.read_back else { return Ok(()) };
    if !matches!(handoff.state, State::Claimed(_)) {
        return Ok(());
    }
    match act {
        Act::ReadBack(repeated) if *repeated == expected => Ok(()),
        Act::Start
        | Act::ReadBack(_)
        | Act::Progress { .. }
        | Act::Complete { .. }
        | Act::Reserve { .. }
        | Act::Unreserve { .. } => Err(Refusal::ReadBackNeeded { handoff: handoff.id, expected }),
        Act::Heartbeat | Act::Fail { .. } | Act::Decline { .. } | Act::Release => Ok(()),
    }
}

/// A decision reads no schema and no pipeline; it takes nothing that was not held against them.
fn agreed(
    handoff: &Handoff,
    checked: Option<&Checked>,
    follow_ups: &[Offer],
) -> Result<(), Refusal> {
    let Some(agreement) = handoff.contract.agreement() else { return Ok(()) };
    let checked = checked.filter(|checked| checked.agreement == agreement);
    let goes_on = |checked: &Checked| match &checked.successors {
        Successors::Named => agreement.stage.is_none() || !follow_ups.is_empty(),
        Successors::Declared(stages) => {
            let made = follow_ups.iter().map(|offer| offer.contract.stage.as_ref());
            made.eq(stages.iter().map(Some))
        }
    };
    match checked.is_some_and(goes_on) {
        true => Ok(()),
        false => Err(Refusal::AgreementNotChecked { handoff: handoff.id }),
    }
}

/// Ending this hop and starting the next ones is one decision, so it is one atomic step.
fn completed(
    handoff: &Handoff,
    claim: &Claim,
    result: Body,
    follow_ups: Vec<Offer>,
    view: &dyn View,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Refusal> {
    if follow_ups.len() > FOLLOW_UPS_MAX {
        return Err(Refusal::InvalidFollowUps("a completion takes at most 100 follow-ups"));
    }
    let mut next = None;
    let mut calls = Vec::new();
    for offer in &follow_ups {
        offer::check_terms(offer, now)?;
        let follows = (offer.previous, offer.hop) == (Some(handoff.envelope), handoff.hop + 1);
        let lifts_known = handoff.lifts.iter().all(|lift| offer.lifted.contains(&lift.constraint));
        if offer.from != claim.agent || !follows || !lifts_known {
            return Err(Refusal::TaskMoved(handoff.task_id));
        }
        if offer.key.is_some() {
            return Err(Refusal::InvalidFollowUps(
                "a completion is safe to repeat as a whole, so its follow-ups take no key",
            ));
        }
        match (&offer.task, offer.control) {
            (OfferTask::Existing(task), Control::Passed) if *task == handoff.task_id => {
                if next.replace(offer.handoff).is_some() {
                    return Err(Refusal::InvalidFollowUps(
                        "a task has one owner, so a completion can transfer it only once",
                    ));
                }
            }
            (OfferTask::New { parent, .. }, Control::Awaited)
                if *parent == Some(handoff.task_id) =>
            {
                calls.push(offer.handoff);
            }
            (OfferTask::Existing(_) | OfferTask::New { .. }, _) => {
                return Err(Refusal::InvalidFollowUps(
                    "a follow-up transfers this task or calls below it",
                ));
            }
        }
    }
    let failed_before = view.registry().breakers.contains_key(&handoff.to);
    let recovers = failed_before.then(|| handoff.to.clone());
    let event = Event::Completed { fence: claim.fence, result: result.hash, next, calls, recovers };
    let actor = Actor::Agent(claim.agent.clone());
    let mut events = vec![NewEvent::on(handoff, actor, event).with(Some(result))];
    let blocked = view.task(handoff.task_id).is_some_and(Task::is_blocked);
    for mut offer in follow_ups {
        offer.needs_approval |= blocked;
        let probe = escalate::admit(&mut offer, true, view, now)?;
        events.extend(offer::offered(offer, probe));
    }
    Ok(events)
}

#[derive(Clone, Copy)]
struct Retry {
    asked_ms: Option<u64>,
    entropy: u64,
}

fn failed(
    handoff: &Handoff,
    claim: &Claim,
    class: FailureClass,
    failure: Body,
    retry: Retry,
    view: &dyn View,
    now: Timestamp,
) -> Vec<NewEvent> {
    let event = Event::AttemptFailed { fence: claim.fence, class, failure: failure.hash };
    let actor = Actor::Agent(claim.agent.clone());
    let failures = handoff.failures + 1;
    let due = handoff.terms.retry_at(now, failures, retry.asked_ms, retry.entropy);
    let then = match class {
        FailureClass::Permanent => {
            escalate::give_up(handoff, DeadReason::PermanentFailure, view, now)
        }
        FailureClass::Retryable | FailureClass::Unknown => {
            if failures >= handoff.terms.attempts {
                escalate::give_up(handoff, DeadReason::AttemptsExhausted, view, now)
            } else {
                Event::RetryScheduled { due }
            }
        }
    };
    vec![
        NewEvent::on(handoff, actor, event).with(Some(failure)),
        NewEvent::on(handoff, Actor::Broker, then),
    ]
}

/// A stale claim is powerless, with two exceptions that change nothing: repeating the call that
/// ended the claim gets the same answer again, and a late report is kept in the log as late.
fn stale(handoff: &Handoff, proof: Proof, act: Act) -> Decision {
    let matches = |a: &&Attempt| a.claim_id == proof.claim_id && a.fence == proof.fence;
    let attempt = handoff.attempts.iter().rev().find(matches);
    let ended = attempt.and_then(|attempt| attempt.ended.as_ref());
    let ended_by = |how: AttemptEnd, report: Option<&Body>| {
        ended.is_some_and(|ended| {
            ended.how == how && ended.report.map(|(_, hash)| hash) == report.map(|body| body.hash)
        })
    };
    let repeats = match &act {
        Act::Complete { result, .. } => ended_by(AttemptEnd::Completed, Some(result)),
        Act::Fail { class, failure, .. } => ended_by((*class).into(), Some(failure)),
        Act::Release => ended_by(AttemptEnd::Released, None),
        Act::Decline { reason } => ended_by(AttemptEnd::Declined, reason.as_ref()),
        Act::Start
        | Act::ReadBack(_)
        | Act::Heartbeat
        | Act::Progress { .. }
        | Act::Reserve { .. }
        | Act::Unreserve { .. } => false,
    };
    if repeats {
        return Decision::unchanged(Outcome::repeated(handoff.id));
    }
    let refusal = match (&act, ended.map(|ended| ended.how)) {
        (Act::Complete { .. }, Some(AttemptEnd::Completed)) => {
            Refusal::AlreadyCompleted { handoff: handoff.id }
        }
        _ => Refusal::StaleClaim { handoff: handoff.id, state: handoff.state.name() },
    };
    let report = match act {
        Act::Complete { result, .. } => Some(result),
        Act::Fail { failure, .. } => Some(failure),
        Act::Start
        | Act::ReadBack(_)
        | Act::Heartbeat
        | Act::Progress { .. }
        | Act::Decline { .. }
        | Act::Release
        | Act::Reserve { .. }
        | Act::Unreserve { .. } => None,
    };
    let mut decision = Decision::from(refusal);
    // Once for each attempt: a stuck worker that repeats itself must not fill the log.
    if let (Some(attempt), Some(report)) = (attempt.filter(|attempt| !attempt.late), report) {
        let event =
            Event::LateReport { claim_id: proof.claim_id, fence: proof.fence, report: report.hash };
        let actor = Actor::Agent(attempt.agent.clone());
        decision.events.push(NewEvent::on(handoff, actor, event).with(Some(report)));
    }
    decision
}
