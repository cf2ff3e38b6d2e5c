// SPDX-License-Identifier: Apache-2.0
//! `tasuki context`: what all agents of a project share.

use clap::{Args, Subcommand};
use tasuki_core::AgentId;
use tasuki_core::ids::{DecisionKey, Project};
use tasuki_protocol as wire;

use crate::args::{AGENT, json};
use crate::client::{Client, Connect, Method, escaped};
use crate::exit::Exit;
use crate::output::{Facts, Output, table};

#[derive(Args)]
pub(crate) struct Context {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show where a project stands, what was decided, and which tasks are open
    Show(Show),
    /// Say where a project stands and what holds for all its work
    Write(Write),
    /// Add a decision to the log
    Decide(Decide),
}

#[derive(Args)]
struct Show {
    project: Project,
}

#[derive(Args)]
struct Write {
    project: Project,
    /// Who writes
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// Only if this is the last revision; 0 if there must be none
    #[arg(long, value_name = "N")]
    revision: Option<u32>,
    /// Where the project stands: a JSON object with branch, summary, files and recent_changes, in
    /// place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    state: Option<String>,
    /// What holds for all its work: a JSON array of objects with kind and text
    #[arg(long, value_name = "JSON")]
    constraints: Option<String>,
}

#[derive(Args)]
struct Decide {
    project: Project,
    /// Who decides
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// The question that is settled
    #[arg(long, value_name = "KEY")]
    question: DecisionKey,
    /// The answer
    #[arg(long, value_name = "TEXT")]
    decision: String,
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// The number of the decision that no longer holds
    #[arg(long, value_name = "N")]
    supersedes: Option<u32>,
}

impl Context {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        let reply = match self.verb {
            Verb::Show(show) => client.get(&at(&show.project, "context"), &[]).await?,
            Verb::Write(write) => write.send(client).await?,
            Verb::Decide(decide) => decide.send(client).await?,
        };
        output.reply(&reply, |context: wire::SharedContext| shown(&context))?;
        Ok(Exit::Done)
    }
}

fn at(project: &Project, rest: &str) -> String {
    format!("/v1/projects/{}/{rest}", escaped(project.as_str()))
}

impl Write {
    /// What was given goes to the broker as it is: what does not belong there, it refuses itself.
    async fn send(self, client: &Client) -> anyhow::Result<String> {
        let mut body = serde_json::json!({ "by": self.by });
        if let Some(revision) = self.revision {
            body["revision"] = revision.into();
        }
        if let Some(state) = &self.state {
            body["state"] = json("--state", state)?;
        }
        if let Some(constraints) = &self.constraints {
            body["constraints"] = json("--constraints", constraints)?;
        }
        client.send_body(Method::PUT, &at(&self.project, "context"), &body).await
    }
}

impl Decide {
    async fn send(self, client: &Client) -> anyhow::Result<String> {
        let body = wire::NewDecision {
            by: self.by,
            key: self.question,
            decision: self.decision,
            why: self.why,
            supersedes: self.supersedes,
        };
        client.post(&at(&self.project, "decisions"), &body).await
    }
}

fn shown(context: &wire::SharedContext) -> String {
    let state = &context.state;
    let lines = |lines: &[String]| (!lines.is_empty()).then(|| lines.join("\n"));
    let constraints: Vec<_> =
        context.constraints.iter().map(|it| format!("{}: {}", it.kind, it.text)).collect();
    let warnings = context.warnings.iter().map(|it| format!("{} looks like {}", it.path, it.kind));
    let facts = Facts::default()
        .with("project", &context.project)
        .with("revision", context.revision)
        .maybe("changed by", context.changed_by.as_ref())
        .maybe("branch", state.branch.as_ref())
        .maybe("summary", state.summary.as_ref())
        .maybe("files", lines(&state.files))
        .maybe("recent changes", lines(&state.recent_changes))
        .maybe("constraints", lines(&constraints))
        .maybe("warning", lines(&warnings.collect::<Vec<_>>()))
        .text();
    let mut all = vec![facts];
    if !context.decisions.is_empty() {
        let rows = context.decisions.iter().map(|it| {
            let holds = it.superseded_by.map_or("holds".to_owned(), |by| format!("until {by}"));
            let number = it.number.to_string();
            [number, it.key.to_string(), it.decision.clone(), it.by.to_string(), holds]
        });
        all.push(table(["decision", "question", "answer", "by", "state"], rows));
    }
    if !context.task_queue.is_empty() {
        let rows = context.task_queue.iter().map(|task| {
            let to = task.to.as_ref().map(super::handoff::target).unwrap_or_default();
            let status = task.status.clone().unwrap_or_default();
            [task.task_id.to_string(), task.owner.to_string(), to, status]
        });
        all.push(table(["open task", "owner", "to", "status"], rows));
    }
    all.join("\n")
}
