// SPDX-License-Identifier: Apache-2.0
//! What happens when a target cannot or will not do the work: the next one is asked, by name and
//! then by what it can do; if there is none, it is a dead letter. And what is sent to a target whose
//! breaker is open.

use super::{Case, Offer};
use crate::breaker::BreakerState;
use crate::contract::Contract;
use crate::decide::View;
use crate::envelope::Target;
use crate::event::{DeadReason, Event};
use crate::handoff::Handoff;
use crate::ids::{AgentId, Timestamp};
use crate::refusal::Refusal;
use crate::registry::Standing;

/// What follows for a handoff when its target is given up.
pub(super) fn give_up(handoff: &Handoff, reason: DeadReason, case: &Case<'_>) -> Event {
    // What used up its tries counts against the target; what was merely not wanted does not.
    let (asks_others, counts) = match reason {
        DeadReason::AttemptsExhausted | DeadReason::Poison | DeadReason::Unacknowledged => {
            (true, true)
        }
        DeadReason::Declined => (true, false),
        DeadReason::PermanentFailure
        | DeadReason::Expired
        | DeadReason::Rejected
        | DeadReason::HopLimit
        | DeadReason::Cycle => (false, false),
    };
    let against = counts.then(|| handoff.to.clone());
    let (tried, unwilling) = (&handoff.tried, &handoff.declined_by);
    match next(&handoff.contract, &handoff.to, tried, unwilling, case) {
        Some(to) if asks_others => Event::Escalated { to, reason, against },
        Some(_) | None => Event::DeadLettered { reason, against },
    }
}

fn next(
    contract: &Contract,
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
            && breaker(view, other, now) == BreakerState::Closed
    };
    contract.fallbacks.iter().find(fits).cloned()
}

fn breaker(view: &dyn View, target: &Target, now: Timestamp) -> BreakerState {
    let known = view.registry().breakers.get(target);
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
    let until = match breaker(view, &offer.to, now) {
        BreakerState::Closed => return Ok(as_it_is),
        BreakerState::HalfOpen => return Ok(Admitted { probe: true, ..as_it_is }),
        BreakerState::Open { until } => until,
    };
    let instead = next(&offer.contract, &offer.to, &[], &[], case);
    if instead.is_some() {
        return Ok(Admitted { instead, ..as_it_is });
    }
    if follows && until < offer.expires_at {
        let not_before = Some(offer.not_before.map_or(until, |start| start.max(until)));
        return Ok(Admitted { not_before, ..as_it_is });
    }
    Err(Refusal::TargetUnavailable {
        target: offer.to.name().to_owned(),
        in_row: view.registry().breakers.get(&offer.to).map_or(0, |known| known.in_row),
        reset_in_ms: until.ms_after(now),
    })
}
