// SPDX-License-Identifier: Apache-2.0
//! `tasuki question`: what holders ask and wait for.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tasuki_core::talk::QuestionKind;
use tasuki_core::{AgentId, HandoffId, Hash, TaskId};
use tasuki_protocol as wire;

use super::handoff::moved;
use crate::args::{self, AGENT};
use crate::client::{Client, Connect};
use crate::exit::Exit;
use crate::output::{Output, span, table};

#[derive(Args)]
pub(crate) struct Question {
    #[command(flatten)]
    connect: Connect,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List questions that wait for an answer
    List(List),
    /// Answer the question that a handoff waits with
    Answer(Answer),
}

#[derive(Args)]
struct List {
    /// Only questions of this kind
    #[arg(long, value_parser = args::words::<QuestionKind>(&["input", "authorization"]))]
    kind: Option<QuestionKind>,
    /// Only those of this task
    #[arg(long, value_name = "TASK")]
    task: Option<TaskId>,
    /// Only those about work that this agent sent
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentId>,
    /// Only questions of handoffs before this one: where the page before ended
    #[arg(long, value_name = "HANDOFF")]
    before: Option<HandoffId>,
    /// How many at most, up to 1000
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Args)]
struct Answer {
    /// The handoff's id
    handoff: HandoffId,
    /// Who answers
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    by: AgentId,
    /// The answer, as a text
    #[arg(long, value_name = "TEXT", group = "how")]
    text: Option<String>,
    /// The answer as JSON, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON", group = "how")]
    answer: Option<String>,
    /// Give the leave that was asked for
    #[arg(long, group = "how")]
    grant: bool,
    /// Refuse the leave that was asked for
    #[arg(long, group = "how")]
    deny: bool,
    /// The address of the question that is answered; without it, the one that is open
    #[arg(long, value_name = "HASH")]
    question: Option<Hash>,
}

impl Question {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let client = &self.connect.client()?;
        match self.verb {
            Verb::List(list) => list.run(client, output).await,
            Verb::Answer(answer) => answer.run(client, output).await,
        }
    }
}

impl List {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let query = [
            ("kind", self.kind.map(|kind| kind.to_string())),
            ("task", self.task.map(|task| task.to_string())),
            ("from_agent", self.from.map(|from| from.to_string())),
            ("before", self.before.map(|before| before.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ];
        let reply = client.get("/v1/questions", &query).await?;
        output.reply(&reply, text)?;
        Ok(Exit::Done)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what was read is handed over")]
fn text(listed: wire::Questions) -> String {
    let rows = listed.questions.iter().map(|open| {
        [
            open.question.handoff_id.to_string(),
            open.question.asked_by.to_string(),
            open.question.kind.to_string(),
            span(open.answer_left_ms),
            open.question.text.clone().unwrap_or_default(),
        ]
    });
    let mut text = table(["handoff", "asked by", "kind", "time left", "question"], rows);
    if let Some(next) = listed.next {
        text.push_str(&format!("\nmore: tasuki question list --before {next}"));
    }
    text
}

impl Answer {
    async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let answer: Value = match (self.text, self.answer, self.grant, self.deny) {
            (Some(text), ..) => Value::String(text),
            (None, Some(text), ..) => args::json("--answer", &text)?,
            (None, None, true, _) => json!({ "granted": true }),
            (None, None, false, true) => json!({ "granted": false }),
            (None, None, false, false) => {
                anyhow::bail!("say the answer: --text, --answer, --grant or --deny")
            }
        };
        let body = wire::AnswerQuestion { by: self.by, answer, question: self.question };
        let path = format!("/v1/handoffs/{}/answer", self.handoff);
        output.reply(&client.post(&path, &body).await?, moved)?;
        Ok(Exit::Done)
    }
}
