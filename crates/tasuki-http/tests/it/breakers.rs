// SPDX-License-Identifier: Apache-2.0
//! Breakers: who is left alone after failing, what counts, how one is let through, and how many of
//! many are enough. Every story goes on after a restart.

use serde_json::{Value, json};
use tasuki_core::breaker::Limits;
use tasuki_engine::Settings;

use crate::support::{Backend, Held, Stage, failure, offer, on_durable_stores, text};

on_durable_stores! {
    a_half_open_breaker_lets_exactly_one_through_whatever_waited
    one_bad_worker_does_not_close_a_pool
    terms_that_a_sender_chose_do_not_count_against_the_target
    a_probe_that_ends_without_a_word_makes_room_for_the_next_one
    the_numbers_of_a_breaker_are_set_for_one_agent
    a_claim_that_waits_is_given_the_probe_when_its_time_has_come
    a_quorum_above_the_number_of_receivers_is_not_lowered
}

async fn exhaust(stage: &Stage, to: &str, by: &str) {
    let id = stage.offer(to, json!({ "terms": { "attempts": 1 } })).await;
    let held = stage.claimed(&id, by).await;
    stage.act(&held, "fail", failure("retryable")).await.done();
}

async fn claims(stage: &Stage, agent: &str, max: usize) -> Vec<Value> {
    let wish = json!({ "agent": agent, "capabilities": ["review"], "max": max });
    let reply = stage.post("/v1/claims", wish).await.done();
    reply["claims"].as_array().unwrap().clone()
}

async fn breaker(stage: &Stage, agent: &str) -> Value {
    let all = stage.get("/v1/health/targets").await.done();
    let targets = all["targets"].as_array().unwrap();
    targets.iter().find(|it| it["target"]["agent"] == agent).cloned().unwrap_or_default()
}

async fn a_half_open_breaker_lets_exactly_one_through_whatever_waited(stage: Stage) {
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(stage.offer("flaky", json!({ "priority": 0 })).await);
    }
    for _ in 0..3 {
        exhaust(&stage, "flaky", "flaky").await;
    }
    let stage = stage.restarted().await;
    assert_eq!(claims(&stage, "flaky", 10).await, Vec::<Value>::new(), "it is left alone");
    let refused = stage.claim_one(&waiting[0], "flaky").await;
    assert_eq!(refused.headers["retry-after"], "60");
    let problem = refused.refused(409, "target_unavailable");
    assert_eq!(problem["details"]["breaker"], "open");
    stage.pass(60_000).await;
    let got = claims(&stage, "flaky", 10).await;
    assert_eq!(got.len(), 1, "one is let through");
    let stage = stage.restarted().await;
    assert_eq!(claims(&stage, "flaky", 10).await, Vec::<Value>::new(), "and no other");
    stage.claim_one(&waiting[3], "flaky").await.refused(409, "target_unavailable");
    let refused = stage.post("/v1/handoffs", offer("flaky", json!({}))).await;
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(refused.refused(409, "target_unavailable")["details"]["breaker"], "half_open");
    stage.completed(&Held::of(&got[0])).await;
    assert_eq!(claims(&stage, "flaky", 10).await.len(), 3, "it works again");
}

async fn one_bad_worker_does_not_close_a_pool(stage: Stage) {
    for _ in 0..3 {
        exhaust(&stage, "*review", "bad").await;
    }
    let stage = stage.restarted().await;
    let id = stage.offer("*review", json!({})).await;
    assert_eq!(claims(&stage, "bad", 1).await, Vec::<Value>::new());
    assert_eq!(breaker(&stage, "bad").await["breaker"], "open");
    let held = stage.claimed(&id, "good").await;
    stage.completed(&held).await;
    stage.pass(60_000).await;
    stage.offer("*review", json!({})).await;
    assert_eq!(claims(&stage, "bad", 1).await.len(), 1);
}

async fn terms_that_a_sender_chose_do_not_count_against_the_target(stage: Stage) {
    for _ in 0..4 {
        stage.offer("slow", json!({ "terms": { "ack_ms": 100 } })).await;
        stage.pass(100).await;
    }
    let stage = stage.restarted().await;
    for terms in [json!({ "lease_ms": 100, "losses": 1 }), json!({ "work_ms": 100, "losses": 1 })] {
        for _ in 0..4 {
            let id = stage.offer("slow", json!({ "terms": terms })).await;
            stage.claimed(&id, "slow").await;
            stage.pass(100).await;
            assert_eq!(stage.show(&id).await["dead_letter"]["reason"], "poison");
        }
    }
    assert_eq!(breaker(&stage, "slow").await["breaker"], "closed");
    // Who is given the usual time and is not heard from is to blame.
    for _ in 0..3 {
        let id = stage.offer("slow", json!({ "terms": { "losses": 1 } })).await;
        stage.claimed(&id, "slow").await;
        stage.pass(30_000).await;
    }
    assert_eq!(breaker(&stage, "slow").await["breaker"], "open");
}

async fn a_probe_that_ends_without_a_word_makes_room_for_the_next_one(stage: Stage) {
    for _ in 0..3 {
        exhaust(&stage, "flaky", "flaky").await;
    }
    stage.pass(60_000).await;
    let id = stage.offer("flaky", json!({})).await;
    let held = stage.claimed(&id, "flaky").await;
    let stage = stage.restarted().await;
    stage.act(&held, "release", json!({})).await.done();
    let held = stage.claimed(&id, "flaky").await;
    // It failed once: there is no need to see it fail to the end.
    stage.act(&held, "fail", failure("retryable")).await.done();
    assert_eq!(breaker(&stage, "flaky").await["breaker"], "open");
    stage.pass(60_000).await;
    let held = Held::of(&claims(&stage, "flaky", 5).await[0]);
    stage.completed(&held).await;
    assert_eq!(breaker(&stage, "flaky").await["breaker"], "closed");
}

async fn the_numbers_of_a_breaker_are_set_for_one_agent(stage: Stage) {
    let set = json!({ "limits": { "failures": 1, "open_ms": 5000 } });
    let shown = stage.post("/v1/agents/brittle/breaker", set.clone()).await.done();
    assert_eq!(shown["limits"], set["limits"]);
    let stage = stage.restarted().await;
    exhaust(&stage, "brittle", "brittle").await;
    let refused = stage.post("/v1/handoffs", offer("brittle", json!({}))).await;
    assert_eq!(refused.headers["retry-after"], "5");
    let problem = refused.refused(409, "target_unavailable");
    assert_eq!(problem["details"]["retry_after_ms"], 5000);
    exhaust(&stage, "other", "other").await;
    stage.offer("other", json!({})).await;
    let bad = json!({ "limits": { "failures": 0, "open_ms": 5000 } });
    stage.post("/v1/agents/brittle/breaker", bad).await.refused(422, "invalid_terms");
    stage.post("/v1/agents/brittle/breaker", json!({})).await.done();
    assert_eq!(breaker(&stage, "brittle").await["limits"]["failures"], 3);
}

async fn a_claim_that_waits_is_given_the_probe_when_its_time_has_come(stage: Stage) {
    let id = stage.offer("flaky", json!({ "priority": 0 })).await;
    for _ in 0..3 {
        exhaust(&stage, "flaky", "flaky").await;
    }
    let waiting = tokio::spawn({
        let stage = stage.clone();
        let wish = json!({ "agent": "flaky", "wait_ms": 60_000 });
        async move { stage.post("/v1/claims", wish).await.done() }
    });
    while !waiting.is_finished() {
        stage.pass(1000).await;
        tokio::task::yield_now().await;
    }
    let reply = waiting.await.unwrap();
    assert_eq!(text(&reply["claims"][0]["handoff_id"]), id);
}

async fn a_quorum_above_the_number_of_receivers_is_not_lowered(stage: Stage) {
    let message = json!({ "from_agent": "planner", "intent": "Say what you think.",
        "receivers": ["ann", "bob"], "payload": { "type": "question" } });
    let told = stage.post("/v1/channels/all/publish", message).await.done();
    let join = format!("/v1/tasks/{}/join", text(&told["task_id"]));
    for each in told["handoffs"].as_array().unwrap() {
        let held = stage.claimed(&text(&each["handoff_id"]), &text(&each["to"]["agent"])).await;
        stage.completed(&held).await;
    }
    let stage = stage.restarted().await;
    let wish = json!({ "need": { "quorum": 3 }, "wait_ms": 60_000 });
    let joined = stage.post(&join, wish).await.done();
    assert_eq!((&joined["need"], &joined["receivers"]), (&json!(3), &json!(2)));
    assert_eq!((&joined["satisfied"], &joined["reachable"]), (&json!(false), &json!(false)));
    let joined = stage.post(&join, json!({ "need": { "quorum": 2 } })).await.done();
    assert_eq!((&joined["satisfied"], &joined["reachable"]), (&json!(true), &json!(true)));
    stage.post(&join, json!({ "need": { "quorum": 0 } })).await.refused(400, "invalid_request");
    let nobody = json!({ "from_agent": "planner", "intent": "Say what you think.",
        "receivers": [], "payload": { "type": "question" } });
    let told = stage.post("/v1/channels/all/publish", nobody).await.done();
    let join = format!("/v1/tasks/{}/join", text(&told["task_id"]));
    let joined = stage.post(&join, json!({ "need": "any" })).await.done();
    assert_eq!((&joined["satisfied"], &joined["need"]), (&json!(false), &json!(1)));
}

#[tokio::test]
async fn the_numbers_of_a_broker_hold_for_every_agent() {
    let breakers = Limits { failures: 2, open_ms: 10_000 };
    let settings = Settings { breakers, ..Settings::default() };
    let stage = Stage::with(Backend::Sqlite, settings).await;
    exhaust(&stage, "flaky", "flaky").await;
    stage.offer("flaky", json!({})).await;
    let stage = stage.restarted().await;
    exhaust(&stage, "flaky", "flaky").await;
    let refused = stage.post("/v1/handoffs", offer("flaky", json!({}))).await;
    assert_eq!(refused.headers["retry-after"], "10");
    // What was counted keeps its numbers, whatever the broker is told afterwards.
    stage.engine.close().await;
    let stage = stage.reopened_with(Settings::default()).await;
    stage.post("/v1/handoffs", offer("flaky", json!({}))).await.refused(409, "target_unavailable");
    stage.pass(10_000).await;
    stage.offer("flaky", json!({})).await;
}
