// SPDX-License-Identifier: Apache-2.0
//! The binary: `tasuki serve`, and commands of the form noun, verb.

mod commands;

use clap::{Parser, Subcommand};

/// Requests are parsed on one thread and let go of on another, which the system's allocator is slow
/// at (ADR 7).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "tasuki", version, about = "The handoff broker for AI agents")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the broker
    Serve(commands::serve::Serve),
    /// Measure offer, claim and complete over HTTP
    Bench(commands::bench::Bench),
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(serve) => serve.run().await,
            Command::Bench(bench) => bench.run().await,
        }
    })
}
