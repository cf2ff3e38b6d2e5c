// SPDX-License-Identifier: Apache-2.0
//! How somebody new comes in: an administrator invites, and the newcomer enrolls a key that nobody
//! else ever had.

use std::path::{Path, PathBuf};

use clap::Args;
use tasuki_core::AgentId;
use tasuki_core::registry::Purpose;
use tasuki_protocol as wire;

use super::text;
use crate::args::millis;
use crate::client::{Client, Connect, KeyFile};
use crate::commands::token;
use crate::exit::Failure;
use crate::output::Output;
use crate::rules::{Role, Rules};

#[derive(Args)]
pub(super) struct Invite {
    /// The newcomer's name
    name: AgentId,
    #[command(flatten)]
    rules: Rules,
    /// How long the invitation counts, up to 7d
    #[arg(long, value_name = "SPAN", value_parser = millis, default_value = "10m")]
    expires: u64,
}

#[derive(Args)]
pub(super) struct Enroll {
    /// The name that the invitation is for
    name: AgentId,
    /// The join token from the invitation
    #[arg(long, value_name = "TOKEN")]
    join: String,
    /// The key file, which is made if it is not there [default: NAME.key]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Invite {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let body = wire::IssueToken {
            purpose: Purpose::Join,
            agent_id: self.name,
            rules: self.rules.or_usual(Role::Worker),
            expires_in_ms: Some(self.expires),
        };
        let reply = client.post("/v1/tokens", &body).await?;
        let broker = client.audience().await?;
        output.reply(&reply, |issued: wire::IssuedToken| {
            let mut words =
                format!("agent enroll {} --join {}", issued.token.agent_id, issued.text);
            if let Some(broker) = broker {
                words += &format!(" --broker {broker}");
            }
            // Whoever invites signs with a key of its own, which is not the newcomer's.
            token::details(&issued.token)
                .with(
                    "note",
                    "the newcomer enrolls with this; it is shown this once and works once",
                )
                .with("enroll", client.command_with(&words, None))
                .text()
        })
    }
}

impl Enroll {
    pub(super) async fn run(self, connect: &Connect, output: Output) -> anyhow::Result<()> {
        // The token is the proof. Whatever key is set for other commands need not exist yet.
        let client = connect.stranger()?;
        let file: PathBuf = self.out.unwrap_or_else(|| format!("{}.key", self.name.name()).into());
        let file = key(&file, &self.name)?;
        let body = wire::Join {
            token: self.join.trim().to_owned(),
            proof: file.possession(&self.name),
            agent_id: self.name,
            key: file.public(),
        };
        let reply = client.post("/v1/join", &body).await?;
        // From now on what is signed with it is for this broker and no other.
        if let Some(broker) = client.audience().await? {
            file.note_broker(broker)?;
        }
        output.reply(&reply, |agent: wire::Agent| {
            let words = format!("handoff claim --agent {} --wait 30s", agent.agent_id);
            let next = client.command_with(&words, Some(&file.path));
            let facts = format!("key file: {}\nnext:     {next}\n", file.path.display());
            format!("{}\n{facts}", text(&agent))
        })
    }
}

/// The key of a file, or a new one: a try that failed half-way goes on with the key it made.
fn key(path: &Path, agent: &AgentId) -> Result<KeyFile, Failure> {
    if !path.exists() {
        return KeyFile::create(path, Some(agent));
    }
    let file = KeyFile::read(path)?;
    if let Some(other) = file.agent.as_ref().filter(|known| known.name() != agent.name()) {
        let message = format!("{} has the key of {other}, not of {agent}", path.display());
        return Err(Failure::usage(message, "choose another file with --out"));
    }
    Ok(file)
}
