// SPDX-License-Identifier: Apache-2.0
//! Claiming: one winner, in order, safe to repeat, and worth waiting for.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    Held, LEASE, SECOND, Served, Stage, in_time, merged, offer, on_both_stores, text,
};

on_both_stores! {
    of_fifty_racers_one_wins_and_the_others_hear_why
    work_is_claimed_by_priority_and_then_first_come
    a_claim_is_safe_to_repeat_with_its_request_id
    only_whom_it_is_meant_for_may_claim
    a_claim_that_waits_is_answered_when_work_comes
    a_claim_that_waits_is_answered_when_a_lease_is_lost
    a_claim_that_waits_in_vain_is_answered_with_nothing
    one_handoff_wakes_one_of_many_waiting_claims
}

async fn of_fifty_racers_one_wins_and_the_others_hear_why(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let racers = (0..50).map(|number| {
        let (stage, id) = (stage.clone(), id.clone());
        tokio::spawn(async move { stage.claim_one(&id, &format!("racer-{number}")).await })
    });
    let replies: Vec<_> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    let (winners, losers): (Vec<_>, Vec<_>) = replies.into_iter().partition(|r| r.status == 200);
    assert_eq!((winners.len(), losers.len()), (1, 49));
    for loser in losers {
        assert_eq!(loser.refused(409, "already_claimed")["details"]["state"], "claimed");
    }
    let winner = Held::of(&winners[0].body);
    assert_eq!(stage.completed(&winner).await["state"], "completed");
    assert_eq!(stage.story(&id).await, ["transfer_offered", "claimed", "completed"]);
}

fn ids(claims: &Value) -> Vec<&str> {
    let claims = claims["claims"].as_array().unwrap();
    claims.iter().map(|claim| claim["handoff_id"].as_str().unwrap()).collect()
}

async fn work_is_claimed_by_priority_and_then_first_come(stage: Stage) {
    let first = stage.offer("coder", json!({})).await;
    let low = stage.offer("coder", json!({ "priority": 0 })).await;
    let second = stage.offer("*review", json!({})).await;
    let high = stage.offer("*review", json!({ "priority": 9 })).await;
    let other = stage.offer("tester", json!({})).await;
    let wish = json!({ "agent": "coder", "capabilities": ["review", "nothing"], "max": 3 });
    let claims = stage.post("/v1/claims", wish.clone()).await.done();
    assert_eq!(ids(&claims), [&*high, &*first, &*second]);
    let claims = stage.post("/v1/claims", wish.clone()).await.done();
    assert_eq!(ids(&claims), [&*low]);
    assert_eq!(stage.is(&other).await.0, "pending");
    for max in [0, 101] {
        let wish = merged(wish.clone(), json!({ "max": max }));
        stage.post("/v1/claims", wish).await.refused(400, "invalid_request");
    }
    let many: Vec<_> = (0..101).map(|number| format!("c{number}")).collect();
    let wish = merged(wish, json!({ "capabilities": many }));
    stage.post("/v1/claims", wish).await.refused(400, "invalid_request");
}

async fn a_claim_is_safe_to_repeat_with_its_request_id(stage: Stage) {
    for _ in 0..3 {
        stage.offer("coder", json!({})).await;
    }
    let wish = json!({ "agent": "coder", "max": 2, "request_id": "r-1" });
    let first = stage.post("/v1/claims", wish.clone()).await.done();
    let again = stage.post("/v1/claims", wish.clone()).await.done();
    assert_eq!((ids(&first).len(), &first), (2, &again));
    let other = merged(wish, json!({ "request_id": "r-2" }));
    let other = stage.post("/v1/claims", other).await.done();
    assert_eq!(ids(&other).len(), 1);

    let path = format!("/v1/handoffs/{}/claim", ids(&other)[0]);
    let wish = json!({ "agent": "coder", "request_id": "r-2" });
    let again = stage.post(&path, wish.clone()).await.done();
    assert_eq!(again["claim_id"], other["claims"][0]["claim_id"]);
    let stranger = merged(wish, json!({ "agent": "tester" }));
    stage.post(&path, stranger).await.refused(409, "already_claimed");
}

async fn only_whom_it_is_meant_for_may_claim(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    stage.claim_one(&id, "tester").await.refused(403, "not_target");
    let able = stage.offer("*deploy", json!({})).await;
    stage.claim_one(&able, "coder").await.refused(403, "not_target");
    let unknown = "handoff_00000000000000000000000007";
    stage.claim_one(unknown, "coder").await.refused(404, "handoff_not_found");
}

/// A claim that waits, once it is certain to wait.
async fn waiting(stage: &Stage, agent: &str) -> tokio::task::JoinHandle<Value> {
    let wish = json!({ "agent": agent, "capabilities": ["review"], "wait_ms": 60 * SECOND });
    let before = stage.store.stats().commands;
    let claim = {
        let stage = stage.clone();
        tokio::spawn(async move { stage.post("/v1/claims", wish).await.done() })
    };
    // It looks once without listening, then listens and looks again: after that it waits.
    in_time(async {
        while stage.store.stats().commands < before + 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    claim
}

async fn a_claim_that_waits_is_answered_when_work_comes(stage: Stage) {
    for to in ["coder", "*review"] {
        let claim = waiting(&stage, "coder").await;
        let id = stage.offer(to, json!({})).await;
        assert_eq!(ids(&claim.await.unwrap()), [&*id]);
    }
}

async fn a_claim_that_waits_is_answered_when_a_lease_is_lost(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let lost = stage.claimed(&id, "coder").await;
    let claim = waiting(&stage, "tester").await;
    stage.pass(LEASE).await;
    let claims = claim.await.unwrap();
    assert_eq!(ids(&claims), [&*id]);
    assert!(Held::of(&claims["claims"][0]).fence > lost.fence);
}

async fn a_claim_that_waits_in_vain_is_answered_with_nothing(stage: Stage) {
    let claim = waiting(&stage, "coder").await;
    stage.pass(60 * SECOND - 1).await;
    assert!(!claim.is_finished());
    stage.pass(1).await;
    assert_eq!(ids(&claim.await.unwrap()), [""; 0]);
    let endless = json!({ "agent": "coder", "wait_ms": 1_u64 << 50 });
    let claim = {
        let stage = stage.clone();
        tokio::spawn(async move { stage.post("/v1/claims", endless).await.done() })
    };
    // The longest wait is a minute, whatever is asked for.
    while !claim.is_finished() {
        stage.pass(60 * SECOND).await;
        tokio::task::yield_now().await;
    }
}

async fn one_handoff_wakes_one_of_many_waiting_claims(stage: Stage) {
    let mut claims = Vec::new();
    for number in 0..200 {
        claims.push(waiting(&stage, &format!("agent-{number}")).await);
    }
    let before = stage.store.stats().commands;
    let id = stage.offer("*review", json!({})).await;
    let (first, _, others) = futures::future::select_all(claims).await;
    assert_eq!(ids(&first.unwrap()), [&*id]);
    // The offer, the winner's claim, and one more whom the winner woke in case it left something.
    stage.post("/v1/claims/peek", json!({ "agent": "nobody" })).await.done();
    let woken = stage.store.stats().commands - before;
    assert!(woken <= 6, "{woken} commands for one handoff");
    stage.engine.end_waits();
    for other in others {
        assert_eq!(ids(&other.await.unwrap()), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_claimer_that_hung_up_while_waiting_goes_to_another() {
    let served = Served::start(Stage::volatile().await).await;
    let stage = served.stage.clone();
    let wish = json!({ "agent": "coder", "wait_ms": 60 * SECOND });
    let before = stage.store.stats().commands;
    let gone = tokio::spawn(served.http.post(served.url("/v1/claims")).json(&wish).send());
    in_time(async {
        while stage.store.stats().commands < before + 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let claim = waiting(&stage, "coder").await;
    let offered = served.post("/v1/handoffs", &offer("coder", json!({}))).await.done();
    // The one that hung up may have been woken in its last moment: then its lease runs out.
    let claims = in_time(async {
        while !claim.is_finished() {
            stage.pass(SECOND).await;
            tokio::task::yield_now().await;
        }
        claim.await.unwrap()
    })
    .await;
    assert_eq!(ids(&claims), [text(&offered["handoff_id"])]);
}
