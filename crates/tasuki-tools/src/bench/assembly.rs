// SPDX-License-Identifier: Apache-2.0
//! `tasuki-tools bench assembly`: what assembling from many memories costs beside one synced append to the
//! same disk, in interleaved rounds. A broker keeps memories prepared, each revision once, so most
//! assemblies find all of them so (warm); the first one after a start finds none (cold).

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use hdrhistogram::Histogram;
use serde::Serialize;
use tasuki_core::Timestamp;
use tasuki_core::assembly::{
    Brief, Candidate, Item, Prepared, Priority, Request, Rule, Tokenizer, assemble,
};

use super::cycle::{histogram, record};
use super::fidelity::messages;
use tasuki_cli::output::Output;

/// How much one append writes.
const APPEND_BYTES: usize = 4096;
/// How many assemblies of a round find nothing prepared: they take long, and differ little.
const COLD_CALLS: usize = 5;

#[derive(Args)]
pub(super) struct Assembly {
    /// How many memories there are to choose from
    #[arg(long, default_value_t = 200)]
    memories: usize,
    /// How many tokens the receiver can take
    #[arg(long, default_value_t = 4000)]
    budget: u64,
    /// How many rounds of both are measured
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// How many assemblies and how many syncs a round has
    #[arg(long, default_value_t = 200)]
    calls: usize,
    /// Where the synced file is written; it is removed afterwards
    #[arg(long, default_value = ".")]
    directory: PathBuf,
}

#[derive(Serialize)]
struct Report {
    memories: usize,
    memories_bytes: usize,
    budget: u64,
    token_count: u64,
    /// All memories are prepared.
    assembly: Figures,
    /// None is.
    assembly_cold: Figures,
    sync: Figures,
    /// How often the p99 of assembly fits into the p50 of a sync.
    sync_p50_to_assembly_p99: f64,
    sync_p99_to_assembly_p99: f64,
    /// What working out one memory costs, once for each revision.
    prepare_mean_us: f64,
}

#[derive(Serialize)]
struct Figures {
    p50_us: f64,
    p99_us: f64,
}

impl Assembly {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        let items = memories(self.memories)?;
        let memories_bytes = items.iter().map(|item| item.text.len()).sum();
        // The vocabulary is loaded before anything is timed.
        let _ = Tokenizer::O200k.count("warm");
        let began = Instant::now();
        let warm = request(prepared(&items), self.budget);
        let prepare = began.elapsed();
        let token_count = assemble(&warm)?.receipt.token_count;

        let (mut assembling, mut cold, mut syncing) = (histogram(), histogram(), histogram());
        let path = self.directory.join(format!(".tasuki-bench-{}", std::process::id()));
        let mut file = File::create(&path)
            .with_context(|| format!("cannot write in {}", self.directory.display()))?;
        let page = [b'x'; APPEND_BYTES];
        for _ in 0..self.rounds {
            for _ in 0..self.calls {
                let began = Instant::now();
                let assembled = assemble(&warm)?;
                record(&mut assembling, began.elapsed());
                std::hint::black_box(assembled);
            }
            for _ in 0..COLD_CALLS {
                let began = Instant::now();
                let assembled = assemble(&request(prepared(&items), self.budget))?;
                record(&mut cold, began.elapsed());
                std::hint::black_box(assembled);
            }
            for _ in 0..self.calls {
                let began = Instant::now();
                file.write_all(&page)?;
                file.sync_data()?;
                record(&mut syncing, began.elapsed());
            }
        }
        drop(file);
        std::fs::remove_file(&path)?;
        let (assembly, sync) = (Figures::of(&assembling), Figures::of(&syncing));
        let report = Report {
            memories: self.memories,
            memories_bytes,
            budget: self.budget,
            token_count,
            sync_p50_to_assembly_p99: sync.p50_us / assembly.p99_us.max(0.001),
            sync_p99_to_assembly_p99: sync.p99_us / assembly.p99_us.max(0.001),
            assembly,
            assembly_cold: Figures::of(&cold),
            sync,
            prepare_mean_us: prepare.as_secs_f64() * 1e6 / (self.memories.max(1) as f64),
        };
        output.found(&report, Report::text)
    }
}

fn prepared(items: &[Item]) -> Vec<Candidate> {
    items.iter().map(|item| Prepared::new(item.clone(), Tokenizer::O200k).into()).collect()
}

/// Memories from the texts that came with this program, as many as are wanted, in the order of their
/// ids, as the broker gathers them.
fn memories(number: usize) -> anyhow::Result<Vec<Item>> {
    let texts = messages()?;
    let memory = |at: usize| {
        // Three neighbouring texts make one memory; later rounds are told apart by their number.
        let text: Vec<&str> =
            (0..3).map(|next| texts[(at * 3 + next) % texts.len()].as_str()).collect();
        Item {
            id: format!("ms-{at:05}"),
            revision: 1,
            kind: "note".into(),
            title: format!("Memory {at}"),
            summary: None,
            text: format!("Note {at}. {}", text.join(" ")),
            priority: if at.is_multiple_of(20) { Priority::High } else { Priority::Normal },
            pinned: at.is_multiple_of(100),
            tags: Vec::new(),
            at: Timestamp(i64::try_from(at).unwrap_or(i64::MAX) * 60_000),
            source: None,
            by: None,
            trust: tasuki_core::trust::Trust::Agent,
        }
    };
    Ok((0..number).map(memory).collect())
}

fn request(items: Vec<Candidate>, budget: u64) -> Request {
    let rules = (1..=10).map(|at| Rule {
        kind: if at % 2 == 0 { "must" } else { "must_not" }.into(),
        text: format!("Rule {at}: do not change anything that rule {at} protects."),
        issuer: None,
    });
    Request {
        brief: Brief {
            intent: "Find out why the payment of the order failed and repair it.".into(),
            constraints: rules.collect(),
            ask: Some("Check the gateway's answer and propose a refund.".into()),
            expected_output: Some("A report of at most one page.".into()),
            ..Brief::default()
        },
        items,
        tokenizer: Tokenizer::O200k,
        budget: Some(budget),
        ..Request::default()
    }
}

impl Figures {
    fn of(times: &Histogram<u64>) -> Self {
        let at = |quantile| times.value_at_quantile(quantile) as f64 / 1000.0;
        Self { p50_us: at(0.5), p99_us: at(0.99) }
    }
}

impl Report {
    fn text(&self) -> String {
        format!(
            "{} memories of {} bytes in all, budget {}: {} tokens\n\
             {:<30}{:>10}{:>10}\n\
             {:<30}{:>10.0}{:>10.0}\n\
             {:<30}{:>10.0}{:>10.0}\n\
             {:<30}{:>10.0}{:>10.0}\n\
             a sync (p50) takes {:.2} times as long as an assembly (p99)\n\
             preparing a memory, once for each revision: {:.0} µs\n",
            self.memories,
            self.memories_bytes,
            self.budget,
            self.token_count,
            "",
            "p50 µs",
            "p99 µs",
            "assembly, all prepared",
            self.assembly.p50_us,
            self.assembly.p99_us,
            "assembly, nothing prepared",
            self.assembly_cold.p50_us,
            self.assembly_cold.p99_us,
            "append of 4 KiB and fdatasync",
            self.sync.p50_us,
            self.sync.p99_us,
            self.sync_p50_to_assembly_p99,
            self.prepare_mean_us,
        )
    }
}
