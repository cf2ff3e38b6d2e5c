// SPDX-License-Identifier: Apache-2.0
//! What the broker says of handoffs, tasks, events and itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::canonical::Object;
use tasuki_core::contract::Contract;
use tasuki_core::envelope::Control;
use tasuki_core::event::TaintPolicy;
use tasuki_core::ids::{ChannelId, CorrelationId, OrderingKey, Project, TenantId};
use tasuki_core::{
    AgentId, DocumentId, Fence, HandoffId, Hash, Position, Target, TaskId, Terms, Timestamp,
};

/// Where a handoff is after a call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    pub state: String,
    pub status: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Beat {
    pub handoff_id: HandoffId,
    pub lease_left_ms: u64,
    pub work_left_ms: u64,
}

/// The answers of a batch, in the order of its parts: each is a result or an error.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BatchOf{T}")]
pub struct Batch<T> {
    pub results: Vec<Part<T>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "PartOf{T}")]
pub enum Part<T> {
    Done(T),
    Failed { error: crate::error::Problem },
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    pub state: String,
    /// `stored`, `delivered`, `claimed`, `in_progress` or `done`: what the sender may rely on.
    pub status: String,
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

/// Who holds the claim. The claim id is the holder's secret.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    pub agent: AgentId,
    pub fence: Fence,
    pub lease_left_ms: u64,
    pub work_left_ms: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeadLetterReason")]
pub struct DeadReason {
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven_to: Option<HandoffId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
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

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub task_id: TaskId,
    pub state: String,
    pub owner: AgentId,
    pub opened_by: AgentId,
    /// Who decides about it when things go wrong, if that is not its opener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<AgentId>,
    /// The channel on which it was told to many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
    /// What it is built on and no longer holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<TaintedBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// What it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// The address of the intent: the same at every hop.
    pub intent: Hash,
    pub opened_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The handoff that is not at its end yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_handoff: Option<HandoffId>,
    /// How many events there are, and the hash of the last.
    pub events: u32,
    pub head: Hash,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaintedBy {
    /// The handoff that failed, or whose result was taken back.
    pub source: HandoffId,
    pub policy: TaintPolicy,
}

/// A task with its handoffs and the tasks below it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskWithParts {
    #[serde(flatten)]
    pub task: Task,
    /// Newest first.
    pub handoffs: Vec<Handoff>,
    pub children: Vec<Task>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    pub tasks: Vec<Task>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<TaskId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Waited {
    /// Whether what was waited for came about; if not, the time was up.
    pub done: bool,
    pub handoffs: Vec<HandoffWithResult>,
    pub tasks: Vec<Task>,
    /// Those that have not come far enough.
    pub open_handoffs: Vec<HandoffId>,
    pub open_tasks: Vec<TaskId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    #[serde(flatten)]
    pub handoff: Handoff,
    #[schemars(with = "Option<tasuki_core::Envelope>")]
    pub envelope_content: Option<Box<RawValue>>,
    /// What the attempts reported.
    pub reports: Vec<Report>,
    /// Why agents declined it, where they said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declines: Vec<DeclineReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_because: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeclineReason {
    pub agent: AgentId,
    pub reason: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub attempt: u32,
    pub ended: String,
    #[schemars(with = "Object")]
    pub report: Box<RawValue>,
}

/// An audit event where it stands in the log.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    pub position: Position,
    pub hash: Hash,
    #[schemars(with = "tasuki_core::Record")]
    pub record: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Object>")]
    pub body: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    pub events: Vec<Event>,
}

/// Told on the stream of events, as an event `missed`, where it cannot be promised that a follower
/// was told everything: old history was dropped, or a failover of the database lost the log's end.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Missed {
    /// The last position that was told.
    pub after: Position,
    /// The stream goes on after this position. What is known from events between it and `after`
    /// has to be read anew.
    pub resume_after: Position,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Whether every entry is as it should be.
    pub intact: bool,
    pub events: u64,
    pub tasks: u64,
    pub bodies: u64,
    /// Bodies that were erased on purpose: the log says by whom and why.
    #[serde(default)]
    pub erased: u64,
    pub checkpoints: u64,
    /// How many of the last events no checkpoint covers yet.
    pub unsealed: u64,
    /// The keys that signed, in hex.
    pub keys: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<Finding>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub position: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    pub problem: String,
}

/// How much there is: of the whole store for whoever looks after all of it, and otherwise of the
/// caller's tenant.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    pub version: String,
    pub now: Timestamp,
    /// Whose figures these are; absent if they are those of the whole store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    pub live_handoffs: u64,
    /// Bytes of bodies that the tenant has stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    pub disk_full: bool,
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStats>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StoreStats {
    /// The position of the last event.
    pub head: Position,
    pub commits: u64,
    pub commands: u64,
    pub events: u64,
    /// Events for each commit since the start: above 1 where commits are shared.
    pub mean_batch: f64,
    /// About how much memory the live handoffs take.
    pub live_bytes: u64,
    pub waiting_handoffs: u64,
    pub idempotency_keys: u64,
    pub projection_lag: u64,
    /// How much memory the process takes, where the system can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
