// SPDX-License-Identifier: Apache-2.0
//! What is served about the API: the OpenAPI document and the pages made from it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tasuki_core::Body;
use tasuki_core::identity::statement;
use tasuki_protocol::Code;

use crate::contract;
use crate::support::{Draft, SECOND, Stage, failure, merged, new_key, offer, possession, text};

#[test]
fn the_committed_document_is_the_one_that_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../api/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let is_current = committed == tasuki_http::document_text();
    assert!(is_current, "api/openapi.json is out of date: run `cargo xtask codegen`");
    let parsed: Value = serde_json::from_str(&committed).unwrap();
    assert_eq!(parsed, tasuki_http::document());
}

#[test]
fn the_document_holds_together() {
    let document = tasuki_http::document();
    assert_eq!(document["openapi"], "3.1.0");
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(references.len() > 50);
    for reference in &references {
        let pointer = reference.strip_prefix('#').expect("a reference stays in the document");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::meta::is_valid(schema), "{name} is no schema");
        assert!(!name.ends_with(|c: char| c.is_ascii_digit()), "two types are called {name}");
        let reference = format!("#/components/schemas/{name}");
        assert!(references.contains(&reference), "nothing refers to {name}");
    }
    let mut ids = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = text(&operation["operationId"]);
            assert!(ids.insert(id.clone()), "{id} is there twice");
            assert!(!text(&operation["summary"]).is_empty(), "{id}");
            assert_eq!(operation.get("requestBody").is_some(), method != "get", "{id}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.starts_with('2')), "{id}");
            assert!(responses.values().all(|response| response["description"].is_string()), "{id}");
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let names: Vec<_> = parameters.iter().map(|p| text(&p["name"])).collect();
            for part in path.split('/').filter_map(|part| part.strip_prefix('{')) {
                let part = part.trim_end_matches('}').to_owned();
                assert!(names.contains(&part), "{id} does not describe {part}");
            }
            assert!(parameters.iter().all(|p| p["schema"].is_object()), "{id}");
        }
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| collect_references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

/// Remembers which operations were used.
struct Walk {
    stage: Stage,
    used: BTreeSet<String>,
}

impl Walk {
    async fn get(&mut self, path: &str) -> Value {
        self.used.insert(contract::operation_id("get", path.split('?').next().unwrap()));
        self.stage.get(path).await.done()
    }

    async fn post(&mut self, path: &str, body: Value) -> Value {
        self.used.insert(contract::operation_id("post", path));
        self.stage.post(path, body).await.done()
    }

    async fn ask(&mut self, method: &str, path: &str, body: Value) -> Value {
        self.used.insert(contract::operation_id(method, path));
        let reply = self.stage.ask(method, path, body.clone()).await;
        contract::check_request_by(method, path, &body);
        reply.done()
    }
}

/// The stage holds every reply against the document; here every operation comes by.
#[tokio::test]
async fn every_operation_takes_and_gives_what_the_document_says() {
    let mut walk = Walk { stage: Stage::volatile().await, used: BTreeSet::new() };
    let full = json!({
        "correlation_id": "c", "idempotency_key": "k", "control": "passed", "action": "request",
        "metadata": { "trace": 1 }, "priority": 7, "deadline": "2030-01-01T00:00:00Z",
        "terms": { "lease_ms": 1000, "work_ms": 5000, "attempts": 1, "losses": 1, "backoff_ms": 0 },
        "expires_in_ms": 100_000, "start_in_ms": 0, "ordering_key": "o",
    });
    let id = text(&walk.post("/v1/handoffs", offer("coder", full)).await["handoff_id"]);
    let path = format!("/v1/handoffs/{id}");
    walk.post("/v1/claims/peek", json!({ "agent": "coder", "capabilities": ["x"] })).await;
    let claim = json!({ "agent": "coder", "lease_ms": 2000, "request_id": "r" });
    let claimed = walk.post(&format!("{path}/claim"), claim).await;
    let held = crate::support::Held::of(&claimed);
    walk.post(&format!("{path}/start"), held.with(json!({}))).await;
    walk.post(&format!("{path}/heartbeat"), held.with(json!({}))).await;
    let progress = held.with(json!({ "percent": 1, "note": "n" }));
    walk.post(&format!("{path}/progress"), progress).await;
    let fail = merged(
        failure("permanent"),
        json!({
            "attempted": "a", "attempts": 2, "causes": ["c"], "hint": "h", "details": { "x": [] },
        }),
    );
    walk.post(&format!("{path}/fail"), held.with(fail)).await;
    walk.get(&path).await;
    walk.get(&format!("{path}/envelope")).await;
    walk.get(&format!("{path}/prompt?tokenizer=cl100k_base")).await;
    let assemble = json!({
        "from_agent": "planner", "to_agent": "coder", "intent": "i", "include_recent": 5,
        "include_pins": false, "strategy": "lazy", "max_tokens": 5000, "role": "coder",
    });
    walk.post("/v1/assemble", assemble).await;
    let countered = walk.stage.offer("*x", json!({})).await;
    let counter = json!({
        "agent": "coder", "capabilities": ["x"], "terms": { "work_ms": 90_000 },
        "budget_tokens": 1000, "reason": "more time",
    });
    walk.post(&format!("/v1/handoffs/{countered}/counter"), counter).await;
    let settle = json!({ "by": "planner", "agent": "coder", "accept": false });
    walk.post(&format!("/v1/handoffs/{countered}/settle"), settle).await;
    walk.get("/v1/handoffs?limit=1").await;
    walk.get("/v1/dead-letters").await;
    walk.get(&format!("/v1/dead-letters/{id}")).await;
    let by = || json!({ "by": "person" });
    let redriven = walk.post(&format!("/v1/dead-letters/{id}/redrive"), by()).await;
    let path = format!("/v1/handoffs/{}", text(&redriven["handoff_id"]));
    let decline = json!({ "agent": "coder", "reason": "no" });
    walk.post(&format!("{path}/decline"), decline).await;
    let discard = json!({ "by": "person", "reason": "enough" });
    let dead = text(&redriven["handoff_id"]);
    walk.post(&format!("/v1/dead-letters/{dead}/discard"), discard).await;
    walk.get(&format!("/v1/dead-letters/{dead}")).await;

    let batch = json!({ "offers": [offer("coder", json!({})), offer("coder", json!({}))] });
    walk.post("/v1/handoffs/batch", batch).await;
    let claims = walk.post("/v1/claims", json!({ "agent": "coder", "max": 2 })).await;
    let one = crate::support::Held::of(&claims["claims"][0]);
    let two = crate::support::Held::of(&claims["claims"][1]);
    walk.post(&format!("/v1/handoffs/{}/release", one.handoff), one.with(json!({}))).await;
    let hop = json!({ "to": { "capability": "x" }, "payload": { "type": "next" } });
    let result = two.with(json!({ "payload": { "type": "done" }, "follow_ups": [hop] }));
    walk.post(&format!("/v1/handoffs/{}/complete", two.handoff), result).await;
    let again = two.with(json!({ "handoff_id": two.handoff, "payload": { "type": "done" } }));
    let stale = one.with(json!({ "handoff_id": one.handoff, "payload": { "type": "done" } }));
    walk.post("/v1/completions", json!({ "completions": [again, stale] })).await;

    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(walk.stage.offer("coder", json!({ "needs_approval": true })).await);
    }
    for (id, act, by) in [
        (&waiting[0], "approve", "person"),
        (&waiting[1], "reject", "person"),
        (&waiting[2], "cancel", "planner"),
        (&waiting[3], "abort", "planner"),
    ] {
        let mut body = json!({ "by": by });
        if act == "reject" {
            body["reason"] = "not now".into();
        }
        walk.post(&format!("/v1/handoffs/{id}/{act}"), body).await;
    }
    let open = json!({ "from_agent": "planner", "intent": "i", "idempotency_key": "t" });
    let task = text(&walk.post("/v1/tasks", open.clone()).await["task_id"]);
    let below = merged(open, json!({ "idempotency_key": "u", "parent_task_id": task }));
    walk.post("/v1/tasks", below).await;
    walk.get("/v1/tasks").await;
    walk.get(&format!("/v1/tasks/{task}")).await;
    let kept = json!({ "from_agent": "planner", "intent": "i" });
    let kept = text(&walk.post("/v1/tasks", kept).await["task_id"]);
    let result = json!({ "by": "planner", "payload": { "type": "t" } });
    walk.post(&format!("/v1/tasks/{kept}/complete"), result).await;
    walk.get("/v1/ready").await;
    let limits = json!({ "limits": { "failures": 3, "open_ms": 60_000 } });
    walk.post("/v1/agents/coder/breaker", limits).await;
    let target = json!({ "target": { "capability": "rest" }, "for_ms": 60_000 });
    walk.post("/v1/targets/pause", target).await;
    walk.post("/v1/targets/resume", json!({ "target": { "capability": "rest" } })).await;
    let cancel = json!({ "by": "planner", "reason": "over" });
    walk.post(&format!("/v1/tasks/{task}/cancel"), cancel).await;
    walk.get(&format!("/v1/tasks/{task}/events")).await;
    chains(&mut walk, &two.handoff).await;
    let wish = json!({
        "handoffs": [waiting[1]], "tasks": [task], "mode": "all", "until": "settled",
        "timeout_ms": SECOND,
    });
    walk.post("/v1/wait", wish).await;
    let silence = json!({ "rule": "HandoffFailed", "for_ms": 60_000, "reason": "known" });
    walk.post("/v1/alerts/silence", silence).await;
    walk.post("/v1/alerts/test", json!({})).await;
    for path in [
        "/v1/audit/verify",
        "/v1/audit/export",
        "/v1/stats",
        "/v1/overview",
        "/v1/alerts",
        "/v1/alerts/rules",
        "/healthz",
        "/readyz",
    ] {
        walk.get(path).await;
    }
    beyond_one_hop(&mut walk).await;
    what_is_said(&mut walk).await;
    who_is_known(&mut walk).await;
    what_is_remembered(&mut walk, &waiting[3]).await;
    walk.get("/v1/session").await;
    // Their own files follow them: streams have no end that could be compared, what is measured is no
    // JSON, and nobody signs in at an open broker.
    for own in ["event_stream", "change_stream", "metrics_show", "session_open", "session_close"] {
        walk.used.insert(own.into());
    }
    assert_eq!(walk.used, contract::operations());
}

/// The operations about patterns, and about what failed.
/// What is said while work goes on.
async fn what_is_said(walk: &mut Walk) {
    let id = walk.stage.offer("coder", json!({})).await;
    let held = walk.stage.claimed(&id, "coder").await;
    let at = |act: &str| format!("/v1/handoffs/{id}/{act}");
    walk.post(&at("messages"), json!({ "by": "planner", "text": "Mind the tests." })).await;
    walk.get(&at("messages")).await;
    let piece = json!({ "name": "draft", "type": "text/plain", "content": "one" });
    walk.post(&at("artifacts"), held.with(piece)).await;
    walk.get(&at("artifacts")).await;
    walk.post(&at("ask"), held.with(json!({ "text": "Which branch?" }))).await;
    walk.get("/v1/questions").await;
    walk.post(&at("answer"), json!({ "by": "planner", "answer": "main" })).await;
    let held = walk.stage.claimed(&id, "coder").await;
    walk.post(&at("put-back"), held.with(json!({ "for_ms": 60 * SECOND }))).await;
}

async fn beyond_one_hop(walk: &mut Walk) {
    let pipelines = r#"{"pipelines": [{"name": "p", "version": 1, "first": "one", "stages": [
        {"name": "one", "to": {"agent": "first"}, "fallbacks": [{"agent": "second"}],
         "ask": "a", "budget_tokens": 100, "timeout_ms": 1000, "ack_ms": 1000, "attempts": 1,
         "next": [{"when": {"action": ["failed"], "payload": [{"path": "/a", "exists": true}]},
                   "to": "end"},
                  {"to": "end"}]}]}]}"#;
    let pipelines = tasuki_core::pipeline::Pipelines::read(pipelines).unwrap();
    walk.stage.engine.declare_pipelines(pipelines).await.unwrap();
    walk.get("/v1/pipelines").await;
    let begun = json!({ "from_agent": "planner", "intent": "i", "payload": { "type": "t" } });
    walk.post("/v1/pipelines/p/start", begun.clone()).await;
    let send = json!({ "timeout_ms": 0, "until": "settled", "fallbacks": [{ "agent": "other" }] });
    walk.post("/v1/handoffs/send", offer("first", send)).await;
    walk.post("/v1/channels/news/subscribe", json!({ "agent": "ann" })).await;
    walk.post("/v1/channels/news/subscribe", json!({ "agent": "ben" })).await;
    walk.post("/v1/channels/news/unsubscribe", json!({ "agent": "ben" })).await;
    walk.get("/v1/channels/news").await;
    let told = walk.post("/v1/channels/news/publish", begun).await;
    walk.get("/v1/channels/news/messages?after=0&limit=10").await;
    let join = json!({ "need": { "quorum": 1 }, "wait_ms": 0, "limit": 10 });
    walk.post(&format!("/v1/tasks/{}/join", text(&told["task_id"])), join).await;

    let held = walk.stage.claimed(&text(&told["handoffs"][0]["handoff_id"]), "ann").await;
    let path = format!("/v1/handoffs/{}", held.handoff);
    let resources = held.with(json!({ "resources": ["src/**"] }));
    walk.post(&format!("{path}/reserve"), resources.clone()).await;
    walk.get("/v1/reservations").await;
    walk.post(&format!("{path}/unreserve"), resources).await;
    let hop = json!({ "to": { "agent": "next" }, "payload": { "type": "t" } });
    let done = json!({ "payload": { "type": "t" }, "follow_ups": [hop] });
    walk.stage.act(&held, "complete", done).await.done();
    let retract = json!({ "by": "planner", "reason": "r", "policy": "block" });
    let retracted = walk.post(&format!("{path}/retract"), retract).await;
    let clear = json!({ "by": "planner", "source": held.handoff, "reason": "r" });
    let task = text(&retracted["task_id"]);
    walk.post(&format!("/v1/tasks/{task}/clear-taint"), clear).await;

    let bound = walk.stage.offer("coder", json!({ "constraints": ["Never."] })).await;
    let envelope = walk.get(&format!("/v1/handoffs/{bound}/envelope")).await;
    let lift = json!({
        "by": "planner", "constraint": envelope["constraints"][0]["id"], "reason": "r",
    });
    walk.post(&format!("/v1/tasks/{}/lift", text(&envelope["task_id"])), lift).await;

    let letters = [
        walk.stage.dead_letter().await,
        walk.stage.dead_letter().await,
        walk.stage.dead_letter().await,
        walk.stage.dead_letter().await,
    ];
    walk.get("/v1/dead-letters/groups").await;
    let take = json!({ "by": "person", "for_ms": 1000 });
    walk.post(&format!("/v1/dead-letters/{}/take", letters[0]), take).await;
    let reroute = json!({ "by": "person", "to": { "agent": "other" } });
    walk.post(&format!("/v1/dead-letters/{}/reroute", letters[0]), reroute).await;
    let amend = json!({ "by": "person", "payload": { "type": "t" }, "ask": "a", "terms": {} });
    walk.post(&format!("/v1/dead-letters/{}/amend", letters[1]), amend).await;
    let answer = json!({ "by": "person", "decision": { "key": "k", "decision": "d" } });
    walk.post(&format!("/v1/dead-letters/{}/answer", letters[2]), answer).await;
    let many = json!({ "by": "person", "decision": { "abort": "r" }, "handoffs": [letters[3]] });
    walk.post("/v1/dead-letters/decide", many).await;
    walk.get("/v1/health/targets").await;
}

/// The operations about whole chains.
async fn chains(walk: &mut Walk, handoff: &str) {
    let task = text(&walk.stage.show(handoff).await["task_id"]);
    let path = format!("/v1/tasks/{task}");
    walk.get(&format!("{path}/export")).await;
    let branch = json!({
        "by": "planner", "hop": 0, "to": { "agent": "tester" }, "idempotency_key": "b",
    });
    walk.post(&format!("{path}/branch"), branch).await;
    let file = walk.stage.get(&format!("{path}/export")).await.text().to_owned();
    let import = json!({ "by": "planner", "project": "web", "file": file });
    let chain = text(&walk.post("/v1/chains", import).await["chain_id"]);
    walk.get("/v1/chains?limit=1").await;
    walk.get(&format!("/v1/chains/{chain}")).await;
}

/// The operations about memories, shared contexts and erasing.
async fn what_is_remembered(walk: &mut Walk, ended: &str) {
    let full = json!({
        "by": "coder", "id": "ms-1", "scope": { "project": "web" }, "title": "t", "summary": "s",
        "text": "words", "tags": ["a"], "pinned": true, "priority": "high",
        "idempotency_key": "m",
    });
    walk.post("/v1/memories", full).await;
    let about = json!({ "by": "coder", "id": "ms-2", "scope": { "agent": "x" }, "text": "w" });
    walk.post("/v1/memories", about).await;
    walk.get("/v1/memories?q=words&detail=full").await;
    walk.get("/v1/memories/ms-1?revision=1&detail=stub").await;
    let edit = json!({
        "by": "coder", "revision": 1, "title": "t2", "summary": "s2", "text": "more words",
        "tags": ["b"], "scope": { "project": "web" }, "priority": "low",
    });
    walk.ask("patch", "/v1/memories/ms-1", edit).await;
    for act in ["pin", "unpin"] {
        walk.post(&format!("/v1/memories/ms-1/{act}"), json!({ "by": "coder" })).await;
    }
    let erase = json!({ "by": "coder", "revision": 1, "reason": "private" });
    walk.post("/v1/memories/ms-1/erase", erase).await;
    let supersede = json!({ "by": "coder", "successor": "ms-2" });
    walk.post("/v1/memories/ms-1/supersede", supersede).await;
    let gone = json!({ "by": "coder", "reason": "wrong" });
    walk.ask("delete", "/v1/memories/ms-2", gone.clone()).await;
    walk.get("/v1/memories/ms-2").await;
    walk.post(&format!("/v1/handoffs/{ended}/erase"), gone).await;
    let state = json!({
        "branch": "main", "summary": "s", "files": ["a.rs"], "recent_changes": ["c"],
    });
    let constraints = json!([{ "kind": "must_not", "text": "x" }]);
    let write = json!({ "by": "lead", "revision": 0, "state": state, "constraints": constraints });
    walk.ask("put", "/v1/projects/web/context", write).await;
    let decision = json!({ "by": "lead", "key": "k", "decision": "d", "why": "w" });
    walk.post("/v1/projects/web/decisions", decision).await;
    walk.get("/v1/projects/web/context").await;
}

/// The operations about agents, keys, tokens and tenants.
async fn who_is_known(walk: &mut Walk) {
    let manifest = json!({ "agent_id": "coder", "capabilities": [{ "name": "review" }] });
    let first = walk.post("/v1/agents", json!({ "manifest": manifest, "version": 0 })).await;
    assert_eq!((&first["version"], &first["manifest"]), (&json!(1), &manifest));
    let rules = json!([{
        "effect": "deny", "permissions": ["send", "read"], "targets": ["prod-?"], "projects": ["*"],
    }]);
    let (one, two, three) = (new_key(), new_key(), new_key());
    let enroll = json!({ "key": one.public(), "rules": rules });
    walk.post("/v1/agents/coder/keys", enroll).await;
    let manifest = merged(manifest, json!({ "version": "2" }));
    let hash = Body::of(&manifest).hash;
    let signature = one.sign(&statement::manifest(hash));
    let signed = json!({ "key_id": one.public().id(), "signature": signature });
    walk.post("/v1/agents", json!({ "manifest": manifest, "signed": signed })).await;
    let rotate = json!({
        "old": one.public().id(), "key": two.public(), "proof": possession(&two, "coder"),
    });
    walk.post("/v1/agents/coder/keys/rotate", rotate).await;
    let revoke = format!("/v1/agents/coder/keys/{}/revoke", one.public().id());
    walk.post(&revoke, json!({})).await;
    walk.post("/v1/agents/coder/rules", json!({ "rules": rules })).await;
    for act in ["drain", "resume"] {
        walk.post(&format!("/v1/agents/coder/{act}"), json!({})).await;
    }
    let join = json!({
        "purpose": "join", "agent_id": "coder", "rules": rules, "expires_in_ms": SECOND,
    });
    let token = walk.post("/v1/tokens", join).await;
    let join = json!({
        "token": token["text"], "agent_id": "coder",
        "key": three.public(), "proof": possession(&three, "coder"),
    });
    walk.post("/v1/join", join).await;
    walk.get("/v1/agents/coder").await;
    walk.get("/v1/agents?capability=review&limit=10").await;
    let search = json!({ "capability": "review", "tags": [], "reliability": 0 });
    assert_eq!(walk.post("/v1/discover", search).await["agents"][0]["agent_id"], "coder");
    walk.get("/.well-known/agents.json").await;
    walk.get("/v1/tokens").await;
    walk.post(&format!("/v1/tokens/{}/revoke", text(&token["token_id"])), json!({})).await;
    walk.post("/v1/agents/coder/deregister", json!({})).await;
    let quotas = json!({ "in_flight": 10, "stored_bytes": 1_000_000, "requests_per_second": 1000 });
    walk.post("/v1/tenants/acme", quotas).await;
    walk.get("/v1/tenants").await;
    let nobody = Draft::get("/v1/tokens").bearer("tsk_x");
    walk.stage.send(&nobody).await.refused(401, "token_invalid");
    assert_eq!(walk.get("/v1/security").await["count"], 1);
}

#[tokio::test]
async fn the_document_is_served_as_it_is_committed() {
    let stage = Stage::volatile().await;
    let reply = stage.get("/v1/openapi.json").await;
    assert_eq!(reply.text(), tasuki_http::document_text());
}

/// A page without a tag that is not ours.
fn is_clean(page: &str) {
    assert!(page.starts_with("<!doctype html>"));
    const TAGS: &[&str] = &[
        "html", "meta", "title", "style", "h1", "h2", "h3", "p", "a", "div", "span", "code", "pre",
        "table", "tr", "td", "ul", "li", "details", "summary", "!doctype",
    ];
    for piece in page.split('<').skip(1) {
        let name = piece.trim_start_matches('/');
        let name = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '!').next().unwrap();
        assert!(TAGS.contains(&name), "<{piece}");
    }
    for elsewhere in ["href=\"http", "src=", "url(", "@import"] {
        assert!(!page.contains(elsewhere), "nothing is fetched from elsewhere: {elsewhere}");
    }
}

#[tokio::test]
async fn the_page_of_the_api_has_every_path_type_and_code() {
    let stage = Stage::volatile().await;
    let reply = stage.get("/docs").await;
    assert_eq!(reply.headers["content-type"], "text/html; charset=utf-8");
    let page = reply.text();
    is_clean(page);
    let document = tasuki_http::document();
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("id=\"{name}\"")), "{name}");
    }
    for code in Code::ALL {
        assert!(page.contains(&format!("href=\"/docs/errors/{code}\"")), "{code}");
    }
    // Browsers are led to the dashboard, below whatever path a proxy serves it.
    let led = stage.get("/").await;
    assert_eq!(led.status, 307);
    assert_eq!(led.headers["location"], "ui/");
}

#[tokio::test]
async fn every_code_has_a_page_that_renders() {
    let stage = Stage::volatile().await;
    for code in Code::ALL {
        let reply = stage.get(&format!("/docs/errors/{code}")).await;
        assert_eq!(reply.status, 200);
        assert!(reply.text().contains(&format!("<h1>{code}</h1>")));
        is_clean(reply.text());
    }
}
