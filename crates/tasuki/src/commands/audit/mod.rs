// SPDX-License-Identifier: Apache-2.0
//! `tasuki audit`: the log of everything that happened, from a broker, a data directory or a file.

mod denials;
mod export;
mod log;
mod verify;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::Connect;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Check the log and name the first bad entry
    Verify(verify::Verify),
    /// Write the log as lines of JSON that can be verified anywhere
    Export(export::Export),
    /// Show the log, or follow it as it grows
    Log(log::Log),
    /// List who was refused what: agents that are known, from the log, and strangers of late
    Denials(denials::Denials),
}

impl Audit {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::Verify(verify) => verify.run(&self.connect, output).await,
            Verb::Export(export) => export.run(&self.connect, output).await,
            Verb::Denials(denials) => denials.run(&self.connect.client()?, output).await,
            Verb::Log(log) => log.run(&self.connect.client()?, output).await,
        }
    }
}

/// An event of the log as a row: position, time, what, by whom, which handoff.
pub(super) fn event_row(event: &Value) -> [String; 5] {
    let record = &event["record"];
    let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let position = event["position"].as_str().unwrap_or_default().to_owned();
    [position, text("at"), text("kind"), text("actor"), text("handoff_id")]
}
