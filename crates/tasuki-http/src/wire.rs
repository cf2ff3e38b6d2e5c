// SPDX-License-Identifier: Apache-2.0
// Long because: it is one list of requests.
//! What goes over the wire, both ways. These types are the door's and stop here; the command line
//! and the benchmark speak them too.

mod agents;
mod assemble;
mod chains;
mod memories;
mod patterns;
mod views;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::canonical::Object;
use tasuki_core::contract::After;
use tasuki_core::envelope::version::{AnyEnvelope, Flat};
use tasuki_core::envelope::{Action, Control, CriterionReport, Payload, Said};
use tasuki_core::event::FailureClass;
use tasuki_core::ids::{CorrelationId, IdempotencyKey, OrderingKey, Project, RequestId};
use tasuki_core::registry::Signed;
use tasuki_core::route::{Policy, Why};
use tasuki_core::{
    AgentId, Capability, ClaimId, Fence, HandoffId, Hash, Target, TaskId, Timestamp,
};

pub use agents::*;
pub use assemble::*;
pub use chains::*;
pub use memories::*;
pub use patterns::*;
pub use views::*;

/// Opens a task that its owner keeps for now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenTask {
    /// Who opens the task and owns it until somebody claims it.
    pub from_agent: AgentId,
    /// The user's own words. They reach every agent of the chain unchanged.
    pub intent: String,
    /// A name by which the sender finds everything that belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// The task this one is part of; `from_agent` must own it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// Who decides about it when things go wrong, and is told of every failure; its owner without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// What the task belongs to; without it, what its parent belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// Makes it safe to repeat: the same request with the same key is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Offers work to an agent, or to any agent with a capability.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// Who sends it. A task is handed on by its owner.
    pub from_agent: AgentId,
    /// The task to hand on (`control: passed`) or to do the work for (`control: awaited`). Without
    /// it a new task is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The user's own words. Needed for a new task; from then on the broker carries them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// A name by which the sender finds everything that belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Who decides about a new task when things go wrong, and is told of every failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// What a new task belongs to. Tasks below it belong there too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// The same key with the same body gives the first reply again; with another body, a conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    #[serde(flatten)]
    pub hop: FollowUp,
}

fn passed() -> Control {
    Control::Passed
}

/// How an agent is chosen for a capability.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub policy: Policy,
    /// What a `sticky` choice sticks to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Says on which other terms an agent would take a handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// Who asks.
    pub agent: AgentId,
    /// What it can do; work that is offered to one of these is found too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,
    /// What should be different; the rest stays as it was offered.
    #[serde(default)]
    pub terms: TermsPatch,
    /// The tokens that it would need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// Why; it stands in the log.
    pub reason: String,
}

/// Accepts or refuses a counter-offer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settle {
    /// The sender of the handoff.
    pub by: AgentId,
    /// Whose counter-offer it is.
    pub agent: AgentId,
    /// Whether the terms that were asked for are taken.
    pub accept: bool,
}

/// Terms that differ from the broker's defaults.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TermsPatch {
    /// How long a claim holds without a heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// How long one attempt may take in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ms: Option<u64>,
    /// How many attempts may fail before it is dead-lettered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// How many leases in a row may be lost without progress before it is quarantined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<u32>,
    /// The longest pause before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    /// How long it may wait to be claimed before it goes to the next one, or to the dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_ms: Option<u64>,
}

/// One hop: to whom, what, and on which terms. A completion may carry several, which are made in the
/// same atomic step.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FollowUp {
    /// An agent by name, or any agent with a capability.
    pub to: Target,
    /// `passed` transfers the task; `awaited` calls: the work is a task below the sender's own.
    #[serde(default = "passed")]
    pub control: Control,
    /// What the receiver should do with it; a first offer is a `request`.
    #[serde(default)]
    pub action: Action,
    /// What to work on: an object with a `type`.
    pub payload: Payload,
    /// For monitoring only.
    #[serde(default)]
    pub metadata: Object,
    /// 0 to 9; higher is claimed first. 5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// How often, how long and within what time it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<TermsPatch>,
    /// What is to be done, where `to` names an agent: its manifest says what goes in and comes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// How one of the agents with the capability is chosen. Without it, all of them may claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// Who is asked next, in this order, if the receiver cannot or will not do it: by name, or anybody
    /// with a capability.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub fallbacks: Vec<Target>,
    /// Tasks that must have a result before this can be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// A JSON Schema that the result must fit: `expected_output.schema` in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    /// Which majors of the envelope the sender can give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub majors: Vec<u32>,
    /// How many tokens the work may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// The sender's signature over what it says, which travels in the envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    /// When the work must be finished; past it the handoff is dead-lettered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The same as a span from now. The earlier of the two counts; 24 hours by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Do not let it be claimed before this much time has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_in_ms: Option<u64>,
    /// Hold it back until somebody other than the sender approves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// Handoffs with the same key are worked on one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordering_key: Option<OrderingKey>,
    /// The version that the sender speaks. Members that are not known here are kept if it is a newer
    /// minor, and are a mistake otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope_version: Option<String>,
    #[serde(flatten)]
    pub said: Said,
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Object,
}

impl FollowUp {
    /// A hop that says only to whom it goes and what it carries.
    #[must_use]
    pub fn new(to: Target, payload: Payload) -> Self {
        Self {
            to,
            control: passed(),
            action: Action::default(),
            payload,
            metadata: Object::default(),
            priority: None,
            terms: None,
            capability: None,
            route: None,
            fallbacks: Vec::new(),
            after: None,
            output_schema: None,
            majors: Vec::new(),
            budget_tokens: None,
            signed: None,
            deadline: None,
            expires_in_ms: None,
            start_in_ms: None,
            needs_approval: false,
            ordering_key: None,
            envelope_version: None,
            said: Said::default(),
            more: Object::default(),
        }
    }
}

/// An offer as it is made today, or in the flat form of major 1.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AnyOffer {
    Offer(Box<Offer>),
    Flat(Flat),
}

/// A hop as it is made today, or in the flat form of major 1.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AnyFollowUp {
    FollowUp(Box<FollowUp>),
    Flat(Flat),
}

/// Offers many at once. Each stands on its own; all are synced together.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferBatch {
    /// Each is carried out on its own.
    #[schemars(with = "Vec<AnyOffer>", length(min = 1, max = 1000))]
    pub offers: Vec<Offer>,
}

/// What was stored. The same request with the same idempotency key gets these same facts again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
// Not as its event is called, which is in the same document.
#[schemars(rename = "OfferReply")]
pub struct Offered {
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    /// Always `stored`: synced to disk, not yet fetched by anybody.
    pub status: String,
    /// Who is to do the work; the agent that was chosen, if one was.
    pub to: Target,
    /// Whether somebody is there who takes work for it. If not, it waits.
    pub listening: bool,
    /// How the agent was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed: Option<Why>,
    pub envelope: Hash,
    pub hop: u32,
    pub offered_at: Timestamp,
    pub expires_at: Timestamp,
}

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
    /// The broker's word that it gave this to its holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
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

/// Who decides, and why.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    pub by: AgentId,
    /// Why; it stands in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Begins anew from a hop of a task, as a task of its own.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Who begins it, and owns it until somebody claims it.
    pub by: AgentId,
    /// The hop whose content the first envelope carries.
    pub hop: u32,
    /// Another target than the hop's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Target>,
    /// Makes it safe to repeat: the same request with the same key is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Ends a constraint of a task, from its next envelope on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LiftConstraint {
    /// Who issued it, or the coordinator of the task.
    pub by: AgentId,
    /// The id of the constraint.
    pub constraint: Hash,
    /// Why; it stands in the log.
    pub reason: String,
}

/// Who decides.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    pub by: AgentId,
}

/// Waits for handoffs and tasks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Handoffs to wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<HandoffId>,
    /// Tasks to wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
    /// Whether one or all of them must have got there.
    #[serde(default)]
    pub mode: Mode,
    /// How far they must have got.
    #[serde(default)]
    pub until: Until,
    /// How long to wait, at most 60 seconds; the answer then says what is still open.
    #[serde(default = "fifteen_seconds")]
    pub timeout_ms: u64,
}

/// The acknowledgment timeout of a blocking send.
fn fifteen_seconds() -> u64 {
    15_000
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    All,
    Any,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The receiver has accepted, or it is over.
    Claimed,
    /// It is at its end.
    #[default]
    Settled,
}
