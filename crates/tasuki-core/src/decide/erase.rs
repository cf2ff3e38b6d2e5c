// SPDX-License-Identifier: Apache-2.0
//! Removing bodies for good. The events that they came with keep their hashes, so the log still
//! verifies; what was erased, by whom and why is an event of its own.

use super::{Decision, NewEvent, View, find_handoff};
use crate::command::{ERASED_MAX, Erasable, Erase, Outcome};
use crate::document::{Erased, StoredBody};
use crate::event::{Actor, Event};
use crate::ids::{AgentId, DocumentId, HandoffId, Position};
use crate::refusal::Refusal;

pub(super) fn erase(wish: &Erase, view: &dyn View) -> Result<Decision, Refusal> {
    match &wish.what {
        Erasable::Handoff { id, at } => of_handoff(wish, *id, at, view),
        Erasable::Revision { id, revision, at } => of_revision(wish, id, *revision, *at, view),
    }
}

/// While a task goes on, what was passed in it is read again: for the next hop, for a retry, for
/// a dead letter that is sent on its way again.
fn of_handoff(
    wish: &Erase,
    id: HandoffId,
    at: &[Position],
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &wish.by)?;
    let task = view.task(handoff.task_id).ok_or(Refusal::TaskNotFound(handoff.task_id))?;
    if !task.state.is_terminal() {
        return Err(Refusal::StillNeeded(task.id));
    }
    let mut events = Vec::new();
    for position in at.iter().copied().take(ERASED_MAX) {
        let shared = position == handoff.envelope_at || position == task.intent_at;
        let ours = |body: &StoredBody| body.handoff == Some(id) || shared;
        let body = view.body(position).filter(ours).ok_or(Refusal::BodyNotFound(position))?;
        if !body.erased {
            let actor = Actor::Agent(wish.by.clone());
            let event = Event::Erased(Box::new(erased(position, body, wish)));
            events.push(NewEvent::on(handoff, actor, event).with(Some(wish.reason.clone())));
        }
    }
    let outcome = Outcome { repeated: events.is_empty(), ..Outcome::of(id) };
    Ok(Decision::of(events, outcome))
}

fn of_revision(
    wish: &Erase,
    id: &DocumentId,
    revision: u32,
    at: Position,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let theirs = |by: &AgentId| id.tenant() == by.tenant() && view.document(id).is_some();
    if !theirs(&wish.by) {
        return Err(Refusal::MemoryNotFound(id.clone()));
    }
    let named = (id.clone(), revision);
    let body = view.body(at).filter(|body| body.revision.as_ref() == Some(&named));
    let body = body.ok_or(Refusal::BodyNotFound(at))?;
    let outcome = Outcome { document: Some(id.clone()), ..Outcome::default() };
    if body.erased {
        return Ok(Decision::unchanged(Outcome { repeated: true, ..outcome }));
    }
    let event = Event::Erased(Box::new(erased(at, body, wish)));
    let event = NewEvent::on_store(Actor::Agent(wish.by.clone()), event);
    Ok(Decision::of(vec![event.with(Some(wish.reason.clone()))], outcome))
}

fn erased(position: Position, body: StoredBody, wish: &Erase) -> Erased {
    let (document, revision) = body.revision.unzip();
    Erased {
        position,
        body: body.hash,
        bytes: body.bytes,
        tenant: body.tenant,
        document,
        revision,
        reason: wish.reason.hash,
    }
}
