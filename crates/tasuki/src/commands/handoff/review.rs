// SPDX-License-Identifier: Apache-2.0
//! What others than the holder decide about a handoff.

use clap::Args;
use tasuki_core::{AgentId, HandoffId};
use tasuki_protocol as wire;

use super::act;
use crate::client::Client;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Args)]
pub(super) struct Decide {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides
    #[arg(long, value_name = "AGENT")]
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
    #[arg(long, value_name = "AGENT")]
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
pub(super) struct Erase {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides; an administrator
    #[arg(long, value_name = "AGENT")]
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
