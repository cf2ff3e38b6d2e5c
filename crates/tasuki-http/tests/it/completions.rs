// SPDX-License-Identifier: Apache-2.0
//! Completing: many at once, safe to repeat, and with what follows in the same step.

use serde_json::{Value, json};

use crate::support::{Held, Stage, merged, on_both_stores, text};

on_both_stores! {
    a_batch_stands_but_for_the_part_that_fails
    a_completion_is_safe_to_repeat_and_cannot_be_changed
    completing_and_handing_on_is_one_step
    follow_ups_that_cannot_be_leave_the_handoff_as_it_was
    a_completion_says_done_or_what_should_follow
}

fn part(held: &Held) -> Value {
    held.with(json!({ "handoff_id": held.handoff, "payload": { "type": "done" } }))
}

async fn a_batch_stands_but_for_the_part_that_fails(stage: Stage) {
    let mut held = Vec::new();
    for _ in 0..3 {
        let id = stage.offer("coder", json!({})).await;
        held.push(stage.claimed(&id, "coder").await);
    }
    held[1].fence += 1;
    let unknown = Held { handoff: "handoff_00000000000000000000000007".into(), ..held[0].clone() };
    let batch = json!({ "completions": [
        part(&held[0]),
        part(&held[1]),
        part(&unknown),
        merged(part(&held[2]), json!({ "action": "request" })),
        part(&held[2]),
    ] });
    let results = stage.post("/v1/completions", batch).await.done()["results"].take();
    let told = |part: &Value| text(part.get("state").unwrap_or(&part["error"]["code"]));
    let told: Vec<_> = results.as_array().unwrap().iter().map(told).collect();
    let expected =
        ["completed", "stale_claim", "handoff_not_found", "invalid_request", "completed"];
    assert_eq!(told, expected);
    assert_eq!(stage.is(&held[1].handoff).await.0, "claimed");

    stage
        .post("/v1/completions", json!({ "completions": [] }))
        .await
        .refused(400, "invalid_request");
    let misspelt = merged(part(&held[1]), json!({ "follow_up": [] }));
    let reply = stage.post("/v1/completions", json!({ "completions": [misspelt] })).await;
    reply.refused(400, "invalid_request");
}

async fn a_completion_is_safe_to_repeat_and_cannot_be_changed(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "test" } });
    let result = json!({ "payload": { "type": "done", "n": 1 }, "follow_ups": [hop] });
    let first = stage.act(&held, "complete", result.clone()).await.done();
    let head = stage.store.head();
    let again = stage.act(&held, "complete", result.clone()).await.done();
    assert_eq!((first, stage.store.head()), (again, head));
    let other = merged(result, json!({ "payload": { "type": "done", "n": 2 } }));
    stage.act(&held, "complete", other).await.refused(409, "already_completed");
    assert_eq!(stage.show(&id).await["output"]["payload"]["n"], 1);
}

async fn completing_and_handing_on_is_one_step(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let transfer = json!({
        "to": { "agent": "reviewer" },
        "action": "needs_review",
        "payload": { "type": "review" },
        "priority": 8,
        "terms": { "attempts": 1 },
    });
    let call = json!({
        "to": { "capability": "lint" }, "control": "awaited", "payload": { "type": "lint" },
    });
    let result = json!({ "payload": { "type": "code" }, "follow_ups": [transfer, call] });
    stage.act(&held, "complete", result).await.done();

    let task = stage.task_of(&id).await;
    assert_eq!((&task["state"], &task["owner"]), (&json!("open"), &json!("coder")));
    let next = stage.show(task["live_handoff"].as_str().unwrap()).await;
    assert_eq!((&next["hop"], &next["priority"]), (&json!(1), &json!(8)));
    assert_eq!(next["terms"]["attempts"], 1);
    assert_eq!(next["from_agent"], "coder");
    let below = &task["children"][0];
    assert_eq!((&below["state"], &below["owner"]), (&json!("open"), &json!("coder")));
    let claim = json!({ "agent": "reviewer" });
    let claims = stage.post("/v1/claims", claim).await.done();
    assert_eq!(claims["claims"][0]["envelope"]["action"], "needs_review");
    assert_eq!(stage.task_of(&id).await["owner"], "reviewer");
}

async fn follow_ups_that_cannot_be_leave_the_handoff_as_it_was(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "test" } });
    let call = merged(hop.clone(), json!({ "control": "awaited" }));
    let bad_terms = merged(hop.clone(), json!({ "terms": { "lease_ms": 1 } }));
    let too_late = merged(hop.clone(), json!({ "deadline": "2020-01-01T00:00:00Z" }));
    let head = stage.store.head();
    for (follow_ups, status, code) in [
        (json!([hop, hop]), 422, "invalid_follow_ups"),
        (json!(vec![call; 101]), 422, "invalid_follow_ups"),
        (json!([bad_terms]), 422, "invalid_terms"),
        (json!([too_late]), 422, "deadline_passed"),
        (json!([{ "to": { "agent": "tester" } }]), 400, "invalid_request"),
    ] {
        let result = json!({ "payload": { "type": "done" }, "follow_ups": follow_ups });
        stage.act(&held, "complete", result).await.refused(status, code);
    }
    assert_eq!(stage.store.head(), head);
    stage.completed(&held).await;
}

async fn a_completion_says_done_or_what_should_follow(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    for action in ["request", "failed", "happy"] {
        let result = json!({ "payload": { "type": "done" }, "action": action });
        stage.act(&held, "complete", result).await.refused(400, "invalid_request");
    }
    let result = json!({ "payload": { "type": "done" }, "action": "escalated" });
    stage.act(&held, "complete", result).await.done();
}
