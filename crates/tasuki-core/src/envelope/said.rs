// SPDX-License-Identifier: Apache-2.0
//! What a sender says about the hop it makes. What the task has inherited it need not repeat.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Fault;
use super::parts::{
    ContextItem, ENTRIES_MAX, ExpectedOutput, MemoryRef, TEXT_BYTES_MAX, TaskProgress,
};
use crate::assembly::Reading;
use crate::ids::Hash;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// What the task is about now, in a few sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What this receiver must do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// How far the task is: what is done, what remains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskProgress>,
    /// What was tried and did not work, so that nobody tries it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<String>,
    /// What was taken for granted and not checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// What was considered and not taken, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// Cases that were seen and left for later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<String>,
    /// What binds everybody from here on. Without it, what bound before still does. A list says all
    /// of it: one that leaves out or rewords what bound before is refused. A plain map, such as
    /// `{"language": "python", "max_tokens": 4000}`, adds to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Value>,
    /// Adds to what binds, as a list or a map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_constraints: Option<Value>,
    /// Ends constraints. Only who issued one, or the task's coordinator, can do that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lift_constraints: Vec<Lift>,
    /// Decisions that are new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<NewDecision>,
    /// Questions that are new and that somebody must decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_decisions: Vec<TextOr<Question>>,
    /// What was done and is not in the history yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<NewStep>,
    /// References that could not be resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<TextOr<NewGap>>,
    /// References of gaps that are resolved now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved_gaps: Vec<String>,
    /// Memories that the receiver can fetch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_refs: Vec<MemoryRef>,
    /// Memories that are passed along, in full or in short; `/v1/assemble` makes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextItem>,
    /// The address of the list of what was passed, as `/v1/assemble` gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_manifest: Option<Hash>,
    /// What was chosen, as `/v1/assemble` gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    /// What is wanted back; a result that does not fit is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<ExpectedOutput>,
    /// Lets the claim count only once the receiver has repeated what binds it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_back: bool,
}

/// A text alone, or with more about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum TextOr<T> {
    Text(String),
    Full(T),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lift {
    pub id: Hash,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SaidDecision")]
pub struct NewDecision {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Hash>,
    /// The open decision that this settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolves: Option<Hash>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub question: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStep {
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGap {
    pub reference: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Said {
    /// Whether it says nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is out of bounds, all of it.
    pub(super) fn check(&self, faults: &mut Vec<Fault>) {
        let mut text = |path: String, text: &str| {
            if text.len() > TEXT_BYTES_MAX {
                faults.push(Fault::new(path, format!("has more than {TEXT_BYTES_MAX} bytes")));
            }
        };
        for (name, given) in [("summary", &self.summary), ("ask", &self.ask)] {
            given.iter().for_each(|given| text(format!("/{name}"), given));
        }
        let lists = [
            ("tried", &self.tried),
            ("assumptions", &self.assumptions),
            ("alternatives", &self.alternatives),
            ("deferred", &self.deferred),
        ];
        for (name, list) in lists.into_iter().chain([("resolved_gaps", &self.resolved_gaps)]) {
            for (number, given) in list.iter().enumerate() {
                text(format!("/{name}/{number}"), given);
            }
        }
        for (number, item) in self.context.iter().enumerate() {
            item.text.iter().for_each(|given| text(format!("/context/{number}/text"), given));
            for (at, excerpt) in item.excerpts.iter().enumerate() {
                text(format!("/context/{number}/excerpts/{at}/text"), &excerpt.text);
            }
        }
        let counts = [
            ("tried", self.tried.len()),
            ("assumptions", self.assumptions.len()),
            ("alternatives", self.alternatives.len()),
            ("deferred", self.deferred.len()),
            ("lift_constraints", self.lift_constraints.len()),
            ("decisions", self.decisions.len()),
            ("open_decisions", self.open_decisions.len()),
            ("history", self.history.len()),
            ("gaps", self.gaps.len()),
            ("resolved_gaps", self.resolved_gaps.len()),
            ("memory_refs", self.memory_refs.len()),
            ("context", self.context.len()),
        ];
        for (name, count) in counts {
            if count > ENTRIES_MAX {
                let problem = format!("has more than {ENTRIES_MAX} entries");
                faults.push(Fault::new(format!("/{name}"), problem));
            }
        }
        if let Some(fault) = self.reading.as_ref().and_then(Reading::fault) {
            faults.push(Fault::new("/reading", fault));
        }
        if let Some(expected) = &self.expected_output {
            expected.check(faults);
        }
    }
}
