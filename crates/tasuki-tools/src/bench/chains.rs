// SPDX-License-Identifier: Apache-2.0
//! Many chains at once: all of them are begun, and then go from stage to stage, each completion with
//! its follow-up in one step. For each stage: how long work waited to be claimed, and how long claiming
//! and completing took.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use clap::Args;
use hdrhistogram::Histogram;
use serde::Deserialize;
use serde_json::{Value, json};
use tasuki_cli::output::Output;

use super::cycle::{histogram, percentiles, record};
use super::http::{Connection, host};

#[derive(Args)]
pub(super) struct Chains {
    /// The broker to measure
    #[arg(long, env = "TASUKI_URL", default_value = "http://127.0.0.1:8788")]
    url: String,
    /// How many chains are under way at once
    #[arg(long, default_value_t = 1000)]
    chains: usize,
    /// How many hops each of them has
    #[arg(long, default_value_t = 5)]
    hops: usize,
    /// How many clients work for each stage
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// How many bytes an envelope's payload has
    #[arg(long, default_value_t = 1024)]
    payload: usize,
}

#[derive(Deserialize)]
struct Claims {
    claims: Vec<Claim>,
}

#[derive(Deserialize)]
struct Claim {
    handoff_id: String,
    task_id: String,
    claim_id: String,
    fence: u64,
}

/// When each chain was handed on last, and how many have come to their end.
#[derive(Default)]
struct Course {
    handed_on: Mutex<HashMap<String, Instant>>,
    ended: AtomicUsize,
}

impl Course {
    fn handed_on(&self, task: &str) -> Option<Instant> {
        let mut all = self.handed_on.lock().expect("no holder of this lock panics");
        all.insert(task.to_owned(), Instant::now())
    }
}

struct Times {
    waited: Histogram<u64>,
    worked: Histogram<u64>,
}

impl Chains {
    pub(super) async fn run(self, output: Output) -> anyhow::Result<()> {
        let host = host(&self.url)?;
        let run = format!("{:x}", std::process::id());
        let course = Arc::new(Course::default());
        self.begin(&host, &run, &course).await?;
        let began = Instant::now();
        let mut stages: Vec<Vec<_>> = Vec::new();
        for stage in 0..self.hops {
            let mut clients = Vec::new();
            for _ in 0..self.clients {
                let http = Connection::open(&host).await?;
                let worker = Worker {
                    http,
                    stage,
                    last: stage + 1 == self.hops,
                    chains: self.chains,
                    run: run.clone(),
                    payload: "x".repeat(self.payload),
                    course: course.clone(),
                };
                // Not watched: it is joined below, and a measurement without it fails.
                clients.push(tokio::spawn(worker.work()));
            }
            stages.push(clients);
        }
        let mut told = Vec::new();
        for (stage, clients) in stages.into_iter().enumerate() {
            let (mut waited, mut worked) = (histogram(), histogram());
            for client in clients {
                let times = client.await??;
                waited.add(&times.waited)?;
                worked.add(&times.worked)?;
            }
            told.push(json!({
                "stage": stage + 1,
                "waited": percentiles(&waited),
                "claim_and_complete": percentiles(&worked),
            }));
        }
        let seconds = began.elapsed().as_secs_f64();
        let report = json!({
            "chains": self.chains,
            "hops": self.hops,
            "clients": self.clients * self.hops,
            "ended": course.ended.load(Ordering::Relaxed),
            "hops_per_second": (self.chains * self.hops) as f64 / seconds,
            "stages": told,
        });
        print(&report, output.json);
        Ok(())
    }

    /// Begins all chains before any of them goes on.
    async fn begin(&self, host: &str, run: &str, course: &Course) -> anyhow::Result<()> {
        let mut http = Connection::open(host).await?;
        let offer = json!({
            "from_agent": "bench",
            "to": { "capability": capability(run, 0) },
            "intent": "Go from hand to hand.",
            "payload": { "type": "bench", "stage": 0, "text": "x".repeat(self.payload) },
        });
        let mut left = self.chains;
        while left > 0 {
            let some = left.min(100);
            let offers = json!({ "offers": vec![&offer; some] }).to_string();
            let reply = http.post("/v1/handoffs/batch", offers.into()).await?;
            let reply: Value = serde_json::from_slice(reply)?;
            for offered in reply["results"].as_array().into_iter().flatten() {
                course.handed_on(offered["task_id"].as_str().unwrap_or_default());
            }
            left -= some;
        }
        Ok(())
    }
}

fn capability(run: &str, stage: usize) -> String {
    format!("stage-{stage}-{run}")
}

/// One client of one stage.
struct Worker {
    http: Connection,
    stage: usize,
    last: bool,
    chains: usize,
    run: String,
    payload: String,
    course: Arc<Course>,
}

impl Worker {
    async fn work(mut self) -> anyhow::Result<Times> {
        let mut times = Times { waited: histogram(), worked: histogram() };
        let claim = json!({
            "agent": format!("bench-{}", self.stage),
            "capabilities": [capability(&self.run, self.stage)],
            "wait_ms": 200,
        })
        .to_string();
        while self.course.ended.load(Ordering::Relaxed) < self.chains {
            let began = Instant::now();
            let reply = self.http.post("/v1/claims", claim.clone().into()).await?;
            let Claims { claims } = serde_json::from_slice(reply)?;
            for claim in claims {
                if let Some(since) = self.course.handed_on(&claim.task_id) {
                    record(&mut times.waited, since.elapsed());
                }
                self.complete(&claim).await?;
                record(&mut times.worked, began.elapsed());
                self.course.handed_on(&claim.task_id);
                if self.last {
                    self.course.ended.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(times)
    }

    async fn complete(&mut self, claim: &Claim) -> anyhow::Result<()> {
        let next = (!self.last).then(|| {
            json!({
                "to": { "capability": capability(&self.run, self.stage + 1) },
                "payload": { "type": "bench", "stage": self.stage + 1, "text": self.payload },
            })
        });
        let body = json!({
            "claim_id": claim.claim_id,
            "fence": claim.fence,
            "payload": { "type": "done" },
            "follow_ups": next.into_iter().collect::<Vec<_>>(),
        });
        let path = format!("/v1/handoffs/{}/complete", claim.handoff_id);
        self.http.post(&path, body.to_string().into()).await.map(drop)
    }
}

#[expect(clippy::print_stdout, reason = "what was measured is the output")]
fn print(report: &Value, as_json: bool) {
    if as_json {
        println!("{report}");
        return;
    }
    println!(
        "{} chains of {} hops, {} clients, {} ended, {:.0} hops/s",
        report["chains"],
        report["hops"],
        report["clients"],
        report["ended"],
        report["hops_per_second"].as_f64().unwrap_or(0.0)
    );
    println!("| stage | | p50 ms | p95 ms | p99 ms |\n| --- | --- | --- | --- | --- |");
    for stage in report["stages"].as_array().into_iter().flatten() {
        for (name, times) in
            [("waited", &stage["waited"]), ("claim and complete", &stage["claim_and_complete"])]
        {
            let ms = |quantile: &str| times[quantile].as_f64().unwrap_or(0.0);
            println!(
                "| {} | {name} | {:.1} | {:.1} | {:.1} |",
                stage["stage"],
                ms("p50_ms"),
                ms("p95_ms"),
                ms("p99_ms")
            );
        }
    }
}
