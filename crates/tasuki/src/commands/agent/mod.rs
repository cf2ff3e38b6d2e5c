// SPDX-License-Identifier: Apache-2.0
//! `tasuki agent`: who there is, what it can do, and what it may do.

mod check;
mod join;
mod look;
mod publish;

use clap::{Args, Subcommand};
use serde::Serialize;
use tasuki_core::AgentId;
use tasuki_core::breaker::Limits;
use tasuki_protocol as wire;

pub(super) use look::text;

use crate::args::millis;
use crate::client::{Client, Connect, escaped};
use crate::exit::Exit;
use crate::output::{Facts, Output, span};
use crate::rules::{self, Rules};

#[derive(Args)]
pub(crate) struct Agent {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Issue a join token for a newcomer, who may work unless options say else
    Invite(join::Invite),
    /// Enroll a key with a join token; makes the key if there is none yet
    Enroll(join::Enroll),
    /// Publish what an agent can do: its manifest, signed with --key if that is given
    Publish(publish::Publish),
    /// Show an agent, its manifest, its keys and what it may do
    Show(Named),
    /// List agents
    List(look::List),
    /// Let an agent finish what it has; nothing new is routed to it
    Drain(Named),
    /// Let a drained agent have work again
    Resume(Named),
    /// Take an agent out; what it holds waits for somebody else
    Deregister(Named),
    /// Set after how many failures nothing more goes to an agent, and for how long
    Breaker(Breaker),
    /// Test rules before they are set: which of some cases they allow, and whether that was expected
    Check(check::Check),
    /// Show what an agent may do, or with options say all of it anew
    Rules(Ruled),
}

#[derive(Args)]
struct Named {
    /// The agent's name
    name: AgentId,
}

#[derive(Args)]
struct Breaker {
    /// The agent's name
    name: AgentId,
    /// How many handoffs in a row must use up their tries; the broker's own numbers without it
    #[arg(long, value_name = "N", requires = "open")]
    failures: Option<u32>,
    /// How long nothing goes to it then, such as 60s
    #[arg(long, value_name = "SPAN", value_parser = millis, requires = "failures")]
    open: Option<u64>,
}

impl Breaker {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let limits = self.failures.zip(self.open);
        let limits = limits.map(|(failures, open_ms)| Limits { failures, open_ms });
        let reply =
            client.post(&path(&self.name, "/breaker"), &wire::SetBreaker { limits }).await?;
        output.reply(&reply, |health: wire::TargetHealth| {
            Facts::default()
                .with("agent", &self.name)
                .with("breaker", &health.breaker)
                .with("failures", health.limits.failures)
                .with("open for", span(health.limits.open_ms))
                .text()
        })
    }
}

#[derive(Args)]
struct Ruled {
    /// The agent's name
    name: AgentId,
    #[command(flatten)]
    rules: Rules,
}

impl Agent {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let connect = &self.connect;
        match self.verb {
            Verb::Enroll(enroll) => enroll.run(connect, output).await?,
            Verb::Invite(invite) => invite.run(&connect.client()?, output).await?,
            Verb::Publish(publish) => publish.run(&connect.client()?, output).await?,
            Verb::List(list) => list.run(&connect.client()?, output).await?,
            Verb::Show(named) => {
                let reply = connect.client()?.get(&path(&named.name, ""), &[]).await?;
                output.reply(&reply, |agent: wire::Agent| look::text_whole(&agent))?;
            }
            Verb::Drain(named) => act(connect, output, &named.name, "drain").await?,
            Verb::Resume(named) => act(connect, output, &named.name, "resume").await?,
            Verb::Deregister(named) => act(connect, output, &named.name, "deregister").await?,
            Verb::Breaker(breaker) => breaker.run(&connect.client()?, output).await?,
            Verb::Check(check) => return check.run(output),
            Verb::Rules(ruled) => ruled.run(&connect.client()?, output).await?,
        }
        Ok(Exit::Done)
    }
}

/// Where an agent is found. With its tenant a name has a slash, which must not part the path.
fn path(agent: &AgentId, below: &str) -> String {
    format!("/v1/agents/{}{below}", escaped(agent.as_str()))
}

async fn act(connect: &Connect, output: Output, agent: &AgentId, verb: &str) -> anyhow::Result<()> {
    let below = format!("/{verb}");
    post(&connect.client()?, output, &path(agent, &below), &wire::Nothing {}).await
}

/// Posts something about an agent and shows how it is then.
async fn post<T: Serialize>(
    client: &Client,
    output: Output,
    path: &str,
    body: &T,
) -> anyhow::Result<()> {
    let reply = client.post(path, body).await?;
    output.reply(&reply, |agent: wire::Agent| text(&agent))
}

impl Ruled {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let reply = if self.rules.is_empty() {
            client.get(&path(&self.name, ""), &[]).await?
        } else {
            let body = wire::SetRules { rules: self.rules.exactly() };
            client.post(&path(&self.name, "/rules"), &body).await?
        };
        output.reply(&reply, |agent: wire::Agent| {
            let rules = agent.rules.as_deref();
            // They are for the agent itself and for administrators.
            let rules = rules.map_or_else(|| "not shown to you".into(), rules::texts);
            Facts::default().with("agent", &agent.agent_id).with("rules", rules).text()
        })
    }
}
