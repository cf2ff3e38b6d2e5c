// SPDX-License-Identifier: Apache-2.0
//! Handoffs as they are shown, and what is decided about one from outside.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::contract::Contract;
use tasuki_core::envelope::Control;
use tasuki_core::ids::{ArtifactName, CorrelationId, OrderingKey};
use tasuki_core::talk::QuestionKind;
use tasuki_core::{
    AgentId, Capability, DocumentId, Fence, HandoffId, Hash, Target, TaskId, Terms, Timestamp,
};

use crate::{DeadReason, Until};

/// Where a handoff is after a call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    pub state: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    pub state: String,
    /// What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`, `failed`,
    /// `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`.
    pub status: String,
    /// The name by which the sender finds everything that belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    pub from_agent: AgentId,
    pub to: Target,
    pub control: Control,
    pub envelope: Hash,
    pub hop: u32,
    pub priority: u8,
    pub terms: Terms,
    /// What was agreed besides the terms.
    #[serde(default, skip_serializing_if = "Contract::is_empty")]
    pub contract: Contract,
    /// On which other terms agents would take it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterOffer>,
    pub offered_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// When a scheduled handoff becomes claimable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordering_key: Option<OrderingKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redrive_of: Option<HandoffId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// What its holder asks and waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Asks>,
    /// For whom an answer is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for: Option<KeptFor>,
    /// Pieces of work that are there before the result is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactName>,
    /// The address of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Hash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<DeadReason>,
    /// Attempts that ended in a declared failure.
    pub failures: u32,
    /// Leases that were lost.
    pub losses: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined_by: Vec<AgentId>,
    /// Targets that could not or would not do it, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Target>,
    /// How much time is left for somebody to claim it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_left_ms: Option<u64>,
    /// Who decides on this dead letter just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<AgentId>,
    /// Whether its result was taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retracted: bool,
    /// Constraints that were lifted since the envelope was made; they do not bind the next one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifted: Vec<LiftedConstraint>,
    /// Memories that the receiver fetched because the envelope had passed less of them: what was
    /// trimmed and missed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trim_regret: Vec<DocumentId>,
    pub attempts: Vec<Attempt>,
}

/// A constraint that does not bind the next envelope any more.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LiftedConstraint {
    pub constraint: Hash,
    pub by: AgentId,
}

/// On which other terms an agent would take a handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CounterOffer {
    pub agent: AgentId,
    pub terms: Terms,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
}

/// That a holder asks something. `GET /v1/questions` has the question itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Asks {
    /// The address of the question.
    pub question: Hash,
    pub kind: QuestionKind,
    pub asked_by: AgentId,
    /// How much time is left to answer.
    pub answer_left_ms: u64,
}

/// Who alone may claim, because it asked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct KeptFor {
    pub agent: AgentId,
    /// For how long.
    pub left_ms: u64,
}

/// Who holds the claim. The claim id is the holder's secret.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    pub agent: AgentId,
    pub fence: Fence,
    pub lease_left_ms: u64,
    pub work_left_ms: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub number: u32,
    pub agent: AgentId,
    pub fence: Fence,
    pub claimed_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// A report came after the end: refused, and kept in the audit log.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// A handoff, and its result if it has one.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffWithResult {
    #[serde(flatten)]
    pub handoff: Handoff,
    /// What it waits for, and why; shown for one handoff by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitsFor>,
    /// The result itself. Where many would be too much for one reply, the later ones are left out:
    /// `result` is there without it, and the handoff by itself shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<tasuki_core::report::ResultReport>")]
    pub output: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Handoffs {
    pub handoffs: Vec<Handoff>,
    /// Give this as `before` to get the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<HandoffId>,
}

/// What work waits for, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WaitsFor {
    /// Somebody has to approve it: one of these, or whoever is permitted to.
    Approval {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        approvers: Vec<AgentId>,
        /// What its task is built on and no longer holds, if that is why.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        taints: Vec<HandoffId>,
    },
    /// Another task has to have a result.
    Task {
        task_id: TaskId,
        /// Where it is.
        state: String,
        /// How many of the tasks that it waits for must have one.
        need: u32,
    },
    /// Its start, or its next try.
    Time { until: Timestamp },
    /// Its target failed too often.
    Breaker {
        target: Target,
        /// `open` or `half_open`.
        breaker: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// Its target is paused, until somebody resumes it or until a time.
    Paused {
        target: Target,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// A task above it is a dead letter that somebody has to decide on.
    Letter { handoff_id: HandoffId },
    /// Work with the same ordering key that was offered before it has to end.
    Turn { first: HandoffId },
    /// Somebody has to claim it.
    Claim {
        target: Target,
        /// Whether anybody is there who takes work for it.
        listening: bool,
    },
    /// Its holder has to finish.
    Holder { agent: AgentId },
    /// Somebody has to decide on it: it is a dead letter.
    Decision { reason: String },
}

/// What can be started now, and what holds back the rest.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReadyView {
    /// Work that somebody may claim at this moment, newest first.
    pub ready: Vec<Waits>,
    /// Work that waits for something else, newest first.
    pub held: Vec<Waits>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    pub from_agent: AgentId,
    pub to: Target,
    pub state: String,
    pub waits_for: Vec<WaitsFor>,
}

/// Which work is looked at.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListReady {
    /// Only work for this agent by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<AgentId>,
    /// Only work that asks for this capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_capability: Option<Capability>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// How many of each state at most, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Who decides, and why.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    pub by: AgentId,
    /// Why; it stands in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who decides.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    pub by: AgentId,
}

/// Says no to work that waits for approval.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reject {
    pub by: AgentId,
    /// Why; it stands in the log, and the sender reads it.
    #[schemars(length(min = 1))]
    pub reason: String,
}

/// Which handoffs are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListHandoffs {
    /// Only handoffs in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only those addressed to this agent by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<AgentId>,
    /// Only those that ask for this capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_capability: Option<Capability>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// Only handoffs before this one: where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<HandoffId>,
    /// How many at most, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// How long to wait for a handoff before it is shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowHandoff {
    /// Wait up to this long until it has come far enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// How far: `claimed` or `settled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

/// For whom an envelope is rendered.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenderPrompt {
    /// The reader's tokenizer or model; without it, what the manifest of who reads it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// How many tokens it may have. Without it, what the sender said, or else the reader's window
    /// less its reserves, and never more than the budget that is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// All that the envelope has, whatever was chosen and whatever the bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// `markdown`, `xml`, or `messages` (one for the system, one for the user).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<PromptStyle>,
    /// Leaves the payload out, for readers that get it apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload_apart: bool,
}

/// How a prompt is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptStyle {
    Markdown,
    Xml,
    Messages,
}

/// An envelope, exactly as it was stored.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct StoredEnvelope(pub Box<RawValue>);

impl JsonSchema for StoredEnvelope {
    fn schema_name() -> Cow<'static, str> {
        tasuki_core::Envelope::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        tasuki_core::Envelope::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        tasuki_core::Envelope::json_schema(generator)
    }
}
