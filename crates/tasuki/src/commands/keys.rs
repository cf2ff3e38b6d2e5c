// SPDX-License-Identifier: Apache-2.0
//! `tasuki keys`: the keys that agents sign with. A secret key is made here, stays in its file, and
//! is never printed or sent.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use tasuki_core::AgentId;
use tasuki_core::identity::PublicKey;
use tasuki_core::ids::KeyId;
use tasuki_protocol as wire;

use super::agent;
use crate::args::millis;
use crate::client::{Client, Connect, KeyFile, escaped, quoted};
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, span};

#[derive(Args)]
pub(crate) struct Keys {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make a key in a new file, for somebody to enroll
    New(New),
    /// Show the public half of the key in a file
    Show(Show),
    /// Make a client certificate of the key of --key, for programs that show one instead of signing
    Certificate(Certificate),
    /// Replace the key of --key by a new one; the old one still counts for a while
    Rotate(Rotate),
    /// Revoke a key at once; with its last key an agent loses what it holds
    Revoke(Revoke),
}

#[derive(Args)]
struct New {
    /// The file to make; one that exists is not overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Whose key it is to be, as a note in the file
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentId>,
}

#[derive(Args)]
struct Show {
    /// The key file
    file: PathBuf,
}

#[derive(Args)]
struct Certificate {
    /// The file for certificate and key, in PEM form, as `curl --cert` takes it; one that exists is not
    /// overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Args)]
struct Rotate {
    /// Whose key it is
    #[arg(long, value_name = "AGENT")]
    agent: AgentId,
    /// The file for the new key; one that exists is not overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long the old key still counts, up to 7d
    #[arg(long, value_name = "SPAN", value_parser = millis, default_value = "1h")]
    grace: u64,
}

#[derive(Args)]
struct Revoke {
    /// The key's id, as `tasuki agent show` lists it
    key_id: KeyId,
    /// Whose key it is
    #[arg(long, value_name = "AGENT")]
    agent: AgentId,
}

impl Keys {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::New(new) => {
                let file = KeyFile::create(&new.out, new.agent.as_ref())?;
                Shown::of(&file).print(output)?;
            }
            Verb::Show(show) => Shown::of(&KeyFile::read(&show.file)?).print(output)?,
            Verb::Certificate(certificate) => certificate.run(&self.connect.client()?, output)?,
            Verb::Rotate(rotate) => rotate.run(&self.connect.client()?, output).await?,
            Verb::Revoke(revoke) => revoke.run(&self.connect.client()?, output).await?,
        }
        Ok(Exit::Done)
    }
}

/// What of a key file may be seen.
#[derive(Serialize)]
struct Shown {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<AgentId>,
    key_id: KeyId,
    key: PublicKey,
}

impl Shown {
    fn of(file: &KeyFile) -> Self {
        let key = file.public();
        let agent = file.agent.clone();
        Self { file: file.path.display().to_string(), agent, key_id: key.id(), key }
    }

    fn print(&self, output: Output) -> anyhow::Result<()> {
        output.found(self, |shown| {
            Facts::default()
                .with("file", &shown.file)
                .maybe("agent", shown.agent.as_ref())
                .with("key id", shown.key_id)
                .with("public key", shown.key)
                .text()
        })
    }
}

impl Certificate {
    fn run(&self, client: &Client, output: Output) -> anyhow::Result<()> {
        let Some(key) = client.key() else {
            let message = "there is no key: neither --key nor TASUKI_KEY names a file";
            return Err(Failure::usage(message, "name the agent's key file with --key").into());
        };
        if self.out.exists() {
            let message = format!("{} exists already", self.out.display());
            return Err(Failure::usage(message, "name a new file with --out").into());
        }
        let name = key.agent.as_ref().map_or("agent", AgentId::as_str);
        let (certificate, secret) = crate::tls::of_agent(name, &key.seed())?;
        crate::private_file(&self.out, &format!("{certificate}{secret}"))?;
        let shown = Shown { file: self.out.display().to_string(), ..Shown::of(key) };
        shown.print(output)
    }
}

impl Rotate {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let Some(old) = client.key() else {
            let message = "there is no key to replace: neither --key nor TASUKI_KEY names a file";
            let hint = "name the file of the old key with --key; its signature is asked for";
            return Err(Failure::usage(message, hint).into());
        };
        // It is on the disk before the broker knows of it: a key that only the broker has would
        // lock the agent out.
        let new = KeyFile::create(&self.out, Some(&self.agent))?;
        let body = wire::Rotate {
            old: old.public().id(),
            key: new.public(),
            proof: new.possession(&self.agent),
            grace_ms: self.grace,
        };
        let path = format!("/v1/agents/{}/keys/rotate", escaped(self.agent.as_str()));
        let reply = match client.post(&path, &body).await {
            Ok(reply) => reply,
            Err(error) => return Err(self.not_replaced(client, error)),
        };
        if let Some(broker) = client.audience().await? {
            new.note_broker(broker)?;
        }
        output.reply(&reply, |shown: wire::Agent| {
            let show = format!("agent show {}", shown.agent_id);
            Facts::default()
                .with("agent", &shown.agent_id)
                .with("file", new.path.display())
                .with("key id", new.public().id())
                .with("public key", new.public())
                .with("old key", format!("{}, counts for {}", body.old, span(self.grace)))
                .with("next", client.command_with(&show, Some(&new.path)))
                .text()
        })
    }

    /// A key that was refused is of no use, but one whose fate is unknown may be the only one.
    fn not_replaced(&self, client: &Client, error: anyhow::Error) -> anyhow::Error {
        let refused = error.downcast_ref::<Failure>().map(|failure| failure.exit);
        if refused.is_some_and(|exit| exit != Exit::Unavailable) {
            let _ = std::fs::remove_file(&self.out);
            return error;
        }
        let path: &Path = &self.out;
        let show = format!("agent show {}", self.agent);
        Failure::new(
            Exit::Unavailable,
            format!("{error:#}; whether the key was replaced is not known"),
            format!(
                "see if the new key counts; if not, remove {} and repeat the command",
                quoted(&path.display().to_string())
            ),
        )
        .next(client.command_with(&show, Some(path)))
        .into()
    }
}

impl Revoke {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let agent = escaped(self.agent.as_str());
        let path = format!("/v1/agents/{agent}/keys/{}/revoke", self.key_id);
        let reply = client.post(&path, &wire::Nothing {}).await?;
        output.reply(&reply, |shown: wire::Agent| agent::text(&shown))
    }
}
