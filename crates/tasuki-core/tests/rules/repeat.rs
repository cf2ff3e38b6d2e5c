// SPDX-License-Identifier: Apache-2.0
//! A caller that lost a reply asks again, and nothing happens twice.

use tasuki_core::commands::{Act, Command, Offer, OpenTask};
use tasuki_core::event::FailureClass;
use tasuki_core::ids::TaskId;

use crate::support::{MINUTE, Stage, agent, body, code, complete, fail, key, to, to_any};

#[test]
fn ending_a_claim_is_safe_to_repeat() {
    let ends = [
        complete("done"),
        fail(FailureClass::Retryable),
        fail(FailureClass::Permanent),
        Act::Release,
        Act::Decline { reason: None },
        Act::Decline { reason: Some(body("not mine")) },
    ];
    for end in ends {
        let mut stage = Stage::new();
        let handoff = stage.offer_to(to_any("review"), |_| {});
        let proof = stage.claim(handoff, "coder");
        assert!(!stage.act(handoff, proof, end.clone()).unwrap().repeated);
        let events = stage.world.log.len();
        for _ in 0..2 {
            let again = stage.act(handoff, proof, end.clone()).unwrap();
            assert!(again.repeated);
            assert_eq!(again.handoffs, [handoff]);
            assert_eq!(stage.world.log.len(), events, "{end:?} was recorded twice");
        }
    }
}

#[test]
fn ending_a_claim_is_safe_to_repeat_after_somebody_else_took_over() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to_any("review"), |_| {});
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, fail(FailureClass::Unknown)).unwrap();
    stage.wait_and_sweep(MINUTE);
    stage.claim(handoff, "tester");
    assert!(stage.act(handoff, proof, fail(FailureClass::Unknown)).unwrap().repeated);
    assert_eq!(stage.owner(handoff), "tester");
}

#[test]
fn starting_twice_is_starting_once() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    assert!(!stage.act(handoff, proof, Act::Start).unwrap().repeated);
    assert!(stage.act(handoff, proof, Act::Start).unwrap().repeated);
    assert_eq!(stage.story(handoff), ["transfer_offered", "claimed", "started"]);
}

#[test]
fn the_same_key_and_request_give_the_first_outcome_again() {
    let mut stage = Stage::new();
    let task = stage.new_task(None);
    let offer = stage.offer(task, "planner", to("coder"));
    let first = stage.run(Command::offer(offer).with_key(key("k-1", "request"))).unwrap();

    let task = stage.new_task(None);
    let again = stage.offer(task, "planner", to("coder"));
    // Long after its deadline too: the answer is about the first request, not about now.
    stage.wait(100 * crate::support::DAY);
    let second = stage.run(Command::offer(again).with_key(key("k-1", "request"))).unwrap();
    assert!(second.repeated);
    assert_eq!((second.handoffs, second.task), (first.handoffs, first.task));
    assert_eq!(stage.world.handoffs.len(), 1);
}

#[test]
fn the_same_key_with_another_request_is_a_conflict() {
    let mut stage = Stage::new();
    let task = stage.new_task(None);
    let first = stage.offer(task, "planner", to("coder"));
    stage.run(Command::offer(first).with_key(key("k-1", "request"))).unwrap();
    let task = stage.new_task(None);
    let mut other = stage.offer(task, "planner", to("coder"));
    let send =
        |offer: &Offer| Command::offer(offer.clone()).with_key(key("k-1", "another request"));
    assert_eq!(code(stage.run(send(&other))), "idempotency_conflict");

    // Keys belong to the agent that chose them.
    other.from = agent("tester");
    stage.run(send(&other)).unwrap();
}

#[test]
fn opening_a_task_takes_a_key_too() {
    let mut stage = Stage::new();
    let mut open = |id: u128, request: &str| {
        let open = OpenTask {
            task: TaskId(id),
            intent: body("do it"),
            correlation_id: None,
            project: None,
            parent: None,
            coordinator: None,
            channel: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        };
        stage.run(Command::by(agent("planner"), open).with_key(key("k-1", request)))
    };
    assert_eq!(open(901, "request").unwrap().task, Some(TaskId(901)));
    let again = open(902, "request").unwrap();
    assert_eq!((again.task, again.repeated), (Some(TaskId(901)), true));
    assert_eq!(code(open(903, "another")), "idempotency_conflict");
}
