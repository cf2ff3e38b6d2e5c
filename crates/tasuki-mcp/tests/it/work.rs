// SPDX-License-Identifier: Apache-2.0
//! Work from the one who sends it to the one who does it and back, through tools alone.

use serde_json::{Value, json};

use crate::support::{Backend, Stage, VERSIONS, in_time, work};

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

/// Sends, claims, asks, answers, claims again and completes; the broker of each step may be another.
async fn whole_story(mut stages: impl AsyncFnMut() -> Stage, version: &'static str) {
    let planner = async |stage: &Stage| stage.agent("planner").at(version);
    let coder = async |stage: &Stage| stage.agent("coder").at(version);
    let stage = stages().await;
    let sent = planner(&stage).await.call("send", work()).await;
    let id = text(&sent, "handoff_id");

    let stage = stages().await;
    let held = coder(&stage).await.call("claim", json!({})).await;
    assert_eq!(held["claimed"], true);
    assert_eq!(held["handoff_id"], json!(id));
    assert_eq!(held["payload"], json!({ "type": "request", "path": "/users/{id}" }));
    let prompt = text(&held, "prompt");
    assert!(prompt.contains("Add GET /users/{id}."), "the user's own words: {prompt}");
    assert!(prompt.contains("do not touch the database"), "and every do not: {prompt}");
    assert_eq!(held["lease_left_ms"], 600_000, "a model thinks for longer than a program");

    let stage = stages().await;
    let claim = text(&held, "claim");
    let asked = json!({ "claim": claim, "text": "Which framework?" });
    let asked = coder(&stage).await.call("ask", asked).await;
    assert_eq!(asked["state"], "input_required");

    let stage = stages().await;
    let seen = planner(&stage).await.call("status", json!({ "handoff_id": id })).await;
    assert_eq!(seen["open_question"]["text"], "Which framework?");
    assert_eq!(seen["finished"], false);
    let answer = json!({ "handoff_id": id, "answer": { "framework": "axum" } });
    planner(&stage).await.call("answer", answer).await;

    let stage = stages().await;
    let again = coder(&stage).await.call("claim", json!({ "handoff_id": id })).await;
    assert_eq!(again["questions"][0]["answer"], json!({ "framework": "axum" }));
    let fails = json!({ "claim": claim, "payload": { "type": "patch" } });
    assert_eq!(coder(&stage).await.fails("complete", fails).await, "stale_claim");

    let stage = stages().await;
    let claim = text(&again, "claim");
    let beat = json!({ "claim": claim, "percent": 50, "note": "half" });
    let beat = coder(&stage).await.call("progress", beat).await;
    assert_eq!(beat["handoff_id"], json!(id));
    let done = json!({ "claim": claim, "payload": { "type": "patch", "diff": "+1" } });
    let done = coder(&stage).await.call("complete", done).await;
    assert_eq!(done["state"], "completed");

    let stage = stages().await;
    let seen = planner(&stage).await.call("status", json!({ "handoff_id": id })).await;
    assert_eq!(seen["finished"], true);
    assert_eq!(seen["output"]["payload"], json!({ "type": "patch", "diff": "+1" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_tells_the_whole_story() {
    for version in VERSIONS {
        let stage = Stage::open().await;
        in_time(whole_story(async || stage.clone(), version)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_story_goes_on_after_a_restart_between_any_two_calls() {
    let mut last = Some(Stage::on(Backend::Sqlite).await);
    let stages = async || {
        let stage = last.take().expect("one runs").restarted().await;
        last = Some(stage.clone());
        stage
    };
    Box::pin(in_time(whole_story(stages, VERSIONS[0]))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_of_two_brokers_answers_the_next_call() {
    let first = Stage::on(Backend::Postgres).await;
    let second = first.beside().await;
    for version in [VERSIONS[0], VERSIONS[3]] {
        let mut turn = 0;
        let stages = async || {
            turn += 1;
            if turn % 2 == 0 { first.clone() } else { second.clone() }
        };
        in_time(whole_story(stages, version)).await;
    }
}

#[tokio::test]
async fn what_is_handed_on_keeps_its_intent_and_what_binds_it() {
    let stage = Stage::open().await;
    let sent = stage.agent("planner").call("send", work()).await;
    let held = stage.agent("coder").call("claim", json!({})).await;
    let hop = json!({
        "claim": held["claim"],
        "to": { "agent": "reviewer" },
        "payload": { "type": "patch", "diff": "+1" },
        "summary": "Written, not reviewed.",
    });
    let done = stage.agent("coder").call("hand_on", hop).await;
    let held = stage.agent("reviewer").call("claim", json!({})).await;
    assert_eq!(held["handoff_id"], done["next_handoff_id"]);
    assert_eq!(held["task_id"], sent["task_id"], "the same task");
    let prompt = held["prompt"].as_str().unwrap();
    for said in ["Add GET /users/{id}.", "do not touch the database", "Written, not reviewed."] {
        assert!(prompt.contains(said), "{said}: {prompt}");
    }
}

#[tokio::test]
async fn who_calls_while_it_works_makes_a_task_below_its_own() {
    let stage = Stage::open().await;
    stage.agent("planner").call("send", work()).await;
    let coder = stage.agent("coder");
    let held = coder.call("claim", json!({})).await;
    let ask = json!({
        "claim": held["claim"],
        "to": { "agent": "reviewer" },
        "payload": { "type": "question" },
        "wait_ms": 0,
    });
    let called = coder.call("call", ask).await;
    assert_ne!(called["task_id"], held["task_id"]);
    assert_eq!(called["finished"], false);
    let story = coder.call("explain", json!({ "task_id": called["task_id"] })).await;
    assert_eq!(story["task"]["parent_task_id"], held["task_id"], "{story}");
    let own = coder.call("explain", json!({ "handoff_id": held["handoff_id"] })).await;
    assert_eq!(story["task"]["intent"], own["task"]["intent"], "the same words");
}

#[tokio::test]
async fn what_failed_is_looked_at_and_decided_on() {
    let stage = Stage::open().await;
    let planner = stage.agent("planner");
    let sent = planner.call("send", work()).await;
    let coder = stage.agent("coder");
    let held = coder.call("claim", json!({})).await;
    let failed = json!({
        "claim": held["claim"], "class": "permanent", "type": "no_access",
        "message": "the repository is gone", "hint": "give me another one",
    });
    coder.call("fail", failed).await;
    let seen = planner.call("status", json!({ "handoff_id": sent["handoff_id"] })).await;
    assert_eq!(seen["state"], "dead_lettered");
    assert!(seen["next"].as_str().unwrap().contains("decide_dead_letter"), "{seen}");
    let listed = planner.call("dead_letters", json!({})).await;
    assert_eq!(listed["dead_letters"][0]["handoff_id"], sent["handoff_id"]);
    let groups = planner.call("dead_letters", json!({ "groups": true })).await;
    assert_eq!(groups["groups"][0]["count"], 1);
    let id = &sent["handoff_id"];
    let shown = planner.call("dead_letters", json!({ "handoff_id": id })).await;
    assert!(shown["dead_letter"].to_string().contains("the repository is gone"));
    let wrong = json!({ "handoff_id": id, "decision": "retry", "reason": "why not" });
    assert_eq!(planner.fails("decide_dead_letter", wrong).await, "invalid_request");
    let decided = json!({
        "handoff_id": id, "decision": "reroute", "to": { "agent": "other" },
    });
    let decided = planner.call("decide_dead_letter", decided).await;
    let held = stage.agent("other").call("claim", json!({})).await;
    assert_eq!(held["handoff_id"], decided["handoff_id"]);
}

#[tokio::test]
async fn what_is_declined_or_released_goes_to_somebody_else() {
    let stage = Stage::open().await;
    let offer = json!({
        "to": { "capability": "review" }, "intent": "Look at it.", "payload": { "type": "request" },
    });
    let sent = stage.agent("planner").call("send", offer).await;
    let can = json!({ "capabilities": ["review"] });
    let first = stage.agent("first").call("claim", can.clone()).await;
    let decline = json!({ "claim": first["claim"], "reason": "not mine" });
    stage.agent("first").call("decline", decline).await;
    let none = stage.agent("first").call("claim", can.clone()).await;
    assert_eq!(none["claimed"], false, "it never comes back to who declined it");
    let second = stage.agent("second").call("claim", can.clone()).await;
    stage.agent("second").call("release", json!({ "claim": second["claim"] })).await;
    let third = stage.agent("third").call("claim", can).await;
    assert_eq!(third["handoff_id"], sent["handoff_id"]);
}

#[tokio::test]
async fn what_is_called_off_is_over_for_everybody() {
    let stage = Stage::open().await;
    let sent = stage.agent("planner").call("send", work()).await;
    let held = stage.agent("coder").call("claim", json!({})).await;
    let cancel = json!({ "handoff_id": sent["handoff_id"], "reason": "not wanted" });
    let cancelled = stage.agent("planner").call("cancel", cancel).await;
    assert_eq!(cancelled["state"], "cancelled");
    let late = json!({ "claim": held["claim"], "payload": { "type": "patch" } });
    assert_eq!(stage.agent("coder").fails("complete", late).await, "stale_claim");
}

#[tokio::test]
async fn memories_decisions_and_agents_are_found() {
    let stage = Stage::open().await;
    let coder = stage.agent("coder");
    let kept = json!({ "do": "remember", "text": "The tests need PostgreSQL.", "tags": ["tests"] });
    let kept = coder.call("remember", kept).await;
    let id = &kept["memory"]["memory_id"];
    let found = coder.call("read_memory", json!({ "q": "postgresql", "detail": "full" })).await;
    assert_eq!(found["memories"][0]["text"], "The tests need PostgreSQL.");
    let shown = coder.call("read_memory", json!({ "memory_id": id })).await;
    assert_eq!(shown["memories"][0]["memory_id"], *id);
    let pinned = coder.call("remember", json!({ "do": "pin", "memory_id": id })).await;
    assert_eq!(pinned["memory"]["pinned"], true);
    let decision = json!({
        "do": "decide", "project": "shop", "key": "database", "decision": "PostgreSQL",
    });
    coder.call("remember", decision).await;
    let context = coder.call("project_context", json!({ "project": "shop" })).await;
    assert_eq!(context["decisions"][0]["decision"], "PostgreSQL");
    let none = coder.call("find_agents", json!({ "capability": "review" })).await;
    assert_eq!(none["agents"], json!([]));
    assert_eq!(coder.fails("remember", json!({ "do": "forget" })).await, "invalid_request");
}

#[tokio::test]
async fn who_must_repeat_what_binds_it_is_told_and_can() {
    let stage = Stage::open().await;
    let offer = json!({
        "from_agent": "planner", "to": { "agent": "coder" }, "intent": "Delete old logs.",
        "constraints": ["do not delete backups"], "payload": { "type": "request" },
        "read_back": true,
    });
    let sent = stage.send(crate::support::post("/v1/handoffs", &offer)).await;
    assert_eq!(sent.status, 201, "{}", sent.body);
    let coder = stage.agent("coder");
    let held = coder.call("claim", json!({})).await;
    let bound = &held["must_read_back"]["constraints"];
    assert_eq!(bound[0]["text"], "do not delete backups", "{held}");
    let early = json!({ "claim": held["claim"], "percent": 1 });
    assert_eq!(coder.fails("progress", early).await, "read_back_needed");
    let repeated = json!({
        "claim": held["claim"], "read_back": { "constraints": [bound[0]["id"]] },
    });
    coder.call("progress", repeated).await;
    let done = json!({ "claim": held["claim"], "payload": { "type": "done" } });
    coder.call("complete", done).await;
}

#[tokio::test]
async fn where_a_trace_comes_from_travels_with_the_work() {
    let stage = Stage::open().await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let params = json!({
        "name": "send", "arguments": work(),
        "_meta": { "traceparent": trace, "tracestate": "a=1", "other": "no" },
    });
    let sent = stage.agent("planner").ask("tools/call", params).await.done();
    let id = text(&sent["structuredContent"], "handoff_id");
    let envelope = stage.get(&format!("/v1/handoffs/{id}/envelope")).await.body;
    assert_eq!(envelope["metadata"], json!({ "traceparent": trace, "tracestate": "a=1" }));
}

#[tokio::test]
async fn the_same_request_through_either_door_is_the_same_wish() {
    let stage = Stage::open().await;
    let mut offer = work();
    offer["idempotency_key"] = json!("once");
    let sent = stage.agent("planner").call("send", offer.clone()).await;
    offer["from_agent"] = json!("planner");
    let again = stage.send(crate::support::post("/v1/handoffs", &offer)).await;
    assert_eq!((again.status, &again.body["handoff_id"]), (200, &sent["handoff_id"]));
}
