// SPDX-License-Identifier: Apache-2.0
//! The stored form of what is said about a handoff.

use serde::{Deserialize, Serialize};
use tasuki_core::handoff::Talk;
use tasuki_core::handoff::talk::{Answer, Artifact, Message, Noted, Question, Said};
use tasuki_core::ids::{ArtifactName, Fence};
use tasuki_core::talk::QuestionKind;
use tasuki_core::{AgentId, Hash, Position, Timestamp};

#[derive(Serialize, Deserialize)]
pub(super) struct StoredTalk {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    questions: Vec<StoredQuestion>,
    /// The fence of the claim, when, how far in percent, and where the note is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<(Fence, i64, Option<u8>, Position)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<StoredMessage>,
    #[serde(default)]
    sent: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<StoredArtifact>,
    #[serde(default)]
    artifact_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredQuestion {
    kind: QuestionKind,
    asker: AgentId,
    attempt: u32,
    asked_ms: i64,
    question: Hash,
    question_at: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_by_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_default: bool,
    keep_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    by_id: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<StoredAnswer>,
}

/// When, and, unless the default holds, by whom, what, and where it is.
type StoredAnswer = (i64, Option<(AgentId, Hash, Position)>);

#[derive(Serialize, Deserialize)]
struct StoredMessage {
    number: u32,
    by: AgentId,
    at_ms: i64,
    message: Hash,
    message_at: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acknowledged: Option<(AgentId, i64)>,
}

#[derive(Serialize, Deserialize)]
struct StoredArtifact {
    name: ArtifactName,
    kind: String,
    version: u32,
    by: AgentId,
    attempt: u32,
    fence: Fence,
    at_ms: i64,
    artifact: Hash,
    artifact_at: Position,
    bytes: u64,
}

/// What there is to store, if anything.
pub(super) fn encode(talk: &Talk) -> Option<StoredTalk> {
    let said = talk.said()?;
    Some(StoredTalk {
        questions: said.questions.iter().map(encode_question).collect(),
        notes: said
            .notes
            .iter()
            .map(|noted| (noted.fence, noted.at.0, noted.percent, noted.note_pos))
            .collect(),
        messages: said.messages.iter().map(encode_message).collect(),
        sent: said.sent,
        artifacts: said.artifacts.iter().map(encode_artifact).collect(),
        artifact_bytes: said.artifact_bytes,
    })
}

pub(super) fn decode(stored: Option<StoredTalk>) -> Talk {
    let Some(stored) = stored else { return Talk::default() };
    let notes = stored.notes.into_iter().map(|(fence, at, percent, note_pos)| Noted {
        fence,
        at: Timestamp(at),
        percent,
        note_pos,
    });
    Talk::from(Said {
        questions: stored.questions.into_iter().map(decode_question).collect(),
        notes: notes.collect(),
        messages: stored.messages.into_iter().map(decode_message).collect(),
        sent: stored.sent,
        artifacts: stored.artifacts.into_iter().map(decode_artifact).collect(),
        artifact_bytes: stored.artifact_bytes,
    })
}

fn encode_question(question: &Question) -> StoredQuestion {
    StoredQuestion {
        kind: question.kind,
        asker: question.asker.clone(),
        attempt: question.attempt,
        asked_ms: question.asked_at.0,
        question: question.question,
        question_at: question.question_pos,
        answer_by_ms: question.answer_by.map(|time| time.0),
        has_default: question.has_default,
        keep_ms: question.keep_ms,
        by_id: question.by_id,
        answer: question.answer.as_ref().map(|answer| match answer {
            Answer::Given { by, at, answer, answer_pos } => {
                (at.0, Some((by.clone(), *answer, *answer_pos)))
            }
            Answer::Default { at } => (at.0, None),
        }),
    }
}

fn decode_question(stored: StoredQuestion) -> Question {
    Question {
        kind: stored.kind,
        asker: stored.asker,
        attempt: stored.attempt,
        asked_at: Timestamp(stored.asked_ms),
        question: stored.question,
        question_pos: stored.question_at,
        answer_by: stored.answer_by_ms.map(Timestamp),
        has_default: stored.has_default,
        keep_ms: stored.keep_ms,
        by_id: stored.by_id,
        answer: stored.answer.map(|(at, given)| match given {
            Some((by, answer, answer_pos)) => {
                Answer::Given { by, at: Timestamp(at), answer, answer_pos }
            }
            None => Answer::Default { at: Timestamp(at) },
        }),
    }
}

fn encode_message(message: &Message) -> StoredMessage {
    StoredMessage {
        number: message.number,
        by: message.by.clone(),
        at_ms: message.at.0,
        message: message.message,
        message_at: message.message_pos,
        acknowledged: message.acknowledged.as_ref().map(|(by, at)| (by.clone(), at.0)),
    }
}

fn decode_message(stored: StoredMessage) -> Message {
    Message {
        number: stored.number,
        by: stored.by,
        at: Timestamp(stored.at_ms),
        message: stored.message,
        message_pos: stored.message_at,
        acknowledged: stored.acknowledged.map(|(by, at)| (by, Timestamp(at))),
    }
}

fn encode_artifact(artifact: &Artifact) -> StoredArtifact {
    StoredArtifact {
        name: artifact.name.clone(),
        kind: artifact.kind.clone(),
        version: artifact.version,
        by: artifact.by.clone(),
        attempt: artifact.attempt,
        fence: artifact.fence,
        at_ms: artifact.at.0,
        artifact: artifact.artifact,
        artifact_at: artifact.artifact_pos,
        bytes: artifact.bytes,
    }
}

fn decode_artifact(stored: StoredArtifact) -> Artifact {
    Artifact {
        name: stored.name,
        kind: stored.kind,
        version: stored.version,
        by: stored.by,
        attempt: stored.attempt,
        fence: stored.fence,
        at: Timestamp(stored.at_ms),
        artifact: stored.artifact,
        artifact_pos: stored.artifact_at,
        bytes: stored.bytes,
    }
}
