// SPDX-License-Identifier: Apache-2.0
//! What sender and receiver agree on besides how long the work may take. The sender offers; the
//! receiver accepts by claiming, declines, or makes a counter-offer, which the sender settles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, Capability, Hash, Position};
use crate::route::Why;
use crate::terms::Terms;

/// How many counter-offers a handoff has at once.
pub const COUNTERS_MAX: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contract {
    /// What is to be done. The receiver's manifest says what goes in and what comes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// The address of the JSON Schema that the result must fit, which is in the envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Hash>,
    /// The address of what is wanted back, which is in the envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<Hash>,
    /// Which majors of the envelope the sender can give; without any, the broker's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub majors: Vec<u32>,
    /// How many tokens the work may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// What the receiver must repeat before its claim counts: the address of what binds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<Hash>,
    /// How the receiver was chosen, if the broker chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed: Option<Why>,
}

impl Contract {
    /// Whether it says anything at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// On which terms a receiver would take the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    pub agent: AgentId,
    pub terms: Terms,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// Where the reason is kept.
    pub at: Position,
}
