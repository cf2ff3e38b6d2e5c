// SPDX-License-Identifier: Apache-2.0
//! What is handed to the first agent arrives at the last one: the user's words, everything that
//! binds, what was decided and what is open, whatever the agents in between try.

use serde_json::{Value, json};

use crate::support::{Held, Stage, merged, offer, on_both_stores, text};

on_both_stores! {
    after_eight_hops_of_hostile_agents_everything_that_binds_is_there
    a_plain_map_of_constraints_is_taken
    decisions_and_gaps_go_on_until_somebody_settles_them
    calls_are_bound_by_what_binds_their_caller
    a_claim_that_must_be_read_back_counts_when_it_was
    a_result_is_held_against_what_was_expected
    every_fault_of_a_malformed_offer_is_named_at_once
    what_is_lifted_stands_in_the_log
    a_constraint_is_lifted_by_who_issued_it_whoever_holds_the_task
}

async fn envelope(stage: &Stage, handoff: &str) -> Value {
    stage.get(&format!("/v1/handoffs/{handoff}/envelope")).await.done()
}

fn next(to: &str, change: Value) -> Value {
    let hop = json!({ "to": { "agent": to }, "payload": { "type": "next" } });
    json!({ "payload": { "type": "done" }, "follow_ups": [merged(hop, change)] })
}

/// Completes and hands on. Returns the next handoff.
async fn hand_on(stage: &Stage, held: &Held, to: &str, change: Value) -> String {
    stage.act(held, "complete", next(to, change)).await.done();
    let shown = stage.get(&format!("/v1/handoffs?to_agent={to}")).await.done();
    text(&shown["handoffs"][0]["handoff_id"])
}

fn ids(envelope: &Value) -> Vec<String> {
    let list = envelope["constraints"].as_array().unwrap();
    list.iter().map(|one| text(&one["id"])).collect()
}

async fn after_eight_hops_of_hostile_agents_everything_that_binds_is_there(stage: Stage) {
    let intent = "Migrate the billing tables.  Keep every cent.\n";
    let binding = json!([
        "Never touch the production database.",
        { "kind": "security", "text": "Do not print card numbers." },
        { "kind": "preference", "text": "Prefer small commits." },
    ]);
    let change = json!({ "intent": intent, "constraints": binding });
    let mut handoff = stage.offer("agent-1", change).await;
    let first = envelope(&stage, &handoff).await;
    let task = text(&first["task_id"]);
    for hop in 1..=8 {
        let held = stage.claimed(&handoff, &format!("agent-{hop}")).await;
        let to = format!("agent-{}", hop + 1);
        let list = first["constraints"].as_array().unwrap();
        let dropped = json!({ "constraints": list[1..] });
        let softened = json!({ "constraints": ["Be careful with production.", list[1], list[2]] });
        let retyped = merged(list[0].clone(), json!({ "text": "Avoid production." }));
        let retyped = json!({ "constraints": [retyped, list[1], list[2]] });
        let weakened = merged(list[1].clone(), json!({ "hard": false }));
        let weakened = json!({ "add_constraints": [weakened] });
        let lifted =
            json!({ "lift_constraints": [{ "id": list[0]["id"], "reason": "in the way" }] });
        for (attack, status, code) in [
            (&dropped, 422, "constraint_dropped"),
            (&softened, 422, "constraint_dropped"),
            (&retyped, 422, "constraint_altered"),
            (&weakened, 422, "constraint_altered"),
            (&lifted, 403, "constraint_not_yours"),
        ] {
            let problem = stage.act(&held, "complete", next(&to, attack.clone())).await;
            let problem = problem.refused(status, code);
            let fault = &problem["details"]["faults"][0];
            assert!(fault["constraint_id"].as_str().is_some(), "it is named: {problem}");
        }
        let reordered = json!({ "constraints": [list[2], list[0], list[1]] });
        let honest = if hop % 2 == 0 { reordered } else { json!({}) };
        handoff = hand_on(&stage, &held, &to, honest).await;
    }
    let last = envelope(&stage, &handoff).await;
    assert_eq!(last["hop"], 8);
    assert_eq!(last["intent"], intent);
    assert_eq!(last["constraints"], first["constraints"], "word for word, in the same order");
    let task = stage.get(&format!("/v1/tasks/{task}")).await.done();
    assert_eq!(task["state"], "open");
}

async fn a_plain_map_of_constraints_is_taken(stage: Stage) {
    let map = json!({ "language": "python", "max_tokens": 4000, "must_not": ["use eval"] });
    let handoff = stage.offer("coder", json!({ "constraints": map })).await;
    let first = envelope(&stage, &handoff).await;
    let texts: Vec<_> =
        first["constraints"].as_array().unwrap().iter().map(|c| &c["text"]).collect();
    assert_eq!(texts, ["language: python", "use eval"]);
    assert_eq!(first["constraints"][1]["kind"], "must_not");
    assert_eq!(stage.show(&handoff).await["contract"]["budget_tokens"], 4000);
    // A later map adds, as those who write one expect.
    let held = stage.claimed(&handoff, "coder").await;
    let more = json!({ "constraints": { "style": "plain" } });
    let second = envelope(&stage, &hand_on(&stage, &held, "tester", more).await).await;
    assert_eq!(ids(&second)[..2], ids(&first));
    assert_eq!(second["constraints"][2]["issuer"], "coder");
}

async fn decisions_and_gaps_go_on_until_somebody_settles_them(stage: Stage) {
    let said = json!({
        "decisions": [{ "key": "database", "decision": "SQLite", "why": "one file" }],
        "open_decisions": ["Which port?"],
        "gaps": [{ "reference": "ms-17", "reason": "was deleted" }],
        "history": [{ "action": "read the ticket" }],
    });
    let handoff = stage.offer("coder", said).await;
    let first = envelope(&stage, &handoff).await;
    let held = stage.claimed(&handoff, "coder").await;
    let against = json!({ "decisions": [{ "key": "database", "decision": "MySQL" }] });
    let problem = stage.act(&held, "complete", next("tester", against)).await;
    problem.refused(409, "decision_settled");
    let handoff = hand_on(&stage, &held, "tester", json!({})).await;
    let second = envelope(&stage, &handoff).await;
    for part in ["decisions", "open_decisions", "gaps", "history"] {
        assert_eq!(second[part], first[part], "{part}");
    }
    let held = stage.claimed(&handoff, "tester").await;
    let settles = json!({
        "decisions": [
            { "decision": "8788", "resolves": first["open_decisions"][0]["id"] },
            { "key": "database", "decision": "PostgreSQL", "why": "three brokers",
              "supersedes": first["decisions"][0]["id"] },
        ],
        "resolved_gaps": ["ms-17"],
    });
    let third = envelope(&stage, &hand_on(&stage, &held, "writer", settles).await).await;
    assert_eq!(third["decisions"].as_array().unwrap().len(), 3);
    assert!(third.get("open_decisions").is_none() && third.get("gaps").is_none());
}

async fn calls_are_bound_by_what_binds_their_caller(stage: Stage) {
    let handoff = stage.offer("coder", json!({ "constraints": ["Never."] })).await;
    let first = envelope(&stage, &handoff).await;
    stage.claimed(&handoff, "coder").await;
    let call = merged(
        offer("helper", json!({ "control": "awaited", "task_id": first["task_id"] })),
        json!({ "from_agent": "coder", "intent": null }),
    );
    let drops = merged(call.clone(), json!({ "constraints": [] }));
    stage.post("/v1/handoffs", drops).await.refused(422, "constraint_dropped");
    let called = stage.post("/v1/handoffs", call).await.done();
    let below = envelope(&stage, &text(&called["handoff_id"])).await;
    assert_eq!(below["constraints"], first["constraints"]);
}

async fn a_claim_that_must_be_read_back_counts_when_it_was(stage: Stage) {
    let said = json!({
        "constraints": ["Never.", "Always."], "read_back": true,
        "expected_output": { "format": "text" },
    });
    let handoff = stage.offer("coder", said).await;
    let held = stage.claimed(&handoff, "coder").await;
    assert_eq!(stage.task_of(&handoff).await["owner"], "planner", "it does not count yet");
    stage.act(&held, "start", json!({})).await.refused(409, "read_back_needed");
    let done = json!({ "payload": { "type": "done", "text": "x" } });
    stage.act(&held, "complete", done.clone()).await.refused(409, "read_back_needed");
    stage.act(&held, "heartbeat", json!({})).await.done();
    let both = ids(&envelope(&stage, &handoff).await);
    let half = json!({ "read_back": { "constraints": [both[0]] } });
    let problem = stage.act(&held, "start", half).await.refused(422, "invalid_envelope");
    let faults = problem["details"]["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 2, "what is missing is named: {problem}");
    assert!(faults[0]["problem"].as_str().unwrap().contains("Always."), "{problem}");
    let expected: tasuki_core::envelope::ExpectedOutput =
        serde_json::from_value(json!({ "format": "text" })).unwrap();
    let all = json!({ "read_back": {
        "constraints": [both[1], both[0]], "expected_output": expected.hash(),
    } });
    stage.act(&held, "start", all).await.done();
    assert_eq!(stage.task_of(&handoff).await["owner"], "coder");
    stage.act(&held, "complete", done).await.done();
}

async fn a_result_is_held_against_what_was_expected(stage: Stage) {
    let expected = json!({
        "schema": { "type": "object", "required": ["text"] },
        "format": "markdown", "length": { "words_max": 4 }, "criteria": ["Names the file."],
    });
    let handoff = stage.offer("coder", json!({ "expected_output": expected })).await;
    let held = stage.claimed(&handoff, "coder").await;
    let long = json!({ "payload": { "type": "t", "text": "far too many words here" } });
    let problem = stage.act(&held, "complete", long).await.refused(422, "invalid_payload");
    assert_eq!(problem["details"]["faults"].as_array().unwrap().len(), 2, "{problem}");
    let met = json!([{ "criterion": "Names the file.", "met": true, "evidence": "line 1" }]);
    let good = json!({ "payload": { "type": "t", "text": "src/main.rs" }, "criteria": met });
    stage.act(&held, "complete", good).await.done();
    let result = stage.show(&handoff).await["output"].clone();
    assert_eq!(
        result["verified"],
        json!(["schema", "format", "length"]),
        "what the broker checked"
    );
    assert_eq!(result["declared"], met, "and what the agent says");
}

async fn every_fault_of_a_malformed_offer_is_named_at_once(stage: Stage) {
    let head = stage.store.head();
    let bad = offer("coder", json!({ "priority": "high", "payload": "just text", "tried": [1] }));
    let problem = stage.post("/v1/handoffs", bad).await.refused(400, "invalid_request");
    let faults = problem["details"]["faults"].as_array().unwrap();
    let paths: Vec<_> = faults.iter().map(|fault| fault["path"].as_str().unwrap()).collect();
    for path in ["/priority", "/payload", "/tried/0"] {
        assert!(paths.contains(&path), "{path} is missing in {problem}");
    }
    let bad =
        json!({ "constraints": [7, { "kind": "wish", "text": "x" }], "resolved_gaps": ["g"] });
    let problem = stage.post("/v1/handoffs", offer("coder", bad)).await;
    let problem = problem.refused(422, "invalid_envelope");
    assert_eq!(problem["details"]["faults"].as_array().unwrap().len(), 3, "{problem}");
    let typo = offer("coder", json!({ "contraints": ["Never."] }));
    let problem = stage.post("/v1/handoffs", typo).await.refused(400, "invalid_request");
    assert_eq!(problem["details"]["field"], "contraints");
    assert_eq!(stage.store.head(), head, "nothing was stored");
}

async fn what_is_lifted_stands_in_the_log(stage: Stage) {
    let handoff = stage.offer("coder", json!({ "constraints": ["Never on Fridays."] })).await;
    let first = envelope(&stage, &handoff).await;
    let held = stage.claimed(&handoff, "coder").await;
    let back = hand_on(&stage, &held, "planner", json!({ "add_constraints": ["Use tabs."] })).await;
    let held = stage.claimed(&back, "planner").await;
    let lift = json!({ "lift_constraints": [
        { "id": first["constraints"][0]["id"], "reason": "it is urgent" },
    ] });
    let last = hand_on(&stage, &held, "coder", lift).await;
    let third = envelope(&stage, &last).await;
    assert_eq!(third["constraints"].as_array().unwrap().len(), 1);
    assert_eq!(third["lifted"][0]["reason"], "it is urgent");
    let log = stage.get(&format!("/v1/tasks/{}/events", text(&third["task_id"]))).await;
    assert!(log.text().contains(r#""lifted":["#), "{}", log.text());
}

async fn a_constraint_is_lifted_by_who_issued_it_whoever_holds_the_task(stage: Stage) {
    let binding = json!({ "constraints": ["Never on Fridays.", "Keep every cent."] });
    let handoff = stage.offer("coder", binding).await;
    let first = envelope(&stage, &handoff).await;
    let path = format!("/v1/tasks/{}/lift", text(&first["task_id"]));
    let fridays = &first["constraints"][0]["id"];
    let held = stage.claimed(&handoff, "coder").await;
    let lift = |by: &str, id: &Value, reason: &str| json!({ "by": by, "constraint": id, "reason": reason });
    let refused = stage.post(&path, lift("coder", fridays, "I am in a hurry")).await;
    refused.refused(403, "constraint_not_yours");
    let none = json!(format!("sha256:{}", "0".repeat(64)));
    stage.post(&path, lift("planner", &none, "?")).await.refused(422, "invalid_envelope");
    stage.post(&path, lift("planner", fridays, " ")).await.refused(400, "invalid_request");
    stage.post(&path, lift("planner", fridays, "it is urgent")).await.done();
    stage.post(&path, lift("planner", fridays, "again")).await.done();
    let shown = stage.show(&handoff).await;
    assert_eq!(shown["lifted"], json!([{ "constraint": fridays, "by": "planner" }]));
    assert_eq!(envelope(&stage, &handoff).await, first, "an envelope never changes");

    // The coder has not heard of it and says all that it knows to bind.
    let all = json!({
        "constraints": first["constraints"], "add_constraints": ["Use tabs."],
    });
    let next = hand_on(&stage, &held, "tester", all).await;
    let second = envelope(&stage, &next).await;
    let texts: Vec<_> =
        second["constraints"].as_array().unwrap().iter().map(|one| text(&one["text"])).collect();
    assert_eq!(texts, ["Keep every cent.", "Use tabs."]);
    let lifted = &second["lifted"][0];
    assert_eq!((&lifted["by"], &lifted["reason"]), (&json!("planner"), &json!("it is urgent")));
    assert_eq!((&lifted["id"], &lifted["hop"]), (fridays, &json!(1)));
    let tabs = &second["constraints"][1]["id"];
    // Who issued it no longer holds the task, and never opened it.
    stage.post(&path, lift("coder", tabs, "spaces after all")).await.done();
    let held = stage.claimed(&next, "tester").await;
    let call = merged(
        json!({ "from_agent": "tester", "task_id": first["task_id"], "control": "awaited" }),
        json!({ "to": { "agent": "helper" }, "payload": { "type": "call" } }),
    );
    let call = stage.post("/v1/handoffs", call).await.done();
    let called = envelope(&stage, &text(&call["handoff_id"])).await;
    assert_eq!(called["constraints"].as_array().unwrap().len(), 1, "calls are freed of it too");
    stage.completed(&held).await;
    let log = stage.get(&format!("/v1/tasks/{}/events", text(&first["task_id"]))).await;
    assert_eq!(log.text().matches(r#""kind":"constraint_lifted""#).count(), 2, "{}", log.text());
    let cents = &first["constraints"][1]["id"];
    stage.post(&path, lift("planner", cents, "too late")).await.refused(409, "task_finished");
}
