// SPDX-License-Identifier: Apache-2.0
//! How often the engine asks the store, and what it makes of no answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::de::DeserializeOwned;
use serde_json::json;
use tasuki_core::envelope::Control;
use tasuki_core::identity::SecretKey;
use tasuki_core::identity::message::Request;
use tasuki_core::pipeline::Pipelines;
use tasuki_core::registry::Purpose;
use tasuki_core::registry::rules::Rule;
use tasuki_core::{HandoffId, Position};
use tasuki_engine::{
    AssembleRequest, Caller, Desk, Error, Granted, HandoffFilter, NewToken, Shown, TaskFilter,
    WaitFor, WaitMode, WaitRequest,
};
use tasuki_protocol::{Complete, Search, Until};
use tasuki_store::{ManualClock, Volatile};

use crate::support::{BEGIN, Ids, Stage, agent, hop, new_offer, proof, to, wish};
use crate::watched::Watched;

fn watched() -> (Stage, Arc<Watched>) {
    let clock = ManualClock::at(BEGIN);
    let store = Watched::new(Arc::new(Volatile::new(clock.clone())));
    (Stage::on(store.clone(), clock, Ids::seeded(1)), store)
}

/// Somebody who may do some things to some, so that every handoff and task has to be judged.
async fn restricted(stage: &Stage, name: &str, rules: serde_json::Value) -> Desk {
    let rules: Vec<Rule> = serde_json::from_value(rules).unwrap();
    let operator = stage.engine.desk(Caller::Anyone);
    let seed = [u8::try_from(name.len()).unwrap(); 32];
    let key = SecretKey::from_seed(seed).public();
    operator.enroll(&agent(name), key, Some(rules.clone())).await.unwrap();
    let new = NewToken { purpose: Purpose::Bearer, agent: agent(name), rules, expires_in_ms: None };
    let token = operator.issue_token(new).await.unwrap().text;
    let request = Request {
        method: "GET",
        authority: "localhost",
        path: "/",
        query: None,
        content_digest: None,
    };
    let authorization = format!("Bearer {token}");
    let shown = Shown {
        request,
        signature_input: None,
        signature: None,
        authorization: Some(&authorization),
        certificate: None,
        from: "here",
    };
    stage.engine.desk(stage.engine.authenticate(shown).await.unwrap())
}

/// A request, as it is published.
fn asked<T: DeserializeOwned>(request: serde_json::Value) -> T {
    serde_json::from_value(request).unwrap()
}

fn completed(granted: &Granted, follow_ups: &serde_json::Value) -> (HandoffId, Complete) {
    let proof = proof(granted);
    let request = json!({
        "claim_id": proof.claim_id, "fence": proof.fence, "follow_ups": follow_ups,
        "payload": { "type": "patch", "files": [] },
    });
    (granted.handoff.id, asked(request))
}

fn coder_rules() -> serde_json::Value {
    json!([
        { "permissions": ["claim", "complete", "send"], "targets": ["coder", "reviewer"] },
        { "permissions": ["read"], "targets": ["coder"] },
    ])
}

#[tokio::test]
async fn a_look_that_fails_is_an_error_and_not_a_handoff_without_an_agreement() {
    let (stage, store) = watched();
    let mut new = new_offer(to("coder"));
    new.hop.output_schema = Some(json!({ "type": "object", "required": ["verdict"] }));
    let id = stage.engine.offer(new).await.unwrap().handoff.id;
    let granted = stage.claim_one(id, "coder").await;
    store.overloaded.store(true, Ordering::Relaxed);
    let answer = stage.complete(&granted, Vec::new()).await;
    assert!(matches!(answer, Err(Error::Store(tasuki_store::Error::Overloaded))), "{answer:?}");
    store.overloaded.store(false, Ordering::Relaxed);
    assert_eq!(stage.state(id).await, "claimed");
    let answer = stage.complete(&granted, Vec::new()).await;
    assert!(matches!(answer, Err(Error::Payload { .. })), "{answer:?}");
}

#[tokio::test]
async fn what_could_be_read_a_moment_later_is_no_gap_of_an_envelope() {
    let (stage, store) = watched();
    let desk = stage.engine.desk(Caller::Anyone);
    let wish = AssembleRequest {
        intent: Some("Add GET /users/{id}.".into()),
        recent: 10,
        pins: true,
        ..AssembleRequest::default()
    };
    store.overloaded.store(true, Ordering::Relaxed);
    let answer = desk.assemble(&agent("planner"), wish.clone()).await;
    assert!(matches!(answer, Err(Error::Store(tasuki_store::Error::Overloaded))), "{answer:?}");
    store.overloaded.store(false, Ordering::Relaxed);
    let put = desk.assemble(&agent("planner"), wish).await.unwrap();
    assert!(put.parts.gaps.is_empty(), "{:?}", put.parts.gaps);
}

#[tokio::test]
async fn reading_a_handoff_is_one_look_whoever_reads() {
    let (stage, store) = watched();
    let id = stage.offer(to("coder")).await;
    let known = restricted(&stage, "coder", coder_rules()).await;
    for desk in [stage.engine.desk(Caller::Anyone), known] {
        store.calls();
        desk.handoff_with_result(id).await.unwrap();
        assert_eq!(store.calls(), ["look"]);
        desk.envelope(id).await.unwrap();
        assert_eq!(store.calls(), ["look"]);
    }
}

#[tokio::test]
async fn an_offer_looks_once_at_a_task_that_is_there_and_never_at_a_new_one() {
    let (stage, store) = watched();
    let known = restricted(&stage, "coder", coder_rules()).await;
    store.calls();
    let id = stage.offer(to("coder")).await;
    assert_eq!(store.calls(), ["execute"]);
    let task = stage.claim_one(id, "coder").await.handoff.task_id;
    store.calls();
    let below = json!({
        "from_agent": "coder", "task_id": task, "to": { "agent": "reviewer" },
        "control": "awaited", "payload": { "type": "job" },
    });
    known.offer(asked(below)).await.unwrap();
    assert_eq!(store.calls(), ["look", "execute"]);
}

#[tokio::test]
async fn a_claim_is_one_command_and_one_look() {
    let (stage, store) = watched();
    for _ in 0..3 {
        stage.offer(to("coder")).await;
    }
    store.calls();
    let mut wish = wish("coder", &[], 0);
    wish.max = 3;
    let granted = stage.engine.claim(wish).await.unwrap();
    assert!(granted.len() == 3 && granted.iter().all(|one| one.envelope.is_some()));
    assert_eq!(store.calls(), ["execute", "look"]);
}

#[tokio::test]
async fn a_completion_looks_once_and_a_second_time_for_what_was_agreed() {
    let (stage, store) = watched();
    let pipeline = r#"{"pipelines": [{"name": "p", "version": 1, "first": "code", "stages": [
        {"name": "code", "to": {"agent": "coder"}, "next": [{"to": "review"}]},
        {"name": "review", "to": {"agent": "reviewer"}, "next": [{"to": "end"}]}]}]}"#;
    stage.engine.declare_pipelines(Pipelines::read(pipeline).unwrap()).await.unwrap();
    let desk = restricted(&stage, "coder", coder_rules()).await;
    let schema = json!({ "type": "object", "required": ["files"] });
    let follow_up = || json!({ "to": { "agent": "reviewer" }, "payload": { "type": "job" } });
    for (agreed, follow_ups, calls) in [
        (false, vec![], vec!["look", "execute"]),
        (false, vec![follow_up()], vec!["look", "execute"]),
        (true, vec![], vec!["look", "look", "execute"]),
        (true, vec![follow_up()], vec!["look", "execute"]),
    ] {
        let mut new = new_offer(to("coder"));
        new.hop.output_schema = agreed.then(|| schema.clone());
        let id = stage.engine.offer(new).await.unwrap().handoff.id;
        let granted = stage.claim_one(id, "coder").await;
        let request = completed(&granted, &json!(follow_ups));
        store.calls();
        desk.complete(vec![request]).await.unwrap().pop().unwrap().unwrap();
        assert_eq!(store.calls(), calls);
    }
    let start = json!({ "from_agent": "boss", "intent": "Do it.", "payload": { "type": "job" } });
    let started =
        Box::pin(stage.engine.desk(Caller::Anyone).start_pipeline("p", asked(start))).await;
    let id = started.unwrap().handoff.id;
    let granted = stage.claim_one(id, "coder").await;
    store.calls();
    let request = completed(&granted, &json!([]));
    desk.complete(vec![request]).await.unwrap().pop().unwrap().unwrap();
    assert_eq!(store.calls(), ["look", "look", "execute"]);
    let task = stage.engine.task(granted.handoff.task_id).await.unwrap();
    assert!(task.live.is_some(), "the pipeline goes on");
}

#[tokio::test]
async fn twenty_agents_are_listed_with_one_look_and_then_without_any() {
    let (stage, store) = watched();
    let desk = stage.engine.desk(Caller::Anyone);
    for number in 0..20 {
        let manifest =
            json!({ "agent_id": format!("a-{number}"), "capabilities": [{ "name": "code" }] });
        desk.publish(manifest, None, None).await.unwrap();
    }
    // What is measured reads each manifest once, when it comes by in the log.
    let calls_of_the_desk = || {
        let mut calls = store.calls();
        calls.retain(|call| *call != "bodies");
        calls
    };
    calls_of_the_desk();
    for calls in [&["manifests"][..], &[]] {
        assert_eq!(desk.discover(Search::default()).await.unwrap().len(), 20);
        assert_eq!(calls_of_the_desk(), calls);
    }
    // One that is new is looked up, and no other.
    desk.publish(json!({ "agent_id": "b", "capabilities": [] }), None, None).await.unwrap();
    calls_of_the_desk();
    assert_eq!(desk.discover(Search::default()).await.unwrap().len(), 21);
    assert_eq!(calls_of_the_desk(), ["manifests"]);
}

#[tokio::test]
async fn a_wait_for_a_thousand_is_one_look() {
    let (stage, store) = watched();
    let mut these = Vec::new();
    let many = (0..500).map(|_| new_offer(to("coder"))).collect();
    for offered in stage.engine.offer_many(many).await.unwrap() {
        let handoff = offered.unwrap().handoff;
        these.extend([WaitFor::Handoff(handoff.id), WaitFor::Task(handoff.task_id)]);
    }
    let desk = restricted(&stage, "coder", coder_rules()).await;
    store.calls();
    let wish = WaitRequest { these, mode: WaitMode::All, until: Until::Claimed, timeout_ms: 0 };
    assert_eq!(desk.wait(wish).await.unwrap().len(), 1000);
    assert_eq!(store.calls(), ["look"]);
}

#[tokio::test]
async fn following_the_log_and_listing_cost_one_look_for_a_page_whoever_asks() {
    let (stage, store) = watched();
    let mut coders = Vec::new();
    for name in ["coder", "reviewer", "coder"] {
        let id = stage.offer(to(name)).await;
        let granted = stage.claim_one(id, name).await;
        coders.extend((name == "coder").then_some(granted.handoff.task_id));
        stage.complete(&granted, vec![hop(to("coder"), Control::Passed)]).await.unwrap();
    }
    // Neither a party of any of it nor somebody who reads everything.
    let rules = json!([{ "permissions": ["read"], "targets": ["coder"] }]);
    let desk = restricted(&stage, "watcher", rules).await;
    store.calls();
    let (entries, sight) = desk.events_with_tasks(Position(0), 100).await.unwrap();
    for entry in &entries {
        let only_the_coders = coders.contains(&entry.sealed.record.task_id);
        assert_eq!(desk.sees_event(entry, &sight).await, only_the_coders, "{entry:?}");
    }
    assert_eq!(store.calls(), ["look"]);
    let filter = HandoffFilter { max: 100, ..HandoffFilter::default() };
    assert_eq!(desk.list_handoffs(filter).await.unwrap().items.len(), 5);
    // The page, and the tasks of it: who coordinates one may read its handoffs.
    assert_eq!(store.calls(), ["list_handoffs", "look"]);
    let filter = TaskFilter { max: 100, ..TaskFilter::default() };
    assert_eq!(desk.list_tasks(filter).await.unwrap().items.len(), 2);
    assert_eq!(store.calls(), ["list_tasks", "look"]);
}
