// SPDX-License-Identifier: Apache-2.0
//! Dead letters: what failed, and what is decided about it.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tasuki_engine::operations::dead_letters;
use tasuki_protocol::{self as wire, Problem};

use super::{Effect, Facts, Said, Tool, taken, taken_if};
use crate::call::{Arguments, Call};
use crate::schema::{Shape, flag, text};

pub(super) struct Read;

#[async_trait]
impl Tool for Read {
    fn facts(&self) -> Facts {
        Facts {
            name: "dead_letters",
            title: "Look at dead letters",
            says: "Look at work that failed for good and that somebody must decide on: one with everything \
                   that its attempts reported (`handoff_id`), all of them by what they died of \
                   (`groups`), or the list, newest first.",
            effect: Effect::Reads,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        Shape::new()
            .with("handoff_id", text("The dead letter to look at."))
            .with("groups", flag("By what they died of, the largest group first."))
            .some_of::<wire::ListDeadLetters>(&["all", "before", "limit"])
    }

    fn answers(&self) -> Shape {
        let many = |says: &str| json!({ "type": "array", "description": says, "items": { "type": "object" } });
        Shape::new()
            .with("dead_letters", many("The list."))
            .with("groups", many("By what they died of."))
            .with(
                "dead_letter",
                json!({
                    "type": "object",
                    "description": "The one that was asked for, with its envelope and its reports.",
                }),
            )
            .with("next", text("Give this as `before` to get the next page."))
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let groups = match arguments.remove("groups") {
            None | Some(Value::Null) => false,
            Some(given) => given
                .as_bool()
                .ok_or_else(|| Problem::invalid("groups", "expected true or false"))?,
        };
        if let Some(id) = taken_if(&mut arguments, "handoff_id")? {
            let shown = call.ask::<dead_letters::Show>(&[id], arguments).await?;
            return Ok(json!({ "dead_letter": shown }).into());
        }
        if groups {
            return Ok(call.ask::<dead_letters::Groups>(&[], arguments).await?.into());
        }
        let mut listed = call.ask::<dead_letters::List>(&[], arguments).await?;
        let mut said = json!({ "dead_letters": listed["handoffs"].take() });
        if let Some(next) = listed.get("next") {
            said["next"] = next.clone();
        }
        Ok(said.into())
    }
}

pub(super) struct Decide;

/// What may be decided, and what each takes besides.
const RULINGS: &[(&str, &[&str])] = &[
    ("retry", &["expires_in_ms"]),
    ("reroute", &["to", "expires_in_ms"]),
    (
        "amend",
        &[
            "to",
            "payload",
            "terms",
            "expires_in_ms",
            "ask",
            "summary",
            "add_constraints",
            "decisions",
        ],
    ),
    ("answer", &["decided", "expires_in_ms"]),
    ("discard", &["reason"]),
    ("take", &["for_ms"]),
];

#[async_trait]
impl Tool for Decide {
    fn facts(&self) -> Facts {
        Facts {
            name: "decide_dead_letter",
            title: "Decide on a dead letter",
            says: "Decide what becomes of work that failed for good: `retry` it as it was; `reroute` it \
                   (`to`); `amend` what is asked (`payload`, `ask`, `add_constraints`, ...); `answer` the \
                   question that it stopped at (`decided`); `discard` it (`reason`); or `take` it, so \
                   that nobody else decides meanwhile (`for_ms`). Look at it with `dead_letters` first.",
            effect: Effect::Ends,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        let names: Vec<_> = RULINGS.iter().map(|(name, _)| *name).collect();
        let amends = [
            "to",
            "payload",
            "terms",
            "expires_in_ms",
            "ask",
            "summary",
            "add_constraints",
            "decisions",
        ];
        Shape::new()
            .needs("handoff_id", text("The dead letter."))
            .needs("decision", json!({
                "type": "string",
                "enum": names,
                "description": "What becomes of it.",
            }))
            .some_of::<wire::Amend>(&amends)
            .some_of::<wire::TakeReview>(&["for_ms"])
            .optional(&["for_ms"])
            .with("decided", json!({
                "type": "object",
                "description": "What was decided: `decision`, and `why`, `key`, `resolves` if they help.",
                "properties": {
                    "decision": { "type": "string" },
                    "why": { "type": "string" },
                    "key": { "type": "string" },
                    "resolves": { "type": "string" },
                },
                "required": ["decision"],
            }))
            .with("reason", text("Why it is discarded; it stands in the log."))
    }

    fn answers(&self) -> Shape {
        let names = ["handoff_id", "task_id", "status"];
        Shape::new().some_of::<wire::Offered>(&names).optional(&names)
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let on = [taken(&mut arguments, "handoff_id")?];
        let decision = taken(&mut arguments, "decision")?;
        let found = RULINGS.iter().find(|(name, _)| *name == decision);
        let Some((_, takes)) = found else {
            let names: Vec<_> = RULINGS.iter().map(|(name, _)| *name).collect();
            let problem = format!("{decision:?} is none of {}", names.join(", "));
            return Err(Problem::invalid("decision", problem));
        };
        if let Some(name) = arguments.keys().find(|name| !takes.contains(&name.as_str())) {
            let problem =
                format!("does not belong to {decision}, which takes {}", takes.join(", "));
            return Err(Problem::invalid(name, problem));
        }
        arguments.insert("by".into(), json!(call.agent()?));
        let done = decided(call, &decision, &on, arguments).await?;
        Ok(done.into())
    }
}

async fn decided(
    call: &Call,
    decision: &str,
    on: &[String],
    mut asked: Map<String, Value>,
) -> Result<Value, Problem> {
    match decision {
        "retry" => call.ask::<dead_letters::Redrive>(on, asked).await,
        "reroute" => call.ask::<dead_letters::Reroute>(on, asked).await,
        "amend" => call.ask::<dead_letters::Amend>(on, asked).await,
        "answer" => {
            let decided = asked.remove("decided");
            asked.extend(decided.map(|decided| ("decision".to_owned(), decided)));
            call.ask::<dead_letters::Answer>(on, asked).await
        }
        "discard" => call.ask::<dead_letters::Discard>(on, asked).await,
        _ => call.ask::<dead_letters::Take>(on, asked).await,
    }
}
