// SPDX-License-Identifier: Apache-2.0
//! What reading costs beside much that is stored: lists of what is rare, counts, agents, and checking
//! the log. How long a start takes, and how much memory what waits does, is measured from outside:
//! `bench/run-reading` does both.

use std::time::Instant;

use clap::Args;
use serde_json::{Map, Value, json};
use tasuki_cli::output::Output;

use super::claims::fill;
use super::cycle::{histogram, offer, percentiles, record};
use super::http::{Connection, host, number};

#[derive(Args)]
pub(super) struct Reading {
    /// The broker to measure; its store should be empty
    #[arg(long, env = "TASUKI_URL", default_value = "http://127.0.0.1:8788")]
    url: String,
    /// How many finished handoffs to store
    #[arg(long, default_value_t = 1_000_000)]
    stored: usize,
    /// How many waiting handoffs to store
    #[arg(long, default_value_t = 300_000)]
    waiting: usize,
    /// How many agents publish a manifest
    #[arg(long, default_value_t = 20)]
    agents: usize,
    /// How often each question is asked
    #[arg(long, default_value_t = 200)]
    times: usize,
    /// How many bytes an envelope's payload has
    #[arg(long, default_value_t = 64)]
    payload: usize,
}

/// Each question, and under which name it is told. The rare sender has sent five.
const QUESTIONS: [(&str, &str); 6] = [
    ("pending", "/v1/handoffs?state=pending&limit=50"),
    ("from a rare sender", "/v1/handoffs?from_agent=rare&limit=50"),
    ("in a state that none has", "/v1/handoffs?state=awaiting_approval&limit=50"),
    ("open tasks", "/v1/tasks?state=open&limit=50"),
    ("counts", "/v1/stats"),
    ("agents", "/v1/agents"),
];
const RARE: usize = 5;

impl Reading {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<()> {
        let host = host(&self.url)?;
        let mut http = Connection::open(&host).await?;
        for _ in 0..RARE {
            let offer = offer("rare", "seldom", self.payload).to_string();
            http.post("/v1/handoffs", offer.into()).await?;
        }
        fill(&host, "finished", self.stored, self.payload, true).await?;
        fill(&host, "bench", self.waiting, self.payload, false).await?;
        for agent in 0..self.agents {
            let manifest = json!({ "manifest": {
                "agent_id": format!("agent-{agent}"),
                "capabilities": [{ "name": "review" }, { "name": "test" }],
            }});
            http.post("/v1/agents", manifest.to_string().into()).await?;
        }
        let mut asked = Map::new();
        for (name, path) in QUESTIONS {
            let mut times = histogram();
            for _ in 0..self.times {
                let began = Instant::now();
                http.get(path).await?;
                record(&mut times, began.elapsed());
            }
            asked.insert(name.to_owned(), percentiles(&times));
        }
        let mut checked = Map::new();
        for (name, path) in
            [("whole log", "/v1/audit/verify?full=true"), ("what is new since", "/v1/audit/verify")]
        {
            let began = Instant::now();
            let verdict: Value = serde_json::from_slice(http.get(path).await?)?;
            anyhow::ensure!(verdict["intact"] == true, "the log is damaged: {verdict}");
            checked.insert(name.to_owned(), json!(began.elapsed().as_secs_f64() * 1000.0));
        }
        let report = json!({
            "stored": self.stored, "waiting": self.waiting, "agents": self.agents,
            "asked": asked, "verify_ms": checked,
        });
        print(&report, output.json);
        Ok(())
    }
}

#[allow(clippy::print_stdout, reason = "printing is what this command is for")]
fn print(report: &Value, as_json: bool) {
    if as_json {
        println!("{report}");
        return;
    }
    println!(
        "beside {} finished and {} waiting handoffs, {} agents",
        report["stored"], report["waiting"], report["agents"]
    );
    println!("{:<28}{:>10}{:>10}{:>10}", "question", "p50 ms", "p95 ms", "p99 ms");
    for (name, _) in QUESTIONS {
        let figures = &report["asked"][name];
        println!(
            "{name:<28}{:>10.2}{:>10.2}{:>10.2}",
            number(figures, "p50_ms"),
            number(figures, "p95_ms"),
            number(figures, "p99_ms")
        );
    }
    for name in ["whole log", "what is new since"] {
        println!("verify, {name:<20}{:>10.2} ms", number(&report["verify_ms"], name));
    }
}
