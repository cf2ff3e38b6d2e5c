//! Brokers that share one PostgreSQL, beside a plain queue on the same server.
//!
//! Every set of brokers has a database of its own and runs only while it is measured.

use std::{
    fmt,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use tokio::time::sleep;

use crate::{
    brokers::Brokers,
    figures::Goal,
    load::Load,
    machine::Machine,
    options::WithPostgres,
    plain_queue,
    postgres::{Database, Postgres},
    report::{self, Line, Report},
    scratch::Scratch,
    systems::BATCH,
    tasuki::Tasuki,
};

/// More than three brokers open.
const BROKER_CONNECTIONS_MAX: u16 = 64;
/// How many brokers live through the trouble.
const SURVIVORS: u16 = 2;
/// How long the load runs before the trouble, between its two parts, and after it.
const INTERVAL: Duration = Duration::from_millis(700);
/// A reader that stays: nothing that dies after its snapshot can be cleaned away.
const PIN: &str = "
    BEGIN ISOLATION LEVEL REPEATABLE READ;
    SELECT txid_current();
    SELECT count(*) FROM handoff;
";
/// What autovacuum would otherwise do in others' rounds. Nobody waits for the promise of it.
const CLEAN: &[&str] = &["SET synchronous_commit = off", "VACUUM (ANALYZE)"];
const NOTES: &[&str] = &[
    "Of several brokers the throughputs are added, and the times of the slowest are shown.",
    "The trouble: a third broker is killed and PostgreSQL is restarted, both under load.",
    "Each round of the plain queue has a new table; the brokers keep what earlier rounds left.",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum System {
    Plain { connections: u16 },
    Brokers { count: u16, batch: u32 },
    Pinned,
    BeforeTrouble,
    AfterTrouble,
}

impl System {
    /// Those that take turns, in this order.
    fn in_turns(connections: &[u16]) -> Vec<Self> {
        let mut systems: Vec<Self> =
            connections.iter().map(|&connections| Self::Plain { connections }).collect();
        // Beside the one that it is compared with.
        systems.push(Self::Pinned);
        for batch in [1, BATCH] {
            systems.extend([1, 2, 3].map(|count| Self::Brokers { count, batch }));
        }
        systems
    }

    fn database(self) -> String {
        match self {
            Self::Plain { connections } => format!("plain_{connections}"),
            Self::Brokers { count, batch } => format!("brokers_{count}_batch_{batch}"),
            Self::Pinned => "pinned".to_owned(),
            Self::BeforeTrouble | Self::AfterTrouble => "trouble".to_owned(),
        }
    }
}

impl Line for System {
    fn is_synced(self) -> bool {
        true
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { connections } => {
                write!(f, "plain SKIP LOCKED queue, {connections} connections")
            }
            Self::Brokers { count, batch } => {
                write!(f, "Tasuki, {count} {}", if *count == 1 { "broker" } else { "brokers" })?;
                if *batch > 1 { write!(f, ", batches of {batch}") } else { Ok(()) }
            }
            Self::Pinned => f.write_str("Tasuki, 1 broker, an old transaction open"),
            Self::BeforeTrouble => write!(f, "Tasuki, {SURVIVORS} brokers before the trouble"),
            Self::AfterTrouble => write!(f, "Tasuki, {SURVIVORS} brokers after the trouble"),
        }
    }
}

pub(crate) async fn run(options: &WithPostgres) -> Result<()> {
    let common = &options.common;
    let load = common.load();
    let in_turns = System::in_turns(&options.postgres_connections());
    // Declared before the servers so that it is removed after they have ended.
    let scratch = Scratch::new(&common.places.scratch)?;
    let machine = Machine::observe(scratch.path())?;
    report::print_machine(&machine, &load, common.rounds);

    let tasuki = common.places.tasuki()?;
    let programs = &options.postgres_bin;
    let versions = [Tasuki::version(&tasuki)?, Postgres::version(programs)?];
    let lines = [&in_turns[..], &[System::BeforeTrouble, System::AfterTrouble]].concat();
    let report = Report::new(machine, &load, common.rounds, &lines, &versions);
    let mut run = Run { tasuki, scratch: &scratch, load: &load, report };

    let connections_max = load.clients.max(BROKER_CONNECTIONS_MAX);
    let settings = &["autovacuum=on"];
    let mut postgres = Postgres::start(programs, &scratch, connections_max, settings).await?;
    let mut databases = Vec::new();
    for system in in_turns {
        databases.push((system, postgres.create(&system.database()).await?));
    }
    for round in 1..=common.rounds {
        for (system, database) in &databases {
            run.turn(round, *system, database).await?;
        }
    }
    // Afterwards, because a restarted server would be another one to those that come next.
    let database = postgres.create(&System::BeforeTrouble.database()).await?;
    for round in 1..=common.rounds {
        run.trouble(round, &mut postgres, &database).await?;
    }
    drop(postgres);

    conclude(&mut run.report);
    run.report.print(NOTES);
    run.report.write(common.places.json.as_deref())
}

struct Run<'a> {
    tasuki: PathBuf,
    scratch: &'a Scratch,
    load: &'a Load,
    report: Report<System>,
}

impl Run<'_> {
    async fn turn(&mut self, round: u32, system: System, database: &Database) -> Result<()> {
        let (count, batch) = match system {
            System::Plain { connections } => {
                let measure = plain_queue::measure(database, self.load, connections);
                return self.report.turn(round, system, self.scratch, measure).await;
            }
            System::Brokers { count, batch } => (count, batch),
            System::Pinned => (1, 1),
            System::BeforeTrouble | System::AfterTrouble => (SURVIVORS, 1),
        };
        let brokers = self.start(database, count).await?;
        let reader = match system {
            System::Pinned => Some(pin(database).await?),
            _ => None,
        };
        let measure = brokers.measure(self.load, batch);
        self.report.turn(round, system, self.scratch, measure).await?;
        drop((reader, brokers));
        database.execute(CLEAN).await.context("cannot clean the database")
    }

    /// Two brokers before and after a third one, and their database, were ended under load.
    async fn trouble(
        &mut self,
        round: u32,
        postgres: &mut Postgres,
        database: &Database,
    ) -> Result<()> {
        let mut brokers = self.start(database, SURVIVORS).await?;
        // The restart ends with one as well, after which every page is logged whole once.
        database.execute(&["CHECKPOINT"]).await?;
        let measure = brokers.measure(self.load, 1);
        self.report.turn(round, System::BeforeTrouble, self.scratch, measure).await?;

        brokers.add(&self.tasuki, self.scratch, database).await?;
        let mut busy = brokers.keep_busy(self.load)?;
        sleep(INTERVAL).await;
        brokers.kill_last().await?;
        sleep(INTERVAL).await;
        let began = Instant::now();
        postgres.restart().await?;
        let restarted = Instant::now();
        brokers.wait_until_ready().await?;
        eprintln!(
            "round {round}: PostgreSQL was back after {:.2} s, the brokers {:.2} s later",
            (restarted - began).as_secs_f64(),
            restarted.elapsed().as_secs_f64()
        );
        sleep(INTERVAL).await;
        busy.shutdown().await;

        let measure = brokers.measure(self.load, 1);
        self.report.turn(round, System::AfterTrouble, self.scratch, measure).await?;
        drop(brokers);
        database.execute(CLEAN).await.context("cannot clean the database")
    }

    async fn start(&self, database: &Database, count: u16) -> Result<Brokers> {
        Brokers::start(&self.tasuki, self.scratch, database, count).await
    }
}

async fn pin(database: &Database) -> Result<tokio_postgres::Client> {
    let reader = database.connect().await?;
    reader.batch_execute(PIN).await.context("cannot keep a transaction open")?;
    Ok(reader)
}

fn conclude(report: &mut Report<System>) {
    let plain = report.best(|system| matches!(system, System::Plain { .. }));
    let single = report.best(|system| matches!(system, System::Brokers { batch: 1, .. }));
    let batched = report.best(|system| matches!(system, System::Brokers { batch: BATCH, .. }));
    let alone = report.best(|system| system == System::Brokers { count: 1, batch: 1 });
    let pinned = report.best(|system| system == System::Pinned);
    let before = report.best(|system| system == System::BeforeTrouble);
    let after = report.best(|system| system == System::AfterTrouble);
    report.compare("to the plain queue", |its| plain.map(|plain| its / plain));
    report.set_goals(vec![
        Goal::new("Tasuki (its best count) to the plain queue (its best)", 1.0, single, plain),
        Goal::new(
            &format!("batches of {BATCH} (their best count) to the plain queue (its best)"),
            3.0,
            batched,
            plain,
        ),
        Goal::new("1 broker with an old transaction open to without", 0.7, pinned, alone),
        Goal::new("2 brokers after the trouble to before", 0.95, after, before),
    ]);
}
