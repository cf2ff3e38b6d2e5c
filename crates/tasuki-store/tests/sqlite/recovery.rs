// SPDX-License-Identifier: Apache-2.0
//! After a crash: everything acknowledged is there, nothing twice, and work goes on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tasuki_core::commands::Command;
use tasuki_core::{HandoffId, Position};
use tasuki_store::HandoffFilter;
use tokio::task::JoinSet;

use crate::open;
use crate::stage::{Stage, copy_as_after_a_crash, proof_of};
use crate::support::{complete, to};

const WORKERS: usize = 16;
const LIVES: usize = 12;
const STORY: [&str; 3] = ["transfer_offered", "claimed", "completed"];

/// How many steps of each handoff were acknowledged.
type Acknowledged = Arc<Mutex<BTreeMap<HandoffId, usize>>>;

async fn work(stage: Stage, worker: usize, acknowledged: Acknowledged) {
    let name = format!("agent-{worker}");
    let tell = |id, steps| {
        acknowledged.lock().unwrap().insert(id, steps);
    };
    for _ in 0..LIVES {
        let id = stage.offer_to(to(&name), |_| {}).await;
        tell(id, 1);
        let proof = stage.claim(id, &name).await;
        tell(id, 2);
        stage.act(id, proof, complete("done")).await.unwrap();
        tell(id, 3);
    }
}

/// Everything that was acknowledged is there, and nothing is there twice.
async fn holds(stage: &Stage, acknowledged: &BTreeMap<HandoffId, usize>) {
    stage.verified().await;
    let mut stories: BTreeMap<HandoffId, Vec<&str>> = BTreeMap::new();
    for entry in stage.log().await {
        let id = entry.sealed.record.handoff_id.unwrap();
        stories.entry(id).or_default().push(entry.sealed.record.event.kind());
    }
    for (id, story) in &stories {
        assert_eq!(story[..], STORY[..story.len()], "{id}");
        let state = ["pending", "claimed", "completed"][story.len() - 1];
        assert_eq!(stage.state(*id).await, state);
    }
    for (id, steps) in acknowledged {
        let kept = stories.get(id).map_or(0, Vec::len);
        assert!(kept >= *steps, "{id}: {steps} steps were acknowledged, {kept} are there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_acknowledged_before_a_crash_is_there_after_it() {
    let stage = open().await;
    let acknowledged = Acknowledged::default();
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        workers.spawn(work(stage.clone(), worker, acknowledged.clone()));
    }
    // Crashes at about even distances in the work, wherever the writer is just then.
    let mut crashes = Vec::new();
    for share in 1..8 {
        let enough = WORKERS * LIVES * STORY.len() * share / 8;
        while (stage.store.head().0 as usize) < enough {
            tokio::task::yield_now().await;
        }
        let known = acknowledged.lock().unwrap().clone();
        let copy = stage.base.path().join(format!("crash-{share}"));
        copy_as_after_a_crash(&stage.dir, &copy);
        crashes.push((copy, known));
    }
    workers.join_all().await;
    assert_eq!(acknowledged.lock().unwrap().len(), WORKERS * LIVES);
    for (copy, known) in crashes {
        let stage = stage.go_on_in(&copy).await;
        holds(&stage, &known).await;
        // Work goes on where it was: whoever held something may finish it.
        for id in known.keys() {
            let handoff = stage.handoff(*id).await;
            if handoff.state.claim().is_some() {
                stage.act(*id, proof_of(&handoff), complete("done")).await.unwrap();
            }
        }
        stage.verified().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_rows_catch_up_loses_nothing() {
    let stage = open().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let offers: Vec<_> = (0..1000).map(|_| stage.offer(to("coder"))).collect();
        ids.extend(offers.iter().map(|offer| offer.handoff));
        let offers = offers.into_iter().map(Command::offer).collect();
        assert!(stage.store.execute(offers).await.unwrap().iter().all(Result::is_ok));
    }
    for id in &ids[..50] {
        let proof = stage.claim(*id, "coder").await;
        stage.act(*id, proof, complete("done")).await.unwrap();
    }
    // The idle writer catches up piece by piece.
    let mut copies = Vec::new();
    for behind in [5000, 3000, 1500, 1] {
        let caught_up = async {
            while stage.store.stats().projection_lag > behind {
                stage.clock.advance_ms(20);
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), caught_up).await.unwrap();
        let copy = stage.base.path().join(format!("behind-{behind}"));
        copy_as_after_a_crash(&stage.dir, &copy);
        copies.push(copy);
    }
    let filter = || HandoffFilter { max: usize::MAX, ..Default::default() };
    let expected = stage.store.list_handoffs(filter()).await.unwrap();
    assert_eq!(expected.len(), ids.len());
    for copy in copies {
        let stage = stage.go_on_in(&copy).await;
        assert_eq!(stage.store.list_handoffs(filter()).await.unwrap(), expected);
        assert_eq!(stage.claim_next("coder", 1000).await, ids[50..1050]);
        stage.verified().await;
    }
}

#[tokio::test]
async fn a_torn_end_of_the_write_ahead_log_is_left_out() {
    let stage = open().await;
    let ids = [stage.offered().await, stage.offered().await];
    let copy = stage.base.path().join("torn");
    copy_as_after_a_crash(&stage.dir, &copy);
    // A frame that was half written when the power went.
    let wal = copy.join("tasuki.db-wal");
    let mut bytes = std::fs::read(&wal).unwrap();
    bytes.extend(std::iter::repeat_n(0xa5, 9999));
    std::fs::write(&wal, bytes).unwrap();
    let stage = stage.go_on_in(&copy).await;
    assert_eq!(stage.claim_next("coder", 10).await, ids);
    assert_eq!(stage.log().await.last().unwrap().sealed.position, Position(4));
    stage.verified().await;
}
