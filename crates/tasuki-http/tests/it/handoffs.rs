// SPDX-License-Identifier: Apache-2.0
//! The road of a handoff from offer to end, and the ways off it that its holder may take.

use serde_json::{Value, json};

use crate::support::{LEASE, SECOND, Stage, failure, merged, offer, on_both_stores, text, texts};

on_both_stores! {
    a_handoff_goes_from_offer_to_completion_and_tells_where_it_is
    looking_delivers_and_does_not_claim
    a_failed_attempt_comes_back_when_its_retry_is_due
    attempts_that_all_fail_end_as_a_dead_letter
    released_work_goes_back_to_its_sender_and_waits_again
    an_agent_that_declines_an_offer_to_itself_makes_a_dead_letter
    a_capability_still_has_other_takers_when_one_declines
    work_waits_for_its_start_time
    work_that_nobody_takes_expires
    a_hard_deadline_ends_work_that_still_sends_heartbeats
    handoffs_with_one_ordering_key_go_one_after_the_other
    a_listing_filters_and_goes_on_where_it_ended
}

async fn a_handoff_goes_from_offer_to_completion_and_tells_where_it_is(stage: Stage) {
    let reply = stage.post("/v1/handoffs", offer("coder", json!({}))).await;
    assert_eq!(reply.status, 201);
    let offered = reply.done();
    assert_eq!(offered["status"], "stored");
    let id = text(&offered["handoff_id"]);
    assert_eq!(stage.is(&id).await, ("pending".into(), "stored".into()));
    assert_eq!(stage.task_of(&id).await["owner"], "planner");

    let held = stage.claimed(&id, "coder").await;
    assert_eq!(stage.is(&id).await, ("claimed".into(), "claimed".into()));
    assert_eq!(stage.task_of(&id).await["owner"], "coder");

    let started = stage.act(&held, "start", json!({})).await.done();
    assert_eq!(texts(&started, ["state", "status"]), ["in_progress", "in_progress"]);
    stage.pass(LEASE - 1).await;
    let beat = stage.act(&held, "heartbeat", json!({})).await.done();
    assert_eq!(beat["lease_left_ms"], LEASE);
    stage.pass(LEASE - 1).await;
    let progress = json!({ "percent": 50, "note": "half of it" });
    stage.act(&held, "progress", progress).await.done();
    stage.pass(LEASE - 1).await;
    assert_eq!(stage.show(&id).await["holder"]["lease_left_ms"], 1);

    let result =
        json!({ "payload": { "type": "code", "files": ["a.rs"] }, "action": "needs_review" });
    let moved = stage.act(&held, "complete", result).await.done();
    assert_eq!(texts(&moved, ["state", "status"]), ["completed", "done"]);

    let shown = stage.show(&id).await;
    assert_eq!(shown["output"]["payload"]["files"], json!(["a.rs"]));
    assert_eq!(shown["output"]["action"], "needs_review");
    assert_eq!(shown["attempts"][0]["ended"], "completed");
    assert!(shown.get("holder").is_none() && shown["ended_at"].is_string());
    let task = stage.task_of(&id).await;
    assert_eq!(texts(&task, ["state", "owner"]), ["completed", "coder"]);
    let story = stage.story(&id).await;
    assert_eq!(story, ["transfer_offered", "claimed", "started", "progressed", "completed"]);
}

async fn looking_delivers_and_does_not_claim(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let look = json!({ "agent": "tester", "capabilities": ["review"], "max": 10 });
    for _ in 0..2 {
        let peeked = stage.post("/v1/claims/peek", look.clone()).await.done();
        assert_eq!(peeked["waiting"][0]["handoff_id"], id);
        assert_eq!(peeked["waiting"][0]["envelope"]["payload"]["type"], "request");
    }
    assert_eq!(stage.is(&id).await, ("pending".into(), "delivered".into()));
    assert_eq!(stage.task_of(&id).await["owner"], "planner");
    stage.claimed(&id, "coder").await;
    let peeked = stage.post("/v1/claims/peek", look).await.done();
    assert_eq!(peeked["waiting"], json!([]));
    assert_eq!(stage.story(&id).await, ["transfer_offered", "delivered", "claimed"]);
}

async fn a_failed_attempt_comes_back_when_its_retry_is_due(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let fail = merged(failure("retryable"), json!({ "retry_after_ms": 7 * SECOND }));
    let moved = stage.act(&held, "fail", fail.clone()).await.done();
    assert_eq!(texts(&moved, ["state", "status"]), ["scheduled", "delivered"]);
    let again = stage.act(&held, "fail", fail).await.done();
    assert_eq!(again["state"], "scheduled", "a failure is safe to repeat");
    let shown = stage.show(&id).await;
    assert!(shown["due_at"].is_string());
    assert_eq!(
        (&shown["failures"], &shown["attempts"][0]["ended"]),
        (&json!(1), &json!("failed_retryable"))
    );
    assert_eq!(stage.task_of(&id).await["owner"], "planner");
    stage.claim_one(&id, "coder").await.refused(409, "wrong_state");

    stage.pass(7 * SECOND).await;
    let claim = stage.claim_one(&id, "coder").await.done();
    assert_eq!(claim["attempt"], 2);
}

async fn attempts_that_all_fail_end_as_a_dead_letter(stage: Stage) {
    let terms = json!({ "terms": { "attempts": 2, "backoff_ms": 0 } });
    let id = stage.offer("coder", terms).await;
    for end in ["scheduled", "dead_lettered"] {
        stage.pass(0).await;
        let held = stage.claimed(&id, "coder").await;
        let moved = stage.act(&held, "fail", failure("unknown")).await.done();
        assert_eq!(moved["state"], end);
    }
    let shown = stage.show(&id).await;
    assert_eq!(shown["dead_letter"]["reason"], "attempts_exhausted");
    assert_eq!(stage.task_of(&id).await["state"], "dead_lettered");
}

async fn released_work_goes_back_to_its_sender_and_waits_again(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    stage.act(&held, "start", json!({})).await.done();
    for _ in 0..2 {
        let moved = stage.act(&held, "release", json!({})).await.done();
        assert_eq!(moved["state"], "pending", "a release is safe to repeat");
    }
    assert_eq!(stage.task_of(&id).await["owner"], "planner");
    let next = stage.claimed(&id, "tester").await;
    assert!(next.fence > held.fence);
}

async fn an_agent_that_declines_an_offer_to_itself_makes_a_dead_letter(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let path = format!("/v1/handoffs/{id}/decline");
    stage.post(&path, json!({ "agent": "tester" })).await.refused(403, "not_target");
    let decline = json!({ "agent": "coder", "reason": "not my language" });
    let moved = stage.post(&path, decline).await.done();
    assert_eq!(moved["state"], "dead_lettered");
    assert_eq!(stage.show(&id).await["dead_letter"]["reason"], "declined");
    stage.post(&path, json!({ "agent": "tester" })).await.refused(409, "wrong_state");
}

async fn a_capability_still_has_other_takers_when_one_declines(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let path = format!("/v1/handoffs/{id}/decline");
    for half in [json!({ "claim_id": held.claim_id }), json!({ "fence": held.fence })] {
        let half = merged(json!({ "agent": "coder" }), half);
        stage.post(&path, half).await.refused(400, "invalid_request");
    }
    let moved = stage.act(&held, "decline", json!({ "agent": "coder" })).await.done();
    assert_eq!(moved["state"], "pending");
    stage.claim_one(&id, "coder").await.refused(409, "already_declined");
    let look = json!({ "agent": "coder", "capabilities": ["review"] });
    assert_eq!(stage.post("/v1/claims", look).await.done()["claims"], json!([]));
    assert_eq!(stage.show(&id).await["declined_by"], json!(["coder"]));
    stage.claimed(&id, "tester").await;
}

async fn work_waits_for_its_start_time(stage: Stage) {
    let id = stage.offer("coder", json!({ "start_in_ms": 10 * SECOND })).await;
    assert_eq!(stage.is(&id).await.0, "scheduled");
    stage.pass(10 * SECOND - 1).await;
    stage.claim_one(&id, "coder").await.refused(409, "wrong_state");
    stage.pass(1).await;
    stage.claimed(&id, "coder").await;
}

async fn work_that_nobody_takes_expires(stage: Stage) {
    let past = json!({ "deadline": "2020-01-01T00:00:00Z" });
    let late = stage.post("/v1/handoffs", offer("coder", past)).await;
    late.refused(422, "deadline_passed");
    let id = stage.offer("coder", json!({ "expires_in_ms": 5 * SECOND })).await;
    stage.pass(5 * SECOND - 1).await;
    assert_eq!(stage.is(&id).await.0, "pending");
    stage.pass(1).await;
    assert_eq!(stage.is(&id).await, ("dead_lettered".into(), "dead_lettered".into()));
    assert_eq!(stage.show(&id).await["dead_letter"]["reason"], "expired");
}

async fn a_hard_deadline_ends_work_that_still_sends_heartbeats(stage: Stage) {
    let id = stage.offer("coder", json!({ "terms": { "work_ms": 50 * SECOND } })).await;
    let held = stage.claimed(&id, "coder").await;
    stage.pass(25 * SECOND).await;
    let beat = stage.act(&held, "heartbeat", json!({})).await.done();
    assert_eq!((&beat["lease_left_ms"], &beat["work_left_ms"]), (&json!(25_000), &json!(25_000)));
    stage.pass(25 * SECOND).await;
    stage.act(&held, "heartbeat", json!({})).await.refused(409, "stale_claim");
    assert_eq!(stage.show(&id).await["attempts"][0]["ended"], "lost_hard_deadline");
}

async fn handoffs_with_one_ordering_key_go_one_after_the_other(stage: Stage) {
    let key = json!({ "ordering_key": "repo-7" });
    let first = stage.offer("coder", key.clone()).await;
    let second = stage.offer("coder", merged(key, json!({ "priority": 9 }))).await;
    let problem = stage.claim_one(&second, "coder").await.refused(409, "out_of_turn");
    assert_eq!(problem["details"]["first"], first);
    assert_eq!(problem["retryable"], true);
    let held = stage.claimed(&first, "coder").await;
    let wish = json!({ "agent": "coder", "max": 5 });
    assert_eq!(stage.post("/v1/claims", wish).await.done()["claims"], json!([]));
    stage.completed(&held).await;
    stage.claimed(&second, "coder").await;
}

async fn a_listing_filters_and_goes_on_where_it_ended(stage: Stage) {
    let mut ids = Vec::new();
    for to in ["coder", "tester", "*review", "coder"] {
        ids.push(stage.offer(to, json!({})).await);
    }
    stage.claimed(&ids[0], "coder").await;
    let listed = async |query: &str| -> Vec<String> {
        let page = stage.get(&format!("/v1/handoffs?{query}")).await.done();
        let handoffs = page["handoffs"].as_array().unwrap();
        handoffs.iter().map(|handoff| text(&handoff["handoff_id"])).collect()
    };
    assert_eq!(listed("").await, [&*ids[3], &*ids[2], &*ids[1], &*ids[0]]);
    assert_eq!(listed("state=claimed").await, [&*ids[0]]);
    assert_eq!(listed("to_agent=coder&state=pending").await, [&*ids[3]]);
    assert_eq!(listed("to_capability=review").await, [&*ids[2]]);
    assert_eq!(listed("from_agent=nobody").await, [""; 0]);
    let task = text(&stage.show(&ids[1]).await["task_id"]);
    assert_eq!(listed(&format!("task={task}")).await, [&*ids[1]]);

    let first = stage.get("/v1/handoffs?limit=3").await.done();
    let next = text(&first["next"]);
    let rest = stage.get(&format!("/v1/handoffs?limit=3&before={next}")).await.done();
    assert_eq!(rest["handoffs"][0]["handoff_id"], *ids[0]);
    assert_eq!(rest.get("next"), None::<&Value>);
    for bad in ["state=happy", "limit=0", "limit=1001", "limit=x", "mood=good", "before=7"] {
        stage.get(&format!("/v1/handoffs?{bad}")).await.refused(400, "invalid_request");
    }
    let both = "/v1/handoffs?to_agent=coder&to_capability=review";
    stage.get(both).await.refused(400, "invalid_request");
}
