// SPDX-License-Identifier: Apache-2.0
//! Random and randomly altered requests on every route that takes a body: whatever comes, the
//! answer is a reply or a clear refusal, never a failure of the broker.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::contract;
use crate::samples::{Samples, samples};
use crate::support::Stage;

struct Fuzz {
    runtime: Runtime,
    stage: Stage,
    samples: Samples,
}

impl Fuzz {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (stage, samples) = runtime.block_on(async {
            let stage = Stage::volatile().await;
            let samples = samples(&stage).await;
            (stage, samples)
        });
        Self { runtime, stage, samples }
    }

    /// Every route that takes a body, with one that it takes.
    fn bodies(&self) -> Vec<(String, Value)> {
        let bodies = contract::posts().into_iter();
        bodies.map(|path| (self.samples.path(&path), self.samples.body(&path))).collect()
    }

    /// The stage itself checks that the reply is as documented.
    fn send(&self, path: &str, body: Vec<u8>) -> Result<(), TestCaseError> {
        let shown = String::from_utf8_lossy(&body).into_owned();
        let call = self.stage.post_bytes(path, body);
        let reply = self.runtime.block_on(crate::support::in_time(call));
        prop_assert!(reply.status < 500, "{} {} for {path} {shown}", reply.status, reply.body);
        Ok(())
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn random_bytes_are_refused_and_nothing_is_stored() {
    let fuzz = Fuzz::start();
    let routes: Vec<_> = fuzz.bodies().into_iter().map(|(path, _)| path).collect();
    let head = fuzz.stage.store.head();
    let bytes = prop::collection::vec(any::<u8>(), 0..200);
    let text = "[\\[\\]{}:,\"0-9a-z\\\\ .eE+-]{0,60}".prop_map(String::into_bytes);
    proptest!(config(1500), |(path in select(routes), body in prop_oneof![bytes, text])| {
        fuzz.send(&path, body)?;
    });
    assert_eq!(fuzz.stage.store.head(), head);
}

/// Values that programs stumble over.
fn nasty() -> impl Strategy<Value = Value> {
    let numbers = select(vec![
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e-320),
        json!(9_007_199_254_740_991_u64),
        json!(-9_007_199_254_740_991_i64),
        json!(255),
        json!(256),
        json!(4_294_967_296_u64),
    ]);
    let texts = select(vec![
        "",
        " ",
        "\0",
        "\u{202e}",
        "\u{1F980}",
        "9999-12-31T23:59:59Z",
        "-009999-01-01T00:00:00Z",
        "2030-01-01T00:00:00+23:59",
        "handoff_00000000000000000000000000",
        "claim_",
        "agent",
        "task_00000000000000000000000000",
        "task_7zzzzzzzzzzzzzzzzzzzzzzzzz",
        "awaited",
        "settled",
        "acme/coder",
        "default/coder",
        "key_00000000000000000000000000",
        "ed25519:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ]);
    let others =
        select(vec![Value::Null, json!(true), json!([]), json!({}), json!([[]]), json!({"": 0})]);
    prop_oneof![numbers, texts.prop_map(Value::from), others, "\\PC{0,40}".prop_map(Value::from)]
}

/// Puts a value in the place of another, wherever that is in a body.
fn replace(body: &mut Value, at: &Index, with: Value) {
    fn places(value: &Value, path: &str, found: &mut Vec<String>) {
        found.push(path.to_owned());
        match value {
            Value::Object(members) => members
                .iter()
                .for_each(|(name, member)| places(member, &format!("{path}/{name}"), found)),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(index, item)| places(item, &format!("{path}/{index}"), found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    places(body, "", &mut found);
    if let Some(place) = body.pointer_mut(&found[at.index(found.len())]) {
        *place = with;
    }
}

#[test]
fn altered_requests_get_a_reply_or_a_refusal() {
    let fuzz = Fuzz::start();
    let changes = prop::collection::vec((any::<Index>(), nasty()), 1..4);
    proptest!(config(1500), |((path, body) in select(fuzz.bodies()), changes in changes)| {
        let mut body = body;
        for (at, with) in changes {
            replace(&mut body, &at, with);
        }
        fuzz.send(&path, body.to_string().into_bytes())?;
    });
}

#[test]
fn requests_with_altered_bytes_get_a_reply_or_a_refusal() {
    let fuzz = Fuzz::start();
    let edits = prop::collection::vec((any::<Index>(), any::<u8>(), 0..3_u8), 1..4);
    proptest!(config(1500), |((path, body) in select(fuzz.bodies()), edits in edits)| {
        let mut body = body.to_string().into_bytes();
        for (at, byte, edit) in edits {
            let at = at.index(body.len().max(1));
            match edit {
                0 if at < body.len() => body[at] = byte,
                1 if at < body.len() => drop(body.remove(at)),
                _ => body.insert(at.min(body.len()), byte),
            }
        }
        fuzz.send(&path, body)?;
    });
}

#[test]
fn random_paths_and_queries_get_a_reply_or_a_refusal() {
    let fuzz = Fuzz::start();
    let paths = select(vec![
        "/v1/handoffs",
        "/v1/tasks",
        "/v1/dead-letters",
        "/v1/agents",
        "/v1/tokens",
        "/v1/tenants",
        "/v1/audit/export",
        "/docs/errors",
    ]);
    let tails = "(/[a-z0-9%_~.-]{0,30}){0,3}(\\?[a-z_=&%0-9+]{0,40})?";
    proptest!(config(1000), |(path in paths, tail in tails)| {
        // A percent sign that encodes nothing is fine in a path, as far as HTTP goes.
        let path = format!("{path}{tail}");
        if let Ok(request) = axum::http::Request::get(&path).body(axum::body::Body::empty()) {
            let reply = fuzz.runtime.block_on(fuzz.stage.call(request));
            prop_assert!(reply.status < 500, "{} for {path}", reply.status);
        }
    });
}
