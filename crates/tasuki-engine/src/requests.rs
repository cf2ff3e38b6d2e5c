// SPDX-License-Identifier: Apache-2.0
//! What the engine works with, where that is not the published form itself: after names were resolved
//! and defaults filled in. And what it gives back.

use std::sync::Arc;

use serde::Serialize;
use tasuki_core::assembly::Warning;
use tasuki_core::budget::{Budget, Used};
use tasuki_core::canonical::Object;
use tasuki_core::contract::After;
use tasuki_core::envelope::{Action, Control, CriterionReport, Payload, Said};
use tasuki_core::event::{FailureClass, Key};
use tasuki_core::ids::{CorrelationId, OrderingKey, Project, RequestId};
use tasuki_core::pipeline::StageRef;
use tasuki_core::tree::OnParentEnd;
use tasuki_core::{
    AgentId, Body, Capability, Handoff, HandoffId, Target, Task, TaskId, Terms, Timestamp,
};

use crate::contracts::Route;
pub use crate::talk::Brought;

pub use tasuki_protocol::Mode as WaitMode;
pub(crate) use tasuki_protocol::{
    Claim as ClaimRequest, Coordinator, Peek as PeekRequest, ReadBack, TermsPatch, Until,
};

pub use tasuki_core::commands::{Holder, Proof};
use tasuki_core::registry::{Pause, Signed};

/// Opens a task without handing it to anybody yet. Its serialised form is what keys stood for up to
/// 0.1 (see [`crate::keys`]).
#[derive(Debug, Clone, Serialize)]
pub struct NewTask {
    pub owner: AgentId,
    /// The user's own words; without them, those of the task above.
    pub intent: Option<String>,
    pub correlation_id: Option<CorrelationId>,
    pub parent_task_id: Option<TaskId>,
    /// Who decides about it when things go wrong; without one, its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// What it belongs to; without it, what the parent belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// What becomes of it when the task above it ends without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_parent_end: Option<OnParentEnd>,
    #[serde(skip)]
    pub key: Option<Key>,
}

/// Offers work. Its serialised form is what keys stood for up to 0.1 (see [`crate::keys`]).
#[derive(Debug, Clone, Serialize)]
pub struct NewOffer {
    pub from: AgentId,
    /// The task that is handed on (`transfer`), or the task the work is done for (`call`); a new
    /// one without it.
    pub task_id: Option<TaskId>,
    /// The user's own words; needed for a new task, carried by the broker from then on.
    pub intent: Option<String>,
    pub correlation_id: Option<CorrelationId>,
    /// Who decides about a new task when things go wrong; without one, whoever opens it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// What a new task belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    pub hop: FollowUp,
    #[serde(skip)]
    pub key: Option<Key>,
}

/// One hop: to whom, what, and on which terms. A completion may carry several.
#[derive(Debug, Clone, Serialize)]
pub struct FollowUp {
    pub to: Target,
    pub control: Control,
    pub action: Action,
    pub payload: Payload,
    pub metadata: Object,
    pub priority: Option<u8>,
    pub terms: Option<Terms>,
    /// What is to be done, where `to` names an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// How the receiver is chosen, where `to` names a capability; open to all without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// Who is asked next, if the receiver cannot or will not do it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Target>,
    /// Tasks that come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// Where in a declared route it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageRef>,
    /// What the result must fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub majors: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// What the sender says besides its payload.
    #[serde(skip_serializing_if = "Said::is_empty")]
    pub said: Said,
    /// Members of a newer version, kept and passed on.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub more: Object,
    /// The sender's signature over what it says.
    #[serde(skip)]
    pub signed: Option<Signed>,
    /// Whether the sender may label what it says as an operator's word or as an instruction.
    #[serde(skip)]
    pub instructs: bool,
    /// When the work must be finished; the earlier of the two counts.
    pub deadline: Option<Timestamp>,
    pub expires_in_ms: Option<u64>,
    pub start_in_ms: Option<u64>,
    pub needs_approval: bool,
    /// Who may approve it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<AgentId>,
    pub ordering_key: Option<OrderingKey>,
    /// Of a call: what becomes of it when the caller's own work ends without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_parent_end: Option<OnParentEnd>,
    /// What the task may spend from here on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

#[derive(Debug, Clone)]
pub struct Offered {
    pub handoff: Arc<Handoff>,
    /// Whether somebody is there who takes work for its target.
    pub listening: bool,
    /// Somebody paused its target.
    pub pause: Option<Pause>,
    /// The request had been carried out before.
    pub repeated: bool,
    /// What its sender may want to know about it.
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone)]
pub struct ClaimOneRequest {
    pub handoff: HandoffId,
    pub agent: AgentId,
    pub capabilities: Vec<Capability>,
    pub lease_ms: Option<u64>,
    pub request_id: Option<RequestId>,
    /// Which majors of the envelope it takes; without any, what its manifest says.
    pub majors: Vec<u32>,
    /// How long to wait for the answer to a question that this agent asked.
    pub wait_ms: u64,
}

/// A handoff with what it carries.
#[derive(Debug, Clone)]
pub struct Granted {
    pub handoff: Arc<Handoff>,
    pub envelope: Option<Body>,
    /// How much of the lease and of the attempt's time is left, by the store's clock.
    pub lease_left_ms: u64,
    pub work_left_ms: u64,
    /// What the task is built on and no longer holds.
    pub taints: Vec<HandoffId>,
    /// What the task may still spend, if that is bounded.
    pub budget: Option<Budget>,
    /// The dead letter above it for which it is on hold.
    pub on_hold: Option<HandoffId>,
    /// The broker's word that it gave this to its holder.
    pub delivery: Option<Delivery>,
    /// What was said about it, and what earlier attempts left.
    pub brought: Brought,
}

/// The broker's signature over a delivery, and the time that it covers.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub at: Timestamp,
    pub signed: Signed,
}

#[derive(Debug, Clone)]
pub struct CompleteRequest {
    pub handoff: HandoffId,
    pub proof: Proof,
    /// Who asks, where that is certain.
    pub by: Option<Holder>,
    /// Its signature over what it does.
    pub signed: Option<Signed>,
    pub action: Action,
    pub payload: Payload,
    pub metadata: Object,
    /// What the agent says of what was asked for.
    pub criteria: Vec<CriterionReport>,
    /// References that it had to work without.
    pub gaps: Vec<String>,
    /// Gaps that came with the work and are none any more.
    pub resolved_gaps: Vec<String>,
    pub follow_ups: Vec<FollowUp>,
    /// What the attempt used.
    pub usage: Option<Used>,
}

/// Other terms, on which an agent would take a handoff.
#[derive(Debug, Clone)]
pub struct CounterRequest {
    pub handoff: HandoffId,
    pub agent: AgentId,
    pub capabilities: Vec<Capability>,
    pub terms: TermsPatch,
    pub budget_tokens: Option<u32>,
    pub reason: String,
}

#[derive(Debug, Clone)]
pub struct FailRequest {
    pub handoff: HandoffId,
    pub proof: Proof,
    /// Who asks, where that is certain.
    pub by: Option<Holder>,
    /// Its signature over what it does.
    pub signed: Option<Signed>,
    pub class: FailureClass,
    pub kind: String,
    pub message: String,
    pub attempted: Option<String>,
    pub attempts: Option<u32>,
    pub causes: Vec<String>,
    pub hint: Option<String>,
    pub retry_after_ms: Option<u64>,
    pub details: Object,
    /// What the attempt used.
    pub usage: Option<Used>,
}

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitFor {
    Handoff(HandoffId),
    Task(TaskId),
}

#[derive(Debug, Clone)]
pub struct WaitRequest {
    pub these: Vec<WaitFor>,
    pub mode: WaitMode,
    pub until: Until,
    pub timeout_ms: u64,
}

/// What a wait saw, in the order asked.
#[derive(Debug, Clone)]
pub enum Waited {
    Handoff { handoff: Arc<Handoff>, reached: bool },
    Task { task: Arc<Task>, reached: bool },
}

impl FollowUp {
    /// A hop that says only to whom it goes and what it carries.
    #[must_use]
    pub fn new(to: Target, payload: Payload) -> Self {
        Self {
            to,
            control: Control::Passed,
            action: Action::default(),
            payload,
            metadata: Object::default(),
            priority: None,
            terms: None,
            capability: None,
            route: None,
            fallbacks: Vec::new(),
            after: None,
            stage: None,
            output_schema: None,
            majors: Vec::new(),
            budget_tokens: None,
            said: Said::default(),
            more: Object::default(),
            signed: None,
            instructs: true,
            deadline: None,
            expires_in_ms: None,
            start_in_ms: None,
            needs_approval: false,
            approvers: Vec::new(),
            ordering_key: None,
            on_parent_end: None,
            budget: None,
        }
    }
}

impl Waited {
    #[must_use]
    pub fn reached(&self) -> bool {
        match self {
            Self::Handoff { reached, .. } | Self::Task { reached, .. } => *reached,
        }
    }
}
