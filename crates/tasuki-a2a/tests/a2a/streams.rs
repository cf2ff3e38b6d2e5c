// SPDX-License-Identifier: Apache-2.0
//! What is told piece by piece.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::stage::{Stage, message, on_both_stores, posting, rpc};

on_both_stores! {
    every_stream_of_a_task_tells_the_same_and_ends_with_it
    a_stream_ends_when_somebody_has_to_say_something
    a_client_that_comes_back_after_a_restart_misses_nothing
    what_is_over_cannot_be_subscribed_to
}

fn subscribe(id: &Value) -> Request<Body> {
    posting("/agents/coder", &rpc("SubscribeToTask", json!({ "id": id })))
}

fn states(pieces: &[(String, Value)]) -> Vec<String> {
    let of = |piece: &Value| {
        let piece = piece.get("result").unwrap_or(piece);
        let status = piece.get("task").or_else(|| piece.get("statusUpdate"));
        match status {
            Some(status) => status["status"]["state"].as_str().unwrap().to_owned(),
            None => piece["artifactUpdate"]["artifact"]["artifactId"].as_str().unwrap().to_owned(),
        }
    };
    pieces.iter().map(|(_, piece)| of(piece)).collect()
}

async fn every_stream_of_a_task_tells_the_same_and_ends_with_it(stage: Stage) {
    stage.registered("coder").await;
    let params = json!({ "message": message("Stream.") });
    let call = posting("/agents/coder", &rpc("SendStreamingMessage", params));
    let mut first = stage.stream(call).await;
    let (id, task) = first.next().await.unwrap();
    assert_eq!(id, "1");
    assert_eq!(task["jsonrpc"], "2.0");
    let id = task["result"]["task"]["id"].clone();
    let second = stage.stream(subscribe(&id)).await;
    let path = format!("/agents/coder/tasks/{}:subscribe", id.as_str().unwrap());
    let third = stage.stream(Request::get(&path).body(Body::empty()).unwrap()).await;
    drop(stage.stream(subscribe(&id)).await);

    let held = stage.claim("coder").await;
    stage.act(&held, "progress", json!({ "note": "half" })).await;
    stage.act(&held, "complete", json!({ "payload": { "type": "text", "text": "ok" } })).await;
    let expected = [
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
        "TASK_STATE_WORKING",
        "result",
        "TASK_STATE_COMPLETED",
    ];
    let mut told = vec![("1".to_owned(), task)];
    told.extend(first.all().await);
    assert_eq!(states(&told), expected);
    assert_eq!(second.all().await, told);
    let bare: Vec<_> =
        told.iter().map(|(id, piece)| (id.clone(), piece["result"].clone())).collect();
    assert_eq!(third.all().await, bare, "the other binding tells it without the wrapper");
}

async fn a_stream_ends_when_somebody_has_to_say_something(stage: Stage) {
    stage.registered("coder").await;
    let params = json!({ "message": message("Stream.") });
    let call = posting("/agents/coder", &rpc("SendStreamingMessage", params));
    let stream = stage.stream(call).await;
    let held = stage.claim("coder").await;
    stage.act(&held, "ask", json!({ "text": "Which?" })).await;
    let told = stream.all().await;
    assert_eq!(states(&told).last().unwrap(), "TASK_STATE_INPUT_REQUIRED");

    let mut said = message("That.");
    said["taskId"] = told[0].1["result"]["task"]["id"].clone();
    let call = posting("/agents/coder", &rpc("SendStreamingMessage", json!({ "message": said })));
    let stream = stage.stream(call).await;
    let held = stage.claim("coder").await;
    stage.act(&held, "complete", json!({ "payload": { "type": "done" } })).await;
    assert_eq!(states(&stream.all().await).last().unwrap(), "TASK_STATE_COMPLETED");
}

async fn a_client_that_comes_back_after_a_restart_misses_nothing(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Stream.").await;
    let mut stream = stage.stream(subscribe(&task["id"])).await;
    stream.next().await.unwrap();
    let held = stage.claim("coder").await;
    let (last, _) = stream.next().await.unwrap();
    let ending = tokio::spawn(stream.all());
    let stage = stage.restarted().await;
    ending.await.unwrap();

    stage.act(&held, "progress", json!({ "note": "half" })).await;
    let mut again = subscribe(&task["id"]);
    again.headers_mut().insert("last-event-id", last.parse().unwrap());
    let mut stream = stage.stream(again).await;
    let (next, piece) = stream.next().await.unwrap();
    assert_eq!((last.as_str(), next.as_str()), ("2", "3"));
    let status = &piece["result"]["statusUpdate"]["status"];
    assert_eq!(status["message"]["parts"][0]["text"], "half");
    stage.act(&held, "complete", json!({ "payload": { "type": "done" } })).await;
    assert_eq!(states(&stream.all().await), ["result", "TASK_STATE_COMPLETED"]);
}

async fn what_is_over_cannot_be_subscribed_to(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Stream.").await;
    stage.ask("coder", "CancelTask", json!({ "id": task["id"] })).await;
    let refused = stage.rpc("coder", "SubscribeToTask", json!({ "id": task["id"] })).await;
    assert_eq!(refused["error"]["code"], -32004);
    let none = stage.rpc("coder", "SubscribeToTask", json!({ "id": "no-such-task" })).await;
    assert_eq!(none["error"]["code"], -32001);
}
