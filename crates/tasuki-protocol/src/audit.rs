// SPDX-License-Identifier: Apache-2.0
//! The audit log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::canonical::Object;
use tasuki_core::{HandoffId, Hash, Position, TaskId};

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

/// From where on the log is followed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowEvents {
    /// Only events after this position; `Last-Event-ID` wins over it. From now on by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Only events of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only events of this handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
}

/// From where on the log is exported.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportLog {
    /// Only what comes after this position.
    #[serde(default)]
    pub after: u64,
}
