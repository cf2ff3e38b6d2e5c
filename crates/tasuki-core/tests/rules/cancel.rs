// SPDX-License-Identifier: Apache-2.0
//! Ending work from outside: cancelling, aborting.

use tasuki_core::commands::{self, Act, Command, OfferTask};
use tasuki_core::handoff::{AttemptEnd, State, StateName};
use tasuki_core::ids::HandoffId;
use tasuki_core::task::TaskState;

use crate::support::{Stage, agent, body, code, complete, to};

/// The planner's task, which the coder handed on to the tester, who holds it.
fn second_hop(stage: &mut Stage) -> HandoffId {
    let first = stage.offered();
    let proof = stage.claim(first, "coder");
    let task = OfferTask::Existing(stage.handoff(first).task_id);
    let next = stage.offer(task, "coder", to("tester"));
    let second = next.handoff;
    let act = Act::Complete { result: body("done"), follow_ups: vec![next], checked: None };
    stage.act(first, proof, act).unwrap();
    stage.claim(second, "tester");
    second
}

fn abort(stage: &mut Stage, handoff: HandoffId, by: &str) -> Result<bool, &'static str> {
    let command =
        Command::by(agent(by), commands::Abort { handoff, reason: Some(body("too costly")) });
    stage.run(command).map(|outcome| outcome.repeated).map_err(|refusal| refusal.code())
}

#[test]
fn the_sender_and_the_opener_cancel_and_nobody_else() {
    for (by, allowed) in [("coder", true), ("planner", true), ("tester", false), ("person", false)]
    {
        let mut stage = Stage::new();
        let handoff = second_hop(&mut stage);
        let result = stage.cancel(handoff, by);
        assert_eq!(result.is_ok(), allowed, "{by}");
        if allowed {
            assert_eq!(stage.state(handoff), StateName::Cancelled);
            assert!(stage.cancel(handoff, by).unwrap().repeated);
        } else {
            assert_eq!(code(result), "not_permitted");
            assert_eq!(stage.state(handoff), StateName::Claimed);
        }
    }
}

#[test]
fn a_cancelled_hop_leaves_the_task_with_its_sender_who_may_offer_again() {
    let mut stage = Stage::new();
    let handoff = second_hop(&mut stage);
    stage.cancel(handoff, "coder").unwrap();
    assert_eq!(stage.task_state(handoff), TaskState::Open);
    assert_eq!(stage.owner(handoff), "coder");
    let ended = stage.handoff(handoff).attempts[0].ended.as_ref().unwrap();
    assert_eq!(ended.how, AttemptEnd::Cancelled);
    let task = OfferTask::Existing(stage.handoff(handoff).task_id);
    let other = stage.offer(task, "coder", to("reviewer"));
    stage.send(other);
}

#[test]
fn cancelling_the_handoff_that_opened_a_task_ends_the_task() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    stage.cancel(handoff, "planner").unwrap();
    assert_eq!(stage.task_state(handoff), TaskState::Cancelled);
}

#[test]
fn only_the_opener_aborts_and_that_ends_handoff_and_task_as_failed() {
    let mut stage = Stage::new();
    let handoff = second_hop(&mut stage);
    for by in ["coder", "tester", "person"] {
        assert_eq!(abort(&mut stage, handoff, by), Err("not_permitted"));
    }
    assert_eq!(abort(&mut stage, handoff, "planner"), Ok(false));
    assert_eq!(abort(&mut stage, handoff, "planner"), Ok(true));
    assert!(matches!(stage.handoff(handoff).state, State::Aborted { .. }));
    assert_eq!(stage.task_state(handoff), TaskState::Failed);
    assert_eq!(stage.cancel(handoff, "planner").unwrap_err().code(), "wrong_state");
}

#[test]
fn what_has_ended_is_neither_cancelled_nor_aborted() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, complete("done")).unwrap();
    assert_eq!(code(stage.cancel(handoff, "planner")), "wrong_state");
    assert_eq!(abort(&mut stage, handoff, "planner"), Err("wrong_state"));
    assert_eq!(stage.task_state(handoff), TaskState::Completed);
}

#[test]
fn cancelling_a_task_cancels_its_live_handoff_in_the_same_step() {
    let mut stage = Stage::new();
    let handoff = second_hop(&mut stage);
    let task = stage.handoff(handoff).task_id;
    let cancel = |by: &str| {
        Command::by(agent(by), commands::CancelTask { task, reason: None, letter: None })
    };
    assert_eq!(code(stage.run(cancel("coder"))), "not_permitted");
    stage.run(cancel("planner")).unwrap();
    assert_eq!(stage.state(handoff), StateName::Cancelled);
    assert_eq!(stage.task_state(handoff), TaskState::Cancelled);
    assert_eq!(code(stage.run(cancel("planner"))), "task_finished");
}
