// SPDX-License-Identifier: Apache-2.0
//! `tasuki-tools bench`: drives a running broker over real HTTP and prints what it measured; `fidelity` and
//! `assembly` need no broker. Absolute figures say little on a shared machine; compare runs beside
//! each other.

mod assembly;
mod chains;
mod claims;
mod cycle;
mod fidelity;
mod http;
mod reading;

use clap::{Args, Subcommand};
use tasuki_cli::output::Output;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    kind: Option<Kind>,
    #[command(flatten)]
    cycle: cycle::Cycle,
}

#[derive(Subcommand)]
enum Kind {
    /// Compare claims on an empty store with claims on a full one
    Claims(claims::Claims),
    /// Ask for what is rare beside much that is stored, and check the log
    Reading(reading::Reading),
    /// Hold many chains of several hops at once, and see how long each stage takes
    Chains(chains::Chains),
    /// Relay conversations along five agents and see what reaches the last one
    Fidelity(fidelity::Fidelity),
    /// Compare assembling from many memories with one synced append
    Assembly(assembly::Assembly),
}

impl Bench {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        match self.kind {
            None => self.cycle.run(output).await,
            Some(Kind::Claims(claims)) => claims.run(output).await,
            Some(Kind::Reading(reading)) => reading.run(output).await,
            Some(Kind::Chains(chains)) => chains.run(output).await,
            Some(Kind::Fidelity(fidelity)) => fidelity.run(output),
            Some(Kind::Assembly(assembly)) => assembly.run(output),
        }
    }
}
