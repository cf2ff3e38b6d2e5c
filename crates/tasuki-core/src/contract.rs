// SPDX-License-Identifier: Apache-2.0
//! What sender and receiver agree on besides how long the work may take. The sender offers; the
//! receiver accepts by claiming, declines, or makes a counter-offer, which the sender settles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical::Object;
use crate::envelope::Target;
use crate::ids::{AgentId, Capability, Hash, Position, TaskId};
use crate::pipeline::StageRef;
use crate::route::Why;
use crate::terms::Terms;

/// How many others a handoff may name.
pub const FALLBACKS_MAX: usize = 16;
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
    /// Who is asked next, in this order, if the receiver cannot or will not do it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Target>,
    /// Whom the sender asked, if nothing is sent there at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diverted_from: Option<Target>,
    /// What must be done before it can be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// How full the receiver's budget was, and how much of what there was got in, as the sender was
    /// told when it put the envelope together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Fill>,
    /// Where in a declared route this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StageRef>,
    /// How the receiver was chosen, if the broker chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed: Option<Why>,
}

/// What a receipt of assembly says, for those who watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fill {
    pub token_count: u64,
    pub budget: u64,
    pub completeness_per_mille: u64,
}

impl Fill {
    /// From the metadata of an offer, where the sender put what its receipt says.
    #[must_use]
    pub fn of(metadata: &Object) -> Option<Self> {
        let number = |name: &str| metadata.0.get(name).and_then(serde_json::Value::as_u64);
        Some(Self {
            token_count: number("token_count")?,
            budget: number("budget")?,
            completeness_per_mille: number("completeness_per_mille")?,
        })
    }
}

/// Other tasks that come first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct After {
    pub tasks: Vec<TaskId>,
    /// How many of them must have a result.
    pub need: u32,
}

/// How many tasks a handoff may wait for.
pub const AFTER_MAX: usize = 100;

/// The part of a contract that a result is held against. A handoff keeps its contract, so this never
/// changes while the work is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    pub output_schema: Option<Hash>,
    pub expected_output: Option<Hash>,
    /// The stage that ends, where the declared route says what follows.
    pub stage: Option<StageRef>,
}

/// What a result was held against before it was handed in, and how the task goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub agreement: Agreement,
    pub successors: Successors,
}

/// Who said what follows a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Successors {
    /// The holder named its follow-ups, or there is no route that could name any.
    Named,
    /// The declared route: these stages, none of them at its end.
    Declared(Vec<StageRef>),
}

impl Contract {
    /// What a result must be held against, if anything.
    #[must_use]
    pub fn agreement(&self) -> Option<Agreement> {
        let agreement = Agreement {
            output_schema: self.output_schema,
            expected_output: self.expected_output,
            // Nothing follows one of several stages at once; their join does.
            stage: self.stage.clone().filter(|stage| !stage.branch),
        };
        (self.names_output() || agreement.stage.is_some()).then_some(agreement)
    }

    /// Whether the envelope says what the result must be.
    #[must_use]
    pub fn names_output(&self) -> bool {
        self.output_schema.is_some() || self.expected_output.is_some()
    }

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
