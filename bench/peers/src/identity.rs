//! What it costs to know who asks, and what becomes of it: signed requests beside open ones, a
//! quiet tenant beside a flooding one, and finding agents among many.
//!
//! Each part has brokers of its own. Its lines take turns, so the ratios within a part mean
//! something, and those between parts do not.

mod broker;
mod cost;
mod discovery;
mod manifests;
mod rounds;
mod tenants;
mod worker;

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::{
    figures::Goal, load::Load, machine::Machine, options::Common, report, scratch::Scratch,
    tasuki::Tasuki,
};

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    common: Common,
    /// Measure only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Agents to choose from, each with a manifest of five capabilities.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(20..=20_000))]
    agents: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The lifecycle without proof, with bearer tokens and with signed requests.
    Cost,
    /// A quiet tenant alone and beside one that floods.
    Tenants,
    /// Finding and choosing agents among many.
    Discovery,
}

/// What every part works with.
struct Stage<'a> {
    program: PathBuf,
    scratch: &'a Scratch,
    load: Load,
    rounds: u32,
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    versions: [String; 1],
    clients: u16,
    payload_bytes: usize,
    seconds: u64,
    rounds: u32,
    cost: Option<cost::Cost>,
    tenants: Option<tenants::Tenants>,
    discovery: Option<discovery::Discovery>,
    goals: Vec<Goal>,
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    let common = &options.common;
    let load = common.load();
    // Declared before the brokers so that it is removed after they have ended.
    let scratch = Scratch::new(&common.places.scratch)?;
    let machine = Machine::observe(scratch.path())?;
    report::print_machine(&machine, &load, common.rounds);

    let program = common.places.tasuki()?;
    let versions = [Tasuki::version(&program)?];
    let stage = Stage { program, scratch: &scratch, load, rounds: common.rounds };
    let chosen = |part| options.only.is_empty() || options.only.contains(&part);
    let cost = match chosen(Part::Cost) {
        true => Some(Box::pin(cost::measure(&stage)).await?),
        false => None,
    };
    let tenants = match chosen(Part::Tenants) {
        true => Some(Box::pin(tenants::measure(&stage)).await?),
        false => None,
    };
    let discovery = match chosen(Part::Discovery) {
        true => Some(Box::pin(discovery::measure(&stage, options.agents)).await?),
        false => None,
    };
    let report = Report {
        machine,
        versions,
        clients: stage.load.clients,
        payload_bytes: stage.load.payload.len(),
        seconds: stage.load.seconds,
        rounds: stage.rounds,
        goals: tenants.as_ref().map(tenants::Tenants::goals).unwrap_or_default(),
        cost,
        tenants,
        discovery,
    };
    report.print();
    report.write(common.places.json.as_deref())
}

impl Report {
    fn print(&self) {
        let cost = self.cost.as_ref().map(cost::Cost::lines);
        let tenants = self.tenants.as_ref().map(tenants::Tenants::lines);
        let discovery = self.discovery.as_ref().map(discovery::Discovery::lines);
        for part in [cost, tenants, discovery].into_iter().flatten() {
            println!();
            for line in part {
                println!("{line}");
            }
        }
        if !self.goals.is_empty() {
            println!();
            println!("Goals");
        }
        for goal in &self.goals {
            println!("  {}", goal.line());
        }
        println!();
        println!("Versions");
        for version in &self.versions {
            println!("  {version}");
        }
    }

    fn write(&self, path: Option<&Path>) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        let file =
            File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        serde_json::to_writer_pretty(file, self)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
