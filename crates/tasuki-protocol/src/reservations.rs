// SPDX-License-Identifier: Apache-2.0
//! Resources that the holder of a claim has for itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::ids::Resource;
use tasuki_core::{AgentId, ClaimId, Fence, HandoffId};

/// Takes resources for the holder of a claim, or gives them up.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// Paths and patterns of paths: `*` within a step, `**` for any number of steps.
    #[schemars(length(min = 1, max = 100))]
    pub resources: Vec<Resource>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reservations {
    pub reservations: Vec<Reservation>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reservation {
    pub handoff_id: HandoffId,
    pub agent: AgentId,
    /// The fence of the claim: what guards the resource can refuse an older one.
    pub fence: Fence,
    pub resources: Vec<Resource>,
}
