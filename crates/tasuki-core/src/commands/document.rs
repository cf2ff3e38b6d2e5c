// SPDX-License-Identifier: Apache-2.0
//! Writing, marking, superseding and deleting documents. Who may wish for it is settled before;
//! here, where nobody can come in between, it is settled which of two writers was first.

use super::{Case, Footprint, Stated};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome, View};
use crate::document::{Document, Kind, Priority, Scope, Settled, Written};
use crate::envelope::project::meant;
use crate::event::Event;
use crate::ids::{AgentId, DecisionKey, DocumentId};
use crate::quota;
use crate::refusal::Refusal;

/// Writes, marks, supersedes or deletes a memory or a shared context.
#[derive(Debug, Clone)]
pub struct ChangeDocument {
    pub id: DocumentId,
    pub wish: DocumentWish,
}

/// A wish about a document.
#[derive(Debug, Clone)]
pub enum DocumentWish {
    Write(Box<Write>),
    /// Changes what is not text; without a value it stays as it is.
    Mark {
        pinned: Option<bool>,
        priority: Option<Priority>,
    },
    /// Says that another memory has taken this one's place.
    Supersede {
        successor: DocumentId,
    },
    Delete {
        reason: Body,
    },
}

/// A new revision of a document, the first one included.
#[derive(Debug, Clone)]
pub struct Write {
    pub kind: Kind,
    /// What it is about; without it, what it was about before.
    pub scope: Option<Scope>,
    pub content: Body,
    /// The revision that the writer has seen, 0 for none: if there is another by now, nothing is
    /// written. Without it, whatever is there is replaced.
    pub expected: Option<u32>,
    pub pinned: Option<bool>,
    pub priority: Option<Priority>,
    /// The decision that the content adds to the log of a shared context.
    pub settles: Option<Settle>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    pub key: DecisionKey,
    /// The decision that no longer holds.
    pub supersedes: Option<u32>,
}

impl Stated for ChangeDocument {
    /// What happens to documents stands in the chain of the store itself.
    fn footprint(&self) -> Footprint<'_> {
        let mut footprint =
            Footprint { documents: vec![&self.id], store: true, ..Footprint::default() };
        match &self.wish {
            DocumentWish::Write(_) => footprint.brings_work = true,
            DocumentWish::Supersede { successor } => footprint.documents.push(successor),
            DocumentWish::Mark { .. } | DocumentWish::Delete { .. } => {}
        }
        footprint
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, view) = (&self.id, case.view);
        // What belongs to another tenant is not there.
        if id.tenant() != case.agent().tenant() {
            return Err(Refusal::MemoryNotFound(id.clone()));
        }
        let (event, body) = match &self.wish {
            DocumentWish::Write(wish) => return write(id, wish, case),
            DocumentWish::Mark { pinned, priority } => {
                let known = writable(view, id)?;
                let pinned = pinned.unwrap_or(known.pinned);
                let priority = priority.unwrap_or(known.priority);
                if (pinned, priority) == (known.pinned, known.priority) {
                    return Ok(unchanged(id));
                }
                (Event::DocumentMarked { id: id.clone(), pinned, priority }, None)
            }
            DocumentWish::Supersede { successor } => {
                let known = find(view, id)?;
                if known.superseded_by.as_ref() == Some(successor) {
                    return Ok(unchanged(id));
                }
                writable(view, id)?;
                // A successor that was itself succeeded would make the way to the newest one
                // longer, and could make it a circle.
                let kind = writable(view, successor)?.kind;
                if successor == id || kind != Kind::Memory || known.kind != Kind::Memory {
                    let text = "a memory is superseded by another memory";
                    return Err(Refusal::InvalidDocument(text.into()));
                }
                (Event::DocumentSuperseded { id: id.clone(), by: successor.clone() }, None)
            }
            DocumentWish::Delete { reason } => {
                let known = find(view, id)?;
                if known.deleted.is_some() {
                    return Ok(unchanged(id));
                }
                if known.kind != Kind::Memory {
                    return Err(Refusal::MemoryNotFound(id.clone()));
                }
                let event = Event::DocumentDeleted { id: id.clone(), reason: reason.hash };
                (event, Some(reason.clone()))
            }
        };
        let event = NewEvent::on_store(case.actor(), event).with(body);
        Ok(Decision::of(vec![event], about(id)))
    }
}

fn write(id: &DocumentId, write: &Write, case: &Case<'_>) -> Result<Decision, Refusal> {
    let (view, by) = (case.view, case.agent());
    check_name(id, write)?;
    let known = match view.document(id) {
        Some(_) => Some(writable(view, id)?),
        None => None,
    };
    if let Some(known) = known
        && repeats(known, write)
    {
        return Ok(unchanged(id));
    }
    let current = known.map_or(0, |known| known.revision);
    match write.expected {
        Some(expected) if expected != current => {
            return Err(Refusal::RevisionConflict { id: id.clone(), expected, current });
        }
        None if known.is_none() && write.kind == Kind::Memory => {
            return Err(Refusal::MemoryNotFound(id.clone()));
        }
        Some(_) | None => {}
    }
    quota::check(view, by.tenant(), 0, write.content.text().len())?;
    let scope = write.scope.clone().or_else(|| known.map(|known| known.scope.clone()));
    let scope = scope.ok_or_else(|| Refusal::InvalidDocument("the scope is missing".into()))?;
    check_scope(&scope, by)?;
    let settles = write.settles.clone().map(|settle| settle_in(known, settle)).transpose()?;
    let written = Written {
        id: id.clone(),
        document: write.kind,
        scope,
        revision: current + 1,
        content: write.content.hash,
        pinned: write.pinned.unwrap_or(known.is_some_and(|known| known.pinned)),
        priority: write.priority.unwrap_or(known.map_or_else(Default::default, |k| k.priority)),
        settles,
        key: case.key.cloned(),
    };
    let event = Event::DocumentWritten(Box::new(written));
    let event = NewEvent::on_store(case.actor(), event).with(Some(write.content.clone()));
    Ok(Decision::of(vec![event], about(id)))
}

/// Whether a write says what is there already: its reply was lost, or nothing changed.
fn repeats(known: &Document, write: &Write) -> bool {
    known.content == write.content.hash
        && !known.erased
        && write.expected != Some(0)
        && write.settles.is_none()
        && write.scope.as_ref().is_none_or(|scope| *scope == known.scope)
        && write.pinned.is_none_or(|pinned| pinned == known.pinned)
        && write.priority.is_none_or(|priority| priority == known.priority)
}

/// The names of shared contexts are made from those of their projects, and those of chains from their
/// files, so no memory may have one.
fn check_name(id: &DocumentId, write: &Write) -> Result<(), Refusal> {
    let named = match id {
        id if id.is_context() => Kind::Context,
        id if id.is_chain() => Kind::Chain,
        _ => Kind::Memory,
    };
    if named == write.kind {
        return Ok(());
    }
    Err(Refusal::InvalidDocument(format!("{id} cannot be the name of a {}", write.kind)))
}

fn check_scope(scope: &Scope, by: &AgentId) -> Result<(), Refusal> {
    match scope {
        Scope::Agent(agent) if agent.tenant() != by.tenant() => Err(Refusal::OtherTenant),
        Scope::Agent(_) | Scope::Project(_) | Scope::Task(_) => Ok(()),
    }
}

/// A question that is settled stays so until somebody says that it is asked anew.
fn settle_in(known: Option<&Document>, settle: Settle) -> Result<Settled, Refusal> {
    let Settle { key, supersedes } = settle;
    // Who writes a key with other capitals or dashes means the same question.
    let same = |other: &&DecisionKey| meant(other.as_str()) == meant(key.as_str());
    let known_key = known.and_then(|known| {
        let exact = known.settled.get_key_value(&key).map(|(key, _)| key);
        exact.or_else(|| known.settled.keys().find(same))
    });
    let key = known_key.cloned().unwrap_or(key);
    let holds = known.and_then(|known| known.settled.get(&key).copied());
    match (holds, supersedes) {
        (Some(decision), named) if named != Some(decision) => {
            Err(Refusal::DecisionSettled { key, decision })
        }
        (None, Some(named)) => Err(Refusal::InvalidDocument(format!(
            "decision {named} does not settle {key:?}, so it cannot be superseded for it"
        ))),
        _ => {
            let decision = known.map_or(0, |known| known.decisions) + 1;
            Ok(Settled { key, decision, supersedes })
        }
    }
}

fn find<'v>(view: &'v dyn View, id: &DocumentId) -> Result<&'v Document, Refusal> {
    view.document(id).ok_or_else(|| Refusal::MemoryNotFound(id.clone()))
}

fn writable<'v>(view: &'v dyn View, id: &DocumentId) -> Result<&'v Document, Refusal> {
    let known = find(view, id)?;
    if known.deleted.is_some() {
        return Err(Refusal::MemoryDeleted(id.clone()));
    }
    match &known.superseded_by {
        Some(by) => Err(Refusal::MemorySuperseded { id: id.clone(), by: by.clone() }),
        None => Ok(known),
    }
}

fn about(id: &DocumentId) -> Outcome {
    Outcome { document: Some(id.clone()), ..Outcome::default() }
}

fn unchanged(id: &DocumentId) -> Decision {
    Decision::unchanged(Outcome { repeated: true, ..about(id) })
}
