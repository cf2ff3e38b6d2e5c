// SPDX-License-Identifier: Apache-2.0
//! How calls look on the wire: both bindings, versions, and what is malformed.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::stage::{Backend, Stage, in_time, message, posting, rpc};

async fn stage() -> Stage {
    let stage = Stage::open(Backend::Sqlite).await;
    stage.registered("coder").await;
    stage
}

#[tokio::test]
async fn the_rest_binding_does_what_json_rpc_does() {
    let stage = stage().await;
    let params = json!({
        "message": message("Rest."), "configuration": { "returnImmediately": true },
    });
    let mut send = posting("/agents/coder/message:send", &params);
    let kind = "application/a2a+json".parse().unwrap();
    send.headers_mut().insert(header::CONTENT_TYPE, kind);
    let sent = in_time(stage.call(send)).await;
    assert_eq!(sent.headers[header::CONTENT_TYPE], "application/a2a+json");
    let task = sent.done()["task"].clone();
    let id = task["id"].as_str().unwrap();
    let of = |rest: &str| format!("/agents/coder/tasks{rest}");
    assert_eq!(stage.get(&of(&format!("/{id}"))).await.done(), task);
    let cut = stage.get(&of(&format!("/{id}?historyLength=0"))).await.done();
    assert!(cut.get("history").is_none());
    let listed = stage.get(&of("?pageSize=1&status=TASK_STATE_SUBMITTED")).await.done();
    assert_eq!(listed["tasks"][0]["id"], task["id"]);
    assert_eq!(listed["nextPageToken"], "");
    let cancel = Request::post(of(&format!("/{id}:cancel"))).body(Body::empty()).unwrap();
    let cancelled = stage.call(cancel).await.done();
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    let again = stage.post(&of(&format!("/{id}:cancel")), &json!({})).await;
    assert_eq!(again.status, 400);
    assert_eq!(again.body["error"]["details"][0]["reason"], "TASK_NOT_CANCELABLE");
    let none = stage.get(&of("/nothing")).await;
    assert_eq!(none.status, 404);
    assert_eq!(none.body["error"]["status"], "NOT_FOUND");
    let card = stage.get("/agents/coder/extendedAgentCard").await.done();
    assert_eq!(card["name"], "coder");
    // The broker's own address names an agent as its tenant.
    let sent = stage.post("/a2a/coder/message:send", &params).await.done();
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
}

#[tokio::test]
async fn every_version_but_two_is_refused() {
    let stage = stage().await;
    for (version, code) in [("1.0", None), ("1.0.1", None), ("0.3", None), ("2.0", Some(-32009))] {
        let mut call = posting("/agents/coder", &rpc("ListTasks", json!({})));
        call.headers_mut().insert("a2a-version", version.parse().unwrap());
        let told = in_time(stage.call(call)).await.body;
        assert_eq!(told["error"]["code"].as_i64(), code, "{version}: {told}");
    }
    let call = Request::get("/agents/coder/tasks?A2A-Version=9.9").body(Body::empty()).unwrap();
    let told = stage.call(call).await;
    assert_eq!(
        (told.status, &told.body["error"]["details"][0]["reason"]),
        (400, &json!("VERSION_NOT_SUPPORTED"))
    );
}

#[tokio::test]
async fn what_is_malformed_is_told_by_the_words_of_json_rpc() {
    let stage = stage().await;
    let ask = async |body: &str| {
        let request = Request::post("/agents/coder").header("content-type", "application/json");
        stage.call(request.body(Body::from(body.to_owned())).unwrap()).await.body
    };
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"Nothing"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":[]}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":-1}}"#,
            -32602,
        ),
    ] {
        let told = in_time(ask(body)).await;
        assert_eq!(told["error"]["code"], code, "{body}: {told}");
        assert!(told["error"]["data"].is_array());
    }
    let plain = Request::post("/agents/coder").header("content-type", "text/plain");
    let told = stage.call(plain.body(Body::from("{}")).unwrap()).await;
    assert_eq!(told.body["error"]["code"], -32005);
}

#[tokio::test]
async fn an_extension_that_was_asked_for_is_named_again() {
    let stage = stage().await;
    let uri = "https://w3id.org/tasuki/a2a/handoff/v1";
    let mut call = posting("/agents/coder", &rpc("ListTasks", json!({})));
    call.headers_mut().insert("a2a-extensions", format!("urn:other, {uri}").parse().unwrap());
    let told = in_time(stage.call(call)).await;
    assert_eq!(told.headers["a2a-extensions"], uri);
    let schema = stage.get("/a2a-extension/handoff/v1/schema.json").await;
    assert_eq!(schema.headers[header::CONTENT_TYPE], "application/schema+json");
    assert!(schema.body["$defs"]["said"]["properties"].is_object());
    let _: &Value = &schema.body;
}

#[tokio::test]
async fn the_header_for_keys_makes_a_send_safe_to_repeat() {
    let stage = stage().await;
    let params = json!({
        "message": message("Once."), "configuration": { "returnImmediately": true },
    });
    let send = async |key: &str| {
        let mut call = posting("/agents/coder", &rpc("SendMessage", params.clone()));
        call.headers_mut().insert("idempotency-key", key.parse().unwrap());
        in_time(stage.call(call)).await.done()["result"]["task"]["id"].clone()
    };
    let once = send("k-1").await;
    assert_eq!(send("k-1").await, once);
    assert_ne!(send("k-2").await, once);
}

#[tokio::test]
async fn numbers_of_clients_that_know_one_kind_only_are_whole() {
    let stage = stage().await;
    let uri = "https://w3id.org/tasuki/a2a/handoff/v1";
    let params = json!({
        "message": message("Soon."),
        "configuration": { "returnImmediately": true },
        "metadata": { uri: { "priority": 9.0, "terms": { "attempts": 2.0 }, "expiresInMs": 60000.0 } },
    });
    let task = in_time(stage.ask("coder", "SendMessage", params)).await["task"].clone();
    let shown = stage.get(&format!("/v1/handoffs/{}", task["id"].as_str().unwrap())).await.done();
    assert_eq!((&shown["priority"], &shown["terms"]["attempts"]), (&json!(9), &json!(2)));
}
