// SPDX-License-Identifier: Apache-2.0

use clap::Args;
use tasuki_protocol as wire;

use crate::client::Connect;
use crate::exit::Exit;
use crate::output::{Facts, Output, bytes, span};

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
    let facts = Facts::default().with("version", stats.version).with("time", stats.now);
    let disk = if stats.disk_full { "full: no new work is taken" } else { "has room" };
    let Some(store) = stats.store else {
        return facts
            .maybe("tenant", stats.tenant)
            .with("live handoffs", stats.live_handoffs)
            .with("handoffs", by_state(&stats.handoffs))
            .with("tasks", by_state(&stats.tasks))
            .maybe("stored", stats.stored_bytes.map(bytes))
            .with("disk", disk)
            .text();
    };
    let live = format!("{} (about {})", stats.live_handoffs, bytes(store.live_bytes));
    facts
        .with("log", format!("at {}, {} events since the start", store.head, store.events))
        .with("commits", format!("{} (mean batch {:.1})", store.commits, store.mean_batch))
        .with("commands", store.commands)
        .with("live handoffs", live)
        .with("handoffs", by_state(&stats.handoffs))
        .with("tasks", by_state(&stats.tasks))
        .with("waiting handoffs", store.waiting_handoffs)
        .with("idempotency keys", store.idempotency_keys)
        .with("projection lag", store.projection_lag)
        .maybe("memory", store.resident_bytes.map(bytes))
        .with("disk", disk)
        .text()
}

/// What is in which state, and how long the oldest of it waits.
fn by_state(counts: &[wire::StateCount]) -> String {
    let some = counts.iter().filter(|count| count.count > 0);
    let words = some.map(|it| match it.oldest_age_ms {
        Some(age) => format!("{} {} (oldest {})", it.count, it.state, span(age)),
        None => format!("{} {}", it.count, it.state),
    });
    let words: Vec<_> = words.collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
