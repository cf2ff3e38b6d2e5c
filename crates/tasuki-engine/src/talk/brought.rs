// SPDX-License-Identifier: Apache-2.0
//! What a claim brings besides the envelope: questions with their answers, messages, what earlier
//! attempts said and why they failed, and the pieces of work that they left. All of it is data that
//! others wrote, and bounded.

use std::sync::Arc;

use serde_json::Value;
use tasuki_core::assembly::{Told, plain};
use tasuki_core::handoff::talk::{self, Artifact, Message, Question};
use tasuki_core::handoff::{Attempt, AttemptEnd, State};
use tasuki_core::join::Member;
use tasuki_core::report::{FailureReport, Note};
use tasuki_core::talk::{AnswerReport, MessageReport, QuestionReport};
use tasuki_core::{Body, Handoff, Position, Timestamp};
use tasuki_protocol as wire;
use tasuki_store::{Needs, Sight};

use crate::engine::Engine;
use crate::error::Error;

/// How many earlier attempts a claim brings, and how many of their notes.
const ATTEMPTS_MAX: usize = 8;
const NOTES_MAX: usize = 16;
/// How many bytes of texts a claim brings besides the envelope. What does not fit is counted.
const BYTES_MAX: usize = 64 * 1024;
/// The same for results that the work waited for.
const JOINED_BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Clone, Default)]
pub struct Brought {
    pub earlier_attempts: Vec<wire::EarlierAttempt>,
    pub questions: Vec<wire::Question>,
    pub messages: Vec<wire::HolderMessage>,
    pub artifacts: Vec<wire::Artifact>,
    /// What the tasks came to that it waited for, and what is missing of them.
    pub joined: Vec<wire::Joined>,
    pub gaps: Vec<wire::JoinGap>,
    /// How many texts there was no room for.
    pub left_out: u32,
}

fn positions(handoff: &Handoff) -> Vec<Position> {
    let mut at = Vec::new();
    for question in handoff.talk.questions() {
        at.push(question.question_pos);
        if let Some(talk::Answer::Given { answer_pos, .. }) = &question.answer {
            at.push(*answer_pos);
        }
    }
    at.extend(heard_of(handoff).map(|message| message.message_pos));
    at.extend(earlier(handoff).filter_map(failure_pos));
    at.extend(handoff.talk.notes().iter().rev().take(NOTES_MAX).map(|noted| noted.note_pos));
    let artifacts = handoff.talk.artifacts().iter().filter(|it| it.bytes <= BYTES_MAX as u64);
    at.extend(artifacts.map(|artifact| artifact.artifact_pos));
    at.extend(handoff.joined().iter().filter_map(|member| member.result_pos));
    at
}

/// The messages that this attempt has to know of: those that nobody took note of, and those that only
/// the attempts before it did.
fn heard_of(handoff: &Handoff) -> impl Iterator<Item = &Message> {
    let now = handoff.attempts.last();
    let of_it =
        handoff.attempts.iter().filter(move |it| now.is_some_and(|now| now.number == it.number));
    let began = of_it.map(|it| it.claimed_at).min();
    handoff.talk.messages().iter().filter(move |message| {
        let known = message.acknowledged.as_ref();
        !known.is_some_and(|(by, at)| {
            now.is_some_and(|now| now.agent == *by) && began.is_some_and(|began| *at > began)
        })
    })
}

/// The attempts before the one that is under way, the last one first.
fn earlier(handoff: &Handoff) -> impl Iterator<Item = &Attempt> {
    let current = handoff.state.claim().map(|claim| claim.fence);
    let others = handoff.attempts.iter().rev().filter(move |it| Some(it.fence) != current);
    others.take(ATTEMPTS_MAX)
}

fn failure_pos(attempt: &Attempt) -> Option<Position> {
    let ended = attempt.ended.as_ref()?;
    match ended.how {
        AttemptEnd::FailedRetryable | AttemptEnd::FailedPermanent | AttemptEnd::FailedUnknown => {
            ended.report.map(|(position, _)| position)
        }
        AttemptEnd::Completed
        | AttemptEnd::Declined
        | AttemptEnd::Released
        | AttemptEnd::Asked
        | AttemptEnd::PutBack
        | AttemptEnd::LostSilence
        | AttemptEnd::LostHardDeadline
        | AttemptEnd::LostRestored
        | AttemptEnd::LostRevoked
        | AttemptEnd::Cancelled
        | AttemptEnd::Aborted => None,
    }
}

/// Texts as long as there is room for them.
struct Room<'s> {
    sight: &'s Sight,
    left: usize,
    left_out: u32,
}

impl<'s> Room<'s> {
    fn take(&mut self, at: Position) -> Option<&'s Body> {
        let body = self.sight.body(at)?;
        match self.left.checked_sub(body.text().len()) {
            Some(left) => {
                self.left = left;
                Some(body)
            }
            None => {
                self.left_out += 1;
                None
            }
        }
    }

    fn read<T: serde::de::DeserializeOwned>(&mut self, at: Position) -> Option<T> {
        serde_json::from_str(self.take(at)?.text()).ok()
    }
}

impl Brought {
    /// Where everything is that a claim of this handoff may bring.
    pub(crate) fn positions(handoff: &Handoff) -> Vec<Position> {
        let said = handoff.attempts.len() > 1 || handoff.talk.said().is_some();
        match said || !handoff.joined().is_empty() {
            true => positions(handoff),
            false => Vec::new(),
        }
    }

    /// The same for a model, in the order in which it matters. All of it is what others wrote.
    pub(crate) fn told(&self) -> Vec<(String, Vec<Told>)> {
        let told = |about: String, text: &str| Told { about, text: text.to_owned() };
        let mut questions = Vec::new();
        for it in &self.questions {
            let asked = it.text.as_deref().unwrap_or("(not shown)");
            questions.push(told(format!("{} asked", it.asked_by.name()), asked));
            let answer = it.answer.as_ref().map(written).unwrap_or_default();
            questions.push(match (&it.answer, &it.answered_by) {
                (Some(_), Some(by)) => told(format!("{} answered", by.name()), &answer),
                (Some(_), None) => told("nobody answered, so this holds".into(), &answer),
                (None, _) => told("nobody has answered".into(), ""),
            });
        }
        let messages = self
            .messages
            .iter()
            .filter_map(|it| Some(told(format!("{} says", it.by.name()), it.text.as_deref()?)));
        let mut attempts = Vec::new();
        for it in &self.earlier_attempts {
            let ended = it.ended.as_deref().unwrap_or("not ended");
            let why = it.failure.as_ref().map_or("", |failure| failure.message.as_str());
            attempts
                .push(told(format!("attempt {} by {}, {ended}", it.attempt, it.agent.name()), why));
            attempts.extend(it.notes.iter().map(|note| told("its note".into(), &note.note)));
        }
        let artifacts = self.artifacts.iter().map(|it| {
            let content = it.content.as_ref().map(written).unwrap_or_default();
            let (name, kind) = (plain(it.name.as_str()), plain(&it.kind));
            told(format!("{name} ({kind}, by {})", it.by.name()), &content)
        });
        let joined = self.joined.iter().filter_map(|it| {
            let by = it.handoff_id.map_or_else(String::new, |id| format!(", {id}"));
            Some(told(format!("result of {}{by}", it.task_id), it.output.as_ref()?.get()))
        });
        let missing =
            self.gaps.iter().map(|gap| told(plain(&gap.reference), &gap.reason)).collect();
        let sections: [(&str, Vec<Told>); 6] = [
            ("Results that this work waited for", joined.collect()),
            ("What is missing", missing),
            ("Questions and answers", questions),
            ("Messages to whoever does this work", messages.collect()),
            ("Earlier attempts", attempts),
            ("Work that is there already", artifacts.collect()),
        ];
        let some = sections.into_iter().filter(|(_, told)| !told.is_empty());
        some.map(|(heading, told)| (heading.to_owned(), told)).collect()
    }

    /// What a claim brings, from the bodies in sight. What is needed to go on comes first.
    pub(crate) fn of(handoff: &Handoff, sight: &Sight) -> Self {
        let mut room = Room { sight, left: BYTES_MAX, left_out: 0 };
        let questions = handoff.talk.questions().iter().rev();
        let mut questions: Vec<_> = questions.map(|it| question(handoff, it, &mut room)).collect();
        questions.reverse();
        let messages = heard_of(handoff).map(|it| message(it, &mut room)).collect();
        let mut attempts: Vec<_> = earlier(handoff).map(|it| attempt(it, &mut room)).collect();
        let mut notes = handoff.talk.notes().iter().rev();
        for noted in notes.by_ref().take(NOTES_MAX) {
            let Some(place) = earlier(handoff).position(|it| it.fence == noted.fence) else {
                continue;
            };
            if let Some(Note { text }) = room.read(noted.note_pos) {
                let note = wire::ProgressNote { at: noted.at, percent: noted.percent, note: text };
                attempts[place].notes.insert(0, note);
            }
        }
        room.left_out += u32::try_from(notes.count()).unwrap_or(u32::MAX);
        attempts.reverse();
        let artifacts = handoff.talk.artifacts().iter().rev();
        let mut artifacts: Vec<_> =
            artifacts.map(|it| artifact(it, room.take(it.artifact_pos))).collect();
        artifacts.reverse();
        let mut results = Room { sight, left: JOINED_BYTES_MAX, left_out: 0 };
        let joined: Vec<_> = handoff.joined().iter().map(|it| member(it, &mut results)).collect();
        let gaps = handoff.joined().iter().filter_map(Member::gap);
        let gaps = gaps.map(|(reference, reason)| wire::JoinGap { reference, reason }).collect();
        let left_out = room.left_out + results.left_out;
        Self { joined, gaps, earlier_attempts: attempts, questions, messages, artifacts, left_out }
    }
}

fn member(known: &Member, room: &mut Room<'_>) -> wire::Joined {
    wire::Joined {
        task_id: known.task_id,
        came_to: known.came_to,
        handoff_id: known.handoff_id,
        result: known.result,
        output: known.result_pos.and_then(|at| room.take(at)).map(Body::json),
    }
}

/// A value as a text: texts as they are.
fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn question(handoff: &Handoff, asked: &Question, room: &mut Room<'_>) -> wire::Question {
    let report: Option<QuestionReport> = room.read(asked.question_pos);
    let default = report.as_ref().and_then(|report| report.default.clone());
    let schema = report.as_ref().and_then(QuestionReport::answer_schema);
    let (answered_by, answer) = match &asked.answer {
        Some(talk::Answer::Given { by, answer_pos, .. }) => {
            let answer: Option<AnswerReport> = room.read(*answer_pos);
            (Some(by.clone()), answer.map(|answer| answer.answer))
        }
        Some(talk::Answer::Default { .. }) => (None, default.clone()),
        None => (None, None),
    };
    let (text, details) = report.map(|report| (report.text, report.details)).unzip();
    wire::Question {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        question: asked.question,
        kind: asked.kind,
        text,
        details: details.unwrap_or_default(),
        schema,
        default,
        asked_by: asked.asker.clone(),
        attempt: asked.attempt,
        asked_at: asked.asked_at,
        answer_by: asked.answer_by,
        answered_at: asked.answer.as_ref().map(talk::Answer::at),
        answered_by,
        answer,
    }
}

/// The question that a handoff waits with, if it does.
pub(super) fn open_question(
    handoff: &Arc<Handoff>,
    sight: &Sight,
    now: Timestamp,
) -> Option<wire::OpenQuestion> {
    let State::InputRequired(asking) = &handoff.state else { return None };
    let asked = handoff.talk.questions().last()?;
    let mut room = Room { sight, left: usize::MAX, left_out: 0 };
    Some(wire::OpenQuestion {
        question: question(handoff, asked, &mut room),
        from_agent: handoff.from.clone(),
        to: handoff.to.clone(),
        correlation_id: handoff.contract.correlation_id.clone(),
        answer_left_ms: asking.due_at().ms_after(now),
    })
}

fn message(sent: &Message, room: &mut Room<'_>) -> wire::HolderMessage {
    let report: Option<MessageReport> = room.read(sent.message_pos);
    let (text, details) = report.map(|report| (report.text, report.details)).unzip();
    let (acknowledged_by, acknowledged_at) = sent.acknowledged.clone().unzip();
    wire::HolderMessage {
        number: sent.number,
        by: sent.by.clone(),
        at: sent.at,
        text,
        details: details.unwrap_or_default(),
        acknowledged_by,
        acknowledged_at,
    }
}

fn attempt(attempt: &Attempt, room: &mut Room<'_>) -> wire::EarlierAttempt {
    let failure: Option<FailureReport> = failure_pos(attempt).and_then(|at| room.read(at));
    wire::EarlierAttempt {
        attempt: attempt.number,
        agent: attempt.agent.clone(),
        claimed_at: attempt.claimed_at,
        ended_at: attempt.ended.as_ref().map(|ended| ended.at),
        ended: attempt.ended.as_ref().map(|ended| ended.how.to_string()),
        failure,
        notes: Vec::new(),
    }
}

/// A piece of work, with its content where that is at hand.
pub(super) fn artifact(known: &Artifact, body: Option<&Body>) -> wire::Artifact {
    let content = body.and_then(|body| {
        let mut report: Value = serde_json::from_str(body.text()).ok()?;
        report.get_mut("content").map(Value::take)
    });
    wire::Artifact {
        name: known.name.clone(),
        kind: known.kind.clone(),
        version: known.version,
        by: known.by.clone(),
        attempt: known.attempt,
        at: known.at,
        artifact: known.artifact,
        bytes: known.bytes,
        content,
    }
}

impl Engine {
    pub(super) async fn messages_of(
        &self,
        handoff: &Handoff,
    ) -> Result<wire::HolderMessages, Error> {
        let at = handoff.talk.messages().iter().map(|message| message.message_pos);
        let sight = self.look(Needs::default().and_bodies(at)).await?;
        let mut room = Room { sight: &sight, left: usize::MAX, left_out: 0 };
        let messages = handoff.talk.messages().iter().map(|it| message(it, &mut room)).collect();
        let correlation_id = handoff.contract.correlation_id.clone();
        Ok(wire::HolderMessages { correlation_id, messages })
    }

    /// What the next holder of a handoff, or the present one, was told besides the envelope.
    pub(crate) async fn brought(&self, handoff: &Handoff) -> Result<Brought, Error> {
        let at = Brought::positions(handoff);
        let sight = self.look(Needs::default().and_bodies(at)).await?;
        Ok(Brought::of(handoff, &sight))
    }

    /// Messages that the holder has not taken note of yet.
    pub(crate) async fn unacknowledged(
        &self,
        handoff: &Handoff,
    ) -> Result<Vec<wire::HolderMessage>, Error> {
        let at: Vec<_> = handoff.talk.unacknowledged().map(|it| it.message_pos).collect();
        if at.is_empty() {
            return Ok(Vec::new());
        }
        let sight = self.look(Needs::default().and_bodies(at)).await?;
        let mut room = Room { sight: &sight, left: BYTES_MAX, left_out: 0 };
        Ok(handoff.talk.unacknowledged().map(|it| message(it, &mut room)).collect())
    }
}
