// SPDX-License-Identifier: Apache-2.0
//! Work that waits for other tasks. It goes on as soon as enough of them have a result, or as soon as
//! that can no longer be, or when its time is over; with what they have come to, and with a taint for
//! each of them that it has to do without.

use super::{Case, Footprint, Returns, Stated};
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, Event, TaintPolicy};
use crate::handoff::State;
use crate::ids::{HandoffId, TaskId};
use crate::join::{CameTo, Member, PASSED_MAX};
use crate::refusal::Refusal;
use crate::task::TaskState;

/// Lets a handoff go on that waits for other tasks, if enough of them are done.
#[derive(Debug, Clone)]
pub struct Join {
    pub tasks: Vec<TaskId>,
    /// The handoff that waits, and after it the last handoffs of those tasks.
    handoffs: Vec<HandoffId>,
}

impl Join {
    #[must_use]
    pub fn new(
        handoff: HandoffId,
        tasks: Vec<TaskId>,
        lasts: impl IntoIterator<Item = HandoffId>,
    ) -> Self {
        Self { tasks, handoffs: std::iter::once(handoff).chain(lasts).collect() }
    }
}

impl Stated for Join {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            tasks: &self.tasks,
            handoffs: &self.handoffs,
            returns: Returns::Again,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, view) = (self.handoffs[0], case.view);
        let handoff = case.handoff(id)?;
        let waits = matches!(handoff.state, State::Scheduled { .. }) && handoff.on_hold.is_none();
        let Some(after) = handoff.waits_for_tasks().filter(|_| waits) else {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        };
        let mut members = Vec::with_capacity(after.tasks.len());
        let mut taints = Vec::new();
        for task in after.tasks.iter().filter(|id| self.tasks.contains(id)) {
            let Some(task) = view.task(*task) else { continue };
            let last = task.last.filter(|last| self.handoffs.contains(last));
            if task.last != last && task.state != TaskState::Open {
                return Err(Refusal::TaskMoved(task.id));
            }
            let member = Member::of(task, last.and_then(|last| view.handoff(last)));
            let lacks = member.handoff_id.filter(|_| member.came_to != CameTo::Completed);
            taints.extend(lacks.map(|source| (source, TaintPolicy::Flag)));
            taints.extend(&task.taints);
            members.push(member);
        }
        let count = |what| members.iter().filter(|member| member.came_to == what).count();
        let (done, open) = (count(CameTo::Completed), count(CameTo::Open));
        let need = after.need as usize;
        let overdue = handoff.join.as_ref().is_some_and(|join| join.overdue);
        if done < need && done + open >= need && !overdue {
            return Ok(Decision::unchanged(Outcome::of(id)));
        }
        let task = case.task(handoff.task_id)?;
        let passed = members.iter().filter(|member| member.came_to == CameTo::Completed);
        let passed = passed.filter_map(|member| view.task(member.task_id));
        // What is right below it taints it anyway.
        let noted = |of: &&crate::task::Task| {
            of.parent_task_id != Some(task.id)
                && of.tree.passed_to.len() < PASSED_MAX
                && !of.tree.passed_to.contains(&task.id)
        };
        let passed: Vec<_> = passed.filter(noted).map(|of| of.id).collect();
        let mut events = vec![NewEvent::on(handoff, Actor::Broker, Event::Joined { members })];
        for (source, policy) in task.not_tainted_by(taints) {
            let event = Event::Tainted { source, policy };
            events.push(NewEvent::on(handoff, Actor::Broker, event));
        }
        let given = Event::PassedTo { task: task.id };
        events.extend(
            passed.into_iter().map(|of| NewEvent::on_task(of, Actor::Broker, given.clone())),
        );
        Ok(Decision::of(events, Outcome::of(id)))
    }
}
