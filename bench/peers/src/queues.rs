//! Tasuki beside other durable queues, each with a server of its own.

use anyhow::Result;
use clap::Args;

use crate::{
    figures::Goal,
    machine::Machine,
    options::WithPostgres,
    report::{self, Report},
    scratch::Scratch,
    systems::{BATCH, Choice, Servers, System},
};

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    with_postgres: WithPostgres,
    /// Measure only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Choice>,
}

const NOTES: &[&str] = &["beanstalkd keeps claims in RAM only."];

pub(crate) async fn run(options: &Options) -> Result<()> {
    let with_postgres = &options.with_postgres;
    let common = &with_postgres.common;
    let load = common.load();
    let systems = System::chosen(&options.only, &with_postgres.postgres_connections());
    // Declared before the servers so that it is removed after they have ended.
    let scratch = Scratch::new(&common.places.scratch)?;
    let machine = Machine::observe(scratch.path())?;
    report::print_machine(&machine, &load, common.rounds);

    let servers = Servers::start(&systems, &load, with_postgres, &scratch).await?;
    let mut report = Report::new(machine, &load, common.rounds, &systems, servers.versions());
    for round in 1..=common.rounds {
        for &system in &systems {
            report.turn(round, system, &scratch, servers.measure(system, &load)).await?;
        }
    }
    drop(servers);

    conclude(&mut report);
    report.print(NOTES);
    report.write(common.places.json.as_deref())
}

fn conclude(report: &mut Report<System>) {
    let ours = report.best(|system| system == System::Tasuki);
    let sync_off = report.best(|system| system == System::TasukiSyncOff);
    let batched = report.best(|system| system == System::TasukiBatched);
    let redis = report.best(|system| system == System::Redis);
    let postgres = report.best(|system| matches!(system, System::Postgres { .. }));
    let beanstalkd = report.best(|system| system == System::Beanstalkd);
    report.compare("Tasuki to it", |its| ours.map(|ours| ours / its));
    report.set_goals(vec![
        Goal::new("Tasuki to Redis streams", 1.0, ours, redis),
        Goal::new("Tasuki to PostgreSQL SKIP LOCKED (its best)", 3.0, ours, postgres),
        Goal::new("Tasuki to beanstalkd -f0", 3.0, ours, beanstalkd),
        Goal::new("Tasuki to itself with sync off", 0.6, ours, sync_off),
        Goal::new(&format!("batches of {BATCH} to single handoffs"), 3.0, batched, ours),
    ]);
}
