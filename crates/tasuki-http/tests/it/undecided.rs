// SPDX-License-Identifier: Apache-2.0
//! What a dead letter keeps back, and what must not be lost or let through when somebody decides on
//! one. Each story goes on after a restart.

use serde_json::{Value, json};

use crate::support::{Held, SECOND, Stage, failure, merged, offer, on_durable_stores, text};

on_durable_stores! {
    what_a_letter_kept_back_goes_on_when_the_owner_ends_its_task
    a_task_is_not_completed_while_something_far_below_it_is_open
    what_is_sent_again_is_given_again_what_it_waited_for
    a_join_that_went_on_without_a_member_does_not_wait_for_it_again
    an_amended_letter_waits_until_somebody_has_looked_at_its_taint
    an_amended_letter_is_read_back_like_the_one_before
    nothing_is_sent_again_without_a_budget
    an_answer_is_kept_while_what_is_above_it_is_undecided
    nobody_is_asked_next_to_do_what_it_may_approve
}

async fn call(stage: &Stage, from: &str, on: &str, to: &str, change: Value) -> (String, String) {
    let call = json!({
        "from_agent": from, "task_id": on, "intent": null, "control": "awaited",
    });
    let offered = stage.post("/v1/handoffs", merged(offer(to, call), change)).await.done();
    (text(&offered["handoff_id"]), text(&offered["task_id"]))
}

async fn task_id(stage: &Stage, handoff: &str) -> String {
    text(&stage.show(handoff).await["task_id"])
}

async fn decide(stage: &Stage, letter: &str, verb: &str, change: Value) -> Value {
    let body = merged(json!({ "by": "person" }), change);
    stage.post(&format!("/v1/dead-letters/{letter}/{verb}"), body).await.done()
}

/// The next work of an agent, as soon as there is some.
async fn next_work(stage: &Stage, agent: &str) -> Value {
    let wish = json!({ "agent": agent, "wait_ms": 60_000 });
    stage.post("/v1/claims", wish).await.done()["claims"][0].clone()
}

async fn fails(stage: &Stage, held: &Held) {
    stage.act(held, "fail", failure("permanent")).await.done();
}

/// A task whose hop is a dead letter, with a call of that hop below it.
async fn letter(stage: &Stage) -> (String, String, String, String) {
    let root = stage.offer("coder", json!({})).await;
    let coder = stage.claimed(&root, "coder").await;
    let task = task_id(stage, &root).await;
    let (called, called_task) = call(stage, "coder", &task, "tester", json!({})).await;
    fails(stage, &coder).await;
    assert_eq!(stage.is(&called).await.0, "scheduled", "it is on hold");
    (root, task, called, called_task)
}

async fn what_a_letter_kept_back_goes_on_when_the_owner_ends_its_task(stage: Stage) {
    let (_, task, called, called_task) = letter(&stage).await;
    let stage = stage.restarted().await;
    let result = json!({ "by": "planner", "payload": { "type": "by_hand" }, "below": "let_go" });
    stage.post(&format!("/v1/tasks/{task}/complete"), result).await.done();
    assert_eq!(stage.is(&called).await.0, "pending", "nobody has to decide any more");
    let shown = stage.get(&format!("/v1/tasks/{called_task}")).await.done();
    assert_eq!(shown.get("on_hold"), None);
    let stage = stage.restarted().await;
    let held = stage.claimed(&called, "tester").await;
    stage.completed(&held).await;
}

async fn a_task_is_not_completed_while_something_far_below_it_is_open(stage: Stage) {
    let root = stage.offer("coder", json!({})).await;
    let coder = stage.claimed(&root, "coder").await;
    let task = task_id(&stage, &root).await;
    let (called, called_task) = call(&stage, "coder", &task, "tester", json!({})).await;
    let tester = stage.claimed(&called, "tester").await;
    let (deep, deep_task) = call(&stage, "tester", &called_task, "deep", json!({})).await;
    stage.completed(&tester).await;
    fails(&stage, &coder).await;
    let stage = stage.restarted().await;
    let result = json!({ "by": "planner", "payload": { "type": "by_hand" } });
    let path = format!("/v1/tasks/{task}/complete");
    let refused = stage.post(&path, result.clone()).await.refused(409, "open_below");
    assert_eq!(refused["details"]["below"], json!(deep_task), "{refused}");
    let cancel = json!({ "by": "tester", "reason": "not needed" });
    stage.post(&format!("/v1/handoffs/{deep}/cancel"), cancel).await.done();
    stage.post(&path, result).await.done();
}

/// A letter of work that waited for another task and was given its result.
async fn joined_letter(stage: &Stage) -> (String, String) {
    let first = stage.offer("one", json!({})).await;
    let first_task = task_id(stage, &first).await;
    let after = json!({ "after": { "tasks": [first_task], "need": 1 } });
    let last = stage.offer("last", after).await;
    let one = stage.claimed(&first, "one").await;
    let done = json!({ "payload": { "type": "found", "where": "src/a.rs" } });
    stage.act(&one, "complete", done).await.done();
    let claim = next_work(stage, "last").await;
    fails(stage, &Held::of(&claim)).await;
    (last, first_task)
}

async fn what_is_sent_again_is_given_again_what_it_waited_for(stage: Stage) {
    let mut stage = stage;
    for (verb, change) in [("redrive", json!({})), ("amend", json!({ "ask": "Look twice." }))] {
        let (last, first_task) = joined_letter(&stage).await;
        decide(&stage, &last, verb, change).await;
        stage = stage.restarted().await;
        let claim = next_work(&stage, "last").await;
        assert_eq!(claim["joined"][0]["task_id"], json!(first_task), "{verb}");
        assert_eq!(claim["joined"][0]["output"]["payload"]["where"], "src/a.rs");
        assert_eq!(claim["envelope"]["after"]["tasks"], json!([first_task]));
        stage.completed(&Held::of(&claim)).await;
    }
}

async fn a_join_that_went_on_without_a_member_does_not_wait_for_it_again(stage: Stage) {
    let mut stage = stage;
    for (verb, change) in [("redrive", json!({})), ("amend", json!({ "ask": "Look twice." }))] {
        let slow = stage.offer("slow", json!({})).await;
        let slow_task = task_id(&stage, &slow).await;
        let after = json!({
            "after": { "tasks": [slow_task], "need": 1 }, "start_in_ms": 20 * SECOND,
        });
        let last = stage.offer("last", after).await;
        stage.pass(20 * SECOND).await;
        let claim = next_work(&stage, "last").await;
        assert_eq!(claim["joined"][0]["came_to"], "open");
        fails(&stage, &Held::of(&claim)).await;
        decide(&stage, &last, verb, change).await;
        stage = stage.restarted().await;
        stage.pass(1).await;
        let claim = next_work(&stage, "last").await;
        assert_eq!(claim["joined"][0]["came_to"], "open", "{verb}: it is missing still");
        assert_eq!(claim["gaps"][0]["reference"], json!(slow_task));
        stage.completed(&Held::of(&claim)).await;
    }
}

async fn an_amended_letter_waits_until_somebody_has_looked_at_its_taint(stage: Stage) {
    let first = stage.offer("coder", json!({})).await;
    let task = task_id(&stage, &first).await;
    let coder = stage.claimed(&first, "coder").await;
    let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "code" } });
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    stage.act(&coder, "complete", done).await.done();
    let claim = next_work(&stage, "tester").await;
    fails(&stage, &Held::of(&claim)).await;
    let retract = json!({ "by": "coder", "reason": "not tested", "policy": "block" });
    stage.post(&format!("/v1/handoffs/{first}/retract"), retract).await.done();
    let stage = stage.restarted().await;
    let letter = text(&claim["handoff_id"]);
    let sent = decide(&stage, &letter, "amend", json!({ "ask": "Test it." })).await;
    let sent = text(&sent["handoff_id"]);
    assert_eq!(stage.is(&sent).await.0, "awaiting_approval");
    stage.claim_one(&sent, "tester").await.refused(409, "wrong_state");
    let clear = json!({ "by": "planner", "source": first, "reason": "looked at it" });
    stage.post(&format!("/v1/tasks/{task}/clear-taint"), clear).await.done();
    let held = stage.claimed(&sent, "tester").await;
    stage.completed(&held).await;
}

async fn an_amended_letter_is_read_back_like_the_one_before(stage: Stage) {
    let change = json!({ "constraints": ["Never touch auth."], "read_back": true });
    let id = stage.offer("coder", change).await;
    stage.post(&format!("/v1/handoffs/{id}/decline"), json!({ "agent": "coder" })).await.done();
    let stage = stage.restarted().await;
    let sent = decide(&stage, &id, "amend", json!({ "ask": "Please." })).await;
    let held = stage.claimed(&text(&sent["handoff_id"]), "coder").await;
    let done = json!({ "payload": { "type": "done" } });
    stage.act(&held, "complete", done).await.refused(409, "read_back_needed");
}

async fn nothing_is_sent_again_without_a_budget(stage: Stage) {
    let root = stage.offer("coder", json!({ "budget": { "tokens": 100 } })).await;
    let coder = stage.claimed(&root, "coder").await;
    let task = task_id(&stage, &root).await;
    let (called, _) = call(&stage, "coder", &task, "tester", json!({})).await;
    let tester = stage.claimed(&called, "tester").await;
    let used = json!({ "usage": { "input_tokens": 90, "output_tokens": 10 } });
    stage.act(&tester, "fail", merged(failure("permanent"), used)).await.done();
    fails(&stage, &coder).await;
    let stage = stage.restarted().await;
    let by = json!({ "by": "person" });
    let to = json!({ "by": "person", "to": { "agent": "other" } });
    let path = |verb: &str| format!("/v1/dead-letters/{root}/{verb}");
    let refused = stage.post(&path("redrive"), by.clone()).await.refused(409, "budget_exhausted");
    assert_eq!(refused["details"]["task_id"], json!(task));
    stage.post(&path("reroute"), to).await.refused(409, "budget_exhausted");
    let many = json!({ "by": "person", "decision": "retry", "handoffs": [root] });
    let many = stage.post("/v1/dead-letters/decide", many).await.done();
    assert_eq!(many["results"][0]["error"]["code"], "budget_exhausted");
    let amend = json!({ "by": "person", "ask": "Be brief." });
    stage.post(&path("amend"), amend.clone()).await.refused(409, "budget_exhausted");
    // Whoever decides may give it one, and says so; what is below a task is bound by that.
    let anew = merged(amend, json!({ "budget": { "tokens": 40 } }));
    let sent = stage.post(&path("amend"), anew).await.done();
    let stage = stage.restarted().await;
    let claim = stage.claim_one(&text(&sent["handoff_id"]), "coder").await.done();
    assert_eq!(claim["budget"], json!({ "tokens": 40 }));
    assert_eq!(claim["envelope"]["budget"], json!({ "tokens": 40 }));
    let used = json!({
        "payload": { "type": "done" }, "usage": { "input_tokens": 40, "output_tokens": 0 },
    });
    stage.act(&Held::of(&claim), "complete", used).await.done();
    let shown = stage.get(&format!("/v1/tasks/{task}")).await.done();
    assert_eq!(shown["budget"], json!({ "tokens": 0 }));
}

async fn an_answer_is_kept_while_what_is_above_it_is_undecided(stage: Stage) {
    let root = stage.offer("coder", json!({})).await;
    let coder = stage.claimed(&root, "coder").await;
    let task = task_id(&stage, &root).await;
    let (called, _) = call(&stage, "coder", &task, "tester", json!({})).await;
    let tester = stage.claimed(&called, "tester").await;
    let ask = json!({ "text": "Which database?", "keep_ms": 600 * SECOND });
    stage.act(&tester, "ask", ask).await.done();
    fails(&stage, &coder).await;
    let answer = json!({ "by": "coder", "answer": "SQLite" });
    stage.post(&format!("/v1/handoffs/{called}/answer"), answer).await.done();
    let stage = stage.restarted().await;
    let refused = stage.claim_one(&called, "tester").await.refused(409, "on_hold");
    assert_eq!(refused["details"]["handoff_id"], json!(root), "{refused}");
    let any = stage.post("/v1/claims", json!({ "agent": "tester" })).await.done();
    assert_eq!(any["claims"], json!([]));
    // Whoever waits for it gets it as soon as somebody has decided.
    let waiting = tokio::spawn({
        let (stage, path) = (stage.clone(), format!("/v1/handoffs/{called}/claim"));
        let wish = json!({ "agent": "tester", "wait_ms": 60_000 });
        async move { stage.post(&path, wish).await.done() }
    });
    tokio::task::yield_now().await;
    decide(&stage, &root, "redrive", json!({})).await;
    let claim = waiting.await.unwrap();
    assert_eq!(claim["questions"][0]["answer"], "SQLite", "{claim}");
    stage.completed(&Held::of(&claim)).await;
}

async fn nobody_is_asked_next_to_do_what_it_may_approve(stage: Stage) {
    let next = json!({ "fallbacks": [{ "agent": "boss" }] });
    let named = merged(next.clone(), json!({ "approvers": ["boss"] }));
    stage.post("/v1/handoffs", offer("coder", named)).await.refused(422, "invalid_terms");
    let id = stage.offer("coder", merged(next, json!({ "needs_approval": true }))).await;
    let stage = stage.restarted().await;
    let path = format!("/v1/handoffs/{id}/approve");
    stage.post(&path, json!({ "by": "boss" })).await.refused(403, "not_permitted");
    stage.post(&path, json!({ "by": "person" })).await.done();
}
