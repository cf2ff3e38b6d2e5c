// SPDX-License-Identifier: Apache-2.0
//! `tasuki health`: how targets fare.

use clap::Args;
use tasuki_protocol as wire;

use super::handoff::target;
use super::target::paused;
use crate::client::Connect;
use crate::exit::Exit;
use crate::output::{Output, span, table};

#[derive(Args)]
pub(crate) struct Health {
    #[command(flatten)]
    connect: Connect,
}

impl Health {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let reply = self.connect.client()?.get("/v1/health/targets", &[]).await?;
        output.reply(&reply, |health: wire::TargetsHealth| {
            if health.targets.is_empty() {
                return "nothing was sent to anybody yet".to_owned();
            }
            let rows = health.targets.iter().map(|it| {
                let share = |value: Option<u64>| {
                    value.map_or_else(String::new, |it| format!("{}.{}%", it / 10, it % 10))
                };
                let breaker = match it.reset_in_ms {
                    Some(left) => format!("{} for {}", it.breaker, span(left)),
                    None => it.breaker.clone(),
                };
                [
                    target(&it.target),
                    if it.live { "yes" } else { "no" }.to_owned(),
                    breaker,
                    paused(it.paused.as_ref()),
                    it.failures_in_row.to_string(),
                    it.offers.to_string(),
                    share(it.utilisation_per_mille),
                    share(it.completeness_per_mille),
                ]
            });
            let heads = [
                "target",
                "live",
                "breaker",
                "paused",
                "failures in a row",
                "offers",
                "budget used",
                "complete",
            ];
            table(heads, rows)
        })?;
        Ok(Exit::Done)
    }
}
