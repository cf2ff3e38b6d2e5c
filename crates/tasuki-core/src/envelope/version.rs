// SPDX-License-Identifier: Apache-2.0
//! Majors of the envelope. Major 2 is what is stored. Major 1 is flat: `task_id`, `from_agent`,
//! `action`, `payload`, `context` and `metadata`, with everything else inside `context`. Both ways
//! nothing is lost, so that old and new agents can stand in one chain in any order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Envelope, Fault, Payload, VERSION};
use crate::canonical::Object;
use crate::ids::{AgentId, TaskId};

/// An envelope, or a hop, of major 1. What a sender of a hop leaves out is the broker's to know.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Flat {
    /// `1.` and a minor.
    #[schemars(regex(pattern = r"^1\.[0-9]+$"))]
    pub envelope_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// `completed`, `failed`, `needs_review` or `escalated`.
    pub action: String,
    pub payload: Payload,
    /// Everything else, by the names that major 2 has for it; `items` is its `context`.
    pub context: Object,
    #[serde(default)]
    pub metadata: Object,
}

/// An envelope in whichever major it is served.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AnyEnvelope {
    Envelope(Box<Envelope>),
    Flat(Flat),
}

/// The majors that can be served and taken.
pub const MAJORS: &[u32] = &[1, 2];

/// What stands beside `context` in major 1.
const FLAT: &[&str] =
    &["envelope_version", "task_id", "from_agent", "action", "payload", "metadata"];
/// The words for `action` that major 1 has.
const ACTIONS: &[&str] = &["completed", "failed", "needs_review", "escalated"];
/// Where major 1 keeps what it has no word for, and the items that major 2 calls `context`.
const ACTION: &str = "action";
const ITEMS: &str = "items";
/// What only the broker writes, so that a sender who returns what it was given is not refused.
const BROKERS: &[&str] = &[
    "hop",
    "previous",
    "created_at",
    "parent_task_id",
    "asked_to",
    "signed",
    "lifted",
    "deadline",
    "idempotency_key",
];
/// Lists that are inherited. An entry with the name of who made it is one that is there already.
const INHERITED: &[&str] = &["decisions", "open_decisions", "history", "gaps"];

/// The major and minor of a version.
pub fn parse(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether a version is a newer minor of the major that is stored: then members that are not known
/// here are kept.
#[must_use]
pub fn is_newer_minor(version: &str) -> bool {
    let (ours, theirs) = (parse(VERSION), parse(version));
    ours.zip(theirs).is_some_and(|((ours, minor), (theirs, newer))| ours == theirs && newer > minor)
}

/// The major to serve: the newest that the receiver takes.
#[must_use]
pub fn serve(accepted: &[u32]) -> Option<u32> {
    if accepted.is_empty() {
        return MAJORS.last().copied();
    }
    MAJORS.iter().rev().copied().find(|major| accepted.contains(major))
}

/// An envelope of major 2 as one of major 1.
#[must_use]
pub fn to_1(envelope: Map<String, Value>) -> Map<String, Value> {
    let mut flat = Map::new();
    let mut context = Map::new();
    for (name, value) in envelope {
        match name.as_str() {
            "envelope_version" => {
                flat.insert(name, json!("1.0"));
            }
            "action" => {
                let known = value.as_str().is_some_and(|word| ACTIONS.contains(&word));
                let word = if known { value.clone() } else { json!("needs_review") };
                flat.insert(name, word);
                if !known {
                    context.insert(ACTION.into(), value);
                }
            }
            "context" => {
                context.insert(ITEMS.into(), value);
            }
            name if FLAT.contains(&name) => {
                flat.insert(name.to_owned(), value);
            }
            _ => {
                context.insert(name, value);
            }
        }
    }
    flat.insert("context".into(), Value::Object(context));
    flat
}

/// An envelope of major 1 as one of major 2.
pub fn from_1(flat: Map<String, Value>) -> Result<Map<String, Value>, Vec<Fault>> {
    let mut envelope = Map::new();
    let mut faults = Vec::new();
    let mut inside = Map::new();
    for (name, value) in flat {
        match (name.as_str(), value) {
            ("envelope_version", _) => {
                envelope.insert(name, json!(VERSION));
            }
            ("context", Value::Object(members)) => inside = members,
            ("context", _) => faults.push(Fault::new("/context", "expected an object")),
            (_, value) => {
                envelope.insert(name, value);
            }
        }
    }
    for (name, value) in inside {
        let name = if name == ITEMS { "context".to_owned() } else { name };
        if FLAT.contains(&name.as_str()) && name != ACTION {
            faults.push(Fault::new(format!("/context/{name}"), "stands beside `context`"));
        }
        envelope.insert(name, value);
    }
    if faults.is_empty() { Ok(envelope) } else { Err(faults) }
}

/// What somebody who speaks major 1 offers, as an offer of today. It may give back what it was
/// given: what the broker carries by itself is left out.
pub fn offer_from_1(flat: Map<String, Value>) -> Result<Map<String, Value>, Vec<Fault>> {
    let mut offer = from_1(flat)?;
    offer.remove("envelope_version");
    for name in BROKERS {
        offer.remove(*name);
    }
    for name in INHERITED {
        if let Some(Value::Array(list)) = offer.get_mut(*name) {
            list.retain(|entry| entry.get("by").is_none() && entry.get("agent").is_none());
        }
    }
    Ok(offer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(members) = value else { panic!("no object") };
        members
    }

    fn example() -> Map<String, Value> {
        object(json!({
            "envelope_version": VERSION, "task_id": "task_1", "from_agent": "coder", "hop": 2,
            "to": { "agent": "reviewer" }, "action": "request", "control": "passed",
            "intent": "add an endpoint", "payload": { "type": "diff" }, "metadata": { "n": 1 },
            "constraints": [{ "text": "Never." }], "context": [{ "id": "ms-1", "form": "stub" }],
            "mood": "hopeful",
        }))
    }

    #[test]
    fn there_and_back_nothing_is_lost() {
        let flat = to_1(example());
        let mut names: Vec<_> = flat.keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut six = [FLAT, &["context"]].concat();
        six.sort_unstable();
        assert_eq!(names, six);
        assert_eq!(flat["action"], "needs_review");
        assert_eq!(flat["context"]["mood"], "hopeful");
        assert_eq!(from_1(flat), Ok(example()));
    }

    #[test]
    fn an_old_agent_may_give_back_what_it_was_given() {
        let mut flat = to_1(example());
        flat["context"]["history"] =
            json!([{ "action": "old", "agent": "x" }, { "action": "new" }]);
        let offer = offer_from_1(flat).unwrap();
        assert!(!offer.contains_key("hop") && !offer.contains_key("envelope_version"));
        assert_eq!(offer["history"], json!([{ "action": "new" }]));
        assert_eq!(offer["constraints"], example()["constraints"]);
    }

    #[test]
    fn what_has_two_places_is_refused() {
        let flat = object(json!({ "payload": {}, "context": { "payload": {} } }));
        assert_eq!(from_1(flat).unwrap_err()[0].path, "/context/payload");
        assert!(from_1(object(json!({ "context": "none" }))).is_err());
    }

    #[test]
    fn the_newest_major_that_is_taken_is_served() {
        assert_eq!(serve(&[]), Some(2));
        assert_eq!(serve(&[1]), Some(1));
        assert_eq!(serve(&[1, 2]), Some(2));
        assert_eq!(serve(&[3]), None);
        assert!(is_newer_minor("2.999") && !is_newer_minor(VERSION) && !is_newer_minor("3.9"));
    }
}
