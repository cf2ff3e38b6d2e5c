// SPDX-License-Identifier: Apache-2.0
//! What is decided about work from outside it: new time at the desk, letters that nobody has to decide
//! on, tasks that their owners end, named approvers and coordinators. Stories that span two requests
//! go on after a restart.

use serde_json::{Value, json};

use crate::support::{
    Backend, Held, SECOND, Stage, failure, in_time, may, offer, on_durable_stores, text,
};

on_durable_stores! {
    a_decision_gives_an_expired_letter_new_time
    a_letter_whose_task_went_on_is_closed_by_that
    an_owner_completes_its_own_task
    a_publication_ends_when_its_receivers_have
    nothing_but_a_result_is_done
    a_correlation_id_comes_back_with_every_answer_and_is_searched_for
    only_named_approvers_approve_and_each_is_told
    nobody_does_what_it_approved
    work_says_what_it_waits_for
    what_a_manifest_declares_counts_when_claiming
}

const DAY: u64 = 24 * 60 * 60 * SECOND;

async fn expired(stage: &Stage, change: Value) -> String {
    let mut change = change;
    change["expires_in_ms"] = (3 * SECOND).into();
    let id = stage.offer("coder", change).await;
    stage.pass(3 * SECOND).await;
    assert_eq!(stage.show(&id).await["dead_letter"]["reason"], "expired");
    id
}

/// How long a handoff may take from its offer.
async fn span(stage: &Stage, offered: &Value) -> i64 {
    let shown = stage.show(&text(&offered["handoff_id"])).await;
    let at = |name: &str| text(&shown[name]).parse::<tasuki_core::Timestamp>().unwrap().0;
    at("expires_at") - at("offered_at")
}

async fn decide(stage: &Stage, letter: &str, verb: &str, body: Value) -> Value {
    stage.post(&format!("/v1/dead-letters/{letter}/{verb}"), body).await.done()
}

/// The next work of an agent, as soon as there is some.
async fn next_work(stage: &Stage, agent: &str) -> Value {
    let wish = json!({ "agent": agent, "wait_ms": 60_000 });
    stage.post("/v1/claims", wish).await.done()["claims"][0].clone()
}

async fn a_decision_gives_an_expired_letter_new_time(stage: Stage) {
    let mut letters = Vec::new();
    for _ in 0..6 {
        letters.push(expired(&stage, json!({})).await);
    }
    let stage = stage.restarted().await;
    let by = "person";
    let again = decide(&stage, &letters[0], "redrive", json!({ "by": by })).await;
    assert_eq!(span(&stage, &again).await, DAY as i64, "what was too short is not used again");
    let asked = json!({ "by": by, "expires_in_ms": 7000 });
    let again = decide(&stage, &letters[1], "redrive", asked.clone()).await;
    assert_eq!(span(&stage, &again).await, 7000);
    let repeated = decide(&stage, &letters[1], "redrive", asked).await;
    assert_eq!(repeated["handoff_id"], again["handoff_id"], "once");
    let to = json!({ "by": by, "to": { "agent": "tester" }, "expires_in_ms": 8000 });
    assert_eq!(span(&stage, &decide(&stage, &letters[2], "reroute", to).await).await, 8000);
    let amend = json!({ "by": by, "ask": "Be quick.", "expires_in_ms": 9000 });
    assert_eq!(span(&stage, &decide(&stage, &letters[3], "amend", amend).await).await, 9000);
    let answer = json!({ "by": by, "decision": { "decision": "SQLite" }, "expires_in_ms": 5000 });
    assert_eq!(span(&stage, &decide(&stage, &letters[4], "answer", answer).await).await, 5000);
    let many = json!({ "by": by, "decision": "retry", "handoffs": [letters[5]],
        "expires_in_ms": 6000 });
    let decided = stage.post("/v1/dead-letters/decide", many).await.done();
    let to = json!({ "handoff_id": decided["results"][0]["to_handoff"] });
    assert_eq!(span(&stage, &to).await, 6000);
    let dead = expired(&stage, json!({})).await;
    let amended = decide(&stage, &dead, "amend", json!({ "by": by, "ask": "Now." })).await;
    assert_eq!(span(&stage, &amended).await, DAY as i64);
    let dead = expired(&stage, json!({})).await;
    let none = json!({ "by": by, "expires_in_ms": 0 });
    let path = format!("/v1/dead-letters/{dead}/redrive");
    stage.post(&path, none).await.refused(422, "invalid_terms");
    // What failed for another reason gets as long as it had.
    let id = stage.offer("coder", json!({ "expires_in_ms": 40_000 })).await;
    let held = stage.claimed(&id, "coder").await;
    stage.act(&held, "fail", failure("permanent")).await.done();
    let again = decide(&stage, &id, "redrive", json!({ "by": by })).await;
    assert_eq!(span(&stage, &again).await, 40_000);
}

async fn a_letter_whose_task_went_on_is_closed_by_that(stage: Stage) {
    let anew = stage.dead_letter().await;
    let cancelled = stage.dead_letter().await;
    let completed = stage.dead_letter().await;
    let task = async |id: &str| text(&stage.show(id).await["task_id"]);
    let (first, second, third) =
        (task(&anew).await, task(&cancelled).await, task(&completed).await);
    let stage = stage.restarted().await;
    let on = json!({ "task_id": first, "intent": Value::Null });
    stage.offer("tester", on).await;
    let by = json!({ "by": "planner" });
    stage.post(&format!("/v1/tasks/{second}/cancel"), by.clone()).await.done();
    let result = json!({ "by": "planner", "payload": { "type": "done_by_hand" } });
    stage.post(&format!("/v1/tasks/{third}/complete"), result).await.done();
    let stage = stage.restarted().await;
    for (letter, why) in [
        (&anew, "task_offered_anew"),
        (&cancelled, "task_cancelled"),
        (&completed, "task_completed"),
    ] {
        assert_eq!(stage.show(letter).await["dead_letter"]["closed"], why);
        let path = format!("/v1/dead-letters/{letter}/redrive");
        stage.post(&path, by.clone()).await.refused(409, "already_reviewed");
    }
    let waiting = stage.get("/v1/dead-letters").await.done();
    assert_eq!(waiting["handoffs"], json!([]), "nobody has to decide");
    assert!(stage.story(&anew).await.contains(&"letter_closed".to_owned()));
}

async fn an_owner_completes_its_own_task(stage: Stage) {
    let open = json!({ "from_agent": "planner", "intent": "Ship it." });
    let task = text(&stage.post("/v1/tasks", open).await.done()["task_id"]);
    let path = format!("/v1/tasks/{task}/complete");
    let call = json!({ "task_id": task, "intent": Value::Null, "control": "awaited" });
    let below = stage.offer("coder", call).await;
    let stage = stage.restarted().await;
    let result = json!({ "by": "planner", "payload": { "type": "shipped" } });
    let problem = stage.post(&path, result.clone()).await.refused(409, "open_below");
    assert_eq!(problem["details"]["below"], stage.show(&below).await["task_id"]);
    let other = json!({ "by": "coder", "payload": { "type": "shipped" } });
    stage.post(&path, other).await.refused(403, "not_owner");
    let held = stage.claimed(&below, "coder").await;
    stage.completed(&held).await;
    stage.post(&path, result.clone()).await.done();
    let stage = stage.restarted().await;
    let shown = stage.get(&format!("/v1/tasks/{task}")).await.done();
    assert_eq!(
        (&shown["state"], &shown["output"]["payload"]["type"]),
        (&json!("completed"), &json!("shipped"))
    );
    stage.post(&path, result).await.refused(409, "task_finished");
    // What is handed on is ended by who has it; what may go on by itself does.
    let on = stage.offer("coder", json!({})).await;
    let task = text(&stage.show(&on).await["task_id"]);
    let result = json!({ "by": "planner", "payload": { "type": "t" }, "below": "let_go" });
    let path = format!("/v1/tasks/{task}/complete");
    stage.post(&path, result.clone()).await.refused(409, "handoff_open");
    let open = json!({ "from_agent": "planner", "intent": "Ship it." });
    let task = text(&stage.post("/v1/tasks", open).await.done()["task_id"]);
    let call = json!({ "task_id": task, "intent": Value::Null, "control": "awaited" });
    stage.offer("coder", call).await;
    stage.post(&format!("/v1/tasks/{task}/complete"), result).await.done();
}

async fn a_publication_ends_when_its_receivers_have(stage: Stage) {
    let message = json!({ "from_agent": "planner", "intent": "Say what you think.",
        "receivers": ["ann", "bob"], "payload": { "type": "question" } });
    let told = stage.post("/v1/channels/all/publish", message.clone()).await.done();
    let task = text(&told["task_id"]);
    let ids: Vec<_> =
        told["handoffs"].as_array().unwrap().iter().map(|it| text(&it["handoff_id"])).collect();
    let held = stage.claimed(&ids[0], "ann").await;
    stage.completed(&held).await;
    let stage = stage.restarted().await;
    let path = format!("/v1/tasks/{task}");
    assert_eq!(stage.get(&path).await.done()["state"], "open");
    let held = stage.claimed(&ids[1], "bob").await;
    stage.act(&held, "fail", failure("permanent")).await.done();
    assert_eq!(stage.get(&path).await.done()["state"], "open", "somebody has to decide");
    let why = json!({ "by": "person", "reason": "one answer is enough" });
    stage.post(&format!("/v1/dead-letters/{}/discard", ids[1]), why).await.done();
    let wait = json!({ "tasks": [task], "timeout_ms": 60_000 });
    stage.post("/v1/wait", wait).await.done();
    assert_eq!(stage.get(&path).await.done()["state"], "completed");
    let mut nobody = message;
    nobody["receivers"] = json!([]);
    let told = stage.post("/v1/channels/all/publish", nobody).await.done();
    let shown = stage.get(&format!("/v1/tasks/{}", text(&told["task_id"]))).await.done();
    assert_eq!(shown["state"], "completed");
}

async fn nothing_but_a_result_is_done(stage: Stage) {
    let dead = stage.dead_letter().await;
    let cancelled = stage.offer("coder", json!({})).await;
    let by = json!({ "by": "planner" });
    stage.post(&format!("/v1/handoffs/{cancelled}/cancel"), by.clone()).await.done();
    let aborted = stage.offer("coder", json!({})).await;
    stage.post(&format!("/v1/handoffs/{aborted}/abort"), by).await.done();
    let rejected = stage.offer("coder", json!({ "needs_approval": true })).await;
    let why = json!({ "by": "person", "reason": "not now" });
    stage.post(&format!("/v1/handoffs/{rejected}/reject"), why).await.done();
    let done = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&done, "coder").await;
    stage.completed(&held).await;
    let stage = stage.restarted().await;
    for (id, state, status) in [
        (&dead, "dead_lettered", "dead_lettered"),
        (&cancelled, "cancelled", "cancelled"),
        (&aborted, "failed", "failed"),
        (&rejected, "dead_lettered", "rejected"),
        (&done, "completed", "done"),
    ] {
        assert_eq!(stage.is(id).await, (state.into(), status.into()));
    }
}

async fn a_correlation_id_comes_back_with_every_answer_and_is_searched_for(stage: Stage) {
    let named = json!({ "correlation_id": "order-7" });
    let offered = stage.post("/v1/handoffs", offer("coder", named)).await.done();
    stage.offer("coder", json!({ "correlation_id": "order-8" })).await;
    let id = text(&offered["handoff_id"]);
    let stage = stage.restarted().await;
    let claimed = stage.claim_one(&id, "coder").await.done();
    let held = Held::of(&claimed);
    let beat = stage.act(&held, "heartbeat", json!({})).await.done();
    let word = json!({ "by": "planner", "text": "Hurry." });
    let told = stage.post(&format!("/v1/handoffs/{id}/messages"), word).await.done();
    let asked = stage.act(&held, "ask", json!({ "text": "Which one?" })).await.done();
    let open = stage.get("/v1/questions").await.done()["questions"][0].clone();
    let answer = json!({ "by": "planner", "answer": "this" });
    let answered = stage.post(&format!("/v1/handoffs/{id}/answer"), answer).await.done();
    let held = stage.claimed(&id, "coder").await;
    for answer in [&beat, &told, &asked, &open, &answered] {
        assert_eq!(answer["correlation_id"], "order-7", "{answer}");
    }
    let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "next" } });
    let result = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    let moved = stage.act(&held, "complete", result).await.done();
    let task = stage.task_of(&id).await;
    let next = stage.show(&text(&task["live_handoff"])).await;
    let waited = json!({ "handoffs": [id], "timeout_ms": 0 });
    let waited = stage.post("/v1/wait", waited).await.done();
    for answer in [&offered, &claimed, &moved, &task, &next, &waited["handoffs"][0]] {
        assert_eq!(answer["correlation_id"], "order-7", "{answer}");
    }
    let found = stage.get("/v1/tasks?correlation_id=order-7").await.done();
    let found = found["tasks"].as_array().unwrap();
    assert_eq!((found.len(), &found[0]["task_id"]), (1, &task["task_id"]));
    let nothing = stage.get("/v1/tasks?correlation_id=order-9").await.done();
    assert_eq!(nothing["tasks"], json!([]));
}

async fn only_named_approvers_approve_and_each_is_told(stage: Stage) {
    for part in ["planner", "coder"] {
        let bad = offer("coder", json!({ "approvers": [part] }));
        stage.post("/v1/handoffs", bad).await.refused(422, "invalid_terms");
    }
    let id = stage.offer("coder", json!({ "approvers": ["ann", "bob"] })).await;
    assert_eq!(stage.is(&id).await.0, "awaiting_approval");
    let told = next_work(&stage, "ann").await;
    let payload = &told["envelope"]["payload"];
    assert_eq!((&payload["type"], &payload["handoff_id"]), (&json!("approval"), &json!(id)));
    let stage = stage.restarted().await;
    assert_eq!(next_work(&stage, "bob").await["envelope"]["payload"]["handoff_id"], json!(id));
    let path = |verb: &str| format!("/v1/handoffs/{id}/{verb}");
    for other in ["person", "planner", "coder"] {
        let by = json!({ "by": other });
        stage.post(&path("approve"), by).await.refused(403, "not_permitted");
    }
    stage.post(&path("reject"), json!({ "by": "ann" })).await.refused(400, "invalid_request");
    let empty = json!({ "by": "ann", "reason": "  " });
    stage.post(&path("reject"), empty).await.refused(400, "invalid_request");
    let why = json!({ "by": "ann", "reason": "not before the release" });
    stage.post(&path("reject"), why).await.done();
    let stage = stage.restarted().await;
    let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
    assert_eq!(letter["rejected_because"], "not before the release");
    let id = stage.offer("coder", json!({ "approvers": ["ann"] })).await;
    let by = json!({ "by": "ann" });
    stage.post(&format!("/v1/handoffs/{id}/approve"), by).await.done();
    stage.claimed(&id, "coder").await;
}

async fn nobody_does_what_it_approved(stage: Stage) {
    let id = stage.offer("*review", json!({ "needs_approval": true })).await;
    let by = json!({ "by": "ann" });
    stage.post(&format!("/v1/handoffs/{id}/approve"), by).await.done();
    let stage = stage.restarted().await;
    stage.claim_one(&id, "ann").await.refused(409, "already_declined");
    let wish = json!({ "agent": "ann", "capabilities": ["review"] });
    assert_eq!(stage.post("/v1/claims", wish).await.done()["claims"], json!([]));
    stage.claimed(&id, "bob").await;
}

async fn work_says_what_it_waits_for(stage: Stage) {
    let ready = stage.offer("coder", json!({})).await;
    let approval = stage.offer("coder", json!({ "approvers": ["ann"] })).await;
    let later = stage.offer("coder", json!({ "start_in_ms": 5000 })).await;
    let task = text(&stage.show(&ready).await["task_id"]);
    let after = json!({ "after": { "tasks": [task], "need": 1 } });
    let blocked = stage.offer("coder", after).await;
    let behind = stage.offer("flaky", json!({ "priority": 0 })).await;
    for _ in 0..3 {
        let id = stage.offer("flaky", json!({ "terms": { "attempts": 1 } })).await;
        let held = stage.claimed(&id, "flaky").await;
        stage.act(&held, "fail", failure("retryable")).await.done();
    }
    let stage = stage.restarted().await;
    let all = stage.get("/v1/ready").await.done();
    let of = |list: &str, id: &str| {
        let list = all[list].as_array().unwrap();
        list.iter().find(|it| it["handoff_id"] == id).map(|it| it["waits_for"][0].clone())
    };
    assert_eq!(of("ready", &ready).unwrap()["kind"], "claim");
    assert_eq!(of("held", &approval).unwrap()["approvers"], json!(["ann"]));
    assert_eq!(of("held", &later).unwrap()["kind"], "time");
    let first = of("held", &blocked).unwrap();
    assert_eq!((&first["task_id"], &first["state"]), (&json!(task), &json!("open")));
    assert_eq!(of("held", &behind).unwrap()["breaker"], "open");
    assert_eq!(of("ready", &approval), None);
    let shown = stage.show(&blocked).await;
    assert_eq!(shown["waits_for"][0]["kind"], "task");
    let held = stage.claimed(&ready, "coder").await;
    assert_eq!(stage.show(&ready).await["waits_for"][0]["agent"], "coder");
    stage.completed(&held).await;
    assert_eq!(stage.show(&ready).await["waits_for"], Value::Null, "it is over");
}

async fn what_a_manifest_declares_counts_when_claiming(stage: Stage) {
    let manifest = json!({ "agent_id": "ann", "capabilities": [{ "name": "review" }] });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    let stage = stage.restarted().await;
    let id = stage.offer("*review", json!({})).await;
    let claimed = stage.post("/v1/claims", json!({ "agent": "ann" })).await.done();
    assert_eq!(text(&claimed["claims"][0]["handoff_id"]), id);
    let nothing = stage.post("/v1/claims", json!({ "agent": "bob" })).await.done();
    assert_eq!(nothing["claims"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_carries_out_what_it_is_offered_and_no_more() {
    let stage = Stage::closed(Backend::Sqlite).await;
    in_time(coordinating(stage)).await;
}

async fn coordinating(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(&["send"])).await;
    let coder = admin.enroll("coder", may(&["claim", "complete"])).await;
    let lead = admin.enroll("lead", may(&["claim"])).await;
    let other = admin.enroll("other", may(&["claim"])).await;
    let dead = async |change: Value| {
        let id = planner.offer("coder", change).await;
        let held = coder.claimed(&id).await;
        coder.act(&held, "fail", failure("permanent")).await.done();
        id
    };
    let named = json!({ "coordinator": { "agent": "lead" }, "fallbacks": [{ "agent": "tester" }] });
    let (one, two, three) =
        (dead(named.clone()).await, dead(named.clone()).await, dead(named).await);
    let foreign = dead(json!({})).await;
    let path = |id: &str, verb: &str| format!("/v1/dead-letters/{id}/{verb}");
    let by = json!({ "by": "lead" });
    lead.get(&format!("/v1/dead-letters/{one}")).await.done();
    lead.post(&path(&one, "redrive"), by.clone()).await.done();
    let there = json!({ "by": "lead", "to": { "agent": "tester" } });
    let elsewhere = json!({ "by": "lead", "to": { "agent": "deployer" } });
    lead.post(&path(&two, "reroute"), elsewhere).await.refused(403, "not_permitted");
    lead.post(&path(&two, "reroute"), there).await.done();
    let why = json!({ "by": "lead", "reason": "enough" });
    lead.post(&path(&three, "discard"), why).await.done();
    // Nothing of other tasks, and nothing besides the choices.
    lead.post(&path(&foreign, "redrive"), by.clone()).await.refused(404, "handoff_not_found");
    let by_other = json!({ "by": "other" });
    other.post(&path(&foreign, "redrive"), by_other).await.refused(404, "handoff_not_found");
    let mine = json!({ "from_agent": "lead", "to": { "agent": "coder" }, "intent": "i",
        "payload": { "type": "t" } });
    lead.post("/v1/handoffs", mine).await.refused(403, "not_permitted");
}
