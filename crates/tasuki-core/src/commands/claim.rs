// SPDX-License-Identifier: Apache-2.0
//! Taking work, looking at it, and saying no to it.

use std::sync::Arc;

use super::{Case, Footprint, Returns, Seeks, Stated, escalate};
use crate::breaker::BreakerState;
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome};
use crate::envelope::Target;
use crate::event::{Actor, Claimed, DeadReason, Event};
use crate::handoff::{self, Handoff, State};
use crate::ids::{AgentId, Capability, ClaimId, HandoffId, RequestId, Timestamp};
use crate::refusal::Refusal;
use crate::registry::{Pause, Purpose, Standing, Token};
use crate::terms::{LEASE_MS_MAX, LEASE_MS_MIN};

/// Who looks for work, and what it can do.
#[derive(Debug, Clone, PartialEq)]
pub struct Seeker {
    pub agent: AgentId,
    pub capabilities: Vec<Capability>,
}

/// Claims the next waiting handoffs that this agent may take.
#[derive(Debug, Clone)]
pub struct Claim {
    pub seeker: Seeker,
    /// One random id for each handoff that may be claimed.
    pub claim_ids: Vec<ClaimId>,
    /// A lease other than the terms'; never longer than the hard deadline.
    pub lease_ms: Option<u64>,
    pub request_id: Option<RequestId>,
}

/// Claims one handoff by its id.
#[derive(Debug, Clone)]
pub struct ClaimOne {
    pub handoff: HandoffId,
    pub claim: Claim,
}

/// Shows an agent what waits for it, and records that it was shown.
#[derive(Debug, Clone)]
pub struct Peek {
    pub seeker: Seeker,
    pub max: usize,
}

/// Declines a handoff that was not claimed.
#[derive(Debug, Clone)]
pub struct Decline {
    pub handoff: HandoffId,
    pub reason: Option<Body>,
}

impl Stated for Claim {
    fn footprint(&self) -> Footprint<'_> {
        let seeks = Seeks {
            seeker: &self.seeker,
            max: self.claim_ids.len(),
            request: self.request_id.as_ref(),
            takes: true,
        };
        let claims_for = Some(&self.seeker.agent);
        Footprint { seeks: Some(seeks), claims_for, ..Footprint::default() }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        if let Some(repeat) = repeated(self, case) {
            return Ok(repeat);
        }
        // Who failed too often gets nothing for a while, and then one.
        let may = match paused(&Target::Agent(self.seeker.agent.clone()), case) {
            Some(_) => 0,
            None => breaker_of(&self.seeker.agent, case).claims_max(),
        };
        let mut waiting = if may == 0 { Vec::new() } else { claimable(self, case) };
        waiting.truncate(may);
        let welcome = welcome(&self.seeker.agent, case);
        let in_time = waiting
            .into_iter()
            .filter_map(|id| case.view.handoff(id))
            .filter(|handoff| handoff.from.tenant() == self.seeker.agent.tenant())
            .filter(|handoff| welcome && case.now < handoff.expires_at);
        let (handoffs, events) = in_time
            .zip(&self.claim_ids)
            .map(|(handoff, &claim_id)| (handoff.id, claimed(handoff, self, claim_id, case)))
            .unzip();
        Ok(Decision::of(events, Outcome { handoffs, ..Outcome::default() }))
    }
}

impl Stated for ClaimOne {
    fn footprint(&self) -> Footprint<'_> {
        let claims_for = Some(&self.claim.seeker.agent);
        Footprint { claims_for, ..Footprint::of_handoff(&self.handoff) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, wish) = (self.handoff, &self.claim);
        let handoff = case.handoff(id)?;
        let same_request = |held: &handoff::Claim| {
            wish.request_id.is_some()
                && held.request_id == wish.request_id
                && held.agent == wish.seeker.agent
        };
        match &handoff.state {
            State::Claimed(held) | State::InProgress(held) if same_request(held) => {
                return Ok(Decision::unchanged(Outcome::repeated(id)));
            }
            State::Pending { .. } | State::Answered(_) => {}
            State::AwaitingApproval | State::Scheduled { .. } | State::InputRequired(_) => {
                let state = handoff.state.name();
                return Err(Refusal::WrongState { handoff: id, state, wanted: "claimed" });
            }
            State::Claimed(_)
            | State::InProgress(_)
            | State::Completed { .. }
            | State::Failed { .. }
            | State::Aborted { .. }
            | State::Cancelled { .. }
            | State::DeadLettered { .. } => {
                return Err(Refusal::AlreadyClaimed { handoff: id, state: handoff.state.name() });
            }
        }
        may_take(handoff, &wish.seeker, case.now)?;
        // An answer keeps, too, while somebody has to decide on what is above.
        if handoff.on_hold.is_some() {
            let task = case.task(handoff.task_id)?;
            let letter = task.tree.on_hold.unwrap_or(id);
            return Err(Refusal::OnHold { task: task.id, letter });
        }
        if !welcome(&wish.seeker.agent, case) {
            return Err(Refusal::HandoffNotFound(id));
        }
        // Its hard deadline would have passed too: the claim could not even be completed.
        if case.now >= handoff.expires_at {
            return Err(Refusal::DeadlinePassed);
        }
        if let Some(first) = case.view.ahead_of(handoff) {
            return Err(Refusal::OutOfTurn { handoff: id, first });
        }
        let own = Target::Agent(wish.seeker.agent.clone());
        let pause = paused(&own, case).or_else(|| paused(&handoff.to, case));
        if let Some(pause) = pause {
            return Err(Refusal::TargetPaused {
                target: pause.target.name().to_owned(),
                left_ms: pause.until.map(|until| until.ms_after(case.now)),
            });
        }
        let breaker = breaker_of(&wish.seeker.agent, case);
        if breaker.claims_max() == 0 {
            let worker = Target::Agent(wish.seeker.agent.clone());
            return Err(escalate::unavailable(&worker, breaker, case));
        }
        let claim_id = wish.claim_ids.first().copied();
        let claim_id = claim_id.expect("the engine gives a claim id for each handoff it asks for");
        let event = claimed(handoff, wish, claim_id, case);
        Ok(Decision::of(vec![event], Outcome::of(id)))
    }
}

impl Stated for Peek {
    fn footprint(&self) -> Footprint<'_> {
        let (seeker, max) = (&self.seeker, self.max);
        let seeks = Seeks { seeker, max, request: None, takes: false };
        Footprint { seeks: Some(seeks), ..Footprint::default() }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let agent = &self.seeker.agent;
        let mut waiting = case.view.waiting(&self.seeker, self.max);
        waiting.retain(|id| {
            let handoff = case.view.handoff(*id);
            handoff.is_some_and(|handoff| handoff.from.tenant() == agent.tenant())
        });
        let events = waiting
            .iter()
            .filter_map(|&id| case.view.handoff(id))
            .filter(|handoff| handoff.delivered_at.is_none())
            .map(|handoff| {
                let event = Event::Delivered { agent: agent.clone() };
                NewEvent::on(handoff, Actor::Agent(agent.clone()), event)
            })
            .collect();
        Ok(Decision::of(events, Outcome { handoffs: waiting, ..Outcome::default() }))
    }
}

impl Stated for Decline {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { returns: Returns::Again, ..Footprint::of_handoff(&self.handoff) }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (id, agent) = (self.handoff, case.agent());
        let handoff = case.handoff(id)?;
        if handoff.declined_by.contains(agent) {
            return Ok(Decision::unchanged(Outcome::repeated(id)));
        }
        match &handoff.state {
            State::Pending { .. } | State::Scheduled { .. } | State::AwaitingApproval => {}
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
                return Err(Refusal::WrongState { handoff: id, state, wanted: "declined" });
            }
        }
        match &handoff.to {
            Target::Agent(target) if target != agent => {
                return Err(Refusal::NotTarget { handoff: id, agent: agent.clone() });
            }
            Target::Agent(_) | Target::Capability(_) => {}
        }
        let events = declined(handoff, agent, self.reason.as_ref(), case);
        Ok(Decision::of(events, Outcome::of(id)))
    }
}

/// What a seeker may take now: answers that are kept for it, and then what waits.
fn claimable(wish: &Claim, case: &Case<'_>) -> Vec<HandoffId> {
    let max = wish.claim_ids.len();
    let given_out = |id: &HandoffId| {
        let handoff = case.view.handoff(*id).filter(|handoff| handoff.on_hold.is_none());
        matches!(handoff.map(|it| &it.state), Some(State::Answered(kept)) if !kept.by_id)
    };
    let mut found = case.view.kept(&wish.seeker.agent);
    found.retain(given_out);
    found.truncate(max);
    let open = |it: &&Capability| paused(&Target::Capability((*it).clone()), case).is_none();
    let capabilities = wish.seeker.capabilities.iter().filter(open).cloned().collect();
    let seeker = Seeker { agent: wish.seeker.agent.clone(), capabilities };
    found.extend(case.view.waiting(&seeker, max - found.len()));
    found
}

/// Why nothing is claimed of a target, if somebody paused it.
fn paused<'v>(target: &Target, case: &Case<'v>) -> Option<&'v Pause> {
    case.view.registry().pause_of(target, case.now)
}

/// The same agent asks again with the same request id: it lost our reply, not the claim.
fn repeated(wish: &Claim, case: &Case<'_>) -> Option<Decision> {
    let request = wish.request_id.as_ref()?;
    let handoffs = case.view.held_by_request(&wish.seeker.agent, request);
    let outcome = Outcome { handoffs, repeated: true, ..Outcome::default() };
    (!outcome.handoffs.is_empty()).then(|| Decision::unchanged(outcome))
}

/// What the breaker of the one who claims lets it have.
fn breaker_of(agent: &AgentId, case: &Case<'_>) -> BreakerState {
    escalate::breaker(case.view, &Target::Agent(agent.clone()), case.now)
}

fn claimed(handoff: &Handoff, wish: &Claim, claim_id: ClaimId, case: &Case<'_>) -> NewEvent {
    let lease_ms = wish.lease_ms.unwrap_or(handoff.terms.lease_ms);
    let hard_until = match &handoff.state {
        // Whoever asked goes on with the time that it had.
        State::Answered(kept) if kept.agent == wish.seeker.agent => kept.hard_until,
        _ => case.now.plus_ms(handoff.terms.work_ms),
    };
    let event = Event::Claimed(Claimed {
        agent: wish.seeker.agent.clone(),
        claim_id,
        fence: handoff.fence.next(case.view.epoch()),
        attempt: handoff.next_attempt(),
        lease_ms: lease_ms.clamp(LEASE_MS_MIN, LEASE_MS_MAX),
        hard_until: hard_until.min(handoff.expires_at),
        request_id: wish.request_id.clone(),
        probes: match breaker_of(&wish.seeker.agent, case) {
            BreakerState::Closed => None,
            BreakerState::Open { .. } | BreakerState::HalfOpen { .. } => {
                Some(Target::Agent(wish.seeker.agent.clone()))
            }
        },
    });
    NewEvent::on(handoff, Actor::Agent(wish.seeker.agent.clone()), event)
}

/// Whether somebody may still take work: who was known and is no longer may not, not even if it
/// asked before that and waited.
fn welcome(agent: &AgentId, case: &Case<'_>) -> bool {
    let Case { view, now, .. } = *case;
    let Some(known) = view.registry().agents.get(agent) else { return true };
    let has_key = known.keys.is_empty() || known.keys_at(now).next().is_some();
    let mut tokens = view.registry().tokens.values();
    let bears = |token: &Arc<Token>| {
        token.purpose == Purpose::Bearer
            && token.agent == *agent
            && view.registry().token_counts(token, now)
    };
    known.standing != Standing::Deregistered && (has_key || tokens.any(bears))
}

/// Whether a handoff is meant for somebody. An answer is kept for its asker for a while.
pub(super) fn may_take(handoff: &Handoff, seeker: &Seeker, now: Timestamp) -> Result<(), Refusal> {
    let kept = match &handoff.state {
        State::Answered(kept) => Some(kept),
        _ => None,
    };
    if let Some(kept) = kept.filter(|kept| now < kept.until && kept.agent != seeker.agent) {
        return Err(Refusal::KeptForAsker {
            handoff: handoff.id,
            agent: kept.agent.clone(),
            left_ms: kept.until.ms_after(now),
        });
    }
    if kept.is_some_and(|kept| kept.agent == seeker.agent) {
        return Ok(());
    }
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

/// How many agents may decline a handoff before it counts as unwanted.
const DECLINES_MAX: usize = 256;

/// A capability may have other takers; an agent that declines was the only one.
pub(super) fn declined(
    handoff: &Handoff,
    agent: &AgentId,
    reason: Option<&Body>,
    case: &Case<'_>,
) -> Vec<NewEvent> {
    let event = Event::Declined { agent: agent.clone(), reason: reason.map(|body| body.hash) };
    let event = NewEvent::on(handoff, Actor::Agent(agent.clone()), event).with(reason.cloned());
    let mut events = vec![event];
    let unwanted = handoff.declined_by.len() + 1 >= DECLINES_MAX;
    if unwanted || matches!(handoff.to, Target::Agent(_)) {
        let event = escalate::give_up(handoff, DeadReason::Declined, case);
        events.push(NewEvent::on(handoff, Actor::Broker, event));
    }
    events
}
