// SPDX-License-Identifier: Apache-2.0
//! Clients that want to be told instead of asking.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::stage::{Stage, message, on_both_stores};

on_both_stores! {
    a_client_is_told_each_change_once_though_the_broker_is_restarted
    what_does_not_arrive_is_tried_again_and_then_left_with_the_reason_in_the_log
    configs_are_listed_read_and_deleted_and_their_secrets_stay_out_of_the_log
    a_client_of_0_3_is_told_the_whole_task
}

const URL: &str = "https://client.example/hook";
const EXTENSION: &str = "https://w3id.org/tasuki/a2a/handoff/v1";

fn config() -> Value {
    json!({ "id": "hook", "url": URL, "token": "t-123",
        "authentication": { "scheme": "Bearer", "credentials": "c-456" } })
}

fn header<'m>(message: &'m tasuki_engine::Message, name: &str) -> Option<&'m str> {
    let found = message.headers.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

async fn a_client_is_told_each_change_once_though_the_broker_is_restarted(stage: Stage) {
    stage.registered("coder").await;
    let params = json!({
        "message": message("Push."),
        "configuration": { "returnImmediately": true, "taskPushNotificationConfig": config() },
    });
    let task = stage.ask("coder", "SendMessage", params).await["task"].clone();
    let held = stage.claim("coder").await;
    let (told, working) = stage.hook.heard().await;
    assert_eq!(told.url, URL);
    assert_eq!(told.content_type, "application/a2a+json");
    assert_eq!(header(&told, "x-a2a-notification-token"), Some("t-123"));
    assert_eq!(header(&told, "authorization"), Some("Bearer c-456"));
    assert_eq!(working["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(working["statusUpdate"]["taskId"], task["id"]);
    // Told is what the log says: what it does not say yet comes again.
    until_told(&stage, 2).await;

    let stage = stage.restarted().await;
    let payload = json!({ "type": "text", "text": "done" });
    stage.act(&held, "complete", json!({ "payload": payload })).await;
    let (_, artifact) = next(&stage).await;
    assert_eq!(artifact["artifactUpdate"]["artifact"]["parts"][0]["text"], "done");
    let (told, done) = next(&stage).await;
    assert_eq!(header(&told, "authorization"), Some("Bearer c-456"));
    assert_eq!(done["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    until_told(&stage, 4).await;
    assert!(stage.hook.is_silent().await);
}

async fn what_does_not_arrive_is_tried_again_and_then_left_with_the_reason_in_the_log(
    stage: Stage,
) {
    stage.registered("coder").await;
    let terms = json!({ EXTENSION: { "terms": { "lease_ms": 600_000 } } });
    let params = json!({ "message": message("Push."), "metadata": terms,
        "configuration": { "returnImmediately": true } });
    let task = stage.ask("coder", "SendMessage", params).await["task"].clone();
    let set = json!({ "taskId": task["id"], "url": URL });
    let kept = stage.ask("coder", "CreateTaskPushNotificationConfig", set).await;
    assert_eq!(kept["id"], task["id"], "without a name, it has that of the task");
    stage.hook.refuses.store(10, Ordering::Release);
    let held = stage.claim("coder").await;
    for _ in 0..8 {
        assert_eq!(next(&stage).await.1["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    }
    let given_up = until_told(&stage, 2).await;
    assert_eq!((&given_up["sent"], &given_up["tries"]), (&json!(false), &json!(8)));
    assert_eq!(given_up["problem"], "it answered 500");
    // What comes later is another matter.
    stage.act(&held, "progress", json!({ "note": "half" })).await;
    for _ in 0..3 {
        let (_, update) = next(&stage).await;
        let said = &update["statusUpdate"]["status"]["message"];
        assert_eq!(said["parts"][0]["text"], "half");
    }
    assert_eq!(until_told(&stage, 3).await["tries"], 3);
}

async fn configs_are_listed_read_and_deleted_and_their_secrets_stay_out_of_the_log(stage: Stage) {
    stage.registered("coder").await;
    stage.registered("other").await;
    let task = stage.send("coder", "Push.").await;
    let id = task["id"].as_str().unwrap();
    let configs = format!("/agents/coder/tasks/{id}/pushNotificationConfigs");
    let mut shown = config();
    shown["taskId"] = task["id"].clone();
    shown["authentication"] = json!({ "scheme": "Bearer" });
    assert_eq!(stage.post(&configs, &config()).await.done(), shown);
    assert_eq!(stage.get(&format!("{configs}/hook")).await.done(), shown);
    assert_eq!(stage.get(&configs).await.done(), json!({ "configs": [shown] }));
    let stage = stage.restarted().await;
    assert_eq!(stage.get(&format!("{configs}/hook")).await.done(), shown);

    // At the address of another agent it is not there, as its task is not.
    let elsewhere = format!("/agents/other/tasks/{id}/pushNotificationConfigs/hook");
    assert_eq!(stage.get(&elsewhere).await.status, 404);
    assert_eq!(stage.get(&format!("{configs}/none")).await.status, 404);
    for url in ["http://127.0.0.99/x", "http://169.254.169.254/x", "ftp://a/x", ""] {
        let refused = stage.post(&configs, &json!({ "url": url })).await;
        assert_eq!(refused.status, 400, "{url}: {}", refused.body);
    }
    let broken = json!({ "url": URL, "token": "a\r\nb: c" });
    assert_eq!(stage.post(&configs, &broken).await.status, 400);

    let log = stage.text("/v1/audit/export").await;
    assert!(log.contains("push_set") && log.contains(URL), "{log}");
    assert!(!log.contains("t-123") && !log.contains("c-456"));

    for _ in 0..2 {
        let delete = Request::delete(format!("{configs}/hook")).body(Body::empty()).unwrap();
        assert_eq!(stage.call(delete).await.done(), json!({}));
    }
    assert_eq!(stage.get(&configs).await.done(), json!({ "configs": [] }));
    for number in 0..10 {
        let more = json!({ "id": format!("hook-{number}"), "url": URL });
        stage.post(&configs, &more).await.done();
    }
    let refused = stage.post(&configs, &config()).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    let said = refused.body["error"]["message"].as_str().unwrap();
    assert!(said.contains("10 push configs already"), "{said}");
}

async fn a_client_of_0_3_is_told_the_whole_task(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Push.").await;
    let set = json!({ "taskId": task["id"], "pushNotificationConfig": {
        "id": "hook", "url": URL, "token": "t",
        "authentication": { "schemes": ["Bearer"], "credentials": "c" } } });
    let kept = stage.ask("coder", "tasks/pushNotificationConfig/set", set).await;
    assert_eq!(kept["taskId"], task["id"]);
    assert_eq!(kept["pushNotificationConfig"]["authentication"]["schemes"], json!(["Bearer"]));
    let list = json!({ "id": task["id"] });
    let listed = stage.ask("coder", "tasks/pushNotificationConfig/list", list).await;
    assert_eq!(listed, json!([kept]));
    stage.claim("coder").await;
    let (told, whole) = stage.hook.heard().await;
    assert_eq!(header(&told, "x-a2a-notification-token"), Some("t"));
    assert_eq!((&whole["kind"], &whole["id"]), (&json!("task"), &task["id"]));
    assert_eq!(whole["status"]["state"], "working");
}

/// The next message, with as much time going by as it takes.
async fn next(stage: &Stage) -> (tasuki_engine::Message, Value) {
    loop {
        let heard = tokio::time::timeout(Duration::from_millis(20), stage.hook.heard());
        match heard.await {
            Ok(heard) => return heard,
            Err(_) => stage.clock.advance_ms(500),
        }
    }
}

/// The event that says that a client was told up to a change.
async fn until_told(stage: &Stage, up_to: u32) -> Value {
    loop {
        let log = stage.text("/v1/audit/export").await;
        let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut found = events.filter_map(|line| {
            let event = line["event"]["record"].clone();
            (event["change"] == "push_told" && event["up_to"] == up_to).then_some(event)
        });
        if let Some(found) = found.next_back() {
            return found;
        }
        tokio::task::yield_now().await;
    }
}
