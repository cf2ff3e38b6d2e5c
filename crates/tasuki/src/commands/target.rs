// SPDX-License-Identifier: Apache-2.0
//! `tasuki target`: letting nothing be claimed of an agent or a capability for a while.

use clap::{Args, Subcommand};
use tasuki_core::Timestamp;
use tasuki_protocol as wire;

use super::handoff::target;
use crate::args::millis;
use crate::client::Connect;
use crate::exit::Exit;
use crate::output::{Facts, Output};

#[derive(Args)]
pub(crate) struct Target {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Let nothing be claimed of an agent or a capability; offers to it wait
    Pause(Pause),
    /// Let work be claimed of it again
    Resume(Named),
}

#[derive(Args)]
struct Pause {
    #[command(flatten)]
    named: Named,
    /// For how long, such as 30m; until it is resumed without it
    #[arg(long = "for", value_name = "SPAN", value_parser = millis, conflicts_with = "until")]
    span: Option<u64>,
    /// Until when
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
}

#[derive(Args)]
struct Named {
    /// An agent's name, or a capability with a * before it
    target: String,
}

impl Named {
    fn target(&self) -> anyhow::Result<tasuki_core::Target> {
        Ok(match self.target.strip_prefix('*') {
            Some(capability) => tasuki_core::Target::Capability(capability.parse()?),
            None => tasuki_core::Target::Agent(self.target.parse()?),
        })
    }
}

impl Target {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = self.connect.client()?;
        let reply = match self.verb {
            Verb::Pause(pause) => {
                let target = pause.named.target()?;
                let body = wire::PauseTarget { target, until: pause.until, for_ms: pause.span };
                client.post("/v1/targets/pause", &body).await?
            }
            Verb::Resume(named) => {
                let body = wire::ResumeTarget { target: named.target()? };
                client.post("/v1/targets/resume", &body).await?
            }
        };
        output.reply(&reply, |health: wire::TargetHealth| {
            Facts::default()
                .with("target", target(&health.target))
                .with("paused", paused(health.paused.as_ref()))
                .text()
        })?;
        Ok(Exit::Done)
    }
}

/// Until when a target is paused, in words.
pub(super) fn paused(pause: Option<&wire::PausedUntil>) -> String {
    match pause {
        None => "no".to_owned(),
        Some(wire::PausedUntil { until: Some(until), .. }) => format!("until {until}"),
        Some(wire::PausedUntil { until: None, .. }) => "until it is resumed".to_owned(),
    }
}
