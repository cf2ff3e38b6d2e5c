// SPDX-License-Identifier: Apache-2.0
//! Claims: who looks for work, and who holds it.

use tasuki_core::HandoffId;
use tasuki_core::registry::rules::Permission;
use tasuki_core::reserve::Reservation;
use tasuki_protocol::{self as wire, Code, Problem};

use super::Right::{Each, Has};
use super::{Done, ENVELOPE_ERRORS, Facts, Operation};
use super::{answer, asked, finishes, handoffs, manages, reads, shown};
use crate::desk::Desk;
use crate::requests::Proof;

pub struct Claim;

impl Operation for Claim {
    const FACTS: Facts = manages(
        "handoff_claim",
        Has(Permission::Claim),
        "Claim the next work for an agent, waiting for it if there is none",
    )
    .waits()
    .errors(&[&[Code::OtherTenant, Code::CapabilityNotDeclared]]);
    type On = ();
    type In = wire::Claim;
    type Out = wire::Claims;

    async fn run(desk: &Desk, (): (), asked: wire::Claim) -> Done<wire::Claims> {
        check_capabilities(asked.capabilities.len())?;
        let granted = desk.claim(asked).await?;
        let claims = granted.iter().map(shown::claimed).collect::<Result<_, _>>()?;
        answer(wire::Claims { claims })
    }
}

pub struct ClaimOne;

impl Operation for ClaimOne {
    const FACTS: Facts = manages(
        "handoff_claim_one",
        Has(Permission::Claim),
        "Claim one handoff by its id; one of any number of racers wins",
    )
    .waits()
    .errors(&[&[
        Code::HandoffNotFound,
        Code::OtherTenant,
        Code::CapabilityNotDeclared,
        Code::AlreadyClaimed,
        Code::WrongState,
        Code::NotTarget,
        Code::AlreadyDeclined,
        Code::DeadlinePassed,
        Code::OutOfTurn,
        Code::TargetUnavailable,
        Code::TargetPaused,
        Code::KeptForAsker,
        Code::OnHold,
    ]]);
    type On = HandoffId;
    type In = wire::ClaimOne;
    type Out = wire::Claimed;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::ClaimOne) -> Done<wire::Claimed> {
        check_capabilities(asked.capabilities.len())?;
        let granted = desk.claim_one(asked::claim_one(id, asked)).await?;
        answer(shown::claimed(&granted)?)
    }
}

pub struct Peek;

impl Operation for Peek {
    const FACTS: Facts = reads(
        "handoff_peek",
        Has(Permission::Claim),
        "Look at what waits for an agent without claiming it",
    )
    .errors(&[&[Code::OtherTenant, Code::CapabilityNotDeclared]]);
    type On = ();
    type In = wire::Peek;
    type Out = wire::Peeked;

    async fn run(desk: &Desk, (): (), asked: wire::Peek) -> Done<wire::Peeked> {
        check_capabilities(asked.capabilities.len())?;
        let granted = desk.peek(asked).await?;
        let waiting = granted.iter().map(shown::waiting).collect::<Result<_, _>>()?;
        answer(wire::Peeked { waiting })
    }
}

const CAPABILITIES_MAX: usize = 100;

fn check_capabilities(named: usize) -> Result<(), Problem> {
    if named <= CAPABILITIES_MAX {
        return Ok(());
    }
    let problem = format!("{named} were named, at most {CAPABILITIES_MAX} are allowed");
    Err(Problem::invalid("capabilities", problem))
}

/// Calls of a claim's holder fail in the same ways.
pub(super) const HELD_ERRORS: &[Code] = &[Code::HandoffNotFound, Code::StaleClaim];

fn proof(asked: &wire::Held) -> Proof {
    Proof { claim_id: asked.claim_id, fence: asked.fence }
}

pub struct Start;

impl Operation for Start {
    const FACTS: Facts = finishes(
        "handoff_start",
        Has(Permission::Complete),
        "Say that work on a claimed handoff has begun",
    )
    .errors(&[&[
        Code::HandoffNotFound,
        Code::StaleClaim,
        Code::ReadBackNeeded,
        Code::InvalidEnvelope,
    ]]);
    type On = HandoffId;
    type In = wire::Start;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Start) -> Done<wire::Moved> {
        let proof = Proof { claim_id: asked.claim_id, fence: asked.fence };
        let handoff = desk.start_work(id, proof, asked.signed, asked.read_back).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Heartbeat;

impl Operation for Heartbeat {
    const FACTS: Facts = finishes(
        "handoff_heartbeat",
        Has(Permission::Complete),
        "Extend the lease; kept in memory, the one call whose 200 does not mean synced",
    )
    .errors(&[HELD_ERRORS]);
    type On = HandoffId;
    type In = wire::Heartbeat;
    type Out = wire::Beat;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Heartbeat) -> Done<wire::Beat> {
        let granted = desk.heartbeat(id, asked).await?;
        answer(shown::beat(&granted))
    }
}

pub struct Progress;

impl Operation for Progress {
    const FACTS: Facts = finishes(
        "handoff_progress",
        Has(Permission::Complete),
        "Report progress, which also extends the lease",
    )
    .errors(&[&[Code::HandoffNotFound, Code::StaleClaim, Code::ReadBackNeeded]]);
    type On = HandoffId;
    type In = wire::Progress;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Progress) -> Done<wire::Moved> {
        let proof = Proof { claim_id: asked.claim_id, fence: asked.fence };
        let handoff = desk.progress(id, proof, asked.percent, asked.note).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Complete;

impl Operation for Complete {
    const FACTS: Facts = finishes(
        "handoff_complete",
        Has(Permission::Complete),
        "Complete a handoff, and create the next ones in the same atomic step",
    )
    .errors(&[
        HELD_ERRORS,
        ENVELOPE_ERRORS,
        &[Code::ReadBackNeeded, Code::AlreadyCompleted, Code::InvalidFollowUps, Code::TaskMoved],
        &[Code::TaskNotFound, Code::TreeTooDeep, Code::Deadlock],
    ]);
    type On = HandoffId;
    type In = wire::Complete;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Complete) -> Done<wire::Moved> {
        let mut results = desk.complete(vec![(id, asked)]).await?;
        let handoff = results.pop().ok_or_else(shown::missing)??;
        answer(shown::moved(&handoff))
    }
}

pub struct CompleteBatch;

impl Operation for CompleteBatch {
    const FACTS: Facts = finishes(
        "handoff_complete_batch",
        Each(Permission::Complete),
        "Complete many at once; each answers for itself, all are synced together",
    );
    type On = ();
    type In = wire::CompleteBatch;
    type Out = wire::Batch<wire::Moved>;

    async fn run(
        desk: &Desk,
        (): (),
        asked: wire::CompleteBatch,
    ) -> Done<wire::Batch<wire::Moved>> {
        handoffs::check_batch("completions", asked.completions.len())?;
        let mut many = Vec::with_capacity(asked.completions.len());
        for one in asked.completions {
            asked::check_follow_ups(&one.complete)?;
            many.push((one.handoff_id, one.complete));
        }
        let results = desk.complete(many).await?;
        let results = results
            .into_iter()
            .map(|result| result.map(|handoff| shown::moved(&handoff)))
            .map(|result| shown::part(result.map_err(Problem::from)))
            .collect();
        answer(handoffs::noted(desk, wire::Batch { results }, Self::FACTS.name).await)
    }
}

pub struct Fail;

impl Operation for Fail {
    const FACTS: Facts = finishes(
        "handoff_fail",
        Has(Permission::Complete),
        "Report that an attempt failed, and whether trying again may help",
    )
    .errors(&[HELD_ERRORS]);
    type On = HandoffId;
    type In = wire::Fail;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Fail) -> Done<wire::Moved> {
        let handoff = desk.fail(id, asked).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Decline;

impl Operation for Decline {
    const FACTS: Facts =
        manages("handoff_decline", Has(Permission::Claim), "Decline a handoff, claimed or not")
            .errors(&[&[
                Code::HandoffNotFound,
                Code::StaleClaim,
                Code::WrongState,
                Code::NotTarget,
            ]]);
    type On = HandoffId;
    type In = wire::Decline;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Decline) -> Done<wire::Moved> {
        let proof = asked::maybe_proof(&asked)?;
        let handoff = desk.decline(id, &asked.agent, proof, asked.reason).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Release;

impl Operation for Release {
    const FACTS: Facts = finishes(
        "handoff_release",
        Has(Permission::Complete),
        "Give a claimed handoff back unfinished",
    )
    .errors(&[HELD_ERRORS]);
    type On = HandoffId;
    type In = wire::Held;
    type Out = wire::Moved;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Held) -> Done<wire::Moved> {
        let handoff = desk.release(id, proof(&asked)).await?;
        answer(shown::moved(&handoff))
    }
}

pub struct Counter;

impl Operation for Counter {
    const FACTS: Facts = manages(
        "handoff_counter",
        Has(Permission::Claim),
        "Say on which other terms an agent would take a handoff",
    )
    .errors(&[&[
        Code::HandoffNotFound,
        Code::CapabilityNotDeclared,
        Code::OtherTenant,
        Code::WrongState,
        Code::NotTarget,
        Code::AlreadyDeclined,
        Code::InvalidTerms,
        Code::TooManyCounters,
        Code::NotPermitted,
    ]]);
    type On = HandoffId;
    type In = wire::Counter;
    type Out = wire::Handoff;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Counter) -> Done<wire::Handoff> {
        let handoff = desk.counter(asked::counter(id, asked)).await?;
        answer(shown::handoff(&handoff, desk.now()))
    }
}

pub struct Reserve;

impl Operation for Reserve {
    const FACTS: Facts = manages(
        "handoff_reserve",
        Has(Permission::Complete),
        "Take files or other resources for the holder, as long as its claim holds",
    )
    .errors(&[&[
        Code::HandoffNotFound,
        Code::StaleClaim,
        Code::ReadBackNeeded,
        Code::ResourceReserved,
        Code::InvalidResource,
    ]]);
    type On = HandoffId;
    type In = wire::Reserve;
    type Out = wire::Reservations;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Reserve) -> Done<wire::Reservations> {
        reserved(desk, id, asked, true).await
    }
}

pub struct Unreserve;

impl Operation for Unreserve {
    const FACTS: Facts = manages(
        "handoff_unreserve",
        Has(Permission::Complete),
        "Give resources up before the claim ends",
    )
    .errors(&[HELD_ERRORS]);
    type On = HandoffId;
    type In = wire::Reserve;
    type Out = wire::Reservations;

    async fn run(desk: &Desk, id: HandoffId, asked: wire::Reserve) -> Done<wire::Reservations> {
        reserved(desk, id, asked, false).await
    }
}

async fn reserved(
    desk: &Desk,
    id: HandoffId,
    asked: wire::Reserve,
    wanted: bool,
) -> Done<wire::Reservations> {
    let proof = Proof { claim_id: asked.claim_id, fence: asked.fence };
    let reservation = desk.reserve(id, proof, asked.resources, wanted).await?;
    let reservations = reservation.iter().map(|it| reservation_of(it)).collect();
    answer(wire::Reservations { reservations })
}

pub struct Reservations;

impl Operation for Reservations {
    const FACTS: Facts =
        reads("reservation_list", Has(Permission::Read), "Show what holders have for themselves");
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Reservations;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Reservations> {
        let reservations = desk.reservations()?.iter().map(|it| reservation_of(it)).collect();
        answer(wire::Reservations { reservations })
    }
}

fn reservation_of(reservation: &Reservation) -> wire::Reservation {
    wire::Reservation {
        handoff_id: reservation.handoff,
        agent: reservation.agent.clone(),
        fence: reservation.fence,
        resources: reservation.resources.clone(),
    }
}
