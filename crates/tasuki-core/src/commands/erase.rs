// SPDX-License-Identifier: Apache-2.0
//! Removing bodies for good. The events that they came with keep their hashes, so the log still
//! verifies; what was erased, by whom and why is an event of its own.

use super::{Case, Footprint, Stated};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::document::{Erased, StoredBody};
use crate::event::Event;
use crate::ids::{DocumentId, HandoffId, Position};
use crate::refusal::Refusal;

/// How many bodies one command may erase.
pub const ERASED_MAX: usize = 1000;

/// Removes bodies for good.
#[derive(Debug, Clone)]
pub struct Erase {
    pub what: Erasable,
    pub reason: Body,
}

/// Bodies that can be erased, by the events they came with.
#[derive(Debug, Clone)]
pub enum Erasable {
    /// Bodies of a handoff whose task is at its end.
    Handoff { id: HandoffId, at: Vec<Position> },
    /// The text of one revision.
    Revision { id: DocumentId, revision: u32, at: Position },
}

impl Stated for Erase {
    fn footprint(&self) -> Footprint<'_> {
        match &self.what {
            Erasable::Handoff { id, at } => Footprint { bodies: at, ..Footprint::of_handoff(id) },
            Erasable::Revision { id, at, .. } => Footprint {
                documents: vec![id],
                bodies: std::slice::from_ref(at),
                store: true,
                ..Footprint::default()
            },
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        match &self.what {
            Erasable::Handoff { id, at } => of_handoff(self, *id, at, case),
            Erasable::Revision { id, revision, at } => of_revision(self, id, *revision, *at, case),
        }
    }
}

/// While a task goes on, what was passed in it is read again: for the next hop, for a retry, for
/// a dead letter that is sent on its way again.
fn of_handoff(
    wish: &Erase,
    id: HandoffId,
    at: &[Position],
    case: &Case<'_>,
) -> Result<Decision, Refusal> {
    let handoff = case.handoff(id)?;
    let task = case.view.task(handoff.task_id).ok_or(Refusal::TaskNotFound(handoff.task_id))?;
    if !task.state.is_terminal() {
        return Err(Refusal::StillNeeded(task.id));
    }
    let mut events = Vec::new();
    for position in at.iter().copied().take(ERASED_MAX) {
        let shared = position == handoff.envelope_pos || position == task.intent_pos;
        let ours = |body: &StoredBody| body.handoff == Some(id) || shared;
        let body = case.view.body(position).filter(ours).ok_or(Refusal::BodyNotFound(position))?;
        if !body.erased {
            let event = Event::Erased(Box::new(erased(position, body, wish)));
            events.push(NewEvent::on(handoff, case.actor(), event).with(Some(wish.reason.clone())));
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
    case: &Case<'_>,
) -> Result<Decision, Refusal> {
    if id.tenant() != case.agent().tenant() || case.view.document(id).is_none() {
        return Err(Refusal::MemoryNotFound(id.clone()));
    }
    let named = (id.clone(), revision);
    let body = case.view.body(at).filter(|body| body.revision.as_ref() == Some(&named));
    let body = body.ok_or(Refusal::BodyNotFound(at))?;
    let outcome = Outcome { document: Some(id.clone()), ..Outcome::default() };
    if body.erased {
        return Ok(Decision::unchanged(Outcome { repeated: true, ..outcome }));
    }
    let event = Event::Erased(Box::new(erased(at, body, wish)));
    let event = NewEvent::on_store(case.actor(), event);
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
