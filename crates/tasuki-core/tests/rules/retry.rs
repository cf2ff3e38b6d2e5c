// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::Act;
use tasuki_core::event::{DeadReason, FailureClass};
use tasuki_core::handoff::{ATTEMPTS_KEPT_MAX, State, StateName};
use tasuki_core::ids::HandoffId;

use crate::support::{MINUTE, SECOND, Stage, body, code, fail, to};

fn attempt(stage: &mut Stage, handoff: HandoffId, class: FailureClass) {
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, fail(class)).unwrap();
}

#[track_caller]
fn dead(stage: &Stage, handoff: HandoffId, expected: DeadReason) {
    match stage.handoff(handoff).state {
        State::DeadLettered { reason, review: None, .. } => assert_eq!(reason, expected),
        ref other => panic!("expected a dead letter, found {other:?}"),
    }
}

#[test]
fn there_are_three_attempts_in_all_and_no_pause_after_the_last() {
    for class in [FailureClass::Retryable, FailureClass::Unknown] {
        let mut stage = Stage::new();
        let handoff = stage.offered();
        for _ in 0..2 {
            attempt(&mut stage, handoff, class);
            assert_eq!(stage.state(handoff), StateName::Scheduled);
            stage.wait_and_sweep(MINUTE);
            assert_eq!(stage.state(handoff), StateName::Pending);
        }
        attempt(&mut stage, handoff, class);
        dead(&stage, handoff, DeadReason::AttemptsExhausted);
        let scheduled = stage.story(handoff).iter().filter(|k| **k == "retry_scheduled").count();
        assert_eq!(scheduled, 2);
        assert_eq!(stage.handoff(handoff).attempts.len(), 3);
    }
}

#[test]
fn a_permanent_failure_is_a_dead_letter_at_once() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    attempt(&mut stage, handoff, FailureClass::Permanent);
    dead(&stage, handoff, DeadReason::PermanentFailure);
    assert_eq!(stage.story(handoff)[2..], ["attempt_failed", "dead_lettered"]);
}

#[test]
fn the_pause_before_a_retry_is_drawn_between_nothing_and_two_to_the_power_of_the_failures() {
    let pauses = [0, 1, 999, 2000, 2001, u64::MAX].map(|entropy| {
        let mut stage = Stage::new();
        let handoff = stage.offered();
        let proof = stage.claim(handoff, "coder");
        let class = FailureClass::Retryable;
        let act = Act::Fail { class, failure: body("no"), retry_after_ms: None, entropy };
        stage.act(handoff, proof, act).unwrap();
        match stage.handoff(handoff).state {
            State::Scheduled { due } => due.ms_after(stage.now),
            ref other => panic!("expected a scheduled retry, found {other:?}"),
        }
    });
    assert_eq!(pauses[..5], [0, 1, 999, 2000, 0]);
    assert!(pauses[5] <= 2 * SECOND);
}

#[test]
fn a_retry_comes_when_the_failing_agent_asked_for_it() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    let class = FailureClass::Retryable;
    let retry_after_ms = Some(5 * MINUTE);
    let act = Act::Fail { class, failure: body("rate limit"), retry_after_ms, entropy: 7 };
    stage.act(handoff, proof, act).unwrap();

    stage.wait_and_sweep(5 * MINUTE - 1);
    assert_eq!(code(stage.try_claim(handoff, "coder")), "wrong_state");
    stage.wait_and_sweep(1);
    let again = stage.claim(handoff, "coder");
    assert!(again.fence > proof.fence);
}

#[test]
fn a_retry_keeps_the_envelope_and_the_hop() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let (envelope, hop) = (stage.envelope(handoff), stage.handoff(handoff).hop);
    attempt(&mut stage, handoff, FailureClass::Retryable);
    stage.wait_and_sweep(MINUTE);
    stage.claim(handoff, "coder");
    assert_eq!((stage.envelope(handoff), stage.handoff(handoff).hop), (envelope, hop));
    assert_eq!(stage.handoff(handoff).claims, 2);
}

#[test]
fn a_handoff_counts_all_its_attempts_and_remembers_the_last_ones() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    for _ in 0..40 {
        let proof = stage.claim(handoff, "coder");
        stage.act(handoff, proof, Act::Release).unwrap();
    }
    let attempts = &stage.handoff(handoff).attempts;
    assert_eq!((stage.handoff(handoff).claims, attempts.len()), (40, ATTEMPTS_KEPT_MAX));
    assert_eq!(attempts.last().unwrap().number, 40);
}

#[test]
fn terms_say_how_often_it_is_tried() {
    let mut stage = Stage::new();
    let once = stage.offer_to(to("coder"), |offer| offer.terms.attempts = 1);
    attempt(&mut stage, once, FailureClass::Retryable);
    dead(&stage, once, DeadReason::AttemptsExhausted);
}
