// SPDX-License-Identifier: Apache-2.0
//! Who may write and read what belongs to a project: rules by the project's name.

use serde_json::{Value, json};

use crate::contexts::{PATH, branch};
use crate::support::{Client, Stage, everything, on_both_stores, text};

on_both_stores! { closed:
    rules_of_a_project_decide_who_writes_and_who_reads
    an_agent_keeps_memories_of_its_own
    only_the_writer_and_administrators_erase
    few_write_it_and_readers_of_the_project_read_it
}

fn in_project(permissions: &[&str], project: &str) -> Value {
    json!([{ "permissions": permissions, "projects": [project] }])
}

impl Client {
    fn memory(&self, project: &str) -> Value {
        json!({ "by": self.name, "scope": { "project": project }, "text": "words of a project" })
    }
}

async fn rules_of_a_project_decide_who_writes_and_who_reads(stage: Stage) {
    let admin = stage.administrator().await;
    let writer = admin.enroll("writer", in_project(&["write_memory"], "web-*")).await;
    let reader = admin.enroll("reader", in_project(&["read"], "web-*")).await;
    let memory = writer.post("/v1/memories", writer.memory("web-shop")).await.done();
    let path = format!("/v1/memories/{}", text(&memory["memory_id"]));
    writer.post("/v1/memories", writer.memory("ledger")).await.refused(403, "not_permitted");
    reader.post("/v1/memories", reader.memory("web-shop")).await.refused(403, "not_permitted");
    assert_eq!(reader.get(&path).await.done()["text"], "words of a project");
    let edit = |who: &Client| json!({ "by": who.name, "text": "x" });
    reader.ask("patch", &path, edit(&reader)).await.refused(403, "not_permitted");
    let boss = admin.enroll("boss", everything()).await;
    let other = boss.post("/v1/memories", boss.memory("ledger")).await.done();
    let hidden = format!("/v1/memories/{}", text(&other["memory_id"]));
    reader.get(&hidden).await.refused(404, "memory_not_found");
    reader.ask("patch", &hidden, edit(&reader)).await.refused(404, "memory_not_found");
    for query in ["", "?q=words"] {
        let found = reader.get(&format!("/v1/memories{query}")).await.done();
        assert_eq!(found["memories"].as_array().unwrap().len(), 1, "{query}");
    }
}

async fn an_agent_keeps_memories_of_its_own(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", crate::support::may(&["write_memory"])).await;
    let tester = admin.enroll("tester", crate::support::may(&["write_memory"])).await;
    let own = json!({ "by": "coder", "text": "my own notes" });
    let own = coder.post("/v1/memories", own).await.done();
    assert_eq!(own["scope"], json!({ "agent": "coder" }));
    let path = format!("/v1/memories/{}", text(&own["memory_id"]));
    assert_eq!(coder.get(&path).await.done()["text"], "my own notes");
    tester.get(&path).await.refused(404, "memory_not_found");
    let forged = json!({ "by": "coder", "text": "x" });
    tester.post("/v1/memories", forged).await.refused(403, "not_permitted");
}

async fn only_the_writer_and_administrators_erase(stage: Stage) {
    let admin = stage.administrator().await;
    let writer = admin.enroll("writer", crate::support::may(&["write_memory", "read"])).await;
    let other = admin.enroll("other", crate::support::may(&["write_memory", "read"])).await;
    let memory = writer.post("/v1/memories", writer.memory("web")).await.done();
    let path = format!("/v1/memories/{}/erase", text(&memory["memory_id"]));
    let erase = |who: &Client| json!({ "by": who.name, "reason": "by request" });
    other.post(&path, erase(&other)).await.refused(403, "not_permitted");
    assert_eq!(writer.post(&path, erase(&writer)).await.done()["erased"], true);
}

async fn few_write_it_and_readers_of_the_project_read_it(stage: Stage) {
    let admin = stage.administrator().await;
    let rules = |permission: &str| json!([{ "permissions": [permission], "projects": ["web"] }]);
    let lead = admin.enroll("lead", rules("write_shared_context")).await;
    let reader = admin.enroll("reader", rules("read")).await;
    let stranger = admin.enroll("stranger", crate::support::may(&["send"])).await;
    lead.ask("put", PATH, branch(0, "main")).await.done();
    assert_eq!(reader.get(PATH).await.done()["state"]["branch"], "main");
    stranger.get(PATH).await.refused(403, "not_permitted");
    let write = json!({ "by": "reader", "state": {} });
    reader.ask("put", PATH, write).await.refused(403, "not_permitted");
    let elsewhere = "/v1/projects/ledger/context";
    lead.ask("put", elsewhere, branch(0, "main")).await.refused(403, "not_permitted");
    reader.get(elsewhere).await.refused(403, "not_permitted");
}
