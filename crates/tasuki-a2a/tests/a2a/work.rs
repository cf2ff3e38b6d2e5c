// SPDX-License-Identifier: Apache-2.0
//! A task follows the work.

use serde_json::{Value, json};

use crate::stage::{Stage, in_time, message, on_both_stores};

const EXTENSION: &str = "https://w3id.org/tasuki/a2a/handoff/v1";

on_both_stores! {
    a_message_is_stored_before_it_is_answered_and_found_after_a_restart
    a_task_goes_through_three_hops_and_a_restart_and_ends_with_the_last_result
    a_worker_that_vanishes_costs_an_attempt_and_not_the_task
    a_question_is_input_required_and_the_next_message_is_the_answer
    leave_is_asked_for_as_auth_required
    a_message_to_work_under_way_is_a_word_to_its_holder
    cancelling_works_after_a_restart_and_what_is_over_cannot_be_cancelled
    a_dead_letter_is_failed_for_good_and_a_redrive_is_a_new_task_that_refers_to_it
    declined_work_is_rejected
    the_same_message_id_makes_two_tasks_and_the_same_key_one
    a_send_that_waits_is_answered_at_the_end
    attached_pieces_are_artifacts_and_may_go_on
    lists_are_pages_in_the_order_of_the_last_change
    whoever_can_is_found_by_the_broker_as_an_agent
}

async fn a_message_is_stored_before_it_is_answered_and_found_after_a_restart(stage: Stage) {
    stage.registered("coder").await;
    let mut said = message("Add GET /users.");
    said["parts"].as_array_mut().unwrap().push(json!({ "raw": "aGk=", "filename": "f", "x": 1 }));
    said["contextId"] = json!("ctx-1");
    said["later"] = json!({ "kept": true });
    let params = json!({ "message": said, "configuration": { "returnImmediately": true } });
    let task = stage.ask("coder", "SendMessage", params).await["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED");
    assert_eq!(task["contextId"], "ctx-1");

    let stage = stage.restarted().await;
    let found = stage.task("coder", &task["id"]).await;
    assert_eq!(found, task);
    let first = &found["history"][0];
    assert_eq!(first["parts"], said["parts"]);
    assert_eq!(first["later"], said["later"]);

    let held = stage.claim("coder").await;
    assert_eq!(held["envelope"]["payload"]["type"], "a2a.message");
    assert_eq!(held["envelope"]["intent"], "Add GET /users.");
    assert_eq!(held["correlation_id"], "ctx-1");
}

async fn a_task_goes_through_three_hops_and_a_restart_and_ends_with_the_last_result(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Add GET /users.").await;
    let id = &task["id"];

    let held = stage.claim("coder").await;
    let on = |to: &str| {
        json!({
            "payload": { "type": "text", "text": "half of it" },
            "follow_ups": [{ "to": { "agent": to }, "payload": { "type": "request" } }],
        })
    };
    stage.act(&held, "complete", on("reviewer")).await;
    assert_eq!(stage.state("coder", id).await, "TASK_STATE_WORKING");

    let stage = stage.restarted().await;
    let handed_on = stage.task("coder", id).await;
    assert_eq!(handed_on["status"]["state"], "TASK_STATE_WORKING");
    assert!(handed_on.get("artifacts").is_none(), "the result of a hop is not the task's");
    let held = stage.claim("reviewer").await;
    stage.act(&held, "complete", on("tester")).await;
    assert_eq!(stage.state("coder", id).await, "TASK_STATE_WORKING");

    let held = stage.claim("tester").await;
    assert_eq!(held["envelope"]["intent"], "Add GET /users.", "the words arrive at the last one");
    let stage = stage.restarted().await;
    stage
        .act(&held, "complete", json!({ "payload": { "type": "text", "text": "all of it" } }))
        .await;
    let done = stage.task("coder", id).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["artifacts"][0]["parts"], json!([{ "text": "all of it" }]));
    assert_eq!(done["metadata"][EXTENSION]["hop"], 2);
    assert_eq!(done["id"], *id);
    assert_eq!(stage.restarted().await.task("coder", id).await, done);
}

async fn a_worker_that_vanishes_costs_an_attempt_and_not_the_task(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Add GET /users.").await;
    stage.claim("coder").await;
    assert_eq!(stage.state("coder", &task["id"]).await, "TASK_STATE_WORKING");
    stage.pass(60_000).await;
    let waiting = stage.task("coder", &task["id"]).await;
    assert_eq!(waiting["status"]["state"], "TASK_STATE_SUBMITTED", "{waiting}");
    stage.pass(60_000).await;
    let held = stage.claim("coder").await;
    let again = stage.task("coder", &task["id"]).await;
    assert_eq!(again["metadata"][EXTENSION]["attempt"], 2);
    stage.act(&held, "complete", json!({ "payload": { "type": "done" } })).await;
    assert_eq!(stage.state("coder", &task["id"]).await, "TASK_STATE_COMPLETED");
}

async fn a_question_is_input_required_and_the_next_message_is_the_answer(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Add GET /users.").await;
    let held = stage.claim("coder").await;
    stage.act(&held, "ask", json!({ "text": "Which path?" })).await;
    let asks = stage.task("coder", &task["id"]).await;
    assert_eq!(asks["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(asks["status"]["message"]["parts"][0]["text"], "Which path?");
    assert_eq!(asks["status"]["message"]["role"], "ROLE_AGENT");

    let stage = stage.restarted().await;
    let mut said = message("/users");
    said["taskId"] = task["id"].clone();
    said["contextId"] = json!("another");
    let configuration = json!({ "returnImmediately": true });
    let params = json!({ "message": said, "configuration": configuration });
    let refused = stage.rpc("coder", "SendMessage", params).await;
    assert_eq!(refused["error"]["code"], -32602, "the context is another one");
    said["contextId"] = asks["contextId"].clone();
    let params = json!({ "message": said, "configuration": configuration });
    let told = stage.ask("coder", "SendMessage", params).await["task"].clone();
    assert_eq!(told["id"], task["id"]);
    assert_eq!(told["status"]["state"], "TASK_STATE_WORKING");

    let held = stage.claim("coder").await;
    assert_eq!(held["questions"][0]["answer"], "/users", "{held}");
    stage.act(&held, "complete", json!({ "payload": { "type": "done" } })).await;
    let done = stage.task("coder", &task["id"]).await;
    let roles: Vec<_> =
        done["history"].as_array().unwrap().iter().map(|said| said["role"].clone()).collect();
    assert_eq!(roles, ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]);
}

async fn leave_is_asked_for_as_auth_required(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Drop the table.").await;
    let held = stage.claim("coder").await;
    stage.act(&held, "ask", json!({ "kind": "authorization", "text": "Really?" })).await;
    assert_eq!(stage.state("coder", &task["id"]).await, "TASK_STATE_AUTH_REQUIRED");
    let answer = |text: &str| {
        let mut said = message(text);
        said["taskId"] = task["id"].clone();
        json!({ "message": said, "configuration": { "returnImmediately": true } })
    };
    let refused = stage.rpc("coder", "SendMessage", answer("well, perhaps")).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    stage.ask("coder", "SendMessage", answer("granted")).await;
    let held = stage.claim("coder").await;
    assert_eq!(held["questions"][0]["answer"], json!({ "granted": true }), "{held}");
}

async fn a_message_to_work_under_way_is_a_word_to_its_holder(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Add GET /users.").await;
    let held = stage.claim("coder").await;
    let mut said = message("Use tabs.");
    said["taskId"] = task["id"].clone();
    let params = json!({ "message": said, "configuration": { "returnImmediately": true } });
    let told = stage.ask("coder", "SendMessage", params).await["task"].clone();
    assert_eq!(told["history"][1]["parts"], json!([{ "text": "Use tabs." }]));
    let beat = stage.act(&held, "heartbeat", json!({})).await;
    assert_eq!(beat["messages"][0]["text"], "Use tabs.", "{beat}");
    stage.act(&held, "complete", json!({ "payload": { "type": "done" } })).await;
    let mut said = message("Too late.");
    said["taskId"] = task["id"].clone();
    let refused = stage.rpc("coder", "SendMessage", json!({ "message": said })).await;
    assert_eq!(refused["error"]["code"], -32004);
}

async fn cancelling_works_after_a_restart_and_what_is_over_cannot_be_cancelled(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Add GET /users.").await;
    let held = stage.claim("coder").await;
    let stage = stage.restarted().await;
    let cancelled = stage.ask("coder", "CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    let handoff = held["handoff_id"].as_str().unwrap();
    let late = json!({
        "claim_id": held["claim_id"], "fence": held["fence"], "payload": { "type": "done" },
    });
    let late = stage.post(&format!("/v1/handoffs/{handoff}/complete"), &late).await;
    assert_eq!(late.status, 409);
    let again = stage.rpc("coder", "CancelTask", json!({ "id": task["id"] })).await;
    assert_eq!(again["error"]["code"], -32002);
    assert_eq!(again["error"]["data"][0]["reason"], "TASK_NOT_CANCELABLE");
    assert_eq!(stage.task("coder", &task["id"]).await, cancelled, "what is over does not change");
}

async fn a_dead_letter_is_failed_for_good_and_a_redrive_is_a_new_task_that_refers_to_it(
    stage: Stage,
) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Add GET /users.").await;
    let held = stage.claim("coder").await;
    let failure = json!({
        "class": "permanent", "type": "boom", "message": "it broke", "hint": "mend it",
    });
    stage.act(&held, "fail", failure).await;
    let failed = stage.task("coder", &task["id"]).await;
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(failed["metadata"][EXTENSION]["reason"], "permanent_failure");
    let words = failed["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(words.contains("it broke"), "{words}");

    let id = task["id"].as_str().unwrap();
    let path = format!("/v1/dead-letters/{id}/redrive");
    let redriven = stage.post(&path, &json!({ "by": task_opener(&failed) })).await.done();
    let again = &redriven["handoff_id"];
    assert_ne!(again, &task["id"]);
    let held = stage.claim("coder").await;
    stage.act(&held, "complete", json!({ "payload": { "type": "done" } })).await;
    assert_eq!(stage.task("coder", &task["id"]).await, failed, "what is over does not change");
    let done = stage.task("coder", again).await;
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["history"][0]["referenceTaskIds"], json!([id]));
    assert_eq!(done["contextId"], failed["contextId"]);
}

/// In whose name it was sent, where nobody had to say who it is.
fn task_opener(task: &Value) -> &'static str {
    assert!(task["metadata"][EXTENSION]["taskId"].is_string());
    "a2a-client"
}

async fn declined_work_is_rejected(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Add GET /users.").await;
    let id = task["id"].as_str().unwrap();
    let decline = json!({ "agent": "coder", "reason": "not mine" });
    stage.post(&format!("/v1/handoffs/{id}/decline"), &decline).await.done();
    let rejected = stage.task("coder", &task["id"]).await;
    assert_eq!(rejected["status"]["state"], "TASK_STATE_REJECTED");
    let words = rejected["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(words.contains("not mine"), "{words}");
}

async fn the_same_message_id_makes_two_tasks_and_the_same_key_one(stage: Stage) {
    stage.registered("coder").await;
    let [first, second] = [stage.send("coder", "Once.").await, stage.send("coder", "Once.").await];
    assert_ne!(first["id"], second["id"]);
    let keyed = |text: &str| {
        json!({
            "message": message(text),
            "configuration": { "returnImmediately": true },
            "metadata": { EXTENSION: { "idempotencyKey": "k-1" } },
        })
    };
    let once = stage.ask("coder", "SendMessage", keyed("Keyed.")).await;
    let stage = stage.restarted().await;
    let again = stage.ask("coder", "SendMessage", keyed("Keyed.")).await;
    assert_eq!(again["task"]["id"], once["task"]["id"]);
    let other = stage.rpc("coder", "SendMessage", keyed("Another.")).await;
    assert_eq!(other["error"]["data"][0]["metadata"]["code"], "idempotency_conflict");
    let unknown = json!({ "message": message("x"), "metadata": { EXTENSION: { "dedline": 1 } } });
    let refused = stage.rpc("coder", "SendMessage", unknown).await;
    assert_eq!(refused["error"]["code"], -32602, "what nobody follows is refused");
}

async fn a_send_that_waits_is_answered_at_the_end(stage: Stage) {
    stage.registered("coder").await;
    let sending = {
        let stage = stage.clone();
        tokio::spawn(async move {
            stage.ask("coder", "SendMessage", json!({ "message": message("Wait.") })).await
        })
    };
    let asked = json!({ "agent": "coder", "max": 1, "wait_ms": 30_000 });
    let held = stage.post("/v1/claims", &asked).await.done()["claims"][0].clone();
    stage.act(&held, "complete", json!({ "payload": { "type": "text", "text": "ok" } })).await;
    let done = in_time(sending).await.unwrap()["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["artifacts"][0]["parts"], json!([{ "text": "ok" }]));
}

async fn attached_pieces_are_artifacts_and_may_go_on(stage: Stage) {
    stage.registered("coder").await;
    let task = stage.send("coder", "Write.").await;
    let held = stage.claim("coder").await;
    let attach =
        |content: Value| json!({ "name": "draft", "type": "text/plain", "content": content });
    stage
        .act(&held, "artifacts", attach(json!({ "parts": [{ "text": "a" }], "last_chunk": false })))
        .await;
    let more = json!({ "parts": [{ "text": "b" }], "append": true });
    stage.act(&held, "artifacts", attach(more)).await;
    let stage = stage.restarted().await;
    let found = stage.task("coder", &task["id"]).await;
    assert_eq!(found["artifacts"][0]["artifactId"], "draft");
    assert_eq!(found["artifacts"][0]["parts"], json!([{ "text": "a" }, { "text": "b" }]));
}

async fn lists_are_pages_in_the_order_of_the_last_change(stage: Stage) {
    stage.registered("coder").await;
    let mut ids = Vec::new();
    for number in 0..5 {
        stage.clock.advance_ms(1000);
        ids.push(stage.send("coder", &format!("{number}")).await["id"].clone());
    }
    stage.clock.advance_ms(1000);
    // The first one is claimed, so it changed last.
    stage.claim("coder").await;
    let asked = |more: Value| {
        let mut asked = json!({ "pageSize": 2 });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked
    };
    let mut seen = Vec::new();
    let mut token = json!("");
    loop {
        let page = stage.ask("coder", "ListTasks", asked(json!({ "pageToken": token }))).await;
        assert_eq!(page["totalSize"], 5);
        assert_eq!(page["pageSize"], 2);
        seen.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].clone()));
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    let order = [0, 4, 3, 2, 1].map(|at: usize| ids[at].clone());
    assert_eq!(seen, order);
    let working = asked(json!({ "status": "TASK_STATE_WORKING" }));
    assert_eq!(stage.ask("coder", "ListTasks", working).await["totalSize"], 1);
    for wrong in [json!({ "pageSize": 0 }), json!({ "pageSize": 101 }), json!({ "pageToken": "x" })]
    {
        let refused = stage.rpc("coder", "ListTasks", wrong).await;
        assert_eq!(refused["error"]["code"], -32602);
    }
}

async fn whoever_can_is_found_by_the_broker_as_an_agent(stage: Stage) {
    stage.registered("coder").await;
    let params = |capability: Value| {
        json!({
            "message": message("Anybody."),
            "configuration": { "returnImmediately": true },
            "metadata": { EXTENSION: capability },
        })
    };
    let call = |params| crate::stage::rpc("SendMessage", params);
    let refused = stage.post("/a2a", &call(params(json!({})))).await;
    assert_eq!(refused.body["error"]["code"], -32602);
    let sent = stage.post("/a2a/", &call(params(json!({ "capability": "code" })))).await.done();
    let id = sent["result"]["task"]["id"].clone();
    let asked = json!({ "agent": "coder", "capabilities": ["code"], "max": 1 });
    let held = stage.post("/v1/claims", &asked).await.done()["claims"][0].clone();
    assert_eq!(held["handoff_id"], id);
    stage.act(&held, "complete", json!({ "payload": { "type": "done" } })).await;
    let get = crate::stage::rpc("GetTask", json!({ "id": id }));
    let done = stage.post("/a2a", &get).await.done();
    assert_eq!(done["result"]["status"]["state"], "TASK_STATE_COMPLETED");
    // At one address, an agent is named as the tenant.
    let mut named = params(json!({}));
    named["tenant"] = json!("coder");
    named["metadata"] = json!({});
    let sent = stage.post("/a2a", &call(named)).await.done();
    let held = stage.claim("coder").await;
    assert_eq!(held["handoff_id"], sent["result"]["task"]["id"]);
}
