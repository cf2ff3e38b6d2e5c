// SPDX-License-Identifier: Apache-2.0
//! What the receiver got, and what it did not get.

use serde::Serialize;
use serde_json::Value;
use tasuki_core::envelope::parts::{
    ContextItem, Decision, ExpectedOutput, Form, Gap, MemoryRef, OpenDecision,
};
use tasuki_core::envelope::{Constraint, Envelope, Payload, Taint};
use tasuki_core::{DocumentId, Hash};
use tasuki_protocol as wire;

use crate::output::Facts;

#[derive(Serialize)]
pub(super) struct Received {
    /// The address of the envelope: what was passed, byte for byte.
    envelope: Hash,
    intent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<String>,
    payload: Payload,
    constraints: Vec<Constraint>,
    decisions: Vec<Decision>,
    open_decisions: Vec<OpenDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_output: Option<ExpectedOutput>,
    /// Memories that are in the envelope, without their text.
    context: Vec<Item>,
    /// Memories that it can fetch.
    memory_refs: Vec<MemoryRef>,
    /// What could not be resolved.
    gaps: Vec<Gap>,
    /// What the work is built on and no longer holds, as the envelope says and as it is now.
    taints: Vec<Taint>,
    taints_now: Vec<wire::TaintedBy>,
    /// Memories that it fetched because less of them was passed.
    trim_regret: Vec<DocumentId>,
}

#[derive(Serialize)]
struct Item {
    id: String,
    form: Form,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

impl Received {
    pub(super) fn of(handoff: &wire::Handoff, envelope: &Envelope, task: &wire::Task) -> Self {
        let parts = envelope.parts.clone();
        let item = |item: ContextItem| Item { id: item.id, form: item.form, title: item.title };
        Self {
            envelope: handoff.envelope,
            intent: envelope.intent.clone(),
            summary: parts.summary,
            ask: parts.ask,
            payload: envelope.payload.clone(),
            constraints: parts.constraints,
            decisions: parts.decisions,
            open_decisions: parts.open_decisions,
            expected_output: parts.expected_output,
            context: parts.context.into_iter().map(item).collect(),
            memory_refs: parts.memory_refs,
            gaps: parts.gaps,
            taints: envelope.taints.clone(),
            taints_now: task.taints.clone(),
            trim_regret: handoff.trim_regret.clone(),
        }
    }

    pub(super) fn text(&self) -> String {
        let constraints = self.constraints.iter().map(|one| {
            let weight = if one.hard { "" } else { ", not binding" };
            format!("[{}] {} ({}{weight})", one.kind, one.text, one.issuer)
        });
        let kind = self.payload.members().get("type").and_then(Value::as_str).unwrap_or_default();
        let members = self.payload.members().keys().filter(|name| *name != "type");
        let members: Vec<_> = members.map(String::as_str).collect();
        let decisions = self.decisions.iter().map(|one| format!("{} ({})", one.decision, one.by));
        let open = self.open_decisions.iter().map(|one| format!("{} ({})", one.question, one.by));
        Facts::default()
            .with("intent", &self.intent)
            .maybe("summary", self.summary.as_ref())
            .with("ask", self.ask.as_deref().unwrap_or("nothing besides the intent"))
            .with("payload", format!("{kind} with {}", listed(&members)))
            .with("constraints", lines(constraints, "none"))
            .maybe("decisions", some(decisions))
            .maybe("open", some(open))
            .with("wanted back", self.wanted())
            .with("in full", self.context_of(Form::Full))
            .with("summarised", self.context_of(Form::Summary))
            .with("by title", self.context_of(Form::Stub))
            .with("to fetch", lines(self.memory_refs.iter().map(named), "none"))
            .with("gaps", lines(self.gaps.iter().map(gap), "none"))
            .with("tainted by", lines(self.tainted(), "nothing"))
            .with("missed", lines(self.trim_regret.iter().map(ToString::to_string), "nothing"))
            .text()
    }

    fn wanted(&self) -> String {
        let Some(expected) = &self.expected_output else { return "anything".to_owned() };
        let mut wanted: Vec<String> = Vec::new();
        if let Some(schema) = &expected.schema {
            wanted.push(format!("what fits the schema {schema}"));
        }
        wanted.extend(expected.format.map(|format| format!("as {format:?}").to_lowercase()));
        wanted.extend(expected.criteria.iter().cloned());
        if wanted.is_empty() { "anything".to_owned() } else { wanted.join("\n") }
    }

    fn context_of(&self, form: Form) -> String {
        let items = self.context.iter().filter(|item| item.form == form);
        lines(items.map(|item| titled(&item.id, item.title.as_deref())), "none")
    }

    fn tainted(&self) -> impl Iterator<Item = String> {
        let then = self.taints.iter().map(|one| one.source);
        let now = self.taints_now.iter().map(|one| one.source);
        let new = now.filter(|source| !self.taints.iter().any(|one| one.source == *source));
        then.map(|source| source.to_string())
            .chain(new.map(|source| format!("{source}, since it was sent")))
    }
}

fn listed(members: &[&str]) -> String {
    if members.is_empty() { "nothing more".to_owned() } else { members.join(", ") }
}

fn named(reference: &MemoryRef) -> String {
    titled(&reference.id, reference.title.as_deref())
}

fn titled(id: &str, title: Option<&str>) -> String {
    title.map_or_else(|| id.to_owned(), |title| format!("{title} ({id})"))
}

fn gap(gap: &Gap) -> String {
    let reason = gap.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{} ({}, hop {}){reason}", gap.reference, gap.by, gap.hop)
}

fn some(all: impl Iterator<Item = String>) -> Option<String> {
    let text = all.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

fn lines(all: impl Iterator<Item = String>, none: &str) -> String {
    some(all).unwrap_or_else(|| none.to_owned())
}
