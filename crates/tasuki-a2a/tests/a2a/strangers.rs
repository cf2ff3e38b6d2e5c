// SPDX-License-Identifier: Apache-2.0
//! What is not yours and what is not there are answered alike.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::stage::{Backend, Reply, Stage, in_time, message, rpc};

struct Person<'s>(&'s Stage, String);

impl Person<'_> {
    async fn post(&self, path: &str, body: &Value) -> Reply {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.1));
        self.0.call(request.body(Body::from(body.to_string())).unwrap()).await
    }

    async fn get(&self, path: &str) -> Reply {
        let request = Request::get(path);
        let request = request.header(header::AUTHORIZATION, format!("Bearer {}", self.1));
        self.0.call(request.body(Body::empty()).unwrap()).await
    }

    async fn token(&self, agent: &str, permissions: Value) -> String {
        let rules = json!([{ "effect": "allow", "permissions": permissions, "targets": ["*"] }]);
        let asked = json!({ "purpose": "bearer", "agent_id": agent, "rules": rules });
        let issued = self.post("/v1/tokens", &asked).await.done();
        issued["text"].as_str().unwrap().to_owned()
    }
}

/// What is said without what differs by the id that was asked for.
fn told(reply: &Reply, id: &str) -> (u16, String) {
    (reply.status, reply.body.to_string().replace(id, "ID"))
}

#[tokio::test]
async fn a_task_of_somebody_else_and_none_at_all_are_answered_alike() {
    let stage = Stage::closed(Backend::Sqlite).await;
    let token = stage.engine.first_administrator().await.unwrap().unwrap();
    let admin = Person(&stage, token);
    let all = json!(["send", "claim", "complete"]);
    for agent in ["coder", "alice", "mallory"] {
        let manifest = json!({ "manifest": { "agent_id": agent } });
        let published = admin.post("/v1/agents", &manifest).await;
        assert!(matches!(published.status, 200 | 201), "{}", published.body);
        let rules = json!([{ "effect": "allow", "permissions": all, "targets": ["*"] }]);
        let set = json!({ "rules": rules });
        admin.post(&format!("/v1/agents/{agent}/rules"), &set).await.done();
    }
    let alice = Person(&stage, admin.token("alice", all.clone()).await);
    let mallory = Person(&stage, admin.token("mallory", all).await);
    let params = json!({
        "message": message("Mine."), "configuration": { "returnImmediately": true },
    });
    let sent = alice.post("/agents/coder", &rpc("SendMessage", params.clone())).await.done();
    let id = sent["result"]["task"]["id"].as_str().unwrap().to_owned();
    let mut none = id.clone();
    let last = if none.ends_with('0') { "1" } else { "0" };
    none.replace_range(none.len() - 1.., last);
    for (method, more) in
        [("GetTask", json!({})), ("CancelTask", json!({})), ("SubscribeToTask", json!({}))]
    {
        let asked = |id: &str| {
            let mut params = more.clone();
            params["id"] = json!(id);
            rpc(method, params)
        };
        let theirs = in_time(mallory.post("/agents/coder", &asked(&id))).await;
        assert_eq!(theirs.body["error"]["code"], -32001, "{method}");
        let nothing = mallory.post("/agents/coder", &asked(&none)).await;
        assert_eq!(told(&theirs, &id), told(&nothing, &none), "{method}");
    }
    let mut said = message("Into it.");
    said["taskId"] = json!(id);
    let refused =
        mallory.post("/agents/coder", &rpc("SendMessage", json!({ "message": said }))).await;
    assert_eq!(refused.body["error"]["code"], -32001);
    let listed = mallory.post("/agents/coder", &rpc("ListTasks", json!({}))).await.done();
    assert_eq!(listed["result"]["totalSize"], 0);
    let own = alice.post("/agents/coder", &rpc("ListTasks", json!({}))).await.done();
    assert_eq!(own["result"]["totalSize"], 1);
    // Where it was not sent, it is not.
    let elsewhere = alice.post("/agents/mallory", &rpc("GetTask", json!({ "id": id }))).await;
    assert_eq!(elsewhere.body["error"]["code"], -32001);
    // An agent of another tenant and none at all.
    let there = alice.get("/tenants/acme/agents/coder/.well-known/agent-card.json").await;
    let nobody = alice.get("/agents/nobody/.well-known/agent-card.json").await;
    assert_eq!((there.status, there.body), (404, nobody.body));
    // Whoever does not say who it is sees the broker's card and nothing else.
    assert_eq!(stage.get("/.well-known/agent-card.json").await.status, 200);
    for path in ["/agents/coder/.well-known/agent-card.json", "/.well-known/ai-catalog.json"] {
        assert_eq!(stage.get(path).await.status, 401, "{path}");
    }
    let call = rpc("SendMessage", params);
    assert_eq!(stage.post("/agents/coder", &call).await.status, 401);
}

#[tokio::test]
async fn an_agent_of_a_tenant_is_at_the_address_of_its_tenant_and_nowhere_else() {
    let stage = Stage::closed(Backend::Sqlite).await;
    let token = stage.engine.first_administrator().await.unwrap().unwrap();
    let admin = Person(&stage, token);
    admin.post("/v1/tenants/acme", &json!({})).await.done();
    let all = json!(["send", "claim", "complete", "read"]);
    for agent in ["acme/coder", "acme/alice", "coder", "bob"] {
        let manifest = json!({ "manifest": { "agent_id": agent } });
        let published = admin.post("/v1/agents", &manifest).await;
        assert!(matches!(published.status, 200 | 201), "{}", published.body);
        let rules = json!([{ "effect": "allow", "permissions": all, "targets": ["*"] }]);
        let path = format!("/v1/agents/{}/rules", agent.replace('/', "%2F"));
        admin.post(&path, &json!({ "rules": rules })).await.done();
    }
    let alice = Person(&stage, admin.token("acme/alice", all.clone()).await);
    let bob = Person(&stage, admin.token("bob", all).await);
    let params = json!({
        "message": message("Ours."), "configuration": { "returnImmediately": true },
    });
    let call = rpc("SendMessage", params);
    let (theirs, ours) = ("/tenants/acme/agents/coder", "/agents/coder");
    let sent = in_time(alice.post(theirs, &call)).await.done();
    let id = sent["result"]["task"]["id"].clone();
    assert_eq!(alice.post(ours, &call).await.status, 404, "that is the default tenant's");
    assert_eq!(bob.post(theirs, &call).await.status, 404);
    assert_eq!(
        bob.post(ours, &call).await.done()["result"]["task"]["status"]["state"],
        "TASK_STATE_SUBMITTED"
    );
    let get = rpc("GetTask", json!({ "id": id }));
    assert_eq!(alice.post(theirs, &get).await.done()["result"]["id"], id);
    assert_eq!(bob.post(ours, &get).await.body["error"]["code"], -32001);
    let card = alice.get(&format!("{theirs}/.well-known/agent-card.json")).await.done();
    assert!(card["url"].as_str().unwrap().ends_with(theirs));
    let named = alice.get("/.well-known/ai-catalog.json").await.done().to_string();
    assert!(
        named.contains(theirs) && !named.contains("\"http://localhost/agents/coder"),
        "{named}"
    );
}
