//! Runs one cycle (offer a message, claim it, complete it) on Tasuki and on other durable queues,
//! or on Tasuki in several settings, in one run and in turns, so that the ratios between them mean
//! something.
//!
//! It starts every server itself, on loopback, and ends only what it started.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program whose product is what it prints"
)]

mod beanstalkd;
mod brokers;
mod faults;
mod figures;
mod http;
mod identity;
mod load;
mod machine;
mod nodes;
mod options;
mod plain_queue;
mod postgres;
mod proof;
mod queues;
mod redis;
mod report;
mod scratch;
mod server;
mod systems;
mod tasuki;
mod wire;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
enum Benchmark {
    /// Measures Tasuki beside Redis streams, PostgreSQL and beanstalkd, all syncing what they
    /// promise.
    Queues(queues::Options),
    /// Measures one, two and three brokers on one PostgreSQL beside a plain queue on the same.
    Nodes(options::WithPostgres),
    /// Measures what it costs to know who asks, a quiet tenant beside a flooding one, and finding
    /// agents among many.
    Identity(identity::Options),
    /// Counts how many chains of five agents end whole when a part of what agents do goes wrong.
    Faults(faults::Options),
}

#[tokio::main]
async fn main() -> Result<()> {
    let benchmark = Benchmark::parse();
    let mut terminated = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    // Whichever ends first drops the others, and with them the servers.
    tokio::select! {
        result = Box::pin(run(&benchmark)) => result,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminated.recv() => bail!("terminated"),
    }
}

async fn run(benchmark: &Benchmark) -> Result<()> {
    match benchmark {
        Benchmark::Queues(options) => queues::run(options).await,
        Benchmark::Nodes(options) => nodes::run(options).await,
        Benchmark::Identity(options) => identity::run(options).await,
        Benchmark::Faults(options) => faults::run(options).await,
    }
}
