// SPDX-License-Identifier: Apache-2.0
//! `tasuki task`: pieces of work from the user's intent to their end.

mod tree;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::Value;
use tasuki_core::budget::{Cost, Spent};
use tasuki_core::canonical::Object;
use tasuki_core::ids::{CorrelationId, IdempotencyKey, Project};
use tasuki_core::tree::OnParentEnd;
use tasuki_core::{AgentId, Capability, HandoffId, Hash, Target, TaskId, TaskState};
use tasuki_protocol as wire;

use super::{audit, chain, envelope, handoff};
use crate::args::{AGENT, json, millis, words};
use crate::client::{Client, Connect};
use crate::exit::Exit;
use crate::output::{Facts, Output, print, print_dressed, table};

#[derive(Args)]
pub(crate) struct Task {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Open a task without handing it to anybody yet
    Open(Open),
    /// Show a task, its owner, its handoffs and the tasks below it
    Show(Show),
    /// Show a task with everything below it as a tree: who did what, how long it took, what it cost
    Tree(Named),
    /// List tasks, newest first
    List(List),
    /// Cancel a task and the handoff under way
    Cancel(Cancel),
    /// End a task that is one's own with a result, while nobody else works on it
    Complete(Complete),
    /// Lift a constraint of a task, from its next envelope on, whoever holds the task
    Lift(Lift),
    /// Show everything that happened to a task
    Events(Named),
    /// Say which hop lost a fact: a text that some envelope of the task has
    Bisect(Bisect),
    /// Write a task and those below it as one file that can be verified anywhere
    Export(Export),
    /// Begin anew from a hop, as a task of its own
    Branch(Branch),
    /// Wait until tasks are at their end
    Wait(Wait),
    /// Collect what the tasks below one have come to
    Join(Join),
    /// Say that a task may go on although something that it is built on no longer holds
    ClearTaint(ClearTaint),
}

#[derive(Args)]
struct Export {
    /// The task's id
    task: TaskId,
    /// Where to write to; stdout without it
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Args)]
struct Branch {
    /// The task's id
    task: TaskId,
    /// The hop whose content the new task begins with
    #[arg(long, value_name = "N")]
    hop: u32,
    /// Who begins it, and owns it until somebody claims it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Another agent than the hop was for
    #[arg(long, value_name = "AGENT", conflicts_with = "to_capability")]
    to: Option<AgentId>,
    /// Any agent that can do this, instead of the one that the hop was for
    #[arg(long, value_name = "CAPABILITY")]
    to_capability: Option<Capability>,
    /// The idempotency key: the same key and wish give the first answer again
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,
}

#[derive(Args)]
struct Complete {
    /// The task's id
    task: TaskId,
    /// Its owner
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// The result: a JSON object with a `type`, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    payload: String,
    /// Let tasks below it go on by themselves, instead of refusing while one is open
    #[arg(long)]
    let_go: bool,
}

#[derive(Args)]
struct Named {
    /// The task's id
    task: TaskId,
}

#[derive(Args)]
struct Show {
    /// The task's id
    task: TaskId,
    /// Show what each hop kept: links, constraints, facts
    #[arg(long)]
    chain: bool,
}

#[derive(Args)]
struct Bisect {
    /// The task's id
    task: TaskId,
    /// The text to look for
    #[arg(long, value_name = "TEXT")]
    fact: String,
}

#[derive(Args)]
struct Open {
    /// Who opens the task and owns it until somebody claims it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    from: AgentId,
    /// Print the task's id and nothing else
    #[arg(long, short)]
    quiet: bool,
    /// The user's own words; below another task they are that one's
    #[arg(long, value_name = "TEXT", required_unless_present = "parent")]
    intent: Option<String>,
    /// The task this one is part of
    #[arg(long, value_name = "TASK")]
    parent: Option<TaskId>,
    /// What becomes of it when that one ends without a result: cancel (the default) or let_go
    #[arg(long, value_name = "POLICY", requires = "parent")]
    on_parent_end: Option<OnParentEnd>,
    /// Links everything that belongs to one request of the outside world
    #[arg(long, value_name = "ID")]
    correlation_id: Option<CorrelationId>,
    /// Who decides about it when things go wrong, and is told of every failure
    #[arg(long, value_name = "AGENT")]
    coordinator: Option<AgentId>,
    /// The project it belongs to; without it, its parent's
    #[arg(long, value_name = "PROJECT")]
    project: Option<Project>,
    /// The idempotency key: the same key and task give the first answer again
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,
}

#[derive(Args)]
struct List {
    /// Only tasks in this state
    #[arg(long, value_parser = states())]
    state: Option<String>,
    /// Only tasks that this agent owns
    #[arg(long, value_name = "AGENT")]
    owner: Option<AgentId>,
    /// Only tasks below this one
    #[arg(long, value_name = "TASK")]
    parent: Option<TaskId>,
    /// Only tasks of this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<Project>,
    /// Only tasks with this name of their sender's
    #[arg(long, value_name = "ID")]
    correlation_id: Option<CorrelationId>,
    /// Only tasks before this one: where the page before ended
    #[arg(long, value_name = "TASK")]
    before: Option<TaskId>,
    /// How many at most, up to 1000
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

fn states() -> PossibleValuesParser {
    TaskState::ALL.iter().map(|state| state.as_str()).into()
}

#[derive(Args)]
struct Cancel {
    /// The task's id
    task: TaskId,
    /// Who decides
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Args)]
struct Lift {
    /// The task's id
    task: TaskId,
    /// The constraint's id, as `envelope show` prints it
    constraint: Hash,
    /// Who lifts it: who issued it, or the coordinator of the task
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Args)]
struct Wait {
    /// The tasks' ids
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<TaskId>,
    /// How far they must have come
    #[arg(
        long,
        value_parser = words::<wire::Until>(&["claimed", "settled"]),
        default_value = "settled"
    )]
    until: wire::Until,
    /// One of them is enough
    #[arg(long)]
    any: bool,
    /// How long to wait at most
    #[arg(long, value_name = "SPAN", value_parser = millis, default_value = "10m")]
    timeout: u64,
}

#[derive(Args)]
struct Join {
    /// The task's id
    task: TaskId,
    /// One result is enough
    #[arg(long, conflicts_with = "quorum")]
    any: bool,
    /// So many results are enough; all are needed without it
    #[arg(long, value_name = "N")]
    quorum: Option<u64>,
    /// How long to wait for them, at most 60s
    #[arg(long, value_name = "SPAN", value_parser = millis, default_value = "0s")]
    wait: u64,
}

#[derive(Args)]
struct ClearTaint {
    /// The task's id
    task: TaskId,
    /// The task's coordinator
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// The handoff that failed, or whose result was taken back
    #[arg(long, value_name = "HANDOFF")]
    source: HandoffId,
    /// Why it may go on
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// What came of it, as it is read; results are shown by `handoff show`.
#[derive(serde::Deserialize)]
struct Gathered {
    satisfied: bool,
    need: u64,
    receivers: u64,
    completed: u64,
    failed: u64,
    open: u64,
    members: Vec<serde_json::Value>,
}

impl Join {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let need = match (self.any, self.quorum) {
            (true, _) => wire::Need::Any,
            (false, Some(number)) => wire::Need::Quorum(number),
            (false, None) => wire::Need::All,
        };
        let body = wire::Gather { need, wait_ms: self.wait, ..wire::Gather::default() };
        let path = format!("/v1/tasks/{}/join", self.task);
        let reply = client.post_waiting(&path, &body, self.wait).await?;
        let joined: Gathered = serde_json::from_str(&reply)?;
        let satisfied = joined.satisfied;
        output.reply(&reply, |joined: Gathered| {
            let facts = Facts::default()
                .with("enough", if joined.satisfied { "yes" } else { "no" })
                .with("needed", joined.need)
                .with("receivers", joined.receivers)
                .with("completed", joined.completed)
                .with("failed", joined.failed)
                .with("open", joined.open);
            let rows = joined.members.iter().map(|it| {
                let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
                let to = it["to"].as_object().and_then(|to| to.values().next());
                let to = to.and_then(|to| to.as_str()).unwrap_or_default();
                [to.to_owned(), text("state"), text("handoff_id")]
            });
            format!("{}{}", facts.text(), table(["receiver", "state", "handoff"], rows))
        })?;
        Ok(if satisfied { Exit::Done } else { Exit::Nothing })
    }
}

impl ClearTaint {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::ClearTaint { by: self.by, source: self.source, reason: self.reason };
        let path = format!("/v1/tasks/{}/clear-taint", self.task);
        let reply = client.post(&path, &body).await?;
        output.reply(&reply, |task: wire::Task| details(&task).text())?;
        Ok(Exit::Done)
    }
}

impl Task {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        match self.verb {
            Verb::Open(open) => open.run(client, output).await,
            Verb::Show(wish) if wish.chain => envelope::show_chain(client, output, wish.task).await,
            Verb::Show(wish) => show(client, output, wish.task).await,
            Verb::Tree(named) => tree::show(client, output, named.task).await,
            Verb::List(list) => list.run(client, output).await,
            Verb::Cancel(cancel) => cancel.run(client, output).await,
            Verb::Complete(complete) => complete.run(client, output).await,
            Verb::Lift(lift) => lift.run(client, output).await,
            Verb::Bisect(wish) => envelope::bisect(client, output, wish.task, &wish.fact).await,
            Verb::Events(named) => events(client, output, named.task).await,
            Verb::Export(wish) => {
                chain::export(client, output, wish.task, wish.to.as_deref()).await
            }
            Verb::Branch(branch) => branch.run(client, output).await,
            Verb::Wait(wait) => wait.run(client, output).await,
            Verb::Join(join) => join.run(client, output).await,
            Verb::ClearTaint(clear) => clear.run(client, output).await,
        }
    }
}

impl Branch {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let to = self.to.map(Target::Agent).or(self.to_capability.map(Target::Capability));
        let body =
            wire::Branch { by: self.by, hop: self.hop, to, idempotency_key: self.idempotency_key };
        let reply = client.post(&format!("/v1/tasks/{}/branch", self.task), &body).await?;
        output.reply(&reply, |offered: wire::Offered| {
            Facts::default()
                .with("task", offered.task_id)
                .with("handoff", offered.handoff_id)
                .with("begins from", format!("hop {} of {}", self.hop, self.task))
                .with("next", client.command(&format!("task show {}", offered.task_id)))
                .text()
        })?;
        Ok(Exit::Done)
    }
}

impl Open {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::OpenTask {
            from_agent: self.from,
            intent: self.intent,
            on_parent_end: self.on_parent_end,
            correlation_id: self.correlation_id,
            parent_task_id: self.parent,
            coordinator: self.coordinator.map(wire::Coordinator::Agent),
            project: self.project,
            idempotency_key: self.idempotency_key,
        };
        let reply = client.post("/v1/tasks", &body).await?;
        output.reply(&reply, |task: wire::Task| {
            if self.quiet {
                return task.task_id.to_string();
            }
            let offer = format!(
                r#"handoff offer --from {} --task {} --to AGENT --payload '{{"type":"…"}}'"#,
                task.owner, task.task_id
            );
            details(&task).with("next", client.command(&offer)).text()
        })?;
        Ok(Exit::Done)
    }
}

async fn show(client: &Client, output: Output, task: TaskId) -> anyhow::Result<Exit> {
    let reply = client.get(&format!("/v1/tasks/{task}"), &[]).await?;
    if output.json {
        print(&reply)?;
        return Ok(Exit::Done);
    }
    let shown: wire::TaskWithParts = serde_json::from_str(&reply)?;
    let intent = intent(client, &shown).await?;
    let mut text = details(&shown.task).with("intent", intent).text();
    if !shown.handoffs.is_empty() {
        text += &format!("\n{}", handoff::listed(&shown.handoffs));
    }
    if !shown.children.is_empty() {
        text += &format!("\n{}", listed(&shown.children));
    }
    print_dressed(&text)?;
    Ok(Exit::Done)
}

/// The user's own words: every envelope of a task carries them, and so does its first event.
async fn intent(client: &Client, shown: &wire::TaskWithParts) -> anyhow::Result<String> {
    let carrier = match shown.handoffs.first() {
        Some(handoff) => {
            let path = format!("/v1/handoffs/{}/envelope", handoff.handoff_id);
            serde_json::from_str(&client.get(&path, &[]).await?)?
        }
        None => {
            let path = format!("/v1/tasks/{}/events", shown.task.task_id);
            let chain: Value = serde_json::from_str(&client.get(&path, &[]).await?)?;
            chain["events"][0]["body"].clone()
        }
    };
    Ok(carrier["intent"].as_str().unwrap_or_default().to_owned())
}

impl List {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let query = [
            ("state", self.state),
            ("owner", self.owner.map(|agent| agent.to_string())),
            ("parent", self.parent.map(|task| task.to_string())),
            ("project", self.project.map(|project| project.to_string())),
            ("correlation_id", self.correlation_id.map(|id| id.to_string())),
            ("before", self.before.map(|task| task.to_string())),
            ("limit", Some(self.limit.to_string())),
        ];
        let reply = client.get("/v1/tasks", &query).await?;
        output.reply(&reply, |page: wire::Tasks| match page.next {
            _ if page.tasks.is_empty() => "no tasks".to_owned(),
            Some(next) => format!("{}more with --before {next}\n", listed(&page.tasks)),
            None => listed(&page.tasks),
        })?;
        Ok(Exit::Done)
    }
}

impl Cancel {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::Decide { by: self.by, reason: self.reason };
        let reply = client.post(&format!("/v1/tasks/{}/cancel", self.task), &body).await?;
        output.reply(&reply, |task: wire::Task| details(&task).text())?;
        Ok(Exit::Done)
    }
}

impl Complete {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let below = if self.let_go { wire::Below::LetGo } else { wire::Below::Refuse };
        let payload = json("--payload", &self.payload)?;
        let body = wire::CompleteTask { by: self.by, payload, metadata: Object::default(), below };
        let reply = client.post(&format!("/v1/tasks/{}/complete", self.task), &body).await?;
        output.reply(&reply, |task: wire::Task| details(&task).text())?;
        Ok(Exit::Done)
    }
}

impl Lift {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body =
            wire::LiftConstraint { by: self.by, constraint: self.constraint, reason: self.reason };
        let reply = client.post(&format!("/v1/tasks/{}/lift", self.task), &body).await?;
        output.reply(&reply, |task: wire::Task| details(&task).text())?;
        Ok(Exit::Done)
    }
}

async fn events(client: &Client, output: Output, task: TaskId) -> anyhow::Result<Exit> {
    let reply = client.get(&format!("/v1/tasks/{task}/events"), &[]).await?;
    output.reply(&reply, |chain: Value| {
        let none = Vec::new();
        let events = chain["events"].as_array().unwrap_or(&none);
        let rows = events.iter().map(audit::event_row);
        table(["position", "time", "event", "by", "handoff"], rows)
    })?;
    Ok(Exit::Done)
}

impl Wait {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let wish = wire::Wait {
            handoffs: Vec::new(),
            tasks: self.tasks,
            mode: if self.any { wire::Mode::Any } else { wire::Mode::All },
            until: self.until,
            timeout_ms: self.timeout,
        };
        handoff::wait(client, output, wish).await
    }
}

pub(super) fn details(task: &wire::Task) -> Facts {
    Facts::default()
        .with("task", task.task_id)
        .with("state", &task.state)
        .with("owner", &task.owner)
        .with("opened by", &task.opened_by)
        .maybe("part of", task.parent_task_id)
        .maybe("correlation", task.correlation_id.as_ref())
        .maybe("project", task.project.as_ref())
        .with("opened", task.opened_at)
        .maybe("ended", task.ended_at)
        .maybe("live handoff", task.live_handoff)
        .maybe("spent", task.spent.as_ref().map(spent))
        .with("events", task.events)
}

/// What it and everything below it used, as far as anybody said.
pub(super) fn spent(spent: &Spent) -> String {
    if spent.cost == Cost::default() {
        return format!("{} tokens", spent.tokens);
    }
    format!("{} tokens, cost {}", spent.tokens, spent.cost)
}

fn listed(tasks: &[wire::Task]) -> String {
    let rows = tasks.iter().map(|task| {
        [
            task.task_id.to_string(),
            task.state.clone(),
            task.owner.to_string(),
            task.opened_by.to_string(),
            task.opened_at.to_string(),
        ]
    });
    table(["task", "state", "owner", "opened by", "opened"], rows)
}
