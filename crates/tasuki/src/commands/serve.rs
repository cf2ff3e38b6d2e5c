// SPDX-License-Identifier: Apache-2.0
//! `tasuki serve`: opens the store, starts the engine, opens the doors, and ends all of it in the
//! opposite order.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tasuki_engine::{Engine, Settings, SystemIds};
use tasuki_http::Limits;
use tasuki_store::{Sqlite, SqliteOptions, Sync, SystemClock};

#[derive(Args)]
pub(crate) struct Serve {
    /// Where the data is kept
    #[arg(long, env = "TASUKI_DATA", default_value = "./tasuki-data")]
    data: PathBuf,
    /// The address to listen on
    #[arg(long, env = "TASUKI_LISTEN", default_value = "127.0.0.1:8788")]
    listen: SocketAddr,
    /// Whether a commit waits for the disk; `off` is for measuring only and loses data
    #[arg(long, env = "TASUKI_SYNC", default_value = "full")]
    sync: SyncArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum SyncArg {
    Full,
    Off,
}

impl Serve {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let sync = match self.sync {
            SyncArg::Full => Sync::Full,
            SyncArg::Off => Sync::Off,
        };
        let options = SqliteOptions { dir: self.data.clone(), sync };
        let store = Sqlite::open(options, SystemClock::start()).await?;
        let engine = Engine::start(Arc::new(store), Arc::new(SystemIds), Settings::default());
        let listener = tokio::net::TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("cannot listen on {}", self.listen))?;
        let limits = Limits::default();
        let connections_max = limits.connections_max;
        let router = tasuki_http::router(engine.clone(), limits);
        let end = {
            let engine = engine.clone();
            async move {
                let _ = tokio::signal::ctrl_c().await;
                engine.end_waits();
            }
        };
        tasuki_http::serve(listener, router, connections_max, end).await;
        engine.close().await;
        Ok(())
    }
}
