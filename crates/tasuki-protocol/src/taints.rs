// SPDX-License-Identifier: Apache-2.0
//! Results that were taken back, and what is built on them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::event::TaintPolicy;
use tasuki_core::{AgentId, HandoffId};

/// Takes back what a completed handoff produced.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retract {
    pub by: AgentId,
    /// Why; it stands in the log.
    pub reason: String,
    /// What becomes of work that was built on it: `flag` tells everybody, `block` holds it back until
    /// somebody has approved.
    #[serde(default)]
    pub policy: TaintPolicy,
}

/// Says that a task may go on although something that it is built on no longer holds.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearTaint {
    /// The task's coordinator.
    pub by: AgentId,
    /// The handoff whose result no longer holds.
    pub source: HandoffId,
    /// Why; it stands in the log.
    pub reason: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaintedBy {
    /// The handoff that failed, or whose result was taken back.
    pub source: HandoffId,
    pub policy: TaintPolicy,
}
