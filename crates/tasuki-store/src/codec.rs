// SPDX-License-Identifier: Apache-2.0
//! The stored form of a handoff's state. The core's own types promise nothing to a disk, so their
//! stored form is spelled out here, and a change of theirs cannot silently change old files.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tasuki_core::contract::{Contract, Counter};
use tasuki_core::envelope::Control;
use tasuki_core::event::TaintPolicy;
use tasuki_core::handoff::{Attempt, Claim, Ended, Lift, Review};
use tasuki_core::ids::{Fence, Malformed, OrderingKey, RequestId};
use tasuki_core::task::Parties;
use tasuki_core::{
    AgentId, ClaimId, DocumentId, Handoff, HandoffId, Hash, Position, State, Target, Task, TaskId,
    Terms, Timestamp,
};

#[derive(Serialize, Deserialize)]
struct StoredHandoff {
    id: HandoffId,
    task: TaskId,
    from: AgentId,
    to: Target,
    control: Control,
    envelope: Hash,
    envelope_at: Position,
    hop: u32,
    priority: u8,
    terms: Terms,
    #[serde(default, skip_serializing_if = "Contract::is_empty")]
    contract: Contract,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counters: Vec<Counter>,
    offered_ms: i64,
    expires_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ordering_key: Option<OrderingKey>,
    offered: Position,
    opened_task: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    needs_approval: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redrive_of: Option<HandoffId>,
    state: StoredState,
    fence: Fence,
    claims: u32,
    failures: u32,
    losses: u32,
    losses_in_row: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tried: Vec<Target>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ack_by_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reviewer: Option<(AgentId, i64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retracted_at: Option<Position>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivered_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    declined_by: Vec<AgentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<StoredAttempt>,
    /// The constraint, who lifted it, and where the reason is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lifts: Vec<(Hash, AgentId, Position)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fetched: Vec<DocumentId>,
    at: Position,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
enum StoredState {
    AwaitingApproval,
    Scheduled {
        due_ms: i64,
    },
    Pending {
        ready: Position,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<Position>,
    },
    Claimed(StoredClaim),
    InProgress(StoredClaim),
    Completed {
        claim_id: ClaimId,
        fence: Fence,
        result: Hash,
        result_at: Position,
        at_ms: i64,
    },
    Failed {
        aborted: bool,
        at_ms: i64,
    },
    Cancelled {
        at_ms: i64,
    },
    DeadLettered {
        reason: String,
        at_ms: i64,
        review: Option<StoredReview>,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredClaim {
    agent: AgentId,
    claim_id: ClaimId,
    fence: Fence,
    lease_ms: u64,
    lease_until_ms: i64,
    hard_until_ms: i64,
    request_id: Option<RequestId>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredReview {
    Redriven(HandoffId),
    Amended(HandoffId, Hash),
    Discarded(Position),
}

#[derive(Serialize, Deserialize)]
struct StoredAttempt {
    number: u32,
    agent: AgentId,
    claim_id: ClaimId,
    fence: Fence,
    claimed_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<StoredEnd>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    late: bool,
}

/// When it ended, how, and where the report is.
type StoredEnd = (i64, String, Option<(Position, Hash)>);

pub(crate) fn encode(handoff: &Handoff) -> String {
    let stored = StoredHandoff {
        id: handoff.id,
        task: handoff.task_id,
        from: handoff.from.clone(),
        to: handoff.to.clone(),
        control: handoff.control,
        envelope: handoff.envelope,
        envelope_at: handoff.envelope_at,
        hop: handoff.hop,
        priority: handoff.priority,
        terms: handoff.terms,
        contract: handoff.contract.clone(),
        counters: handoff.counters.clone(),
        offered_ms: handoff.offered_at.0,
        expires_ms: handoff.expires_at.0,
        not_before_ms: handoff.not_before.map(|time| time.0),
        ordering_key: handoff.ordering_key.clone(),
        offered: handoff.offered,
        opened_task: handoff.opened_task,
        needs_approval: handoff.needs_approval,
        redrive_of: handoff.redrive_of,
        state: encode_state(&handoff.state),
        fence: handoff.fence,
        claims: handoff.claims,
        failures: handoff.failures,
        losses: handoff.losses,
        losses_in_row: handoff.losses_in_row,
        tried: handoff.tried.clone(),
        ack_by_ms: handoff.ack_by.map(|time| time.0),
        reviewer: handoff.reviewer.as_ref().map(|(agent, until)| (agent.clone(), until.0)),
        retracted_at: handoff.retracted_at,
        delivered_ms: handoff.delivered_at.map(|time| time.0),
        declined_by: handoff.declined_by.clone(),
        attempts: handoff.attempts.iter().map(encode_attempt).collect(),
        lifts: handoff
            .lifts
            .iter()
            .map(|lift| (lift.constraint, lift.by.clone(), lift.reason_at))
            .collect(),
        fetched: handoff.fetched.clone(),
        at: handoff.at,
    };
    serde_json::to_string(&stored).expect("a stored handoff has string keys only")
}

pub(crate) fn decode(text: &str) -> Result<Handoff, Malformed> {
    let stored: StoredHandoff = serde_json::from_str(text)
        .map_err(|error| Malformed(format!("stored handoff cannot be read: {error}")))?;
    Ok(Handoff {
        id: stored.id,
        task_id: stored.task,
        from: stored.from,
        to: stored.to,
        control: stored.control,
        envelope: stored.envelope,
        envelope_at: stored.envelope_at,
        hop: stored.hop,
        priority: stored.priority,
        terms: stored.terms,
        contract: stored.contract,
        counters: stored.counters,
        offered_at: Timestamp(stored.offered_ms),
        expires_at: Timestamp(stored.expires_ms),
        not_before: stored.not_before_ms.map(Timestamp),
        ordering_key: stored.ordering_key,
        offered: stored.offered,
        opened_task: stored.opened_task,
        needs_approval: stored.needs_approval,
        redrive_of: stored.redrive_of,
        state: decode_state(stored.state)?,
        fence: stored.fence,
        claims: stored.claims,
        failures: stored.failures,
        losses: stored.losses,
        losses_in_row: stored.losses_in_row,
        tried: stored.tried,
        ack_by: stored.ack_by_ms.map(Timestamp),
        reviewer: stored.reviewer.map(|(agent, until)| (agent, Timestamp(until))),
        retracted_at: stored.retracted_at,
        delivered_at: stored.delivered_ms.map(Timestamp),
        declined_by: stored.declined_by,
        attempts: stored.attempts.into_iter().map(decode_attempt).collect::<Result<_, _>>()?,
        lifts: stored
            .lifts
            .into_iter()
            .map(|(constraint, by, reason_at)| Lift { constraint, by, reason_at })
            .collect(),
        fetched: stored.fetched,
        at: stored.at,
    })
}

/// What a task's row has no column for.
#[derive(Default, Serialize, Deserialize)]
struct StoredMore {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coordinator: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    taints: Vec<(HandoffId, TaintPolicy)>,
    /// Missing of a task from before it was noted, unless nothing was handed on in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    past: Option<Arc<Vec<Parties>>>,
    /// Only where it is not the one under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<HandoffId>,
}

/// The rest of a task, if there is any.
pub(crate) fn encode_more(task: &Task) -> Option<String> {
    let past = task.past.clone().filter(|_| task.envelope.is_some());
    let last = task.last.filter(|_| task.live.is_none());
    if task.coordinator.is_none() && task.taints.is_empty() && past.is_none() && last.is_none() {
        return None;
    }
    let (coordinator, taints) = (task.coordinator.clone(), task.taints.clone());
    let more = StoredMore { coordinator, taints, past, last };
    Some(serde_json::to_string(&more).expect("it has string keys only"))
}

/// Gives a task what stands beside its columns.
pub(crate) fn decode_more(task: &mut Task, text: Option<&str>) -> Result<(), Malformed> {
    let more: StoredMore = text.map_or(Ok(StoredMore::default()), |text| {
        serde_json::from_str(text)
            .map_err(|error| Malformed(format!("stored task cannot be read: {error}")))
    })?;
    task.coordinator = more.coordinator;
    task.taints = more.taints;
    task.past = more.past.or_else(|| task.envelope.is_none().then(Arc::default));
    task.last = task.live.or(more.last);
    Ok(())
}

fn encode_state(state: &State) -> StoredState {
    match state {
        State::AwaitingApproval => StoredState::AwaitingApproval,
        State::Scheduled { due } => StoredState::Scheduled { due_ms: due.0 },
        State::Pending { ready, turn } => {
            StoredState::Pending { ready: *ready, turn: (turn != ready).then_some(*turn) }
        }
        State::Claimed(claim) => StoredState::Claimed(encode_claim(claim)),
        State::InProgress(claim) => StoredState::InProgress(encode_claim(claim)),
        State::Completed { claim_id, fence, result, result_at, at } => StoredState::Completed {
            claim_id: *claim_id,
            fence: *fence,
            result: *result,
            result_at: *result_at,
            at_ms: at.0,
        },
        State::Failed { aborted, at } => StoredState::Failed { aborted: *aborted, at_ms: at.0 },
        State::Cancelled { at } => StoredState::Cancelled { at_ms: at.0 },
        State::DeadLettered { reason, at, review } => StoredState::DeadLettered {
            reason: reason.as_str().to_owned(),
            at_ms: at.0,
            review: review.as_ref().map(|review| match review {
                Review::Redriven { to, changed: None } => StoredReview::Redriven(*to),
                Review::Redriven { to, changed: Some(changed) } => {
                    StoredReview::Amended(*to, *changed)
                }
                Review::Discarded { reason_at } => StoredReview::Discarded(*reason_at),
            }),
        },
    }
}

fn decode_state(stored: StoredState) -> Result<State, Malformed> {
    Ok(match stored {
        StoredState::AwaitingApproval => State::AwaitingApproval,
        StoredState::Scheduled { due_ms } => State::Scheduled { due: Timestamp(due_ms) },
        StoredState::Pending { ready, turn } => {
            State::Pending { ready, turn: turn.unwrap_or(ready) }
        }
        StoredState::Claimed(claim) => State::Claimed(decode_claim(claim)),
        StoredState::InProgress(claim) => State::InProgress(decode_claim(claim)),
        StoredState::Completed { claim_id, fence, result, result_at, at_ms } => {
            State::Completed { claim_id, fence, result, result_at, at: Timestamp(at_ms) }
        }
        StoredState::Failed { aborted, at_ms } => State::Failed { aborted, at: Timestamp(at_ms) },
        StoredState::Cancelled { at_ms } => State::Cancelled { at: Timestamp(at_ms) },
        StoredState::DeadLettered { reason, at_ms, review } => State::DeadLettered {
            reason: reason.parse()?,
            at: Timestamp(at_ms),
            review: review.map(|review| match review {
                StoredReview::Redriven(to) => Review::Redriven { to, changed: None },
                StoredReview::Amended(to, changed) => {
                    Review::Redriven { to, changed: Some(changed) }
                }
                StoredReview::Discarded(reason_at) => Review::Discarded { reason_at },
            }),
        },
    })
}

fn encode_claim(claim: &Claim) -> StoredClaim {
    StoredClaim {
        agent: claim.agent.clone(),
        claim_id: claim.claim_id,
        fence: claim.fence,
        lease_ms: claim.lease_ms,
        lease_until_ms: claim.lease_until.0,
        hard_until_ms: claim.hard_until.0,
        request_id: claim.request_id.clone(),
    }
}

fn decode_claim(stored: StoredClaim) -> Claim {
    Claim {
        agent: stored.agent,
        claim_id: stored.claim_id,
        fence: stored.fence,
        lease_ms: stored.lease_ms,
        lease_until: Timestamp(stored.lease_until_ms),
        hard_until: Timestamp(stored.hard_until_ms),
        request_id: stored.request_id,
    }
}

fn encode_attempt(attempt: &Attempt) -> StoredAttempt {
    StoredAttempt {
        number: attempt.number,
        agent: attempt.agent.clone(),
        claim_id: attempt.claim_id,
        fence: attempt.fence,
        claimed_ms: attempt.claimed_at.0,
        started_ms: attempt.started_at.map(|time| time.0),
        ended: attempt
            .ended
            .as_ref()
            .map(|ended| (ended.at.0, ended.how.as_str().to_owned(), ended.report)),
        late: attempt.late,
    }
}

fn decode_attempt(stored: StoredAttempt) -> Result<Attempt, Malformed> {
    let ended = match stored.ended {
        None => None,
        Some((at_ms, how, report)) => {
            Some(Ended { at: Timestamp(at_ms), how: how.parse()?, report })
        }
    };
    Ok(Attempt {
        number: stored.number,
        agent: stored.agent,
        claim_id: stored.claim_id,
        fence: stored.fence,
        claimed_at: Timestamp(stored.claimed_ms),
        started_at: stored.started_ms.map(Timestamp),
        ended,
        late: stored.late,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handoff in each state, as files of the first version have it.
    const STORED: &str = include_str!("../tests/golden/handoffs.jsonl");

    #[test]
    fn what_the_first_version_wrote_is_read_and_written_the_same() {
        assert_eq!(STORED.lines().count(), 11);
        for text in STORED.lines() {
            assert_eq!(encode(&decode(text).unwrap()), text);
        }
    }

    #[test]
    fn a_row_that_was_not_written_by_us_is_refused() {
        let pending = STORED.lines().find(|line| line.contains("pending")).unwrap();
        for (ours, theirs) in [("pending", "happy"), ("\"ready\":5", "\"ready\":-5"), ("}]", "]")] {
            assert!(decode(&pending.replace(ours, theirs)).is_err(), "{theirs}");
        }
    }
}
