// SPDX-License-Identifier: Apache-2.0
//! What a task owes to those around it: what it waits for, what binds it from above, and what becomes
//! of it when the work that it belongs to ends. Each story goes on after a restart.

use serde_json::{Value, json};

use crate::support::{Held, SECOND, Stage, failure, merged, offer, on_durable_stores, text};

on_durable_stores! {
    what_waits_for_a_task_that_is_not_there_is_refused
    a_refused_retraction_changes_nothing
    a_task_below_another_inherits_what_a_call_does
    nothing_ends_later_than_what_it_hangs_from
    a_cancelled_task_takes_what_is_below_it_along
    a_hop_that_ends_without_a_result_takes_its_calls_along
    a_retry_touches_nothing_below
    a_large_tree_is_cancelled_to_the_last_task
    what_is_below_a_dead_letter_is_on_hold_until_it_is_redriven
    what_is_below_a_discarded_letter_is_cancelled_unless_it_was_let_go
    a_budget_is_spent_by_everything_below_it_and_then_no_hop_follows
    the_tokens_of_a_text_and_its_deadline_travel_along_the_chain
}

const NOBODY: &str = "task_00000000000000000000000000";

/// The task of a handoff.
async fn task_id(stage: &Stage, handoff: &str) -> String {
    text(&stage.show(handoff).await["task_id"])
}

async fn task(stage: &Stage, id: &str) -> Value {
    stage.get(&format!("/v1/tasks/{id}")).await.done()
}

async fn state(stage: &Stage, id: &str) -> String {
    text(&task(stage, id).await["state"])
}

/// A call of somebody who holds a task: its handoff and its task.
async fn call(stage: &Stage, from: &str, on: &str, to: &str, change: Value) -> (String, String) {
    let call = json!({
        "from_agent": from, "task_id": on, "intent": null, "control": "awaited",
    });
    let offered = stage.post("/v1/handoffs", merged(offer(to, call), change)).await.done();
    (text(&offered["handoff_id"]), text(&offered["task_id"]))
}

async fn cancel_task(stage: &Stage, id: &str, reason: &str) {
    let wish = json!({ "by": "planner", "reason": reason });
    stage.post(&format!("/v1/tasks/{id}/cancel"), wish).await.done();
}

async fn what_waits_for_a_task_that_is_not_there_is_refused(stage: Stage) {
    let first = stage.offer("coder", json!({})).await;
    let known = task_id(&stage, &first).await;
    let stage = stage.restarted().await;
    let after = |task: &str| json!({ "after": { "tasks": [task], "need": 1 } });
    let refused = stage.post("/v1/handoffs", offer("tester", after(NOBODY))).await;
    assert_eq!(refused.refused(404, "task_not_found")["details"]["task_id"], NOBODY);
    // A completion that names one keeps the claim.
    let held = stage.claimed(&first, "coder").await;
    let hop =
        merged(json!({ "to": { "agent": "tester" }, "payload": { "type": "job" } }), after(NOBODY));
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    stage.act(&held, "complete", done).await.refused(404, "task_not_found");
    let waits = stage.offer("tester", after(&known)).await;
    assert_eq!(stage.is(&waits).await.0, "scheduled");
    stage.completed(&held).await;
}

async fn a_refused_retraction_changes_nothing(stage: Stage) {
    let root = stage.offer("coder", json!({})).await;
    let coder = stage.claimed(&root, "coder").await;
    let root_task = task_id(&stage, &root).await;
    let (called, _) = call(&stage, "coder", &root_task, "tester", json!({})).await;
    let tester = stage.claimed(&called, "tester").await;
    let retract = |by: &str| json!({ "by": by, "reason": "wrong", "policy": "block" });
    let path = format!("/v1/handoffs/{called}/retract");
    stage.post(&path, retract("coder")).await.refused(409, "wrong_state");
    stage.completed(&tester).await;
    let stage = stage.restarted().await;
    stage.post(&path, retract("stranger")).await.refused(403, "not_permitted");
    assert_eq!(task(&stage, &root_task).await.get("taints"), None, "nothing was taken back");
    stage.post(&path, retract("tester")).await.done();
    assert_eq!(task(&stage, &root_task).await["taints"][0]["source"], json!(called));
    stage.completed(&coder).await;
}

async fn a_task_below_another_inherits_what_a_call_does(stage: Stage) {
    let change = json!({ "constraints": ["Never touch auth."], "expires_in_ms": 60 * SECOND });
    let root = stage.offer("coder", change).await;
    let _coder = stage.claimed(&root, "coder").await;
    let root_task = task_id(&stage, &root).await;
    let open = json!({ "from_agent": "coder", "parent_task_id": root_task });
    let altered = merged(open.clone(), json!({ "intent": "Something else." }));
    stage.post("/v1/tasks", altered).await.refused(409, "intent_altered");
    let below = stage.post("/v1/tasks", open).await.done();
    let stage = stage.restarted().await;
    let hand_on = json!({ "from_agent": "coder", "task_id": below["task_id"], "intent": null });
    let hop = stage.offer("tester", hand_on).await;
    let shown = stage.show(&hop).await;
    assert_eq!(shown["hop"], 1, "it goes on where the chain is");
    assert_eq!(shown["expires_at"], stage.show(&root).await["expires_at"]);
    let claim = stage.claim_one(&hop, "tester").await.done();
    let envelope = &claim["envelope"];
    assert_eq!(envelope["intent"], "Add GET /users/{id}.");
    assert_eq!(envelope["constraints"][0]["text"], "Never touch auth.");
    assert_eq!(envelope["previous"], stage.show(&root).await["envelope"]);
}

async fn nothing_ends_later_than_what_it_hangs_from(stage: Stage) {
    let root = stage.offer("coder", json!({ "expires_in_ms": 3 * SECOND })).await;
    let until = text(&stage.show(&root).await["expires_at"]);
    let coder = stage.claimed(&root, "coder").await;
    let root_task = task_id(&stage, &root).await;
    let long = json!({ "expires_in_ms": 600 * SECOND });
    let (called, called_task) = call(&stage, "coder", &root_task, "tester", long.clone()).await;
    assert_eq!(stage.show(&called).await["expires_at"], json!(until));
    assert_eq!(task(&stage, &called_task).await["deadline"], json!(until));
    let stage = stage.restarted().await;
    let hop = merged(json!({ "to": { "agent": "tester" }, "payload": { "type": "job" } }), long);
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    stage.act(&coder, "complete", done).await.done();
    let next = text(&task(&stage, &root_task).await["live_handoff"]);
    let claim = stage.claim_one(&next, "tester").await.done();
    assert_eq!(claim["envelope"]["deadline"], json!(until), "and its receiver is told");
    stage.pass(3 * SECOND).await;
    assert_eq!(stage.is(&called).await.0, "dead_lettered");
    assert_eq!(stage.is(&next).await.0, "dead_lettered");
}

/// A task that is worked on, with two calls below it and one below the first of them.
struct Tree {
    root: String,
    root_task: String,
    coder: Held,
    first: String,
    tester: Held,
    free: String,
    deep: String,
}

async fn tree(stage: &Stage) -> Tree {
    let root = stage.offer("coder", json!({})).await;
    let coder = stage.claimed(&root, "coder").await;
    let root_task = task_id(stage, &root).await;
    let (first, first_task) = call(stage, "coder", &root_task, "tester", json!({})).await;
    let let_go = json!({ "on_parent_end": "let_go" });
    let (free, _) = call(stage, "coder", &root_task, "free", let_go).await;
    let tester = stage.claimed(&first, "tester").await;
    let (deep, _) = call(stage, "tester", &first_task, "deep", json!({})).await;
    Tree { root, root_task, coder, first, tester, free, deep }
}

async fn a_cancelled_task_takes_what_is_below_it_along(stage: Stage) {
    let tree = tree(&stage).await;
    let stage = stage.restarted().await;
    cancel_task(&stage, &tree.root_task, "the user changed their mind").await;
    for handoff in [&tree.root, &tree.first, &tree.deep] {
        assert_eq!(stage.is(handoff).await.0, "cancelled");
        assert_eq!(stage.task_of(handoff).await["state"], "cancelled");
    }
    for held in [&tree.coder, &tree.tester] {
        let told = stage.act(held, "heartbeat", json!({})).await.refused(409, "stale_claim");
        let reason = text(&told["details"]["reason"]);
        assert!(reason.contains("the user changed their mind"), "{reason}");
        assert_eq!(told["details"]["ended"], "cancelled");
    }
    stage.claim_one(&tree.deep, "deep").await.refused(409, "already_claimed");
    let stage = stage.restarted().await;
    let free = stage.claimed(&tree.free, "free").await;
    stage.completed(&free).await;
}

async fn a_hop_that_ends_without_a_result_takes_its_calls_along(stage: Stage) {
    // The planner keeps the task: its hop ends, the task does not.
    let open = json!({ "from_agent": "planner", "intent": "Add GET /users/{id}." });
    let kept = text(&stage.post("/v1/tasks", open).await.done()["task_id"]);
    let (own, _) = call(&stage, "planner", &kept, "helper", json!({})).await;
    let hand_on = json!({ "task_id": kept, "intent": null });
    let hop = stage.offer("coder", hand_on).await;
    let _coder = stage.claimed(&hop, "coder").await;
    let (called, _) = call(&stage, "coder", &kept, "tester", json!({})).await;
    let stage = stage.restarted().await;
    let cancel = json!({ "by": "planner", "reason": "too slow" });
    stage.post(&format!("/v1/handoffs/{hop}/cancel"), cancel).await.done();
    assert_eq!(state(&stage, &kept).await, "open");
    stage.becomes(&called, "cancelled").await;
    assert_eq!(stage.is(&own).await.0, "pending", "the planner's own call was not");
    // The same if the one who decides ends it as failed.
    let tree = tree(&stage).await;
    let stage = stage.restarted().await;
    let abort = json!({ "by": "planner", "reason": "hopeless" });
    stage.post(&format!("/v1/handoffs/{}/abort", tree.root), abort).await.done();
    stage.becomes(&tree.first, "cancelled").await;
    stage.becomes(&tree.deep, "cancelled").await;
    assert_eq!(stage.is(&tree.free).await.0, "pending");
}

async fn a_retry_touches_nothing_below(stage: Stage) {
    let tree = tree(&stage).await;
    stage.act(&tree.coder, "fail", failure("retryable")).await.done();
    let stage = stage.restarted().await;
    assert_eq!(stage.is(&tree.first).await.0, "claimed");
    assert_eq!(stage.is(&tree.deep).await.0, "pending");
    stage.act(&tree.tester, "heartbeat", json!({})).await.done();
    stage.pass(31 * SECOND).await;
    let again = stage.claimed(&tree.root, "coder").await;
    stage.pass(31 * SECOND).await;
    stage.act(&again, "heartbeat", json!({})).await.refused(409, "stale_claim");
    assert_eq!(stage.is(&tree.deep).await.0, "pending", "nor does a lost lease");
}

async fn a_large_tree_is_cancelled_to_the_last_task(stage: Stage) {
    let root = stage.offer("coder", json!({})).await;
    let coder = stage.claimed(&root, "coder").await;
    let root_task = task_id(&stage, &root).await;
    let calls: Vec<_> = (0..100)
        .map(|n| {
            json!({
                "to": { "agent": "worker" }, "control": "awaited",
                "payload": { "type": "job", "n": n },
            })
        })
        .collect();
    let next = json!({ "to": { "agent": "coder" }, "payload": { "type": "rest" } });
    let mut hops = calls.clone();
    hops[99] = next;
    let done = json!({ "payload": { "type": "done" }, "follow_ups": hops });
    stage.act(&coder, "complete", done).await.done();
    let live = text(&task(&stage, &root_task).await["live_handoff"]);
    let held = stage.claimed(&live, "coder").await;
    for n in 0..60 {
        let change = json!({ "payload": { "type": "more", "n": n } });
        call(&stage, "coder", &root_task, "worker", change).await;
    }
    let stage = stage.restarted().await;
    cancel_task(&stage, &root_task, "enough").await;
    stage.act(&held, "heartbeat", json!({})).await.refused(409, "stale_claim");
    let open = stage.get(&format!("/v1/tasks?parent={root_task}&state=open&limit=1000")).await;
    assert_eq!(open.done()["tasks"], json!([]));
    let over = format!("/v1/tasks?parent={root_task}&state=cancelled&limit=1000");
    assert_eq!(stage.get(&over).await.done()["tasks"].as_array().unwrap().len(), 159);
}

async fn what_is_below_a_dead_letter_is_on_hold_until_it_is_redriven(stage: Stage) {
    let tree = tree(&stage).await;
    stage.act(&tree.coder, "fail", failure("permanent")).await.done();
    assert_eq!(stage.is(&tree.root).await.0, "dead_lettered");
    let stage = stage.restarted().await;
    // Nobody new gets it; who has it hears why, and may finish.
    stage.claim_one(&tree.deep, "deep").await.refused(409, "wrong_state");
    stage.claim_one(&tree.free, "free").await.refused(409, "wrong_state");
    let beat = stage.act(&tree.tester, "heartbeat", json!({})).await.done();
    assert_eq!(beat["on_hold"], json!(tree.root));
    let first_task = task_id(&stage, &tree.first).await;
    assert_eq!(task(&stage, &first_task).await["on_hold"], json!(tree.root));
    stage.completed(&tree.tester).await;
    let path = format!("/v1/dead-letters/{}/redrive", tree.root);
    let again = stage.post(&path, json!({ "by": "person" })).await.done();
    let again = text(&again["handoff_id"]);
    let stage = stage.restarted().await;
    assert_eq!(state(&stage, &first_task).await, "completed", "its result is kept");
    let deep = stage.claimed(&tree.deep, "deep").await;
    let beat = stage.act(&deep, "heartbeat", json!({})).await.done();
    assert_eq!(beat.get("on_hold"), None);
    // It belongs to the hop that took the place of the letter, and ends with it.
    let _coder = stage.claimed(&again, "coder").await;
    let (late, _) = call(&stage, "coder", &tree.root_task, "late", json!({})).await;
    cancel_task(&stage, &tree.root_task, "enough").await;
    stage.becomes(&late, "cancelled").await;
    stage.becomes(&tree.deep, "cancelled").await;
    assert_eq!(stage.is(&tree.free).await.0, "pending");
}

async fn what_is_below_a_discarded_letter_is_cancelled_unless_it_was_let_go(stage: Stage) {
    let tree = tree(&stage).await;
    stage.act(&tree.coder, "fail", failure("permanent")).await.done();
    let below = format!("/v1/handoffs/{}/reject", tree.first);
    stage.post(&below, json!({ "by": "person", "reason": "no" })).await.refused(409, "wrong_state");
    let stage = stage.restarted().await;
    let discard = json!({ "by": "person", "reason": "nobody needs it" });
    stage.post(&format!("/v1/dead-letters/{}/discard", tree.root), discard).await.done();
    stage.becomes(&tree.first, "cancelled").await;
    stage.becomes(&tree.deep, "cancelled").await;
    let told = stage.act(&tree.tester, "heartbeat", json!({})).await.refused(409, "stale_claim");
    assert!(text(&told["details"]["reason"]).contains("nobody needs it"));
    let stage = stage.restarted().await;
    let free = stage.claimed(&tree.free, "free").await;
    stage.completed(&free).await;
}

fn usage(tokens: u64, cost: f64) -> Value {
    json!({ "input_tokens": tokens - 1, "output_tokens": 1, "cost": cost, "model": "m" })
}

async fn a_budget_is_spent_by_everything_below_it_and_then_no_hop_follows(stage: Stage) {
    let budget = json!({ "budget": { "tokens": 1000, "cost": 2.5 } });
    let root = stage.offer("coder", budget).await;
    let claim = stage.claim_one(&root, "coder").await.done();
    assert_eq!(claim["budget"], json!({ "tokens": 1000, "cost": 2.5 }));
    assert_eq!(claim["envelope"]["budget"]["tokens"], 1000);
    let coder = Held::of(&claim);
    let root_task = task_id(&stage, &root).await;
    let (called, called_task) = call(&stage, "coder", &root_task, "tester", json!({})).await;
    let tester = stage.claimed(&called, "tester").await;
    let (deep, _) = call(&stage, "tester", &called_task, "deep", json!({})).await;
    let held = stage.claimed(&deep, "deep").await;
    let report = merged(failure("retryable"), json!({ "usage": usage(300, 0.5) }));
    stage.act(&held, "fail", report).await.done();
    let stage = stage.restarted().await;
    stage.pass(31 * SECOND).await;
    stage.act(&coder, "heartbeat", json!({})).await.refused(409, "stale_claim");
    let claim = stage.claim_one(&deep, "deep").await.done();
    assert_eq!(claim["budget"], json!({ "tokens": 700, "cost": 2.0 }), "its failure counts");
    let done = json!({ "payload": { "type": "done" }, "usage": usage(700, 0.5) });
    stage.act(&Held::of(&claim), "complete", done).await.done();
    let shown = task(&stage, &root_task).await;
    assert_eq!(shown["spent"], json!({ "tokens": 1000, "cost": 1.0 }));
    assert_eq!(shown["budget"], json!({ "tokens": 0, "cost": 1.5 }));
    // Nothing is left: no new hop, however deep, and nothing that is finished is lost.
    let tester = match stage.act(&tester, "heartbeat", json!({})).await.status {
        200 => tester,
        _ => stage.claimed(&called, "tester").await,
    };
    let more = json!({
        "from_agent": "tester", "task_id": called_task, "intent": null, "control": "awaited",
    });
    let refused = stage.post("/v1/handoffs", offer("more", more)).await;
    let refused = refused.refused(409, "budget_exhausted");
    assert_eq!(refused["details"]["task_id"], json!(root_task));
    let hop = json!({ "to": { "agent": "next" }, "payload": { "type": "job" } });
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    stage.act(&tester, "complete", done).await.done();
    let after = stage.get("/v1/handoffs?to_agent=next").await.done();
    assert_eq!(after["handoffs"][0]["dead_letter"]["reason"], "budget_exhausted");
}

async fn the_tokens_of_a_text_and_its_deadline_travel_along_the_chain(stage: Stage) {
    let deadline = "2027-01-15T08:05:00.000Z";
    let change = json!({ "constraints": { "max_tokens": 4000, "deadline": deadline } });
    let root = stage.offer("coder", change).await;
    let coder = stage.claimed(&root, "coder").await;
    let root_task = task_id(&stage, &root).await;
    let stage = stage.restarted().await;
    let (called, _) = call(&stage, "coder", &root_task, "tester", json!({})).await;
    let hop = json!({ "to": { "agent": "next" }, "payload": { "type": "job" } });
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    stage.act(&coder, "complete", done).await.done();
    let next = text(&task(&stage, &root_task).await["live_handoff"]);
    for (handoff, agent) in [(&called, "tester"), (&next, "next")] {
        let claim = stage.claim_one(handoff, agent).await.done();
        assert_eq!(claim["envelope"]["prompt_tokens"], 4000);
        assert_eq!(claim["envelope"]["deadline"], deadline);
        assert_eq!(claim.get("budget"), None, "that is set by its name alone");
    }
}
