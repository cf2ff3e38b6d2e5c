// SPDX-License-Identifier: Apache-2.0
//! Tasks: opening, reading, cancelling.

use serde_json::{Value, json};

use crate::support::{Stage, merged, on_both_stores, text};

on_both_stores! {
    a_task_is_opened_once_however_often_it_is_sent
    a_task_below_another_needs_its_owner
    cancelling_a_task_ends_the_handoff_under_way
    tasks_are_listed_newest_first_and_filtered
    what_happened_to_a_task_is_told_in_order_with_what_was_said
}

fn open(from: &str, change: Value) -> Value {
    merged(json!({ "from_agent": from, "intent": "Add it." }), change)
}

async fn a_task_is_opened_once_however_often_it_is_sent(stage: Stage) {
    let sent = open("planner", json!({ "idempotency_key": "k", "correlation_id": "c" }));
    let first = stage.post("/v1/tasks", sent.clone()).await;
    let again = stage.post("/v1/tasks", sent.clone()).await;
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.bytes, again.bytes);
    assert_eq!(first.body["owner"], "planner");
    let other = merged(sent, json!({ "correlation_id": "d" }));
    stage.post("/v1/tasks", other).await.refused(409, "idempotency_conflict");
    assert_eq!(stage.store.head().0, 1);
}

async fn a_task_below_another_needs_its_owner(stage: Stage) {
    let task = text(&stage.post("/v1/tasks", open("planner", json!({}))).await.done()["task_id"]);
    let below = json!({ "parent_task_id": task });
    stage.post("/v1/tasks", open("coder", below.clone())).await.refused(403, "not_owner");
    let child = stage.post("/v1/tasks", open("planner", below.clone())).await.done();
    let shown = stage.get(&format!("/v1/tasks/{task}")).await.done();
    assert_eq!(shown["children"][0]["task_id"], child["task_id"]);
    stage.post(&format!("/v1/tasks/{task}/cancel"), json!({ "by": "planner" })).await.done();
    stage.post("/v1/tasks", open("planner", below)).await.refused(409, "task_finished");
    let nowhere = json!({ "parent_task_id": "task_00000000000000000000000007" });
    stage.post("/v1/tasks", open("planner", nowhere)).await.refused(404, "task_not_found");
}

async fn cancelling_a_task_ends_the_handoff_under_way(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let path = format!("/v1/tasks/{}/cancel", text(&stage.show(&id).await["task_id"]));
    stage.post(&path, json!({ "by": "stranger" })).await.refused(403, "not_permitted");
    let task = stage.post(&path, json!({ "by": "planner", "reason": "enough" })).await.done();
    assert_eq!(task["state"], "cancelled");
    assert_eq!(stage.is(&id).await, ("cancelled".into(), "cancelled".into()));
    stage
        .act(&held, "complete", json!({ "payload": { "type": "d" } }))
        .await
        .refused(409, "stale_claim");
    stage.post(&path, json!({ "by": "planner" })).await.refused(409, "task_finished");
    let story = stage.story(&id).await;
    let expected = ["transfer_offered", "claimed", "cancelled", "task_cancelled", "late_report"];
    assert_eq!(story, expected);
}

async fn tasks_are_listed_newest_first_and_filtered(stage: Stage) {
    let mut ids = Vec::new();
    for owner in ["planner", "coder", "planner"] {
        ids.push(text(&stage.post("/v1/tasks", open(owner, json!({}))).await.done()["task_id"]));
    }
    let listed = async |query: &str| -> Vec<String> {
        let page = stage.get(&format!("/v1/tasks?{query}")).await.done();
        page["tasks"].as_array().unwrap().iter().map(|task| text(&task["task_id"])).collect()
    };
    assert_eq!(listed("").await, [&*ids[2], &*ids[1], &*ids[0]]);
    assert_eq!(listed("owner=coder").await, [&*ids[1]]);
    assert_eq!(listed("state=completed").await, [""; 0]);
    assert_eq!(listed(&format!("before={}", ids[1])).await, [&*ids[0]]);
    let page = stage.get("/v1/tasks?limit=2").await.done();
    assert_eq!(page["next"], *ids[1]);
    for bad in ["state=happy", "limit=0", "owner=a%20b", "owner=", "parent=x", "x=1"] {
        stage.get(&format!("/v1/tasks?{bad}")).await.refused(400, "invalid_request");
    }
}

async fn what_happened_to_a_task_is_told_in_order_with_what_was_said(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    stage.act(&held, "progress", json!({ "note": "so far so good" })).await.done();
    stage.completed(&held).await;
    let task = stage.task_of(&id).await;
    let path = format!("/v1/tasks/{}/events", text(&task["task_id"]));
    let events = stage.get(&path).await.done()["events"].take();
    let events = events.as_array().unwrap();
    let index = |event: &Value| event["record"]["index"].as_u64().unwrap();
    assert_eq!(events.iter().map(index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(events[3]["hash"], task["head"]);
    assert_eq!(events[2]["body"]["text"], "so far so good");
    assert_eq!(events[0]["body"]["intent"], "Add GET /users/{id}.");
    assert!(events[1].get("body").is_none());
    let nowhere = "/v1/tasks/task_00000000000000000000000007";
    stage.get(nowhere).await.refused(404, "task_not_found");
    stage.get(&format!("{nowhere}/events")).await.refused(404, "task_not_found");
}
