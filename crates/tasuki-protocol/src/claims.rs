// SPDX-License-Identifier: Apache-2.0
//! Claiming work and reporting on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::budget::{Budget, Used};
use tasuki_core::canonical::Object;
use tasuki_core::envelope::version::AnyEnvelope;
use tasuki_core::envelope::{Action, CriterionReport, Payload};
use tasuki_core::event::FailureClass;
use tasuki_core::ids::{CorrelationId, RequestId};
use tasuki_core::join::CameTo;
use tasuki_core::registry::Signed;
use tasuki_core::{AgentId, Capability, ClaimId, Fence, HandoffId, Hash, TaskId, Timestamp};

use crate::{AnyFollowUp, Artifact, EarlierAttempt, FollowUp, HolderMessage, Question};

/// Asks for work.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Who asks.
    pub agent: AgentId,
    /// What the agent can do, besides what is addressed to it by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub capabilities: Vec<Capability>,
    /// How many to claim at most.
    #[serde(default = "one")]
    pub max: usize,
    /// How long to wait if there is nothing yet; at most 60 seconds.
    #[serde(default)]
    pub wait_ms: u64,
    /// A lease other than the one in the handoff's terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Makes the claim safe to repeat after a lost reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Which majors of the envelope the agent takes; without any, what its manifest says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub majors: Vec<u32>,
}

fn one() -> usize {
    1
}

/// Claims one handoff by its id.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimOne {
    /// Who asks.
    pub agent: AgentId,
    /// What it can do; work that is offered to one of these is found too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub capabilities: Vec<Capability>,
    /// How long the claim holds without a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Makes the claim safe to repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Which majors of the envelope the agent takes; without any, what its manifest says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub majors: Vec<u32>,
    /// How long to wait for the answer to a question that this agent asked; at most 60 seconds.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Looks at what waits, without claiming.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peek {
    /// Who asks.
    pub agent: AgentId,
    /// What it can do; work that is offered to one of these is found too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub capabilities: Vec<Capability>,
    /// How many at most.
    #[serde(default = "one")]
    pub max: usize,
    /// Which majors of the envelope the agent takes; without any, what its manifest says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub majors: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Claims {
    pub claims: Vec<Claimed>,
}

/// A claim: show `claim_id` and `fence` with every later call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ClaimReply")]
pub struct Claimed {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    pub lease_ms: u64,
    /// How much of the lease is left, counted from before the request was sent.
    pub lease_left_ms: u64,
    /// How much of the attempt's time is left, whatever heartbeats are sent.
    pub work_left_ms: u64,
    /// The envelope, exactly as it was stored.
    #[schemars(with = "AnyEnvelope")]
    pub envelope: Box<RawValue>,
    /// The address of the envelope.
    pub envelope_hash: Hash,
    /// What the task is built on and no longer holds, also if that came out after the envelope was
    /// made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<HandoffId>,
    /// What the task, with everything below it, may still spend, if that is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The broker's word that it gave this to its holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Questions that holders of this work asked, with their answers, the last one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// Messages that no holder has taken note of yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<HolderMessage>,
    /// What attempts before this one said and why they ended, the last one last. It is data that others
    /// wrote, as the envelope is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_attempts: Vec<EarlierAttempt>,
    /// Pieces of work that are there already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// What the tasks have come to that this work waited for, in the order in which `after` names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<Joined>,
    /// What the work has to do without because of those tasks, besides the gaps of the envelope.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<JoinGap>,
    /// How many of these texts there was no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
}

/// What one of the tasks has come to that work waited for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "JoinedResult")]
pub struct Joined {
    pub task_id: TaskId,
    pub came_to: CameTo,
    /// Its last handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_id: Option<HandoffId>,
    /// The address of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Hash>,
    /// The result itself, where there was room for it. It is data that others wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub output: Option<Box<RawValue>>,
}

/// Something that work has to do without.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JoinGap {
    pub reference: String,
    pub reason: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The broker's signature over a delivery, and the time that it covers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    pub at: Timestamp,
    pub signed: Signed,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Peeked {
    pub waiting: Vec<Waiting>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Waiting {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    pub priority: u8,
    #[schemars(with = "AnyEnvelope")]
    pub envelope: Box<RawValue>,
}

/// What shows that somebody holds a claim.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Held {
    pub claim_id: ClaimId,
    pub fence: Fence,
}

/// Says that work has begun.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// The holder's signature over its acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    /// What binds the receiver, repeated, where the handoff asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<ReadBack>,
}

/// What a receiver repeats before its claim counts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadBack {
    /// The ids of all constraints.
    #[schemars(length(max = 500))]
    pub constraints: Vec<Hash>,
    /// The address of the expected output, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<Hash>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100))]
    pub percent: Option<u8>,
    /// What was done, or is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Beat {
    pub handoff_id: HandoffId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    pub lease_left_ms: u64,
    pub work_left_ms: u64,
    /// Messages to the holder that it has not acknowledged yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<HolderMessage>,
    /// What the task is built on and no longer holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<HandoffId>,
    /// The dead letter above it that somebody has to decide on before anything more comes of this
    /// work. A result is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_hold: Option<HandoffId>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// `completed`, or what should follow: `needs_review`, `changes_requested`, `escalated`.
    #[serde(default = "completed")]
    pub action: Action,
    /// What came of it: an object with a `type`.
    pub payload: Payload,
    /// For monitoring; no model reads it.
    #[serde(default)]
    pub metadata: Object,
    /// Of each criterion of the expected output: whether it is met, and what shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub criteria: Vec<CriterionReport>,
    /// References that the work had to do without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub gaps: Vec<String>,
    /// Gaps that came with the work and are none any more. All others are in the result, whether they
    /// are repeated here or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub resolved_gaps: Vec<String>,
    /// What the attempt used. It makes the budget of its task, and of those above it, less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
    /// Handoffs that are created in the same atomic step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    #[schemars(with = "Vec<AnyFollowUp>")]
    pub follow_ups: Vec<FollowUp>,
    /// The holder's signature over its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

fn completed() -> Action {
    Action::Completed
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteOf {
    pub handoff_id: HandoffId,
    #[serde(flatten)]
    pub complete: Complete,
}

/// Completes many at once. Each stands on its own; all are synced together.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteBatch {
    /// Each is carried out on its own.
    #[schemars(length(min = 1, max = 1000))]
    pub completions: Vec<CompleteOf>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// Whether trying again may help.
    pub class: FailureClass,
    /// A short name for the kind of error, such as `rate_limited`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What went wrong.
    pub message: String,
    /// What was attempted when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// How often the agent tried before it gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// What led to it, the nearest cause first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub causes: Vec<String>,
    /// What might fix it; a permanent failure must say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When to try again at the earliest; for retryable failures only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// More about it, for programs.
    #[serde(default)]
    pub details: Object,
    /// What the attempt used. It makes the budget of its task, and of those above it, less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
    /// The holder's signature over its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

/// Declines: with the claim as its holder, or without one before claiming.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decline {
    /// Who asks.
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<ClaimId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
    /// Why; it stands in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
