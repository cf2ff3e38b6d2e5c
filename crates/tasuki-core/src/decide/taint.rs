// SPDX-License-Identifier: Apache-2.0
//! Taking a result back, and what that does to work which was built on it: until somebody has looked
//! at it, everybody who gets it is told, or nobody gets it.

use super::{Decision, NewEvent, View, find_handoff, find_task};
use crate::canonical::Body;
use crate::command::Outcome;
use crate::event::{Actor, Event, TaintPolicy};
use crate::handoff::State;
use crate::ids::{AgentId, HandoffId, TaskId};
use crate::refusal::Refusal;
use crate::task::Task;

pub(super) fn retract(
    id: HandoffId,
    by: AgentId,
    reason: Body,
    policy: TaintPolicy,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &by)?;
    if handoff.retracted_at.is_some() {
        return Ok(Decision::unchanged(Outcome::repeated(id)));
    }
    let State::Completed { .. } = handoff.state else {
        let state = handoff.state.name();
        return Err(Refusal::WrongState { handoff: id, state, wanted: "retracted" });
    };
    let task = find_task(view, handoff.task_id, &by)?;
    // Whoever made it, whoever asked for it, and whoever decides.
    let maker = handoff.attempts.last().is_some_and(|attempt| attempt.agent == by);
    if !maker && by != handoff.from && by != *task.decider() && by != task.opened_by {
        return Err(Refusal::NotPermitted { handoff: id, agent: by, wish: "retract" });
    }
    let actor = Actor::Agent(by);
    let event = Event::Retracted { reason: reason.hash };
    let mut events = vec![NewEvent::on(handoff, actor.clone(), event).with(Some(reason))];
    events.extend(tainted(task, actor, id, policy));
    Ok(Decision::of(events, Outcome::of(id)))
}

/// A task whose part was taken back, or failed.
pub(super) fn taint(
    id: TaskId,
    by: AgentId,
    source: HandoffId,
    policy: TaintPolicy,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let task = find_task(view, id, &by)?;
    let events = tainted(task, Actor::Agent(by), source, policy).into_iter().collect();
    Ok(Decision::of(events, Outcome { task: Some(id), ..Outcome::default() }))
}

/// Nothing where nothing more is built, or where it is known.
fn tainted(task: &Task, actor: Actor, source: HandoffId, policy: TaintPolicy) -> Option<NewEvent> {
    let known = task.taints.iter().any(|(it, _)| *it == source);
    if known || task.state.is_terminal() {
        return None;
    }
    Some(NewEvent {
        task: task.id,
        handoff: task.live,
        actor,
        event: Event::Tainted { source, policy },
        body: None,
        turn: None,
    })
}

pub(super) fn clear(
    id: TaskId,
    by: AgentId,
    source: HandoffId,
    reason: Body,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let task = find_task(view, id, &by)?;
    if by != *task.decider() {
        return Err(Refusal::NotPermittedTask { task: id, agent: by });
    }
    if !task.taints.iter().any(|(it, _)| *it == source) {
        return Err(Refusal::NotTainted { task: id, source_handoff: source });
    }
    let event = NewEvent {
        task: id,
        handoff: None,
        actor: Actor::Agent(by),
        event: Event::TaintCleared { source, reason: reason.hash },
        body: Some(reason),
        turn: None,
    };
    Ok(Decision::of(vec![event], Outcome { task: Some(id), ..Outcome::default() }))
}
