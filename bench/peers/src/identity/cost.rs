//! The same lifecycle without proof, with bearer tokens, and with signed requests.

use std::{fmt, sync::Arc};

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::{
    Stage,
    broker::{Agent, Broker, By, own_cpu_seconds},
    rounds::{Lines, rest, shown},
    worker::{Refusals, Worker},
};
use crate::{
    figures::table,
    load::{self, Latency, Load, Steps},
    proof::Proof,
};

const NOTES: &[&str] = &[
    "broker, clients: processor time for one lifecycle in µs, from /proc. Since clients and broker",
    "share the machine, a client that signs takes from the broker: the broker's own time is the",
    "fair figure. A broker that requires proof also signs each delivery and checks rules.",
    "offer, claim, complete: p50 / p99 of one request in ms, median of the rounds.",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    Bearer,
    Signed,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Open, Self::Bearer, Self::Signed];
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open on loopback",
            Self::Bearer => "--auth required, bearer tokens",
            Self::Signed => "--auth required, signed requests",
        })
    }
}

#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Cost(Lines<Mode, Measured>);

#[derive(Serialize)]
struct Measured {
    lifecycles_per_second: f64,
    lifecycles: u64,
    /// Processor time of the broker and of all clients for one lifecycle, in microseconds.
    broker_us: f64,
    clients_us: f64,
    steps: Steps,
}

/// A broker with those who are known to it.
struct Setting {
    mode: Mode,
    broker: Broker,
    agents: Vec<Agent>,
}

pub(super) async fn measure(stage: &Stage<'_>) -> Result<Cost> {
    let [open, bearer, signed] = Mode::ALL.map(|mode| Setting::make(stage, mode));
    let (open, bearer, signed) = tokio::try_join!(open, bearer, signed)?;
    let settings = [open, bearer, signed];
    let mut lines = Lines::new(&Mode::ALL);
    for round in 1..=stage.rounds {
        for setting in &settings {
            let mode = setting.mode;
            let disk_ms = rest(stage.scratch).await?;
            let measured = setting.measure(&stage.load).await;
            let measured = measured.with_context(|| format!("cannot measure {mode}"))?;
            eprintln!(
                "round {round}: {mode}: {:.0} lifecycles/s, {:.0} µs of the broker for each",
                measured.lifecycles_per_second, measured.broker_us
            );
            lines.add(mode, disk_ms, measured);
        }
    }
    Ok(Cost(lines))
}

impl Setting {
    async fn make(stage: &Stage<'_>, mode: Mode) -> Result<Self> {
        let clients = stage.load.clients;
        let (broker, agents) = match mode {
            Mode::Open => {
                let agent =
                    |number| Agent { name: format!("client-{number}"), proof: Proof::Nothing };
                (Broker::open(stage, "open").await?, (0..clients).map(agent).collect())
            }
            Mode::Bearer => {
                let broker = Broker::closed(stage, "bearer").await?;
                let agents = broker.enroll(By::Token, None, clients).await?;
                (broker, agents)
            }
            Mode::Signed => {
                let broker = Broker::closed(stage, "signed").await?;
                let agents = broker.enroll(By::Key, None, clients).await?;
                (broker, agents)
            }
        };
        Ok(Self { mode, broker, agents })
    }

    async fn measure(&self, load: &Load) -> Result<Measured> {
        let refusals = Arc::new(Refusals::default());
        let address = self.broker.address();
        let workers = Worker::connect_all(address, &self.agents, load, &refusals).await?;
        let broker = self.broker.cpu_seconds()?;
        let clients = own_cpu_seconds()?;
        let measured = load::run(workers, load).await?;
        let each = |seconds: f64| seconds * 1e6 / (measured.cycles.max(1) as f64);
        Ok(Measured {
            lifecycles_per_second: measured.cycles_per_second,
            lifecycles: measured.cycles,
            broker_us: each(self.broker.cpu_seconds()? - broker),
            clients_us: each(own_cpu_seconds()? - clients),
            steps: measured.steps,
        })
    }
}

impl Cost {
    pub(super) fn lines(&self) -> Vec<String> {
        let head = [
            "broker",
            "lifecycles/s",
            "min–max",
            "to open",
            "broker µs",
            "min–max",
            "to open",
            "clients µs",
            "offer",
            "claim",
            "complete",
            "disk",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(Mode::ALL.map(|mode| self.row(mode)));
        let mut lines = vec!["What it costs to know who asks".to_owned(), String::new()];
        lines.extend(table(&rows));
        lines.push(String::new());
        lines.extend(NOTES.iter().map(|note| (*note).to_owned()));
        lines
    }

    fn row(&self, mode: Mode) -> [String; 12] {
        let rate = |measured: &Measured| measured.lifecycles_per_second;
        let broker = |measured: &Measured| measured.broker_us;
        let [rates, times] = [self.0.spread(mode, rate), self.0.spread(mode, broker)];
        let clients = self.0.spread(mode, |measured| measured.clients_us).median;
        [
            mode.to_string(),
            format!("{:.0}", rates.median),
            format!("{:.0}–{:.0}", rates.min, rates.max),
            shown(self.0.ratio(mode, Mode::Open, rate)),
            format!("{:.0}", times.median),
            format!("{:.0}–{:.0}", times.min, times.max),
            shown(self.0.ratio(mode, Mode::Open, broker)),
            format!("{clients:.0}"),
            self.step(mode, |steps| &steps.offer),
            self.step(mode, |steps| &steps.claim),
            self.step(mode, |steps| &steps.complete),
            format!("{:.2}", self.0.disk_ms(mode)),
        ]
    }

    fn step(&self, mode: Mode, of: impl Fn(&Steps) -> &Latency) -> String {
        let p50 = self.0.spread(mode, |measured| of(&measured.steps).p50_ms).median;
        let p99 = self.0.spread(mode, |measured| of(&measured.steps).p99_ms).median;
        format!("{p50:.1} / {p99:.1}")
    }
}
