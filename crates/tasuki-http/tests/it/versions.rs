// SPDX-License-Identifier: Apache-2.0
//! Old and new agents in one chain, in any order.

use serde_json::{Value, json};

use crate::support::{Held, Stage, merged, offer, on_both_stores, text};

on_both_stores! {
    an_old_agent_between_new_ones_loses_nothing
    a_new_agent_between_old_ones_loses_nothing
    each_is_served_the_major_that_its_manifest_takes
    members_of_a_newer_minor_survive_agents_that_do_not_know_them
    a_major_that_nobody_knows_is_refused
}

async fn claimed_as(stage: &Stage, handoff: &str, agent: &str, major: u32) -> Value {
    let body = json!({ "agent": agent, "majors": [major] });
    stage.post(&format!("/v1/handoffs/{handoff}/claim"), body).await.done()
}

async fn handed(stage: &Stage, held: &Held, to: &str, hop: Value) -> String {
    let body = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
    stage.act(held, "complete", body).await.done();
    let shown = stage.get(&format!("/v1/handoffs?to_agent={to}")).await.done();
    text(&shown["handoffs"][0]["handoff_id"])
}

/// What an agent of major 1 sends on: what it was given, with a new receiver and a new payload.
fn passed_on(mut flat: Value, to: &str) -> Value {
    flat["payload"] = json!({ "type": "old", "note": "done by an old agent" });
    flat["action"] = json!("completed");
    flat["context"]["to"] = json!({ "agent": to });
    flat["context"].as_object_mut().unwrap().remove("action");
    flat
}

async fn an_old_agent_between_new_ones_loses_nothing(stage: Stage) {
    let said = json!({
        "constraints": ["Never."], "decisions": [{ "key": "a", "decision": "b" }],
        "history": [{ "action": "began" }], "ask": "do it",
    });
    let first = stage.offer("old", said).await;
    let claim = claimed_as(&stage, &first, "old", 1).await;
    let flat = &claim["envelope"];
    let mut names: Vec<_> = flat.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["action", "context", "envelope_version", "from_agent", "metadata", "payload", "task_id"]
    );
    assert_eq!(flat["envelope_version"], "1.0");
    assert_eq!(flat["context"]["constraints"][0]["text"], "Never.");
    let held = Held::of(&claim);
    let second = handed(&stage, &held, "new", passed_on(flat.clone(), "new")).await;
    let claim = claimed_as(&stage, &second, "new", 2).await;
    let envelope = &claim["envelope"];
    let before = stage.get(&format!("/v1/handoffs/{first}/envelope")).await.done();
    for part in ["constraints", "decisions", "history", "intent"] {
        assert_eq!(envelope[part], before[part], "{part}");
    }
    assert_eq!(envelope["payload"]["note"], "done by an old agent");
    // Its flat form is held to the same rules.
    let held = Held::of(&claim);
    let mut soft = passed_on(flat.clone(), "x");
    soft["context"]["constraints"] = json!(["Try not to."]);
    let body = json!({ "payload": { "type": "done" }, "follow_ups": [soft] });
    stage.act(&held, "complete", body).await.refused(422, "constraint_dropped");
}

async fn a_new_agent_between_old_ones_loses_nothing(stage: Stage) {
    let flat = json!({
        "envelope_version": "1.0", "from_agent": "planner", "action": "needs_review",
        "payload": { "type": "ask" }, "metadata": {},
        "context": {
            "to": { "agent": "new" }, "intent": "as of old",
            "constraints": { "language": "python" }, "habit": "kept",
        },
    });
    // Members that nobody knows are a mistake, in major 1 as in major 2.
    stage.post("/v1/handoffs", flat.clone()).await.refused(400, "invalid_request");
    let mut flat = flat;
    flat["context"].as_object_mut().unwrap().remove("habit");
    let first = text(&stage.post("/v1/handoffs", flat).await.done()["handoff_id"]);
    let held = Held::of(&claimed_as(&stage, &first, "new", 2).await);
    let hop = json!({ "to": { "agent": "old" }, "payload": { "type": "x" }, "summary": "short" });
    let second = handed(&stage, &held, "old", hop).await;
    let claim = claimed_as(&stage, &second, "old", 1).await;
    let context = &claim["envelope"]["context"];
    assert_eq!(context["intent"], "as of old");
    assert_eq!(context["summary"], "short");
    assert_eq!(context["constraints"][0]["text"], "language: python");
}

async fn each_is_served_the_major_that_its_manifest_takes(stage: Stage) {
    for (agent, majors) in [("old", json!([1])), ("new", json!([1, 2]))] {
        let manifest = json!({ "agent_id": agent, "capabilities": [], "accepted_majors": majors });
        stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    }
    for (agent, version) in [("old", "1.0"), ("new", tasuki_core::envelope::VERSION)] {
        let handoff = stage.offer(agent, json!({})).await;
        let claim = stage.claim_one(&handoff, agent).await.done();
        assert_eq!(claim["envelope"]["envelope_version"], version);
    }
}

async fn members_of_a_newer_minor_survive_agents_that_do_not_know_them(stage: Stage) {
    let newer = json!({ "envelope_version": "2.99", "mood": { "is": "hopeful" } });
    let first = stage.offer("plain", newer).await;
    let held = stage.claimed(&first, "plain").await;
    let hop = json!({ "to": { "agent": "old" }, "payload": { "type": "x" } });
    let second = handed(&stage, &held, "old", hop).await;
    let claim = claimed_as(&stage, &second, "old", 1).await;
    assert_eq!(claim["envelope"]["context"]["mood"]["is"], "hopeful");
    let held = Held::of(&claim);
    let hop = merged(
        json!({ "to": { "agent": "last" }, "payload": { "type": "x" } }),
        json!({ "envelope_version": "2.99", "tempo": "slow" }),
    );
    let third = handed(&stage, &held, "last", hop).await;
    let last = stage.get(&format!("/v1/handoffs/{third}/envelope")).await.done();
    assert_eq!((&last["mood"]["is"], &last["tempo"]), (&json!("hopeful"), &json!("slow")));
}

async fn a_major_that_nobody_knows_is_refused(stage: Stage) {
    let newer = offer("coder", json!({ "envelope_version": "3.0" }));
    stage.post("/v1/handoffs", newer).await.refused(422, "version_not_supported");
    let handoff = stage.offer("coder", json!({})).await;
    let body = json!({ "agent": "coder", "majors": [3] });
    let claim = stage.post(&format!("/v1/handoffs/{handoff}/claim"), body).await;
    claim.refused(400, "invalid_request");
    assert_eq!(stage.is(&handoff).await.0, "pending", "nothing was claimed");
}
