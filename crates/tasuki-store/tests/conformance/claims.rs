// SPDX-License-Identifier: Apache-2.0
//! Who gets what, and in which order.

use tasuki_core::HandoffId;
use tasuki_core::commands::{self, Act, Command};

use crate::stage::{Stage, code};
use crate::support::{agent, complete, seeker, to, to_any};

pub(crate) async fn work_is_claimed_by_priority_and_then_first_come(stage: Stage) {
    let mut by_priority = Vec::new();
    for (place, priority) in [5, 9, 5, 0, 9, 5].into_iter().enumerate() {
        // Own work and work for a capability stand in one order.
        let target = if place % 2 == 0 { to("coder") } else { to_any("review") };
        let id = stage.offer_to(target, |offer| offer.priority = priority).await;
        by_priority.push((priority, place, id));
    }
    by_priority.sort_by_key(|(priority, place, _)| (9 - *priority, *place));
    let expected: Vec<HandoffId> = by_priority.into_iter().map(|(.., id)| id).collect();
    let mut claimed = stage.claim_next("coder", 2).await;
    claimed.extend(stage.claim_next("coder", 1).await);
    claimed.extend(stage.claim_next("coder", 100).await);
    assert_eq!(claimed, expected);
    assert!(stage.claim_next("coder", 1).await.is_empty());
}

pub(crate) async fn senders_to_one_target_take_turns_however_much_one_of_them_sends(stage: Stage) {
    let offers = |name: &'static str, count: usize| {
        let offer = |_| {
            let mut offer = stage.offer(to_any("review"));
            offer.from = agent(name);
            Command::offer(offer)
        };
        let commands: Vec<_> = (0..count).map(offer).collect();
        let sent = stage.store.execute(commands);
        async {
            let sent = sent.await.unwrap();
            sent.into_iter().map(|done| done.unwrap().outcome.handoffs[0]).collect::<Vec<_>>()
        }
    };
    let next = || async { stage.claim_next("coder", 1).await[0] };
    let flood = offers("planner", 40).await;
    assert_eq!(stage.claim_next("coder", 3).await, flood[..3], "alone it has every turn");
    let quiet = offers("tester", 3).await;
    let quieter = offers("writer", 1).await;
    // From here on each has one turn in each round, and the flood keeps its own order.
    for expected in [flood[3], quiet[0], quieter[0], flood[4], quiet[1], flood[5], quiet[2]] {
        assert_eq!(next().await, expected);
    }
    // Who sends one at a time, each when the last is taken, gets every other turn and no more.
    for round in 0..4 {
        let one = offers("tester", 1).await[0];
        assert_eq!([next().await, next().await], [flood[6 + round], one]);
    }
    // More of the flood, and what comes back to it, goes behind all that it has sent.
    let more = offers("planner", 1).await[0];
    let held = crate::stage::proof_of(&*stage.handoff(flood[0]).await);
    stage.act(flood[0], held, Act::Release).await.unwrap();
    let last = offers("writer", 2).await;
    let rest = stage.claim_next("coder", 100).await;
    assert_eq!(rest[..4], [flood[10], last[0], flood[11], last[1]]);
    assert_eq!(rest[rest.len() - 2..], [more, flood[0]]);
    assert_eq!(rest.len(), 30 + 2 + 2);
}

pub(crate) async fn two_targets_of_one_agent_do_not_starve_each_other(stage: Stage) {
    let mut flood = Vec::new();
    for _ in 0..10 {
        flood.push(stage.offer_to(to_any("review"), |_| {}).await);
    }
    let own = stage.offered().await;
    // However much comes after it, what came before goes first and what came later does not.
    for count in 0..12 {
        flood.push(stage.offer_to(to_any("review"), |_| {}).await);
        let expected = if count == 10 { own } else { flood[count - usize::from(count > 10)] };
        assert_eq!(stage.claim_next("coder", 1).await, [expected], "{count}");
    }
}

pub(crate) async fn work_that_comes_back_goes_to_the_end_of_its_line(stage: Stage) {
    let (first, second) = (stage.offered().await, stage.offered().await);
    let proof = stage.claim(first, "coder").await;
    stage.act(first, proof, Act::Release).await.unwrap();
    assert_eq!(stage.claim_next("coder", 2).await, [second, first]);
}

pub(crate) async fn an_ordering_key_lets_one_go_at_a_time(stage: Stage) {
    let ordered = |key: &'static str| {
        stage.offer_to(to_any("review"), move |offer| {
            offer.ordering_key = Some(key.parse().unwrap());
        })
    };
    let (first, other) = (ordered("a").await, ordered("b").await);
    let second = ordered("a").await;
    // Higher priority does not jump the line of its own key.
    let third = stage.offer_to(to_any("review"), |offer| {
        offer.ordering_key = Some("a".parse().unwrap());
        offer.priority = 9;
    });
    let third = third.await;

    assert_eq!(stage.claim_next("coder", 10).await, [first, other]);
    assert_eq!(code(stage.try_claim(second, "coder").await), "out_of_turn");
    assert!(stage.claim_next("coder", 10).await.is_empty());

    let proof = crate::stage::proof_of(&*stage.handoff(first).await);
    stage.act(first, proof, Act::Start).await.unwrap();
    stage.act(first, proof, Act::Heartbeat).await.unwrap();
    assert!(stage.claim_next("coder", 10).await.is_empty(), "work under way blocks its line");
    stage.act(first, proof, Act::Release).await.unwrap();
    assert_eq!(stage.claim_next("coder", 10).await, [first], "it keeps its turn");
    let proof = crate::stage::proof_of(&*stage.handoff(first).await);
    stage.act(first, proof, complete("done")).await.unwrap();

    assert_eq!(stage.claim_next("coder", 10).await, [second]);
    let cancel = Command::by(agent("planner"), commands::Cancel { handoff: second, reason: None });
    stage.run(cancel).await.unwrap();
    assert_eq!(stage.claim_next("coder", 10).await, [third]);
}

pub(crate) async fn a_claim_is_safe_to_repeat_with_its_request_id(stage: Stage) {
    let mut offered = Vec::new();
    for _ in 0..3 {
        offered.push(stage.offered().await);
    }
    let ask = |count| {
        let mut wish = stage.wish("coder", count);
        wish.request_id = Some("r-1".parse().unwrap());
        stage.run(Command::claim(wish))
    };
    let first = ask(2).await.unwrap();
    let again = ask(2).await.unwrap();
    assert!(again.outcome.repeated);
    assert_eq!(first.handoffs, again.handoffs, "the same claims with the same fences");
    assert_eq!(first.outcome.handoffs, offered[..2]);

    for handoff in &first.handoffs {
        let proof = crate::stage::proof_of(handoff);
        stage.act(handoff.id, proof, complete("done")).await.unwrap();
    }
    assert_eq!(ask(2).await.unwrap().outcome.handoffs, offered[2..], "a new claim");
}

pub(crate) async fn who_declined_is_not_asked_again(stage: Stage) {
    let id = stage.offer_to(to_any("review"), |_| {}).await;
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, Act::Decline { reason: None }).await.unwrap();
    assert!(stage.claim_next("coder", 1).await.is_empty());
    assert_eq!(code(stage.try_claim(id, "coder").await), "already_declined");
    assert_eq!(stage.claim_next("tester", 1).await, [id]);
}

pub(crate) async fn looking_is_recorded_once_and_claims_nothing(stage: Stage) {
    let id = stage.offered().await;
    for _ in 0..2 {
        let peek = Command::peek(seeker("coder"), 10);
        assert_eq!(stage.run(peek).await.unwrap().outcome.handoffs, [id]);
    }
    assert_eq!(stage.story(id).await, ["transfer_offered", "delivered"]);
    assert_eq!(stage.claim_next("coder", 1).await, [id]);
}
