// SPDX-License-Identifier: Apache-2.0
//! What is said about a handoff while it is worked on, as it is stored: questions and answers,
//! messages, and artifacts. Each is the body of its event, which carries its hash.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::canonical::Object;
use crate::event::words;
use crate::ids::{ArtifactName, HandoffId, Hash};

/// How long a question may wait for its answer, and an answer for its asker, at the least.
pub const ANSWER_MS_MIN: u64 = 100;
/// How long an answer is kept for its asker alone, at the most.
pub const KEEP_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// How many bytes a question may have with all that belongs to it, and an answer.
pub const QUESTION_BYTES_MAX: usize = 64 * 1024;
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// How many bytes an artifact may have, and all artifacts of a handoff in all their versions.
pub const ARTIFACT_BYTES_MAX: u64 = 256 * 1024;
pub const ARTIFACTS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many bytes the name of an artifact's type may have.
pub const ARTIFACT_TYPE_BYTES_MAX: usize = 128;

/// What a question wants.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Something that the asker must know.
    #[default]
    Input,
    /// Leave to do something.
    Authorization,
}

words!(QuestionKind { Input = "input", Authorization = "authorization" });

impl QuestionKind {
    /// What an answer must fit where the asker says nothing of it. Leave is given or refused by name,
    /// so that no text is taken for it by mistake.
    #[must_use]
    pub fn answer_schema(self) -> Option<Value> {
        match self {
            Self::Input => None,
            Self::Authorization => Some(json!({
                "type": "object",
                "required": ["granted"],
                "properties": { "granted": { "type": "boolean" } },
            })),
        }
    }
}

/// A question that a holder asks without giving up its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionReport {
    pub handoff_id: HandoffId,
    pub kind: QuestionKind,
    /// The question, for whoever reads it.
    pub text: String,
    /// More about it, for programs.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
    /// What the answer must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// What holds if nobody answers in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

impl QuestionReport {
    /// What an answer must fit.
    #[must_use]
    pub fn answer_schema(&self) -> Option<Value> {
        self.schema.clone().or_else(|| self.kind.answer_schema())
    }
}

/// The answer to a question: what somebody said, and to which question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerReport {
    pub handoff_id: HandoffId,
    /// The address of the question.
    pub question: Hash,
    pub answer: Value,
}

/// A message to the agent that holds the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageReport {
    pub handoff_id: HandoffId,
    pub text: String,
    /// More of it, for programs.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
}

/// A named piece of the work that is there before the result is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactReport {
    pub handoff_id: HandoffId,
    pub name: ArtifactName,
    /// What it is, such as `text/markdown`.
    #[serde(rename = "type")]
    pub kind: String,
    pub content: Value,
}
