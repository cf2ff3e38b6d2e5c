// SPDX-License-Identifier: Apache-2.0

use clap::Args;
use tasuki_core::assembly::Strategy;
use tasuki_core::envelope::Said;
use tasuki_core::ids::Project;
use tasuki_core::{AgentId, TaskId};
use tasuki_protocol as wire;

use crate::args::{AGENT, json, words};
use crate::client::Client;
use crate::exit::Exit;
use crate::output::{Facts, Output};

const STRATEGIES: &[&str] = &["full", "lazy", "summary_refs", "priority"];

#[derive(Args)]
pub(super) struct Assemble {
    /// Who will hand the work on
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    from: AgentId,
    /// Who is to read it: its manifest says how much it can read, in which tokens and role
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentId>,
    /// The task that is handed on
    #[arg(long, value_name = "TASK")]
    task: Option<TaskId>,
    /// The user's own words, where there is no task yet
    #[arg(long, value_name = "TEXT")]
    intent: Option<String>,
    /// What the receiver must do
    #[arg(long, value_name = "TEXT")]
    ask: Option<String>,
    /// Where to look for memories, besides those of the sender and of the task
    #[arg(long, value_name = "PROJECT")]
    project: Option<Project>,
    /// How many of the memories that changed last are considered
    #[arg(long, value_name = "N", default_value_t = 20)]
    recent: usize,
    /// Leave pinned memories out
    #[arg(long)]
    no_pins: bool,
    /// How memories are chosen
    #[arg(long, value_parser = words::<Strategy>(STRATEGIES), default_value = "priority")]
    strategy: Strategy,
    /// How many tokens it may be; the receiver's window without it
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// The receiver's tokenizer or model, such as o200k_base
    #[arg(long, value_name = "NAME")]
    tokenizer: Option<String>,
    /// The receiver's role, such as reviewer
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Other parts of the envelope: a JSON object, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    parts: Option<String>,
    /// Print what a model reads and nothing else
    #[arg(long)]
    prompt: bool,
}

impl Assemble {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let parts = self.parts.map(|text| json("--parts", &text)).transpose()?;
        let mut said: Said = parts.unwrap_or_default();
        said.ask = self.ask.or(said.ask);
        let body = wire::Assemble {
            from_agent: self.from,
            to_agent: self.to,
            task_id: self.task,
            intent: self.intent,
            project: self.project,
            include_recent: self.recent,
            include_pins: !self.no_pins,
            strategy: self.strategy,
            max_tokens: self.max_tokens,
            payload: None,
            reserved_system_prompt: None,
            reserved_work: None,
            tokenizer: self.tokenizer,
            role: self.role,
            said,
            more: tasuki_core::canonical::Object::default(),
        };
        let reply = client.post("/v1/assemble", &body).await?;
        let only_prompt = self.prompt;
        output.reply(
            &reply,
            |put: wire::Assembled| {
                if only_prompt { put.prompt } else { for_people(&put) }
            },
        )?;
        Ok(Exit::Done)
    }
}

fn for_people(put: &wire::Assembled) -> String {
    let receipt = &put.receipt;
    let bound = if receipt.exact { "" } else { " at most" };
    let rungs = |rung: &dyn std::fmt::Debug| format!("{rung:?}").to_lowercase();
    let kept = receipt.kept.iter().map(|one| format!("{} ({})", one.id, rungs(&one.rung)));
    let demoted = receipt.demoted.iter().map(|one| format!("{} ({})", one.id, rungs(&one.rung)));
    let dropped = receipt.dropped.iter().map(|one| one.id.clone());
    let unresolved = receipt.unresolved.iter().map(|gap| format!("{} {}", gap.id, gap.reason));
    let list = |lines: Vec<String>| (!lines.is_empty()).then(|| lines.join("\n"));
    Facts::default()
        .with("tokens", format!("{}{bound}", receipt.token_count))
        .maybe("budget", receipt.budget)
        .with("for all of it", receipt.budget_for_everything)
        .with("complete", format!("{} of 1000", receipt.completeness_per_mille))
        .maybe("kept", list(kept.collect()))
        .maybe("shortened", list(demoted.collect()))
        .maybe("left out", list(dropped.collect()))
        .maybe("unresolved", list(unresolved.collect()))
        .with("next", "--prompt shows what a model reads, --json has what to send in an offer")
        .text()
}
