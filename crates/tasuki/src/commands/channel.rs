// SPDX-License-Identifier: Apache-2.0
//! `tasuki channel`: telling something to many.

use clap::{Args, Subcommand};
use tasuki_core::ids::{ChannelId, IdempotencyKey};
use tasuki_core::{AgentId, Cursor};
use tasuki_protocol as wire;

use crate::args::{AGENT, json, millis};
use crate::client::{Client, Connect, escaped};
use crate::exit::Exit;
use crate::output::{Facts, Output, table};

#[derive(Args)]
pub(crate) struct Channel {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show who hears what is told on a channel
    Show(Show),
    /// Hear what is told on a channel from now on
    Subscribe(Subscribe),
    /// Hear it no longer
    Unsubscribe(Subscribe),
    /// Tell something to all who subscribe, or to those who are named
    Publish(Box<Publish>),
    /// Read what was told
    Messages(Messages),
}

#[derive(Args)]
struct Show {
    channel: ChannelId,
}

#[derive(Args)]
struct Subscribe {
    channel: ChannelId,
    /// Who hears it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    agent: AgentId,
}

#[derive(Args)]
struct Publish {
    channel: ChannelId,
    /// Who tells it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    from: AgentId,
    /// The user's own words
    #[arg(long, value_name = "TEXT")]
    intent: String,
    /// What is told: a JSON object with a `type`, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    payload: String,
    /// Who gets it, repeated; whoever subscribes without it
    #[arg(long = "to", value_name = "AGENT")]
    receivers: Vec<AgentId>,
    /// How long each of them may take, such as 1h
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    expires_in: Option<u64>,
    /// Makes it safe to repeat
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,
}

#[derive(Args)]
struct Messages {
    channel: ChannelId,
    /// Only what was told after the message at this position
    #[arg(long, value_name = "POSITION")]
    after: Option<Cursor>,
    /// How many at most, up to 1000
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

impl Channel {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        match self.verb {
            Verb::Show(show) => {
                let reply = client.get(&path(&show.channel, ""), &[]).await?;
                output.reply(&reply, |channel| subscribers(&channel))?;
            }
            Verb::Subscribe(wish) => wish.run(client, output, "/subscribe").await?,
            Verb::Unsubscribe(wish) => wish.run(client, output, "/unsubscribe").await?,
            Verb::Publish(publish) => publish.run(client, output).await?,
            Verb::Messages(wish) => wish.run(client, output).await?,
        }
        Ok(Exit::Done)
    }
}

fn path(channel: &ChannelId, rest: &str) -> String {
    format!("/v1/channels/{}{rest}", escaped(channel.as_str()))
}

fn subscribers(channel: &wire::Channel) -> String {
    if channel.subscribers.is_empty() {
        return format!("nobody subscribes to {}", channel.channel);
    }
    let rows = channel.subscribers.iter().map(|it| [it.agent.to_string(), it.since.to_string()]);
    table(["subscriber", "since"], rows)
}

impl Subscribe {
    async fn run(self, client: &Client, output: Output, verb: &str) -> anyhow::Result<()> {
        let body = wire::Subscribe { agent: self.agent };
        let reply = client.post(&path(&self.channel, verb), &body).await?;
        output.reply(&reply, |channel| subscribers(&channel))
    }
}

impl Publish {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let body = serde_json::json!({
            "from_agent": self.from,
            "intent": self.intent,
            "payload": json::<serde_json::Value>("--payload", &self.payload)?,
            "receivers": (!self.receivers.is_empty()).then_some(self.receivers),
            "expires_in_ms": self.expires_in,
            "idempotency_key": self.idempotency_key,
        });
        let reply = client.post(&path(&self.channel, "/publish"), &body).await?;
        output.reply(&reply, |told: wire::Published| {
            let absent = told.handoffs.iter().filter(|it| !it.listening).count();
            let absent = match (told.handoffs.len(), absent) {
                (0, _) => Some("nobody subscribes to it, so nobody was told".to_owned()),
                (_, 0) => None,
                _ => Some(format!("{absent} of them are not there yet")),
            };
            Facts::default()
                .with("task", told.task_id)
                .with("receivers", told.handoffs.len())
                .maybe("listening", absent)
                .with("position", told.position)
                .with("next", client.command(&format!("task join {}", told.task_id)))
                .text()
        })
    }
}

impl Messages {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let query = [
            ("after", self.after.map(|after| after.to_string())),
            ("limit", Some(self.limit.to_string())),
        ];
        let reply = client.get(&path(&self.channel, "/messages"), &query).await?;
        output.reply(&reply, |page: wire::Messages| {
            if page.messages.is_empty() {
                return "nothing was told".to_owned();
            }
            let rows = page.messages.iter().map(|it| {
                [
                    it.position.to_string(),
                    it.from_agent.to_string(),
                    it.task_id.to_string(),
                    it.intent.clone(),
                ]
            });
            let missed = match page.missed {
                Some(_) => "messages before these may be missing: the broker lost the log's end\n",
                None => "",
            };
            format!(
                "{missed}{}more with --after {}\n",
                table(["position", "from", "task", "intent"], rows),
                page.next
            )
        })
    }
}
