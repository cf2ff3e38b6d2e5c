// SPDX-License-Identifier: Apache-2.0
//! Bringing the tasks below one into line with it, a bounded number at a time. What has to be done
//! follows from what both say of themselves, so it may be asked for as often as anybody likes, and
//! after a crash it goes on where it stopped.

use super::{Case, Changes, Footprint, Returns, Stated, review};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, Closed, Event};
use crate::ids::{HandoffId, TaskId};
use crate::refusal::Refusal;
use crate::task::{Task, TaskState};
use crate::tree::{Above, Fate, fate};

/// Lets tasks have what follows for them from the task above.
#[derive(Debug, Clone)]
pub struct SettleBelow {
    pub parent: TaskId,
    /// Tasks below it: right below, or below others that have ended well.
    pub below: Vec<TaskId>,
    /// The hops that these were opened for, and the dead letters that their own last hops became.
    pub hops: Vec<HandoffId>,
    /// Why, for those who hold what ends by this.
    pub reason: Option<Body>,
}

impl Stated for SettleBelow {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            tasks: std::slice::from_ref(&self.parent),
            others: self.below.clone(),
            handoffs: &self.hops,
            returns: Returns::Again,
            // What is cancelled may have been held, by an agent that was to show how it fares.
            breakers: Changes::OfAny,
            reservations: Changes::OfAny,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let parent = case.task(self.parent)?;
        let live = parent.live.and_then(|live| case.view.handoff(live));
        let above = Above { task: parent, live };
        let mut events = Vec::new();
        for child in self.below.iter().filter_map(|id| case.view.task(*id)) {
            let hop = child.under().filter(|id| self.hops.contains(id));
            let hop = hop.and_then(|id| case.view.handoff(id));
            let live = child.live.and_then(|live| case.view.handoff(live));
            let on_both = |event| NewEvent {
                handoff: child.live,
                ..NewEvent::on_task(child.id, Actor::Broker, event)
            };
            match fate(above, hop, child) {
                Fate::Stays => {}
                Fate::Hold(letter) => events.push(on_both(Event::TaskHeld { letter })),
                Fate::Resume { under, deadline, until } => {
                    events.push(on_both(Event::TaskResumed { under, deadline, until }));
                }
                Fate::Cancel => {
                    let letter = self.letter_of(child)?;
                    events.extend(review::closed(letter, child, Closed::TaskCancelled, case));
                    let reason = self.reason.as_ref().map(|body| body.hash);
                    events.extend(live.map(|handoff| {
                        let event = Event::Cancelled { reason };
                        NewEvent::on(handoff, Actor::Broker, event).with(self.reason.clone())
                    }));
                    // The handoff that opened a task takes it along.
                    if live.is_none_or(|handoff| !handoff.opened_task) {
                        let event = Event::TaskCancelled { reason };
                        let event = NewEvent::on_task(child.id, Actor::Broker, event);
                        events.push(event.with(self.reason.clone()));
                    }
                }
            }
        }
        Ok(Decision::of(events, Outcome::of_task(self.parent)))
    }
}

impl SettleBelow {
    /// The dead letter of a task, on which nobody has to decide any more once the task is cancelled.
    fn letter_of(&self, task: &Task) -> Result<Option<HandoffId>, Refusal> {
        let letter = task.last.filter(|_| task.state == TaskState::DeadLettered);
        match letter.is_none_or(|letter| self.hops.contains(&letter)) {
            true => Ok(letter),
            // It became one after somebody looked.
            false => Err(Refusal::TaskMoved(task.id)),
        }
    }
}
