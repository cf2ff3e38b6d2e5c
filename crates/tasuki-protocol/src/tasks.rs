// SPDX-License-Identifier: Apache-2.0
//! Tasks: opened, shown, branched, gathered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::budget::{Budget, Spent};
use tasuki_core::canonical::Object;
use tasuki_core::envelope::Payload;
use tasuki_core::ids::{ChannelId, CorrelationId, IdempotencyKey, Project};
use tasuki_core::tree::OnParentEnd;
use tasuki_core::{AgentId, HandoffId, Hash, Target, TaskId, Timestamp};

use crate::{Handoff, TaintedBy};

/// Opens a task that its owner keeps for now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenTask {
    /// Who opens the task and owns it until somebody claims it.
    pub from_agent: AgentId,
    /// The user's own words. They reach every agent of the chain unchanged. Below another task they
    /// are that one's, and need not be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// A name by which the sender finds everything that belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// The task this one is part of; `from_agent` must own it. What binds that one binds this one too,
    /// and it ends no later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// Who decides about it when things go wrong, and is told of every failure; its owner without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<Coordinator>,
    /// What the task belongs to; without it, what its parent belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// What becomes of it when the task above it ends without a result. `cancel` by default; with
    /// `let_go` it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_parent_end: Option<OnParentEnd>,
    /// Makes it safe to repeat: the same request with the same key is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Who decides about a task: an agent, or one whose manifest names a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Coordinator {
    Agent(AgentId),
    Role(String),
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
    /// What becomes of it when the task above it ends without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_parent_end: Option<OnParentEnd>,
    /// When all of it must be finished, by what it hangs from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The dead letter above it that somebody has to decide on before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_hold: Option<HandoffId>,
    /// What it and everything below it may still spend, where that is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What it and everything below it has spent, as far as anybody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
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

/// Ends a task with a result, while nobody else works on it. Its owner does so.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteTask {
    /// Its owner.
    pub by: AgentId,
    /// What came of it: an object with a `type`.
    pub payload: Payload,
    /// For monitoring only.
    #[serde(default)]
    pub metadata: Object,
    /// What becomes of tasks below it that are not at their end.
    #[serde(default)]
    pub below: Below,
}

/// What becomes of tasks below one that ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Below {
    /// It does not end while one of them is open.
    #[default]
    Refuse,
    /// They go on by themselves.
    LetGo,
}

/// A task with its handoffs and the tasks below it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskWithParts {
    #[serde(flatten)]
    pub task: Task,
    /// The result that its owner ended it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<tasuki_core::report::TaskResult>")]
    pub output: Option<Box<RawValue>>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Whether as many as needed have a result.
    pub satisfied: bool,
    /// Whether as many as needed can still have a result. A quorum above the number of receivers, or
    /// of those that are left, cannot.
    pub reachable: bool,
    /// As was asked for; never fewer because there are not so many.
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

/// Which tasks are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasks {
    /// Only tasks in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Only tasks that this agent owns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentId>,
    /// Only tasks below this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// Only tasks of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// Only tasks with this name of their sender's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// Only tasks before this one: where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<TaskId>,
    /// How many at most, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
