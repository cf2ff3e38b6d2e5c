// SPDX-License-Identifier: Apache-2.0
//! `tasuki memory`: what agents keep and refer to.

use clap::{Args, Subcommand};
use tasuki_core::document::{Priority, Scope};
use tasuki_core::ids::{IdempotencyKey, Project};
use tasuki_core::{AgentId, DocumentId, HandoffId, TaskId};
use tasuki_protocol as wire;

use crate::args::{AGENT, text, words};
use crate::client::{Client, Connect, Method, escaped};
use crate::exit::Exit;
use crate::output::{Facts, Output, table};

const PRIORITIES: &[&str] = &["high", "normal", "low"];
const DETAILS: &[&str] = &["stub", "summary", "full"];

#[derive(Args)]
pub(crate) struct Memory {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Keep a memory
    Add(Box<Add>),
    /// Show a memory at its last revision, or at any other
    Show(Show),
    /// Make a new revision of a memory
    Edit(Box<Edit>),
    /// List memories, what changed last first
    List(List),
    /// Find memories by their words, the best answer first
    Search(Search),
    /// Pin a memory, so that it always travels
    Pin(By),
    /// Let a memory travel only where there is room for it
    Unpin(By),
    /// Say that another memory has taken the place of this one
    Supersede(Supersede),
    /// Delete a memory, which leaves a tombstone
    Delete(Delete),
    /// Remove the text of a memory for good
    Erase(Erase),
}

/// What a memory is about.
#[derive(Args)]
struct About {
    /// A project that it is about
    #[arg(long, value_name = "PROJECT", group = "about")]
    project: Option<Project>,
    /// A task that it is about
    #[arg(long, value_name = "TASK", group = "about")]
    task: Option<TaskId>,
    /// An agent that it is about
    #[arg(long, value_name = "AGENT", group = "about")]
    agent: Option<AgentId>,
}

impl About {
    fn scope(self) -> Option<Scope> {
        let project = self.project.map(Scope::Project);
        project.or(self.task.map(Scope::Task)).or(self.agent.map(Scope::Agent))
    }
}

#[derive(Args)]
struct Add {
    /// Who keeps it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// What it says, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "TEXT")]
    text: String,
    /// The name it is to have, such as ms-4821; the broker chooses one without it
    #[arg(long, value_name = "MEMORY")]
    id: Option<DocumentId>,
    #[command(flatten)]
    about: About,
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// A few sentences for whoever has no room for all of it
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// May be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Let it always travel
    #[arg(long)]
    pin: bool,
    #[arg(long, value_parser = words::<Priority>(PRIORITIES), default_value = "normal")]
    priority: Priority,
    /// The idempotency key: the same key and memory give the first answer again
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,
}

#[derive(Args)]
struct Show {
    /// The memory's id
    memory: DocumentId,
    /// A revision; the last one without it
    #[arg(long, value_name = "N")]
    revision: Option<u32>,
    /// How much of it
    #[arg(long, value_parser = words::<wire::Detail>(DETAILS), default_value = "full")]
    detail: wire::Detail,
    /// The handoff in whose envelope it was found: if that passed less of it, the fetch is counted
    #[arg(long, value_name = "HANDOFF")]
    handoff: Option<HandoffId>,
}

#[derive(Args)]
struct Edit {
    /// The memory's id
    memory: DocumentId,
    /// Who changes it
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Only if this is the last revision
    #[arg(long, value_name = "N")]
    revision: Option<u32>,
    /// What it says from now on, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// An empty title takes it away
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// An empty summary takes it away
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// All its tags from now on; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Option<Vec<String>>,
    #[command(flatten)]
    about: About,
    #[arg(long, value_parser = words::<Priority>(PRIORITIES))]
    priority: Option<Priority>,
}

/// Which memories.
#[derive(Args)]
struct Which {
    #[command(flatten)]
    about: About,
    /// Only memories with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only pinned ones
    #[arg(long)]
    pinned: bool,
    /// Also those that another memory has replaced
    #[arg(long)]
    superseded: bool,
    /// How many at most, up to 100
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

impl Which {
    fn query(self) -> Vec<(&'static str, Option<String>)> {
        let yes = |given: bool| given.then(|| "true".to_owned());
        vec![
            ("project", self.about.project.map(|project| project.to_string())),
            ("task", self.about.task.map(|task| task.to_string())),
            ("agent", self.about.agent.map(|agent| agent.to_string())),
            ("tag", self.tag),
            ("pinned", yes(self.pinned)),
            ("superseded", yes(self.superseded)),
            ("limit", Some(self.limit.to_string())),
        ]
    }
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    which: Which,
    /// Also tombstones
    #[arg(long)]
    deleted: bool,
    /// Where the page before ended
    #[arg(long, value_name = "POSITION")]
    before: Option<u64>,
}

#[derive(Args)]
struct Search {
    /// The words to be found
    #[arg(required = true)]
    words: Vec<String>,
    #[command(flatten)]
    which: Which,
}

#[derive(Args)]
struct By {
    /// The memory's id
    memory: DocumentId,
    /// Who decides
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
}

#[derive(Args)]
struct Supersede {
    /// The memory's id
    memory: DocumentId,
    /// The memory that takes its place
    #[arg(long, value_name = "MEMORY")]
    with: DocumentId,
    /// Who decides
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
}

#[derive(Args)]
struct Delete {
    /// The memory's id
    memory: DocumentId,
    /// Who decides
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Args)]
struct Erase {
    #[command(flatten)]
    delete: Delete,
    /// Only this revision; all of them without it
    #[arg(long, value_name = "N")]
    revision: Option<u32>,
}

impl Memory {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        let reply = match self.verb {
            Verb::Add(add) => add.send(client).await?,
            Verb::Edit(edit) => edit.send(client).await?,
            Verb::Pin(by) => {
                let path = at(&by.memory, "/pin");
                client.post(&path, &wire::Approve { by: by.by }).await?
            }
            Verb::Unpin(by) => {
                let path = at(&by.memory, "/unpin");
                client.post(&path, &wire::Approve { by: by.by }).await?
            }
            Verb::Supersede(Supersede { memory, with, by }) => {
                let body = wire::Supersede { by, successor: with };
                client.post(&at(&memory, "/supersede"), &body).await?
            }
            Verb::Delete(Delete { memory, by, reason }) => {
                let body = wire::Delete { by, reason };
                client.send_body(Method::DELETE, &at(&memory, ""), &body).await?
            }
            Verb::Erase(Erase { delete, revision }) => {
                let body = wire::EraseMemory { by: delete.by, revision, reason: delete.reason };
                client.post(&at(&delete.memory, "/erase"), &body).await?
            }
            Verb::Show(show) => {
                let detail = serde_json::to_value(show.detail)?;
                let query = [
                    ("revision", show.revision.map(|revision| revision.to_string())),
                    ("detail", detail.as_str().map(str::to_owned)),
                    ("handoff", show.handoff.map(|handoff| handoff.to_string())),
                ];
                client.get(&at(&show.memory, ""), &query).await?
            }
            Verb::List(list) => {
                let mut query = list.which.query();
                query.push(("deleted", list.deleted.then(|| "true".to_owned())));
                query.push(("before", list.before.map(|before| before.to_string())));
                return listing(client, &query, output).await;
            }
            Verb::Search(search) => {
                let mut query = search.which.query();
                query.push(("q", Some(search.words.join(" "))));
                return listing(client, &query, output).await;
            }
        };
        output.reply(&reply, |memory: wire::Memory| facts(&memory))?;
        Ok(Exit::Done)
    }
}

fn at(memory: &DocumentId, rest: &str) -> String {
    format!("/v1/memories/{}{rest}", escaped(memory.as_str()))
}

impl Add {
    async fn send(self, client: &Client) -> anyhow::Result<String> {
        let body = wire::NewMemory {
            by: self.by,
            id: self.id,
            scope: self.about.scope(),
            title: self.title,
            summary: self.summary,
            text: text("--text", &self.text)?,
            tags: self.tags.into_iter().collect(),
            pinned: self.pin,
            priority: self.priority,
            idempotency_key: self.idempotency_key,
        };
        client.post("/v1/memories", &body).await
    }
}

impl Edit {
    async fn send(self, client: &Client) -> anyhow::Result<String> {
        let body = wire::EditMemory {
            by: self.by,
            revision: self.revision,
            title: self.title,
            summary: self.summary,
            text: self.text.map(|given| text("--text", &given)).transpose()?,
            tags: self.tags.map(|tags| tags.into_iter().collect()),
            scope: self.about.scope(),
            priority: self.priority,
        };
        client.send_body(Method::PATCH, &at(&self.memory, ""), &body).await
    }
}

async fn listing(
    client: &Client,
    query: &[(&str, Option<String>)],
    output: Output,
) -> anyhow::Result<Exit> {
    let reply = client.get("/v1/memories", query).await?;
    output.reply(&reply, |page: wire::Memories| match page.next {
        _ if page.memories.is_empty() => "no memories".to_owned(),
        Some(next) => format!("{}more with --before {next}\n", listed(&page.memories)),
        None => listed(&page.memories),
    })?;
    Ok(Exit::Done)
}

fn listed(memories: &[wire::Memory]) -> String {
    let rows = memories.iter().map(|memory| {
        [
            memory.memory_id.to_string(),
            memory.latest.to_string(),
            about(&memory.scope),
            marks(memory),
            memory.line.clone().unwrap_or_default(),
        ]
    });
    table(["memory", "revision", "about", "marks", "what"], rows)
}

fn about(scope: &Scope) -> String {
    let (kind, name) = scope.parts();
    format!("{kind} {name}")
}

fn marks(memory: &wire::Memory) -> String {
    let priority = memory.priority.as_str();
    let marks = [
        memory.pinned.then_some("pinned"),
        (memory.priority != Priority::Normal).then_some(priority),
        memory.superseded_by.is_some().then_some("superseded"),
        memory.deleted.is_some().then_some("deleted"),
        memory.erased.then_some("erased"),
    ];
    marks.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn facts(memory: &wire::Memory) -> String {
    let marks = Some(marks(memory)).filter(|marks| !marks.is_empty());
    let tags: Vec<_> = memory.tags.iter().map(String::as_str).collect();
    let deleted = memory.deleted.as_ref();
    let warnings = memory.warnings.iter().map(|it| format!("{} looks like {}", it.path, it.kind));
    let warnings: Vec<_> = warnings.collect();
    Facts::default()
        .with("memory", &memory.memory_id)
        .with("revision", format!("{} of {}", memory.revision, memory.latest))
        .with("about", about(&memory.scope))
        .maybe("marks", marks)
        .maybe("title", memory.title.as_ref())
        .maybe("tags", (!tags.is_empty()).then(|| tags.join(", ")))
        .with("written", format!("{} by {}", memory.written_at, memory.written_by))
        .maybe("superseded by", memory.superseded_by.as_ref())
        .maybe("deleted", deleted.map(|gone| format!("{} by {}", gone.at, gone.by)))
        .maybe("because", deleted.and_then(|gone| gone.reason.as_ref()))
        .maybe("warning", (!warnings.is_empty()).then(|| warnings.join("\n")))
        .maybe("summary", memory.summary.as_ref())
        .maybe("text", memory.text.as_ref())
        .text()
}
