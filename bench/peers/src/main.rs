//! Runs one cycle (offer a message, claim it, complete it) on Tasuki and on other durable queues,
//! in one run and in turns, so that the ratios between them mean something.
//!
//! It starts every server itself, on loopback, and ends only what it started.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose product is what it prints"
)]

mod beanstalkd;
mod load;
mod machine;
mod postgres;
mod redis;
mod report;
mod scratch;
mod server;
mod systems;
mod tasuki;
mod wire;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    load::Load,
    machine::Machine,
    report::{Report, Round},
    scratch::Scratch,
    systems::{Choice, Servers, System},
};

/// Measures Tasuki beside Redis streams, PostgreSQL and beanstalkd, all syncing what they promise.
#[derive(Parser)]
struct Options {
    /// How often each system is measured; the rounds are interleaved.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds for each system in each round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Clients that work at the same time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// Bytes in a message.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    payload: u32,
    /// Measure only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Choice>,
    /// Connections that the clients of PostgreSQL share; each count is measured, the best one is
    /// compared with.
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64])]
    postgres_connections: Vec<u16>,
    /// Where PostgreSQL's programs are.
    #[arg(long, default_value = "/usr/lib/postgresql/15/bin")]
    postgres_bin: PathBuf,
    /// Our binary; unless told, the one beside this program.
    #[arg(long)]
    tasuki: Option<PathBuf>,
    /// Where a directory for all data is made and removed again; it should be on a real disk.
    #[arg(long, default_value = "target")]
    scratch: PathBuf,
    /// Writes everything that was measured to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    // Whichever ends first drops the others, and with them the servers.
    tokio::select! {
        result = Box::pin(run(&options)) => result,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminated.recv() => bail!("terminated"),
    }
}

async fn run(options: &Options) -> Result<()> {
    let load = Load::new(options.clients, options.payload, options.seconds);
    let systems = System::chosen(&options.only, &options.postgres_connections, load.clients);
    // Declared before the servers so that it is removed after they have ended.
    let scratch = Scratch::new(&options.scratch)?;
    let machine = Machine::observe(scratch.path())?;
    report::print_machine(&machine, &load, options.rounds);

    let servers = Servers::start(&systems, &load, options, &scratch).await?;
    let mut report = Report::new(machine, &load, options.rounds, &systems, servers.versions());
    for round in 1..=options.rounds {
        for &system in &systems {
            scratch.settle().await?;
            let disk_ms = machine::append_and_sync_ms(scratch.path())?;
            let measured = servers
                .measure(system, &load)
                .await
                .with_context(|| format!("cannot measure {system}"))?;
            let figure = measured.cycles_per_second;
            eprintln!("round {round}: {system}: {figure:.0} cycles/s, disk {disk_ms:.2} ms");
            report.add(system, Round { disk_ms, measured });
        }
    }
    drop(servers);

    report.finish();
    report.print();
    if let Some(file) = &options.json {
        report.write(file)?;
    }
    Ok(())
}
