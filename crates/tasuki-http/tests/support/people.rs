// SPDX-License-Identifier: Apache-2.0
//! People on a closed stage: clients that show who they are, by a key or by a token, and requests
//! as an attacker may alter them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};
use tasuki_core::Position;
use tasuki_core::identity::{self, SecretKey, digest, message, statement};
use tasuki_core::ids::KeyId;
use tasuki_core::registry::rules::Rule;
use tasuki_store::Clock;

use super::{Held, Reply, Stage, contract, merged, offer, text};

/// For how long the requests of clients count, in seconds.
const VALIDITY_S: i64 = 30;

static COUNT: AtomicU64 = AtomicU64::new(1);

fn count() -> u64 {
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// A key that nobody else has.
pub(crate) fn new_key() -> SecretKey {
    let mut seed = [0x5e; 32];
    seed[..8].copy_from_slice(&count().to_be_bytes());
    SecretKey::from_seed(seed)
}

/// The key of every broker that asks who somebody is, unless a story gives it another.
pub(crate) fn broker_key() -> SecretKey {
    SecretKey::from_seed([0xb0; 32])
}

/// A text that was never used before.
pub(crate) fn new_nonce() -> String {
    format!("nonce-{:016}", count())
}

/// The proof that an agent can sign with a key. Its tenant is no part of it.
pub(crate) fn possession(key: &SecretKey, agent: &str) -> String {
    let name = agent.rsplit('/').next().unwrap();
    let public = key.public();
    key.sign(&statement::statement("enroll", &[name.as_bytes(), public.as_bytes()])).to_string()
}

/// Joins with a token, as somebody that is not known yet.
pub(crate) async fn join(who: &Client, token: &str, change: Value) -> Reply {
    let key = who.key();
    let body = json!({
        "token": token, "agent_id": who.name, "key": key.public(),
        "proof": possession(key, &who.name),
    });
    who.stage.post("/v1/join", merged(body, change)).await
}

/// A name as a part of a path.
pub(crate) fn segment(name: &str) -> String {
    name.replace('/', "%2F")
}

/// Rules that allow this everywhere.
pub(crate) fn may(permissions: &[&str]) -> Value {
    if permissions.is_empty() { json!([]) } else { towards(permissions, &["*"]) }
}

/// Rules that allow this towards some targets.
pub(crate) fn towards(permissions: &[&str], targets: &[&str]) -> Value {
    json!([{ "permissions": permissions, "targets": targets }])
}

pub(crate) fn everything() -> Value {
    json!([Rule::everything()])
}

/// A request before it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) method: &'static str,
    /// With the query.
    pub(crate) path: String,
    pub(crate) host: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Draft {
    pub(crate) fn get(path: &str) -> Self {
        let (path, host) = (path.to_owned(), "localhost");
        Self { method: "GET", path, host, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn post(path: &str, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self { method: "POST", body, ..Self::get(path) }
    }

    /// A request with any method; without a body where there is none to send.
    pub(crate) fn of(method: &str, path: &str, body: &Value) -> Self {
        match method {
            "get" => Self::get(path),
            "put" => Self { method: "PUT", ..Self::post(path, body) },
            "patch" => Self { method: "PATCH", ..Self::post(path, body) },
            "delete" => Self { method: "DELETE", ..Self::post(path, body) },
            _ => Self::post(path, body),
        }
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.with("authorization", format!("Bearer {token}"))
    }

    /// Signs it as it is now.
    pub(crate) fn signed(self, key: &SecretKey, created_s: i64, nonce: &str) -> Self {
        self.signed_for(key, created_s, nonce, Some(broker_key().public().id()))
    }

    /// Signs it for the broker with this key, or for whichever it comes to.
    pub(crate) fn signed_for(
        self,
        key: &SecretKey,
        created_s: i64,
        nonce: &str,
        audience: Option<KeyId>,
    ) -> Self {
        let digest = (!self.body.is_empty()).then(|| digest::of(&self.body));
        let (path, query) = match self.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*self.path, None),
        };
        let request = identity::Request {
            method: self.method,
            authority: &message::authority(self.host, 80),
            path,
            query,
            content_digest: digest.as_deref(),
        };
        let expires_s = created_s + VALIDITY_S;
        let signed = message::sign(&request, key, created_s, expires_s, nonce, audience);
        let (input, signature) = signed.unwrap();
        let draft = self.with("signature-input", input).with("signature", signature);
        match digest {
            Some(digest) => draft.with("content-digest", digest),
            None => draft,
        }
    }

    /// With a header in the place of the one that was there.
    pub(crate) fn with(self, name: &'static str, value: impl Into<String>) -> Self {
        self.without(name).and(name, value)
    }

    /// With one more header.
    pub(crate) fn and(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    pub(crate) fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(known, _)| *known == name);
        found.expect("the header is there").1.clone()
    }

    /// As a client of HTTP sends it.
    pub(crate) fn request(&self) -> Request<Body> {
        let mut request = Request::builder().method(self.method).uri(&self.path);
        request = request.header(header::HOST, self.host);
        if !self.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
            request = request.header(header::CONTENT_LENGTH, self.body.len());
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.body(Body::from(self.body.clone())).unwrap()
    }
}

/// Somebody with a name and a way to show it.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) stage: Stage,
    pub(crate) name: String,
    shows: Shows,
}

#[derive(Clone)]
enum Shows {
    Key(Arc<SecretKey>),
    Token(String),
}

impl Stage {
    /// The first administrator of a closed stage.
    pub(crate) async fn administrator(&self) -> Client {
        let token = self.engine.first_administrator().await.unwrap();
        let shows = Shows::Token(token.expect("there is none yet"));
        Client { stage: self.clone(), name: "admin".into(), shows }
    }

    pub(crate) async fn send(&self, draft: &Draft) -> Reply {
        self.call(draft.request()).await
    }

    pub(crate) fn now_s(&self) -> i64 {
        self.clock.now().0.div_euclid(1000)
    }

    /// What was written into the log after a position.
    pub(crate) async fn log_after(&self, head: Position) -> Vec<Value> {
        let entries = self.engine.events(head, 1000).await.unwrap();
        entries.iter().map(|entry| serde_json::from_str(&entry.encoded).unwrap()).collect()
    }

    /// Nothing was written after a position, but that somebody was refused.
    pub(crate) async fn unmoved_since(&self, head: Position) {
        let mut log = self.log_after(head).await;
        log.retain(|record| record["change"] != "access_denied");
        assert!(log.is_empty(), "{log:?}");
    }
}

impl Client {
    /// Somebody of this name with this key, enrolled or not.
    pub(crate) fn with_key(&self, name: &str, key: SecretKey) -> Self {
        let shows = Shows::Key(Arc::new(key));
        Self { stage: self.stage.clone(), name: name.into(), shows }
    }

    /// Somebody of this name with this token.
    pub(crate) fn with_token(&self, name: &str, token: &str) -> Self {
        let shows = Shows::Token(token.into());
        Self { stage: self.stage.clone(), name: name.into(), shows }
    }

    /// The same one on a stage that was opened again.
    pub(crate) fn on(&self, stage: &Stage) -> Self {
        Self { stage: stage.clone(), ..self.clone() }
    }

    pub(crate) fn key(&self) -> &SecretKey {
        match &self.shows {
            Shows::Key(key) => key,
            Shows::Token(_) => panic!("{} has a token and no key", self.name),
        }
    }

    pub(crate) fn key_id(&self) -> String {
        self.key().public().id().to_string()
    }

    /// A request that shows who it is from.
    pub(crate) fn shown(&self, draft: Draft) -> Draft {
        match &self.shows {
            Shows::Key(key) => {
                let audience = self.stage.engine.broker_key().map(|key| key.id());
                draft.signed_for(key, self.stage.now_s(), &new_nonce(), audience)
            }
            Shows::Token(token) => draft.bearer(token),
        }
    }

    pub(crate) fn getting(&self, path: &str) -> Draft {
        self.shown(Draft::get(path))
    }

    pub(crate) fn posting(&self, path: &str, body: &Value) -> Draft {
        self.shown(Draft::post(path, body))
    }

    /// Sends a request with any method.
    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> Reply {
        self.stage.send(&self.shown(Draft::of(method, path, &body))).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.stage.send(&self.getting(path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        let reply = self.stage.send(&self.posting(path, &body)).await;
        if reply.status < 300 {
            contract::check_request(path, &body);
        }
        reply
    }

    /// Enrolls somebody by the word of this administrator.
    pub(crate) async fn enroll(&self, name: &str, rules: Value) -> Self {
        let key = new_key();
        let body = json!({ "key": key.public(), "rules": rules });
        self.post(&format!("/v1/agents/{}/keys", segment(name)), body).await.done();
        self.with_key(name, key)
    }

    /// Publishes a manifest of its own with these capabilities.
    pub(crate) async fn declares(&self, capabilities: &[&str]) {
        let named: Vec<_> = capabilities.iter().map(|name| json!({ "name": name })).collect();
        self.publish(json!({ "agent_id": self.name, "capabilities": named })).await.done();
    }

    /// Publishes a manifest with its own signature.
    pub(crate) async fn publish(&self, manifest: Value) -> Reply {
        let hash = tasuki_core::Body::of(&manifest).hash;
        let signature = self.key().sign(&statement::manifest(hash));
        let signed = json!({ "key_id": self.key_id(), "signature": signature });
        self.post("/v1/agents", json!({ "manifest": manifest, "signed": signed })).await
    }

    pub(crate) async fn set_rules(&self, name: &str, rules: Value) {
        let path = format!("/v1/agents/{}/rules", segment(name));
        self.post(&path, json!({ "rules": rules })).await.done();
    }

    /// Issues a token. Returns its id and its text.
    pub(crate) async fn token(&self, purpose: &str, agent: &str, rules: Value) -> (String, String) {
        let body = json!({ "purpose": purpose, "agent_id": agent, "rules": rules });
        let issued = self.post("/v1/tokens", body).await.done();
        (text(&issued["token_id"]), text(&issued["text"]))
    }

    /// An offer of its own; the story may change it.
    pub(crate) fn offering(&self, to: &str, change: Value) -> Value {
        merged(offer(to, json!({ "from_agent": self.name })), change)
    }

    pub(crate) async fn offer(&self, to: &str, change: Value) -> String {
        let offered = self.post("/v1/handoffs", self.offering(to, change)).await.done();
        text(&offered["handoff_id"])
    }

    pub(crate) async fn claim_one(&self, handoff: &str) -> Reply {
        let path = format!("/v1/handoffs/{handoff}/claim");
        self.post(&path, json!({ "agent": self.name })).await
    }

    pub(crate) async fn claimed(&self, handoff: &str) -> Held {
        Held::of(&self.claim_one(handoff).await.done())
    }

    pub(crate) async fn act(&self, held: &Held, act: &str, more: Value) -> Reply {
        self.post(&format!("/v1/handoffs/{}/{act}", held.handoff), held.with(more)).await
    }

    pub(crate) async fn completed(&self, held: &Held) -> Value {
        self.act(held, "complete", json!({ "payload": { "type": "done" } })).await.done()
    }

    pub(crate) async fn state_of(&self, handoff: &str) -> String {
        text(&self.get(&format!("/v1/handoffs/{handoff}")).await.done()["state"])
    }
}
