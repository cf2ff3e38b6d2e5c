// SPDX-License-Identifier: Apache-2.0
//! One table of what anybody may want to know of an event without minding which one it is. An event
//! that is new gets its line here, or nothing compiles; nobody lists events for such a question.

use super::{DeadReason, Erased, Event, Offered, Written};
use crate::envelope::{Control, Target};
use crate::handoff::AttemptEnd;
use crate::ids::{AgentId, DocumentId, Hash};
use crate::registry::Change;

#[derive(Debug, Clone, Copy)]
pub struct Facts<'e> {
    /// The word for what happened, as in its JSON.
    pub kind: &'static str,
    /// The hash of the body that is stored with it.
    pub body: Option<Hash>,
    /// How the attempt under way ends by it, if there is one.
    pub ends_attempt: Option<AttemptEnd>,
    /// Whether the handoff is at its end.
    pub ends_handoff: bool,
    /// Whether the task may be at its end, or wait for somebody to decide.
    pub may_end_task: bool,
    /// Whether something may follow from it for the tasks below.
    pub moves_below: bool,
    /// Whether what taints the task may taint others by it, which are built on what it came to.
    pub spreads: bool,
    pub enters: Enters<'e>,
    /// The document that it is about.
    pub document: Option<&'e DocumentId>,
    /// The target whose breaker it moves.
    pub breaker: Option<&'e Target>,
    /// What was written, if a document was.
    pub written: Option<&'e Written>,
    /// What was erased, if something was.
    pub erased: Option<&'e Erased>,
    /// Who declined, if somebody did.
    pub declined_by: Option<&'e AgentId>,
}

/// The queue that a handoff enters by an event, as far as the event says.
#[derive(Debug, Clone, Copy)]
pub enum Enters<'e> {
    Nothing,
    /// That of what was offered, unless it waits for something.
    Offered(&'e Offered),
    Own,
    /// Its own, if somebody held it.
    OwnIfHeld,
    /// Its own, if it was kept back until a time.
    OwnIfScheduled,
    /// That of an agent, if it stood in a queue before.
    OfAgentIfPending(&'e AgentId),
    Of(&'e Target),
}

impl<'e> Facts<'e> {
    const fn of(kind: &'static str) -> Self {
        Self {
            kind,
            body: None,
            ends_attempt: None,
            ends_handoff: false,
            may_end_task: false,
            moves_below: false,
            spreads: false,
            enters: Enters::Nothing,
            document: None,
            breaker: None,
            written: None,
            erased: None,
            declined_by: None,
        }
    }

    fn with(self, body: Hash) -> Self {
        Self { body: Some(body), ..self }
    }

    fn perhaps_with(self, body: Option<Hash>) -> Self {
        Self { body, ..self }
    }

    fn ends_attempt(self, how: AttemptEnd) -> Self {
        Self { ends_attempt: Some(how), ..self }
    }

    fn ends_handoff(self) -> Self {
        Self { ends_handoff: true, ..self }
    }

    fn may_end_task(self, may: bool) -> Self {
        Self { may_end_task: may, ..self }
    }

    fn moves_below(self) -> Self {
        Self { moves_below: true, ..self }
    }

    fn spreads(self) -> Self {
        Self { spreads: true, ..self }
    }

    fn enters(self, enters: Enters<'e>) -> Self {
        Self { enters, ..self }
    }

    fn about(self, document: &'e DocumentId) -> Self {
        Self { document: Some(document), ..self }
    }

    fn moves(self, breaker: Option<&'e Target>) -> Self {
        Self { breaker, ..self }
    }

    fn offered(kind: &'static str, offered: &'e Offered) -> Self {
        Self::of(kind)
            .perhaps_with(offered.redrive_of.is_none().then_some(offered.envelope))
            .enters(Enters::Offered(offered))
            .moves(offered.probe.then_some(&offered.to))
    }
}

impl Event {
    #[must_use]
    pub fn facts(&self) -> Facts<'_> {
        let of = Facts::of;
        match self {
            Self::TaskOpened(opened) => of("task_opened").with(opened.intent),
            Self::TaskCancelled { reason } => {
                of("task_cancelled").perhaps_with(*reason).may_end_task(true).moves_below()
            }
            Self::TaskHeld { .. } => of("task_held").moves_below(),
            Self::TaskResumed { .. } => {
                of("task_resumed").enters(Enters::OwnIfScheduled).moves_below()
            }
            Self::TaskCompleted { result } => {
                // What its letter kept back goes on by itself.
                let facts = of("task_completed").perhaps_with(*result);
                facts.may_end_task(true).moves_below().spreads()
            }
            Self::TransferOffered(offered) => Facts::offered("transfer_offered", offered),
            Self::CallOffered(offered) => Facts::offered("call_offered", offered),
            Self::Countered(countered) => of("countered").with(countered.reason),
            Self::CounterAccepted { agent, .. } => {
                of("counter_accepted").enters(Enters::OfAgentIfPending(agent))
            }
            Self::CounterRefused { .. } => of("counter_refused"),
            Self::Approved => of("approved").enters(Enters::Own),
            Self::Delivered { .. } => of("delivered"),
            Self::Readied => of("readied").enters(Enters::Own),
            Self::WaitOver => of("wait_over"),
            Self::Joined { .. } => of("joined").enters(Enters::Own),
            Self::PassedTo { .. } => of("passed_to").spreads(),
            Self::Claimed(claimed) => of("claimed").moves(claimed.probes.as_ref()),
            Self::Started => of("started"),
            Self::Acknowledged(_) => of("acknowledged"),
            Self::Progressed { note, .. } => of("progressed").perhaps_with(*note),
            Self::Asked(asked) => of("asked").with(asked.question).ends_attempt(AttemptEnd::Asked),
            Self::Answered { answer, .. } => of("answered").with(*answer),
            Self::AnswerDefaulted { .. } => of("answer_defaulted"),
            Self::KeepEnded => of("keep_ended").enters(Enters::Own),
            Self::MessageSent { message, .. } => of("message_sent").with(*message),
            Self::MessagesAcknowledged { .. } => of("messages_acknowledged"),
            Self::Attached(attached) => of("attached").with(attached.artifact),
            Self::PutBack { reason, .. } => {
                of("put_back").perhaps_with(*reason).ends_attempt(AttemptEnd::PutBack)
            }
            Self::Completed { result, next, recovers, .. } => of("completed")
                .with(*result)
                .ends_attempt(AttemptEnd::Completed)
                .ends_handoff()
                .may_end_task(next.is_none())
                .spreads()
                .moves(recovers.as_ref()),
            Self::Spent(_) => of("spent"),
            Self::AttemptFailed { class, failure, .. } => {
                of("attempt_failed").with(*failure).ends_attempt((*class).into())
            }
            Self::Declined { agent, reason } => Facts {
                declined_by: Some(agent),
                ..of("declined")
                    .perhaps_with(*reason)
                    .ends_attempt(AttemptEnd::Declined)
                    .enters(Enters::OwnIfHeld)
            },
            Self::Released { .. } => {
                of("released").ends_attempt(AttemptEnd::Released).enters(Enters::Own)
            }
            Self::LeaseLost { cause, .. } => {
                of("lease_lost").ends_attempt((*cause).into()).enters(Enters::Own)
            }
            Self::RetryScheduled { .. } => of("retry_scheduled"),
            Self::Expired => of("expired"),
            Self::DeadLettered { against, because, .. } => of("dead_lettered")
                .perhaps_with(*because)
                .ends_handoff()
                .may_end_task(true)
                .moves_below()
                .moves(against.as_ref()),
            Self::LetterClosed { .. } => of("letter_closed"),
            Self::Escalated { to, against, .. } => {
                of("escalated").enters(Enters::Of(to)).moves(against.as_ref())
            }
            Self::Retracted { reason } => of("retracted").with(*reason),
            Self::Tainted { .. } => of("tainted").spreads(),
            Self::TaintCleared { reason, releases, .. } => {
                let cleared = of("taint_cleared").with(*reason);
                if *releases { cleared.enters(Enters::Own) } else { cleared }
            }
            Self::Cancelled { reason } => of("cancelled")
                .perhaps_with(*reason)
                .ends_attempt(AttemptEnd::Cancelled)
                .ends_handoff()
                .may_end_task(true)
                .moves_below(),
            Self::Aborted { reason } => of("aborted")
                .perhaps_with(*reason)
                .ends_attempt(AttemptEnd::Aborted)
                .ends_handoff()
                .may_end_task(true)
                .moves_below(),
            Self::LateReport { report, .. } => of("late_report").with(*report),
            Self::Redriven { .. } => of("redriven").moves_below(),
            Self::ReviewTaken { .. } => of("review_taken"),
            Self::ReviewReleased => of("review_released"),
            Self::Reserved { .. } => of("reserved"),
            Self::Unreserved { .. } => of("unreserved"),
            Self::Discarded { reason } => {
                of("discarded").with(*reason).may_end_task(true).moves_below()
            }
            Self::EpochRaised { .. } => of("epoch_raised"),
            Self::RegistryChanged(change) => of("registry_changed").perhaps_with(said(change)),
            Self::DocumentWritten(written) => {
                let written_document =
                    of("document_written").with(written.content).about(&written.id);
                Facts { written: Some(written), ..written_document }
            }
            Self::DocumentMarked { id, .. } => of("document_marked").about(id),
            Self::DocumentSuperseded { id, .. } => of("document_superseded").about(id),
            Self::DocumentDeleted { id, reason } => of("document_deleted").with(*reason).about(id),
            Self::Erased(erased) => {
                let document = erased.document.as_ref();
                Facts { document, erased: Some(erased), ..of("erased").with(erased.reason) }
            }
            Self::ConstraintLifted { reason, .. } => of("constraint_lifted").with(*reason),
            Self::TrimFetched { .. } => of("trim_fetched"),
            Self::ClaimTold { told, .. } => of("claim_told").with(*told),
        }
    }

    /// The end of a handoff for which nobody is to blame.
    #[must_use]
    pub fn dead_letter(reason: DeadReason) -> Self {
        Self::DeadLettered { reason, against: None, limits: None, because: None }
    }

    /// The word for what happened, as in its JSON.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.facts().kind
    }

    /// The hash of the body that is stored with this event, if it has one.
    #[must_use]
    pub fn body(&self) -> Option<Hash> {
        self.facts().body
    }

    /// The offer, if this event is one, and how control moves with it.
    #[must_use]
    pub fn offered(&self) -> Option<(&Offered, Control)> {
        let Enters::Offered(offered) = self.facts().enters else { return None };
        let passed = matches!(self, Self::TransferOffered(_));
        Some((offered, if passed { Control::Passed } else { Control::Awaited }))
    }
}

fn said(change: &Change) -> Option<Hash> {
    match change {
        Change::ManifestPublished { manifest, .. } => Some(*manifest),
        Change::AlertSilenced(silenced) => Some(silenced.reason),
        Change::PushSet(set) => Some(set.config),
        Change::StandingSet { .. }
        | Change::KeyEnrolled { .. }
        | Change::KeyRotated { .. }
        | Change::KeyRevoked { .. }
        | Change::RulesSet { .. }
        | Change::TokenIssued(_)
        | Change::TokenRevoked { .. }
        | Change::TenantSet(_)
        | Change::LimitsSet { .. }
        | Change::TargetPaused { .. }
        | Change::TargetResumed { .. }
        | Change::PipelineDeclared { .. }
        | Change::Subscribed { .. }
        | Change::Unsubscribed { .. }
        | Change::AlertMoved(_)
        | Change::NoticeTaken(_)
        | Change::NoticeTold(_)
        | Change::PushTaken(_)
        | Change::PushTold(_)
        | Change::PushEnded(_)
        | Change::AccessDenied { .. } => None,
    }
}
