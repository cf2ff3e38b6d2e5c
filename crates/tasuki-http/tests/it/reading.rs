// SPDX-License-Identifier: Apache-2.0
//! What a claim reads is what it read before, whatever happens meanwhile, also after a restart; and a
//! holder may read what its work needs.

use serde_json::{Value, json};

use crate::support::{Stage, everything, may, merged, on_both_stores, on_durable_stores, text};

mod durable {
    use super::*;

    on_durable_stores! {
        the_same_claim_reads_the_same_bytes_whatever_happens
    }

    async fn the_same_claim_reads_the_same_bytes_whatever_happens(stage: Stage) {
        super::the_same_claim_reads_the_same_bytes_whatever_happens(stage).await;
    }
}

on_both_stores! {
    the_next_claim_reads_what_the_last_one_did_not_know
    whatever_was_assembled_reads_the_same_for_every_claimer
}

mod closed {
    use super::*;

    on_both_stores! { closed:
        a_holder_reads_what_its_envelope_refers_to_and_no_more
        a_holder_reads_the_memories_of_its_task
        a_reference_opens_nothing_that_its_sender_could_not_read
    }

    async fn a_holder_reads_what_its_envelope_refers_to_and_no_more(stage: Stage) {
        super::a_holder_reads_what_its_envelope_refers_to_and_no_more(stage).await;
    }
    async fn a_holder_reads_the_memories_of_its_task(stage: Stage) {
        super::a_holder_reads_the_memories_of_its_task(stage).await;
    }
    async fn a_reference_opens_nothing_that_its_sender_could_not_read(stage: Stage) {
        super::a_reference_opens_nothing_that_its_sender_could_not_read(stage).await;
    }
}

async fn prompt(stage: &Stage, id: &str, query: &str) -> String {
    let read = stage.get(&format!("/v1/handoffs/{id}/prompt{query}")).await.done();
    text(&read["prompt"])
}

async fn the_same_claim_reads_the_same_bytes_whatever_happens(stage: Stage) {
    let id = stage.offer("coder", json!({ "budget": { "tokens": 9000 } })).await;
    let before = prompt(&stage, &id, "").await;
    assert!(before.contains("Budget left: 9000 tokens."), "{before}");
    let held = stage.claimed(&id, "coder").await;
    let first = prompt(&stage, &id, "").await;
    assert!(first.contains("Attempt 1, by coder;"), "{first}");
    let xml = prompt(&stage, &id, "?form=xml").await;
    // All that a claim is told goes on changing while it is held.
    let message = json!({ "by": "planner", "text": "stop after this file" });
    stage.post(&format!("/v1/handoffs/{id}/messages"), message).await.done();
    stage.act(&held, "progress", json!({ "note": "half" })).await.done();
    let call = json!({
        "from_agent": "coder", "task_id": stage.show(&id).await["task_id"], "intent": null,
        "control": "awaited",
    });
    let below = stage.offer("tester", call).await;
    let tester = stage.claimed(&below, "tester").await;
    let used = json!({ "input_tokens": 3000, "output_tokens": 1000 });
    let done = json!({ "payload": { "type": "done" }, "usage": used });
    stage.act(&tester, "complete", done).await.done();
    let manifest = json!({
        "agent_id": "coder", "role": "coder", "capabilities": [], "context_window": 300,
        "tokenizer": "cl100k_base",
    });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    assert_eq!(prompt(&stage, &id, "").await, first);
    assert_eq!(prompt(&stage, &id, "?form=xml").await, xml);
    let stage = stage.restarted().await;
    assert_eq!(prompt(&stage, &id, "").await, first, "after a restart");
    let log =
        stage.get(&format!("/v1/tasks/{}/events", text(&stage.show(&id).await["task_id"]))).await;
    assert_eq!(log.text().matches(r#""kind":"claim_told""#).count(), 1, "told once");
    stage.completed(&held).await;
    assert_eq!(prompt(&stage, &id, "").await, first, "when it is over");
    let apart = prompt(&stage, &id, "?payload_apart=true").await;
    assert!(!apart.contains("Payload") && apart.contains("Attempt 1, by coder;"), "{apart}");
}

async fn the_next_claim_reads_what_the_last_one_did_not_know(stage: Stage) {
    let id = stage.offer("*review", json!({ "budget": { "tokens": 9000 } })).await;
    let held = stage.claimed(&id, "first").await;
    let one = prompt(&stage, &id, "").await;
    let message = json!({ "by": "planner", "text": "look at the tests, too" });
    stage.post(&format!("/v1/handoffs/{id}/messages"), message).await.done();
    stage.act(&held, "progress", json!({ "note": "read the diff" })).await.done();
    stage.act(&held, "release", json!({})).await.done();
    let between = prompt(&stage, &id, "").await;
    assert!(between.contains("look at the tests, too"), "{between}");
    let held = stage.claimed(&id, "second").await;
    let two = prompt(&stage, &id, "").await;
    assert_ne!(one, two);
    for new in
        ["Attempt 2, by second;", "look at the tests, too", "read the diff", "attempt 1 by first"]
    {
        assert!(two.contains(new) && !one.contains(new), "{new}: {two}");
    }
    stage.completed(&held).await;
    assert_eq!(prompt(&stage, &id, "").await, two);
}

async fn whatever_was_assembled_reads_the_same_for_every_claimer(stage: Stage) {
    for number in 0..24 {
        let lines = (0..number * 2).map(|at| format!("Line {at} of note {number}: INV-{at:04}.\n"));
        let memory = json!({
            "by": "planner", "id": format!("ms-{number}"), "scope": { "project": "p" },
            "text": format!("Note {number} about rounding.\n{}", lines.collect::<String>()),
        });
        stage.post("/v1/memories", memory).await.done();
    }
    for (name, tokenizer, window) in
        [("small", "cl100k_base", 700), ("large", "o200k_base", 90_000)]
    {
        let manifest = json!({
            "agent_id": name, "capabilities": [{ "name": "review" }], "tokenizer": tokenizer,
            "context_window": window,
        });
        stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    }
    let mut cut = 0;
    for strategy in ["priority", "lazy", "summary_refs", "full"] {
        for budget in [Some(600), Some(1500), Some(6000), None] {
            let wish = json!({
                "from_agent": "planner", "intent": "Fix the rounding.", "project": "p",
                "tokenizer": "o200k_base", "constraints": ["Never change stored invoices."],
                "ask": "where are cents rounded", "strategy": strategy, "max_tokens": budget,
            });
            let put = stage.post("/v1/assemble", wish).await;
            if put.status == 422 {
                assert_eq!(strategy, "full", "everything, or nothing");
                continue;
            }
            let put = put.done();
            let preview = text(&put["prompt"]);
            for claimer in ["small", "large"] {
                let offer = json!({
                    "from_agent": "planner", "to": { "capability": "review" }, "project": "p",
                    "payload": { "type": "request" }, "intent": "Fix the rounding.",
                });
                let offer = merged(offer, put["offer"].clone());
                let id = text(&stage.post("/v1/handoffs", offer).await.done()["handoff_id"]);
                let claim = json!({ "agent": claimer, "capabilities": ["review"] });
                let claim = stage.post(&format!("/v1/handoffs/{id}/claim"), claim).await.done();
                assert_eq!(text(&claim["handoff_id"]), id);
                let read = stage.get(&format!("/v1/handoffs/{id}/prompt")).await.done();
                let said = text(&read["prompt"]);
                let tokens = read["token_count"].as_u64().unwrap();
                assert!(read["bound"].as_u64().is_none_or(|bound| tokens <= bound), "{read}");
                let shortened = read["shortened"] == json!(true);
                cut += u32::from(shortened);
                assert_eq!(
                    said.starts_with(&preview),
                    !shortened,
                    "{strategy} {budget:?} {claimer}"
                );
                assert!(said.contains("Never change stored invoices."));
                if claimer == "large" {
                    assert!(!shortened, "{strategy} {budget:?}: there is room");
                }
                let again = stage.get(&format!("/v1/handoffs/{id}/prompt")).await.done();
                assert_eq!(again["prompt"], read["prompt"]);
                let held = crate::support::Held::of(&claim);
                stage.completed(&held).await;
            }
        }
    }
    assert!(cut > 0, "somebody had less room");
}

fn memory(by: &str, id: &str, scope: &Value) -> Value {
    json!({ "by": by, "id": id, "text": format!("What {id} says."), "scope": scope })
}

async fn a_holder_reads_what_its_envelope_refers_to_and_no_more(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let coder = admin.enroll("coder", may(&["claim", "complete", "send"])).await;
    for id in ["ms-named", "ms-passed", "ms-other"] {
        let memory = memory("planner", id, &json!({ "project": "p" }));
        planner.post("/v1/memories", memory).await.done();
    }
    let said = json!({
        "memory_refs": [{ "id": "ms-named" }],
        "context": [{ "id": "ms-passed", "form": "stub" }],
    });
    let id = planner.offer("coder", said).await;
    let show = async |id: &str, query: &str| coder.get(&format!("/v1/memories/{id}{query}")).await;
    show("ms-named", "").await.refused(404, "memory_not_found");
    let held = coder.claimed(&id).await;
    for query in [String::new(), format!("?handoff={id}")] {
        for name in ["ms-named", "ms-passed"] {
            let known = show(name, &query).await.done();
            assert_eq!(text(&known["text"]), format!("What {name} says."));
        }
        show("ms-other", &query).await.refused(404, "memory_not_found");
    }
    let put = json!({ "from_agent": "coder", "task_id": text(&stage_task(&planner, &id).await), "ask": "go on" });
    let put = coder.post("/v1/assemble", put).await.done();
    assert!(text(&put["prompt"]).contains("What ms-named says."), "{put}");
    coder.completed(&held).await;
    show("ms-named", "").await.refused(404, "memory_not_found");
    show("ms-named", &format!("?handoff={id}")).await.refused(404, "memory_not_found");
}

async fn stage_task(who: &crate::support::Client, id: &str) -> Value {
    who.get(&format!("/v1/handoffs/{id}")).await.done()["task_id"].clone()
}

/// The newest handoff to somebody.
async fn newest_for(who: &crate::support::Client, agent: &str) -> String {
    let shown = who.get(&format!("/v1/handoffs?to_agent={agent}")).await.done();
    text(&shown["handoffs"][0]["handoff_id"])
}

async fn a_holder_reads_the_memories_of_its_task(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let coder = admin.enroll("coder", may(&["claim", "complete", "write_memory"])).await;
    let id = planner.offer("coder", json!({})).await;
    let task = stage_task(&planner, &id).await;
    planner
        .post("/v1/memories", memory("planner", "ms-task", &json!({ "task": task })))
        .await
        .done();
    let listed = async || {
        let found = coder.get(&format!("/v1/memories?task={}", text(&task))).await.done();
        found["memories"].as_array().unwrap().len()
    };
    assert_eq!(listed().await, 0);
    let held = coder.claimed(&id).await;
    assert_eq!(listed().await, 1);
    coder.get("/v1/memories/ms-task").await.done();
    // What it writes while it works on one thing belongs to that.
    let own = json!({ "by": "coder", "text": "Cents are rounded twice." });
    let written = coder.post("/v1/memories", own.clone()).await.done();
    assert_eq!(written["scope"]["task"], task);
    assert_eq!(listed().await, 2);
    coder.completed(&held).await;
    let later = coder.post("/v1/memories", own).await.done();
    assert_eq!(later["scope"], json!({ "agent": "coder" }));
}

async fn a_reference_opens_nothing_that_its_sender_could_not_read(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let thief = admin.enroll("thief", may(&["claim", "complete", "send"])).await;
    let friend = admin.enroll("friend", may(&["claim", "complete", "send"])).await;
    let secret = memory("planner", "ms-secret", &json!({ "project": "p" }));
    planner.post("/v1/memories", secret).await.done();
    let refs = json!({ "memory_refs": [{ "id": "ms-secret" }] });
    let id = thief.offer("friend", refs.clone()).await;
    let held = friend.claimed(&id).await;
    friend.get("/v1/memories/ms-secret").await.refused(404, "memory_not_found");
    friend.get(&format!("/v1/memories/m1?handoff={id}")).await.refused(404, "memory_not_found");
    // Nor does it along the chain.
    let next = json!({ "to": { "agent": "thief" }, "payload": { "type": "t" } });
    let next = merged(next, refs.clone());
    friend
        .act(&held, "complete", json!({ "payload": { "type": "done" }, "follow_ups": [next] }))
        .await
        .done();
    let back = newest_for(&planner, "thief").await;
    let held = thief.claimed(&back).await;
    thief.get("/v1/memories/ms-secret").await.refused(404, "memory_not_found");
    thief.completed(&held).await;
    // What somebody who may read it referred to goes on along it.
    let id = planner.offer("thief", refs.clone()).await;
    let held = thief.claimed(&id).await;
    thief.get("/v1/memories/ms-secret").await.done();
    let hop = json!({ "to": { "agent": "friend" }, "payload": { "type": "t" } });
    let done = json!({ "payload": { "type": "done" }, "follow_ups": [merged(hop, refs)] });
    thief.act(&held, "complete", done).await.done();
    let next = newest_for(&planner, "friend").await;
    friend.claimed(&next).await;
    friend.get("/v1/memories/ms-secret").await.done();
    thief.get("/v1/memories/ms-secret").await.refused(404, "memory_not_found");
}
