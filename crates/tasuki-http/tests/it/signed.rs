// SPDX-License-Identifier: Apache-2.0
//! What can be checked without trusting the broker: the sender's word, the receiver's, the broker's.

use serde_json::{Value, json};
use tasuki_core::chain::{self, ChainFile};
use tasuki_core::envelope::{Envelope, authored};
use tasuki_core::identity::{PublicKey, SecretKey, Signature, statement};
use tasuki_core::{Body, Fence, Hash};

use crate::support::{Held, Stage, everything, merged, on_both_stores, text};

on_both_stores! { closed:
    a_receiver_checks_the_senders_word_and_the_brokers
    a_senders_word_that_is_not_its_own_is_refused
    a_holder_stands_by_its_result_in_the_log
}

fn signature(key: &SecretKey, statement: &[u8]) -> Value {
    json!({ "key_id": key.public().id(), "signature": key.sign(statement) })
}

/// An offer with its sender's signature over what it says.
fn signed_offer(offer: Value, key: &SecretKey) -> Value {
    let parsed = |name: &str| offer[name].clone();
    let said = authored(
        &serde_json::from_value(parsed("from_agent")).unwrap(),
        &serde_json::from_value(parsed("to")).unwrap(),
        tasuki_core::envelope::Action::Request,
        tasuki_core::envelope::Control::Passed,
        offer["intent"].as_str().unwrap(),
        &serde_json::from_value(parsed("payload")).unwrap(),
    );
    merged(offer, json!({ "signed": signature(key, &statement::envelope(said)) }))
}

async fn a_receiver_checks_the_senders_word_and_the_brokers(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("acme/planner", everything()).await;
    let coder = admin.enroll("acme/coder", everything()).await;
    let offer = signed_offer(planner.offering("coder", json!({})), planner.key());
    let id = text(&planner.post("/v1/handoffs", offer).await.done()["handoff_id"]);
    let claimed = coder.claim_one(&id).await.done();
    let envelope: Envelope = serde_json::from_value(claimed["envelope"].clone()).unwrap();
    let signed = envelope.signed.clone().unwrap();
    let shown = coder.get("/v1/agents/planner").await.done();
    let key: PublicKey = serde_json::from_value(shown["keys"][0]["key"].clone()).unwrap();
    assert_eq!(key.id(), signed.key_id);
    assert!(key.verify(&statement::envelope(envelope.authored()), &signed.signature));
    let altered = Envelope { intent: "Delete everything.".into(), ..envelope.clone() };
    assert!(!key.verify(&statement::envelope(altered.authored()), &signed.signature));
    // The broker's word, with the key that it shows to everybody.
    let shown = coder.get("/.well-known/agents.json").await.done();
    let key: PublicKey = serde_json::from_value(shown["broker_key"].clone()).unwrap();
    let delivery = &claimed["delivery"];
    let given = statement::delivery(
        id.parse().unwrap(),
        envelope.body().hash,
        &"acme/coder".parse().unwrap(),
        Fence(claimed["fence"].as_u64().unwrap()),
        1,
        text(&delivery["at"]).parse().unwrap(),
    );
    let signature: Signature =
        serde_json::from_value(delivery["signed"]["signature"].clone()).unwrap();
    assert!(key.verify(&given, &signature));
    assert_eq!(claimed["envelope_hash"], json!(envelope.body().hash));
}

async fn a_senders_word_that_is_not_its_own_is_refused(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let coder = admin.enroll("coder", everything()).await;
    let head = stage.store.head();
    let offer = || planner.offering("coder", json!({}));
    let by_another = signed_offer(offer(), coder.key());
    planner.post("/v1/handoffs", by_another).await.refused(403, "not_permitted");
    let signed = signed_offer(offer(), planner.key());
    let altered = merged(signed, json!({ "payload": { "type": "other" } }));
    planner.post("/v1/handoffs", altered).await.refused(403, "not_permitted");
    stage.unmoved_since(head).await;
}

async fn a_holder_stands_by_its_result_in_the_log(stage: Stage) {
    let admin = stage.administrator().await;
    let planner = admin.enroll("planner", everything()).await;
    let coder = admin.enroll("coder", everything()).await;
    let expected = json!({ "schema": { "required": ["text"] }, "criteria": ["Short."] });
    let id = planner.offer("coder", json!({ "expected_output": expected })).await;
    let claimed = coder.claim_one(&id).await.done();
    let held = Held::of(&claimed);
    let payload = json!({ "type": "done", "text": "It is." });
    let criteria = json!([{ "criterion": "Short.", "met": true }]);
    let result = Body::of(&json!({
        "handoff_id": id, "action": "completed", "payload": payload, "metadata": {},
        "declared": criteria,
    }));
    let acknowledges = |act: &str, body| {
        statement::acknowledgment(
            id.parse().unwrap(),
            serde_json::from_value(claimed["envelope_hash"].clone()).unwrap(),
            held.claim_id.parse().unwrap(),
            Fence(held.fence),
            act,
            body,
        )
    };
    let accepted = signature(coder.key(), &acknowledges("accepted", None));
    coder.act(&held, "start", json!({ "signed": accepted })).await.done();
    let forged = signature(planner.key(), &acknowledges("completed", Some(result.hash)));
    let done =
        |signed: Value| json!({ "payload": payload, "criteria": criteria, "signed": signed });
    coder.act(&held, "complete", done(forged)).await.refused(403, "not_permitted");
    let other = signature(coder.key(), &acknowledges("failed", Some(result.hash)));
    coder.act(&held, "complete", done(other)).await.refused(403, "not_permitted");
    let right = signature(coder.key(), &acknowledges("completed", Some(result.hash)));
    coder.act(&held, "complete", done(right)).await.done();
    let task = text(&planner.get(&format!("/v1/handoffs/{id}")).await.done()["task_id"]);
    let events = planner.get(&format!("/v1/tasks/{task}/events")).await.done();
    let records: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|event| &event["record"]).collect();
    let kinds: Vec<_> = records.iter().map(|record| text(&record["kind"])).collect();
    assert_eq!(kinds[2..], ["acknowledged", "started", "acknowledged", "completed"]);
    let last = records[records.len() - 2];
    assert_eq!(last["body"], json!(result.hash));
    assert_eq!(last["signed"]["key_id"], json!(coder.key().public().id()));
    let output = planner.get(&format!("/v1/handoffs/{id}")).await.done()["output"].clone();
    assert_eq!(
        output["verified"],
        json!(["schema"]),
        "which is the broker's word, not the holder's"
    );
    let file = planner.get(&format!("/v1/tasks/{task}/export")).await;
    let file: ChainFile = serde_json::from_str(file.text()).unwrap();
    let verdict = chain::verify(&file);
    assert!(verdict.intact, "{verdict:?}");
    let forged = with_another_result(file);
    let bad = chain::verify(&forged).first_bad.expect("it is found out");
    assert!(bad.problem.contains("something else than its holder signed"), "{bad:?}");
}

/// The chain as a broker could write it that tells another result than it was told.
fn with_another_result(mut file: ChainFile) -> ChainFile {
    file.seal = None;
    let events = &mut file.tasks[0].events;
    let raw = |text: String| serde_json::value::RawValue::from_string(text).unwrap();
    let mut previous = Hash::ZERO;
    for event in events {
        let body = event.body.as_ref().map(|body| body.get().to_owned());
        if event.record.get().contains(r#""kind":"completed""#) {
            let (true_one, told) = (body.clone().unwrap(), body.unwrap().replace("It is.", "No."));
            let hash = |text: String| Body::stored(text).unwrap().hash.to_string();
            let record = event.record.get().replace(&hash(true_one), &hash(told.clone()));
            (event.record, event.body) = (raw(record), Some(raw(told)));
        }
        event.hash = tasuki_core::event::link(previous, event.record.get().as_bytes());
        previous = event.hash;
    }
    file
}
