// SPDX-License-Identifier: Apache-2.0
//! Dead letters, and what is decided about them.

use tasuki_core::HandoffId;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{self as wire, Code, Problem};
use tasuki_store::HandoffFilter;

use super::Right::{Decides, Known};
use super::{Done, Facts, Operation, answer, asked, handoffs, manages, reads, shown};
use crate::desk::Desk;
use crate::reviews::{Chosen, Ruling};

/// Whoever decides on a dead letter fails in the same ways.
const REVIEW_ERRORS: &[Code] = &[
    Code::HandoffNotFound,
    Code::NotDeadLettered,
    Code::AlreadyReviewed,
    Code::ReviewTaken,
    Code::HandoffOpen,
    Code::OnHold,
    Code::BudgetExhausted,
    Code::TaskNotFound,
    Code::NotOwner,
    Code::TaskFinished,
    Code::TaskMoved,
    Code::OtherTenant,
    Code::ConstraintAltered,
    Code::ConstraintDropped,
    Code::ConstraintNotYours,
    Code::DecisionSettled,
    Code::InvalidEnvelope,
    Code::InvalidPayload,
    Code::SecretFound,
    Code::TargetUnavailable,
    Code::InvalidTerms,
    Code::DeadlinePassed,
    Code::DiskFull,
];

pub struct List;

impl Operation for List {
    const FACTS: Facts = reads(
        "dead_letter_list",
        Known,
        "List dead letters that wait for a decision, newest first",
    );
    type On = ();
    type In = wire::ListDeadLetters;
    type Out = wire::Handoffs;

    async fn run(desk: &Desk, (): (), asked: wire::ListDeadLetters) -> Done<wire::Handoffs> {
        let filter = HandoffFilter {
            unreviewed: !asked.all,
            before: asked.before,
            max: asked.limit.unwrap_or(100),
            ..HandoffFilter::default()
        };
        answer(handoffs::page(desk, &desk.dead_letters(filter).await?))
    }
}

pub struct Groups;

impl Operation for Groups {
    const FACTS: Facts =
        reads("dead_letter_groups", Known, "Show dead letters by what they died of");
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Groups;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Groups> {
        let groups = desk.dead_letter_groups().await?;
        let groups = groups.into_iter().map(|group| wire::Group {
            fingerprint: group.fingerprint,
            reason: group.reason.to_string(),
            to: group.to,
            kind: group.kind,
            message: group.message,
            hint: group.hint,
            count: group.count,
            handoffs: group.handoffs,
        });
        answer(wire::Groups { groups: groups.collect() })
    }
}

pub struct Show;

impl Operation for Show {
    const FACTS: Facts = reads(
        "dead_letter_show",
        Known,
        "Show a dead letter with its envelope and what its attempts reported",
    )
    .errors(&[&[Code::HandoffNotFound, Code::NotDeadLettered]]);
    type On = HandoffId;
    type In = wire::Nothing;
    type Out = wire::DeadLetter;

    async fn run(desk: &Desk, id: HandoffId, _: wire::Nothing) -> Done<wire::DeadLetter> {
        let letter = desk.dead_letter(id).await?;
        answer(shown::dead_letter(&letter, desk.now()))
    }
}

pub struct Redrive;

impl Operation for Redrive {
    const FACTS: Facts = manages(
        "dead_letter_redrive",
        Decides(Permission::Redrive),
        "Send a dead letter on its way again, as a new linked handoff",
    )
    .errors(&[&[
        Code::HandoffNotFound,
        Code::NotDeadLettered,
        Code::AlreadyReviewed,
        Code::ReviewTaken,
        Code::NotOwner,
        Code::HandoffOpen,
        Code::OnHold,
        Code::BudgetExhausted,
        Code::TaskFinished,
        Code::InvalidTerms,
        Code::DiskFull,
    ]]);
    type On = HandoffId;
    type In = wire::RedriveLetter;
    type Out = wire::Offered;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::RedriveLetter) -> Done<wire::Offered> {
        let handoff = desk.redrive(id, &asked.by, asked.expires_in_ms).await?;
        answer(shown::offered(&desk.offered(handoff)))
    }
}

pub struct Discard;

impl Operation for Discard {
    const FACTS: Facts = manages(
        "dead_letter_discard",
        Decides(Permission::Redrive),
        "Put a dead letter away, with a reason",
    )
    .errors(&[&[
        Code::HandoffNotFound,
        Code::NotDeadLettered,
        Code::AlreadyReviewed,
        Code::ReviewTaken,
    ]]);
    type On = HandoffId;
    type In = wire::Decide;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Decide) -> Done<wire::Moved> {
        let needed = || Problem::invalid("reason", "is needed to discard");
        let reason = asked.reason.ok_or_else(needed)?;
        let handoff = desk.discard(id, &asked.by, reason).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Reroute;

impl Operation for Reroute {
    const FACTS: Facts = manages(
        "dead_letter_reroute",
        Decides(Permission::Redrive),
        "Send a dead letter to another target",
    )
    .errors(&[REVIEW_ERRORS]);
    type On = HandoffId;
    type In = wire::Reroute;
    type Out = wire::Offered;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Reroute) -> Done<wire::Offered> {
        let span = asked.expires_in_ms;
        let handoff = desk.rule(id, &asked.by, Ruling::Reroute(asked.to), span).await?;
        answer(shown::offered(&desk.offered(handoff)))
    }
}

pub struct Amend;

impl Operation for Amend {
    const FACTS: Facts = manages(
        "dead_letter_amend",
        Decides(Permission::Redrive),
        "Send a dead letter on its way again with a new envelope, linked to the old one",
    )
    .errors(&[REVIEW_ERRORS]);
    type On = HandoffId;
    type In = wire::Amend;
    type Out = wire::Offered;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Amend) -> Done<wire::Offered> {
        let handoff = Box::pin(desk.amend(id, asked)).await?;
        answer(shown::offered(&desk.offered(handoff)))
    }
}

pub struct Answer;

impl Operation for Answer {
    const FACTS: Facts = manages(
        "dead_letter_answer",
        Decides(Permission::Redrive),
        "Answer what a dead letter stopped at, and let the work go on with the decision",
    )
    .errors(&[REVIEW_ERRORS]);
    type On = HandoffId;
    type In = wire::Answer;
    type Out = wire::Offered;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Answer) -> Done<wire::Offered> {
        let span = asked.expires_in_ms;
        let handoff = Box::pin(desk.answer(id, &asked.by, asked.decision, span)).await?;
        answer(shown::offered(&desk.offered(handoff)))
    }
}

pub struct Take;

impl Operation for Take {
    const FACTS: Facts = manages(
        "dead_letter_take",
        Decides(Permission::Redrive),
        "Keep others from deciding on a dead letter for a while, or give it back",
    )
    .errors(&[&[
        Code::HandoffNotFound,
        Code::NotDeadLettered,
        Code::AlreadyReviewed,
        Code::ReviewTaken,
    ]]);
    type On = HandoffId;
    type In = wire::TakeReview;
    type Out = wire::Handoff;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::TakeReview) -> Done<wire::Handoff> {
        let handoff = desk.take_review(id, &asked.by, asked.for_ms).await?;
        answer(shown::handoff(&handoff, desk.now()))
    }
}

pub struct DecideMany;

impl Operation for DecideMany {
    const FACTS: Facts = manages(
        "dead_letter_decide_many",
        Decides(Permission::Redrive),
        "Decide on many dead letters at once, or see which ones it would be",
    )
    .errors(&[&[Code::HandoffNotFound]]);
    type On = ();
    type In = wire::DecideMany;
    type Out = wire::DecidedMany;

    async fn run(desk: &Desk, (): (), asked: wire::DecideMany) -> Done<wire::DecidedMany> {
        let dry_run = asked.dry_run;
        let chosen = Chosen { handoffs: asked.handoffs, fingerprint: asked.fingerprint };
        let ruling = asked::ruling(asked.decision);
        let span = asked.expires_in_ms;
        let decided = desk.rule_many(chosen, &asked.by, &ruling, span, dry_run).await?;
        let results = decided
            .into_iter()
            .map(|(handoff_id, outcome)| match outcome {
                Ok(to) => wire::DecidedOne { handoff_id, to_handoff: Some(to.id), error: None },
                Err(error) => {
                    let error = Some(Problem::from(error));
                    wire::DecidedOne { handoff_id, to_handoff: None, error }
                }
            })
            .collect();
        answer(wire::DecidedMany { dry_run, results })
    }
}
