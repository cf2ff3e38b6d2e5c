// SPDX-License-Identifier: Apache-2.0
//! `tasuki explain`: where a handoff or a task is, what happened to it, what its receiver got, what
//! binds it, and what to do next. Always in this order, because people ask in this order.

mod bound;
mod happened;
mod next;
mod received;

use clap::Args;
use serde::Serialize;
pub(crate) use tasuki_cli::short::Subject;
use tasuki_core::{AgentId, HandoffId, TaskId};
use tasuki_protocol as wire;

use self::bound::Bound;
use self::happened::Happening;
use self::next::Step;
use self::received::Received;
use super::handoff::target;
use crate::client::{Client, Connect};
use crate::exit::Exit;
use crate::output::{Facts, Output, printable, span};

#[derive(Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    connect: Connect,
    /// The id of a handoff or of a task
    #[arg(value_name = "HANDOFF|TASK")]
    subject: Subject,
}

/// The five answers, in the order of the questions.
#[derive(Serialize)]
pub(crate) struct Explained {
    r#where: Where,
    happened: Vec<Happening>,
    /// None for a task that was never handed to anybody, and for what was erased.
    received: Option<Received>,
    constraints: Bound,
    next: Vec<Step>,
}

#[derive(Serialize)]
struct Where {
    /// One sentence that says it all.
    says: String,
    task_id: TaskId,
    task_state: String,
    owner: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff_id: Option<HandoffId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hop: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<wire::Holder>,
    /// Tasks below this one, and how far they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    below: Vec<Below>,
}

#[derive(Serialize)]
struct Below {
    task_id: TaskId,
    state: String,
    owner: AgentId,
}

impl Explain {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        let explained = explain(client, self.subject).await?;
        output.found(&explained, Explained::text)?;
        Ok(if explained.is_whole() { Exit::Done } else { Exit::Refused })
    }
}

/// Asks the broker for everything that the answers are made of.
pub(crate) async fn explain(client: &Client, subject: Subject) -> anyhow::Result<Explained> {
    let (task, wanted) = match subject {
        Subject::Task(task) => (task, None),
        Subject::Handoff(id) => {
            let reply = client.get(&format!("/v1/handoffs/{id}"), &[]).await?;
            let handoff: wire::Handoff = serde_json::from_str(&reply)?;
            (handoff.task_id, Some(handoff))
        }
    };
    let reply = client.get(&format!("/v1/tasks/{task}"), &[]).await?;
    let shown: wire::TaskWithParts = serde_json::from_str(&reply)?;
    // Of a task it is the handoff under way that counts, or the last one.
    let live = shown.task.live_handoff;
    let newest = shown.handoffs.iter().find(|one| live.is_none_or(|live| one.handoff_id == live));
    let of_one = wanted.as_ref().map(|handoff| handoff.handoff_id);
    let handoff = wanted.as_ref().or(newest);

    let happened = happened::timeline(client, task, of_one).await?;
    let (chain, cut) = match handoff {
        Some(handoff) => bound::chain_to(client, &shown, handoff).await?,
        None => (Vec::new(), false),
    };
    let envelope = chain.last().map(|(envelope, _)| envelope);
    let received = handoff.zip(envelope).map(|(one, it)| Received::of(one, it, &shown.task));
    let next = next::steps(client, &shown, handoff, envelope).await;
    Ok(Explained {
        r#where: Where::of(&shown, handoff),
        happened,
        received,
        constraints: Bound::of(&chain, cut, handoff),
        next,
    })
}

impl Where {
    fn of(shown: &wire::TaskWithParts, handoff: Option<&wire::Handoff>) -> Self {
        let task = &shown.task;
        let below = shown.children.iter().map(|child| Below {
            task_id: child.task_id,
            state: child.state.clone(),
            owner: child.owner.clone(),
        });
        Self {
            says: sentence(shown, handoff),
            task_id: task.task_id,
            task_state: task.state.clone(),
            owner: task.owner.clone(),
            handoff_id: handoff.map(|one| one.handoff_id),
            state: handoff.map(|one| one.state.clone()),
            hop: handoff.map(|one| one.hop),
            to: handoff.map(|one| target(&one.to)),
            holder: handoff.and_then(|one| one.holder.clone()),
            below: below.collect(),
        }
    }
}

fn sentence(shown: &wire::TaskWithParts, handoff: Option<&wire::Handoff>) -> String {
    let task = &shown.task;
    let owner = &task.owner;
    let Some(handoff) = handoff else {
        let below = shown.children.len();
        let open = shown.children.iter().filter(|child| child.state == "open").count();
        return match (below, open) {
            (0, _) => format!("{owner} has the task and has handed it to nobody yet."),
            (_, 0) => format!("{owner} told others, in {below} tasks below it; all have ended."),
            _ => format!("{owner} told others, in {below} tasks below it; {open} are still open."),
        };
    };
    let to = target(&handoff.to);
    let done_by = handoff.attempts.last().map(|last| last.agent.to_string()).unwrap_or_default();
    let sent = handoff.dead_letter.as_ref().map(|dead| (dead.redriven_to, dead.discarded));
    match (handoff.state.as_str(), &handoff.holder, sent) {
        ("awaiting_approval", ..) => {
            format!("Somebody must approve it before {to} gets it; until then {owner} owns it.")
        }
        ("scheduled", ..) => format!("It waits for its time; until then {owner} owns it."),
        ("pending", ..) => format!("It waits for {to} to claim it; until then {owner} owns it."),
        ("input_required", ..) => {
            format!("{owner} asked something and waits for the answer; it owns the task.")
        }
        ("answered", ..) => {
            format!("The answer is kept for {owner}, which asked and owns the task.")
        }
        (state, Some(holder), _) => {
            let doing = if state == "in_progress" { "works on it" } else { "has claimed it" };
            let left = span(holder.lease_left_ms);
            format!(
                "{} {doing}, with {left} of the lease left; {owner} owns the task.",
                holder.agent
            )
        }
        ("completed", ..) if task.live_handoff.is_some() => {
            format!("{done_by} completed this hop; the task goes on, and {owner} owns it.")
        }
        ("completed", ..) => {
            format!("{done_by} completed it. The task is {}; {owner} owns it.", task.state)
        }
        ("dead_lettered", _, Some((Some(to), _))) => {
            format!("It is a dead letter that goes on as {to}; {owner} owns the task.")
        }
        ("dead_lettered", _, Some((None, true))) => {
            format!("It is a dead letter that was put away; {owner} owns the task.")
        }
        ("dead_lettered", ..) => {
            format!("It is a dead letter: somebody must decide. {owner} owns the task.")
        }
        (state, ..) => format!("It is {state}, and so at its end; {owner} owns the task."),
    }
}

impl Explained {
    /// Whether nothing that binds is known to be lost or altered.
    pub(crate) fn is_whole(&self) -> bool {
        self.constraints.intact != Some(false)
    }

    pub(crate) fn text(&self) -> String {
        let mut text =
            format!("1. Where is it, and who owns it?\n{}\n", indented(&self.where_text()));
        text += &format!("2. What happened?\n{}\n", indented(&happened::text(&self.happened)));
        let received = match &self.received {
            Some(received) => received.text(),
            None if self.r#where.handoff_id.is_none() => "Nothing yet.\n".to_owned(),
            None => "What it got was erased, or is not yours to see.\n".to_owned(),
        };
        text += &format!("3. What did the receiver get, and what not?\n{}\n", indented(&received));
        let bound = self.constraints.text();
        text += &format!("4. Are all constraints intact?\n{}\n", indented(&bound));
        text + &format!("5. What to do next?\n{}", indented(&next::text(&self.next)))
    }

    fn where_text(&self) -> String {
        let it = &self.r#where;
        let below = it
            .below
            .iter()
            .map(|one| format!("{}: {}, owned by {}", one.task_id, one.state, one.owner));
        let below: Vec<_> = below.collect();
        let facts = Facts::default()
            .with("task", format!("{} ({})", it.task_id, it.task_state))
            .with("owner", &it.owner)
            .maybe("handoff", it.handoff_id)
            .maybe("state", it.state.as_ref())
            .maybe("to", it.to.as_ref())
            .maybe("hop", it.hop)
            .maybe("below", (!below.is_empty()).then(|| below.join("\n")));
        format!("{}\n{}", printable(&it.says), facts.text())
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("   {line}\n").trim_end().to_owned() + "\n").collect()
}
