// SPDX-License-Identifier: Apache-2.0
//! `tasuki token`: what agents show that cannot sign, and what newcomers enroll with.

use clap::{Args, Subcommand};
use tasuki_core::AgentId;
use tasuki_core::ids::TokenId;
use tasuki_core::registry::{Origin, Purpose};
use tasuki_protocol as wire;

use serde::Serialize;

use super::serve;
use crate::args::millis;
use crate::client::{Client, Connect};
use crate::config::{Directory, Keys};
use crate::exit::Exit;
use crate::output::{Facts, Output, table};
use crate::rules::{self, Role, Rules};

#[derive(Args)]
pub(crate) struct Token {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Issue a token for an agent; it allows what the agent may do, or as options say, less
    Issue(Issue),
    /// List tokens, newest first, without their secrets
    List,
    /// Revoke a token at once
    Revoke(Revoke),
    /// Make a new token for the first administrator, as who has the data directory; the broker is stopped
    Recover(Recover),
}

#[derive(Args)]
struct Recover {
    #[command(flatten)]
    directory: Directory,
    /// The PostgreSQL that brokers share, instead of the data directory
    #[arg(long, env = "TASUKI_STORE", hide_env_values = true, value_name = "URL")]
    store: Option<String>,
}

#[derive(Args)]
struct Issue {
    /// For whom the token speaks
    #[arg(long, value_name = "AGENT")]
    agent: AgentId,
    #[command(flatten)]
    rules: Rules,
    /// How long it counts, up to 366d
    #[arg(long, value_name = "SPAN", value_parser = millis, default_value = "30d")]
    expires: u64,
}

#[derive(Args)]
struct Revoke {
    /// The token's id, as `tasuki token list` shows it
    token_id: TokenId,
}

impl Token {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        if let Verb::Recover(recover) = self.verb {
            recover.run(output).await?;
            return Ok(Exit::Done);
        }
        let client = &self.connect.client()?;
        match self.verb {
            Verb::Recover(_) => unreachable!("it needs no broker"),
            Verb::Issue(issue) => issue.run(client, output).await?,
            Verb::List => list(client, output).await?,
            Verb::Revoke(revoke) => revoke.run(client, output).await?,
        }
        Ok(Exit::Done)
    }
}

impl Issue {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let body = wire::IssueToken {
            purpose: Purpose::Bearer,
            agent_id: self.agent,
            // A token narrows what its agent may do, so everything is what the agent may do.
            rules: self.rules.or_usual(Role::Admin),
            expires_in_ms: Some(self.expires),
        };
        let reply = client.post("/v1/tokens", &body).await?;
        output.reply(&reply, |issued: wire::IssuedToken| {
            details(&issued.token)
                .with("token", &issued.text)
                .with("note", "keep it now: it is shown this once; use it as TASUKI_TOKEN")
                .text()
        })
    }
}

#[derive(Serialize)]
struct Recovered {
    file: String,
}

impl Recover {
    async fn run(self, output: Output) -> anyhow::Result<()> {
        let mut keys = Keys::default();
        keys.data = Some(self.directory.path()?);
        keys.store = self.store;
        let config = keys.resolve(None)?;
        if config.store.is_none() {
            self.directory.existing()?;
        }
        let file = serve::recover(&config).await?;
        let found = Recovered { file: file.display().to_string() };
        output.found(&found, |found| {
            Facts::default()
                .with("token", format!("in {}", found.file))
                .with(
                    "note",
                    "it counts for 30 days; those that the broker made before are revoked",
                )
                .text()
        })
    }
}

async fn list(client: &Client, output: Output) -> anyhow::Result<()> {
    let reply = client.get("/v1/tokens", &[]).await?;
    output.reply(&reply, |listed: wire::Tokens| {
        if listed.tokens.is_empty() {
            return "no tokens".into();
        }
        let time = |time: Option<tasuki_core::Timestamp>| {
            time.map(|time| time.to_string()).unwrap_or_default()
        };
        let rows = listed.tokens.iter().map(|token| {
            [
                token.token_id.to_string(),
                token.purpose.to_string(),
                token.agent_id.to_string(),
                token.issued_at.to_string(),
                time(token.expires_at),
                time(token.ended_at),
                made(token),
            ]
        });
        table(["token", "purpose", "agent", "issued", "expires", "ended", "made by"], rows)
    })
}

impl Revoke {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let path = format!("/v1/tokens/{}/revoke", self.token_id);
        let reply = client.post(&path, &wire::Nothing {}).await?;
        output.reply(&reply, |token: wire::TokenInfo| details(&token).text())
    }
}

pub(super) fn details(token: &wire::TokenInfo) -> Facts {
    Facts::default()
        .with("token id", token.token_id)
        .with("purpose", token.purpose)
        .with("agent", &token.agent_id)
        .with("rules", rules::texts(&token.rules))
        .with("issued", token.issued_at)
        .maybe("expires", token.expires_at)
        .maybe("ended", token.ended_at)
        .with("made by", made(token))
}

/// Who made a token, and from what.
fn made(token: &wire::TokenInfo) -> String {
    let by = token.made_by.as_ref().map_or_else(|| "the broker".into(), ToString::to_string);
    match token.made_from {
        Some(Origin::Token(from)) => format!("{by}, from {from}"),
        Some(Origin::Key(key)) => format!("{by}, with key {key}"),
        None => by,
    }
}
