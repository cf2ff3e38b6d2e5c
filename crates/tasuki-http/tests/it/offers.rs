// SPDX-License-Identifier: Apache-2.0
//! Offering: what is stored is what was sent, once, whatever is repeated.

use futures::future::join_all;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tasuki_core::event::Key;
use tasuki_core::{Body, Terms, canonical};
use tasuki_engine::operations::asked;

use crate::support::{Stage, merged, offer, on_both_stores, text, texts};

on_both_stores! {
    a_hundred_sends_with_one_key_make_one_handoff_and_get_one_reply
    the_same_key_with_another_body_conflicts_and_stores_nothing
    a_batch_stands_but_for_the_part_that_fails
    the_envelope_is_at_its_address_wherever_it_is_read
    the_intent_arrives_byte_for_byte_at_every_hop
    only_the_owner_hands_a_task_on_and_only_once_at_a_time
    a_call_is_a_task_below_the_callers_own
}

async fn a_hundred_sends_with_one_key_make_one_handoff_and_get_one_reply(stage: Stage) {
    let sent = offer("coder", json!({ "idempotency_key": "order-7" }));
    let sends = (0..100).map(|_| {
        let (stage, sent) = (stage.clone(), sent.clone());
        tokio::spawn(async move { stage.post("/v1/handoffs", sent).await })
    });
    let replies: Vec<_> = join_all(sends).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(replies.iter().filter(|reply| reply.status == 201).count(), 1);
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 99);
    assert!(replies.iter().all(|reply| reply.bytes == replies[0].bytes));
    assert_eq!(stage.store.head().0, 1);

    let held = stage.claimed(replies[0].body["handoff_id"].as_str().unwrap(), "coder").await;
    stage.completed(&held).await;
    let much_later = stage.post("/v1/handoffs", sent).await;
    assert_eq!((much_later.status, &much_later.bytes), (200, &replies[0].bytes));
}

async fn the_same_key_with_another_body_conflicts_and_stores_nothing(stage: Stage) {
    let sent = offer("coder", json!({ "idempotency_key": "order-7" }));
    stage.post("/v1/handoffs", sent.clone()).await.done();
    let head = stage.store.head();
    for change in [
        json!({ "payload": { "type": "other" } }),
        json!({ "priority": 6 }),
        json!({ "intent": "Add GET /users/{id}. " }),
        json!({ "to": { "capability": "coder" } }),
    ] {
        let reply = stage.post("/v1/handoffs", merged(sent.clone(), change)).await;
        let problem = reply.refused(409, "idempotency_conflict");
        assert_eq!(problem["details"]["idempotency_key"], "order-7");
    }
    let task = json!({ "from_agent": "planner", "intent": "x", "idempotency_key": "order-7" });
    stage.post("/v1/tasks", task).await.refused(409, "idempotency_conflict");
    assert_eq!(stage.store.head(), head);
    let own = merged(sent, json!({ "from_agent": "someone-else" }));
    assert_eq!(stage.post("/v1/handoffs", own).await.status, 201, "a key is its agent's own");
}

async fn a_batch_stands_but_for_the_part_that_fails(stage: Stage) {
    let batch = json!({ "offers": [
        offer("coder", json!({ "idempotency_key": "a" })),
        offer("coder", json!({ "intent": null })),
        offer("coder", json!({ "priority": 10 })),
        offer("coder", json!({ "idempotency_key": "a" })),
        offer("coder", json!({ "task_id": "task_00000000000000000000000007" })),
        offer("tester", json!({})),
    ] });
    let results = stage.post("/v1/handoffs/batch", batch).await.done()["results"].take();
    let codes: Vec<_> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["error"]["code"].as_str().unwrap_or("stored"))
        .collect();
    let expected =
        ["stored", "invalid_request", "invalid_terms", "stored", "task_not_found", "stored"];
    assert_eq!(codes, expected);
    assert_eq!(results[0], results[3]);
    assert_eq!(stage.store.head().0, 2);
    let stats = stage.get("/v1/stats").await.done();
    assert_eq!((&stats["commits"], &stats["events"]), (&json!(1), &json!(2)), "one commit for all");
    for wrong in [json!({ "offers": [] }), json!({ "offers": vec![offer("a", json!({})); 1001] })] {
        stage.post("/v1/handoffs/batch", wrong).await.refused(400, "invalid_request");
    }
}

#[derive(Deserialize)]
struct WithEnvelope {
    envelope: Box<RawValue>,
}

async fn the_envelope_is_at_its_address_wherever_it_is_read(stage: Stage) {
    let payload = json!({ "type": "code", "é\u{1F980}": [1.5, -0.0, 1e-7, true, null, "\u{7}"] });
    let sent = offer("coder", json!({ "payload": payload, "metadata": { "z": 1, "a": {} } }));
    let offered = stage.post("/v1/handoffs", sent).await.done();
    let id = text(&offered["handoff_id"]);
    let address = text(&offered["envelope"]);
    assert_eq!(stage.show(&id).await["envelope"], address);

    let read = stage.get(&format!("/v1/handoffs/{id}/envelope")).await;
    let looked = stage.post("/v1/claims/peek", json!({ "agent": "coder" })).await;
    let claimed = stage.claim_one(&id, "coder").await;
    let peeked: Value = looked.body["waiting"][0].clone();
    let claimed: WithEnvelope = serde_json::from_slice(&claimed.bytes).unwrap();
    for served in [read.text(), claimed.envelope.get()] {
        assert_eq!(canonical::hash(served.as_bytes()).to_string(), address, "as it is served");
    }
    for read in [&read.body, &peeked["envelope"]] {
        assert_eq!(Body::of(read).hash.to_string(), address, "as anybody makes it canonical");
    }
    assert_eq!(read.body["envelope_version"], tasuki_core::envelope::VERSION);
}

async fn the_intent_arrives_byte_for_byte_at_every_hop(stage: Stage) {
    let intent = "  Fügé\r\n\tzwei  Zeilen \u{202e}an\u{0301}\u{0}.\u{1F9F5}\n\n  ";
    let offered = stage.post("/v1/handoffs", offer("a", json!({ "intent": intent }))).await.done();
    let mut id = text(&offered["handoff_id"]);
    let mut previous = Value::Null;
    for (hop, (agent, next)) in [("a", "b"), ("b", "c"), ("c", "")].into_iter().enumerate() {
        let claimed = stage.claim_one(&id, agent).await.done();
        let envelope = &claimed["envelope"];
        assert_eq!(envelope["intent"], intent);
        assert_eq!(envelope["hop"], hop);
        assert_eq!(envelope.get("previous").cloned().unwrap_or_default(), previous);
        previous = stage.show(&id).await["envelope"].take();
        if !next.is_empty() {
            let held = crate::support::Held::of(&claimed);
            let hop = json!({ "to": { "agent": next }, "payload": { "type": "next" } });
            let result = json!({ "payload": { "type": "done" }, "follow_ups": [hop] });
            stage.act(&held, "complete", result).await.done();
            id = text(&stage.task_of(&id).await["live_handoff"]);
        }
    }
}

async fn only_the_owner_hands_a_task_on_and_only_once_at_a_time(stage: Stage) {
    let open = json!({ "from_agent": "planner", "intent": "Add it." });
    let task = text(&stage.post("/v1/tasks", open).await.done()["task_id"]);
    let on = |from: &str, intent: Value| {
        let sent = json!({ "task_id": task, "from_agent": from, "intent": intent });
        stage.post("/v1/handoffs", offer("coder", sent))
    };
    on("coder", Value::Null).await.refused(403, "not_owner");
    on("planner", "Add it!".into()).await.refused(409, "intent_altered");
    let first = text(&on("planner", "Add it.".into()).await.done()["handoff_id"]);
    let problem = on("planner", Value::Null).await.refused(409, "handoff_open");
    assert_eq!(problem["details"]["handoff_id"], first);
    let held = stage.claimed(&first, "coder").await;
    on("planner", Value::Null).await.refused(403, "not_owner");
    stage.completed(&held).await;
    on("coder", Value::Null).await.refused(409, "task_finished");
}

async fn a_call_is_a_task_below_the_callers_own(stage: Stage) {
    let open = json!({ "from_agent": "planner", "intent": "Add it.", "correlation_id": "c-1" });
    let task = text(&stage.post("/v1/tasks", open).await.done()["task_id"]);
    let call = json!({ "task_id": task, "intent": null, "control": "awaited" });
    let id = stage.offer("coder", call).await;
    let below = stage.task_of(&id).await;
    assert_eq!(texts(&below, ["parent_task_id", "correlation_id"]), [&*task, "c-1"]);
    stage.claimed(&id, "coder").await;
    let own = stage.get(&format!("/v1/tasks/{task}")).await.done();
    assert_eq!(texts(&own, ["owner", "state"]), ["planner", "open"]);
    assert_eq!(own["children"][0]["task_id"], below["task_id"]);
    assert_eq!(stage.story(&id).await, ["call_offered", "claimed"]);
}

/// What a sender's double became on its way to the receiver.
#[test]
fn every_number_arrives_as_it_was_sent() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stage = runtime.block_on(Stage::volatile());
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() };
    let numbers = prop::collection::vec(-1e15_f64..1e15, 50);
    let small = prop::collection::vec(-1.0_f64..1.0, 50);
    proptest!(config, |(numbers in numbers, small in small)| {
        let sent: Vec<f64> = numbers.into_iter().chain(small).collect();
        let payload = json!({ "payload": { "type": "numbers", "numbers": sent } });
        let arrived = runtime.block_on(async {
            let id = stage.offer("coder", payload).await;
            stage.get(&format!("/v1/handoffs/{id}/envelope")).await.bytes
        });
        let text = std::str::from_utf8(&arrived).unwrap();
        let numbers = text.split("\"numbers\":[").nth(1).unwrap().split(']').next().unwrap();
        let arrived: Vec<f64> = numbers.split(',').map(|n| n.parse().unwrap()).collect();
        prop_assert_eq!(arrived, sent);
    });
}

#[tokio::test]
async fn a_key_that_was_stored_by_the_version_before_is_no_conflict() {
    let stage = Stage::volatile().await;
    let sent = offer("coder", json!({ "terms": { "attempts": 2 }, "idempotency_key": "order-7" }));
    let body: tasuki_protocol::Offer = serde_json::from_value(sent.clone()).unwrap();
    // As it was hashed up to 0.1: with the broker's defaults, in the engine's own form.
    let mut before = asked::offer(body, Terms::default());
    let request = Body::of(&before).hash;
    before.key = Some(Key { key: "order-7".parse().unwrap(), request });
    let first = stage.engine.offer(before).await.unwrap().handoff.id;
    let again = stage.post("/v1/handoffs", sent.clone()).await;
    assert_eq!((again.status, text(&again.body["handoff_id"])), (200, first.to_string()));
    let batch = stage.post("/v1/handoffs/batch", json!({ "offers": [sent] })).await.done();
    assert_eq!(batch["results"][0]["handoff_id"], first.to_string());
}
