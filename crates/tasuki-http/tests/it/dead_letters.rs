// SPDX-License-Identifier: Apache-2.0
//! Dead letters wait for a decision: a new way, or an end with a reason.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{Stage, on_both_stores, text};

on_both_stores! {
    a_dead_letter_shows_what_somebody_needs_to_decide
    redriving_at_once_by_many_makes_one_new_handoff
    discarding_takes_a_reason_and_ends_the_task
    dead_letters_are_listed_until_somebody_decides
    only_dead_letters_are_reviewed
}

async fn a_dead_letter_shows_what_somebody_needs_to_decide(stage: Stage) {
    let id = stage.dead_letter().await;
    let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
    assert_eq!(letter["dead_letter"], json!({ "reason": "permanent_failure" }));
    assert_eq!(letter["envelope_content"]["intent"], "Add GET /users/{id}.");
    let report = &letter["reports"][0];
    assert_eq!((&report["attempt"], &report["ended"]), (&json!(1), &json!("failed_permanent")));
    assert_eq!(report["report"]["message"], "it broke");
}

async fn redriving_at_once_by_many_makes_one_new_handoff(stage: Stage) {
    let id = stage.dead_letter().await;
    let path = format!("/v1/dead-letters/{id}/redrive");
    let redrives = (0..10).map(|_| {
        let (stage, path) = (stage.clone(), path.clone());
        tokio::spawn(async move { stage.post(&path, json!({ "by": "person" })).await.done() })
    });
    let offered: Vec<_> = join_all(redrives).await.into_iter().map(Result::unwrap).collect();
    assert!(offered.iter().all(|reply| *reply == offered[0]));
    let new = text(&offered[0]["handoff_id"]);
    let shown = stage.show(&new).await;
    assert_eq!((&shown["redrive_of"], &shown["attempts"]), (&json!(id), &json!([])));
    let old = stage.show(&id).await;
    assert_eq!(old["dead_letter"]["redriven_to"], *new);
    assert_eq!(shown["envelope"], old["envelope"]);
    let held = stage.claimed(&new, "coder").await;
    stage.completed(&held).await;
    assert_eq!(stage.task_of(&id).await["state"], "completed");
    let discard = format!("/v1/dead-letters/{id}/discard");
    let reason = json!({ "by": "person", "reason": "old" });
    stage.post(&discard, reason).await.refused(409, "already_reviewed");
}

async fn discarding_takes_a_reason_and_ends_the_task(stage: Stage) {
    let id = stage.dead_letter().await;
    let path = format!("/v1/dead-letters/{id}/discard");
    for without in [json!({ "by": "person" }), json!({ "by": "person", "reason": " " })] {
        stage.post(&path, without).await.refused(400, "invalid_request");
    }
    stage.post(&path, json!({ "by": "person", "reason": "no longer wanted" })).await.done();
    let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
    assert_eq!(letter["discarded_because"], "no longer wanted");
    assert_eq!(letter["dead_letter"]["discarded"], true);
    assert_eq!(stage.task_of(&id).await["state"], "failed");
    let redrive = format!("/v1/dead-letters/{id}/redrive");
    stage.post(&redrive, json!({ "by": "person" })).await.refused(409, "already_reviewed");
}

async fn dead_letters_are_listed_until_somebody_decides(stage: Stage) {
    stage.offer("coder", json!({})).await;
    let old = stage.dead_letter().await;
    let new = stage.dead_letter().await;
    let listed = async |query: &str| -> Vec<String> {
        let page = stage.get(&format!("/v1/dead-letters?{query}")).await.done();
        let handoffs = page["handoffs"].as_array().unwrap();
        handoffs.iter().map(|handoff| text(&handoff["handoff_id"])).collect()
    };
    assert_eq!(listed("").await, [&*new, &*old]);
    assert_eq!(listed("limit=1").await, [&*new]);
    assert_eq!(listed(&format!("before={new}")).await, [&*old]);
    let path = format!("/v1/dead-letters/{old}/redrive");
    stage.post(&path, json!({ "by": "person" })).await.done();
    assert_eq!(listed("").await, [&*new]);
    assert_eq!(listed("all=true").await, [&*new, &*old]);
    stage.get("/v1/dead-letters?all=perhaps").await.refused(400, "invalid_request");
}

async fn only_dead_letters_are_reviewed(stage: Stage) {
    let alive = stage.offer("coder", json!({})).await;
    let unknown = "handoff_00000000000000000000000007";
    for (id, status, code) in
        [(&*alive, 409, "not_dead_lettered"), (unknown, 404, "handoff_not_found")]
    {
        let path = format!("/v1/dead-letters/{id}");
        stage.get(&path).await.refused(status, code);
        let by = json!({ "by": "person" });
        stage.post(&format!("{path}/redrive"), by).await.refused(status, code);
        let why = json!({ "by": "person", "reason": "old" });
        stage.post(&format!("{path}/discard"), why).await.refused(status, code);
    }
    // The task went on by another hop meanwhile: the dead one must not come back beside it.
    let dead = stage.dead_letter().await;
    let task = text(&stage.show(&dead).await["task_id"]);
    let again = stage.offer("coder", json!({ "task_id": task, "intent": Value::Null })).await;
    let redrive = format!("/v1/dead-letters/{dead}/redrive");
    let by = || json!({ "by": "person" });
    stage.post(&redrive, by()).await.refused(409, "already_reviewed");
    let held = stage.claimed(&again, "coder").await;
    let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "next" } });
    let result = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    stage.act(&held, "complete", result).await.done();
    let next = text(&stage.task_of(&again).await["live_handoff"]);
    let cancel = format!("/v1/handoffs/{next}/cancel");
    stage.post(&cancel, json!({ "by": "coder" })).await.done();
    stage.post(&redrive, by()).await.refused(409, "already_reviewed");
}
