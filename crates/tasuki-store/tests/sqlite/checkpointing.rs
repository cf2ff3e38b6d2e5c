// SPDX-License-Identifier: Apache-2.0
//! The write-ahead log and the signed checkpoints.

use std::sync::Arc;
use std::time::Duration;

use tasuki_core::commands::Command;
use tasuki_core::{Body, Position};
use tasuki_store::{FILE, Sqlite, SqliteOptions, Sync};

use crate::open;
use crate::stage::Stage;
use crate::support::to;

/// A safety net only.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_write_ahead_log_is_moved_and_started_over_while_work_goes_on() {
    let stage = open().await;
    stage.store.close().await;
    let options = SqliteOptions { dir: stage.dir.clone(), sync: Sync::Off };
    let store = Sqlite::open(options, stage.clock.clone()).await.unwrap();
    let stage = Stage { store: Arc::new(store), ..stage };
    let large = Body::of(&serde_json::json!({ "text": "x".repeat(256 * 1024) }));
    let size = |name: &str| std::fs::metadata(stage.dir.join(name)).map_or(0, |file| file.len());
    let work = async {
        // Enough for the log to be moved several times over.
        for _ in 0..300 {
            let mut offer = stage.offer(to("coder"));
            offer.envelope = large.clone();
            stage.run(Command::offer(offer)).await.unwrap();
        }
        while size(FILE) < 32 << 20 {
            stage.offered().await;
        }
    };
    tokio::time::timeout(PATIENCE, work).await.expect("the log is moved");
    assert!(size("tasuki.db-wal") < 512 << 20);
}

#[tokio::test]
async fn an_idle_store_seals_what_it_has() {
    let stage = open().await;
    stage.offered().await;
    stage.offered().await;
    let sealed = async {
        loop {
            let checkpoints = stage.store.checkpoints(Position(0), 10).await.unwrap();
            if checkpoints.last().is_some_and(|last| last.position == stage.store.head()) {
                return checkpoints;
            }
            stage.clock.advance_ms(20);
            tokio::task::yield_now().await;
        }
    };
    let checkpoints = tokio::time::timeout(PATIENCE, sealed).await.unwrap();
    assert!(checkpoints.iter().all(tasuki_store::Checkpoint::is_signed));
    assert_eq!(stage.store.verify().await.unwrap().unsealed, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_store_seals_after_so_many_events() {
    let stage = open().await;
    for _ in 0..5 {
        let offers = (0..1000).map(|_| Command::offer(stage.offer(to("coder"))));
        stage.store.execute(offers.collect()).await.unwrap();
    }
    let verdict = stage.store.verify().await.unwrap();
    assert!(verdict.checkpoints >= 1 && verdict.unsealed < 4096, "{verdict:?}");
}
