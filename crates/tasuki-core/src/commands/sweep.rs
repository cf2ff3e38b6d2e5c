// SPDX-License-Identifier: Apache-2.0
//! What happens by itself when time passes: retries come due, leases are lost, deadlines pass.

use super::{Case, Changes, Footprint, HeldBy, Returns, Stated, escalate, question};
use crate::decide::{Decision, NewEvent, Outcome};
use crate::event::{Actor, DeadReason, Event, LossCause};
use crate::handoff::{Claim, Handoff, State};
use crate::ids::Timestamp;
use crate::refusal::Refusal;
use crate::terms::SILENCE_MS;

/// Does what is due: lost leases, retries, deadlines.
#[derive(Debug, Clone)]
pub struct Sweep {
    pub max: usize,
    /// What was due by then, and nothing that became due since: a sweep that waited in a process
    /// that was stopped must not judge by the time at which it goes on.
    pub until: Timestamp,
}

impl Sweep {
    /// Does what is due when it is decided.
    #[must_use]
    pub const fn now(max: usize) -> Self {
        Self { max, until: Timestamp::MAX }
    }
}

/// Gives every holder a full lease, unless a broker was there to hear from it. Nobody was since the
/// time that is named.
#[derive(Debug, Clone)]
pub struct RenewAll {
    pub since: Timestamp,
}

/// Makes all claims so far stale, after a restore.
#[derive(Debug, Clone)]
pub struct RaiseEpoch {
    pub epoch: u64,
}

impl Stated for Sweep {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            due: self.max,
            due_until: Some(self.until),
            returns: Returns::Again,
            breakers: Changes::Always,
            reservations: Changes::OfAny,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let case = Case { now: case.now.min(self.until), ..*case };
        let due = case.view.due(case.now, self.max);
        let handoffs = due.iter().filter_map(|&id| case.view.handoff(id));
        let events = handoffs.flat_map(|handoff| due_events(handoff, &case)).collect();
        Ok(Decision::of(events, Outcome { handoffs: due, ..Outcome::default() }))
    }
}

impl Stated for RenewAll {
    fn footprint(&self) -> Footprint<'_> {
        Footprint { held: HeldBy::Everybodys, ..Footprint::default() }
    }

    /// After a time in which no broker could be told that a holder is alive. A restart, a process
    /// that was stopped and a database that was away are our silence, not theirs.
    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let silent = case.now.ms_after(self.since) >= SILENCE_MS;
        let mut held = if silent { case.view.held() } else { Vec::new() };
        // Whoever asked has no lease.
        held.retain(|id| case.view.handoff(*id).is_some_and(|h| h.state.claim().is_some()));
        Ok(Decision::renewing(held))
    }
}

impl Stated for RaiseEpoch {
    fn footprint(&self) -> Footprint<'_> {
        Footprint {
            store: true,
            held: HeldBy::Everybodys,
            returns: Returns::Again,
            breakers: Changes::OfAny,
            reservations: Changes::OfAny,
            ..Footprint::default()
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        // Fences must rise whatever a caller believes the epoch to be.
        let epoch = self.epoch.max(case.view.epoch().0 + 1);
        let mut events = vec![NewEvent::on_store(Actor::Broker, Event::EpochRaised { epoch })];
        for handoff in case.view.held().into_iter().filter_map(|id| case.view.handoff(id)) {
            if let Some(claim) = handoff.state.claim() {
                let event = Event::LeaseLost { fence: claim.fence, cause: LossCause::Restored };
                events.push(NewEvent::on(handoff, Actor::Broker, event));
            }
        }
        Ok(Decision::of(events, Outcome::default()))
    }
}

fn due_events(handoff: &Handoff, case: &Case<'_>) -> Vec<NewEvent> {
    let now = case.now;
    let expired = now >= handoff.expires_at;
    let events = match &handoff.state {
        State::AwaitingApproval | State::Pending { .. } if expired => expire(),
        State::Scheduled { .. } if expired => expire(),
        State::Pending { ack_by: Some(by), .. } if now >= *by => {
            vec![escalate::give_up(handoff, DeadReason::Unacknowledged, case)]
        }
        State::Scheduled { due } if now >= *due => match handoff.waits_for_tasks() {
            Some(_) => vec![Event::WaitOver],
            None => vec![Event::Readied],
        },
        State::Claimed(claim) | State::InProgress(claim) if now >= claim.ends_at() => {
            lose(handoff, claim, case, expired)
        }
        // The hard deadline stands, whoever waits for an answer.
        State::InputRequired(asking) if now >= asking.claim.hard_until => {
            lose(handoff, &asking.claim, case, expired)
        }
        State::InputRequired(asking) if now >= asking.due_at() => {
            return question::unanswered(handoff, &asking.claim, case);
        }
        State::Answered(_) if expired => expire(),
        State::Answered(kept) if now >= kept.until => vec![Event::KeepEnded],
        State::AwaitingApproval
        | State::Pending { .. }
        | State::Scheduled { .. }
        | State::Claimed(_)
        | State::InProgress(_)
        | State::InputRequired(_)
        | State::Answered(_)
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Aborted { .. }
        | State::Cancelled { .. }
        | State::DeadLettered { .. } => Vec::new(),
    };
    events.into_iter().map(|event| NewEvent::on(handoff, Actor::Broker, event)).collect()
}

fn expire() -> Vec<Event> {
    vec![Event::Expired, Event::dead_letter(DeadReason::Expired)]
}

fn lose(handoff: &Handoff, claim: &Claim, case: &Case<'_>, expired: bool) -> Vec<Event> {
    let hard = case.now >= claim.hard_until;
    let cause = if hard { LossCause::HardDeadline } else { LossCause::Silence };
    let mut events = vec![Event::LeaseLost { fence: claim.fence, cause }];
    if expired {
        events.extend(expire());
    } else if handoff.losses_in_row + 1 >= handoff.terms.losses {
        events.push(escalate::give_up(handoff, DeadReason::Poison, case));
    }
    events
}
