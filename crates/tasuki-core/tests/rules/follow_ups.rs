// SPDX-License-Identifier: Apache-2.0
//! Ending a hop and creating the next ones is one step.

use tasuki_core::commands::{Act, FOLLOW_UPS_MAX, Offer, OfferTask, Proof};
use tasuki_core::contract::{Agreement, Checked, Successors};
use tasuki_core::decide::Outcome;
use tasuki_core::event::Event;
use tasuki_core::handoff::StateName;
use tasuki_core::ids::{HandoffId, TaskId};
use tasuki_core::pipeline::StageRef;
use tasuki_core::refusal::Refusal;
use tasuki_core::task::TaskState;

use crate::support::{Stage, agent, body, code, complete, to};

/// A task that the coder holds.
struct Hop {
    stage: Stage,
    handoff: HandoffId,
    task: TaskId,
    proof: Proof,
}

impl Hop {
    fn new() -> Self {
        let mut stage = Stage::new();
        let handoff = stage.offered();
        let proof = stage.claim(handoff, "coder");
        let task = stage.handoff(handoff).task_id;
        Self { stage, handoff, task, proof }
    }

    fn transfer(&mut self, name: &str) -> Offer {
        self.stage.offer(OfferTask::Existing(self.task), "coder", to(name))
    }

    fn call(&mut self, name: &str) -> Offer {
        let task = self.stage.new_task(Some(self.task));
        self.stage.offer(task, "coder", to(name))
    }

    fn complete(&mut self, follow_ups: Vec<Offer>) -> Result<Outcome, Refusal> {
        let act = Act::Complete { result: body("done"), follow_ups, checked: None };
        self.stage.act(self.handoff, self.proof, act)
    }
}

#[test]
fn a_completion_without_follow_ups_ends_the_task() {
    let mut hop = Hop::new();
    hop.complete(Vec::new()).unwrap();
    assert_eq!(hop.stage.state(hop.handoff), StateName::Completed);
    let task = hop.stage.task(hop.handoff);
    assert_eq!((task.state, task.ended_at), (TaskState::Completed, Some(hop.stage.now)));
}

#[test]
fn a_transfer_and_calls_are_made_with_the_completion_or_not_at_all() {
    let mut hop = Hop::new();
    let (transfer, one, two) = (hop.transfer("tester"), hop.call("reviewer"), hop.call("writer"));
    let (next, calls) = (transfer.handoff, vec![one.handoff, two.handoff]);
    let before = hop.stage.world.log.len();
    hop.complete(vec![one, transfer, two]).unwrap();

    let made = &hop.stage.world.log[before..];
    let Event::Completed { next: said, calls: named, .. } = &made[0].record.event else {
        panic!("expected the completion first, found {:?}", made[0].record.event);
    };
    assert_eq!((*said, named), (Some(next), &calls));
    assert_eq!(made.len(), 4);
    assert_eq!(hop.stage.task(next).live, Some(next));
    assert_eq!(hop.stage.task_state(next), TaskState::Open);
    assert_eq!(hop.stage.owner(next), "coder", "until the tester accepts");
    assert_eq!(hop.stage.handoff(next).hop, 1);

    let mut other = Hop::new();
    let late = Offer { expires_at: other.stage.now, ..other.call("writer") };
    let good = other.transfer("tester");
    let before = other.stage.world.log.len();
    assert_eq!(code(other.complete(vec![good, late])), "deadline_passed");
    assert_eq!(other.stage.world.log.len(), before);
    assert_eq!(other.stage.state(other.handoff), StateName::Claimed);
}

#[test]
fn a_task_is_transferred_once() {
    let mut hop = Hop::new();
    let both = vec![hop.transfer("tester"), hop.transfer("writer")];
    assert_eq!(code(hop.complete(both)), "invalid_follow_ups");
    assert_eq!(hop.stage.owner(hop.handoff), "coder");
}

#[test]
fn a_follow_up_is_about_this_task() {
    let mut hop = Hop::new();
    let elsewhere = hop.stage.open();
    let mut foreign = hop.transfer("tester");
    foreign.task = OfferTask::Existing(elsewhere);
    assert_eq!(code(hop.complete(vec![foreign])), "invalid_follow_ups");

    let mut loose = hop.call("tester");
    loose.task = hop.stage.new_task(None);
    assert_eq!(code(hop.complete(vec![loose])), "invalid_follow_ups");
}

#[test]
fn a_follow_up_follows_the_envelope_of_its_hop() {
    let mut hop = Hop::new();
    let good = hop.transfer("tester");
    let unlinked = Offer { previous: None, ..good.clone() };
    let skipping = Offer { hop: 0, ..good.clone() };
    let foreign = Offer { from: agent("tester"), ..good.clone() };
    for bad in [unlinked, skipping, foreign] {
        assert_eq!(code(hop.complete(vec![bad])), "task_moved");
    }
    hop.complete(vec![good]).unwrap();
}

#[test]
fn a_follow_up_needs_no_idempotency_key_because_the_completion_is_safe_to_repeat() {
    let mut hop = Hop::new();
    let next = hop.transfer("tester");
    hop.complete(vec![next.clone()]).unwrap();
    assert!(hop.complete(vec![next]).unwrap().repeated);
}

#[test]
fn follow_ups_are_bounded() {
    let mut hop = Hop::new();
    let many = (0..=FOLLOW_UPS_MAX).map(|_| hop.call("tester")).collect();
    assert_eq!(code(hop.complete(many)), "invalid_follow_ups");
}

#[test]
fn a_call_makes_a_child_task_and_its_parent_keeps_its_owner() {
    let mut hop = Hop::new();
    let call = hop.call("tester");
    let child = hop.stage.send(call);
    assert_eq!(hop.stage.story(child), ["call_offered"]);
    assert_eq!(hop.stage.task(child).parent_task_id, Some(hop.task));
    assert_eq!(hop.stage.task(child).intent, hop.stage.task(hop.handoff).intent);

    let proof = hop.stage.claim(child, "tester");
    assert_eq!(hop.stage.owner(child), "tester");
    assert_eq!(hop.stage.owner(hop.handoff), "coder");
    hop.stage.act(child, proof, complete("checked")).unwrap();
    assert_eq!(hop.stage.task_state(child), TaskState::Completed);
    assert_eq!(hop.stage.task_state(hop.handoff), TaskState::Open);
    assert_eq!(hop.stage.state(hop.handoff), StateName::Claimed);
}

/// A stage of a declared route that the coder holds, with a schema for its result.
fn agreed() -> Hop {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to("coder"), |offer| {
        offer.contract.agreement.stage = Some(at("code"));
        offer.contract.agreement.output_schema = Some(body("schema").hash);
    });
    let proof = stage.claim(handoff, "coder");
    let task = stage.handoff(handoff).task_id;
    Hop { stage, handoff, task, proof }
}

fn at(stage: &str) -> StageRef {
    StageRef { pipeline: "endpoint".into(), version: 1, stage: stage.into(), branch: false }
}

#[test]
fn a_result_counts_only_if_it_was_held_against_what_was_agreed() {
    let mut hop = agreed();
    let agreement = hop.stage.handoff(hop.handoff).contract.agreement.clone();
    let other = Agreement { output_schema: None, ..agreement.clone() };
    let checked = |agreement: &Agreement, successors| {
        Some(Checked { agreement: agreement.clone(), successors })
    };
    let ends = || Successors::Declared(Vec::new());
    let mut next = hop.transfer("reviewer");
    next.contract.agreement.stage = Some(at("review"));
    let goes_on = || Successors::Declared(vec![at("review")]);
    for (checked, follow_ups) in [
        (None, vec![]),
        (None, vec![next.clone()]),
        (checked(&other, ends()), vec![]),
        // Nothing follows, and nobody says that the route ends here.
        (checked(&agreement, Successors::Named), vec![]),
        (checked(&agreement, goes_on()), vec![]),
        (checked(&agreement, ends()), vec![next.clone()]),
    ] {
        let act = Act::Complete { result: body("done"), follow_ups, checked };
        let refused = hop.stage.act(hop.handoff, hop.proof, act).unwrap_err();
        assert_eq!(refused, Refusal::AgreementNotChecked { handoff: hop.handoff });
        assert_eq!(hop.stage.state(hop.handoff), StateName::Claimed);
    }
    let checked = checked(&agreement, goes_on());
    let act = Act::Complete { result: body("done"), follow_ups: vec![next], checked };
    hop.stage.act(hop.handoff, hop.proof, act).unwrap();
}

#[test]
fn a_holder_that_names_what_follows_leaves_the_route() {
    let mut hop = agreed();
    let agreement = hop.stage.handoff(hop.handoff).contract.agreement.clone();
    let next = hop.transfer("reviewer");
    let checked = Some(Checked { agreement, successors: Successors::Named });
    let act = Act::Complete { result: body("done"), follow_ups: vec![next], checked };
    hop.stage.act(hop.handoff, hop.proof, act).unwrap();
}
