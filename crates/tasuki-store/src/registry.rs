// SPDX-License-Identifier: Apache-2.0
//! What is known of agents, tokens, tenants, breakers, pauses, channels, pipelines, reservations and
//! alerts, as rows.

use tasuki_core::ids::Malformed;
use tasuki_core::registry::{Entry, Registry};
use tasuki_core::{Position, Target};

use crate::codec;
use crate::live::Live;

/// A row that is to be written.
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) data: String,
    /// The event that the manifest came with, if this is an agent that has one.
    pub(crate) body_pos: Option<Position>,
}

impl Row {
    pub(crate) fn of(entry: &Entry) -> Self {
        let name = match entry {
            Entry::Agent(agent) => agent.id.to_string(),
            Entry::Token(token) => token.id.to_string(),
            Entry::Tenant(tenant) => tenant.id.to_string(),
            Entry::Breaker(breaker) => of_target(&breaker.target),
            Entry::Pause(pause) => of_target(&pause.target),
            Entry::Alert(alert) => of_alert(Some(&alert.moved.key.rule), &alert.moved.key.target),
            Entry::Silence(silence) => {
                of_alert(silence.silenced.rule.as_ref(), &silence.silenced.target)
            }
            Entry::Pipeline(pipeline) => format!("{}:{}", pipeline.version, pipeline.name),
            Entry::Channel(channel) => channel.id.to_string(),
            Entry::Reservation(reservation) => reservation.handoff.to_string(),
        };
        let body_pos = match entry {
            Entry::Agent(agent) => agent.manifest.as_ref().map(|manifest| manifest.body_pos),
            Entry::Token(_)
            | Entry::Tenant(_)
            | Entry::Breaker(_)
            | Entry::Channel(_)
            | Entry::Pause(_)
            | Entry::Alert(_)
            | Entry::Silence(_)
            | Entry::Pipeline(_)
            | Entry::Reservation(_) => None,
        };
        let (kind, data) = codec::encode_entry(entry);
        Self { kind, name, data, body_pos }
    }
}

fn of_target(target: &Target) -> String {
    match target {
        Target::Agent(agent) => format!("agent:{agent}"),
        Target::Capability(capability) => format!("capability:{capability}"),
    }
}

fn of_alert(rule: Option<&String>, target: &Option<String>) -> String {
    let all = String::new();
    format!("{}:{}", rule.unwrap_or(&all), target.as_ref().unwrap_or(&all))
}

/// Whether rows of a kind say who may do what.
pub(crate) fn gives_rights(kind: &str) -> bool {
    matches!(kind, "agent" | "token" | "tenant")
}

/// The hash that an agent's manifest must have.
pub(crate) fn manifest_hash(entry: &Entry) -> Option<tasuki_core::Hash> {
    let Entry::Agent(agent) = entry else { return None };
    agent.manifest.as_ref().map(|manifest| manifest.hash)
}

/// Puts a row back where it came from.
pub(crate) fn put(
    registry: &mut Registry,
    kind: &str,
    data: &str,
    at: Position,
) -> Result<(), Malformed> {
    let entry = codec::decode_entry(kind, data)?;
    registry.last_pos = registry.last_pos.max(at);
    registry.put(entry);
    Ok(())
}

/// The rows that the changes since the last commit have made old, each once, as they are now.
pub(crate) fn changed(live: &Live) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for entry in live.known_anew.iter().rev() {
        let row = Row::of(entry);
        if !rows.iter().any(|known| known.kind == row.kind && known.name == row.name) {
            rows.push(row);
        }
    }
    rows
}
