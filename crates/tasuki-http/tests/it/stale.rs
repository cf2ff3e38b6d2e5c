// SPDX-License-Identifier: Apache-2.0
//! Who no longer holds a claim can do nothing with it.

use serde_json::{Value, json};

use crate::support::{Held, LEASE, Stage, failure, on_both_stores, text};

on_both_stores! {
    a_wrong_claim_id_or_fence_is_refused_by_every_call_of_a_holder
    a_zombie_is_refused_by_every_call_and_its_successor_is_not_disturbed
    a_late_result_is_refused_and_kept_as_late
    a_worker_that_keeps_vanishing_gets_its_work_quarantined
}

fn every_act() -> [(&'static str, Value); 7] {
    [
        ("start", json!({})),
        ("heartbeat", json!({})),
        ("progress", json!({ "percent": 99 })),
        ("complete", json!({ "payload": { "type": "done" } })),
        ("fail", failure("permanent")),
        ("decline", json!({ "agent": "coder" })),
        ("release", json!({})),
    ]
}

/// Every call with this claim is refused, and nothing moves.
async fn powerless(stage: &Stage, held: &Held) {
    let before =
        (stage.is(&held.handoff).await, stage.task_of(&held.handoff).await["owner"].take());
    for (act, more) in every_act() {
        let problem = stage.act(held, act, more).await.refused(409, "stale_claim");
        assert_eq!(problem["details"]["handoff_id"], held.handoff);
        assert_eq!(
            (&problem["details"]["state"], &problem["retryable"]),
            (&json!(before.0.0), &json!(false))
        );
    }
    let completion = held.with(json!({ "handoff_id": held.handoff, "payload": { "type": "d" } }));
    let batch = stage.post("/v1/completions", json!({ "completions": [completion] })).await.done();
    assert_eq!(batch["results"][0]["error"]["code"], "stale_claim");
    let after = (stage.is(&held.handoff).await, stage.task_of(&held.handoff).await["owner"].take());
    assert_eq!(after, before);
}

async fn a_wrong_claim_id_or_fence_is_refused_by_every_call_of_a_holder(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let other = stage.offer("coder", json!({})).await;
    let other = stage.claimed(&other, "coder").await;
    powerless(&stage, &Held { fence: held.fence + 1, ..held.clone() }).await;
    powerless(&stage, &Held { fence: held.fence - 1, ..held.clone() }).await;
    powerless(&stage, &Held { claim_id: other.claim_id, ..held.clone() }).await;
    assert_eq!(stage.story(&id).await, ["transfer_offered", "claimed"]);
    stage.completed(&held).await;
}

async fn a_zombie_is_refused_by_every_call_and_its_successor_is_not_disturbed(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let zombie = stage.claimed(&id, "coder").await;
    stage.act(&zombie, "start", json!({})).await.done();
    stage.pass(LEASE).await;
    assert_eq!(stage.is(&id).await.0, "pending");
    powerless(&stage, &zombie).await;
    let successor = stage.claimed(&id, "tester").await;
    assert!(successor.fence > zombie.fence);
    powerless(&stage, &zombie).await;
    stage.completed(&successor).await;
    powerless(&stage, &zombie).await;
    assert_eq!(stage.task_of(&id).await["owner"], "tester");
}

async fn a_late_result_is_refused_and_kept_as_late(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let late = stage.claimed(&id, "coder").await;
    stage.pass(LEASE).await;
    let holder = stage.claimed(&id, "tester").await;
    let result = json!({ "payload": { "type": "done", "text": "too late" } });
    for _ in 0..3 {
        stage.act(&late, "complete", result.clone()).await.refused(409, "stale_claim");
    }
    stage.completed(&holder).await;
    let story = stage.story(&id).await;
    let expected =
        ["transfer_offered", "claimed", "lease_lost", "claimed", "late_report", "completed"];
    assert_eq!(story, expected, "once, however often it is repeated");

    let shown = stage.show(&id).await;
    assert_eq!(shown["attempts"][0]["late"], true);
    assert_eq!(shown["attempts"][0]["ended"], "lost_silence");
    assert_eq!(shown["output"]["payload"], json!({ "type": "done" }));
    let task = text(&shown["task_id"]);
    let events = stage.get(&format!("/v1/tasks/{task}/events")).await.done();
    let report = &events["events"][4];
    assert_eq!(report["record"]["actor"], "agent:coder");
    assert_eq!(report["body"]["payload"]["text"], "too late");
}

async fn a_worker_that_keeps_vanishing_gets_its_work_quarantined(stage: Stage) {
    let poison = stage.offer("coder", json!({ "terms": { "losses": 2 } })).await;
    let other = stage.offer("coder", json!({})).await;
    for state in ["pending", "dead_lettered"] {
        stage.claimed(&poison, "coder").await;
        stage.pass(LEASE).await;
        assert_eq!(stage.is(&poison).await.0, state);
    }
    let shown = stage.show(&poison).await;
    assert_eq!((&shown["losses"], &shown["failures"]), (&json!(2), &json!(0)));
    assert_eq!(shown["dead_letter"]["reason"], "poison");
    stage.claimed(&other, "coder").await;
}
