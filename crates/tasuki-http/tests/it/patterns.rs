// SPDX-License-Identifier: Apache-2.0
// Long because: it is many short stories.
//! Work beyond one hop, and what becomes of it when something fails: who is asked next, who is left
//! alone for a while, who is told, and what is held back.

use serde_json::{Value, json};
use tasuki_core::pipeline::Pipelines;

use crate::support::{Backend, Held, Stage, failure, merged, offer, on_both_stores, text};

on_both_stores! {
    three_handoffs_that_use_up_their_tries_open_the_breaker_and_a_result_closes_it
    a_breaker_lets_one_through_after_a_minute_and_opens_again_if_that_fails
    what_nobody_claims_in_time_goes_to_the_fallbacks_and_then_to_the_dead_letters
    what_is_declined_or_used_up_goes_to_the_next_one
    a_send_returns_when_it_was_accepted_and_says_how_far_it_came
    a_chain_that_goes_in_circles_ends_with_its_path_shown
    a_chain_ends_at_its_last_hop
    a_coordinator_is_told_of_every_failure_in_the_same_schema
    a_coordinator_is_told_of_a_failure_without_the_secret_in_it
    a_failure_says_what_it_must_say
    dead_letters_are_grouped_rerouted_amended_and_answered
    only_one_reviewer_decides_at_a_time
    many_dead_letters_are_decided_on_at_once_after_a_dry_run
    what_is_built_on_a_retracted_result_is_tainted_until_cleared
    a_blocked_taint_holds_work_back
    resources_are_taken_by_one_holder_and_freed_with_its_claim
    a_publication_reaches_every_receiver_once
    a_join_says_who_is_missing
    a_pipeline_runs_by_itself_and_joins_its_branches
    work_waits_for_the_tasks_it_depends_on
    the_health_of_targets_is_told
}

fn once() -> Value {
    json!({ "terms": { "attempts": 1 } })
}

/// Offers something that fails at once, with no tries left.
async fn exhaust(stage: &Stage, to: &str) -> String {
    let id = stage.offer(to, once()).await;
    let held = stage.claimed(&id, to).await;
    stage.act(&held, "fail", failure("retryable")).await.done();
    id
}

async fn reason(stage: &Stage, id: &str) -> String {
    text(&stage.show(id).await["dead_letter"]["reason"])
}

/// The next work of an agent, as soon as there is some.
async fn next_work(stage: &Stage, agent: &str) -> (Held, Value) {
    let wish = json!({ "agent": agent, "wait_ms": 60_000 });
    let reply = stage.post("/v1/claims", wish).await.done();
    let claim = reply["claims"][0].clone();
    (Held::of(&claim), claim["envelope"].clone())
}

async fn breaker(stage: &Stage, agent: &str) -> Value {
    let all = stage.get("/v1/health/targets").await.done();
    let targets = all["targets"].as_array().unwrap();
    targets.iter().find(|it| it["target"]["agent"] == agent).cloned().unwrap_or_default()
}

async fn three_handoffs_that_use_up_their_tries_open_the_breaker_and_a_result_closes_it(
    stage: Stage,
) {
    exhaust(&stage, "flaky").await;
    exhaust(&stage, "flaky").await;
    let fine = stage.offer("flaky", json!({})).await;
    let held = stage.claimed(&fine, "flaky").await;
    stage.completed(&held).await;
    assert_eq!(breaker(&stage, "flaky").await["exhausted_in_row"], 0, "a result starts over");
    for _ in 0..3 {
        exhaust(&stage, "flaky").await;
    }
    let refused = stage.post("/v1/handoffs", offer("flaky", json!({}))).await;
    let problem = refused.refused(409, "target_unavailable");
    assert_eq!(problem["details"]["target"], "flaky");
    assert_eq!(problem["details"]["retry_after_ms"], 60_000);
    assert_eq!(problem["retryable"], true);
    assert_eq!(breaker(&stage, "flaky").await["breaker"], "open");
    // Others are not affected, and a fallback takes its place.
    stage.offer("steady", json!({})).await;
    let change = json!({ "fallbacks": [{ "agent": "steady" }] });
    let diverted = stage.show(&stage.offer("flaky", change).await).await;
    assert_eq!(diverted["to"], json!({ "agent": "steady" }));
    assert_eq!(diverted["tried"], json!([{ "agent": "flaky" }]));
}

async fn a_breaker_lets_one_through_after_a_minute_and_opens_again_if_that_fails(stage: Stage) {
    for _ in 0..3 {
        exhaust(&stage, "flaky").await;
    }
    stage.pass(60_000).await;
    assert_eq!(breaker(&stage, "flaky").await["breaker"], "half_open");
    let probe = stage.offer("flaky", once()).await;
    stage.post("/v1/handoffs", offer("flaky", json!({}))).await.refused(409, "target_unavailable");
    let held = stage.claimed(&probe, "flaky").await;
    stage.act(&held, "fail", failure("retryable")).await.done();
    stage.post("/v1/handoffs", offer("flaky", json!({}))).await.refused(409, "target_unavailable");
    stage.pass(60_000).await;
    let probe = stage.offer("flaky", once()).await;
    let held = stage.claimed(&probe, "flaky").await;
    stage.completed(&held).await;
    stage.offer("flaky", json!({})).await;
    stage.offer("flaky", json!({})).await;
}

async fn what_nobody_claims_in_time_goes_to_the_fallbacks_and_then_to_the_dead_letters(
    stage: Stage,
) {
    let change = json!({
        "terms": { "ack_ms": 15_000 },
        "fallbacks": [{ "agent": "second" }, { "capability": "review" }],
    });
    let id = stage.offer("first", change).await;
    stage.pass(15_000).await;
    assert_eq!(stage.show(&id).await["to"], json!({ "agent": "second" }));
    stage.pass(15_000).await;
    let shown = stage.show(&id).await;
    assert_eq!(shown["to"], json!({ "capability": "review" }));
    assert_eq!(shown["tried"], json!([{ "agent": "first" }, { "agent": "second" }]));
    assert_eq!(stage.task_of(&id).await["owner"], "planner", "nobody has accepted it");
    // Who did not take it by name does not get it by what it can do.
    stage.claim_one(&id, "first").await.refused(409, "already_declined");
    stage.pass(15_000).await;
    assert_eq!(reason(&stage, &id).await, "unacknowledged");
    let story = stage.story(&id).await;
    assert_eq!(story.iter().filter(|kind| *kind == "escalated").count(), 2, "{story:?}");
}

async fn what_is_declined_or_used_up_goes_to_the_next_one(stage: Stage) {
    let others = json!({ "fallbacks": [{ "agent": "second" }], "terms": { "attempts": 1 } });
    let id = stage.offer("first", others.clone()).await;
    let decline = json!({ "agent": "first", "reason": "too much to do" });
    stage.post(&format!("/v1/handoffs/{id}/decline"), decline).await.done();
    let held = stage.claimed(&id, "second").await;
    stage.act(&held, "fail", failure("retryable")).await.done();
    assert_eq!(reason(&stage, &id).await, "attempts_exhausted", "everybody was asked");
    let id = stage.offer("first", others.clone()).await;
    let held = stage.claimed(&id, "first").await;
    stage.act(&held, "fail", failure("retryable")).await.done();
    assert_eq!(stage.show(&id).await["state"], "pending");
    let held = stage.claimed(&id, "second").await;
    stage.completed(&held).await;
    // What cannot succeed is not tried elsewhere: it takes the other road.
    let id = stage.offer("first", others).await;
    let held = stage.claimed(&id, "first").await;
    stage.act(&held, "fail", failure("permanent")).await.done();
    assert_eq!(reason(&stage, &id).await, "permanent_failure");
}

async fn a_send_returns_when_it_was_accepted_and_says_how_far_it_came(stage: Stage) {
    let sending = {
        let stage = stage.clone();
        let body = merged(offer("worker", json!({})), json!({ "until": "settled" }));
        tokio::spawn(async move { stage.post("/v1/handoffs/send", body).await.done() })
    };
    let (held, _) = next_work(&stage, "worker").await;
    stage.completed(&held).await;
    let sent = sending.await.unwrap();
    assert_eq!((&sent["reached"], &sent["status"]), (&json!(true), &json!("done")));
    assert_eq!(sent["output"]["payload"]["type"], "done");
    // Nobody is there: it is stored, and the sender hears just that.
    let body = merged(offer("nobody", json!({})), json!({ "timeout_ms": 0 }));
    let sent = stage.post("/v1/handoffs/send", body).await.done();
    assert_eq!((&sent["reached"], &sent["listening"]), (&json!(false), &json!(false)));
    assert_eq!(sent["status"], "stored");
}

async fn a_chain_that_goes_in_circles_ends_with_its_path_shown(stage: Stage) {
    let payload = json!({ "type": "job", "text": "the same" });
    let mut id = stage.offer("a", json!({ "payload": payload })).await;
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "a")] {
        let held = stage.claimed(&id, from).await;
        let hop = json!({ "to": { "agent": to }, "payload": payload });
        let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
        stage.act(&held, "complete", done).await.done();
        let shown = stage.get(&format!("/v1/handoffs?to_agent={to}")).await.done();
        id = text(&shown["handoffs"][0]["handoff_id"]);
    }
    assert_eq!(reason(&stage, &id).await, "cycle");
    let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
    let path = letter["envelope_content"]["path"].as_array().unwrap();
    let way: Vec<_> = path.iter().map(|step| text(&step["to"]["agent"])).collect();
    assert_eq!(way, ["a", "b", "c"]);
    assert_eq!(stage.task_of(&id).await["state"], "dead_lettered");
}

async fn a_chain_ends_at_its_last_hop(stage: Stage) {
    let mut id = stage.offer("agent-0", json!({})).await;
    for hop in 0..10 {
        let held = stage.claimed(&id, &format!("agent-{hop}")).await;
        let to = format!("agent-{}", hop + 1);
        let hop = json!({ "to": { "agent": to }, "payload": { "type": "job", "round": hop } });
        let done = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
        stage.act(&held, "complete", done).await.done();
        let shown = stage.get(&format!("/v1/handoffs?to_agent={to}")).await.done();
        id = text(&shown["handoffs"][0]["handoff_id"]);
    }
    assert_eq!(reason(&stage, &id).await, "hop_limit");
    assert_eq!(stage.show(&id).await["hop"], 10);
}

async fn a_coordinator_is_told_of_every_failure_in_the_same_schema(stage: Stage) {
    let change = json!({ "coordinator": { "agent": "lead" } });
    let id = stage.offer("coder", change).await;
    let held = stage.claimed(&id, "coder").await;
    let said = json!({
        "class": "permanent", "type": "missing_dependency",
        "message": "Missing type definition for User",
        "attempted": "cargo check", "attempts": 2,
        "causes": ["types.ts was not generated", "the generator has no schema"],
        "hint": "check types.ts",
    });
    stage.act(&held, "fail", said).await.done();
    let (told, envelope) = next_work(&stage, "lead").await;
    assert_eq!(envelope["action"], "failed");
    assert_eq!(envelope["intent"], "Add GET /users/{id}.");
    let payload = &envelope["payload"];
    assert_eq!(payload["handoff_id"], *id);
    assert_eq!(payload["class"], "permanent");
    assert_eq!(payload["error_type"], "missing_dependency");
    assert_eq!(payload["hint"], "check types.ts");
    assert_eq!(payload["causes"][1], "the generator has no schema");
    // The coordinator decides: this one goes to somebody else.
    let reroute = json!({ "by": "lead", "to": { "agent": "second" } });
    let new = stage.post(&format!("/v1/dead-letters/{id}/reroute"), reroute).await.done();
    stage.completed(&told).await;
    let held = stage.claimed(&text(&new["handoff_id"]), "second").await;
    stage.completed(&held).await;
    assert_eq!(stage.task_of(&id).await["state"], "completed");
    let mut role = offer("coder", json!({ "coordinator": { "role": "nobody's" } }));
    stage.post("/v1/handoffs", role.take()).await.refused(400, "invalid_request");
}

async fn a_coordinator_is_told_of_a_failure_without_the_secret_in_it(stage: Stage) {
    let id = stage.offer("coder", json!({ "coordinator": { "agent": "lead" } })).await;
    let held = stage.claimed(&id, "coder").await;
    // Put together here, so that no scanner takes this file for a leak.
    let secret = format!("ghp{}", "_aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYaB3dE5");
    let said = json!({
        "class": "permanent", "type": "no_access", "message": format!("403 with {secret} for push"),
        "causes": [format!("token {secret}")], "hint": "ask for another token",
    });
    stage.act(&held, "fail", said).await.done();
    let (_, envelope) = next_work(&stage, "lead").await;
    let payload = &envelope["payload"];
    assert_eq!(payload["message"], "403 with [redacted: github_token] for push");
    assert_eq!(payload["causes"][0], "token [redacted: github_token]");
    assert_eq!(payload["hint"], "ask for another token");
    assert!(!envelope.to_string().contains(&secret));
}

async fn a_failure_says_what_it_must_say(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let good = json!({ "class": "permanent", "type": "t", "message": "m", "hint": "h" });
    for (change, field) in [
        (json!({ "hint": null }), "hint"),
        (json!({ "hint": "  " }), "hint"),
        (json!({ "type": "" }), "type"),
        (json!({ "retry_after_ms": 1000 }), "retry_after_ms"),
        (json!({ "attempts": 0 }), "attempts"),
        (json!({ "causes": [""] }), "causes"),
        (json!({ "class": "sometimes" }), "class"),
        (json!({ "surprise": 1 }), "surprise"),
    ] {
        let reply = stage.act(&held, "fail", merged(good.clone(), change)).await;
        let problem = reply.refused(400, "invalid_request");
        assert!(problem.to_string().contains(field), "{field}: {problem}");
    }
    assert_eq!(stage.show(&id).await["state"], "claimed", "nothing was stored");
    stage.act(&held, "fail", good).await.done();
}

async fn dead_letters_are_grouped_rerouted_amended_and_answered(stage: Stage) {
    let mut letters = Vec::new();
    for number in 0..3 {
        let change = json!({
            "constraints": ["Do not touch auth."], "tried": ["the old table"],
        });
        let id = stage.offer("coder", change).await;
        let held = stage.claimed(&id, "coder").await;
        let said = json!({
            "class": "permanent", "type": "no_schema", "hint": "add it",
            "message": format!("table {number} has no schema"),
        });
        stage.act(&held, "fail", said).await.done();
        letters.push(id);
    }
    let groups = stage.get("/v1/dead-letters/groups").await.done();
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1, "{groups}");
    assert_eq!(groups["groups"][0]["count"], 3);
    assert_eq!(groups["groups"][0]["hint"], "add it");
    // A new envelope is linked to the old one, and cannot drop what binds.
    let path = format!("/v1/dead-letters/{}/amend", letters[0]);
    let soft = json!({ "by": "person", "constraints": ["Be careful."] });
    stage.post(&path, soft).await.refused(422, "constraint_dropped");
    let change = json!({ "by": "person", "payload": { "type": "job", "schema": "users.sql" } });
    let new = stage.post(&path, change.clone()).await.done();
    let again = stage.post(&path, change).await.done();
    assert_eq!(new["handoff_id"], again["handoff_id"], "it is sent once");
    let head = stage.store.head();
    let other = json!({ "by": "person", "payload": { "type": "job", "schema": "teams.sql" } });
    stage.post(&path, other).await.refused(409, "already_reviewed");
    for (word, other) in [
        ("reroute", json!({ "by": "person", "to": { "agent": "other" } })),
        ("redrive", json!({ "by": "person" })),
        ("discard", json!({ "by": "person", "reason": "too late" })),
    ] {
        let path = format!("/v1/dead-letters/{}/{word}", letters[0]);
        stage.post(&path, other).await.refused(409, "already_reviewed");
    }
    assert_eq!(stage.store.head(), head, "another decision changes nothing, and is not confirmed");
    let envelope =
        stage.get(&format!("/v1/handoffs/{}/envelope", text(&new["handoff_id"]))).await.done();
    let old = stage.show(&letters[0]).await;
    assert_eq!(envelope["previous"], old["envelope"]);
    assert_eq!(envelope["payload"]["schema"], "users.sql");
    assert_eq!(envelope["constraints"][0]["text"], "Do not touch auth.");
    assert_eq!(envelope["metadata"]["amended_by"], "person");
    // An answer is a decision in the log.
    let answer = json!({
        "by": "person",
        "decision": { "key": "schema", "decision": "Use users.sql", "why": "it is the newest" },
    });
    let path = format!("/v1/dead-letters/{}/answer", letters[1]);
    let new = stage.post(&path, answer).await.done();
    let envelope =
        stage.get(&format!("/v1/handoffs/{}/envelope", text(&new["handoff_id"]))).await.done();
    assert_eq!(envelope["decisions"][0]["decision"], "Use users.sql");
    assert_eq!(envelope["decisions"][0]["by"], "person");
    assert_eq!(envelope["tried"], json!(["the old table"]), "nothing of it is lost");
    let reroute = json!({ "by": "person", "to": { "agent": "other" } });
    let path = format!("/v1/dead-letters/{}/reroute", letters[2]);
    let new = stage.post(&path, reroute.clone()).await.done();
    assert_eq!(new["to"], json!({ "agent": "other" }));
    assert_eq!(stage.post(&path, reroute).await.done()["handoff_id"], new["handoff_id"]);
    let elsewhere = json!({ "by": "person", "to": { "agent": "third" } });
    stage.post(&path, elsewhere).await.refused(409, "already_reviewed");
    let groups = stage.get("/v1/dead-letters/groups").await.done();
    assert_eq!(groups["groups"], json!([]));
}

async fn only_one_reviewer_decides_at_a_time(stage: Stage) {
    let id = stage.dead_letter().await;
    let take = format!("/v1/dead-letters/{id}/take");
    let shown = stage.post(&take, json!({ "by": "ann", "for_ms": 60_000 })).await.done();
    assert_eq!(shown["reviewer"], "ann");
    let path = format!("/v1/dead-letters/{id}/redrive");
    let refused = stage.post(&path, json!({ "by": "ben" })).await;
    assert_eq!(refused.refused(409, "review_taken")["details"]["reviewer"], "ann");
    stage.post(&take, json!({ "by": "ben", "for_ms": 1000 })).await.refused(409, "review_taken");
    stage.pass(60_000).await;
    stage.post(&take, json!({ "by": "ben", "for_ms": 60_000 })).await.done();
    stage.post(&take, json!({ "by": "ben", "for_ms": 0 })).await.done();
    stage.post(&path, json!({ "by": "ann" })).await.done();
}

async fn many_dead_letters_are_decided_on_at_once_after_a_dry_run(stage: Stage) {
    let letters = [stage.dead_letter().await, stage.dead_letter().await];
    let groups = stage.get("/v1/dead-letters/groups").await.done();
    let fingerprint = &groups["groups"][0]["fingerprint"];
    let body = json!({
        "by": "person", "decision": "retry", "fingerprint": fingerprint, "dry_run": true,
    });
    let dry = stage.post("/v1/dead-letters/decide", body.clone()).await.done();
    assert_eq!(dry["results"].as_array().unwrap().len(), 2);
    assert_eq!(stage.show(&letters[0]).await["dead_letter"]["redriven_to"], Value::Null);
    let wet = merged(body, json!({ "dry_run": false }));
    let done = stage.post("/v1/dead-letters/decide", wet).await.done();
    for result in done["results"].as_array().unwrap() {
        let letter = stage.show(&text(&result["handoff_id"])).await;
        assert_eq!(letter["dead_letter"]["redriven_to"], result["to_handoff"]);
    }
    let body = json!({
        "by": "person", "decision": { "abort": "no longer wanted" }, "handoffs": letters,
    });
    let late = stage.post("/v1/dead-letters/decide", body).await.done();
    assert_eq!(late["results"][0]["error"]["code"], "already_reviewed");
}

async fn what_is_built_on_a_retracted_result_is_tainted_until_cleared(stage: Stage) {
    let first = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&first, "coder").await;
    let hop = json!({ "to": { "agent": "reviewer" }, "payload": { "type": "code" } });
    let done = json!({ "payload": { "type": "code" }, "follow_ups": [hop] });
    stage.act(&held, "complete", done).await.done();
    let retract = json!({ "by": "coder", "reason": "the tests were not run" });
    let path = format!("/v1/handoffs/{first}/retract");
    stage
        .post(&path, merged(retract.clone(), json!({ "by": "stranger" })))
        .await
        .refused(403, "not_permitted");
    let shown = stage.post(&path, retract).await.done();
    assert_eq!(shown["retracted"], true);
    let task = stage.task_of(&first).await;
    assert_eq!(task["taints"], json!([{ "source": first, "policy": "flag" }]));
    // Whoever holds the next stage is told, although its envelope was made before.
    let wish = json!({ "agent": "reviewer", "wait_ms": 60_000 });
    let claim = stage.post("/v1/claims", wish).await.done()["claims"][0].clone();
    assert_eq!(claim["taints"], json!([first]));
    let held = Held::of(&claim);
    let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "review" } });
    let done = json!({ "payload": { "type": "review" }, "follow_ups": [hop] });
    stage.act(&held, "complete", done).await.done();
    let (held, envelope) = next_work(&stage, "tester").await;
    assert_eq!(envelope["taints"][0]["source"], *first, "it goes on from hop to hop");
    let clear = json!({ "by": "tester", "source": first, "reason": "they pass" });
    let path = format!("/v1/tasks/{}/clear-taint", text(&task["task_id"]));
    stage.post(&path, clear.clone()).await.refused(403, "not_permitted");
    stage.post(&path, merged(clear, json!({ "by": "planner" }))).await.done();
    let hop = json!({ "to": { "agent": "last" }, "payload": { "type": "report" } });
    let done = json!({ "payload": { "type": "report" }, "follow_ups": [hop] });
    stage.act(&held, "complete", done).await.done();
    let (_, envelope) = next_work(&stage, "last").await;
    assert_eq!(envelope["taints"], Value::Null, "until somebody has looked at it");
}

async fn a_blocked_taint_holds_work_back(stage: Stage) {
    let first = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&first, "coder").await;
    let hop = json!({ "to": { "agent": "reviewer" }, "payload": { "type": "code" } });
    let done = json!({ "payload": { "type": "code" }, "follow_ups": [hop] });
    stage.act(&held, "complete", done).await.done();
    let shown = stage.get("/v1/handoffs?to_agent=reviewer").await.done();
    let next = text(&shown["handoffs"][0]["handoff_id"]);
    let retract = json!({ "by": "planner", "reason": "wrong branch", "policy": "block" });
    stage.post(&format!("/v1/handoffs/{first}/retract"), retract).await.done();
    assert_eq!(stage.show(&next).await["state"], "awaiting_approval");
    stage.claim_one(&next, "reviewer").await.refused(409, "wrong_state");
    stage.post(&format!("/v1/handoffs/{next}/approve"), json!({ "by": "person" })).await.done();
    stage.claimed(&next, "reviewer").await;
}

async fn resources_are_taken_by_one_holder_and_freed_with_its_claim(stage: Stage) {
    let one = stage.claimed(&stage.offer("one", json!({})).await, "one").await;
    let two = stage.claimed(&stage.offer("two", json!({})).await, "two").await;
    let all = json!({ "resources": ["src/api/**", "README.md"] });
    stage.act(&one, "reserve", all.clone()).await.done();
    stage.act(&one, "reserve", all).await.done();
    let file = json!({ "resources": ["docs/a.md", "src/api/users.rs"] });
    let refused = stage.act(&two, "reserve", file.clone()).await;
    let problem = refused.refused(409, "resource_reserved");
    assert_eq!(problem["details"]["holder"], "one");
    let held = stage.get("/v1/reservations").await.done();
    assert_eq!(held["reservations"].as_array().unwrap().len(), 1, "all of them or none");
    stage
        .act(&two, "reserve", json!({ "resources": ["../x"] }))
        .await
        .refused(400, "invalid_resource");
    stage.act(&one, "unreserve", json!({ "resources": ["README.md"] })).await.done();
    stage.act(&two, "reserve", json!({ "resources": ["README.md"] })).await.done();
    stage.completed(&one).await;
    stage.act(&two, "reserve", file).await.done();
    // Nobody heard of the other holder for longer than its lease.
    stage.pass(30_000).await;
    assert_eq!(stage.get("/v1/reservations").await.done()["reservations"], json!([]));
}

fn telling(change: Value) -> Value {
    let told = json!({
        "from_agent": "planner", "intent": "Say hello.", "payload": { "type": "news" },
    });
    merged(told, change)
}

async fn a_publication_reaches_every_receiver_once(stage: Stage) {
    for agent in ["ann", "ben"] {
        let path = "/v1/channels/news/subscribe";
        stage.post(path, json!({ "agent": agent })).await.done();
        stage.post(path, json!({ "agent": agent })).await.done();
    }
    let body = telling(json!({ "idempotency_key": "hello-1" }));
    let told = stage.post("/v1/channels/news/publish", body.clone()).await.done();
    assert_eq!(told["handoffs"].as_array().unwrap().len(), 2);
    let again = stage.post("/v1/channels/news/publish", body).await.done();
    assert_eq!((&again["task_id"], &again["repeated"]), (&told["task_id"], &json!(true)));
    for agent in ["ann", "ben"] {
        let all = stage.get(&format!("/v1/handoffs?to_agent={agent}")).await.done();
        assert_eq!(all["handoffs"].as_array().unwrap().len(), 1, "{agent}");
        let (held, envelope) = next_work(&stage, agent).await;
        assert_eq!(envelope["intent"], "Say hello.");
        stage.completed(&held).await;
    }
    // Who comes later reads from where it likes.
    let named = telling(json!({ "receivers": ["ann", "cid", "ann"] }));
    let second = stage.post("/v1/channels/news/publish", named).await.done();
    assert_eq!(second["handoffs"].as_array().unwrap().len(), 2);
    let all = stage.get("/v1/channels/news/messages").await.done();
    assert_eq!(all["messages"].as_array().unwrap().len(), 2);
    assert_eq!(all["messages"][0]["payload"]["type"], "news");
    let later = format!("/v1/channels/news/messages?after={}", text(&told["position"]));
    let later = stage.get(&later).await.done();
    assert_eq!(later["messages"].as_array().unwrap().len(), 1);
    assert_eq!(later["messages"][0]["task_id"], second["task_id"]);
    stage.post("/v1/channels/news/unsubscribe", json!({ "agent": "ann" })).await.done();
    let there = stage.get("/v1/channels/news").await.done();
    assert_eq!(there["subscribers"].as_array().unwrap().len(), 1);
}

async fn a_join_says_who_is_missing(stage: Stage) {
    let body = telling(json!({ "receivers": ["ann", "ben", "cid"], "expires_in_ms": 60_000 }));
    let told = stage.post("/v1/channels/news/publish", body).await.done();
    let path = format!("/v1/tasks/{}/join", text(&told["task_id"]));
    let (held, _) = next_work(&stage, "ann").await;
    stage.completed(&held).await;
    let any = stage.post(&path, json!({ "need": "any" })).await.done();
    assert_eq!(any["satisfied"], true);
    let two = stage.post(&path, json!({ "need": { "quorum": 2 } })).await.done();
    assert_eq!(
        (&two["satisfied"], &two["completed"], &two["open"]),
        (&json!(false), &json!(1), &json!(2))
    );
    let waiting = {
        let (stage, path) = (stage.clone(), path.clone());
        let wish = json!({ "need": { "quorum": 2 }, "wait_ms": 60_000 });
        tokio::spawn(async move { stage.post(&path, wish).await.done() })
    };
    let (held, _) = next_work(&stage, "ben").await;
    stage.completed(&held).await;
    assert_eq!(waiting.await.unwrap()["satisfied"], true);
    stage.pass(60_000).await;
    let all = stage.post(&path, json!({})).await.done();
    assert_eq!((&all["satisfied"], &all["failed"]), (&json!(false), &json!(1)));
    let missing = all["members"].as_array().unwrap().iter();
    let missing: Vec<_> = missing.filter(|it| it["state"] != "completed").collect();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0]["to"], json!({ "agent": "cid" }));
    assert_eq!(missing[0]["state"], "dead_lettered");
}

const PIPELINE: &str = r#"{"pipelines": [{
    "name": "endpoint", "version": 1, "first": "code",
    "stages": [
        {"name": "code", "to": {"agent": "coder"}, "ask": "Write it.", "next": [{"to": "review"}]},
        {"name": "review", "to": {"agent": "reviewer"}, "next": [
            {"when": {"action": ["changes_requested"]}, "to": "code"},
            {"fan": {"stages": ["unit", "load"], "join": "report"}}]},
        {"name": "unit", "to": {"agent": "unit"}, "next": [{"to": "end"}]},
        {"name": "load", "to": {"agent": "load"}, "next": [{"to": "end"}]},
        {"name": "report", "to": {"agent": "writer"}, "next": [{"to": "end"}]}
    ]}]}"#;

async fn a_pipeline_runs_by_itself_and_joins_its_branches(stage: Stage) {
    stage.engine.declare_pipelines(Pipelines::read(PIPELINE).unwrap()).await.unwrap();
    let body = json!({
        "from_agent": "planner", "intent": "Add GET /users/{id}.", "payload": { "type": "job" },
        "constraints": ["Do not touch auth."],
    });
    stage.post("/v1/pipelines/nothing/start", body.clone()).await.refused(400, "invalid_request");
    let begun = stage.post("/v1/pipelines/endpoint/start", body).await.done();
    let task = text(&begun["task_id"]);
    let (held, envelope) = next_work(&stage, "coder").await;
    assert_eq!(envelope["ask"], "Write it.");
    stage.act(&held, "complete", json!({ "payload": { "type": "code", "round": 1 } })).await.done();
    let (held, _) = next_work(&stage, "reviewer").await;
    let back =
        json!({ "action": "changes_requested", "payload": { "type": "review", "round": 1 } });
    stage.act(&held, "complete", back).await.done();
    let (held, envelope) = next_work(&stage, "coder").await;
    assert_eq!(envelope["action"], "changes_requested");
    stage.act(&held, "complete", json!({ "payload": { "type": "code", "round": 2 } })).await.done();
    let (held, _) = next_work(&stage, "reviewer").await;
    stage
        .act(&held, "complete", json!({ "payload": { "type": "review", "round": 2 } }))
        .await
        .done();
    let waiting = stage.get("/v1/handoffs?to_agent=writer").await.done();
    assert_eq!(waiting["handoffs"][0]["state"], "scheduled", "the branches come first");
    for agent in ["unit", "load"] {
        let (held, envelope) = next_work(&stage, agent).await;
        assert_eq!(envelope["constraints"][0]["text"], "Do not touch auth.");
        stage.completed(&held).await;
    }
    let (held, envelope) = next_work(&stage, "writer").await;
    assert_eq!(envelope["task_id"], *task);
    assert_eq!(envelope["constraints"][0]["text"], "Do not touch auth.");
    let joined = stage.post(&format!("/v1/tasks/{task}/join"), json!({})).await.done();
    assert_eq!((&joined["satisfied"], &joined["completed"]), (&json!(true), &json!(2)));
    stage.completed(&held).await;
    assert_eq!(stage.get(&format!("/v1/tasks/{task}")).await.done()["state"], "completed");
}

async fn work_waits_for_the_tasks_it_depends_on(stage: Stage) {
    let parts = [stage.offer("one", json!({})).await, stage.offer("two", json!({})).await];
    let mut tasks = Vec::new();
    for part in &parts {
        tasks.push(text(&stage.show(part).await["task_id"]));
    }
    let after = json!({ "after": { "tasks": tasks, "need": 2 } });
    let last = stage.offer("last", after).await;
    assert_eq!(stage.show(&last).await["state"], "scheduled");
    stage.claim_one(&last, "last").await.refused(409, "wrong_state");
    let held = stage.claimed(&parts[0], "one").await;
    stage.completed(&held).await;
    let held = stage.claimed(&parts[1], "two").await;
    stage.act(&held, "fail", failure("permanent")).await.done();
    // Two results can no longer come: it goes on, and whoever gets it hears what is missing.
    let wish = json!({ "agent": "last", "wait_ms": 60_000 });
    let claim = stage.post("/v1/claims", wish).await.done()["claims"][0].clone();
    assert_eq!(claim["taints"], json!([parts[1]]));
    let bad = offer("x", json!({ "after": { "tasks": [], "need": 0 } }));
    stage.post("/v1/handoffs", bad).await.refused(422, "invalid_terms");
}

async fn the_health_of_targets_is_told(stage: Stage) {
    let metadata = json!({ "token_count": 900, "budget": 1000, "completeness_per_mille": 950 });
    let id = stage.offer("coder", json!({ "metadata": metadata })).await;
    let held = stage.claimed(&id, "coder").await;
    stage.act(&held, "fail", failure("retryable")).await.done();
    let mut seen = breaker(&stage, "coder").await;
    // What is watched follows the log, a moment behind.
    while seen["failures_in_row"] != 1 {
        tokio::task::yield_now().await;
        seen = breaker(&stage, "coder").await;
    }
    assert_eq!(seen["utilisation_per_mille"], 900);
    assert_eq!(seen["completeness_per_mille"], 950);
    assert_eq!(seen["hops"][0], 1);
    assert_eq!(seen["breaker"], "closed");
}

#[tokio::test]
async fn a_breaker_is_open_after_a_restart() {
    let stage = Stage::open(Backend::Sqlite).await;
    for _ in 0..3 {
        exhaust(&stage, "flaky").await;
    }
    let held = stage.claimed(&stage.offer("holder", json!({})).await, "holder").await;
    stage.act(&held, "reserve", json!({ "resources": ["src/**"] })).await.done();
    stage.post("/v1/channels/news/subscribe", json!({ "agent": "ann" })).await.done();
    stage.engine.close().await;
    let stage = stage.reopened().await;
    stage.post("/v1/handoffs", offer("flaky", json!({}))).await.refused(409, "target_unavailable");
    let reserved = stage.get("/v1/reservations").await.done();
    assert_eq!(reserved["reservations"][0]["resources"], json!(["src/**"]));
    let there = stage.get("/v1/channels/news").await.done();
    assert_eq!(there["subscribers"][0]["agent"], "ann");
    stage.pass(60_000).await;
    stage.offer("flaky", json!({})).await;
}
