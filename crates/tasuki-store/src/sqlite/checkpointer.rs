// SPDX-License-Identifier: Apache-2.0
//! Moving the write-ahead log into the database file. It takes long and syncs the big file, so a
//! thread of its own does it while commits go on; the writer only does the short rest, because the
//! log starts over only when a checkpoint has reached its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use rusqlite::Connection;

use crate::workers::{Until, Workers};

/// How many pages the write-ahead log may hold before it is moved.
const PAGES_MAX: i64 = 2048;
/// How many of them the writer moves itself, unless the thread cannot keep up at all.
const REST_PAGES_MAX: i64 = 512;
const LOG_PAGES_MAX: i64 = 8 * PAGES_MAX;
/// How many commits pass between two looks at the log.
const COMMITS_BETWEEN: u32 = 64;

pub(crate) struct Checkpointer {
    wake: SyncSender<()>,
    /// The thread has moved all that was there when it looked.
    moved: Arc<AtomicBool>,
    commits: u32,
}

impl Checkpointer {
    pub(crate) fn start(db: Connection, workers: &Workers) -> Self {
        let (wake, woken) = sync_channel(1);
        let moved = Arc::new(AtomicBool::new(false));
        let done = moved.clone();
        workers.thread("checkpointer", Until::Done, move || {
            while woken.recv() == Ok(()) {
                // After a failure (a full disk) nothing is hurried: what is left of the space
                // belongs to work that is to be finished.
                done.store(move_pages(&db), Ordering::Release);
            }
        });
        Self { wake, moved, commits: 0 }
    }

    /// Called by the writer after each commit.
    pub(crate) fn wrote(&mut self, db: &Connection) {
        if self.moved.swap(false, Ordering::AcqRel) {
            let (pages, moved) = log_pages(db);
            // What came in while the thread was at work is little; moving it here lets the log
            // start over.
            if pages - moved <= REST_PAGES_MAX || pages >= LOG_PAGES_MAX {
                move_pages(db);
            } else {
                // Each round of the thread leaves less behind, if it begins at once.
                self.wake();
            }
        }
        self.commits += 1;
        if self.commits >= COMMITS_BETWEEN {
            self.commits = 0;
            let (pages, moved) = log_pages(db);
            if pages - moved >= PAGES_MAX {
                self.wake();
            }
        }
    }

    fn wake(&self) {
        // A full queue means that the thread is at it already.
        let _ = self.wake.try_send(());
    }

    /// Moves the whole log, so that the database is in one file that can be copied.
    pub(crate) fn finish(&self, db: &Connection) {
        if let Err(error) = checkpoint(db, "PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "checkpoint failed; the next start reads the log instead");
        }
    }
}

/// Whether it could be done.
fn move_pages(db: &Connection) -> bool {
    let moved = checkpoint(db, "PRAGMA wal_checkpoint(PASSIVE)");
    if let Err(error) = &moved {
        tracing::warn!(%error, "checkpoint failed, trying again later");
    }
    moved.is_ok()
}

/// How many pages the log holds, and how many of them were moved.
fn log_pages(db: &Connection) -> (i64, i64) {
    checkpoint(db, "PRAGMA wal_checkpoint(NOOP)").unwrap_or((0, 0))
}

fn checkpoint(db: &Connection, pragma: &str) -> rusqlite::Result<(i64, i64)> {
    db.query_row(pragma, [], |row| Ok((row.get(1)?, row.get(2)?)))
}
