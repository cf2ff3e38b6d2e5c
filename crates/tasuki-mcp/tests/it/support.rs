// SPDX-License-Identifier: Apache-2.0
//! A stage to play stories on: a store, an engine, both doors around it, a clock that stands still until
//! it is moved, and clients that speak one version of the protocol each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tasuki_core::Timestamp;
use tasuki_core::identity::SecretKey;
use tasuki_engine::{Engine, Settings, SystemIds};
use tasuki_front::{Front, Limits, around};
use tasuki_store::{
    ManualClock, Postgres, PostgresOptions, Sqlite, SqliteOptions, Store, Sync, Volatile,
};
use tower::ServiceExt;

/// A safety net only: no story waits for time to pass.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const BEGIN: Timestamp = Timestamp(1_800_000_000_000);

pub(crate) const LATEST: &str = "2026-07-28";
pub(crate) const VERSIONS: [&str; 4] = [LATEST, "2025-11-25", "2025-06-18", "2025-03-26"];

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Backend {
    Volatile,
    Sqlite,
    Postgres,
}

#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Arc<Engine>,
    router: Router,
    settings: Settings,
    backend: Backend,
    dir: Arc<tempfile::TempDir>,
}

pub(crate) async fn in_time<T>(story: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, Box::pin(story)).await.expect("the story ends")
}

impl Stage {
    pub(crate) async fn open() -> Self {
        Self::on(Backend::Volatile).await
    }

    pub(crate) async fn on(backend: Backend) -> Self {
        Self::with(backend, Settings::default()).await
    }

    /// Where everybody has to say who it is.
    pub(crate) async fn closed() -> Self {
        let signer = Some(Arc::new(SecretKey::from_seed([0xb0; 32])));
        Self::with(Backend::Volatile, Settings { open: false, signer, ..Settings::default() }).await
    }

    async fn with(backend: Backend, settings: Settings) -> Self {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        Self::start(backend, dir, ManualClock::at(BEGIN), settings).await
    }

    async fn start(
        backend: Backend,
        dir: Arc<tempfile::TempDir>,
        clock: Arc<ManualClock>,
        settings: Settings,
    ) -> Self {
        let store: Arc<dyn Store> = match backend {
            Backend::Volatile => Arc::new(Volatile::new(clock.clone())),
            Backend::Sqlite => {
                let options = SqliteOptions { dir: dir.path().to_owned(), sync: Sync::Full };
                Arc::new(Sqlite::open(options, clock.clone()).await.unwrap())
            }
            Backend::Postgres => Arc::new(open_postgres(dir.path(), clock.clone()).await),
        };
        let engine = Engine::start(store, Arc::new(SystemIds), settings.clone());
        let front = Front::new(engine.clone(), Limits::default());
        let doors = tasuki_http::routes().merge(tasuki_mcp::routes(&front));
        let router = around(doors, &front).with_state(front);
        Self { clock, engine, router, settings, backend, dir }
    }

    /// Ends the broker and starts it again on the same data.
    pub(crate) async fn restarted(self) -> Self {
        self.engine.close().await;
        let Self { clock, dir, backend, settings, .. } = self;
        Self::start(backend, dir, clock, settings).await
    }

    /// Another broker on the same database.
    pub(crate) async fn beside(&self) -> Self {
        assert!(self.backend == Backend::Postgres, "only a database can be shared");
        let Self { clock, dir, backend, settings, .. } = self.clone();
        Self::start(backend, dir, clock, settings).await
    }

    /// A client of the newest version that speaks for an agent.
    pub(crate) fn agent(&self, name: &str) -> Client {
        Client {
            stage: self.clone(),
            version: LATEST,
            path: format!("/mcp?agent={name}"),
            token: None,
            capabilities: json!({}),
        }
    }

    /// A client that shows a token of the agent's. The first administrator gives it.
    pub(crate) async fn known(&self, admin: &str, name: &str) -> Client {
        let rules =
            json!([{ "permissions": ["send", "claim", "complete", "read"], "targets": ["*"] }]);
        let mut seed = [7; 32];
        seed[..name.len()].copy_from_slice(name.as_bytes());
        let key = SecretKey::from_seed(seed).public();
        let path = format!("/v1/agents/{}/keys", name.replace('/', "%2F"));
        let enroll = post(&path, &json!({ "key": key, "rules": rules }));
        let body = json!({ "purpose": "bearer", "agent_id": name, "rules": rules });
        let mut reply = None;
        for request in [enroll, post("/v1/tokens", &body)] {
            let (mut parts, body) = request.into_parts();
            parts.headers.insert(header::AUTHORIZATION, format!("Bearer {admin}").parse().unwrap());
            let done = self.send(Request::from_parts(parts, body)).await;
            assert_eq!(done.status, 201, "{}", done.body);
            reply = Some(done);
        }
        let reply = reply.unwrap();
        let token = reply.body["text"].as_str().unwrap().to_owned();
        Client { token: Some(token), path: "/mcp".into(), ..self.agent(name) }
    }

    pub(crate) async fn administrator(&self) -> String {
        self.engine.first_administrator().await.unwrap().expect("there was none yet")
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let body = match kind {
            Some(kind) if kind.starts_with("application/json") => {
                serde_json::from_str(&text).unwrap()
            }
            // The last message of a stream is the answer; before it comes what is told meanwhile.
            Some(kind) if kind.starts_with("text/event-stream") => {
                let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
                let data = data.map(str::trim).filter(|data| !data.is_empty());
                Value::Array(data.map(|data| serde_json::from_str(data).unwrap()).collect())
            }
            _ => Value::String(text),
        };
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// The body of a request that is still being answered.
    pub(crate) async fn stream(&self, request: Request<Body>) -> (u16, Body) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        (response.status().as_u16(), response.into_body())
    }
}

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

pub(crate) fn post(path: &str, body: &Value) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.header(header::ACCEPT, "application/json, text/event-stream");
    let request = request.header(header::HOST, "localhost");
    request.body(Body::from(body.to_string())).unwrap()
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    /// The answer to the request, after whatever was told before it.
    #[track_caller]
    pub(crate) fn answer(self) -> Value {
        match self.body {
            Value::Array(mut messages) => messages.pop().expect("a stream ends with an answer"),
            body => body,
        }
    }

    #[track_caller]
    pub(crate) fn done(self) -> Value {
        let answer = self.answer();
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }
}

/// A client of one version of the protocol.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) stage: Stage,
    pub(crate) version: &'static str,
    pub(crate) path: String,
    pub(crate) token: Option<String>,
    /// What it says that it can do, where each request says so.
    pub(crate) capabilities: Value,
}

static IDS: AtomicU64 = AtomicU64::new(1);

impl Client {
    pub(crate) fn at(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    pub(crate) fn on(mut self, stage: &Stage) -> Self {
        self.stage = stage.clone();
        self
    }

    pub(crate) fn with_tasks(mut self) -> Self {
        self.capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        self
    }

    /// A request as its version wants it.
    pub(crate) fn request(&self, method: &str, mut params: Value) -> Request<Body> {
        if self.version == LATEST {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert(json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.version);
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "story", "version": "1" });
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let name = ["name", "uri", "taskId"].iter().find_map(|name| params[*name].as_str());
        let name = name.map(str::to_owned);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let (mut parts, body) = post(&self.path, &message).into_parts();
        let mut set = |name: &'static str, value: &str| {
            parts.headers.insert(name, value.parse().unwrap());
        };
        if method != "initialize" {
            set("mcp-protocol-version", self.version);
        }
        if self.version == LATEST {
            set("mcp-method", method);
            if let Some(name) = name {
                set("mcp-name", &name);
            }
        }
        if let Some(token) = &self.token {
            set("authorization", &format!("Bearer {token}"));
        }
        Request::from_parts(parts, body)
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Reply {
        self.stage.send(self.request(method, params)).await
    }

    /// Calls a tool; what it says whatever comes of it.
    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments })).await.done()
    }

    /// Calls a tool that must succeed: its answer for programs, which fits what was announced.
    #[track_caller]
    pub(crate) fn call(&self, name: &str, arguments: Value) -> impl Future<Output = Value> {
        let (client, name) = (self.clone(), name.to_owned());
        async move {
            let result = client.tool(&name, arguments).await;
            assert_ne!(result["isError"], json!(true), "{name}: {result}");
            let said = result["structuredContent"].clone();
            announced(&client, &name, &said).await;
            said
        }
    }

    /// Calls a tool that must fail: the code of its error.
    pub(crate) async fn fails(&self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments).await;
        assert_eq!(result["isError"], json!(true), "{name}: {result}");
        assert!(result["structuredContent"].is_null(), "an error is no answer: {result}");
        let problem = &result["_meta"]["tasuki/problem"];
        let code = problem["code"].as_str().unwrap().to_owned();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&code), "a model reads the code: {text}");
        assert!(text.contains("What to do: "), "and what to do: {text}");
        code
    }
}

/// Holds an answer against the schema that the list of tools has for it.
async fn announced(client: &Client, name: &str, said: &Value) {
    let listed = client.ask("tools/list", json!({})).await.done();
    let tools = listed["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
    let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
    let faults: Vec<_> = schema.iter_errors(said).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?}\n{said}");
}

/// Work from the planner for the coder.
pub(crate) fn work() -> Value {
    json!({
        "to": { "agent": "coder" },
        "intent": "Add GET /users/{id}.",
        "constraints": ["do not touch the database"],
        "payload": { "type": "request", "path": "/users/{id}" },
    })
}
