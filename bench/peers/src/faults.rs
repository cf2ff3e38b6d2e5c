//! Chains of five agents in which a part of what agents do goes wrong, through three systems, with
//! the same faults: how many chains end whole.

mod agents;
mod broker;
mod message;
mod plan;
mod table;
mod tube;

use std::{fs::File, net::SocketAddr, path::Path, rc::Rc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde::Serialize;
use tokio::task::LocalSet;

use agents::{Hands, Round};
use message::{Ends, Message, STAGES};
use plan::Plan;

use crate::{
    beanstalkd::Beanstalkd, figures, http::Http, load::Load, options, postgres::Postgres,
    proof::Proof, scratch::Scratch, tasuki::Tasuki,
};

/// Agents at each stage.
const AGENTS: usize = 4;

#[derive(Args)]
pub(crate) struct Options {
    /// Rounds, each with faults of its own.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Chains in a round.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    chains: u32,
    /// Of a thousand times that an agent takes something, how often it goes wrong.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=1000))]
    per_mille: u32,
    /// How long a system that waits for silent agents does so; beanstalkd counts in seconds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    lease_seconds: u64,
    #[command(flatten)]
    places: options::Places,
    /// Where PostgreSQL's programs are.
    #[arg(long, default_value = "/usr/lib/postgresql/15/bin")]
    postgres_bin: std::path::PathBuf,
}

/// What became of a system's chains.
#[derive(Clone, Default, Serialize)]
struct Outcome {
    ends: Ends,
    /// Softer words that were not taken.
    refused: u32,
    /// Chains that stopped where an operator finds them.
    dead_letters: u32,
}

#[derive(Serialize)]
struct Report<'o> {
    rounds: u64,
    per_mille: u32,
    /// Chains that no fault would have touched.
    smooth: u32,
    systems: Vec<(&'o str, Outcome)>,
}

struct Servers {
    table: Postgres,
    tube: Beanstalkd,
    broker: Tasuki,
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    let scratch = Scratch::new(&options.places.scratch)?;
    let lease = Duration::from_secs(options.lease_seconds);
    let connections = u16::try_from(AGENTS * (STAGES + 1))?;
    let servers = Servers {
        table: Postgres::start(&options.postgres_bin, &scratch, connections, &[]).await?,
        tube: Beanstalkd::start(&scratch, &Load::new(1, 65_536, 1)).await?,
        broker: Tasuki::start(&options.places.tasuki()?, &scratch, "tasuki", &[]).await?,
    };
    let names = ["a table with a status", "a work queue (beanstalkd)", "Tasuki"];
    let mut totals = [const { None::<Outcome> }; 3];
    let mut smooth = 0;
    for seed in 1..=options.rounds {
        let plan = || Plan::new(seed, u64::from(options.per_mille));
        let is_smooth = |chain: &u32| plan().is_smooth(*chain, STAGES);
        smooth += u32::try_from((0..options.chains).filter(is_smooth).count())?;
        let round = || Round::new(plan(), lease);
        let database = Rc::new(servers.table.create(&format!("round_{seed}")).await?);
        database.execute(&[table::SCHEMA]).await?;
        let tubes = tube::Tubes { address: servers.tube.address(), lease, round: seed };
        let address = broker::Address { address: servers.broker.address(), lease, round: seed };
        let outcomes = [
            play::<table::Table>(&database, round(), options.chains).await?,
            play::<tube::Tube>(&tubes, round(), options.chains).await?,
            play::<broker::Broker>(&address, round(), options.chains).await?,
        ];
        for (total, outcome) in totals.iter_mut().zip(outcomes) {
            *total = Some(total.take().map_or(outcome.clone(), |total| total.and(&outcome)));
        }
        eprintln!("round {seed} of {}", options.rounds);
    }
    let mut systems: Vec<_> =
        names.into_iter().zip(totals.map(Option::unwrap_or_default)).collect();
    systems[2].1.dead_letters = dead_letters(servers.broker.address()).await?;
    let (rounds, per_mille) = (options.rounds, options.per_mille);
    print(&Report { rounds, per_mille, smooth, systems }, options.places.json.as_deref())
}

/// All chains of a round through one system, until nothing more happens.
async fn play<H: Hands + 'static>(
    place: &H::Place,
    round: Rc<Round>,
    chains: u32,
) -> Result<Outcome> {
    let agents = LocalSet::new();
    let mut working = Vec::new();
    for stage in 0..=STAGES {
        for _ in 0..AGENTS {
            let agent = agents::work::<H>(place.clone(), stage, round.clone());
            working.push(agents.spawn_local(agent));
        }
    }
    let sent = async {
        let mut lead = H::connect(place, 0).await?;
        for chain in 0..chains {
            lead.send(&Message::new(chain)).await?;
        }
        for agent in working {
            agent.await.context("an agent panicked")??;
        }
        anyhow::Ok(())
    };
    agents.run_until(sent).await?;
    let ends = Ends::of(chains, &round.results.borrow());
    Ok(Outcome { ends, refused: round.refused.get(), dead_letters: 0 })
}

impl Outcome {
    fn and(&self, other: &Self) -> Self {
        Self {
            ends: self.ends.and(other.ends),
            refused: self.refused + other.refused,
            dead_letters: self.dead_letters + other.dead_letters,
        }
    }
}

async fn dead_letters(address: SocketAddr) -> Result<u32> {
    let mut http = Http::connect(address, &Proof::Nothing).await?;
    let found: serde_json::Value = serde_json::from_slice(http.get("/v1/dead-letters").await?)?;
    let listed = found["handoffs"].as_array().context("another list of dead letters")?;
    Ok(u32::try_from(listed.len())?)
}

fn print(report: &Report<'_>, json: Option<&Path>) -> Result<()> {
    let head = ["passed through", "whole", "lost", "twice", "altered", "dead letters", "refused"];
    let mut rows = vec![head.map(str::to_owned)];
    for (name, outcome) in &report.systems {
        let of = outcome.ends.chains;
        let share = |count: u32| format!("{:.1} %", 100.0 * f64::from(count) / f64::from(of));
        let Ends { whole, lost, twice, altered, .. } = outcome.ends;
        let [whole, lost, twice, altered] = [whole, lost, twice, altered].map(share);
        let (dead, refused) = (outcome.dead_letters.to_string(), outcome.refused.to_string());
        rows.push([(*name).to_owned(), whole, lost, twice, altered, dead, refused]);
    }
    let chains = report.systems.first().map_or(0, |(_, outcome)| outcome.ends.chains);
    let Report { rounds, per_mille, smooth, .. } = report;
    println!(
        "{chains} chains of {STAGES} agents in {rounds} rounds; {per_mille} of 1000 visits go wrong"
    );
    println!("{smooth} chains that nothing went wrong with\n");
    figures::table(&rows).iter().for_each(|line| println!("{line}"));
    if let Some(path) = json {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        serde_json::to_writer_pretty(file, report)?;
    }
    let (_, ours) = report.systems.last().context("nothing was measured")?;
    let Ends { lost, twice, altered, .. } = ours.ends;
    ensure!(lost <= ours.dead_letters && twice + altered == 0, "Tasuki broke what it promises");
    Ok(())
}
