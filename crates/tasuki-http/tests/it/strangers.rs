// SPDX-License-Identifier: Apache-2.0
//! What is served to nobody in particular, and what becomes of requests that are refused: those of
//! strangers are counted and shown to who looks after the broker, those of somebody known are in
//! the audit log, and no secret is in either.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use serde_json::{Value, json};

use crate::contract;
use crate::support::{
    Client, Draft, SECOND, Stage, everything, join, may, new_key, on_both_stores, text,
};

on_both_stores! { closed:
    what_is_for_everybody_needs_nothing_and_the_rest_needs_a_name
    requests_of_strangers_are_counted_and_the_last_thousand_kept
    whatever_a_stranger_tries_is_noted
    what_somebody_known_may_not_do_is_in_the_audit_log_once_in_a_while
    what_is_refused_within_a_batch_is_in_the_audit_log_too
    only_who_looks_after_the_broker_sees_what_strangers_tried
    no_secret_is_ever_shown_or_written_down
}

const HANDOFF: &str = "handoff_00000000000000000000000007";

async fn what_is_for_everybody_needs_nothing_and_the_rest_needs_a_name(stage: Stage) {
    stage.administrator().await;
    for path in [
        "/ui/",
        "/ui/app.js",
        "/docs",
        "/docs/errors/unauthenticated",
        "/v1/openapi.json",
        "/v1/schemas/envelope.json",
        "/v1/schemas/event.json",
        "/v1/schemas/manifest.json",
    ] {
        assert_eq!(stage.get(path).await.status, 200, "{path}");
    }
    let head = stage.store.head();
    for (method, path, id) in contract::table() {
        let path = path.replace("{id}", HANDOFF).replace("{key}", "x");
        let mut methods = vec![method.to_uppercase()];
        if method == "get" {
            methods.push("HEAD".into());
        }
        for method in methods {
            let request = Request::builder().method(&*method).uri(&path);
            let request = request.header("content-type", "application/json");
            let reply = stage.call(request.body(Body::from("{}")).unwrap()).await;
            match &*id {
                "health" | "ready" => assert_eq!(reply.status, 200),
                // The token in the body is what it asks for.
                "agent_join" => drop(reply.refused(400, "invalid_request")),
                // There is no body to say why.
                _ if method == "HEAD" => assert_eq!(reply.status, 401, "{id}"),
                _ => {
                    let problem = reply.refused(401, "unauthenticated");
                    assert_eq!(problem["retryable"], false);
                }
            }
        }
    }
    assert_eq!(stage.store.head(), head);
}

async fn refusals(admin: &Client) -> Value {
    admin.get("/v1/security").await.done()
}

async fn requests_of_strangers_are_counted_and_the_last_thousand_kept(stage: Stage) {
    let admin = stage.administrator().await;
    assert_eq!(refusals(&admin).await, json!({ "count": 0, "refusals": [] }));
    let head = stage.store.head();
    let stranger = admin.with_key("coder", new_key());
    for number in 0..1500 {
        let path = format!("/v1/handoffs/{number}");
        let draft = match number % 3 {
            0 => Draft::get(&path),
            1 => Draft::get(&path).bearer("tsk_wrong"),
            _ => stranger.getting(&path),
        };
        let mut request = draft.request();
        let address: SocketAddr = "10.0.0.7:4000".parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(address));
        assert_eq!(stage.call(request).await.status, 401);
    }
    let shown = refusals(&admin).await;
    assert_eq!(shown["count"], 1500);
    let kept = shown["refusals"].as_array().unwrap();
    assert_eq!(kept.len(), 1000);
    let last = &kept[999];
    assert_eq!((&last["path"], &last["from"]), (&json!("/v1/handoffs/1499"), &json!("10.0.0.7")));
    assert_eq!(
        (&last["code"], &last["named"]),
        (&json!("signature_wrong"), &json!(stranger.key_id()))
    );
    assert_eq!(kept[0]["path"], "/v1/handoffs/500");
    assert_eq!(stage.store.head(), head, "none of it is in the audit log");
}

async fn whatever_a_stranger_tries_is_noted(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let coder = admin.with_key("coder", new_key());
    let good = || planner.posting("/v1/handoffs", &planner.offering("coder", json!({})));
    let head = stage.store.head();
    let input = good().header("signature-input");
    let drafts = [
        (Draft::get("/v1/stats"), "unauthenticated"),
        (Draft::get("/v1/stats").with("authorization", "Basic x"), "token_invalid"),
        (coder.getting("/v1/stats"), "signature_wrong"),
        (good().without("signature"), "signature_malformed"),
        (good().and("signature-input", input), "signature_malformed"),
        (good().without("content-digest"), "digest_missing"),
        (Draft { body: b"{}".to_vec(), ..good() }, "digest_wrong"),
    ];
    let mut unnoted = Vec::new();
    let mut count = 0;
    let mut expect = async |what: &str, code: &str| {
        let shown = refusals(&admin).await;
        let last = shown["refusals"].as_array().unwrap().last().cloned().unwrap_or_default();
        if (shown["count"].as_u64(), last["code"].as_str()) != (Some(count + 1), Some(code)) {
            unnoted.push(what.to_owned());
        }
        count = shown["count"].as_u64().unwrap();
    };
    for (draft, code) in drafts {
        stage.send(&draft).await.refused(401, code);
        expect(&format!("{code}: {:?}", draft.headers), code).await;
    }
    let guess = format!("tsk_{}_{}", "0".repeat(26), "0".repeat(64));
    join(&coder, &guess, json!({})).await.refused(403, "token_refused");
    expect("a guess at a join token", "token_refused").await;
    assert!(unnoted.is_empty(), "{unnoted:#?}");
    assert_eq!(stage.store.head(), head);
}

async fn what_somebody_known_may_not_do_is_in_the_audit_log_once_in_a_while(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["claim"])).await;
    let head = stage.store.head();
    let body = coder.offering("tester", json!({}));
    let denied = async || {
        coder.post("/v1/handoffs", body.clone()).await.refused(403, "not_permitted");
    };
    for _ in 0..50 {
        denied().await;
    }
    coder.get(&format!("/v1/handoffs/{HANDOFF}")).await.refused(404, "handoff_not_found");
    let log = stage.log_after(head).await;
    assert_eq!(log.len(), 2, "{log:?}");
    for (record, code, operation) in [
        (&log[0], "not_permitted", "handoff_offer".to_owned()),
        (&log[1], "handoff_not_found", format!("handoff_show {HANDOFF}")),
    ] {
        assert_eq!(
            (&record["kind"], &record["change"]),
            (&json!("registry_changed"), &json!("access_denied"))
        );
        assert_eq!((&record["agent"], &record["actor"]), (&json!("coder"), &json!("agent:coder")));
        assert_eq!((&record["code"], &record["operation"]), (&json!(code), &json!(operation)));
    }
    stage.pass(10 * SECOND - 1).await;
    denied().await;
    assert_eq!(stage.log_after(head).await.len(), 2);
    stage.pass(1).await;
    for _ in 0..10 {
        denied().await;
    }
    assert_eq!(stage.log_after(head).await.len(), 3);
    // What a known agent tries is not the doing of strangers.
    assert_eq!(refusals(&admin).await["count"], 0);
    assert_eq!(admin.get("/v1/audit/verify").await.done()["intact"], true);
}

async fn what_is_refused_within_a_batch_is_in_the_audit_log_too(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["claim"])).await;
    let head = stage.store.head();
    let batch = json!({ "offers": [coder.offering("tester", json!({}))] });
    let results = coder.post("/v1/handoffs/batch", batch).await.done();
    assert_eq!(results["results"][0]["error"]["code"], "not_permitted");
    let log = stage.log_after(head).await;
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!(log[0]["change"], "access_denied");
}

async fn only_who_looks_after_the_broker_sees_what_strangers_tried(stage: Stage) {
    let admin = stage.administrator().await;
    let reader = admin.enroll("reader", may(&["read", "send"])).await;
    let of_acme = admin.enroll("acme/admin", everything()).await;
    for who in [&reader, &of_acme] {
        who.get("/v1/security").await.refused(403, "not_permitted");
    }
    admin.get("/v1/security").await.done();
}

async fn no_secret_is_ever_shown_or_written_down(stage: Stage) {
    let admin = stage.administrator().await;
    let (_, first) = admin.token("join", "coder", everything()).await;
    let (id, bearer) = admin.token("bearer", "admin", everything()).await;
    let coder = admin.with_key("coder", new_key());
    let seed = coder.key().to_text();
    let seed = seed.strip_prefix("ed25519-secret:").unwrap();
    let secrets = [&first[first.len() - 64..], &bearer[bearer.len() - 64..], seed];
    let mut seen = Vec::new();
    seen.push(join(&coder, &first, json!({})).await);
    // Good requests, bad ones, and secrets where they do not belong.
    seen.push(join(&coder, &first, json!({})).await);
    seen.push(join(&coder, &bearer, json!({})).await);
    seen.push(join(&coder, &first, json!({ "key": &**coder.key().to_text() })).await);
    seen.push(join(&coder, &first, json!({ "proof": seed })).await);
    seen.push(join(&coder, &first, json!({ "agent_id": format!("a {first}") })).await);
    seen.push(stage.send(&Draft::get("/v1/stats").bearer(&first)).await);
    seen.push(stage.send(&Draft::get("/v1/stats").bearer(&format!("{bearer}0"))).await);
    seen.push(admin.with_token("admin", &bearer).get("/v1/tokens").await);
    let rotate = json!({ "old": coder.key_id(), "key": &**coder.key().to_text(), "proof": seed });
    seen.push(coder.post("/v1/agents/coder/keys/rotate", rotate).await);
    seen.push(admin.post(&format!("/v1/tokens/{id}/revoke"), json!({})).await);
    seen.push(admin.with_token("admin", &bearer).get("/v1/tokens").await);
    for path in ["/v1/agents/coder", "/v1/tokens", "/v1/security", "/v1/tenants"] {
        seen.push(admin.get(path).await);
    }
    let export = admin.get("/v1/audit/export").await;
    assert!(export.text().lines().count() > 5);
    seen.push(export);
    for reply in &seen {
        for secret in secrets {
            assert!(!reply.text().contains(secret), "{}", reply.text());
        }
    }
    assert_eq!(text(&seen[0].body["agent_id"]), "coder");
    stage.engine.close().await;
    for file in std::fs::read_dir(stage.dir.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        for secret in secrets {
            let there = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!there, "{} has a secret", path.display());
        }
    }
}
