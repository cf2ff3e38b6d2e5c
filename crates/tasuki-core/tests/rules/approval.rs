// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::{self, Command};
use tasuki_core::event::DeadReason;
use tasuki_core::handoff::{State, StateName};
use tasuki_core::ids::HandoffId;

use crate::support::{MINUTE, Stage, agent, code, to};

fn gated(stage: &mut Stage) -> HandoffId {
    stage.offer_to(to("coder"), |offer| offer.needs_approval = true)
}

#[test]
fn a_gated_handoff_waits_for_an_approval() {
    let mut stage = Stage::new();
    let handoff = gated(&mut stage);
    assert_eq!(stage.state(handoff), StateName::AwaitingApproval);
    assert!(stage.claim_next("coder", 1).is_empty());
    stage.run(Command::by(agent("person"), commands::Approve { handoff })).unwrap();
    assert_eq!(stage.claim_next("coder", 1), [handoff]);
}

#[test]
fn nobody_approves_what_it_asked_for_itself() {
    let mut stage = Stage::new();
    let handoff = gated(&mut stage);
    for command in [
        Command::by(agent("planner"), commands::Approve { handoff }),
        Command::by(
            agent("planner"),
            commands::Reject { handoff, reason: crate::support::body("no") },
        ),
    ] {
        assert_eq!(code(stage.run(command)), "not_permitted");
    }
    assert_eq!(stage.state(handoff), StateName::AwaitingApproval);
}

#[test]
fn a_rejected_handoff_is_a_dead_letter_and_needs_an_approval_again() {
    let mut stage = Stage::new();
    let handoff = gated(&mut stage);
    stage
        .run(Command::by(
            agent("person"),
            commands::Reject { handoff, reason: crate::support::body("no") },
        ))
        .unwrap();
    let state = &stage.handoff(handoff).state;
    assert!(matches!(state, State::DeadLettered { reason: DeadReason::Rejected, .. }), "{state:?}");
    let again = stage.redrive(handoff).unwrap().handoffs[0];
    assert_eq!(stage.state(again), StateName::AwaitingApproval);
}

#[test]
fn what_nobody_approved_in_time_needs_an_approval_again() {
    let mut stage = Stage::new();
    let handoff = gated(&mut stage);
    assert_eq!(code(stage.try_claim(handoff, "coder")), "wrong_state");
    stage.wait_and_sweep(48 * 60 * MINUTE);
    assert_eq!(stage.state(handoff), StateName::DeadLettered);
    let again = stage.redrive(handoff).unwrap().handoffs[0];
    assert_eq!(stage.state(again), StateName::AwaitingApproval);
    stage.run(Command::by(agent("person"), commands::Approve { handoff: again })).unwrap();
    stage.kill(again);
    let last = stage.redrive(again).unwrap().handoffs[0];
    assert_eq!(stage.state(last), StateName::Pending, "an approval holds for what was approved");
}

#[test]
fn what_does_not_wait_for_an_approval_cannot_be_approved() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let by = agent("person");
    assert_eq!(
        code(stage.run(Command::by(by.clone(), commands::Approve { handoff }))),
        "wrong_state"
    );
    assert_eq!(
        code(stage.run(Command::by(
            by,
            commands::Reject { handoff, reason: crate::support::body("no") }
        ))),
        "wrong_state"
    );
}
