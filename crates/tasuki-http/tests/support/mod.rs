// SPDX-License-Identifier: Apache-2.0
//! A stage to play stories on: a store, an engine and the router, a clock that stands still until
//! it is moved, and short words for the usual requests. Clones share all of it. On an open stage
//! nobody has to say who it is; on a closed one [`people`] do.

pub(crate) mod contract;
mod people;
pub(crate) mod samples;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tasuki_core::Timestamp;
use tasuki_engine::{Engine, Settings, SystemIds};
use tasuki_http::{Doorway, Limits, Places};
use tasuki_store::{
    Clock, ManualClock, Postgres, PostgresOptions, Sqlite, SqliteOptions, Store, Sync, Volatile,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::ServiceExt;

pub(crate) use people::{
    Client, Draft, broker_key, everything, join, may, new_key, new_nonce, possession, segment,
    towards,
};

/// A safety net only: no story waits for time to pass.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const SECOND: u64 = 1000;
/// The lease that holds where an offer names none.
pub(crate) const LEASE: u64 = 30 * SECOND;
const BEGIN: Timestamp = Timestamp(1_800_000_000_000);

#[derive(Clone, Copy)]
pub(crate) enum Backend {
    Volatile,
    Sqlite,
    Postgres,
}

/// Plays each story on each store; after `closed:` on a stage where everybody has to say who it is.
macro_rules! on_both_stores {
    (closed: $($story:ident)+) => {
        crate::support::on_both_stores!(@ closed $($story)+);
    };
    ($($story:ident)+) => {
        crate::support::on_both_stores!(@ open $($story)+);
    };
    (@ $stage:ident $($story:ident)+) => {
        mod volatile {
            crate::support::on_both_stores!(@ $stage Volatile: $($story)+);
        }
        mod sqlite {
            crate::support::on_both_stores!(@ $stage Sqlite: $($story)+);
        }
    };
    (@ $stage:ident $backend:ident: $($story:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let stage = crate::support::Stage::$stage(crate::support::Backend::$backend).await;
                crate::support::in_time(super::$story(stage)).await;
            }
        )+
    };
}
pub(crate) use on_both_stores;

/// Plays each story on each store that a restart does not empty.
macro_rules! on_durable_stores {
    (closed: $($story:ident)+) => {
        crate::support::on_durable_stores!(@ closed $($story)+);
    };
    ($($story:ident)+) => {
        crate::support::on_durable_stores!(@ open $($story)+);
    };
    (@ $stage:ident $($story:ident)+) => {
        mod sqlite {
            crate::support::on_both_stores!(@ $stage Sqlite: $($story)+);
        }
        mod postgres {
            crate::support::on_both_stores!(@ $stage Postgres: $($story)+);
        }
    };
}
pub(crate) use on_durable_stores;

pub(crate) async fn in_time<T>(story: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, Box::pin(story)).await.expect("the story ends")
}

#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) router: Router,
    settings: Settings,
    backend: Backend,
    pub(crate) dir: Arc<tempfile::TempDir>,
}

impl Stage {
    pub(crate) async fn open(backend: Backend) -> Self {
        Self::new(backend, Settings::default(), Limits::default()).await
    }

    /// Where everybody has to say who it is.
    pub(crate) async fn closed(backend: Backend) -> Self {
        let signer = Some(Arc::new(broker_key()));
        let settings = Settings { open: false, signer, ..Settings::default() };
        Self::new(backend, settings, Limits::default()).await
    }

    pub(crate) async fn volatile() -> Self {
        Self::open(Backend::Volatile).await
    }

    pub(crate) async fn set(settings: Settings) -> Self {
        Self::new(Backend::Volatile, settings, Limits::default()).await
    }

    pub(crate) async fn limited(limits: Limits) -> Self {
        Self::new(Backend::Volatile, Settings::default(), limits).await
    }

    pub(crate) async fn with(backend: Backend, settings: Settings) -> Self {
        Self::new(backend, settings, Limits::default()).await
    }

    pub(crate) async fn with_limits(backend: Backend, settings: Settings, limits: Limits) -> Self {
        Self::new(backend, settings, limits).await
    }

    async fn new(backend: Backend, settings: Settings, limits: Limits) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        Self::start(backend, dir, ManualClock::at(BEGIN), settings, limits).await
    }

    /// Another broker on the same database.
    pub(crate) async fn beside(&self, settings: Settings) -> Self {
        assert!(matches!(self.backend, Backend::Postgres), "other stores have one broker");
        let (dir, clock) = (self.dir.clone(), self.clock.clone());
        Self::start(self.backend, dir, clock, settings, Limits::default()).await
    }

    /// The same data again, after the store was closed.
    pub(crate) async fn reopened(self) -> Self {
        let settings = self.settings.clone();
        self.reopened_with(settings).await
    }

    /// The same data again, under other settings.
    pub(crate) async fn reopened_with(self, settings: Settings) -> Self {
        let Self { clock, dir, backend, .. } = self;
        Self::start(backend, dir, clock, settings, Limits::default()).await
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings.clone()
    }

    /// Ends the broker and starts it again on the same data.
    pub(crate) async fn restarted(self) -> Self {
        self.engine.close().await;
        self.reopened().await
    }

    async fn start(
        backend: Backend,
        dir: Arc<tempfile::TempDir>,
        clock: Arc<ManualClock>,
        settings: Settings,
        limits: Limits,
    ) -> Self {
        let store: Arc<dyn Store> = match backend {
            Backend::Volatile => Arc::new(Volatile::new(clock.clone())),
            Backend::Sqlite => {
                let options = SqliteOptions { dir: dir.path().to_owned(), sync: Sync::Full };
                Arc::new(Sqlite::open(options, clock.clone()).await.unwrap())
            }
            Backend::Postgres => Arc::new(open_postgres(dir.path(), clock.clone()).await),
        };
        let engine = Engine::start(store.clone(), Arc::new(SystemIds), settings.clone());
        let router = tasuki_http::router(engine.clone(), limits);
        Self { clock, store, engine, router, settings, backend, dir }
    }

    /// Lets time pass and everything happen that is due by then.
    pub(crate) async fn pass(&self, ms: u64) {
        self.clock.advance_ms(ms);
        let now = self.clock.now();
        let mut due = self.store.next_due();
        due.wait_for(|due| due.is_none_or(|at| at > now)).await.unwrap();
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> Reply {
        let method = request.method().as_str().to_lowercase();
        let path = request.uri().path().to_owned();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let reply = Reply::new(parts.status.as_u16(), parts.headers, bytes);
        // Without a body there is nothing to hold against the document.
        if method != "head" {
            contract::check(&method, &path, &reply);
        }
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Sends a request with any method.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> Reply {
        self.call(Draft::of(method, path, &body).request()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        let reply = self.post_bytes(path, body.to_string()).await;
        if reply.status < 300 {
            contract::check_request(path, &body);
        }
        reply
    }

    pub(crate) async fn post_bytes(&self, path: &str, body: impl Into<Body>) -> Reply {
        self.call(post(path, body)).await
    }

    /// Offers work to an agent; the story may change what is sent.
    pub(crate) async fn offer(&self, to: &str, change: Value) -> String {
        let offered = self.post("/v1/handoffs", offer(to, change)).await.done();
        offered["handoff_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn claim_one(&self, handoff: &str, agent: &str) -> Reply {
        let path = format!("/v1/handoffs/{handoff}/claim");
        self.post(&path, json!({ "agent": agent, "capabilities": ["review"] })).await
    }

    pub(crate) async fn claimed(&self, handoff: &str, agent: &str) -> Held {
        Held::of(&self.claim_one(handoff, agent).await.done())
    }

    /// What a broker writes first after the end of its log may have been lost.
    pub(crate) async fn raise_epoch(&self, epoch: u64) {
        let raise = tasuki_core::Command::of_broker(tasuki_core::commands::RaiseEpoch { epoch });
        self.store.execute(vec![raise]).await.unwrap().pop().unwrap().unwrap();
    }

    /// A call of the claim's holder.
    pub(crate) async fn act(&self, held: &Held, act: &str, more: Value) -> Reply {
        self.post(&format!("/v1/handoffs/{}/{act}", held.handoff), held.with(more)).await
    }

    pub(crate) async fn completed(&self, held: &Held) -> Value {
        self.act(held, "complete", json!({ "payload": { "type": "done" } })).await.done()
    }

    pub(crate) async fn show(&self, handoff: &str) -> Value {
        self.get(&format!("/v1/handoffs/{handoff}")).await.done()
    }

    /// Its state and its status.
    pub(crate) async fn is(&self, handoff: &str) -> (String, String) {
        let shown = self.show(handoff).await;
        (text(&shown["state"]), text(&shown["status"]))
    }

    /// The task that a handoff moves.
    pub(crate) async fn task_of(&self, handoff: &str) -> Value {
        let task = text(&self.show(handoff).await["task_id"]);
        self.get(&format!("/v1/tasks/{task}")).await.done()
    }

    /// What happened to a handoff's task, in order.
    pub(crate) async fn story(&self, handoff: &str) -> Vec<String> {
        let task = text(&self.show(handoff).await["task_id"]);
        let events = self.get(&format!("/v1/tasks/{task}/events")).await.done();
        let kind = |event: &Value| text(&event["record"]["kind"]);
        events["events"].as_array().unwrap().iter().map(kind).collect()
    }

    /// A handoff that ended as a dead letter.
    pub(crate) async fn dead_letter(&self) -> String {
        let id = self.offer("coder", json!({})).await;
        let held = self.claimed(&id, "coder").await;
        self.act(&held, "fail", failure("permanent")).await.done();
        id
    }
}

/// A store on a database of its own, whose URL is kept where others keep their files.
async fn open_postgres(dir: &Path, clock: Arc<ManualClock>) -> Postgres {
    let url = match std::fs::read_to_string(dir.join("url")) {
        Ok(url) => url,
        Err(_) => {
            let url = scratch_postgres::shared().database().await;
            std::fs::write(dir.join("url"), &url).unwrap();
            url
        }
    };
    let key = tasuki_store::key::load(dir).unwrap();
    let options = PostgresOptions { connections_max: 4, ..PostgresOptions::new(url, key) };
    Postgres::open(options, clock).await.unwrap()
}

pub(crate) fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request.body(body.into()).unwrap()
}

/// An offer by the planner, to an agent or (`*review`) to a capability.
pub(crate) fn offer(to: &str, change: Value) -> Value {
    let to = match to.strip_prefix('*') {
        Some(capability) => json!({ "capability": capability }),
        None => json!({ "agent": to }),
    };
    let offer = json!({
        "from_agent": "planner",
        "to": to,
        "intent": "Add GET /users/{id}.",
        "payload": { "type": "request" },
    });
    merged(offer, change)
}

pub(crate) fn failure(class: &str) -> Value {
    let hint = (class == "permanent").then_some("mend it");
    json!({ "class": class, "type": "boom", "message": "it broke", "hint": hint })
}

/// An object with members added or replaced; `null` takes one away.
pub(crate) fn merged(mut object: Value, more: Value) -> Value {
    let members = object.as_object_mut().unwrap();
    let Value::Object(more) = more else { panic!("expected an object, got {more}") };
    for (name, value) in more {
        match value {
            Value::Null => drop(members.remove(&name)),
            value => drop(members.insert(name, value)),
        }
    }
    object
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("expected a text, got {value}")).to_owned()
}

/// Some members of an object that are texts.
#[track_caller]
pub(crate) fn texts<'v, const N: usize>(value: &'v Value, names: [&str; N]) -> [&'v str; N] {
    names.map(|name| value[name].as_str().unwrap_or_else(|| panic!("no text {name} in {value}")))
}

/// A claim, as its holder knows it.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) handoff: String,
    pub(crate) claim_id: String,
    pub(crate) fence: u64,
}

impl Held {
    pub(crate) fn of(claimed: &Value) -> Self {
        Self {
            handoff: text(&claimed["handoff_id"]),
            claim_id: text(&claimed["claim_id"]),
            fence: claimed["fence"].as_u64().unwrap(),
        }
    }

    pub(crate) fn with(&self, more: Value) -> Value {
        merged(json!({ "claim_id": self.claim_id, "fence": self.fence }), more)
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
    /// The body, where it is JSON.
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn new(status: u16, headers: HeaderMap, bytes: Bytes) -> Self {
        let is_json = headers.get(header::CONTENT_TYPE).is_some_and(|k| k == "application/json");
        let body = match is_json && !bytes.is_empty() {
            true => serde_json::from_slice(&bytes).unwrap(),
            false => Value::Null,
        };
        Self { status, headers, bytes, body }
    }

    #[track_caller]
    pub(crate) fn done(self) -> Value {
        assert!(matches!(self.status, 200 | 201), "{} {}", self.status, self.body);
        self.body
    }

    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Value {
        let found = (self.status, self.body["code"].as_str());
        assert_eq!(found, (status, Some(code)), "{}", self.body);
        self.body
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }
}

/// The same stage behind a socket.
pub(crate) struct Served {
    pub(crate) stage: Stage,
    pub(crate) address: SocketAddr,
    pub(crate) http: reqwest::Client,
    end: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn start(stage: Stage) -> Self {
        Self::with(stage, 10_000).await
    }

    pub(crate) async fn with(stage: Stage, connections_max: usize) -> Self {
        Self::placed(stage, Places { max: connections_max, ..Places::default() }).await
    }

    /// Strangers' requests take as long as the clock of the stage says.
    pub(crate) async fn placed(stage: Stage, places: Places) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ends) = oneshot::channel();
        let engine = stage.engine.clone();
        let ends = async move {
            // A story that just stops is an end too.
            let _ = ends.await;
            engine.end_waits();
        };
        let router = stage.router.clone();
        let clock = stage.clock.clone();
        let now = Arc::new(move || Duration::from_millis(clock.now().ms_after(BEGIN)));
        let doorway = Doorway { now, ..Doorway::of(places) };
        let serving = tokio::spawn(tasuki_http::serve_by(doorway, listener, router, ends));
        Self { stage, address, http: client(), end, serving }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        let reply = send(self.http.post(self.url(path)).json(body)).await;
        contract::check("post", path, &reply);
        reply
    }

    /// Ends the broker as the binary does. Returns when the last connection is gone.
    pub(crate) async fn end(self) -> Stage {
        self.end.send(()).unwrap();
        in_time(self.serving).await.unwrap();
        self.stage.engine.close().await;
        self.stage
    }
}

/// A client with connections of its own.
pub(crate) fn client() -> reqwest::Client {
    // The authorities of the system are read for nobody: it takes its time.
    static TLS: std::sync::LazyLock<rustls::ClientConfig> = std::sync::LazyLock::new(|| {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth()
    });
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(TLS.clone()).build().unwrap()
}

pub(crate) async fn send(request: reqwest::RequestBuilder) -> Reply {
    let response = in_time(request.send()).await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Reply::new(status, headers, in_time(response.bytes()).await.unwrap())
}
