// SPDX-License-Identifier: Apache-2.0
//! Decisions about a handoff from outside the work: cancel, abort, approve, reject.

use serde_json::json;

use crate::support::{Stage, on_both_stores, texts};

on_both_stores! {
    the_sender_cancels_and_a_stranger_does_not
    whoever_opened_the_task_aborts_it
    nobody_approves_its_own_offer
    a_rejected_offer_is_a_dead_letter
}

async fn the_sender_cancels_and_a_stranger_does_not(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let path = format!("/v1/handoffs/{id}/cancel");
    for stranger in ["tester", "coder"] {
        stage.post(&path, json!({ "by": stranger })).await.refused(403, "not_permitted");
    }
    for _ in 0..2 {
        let by = json!({ "by": "planner", "reason": "changed my mind" });
        let moved = stage.post(&path, by).await.done();
        assert_eq!(texts(&moved, ["state", "status"]), ["cancelled", "cancelled"]);
    }
    stage.act(&held, "heartbeat", json!({})).await.refused(409, "stale_claim");
    let abort = format!("/v1/handoffs/{id}/abort");
    stage.post(&abort, json!({ "by": "planner" })).await.refused(409, "wrong_state");
    assert_eq!(stage.task_of(&id).await["state"], "cancelled");
}

async fn whoever_opened_the_task_aborts_it(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    stage.claimed(&id, "coder").await;
    let path = format!("/v1/handoffs/{id}/abort");
    stage.post(&path, json!({ "by": "coder" })).await.refused(403, "not_permitted");
    let moved = stage.post(&path, json!({ "by": "planner", "reason": "no use" })).await.done();
    assert_eq!(texts(&moved, ["state", "status"]), ["failed", "failed"]);
    assert_eq!(stage.task_of(&id).await["state"], "failed");
    let cancel = format!("/v1/handoffs/{id}/cancel");
    stage.post(&cancel, json!({ "by": "planner" })).await.refused(409, "wrong_state");
}

async fn nobody_approves_its_own_offer(stage: Stage) {
    let id = stage.offer("coder", json!({ "needs_approval": true })).await;
    assert_eq!(stage.is(&id).await, ("awaiting_approval".into(), "stored".into()));
    stage.claim_one(&id, "coder").await.refused(409, "wrong_state");
    let path = format!("/v1/handoffs/{id}/approve");
    stage.post(&path, json!({ "by": "planner" })).await.refused(403, "not_permitted");
    stage.post(&path, json!({ "by": "person" })).await.done();
    stage.post(&path, json!({ "by": "person" })).await.refused(409, "wrong_state");
    stage.claimed(&id, "coder").await;
}

async fn a_rejected_offer_is_a_dead_letter(stage: Stage) {
    let id = stage.offer("coder", json!({ "needs_approval": true })).await;
    let path = format!("/v1/handoffs/{id}/reject");
    let why = |by: &str| json!({ "by": by, "reason": "not before the release" });
    stage.post(&path, why("planner")).await.refused(403, "not_permitted");
    stage.post(&path, why("person")).await.done();
    assert_eq!(stage.show(&id).await["dead_letter"]["reason"], "rejected");
    stage.post(&path, why("person")).await.refused(409, "wrong_state");
}
