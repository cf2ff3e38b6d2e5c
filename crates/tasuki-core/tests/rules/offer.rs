// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::{Command, Offer, OfferTask};
use tasuki_core::handoff::PRIORITY_MAX;
use tasuki_core::ids::{HandoffId, TaskId};
use tasuki_core::task::TaskState;

use crate::support::{DAY, Stage, agent, body, code, complete, to};

fn refused(stage: &mut Stage, change: impl FnOnce(&mut Offer)) -> &'static str {
    let task = stage.new_task(None);
    let mut offer = stage.offer(task, "planner", to("coder"));
    change(&mut offer);
    code(stage.run(Command::offer(offer)))
}

#[test]
fn a_second_offer_while_one_is_live_is_refused() {
    let mut stage = Stage::new();
    let task = stage.open();
    let offer = stage.offer(OfferTask::Existing(task), "planner", to("coder"));
    let live = stage.send(offer);
    let second = stage.offer(OfferTask::Existing(task), "planner", to("tester"));
    let command = Command::offer(second.clone());
    assert_eq!(code(stage.run(command.clone())), "handoff_open");

    // The receiver owns the task while it works, and still hands it on only by completing.
    stage.claim(live, "coder");
    assert_eq!(code(stage.run(command)), "not_owner");
    let mut by_holder = second;
    by_holder.from = agent("coder");
    assert_eq!(code(stage.run(Command::offer(by_holder))), "handoff_open");
}

#[test]
fn a_finished_task_is_not_offered() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, complete("done")).unwrap();
    let task = stage.handoff(handoff).task_id;
    let offer = stage.offer(OfferTask::Existing(task), "coder", to("tester"));
    assert_eq!(code(stage.run(Command::offer(offer))), "task_finished");
    let below = stage.new_task(Some(task));
    let call = stage.offer(below, "coder", to("tester"));
    assert_eq!(code(stage.run(Command::offer(call))), "task_finished");
}

#[test]
fn an_envelope_that_does_not_follow_the_last_one_is_refused() {
    let mut stage = Stage::new();
    let task = stage.open();
    let first = stage.offer(OfferTask::Existing(task), "planner", to("coder"));
    let first = stage.send(first);
    stage.cancel(first, "planner").unwrap();
    assert_eq!(stage.task_state(first), TaskState::Open);

    let good = stage.offer(OfferTask::Existing(task), "planner", to("coder"));
    let unlinked = Offer { previous: None, ..good.clone() };
    let elsewhere = Offer { previous: Some(body("elsewhere").hash), ..good.clone() };
    let skipping = Offer { hop: 7, ..good.clone() };
    for offer in [unlinked, elsewhere, skipping] {
        assert_eq!(code(stage.run(Command::offer(offer))), "task_moved");
    }
    stage.send(good);
}

#[test]
fn what_is_not_there_is_named() {
    let mut stage = Stage::new();
    let offer = stage.offer(OfferTask::Existing(TaskId(99)), "planner", to("coder"));
    assert_eq!(code(stage.run(Command::offer(offer))), "task_not_found");
    assert_eq!(code(stage.try_claim(HandoffId(99), "coder")), "handoff_not_found");
}

#[test]
fn terms_that_cannot_hold_are_refused() {
    let mut stage = Stage::new();
    let now = stage.now;
    assert_eq!(refused(&mut stage, |o| o.expires_at = now), "deadline_passed");
    assert_eq!(refused(&mut stage, |o| o.priority = PRIORITY_MAX + 1), "invalid_terms");
    assert_eq!(refused(&mut stage, |o| o.terms.attempts = 0), "invalid_terms");
    assert_eq!(refused(&mut stage, |o| o.terms.lease_ms = 0), "invalid_terms");
    let never = now.plus_ms(DAY);
    assert_eq!(refused(&mut stage, |o| o.not_before = Some(never)), "invalid_terms");
    assert!(stage.world.log.is_empty());
}
