// SPDX-License-Identifier: Apache-2.0
//! What is said while work goes on: a holder asks and goes on with the answer, somebody has a word for
//! the holder, pieces of work are there before the result, and whoever comes next knows what those
//! before it learned. Each with a restart of the broker in the middle.

use serde_json::{Value, json};

use crate::support::{Held, LEASE, SECOND, Stage, failure, on_durable_stores, text};

on_durable_stores! {
    a_holder_asks_waits_without_a_lease_and_goes_on_with_the_answer
    an_answer_is_kept_for_the_asker_and_then_for_anybody
    a_live_process_gets_its_answer_from_its_open_wait
    an_answer_that_is_kept_by_id_is_not_given_out_with_other_work
    a_question_that_nobody_answers_ends_with_the_default_of_its_asker
    a_question_that_nobody_answers_and_has_no_default_fails_the_attempt
    an_answer_must_fit_what_was_asked_for
    leave_is_given_or_refused_by_name
    the_hard_deadline_stands_while_a_question_waits
    a_cancel_reaches_a_question_at_once
    nobody_answers_its_own_question_and_the_first_answer_stands
    what_is_asked_can_be_listed_and_waited_for
    a_new_claim_brings_what_earlier_attempts_learned
    a_word_to_the_holder_comes_with_its_heartbeat_until_it_is_acknowledged
    pieces_of_work_outlive_their_holder
    pieces_of_work_are_bounded
    work_that_is_put_back_waits_until_its_time_and_uses_up_no_attempt
}

async fn asked(stage: &Stage, held: &Held, more: Value) -> Value {
    let question = json!({ "text": "Which branch?" });
    stage.act(held, "ask", crate::support::merged(question, more)).await.done()
}

async fn answered(stage: &Stage, id: &str, by: &str, answer: Value) -> crate::support::Reply {
    stage.post(&format!("/v1/handoffs/{id}/answer"), json!({ "by": by, "answer": answer })).await
}

async fn state(stage: &Stage, id: &str) -> String {
    stage.is(id).await.0
}

/// The next work of an agent, if there is some.
async fn next(stage: &Stage, agent: &str) -> Value {
    let wish = json!({ "agent": agent, "capabilities": ["review"] });
    stage.post("/v1/claims", wish).await.done()["claims"][0].clone()
}

async fn a_holder_asks_waits_without_a_lease_and_goes_on_with_the_answer(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let reply = asked(&stage, &held, json!({ "details": { "repository": "web" } })).await;
    assert_eq!(reply["state"], "input_required");
    // The reply was lost: the same question is asked once.
    assert_eq!(asked(&stage, &held, json!({ "details": { "repository": "web" } })).await, reply);
    let owner = stage.task_of(&id).await["owner"].clone();
    assert_eq!(owner, "coder", "whoever asks stays the owner");

    let stage = stage.restarted().await;
    stage.pass(10 * LEASE).await;
    assert_eq!(state(&stage, &id).await, "input_required", "no lease runs");
    assert_eq!(stage.show(&id).await["question"]["asked_by"], "coder");
    // The claim was given up by asking.
    stage
        .act(&held, "complete", json!({ "payload": { "type": "done" } }))
        .await
        .refused(409, "stale_claim");

    answered(&stage, &id, "planner", json!("main")).await.done();
    answered(&stage, &id, "planner", json!("main")).await.done();
    assert_eq!(stage.task_of(&id).await["owner"], "coder");
    let stage = stage.restarted().await;
    let claim = next(&stage, "coder").await;
    assert_eq!(claim["handoff_id"], *id);
    assert_eq!(claim["attempt"], 1, "waiting uses up no attempt");
    assert!(claim["fence"].as_u64().unwrap() > held.fence);
    let question = &claim["questions"][0];
    assert_eq!(question["text"], "Which branch?");
    assert_eq!(question["details"]["repository"], "web");
    assert_eq!(
        (&question["answer"], &question["answered_by"]),
        (&json!("main"), &json!("planner"))
    );
    stage.completed(&Held::of(&claim)).await;
    let shown = stage.show(&id).await;
    assert_eq!((&shown["failures"], &shown["losses"]), (&json!(0), &json!(0)));
    let story = stage.story(&id).await;
    for step in ["asked", "answered"] {
        assert_eq!(story.iter().filter(|kind| *kind == step).count(), 1, "{story:?}");
    }
}

async fn an_answer_is_kept_for_the_asker_and_then_for_anybody(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let held = stage.claimed(&id, "ann").await;
    asked(&stage, &held, json!({ "keep_ms": 5 * SECOND })).await;
    answered(&stage, &id, "planner", json!(1)).await.done();
    let stage = stage.restarted().await;
    let shown = stage.show(&id).await;
    assert_eq!((&shown["state"], &shown["kept_for"]["agent"]), (&json!("answered"), &json!("ann")));
    let refused = stage.claim_one(&id, "bob").await.refused(409, "kept_for_asker");
    assert_eq!(refused["details"]["asker"], "ann");
    assert_eq!(next(&stage, "bob").await, Value::Null);
    stage.pass(5 * SECOND).await;
    assert_eq!(stage.is(&id).await.0, "pending");
    assert_eq!(stage.task_of(&id).await["owner"], "planner");
    let claim = next(&stage, "bob").await;
    assert_eq!(claim["questions"][0]["answer"], 1);
    assert_eq!(claim["attempt"], 1);
    stage.completed(&Held::of(&claim)).await;
}

async fn a_live_process_gets_its_answer_from_its_open_wait(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    asked(&stage, &held, json!({})).await;
    let stage = stage.restarted().await;
    let (waiting, path) = (stage.clone(), format!("/v1/handoffs/{id}/claim"));
    let wait = tokio::spawn(async move {
        waiting.post(&path, json!({ "agent": "coder", "wait_ms": 60_000 })).await.done()
    });
    answered(&stage, &id, "planner", json!("main")).await.done();
    let claim = crate::support::in_time(wait).await.unwrap();
    assert_eq!(claim["questions"][0]["answer"], "main");
    // So does one that asks for any work.
    let held = Held::of(&claim);
    asked(&stage, &held, json!({ "text": "And which remote?" })).await;
    let waiting = stage.clone();
    let wait = tokio::spawn(async move {
        let wish = json!({ "agent": "coder", "wait_ms": 60_000 });
        waiting.post("/v1/claims", wish).await.done()
    });
    answered(&stage, &id, "planner", json!("origin")).await.done();
    let claims = crate::support::in_time(wait).await.unwrap();
    let answers: Vec<_> = claims["claims"][0]["questions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|question| question["answer"].clone())
        .collect();
    assert_eq!(answers, ["main", "origin"]);
}

async fn an_answer_that_is_kept_by_id_is_not_given_out_with_other_work(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    asked(&stage, &held, json!({ "by_id": true, "keep_ms": 5 * SECOND })).await;
    answered(&stage, &id, "planner", json!("main")).await.done();
    let stage = stage.restarted().await;
    assert_eq!(next(&stage, "coder").await, Value::Null);
    let claim = stage.claim_one(&id, "coder").await.done();
    assert_eq!(claim["questions"][0]["answer"], "main");
    stage.completed(&Held::of(&claim)).await;
}

async fn a_question_that_nobody_answers_ends_with_the_default_of_its_asker(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    stage
        .act(&held, "ask", json!({ "text": "Which?", "default": "main" }))
        .await
        .refused(422, "invalid_terms");
    asked(&stage, &held, json!({ "default": "main", "answer_ms": 60 * SECOND })).await;
    let stage = stage.restarted().await;
    stage.pass(60 * SECOND).await;
    assert_eq!(state(&stage, &id).await, "answered");
    answered(&stage, &id, "planner", json!("other")).await.refused(409, "already_answered");
    let claim = next(&stage, "coder").await;
    let question = &claim["questions"][0];
    assert_eq!((&question["answer"], &question["answered_by"]), (&json!("main"), &Value::Null));
    stage.completed(&Held::of(&claim)).await;
}

async fn a_question_that_nobody_answers_and_has_no_default_fails_the_attempt(stage: Stage) {
    let id = stage.offer("coder", json!({ "terms": { "attempts": 2, "backoff_ms": 0 } })).await;
    for last in [false, true] {
        let held = stage.claimed(&id, "coder").await;
        asked(&stage, &held, json!({ "answer_ms": 60 * SECOND })).await;
        stage.pass(60 * SECOND).await;
        stage.pass(SECOND).await;
        let expected = if last { "dead_lettered" } else { "pending" };
        assert_eq!(state(&stage, &id).await, expected);
    }
    let stage = stage.restarted().await;
    let shown = stage.show(&id).await;
    assert_eq!(shown["failures"], 2);
    assert_eq!(shown["attempts"][0]["ended"], "failed_retryable");
    answered(&stage, &id, "planner", json!("late")).await.refused(409, "no_question");
}

async fn an_answer_must_fit_what_was_asked_for(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let schema = json!({ "type": "string", "enum": ["main", "next"] });
    let bad = json!({ "text": "Which?", "schema": { "type": "nonsense" } });
    stage.act(&held, "ask", bad).await.refused(400, "invalid_request");
    let bad = json!({ "text": "Which?", "schema": schema, "default": 7, "answer_ms": SECOND });
    stage.act(&held, "ask", bad).await.refused(422, "invalid_payload");
    asked(&stage, &held, json!({ "schema": schema })).await;
    let stage = stage.restarted().await;
    answered(&stage, &id, "planner", json!("other")).await.refused(422, "invalid_payload");
    assert_eq!(state(&stage, &id).await, "input_required");
    answered(&stage, &id, "planner", json!("next")).await.done();
}

async fn leave_is_given_or_refused_by_name(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    asked(&stage, &held, json!({ "kind": "authorization", "text": "May I push?" })).await;
    let stage = stage.restarted().await;
    let open = stage.get("/v1/questions?kind=authorization").await.done();
    assert_eq!(open["questions"][0]["kind"], "authorization");
    let other = stage.get("/v1/questions?kind=input").await.done();
    assert_eq!(other["questions"], json!([]));
    answered(&stage, &id, "planner", json!("yes, please")).await.refused(422, "invalid_payload");
    answered(&stage, &id, "planner", json!({ "granted": false, "why": "not today" })).await.done();
    let claim = next(&stage, "coder").await;
    assert_eq!(claim["questions"][0]["answer"]["granted"], false);
}

async fn the_hard_deadline_stands_while_a_question_waits(stage: Stage) {
    let terms = json!({ "work_ms": 100 * SECOND, "losses": 3 });
    let id = stage.offer("coder", json!({ "terms": terms })).await;
    let held = stage.claimed(&id, "coder").await;
    asked(&stage, &held, json!({ "keep_ms": 300 * SECOND })).await;
    stage.pass(50 * SECOND).await;
    answered(&stage, &id, "planner", json!("main")).await.done();
    let claim = next(&stage, "coder").await;
    assert_eq!(claim["work_left_ms"], 50 * SECOND, "what is left of the attempt's time");
    let held = Held::of(&claim);
    asked(&stage, &held, json!({ "text": "And now?" })).await;
    let stage = stage.restarted().await;
    stage.pass(50 * SECOND).await;
    let shown = stage.show(&id).await;
    assert_eq!((&shown["state"], &shown["losses"]), (&json!("pending"), &json!(1)));
    answered(&stage, &id, "planner", json!("late")).await.refused(409, "no_question");

    // The end of the handoff itself, too.
    let id = stage.offer("tester", json!({ "expires_in_ms": 20 * SECOND })).await;
    let held = stage.claimed(&id, "tester").await;
    asked(&stage, &held, json!({})).await;
    stage.pass(20 * SECOND).await;
    assert_eq!(state(&stage, &id).await, "dead_lettered");
}

async fn a_cancel_reaches_a_question_at_once(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    asked(&stage, &held, json!({})).await;
    let stage = stage.restarted().await;
    let (waiting, path) = (stage.clone(), format!("/v1/handoffs/{id}/claim"));
    let wait = tokio::spawn(async move {
        waiting.post(&path, json!({ "agent": "coder", "wait_ms": 60_000 })).await
    });
    stage.post(&format!("/v1/handoffs/{id}/cancel"), json!({ "by": "planner" })).await.done();
    let refused = crate::support::in_time(wait).await.unwrap().refused(409, "already_claimed");
    assert_eq!(refused["details"]["state"], "cancelled");
    answered(&stage, &id, "planner", json!(1)).await.refused(409, "no_question");
    assert_eq!(stage.get("/v1/questions").await.done()["questions"], json!([]));
    assert_eq!(stage.show(&id).await["attempts"][0]["ended"], "cancelled");
}

async fn nobody_answers_its_own_question_and_the_first_answer_stands(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    answered(&stage, &id, "planner", json!(1)).await.refused(409, "no_question");
    let held = stage.claimed(&id, "coder").await;
    let reply = asked(&stage, &held, json!({})).await;
    answered(&stage, &id, "coder", json!("main")).await.refused(403, "not_permitted");
    let other = json!({ "by": "planner", "answer": 1, "question":
        "sha256:0000000000000000000000000000000000000000000000000000000000000000" });
    let path = format!("/v1/handoffs/{id}/answer");
    stage.post(&path, other).await.refused(409, "no_question");
    let this = json!({ "by": "planner", "answer": null, "question": reply["question"] });
    stage.post(&path, this).await.done();
    let stage = stage.restarted().await;
    answered(&stage, &id, "planner", json!("main")).await.refused(409, "already_answered");
    assert_eq!(next(&stage, "coder").await["questions"][0]["answer"], Value::Null);
}

async fn what_is_asked_can_be_listed_and_waited_for(stage: Stage) {
    let mut ids = Vec::new();
    for agent in ["coder", "tester"] {
        let id = stage.offer(agent, json!({})).await;
        let held = stage.claimed(&id, agent).await;
        asked(&stage, &held, json!({ "text": format!("{agent} asks") })).await;
        ids.push(id);
    }
    let stage = stage.restarted().await;
    let open = stage.get("/v1/questions").await.done();
    let texts: Vec<_> =
        open["questions"].as_array().unwrap().iter().map(|it| text(&it["text"])).collect();
    assert_eq!(texts, ["tester asks", "coder asks"], "the newest first");
    assert_eq!(open["questions"][0]["from_agent"], "planner");
    assert!(open["questions"][0]["answer_left_ms"].as_u64().unwrap() > 0);
    let first = stage.get("/v1/questions?limit=1").await.done();
    let rest = format!("/v1/questions?limit=1&before={}", text(&first["next"]));
    assert_eq!(stage.get(&rest).await.done()["questions"][0]["text"], "coder asks");
    let by_state = stage.get("/v1/handoffs?state=input_required").await.done();
    assert_eq!(by_state["handoffs"].as_array().unwrap().len(), 2);
    let wish = json!({ "handoffs": ids, "until": "input_required", "timeout_ms": 1 });
    assert_eq!(stage.post("/v1/wait", wish).await.done()["done"], true);
    let wish = json!({ "handoffs": ids, "timeout_ms": 0 });
    assert_eq!(stage.post("/v1/wait", wish).await.done()["done"], false);
}

async fn a_new_claim_brings_what_earlier_attempts_learned(stage: Stage) {
    let id = stage.offer("*review", json!({ "terms": { "backoff_ms": 0 } })).await;
    let held = stage.claimed(&id, "ann").await;
    stage.act(&held, "progress", json!({ "percent": 30, "note": "read the code" })).await.done();
    stage.act(&held, "progress", json!({ "note": "the tests need a database" })).await.done();
    stage.act(&held, "fail", failure("retryable")).await.done();
    let stage = stage.restarted().await;
    stage.pass(SECOND).await;
    let held = stage.claimed(&id, "bob").await;
    stage.act(&held, "progress", json!({ "note": "x".repeat(16_000) })).await.done();
    stage.pass(2 * LEASE).await;
    let claim = stage.claim_one(&id, "cat").await.done();
    let earlier = claim["earlier_attempts"].as_array().unwrap();
    assert_eq!(earlier.len(), 2);
    assert_eq!((&earlier[0]["agent"], &earlier[0]["attempt"]), (&json!("ann"), &json!(1)));
    assert_eq!(earlier[0]["ended"], "failed_retryable");
    assert_eq!(earlier[0]["failure"]["message"], "it broke");
    assert_eq!(earlier[0]["notes"][0]["percent"], 30);
    assert_eq!(earlier[0]["notes"][1]["note"], "the tests need a database");
    assert_eq!(
        (&earlier[1]["agent"], &earlier[1]["ended"]),
        (&json!("bob"), &json!("lost_silence"))
    );
    // A model reads it at the end of its prompt, within the tokens that it may have.
    let prompt = stage.get(&format!("/v1/handoffs/{id}/prompt")).await.done();
    let prompt = text(&prompt["prompt"]);
    assert!(prompt.contains("the tests need a database"), "{prompt}");
    let held = Held::of(&claim);
    for number in 0..40 {
        let note = json!({ "note": format!("{number} {}", "y".repeat(15_000)) });
        stage.act(&held, "progress", note).await.done();
    }
    stage.act(&held, "release", json!({})).await.done();
    let claim = stage.claim_one(&id, "dan").await.done();
    assert!(claim.to_string().len() < 100_000, "what a claim brings is bounded");
    assert!(claim["left_out"].as_u64().unwrap() > 0, "and says so");
}

async fn a_word_to_the_holder_comes_with_its_heartbeat_until_it_is_acknowledged(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let path = format!("/v1/handoffs/{id}/messages");
    let held = stage.claimed(&id, "coder").await;
    stage
        .post(&path, json!({ "by": "coder", "text": "to myself" }))
        .await
        .refused(403, "not_permitted");
    for text in ["change of plan", "change of plan", "stop after this file"] {
        stage.post(&path, json!({ "by": "planner", "text": text })).await.done();
    }
    let stage = stage.restarted().await;
    let beat = stage.act(&held, "heartbeat", json!({})).await.done();
    let texts: Vec<_> =
        beat["messages"].as_array().unwrap().iter().map(|it| text(&it["text"])).collect();
    assert_eq!(texts, ["change of plan", "stop after this file"], "what was repeated came once");
    let beat = stage.act(&held, "heartbeat", json!({ "acknowledge": 1 })).await.done();
    assert_eq!(beat["messages"][0]["text"], "stop after this file");
    let stage = stage.restarted().await;
    let said = stage.get(&path).await.done();
    assert_eq!(said["messages"][0]["acknowledged_by"], "coder");
    assert!(said["messages"][1].get("acknowledged_by").is_none());
    // Whoever comes next is told all of it: what an attempt before took note of is gone with that.
    stage.act(&held, "release", json!({})).await.done();
    let claim = next(&stage, "coder").await;
    assert_eq!(claim["messages"][0]["text"], "change of plan");
    assert_eq!(claim["messages"][0]["acknowledged_by"], "coder");
    assert_eq!(claim["messages"][1]["text"], "stop after this file");
    assert_eq!(claim["messages"].as_array().unwrap().len(), 2);
    let held = Held::of(&claim);
    stage.act(&held, "heartbeat", json!({ "acknowledge": 2 })).await.done();
    let beat = stage.act(&held, "heartbeat", json!({})).await.done();
    assert!(beat.get("messages").is_none());
    let story = stage.story(&id).await;
    assert_eq!(story.iter().filter(|kind| *kind == "message_sent").count(), 2);
    assert_eq!(story.iter().filter(|kind| *kind == "messages_acknowledged").count(), 2);
    for number in 0..32 {
        stage.post(&path, json!({ "by": "planner", "text": format!("{number}") })).await.done();
    }
    stage
        .post(&path, json!({ "by": "planner", "text": "one more" }))
        .await
        .refused(409, "too_many_messages");
    stage.completed(&held).await;
    stage
        .post(&path, json!({ "by": "planner", "text": "thanks" }))
        .await
        .refused(409, "wrong_state");
}

async fn pieces_of_work_outlive_their_holder(stage: Stage) {
    let id = stage.offer("*review", json!({})).await;
    let held = stage.claimed(&id, "ann").await;
    let piece = json!({ "name": "draft", "type": "text/markdown", "content": "# One" });
    stage.act(&held, "artifacts", piece.clone()).await.done();
    stage.act(&held, "artifacts", piece).await.done();
    let piece = json!({ "name": "draft", "type": "text/markdown", "content": "# Two" });
    stage.act(&held, "artifacts", piece).await.done();
    let data = json!({ "name": "found", "type": "application/json", "content": { "files": 3 } });
    stage.act(&held, "artifacts", data).await.done();
    let stage = stage.restarted().await;
    // Its holder vanishes; what it left is there for those who watch and for who comes next.
    stage.pass(LEASE).await;
    let path = format!("/v1/handoffs/{id}/artifacts");
    let listed = stage.get(&path).await.done();
    let listed = listed["artifacts"].as_array().unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["version"]), (&json!("draft"), &json!(2)));
    assert!(listed[0].get("content").is_none());
    let one = stage.get(&format!("{path}?name=draft")).await.done();
    assert_eq!(one["artifacts"][0]["content"], "# Two");
    stage.get(&format!("{path}?name=other")).await.refused(404, "artifact_not_found");
    let claim = next(&stage, "bob").await;
    assert_eq!(claim["artifacts"][1]["content"]["files"], 3);
    assert_eq!(claim["artifacts"][0]["by"], "ann");
    assert_eq!(stage.show(&id).await["artifacts"], json!(["draft", "found"]));
    let story = stage.story(&id).await;
    assert_eq!(story.iter().filter(|kind| *kind == "attached").count(), 3);
}

async fn pieces_of_work_are_bounded(stage: Stage) {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let piece = |name: &str, bytes: usize| json!({ "name": name, "type": "text/plain", "content": "x".repeat(bytes) });
    stage
        .act(&held, "artifacts", piece("large", 256 * 1024))
        .await
        .refused(422, "invalid_artifact");
    let untyped = json!({ "name": "one", "type": " ", "content": 1 });
    stage.act(&held, "artifacts", untyped).await.refused(422, "invalid_artifact");
    for number in 0..64 {
        stage.act(&held, "artifacts", piece(&number.to_string(), 10)).await.done();
    }
    let stage = stage.restarted().await;
    stage.act(&held, "artifacts", piece("one more", 10)).await.refused(422, "invalid_artifact");
    stage.act(&held, "artifacts", piece("63", 11)).await.done();
}

async fn work_that_is_put_back_waits_until_its_time_and_uses_up_no_attempt(stage: Stage) {
    let id = stage.offer("coder", json!({ "terms": { "attempts": 1 } })).await;
    let held = stage.claimed(&id, "coder").await;
    let wish = json!({ "for_ms": 60 * SECOND, "reason": "the service is away" });
    let moved = stage.act(&held, "put-back", wish.clone()).await.done();
    assert_eq!(moved["state"], "scheduled");
    stage.act(&held, "put-back", wish).await.done();
    let stage = stage.restarted().await;
    assert_eq!(next(&stage, "coder").await, Value::Null);
    assert_eq!(stage.task_of(&id).await["owner"], "planner");
    stage.pass(60 * SECOND).await;
    let claim = next(&stage, "coder").await;
    assert_eq!(claim["attempt"], 1);
    assert_eq!(claim["earlier_attempts"][0]["ended"], "put_back");
    let shown = stage.show(&id).await;
    assert_eq!((&shown["failures"], &shown["losses"]), (&json!(0), &json!(0)));
    let held = Held::of(&claim);
    let late = json!({ "for_ms": 48 * 3600 * SECOND });
    stage.act(&held, "put-back", late).await.refused(422, "deadline_passed");
    stage.act(&held, "put-back", json!({})).await.refused(400, "invalid_request");
    stage.completed(&held).await;
}
