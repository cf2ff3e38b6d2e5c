// SPDX-License-Identifier: Apache-2.0
//! What is said about work beyond one hop: sending and waiting, telling many, declared routes, and
//! what to do about what failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::canonical::Object;
use tasuki_core::envelope::said::NewDecision as EnvelopeDecision;
use tasuki_core::envelope::{Action, Payload, Said};
use tasuki_core::event::TaintPolicy;
use tasuki_core::ids::{ChannelId, CorrelationId, IdempotencyKey, OrderingKey, Project, Resource};
use tasuki_core::{AgentId, ClaimId, Fence, HandoffId, Hash, Position, Target, TaskId, Timestamp};

use super::{Handoff, Offer, TermsPatch, Until};

/// Who decides about a task: an agent, or one whose manifest names a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Coordinator {
    Agent(AgentId),
    Role(String),
}

/// Offers work and waits until the receiver has accepted it, or until there is a result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Send {
    /// What to wait for: `claimed` or `settled`.
    #[serde(default = "claimed")]
    pub until: Until,
    /// How long to wait, 15 seconds by default. Work that nobody has claimed by then goes to the
    /// next of `fallbacks`, or to the dead letters, unless the terms give another `ack_ms`.
    #[serde(default = "fifteen_seconds")]
    pub timeout_ms: u64,
    #[serde(flatten)]
    pub offer: Offer,
}

fn claimed() -> Until {
    Until::Claimed
}

fn fifteen_seconds() -> u64 {
    15_000
}

/// What has become of it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// Whether it came as far as was waited for, by somebody who accepted it or with a result.
    pub reached: bool,
    /// Whether somebody is there who takes work for it. If not, it is stored and waits.
    pub listening: bool,
    #[serde(flatten)]
    pub handoff: Handoff,
    /// The result, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<tasuki_core::report::ResultReport>")]
    pub output: Option<Box<RawValue>>,
}

/// Begins or ends hearing what is told on a channel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subscribe {
    /// Who asks.
    pub agent: AgentId,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Channel {
    pub channel: ChannelId,
    pub subscribers: Vec<Subscriber>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Subscriber {
    pub agent: AgentId,
    /// What was told after this reached it.
    pub since: Position,
}

/// Tells something to many: each receiver gets a handoff of its own, all in one step.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Publication {
    /// Who sends it. A task is handed on by its owner.
    pub from_agent: AgentId,
    /// The user's own words.
    pub intent: String,
    /// Who gets it; without them, whoever subscribes to the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000))]
    pub receivers: Option<Vec<AgentId>>,
    /// What to work on: an object with a `type`.
    pub payload: Payload,
    /// What the receiver should do with it; a first offer is a `request`.
    #[serde(default)]
    pub action: Action,
    /// For monitoring; no model reads it.
    #[serde(default)]
    pub metadata: Object,
    /// 0 to 9; higher ones are claimed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// How often, how long and within what time it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<TermsPatch>,
    /// When it must be claimed and done at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The same, from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// It waits until somebody other than its sender approves it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// Handoffs with the same key are worked on one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordering_key: Option<OrderingKey>,
    /// A name by which the sender finds everything that belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Who decides if it fails; without it, who opened the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// What the task belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// The same key with the same body gives the first reply again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    #[serde(flatten)]
    pub said: Said,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    pub channel: ChannelId,
    /// The task of whoever publishes; each receiver has one below it.
    pub task_id: TaskId,
    pub position: Position,
    /// Whether this had been told before, by a request with the same key.
    pub repeated: bool,
    pub handoffs: Vec<Told>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    pub to: Target,
    pub handoff_id: HandoffId,
    pub task_id: TaskId,
    pub listening: bool,
}

/// What was told on a channel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Messages {
    pub messages: Vec<Message>,
    /// Give this as `after` to read on.
    pub next: Position,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    pub position: Position,
    pub task_id: TaskId,
    pub from_agent: AgentId,
    pub published_at: Timestamp,
    /// The user's own words.
    pub intent: String,
    /// What was told, as one of the receivers got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
}

/// Collects what the tasks below one have come to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gather {
    /// How many must have a result.
    #[serde(default)]
    pub need: Need,
    /// How long to wait for enough of them, at most 60 seconds.
    #[serde(default)]
    pub wait_ms: u64,
    /// Only members before this task: where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<TaskId>,
    /// How many members are listed, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// How many must have a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    #[default]
    All,
    Any,
    Quorum(u64),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gathered {
    pub task_id: TaskId,
    /// Whether as many as needed have a result.
    pub satisfied: bool,
    pub need: u64,
    pub receivers: u64,
    pub completed: u64,
    /// Ended without a result.
    pub failed: u64,
    /// Neither: still under way.
    pub open: u64,
    pub members: Vec<Member>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<TaskId>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GatheredMember")]
pub struct Member {
    pub task_id: TaskId,
    /// `completed`, `open`, `dead_lettered`, `failed` or `cancelled`.
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Target>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_id: Option<HandoffId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<tasuki_core::report::ResultReport>")]
    pub output: Option<Box<RawValue>>,
}

/// Begins a task along a declared route.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StartPipeline {
    /// Who sends it. A task is handed on by its owner.
    pub from_agent: AgentId,
    /// The user's own words.
    pub intent: String,
    /// What to work on: an object with a `type`.
    pub payload: Payload,
    /// A name by which the sender finds everything that belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Who decides if it fails; without it, who opened the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// What the task belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// When it must be claimed and done at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Makes it safe to repeat: the same request with the same key is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    #[serde(flatten)]
    pub said: Said,
}

/// Sends a dead letter to another target.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reroute {
    pub by: AgentId,
    /// An agent by name, or any agent with a capability.
    pub to: Target,
}

/// Sends a dead letter on its way again with a new envelope, linked to the old one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Amend {
    pub by: AgentId,
    /// Another receiver; the same one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Target>,
    /// Another payload; the same one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// How often, how long and within what time it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<TermsPatch>,
    #[serde(flatten)]
    pub said: Said,
}

/// Answers the question that a dead letter stopped at: the decision goes into the task's log, and the
/// work goes on with it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub by: AgentId,
    /// What was decided.
    pub decision: EnvelopeDecision,
}

/// Keeps others from deciding on a dead letter for a while.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeReview {
    pub by: AgentId,
    /// For how long, at most a day; 0 gives it back.
    pub for_ms: u64,
}

/// What is decided about many dead letters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideMany {
    pub by: AgentId,
    /// What was decided.
    pub decision: Ruling,
    /// Which ones, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub handoffs: Vec<HandoffId>,
    /// Which ones, by what they died of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Hash>,
    /// Only say which ones it would be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What a coordinator may decide.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Again, as it was.
    Retry,
    /// Again, to somebody else.
    Reroute(Target),
    /// No more, for this reason.
    Abort(String),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecidedMany {
    pub dry_run: bool,
    pub results: Vec<DecidedOne>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecidedOne {
    /// The dead letter.
    pub handoff_id: HandoffId,
    /// Where it goes on, or where it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_handoff: Option<HandoffId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::error::Problem>,
}

/// Dead letters by what they died of, the largest group first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Groups {
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeadLetterGroup")]
pub struct Group {
    pub fingerprint: Hash,
    pub reason: String,
    pub to: Target,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "type")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub count: u64,
    /// Some of them, the newest first.
    pub handoffs: Vec<HandoffId>,
}

/// Takes back what a completed handoff produced.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retract {
    pub by: AgentId,
    /// Why; it stands in the log.
    pub reason: String,
    /// What becomes of work that was built on it: `flag` tells everybody, `block` holds it back until
    /// somebody has approved.
    #[serde(default)]
    pub policy: TaintPolicy,
}

/// Says that a task may go on although something that it is built on no longer holds.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearTaint {
    /// The task's coordinator.
    pub by: AgentId,
    /// The handoff whose result no longer holds.
    pub source: HandoffId,
    /// Why; it stands in the log.
    pub reason: String,
}

/// Takes resources for the holder of a claim, or gives them up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// Paths and patterns of paths: `*` within a step, `**` for any number of steps.
    #[schemars(length(min = 1, max = 100))]
    pub resources: Vec<Resource>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reservations {
    pub reservations: Vec<Reservation>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reservation {
    pub handoff_id: HandoffId,
    pub agent: AgentId,
    /// The fence of the claim: what guards the resource can refuse an older one.
    pub fence: Fence,
    pub resources: Vec<Resource>,
}

/// How targets fare.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TargetsHealth {
    pub targets: Vec<TargetHealth>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TargetHealth {
    pub target: Target,
    pub live: bool,
    /// `closed`, `open` or `half_open`.
    pub breaker: String,
    /// Handoffs in a row that used up their tries.
    pub exhausted_in_row: u32,
    /// When something is sent there again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_in_ms: Option<u64>,
    /// Attempts in a row that failed or were lost.
    pub failures_in_row: u32,
    pub offers: u64,
    /// How many offers came after 0, 1, 2 … hops; the last number is for all beyond.
    pub hops: Vec<u64>,
    /// How much of the budgets was used, in thousandths, where senders said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation_per_mille: Option<u64>,
    /// How complete what was passed was on average, in thousandths, where senders said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completeness_per_mille: Option<u64>,
}
