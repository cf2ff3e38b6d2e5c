// SPDX-License-Identifier: Apache-2.0
//! Sessions at the broker's pages: a token becomes a cookie with just its rights, which ends soon, with
//! the token, and when somebody signs out.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::support::{Client, Reply, SECOND, Stage, may, on_durable_stores, text};

on_durable_stores! { closed:
    a_session_may_what_its_token_may_and_survives_a_restart
    a_session_ends_with_signing_out_and_with_its_token
    a_session_ends_by_itself_and_never_outlives_its_token
    a_cookie_counts_for_nothing_beside_another_proof_or_another_cookie
    who_asks_learns_what_it_may_ask_for
}

const HOUR: u64 = 3600 * SECOND;

async fn ask(stage: &Stage, method: &str, path: &str, cookie: &str, body: Value) -> Reply {
    let request = Request::builder().method(method).uri(path).header("cookie", cookie);
    let request = request.header("content-type", "application/json");
    stage.call(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn sign_in(stage: &Stage, token: &str) -> Reply {
    ask(stage, "POST", "/ui/session", "", json!({ "token": token })).await
}

fn cookie(reply: &Reply) -> String {
    let whole = reply.headers["set-cookie"].to_str().unwrap();
    for attribute in ["; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age="] {
        assert!(whole.contains(attribute), "{whole}");
    }
    whole.split(';').next().unwrap().to_owned()
}

async fn viewer(stage: &Stage) -> (Client, String, String) {
    let admin = stage.administrator().await;
    let mei = admin.enroll("mei", may(&["read", "send"])).await;
    let (id, token) = mei.token("bearer", "mei", may(&["read"])).await;
    (mei, id, token)
}

async fn a_session_may_what_its_token_may_and_survives_a_restart(stage: Stage) {
    let (_, _, token) = viewer(&stage).await;
    let wrong = sign_in(&stage, "nonsense").await;
    assert!(!wrong.headers.contains_key("set-cookie"));
    wrong.refused(401, "token_invalid");
    let session = cookie(&sign_in(&stage, &token).await);
    assert!(!session.contains(&token), "the token itself is not in it");
    let stage = stage.restarted().await;
    ask(&stage, "GET", "/v1/stats", &session, json!({})).await.done();
    let pause = json!({ "target": { "agent": "coder" } });
    let refused = ask(&stage, "POST", "/v1/targets/pause", &session, pause).await;
    refused.refused(403, "not_permitted");
}

async fn a_session_ends_with_signing_out_and_with_its_token(stage: Stage) {
    let (mei, id, token) = viewer(&stage).await;
    let first = cookie(&sign_in(&stage, &token).await);
    let second = cookie(&sign_in(&stage, &token).await);
    let gone = ask(&stage, "DELETE", "/ui/session", &first, json!({})).await;
    assert!(cookie(&gone).ends_with('='), "the browser forgets it");
    gone.done();
    let stats = async |session: &str| ask(&stage, "GET", "/v1/stats", session, json!({})).await;
    stats(&first).await.refused(401, "token_invalid");
    stats(&second).await.done();
    mei.post(&format!("/v1/tokens/{id}/revoke"), json!({})).await.done();
    stats(&second).await.refused(401, "token_invalid");
}

async fn a_session_ends_by_itself_and_never_outlives_its_token(stage: Stage) {
    let (mei, _, token) = viewer(&stage).await;
    let long = cookie(&sign_in(&stage, &token).await);
    let body = json!({
        "purpose": "bearer", "agent_id": "mei", "rules": may(&["read"]), "expires_in_ms": HOUR,
    });
    let brief = text(&mei.post("/v1/tokens", body).await.done()["text"]);
    let reply = sign_in(&stage, &brief).await;
    let short = cookie(&reply);
    let whole = reply.headers["set-cookie"].to_str().unwrap();
    assert!(whole.contains(&format!("Max-Age={}", HOUR / 1000)), "{whole}");
    stage.pass(HOUR).await;
    let stats = async |session: &str| ask(&stage, "GET", "/v1/stats", session, json!({})).await;
    stats(&short).await.refused(401, "token_invalid");
    stats(&long).await.done();
    stage.pass(7 * HOUR).await;
    stats(&long).await.refused(401, "token_invalid");
}

async fn a_cookie_counts_for_nothing_beside_another_proof_or_another_cookie(stage: Stage) {
    let (_, _, token) = viewer(&stage).await;
    let session = cookie(&sign_in(&stage, &token).await);
    let twice = format!("{session}; {session}");
    let reply = ask(&stage, "GET", "/v1/stats", &twice, json!({})).await;
    reply.refused(401, "unauthenticated");
    let request = Request::get("/v1/stats").header("cookie", &session);
    let request = request.header("authorization", "Bearer nonsense");
    stage.call(request.body(Body::empty()).unwrap()).await.refused(401, "token_invalid");
}

async fn who_asks_learns_what_it_may_ask_for(stage: Stage) {
    let (_, _, token) = viewer(&stage).await;
    let session = cookie(&sign_in(&stage, &token).await);
    let seen = ask(&stage, "GET", "/v1/session", &session, json!({})).await.done();
    assert_eq!((&seen["agent_id"], &seen["authentication"]), (&json!("mei"), &json!(true)));
    let offered: Vec<_> = seen["operations"].as_array().unwrap().iter().map(text).collect();
    for (operation, is_offered) in [
        ("task_show", true),
        ("stats_show", true),
        ("target_pause", false),
        ("dead_letter_redrive", false),
        ("audit_verify", false),
        ("handoff_offer", false),
    ] {
        assert_eq!(offered.contains(&operation.to_owned()), is_offered, "{operation}");
    }
}
