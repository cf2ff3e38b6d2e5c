// SPDX-License-Identifier: Apache-2.0
//! Stories that span two requests, with a restart of the broker in between.

use serde_json::{Value, json};
use tasuki_core::pipeline::Pipelines;

use crate::support::{Held, Stage, on_durable_stores, text};

on_durable_stores! {
    a_pipeline_goes_on_after_a_restart
    a_pipeline_fans_out_after_a_restart
    a_result_is_held_against_its_schema_after_a_restart
    a_result_is_held_against_what_was_expected_after_a_restart
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

fn declare(stage: &Stage) {
    stage.engine.declare_pipelines(Pipelines::read(PIPELINE).unwrap()).unwrap();
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
    declare(&stage);
    let held = started(&stage, "endpoint").await;
    let stage = restarted(stage).await;
    declare(&stage);
    stage.completed(&held).await;
    let task = stage.task_of(&held.handoff).await;
    assert_eq!(task["state"], "open", "{task}");
    let next = stage.show(&text(&task["live_handoff"])).await;
    assert_eq!(next["to"], json!({ "agent": "reviewer" }));

    // The stage after it ends the task, with another restart on the way.
    let held = stage.claimed(&text(&next["handoff_id"]), "reviewer").await;
    let stage = restarted(stage).await;
    declare(&stage);
    stage.completed(&held).await;
    assert_eq!(stage.task_of(&held.handoff).await["state"], "completed");
}

async fn a_pipeline_fans_out_after_a_restart(stage: Stage) {
    declare(&stage);
    let held = started(&stage, "split").await;
    let stage = restarted(stage).await;
    declare(&stage);
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
