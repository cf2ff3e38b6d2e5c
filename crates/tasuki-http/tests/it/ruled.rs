// SPDX-License-Identifier: Apache-2.0
//! What a project says reaches its agents: its constraints bind every task from the first hop, its
//! decisions hold, and what is under way already is told. And whose pins travel.

use serde_json::{Value, json};
use tasuki_engine::{ProjectDecisions, Settings};

use crate::support::{Stage, merged, offer, on_both_stores, on_durable_stores, text};

mod durable {
    use super::*;

    on_durable_stores! {
        what_a_project_asks_binds_every_task_of_it
    }

    async fn what_a_project_asks_binds_every_task_of_it(stage: Stage) {
        super::what_a_project_asks_binds_every_task_of_it(stage).await;
    }
}

on_both_stores! {
    what_a_project_decided_is_a_candidate_of_every_assembly
    a_decision_against_the_log_is_refused
    a_question_is_settled_however_its_key_is_written
    old_revisions_of_a_shared_context_can_be_read
    a_second_task_with_the_same_words_is_told_to_its_sender
    logs_reasoning_and_copies_are_told_to_the_sender_of_a_direct_offer
    strangers_pins_starve_nobody
    a_pin_that_does_not_fit_is_named_with_who_pinned_it
    the_number_of_recent_memories_is_a_bound_for_all_scopes
    completeness_counts_what_was_not_considered
    both_revisions_are_there_where_both_are_asked_for
}

const CONTEXT: &str = "/v1/projects/web/context";

async fn says(stage: &Stage, constraints: &[&str]) {
    let constraints: Vec<_> =
        constraints.iter().map(|text| json!({ "kind": "must_not", "text": text })).collect();
    let write = json!({ "by": "lead", "constraints": constraints });
    stage.ask("put", CONTEXT, write).await.done();
}

async fn decides(stage: &Stage, key: &str, decision: &str) -> crate::support::Reply {
    let new = json!({ "by": "lead", "key": key, "decision": decision, "why": "measured" });
    stage.post("/v1/projects/web/decisions", new).await
}

async fn envelope(stage: &Stage, id: &str) -> Value {
    stage.get(&format!("/v1/handoffs/{id}/envelope")).await.done()
}

fn rules(envelope: &Value) -> Vec<(String, String)> {
    let all = envelope["constraints"].as_array().cloned().unwrap_or_default();
    all.iter().map(|one| (text(&one["issuer"]), text(&one["text"]))).collect()
}

async fn what_a_project_asks_binds_every_task_of_it(stage: Stage) {
    says(&stage, &["Never log card numbers."]).await;
    let web = json!({ "project": "web", "constraints": ["Use SI units."] });
    let id = stage.offer("coder", web).await;
    let first = rules(&envelope(&stage, &id).await);
    let asked = ("project:web".to_owned(), "Never log card numbers.".to_owned());
    assert_eq!(first, [asked.clone(), ("planner".into(), "Use SI units.".into())]);
    let other = stage.offer("coder", json!({ "project": "shop" })).await;
    assert_eq!(rules(&envelope(&stage, &other).await), []);
    let prompt = stage.get(&format!("/v1/handoffs/{id}/prompt")).await.done();
    let prompt = text(&prompt["prompt"]);
    for line in [
        "§ ## Rules, by project web unless said otherwise\n§ R1 must not: Never log card numbers.\n",
        "§ R2 must, by planner: Use SI units.\n",
    ] {
        assert!(prompt.contains(line), "{line}: {prompt}");
    }
    // Nobody who works on a task takes that away from it.
    let task = text(&stage.show(&id).await["task_id"]);
    let constraint = &envelope(&stage, &id).await["constraints"][0]["id"];
    let lift = json!({ "by": "planner", "constraint": constraint, "reason": "in the way" });
    stage.post(&format!("/v1/tasks/{task}/lift"), lift).await.refused(403, "constraint_not_yours");
    let stage = stage.restarted().await;
    // What it asks later binds the next hop of what is under way; what it gives up does not.
    says(&stage, &["Never mail customers."]).await;
    let held = stage.claimed(&id, "coder").await;
    let next = json!([{ "to": { "agent": "tester" }, "payload": { "type": "t" } }]);
    let done = json!({ "payload": { "type": "done" }, "follow_ups": next });
    stage.act(&held, "complete", done).await.done();
    let shown = stage.get("/v1/handoffs?to_agent=tester").await.done();
    let next = text(&shown["handoffs"][0]["handoff_id"]);
    let second = envelope(&stage, &next).await;
    let texts: Vec<_> = rules(&second).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["Use SI units.", "Never mail customers."]);
    assert_eq!(second["lifted"][0]["by"], "project:web");
    // Nobody speaks in a project's name.
    let forged = offer("coder", json!({ "from_agent": "project:web" }));
    stage.post("/v1/handoffs", forged).await.refused(403, "name_reserved");
}

async fn what_a_project_decided_is_a_candidate_of_every_assembly(stage: Stage) {
    decides(&stage, "database", "PostgreSQL").await.done();
    let state =
        json!({ "by": "lead", "state": { "summary": "Beta since May.", "branch": "main" } });
    stage.ask("put", CONTEXT, state).await.done();
    let put = json!({
        "from_agent": "planner", "intent": "Choose a driver.", "project": "web",
        "ask": "which database driver", "tokenizer": "o200k_base", "include_recent": 0,
    });
    let put = stage.post("/v1/assemble", put).await.done();
    let prompt = text(&put["prompt"]);
    for must in ["PostgreSQL", "Why: measured", "Beta since May.", "\"database\"", "by lead"] {
        assert!(prompt.contains(must), "{must}: {prompt}");
    }
    // The next hop gets what holds then, and once.
    let offer = offer("coder", merged(json!({ "project": "web" }), put["offer"].clone()));
    let offer = merged(offer, json!({ "intent": "Choose a driver." }));
    let offered = stage.post("/v1/handoffs", offer).await.done();
    let new = json!({ "by": "lead", "key": "database", "decision": "SQLite", "supersedes": 1 });
    stage.post("/v1/projects/web/decisions", new).await.done();
    let held = stage.claimed(&text(&offered["handoff_id"]), "coder").await;
    let next = json!({
        "from_agent": "coder", "task_id": offered["task_id"], "ask": "test it",
        "tokenizer": "o200k_base", "include_recent": 0,
    });
    let next = stage.post("/v1/assemble", next).await.done();
    let prompt = text(&next["prompt"]);
    assert!(prompt.contains("SQLite") && !prompt.contains("PostgreSQL"), "{prompt}");
    assert_eq!(next["receipt"]["unresolved"], json!([]), "{}", next["receipt"]);
    stage.completed(&held).await;
}

async fn a_decision_against_the_log_is_refused(stage: Stage) {
    decides(&stage, "Database engine", "PostgreSQL").await.done();
    let against = |decision: &str| {
        let decisions = json!([{ "key": "database-ENGINE", "decision": decision }]);
        let intent = format!("Move the tables to {decision}.");
        offer("coder", json!({ "project": "web", "intent": intent, "decisions": decisions }))
    };
    let problem = stage.post("/v1/handoffs", against("MySQL")).await;
    let problem = problem.refused(409, "decision_settled");
    assert!(problem.to_string().contains("PostgreSQL"), "{problem}");
    stage.post("/v1/handoffs", against("PostgreSQL")).await.done();
    let settings = Settings { project_decisions: ProjectDecisions::Tell, ..stage.settings() };
    let told = Stage::set(settings).await;
    decides(&told, "Database engine", "PostgreSQL").await.done();
    let offered = told.post("/v1/handoffs", against("MySQL")).await.done();
    assert_eq!(offered["warnings"][0]["code"], "against_project", "{offered}");
    let fine = told.post("/v1/handoffs", against("postgresql")).await.done();
    assert!(fine.get("warnings").is_none(), "{fine}");
}

async fn a_question_is_settled_however_its_key_is_written(stage: Stage) {
    decides(&stage, "Port number", "8080").await.done();
    decides(&stage, "port_NUMBER", "9090").await.refused(409, "decision_settled");
    let new = json!({ "by": "lead", "key": "port-number", "decision": "9090", "supersedes": 1 });
    stage.post("/v1/projects/web/decisions", new).await.done();
}

async fn old_revisions_of_a_shared_context_can_be_read(stage: Stage) {
    says(&stage, &["One."]).await;
    says(&stage, &["Two."]).await;
    for (query, revision, said) in
        [("", 2, "Two."), ("?revision=1", 1, "One."), ("?revision=2", 2, "Two.")]
    {
        let seen = stage.get(&format!("{CONTEXT}{query}")).await.done();
        assert_eq!((&seen["revision"], &seen["latest"]), (&json!(revision), &json!(2)));
        assert_eq!(seen["constraints"][0]["text"], said);
    }
    stage.get(&format!("{CONTEXT}?revision=3")).await.refused(404, "memory_not_found");
}

async fn a_second_task_with_the_same_words_is_told_to_its_sender(stage: Stage) {
    let same = offer("coder", json!({ "project": "web" }));
    let first = stage.post("/v1/handoffs", same.clone()).await.done();
    assert!(first.get("warnings").is_none(), "{first}");
    let second = stage.post("/v1/handoffs", same.clone()).await.done();
    let warning = &second["warnings"][0];
    assert_eq!((&warning["code"], &warning["id"]), (&json!("same_intent"), &first["task_id"]));
    for other in [json!({ "project": "shop" }), json!({ "intent": "Something else." })] {
        let offered = stage.post("/v1/handoffs", merged(same.clone(), other)).await.done();
        assert!(offered.get("warnings").is_none(), "{offered}");
    }
    for task in [&first["task_id"], &second["task_id"]] {
        let path = format!("/v1/tasks/{}/cancel", text(task));
        stage.post(&path, json!({ "by": "planner" })).await.done();
    }
    let third = stage.post("/v1/handoffs", same).await.done();
    assert!(third.get("warnings").is_none(), "what has ended is no second task: {third}");
}

async fn logs_reasoning_and_copies_are_told_to_the_sender_of_a_direct_offer(stage: Stage) {
    let log: String = (0..12)
        .map(|at| format!("2027-01-01T00:00:{at:02}Z INFO request served in {at} ms\n"))
        .collect();
    let words = "Cents are rounded line by line in src/billing/round.rs. ".repeat(8);
    let memory =
        json!({ "by": "planner", "id": "ms-1", "text": words, "scope": { "project": "p" } });
    stage.post("/v1/memories", memory).await.done();
    let codes = async |change: Value| {
        let offered = stage.post("/v1/handoffs", offer("coder", change)).await.done();
        let all = offered["warnings"].as_array().cloned().unwrap_or_default();
        all.iter().map(|it| (text(&it["code"]), text(&it["id"]))).collect::<Vec<_>>()
    };
    let thought = "<thinking>\nFirst I thought of this.\nThen of that.\n</thinking>";
    let found = codes(json!({ "payload": { "type": "t", "output": { "stdout": log } } })).await;
    assert_eq!(found, [("raw_log".to_owned(), "payload.output.stdout".to_owned())]);
    let found = codes(json!({ "payload": { "type": "t", "notes": [thought] } })).await;
    assert_eq!(found, [("finished_reasoning".to_owned(), "payload.notes.0".to_owned())]);
    let copy = json!({
        "payload": { "type": "t", "note": words }, "memory_refs": [{ "id": "ms-1" }],
    });
    assert_eq!(codes(copy).await, [("copy_of_source".to_owned(), "payload.note".to_owned())]);
    assert_eq!(codes(json!({ "payload": { "type": "t", "note": "Fix it." } })).await, []);
}

fn pin(id: &str, by: &str, words: &str) -> Value {
    json!({ "by": by, "id": id, "text": words, "scope": { "project": "p" }, "pinned": true })
}

fn wish(change: Value) -> Value {
    let base = json!({
        "from_agent": "planner", "intent": "Fix the rounding.", "project": "p",
        "tokenizer": "o200k_base", "ask": "find where cents are rounded",
    });
    merged(base, change)
}

async fn strangers_pins_starve_nobody(stage: Stage) {
    stage.post("/v1/memories", pin("ms-own", "planner", "The rate is 19 %.")).await.done();
    let long = "Read this first, whoever you are. ".repeat(400);
    stage.post("/v1/memories", pin("ms-long", "stranger", &long)).await.done();
    for number in 0..40 {
        let words = format!("Pinned by a stranger: {number}.");
        stage.post("/v1/memories", pin(&format!("ms-{number}"), "stranger", &words)).await.done();
    }
    let put = stage.post("/v1/assemble", wish(json!({ "max_tokens": 1000 }))).await.done();
    let kept = put["receipt"]["kept"].as_array().unwrap();
    let pinned: Vec<_> = kept.iter().filter(|it| it["pinned"] == json!(true)).collect();
    assert!(pinned.iter().any(|it| it["id"] == "ms-own"), "{}", put["receipt"]);
    assert!(pinned.len() <= 17, "{} are pinned", pinned.len());
    let warnings = put["receipt"]["warnings"].as_array().unwrap();
    let of = |id: &str| warnings.iter().find(|it| it["code"] == "pin_over_cap" && it["id"] == id);
    let said = text(&of("ms-long").unwrap()["text"]);
    assert!(said.contains("what stranger pinned in project p"), "{said}");
    // Who wants a stranger's pin names it.
    let named = json!({ "max_tokens": 9000, "memory_refs": [{ "id": "ms-long" }] });
    let put = stage.post("/v1/assemble", wish(named)).await.done();
    let kept = put["receipt"]["kept"].as_array().unwrap();
    let long = kept.iter().find(|it| it["id"] == "ms-long").unwrap();
    assert_eq!(long["pinned"], json!(true), "{long}");
}

async fn a_pin_that_does_not_fit_is_named_with_who_pinned_it(stage: Stage) {
    let words = "The rate is 19 % from 2027-01-01. ".repeat(60);
    let plain = json!({ "by": "coder", "id": "ms-1", "text": words, "scope": { "project": "p" } });
    stage.post("/v1/memories", plain).await.done();
    stage.post("/v1/memories/ms-1/pin", json!({ "by": "planner" })).await.done();
    let problem = stage.post("/v1/assemble", wish(json!({ "max_tokens": 400 }))).await;
    let problem = problem.refused(422, "budget_too_small");
    let largest = text(&problem["details"]["largest"][0]["part"]);
    assert_eq!(largest, "pin ms-1, what planner pinned in project p");
    // Pinned by somebody else, it travels as far as there is room.
    stage.post("/v1/memories/ms-1/unpin", json!({ "by": "planner" })).await.done();
    stage.post("/v1/memories/ms-1/pin", json!({ "by": "stranger" })).await.done();
    stage.post("/v1/assemble", wish(json!({ "max_tokens": 400 }))).await.done();
}

async fn the_number_of_recent_memories_is_a_bound_for_all_scopes(stage: Stage) {
    for number in 0..8 {
        for scope in [json!({ "project": "p" }), json!({ "agent": "planner" })] {
            let memory =
                json!({ "by": "planner", "text": format!("Note {number}."), "scope": scope });
            stage.post("/v1/memories", memory).await.done();
        }
    }
    let given = async |change: Value| {
        let put = stage.post("/v1/assemble", wish(merged(json!({ "ask": null }), change))).await;
        let receipt = put.done()["receipt"].clone();
        let of = |list: &str| receipt[list].as_array().unwrap().len();
        (of("kept") + of("demoted") + of("dropped"), receipt)
    };
    for recent in [0, 1, 5, 16] {
        let (number, receipt) = given(json!({ "include_recent": recent })).await;
        assert_eq!(number, recent, "{receipt}");
    }
    let many = wish(json!({ "include_recent": 1001 }));
    stage.post("/v1/assemble", many).await.refused(400, "invalid_request");
}

async fn completeness_counts_what_was_not_considered(stage: Stage) {
    for number in 0..8 {
        let memory = json!({
            "by": "planner", "text": format!("Note {number}."), "scope": { "project": "p" },
        });
        stage.post("/v1/memories", memory).await.done();
    }
    let put = wish(json!({ "ask": null, "include_recent": 2 }));
    let receipt = stage.post("/v1/assemble", put).await.done()["receipt"].clone();
    assert_eq!(receipt["not_considered"], 6, "{receipt}");
    assert_eq!(receipt["completeness_per_mille"], 250, "{receipt}");
    let receipt = stage.post("/v1/assemble", wish(json!({ "ask": null }))).await.done();
    let receipt = &receipt["receipt"];
    assert!(receipt.get("not_considered").is_none(), "{receipt}");
    assert_eq!(receipt["completeness_per_mille"], 1000);
}

async fn both_revisions_are_there_where_both_are_asked_for(stage: Stage) {
    let memory = json!({ "by": "planner", "id": "ms-1", "text": "The port is 8080.", "scope": { "project": "q" } });
    stage.post("/v1/memories", memory).await.done();
    let edit = json!({ "by": "planner", "text": "The port is 9090." });
    stage.ask("patch", "/v1/memories/ms-1", edit).await.done();
    for (freshness, there) in
        [("pinned", [true, false]), ("latest", [false, true]), ("both", [true, true])]
    {
        let refs = json!([{ "id": "ms-1", "revision": 1, "freshness": freshness }]);
        let put = wish(json!({ "memory_refs": refs, "include_recent": 0 }));
        let put = stage.post("/v1/assemble", put).await.done();
        let prompt = text(&put["prompt"]);
        let found = ["8080", "9090"].map(|port| prompt.contains(port));
        assert_eq!(found, there, "{freshness}: {prompt}");
    }
}
