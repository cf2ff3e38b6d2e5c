// SPDX-License-Identifier: Apache-2.0
//! What only a store that keeps files can show: restarts, crashes, backups, tampering. What every
//! backend does is in the conformance suite.
#![cfg(test)]
#![allow(clippy::disallowed_methods, reason = "a wait by the real clock is a safety net")]

mod checkpointing;
mod documents;
mod epoch;
mod keys;
mod opening;
mod projections;
mod rebuild;
mod recovery;
mod tampering;

#[path = "../../../tasuki-core/tests/rules/random.rs"]
mod random;
#[allow(dead_code, reason = "the conformance suite uses the rest")]
#[path = "../conformance/stage.rs"]
mod stage;
#[allow(dead_code, reason = "the core's stories use the rest")]
#[path = "../../../tasuki-core/tests/rules/support.rs"]
mod support;

use std::path::Path;

use rusqlite::Connection;
use stage::{Backend, Stage};
use tasuki_store::FILE;

async fn open() -> Stage {
    Stage::open(Backend::Sqlite).await
}

/// A connection past the store, as somebody with a database tool would have.
fn database(dir: &Path) -> Connection {
    Connection::open(dir.join(FILE)).unwrap()
}
