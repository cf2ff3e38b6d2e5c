// SPDX-License-Identifier: Apache-2.0
//! What is said while work goes on.

use clap::Args;
use serde_json::Value;
use tasuki_core::ids::ArtifactName;
use tasuki_core::talk::QuestionKind;
use tasuki_core::{AgentId, HandoffId};
use tasuki_protocol as wire;

use super::held::Held;
use crate::args::{AGENT, json, millis, words};
use crate::client::Client;
use crate::exit::Exit;
use crate::output::{Facts, Output, bytes, table};

#[derive(Args)]
pub(super) struct Ask {
    #[command(flatten)]
    held: Held,
    /// The question
    #[arg(long, value_name = "TEXT")]
    text: String,
    /// Whether something must be known, or leave is asked for
    #[arg(
        long,
        value_parser = words::<QuestionKind>(&["input", "authorization"]),
        default_value = "input"
    )]
    kind: QuestionKind,
    /// The JSON Schema that the answer must fit, in place or as @FILE
    #[arg(long, value_name = "JSON")]
    schema: Option<String>,
    /// How long it may wait for its answer, such as 30m
    #[arg(long, value_name = "TIME", value_parser = millis)]
    answer_within: Option<u64>,
    /// The answer that holds if nobody gives one in time, as JSON
    #[arg(long, value_name = "JSON", requires = "answer_within")]
    default: Option<String>,
    /// For how long the answer is kept for the asker alone
    #[arg(long, value_name = "TIME", value_parser = millis)]
    keep: Option<u64>,
}

impl Ask {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let holding = self.held.find(client).await?;
        let body = wire::Ask {
            claim_id: holding.claim_id,
            fence: holding.fence,
            kind: self.kind,
            text: self.text,
            details: tasuki_core::canonical::Object::default(),
            schema: self.schema.map(|text| json("--schema", &text)).transpose()?,
            answer_ms: self.answer_within,
            default: self.default.map(|text| json("--default", &text)).transpose()?,
            keep_ms: self.keep,
            by_id: false,
        };
        let reply = holding.post(client, "ask", &body).await?;
        holding.ended();
        output.reply(&reply, |asked: wire::AskReply| {
            Facts::default()
                .with("handoff", asked.handoff_id)
                .with("task", asked.task_id)
                .with("state", asked.state)
                .with("question", asked.question)
                .text()
        })?;
        Ok(Exit::Done)
    }
}

#[derive(Args)]
pub(super) struct Message {
    /// The handoff's id
    handoff: HandoffId,
    /// Who sends it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: Option<AgentId>,
    /// What to say to the holder of the work; without it, what was said is listed
    #[arg(long, value_name = "TEXT", requires = "by")]
    text: Option<String>,
}

impl Message {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let path = format!("/v1/handoffs/{}/messages", self.handoff);
        let reply = match (self.by, self.text) {
            (Some(by), Some(text)) => {
                let details = tasuki_core::canonical::Object::default();
                client.post(&path, &wire::SendMessage { by, text, details }).await?
            }
            (None, _) | (_, None) => client.get(&path, &[]).await?,
        };
        output.reply(&reply, |said: wire::HolderMessages| messages(&said.messages))?;
        Ok(Exit::Done)
    }
}

pub(super) fn messages(messages: &[wire::HolderMessage]) -> String {
    let rows = messages.iter().map(|message| {
        let noted = message.acknowledged_by.as_ref().map(ToString::to_string);
        [
            message.number.to_string(),
            message.by.to_string(),
            message.text.clone().unwrap_or_else(|| "(erased)".into()),
            noted.unwrap_or_else(|| "nobody yet".into()),
        ]
    });
    table(["number", "by", "message", "acknowledged by"], rows)
}

#[derive(Args)]
pub(super) struct Attach {
    #[command(flatten)]
    held: Held,
    /// What it is called; another one of the same name takes its place
    #[arg(long)]
    name: ArtifactName,
    /// What it is
    #[arg(long = "type", value_name = "TYPE", default_value = "text/plain")]
    kind: String,
    /// The piece as a text
    #[arg(long, value_name = "TEXT", required_unless_present = "value", conflicts_with = "value")]
    text: Option<String>,
    /// The piece as JSON, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    value: Option<String>,
}

impl Attach {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let content: Value = match (self.text, self.value) {
            (Some(text), _) => Value::String(text),
            (None, Some(text)) => json("--value", &text)?,
            (None, None) => anyhow::bail!("say the content: --text or --value"),
        };
        let holding = self.held.find(client).await?;
        let body = wire::Attach {
            claim_id: holding.claim_id,
            fence: holding.fence,
            name: self.name,
            kind: self.kind,
            content,
        };
        holding.act(client, output, "artifacts", &body).await
    }
}

#[derive(Args)]
pub(super) struct Artifacts {
    /// The handoff's id
    handoff: HandoffId,
    /// Only the one of this name, with its content
    #[arg(long)]
    name: Option<ArtifactName>,
}

impl Artifacts {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let query = [("name", self.name.map(|name| name.to_string()))];
        let path = format!("/v1/handoffs/{}/artifacts", self.handoff);
        let reply = client.get(&path, &query).await?;
        output.reply(&reply, |found: wire::Artifacts| artifacts(&found.artifacts))?;
        Ok(Exit::Done)
    }
}

fn artifacts(found: &[wire::Artifact]) -> String {
    if let [one] = found
        && let Some(content) = &one.content
    {
        return content.as_str().map_or_else(|| content.to_string(), str::to_owned);
    }
    let rows = found.iter().map(|artifact| {
        [
            artifact.name.to_string(),
            artifact.kind.clone(),
            artifact.version.to_string(),
            artifact.by.to_string(),
            bytes(artifact.bytes),
        ]
    });
    table(["name", "type", "version", "by", "size"], rows)
}

#[derive(Args)]
pub(super) struct PutBack {
    #[command(flatten)]
    held: Held,
    /// For how long nobody can claim it, such as 10m
    #[arg(long = "for", value_name = "TIME", value_parser = millis)]
    for_ms: u64,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl PutBack {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let holding = self.held.find(client).await?;
        let body = wire::PutBack {
            claim_id: holding.claim_id,
            fence: holding.fence,
            until: None,
            for_ms: Some(self.for_ms),
            reason: self.reason,
        };
        holding.end(client, output, "put-back", &body).await
    }
}
