// SPDX-License-Identifier: Apache-2.0
//! A word to whoever holds the work. It waits until a holder has taken note of it.

use super::{Case, Footprint, Stated, question};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::Event;
use crate::handoff::talk::{MESSAGES_MAX, Message};
use crate::ids::HandoffId;
use crate::quota;
use crate::refusal::Refusal;

/// Sends a message to whoever holds a handoff, or will.
#[derive(Debug, Clone)]
pub struct SendMessage {
    pub handoff: HandoffId,
    pub message: Body,
    /// Whether the sender may decide about the handoff's target, whoever it is.
    pub by_right: bool,
}

impl Stated for SendMessage {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { brings_work: true, ..Footprint::of_handoff(&self.handoff) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, by) = (self.handoff, case.agent());
        let handoff = case.handoff(id)?;
        let worker = handoff.state.worker();
        question::may_speak(handoff, by, worker, self.by_right, "send a message about", case)?;
        if handoff.state.is_terminal() {
            let state = handoff.state.name();
            return Err(Refusal::WrongState { handoff: id, state, wanted: "sent a message" });
        }
        // A reply was lost: nobody says the same twice before it was heard once.
        let same = |message: &Message| message.message == self.message.hash && message.by == *by;
        if handoff.talk.unacknowledged().any(same) {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        if handoff.talk.unacknowledged().count() >= MESSAGES_MAX {
            return Err(Refusal::TooManyMessages { handoff: id, max: MESSAGES_MAX });
        }
        quota::check(case.view, by.tenant(), 0, self.message.text().len())?;
        let number = handoff.talk.said().map_or(0, |said| said.sent) + 1;
        let event = Event::MessageSent { number, message: self.message.hash };
        let event = NewEvent::on(handoff, case.actor(), event).with(Some(self.message.clone()));
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}
