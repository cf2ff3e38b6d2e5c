// SPDX-License-Identifier: Apache-2.0
//! The table of operations: what it says is what is served, and what nobody knows is refused by each.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tasuki_engine::operations::{self, Right};
use tasuki_protocol::{OPEN, Openness};

use crate::contract;
use crate::samples::samples;
use crate::support::{Backend, Stage, everything, merged, offer, on_both_stores, text};

on_both_stores! {
    what_is_kept_although_nobody_knows_it_is_hashed_and_passed_on
}

const NOBODY_KNOWS: &str = "no_such_member";

#[test]
fn every_operation_of_the_table_is_served_once_and_nothing_else_is() {
    let table: Vec<_> = operations::all().iter().map(|entry| entry.facts.name.to_owned()).collect();
    let names: BTreeSet<_> = table.iter().cloned().collect();
    assert_eq!(names.len(), table.len(), "a name stands there twice");
    assert_eq!(names, contract::operations());
    assert_eq!(contract::table().len(), table.len(), "an operation has two paths");
}

#[test]
fn the_committed_list_of_operations_is_current() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = std::fs::read_to_string(folder.join("../../api/operations.json")).unwrap();
    let is_current = committed == tasuki_http::operations_text();
    assert!(is_current, "api/operations.json is out of date: run `cargo xtask codegen`");
}

/// Whether a reply says that it is about the member.
fn names_it(reply: &Value) -> bool {
    let told = |text: &Value| text.as_str().is_some_and(|text| text.contains(NOBODY_KNOWS));
    let faults = reply["details"]["faults"].as_array().into_iter().flatten();
    told(&reply["message"])
        || faults.into_iter().any(|fault| told(&fault["path"]) || told(&fault["problem"]))
}

/// Where objects stand in a request, but for those that are anybody's own.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.push(at.to_owned());
            for (name, value) in members {
                if !["payload", "metadata", "manifest", "input", "output", "state"]
                    .contains(&name.as_str())
                {
                    objects(value, &format!("{at}/{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            for (number, value) in items.iter().enumerate() {
                objects(value, &format!("{at}/{number}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn a_member_that_nobody_knows_is_refused_by_every_operation_wherever_it_stands() {
    let stage = Stage::volatile().await;
    let samples = samples(&stage).await;
    let head = stage.store.head();
    let mut taken = Vec::new();
    for (method, template, id) in contract::table() {
        let path = samples.path(&template);
        let in_url = format!("{path}?{NOBODY_KNOWS}=1");
        if method == "get" {
            let reply = stage.get(&in_url).await.refused(400, "invalid_request");
            assert!(names_it(&reply), "{id}: {reply}");
            continue;
        }
        let body = samples.body_of(&method, &template);
        let mut places = Vec::new();
        objects(&body, "", &mut places);
        for place in places {
            let mut body = body.clone();
            body.pointer_mut(&place).unwrap()[NOBODY_KNOWS] = json!(1);
            let reply = stage.ask(&method, &path, body).await;
            if reply.status != 400 || !names_it(&reply.body) {
                taken.push(format!("{id} {place:?}: {} {}", reply.status, reply.body));
            }
        }
        let reply = stage.ask(&method, &in_url, body).await.refused(400, "invalid_request");
        assert!(names_it(&reply), "{id}: {reply}");
    }
    assert!(taken.is_empty(), "{taken:#?}");
    assert_eq!(stage.store.head(), head, "nothing was carried out");
}

/// Every object of the published requests is closed, or the list of open ones names it.
#[test]
fn one_list_says_which_object_of_a_request_is_open() {
    let document = tasuki_http::document();
    let schemas = &document["components"]["schemas"];
    let mut reached = BTreeSet::new();
    for (path, method) in contract::table().into_iter().map(|(method, path, _)| (path, method)) {
        reach(&document["paths"][path][method]["requestBody"], schemas, &mut reached);
    }
    for (name, _) in OPEN {
        assert!(reached.contains(*name), "{name} is in no request");
    }
    let open: BTreeSet<_> = OPEN.iter().map(|(name, _)| *name).collect();
    for name in reached {
        let schema = &schemas[&name];
        if schema["properties"].is_null() {
            continue;
        }
        let says_more = schema["additionalProperties"] == json!(true);
        assert!(!says_more || open.contains(name.as_str()), "{name} is open and not in the list");
    }
}

fn reach(schema: &Value, schemas: &Value, reached: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            if let Some(name) = name.and_then(|name| name.rsplit('/').next())
                && reached.insert(name.to_owned())
            {
                reach(&schemas[name], schemas, reached);
            }
            members.values().for_each(|schema| reach(schema, schemas, reached));
        }
        Value::Array(items) => items.iter().for_each(|schema| reach(schema, schemas, reached)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn what_is_kept_although_nobody_knows_it_is_hashed_and_passed_on(stage: Stage) {
    let envelope =
        async |handoff: &str| stage.get(&format!("/v1/handoffs/{handoff}/envelope")).await.done();
    let hash = async |handoff: &str| text(&stage.show(handoff).await["envelope"]);
    for (name, openness) in OPEN {
        let (plain, more, at) = match *name {
            "Payload" => (
                json!({ "payload": { "type": "t" } }),
                json!({ "payload": { "type": "t", NOBODY_KNOWS: { "deep": 1 } } }),
                format!("/payload/{NOBODY_KNOWS}/deep"),
            ),
            "Object" => (
                json!({ "metadata": {} }),
                json!({ "metadata": { NOBODY_KNOWS: { "deep": 1 } } }),
                format!("/metadata/{NOBODY_KNOWS}/deep"),
            ),
            "Offer" | "FollowUp" | "Send" => (
                json!({ "envelope_version": "2.99" }),
                json!({ "envelope_version": "2.99", NOBODY_KNOWS: { "deep": 1 } }),
                format!("/{NOBODY_KNOWS}/deep"),
            ),
            // Its members are told apart when it is translated.
            "Flat" => continue,
            name => panic!("say how {name} keeps what nobody knows"),
        };
        let sent = match *name {
            "Send" => {
                let send = async |more: &Value| {
                    let body = merged(offer("coder", more.clone()), json!({ "timeout_ms": 0 }));
                    text(&stage.post("/v1/handoffs/send", body).await.done()["handoff_id"])
                };
                [send(&plain).await, send(&more).await]
            }
            _ => [stage.offer("coder", plain).await, stage.offer("coder", more.clone()).await],
        };
        assert_eq!(envelope(&sent[1]).await.pointer(&at), Some(&json!(1)), "{name}");
        assert_ne!(hash(&sent[0]).await, hash(&sent[1]).await, "{name} is not hashed");
        if *openness == Openness::NewerMinor {
            let held = stage.claimed(&sent[1], "coder").await;
            let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "x" } });
            let done = json!({ "payload": { "type": "d" }, "follow_ups": [hop] });
            stage.act(&held, "complete", done).await.done();
            let next = stage.get("/v1/handoffs?to_agent=tester").await.done();
            let next = text(&next["handoffs"][0]["handoff_id"]);
            assert_eq!(envelope(&next).await.pointer(&at), Some(&json!(1)), "{name} is dropped");
        }
    }
    let manifest = json!({ "agent_id": "coder", "capabilities": [], NOBODY_KNOWS: { "deep": 1 } });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    let agent = stage.get("/v1/agents/coder").await.done();
    assert_eq!(agent["manifest"].pointer(&format!("/{NOBODY_KNOWS}/deep")), Some(&json!(1)));
}

#[tokio::test]
async fn what_finishes_work_is_told_by_the_operation_and_not_by_the_words_of_a_path() {
    let stage = Stage::closed(Backend::Sqlite).await;
    let admin = stage.administrator().await;
    let acme = admin.enroll("acme/coder", everything()).await;
    let handoff = acme.offer("coder", json!({})).await;
    let claim = json!({ "agent": "coder" });
    let claim = acme.post(&format!("/v1/handoffs/{handoff}/claim"), claim).await.done();
    admin.post("/v1/tenants/acme", json!({ "requests_per_second": 1 })).await.done();
    acme.get("/v1/handoffs").await.done();
    // Each of these paths ends in a word that also finishes work.
    for path in ["/v1/channels/complete", "/v1/channels/fail", "/v1/agents/release"] {
        acme.get(path).await.refused(429, "quota_exceeded");
    }
    let begun = json!({ "from_agent": "coder", "intent": "i", "payload": { "type": "t" } });
    acme.post("/v1/pipelines/p/start", begun).await.refused(429, "quota_exceeded");
    let held = json!({ "claim_id": claim["claim_id"], "fence": claim["fence"] });
    acme.post(&format!("/v1/handoffs/{handoff}/heartbeat"), held.clone()).await.done();
    let done = merged(held, json!({ "payload": { "type": "d" } }));
    acme.post(&format!("/v1/handoffs/{handoff}/complete"), done).await.done();
}

/// The coarse half of a right is asked by the table itself.
#[tokio::test]
async fn who_has_no_right_at_all_is_refused_by_every_operation_that_needs_one() {
    let stage = Stage::closed(Backend::Sqlite).await;
    let admin = stage.administrator().await;
    let nobody = admin.enroll("nobody", json!([])).await;
    let open = Stage::volatile().await;
    let samples = samples(&open).await;
    for (method, template, id) in contract::table() {
        let entry = operations::named(&id).unwrap();
        if !matches!(entry.facts.right, Right::Has(_) | Right::Operator) {
            continue;
        }
        let path = samples.path(&template);
        let reply = match method.as_str() {
            "get" => nobody.get(&path).await,
            _ => nobody.ask(&method, &path, samples.body_of(&method, &template)).await,
        };
        let status = reply.status;
        assert_eq!((status, &reply.body["code"]), (403, &json!("not_permitted")), "{id}");
    }
}
