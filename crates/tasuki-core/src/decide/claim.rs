// SPDX-License-Identifier: Apache-2.0
//! Taking work, looking at it, and saying no to it.

use std::sync::Arc;

use super::{Decision, NewEvent, View, escalate, find_handoff};
use crate::canonical::Body;
use crate::command::{Claim, Outcome, Seeker};
use crate::envelope::Target;
use crate::event::{Actor, Claimed, DeadReason, Event};
use crate::handoff::{Handoff, State};
use crate::ids::{AgentId, ClaimId, HandoffId, Timestamp};
use crate::refusal::Refusal;
use crate::registry::{Purpose, Standing, Token};
use crate::terms::{LEASE_MS_MAX, LEASE_MS_MIN};

pub(super) fn claim(wish: &Claim, view: &dyn View, now: Timestamp) -> Decision {
    if let Some(repeat) = repeated(wish, view) {
        return repeat;
    }
    let waiting = view.waiting(&wish.seeker, wish.claim_ids.len());
    let welcome = welcome(&wish.seeker.agent, view, now);
    let in_time = waiting
        .into_iter()
        .filter_map(|id| view.handoff(id))
        .filter(|handoff| handoff.from.tenant() == wish.seeker.agent.tenant())
        .filter(|handoff| welcome && now < handoff.expires_at);
    let (handoffs, events) = in_time
        .zip(&wish.claim_ids)
        .map(|(handoff, &claim_id)| (handoff.id, claimed(handoff, wish, claim_id, view, now)))
        .unzip();
    Decision::of(events, Outcome { handoffs, ..Outcome::default() })
}

pub(super) fn claim_one(
    id: HandoffId,
    wish: &Claim,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &wish.seeker.agent)?;
    let same_request = |held: &crate::handoff::Claim| {
        wish.request_id.is_some()
            && held.request_id == wish.request_id
            && held.agent == wish.seeker.agent
    };
    match &handoff.state {
        State::Claimed(held) | State::InProgress(held) if same_request(held) => {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        State::Pending { .. } => {}
        State::AwaitingApproval | State::Scheduled { .. } => {
            let state = handoff.state.name();
            return Err(Refusal::WrongState { handoff: id, state, wanted: "claimed" });
        }
        State::Claimed(_)
        | State::InProgress(_)
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Cancelled { .. }
        | State::DeadLettered { .. } => {
            return Err(Refusal::AlreadyClaimed { handoff: id, state: handoff.state.name() });
        }
    }
    may_take(handoff, &wish.seeker)?;
    if !welcome(&wish.seeker.agent, view, now) {
        return Err(Refusal::HandoffNotFound(id));
    }
    // Its hard deadline would have passed too: the claim could not even be completed.
    if now >= handoff.expires_at {
        return Err(Refusal::DeadlinePassed);
    }
    if let Some(first) = view.ahead_of(handoff) {
        return Err(Refusal::OutOfTurn { handoff: id, first });
    }
    let claim_id = wish.claim_ids.first().copied();
    let claim_id = claim_id.expect("the engine gives a claim id for each handoff it asks for");
    let event = claimed(handoff, wish, claim_id, view, now);
    Ok(Decision::of(vec![event], Outcome::of(id)))
}

/// The same agent asks again with the same request id: it lost our reply, not the claim.
fn repeated(wish: &Claim, view: &dyn View) -> Option<Decision> {
    let request = wish.request_id.as_ref()?;
    let handoffs = view.held_by_request(&wish.seeker.agent, request);
    let outcome = Outcome { handoffs, repeated: true, ..Outcome::default() };
    (!outcome.handoffs.is_empty()).then(|| Decision::unchanged(outcome))
}

fn claimed(
    handoff: &Handoff,
    wish: &Claim,
    claim_id: ClaimId,
    view: &dyn View,
    now: Timestamp,
) -> NewEvent {
    let lease_ms = wish.lease_ms.unwrap_or(handoff.terms.lease_ms);
    let event = Event::Claimed(Claimed {
        agent: wish.seeker.agent.clone(),
        claim_id,
        fence: handoff.fence.next(view.epoch()),
        attempt: handoff.claims + 1,
        lease_ms: lease_ms.clamp(LEASE_MS_MIN, LEASE_MS_MAX),
        hard_until: now.plus_ms(handoff.terms.work_ms).min(handoff.expires_at),
        request_id: wish.request_id.clone(),
    });
    NewEvent::on(handoff, Actor::Agent(wish.seeker.agent.clone()), event)
}

/// Whether somebody may still take work: who was known and is no longer may not, not even if it
/// asked before that and waited.
fn welcome(agent: &AgentId, view: &dyn View, now: Timestamp) -> bool {
    let Some(known) = view.registry().agents.get(agent) else { return true };
    let has_key = known.keys.is_empty() || known.keys_at(now).next().is_some();
    let mut tokens = view.registry().tokens.values();
    let bears = |token: &Arc<Token>| {
        token.purpose == Purpose::Bearer && token.agent == *agent && token.counts(now)
    };
    known.standing != Standing::Deregistered && (has_key || tokens.any(bears))
}

/// Whether a handoff is meant for somebody.
pub(super) fn may_take(handoff: &Handoff, seeker: &Seeker) -> Result<(), Refusal> {
    let meant = match &handoff.to {
        Target::Agent(agent) => *agent == seeker.agent,
        Target::Capability(capability) => seeker.capabilities.contains(capability),
    };
    if !meant {
        return Err(Refusal::NotTarget { handoff: handoff.id, agent: seeker.agent.clone() });
    }
    if handoff.declined_by.contains(&seeker.agent) {
        return Err(Refusal::AlreadyDeclined { handoff: handoff.id, agent: seeker.agent.clone() });
    }
    Ok(())
}

pub(super) fn peek(seeker: &Seeker, max: usize, view: &dyn View) -> Decision {
    let mut waiting = view.waiting(seeker, max);
    waiting.retain(|id| {
        let handoff = view.handoff(*id);
        handoff.is_some_and(|handoff| handoff.from.tenant() == seeker.agent.tenant())
    });
    let events = waiting
        .iter()
        .filter_map(|&id| view.handoff(id))
        .filter(|handoff| handoff.delivered_at.is_none())
        .map(|handoff| {
            let agent = seeker.agent.clone();
            let event = Event::Delivered { agent: agent.clone() };
            NewEvent::on(handoff, Actor::Agent(agent), event)
        })
        .collect();
    Decision::of(events, Outcome { handoffs: waiting, ..Outcome::default() })
}

pub(super) fn decline(
    id: HandoffId,
    agent: AgentId,
    reason: Option<Body>,
    view: &dyn View,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let handoff = find_handoff(view, id, &agent)?;
    if handoff.declined_by.contains(&agent) {
        return Ok(Decision::unchanged(Outcome::repeated(id)));
    }
    match &handoff.state {
        State::Pending { .. } | State::Scheduled { .. } | State::AwaitingApproval => {}
        State::Claimed(_)
        | State::InProgress(_)
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Cancelled { .. }
        | State::DeadLettered { .. } => {
            let state = handoff.state.name();
            return Err(Refusal::WrongState { handoff: id, state, wanted: "declined" });
        }
    }
    if let Target::Agent(target) = &handoff.to
        && *target != agent
    {
        return Err(Refusal::NotTarget { handoff: id, agent });
    }
    Ok(Decision::of(declined(handoff, agent, reason, view, now), Outcome::of(id)))
}

/// How many agents may decline a handoff before it counts as unwanted.
const DECLINES_MAX: usize = 256;

/// A capability may have other takers; an agent that declines was the only one.
pub(super) fn declined(
    handoff: &Handoff,
    agent: AgentId,
    reason: Option<Body>,
    view: &dyn View,
    now: Timestamp,
) -> Vec<NewEvent> {
    let event =
        Event::Declined { agent: agent.clone(), reason: reason.as_ref().map(|body| body.hash) };
    let mut events = vec![NewEvent::on(handoff, Actor::Agent(agent), event).with(reason)];
    let unwanted = handoff.declined_by.len() + 1 >= DECLINES_MAX;
    if unwanted || matches!(handoff.to, Target::Agent(_)) {
        let event = escalate::give_up(handoff, DeadReason::Declined, view, now);
        events.push(NewEvent::on(handoff, Actor::Broker, event));
    }
    events
}
