// SPDX-License-Identifier: Apache-2.0
//! Offering work: what one hop says, alone, in a batch, or with a wait.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::budget::Budget;
use tasuki_core::canonical::Object;
use tasuki_core::contract::After;
use tasuki_core::envelope::version::Flat;
use tasuki_core::envelope::{Action, Control, Payload, Said};
use tasuki_core::ids::{CorrelationId, IdempotencyKey, OrderingKey, Project};
use tasuki_core::registry::Signed;
use tasuki_core::route::{Policy, Why};
use tasuki_core::tree::OnParentEnd;
use tasuki_core::{AgentId, Capability, HandoffId, Hash, Target, TaskId, Terms, Timestamp};

use crate::waits::fifteen_seconds;
use crate::{Coordinator, Handoff, PausedUntil, Until};

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

impl TermsPatch {
    /// Where it is silent, the others hold.
    #[must_use]
    pub fn over(self, others: Terms) -> Terms {
        Terms {
            lease_ms: self.lease_ms.unwrap_or(others.lease_ms),
            work_ms: self.work_ms.unwrap_or(others.work_ms),
            attempts: self.attempts.unwrap_or(others.attempts),
            losses: self.losses.unwrap_or(others.losses),
            backoff_ms: self.backoff_ms.unwrap_or(others.backoff_ms),
            ack_ms: self.ack_ms.or(others.ack_ms),
        }
    }
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
    /// Who may approve it: nobody else then, and each of them is told that it waits. Neither the
    /// sender nor the receiver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub approvers: Vec<AgentId>,
    /// Handoffs with the same key are worked on one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordering_key: Option<OrderingKey>,
    /// Of a call: what becomes of it when the caller's own work ends without a result. `cancel` by
    /// default; with `let_go` it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_parent_end: Option<OnParentEnd>,
    /// What the task, with everything below it, may spend from here on. Every result and failure that
    /// reports its usage makes it less; a task with nothing left takes no more hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
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
            approvers: Vec::new(),
            ordering_key: None,
            on_parent_end: None,
            budget: None,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Who is to do the work; the agent that was chosen, if one was.
    pub to: Target,
    /// Whether somebody is there who takes work for it. If not, it waits.
    pub listening: bool,
    /// Somebody paused its target: it waits until that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedUntil>,
    /// How the agent was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed: Option<Why>,
    pub envelope: Hash,
    pub hop: u32,
    pub offered_at: Timestamp,
    pub expires_at: Timestamp,
    /// What its sender may want to do otherwise: nothing of it keeps the offer back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<OfferWarning>,
}

/// Something about an offer that its sender may not have meant.
pub type OfferWarning = tasuki_core::assembly::Warning;

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
