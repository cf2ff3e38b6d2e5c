// SPDX-License-Identifier: Apache-2.0
//! `tasuki mcp config`: prints what a client wants to be told, or writes it with a diff and a question.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tasuki_core::AgentId;

use super::client::{Client, Way};
use super::edit::{Unreadable, diff, with_entry};
use crate::client::{Connect, DEFAULT_URL, escaped};
use crate::exit::{Exit, Failure};
use crate::output::{Output, tell};

/// Print the configuration that makes a client use this broker, or write it.
#[derive(Args)]
pub(super) struct Configure {
    /// Which client
    #[arg(long, value_name = "CLIENT")]
    client: Client,
    /// The agent that the client speaks for
    #[arg(long, value_name = "NAME")]
    agent: AgentId,
    /// Let the client send requests to the broker, instead of starting `tasuki mcp`
    #[arg(long)]
    http: bool,
    /// Let the client show the token that it finds in TASUKI_TOKEN; needs --http
    #[arg(long, requires = "http")]
    with_token: bool,
    /// Let the client run a broker of its own on the data in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "http")]
    data: Option<PathBuf>,
    /// Write it into the client's file, after showing what changes
    #[arg(long)]
    write: bool,
    /// The file to write to, instead of the client's own
    #[arg(long, value_name = "FILE", requires = "write")]
    file: Option<PathBuf>,
    /// Write without asking
    #[arg(long, requires = "write")]
    yes: bool,
}

#[derive(Serialize)]
struct Printed {
    file: PathBuf,
    text: String,
}

impl Configure {
    pub(super) fn run(self, connect: &Connect, output: Output) -> anyhow::Result<Exit> {
        let entry = self.client.entry(&self.way(connect)?);
        let file = self.file.clone().unwrap_or_else(|| self.client.file());
        if !self.write {
            let made = with_entry("", &entry);
            let text = made.map_err(|Unreadable(why)| anyhow::anyhow!(why))?;
            let printed = Printed { file, text };
            output.found(&printed, |printed| printed.text.clone())?;
            return Ok(Exit::Done);
        }
        let before = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", file.display()));
            }
        };
        let after = with_entry(&before, &entry).map_err(|Unreadable(why)| {
            let name = file.display();
            let hint = "leave --write out, and put what is printed into it by hand";
            Failure::usage(format!("{name} is left as it is: {why}"), hint)
        })?;
        if before == after {
            tell(&format!("{} says so already", file.display()));
            return Ok(Exit::Done);
        }
        tell(&format!("{}\n{}", file.display(), diff(&before, &after).trim_end()));
        if !self.yes && !agreed()? {
            tell("nothing was written");
            return Ok(Exit::Refused);
        }
        write(&file, &after).with_context(|| format!("cannot write {}", file.display()))?;
        let text = after;
        output.found(&Printed { file, text }, |written| {
            format!("wrote {}\n", written.file.display())
        })?;
        Ok(Exit::Done)
    }

    fn way(&self, connect: &Connect) -> Result<Way, Failure> {
        let url = connect.url.trim_end_matches('/');
        if self.http {
            let agent = match self.with_token {
                true => String::new(),
                false => format!("?agent={}", escaped(self.agent.as_str())),
            };
            let url = format!("{url}{}{agent}", tasuki_mcp::PATH);
            return Ok(Way::Http { url, token: self.with_token });
        }
        let mut args = vec!["mcp".to_owned(), "--agent".to_owned(), self.agent.to_string()];
        if let Some(dir) = &self.data {
            // A client starts it from a directory of its own.
            let dir = std::path::absolute(dir).map_err(|error| {
                Failure::usage(format!("{}: {error}", dir.display()), "name another directory")
            })?;
            args.extend(["--data".to_owned(), dir.display().to_string()]);
        } else if url != DEFAULT_URL {
            args.extend(["--url".to_owned(), url.to_owned()]);
        }
        Ok(Way::Stdio { args })
    }
}

fn agreed() -> anyhow::Result<bool> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        let hint = "look at what changes, then give --yes";
        return Err(Failure::usage("nobody is there to ask", hint).into());
    }
    tell("Write it? [y/N]");
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes a file whole or not at all, with the permissions that it had.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    // What a link leads to is written, so that the link stays one.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir)?;
    }
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".tasuki-new");
    let new = file.with_file_name(name);
    std::fs::write(&new, text)?;
    if let Ok(known) = std::fs::metadata(&file) {
        std::fs::set_permissions(&new, known.permissions())?;
    }
    std::fs::rename(&new, &file)
}
