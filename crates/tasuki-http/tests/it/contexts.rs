// SPDX-License-Identifier: Apache-2.0
//! The shared context of a project: versioned, decided once, and never about who owns what.

use serde_json::{Value, json};

use crate::support::{Stage, on_both_stores, text};

on_both_stores! {
    a_context_is_written_on_top_of_what_was_seen
    a_decision_is_settled_until_it_is_superseded
    ownership_cannot_be_written_into_it
    the_task_queue_is_looked_up_and_never_kept
}

pub(crate) const PATH: &str = "/v1/projects/web/context";
const DECISIONS: &str = "/v1/projects/web/decisions";

pub(crate) fn branch(revision: u32, name: &str) -> Value {
    json!({ "by": "lead", "revision": revision, "state": { "branch": name } })
}

async fn a_context_is_written_on_top_of_what_was_seen(stage: Stage) {
    let empty = stage.get(PATH).await.done();
    assert_eq!((&empty["revision"], &empty["decisions"]), (&json!(0), &json!([])));
    stage.ask("put", PATH, branch(0, "main")).await.done();
    let lost = stage.ask("put", PATH, branch(0, "other")).await;
    assert_eq!(lost.refused(409, "revision_conflict")["details"]["current"], 1);
    let constraint = json!({ "kind": "must_not", "text": "deploy on a friday" });
    let more = json!({ "by": "lead", "constraints": [constraint] });
    let written = stage.ask("put", PATH, more).await.done();
    assert_eq!((&written["revision"], &written["state"]["branch"]), (&json!(2), &json!("main")));
    assert_eq!(written["constraints"], json!([constraint]));
    let wrong = json!({ "by": "lead", "state": { "branches": [] } });
    stage.ask("put", PATH, wrong).await.refused(400, "invalid_request");
    stage.get("/v1/projects/a%20b/context").await.refused(400, "invalid_request");
}

async fn a_decision_is_settled_until_it_is_superseded(stage: Stage) {
    let decide = |decision: &str, supersedes: Option<u32>| {
        let mut body = json!({ "by": "lead", "key": "database", "decision": decision });
        body["supersedes"] = json!(supersedes);
        body
    };
    stage.ask("put", PATH, branch(0, "main")).await.done();
    stage.post(DECISIONS, decide("sqlite", None)).await.done();
    let settled = stage.post(DECISIONS, decide("postgres", None)).await;
    assert_eq!(settled.refused(409, "decision_settled")["details"]["decision"], 1);
    let context = stage.post(DECISIONS, decide("postgres", Some(1))).await.done();
    let log = context["decisions"].as_array().unwrap();
    assert_eq!((log.len(), &log[0]["superseded_by"]), (2, &json!(2)));
    assert_eq!((&log[1]["decision"], &log[1]["by"]), (&json!("postgres"), &json!("lead")));
    assert_eq!(context["state"]["branch"], "main", "what else was written stays");
    let written = stage.ask("put", PATH, branch(3, "next")).await.done();
    assert_eq!(written["decisions"].as_array().unwrap().len(), 2, "a write keeps the log");
}

async fn ownership_cannot_be_written_into_it(stage: Stage) {
    for body in [
        json!({ "by": "lead", "owner": "me" }),
        json!({ "by": "lead", "task_queue": [] }),
        json!({ "by": "lead", "state": { "status": { "task_1": "done" } } }),
    ] {
        let problem = stage.ask("put", PATH, body).await.refused(422, "ownership_not_shared");
        assert!(text(&problem["hint"]).contains("/v1/handoffs"), "{problem}");
    }
    let decision = json!({ "by": "lead", "key": "k", "decision": "d", "assignee": "me" });
    stage.post(DECISIONS, decision).await.refused(422, "ownership_not_shared");
    assert_eq!(stage.get(PATH).await.done()["revision"], 0);
}

async fn the_task_queue_is_looked_up_and_never_kept(stage: Stage) {
    let handoff = stage.offer("coder", json!({ "project": "web" })).await;
    // What belongs elsewhere is not in it.
    stage.offer("coder", json!({ "project": "ledger" })).await;
    stage.offer("coder", json!({})).await;
    let queue = stage.get(PATH).await.done()["task_queue"].clone();
    assert_eq!((&queue[0]["handoff_id"], &queue[0]["owner"]), (&json!(handoff), &json!("planner")));
    let held = stage.claimed(&handoff, "coder").await;
    assert_eq!(stage.get(PATH).await.done()["task_queue"][0]["owner"], "coder");
    stage.completed(&held).await;
    assert_eq!(stage.get(PATH).await.done()["task_queue"], json!([]));
}
