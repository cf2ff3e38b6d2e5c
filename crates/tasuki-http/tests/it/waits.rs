// SPDX-License-Identifier: Apache-2.0
//! Waiting for what others do: one handoff, or many handoffs and tasks at once.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{SECOND, Stage, in_time, merged, on_both_stores, text};

on_both_stores! {
    waiting_for_all_ends_when_the_last_is_at_its_end
    waiting_for_any_ends_with_the_first
    a_sender_waits_for_acceptance_and_then_for_the_result
    a_wait_whose_time_is_up_says_what_is_still_open
    waiting_for_what_is_not_there_is_refused
    a_wait_ends_with_what_it_has_when_the_broker_goes_away
    results_that_are_too_much_for_one_reply_are_read_one_by_one
}

/// A request that is under way. What it waits for has not come about, so it cannot be answered
/// before the story goes on.
fn wait(stage: &Stage, wish: Value) -> JoinHandle<Value> {
    let stage = stage.clone();
    tokio::spawn(async move { stage.post("/v1/wait", wish).await.done() })
}

async fn answer(wait: JoinHandle<Value>) -> Value {
    in_time(wait).await.unwrap()
}

async fn waiting_for_all_ends_when_the_last_is_at_its_end(stage: Stage) {
    let one = stage.offer("coder", json!({})).await;
    let two = stage.offer("coder", json!({})).await;
    let three = stage.offer("coder", json!({})).await;
    let task = text(&stage.show(&three).await["task_id"]);
    let wish = json!({ "handoffs": [two, one], "tasks": [task], "timeout_ms": 60 * SECOND });
    let all = wait(&stage, wish);
    let held = stage.claimed(&one, "coder").await;
    stage.completed(&held).await;
    stage.post(&format!("/v1/handoffs/{two}/cancel"), json!({ "by": "planner" })).await.done();
    assert!(!all.is_finished());
    let held = stage.claimed(&three, "coder").await;
    stage.completed(&held).await;

    let waited = answer(all).await;
    assert_eq!((&waited["done"], &waited["open_handoffs"]), (&json!(true), &json!([])));
    let handoffs = waited["handoffs"].as_array().unwrap();
    assert_eq!(
        (&handoffs[0]["state"], &handoffs[1]["state"]),
        (&json!("cancelled"), &json!("completed"))
    );
    assert_eq!(handoffs[1]["output"]["payload"]["type"], "done");
    assert_eq!(waited["tasks"][0]["state"], "completed");
}

async fn waiting_for_any_ends_with_the_first(stage: Stage) {
    let one = stage.offer("coder", json!({})).await;
    let two = stage.offer("coder", json!({})).await;
    let wish = json!({ "handoffs": [one, two], "mode": "any", "timeout_ms": 60 * SECOND });
    let any = wait(&stage, wish);
    let held = stage.claimed(&two, "coder").await;
    stage.completed(&held).await;
    let waited = answer(any).await;
    assert_eq!((&waited["done"], &waited["open_handoffs"]), (&json!(true), &json!([one])));
}

async fn a_sender_waits_for_acceptance_and_then_for_the_result(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let show = |until: &str| {
        let (stage, path) =
            (stage.clone(), format!("/v1/handoffs/{id}?wait_ms={}&until={until}", 60 * SECOND));
        tokio::spawn(async move { stage.get(&path).await.done() })
    };
    let (accepted, settled) = (show("claimed"), show("settled"));
    let held = stage.claimed(&id, "coder").await;
    assert_eq!(answer(accepted).await["holder"]["agent"], "coder");
    stage.act(&held, "start", json!({})).await.done();
    assert!(!settled.is_finished());
    stage.completed(&held).await;
    assert_eq!(answer(settled).await["output"]["payload"]["type"], "done");
    assert_eq!(answer(show("claimed")).await["status"], "done");
}

async fn a_wait_whose_time_is_up_says_what_is_still_open(stage: Stage) {
    let one = stage.offer("coder", json!({})).await;
    let two = stage.offer("coder", json!({ "expires_in_ms": 1_u64 << 40 })).await;
    let task = text(&stage.show(&two).await["task_id"]);
    let held = stage.claimed(&one, "coder").await;
    stage.completed(&held).await;
    // Fifteen seconds if nothing else is said.
    let all = wait(&stage, json!({ "handoffs": [one, two], "tasks": [task] }));
    let waited = in_time(async {
        while !all.is_finished() {
            stage.pass(15 * SECOND).await;
            tokio::task::yield_now().await;
        }
        all.await.unwrap()
    })
    .await;
    assert_eq!((&waited["done"], &waited["open_handoffs"]), (&json!(false), &json!([two])));
    assert_eq!(waited["open_tasks"], json!([task]));
    let now = wait(&stage, json!({ "handoffs": [two], "timeout_ms": 0 }));
    assert_eq!(answer(now).await["done"], false);
}

async fn waiting_for_what_is_not_there_is_refused(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let unknown = "handoff_00000000000000000000000007";
    let wish = json!({ "handoffs": [id, unknown], "mode": "any" });
    stage.post("/v1/wait", wish).await.refused(404, "handoff_not_found");
    let wish = json!({ "tasks": ["task_00000000000000000000000007"] });
    stage.post("/v1/wait", wish).await.refused(404, "task_not_found");
    for wish in [json!({}), json!({ "handoffs": vec![id; 1001] })] {
        stage.post("/v1/wait", wish).await.refused(400, "invalid_request");
    }
    stage.get(&format!("/v1/handoffs/{unknown}?wait_ms=5")).await.refused(404, "handoff_not_found");
}

async fn a_wait_ends_with_what_it_has_when_the_broker_goes_away(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let wish = json!({ "handoffs": [id], "timeout_ms": 60 * SECOND });
    let all = wait(&stage, merged(wish, json!({ "until": "claimed" })));
    stage.engine.end_waits();
    let waited = answer(all).await;
    assert_eq!((&waited["done"], &waited["open_handoffs"]), (&json!(false), &json!([id])));
}

async fn results_that_are_too_much_for_one_reply_are_read_one_by_one(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let result = json!({ "payload": { "type": "large", "x": "x".repeat(1_000_000) } });
    stage.act(&held, "complete", result).await.done();
    let reply = stage.post("/v1/wait", json!({ "handoffs": vec![id.clone(); 1000] })).await;
    assert!(reply.bytes.len() < 20_000_000);
    let waited = reply.done();
    let handoffs = waited["handoffs"].as_array().unwrap();
    assert_eq!((handoffs.len(), &waited["done"]), (1000, &json!(true)));
    let with_output = handoffs.iter().take_while(|handoff| handoff["output"].is_object()).count();
    assert_eq!(with_output, 16);
    assert!(handoffs[16].get("output").is_none() && handoffs[16]["result"].is_string());
    assert!(stage.show(&id).await["output"].is_object());
}
