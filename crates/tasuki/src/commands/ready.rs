// SPDX-License-Identifier: Apache-2.0

use clap::Args;
use tasuki_protocol as wire;

use crate::client::Connect;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Whether a broker would take a command now. It need not know who asks.
#[derive(Args)]
pub(crate) struct Ready {
    #[command(flatten)]
    connect: Connect,
}

impl Ready {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let (status, text) = self.connect.stranger()?.probe("/readyz").await?;
        if status == 200 {
            output.reply(&text, |health: wire::Health| format!("{}\n", health.status))?;
            return Ok(Exit::Done);
        }
        let health: Option<wire::Health> = serde_json::from_str(&text).ok();
        let reason = health.and_then(|health| health.reason);
        let reason = reason.unwrap_or_else(|| format!("it answers with status {status}"));
        let hint = "wait a moment, or look into the broker's log";
        Err(Failure::new(Exit::Unavailable, format!("the broker is not ready: {reason}"), hint)
            .into())
    }
}
