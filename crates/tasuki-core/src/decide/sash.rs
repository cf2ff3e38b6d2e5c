// SPDX-License-Identifier: Apache-2.0
//! What happens to an envelope after it was made: a constraint is lifted from the next one on, and
//! the receiver fetches what it was not passed. The envelope itself never changes.

use super::{Decision, NewEvent, View, find_handoff, find_task};
use crate::canonical::Body;
use crate::command::{Offer, Outcome};
use crate::event::{Actor, Event};
use crate::handoff::FETCHED_MAX;
use crate::ids::{AgentId, DocumentId, HandoffId, Hash};
use crate::refusal::Refusal;

/// Whether the constraint is there and is this one's to lift is in the envelope, which was read
/// before; here it must still be the last one.
pub(super) fn lift(
    id: HandoffId,
    by: AgentId,
    constraint: Hash,
    reason: Body,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &by)?;
    let task = find_task(view, handoff.task_id, &by)?;
    let outcome = Outcome { task: Some(task.id), ..Outcome::of(id) };
    if handoff.lifts.iter().any(|lift| lift.constraint == constraint) {
        return Ok(Decision::unchanged(Outcome { repeated: true, ..outcome }));
    }
    if task.state.is_terminal() {
        return Err(Refusal::TaskFinished { task: task.id, state: task.state });
    }
    if task.envelope != Some((handoff.envelope, handoff.hop)) {
        return Err(Refusal::TaskMoved(task.id));
    }
    let event = Event::ConstraintLifted { constraint, reason: reason.hash };
    let event = NewEvent::on(handoff, Actor::Agent(by), event).with(Some(reason));
    Ok(Decision::of(vec![event], outcome))
}

/// What was lifted since the envelope before was made must be known to whoever made this one.
pub(super) fn knows_lifts(offer: &Offer, view: &dyn View) -> Result<(), Refusal> {
    let before = offer.after.and_then(|after| view.handoff(after));
    let unknown = before.and_then(|before| {
        let unknown = |lift: &&crate::handoff::Lift| !offer.lifted.contains(&lift.constraint);
        before.lifts.iter().find(unknown).map(|_| before.task_id)
    });
    unknown.map_or(Ok(()), |task| Err(Refusal::TaskMoved(task)))
}

/// Counts a fetch, once for each memory. Only who received the envelope can have been passed too
/// little.
pub(super) fn note_fetch(
    id: HandoffId,
    agent: AgentId,
    memory: DocumentId,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &agent)?;
    if !handoff.attempts.iter().any(|attempt| attempt.agent == agent) {
        return Err(Refusal::NotTarget { handoff: id, agent });
    }
    if handoff.fetched.contains(&memory) || handoff.fetched.len() >= FETCHED_MAX {
        return Ok(Decision::unchanged(Outcome::repeated(id)));
    }
    let event = Event::TrimFetched { agent: agent.clone(), memory };
    let event = NewEvent::on(handoff, Actor::Agent(agent), event);
    Ok(Decision::of(vec![event], Outcome::of(id)))
}
