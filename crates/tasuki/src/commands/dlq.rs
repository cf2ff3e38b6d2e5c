// SPDX-License-Identifier: Apache-2.0
//! `tasuki dlq`: handoffs that somebody has to decide on.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;
use tasuki_core::{AgentId, HandoffId};
use tasuki_http::wire;

use super::handoff::{attempts_of, details, moved, pretty};
use crate::client::{Client, Connect};
use crate::exit::Exit;
use crate::output::{Facts, Output, table};

#[derive(Args)]
pub(crate) struct Dlq {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List dead letters that wait for a decision, newest first
    List(List),
    /// Show a dead letter with its envelope and what its attempts reported
    Show(Show),
    /// Send a dead letter on its way again, as a new linked handoff
    Redrive(Redrive),
    /// Put a dead letter away, with a reason
    Discard(Discard),
}

#[derive(Args)]
struct List {
    /// Also those that were decided on
    #[arg(long)]
    all: bool,
    /// Only dead letters before this one: where the page before ended
    #[arg(long, value_name = "HANDOFF")]
    before: Option<HandoffId>,
    /// How many at most, up to 1000
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

#[derive(Args)]
struct Show {
    /// The handoff's id
    handoff: HandoffId,
}

#[derive(Args)]
struct Redrive {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides
    #[arg(long, value_name = "AGENT")]
    by: AgentId,
}

#[derive(Args)]
struct Discard {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides
    #[arg(long, value_name = "AGENT")]
    by: AgentId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Dlq {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        match self.verb {
            Verb::List(list) => list.run(client, output).await?,
            Verb::Show(show) => show.run(client, output).await?,
            Verb::Redrive(redrive) => redrive.run(client, output).await?,
            Verb::Discard(discard) => discard.run(client, output).await?,
        }
        Ok(Exit::Done)
    }
}

impl List {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let query = [
            ("all", self.all.then(|| "true".to_owned())),
            ("before", self.before.map(|handoff| handoff.to_string())),
            ("limit", Some(self.limit.to_string())),
        ];
        let reply = client.get("/v1/dead-letters", &query).await?;
        output.reply(&reply, |page: wire::Handoffs| match page.next {
            _ if page.handoffs.is_empty() => "no dead letters".to_owned(),
            Some(next) => format!("{}more with --before {next}\n", listed(&page.handoffs)),
            None => listed(&page.handoffs),
        })
    }
}

fn listed(letters: &[wire::Handoff]) -> String {
    let rows = letters.iter().map(|letter| {
        let dead = letter.dead_letter.as_ref();
        let decided = dead.map_or("", |dead| match dead.redriven_to {
            Some(_) => "redriven",
            None if dead.discarded => "discarded",
            None => "waiting",
        });
        [
            letter.handoff_id.to_string(),
            dead.map(|dead| dead.reason.clone()).unwrap_or_default(),
            letter.from_agent.to_string(),
            super::handoff::target(&letter.to),
            letter.ended_at.map(|time| time.to_string()).unwrap_or_default(),
            decided.to_owned(),
        ]
    });
    table(["handoff", "reason", "from", "to", "since", "decision"], rows)
}

/// A dead letter as it is read; see `Shown` for why it is not the door's own type.
#[derive(Deserialize)]
struct Letter {
    #[serde(flatten)]
    handoff: wire::Handoff,
    envelope_content: Option<Value>,
    reports: Vec<Value>,
    discarded_because: Option<String>,
}

impl Show {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let reply = client.get(&format!("/v1/dead-letters/{}", self.handoff), &[]).await?;
        output.reply(&reply, |letter: Letter| {
            let id = letter.handoff.handoff_id;
            let open = letter
                .handoff
                .dead_letter
                .as_ref()
                .is_some_and(|dead| dead.redriven_to.is_none() && !dead.discarded);
            let redrive = open.then(|| client.command(&format!("dlq redrive {id} --by AGENT")));
            let discard =
                open.then(|| client.command(&format!("dlq discard {id} --by AGENT --reason …")));
            let facts = details(&letter.handoff)
                .maybe("discarded because", letter.discarded_because)
                .maybe("envelope", letter.envelope_content.as_ref().map(pretty))
                .maybe("redrive", redrive)
                .maybe("discard", discard);
            let reports = letter.reports.iter().map(|report| {
                Facts::default()
                    .with("attempt", &report["attempt"])
                    .with("ended", report["ended"].as_str().unwrap_or_default())
                    .with("report", pretty(&report["report"]))
                    .text()
            });
            let reports: Vec<_> = reports.collect();
            format!("{}{}\n{}", facts.text(), attempts_of(&letter.handoff), reports.join("\n"))
        })
    }
}

impl Redrive {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let path = format!("/v1/dead-letters/{}/redrive", self.handoff);
        let reply = client.post(&path, &wire::Approve { by: self.by }).await?;
        output.reply(&reply, |offered: wire::Offered| {
            let id = offered.handoff_id;
            Facts::default()
                .with("handoff", id)
                .with("task", offered.task_id)
                .with("status", offered.status)
                .with("sends again", self.handoff)
                .with("next", client.command(&format!("handoff wait {id}")))
                .text()
        })
    }
}

impl Discard {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let path = format!("/v1/dead-letters/{}/discard", self.handoff);
        let body = wire::Decide { by: self.by, reason: Some(self.reason) };
        let reply = client.post(&path, &body).await?;
        output.reply(&reply, moved)
    }
}
