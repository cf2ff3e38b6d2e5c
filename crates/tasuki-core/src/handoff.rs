// SPDX-License-Identifier: Apache-2.0
// Long because: it is one machine.
//! One hop of a task to one receiver: its states, and how events move it between them. What is
//! allowed in which state is in [`crate::decide`].

use crate::contract::{Contract, Counter};
use crate::envelope::{Control, Target};
use crate::event::{
    self, Actor, DeadReason, Event, FailureClass, LossCause, Offered, Sealed, TaintPolicy, words,
};
use crate::ids::{
    AgentId, ClaimId, DocumentId, Fence, HandoffId, Hash, OrderingKey, Position, RequestId, TaskId,
    Timestamp,
};
use crate::terms::Terms;
use crate::turn::Rank;

/// How many attempts a handoff remembers; older ones are in the audit log only.
pub const ATTEMPTS_KEPT_MAX: usize = 32;
/// How many fetches of what was trimmed a handoff counts.
pub const FETCHED_MAX: usize = 1000;

#[derive(Debug, Clone, PartialEq)]
pub struct Handoff {
    pub id: HandoffId,
    pub task_id: TaskId,
    pub from: AgentId,
    pub to: Target,
    pub control: Control,
    pub envelope: Hash,
    /// Where the envelope is kept.
    pub envelope_at: Position,
    pub hop: u32,
    pub priority: u8,
    pub terms: Terms,
    pub contract: Contract,
    /// Terms on which agents would take it.
    pub counters: Vec<Counter>,
    pub offered_at: Timestamp,
    pub expires_at: Timestamp,
    pub not_before: Option<Timestamp>,
    pub ordering_key: Option<OrderingKey>,
    /// The event that offered it: handoffs with one ordering key go in this order.
    pub offered: Position,
    /// Whether this offer opened its task.
    pub opened_task: bool,
    /// Nobody has approved it yet, and somebody must before it is claimed.
    pub needs_approval: bool,
    pub redrive_of: Option<HandoffId>,
    pub state: State,
    /// The highest fence given out so far.
    pub fence: Fence,
    pub claims: u32,
    /// Attempts that ended in a declared failure.
    pub failures: u32,
    /// Leases lost in all, and lost in a row without progress.
    pub losses: u32,
    pub losses_in_row: u32,
    /// Targets that could not or would not do it, the first one first.
    pub tried: Vec<Target>,
    /// By when it must be claimed.
    pub ack_by: Option<Timestamp>,
    /// Who decides on this dead letter, and until when.
    pub reviewer: Option<(AgentId, Timestamp)>,
    /// Why its result no longer holds.
    pub retracted_at: Option<Position>,
    /// When the receiver first had the envelope, claimed or not.
    pub delivered_at: Option<Timestamp>,
    /// Who does not get it: whoever declined, or could not do it when it was the one asked.
    pub declined_by: Vec<AgentId>,
    pub attempts: Vec<Attempt>,
    /// Constraints of the envelope that do not bind the next one any more.
    pub lifts: Vec<Lift>,
    /// Memories that the receiver fetched because the envelope had passed less of them, each once.
    pub fetched: Vec<DocumentId>,
    /// The last event that is in here.
    pub at: Position,
}

#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Waits for a permitted person or agent.
    AwaitingApproval,
    /// Waits for its start time or for a retry.
    Scheduled {
        due: Timestamp,
    },
    /// Waits to be claimed, in the order in which it became ready.
    Pending {
        ready: Position,
        turn: Position,
    },
    Claimed(Claim),
    InProgress(Claim),
    Completed {
        claim_id: ClaimId,
        fence: Fence,
        result: Hash,
        result_at: Position,
        at: Timestamp,
    },
    /// The step between a failed attempt and what follows; terminal only if it was aborted.
    Failed {
        aborted: bool,
        at: Timestamp,
    },
    Cancelled {
        at: Timestamp,
    },
    DeadLettered {
        reason: DeadReason,
        at: Timestamp,
        review: Option<Review>,
    },
}

/// The receiver's acceptance.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub agent: AgentId,
    pub claim_id: ClaimId,
    pub fence: Fence,
    pub lease_ms: u64,
    pub lease_until: Timestamp,
    pub hard_until: Timestamp,
    pub request_id: Option<RequestId>,
}

/// A constraint that somebody lifted between two hops.
#[derive(Debug, Clone, PartialEq)]
pub struct Lift {
    pub constraint: Hash,
    pub by: AgentId,
    /// Where the reason is kept.
    pub reason_at: Position,
}

/// What a reviewer decided about a dead letter.
#[derive(Debug, Clone, PartialEq)]
pub enum Review {
    /// `changed` is the address of what the reviewer changed.
    Redriven {
        to: HandoffId,
        changed: Option<Hash>,
    },
    Discarded {
        reason_at: Position,
    },
}

/// One acceptance and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub number: u32,
    pub agent: AgentId,
    pub claim_id: ClaimId,
    pub fence: Fence,
    pub claimed_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended: Option<Ended>,
    /// Whether a report came after the end: refused, but kept in the audit log.
    pub late: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub at: Timestamp,
    pub how: AttemptEnd,
    /// Where the failure or the reason is kept, and its hash.
    pub report: Option<(Position, Hash)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    Completed,
    FailedRetryable,
    FailedPermanent,
    FailedUnknown,
    Declined,
    Released,
    LostSilence,
    LostHardDeadline,
    LostRestored,
    LostRevoked,
    Cancelled,
    Aborted,
}

words!(AttemptEnd {
    Completed = "completed",
    FailedRetryable = "failed_retryable",
    FailedPermanent = "failed_permanent",
    FailedUnknown = "failed_unknown",
    Declined = "declined",
    Released = "released",
    LostSilence = "lost_silence",
    LostHardDeadline = "lost_hard_deadline",
    LostRestored = "lost_restored",
    LostRevoked = "lost_revoked",
    Cancelled = "cancelled",
    Aborted = "aborted",
});

impl From<FailureClass> for AttemptEnd {
    fn from(class: FailureClass) -> Self {
        match class {
            FailureClass::Retryable => Self::FailedRetryable,
            FailureClass::Permanent => Self::FailedPermanent,
            FailureClass::Unknown => Self::FailedUnknown,
        }
    }
}
impl From<LossCause> for AttemptEnd {
    fn from(cause: LossCause) -> Self {
        match cause {
            LossCause::Silence => Self::LostSilence,
            LossCause::HardDeadline => Self::LostHardDeadline,
            LossCause::Restored => Self::LostRestored,
            LossCause::Revoked => Self::LostRevoked,
        }
    }
}

/// A state without its data, as it is named everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateName {
    AwaitingApproval,
    Scheduled,
    Pending,
    Claimed,
    InProgress,
    Completed,
    Failed,
    Cancelled,
    DeadLettered,
}

words!(StateName {
    AwaitingApproval = "awaiting_approval",
    Scheduled = "scheduled",
    Pending = "pending",
    Claimed = "claimed",
    InProgress = "in_progress",
    Completed = "completed",
    Failed = "failed",
    Cancelled = "cancelled",
    DeadLettered = "dead_lettered",
});

impl State {
    #[must_use]
    pub fn name(&self) -> StateName {
        match self {
            Self::AwaitingApproval => StateName::AwaitingApproval,
            Self::Scheduled { .. } => StateName::Scheduled,
            Self::Pending { .. } => StateName::Pending,
            Self::Claimed(_) => StateName::Claimed,
            Self::InProgress(_) => StateName::InProgress,
            Self::Completed { .. } => StateName::Completed,
            Self::Failed { .. } => StateName::Failed,
            Self::Cancelled { .. } => StateName::Cancelled,
            Self::DeadLettered { .. } => StateName::DeadLettered,
        }
    }

    /// Whether nothing more happens to the handoff itself.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::AwaitingApproval
            | Self::Scheduled { .. }
            | Self::Pending { .. }
            | Self::Claimed(_)
            | Self::InProgress(_) => false,
            Self::Failed { aborted, .. } => *aborted,
            Self::Completed { .. } | Self::Cancelled { .. } | Self::DeadLettered { .. } => true,
        }
    }

    /// The claim, while one is held.
    #[must_use]
    pub fn claim(&self) -> Option<&Claim> {
        match self {
            Self::Claimed(claim) | Self::InProgress(claim) => Some(claim),
            Self::AwaitingApproval
            | Self::Scheduled { .. }
            | Self::Pending { .. }
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Cancelled { .. }
            | Self::DeadLettered { .. } => None,
        }
    }

    fn claim_mut(&mut self) -> Option<&mut Claim> {
        match self {
            Self::Claimed(claim) | Self::InProgress(claim) => Some(claim),
            _ => None,
        }
    }
}

impl Claim {
    /// When the claim is lost if nothing is heard.
    #[must_use]
    pub fn ends_at(&self) -> Timestamp {
        self.lease_until.min(self.hard_until)
    }
}

impl Handoff {
    /// A new handoff, from the event that offered it.
    #[must_use]
    pub fn offered(id: HandoffId, offered: &Offered, control: Control, sealed: &Sealed) -> Self {
        let mut handoff = Self::new(id, offered, control, sealed);
        handoff.await_claim(sealed);
        handoff
    }

    fn new(id: HandoffId, offered: &Offered, control: Control, sealed: &Sealed) -> Self {
        let record = &sealed.record;
        let start = match offered.contract.after {
            Some(_) => Some(offered.not_before.unwrap_or(offered.expires_at)),
            None => offered.not_before,
        };
        let state = if offered.needs_approval {
            State::AwaitingApproval
        } else {
            start_state(start, sealed)
        };
        Self {
            id,
            task_id: record.task_id,
            from: offered.from.clone(),
            to: offered.to.clone(),
            control,
            envelope: offered.envelope,
            envelope_at: offered.redrive_of.map_or(sealed.position, |redrive| redrive.envelope_at),
            hop: offered.hop,
            priority: offered.priority,
            terms: offered.terms,
            contract: offered.contract.clone(),
            counters: Vec::new(),
            offered_at: record.at,
            expires_at: offered.expires_at,
            not_before: start,
            ordering_key: offered.ordering_key.clone(),
            offered: sealed.position,
            opened_task: offered.opens.is_some()
                || offered.redrive_of.is_some_and(|redrive| redrive.opened_task),
            needs_approval: offered.needs_approval,
            redrive_of: offered.redrive_of.map(|redrive| redrive.handoff_id),
            state,
            fence: Fence(0),
            claims: 0,
            failures: 0,
            losses: 0,
            losses_in_row: 0,
            tried: offered.contract.diverted_from.clone().into_iter().collect(),
            ack_by: None,
            reviewer: None,
            retracted_at: None,
            delivered_at: None,
            declined_by: Vec::new(),
            attempts: Vec::new(),
            lifts: Vec::new(),
            fetched: Vec::new(),
            at: sealed.position,
        }
    }

    /// Moves to where an event leads. Events are facts, so this cannot fail.
    pub fn apply(&mut self, sealed: &Sealed) {
        self.change(sealed);
        self.await_claim(sealed);
    }

    /// From when it waits, it must be claimed in time.
    fn await_claim(&mut self, sealed: &Sealed) {
        match self.state {
            State::Pending { ready, .. } if ready == sealed.position => {
                self.ack_by = self.terms.ack_ms.map(|ms| sealed.record.at.plus_ms(ms));
            }
            State::Pending { .. } => {}
            _ => self.ack_by = None,
        }
    }

    fn change(&mut self, sealed: &Sealed) {
        let (at, position) = (sealed.record.at, sealed.position);
        self.at = position;
        match &sealed.record.event {
            Event::Countered(countered) => {
                self.counters.retain(|counter| counter.agent != countered.agent);
                self.counters.push(Counter {
                    agent: countered.agent.clone(),
                    terms: countered.terms,
                    budget_tokens: countered.budget_tokens,
                    at: position,
                });
            }
            Event::CounterAccepted { agent, terms, budget_tokens } => {
                self.counters.clear();
                self.to = Target::Agent(agent.clone());
                self.terms = *terms;
                self.contract.budget_tokens = budget_tokens.or(self.contract.budget_tokens);
                // It stands in another queue from here, at its end like everything that comes.
                if let State::Pending { .. } = &self.state {
                    self.state = pending(sealed);
                }
            }
            Event::CounterRefused { agent } => {
                self.counters.retain(|counter| counter.agent != *agent);
            }
            Event::Approved => {
                self.needs_approval = false;
                self.state = start_state(self.not_before, sealed);
            }
            Event::Delivered { .. } => {
                self.delivered_at.get_or_insert(at);
            }
            Event::ConstraintLifted { constraint, .. } => {
                if let Actor::Agent(by) = &sealed.record.actor {
                    let (constraint, by) = (*constraint, by.clone());
                    self.lifts.push(Lift { constraint, by, reason_at: position });
                }
            }
            Event::TrimFetched { memory, .. } => self.fetched.push(memory.clone()),
            Event::Readied => self.state = pending(sealed),
            Event::Claimed(claimed) => self.claimed(claimed, at),
            Event::Started => {
                if let State::Claimed(claim) = &self.state {
                    self.state = State::InProgress(claim.clone());
                }
                if let Some(attempt) = self.attempts.last_mut() {
                    attempt.started_at.get_or_insert(at);
                }
            }
            Event::Progressed { .. } => {
                self.losses_in_row = 0;
                self.renew(at);
            }
            Event::Completed { fence, result, .. } => {
                let claim_id = self.state.claim().map_or(ClaimId(0), |claim| claim.claim_id);
                self.end_attempt(at, AttemptEnd::Completed, Some((position, *result)));
                self.state = State::Completed {
                    claim_id,
                    fence: *fence,
                    result: *result,
                    result_at: position,
                    at,
                };
            }
            Event::AttemptFailed { class, failure, .. } => {
                self.failures += 1;
                self.losses_in_row = 0;
                self.end_attempt(at, (*class).into(), Some((position, *failure)));
                self.state = State::Failed { aborted: false, at };
            }
            Event::Declined { agent, reason } => {
                let report = reason.map(|hash| (position, hash));
                self.end_attempt(at, AttemptEnd::Declined, report);
                self.declined_by.push(agent.clone());
                // Who declines without a claim changes nothing for the others: the handoff keeps
                // its place, and still waits for its start or its approval.
                if self.state.claim().is_some() {
                    self.state = pending(sealed);
                }
            }
            Event::Released { .. } => {
                self.end_attempt(at, AttemptEnd::Released, None);
                self.state = pending(sealed);
            }
            Event::LeaseLost { cause, .. } => {
                // A restore is the store's doing and a revocation the administrator's: neither
                // counts against the handoff.
                if matches!(cause, LossCause::Silence | LossCause::HardDeadline) {
                    self.losses += 1;
                    self.losses_in_row += 1;
                }
                self.end_attempt(at, (*cause).into(), None);
                self.state = pending(sealed);
            }
            Event::RetryScheduled { due } => self.state = State::Scheduled { due: *due },
            Event::DeadLettered { reason, .. } => {
                self.state = State::DeadLettered { reason: *reason, at, review: None };
            }
            Event::Escalated { to, .. } => {
                if let Target::Agent(agent) = &self.to
                    && !self.declined_by.contains(agent)
                {
                    self.declined_by.push(agent.clone());
                }
                self.tried.push(std::mem::replace(&mut self.to, to.clone()));
                self.failures = 0;
                self.losses_in_row = 0;
                self.counters.clear();
                self.state = pending(sealed);
            }
            Event::Retracted { .. } => self.retracted_at = Some(position),
            // What must not go on waits to be approved; who has it already may finish.
            Event::Tainted { policy: TaintPolicy::Block, .. } => {
                if let State::Pending { .. } | State::Scheduled { .. } = self.state {
                    self.needs_approval = true;
                    self.state = State::AwaitingApproval;
                }
            }
            Event::ReviewTaken { by, until } => self.reviewer = Some((by.clone(), *until)),
            Event::ReviewReleased => self.reviewer = None,
            Event::Cancelled { .. } => {
                self.end_attempt(at, AttemptEnd::Cancelled, None);
                self.state = State::Cancelled { at };
            }
            Event::Aborted { .. } => {
                self.end_attempt(at, AttemptEnd::Aborted, None);
                self.state = State::Failed { aborted: true, at };
            }
            Event::LateReport { claim_id, .. } => {
                for attempt in self.attempts.iter_mut().filter(|a| a.claim_id == *claim_id) {
                    attempt.late = true;
                }
            }
            Event::Redriven { to, changed } => {
                self.reviewed(Review::Redriven { to: *to, changed: *changed })
            }
            Event::Discarded { .. } => self.reviewed(Review::Discarded { reason_at: position }),
            // Facts about the task, the store, or a handoff's own beginning.
            Event::TaskOpened(_)
            | Event::Tainted { policy: TaintPolicy::Flag, .. }
            | Event::TaintCleared { .. }
            | Event::Reserved { .. }
            | Event::Unreserved { .. }
            | Event::TaskCancelled { .. }
            | Event::TransferOffered(_)
            | Event::CallOffered(_)
            | Event::Expired
            | Event::EpochRaised { .. }
            | Event::Acknowledged(_)
            | Event::RegistryChanged(_)
            | Event::DocumentWritten(_)
            | Event::DocumentMarked { .. }
            | Event::DocumentSuperseded { .. }
            | Event::DocumentDeleted { .. }
            | Event::Erased(_) => {}
        }
    }

    fn claimed(&mut self, claimed: &event::Claimed, at: Timestamp) {
        self.fence = claimed.fence;
        self.claims = claimed.attempt;
        self.delivered_at.get_or_insert(at);
        if self.attempts.len() == ATTEMPTS_KEPT_MAX {
            self.attempts.remove(0);
        }
        self.attempts.push(Attempt {
            number: claimed.attempt,
            agent: claimed.agent.clone(),
            claim_id: claimed.claim_id,
            fence: claimed.fence,
            claimed_at: at,
            started_at: None,
            ended: None,
            late: false,
        });
        self.state = State::Claimed(Claim {
            agent: claimed.agent.clone(),
            claim_id: claimed.claim_id,
            fence: claimed.fence,
            lease_ms: claimed.lease_ms,
            lease_until: at.plus_ms(claimed.lease_ms),
            hard_until: claimed.hard_until,
            request_id: claimed.request_id.clone(),
        });
    }

    fn end_attempt(&mut self, at: Timestamp, how: AttemptEnd, report: Option<(Position, Hash)>) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.ended.get_or_insert(Ended { at, how, report });
        }
    }

    fn reviewed(&mut self, decided: Review) {
        if let State::DeadLettered { review, .. } = &mut self.state {
            *review = Some(decided);
        }
    }

    /// Gives the holder a full lease from `now`. Renewing keeps the fence: the holder is the same,
    /// so its earlier writes stay valid.
    pub fn renew(&mut self, now: Timestamp) {
        if let Some(claim) = self.state.claim_mut() {
            claim.lease_until = claim.lease_until.max(now.plus_ms(claim.lease_ms));
        }
    }

    /// When something is due to happen to this handoff by itself.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::AwaitingApproval => Some(self.expires_at),
            State::Pending { .. } => {
                Some(self.ack_by.map_or(self.expires_at, |by| by.min(self.expires_at)))
            }
            State::Scheduled { due } => Some((*due).min(self.expires_at)),
            State::Claimed(claim) | State::InProgress(claim) => Some(claim.ends_at()),
            State::Completed { .. }
            | State::Failed { .. }
            | State::Cancelled { .. }
            | State::DeadLettered { .. } => None,
        }
    }

    /// How far the work has come, told apart: "delivered" is not "claimed".
    #[must_use]
    pub fn status(&self) -> Status {
        match &self.state {
            State::Claimed(_) => Status::Claimed,
            State::InProgress(_) => Status::InProgress,
            State::AwaitingApproval
            | State::Scheduled { .. }
            | State::Pending { .. }
            | State::Failed { aborted: false, .. } => {
                if self.delivered_at.is_some() {
                    Status::Delivered
                } else {
                    Status::Stored
                }
            }
            State::Completed { .. }
            | State::Failed { aborted: true, .. }
            | State::Cancelled { .. }
            | State::DeadLettered { .. } => Status::Done,
        }
    }

    /// Where this handoff stands among those that wait for the same target: smaller comes first.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        match self.state {
            State::Pending { ready, turn } => {
                Some(Rank { haste: PRIORITY_MAX - self.priority, turn, ready })
            }
            _ => None,
        }
    }
}

pub const PRIORITY_MAX: u8 = 9;
pub const PRIORITY_DEFAULT: u8 = 5;

/// What a sender may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Synced; the receiver has not fetched it.
    Stored,
    /// The receiver has fetched it and not accepted.
    Delivered,
    Claimed,
    InProgress,
    Done,
}

words!(Status {
    Stored = "stored",
    Delivered = "delivered",
    Claimed = "claimed",
    InProgress = "in_progress",
    Done = "done",
});

fn start_state(not_before: Option<Timestamp>, sealed: &Sealed) -> State {
    match not_before {
        Some(due) if due > sealed.record.at => State::Scheduled { due },
        _ => pending(sealed),
    }
}

fn pending(sealed: &Sealed) -> State {
    let ready = sealed.position;
    State::Pending { ready, turn: sealed.record.turn.unwrap_or(ready) }
}
