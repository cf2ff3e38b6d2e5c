// SPDX-License-Identifier: Apache-2.0
//! What changed between two envelopes, by their parts and not by their text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Envelope;
use super::parts::{ContextItem, Form};
use crate::assembly::Tokenizer;

/// What was added and what is gone, in the words of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

impl Change {
    fn between<'t>(
        old: impl Iterator<Item = (String, &'t str)>,
        new: impl Iterator<Item = (String, &'t str)>,
    ) -> Self {
        let old: BTreeMap<String, &str> = old.collect();
        let new: BTreeMap<String, &str> = new.collect();
        let only = |these: &BTreeMap<String, &str>, those: &BTreeMap<String, &str>| {
            let only = these.iter().filter(|(key, _)| !those.contains_key(*key));
            only.map(|(_, text)| (*text).to_owned()).collect()
        };
        Self { added: only(&new, &old), removed: only(&old, &new) }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// A memory whose form changed from one envelope to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    pub id: String,
    /// None if it was not there.
    pub from: Option<Form>,
    /// None if it is not there any more.
    pub to: Option<Form>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    pub from_hop: u32,
    pub to_hop: u32,
    /// Whether the second follows the first directly.
    pub linked: bool,
    pub same_intent: bool,
    pub same_payload: bool,
    pub constraints: Change,
    pub lifted: Change,
    pub decisions: Change,
    pub open_decisions: Change,
    pub gaps: Change,
    pub memory_refs: Change,
    pub history: Change,
    pub context: Vec<Moved>,
    /// Other parts that differ, by name.
    pub other: Vec<String>,
    /// How many tokens each part is, as JSON, in one and in the other; those of other sizes only.
    pub tokens: Vec<PartTokens>,
    /// How many tokens all of it is.
    pub tokens_from: u64,
    pub tokens_to: u64,
}

/// How many tokens a part of an envelope is; 0 where it is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartTokens {
    pub part: String,
    pub from: u64,
    pub to: u64,
}

/// Compares two envelopes. Sizes are in the tokens of their reader.
#[must_use]
pub fn diff(old: &Envelope, new: &Envelope, tokenizer: Tokenizer) -> Diff {
    let (a, b) = (&old.parts, &new.parts);
    macro_rules! change {
        ($list:ident, $key:expr, $text:expr) => {{
            fn entries<'p, T>(
                list: &'p [T],
                key: impl Fn(&'p T) -> String,
                text: impl Fn(&'p T) -> &'p str,
            ) -> impl Iterator<Item = (String, &'p str)> {
                list.iter().map(move |one| (key(one), text(one)))
            }
            Change::between(entries(&a.$list, $key, $text), entries(&b.$list, $key, $text))
        }};
    }
    let mut other = Vec::new();
    let mut differs = |name: &str, differs: bool| {
        if differs {
            other.push(name.to_owned());
        }
    };
    differs("summary", a.summary != b.summary);
    differs("ask", a.ask != b.ask);
    differs("state", a.state != b.state);
    differs("tried", a.tried != b.tried);
    differs("assumptions", a.assumptions != b.assumptions);
    differs("expected_output", a.expected_output != b.expected_output);
    differs("action", old.action != new.action);
    differs("to", old.to != new.to);
    differs("more", old.more != new.more);
    Diff {
        from_hop: old.hop,
        to_hop: new.hop,
        linked: new.previous == Some(old.body().hash),
        same_intent: old.intent == new.intent,
        same_payload: old.payload == new.payload,
        constraints: change!(constraints, |c| c.id.to_string(), |c| &c.text),
        lifted: change!(lifted, |l| format!("{} {}", l.id, l.hop), |l| &l.text),
        decisions: change!(decisions, |d| d.id.to_string(), |d| &d.decision),
        open_decisions: change!(open_decisions, |d| d.id.to_string(), |d| &d.question),
        gaps: change!(gaps, |g| g.reference.clone(), |g| &g.reference),
        memory_refs: change!(memory_refs, |m| format!("{} {:?}", m.id, m.revision), |m| &m.id),
        history: change!(history, |s| format!("{} {} {}", s.agent, s.at, s.action), |s| &s.action),
        context: moved(&a.context, &b.context),
        other,
        tokens: sizes(old, new, tokenizer),
        tokens_from: tokenizer.count(old.body().text()),
        tokens_to: tokenizer.count(new.body().text()),
    }
}

fn sizes(old: &Envelope, new: &Envelope, tokenizer: Tokenizer) -> Vec<PartTokens> {
    let mut parts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (envelope, is_new) in [(old, false), (new, true)] {
        let Ok(Value::Object(members)) = serde_json::to_value(envelope) else { continue };
        for (part, value) in members {
            let tokens = tokenizer.count(&value.to_string());
            let sizes = parts.entry(part).or_default();
            *(if is_new { &mut sizes.1 } else { &mut sizes.0 }) = tokens;
        }
    }
    let parts = parts.into_iter().filter(|(_, (from, to))| from != to);
    parts.map(|(part, (from, to))| PartTokens { part, from, to }).collect()
}

fn moved(old: &[ContextItem], new: &[ContextItem]) -> Vec<Moved> {
    let forms = |items: &[ContextItem]| -> BTreeMap<String, Form> {
        items.iter().map(|item| (item.id.clone(), item.form)).collect()
    };
    let (old, new) = (forms(old), forms(new));
    let mut ids: Vec<_> = old.keys().chain(new.keys()).cloned().collect();
    ids.sort();
    ids.dedup();
    let pairs = ids.into_iter().map(|id| {
        let (from, to) = (old.get(&id).copied(), new.get(&id).copied());
        Moved { id, from, to }
    });
    pairs.filter(|moved| moved.from != moved.to).collect()
}
