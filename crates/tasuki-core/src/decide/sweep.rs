// SPDX-License-Identifier: Apache-2.0
//! What happens by itself when time passes: retries come due, leases are lost, deadlines pass.

use super::{Decision, NewEvent, View, escalate};
use crate::command::Outcome;
use crate::event::{Actor, DeadReason, Event, LossCause};
use crate::handoff::{Claim, Handoff, State};
use crate::ids::{TaskId, Timestamp};
use crate::terms::SILENCE_MS;

pub(super) fn sweep(max: usize, view: &dyn View, now: Timestamp) -> Decision {
    let due = view.due(now, max);
    let events = due
        .iter()
        .filter_map(|&id| view.handoff(id))
        .flat_map(|h| due_events(h, view, now))
        .collect();
    Decision::of(events, Outcome { handoffs: due, ..Outcome::default() })
}

fn due_events(handoff: &Handoff, view: &dyn View, now: Timestamp) -> Vec<NewEvent> {
    let expired = now >= handoff.expires_at;
    let events = match &handoff.state {
        State::AwaitingApproval | State::Pending { .. } if expired => expire(),
        State::Scheduled { .. } if expired => expire(),
        State::Pending { .. } if handoff.ack_by.is_some_and(|by| now >= by) => {
            vec![escalate::give_up(handoff, DeadReason::Unacknowledged, view, now)]
        }
        State::Scheduled { due } if now >= *due => vec![Event::Readied],
        State::Claimed(claim) | State::InProgress(claim) if now >= claim.ends_at() => {
            lose(handoff, claim, view, now, expired)
        }
        State::AwaitingApproval
        | State::Pending { .. }
        | State::Scheduled { .. }
        | State::Claimed(_)
        | State::InProgress(_)
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Cancelled { .. }
        | State::DeadLettered { .. } => Vec::new(),
    };
    events.into_iter().map(|event| NewEvent::on(handoff, Actor::Broker, event)).collect()
}

fn expire() -> Vec<Event> {
    vec![Event::Expired, Event::DeadLettered { reason: DeadReason::Expired, against: None }]
}

fn lose(
    handoff: &Handoff,
    claim: &Claim,
    view: &dyn View,
    now: Timestamp,
    expired: bool,
) -> Vec<Event> {
    let hard = now >= claim.hard_until;
    let cause = if hard { LossCause::HardDeadline } else { LossCause::Silence };
    let mut events = vec![Event::LeaseLost { fence: claim.fence, cause }];
    if expired {
        events.extend(expire());
    } else if handoff.losses_in_row + 1 >= handoff.terms.losses {
        events.push(escalate::give_up(handoff, DeadReason::Poison, view, now));
    }
    events
}

/// After a time in which no broker could be told that a holder is alive. A restart, a process that
/// was stopped and a database that was away are our silence, not theirs.
pub(super) fn renew_all(since: Timestamp, view: &dyn View, now: Timestamp) -> Decision {
    let silent = now.ms_after(since) >= SILENCE_MS;
    Decision::renewing(if silent { view.held() } else { Vec::new() })
}

pub(super) fn raise_epoch(epoch: u64, view: &dyn View) -> Decision {
    // Fences must rise whatever a caller believes the epoch to be.
    let epoch = epoch.max(view.epoch().0 + 1);
    let mut events = vec![NewEvent {
        task: TaskId::STORE,
        handoff: None,
        actor: Actor::Broker,
        event: Event::EpochRaised { epoch },
        body: None,
        turn: None,
    }];
    for handoff in view.held().into_iter().filter_map(|id| view.handoff(id)) {
        if let Some(claim) = handoff.state.claim() {
            let event = Event::LeaseLost { fence: claim.fence, cause: LossCause::Restored };
            events.push(NewEvent::on(handoff, Actor::Broker, event));
        }
    }
    Decision::of(events, Outcome::default())
}
