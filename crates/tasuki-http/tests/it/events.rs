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
    who_heard_of_events_that_were_lost_is_told_so
}

/// Reads events off a stream.
pub(crate) struct Follower {
    bytes: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    read: String,
}

#[derive(Debug)]
pub(crate) struct Heard {
    /// The number in its cursor, which only a broker and its tests know how to read.
    id: u64,
    pub(crate) cursor: String,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

impl Follower {
    pub(crate) fn of<E: std::fmt::Debug>(
        stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Self {
        let bytes = stream.map(|piece| piece.expect("the stream is whole"));
        Self { bytes: Box::pin(bytes), read: String::new() }
    }

    pub(crate) async fn on(stage: &Stage, query: &str, last: Option<&str>) -> Self {
        let mut request = Request::get(format!("/v1/events?{query}"));
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
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
    let cursor = field("id").unwrap();
    let id = cursor.rsplit('-').next().unwrap().parse().unwrap();
    let kind = field("event").unwrap();
    if kind == "missed" {
        contract::check_type("Missed", &data);
        assert_eq!(data["resume_after"], cursor);
    } else {
        contract::check_type("Event", &data);
        assert_eq!(data["position"], cursor);
        assert_eq!(data["record"]["kind"], kind);
    }
    Some(Heard { id, cursor, kind, data })
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
    let mut all: Vec<Heard> = Vec::new();
    while all.len() < 200 {
        // Where it stopped wins over what the address says. A client of 0.1 sends a bare number.
        let last = all.last().map(|heard| match heard.id % 2 {
            0 => heard.cursor.clone(),
            _ => heard.id.to_string(),
        });
        let mut follower = Follower::on(&stage, "after=0", last.as_deref()).await;
        let count = (all.len() % 7 + 1).min(200 - all.len());
        all.extend(follower.take(count).await);
    }
    worker.await.unwrap();
    assert_eq!(ids(&all), (1..=200).collect::<Vec<_>>());
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
    let mut follower = Follower::on(&stage, &format!("task={task}"), Some("1-6")).await;
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
    for last in ["5", "1-5", "18446744073709551615", "1-18446744073709551615"] {
        let request = Request::get("/v1/events").header("Last-Event-ID", last);
        let reply = stage.call(request.body(Body::empty()).unwrap()).await;
        let problem = reply.refused(400, "invalid_request");
        assert!(text(&problem["message"]).contains("past the end of the log"));
    }
    for bad in [
        "after=5",
        "after=2-1",
        "after=1-5",
        "after=1-",
        "after=x",
        "task=7",
        "handoff=7",
        "mood=good",
    ] {
        stage.get(&format!("/v1/events?{bad}")).await.refused(400, "invalid_request");
    }
}

/// As after a failover to a standby, or after a restore: the log goes on after its fourth event, and
/// somebody has heard of a ninth.
async fn who_heard_of_events_that_were_lost_is_told_so(stage: Stage) {
    life(&stage).await;
    stage.raise_epoch(2).await;
    life(&stage).await;
    for (query, last) in [("", Some("1-9")), ("after=1-9", None), ("after=1-5", None)] {
        let mut follower = Follower::on(&stage, query, last).await;
        let heard = follower.take(6).await;
        assert_eq!((&*heard[0].kind, &*heard[0].cursor), ("missed", "1-4"), "{query}");
        assert_eq!(heard[0].data["resume_after"], "1-4");
        assert_eq!((&*heard[1].kind, &*heard[1].cursor), ("epoch_raised", "2-5"));
        assert_eq!(ids(&heard[1..]), [5, 6, 7, 8, 9]);
        // Once it is told, it goes on as always.
        let mut follower = Follower::on(&stage, "", Some(&heard[0].cursor)).await;
        assert_eq!(ids(&follower.take(5).await), [5, 6, 7, 8, 9]);
    }
    // What was not lost is where it was.
    for (last, next) in [("1-3", "1-4"), ("1-4", "2-5"), ("2-8", "2-9")] {
        let mut follower = Follower::on(&stage, "", Some(last)).await;
        assert_eq!(follower.take(1).await[0].cursor, next);
    }
    let lost = stage.get("/v1/audit/export?after=1-9").await.refused(410, "cursor_lost");
    assert_eq!(lost["details"]["resume_after"], "1-4");
    let read = stage.get("/v1/channels/news/messages?after=1-9").await.done();
    assert_eq!(read["missed"], json!({ "after": "1-9", "resume_after": "1-4" }));
    assert_eq!(read["next"], "1-4");
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
