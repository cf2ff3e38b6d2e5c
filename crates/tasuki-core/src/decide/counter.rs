// SPDX-License-Identifier: Apache-2.0
//! Counter-offers: a receiver that would take the work on other terms says so, and the sender
//! settles it. Until then anybody may still take it as it was offered.

use super::{Decision, NewEvent, View, claim, find_handoff};
use crate::canonical::Body;
use crate::command::{Outcome, Seeker};
use crate::contract::COUNTERS_MAX;
use crate::event::{Actor, Countered, Event};
use crate::handoff::{Handoff, State};
use crate::ids::{AgentId, HandoffId};
use crate::refusal::Refusal;
use crate::terms::Terms;

pub(super) fn counter(
    id: HandoffId,
    seeker: &Seeker,
    terms: Terms,
    budget_tokens: Option<u32>,
    reason: Body,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &seeker.agent)?;
    unclaimed(handoff, "countered")?;
    claim::may_take(handoff, seeker)?;
    terms.check().map_err(Refusal::InvalidTerms)?;
    let others = handoff.counters.iter().filter(|counter| counter.agent != seeker.agent).count();
    if others >= COUNTERS_MAX {
        return Err(Refusal::TooManyCounters { handoff: id, max: COUNTERS_MAX });
    }
    let agent = seeker.agent.clone();
    let countered = Countered { agent: agent.clone(), terms, budget_tokens, reason: reason.hash };
    let event = NewEvent::on(handoff, Actor::Agent(agent), Event::Countered(countered));
    Ok(Decision::of(vec![event.with(Some(reason))], Outcome::of(id)))
}

/// The sender accepts a counter-offer or refuses it. Accepting makes its terms those of the handoff,
/// which then waits for the one who made it.
pub(super) fn settle(
    id: HandoffId,
    by: AgentId,
    agent: AgentId,
    accept: bool,
    view: &dyn View,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &by)?;
    if by != handoff.from {
        return Err(Refusal::NotPermitted { handoff: id, agent: by, wish: "settle" });
    }
    let Some(counter) = handoff.counters.iter().find(|counter| counter.agent == agent) else {
        return Err(Refusal::NoCounter { handoff: id, agent });
    };
    unclaimed(handoff, "settled")?;
    let event = if accept {
        Event::CounterAccepted { agent, terms: counter.terms, budget_tokens: counter.budget_tokens }
    } else {
        Event::CounterRefused { agent }
    };
    let event = NewEvent::on(handoff, Actor::Agent(by), event);
    Ok(Decision::of(vec![event], Outcome::of(id)))
}

fn unclaimed(handoff: &Handoff, wanted: &'static str) -> Result<(), Refusal> {
    match handoff.state {
        State::AwaitingApproval | State::Scheduled { .. } | State::Pending { .. } => Ok(()),
        State::Claimed(_)
        | State::InProgress(_)
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Cancelled { .. }
        | State::DeadLettered { .. } => {
            let state = handoff.state.name();
            Err(Refusal::WrongState { handoff: handoff.id, state, wanted })
        }
    }
}
