// SPDX-License-Identifier: Apache-2.0
//! Who waits for whose answer, over all calls that are open, which tasks wait for which, and circles in
//! that.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tasuki_core::commands::{CIRCLE_MAX, Command, EndCircle};
use tasuki_core::report::Note;
use tasuki_core::{AgentId, Body, Handoff, HandoffId, Task, TaskId};

use crate::engine::Engine;
use crate::error::Error;

/// How many calls are looked at for one circle.
const LOOKED_AT_MAX: usize = 10_000;

/// The calls that are open, by who waits for them.
#[derive(Default)]
pub(super) struct Calls {
    by_sender: BTreeMap<AgentId, BTreeSet<HandoffId>>,
    known: HashMap<HandoffId, Arc<Handoff>>,
    /// The handoff of a task that waits for other tasks.
    waiting: HashMap<TaskId, Arc<Handoff>>,
}

impl Calls {
    pub(super) fn clear(&mut self) {
        self.by_sender.clear();
        self.known.clear();
        self.waiting.clear();
    }

    /// Takes note of whether a handoff waits for other tasks.
    pub(super) fn note_waiting(&mut self, handoff: &Arc<Handoff>) {
        if !handoff.needs_all_of().is_empty() {
            self.waiting.insert(handoff.task_id, handoff.clone());
        } else if self.waiting.get(&handoff.task_id).is_some_and(|it| it.id == handoff.id) {
            self.waiting.remove(&handoff.task_id);
        }
    }

    /// The handoffs of tasks that wait for each other, this one among them, if they do.
    pub(super) fn circle_of_tasks(&self, task: TaskId) -> Option<Vec<Arc<Handoff>>> {
        let mut seen = BTreeSet::from([task]);
        let mut open = vec![vec![self.waiting.get(&task)?.clone()]];
        while let Some(way) = open.pop() {
            for next in way.last()?.needs_all_of() {
                if *next == task {
                    return Some(way);
                }
                let Some(waits) = self.waiting.get(next) else { continue };
                if seen.len() < LOOKED_AT_MAX && way.len() < CIRCLE_MAX && seen.insert(*next) {
                    open.push(way.iter().chain([waits]).cloned().collect());
                }
            }
        }
        None
    }

    /// Takes note of a handoff as it is now. A call counts if it was made for work that its sender was
    /// at: whoever tells something to many waits for none of them.
    pub(super) fn note(&mut self, handoff: &Arc<Handoff>, task: Option<&Task>) {
        let waits = handoff.answers().is_some() && task.is_some_and(|task| task.under().is_some());
        if waits {
            self.by_sender.entry(handoff.from.clone()).or_default().insert(handoff.id);
            self.known.insert(handoff.id, handoff.clone());
        } else if self.known.remove(&handoff.id).is_some()
            && let Some(theirs) = self.by_sender.get_mut(&handoff.from)
        {
            theirs.remove(&handoff.id);
            if theirs.is_empty() {
                self.by_sender.remove(&handoff.from);
            }
        }
    }

    /// The calls of a circle that this one closes, in order, if it closes one.
    pub(super) fn circle(&self, id: HandoffId) -> Option<Vec<Arc<Handoff>>> {
        let call = self.known.get(&id)?;
        let mut seen = BTreeSet::from([call.from.clone()]);
        let mut open = vec![vec![call.clone()]];
        let mut looked_at = 0;
        while let Some(way) = open.pop() {
            let Some(agent) = way.last().and_then(|last| last.answers()) else { continue };
            if *agent == call.from {
                // Who asks itself knows whether it takes its own work while it waits.
                return (way.len() > 1).then_some(way);
            }
            if way.len() >= CIRCLE_MAX || !seen.insert(agent.clone()) {
                continue;
            }
            for next in self.by_sender.get(agent).into_iter().flatten() {
                looked_at += 1;
                if looked_at > LOOKED_AT_MAX {
                    return None;
                }
                let Some(next) = self.known.get(next) else { continue };
                open.push(way.iter().chain([next]).cloned().collect());
            }
        }
        None
    }
}

impl Engine {
    /// Ends the call that closed a circle, unless one of those in it works on several things at once.
    pub(super) async fn end_circle(&self, circle: &[Arc<Handoff>]) -> Result<(), Error> {
        for call in circle {
            if !self.works_on_one(&call.from).await? {
                return Ok(());
            }
        }
        let each = circle.iter().filter_map(|call| {
            Some(format!("{} waits for {} ({})", call.from.name(), call.answers()?.name(), call.id))
        });
        self.end_closed(circle, each.collect()).await
    }

    /// Ends the handoff that closed a circle of tasks.
    pub(super) async fn end_circle_of_tasks(&self, circle: &[Arc<Handoff>]) -> Result<(), Error> {
        let next = circle.iter().cycle().skip(1);
        let each = circle
            .iter()
            .zip(next)
            .map(|(one, next)| format!("{} waits for {} ({})", one.task_id, next.task_id, one.id));
        self.end_closed(circle, each.collect()).await
    }

    async fn end_closed(&self, circle: &[Arc<Handoff>], path: Vec<String>) -> Result<(), Error> {
        let text = path.join(", ");
        let calls = circle.iter().map(|call| call.id).collect();
        let end = EndCircle { calls, path: Body::of(&Note { text }) };
        self.one(Command::of_broker(end)).await?;
        Ok(())
    }
}
