// SPDX-License-Identifier: Apache-2.0
//! What every request passes: the host it names, the rate it comes at, readiness.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, header};
use serde_json::json;
use tasuki_http::Limits;

use crate::support::{Reply, Stage, offer};

async fn to_host(stage: &Stage, host: &[u8]) -> Reply {
    let host = HeaderValue::from_bytes(host).unwrap();
    let request = Request::get("/v1/stats").header(header::HOST, host);
    stage.call(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_host_that_is_not_ours_is_refused() {
    let stage = Stage::volatile().await;
    let ours: [&[u8]; 6] =
        [b"localhost", b"LocalHost:1", b"127.0.0.1:8788", b"127.9.9.9", b"[::1]", b"[::1]:8788"];
    for host in ours {
        to_host(&stage, host).await.done();
    }
    let foreign: [&[u8]; 10] = [
        b"evil.example",
        b"evil.example:8788",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example",
        b"192.168.0.7",
        b"0.0.0.0:8788",
        b"[fe80::1]",
        b"",
        b"evil.ex\xe4mple",
        b"localhost@evil.example",
    ];
    for host in foreign {
        to_host(&stage, host).await.refused(421, "host_not_allowed");
    }
}

#[tokio::test]
async fn one_host_beside_another_does_not_hide_it() {
    let stage = Stage::volatile().await;
    let request = Request::get("/v1/stats")
        .header(header::HOST, "localhost")
        .header(header::HOST, "evil.example");
    let reply = stage.call(request.body(Body::empty()).unwrap()).await;
    reply.refused(421, "host_not_allowed");
}

#[tokio::test]
async fn a_target_that_names_another_host_than_ours_is_refused() {
    let stage = Stage::volatile().await;
    for (target, ours) in
        [("http://evil.example/v1/stats", false), ("http://localhost/v1/stats", true)]
    {
        let request = Request::get(target).header(header::HOST, "localhost");
        let request = request.body(Body::empty()).unwrap();
        match ours {
            true => drop(stage.call(request).await.done()),
            false => drop(stage.call(request).await.refused(421, "host_not_allowed")),
        }
    }
}

#[tokio::test]
async fn a_host_that_was_allowed_is_answered() {
    let hosts = vec!["broker.internal".to_owned()];
    let stage = Stage::limited(Limits { hosts, ..Limits::default() }).await;
    to_host(&stage, b"broker.internal:80").await.done();
    to_host(&stage, b"Broker.Internal").await.done();
    to_host(&stage, b"other.internal").await.refused(421, "host_not_allowed");
    let stage = Stage::limited(Limits { hosts: vec!["*".into()], ..Limits::default() }).await;
    to_host(&stage, b"anything.example").await.done();
}

#[tokio::test]
async fn who_asks_too_often_is_told_to_wait_and_others_are_not() {
    let stage = Stage::limited(Limits { requests_per_second: 1, ..Limits::default() }).await;
    let from = async |address: &str| {
        let mut request = Request::get("/v1/stats").body(Body::empty()).unwrap();
        let address: SocketAddr = address.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(address));
        stage.call(request).await
    };
    let mut replies = Vec::new();
    // One a second is allowed; no machine takes that long for each of a hundred.
    for _ in 0..100 {
        replies.push(from("10.0.0.1:5000").await);
    }
    assert_eq!(replies[0].status, 200);
    let limited = replies.into_iter().find(|reply| reply.status != 200).unwrap();
    assert_eq!(limited.headers[header::RETRY_AFTER], "1");
    let problem = limited.refused(429, "rate_limited");
    assert_eq!(problem["retryable"], true);
    from("10.0.0.2:5000").await.done();
    // Another port is the same client.
    let mut others = Vec::new();
    for port in 5001..5100 {
        others.push(from(&format!("10.0.0.1:{port}")).await.status);
    }
    assert!(others.contains(&429));
}

#[tokio::test]
async fn every_request_has_an_id_of_its_own() {
    let stage = Stage::volatile().await;
    let mut ids = BTreeSet::new();
    for path in ["/healthz", "/nowhere", "/docs", "/v1/handoffs/x", "/v1/stats"] {
        let reply = stage.get(path).await;
        ids.insert(reply.headers["x-request-id"].to_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 5);
}

#[tokio::test]
async fn a_broker_that_shuts_down_is_alive_and_not_ready() {
    let stage = Stage::volatile().await;
    assert_eq!(stage.get("/readyz").await.done()["status"], "ready");
    stage.engine.end_waits();
    let reply = stage.get("/readyz").await;
    assert_eq!((reply.status, &reply.body["status"]), (503, &json!("not_ready")));
    assert_eq!(stage.get("/healthz").await.done()["status"], "ok");
    // Until it is closed it still finishes what is asked of it.
    stage.offer("coder", json!({})).await;
    stage.engine.close().await;
    let reply = stage.post("/v1/handoffs", offer("coder", json!({}))).await;
    assert_eq!(reply.headers[header::RETRY_AFTER], "1");
    reply.refused(503, "shutting_down");
}
