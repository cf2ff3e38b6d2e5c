// SPDX-License-Identifier: Apache-2.0
//! What was found, in the form that is published.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::words;
use crate::ids::{HandoffId, Position, TaskId, Timestamp};

/// What is looked for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PopulationKind")]
pub enum Kind {
    /// A sender uses far more unknown words than it used to, compared with others at the same time.
    IllegibilityDrift,
    /// A sender chooses a receiver far more often than others do for the same capability.
    RoutingConcentration,
    /// An agent accepts, declines or claims the work of one sender unlike that of others.
    AcceptanceBias,
    /// Two agents pass a task back and forth and attach nothing new.
    PingPong,
    /// The graph of who hands to whom is not what it was.
    GraphDrift,
    /// Declared numbers of two agents move together more than those of others.
    NumericParallelism,
}

words!(Kind {
    IllegibilityDrift = "illegibility_drift",
    RoutingConcentration = "routing_concentration",
    AcceptanceBias = "acceptance_bias",
    PingPong = "ping_pong",
    GraphDrift = "graph_drift",
    NumericParallelism = "numeric_parallelism",
});

/// What agents did in a span of the log, and what of it is unusual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PopulationReport")]
pub struct Report {
    /// How many events were read.
    pub events: u64,
    /// How many handoffs they offered.
    pub handoffs: u64,
    /// How many of them were kept to be looked at.
    pub kept: u64,
    /// One of so many handoffs was kept; 1 means all of them.
    pub kept_every: u64,
    /// How many agents took part, as far as they are told apart.
    pub agents: u64,
    /// What counts as usual; without it, agents are compared with each other alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Span>,
    /// Whether somebody chose the baseline; else it is the first third of what was kept.
    pub baseline_chosen: bool,
    /// What was compared with it.
    pub current: Span,
    /// How often an honest population may raise any alarm at all, as a share.
    pub false_alarm_rate: f64,
    /// The seed of the permutations.
    pub seed: u64,
    /// What was looked for, whether it could be judged, and how.
    pub looked: Vec<Looked>,
    /// The strongest first, of each kind.
    pub findings: Vec<Finding>,
    /// Agents whose findings hang together, by kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// What was not told apart or left out because there was too much of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds_reached: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PopulationSpan")]
pub struct Span {
    pub from: Timestamp,
    pub until: Timestamp,
    pub handoffs: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PopulationLooked")]
pub struct Looked {
    pub kind: Kind,
    /// How many choices, messages, chains or values were looked at.
    pub n: u64,
    /// How many agents, pairs or measures were tested at once.
    pub tested: u64,
    /// How often the data were shuffled; 0 if the test needs none.
    pub permutations: u64,
    /// How often an honest population may raise an alarm of this kind, as a share.
    pub false_alarm_rate: f64,
    /// Why nothing could be judged, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PopulationFinding")]
pub struct Finding {
    pub kind: Kind,
    /// The agents that it is about, the one that acts first; none if it is about all of them.
    pub agents: Vec<String>,
    /// One sentence.
    pub summary: String,
    /// How large it is, in the unit beside it.
    pub effect: f64,
    pub unit: String,
    /// How many choices, messages, hops or values of theirs there were.
    pub n: u64,
    /// How often chance alone gives something as strong anywhere in a population like this, as a share.
    pub p: f64,
    /// From where on it is so, as far as that can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The last handoffs behind it.
    pub behind: Vec<Behind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PopulationBehind")]
pub struct Behind {
    pub position: Position,
    pub task_id: TaskId,
    pub handoff_id: HandoffId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PopulationGroup")]
pub struct Group {
    pub kind: Kind,
    pub agents: Vec<String>,
    /// How many findings link them.
    pub findings: u64,
}

/// How many handoffs a finding names.
pub(super) const BEHIND_MAX: usize = 10;
/// How many findings of a kind are told.
pub(super) const FINDINGS_MAX: usize = 50;

/// Agents that are linked by findings, three at least.
pub(super) fn groups(findings: &[Finding]) -> Vec<Group> {
    let mut groups: Vec<(Kind, Vec<String>, u64)> = Vec::new();
    for finding in findings.iter().filter(|it| it.agents.len() > 1) {
        let touches = |group: &(Kind, Vec<String>, u64)| {
            group.0 == finding.kind && finding.agents.iter().any(|agent| group.1.contains(agent))
        };
        let (linked, rest): (Vec<_>, Vec<_>) = groups.into_iter().partition(touches);
        let mut agents = finding.agents.clone();
        agents.extend(linked.iter().flat_map(|group| group.1.clone()));
        agents.sort();
        agents.dedup();
        let count = linked.iter().map(|group| group.2).sum::<u64>() + 1;
        groups = rest;
        groups.push((finding.kind, agents, count));
    }
    let group = |(kind, agents, findings)| Group { kind, agents, findings };
    groups.into_iter().filter(|(_, agents, _)| agents.len() > 2).map(group).collect()
}
