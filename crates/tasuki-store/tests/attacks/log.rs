// SPDX-License-Identifier: Apache-2.0
//! A database that is put back as it was an hour ago.

use tasuki_store::{FILE, OpenError};

use crate::{open, refusal};

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
