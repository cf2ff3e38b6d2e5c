// SPDX-License-Identifier: Apache-2.0
//! Forty conversations written for this benchmark, in eight fields of work. Each has facts that the
//! last agent needs, constraints that bind all of them, and decoys: texts of the same field, full of
//! identifiers, that nobody needs. Nothing was ever tuned on them.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde::Deserialize;

use super::scenario::{Constraint, Message, STAGES, Scenario};

/// One file for each field of work.
const FIELDS: [(&str, &str); 8] = [
    ("payments", include_str!("corpus/payments.toml")),
    ("incidents", include_str!("corpus/incidents.toml")),
    ("migrations", include_str!("corpus/migrations.toml")),
    ("research", include_str!("corpus/research.toml")),
    ("support", include_str!("corpus/support.toml")),
    ("pipelines", include_str!("corpus/pipelines.toml")),
    ("security", include_str!("corpus/security.toml")),
    ("logistics", include_str!("corpus/logistics.toml")),
];
/// How many decoys each stage gets.
const DECOYS_PER_STAGE: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    /// What nobody needs, though it looks alike.
    decoys: Vec<String>,
    scenario: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    intent: String,
    constraints: Vec<String>,
    facts: Vec<String>,
    /// What each agent adds, as `[who, text]`.
    stages: Vec<Vec<(String, String)>>,
}

/// All scenarios, with their decoys.
pub(super) fn scenarios() -> anyhow::Result<Vec<Scenario>> {
    let mut fields = Vec::new();
    for (name, text) in FIELDS {
        let field: Field = toml::from_str(text).with_context(|| format!("cannot read {name}"))?;
        fields.push((name, field));
    }
    let mut scenarios = Vec::new();
    for (place, (name, field)) in fields.iter().enumerate() {
        // Those of the field itself first, then what passes by from the others.
        let others = fields[place..].iter().chain(&fields[..place]);
        let decoys: Vec<&str> =
            others.flat_map(|(_, field)| &field.decoys).map(String::as_str).collect();
        for written in &field.scenario {
            scenarios.push(written.scenario(name, &decoys)?);
        }
    }
    Ok(scenarios)
}

impl Written {
    fn scenario(&self, field: &str, decoys: &[&str]) -> anyhow::Result<Scenario> {
        let name = format!("{field}/{}", self.name);
        anyhow::ensure!(self.stages.len() == STAGES, "{name} does not have {STAGES} stages");
        let mut stages = Vec::new();
        for (at, written) in self.stages.iter().enumerate() {
            let mut stage: Vec<Message> = Vec::new();
            // Each stage gets some decoys of each kind, and they stand between the messages that
            // matter and after them: recency must not give these away.
            let mut decoys = decoys.iter().skip(at).step_by(STAGES).take(DECOYS_PER_STAGE);
            let between = DECOYS_PER_STAGE / (written.len() + 1);
            for (who, text) in written {
                stage.extend(decoys.by_ref().take(between).map(|text| decoy(text)));
                stage.push(Message { who: who.clone(), text: text.clone() });
            }
            stage.extend(decoys.map(|text| decoy(text)));
            stages.push(stage);
        }
        let early: String =
            stages[..STAGES - 1].iter().flatten().map(|it| format!("{}\n", it.text)).collect();
        let facts: BTreeSet<&String> = self.facts.iter().collect();
        for fact in &facts {
            anyhow::ensure!(early.contains(fact.as_str()), "{name}: nobody says {fact}");
        }
        Ok(Scenario {
            policy: self.constraints.join("\n"),
            constraints: self.constraints.iter().map(|text| Constraint::new(text)).collect(),
            intent: self.intent.clone(),
            facts: facts.into_iter().cloned().collect(),
            stages,
        })
    }
}

fn decoy(text: &str) -> Message {
    Message { who: "tool".into(), text: text.to_owned() }
}
