// SPDX-License-Identifier: Apache-2.0
//! Completing and handing on in one step; everything arrives whole.

use serde_json::Value;
use tasuki_core::canonical;
use tasuki_core::envelope::Control;
use tasuki_core::{Body, TaskState};
use tasuki_engine::{Granted, NewOffer};

use crate::support::{
    INTENT, Stage, agent, code, completion, hop, json_of, new_offer, proof, to, to_any,
};

fn envelope(granted: &Granted) -> Value {
    json_of(granted.envelope.as_ref().unwrap())
}

/// The address of an envelope, worked out from what was served and nothing else.
fn address(granted: &Granted) -> String {
    let served = canonical::parse(granted.envelope.as_ref().unwrap().text().as_bytes()).unwrap();
    Body::of(&served).hash.to_string()
}

#[tokio::test]
async fn everything_arrives_whole_after_eight_hops() {
    let stage = Stage::volatile();
    let mut id = stage.offer(to("agent-0")).await;
    let mut before: Option<Granted> = None;
    for number in 0..8_u32 {
        let granted = stage.claim_one(id, &format!("agent-{number}")).await;
        let envelope_json = envelope(&granted);
        assert_eq!(envelope_json["intent"], INTENT, "byte for byte");
        assert_eq!(envelope_json["hop"], number);
        assert_eq!(envelope_json["task_id"], granted.handoff.task_id.to_string());
        assert_eq!(address(&granted), granted.handoff.envelope.to_string());
        match &before {
            None => assert!(envelope_json.get("previous").is_none()),
            Some(before) => {
                assert_eq!(envelope_json["previous"], address(before));
                assert_eq!(envelope_json["from_agent"], format!("agent-{}", number - 1));
            }
        }
        let next = hop(to(&format!("agent-{}", number + 1)), Control::Passed);
        stage.complete(&granted, vec![next]).await.unwrap();
        let task = stage.engine.task(granted.handoff.task_id).await.unwrap();
        assert_eq!(
            (task.state, task.owner.as_str()),
            (TaskState::Open, &*format!("agent-{number}"))
        );
        id = task.live.unwrap();
        before = Some(granted);
    }
}

#[tokio::test]
async fn a_completion_and_what_follows_from_it_are_one_commit() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let granted = stage.claim_one(id, "coder").await;
    let mut news = stage.store.subscribe();
    let follow_ups = vec![
        hop(to("reviewer"), Control::Passed),
        hop(to_any("test"), Control::Awaited),
        hop(to_any("docs"), Control::Awaited),
    ];
    stage.complete(&granted, follow_ups).await.unwrap();
    let committed = news.recv().await.unwrap();
    let kinds: Vec<_> = committed.changes.iter().map(|c| c.sealed.record.event.kind()).collect();
    assert_eq!(kinds, ["completed", "transfer_offered", "call_offered", "call_offered"]);
    assert_eq!(committed.ready, [to("reviewer"), to_any("test"), to_any("docs")]);
    let calls =
        committed.changes[2..].iter().map(|change| change.sealed.record.handoff_id.unwrap());
    for call in calls {
        let (call, envelope) = stage.engine.envelope(call).await.unwrap();
        let envelope_json = json_of(&envelope.unwrap());
        assert_eq!((&envelope_json["intent"], &envelope_json["hop"]), (&INTENT.into(), &1.into()));
        assert_eq!(envelope_json["previous"], address(&granted));
        assert_ne!(call.task_id, granted.handoff.task_id, "a call is a task of its own");
    }
}

#[tokio::test]
async fn when_what_follows_is_refused_nothing_is_completed() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let granted = stage.claim_one(id, "coder").await;
    let head = stage.engine.head();
    let twice = vec![hop(to("reviewer"), Control::Passed), hop(to("tester"), Control::Passed)];
    assert_eq!(code(stage.complete(&granted, twice).await), "invalid_follow_ups");
    let mut hasty = hop(to("reviewer"), Control::Passed);
    hasty.priority = Some(77);
    assert_eq!(code(stage.complete(&granted, vec![hasty]).await), "invalid_terms");
    assert_eq!((stage.engine.head(), stage.state(id).await), (head, "claimed"));
    stage.complete(&granted, Vec::new()).await.unwrap();
}

#[tokio::test]
async fn a_repeated_completion_starts_nothing_twice() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let granted = stage.claim_one(id, "coder").await;
    let next = || vec![hop(to("reviewer"), Control::Passed)];
    stage.complete(&granted, next()).await.unwrap();
    let head = stage.engine.head();
    stage.complete(&granted, next()).await.unwrap();
    assert_eq!(stage.engine.head(), head);
    // In one call too, and each completion on its own.
    let other = stage.offer(to("coder")).await;
    let held = stage.claim_one(other, "coder").await;
    let requests = vec![
        completion(other, proof(&held), Vec::new()),
        completion(other, proof(&held), Vec::new()),
        completion(tasuki_core::HandoffId(901), proof(&held), Vec::new()),
    ];
    let mut replies = stage.engine.complete(requests).await.unwrap();
    assert_eq!(code(replies.pop().unwrap()), "handoff_not_found");
    assert!(replies.iter().all(Result::is_ok));
    assert_eq!(stage.story(other).await, ["transfer_offered", "claimed", "completed"]);
}

#[tokio::test]
async fn altered_words_are_refused_and_the_own_words_accepted() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let task = stage.claim_one(id, "coder").await.handoff.task_id;
    let call = |intent: &str| NewOffer {
        from: agent("coder"),
        task_id: Some(task),
        intent: Some(intent.into()),
        hop: hop(to_any("review"), Control::Awaited),
        ..new_offer(to("nobody"))
    };
    let softened = INTENT.replace("Do not touch", "Try not to touch");
    assert_eq!(code(stage.engine.offer(call(&softened)).await), "intent_altered");
    assert_eq!(
        code(stage.engine.offer(call(INTENT.trim_end_matches('.'))).await),
        "intent_altered"
    );
    stage.engine.offer(call(INTENT)).await.unwrap();
}

#[tokio::test]
async fn a_task_that_was_opened_first_keeps_its_words_too() {
    let stage = Stage::volatile();
    let new = tasuki_protocol::OpenTask {
        from_agent: agent("planner"),
        intent: Some(INTENT.into()),
        on_parent_end: None,
        correlation_id: None,
        coordinator: None,
        project: None,
        parent_task_id: None,
        idempotency_key: Some("k-1".parse().unwrap()),
    };
    let desk = stage.engine.desk(tasuki_engine::Caller::Anyone);
    let (task, repeated) = desk.open_task(new.clone()).await.unwrap();
    assert!(!repeated && desk.open_task(new).await.unwrap().1);
    let offer = NewOffer { task_id: Some(task.id), intent: None, ..new_offer(to("coder")) };
    let id = stage.engine.offer(offer).await.unwrap().handoff.id;
    let envelope_json = envelope(&stage.claim_one(id, "coder").await);
    assert_eq!((&envelope_json["intent"], &envelope_json["hop"]), (&INTENT.into(), &0.into()));
}
