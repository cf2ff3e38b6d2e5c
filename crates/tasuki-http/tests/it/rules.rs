// SPDX-License-Identifier: Apache-2.0
//! What rules say: nothing is allowed that no rule allows, rules hold for the targets that they
//! name, a denial wins, and nobody gets more by looking after others.

use serde_json::{Value, json};
use tasuki_core::Body;
use tasuki_core::identity::statement;

use crate::support::{
    Client, Stage, everything, failure, may, new_key, on_both_stores, possession, text, towards,
};

on_both_stores! { closed:
    an_agent_without_rules_looks_after_itself_and_nothing_else
    other_agents_are_seen_only_by_who_may_read
    work_is_sent_only_towards_targets_that_a_rule_names
    work_is_claimed_only_where_a_rule_names_the_agent_and_each_capability
    decisions_are_for_who_may_decide_about_the_target
    a_denial_wins_over_every_allowance
    what_may_not_be_read_of_a_handoff_may_not_be_read_of_its_task
    work_that_may_not_be_completed_is_not
    who_administers_some_agents_does_not_operate_the_broker
    who_administers_some_agents_makes_nobody_an_administrator_of_others
    rules_that_say_nothing_sensible_are_refused
}

async fn an_agent_without_rules_looks_after_itself_and_nothing_else(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let mei = admin.enroll("mei", may(&[])).await;
    let others = planner.offer("coder", json!({})).await;
    planner.token("bearer", "planner", may(&[])).await;
    assert_eq!(mei.get("/v1/agents/mei").await.done()["rules"], json!([]));
    for (path, field) in
        [("/v1/tasks", "tasks"), ("/v1/dead-letters", "handoffs"), ("/v1/tokens", "tokens")]
    {
        assert_eq!(mei.get(path).await.done()[field], json!([]), "{path}");
    }
    // It sees what is addressed to it, and may not take it.
    let mine = planner.offer("mei", json!({})).await;
    assert_eq!(mei.state_of(&mine).await, "pending");
    let listed = mei.get("/v1/handoffs").await.done();
    assert_eq!(listed["handoffs"].as_array().unwrap().len(), 1);
    mei.get(&format!("/v1/handoffs/{others}")).await.refused(404, "handoff_not_found");
    mei.claim_one(&mine).await.refused(403, "not_permitted");

    let manifest = json!({ "agent_id": "mei", "capabilities": [] });
    let signature = mei.key().sign(&statement::manifest(Body::of(&manifest).hash));
    let signed = json!({ "key_id": mei.key_id(), "signature": signature });
    let body = json!({ "manifest": manifest, "signed": signed });
    mei.post("/v1/agents", body).await.done();
    for act in ["drain", "resume"] {
        mei.post(&format!("/v1/agents/mei/{act}"), json!({})).await.done();
    }
    let new = mei.with_key("mei", new_key());
    let rotate = json!({
        "old": mei.key_id(), "key": new.key().public(), "proof": possession(new.key(), "mei"),
    });
    mei.post("/v1/agents/mei/keys/rotate", rotate).await.done();
    let revoke = format!("/v1/agents/mei/keys/{}/revoke", mei.key_id());
    new.post(&revoke, json!({})).await.done();
    let head = stage.store.head();
    for path in ["/v1/stats", "/v1/events", "/v1/audit/verify", "/v1/tenants"] {
        new.get(path).await.refused(403, "not_permitted");
    }
    let more = json!({ "rules": everything() });
    new.post("/v1/agents/mei/rules", more).await.refused(403, "not_permitted");
    stage.unmoved_since(head).await;
}

async fn other_agents_are_seen_only_by_who_may_read(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(&["send"])).await;
    let mei = admin.enroll("mei", may(&[])).await;
    admin.set_rules("mei", may(&["read"])).await;
    let shown = mei.get("/v1/agents/planner").await.done();
    assert_eq!(shown["keys"][0]["key_id"], planner.key_id());
    assert!(shown.get("rules").is_none(), "what it may do is not for others to know");
    admin.set_rules("mei", may(&[])).await;
    mei.get("/v1/agents/planner").await.refused(404, "agent_not_found");
    let listed = mei.get("/v1/agents").await.done();
    let names: Vec<_> =
        listed["agents"].as_array().unwrap().iter().map(|a| &a["agent_id"]).collect();
    assert_eq!(names, ["mei"]);
}

async fn work_is_sent_only_towards_targets_that_a_rule_names(stage: Stage) {
    let admin = stage.administrator().await;
    let rules = json!([
        { "permissions": ["send"], "targets": ["review*", "?ester"] },
        { "permissions": ["claim", "complete"], "targets": ["mei"] },
    ]);
    let mei = admin.enroll("mei", rules).await;
    let planner = admin.enroll("planner", everything()).await;
    for to in ["reviewer", "review", "tester", "*reviewing"] {
        mei.offer(to, json!({})).await;
    }
    let held = mei.claimed(&planner.offer("mei", json!({})).await).await;
    let head = stage.store.head();
    for to in ["coder", "prereview", "ester", "testers", "Reviewer", "*coding", "mei"] {
        let body = mei.offering(to, json!({}));
        mei.post("/v1/handoffs", body).await.refused(403, "not_permitted");
    }
    let batch = json!({ "offers": [mei.offering("coder", json!({}))] });
    let results = mei.post("/v1/handoffs/batch", batch).await.done();
    assert_eq!(results["results"][0]["error"]["code"], "not_permitted");
    // What follows from a result is sent, too.
    let to = |agent: &str| {
        let hop = json!({ "to": { "agent": agent }, "payload": { "type": "next" } });
        json!({ "payload": { "type": "done" }, "follow_ups": [hop] })
    };
    mei.act(&held, "complete", to("coder")).await.refused(403, "not_permitted");
    stage.unmoved_since(head).await;
    mei.act(&held, "complete", to("reviewer")).await.done();
}

async fn work_is_claimed_only_where_a_rule_names_the_agent_and_each_capability(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let mei = admin.enroll("mei", towards(&["claim"], &["mei", "review*"])).await;
    mei.declares(&["deploy", "reviewing"]).await;
    let deploy = planner.offer("*deploy", json!({})).await;
    let review = planner.offer("*reviewing", json!({})).await;
    let head = stage.store.head();
    for capabilities in [json!(["deploy"]), json!(["reviewing", "deploy"])] {
        let wish = json!({ "agent": "mei", "capabilities": capabilities });
        for path in ["/v1/claims", "/v1/claims/peek", &format!("/v1/handoffs/{deploy}/claim")] {
            mei.post(path, wish.clone()).await.refused(403, "not_permitted");
        }
    }
    stage.unmoved_since(head).await;
    let wish = json!({ "agent": "mei", "capabilities": ["reviewing"], "max": 10 });
    let claims = mei.post("/v1/claims", wish).await.done();
    assert_eq!(claims["claims"].as_array().unwrap().len(), 1);
    assert_eq!(claims["claims"][0]["handoff_id"], review);
    admin.set_rules("mei", towards(&["claim"], &["review*"])).await;
    let wish = json!({ "agent": "mei", "capabilities": ["reviewing"] });
    mei.post("/v1/claims", wish).await.refused(403, "not_permitted");
}

async fn decisions_are_for_who_may_decide_about_the_target(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let worker = admin.enroll("prod-db", may(&["claim", "complete"])).await;
    let other = admin.enroll("coder", may(&["claim", "complete"])).await;
    let judge = admin.enroll("judge", towards(&["approve", "redrive"], &["prod-*"])).await;
    for (who, permitted) in [(&worker, true), (&other, false)] {
        let waiting = planner.offer(&who.name, json!({ "needs_approval": true })).await;
        let dead = planner.offer(&who.name, json!({})).await;
        let held = who.claimed(&dead).await;
        who.act(&held, "fail", failure("permanent")).await.done();
        let by = json!({ "by": "judge" });
        for path in
            [format!("/v1/handoffs/{waiting}/approve"), format!("/v1/dead-letters/{dead}/redrive")]
        {
            let reply = judge.post(&path, by.clone()).await;
            if permitted {
                reply.done();
                continue;
            }
            reply.refused(404, "handoff_not_found");
            // Who sees it is told why it may not.
            let rules = json!([
                { "permissions": ["approve", "redrive"], "targets": ["prod-*"] },
                { "permissions": ["read"] },
            ]);
            admin.set_rules("judge", rules).await;
            judge.post(&path, by.clone()).await.refused(403, "not_permitted");
            admin.set_rules("judge", towards(&["approve", "redrive"], &["prod-*"])).await;
        }
    }
}

async fn a_denial_wins_over_every_allowance(stage: Stage) {
    let admin = stage.administrator().await;
    let mei = admin.enroll("mei", may(&[])).await;
    let all = json!({ "permissions": ["send", "read"] });
    let exactly = json!({ "permissions": ["send"], "targets": ["prod-db"] });
    let deny = json!({ "effect": "deny", "permissions": ["send"], "targets": ["prod-*"] });
    let orders: [Vec<&Value>; 3] =
        [vec![&all, &exactly, &deny], vec![&deny, &exactly, &all], vec![&exactly, &deny, &all]];
    for rules in orders {
        admin.set_rules("mei", json!(rules)).await;
        let body = mei.offering("prod-db", json!({}));
        mei.post("/v1/handoffs", body).await.refused(403, "not_permitted");
        let body = mei.offering("*prod-deploy", json!({}));
        mei.post("/v1/handoffs", body).await.refused(403, "not_permitted");
        mei.offer("staging", json!({})).await;
    }
    let nothing = json!({ "effect": "deny", "permissions": ["send"] });
    admin.set_rules("mei", json!([all, exactly, nothing])).await;
    let task = json!({ "from_agent": "mei", "intent": "i" });
    mei.post("/v1/tasks", task).await.refused(403, "not_permitted");
    mei.get("/v1/stats").await.done();
}

async fn what_may_not_be_read_of_a_handoff_may_not_be_read_of_its_task(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let denied = json!([
        { "permissions": ["read"] },
        { "effect": "deny", "permissions": ["read"], "targets": ["vault*"] },
    ]);
    let payload = json!({ "payload": { "type": "x", "text": "open-sesame" } });
    let id = planner.offer("vault", payload).await;
    let task = text(&planner.get(&format!("/v1/handoffs/{id}")).await.done()["task_id"]);
    let mei = admin.enroll("mei", may(&[])).await;
    for rules in [denied, towards(&["read"], &["coder*"])] {
        admin.set_rules("mei", rules).await;
        for path in [format!("/v1/handoffs/{id}"), format!("/v1/handoffs/{id}/envelope")] {
            mei.get(&path).await.refused(404, "handoff_not_found");
        }
        assert_eq!(mei.get("/v1/handoffs").await.done()["handoffs"], json!([]));
        for path in [format!("/v1/tasks/{task}"), format!("/v1/tasks/{task}/events")] {
            let reply = mei.get(&path).await;
            assert!(!reply.text().contains("open-sesame"), "{path}: {}", reply.text());
            assert!(!reply.text().contains(&id), "{path}: {}", reply.text());
        }
    }
}

async fn work_that_may_not_be_completed_is_not(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let rules = json!([
        { "permissions": ["claim", "complete"] },
        { "effect": "deny", "permissions": ["complete"], "targets": ["prod-*"] },
    ]);
    let mei = admin.enroll("mei", rules).await;
    mei.declares(&["review", "prod-deploy"]).await;
    let claimed = async |to: &str| {
        let id = planner.offer(&format!("*{to}"), json!({})).await;
        let wish = json!({ "agent": "mei", "capabilities": [to] });
        let claimed = mei.post(&format!("/v1/handoffs/{id}/claim"), wish).await.done();
        crate::support::Held::of(&claimed)
    };
    mei.completed(&claimed("review").await).await;
    let held = claimed("prod-deploy").await;
    let done = json!({ "payload": { "type": "done" } });
    mei.act(&held, "complete", done).await.refused(403, "not_permitted");
    assert_eq!(planner.state_of(&held.handoff).await, "claimed");
}

/// Somebody who looks after the workers and nobody else.
async fn lead(admin: &Client) -> Client {
    let rules = json!([
        { "permissions": ["administer"], "targets": ["worker-*"] },
        { "permissions": ["claim", "complete"] },
    ]);
    admin.enroll("lead", rules).await
}

async fn who_administers_some_agents_does_not_operate_the_broker(stage: Stage) {
    let admin = stage.administrator().await;
    let lead = lead(&admin).await;
    admin.enroll("acme/worker-1", may(&["send"])).await;
    lead.enroll("worker-1", may(&["claim"])).await;
    lead.set_rules("worker-1", may(&["claim", "complete"])).await;
    let head = stage.store.head();
    for path in ["/v1/agents/boss/keys", "/v1/agents/lead/keys"] {
        let body = json!({ "key": new_key().public(), "rules": everything() });
        lead.post(path, body).await.refused(403, "not_permitted");
    }
    for path in ["/v1/audit/export", "/v1/audit/verify", "/v1/tenants", "/v1/security"] {
        lead.get(path).await.refused(403, "not_permitted");
    }
    lead.post("/v1/tenants/acme", json!({})).await.refused(403, "not_permitted");
    lead.get("/v1/agents/acme%2Fworker-1").await.refused(404, "agent_not_found");
    let body = json!({ "key": new_key().public(), "rules": everything() });
    lead.post("/v1/agents/acme%2Fworker-1/keys", body).await.refused(404, "agent_not_found");
    stage.unmoved_since(head).await;
}

async fn who_administers_some_agents_makes_nobody_an_administrator_of_others(stage: Stage) {
    let admin = stage.administrator().await;
    let lead = lead(&admin).await;
    admin.enroll("boss", everything()).await;
    // By a key, by rules, or by a join token: refused, or without effect on anybody else.
    let one = lead.with_key("worker-1", new_key());
    let enroll = json!({ "key": one.key().public(), "rules": everything() });
    lead.post("/v1/agents/worker-1/keys", enroll).await;
    let two = lead.enroll("worker-2", may(&["claim"])).await;
    lead.post("/v1/agents/worker-2/rules", json!({ "rules": everything() })).await;
    let three = lead.with_key("worker-3", new_key());
    let token = json!({ "purpose": "join", "agent_id": "worker-3", "rules": everything() });
    let issued = lead.post("/v1/tokens", token).await;
    if issued.status < 300 {
        let token = text(&issued.body["text"]);
        crate::support::join(&three, &token, json!({})).await;
    }
    for who in [&one, &two, &three] {
        let reply = who.post("/v1/agents/boss/rules", json!({ "rules": [] })).await;
        assert!(matches!(reply.status, 401 | 403), "{}: {}", who.name, reply.body);
        assert!(matches!(who.get("/v1/security").await.status, 401 | 403), "{}", who.name);
    }
}

async fn rules_that_say_nothing_sensible_are_refused(stage: Stage) {
    let admin = stage.administrator().await;
    admin.enroll("mei", may(&["send"])).await;
    let head = stage.store.head();
    let refused = async |rules: Value, status: u16, code: &str| {
        let body = json!({ "rules": rules });
        admin.post("/v1/agents/mei/rules", body).await.refused(status, code);
        let body = json!({ "purpose": "join", "agent_id": "new", "rules": rules });
        admin.post("/v1/tokens", body).await.refused(status, code);
        let body = json!({ "key": new_key().public(), "rules": rules });
        admin.post("/v1/agents/mei/keys", body).await.refused(status, code);
    };
    for rule in [
        json!({ "permissions": [] }),
        json!({ "permissions": ["send"], "targets": [] }),
        json!({ "permissions": ["send"], "targets": [""] }),
        json!({ "permissions": ["send"], "projects": ["x".repeat(129)] }),
    ] {
        refused(json!([rule]), 422, "invalid_rules").await;
    }
    let many: Vec<_> = (0..65).map(|_| json!({ "permissions": ["send"] })).collect();
    refused(json!(many), 422, "invalid_rules").await;
    for rule in [
        json!({ "permissions": ["fly"] }),
        json!({ "permissions": ["send"], "effect": "maybe" }),
        json!({ "permissions": ["send"], "target": ["x"] }),
        json!("send"),
    ] {
        refused(json!([rule]), 400, "invalid_request").await;
    }
    stage.unmoved_since(head).await;
}
