// SPDX-License-Identifier: Apache-2.0
//! The end of a task that nobody else ends: by its owner, with a result, or by the broker when
//! everybody whom a publication told has come to an end.

use super::{Case, Footprint, Stated, offer, review};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, Closed, Event};
use crate::ids::{HandoffId, TaskId};
use crate::refusal::Refusal;
use crate::task::TaskState;

/// Ends a task with a result. Its owner does so, while nobody else works on it.
#[derive(Debug, Clone)]
pub struct CompleteTask {
    pub task: TaskId,
    pub result: Body,
    /// The dead letter that its last handoff became, if it did.
    pub letter: Option<HandoffId>,
    /// A task below it that is not at its end, unless that does not matter.
    pub open_below: Option<TaskId>,
}

/// Ends the task of a publication whose receivers have all come to an end.
#[derive(Debug, Clone)]
pub struct EndPublication {
    pub task: TaskId,
}

impl Stated for CompleteTask {
    fn footprint(&self) -> Footprint<'_> {
        let task = std::slice::from_ref(&self.task);
        Footprint { tasks: task, handoffs: self.letter.as_slice(), ..Footprint::default() }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let task = case.task(self.task)?;
        offer::owned(task, case.agent())?;
        if let Some(handoff) = task.live {
            return Err(Refusal::HandoffOpen { task: task.id, handoff });
        }
        if let Some(below) = self.open_below {
            return Err(Refusal::OpenBelow { task: task.id, below });
        }
        let mut events: Vec<_> =
            review::closed(self.letter, task, Closed::TaskCompleted, case).into_iter().collect();
        let event = Event::TaskCompleted { result: Some(self.result.hash) };
        let event = NewEvent::on_task(task.id, case.actor(), event);
        events.push(event.with(Some(self.result.clone())));
        Ok(Decision::of(events, Outcome::of_task(task.id)))
    }
}

impl Stated for EndPublication {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_task(&self.task)
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let task = case.task(self.task)?;
        let told = task.channel.is_some() && task.live.is_none();
        if !told || task.state != TaskState::Open {
            return Ok(Decision::unchanged(Outcome::of_task(task.id)));
        }
        let event = Event::TaskCompleted { result: None };
        let event = NewEvent::on_task(task.id, Actor::Broker, event);
        Ok(Decision::of(vec![event], Outcome::of_task(task.id)))
    }
}
