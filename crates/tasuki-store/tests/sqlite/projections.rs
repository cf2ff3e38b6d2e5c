// SPDX-License-Identifier: Apache-2.0
//! Rows are written lazily: queries wait for them, work does not.

use tasuki_core::commands::Command;
use tasuki_core::handoff::StateName;
use tasuki_store::{COMMANDS_MAX, HandoffFilter, TaskFilter};
use tokio::task::JoinSet;

use crate::stage::Stage;
use crate::support::{complete, to};
use crate::{database, open};

async fn burst(stage: &Stage, commands: usize) {
    let mut workers = JoinSet::new();
    for _ in 0..commands / COMMANDS_MAX {
        let stage = stage.clone();
        workers.spawn(async move {
            let offers = (0..COMMANDS_MAX).map(|_| stage.offer(to("coder")));
            let commands = offers.map(Command::offer).collect();
            assert!(stage.store.execute(commands).await.unwrap().iter().all(Result::is_ok));
        });
    }
    workers.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_right_after_a_burst_is_complete() {
    let stage = open().await;
    burst(&stage, 5000).await;
    let filter = HandoffFilter { max: usize::MAX, ..Default::default() };
    let (handoffs, tasks) = tokio::join!(
        stage.store.list_handoffs(filter),
        stage.store.list_tasks(TaskFilter { max: usize::MAX, ..Default::default() }),
    );
    assert_eq!((handoffs.unwrap().len(), tasks.unwrap().len()), (5000, 5000));
    let last = stage.offered().await;
    let state = Some(StateName::Pending);
    let filter = HandoffFilter { state, max: 1, ..Default::default() };
    assert_eq!(stage.store.list_handoffs(filter).await.unwrap()[0].id, last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_never_fall_too_far_behind() {
    let stage = open().await;
    for _ in 0..3 {
        burst(&stage, 5000).await;
        // Two rows for each offer would be far more than this.
        assert!(stage.store.stats().projection_lag < 8192 + 3000);
    }
}

#[tokio::test]
async fn live_work_is_claimed_and_completed_without_its_rows() {
    let stage = open().await;
    let ids = [stage.offered().await, stage.offered().await];
    stage.store.list_handoffs(HandoffFilter { max: 1, ..Default::default() }).await.unwrap();
    let gone = database(&stage.dir)
        .execute_batch("DELETE FROM handoff; DELETE FROM task; DELETE FROM idempotency");
    gone.unwrap();
    assert_eq!(stage.claim_next("coder", 10).await, ids);
    for id in ids {
        let handoff = stage.handoff(id).await;
        let proof = crate::stage::proof_of(&handoff);
        stage.act(id, proof, complete("done")).await.unwrap();
        assert_eq!(stage.state(id).await, "completed");
    }
}

#[tokio::test]
async fn what_is_over_leaves_memory_and_is_found_on_disk() {
    let stage = open().await;
    let id = stage.offered().await;
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, complete("done")).await.unwrap();
    let before = (stage.handoff(id).await, stage.task_of(id).await);
    stage.store.list_handoffs(HandoffFilter { max: 1, ..Default::default() }).await.unwrap();
    assert_eq!((stage.handoff(id).await, stage.task_of(id).await), before);
    // Without its row it cannot be found any more: nothing of it is left in memory.
    database(&stage.dir).execute_batch("DELETE FROM handoff; DELETE FROM task").unwrap();
    assert_eq!(stage.store.handoff(id).await.unwrap(), None);
    assert_eq!(stage.store.task(before.1.id).await.unwrap(), None);
}
