// SPDX-License-Identifier: Apache-2.0
//! Whether claims cost the same however much is stored: claims on an empty store, then the same
//! claims beside a million finished and two hundred thousand waiting handoffs.

use std::time::Instant;

use clap::Args;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tasuki_cli::output::Output;

use super::cycle::{self, claim, complete, histogram, offer, percentiles, record};
use super::http::{Connection, host, number, stats};

#[derive(Args)]
pub(super) struct Claims {
    /// The broker to measure; its store should be empty
    #[arg(long, env = "TASUKI_URL", default_value = "http://127.0.0.1:8788")]
    url: String,
    /// How many finished handoffs to store
    #[arg(long, default_value_t = 1_000_000)]
    stored: usize,
    /// How many waiting handoffs to store
    #[arg(long, default_value_t = 200_000)]
    waiting: usize,
    /// How many claims to measure in each round
    #[arg(long, default_value_t = 20_000)]
    claims: usize,
    /// How many clients work at once
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// How many bytes an envelope's payload has
    #[arg(long, default_value_t = 256)]
    payload: usize,
}

/// How many handoffs one request of the filling carries.
const FILL_BATCH: usize = 100;

impl Claims {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<()> {
        let host = host(&self.url)?;
        let empty = self.measure(&host).await?;
        fill(&host, "finished", self.stored, self.payload, true).await?;
        let before = stats(&host).await?;
        // These wait in the very queue that is claimed from, and in one beside it.
        fill(&host, "bench", self.waiting / 2, self.payload, false).await?;
        fill(&host, "other", self.waiting - self.waiting / 2, self.payload, false).await?;
        let after = stats(&host).await?;
        let full = self.measure(&host).await?;
        let memory = number(&after, "resident_bytes") - number(&before, "resident_bytes");
        let ratio = full.value_at_quantile(0.99) as f64 / empty.value_at_quantile(0.99) as f64;
        let report = json!({
            "stored": self.stored,
            "waiting": self.waiting,
            "clients": self.clients,
            "claim_empty": percentiles(&empty),
            "claim_full": percentiles(&full),
            "p99_ratio": ratio,
            "resident_bytes_per_waiting": memory / (self.waiting.max(1) as f64),
        });
        print(&report, output.json);
        Ok(())
    }

    /// Offers and claims one at a time by each client; only the claims are measured.
    async fn measure(&self, host: &str) -> anyhow::Result<Histogram<u64>> {
        let mut clients = Vec::new();
        for number in 0..self.clients {
            let mut http = Connection::open(host).await?;
            let turns = self.claims / self.clients.max(1);
            let offer = offer(&format!("bench-{number}"), "bench", self.payload).to_string();
            let claim = claim(&format!("bench-{number}"), "bench", 1).to_string();
            // Not watched: it is joined below, and a measurement without it fails.
            clients.push(tokio::spawn(async move {
                let mut times = histogram();
                for _ in 0..turns {
                    http.post("/v1/handoffs", offer.clone().into()).await?;
                    let began = Instant::now();
                    let claims = http.post("/v1/claims", claim.clone().into()).await?;
                    record(&mut times, began.elapsed());
                    let claims: cycle::Claims = serde_json::from_slice(claims)?;
                    complete(&mut http, &claims.claims, 1).await?;
                }
                anyhow::Ok(times)
            }));
        }
        let mut all = histogram();
        for client in clients {
            all.add(&client.await??)?;
        }
        Ok(all)
    }
}

/// Stores handoffs, and finishes them or lets them wait.
pub(super) async fn fill(
    host: &str,
    capability: &str,
    count: usize,
    payload: usize,
    finish: bool,
) -> anyhow::Result<()> {
    let style = ProgressStyle::with_template("{msg:10} {wide_bar} {pos}/{len} {eta}")?;
    let bar = ProgressBar::new(count as u64).with_style(style);
    bar.set_message(capability.to_owned());
    let mut clients = Vec::new();
    for number in 0..4 {
        let mut http = Connection::open(host).await?;
        let bar = bar.clone();
        let batches = count.div_ceil(FILL_BATCH * 4);
        let name = format!("fill-{number}");
        let one = offer(&name, capability, payload);
        let offers = json!({ "offers": vec![one; FILL_BATCH] }).to_string();
        let claim = claim(&name, capability, FILL_BATCH).to_string();
        // Not watched: it is joined below, and a measurement without it fails.
        clients.push(tokio::spawn(async move {
            for _ in 0..batches {
                http.post("/v1/handoffs/batch", offers.clone().into()).await?;
                if finish {
                    let claims = http.post("/v1/claims", claim.clone().into()).await?;
                    let claims: cycle::Claims = serde_json::from_slice(claims)?;
                    complete(&mut http, &claims.claims, FILL_BATCH).await?;
                }
                bar.inc(FILL_BATCH as u64);
            }
            anyhow::Ok(())
        }));
    }
    for client in clients {
        client.await??;
    }
    bar.finish_and_clear();
    Ok(())
}

#[allow(clippy::print_stdout, reason = "printing is what this command is for")]
fn print(report: &Value, as_json: bool) {
    if as_json {
        println!("{report}");
        return;
    }
    println!(
        "claims with {} finished and {} waiting handoffs, {} clients",
        report["stored"], report["waiting"], report["clients"]
    );
    println!("{:<10}{:>10}{:>10}{:>10}", "store", "p50 ms", "p95 ms", "p99 ms");
    for (name, key) in [("empty", "claim_empty"), ("full", "claim_full")] {
        let figures = &report[key];
        println!(
            "{name:<10}{:>10.2}{:>10.2}{:>10.2}",
            number(figures, "p50_ms"),
            number(figures, "p95_ms"),
            number(figures, "p99_ms")
        );
    }
    println!(
        "p99 on the full store is {:.2} times that on the empty one",
        number(report, "p99_ratio")
    );
    println!(
        "{:.0} bytes of memory for each waiting handoff",
        number(report, "resident_bytes_per_waiting")
    );
}
