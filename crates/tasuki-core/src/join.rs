// SPDX-License-Identifier: Apache-2.0
//! What work that waited for other tasks was given of them. It is noted when the work goes on, so that
//! whoever gets it, and whoever builds on it, knows what it has and what it lacks.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::After;
use crate::event::{TaintPolicy, words};
use crate::handoff::{Handoff, State};
use crate::ids::{HandoffId, Hash, Position, TaskId};
use crate::task::{Task, TaskState};

/// How many tasks are noted that were given what one came to.
pub const PASSED_MAX: usize = 10_000;
/// By how many things a task is said to be tainted. It is tainted, whatever else comes.
pub const TAINTS_MAX: usize = 1000;

/// What a task has come to when another goes on that waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CameTo {
    /// It has a result.
    Completed,
    /// It had a result, which was taken back.
    Retracted,
    Failed,
    Cancelled,
    DeadLettered,
    /// It is not at its end.
    Open,
}

words!(CameTo {
    Completed = "completed",
    Retracted = "retracted",
    Failed = "failed",
    Cancelled = "cancelled",
    DeadLettered = "dead_lettered",
    Open = "open",
});

/// One of the tasks that were waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "JoinedTask")]
pub struct Member {
    pub task_id: TaskId,
    pub came_to: CameTo,
    /// Its last handoff, if it was handed on at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_id: Option<HandoffId>,
    /// The address of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Hash>,
    /// Where the result is kept.
    #[serde(default, rename = "result_at", skip_serializing_if = "Option::is_none")]
    pub result_pos: Option<Position>,
}

/// A join: how far a handoff has come with the tasks that it waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joining {
    /// The time in which it waits is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overdue: bool,
    /// What it went on with, once it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<Member>>,
}

impl Member {
    /// What a task has come to. `last` is its last handoff.
    #[must_use]
    pub fn of(task: &Task, last: Option<&Handoff>) -> Self {
        let retracted = last.is_some_and(|last| {
            matches!(last.state, State::Completed { retracted_pos: Some(_), .. })
        });
        // What its owner ended it with is what it came to, whatever was handed on before.
        let own = task.result_pos.is_some();
        let came_to = match task.state {
            TaskState::Completed if retracted && !own => CameTo::Retracted,
            TaskState::Completed => CameTo::Completed,
            TaskState::Failed => CameTo::Failed,
            TaskState::Cancelled => CameTo::Cancelled,
            TaskState::DeadLettered => CameTo::DeadLettered,
            TaskState::Open => CameTo::Open,
        };
        let (result, result_pos) = match last.map(|last| &last.state) {
            _ if came_to != CameTo::Completed => (None, None),
            _ if own => (None, task.result_pos),
            Some(State::Completed { result, result_pos, .. }) => (Some(*result), Some(*result_pos)),
            Some(_) | None => (None, None),
        };
        Self { task_id: task.id, came_to, handoff_id: task.last, result, result_pos }
    }

    /// What those who build on it have to do without, if they have.
    #[must_use]
    pub fn gap(&self) -> Option<(String, String)> {
        let reason = match self.came_to {
            CameTo::Completed => return None,
            CameTo::Retracted => "its result was taken back",
            CameTo::Failed => "it failed",
            CameTo::Cancelled => "it was cancelled",
            CameTo::DeadLettered => "it could not be done",
            CameTo::Open => "it was not done when the work went on",
        };
        Some((self.task_id.to_string(), format!("the work waited for this task, and {reason}")))
    }
}

impl Handoff {
    /// The tasks that it waits for, as long as it does.
    #[must_use]
    pub fn waits_for_tasks(&self) -> Option<&After> {
        let joined = self.join.as_ref().is_some_and(|join| join.members.is_some());
        self.contract.after.as_ref().filter(|_| !joined)
    }

    /// What it was given of the tasks that it waited for.
    #[must_use]
    pub fn joined(&self) -> &[Member] {
        self.join.as_ref().and_then(|join| join.members.as_deref()).unwrap_or_default()
    }
}

impl Task {
    /// Whether what this one came to is part of what another is built on.
    #[must_use]
    pub fn is_part_of(&self, other: &Task) -> bool {
        let ended_well = self.state == TaskState::Completed;
        ended_well && self.parent_task_id == Some(other.id)
            || self.tree.passed_to.contains(&other.id)
    }

    /// Whether it was opened below another when that was built on this result already. What it came to
    /// counts for the one above it, whatever it is built on.
    #[must_use]
    pub fn is_opened_on(&self, parent: &Task, source: &Handoff) -> bool {
        let since = source.state.result_pos();
        self.parent_task_id == Some(parent.id)
            && !self.state.is_terminal()
            && since.is_some_and(|since| since < self.intent_pos)
    }

    /// By which of these it is not said to be tainted yet, nor was found to be fine in spite of.
    #[must_use]
    pub fn not_tainted_by(
        &self,
        by: impl IntoIterator<Item = (HandoffId, TaintPolicy)>,
    ) -> Vec<(HandoffId, TaintPolicy)> {
        let room = TAINTS_MAX.saturating_sub(self.taints.len());
        let mut known: BTreeSet<_> = self.taints.iter().map(|(source, _)| *source).collect();
        known.extend(self.tree.cleared.iter());
        by.into_iter().filter(|(source, _)| known.insert(*source)).take(room).collect()
    }
}
