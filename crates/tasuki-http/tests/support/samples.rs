// SPDX-License-Identifier: Apache-2.0
//! One of each thing that a path can name, and for every route a request about it that is taken.

use serde_json::{Value, json};
use tasuki_core::identity::SecretKey;

use super::{Held, Stage, failure, may, merged, new_key, offer, possession, segment, text};

#[derive(Clone)]
pub(crate) struct Samples {
    /// By which names requests are made: who offers, who works, who decides.
    pub(crate) sender: String,
    pub(crate) worker: String,
    pub(crate) judge: String,
    pub(crate) held: Held,
    pub(crate) dead: String,
    pub(crate) task: String,
    pub(crate) agent: String,
    pub(crate) key: String,
    pub(crate) token: String,
    pub(crate) join: String,
    pub(crate) tenant: String,
    pub(crate) memory: String,
}

/// Makes one of each on an open stage.
pub(crate) async fn samples(stage: &Stage) -> Samples {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let dead = stage.dead_letter().await;
    let task = text(&stage.show(&dead).await["task_id"]);
    let key = new_key().public();
    stage.post("/v1/agents/coder/keys", json!({ "key": key })).await.done();
    let token = async |purpose: &str| {
        let body = json!({ "purpose": purpose, "agent_id": "coder", "rules": may(&["read"]) });
        stage.post("/v1/tokens", body).await.done()
    };
    let memory = json!({ "by": "person", "scope": { "project": "web" }, "text": "words" });
    let memory = stage.post("/v1/memories", memory).await.done();
    Samples {
        sender: "planner".into(),
        worker: "coder".into(),
        judge: "person".into(),
        held,
        dead,
        task,
        agent: "coder".into(),
        key: key.id().to_string(),
        token: text(&token("bearer").await["token_id"]),
        join: text(&token("join").await["text"]),
        // Not the one that the requests come from: its quotas would end the test.
        tenant: "acme".into(),
        memory: text(&memory["memory_id"]),
    }
}

impl Samples {
    pub(crate) fn path(&self, template: &str) -> String {
        let id = match template.split('/').nth(2) {
            Some("tasks") => self.task.clone(),
            Some("dead-letters") => self.dead.clone(),
            Some("agents") => segment(&self.agent),
            Some("tokens") => self.token.clone(),
            Some("tenants") => self.tenant.clone(),
            Some("chains") => "chain:0".into(),
            Some("memories") => segment(&self.memory),
            _ => self.held.handoff.clone(),
        };
        let path = template.replace("{id}", &id).replace("{key}", &self.key);
        path.replace("{project}", "web").replace("{name}", "news")
    }

    pub(crate) fn body(&self, template: &str) -> Value {
        let (worker, judge) = (&self.worker, &self.judge);
        let hop = json!({ "to": { "agent": "tester" }, "payload": { "type": "t" }, "priority": 3 });
        let completion = json!({ "payload": { "type": "d" }, "follow_ups": [hop] });
        let more = json!({
            "from_agent": self.sender,
            "terms": { "lease_ms": 500 }, "deadline": "2030-01-01T00:00:00Z",
        });
        let name = template.rsplit('/').next().unwrap();
        match (template, name) {
            ("/v1/tasks", _) => json!({ "from_agent": self.sender, "intent": "i" }),
            ("/v1/session", _) => json!({}),
            ("/v1/handoffs", _) => offer("coder", more),
            ("/v1/handoffs/batch", _) => json!({ "offers": [offer("coder", more)] }),
            ("/v1/completions", _) => {
                let part = merged(completion, json!({ "handoff_id": self.held.handoff }));
                json!({ "completions": [self.held.with(part)] })
            }
            ("/v1/wait", _) => json!({
                "handoffs": [self.held.handoff], "tasks": [self.task], "timeout_ms": 0,
            }),
            (_, "claims" | "claim" | "peek") => {
                json!({ "agent": worker, "capabilities": ["review"] })
            }
            ("/v1/chains", _) => json!({ "by": self.judge, "file": "{}" }),
            (_, "branch") => json!({ "by": self.sender, "hop": 0 }),
            (_, "progress") => self.held.with(json!({ "percent": 5, "note": "n" })),
            ("/v1/tasks/{id}/complete", _) => {
                json!({ "by": self.sender, "payload": { "type": "t" } })
            }
            (_, "complete") => self.held.with(completion),
            (_, "fail") => self.held.with(failure("retryable")),
            (_, "counter") => json!({
                "agent": worker, "capabilities": ["review"], "terms": { "work_ms": 90_000 },
                "budget_tokens": 1000, "reason": "because",
            }),
            (_, "settle") => json!({ "by": self.sender, "agent": worker, "accept": true }),
            (_, "decline") => self.held.with(json!({ "agent": worker })),
            ("/v1/pipelines/{name}/start", _) => json!({
                "from_agent": self.sender, "intent": "i", "payload": { "type": "t" },
            }),
            (_, "start" | "heartbeat" | "release") => self.held.with(json!({})),
            (_, "approve" | "redrive") => json!({ "by": judge }),
            ("/v1/alerts/silence", _) => {
                json!({ "rule": "HandoffFailed", "for_ms": 60_000, "reason": "a known fault" })
            }
            ("/v1/targets/pause" | "/v1/targets/resume", _) => {
                json!({ "target": { "agent": "nobody" } })
            }
            (_, "breaker") => json!({ "limits": { "failures": 3, "open_ms": 60_000 } }),
            (_, "discard" | "reject") => json!({ "by": judge, "reason": "because" }),
            (_, "lift") => json!({
                "by": self.sender, "constraint": format!("sha256:{}", "0".repeat(64)),
                "reason": "because",
            }),
            (_, "cancel" | "abort") => json!({ "by": self.sender, "reason": "because" }),
            ("/v1/assemble", _) => json!({
                "from_agent": self.sender, "intent": "do it", "ask": "now", "constraints": ["Never."],
                "max_tokens": 2000, "tokenizer": "o200k_base",
            }),
            _ => self.pattern_body(template, name),
        }
    }

    fn pattern_body(&self, template: &str, name: &str) -> Value {
        let (sender, judge) = (&self.sender, &self.judge);
        let begun = json!({ "from_agent": sender, "intent": "i", "payload": { "type": "t" } });
        match (template, name) {
            ("/v1/handoffs/send", _) => {
                offer("coder", json!({ "from_agent": sender, "timeout_ms": 0 }))
            }
            ("/v1/tasks/{id}/join", _) => json!({ "need": "any" }),
            ("/v1/dead-letters/decide", _) => {
                json!({ "by": judge, "decision": "retry", "handoffs": [self.dead] })
            }
            (_, "publish") => merged(begun, json!({ "receivers": ["coder"] })),
            (_, "subscribe" | "unsubscribe") => json!({ "agent": self.worker }),
            (_, "reroute") => json!({ "by": judge, "to": { "agent": "tester" } }),
            (_, "amend") => json!({ "by": judge, "payload": { "type": "t" } }),
            ("/v1/handoffs/{id}/answer", _) => json!({ "by": judge, "answer": "main" }),
            (_, "answer") => json!({ "by": judge, "decision": { "decision": "d" } }),
            (_, "take") => json!({ "by": judge, "for_ms": 1000 }),
            (_, "retract") => json!({ "by": judge, "reason": "because" }),
            (_, "clear-taint") => {
                json!({ "by": sender, "source": self.held.handoff, "reason": "because" })
            }
            (_, "ask") => self.held.with(json!({ "text": "Which branch?" })),
            (_, "messages") => json!({ "by": self.sender, "text": "stop after this file" }),
            (_, "artifacts") => {
                let piece = json!({ "name": "draft", "type": "text/plain", "content": "one" });
                self.held.with(piece)
            }
            (_, "put-back") => self.held.with(json!({ "for_ms": 1000 })),
            (_, "reserve" | "unreserve") => self.held.with(json!({ "resources": ["src/**"] })),
            _ => self.memory_body(template, name),
        }
    }

    /// The body of a request that is not a POST.
    pub(crate) fn body_of(&self, method: &str, template: &str) -> Value {
        match method {
            "put" => json!({ "by": self.judge, "state": { "branch": "main" } }),
            "patch" => json!({ "by": self.judge, "text": "other words", "tags": ["style"] }),
            "delete" if template == "/v1/session" => json!({}),
            "delete" => json!({ "by": self.judge, "reason": "because" }),
            _ => self.body(template),
        }
    }

    fn memory_body(&self, template: &str, name: &str) -> Value {
        let judge = &self.judge;
        match (template, name) {
            ("/v1/memories", _) => json!({
                "by": judge, "scope": { "project": "web" }, "title": "t", "text": "words",
                "tags": ["style"], "priority": "high",
            }),
            (_, "pin" | "unpin") => json!({ "by": judge }),
            (_, "supersede") => json!({ "by": judge, "successor": self.memory }),
            (_, "erase") => json!({ "by": judge, "reason": "because" }),
            (_, "decisions") => json!({ "by": judge, "key": "k", "decision": "d", "why": "w" }),
            _ => self.registry_body(template, name),
        }
    }

    fn registry_body(&self, template: &str, name: &str) -> Value {
        let key = new_key();
        let proof = |key: &SecretKey| possession(key, &self.agent);
        match (template, name) {
            ("/v1/agents", _) => json!({
                "manifest": { "agent_id": self.agent, "capabilities": [{ "name": "review" }] },
            }),
            ("/v1/discover", _) => json!({
                "capability": "review", "tags": ["careful"], "role": "reviewer", "version": "1",
                "input": { "type": "object" }, "output": { "type": "object" },
                "live": false, "reliability": 50, "limit": 10,
            }),
            ("/v1/join", _) => json!({
                "token": self.join, "agent_id": self.agent,
                "key": key.public(), "proof": proof(&key),
            }),
            ("/v1/tokens", _) => json!({
                "purpose": "bearer", "agent_id": self.agent,
                "rules": may(&["send"]), "expires_in_ms": 60_000,
            }),
            ("/v1/tenants/{id}", _) => json!({ "requests_per_second": 1000, "in_flight": 1000 }),
            ("/v1/alerts/silence", _) => json!({
                "rule": "HandoffFailed", "target": "agent:coder", "for_ms": 60_000, "reason": "known",
            }),
            ("/v1/alerts/test", _) => json!({}),
            (_, "drain" | "resume" | "deregister" | "revoke") => json!({}),
            (_, "rules") => json!({ "rules": may(&["send"]) }),
            (_, "keys") => json!({ "key": key.public(), "rules": may(&["send"]) }),
            (_, "rotate") => json!({
                "old": self.key, "key": key.public(), "proof": proof(&key), "grace_ms": 1000,
            }),
            _ => panic!("no body is known for {template}"),
        }
    }
}
