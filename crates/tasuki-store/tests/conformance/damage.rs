// SPDX-License-Identifier: Apache-2.0
//! What a store makes of a damaged log of its own. The stories know of its files only that batches are
//! appended to one of them; how one is cut or a bit of it flipped is the backend's.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tasuki_core::{HandoffId, ids::Epoch};
use tasuki_store::{OpenError, Sqlite, SqliteOptions, Sync, maintenance};

use crate::stage::{Backend, Stage, copy_as_after_a_crash};

/// The file that a backend appends batches to, and how far a batch's first record reaches into it.
fn log_of(backend: Backend, dir: &Path) -> (PathBuf, u64) {
    match backend {
        Backend::Sqlite => (dir.join("tasuki.db-wal"), 1000),
        Backend::Volatile | Backend::Postgres => panic!("{backend:?} has no log of its own"),
    }
}

fn end_of_log(stage: &Stage) -> u64 {
    std::fs::metadata(log_of(stage.backend, &stage.dir).0).unwrap().len()
}

/// The files as a crash leaves them, with what was acknowledged up to one moment or another.
fn crashed(stage: &Stage, name: &str, acknowledged: &[u8]) -> PathBuf {
    let dir = stage.base.path().join(name);
    copy_as_after_a_crash(&stage.dir, &dir);
    std::fs::write(dir.join("acknowledged"), acknowledged).unwrap();
    dir
}

fn acknowledged(stage: &Stage) -> Vec<u8> {
    std::fs::read(stage.dir.join("acknowledged")).unwrap()
}

fn flip(backend: Backend, dir: &Path, batch: u64) {
    let (path, into) = log_of(backend, dir);
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, batch + into).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], batch + into).unwrap();
}

fn tear(backend: Backend, dir: &Path, batch: u64) {
    let (path, into) = log_of(backend, dir);
    OpenOptions::new().write(true).open(path).unwrap().set_len(batch + into).unwrap();
}

async fn refused(stage: &Stage, dir: &Path) {
    let options = SqliteOptions { dir: dir.to_owned(), sync: Sync::Full };
    let error =
        Sqlite::open(options, stage.clock.clone()).await.err().expect("the start is refused");
    assert!(matches!(error, OpenError::Lost { .. }), "{error}");
}

/// Goes on without what was lost: what is left is there, and no fence is given twice.
async fn goes_on(stage: &Stage, dir: &Path, kept: HandoffId, lost: HandoffId) {
    maintenance::accept_loss(dir, &*stage.clock, &mut |_| ()).unwrap();
    let on = stage.go_on_in(dir).await;
    assert!(on.store.handoff(lost).await.unwrap().is_none());
    let proof = on.claim(kept, "coder").await;
    assert!(proof.fence.epoch() > Epoch(1), "the epoch was raised");
    on.verified().await;
    on.store.close().await;
    on.go_on_in(dir).await.store.close().await;
}

pub(crate) async fn a_bad_record_that_whole_batches_follow_is_damage(stage: Stage) {
    let kept = stage.offered().await;
    let before = acknowledged(&stage);
    let batch = end_of_log(&stage);
    let lost = stage.offered().await;
    for _ in 0..3 {
        stage.offered().await;
    }
    // Whether or not the note beside the log is behind.
    for (name, told) in [("all", acknowledged(&stage)), ("behind", before)] {
        let dir = crashed(&stage, name, &told);
        flip(stage.backend, &dir, batch);
        refused(&stage, &dir).await;
        goes_on(&stage, &dir, kept, lost).await;
    }
}

pub(crate) async fn an_end_before_what_was_acknowledged_is_damage(stage: Stage) {
    let kept = stage.offered().await;
    let batch = end_of_log(&stage);
    let lost = stage.offered().await;
    let dir = crashed(&stage, "torn", &acknowledged(&stage));
    tear(stage.backend, &dir, batch);
    refused(&stage, &dir).await;
    goes_on(&stage, &dir, kept, lost).await;
}

pub(crate) async fn a_torn_last_batch_that_nobody_was_told_of_is_dropped(stage: Stage) {
    let kept = stage.offered().await;
    let (told, batch) = (acknowledged(&stage), end_of_log(&stage));
    let torn = stage.offered().await;
    for (name, damage) in [("torn", tear as fn(Backend, &Path, u64)), ("whole", |_, _, _| ())] {
        let dir = crashed(&stage, name, &told);
        damage(stage.backend, &dir, batch);
        let on = stage.go_on_in(&dir).await;
        assert_eq!(on.store.handoff(torn).await.unwrap().is_some(), name == "whole");
        assert_eq!(on.claim(kept, "coder").await.fence.epoch(), Epoch(1));
        on.verified().await;
    }
}
