// SPDX-License-Identifier: Apache-2.0
//! What the demo promises. Nothing of it is just said: each promise is kept only once the demo has
//! seen for itself that it is.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    OwnerUntilClaimed,
    Acknowledged,
    SoftenedRefused,
    WeakenedRefused,
    HeartbeatsHold,
    LeaseRecovered,
    LateRefused,
    Retried,
    Feedback,
    NothingLost,
    RepeatedOnce,
    ClaimSurvives,
    DeadLetter,
    CoordinatorTold,
    Answered,
    MisfitRefused,
    Completed,
    ConstraintsIntact,
    LogIntact,
    EndedWell,
}

impl Promise {
    const ALL: [Self; 20] = [
        Self::OwnerUntilClaimed,
        Self::Acknowledged,
        Self::SoftenedRefused,
        Self::WeakenedRefused,
        Self::HeartbeatsHold,
        Self::LeaseRecovered,
        Self::LateRefused,
        Self::Retried,
        Self::Feedback,
        Self::NothingLost,
        Self::RepeatedOnce,
        Self::ClaimSurvives,
        Self::DeadLetter,
        Self::CoordinatorTold,
        Self::Answered,
        Self::MisfitRefused,
        Self::Completed,
        Self::ConstraintsIntact,
        Self::LogIntact,
        Self::EndedWell,
    ];

    /// Those that only a killed broker can keep.
    fn needs_chaos(self) -> bool {
        matches!(self, Self::NothingLost | Self::RepeatedOnce | Self::ClaimSurvives)
    }

    fn word(self) -> &'static str {
        match self {
            Self::OwnerUntilClaimed => "owner_until_claimed",
            Self::Acknowledged => "acknowledged",
            Self::SoftenedRefused => "softened_constraint_refused",
            Self::WeakenedRefused => "weakened_constraint_refused",
            Self::HeartbeatsHold => "heartbeats_hold_the_lease",
            Self::LeaseRecovered => "lost_lease_recovered",
            Self::LateRefused => "late_result_refused",
            Self::Retried => "retryable_failure_retried",
            Self::Feedback => "feedback_came_back",
            Self::NothingLost => "nothing_acknowledged_lost",
            Self::RepeatedOnce => "repeated_request_counted_once",
            Self::ClaimSurvives => "claim_survived_the_kill",
            Self::DeadLetter => "permanent_failure_dead_lettered",
            Self::CoordinatorTold => "coordinator_told",
            Self::Answered => "dead_letter_answered",
            Self::MisfitRefused => "misfitting_result_refused",
            Self::Completed => "task_completed",
            Self::ConstraintsIntact => "constraints_intact",
            Self::LogIntact => "audit_log_intact",
            Self::EndedWell => "broker_ended_well",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::OwnerUntilClaimed => "the sender owns the task until the receiver has claimed it",
            Self::Acknowledged => "the sender hears of the claim, and the receiver owns the task",
            Self::SoftenedRefused => "a \"never\" in softer words is refused, nothing is stored",
            Self::WeakenedRefused => "a \"never\" made a mere wish is refused, nothing is stored",
            Self::HeartbeatsHold => "heartbeats hold a claim longer than its lease",
            Self::LeaseRecovered => "the work of a killed agent goes to another one",
            Self::LateRefused => "the killed agent's late result is refused, and kept in the log",
            Self::Retried => "a retryable failure is tried again",
            Self::Feedback => "the reviewer's findings come back to the coder, with what binds",
            Self::NothingLost => "nothing acknowledged is lost when the broker is killed",
            Self::RepeatedOnce => "what is repeated after the kill counts once",
            Self::ClaimSurvives => "a claim from before the kill holds after it",
            Self::DeadLetter => "a permanent failure becomes a dead letter, with its hint",
            Self::CoordinatorTold => "whoever decides is told of the dead letter",
            Self::Answered => "the answered dead letter goes on, with the decision",
            Self::MisfitRefused => "a result that is not what was asked for is refused",
            Self::Completed => "the task is completed, and its result is the tester's",
            Self::ConstraintsIntact => "every constraint reached the last hop, word for word",
            Self::LogIntact => "every hash, body and signature of the audit log fits",
            Self::EndedWell => "the broker ends cleanly when it is asked to",
        }
    }
}

/// What became of a promise.
#[derive(Serialize)]
pub(super) struct Kept {
    #[serde(skip)]
    which: Promise,
    promise: &'static str,
    says: &'static str,
    pub(super) kept: bool,
    /// What the demo saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    saw: Option<String>,
}

/// All promises, in the order in which they come due.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Promises(Vec<Kept>);

impl Promises {
    pub(super) fn new(chaos: bool) -> Self {
        let due = Promise::ALL.into_iter().filter(|one| chaos || !one.needs_chaos());
        let open = due.map(|which| Kept {
            which,
            promise: which.word(),
            says: which.meaning(),
            kept: false,
            saw: None,
        });
        Self(open.collect())
    }

    /// Notes what became of a promise. Returns how it reads.
    pub(super) fn note(&mut self, which: Promise, kept: bool, saw: String) -> &'static str {
        if let Some(one) = self.0.iter_mut().find(|one| one.which == which) {
            one.kept = kept;
            one.saw = Some(saw);
        }
        which.meaning()
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// What was promised and did not happen, with what was seen instead.
    pub(super) fn broken(&self) -> Vec<String> {
        let broken = self.0.iter().filter(|one| !one.kept);
        let told = broken.map(|one| match &one.saw {
            Some(saw) => format!("{} ({saw})", one.says),
            None => format!("{} (the demo did not come that far)", one.says),
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_is_open_until_it_is_noted() {
        let mut all = Promises::new(true);
        assert_eq!((all.count(), all.broken().len()), (20, 20));
        all.note(Promise::Retried, true, String::new());
        all.note(Promise::Feedback, false, "nothing came".into());
        assert_eq!(all.broken().len(), 19);
        assert!(all.broken().iter().any(|one| one.contains("nothing came")));
        assert_eq!(Promises::new(false).count(), 17);
    }
}
