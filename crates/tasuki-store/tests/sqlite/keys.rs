// SPDX-License-Identifier: Apache-2.0
//! Idempotency keys across restarts.

use tasuki_core::decide::Outcome;
use tasuki_store::HandoffFilter;

use crate::open;
use crate::stage::{Stage, code, copy_as_after_a_crash};
use crate::support::{DAY, HOUR, complete, key, to};

async fn send(stage: &Stage, name: &str) -> Outcome {
    stage.send_keyed(stage.offer(to("coder")), key(name, "request")).await.unwrap().outcome
}

#[tokio::test]
async fn a_key_is_remembered_across_restarts_and_crashes() {
    let stage = open().await;
    let first = send(&stage, "k-1").await;
    let stage = stage.restart().await;
    let again = send(&stage, "k-1").await;
    assert_eq!((again.repeated, &again.handoffs), (true, &first.handoffs));

    // One whose row was not written yet, and one of something that is over.
    let id = send(&stage, "k-2").await.handoffs[0];
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, complete("done")).await.unwrap();
    let copy = stage.base.path().join("crash");
    copy_as_after_a_crash(&stage.dir, &copy);
    let stage = stage.go_on_in(&copy).await;
    assert_eq!(send(&stage, "k-2").await.handoffs, [id]);
    assert_eq!(send(&stage, "k-1").await.handoffs, first.handoffs);
    let other = stage.send_keyed(stage.offer(to("coder")), key("k-1", "another request")).await;
    assert_eq!(code(other), "idempotency_conflict");
}

#[tokio::test]
async fn a_restart_does_not_make_a_key_count_longer_or_shorter() {
    let stage = open().await;
    let first = send(&stage, "k-1").await;
    stage.clock.advance_ms(DAY - 1);
    let stage = stage.restart().await;
    assert_eq!(send(&stage, "k-1").await.handoffs, first.handoffs);
    stage.clock.advance_ms(1);
    let stage = stage.restart().await;
    assert!(!send(&stage, "k-1").await.repeated);
}

#[tokio::test]
async fn a_key_that_came_again_a_day_later_stands_for_the_later_request() {
    let stage = open().await;
    send(&stage, "k-1").await;
    stage.clock.advance_ms(DAY + HOUR);
    let second = send(&stage, "k-1").await;
    assert!(!second.repeated);
    stage.store.list_handoffs(HandoffFilter { max: 1, ..Default::default() }).await.unwrap();
    let stage = stage.restart().await;
    assert_eq!(send(&stage, "k-1").await.handoffs, second.handoffs);
}
