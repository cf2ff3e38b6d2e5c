// SPDX-License-Identifier: Apache-2.0
//! What is relayed: a conversation in five stages, the constraints it is under, and the facts that
//! the last agent needs.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use tasuki_core::assembly::sentences;

/// How many agents a conversation is divided among.
pub(super) const STAGES: usize = 5;
/// How short a fact may be, in characters; shorter ones are found anywhere.
const FACT_CHARS_MIN: usize = 3;

#[derive(Debug, Clone)]
pub(super) struct Scenario {
    /// The user's first words.
    pub(super) intent: String,
    /// Everything that the first agent was told, the constraints among it.
    pub(super) policy: String,
    pub(super) constraints: Vec<Constraint>,
    pub(super) stages: Vec<Vec<Message>>,
    /// Values that occur before the last stage and that the work needs.
    pub(super) facts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constraint {
    pub(super) text: String,
    pub(super) prohibition: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    /// `user`, `assistant`, `tool` or an agent's name.
    pub(super) who: String,
    pub(super) text: String,
}

impl Constraint {
    pub(super) fn new(text: &str) -> Self {
        let prohibition = has_any(text, &["not", "cannot", "never"]);
        Self { text: text.to_owned(), prohibition }
    }
}

/// Which tasks of a data set are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Split {
    /// The test split: nothing was ever set by looking at it
    Odd,
    /// The split that weights may be set on
    Even,
    All,
}

/// Reads conversations in the form of tau-bench's airline data: `policy.md` and
/// `trajectories.json`.
pub(super) fn airline(directory: &Path) -> anyhow::Result<Vec<(u64, Scenario)>> {
    let read = |name: &str| {
        let path = directory.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let policy = read("policy.md")?;
    let trajectories: Vec<Trajectory> = serde_json::from_str(&read("trajectories.json")?)
        .context("cannot read trajectories.json")?;
    let constraints = constraints_of(&policy);
    let scenarios = trajectories.into_iter().filter_map(|trajectory| {
        let number = trajectory.task_id;
        Some((number, trajectory.into_scenario(&policy, &constraints)?))
    });
    Ok(scenarios.collect())
}

/// The sentences of a policy that bind: those with a hard modal.
pub(super) fn constraints_of(policy: &str) -> Vec<Constraint> {
    let modals = ["must", "should", "cannot", "never", "only"];
    let phrases = ["do not", "at most", "will not", "but not"];
    let mut found: Vec<Constraint> = Vec::new();
    for line in policy.lines().filter(|line| !line.starts_with('#')) {
        let line = line.trim_start().trim_start_matches("- ");
        for sentence in sentences(line) {
            let lower = sentence.to_lowercase();
            if has_any(sentence, &modals) || phrases.iter().any(|phrase| lower.contains(phrase)) {
                found.push(Constraint::new(sentence));
            }
        }
    }
    found
}

fn has_any(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).any(|word| words.contains(&word))
}

#[derive(Deserialize)]
struct Trajectory {
    task_id: u64,
    info: Info,
    traj: Vec<Turn>,
}

#[derive(Deserialize)]
struct Info {
    task: Task,
}

#[derive(Deserialize)]
struct Task {
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Action {
    kwargs: Value,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ToolCall {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

impl Trajectory {
    /// The conversation in equal stages; none if it is too short for that.
    fn into_scenario(self, policy: &str, constraints: &[Constraint]) -> Option<Scenario> {
        let turns = self.traj.into_iter().filter(|turn| turn.role != "system");
        let messages: Vec<Message> = turns.map(Turn::into_message).collect();
        if messages.len() < STAGES {
            return None;
        }
        let intent = messages.iter().find(|message| message.who == "user")?.text.clone();
        let cut = |stage: usize| messages.len() * stage / STAGES;
        let stages: Vec<Vec<Message>> =
            (0..STAGES).map(|stage| messages[cut(stage)..cut(stage + 1)].to_vec()).collect();
        let mut values = Vec::new();
        self.info.task.actions.iter().for_each(|action| values_of(&action.kwargs, &mut values));
        values.sort_unstable();
        values.dedup();
        let early: String = stages[..STAGES - 1]
            .iter()
            .flatten()
            .map(|message| format!("{}\n", message.text))
            .collect();
        values.retain(|value| value.chars().count() >= FACT_CHARS_MIN && early.contains(value));
        Some(Scenario {
            intent,
            policy: policy.to_owned(),
            constraints: constraints.to_vec(),
            stages,
            facts: values,
        })
    }
}

impl Turn {
    fn into_message(self) -> Message {
        let calls = self.tool_calls.into_iter().flatten();
        let calls =
            calls.map(|call| format!("{}({})", call.function.name, call.function.arguments));
        let text: Vec<String> = self.content.into_iter().chain(calls).collect();
        Message { who: self.role, text: text.join("\n") }
    }
}

/// All plain values in a piece of JSON, as text.
fn values_of(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| values_of(value, found)),
        Value::Object(members) => members.values().for_each(|value| values_of(value, found)),
        Value::Null | Value::Bool(_) => {}
    }
}
