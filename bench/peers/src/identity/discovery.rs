//! Finding and choosing agents among many, beside handing work to one by its name.
//!
//! All kinds of requests share each turn in short slices, so that whatever happens to the machine
//! happens to all of them.

use std::{
    fmt,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{
    Stage,
    broker::Broker,
    manifests::{self, CAPABILITIES_EACH, SHARED_BY},
    rounds::{Lines, rest, shown},
    worker::{Claims, Held},
};
use crate::{
    figures::table,
    http::Http,
    load::{Latency, Load, histogram, latency, record},
    proof::Proof,
};

/// Clients that ask at the same time.
const CLIENTS: u32 = 4;
/// Connections over which the agents publish, poll and do what they were given.
const CONNECTIONS: u32 = 8;
const SLICE: Duration = Duration::from_millis(50);
/// How many handoffs an agent claims and completes at once.
const CLAIMS_MAX: usize = 100;
/// A large step that visits every agent before any one twice, as long as their number is no
/// multiple of it.
const STRIDE: u32 = 7919;
/// What only a reply has whose broker chose an agent.
const ROUTED: &[u8] = b"\"routed\":{";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    ByName,
    RouteToOne,
    RouteToMany,
    FindOne,
    FindMany,
    Search,
    ByNameAfterChange,
}

impl Kind {
    /// Those that share a turn.
    const IN_SLICES: [Self; 6] = [
        Self::ByName,
        Self::RouteToOne,
        Self::RouteToMany,
        Self::FindOne,
        Self::FindMany,
        Self::Search,
    ];
    const ALL: [Self; 7] = [
        Self::ByName,
        Self::RouteToOne,
        Self::RouteToMany,
        Self::FindOne,
        Self::FindMany,
        Self::Search,
        Self::ByNameAfterChange,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByName => f.write_str("offer to an agent by name"),
            Self::RouteToOne => f.write_str("offer to a capability of 1 agent, least_loaded"),
            Self::RouteToMany => {
                write!(f, "offer to a capability of {SHARED_BY} agents, least_loaded")
            }
            Self::FindOne => f.write_str("GET agents with a capability, finds 1"),
            Self::FindMany => write!(f, "GET agents with a capability, finds {SHARED_BY}"),
            Self::Search => {
                let finds = SHARED_BY / 2;
                write!(f, "search with an input schema, finds {finds} of {SHARED_BY}")
            }
            Self::ByNameAfterChange => {
                f.write_str("offer by name, each after a change of some agent's rules")
            }
        }
    }
}

#[derive(Serialize)]
pub(super) struct Discovery {
    lines: Lines<Kind, Measured>,
    agents: u32,
}

#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    latency: Latency,
    requests: u64,
}

impl Measured {
    fn of(histogram: &Histogram<u64>) -> Self {
        Self { latency: latency(histogram), requests: histogram.len() }
    }
}

pub(super) async fn measure(stage: &Stage<'_>, agents: u32) -> Result<Discovery> {
    let agents = agents - agents % SHARED_BY;
    let broker = Broker::open(stage, "discovery").await?;
    let crowd = Crowd { address: broker.address(), agents };
    crowd.send(Errand::Publish).await.context("cannot publish the manifests")?;
    crowd.send(Errand::Work).await.context("the agents cannot ask for work")?;
    let mut asker = Asker::connect(crowd, 0, &stage.load).await?;
    asker.check().await.context("the agents are not found as they should be")?;

    let mut lines = Lines::new(&Kind::ALL);
    for round in 1..=stage.rounds {
        // Whoever polled lately is live; and nobody is loaded with what earlier rounds left.
        crowd.send(Errand::Work).await?;
        let disk_ms = rest(stage.scratch).await?;
        let found = ask_in_slices(crowd, &stage.load).await?;
        for (kind, histogram) in Kind::IN_SLICES.into_iter().zip(&found) {
            tell(round, kind, histogram);
            lines.add(kind, disk_ms, Measured::of(histogram));
        }
        crowd.send(Errand::Work).await?;
        let disk_ms = rest(stage.scratch).await?;
        let kind = Kind::ByNameAfterChange;
        let found = asker.ask_for(kind, stage.load.seconds).await?;
        tell(round, kind, &found);
        lines.add(kind, disk_ms, Measured::of(&found));
    }
    Ok(Discovery { lines, agents })
}

fn tell(round: u32, kind: Kind, histogram: &Histogram<u64>) {
    let Latency { p50_ms, p99_ms, .. } = latency(histogram);
    eprintln!("round {round}: {kind}: p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms");
}

/// All agents there are.
#[derive(Clone, Copy)]
struct Crowd {
    address: SocketAddr,
    agents: u32,
}

/// What every agent does.
#[derive(Clone, Copy)]
enum Errand {
    Publish,
    /// Asks for work and does all that it was given.
    Work,
}

impl Crowd {
    /// Lets every agent do the same, over several connections.
    async fn send(self, errand: Errand) -> Result<()> {
        let mut connections = JoinSet::new();
        for first in 0..CONNECTIONS {
            connections.spawn(async move {
                let mut http = Http::connect(self.address, &Proof::Nothing).await?;
                for agent in (first..self.agents).step_by(CONNECTIONS as usize) {
                    match errand {
                        Errand::Publish => publish(&mut http, agent).await?,
                        Errand::Work => work(&mut http, agent).await?,
                    }
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = connections.join_next().await {
            done.context("an agent panicked")??;
        }
        Ok(())
    }
}

async fn publish(http: &mut Http, agent: u32) -> Result<()> {
    let body = json!({ "manifest": manifests::manifest(agent) }).to_string();
    http.post("/v1/agents", body.as_bytes()).await?;
    Ok(())
}

async fn work(http: &mut Http, agent: u32) -> Result<()> {
    let claim = json!({ "agent": manifests::name(agent), "max": CLAIMS_MAX }).to_string();
    loop {
        let claims: Claims =
            serde_json::from_slice(http.post("/v1/claims", claim.as_bytes()).await?)?;
        if claims.claims.is_empty() {
            return Ok(());
        }
        let complete = |held: &Held| {
            json!({
                "handoff_id": held.handoff_id,
                "claim_id": held.claim_id,
                "fence": held.fence,
                "payload": manifests::result(),
            })
        };
        let parts: Vec<Value> = claims.claims.iter().map(complete).collect();
        let body = json!({ "completions": parts }).to_string();
        http.post("/v1/completions", body.as_bytes()).await?;
    }
}

/// Lets several clients ask, all of them for the same kind at the same time.
async fn ask_in_slices(crowd: Crowd, load: &Load) -> Result<Vec<Histogram<u64>>> {
    let mut askers = Vec::new();
    for number in 0..CLIENTS {
        askers.push(Asker::connect(crowd, number, load).await?);
    }
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for asker in askers {
        clients.spawn(asker.ask_until(start, start + Duration::from_secs(load.seconds)));
    }
    let mut total = tallies()?;
    while let Some(client) = clients.join_next().await {
        let found = client.context("a client panicked")??;
        for (total, found) in total.iter_mut().zip(found) {
            total.add(found)?;
        }
    }
    Ok(total)
}

fn tallies() -> Result<Vec<Histogram<u64>>> {
    Kind::IN_SLICES.iter().map(|_| histogram()).collect()
}

/// A client that looks for agents and offers work.
struct Asker {
    http: Http,
    crowd: Crowd,
    /// What tells its requests from those of others, and from each other.
    number: u32,
    payload: String,
    sought: String,
}

impl Asker {
    async fn connect(crowd: Crowd, number: u32, load: &Load) -> Result<Self> {
        Ok(Self {
            http: Http::connect(crowd.address, &Proof::Nothing).await?,
            crowd,
            number: number * STRIDE / CLIENTS,
            payload: manifests::payload(str::from_utf8(&load.payload)?).to_string(),
            sought: manifests::sought().to_string(),
        })
    }

    /// Makes sure that what is measured is what it is called.
    async fn check(&mut self) -> Result<()> {
        #[derive(Deserialize)]
        struct Found {
            agents: Vec<serde::de::IgnoredAny>,
        }
        for (kind, expected) in
            [(Kind::FindOne, 1), (Kind::FindMany, SHARED_BY), (Kind::Search, SHARED_BY / 2)]
        {
            self.ask(kind).await?;
            let found: Found = serde_json::from_slice(self.http.last())?;
            let count = found.agents.len();
            ensure!(count == expected as usize, "{kind}: {count} instead of {expected}");
        }
        for (kind, expected) in [(Kind::RouteToOne, 1), (Kind::RouteToMany, SHARED_BY)] {
            self.ask(kind).await?;
            let offered: Value = serde_json::from_slice(self.http.last())?;
            let routed = &offered["routed"];
            let live = (&routed["candidates"], &routed["live"]);
            ensure!(live == (&expected.into(), &expected.into()), "{kind}: chosen by {routed}");
        }
        Ok(())
    }

    async fn ask_until(mut self, start: Instant, end: Instant) -> Result<Vec<Histogram<u64>>> {
        let mut took = tallies()?;
        loop {
            let now = Instant::now();
            if now >= end {
                return Ok(took);
            }
            let slice = (now - start).as_micros() / SLICE.as_micros();
            let place = usize::try_from(slice)? % Kind::IN_SLICES.len();
            let time = self.ask(Kind::IN_SLICES[place]).await?;
            record(&mut took[place], time);
        }
    }

    /// Asks for one kind only.
    async fn ask_for(&mut self, kind: Kind, seconds: u64) -> Result<Histogram<u64>> {
        let mut took = histogram()?;
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            let time = self.ask(kind).await?;
            record(&mut took, time);
        }
        Ok(took)
    }

    /// Makes a request and returns how long it took.
    async fn ask(&mut self, kind: Kind) -> Result<Duration> {
        self.number = self.number.wrapping_add(STRIDE);
        let agent = self.number % self.crowd.agents;
        let name = manifests::name(agent);
        let own = manifests::own(agent, self.number / self.crowd.agents);
        let shared = manifests::shared(agent);
        if kind == Kind::ByNameAfterChange {
            let target = format!("/v1/agents/{}/rules", manifests::name(0));
            self.http.post(&target, br#"{"rules":[]}"#).await?;
        }
        match kind {
            Kind::ByName | Kind::ByNameAfterChange => {
                self.offer(&format!(r#""to":{{"agent":"{name}"}}"#)).await
            }
            Kind::RouteToOne => self.route(&own).await,
            Kind::RouteToMany => self.route(&shared).await,
            Kind::FindOne => self.find(&own).await,
            Kind::FindMany => self.find(&shared).await,
            Kind::Search => {
                let sought = &self.sought;
                let body = format!(r#"{{"capability":"{shared}","input":{sought}}}"#);
                let began = Instant::now();
                self.http.post("/v1/discover", body.as_bytes()).await?;
                Ok(began.elapsed())
            }
        }
    }

    async fn find(&mut self, capability: &str) -> Result<Duration> {
        let target = format!("/v1/agents?capability={capability}");
        let began = Instant::now();
        self.http.get(&target).await?;
        Ok(began.elapsed())
    }

    async fn route(&mut self, capability: &str) -> Result<Duration> {
        let to =
            format!(r#""to":{{"capability":"{capability}"}},"route":{{"policy":"least_loaded"}}"#);
        let took = self.offer(&to).await?;
        // Who is not heard of for a minute is not chosen, and not choosing would be faster.
        let chosen = self.http.last().windows(ROUTED.len()).any(|bytes| bytes == ROUTED);
        ensure!(chosen, "nobody with {capability} is live any more: choose fewer --seconds");
        Ok(took)
    }

    async fn offer(&mut self, to: &str) -> Result<Duration> {
        let payload = &self.payload;
        let body = format!(
            r#"{{"from_agent":"sender",{to},"intent":"measure the broker","payload":{payload}}}"#
        );
        let began = Instant::now();
        self.http.post("/v1/handoffs", body.as_bytes()).await?;
        Ok(began.elapsed())
    }
}

impl Discovery {
    pub(super) fn lines(&self) -> Vec<String> {
        let head = [
            "request",
            "p50 ms",
            "p99 ms",
            "min–max",
            "p50 to by name",
            "p99 to by name",
            "requests",
            "disk",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(Kind::ALL.map(|kind| self.row(kind)));
        let mut lines = vec![
            format!(
                "Finding and choosing among {} agents with {} capabilities",
                self.agents,
                self.agents * CAPABILITIES_EACH
            ),
            String::new(),
        ];
        lines.extend(table(&rows));
        lines.push(String::new());
        lines.push(format!(
            "{CLIENTS} clients, but one alone for the last line; all agents polled within the last \
             minute."
        ));
        lines.push("p50 and p99 are medians of the rounds; min–max is that of p99.".to_owned());
        lines
    }

    fn row(&self, kind: Kind) -> [String; 8] {
        let p50 = |measured: &Measured| measured.latency.p50_ms;
        let p99 = |measured: &Measured| measured.latency.p99_ms;
        let slowest = self.lines.spread(kind, p99);
        let requests = self.lines.spread(kind, |measured| measured.requests as f64).median;
        [
            kind.to_string(),
            format!("{:.2}", self.lines.spread(kind, p50).median),
            format!("{:.2}", slowest.median),
            format!("{:.2}–{:.2}", slowest.min, slowest.max),
            shown(self.lines.ratio(kind, Kind::ByName, p50)),
            shown(self.lines.ratio(kind, Kind::ByName, p99)),
            format!("{requests:.0}"),
            format!("{:.2}", self.lines.disk_ms(kind)),
        ]
    }
}
