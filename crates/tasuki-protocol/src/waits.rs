// SPDX-License-Identifier: Apache-2.0
//! Waiting for handoffs and tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::{HandoffId, TaskId};

use crate::{HandoffWithResult, Task};

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
pub(crate) fn fifteen_seconds() -> u64 {
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
    /// Its holder asks something, or it is over.
    InputRequired,
    /// It is at its end.
    #[default]
    Settled,
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
