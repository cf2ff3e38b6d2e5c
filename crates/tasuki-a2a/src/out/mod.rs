// SPDX-License-Identifier: Apache-2.0
//! Work for agents that are A2A servers elsewhere. The engine claims it for them and holds the claim;
//! here it is sent, followed and understood. A word from there, by a push or a stream, is a reason to ask
//! how the task stands, and is never believed by itself. Which task it became there is remembered in the
//! log, so a restart goes on with it instead of sending again.

mod credentials;
mod inbox;
mod remote;
mod trouble;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::HeaderMap;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tasuki_core::Timestamp;
use tasuki_core::address::Endpoint;
use tasuki_engine::{Answer, Envoy, Errand, Lobby};
use tasuki_front::{Outgoing, Outside};
use tokio::sync::Mutex;

use self::inbox::Inbox;
use self::remote::{Line, Told};
use self::trouble::{Trouble, away, failed};
use crate::model::{Artifact, Message, Part, State, Task};
use crate::said;

pub use credentials::Credentials;
pub use inbox::inbox;

/// How long one request may take.
const ASK_MAX: Duration = Duration::from_secs(30);
/// How long it waits before it asks again: a second, then half as long again each time; and where a push
/// or a stream tells, only to be sure.
const POLL_MS: u64 = 1_000;
const POLL_MS_MAX: u64 = 15_000;
const SURE_MS: u64 = 60_000;
/// How often in a row nobody may answer while a task is under way. Then the attempt has failed, and the next
/// one goes on with the same task.
const AWAY_MAX: u32 = 8;

/// A card that is known for a while.
#[derive(Clone)]
struct Known {
    card: Value,
    tag: Option<String>,
    until: Timestamp,
}

/// Speaks to agents elsewhere.
pub struct Client {
    lobby: Lobby,
    outside: Arc<dyn Outside>,
    credentials: Credentials,
    /// Where others reach this broker, if an administrator said so.
    external_url: Option<String>,
    cards: Mutex<HashMap<String, Known>>,
    inbox: Inbox,
}

/// Which task work has become elsewhere.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Remembered {
    /// Of which interface.
    url: String,
    task: String,
    /// In which attempt it was sent.
    attempt: u32,
}

/// Where a URL leads: scheme, host and port.
fn origin(url: &str) -> Option<(bool, String, u16)> {
    let place = Endpoint::parse(url).ok()?;
    Some((place.tls, place.host_text, place.port))
}

/// Makes a request and reads the whole answer.
async fn asked(
    outside: &dyn Outside,
    request: Outgoing,
    bytes_max: usize,
) -> Result<(u16, HeaderMap, Vec<u8>), Trouble> {
    let all = async {
        let answer = outside.ask(request).await?;
        let (status, headers) = (answer.status, answer.headers.clone());
        Ok::<_, String>((status, headers, answer.whole(bytes_max).await?))
    };
    let within = tokio::time::timeout(ASK_MAX, all).await;
    within.map_err(|_| away(format!("no answer within {ASK_MAX:?}")))?.map_err(away)
}

fn state_of(task: &Value) -> Option<State> {
    serde_json::from_value(task["status"]["state"].clone()).ok()
}

fn id_of(task: &Value) -> Result<String, Trouble> {
    let id = task["id"].as_str().filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| away("the agent answered without a task"))
}

/// Whether a task came to nothing, so that another attempt needs another one.
fn is_lost(state: State) -> bool {
    matches!(state, State::Failed | State::Canceled | State::Rejected)
}

impl Client {
    #[must_use]
    pub fn new(
        lobby: Lobby,
        outside: Arc<dyn Outside>,
        credentials: Credentials,
        external_url: Option<String>,
    ) -> Arc<Self> {
        let (cards, inbox) = (Mutex::default(), Inbox::default());
        Arc::new(Self { lobby, outside, credentials, external_url, cards, inbox })
    }

    async fn followed(&self, errand: &Errand) -> Result<Answer, Trouble> {
        let mut line = self.line(errand, false).await?;
        let mut task = match self.found(errand, &line).await {
            // What was shown may be over by now, which is tried once.
            Err(Trouble::Credentials(_)) => {
                line = self.line(errand, true).await?;
                self.found(errand, &line).await?
            }
            found => found?,
        };
        if let Some(found) = &task
            && let Some(message) = self.answer(errand, found)
        {
            task = match self.sent(errand, &line, &message).await? {
                Ok(task) => Some(task),
                Err(answer) => return Ok(answer),
            };
        }
        let task = match task {
            Some(task) => task,
            None => match self.sent(errand, &line, &first(errand)).await? {
                Ok(task) => task,
                Err(answer) => return Ok(answer),
            },
        };
        self.until_settled(errand, line, task).await
    }

    /// The task that work has become there already: as it was remembered, or as it can be found.
    async fn found(&self, errand: &Errand, line: &Line<'_>) -> Result<Option<Value>, Trouble> {
        let known = errand.remembered().await?;
        let known = known.and_then(|known| serde_json::from_value::<Remembered>(known).ok());
        if let Some(known) = known.filter(|known| known.url == line.spoken.url) {
            match line.get(&known.task).await {
                Ok(task) => {
                    let lost = state_of(&task).is_none_or(is_lost);
                    let of_before = known.attempt < errand.granted.handoff.claims;
                    if !(lost && of_before) {
                        return Ok(Some(task));
                    }
                }
                Err(Trouble::NoTask) => {}
                Err(trouble) => return Err(trouble),
            }
            return Ok(None);
        }
        if !errand.again || !line.lists() {
            return Ok(None);
        }
        // It may have been sent, and the broker ended before it heard of that.
        let mut there = match line.in_context(&context(errand)).await {
            Ok(there) => there,
            // Not everybody lists.
            Err(Trouble::Refused(_) | Trouble::NoTask) => Vec::new(),
            Err(trouble) => return Err(trouble),
        };
        there.retain(|task| state_of(task).is_some_and(|state| !is_lost(state)));
        let at = |task: &Value| task["status"]["timestamp"].as_str().map(str::to_owned);
        there.sort_by_key(at);
        let Some(task) = there.pop() else { return Ok(None) };
        self.remember(errand, line, &task).await?;
        // A list may leave out what the task has produced and what was said.
        Ok(Some(line.get(&id_of(&task)?).await?))
    }

    async fn remember(
        &self,
        errand: &Errand,
        line: &Line<'_>,
        task: &Value,
    ) -> Result<(), Trouble> {
        let attempt = errand.granted.handoff.claims;
        let known = Remembered { url: line.spoken.url.clone(), task: id_of(task)?, attempt };
        Ok(errand.remember(serde_json::to_value(known).unwrap_or_default()).await?)
    }

    /// Sends a message, and remembers what it became. An agent that answers without a task is done.
    async fn sent(
        &self,
        errand: &Errand,
        line: &Line<'_>,
        message: &Value,
    ) -> Result<Result<Value, Answer>, Trouble> {
        let mut configuration = json!({ "returnImmediately": true });
        if let Some(push) = self.push(errand).filter(|_| line.pushes) {
            configuration["taskPushNotificationConfig"] = push;
        }
        let asked = json!({ "message": message, "configuration": configuration });
        match line.send(asked).await? {
            Told::Message(message) => {
                let parts = serde_json::from_value(message["parts"].clone()).unwrap_or_default();
                let whole =
                    Artifact { artifact_id: "message".into(), parts, ..Artifact::default() };
                Ok(Err(completed(errand, &[whole])))
            }
            Told::Task(task) => {
                self.remember(errand, line, &task).await?;
                Ok(Ok(task))
            }
        }
    }

    /// Where the agent may tell of its work, if it can reach this broker.
    fn push(&self, errand: &Errand) -> Option<Value> {
        let base = self.external_url.as_ref()?;
        let id = errand.granted.handoff.id;
        let token = inbox::token(&self.lobby, id)?;
        let url = format!("{base}{}{id}", inbox::PATH);
        Some(json!({ "id": id, "url": url, "token": token }))
    }

    /// The message that answers what the agent asked, if its answer came with this claim.
    fn answer(&self, errand: &Errand, task: &Value) -> Option<Value> {
        let state = state_of(task).filter(|state| state.is_interrupted())?;
        let questions = &errand.granted.brought.questions;
        let last = questions.last().filter(|question| question.answered_at.is_some())?;
        let answer = last.answer.clone()?;
        let id = format!("{}-answer-{}", errand.granted.handoff.id, questions.len());
        let history = task["history"].as_array().map(Vec::as_slice).unwrap_or_default();
        if history.iter().any(|message| message["messageId"] == *id) {
            return None;
        }
        let part = match (&answer, state) {
            (Value::String(text), _) => Part::text(text.clone()),
            (answer, _) => Part::data(answer.clone()),
        };
        Some(json!({
            "messageId": id, "role": "ROLE_USER", "parts": [part],
            "taskId": task["id"], "contextId": task["contextId"],
        }))
    }

    /// Follows a task until it is at its end, or waits for somebody.
    async fn until_settled<'s>(
        &'s self,
        errand: &Errand,
        mut line: Line<'s>,
        mut task: Value,
    ) -> Result<Answer, Trouble> {
        let id = id_of(&task)?;
        let told = self.inbox.expect(errand.granted.handoff.id);
        let pushes = line.pushes && self.push(errand).is_some();
        let mut stream: Option<BoxStream<'static, ()>> = None;
        let mut subscribed = pushes || !line.streams;
        let (mut poll_ms, mut missed, mut said) = (POLL_MS, 0, String::new());
        loop {
            // Listening begins before looking, so that nothing slips in between.
            let news = told.news();
            tokio::pin!(news);
            news.as_mut().enable();
            if let Some(answer) = verdict(errand, &task)? {
                return Ok(answer);
            }
            let words = words(&task);
            if !words.is_empty() && words != said {
                errand.note(words.chars().take(2000).collect()).await?;
                said = words;
                poll_ms = POLL_MS;
            }
            if !subscribed {
                stream = line.subscribe(&id).await;
                subscribed = true;
            }
            let rest = if pushes || stream.is_some() { SURE_MS } else { poll_ms };
            tokio::select! {
                () = news => {}
                more = next(&mut stream) => if more.is_none() { stream = None },
                () = errand.sleep(rest) => {}
            }
            poll_ms = (poll_ms + poll_ms / 2).min(POLL_MS_MAX);
            match line.get(&id).await {
                Ok(found) => (task, missed) = (found, 0),
                Err(Trouble::Away { .. }) if missed < AWAY_MAX => missed += 1,
                Err(Trouble::Credentials(_)) if missed == 0 => {
                    line = self.line(errand, true).await?;
                    missed += 1;
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }
}

async fn next(stream: &mut Option<BoxStream<'static, ()>>) -> Option<()> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

/// The context of everything that is sent for a handoff, by which it is found again.
fn context(errand: &Errand) -> String {
    errand.granted.handoff.id.to_string()
}

/// The message that work is sent with. Its id is the same whenever the same attempt sends it.
fn first(errand: &Errand) -> Value {
    let envelope = errand.granted.envelope.as_ref();
    let envelope: Value =
        envelope.and_then(|it| serde_json::from_str(it.text()).ok()).unwrap_or_default();
    let said = said::message_of(&envelope);
    let message = Message {
        message_id: format!("{}-{}", context(errand), errand.granted.handoff.claims),
        context_id: Some(context(errand)),
        task_id: None,
        role: crate::model::Role::User,
        reference_task_ids: Vec::new(),
        ..said
    };
    serde_json::to_value(message).unwrap_or_default()
}

/// What the agent says of its work at the moment.
fn words(task: &Value) -> String {
    let message = serde_json::from_value::<Message>(task["status"]["message"].clone());
    message.map(|message| message.words()).unwrap_or_default()
}

fn completed(errand: &Errand, artifacts: &[Artifact]) -> Answer {
    let said = json!({
        "claim_id": errand.proof.claim_id,
        "fence": errand.proof.fence,
        "payload": said::payload_of(artifacts),
    });
    match serde_json::from_value(said) {
        Ok(result) => Answer::Completed(Box::new(result)),
        Err(error) => Answer::Unclear { problem: error.to_string(), retry_after_ms: None },
    }
}

/// What a task has come to, if there is something to do about it.
fn verdict(errand: &Errand, task: &Value) -> Result<Option<Answer>, Trouble> {
    let state = state_of(task).ok_or_else(|| away("the task has no state that is known"))?;
    let said = words(task);
    let or = |words: &str| if said.is_empty() { words.to_owned() } else { said.clone() };
    Ok(Some(match state {
        State::Submitted | State::Working => return Ok(None),
        State::Completed => {
            let whole: Task = serde_json::from_value(task.clone())
                .map_err(|_| away("the task is not as the protocol says"))?;
            let mut artifacts = whole.artifacts;
            artifacts.retain(Artifact::is_whole);
            if let (true, Some(message)) = (artifacts.is_empty(), whole.status.message) {
                let parts = message.parts;
                artifacts.push(Artifact {
                    artifact_id: "message".into(),
                    parts,
                    ..Artifact::default()
                });
            }
            completed(errand, &artifacts)
        }
        State::Failed => failed(errand, "retryable", "a2a_failed", &or("the agent failed"), None),
        State::Canceled => {
            let hint = Some("redrive it, or hand it to another agent");
            failed(errand, "permanent", "a2a_canceled", &or("the agent cancelled it"), hint)
        }
        State::Rejected => Answer::Declined { reason: Some(or("the agent rejected it")) },
        State::InputRequired | State::AuthRequired => {
            let authorization = state == State::AuthRequired;
            let asked = json!({
                "claim_id": errand.proof.claim_id,
                "fence": errand.proof.fence,
                "kind": if authorization { "authorization" } else { "input" },
                "text": or(if authorization { "May it?" } else { "What else?" }),
                "details": { "message": task["status"]["message"] },
            });
            match serde_json::from_value(asked) {
                Ok(ask) => Answer::Asked(Box::new(ask)),
                Err(error) => return Err(away(error.to_string())),
            }
        }
    }))
}

#[async_trait]
impl Envoy for Client {
    async fn follow(&self, errand: &Errand) -> Answer {
        match self.followed(errand).await {
            Ok(answer) => answer,
            Err(trouble) => trouble.answer(errand),
        }
    }

    async fn call_off(&self, errand: &Errand) {
        let cancelled = async {
            let known = errand.remembered().await?;
            let known = known.and_then(|known| serde_json::from_value::<Remembered>(known).ok());
            let Some(known) = known else { return Ok(()) };
            let line = self.line(errand, false).await?;
            line.cancel(&known.task).await.map(drop)
        };
        if let Err(trouble) = Box::pin(cancelled).await {
            let trouble: Trouble = trouble;
            tracing::info!(handoff = %errand.granted.handoff.id, agent = %errand.agent, ?trouble,
                "the agent could not be told that its work is called off");
        }
    }
}
