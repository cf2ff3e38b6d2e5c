// SPDX-License-Identifier: Apache-2.0
//! One acceptance of a handoff and how it ended.

use crate::event::{FailureClass, LossCause, words};
use crate::ids::{AgentId, ClaimId, Fence, Hash, Position, Timestamp};

/// One claim of a handoff and how it ended.
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
    /// What its claim was told beside the envelope, and where that is kept, once it was read.
    pub told: Option<(Position, Hash)>,
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
    /// It waits for an answer, or went on with it as a new claim.
    Asked,
    PutBack,
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
    Asked = "asked",
    PutBack = "put_back",
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
