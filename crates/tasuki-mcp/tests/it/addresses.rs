// SPDX-License-Identifier: Apache-2.0
//! One address belongs to one door.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::support::{Stage, post};

#[tokio::test]
async fn no_door_answers_at_the_address_of_another() {
    let stage = Stage::open().await;
    // The API and its pages.
    for path in ["/v1/handoffs", "/v1/agents", "/docs", "/healthz", "/.well-known/agents.json"] {
        assert_eq!(stage.get(path).await.status, 200, "{path}");
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    // A message of MCP is understood at its own address only.
    for path in [
        "/",
        "/v1",
        "/v1/handoffs",
        "/v1/mcp",
        "/mcp/mcp",
        "/mcp/v1/handoffs",
        "/mcp/tools/list",
        "/docs",
        "/a2a",
        "/agents/coder",
        "/tenants/acme/agents/coder",
        "/ui/",
        "/ui/mcp",
        "/.well-known/agent-card.json",
        "/.well-known/oauth-protected-resource",
    ] {
        let reply = stage.send(post(path, &message)).await;
        assert!((400..500).contains(&reply.status), "{path}: {}", reply.status);
        assert!(reply.body["result"].is_null(), "{path}: {}", reply.body);
    }
    // And what others ask is not understood there.
    let offer = json!({ "from_agent": "a", "to": { "agent": "b" }, "payload": { "type": "x" } });
    for (path, body) in [
        ("/mcp", offer.clone()),
        ("/mcp/", offer),
        ("/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {} })),
    ] {
        let reply = stage.send(post(path, &body)).await;
        let answer = reply.answer();
        assert!(answer["result"].is_null(), "{path}: {answer}");
    }
    for path in ["/mcp/tasks", "/mcp/.well-known/agent-card.json", "/mcp/openapi.json"] {
        let request = Request::get(path).body(Body::empty()).unwrap();
        assert_eq!(stage.send(request).await.status, 404, "{path}");
    }
}
