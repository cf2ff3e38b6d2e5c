// SPDX-License-Identifier: Apache-2.0
//! What senders do: hand work to somebody, wait for what comes of it, answer questions, call it off.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tasuki_engine::operations::{handoffs, talk};
use tasuki_protocol::{self as wire, Problem};

use super::{Effect, Facts, Said, Tool, some_of, taken, taken_if, taken_ms};
use crate::call::{Arguments, Call};
use crate::schema::{Shape, text};

/// What of an offer a model says.
pub(super) const OFFER: &[&str] = &[
    "task_id",
    "intent",
    "correlation_id",
    "project",
    "idempotency_key",
    "to",
    "control",
    "action",
    "payload",
    "metadata",
    "priority",
    "terms",
    "capability",
    "fallbacks",
    "after",
    "output_schema",
    "budget_tokens",
    "deadline",
    "expires_in_ms",
    "start_in_ms",
    "needs_approval",
    "approvers",
    "ordering_key",
    "summary",
    "ask",
    "state",
    "tried",
    "assumptions",
    "constraints",
    "add_constraints",
    "decisions",
    "open_decisions",
    "memory_refs",
    "expected_output",
];

/// What of a handoff a model is shown.
const SEEN: &[&str] = &[
    "handoff_id",
    "task_id",
    "state",
    "status",
    "correlation_id",
    "from_agent",
    "to",
    "hop",
    "expires_at",
    "ended_at",
    "holder",
    "question",
    "artifacts",
    "result",
    "dead_letter",
    "failures",
    "losses",
    "declined_by",
    "waits_for",
    "output",
];

const CLAIM: &str = "Your own claim, if you hold one: the new work is then a task below yours, and your \
                     lease is extended.";

fn offer() -> Shape {
    Shape::new().some_of::<wire::Offer>(OFFER).with("claim", text(CLAIM))
}

fn seen_shape() -> Shape {
    Shape::new()
        .some_of::<wire::HandoffWithResult>(SEEN)
        .with(
            "open_question",
            json!({
                "type": "object",
                "description": "What its holder asks; the tool `answer` answers it.",
                "properties": Shape::new()
                    .some_of::<wire::OpenQuestion>(&["text", "kind", "details", "schema", "default"])
                    .schema(false)
                    .remove("properties"),
            }),
        )
        .needs("finished", json!({
            "type": "boolean",
            "description": "Whether it is at its end. Only what is `completed` has a result.",
        }))
        .needs("next", text("What to do next."))
}

/// States that nothing follows by itself.
const ENDS: [&str; 4] = ["completed", "failed", "cancelled", "dead_lettered"];

/// A handoff as a model is shown it.
pub(crate) async fn seen(call: &Call, handoff: &Value) -> Value {
    let state = handoff["state"].as_str().unwrap_or_default();
    let mut seen = some_of(handoff, SEEN);
    let finished = ENDS.contains(&state) || handoff["ended_at"].is_string();
    if state == "input_required"
        && let Some(asks) = question(call, handoff).await
    {
        seen.insert("open_question".into(), asks);
    }
    let next = match state {
        "completed" => "read `output`; the work is done",
        "dead_lettered" => "look at it with `dead_letters` and decide with `decide_dead_letter`",
        "input_required" => "answer the question with `answer`",
        _ if finished => "nothing follows; send new work if it is still wanted",
        "awaiting_approval" => "somebody must approve it first; call `status` later",
        _ => "it goes on without you; call `status` with `wait_ms` to wait for the end",
    };
    seen.insert("finished".into(), json!(finished));
    seen.insert("next".into(), json!(next));
    Value::Object(seen)
}

/// The words of the question that a handoff waits with. Who may not read it is shown the rest.
async fn question(call: &Call, handoff: &Value) -> Option<Value> {
    let mut asked = Map::new();
    asked.insert("task".into(), handoff["task_id"].clone());
    let listed = call.ask::<talk::Questions>(&[], asked).await.ok()?;
    let ours = |asks: &&Value| asks["handoff_id"] == handoff["handoff_id"];
    let asks = listed["questions"].as_array()?.iter().find(ours)?;
    Some(Value::Object(some_of(asks, &["text", "kind", "details", "schema", "default"])))
}

/// Offers what the arguments say. Who offers while it works makes a task below its own.
async fn offered(call: &Call, mut arguments: Arguments) -> Result<Value, Problem> {
    if let Some(held) = call.beat_if_held(&mut arguments).await?
        && !arguments.contains_key("task_id")
    {
        let own = call.ask::<handoffs::Show>(&held.on(), Map::new()).await?;
        arguments.insert("task_id".into(), own["task_id"].clone());
        arguments.entry("control").or_insert_with(|| json!("awaited"));
    }
    call.traced(&mut arguments);
    arguments.insert("from_agent".into(), json!(call.agent()?));
    call.ask::<handoffs::Offer>(&[], arguments).await
}

pub(super) struct Send;

#[async_trait]
impl Tool for Send {
    fn facts(&self) -> Facts {
        Facts {
            name: "send",
            title: "Send work",
            says: "Hand work to an agent by name ({\"agent\": \"coder\"}) or to anybody with a \
                   capability ({\"capability\": \"review\"}), and go on with something else. It is \
                   stored when this returns and is never lost. `intent` is the user's own words and \
                   travels unchanged; put every 'do not' into `constraints`. Give an \
                   `idempotency_key` to make it safe to repeat.",
            effect: Effect::Adds,
            repeats: false,
        }
    }

    fn asks(&self) -> Shape {
        offer()
    }

    fn answers(&self) -> Shape {
        Shape::new().all_of::<wire::Offered>()
    }

    async fn run(&self, call: &Call, arguments: Arguments) -> Result<Said, Problem> {
        Ok(offered(call, arguments).await?.into())
    }
}

pub(super) struct CallAgent;

#[async_trait]
impl Tool for CallAgent {
    fn facts(&self) -> Facts {
        Facts {
            name: "call",
            title: "Send work and wait",
            says: "Hand work to somebody as `send` does, and wait for its result, or for a question of \
                   whoever does it. If it takes longer than `wait_ms` (60 seconds at most) the work goes \
                   on: wait again with `status` and the `handoff_id`, and do not send it again.",
            effect: Effect::Adds,
            repeats: false,
        }
    }

    fn asks(&self) -> Shape {
        offer().with("wait_ms", wait_ms())
    }

    fn answers(&self) -> Shape {
        seen_shape()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let wait = match arguments.contains_key("wait_ms") {
            true => taken_ms(&mut arguments, "wait_ms")?,
            false => WAIT_MS,
        };
        let offered = offered(call, arguments).await?;
        let id = offered["handoff_id"].as_str().unwrap_or_default().to_owned();
        Ok(waited(call, id, wait, "input_required").await?.into())
    }
}

/// How long `call` waits without being told.
const WAIT_MS: u64 = 50_000;

fn wait_ms() -> Value {
    json!({
        "type": "integer",
        "minimum": 0,
        "maximum": 60_000,
        "description": "How long to wait at most, in milliseconds.",
    })
}

/// Waits until a handoff has come far enough.
async fn waited(call: &Call, id: String, wait: u64, until: &str) -> Result<Value, Problem> {
    let mut asked = Map::new();
    asked.insert("until".into(), json!(until));
    let far = |shown: &Value| {
        let state = shown["state"].as_str().unwrap_or_default();
        let ended = shown["ended_at"].is_string() || ENDS.contains(&state);
        ended
            || match until {
                "input_required" => state == "input_required",
                "claimed" => !shown["holder"].is_null(),
                _ => false,
            }
    };
    let shown = call.until::<handoffs::Show>(&[id], asked, wait, far).await?;
    Ok(seen(call, &shown).await)
}

pub(super) struct Status;

#[async_trait]
impl Tool for Status {
    fn facts(&self) -> Facts {
        Facts {
            name: "status",
            title: "Status of work",
            says: "Where work is that was handed to somebody: its state, its holder, its question, its \
                   result. With `wait_ms` it waits until the work is at its end (`until`: `settled`), \
                   until its holder asks something (`input_required`), or until somebody took it \
                   (`claimed`).",
            effect: Effect::Reads,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        Shape::new()
            .needs("handoff_id", text("The handoff, as `send` or `call` returned it."))
            .with("wait_ms", wait_ms())
            .with(
                "until",
                json!({
                    "type": "string",
                    "enum": ["claimed", "input_required", "settled"],
                    "description": "How far it must have come; `settled` without it.",
                }),
            )
    }

    fn answers(&self) -> Shape {
        seen_shape()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let id = taken(&mut arguments, "handoff_id")?;
        let wait = taken_ms(&mut arguments, "wait_ms")?;
        let until = taken_if(&mut arguments, "until")?.unwrap_or_else(|| "settled".into());
        if !["claimed", "input_required", "settled"].contains(&until.as_str()) {
            let problem = "expected claimed, input_required or settled";
            return Err(Problem::invalid("until", problem));
        }
        Ok(waited(call, id, wait, &until).await?.into())
    }
}

/// What most changes answer.
pub(super) fn moved() -> Shape {
    Shape::new().all_of::<wire::Moved>()
}

pub(super) struct Cancel;

#[async_trait]
impl Tool for Cancel {
    fn facts(&self) -> Facts {
        Facts {
            name: "cancel",
            title: "Cancel work",
            says: "Call off work that you sent and that is not at its end. Whoever holds it hears of it \
                   with its next call. This cannot be undone.",
            effect: Effect::Ends,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        Shape::new()
            .needs("handoff_id", text("The handoff, as `send` or `call` returned it."))
            .with("reason", text("Why; it stands in the log."))
    }

    fn answers(&self) -> Shape {
        moved()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let id = taken(&mut arguments, "handoff_id")?;
        arguments.insert("by".into(), json!(call.agent()?));
        Ok(call.ask::<handoffs::Cancel>(&[id], arguments).await?.into())
    }
}

pub(super) struct Answer;

#[async_trait]
impl Tool for Answer {
    fn facts(&self) -> Facts {
        Facts {
            name: "answer",
            title: "Answer, or say a word",
            says: "Answer the question that a handoff waits with (`answer`), so that the work goes on; \
                   or send a word to whoever works on it (`message`), which it gets with its next call. \
                   Give one of the two.",
            effect: Effect::Adds,
            repeats: false,
        }
    }

    fn asks(&self) -> Shape {
        Shape::new()
            .needs("handoff_id", text("The handoff that waits, or that somebody works on."))
            .some_of::<wire::AnswerQuestion>(&["answer", "question"])
            .with("message", text("A word to whoever holds the work."))
            .optional(&["answer"])
            .with(
                "answer",
                json!({
                    "description": "Any JSON that fits what the question asks for.",
                }),
            )
    }

    fn answers(&self) -> Shape {
        Shape::new()
            .some_of::<wire::Moved>(&["handoff_id", "task_id", "state", "status"])
            .some_of::<wire::HolderMessages>(&["messages"])
            .optional(&["handoff_id", "task_id", "state", "status", "messages"])
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let on = [taken(&mut arguments, "handoff_id")?];
        let message = taken_if(&mut arguments, "message")?;
        let by = json!(call.agent()?);
        arguments.insert("by".into(), by.clone());
        let done = match (message, arguments.contains_key("answer")) {
            (None, true) => call.ask::<talk::Answer>(&on, arguments).await?,
            (Some(message), false) => {
                let asked = [("by".to_owned(), by), ("text".to_owned(), json!(message))];
                call.ask::<talk::Message>(&on, asked.into_iter().collect()).await?
            }
            _ => return Err(Problem::invalid("answer", "give either `answer` or `message`")),
        };
        Ok(done.into())
    }
}
