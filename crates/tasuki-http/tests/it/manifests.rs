// SPDX-License-Identifier: Apache-2.0
//! What an agent says of itself bears its own signature, once it has a key.

use serde_json::{Value, json};
use tasuki_core::Body;
use tasuki_core::identity::{SecretKey, statement};

use crate::support::{Client, Reply, SECOND, Stage, may, new_key, on_both_stores, possession};

on_both_stores! { closed:
    a_manifest_bears_the_signature_of_its_agent
    a_manifest_without_the_signature_of_its_agent_is_refused
    a_manifest_of_somebody_else_is_refused
    a_key_that_no_longer_counts_signs_no_manifest
    nobody_signs_for_an_agent_that_has_a_key
}

fn manifest(agent: &str, capability: &str) -> Value {
    json!({ "agent_id": agent, "capabilities": [{ "name": capability }] })
}

pub(crate) fn signed(key: &SecretKey, manifest: &Value) -> Value {
    let signature = key.sign(&statement::manifest(Body::of(manifest).hash));
    json!({ "key_id": key.public().id(), "signature": signature })
}

pub(crate) async fn publish(who: &Client, manifest: &Value, signed: Option<Value>) -> Reply {
    let body = match signed {
        Some(signed) => json!({ "manifest": manifest, "signed": signed }),
        None => json!({ "manifest": manifest }),
    };
    who.post("/v1/agents", body).await
}

async fn a_manifest_bears_the_signature_of_its_agent(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&[])).await;
    let one = manifest("coder", "review");
    let published = publish(&coder, &one, Some(signed(coder.key(), &one))).await.done();
    assert_eq!((&published["version"], &published["manifest"]), (&json!(1), &one));
    let shown = admin.get("/v1/agents/coder").await.done();
    assert_eq!(shown["manifest_hash"], json!(Body::of(&one).hash));
    assert_eq!(shown["signed"], signed(coder.key(), &one));
    let two = manifest("coder", "test");
    let body = json!({ "manifest": two, "signed": signed(coder.key(), &two), "version": 0 });
    coder.post("/v1/agents", body).await.refused(409, "manifest_moved");
    publish(&coder, &two, Some(signed(coder.key(), &two))).await.done();
    // Whoever has seen the first one cannot put it back in the agent's place.
    let tester = admin.enroll("tester", may(&["send", "read"])).await;
    let replayed = publish(&tester, &one, Some(signed(coder.key(), &one))).await;
    replayed.refused(403, "not_permitted");
    assert_eq!(admin.get("/v1/agents/coder").await.done()["manifest"], two);
}

async fn a_manifest_without_the_signature_of_its_agent_is_refused(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&[])).await;
    let tester = admin.enroll("tester", may(&[])).await;
    let mine = manifest("coder", "review");
    let head = stage.store.head();
    let refused = async |signed: Option<Value>| {
        publish(&coder, &mine, signed).await.refused(403, "not_permitted");
    };
    refused(None).await;
    refused(Some(signed(tester.key(), &mine))).await;
    refused(Some(signed(&new_key(), &mine))).await;
    refused(Some(signed(coder.key(), &manifest("coder", "deploy")))).await;
    refused(Some(signed(coder.key(), &manifest("tester", "review")))).await;
    let mut mixed = signed(tester.key(), &mine);
    mixed["key_id"] = json!(coder.key_id());
    refused(Some(mixed)).await;
    // A signature for one thing is none for another.
    let hash = Body::of(&mine).hash;
    let envelope = coder.key().sign(&statement::envelope(hash));
    refused(Some(json!({ "key_id": coder.key_id(), "signature": envelope }))).await;
    let proof = possession(coder.key(), "coder");
    refused(Some(json!({ "key_id": coder.key_id(), "signature": proof }))).await;
    stage.unmoved_since(head).await;
    assert_eq!(coder.get("/v1/agents/coder").await.done()["version"], 0);
}

async fn a_manifest_of_somebody_else_is_refused(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&["send", "read", "claim", "complete"])).await;
    admin.enroll("tester", may(&[])).await;
    admin.enroll("acme/coder", may(&[])).await;
    let head = stage.store.head();
    for (agent, status, code) in [
        ("tester", 403, "not_permitted"),
        ("nobody", 403, "not_permitted"),
        ("acme/coder", 404, "agent_not_found"),
        ("acme/nobody", 404, "agent_not_found"),
    ] {
        let theirs = manifest(agent, "review");
        for signed in [None, Some(signed(coder.key(), &theirs))] {
            publish(&coder, &theirs, signed).await.refused(status, code);
        }
    }
    stage.unmoved_since(head).await;
}

async fn a_key_that_no_longer_counts_signs_no_manifest(stage: Stage) {
    let admin = stage.administrator().await;
    let old = admin.enroll("coder", may(&[])).await;
    let new = old.with_key("coder", new_key());
    let rotate = json!({
        "old": old.key_id(), "key": new.key().public(),
        "proof": possession(new.key(), "coder"), "grace_ms": 10 * SECOND,
    });
    old.post("/v1/agents/coder/keys/rotate", rotate).await.done();
    let first = manifest("coder", "one");
    publish(&new, &first, Some(signed(old.key(), &first))).await.done();
    stage.pass(10 * SECOND).await;
    let second = manifest("coder", "two");
    let head = stage.store.head();
    let by_old = publish(&new, &second, Some(signed(old.key(), &second))).await;
    by_old.refused(403, "not_permitted");
    stage.unmoved_since(head).await;
    publish(&new, &second, Some(signed(new.key(), &second))).await.done();
}

async fn nobody_signs_for_an_agent_that_has_a_key(stage: Stage) {
    let admin = stage.administrator().await;
    // Without a key there is nothing to sign with, and the administrator's word counts.
    let theirs = manifest("coder", "review");
    publish(&admin, &theirs, None).await.done();
    let coder = admin.enroll("coder", may(&[])).await;
    let forged = manifest("coder", "deploy");
    publish(&admin, &forged, None).await.refused(403, "not_permitted");
    let by_admin = publish(&admin, &forged, Some(signed(&new_key(), &forged))).await;
    by_admin.refused(403, "not_permitted");
    // Carried by somebody else, it is still the agent's own.
    publish(&admin, &forged, Some(signed(coder.key(), &forged))).await.done();
}
