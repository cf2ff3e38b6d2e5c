// SPDX-License-Identifier: Apache-2.0
//! Attacks by somebody who can write where the store keeps its data and does not have the broker's key,
//! and faults that look like one: one file for each wall of `docs/security.md`.
#![cfg(test)]
#![allow(clippy::disallowed_methods, reason = "a wait by the real clock is a safety net")]

mod bodies;
mod log;
mod rows;
mod shared;

#[allow(dead_code, reason = "the conformance suite uses the rest")]
#[path = "../conformance/stage.rs"]
mod stage;
#[allow(dead_code, reason = "the core's stories use the rest")]
#[path = "../../../tasuki-core/tests/rules/support.rs"]
mod support;

use std::path::Path;

use rusqlite::Connection;
use stage::{BEGIN, Backend, Stage};
use tasuki_store::{FILE, ManualClock, OpenError, Sqlite, SqliteOptions, Sync};

async fn open() -> Stage {
    Stage::open(Backend::Sqlite).await
}

/// A connection past the store, as somebody with a database tool would have.
fn database(dir: &Path) -> Connection {
    Connection::open(dir.join(FILE)).unwrap()
}

/// Why a broker would not start on a directory.
async fn refusal(dir: &Path) -> OpenError {
    let options = SqliteOptions { dir: dir.to_owned(), sync: Sync::Full };
    Sqlite::open(options, ManualClock::at(BEGIN)).await.err().expect("the start is refused")
}
