// SPDX-License-Identifier: Apache-2.0
//! Every tool there is. A tool is a few operations of the table under one name that a model can choose
//! by: it takes some of their members, shows some of what they answer, and adds nothing of its own.

mod dead_letters;
mod knowing;
mod sending;
mod working;

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool as Listed};
use rmcp::model::{Resource, ToolAnnotations};
use serde_json::{Map, Value};
use tasuki_protocol::Problem;

use crate::call::{Arguments, Call};
use crate::schema::Shape;

pub(crate) use knowing::story;
pub(crate) use sending::seen;
pub(crate) use working::{claimed, name_claim, nothing_claimed};

/// More tools than this confuse models.
pub(crate) const TOOLS_MAX: usize = 20;

/// What a client is told of a tool.
pub(crate) struct Facts {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) says: &'static str,
    pub(crate) effect: Effect,
    /// Whether the same call again does nothing more.
    pub(crate) repeats: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    /// It adds something and takes nothing away.
    Adds,
    /// It ends something, or decides what cannot be undone.
    Ends,
}

#[async_trait]
pub(crate) trait Tool: Send + Sync {
    fn facts(&self) -> Facts;
    fn asks(&self) -> Shape;
    fn answers(&self) -> Shape;
    async fn run(&self, call: &Call, arguments: Arguments) -> Result<Said, Problem>;
}

/// What a tool answers.
pub(crate) struct Said {
    /// For programs.
    pub(crate) value: Value,
    /// For models, where that is not the same.
    pub(crate) text: Option<String>,
    /// What there is to read besides.
    pub(crate) links: Vec<Resource>,
}

impl From<Value> for Said {
    fn from(value: Value) -> Self {
        Self { value, text: None, links: Vec::new() }
    }
}

static TOOLS: [&dyn Tool; TOOLS_MAX] = [
    &sending::Send,
    &sending::CallAgent,
    &sending::Status,
    &sending::Cancel,
    &sending::Answer,
    &working::Claim,
    &working::Progress,
    &working::Ask,
    &working::Complete,
    &working::HandOn,
    &working::Fail,
    &working::Decline,
    &working::Release,
    &knowing::ReadMemory,
    &knowing::Remember,
    &knowing::ProjectContext,
    &knowing::FindAgents,
    &knowing::Explain,
    &dead_letters::Read,
    &dead_letters::Decide,
];

/// The tool of this name.
pub(crate) fn named(name: &str) -> Option<&'static dyn Tool> {
    TOOLS.iter().copied().find(|tool| tool.facts().name == name)
}

/// All tools as they are listed: made once, since schemas do not change.
pub(crate) fn listed() -> &'static [Listed] {
    static LISTED: LazyLock<Vec<Listed>> =
        LazyLock::new(|| TOOLS.iter().map(|tool| shown(*tool)).collect());
    &LISTED
}

fn shown(tool: &dyn Tool) -> Listed {
    let facts = tool.facts();
    let hints = ToolAnnotations::from_raw(
        Some(facts.title.into()),
        Some(facts.effect == Effect::Reads),
        Some(facts.effect == Effect::Ends),
        Some(facts.effect == Effect::Reads || facts.repeats),
        Some(false),
    );
    Listed::new(facts.name, facts.says, Arc::new(tool.asks().schema(true)))
        .with_title(facts.title)
        .with_raw_output_schema(Arc::new(tool.answers().schema(false)))
        .with_annotations(hints)
}

/// Calls a tool. Members that it does not know are refused, as everywhere.
pub(crate) async fn run(
    tool: &dyn Tool,
    call: &Call,
    arguments: Arguments,
) -> Result<Said, Problem> {
    let shape = tool.asks();
    let known: Vec<&str> = shape.names().collect();
    if let Some(name) = arguments.keys().find(|name| !known.contains(&name.as_str())) {
        let takes = known.join(", ");
        return Err(Problem::invalid(name, format!("is not known; this tool takes {takes}")));
    }
    tool.run(call, arguments).await
}

/// The name under which a result has its error for programs.
const PROBLEM: &str = "tasuki/problem";

/// How a call ends, for the client. What went wrong is text that a model can act on: clients show
/// models nothing else of an error.
pub(crate) fn result(said: Result<Said, Problem>) -> CallToolResult {
    match said {
        Ok(Said { value, text, links }) => {
            let mut result = CallToolResult::structured(value);
            if let Some(text) = text {
                result.content = vec![ContentBlock::text(text)];
            }
            result.content.extend(links.into_iter().map(ContentBlock::ResourceLink));
            result
        }
        Err(problem) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(told(&problem))]);
            let mut meta = JsonObject::new();
            meta.insert(PROBLEM.into(), serde_json::to_value(&problem).unwrap_or_default());
            result.meta = Some(MetaObject(meta));
            result
        }
    }
}

/// An error in words.
pub(crate) fn told(problem: &Problem) -> String {
    let Problem { code, message, hint, retryable, details, .. } = problem;
    let again = match retryable {
        true => "The same call may succeed later.",
        false => "The same call will fail again.",
    };
    let mut text = format!("{code}: {message}\nWhat to do: {hint}\n{again}");
    if !details.0.is_empty() {
        let details = Value::Object(details.0.clone().into_iter().collect());
        text += &format!("\nDetails: {details}");
    }
    text
}

/// Some members of an answer.
pub(crate) fn some_of(value: &Value, names: &[&str]) -> Map<String, Value> {
    let found = names.iter().filter_map(|name| {
        let member = value.get(*name)?;
        Some(((*name).to_owned(), member.clone()))
    });
    found.collect()
}

/// Takes the id of a handoff, or of something else, out of the arguments.
pub(crate) fn taken(arguments: &mut Arguments, name: &str) -> Result<String, Problem> {
    let given = taken_if(arguments, name)?;
    given.ok_or_else(|| Problem::invalid(name, "is missing"))
}

pub(crate) fn taken_if(arguments: &mut Arguments, name: &str) -> Result<Option<String>, Problem> {
    match arguments.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(Problem::invalid(name, format!("expected a text, and not {other}"))),
    }
}

pub(crate) fn taken_ms(arguments: &mut Arguments, name: &str) -> Result<u64, Problem> {
    match arguments.remove(name) {
        None | Some(Value::Null) => Ok(0),
        Some(given) => given
            .as_u64()
            .ok_or_else(|| Problem::invalid(name, "expected a whole number of milliseconds")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_at_most_twenty_tools_and_each_says_all_that_a_client_asks_for() {
        let tools = listed();
        assert!(tools.len() <= TOOLS_MAX);
        let mut names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), tools.len(), "each has a name of its own");
        for tool in tools {
            assert!(tool.title.as_ref().is_some_and(|title| !title.is_empty()), "{}", tool.name);
            assert!(tool.description.as_ref().is_some_and(|says| says.len() > 40), "{}", tool.name);
            let hints = tool.annotations.as_ref().unwrap();
            assert!(hints.read_only_hint.is_some() && hints.destructive_hint.is_some());
            assert!(hints.idempotent_hint.is_some() && hints.open_world_hint == Some(false));
            for schema in [&tool.input_schema, tool.output_schema.as_ref().unwrap()] {
                let schema = Value::Object(schema.as_ref().clone());
                assert!(jsonschema::meta::is_valid(&schema), "{}: {schema}", tool.name);
            }
        }
    }

    #[test]
    fn every_member_of_every_tool_says_what_it_is() {
        for tool in listed() {
            for (name, member) in tool.input_schema["properties"].as_object().unwrap() {
                let says = member["description"].as_str().unwrap_or_default();
                assert!(!says.is_empty(), "{}: {name}: {member}", tool.name);
            }
        }
    }

    #[test]
    fn the_list_of_tools_leaves_a_model_room_for_its_work() {
        let shown = |tool: &Listed| {
            let asked = Value::Object(tool.input_schema.as_ref().clone()).to_string();
            asked.len() + tool.description.as_ref().map_or(0, |says| says.len())
        };
        let bytes: usize = listed().iter().map(shown).sum();
        assert!(bytes < 60_000, "{bytes} bytes");
    }
}
