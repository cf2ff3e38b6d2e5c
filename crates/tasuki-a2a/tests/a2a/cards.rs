// SPDX-License-Identifier: Apache-2.0
//! Cards, their signatures, and the catalogue.

use axum::body::Body;
use axum::http::{Request, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tasuki_core::canonical::Body as Canonical;
use tasuki_core::identity::{PublicKey, Signature};

use crate::stage::{Backend, Stage, in_time};

fn asking(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::get(path).header(header::HOST, "127.0.0.1:8787");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

/// No required member may be empty, however little the agent says of itself.
fn is_whole(card: &Value) {
    for member in ["name", "description", "version"] {
        assert!(!card[member].as_str().unwrap().is_empty(), "{member}");
    }
    for member in ["supportedInterfaces", "defaultInputModes", "defaultOutputModes", "skills"] {
        assert!(!card[member].as_array().unwrap().is_empty(), "{member}");
    }
    for skill in card["skills"].as_array().unwrap() {
        for member in ["id", "name", "description"] {
            assert!(!skill[member].as_str().unwrap().is_empty(), "{member}");
        }
        assert!(!skill["tags"].as_array().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_card_says_what_the_manifest_says_and_where_both_versions_are() {
    let stage = Stage::open(Backend::Sqlite).await;
    stage.registered("coder").await;
    let path = "/agents/coder/.well-known/agent-card.json";
    let card = in_time(stage.call(asking(path, &[]))).await;
    let tag = card.headers[header::ETAG].to_str().unwrap().to_owned();
    assert!(card.headers[header::CACHE_CONTROL].to_str().unwrap().contains("max-age"));
    let card = card.done();
    is_whole(&card);
    assert_eq!(card["skills"][0]["id"], "code");
    assert_eq!(card["url"], "http://127.0.0.1:8787/agents/coder");
    assert_eq!(card["supportedInterfaces"][0]["url"], card["url"]);
    let again = stage.call(asking(path, &[("if-none-match", &tag)])).await;
    assert_eq!(again.status, 304);
    let alone = stage.call(asking(path, &[("a2a-version", "1.0")])).await.done();
    assert!(alone.get("url").is_none(), "whoever names today's version gets it alone");

    stage.post("/v1/agents", &json!({ "manifest": { "agent_id": "quiet" } })).await.done();
    let quiet = stage.call(asking("/agents/quiet/.well-known/agent-card.json", &[])).await.done();
    is_whole(&quiet);
    let none = stage.call(asking("/agents/nobody/.well-known/agent-card.json", &[])).await;
    assert_eq!(none.status, 404);
}

#[tokio::test]
async fn the_broker_has_a_card_and_a_catalogue_of_all_it_knows() {
    let stage = Stage::open(Backend::Sqlite).await;
    stage.registered("coder").await;
    let card = in_time(stage.call(asking("/.well-known/agent-card.json", &[]))).await.done();
    is_whole(&card);
    assert_eq!(card["url"], "http://127.0.0.1:8787/a2a");
    let listed = stage.call(asking("/.well-known/ai-catalog.json", &[])).await.done();
    let urls: Vec<_> =
        listed["entries"].as_array().unwrap().iter().map(|it| it["url"].clone()).collect();
    let of = |at: &str| format!("http://127.0.0.1:8787{at}/.well-known/agent-card.json");
    assert_eq!(urls, [of("/a2a"), of("/agents/coder")]);
    for url in urls {
        let path = url.as_str().unwrap().trim_start_matches("http://127.0.0.1:8787").to_owned();
        is_whole(&stage.call(asking(&path, &[])).await.done());
    }
}

#[tokio::test]
async fn a_signed_card_is_checked_by_the_key_that_is_published_and_a_changed_one_is_not() {
    let stage = Stage::closed(Backend::Sqlite).await;
    let today = [("a2a-version", "1.0")];
    let mut card = in_time(stage.call(asking("/.well-known/agent-card.json", &today))).await.done();
    let keys = stage.call(asking("/.well-known/jwks.json", &[])).await.done();
    let signature = card.as_object_mut().unwrap().remove("signatures").unwrap()[0].clone();
    let protected = signature["protected"].as_str().unwrap();
    let head: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(protected).unwrap()).unwrap();
    assert_eq!((&head["alg"], &head["kid"]), (&json!("EdDSA"), &keys["keys"][0]["kid"]));
    assert_eq!(head["jku"], "http://127.0.0.1:8787/.well-known/jwks.json");
    let raw = |text: &Value| URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap();
    let key: [u8; 32] = raw(&keys["keys"][0]["x"]).try_into().unwrap();
    let key = PublicKey::from_bytes(key).unwrap();
    let signature = Signature(raw(&signature["signature"]).try_into().unwrap());
    let verifies = |card: &Value| {
        let payload = URL_SAFE_NO_PAD.encode(Canonical::of(card).text());
        key.verify(format!("{protected}.{payload}").as_bytes(), &signature)
    };
    assert!(verifies(&card));
    card["supportedInterfaces"][0]["url"] = json!("http://elsewhere");
    assert!(!verifies(&card));
}
