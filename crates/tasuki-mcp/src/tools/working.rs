// SPDX-License-Identifier: Apache-2.0
//! What workers do: claim work, tell how far it is, ask, and end it in one of the ways there are.

use async_trait::async_trait;
use rmcp::model::Resource;
use serde_json::{Map, Value, json};
use tasuki_core::envelope::ExpectedOutput;
use tasuki_engine::operations::{claims, handoffs, talk, tasks};
use tasuki_protocol::{self as wire, Problem};
use uuid::Uuid;

use super::sending::moved;
use super::{Effect, Facts, Said, Tool, some_of, taken_if, taken_ms};
use crate::call::{Arguments, AskedFor, Call, handle_of};
use crate::handle::Handle;
use crate::resources;
use crate::schema::{Shape, flag, text};

/// How long a claim holds here without a word: a model thinks longer than a program.
const LEASE_MS: u64 = 10 * 60 * 1000;

const HANDLE: &str = "The handle that `claim` returned.";

fn held() -> Shape {
    Shape::new().needs("claim", text(HANDLE))
}

pub(super) struct Claim;

/// What of a claim is shown besides its handle.
const CLAIMED: &[&str] = &[
    "handoff_id",
    "task_id",
    "correlation_id",
    "attempt",
    "lease_left_ms",
    "work_left_ms",
    "envelope_hash",
    "taints",
    "budget",
    "questions",
    "messages",
    "earlier_attempts",
    "artifacts",
    "joined",
    "gaps",
    "left_out",
];

#[async_trait]
impl Tool for Claim {
    fn facts(&self) -> Facts {
        Facts {
            name: "claim",
            title: "Take work",
            says: "Take the next work for you, waiting for it if there is none (`wait_ms`, 60 seconds \
                   at most), or come back for one handoff by its id, as after an answered question. You \
                   get a handle (`claim`): show it with every later call about this work. It holds for \
                   10 minutes and each call with it extends that; call `progress` during longer work. \
                   `prompt` is what you are to do, with everything that binds you.",
            effect: Effect::Adds,
            repeats: false,
        }
    }

    fn asks(&self) -> Shape {
        Shape::new()
            .some_of::<wire::Claim>(&["capabilities", "lease_ms", "request_id", "majors"])
            .with("handoff_id", text("Only this one: the answer to your question, for example."))
            .with(
                "wait_ms",
                json!({
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 60_000,
                    "description": "How long to wait for work, in milliseconds.",
                }),
            )
    }

    fn answers(&self) -> Shape {
        Shape::new()
            .some_of::<wire::Claimed>(CLAIMED)
            .optional(CLAIMED)
            .needs("claimed", flag("Whether there was work."))
            .with("claim", text("The handle: copy it whole into every later call about this work."))
            .with("prompt", text("What to do, as its sender and everybody before said it."))
            .with("payload", json!({
                "type": "object",
                "description": "What to work on, exactly as it was sent.",
            }))
            .with("must_read_back", json!({
                "type": "object",
                "description": "If it is there, the sender wants this repeated before work begins: call \
                                `progress` with `read_back`.",
            }))
            .needs("next", text("What to do next."))
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let wait = taken_ms(&mut arguments, "wait_ms")?;
        let one = taken_if(&mut arguments, "handoff_id")?;
        let asked = claim_request(call, arguments)?;
        call.asks_for(Some(AskedFor { one: one.clone(), asked: asked.clone() }));
        if let Some(id) = one {
            // A wait that ends without an answer is a refusal, so it is made in one.
            let mut asked = asked;
            asked.insert("wait_ms".into(), json!(wait));
            let granted = call.ask::<claims::ClaimOne>(&[id], asked).await?;
            call.asks_for(None);
            return claimed(call, &granted).await;
        }
        let granted = call.until::<claims::Claim>(&[], asked, wait, has_claim).await?;
        call.asks_for(None);
        match granted["claims"].as_array().and_then(|claims| claims.first()) {
            Some(granted) => claimed(call, granted).await,
            None => Ok(nothing_claimed()),
        }
    }
}

fn has_claim(granted: &Value) -> bool {
    granted["claims"].as_array().is_some_and(|claims| !claims.is_empty())
}

/// What is asked for a claim: under a name, so that it can be repeated by whoever lost the answer.
fn claim_request(call: &Call, mut asked: Arguments) -> Result<Arguments, Problem> {
    asked.insert("agent".into(), json!(call.agent()?));
    name_claim(&mut asked);
    Ok(asked)
}

pub(crate) fn name_claim(asked: &mut Arguments) {
    asked.entry("lease_ms").or_insert(json!(LEASE_MS));
    asked.entry("request_id").or_insert_with(|| json!(format!("mcp-{}", Uuid::now_v7())));
}

pub(crate) fn nothing_claimed() -> Said {
    let next = "nothing waits for you; call `claim` again with `wait_ms`, or end";
    json!({ "claimed": false, "next": next }).into()
}

/// A claim as a model is shown it. Nothing that fails from here on takes the claim away.
pub(crate) async fn claimed(call: &Call, granted: &Value) -> Result<Said, Problem> {
    let handle = handle_of(granted)?;
    call.holds(handle);
    let mut shown = some_of(granted, CLAIMED);
    shown.insert("claimed".into(), json!(true));
    shown.insert("claim".into(), json!(handle.to_string()));
    let envelope = &granted["envelope"];
    if let Some(payload) = envelope.get("payload") {
        shown.insert("payload".into(), payload.clone());
    }
    let mut next = "do the work; end it with `complete`, `hand_on`, `fail`, `ask` or `release`";
    if let Some(binds) = to_repeat(call, &handle, envelope).await {
        shown.insert("must_read_back".into(), binds);
        next = "read `must_read_back`; call `progress` with `read_back`, repeating the ids of all \
                constraints and the address of the expected output; then do the work";
    }
    let uri = resources::envelope_uri(&handle.handoff);
    let prompt = call.ask::<handoffs::Prompt>(&handle.on(), Map::new()).await;
    let prompt = match prompt {
        Ok(mut prompt) => prompt["prompt"].take(),
        Err(problem) => {
            tracing::warn!(code = problem.code, "a claim's prompt could not be made");
            Value::String(format!(
                "The prompt could not be made; the envelope is at {uri}.\n{envelope}"
            ))
        }
    };
    let text = format!(
        "You hold this work now.\nclaim: {handle}\nhandoff_id: {}\ntask_id: {}\nNext: {next}\n\n{}",
        handle.handoff,
        granted["task_id"].as_str().unwrap_or_default(),
        prompt.as_str().unwrap_or_default(),
    );
    shown.insert("prompt".into(), prompt);
    shown.insert("next".into(), json!(next));
    let link = Resource::new(uri, "envelope")
        .with_title("The envelope, exactly as it was stored")
        .with_mime_type("application/json");
    Ok(Said { value: Value::Object(shown), text: Some(text), links: vec![link] })
}

/// What the receiver has to repeat before its claim counts, where the sender asked for that. It gets the
/// words to read; what it sends back it puts together itself.
async fn to_repeat(call: &Call, handle: &Handle, envelope: &Value) -> Option<Value> {
    let shown = call.ask::<handoffs::Show>(&handle.on(), Map::new()).await.ok()?;
    shown["contract"].get("read_back").filter(|asked| !asked.is_null())?;
    let bound = envelope["constraints"].as_array().into_iter().flatten();
    let bound: Vec<_> = bound.map(|one| some_of(one, &["id", "kind", "text"])).collect();
    let mut binds = json!({ "constraints": bound });
    if let Some(wanted) = envelope.get("expected_output") {
        let read: Option<ExpectedOutput> = serde_json::from_value(wanted.clone()).ok();
        binds["expected_output"] = wanted.clone();
        binds["expected_output_address"] = json!(read.map(|wanted| wanted.hash()));
    }
    Some(binds)
}

pub(super) struct Progress;

#[async_trait]
impl Tool for Progress {
    fn facts(&self) -> Facts {
        Facts {
            name: "progress",
            title: "Heartbeat and progress",
            says: "Keep your claim, and say how far the work is if there is something to say. Call it at \
                   least every few minutes during long work. The answer has messages to you, and how \
                   much time is left. Without `percent` and `note` it is a heartbeat.",
            effect: Effect::Adds,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        held()
            .some_of::<wire::Progress>(&["percent", "note"])
            .some_of::<wire::Heartbeat>(&["acknowledge"])
            .some_of::<wire::Start>(&["read_back"])
    }

    fn answers(&self) -> Shape {
        Shape::new().all_of::<wire::Beat>()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let handle = Handle::taken(&mut arguments)?;
        let acknowledge = arguments.remove("acknowledge");
        if let Some(read_back) = arguments.remove("read_back") {
            let asked = [("read_back".to_owned(), read_back)].into_iter().collect();
            call.ask_held::<claims::Start>(&handle, asked).await?;
        }
        if !arguments.is_empty() {
            call.ask_held::<claims::Progress>(&handle, arguments).await?;
        }
        Ok(call.beat(&handle, acknowledge).await?.into())
    }
}

pub(super) struct Ask;

#[async_trait]
impl Tool for Ask {
    fn facts(&self) -> Facts {
        Facts {
            name: "ask",
            title: "Ask about the work",
            says: "Ask the sender something that you must know to go on. This ends your claim and keeps \
                   the work for you: come back with `claim`, the `handoff_id` and `wait_ms`, and you get \
                   the answer with a new handle. Do other work meanwhile if you like.",
            effect: Effect::Adds,
            repeats: false,
        }
    }

    fn asks(&self) -> Shape {
        let says =
            ["kind", "text", "details", "schema", "answer_ms", "default", "keep_ms", "by_id"];
        held()
            .some_of::<wire::Ask>(&says)
            .with(
                "kind",
                json!({
                    "type": "string",
                    "enum": ["input", "authorization"],
                    "description": "Something that you must know, or leave to do something.",
                }),
            )
            .with(
                "default",
                json!({
                    "description": "The answer that holds if nobody gives one within `answer_ms`.",
                }),
            )
    }

    fn answers(&self) -> Shape {
        Shape::new().all_of::<wire::AskReply>().needs("next", text("What to do next."))
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let handle = Handle::taken(&mut arguments)?;
        let mut asked = call.ask_held::<talk::Ask>(&handle, arguments).await?;
        call.ended(&handle);
        asked["next"] = json!(format!(
            "call `claim` with handoff_id {} and wait_ms to come back for the answer",
            handle.handoff
        ));
        Ok(asked.into())
    }
}

pub(super) struct Complete;

#[async_trait]
impl Tool for Complete {
    fn facts(&self) -> Facts {
        Facts {
            name: "complete",
            title: "Complete work",
            says: "Give the result of work that you hold, an object with a `type`, and end your claim. \
                   Say of each criterion of the expected output whether it is met. A result that does not \
                   fit what was asked for is refused and you still hold the work.",
            effect: Effect::Ends,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        held().some_of::<wire::Complete>(RESULT)
    }

    fn answers(&self) -> Shape {
        moved()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let handle = Handle::taken(&mut arguments)?;
        let done = call.ask_held::<claims::Complete>(&handle, arguments).await?;
        call.ended(&handle);
        Ok(done.into())
    }
}

const RESULT: &[&str] =
    &["action", "payload", "metadata", "criteria", "gaps", "resolved_gaps", "usage"];

pub(super) struct HandOn;

/// What of the next hop a model says.
const HOP: &[&str] = &[
    "to",
    "action",
    "payload",
    "metadata",
    "priority",
    "terms",
    "capability",
    "fallbacks",
    "expires_in_ms",
    "needs_approval",
    "approvers",
    "summary",
    "ask",
    "state",
    "tried",
    "assumptions",
    "add_constraints",
    "decisions",
    "open_decisions",
    "memory_refs",
    "expected_output",
];

#[async_trait]
impl Tool for HandOn {
    fn facts(&self) -> Facts {
        Facts {
            name: "hand_on",
            title: "Hand work on",
            says: "Give your part of the work and hand the task on to the next agent, in one step: there \
                   is never a moment in which nobody owns it. The user's intent and all constraints \
                   travel by themselves; add what you found out. `payload` is what the next one works \
                   on, `result` is what you did, if that is something else.",
            effect: Effect::Ends,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        held().some_of::<wire::FollowUp>(HOP).with("result", json!({
            "type": "object",
            "description": "What came of your part: an object with a `type`. The payload without it.",
        }))
    }

    fn answers(&self) -> Shape {
        moved().with("next_handoff_id", text("The handoff to the next agent."))
    }

    async fn run(&self, call: &Call, mut hop: Arguments) -> Result<Said, Problem> {
        let handle = Handle::taken(&mut hop)?;
        let result = hop.remove("result").or_else(|| hop.get("payload").cloned());
        call.traced(&mut hop);
        let mut asked = Map::new();
        asked.extend(result.map(|result| ("payload".to_owned(), result)));
        asked.insert("follow_ups".into(), json!([hop]));
        let mut done = call.ask_held::<claims::Complete>(&handle, asked).await?;
        call.ended(&handle);
        let on = [done["task_id"].as_str().unwrap_or_default().to_owned()];
        if let Ok(task) = call.ask::<tasks::Show>(&on, Map::new()).await
            && let Some(live) = task.get("live_handoff")
        {
            done["next_handoff_id"] = live.clone();
        }
        Ok(done.into())
    }
}

pub(super) struct Fail;

#[async_trait]
impl Tool for Fail {
    fn facts(&self) -> Facts {
        Facts {
            name: "fail",
            title: "Report a failure",
            says: "Say that your attempt failed, and end your claim. `class` says whether trying again may \
                   help; a permanent failure needs a `hint` at what might fix it. Never end work \
                   silently: this is how the sender hears of it.",
            effect: Effect::Ends,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        let says = [
            "class",
            "type",
            "message",
            "attempted",
            "attempts",
            "causes",
            "hint",
            "retry_after_ms",
            "details",
            "usage",
        ];
        held().some_of::<wire::Fail>(&says)
    }

    fn answers(&self) -> Shape {
        moved()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let handle = Handle::taken(&mut arguments)?;
        let done = call.ask_held::<claims::Fail>(&handle, arguments).await?;
        call.ended(&handle);
        Ok(done.into())
    }
}

pub(super) struct Decline;

#[async_trait]
impl Tool for Decline {
    fn facts(&self) -> Facts {
        Facts {
            name: "decline",
            title: "Decline work",
            says: "Say that you will not do this work, with a reason: it goes to somebody else and never \
                   comes to you again. Give your `claim` if you hold it, or the `handoff_id` before you \
                   claimed it.",
            effect: Effect::Ends,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        Shape::new()
            .with("claim", text(HANDLE))
            .with("handoff_id", text("The handoff, where you do not hold it."))
            .with("reason", text("Why; the sender sees it."))
    }

    fn answers(&self) -> Shape {
        moved()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let id = taken_if(&mut arguments, "handoff_id")?;
        let handle = match arguments.contains_key("claim") {
            true => Some(Handle::taken(&mut arguments)?),
            false => None,
        };
        arguments.insert("agent".into(), json!(call.agent()?));
        let done = match (handle, id) {
            (Some(handle), None) => {
                let done = call.ask_held::<claims::Decline>(&handle, arguments).await?;
                call.ended(&handle);
                done
            }
            (None, Some(id)) => call.ask::<claims::Decline>(&[id], arguments).await?,
            _ => return Err(Problem::invalid("claim", "give either `claim` or `handoff_id`")),
        };
        Ok(done.into())
    }
}

pub(super) struct Release;

#[async_trait]
impl Tool for Release {
    fn facts(&self) -> Facts {
        Facts {
            name: "release",
            title: "Give work back",
            says: "Give work back unfinished, for anybody to take again, you included: when you have to \
                   stop, for example. It counts as no failure.",
            effect: Effect::Ends,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        held()
    }

    fn answers(&self) -> Shape {
        moved()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        let handle = Handle::taken(&mut arguments)?;
        let done = call.ask_held::<claims::Release>(&handle, arguments).await?;
        call.ended(&handle);
        Ok(done.into())
    }
}
