// SPDX-License-Identifier: Apache-2.0
//! What is done to brokers rather than with them: measuring them, and holding any server against the
//! protocol. It is shipped beside `tasuki` and knows a broker only over HTTP.

mod bench;
mod conformance;
mod population;
mod reference;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tasuki_cli::exit::Exit;
use tasuki_cli::output::Output;
use tasuki_cli::{COMMON, Commands};

/// The allocator that the broker has, so that the client's share of a measurement stays what it was.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures brokers, and holds any server against Tasuki's protocol.
#[derive(Parser)]
#[command(name = "tasuki-tools", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// Print JSON; errors too
    #[arg(long, global = true, help_heading = COMMON)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Hold any server against the protocol
    Conformance(conformance::Conformance),
    /// Measure offer, claim and complete over HTTP; what it offers stays in the broker's log
    Bench(bench::Bench),
    /// Measure how often `tasuki analyze` is right about simulated populations
    Population(population::Population),
    /// Print a page of the reference, made from the code
    #[command(hide = true)]
    Reference(reference::Reference),
}

impl Commands for Cli {
    fn output(&self) -> Output {
        Output { json: self.json }
    }

    async fn run(self) -> anyhow::Result<Exit> {
        let output = self.output();
        match self.command {
            Command::Conformance(conformance) => conformance.run(output).await,
            Command::Bench(bench) => bench.run(output).await.map(|()| Exit::Done),
            Command::Population(population) => population.run(output),
            Command::Reference(reference) => reference.run(),
        }
    }
}

fn main() -> ExitCode {
    tasuki_cli::main::<Cli>()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// Where clap is built with debug assertions, this finds arguments that contradict each other.
    #[test]
    fn the_table_of_commands_is_sound() {
        super::Cli::command().debug_assert();
    }
}
