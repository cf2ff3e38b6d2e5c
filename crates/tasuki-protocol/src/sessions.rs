// SPDX-License-Identifier: Apache-2.0
//! Who looks at the broker's pages, and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::ids::TenantId;
use tasuki_core::{AgentId, Timestamp};

/// Who asks, and what it may ask for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Who asks; absent where the broker does not ask who anybody is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    pub tenant: TenantId,
    /// Whether the broker asks who its callers are.
    pub authentication: bool,
    /// The operations that may be asked for at all. Towards which target is another matter.
    pub operations: Vec<String>,
    pub version: String,
    pub now: Timestamp,
}

/// Opens a session.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenSession {
    /// How long it lasts; eight hours without it, and at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// Something has changed. What it was is asked for by whoever wants to know.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    pub now: Timestamp,
}
