// SPDX-License-Identifier: Apache-2.0
//! What no broker should be sent: each is refused clearly, nothing is stored, and the next
//! request is answered.

use axum::body::Body;
use axum::http::{Request, header};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tasuki_http::Limits;

use crate::support::{Held, Reply, Stage, merged, offer, post, text};

/// Sends something that must be refused, and looks whether it left anything behind.
async fn refused(stage: &Stage, request: Request<Body>, status: u16, code: &str) -> Value {
    let before = (stage.store.head(), stage.store.stats().live_handoffs);
    let problem = stage.call(request).await.refused(status, code);
    assert_eq!((stage.store.head(), stage.store.stats().live_handoffs), before);
    stage.get("/healthz").await.done();
    problem
}

async fn refused_offer(stage: &Stage, body: impl Into<Body>, code: &str) -> String {
    text(&refused(stage, post("/v1/handoffs", body), 400, code).await["message"])
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let stage = Stage::volatile().await;
    let good = offer("coder", json!({})).to_string();
    let bodies: [Vec<u8>; 12] = [
        b"".to_vec(),
        b"hello".to_vec(),
        b"{".to_vec(),
        good.as_bytes()[..good.len() - 1].to_vec(),
        format!("{good}{good}").into_bytes(),
        format!("{good}x").into_bytes(),
        good.replace("planner", "pl\u{0}anner").into_bytes(),
        [good.as_bytes(), b"\0"].concat(),
        b"\xff\xfe\x00".to_vec(),
        [b"\xef\xbb\xbf", good.as_bytes()].concat(),
        good.replace("\"request\"", "\"\\ud800\"").into_bytes(),
        good.replace("\"request\"", "NaN").into_bytes(),
    ];
    for body in bodies {
        refused_offer(&stage, body, "invalid_json").await;
    }
    let mut bytes = good.replace("request", "requ?st").into_bytes();
    let place = bytes.iter().position(|byte| *byte == b'?').unwrap();
    bytes[place] = 0xff;
    let message = refused_offer(&stage, bytes, "invalid_json").await;
    assert!(message.contains("line 1 column"), "{message}");
    stage.post_bytes("/v1/handoffs", good).await.done();
}

#[tokio::test]
async fn what_canonical_json_cannot_tell_apart_is_refused() {
    let stage = Stage::volatile().await;
    let good = offer("coder", json!({})).to_string();
    for twice in [
        good.replacen('{', "{\"from_agent\":\"other\",", 1),
        good.replace("\"type\":", "\"type\":\"x\",\"type\":"),
        good.replace("\"type\":", "\"deep\":[[{\"a\":1,\"a\":1}]],\"type\":"),
        good.replace("\"type\":", "\"ty\\u0070e\":\"x\",\"type\":"),
    ] {
        let message = refused_offer(&stage, twice, "invalid_json").await;
        assert!(message.contains("duplicate key"), "{message}");
    }
    for number in
        ["9007199254740993", "-9007199254740992", "1e300", "123456789012345678901", "1e999"]
    {
        let body = good.replace("\"type\":", &format!("\"n\":{number},\"type\":"));
        refused_offer(&stage, body, "invalid_json").await;
    }
}

#[tokio::test]
async fn deep_nesting_is_refused_before_it_hurts() {
    let stage = Stage::volatile().await;
    for depth in [65, 1000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let message = refused_offer(&stage, deep.clone(), "invalid_json").await;
            assert!(message.contains("nested deeper"), "{message}");
            let good = offer("coder", json!({})).to_string();
            let inside = good.replace("\"type\":", &format!("\"x\":{deep},\"type\":"));
            refused_offer(&stage, inside, "invalid_json").await;
        }
        refused_offer(&stage, "[".repeat(depth), "invalid_json").await;
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused() {
    let stage = Stage::volatile().await;
    let large = |bytes: usize| offer("coder", json!({ "metadata": { "x": "x".repeat(bytes) } }));
    let max = Limits::default().body_bytes_max;
    let room = max - large(0).to_string().len();
    stage.post("/v1/handoffs", large(room)).await.done();
    let request = || post("/v1/handoffs", large(room + 1).to_string());
    let problem = refused(&stage, request(), 413, "body_too_large").await;
    assert_eq!(problem["details"]["body_bytes_max"], max);
    // A body without a length, that would never end.
    let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 65_536]));
    let endless = post("/v1/handoffs", Body::from_stream(endless));
    refused(&stage, endless, 413, "body_too_large").await;
    for (change, field) in [
        (json!({ "intent": "x".repeat(64 * 1024 + 1) }), "intent"),
        (json!({ "idempotency_key": "k".repeat(257) }), "idempotency_key"),
        (json!({ "from_agent": "a".repeat(129) }), "from_agent"),
    ] {
        let request = post("/v1/handoffs", offer("coder", change).to_string());
        let problem = refused(&stage, request, 400, "invalid_request").await;
        assert_eq!(problem["details"]["field"], field);
    }
}

#[tokio::test]
async fn a_field_that_is_not_what_it_must_be_is_named() {
    let stage = Stage::volatile().await;
    let cases = [
        (json!({ "payload": "do it" }), "payload"),
        (json!({ "payload": { "text": "no type" } }), "payload"),
        (json!({ "payload": { "type": "" } }), "payload"),
        (json!({ "payload": { "type": "a\u{1b}[31m" } }), "payload"),
        (json!({ "payload": [] }), "payload"),
        (json!({ "payload": null }), "body"),
        (json!({ "to": "coder" }), "to"),
        (json!({ "to": {} }), "to"),
        (json!({ "to": { "agent": "a", "capability": "b" } }), "to"),
        (json!({ "to": { "agent": "a b" } }), "to.agent"),
        (json!({ "to": { "agent": 7 } }), "to.agent"),
        (json!({ "from_agent": "pl\u{7f}anner" }), "from_agent"),
        (json!({ "from_agent": "pl\nanner" }), "from_agent"),
        (json!({ "from_agent": "plänner" }), "from_agent"),
        (json!({ "from_agent": "" }), "from_agent"),
        (json!({ "from_agent": ["planner"] }), "from_agent"),
        (json!({ "correlation_id": "a\u{0}b" }), "correlation_id"),
        (json!({ "idempotency_key": "a\u{9b}b" }), "idempotency_key"),
        (json!({ "ordering_key": "" }), "ordering_key"),
        (json!({ "priority": -1 }), "priority"),
        (json!({ "priority": 256 }), "priority"),
        (json!({ "priority": 1.5 }), "priority"),
        (json!({ "expires_in_ms": "1" }), "expires_in_ms"),
        (json!({ "expires_in_ms": 0 }), "expires_in_ms"),
        (json!({ "deadline": "tomorrow" }), "deadline"),
        (json!({ "deadline": 1_800_000_000 }), "deadline"),
        (json!({ "needs_approval": "yes" }), "needs_approval"),
        (json!({ "control": "kept" }), "control"),
        (json!({ "metadata": [] }), "metadata"),
        (json!({ "terms": { "lease": 1 } }), "terms.lease"),
        (json!({ "task_id": "task_7" }), "task_id"),
        (json!({ "intent": null }), "intent"),
        (json!({ "intent": " \n\t" }), "intent"),
        (json!({ "intent": 7 }), "intent"),
        (json!({ "urgent": true }), "urgent"),
    ];
    let mut wrong = Vec::new();
    for (change, field) in cases {
        let body = offer("coder", change.clone()).to_string();
        let problem = refused(&stage, post("/v1/handoffs", body), 400, "invalid_request").await;
        if problem["details"]["field"] != field {
            wrong.push(format!("{change} names {}, not {field}", problem["details"]["field"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for body in ["[]", "7", "null", "\"offer\"", "true"] {
        refused_offer(&stage, body, "invalid_request").await;
    }
}

#[tokio::test]
async fn terms_out_of_range_are_refused() {
    let stage = Stage::volatile().await;
    for change in [
        json!({ "terms": { "lease_ms": 99 } }),
        json!({ "terms": { "lease_ms": 9_007_199_254_740_991_u64 } }),
        json!({ "terms": { "attempts": 0 } }),
        json!({ "terms": { "losses": 101 } }),
        json!({ "priority": 10 }),
        json!({ "start_in_ms": 9_007_199_254_740_991_u64 }),
    ] {
        let body = offer("coder", change).to_string();
        refused(&stage, post("/v1/handoffs", body), 422, "invalid_terms").await;
    }
}

#[tokio::test]
async fn only_json_is_taken_for_json() {
    let stage = Stage::volatile().await;
    let body = || offer("coder", json!({})).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "", "json", "application/jsonl"]
    {
        let request = Request::post("/v1/handoffs").header(header::CONTENT_TYPE, kind);
        let request = request.body(Body::from(body())).unwrap();
        refused(&stage, request, 415, "unsupported_media_type").await;
    }
    let without = Request::post("/v1/handoffs").body(Body::from(body())).unwrap();
    refused(&stage, without, 415, "unsupported_media_type").await;
    let request = post("/v1/handoffs", vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    refused(&stage, request, 400, "invalid_json").await;
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        let request = Request::post("/v1/handoffs").header(header::CONTENT_TYPE, kind);
        stage.call(request.body(Body::from(body())).unwrap()).await.done();
    }
}

#[tokio::test]
async fn an_id_that_is_none_is_refused_wherever_it_stands() {
    let stage = Stage::volatile().await;
    let long = "x".repeat(5000);
    for id in [
        "7",
        "task_00000000000000000000000007",
        "handoff_0000000000000000000000000u",
        "handoff_80000000000000000000000000",
        "HANDOFF_00000000000000000000000007",
        "%00",
        "%ff%fe",
        "..%2f..",
        "handoff_%E2%80%AE0000000000000000000000000",
        &long,
    ] {
        let get = |path: String| Request::get(path).body(Body::empty()).unwrap();
        refused(&stage, get(format!("/v1/handoffs/{id}")), 400, "invalid_request").await;
        refused(&stage, get(format!("/v1/dead-letters/{id}")), 400, "invalid_request").await;
        let claim = json!({ "agent": "coder" }).to_string();
        let request = post(&format!("/v1/handoffs/{id}/claim"), claim);
        refused(&stage, request, 400, "invalid_request").await;
    }
    let get = Request::get("/v1/tasks/handoff_00000000000000000000000007");
    refused(&stage, get.body(Body::empty()).unwrap(), 400, "invalid_request").await;
}

#[tokio::test]
async fn a_name_that_is_none_is_refused_wherever_it_stands() {
    let stage = Stage::volatile().await;
    let key = "key_00000000000000000000000007";
    for name in ["%00", "%ff%fe", "a%20b", "..%2f..", "acme%2F", "%2Fa", "default%2Fcoder"] {
        let get = Request::get(format!("/v1/agents/{name}")).body(Body::empty()).unwrap();
        refused(&stage, get, 400, "invalid_request").await;
        for path in [
            format!("/v1/agents/{name}/drain"),
            format!("/v1/agents/{name}/keys/{key}/revoke"),
            format!("/v1/agents/coder/keys/{name}/revoke"),
            format!("/v1/tokens/{name}/revoke"),
            format!("/v1/tenants/{name}"),
        ] {
            refused(&stage, post(&path, "{}"), 400, "invalid_request").await;
        }
    }
}

#[tokio::test]
async fn the_chain_of_the_store_itself_is_nobodys_task() {
    let stage = Stage::volatile().await;
    let store = "task_00000000000000000000000000";
    let steps = [
        ("/v1/handoffs".to_owned(), offer("coder", json!({ "task_id": store, "intent": null }))),
        (
            "/v1/tasks".into(),
            json!({ "from_agent": "planner", "intent": "x", "parent_task_id": store }),
        ),
        (format!("/v1/tasks/{store}/cancel"), json!({ "by": "planner" })),
    ];
    for (path, body) in steps {
        refused(&stage, post(&path, body.to_string()), 404, "task_not_found").await;
    }
}

#[tokio::test]
async fn nobody_speaks_in_the_brokers_name() {
    let stage = Stage::volatile().await;
    let steps = [
        ("/v1/handoffs", offer("coder", json!({ "from_agent": "broker" }))),
        ("/v1/tasks", json!({ "from_agent": "broker", "intent": "x" })),
        ("/v1/claims", json!({ "agent": "broker" })),
    ];
    for (path, body) in steps {
        refused(&stage, post(path, body.to_string()), 403, "not_permitted").await;
    }
}

#[tokio::test]
async fn a_holder_that_sends_nonsense_keeps_its_claim() {
    let stage = Stage::volatile().await;
    let id = stage.offer("coder", json!({})).await;
    let held = stage.claimed(&id, "coder").await;
    let send = async |act: &str, body: Value| {
        let request = post(&format!("/v1/handoffs/{id}/{act}"), body.to_string());
        refused(&stage, request, 400, "invalid_request").await;
    };
    send("start", json!({})).await;
    send("start", json!({ "claim_id": held.claim_id })).await;
    send("start", held.with(json!({ "fence": "1" }))).await;
    send("start", held.with(json!({ "fence": -1 }))).await;
    send("start", held.with(json!({ "claim_id": "claim_7" }))).await;
    send("start", held.with(json!({ "agent": "coder" }))).await;
    send("progress", held.with(json!({ "percent": 101 }))).await;
    send("progress", held.with(json!({ "note": "x".repeat(16 * 1024 + 1) }))).await;
    send("complete", held.with(json!({ "payload": "done" }))).await;
    send("complete", held.with(json!({}))).await;
    let fail = merged(crate::support::failure("permanent"), json!({}));
    send("fail", held.with(merged(fail.clone(), json!({ "class": "fatal" })))).await;
    send("fail", held.with(merged(fail.clone(), json!({ "type": "" })))).await;
    send("fail", held.with(merged(fail, json!({ "message": "x".repeat(16 * 1024 + 1) })))).await;
    assert_eq!(stage.is(&id).await.0, "claimed");
    stage.completed(&held).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_in_time_is_given_up() {
    let stage = Stage::volatile().await;
    let some = stream::iter([Ok::<_, std::io::Error>("{\"from_agent\":")]);
    let slow = post("/v1/handoffs", Body::from_stream(some.chain(stream::pending())));
    let problem = stage.call(slow).await.refused(408, "request_timeout");
    assert_eq!((stage.store.head().0, &problem["retryable"]), (0, &json!(true)));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused() {
    let stage = Stage::volatile().await;
    let good = offer("coder", json!({})).to_string();
    let pieces = [Ok(good), Err(std::io::Error::other("the line is dead"))];
    let request = post("/v1/handoffs", Body::from_stream(stream::iter(pieces)));
    refused(&stage, request, 400, "invalid_request").await;
}

#[tokio::test]
async fn hostile_text_travels_as_it_is_and_breaks_nothing() {
    let stage = Stage::volatile().await;
    let nasty = "'; DROP TABLE handoff; --\u{0}\u{1b}[2J\u{202e}</script>{{7*7}}\r\nSet-Cookie: a";
    let change = json!({
        "intent": nasty, "idempotency_key": "'; DROP TABLE event; --", "correlation_id": "%00\\",
        "payload": { "type": "x", nasty: nasty }, "metadata": { nasty: [nasty] },
    });
    let id = stage.offer("coder", change).await;
    let claimed = stage.claim_one(&id, "coder").await.done();
    assert_eq!(claimed["envelope"]["intent"], nasty);
    assert_eq!(claimed["envelope"]["payload"][nasty], nasty);
    let held = Held::of(&claimed);
    let failure = json!({ "class": "permanent", "type": nasty, "message": nasty, "hint": nasty });
    let moved: Reply = stage.act(&held, "fail", failure).await;
    moved.done();
    let letter = stage.get(&format!("/v1/dead-letters/{id}")).await.done();
    assert_eq!(letter["reports"][0]["report"]["message"], nasty);
    assert_eq!(stage.get("/v1/audit/verify").await.done()["intact"], true);
}
