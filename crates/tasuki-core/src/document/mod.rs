// SPDX-License-Identifier: Apache-2.0
//! Documents with revisions: what agents remember, and what all agents of a project share. Every
//! edit is a new revision; the text of each lies in the body that came with its event, so that it
//! can be erased and the log still verifies. Here is what follows from the events alone.

pub mod content;
pub mod context;
pub mod ranking;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::content::Content;
pub use self::context::Context;
use crate::event::{Actor, Event, Key, Sealed, words};
use crate::ids::{
    AgentId, DecisionKey, DocumentId, HandoffId, Hash, Position, Project, TaskId, TenantId,
    Timestamp,
};

/// What a document is for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A piece of knowledge that agents keep and refer to.
    Memory,
    /// What all agents of a project read: its state, decisions and constraints.
    Context,
    /// A chain that another broker exported, kept for reading.
    Chain,
}

words!(Kind { Memory = "memory", Context = "context", Chain = "chain" });

/// What a document is about, which decides who may write it.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Project(Project),
    Task(TaskId),
    Agent(AgentId),
}

impl Scope {
    /// The word for what it is, and its name.
    #[must_use]
    pub fn parts(&self) -> (&'static str, String) {
        match self {
            Self::Project(project) => ("project", project.to_string()),
            Self::Task(task) => ("task", task.to_string()),
            Self::Agent(agent) => ("agent", agent.to_string()),
        }
    }

    /// The project, if this is one.
    #[must_use]
    pub fn project(&self) -> Option<&Project> {
        match self {
            Self::Project(project) => Some(project),
            Self::Task(_) | Self::Agent(_) => None,
        }
    }
}

/// How readily a memory travels when there is not room for all.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

words!(Priority { High = "high", Normal = "normal", Low = "low" });

/// A document as it is after its last event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub id: DocumentId,
    pub kind: Kind,
    pub scope: Scope,
    /// The last revision, from 1.
    pub revision: u32,
    pub content: Hash,
    /// The event that the last revision's body came with.
    #[serde(rename = "content_at")]
    pub content_pos: Position,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Who pinned it, while it is; unknown of what was pinned before that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_by: Option<Actor>,
    #[serde(default)]
    pub priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<DocumentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
    /// Whether the text of the last revision was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    pub created_by: Actor,
    pub created_at: Timestamp,
    pub changed_by: Actor,
    pub changed_at: Timestamp,
    /// How many decisions were logged, and which one holds for each key.
    #[serde(default)]
    pub decisions: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settled: BTreeMap<DecisionKey, u32>,
    /// The last event that is in here.
    #[serde(rename = "at")]
    pub last_pos: Position,
}

/// The tombstone of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    pub at: Timestamp,
    pub by: Actor,
    /// The event that the reason came with.
    #[serde(rename = "reason_at")]
    pub reason_pos: Position,
}

/// One edit of a memory or a shared context; older ones stay readable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    pub number: u32,
    pub content: Hash,
    /// The event that its body came with.
    #[serde(rename = "at")]
    pub body_pos: Position,
    pub written_by: Actor,
    pub written_at: Timestamp,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
}

/// The facts of a new revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    pub id: DocumentId,
    pub document: Kind,
    pub scope: Scope,
    pub revision: u32,
    pub content: Hash,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    #[serde(default)]
    pub priority: Priority,
    /// The decision that this revision of a shared context adds to its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<Settled>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
}

/// A decision by its number in the log. The words are in the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settled {
    pub key: DecisionKey,
    pub decision: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<u32>,
}

/// A body that was removed from the store. Its hash stays in the event it came with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Erased {
    /// The event that the body came with.
    pub position: Position,
    pub body: Hash,
    /// How many bytes were freed, and whose they were.
    pub bytes: u64,
    pub tenant: TenantId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<DocumentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    pub reason: Hash,
}

/// A body where it is kept, as far as erasing it must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBody {
    pub hash: Hash,
    pub bytes: u64,
    /// Whose stored bytes it counts towards.
    pub tenant: TenantId,
    /// The revision of a document that it is the text of, or the handoff that it belongs to.
    pub revision: Option<(DocumentId, u32)>,
    pub handoff: Option<HandoffId>,
    pub erased: bool,
}

impl StoredBody {
    /// What came with an event, with so many bytes left of it.
    #[must_use]
    pub fn of(sealed: &Sealed, bytes: Option<u64>) -> Option<Self> {
        let facts = sealed.record.event.facts();
        let hash = facts.body?;
        let revision = facts.written.map(|written| (written.id.clone(), written.revision));
        let tenant = sealed.record.actor.tenant().parse().unwrap_or_default();
        Some(Self {
            hash,
            bytes: bytes.unwrap_or(0),
            tenant,
            revision,
            handoff: sealed.record.handoff_id,
            erased: bytes.is_none(),
        })
    }
}

/// Applies an event to the document that it is about, making it where the event is its beginning.
pub fn apply(sealed: &Sealed, document: &mut Option<Document>) {
    let record = &sealed.record;
    if let Event::DocumentWritten(written) = &record.event {
        document.get_or_insert_with(|| Document::new(written, sealed)).written(written, sealed);
        return;
    }
    let Some(document) = document else { return };
    match &record.event {
        Event::DocumentMarked { pinned, priority, .. } => {
            document.pin(*pinned, sealed);
            document.priority = *priority;
            document.changed(sealed);
        }
        Event::DocumentSuperseded { by, .. } => {
            document.superseded_by = Some(by.clone());
            document.changed(sealed);
        }
        Event::DocumentDeleted { .. } => {
            let (at, by) = (record.at, record.actor.clone());
            document.deleted = Some(Deleted { at, by, reason_pos: sealed.position });
            document.changed(sealed);
        }
        Event::Erased(erased) => {
            document.erased |= erased.revision == Some(document.revision);
            document.last_pos = sealed.position;
        }
        event => debug_assert!(event.facts().document.is_none(), "{event:?} changes no document"),
    }
}

impl Document {
    fn new(written: &Written, sealed: &Sealed) -> Self {
        Self {
            id: written.id.clone(),
            kind: written.document,
            scope: written.scope.clone(),
            revision: 0,
            content: written.content,
            content_pos: sealed.position,
            pinned: false,
            pinned_by: None,
            priority: Priority::Normal,
            superseded_by: None,
            deleted: None,
            erased: false,
            created_by: sealed.record.actor.clone(),
            created_at: sealed.record.at,
            changed_by: sealed.record.actor.clone(),
            changed_at: sealed.record.at,
            decisions: 0,
            settled: BTreeMap::new(),
            last_pos: sealed.position,
        }
    }

    fn written(&mut self, written: &Written, sealed: &Sealed) {
        self.scope = written.scope.clone();
        self.revision = written.revision;
        self.content = written.content;
        self.content_pos = sealed.position;
        self.pin(written.pinned, sealed);
        self.priority = written.priority;
        self.erased = false;
        if let Some(settled) = &written.settles {
            self.decisions = settled.decision;
            self.settled.insert(settled.key.clone(), settled.decision);
        }
        self.changed(sealed);
    }

    /// An edit by somebody else leaves it pinned by whoever pinned it.
    fn pin(&mut self, pinned: bool, sealed: &Sealed) {
        if pinned != self.pinned {
            self.pinned_by = pinned.then(|| sealed.record.actor.clone());
        }
        self.pinned = pinned;
    }

    fn changed(&mut self, sealed: &Sealed) {
        self.changed_by = sealed.record.actor.clone();
        self.changed_at = sealed.record.at;
        self.last_pos = sealed.position;
    }

    /// Whether its text can be found: there is one, and nobody took it away.
    #[must_use]
    pub fn is_searched(&self) -> bool {
        self.kind == Kind::Memory && self.deleted.is_none() && !self.erased
    }
}

impl Revision {
    /// The revision that an event made.
    #[must_use]
    pub fn of(written: &Written, sealed: &Sealed) -> Self {
        Self {
            number: written.revision,
            content: written.content,
            body_pos: sealed.position,
            written_by: sealed.record.actor.clone(),
            written_at: sealed.record.at,
            erased: false,
        }
    }
}
