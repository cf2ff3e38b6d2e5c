// SPDX-License-Identifier: Apache-2.0
//! Going away: waits end with what they have, later calls are refused, the store is let go of.

use std::sync::Arc;

use tasuki_engine::{Error, StoreError, WaitFor, WaitMode, WaitRequest};
use tasuki_protocol::Until;
use tasuki_store::ManualClock;

use crate::support::{BEGIN, Ids, MINUTE, Stage, new_offer, soon, to, wish};

#[tokio::test]
async fn every_wait_ends_when_the_broker_goes_away() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    let claiming = stage.long_poll("tester", &["review"]);
    let these = vec![WaitFor::Handoff(id)];
    let wish =
        WaitRequest { these, mode: WaitMode::All, until: Until::Settled, timeout_ms: MINUTE };
    let engine = stage.engine.clone();
    let waiting = tokio::spawn(async move { engine.wait(wish).await.unwrap() });
    let engine = stage.engine.clone();
    let following = tokio::spawn(async move { engine.more_events(engine.head()).await });
    stage.commands(3).await;
    stage.engine.end_waits();
    assert!(soon(claiming).await.unwrap().is_empty());
    let seen = soon(waiting).await.unwrap();
    assert!(seen.len() == 1 && !seen[0].reached());
    assert!(!soon(following).await.unwrap());
    // Work under way can still be finished until the store is closed.
    let granted = stage.claim_one(id, "coder").await;
    stage.complete(&granted, Vec::new()).await.unwrap();
    assert!(stage.engine.not_ready().is_some());
}

#[tokio::test]
async fn a_wait_that_begins_while_the_broker_goes_away_ends_at_once() {
    let stage = Stage::volatile();
    stage.engine.end_waits();
    assert!(soon(stage.engine.claim(wish("coder", &[], MINUTE))).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_closed_engine_refuses() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    stage.engine.close().await;
    let refused = stage.engine.offer(new_offer(to("coder"))).await;
    assert!(matches!(refused, Err(Error::Store(StoreError::Closed))));
    let refused = stage.engine.handoff(id).await;
    assert!(matches!(refused, Err(Error::Store(StoreError::Closed))));
    stage.engine.close().await;
}

#[tokio::test]
async fn a_closed_engine_lets_go_of_its_store() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::sqlite(dir.path(), ManualClock::at(BEGIN), Ids::seeded(1)).await;
    stage.offer(to("coder")).await;
    let store = Arc::downgrade(&stage.store);
    stage.engine.close().await;
    drop(stage);
    soon(async {
        while store.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_is_dropped_leaves_no_workers_behind() {
    let stage = Stage::volatile();
    let store = Arc::downgrade(&stage.store);
    drop(stage);
    soon(async {
        while store.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
