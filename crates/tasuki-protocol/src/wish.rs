// SPDX-License-Identifier: Apache-2.0
//! What makes two requests the same wish. An idempotency key stands for the address of a wish, so the
//! same one has the same address through any door, from an SDK one minor older or newer, and whatever
//! the broker's settings are: in the names of today, without what is only a default, and without what
//! belongs to the transport. Its golden file is `tests/golden/wishes.json`.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tasuki_core::Hash;
use tasuki_core::canonical::Body;
use tasuki_core::ids::IdempotencyKey;

use crate::{Amend, Branch, NewMemory, Offer, OpenTask, Publication, StartPipeline};

/// A request that can be recognised when it comes again.
pub trait Wish: Serialize {
    /// What is wished for, by a word that is never reused.
    const KIND: &'static str;
    /// Members whose value is the same as silence, as JSON.
    const SILENT: &'static [(&'static str, &'static str)] = &[];

    /// Members that are no part of the wish.
    const BESIDE: &'static [&'static str] = &[];

    /// The sender's name for it.
    fn key(&self) -> Option<&IdempotencyKey>;

    /// Its address. `on` is what it is about, where its own members do not say.
    fn address(&self, on: Option<&str>) -> Hash {
        let said = serde_json::to_value(self).unwrap_or_default();
        let Value::Object(members) = said else { return Body::of(&said).hash };
        let mut said = spoken(members, Self::SILENT);
        Self::BESIDE.iter().for_each(|name| drop(said.remove(*name)));
        Body::of(&json!({ "wish": Self::KIND, "on": on, "said": said })).hash
    }
}

/// The key itself, a signature, which may be made anew, and the version that the sender speaks.
const BESIDE: [&str; 3] = ["idempotency_key", "signed", "envelope_version"];
/// Where a trace goes through is no part of a wish.
const TRACING: [&str; 3] = ["traceparent", "tracestate", "baggage"];

fn spoken(mut members: Map<String, Value>, silent: &[(&str, &str)]) -> Map<String, Value> {
    if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
        TRACING.iter().for_each(|name| drop(metadata.remove(*name)));
    }
    members.retain(|name, value| {
        let is_silent = |(known, default): &(&str, &str)| {
            known == name
                && serde_json::from_str(default).is_ok_and(|default: Value| default == *value)
        };
        !BESIDE.contains(&name.as_str()) && !value.is_null() && !silent.iter().any(is_silent)
    });
    members
}

impl Wish for OpenTask {
    const KIND: &'static str = "task";

    fn key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref()
    }
}

impl Wish for Offer {
    const KIND: &'static str = "offer";
    const SILENT: &'static [(&'static str, &'static str)] = &[
        ("control", r#""passed""#),
        ("action", r#""request""#),
        ("metadata", "{}"),
        ("terms", "{}"),
    ];

    fn key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref()
    }
}

impl Wish for Publication {
    const KIND: &'static str = "publication";
    const SILENT: &'static [(&'static str, &'static str)] =
        &[("action", r#""request""#), ("metadata", "{}"), ("terms", "{}")];

    fn key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref()
    }
}

impl Wish for StartPipeline {
    const KIND: &'static str = "pipeline";

    fn key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref()
    }
}

impl Wish for Branch {
    const KIND: &'static str = "branch";

    fn key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref()
    }
}

impl Wish for NewMemory {
    const KIND: &'static str = "memory";
    const SILENT: &'static [(&'static str, &'static str)] = &[("priority", r#""normal""#)];

    fn key(&self) -> Option<&IdempotencyKey> {
        self.idempotency_key.as_ref()
    }
}

/// It takes no key: the dead letter remembers by what it was amended, whoever says it again.
impl Wish for Amend {
    const KIND: &'static str = "amend";
    const BESIDE: &'static [&'static str] = &["by"];
    const SILENT: &'static [(&'static str, &'static str)] = &[("terms", "{}")];

    fn key(&self) -> Option<&IdempotencyKey> {
        None
    }
}
