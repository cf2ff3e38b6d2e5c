// SPDX-License-Identifier: Apache-2.0
//! What happens when a target cannot or will not do the work: the next one is asked, by name and
//! then by what it can do; if there is none, it is a dead letter. And what is sent to a target whose
//! breaker is open.

use super::{Case, Offer};
use crate::breaker::{BreakerName, BreakerState, Limits};
use crate::contract::Routing;
use crate::decide::View;
use crate::envelope::Target;
use crate::event::{DeadReason, Event};
use crate::handoff::Handoff;
use crate::ids::{AgentId, Timestamp};
use crate::refusal::Refusal;
use crate::registry::Standing;

/// What follows for a handoff when its target is given up.
pub(super) fn give_up(handoff: &Handoff, reason: DeadReason, case: &Case<'_>) -> Event {
    // What used up its tries counts against the agent that had the last one; what was merely not
    // wanted, or not claimed within a time that its sender chose, does not.
    let (asks_others, counts) = match reason {
        DeadReason::AttemptsExhausted => (true, true),
        DeadReason::Poison => (true, loss_counts(handoff, case)),
        DeadReason::Unacknowledged | DeadReason::Declined => (true, false),
        DeadReason::PermanentFailure
        | DeadReason::Expired
        | DeadReason::Rejected
        | DeadReason::HopLimit
        | DeadReason::Cycle
        | DeadReason::BudgetExhausted
        | DeadReason::Deadlock => (false, false),
    };
    let last = handoff.attempts.last().filter(|_| counts);
    let against = last.map(|attempt| Target::Agent(attempt.agent.clone()));
    let limits = against.as_ref().and_then(|against| counting(against, case));
    let (tried, unwilling) = (&handoff.tried, &handoff.declined_by);
    match next(&handoff.contract.routing, &handoff.to, tried, unwilling, case) {
        Some(to) if asks_others => Event::Escalated { to, reason, against, limits },
        Some(_) | None => Event::DeadLettered { reason, against, limits, because: None },
    }
}

/// By which numbers a failure counts: those of its target, or else the broker's. The usual ones go
/// without saying.
fn counting(target: &Target, case: &Case<'_>) -> Option<Limits> {
    let known = case.view.registry().guards.breakers.get(target);
    let limits = known.and_then(|known| known.own).unwrap_or(case.house.breakers);
    (limits != Limits::default()).then_some(limits)
}

/// Whether a worker that fell silent is to blame. The time in which it should have been heard from
/// must be no shorter than the broker's own, or its own choice: a sender that gives no time makes
/// nobody a bad worker.
fn loss_counts(handoff: &Handoff, case: &Case<'_>) -> bool {
    let Some(claim) = handoff.state.claim() else { return false };
    let house = case.house.terms;
    if case.now >= claim.hard_until {
        return handoff.terms.work_ms >= house.work_ms;
    }
    claim.lease_ms >= house.lease_ms || claim.lease_ms != handoff.terms.lease_ms
}

fn next(
    routing: &Routing,
    to: &Target,
    tried: &[Target],
    unwilling: &[AgentId],
    case: &Case<'_>,
) -> Option<Target> {
    let Case { view, now, .. } = *case;
    let gone = |agent: &AgentId| {
        let known = view.registry().agents.get(agent);
        known.is_some_and(|known| known.standing != Standing::Active)
    };
    let fits = |other: &&Target| {
        let out = match other {
            Target::Agent(agent) => unwilling.contains(agent) || gone(agent),
            Target::Capability(_) => false,
        };
        *other != to
            && !tried.contains(other)
            && !out
            && view.registry().pause_of(other, now).is_none()
            && breaker(view, other, now) == BreakerState::Closed
    };
    routing.fallbacks.iter().find(fits).cloned()
}

pub(super) fn breaker(view: &dyn View, target: &Target, now: Timestamp) -> BreakerState {
    let known = view.registry().guards.breakers.get(target);
    known.map_or(BreakerState::Closed, |known| known.state(now))
}

/// How an offer goes on its way.
#[derive(Debug)]
pub(super) struct Admitted {
    /// The fallback that it goes to, because nothing is sent to its target at present.
    pub(super) instead: Option<Target>,
    pub(super) not_before: Option<Timestamp>,
    /// Whether it is the one that shows how the target fares.
    pub(super) probe: bool,
}

/// Whether an offer may go to its target now. If nothing is sent there, it goes to a fallback, waits
/// until something is (if it follows from a completion, which must not be lost for that), or is
/// refused.
pub(super) fn admit(offer: &Offer, follows: bool, case: &Case<'_>) -> Result<Admitted, Refusal> {
    let Case { view, now, .. } = *case;
    let as_it_is = Admitted { instead: None, not_before: offer.not_before, probe: false };
    let state = breaker(view, &offer.to, now);
    let Some(until) = state.sends_from() else {
        return Ok(Admitted { probe: state.name() == BreakerName::HalfOpen, ..as_it_is });
    };
    let instead = next(&offer.contract.routing, &offer.to, &[], &[], case);
    if instead.is_some() {
        return Ok(Admitted { instead, ..as_it_is });
    }
    if follows && until < offer.expires_at {
        let not_before = Some(offer.not_before.map_or(until, |start| start.max(until)));
        return Ok(Admitted { not_before, ..as_it_is });
    }
    Err(unavailable(&offer.to, state, case))
}

/// Why nothing is sent to a target, or nothing given to it.
pub(super) fn unavailable(target: &Target, state: BreakerState, case: &Case<'_>) -> Refusal {
    let known = case.view.registry().guards.breakers.get(target);
    Refusal::TargetUnavailable {
        target: target.name().to_owned(),
        state: state.name(),
        in_row: known.map_or(0, |known| known.in_row),
        reset_in_ms: state.sends_from().map_or(0, |until| until.ms_after(case.now)),
    }
}
