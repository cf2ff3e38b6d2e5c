// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::Act;
use tasuki_core::event::FailureClass;
use tasuki_core::ids::HandoffId;

use crate::support::{MINUTE, Stage, code, complete, fail, to, to_any};

fn keyed(stage: &mut Stage, key: &str) -> HandoffId {
    stage.offer_to(to_any("review"), |offer| offer.ordering_key = Some(key.parse().unwrap()))
}

#[test]
fn higher_priorities_go_first_and_equal_ones_in_the_order_they_came() {
    let mut stage = Stage::new();
    let mut with = |priority| stage.offer_to(to("coder"), |offer| offer.priority = priority);
    let (slow, first, second, urgent) = (with(0), with(5), with(5), with(9));
    assert_eq!(stage.claim_next("coder", 3), [urgent, first, second]);
    assert_eq!(stage.claim_next("coder", 3), [slow]);
}

#[test]
fn one_ordering_key_is_worked_on_one_after_the_other() {
    let mut stage = Stage::new();
    let (first, second) = (keyed(&mut stage, "account-1"), keyed(&mut stage, "account-1"));
    let other = keyed(&mut stage, "account-2");
    assert_eq!(stage.claim_next("coder", 9), [first, other]);
    assert!(stage.claim_next("tester", 9).is_empty());
    let proof = stage.proof(first);
    stage.act(first, proof, complete("done")).unwrap();
    assert_eq!(stage.claim_next("tester", 9), [second]);
}

#[test]
fn claiming_out_of_turn_is_refused() {
    let mut stage = Stage::new();
    let (first, second) = (keyed(&mut stage, "account-1"), keyed(&mut stage, "account-1"));
    assert_eq!(code(stage.try_claim(second, "coder")), "out_of_turn");
    stage.claim(first, "coder");
    assert_eq!(code(stage.try_claim(second, "tester")), "out_of_turn");
}

#[test]
fn a_retry_keeps_its_turn_and_a_dead_letter_gives_it_up() {
    let mut stage = Stage::new();
    let (first, second) = (keyed(&mut stage, "account-1"), keyed(&mut stage, "account-1"));
    let proof = stage.claim(first, "coder");
    stage.act(first, proof, fail(FailureClass::Retryable)).unwrap();
    assert_eq!(code(stage.try_claim(second, "coder")), "out_of_turn");
    stage.wait_and_sweep(MINUTE);
    let proof = stage.claim(first, "coder");
    stage.act(first, proof, fail(FailureClass::Permanent)).unwrap();
    stage.claim(second, "coder");
}

#[test]
fn the_same_key_to_another_target_is_another_queue() {
    let mut stage = Stage::new();
    keyed(&mut stage, "account-1");
    let elsewhere = stage.offer_to(to("coder"), |offer| {
        offer.ordering_key = Some("account-1".parse().unwrap());
    });
    stage.claim(elsewhere, "coder");
}

#[test]
fn work_that_was_given_back_waits_behind_what_is_ready() {
    let mut stage = Stage::new();
    let (first, second) = (stage.offered(), stage.offered());
    let proof = stage.claim(first, "coder");
    stage.act(first, proof, Act::Release).unwrap();
    assert_eq!(stage.claim_next("coder", 2), [second, first]);
}
