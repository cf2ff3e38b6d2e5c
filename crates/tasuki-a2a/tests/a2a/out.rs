// SPDX-License-Identifier: Apache-2.0
//! Work for an agent that is an A2A server elsewhere: another broker, at the end of a wire that can be
//! cut. What goes wrong on the way must be neither lost nor done twice.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use futures::StreamExt;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tasuki_a2a::{Client, Credentials};
use tasuki_engine::{Answer, Courier, Parcel};
use tasuki_front::{Front, Incoming, Limits, Outgoing, Outside, around};
use tower::ServiceExt;

use crate::stage::{Backend, Stage, on_both_stores, posting};

on_both_stores! {
    work_is_done_elsewhere_and_its_result_comes_back
    a_restart_in_the_middle_goes_on_with_the_same_task
    a_lost_reply_to_a_send_leads_to_no_second_task
    a_question_from_there_is_answered_here_and_the_answer_goes_there
    cancelling_here_cancels_there
    what_is_refused_there_is_declined_here_and_failures_are_retried
    an_agent_that_speaks_0_3_alone_does_the_same
    credentials_go_to_the_origin_that_they_are_for_and_are_written_down_nowhere
    a_word_to_the_inbox_counts_only_with_the_token_of_the_work
}

/// Where the other broker is.
const THERE: &str = "http://127.0.0.1:9";

/// What lies between: requests go straight to the other broker's door.
#[derive(Default)]
struct Wire {
    there: RwLock<Router>,
    asked: Mutex<Vec<(String, Option<String>, Value)>>,
    /// How many answers to a send are lost.
    loses: AtomicU32,
    /// Whether the card there says nothing of today's version.
    older: AtomicBool,
}

impl Outside for Wire {
    fn ask(&self, asked: Outgoing) -> BoxFuture<'_, Result<Incoming, String>> {
        Box::pin(async move {
            let path = asked.url.strip_prefix(THERE).ok_or("there is nobody")?.to_owned();
            let shown = asked.headers.iter().find(|(name, _)| name == "authorization");
            let shown = shown.map(|(_, value)| value.clone());
            let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
            let sends = body["method"] == "SendMessage" || body["method"] == "message/send";
            self.asked.lock().unwrap().push((path.clone(), shown, body));
            let mut request = Request::builder().method(asked.method).uri(&path);
            request = request.header(header::HOST, "127.0.0.1:9");
            for (name, value) in asked.headers {
                request = request.header(name, value);
            }
            let request = request.body(Body::from(asked.body)).unwrap();
            let router = self.there.read().unwrap().clone();
            let (parts, body) = router.oneshot(request).await.unwrap().into_parts();
            let left = |left: u32| left.checked_sub(1);
            if sends && self.loses.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_ok() {
                return Err("the connection broke off".into());
            }
            let status = parts.status.as_u16();
            let is_card = path.ends_with("agent-card.json");
            if is_card && self.older.load(Ordering::Acquire) && status == 200 {
                let bytes = body.collect().await.unwrap().to_bytes();
                let mut card: Value = serde_json::from_slice(&bytes).unwrap();
                card.as_object_mut().unwrap().remove("supportedInterfaces");
                card["url"] = json!(format!("{THERE}/agents/coder"));
                card["protocolVersion"] = json!("0.3.0");
                let body = futures::stream::iter([Ok(card.to_string().into_bytes())]).boxed();
                return Ok(Incoming { status, headers: parts.headers, body });
            }
            let read = body.into_data_stream();
            let read = read.map(|piece| piece.map(|it| it.to_vec()).map_err(|it| it.to_string()));
            Ok(Incoming { status, headers: parts.headers, body: read.boxed() })
        })
    }
}

/// Nobody here has a webhook.
struct Nobody;

#[async_trait]
impl Courier for Nobody {
    async fn carry(&self, _: Parcel) -> Answer {
        Answer::Unclear { problem: "nobody".into(), retry_after_ms: None }
    }
}

fn connect(
    stage: &Stage,
    wire: &Arc<Wire>,
    credentials: Credentials,
    url: Option<&str>,
) -> Arc<Client> {
    let client =
        Client::new(stage.engine.clone().into(), wire.clone(), credentials, url.map(str::to_owned));
    stage.engine.start_deliveries_with(Arc::new(Nobody), Some(client.clone()));
    client
}

/// A broker with an agent elsewhere, and the one where that agent is.
async fn both(stage: &Stage) -> (Stage, Arc<Wire>) {
    let there = Stage::open(Backend::Sqlite).await;
    there.registered("coder").await;
    let wire = Arc::<Wire>::default();
    *wire.there.write().unwrap() = there.router();
    publish(stage, "").await;
    (there, wire)
}

async fn publish(stage: &Stage, authorization: &str) {
    let manifest = json!({
        "agent_id": "remote",
        "description": "Does its work elsewhere.",
        "delivery": { "mode": "a2a", "url": format!("{THERE}/agents/coder") },
    });
    let mut request = posting("/v1/agents", &json!({ "manifest": manifest }));
    if !authorization.is_empty() {
        let value = authorization.parse().unwrap();
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    stage.call(request).await.done();
}

async fn offer(stage: &Stage) -> String {
    let asked = json!({
        "from_agent": "planner", "to": { "agent": "remote" }, "intent": "Add GET /users.",
        "payload": { "type": "order", "n": 1 },
        "metadata": { "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
        "terms": { "attempts": 3, "backoff_ms": 100, "lease_ms": 600_000 },
    });
    let offered = stage.post("/v1/handoffs", &asked).await.done();
    offered["handoff_id"].as_str().unwrap().to_owned()
}

/// Waits until something is as it should be, with as much time going by here as it takes.
async fn until(stage: &Stage, id: &str, state: &str) -> Value {
    loop {
        let shown = stage.get(&format!("/v1/handoffs/{id}")).await.done();
        if shown["state"] == state {
            return shown;
        }
        tick(stage).await;
    }
}

/// A moment for those who work, after which it is later.
async fn tick(stage: &Stage) {
    let _ = tokio::time::timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
    stage.clock.advance_ms(100);
}

/// Claims work at the other broker as soon as it is there.
async fn claimed(here: &Stage, there: &Stage) -> Value {
    loop {
        let asked = json!({ "agent": "coder", "max": 1 });
        let found = there.post("/v1/claims", &asked).await.done();
        if let Some(held) = found["claims"].as_array().and_then(|held| held.first()) {
            return held.clone();
        }
        tick(here).await;
    }
}

async fn tasks(there: &Stage) -> u64 {
    there.ask("coder", "ListTasks", json!({})).await["totalSize"].as_u64().unwrap()
}

fn done() -> Value {
    json!({ "payload": { "type": "text", "text": "It is on branch users." } })
}

async fn work_is_done_elsewhere_and_its_result_comes_back(stage: Stage) {
    let (there, wire) = both(&stage).await;
    connect(&stage, &wire, Credentials::default(), None);
    let id = offer(&stage).await;
    let held = claimed(&stage, &there).await;
    assert_eq!(held["envelope"]["intent"], "Add GET /users.");
    assert_eq!(held["envelope"]["payload"], json!({ "type": "order", "n": 1 }));
    let trace = &held["envelope"]["metadata"]["traceparent"];
    assert_eq!(*trace, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    // The lease here is kept, however long it takes there.
    for _ in 0..4 {
        stage.clock.advance_ms(200_000);
        loop {
            let shown = stage.get(&format!("/v1/handoffs/{id}")).await.done();
            if shown["holder"]["lease_left_ms"].as_u64().unwrap() > 500_000 {
                break;
            }
            tick(&stage).await;
        }
    }
    there.act(&held, "progress", json!({ "note": "half of it" })).await;
    // What is said there is passed on.
    while !stage.text("/v1/audit/export").await.contains("half of it") {
        tick(&stage).await;
    }
    there.act(&held, "complete", done()).await;
    let shown = until(&stage, &id, "completed").await;
    assert_eq!((&shown["losses"], &shown["failures"]), (&json!(0), &json!(0)), "{shown}");
    let told = stage.get(&format!("/v1/handoffs/{id}")).await.done();
    assert!(told.to_string().contains("It is on branch users."), "{told}");
}

async fn a_restart_in_the_middle_goes_on_with_the_same_task(stage: Stage) {
    let (there, wire) = both(&stage).await;
    connect(&stage, &wire, Credentials::default(), None);
    let id = offer(&stage).await;
    let held = claimed(&stage, &there).await;
    let stage = stage.restarted().await;
    connect(&stage, &wire, Credentials::default(), None);
    there.act(&held, "complete", done()).await;
    let shown = until(&stage, &id, "completed").await;
    assert_eq!((&shown["losses"], &shown["failures"]), (&json!(0), &json!(0)), "{shown}");
    assert_eq!(tasks(&there).await, 1);
}

async fn a_lost_reply_to_a_send_leads_to_no_second_task(stage: Stage) {
    let (there, wire) = both(&stage).await;
    wire.loses.store(1, Ordering::Release);
    connect(&stage, &wire, Credentials::default(), None);
    let id = offer(&stage).await;
    let held = claimed(&stage, &there).await;
    there.act(&held, "complete", done()).await;
    let shown = until(&stage, &id, "completed").await;
    assert_eq!((shown["failures"].clone(), tasks(&there).await), (json!(1), 1), "{shown}");
}

async fn a_question_from_there_is_answered_here_and_the_answer_goes_there(stage: Stage) {
    let (there, wire) = both(&stage).await;
    connect(&stage, &wire, Credentials::default(), None);
    let id = offer(&stage).await;
    let held = claimed(&stage, &there).await;
    there.act(&held, "ask", json!({ "text": "Which path?" })).await;
    until(&stage, &id, "input_required").await;
    let asked = stage.get("/v1/questions").await.done();
    assert_eq!(asked["questions"][0]["text"], "Which path?", "{asked}");
    let answer = json!({ "by": "planner", "answer": "/users" });
    stage.post(&format!("/v1/handoffs/{id}/answer"), &answer).await.done();
    let held = claimed(&stage, &there).await;
    assert_eq!(held["questions"][0]["answer"], "/users");
    there.act(&held, "complete", done()).await;
    until(&stage, &id, "completed").await;
    assert_eq!(tasks(&there).await, 1);
}

async fn cancelling_here_cancels_there(stage: Stage) {
    let (there, wire) = both(&stage).await;
    connect(&stage, &wire, Credentials::default(), None);
    let id = offer(&stage).await;
    claimed(&stage, &there).await;
    loop {
        // It is remembered which task it became.
        let kept = stage.get(&format!("/v1/handoffs/{id}/artifacts")).await.done();
        if kept["artifacts"][0]["name"] == "a2a-task" {
            break;
        }
        tick(&stage).await;
    }
    let task = stage.get(&format!("/v1/handoffs/{id}")).await.done()["task_id"].clone();
    let path = format!("/v1/tasks/{}/cancel", task.as_str().unwrap());
    stage.post(&path, &json!({ "by": "planner" })).await.done();
    loop {
        let listed = there.ask("coder", "ListTasks", json!({})).await;
        if listed["tasks"][0]["status"]["state"] == "TASK_STATE_CANCELED" {
            return;
        }
        tick(&stage).await;
    }
}

async fn what_is_refused_there_is_declined_here_and_failures_are_retried(stage: Stage) {
    let (there, wire) = both(&stage).await;
    connect(&stage, &wire, Credentials::default(), None);
    let id = offer(&stage).await;
    let held = claimed(&stage, &there).await;
    let fails = json!({ "class": "permanent", "type": "no_suite", "message": "There is no suite.",
        "hint": "Add one." });
    there.act(&held, "fail", fails).await;
    // Another attempt is another task.
    let held = claimed(&stage, &there).await;
    assert_eq!(tasks(&there).await, 2);
    there.act(&held, "decline", json!({ "agent": "coder", "reason": "not mine" })).await;
    let shown = until(&stage, &id, "dead_lettered").await;
    assert_eq!(shown["dead_letter"]["reason"], "declined", "{shown}");
    let log = stage.text("/v1/audit/export").await;
    assert!(log.contains("a2a_failed") && log.contains("not mine"), "{log}");
}

async fn an_agent_that_speaks_0_3_alone_does_the_same(stage: Stage) {
    let (there, wire) = both(&stage).await;
    wire.older.store(true, Ordering::Release);
    connect(&stage, &wire, Credentials::default(), None);
    let id = offer(&stage).await;
    let held = claimed(&stage, &there).await;
    assert_eq!(held["envelope"]["payload"], json!({ "type": "order", "n": 1 }));
    there.act(&held, "ask", json!({ "text": "Which path?" })).await;
    until(&stage, &id, "input_required").await;
    let answer = json!({ "by": "planner", "answer": "/users" });
    stage.post(&format!("/v1/handoffs/{id}/answer"), &answer).await.done();
    let held = claimed(&stage, &there).await;
    there.act(&held, "complete", done()).await;
    until(&stage, &id, "completed").await;
    let asked = wire.asked.lock().unwrap();
    let methods: Vec<_> = asked.iter().filter_map(|(_, _, body)| body["method"].as_str()).collect();
    assert!(methods.contains(&"message/send") && !methods.contains(&"SendMessage"), "{methods:?}");
}

async fn credentials_go_to_the_origin_that_they_are_for_and_are_written_down_nowhere(stage: Stage) {
    let (_, wire) = both(&stage).await;
    let there = Stage::closed(Backend::Sqlite).await;
    *wire.there.write().unwrap() = there.router();
    let token = there.engine.first_administrator().await.unwrap().unwrap();
    let manifest = json!({ "manifest": { "agent_id": "coder", "description": "Writes code." } });
    let mut request = posting("/v1/agents", &manifest);
    let bearer = format!("Bearer {token}");
    request.headers_mut().insert(header::AUTHORIZATION, bearer.parse().unwrap());
    there.call(request).await.done();
    // The card is for those who are known there, so it is shown to the broker by itself.
    let card = {
        let mut request = Request::get("/agents/coder/.well-known/agent-card.json");
        request = request.header(header::HOST, "127.0.0.1:9").header("authorization", &bearer);
        there.call(request.body(Body::empty()).unwrap()).await.done()
    };
    let public = axum::routing::get(move || {
        let card = card.clone();
        async move { axum::Json(card) }
    });
    let path = "/agents/coder/.well-known/agent-card.json";
    *wire.there.write().unwrap() =
        Router::new().route(path, public).fallback_service(there.router());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let named = |origin: &str| -> Credentials {
        serde_json::from_value(json!({ "remote": [
            { "agent": "remote", "origin": origin, "bearer": { "file": file } },
        ] }))
        .unwrap()
    };
    let elsewhere = named("http://127.0.0.1:10");
    elsewhere.check().unwrap();
    connect(&stage, &wire, elsewhere, None);
    let id = offer(&stage).await;
    until(&stage, &id, "dead_lettered").await;
    assert!(wire.asked.lock().unwrap().iter().all(|(_, shown, _)| shown.is_none()));
    let log = stage.text("/v1/audit/export").await;
    assert!(log.contains("a2a_credentials"), "{log}");

    let stage = stage.restarted().await;
    connect(&stage, &wire, named(THERE), None);
    let id = offer(&stage).await;
    let shown = || {
        let asked = wire.asked.lock().unwrap();
        asked.iter().any(|(_, shown, _)| shown.as_deref() == Some(&*bearer))
    };
    while !shown() {
        tick(&stage).await;
    }
    until(&stage, &id, "claimed").await;
    assert!(!stage.text("/v1/audit/export").await.contains(&token));
}

async fn a_word_to_the_inbox_counts_only_with_the_token_of_the_work(stage: Stage) {
    let (there, wire) = both(&stage).await;
    let client = connect(&stage, &wire, Credentials::default(), Some("https://here.example"));
    let front = Front::new(stage.engine.clone(), Limits::default());
    let inbox = around(tasuki_a2a::inbox(&client), &front).with_state(front);
    let id = offer(&stage).await;
    let held = claimed(&stage, &there).await;
    // The claim may be older than the config, which tells what comes after it.
    while there.hook.is_silent().await {
        there.act(&held, "progress", json!({ "note": "on it" })).await;
    }
    let (told, _) = there.hook.heard().await;
    assert_eq!(told.url, format!("https://here.example/a2a-inbox/{id}"));
    let token = told.headers.iter().find(|(name, _)| name == "x-a2a-notification-token");
    let token = token.unwrap().1.clone();
    there.act(&held, "complete", done()).await;
    let word = |token: &str| {
        let path = format!("/a2a-inbox/{id}");
        let mut request = posting(&path, &json!({}));
        request.headers_mut().insert("x-a2a-notification-token", token.parse().unwrap());
        inbox.clone().oneshot(request)
    };
    assert_eq!(word("wrong").await.unwrap().status(), 404);
    let mut shown = json!({});
    while shown["state"] != "completed" {
        // No time goes by: it is the word that makes the broker ask.
        assert_eq!(word(&token).await.unwrap().status(), 204);
        shown = stage.get(&format!("/v1/handoffs/{id}")).await.done();
    }
}
