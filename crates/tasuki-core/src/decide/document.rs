// SPDX-License-Identifier: Apache-2.0
//! Writing, marking, superseding and deleting documents. Who may wish for it is settled before;
//! here, where nobody can come in between, it is settled which of two writers was first.

use super::offer::replayed;
use super::{Decision, NewEvent, View};
use crate::command::{DocumentWish, Outcome, Settle, Write};
use crate::document::{Document, Kind, Scope, Settled, Written};
use crate::event::{Actor, Event};
use crate::ids::{AgentId, DocumentId};
use crate::quota;
use crate::refusal::Refusal;

pub(super) fn change(
    id: DocumentId,
    by: AgentId,
    wish: DocumentWish,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    // What belongs to another tenant is not there.
    if id.tenant() != by.tenant() {
        return Err(Refusal::MemoryNotFound(id));
    }
    let (event, body) = match wish {
        DocumentWish::Write(write) => return self::write(id, by, *write, view),
        DocumentWish::Mark { pinned, priority } => {
            let known = writable(view, &id)?;
            let pinned = pinned.unwrap_or(known.pinned);
            let priority = priority.unwrap_or(known.priority);
            if (pinned, priority) == (known.pinned, known.priority) {
                return Ok(unchanged(id));
            }
            (Event::DocumentMarked { id: id.clone(), pinned, priority }, None)
        }
        DocumentWish::Supersede { successor } => {
            let known = find(view, &id)?;
            if known.superseded_by.as_ref() == Some(&successor) {
                return Ok(unchanged(id));
            }
            writable(view, &id)?;
            // A successor that was itself succeeded would make the way to the newest one longer,
            // and could make it a circle.
            let kind = writable(view, &successor)?.kind;
            if successor == id || kind != Kind::Memory || known.kind != Kind::Memory {
                let text = "a memory is superseded by another memory";
                return Err(Refusal::InvalidDocument(text.into()));
            }
            (Event::DocumentSuperseded { id: id.clone(), by: successor }, None)
        }
        DocumentWish::Delete { reason } => {
            let known = find(view, &id)?;
            if known.deleted.is_some() {
                return Ok(unchanged(id));
            }
            if known.kind != Kind::Memory {
                return Err(Refusal::MemoryNotFound(id));
            }
            (Event::DocumentDeleted { id: id.clone(), reason: reason.hash }, Some(reason))
        }
    };
    let event = NewEvent::on_store(Actor::Agent(by), event).with(body);
    Ok(Decision::of(vec![event], about(id)))
}

fn write(id: DocumentId, by: AgentId, write: Write, view: &dyn View) -> Result<Decision, Refusal> {
    if let Some(outcome) = replayed(&by, write.key.as_ref(), view)? {
        return Ok(Decision::unchanged(outcome));
    }
    check_name(&id, &write)?;
    let known = match view.document(&id) {
        Some(_) => Some(writable(view, &id)?),
        None => None,
    };
    if let Some(known) = known
        && repeats(known, &write)
    {
        return Ok(unchanged(id));
    }
    let current = known.map_or(0, |known| known.revision);
    match write.expected {
        Some(expected) if expected != current => {
            return Err(Refusal::RevisionConflict { id, expected, current });
        }
        None if known.is_none() && write.kind == Kind::Memory => {
            return Err(Refusal::MemoryNotFound(id));
        }
        _ => {}
    }
    quota::check(view, by.tenant(), 0, write.content.text().len())?;
    let scope = write.scope.or_else(|| known.map(|known| known.scope.clone()));
    let scope = scope.ok_or_else(|| Refusal::InvalidDocument("the scope is missing".into()))?;
    check_scope(&scope, &by)?;
    let settles = write.settles.map(|settle| settle_in(known, settle)).transpose()?;
    let written = Written {
        id: id.clone(),
        document: write.kind,
        scope,
        revision: current + 1,
        content: write.content.hash,
        pinned: write.pinned.unwrap_or(known.is_some_and(|known| known.pinned)),
        priority: write.priority.unwrap_or(known.map_or_else(Default::default, |k| k.priority)),
        settles,
        key: write.key,
    };
    let event = Event::DocumentWritten(Box::new(written));
    let event = NewEvent::on_store(Actor::Agent(by), event).with(Some(write.content));
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

fn about(id: DocumentId) -> Outcome {
    Outcome { document: Some(id), ..Outcome::default() }
}

fn unchanged(id: DocumentId) -> Decision {
    Decision::unchanged(Outcome { repeated: true, ..about(id) })
}
