// SPDX-License-Identifier: Apache-2.0
//! Counter-offers: a receiver that would take the work on other terms says so, and the sender
//! settles it. Until then anybody may still take it as it was offered.

use super::{Case, Footprint, Returns, Seeker, Stated, claim};
use crate::canonical::Body;
use crate::contract::COUNTERS_MAX;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Countered, Event};
use crate::handoff::{Handoff, State};
use crate::ids::{AgentId, HandoffId};
use crate::refusal::Refusal;
use crate::terms::Terms;

/// Says on which other terms an agent would take a handoff.
#[derive(Debug, Clone)]
pub struct Counter {
    pub handoff: HandoffId,
    pub seeker: Seeker,
    pub terms: Terms,
    pub budget_tokens: Option<u32>,
    pub reason: Body,
}

/// Accepts or refuses an agent's counter-offer. Accepting makes its terms those of the handoff, which
/// then waits for the one who made it.
#[derive(Debug, Clone)]
pub struct SettleCounter {
    pub handoff: HandoffId,
    pub agent: AgentId,
    pub accept: bool,
}

impl Stated for Counter {
    fn footprint(&self) -> Footprint<'_> {
        Footprint::of_handoff(&self.handoff)
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, agent) = (self.handoff, case.agent());
        let handoff = case.handoff(id)?;
        unclaimed(handoff, "countered")?;
        claim::may_take(handoff, &self.seeker, case.now)?;
        self.terms.check().map_err(Refusal::InvalidTerms)?;
        let others = handoff.counters.iter().filter(|counter| counter.agent != *agent).count();
        if others >= COUNTERS_MAX {
            return Err(Refusal::TooManyCounters { handoff: id, max: COUNTERS_MAX });
        }
        let countered = Countered {
            agent: agent.clone(),
            terms: self.terms,
            budget_tokens: self.budget_tokens,
            reason: self.reason.hash,
        };
        let event = NewEvent::on(handoff, case.actor(), Event::Countered(countered));
        Ok(Decision::of(vec![event.with(Some(self.reason.clone()))], Outcome::of(id)))
    }
}

impl Stated for SettleCounter {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { returns: Returns::Again, ..Footprint::of_handoff(&self.handoff) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, by, agent) = (self.handoff, case.agent(), &self.agent);
        let handoff = case.handoff(id)?;
        if *by != handoff.from {
            return Err(Refusal::NotPermitted { handoff: id, agent: by.clone(), wish: "settle" });
        }
        let Some(counter) = handoff.counters.iter().find(|counter| counter.agent == *agent) else {
            return Err(Refusal::NoCounter { handoff: id, agent: agent.clone() });
        };
        unclaimed(handoff, "settled")?;
        let agent = agent.clone();
        let event = if self.accept {
            let (terms, budget_tokens) = (counter.terms, counter.budget_tokens);
            Event::CounterAccepted { agent, terms, budget_tokens }
        } else {
            Event::CounterRefused { agent }
        };
        let event = NewEvent::on(handoff, case.actor(), event);
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}

fn unclaimed(handoff: &Handoff, wanted: &'static str) -> Result<(), Refusal> {
    match handoff.state {
        State::AwaitingApproval | State::Scheduled { .. } | State::Pending { .. } => Ok(()),
        State::Claimed(_)
        | State::InProgress(_)
        | State::InputRequired(_)
        | State::Answered(_)
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Aborted { .. }
        | State::Cancelled { .. }
        | State::DeadLettered { .. } => {
            let state = handoff.state.name();
            Err(Refusal::WrongState { handoff: handoff.id, state, wanted })
        }
    }
}
