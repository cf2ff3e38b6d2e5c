// SPDX-License-Identifier: Apache-2.0
//! What tests of several crates share. Nothing of it is shipped.
#![allow(clippy::unwrap_used, reason = "what goes wrong in here is the end of a test")]

pub mod stage;

/// An empty database on the PostgreSQL that the tests of a process share.
#[must_use]
pub fn database() -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(scratch_postgres::shared().database())
}
