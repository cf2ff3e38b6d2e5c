// SPDX-License-Identifier: Apache-2.0
//! What only a store that several brokers share can show: brokers that race, a database that goes
//! away and comes back, a failover. What every backend does is in the conformance suite.
#![cfg(test)]
#![allow(clippy::disallowed_methods, reason = "a wait by the real clock is a safety net")]

mod alive;
mod brokers;
mod copying;
mod failover;
mod opening;
mod proxy;
mod trouble;
mod work;

#[allow(dead_code, reason = "the conformance suite uses the rest")]
#[path = "../conformance/stage.rs"]
mod stage;
#[allow(dead_code, reason = "the core's stories use the rest")]
#[path = "../../../tasuki-core/tests/rules/support.rs"]
mod support;

use std::sync::Arc;

use stage::{BEGIN, Backend, Stage};
use tasuki_store::{ManualClock, Postgres, PostgresError, PostgresOptions};

/// Options for a database, with a key made for the occasion.
fn options(url: &str) -> PostgresOptions {
    let dir = tempfile::tempdir().unwrap();
    let key = tasuki_store::key::load(dir.path()).unwrap();
    PostgresOptions { connections_max: 6, ..PostgresOptions::new(url, key) }
}

async fn open(url: &str) -> Result<Postgres, PostgresError> {
    Postgres::open(options(url), ManualClock::at(BEGIN)).await
}

/// A broker's store on a database. Brokers on one database have one clock and one source of ids.
async fn broker(url: &str, like: Option<&Stage>) -> Stage {
    broker_with(options(url), like).await
}

async fn broker_with(options: PostgresOptions, like: Option<&Stage>) -> Stage {
    let clock = like.map_or_else(|| ManualClock::at(BEGIN), |stage| stage.clock.clone());
    let store = Arc::new(Postgres::open(options, clock.clone()).await.unwrap());
    let base = Arc::new(tempfile::tempdir().unwrap());
    let ids = like.map_or_else(Arc::default, |stage| stage.ids.clone());
    let dir = base.path().to_owned();
    Stage { store, clock, dir, base, backend: Backend::Postgres, ids }
}
