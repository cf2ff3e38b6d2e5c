// SPDX-License-Identifier: Apache-2.0
//! Memories and shared contexts as stores keep them: which are asked for, what comes back, and by
//! which words and tags each is found.

use std::collections::BTreeSet;
use std::sync::Arc;

use tasuki_core::document::{self, Content, Document, Kind, Revision, Scope};
use tasuki_core::event::Sealed;
use tasuki_core::ids::TenantId;
use tasuki_core::{Body, Position, search};

/// A document at one of its revisions.
#[derive(Debug, Clone)]
pub struct KeptDocument {
    /// As it is now, whichever revision was asked for.
    pub document: Arc<Document>,
    pub revision: Revision,
    /// The text of that revision, unless it was erased.
    pub body: Option<Body>,
}

/// Which documents to list or search; those that changed last come first.
#[derive(Debug, Clone, Default)]
pub struct DocumentFilter {
    pub tenant: TenantId,
    pub kind: Option<Kind>,
    pub scope: Option<Scope>,
    pub tag: Option<String>,
    pub pinned: Option<bool>,
    /// Whether those are wanted that another one has replaced, and those that were deleted.
    pub superseded: bool,
    pub deleted: bool,
    /// Only those that changed before this event, to continue a listing.
    pub before: Option<Position>,
    pub max: usize,
    /// Of a listing only the first ones whose bodies are no more than this together, in bytes.
    pub bytes_max: Option<usize>,
}

impl DocumentFilter {
    /// Whether a document is asked for; what the queries of every backend must agree with.
    #[must_use]
    pub fn lets_through(&self, document: &Document, tags: &BTreeSet<String>) -> bool {
        self.tenant.as_str() == document.id.tenant()
            && self.kind.is_none_or(|kind| document.kind == kind)
            && self.scope.as_ref().is_none_or(|scope| document.scope == *scope)
            && self.tag.as_ref().is_none_or(|tag| tags.contains(tag))
            && self.pinned.is_none_or(|pinned| document.pinned == pinned)
            && (self.superseded || document.superseded_by.is_none())
            && (self.deleted || document.deleted.is_none())
            && self.before.is_none_or(|before| document.last_pos < before)
    }
}

/// By what a memory is found.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) terms: Vec<(String, u32)>,
    pub(crate) length: u64,
    pub(crate) tags: BTreeSet<String>,
}

impl Index {
    /// Of a text that is gone, or is something else, nothing is found.
    pub(crate) fn of(body: Option<&Body>) -> Self {
        let Some(content) = body.and_then(Content::of) else { return Self::default() };
        let terms = search::terms(&content.searched());
        Self { length: search::length(&terms), terms, tags: content.tags }
    }
}

/// What an event asks of the rows of its document.
pub(crate) struct Change {
    pub(crate) document: Document,
    pub(crate) revision: Option<Revision>,
    /// The revision whose text was erased.
    pub(crate) erased: Option<u32>,
    pub(crate) index: Reindex,
}

pub(crate) enum Reindex {
    Same,
    Remove,
    Replace(Index),
}

impl Change {
    /// What follows from an event and the body that came with it, for a document as it was.
    pub(crate) fn of(
        sealed: &Sealed,
        body: Option<&Body>,
        mut known: Option<Document>,
    ) -> Option<Self> {
        let was_searched = known.as_ref().is_some_and(Document::is_searched);
        document::apply(sealed, &mut known);
        let document = known?;
        let mut change = Self { document, revision: None, erased: None, index: Reindex::Same };
        let facts = sealed.record.event.facts();
        if let Some(written) = facts.written {
            change.revision = Some(Revision::of(written, sealed));
            if change.document.is_searched() {
                change.index = Reindex::Replace(Index::of(body));
            }
        }
        change.erased = facts.erased.and_then(|erased| erased.revision);
        if was_searched && !change.document.is_searched() {
            change.index = Reindex::Remove;
        }
        Some(change)
    }
}
