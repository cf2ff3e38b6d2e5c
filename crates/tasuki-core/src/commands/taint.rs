// SPDX-License-Identifier: Apache-2.0
//! Taking a result back, and what that does to work which was built on it: until somebody has looked
//! at it, everybody who gets it is told, or nobody gets it. It reaches what is built on that in turn, one
//! step at a time, by what each task says of itself; so it may be repeated, and goes on after a crash.

use super::{Case, Footprint, Returns, Stated};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, Event, TaintPolicy};
use crate::handoff::State;
use crate::ids::{HandoffId, TaskId};
use crate::refusal::Refusal;
use crate::task::{Task, TaskState};

/// Takes back the result of a completed handoff.
#[derive(Debug, Clone)]
pub struct Retract {
    pub handoff: HandoffId,
    pub reason: Body,
    pub policy: TaintPolicy,
    /// The task above its own, which has built on it.
    pub above: Option<TaskId>,
}

/// Lets what taints a task taint those that are built on what it came to.
#[derive(Debug, Clone)]
pub struct SpreadTaint {
    pub from: TaskId,
    /// The task above it, those that waited for it, and those that were opened below it: as many as
    /// are told in one step.
    pub to: Vec<TaskId>,
    /// What it is tainted by, as far as those below it may be built on that.
    pub sources: Vec<HandoffId>,
}

/// How many tasks are told in one step that what they are built on no longer holds.
pub const SPREAD_MAX: usize = 100;

#[derive(Debug, Clone)]
pub struct ClearTaint {
    pub task: TaskId,
    pub source: HandoffId,
    pub reason: Body,
    /// Whether the one who clears it may decide about work of the task's owner, whoever it is.
    pub by_right: bool,
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

impl Stated for SpreadTaint {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            tasks: std::slice::from_ref(&self.from),
            others: self.to.clone(),
            handoffs: &self.sources,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let from = case.task(self.from)?;
        let to = self.to.iter().filter_map(|id| case.view.task(*id));
        let known = |source: &HandoffId| {
            case.view.handoff(*source).filter(|_| self.sources.contains(source))
        };
        let each = |to: &Task| {
            let reaches = |source: &HandoffId| {
                from.is_part_of(to)
                    || known(source).is_some_and(|source| to.is_opened_on(from, source))
            };
            let by = from.taints.iter().copied().filter(|(source, _)| reaches(source));
            let event = |(source, policy)| tainted(to, Actor::Broker, source, policy);
            to.not_tainted_by(by).into_iter().filter_map(event).collect::<Vec<_>>()
        };
        let events = to.flat_map(each).collect();
        Ok(Decision::of(events, Outcome::of_task(self.from)))
    }
}

/// Nothing where it is known, or where nothing comes of the task. What a completed task came to may be
/// what others are built on.
fn tainted(task: &Task, actor: Actor, source: HandoffId, policy: TaintPolicy) -> Option<NewEvent> {
    let nothing_comes = matches!(task.state, TaskState::Failed | TaskState::Cancelled);
    if nothing_comes || task.not_tainted_by([(source, policy)]).is_empty() {
        return None;
    }
    let event = NewEvent::on_task(task.id, actor, Event::Tainted { source, policy });
    Some(NewEvent { handoff: task.live, ..event })
}

impl Stated for ClearTaint {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { returns: Returns::Again, ..Footprint::of_task(&self.task) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, source) = (self.task, self.source);
        let task = case.task(id)?;
        if case.agent() != task.decider() && !self.by_right {
            return Err(Refusal::NotPermittedTask { task: id, agent: case.agent().clone() });
        }
        if !task.taints.iter().any(|(it, _)| *it == source) {
            return Err(Refusal::NotTainted { task: id, source_handoff: source });
        }
        let mut others = task.taints.iter().filter(|(it, _)| *it != source);
        let still = others.any(|(_, policy)| *policy == TaintPolicy::Block);
        let live = task.live.and_then(|live| case.view.handoff(live));
        let releases = !still && live.is_some_and(|live| live.blocked);
        let event = Event::TaintCleared { source, reason: self.reason.hash, releases };
        let event = NewEvent::on_task(id, case.actor(), event).with(Some(self.reason.clone()));
        let event = NewEvent { handoff: task.live, ..event };
        Ok(Decision::of(vec![event], Outcome::of_task(id)))
    }
}
