// SPDX-License-Identifier: Apache-2.0
//! The wall around names: nobody is taken for the broker or for somebody else, and the first
//! administrator's token is not for ever.

use serde_json::json;

use crate::support::{Draft, Stage, everything, join, may, new_key, offer, on_durable_stores};

on_durable_stores! { closed:
    nobody_has_a_name_that_looks_like_the_brokers
    nobody_new_differs_from_somebody_known_in_capitals_only
    the_first_administrators_token_ends_and_is_made_anew
}

async fn nobody_has_a_name_that_looks_like_the_brokers(stage: Stage) {
    let admin = stage.administrator().await;
    let head = stage.store.head();
    for name in ["broker", "Broker", "BROKER", "br0ker", "b-roker", "broker.", "brok3r"] {
        let body = json!({ "key": new_key().public(), "rules": may(&["read"]) });
        let path = format!("/v1/agents/{name}/keys");
        admin.post(&path, body).await.refused(403, "name_reserved");
        let body = json!({ "purpose": "join", "agent_id": name, "rules": may(&["read"]) });
        admin.post("/v1/tokens", body).await.refused(403, "name_reserved");
        let manifest = json!({ "manifest": { "agent_id": name, "capabilities": [] } });
        admin.post("/v1/agents", manifest).await.refused(403, "name_reserved");
    }
    let body = json!({ "key": new_key().public(), "rules": may(&["read"]) });
    admin.post("/v1/agents/br0ker%2Fcoder/keys", body).await.refused(403, "name_reserved");
    stage.unmoved_since(head).await;
    admin.enroll("brokers", may(&["read"])).await;
}

async fn nobody_new_differs_from_somebody_known_in_capitals_only(stage: Stage) {
    let admin = stage.administrator().await;
    admin.enroll("coder", may(&["read"])).await;
    let head = stage.store.head();
    for name in ["Coder", "CODER", "codeR", "Admin"] {
        let body = json!({ "key": new_key().public(), "rules": everything() });
        admin.post(&format!("/v1/agents/{name}/keys"), body).await.refused(409, "name_taken");
        let body = json!({ "purpose": "join", "agent_id": name, "rules": everything() });
        admin.post("/v1/tokens", body).await.refused(409, "name_taken");
    }
    stage.unmoved_since(head).await;
    let log = stage.log_after(head).await;
    assert!(log.iter().any(|record| record["code"] == "name_taken"), "that it was tried is told");
    // Two who are invited at once: the second finds the first.
    let (_, first) = admin.token("join", "late", may(&["read"])).await;
    let (_, second) = admin.token("join", "Late", may(&["read"])).await;
    join(&admin.with_key("late", new_key()), &first, json!({})).await.done();
    let other = admin.with_key("Late", new_key());
    join(&other, &second, json!({})).await.refused(409, "name_taken");
    // In another tenant it is another name.
    admin.enroll("acme/Coder", may(&["read"])).await;
}

async fn the_first_administrators_token_ends_and_is_made_anew(stage: Stage) {
    let token = stage.engine.first_administrator().await.unwrap().unwrap();
    let stats = |token: &str| Draft::get("/v1/stats").bearer(token).request();
    stage.call(stats(&token)).await.done();
    let new = stage.engine.recover_administrator().await.unwrap();
    stage.call(stats(&token)).await.refused(401, "token_invalid");
    stage.call(stats(&new)).await.done();
    stage.pass(31 * 24 * 60 * 60 * 1000).await;
    stage.call(stats(&new)).await.refused(401, "token_invalid");
    // It is in the log, and works after a restart.
    let stage = stage.restarted().await;
    let new = stage.engine.recover_administrator().await.unwrap();
    stage.call(stats(&new)).await.done();
    let stranger = Draft::post("/v1/handoffs", &offer("coder", json!({})));
    stage.call(stranger.request()).await.refused(401, "unauthenticated");
}

mod open {
    use super::*;

    on_durable_stores! { nobody_keeps_the_administrators_name_from_the_broker }

    async fn nobody_keeps_the_administrators_name_from_the_broker(stage: Stage) {
        let manifest = json!({ "manifest": { "agent_id": "Admin", "capabilities": [] } });
        stage.post("/v1/agents", manifest).await.refused(409, "name_taken");
        assert!(stage.engine.first_administrator().await.unwrap().is_some());
    }
}
