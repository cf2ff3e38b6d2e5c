// SPDX-License-Identifier: Apache-2.0
//! Resources, what is told of their changes, and prompts.

use futures::StreamExt;
use serde_json::{Value, json};

use crate::support::{Stage, in_time, work};

async fn read(stage: &Stage, uri: &str) -> String {
    let read = stage.agent("coder").ask("resources/read", json!({ "uri": uri })).await.done();
    assert_eq!(read["contents"][0]["uri"], uri);
    read["contents"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_is_listed_can_be_read_and_is_what_the_api_says() {
    let stage = Stage::open().await;
    let sent = stage.agent("planner").call("send", work()).await;
    let id = sent["handoff_id"].as_str().unwrap();
    let listed = stage.agent("coder").ask("resources/list", json!({})).await.done();
    let listed = listed["resources"].as_array().unwrap();
    assert_eq!(listed.len(), 3);
    for resource in listed {
        assert!(!read(&stage, resource["uri"].as_str().unwrap()).await.is_empty());
    }
    let envelope = read(&stage, &format!("tasuki://handoffs/{id}/envelope")).await;
    let stored = stage.get(&format!("/v1/handoffs/{id}/envelope")).await.body;
    assert_eq!(serde_json::from_str::<Value>(&envelope).unwrap(), stored);
    let prompt = stage.get(&format!("/v1/handoffs/{id}/prompt")).await.body["prompt"].clone();
    assert_eq!(json!(read(&stage, &format!("tasuki://handoffs/{id}/prompt")).await), prompt);
    let templates = stage.agent("coder").ask("resources/templates/list", json!({})).await.done();
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn the_list_goes_on_page_by_page() {
    let stage = Stage::open().await;
    for _ in 0..60 {
        stage.agent("planner").tool("send", work()).await;
    }
    let first = stage.agent("coder").ask("resources/list", json!({})).await.done();
    assert_eq!(first["resources"].as_array().unwrap().len(), 150);
    let cursor = json!({ "cursor": first["nextCursor"] });
    let second = stage.agent("coder").ask("resources/list", cursor).await.done();
    assert_eq!(second["resources"].as_array().unwrap().len(), 30);
    assert!(second["nextCursor"].is_null(), "{second}");
}

#[tokio::test]
async fn what_is_not_there_is_told_as_each_version_wants_it() {
    let stage = Stage::open().await;
    for uri in ["tasuki://nothing", "file:///etc/passwd", "tasuki://handoffs/x/prompt"] {
        for (version, code) in [("2026-07-28", -32602), ("2025-11-25", -32002)] {
            let client = stage.agent("coder").at(version);
            let read = client.ask("resources/read", json!({ "uri": uri })).await.answer();
            assert_eq!(read["error"]["code"], code, "{uri} {version}: {read}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_is_told_of_what_changes_and_of_nothing_else() {
    let stage = Stage::open().await;
    let planner = stage.agent("planner");
    let sent = planner.call("send", work()).await;
    let other = planner.call("send", work()).await;
    let story = format!("tasuki://tasks/{}/story", sent["task_id"].as_str().unwrap());
    let context = "tasuki://projects/shop/context".to_owned();
    let wanted = json!({
        "notifications": { "resourceSubscriptions": [story, context, "file:///etc/passwd"] },
    });
    let request = planner.request("subscriptions/listen", wanted);
    let (status, body) = stage.stream(request).await;
    assert_eq!(status, 200);
    let mut pieces = body.into_data_stream();
    let mut text = String::new();
    let mut heard = async |what: &str| {
        in_time(async {
            while !text.contains(what) {
                text += std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap();
            }
        })
        .await;
        std::mem::take(&mut text)
    };
    let accepted = heard("acknowledged").await;
    assert!(!accepted.contains("passwd"), "what is not ours is not accepted: {accepted}");
    // Of another task nothing is told; what is told is about the one that is listened to.
    let about = json!({ "handoff_id": other["handoff_id"] });
    planner.call("cancel", about).await;
    stage.agent("coder").call("claim", json!({})).await;
    let told = heard("notifications/resources/updated").await;
    assert!(told.contains(&story) && !told.contains(&context), "{told}");
    for (project, decision) in [("other", "no"), ("shop", "yes")] {
        let decided = json!({
            "do": "decide", "project": project, "key": "k", "decision": decision,
        });
        planner.call("remember", decided).await;
    }
    let told = heard(&context).await;
    assert!(!told.contains("projects/other"), "{told}");
    stage.engine.close().await;
    let rest = in_time(pieces.collect::<Vec<_>>()).await;
    drop(rest);
}

#[tokio::test]
async fn versions_with_a_handshake_are_told_that_nothing_is_told_here() {
    let stage = Stage::open().await;
    let client = stage.agent("coder").at("2025-11-25");
    let uri = json!({ "uri": "tasuki://projects/shop/context" });
    let refused = client.ask("resources/subscribe", uri).await.answer();
    assert!(refused["error"]["message"].as_str().unwrap().contains("stdio"), "{refused}");
}

#[tokio::test]
async fn prompts_say_what_to_do_with_what_is_known() {
    let stage = Stage::open().await;
    let coder = stage.agent("coder");
    let listed = coder.ask("prompts/list", json!({})).await.done();
    let names: Vec<_> =
        listed["prompts"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["take_work", "hand_over", "review_dead_letter"]);
    let take = json!({ "name": "take_work", "arguments": { "capability": "review" } });
    let take = coder.ask("prompts/get", take).await.done();
    let text = take["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains(r#"capabilities ["review"]"#), "{text}");
    let sent = stage.agent("planner").call("send", work()).await;
    let over = json!({
        "name": "hand_over", "arguments": { "to": "*review", "task_id": sent["task_id"] },
    });
    let over = coder.ask("prompts/get", over).await.done();
    let story = over["messages"][0]["content"]["resource"]["text"].as_str().unwrap();
    assert!(story.contains("transfer_offered") && story.contains("planner"), "{over}");
    for (name, arguments) in [
        ("hand_over", json!({})),
        ("hand_over", json!({ "to": " " })),
        ("hand_over", json!({ "to": "x", "task_id": "nonsense" })),
        ("take_work", json!({ "more": "x" })),
        ("review_dead_letter", json!({ "handoff_id": "nonsense" })),
        ("nothing", json!({})),
    ] {
        let asked = json!({ "name": name, "arguments": arguments });
        let refused = coder.ask("prompts/get", asked.clone()).await.answer();
        assert_eq!(refused["error"]["code"], -32602, "{asked}: {refused}");
    }
}

#[tokio::test]
async fn a_dead_letter_is_reviewed_with_all_that_is_known_of_it() {
    let stage = Stage::open().await;
    let sent = stage.agent("planner").call("send", work()).await;
    let coder = stage.agent("coder");
    let held = coder.call("claim", json!({})).await;
    let failed = json!({
        "claim": held["claim"], "class": "permanent", "type": "boom", "message": "it broke",
        "hint": "mend it",
    });
    coder.call("fail", failed).await;
    let asked = json!({
        "name": "review_dead_letter", "arguments": { "handoff_id": sent["handoff_id"] },
    });
    let review = coder.ask("prompts/get", asked).await.done();
    let known = review["messages"][0]["content"]["resource"]["text"].as_str().unwrap();
    assert!(known.contains("it broke"), "{review}");
    let says = review["messages"][1]["content"]["text"].as_str().unwrap();
    assert!(says.contains("decide_dead_letter") && !says.contains("it broke"), "{says}");
}
