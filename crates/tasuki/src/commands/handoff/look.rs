// SPDX-License-Identifier: Apache-2.0
//! Looking at handoffs, now or when they have come far enough.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;
use serde_json::Value;
use tasuki_core::handoff::StateName;
use tasuki_core::{AgentId, Capability, HandoffId, TaskId};
use tasuki_protocol as wire;

use super::text::{Shown, listed, pretty, target, waits};
use crate::args::{millis, words};
use crate::client::{self, Client};
use crate::commands::task;
use crate::exit::Exit;
use crate::output::{Output, table};

fn states() -> PossibleValuesParser {
    StateName::ALL.iter().map(|state| state.as_str()).into()
}

#[derive(Args)]
pub(super) struct Show {
    /// The handoff's id
    handoff: HandoffId,
}

impl Show {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let reply = client.get(&format!("/v1/handoffs/{}", self.handoff), &[]).await?;
        output.reply(&reply, |shown: Shown| shown.text(client))?;
        Ok(Exit::Done)
    }

    pub(super) async fn envelope(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let reply = client.get(&format!("/v1/handoffs/{}/envelope", self.handoff), &[]).await?;
        output.reply(&reply, |envelope: Value| pretty(&envelope))?;
        Ok(Exit::Done)
    }
}

#[derive(Args)]
pub(super) struct List {
    /// Only handoffs in this state
    #[arg(long, value_parser = states())]
    state: Option<String>,
    /// Only handoffs of this task
    #[arg(long, value_name = "TASK")]
    task: Option<TaskId>,
    /// Only those addressed to this agent by name
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentId>,
    /// Only those that ask for this capability
    #[arg(long, value_name = "CAPABILITY", conflicts_with = "to")]
    to_capability: Option<Capability>,
    /// Only those that this agent sent
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentId>,
    /// Only handoffs before this one: where the page before ended
    #[arg(long, value_name = "HANDOFF")]
    before: Option<HandoffId>,
    /// How many at most, up to 1000
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

impl List {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let query = [
            ("state", self.state),
            ("task", self.task.map(|task| task.to_string())),
            ("to_agent", self.to.map(|agent| agent.to_string())),
            ("to_capability", self.to_capability.map(|capability| capability.to_string())),
            ("from_agent", self.from.map(|agent| agent.to_string())),
            ("before", self.before.map(|handoff| handoff.to_string())),
            ("limit", Some(self.limit.to_string())),
        ];
        let reply = client.get("/v1/handoffs", &query).await?;
        output.reply(&reply, |page: wire::Handoffs| match page.next {
            _ if page.handoffs.is_empty() => "no handoffs".to_owned(),
            Some(next) => format!("{}more with --before {next}\n", listed(&page.handoffs)),
            None => listed(&page.handoffs),
        })?;
        Ok(Exit::Done)
    }
}

#[derive(Args)]
pub(super) struct Ready {
    /// Only work for this agent by name
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentId>,
    /// Only work that this agent sent
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentId>,
}

impl Ready {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let query = [
            ("to_agent", self.to.map(|agent| agent.to_string())),
            ("from_agent", self.from.map(|agent| agent.to_string())),
        ];
        let reply = client.get("/v1/ready", &query).await?;
        output.reply(&reply, |view: wire::ReadyView| {
            let all = view.ready.iter().map(|it| ("ready", it));
            let all = all.chain(view.held.iter().map(|it| ("held", it)));
            let rows = all.map(|(word, one)| {
                let reasons: Vec<_> = one.waits_for.iter().map(waits).collect();
                [one.handoff_id.to_string(), word.to_owned(), target(&one.to), reasons.join("; ")]
            });
            let rows: Vec<_> = rows.collect();
            match rows.is_empty() {
                true => "nothing waits".to_owned(),
                false => table(["handoff", "start", "to", "waits for"], rows),
            }
        })?;
        Ok(Exit::Done)
    }
}

#[derive(Args)]
pub(super) struct Wait {
    /// The handoffs' ids
    #[arg(required = true, value_name = "HANDOFF")]
    handoffs: Vec<HandoffId>,
    /// How far they must have come
    #[arg(long, value_parser = words::<wire::Until>(&["claimed", "settled"]), default_value = "settled")]
    until: wire::Until,
    /// One of them is enough
    #[arg(long)]
    any: bool,
    /// How long to wait at most
    #[arg(long, value_name = "SPAN", value_parser = millis, default_value = "10m")]
    timeout: u64,
}

impl Wait {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let wish = wire::Wait {
            handoffs: self.handoffs,
            tasks: Vec::new(),
            mode: if self.any { wire::Mode::Any } else { wire::Mode::All },
            until: self.until,
            timeout_ms: self.timeout,
        };
        wait(client, output, wish).await
    }
}

/// Waits for handoffs and tasks, and shows them as they then are.
pub(in crate::commands) async fn wait(
    client: &Client,
    output: Output,
    mut wish: wire::Wait,
) -> anyhow::Result<Exit> {
    let timeout_ms = wish.timeout_ms;
    let ask = async |slice_ms| {
        wish.timeout_ms = slice_ms;
        let reply = client.post_waiting("/v1/wait", &wish, slice_ms).await?;
        let waited: Waited = serde_json::from_str(&reply)?;
        Ok((reply, waited))
    };
    let (reply, waited) = client::until(timeout_ms, ask, |(_, waited)| waited.done).await?;
    let exit = waited.exit();
    output.reply(&reply, |waited: Waited| waited.text(client))?;
    Ok(exit)
}

/// Waits until a handoff is claimed, and shows it as it then is.
pub(super) async fn wait_for_claim(
    client: &Client,
    output: Output,
    handoff: HandoffId,
    wait_ms: u64,
) -> anyhow::Result<Exit> {
    let path = format!("/v1/handoffs/{handoff}");
    let ask = async |slice_ms: u64| {
        let query = [("wait_ms", Some(slice_ms.to_string())), ("until", Some("claimed".into()))];
        let reply = client.get(&path, &query).await?;
        let shown: Shown = serde_json::from_str(&reply)?;
        Ok((reply, shown))
    };
    let is_claimed =
        |shown: &Shown| shown.handoff.holder.is_some() || shown.handoff.ended_at.is_some();
    let (reply, shown) = client::until(wait_ms, ask, |(_, shown)| is_claimed(shown)).await?;
    output.reply(&reply, |shown: Shown| shown.text(client))?;
    Ok(if is_claimed(&shown) { verdict(&shown.handoff.state) } else { Exit::Nothing })
}

/// Whether it went well, as far as it went.
fn verdict(state: &str) -> Exit {
    if matches!(state, "failed" | "cancelled" | "dead_lettered") {
        Exit::Refused
    } else {
        Exit::Done
    }
}

#[derive(Deserialize)]
struct Waited {
    done: bool,
    handoffs: Vec<Shown>,
    tasks: Vec<wire::Task>,
}

impl Waited {
    fn exit(&self) -> Exit {
        if !self.done {
            return Exit::Nothing;
        }
        let states = self.handoffs.iter().map(|shown| &shown.handoff.state);
        let mut verdicts = states.chain(self.tasks.iter().map(|task| &task.state));
        if verdicts.any(|state| verdict(state) == Exit::Refused) {
            Exit::Refused
        } else {
            Exit::Done
        }
    }

    fn text(&self, client: &Client) -> String {
        let handoffs = self.handoffs.iter().map(|shown| shown.text(client));
        let tasks = self.tasks.iter().map(|task| task::details(task).text());
        let mut texts: Vec<_> = handoffs.chain(tasks).collect();
        if !self.done {
            texts.push("the time was up before it was done\n".into());
        }
        texts.join("\n")
    }
}
