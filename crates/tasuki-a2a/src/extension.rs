// SPDX-License-Identifier: Apache-2.0
//! What this broker says and takes beyond the protocol: an extension that is never required. A client
//! that does not know it loses nothing; one that does can make a send safe to repeat, bound the work,
//! and read who holds it.

use axum::http::HeaderMap;
use serde_json::{Map, Value, json};
use tasuki_core::trace::MEMBERS;

/// Carries its version: what breaks somebody gets another one.
pub(crate) const URI: &str = "https://w3id.org/tasuki/a2a/handoff/v1";

/// What a client may say under it, as members of the offer that its message becomes.
pub(crate) const SAID: [&str; 17] = [
    "capability",
    "constraints",
    "add_constraints",
    "expected_output",
    "output_schema",
    "deadline",
    "expires_in_ms",
    "start_in_ms",
    "priority",
    "terms",
    "budget",
    "budget_tokens",
    "project",
    "summary",
    "ask",
    "memory_refs",
    "fallbacks",
];

/// And this one, which makes sending safe to repeat.
pub(crate) const KEY: &str = "idempotency_key";

/// In whose name, where nobody has to say who it is.
pub(crate) const FROM: &str = "from_agent";

pub(crate) const SCHEMA: &str = include_str!("../extension/schema.json");
pub(crate) const PAGE: &str = include_str!("../extension/README.md");

/// The trace that a request belongs to.
pub(crate) fn trace(headers: &HeaderMap) -> Map<String, Value> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let found = MEMBERS.iter().filter_map(|name| Some(((*name).to_owned(), text(name)?.into())));
    found.collect()
}

/// What is said under it, on the message before the request.
pub(crate) fn said(message: Option<&Map<String, Value>>, request: &Map<String, Value>) -> Value {
    let under = |metadata: &Map<String, Value>| metadata.get(URI).cloned();
    whole(message.and_then(under).or_else(|| under(request)).unwrap_or_default())
}

/// A member of it as our own API calls it. The protocol writes `expiresInMs`; either is read.
pub(crate) fn ours(name: &str) -> String {
    let mut ours = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            ours.push('_');
        }
        ours.push(letter.to_ascii_lowercase());
    }
    ours
}

/// In whose name something is said, where nobody has to say who it is.
pub(crate) fn from(said: &Value) -> Option<&str> {
    said.get("fromAgent").or_else(|| said.get(FROM)).and_then(Value::as_str)
}

/// Clients that are built on protocol buffers know one kind of number, so that 3 comes as 3.0.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Up to here each whole number is a floating one too.
            Some(float) if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0 => {
                Value::from(float as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(list) => list.into_iter().map(whole).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, whole(value))).collect()
        }
        value => value,
    }
}

pub(crate) fn declared() -> Value {
    json!({
        "uri": URI,
        "description": "Durable handoffs: idempotency key, deadline, budget, constraints, claim \
                        state, attempt, audit hash",
    })
}
