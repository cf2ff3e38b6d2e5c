// SPDX-License-Identifier: Apache-2.0
//! Chains as files: whole, checkable without the broker, and the beginning of another task.

use serde_json::{Value, json};
use tasuki_core::chain::{self, ChainFile, ChainVerdict};

use crate::support::{Client, Held, Stage, everything, may, merged, on_both_stores, text, towards};

on_both_stores! { closed:
    a_chain_is_exported_whole_with_the_tasks_below_it
    whoever_alters_a_file_is_found_out_at_the_first_bad_entry
    what_was_erased_is_told_apart_from_what_was_lost
    a_task_begins_anew_from_a_hop
    only_who_may_see_a_chain_exports_it_or_begins_anew
    a_chain_of_another_broker_is_kept_for_reading_only
}

struct Cast {
    boss: Client,
    coder: Client,
    admin: Client,
}

async fn cast(stage: &Stage) -> Cast {
    let admin = stage.administrator().await;
    Cast {
        boss: admin.enroll("boss", everything()).await,
        coder: admin.enroll("coder", everything()).await,
        admin,
    }
}

impl Cast {
    /// Three hops, the second of which calls somebody below. Returns the task.
    async fn play(&self) -> String {
        let first = json!({
            "constraints": ["Never push to main."], "summary": "the first",
            "decisions": [{ "key": "database", "decision": "PostgreSQL" }],
        });
        let id = self.boss.offer("coder", first).await;
        let held = self.coder.claimed(&id).await;
        let hop = |to: &str, control: &str, note: &str| {
            json!({
                "to": { "agent": to }, "control": control, "summary": note,
                "payload": { "type": "request", "note": note },
            })
        };
        let hops = [hop("coder", "passed", "the second"), hop("boss", "awaited", "the call")];
        let done = json!({ "payload": { "type": "done" }, "follow_ups": hops });
        self.coder.act(&held, "complete", done).await.done();
        let claims = self.coder.post("/v1/claims", json!({ "agent": "coder" })).await.done();
        let held = Held::of(&claims["claims"][0]);
        let done = json!({
            "payload": { "type": "done" }, "follow_ups": [hop("coder", "passed", "the third")],
        });
        self.coder.act(&held, "complete", done).await.done();
        let shown = self.boss.get(&format!("/v1/handoffs/{id}")).await.done();
        text(&shown["task_id"])
    }

    async fn verified(&self, task: &str) -> ChainVerdict {
        chain::verify(&exported(&self.boss, task).await.1)
    }
}

/// The file as it came, since hashes cover the very bytes.
async fn exported(who: &Client, task: &str) -> (String, ChainFile) {
    let reply = who.get(&format!("/v1/tasks/{task}/export")).await;
    let text = reply.text().to_owned();
    let file = serde_json::from_str(&text).unwrap();
    (text, file)
}

async fn a_chain_is_exported_whole_with_the_tasks_below_it(stage: Stage) {
    let cast = cast(&stage).await;
    let task = cast.play().await;
    let (_, file) = exported(&cast.boss, &task).await;
    let verdict = chain::verify(&file);
    assert_eq!(verdict.first_bad, None);
    assert_eq!((verdict.intact, verdict.tasks), (true, 2));
    // Three hops, and the call that was made below.
    assert_eq!(verdict.hops.len(), 4);
    assert!(verdict.hops.iter().all(|hop| hop.report.is_whole() && hop.report.constraints == 1));
    let seal = file.seal.as_ref().expect("a broker that has a key seals");
    assert_eq!(verdict.sealed_by, Some(seal.key));
    let events: usize = file.tasks.iter().map(|task| task.events.len()).sum();
    assert_eq!(verdict.events, u64::try_from(events).unwrap());
    assert!(verdict.bodies >= 6 && verdict.erased.is_empty());
}

async fn whoever_alters_a_file_is_found_out_at_the_first_bad_entry(stage: Stage) {
    let cast = cast(&stage).await;
    let task = cast.play().await;
    let (text, file) = exported(&cast.boss, &task).await;
    let check = |altered: String, expected: &str| {
        assert!(altered != text, "nothing was altered for {expected}");
        let file: ChainFile = serde_json::from_str(&altered).unwrap();
        let bad = chain::verify(&file).first_bad.expect("it is found out");
        assert!(bad.problem.contains(expected), "{bad:?}, expected {expected}");
        bad
    };
    // A word in a body, and a word in a record.
    let bad = check(text.replacen("the second", "the worst!", 1), "body that was altered");
    assert_eq!(bad.task_id.map(|id| id.to_string()), Some(task.clone()));
    assert!(bad.index > Some(0), "{bad:?}");
    check(text.replacen("\"priority\":5", "\"priority\":9", 1), "it was altered");
    let without = |place: usize| {
        let mut file = file.clone();
        file.tasks[0].events.remove(place);
        serde_json::to_string(&file).unwrap()
    };
    let bad = check(without(1), "entries are missing");
    assert_eq!(bad.index, Some(1));
    // Without the last one, the chain itself is whole, and the seal is not.
    check(without(file.tasks[0].events.len() - 1), "seal");
    let mut bodiless = file.clone();
    bodiless.tasks[0].events[0].body = None;
    check(serde_json::to_string(&bodiless).unwrap(), "lost its body");
    let mut swapped = file.clone();
    swapped.tasks.reverse();
    check(serde_json::to_string(&swapped).unwrap(), "does not begin with");
}

async fn what_was_erased_is_told_apart_from_what_was_lost(stage: Stage) {
    let cast = cast(&stage).await;
    let id = cast.boss.offer("coder", json!({})).await;
    let held = cast.coder.claimed(&id).await;
    cast.coder.completed(&held).await;
    let erase = json!({ "by": "boss", "reason": "by request" });
    cast.boss.post(&format!("/v1/handoffs/{id}/erase"), erase).await.done();
    let shown = cast.boss.get(&format!("/v1/handoffs/{id}")).await.done();
    let verdict = cast.verified(&text(&shown["task_id"])).await;
    assert_eq!(verdict.first_bad, None);
    assert!(!verdict.erased.is_empty());
    let branch = json!({ "by": "boss", "hop": 0 });
    let path = format!("/v1/tasks/{}/branch", text(&shown["task_id"]));
    let refused = cast.boss.post(&path, branch).await.refused(400, "invalid_request");
    assert!(text(&refused["message"]).contains("erased"), "{refused}");
}

async fn a_task_begins_anew_from_a_hop(stage: Stage) {
    let cast = cast(&stage).await;
    let task = cast.play().await;
    let path = format!("/v1/tasks/{task}/branch");
    let wish = json!({ "by": "boss", "hop": 1, "idempotency_key": "again" });
    let first = cast.boss.post(&path, wish.clone()).await;
    assert_eq!(first.status, 201);
    let first = first.done();
    // The same wish again is the same branch.
    let again = cast.boss.post(&path, wish.clone()).await;
    assert_eq!(again.status, 200);
    assert_eq!(again.done()["handoff_id"], first["handoff_id"]);
    let other = merged(wish, json!({ "hop": 0 }));
    cast.boss.post(&path, other).await.refused(409, "idempotency_conflict");

    let branch = text(&first["task_id"]);
    assert_ne!(branch, task);
    let envelope = |id: &str| format!("/v1/handoffs/{id}/envelope");
    let new = cast.boss.get(&envelope(&text(&first["handoff_id"]))).await.done();
    let handoffs = cast.boss.get(&format!("/v1/tasks/{task}")).await.done();
    let second = handoffs["handoffs"].as_array().unwrap().iter().find(|h| h["hop"] == 1).unwrap();
    let old = cast.boss.get(&envelope(&text(&second["handoff_id"]))).await.done();
    for part in ["intent", "constraints", "decisions", "summary", "payload", "to"] {
        assert_eq!(new[part], old[part], "{part}");
        assert!(!new[part].is_null(), "{part}");
    }
    assert_eq!((&new["hop"], &new["previous"]), (&json!(0), &Value::Null));
    // The log of the new task says where it comes from; the old one goes on as it was.
    let events = cast.boss.get(&format!("/v1/tasks/{branch}/events")).await.done();
    let origin = &events["events"][0]["record"]["opens"]["branch_of"];
    assert_eq!(origin["task_id"], json!(task));
    assert_eq!((&origin["hop"], &origin["envelope"]), (&json!(1), &second["envelope"]));
    assert!(cast.verified(&branch).await.intact);
    assert!(cast.verified(&task).await.intact);

    let elsewhere = json!({ "by": "boss", "hop": 2, "to": { "agent": "tester" } });
    let elsewhere = cast.boss.post(&path, elsewhere).await.done();
    assert_eq!(elsewhere["to"], json!({ "agent": "tester" }));
    let beyond = json!({ "by": "boss", "hop": 7 });
    cast.boss.post(&path, beyond).await.refused(400, "invalid_request");
}

async fn only_who_may_see_a_chain_exports_it_or_begins_anew(stage: Stage) {
    let cast = cast(&stage).await;
    let task = cast.play().await;
    let stranger = cast.admin.enroll("stranger", may(&["send"])).await;
    let reader = cast.admin.enroll("reader", may(&["read"])).await;
    let sender = cast.admin.enroll("sender", towards(&["read", "send"], &["*"])).await;
    let foreign = cast.admin.enroll("acme/boss", everything()).await;
    let export = format!("/v1/tasks/{task}/export");
    let branch = format!("/v1/tasks/{task}/branch");
    for who in [&stranger, &foreign] {
        who.get(&export).await.refused(404, "task_not_found");
        let wish = json!({ "by": who.name, "hop": 0 });
        who.post(&branch, wish).await.refused(404, "task_not_found");
    }
    reader.get(&export).await.done();
    let wish = json!({ "by": "reader", "hop": 0 });
    reader.post(&branch, wish).await.refused(403, "not_permitted");
    let forged = json!({ "by": "boss", "hop": 0 });
    sender.post(&branch, forged).await.refused(403, "not_permitted");
    let wish = json!({ "by": "sender", "hop": 0, "to": { "agent": "acme/coder" } });
    sender.post(&branch, wish).await.refused(422, "other_tenant");
    sender.post(&branch, json!({ "by": "sender", "hop": 0 })).await.done();
}

async fn a_chain_of_another_broker_is_kept_for_reading_only(stage: Stage) {
    let cast = cast(&stage).await;
    let task = cast.play().await;
    let (file, _) = exported(&cast.boss, &task).await;
    let other = Stage::closed(crate::support::Backend::Sqlite).await;
    let admin = other.administrator().await;
    let boss = admin.enroll("boss", everything()).await;
    let reader = admin.enroll("reader", may(&["read"])).await;
    let stranger = admin.enroll("stranger", may(&["claim"])).await;
    let foreign = admin.enroll("acme/boss", everything()).await;
    let import = |file: &str| json!({ "by": "boss", "project": "web", "file": file });
    let imported = boss.post("/v1/chains", import(&file)).await;
    assert_eq!(imported.status, 201);
    let imported = imported.done();
    assert_eq!((&imported["task_id"], &imported["tasks"]), (&json!(task), &json!(2)));
    assert_eq!(boss.post("/v1/chains", import(&file)).await.status, 200);
    let id = text(&imported["chain_id"]);
    for who in [&boss, &reader] {
        let shown = who.get(&format!("/v1/chains/{id}")).await.done();
        assert_eq!(shown["file"], json!(file));
        assert_eq!(shown["verdict"]["intact"], true);
        let listed = who.get("/v1/chains").await.done();
        assert_eq!(listed["chains"].as_array().unwrap().len(), 1);
    }
    for who in [&stranger, &foreign] {
        who.get(&format!("/v1/chains/{id}")).await.refused(404, "chain_not_found");
        let listed = who.get("/v1/chains").await.done();
        assert_eq!(listed["chains"].as_array().unwrap().len(), 0);
    }
    // It is kept apart: no task, no handoff, nothing to claim, no memory.
    boss.get(&format!("/v1/tasks/{task}")).await.refused(404, "task_not_found");
    boss.get(&format!("/v1/memories/{id}")).await.refused(404, "memory_not_found");
    assert_eq!(boss.get("/v1/tasks").await.done()["tasks"], json!([]));
    let claims = admin.enroll("coder", everything()).await;
    let claims = claims.post("/v1/claims", json!({ "agent": "coder" })).await.done();
    assert_eq!(claims["claims"], json!([]));
    let altered = file.replacen("the second", "the worst!", 1);
    let refused = boss.post("/v1/chains", import(&altered)).await.refused(400, "invalid_request");
    assert!(text(&refused["message"]).contains("not intact"), "{refused}");
    boss.post("/v1/chains", import("{}")).await.refused(400, "invalid_request");
    stranger
        .post("/v1/chains", merged(import(&file), json!({ "by": "stranger" })))
        .await
        .refused(403, "not_permitted");
}
