// SPDX-License-Identifier: Apache-2.0
//! Finding agents, and handing work to whoever can do it.

use serde_json::{Value, json};

use crate::support::{Held, SECOND, Stage, merged, offer, on_both_stores, text};

on_both_stores! {
    the_shortest_manifest_is_accepted_as_it_stands
    a_manifest_names_every_fault_at_once
    agents_are_found_by_what_they_take_and_give
    work_for_a_capability_goes_to_the_least_loaded_who_is_there
    without_anybody_there_work_waits_and_the_sender_is_told
    a_draining_agent_gets_nothing_new
    who_breaks_its_word_is_avoided
    how_an_agent_fares_is_shown_beside_what_it_promises
}

/// As the document that manifests come from has it.
fn manifest(agent: &str) -> Value {
    json!({
        "agent_id": agent,
        "capabilities": [{
            "name": "web_research",
            "input_schema": { "query": "string", "depth": "int" },
            "output_schema": { "sources": "array", "summary": "string" },
            "timeout_seconds": 300,
            "reliability_sla": 0.95,
        }],
        "discovery_endpoint": format!("https://agent-registry.example.com/{agent}"),
    })
}

async fn publish(stage: &Stage, agent: &str) {
    stage.post("/v1/agents", json!({ "manifest": manifest(agent) })).await.done();
}

/// Somebody who asks for work is there.
async fn polls(stage: &Stage, agent: &str) {
    stage.post("/v1/claims", json!({ "agent": agent })).await.done();
}

fn asked(change: Value) -> Value {
    let payload = json!({ "type": "ask", "query": "tides", "depth": 2 });
    merged(offer("*web_research", json!({ "payload": payload })), change)
}

fn answer() -> Value {
    json!({ "payload": { "type": "found", "sources": [], "summary": "none" } })
}

async fn the_shortest_manifest_is_accepted_as_it_stands(stage: Stage) {
    publish(&stage, "research-agent-001").await;
    let shown = stage.get("/v1/agents/research-agent-001").await.done();
    assert_eq!(shown["manifest"], manifest("research-agent-001"), "as it was published");
    assert_eq!(shown["version"], 1);
    let same = json!({ "manifest": manifest("research-agent-001") });
    assert_eq!(stage.post("/v1/agents", same).await.done()["version"], 1);
    let newer = merged(manifest("research-agent-001"), json!({ "role": "researcher" }));
    let moved = json!({ "manifest": newer, "version": 7 });
    stage.post("/v1/agents", moved).await.refused(409, "manifest_moved");
    let newer = json!({ "manifest": newer, "version": 1 });
    assert_eq!(stage.post("/v1/agents", newer).await.done()["version"], 2);
    let all = stage.get("/.well-known/agents.json").await.done();
    let entry = &all["agents"][0];
    assert_eq!(entry["capabilities"], json!(["web_research"]));
    assert!(text(&entry["discovery_endpoint"]).contains("agent-registry.example.com"));
    for name in ["envelope", "event", "manifest"] {
        let path = format!("/v1/schemas/{name}.json");
        assert_eq!(stage.get(&path).await.done()["$id"], path, "a schema says where it is");
    }
    let schema = stage.get("/v1/schemas/manifest.json").await.done();
    let schema = jsonschema::validator_for(&schema).unwrap();
    assert!(schema.is_valid(&manifest("x")));
}

async fn a_manifest_names_every_fault_at_once(stage: Stage) {
    let bad = json!({ "manifest": {
        "agent_id": "coder",
        "capabilities": [{ "name": "a b" }, { "name": "x", "reliability_sla": 2 }],
        "concurrency": 0,
    }});
    let head = stage.store.head();
    let problem = stage.post("/v1/agents", bad).await.refused(422, "invalid_manifest");
    let faults = problem["details"]["faults"].as_array().unwrap();
    let paths: Vec<_> = faults.iter().map(|fault| text(&fault["path"])).collect();
    for path in ["capabilities[0].name", "capabilities[1].reliability_sla", "concurrency"] {
        assert!(paths.iter().any(|found| found == path), "{path} in {paths:?}");
    }
    assert_eq!(stage.store.head(), head, "nothing was stored");
}

async fn agents_are_found_by_what_they_take_and_give(stage: Stage) {
    publish(&stage, "researcher").await;
    let search = |more: Value| merged(json!({ "capability": "web_research" }), more);
    let names = |found: Value| {
        let agents = found["agents"].as_array().unwrap().clone();
        agents.iter().map(|agent| text(&agent["agent_id"])).collect::<Vec<_>>()
    };
    let takes = json!({ "type": "object", "required": ["query", "depth"],
        "properties": { "query": { "type": "string" }, "depth": { "type": "integer" } } });
    let found = stage.post("/v1/discover", search(json!({ "input": takes }))).await.done();
    assert_eq!(names(found), ["researcher"]);
    let other = json!({ "type": "object", "properties": { "url": { "type": "string" } } });
    let found = stage.post("/v1/discover", search(json!({ "input": other }))).await.done();
    assert_eq!(names(found), [""; 0]);
    let wants = json!({ "type": "object", "required": ["summary"],
        "properties": { "summary": { "type": "string" } } });
    let found = stage.post("/v1/discover", search(json!({ "output": wants }))).await.done();
    assert_eq!(names(found), ["researcher"]);
    let path = |query: &str| format!("/v1/agents?capability=web_research&{query}");
    assert_eq!(names(stage.get(&path("live=true")).await.done()), [""; 0]);
    polls(&stage, "researcher").await;
    assert_eq!(names(stage.get(&path("live=true")).await.done()), ["researcher"]);
    stage.pass(61 * SECOND).await;
    assert_eq!(names(stage.get(&path("live=true")).await.done()), [""; 0]);
    assert_eq!(names(stage.get("/v1/agents?capability=nothing").await.done()), [""; 0]);
}

async fn work_for_a_capability_goes_to_the_least_loaded_who_is_there(stage: Stage) {
    for agent in ["anna", "boris", "chloe"] {
        publish(&stage, agent).await;
    }
    polls(&stage, "anna").await;
    polls(&stage, "boris").await;
    stage.offer("anna", json!({})).await;
    let route = json!({ "route": { "policy": "least_loaded" } });
    let offered = stage.post("/v1/handoffs", asked(route)).await.done();
    assert_eq!(offered["to"], json!({ "agent": "boris" }), "chloe is not there, anna has work");
    assert_eq!(offered["listening"], true);
    assert_eq!(offered["routed"]["live"], 2);
    let shown = stage.show(&text(&offered["handoff_id"])).await;
    let task = text(&shown["task_id"]);
    let events = stage.get(&format!("/v1/tasks/{task}/events")).await.done();
    let said = &events["events"][0]["record"]["contract"];
    assert_eq!(said["routed"]["policy"], "least_loaded", "the log says why: {said}");
    assert_eq!(said["capability"], "web_research");
    let path = format!("/v1/handoffs/{}/envelope", text(&shown["handoff_id"]));
    let envelope = stage.get(&path).await.done();
    assert_eq!(envelope["asked_to"], json!({ "capability": "web_research" }));
    assert_eq!(shown["terms"]["work_ms"], 300_000, "the time that the agent says it takes");
}

async fn without_anybody_there_work_waits_and_the_sender_is_told(stage: Stage) {
    publish(&stage, "anna").await;
    let route = json!({ "route": { "policy": "round_robin" } });
    let offered = stage.post("/v1/handoffs", asked(route)).await.done();
    assert_eq!(offered["to"], json!({ "capability": "web_research" }));
    assert_eq!(offered["listening"], false);
    let claim = json!({ "agent": "anna", "capabilities": ["web_research"] });
    let claims = stage.post("/v1/claims", claim).await.done();
    assert_eq!(claims["claims"][0]["handoff_id"], offered["handoff_id"]);
}

async fn a_draining_agent_gets_nothing_new(stage: Stage) {
    for agent in ["anna", "boris"] {
        publish(&stage, agent).await;
        polls(&stage, agent).await;
    }
    stage.post("/v1/agents/anna/drain", json!({})).await.done();
    for _ in 0..4 {
        let route = json!({ "route": { "policy": "round_robin" } });
        let offered = stage.post("/v1/handoffs", asked(route)).await.done();
        assert_eq!(offered["to"], json!({ "agent": "boris" }));
    }
    stage.post("/v1/agents/boris/deregister", json!({})).await.done();
    stage.post("/v1/agents/anna/resume", json!({})).await.done();
    let route = json!({ "route": { "policy": "round_robin" } });
    let offered = stage.post("/v1/handoffs", asked(route)).await.done();
    assert_eq!(offered["to"], json!({ "agent": "anna" }));
}

/// Claims what waits for an agent, and ends it well or badly.
async fn works(stage: &Stage, agent: &str, well: bool) {
    let body = asked(json!({ "to": { "agent": agent }, "capability": "web_research" }));
    let id = text(&stage.post("/v1/handoffs", body).await.done()["handoff_id"]);
    let held: Held = stage.claimed(&id, agent).await;
    let (act, body) = match well {
        true => ("complete", answer()),
        false => ("fail", crate::support::failure("permanent")),
    };
    stage.act(&held, act, body).await.done();
}

async fn who_breaks_its_word_is_avoided(stage: Stage) {
    for agent in ["anna", "boris"] {
        publish(&stage, agent).await;
        polls(&stage, agent).await;
    }
    for number in 0..20 {
        works(&stage, "anna", number % 2 == 0).await;
        works(&stage, "boris", true).await;
    }
    // Who looks finds everything counted.
    stage.get("/v1/agents").await.done();
    for _ in 0..4 {
        let route = json!({ "route": { "policy": "round_robin" } });
        let offered = stage.post("/v1/handoffs", asked(route)).await.done();
        assert_eq!(offered["to"], json!({ "agent": "boris" }));
        assert_eq!(offered["routed"]["avoided_sla"], 1);
    }
}

async fn how_an_agent_fares_is_shown_beside_what_it_promises(stage: Stage) {
    publish(&stage, "anna").await;
    for number in 0..20 {
        works(&stage, "anna", number >= 4).await;
    }
    let observed = stage.get("/v1/agents/anna").await.done()["observed"][0].clone();
    assert_eq!(observed["capability"], "web_research");
    assert_eq!((&observed["tries"], &observed["successes"]), (&json!(20), &json!(16)));
    assert_eq!(observed["declared_sla"], 0.95);
    assert_eq!(observed["breaks_sla"], true);
}
