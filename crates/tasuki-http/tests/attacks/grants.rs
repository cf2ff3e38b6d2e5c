// SPDX-License-Identifier: Apache-2.0
//! The wall around rights: nobody grants what it lacks, by whatever way, and a token that was stolen
//! does not become its agent for good.

use serde_json::{Value, json};

use crate::support::{
    Client, Stage, everything, join, may, new_key, on_durable_stores, possession, segment, text,
    towards,
};

on_durable_stores! { closed:
    a_stolen_token_neither_replaces_nor_revokes_nor_adds_keys_of_its_agent
    a_key_is_replaced_by_itself_or_by_another_administrator
    a_revoked_token_takes_those_with_it_that_were_made_from_it
    a_revoked_key_takes_those_with_it_that_it_made_for_others
    who_administers_some_grants_nothing_that_it_lacks
    who_is_denied_something_denies_it_to_those_it_makes
    who_administers_some_does_not_become_somebody_with_more_rights
    refused_grants_stand_in_the_log
}

async fn rotate(by: &Client, agent: &Client) -> crate::support::Reply {
    let new = new_key();
    let body = json!({
        "old": agent.key_id(), "key": new.public(), "proof": possession(&new, &agent.name),
    });
    by.post(&format!("/v1/agents/{}/keys/rotate", segment(&agent.name)), body).await
}

async fn a_stolen_token_neither_replaces_nor_revokes_nor_adds_keys_of_its_agent(stage: Stage) {
    let admin = stage.administrator().await;
    // Whatever the rules of the agent and of its token.
    let boss = admin.enroll("boss", everything()).await;
    let (_, token) = boss.token("bearer", "boss", everything()).await;
    let thief = boss.with_token("boss", &token);
    let head = stage.store.head();
    rotate(&thief, &boss).await.refused(403, "key_not_shown");
    let revoke = format!("/v1/agents/boss/keys/{}/revoke", boss.key_id());
    thief.post(&revoke, json!({})).await.refused(403, "key_not_shown");
    let enroll = json!({ "key": new_key().public() });
    thief.post("/v1/agents/boss/keys", enroll).await.refused(403, "key_not_shown");
    let invite = json!({ "purpose": "join", "agent_id": "boss", "rules": everything() });
    thief.post("/v1/tokens", invite).await.refused(403, "key_not_shown");
    stage.unmoved_since(head).await;
    boss.get("/v1/agents/boss").await.done();
}

async fn a_key_is_replaced_by_itself_or_by_another_administrator(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["claim"])).await;
    let second = coder.with_key("coder", new_key());
    let body = json!({ "key": second.key().public() });
    admin.post("/v1/agents/coder/keys", body).await.done();
    // The other key of the same agent does not replace this one.
    rotate(&second, &coder).await.refused(403, "key_not_shown");
    let revoke = format!("/v1/agents/coder/keys/{}/revoke", second.key_id());
    coder.post(&revoke, json!({})).await.done();
    rotate(&coder, &coder).await.done();
    let tester = admin.enroll("tester", may(&["claim"])).await;
    rotate(&admin, &tester).await.done();
}

async fn a_revoked_token_takes_those_with_it_that_were_made_from_it(stage: Stage) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("boss", everything()).await;
    admin.enroll("coder", may(&["read"])).await;
    let (first, token) = boss.token("bearer", "boss", everything()).await;
    let first_bearer = boss.with_token("boss", &token);
    let (second, token) = first_bearer.token("bearer", "boss", everything()).await;
    let second_bearer = boss.with_token("boss", &token);
    let (_, token) = second_bearer.token("bearer", "coder", may(&["read"])).await;
    let third = boss.with_token("coder", &token);
    let (_, invitation) = second_bearer.token("join", "late", may(&["read"])).await;
    let (_, apart) = boss.token("bearer", "boss", everything()).await;
    third.get("/v1/stats").await.done();

    let listed = boss.get("/v1/tokens").await.done();
    let tokens = listed["tokens"].as_array().unwrap();
    let made = tokens.iter().find(|token| token["token_id"] == second).unwrap();
    assert_eq!((&made["made_by"], &made["made_from"]["token"]), (&json!("boss"), &json!(first)));

    let stage = stage.restarted().await;
    let (boss, second_bearer, third) =
        (boss.on(&stage), second_bearer.on(&stage), third.on(&stage));
    boss.post(&format!("/v1/tokens/{first}/revoke"), json!({})).await.done();
    for made in [&first_bearer.on(&stage), &second_bearer, &third] {
        made.get("/v1/stats").await.refused(401, "token_invalid");
    }
    let late = boss.with_key("late", new_key());
    join(&late, &invitation, json!({})).await.refused(403, "token_refused");
    boss.with_token("boss", &apart).get("/v1/stats").await.done();
    let listed = boss.get("/v1/tokens").await.done();
    let ended = |token: &&Value| token["ended_at"].is_string();
    assert_eq!(listed["tokens"].as_array().unwrap().iter().filter(ended).count(), 4);
}

async fn a_revoked_key_takes_those_with_it_that_it_made_for_others(stage: Stage) {
    let admin = stage.administrator().await;
    let boss = admin.enroll("boss", everything()).await;
    admin.enroll("coder", may(&["read"])).await;
    let (_, token) = boss.token("bearer", "coder", may(&["read"])).await;
    let made = boss.with_token("coder", &token);
    made.get("/v1/stats").await.done();
    let revoke = format!("/v1/agents/boss/keys/{}/revoke", boss.key_id());
    admin.post(&revoke, json!({})).await.done();
    made.get("/v1/stats").await.refused(401, "token_invalid");
}

/// Somebody who administers a team and may send to it.
async fn lead(admin: &Client) -> Client {
    admin.enroll("lead", towards(&["administer", "send"], &["team-*"])).await
}

async fn who_administers_some_grants_nothing_that_it_lacks(stage: Stage) {
    let admin = stage.administrator().await;
    let lead = lead(&admin).await;
    lead.enroll("team-1", towards(&["send"], &["team-2", "team-a*"])).await;
    lead.enroll("team-2", towards(&["administer"], &["team-2*"])).await;
    let wider = [
        may(&["send"]),
        towards(&["send"], &["team*"]),
        towards(&["send"], &["team-1", "prod"]),
        towards(&["send"], &["?eam-1"]),
        towards(&["redrive"], &["team-1"]),
        towards(&["administer"], &["*"]),
        json!([{ "permissions": ["send"], "targets": ["team-1"] }, { "permissions": ["read"] }]),
        everything(),
    ];
    for rules in wider {
        let head = stage.store.head();
        let body = json!({ "key": new_key().public(), "rules": rules });
        lead.post("/v1/agents/team-3/keys", body).await.refused(403, "grant_too_wide");
        let body = json!({ "rules": rules });
        lead.post("/v1/agents/team-1/rules", body).await.refused(403, "grant_too_wide");
        let body = json!({ "purpose": "join", "agent_id": "team-4", "rules": rules });
        lead.post("/v1/tokens", body).await.refused(403, "grant_too_wide");
        stage.unmoved_since(head).await;
    }
    // What somebody has from others it may keep; what it is denied it stays denied.
    let mut kept = towards(&["read"], &["docs"]).as_array().unwrap().clone();
    kept.push(json!({ "effect": "deny", "permissions": ["read"], "targets": ["docs-secret"] }));
    admin.set_rules("team-1", json!(kept)).await;
    let more = towards(&["send"], &["team-9"]).as_array().unwrap()[0].clone();
    kept.push(more);
    lead.set_rules("team-1", json!(kept)).await;
    kept.remove(1);
    let body = json!({ "rules": kept });
    lead.post("/v1/agents/team-1/rules", body).await.refused(403, "grant_too_wide");
}

async fn who_is_denied_something_denies_it_to_those_it_makes(stage: Stage) {
    let admin = stage.administrator().await;
    let mut rules = everything();
    let deny = json!({ "effect": "deny", "permissions": ["send"], "targets": ["prod-*"] });
    rules.as_array_mut().unwrap().push(deny);
    let boss = admin.enroll("boss", rules).await;
    let made = boss.enroll("puppet", everything()).await;
    made.offer("staging", json!({})).await;
    let body = made.offering("prod-db", json!({}));
    made.post("/v1/handoffs", body.clone()).await.refused(403, "not_permitted");
    boss.set_rules("puppet", everything()).await;
    made.post("/v1/handoffs", body).await.refused(403, "not_permitted");
    let (_, invitation) = boss.token("join", "second", everything()).await;
    let second = boss.with_key("second", new_key());
    join(&second, &invitation, json!({})).await.done();
    let body = second.offering("prod-db", json!({}));
    second.post("/v1/handoffs", body).await.refused(403, "not_permitted");
    // Nor does it take the denial from itself.
    let body = json!({ "rules": everything() });
    boss.post("/v1/agents/boss/rules", body).await;
    let body = boss.offering("prod-db", json!({}));
    boss.post("/v1/handoffs", body).await.refused(403, "not_permitted");
}

async fn who_administers_some_does_not_become_somebody_with_more_rights(stage: Stage) {
    let admin = stage.administrator().await;
    let lead = lead(&admin).await;
    let deployer = admin.enroll("team-deployer", towards(&["send"], &["prod-*"])).await;
    let head = stage.store.head();
    let body = json!({ "key": new_key().public() });
    lead.post("/v1/agents/team-deployer/keys", body).await.refused(403, "grant_too_wide");
    rotate(&lead, &deployer).await.refused(403, "grant_too_wide");
    let body = json!({
        "purpose": "bearer", "agent_id": "team-deployer", "rules": everything(),
    });
    lead.post("/v1/tokens", body).await.refused(403, "grant_too_wide");
    stage.unmoved_since(head).await;
    // A token that allows no more than the lead may do is no gain.
    let rules = towards(&["send"], &["team-1"]);
    lead.token("bearer", "team-deployer", rules).await;
}

async fn refused_grants_stand_in_the_log(stage: Stage) {
    let admin = stage.administrator().await;
    let lead = lead(&admin).await;
    let head = stage.store.head();
    let body = json!({ "key": new_key().public(), "rules": everything() });
    lead.post("/v1/agents/team-3/keys", body).await.refused(403, "grant_too_wide");
    let log = stage.log_after(head).await;
    let denied: Vec<_> = log.iter().filter(|record| record["change"] == "access_denied").collect();
    assert_eq!(denied.len(), 1, "{log:?}");
    assert_eq!(text(&denied[0]["code"]), "grant_too_wide");
}
