// SPDX-License-Identifier: Apache-2.0
//! What binds a task below another in every way in which it can come about: while its parent waits for
//! an answer, after a redrive, for a circle that capabilities close, for results that are taken back. Each
//! story goes on after a restart.

use serde_json::{Value, json};

use crate::support::{
    Held, SECOND, Stage, everything, failure, in_time, may, merged, offer, on_durable_stores, text,
};

on_durable_stores! {
    a_dead_letter_is_closed_when_the_task_above_it_is_cancelled
    what_an_asker_calls_for_ends_with_its_hop
    what_is_sent_again_ends_no_later_than_anything_above_it
    what_goes_on_below_a_redrive_ends_no_later_than_that
    a_circle_that_a_capability_closes_is_refused
    work_never_waits_for_what_waits_for_it
    calls_made_on_a_result_that_is_taken_back_hear_of_it
    work_behind_other_work_of_its_ordering_key_says_so
    nobody_does_what_it_approved_when_others_are_asked_next
}

async fn task(stage: &Stage, id: &str) -> Value {
    stage.get(&format!("/v1/tasks/{id}")).await.done()
}

fn below(from: &str, on: &str) -> Value {
    json!({ "from_agent": from, "task_id": on, "intent": null, "control": "awaited" })
}

/// A call of somebody who works on a task: its handoff and its task.
async fn call(stage: &Stage, from: &str, on: &str, to: &str, change: Value) -> (String, String) {
    let call = merged(offer(to, below(from, on)), change);
    let offered = stage.post("/v1/handoffs", call).await.done();
    (text(&offered["handoff_id"]), text(&offered["task_id"]))
}

/// Work that an agent holds, and its task.
async fn held(stage: &Stage, agent: &str, change: Value) -> (Held, String) {
    let id = stage.offer(agent, change).await;
    let held = stage.claimed(&id, agent).await;
    (held, text(&stage.show(&id).await["task_id"]))
}

async fn a_dead_letter_is_closed_when_the_task_above_it_is_cancelled(stage: Stage) {
    let (_root, root_task) = held(&stage, "coder", json!({})).await;
    let (letter, _) = call(&stage, "coder", &root_task, "tester", json!({})).await;
    let tester = stage.claimed(&letter, "tester").await;
    stage.act(&tester, "fail", failure("permanent")).await.done();
    let stage = stage.restarted().await;
    let cancel = json!({ "by": "planner", "reason": "enough" });
    stage.post(&format!("/v1/tasks/{root_task}/cancel"), cancel).await.done();
    let listed = stage.get("/v1/dead-letters").await.done();
    assert_eq!(listed["handoffs"], json!([]), "nobody has to decide on it any more");
    let shown = stage.show(&letter).await;
    assert_eq!(shown["dead_letter"]["closed"], "task_cancelled", "{shown}");
    let redrive = format!("/v1/dead-letters/{letter}/redrive");
    stage.post(&redrive, json!({ "by": "person" })).await.refused(409, "already_reviewed");
}

async fn what_an_asker_calls_for_ends_with_its_hop(stage: Stage) {
    let (coder, root_task) = held(&stage, "coder", json!({ "expires_in_ms": 60 * SECOND })).await;
    stage.act(&coder, "ask", json!({ "text": "Which one?" })).await.done();
    let stage = stage.restarted().await;
    let long = json!({ "expires_in_ms": 600 * SECOND });
    let (called, called_task) = call(&stage, "coder", &root_task, "tester", long).await;
    let until = stage.show(&coder.handoff).await["expires_at"].clone();
    assert_eq!(stage.show(&called).await["expires_at"], until);
    let cancel = json!({ "by": "planner", "reason": "enough" });
    stage.post(&format!("/v1/handoffs/{}/cancel", coder.handoff), cancel).await.done();
    assert_eq!(task(&stage, &called_task).await["state"], "cancelled");
}

async fn what_is_sent_again_ends_no_later_than_anything_above_it(stage: Stage) {
    let (root, root_task) = held(&stage, "ann", json!({ "expires_in_ms": 600 * SECOND })).await;
    let short = json!({ "expires_in_ms": 20 * SECOND });
    let (middle, middle_task) = call(&stage, "ann", &root_task, "ben", short).await;
    let ben = stage.claimed(&middle, "ben").await;
    let (deep, _) = call(&stage, "ben", &middle_task, "cid", json!({})).await;
    stage.completed(&ben).await;
    stage.pass(20 * SECOND).await;
    assert_eq!(stage.is(&deep).await.0, "dead_lettered");
    let stage = stage.restarted().await;
    let until = stage.show(&root.handoff).await["expires_at"].clone();
    let again = json!({ "by": "person", "expires_in_ms": 9000 * SECOND });
    let sent = stage.post(&format!("/v1/dead-letters/{deep}/redrive"), again.clone()).await.done();
    assert_eq!(sent["expires_at"], until, "what is between has ended and says nothing any more");
    let cid = stage.claimed(&text(&sent["handoff_id"]), "cid").await;
    stage.act(&cid, "fail", failure("permanent")).await.done();
    let amend = merged(again, json!({ "payload": { "type": "request", "again": true } }));
    let path = format!("/v1/dead-letters/{}/amend", cid.handoff);
    assert_eq!(stage.post(&path, amend).await.done()["expires_at"], until);
}

async fn what_goes_on_below_a_redrive_ends_no_later_than_that(stage: Stage) {
    let (root, root_task) = held(&stage, "ann", json!({ "expires_in_ms": 600 * SECOND })).await;
    let (middle, middle_task) = call(&stage, "ann", &root_task, "ben", json!({})).await;
    let ben = stage.claimed(&middle, "ben").await;
    let (deep, deep_task) = call(&stage, "ben", &middle_task, "cid", json!({})).await;
    stage.act(&root, "fail", failure("permanent")).await.done();
    let stage = stage.restarted().await;
    let redrive = json!({ "by": "person", "expires_in_ms": 25 * SECOND });
    let path = format!("/v1/dead-letters/{}/redrive", root.handoff);
    let until = stage.post(&path, redrive).await.done()["expires_at"].clone();
    for (handoff, task_id) in [(&middle, &middle_task), (&deep, &deep_task)] {
        assert_eq!(stage.show(handoff).await["expires_at"], until);
        assert_eq!(task(&stage, task_id).await["deadline"], until);
    }
    let beat = stage.act(&ben, "heartbeat", json!({})).await.done();
    assert_eq!(beat["work_left_ms"], 25 * SECOND, "and its holder is told");
    let stage = stage.restarted().await;
    stage.pass(25 * SECOND).await;
    assert_eq!(stage.is(&deep).await.0, "dead_lettered");
    stage.act(&ben, "heartbeat", json!({})).await.refused(409, "stale_claim");
}

async fn can(stage: &Stage, agent: &str, capability: &str, concurrency: u32) {
    let manifest = json!({ "agent_id": agent, "concurrency": concurrency, "capabilities": [
        { "name": capability, "input_schema": {}, "output_schema": {} },
    ] });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
}

async fn a_circle_that_a_capability_closes_is_refused(stage: Stage) {
    can(&stage, "ann", "plan", 1).await;
    can(&stage, "ben", "review", 1).await;
    let (_ann, ann_task) = held(&stage, "ann", json!({})).await;
    let (to_ben, ben_task) = call(&stage, "ann", &ann_task, "*review", json!({})).await;
    stage.claimed(&to_ben, "ben").await;
    let (to_cid, cid_task) = call(&stage, "ben", &ben_task, "cid", json!({})).await;
    stage.claimed(&to_cid, "cid").await;
    let stage = stage.restarted().await;
    let back = offer("*plan", below("cid", &cid_task));
    let refused = stage.post("/v1/handoffs", back.clone()).await.refused(409, "deadlock");
    assert_eq!(refused["details"]["path"], json!(["ann", "ben", "cid", "ann"]));
    // Somebody else can do it, too.
    can(&stage, "dan", "plan", 1).await;
    stage.post("/v1/handoffs", back).await.done();
}

async fn work_never_waits_for_what_waits_for_it(stage: Stage) {
    let (_ann, ann_task) = held(&stage, "ann", json!({})).await;
    let after = |task: &str| json!({ "after": { "tasks": [task], "need": 1 } });
    let (to_ben, ben_task) = call(&stage, "ann", &ann_task, "ben", json!({})).await;
    let ben = stage.claimed(&to_ben, "ben").await;
    let stage = stage.restarted().await;
    for above in [&ben_task, &ann_task] {
        let waits = merged(offer("cid", below("ben", &ben_task)), after(above));
        let refused = stage.post("/v1/handoffs", waits).await.refused(409, "deadlock");
        assert_eq!(refused["details"]["task_id"], json!(above));
    }
    // Nor does the next hop of what is waited for; and the claim is kept.
    let hop = json!({ "to": { "agent": "cid" }, "payload": { "type": "next" } });
    let done = json!({
        "payload": { "type": "done" }, "follow_ups": [merged(hop, after(&ann_task))],
    });
    let refused = stage.act(&ben, "complete", done).await.refused(409, "deadlock");
    assert_eq!(refused["details"]["path"], json!(["ann", "ben", "cid", "ann"]));
    // What goes on by itself may wait for whatever it likes.
    let free = merged(after(&ben_task), json!({ "on_parent_end": "let_go" }));
    let (later, _) = call(&stage, "ben", &ben_task, "cid", free).await;
    // One result is not two.
    let twice = json!({ "after": { "tasks": [ben_task, ben_task], "need": 2 } });
    stage.post("/v1/handoffs", offer("cid", twice)).await.refused(422, "invalid_terms");
    stage.completed(&ben).await;
    let claim = stage.post("/v1/claims", json!({ "agent": "cid", "wait_ms": 60_000 })).await.done();
    assert_eq!(text(&claim["claims"][0]["handoff_id"]), later);
}

async fn calls_made_on_a_result_that_is_taken_back_hear_of_it(stage: Stage) {
    let (coder, root_task) = held(&stage, "coder", json!({})).await;
    // Before there is a result, nothing can be built on it.
    let let_go = json!({ "on_parent_end": "let_go" });
    let (_, early_task) = call(&stage, "coder", &root_task, "early", let_go).await;
    let hop = json!({ "to": { "agent": "writer" }, "payload": { "type": "code" } });
    let done = json!({ "payload": { "type": "code" }, "follow_ups": [hop] });
    stage.act(&coder, "complete", done).await.done();
    let next = text(&task(&stage, &root_task).await["live_handoff"]);
    stage.claimed(&next, "writer").await;
    let (called, called_task) = call(&stage, "writer", &root_task, "tester", json!({})).await;
    let tester = stage.claimed(&called, "tester").await;
    let (deep, _) = call(&stage, "tester", &called_task, "deep", json!({})).await;
    let stage = stage.restarted().await;
    let retract = json!({ "by": "coder", "reason": "wrong branch", "policy": "block" });
    stage.post(&format!("/v1/handoffs/{}/retract", coder.handoff), retract).await.done();
    let beat = stage.act(&tester, "heartbeat", json!({})).await.done();
    assert_eq!(beat["taints"], json!([coder.handoff]));
    assert_eq!(stage.is(&deep).await.0, "awaiting_approval", "nor does anybody get what is below");
    assert_eq!(task(&stage, &early_task).await.get("taints"), None);
    let stage = stage.restarted().await;
    let deep_task = text(&stage.show(&deep).await["task_id"]);
    let clear = json!({ "by": "tester", "source": coder.handoff, "reason": "another part" });
    stage.post(&format!("/v1/tasks/{deep_task}/clear-taint"), clear).await.done();
    assert_eq!(stage.is(&deep).await.0, "pending");
}

async fn work_behind_other_work_of_its_ordering_key_says_so(stage: Stage) {
    let ordered = json!({ "ordering_key": "one" });
    let first = stage.offer("coder", ordered.clone()).await;
    let second = stage.offer("coder", ordered).await;
    let stage = stage.restarted().await;
    let turn = json!([{ "kind": "turn", "first": first }]);
    assert_eq!(stage.show(&second).await["waits_for"], turn);
    let view = stage.get("/v1/ready?to_agent=coder").await.done();
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|it| text(&it["handoff_id"])).collect()
    };
    assert_eq!(
        (ids(&view["ready"]), ids(&view["held"])),
        (vec![first.clone()], vec![second.clone()])
    );
    let held = stage.claimed(&first, "coder").await;
    assert_eq!(stage.show(&second).await["waits_for"], turn, "until the first has ended");
    stage.completed(&held).await;
    assert_eq!(stage.show(&second).await["waits_for"][0]["kind"], "claim");
}

async fn nobody_does_what_it_approved_when_others_are_asked_next(stage: Stage) {
    let change = json!({ "needs_approval": true, "fallbacks": [{ "capability": "review" }] });
    let id = stage.offer("coder", change).await;
    stage.post(&format!("/v1/handoffs/{id}/approve"), json!({ "by": "lead" })).await.done();
    let stage = stage.restarted().await;
    stage.post(&format!("/v1/handoffs/{id}/decline"), json!({ "agent": "coder" })).await.done();
    assert_eq!(stage.show(&id).await["to"], json!({ "capability": "review" }));
    stage.claim_one(&id, "lead").await.refused(409, "already_declined");
    let held = stage.claimed(&id, "other").await;
    stage.completed(&held).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_what_it_may_not_see() {
    let stage = Stage::closed(crate::support::Backend::Sqlite).await;
    in_time(waiting_for_others(stage)).await;
}

async fn waiting_for_others(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let spy = admin.enroll("spy", may(&["send", "claim", "complete"])).await;
    let secret = planner.offer("planner", json!({})).await;
    let secret_task = text(&planner.get(&format!("/v1/handoffs/{secret}")).await.done()["task_id"]);
    let after = json!({ "after": { "tasks": [secret_task], "need": 1 } });
    let offer = |from: &str| merged(offer("spy", json!({ "from_agent": from })), after.clone());
    let refused = spy.post("/v1/handoffs", offer("spy")).await.refused(404, "task_not_found");
    assert_eq!(refused["details"]["task_id"], json!(secret_task));
    let many = json!({ "offers": [offer("spy")] });
    let many = spy.post("/v1/handoffs/batch", many).await.done();
    assert_eq!(many["results"][0]["error"]["code"], "task_not_found", "{many}");
    // Nor by way of a completion.
    let own = spy.offer("spy", json!({})).await;
    let held = spy.claimed(&own).await;
    let hop =
        merged(json!({ "to": { "agent": "spy" }, "payload": { "type": "n" } }), after.clone());
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    spy.act(&held, "complete", done).await.refused(404, "task_not_found");
    planner.post("/v1/handoffs", offer("planner")).await.done();
}
