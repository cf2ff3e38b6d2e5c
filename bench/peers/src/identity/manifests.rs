//! Agents that there are to choose from, what they say of themselves, and what they are asked.
//!
//! Each agent has four capabilities that nobody else has, each with a schema of its own, and one
//! that twenty agents share. Every other one of those twenty wants to know one thing more.

use serde_json::{Value, json};

pub(super) const CAPABILITIES_EACH: u32 = 5;
const OWN_EACH: u32 = CAPABILITIES_EACH - 1;
pub(super) const SHARED_BY: u32 = 20;

pub(super) fn name(agent: u32) -> String {
    format!("agent-{agent}")
}

/// A capability that only this agent has; any number will do.
pub(super) fn own(agent: u32, number: u32) -> String {
    format!("own-{agent}-{}", number % OWN_EACH)
}

/// The capability that an agent shares with others.
pub(super) fn shared(agent: u32) -> String {
    format!("shared-{}", agent / SHARED_BY)
}

pub(super) fn manifest(agent: u32) -> Value {
    let own = (0..OWN_EACH).map(|number| {
        let name = own(agent, number);
        let input = input_schema(&name, &["query"]);
        capability(&name, &input)
    });
    let needed: &[&str] = if agent.is_multiple_of(2) { &["query"] } else { &["query", "depth"] };
    let input = input_schema("shared", needed);
    let capabilities: Vec<_> = own.chain([capability(&shared(agent), &input)]).collect();
    json!({
        "agent_id": name(agent),
        "role": "researcher",
        "version": "1.0.0",
        "tags": ["bench"],
        "capabilities": capabilities,
    })
}

fn capability(name: &str, input: &Value) -> Value {
    json!({
        "name": name,
        "description": "Looks things up and sums them up.",
        "input_schema": input,
        "output_schema": {
            "type": "object",
            "properties": { "answer": { "type": "string" } },
            "required": ["answer"],
        },
        "timeout_seconds": 300,
        "reliability_sla": 0.95,
    })
}

fn input_schema(title: &str, needed: &[&str]) -> Value {
    json!({
        "type": "object",
        "title": title,
        "properties": {
            "query": { "type": "string", "maxLength": 1000 },
            "depth": { "type": "integer", "minimum": 0, "maximum": 10 },
            "language": { "type": "string", "enum": ["en", "ja", "sw"] },
            "sources": { "type": "array", "items": { "type": "string" } },
        },
        "required": needed,
    })
}

/// What somebody would send who searches; it lacks the depth that every other agent wants.
pub(super) fn sought() -> Value {
    json!({
        "type": "object",
        "properties": { "query": { "type": "string", "maxLength": 500 } },
        "required": ["query"],
    })
}

/// A payload that all agents take.
pub(super) fn payload(text: &str) -> Value {
    json!({ "type": "question", "query": "who is who", "depth": 2, "language": "sw", "text": text })
}

/// A result that fits what all agents promise.
pub(super) fn result() -> Value {
    json!({ "type": "answer", "answer": "nobody" })
}

#[cfg(test)]
mod tests {
    use tasuki_core::manifest::{Manifest, fits::fits_as_named};

    use super::*;

    #[test]
    fn every_other_agent_takes_what_is_sought() {
        for agent in 0..SHARED_BY {
            let manifest = Manifest::parse(manifest(agent)).unwrap();
            assert_eq!(manifest.capabilities.len(), CAPABILITIES_EACH as usize);
            let entry = manifest.capability(&shared(agent).parse().unwrap()).unwrap();
            let takes = fits_as_named(&sought(), entry.input_schema.as_ref().unwrap()).is_ok();
            assert_eq!(takes, agent.is_multiple_of(2));
        }
    }
}
