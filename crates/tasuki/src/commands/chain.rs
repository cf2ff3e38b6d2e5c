// SPDX-License-Identifier: Apache-2.0
//! `tasuki chain`: whole chains as files, far from the broker that wrote them, and those that were
//! imported for reading.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use tasuki_core::chain::{self, ChainFile, ChainVerdict};
use tasuki_core::ids::Project;
use tasuki_core::{AgentId, DocumentId, Record};
use tasuki_protocol as wire;

use crate::args::AGENT;
use crate::client::{Client, Connect, escaped};
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, print, table};

#[derive(Args)]
pub(crate) struct Chain {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Check an exported chain without a broker and name the first bad entry
    Verify(Named),
    /// Show what happened in an exported chain, without a broker
    Show(Named),
    /// Keep a chain that another broker exported, for reading
    Import(Import),
    /// List imported chains, the last one first
    List(List),
    /// Write the file of an imported chain
    Fetch(Fetch),
}

#[derive(Args)]
struct Named {
    /// A file that `tasuki task export` wrote
    file: PathBuf,
}

#[derive(Args)]
struct Import {
    #[command(flatten)]
    connect: Connect,
    /// A file that `tasuki task export` wrote
    file: PathBuf,
    /// Who imports it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// The project whose readers may read it; without it, only who imports it
    #[arg(long, value_name = "PROJECT")]
    project: Option<Project>,
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    connect: Connect,
    /// Only what was imported before this: where the page before ended
    #[arg(long, value_name = "POSITION")]
    before: Option<u64>,
    /// How many at most, up to 100
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

#[derive(Args)]
struct Fetch {
    #[command(flatten)]
    connect: Connect,
    /// The imported chain's id
    chain: DocumentId,
    /// Where to write to; stdout without it
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Serialize)]
struct Written {
    file: String,
    bytes: usize,
}

impl Chain {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        match self.verb {
            Verb::Verify(named) => verify(&named.file, output),
            Verb::Show(named) => show(&named.file, output),
            Verb::Import(import) => import.run(output).await,
            Verb::List(list) => list.run(output).await,
            Verb::Fetch(fetch) => fetch.run(output).await,
        }
    }
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    Ok(std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read {}: {error}", path.display());
        Failure::new(Exit::NotFound, message, "name a file that `tasuki task export` wrote")
    })?)
}

fn read(path: &Path) -> anyhow::Result<ChainFile> {
    Ok(serde_json::from_str(&text_of(path)?).map_err(|error| {
        let message = format!("{} is no exported chain: {error}", path.display());
        Failure::new(Exit::Refused, message, "name a file that `tasuki task export` wrote")
    })?)
}

fn verify(path: &Path, output: Output) -> anyhow::Result<Exit> {
    let verdict = chain::verify(&read(path)?);
    output.found(&verdict, verdict_text)?;
    Ok(if verdict.intact { Exit::Done } else { Exit::Refused })
}

fn verdict_text(verdict: &ChainVerdict) -> String {
    let bad = verdict.first_bad.as_ref();
    let place = bad.map(|bad| match bad.index {
        Some(index) => format!("event {index} {}", bad.problem),
        None => bad.problem.clone(),
    });
    let erased = verdict.erased.iter();
    let erased = erased.map(|one| format!("event {} of {}", one.index, one.task_id));
    let unchecked = match verdict.signatures_unchecked {
        0 => String::new(),
        more => format!(" ({more} more have no key in the file)"),
    };
    Facts::default()
        .with("chain", if verdict.intact { "intact" } else { "NOT intact" })
        .maybe("first bad", place)
        .maybe("of task", bad.and_then(|bad| bad.task_id))
        .with(if verdict.intact { "events" } else { "good events" }, verdict.events)
        .with("tasks", verdict.tasks)
        .with("bodies", verdict.bodies)
        .maybe(
            "erased",
            (!verdict.erased.is_empty()).then(|| erased.collect::<Vec<_>>().join(", ")),
        )
        .with("hops", verdict.hops.len())
        .with("signatures", format!("{}{unchecked}", verdict.signatures))
        .maybe("sealed by", verdict.sealed_by)
        .text()
}

fn show(path: &Path, output: Output) -> anyhow::Result<Exit> {
    let file = read(path)?;
    let verdict = chain::verify(&file);
    let exit = if verdict.intact { Exit::Done } else { Exit::Refused };
    output.found(&file, |file| {
        let rows = file.tasks.iter().flat_map(|task| {
            task.events.iter().map(|event| {
                let record: Option<Record> = serde_json::from_str(event.record.get()).ok();
                let text = |of: fn(&Record) -> String| record.as_ref().map(of).unwrap_or_default();
                [
                    text(|record| record.task_id.to_string()),
                    text(|record| record.index.to_string()),
                    text(|record| record.at.to_string()),
                    text(|record| record.event.kind().to_owned()),
                    text(|record| record.actor.to_string()),
                ]
            })
        });
        let events = table(["task", "event", "at", "what", "by"], rows);
        let hops = verdict.hops.iter().map(|hop| {
            [
                hop.task_id.to_string(),
                hop.report.hop.to_string(),
                hop.report.from_agent.clone(),
                if hop.report.is_whole() { "whole" } else { "BROKEN" }.to_owned(),
                hop.report.constraints.to_string(),
            ]
        });
        let hops = table(["task", "hop", "from", "envelope", "constraints"], hops);
        format!("{events}\n{hops}\n{}", verdict_text(&verdict))
    })?;
    Ok(exit)
}

impl Import {
    async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = self.connect.client()?;
        let file = text_of(&self.file)?;
        let body = wire::ImportChain { by: self.by, project: self.project, file };
        let reply = client.post("/v1/chains", &body).await?;
        output.reply(&reply, |chain: wire::ImportedChain| {
            let fetch = client.command(&format!("chain fetch {}", chain.chain_id));
            Facts::default()
                .with("chain", &chain.chain_id)
                .maybe("task", chain.task_id)
                .maybe("tasks", chain.tasks)
                .maybe("events", chain.events)
                .with("next", fetch)
                .text()
        })?;
        Ok(Exit::Done)
    }
}

impl List {
    async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = self.connect.client()?;
        let query = [
            ("before", self.before.map(|before| before.to_string())),
            ("limit", Some(self.limit.to_string())),
        ];
        let reply = client.get("/v1/chains", &query).await?;
        output.reply(&reply, |listed: wire::ImportedChains| match listed.chains.as_slice() {
            [] => "no imported chains".to_owned(),
            chains => {
                let rows = chains.iter().map(|chain| {
                    let count = |count: Option<u64>| count.map_or("-".into(), |n| n.to_string());
                    [
                        chain.chain_id.to_string(),
                        chain.task_id.map_or("erased".into(), |id| id.to_string()),
                        count(chain.tasks),
                        count(chain.events),
                        chain.imported_by.to_string(),
                        chain.imported_at.to_string(),
                    ]
                });
                table(["chain", "task", "tasks", "events", "by", "imported"], rows)
            }
        })?;
        Ok(Exit::Done)
    }
}

impl Fetch {
    async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = self.connect.client()?;
        let path = format!("/v1/chains/{}", escaped(self.chain.as_str()));
        let reply = client.get(&path, &[]).await?;
        let chain: wire::ImportedChainWithFile = serde_json::from_str(&reply)?;
        let file = chain.file.ok_or_else(|| {
            let message = format!("the file of {} was erased", self.chain);
            Failure::new(Exit::NotFound, message, "`tasuki chain list` shows the others")
        })?;
        write(&file, self.to.as_deref(), output)
    }
}

/// Writes a task and those below it as one file.
pub(super) async fn export(
    client: &Client,
    output: Output,
    task: tasuki_core::TaskId,
    to: Option<&Path>,
) -> anyhow::Result<Exit> {
    let reply = client.get_slowly(&format!("/v1/tasks/{task}/export")).await?;
    write(&reply, to, output)
}

/// Writes the exact text: its hashes cover bytes.
fn write(text: &str, to: Option<&Path>, output: Output) -> anyhow::Result<Exit> {
    let Some(to) = to else {
        print(text)?;
        return Ok(Exit::Done);
    };
    let cannot = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", to.display());
        Failure::new(Exit::Refused, message, "choose another name, in a folder that is writable")
    };
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).open(to).map_err(cannot)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(cannot)?;
    file.sync_all().map_err(cannot)?;
    let written = Written { file: to.display().to_string(), bytes: text.len() };
    output.found(&written, |written| {
        let (bytes, file) = (written.bytes, &written.file);
        format!("wrote {bytes} bytes to {file}\nnext: tasuki chain verify {file}\n")
    })?;
    Ok(Exit::Done)
}
