// SPDX-License-Identifier: Apache-2.0
//! Taking a result back, and what that does to work which was built on it: until somebody has looked
//! at it, everybody who gets it is told, or nobody gets it.

use super::{Case, Footprint, Stated};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, Event, TaintPolicy};
use crate::handoff::State;
use crate::ids::{HandoffId, TaskId};
use crate::refusal::Refusal;
use crate::task::Task;

/// Takes back what a completed handoff produced.
#[derive(Debug, Clone)]
pub struct Retract {
    pub handoff: HandoffId,
    pub reason: Body,
    pub policy: TaintPolicy,
    /// The task above its own, which has built on it.
    pub above: Option<TaskId>,
}

/// Says that a task is built on something that no longer holds: a part of it was taken back, or
/// failed.
#[derive(Debug, Clone)]
pub struct Taint {
    pub task: TaskId,
    pub source: HandoffId,
    pub policy: TaintPolicy,
}

#[derive(Debug, Clone)]
pub struct ClearTaint {
    pub task: TaskId,
    pub source: HandoffId,
    pub reason: Body,
}

impl Stated for Retract {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { tasks: self.above.as_slice(), ..Footprint::of_handoff(&self.handoff) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, by) = (self.handoff, case.agent());
        let handoff = case.handoff(id)?;
        let State::Completed { retracted_pos, .. } = handoff.state else {
            let state = handoff.state.name();
            return Err(Refusal::WrongState { handoff: id, state, wanted: "retracted" });
        };
        if retracted_pos.is_some() {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        let task = case.task(handoff.task_id)?;
        // Whoever made it, whoever asked for it, and whoever decides.
        let maker = handoff.attempts.last().is_some_and(|attempt| attempt.agent == *by);
        if !maker && *by != handoff.from && by != task.decider() && *by != task.opened_by {
            return Err(Refusal::NotPermitted { handoff: id, agent: by.clone(), wish: "retract" });
        }
        if self.above != task.parent_task_id {
            return Err(Refusal::TaskMoved(task.id));
        }
        let event = Event::Retracted { reason: self.reason.hash };
        let event = NewEvent::on(handoff, case.actor(), event).with(Some(self.reason.clone()));
        let mut events = vec![event];
        let above = self.above.and_then(|above| case.view.task(above));
        for built in std::iter::once(task).chain(above) {
            events.extend(tainted(built, case.actor(), id, self.policy));
        }
        Ok(Decision::of(events, Outcome::of(id)))
    }
}

impl Stated for Taint {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_task(&self.task)
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let task = case.task(self.task)?;
        let event = tainted(task, case.actor(), self.source, self.policy);
        Ok(Decision::of(event.into_iter().collect(), Outcome::of_task(self.task)))
    }
}

/// Nothing where nothing more is built, or where it is known.
fn tainted(task: &Task, actor: Actor, source: HandoffId, policy: TaintPolicy) -> Option<NewEvent> {
    let known = task.taints.iter().any(|(it, _)| *it == source);
    if known || task.state.is_terminal() {
        return None;
    }
    let event = NewEvent::on_task(task.id, actor, Event::Tainted { source, policy });
    Some(NewEvent { handoff: task.live, ..event })
}

impl Stated for ClearTaint {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_task(&self.task)
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, source) = (self.task, self.source);
        let task = case.task(id)?;
        if case.agent() != task.decider() {
            return Err(Refusal::NotPermittedTask { task: id, agent: case.agent().clone() });
        }
        if !task.taints.iter().any(|(it, _)| *it == source) {
            return Err(Refusal::NotTainted { task: id, source_handoff: source });
        }
        let event = Event::TaintCleared { source, reason: self.reason.hash };
        let event = NewEvent::on_task(id, case.actor(), event).with(Some(self.reason.clone()));
        Ok(Decision::of(vec![event], Outcome::of_task(id)))
    }
}
