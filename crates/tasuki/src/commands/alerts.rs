// SPDX-License-Identifier: Apache-2.0
//! `tasuki alerts`: what holds, what people were told, silences, and the rules for Prometheus.

use clap::{Args, Subcommand};
use tasuki_core::alert::rules;
use tasuki_protocol as wire;

use crate::args::millis;
use crate::client::{Client, Connect};
use crate::exit::{Exit, Failure};
use crate::output::{Output, table};

#[derive(Args)]
pub(crate) struct Alerts {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List alerts that are on, pending or ended last, and silences
    List,
    /// Keep people from being told of alerts for a while
    Silence(Silence),
    /// End a silence
    Unsilence(Unsilence),
    /// Send a notice to every webhook to try it out
    Test,
    /// Print the rules as a file for Prometheus; no broker is needed
    Rules,
}

#[derive(Args)]
struct Which {
    /// The rule, such as HandoffFailed; all of them without it
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// The target as alerts name it, such as agent:coder; all of them without it
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Why; it stands in the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Args)]
struct Silence {
    #[command(flatten)]
    which: Which,
    /// For how long, such as 2h
    #[arg(long = "for", value_name = "SPAN", value_parser = millis)]
    span: u64,
}

#[derive(Args)]
struct Unsilence {
    #[command(flatten)]
    which: Which,
}

impl Alerts {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        if let Verb::Rules = self.verb {
            let found = serde_json::json!({ "file": rules::file() });
            output.found(&found, |_| rules::file())?;
            return Ok(Exit::Done);
        }
        let client = self.connect.client()?;
        match self.verb {
            Verb::List => {
                let reply = client.get("/v1/alerts", &[]).await?;
                output.reply(&reply, |alerts: wire::Alerts| listed(&alerts))?;
            }
            Verb::Silence(silence) => {
                silence.which.silence(&client, silence.span, output).await?;
            }
            Verb::Unsilence(unsilence) => unsilence.which.silence(&client, 0, output).await?,
            Verb::Test => return test(&client, output).await,
            Verb::Rules => {}
        }
        Ok(Exit::Done)
    }
}

impl Which {
    async fn silence(self, client: &Client, for_ms: u64, output: Output) -> anyhow::Result<()> {
        let Self { rule, target, reason } = self;
        let body = wire::SilenceAlert { rule, target, for_ms, reason };
        let reply = client.post("/v1/alerts/silence", &body).await?;
        output.reply(&reply, |alerts: wire::Alerts| listed(&alerts))
    }
}

async fn test(client: &Client, output: Output) -> anyhow::Result<Exit> {
    let reply = client.post("/v1/alerts/test", &serde_json::json!({})).await?;
    let mut tested = Vec::new();
    output.reply(&reply, |said: wire::AlertTested| {
        tested = said.webhooks;
        let rows = tested.iter().map(|webhook| {
            let outcome = webhook.problem.clone().unwrap_or_else(|| "sent".into());
            [webhook.url.clone(), outcome]
        });
        table(["webhook", "outcome"], rows)
    })?;
    if tested.is_empty() && !output.json {
        let hint = "name one with --alert-webhook when the broker is started";
        return Err(Failure::new(Exit::Refused, "this broker has no webhook", hint).into());
    }
    Ok(if tested.iter().all(|webhook| webhook.sent) { Exit::Done } else { Exit::Unavailable })
}

fn listed(alerts: &wire::Alerts) -> String {
    let rows = alerts.alerts.iter().map(|alert| {
        let told = match &alert.told {
            _ if alert.silenced => "silenced".to_owned(),
            None => "-".to_owned(),
            Some(told) if told.sent => format!("{} sent", told.state),
            Some(told) => format!("{} not sent", told.state),
        };
        [
            alert.state.clone(),
            alert.severity.clone(),
            alert.rule.clone(),
            alert.target.clone().unwrap_or_else(|| "-".into()),
            alert.value.clone(),
            alert.since.to_string(),
            told,
        ]
    });
    let head = ["state", "severity", "rule", "target", "value", "since", "told"];
    let mut text = match alerts.alerts.is_empty() {
        true => "no alerts\n".to_owned(),
        false => table(head, rows),
    };
    if !alerts.silences.is_empty() {
        let all = || "all".to_owned();
        let rows = alerts.silences.iter().map(|silence| {
            [
                silence.rule.clone().unwrap_or_else(all),
                silence.target.clone().unwrap_or_else(all),
                silence.until.to_string(),
                silence.by.clone(),
                silence.reason.clone(),
            ]
        });
        text.push('\n');
        text += &table(["silenced rule", "target", "until", "by", "reason"], rows);
    }
    text
}
