// SPDX-License-Identifier: Apache-2.0
//! The cycle: offer, claim, complete, by many clients at once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use hdrhistogram::Histogram;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tasuki_cli::output::Output;

use super::http::{Connection, host, number, stats};

#[derive(Args)]
pub(super) struct Cycle {
    /// The broker to measure
    #[arg(long, env = "TASUKI_URL", default_value = "http://127.0.0.1:8788")]
    url: String,
    /// How many clients work at once, each with a connection of its own
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// How many bytes an envelope's payload has
    #[arg(long, default_value_t = 2048)]
    payload: usize,
    /// How many handoffs one request offers, claims and completes
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// How long to measure
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

/// How long the clients run before measuring begins.
const WARM_UP: Duration = Duration::from_millis(500);
/// The longest step that is told apart from longer ones.
const LONGEST_NS: u64 = 60_000_000_000;
const STEPS: [&str; 3] = ["offer", "claim", "complete"];

impl Cycle {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<()> {
        let host = host(&self.url)?;
        let before = stats(&host).await?;
        let start = Instant::now() + WARM_UP;
        let end = start + Duration::from_secs(self.seconds);
        let mut workers = Vec::new();
        for number in 0..self.clients {
            let worker = Worker::connect(&host, number, self.payload, self.batch).await?;
            // Not watched: it is joined below, and a measurement without it fails.
            workers.push(tokio::spawn(worker.run(start, end)));
        }
        let mut total = Measured::new();
        for worker in workers {
            total.add(&worker.await??);
        }
        let after = stats(&host).await?;
        let seconds = self.seconds as f64;
        let commits = number(&after, "commits") - number(&before, "commits");
        let events = number(&after, "events") - number(&before, "events");
        let steps = STEPS.iter().zip(&total.steps);
        let report = json!({
            "clients": self.clients,
            "payload_bytes": self.payload,
            "batch": self.batch,
            "seconds": seconds,
            "cycles": total.cycles,
            "cycles_per_second": total.cycles as f64 / seconds,
            "mean_batch": events / commits.max(1.0),
            "steps": steps
                .map(|(name, step)| ((*name).to_owned(), percentiles(step)))
                .collect::<serde_json::Map<_, _>>(),
        });
        print(&report, output.json);
        Ok(())
    }
}

pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_NS, 3).expect("three digits are allowed")
}

pub(super) fn record(step: &mut Histogram<u64>, time: Duration) {
    step.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

pub(super) fn percentiles(step: &Histogram<u64>) -> Value {
    let ms = |quantile: f64| step.value_at_quantile(quantile) as f64 / 1e6;
    json!({ "p50_ms": ms(0.50), "p95_ms": ms(0.95), "p99_ms": ms(0.99) })
}

#[allow(clippy::print_stdout, reason = "printing is what this command is for")]
fn print(report: &Value, as_json: bool) {
    if as_json {
        println!("{report}");
        return;
    }
    println!(
        "{:.0} cycles/s with {} clients, {} byte payloads, batches of {} ({} cycles in {} s)",
        number(report, "cycles_per_second"),
        report["clients"],
        report["payload_bytes"],
        report["batch"],
        report["cycles"],
        report["seconds"],
    );
    println!("{:.1} events in each synced commit", number(report, "mean_batch"));
    println!("{:<10}{:>10}{:>10}{:>10}", "step", "p50 ms", "p95 ms", "p99 ms");
    for step in STEPS {
        let figures = &report["steps"][step];
        println!(
            "{step:<10}{:>10.2}{:>10.2}{:>10.2}",
            number(figures, "p50_ms"),
            number(figures, "p95_ms"),
            number(figures, "p99_ms")
        );
    }
}

struct Measured {
    steps: [Histogram<u64>; 3],
    cycles: u64,
}

impl Measured {
    fn new() -> Self {
        Self { steps: [histogram(), histogram(), histogram()], cycles: 0 }
    }

    fn add(&mut self, other: &Self) {
        self.cycles += other.cycles;
        for (sum, step) in self.steps.iter_mut().zip(&other.steps) {
            // Histograms of the same range always add up.
            let _ = sum.add(step);
        }
    }
}

/// One client with one connection: offers, claims, completes, and again.
struct Worker {
    http: Connection,
    batch: usize,
    offer: Bytes,
    claim: Bytes,
}

#[derive(Deserialize)]
pub(super) struct Claims {
    pub(super) claims: Vec<Claim>,
}

#[derive(Deserialize)]
pub(super) struct Claim {
    handoff_id: String,
    claim_id: String,
    fence: u64,
    #[serde(rename = "envelope")]
    _envelope: Box<RawValue>,
}

impl Worker {
    async fn connect(
        host: &str,
        number: usize,
        payload: usize,
        batch: usize,
    ) -> anyhow::Result<Self> {
        let offer = offer(&format!("bench-{number}"), "bench", payload);
        let offer = if batch == 1 { offer } else { json!({ "offers": vec![offer; batch] }) };
        Ok(Self {
            http: Connection::open(host).await?,
            batch,
            offer: offer.to_string().into(),
            claim: claim(&format!("bench-{number}"), "bench", batch).to_string().into(),
        })
    }

    async fn run(mut self, start: Instant, end: Instant) -> anyhow::Result<Measured> {
        let mut measured = Measured::new();
        loop {
            let began = Instant::now();
            if began >= end {
                return Ok(measured);
            }
            let path = if self.batch == 1 { "/v1/handoffs" } else { "/v1/handoffs/batch" };
            self.http.post(path, self.offer.clone()).await?;
            let offered = Instant::now();
            let claims: Claims =
                serde_json::from_slice(self.http.post("/v1/claims", self.claim.clone()).await?)?;
            let claimed = Instant::now();
            complete(&mut self.http, &claims.claims, self.batch).await?;
            let completed = Instant::now();
            if began >= start && completed <= end {
                measured.cycles += claims.claims.len() as u64;
                let times = [offered - began, claimed - offered, completed - claimed];
                for (step, time) in measured.steps.iter_mut().zip(times) {
                    record(step, time);
                }
            }
        }
    }
}

pub(super) fn offer(from: &str, capability: &str, payload: usize) -> Value {
    json!({
        "from_agent": from,
        "to": { "capability": capability },
        "intent": "measure the broker",
        "payload": { "type": "bench", "text": "x".repeat(payload) },
    })
}

pub(super) fn claim(agent: &str, capability: &str, max: usize) -> Value {
    json!({ "agent": agent, "capabilities": [capability], "max": max, "wait_ms": 1000 })
}

pub(super) async fn complete(
    http: &mut Connection,
    claims: &[Claim],
    batch: usize,
) -> anyhow::Result<()> {
    if batch > 1 && !claims.is_empty() {
        let parts: Vec<_> = claims.iter().map(completion).collect();
        let body = json!({ "completions": parts }).to_string();
        http.post("/v1/completions", body.into()).await?;
        return Ok(());
    }
    for claim in claims {
        let path = format!("/v1/handoffs/{}/complete", claim.handoff_id);
        let body = format!(
            r#"{{"claim_id":"{}","fence":{},"payload":{{"type":"done"}}}}"#,
            claim.claim_id, claim.fence
        );
        http.post(&path, body.into()).await?;
    }
    Ok(())
}

fn completion(claim: &Claim) -> Value {
    json!({
        "handoff_id": claim.handoff_id,
        "claim_id": claim.claim_id,
        "fence": claim.fence,
        "payload": { "type": "done" },
    })
}
