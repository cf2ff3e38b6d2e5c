// SPDX-License-Identifier: Apache-2.0
//! What only the holder of a claim may do. Every call shows the claim id and the fence; if either
//! differs, or the hard deadline has passed, the claim is stale.

use super::question::{self, Ask};
use super::talk::{self, Attach};
use super::{Case, Changes, Footprint, Offer, OfferTask, Returns, Stated, claim, escalate, offer};
use crate::budget::Spent;
use crate::canonical::Body;
use crate::contract::{Checked, Successors};
use crate::decide::{Decision, NewEvent, Outcome};
use crate::envelope::{Control, Target};
use crate::event::{Acknowledged, Actor, DeadReason, Event, FailureClass, SpentBy};
use crate::handoff::{Attempt, AttemptEnd, Claim, Handoff, State};
use crate::ids::{AgentId, ClaimId, Fence, HandoffId, Hash, Resource, TaskId, Timestamp};
use crate::quota;
use crate::refusal::Refusal;
use crate::registry::Signed;
use crate::report::authored;
use crate::reserve::RESOURCES_MAX;
use crate::task::Task;
use crate::tree::Hangs;

/// How many handoffs one completion may create.
pub const FOLLOW_UPS_MAX: usize = 100;

/// What only the holder of a claim may do. If somebody in particular asks, it must be the holder.
#[derive(Debug, Clone)]
pub struct Held {
    pub handoff: HandoffId,
    pub proof: Proof,
    /// The holder's signature over what it does, if it gave one.
    pub signed: Option<Signed>,
    pub act: Act,
    /// What the attempt used that ends by this, if it says so.
    pub used: Option<UsedBy>,
}

/// What an attempt used, and for whom that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct UsedBy {
    pub spent: Spent,
    /// The tasks above its own.
    pub above: Vec<TaskId>,
}

/// Who acts on a claim, and its signature over what it does, if it gave one.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    pub agent: AgentId,
    pub signed: Option<Signed>,
}

/// What shows that somebody is the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    pub claim_id: ClaimId,
    pub fence: Fence,
}

// One is on its way at a time, so the room of the largest costs nothing.
#[expect(clippy::large_enum_variant)]
#[derive(Debug, Clone)]
pub enum Act {
    Start,
    /// Starts, having repeated what binds: the address of it.
    ReadBack(Hash),
    Heartbeat,
    Progress {
        percent: Option<u8>,
        note: Option<Body>,
    },
    Complete {
        result: Body,
        follow_ups: Vec<Offer>,
        /// What the result was held against. Where something was agreed, a completion without it
        /// is refused.
        checked: Option<Checked>,
    },
    Fail {
        class: FailureClass,
        failure: Body,
        retry_after_ms: Option<u64>,
        entropy: u64,
    },
    Decline {
        reason: Option<Body>,
    },
    Release,
    /// Asks and waits: the claim ends, and the answer brings a new one.
    Ask(Ask),
    /// Extends the lease, having taken note of the messages up to this one.
    Acknowledge {
        up_to: u32,
    },
    /// Leaves a piece of work that is there already.
    Attach(Attach),
    /// Gives the work back, to be claimed from a time on.
    PutBack {
        until: Timestamp,
        reason: Option<Body>,
    },
    /// Takes resources for itself as long as the claim holds.
    Reserve {
        resources: Vec<Resource>,
    },
    Unreserve {
        resources: Vec<Resource>,
    },
}

impl Act {
    /// The word that a signed acknowledgment has for this, and the address of what it covers.
    #[must_use]
    pub fn acknowledgment(&self) -> Option<(&'static str, Option<Hash>)> {
        match self {
            Self::Start => Some(("accepted", None)),
            Self::ReadBack(repeated) => Some(("accepted", Some(*repeated))),
            Self::Complete { result, .. } => Some(("completed", Some(authored(result)))),
            Self::Fail { failure, .. } => Some(("failed", Some(failure.hash))),
            Self::Heartbeat
            | Self::Progress { .. }
            | Self::Decline { .. }
            | Self::Release
            | Self::Ask(_)
            | Self::Acknowledge { .. }
            | Self::Attach(_)
            | Self::PutBack { .. }
            | Self::Reserve { .. }
            | Self::Unreserve { .. } => None,
        }
    }
}

impl Stated for Held {
    fn footprint(&self) -> Footprint<'_> {
        let named = Footprint::of_handoff(&self.handoff);
        let back = Footprint {
            returns: Returns::Again,
            breakers: Changes::OfNamed,
            reservations: Changes::OfNamed,
            ..Footprint::of_handoff(&self.handoff)
        };
        let above = self.used.as_ref().map_or(&[][..], |used| &used.above);
        match &self.act {
            Act::Start
            | Act::ReadBack(_)
            | Act::Heartbeat
            | Act::Progress { .. }
            | Act::Acknowledge { .. } => named,
            Act::Attach(_) => Footprint { brings_work: true, ..named },
            // The claim ends, and with it what it was to show about its agent.
            Act::Ask(_) => Footprint { breakers: Changes::OfNamed, ..named },
            Act::PutBack { .. } => {
                Footprint { breakers: Changes::OfNamed, reservations: Changes::OfNamed, ..named }
            }
            Act::Complete { follow_ups, .. } => Footprint {
                others: {
                    let mut others = offer::awaited(follow_ups);
                    others.extend(above);
                    others.extend(follow_ups.first().iter().flat_map(|offer| &offer.above));
                    others
                },
                offers: follow_ups,
                breakers: Changes::OfAny,
                reservations: Changes::OfNamed,
                brings_work: !follow_ups.is_empty(),
                ..named
            },
            // What uses up its tries counts against its target.
            Act::Fail { .. } => {
                Footprint { others: above.to_vec(), breakers: Changes::Always, ..back }
            }
            Act::Decline { .. } | Act::Release => back,
            Act::Reserve { .. } | Act::Unreserve { .. } => {
                Footprint { reservations: Changes::Always, ..named }
            }
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let Self { handoff: id, proof, act, .. } = self;
        let handoff = case.handoff(*id)?;
        // A claim that leaked is of no use to others: to them the handoff is not there.
        if let Some(agent) = case.by.agent() {
            let mut theirs = handoff.attempts.iter().filter(|a| a.agent == *agent).peekable();
            if theirs.peek().is_none() {
                return Err(Refusal::HandoffNotFound(*id));
            }
            if !theirs.any(|attempt| attempt.claim_id == proof.claim_id) {
                return Err(Refusal::StaleClaim { handoff: *id, state: handoff.state.name() });
            }
        }
        let current = handoff.state.claim().filter(|claim| {
            claim.claim_id == proof.claim_id
                && claim.fence == proof.fence
                && claim.fence.epoch() == case.view.epoch()
                && case.now < claim.hard_until
        });
        let Some(claim) = current else { return Ok(stale(handoff, *proof, act)) };
        let spent = self.spent(handoff, claim, case)?;
        let mut decision = act_as_holder(handoff, claim, act, self.used.as_ref(), case)?;
        // What an attempt used counts before what follows from it.
        decision.events.splice(0..0, spent);
        // What was there already was acknowledged then.
        if decision.outcome.as_ref().is_ok_and(|outcome| !outcome.repeated) {
            decision.events.splice(0..0, self.acknowledged(handoff, case));
        }
        Ok(decision)
    }
}

impl Held {
    /// What the attempt used, for its own task and all those above it.
    fn spent(
        &self,
        handoff: &Handoff,
        claim: &Claim,
        case: &Case<'_>,
    ) -> Result<Vec<NewEvent>, Refusal> {
        let ends = match self.act {
            Act::Complete { .. } | Act::Fail { .. } => true,
            Act::Start
            | Act::ReadBack(_)
            | Act::Heartbeat
            | Act::Progress { .. }
            | Act::Ask(_)
            | Act::Acknowledge { .. }
            | Act::Attach(_)
            | Act::PutBack { .. }
            | Act::Decline { .. }
            | Act::Release
            | Act::Reserve { .. }
            | Act::Unreserve { .. } => false,
        };
        let Some(used) = self.used.as_ref().filter(|_| ends) else { return Ok(Vec::new()) };
        let task = case.task(handoff.task_id)?;
        if used.above != task.above() {
            return Err(Refusal::TaskMoved(task.id));
        }
        let known = used.above.iter().filter(|id| case.view.task(**id).is_some());
        let event = Event::Spent(SpentBy { by: handoff.id, used: used.spent });
        let actor = Actor::Agent(claim.agent.clone());
        let all = std::iter::once(&task.id).chain(known);
        Ok(all.map(|id| NewEvent::on_task(*id, actor.clone(), event.clone())).collect())
    }

    /// The holder's own signature over what it does, which stands in the log before what it did.
    fn acknowledged(&self, handoff: &Handoff, case: &Case<'_>) -> Option<NewEvent> {
        let (agent, signed) = (case.by.agent()?, self.signed.clone()?);
        let (word, body) = self.act.acknowledgment()?;
        let event = Event::Acknowledged(Acknowledged {
            act: word.to_owned(),
            claim_id: self.proof.claim_id,
            fence: self.proof.fence,
            body,
            signed,
        });
        Some(NewEvent::on(handoff, Actor::Agent(agent.clone()), event))
    }
}

fn act_as_holder(
    handoff: &Handoff,
    claim: &Claim,
    act: &Act,
    used: Option<&UsedBy>,
    case: &Case<'_>,
) -> Result<Decision, Refusal> {
    let actor = || Actor::Agent(claim.agent.clone());
    let done = Outcome::of(handoff.id);
    read_back(handoff, act)?;
    Ok(match act {
        Act::Start | Act::ReadBack(_) => {
            if !matches!(handoff.state, State::Claimed(_)) {
                return Ok(Decision::unchanged(Outcome::repeated(handoff.id)));
            }
            let mut decision =
                Decision::of(vec![NewEvent::on(handoff, actor(), Event::Started)], done);
            decision.renewals.push(handoff.id);
            decision
        }
        Act::Heartbeat => {
            // With its task, so that the holder hears what became of that meanwhile.
            let done = Outcome { task: Some(handoff.task_id), ..done };
            let mut decision = Decision::unchanged(done);
            decision.renewals.push(handoff.id);
            decision
        }
        Act::Progress { percent, note } => {
            // Without a note progress is as light as a heartbeat, and always taken.
            if let Some(note) = note {
                quota::check(case.view, claim.agent.tenant(), 0, note.text().len())?;
            }
            let note_hash = note.as_ref().map(|body| body.hash);
            let event = Event::Progressed { percent: *percent, note: note_hash };
            Decision::of(vec![NewEvent::on(handoff, actor(), event).with(note.clone())], done)
        }
        Act::Complete { result, follow_ups, checked } => {
            agreed(handoff, checked.as_ref(), follow_ups)?;
            // Ending one and making one is no more in flight than before.
            if !follow_ups.is_empty() {
                let bytes = follow_ups.iter().map(|offer| offer.envelope.text().len()).sum();
                let more = follow_ups.len() - 1;
                quota::check(case.view, claim.agent.tenant(), more, bytes)?;
            }
            Decision::of(completed(handoff, claim, result, follow_ups, used, case)?, done)
        }
        Act::Fail { class, failure, retry_after_ms, entropy } => {
            let after = Retry { asked_ms: *retry_after_ms, entropy: *entropy };
            Decision::of(failed(handoff, claim, *class, failure, after, case), done)
        }
        Act::Decline { reason } => {
            Decision::of(claim::declined(handoff, &claim.agent, reason.as_ref(), case), done)
        }
        Act::Release => {
            let event = Event::Released { fence: claim.fence };
            Decision::of(vec![NewEvent::on(handoff, actor(), event)], done)
        }
        Act::Ask(ask) => Decision::of(vec![question::asked(handoff, claim, ask, case)?], done),
        Act::Acknowledge { up_to } => talk::acknowledge(handoff, claim, *up_to),
        Act::Attach(attach) => return talk::attach(handoff, claim, attach, case),
        Act::PutBack { until, reason } => {
            return talk::put_back(handoff, claim, *until, reason.as_ref());
        }
        Act::Reserve { resources } => return reserve(handoff, claim, resources, case),
        Act::Unreserve { resources } => {
            let had = case.view.registry().guards.reservations.get(&handoff.id);
            let has = |it: &Resource| had.is_some_and(|known| known.resources.contains(it));
            let resources: Vec<_> = resources.iter().filter(|it| has(it)).cloned().collect();
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
    resources: &[Resource],
    case: &Case<'_>,
) -> Result<Decision, Refusal> {
    let known = &case.view.registry().guards.reservations;
    let own = known.get(&handoff.id);
    let is_new = |it: &&Resource| !own.is_some_and(|own| own.resources.contains(it));
    let new: Vec<_> = resources.iter().filter(is_new).cloned().collect();
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
    let Some(expected) = handoff.contract.agreement.read_back else { return Ok(()) };
    if !matches!(handoff.state, State::Claimed(_)) {
        return Ok(());
    }
    match act {
        Act::ReadBack(repeated) if *repeated == expected => Ok(()),
        Act::Start
        | Act::ReadBack(_)
        | Act::Progress { .. }
        | Act::Complete { .. }
        | Act::Ask(_)
        | Act::Attach(_)
        | Act::Reserve { .. }
        | Act::Unreserve { .. } => Err(Refusal::ReadBackNeeded { handoff: handoff.id, expected }),
        Act::Heartbeat
        | Act::Acknowledge { .. }
        | Act::Fail { .. }
        | Act::Decline { .. }
        | Act::Release
        | Act::PutBack { .. } => Ok(()),
    }
}

/// A decision reads no schema and no pipeline; it takes nothing that was not held against them.
fn agreed(
    handoff: &Handoff,
    checked: Option<&Checked>,
    follow_ups: &[Offer],
) -> Result<(), Refusal> {
    let agreement = &handoff.contract.agreement;
    if !agreement.binds_result() {
        return Ok(());
    }
    let checked = checked.filter(|checked| checked.agreement == *agreement);
    let goes_on = |checked: &Checked| match &checked.successors {
        Successors::Named => agreement.route().is_none() || !follow_ups.is_empty(),
        Successors::Declared(stages) => {
            let made = follow_ups.iter().map(|offer| offer.contract.agreement.stage.as_ref());
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
    result: &Body,
    follow_ups: &[Offer],
    used: Option<&UsedBy>,
    case: &Case<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    if follow_ups.len() > FOLLOW_UPS_MAX {
        return Err(Refusal::InvalidFollowUps("a completion takes at most 100 follow-ups"));
    }
    let mut next = None;
    let mut calls = Vec::new();
    let made: Vec<_> = follow_ups.iter().map(|offer| offer.task.id()).collect();
    for offer in follow_ups {
        // What follows ends no later than the hop that it follows.
        offer::check_terms(offer, Some(handoff.expires_at), case.now)?;
        offer::waits_for_known(offer, &made, case)?;
        let follows = (offer.previous, offer.hop) == (Some(handoff.envelope), handoff.hop + 1);
        let lifts_known = handoff.lifts.iter().all(|lift| offer.lifted.contains(&lift.constraint));
        if offer.from != claim.agent || !follows || !lifts_known {
            return Err(Refusal::TaskMoved(handoff.task_id));
        }
        match (&offer.task, offer.control) {
            (OfferTask::Existing(task), Control::Passed) if *task == handoff.task_id => {
                if let Some(task) = case.view.task(*task) {
                    let above = offer.above.iter().filter_map(|id| case.view.task(*id));
                    offer::waits_for_none_above(offer, task.on_parent_end(), above)?;
                }
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
    let worker = Target::Agent(claim.agent.clone());
    let failed_before =
        case.view.registry().guards.breakers.get(&worker).is_some_and(|it| it.in_row > 0);
    let recovers = failed_before.then_some(worker);
    let event = Event::Completed { fence: claim.fence, result: result.hash, next, calls, recovers };
    let actor = Actor::Agent(claim.agent.clone());
    let mut events = vec![NewEvent::on(handoff, actor, event).with(Some(result.clone()))];
    let task = case.view.task(handoff.task_id);
    let exhausted = task.is_some_and(|task| is_exhausted(task, used, follow_ups, case));
    for offer in follow_ups {
        let admitted = escalate::admit(offer, true, case)?;
        let hangs = match (&offer.task, task) {
            (OfferTask::New { on_parent_end, .. }, Some(task)) => {
                Some(Hangs::below(task, Some(handoff), *on_parent_end)?)
            }
            (OfferTask::New { .. } | OfferTask::Existing(_), _) => None,
        };
        let blocked = task.is_some_and(Task::is_blocked);
        let setting = offer::Setting { blocked, limit: Some(handoff.expires_at), hangs };
        // The result is kept; what would follow waits for somebody to decide.
        let dead_end = exhausted.then_some(DeadReason::BudgetExhausted).or(offer.dead_end);
        events.extend(offer::offered(offer, admitted, setting, dead_end, None));
    }
    Ok(events)
}

/// Whether a task, or one above it, has nothing left to spend once this is counted.
fn is_exhausted(task: &Task, used: Option<&UsedBy>, follow_ups: &[Offer], case: &Case<'_>) -> bool {
    let spent = used.map(|used| used.spent).unwrap_or_default();
    let above = follow_ups.first().map_or(&[][..], |offer| &offer.above);
    let above = above.iter().filter_map(|id| case.view.task(*id));
    std::iter::once(task)
        .chain(above)
        .filter_map(|task| task.tree.left())
        .any(|left| left.less(spent).is_exhausted())
}

#[derive(Clone, Copy)]
pub(super) struct Retry {
    pub(super) asked_ms: Option<u64>,
    pub(super) entropy: u64,
}

pub(super) fn failed(
    handoff: &Handoff,
    claim: &Claim,
    class: FailureClass,
    failure: &Body,
    retry: Retry,
    case: &Case<'_>,
) -> Vec<NewEvent> {
    let event = Event::AttemptFailed { fence: claim.fence, class, failure: failure.hash };
    let actor = Actor::Agent(claim.agent.clone());
    let failures = handoff.failures + 1;
    let due = handoff.terms.retry_at(case.now, failures, retry.asked_ms, retry.entropy);
    let then = match class {
        FailureClass::Permanent => escalate::give_up(handoff, DeadReason::PermanentFailure, case),
        FailureClass::Retryable | FailureClass::Unknown => {
            if failures >= handoff.terms.attempts {
                escalate::give_up(handoff, DeadReason::AttemptsExhausted, case)
            } else {
                Event::RetryScheduled { due }
            }
        }
    };
    vec![
        NewEvent::on(handoff, actor, event).with(Some(failure.clone())),
        NewEvent::on(handoff, Actor::Broker, then),
    ]
}

/// A stale claim is powerless, with two exceptions that change nothing: repeating the call that
/// ended the claim gets the same answer again, and a late report is kept in the log as late.
fn stale(handoff: &Handoff, proof: Proof, act: &Act) -> Decision {
    let matches = |a: &&Attempt| a.claim_id == proof.claim_id && a.fence == proof.fence;
    let attempt = handoff.attempts.iter().rev().find(matches);
    let ended = attempt.and_then(|attempt| attempt.ended.as_ref());
    let ended_by = |how: AttemptEnd, report: Option<&Body>| {
        ended.is_some_and(|ended| {
            ended.how == how && ended.report.map(|(_, hash)| hash) == report.map(|body| body.hash)
        })
    };
    let repeats = match act {
        Act::Complete { result, .. } => ended_by(AttemptEnd::Completed, Some(result)),
        Act::Fail { class, failure, .. } => ended_by((*class).into(), Some(failure)),
        Act::Release => ended_by(AttemptEnd::Released, None),
        Act::Decline { reason } => ended_by(AttemptEnd::Declined, reason.as_ref()),
        Act::Ask(ask) => ended_by(AttemptEnd::Asked, Some(&ask.question)),
        Act::PutBack { reason, .. } => ended_by(AttemptEnd::PutBack, reason.as_ref()),
        Act::Start
        | Act::ReadBack(_)
        | Act::Heartbeat
        | Act::Progress { .. }
        | Act::Acknowledge { .. }
        | Act::Attach(_)
        | Act::Reserve { .. }
        | Act::Unreserve { .. } => false,
    };
    if repeats {
        return Decision::unchanged(Outcome::repeated(handoff.id));
    }
    let ended_well = ended.is_some_and(|ended| ended.how == AttemptEnd::Completed);
    let refusal = if ended_well && matches!(act, Act::Complete { .. }) {
        Refusal::AlreadyCompleted { handoff: handoff.id }
    } else {
        Refusal::StaleClaim { handoff: handoff.id, state: handoff.state.name() }
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
        | Act::Ask(_)
        | Act::Acknowledge { .. }
        | Act::Attach(_)
        | Act::PutBack { .. }
        | Act::Reserve { .. }
        | Act::Unreserve { .. } => None,
    };
    let mut decision = Decision::from(refusal);
    // Once for each attempt: a stuck worker that repeats itself must not fill the log.
    if let (Some(attempt), Some(report)) = (attempt.filter(|attempt| !attempt.late), report) {
        let event =
            Event::LateReport { claim_id: proof.claim_id, fence: proof.fence, report: report.hash };
        let actor = Actor::Agent(attempt.agent.clone());
        decision.events.push(NewEvent::on(handoff, actor, event).with(Some(report.clone())));
    }
    decision
}
