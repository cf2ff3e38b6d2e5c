// SPDX-License-Identifier: Apache-2.0
//! A stage: a store, an engine, this door and the HTTP door that workers use, and a clock that stands
//! still until it is moved.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, header};
use futures::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tasuki_core::Timestamp;
use tasuki_core::address::Guard;
use tasuki_core::identity::SecretKey;
use tasuki_engine::{Engine, Message, Messenger, Pusher, Settings, SystemIds};
use tasuki_front::{Front, Limits, around};
use tasuki_store::{
    Clock, ManualClock, Postgres, PostgresOptions, Sqlite, SqliteOptions, Store, Sync,
};
use tokio::sync::{Mutex, mpsc};

/// A safety net only: no story waits for time to pass.
const PATIENCE: Duration = Duration::from_secs(60);
const BEGIN: Timestamp = Timestamp(1_800_000_000_000);

#[derive(Clone, Copy)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

/// Plays each story on each store.
macro_rules! on_both_stores {
    ($($story:ident)+) => {
        mod sqlite {
            crate::stage::on_both_stores!(@ Sqlite: $($story)+);
        }
        mod postgres {
            crate::stage::on_both_stores!(@ Postgres: $($story)+);
        }
    };
    (@ $backend:ident: $($story:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                let stage = crate::stage::Stage::open(crate::stage::Backend::$backend).await;
                crate::stage::in_time(super::$story(stage)).await;
            }
        )+
    };
}
pub(crate) use on_both_stores;

pub(crate) async fn in_time<T>(story: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, Box::pin(story)).await.expect("the story ends")
}

#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
    pub(crate) engine: Arc<Engine>,
    router: Router,
    backend: Backend,
    settings: Settings,
    dir: Arc<tempfile::TempDir>,
    pub(crate) hook: Arc<Hook>,
}

/// Whoever is told by the broker, wherever that is.
pub(crate) struct Hook {
    tell: mpsc::UnboundedSender<Message>,
    heard: Mutex<mpsc::UnboundedReceiver<Message>>,
    /// How often it does not take what it is told.
    pub(crate) refuses: AtomicU32,
}

impl Default for Hook {
    fn default() -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        Self { tell, heard: Mutex::new(heard), refuses: AtomicU32::new(0) }
    }
}

#[async_trait]
impl Messenger for Hook {
    async fn send(&self, message: Message) -> Result<(), String> {
        let _ = self.tell.send(message);
        let refuses = self
            .refuses
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        if refuses.is_ok() { Err("it answered 500".into()) } else { Ok(()) }
    }
}

impl Hook {
    /// The next message that somebody was sent.
    pub(crate) async fn heard(&self) -> (Message, Value) {
        let message = self.heard.lock().await.recv().await.unwrap();
        let body = serde_json::from_slice(&message.body).unwrap();
        (message, body)
    }

    /// Whether nothing was sent that nobody has looked at.
    pub(crate) async fn is_silent(&self) -> bool {
        self.heard.lock().await.is_empty()
    }
}

pub(crate) fn doors(engine: &Arc<Engine>) -> Router {
    let front = Front::new(engine.clone(), Limits::default());
    let routes = tasuki_http::routes().merge(tasuki_a2a::routes());
    around(routes, &front).with_state(front)
}

impl Stage {
    pub(crate) async fn open(backend: Backend) -> Self {
        Self::with(backend, Settings::default()).await
    }

    /// Where everybody has to say who it is.
    pub(crate) async fn closed(backend: Backend) -> Self {
        let signer = Some(Arc::new(SecretKey::from_seed([0xb0; 32])));
        Self::with(backend, Settings { open: false, signer, ..Settings::default() }).await
    }

    async fn with(backend: Backend, settings: Settings) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        let own_key = Some(Arc::new(SecretKey::from_seed([0x0c; 32])));
        // Where tests are at home.
        let guard = Guard::allowing(vec!["127.0.0.0/28".parse().unwrap()]);
        let settings = Settings { own_key, guard, ..settings };
        Self::start(backend, dir, ManualClock::at(BEGIN), settings, Arc::default()).await
    }

    async fn start(
        backend: Backend,
        dir: Arc<tempfile::TempDir>,
        clock: Arc<ManualClock>,
        settings: Settings,
        hook: Arc<Hook>,
    ) -> Self {
        let store: Arc<dyn Store> = match backend {
            Backend::Sqlite => {
                let options = SqliteOptions { dir: dir.path().to_owned(), sync: Sync::Full };
                Arc::new(Sqlite::open(options, clock.clone()).await.unwrap())
            }
            Backend::Postgres => Arc::new(postgres(dir.path(), clock.clone()).await),
        };
        let engine = Engine::start(store.clone(), Arc::new(SystemIds), settings.clone());
        let router = doors(&engine);
        tasuki_a2a::start_pushes(&Pusher::new(engine.clone(), hook.clone()));
        Self { clock, store, engine, router, backend, settings, dir, hook }
    }

    /// Ends the broker and starts it again on the same data.
    pub(crate) async fn restarted(self) -> Self {
        self.engine.close().await;
        let Self { clock, dir, backend, settings, hook, .. } = self;
        Self::start(backend, dir, clock, settings, hook).await
    }

    /// Lets time pass and everything happen that is due by then.
    pub(crate) async fn pass(&self, ms: u64) {
        self.clock.advance_ms(ms);
        let now = self.clock.now();
        let mut due = self.store.next_due();
        due.wait_for(|due| due.is_none_or(|at| at > now)).await.unwrap();
    }

    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    pub(crate) async fn respond(&self, request: Request<Body>) -> Response<Body> {
        use tower::ServiceExt;
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> Reply {
        let (parts, body) = self.respond(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        let response = self.respond(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200);
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.call(posting(path, body)).await
    }

    /// An agent with a manifest that pulls its work.
    pub(crate) async fn registered(&self, agent: &str) {
        let manifest = json!({
            "agent_id": agent,
            "description": format!("{agent} writes code."),
            "capabilities": [{ "name": "code", "description": "Writes code.", "tags": ["rust"] }],
        });
        self.post("/v1/agents", &json!({ "manifest": manifest })).await.done();
    }

    /// A call of JSON-RPC to an agent.
    pub(crate) async fn rpc(&self, agent: &str, method: &str, params: Value) -> Value {
        let reply = self.post(&format!("/agents/{agent}"), &rpc(method, params)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.body["id"], 7);
        reply.body
    }

    /// What such a call is answered.
    pub(crate) async fn ask(&self, agent: &str, method: &str, params: Value) -> Value {
        let body = self.rpc(agent, method, params).await;
        assert!(body.get("error").is_none(), "{method}: {body}");
        body["result"].clone()
    }

    /// Sends a text without waiting for what comes of it.
    pub(crate) async fn send(&self, agent: &str, text: &str) -> Value {
        let params = json!({
            "message": message(text),
            "configuration": { "returnImmediately": true },
        });
        self.ask(agent, "SendMessage", params).await["task"].clone()
    }

    pub(crate) async fn task(&self, agent: &str, id: &Value) -> Value {
        self.ask(agent, "GetTask", json!({ "id": id })).await
    }

    pub(crate) async fn state(&self, agent: &str, id: &Value) -> String {
        self.task(agent, id).await["status"]["state"].as_str().unwrap().to_owned()
    }

    /// What an agent that pulls gets.
    pub(crate) async fn claim(&self, agent: &str) -> Value {
        let asked = json!({ "agent": agent, "max": 1 });
        let claimed = self.post("/v1/claims", &asked).await.done();
        let held = claimed["claims"].as_array().and_then(|held| held.first());
        held.unwrap_or_else(|| panic!("{claimed}")).clone()
    }

    /// A call of a claim's holder.
    pub(crate) async fn act(&self, held: &Value, act: &str, mut more: Value) -> Value {
        more["claim_id"] = held["claim_id"].clone();
        more["fence"] = held["fence"].clone();
        let id = held["handoff_id"].as_str().unwrap();
        self.post(&format!("/v1/handoffs/{id}/{act}"), &more).await.done()
    }

    /// A stream of server-sent events.
    pub(crate) async fn stream(&self, request: Request<Body>) -> Pieces {
        let response = self.respond(request).await;
        assert_eq!(response.status(), 200);
        let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        let body = response.into_body().into_data_stream();
        Pieces { body: Box::pin(body.map(|piece| piece.unwrap().to_vec())), rest: String::new() }
    }
}

pub(crate) struct Pieces {
    body: std::pin::Pin<Box<dyn futures::Stream<Item = Vec<u8>> + Send>>,
    rest: String,
}

impl Pieces {
    /// The next event's id and data, or nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let of = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.map(|text| text.trim().to_owned())
                };
                let found = of("id:").zip(of("data:"));
                self.rest = rest.to_owned();
                match found {
                    Some((id, data)) => return Some((id, serde_json::from_str(&data).unwrap())),
                    None => continue,
                }
            }
            let more = self.body.next().await?;
            self.rest.push_str(std::str::from_utf8(&more).unwrap());
        }
    }

    /// Everything until the end.
    pub(crate) async fn all(mut self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

/// A store on a database of its own, whose URL is kept where others keep their files.
async fn postgres(dir: &Path, clock: Arc<ManualClock>) -> Postgres {
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

pub(crate) fn posting(path: &str, body: &Value) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request.body(Body::from(body.to_string())).unwrap()
}

pub(crate) fn rpc(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

pub(crate) fn message(text: &str) -> Value {
    json!({ "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": text }] })
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    #[track_caller]
    pub(crate) fn done(self) -> Value {
        assert!(matches!(self.status, 200 | 201), "{} {}", self.status, self.body);
        self.body
    }
}
