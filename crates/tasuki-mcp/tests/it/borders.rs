// SPDX-License-Identifier: Apache-2.0
//! What is refused, and that what is not one's own is not there.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;

use crate::support::{LATEST, Stage, post, work};

#[tokio::test]
async fn who_has_to_say_who_it_is_is_told_how() {
    let stage = Stage::closed().await;
    let mut nobody = stage.agent("coder");
    nobody.path = "/mcp".into();
    let reply = nobody.ask("tools/list", json!({})).await;
    assert_eq!(reply.status, 401);
    let told = reply.headers[header::WWW_AUTHENTICATE].to_str().unwrap().to_owned();
    let url = told.split('"').nth(1).unwrap_or_else(|| panic!("no address in {told}"));
    let path = url.strip_prefix("http://localhost").unwrap_or_else(|| panic!("{url}"));
    let found = stage.get(path).await;
    assert_eq!(found.status, 200, "{}", found.body);
    assert_eq!(found.body["resource"], "http://localhost/mcp");
    assert_eq!(found.body["bearer_methods_supported"], json!(["header"]));
    let forged = crate::support::Client { token: Some("tsk_nothing".into()), ..nobody };
    assert_eq!(forged.ask("tools/list", json!({})).await.status, 401);
}

#[tokio::test]
async fn where_nobody_has_to_say_so_no_client_is_sent_to_find_out() {
    let stage = Stage::open().await;
    for path in
        ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]
    {
        assert_eq!(stage.get(path).await.status, 404);
    }
}

#[tokio::test]
async fn a_page_of_another_site_and_another_host_are_refused() {
    let stage = Stage::open().await;
    for (name, value) in [
        (header::ORIGIN, "https://evil.example"),
        (header::ORIGIN, "null"),
        (header::HOST, "evil.example"),
    ] {
        let mut request = stage.agent("coder").request("tools/list", json!({}));
        request.headers_mut().insert(name.clone(), value.parse().unwrap());
        let status = stage.send(request).await.status;
        assert!(matches!(status, 403 | 421), "{name}: {value}: {status}");
    }
    let mut own = stage.agent("coder").request("tools/list", json!({}));
    own.headers_mut().insert(header::HOST, "127.0.0.1:8788".parse().unwrap());
    own.headers_mut().insert(header::ORIGIN, "http://127.0.0.1:8788".parse().unwrap());
    assert_eq!(stage.send(own).await.status, 200);
}

#[tokio::test]
async fn what_belongs_to_another_tenant_is_not_there() {
    let stage = Stage::closed().await;
    let admin = stage.administrator().await;
    let planner = stage.known(&admin, "acme/planner").await;
    let coder = stage.known(&admin, "acme/coder").await;
    let stranger = stage.known(&admin, "evil/coder").await;
    let sent = planner.call("send", work()).await;
    let id = &sent["handoff_id"];
    let held = coder.call("claim", json!({})).await;
    assert_eq!(held["handoff_id"], *id);
    assert_eq!(stranger.call("claim", json!({})).await["claimed"], false);
    let about = json!({ "handoff_id": id });
    let nothing = json!({ "handoff_id": "handoff_01ARZ3NDEKTSV4RRFFQ69G5FAV" });
    for tool in ["status", "cancel", "explain"] {
        let not_yours = stranger.fails(tool, about.clone()).await;
        assert_eq!(not_yours, "handoff_not_found", "{tool}");
    }
    assert!(!stranger.fails("status", nothing).await.is_empty());
    // The handle of another is as good as none.
    for (tool, more) in [
        ("progress", json!({})),
        ("complete", json!({ "payload": { "type": "stolen" } })),
        ("release", json!({})),
        ("ask", json!({ "text": "who are you?" })),
    ] {
        let mut asked = more;
        asked["claim"] = held["claim"].clone();
        assert_eq!(stranger.fails(tool, asked).await, "handoff_not_found", "{tool}");
    }
    for place in ["prompt", "envelope"] {
        let uri = format!("tasuki://handoffs/{}/{place}", id.as_str().unwrap());
        let read = stranger.ask("resources/read", json!({ "uri": uri })).await.answer();
        assert!(read["error"].is_object(), "{read}");
        let own = coder.ask("resources/read", json!({ "uri": uri })).await.done();
        assert!(own["contents"][0]["text"].as_str().unwrap().contains("users"));
    }
    coder.call("complete", json!({ "claim": held["claim"], "payload": { "type": "done" } })).await;
}

#[tokio::test]
async fn nobody_speaks_for_another_agent() {
    let stage = Stage::closed().await;
    let admin = stage.administrator().await;
    let mut coder = stage.known(&admin, "coder").await;
    coder.path = "/mcp?agent=planner".into();
    assert_eq!(coder.fails("send", work()).await, "not_permitted");
    assert_eq!(coder.fails("claim", json!({})).await, "not_permitted");
}

#[tokio::test]
async fn an_agent_that_nobody_named_is_asked_for() {
    let stage = Stage::open().await;
    let mut nobody = stage.agent("coder");
    nobody.path = "/mcp".into();
    assert_eq!(nobody.fails("claim", json!({})).await, "invalid_request");
    // What needs no name is answered.
    nobody.call("find_agents", json!({})).await;
}

#[tokio::test]
async fn a_handle_that_is_none_and_one_that_is_over_are_told_apart() {
    let stage = Stage::open().await;
    stage.agent("planner").call("send", work()).await;
    let coder = stage.agent("coder");
    let held = coder.call("claim", json!({})).await;
    let handle = held["claim"].as_str().unwrap();
    let cut = &handle[..handle.len() - 2];
    for wrong in ["", "claim_", "nonsense", cut] {
        let asked = json!({ "claim": wrong, "payload": { "type": "done" } });
        assert_eq!(coder.fails("complete", asked).await, "invalid_request", "{wrong:?}");
    }
    assert_eq!(coder.fails("progress", json!({})).await, "invalid_request");
    coder.call("release", json!({ "claim": handle })).await;
    coder.call("claim", json!({})).await;
    let late = json!({ "claim": handle, "payload": { "type": "done" } });
    assert_eq!(coder.fails("complete", late).await, "stale_claim");
}

#[tokio::test]
async fn arguments_that_no_tool_knows_are_refused_at_every_depth() {
    let stage = Stage::open().await;
    let planner = stage.agent("planner");
    let mut asked = work();
    asked["urgent"] = json!(true);
    assert_eq!(planner.fails("send", asked).await, "invalid_request");
    let mut asked = work();
    asked["terms"] = json!({ "lease": 5 });
    assert_eq!(planner.fails("send", asked).await, "invalid_request");
    // Who speaks is known; it is not for the model to say.
    let mut asked = work();
    asked["from_agent"] = json!("somebody");
    assert_eq!(planner.fails("send", asked).await, "invalid_request");
    for (tool, asked) in [
        ("claim", json!({ "agent": "other" })),
        ("status", json!({ "handoff_id": 7 })),
        ("status", json!({ "handoff_id": "x", "wait_ms": "long" })),
        ("progress", json!({ "claim": 7 })),
        ("explain", json!({})),
        ("answer", json!({ "handoff_id": "handoff_x" })),
    ] {
        let code = stage.agent("coder").fails(tool, asked.clone()).await;
        assert_eq!(code, "invalid_request", "{tool} {asked}");
    }
    let none = planner.ask("tools/call", json!({ "name": "rm", "arguments": {} })).await.answer();
    assert_eq!(none["error"]["code"], -32602, "{none}");
}

#[tokio::test]
async fn a_message_that_can_be_read_in_two_ways_is_not_read() {
    let stage = Stage::open().await;
    let text =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{}}"#;
    let request = Request::post("/mcp")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header(header::HOST, "localhost")
        .body(Body::from(text))
        .unwrap();
    let reply = stage.send(request).await;
    assert_eq!((reply.status, &reply.body["error"]["code"]), (400, &json!(-32700)));
}

#[tokio::test]
async fn what_is_too_large_or_no_json_is_refused() {
    let stage = Stage::open().await;
    let large = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(2 * 1024 * 1024) });
    assert_eq!(stage.send(post("/mcp", &large)).await.status, 413);
    let form = Request::post("/mcp")
        .header(header::CONTENT_TYPE, "text/plain")
        .body(Body::from("{}"))
        .unwrap();
    assert_eq!(stage.send(form).await.status, 415);
}

#[tokio::test]
async fn there_is_nothing_to_get_or_to_delete() {
    let stage = Stage::open().await;
    for method in ["GET", "DELETE", "PUT"] {
        let request = Request::builder().method(method).uri("/mcp").body(Body::empty()).unwrap();
        let reply = stage.send(request).await;
        assert_eq!((reply.status, reply.headers[header::ALLOW].to_str().unwrap()), (405, "POST"));
    }
    let mut slash = stage.agent("coder").at(LATEST);
    slash.path = "/mcp/?agent=coder".into();
    slash.call("find_agents", json!({})).await;
}
