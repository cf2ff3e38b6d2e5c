// SPDX-License-Identifier: Apache-2.0
//! Data that was brought from elsewhere may be older than the claims that workers hold, so the
//! fence epoch rises and all of those are stale.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tasuki_core::{HandoffId, State, TaskState};
use tasuki_store::{FILE, HandoffFilter, OpenError, Sqlite, SqliteOptions, Sync, maintenance};

use crate::stage::{Stage, code, proof_of};
use crate::support::{complete, to_any};
use crate::{database, open};

/// One handoff that waits, one that is held, one that is over.
struct Three {
    waiting: HandoffId,
    held: HandoffId,
    over: HandoffId,
}

async fn three(stage: &Stage) -> Three {
    let offered = || stage.offer_to(to_any("review"), |_| {});
    let (waiting, held, over) = (offered().await, offered().await, offered().await);
    stage.claim(held, "coder").await;
    let proof = stage.claim(over, "coder").await;
    stage.act(over, proof, complete("done")).await.unwrap();
    Three { waiting, held, over }
}

/// The claim that was held before is stale, everything else is as it was.
async fn raised(before: &Stage, stage: &Stage, ids: &Three, epoch: u64) {
    let held = before.handoff(ids.held).await;
    let old = proof_of(&held);
    assert_eq!(code(stage.act(ids.held, old, complete("done")).await), "stale_claim");
    let new = stage.claim(ids.held, "tester").await;
    assert!(new.fence > old.fence);
    assert_eq!(new.fence.epoch().0, epoch);
    for id in [ids.waiting, ids.over] {
        assert_eq!(stage.handoff(id).await, before.handoff(id).await);
        assert_eq!(stage.task_of(id).await, before.task_of(id).await);
    }
    let told = stage.story(ids.held).await;
    assert_eq!(told[..3], ["transfer_offered", "claimed", "lease_lost"]);
    stage.verified().await;
}

#[tokio::test]
async fn a_backup_of_a_running_store_is_restored_with_a_new_epoch() {
    let stage = open().await;
    let ids = three(&stage).await;
    let file = stage.base.path().join("backup.db");
    maintenance::backup(&stage.dir, &file).unwrap();
    // The store goes on and gives out a claim that the backup does not know.
    let unknown = stage.claim(ids.waiting, "tester").await;

    let dir = stage.base.path().join("restored");
    let verdict = maintenance::restore(&file, &dir, &mut |_| ()).unwrap();
    assert_eq!((verdict.first_bad, verdict.events), (None, stage.store.head().0 - 1));
    let restored = stage.go_on_in(&dir).await;
    let after = restored.claim(ids.waiting, "coder").await;
    assert!(after.fence > unknown.fence, "no fence is given out twice");
    assert_eq!(
        code(restored.act(ids.waiting, unknown, complete("done")).await),
        "stale_claim",
        "a claim from the future of the backup"
    );

    let again = restored.restart().await;
    assert_eq!(
        again.handoff(ids.waiting).await.fence,
        after.fence,
        "the next start raises nothing"
    );
    again.act(ids.waiting, after, complete("done")).await.unwrap();
}

#[tokio::test]
async fn what_a_backup_does_not_concern_is_as_it_was() {
    let stage = open().await;
    let ids = three(&stage).await;
    let file = stage.base.path().join("backup.db");
    maintenance::backup(&stage.dir, &file).unwrap();
    let dir = stage.base.path().join("restored");
    maintenance::restore(&file, &dir, &mut |_| ()).unwrap();
    let restored = stage.go_on_in(&dir).await;
    raised(&stage, &restored, &ids, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_one_moment_of_it() {
    let stage = open().await;
    let stop = Arc::new(AtomicBool::new(false));
    let (load, until) = (stage.clone(), stop.clone());
    let worker = tokio::spawn(async move {
        while !until.load(Ordering::Relaxed) {
            let id = load.offered().await;
            load.kill(id).await;
        }
    });
    for round in 0..5 {
        let head = stage.store.head();
        let (from, file) = (stage.dir.clone(), stage.base.path().join(format!("{round}.db")));
        let to = file.clone();
        tokio::task::spawn_blocking(move || maintenance::backup(&from, &to))
            .await
            .unwrap()
            .unwrap();
        let dir = stage.base.path().join(round.to_string());
        let verdict = maintenance::restore(&file, &dir, &mut |_| ()).unwrap();
        assert!(verdict.first_bad.is_none() && verdict.events >= head.0);
        let restored = stage.go_on_in(&dir).await;
        restored.verified().await;
        let filter = HandoffFilter { max: usize::MAX, ..Default::default() };
        for handoff in restored.store.list_handoffs(filter).await.unwrap() {
            let whole = matches!(handoff.state, State::DeadLettered { .. } | State::Pending { .. });
            assert!(whole, "{handoff:?}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    worker.await.unwrap();
}

async fn copied(stage: &Stage, name: &str) -> PathBuf {
    stage.store.close().await;
    let dir = stage.base.path().join(name);
    std::fs::create_dir(&dir).unwrap();
    std::fs::copy(stage.dir.join(FILE), dir.join(FILE)).unwrap();
    dir
}

#[tokio::test]
async fn a_plain_copy_in_another_directory_raises_the_epoch_too() {
    let stage = open().await;
    let ids = three(&stage).await;
    let dir = copied(&stage, "copy").await;
    let original = stage.go_on_in(&stage.dir).await;
    let copy = stage.go_on_in(&dir).await;
    raised(&original, &copy, &ids, 2).await;
    let dir = copied(&copy, "copy of the copy").await;
    let last = stage.go_on_in(&dir).await;
    let fence = last.claim(ids.waiting, "coder").await.fence;
    assert_eq!(fence.epoch().0, 3);
    last.verified().await;
}

#[tokio::test]
async fn a_backup_put_back_where_it_came_from_is_taken_on_request_and_raises_the_epoch() {
    let stage = open().await;
    let ids = three(&stage).await;
    let file = stage.base.path().join("backup.db");
    maintenance::backup(&stage.dir, &file).unwrap();
    let unknown = stage.claim(ids.waiting, "tester").await;
    stage.store.close().await;
    std::fs::copy(&file, stage.dir.join(FILE)).unwrap();
    // It has lost what was acknowledged here, and somebody must say that it may.
    let options = SqliteOptions { dir: stage.dir.clone(), sync: Sync::Full };
    let refused = Sqlite::open(options, stage.clock.clone()).await.err().unwrap();
    assert!(matches!(refused, OpenError::Lost { .. }), "{refused}");
    maintenance::accept_loss(&stage.dir, &*stage.clock, &mut |_| ()).unwrap();
    let stage = stage.go_on_in(&stage.dir).await;
    let new = stage.claim(ids.waiting, "coder").await;
    assert!(new.fence > unknown.fence);
    assert_eq!(code(stage.act(ids.waiting, unknown, complete("x")).await), "stale_claim");
}

#[tokio::test]
async fn what_is_left_of_an_earlier_database_does_not_get_into_a_restored_one() {
    let stage = open().await;
    let ids = three(&stage).await;
    let file = stage.base.path().join("backup.db");
    maintenance::backup(&stage.dir, &file).unwrap();
    stage.offered().await;
    // A crash, and somebody who removed the database but not its write-ahead log.
    let dir = stage.base.path().join("crashed");
    crate::stage::copy_as_after_a_crash(&stage.dir, &dir);
    std::fs::remove_file(dir.join(FILE)).unwrap();
    maintenance::restore(&file, &dir, &mut |_| ()).unwrap();
    let restored = stage.go_on_in(&dir).await;
    raised(&stage, &restored, &ids, 2).await;
}

#[tokio::test]
async fn a_crash_in_the_first_start_after_a_restore_raises_the_epoch_again() {
    let stage = open().await;
    let ids = three(&stage).await;
    let dir = copied(&stage, "copy").await;
    let first = stage.go_on_in(&dir).await;
    let old = first.claim(ids.waiting, "coder").await;
    first.store.close().await;
    // As if it had not come to binding the database to its directory.
    std::fs::remove_file(dir.join("instance")).unwrap();
    let second = stage.go_on_in(&dir).await;
    assert_eq!(code(second.act(ids.waiting, old, complete("x")).await), "stale_claim");
    let new = second.claim(ids.waiting, "coder").await;
    assert!(new.fence > old.fence);
    second.verified().await;
}

#[tokio::test]
async fn a_restore_is_refused_where_there_is_data_or_where_the_backup_is_damaged() {
    let stage = open().await;
    let ids = three(&stage).await;
    let file = stage.base.path().join("backup.db");
    maintenance::backup(&stage.dir, &file).unwrap();
    assert!(maintenance::backup(&stage.dir, &file).is_err(), "a backup overwrites nothing");
    stage.store.close().await;
    let error = maintenance::restore(&file, &stage.dir, &mut |_| ()).unwrap_err();
    assert!(matches!(error, OpenError::Io { step: "restore", .. }), "{error}");

    let db = rusqlite::Connection::open(&file).unwrap();
    db.execute("UPDATE event SET body = '{}' WHERE position = 2", []).unwrap();
    drop(db);
    let dir = stage.base.path().join("restored");
    let error = maintenance::restore(&file, &dir, &mut |_| ()).unwrap_err();
    let OpenError::Damaged(finding) = &error else { panic!("{error}") };
    assert_eq!(finding.position.0, 2);
    assert!(!dir.join(FILE).exists());

    let stage = stage.go_on_in(&stage.dir).await;
    assert_eq!(stage.task_of(ids.over).await.state, TaskState::Completed);
    let epoch: i64 = database(&stage.dir)
        .query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(epoch, 1, "nothing was restored here");
}
