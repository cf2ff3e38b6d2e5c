// SPDX-License-Identifier: Apache-2.0
//! Memories.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::document::{Priority, Scope};
use tasuki_core::event::Actor;
use tasuki_core::ids::{IdempotencyKey, Project};
use tasuki_core::{AgentId, Cursor, DocumentId, HandoffId, Hash, TaskId, Timestamp};

/// Keeps a memory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMemory {
    pub by: AgentId,
    /// The name it is to have, such as `ms-4821`; the broker chooses one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<DocumentId>,
    /// What it is about: a project, a task or an agent. The writer itself without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// A line that says what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A few sentences for whoever has no room for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The whole text.
    pub text: String,
    /// Words to find it by; `kind:log` says what kind it is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Pinned memories always travel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// 0 to 9; higher ones are claimed first.
    #[serde(default)]
    pub priority: Priority,
    /// Makes it safe to repeat: the same request with the same key is carried out once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Makes a new revision of a memory. What is not given stays as it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditMemory {
    pub by: AgentId,
    /// The revision that the writer has seen: if there is another by now, nothing is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// An empty title or summary takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The same in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Words to find it by; `kind:log` says what kind it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeSet<String>>,
    /// Who shares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// 0 to 9; higher ones are claimed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// Says that another memory has taken the place of this one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Supersede {
    pub by: AgentId,
    /// The memory that takes its place.
    pub successor: DocumentId,
}

/// Says who wants something gone, and why.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    pub by: AgentId,
    /// Why; it stands in the log.
    pub reason: String,
}

/// Removes the text of a revision, or of all of them, for good.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EraseMemory {
    pub by: AgentId,
    /// Only this revision; all of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Why; it stands in the log.
    pub reason: String,
}

/// How much of a memory is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// What it is, and one line.
    Stub,
    /// Title, tags and summary; without a summary, its first words.
    Summary,
    #[default]
    Full,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    pub memory_id: DocumentId,
    /// The revision that is shown, and the last one there is.
    pub revision: u32,
    pub latest: u32,
    pub scope: Scope,
    pub pinned: bool,
    pub priority: Priority,
    /// One line: its title, or its first words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// The address of the revision's text.
    pub content: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<DocumentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Tombstone>,
    /// Whether the text of this revision was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    pub created_by: Actor,
    pub created_at: Timestamp,
    pub written_by: Actor,
    pub written_at: Timestamp,
    /// How well it answers the question, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Tombstone {
    pub at: Timestamp,
    pub by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Something that looks like a secret and was stored all the same.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    pub path: String,
    /// What it looks like, such as `assignment`.
    pub kind: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Memories {
    pub memories: Vec<Memory>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Cursor>,
}

/// Which memories are listed or searched.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListMemories {
    /// Words to be found; the best answers come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Only memories of this project, of this task, or of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Only memories with this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only pinned ones, or only those that are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Also those that another memory has replaced.
    #[serde(default)]
    pub superseded: bool,
    /// Also tombstones.
    #[serde(default)]
    pub deleted: bool,
    /// How much of each is wanted; a stub without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    /// Where the page before ended; not for searches, which have one page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Cursor>,
    /// How many at most, up to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Which revision of a memory is shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowMemory {
    /// A revision; the last one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// How much of it is wanted; all of it without this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    /// The handoff in whose envelope the reader found it: if that passed less of it, the fetch is
    /// counted there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
}
