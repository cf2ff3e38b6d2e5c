// SPDX-License-Identifier: Apache-2.0
//! Claims that wait for work: whoever waits is woken when there is something for it, and nobody
//! sleeps on work.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tasuki_core::HandoffId;
use tasuki_engine::Granted;
use tasuki_store::Clock;
use tokio::task::JoinSet;

use crate::support::{
    MINUTE, SECOND, Stage, agent, failure, new_offer, proof, soon, to, to_any, wish,
};

fn ids(granted: &[Granted]) -> Vec<HandoffId> {
    granted.iter().map(|granted| granted.handoff.id).collect()
}

#[tokio::test]
async fn an_offer_wakes_a_waiting_claimer() {
    let stage = Stage::volatile();
    let waiting = stage.long_poll("coder", &[]);
    stage.commands(2).await;
    let id = stage.offer(to("coder")).await;
    let granted = soon(waiting).await.unwrap();
    assert_eq!(ids(&granted), [id]);
    assert_eq!(granted[0].lease_left_ms, 30 * SECOND);
    assert_eq!(granted[0].envelope.as_ref().unwrap().hash, granted[0].handoff.envelope);
}

#[tokio::test]
async fn an_offer_to_somebody_else_wakes_nobody() {
    let stage = Stage::volatile();
    let waiting = stage.long_poll("coder", &["test"]);
    stage.commands(2).await;
    stage.offer(to("tester")).await;
    stage.offer(to_any("review")).await;
    stage.offer(to_any("coder")).await;
    let id = stage.offer(to_any("test")).await;
    assert_eq!(ids(&soon(waiting).await.unwrap()), [id]);
}

#[tokio::test]
async fn a_retry_that_comes_due_wakes_a_waiting_claimer() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let granted = stage.claim_one(id, "coder").await;
    stage.engine.fail(failure(id, proof(&granted), Some(5 * SECOND))).await.unwrap();
    let waiting = stage.long_poll("coder", &[]);
    stage.commands(5).await;
    stage.clock.advance_ms(5 * SECOND);
    assert_eq!(ids(&soon(waiting).await.unwrap()), [id]);
}

#[tokio::test]
async fn a_wait_for_work_ends_at_its_deadline_and_not_before() {
    let stage = Stage::volatile();
    let engine = stage.engine.clone();
    let waiting = tokio::spawn(async move { engine.claim(wish("coder", &[], 1500)).await });
    stage.commands(2).await;
    stage.clock.advance_ms(1499);
    let id = stage.offer(to("tester")).await;
    stage.claim_one(id, "tester").await;
    assert!(!waiting.is_finished());
    stage.clock.advance_ms(1);
    assert!(soon(waiting).await.unwrap().unwrap().is_empty());
}

#[tokio::test]
async fn no_wait_is_longer_than_the_longest_that_is_allowed() {
    let stage = Stage::volatile();
    let engine = stage.engine.clone();
    let waiting = tokio::spawn(async move { engine.claim(wish("coder", &[], u64::MAX)).await });
    stage.commands(2).await;
    stage.clock.advance_ms(MINUTE);
    assert!(soon(waiting).await.unwrap().unwrap().is_empty());
}

#[tokio::test]
async fn a_claim_without_a_wait_answers_at_once() {
    let stage = Stage::volatile();
    assert!(soon(stage.engine.claim(wish("coder", &[], 0))).await.unwrap().is_empty());
}

#[tokio::test]
async fn two_waiters_get_the_two_handoffs_that_come_at_once() {
    let stage = Stage::volatile();
    let first = stage.long_poll("agent-1", &["review"]);
    let second = stage.long_poll("agent-2", &["review"]);
    stage.commands(4).await;
    let offers = vec![new_offer(to_any("review")), new_offer(to_any("review"))];
    let offered = stage.engine.offer_many(offers).await.unwrap();
    let offered: BTreeSet<_> = offered.into_iter().map(|o| o.unwrap().handoff.id).collect();
    let (first, second) = (soon(first).await.unwrap(), soon(second).await.unwrap());
    assert_eq!([ids(&first), ids(&second)].concat().into_iter().collect::<BTreeSet<_>>(), offered);
}

#[tokio::test]
async fn a_waiter_that_was_woken_for_two_things_and_takes_one_wakes_the_next() {
    let stage = Stage::volatile();
    // The first stands in two queues; both wake-ups meet it.
    let first = stage.long_poll("agent-1", &["review"]);
    stage.commands(2).await;
    let second = stage.long_poll("agent-2", &["review"]);
    stage.commands(4).await;
    let offers = vec![new_offer(to("agent-1")), new_offer(to_any("review"))];
    stage.engine.offer_many(offers).await.unwrap();
    let taken = [soon(first).await.unwrap(), soon(second).await.unwrap()].concat();
    assert_eq!(taken.len(), 2);
}

#[tokio::test]
async fn work_that_the_first_waiter_declined_wakes_the_others() {
    let stage = Stage::volatile();
    let id = stage.offer(to_any("review")).await;
    let granted = stage.claim_one(id, "agent-1").await;
    let first = stage.long_poll("agent-1", &["review"]);
    stage.commands(4).await;
    let second = stage.long_poll("agent-2", &["review"]);
    stage.commands(6).await;
    let declined = stage.engine.decline(id, agent("agent-1"), Some(proof(&granted)), None, None);
    declined.await.unwrap();
    assert_eq!(ids(&soon(second).await.unwrap()), [id]);
    assert!(!first.is_finished());
}

#[tokio::test]
async fn work_that_comes_back_wakes_those_that_may_take_it() {
    let stage = Stage::volatile();
    let id = stage.offer(to_any("review")).await;
    stage.engine.decline(id, agent("agent-1"), None, None, None).await.unwrap();
    stage.claim_one(id, "agent-3").await;
    let _first = stage.long_poll("agent-1", &["review"]);
    stage.commands(5).await;
    let second = stage.long_poll("agent-2", &["review"]);
    stage.commands(7).await;
    stage.clock.advance_ms(30 * SECOND);
    assert_eq!(ids(&soon(second).await.unwrap()), [id], "its lease was lost");
}

#[tokio::test]
async fn the_next_in_a_line_wakes_those_that_may_take_it() {
    let stage = Stage::volatile();
    let mut offered = Vec::new();
    for _ in 0..2 {
        let mut offer = new_offer(to_any("review"));
        offer.hop.ordering_key = Some("one".parse().unwrap());
        offered.push(stage.engine.offer(offer).await.unwrap().handoff.id);
    }
    stage.engine.decline(offered[1], agent("agent-1"), None, None, None).await.unwrap();
    let granted = stage.claim_one(offered[0], "agent-3").await;
    let _first = stage.long_poll("agent-1", &["review"]);
    stage.commands(6).await;
    let second = stage.long_poll("agent-2", &["review"]);
    stage.commands(8).await;
    stage.complete(&granted, Vec::new()).await.unwrap();
    assert_eq!(ids(&soon(second).await.unwrap()), [offered[1]]);
}

#[tokio::test]
async fn a_waiter_that_goes_away_takes_no_wake_up_with_it() {
    let stage = Stage::volatile();
    let first = stage.long_poll("agent-1", &["review"]);
    stage.commands(2).await;
    let second = stage.long_poll("agent-2", &["review"]);
    stage.commands(4).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let id = stage.offer(to_any("review")).await;
    assert_eq!(ids(&soon(second).await.unwrap()), [id]);
}

#[tokio::test]
async fn a_repeated_long_poll_gets_the_claim_whose_reply_was_lost() {
    let stage = Stage::volatile();
    let mut again = wish("coder", &[], MINUTE);
    again.request_id = Some("r-1".parse().unwrap());
    let id = stage.offer(to("coder")).await;
    let first = stage.engine.claim(again.clone()).await.unwrap();
    let second = stage.engine.claim(again).await.unwrap();
    assert_eq!((ids(&first), proof(&first[0])), (vec![id], proof(&second[0])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_agents_that_wait_at_once_each_get_their_own_work() {
    const AGENTS: usize = 1000;
    let stage = Stage::volatile();
    let mut waiting = JoinSet::new();
    for number in 0..AGENTS {
        let name = format!("agent-{number}");
        let poll = stage.long_poll(&name, &["review"]);
        waiting.spawn(async move { (name, poll.await.unwrap()) });
    }
    stage.commands(2 * AGENTS as u64).await;
    let offers = (0..AGENTS).map(|number| new_offer(to(&format!("agent-{number}")))).collect();
    let offered = stage.engine.offer_many(offers).await.unwrap();
    assert!(offered.iter().all(Result::is_ok));
    let mut taken = BTreeSet::new();
    for (name, granted) in soon(waiting.join_all()).await {
        assert_eq!(granted[0].handoff.to, to(&name));
        taken.insert(granted[0].handoff.id);
    }
    assert_eq!(taken.len(), AGENTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_agents_that_wait_for_the_same_each_get_one() {
    const AGENTS: usize = 1000;
    let stage = Stage::volatile();
    let mut waiting = JoinSet::new();
    for number in 0..AGENTS {
        let poll = stage.long_poll(&format!("agent-{number}"), &["review"]);
        waiting.spawn(async move { poll.await.unwrap() });
    }
    stage.commands(2 * AGENTS as u64).await;
    let mut offered = BTreeSet::new();
    for _ in 0..AGENTS {
        offered.insert(stage.offer(to_any("review")).await);
    }
    let granted = soon(waiting.join_all()).await;
    let taken: BTreeSet<_> = granted.iter().flat_map(|granted| ids(granted)).collect();
    assert_eq!(taken, offered, "no clock was needed: {}", stage.clock.now());
}

/// Agents of different abilities that wait, finish, give back and decline; senders in between. All
/// of it gets done without a look at the clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_sleeps_on_work() {
    const WORK: usize = 400;
    let stage = Stage::volatile();
    let done = Arc::new(AtomicUsize::new(0));
    let mut agents = JoinSet::new();
    for number in 0..12_usize {
        let (stage, done) = (stage.clone(), done.clone());
        agents.spawn(async move {
            let abilities: &[&str] = [&["a"][..], &["b"], &["a", "b"]][number % 3];
            let name = format!("agent-{number}");
            for turn in 0.. {
                let granted = stage.engine.claim(wish(&name, abilities, MINUTE)).await.unwrap();
                let Some(granted) = granted.first() else { return };
                let (id, proof) = (granted.handoff.id, proof(granted));
                // Three agents never decline, so that everything has a taker.
                match (number + turn) % 7 {
                    0 => drop(stage.engine.release(id, proof, None).await.unwrap()),
                    1 | 2 if number > 2 => {
                        let declined =
                            stage.engine.decline(id, agent(&name), Some(proof), None, None);
                        declined.await.unwrap();
                    }
                    _ => {
                        stage.complete(granted, Vec::new()).await.unwrap();
                        if done.fetch_add(1, Ordering::Relaxed) + 1 == WORK {
                            stage.engine.end_waits();
                        }
                    }
                }
            }
        });
    }
    for number in 0..WORK {
        stage.offer(to_any(["a", "b"][number % 2])).await;
    }
    soon(agents.join_all()).await;
    assert_eq!(done.load(Ordering::Relaxed), WORK);
}
