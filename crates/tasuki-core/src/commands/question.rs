// SPDX-License-Identifier: Apache-2.0
//! A holder asks and waits, somebody answers, and the work goes on. Asking gives the claim up and
//! keeps the task: no lease runs, and the answer brings a new claim with a new fence.

use super::{Case, Footprint, Stated, held};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, Asked, Event, FailureClass};
use crate::handoff::talk::{self, Question};
use crate::handoff::{Claim, Handoff, State};
use crate::ids::{AgentId, HandoffId, Hash, Timestamp};
use crate::refusal::Refusal;
use crate::report::FailureReport;
use crate::talk::{ANSWER_MS_MIN, KEEP_MS_MAX, QuestionKind};
use crate::terms::WORK_MS_MAX;

/// What a holder asks, and what follows.
#[derive(Debug, Clone)]
pub struct Ask {
    pub kind: QuestionKind,
    pub question: Body,
    /// How long it may wait for its answer; without it, until the hard deadline.
    pub answer_ms: Option<u64>,
    /// Whether the question says what holds if nobody answers in time; if not, the attempt fails.
    pub has_default: bool,
    /// For how long the answer is kept for the asker alone; without it, for as long as its lease was.
    pub keep_ms: Option<u64>,
    /// Whether the asker comes for the answer by the handoff's id only, so that nobody else of the
    /// same name takes it when asking for any work.
    pub by_id: bool,
}

/// Answers the question that a handoff waits with.
#[derive(Debug, Clone)]
pub struct Answer {
    pub handoff: HandoffId,
    /// The address of the question. The answer was held against what that one wants.
    pub question: Hash,
    pub answer: Body,
    /// Whether the one who answers may decide about the handoff's target, whoever it is.
    pub by_right: bool,
}

/// The event by which a holder asks.
pub(super) fn asked(
    handoff: &Handoff,
    claim: &Claim,
    ask: &Ask,
    case: &Case<'_>,
) -> Result<NewEvent, Refusal> {
    let within = |name: &str, ms: u64, max: u64| match (ANSWER_MS_MIN..=max).contains(&ms) {
        true => Ok(ms),
        false => {
            let problem = format!("{name} is {ms}, expected {ANSWER_MS_MIN} to {max}");
            Err(Refusal::InvalidTerms(problem))
        }
    };
    let answer_ms = ask.answer_ms.map(|ms| within("answer_ms", ms, WORK_MS_MAX)).transpose()?;
    if ask.has_default && answer_ms.is_none() {
        let problem = "a default needs answer_ms, after which it holds";
        return Err(Refusal::InvalidTerms(problem.to_owned()));
    }
    let keep_ms =
        ask.keep_ms.map_or(Ok(claim.lease_ms), |ms| within("keep_ms", ms, KEEP_MS_MAX))?;
    let event = Event::Asked(Asked {
        fence: claim.fence,
        kind: ask.kind,
        question: ask.question.hash,
        answer_by: answer_ms.map(|ms| case.now.plus_ms(ms)),
        has_default: ask.has_default,
        keep_ms,
        by_id: ask.by_id,
    });
    let actor = Actor::Agent(claim.agent.clone());
    Ok(NewEvent::on(handoff, actor, event).with(Some(ask.question.clone())))
}

impl Stated for Answer {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_handoff(&self.handoff)
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, by) = (self.handoff, case.agent());
        let handoff = case.handoff(id)?;
        let question = handoff.talk.questions().last();
        let question = question.ok_or(Refusal::NoQuestion { handoff: id })?;
        may_speak(handoff, by, Some(&question.asker), self.by_right, "answer", case)?;
        let State::InputRequired(asking) = &handoff.state else {
            return self.late(question, by);
        };
        if question.question != self.question {
            return Err(Refusal::NoQuestion { handoff: id });
        }
        if case.now >= asking.due_at() {
            return Err(Refusal::DeadlinePassed);
        }
        let event = Event::Answered {
            answer: self.answer.hash,
            kept_until: kept_until(question, &asking.claim, case.now),
        };
        let event = NewEvent::on(handoff, case.actor(), event).with(Some(self.answer.clone()));
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}

impl Answer {
    /// Whoever repeats its answer gets the same reply; another answer comes too late.
    fn late(&self, question: &Question, by: &AgentId) -> Result<Decision, Refusal> {
        let handoff = self.handoff;
        match &question.answer {
            _ if question.question != self.question => Err(Refusal::NoQuestion { handoff }),
            Some(talk::Answer::Given { by: first, answer, .. })
                if first == by && *answer == self.answer.hash =>
            {
                Ok(Decision::unchanged(Outcome::repeated(handoff)))
            }
            Some(talk::Answer::Given { .. } | talk::Answer::Default { .. }) => {
                Err(Refusal::AlreadyAnswered { handoff })
            }
            None => Err(Refusal::NoQuestion { handoff }),
        }
    }
}

/// Who may say something about work that somebody else does: its sender, who opened, decides about or
/// owns the task, and whoever has the right. Nobody does so to itself.
pub(super) fn may_speak(
    handoff: &Handoff,
    by: &AgentId,
    worker: Option<&AgentId>,
    by_right: bool,
    wish: &'static str,
    case: &Case<'_>,
) -> Result<(), Refusal> {
    let task = case.task(handoff.task_id)?;
    let part = [&handoff.from, &task.opened_by, task.decider(), &task.owner].contains(&by);
    match worker != Some(by) && (part || by_right) {
        true => Ok(()),
        false => Err(Refusal::NotPermitted { handoff: handoff.id, agent: by.clone(), wish }),
    }
}

/// Until when an answer is kept for its asker. Its hard deadline stands.
fn kept_until(question: &Question, claim: &Claim, now: Timestamp) -> Timestamp {
    now.plus_ms(question.keep_ms).min(claim.hard_until)
}

/// What follows when nobody has answered in time: the default holds, or the attempt has failed.
pub(super) fn unanswered(handoff: &Handoff, claim: &Claim, case: &Case<'_>) -> Vec<NewEvent> {
    let Some(question) = handoff.talk.questions().last() else { return Vec::new() };
    if question.has_default {
        let kept_until = kept_until(question, claim, case.now);
        let event = Event::AnswerDefaulted { kept_until };
        return vec![NewEvent::on(handoff, Actor::Broker, event)];
    }
    let failure = Body::of(&FailureReport {
        handoff_id: handoff.id,
        action: crate::envelope::Action::Failed,
        class: FailureClass::Retryable,
        kind: "question_unanswered".to_owned(),
        message: "nobody answered the question in time".to_owned(),
        attempted: None,
        attempts: None,
        causes: Vec::new(),
        hint: None,
        retry_after_ms: None,
        details: crate::canonical::Object::default(),
        usage: None,
    });
    // The position of the question spreads retries as a random number would.
    let retry = held::Retry { asked_ms: None, entropy: question.question_pos.0 };
    let mut events = held::failed(handoff, claim, FailureClass::Retryable, &failure, retry, case);
    // It is the broker that says so.
    events[0].actor = Actor::Broker;
    events
}
