// SPDX-License-Identifier: Apache-2.0
//! The audit log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::canonical::Object;
use tasuki_core::{Cursor, HandoffId, Hash, Position, TaskId};

/// An audit event where it stands in the log.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Where it stands.
    pub position: Cursor,
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
    /// Up to where it was told.
    pub after: Cursor,
    /// It goes on after this. What is known from events between it and `after` has to be read anew.
    pub resume_after: Cursor,
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
    /// Entries up to this number were found intact by an earlier check and not looked at again;
    /// absent if this check looked at all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_before: Option<Position>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<Finding>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The number of the entry, counted from the first of the log.
    pub position: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    pub problem: String,
}

/// From where on the log is followed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowEvents {
    /// Only events after this; `Last-Event-ID` wins over it. `0` is before everything; from now on
    /// without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// Only events of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only events of this handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// With `false` the stream ends where the log ended when it was asked for; without it, it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<bool>,
}

/// From where on the log is exported.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportLog {
    /// Only what comes after this: the `cursor` of a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
}

/// How much of the log is checked.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VerifyLog {
    /// All of it, and not only what came since the last checkpoint that was found intact.
    #[serde(default)]
    pub full: bool,
}
