// SPDX-License-Identifier: Apache-2.0
//! What can be asked, whatever the binding and the version: the operations of A2A in terms of ours.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tasuki_core::talk::QuestionKind;
use tasuki_core::{HandoffId, Target, Timestamp};
use tasuki_engine::operations::{Facts, Given, Operation, entry, handoffs, talk, tasks};
use tasuki_engine::{Desk, HandoffFilter, PAGE_MAX};
use tasuki_protocol::Code;

use crate::calls::Version;
use crate::endpoint::Endpoint;
use crate::extension;
use crate::fault::{Fault, Kind};
use crate::model::{self, Configuration, List, Listed, Message, Named, Send, State, Task};
use crate::push;
use crate::said;
use crate::story::{Story, told};

/// How long a send that waits for the end waits at the most. What is not over by then is answered as it
/// stands; a stream, a push or asking again tells the rest.
pub(crate) const BLOCKING_MS_MAX: u64 = 10 * 60 * 1000;
/// How many tasks of a caller with one agent are looked through for a list, the newest ones.
const LISTED_MAX: usize = 1000;
const PAGE: i64 = 50;
const PAGE_SIZE_MAX: i64 = 100;
/// How many bytes a page has at the most, unless its first task alone has more.
const PAGE_BYTES: usize = 8 * 1024 * 1024;
/// In whose name something is sent, where nobody has to say who it is.
const ANYONE: &str = "a2a-client";

/// A caller that talks to an agent.
pub(crate) struct Talk {
    pub(crate) desk: Desk,
    pub(crate) at: Endpoint,
    /// Which version of the protocol it speaks.
    pub(crate) version: Version,
    /// What the header of this name says.
    pub(crate) idempotency_key: Option<String>,
    /// Which trace it belongs to, by its headers.
    pub(crate) trace: Map<String, Value>,
}

/// What of a task decides where it is in a list. The rest is told for those of a page only.
struct Line {
    place: (Timestamp, HandoffId),
    state: State,
    context_id: String,
}

/// What a send came to.
pub(crate) struct Sent {
    pub(crate) story: Story,
    pub(crate) configuration: Configuration,
}

impl Talk {
    /// Carries out an operation of ours.
    async fn run<O: Operation>(&self, on: &[String], asked: &Value) -> Result<Value, Fault> {
        let facts: &Facts = &O::FACTS;
        let reply = entry(facts).run(self.desk.clone(), on, Given::Value(asked)).await?;
        serde_json::from_slice(&reply.body)
            .map_err(|error| Fault::new(Kind::Other, format!("a reply could not be read: {error}")))
    }

    fn agent(&self, said: &Value) -> String {
        match self.desk.caller().agent() {
            Some(agent) => agent.to_string(),
            None => extension::from(said).unwrap_or(ANYONE).to_owned(),
        }
    }

    /// The story of a task that this caller may know of, and that was sent to this agent.
    pub(crate) async fn find(&self, id: &str) -> Result<Story, Fault> {
        let none = || Fault::no_task(id);
        let handoff: HandoffId = id.parse().map_err(|_| none())?;
        let shown =
            self.desk.handoff(handoff).await.map_err(|error| Fault::from(error).about(id))?;
        let chain = self.desk.chain(shown.task_id).await;
        let chain = chain.map_err(|error| Fault::from(error).about(id))?;
        let story = told(&chain, handoff).ok_or_else(none)?;
        if self.at.has(&self.desk, &story) { Ok(story) } else { Err(none()) }
    }

    /// Sends a message: as new work, or to work that is there.
    pub(crate) async fn send(&mut self, asked: Send) -> Result<Sent, Fault> {
        self.at = self.at.meant(asked.tenant.as_deref())?;
        self.at.seen(&self.desk).await?;
        let message = asked.message.clone();
        let message = message.ok_or_else(|| Fault::params("message", "is missing"))?;
        if let Some((field, problem)) = message.fault() {
            return Err(Fault::params(field, problem));
        }
        if asked.configuration.history_length.is_some_and(|length| length < 0) {
            return Err(Fault::params("configuration.historyLength", "expected 0 or more"));
        }
        // What is wrong with it is said before anything is sent.
        let push = asked.configuration.task_push_notification_config.clone();
        let push = push.map(|config| push::read(config, &self.desk, self.version)).transpose()?;
        let said = extension::said(message.metadata.as_ref(), &asked.metadata);
        let id = match &message.task_id {
            Some(task) => self.go_on(task, &message, &said).await?,
            None => self.begin(&message, &asked, &said).await?,
        };
        let story = self.find(&id).await?;
        if let Some((id, config)) = push {
            self.keep_push(&story, id, &config).await?;
        }
        Ok(Sent { story, configuration: asked.configuration })
    }

    /// Offers new work. It is synced before this returns.
    async fn begin(&self, message: &Message, asked: &Send, said: &Value) -> Result<String, Fault> {
        let (payload, mut kept) = said::payload(message);
        let modes = &asked.configuration.accepted_output_modes;
        if !modes.is_empty() {
            kept.insert("accepted_output_modes".into(), json!(modes));
        }
        let traces = [message.metadata.as_ref(), Some(&asked.metadata), Some(&self.trace)];
        let mut metadata = said::trace(traces.into_iter().flatten());
        if !kept.is_empty() {
            metadata.insert(said::KEPT.to_owned(), Value::Object(kept));
        }
        let mut offer = json!({
            "from_agent": self.agent(said),
            "to": self.target(&asked.metadata, said)?,
            "intent": said::intent(message),
            "payload": payload,
            "metadata": metadata,
        });
        if let Some(context) = &message.context_id {
            offer["correlation_id"] = json!(context);
        }
        let memories = said::memories(message);
        if !memories.is_empty() {
            offer["memory_refs"] = Value::Array(memories);
        }
        for (name, value) in members(said)? {
            match name.as_str() {
                extension::FROM => {}
                "capability" if self.at == Endpoint::Broker => {}
                name => offer[name] = value,
            }
        }
        // What makes it safe to repeat is said in words meant for that: a messageId alone is not,
        // because nothing keeps clients from using one again.
        if let Some(key) = &self.idempotency_key {
            offer[extension::KEY] = json!(key);
        }
        let offered = self.run::<handoffs::Offer>(&[], &offer).await?;
        let id = offered["handoff_id"].as_str().unwrap_or_default();
        Ok(id.to_owned())
    }

    /// Whom new work is for.
    fn target(&self, metadata: &Map<String, Value>, said: &Value) -> Result<Value, Fault> {
        match &self.at {
            Endpoint::Agent { tenant: None, name } => Ok(json!({ "agent": name })),
            Endpoint::Agent { tenant: Some(tenant), name } => {
                Ok(json!({ "agent": format!("{tenant}/{name}") }))
            }
            Endpoint::Broker => {
                let named = said.get("capability").or_else(|| metadata.get("skill"));
                let named = named.and_then(Value::as_str).ok_or_else(|| {
                    let field = format!("metadata['{}'].capability", extension::URI);
                    Fault::params(field, "say what is to be done; the skills of the card are")
                })?;
                Ok(json!({ "capability": named }))
            }
        }
    }

    /// Says something about work that is there: the answer to what its holder asks, or a word to it.
    async fn go_on(&self, id: &str, message: &Message, said: &Value) -> Result<String, Fault> {
        let story = self.find(id).await?;
        if message.context_id.as_ref().is_some_and(|context| *context != story.context_id) {
            return Err(Fault::params("message.contextId", "is not the context of that task"));
        }
        if story.status.state.is_terminal() {
            return Err(Fault::new(
                Kind::Unsupported,
                format!("task {id} is at its end; send a new message that refers to it"),
            ));
        }
        let by = match self.desk.caller().agent() {
            Some(agent) => agent.to_string(),
            None => match extension::from(said) {
                Some(from) => from.to_owned(),
                None => story.from.to_string(),
            },
        };
        let on = [story.live.to_string()];
        let done = match story.asks {
            Some(kind) => {
                let answer = granted(kind, said::answer(message));
                let asked = json!({ "by": by, "answer": answer });
                self.run::<talk::Answer>(&on, &asked).await
            }
            None => {
                let mut asked = said::word(message);
                asked["by"] = json!(by);
                self.run::<talk::Message>(&on, &asked).await
            }
        };
        match done {
            Ok(_) => Ok(story.id.to_string()),
            Err(fault) if fault.code() == Some(Code::WrongState) => {
                Err(fault.of_kind(Kind::Unsupported))
            }
            Err(fault) => Err(fault.about(id)),
        }
    }

    /// Waits until a task is at its end, or until somebody has to say something.
    pub(crate) async fn settled(&self, mut story: Story) -> Result<Story, Fault> {
        let until = self.desk.now().plus_ms(BLOCKING_MS_MAX);
        let id = story.id.to_string();
        while !(story.status.state.is_terminal() || story.status.state.is_interrupted()) {
            let left = u64::try_from(until.0 - self.desk.now().0).unwrap_or(0);
            if left == 0 || !self.desk.task_moved(story.task_id, story.events, left).await? {
                if self.desk.now() < until && !self.desk.is_closing() {
                    continue;
                }
                break;
            }
            story = self.find(&id).await?;
        }
        Ok(story)
    }

    pub(crate) async fn get(&mut self, asked: Named) -> Result<Task, Fault> {
        self.at = self.at.meant(asked.tenant.as_deref())?;
        let id = asked.id.ok_or_else(|| Fault::params("id", "is missing"))?;
        if asked.history_length.is_some_and(|length| length < 0) {
            return Err(Fault::params("historyLength", "expected 0 or more"));
        }
        Ok(model::cut(self.find(&id).await?.task(), asked.history_length))
    }

    pub(crate) async fn cancel(&mut self, asked: Named) -> Result<Task, Fault> {
        self.at = self.at.meant(asked.tenant.as_deref())?;
        let id = asked.id.ok_or_else(|| Fault::params("id", "is missing"))?;
        let story = self.find(&id).await?;
        let over =
            |id: &str| Fault::new(Kind::TaskNotCancelable, format!("task {id} is at its end"));
        if story.status.state.is_terminal() {
            return Err(over(&id));
        }
        let by = self.desk.caller().agent().map_or(story.from.to_string(), ToString::to_string);
        let mut wish = json!({ "by": by });
        if let Some(reason) = asked.metadata.get("reason").and_then(Value::as_str) {
            wish["reason"] = json!(reason);
        }
        let done = self.run::<tasks::Cancel>(&[story.task_id.to_string()], &wish).await;
        match done {
            Ok(_) => Ok(self.find(&id).await?.task()),
            Err(fault) if fault.code() == Some(Code::TaskFinished) => Err(over(&id)),
            Err(fault) => Err(fault.about(&id)),
        }
    }

    /// The caller's tasks with this agent, the one first whose status changed last.
    pub(crate) async fn list(&mut self, asked: List) -> Result<Listed, Fault> {
        self.at = self.at.meant(asked.tenant.as_deref())?;
        let seen = self.at.seen(&self.desk).await?;
        let size = asked.page_size.unwrap_or(PAGE);
        if !(1..=PAGE_SIZE_MAX).contains(&size) {
            return Err(Fault::params("pageSize", "expected 1 to 100"));
        }
        if asked.history_length.is_some_and(|length| length < 0) {
            return Err(Fault::params("historyLength", "expected 0 or more"));
        }
        let state = state(asked.status)?;
        let after = asked.status_timestamp_after.map(|text| text.parse::<Timestamp>()).transpose();
        let after =
            after.map_err(|error| Fault::params("statusTimestampAfter", error.to_string()))?;
        let from = asked.page_token.as_deref().map(place).transpose()?;
        let to = seen.map(|seen| Target::Agent(seen.agent.id.clone()));
        let mut lines = self.lines(to).await?;
        lines.retain(|line| {
            asked.context_id.as_ref().is_none_or(|context| *context == line.context_id)
                && state.is_none_or(|state| state == line.state)
                && after.is_none_or(|after| line.place.0 >= after)
        });
        lines.sort_by_key(|line| std::cmp::Reverse(line.place));
        let total = lines.len();
        lines.retain(|line| from.is_none_or(|from| line.place < from));
        let page = usize::try_from(size).unwrap_or(1).min(lines.len());
        let (mut tasks, mut bytes, mut next) = (Vec::new(), 0, None);
        for (number, line) in lines.iter().take(page).enumerate() {
            let (at, id) = line.place;
            let mut task =
                model::cut(self.find(&id.to_string()).await?.task(), asked.history_length);
            if !asked.include_artifacts {
                task.artifacts.clear();
            }
            bytes += serde_json::to_string(&task).map_or(0, |text| text.len());
            tasks.push(task);
            // A page may be shorter than was asked for.
            let ends = bytes > PAGE_BYTES || number + 1 == page;
            if ends {
                next = (number + 1 < lines.len()).then(|| format!("{}_{id}", at.0));
                break;
            }
        }
        Ok(Listed {
            tasks,
            next_page_token: next.unwrap_or_default(),
            page_size: size,
            total_size: i64::try_from(total).unwrap_or(i64::MAX),
        })
    }

    /// What the caller sent to a target, as far back as a list goes.
    async fn lines(&self, to: Option<Target>) -> Result<Vec<Line>, Fault> {
        let mut filter = HandoffFilter {
            to: to.clone(),
            from: self.desk.caller().agent().cloned(),
            max: PAGE_MAX,
            ..HandoffFilter::default()
        };
        let mut lines = Vec::new();
        let mut looked_at = 0;
        loop {
            let page = self.desk.list_handoffs(filter.clone()).await?;
            for handoff in &page.items {
                looked_at += 1;
                // What a chain goes on with is told by the task that it began as.
                if handoff.hop != 0 || looked_at > LISTED_MAX {
                    continue;
                }
                let chain = self.desk.chain(handoff.task_id).await?;
                if let Some(story) = told(&chain, handoff.id) {
                    lines.push(Line {
                        place: (story.updated_at, story.id),
                        state: story.status.state,
                        context_id: story.context_id,
                    });
                }
            }
            match page.next {
                Some(next) if looked_at < LISTED_MAX => filter.before = Some(next),
                _ => return Ok(lines),
            }
        }
    }
}

/// The members under our extension that are members of an offer.
fn members(said: &Value) -> Result<Vec<(String, Value)>, Fault> {
    let field = |name: &str| format!("metadata['{}'].{name}", extension::URI);
    let object = match said {
        Value::Null => return Ok(Vec::new()),
        Value::Object(object) => object,
        _ => return Err(Fault::params(field(""), "expected an object")),
    };
    let known = |name: &str| {
        extension::SAID.contains(&name) || [extension::KEY, extension::FROM].contains(&name)
    };
    // What nobody follows must not look as if it were followed.
    match object.keys().find(|name| !known(&extension::ours(name))) {
        Some(name) => Err(Fault::params(field(name), "is not known")),
        None => {
            let named = |(name, value): (&String, &Value)| (extension::ours(name), value.clone());
            Ok(object.iter().map(named).collect())
        }
    }
}

/// Words by which leave is given or refused.
fn granted(kind: QuestionKind, answer: Value) -> Value {
    let (QuestionKind::Authorization, Some(text)) = (kind, answer.as_str()) else { return answer };
    match text.trim().to_ascii_lowercase().as_str() {
        "granted" | "yes" => json!({ "granted": true }),
        "denied" | "refused" | "no" => json!({ "granted": false }),
        // Nothing else is taken for one of them by mistake: what it must fit says no.
        _ => answer,
    }
}

/// A state that a list is asked for.
fn state(value: Option<Value>) -> Result<Option<State>, Fault> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() || text == "TASK_STATE_UNSPECIFIED" => {
            Ok(None)
        }
        Some(value) => {
            let read = serde_json::from_value(value);
            read.map(Some).map_err(|_| Fault::params("status", "expected a state of a task"))
        }
    }
}

/// Where a page begins.
fn place(token: &str) -> Result<(Timestamp, HandoffId), Fault> {
    let read = || {
        let (at, id) = token.split_once('_')?;
        Some((Timestamp(at.parse().ok()?), id.parse().ok()?))
    };
    read().ok_or_else(|| Fault::params("pageToken", "is not one that a list gave"))
}

/// As JSON, which what is answered always can be.
pub(crate) fn value(told: &impl Serialize) -> Value {
    serde_json::to_value(told).unwrap_or_default()
}
