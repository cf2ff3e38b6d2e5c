// SPDX-License-Identifier: Apache-2.0
//! The audit log as server-sent events: in order, resumable, without loss or repetition.

use std::pin::Pin;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::{Stream, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::contract;
use crate::support::{Served, Stage, in_time, on_both_stores, text};

on_both_stores! {
    events_come_in_order_with_their_kinds_from_the_beginning
    a_follower_hears_what_happens_from_now_on
    a_follower_that_comes_back_misses_nothing_and_hears_nothing_twice
    events_of_one_task_or_handoff_can_be_followed_alone
    a_stream_ends_when_the_broker_goes_away
    a_place_to_resume_from_that_is_not_there_is_refused
}

/// Reads events off a stream.
pub(crate) struct Follower {
    bytes: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    read: String,
}

#[derive(Debug)]
pub(crate) struct Heard {
    id: u64,
    kind: String,
    pub(crate) data: Value,
}

impl Follower {
    pub(crate) fn of<E: std::fmt::Debug>(
        stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Self {
        let bytes = stream.map(|piece| piece.expect("the stream is whole"));
        Self { bytes: Box::pin(bytes), read: String::new() }
    }

    async fn on(stage: &Stage, query: &str, last: Option<u64>) -> Self {
        let mut request = Request::get(format!("/v1/events?{query}"));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last.to_string());
        }
        let request = request.body(Body::empty()).unwrap();
        let response = stage.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self::of(response.into_body().into_data_stream())
    }

    /// The next event; nothing if the stream ended.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let event = heard(event);
                self.read = rest.to_owned();
                match event {
                    Some(event) => return Some(event),
                    // A comment that keeps the connection alive.
                    None => continue,
                }
            }
            let piece = in_time(self.bytes.next()).await?;
            self.read.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    async fn take(&mut self, count: usize) -> Vec<Heard> {
        let mut heard = Vec::new();
        while heard.len() < count {
            heard.push(self.next().await.expect("the stream goes on"));
        }
        heard
    }
}

fn heard(event: &str) -> Option<Heard> {
    let field = |name: &str| {
        event
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
    };
    let data: Value = serde_json::from_str(&field("data")?).unwrap();
    contract::check_type("Event", &data);
    let id = field("id").unwrap().parse().unwrap();
    assert_eq!(data["position"], id);
    assert_eq!(data["record"]["kind"], field("event").unwrap());
    Some(Heard { id, kind: field("event").unwrap(), data })
}

/// One whole life: four events.
async fn life(stage: &Stage) -> String {
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    stage.act(&held, "start", json!({})).await.done();
    stage.completed(&held).await;
    id
}

fn ids(heard: &[Heard]) -> Vec<u64> {
    heard.iter().map(|event| event.id).collect()
}

async fn events_come_in_order_with_their_kinds_from_the_beginning(stage: Stage) {
    for _ in 0..150 {
        stage.offer("coder", json!({})).await;
    }
    life(&stage).await;
    // More than one page of the log.
    for _ in 0..150 {
        stage.offer("coder", json!({})).await;
    }
    let mut follower = Follower::on(&stage, "after=0", None).await;
    let heard = follower.take(304).await;
    assert_eq!(ids(&heard), (1..=304).collect::<Vec<_>>());
    let kinds: Vec<_> = heard[150..154].iter().map(|event| &*event.kind).collect();
    assert_eq!(kinds, ["transfer_offered", "claimed", "started", "completed"]);
}

async fn a_follower_hears_what_happens_from_now_on(stage: Stage) {
    life(&stage).await;
    let mut follower = Follower::on(&stage, "", None).await;
    life(&stage).await;
    assert_eq!(ids(&follower.take(4).await), [5, 6, 7, 8]);
}

async fn a_follower_that_comes_back_misses_nothing_and_hears_nothing_twice(stage: Stage) {
    let worker = {
        let stage = stage.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                life(&stage).await;
            }
        })
    };
    let mut all = Vec::new();
    let mut last = None;
    while all.len() < 200 {
        // Where it stopped wins over what the address says.
        let mut follower = Follower::on(&stage, "after=0", last).await;
        let count = (all.len() % 7 + 1).min(200 - all.len());
        all.extend(ids(&follower.take(count).await));
        last = all.last().copied();
    }
    worker.await.unwrap();
    assert_eq!(all, (1..=200).collect::<Vec<_>>());
}

async fn events_of_one_task_or_handoff_can_be_followed_alone(stage: Stage) {
    life(&stage).await;
    let id = life(&stage).await;
    life(&stage).await;
    let task = text(&stage.show(&id).await["task_id"]);
    for filter in [format!("task={task}"), format!("handoff={id}")] {
        let mut follower = Follower::on(&stage, &format!("after=0&{filter}"), None).await;
        let heard = follower.take(4).await;
        assert_eq!(ids(&heard), [5, 6, 7, 8]);
        assert!(heard.iter().all(|event| event.data["record"]["task_id"] == *task));
    }
    let mut follower = Follower::on(&stage, &format!("task={task}"), Some(6)).await;
    assert_eq!(ids(&follower.take(2).await), [7, 8]);
}

async fn a_stream_ends_when_the_broker_goes_away(stage: Stage) {
    let mut follower = Follower::on(&stage, "", None).await;
    life(&stage).await;
    follower.take(4).await;
    stage.engine.end_waits();
    assert!(follower.next().await.is_none());
}

async fn a_place_to_resume_from_that_is_not_there_is_refused(stage: Stage) {
    for bad in ["", "x", "-1", "1.5", "99999999999999999999999"] {
        let request = Request::get("/v1/events").header("Last-Event-ID", bad);
        let reply = stage.call(request.body(Body::empty()).unwrap()).await;
        let problem = reply.refused(400, "invalid_request");
        assert_eq!(problem["details"]["field"], "Last-Event-ID");
    }
    life(&stage).await;
    Follower::on(&stage, "after=4", None).await;
    for last in ["5", "18446744073709551615"] {
        let request = Request::get("/v1/events").header("Last-Event-ID", last);
        let reply = stage.call(request.body(Body::empty()).unwrap()).await;
        let problem = reply.refused(400, "invalid_request");
        assert!(text(&problem["message"]).contains("past the end of the log"));
    }
    for bad in ["after=5", "after=x", "task=7", "handoff=7", "mood=good"] {
        stage.get(&format!("/v1/events?{bad}")).await.refused(400, "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_heard_over_a_socket_and_the_stream_ends_with_the_broker() {
    let served = Served::start(Stage::volatile().await).await;
    let response = served.http.get(served.url("/v1/events?after=0")).send().await.unwrap();
    let mut follower = Follower::of(response.bytes_stream().into_stream());
    life(&served.stage).await;
    assert_eq!(ids(&follower.take(4).await), [1, 2, 3, 4]);
    served.end().await;
    assert!(follower.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_does_not_read_hinders_nobody() {
    let served = Served::start(Stage::volatile().await).await;
    let url = served.url("/v1/events?after=0");
    let mut stuck = Vec::new();
    for _ in 0..20 {
        stuck.push(served.http.get(&url).send().await.unwrap());
    }
    let mut follower = Follower::of(served.http.get(&url).send().await.unwrap().bytes_stream());
    for round in 0..250_u64 {
        life(&served.stage).await;
        let expected: Vec<_> = (1..=4).map(|event| round * 4 + event).collect();
        assert_eq!(ids(&follower.take(4).await), expected);
    }
    drop(stuck);
}
