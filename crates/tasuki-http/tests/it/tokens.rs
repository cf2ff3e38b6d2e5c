// SPDX-License-Identifier: Apache-2.0
//! Bearer tokens: each speaks for one agent, allows at most what that agent may do, and ends.

use serde_json::{Value, json};

use crate::support::{
    Client, Draft, SECOND, Stage, everything, may, merged, new_key, on_both_stores, possession,
    text,
};

on_both_stores! { closed:
    a_token_speaks_for_its_agent_and_for_nobody_else
    a_token_that_ran_out_or_was_revoked_is_refused
    a_token_allows_no_more_than_its_agent_may_do
    a_token_allows_no_more_than_its_own_rules
    a_narrow_token_cannot_make_a_wider_one
    a_token_makes_none_that_outlives_it
    a_narrow_token_cannot_replace_the_keys_of_its_agent
    nobody_but_an_administrator_issues_a_token_for_somebody_else
    what_is_no_bearer_token_is_refused
    tokens_are_listed_and_revoked_only_by_who_looks_after_them
}

/// A planner that may do everything but administer.
const ALL_WORK: &[&str] = &["send", "claim", "complete", "read", "redrive", "approve"];

async fn issue(by: &Client, change: Value) -> Value {
    let body = json!({ "purpose": "bearer", "agent_id": "planner", "rules": everything() });
    by.post("/v1/tokens", merged(body, change)).await.done()
}

async fn a_token_speaks_for_its_agent_and_for_nobody_else(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(ALL_WORK)).await;
    admin.enroll("tester", may(ALL_WORK)).await;
    let (_, token) = planner.token("bearer", "planner", may(ALL_WORK)).await;
    let bearer = planner.with_token("planner", &token);
    let id = bearer.offer("coder", json!({})).await;
    let shown = planner.get(&format!("/v1/handoffs/{id}")).await.done();
    assert_eq!(shown["from_agent"], "planner");
    let head = stage.store.head();
    let other = bearer.offering("coder", json!({ "from_agent": "tester" }));
    bearer.post("/v1/handoffs", other).await.refused(403, "not_permitted");
    stage.unmoved_since(head).await;
}

async fn a_token_that_ran_out_or_was_revoked_is_refused(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(ALL_WORK)).await;
    let expiring = issue(&planner, json!({ "expires_in_ms": 5 * SECOND })).await;
    let expiring = planner.with_token("planner", &text(&expiring["text"]));
    let revoked = issue(&planner, json!({})).await;
    let path = format!("/v1/tokens/{}/revoke", text(&revoked["token_id"]));
    let revoked = planner.with_token("planner", &text(&revoked["text"]));
    for bearer in [&expiring, &revoked] {
        bearer.offer("coder", json!({})).await;
    }
    assert!(planner.post(&path, json!({})).await.done()["ended_at"].is_string());
    let refused = async |bearer: &Client| {
        let head = stage.store.head();
        let body = bearer.offering("coder", json!({}));
        bearer.post("/v1/handoffs", body).await.refused(401, "token_invalid");
        assert_eq!(stage.store.head(), head);
    };
    refused(&revoked).await;
    // To revoke it once more changes nothing.
    planner.post(&path, json!({})).await.done();
    stage.pass(5 * SECOND - 1).await;
    expiring.offer("coder", json!({})).await;
    stage.pass(1).await;
    refused(&expiring).await;
    for span in [0, 367 * 24 * 3600 * SECOND] {
        let body = json!({
            "purpose": "bearer", "agent_id": "planner", "rules": [], "expires_in_ms": span,
        });
        planner.post("/v1/tokens", body).await.refused(400, "invalid_request");
    }
}

async fn a_token_allows_no_more_than_its_agent_may_do(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(&["send"])).await;
    let (_, token) = planner.token("bearer", "planner", everything()).await;
    let wide = planner.with_token("planner", &token);
    let id = wide.offer("coder", json!({})).await;
    let head = stage.store.head();
    for path in ["/v1/stats", "/v1/tenants", "/v1/security", "/v1/audit/verify"] {
        wide.get(path).await.refused(403, "not_permitted");
    }
    let rules = json!({ "rules": everything() });
    wide.post("/v1/agents/planner/rules", rules).await.refused(403, "not_permitted");
    let claim = json!({ "agent": "planner" });
    wide.post("/v1/claims", claim).await.refused(403, "not_permitted");
    stage.unmoved_since(head).await;
    // What the agent loses, its tokens lose.
    admin.set_rules("planner", may(&["read"])).await;
    let body = wide.offering("coder", json!({}));
    wide.post("/v1/handoffs", body).await.refused(403, "not_permitted");
    assert_eq!(wide.state_of(&id).await, "pending");
}

async fn a_token_allows_no_more_than_its_own_rules(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let (_, token) = planner.token("bearer", "planner", may(&["read"])).await;
    let narrow = planner.with_token("planner", &token);
    let (_, token) = planner.token("bearer", "planner", may(&[])).await;
    let nothing = planner.with_token("planner", &token);
    let head = stage.store.head();
    narrow.get("/v1/stats").await.done();
    nothing.get("/v1/stats").await.refused(403, "not_permitted");
    for bearer in [&narrow, &nothing] {
        let body = bearer.offering("coder", json!({}));
        bearer.post("/v1/handoffs", body).await.refused(403, "not_permitted");
        for path in ["/v1/tenants", "/v1/security", "/v1/audit/export"] {
            bearer.get(path).await.refused(403, "not_permitted");
        }
        let rules = json!({ "rules": [] });
        bearer.post("/v1/agents/planner/rules", rules).await.refused(403, "not_permitted");
    }
    stage.unmoved_since(head).await;
}

async fn a_narrow_token_cannot_make_a_wider_one(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let mut but_sending = everything();
    let deny = json!({ "effect": "deny", "permissions": ["send"] });
    but_sending.as_array_mut().unwrap().push(deny);
    for rules in [may(&["read"]), but_sending] {
        let (_, token) = planner.token("bearer", "planner", rules.clone()).await;
        let narrow = planner.with_token("planner", &token);
        let body = json!({ "purpose": "bearer", "agent_id": "planner", "rules": everything() });
        let reply = narrow.post("/v1/tokens", body).await;
        // It may be refused, or the new token may be as narrow as the one that made it.
        if reply.status < 300 {
            let wider = narrow.with_token("planner", &text(&reply.body["text"]));
            let offer = wider.offering("coder", json!({}));
            let sent = wider.post("/v1/handoffs", offer).await;
            assert_eq!(sent.status, 403, "made by a token with {rules}");
        } else {
            reply.refused(403, "not_permitted");
        }
    }
}

async fn a_token_makes_none_that_outlives_it(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let brief = issue(&planner, json!({ "expires_in_ms": 60 * SECOND })).await;
    let brief = planner.with_token("planner", &text(&brief["text"]));
    let body = json!({ "purpose": "bearer", "agent_id": "planner", "rules": everything() });
    let made = brief.post("/v1/tokens", body).await;
    // It may be refused, or the new token may end with the one that made it.
    if made.status < 300 {
        let made = brief.with_token("planner", &text(&made.body["text"]));
        stage.pass(60 * SECOND).await;
        made.get("/v1/stats").await.refused(401, "token_invalid");
    }
}

async fn a_narrow_token_cannot_replace_the_keys_of_its_agent(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let (_, token) = planner.token("bearer", "planner", may(&["read"])).await;
    let narrow = planner.with_token("planner", &token);
    let mine = planner.with_key("planner", new_key());
    let head = stage.store.head();
    let rotate = json!({
        "old": planner.key_id(), "key": mine.key().public(),
        "proof": possession(mine.key(), "planner"),
    });
    let reply = narrow.post("/v1/agents/planner/keys/rotate", rotate).await;
    reply.refused(403, "not_permitted");
    let revoke = format!("/v1/agents/planner/keys/{}/revoke", planner.key_id());
    narrow.post(&revoke, json!({})).await.refused(403, "not_permitted");
    for act in ["drain", "deregister"] {
        let path = format!("/v1/agents/planner/{act}");
        narrow.post(&path, json!({})).await.refused(403, "not_permitted");
    }
    stage.unmoved_since(head).await;
    planner.offer("coder", json!({})).await;
}

async fn nobody_but_an_administrator_issues_a_token_for_somebody_else(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(ALL_WORK)).await;
    admin.enroll("tester", may(ALL_WORK)).await;
    admin.enroll("acme/planner", may(ALL_WORK)).await;
    let head = stage.store.head();
    let refused = async |purpose: &str, agent: &str, status: u16, code: &str| {
        let body = json!({ "purpose": purpose, "agent_id": agent, "rules": may(&["send"]) });
        planner.post("/v1/tokens", body).await.refused(status, code);
    };
    for agent in ["tester", "admin", "nobody"] {
        refused("bearer", agent, 403, "not_permitted").await;
        refused("join", agent, 403, "not_permitted").await;
    }
    // Not even to itself another key.
    refused("join", "planner", 403, "not_permitted").await;
    for purpose in ["bearer", "join"] {
        refused(purpose, "acme/planner", 404, "agent_not_found").await;
    }
    stage.unmoved_since(head).await;
    let (_, token) = admin.token("bearer", "tester", may(&["send"])).await;
    admin.with_token("tester", &token).offer("coder", json!({})).await;
    let unknown = json!({ "purpose": "bearer", "agent_id": "nobody", "rules": [] });
    admin.post("/v1/tokens", unknown).await.refused(404, "agent_not_found");
}

async fn what_is_no_bearer_token_is_refused(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let (_, join) = admin.token("join", "planner", everything()).await;
    let (_, good) = planner.token("bearer", "planner", everything()).await;
    let (_, other) = planner.token("bearer", "planner", everything()).await;
    let (front, secret) = good.split_at(good.len() - 64);
    let mixed = format!("{front}{}", &other[other.len() - 64..]);
    let head = stage.store.head();
    let refused = async |authorization: &str| {
        let draft = Draft::get("/v1/stats").with("authorization", authorization);
        stage.send(&draft).await.refused(401, "token_invalid");
    };
    for text in [&join, &mixed, &good[1..], &good[..good.len() - 1], secret, "", "null"] {
        refused(&format!("Bearer {text}")).await;
    }
    refused(&good).await;
    refused(&format!("Bearer{good}")).await;
    refused(&format!("Basic {good}")).await;
    refused(&format!("Bearer {good} {good}")).await;
    refused(&format!("Bearer {}", good.to_uppercase())).await;
    assert_eq!(stage.store.head(), head);
    let lower = Draft::get("/v1/stats").with("authorization", format!("bearer {good}"));
    stage.send(&lower).await.done();
}

async fn tokens_are_listed_and_revoked_only_by_who_looks_after_them(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", may(ALL_WORK)).await;
    let tester = admin.enroll("tester", may(ALL_WORK)).await;
    let (mine, _) = planner.token("bearer", "planner", may(&["send"])).await;
    let (theirs, text) = tester.token("bearer", "tester", may(&["send"])).await;
    let listed = planner.get("/v1/tokens").await.done();
    let ids: Vec<_> = listed["tokens"].as_array().unwrap().iter().map(|t| &t["token_id"]).collect();
    assert_eq!(ids, [&json!(mine)]);
    let head = stage.store.head();
    let path = format!("/v1/tokens/{theirs}/revoke");
    planner.post(&path, json!({})).await.refused(404, "token_not_found");
    stage.unmoved_since(head).await;
    let bearer = tester.with_token("tester", &text);
    bearer.offer("coder", json!({})).await;
    admin.post(&path, json!({})).await.done();
    bearer.get("/v1/tokens").await.refused(401, "token_invalid");
}
