// SPDX-License-Identifier: Apache-2.0
//! What became of things along a chain of envelopes: whether every link and everything that binds is
//! whole, which hop lost a fact, and how much each hop kept.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Envelope;
use crate::canonical::Body;

/// What one hop did to what it was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopReport {
    pub hop: u32,
    pub from_agent: String,
    /// Whether it names the envelope before it, and has the same intent.
    pub linked: bool,
    pub same_intent: bool,
    pub constraints: usize,
    /// Texts of constraints that bound before, bind no longer, and were not lifted.
    pub lost_constraints: Vec<String>,
    /// Texts of constraints that are not what their id says.
    pub altered_constraints: Vec<String>,
    pub gaps: usize,
    /// Of the facts in the envelope before: how many there were, and how many are still here.
    pub facts: usize,
    pub facts_kept: usize,
    pub bytes: usize,
}

impl HopReport {
    /// Whether everything that binds is there, word for word.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.linked
            && self.same_intent
            && self.lost_constraints.is_empty()
            && self.altered_constraints.is_empty()
    }
}

/// Looks at every hop of a chain, in order, each with the exact text of its envelope.
#[must_use]
pub fn report(chain: &[(Envelope, Body)]) -> Vec<HopReport> {
    let mut reports = Vec::with_capacity(chain.len());
    for (place, (envelope, body)) in chain.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|before| chain.get(before));
        let known = before.map(|(_, body)| facts_of(body)).unwrap_or_default();
        let here = facts_of(body);
        let lost = before.into_iter().flat_map(|(before, _)| &before.parts.constraints);
        let lost = lost.filter(|one| !envelope.parts.constraints.contains(one));
        let lost = lost.filter(|one| !envelope.parts.lifted.iter().any(|l| l.id == one.id));
        let altered = envelope.parts.constraints.iter().filter(|one| !one.is_whole());
        reports.push(HopReport {
            hop: envelope.hop,
            from_agent: envelope.from_agent.to_string(),
            linked: envelope.previous == before.map(|(_, body)| body.hash),
            same_intent: chain.first().is_some_and(|(first, _)| first.intent == envelope.intent),
            constraints: envelope.parts.constraints.len(),
            lost_constraints: lost.map(|one| one.text.clone()).collect(),
            altered_constraints: altered.map(|one| one.text.clone()).collect(),
            gaps: envelope.parts.gaps.len(),
            facts: known.len(),
            facts_kept: known.intersection(&here).count(),
            bytes: body.text().len(),
        });
    }
    reports
}

/// Where a fact was, and where it was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bisected {
    /// The first hop that has it.
    pub appears: Option<u32>,
    /// The first hop after that which does not have it any more.
    pub lost: Option<u32>,
    /// Every hop that has it.
    pub present: Vec<u32>,
}

/// Finds the hop that lost a fact: a text, wherever it stands in an envelope.
#[must_use]
pub fn bisect(chain: &[(Envelope, Body)], fact: &str) -> Bisected {
    // Inside JSON a text may be escaped; as a member it is written the same way.
    let quoted = serde_json::to_string(fact).unwrap_or_default();
    let sought = quoted.trim_matches('"');
    let has = |body: &Body| !sought.is_empty() && body.text().contains(sought);
    let present: Vec<u32> =
        chain.iter().filter(|(_, body)| has(body)).map(|(envelope, _)| envelope.hop).collect();
    let appears = present.first().copied();
    let lost = appears.and_then(|first| {
        let after = chain.iter().filter(|(envelope, _)| envelope.hop > first);
        after.map(|(envelope, _)| envelope.hop).find(|hop| !present.contains(hop))
    });
    Bisected { appears, lost, present }
}

/// What the broker itself writes into each envelope, which is no fact of the work.
const FRAME: &[&str] = &[
    "envelope_version",
    "task_id",
    "parent_task_id",
    "previous",
    "from_agent",
    "to",
    "asked_to",
    "created_at",
    "metadata",
    "signed",
];

/// The hard facts that an envelope has, in whichever part.
fn facts_of(body: &Body) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if let Ok(Value::Object(members)) = serde_json::from_str(body.text()) {
        let own = members.iter().filter(|(name, _)| !FRAME.contains(&name.as_str()));
        own.for_each(|(_, value)| gather(value, &mut found));
    }
    found
}

fn gather(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if !text.starts_with("sha256:") => found.extend(facts(text)),
        Value::Number(number) => found.extend(facts(&number.to_string())),
        Value::Array(list) => list.iter().for_each(|one| gather(one, found)),
        Value::Object(members) => members.values().for_each(|one| gather(one, found)),
        Value::String(_) | Value::Null | Value::Bool(_) => {}
    }
}

/// The hard facts of a text: ids, numbers, dates, paths, names with digits or signs in them.
#[must_use]
pub fn facts(text: &str) -> BTreeSet<String> {
    let inside =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | '@' | ':' | '#');
    let words = text.split(|c: char| !inside(c));
    let trimmed = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let hard = trimmed.filter(|word| {
        let digits = word.chars().any(|c| c.is_ascii_digit());
        let signs = word.chars().any(|c| matches!(c, '_' | '/' | '@' | '#'));
        (3..=200).contains(&word.len()) && (digits || signs)
    });
    hard.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::TaskId;

    fn chain(payloads: &[&str]) -> Vec<(Envelope, Body)> {
        let mut chain: Vec<(Envelope, Body)> = Vec::new();
        for (hop, note) in payloads.iter().enumerate() {
            let previous = chain.last().map(|(_, body)| body.hash);
            let envelope: Envelope = serde_json::from_value(json!({
                "envelope_version": "2.1", "task_id": TaskId(1), "hop": hop, "previous": previous,
                "from_agent": "coder", "to": { "agent": "next" }, "control": "passed",
                "intent": "book it", "payload": { "type": "t", "note": note },
                "created_at": "2027-01-15T08:00:00.000Z",
            }))
            .unwrap();
            let body = envelope.body();
            chain.push((envelope, body));
        }
        chain
    }

    #[test]
    fn the_hop_that_lost_a_fact_is_found() {
        let chain = chain(&["flight HAT-204", "HAT-204 on \"May 3\"", "a flight", "HAT-204?"]);
        let found = bisect(&chain, "HAT-204");
        assert_eq!((found.appears, found.lost), (Some(0), Some(2)));
        assert_eq!(found.present, [0, 1, 3]);
        assert_eq!(bisect(&chain, "\"May 3\"").present, [1]);
        assert_eq!(bisect(&chain, "never said").appears, None);
    }

    #[test]
    fn each_hop_tells_how_many_facts_it_kept() {
        let reports = report(&chain(&["HAT-204 gate B12 src/main.rs", "HAT-204 and B12", "none"]));
        let kept: Vec<_> = reports.iter().map(|report| (report.facts, report.facts_kept)).collect();
        assert_eq!(kept, [(0, 0), (3, 2), (2, 0)]);
        assert!(reports.iter().all(HopReport::is_whole));
    }

    #[test]
    fn a_broken_link_and_a_lost_constraint_show() {
        let mut chain = chain(&["a", "b"]);
        let text = "Never.".to_owned();
        let by = "planner".parse().unwrap();
        let one = super::super::Constraint::new(text, super::super::ConstraintKind::Must, true, by);
        chain[0].0.parts.constraints.push(one);
        chain[0].1 = chain[0].0.body();
        let reports = report(&chain);
        assert!(!reports[1].linked);
        assert_eq!(reports[1].lost_constraints, ["Never."]);
    }
}
