// SPDX-License-Identifier: Apache-2.0
//! Memories: revisions, finding them again, who may do what, secrets, and erasing.

use serde_json::{Value, json};

use crate::support::{Stage, merged, on_both_stores, text};

on_both_stores! {
    an_edit_is_a_new_revision_and_the_old_one_can_be_read
    who_saw_an_old_revision_is_told_the_current_one
    as_much_of_a_memory_is_shown_as_is_asked_for
    memories_are_found_by_their_words_and_by_what_they_are_about
    a_create_is_safe_to_repeat
    what_was_superseded_or_deleted_says_so
    a_secret_is_refused_and_never_repeated
    what_was_erased_is_gone_and_the_log_is_intact
    bounds_are_named
}

async fn add(stage: &Stage, more: Value) -> Value {
    let memory = json!({ "by": "coder", "scope": { "project": "web" }, "text": "some words" });
    stage.post("/v1/memories", merged(memory, more)).await.done()
}

async fn an_edit_is_a_new_revision_and_the_old_one_can_be_read(stage: Stage) {
    let added = add(&stage, json!({ "id": "ms-4821", "title": "Style", "tags": ["a"] })).await;
    assert_eq!((&added["memory_id"], &added["revision"]), (&json!("ms-4821"), &json!(1)));
    let edit = json!({ "by": "tester", "text": "other words", "title": "" });
    let edited = stage.ask("patch", "/v1/memories/ms-4821", edit).await.done();
    assert_eq!((&edited["revision"], &edited["written_by"]), (&json!(2), &json!("agent:tester")));
    let now = stage.get("/v1/memories/ms-4821").await.done();
    assert_eq!((&now["text"], &now["tags"]), (&json!("other words"), &json!(["a"])));
    assert!(now.get("title").is_none(), "an empty title takes it away");
    let then = stage.get("/v1/memories/ms-4821?revision=1").await.done();
    assert_eq!((&then["text"], &then["latest"]), (&json!("some words"), &json!(2)));
    stage.get("/v1/memories/ms-4821?revision=3").await.refused(404, "memory_not_found");
    stage.get("/v1/memories/ms-0").await.refused(404, "memory_not_found");
    let made = add(&stage, json!({})).await;
    assert!(text(&made["memory_id"]).starts_with("ms-"), "{made}");
}

async fn who_saw_an_old_revision_is_told_the_current_one(stage: Stage) {
    add(&stage, json!({ "id": "ms-1" })).await;
    let edit = |text: &str| json!({ "by": "coder", "revision": 1, "text": text });
    stage.ask("patch", "/v1/memories/ms-1", edit("mine")).await.done();
    let lost = stage.ask("patch", "/v1/memories/ms-1", edit("yours")).await;
    assert_eq!(lost.refused(409, "revision_conflict")["details"]["current"], 2);
    let taken = json!({ "by": "coder", "id": "ms-1", "text": "x" });
    stage.post("/v1/memories", taken).await.refused(409, "revision_conflict");
}

async fn as_much_of_a_memory_is_shown_as_is_asked_for(stage: Stage) {
    let long = "word ".repeat(200);
    add(&stage, json!({ "id": "ms-1", "title": "Words", "text": long })).await;
    let shown =
        async |detail: &str| stage.get(&format!("/v1/memories/ms-1?detail={detail}")).await.done();
    let stub = shown("stub").await;
    assert_eq!(stub["line"], "Words");
    assert!(stub.get("title").is_none() && stub.get("summary").is_none());
    let summary = shown("summary").await;
    assert!(summary.get("text").is_none() && text(&summary["summary"]).len() < 500);
    assert_eq!(text(&shown("full").await["text"]), long);
    stage.get("/v1/memories/ms-1?detail=much").await.refused(400, "invalid_request");
}

async fn memories_are_found_by_their_words_and_by_what_they_are_about(stage: Stage) {
    add(&stage, json!({ "id": "ms-1", "text": "deploy the shop on monday", "tags": ["ops"] }))
        .await;
    add(&stage, json!({ "id": "ms-2", "text": "the shop sells shoes", "pinned": true })).await;
    add(&stage, json!({ "id": "ms-3", "scope": { "agent": "coder" }, "text": "tabs" })).await;
    let names = async |query: &str| -> Vec<String> {
        let found = stage.get(&format!("/v1/memories?{query}")).await.done();
        found["memories"].as_array().unwrap().iter().map(|m| text(&m["memory_id"])).collect()
    };
    assert_eq!(names("").await, ["ms-3", "ms-2", "ms-1"]);
    assert_eq!(names("q=deploy%20shop").await, ["ms-1", "ms-2"]);
    assert_eq!(names("q=deploy&project=web&tag=ops").await, ["ms-1"]);
    assert_eq!(names("agent=coder").await, ["ms-3"]);
    assert_eq!(names("pinned=true").await, ["ms-2"]);
    assert_eq!(names("q=elephant").await, [""; 0]);
    let page = stage.get("/v1/memories?limit=2").await.done();
    let next = text(&page["next"]);
    assert_eq!(names(&format!("limit=2&before={next}")).await, ["ms-1"]);
    stage.get("/v1/memories?limit=101").await.refused(400, "invalid_request");
    stage.get("/v1/memories?project=web&agent=coder").await.refused(400, "invalid_request");
}

async fn a_create_is_safe_to_repeat(stage: Stage) {
    let keyed = json!({ "idempotency_key": "k-1" });
    let first = add(&stage, keyed.clone()).await;
    assert_eq!(add(&stage, keyed).await["memory_id"], first["memory_id"]);
    let other = json!({ "by": "coder", "text": "another", "idempotency_key": "k-1" });
    stage.post("/v1/memories", other).await.refused(409, "idempotency_conflict");
}

async fn what_was_superseded_or_deleted_says_so(stage: Stage) {
    for id in ["ms-1", "ms-2"] {
        add(&stage, json!({ "id": id })).await;
    }
    let successor = json!({ "by": "coder", "successor": "ms-2" });
    let old = stage.post("/v1/memories/ms-1/supersede", successor).await.done();
    assert_eq!(old["superseded_by"], "ms-2");
    let pin = json!({ "by": "coder" });
    let refused = stage.post("/v1/memories/ms-1/pin", pin.clone()).await;
    assert_eq!(refused.refused(409, "memory_superseded")["details"]["superseded_by"], "ms-2");
    assert_eq!(stage.post("/v1/memories/ms-2/pin", pin.clone()).await.done()["pinned"], true);
    assert_eq!(stage.post("/v1/memories/ms-2/unpin", pin).await.done()["pinned"], false);
    let delete = json!({ "by": "coder", "reason": "it was wrong" });
    stage.ask("delete", "/v1/memories/ms-2", delete).await.done();
    let tombstone = stage.get("/v1/memories/ms-2").await.done();
    assert_eq!(tombstone["deleted"]["reason"], "it was wrong");
    let edit = json!({ "by": "coder", "text": "x" });
    stage.ask("patch", "/v1/memories/ms-2", edit).await.refused(409, "memory_deleted");
    let all = stage.get("/v1/memories?deleted=true&superseded=true").await.done();
    assert_eq!(all["memories"].as_array().unwrap().len(), 2);
    assert_eq!(stage.get("/v1/memories").await.done()["memories"], json!([]));
}

async fn a_secret_is_refused_and_never_repeated(stage: Stage) {
    // Put together here, so that no scanner takes this file for a leak.
    let token = format!("ghp_{}", "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYzA2b");
    let memory = json!({ "by": "coder", "text": format!("log in with {token}") });
    let head = stage.store.head();
    let reply = stage.post("/v1/memories", memory).await;
    assert!(!reply.text().contains(&token));
    let problem = reply.refused(422, "secret_found");
    assert_eq!(problem["details"], json!({ "path": "/text", "kind": "github_token" }));
    assert_eq!(stage.store.head(), head, "nothing was stored");
    let likely = json!({ "text": "db_password = k7Gq2mX9pLz4" });
    let stored = add(&stage, likely).await;
    assert_eq!(stored["warnings"], json!([{ "path": "/text", "kind": "assignment" }]));
}

async fn what_was_erased_is_gone_and_the_log_is_intact(stage: Stage) {
    add(&stage, json!({ "id": "ms-1", "text": "a phone number" })).await;
    let edit = json!({ "by": "coder", "text": "another number" });
    stage.ask("patch", "/v1/memories/ms-1", edit).await.done();
    let erase = json!({ "by": "person", "revision": 1, "reason": "by request" });
    stage.post("/v1/memories/ms-1/erase", erase).await.done();
    let first = stage.get("/v1/memories/ms-1?revision=1").await.done();
    assert_eq!((&first["erased"], first.get("text")), (&json!(true), None));
    assert_eq!(stage.get("/v1/memories/ms-1").await.done()["text"], "another number");
    let rest = json!({ "by": "person", "reason": "by request" });
    let gone = stage.post("/v1/memories/ms-1/erase", rest.clone()).await.done();
    assert_eq!(gone["erased"], true);
    let found = stage.get("/v1/memories?q=number").await.done();
    assert_eq!(found["memories"], json!([]));

    let handoff = stage.offer("coder", json!({})).await;
    let path = format!("/v1/handoffs/{handoff}/erase");
    stage.post(&path, rest.clone()).await.refused(409, "still_needed");
    let held = stage.claimed(&handoff, "coder").await;
    stage.completed(&held).await;
    stage.post(&path, rest.clone()).await.done();
    stage.post(&path, rest).await.done();
    assert!(stage.show(&handoff).await.get("output").is_none());
    let envelope = stage.get(&format!("/v1/handoffs/{handoff}/envelope")).await;
    envelope.refused(410, "body_erased");
    let verdict = stage.get("/v1/audit/verify").await.done();
    assert_eq!((&verdict["intact"], &verdict["erased"]), (&json!(true), &json!(4)));
}

async fn bounds_are_named(stage: Stage) {
    for (more, word) in [
        (json!({ "text": "" }), "text"),
        (json!({ "text": "x".repeat(64 * 1024 + 1) }), "text"),
        (json!({ "title": "x".repeat(257) }), "title"),
        (json!({ "tags": (0..33).map(|n| n.to_string()).collect::<Vec<_>>() }), "tags"),
        (json!({ "id": "context:web" }), "context:web"),
    ] {
        let memory = merged(json!({ "by": "coder", "text": "x" }), more);
        let problem = stage.post("/v1/memories", memory).await.refused(422, "invalid_document");
        assert!(text(&problem["message"]).contains(word), "{problem}");
    }
    let nowhere = json!({ "by": "coder", "text": "x",
        "scope": { "task": "task_00000000000000000000000abc" } });
    stage.post("/v1/memories", nowhere).await.refused(404, "task_not_found");
}
