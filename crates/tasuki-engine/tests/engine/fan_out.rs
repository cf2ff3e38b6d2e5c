// SPDX-License-Identifier: Apache-2.0
//! Ten calls below one task at once, and waiting for all or for any of them (E15).

use std::collections::BTreeSet;

use tasuki_core::envelope::Control;
use tasuki_core::{HandoffId, TaskId, TaskState};
use tasuki_engine::{NewOffer, TaskFilter, WaitFor, WaitMode, WaitRequest, Waited};
use tasuki_protocol::Until;

use crate::support::{
    INTENT, MINUTE, Stage, agent, code, hop, json_of, keyed, new_offer, soon, to, to_any,
};

/// The coder holds a task and has called ten others for parts of it.
struct FanOut {
    stage: Stage,
    parent: TaskId,
    calls: Vec<HandoffId>,
}

async fn fan_out() -> FanOut {
    let stage = Stage::volatile();
    let mut offer = new_offer(to("coder"));
    offer.correlation_id = Some("order 7".parse().unwrap());
    let id = stage.engine.offer(offer).await.unwrap().handoff.id;
    let parent = stage.claim_one(id, "coder").await.handoff.task_id;
    let call = |number: usize| {
        let call = NewOffer {
            from: agent("coder"),
            task_id: Some(parent),
            intent: None,
            hop: hop(to_any("review"), Control::Awaited),
            ..new_offer(to("nobody"))
        };
        keyed(call, &format!("part {number}"))
    };
    let calls = stage.engine.offer_many((0..10).map(call).collect()).await.unwrap();
    let calls = calls.into_iter().map(|call| call.unwrap().handoff.id).collect();
    FanOut { stage, parent, calls }
}

fn join(these: Vec<WaitFor>, mode: WaitMode) -> WaitRequest {
    WaitRequest { these, mode, until: Until::Settled, timeout_ms: MINUTE }
}

#[tokio::test]
async fn all_of_ten_calls_are_waited_for() {
    let FanOut { stage, parent, calls } = fan_out().await;
    let these = calls.iter().map(|id| WaitFor::Handoff(*id)).collect();
    let engine = stage.engine.clone();
    let joined = tokio::spawn(async move { engine.wait(join(these, WaitMode::All)).await });
    for (number, id) in calls.iter().enumerate().rev() {
        assert!(!joined.is_finished(), "{number} are missing");
        let granted = stage.claim_one(*id, &format!("agent-{number}")).await;
        stage.complete(&granted, Vec::new()).await.unwrap();
        let owner = &stage.engine.task(parent).await.unwrap().owner;
        assert_eq!(owner.as_str(), "coder", "a caller keeps its own task");
    }
    let seen = soon(joined).await.unwrap().unwrap();
    let ids = seen.iter().map(|waited| match waited {
        Waited::Handoff { handoff, reached: true } => handoff.id,
        other => panic!("{other:?}"),
    });
    assert!(ids.eq(calls), "in the order asked");
    assert_eq!(stage.engine.task(parent).await.unwrap().state, TaskState::Open);
}

#[tokio::test]
async fn the_first_of_ten_calls_is_waited_for() {
    let FanOut { stage, calls, .. } = fan_out().await;
    let mut these = Vec::new();
    for id in &calls {
        these.push(WaitFor::Task(stage.engine.handoff(*id).await.unwrap().task_id));
    }
    let engine = stage.engine.clone();
    let joined = tokio::spawn(async move { engine.wait(join(these, WaitMode::Any)).await });
    let granted = stage.claim_one(calls[6], "agent-6").await;
    assert!(!joined.is_finished(), "claimed is not done");
    stage.complete(&granted, Vec::new()).await.unwrap();
    let seen = soon(joined).await.unwrap().unwrap();
    let reached: Vec<_> = seen.iter().map(Waited::reached).collect();
    assert_eq!(reached.iter().position(|reached| *reached), Some(6));
    assert_eq!(reached.iter().filter(|reached| **reached).count(), 1);
}

#[tokio::test]
async fn every_call_is_a_task_of_its_own_with_the_same_intent_and_correlation() {
    let FanOut { stage, parent, calls } = fan_out().await;
    let filter = TaskFilter { parent: Some(parent), max: 100, ..Default::default() };
    let below = stage.engine.list_tasks(filter).await.unwrap();
    let tasks: BTreeSet<_> = below.iter().map(|task| task.id).collect();
    assert_eq!(tasks.len(), 10);
    for task in &below {
        assert_eq!(task.correlation_id.as_ref().unwrap().as_str(), "order 7");
        assert_eq!((task.owner.as_str(), task.live.is_some()), ("coder", true));
    }
    for id in calls {
        let (_, envelope) = stage.engine.envelope(id).await.unwrap();
        let envelope = json_of(&envelope.unwrap());
        assert_eq!(envelope["intent"], INTENT);
        assert_eq!(envelope["parent_task_id"], parent.to_string());
        assert_eq!((&envelope["hop"], &envelope["control"]), (&1.into(), &"awaited".into()));
    }
}

#[tokio::test]
async fn only_the_owner_calls_below_a_task() {
    let FanOut { stage, parent, .. } = fan_out().await;
    let call = NewOffer {
        from: agent("stranger"),
        task_id: Some(parent),
        intent: None,
        correlation_id: None,
        coordinator: None,
        project: None,
        hop: hop(to_any("review"), Control::Awaited),
        key: None,
    };
    assert_eq!(code(stage.engine.offer(call).await), "not_owner");
}
