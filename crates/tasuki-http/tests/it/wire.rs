// SPDX-License-Identifier: Apache-2.0
//! What only shows on a real socket: broken requests, sizes, slowness, connections.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Served, Stage, in_time, offer};

async fn served() -> Served {
    Served::start(Stage::volatile().await).await
}

/// Sends bytes as they are and reads until the broker hangs up.
async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The broker may answer and hang up before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = in_time(stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("no status: {answer:?}"));
    status.parse().unwrap()
}

async fn is_up(served: &Served) {
    served.post("/v1/handoffs", &offer("coder", json!({}))).await.done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_no_http_are_refused_and_the_broker_stays_up() {
    let served = served().await;
    let long = "x".repeat(100_000);
    let headers: String = (0..10_000).map(|number| format!("x-{number}: y\r\n")).collect();
    for request in [
        "hello\r\n\r\n".to_owned(),
        "GET\r\n\r\n".into(),
        "GET /healthz HTTP/9.9\r\n\r\n".into(),
        "GET /\u{7} HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nx: {}\r\n\r\n", long.repeat(6)),
        format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n"),
        "POST /v1/handoffs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n".into(),
        "POST /v1/handoffs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\
         \r\n{}"
            .into(),
        "POST /v1/handoffs HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"
            .into(),
    ] {
        let answer = raw(served.address, request.as_bytes()).await;
        let start = &request[..request.len().min(80)];
        // What is not even the beginning of HTTP is hung up on; so are floods.
        let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(refused, "{answer:?} for {start:?}");
        is_up(&served).await;
    }
    for junk in
        [&b""[..], b"\0\0\0\0", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(junk).await.unwrap();
        drop(stream);
        is_up(&served).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_large_is_answered_although_it_was_not_read() {
    let served = served().await;
    for megabytes in [2, 20] {
        let body = offer("coder", json!({ "metadata": { "x": "x".repeat(megabytes << 20) } }));
        served.post("/v1/handoffs", &body).await.refused(413, "body_too_large");
    }
    assert_eq!(served.stage.store.head().0, 0);
    is_up(&served).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_breaks_off_stores_nothing() {
    let served = served().await;
    let body = offer("coder", json!({})).to_string();
    let head = format!(
        "POST /v1/handoffs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let whole = format!("{head}{body}");
    for length in [1, head.len() / 2, head.len(), head.len() + 1, whole.len() - 1] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(&whole.as_bytes()[..length]).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = in_time(stream.read_to_end(&mut answer)).await;
    }
    assert_eq!(served.stage.store.head().0, 0);
    is_up(&served).await;
    assert_eq!(served.stage.store.head().0, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_one_stream_of_bytes_are_answered_in_order() {
    let served = served().await;
    let one = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let last = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let many = one("/healthz") + &one("/nowhere") + &one("/v1/stats") + last;
    let answer = raw(served.address, many.as_bytes()).await;
    let answers: Vec<_> = answer.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(answers, ["200", "404", "200", "200"]);
}

/// The clock of the runtime jumps to the next timer when nothing else is to be done.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_finish_its_head_is_hung_up_on() {
    let served = served().await;
    for start in ["", "GET /healthz HTTP/1.1\r\nHost: loc"] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.is_empty() || status(&answer) == 408, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_over_the_wire_is_the_reply_in_process() {
    let served = served().await;
    let reply = served.post("/v1/claims", &json!({ "agent": "coder" })).await;
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.done(), json!({ "claims": [] }));
    let reply = served.post("/v1/claims", &Value::Null).await;
    reply.refused(400, "invalid_request");
}
