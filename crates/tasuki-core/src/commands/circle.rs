// SPDX-License-Identifier: Apache-2.0
//! Agents that wait for each other's answers in a circle, over calls in different trees, and tasks that
//! wait for each other. A call within one tree is refused (see [`super::offer`]); what two trees close
//! together is seen when it is there, and ends by the handoff that closed it.

use super::{Case, Changes, Footprint, Stated};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::envelope::{Control, Target};
use crate::event::{Actor, DeadReason, Event};
use crate::handoff::{Handoff, State};
use crate::ids::{AgentId, HandoffId, TaskId};
use crate::refusal::Refusal;

/// How many handoffs a circle is looked for over.
pub const CIRCLE_MAX: usize = 64;

/// Ends the handoff that closed a circle, as a dead letter.
#[derive(Debug, Clone)]
pub struct EndCircle {
    /// The handoffs of the circle. Of calls: whoever answers one waits for the next, and whoever
    /// answers the last waits for the first. Of work that waits for tasks: for that of the next.
    pub calls: Vec<HandoffId>,
    /// Who waits for whom, in words.
    pub path: Body,
}

impl Handoff {
    /// Who has to answer a call before its sender goes on. Work that is open to many waits for nobody in
    /// particular.
    #[must_use]
    pub fn answers(&self) -> Option<&AgentId> {
        if self.control != Control::Awaited || self.state.is_terminal() {
            return None;
        }
        match (&self.to, self.state.worker()) {
            (_, Some(worker)) => Some(worker),
            (Target::Agent(to), None) => Some(to),
            (Target::Capability(_), None) => None,
        }
    }

    /// The tasks of which each must have a result before it goes on.
    #[must_use]
    pub fn needs_all_of(&self) -> &[TaskId] {
        match self.waits_for_tasks().filter(|_| !self.state.is_terminal()) {
            Some(after) if after.need as usize == after.tasks.len() => &after.tasks,
            Some(_) | None => &[],
        }
    }

    /// Whether it cannot go on before another one has come to its end.
    fn waits_for(&self, other: &Self) -> bool {
        self.answers() == Some(&other.from) || self.needs_all_of().contains(&other.task_id)
    }
}

impl Stated for EndCircle {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            handoffs: &self.calls,
            breakers: Changes::OfNamed,
            reservations: Changes::OfNamed,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let calls: Option<Vec<_>> = self.calls.iter().map(|id| case.view.handoff(*id)).collect();
        let calls = calls.unwrap_or_default();
        let next = calls.iter().cycle().skip(1);
        let closed = calls.iter().zip(next).all(|(call, next)| call.waits_for(next));
        let last = calls.iter().max_by_key(|call| call.offered_pos).filter(|_| closed);
        let Some(last) = last.filter(|last| is_waiting(&last.state)) else {
            return Ok(Decision::unchanged(Outcome::default()));
        };
        let event = Event::DeadLettered {
            reason: DeadReason::Deadlock,
            against: None,
            limits: None,
            because: Some(self.path.hash),
        };
        let event = NewEvent::on(last, Actor::Broker, event).with(Some(self.path.clone()));
        Ok(Decision::of(vec![event], Outcome::of(last.id)))
    }
}

/// Whether nobody has begun with it: who has shows that it works while it waits.
fn is_waiting(state: &State) -> bool {
    match state {
        State::AwaitingApproval | State::Scheduled { .. } | State::Pending { .. } => true,
        State::Claimed(_)
        | State::InProgress(_)
        | State::InputRequired(_)
        | State::Answered(_)
        | State::Failed { .. }
        | State::Aborted { .. }
        | State::Cancelled { .. }
        | State::Completed { .. }
        | State::DeadLettered { .. } => false,
    }
}
