// SPDX-License-Identifier: Apache-2.0
//! `tasuki task tree`: a whole run, with who did what, how long it took and what it cost.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tasuki_core::budget::{Cost, Spent};
use tasuki_core::{HandoffId, TaskId, Timestamp};
use tasuki_protocol as wire;

use super::spent;
use crate::client::Client;
use crate::commands::handoff::target;
use crate::exit::Exit;
use crate::output::{Output, printable, span};

/// How many tasks are shown at most; of more, the first.
const TASKS_MAX: usize = 500;
/// How much of the intent stands above.
const INTENT_CHARS_MAX: usize = 200;

#[derive(Serialize)]
struct Tree {
    intent: String,
    /// How many tasks were left out because there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    #[serde(flatten)]
    root: Node,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct Node {
    #[serde(flatten)]
    task: wire::Task,
    /// How long it took, or has taken so far.
    ms: u64,
    handoffs: Vec<Hop>,
    tasks: Vec<Node>,
}

#[derive(Serialize)]
struct Hop {
    #[serde(flatten)]
    handoff: wire::Handoff,
    ms: u64,
    /// What its attempts said that they used.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Spent>,
}

/// A task as it is read here; its result is shown by `task show`.
#[derive(Deserialize)]
struct Parts {
    #[serde(flatten)]
    task: wire::Task,
    handoffs: Vec<wire::Handoff>,
    children: Vec<wire::Task>,
}

pub(super) async fn show(client: &Client, output: Output, id: TaskId) -> anyhow::Result<Exit> {
    let mut walk = Walk { client, left: TASKS_MAX, left_out: 0, intent: None };
    let root = walk.node(id).await?;
    let intent = walk.intent.unwrap_or_default();
    let tree = Tree { intent, left_out: walk.left_out, root };
    output.found(&tree, Tree::text)?;
    Ok(Exit::Done)
}

struct Walk<'w> {
    client: &'w Client,
    left: usize,
    left_out: usize,
    intent: Option<String>,
}

impl Walk<'_> {
    async fn node(&mut self, id: TaskId) -> anyhow::Result<Node> {
        self.left = self.left.saturating_sub(1);
        let parts = self.client.get(&format!("/v1/tasks/{id}"), &[]).await?;
        let parts: Parts = serde_json::from_str(&parts)?;
        let log = self.client.get(&format!("/v1/tasks/{id}/events"), &[]).await?;
        let log: Value = serde_json::from_str(&log)?;
        let none = Vec::new();
        let events = log["events"].as_array().unwrap_or(&none);
        let intent = events.first().and_then(|event| event["body"]["intent"].as_str());
        self.intent.get_or_insert_with(|| intent.unwrap_or_default().to_owned());
        let used = used(events);
        let mut handoffs: Vec<_> = parts
            .handoffs
            .into_iter()
            .map(|handoff| Hop {
                ms: took(handoff.offered_at, handoff.ended_at),
                used: used.get(&handoff.handoff_id).copied(),
                handoff,
            })
            .collect();
        handoffs.sort_by_key(|hop| hop.handoff.offered_at);
        let mut children = parts.children;
        children.sort_by_key(|task| task.opened_at);
        let mut tasks = Vec::new();
        for child in children {
            if self.left == 0 {
                self.left_out += 1;
                continue;
            }
            tasks.push(Box::pin(self.node(child.task_id)).await?);
        }
        let ms = took(parts.task.opened_at, parts.task.ended_at);
        Ok(Node { task: parts.task, ms, handoffs, tasks })
    }
}

/// What the attempts at each handoff said that they used.
fn used(events: &[Value]) -> BTreeMap<HandoffId, Spent> {
    let mut used = BTreeMap::<_, Spent>::new();
    for event in events {
        let usage = &event["body"]["usage"];
        let handoff = event["record"]["handoff_id"].as_str().and_then(|id| id.parse().ok());
        let (Some(handoff), true) = (handoff, usage.is_object()) else { continue };
        let tokens = |name: &str| usage[name].as_u64().unwrap_or(0);
        let cost = serde_json::from_value::<Cost>(usage["cost"].clone()).unwrap_or_default();
        let sum = used.entry(handoff).or_default();
        let more = tokens("input_tokens").saturating_add(tokens("output_tokens"));
        sum.tokens = sum.tokens.saturating_add(more);
        sum.cost = Cost(sum.cost.0.saturating_add(cost.0));
    }
    used
}

/// How long something took; so far, by this machine's clock, if it is not at its end.
fn took(from: Timestamp, to: Option<Timestamp>) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
    to.unwrap_or(now).ms_after(from)
}

impl Tree {
    fn text(&self) -> String {
        let mut text = String::new();
        let mut intent: String = self.intent.chars().take(INTENT_CHARS_MAX).collect();
        if intent.len() < self.intent.len() {
            intent.push('…');
        }
        text += &format!("{}\n", printable(&intent.replace('\n', " ")));
        text += &self.root.line();
        self.root.below("", &mut text);
        if self.left_out > 0 {
            let more = self.left_out;
            text += &format!(
                "{more} more tasks are not shown; `tasuki task tree` of one shows what is below it\n"
            );
        }
        text
    }
}

/// What stands below a task, in the order in which it began.
enum Below<'n> {
    Hop(&'n Hop),
    Task(&'n Node),
}

impl Node {
    fn line(&self) -> String {
        let task = &self.task;
        let cost = task.spent.as_ref().map(|it| format!("  {}", spent(it))).unwrap_or_default();
        let so_far = if task.ended_at.is_none() { " so far" } else { "" };
        let took = span(self.ms);
        format!("{}  {}  owner {}  {took}{so_far}{cost}\n", task.task_id, task.state, task.owner)
    }

    fn below(&self, indent: &str, text: &mut String) {
        let mut parts: Vec<_> = self.handoffs.iter().map(Below::Hop).collect();
        parts.extend(self.tasks.iter().map(Below::Task));
        parts.sort_by_key(|part| match part {
            Below::Hop(hop) => hop.handoff.offered_at,
            Below::Task(node) => node.task.opened_at,
        });
        let last = parts.len().saturating_sub(1);
        for (number, part) in parts.into_iter().enumerate() {
            let (branch, more) =
                if number == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let deeper = format!("{indent}{more}");
            match part {
                Below::Hop(hop) => {
                    *text += &format!("{indent}{branch}{}\n", hop.line());
                    hop.attempts(&deeper, text);
                }
                Below::Task(node) => {
                    *text += &format!("{indent}{branch}{}", node.line());
                    node.below(&deeper, text);
                }
            }
        }
    }
}

impl Hop {
    fn line(&self) -> String {
        let one = &self.handoff;
        let to = target(&one.to);
        let to = to.strip_prefix("agent ").unwrap_or(&to);
        let cost = self.used.as_ref().map(|it| format!("  {}", spent(it))).unwrap_or_default();
        let so_far = if one.ended_at.is_none() { " so far" } else { "" };
        format!(
            "{}  {}  {} → {to}  {}{so_far}{cost}",
            one.handoff_id,
            one.state,
            one.from_agent,
            span(self.ms)
        )
    }

    /// Attempts are told where they say more than the handoff itself.
    fn attempts(&self, indent: &str, text: &mut String) {
        let attempts = &self.handoff.attempts;
        let by_name = match &self.handoff.to {
            tasuki_core::Target::Agent(agent) => attempts.iter().all(|one| one.agent == *agent),
            tasuki_core::Target::Capability(_) => false,
        };
        if attempts.len() < 2 && by_name {
            return;
        }
        for (number, one) in attempts.iter().enumerate() {
            let branch = if number + 1 == attempts.len() { "└─" } else { "├─" };
            let took = span(took(one.claimed_at, one.ended_at));
            let ended = one.ended.as_deref().unwrap_or("under way");
            *text += &format!(
                "{indent}{branch} attempt {}  {}  {ended}  {took}\n",
                one.number, one.agent
            );
        }
    }
}
