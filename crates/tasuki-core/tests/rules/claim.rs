// SPDX-License-Identifier: Apache-2.0
use tasuki_core::commands::{self, Act, Command};
use tasuki_core::handoff::{StateName, Status};
use tasuki_core::talk::QuestionKind;

use crate::support::{HOUR, SECOND, Stage, agent, body, code, complete, seeker, to, to_any};

#[test]
fn a_claim_sets_owner_fence_claim_id_and_lease_in_one_step() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let before = stage.handoff(handoff).fence;
    assert_eq!(stage.owner(handoff), "planner");

    stage.try_claim(handoff, "coder").unwrap();

    assert_eq!(stage.owner(handoff), "coder");
    assert_eq!(stage.story(handoff), ["transfer_offered", "claimed"]);
    let now = stage.now;
    let claim = stage.handoff(handoff).state.claim().unwrap();
    assert_eq!(claim.agent, agent("coder"));
    assert!(claim.fence > before);
    assert_eq!(claim.lease_until, now.plus_ms(30 * SECOND));
    assert_eq!(claim.hard_until, now.plus_ms(HOUR));
}

#[test]
fn one_of_many_racers_wins() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to_any("review"), |_| {});
    let results: Vec<_> =
        (0..50).map(|racer| stage.try_claim(handoff, &format!("racer-{racer}"))).collect();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.into_iter().skip(1).all(|result| code(result) == "already_claimed"));
    assert_eq!(stage.owner(handoff), "racer-0");
}

#[test]
fn only_the_agent_it_is_meant_for_takes_a_handoff() {
    let mut stage = Stage::new();
    let named = stage.offered();
    let unknown = stage.offer_to(to_any("sing"), |_| {});
    assert_eq!(code(stage.try_claim(named, "tester")), "not_target");
    assert_eq!(code(stage.try_claim(unknown, "tester")), "not_target");
    assert!(stage.claim_next("tester", 9).is_empty());
}

#[test]
fn stored_delivered_claimed_in_progress_and_done_are_told_apart() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let mut seen = vec![stage.handoff(handoff).status()];
    stage.run(Command::peek(seeker("coder"), 9)).unwrap();
    seen.push(stage.handoff(handoff).status());
    let proof = stage.claim(handoff, "coder");
    seen.push(stage.handoff(handoff).status());
    let ask = commands::Ask {
        kind: QuestionKind::Input,
        question: body("which one?"),
        answer_ms: None,
        has_default: false,
        keep_ms: None,
        by_id: false,
    };
    for act in [Act::Start, Act::Ask(ask)] {
        stage.act(handoff, proof, act).unwrap();
        seen.push(stage.handoff(handoff).status());
    }
    let (question, answer) = (body("which one?").hash, body("this one"));
    let answer = commands::Answer { handoff, question, answer, by_right: false };
    stage.run(Command::by(agent("planner"), answer)).unwrap();
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, complete("done")).unwrap();
    seen.push(stage.handoff(handoff).status());
    // The other words are for what ended without a result.
    assert_eq!(seen, Status::ALL[..6]);

    let returned = stage.offered();
    let proof = stage.claim(returned, "coder");
    stage.act(returned, proof, Act::Release).unwrap();
    assert_eq!(stage.handoff(returned).status(), Status::Delivered);
}

#[test]
fn looking_is_recorded_once_and_is_not_accepting() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    for _ in 0..2 {
        let shown = stage.run(Command::peek(seeker("coder"), 9)).unwrap();
        assert_eq!(shown.handoffs, [handoff]);
    }
    assert_eq!(stage.story(handoff), ["transfer_offered", "delivered"]);
    assert_eq!(stage.owner(handoff), "planner");
}

#[test]
fn a_claim_repeated_with_its_request_id_is_the_same_claim() {
    let mut stage = Stage::new();
    let handoffs = [stage.offered(), stage.offered()];
    let mut wish = stage.wish("coder", 2);
    wish.request_id = Some("try-1".parse().unwrap());
    assert_eq!(stage.run(Command::claim(wish.clone())).unwrap().handoffs, handoffs);
    let proof = stage.proof(handoffs[0]);
    stage.offered();

    let mut again = stage.wish("coder", 2);
    again.request_id.clone_from(&wish.request_id);
    let repeated = stage.run(Command::claim(again.clone())).unwrap();
    assert_eq!((repeated.handoffs.as_slice(), repeated.repeated), (&handoffs[..], true));
    let one = Command::claim_one(handoffs[0], again.clone());
    assert!(stage.run(one).unwrap().repeated);
    assert_eq!(stage.proof(handoffs[0]), proof);

    again.seeker = seeker("tester");
    let foreign = Command::claim_one(handoffs[0], again);
    assert_eq!(code(stage.run(foreign)), "already_claimed");
}

#[test]
fn a_claim_may_ask_for_another_lease_but_not_for_another_hard_deadline() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to("coder"), |offer| offer.terms.work_ms = 10 * SECOND);
    let mut claim = stage.wish("coder", 1);
    claim.lease_ms = Some(HOUR);
    stage.run(Command::claim_one(handoff, claim)).unwrap();
    let now = stage.now;
    let claim = stage.handoff(handoff).state.claim().unwrap();
    assert_eq!(claim.lease_ms, HOUR);
    assert_eq!(claim.ends_at(), now.plus_ms(10 * SECOND));
}

#[test]
fn nobody_is_given_work_whose_deadline_has_passed() {
    let mut stage = Stage::new();
    let soon = stage.now.plus_ms(5 * SECOND);
    let handoff = stage.offer_to(to("coder"), |offer| offer.expires_at = soon);
    stage.wait(5 * SECOND);
    assert!(stage.claim_next("coder", 1).is_empty());
    assert_eq!(code(stage.try_claim(handoff, "coder")), "deadline_passed");
    assert_eq!(stage.owner(handoff), "planner");
}

#[test]
fn an_agent_that_declined_is_not_asked_again_and_others_are() {
    let mut stage = Stage::new();
    let handoff = stage.offer_to(to_any("review"), |_| {});
    stage.decline(handoff, "coder").unwrap();
    assert!(stage.decline(handoff, "coder").unwrap().repeated);
    assert_eq!(code(stage.try_claim(handoff, "coder")), "already_declined");
    assert!(stage.claim_next("coder", 1).is_empty());
    assert_eq!(stage.claim_next("tester", 1), [handoff]);
    assert_eq!(code(stage.decline(handoff, "other")), "wrong_state");
}

#[test]
fn declining_hastens_nothing_and_costs_no_place_in_the_queue() {
    let mut stage = Stage::new();
    let soon = stage.now.plus_ms(HOUR);
    let gated = stage.offer_to(to_any("review"), |offer| offer.needs_approval = true);
    let later = stage.offer_to(to_any("review"), |offer| offer.not_before = Some(soon));
    let first = stage.offer_to(to_any("review"), |_| {});
    let second = stage.offer_to(to_any("review"), |_| {});
    for handoff in [gated, later, first] {
        stage.decline(handoff, "other").unwrap();
    }
    assert_eq!(stage.state(gated), StateName::AwaitingApproval);
    assert_eq!(stage.state(later), StateName::Scheduled);
    assert_eq!(stage.claim_next("coder", 9), [first, second]);
}

#[test]
fn the_one_agent_it_was_meant_for_makes_a_dead_letter_by_declining() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    assert_eq!(code(stage.decline(handoff, "tester")), "not_target");
    stage.decline(handoff, "coder").unwrap();
    assert_eq!(stage.state(handoff), StateName::DeadLettered);
    assert_eq!(stage.story(handoff), ["transfer_offered", "declined", "dead_lettered"]);
    assert!(stage.decline(handoff, "coder").unwrap().repeated);
}
