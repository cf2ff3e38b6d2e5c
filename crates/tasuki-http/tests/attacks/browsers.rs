// SPDX-License-Identifier: Apache-2.0
//! The wall around people's browsers: a page of another site does nothing here in the place of who
//! looks at it, and a reply is never more than what it is.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Draft, Served, Stage, in_time, offer, on_durable_stores};

on_durable_stores! {
    a_page_of_another_site_changes_nothing
    a_reply_says_what_browsers_may_do_with_it
    a_request_that_names_no_host_is_malformed
    what_only_begins_like_one_of_our_hosts_is_not_ours
}

async fn a_page_of_another_site_changes_nothing(stage: Stage) {
    let body = offer("coder", json!({}));
    let head = stage.store.head();
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost.evil.example"),
        ("origin", "http://localhost:8080"),
        ("origin", "http://evil@localhost"),
        ("origin", "chrome-extension://localhost"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "\u{7f}"),
    ] {
        let draft = Draft::post("/v1/handoffs", &body).with(name, value);
        let Ok(request) = std::panic::catch_unwind(|| draft.request()) else { continue };
        stage.call(request).await.refused(403, "cross_site");
    }
    // What is said twice is not believed by its first word.
    for (name, own, other) in [
        ("origin", "http://localhost", "http://evil.example"),
        ("sec-fetch-site", "same-origin", "cross-site"),
    ] {
        for (first, second) in [(own, other), (other, own)] {
            let draft = Draft::post("/v1/handoffs", &body).and(name, first).and(name, second);
            stage.call(draft.request()).await.refused(403, "cross_site");
        }
    }
    assert_eq!(stage.store.head(), head);
    let refused = stage.get("/v1/security").await.done();
    let last = refused["refusals"].as_array().unwrap().last().unwrap();
    assert_eq!(last["code"], "cross_site", "it is told who tried");
    // Reading is left to the browser's own rules; it is told nothing that opens them.
    let read = Draft::get("/v1/stats").with("origin", "http://evil.example");
    let reply = stage.call(read.request()).await;
    assert_eq!(reply.status, 200);
    assert!(!reply.headers.contains_key("access-control-allow-origin"));
    let own = Draft::post("/v1/handoffs", &body)
        .with("origin", "http://localhost")
        .with("sec-fetch-site", "same-origin");
    stage.call(own.request()).await.done();
}

async fn a_reply_says_what_browsers_may_do_with_it(stage: Stage) {
    for path in ["/v1/stats", "/docs", "/docs/errors/cross_site", "/v1/none", "/healthz"] {
        let reply = stage.call(Draft::get(path).request()).await;
        let header = |name: &str| {
            reply
                .headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
                .unwrap_or_default()
        };
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
        assert!(header("content-security-policy").starts_with("default-src 'none'"), "{path}");
    }
}

async fn a_request_that_names_no_host_is_malformed(stage: Stage) {
    let served = Served::start(stage).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    in_time(stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("invalid_request"), "{answer}");
    served.end().await;
}

async fn what_only_begins_like_one_of_our_hosts_is_not_ours(stage: Stage) {
    let served = Served::start(stage).await;
    for (host, status) in [
        ("localhost", "200"),
        ("LOCALHOST:8788", "200"),
        ("[::1]:8788", "200"),
        ("localhost:8788@evil.example", "421"),
        ("localhost:evil.example", "421"),
        ("[::1]evil.example", "421"),
        ("[::1", "421"),
        ("localhost.", "421"),
    ] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        in_time(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host}: {answer}");
    }
    served.end().await;
}
