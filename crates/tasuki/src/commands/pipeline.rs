// SPDX-License-Identifier: Apache-2.0
//! `tasuki pipeline`: routes that are declared in a file.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use tasuki_core::AgentId;
use tasuki_core::ids::IdempotencyKey;
use tasuki_core::pipeline::{Pipelines, Then};
use tasuki_protocol as wire;

use super::handoff::target;
use crate::args::{AGENT, json};
use crate::client::{Connect, escaped};
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, table};

#[derive(Args)]
pub(crate) struct Pipeline {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the routes that are declared
    List(List),
    /// Begin a task along a declared route
    Start(Box<Start>),
    /// Check a file without giving it to a broker
    Check(Check),
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    connect: Connect,
}

#[derive(Args)]
struct Start {
    #[command(flatten)]
    connect: Connect,
    /// The pipeline's name
    name: String,
    /// Who begins it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    from: AgentId,
    /// The user's own words
    #[arg(long, value_name = "TEXT")]
    intent: String,
    /// What the first stage gets: a JSON object with a `type`, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    payload: String,
    /// Makes it safe to repeat
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,
}

#[derive(Args)]
struct Check {
    /// The file
    file: PathBuf,
}

impl Pipeline {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::List(list) => {
                let reply = list.connect.client()?.get("/v1/pipelines", &[]).await?;
                output.reply(&reply, |all: Pipelines| listed(&all))?;
            }
            Verb::Start(start) => start.run(output).await?,
            Verb::Check(check) => {
                let pipelines = read(&check.file)?;
                output.found(&pipelines, listed)?;
            }
        }
        Ok(Exit::Done)
    }
}

/// Reads a file of pipelines; what is wrong with it is said at once.
pub(crate) fn read(file: &std::path::Path) -> anyhow::Result<Pipelines> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Pipelines::read(&text).map_err(|faults| {
        let faults: Vec<_> =
            faults.iter().map(|fault| format!("  {}: {}", fault.path, fault.problem)).collect();
        let message = format!("{} does not fit:\n{}", file.display(), faults.join("\n"));
        Failure::usage(message, "correct every fault; docs/guides/patterns.md describes the file")
            .into()
    })
}

fn listed(all: &Pipelines) -> String {
    let rows = all.pipelines.iter().flat_map(|pipeline| {
        pipeline.stages.iter().map(|stage| {
            let next = stage.next.iter().map(|rule| match &rule.then {
                Then::To(name) => name.clone(),
                Then::Fan(fan) => format!("{} then {}", fan.stages.join("+"), fan.join),
            });
            [
                format!("{} {}", pipeline.name, pipeline.version),
                stage.name.clone(),
                target(&stage.to),
                next.collect::<Vec<_>>().join(", "),
            ]
        })
    });
    table(["pipeline", "stage", "to", "next"], rows)
}

impl Start {
    async fn run(self, output: Output) -> anyhow::Result<()> {
        let client = self.connect.client()?;
        let body = serde_json::json!({
            "from_agent": self.from,
            "intent": self.intent,
            "payload": json::<serde_json::Value>("--payload", &self.payload)?,
            "idempotency_key": self.idempotency_key,
        });
        let path = format!("/v1/pipelines/{}/start", escaped(&self.name));
        let reply = client.post(&path, &body).await?;
        output.reply(&reply, |offered: wire::Offered| {
            Facts::default()
                .with("task", offered.task_id)
                .with("handoff", offered.handoff_id)
                .with("to", target(&offered.to))
                .with("next", client.command(&format!("task wait {}", offered.task_id)))
                .text()
        })
    }
}
