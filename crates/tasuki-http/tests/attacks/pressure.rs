// SPDX-License-Identifier: Apache-2.0
//! The wall around places: silent connections, waits and streams of some keep nobody else out, and
//! least of all those who look after the broker.

use serde_json::json;
use tasuki_engine::Settings;
use tasuki_http::{Limits, Places, WaitLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{
    Backend, SECOND, Served, Stage, broker_key, everything, in_time, may, on_durable_stores,
};

on_durable_stores! { closed:
    silent_connections_give_their_places_up_at_once
    when_all_places_are_used_health_and_administrators_are_served_and_others_are_told
    strangers_that_send_slowly_keep_out_neither_health_nor_administrators_nor_workers_for_long
    connections_that_ask_for_nothing_keep_nobody_out
    connections_of_one_agent_are_counted_and_a_stream_keeps_its_place
}

/// A request as it goes over the wire.
fn raw(token: Option<&str>, method: &str, path: &str, body: &str) -> String {
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{token}content-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// The first line of what is answered.
async fn status(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    in_time(stream.read_exact(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

async fn silent_connections_give_their_places_up_at_once(stage: Stage) {
    let served = Served::with(stage, 4).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(served.address).await.unwrap());
    }
    let mut client = TcpStream::connect(served.address).await.unwrap();
    let health = raw(None, "GET", "/healthz", "");
    assert_eq!(status(&mut client, &health).await, "HTTP/1.1 200");
    // The oldest was hung up on.
    let mut byte = [0];
    assert!(!matches!(in_time(silent[0].read(&mut byte)).await, Ok(1..)));
    drop(silent);
    served.end().await;
}

async fn when_all_places_are_used_health_and_administrators_are_served_and_others_are_told(
    stage: Stage,
) {
    let admin = stage.administrator().await;
    let worker = admin.enroll("coder", may(&["claim", "read"])).await;
    let (_, token) = worker.token("bearer", "coder", may(&["claim", "read"])).await;
    let boss = admin.enroll("boss", everything()).await;
    let (_, boss_token) = boss.token("bearer", "boss", everything()).await;
    let served = Served::with(stage, 3).await;
    let mut known = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let stream_of_events = raw(Some(&token), "GET", "/v1/events", "");
        assert_eq!(status(&mut stream, &stream_of_events).await, "HTTP/1.1 200");
        known.push(stream);
    }
    let connect = async || TcpStream::connect(served.address).await.unwrap();
    let stats = raw(Some(&token), "GET", "/v1/stats", "");
    assert_eq!(status(&mut connect().await, &stats).await, "HTTP/1.1 503");
    let health = raw(None, "GET", "/healthz", "");
    assert_eq!(status(&mut connect().await, &health).await, "HTTP/1.1 200");
    let stats = raw(Some(&boss_token), "GET", "/v1/stats", "");
    assert_eq!(status(&mut connect().await, &stats).await, "HTTP/1.1 200");
    drop(known);
    served.end().await;
}

/// Somebody who asks for places and does not say the rest.
async fn slow(served: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = "POST /v1/join HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 100000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn strangers_that_send_slowly_keep_out_neither_health_nor_administrators_nor_workers_for_long(
    stage: Stage,
) {
    let admin = stage.administrator().await;
    let worker = admin.enroll("coder", may(&["claim", "read"])).await;
    let (_, token) = worker.token("bearer", "coder", may(&["claim", "read"])).await;
    let boss = admin.enroll("boss", everything()).await;
    let (_, boss_token) = boss.token("bearer", "boss", everything()).await;
    let served = Served::with(stage, 3).await;
    let mut strangers = Vec::new();
    for _ in 0..200 {
        strangers.push(slow(&served).await);
    }
    let connect = async || TcpStream::connect(served.address).await.unwrap();
    let health = raw(None, "GET", "/healthz", "");
    assert_eq!(status(&mut connect().await, &health).await, "HTTP/1.1 200");
    let stats = raw(Some(&boss_token), "GET", "/v1/stats", "");
    assert_eq!(status(&mut connect().await, &stats).await, "HTTP/1.1 200");
    // The three that were there first may still be honest.
    let stats = raw(Some(&token), "GET", "/v1/stats", "");
    assert_eq!(status(&mut connect().await, &stats).await, "HTTP/1.1 503");
    served.stage.clock.advance_ms(2 * SECOND);
    for _ in 0..3 {
        assert_eq!(status(&mut connect().await, &stats).await, "HTTP/1.1 200");
    }
    drop(strangers);
    served.end().await;
}

async fn connections_that_ask_for_nothing_keep_nobody_out(stage: Stage) {
    let admin = stage.administrator().await;
    let worker = admin.enroll("coder", may(&["claim", "read"])).await;
    let (_, token) = worker.token("bearer", "coder", may(&["claim", "read"])).await;
    let other = admin.enroll("tester", may(&["claim", "read"])).await;
    let (_, other_token) = other.token("bearer", "tester", may(&["claim", "read"])).await;
    let served = Served::with(stage, 3).await;
    let stats = raw(Some(&token), "GET", "/v1/stats", "");
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        assert_eq!(status(&mut stream, &stats).await, "HTTP/1.1 200");
        idle.push(stream);
    }
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let stats = raw(Some(&other_token), "GET", "/v1/stats", "");
    assert_eq!(status(&mut stream, &stats).await, "HTTP/1.1 200");
    // The one that was idle for longest was hung up on.
    let mut rest = Vec::new();
    let _ = in_time(idle[0].read_to_end(&mut rest)).await;
    served.end().await;
}

async fn connections_of_one_agent_are_counted_and_a_stream_keeps_its_place(stage: Stage) {
    let admin = stage.administrator().await;
    let worker = admin.enroll("coder", may(&["claim", "read"])).await;
    let (_, token) = worker.token("bearer", "coder", may(&["claim", "read"])).await;
    let other = admin.enroll("tester", may(&["claim", "read"])).await;
    let (_, other_token) = other.token("bearer", "tester", may(&["claim", "read"])).await;
    let places = Places { per_agent: 2, per_tenant: 3, ..Places::default() };
    let served = Served::placed(stage, places).await;
    let connect = async || TcpStream::connect(served.address).await.unwrap();
    let events = raw(Some(&token), "GET", "/v1/events", "");
    let mut streams = [connect().await, connect().await];
    for stream in &mut streams {
        assert_eq!(status(stream, &events).await, "HTTP/1.1 200");
    }
    let stats = raw(Some(&token), "GET", "/v1/stats", "");
    assert_eq!(status(&mut connect().await, &stats).await, "HTTP/1.1 429");
    // The rest of the tenant's share; what asks for nothing gives way to the next.
    let stats = raw(Some(&other_token), "GET", "/v1/stats", "");
    for _ in 0..3 {
        assert_eq!(status(&mut connect().await, &stats).await, "HTTP/1.1 200");
    }
    drop(streams);
    served.stage.engine.end_waits();
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_of_one_agent_are_counted_and_administrators_are_not_kept_out() {
    let waits = WaitLimits { per_agent: 2, per_tenant: 3, per_address: 0 };
    let key = Some(broker_key().public());
    let settings = Settings { open: false, key, ..Settings::default() };
    let limits = Limits { waits, ..Limits::default() };
    let stage = Stage::with_limits(Backend::Volatile, settings, limits).await;
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["claim"])).await;
    let tester = admin.enroll("tester", may(&["claim"])).await;
    let wait = |agent: &str| json!({ "agent": agent, "wait_ms": 50_000 });
    let waiting = |client: &crate::support::Client, agent: &str| {
        let (client, body) = (client.clone(), wait(agent));
        // One that asks just now whether there is a place takes it for a moment.
        tokio::spawn(async move {
            loop {
                let reply = client.post("/v1/claims", body.clone()).await;
                if reply.status != 429 {
                    return reply;
                }
            }
        })
    };
    let mut polls = vec![waiting(&coder, "coder"), waiting(&coder, "coder")];
    // The third of the same agent is refused as soon as both of the others wait.
    in_time(async {
        loop {
            let body = json!({ "agent": "coder", "wait_ms": 0 });
            if coder.post("/v1/claims", body).await.status == 429 {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    polls.push(waiting(&tester, "tester"));
    in_time(async {
        loop {
            let body = json!({ "agent": "tester", "wait_ms": 0 });
            let reply = tester.post("/v1/claims", body).await;
            if reply.status == 429 {
                assert!(
                    reply.refused(429, "quota_exceeded")["message"]
                        .as_str()
                        .unwrap()
                        .contains("tenant")
                );
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let admins = json!({ "agent": "admin", "wait_ms": 0 });
    admin.post("/v1/claims", admins).await.done();
    stage.engine.end_waits();
    for poll in polls {
        in_time(poll).await.unwrap();
    }
}
