// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::{self, Act, Command, OfferTask};
use tasuki_core::event::{DeadReason, FailureClass};
use tasuki_core::handoff::{Review, State, StateName};
use tasuki_core::ids::HandoffId;
use tasuki_core::task::TaskState;

use crate::support::{DAY, HOUR, Stage, body, code, complete, fail, to, to_any};

fn dead_letter(stage: &mut Stage) -> HandoffId {
    let handoff = stage.offered();
    stage.kill(handoff);
    assert_eq!(stage.task_state(handoff), TaskState::DeadLettered);
    handoff
}

/// Offers a task again, from its owner to the coder.
fn offer_again(stage: &mut Stage, after: HandoffId) -> HandoffId {
    let task = stage.task(after);
    let (task, owner) = (task.id, task.owner.clone());
    let offer = stage.offer(OfferTask::Existing(task), owner.as_str(), to("coder"));
    stage.send(offer)
}

fn finish(stage: &mut Stage, handoff: HandoffId) {
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, complete("done")).unwrap();
}

#[test]
fn a_redrive_is_a_new_handoff_with_the_same_envelope() {
    let mut stage = Stage::new();
    let old = dead_letter(&mut stage);
    stage.wait(3 * DAY);
    let outcome = stage.redrive(old).unwrap();
    let new = outcome.handoffs[0];

    assert_ne!(new, old);
    assert_eq!(stage.state(new), StateName::Pending);
    assert_eq!(stage.task_state(new), TaskState::Open);
    let (was, is) = (stage.handoff(old), stage.handoff(new));
    assert_eq!((is.envelope, is.envelope_pos, is.hop), (was.envelope, was.envelope_pos, was.hop));
    assert_eq!((is.redrive_of, is.failures), (Some(old), 0));
    assert_eq!(is.expires_at, stage.now.plus_ms(DAY), "it gets as much time as the first one");
    finish(&mut stage, new);
    assert_eq!(stage.task_state(new), TaskState::Completed);
}

#[test]
fn redriving_twice_is_redriving_once() {
    let mut stage = Stage::new();
    let old = dead_letter(&mut stage);
    let first = stage.redrive(old).unwrap();
    let second = stage.redrive(old).unwrap();
    assert_eq!((first.repeated, second.repeated), (false, true));
    assert_eq!(first.handoffs, second.handoffs);
    assert_eq!(stage.world.handoffs.len(), 2);
    assert_eq!(code(stage.discard(old)), "already_reviewed");
}

#[test]
fn a_discard_ends_the_task_as_failed() {
    let mut stage = Stage::new();
    let handoff = dead_letter(&mut stage);
    stage.discard(handoff).unwrap();
    assert_eq!(stage.task_state(handoff), TaskState::Failed);
    let state = &stage.handoff(handoff).state;
    assert!(
        matches!(state, State::DeadLettered { review: Some(Review::Discarded { .. }), .. }),
        "{state:?}"
    );
    assert!(stage.discard(handoff).unwrap().repeated);
    assert_eq!(code(stage.redrive(handoff)), "already_reviewed");
}

#[test]
fn only_dead_letters_are_reviewed() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    assert_eq!(code(stage.redrive(handoff)), "not_dead_lettered");
    assert_eq!(code(stage.discard(handoff)), "not_dead_lettered");
    stage.cancel(handoff, "planner").unwrap();
    assert_eq!(code(stage.discard(handoff)), "not_dead_lettered");
}

#[test]
fn a_dead_letter_whose_task_goes_on_by_another_handoff_waits_its_turn() {
    let mut stage = Stage::new();
    let old = dead_letter(&mut stage);
    let new = offer_again(&mut stage, old);
    assert_eq!(code(stage.redrive(old)), "handoff_open");
    finish(&mut stage, new);
    assert_eq!(code(stage.redrive(old)), "task_finished");
}

#[test]
fn discarding_an_old_dead_letter_leaves_a_task_alone_that_went_on() {
    let mut stage = Stage::new();
    let old = dead_letter(&mut stage);
    let new = offer_again(&mut stage, old);
    let mut during = stage.clone();
    during.discard(old).unwrap();
    assert_eq!(during.task_state(new), TaskState::Open);
    finish(&mut during, new);

    finish(&mut stage, new);
    stage.discard(old).unwrap();
    assert_eq!(stage.task_state(new), TaskState::Completed);
}

#[test]
fn a_task_with_two_dead_letters_fails_when_the_last_one_is_discarded() {
    let mut stage = Stage::new();
    let old = dead_letter(&mut stage);
    let new = offer_again(&mut stage, old);
    stage.kill(new);
    stage.discard(old).unwrap();
    assert_eq!(stage.task_state(new), TaskState::DeadLettered);
    stage.discard(new).unwrap();
    assert_eq!(stage.task_state(new), TaskState::Failed);
}

#[test]
fn discarding_a_dead_letter_of_a_cancelled_task_leaves_it_cancelled() {
    let mut stage = Stage::new();
    let handoff = dead_letter(&mut stage);
    let (task, by) = (stage.handoff(handoff).task_id, crate::support::agent("planner"));
    stage.run(Command::by(by, commands::CancelTask { task, reason: None, letter: None })).unwrap();
    stage.discard(handoff).unwrap();
    assert_eq!(stage.task_state(handoff), TaskState::Cancelled);
}

#[test]
fn a_redrive_takes_a_task_from_nobody_who_owns_it_by_now() {
    let mut stage = Stage::new();
    let old = dead_letter(&mut stage);
    // The planner finds another way, and the coder hands the task on; that hop dies too.
    let again = offer_again(&mut stage, old);
    let proof = stage.claim(again, "coder");
    let task = stage.handoff(again).task_id;
    let next = stage.offer(OfferTask::Existing(task), "coder", to("coder"));
    let last = next.handoff;
    let act = Act::Complete { result: body("half"), follow_ups: vec![next], checked: None };
    stage.act(again, proof, act).unwrap();
    let proof = stage.claim(last, "coder");
    stage.act(last, proof, fail(FailureClass::Permanent)).unwrap();
    assert_eq!(stage.owner(last), "coder");

    assert_eq!(code(stage.redrive(old)), "not_owner");
    stage.wait(HOUR);
    stage.redrive(last).unwrap();
}

#[test]
fn cancelling_a_redriven_handoff_ends_the_task_that_the_first_one_opened() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    stage.kill(handoff);
    let again = stage.redrive(handoff).unwrap().handoffs[0];
    stage.cancel(again, "planner").unwrap();
    assert_eq!(stage.task_state(again), TaskState::Cancelled);
}

#[test]
fn a_handoff_that_nobody_wants_is_a_dead_letter() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to_any("review"), |_| ());
    for number in 1..=256 {
        assert_eq!(stage.state(handoff), StateName::Pending);
        stage.decline(handoff, &format!("agent-{number}")).unwrap();
    }
    let state = &stage.handoff(handoff).state;
    assert!(matches!(state, State::DeadLettered { reason: DeadReason::Declined, .. }), "{state:?}");
}
