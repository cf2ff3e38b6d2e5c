// SPDX-License-Identifier: Apache-2.0
//! The shared context of a project.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::document::context::{Decision, ProjectConstraint, ProjectState};
use tasuki_core::event::Actor;
use tasuki_core::ids::{DecisionKey, Project};
use tasuki_core::{AgentId, HandoffId, Target, TaskId, Timestamp};

use crate::Warning;

/// Changes what a project's shared context says of its state or its constraints.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteContext {
    pub by: AgentId,
    /// The revision that the writer has seen, 0 for none: if there is another by now, nothing is
    /// written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Where the project stands; as before if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ProjectState>,
    /// What holds for all work of the project; as before if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Vec<ProjectConstraint>>,
}

/// Adds to a project's decision log.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDecision {
    pub by: AgentId,
    /// The question that it settles.
    pub key: DecisionKey,
    /// What was decided.
    pub decision: String,
    /// What speaks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The number of the decision that no longer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<u32>,
}

/// Which revision of a shared context is shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowContext {
    /// A revision; the last one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

/// What all agents of a project read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SharedContext {
    pub project: Project,
    /// 0 if nobody has written it yet.
    pub revision: u32,
    /// The last revision that there is.
    #[serde(default)]
    pub latest: u32,
    pub state: ProjectState,
    pub constraints: Vec<ProjectConstraint>,
    pub decisions: Vec<Decision>,
    /// Whether the text of this revision was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<Actor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// Open tasks that the reader may see, newest first. This is a view: tasks change hands by
    /// handoffs only.
    pub task_queue: Vec<QueuedTask>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct QueuedTask {
    pub task_id: TaskId,
    pub owner: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_id: Option<HandoffId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Target>,
    /// Where the handoff under way is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    pub opened_at: Timestamp,
}
