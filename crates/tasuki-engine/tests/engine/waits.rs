// SPDX-License-Identifier: Apache-2.0
//! Waiting for a receiver's acceptance and for results.

use tasuki_core::{HandoffId, TaskId};
use tasuki_engine::{Error, WaitFor, WaitMode, WaitRequest, Waited};
use tasuki_protocol::Until;
use tokio::task::JoinHandle;

use crate::support::{MINUTE, SECOND, Stage, code, soon, to};

fn request(these: Vec<WaitFor>, mode: WaitMode, until: Until) -> WaitRequest {
    WaitRequest { these, mode, until, timeout_ms: MINUTE }
}

fn waiting(stage: &Stage, wish: WaitRequest) -> JoinHandle<Result<Vec<Waited>, Error>> {
    let engine = stage.engine.clone();
    tokio::spawn(async move { engine.wait(wish).await })
}

fn settled(id: HandoffId) -> WaitRequest {
    request(vec![WaitFor::Handoff(id)], WaitMode::All, Until::Settled)
}

#[tokio::test]
async fn a_sender_waits_for_acceptance_and_then_for_the_result() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let accepted =
        waiting(&stage, request(vec![WaitFor::Handoff(id)], WaitMode::All, Until::Claimed));
    let finished = waiting(&stage, settled(id));
    let granted = stage.claim_one(id, "coder").await;
    assert!(soon(accepted).await.unwrap().unwrap()[0].reached());
    assert!(!finished.is_finished());
    stage.complete(&granted, Vec::new()).await.unwrap();
    let finished = soon(finished).await.unwrap().unwrap();
    let Waited::Handoff { handoff, reached: true } = &finished[0] else { panic!("{finished:?}") };
    assert_eq!(handoff.state.name().as_str(), "completed");
    let result = stage.engine.result(id).await.unwrap().unwrap();
    assert!(result.text().contains("patch"));
}

#[tokio::test]
async fn a_wait_for_something_that_is_over_answers_at_once() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let task = stage.engine.handoff(id).await.unwrap().task_id;
    let granted = stage.claim_one(id, "coder").await;
    stage.complete(&granted, Vec::new()).await.unwrap();
    for until in [Until::Claimed, Until::Settled] {
        let these = vec![WaitFor::Handoff(id), WaitFor::Task(task)];
        let seen = soon(stage.engine.wait(request(these, WaitMode::All, until))).await.unwrap();
        assert!(seen.iter().all(Waited::reached));
    }
}

#[tokio::test]
async fn a_wait_ends_at_its_deadline_with_what_it_saw() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let wish = WaitRequest { timeout_ms: 2 * SECOND, ..settled(id) };
    let finished = waiting(&stage, wish);
    stage.claim_one(id, "coder").await;
    // However the wait and the clock meet: its deadline is two seconds after it began.
    let seen = soon(async {
        while !finished.is_finished() {
            stage.clock.advance_ms(SECOND);
            tokio::task::yield_now().await;
        }
        finished.await.unwrap().unwrap()
    })
    .await;
    assert!(!seen[0].reached());
}

#[tokio::test]
async fn a_dead_letter_settles_a_wait() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let finished = waiting(&stage, settled(id));
    stage.engine.decline(id, "coder".parse().unwrap(), None, None, None).await.unwrap();
    assert!(soon(finished).await.unwrap().unwrap()[0].reached());
}

#[tokio::test]
async fn a_wait_for_what_is_not_there_is_refused() {
    let stage = Stage::volatile();
    let unknown = WaitFor::Handoff(HandoffId(9));
    let wish = request(vec![unknown], WaitMode::Any, Until::Settled);
    assert_eq!(code(stage.engine.wait(wish).await), "handoff_not_found");
    let wish = request(vec![WaitFor::Task(TaskId(9))], WaitMode::Any, Until::Settled);
    assert_eq!(code(stage.engine.wait(wish).await), "task_not_found");
    for these in [Vec::new(), vec![unknown; 1001]] {
        let refused = stage.engine.wait(request(these, WaitMode::All, Until::Settled)).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })));
    }
}

#[tokio::test]
async fn whoever_follows_the_log_hears_of_new_events() {
    let stage = Stage::volatile();
    let engine = stage.engine.clone();
    let more = tokio::spawn(async move { engine.more_events(engine.head()).await });
    // However the two meet: a first offer may come before the worker looks.
    soon(Box::pin(async {
        while !more.is_finished() {
            stage.offer(to("coder")).await;
        }
    }))
    .await;
    assert!(more.await.unwrap());
}
