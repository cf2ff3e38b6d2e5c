// SPDX-License-Identifier: Apache-2.0
//! What populations of agents do. The answer is the report of the core, as it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::Timestamp;

/// What counts as usual; without anything, the first third of the handoffs that are looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowPopulation {
    /// What counts as usual begins here; without it, with what is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_from: Option<Timestamp>,
    /// What counts as usual ends here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_until: Option<Timestamp>,
    /// Compare agents with each other alone, and with nothing that was before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_baseline: bool,
}
