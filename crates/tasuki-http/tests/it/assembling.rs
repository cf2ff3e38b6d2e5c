// SPDX-License-Identifier: Apache-2.0
//! What a receiver gets to read, within its budget, from memories and from what the task carries.

use serde_json::{Value, json};

use crate::support::{Stage, merged, on_both_stores, text};

on_both_stores! {
    what_must_travel_travels_and_the_rest_as_far_as_it_fits
    a_budget_that_is_too_small_is_refused_with_what_it_would_take
    the_manifest_of_the_receiver_says_how_much_it_reads
    what_was_put_together_can_be_offered_as_it_is
    a_memory_that_cannot_be_read_becomes_a_gap
    no_metadata_is_ever_in_a_prompt
    a_secret_is_refused_before_it_is_stored
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
    let prompt = stage.get(&format!("/v1/handoffs/{id}/prompt")).await.done();
    assert!(text(&prompt["prompt"]).contains("Never change stored invoices."));
    assert_eq!(prompt["exact"], true);
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
