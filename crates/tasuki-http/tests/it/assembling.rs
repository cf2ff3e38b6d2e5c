// SPDX-License-Identifier: Apache-2.0
//! What a receiver gets to read, within its budget, from memories and from what the task carries.

use std::sync::Arc;

use serde_json::{Value, json};
use tasuki_core::assembly::Profiles;
use tasuki_engine::Settings;

use crate::support::{Stage, merged, on_both_stores, text};

on_both_stores! {
    what_must_travel_travels_and_the_rest_as_far_as_it_fits
    a_budget_that_is_too_small_is_refused_with_what_it_would_take
    the_manifest_of_the_receiver_says_how_much_it_reads
    what_was_put_together_can_be_offered_as_it_is
    a_memory_that_cannot_be_read_becomes_a_gap
    no_metadata_is_ever_in_a_prompt
    a_secret_is_refused_before_it_is_stored
    what_was_trimmed_at_one_hop_is_there_again_at_the_next
    what_a_sender_cannot_look_up_goes_on_in_the_words_it_was_passed
    a_fetch_of_what_was_trimmed_is_counted_where_it_was_trimmed
    a_receiver_with_less_room_reads_less_of_it_and_every_pin
}

async fn remember(stage: &Stage, id: &str, words: &str, change: Value) {
    let memory = json!({ "by": "planner", "id": id, "text": words, "scope": { "project": "p" } });
    stage.post("/v1/memories", merged(memory, change)).await.done();
}

fn wish(change: Value) -> Value {
    let base = json!({
        "from_agent": "planner", "intent": "Fix the rounding of invoices.", "project": "p",
        "tokenizer": "o200k_base", "constraints": ["Never change stored invoices."],
        "ask": "find where cents are rounded",
    });
    merged(base, change)
}

async fn fill(stage: &Stage) {
    remember(stage, "ms-pin", "The rate is 19 % from 2027-01-01.", json!({ "pinned": true })).await;
    for number in 0..30 {
        let about = format!(
            "Note {number}: invoice INV-{number:04} was rounded in src/billing/round.rs at line {number}. \
             The customer asked why cents are missing. Support answered the same day. \
             Nothing else was found out about it."
        );
        remember(stage, &format!("ms-{number}"), &about, json!({})).await;
    }
}

async fn what_must_travel_travels_and_the_rest_as_far_as_it_fits(stage: Stage) {
    fill(&stage).await;
    let mut last = 0;
    for budget in [300, 600, 1200, 100_000] {
        let put = stage.post("/v1/assemble", wish(json!({ "max_tokens": budget }))).await.done();
        let tokens = put["token_count"].as_u64().unwrap();
        assert!(tokens <= budget, "{tokens} of {budget}");
        assert!(tokens >= last, "more room, more to read");
        last = tokens;
        let prompt = text(&put["prompt"]);
        for must in [
            "Fix the rounding of invoices.",
            "Never change stored invoices.",
            "find where cents are rounded",
            "The rate is 19 % from 2027-01-01.",
        ] {
            assert!(prompt.contains(must), "{must} is missing at {budget}: {prompt}");
        }
        let receipt = &put["receipt"];
        let named: usize = ["kept", "demoted", "dropped"]
            .iter()
            .map(|list| {
                let list = receipt[*list].as_array().unwrap();
                list.iter().filter(|one| text(&one["id"]).starts_with("ms-")).count()
            })
            .sum();
        assert_eq!(named, 31, "everything is named: {receipt}");
    }
    let lazy = wish(json!({ "strategy": "lazy" }));
    let lazy = stage.post("/v1/assemble", lazy).await.done();
    let rungs = lazy["receipt"]["kept"].as_array().unwrap().clone();
    let stubs = rungs.iter().filter(|kept| kept["rung"] == "stub").count();
    assert_eq!(stubs, 30, "{}", lazy["receipt"]);
}

async fn a_budget_that_is_too_small_is_refused_with_what_it_would_take(stage: Stage) {
    fill(&stage).await;
    let problem = stage.post("/v1/assemble", wish(json!({ "max_tokens": 10 }))).await;
    let problem = problem.refused(422, "budget_too_small");
    let needed = problem["details"]["needed"].as_u64().unwrap();
    stage.post("/v1/assemble", wish(json!({ "max_tokens": needed }))).await.done();
    let less = wish(json!({ "max_tokens": needed - 1 }));
    stage.post("/v1/assemble", less).await.refused(422, "budget_too_small");
}

async fn the_manifest_of_the_receiver_says_how_much_it_reads(stage: Stage) {
    fill(&stage).await;
    let manifest = json!({
        "agent_id": "reviewer", "role": "reviewer", "capabilities": [], "context_window": 900,
        "tokenizer": "cl100k_base", "reserves": { "system_prompt": 100, "work": 200 },
    });
    stage.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    let put = wish(json!({ "to_agent": "reviewer", "tokenizer": null }));
    let put = stage.post("/v1/assemble", put).await.done();
    let receipt = &put["receipt"];
    assert_eq!(receipt["budget"], 900);
    assert_eq!(receipt["tokenizer"], "cl100k_base");
    assert!(put["token_count"].as_u64().unwrap() <= 600, "{receipt}");
}

async fn what_was_put_together_can_be_offered_as_it_is(stage: Stage) {
    fill(&stage).await;
    let put = stage.post("/v1/assemble", wish(json!({ "max_tokens": 800 }))).await.done();
    let offer = merged(
        json!({
            "from_agent": "planner", "to": { "agent": "coder" }, "payload": { "type": "request" },
            "intent": "Fix the rounding of invoices.",
        }),
        put["offer"].clone(),
    );
    let offered = stage.post("/v1/handoffs", offer).await.done();
    let id = text(&offered["handoff_id"]);
    let envelope = stage.get(&format!("/v1/handoffs/{id}/envelope")).await.done();
    assert_eq!(envelope["context"], put["envelope"]["context"]);
    assert_eq!(envelope["context_manifest"], put["receipt"]["manifest_hash"]);
    assert_eq!(envelope["constraints"][0]["text"], "Never change stored invoices.");
    let read = async |query: &str| {
        let prompt = stage.get(&format!("/v1/handoffs/{id}/prompt{query}")).await.done();
        (text(&prompt["prompt"]), prompt)
    };
    let (prompt, whole) = read("").await;
    assert!(prompt.starts_with(&text(&put["prompt"])), "{prompt}");
    assert!(whole["token_count"].as_u64() <= Some(800), "within what the sender said: {whole}");
    assert_eq!(whole["assembled_tokens"], put["token_count"]);
    assert_eq!((&whole["exact"], &whole["bound"]), (&json!(true), &json!(800)));
    assert!(prompt.contains("§ From planner: request, hop 0;"), "{prompt}");
    // The names in the text are the ids of the envelope, and can be asked for.
    let first = text(&envelope["context"][0]["id"]);
    assert_eq!(whole["names"]["m1"], json!(first));
    let named = stage.get(&format!("/v1/memories/m1?handoff={id}")).await.done();
    assert_eq!(text(&named["memory_id"]), first);
    let (everything, all) = read("?all=true").await;
    assert!(everything.contains("Never change stored invoices.") && all["bound"].is_null());
    let (_, messages) = read("?form=messages").await;
    let said = messages["messages"].as_array().unwrap();
    assert_eq!(said[0]["role"], "system");
    let joined = text(&said[0]["content"]) + &text(&said[1]["content"]);
    assert_eq!(joined, prompt, "the same text in two messages");
    let (xml, _) = read("?form=xml").await;
    assert!(xml.contains("</text§>") && xml.contains("Never change stored invoices."));
    let (other, less) = read("?tokenizer=cl100k_base&max_tokens=400").await;
    assert!(less["token_count"].as_u64() <= Some(400) && less["shortened"] == json!(true));
    assert!(other.contains("shortened for a reader"), "{other}");
    // The next hop inherits what binds, and may put together its own.
    let held = stage.claimed(&id, "coder").await;
    let next = json!({
        "from_agent": "coder", "task_id": offered["task_id"], "project": "p",
        "tokenizer": "o200k_base", "ask": "test it", "max_tokens": 800,
    });
    let next = stage.post("/v1/assemble", next).await.done();
    assert_eq!(next["envelope"]["constraints"], envelope["constraints"]);
    stage.completed(&held).await;
}

async fn a_memory_that_cannot_be_read_becomes_a_gap(stage: Stage) {
    remember(&stage, "ms-there", "There.", json!({})).await;
    let refs = json!([{ "id": "ms-there" }, { "id": "ms-gone" }]);
    let put = wish(json!({ "memory_refs": refs, "include_recent": 0 }));
    let put = stage.post("/v1/assemble", put).await.done();
    assert_eq!(put["receipt"]["unresolved"][0]["id"], "ms-gone");
    assert_eq!(put["receipt"]["completeness_per_mille"], 500);
    assert_eq!(put["envelope"]["gaps"][0]["reference"], "ms-gone");
}

async fn no_metadata_is_ever_in_a_prompt(stage: Stage) {
    let secretive = json!({ "metadata": { "cost": "monitoring-only-4711" } });
    let id = stage.offer("coder", secretive).await;
    let prompt = stage.get(&format!("/v1/handoffs/{id}/prompt")).await.done();
    assert!(!text(&prompt["prompt"]).contains("monitoring-only-4711"));
}

async fn a_secret_is_refused_before_it_is_stored(stage: Stage) {
    let head = stage.store.head();
    let key = format!("-----BEGIN {} PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END", "RSA");
    let offer = crate::support::offer("coder", json!({ "payload": { "type": "t", "note": key } }));
    let problem = stage.post("/v1/handoffs", offer).await.refused(422, "secret_found");
    assert!(!problem.to_string().contains("MIIEpAIBAAKCAQEA"), "it is not repeated");
    assert_eq!(stage.store.head(), head);
}

/// Offers what was put together within a budget. Returns the handoff, and what was put together.
async fn put_and_offer(stage: &Stage, to: &str, change: Value) -> (String, Value) {
    let put = stage.post("/v1/assemble", wish(change)).await.done();
    let offer = json!({
        "from_agent": "planner", "to": { "agent": to }, "payload": { "type": "request" },
        "intent": "Fix the rounding of invoices.",
    });
    let offered = stage.post("/v1/handoffs", merged(offer, put["offer"].clone())).await.done();
    (text(&offered["handoff_id"]), put)
}

async fn what_was_trimmed_at_one_hop_is_there_again_at_the_next(stage: Stage) {
    fill(&stage).await;
    let (id, put) = put_and_offer(&stage, "coder", json!({ "max_tokens": 400 })).await;
    let dropped = put["receipt"]["dropped"].as_array().unwrap();
    let gone = dropped.iter().find(|one| text(&one["id"]).starts_with("ms-")).unwrap();
    let gone = text(&gone["id"]);
    assert!(text(&put["prompt"]).contains("Not in this text: "), "{gone} is not, and that is said");
    let held = stage.claimed(&id, "coder").await;
    let task = &stage.show(&id).await["task_id"];
    // The coder names no project and looks for nothing itself.
    let next = json!({
        "from_agent": "coder", "task_id": task, "tokenizer": "o200k_base", "include_recent": 0,
        "include_pins": false, "ask": "test it",
    });
    let put = stage.post("/v1/assemble", next).await.done();
    let kept = put["receipt"]["kept"].as_array().unwrap();
    let back = kept.iter().find(|one| text(&one["id"]) == gone).unwrap();
    assert_eq!(back["rung"], "full");
    assert_eq!(kept.len(), 31, "all of it: {}", put["receipt"]);
    assert!(text(&put["prompt"]).contains("The rate is 19 % from 2027-01-01."));
    stage.completed(&held).await;
}

async fn what_a_sender_cannot_look_up_goes_on_in_the_words_it_was_passed(stage: Stage) {
    let passed = json!({
        "context": [
            { "id": "note-1", "form": "full", "title": "A note", "text": "Cents live in round.rs." },
            { "id": "note-2", "form": "stub", "title": "Not passed" },
        ],
    });
    let id = stage.offer("coder", passed).await;
    let held = stage.claimed(&id, "coder").await;
    let task = &stage.show(&id).await["task_id"];
    let next = json!({ "from_agent": "coder", "task_id": task, "tokenizer": "o200k_base" });
    let put = stage.post("/v1/assemble", next).await.done();
    assert!(text(&put["prompt"]).contains("Cents live in round.rs."), "{put}");
    assert_eq!(put["envelope"]["context"][0]["text"], "Cents live in round.rs.");
    assert_eq!(put["receipt"]["unresolved"][0]["id"], "note-2");
    assert_eq!(put["receipt"]["unresolved"].as_array().unwrap().len(), 1);
    stage.completed(&held).await;
}

async fn a_fetch_of_what_was_trimmed_is_counted_where_it_was_trimmed(stage: Stage) {
    fill(&stage).await;
    let (id, put) = put_and_offer(&stage, "coder", json!({ "max_tokens": 500 })).await;
    let ids = |list: &str| -> Vec<String> {
        let named = put["receipt"][list].as_array().unwrap().iter().map(|one| text(&one["id"]));
        named.filter(|id| id.starts_with("ms-")).collect()
    };
    let (whole, trimmed) = (ids("kept"), ids("dropped"));
    let fetch = |memory: String, more: &'static str| {
        let (stage, path) = (&stage, format!("/v1/memories/{memory}?handoff={id}{more}"));
        async move { stage.get(&path).await }
    };
    fetch(trimmed[0].clone(), "").await.done();
    let regret = async |stage: &Stage| stage.show(&id).await["trim_regret"].clone();
    assert!(regret(&stage).await.is_null(), "nobody has received it yet");
    let held = stage.claimed(&id, "coder").await;
    let prompt = stage.get(&format!("/v1/handoffs/{id}/prompt")).await.done();
    let hints = prompt["fetch"].as_array().unwrap();
    let hint = format!("/v1/memories/{}?detail=full&handoff={id}", trimmed[0]);
    assert!(hints.contains(&json!(hint)), "{hints:?}");
    for _ in 0..2 {
        stage.get(&hint).await.done();
        fetch(trimmed[1].clone(), "&detail=summary").await.done();
        fetch(whole[0].clone(), "").await.done();
    }
    stage.get(&format!("/v1/memories/{}", trimmed[2])).await.done();
    assert_eq!(regret(&stage).await, json!([trimmed[0], trimmed[1]]));
    let unknown = "handoff_00000000000000000000000abc";
    let path = format!("/v1/memories/{}?handoff={unknown}", trimmed[0]);
    stage.get(&path).await.refused(404, "handoff_not_found");
    stage.completed(&held).await;
    fetch(trimmed[2].clone(), "").await.done();
    assert_eq!(regret(&stage).await.as_array().unwrap().len(), 3, "after the end, too");
    let task = text(&stage.show(&id).await["task_id"]);
    let log = stage.get(&format!("/v1/tasks/{task}/events")).await;
    assert_eq!(log.text().matches(r#""kind":"trim_fetched""#).count(), 3);
}

#[tokio::test]
async fn profiles_of_the_operators_own_say_what_a_role_gets() {
    let own = r#"{"auditor": {"leave_out": {"tags": ["marketing"]}}}"#;
    let profiles = Arc::new(Profiles::from_json(own).unwrap().over_standard());
    let stage = Stage::set(Settings { profiles, ..Settings::default() }).await;
    remember(&stage, "ms-1", "The campaign begins in May.", json!({ "tags": ["marketing"] })).await;
    remember(&stage, "ms-2", "The ledger is in books.db.", json!({})).await;
    for (role, left_out) in [("auditor", 1), ("coder", 0)] {
        let put = stage.post("/v1/assemble", wish(json!({ "role": role }))).await.done();
        let dropped = put["receipt"]["dropped"].as_array().unwrap();
        let by_role = dropped.iter().filter(|one| one["reason"]["why"] == "role").count();
        assert_eq!(by_role, left_out, "{role}: {}", put["receipt"]);
    }
}

async fn a_receiver_with_less_room_reads_less_of_it_and_every_pin(stage: Stage) {
    fill(&stage).await;
    let (id, _) = put_and_offer(&stage, "coder", json!({})).await;
    let read = async |query: &str| stage.get(&format!("/v1/handoffs/{id}/prompt?{query}")).await;
    let whole = read("tokenizer=o200k_base").await.done();
    assert!(whole["token_count"].as_u64() > Some(1000), "{whole}");
    let less = read("tokenizer=o200k_base&max_tokens=300").await.done();
    assert!(less["token_count"].as_u64() <= Some(300), "{less}");
    let prompt = text(&less["prompt"]);
    let pinned = prompt.split("§ ## ").find(|part| part.starts_with("Pinned")).unwrap();
    assert_eq!(pinned.trim(), "Pinned\n§ [m1] by planner: The rate is 19 % from 2027-01-01.");
    read("tokenizer=o200k_base&max_tokens=20").await.refused(422, "budget_too_small");
    // The next one has it pinned as well, although nobody looks it up.
    let held = stage.claimed(&id, "coder").await;
    let task = &stage.show(&id).await["task_id"];
    let next = json!({
        "from_agent": "coder", "task_id": task, "tokenizer": "o200k_base", "max_tokens": 300,
        "include_recent": 0, "include_pins": false, "ask": "test it",
    });
    let put = stage.post("/v1/assemble", next).await.done();
    let kept = put["receipt"]["kept"].as_array().unwrap();
    let pin = kept.iter().find(|one| one["id"] == "ms-pin").unwrap();
    assert_eq!(pin["pinned"], true, "{}", put["receipt"]);
    stage.completed(&held).await;
}
