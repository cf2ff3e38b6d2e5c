// SPDX-License-Identifier: Apache-2.0
//! Start times and deadlines.

use tasuki_core::commands::{self, Act, Command};
use tasuki_core::contract::After;
use tasuki_core::event::{DeadReason, FailureClass, TaintPolicy};
use tasuki_core::handoff::{State, StateName};
use tasuki_core::ids::HandoffId;

use crate::support::{DAY, HOUR, MINUTE, Stage, agent, body, complete, to};

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

/// Work that waited for a task, was given its result, and is then held back because that was taken back.
fn joined_and_blocked(stage: &mut Stage) -> (HandoffId, HandoffId) {
    let first = stage.offered();
    let tasks = vec![stage.handoff(first).task_id];
    let last = stage.offer_to(to("tester"), |offer| {
        offer.contract.after = Some(After { tasks: tasks.clone(), need: 1 });
    });
    let proof = stage.claim(first, "coder");
    stage.act(first, proof, complete("done")).unwrap();
    stage.run(Command::of_broker(commands::Join::new(last, tasks, [first]))).unwrap();
    assert_eq!(stage.state(last), StateName::Pending);
    let (from, task) = (stage.handoff(first).task_id, stage.handoff(last).task_id);
    let retract = commands::Retract {
        handoff: first,
        reason: body("it was wrong"),
        policy: TaintPolicy::Block,
        above: None,
    };
    stage.run(Command::by(agent("coder"), retract)).unwrap();
    stage
        .run(Command::of_broker(commands::SpreadTaint {
            from,
            to: vec![task],
            sources: Vec::new(),
        }))
        .unwrap();
    assert_eq!(stage.state(last), StateName::AwaitingApproval);
    (first, last)
}

#[test]
fn what_has_gone_on_after_its_tasks_does_not_wait_for_them_again() {
    let mut stage = Stage::new();
    let (source, last) = joined_and_blocked(&mut stage);
    let (task, reason) = (stage.handoff(last).task_id, body("looked at it"));
    let clear = commands::ClearTaint { task, source, reason, by_right: false };
    stage.run(Command::by(agent("planner"), clear)).unwrap();
    assert_eq!(stage.state(last), StateName::Pending);
    assert_eq!(stage.claim_next("tester", 1), [last]);

    let mut stage = Stage::new();
    let (_, last) = joined_and_blocked(&mut stage);
    stage.run(Command::by(agent("person"), commands::Approve { handoff: last })).unwrap();
    assert_eq!(stage.claim_next("tester", 1), [last]);
}
