// SPDX-License-Identifier: Apache-2.0
//! What work waits for, and why: found by looking, decided by nobody here.

use std::sync::Arc;

use tasuki_core::breaker::BreakerState;
use tasuki_core::handoff::StateName;
use tasuki_core::{Handoff, HandoffId, Position, State, Target};
use tasuki_protocol::WaitsFor;
use tasuki_store::{HandoffFilter, Needs, PAGE_MAX};

use crate::desk::Desk;
use crate::error::Error;
use crate::folds::follower::UNDER_WAY;
use crate::requests::Offered;

/// The states in which work is not begun.
const WAITING: [StateName; 3] =
    [StateName::Pending, StateName::Scheduled, StateName::AwaitingApproval];

/// How much of a queue is looked at for the work that is first in a line.
const LINE_PAGES_MAX: usize = 10;

/// Work, and what each waits for.
pub type Waiting = Vec<(Arc<Handoff>, Vec<WaitsFor>)>;

impl Desk {
    /// What is told of a handoff that was just made.
    pub(crate) fn offered(&self, handoff: Arc<Handoff>) -> Offered {
        self.engine.offered(handoff, false)
    }

    /// What a handoff waits for. What is at its end waits for nothing.
    pub async fn waits_for(&self, handoff: &Handoff) -> Result<Vec<WaitsFor>, Error> {
        Ok(match &handoff.state {
            State::AwaitingApproval => {
                let sight = self.engine.look(Needs::task(handoff.task_id)).await?;
                let taints = sight.task(handoff.task_id).map(|task| task.taints.clone());
                let taints = taints.unwrap_or_default().into_iter().map(|(source, _)| source);
                vec![WaitsFor::Approval {
                    approvers: handoff.contract.approvers.clone(),
                    taints: taints.collect(),
                }]
            }
            State::Scheduled { .. } | State::Answered(_) if handoff.on_hold.is_some() => {
                let sight = self.engine.look(Needs::task(handoff.task_id)).await?;
                let letter = sight.task(handoff.task_id).and_then(|task| task.tree.on_hold);
                letter.map(|handoff_id| WaitsFor::Letter { handoff_id }).into_iter().collect()
            }
            State::Scheduled { due } => match handoff.waits_for_tasks() {
                None => vec![WaitsFor::Time { until: *due }],
                Some(after) => {
                    let needs = Needs::default().and_tasks(after.tasks.iter().copied());
                    let sight = self.engine.look(needs).await?;
                    let state = |id| sight.task(id).map(|task| task.state);
                    let open = after
                        .tasks
                        .iter()
                        .filter(|id| state(**id) != Some(tasuki_core::TaskState::Completed));
                    open.map(|id| WaitsFor::Task {
                        task_id: *id,
                        state: state(*id).map_or("unknown".into(), |state| state.to_string()),
                        need: after.need,
                    })
                    .collect()
                }
            },
            State::Pending { .. } => match self.first_in_line(handoff).await? {
                Some(first) => vec![WaitsFor::Turn { first }],
                None => vec![self.claim_or_breaker(handoff)],
            },
            State::Claimed(claim) | State::InProgress(claim) => {
                vec![WaitsFor::Holder { agent: claim.agent.clone() }]
            }
            State::InputRequired(_) => {
                vec![WaitsFor::Decision { reason: "its question is not answered".into() }]
            }
            State::Answered(kept) => vec![WaitsFor::Holder { agent: kept.agent.clone() }],
            State::DeadLettered { reason, review: None, .. } => {
                vec![WaitsFor::Decision { reason: reason.to_string() }]
            }
            State::DeadLettered { .. }
            | State::Completed { .. }
            | State::Failed { .. }
            | State::Aborted { .. }
            | State::Cancelled { .. } => Vec::new(),
        })
    }

    /// The work that has to end first because it was offered before with the same ordering key.
    async fn first_in_line(&self, handoff: &Handoff) -> Result<Option<HandoffId>, Error> {
        let Some(key) = &handoff.ordering_key else { return Ok(None) };
        let mut first: Option<(Position, HandoffId)> = None;
        for state in UNDER_WAY {
            let to = Some(handoff.to.clone());
            let mut filter =
                HandoffFilter { state: Some(state), to, max: PAGE_MAX, ..Default::default() };
            for _ in 0..LINE_PAGES_MAX {
                let page = self.engine.list_handoffs(filter.clone()).await?;
                let line = page.iter().filter(|other| other.ordering_key.as_ref() == Some(key));
                let before = line.filter(|other| other.offered_pos < handoff.offered_pos);
                let before = before.map(|other| (other.offered_pos, other.id));
                first = first.into_iter().chain(before).min();
                match page.last() {
                    Some(last) if page.len() == PAGE_MAX => filter.before = Some(last.id),
                    Some(_) | None => break,
                }
            }
        }
        Ok(first.map(|(_, id)| id))
    }

    fn claim_or_breaker(&self, handoff: &Handoff) -> WaitsFor {
        let target = handoff.to.clone();
        let registry = self.engine.registry();
        if let Some(pause) = registry.pause_of(&target, self.now()) {
            return WaitsFor::Paused { target, until: pause.until };
        }
        let breaker =
            registry.guards.breakers.get(&target).map(|breaker| breaker.state(self.now()));
        match breaker {
            Some(state) if state != BreakerState::Closed && state.claims_max() == 0 => {
                WaitsFor::Breaker {
                    target,
                    breaker: state.name().to_string(),
                    until: state.sends_from(),
                }
            }
            Some(_) | None => WaitsFor::Claim { target, listening: self.listening(handoff) },
        }
    }

    /// What can be started now, and what holds back the rest.
    pub async fn ready(
        &self,
        to: Option<Target>,
        from: Option<tasuki_core::AgentId>,
        max: usize,
    ) -> Result<(Waiting, Waiting), Error> {
        let (mut ready, mut held) = (Vec::new(), Vec::new());
        for state in WAITING {
            let filter = HandoffFilter {
                state: Some(state),
                to: to.clone(),
                from: from.clone(),
                max,
                ..HandoffFilter::default()
            };
            for handoff in self.list_handoffs(filter).await?.items {
                let waits_for = self.waits_for(&handoff).await?;
                let claimable = matches!(waits_for.as_slice(), [WaitsFor::Claim { .. }]);
                let into = if claimable { &mut ready } else { &mut held };
                into.push((handoff, waits_for));
            }
        }
        Ok((ready, held))
    }
}
