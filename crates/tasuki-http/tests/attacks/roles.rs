// SPDX-License-Identifier: Apache-2.0
//! The wall around roles and around what was granted before: who loses a right does not get it back by
//! what it prepared, and who decides about some work decides about no other.

use serde_json::json;

use crate::support::{Stage, everything, join, may, new_key, on_durable_stores, text, towards};

on_durable_stores! { closed:
    an_invitation_or_a_key_with_the_rules_that_an_agent_has_gives_its_rights_to_nobody_else
    a_right_that_was_taken_away_does_not_come_back_by_an_invitation_from_before
    a_token_for_another_agent_does_not_follow_what_that_agent_gets_later
    who_was_taken_out_does_not_come_back_by_itself_or_by_an_operator
    a_role_is_what_it_says_and_no_more
    a_coordinator_reviews_its_own_tasks_only
}

async fn an_invitation_or_a_key_with_the_rules_that_an_agent_has_gives_its_rights_to_nobody_else(
    stage: Stage,
) {
    let admin = stage.administrator().await;
    let lead = admin.enroll("lead", towards(&["administer", "send"], &["team-*"])).await;
    let rules = towards(&["send"], &["prod-*"]);
    admin.enroll("team-deployer", rules.clone()).await;
    let head = stage.store.head();
    let body = json!({ "key": new_key().public(), "rules": rules });
    lead.post("/v1/agents/team-deployer/keys", body).await.refused(403, "grant_too_wide");
    let body = json!({ "purpose": "join", "agent_id": "team-deployer", "rules": rules });
    lead.post("/v1/tokens", body).await.refused(403, "grant_too_wide");
    stage.unmoved_since(head).await;
}

async fn a_right_that_was_taken_away_does_not_come_back_by_an_invitation_from_before(stage: Stage) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("boss", everything()).await;
    let (_, for_itself) = boss.token("join", "boss", everything()).await;
    let (_, for_another) = boss.token("join", "puppet", everything()).await;
    admin.set_rules("boss", may(&["read"])).await;
    let stage = stage.restarted().await;
    let boss = boss.on(&stage);
    let second = boss.with_key("boss", new_key());
    join(&second, &for_itself, json!({})).await.refused(403, "token_refused");
    let puppet = boss.with_key("puppet", new_key());
    join(&puppet, &for_another, json!({})).await.refused(403, "token_refused");
}

async fn a_token_for_another_agent_does_not_follow_what_that_agent_gets_later(stage: Stage) {
    let admin = stage.administrator().await;
    let lead = admin.enroll("lead", towards(&["administer", "send"], &["team-*"])).await;
    admin.enroll("team-1", towards(&["send"], &["team-2"])).await;
    // It is meant to allow whatever the agent may do, which is less than the lead may do.
    let (_, token) = lead.token("bearer", "team-1", everything()).await;
    let bearer = lead.with_token("team-1", &token);
    bearer.offer("team-2", json!({})).await;
    admin.set_rules("team-1", everything()).await;
    let body = bearer.offering("prod-db", json!({}));
    bearer.post("/v1/handoffs", body).await.refused(403, "not_permitted");
    bearer.get("/v1/stats").await.refused(403, "not_permitted");
}

async fn who_was_taken_out_does_not_come_back_by_itself_or_by_an_operator(stage: Stage) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("boss", everything()).await;
    let (_, invitation) = admin.token("join", "boss", everything()).await;
    let (_, made) = boss.token("bearer", "boss", everything()).await;
    let pilot = admin.enroll("pilot", json!([{ "role": "operator" }])).await;
    admin.post("/v1/agents/boss/deregister", json!({})).await.done();
    boss.with_token("boss", &made).get("/v1/stats").await.refused(401, "token_invalid");
    let late = boss.with_key("boss", new_key());
    join(&late, &invitation, json!({})).await.refused(403, "token_refused");
    pilot.post("/v1/agents/boss/resume", json!({})).await.refused(403, "grant_too_wide");
    boss.get("/v1/stats").await.refused(401, "signature_wrong");
    admin.post("/v1/agents/boss/resume", json!({})).await.done();
    boss.get("/v1/stats").await.done();
}

async fn a_role_is_what_it_says_and_no_more(stage: Stage) {
    let admin = stage.administrator().await;
    let worker = admin.enroll("coder", json!([{ "role": "worker" }])).await;
    let viewer = admin.enroll("viewer", json!([{ "role": "viewer" }])).await;
    let reviewer = admin.enroll("reviewer", json!([{ "role": "reviewer" }])).await;
    let pilot = admin.enroll("pilot", json!([{ "role": "operator" }])).await;
    for client in [&worker, &viewer, &reviewer, &pilot] {
        client.get("/v1/stats").await.done();
        let invite = json!({ "purpose": "join", "agent_id": "x", "rules": [{ "role": "viewer" }] });
        client.post("/v1/tokens", invite).await.refused(403, "not_permitted");
        let body = json!({ "rules": everything() });
        let path = format!("/v1/agents/{}/rules", client.name);
        client.post(&path, body).await.refused(403, "not_permitted");
    }
    for client in [&viewer, &reviewer, &pilot] {
        let body = client.offering("coder", json!({}));
        client.post("/v1/handoffs", body).await.refused(403, "not_permitted");
    }
    for client in [&worker, &viewer, &reviewer] {
        client.post("/v1/agents/pilot/drain", json!({})).await.refused(403, "not_permitted");
    }
    pilot.post("/v1/agents/coder/drain", json!({})).await.done();
    pilot.post("/v1/agents/coder/resume", json!({})).await.done();
    pilot.post("/v1/agents/coder/deregister", json!({})).await.refused(403, "not_permitted");
    let offered = worker.offer("coder", json!({ "needs_approval": true })).await;
    let approve = format!("/v1/handoffs/{offered}/approve");
    for client in [&viewer, &pilot, &worker] {
        let body = json!({ "by": client.name });
        client.post(&approve, body).await.refused(403, "not_permitted");
    }
    reviewer.post(&approve, json!({ "by": "reviewer" })).await.done();
    // Roles are answered as what they stand for.
    let shown = admin.get("/v1/agents/pilot").await.done();
    assert_eq!(shown["rules"][0]["permissions"], json!(["read", "operate"]));
}

async fn a_coordinator_reviews_its_own_tasks_only(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", json!([{ "role": "worker" }])).await;
    let lead = admin.enroll("lead", json!([{ "role": "worker" }])).await;
    let change = json!({ "needs_approval": true, "coordinator": { "agent": "lead" } });
    let own = planner.offer("coder", change).await;
    let other = planner.offer("coder", json!({ "needs_approval": true })).await;
    let approve = |id: &str| format!("/v1/handoffs/{id}/approve");
    let by = json!({ "by": "lead" });
    lead.post(&approve(&other), by.clone()).await.refused(403, "not_permitted");
    lead.post(&approve(&own), by.clone()).await.done();
    // Nobody releases what it sent itself by naming itself.
    let change = json!({ "needs_approval": true, "coordinator": { "agent": "lead" } });
    let sent = lead.offer("coder", change).await;
    lead.post(&approve(&sent), by).await.refused(403, "not_permitted");
    let shown = planner.get(&format!("/v1/handoffs/{own}")).await.done();
    assert_eq!(text(&shown["state"]), "pending");
}
