// SPDX-License-Identifier: Apache-2.0
//! Work that waits for other tasks. It is ready as soon as enough of them have a result, or as soon
//! as that can no longer be; then whoever gets it is told what it is missing.

use super::{Case, Footprint, Returns, Stated};
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, Event, TaintPolicy};
use crate::handoff::State;
use crate::ids::{HandoffId, TaskId};
use crate::refusal::Refusal;
use crate::task::TaskState;

/// Lets a handoff go on that waits for other tasks, if enough of them are done.
#[derive(Debug, Clone)]
pub struct Join {
    pub handoff: HandoffId,
    pub tasks: Vec<TaskId>,
    /// The handoffs by which some of them came to nothing.
    pub failed: Vec<HandoffId>,
}

impl Stated for Join {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            tasks: &self.tasks,
            returns: Returns::Again,
            ..Footprint::of_handoff(&self.handoff)
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, view) = (self.handoff, case.view);
        let handoff = case.handoff(id)?;
        let waits = matches!(handoff.state, State::Scheduled { .. });
        let Some(after) = handoff.contract.after.as_ref().filter(|_| waits) else {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        };
        let states =
            || after.tasks.iter().filter(|id| self.tasks.contains(id)).map(|id| view.task(*id));
        let done = states().flatten().filter(|task| task.state == TaskState::Completed).count();
        let open = states().flatten().filter(|task| task.state == TaskState::Open).count();
        let need = after.need as usize;
        if done < need && done + open >= need {
            return Ok(Decision::unchanged(Outcome::of(id)));
        }
        let known = view.task(handoff.task_id).map(|task| task.taints.clone()).unwrap_or_default();
        let fresh = self.failed.iter().filter(|source| !known.iter().any(|(it, _)| it == *source));
        let mut events: Vec<_> = fresh
            .map(|source| Event::Tainted { source: *source, policy: TaintPolicy::Flag })
            .collect();
        events.push(Event::Readied);
        let events = events.into_iter().map(|event| NewEvent::on(handoff, Actor::Broker, event));
        Ok(Decision::of(events.collect(), Outcome::of(id)))
    }
}
