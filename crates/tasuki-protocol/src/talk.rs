// SPDX-License-Identifier: Apache-2.0
//! What is said about a handoff while it is worked on: questions and answers, messages to the holder,
//! artifacts, and what earlier attempts left behind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tasuki_core::canonical::Object;
use tasuki_core::ids::{ArtifactName, CorrelationId};
use tasuki_core::report::FailureReport;
use tasuki_core::talk::QuestionKind;
use tasuki_core::{AgentId, ClaimId, Fence, HandoffId, Hash, Target, TaskId, Timestamp};

/// Asks a question and waits for the answer without holding the claim.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// `input`: something that the asker must know. `authorization`: leave to do something.
    #[serde(default)]
    pub kind: QuestionKind,
    /// The question, for whoever reads it.
    pub text: String,
    /// More about it, for programs.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
    /// The JSON Schema that the answer must fit. Without one, an answer to `authorization` is an object
    /// with a boolean `granted`, and an answer to `input` is any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// How long it may wait for its answer; without it, until the hard deadline of the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 2_592_000_000_i64))]
    pub answer_ms: Option<u64>,
    /// The answer that holds if nobody gives one within `answer_ms`. Without it the attempt fails then.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub default: Option<Value>,
    /// For how long the answer is kept for the asker alone; without it, for as long as its lease was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 86_400_000))]
    pub keep_ms: Option<u64>,
    /// The asker comes for the answer by the handoff's id only (`POST /v1/handoffs/{id}/claim`), so that
    /// no other process of the same name takes it along with other work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_id: bool,
}

/// `null` is an answer like any other.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Where a handoff is after its holder asked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AskReply {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    pub state: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// The address of the question.
    pub question: Hash,
}

/// Answers the question that a handoff waits with.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    pub by: AgentId,
    /// Any JSON that fits what the question asks for.
    #[serde(deserialize_with = "Value::deserialize")]
    pub answer: Value,
    /// The address of the question that is answered; without it, the one that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Hash>,
}

/// A question of a holder, and what became of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HolderQuestion")]
pub struct Question {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    /// The address of the question.
    pub question: Hash,
    pub kind: QuestionKind,
    /// The question itself; missing if it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
    /// What the answer must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The answer that holds if nobody gives one in time.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub default: Option<Value>,
    pub asked_by: AgentId,
    /// The attempt in which it was asked.
    pub attempt: u32,
    pub asked_at: Timestamp,
    /// By when it must be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_by: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
    /// Who answered; nobody if the asker's default took the place of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub answer: Option<Value>,
}

/// A question that waits for its answer, with what somebody must know to answer it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OpenQuestion {
    #[serde(flatten)]
    pub question: Question,
    pub from_agent: AgentId,
    pub to: Target,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// How much time is left to answer: until `answer_by` or the hard deadline of the attempt.
    pub answer_left_ms: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Questions {
    pub questions: Vec<OpenQuestion>,
    /// Give this as `before` to get the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<HandoffId>,
}

/// Which open questions are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuestions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<QuestionKind>,
    /// Only those of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only those about work that this agent sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// Only questions of handoffs before this one: where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<HandoffId>,
    /// How many at most, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Sends a word to whoever holds the work.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    pub by: AgentId,
    pub text: String,
    /// More of it, for programs.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
}

/// A word to whoever holds the work.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HolderMessage {
    /// From 1, in the order in which they were sent.
    pub number: u32,
    pub by: AgentId,
    pub at: Timestamp,
    /// The message itself; missing if it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
    /// Who took note of it, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_by: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HolderMessages {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    pub messages: Vec<HolderMessage>,
}

/// Extends the lease, and says which messages were taken note of.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// Messages up to this number were taken note of; they do not come again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledge: Option<u32>,
}

/// Attaches a piece of work that is there already.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// What it is called; another one of the same name takes its place.
    pub name: ArtifactName,
    /// What it is, such as `text/markdown`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The piece itself: any JSON.
    #[serde(deserialize_with = "Value::deserialize")]
    pub content: Value,
}

/// A piece of work that was attached while the work went on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    pub name: ArtifactName,
    /// What it is, such as `text/markdown`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which one of its name it is, from 1.
    pub version: u32,
    pub by: AgentId,
    /// The attempt in which it was attached.
    pub attempt: u32,
    pub at: Timestamp,
    /// The address of it.
    pub artifact: Hash,
    pub bytes: u64,
    /// The piece itself, where there is room for it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub content: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Artifacts {
    pub artifacts: Vec<Artifact>,
}

/// Which artifacts are shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArtifacts {
    /// Only the one of this name, with its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ArtifactName>,
}

/// An earlier attempt, and what it left behind.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EarlierAttempt {
    pub attempt: u32,
    pub agent: AgentId,
    pub claimed_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended, such as `failed_retryable` or `lost_silence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Why it failed, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureReport>,
    /// What it said of its progress, the last one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ProgressNote>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProgressNote {
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    pub note: String,
}

/// Gives claimed work back until a time.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PutBack {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// When it can be claimed again; give this or `for_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// For how long nobody can claim it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// Why; it stands in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Keeps work from being claimed, until a time or until somebody resumes the target.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    pub by: AgentId,
    /// The agent or the capability.
    pub target: Target,
    /// When it goes on by itself; give this or `for_ms`, or none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
    /// Why; it is shown to those whose offers wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    pub by: AgentId,
    pub target: Target,
}

/// A target from which nothing is claimed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Paused {
    pub target: Target,
    pub by: AgentId,
    pub since: Timestamp,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    pub paused: Vec<Paused>,
}
