// SPDX-License-Identifier: Apache-2.0
//! Stories that span two requests, with a restart of the broker in between.

use serde_json::{Value, json};
use tasuki_core::Terms;
use tasuki_core::pipeline::Pipelines;
use tasuki_engine::Settings;

use crate::events::Follower;
use crate::support::{Held, SECOND, Stage, failure, merged, offer, on_durable_stores, text};

on_durable_stores! {
    a_pipeline_goes_on_after_a_restart
    a_repeated_offer_is_the_same_although_the_brokers_defaults_changed_meanwhile
    a_pipeline_fans_out_after_a_restart
    a_result_is_held_against_its_schema_after_a_restart
    a_result_is_held_against_what_was_expected_after_a_restart
    what_agents_hold_and_how_they_fare_is_counted_over_a_restart
    a_cursor_is_good_after_a_restart_and_what_was_lost_is_told
    a_check_of_the_log_goes_on_from_what_was_found_intact_unless_all_is_asked_for
}

const PIPELINE: &str = r#"{"pipelines": [
    {"name": "endpoint", "version": 1, "first": "code", "stages": [
        {"name": "code", "to": {"agent": "coder"}, "next": [{"to": "review"}]},
        {"name": "review", "to": {"agent": "reviewer"}, "next": [{"to": "end"}]}]},
    {"name": "split", "version": 1, "first": "code", "stages": [
        {"name": "code", "to": {"agent": "coder"},
         "next": [{"fan": {"stages": ["lint", "test"], "join": "review"}}]},
        {"name": "lint", "to": {"agent": "linter"}, "next": [{"to": "end"}]},
        {"name": "test", "to": {"agent": "tester"}, "next": [{"to": "end"}]},
        {"name": "review", "to": {"agent": "reviewer"}, "next": [{"to": "end"}]}]}]}"#;

async fn declare(stage: &Stage) {
    stage.engine.declare_pipelines(Pipelines::read(PIPELINE).unwrap()).await.unwrap();
}

/// A restart after which nothing is learned from the log again: the broker had written down how far
/// it had read.
async fn restarted(stage: Stage) -> Stage {
    let head = stage.store.head();
    stage.store.save_fold("records", head, r#"{"tracks":[],"targets":[]}"#.into()).await.unwrap();
    stage.restarted().await
}

async fn started(stage: &Stage, pipeline: &str) -> Held {
    let body = json!({ "from_agent": "planner", "intent": "Add GET /users/{id}.",
        "payload": { "type": "request" } });
    let begun = stage.post(&format!("/v1/pipelines/{pipeline}/start"), body).await.done();
    stage.claimed(&text(&begun["handoff_id"]), "coder").await
}

async fn a_pipeline_goes_on_after_a_restart(stage: Stage) {
    declare(&stage).await;
    let held = started(&stage, "endpoint").await;
    let stage = restarted(stage).await;
    declare(&stage).await;
    stage.completed(&held).await;
    let task = stage.task_of(&held.handoff).await;
    assert_eq!(task["state"], "open", "{task}");
    let next = stage.show(&text(&task["live_handoff"])).await;
    assert_eq!(next["to"], json!({ "agent": "reviewer" }));

    // The stage after it ends the task, with another restart on the way.
    let held = stage.claimed(&text(&next["handoff_id"]), "reviewer").await;
    let stage = restarted(stage).await;
    declare(&stage).await;
    stage.completed(&held).await;
    assert_eq!(stage.task_of(&held.handoff).await["state"], "completed");
}

async fn a_pipeline_fans_out_after_a_restart(stage: Stage) {
    declare(&stage).await;
    let held = started(&stage, "split").await;
    let stage = restarted(stage).await;
    declare(&stage).await;
    stage.completed(&held).await;
    let task = stage.task_of(&held.handoff).await;
    assert_eq!(task["children"].as_array().map(Vec::len), Some(2), "{task}");
    let join = stage.show(&text(&task["live_handoff"])).await;
    assert_eq!(join["to"], json!({ "agent": "reviewer" }));
}

/// Offers, claims, restarts, and hands in what does not fit and then what does.
async fn held_to_its_word(stage: Stage, wish: Value, bad: Value, good: Value) {
    let id = stage.offer("coder", wish).await;
    let held = stage.claimed(&id, "coder").await;
    let stage = restarted(stage).await;
    stage.act(&held, "complete", bad).await.refused(422, "invalid_payload");
    assert_eq!(stage.is(&id).await.0, "claimed");
    stage.act(&held, "complete", good).await.done();
}

async fn a_result_is_held_against_its_schema_after_a_restart(stage: Stage) {
    let wish = json!({ "output_schema": { "type": "object", "required": ["verdict"] } });
    let bad = json!({ "payload": { "type": "done" } });
    let good = json!({ "payload": { "type": "done", "verdict": "fine" } });
    held_to_its_word(stage, wish, bad, good).await;
}

async fn a_result_is_held_against_what_was_expected_after_a_restart(stage: Stage) {
    let wish = json!({ "expected_output": { "length": { "chars_max": 5 } } });
    let bad = json!({ "payload": { "type": "done", "text": "far too long" } });
    let good = json!({ "payload": { "type": "done", "text": "short" } });
    held_to_its_word(stage, wish, bad, good).await;
}

async fn what_agents_hold_and_how_they_fare_is_counted_over_a_restart(stage: Stage) {
    let manifest = json!({ "agent_id": "coder", "capabilities": [{ "name": "code" }] });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    let mut held = Vec::new();
    for _ in 0..3 {
        let id = stage.offer("coder", json!({ "capability": "code" })).await;
        held.push(stage.claimed(&id, "coder").await);
    }
    let coder = async |stage: &Stage| stage.get("/v1/agents/coder").await.done();
    assert_eq!(coder(&stage).await["holding"], 3);
    let stage = restarted(stage).await;
    assert_eq!(coder(&stage).await["holding"], 3);

    // Attempts that began before one restart and ended before the next count, each once.
    stage.clock.advance_ms(SECOND);
    stage.completed(&held[0]).await;
    stage.act(&held[1], "fail", failure("permanent")).await.done();
    let stage = stage.restarted().await;
    let fares = coder(&stage).await;
    assert_eq!(fares["holding"], 1);
    let code = &fares["observed"][0];
    assert_eq!(code["capability"], "code", "{fares}");
    assert_eq!((&code["tries"], &code["successes"]), (&json!(2), &json!(1)), "{fares}");
    assert_eq!(code["mean_ms"], SECOND, "{fares}");
}

async fn a_cursor_is_good_after_a_restart_and_what_was_lost_is_told(stage: Stage) {
    for _ in 0..3 {
        stage.offer("coder", json!({})).await;
    }
    let mut follower = Follower::on(&stage, "after=0", None).await;
    let first = follower.next().await.unwrap();
    let stage = stage.restarted().await;
    let mut follower = Follower::on(&stage, "", Some(&first.cursor)).await;
    assert_eq!(follower.next().await.unwrap().kind, "transfer_offered");
    let third = follower.next().await.unwrap();
    stage.raise_epoch(100).await;
    stage.offer("coder", json!({})).await;
    let stage = stage.restarted().await;
    let epoch = third.cursor.split('-').next().unwrap();
    let mut follower = Follower::on(&stage, "", Some(&format!("{epoch}-5"))).await;
    let missed = follower.next().await.unwrap();
    assert_eq!((&*missed.kind, &missed.cursor), ("missed", &third.cursor));
    assert_eq!(follower.next().await.unwrap().cursor, "100-4");
    assert_eq!(follower.next().await.unwrap().kind, "transfer_offered");
}

async fn a_check_of_the_log_goes_on_from_what_was_found_intact_unless_all_is_asked_for(
    mut stage: Stage,
) {
    let mut before = Vec::new();
    for _ in 0..2 {
        stage.offer("coder", json!({})).await;
        // What is closed is sealed to its end.
        stage = stage.restarted().await;
        let new = stage.get("/v1/audit/verify").await.done();
        assert_eq!(new["intact"], true, "{new}");
        before.push(new["verified_before"].clone());
        let full = stage.get("/v1/audit/verify?full=true").await.done();
        assert_eq!(full["verified_before"], Value::Null);
        assert_eq!((&full["intact"], &full["events"]), (&json!(true), &new["events"]));
    }
    assert_eq!(before[0], Value::Null);
    assert!(before[1].as_u64() > Some(0), "{before:?}");
    stage.get("/v1/audit/verify?full=maybe").await.refused(400, "invalid_request");
}

async fn a_repeated_offer_is_the_same_although_the_brokers_defaults_changed_meanwhile(
    stage: Stage,
) {
    let change = json!({ "terms": { "attempts": 2 }, "idempotency_key": "order-7" });
    let sent = offer("coder", change);
    let first = stage.post("/v1/handoffs", sent.clone()).await;
    assert_eq!(first.status, 201);
    stage.engine.close().await;
    let terms = Terms { lease_ms: 77_000, ..Terms::default() };
    let stage = stage.reopened_with(Settings { terms, ..Settings::default() }).await;
    let again = stage.post("/v1/handoffs", sent.clone()).await;
    assert_eq!((again.status, &again.body["handoff_id"]), (200, &first.body["handoff_id"]));
    // Said with a default, by a client that traces: the same wish.
    let spelled = json!({ "control": "passed", "metadata": { "traceparent": "00-1-2-01" } });
    let again = stage.post("/v1/handoffs", merged(sent.clone(), spelled)).await;
    assert_eq!((again.status, &again.body["handoff_id"]), (200, &first.body["handoff_id"]));
    let other = merged(sent, json!({ "terms": { "attempts": 3 } }));
    stage.post("/v1/handoffs", other).await.refused(409, "idempotency_conflict");
}
