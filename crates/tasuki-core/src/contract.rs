// SPDX-License-Identifier: Apache-2.0
//! What sender and receiver agree on besides how long the work may take. The sender offers; the
//! receiver accepts by claiming, declines, or makes a counter-offer, which the sender settles.

use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::canonical::Object;
use crate::envelope::Target;
use crate::ids::{AgentId, Capability, CorrelationId, Hash, Position, TaskId};
use crate::pipeline::StageRef;
use crate::route::Why;
use crate::terms::Terms;
use crate::trace::Context;

/// How many others a handoff may name.
pub const FALLBACKS_MAX: usize = 16;
/// How many a handoff may name that may approve it.
pub const APPROVERS_MAX: usize = 16;
/// How many counter-offers a handoff has at once.
pub const COUNTERS_MAX: usize = 16;

// Three things that an offer says together, and one for those who watch. Written, they are one object,
// whose published description is that of its members.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Flat", into = "Flat")]
#[schemars(with = "Flat")]
pub struct Contract {
    pub agreement: Agreement,
    pub routing: Routing,
    /// What must be done before it can be claimed.
    pub after: Option<After>,
    /// What the task may spend from here on.
    pub budget: Option<Budget>,
    pub fill: Option<Fill>,
    /// Who may approve it, if it waits for that; without names, whoever is permitted to.
    pub approvers: Vec<AgentId>,
    /// The name by which the sender finds everything that belongs together.
    pub correlation_id: Option<CorrelationId>,
    /// The trace that it was made in, as its envelope says.
    pub trace: Option<Context>,
}

/// What a receiver accepts by claiming, and what its result is held against. It does not change while
/// the work is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agreement {
    pub capability: Option<Capability>,
    pub output_schema: Option<Hash>,
    pub expected_output: Option<Hash>,
    pub majors: Vec<u32>,
    pub budget_tokens: Option<u32>,
    pub read_back: Option<Hash>,
    pub stage: Option<StageRef>,
    /// Whether the envelope names references that the work has to do without.
    pub has_gaps: bool,
}

/// How the receiver was chosen, and who is asked instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    pub fallbacks: Vec<Target>,
    pub diverted_from: Option<Target>,
    pub routed: Option<Why>,
}

// A contract as it is written, in the log, in rows and in replies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Contract")]
struct Flat {
    /// What is to be done. The receiver's manifest says what goes in and what comes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capability: Option<Capability>,
    /// The address of the JSON Schema that the result must fit, which is in the envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Hash>,
    /// The address of what is wanted back, which is in the envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_output: Option<Hash>,
    /// Which majors of the envelope the sender can give; without any, the broker's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    majors: Vec<u32>,
    /// How many tokens the work may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u32>,
    /// What the task may spend from here on, it and everything below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<Budget>,
    /// What the receiver must repeat before its claim counts: the address of what binds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_back: Option<Hash>,
    /// Who is asked next, in this order, if the receiver cannot or will not do it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fallbacks: Vec<Target>,
    /// Whom the sender asked, if nothing is sent there at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diverted_from: Option<Target>,
    /// What must be done before it can be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<After>,
    /// How full the receiver's budget was, and how much of what there was got in, as the sender was
    /// told when it put the envelope together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fill: Option<Fill>,
    /// Where in a declared route this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stage: Option<StageRef>,
    /// Whether the envelope names references that the work has to do without.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_gaps: bool,
    /// Who may approve it, if it waits for that; without names, whoever is permitted to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    approvers: Vec<AgentId>,
    /// The name by which the sender finds everything that belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation_id: Option<CorrelationId>,
    /// How the receiver was chosen, if the broker chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    routed: Option<Why>,
    /// The trace that it was made in, as its envelope says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<Context>,
}

impl From<Flat> for Contract {
    fn from(flat: Flat) -> Self {
        Self {
            approvers: flat.approvers,
            correlation_id: flat.correlation_id,
            trace: flat.trace,
            agreement: Agreement {
                capability: flat.capability,
                output_schema: flat.output_schema,
                expected_output: flat.expected_output,
                majors: flat.majors,
                budget_tokens: flat.budget_tokens,
                read_back: flat.read_back,
                stage: flat.stage,
                has_gaps: flat.has_gaps,
            },
            routing: Routing {
                fallbacks: flat.fallbacks,
                diverted_from: flat.diverted_from,
                routed: flat.routed,
            },
            after: flat.after,
            budget: flat.budget,
            fill: flat.fill,
        }
    }
}

impl From<Contract> for Flat {
    fn from(contract: Contract) -> Self {
        let Contract { agreement, routing, after, budget, fill, approvers, correlation_id, trace } =
            contract;
        Self {
            approvers,
            correlation_id,
            trace,
            capability: agreement.capability,
            output_schema: agreement.output_schema,
            expected_output: agreement.expected_output,
            majors: agreement.majors,
            budget_tokens: agreement.budget_tokens,
            budget,
            read_back: agreement.read_back,
            fallbacks: routing.fallbacks,
            diverted_from: routing.diverted_from,
            after,
            fill,
            stage: agreement.stage,
            has_gaps: agreement.has_gaps,
            routed: routing.routed,
        }
    }
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

impl Agreement {
    /// Whether a result must be held against it.
    #[must_use]
    pub fn binds_result(&self) -> bool {
        self.names_output() || self.has_gaps || self.route().is_some()
    }

    /// The stage that ends, where the declared route says what follows. Nothing follows one of several
    /// stages at once; their join does.
    #[must_use]
    pub fn route(&self) -> Option<&StageRef> {
        self.stage.as_ref().filter(|stage| !stage.branch)
    }

    /// Whether the envelope says what the result must be.
    #[must_use]
    pub fn names_output(&self) -> bool {
        self.output_schema.is_some() || self.expected_output.is_some()
    }
}

impl Contract {
    /// To be kept with the handoff. Most offers say nothing here, and those share one.
    #[must_use]
    pub fn shared(&self) -> Arc<Self> {
        static EMPTY: LazyLock<Arc<Contract>> = LazyLock::new(Arc::default);
        if self.is_empty() { EMPTY.clone() } else { Arc::new(self.clone()) }
    }

    /// Whether it says anything at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A counter-offer: the terms on which a receiver would take the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    pub agent: AgentId,
    pub terms: Terms,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    /// Where the reason is kept.
    #[serde(rename = "at")]
    pub reason_pos: Position,
}
