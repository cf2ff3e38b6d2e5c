// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::Act;
use tasuki_core::event::{DeadReason, Event, FailureClass, LossCause};
use tasuki_core::handoff::{AttemptEnd, State, StateName};
use tasuki_core::ids::HandoffId;

use crate::support::{DAY, HOUR, MINUTE, SECOND, Stage, fail, to};

/// Claims and falls silent.
fn lose(stage: &mut Stage, handoff: HandoffId) {
    stage.claim(handoff, "coder");
    stage.wait_and_sweep(30 * SECOND);
}

fn causes(stage: &Stage) -> Vec<LossCause> {
    let events = stage.world.log.iter().map(|sealed| &sealed.record.event);
    events
        .filter_map(|event| match event {
            Event::LeaseLost { cause, .. } => Some(*cause),
            _ => None,
        })
        .collect()
}

#[test]
fn a_silent_holder_loses_its_lease_when_it_ends_and_not_before() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    stage.claim(handoff, "coder");
    stage.wait_and_sweep(30 * SECOND - 1);
    assert_eq!(stage.state(handoff), StateName::Claimed);
    stage.wait_and_sweep(1);
    assert_eq!(stage.state(handoff), StateName::Pending);
    assert_eq!(causes(&stage), [LossCause::Silence]);
    assert_eq!(
        stage.handoff(handoff).attempts[0].ended.as_ref().unwrap().how,
        AttemptEnd::LostSilence
    );
}

#[test]
fn a_heartbeat_extends_the_lease_and_is_no_event() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    let hard_until = stage.handoff(handoff).state.claim().unwrap().hard_until;
    for _ in 0..20 {
        stage.wait_and_sweep(29 * SECOND);
        stage.act(handoff, proof, Act::Heartbeat).unwrap();
    }
    let claim = stage.handoff(handoff).state.claim().unwrap();
    assert_eq!(claim.lease_until, stage.now.plus_ms(30 * SECOND));
    assert_eq!(claim.hard_until, hard_until);
    assert_eq!(claim.fence, proof.fence);
    assert_eq!(stage.story(handoff), ["transfer_offered", "claimed"]);
}

#[test]
fn starting_and_progress_extend_the_lease_too() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    for act in [Act::Start, Act::Progress { percent: None, note: None }] {
        stage.wait_and_sweep(29 * SECOND);
        stage.act(handoff, proof, act).unwrap();
    }
    stage.wait_and_sweep(29 * SECOND);
    assert_eq!(stage.state(handoff), StateName::InProgress);
}

#[test]
fn a_hung_worker_that_still_beats_loses_at_the_hard_deadline() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to("coder"), |offer| offer.terms.work_ms = 2 * MINUTE);
    let proof = stage.claim(handoff, "coder");
    for _ in 0..5 {
        stage.wait_and_sweep(20 * SECOND);
        stage.act(handoff, proof, Act::Heartbeat).unwrap();
    }
    stage.wait_and_sweep(20 * SECOND);
    assert_eq!(stage.state(handoff), StateName::Pending);
    assert_eq!(causes(&stage), [LossCause::HardDeadline]);
}

#[test]
fn an_attempt_ends_with_the_deadline_of_its_handoff() {
    let mut stage = Stage::new();
    let soon = stage.now.plus_ms(10 * SECOND);
    let handoff = stage.offer_to(to("coder"), |offer| offer.expires_at = soon);
    stage.claim(handoff, "coder");
    stage.wait_and_sweep(10 * SECOND);
    assert_eq!(
        stage.story(handoff)[2..],
        ["lease_lost", "expired", "dead_lettered"],
        "an expired handoff is not offered again"
    );
}

#[test]
fn losses_are_counted_apart_from_failures() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    lose(&mut stage, handoff);
    lose(&mut stage, handoff);
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, fail(FailureClass::Retryable)).unwrap();
    let counted = stage.handoff(handoff);
    assert_eq!((counted.losses, counted.failures), (2, 1));
    assert_eq!(stage.state(handoff), StateName::Scheduled);

    // A failure that is declared is a sign of life: the row of losses begins anew.
    stage.wait_and_sweep(MINUTE);
    lose(&mut stage, handoff);
    assert_eq!(stage.state(handoff), StateName::Pending);
}

#[test]
fn three_losses_in_a_row_without_progress_are_poison() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    lose(&mut stage, handoff);
    lose(&mut stage, handoff);
    assert_eq!(stage.state(handoff), StateName::Pending);
    lose(&mut stage, handoff);
    let state = &stage.handoff(handoff).state;
    assert!(
        matches!(state, State::DeadLettered { reason: DeadReason::Poison, review: None, .. }),
        "{state:?}"
    );
    assert_eq!(stage.owner(handoff), "planner");
}

#[test]
fn progress_begins_the_row_of_losses_anew() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    for _ in 0..3 {
        lose(&mut stage, handoff);
        lose(&mut stage, handoff);
        let proof = stage.claim(handoff, "coder");
        stage.act(handoff, proof, Act::Progress { percent: None, note: None }).unwrap();
        stage.act(handoff, proof, Act::Release).unwrap();
    }
    assert_eq!(stage.state(handoff), StateName::Pending);
    assert_eq!(stage.handoff(handoff).losses, 6);
}

#[test]
fn heartbeats_alone_are_no_progress() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    for _ in 0..3 {
        let proof = stage.claim(handoff, "coder");
        stage.act(handoff, proof, Act::Heartbeat).unwrap();
        stage.wait_and_sweep(HOUR);
    }
    assert_eq!(stage.state(handoff), StateName::DeadLettered);
}

#[test]
fn whatever_nobody_finishes_ends_as_a_dead_letter() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to("coder"), |offer| offer.terms.losses = 100);
    for _ in 0..10 {
        lose(&mut stage, handoff);
    }
    stage.wait_and_sweep(DAY);
    let state = &stage.handoff(handoff).state;
    assert!(matches!(state, State::DeadLettered { reason: DeadReason::Expired, .. }), "{state:?}");
}
