// SPDX-License-Identifier: Apache-2.0
//! What is known: memories, what a project agreed on, who can do what, and what happened to work.

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tasuki_engine::operations::{agents, contexts, handoffs, memories, tasks};
use tasuki_protocol::{self as wire, Problem};

use super::{Effect, Facts, Said, Tool, some_of, taken, taken_if};
use crate::call::{Arguments, Call};
use crate::schema::{Shape, text};

const HELD: &str = "Your claim, if you hold one: its lease is extended.";

pub(super) struct ReadMemory;

/// What of a memory a model is shown.
const MEMORY: &[&str] = &[
    "memory_id",
    "revision",
    "latest",
    "scope",
    "pinned",
    "priority",
    "line",
    "title",
    "summary",
    "text",
    "tags",
    "superseded_by",
    "written_by",
    "written_at",
    "score",
];

fn memory(says: &str) -> Value {
    let mut schema = Shape::new().some_of::<wire::Memory>(MEMORY).optional(MEMORY).schema(false);
    schema.insert("description".into(), json!(says));
    Value::Object(schema)
}

#[async_trait]
impl Tool for ReadMemory {
    fn facts(&self) -> Facts {
        Facts {
            name: "read_memory",
            title: "Read memories",
            says: "Read one memory by its id (`memory_id`), or find some: by words (`q`, the best answer \
                   first), project, task, agent or tag. `detail` says how much of each: stub, summary or \
                   full.",
            effect: Effect::Reads,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        let finds = ["q", "project", "task", "agent", "tag", "pinned", "detail", "before", "limit"];
        Shape::new()
            .some_of::<wire::ListMemories>(&finds)
            .with("project", text("Only memories of this project."))
            .with("task", text("Only memories of this task."))
            .with("agent", text("Only memories of this agent."))
            .some_of::<wire::ShowMemory>(&["revision"])
            .with("handoff_id", text("The handoff in whose prompt you found it, if you did."))
            .with("memory_id", text("The memory to read; nothing is searched then."))
            .with("claim", text(HELD))
    }

    fn answers(&self) -> Shape {
        let one = memory("A memory.");
        Shape::new()
            .needs("memories", json!({ "type": "array", "items": one }))
            .with("next", text("Give this as `before` to get the next page."))
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        call.beat_if_held(&mut arguments).await?;
        let handoff = taken_if(&mut arguments, "handoff_id")?;
        let Some(id) = taken_if(&mut arguments, "memory_id")? else {
            if handoff.is_some() {
                let problem = "belongs to one memory; give `memory_id` with it";
                return Err(Problem::invalid("handoff_id", problem));
            }
            let listed = call.ask::<memories::List>(&[], arguments).await?;
            let shown = listed["memories"].as_array().into_iter().flatten();
            let shown: Vec<_> = shown.map(|one| some_of(one, MEMORY)).collect();
            let mut said = json!({ "memories": shown });
            if let Some(next) = listed.get("next") {
                said["next"] = next.clone();
            }
            return Ok(said.into());
        };
        arguments.extend(handoff.map(|handoff| ("handoff".to_owned(), json!(handoff))));
        let shown = call.ask::<memories::Show>(&[id], arguments).await?;
        Ok(json!({ "memories": [some_of(&shown, MEMORY)] }).into())
    }
}

pub(super) struct Remember;

#[async_trait]
impl Tool for Remember {
    fn facts(&self) -> Facts {
        Facts {
            name: "remember",
            title: "Remember, pin, decide",
            says: "Write what should outlast this work. `remember` keeps a text (`text`, with `title`, \
                   `summary`, `tags`, `scope`); `pin` lets a memory travel with all work it fits, `unpin` \
                   ends that (`memory_id`); `decide` adds a decision to a project's log (`project`, \
                   `key`, `decision`, `why`). Write no secrets.",
            effect: Effect::Adds,
            repeats: false,
        }
    }

    fn asks(&self) -> Shape {
        let keeps = [
            "id",
            "scope",
            "title",
            "summary",
            "text",
            "tags",
            "pinned",
            "priority",
            "idempotency_key",
        ];
        let decides = ["key", "decision", "why", "supersedes"];
        Shape::new()
            .some_of::<wire::NewMemory>(&keeps)
            .some_of::<wire::NewDecision>(&decides)
            .optional(&["text", "key", "decision"])
            .needs(
                "do",
                json!({
                    "type": "string",
                    "enum": ["remember", "pin", "unpin", "decide"],
                    "description": "What to write.",
                }),
            )
            .with("memory_id", text("The memory to pin or unpin."))
            .with("project", text("The project whose log a decision goes into."))
            .with("claim", text(HELD))
    }

    fn answers(&self) -> Shape {
        Shape::new().with("memory", memory("The memory as it is now.")).with(
            "context",
            json!({
                "type": "object",
                "description": "What the project agreed on, with the new decision.",
            }),
        )
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        call.beat_if_held(&mut arguments).await?;
        let what = taken(&mut arguments, "do")?;
        let by = json!(call.agent()?);
        let memory = taken_if(&mut arguments, "memory_id")?;
        let project = taken_if(&mut arguments, "project")?;
        let about = |name: &str, given: Option<String>| {
            given.ok_or_else(|| Problem::invalid(name, format!("is needed to {what}")))
        };
        arguments.insert("by".into(), by);
        let said = match what.as_str() {
            "remember" => call.ask::<memories::Add>(&[], arguments).await?,
            "pin" => call.ask::<memories::Pin>(&[about("memory_id", memory)?], arguments).await?,
            "unpin" => {
                call.ask::<memories::Unpin>(&[about("memory_id", memory)?], arguments).await?
            }
            "decide" => {
                let on = [about("project", project)?];
                let context = call.ask::<contexts::Decide>(&on, arguments).await?;
                return Ok(json!({ "context": context }).into());
            }
            other => {
                let problem = format!("{other:?} is none of remember, pin, unpin, decide");
                return Err(Problem::invalid("do", problem));
            }
        };
        Ok(json!({ "memory": some_of(&said, MEMORY) }).into())
    }
}

pub(super) struct ProjectContext;

#[async_trait]
impl Tool for ProjectContext {
    fn facts(&self) -> Facts {
        Facts {
            name: "project_context",
            title: "Context of a project",
            says: "Read what everybody in a project shares: where it stands, what binds all its work, what \
                   was decided and why, and which tasks are open.",
            effect: Effect::Reads,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        Shape::new().needs("project", text("The name of the project.")).with("claim", text(HELD))
    }

    fn answers(&self) -> Shape {
        Shape::new().all_of::<wire::SharedContext>()
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        call.beat_if_held(&mut arguments).await?;
        let project = taken(&mut arguments, "project")?;
        Ok(call.ask::<contexts::Show>(&[project], arguments).await?.into())
    }
}

pub(super) struct FindAgents;

/// What of an agent a model is shown.
const AGENT: &[&str] =
    &["agent_id", "standing", "version", "manifest", "live", "last_seen", "holding", "observed"];

#[async_trait]
impl Tool for FindAgents {
    fn facts(&self) -> Facts {
        Facts {
            name: "find_agents",
            title: "Find agents",
            says: "Find out who can do something: by capability, tags, role, by what goes in and comes out \
                   (JSON Schemas), by who is there now (`live`) and who is reliable. Use the `agent_id` \
                   in `send`, or send to the capability and let the broker choose.",
            effect: Effect::Reads,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        let by = [
            "capability",
            "input",
            "output",
            "tags",
            "version",
            "role",
            "live",
            "reliability",
            "limit",
        ];
        Shape::new().some_of::<wire::Search>(&by).with("claim", text(HELD))
    }

    fn answers(&self) -> Shape {
        let one = Shape::new().some_of::<wire::Agent>(AGENT).optional(AGENT).schema(false);
        Shape::new().needs("agents", json!({ "type": "array", "items": one }))
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        call.beat_if_held(&mut arguments).await?;
        let found = call.ask::<agents::Search>(&[], arguments).await?;
        let agents = found["agents"].as_array().into_iter().flatten();
        let agents: Vec<_> = agents.map(|agent| some_of(agent, AGENT)).collect();
        Ok(json!({ "agents": agents }).into())
    }
}

pub(super) struct Explain;

#[async_trait]
impl Tool for Explain {
    fn facts(&self) -> Facts {
        Facts {
            name: "explain",
            title: "Explain what happened",
            says: "Tell the story of a task, by its id or by a handoff of it: who owns it, where each hop \
                   is, and everything that happened, in order, with who did it.",
            effect: Effect::Reads,
            repeats: true,
        }
    }

    fn asks(&self) -> Shape {
        Shape::new()
            .with("task_id", text("The task."))
            .with("handoff_id", text("A handoff of it, where you know no task."))
            .with("claim", text(HELD))
    }

    fn answers(&self) -> Shape {
        let object = |says: &str| json!({ "type": "object", "description": says });
        Shape::new()
            .needs("task", object("The task: its owner, its state, its intent."))
            .needs(
                "handoffs",
                json!({
                    "type": "array",
                    "description": "Its hops, the newest first.",
                    "items": { "type": "object" },
                }),
            )
            .needs(
                "happened",
                json!({
                    "type": "array",
                    "description": "What happened, in order.",
                    "items": { "type": "object" },
                }),
            )
    }

    async fn run(&self, call: &Call, mut arguments: Arguments) -> Result<Said, Problem> {
        call.beat_if_held(&mut arguments).await?;
        let task = taken_if(&mut arguments, "task_id")?;
        let handoff = taken_if(&mut arguments, "handoff_id")?;
        let task = match (task, handoff) {
            (Some(task), None) => task,
            (None, Some(handoff)) => {
                let mut shown = call.ask::<handoffs::Show>(&[handoff], Map::new()).await?;
                match shown["task_id"].take() {
                    Value::String(task) => task,
                    _ => return Err(Problem::invalid("handoff_id", "belongs to no task")),
                }
            }
            _ => return Err(Problem::invalid("task_id", "give either `task_id` or `handoff_id`")),
        };
        Ok(story(call, &[task]).await?.into())
    }
}

/// What of a hop its story shows.
const HOP: &[&str] = &[
    "handoff_id",
    "state",
    "status",
    "from_agent",
    "to",
    "hop",
    "holder",
    "attempts",
    "dead_letter",
    "question",
    "offered_at",
    "ended_at",
];

/// The story of a task.
pub(crate) async fn story(call: &Call, task: &[String]) -> Result<Value, Problem> {
    let shown = call.ask::<tasks::Show>(task, Map::new()).await?;
    let events = call.ask::<tasks::Events>(task, Map::new()).await?;
    let happened = events["events"].as_array().into_iter().flatten().map(|event| {
        let record = &event["record"];
        let mut line = some_of(record, &["at", "actor", "kind", "handoff_id"]);
        // What else an event says is its own; ids of its chain are the log's.
        let chain = ["v", "task_id", "index", "turn"];
        let more = record.as_object().into_iter().flatten();
        let more = more.filter(|(name, _)| !chain.contains(&name.as_str()));
        for (name, value) in more {
            line.entry(name.clone()).or_insert_with(|| value.clone());
        }
        if let Some(text) = event["body"]["text"].as_str() {
            line.insert("text".into(), json!(text));
        }
        line
    });
    let happened: Vec<_> = happened.collect();
    let hops = shown["handoffs"].as_array().into_iter().flatten();
    let hops: Vec<_> = hops.map(|hop| some_of(hop, HOP)).collect();
    let mut task = shown;
    if let Some(task) = task.as_object_mut() {
        task.remove("handoffs");
    }
    Ok(json!({ "task": task, "handoffs": hops, "happened": happened }))
}
