// SPDX-License-Identifier: Apache-2.0
//! Pipelines: declared routes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::canonical::Object;
use tasuki_core::envelope::{Payload, Said};
use tasuki_core::ids::{CorrelationId, IdempotencyKey, Project};
use tasuki_core::{AgentId, Timestamp};

use crate::Coordinator;

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
    /// Members that are not known, which is a mistake.
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Object,
}
