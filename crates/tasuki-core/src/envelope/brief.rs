// SPDX-License-Identifier: Apache-2.0
//! What an envelope says to a model. Metadata is never in it.

use super::parts::{ExpectedOutput, Parts};
use crate::assembly::{Brief, Rule};

/// What an envelope says, for a model.
#[must_use]
pub fn brief(intent: &str, parts: &Parts) -> Brief {
    let state = parts.state.clone().unwrap_or_default();
    let why = |text: &str, why: Option<&String>| match why {
        Some(why) => format!("{text} ({why})"),
        None => text.to_owned(),
    };
    let superseded = |id| parts.decisions.iter().any(|other| other.supersedes == Some(id));
    Brief {
        intent: intent.to_owned(),
        constraints: parts
            .constraints
            .iter()
            .map(|one| Rule {
                kind: one.kind.to_string(),
                text: one.text.clone(),
                issuer: Some(one.issuer.name().to_owned()),
            })
            .collect(),
        ask: parts.ask.clone(),
        open_decisions: parts
            .open_decisions
            .iter()
            .map(|open| match open.options.is_empty() {
                true => open.question.clone(),
                false => format!("{} ({})", open.question, open.options.join(" / ")),
            })
            .collect(),
        expected_output: parts.expected_output.as_ref().map(expected),
        summary: parts.summary.clone(),
        progress: state.progress.into_iter().chain(state.done).collect(),
        decisions: parts
            .decisions
            .iter()
            .filter(|decision| !superseded(decision.id))
            .map(|decision| {
                let decided = why(&decision.decision, decision.why.as_ref());
                let by = decision.by.name();
                match decision.key.as_deref() {
                    Some(key) => format!("{key}: {decided}, by {by}"),
                    None => format!("{decided}, by {by}"),
                }
            })
            .collect(),
        remaining: state.remaining,
        tried: parts.tried.clone(),
        assumptions: parts.assumptions.clone(),
        alternatives: parts.alternatives.clone(),
        deferred: parts.deferred.clone(),
        gaps: parts.gaps.iter().map(|gap| why(&gap.reference, gap.reason.as_ref())).collect(),
        history: parts
            .history
            .iter()
            .map(|step| {
                let done = why(&step.action, step.why.as_ref());
                format!("{}: {done}", step.agent.name())
            })
            .collect(),
    }
}

fn expected(expected: &ExpectedOutput) -> String {
    let mut lines = Vec::new();
    if let Some(schema) = &expected.schema {
        lines.push(format!("JSON that fits this schema: {schema}"));
    }
    if let Some(format) = expected.format {
        let member = expected.member.as_deref().unwrap_or("text");
        lines.push(format!("`{member}` is {format:?}").to_lowercase());
    }
    if let Some(length) = &expected.length {
        let limits = [
            ("at least", length.chars_min, "characters"),
            ("at most", length.chars_max, "characters"),
            ("at most", length.words_max, "words"),
        ];
        lines.extend(
            limits.iter().filter_map(|(how, n, what)| Some(format!("{how} {} {what}", (*n)?))),
        );
    }
    lines.extend(expected.criteria.iter().cloned());
    lines.join("; ")
}
