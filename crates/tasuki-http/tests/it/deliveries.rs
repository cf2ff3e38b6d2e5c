// SPDX-License-Identifier: Apache-2.0
//! Work that is posted to agents: signed, one after the other, once for each attempt, and only where
//! the broker may connect to. The receiver is a server on loopback that answers as it is told.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, Uri};
use serde_json::{Value, json};
use tasuki_core::address::Guard;
use tasuki_core::identity::{self, Presented, SecretKey, digest};
use tasuki_engine::{Engine, Settings, SystemIds};
use tasuki_http::{Poster, Resolver, SystemResolver};
use tasuki_store::Clock;
use tokio::sync::{Notify, mpsc};

use crate::support::{Backend, Held, SECOND, Stage, everything, in_time, may, merged, offer, text};

macro_rules! on_both {
    ($($story:ident)+) => {
        mod volatile { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::play(crate::support::Backend::Volatile, super::$story).await;
            }
        )+ }
        mod sqlite { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                super::play(crate::support::Backend::Sqlite, super::$story).await;
            }
        )+ }
    };
}

on_both! {
    work_is_posted_with_the_brokers_signature_and_done_by_the_answer
    who_accepts_reports_by_itself_and_gets_the_next_one_then
    attempts_that_fail_are_retried_and_end_as_a_dead_letter
    who_does_not_answer_has_failed_when_the_time_is_up
    answers_that_say_nothing_clear_are_failures
    a_url_that_keeps_failing_opens_its_breaker
    an_agent_declines_or_fails_for_good_by_its_answer
    more_at_once_if_the_manifest_says_so
    two_brokers_on_one_store_deliver_each_handoff_once
    an_address_that_is_not_public_is_refused_when_published_and_when_resolved
    a_name_is_looked_up_once_for_each_delivery
    who_is_drained_or_may_not_claim_gets_nothing
}

fn key() -> Arc<SecretKey> {
    Arc::new(SecretKey::from_seed([0xb1; 32]))
}

fn loopback() -> Guard {
    Guard::allowing(vec!["127.0.0.0/8".parse().unwrap()])
}

fn settings() -> Settings {
    Settings { guard: loopback(), ..Settings::default() }
}

async fn play<F: Future<Output = ()>>(backend: Backend, story: impl FnOnce(Stage) -> F) {
    let stage = Stage::with(backend, settings()).await;
    in_time(story(stage)).await;
}

impl Stage {
    fn delivers(&self) {
        self.delivers_by(loopback(), Arc::new(SystemResolver));
    }

    fn delivers_by(&self, guard: Guard, resolver: Arc<dyn Resolver>) {
        let poster = Poster::new(guard, Some(key()), resolver);
        self.engine.start_deliveries(Arc::new(poster));
    }

    async fn publish_hook(&self, url: &str, more: Value) {
        let manifest = hook(url, more);
        self.post("/v1/agents", json!({ "manifest": manifest })).await.done();
    }

    async fn settled(&self, id: &str) -> Value {
        let wish = json!({ "handoffs": [id], "timeout_ms": 60 * SECOND });
        let waited = self.post("/v1/wait", wish).await.done();
        assert_eq!(waited["done"], true, "{waited}");
        waited["handoffs"][0].clone()
    }

    pub(crate) async fn becomes(&self, id: &str, state: &str) {
        while self.is(id).await.0 != state {
            tokio::task::yield_now().await;
        }
    }
}

fn hook(url: &str, more: Value) -> Value {
    let delivery = json!({ "mode": "webhook", "url": url });
    merged(json!({ "agent_id": "hook", "capabilities": [], "delivery": delivery }), more)
}

/// What came in.
struct Post {
    uri: Uri,
    headers: HeaderMap,
    bytes: Bytes,
    body: Value,
}

#[derive(Clone)]
enum Say {
    /// A status and a body.
    This(u16, String),
    /// A status, a header and nothing else.
    Header(u16, &'static str, &'static str),
    /// Nothing, until told.
    Nothing(Arc<Notify>),
    /// More than anybody would read.
    TooMuch,
}

fn done() -> Say {
    Say::This(200, json!({ "payload": { "type": "done" } }).to_string())
}

struct Receiver {
    address: SocketAddr,
    posts: mpsc::UnboundedReceiver<Post>,
}

#[derive(Clone)]
struct Desk {
    posts: mpsc::UnboundedSender<Post>,
    answers: Arc<Mutex<VecDeque<Say>>>,
}

impl Receiver {
    /// Answers in this order, and from then on that it is done.
    async fn start(answers: impl IntoIterator<Item = Say>) -> Self {
        let (send, posts) = mpsc::unbounded_channel();
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let desk = Desk { posts: send, answers };
        let router = Router::new().fallback(receive).with_state(desk);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, posts }
    }

    fn url(&self) -> String {
        format!("http://{}/inbox?for=hook", self.address)
    }

    async fn next(&mut self) -> Post {
        in_time(self.posts.recv()).await.expect("the receiver listens")
    }

    fn nothing_came(&mut self) {
        assert!(self.posts.try_recv().is_err());
    }
}

async fn receive(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response<Body> {
    let body = serde_json::from_slice(&bytes).unwrap();
    let say = desk.answers.lock().unwrap().pop_front().unwrap_or_else(done);
    let _ = desk.posts.send(Post { uri, headers, bytes, body });
    let response = Response::builder();
    match say {
        Say::This(status, text) => response.status(status).body(text.into()).unwrap(),
        Say::Header(status, name, value) => {
            response.status(status).header(name, value).body(Body::empty()).unwrap()
        }
        Say::Nothing(until) => {
            until.notified().await;
            response.status(500).body(Body::empty()).unwrap()
        }
        Say::TooMuch => {
            let text = format!(r#"{{"payload":{{"type":"{}"}}}}"#, "x".repeat(2 * 1024 * 1024));
            response.status(200).body(text.into()).unwrap()
        }
    }
}

async fn work_is_posted_with_the_brokers_signature_and_done_by_the_answer(stage: Stage) {
    let result = json!({ "payload": { "type": "done", "lines": 3 } }).to_string();
    let mut receiver = Receiver::start([Say::This(200, result)]).await;
    stage.delivers();
    stage.publish_hook(&receiver.url(), json!({})).await;
    let id = stage.offer("hook", json!({})).await;
    let post = receiver.next().await;
    let ended = stage.settled(&id).await;
    assert_eq!(ended["state"], "completed");
    assert_eq!(ended["output"]["payload"]["lines"], 3);
    // What is posted is what a claim would have given.
    assert_eq!(post.body["handoff_id"], json!(id));
    assert_eq!(post.body["envelope"]["intent"], "Add GET /users/{id}.");
    assert!(post.body["claim_id"].is_string() && post.body["fence"].is_u64());
    let header = |name: &str| post.headers[name].to_str().unwrap();
    let authority = receiver.address.to_string();
    let request = identity::Request {
        method: "POST",
        authority: &authority,
        path: post.uri.path(),
        query: post.uri.query(),
        content_digest: Some(header("content-digest")),
    };
    digest::check(header("content-digest"), &post.bytes).unwrap();
    let presented = Presented::parse(header("signature-input"), header("signature")).unwrap();
    presented.verify(&request, &key().public(), stage.clock.now(), 0).unwrap();
    // One attempt, one record of it.
    assert_eq!(stage.story(&id).await, ["transfer_offered", "claimed", "completed"]);
    receiver.nothing_came();
}

async fn who_accepts_reports_by_itself_and_gets_the_next_one_then(stage: Stage) {
    let mut receiver = Receiver::start([Say::This(202, String::new())]).await;
    stage.delivers();
    stage.publish_hook(&receiver.url(), json!({})).await;
    let first = stage.offer("hook", json!({})).await;
    let second = stage.offer("hook", json!({})).await;
    let held = Held::of(&receiver.next().await.body);
    assert_eq!(held.handoff, first);
    stage.act(&held, "start", json!({})).await.done();
    stage.act(&held, "heartbeat", json!({})).await.done();
    receiver.nothing_came();
    stage.completed(&held).await;
    assert_eq!(Held::of(&receiver.next().await.body).handoff, second);
    assert_eq!(stage.settled(&second).await["state"], "completed");
}

async fn attempts_that_fail_are_retried_and_end_as_a_dead_letter(stage: Stage) {
    let busy = Say::Header(503, "retry-after", "7");
    let error = Say::This(500, "oh".into());
    let moved = Say::Header(307, "location", "http://127.0.0.1:9/elsewhere");
    let mut receiver = Receiver::start([busy, error, moved]).await;
    stage.delivers();
    stage.publish_hook(&receiver.url(), json!({})).await;
    let id = stage.offer("hook", json!({})).await;
    let mut fences = Vec::new();
    for attempt in 1..=3 {
        fences.push(Held::of(&receiver.next().await.body).fence);
        if attempt == 3 {
            break;
        }
        stage.becomes(&id, "scheduled").await;
        if attempt == 1 {
            let due = text(&stage.show(&id).await["due_at"]);
            assert!(due.contains(":07"), "{due}");
        }
        stage.pass(30 * SECOND).await;
    }
    assert!(fences.is_sorted_by(|one, other| one < other));
    assert_eq!(stage.settled(&id).await["state"], "dead_lettered");
    let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
    let reports = letter["reports"].as_array().unwrap();
    let told: Vec<_> = reports.iter().map(|report| text(&report["report"]["message"])).collect();
    assert!(told[0].contains("503") && told[1].contains("500"), "{told:?}");
    assert!(told[2].contains("redirects are not followed"), "{told:?}");
    for report in reports {
        assert_eq!(report["report"]["type"], "delivery_failed");
        // The query is nobody's business.
        let attempted = format!("POST http://{}/inbox", receiver.address);
        assert_eq!(report["report"]["attempted"], attempted);
    }
    receiver.nothing_came();
}

async fn who_does_not_answer_has_failed_when_the_time_is_up(stage: Stage) {
    let never = Arc::new(Notify::new());
    let mut receiver = Receiver::start([Say::Nothing(never)]).await;
    stage.delivers();
    stage.publish_hook(&receiver.url(), json!({})).await;
    let id = stage.offer("hook", json!({})).await;
    receiver.next().await;
    stage.clock.advance_ms(24 * SECOND);
    assert_eq!(stage.is(&id).await.0, "claimed");
    stage.clock.advance_ms(SECOND);
    stage.becomes(&id, "scheduled").await;
    stage.pass(30 * SECOND).await;
    receiver.next().await;
    assert_eq!(stage.settled(&id).await["state"], "completed");
    let failed: Vec<_> = stage.story(&id).await;
    assert_eq!(failed.iter().filter(|kind| *kind == "attempt_failed").count(), 1);
    assert!(!failed.contains(&"lease_lost".into()), "{failed:?}");
}

async fn answers_that_say_nothing_clear_are_failures(stage: Stage) {
    let malformed = json!({ "payload": "no object" }).to_string();
    let answers = [
        (Say::This(204, String::new()), "without a result"),
        (Say::This(200, "<html>".into()), "without a result"),
        (Say::This(200, malformed), "no result"),
        (Say::TooMuch, "broke off"),
        (Say::This(404, "{}".into()), "404"),
        (Say::Header(302, "location", "/"), "redirects"),
    ];
    // A result in between keeps the breaker closed.
    let in_turn = answers.iter().flat_map(|(say, _)| [say.clone(), done()]);
    let mut receiver = Receiver::start(in_turn).await;
    stage.delivers();
    stage.publish_hook(&receiver.url(), json!({})).await;
    for (_, expected) in answers {
        let terms = json!({ "attempts": 1 });
        let id = stage.offer("hook", json!({ "terms": terms })).await;
        receiver.next().await;
        assert_eq!(stage.settled(&id).await["state"], "dead_lettered");
        let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
        let message = text(&letter["reports"][0]["report"]["message"]);
        assert!(message.contains(expected), "{message}");
        let good = stage.offer("hook", json!({})).await;
        receiver.next().await;
        assert_eq!(stage.settled(&good).await["state"], "completed");
    }
}

async fn a_url_that_keeps_failing_opens_its_breaker(stage: Stage) {
    let broken = (0..3).map(|_| Say::This(500, "oh".into()));
    let mut receiver = Receiver::start(broken).await;
    stage.delivers();
    stage.publish_hook(&receiver.url(), json!({})).await;
    let once = || json!({ "terms": { "attempts": 1 } });
    for _ in 0..3 {
        let id = stage.offer("hook", once()).await;
        receiver.next().await;
        assert_eq!(stage.settled(&id).await["state"], "dead_lettered");
    }
    let refused = stage.post("/v1/handoffs", offer("hook", once())).await;
    refused.refused(409, "target_unavailable");
    stage.pass(61 * SECOND).await;
    let probe = stage.offer("hook", once()).await;
    receiver.next().await;
    assert_eq!(stage.settled(&probe).await["state"], "completed");
    let id = stage.offer("hook", once()).await;
    assert_eq!(stage.settled(&id).await["state"], "completed");
}

async fn an_agent_declines_or_fails_for_good_by_its_answer(stage: Stage) {
    let declined = json!({ "outcome": "declined", "reason": "not mine" }).to_string();
    let failed = json!({
        "outcome": "failed", "class": "permanent", "type": "no_such_file",
        "message": "there is none", "hint": "name another",
    });
    let answers = [Say::This(422, declined), Say::This(422, failed.to_string())];
    let mut receiver = Receiver::start(answers).await;
    stage.delivers();
    stage.publish_hook(&receiver.url(), json!({})).await;
    let id = stage.offer("hook", json!({})).await;
    receiver.next().await;
    assert_eq!(stage.settled(&id).await["dead_letter"]["reason"], "declined");
    let id = stage.offer("hook", json!({})).await;
    receiver.next().await;
    assert_eq!(stage.settled(&id).await["dead_letter"]["reason"], "permanent_failure");
    let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
    assert_eq!(letter["reports"][0]["report"]["type"], "no_such_file");
}

async fn more_at_once_if_the_manifest_says_so(stage: Stage) {
    let never = Arc::new(Notify::new());
    let answers = [Say::Nothing(never.clone()), Say::Nothing(never)];
    let mut receiver = Receiver::start(answers).await;
    stage.delivers();
    let able = json!({ "concurrency": 2, "capabilities": [{ "name": "review" }] });
    stage.publish_hook(&receiver.url(), able).await;
    let mut offered = Vec::new();
    for to in ["hook", "*review", "hook"] {
        offered.push(stage.offer(to, json!({})).await);
    }
    let mut came = vec![
        Held::of(&receiver.next().await.body).handoff,
        Held::of(&receiver.next().await.body).handoff,
    ];
    receiver.nothing_came();
    assert_eq!(stage.is(&offered[2]).await.0, "pending");
    came.sort();
    offered.truncate(2);
    offered.sort();
    assert_eq!(came, offered);
}

async fn two_brokers_on_one_store_deliver_each_handoff_once(stage: Stage) {
    let mut receiver = Receiver::start([]).await;
    let other = Engine::start(stage.store.clone(), Arc::new(SystemIds), settings());
    let poster = || Arc::new(Poster::new(loopback(), Some(key()), Arc::new(SystemResolver)));
    stage.engine.start_deliveries(poster());
    other.start_deliveries(poster());
    stage.publish_hook(&receiver.url(), json!({ "concurrency": 4 })).await;
    let mut offered = Vec::new();
    for _ in 0..20 {
        offered.push(stage.offer("hook", json!({})).await);
    }
    for id in &offered {
        assert_eq!(stage.settled(id).await["state"], "completed");
    }
    let mut came = Vec::new();
    for _ in &offered {
        came.push(Held::of(&receiver.next().await.body).handoff);
    }
    came.sort();
    offered.sort();
    assert_eq!(came, offered);
    receiver.nothing_came();
    other.end_waits();
}

struct Names {
    answer: Vec<SocketAddr>,
    asked: AtomicUsize,
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        assert_eq!(host, "hooks.example");
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(self.answer.clone())
    }
}

async fn an_address_that_is_not_public_is_refused_when_published_and_when_resolved(stage: Stage) {
    let mut receiver = Receiver::start([]).await;
    for url in [
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[fd00:ec2::254]/",
        "http://0x7f000001/",
        "http://2130706433/",
    ] {
        let body = json!({ "manifest": hook(url, json!({})) });
        let refused = stage.post("/v1/agents", body).await.refused(422, "invalid_manifest");
        assert!(refused.to_string().contains("delivery.url"), "{url} {refused}");
    }
    // Loopback is allowed to be published here, and the one who delivers allows nothing.
    let public: SocketAddr = "1.1.1.1:80".parse().unwrap();
    let answer = vec![public, receiver.address];
    let names = Arc::new(Names { answer, asked: AtomicUsize::new(0) });
    stage.delivers_by(Guard::default(), names.clone());
    let url = format!("http://hooks.example:{}/", receiver.address.port());
    stage.publish_hook(&url, json!({})).await;
    let id = stage.offer("hook", json!({ "terms": { "attempts": 1 } })).await;
    assert_eq!(stage.settled(&id).await["state"], "dead_lettered");
    let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
    let message = text(&letter["reports"][0]["report"]["message"]);
    assert!(message.contains("127.0.0.1 is loopback"), "{message}");
    assert_eq!(names.asked.load(Ordering::Relaxed), 1);
    stage.publish_hook(&receiver.url(), json!({})).await;
    let id = stage.offer("hook", json!({ "terms": { "attempts": 1 } })).await;
    assert_eq!(stage.settled(&id).await["state"], "dead_lettered");
    receiver.nothing_came();
}

async fn a_name_is_looked_up_once_for_each_delivery(stage: Stage) {
    let mut receiver = Receiver::start([]).await;
    let names = Names { answer: vec![receiver.address], asked: AtomicUsize::new(0) };
    let names = Arc::new(names);
    stage.delivers_by(loopback(), names.clone());
    stage.publish_hook("http://hooks.example/in", json!({})).await;
    for count in 1..=2 {
        let id = stage.offer("hook", json!({})).await;
        assert_eq!(stage.settled(&id).await["state"], "completed");
        let post = receiver.next().await;
        assert_eq!(post.headers["host"], "hooks.example");
        // What was checked is what was connected to: nobody asks a second time.
        assert_eq!(names.asked.load(Ordering::Relaxed), count);
    }
}

async fn who_is_drained_or_may_not_claim_gets_nothing(stage: Stage) {
    let mut receiver = Receiver::start([]).await;
    stage.delivers();
    stage.publish_hook(&receiver.url(), json!({})).await;
    stage.post("/v1/agents/hook/drain", json!({})).await.done();
    let id = stage.offer("hook", json!({})).await;
    let probe = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&probe, "coder").await;
    stage.completed(&held).await;
    receiver.nothing_came();
    assert_eq!(stage.is(&id).await.0, "pending");
    stage.post("/v1/agents/hook/resume", json!({})).await.done();
    assert_eq!(Held::of(&receiver.next().await.body).handoff, id);
    assert_eq!(stage.settled(&id).await["state"], "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_go_on_after_a_restart() {
    let stage = Stage::with(Backend::Sqlite, settings()).await;
    in_time(async {
        let mut receiver = Receiver::start([Say::This(202, String::new())]).await;
        stage.delivers();
        stage.publish_hook(&receiver.url(), json!({})).await;
        let first = stage.offer("hook", json!({})).await;
        let second = stage.offer("hook", json!({})).await;
        let held = Held::of(&receiver.next().await.body);
        stage.engine.close().await;
        let stage = stage.reopened().await;
        stage.delivers();
        // What was accepted before is still the agent's, so the next one waits for it.
        stage.completed(&held).await;
        assert_eq!(held.handoff, first);
        assert_eq!(Held::of(&receiver.next().await.body).handoff, second);
        assert_eq!(stage.settled(&second).await["state"], "completed");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_broker_claims_for_an_agent_only_what_the_agent_may_claim() {
    let settings = Settings { open: false, signer: Some(key()), ..settings() };
    let stage = Stage::with(Backend::Volatile, settings).await;
    in_time(async {
        let mut receiver = Receiver::start([]).await;
        stage.delivers();
        let admin = stage.administrator().await;
        let boss = admin.enroll("boss", everything()).await;
        let agent = admin.enroll("hook", may(&["read"])).await;
        let manifest = hook(&receiver.url(), json!({}));
        let body = tasuki_core::Body::of(&manifest);
        let statement = tasuki_core::identity::statement::manifest(body.hash);
        let signature = agent.key().sign(&statement);
        let signed = json!({ "key_id": agent.key_id(), "signature": signature });
        let publish = json!({ "manifest": manifest, "signed": signed });
        agent.post("/v1/agents", publish).await.done();
        let id = boss.offer("hook", json!({})).await;
        receiver.nothing_came();
        admin.set_rules("hook", may(&["claim", "complete"])).await;
        let post = receiver.next().await;
        assert_eq!(post.body["delivery"]["signed"]["key_id"], key().public().id().to_string());
        while boss.state_of(&id).await != "completed" {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
