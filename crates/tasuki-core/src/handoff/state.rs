// SPDX-License-Identifier: Apache-2.0
//! The states of a handoff, each with what is true in it alone, and their names.

use crate::event::{Closed, DeadReason, words};
use crate::ids::{AgentId, ClaimId, Fence, HandoffId, Hash, Position, RequestId, Timestamp};

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
        /// By when it must be claimed.
        ack_by: Option<Timestamp>,
    },
    Claimed(Claim),
    InProgress(Claim),
    /// The holder asked and waits for the answer; no lease runs.
    InputRequired(Asking),
    /// The answer is there, and for a while it is the asker's alone.
    Answered(Kept),
    Completed {
        claim_id: ClaimId,
        fence: Fence,
        result: Hash,
        result_pos: Position,
        at: Timestamp,
        /// Why its result no longer holds.
        retracted_pos: Option<Position>,
    },
    /// The step between a failed attempt and what follows.
    Failed {
        at: Timestamp,
    },
    /// Ended as failed by who decides about its task.
    Aborted {
        at: Timestamp,
    },
    Cancelled {
        at: Timestamp,
    },
    DeadLettered {
        reason: DeadReason,
        at: Timestamp,
        /// Who decides on it, and until when.
        reviewer: Option<(AgentId, Timestamp)>,
        review: Option<Review>,
    },
}

/// The receiver's acceptance of a handoff: from here on it owns the task.
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

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Asking {
    /// The claim of who asked. Nobody can show it any more; its hard deadline stands.
    pub claim: Claim,
    pub answer_by: Option<Timestamp>,
}

impl Asking {
    /// When the question is over.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        self.answer_by.map_or(self.claim.hard_until, |by| by.min(self.claim.hard_until))
    }
}

/// An answer that waits for who asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub agent: AgentId,
    /// From then on anybody may claim.
    pub until: Timestamp,
    /// The end of the attempt in which it asked, which is still the same.
    pub hard_until: Timestamp,
    /// The event that answered.
    pub since_pos: Position,
    /// Whether it is claimed by the handoff's id only, and not given out with other work.
    pub by_id: bool,
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
        reason_pos: Position,
    },
    /// Nobody had to decide: the task went on without it.
    Closed {
        because: Closed,
    },
}

impl Review {
    /// What was decided, in words.
    #[must_use]
    pub fn decided(&self) -> &'static str {
        match self {
            Self::Redriven { changed: None, .. } => "redriven",
            Self::Redriven { changed: Some(_), .. } => "sent on with something changed",
            Self::Discarded { .. } => "discarded",
            Self::Closed { because: Closed::TaskOfferedAnew } => {
                "closed, because its task was offered anew"
            }
            Self::Closed { because: Closed::TaskCancelled } => {
                "closed, because its task was cancelled"
            }
            Self::Closed { because: Closed::TaskCompleted } => {
                "closed, because its task was completed"
            }
        }
    }
}

/// Where a handoff is in its life, such as `pending`, `claimed` or `completed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateName {
    AwaitingApproval,
    Scheduled,
    Pending,
    Claimed,
    InProgress,
    InputRequired,
    Answered,
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
    InputRequired = "input_required",
    Answered = "answered",
    Completed = "completed",
    Failed = "failed",
    Cancelled = "cancelled",
    DeadLettered = "dead_lettered",
});

impl StateName {
    /// What a sender is told of a handoff in this state.
    #[must_use]
    pub fn statuses(self) -> &'static [Status] {
        match self {
            Self::AwaitingApproval | Self::Scheduled | Self::Pending => {
                &[Status::Stored, Status::Delivered]
            }
            Self::Claimed => &[Status::Claimed],
            Self::InProgress => &[Status::InProgress],
            Self::InputRequired => &[Status::InputRequired],
            Self::Answered => &[Status::InProgress],
            Self::Completed => &[Status::Done],
            Self::Failed => &[Status::Failed],
            Self::Cancelled => &[Status::Cancelled],
            Self::DeadLettered => &[Status::DeadLettered, Status::Rejected],
        }
    }
}

impl State {
    #[must_use]
    pub fn name(&self) -> StateName {
        match self {
            Self::AwaitingApproval => StateName::AwaitingApproval,
            Self::Scheduled { .. } => StateName::Scheduled,
            Self::Pending { .. } => StateName::Pending,
            Self::Claimed(_) => StateName::Claimed,
            Self::InProgress(_) => StateName::InProgress,
            Self::InputRequired(_) => StateName::InputRequired,
            Self::Answered(_) => StateName::Answered,
            Self::Completed { .. } => StateName::Completed,
            // Published under one name.
            Self::Failed { .. } | Self::Aborted { .. } => StateName::Failed,
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
            | Self::InProgress(_)
            | Self::InputRequired(_)
            | Self::Answered(_)
            | Self::Failed { .. } => false,
            Self::Completed { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. }
            | Self::DeadLettered { .. } => true,
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
            | Self::InputRequired(_)
            | Self::Answered(_)
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. }
            | Self::DeadLettered { .. } => None,
        }
    }

    /// The claim that is held, or the one by which somebody asked.
    #[must_use]
    pub fn last_claim(&self) -> Option<&Claim> {
        match self {
            Self::InputRequired(asking) => Some(&asking.claim),
            Self::AwaitingApproval
            | Self::Scheduled { .. }
            | Self::Pending { .. }
            | Self::Claimed(_)
            | Self::InProgress(_)
            | Self::Answered(_)
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. }
            | Self::DeadLettered { .. } => self.claim(),
        }
    }

    /// Who works on it, or asked and may come back to it: the owner of the task.
    #[must_use]
    pub fn worker(&self) -> Option<&AgentId> {
        match self {
            Self::Answered(kept) => Some(&kept.agent),
            Self::AwaitingApproval
            | Self::Scheduled { .. }
            | Self::Pending { .. }
            | Self::Claimed(_)
            | Self::InProgress(_)
            | Self::InputRequired(_)
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. }
            | Self::DeadLettered { .. } => self.last_claim().map(|claim| &claim.agent),
        }
    }

    pub(super) fn claim_mut(&mut self) -> Option<&mut Claim> {
        match self {
            Self::Claimed(claim) | Self::InProgress(claim) => Some(claim),
            Self::AwaitingApproval
            | Self::Scheduled { .. }
            | Self::Pending { .. }
            | Self::InputRequired(_)
            | Self::Answered(_)
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. }
            | Self::DeadLettered { .. } => None,
        }
    }

    /// Who decides on it, if it is a dead letter, and until when.
    #[must_use]
    pub fn reviewer(&self) -> Option<&(AgentId, Timestamp)> {
        match self {
            Self::DeadLettered { reviewer, .. } => reviewer.as_ref(),
            Self::AwaitingApproval
            | Self::Scheduled { .. }
            | Self::Pending { .. }
            | Self::Claimed(_)
            | Self::InProgress(_)
            | Self::InputRequired(_)
            | Self::Answered(_)
            | Self::Completed { .. }
            | Self::Failed { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. } => None,
        }
    }

    /// Where what came of it is kept.
    #[must_use]
    pub fn result_pos(&self) -> Option<Position> {
        match self {
            Self::Completed { result_pos, .. } => Some(*result_pos),
            Self::AwaitingApproval
            | Self::Scheduled { .. }
            | Self::Pending { .. }
            | Self::Claimed(_)
            | Self::InProgress(_)
            | Self::InputRequired(_)
            | Self::Answered(_)
            | Self::Failed { .. }
            | Self::Aborted { .. }
            | Self::Cancelled { .. }
            | Self::DeadLettered { .. } => None,
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

/// What a sender may rely on. A word that is also one of [`StateName`] means the same there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Synced; the receiver has not fetched it.
    Stored,
    /// The receiver has fetched it and not accepted.
    Delivered,
    /// The receiver has accepted, and owns the work.
    Claimed,
    InProgress,
    /// Its holder asks something; an answer lets it go on.
    InputRequired,
    /// There is a result. Nothing else is called done.
    Done,
    /// It was ended as failed.
    Failed,
    /// It was withdrawn.
    Cancelled,
    /// Who was asked to approve it said no.
    Rejected,
    /// It could not be done, and somebody has to decide or has decided.
    DeadLettered,
}

words!(Status {
    Stored = "stored",
    Delivered = "delivered",
    Claimed = "claimed",
    InProgress = "in_progress",
    InputRequired = "input_required",
    Done = "done",
    Failed = "failed",
    Cancelled = "cancelled",
    Rejected = "rejected",
    DeadLettered = "dead_lettered",
});

impl Status {
    /// What it promises to the sender.
    #[must_use]
    pub fn promise(self) -> &'static str {
        match self {
            Self::Stored => "synced to disk; no receiver has fetched it",
            Self::Delivered => "a receiver has fetched it and not accepted",
            Self::Claimed => "a receiver has accepted and owns the work",
            Self::InProgress => "the receiver has said that it works on it",
            Self::InputRequired => "its holder asks something, and an answer lets it go on",
            Self::Done => "there is a result; nothing else is called done",
            Self::Failed => "the one who decides about the task ended it as failed",
            Self::Cancelled => "it was withdrawn",
            Self::Rejected => "it was to be approved, and an approver said no",
            Self::DeadLettered => "it could not be done; somebody decides, or has decided",
        }
    }
}
