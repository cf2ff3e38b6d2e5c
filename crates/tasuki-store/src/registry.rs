// SPDX-License-Identifier: Apache-2.0
//! What is known of agents, tokens, tenants, breakers, channels and reservations, as rows.

use tasuki_core::registry::{Entry, Registry};
use tasuki_core::{Position, Target};

use crate::live::Live;

/// A row that is to be written.
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) data: String,
    /// The event that the manifest came with, if this is an agent that has one.
    pub(crate) body_at: Option<Position>,
}

impl Row {
    pub(crate) fn of(entry: &Entry) -> Self {
        let (kind, name, data, body_at) = match entry {
            Entry::Agent(agent) => {
                let published = agent.manifest.as_ref().map(|manifest| manifest.at);
                ("agent", agent.id.to_string(), serde_json::to_string(&**agent), published)
            }
            Entry::Token(token) => {
                ("token", token.id.to_string(), serde_json::to_string(&**token), None)
            }
            Entry::Tenant(tenant) => {
                ("tenant", tenant.id.to_string(), serde_json::to_string(&**tenant), None)
            }
            Entry::Breaker(breaker) => {
                let name = match &breaker.target {
                    Target::Agent(agent) => format!("agent:{agent}"),
                    Target::Capability(capability) => format!("capability:{capability}"),
                };
                ("breaker", name, serde_json::to_string(&**breaker), None)
            }
            Entry::Channel(channel) => {
                ("channel", channel.id.to_string(), serde_json::to_string(&**channel), None)
            }
            Entry::Reservation(reservation) => {
                let name = reservation.handoff.to_string();
                ("reservation", name, serde_json::to_string(&**reservation), None)
            }
        };
        Self { kind, name, data: data.expect("entries have string keys only"), body_at }
    }
}

/// Puts a row back where it came from.
pub(crate) fn put(
    registry: &mut Registry,
    kind: &str,
    data: &str,
    at: Position,
) -> serde_json::Result<()> {
    let entry = match kind {
        "agent" => Entry::Agent(serde_json::from_str(data)?),
        "token" => Entry::Token(serde_json::from_str(data)?),
        "breaker" => Entry::Breaker(serde_json::from_str(data)?),
        "channel" => Entry::Channel(serde_json::from_str(data)?),
        "reservation" => Entry::Reservation(serde_json::from_str(data)?),
        _ => Entry::Tenant(serde_json::from_str(data)?),
    };
    registry.put(entry);
    registry.at = registry.at.max(at);
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
