// SPDX-License-Identifier: Apache-2.0
//! `tasuki dead-letter`: handoffs that somebody has to decide on.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tasuki_core::envelope::Said;
use tasuki_core::{AgentId, Capability, HandoffId, Hash, Target};
use tasuki_protocol as wire;

use super::handoff::{attempts_of, details, moved, pretty};
use crate::args::{self, AGENT, millis};
use crate::client::{Client, Connect};
use crate::exit::Exit;
use crate::output::{Facts, Output, table};

#[derive(Args)]
pub(crate) struct DeadLetter {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List dead letters that wait for a decision, newest first
    List(List),
    /// Show a dead letter with its envelope and what its attempts reported
    Show(Show),
    /// Send a dead letter on its way again, as a new linked handoff
    Redrive(Redrive),
    /// Put a dead letter away, with a reason
    Discard(Discard),
    /// Show dead letters by what they died of
    Groups,
    /// Send a dead letter to another agent or capability
    Reroute(Reroute),
    /// Send a dead letter on its way again with a new envelope, linked to the old one
    Amend(Amend),
    /// Answer what a dead letter stopped at, and let the work go on with the decision
    Answer(Answer),
    /// Keep others from deciding on a dead letter for a while
    Take(Take),
    /// Decide on many at once, or see which ones it would be
    Decide(Decide),
}

#[derive(Args)]
struct List {
    /// Also those that were decided on
    #[arg(long)]
    all: bool,
    /// Only dead letters before this one: where the page before ended
    #[arg(long, value_name = "HANDOFF")]
    before: Option<HandoffId>,
    /// How many at most, up to 1000
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

#[derive(Args)]
struct Show {
    /// The handoff's id
    handoff: HandoffId,
}

/// A decision on one dead letter.
#[derive(Args)]
struct On {
    /// The handoff's id
    handoff: HandoffId,
    /// Who decides
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
}

/// How long what goes on may take this time.
#[derive(Args)]
struct Anew {
    /// How long it may take this time, such as 2h; as long as before without it, and at least the
    /// broker's own span if it expired
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    expires_in: Option<u64>,
}

#[derive(Args)]
struct Redrive {
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    anew: Anew,
}

#[derive(Args)]
struct Discard {
    #[command(flatten)]
    on: On,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl DeadLetter {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        match self.verb {
            Verb::List(list) => list.run(client, output).await?,
            Verb::Show(show) => show.run(client, output).await?,
            Verb::Groups => groups(client, output).await?,
            Verb::Decide(decide) => return decide.run(client, output).await,
            Verb::Redrive(Redrive { on, anew }) => {
                let body = wire::RedriveLetter { by: on.by, expires_in_ms: anew.expires_in };
                again(client, output, on.handoff, "redrive", &body).await?;
            }
            Verb::Reroute(Reroute { on, anew, to, to_capability }) => {
                let to = to.map(Target::Agent).or(to_capability.map(Target::Capability));
                let to = to.expect("one of them is required");
                let body = wire::Reroute { by: on.by, to, expires_in_ms: anew.expires_in };
                again(client, output, on.handoff, "reroute", &body).await?;
            }
            Verb::Amend(amend) => {
                let handoff = amend.on.handoff;
                again(client, output, handoff, "amend", &amend.body()?).await?;
            }
            Verb::Answer(Answer { on, anew, decision, about, why }) => {
                let decision = json!({ "key": about, "decision": decision, "why": why });
                let span = anew.expires_in;
                let body = json!({ "by": on.by, "decision": decision, "expires_in_ms": span });
                again(client, output, on.handoff, "answer", &body).await?;
            }
            Verb::Discard(Discard { on, reason }) => {
                let body = wire::Decide { by: on.by, reason: Some(reason) };
                let reply = decided(client, on.handoff, "discard", &body).await?;
                output.reply(&reply, moved)?;
            }
            Verb::Take(Take { on, span }) => {
                let body = wire::TakeReview { by: on.by, for_ms: span };
                let reply = decided(client, on.handoff, "take", &body).await?;
                output.reply(&reply, |handoff: wire::Handoff| details(&handoff).text())?;
            }
        }
        Ok(Exit::Done)
    }
}

async fn decided(
    client: &Client,
    letter: HandoffId,
    verb: &str,
    body: &impl Serialize,
) -> anyhow::Result<String> {
    client.post(&format!("/v1/dead-letters/{letter}/{verb}"), body).await
}

/// Decides that a dead letter goes on, and shows as what.
async fn again(
    client: &Client,
    output: Output,
    letter: HandoffId,
    verb: &str,
    body: &impl Serialize,
) -> anyhow::Result<()> {
    let reply = decided(client, letter, verb, body).await?;
    output.reply(&reply, |offered: wire::Offered| {
        let id = offered.handoff_id;
        Facts::default()
            .with("handoff", id)
            .with("task", offered.task_id)
            .with("status", offered.status)
            .with("sends again", letter)
            .with("next", client.command(&format!("handoff wait {id}")))
            .text()
    })
}

impl List {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let query = [
            ("all", self.all.then(|| "true".to_owned())),
            ("before", self.before.map(|handoff| handoff.to_string())),
            ("limit", Some(self.limit.to_string())),
        ];
        let reply = client.get("/v1/dead-letters", &query).await?;
        output.reply(&reply, |page: wire::Handoffs| match page.next {
            _ if page.handoffs.is_empty() => "no dead letters".to_owned(),
            Some(next) => format!("{}more with --before {next}\n", listed(&page.handoffs)),
            None => listed(&page.handoffs),
        })
    }
}

fn listed(letters: &[wire::Handoff]) -> String {
    let rows = letters.iter().map(|letter| {
        let dead = letter.dead_letter.as_ref();
        let decided = dead.map_or("", |dead| match dead.redriven_to {
            Some(_) => "redriven",
            None if dead.discarded => "discarded",
            None if dead.closed.is_some() => "closed",
            None => "waiting",
        });
        [
            letter.handoff_id.to_string(),
            dead.map(|dead| dead.reason.clone()).unwrap_or_default(),
            letter.from_agent.to_string(),
            super::handoff::target(&letter.to),
            letter.ended_at.map(|time| time.to_string()).unwrap_or_default(),
            decided.to_owned(),
        ]
    });
    table(["handoff", "reason", "from", "to", "since", "decision"], rows)
}

/// A dead letter as it is read; see `Shown` for why it is not the door's own type.
#[derive(Deserialize)]
struct Letter {
    #[serde(flatten)]
    handoff: wire::Handoff,
    envelope_content: Option<Value>,
    reports: Vec<Value>,
    discarded_because: Option<String>,
    rejected_because: Option<String>,
    #[serde(default)]
    waits_in_circle: Option<String>,
}

impl Show {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let reply = client.get(&format!("/v1/dead-letters/{}", self.handoff), &[]).await?;
        output.reply(&reply, |letter: Letter| {
            let id = letter.handoff.handoff_id;
            let open = letter.handoff.dead_letter.as_ref().is_some_and(|dead| {
                dead.redriven_to.is_none() && !dead.discarded && dead.closed.is_none()
            });
            let redrive =
                open.then(|| client.command(&format!("dead-letter redrive {id} --by AGENT")));
            let discard = open.then(|| {
                client.command(&format!("dead-letter discard {id} --by AGENT --reason …"))
            });
            let facts = details(&letter.handoff)
                .maybe("discarded because", letter.discarded_because)
                .maybe("rejected because", letter.rejected_because)
                .maybe("who waits for whom", letter.waits_in_circle)
                .maybe("envelope", letter.envelope_content.as_ref().map(pretty))
                .maybe("redrive", redrive)
                .maybe("discard", discard);
            let reports = letter.reports.iter().map(|report| {
                Facts::default()
                    .with("attempt", &report["attempt"])
                    .with("ended", report["ended"].as_str().unwrap_or_default())
                    .with("report", pretty(&report["report"]))
                    .text()
            });
            let reports: Vec<_> = reports.collect();
            format!("{}{}\n{}", facts.text(), attempts_of(&letter.handoff), reports.join("\n"))
        })
    }
}

#[derive(Args)]
struct Reroute {
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    anew: Anew,
    /// The agent that gets it
    #[arg(long, value_name = "AGENT", required_unless_present = "to_capability")]
    to: Option<AgentId>,
    /// Anybody with this capability gets it
    #[arg(long, value_name = "CAPABILITY", conflicts_with = "to")]
    to_capability: Option<Capability>,
}

#[derive(Args)]
struct Amend {
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    anew: Anew,
    /// Another receiver
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentId>,
    /// Another payload: a JSON object with a `type`, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// What the receiver must do, in other words
    #[arg(long, value_name = "TEXT")]
    ask: Option<String>,
    /// What the task may spend from here on, instead of what it might before: a JSON object with
    /// `tokens` and `cost`
    #[arg(long, value_name = "JSON")]
    budget: Option<String>,
    /// Other parts of the envelope, such as add_constraints or decisions: a JSON object
    #[arg(long, value_name = "JSON")]
    parts: Option<String>,
}

#[derive(Args)]
struct Answer {
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    anew: Anew,
    /// What is decided
    #[arg(long, value_name = "TEXT")]
    decision: String,
    /// What it is about, such as database
    #[arg(long, value_name = "KEY")]
    about: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Args)]
struct Take {
    #[command(flatten)]
    on: On,
    /// For how long; 0s gives it back
    #[arg(long = "for", value_name = "SPAN", value_parser = millis, default_value = "15m")]
    span: u64,
}

#[derive(Args)]
struct Decide {
    /// The handoffs' ids
    #[arg(value_name = "HANDOFF")]
    handoffs: Vec<HandoffId>,
    /// All that died of this, as `dead-letter groups` shows it
    #[arg(long, value_name = "HASH")]
    fingerprint: Option<Hash>,
    /// Who decides
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Send them again as they were
    #[arg(long, conflicts_with_all = ["to", "abort"], required_unless_present_any = ["to", "abort"])]
    retry: bool,
    /// Send them to this agent
    #[arg(long, value_name = "AGENT", conflicts_with = "abort")]
    to: Option<AgentId>,
    /// Put them away, for this reason
    #[arg(long, value_name = "REASON")]
    abort: Option<String>,
    #[command(flatten)]
    anew: Anew,
    /// Only say which ones it would be
    #[arg(long)]
    dry_run: bool,
}

async fn groups(client: &Client, output: Output) -> anyhow::Result<()> {
    let reply = client.get("/v1/dead-letters/groups", &[]).await?;
    output.reply(&reply, |all: wire::Groups| {
        if all.groups.is_empty() {
            return "no dead letters".to_owned();
        }
        let rows = all.groups.iter().map(|group| {
            [
                group.count.to_string(),
                group.reason.clone(),
                super::handoff::target(&group.to),
                group.kind.clone().unwrap_or_default(),
                group.message.clone().unwrap_or_default(),
                group.hint.clone().unwrap_or_default(),
                group.fingerprint.to_string(),
            ]
        });
        table(["count", "reason", "to", "type", "message", "hint", "fingerprint"], rows)
    })
}

impl Amend {
    fn body(self) -> anyhow::Result<wire::Amend> {
        let parts = self.parts.map(|text| args::json("--parts", &text)).transpose()?;
        let mut said: Said = parts.unwrap_or_default();
        said.ask = self.ask.or(said.ask);
        Ok(wire::Amend {
            by: self.on.by,
            to: self.to.map(Target::Agent),
            payload: self.payload.map(|text| args::json("--payload", &text)).transpose()?,
            terms: None,
            expires_in_ms: self.anew.expires_in,
            budget: self.budget.map(|text| args::json("--budget", &text)).transpose()?,
            said,
            more: Default::default(),
        })
    }
}

impl Decide {
    /// Fails if one of them was refused, after telling of all of them.
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let decision = match (self.to, self.abort) {
            (Some(agent), _) => wire::Ruling::Reroute(Target::Agent(agent)),
            (None, Some(reason)) => wire::Ruling::Abort(reason),
            (None, None) => wire::Ruling::Retry,
        };
        let body = wire::DecideMany {
            by: self.by,
            decision,
            expires_in_ms: self.anew.expires_in,
            handoffs: self.handoffs,
            fingerprint: self.fingerprint,
            dry_run: self.dry_run,
        };
        let reply = client.post("/v1/dead-letters/decide", &body).await?;
        let decided: wire::DecidedMany = serde_json::from_str(&reply)?;
        let refused = decided.results.iter().any(|one| one.error.is_some());
        output.reply(&reply, |decided: wire::DecidedMany| {
            let rows = decided.results.iter().map(|one| {
                let became = match (&one.error, one.to_handoff) {
                    (Some(error), _) => error.message.clone(),
                    (None, _) if decided.dry_run => "would be decided on".to_owned(),
                    (None, Some(to)) => to.to_string(),
                    (None, None) => String::new(),
                };
                [one.handoff_id.to_string(), became]
            });
            table(["dead letter", "became"], rows)
        })?;
        Ok(if refused { Exit::Refused } else { Exit::Done })
    }
}
