// SPDX-License-Identifier: Apache-2.0
//! Start times and deadlines.

use tasuki_core::commands::{self, Act, Command};
use tasuki_core::event::{DeadReason, FailureClass};
use tasuki_core::handoff::{State, StateName};

use crate::support::{DAY, HOUR, MINUTE, Stage, agent, body, to};

#[test]
fn a_scheduled_handoff_waits_for_its_start() {
    let mut stage = Stage::new();
    let start = stage.now.plus_ms(HOUR);
    let handoff = stage.offer_to(to("coder"), |offer| offer.not_before = Some(start));
    assert_eq!(stage.state(handoff), StateName::Scheduled);
    stage.wait_and_sweep(HOUR - 1);
    assert!(stage.claim_next("coder", 1).is_empty());
    stage.wait_and_sweep(1);
    assert_eq!(stage.claim_next("coder", 1), [handoff]);
    assert_eq!(stage.story(handoff), ["transfer_offered", "readied", "claimed"]);
}

#[test]
fn a_start_that_has_passed_is_now() {
    let mut stage = Stage::new();
    let start = stage.now;
    let handoff = stage.offer_to(to("coder"), |offer| offer.not_before = Some(start));
    assert_eq!(stage.state(handoff), StateName::Pending);
}

#[test]
fn whatever_waits_or_is_held_expires_at_its_deadline() {
    #[track_caller]
    fn check(prepare: impl FnOnce(&mut Stage, tasuki_core::HandoffId), before: StateName) {
        let mut stage = Stage::new();
        let deadline = stage.now.plus_ms(DAY);
        let handoff = stage.offer_to(to("coder"), |offer| {
            offer.expires_at = deadline;
            offer.terms.losses = 100;
            offer.needs_approval = before == StateName::AwaitingApproval;
        });
        prepare(&mut stage, handoff);
        assert_eq!(stage.state(handoff), before);
        stage.now = deadline;
        stage.sweep();
        let state = &stage.handoff(handoff).state;
        assert!(
            matches!(state, State::DeadLettered { reason: DeadReason::Expired, .. }),
            "{before}: {state:?}"
        );
        assert_eq!(stage.story(handoff).iter().rev().nth(1), Some(&"expired"));
        assert_eq!(stage.owner(handoff), "planner");
    }
    check(|_, _| {}, StateName::AwaitingApproval);
    check(|_, _| {}, StateName::Pending);
    check(
        |stage, handoff| {
            // A minute later, so that the retry would come after the deadline.
            stage.wait(MINUTE);
            let proof = stage.claim(handoff, "coder");
            let (class, failure) = (FailureClass::Retryable, body("rate limit"));
            let retry_after_ms = Some(DAY);
            let act = Act::Fail { class, failure, retry_after_ms, entropy: 0 };
            stage.act(handoff, proof, act).unwrap();
        },
        StateName::Scheduled,
    );
    check(
        |stage, handoff| {
            stage.wait(DAY - MINUTE);
            stage.claim(handoff, "coder");
        },
        StateName::Claimed,
    );
}

#[test]
fn an_approval_does_not_hasten_the_start() {
    let mut stage = Stage::new();
    let start = stage.now.plus_ms(HOUR);
    let handoff = stage.offer_to(to("coder"), |offer| {
        offer.needs_approval = true;
        offer.not_before = Some(start);
    });
    stage.run(Command::by(agent("person"), commands::Approve { handoff })).unwrap();
    assert_eq!(stage.state(handoff), StateName::Scheduled);
}
