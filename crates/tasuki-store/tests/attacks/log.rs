// SPDX-License-Identifier: Apache-2.0
//! A database that is put back as it was an hour ago.

use tasuki_store::{FILE, OpenError, maintenance};

use crate::{database, open, refusal};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_in_place_of_the_database_is_not_taken_for_it() {
    let stage = open().await;
    let id = stage.offered().await;
    stage.store.close().await;
    let old = stage.base.path().join("old.db");
    std::fs::copy(stage.dir.join(FILE), &old).unwrap();
    let stage = stage.go_on_in(&stage.dir).await;
    stage.claim(id, "coder").await;
    stage.store.close().await;
    std::fs::copy(&old, stage.dir.join(FILE)).unwrap();
    let refused = refusal(&stage.dir).await;
    assert!(
        matches!(&refused, OpenError::Lost { .. }),
        "the same fence would be given twice: {refused}"
    );
    assert!(refused.to_string().contains("--accept-loss"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_is_refused_wherever_it_says_it_is_from() {
    for change in [
        "UPDATE meta SET value = 'backup' WHERE name = 'instance'",
        "DELETE FROM meta WHERE name = 'instance'",
        "UPDATE meta SET value = 'backup' WHERE name = 'instance'; \
         DELETE FROM meta WHERE name = 'row_sums'; DELETE FROM checkpoint",
    ] {
        let stage = open().await;
        let id = stage.offered().await;
        stage.store.close().await;
        let old = stage.base.path().join("old.db");
        std::fs::copy(stage.dir.join(FILE), &old).unwrap();
        let stage = stage.go_on_in(&stage.dir).await;
        let proof = stage.claim(id, "coder").await;
        stage.store.close().await;
        std::fs::copy(&old, stage.dir.join(FILE)).unwrap();
        database(&stage.dir).execute_batch(change).unwrap();
        let refused = refusal(&stage.dir).await;
        assert!(matches!(&refused, OpenError::Lost { .. }), "{change}: {refused}");
        // Who decides to go on without what was lost makes the claim stale.
        maintenance::accept_loss(&stage.dir, &*stage.clock, &mut |_| ()).unwrap();
        let stage = stage.go_on_in(&stage.dir).await;
        assert!(stage.claim(id, "coder").await.fence > proof.fence, "{change}");
        stage.store.close().await;
        stage.go_on_in(&stage.dir).await.store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_was_taken_away_is_not_begun_anew() {
    let stage = open().await;
    stage.offered().await;
    stage.store.close().await;
    for name in [FILE, "tasuki.db-wal", "tasuki.db-shm", "instance"] {
        let _ = std::fs::remove_file(stage.dir.join(name));
    }
    let refused = refusal(&stage.dir).await;
    assert!(matches!(&refused, OpenError::Lost { .. }), "{refused}");
}
