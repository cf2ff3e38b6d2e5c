// SPDX-License-Identifier: Apache-2.0
//! Clients of protocol 0.3, at the same address.

use serde_json::{Value, json};

use crate::stage::{Stage, on_both_stores, posting, rpc};

on_both_stores! {
    a_client_of_then_sends_asks_and_cancels
    a_client_of_then_is_told_when_its_stream_ends
    both_versions_see_one_task
}

fn message(text: &str) -> Value {
    json!({
        "kind": "message", "messageId": "m-1", "role": "user",
        "parts": [{ "kind": "text", "text": text }],
    })
}

async fn a_client_of_then_sends_asks_and_cancels(stage: Stage) {
    stage.registered("coder").await;
    let params = json!({ "message": message("Then."), "configuration": { "blocking": false } });
    let task = stage.ask("coder", "message/send", params).await;
    assert_eq!(task["kind"], "task");
    assert_eq!(task["status"]["state"], "submitted");
    assert_eq!(task["history"][0]["role"], "user");
    assert_eq!(task["history"][0]["parts"], json!([{ "kind": "text", "text": "Then." }]));
    let stage = stage.restarted().await;
    let got = stage.ask("coder", "tasks/get", json!({ "id": task["id"] })).await;
    assert_eq!(got, task);
    let over = stage.ask("coder", "tasks/cancel", json!({ "id": task["id"] })).await;
    assert_eq!(over["status"]["state"], "canceled");
    let card = stage.ask("coder", "agent/getAuthenticatedExtendedCard", json!({})).await;
    assert_eq!(
        (&card["protocolVersion"], &card["preferredTransport"]),
        (&json!("0.3.0"), &json!("JSONRPC"))
    );
    let none = stage.rpc("coder", "tasks/get", json!({ "id": "x" })).await;
    assert_eq!(none["error"]["code"], -32001);
}

async fn a_client_of_then_is_told_when_its_stream_ends(stage: Stage) {
    stage.registered("coder").await;
    let call = rpc("message/stream", json!({ "message": message("Then.") }));
    let stream = stage.stream(posting("/agents/coder/", &call)).await;
    let held = stage.claim("coder").await;
    stage.act(&held, "complete", json!({ "payload": { "type": "text", "text": "ok" } })).await;
    let told = stream.all().await;
    let kinds: Vec<_> = told.iter().map(|(_, it)| it["result"]["kind"].clone()).collect();
    assert_eq!(kinds, ["task", "status-update", "artifact-update", "status-update"]);
    assert_eq!(told[1].1["result"]["final"], false);
    assert_eq!(told[3].1["result"]["final"], true);
    let part = &told[2].1["result"]["artifact"]["parts"][0];
    assert_eq!(*part, json!({ "kind": "text", "text": "ok" }));
}

async fn both_versions_see_one_task(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Now.").await;
    let then = stage.ask("coder", "tasks/get", json!({ "id": task["id"] })).await;
    assert_eq!(then["contextId"], task["contextId"]);
    let path = format!("/agents/coder/v1/tasks/{}", task["id"].as_str().unwrap());
    // That binding said things as its gRPC did.
    let rest = stage.get(&path).await.done();
    assert_eq!(rest["history"][0]["content"], json!([{ "text": "Now." }]));
    assert_eq!(rest["status"]["state"], "TASK_STATE_SUBMITTED");
}
