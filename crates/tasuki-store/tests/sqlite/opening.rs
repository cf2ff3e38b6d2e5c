// SPDX-License-Identifier: Apache-2.0
//! Opening a data directory, and refusing to.

use std::path::Path;
use std::sync::Arc;

use tasuki_store::{
    Clock, FILE, HandoffFilter, ManualClock, OpenError, Sqlite, SqliteOptions, Store, Sync,
    TaskFilter, maintenance,
};

use crate::stage::{BEGIN, Stage};
use crate::support::{HOUR, SECOND, complete};
use crate::{database, open};

async fn try_open(dir: &Path) -> Result<Sqlite, OpenError> {
    let options = SqliteOptions { dir: dir.to_owned(), sync: Sync::Full };
    Sqlite::open(options, ManualClock::at(BEGIN)).await
}

#[track_caller]
fn names_this_process<T>(opened: Result<T, OpenError>, dir: &Path) {
    let error = opened.err().expect("the directory is in use");
    let text = error.to_string();
    let OpenError::Locked { pid, .. } = error else { panic!("{text}") };
    assert_eq!(pid, std::process::id().to_string());
    assert!(text.contains(&pid) && text.contains(&dir.display().to_string()), "{text}");
}

#[tokio::test]
async fn a_directory_in_use_is_refused_with_the_process_that_uses_it() {
    let stage = open().await;
    names_this_process(try_open(&stage.dir).await, &stage.dir);
    names_this_process(maintenance::rebuild(&stage.dir, &*stage.clock, &mut |_| ()), &stage.dir);
    let backup = stage.base.path().join("backup.db");
    maintenance::backup(&stage.dir, &backup).unwrap();
    names_this_process(maintenance::restore(&backup, &stage.dir, &mut |_| ()), &stage.dir);
    stage.offered().await;
}

#[tokio::test]
async fn closing_lets_go_of_the_directory_even_while_somebody_holds_the_store() {
    let stage = open().await;
    stage.offered().await;
    stage.store.close().await;
    let again = try_open(&stage.dir).await.unwrap();
    assert_eq!(again.head().0, 1);
}

#[tokio::test]
async fn after_closing_the_database_is_one_file() {
    let stage = open().await;
    let id = stage.offered().await;
    // A listing opens a reader.
    stage.store.list_handoffs(HandoffFilter { max: 1, ..Default::default() }).await.unwrap();
    stage.store.close().await;
    let copy = stage.base.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    std::fs::copy(stage.dir.join(FILE), copy.join(FILE)).unwrap();
    let stage = stage.go_on_in(&copy).await;
    assert_eq!(stage.state(id).await, "pending");
}

#[tokio::test]
async fn data_of_a_newer_schema_is_refused() {
    let stage = open().await;
    stage.store.close().await;
    database(&stage.dir).pragma_update(None, "user_version", 99).unwrap();
    let error = try_open(&stage.dir).await.err().unwrap();
    assert!(matches!(error, OpenError::TooNew { found: 99, known } if known < 99), "{error}");
    assert!(error.to_string().contains("newer program"));
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let error = try_open(&file).await.err().unwrap();
    assert!(matches!(error, OpenError::Io { .. }));
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
}

async fn everything(store: &dyn Store) -> String {
    let filter = HandoffFilter { max: 1000, ..Default::default() };
    let handoffs = store.list_handoffs(filter).await.unwrap();
    let filter = TaskFilter { max: 1000, ..Default::default() };
    let tasks = store.list_tasks(filter).await.unwrap();
    let log = store.events(tasuki_core::Position(0), 1000).await.unwrap();
    format!("{handoffs:#?}\n{tasks:#?}\n{log:#?}")
}

#[tokio::test]
async fn opening_again_and_again_keeps_everything() {
    let mut stage = open().await;
    let mut done = Vec::new();
    for _ in 0..3 {
        let (first, second) = (stage.offered().await, stage.offered().await);
        let proof = stage.claim(first, "coder").await;
        stage.act(first, proof, complete("done")).await.unwrap();
        done.push((first, second));
        let before = everything(&*stage.store).await;
        stage = stage.restart().await;
        assert_eq!(everything(&*stage.store).await, before);
        let keys = stage.store.checkpoints(tasuki_core::Position(0), 100).await.unwrap();
        assert!(keys.iter().all(|checkpoint| checkpoint.key == keys[0].key), "one broker, one key");
    }
    let waiting: Vec<_> = done.iter().map(|(_, second)| *second).collect();
    assert_eq!(stage.claim_next("coder", 10).await, waiting);
    stage.verified().await;
}

#[tokio::test]
async fn what_is_due_and_the_counts_are_known_after_a_restart() {
    let stage = open().await;
    let id = stage.offered().await;
    stage.offered().await;
    stage.claim(id, "coder").await;
    let before = stage.store.stats();
    let stage = stage.restart().await;
    assert_eq!(*stage.store.next_due().borrow(), Some(stage.now().plus_ms(30 * SECOND)));
    // Any command tells that the writer is at work.
    stage.sweep().await;
    let stats = stage.store.stats();
    assert_eq!(
        (stats.live_handoffs, stats.waiting_handoffs),
        (before.live_handoffs, before.waiting_handoffs)
    );
}

#[tokio::test]
async fn a_restart_grants_every_holder_a_full_lease() {
    let stage = open().await;
    let id = stage.offered().await;
    let proof = stage.claim(id, "coder").await;
    stage.store.close().await;
    stage.clock.advance_ms(60 * SECOND);
    let stage = stage.go_on_in(&stage.dir).await;
    assert!(stage.sweep().await.is_empty(), "the silence was ours");
    assert!(stage.wait_and_sweep(30 * SECOND - 1).await.is_empty());
    stage.act(id, proof, complete("done")).await.unwrap();
}

#[tokio::test]
async fn a_clock_behind_the_last_event_is_moved_up_to_it() {
    let stage = open().await;
    stage.clock.advance_ms(HOUR);
    let id = stage.offered().await;
    let last = stage.handoff(id).await.offered_at;
    stage.store.close().await;

    let slow = ManualClock::at(BEGIN);
    let options = SqliteOptions { dir: stage.dir.clone(), sync: Sync::Full };
    let store = Sqlite::open(options, slow.clone()).await.unwrap();
    assert_eq!(slow.now(), last);
    let stage = Stage { store: Arc::new(store), clock: slow, ..stage };
    stage.claim(id, "coder").await;
    let log = stage.log().await;
    assert!(log.is_sorted_by_key(|entry| entry.sealed.record.at));
}
