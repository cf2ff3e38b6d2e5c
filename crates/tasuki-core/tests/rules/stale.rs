// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::{Act, Proof};
use tasuki_core::event::FailureClass;
use tasuki_core::handoff::StateName;
use tasuki_core::ids::{ClaimId, Fence, HandoffId};

use crate::support::{HOUR, MINUTE, SECOND, Stage, code, complete, fail, to, to_any};

fn every_act() -> [Act; 7] {
    [
        Act::Start,
        Act::Heartbeat,
        Act::Progress { percent: None, note: None },
        complete("done"),
        fail(FailureClass::Retryable),
        Act::Decline { reason: None },
        Act::Release,
    ]
}

/// Every act with this proof is refused and moves neither the handoff nor its task.
#[track_caller]
fn powerless(stage: &mut Stage, handoff: HandoffId, proof: Proof) {
    let (state, owner) = (stage.handoff(handoff).state.clone(), stage.owner(handoff).to_owned());
    for act in every_act() {
        assert_eq!(code(stage.act(handoff, proof, act)), "stale_claim");
        assert_eq!(stage.handoff(handoff).state, state);
        assert_eq!(stage.owner(handoff), owner);
    }
}

#[test]
fn a_wrong_claim_id_or_a_wrong_fence_is_powerless() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    powerless(&mut stage, handoff, Proof { claim_id: ClaimId(77), ..proof });
    powerless(&mut stage, handoff, Proof { fence: Fence(proof.fence.0 + 1), ..proof });
    powerless(&mut stage, handoff, Proof { fence: Fence(proof.fence.0 - 1), ..proof });
    assert_eq!(stage.story(handoff), ["transfer_offered", "claimed"]);
}

#[test]
fn a_replaced_holder_is_powerless_whether_or_not_its_successor_is_at_work() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to_any("review"), |_| {});
    let old = stage.claim(handoff, "coder");
    stage.wait_and_sweep(MINUTE);
    powerless(&mut stage, handoff, old);
    let new = stage.claim(handoff, "tester");
    powerless(&mut stage, handoff, old);
    stage.act(handoff, new, complete("done")).unwrap();
    assert_eq!(stage.state(handoff), StateName::Completed);
}

#[test]
fn a_holder_is_powerless_after_a_cancel() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    stage.cancel(handoff, "planner").unwrap();
    powerless(&mut stage, handoff, proof);
}

#[test]
fn a_late_completion_is_refused_and_recorded_once() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to_any("review"), |_| {});
    let late = stage.claim(handoff, "coder");
    stage.wait_and_sweep(MINUTE);
    let current = stage.claim(handoff, "tester");
    stage.act(handoff, current, complete("the tester's")).unwrap();

    for _ in 0..3 {
        assert_eq!(code(stage.act(handoff, late, complete("the coder's"))), "stale_claim");
    }
    let story = stage.story(handoff);
    assert_eq!(story[4..], ["completed", "late_report"], "{story:?}");
    let attempts = &stage.handoff(handoff).attempts;
    assert_eq!([attempts[0].late, attempts[1].late], [true, false]);
}

#[test]
fn a_second_and_different_result_is_refused_and_recorded() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, complete("one")).unwrap();
    assert_eq!(code(stage.act(handoff, proof, complete("two"))), "already_completed");
    assert_eq!(*stage.story(handoff).last().unwrap(), "late_report");
}

#[test]
fn a_report_from_nobody_who_ever_held_it_is_not_recorded() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let made_up = Proof { claim_id: ClaimId(77), fence: Fence(77) };
    assert_eq!(code(stage.act(handoff, made_up, complete("done"))), "stale_claim");
    assert_eq!(stage.story(handoff), ["transfer_offered"]);
}

#[test]
fn a_late_holder_whom_nobody_replaced_may_still_finish() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    stage.wait(5 * MINUTE);
    stage.act(handoff, proof, complete("done")).unwrap();
    assert_eq!(stage.state(handoff), StateName::Completed);
}

#[test]
fn nobody_finishes_past_the_hard_deadline_even_before_a_sweep() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to("coder"), |offer| offer.terms.work_ms = HOUR);
    let proof = stage.claim(handoff, "coder");
    stage.wait(HOUR - 1);
    stage.act(handoff, proof, Act::Heartbeat).unwrap();
    stage.wait(1);
    powerless(&mut stage, handoff, proof);
    assert_eq!(*stage.story(handoff).last().unwrap(), "late_report");
    stage.wait_and_sweep(SECOND);
    assert_eq!(stage.state(handoff), StateName::Pending);
}
