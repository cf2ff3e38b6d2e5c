// SPDX-License-Identifier: Apache-2.0
//! Channels: telling something to many.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::canonical::Object;
use tasuki_core::envelope::{Action, Payload, Said};
use tasuki_core::ids::{ChannelId, CorrelationId, IdempotencyKey, OrderingKey, Project};
use tasuki_core::{AgentId, Cursor, HandoffId, Target, TaskId, Timestamp};

use crate::{Coordinator, Missed, TermsPatch};

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
    pub since: Cursor,
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
    /// Who may approve it: nobody else then. Neither the sender nor a receiver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub approvers: Vec<AgentId>,
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
    /// Members that are not known, which is a mistake.
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Object,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    pub channel: ChannelId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    /// The task of whoever publishes; each receiver has one below it.
    pub task_id: TaskId,
    pub position: Cursor,
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
    pub next: Cursor,
    /// Said where messages before these may be missing: after a restore, or a failover of the
    /// database that lost some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Missed>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    pub position: Cursor,
    pub task_id: TaskId,
    pub from_agent: AgentId,
    pub published_at: Timestamp,
    /// The user's own words.
    pub intent: String,
    /// What was told, as one of the receivers got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
}

/// From where on messages are read.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadMessages {
    /// Only what was told after this; everything without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Cursor>,
    /// How many at most, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
