// SPDX-License-Identifier: Apache-2.0
//! `tasuki profile`: brokers, agents and tokens under names.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use tasuki_cli::profile::{self, FILE, NAMED, PROFILES_MAX, Profile, Profiles};
use tasuki_cli::state;
use tasuki_core::AgentId;

use crate::args;
use crate::client::DEFAULT_URL;
use crate::exit::{Exit, Failure};
use crate::output::{Output, table};

#[derive(Args)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Keep a profile, and use it if it is the first; one of the same name is replaced
    Add(Add),
    /// Use a profile from now on
    Use(Named),
    /// List profiles; the current one has a star
    List,
    /// Forget a profile
    Remove(Named),
}

#[derive(Args)]
struct Add {
    /// What to call it
    #[arg(value_parser = name)]
    name: String,
    /// The broker's URL
    #[arg(long, value_name = "URL", default_value = DEFAULT_URL)]
    url: String,
    /// In whose name commands are given
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentId>,
    /// The token that shows who asks, as @FILE or - for stdin; given in place it stays in the history
    /// of the shell
    #[arg(long, value_name = "TOKEN", conflicts_with = "key")]
    token: Option<String>,
    /// The file with the secret key that requests are signed with
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

#[derive(Args)]
struct Named {
    /// Its name
    name: String,
}

/// A name is typed in shells and stands in files.
fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = !text.is_empty() && text.len() <= 64 && text.chars().all(plain);
    fits.then(|| text.to_owned()).ok_or_else(|| "expected 1 to 64 of A-Z a-z 0-9 - _ .".into())
}

impl ProfileArgs {
    pub(crate) fn run(self, output: Output) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::Add(add) => add.run(output),
            Verb::Use(named) => {
                let changed = state::change(FILE, |all: &mut Profiles| {
                    if !all.profiles.contains_key(&named.name) {
                        return Err(profile::unknown(&named.name));
                    }
                    all.current = Some(named.name.clone());
                    Ok(())
                })?;
                changed?;
                said(output, &named.name, "is current")
            }
            Verb::List => list(output),
            Verb::Remove(named) => {
                let changed = state::change(FILE, |all: &mut Profiles| {
                    if all.profiles.remove(&named.name).is_none() {
                        return Err(profile::unknown(&named.name));
                    }
                    all.current.take_if(|current| *current == named.name);
                    Ok(())
                })?;
                changed?;
                said(output, &named.name, "is removed")
            }
        }
    }
}

impl Add {
    fn run(self, output: Output) -> anyhow::Result<Exit> {
        if !self.url.starts_with("http://") && !self.url.starts_with("https://") {
            let hint = "give a URL that begins with http:// or https://";
            let message = format!("{:?} is no broker's URL", self.url);
            return Err(Failure::usage(message, hint).into());
        }
        let token = self.token.map(|text| args::text("--token", &text)).transpose()?;
        let key = self.key.map(std::path::absolute).transpose()?;
        let profile = Profile {
            url: self.url.trim_end_matches('/').to_owned(),
            agent: self.agent.map(|agent| agent.to_string()),
            token: token.map(|token| token.trim().to_owned()),
            key,
        };
        let changed = state::change(FILE, |all: &mut Profiles| {
            if all.profiles.len() >= PROFILES_MAX && !all.profiles.contains_key(&self.name) {
                let message = format!("there are {PROFILES_MAX} profiles already");
                return Err(Failure::new(Exit::Refused, message, "remove one that is not used")
                    .next("tasuki profile remove NAME"));
            }
            all.profiles.insert(self.name.clone(), profile);
            let first = all.current.is_none();
            if first {
                all.current = Some(self.name.clone());
            }
            Ok(first)
        })?;
        let first = changed?;
        said(output, &self.name, if first { "is kept, and current" } else { "is kept" })
    }
}

fn said(output: Output, name: &str, what: &str) -> anyhow::Result<Exit> {
    output
        .found(&json!({ "profile": name, "says": what }), |_| format!("profile {name} {what}"))?;
    Ok(Exit::Done)
}

/// Never with tokens: what is on a screen is read by others.
fn list(output: Output) -> anyhow::Result<Exit> {
    let all: Profiles = state::read(FILE)?;
    let named = std::env::var(NAMED).ok().filter(|name| !name.is_empty());
    let current = named.or_else(|| all.current.clone());
    let rows: Vec<_> = all
        .profiles
        .iter()
        .map(|(name, it)| {
            let proof = match (&it.key, &it.token) {
                (Some(path), _) => format!("key {}", path.display()),
                (None, Some(_)) => "token".to_owned(),
                (None, None) => "none".to_owned(),
            };
            let is_current = current.as_ref() == Some(name);
            (name, &it.url, it.agent.clone().unwrap_or_default(), proof, is_current)
        })
        .collect();
    let found: Vec<_> = rows
        .iter()
        .map(|(name, url, agent, proof, current)| {
            json!({ "name": name, "url": url, "agent": agent, "proof": proof, "current": current })
        })
        .collect();
    output.found(&json!({ "profiles": found }), |_| {
        if rows.is_empty() {
            return "no profiles\nnext: tasuki profile add NAME --url URL --agent AGENT".to_owned();
        }
        let rows = rows.iter().map(|(name, url, agent, proof, current)| {
            let star = if *current { "*" } else { "" };
            [star.to_owned(), (*name).clone(), (*url).clone(), agent.clone(), proof.clone()]
        });
        table(["", "name", "url", "agent", "proof"], rows)
    })?;
    Ok(Exit::Done)
}
