// SPDX-License-Identifier: Apache-2.0

use clap::Args;
use tasuki_http::wire;

use crate::client::Connect;
use crate::exit::Exit;
use crate::output::{Facts, Output, bytes};

#[derive(Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    connect: Connect,
}

impl Stats {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let reply = self.connect.client()?.get("/v1/stats", &[]).await?;
        output.reply(&reply, for_people)?;
        Ok(Exit::Done)
    }
}

fn for_people(stats: wire::Stats) -> String {
    let live = format!("{} (about {})", stats.live_handoffs, bytes(stats.live_bytes));
    Facts::default()
        .with("version", stats.version)
        .with("time", stats.now)
        .with("events", format!("{} in all, {} since the start", stats.head, stats.events))
        .with("commits", format!("{} (mean batch {:.1})", stats.commits, stats.mean_batch))
        .with("commands", stats.commands)
        .with("live handoffs", live)
        .with("waiting handoffs", stats.waiting_handoffs)
        .with("idempotency keys", stats.idempotency_keys)
        .with("projection lag", stats.projection_lag)
        .maybe("memory", stats.resident_bytes.map(bytes))
        .with("disk", if stats.disk_full { "full: no new work is taken" } else { "has room" })
        .text()
}
