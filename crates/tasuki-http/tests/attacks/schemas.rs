// SPDX-License-Identifier: Apache-2.0
//! The wall before the processor: schemas that are made to be slow are refused with the bound that
//! they pass, before anything is compiled or held against them, and nobody goes on working on them
//! after the refusal.

use serde_json::{Map, Value, json};

use crate::support::{Client, Stage, may, on_durable_stores, text};

on_durable_stores! { closed:
    a_schema_over_a_bound_is_refused_with_the_bound_that_it_passes
    a_value_that_would_take_too_many_steps_is_refused
    patterns_that_go_back_and_forth_take_no_longer_than_others
}

const WORK: &[&str] = &["send", "claim", "complete"];

async fn two(stage: &Stage) -> (Client, Client) {
    let admin = stage.administrator().await;
    (admin.enroll("planner", may(WORK)).await, admin.enroll("coder", may(WORK)).await)
}

/// Each definition has two references to the next one.
fn doubling() -> Value {
    let mut defs = Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        defs.insert(format!("d{level}"), json!({ "anyOf": [next, next] }));
    }
    defs.insert("d40".into(), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

/// Each definition leads to the next one, and the last to the first.
fn circle() -> Value {
    let link = |n: usize| {
        let next = format!("#/$defs/d{}", (n + 1) % 1000);
        (format!("d{n}"), json!({ "$ref": next }))
    };
    let defs: Map<_, _> = (0..1000).map(link).collect();
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

fn slow() -> Vec<(&'static str, Value)> {
    let many: Map<_, _> = (0..5000).map(|n| (format!("p{n}"), json!({}))).collect();
    let deep = (0..40).fold(json!({}), |inside, _| json!({ "not": inside }));
    let nested = (0..9).fold(json!({}), |inside, _| json!({ "oneOf": [inside, inside, inside] }));
    vec![
        ("schema_unfolded", doubling()),
        ("schema_unfolded_depth", circle()),
        ("schema_nodes", json!({ "properties": many })),
        ("schema_depth", deep),
        ("schema_bytes", nested),
        ("schema_bytes", json!({ "description": "x".repeat(70_000), "type": "string" })),
        ("pattern_atoms", json!({ "pattern": "((a{1,90}){1,90}){1,90}", "type": "string" })),
    ]
}

async fn a_schema_over_a_bound_is_refused_with_the_bound_that_it_passes(stage: Stage) {
    let (planner, coder) = two(&stage).await;
    let head = stage.store.head();
    for (bound, schema) in slow() {
        let said = |reply: Value| {
            // A whole manifest may nest no deeper either, and says so by itself.
            let told =
                [bound, if bound == "schema_depth" { "nested deeper than 32" } else { bound }];
            let reply = reply.to_string();
            assert!(told.iter().any(|told| reply.contains(told)), "{bound}: {reply}");
            assert_eq!(stage.engine.working(), 0, "{bound}: nobody works on it any more");
        };
        let offer = planner.offering("coder", json!({ "expected_output": { "schema": schema } }));
        let reply = planner.post("/v1/handoffs", offer).await;
        assert!((400..500).contains(&reply.status), "{bound}: {} {}", reply.status, reply.body);
        said(reply.body);
        let capability = json!({ "name": "review", "input_schema": schema });
        let manifest = json!({ "agent_id": "coder", "capabilities": [capability] });
        let reply = coder.post("/v1/agents", json!({ "manifest": manifest })).await;
        assert!((400..500).contains(&reply.status), "{bound}: {} {}", reply.status, reply.body);
        said(reply.body);
    }
    stage.unmoved_since(head).await;
}

async fn a_value_that_would_take_too_many_steps_is_refused(stage: Stage) {
    let (planner, coder) = two(&stage).await;
    // Every item is held against every alternative, and everything again for what was not evaluated.
    let choices: Vec<_> = (0..200).map(|n| json!({ "const": n })).collect();
    let schema = json!({
        "properties": { "list": { "items": { "anyOf": choices }, "unevaluatedItems": false } },
    });
    let expected = json!({ "expected_output": { "schema": schema } });
    let handoff = planner.offer("coder", expected).await;
    let held = coder.claimed(&handoff).await;
    let payload = json!({ "type": "done", "list": vec![1; 50_000] });
    let reply = coder.act(&held, "complete", json!({ "payload": payload })).await;
    assert!(reply.body.to_string().contains("validation_steps"), "{}", reply.body);
    reply.refused(422, "invalid_payload");
    assert_eq!(stage.engine.working(), 0);
    let payload = json!({ "type": "done", "list": [1, 2] });
    coder.act(&held, "complete", json!({ "payload": payload })).await.done();
}

async fn patterns_that_go_back_and_forth_take_no_longer_than_others(stage: Stage) {
    let (planner, coder) = two(&stage).await;
    let schema = json!({ "properties": { "text": { "pattern": "^(a+)+$" } } });
    let expected = json!({ "expected_output": { "schema": schema } });
    let handoff = planner.offer("coder", expected).await;
    let held = coder.claimed(&handoff).await;
    // Tried in every way, this would take longer than the world is old.
    let payload = json!({ "type": "done", "text": format!("{}!", "a".repeat(10_000)) });
    let reply = coder.act(&held, "complete", json!({ "payload": payload })).await;
    reply.refused(422, "invalid_payload");
    assert_eq!(stage.engine.working(), 0);
    // What only an engine that goes back can match is no pattern here, and its sender is told so.
    for pattern in ["(a)\\1", "(?=b)a"] {
        let schema = json!({ "pattern": pattern });
        let offer = planner.offering("coder", json!({ "expected_output": { "schema": schema } }));
        let refused = planner.post("/v1/handoffs", offer).await;
        let refused = refused.refused(400, "invalid_request");
        assert!(text(&refused["message"]).contains("output_schema"), "{refused}");
    }
}
