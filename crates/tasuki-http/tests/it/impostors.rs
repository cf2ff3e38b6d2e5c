// SPDX-License-Identifier: Apache-2.0
//! Somebody known that speaks for somebody else, or acts on a claim that is not its own.

use serde_json::{Value, json};

use crate::support::{Client, Held, Stage, everything, failure, may, merged, on_both_stores, text};

on_both_stores! { closed:
    a_leaked_claim_is_of_no_use_to_others
    nobody_speaks_for_another_agent
    nobody_speaks_for_its_namesake_in_another_tenant
    a_part_of_a_batch_that_speaks_for_another_is_refused_by_itself
}

fn every_act(agent: &str) -> [(&'static str, Value); 7] {
    [
        ("start", json!({})),
        ("heartbeat", json!({})),
        ("progress", json!({ "percent": 99 })),
        ("complete", json!({ "payload": { "type": "done" } })),
        ("fail", failure("permanent")),
        ("decline", json!({ "agent": agent })),
        ("release", json!({})),
    ]
}

async fn a_leaked_claim_is_of_no_use_to_others(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let coder = admin.enroll("coder", may(&["claim", "complete"])).await;
    let thieves = [
        admin.enroll("tester", everything()).await,
        admin.enroll("acme/coder", everything()).await,
        planner.clone(),
        admin.clone(),
    ];
    let id = planner.offer("coder", json!({})).await;
    let held = coder.claimed(&id).await;
    let head = stage.store.head();
    for thief in &thieves {
        for (act, more) in every_act(&thief.name) {
            let problem = thief.act(&held, act, more).await.refused(404, "handoff_not_found");
            assert_eq!(problem["details"], json!({ "handoff_id": id }));
        }
        let part = held.with(json!({ "handoff_id": id, "payload": { "type": "d" } }));
        let batch = thief.post("/v1/completions", json!({ "completions": [part] })).await.done();
        assert_eq!(batch["results"][0]["error"]["code"], "handoff_not_found");
        let claim = thief.claim_one(&id).await;
        assert!(matches!(claim.status, 403 | 404 | 409), "{}", claim.body);
    }
    stage.unmoved_since(head).await;
    assert_eq!(planner.state_of(&id).await, "claimed");
    coder.completed(&held).await;
}

/// Every request that names who makes it, with this name.
async fn every_name(planner: &Client, named: &str) -> Vec<(String, Value)> {
    let approval = planner.offer("coder", json!({ "needs_approval": true })).await;
    let dead = planner.offer("planner", json!({})).await;
    let held = planner.claimed(&dead).await;
    planner.act(&held, "fail", failure("permanent")).await.done();
    let own = planner.offer("planner", json!({})).await;
    let shown = planner.get(&format!("/v1/handoffs/{own}")).await.done();
    let task = text(&shown["task_id"]);
    let by = json!({ "by": named, "reason": "because" });
    let wish = json!({ "agent": named, "capabilities": ["review"] });
    let (decide, handoff) = (json!({ "by": named }), format!("/v1/handoffs/{own}"));
    vec![
        ("/v1/tasks".into(), json!({ "from_agent": named, "intent": "i" })),
        ("/v1/handoffs".into(), planner.offering("coder", json!({ "from_agent": named }))),
        ("/v1/claims".into(), wish.clone()),
        ("/v1/claims/peek".into(), wish.clone()),
        (format!("{handoff}/claim"), wish),
        (format!("{handoff}/decline"), json!({ "agent": named })),
        (format!("{handoff}/cancel"), by.clone()),
        (format!("{handoff}/abort"), by.clone()),
        (format!("/v1/handoffs/{approval}/approve"), decide.clone()),
        (format!("/v1/handoffs/{approval}/reject"), by.clone()),
        (format!("/v1/tasks/{task}/cancel"), by.clone()),
        (format!("/v1/dead-letters/{dead}/redrive"), decide),
        (format!("/v1/dead-letters/{dead}/discard"), by),
    ]
}

async fn refused_with_name(planner: &Client, named: &str) {
    let requests = every_name(planner, named).await;
    let head = planner.stage.store.head();
    for (path, body) in requests {
        let problem = planner.post(&path, body).await.refused(403, "not_permitted");
        assert!(text(&problem["message"]).contains(named), "{path}: {problem}");
    }
    planner.stage.unmoved_since(head).await;
}

async fn nobody_speaks_for_another_agent(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    admin.enroll("coder", everything()).await;
    for named in ["coder", "admin", "nobody", "broker"] {
        refused_with_name(&planner, named).await;
    }
}

async fn nobody_speaks_for_its_namesake_in_another_tenant(stage: Stage) {
    let admin = stage.administrator().await;
    let ours = admin.enroll("acme/planner", everything()).await;
    let theirs = admin.enroll("umbra/planner", everything()).await;
    let default = admin.enroll("planner", everything()).await;
    refused_with_name(&ours, "umbra/planner").await;
    refused_with_name(&theirs, "acme/planner").await;
    refused_with_name(&default, "acme/planner").await;
    // A bare name is one of one's own tenant.
    let id = ours.offer("coder", json!({ "from_agent": "planner" })).await;
    let shown = ours.get(&format!("/v1/handoffs/{id}")).await.done();
    let names = (&shown["from_agent"], &shown["to"]["agent"]);
    assert_eq!(names, (&json!("acme/planner"), &json!("acme/coder")));
}

async fn a_part_of_a_batch_that_speaks_for_another_is_refused_by_itself(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let coder = admin.enroll("coder", everything()).await;
    let good = planner.offering("coder", json!({}));
    let bad = merged(good.clone(), json!({ "from_agent": "coder" }));
    let abroad = merged(good.clone(), json!({ "to": { "agent": "acme/coder" } }));
    let batch = json!({ "offers": [bad, good, abroad] });
    let results = planner.post("/v1/handoffs/batch", batch).await.done();
    assert_eq!(results["results"][0]["error"]["code"], "not_permitted");
    assert_eq!(results["results"][2]["error"]["code"], "other_tenant");
    let id = text(&results["results"][1]["handoff_id"]);
    let held: Held = coder.claimed(&id).await;
    coder.completed(&held).await;
}
