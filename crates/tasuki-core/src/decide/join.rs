// SPDX-License-Identifier: Apache-2.0
//! Work that waits for other tasks. It is ready as soon as enough of them have a result, or as soon
//! as that can no longer be; then whoever gets it is told what it is missing.

use super::{Decision, NewEvent, View};
use crate::command::Outcome;
use crate::event::{Actor, Event, TaintPolicy};
use crate::handoff::State;
use crate::ids::{HandoffId, TaskId};
use crate::refusal::Refusal;
use crate::task::TaskState;

/// `failed` are the handoffs by which tasks that it waits for came to nothing.
pub(super) fn join(
    id: HandoffId,
    tasks: &[TaskId],
    failed: &[HandoffId],
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = view.handoff(id).ok_or(Refusal::HandoffNotFound(id))?;
    let waits = matches!(handoff.state, State::Scheduled { .. });
    let Some(after) = handoff.contract.after.as_ref().filter(|_| waits) else {
        return Ok(Decision::unchanged(Outcome::repeated(id)));
    };
    let states = || after.tasks.iter().filter(|id| tasks.contains(id)).map(|id| view.task(*id));
    let done = states().flatten().filter(|task| task.state == TaskState::Completed).count();
    let open = states().flatten().filter(|task| task.state == TaskState::Open).count();
    let need = after.need as usize;
    if done < need && done + open >= need {
        return Ok(Decision::unchanged(Outcome::of(id)));
    }
    let known = view.task(handoff.task_id).map(|task| task.taints.clone()).unwrap_or_default();
    let fresh = failed.iter().filter(|source| !known.iter().any(|(it, _)| it == *source));
    let mut events: Vec<_> =
        fresh.map(|source| Event::Tainted { source: *source, policy: TaintPolicy::Flag }).collect();
    events.push(Event::Readied);
    let events = events.into_iter().map(|event| NewEvent::on(handoff, Actor::Broker, event));
    Ok(Decision::of(events.collect(), Outcome::of(id)))
}
