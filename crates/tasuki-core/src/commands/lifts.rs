// SPDX-License-Identifier: Apache-2.0
//! What happens to an envelope after it was made: a constraint is lifted from the next one on, and
//! the receiver fetches what it was not passed. The envelope itself never changes.

use super::{Case, Footprint, Offer, Stated};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome, View};
use crate::event::{Actor, Event};
use crate::handoff::{self, FETCHED_MAX};
use crate::ids::{DocumentId, Fence, HandoffId, Hash};
use crate::refusal::Refusal;

/// Ends a constraint of a task, from the envelope after this handoff's on.
#[derive(Debug, Clone)]
pub struct Lift {
    pub handoff: HandoffId,
    pub constraint: Hash,
    pub reason: Body,
}

/// Records that a receiver fetched what its envelope had trimmed.
#[derive(Debug, Clone)]
pub struct NoteFetch {
    pub handoff: HandoffId,
    pub memory: DocumentId,
}

/// Records what a claim was told beside the envelope, the first time that somebody reads it.
#[derive(Debug, Clone)]
pub struct NoteTold {
    pub handoff: HandoffId,
    pub fence: Fence,
    pub told: Body,
}

impl Stated for Lift {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_handoff(&self.handoff)
    }

    /// Whether the constraint is there and is this one's to lift is in the envelope, which was read
    /// before; here it must still be the last one.
    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, constraint) = (self.handoff, self.constraint);
        let handoff = case.handoff(id)?;
        let task = case.task(handoff.task_id)?;
        let outcome = Outcome { task: Some(task.id), ..Outcome::of(id) };
        if handoff.lifts.iter().any(|lift| lift.constraint == constraint) {
            return Ok(Decision::unchanged(Outcome { repeated: true, ..outcome }));
        }
        if task.state.is_terminal() {
            return Err(Refusal::TaskFinished { task: task.id, state: task.state });
        }
        if task.envelope != Some((handoff.envelope, handoff.hop)) {
            return Err(Refusal::TaskMoved(task.id));
        }
        let event = Event::ConstraintLifted { constraint, reason: self.reason.hash };
        let event = NewEvent::on(handoff, case.actor(), event).with(Some(self.reason.clone()));
        Ok(Decision::of(vec![event], outcome))
    }
}

impl Stated for NoteFetch {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_handoff(&self.handoff)
    }

    /// Counts a fetch, once for each memory. Only who received the envelope can have been passed too
    /// little.
    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, agent, memory) = (self.handoff, case.agent().clone(), self.memory.clone());
        let handoff = case.handoff(id)?;
        if !handoff.attempts.iter().any(|attempt| attempt.agent == agent) {
            return Err(Refusal::NotTarget { handoff: id, agent });
        }
        if handoff.fetched.contains(&memory) || handoff.fetched.len() >= FETCHED_MAX {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        let event = NewEvent::on(handoff, case.actor(), Event::TrimFetched { agent, memory });
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}

impl Stated for NoteTold {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_handoff(&self.handoff)
    }

    /// The first words stand: what comes later is told in other ways, and reading again changes
    /// nothing. What a claim that is over would have been told, nobody needs any more.
    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let found = case.view.handoff(self.handoff);
        let handoff = found.ok_or(Refusal::HandoffNotFound(self.handoff))?;
        let held = handoff.state.claim().is_some_and(|claim| claim.fence == self.fence);
        let told = handoff.attempts.last().is_some_and(|attempt| attempt.told.is_some());
        if !held || told {
            return Ok(Decision::unchanged(Outcome::repeated(self.handoff)));
        }
        let event = Event::ClaimTold { fence: self.fence, told: self.told.hash };
        let event = NewEvent::on(handoff, Actor::Broker, event).with(Some(self.told.clone()));
        Ok(Decision::of(vec![event], Outcome::of(self.handoff)))
    }
}

/// What was lifted since the envelope before was made must be known to whoever made this one.
pub(super) fn knows_lifts(offer: &Offer, view: &dyn View) -> Result<(), Refusal> {
    let before = offer.after.and_then(|after| view.handoff(after));
    let unknown = before.and_then(|before| {
        let unknown = |lift: &&handoff::Lift| !offer.lifted.contains(&lift.constraint);
        before.lifts.iter().find(unknown).map(|_| before.task_id)
    });
    unknown.map_or(Ok(()), |task| Err(Refusal::TaskMoved(task)))
}
