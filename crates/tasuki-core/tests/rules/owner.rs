// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::{Act, OfferTask};
use tasuki_core::event::FailureClass;

use crate::support::{MINUTE, Stage, code, complete, fail, to, to_any};

#[test]
fn a_task_is_handed_on_by_its_owner_only() {
    let mut stage = Stage::new();
    let task = stage.open();
    let foreign = stage.offer(OfferTask::Existing(task), "coder", to("tester"));
    let command = tasuki_core::Command::offer(foreign);
    assert_eq!(code(stage.run(command)), "not_owner");
    assert!(stage.world.handoffs.is_empty());
    assert_eq!(stage.world.tasks[&task].owner.as_str(), "planner");
}

#[test]
fn a_call_below_a_task_is_made_by_its_owner_only() {
    let mut stage = Stage::new();
    let parent = stage.open();
    let below = stage.new_task(Some(parent));
    let foreign = stage.offer(below, "coder", to("tester"));
    assert_eq!(code(stage.run(tasuki_core::Command::offer(foreign))), "not_owner");
}

#[test]
fn the_sender_owns_until_the_receiver_accepts_and_the_receiver_from_then_on() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    assert_eq!(stage.owner(handoff), "planner");
    let proof = stage.claim(handoff, "coder");
    for act in [Act::Start, Act::Heartbeat, Act::Progress { percent: Some(50), note: None }] {
        stage.act(handoff, proof, act).unwrap();
        assert_eq!(stage.owner(handoff), "coder");
    }
    stage.act(handoff, proof, complete("done")).unwrap();
    assert_eq!(stage.owner(handoff), "coder");
}

#[test]
fn a_claim_that_ends_without_a_result_gives_the_task_back_to_its_sender() {
    #[track_caller]
    fn check(end: impl FnOnce(&mut Stage, tasuki_core::HandoffId), last: &str) {
        let mut stage = Stage::new();
        let handoff = stage.offer_to(to_any("review"), |_| {});
        stage.claim(handoff, "coder");
        assert_eq!(stage.owner(handoff), "coder");
        end(&mut stage, handoff);
        assert_eq!(stage.owner(handoff), "planner");
        assert_eq!(*stage.story(handoff).last().unwrap(), last);
    }
    fn act(act: Act) -> impl FnOnce(&mut Stage, tasuki_core::HandoffId) {
        |stage, handoff| {
            let proof = stage.proof(handoff);
            stage.act(handoff, proof, act).unwrap();
        }
    }
    check(act(Act::Release), "released");
    check(act(Act::Decline { reason: None }), "declined");
    check(act(fail(FailureClass::Retryable)), "retry_scheduled");
    check(act(fail(FailureClass::Permanent)), "dead_lettered");
    check(|stage, _| stage.wait_and_sweep(MINUTE), "lease_lost");
    check(
        |stage, handoff| {
            stage.cancel(handoff, "planner").unwrap();
        },
        "cancelled",
    );
}

#[test]
fn a_task_goes_back_to_the_sender_of_the_hop_and_not_to_the_first_one() {
    let mut stage = Stage::new();
    let first = stage.offered();
    let proof = stage.claim(first, "coder");
    let task = OfferTask::Existing(stage.handoff(first).task_id);
    let next = stage.offer(task, "coder", to("tester"));
    let second = next.handoff;
    let act = Act::Complete {
        result: crate::support::body("done"),
        follow_ups: vec![next],
        checked: None,
    };
    stage.act(first, proof, act).unwrap();
    assert_eq!(stage.owner(second), "coder");
    let proof = stage.claim(second, "tester");
    assert_eq!(stage.owner(second), "tester");
    stage.act(second, proof, Act::Release).unwrap();
    assert_eq!(stage.owner(second), "coder");
}
