// SPDX-License-Identifier: Apache-2.0
//! What is said about a handoff while it is worked on: questions of its holders and their answers,
//! words to whoever holds it, notes of progress, and pieces of work that are there already. All of
//! it outlives the holder, and the next claim brings it. Texts are bodies of the log; here is where.

use std::sync::Arc;

use crate::ids::{AgentId, ArtifactName, Fence, Hash, Position, Timestamp};
use crate::talk::QuestionKind;

/// How many questions a handoff remembers; older ones are in the audit log only.
pub const QUESTIONS_KEPT_MAX: usize = 16;
/// How many notes of progress a handoff remembers.
pub const NOTES_KEPT_MAX: usize = 32;
/// How many messages may wait to be acknowledged, and how many are remembered in all.
pub const MESSAGES_MAX: usize = 32;
/// How many artifacts a handoff has, by name.
pub const ARTIFACTS_MAX: usize = 64;

/// Most handoffs have none of it, and their copies share what there is until it changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Talk(Option<Arc<Said>>);

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// The last one last.
    pub questions: Vec<Question>,
    pub notes: Vec<Noted>,
    pub messages: Vec<Message>,
    /// How many messages were sent in all.
    pub sent: u32,
    /// The newest of each name, in the order in which the names came.
    pub artifacts: Vec<Artifact>,
    /// The bytes of all artifacts, also of those that others took the place of.
    pub artifact_bytes: u64,
}

/// A question of a holder, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub kind: QuestionKind,
    pub asker: AgentId,
    /// The attempt in which it was asked.
    pub attempt: u32,
    pub asked_at: Timestamp,
    /// The address of the question, and where it is kept.
    pub question: Hash,
    pub question_pos: Position,
    /// By when it must be answered.
    pub answer_by: Option<Timestamp>,
    /// Whether it says what holds if nobody answers in time.
    pub has_default: bool,
    /// For how long the answer is kept for the asker alone.
    pub keep_ms: u64,
    /// Whether the asker comes for the answer by the handoff's id only.
    pub by_id: bool,
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Given {
        by: AgentId,
        at: Timestamp,
        answer: Hash,
        answer_pos: Position,
    },
    /// Nobody answered in time, and the asker's default stands.
    Default {
        at: Timestamp,
    },
}

impl Answer {
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Given { at, .. } | Self::Default { at } => *at,
        }
    }
}

/// What a holder said of its progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    /// Of the claim whose holder said it.
    pub fence: Fence,
    pub at: Timestamp,
    pub percent: Option<u8>,
    pub note_pos: Position,
}

/// A word to whoever holds the work.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// From 1, in the order in which they were sent.
    pub number: u32,
    pub by: AgentId,
    pub at: Timestamp,
    pub message: Hash,
    pub message_pos: Position,
    /// Who took note of it, and when.
    pub acknowledged: Option<(AgentId, Timestamp)>,
}

/// A piece of work that is there already.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    pub name: ArtifactName,
    /// What it is, such as `text/markdown`.
    pub kind: String,
    /// Which one of its name it is, from 1.
    pub version: u32,
    pub by: AgentId,
    pub attempt: u32,
    pub fence: Fence,
    pub at: Timestamp,
    pub artifact: Hash,
    pub artifact_pos: Position,
    pub bytes: u64,
}

impl Talk {
    pub(super) fn edit(&mut self) -> &mut Said {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// What there is, if anything.
    #[must_use]
    pub fn said(&self) -> Option<&Said> {
        self.0.as_deref()
    }

    #[must_use]
    pub fn questions(&self) -> &[Question] {
        self.0.as_ref().map_or(&[], |said| &said.questions)
    }

    #[must_use]
    pub fn notes(&self) -> &[Noted] {
        self.0.as_ref().map_or(&[], |said| &said.notes)
    }

    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.0.as_ref().map_or(&[], |said| &said.messages)
    }

    #[must_use]
    pub fn artifacts(&self) -> &[Artifact] {
        self.0.as_ref().map_or(&[], |said| &said.artifacts)
    }

    /// Messages that no holder took note of yet.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Message> {
        self.messages().iter().filter(|message| message.acknowledged.is_none())
    }

    #[must_use]
    pub fn artifact(&self, name: &ArtifactName) -> Option<&Artifact> {
        self.artifacts().iter().find(|artifact| artifact.name == *name)
    }
}

impl From<Said> for Talk {
    fn from(said: Said) -> Self {
        Self((said != Said::default()).then(|| Arc::new(said)))
    }
}

impl Said {
    pub(super) fn ask(&mut self, question: Question) {
        push_within(&mut self.questions, question, QUESTIONS_KEPT_MAX);
    }

    pub(super) fn answer(&mut self, answer: Answer) {
        if let Some(question) = self.questions.last_mut() {
            question.answer.get_or_insert(answer);
        }
    }

    pub(super) fn note(&mut self, noted: Noted) {
        push_within(&mut self.notes, noted, NOTES_KEPT_MAX);
    }

    /// The oldest that was acknowledged makes room.
    pub(super) fn send(&mut self, message: Message) {
        if self.messages.len() >= MESSAGES_MAX {
            let old = self.messages.iter().position(|message| message.acknowledged.is_some());
            self.messages.remove(old.unwrap_or(0));
        }
        self.sent = message.number;
        self.messages.push(message);
    }

    pub(super) fn acknowledge(&mut self, up_to: u32, by: &AgentId, at: Timestamp) {
        for message in self.messages.iter_mut().filter(|message| message.number <= up_to) {
            message.acknowledged.get_or_insert_with(|| (by.clone(), at));
        }
    }

    pub(super) fn attach(&mut self, artifact: Artifact) {
        self.artifact_bytes += artifact.bytes;
        match self.artifacts.iter_mut().find(|known| known.name == artifact.name) {
            Some(known) => *known = artifact,
            None => self.artifacts.push(artifact),
        }
    }
}

/// The oldest makes room.
fn push_within<T>(list: &mut Vec<T>, item: T, max: usize) {
    if list.len() >= max {
        list.remove(0);
    }
    list.push(item);
}
