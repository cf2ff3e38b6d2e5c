//! A quiet tenant, alone and beside one that floods.
//!
//! The quiet client has a thread of its own, so that it does not wait for the flooding clients
//! within this program. That all of them share the machine with the broker remains; how much of the
//! delay is due to that, the flood at another broker tells.

use std::{
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::json;
use tokio::time::MissedTickBehavior;

use super::{
    Stage,
    broker::{Agent, Broker, By},
    rounds::{Lines, rest, shown},
    worker::{Refusals, Refused, Worker},
};
use crate::{
    figures::{Goal, table},
    load::{self, Client as _, Latency, Load, histogram, latency, record},
};

const FLOOD: &str = "flood";
const QUIET: &str = "quiet";
/// How often the quiet client goes through a lifecycle.
const PACE: Duration = Duration::from_millis(20);
/// How long a flood may swell before the quiet client's times count.
const WARM_UP: Duration = Duration::from_millis(200);
const REQUESTS_PER_SECOND: u32 = 200;
/// How much slower the quiet tenant's slowest requests may become.
const RATIO_MAX: f64 = 3.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nobody,
    Flood,
    LimitedFlood,
    FloodElsewhere,
}

impl Beside {
    const ALL: [Self; 4] = [Self::Nobody, Self::Flood, Self::LimitedFlood, Self::FloodElsewhere];
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("alone"),
            Self::Flood => f.write_str("beside a flood"),
            Self::LimitedFlood => {
                write!(f, "beside a flood with a quota of {REQUESTS_PER_SECOND} requests/s")
            }
            Self::FloodElsewhere => f.write_str("beside a flood at another broker"),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Tenants {
    lines: Lines<Beside, Measured>,
    flooding_clients: u16,
}

#[derive(Serialize)]
struct Measured {
    /// Of the quiet tenant's requests.
    #[serde(flatten)]
    latency: Latency,
    requests: u64,
    flood_per_second: f64,
    /// How often the flood was told to wait.
    refused: Refused,
}

/// Both tenants at one broker, and the flood once more at another.
struct Setting {
    broker: Broker,
    quiet: Agent,
    flood: Vec<Agent>,
    elsewhere: Broker,
    flood_elsewhere: Vec<Agent>,
}

pub(super) async fn measure(stage: &Stage<'_>) -> Result<Tenants> {
    let setting = Setting::make(stage).await?;
    let mut lines = Lines::new(&Beside::ALL);
    for round in 1..=stage.rounds {
        for beside in Beside::ALL {
            let disk_ms = rest(stage.scratch).await?;
            let measured = setting.measure(beside, &stage.load).await;
            let measured = measured.with_context(|| format!("cannot measure {beside}"))?;
            eprintln!(
                "round {round}: a quiet tenant {beside}: p50 {:.2} ms, p99 {:.2} ms",
                measured.latency.p50_ms, measured.latency.p99_ms
            );
            lines.add(beside, disk_ms, measured);
        }
    }
    Ok(Tenants { lines, flooding_clients: stage.load.clients })
}

impl Setting {
    async fn make(stage: &Stage<'_>) -> Result<Self> {
        let clients = stage.load.clients;
        let (broker, elsewhere) =
            tokio::try_join!(Broker::closed(stage, "tenants"), Broker::closed(stage, "elsewhere"))?;
        let quiet = broker.enroll(By::Token, Some(QUIET), 1).await?;
        Ok(Self {
            quiet: quiet.into_iter().next().context("there is no quiet agent")?,
            flood: broker.enroll(By::Token, Some(FLOOD), clients).await?,
            flood_elsewhere: elsewhere.enroll(By::Token, Some(FLOOD), clients).await?,
            broker,
            elsewhere,
        })
    }

    async fn measure(&self, beside: Beside, load: &Load) -> Result<Measured> {
        let (broker, flood) = match beside {
            Beside::Nobody => (&self.broker, &[][..]),
            Beside::Flood | Beside::LimitedFlood => (&self.broker, &self.flood[..]),
            Beside::FloodElsewhere => (&self.elsewhere, &self.flood_elsewhere[..]),
        };
        if beside == Beside::LimitedFlood {
            let quotas = json!({ "requests_per_second": REQUESTS_PER_SECOND });
            self.broker.set_quotas(FLOOD, &quotas).await?;
        }
        let refusals = Arc::new(Refusals::default());
        let workers = Worker::connect_all(broker.address(), flood, load, &refusals).await?;
        let flooding = async {
            match workers.is_empty() {
                true => Ok(0.0),
                false => Ok(load::run(workers, load).await?.cycles_per_second),
            }
        };
        let quiet = visit_apart(self.broker.address(), self.quiet.clone(), load.clone());
        let (quiet, flood_per_second) = tokio::try_join!(quiet, flooding)?;
        if beside == Beside::LimitedFlood {
            self.broker.set_quotas(FLOOD, &json!({})).await?;
        }
        Ok(Measured {
            latency: latency(&quiet),
            requests: quiet.len(),
            flood_per_second,
            refused: refusals.count(),
        })
    }
}

/// Visits the broker from a thread of its own.
async fn visit_apart(address: SocketAddr, agent: Agent, load: Load) -> Result<Histogram<u64>> {
    let visits = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(visit(address, &agent, &load))
    });
    visits.await.context("the quiet client panicked")?.context("the quiet client failed")
}

/// A lifecycle now and then; how long each of its requests took.
async fn visit(address: SocketAddr, agent: &Agent, load: &Load) -> Result<Histogram<u64>> {
    let refusals = Arc::new(Refusals::default());
    let mut worker = Worker::connect(address, agent, &load.payload, &refusals).await?;
    let mut took = histogram()?;
    let mut ticks = tokio::time::interval(PACE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(load.seconds) {
        ticks.tick().await;
        let began = Instant::now();
        worker.offer().await?;
        let offered = Instant::now();
        worker.claim().await?;
        let claimed = Instant::now();
        worker.complete().await?;
        let completed = Instant::now();
        if began - start >= WARM_UP {
            for step in [offered - began, claimed - offered, completed - claimed] {
                record(&mut took, step);
            }
        }
    }
    Ok(took)
}

impl Tenants {
    pub(super) fn goals(&self) -> Vec<Goal> {
        let goal = |beside: Beside| {
            let text = format!("p99 of a quiet tenant {beside} to alone");
            Goal::at_most(&text, RATIO_MAX, self.p99_to(beside, Beside::Nobody))
        };
        vec![goal(Beside::Flood), goal(Beside::LimitedFlood)]
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let head = [
            "quiet tenant",
            "p50 ms",
            "p99 ms",
            "min–max",
            "p50 to alone",
            "p99 to alone",
            "p99 to elsewhere",
            "flood lifecycles/s",
            "refused",
            "disk",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(Beside::ALL.map(|beside| self.row(beside)));
        let mut lines = vec!["A quiet tenant beside a flooding one".to_owned(), String::new()];
        lines.extend(table(&rows));
        lines.push(String::new());
        lines.push(format!(
            "The flood has {} clients; the quiet tenant has one, with a lifecycle every {} ms.",
            self.flooding_clients,
            PACE.as_millis()
        ));
        lines.push("Times are those of its requests; p99 is the median of the rounds.".to_owned());
        lines
            .push("refused: offers / claims / completes of the flood that had to wait.".to_owned());
        lines.push("A flood at another broker shares the machine and nothing else.".to_owned());
        lines
    }

    fn p99_to(&self, beside: Beside, to: Beside) -> Option<f64> {
        self.lines.ratio(beside, to, |measured| measured.latency.p99_ms)
    }

    fn row(&self, beside: Beside) -> [String; 10] {
        let p50 = |measured: &Measured| measured.latency.p50_ms;
        let p99 = self.lines.spread(beside, |measured| measured.latency.p99_ms);
        let refused = |of: fn(&Refused) -> u64| {
            self.lines.spread(beside, |measured| of(&measured.refused) as f64).median
        };
        let [offers, claims, completes] =
            [refused(|r| r.offer), refused(|r| r.claim), refused(|r| r.complete)];
        let flood = self.lines.spread(beside, |measured| measured.flood_per_second).median;
        [
            beside.to_string(),
            format!("{:.2}", self.lines.spread(beside, p50).median),
            format!("{:.2}", p99.median),
            format!("{:.2}–{:.2}", p99.min, p99.max),
            shown(self.lines.ratio(beside, Beside::Nobody, p50)),
            shown(self.p99_to(beside, Beside::Nobody)),
            shown(self.p99_to(beside, Beside::FloodElsewhere)),
            format!("{flood:.0}"),
            format!("{offers:.0} / {claims:.0} / {completes:.0}"),
            format!("{:.2}", self.lines.disk_ms(beside)),
        ]
    }
}
