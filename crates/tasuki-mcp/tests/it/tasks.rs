// SPDX-License-Identifier: Apache-2.0
//! Waits as tasks, for clients that declare the extension.

use serde_json::{Value, json};

use crate::support::{Backend, Client, Stage, work};

async fn look(client: &Client, task: &Value) -> Value {
    client.ask("tasks/get", json!({ "taskId": task["taskId"] })).await.done()
}

#[tokio::test]
async fn a_call_becomes_a_task_that_a_restarted_broker_still_knows() {
    let stage = Stage::on(Backend::Sqlite).await;
    let planner = stage.agent("planner").with_tasks();
    let task = planner.tool("call", work()).await;
    assert_eq!(
        (&task["resultType"], &task["status"]),
        (&json!("task"), &json!("working")),
        "{task}"
    );
    let stage = stage.restarted().await;
    let planner = planner.on(&stage);
    assert_eq!(look(&planner, &task).await["status"], "working");
    let coder = stage.agent("coder");
    let held = coder.call("claim", json!({})).await;
    coder.call("complete", json!({ "claim": held["claim"], "payload": { "type": "done" } })).await;
    let seen = look(&planner, &task).await;
    assert_eq!(seen["status"], "completed", "{seen}");
    let result = &seen["result"]["structuredContent"];
    assert_eq!(result["output"]["payload"], json!({ "type": "done" }), "{seen}");
}

#[tokio::test]
async fn a_question_ends_the_wait_of_a_call() {
    let stage = Stage::open().await;
    let planner = stage.agent("planner").with_tasks();
    let task = planner.tool("call", work()).await;
    let coder = stage.agent("coder");
    let held = coder.call("claim", json!({})).await;
    coder.call("ask", json!({ "claim": held["claim"], "text": "Which?" })).await;
    let seen = look(&planner, &task).await;
    assert_eq!(seen["result"]["structuredContent"]["open_question"]["text"], "Which?", "{seen}");
}

#[tokio::test]
async fn calling_a_call_off_calls_the_work_off() {
    let stage = Stage::open().await;
    let planner = stage.agent("planner").with_tasks();
    let task = planner.tool("call", work()).await;
    planner.ask("tasks/cancel", json!({ "taskId": task["taskId"] })).await.done();
    assert_eq!(look(&planner, &task).await["status"], "cancelled");
    assert_eq!(stage.agent("coder").call("claim", json!({})).await["claimed"], false);
}

#[tokio::test]
async fn a_claim_becomes_a_task_that_gets_the_same_claim_each_time() {
    let stage = Stage::open().await;
    let coder = stage.agent("coder").with_tasks();
    let task = coder.tool("claim", json!({ "wait_ms": 60_000 })).await;
    assert_eq!(look(&coder, &task).await["status"], "working", "{task}");
    stage.agent("planner").call("send", work()).await;
    stage.agent("planner").call("send", work()).await;
    let first = look(&coder, &task).await["result"]["structuredContent"].clone();
    let again = look(&coder, &task).await["result"]["structuredContent"].clone();
    assert_eq!(first["claimed"], true, "{first}");
    assert_eq!(first["claim"], again["claim"], "looking again takes nothing more");
    // Called off, it goes back.
    coder.ask("tasks/cancel", json!({ "taskId": task["taskId"] })).await.done();
    let late = json!({ "claim": first["claim"], "payload": { "type": "done" } });
    assert_eq!(coder.fails("complete", late).await, "stale_claim");
}

#[tokio::test]
async fn who_does_not_declare_tasks_gets_none() {
    let stage = Stage::open().await;
    let planner = stage.agent("planner");
    let mut asked = work();
    asked["wait_ms"] = json!(0);
    let seen = planner.call("call", asked).await;
    assert_eq!(seen["finished"], false);
    let task = stage.agent("planner").with_tasks().tool("call", work()).await;
    let refused = planner.ask("tasks/get", json!({ "taskId": task["taskId"] })).await.answer();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}

#[tokio::test]
async fn what_is_no_task_is_told() {
    let stage = Stage::open().await;
    let planner = stage.agent("planner").with_tasks();
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let asked = json!({ "taskId": "nonsense", "inputResponses": {} });
        let refused = planner.ask(method, asked).await.answer();
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
}
