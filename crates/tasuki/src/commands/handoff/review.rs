// SPDX-License-Identifier: Apache-2.0
//! What others than the holder decide about a handoff.

use clap::Args;
use tasuki_core::event::TaintPolicy;
use tasuki_core::{AgentId, Capability, HandoffId};
use tasuki_protocol as wire;

use super::{act, details};
use crate::args::{AGENT, millis};
use crate::client::Client;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Args)]
pub(super) struct Decide {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Decide {
    pub(super) async fn run(
        self,
        verb: &str,
        client: &Client,
        output: Output,
    ) -> anyhow::Result<Exit> {
        let body = wire::Decide { by: self.by, reason: self.reason };
        act(client, output, self.handoff, verb, &body).await
    }
}

#[derive(Args)]
pub(super) struct Approve {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides; not the sender
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
}

impl Approve {
    pub(super) async fn run(
        self,
        verb: &str,
        client: &Client,
        output: Output,
    ) -> anyhow::Result<Exit> {
        act(client, output, self.handoff, verb, &wire::Approve { by: self.by }).await
    }
}

#[derive(Args)]
pub(super) struct Reject {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides; neither the sender nor the receiver
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Why; the sender reads it
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Reject {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::Reject { by: self.by, reason: self.reason };
        act(client, output, self.handoff, "reject", &body).await
    }
}

#[derive(Args)]
pub(super) struct Retract {
    /// The handoff's id
    handoff: HandoffId,
    /// Who takes it back: who made it, who asked for it, or who decides about the task
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Hold back what is built on it until somebody has approved, instead of telling everybody
    #[arg(long)]
    block: bool,
}

impl Retract {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let policy = if self.block { TaintPolicy::Block } else { TaintPolicy::Flag };
        let body = wire::Retract { by: self.by, reason: self.reason, policy };
        let path = format!("/v1/handoffs/{}/retract", self.handoff);
        let reply = client.post(&path, &body).await?;
        output.reply(&reply, |handoff: wire::Handoff| details(&handoff).text())?;
        Ok(Exit::Done)
    }
}

#[derive(Args)]
pub(super) struct Counter {
    /// The handoff's id
    handoff: HandoffId,
    /// Who would take it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    agent: AgentId,
    /// What the agent can do, besides what is addressed to it by name; may be repeated
    #[arg(long = "capability", value_name = "CAPABILITY")]
    capabilities: Vec<Capability>,
    /// How long a claim should hold without a heartbeat, such as 1m
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    lease: Option<u64>,
    /// How long one attempt should be able to take, such as 2h
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    work: Option<u64>,
    /// How many attempts there should be
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
    /// The tokens that it would need
    #[arg(long, value_name = "N")]
    budget_tokens: Option<u32>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Counter {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let terms = wire::TermsPatch {
            lease_ms: self.lease,
            work_ms: self.work,
            attempts: self.attempts,
            ..wire::TermsPatch::default()
        };
        let body = wire::Counter {
            agent: self.agent,
            capabilities: self.capabilities,
            terms,
            budget_tokens: self.budget_tokens,
            reason: self.reason,
        };
        act(client, output, self.handoff, "counter", &body).await
    }
}

#[derive(Args)]
pub(super) struct Settle {
    /// The handoff's id
    handoff: HandoffId,
    /// The sender of the handoff
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Who made the counter-offer
    #[arg(long, value_name = "AGENT")]
    agent: AgentId,
    /// Refuse it; without this it is accepted
    #[arg(long)]
    refuse: bool,
}

impl Settle {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::Settle { by: self.by, agent: self.agent, accept: !self.refuse };
        act(client, output, self.handoff, "settle", &body).await
    }
}

#[derive(Args)]
pub(super) struct Erase {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides; an administrator
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Erase {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::Delete { by: self.by, reason: self.reason };
        act(client, output, self.handoff, "erase", &body).await
    }
}
