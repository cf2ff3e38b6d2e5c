// SPDX-License-Identifier: Apache-2.0
// Long because: it is the one place where rows are written and read.
//! The stored forms of rows. A stored name is a promise and a name in the code is none: where a type of
//! the core has the shape of its row, its stored names are spelled out on it, and where it has not, here.
//! Golden lines from files of the first release hold all of them: each is read, and written the same.
//! What may change, and how, is in ADR 035.

mod talk;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tasuki_core::contract::{Contract, Counter};
use tasuki_core::envelope::Control;
use tasuki_core::event::Closed;
use tasuki_core::event::TaintPolicy;
use tasuki_core::handoff::{Asking, Attempt, Claim, Ended, Facts, Kept, Lift, OnHold, Review};
use tasuki_core::ids::{Fence, Malformed, OrderingKey, RequestId};
use tasuki_core::join::Joining;
use tasuki_core::registry::Entry;
use tasuki_core::task::Parties;
use tasuki_core::tree::Tree;
use tasuki_core::{
    AgentId, ClaimId, DocumentId, Handoff, HandoffId, Hash, Position, State, Target, Task, TaskId,
    Terms, Timestamp,
};

use self::talk::StoredTalk;

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
    #[serde(default, skip_serializing_if = "is_empty")]
    contract: Arc<Contract>,
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
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    blocked: bool,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    talk: Option<StoredTalk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_hold: Option<StoredHold>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    join: Option<Arc<Joining>>,
    at: Position,
}

fn is_empty(contract: &Contract) -> bool {
    contract.is_empty()
}

#[derive(Serialize, Deserialize)]
struct StoredHold {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_ms: Option<i64>,
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
    InputRequired {
        claim: StoredClaim,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer_by_ms: Option<i64>,
    },
    Answered {
        agent: AgentId,
        until_ms: i64,
        hard_until_ms: i64,
        since: Position,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_id: bool,
    },
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
    Closed(Closed),
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<(Position, Hash)>,
}

/// When it ended, how, and where the report is.
type StoredEnd = (i64, String, Option<(Position, Hash)>);

pub(crate) fn encode(handoff: &Handoff) -> String {
    let beside = beside(&handoff.state);
    let stored = StoredHandoff {
        id: handoff.id,
        task: handoff.task_id,
        from: handoff.from.clone(),
        to: handoff.to.clone(),
        control: handoff.control,
        envelope: handoff.envelope,
        envelope_at: handoff.envelope_pos,
        hop: handoff.hop,
        priority: handoff.priority,
        terms: handoff.terms,
        contract: handoff.contract.clone(),
        counters: handoff.counters.to_vec(),
        offered_ms: handoff.offered_at.0,
        expires_ms: handoff.expires_at.0,
        not_before_ms: handoff.not_before.map(|time| time.0),
        ordering_key: handoff.ordering_key.clone(),
        offered: handoff.offered_pos,
        opened_task: handoff.opened_task,
        needs_approval: handoff.needs_approval,
        blocked: handoff.blocked,
        redrive_of: handoff.redrive_of,
        state: encode_state(&handoff.state),
        fence: handoff.fence,
        claims: handoff.claims,
        failures: handoff.failures,
        losses: handoff.losses,
        losses_in_row: handoff.losses_in_row,
        tried: handoff.tried.to_vec(),
        ack_by_ms: beside.ack_by.map(|time| time.0),
        reviewer: beside.reviewer.map(|(agent, until)| (agent, until.0)),
        retracted_at: beside.retracted_pos,
        delivered_ms: handoff.delivered_at.map(|time| time.0),
        declined_by: handoff.declined_by.to_vec(),
        attempts: handoff.attempts.iter().map(encode_attempt).collect(),
        lifts: handoff
            .lifts
            .iter()
            .map(|lift| (lift.constraint, lift.by.clone(), lift.reason_pos))
            .collect(),
        fetched: handoff.fetched.to_vec(),
        talk: talk::encode(&handoff.talk),
        on_hold: handoff.on_hold.map(|hold| StoredHold { due_ms: hold.due.map(|due| due.0) }),
        join: handoff.join.clone(),
        at: handoff.last_pos,
    };
    serde_json::to_string(&stored).expect("a stored handoff has string keys only")
}

pub(crate) fn decode(text: &str) -> Result<Handoff, Malformed> {
    let stored: StoredHandoff = serde_json::from_str(text)
        .map_err(|error| Malformed(format!("stored handoff cannot be read: {error}")))?;
    let beside = Beside {
        ack_by: stored.ack_by_ms.map(Timestamp),
        reviewer: stored.reviewer.map(|(agent, until)| (agent, Timestamp(until))),
        retracted_pos: stored.retracted_at,
    };
    let facts = Facts {
        id: stored.id,
        task_id: stored.task,
        from: stored.from,
        to: stored.to,
        control: stored.control,
        envelope: stored.envelope,
        envelope_pos: stored.envelope_at,
        hop: stored.hop,
        priority: stored.priority,
        terms: stored.terms,
        contract: stored.contract.shared(),
        offered_at: Timestamp(stored.offered_ms),
        expires_at: Timestamp(stored.expires_ms),
        not_before: stored.not_before_ms.map(Timestamp),
        ordering_key: stored.ordering_key,
        offered_pos: stored.offered,
        opened_task: stored.opened_task,
        redrive_of: stored.redrive_of,
    };
    Ok(Handoff {
        facts: Arc::new(facts),
        state: decode_state(stored.state, beside)?,
        needs_approval: stored.needs_approval,
        blocked: stored.blocked,
        fence: stored.fence,
        claims: stored.claims,
        failures: stored.failures,
        losses: stored.losses,
        losses_in_row: stored.losses_in_row,
        delivered_at: stored.delivered_ms.map(Timestamp),
        last_pos: stored.at,
        counters: stored.counters.into(),
        tried: stored.tried.into(),
        declined_by: stored.declined_by.into(),
        attempts: stored.attempts.into_iter().map(decode_attempt).collect::<Result<_, _>>()?,
        lifts: stored
            .lifts
            .into_iter()
            .map(|(constraint, by, reason_pos)| Lift { constraint, by, reason_pos })
            .collect(),
        fetched: stored.fetched.into(),
        talk: talk::decode(stored.talk),
        on_hold: stored.on_hold.map(|hold| OnHold { due: hold.due_ms.map(Timestamp) }),
        join: stored.join,
    })
}

/// What belongs to a state and is stored beside it, where the first versions had it.
#[derive(Default)]
struct Beside {
    ack_by: Option<Timestamp>,
    reviewer: Option<(AgentId, Timestamp)>,
    retracted_pos: Option<Position>,
}

fn beside(state: &State) -> Beside {
    match state {
        State::Pending { ack_by, .. } => Beside { ack_by: *ack_by, ..Beside::default() },
        State::Completed { retracted_pos, .. } => {
            Beside { retracted_pos: *retracted_pos, ..Beside::default() }
        }
        State::DeadLettered { reviewer, .. } => {
            Beside { reviewer: reviewer.clone(), ..Beside::default() }
        }
        State::AwaitingApproval
        | State::Scheduled { .. }
        | State::Claimed(_)
        | State::InProgress(_)
        | State::InputRequired(_)
        | State::Answered(_)
        | State::Failed { .. }
        | State::Aborted { .. }
        | State::Cancelled { .. } => Beside::default(),
    }
}

/// A row's data, of a type whose stored names are spelled out on it.
pub(crate) fn text<T: Serialize>(row: &T) -> String {
    serde_json::to_string(row).expect("stored forms have string keys only")
}

pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Malformed> {
    serde_json::from_str(text).map_err(|error| Malformed(format!("a row cannot be read: {error}")))
}

/// The kind and the data of something that is known.
pub(crate) fn encode_entry(entry: &Entry) -> (&'static str, String) {
    match entry {
        Entry::Agent(agent) => ("agent", text(&**agent)),
        Entry::Token(token) => ("token", text(&**token)),
        Entry::Tenant(tenant) => ("tenant", text(&**tenant)),
        Entry::Breaker(breaker) => ("breaker", text(&**breaker)),
        Entry::Channel(channel) => ("channel", text(&**channel)),
        Entry::Reservation(reservation) => ("reservation", text(&**reservation)),
        Entry::Pause(pause) => ("pause", text(&**pause)),
        Entry::Pipeline(pipeline) => ("pipeline", text(&**pipeline)),
        Entry::Alert(alert) => ("alert", text(&**alert)),
        Entry::Silence(silence) => ("silence", text(&**silence)),
        Entry::Push(push) => ("push", text(&**push)),
    }
}

pub(crate) fn decode_entry(kind: &str, data: &str) -> Result<Entry, Malformed> {
    Ok(match kind {
        "agent" => Entry::Agent(read(data)?),
        "token" => Entry::Token(read(data)?),
        "tenant" => Entry::Tenant(read(data)?),
        "breaker" => Entry::Breaker(read(data)?),
        "channel" => Entry::Channel(read(data)?),
        "reservation" => Entry::Reservation(read(data)?),
        "pause" => Entry::Pause(read(data)?),
        "pipeline" => Entry::Pipeline(read(data)?),
        "alert" => Entry::Alert(read(data)?),
        "silence" => Entry::Silence(read(data)?),
        "push" => Entry::Push(read(data)?),
        other => return Err(Malformed(format!("{other:?} is no kind of row of the registry"))),
    })
}

/// What a task's row has no column for.
#[derive(Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result_pos: Option<Position>,
    #[serde(default, skip_serializing_if = "is_default")]
    tree: Tree,
}

fn is_default(tree: &Tree) -> bool {
    *tree == Tree::default()
}

/// The rest of a task, if there is any.
pub(crate) fn encode_more(task: &Task) -> Option<String> {
    let past = task.past.clone().filter(|_| task.envelope.is_some());
    let last = task.last.filter(|_| task.live.is_none());
    let tree = task.tree.clone();
    let (coordinator, taints) = (task.coordinator.clone(), task.taints.clone());
    let more = StoredMore { coordinator, taints, past, last, result_pos: task.result_pos, tree };
    if more == StoredMore::default() {
        return None;
    }
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
    task.result_pos = more.result_pos;
    task.tree = more.tree;
    task.past = more.past.or_else(|| task.envelope.is_none().then(Arc::default));
    task.last = task.live.or(more.last);
    Ok(())
}

fn encode_state(state: &State) -> StoredState {
    match state {
        State::AwaitingApproval => StoredState::AwaitingApproval,
        State::Scheduled { due } => StoredState::Scheduled { due_ms: due.0 },
        State::Pending { ready, turn, .. } => {
            StoredState::Pending { ready: *ready, turn: (turn != ready).then_some(*turn) }
        }
        State::Claimed(claim) => StoredState::Claimed(encode_claim(claim)),
        State::InProgress(claim) => StoredState::InProgress(encode_claim(claim)),
        State::InputRequired(asking) => StoredState::InputRequired {
            claim: encode_claim(&asking.claim),
            answer_by_ms: asking.answer_by.map(|time| time.0),
        },
        State::Answered(kept) => StoredState::Answered {
            agent: kept.agent.clone(),
            until_ms: kept.until.0,
            hard_until_ms: kept.hard_until.0,
            since: kept.since_pos,
            by_id: kept.by_id,
        },
        State::Completed { claim_id, fence, result, result_pos, at, .. } => {
            StoredState::Completed {
                claim_id: *claim_id,
                fence: *fence,
                result: *result,
                result_at: *result_pos,
                at_ms: at.0,
            }
        }
        State::Failed { at } => StoredState::Failed { aborted: false, at_ms: at.0 },
        State::Aborted { at } => StoredState::Failed { aborted: true, at_ms: at.0 },
        State::Cancelled { at } => StoredState::Cancelled { at_ms: at.0 },
        State::DeadLettered { reason, at, review, .. } => StoredState::DeadLettered {
            reason: reason.as_str().to_owned(),
            at_ms: at.0,
            review: review.as_ref().map(|review| match review {
                Review::Redriven { to, changed: None } => StoredReview::Redriven(*to),
                Review::Redriven { to, changed: Some(changed) } => {
                    StoredReview::Amended(*to, *changed)
                }
                Review::Discarded { reason_pos } => StoredReview::Discarded(*reason_pos),
                Review::Closed { because } => StoredReview::Closed(*because),
            }),
        },
    }
}

fn decode_state(stored: StoredState, beside: Beside) -> Result<State, Malformed> {
    Ok(match stored {
        StoredState::AwaitingApproval => State::AwaitingApproval,
        StoredState::Scheduled { due_ms } => State::Scheduled { due: Timestamp(due_ms) },
        StoredState::Pending { ready, turn } => {
            State::Pending { ready, turn: turn.unwrap_or(ready), ack_by: beside.ack_by }
        }
        StoredState::Claimed(claim) => State::Claimed(decode_claim(claim)),
        StoredState::InProgress(claim) => State::InProgress(decode_claim(claim)),
        StoredState::InputRequired { claim, answer_by_ms } => State::InputRequired(Asking {
            claim: decode_claim(claim),
            answer_by: answer_by_ms.map(Timestamp),
        }),
        StoredState::Answered { agent, until_ms, hard_until_ms, since, by_id } => {
            State::Answered(Kept {
                agent,
                until: Timestamp(until_ms),
                hard_until: Timestamp(hard_until_ms),
                since_pos: since,
                by_id,
            })
        }
        StoredState::Completed { claim_id, fence, result, result_at, at_ms } => {
            let (result_pos, retracted_pos) = (result_at, beside.retracted_pos);
            State::Completed {
                claim_id,
                fence,
                result,
                result_pos,
                at: Timestamp(at_ms),
                retracted_pos,
            }
        }
        StoredState::Failed { aborted: false, at_ms } => State::Failed { at: Timestamp(at_ms) },
        StoredState::Failed { aborted: true, at_ms } => State::Aborted { at: Timestamp(at_ms) },
        StoredState::Cancelled { at_ms } => State::Cancelled { at: Timestamp(at_ms) },
        StoredState::DeadLettered { reason, at_ms, review } => State::DeadLettered {
            reason: reason.parse()?,
            at: Timestamp(at_ms),
            reviewer: beside.reviewer,
            review: review.map(|review| match review {
                StoredReview::Redriven(to) => Review::Redriven { to, changed: None },
                StoredReview::Amended(to, changed) => {
                    Review::Redriven { to, changed: Some(changed) }
                }
                StoredReview::Discarded(reason_pos) => Review::Discarded { reason_pos },
                StoredReview::Closed(because) => Review::Closed { because },
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
        told: attempt.told,
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
        told: stored.told,
    })
}

#[cfg(test)]
mod tests {
    use tasuki_core::document::{Document, Revision};

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
    fn what_the_first_release_knew_is_read_and_written_the_same() {
        for line in include_str!("../tests/golden/registry.txt").lines() {
            let (kind, data) = line.split_once(' ').unwrap();
            assert_eq!(encode_entry(&decode_entry(kind, data).unwrap()), (kind, data.to_owned()));
        }
        assert!(decode_entry("nobody", "{}").is_err(), "a kind that is not known is no tenant");
    }

    #[test]
    fn documents_of_the_first_release_are_read_and_written_the_same() {
        for data in include_str!("../tests/golden/documents.jsonl").lines() {
            assert_eq!(text(&read::<Document>(data).unwrap()), data);
        }
        for data in include_str!("../tests/golden/revisions.jsonl").lines() {
            assert_eq!(text(&read::<Revision>(data).unwrap()), data);
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
