// SPDX-License-Identifier: Apache-2.0
//! The parts of an envelope besides its frame: what the task is about now, what was found out and
//! decided on the way, what binds everybody, and what is wanted back. Some of it is the word of this
//! hop alone; the rest is inherited from hop to hop by the broker (see `inherit`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::constraint::Constraint;
use crate::assembly::{Excerpt, Reading};
use crate::ids::{AgentId, Hash, Timestamp};
use crate::trust::Trust;

/// How many entries any list of an envelope may have.
pub const ENTRIES_MAX: usize = 1000;
/// How long a text of an envelope may be, in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// What the task is about now, in a few sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What this receiver must do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskProgress>,
    /// What was tried and did not work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// What was considered and not taken, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// Cases that were seen and left for later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<String>,
    /// Binds every agent of the chain. Inherited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Constraints that no longer bind, with who lifted them and why. Inherited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifted: Vec<Lifted>,
    /// How many tokens what a receiver reads may have. Inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u32>,
    /// What was decided, the oldest first. Inherited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Questions that nobody has decided yet. Inherited until somebody does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_decisions: Vec<OpenDecision>,
    /// What was done by whom, the oldest first. Inherited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Step>,
    /// References that could not be resolved. Inherited until somebody resolves them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Memories to read, not copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_refs: Vec<MemoryRef>,
    /// Memories that are here already, as much of them as there was room for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextItem>,
    /// The address of the list of everything that could have been passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_manifest: Option<Hash>,
    /// What assembly chose, so that every reader gets the text that the sender saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<ExpectedOutput>,
}

/// How far the task has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskProgress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<String>,
}

/// A constraint that no longer binds, with who lifted it and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lifted {
    pub id: Hash,
    pub text: String,
    pub by: AgentId,
    pub reason: String,
    /// The hop from which on it no longer binds.
    pub hop: u32,
}

/// Something that was settled on the way, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// The address of what was decided, by whom.
    pub id: Hash,
    /// What it is about. A key that is settled is decided anew only by superseding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub by: AgentId,
    pub hop: u32,
    /// The decision that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Hash>,
    /// The open decision that this one settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolves: Option<Hash>,
}

/// A question that nobody has settled yet; it travels until somebody does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenDecision {
    /// The SHA-256 of the question.
    pub id: Hash,
    pub question: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    pub by: AgentId,
}

/// One step of the history: who did what, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub agent: AgentId,
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_id: Option<String>,
    pub at: Timestamp,
}

/// A reference that could not be resolved; it travels until somebody resolves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// What could not be resolved: the id of a memory, a path, a name.
    pub reference: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub by: AgentId,
    pub hop: u32,
}

/// A memory by its id, instead of a copy of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRef {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    #[serde(default)]
    pub freshness: Freshness,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Which revision a reference means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// The one it names.
    Pinned,
    /// Whatever is the latest when it is read.
    #[default]
    Latest,
    /// The one it names, and the latest beside it.
    Both,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextItem {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    pub form: Form,
    /// It is never left out, whatever the budget of who reads it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// All of it, or its summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it is: `log`, `code`, `decision`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Who stands behind what it says, if not an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// What it is about, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// What is said before its parts, such as the names of a table's columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<String>,
    /// Parts of it, in the order in which they stand in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excerpts: Vec<Excerpt>,
    /// How many parts it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// How many tokens all of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl ContextItem {
    /// An item of which nothing but its name is passed.
    #[must_use]
    pub fn stub(id: String, revision: Option<u32>) -> Self {
        Self {
            id,
            revision,
            form: Form::Stub,
            pinned: false,
            title: None,
            text: None,
            kind: None,
            by: None,
            trust: None,
            about: None,
            lead: None,
            excerpts: Vec::new(),
            of: None,
            tokens: None,
        }
    }
}

/// How much of a memory is in an envelope.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    Stub,
    Summary,
    Full,
}

/// What is wanted back. What of it can be checked is checked when the work is completed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedOutput {
    /// A JSON Schema that the payload of the result must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// What the text of the result must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Length>,
    /// The member of the payload that `format` and `length` are about; `text` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// What a good result is like. The completion says of each whether it is met, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Text,
    Markdown,
    Json,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Length {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars_min: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words_max: Option<u32>,
}
