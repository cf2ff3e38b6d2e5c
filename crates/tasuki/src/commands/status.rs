// SPDX-License-Identifier: Apache-2.0
//! `tasuki status`: what this broker is, what waits, what is wrong, and what to do next.

use clap::Args;
use serde::Serialize;
use tasuki_protocol as wire;

use super::handoff::target;
use crate::client::{Client, Connect};
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, span};

/// How many names of a list are shown.
const NAMED_MAX: usize = 5;

#[derive(Args)]
pub(crate) struct Status {
    #[command(flatten)]
    connect: Connect,
}

#[derive(Serialize)]
struct Found {
    url: String,
    version: String,
    /// Handoffs that nobody has claimed yet, by whom they are for.
    waiting: Vec<Waiting>,
    in_flight: u64,
    connected: Vec<String>,
    /// What somebody has to look at, the most urgent first, each with the command for it.
    wrong: Vec<Wrong>,
    next: String,
}

#[derive(Serialize)]
struct Waiting {
    to: String,
    handoffs: u64,
    oldest_ms: u64,
    listening: bool,
}

#[derive(Serialize)]
struct Wrong {
    what: String,
    next: String,
}

impl Status {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        let (status, text) = client.probe("/readyz").await?;
        if status != 200 {
            let health: Option<wire::Health> = serde_json::from_str(&text).ok();
            let why = health.and_then(|health| health.reason);
            let why = why.unwrap_or_else(|| format!("it answers with status {status}"));
            let message = format!("the broker at {} is not ready: {why}", client.url());
            let failure = Failure::new(Exit::Unavailable, message, "look into the broker's log");
            return Err(failure.next(client.command("doctor")).into());
        }
        let found = look(client).await?;
        output.found(&found, Found::text)?;
        Ok(Exit::Done)
    }
}

async fn look(client: &Client) -> anyhow::Result<Found> {
    let stats: wire::Stats = serde_json::from_str(&client.get("/v1/stats", &[]).await?)?;
    let overview: wire::Overview = serde_json::from_str(&client.get("/v1/overview", &[]).await?)?;
    let live = [("live", Some("true".to_owned())), ("limit", Some("1000".to_owned()))];
    let agents: wire::Agents = serde_json::from_str(&client.get("/v1/agents", &live).await?)?;
    let questions: wire::Questions =
        serde_json::from_str(&client.get("/v1/questions", &[]).await?)?;
    let waiting: Vec<_> = overview
        .targets
        .iter()
        .filter(|one| one.queue > 0)
        .map(|one| Waiting {
            to: target(&one.target),
            handoffs: one.queue,
            oldest_ms: one.oldest_ms,
            listening: one.live,
        })
        .collect();
    let wrong = wrong(client, &stats, &overview, &questions, &waiting);
    let next = wrong.first().map_or_else(
        || {
            let words = match (waiting.is_empty(), overview.targets.is_empty()) {
                (false, _) => "handoff ready",
                (true, false) => "task list",
                (true, true) => "handoff offer --from AGENT --to AGENT --intent TEXT",
            };
            client.command(words)
        },
        |wrong| wrong.next.clone(),
    );
    Ok(Found {
        url: client.url().to_owned(),
        version: stats.version,
        waiting,
        in_flight: overview.targets.iter().map(|one| one.inflight).sum(),
        connected: agents.agents.iter().map(|agent| agent.agent_id.to_string()).collect(),
        wrong,
        next,
    })
}

fn wrong(
    client: &Client,
    stats: &wire::Stats,
    overview: &wire::Overview,
    questions: &wire::Questions,
    waiting: &[Waiting],
) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let mut add = |what: String, words: &str| {
        wrong.push(Wrong { what, next: client.command(words) });
    };
    if stats.disk_full {
        add("the disk is full, and no new work is taken".into(), "doctor");
    }
    let letters: u64 = overview.targets.iter().map(|one| one.dead_letters).sum();
    if letters > 0 {
        add(format!("{letters} dead letters wait for a decision"), "dead-letter list");
    }
    if !questions.questions.is_empty() {
        let more = if questions.next.is_some() { " or more" } else { "" };
        let count = questions.questions.len();
        add(format!("{count}{more} questions wait for an answer"), "question list");
    }
    for one in overview.targets.iter().filter(|one| one.breaker == "open").take(NAMED_MAX) {
        let to = target(&one.target);
        add(format!("the breaker of {to} is open: it gets no work"), "health");
    }
    for one in waiting.iter().filter(|one| !one.listening).take(NAMED_MAX) {
        let Waiting { to, handoffs, oldest_ms, .. } = one;
        let oldest = span(*oldest_ms);
        let what = format!("nobody listens for {to}: {handoffs} wait, the oldest for {oldest}");
        add(what, "handoff ready");
    }
    if overview.firing > 0 {
        add(format!("{} alerts are on", overview.firing), "alerts list");
    }
    wrong
}

impl Found {
    fn text(&self) -> String {
        let waiting = self.waiting.iter().take(NAMED_MAX).map(|one| {
            format!("{} for {}, the oldest for {}", one.handoffs, one.to, span(one.oldest_ms))
        });
        let waiting: Vec<_> = waiting.collect();
        let waiting = listed(&waiting, self.waiting.len(), "\n");
        let wrong: Vec<_> = self.wrong.iter().map(|wrong| wrong.what.clone()).collect();
        let connected = &self.connected[..self.connected.len().min(NAMED_MAX)];
        Facts::default()
            .with("broker", format!("{}, tasuki {}, ready", self.url, self.version))
            .with("connected", listed(connected, self.connected.len(), ", "))
            .with("waiting", waiting)
            .with("under way", self.in_flight)
            .with("wrong", listed(&wrong, wrong.len(), "\n"))
            .with("next", &self.next)
            .text()
    }
}

fn listed(shown: &[String], all: usize, between: &str) -> String {
    if shown.is_empty() {
        return "nothing".to_owned();
    }
    let more = all.saturating_sub(shown.len());
    let more = if more > 0 { format!("{between}and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(between))
}
