// SPDX-License-Identifier: Apache-2.0
//! Whatever is sent, it is answered in the words of the protocol, and is never a mistake of the broker's.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::stage::{Backend, Stage, in_time, posting, rpc};

/// Every place of a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(list) => {
            for (number, item) in list.iter().enumerate() {
                places(item, &format!("{at}/{number}"), found);
            }
        }
        Value::Object(members) => {
            for (name, item) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(item, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

fn odd() -> Vec<Value> {
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}\u{202e}/../%2F"),
        json!("x".repeat(70_000)),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "type": 1 }),
        deep,
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_odd_value_anywhere_is_a_mistake_of_the_brokers() {
    let stage = Stage::open(Backend::Sqlite).await;
    stage.registered("coder").await;
    let uri = "https://w3id.org/tasuki/a2a/handoff/v1";
    let send = json!({
        "tenant": "coder",
        "message": {
            "messageId": "m", "role": "ROLE_USER", "contextId": "c",
            "parts": [{ "text": "hi" }, { "data": { "type": "a2a.message", "message": {} } }],
            "metadata": { uri: { "priority": 5, "terms": { "attempts": 2 } } },
            "extensions": [uri], "referenceTaskIds": ["t"],
        },
        "configuration": {
            "returnImmediately": true, "historyLength": 1, "acceptedOutputModes": ["text/plain"],
        },
        "metadata": { "a": 1 },
    });
    let sent = in_time(stage.ask("coder", "SendMessage", send.clone())).await;
    let id = sent["task"]["id"].clone();
    let list = json!({ "pageSize": 1, "status": "TASK_STATE_WORKING", "pageToken": "1_x" });
    let mut asked = 0;
    for (method, params) in [
        ("SendMessage", send),
        ("GetTask", json!({ "id": id, "historyLength": 1 })),
        ("ListTasks", list),
        ("CancelTask", json!({ "id": "x", "metadata": { "reason": "r" } })),
        (
            "message/send",
            json!({ "message": { "kind": "message", "messageId": "m", "role": "user",
            "parts": [{ "kind": "file", "file": { "uri": "u" } }] },
            "configuration": { "blocking": false } }),
        ),
    ] {
        let call = rpc(method, params);
        let mut all = Vec::new();
        places(&call["params"], "/params", &mut all);
        for place in &all {
            for value in odd() {
                let mut call = call.clone();
                *call.pointer_mut(place).unwrap() = value;
                // What is asked for may come true, and must not be waited for then.
                if let Some(params) = call["params"].as_object_mut()
                    && params.contains_key("message")
                    && !params["configuration"].is_object()
                {
                    params.insert("configuration".into(), json!({ "returnImmediately": true }));
                }
                let configuration = &call["params"]["configuration"];
                let now = &configuration["returnImmediately"];
                if (method == "SendMessage" && (now.is_null() || *now == ""))
                    || configuration["blocking"] == true
                {
                    continue;
                }
                asked += 1;
                let reply = in_time(stage.post("/agents/coder", &call)).await;
                assert!(reply.status < 500, "{method} {place}: {} {}", reply.status, reply.body);
                let told = &reply.body;
                let said = told.get("result").is_some() ^ told.get("error").is_some();
                assert!(said, "{method} {place}: {told}");
                assert_ne!(told["error"]["data"][0]["metadata"]["code"], "internal", "{place}");
            }
        }
    }
    assert!(asked > 300, "{asked}");
    // What was stored on the way can be told.
    let listed = stage.ask("coder", "ListTasks", json!({ "pageSize": 100 })).await;
    assert!(listed["totalSize"].as_i64().unwrap() > 1);
}

#[tokio::test]
async fn a_body_that_is_no_text_too_large_or_of_a_form_is_refused() {
    let stage = Stage::open(Backend::Sqlite).await;
    stage.registered("coder").await;
    let large = json!({ "x": "y".repeat(2_000_000) });
    let reply = in_time(stage.call(posting("/agents/coder", &rpc("GetTask", large)))).await;
    assert_eq!(reply.status, 413);
    for path in ["/agents/coder", "/agents/coder/message:send"] {
        let form = Request::post(path)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from("a=b"));
        let reply = in_time(stage.call(form.unwrap())).await;
        let told = &reply.body["error"];
        assert!(
            told["code"] == -32005 || told["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED",
            "{told}"
        );
        let broken = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let reply = in_time(stage.call(broken.body(Body::from(vec![0xff, 0xfe])).unwrap())).await;
        assert!(reply.status < 500 && reply.body["error"].is_object(), "{path}: {}", reply.body);
    }
}
