// SPDX-License-Identifier: Apache-2.0
//! A task of this protocol, told from the log of ours. It begins with an offer and follows the work:
//! through retries, other receivers and hops, to the end of the chain. What it is called is the id of
//! the offer it begins with, so nothing has to be remembered to find it again, and whoever reads the
//! same log tells the same: after a restart, on another broker, in every stream.
//!
//! What is at its end here does not change. Work that a dead letter held may go on all the same, with a
//! new offer; that is a new task, which refers to this one.

use serde_json::{Map, Value, json};
use tasuki_core::event::{DeadReason, Event, Offered};
use tasuki_core::report::{FailureReport, Note};
use tasuki_core::talk::{
    AnswerReport, ArtifactReport, MessageReport, QuestionKind, QuestionReport,
};
use tasuki_core::{AgentId, HandoffId, Record, Target, TaskId, Timestamp};
use tasuki_engine::{ChainEntry, REMEMBERED_KIND};

use crate::extension;
use crate::model::{Artifact, ArtifactUpdate, Message, Part, Piece, Role, State, Status};
use crate::model::{StatusUpdate, Task};
use crate::said;

/// What the result is called among the artifacts of its task.
const RESULT: &str = "result";

/// Everything that this protocol can tell of some work.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) id: HandoffId,
    pub(crate) task_id: TaskId,
    pub(crate) context_id: String,
    /// Who sent it.
    pub(crate) from: AgentId,
    /// Whom it was for, and whom the work was for that it goes on with.
    pub(crate) to: [Target; 2],
    /// The hop that it has come to.
    pub(crate) live: HandoffId,
    pub(crate) asks: Option<QuestionKind>,
    pub(crate) updated_at: Timestamp,
    pub(crate) status: Status,
    artifacts: Vec<Artifact>,
    history: Vec<Message>,
    /// Everything that happened since, one after the other.
    pub(crate) updates: Vec<Piece>,
    facts: Facts,
    /// How many events of the log this was told from.
    pub(crate) events: u32,
}

/// What our extension says.
#[derive(Debug, Clone)]
struct Facts {
    hop: u32,
    attempt: u32,
    holder: Option<AgentId>,
    receiver: Target,
    reason: Option<&'static str>,
    hash: String,
}

/// Tells the story that begins with an offer, from everything that happened to its task.
pub(crate) fn told(chain: &[ChainEntry], id: HandoffId) -> Option<Story> {
    let events = u32::try_from(chain.len()).unwrap_or(u32::MAX);
    let record = |link: &ChainEntry| link.entry.sealed.record.clone();
    let mut context = None;
    let mut first = None;
    let mut story: Option<Story> = None;
    for link in chain {
        let record = record(link);
        let body = link.body.as_ref().map(tasuki_core::Body::text);
        let opened = match &record.event {
            Event::TaskOpened(opened) => Some(opened),
            event => event.offered().and_then(|(offered, _)| offered.opens.as_ref()),
        };
        if let Some(opened) = opened {
            context = opened.correlation_id.as_ref().map(ToString::to_string);
        }
        let offered = record.event.offered().map(|(offered, _)| offered);
        if first.is_none() {
            first = offered.map(|offered| offered.to.clone());
        }
        let hash = link.entry.sealed.hash.to_string();
        match (&mut story, offered) {
            (None, Some(offered)) if record.handoff_id == Some(id) => {
                let context = context.clone().unwrap_or_else(|| record.task_id.to_string());
                let to = [offered.to.clone(), first.clone().unwrap_or(offered.to.clone())];
                story = Some(Story::begun(&record, offered, body, context, to, hash));
            }
            (None, _) => {}
            (Some(story), _) if story.status.state.is_terminal() => break,
            (Some(story), _) => {
                story.facts.hash = hash;
                story.hear(&record, body);
            }
        }
    }
    if let Some(story) = &mut story {
        story.events = events;
    }
    story
}

fn read<T: serde::de::DeserializeOwned>(body: Option<&str>) -> Option<T> {
    body.and_then(|body| serde_json::from_str(body).ok())
}

fn note(body: Option<&str>) -> Option<String> {
    read::<Note>(body).map(|note| note.text)
}

impl Story {
    fn begun(
        record: &Record,
        offered: &Offered,
        body: Option<&str>,
        context_id: String,
        to: [Target; 2],
        hash: String,
    ) -> Self {
        let id = record.handoff_id.expect("an offer is an event of its handoff");
        let envelope: Option<Value> = read(body);
        let mut message = envelope.as_ref().map(said::message_of).unwrap_or_default();
        message.task_id = Some(id.to_string());
        message.context_id = Some(context_id.clone());
        if message.message_id.is_empty() {
            message.message_id = format!("{id}-message");
        }
        let before = offered.redrive_of.map(|redrive| redrive.handoff_id).or(offered.amends);
        if let Some(before) = before.map(|before| before.to_string())
            && !message.reference_task_ids.contains(&before)
        {
            message.reference_task_ids.push(before);
        }
        let mut story = Self {
            id,
            task_id: record.task_id,
            context_id,
            from: offered.from.clone(),
            to,
            live: id,
            asks: None,
            updated_at: record.at,
            status: Status {
                state: State::Submitted,
                message: None,
                timestamp: Some(record.at.to_string()),
                more: Map::new(),
            },
            artifacts: Vec::new(),
            history: vec![message],
            updates: Vec::new(),
            facts: Facts {
                hop: offered.hop,
                attempt: 0,
                holder: None,
                receiver: offered.to.clone(),
                reason: None,
                hash,
            },
            events: 0,
        };
        if offered.needs_approval {
            story.status.message = Some(story.words("waits for somebody to approve it"));
        }
        story
    }

    /// What the agent, or the broker in its place, says.
    fn says(&self, parts: Vec<Part>) -> Message {
        Message {
            message_id: format!("{}-{}", self.id, self.updates.len() + 1),
            context_id: Some(self.context_id.clone()),
            task_id: Some(self.id.to_string()),
            role: Role::Agent,
            parts,
            ..Message::default()
        }
    }

    fn words(&self, text: impl Into<String>) -> Message {
        self.says(vec![Part::text(text)])
    }

    fn metadata(&self) -> Map<String, Value> {
        let facts = &self.facts;
        let mut told = json!({
            "taskId": self.task_id,
            "handoffId": self.live,
            "hop": facts.hop,
            "attempt": facts.attempt,
            "to": facts.receiver,
            "generation": self.updates.len() + 1,
            "auditHash": facts.hash,
        });
        if let Some(holder) = &facts.holder {
            told["holder"] = json!(holder);
        }
        if let Some(reason) = facts.reason {
            told["reason"] = json!(reason);
        }
        Map::from_iter([(extension::URI.to_owned(), told)])
    }

    fn moved(&mut self, record: &Record, state: State, message: Option<Message>) {
        self.updated_at = record.at;
        if let Some(message) = &message {
            self.history.push(message.clone());
        }
        self.status =
            Status { state, message, timestamp: Some(record.at.to_string()), more: Map::new() };
        self.updates.push(Piece::StatusUpdate(StatusUpdate {
            task_id: self.id.to_string(),
            context_id: self.context_id.clone(),
            status: self.status.clone(),
            metadata: None,
        }));
        let told = self.metadata();
        if let Some(Piece::StatusUpdate(update)) = self.updates.last_mut() {
            update.metadata = Some(told);
        }
    }

    fn moved_with(&mut self, record: &Record, state: State, words: impl Into<String>) {
        let message = self.words(words);
        self.moved(record, state, Some(message));
    }

    fn heard_user(&mut self, message: Message) {
        self.history.push(Message {
            role: Role::User,
            context_id: Some(self.context_id.clone()),
            task_id: Some(self.id.to_string()),
            ..message
        });
    }

    fn brought(&mut self, record: &Record, artifact: Artifact, append: bool, last_chunk: bool) {
        self.updated_at = record.at;
        let same = |known: &&mut Artifact| known.artifact_id == artifact.artifact_id;
        match self.artifacts.iter_mut().find(same) {
            Some(known) if append => known.parts.extend(artifact.parts.iter().cloned()),
            Some(known) => *known = artifact.clone(),
            None => self.artifacts.push(artifact.clone()),
        }
        self.updates.push(Piece::ArtifactUpdate(ArtifactUpdate {
            task_id: self.id.to_string(),
            context_id: self.context_id.clone(),
            artifact,
            append,
            last_chunk,
            metadata: None,
        }));
        let told = self.metadata();
        if let Some(Piece::ArtifactUpdate(update)) = self.updates.last_mut() {
            update.metadata = Some(told);
        }
    }

    /// What came of it in the end.
    fn completed(&mut self, record: &Record, body: Option<&str>) {
        self.facts.holder = None;
        let report: Option<Value> = read(body);
        let payload = report.as_ref().and_then(|report| report.get("payload"));
        for artifact in
            payload.map(|payload| said::artifacts_of(payload, RESULT)).unwrap_or_default()
        {
            self.brought(record, artifact, false, true);
        }
        let action = report.as_ref().and_then(|report| report["action"].as_str());
        match action.filter(|action| *action != "completed") {
            Some(action) => self.moved_with(record, State::Completed, action),
            None => self.moved(record, State::Completed, None),
        }
    }

    fn back_in_line(&mut self, record: &Record, why: String) {
        self.facts.holder = None;
        self.asks = None;
        self.moved_with(record, State::Submitted, why);
    }

    fn hear(&mut self, record: &Record, body: Option<&str>) {
        let of_live = record.handoff_id == Some(self.live);
        match &record.event {
            Event::TransferOffered(offered) | Event::CallOffered(offered) => {
                self.live = record.handoff_id.unwrap_or(self.live);
                self.facts.hop = offered.hop;
                self.facts.attempt = 0;
                self.facts.holder = None;
                self.facts.receiver = offered.to.clone();
                self.moved_with(
                    record,
                    State::Working,
                    format!("handed on to {}", name(&offered.to)),
                );
            }
            Event::Approved => self.moved(record, State::Submitted, None),
            Event::Claimed(claimed) => {
                self.facts.holder = Some(claimed.agent.clone());
                self.facts.attempt = claimed.attempt;
                self.asks = None;
                self.moved(record, State::Working, None);
            }
            Event::Progressed { note: Some(_), .. } => {
                if let Some(text) = note(body) {
                    self.moved_with(record, State::Working, text);
                }
            }
            Event::Asked(asked) => {
                self.asks = Some(asked.kind);
                let state = match asked.kind {
                    QuestionKind::Input => State::InputRequired,
                    QuestionKind::Authorization => State::AuthRequired,
                };
                let mut parts = Vec::new();
                match read::<QuestionReport>(body) {
                    Some(question) => {
                        parts.push(Part::text(question.text.clone()));
                        let schema = question.answer_schema();
                        if schema.is_some() || !question.details.is_empty() {
                            let more = json!({ "details": question.details, "schema": schema });
                            parts.push(Part::data(more));
                        }
                    }
                    None => parts.push(Part::text("The question is no longer kept.")),
                }
                let message = self.says(parts);
                self.moved(record, state, Some(message));
            }
            Event::Answered { .. } => {
                self.asks = None;
                if let Some(report) = read::<AnswerReport>(body) {
                    let parts = vec![match report.answer {
                        Value::String(text) => Part::text(text),
                        answer => Part::data(answer),
                    }];
                    let message_id = format!("{}-answer-{}", self.id, record.index);
                    self.heard_user(Message { message_id, parts, ..Message::default() });
                }
                self.moved(record, State::Working, None);
            }
            Event::AnswerDefaulted { .. } => {
                self.asks = None;
                self.moved_with(record, State::Working, "nobody answered in time, so it goes on");
            }
            Event::KeepEnded => self.back_in_line(record, "waits for somebody to go on".into()),
            Event::MessageSent { .. } => {
                if let Some(report) = read::<MessageReport>(body) {
                    self.heard_user(said::word_of(&report, self.id, record.index));
                }
            }
            Event::Attached(_) => {
                let report = read::<ArtifactReport>(body);
                // What the broker notes for itself is nothing for the sender.
                if let Some(report) = report.filter(|it| it.kind != REMEMBERED_KIND) {
                    let (artifact, append, last) = said::attached(&report);
                    self.brought(record, artifact, append, last);
                }
            }
            Event::Completed { next: None, .. } if of_live => self.completed(record, body),
            Event::TaskCompleted { .. } => self.completed(record, body),
            Event::AttemptFailed { .. } => {
                let why = read::<FailureReport>(body).map(|report| report.message);
                let attempt = self.facts.attempt;
                let why = why.unwrap_or_else(|| "no reason is kept".into());
                self.back_in_line(record, format!("attempt {attempt} failed: {why}"));
            }
            Event::Declined { agent, .. } if of_live => {
                let why = note(body).map_or_else(String::new, |why| format!(": {why}"));
                self.back_in_line(record, format!("{agent} declined{why}"));
            }
            Event::Released { .. } | Event::PutBack { .. } => {
                self.back_in_line(record, "given back, waits to be claimed again".into());
            }
            Event::LeaseLost { cause, .. } => {
                let attempt = self.facts.attempt;
                self.back_in_line(record, format!("attempt {attempt} was lost ({cause})"));
            }
            Event::Escalated { to, reason, .. } => {
                self.facts.receiver = to.clone();
                self.back_in_line(record, format!("{reason}: goes to {} now", name(to)));
            }
            Event::DeadLettered { reason, .. } if of_live => {
                self.facts.holder = None;
                self.facts.reason = Some(reason.as_str());
                let state = match reason {
                    DeadReason::Declined | DeadReason::Rejected => State::Rejected,
                    DeadReason::AttemptsExhausted
                    | DeadReason::PermanentFailure
                    | DeadReason::Poison
                    | DeadReason::Expired
                    | DeadReason::Unacknowledged
                    | DeadReason::HopLimit
                    | DeadReason::Cycle
                    | DeadReason::BudgetExhausted
                    | DeadReason::Deadlock => State::Failed,
                };
                let why = last_words(&self.history);
                let why = why.map_or_else(|| reason.to_string(), |why| format!("{reason}: {why}"));
                self.moved_with(record, state, why);
            }
            Event::Cancelled { .. } if self.live == self.id && of_live => {
                self.ended(record, State::Canceled, body, "cancelled");
            }
            Event::Cancelled { .. } if of_live => {
                let text = "taken back by the agent that handed it on".to_owned();
                self.facts.holder = None;
                self.moved_with(record, State::Working, text);
            }
            Event::TaskCancelled { .. } => {
                self.ended(record, State::Canceled, body, "cancelled");
            }
            Event::Aborted { .. } => self.ended(record, State::Failed, body, "aborted"),
            // What follows from these is told by the event that comes with it, or changes nothing here.
            _ => {}
        }
    }

    fn ended(&mut self, record: &Record, state: State, body: Option<&str>, reason: &'static str) {
        self.facts.holder = None;
        if state == State::Failed {
            self.facts.reason = Some(reason);
        }
        match note(body) {
            Some(why) => self.moved_with(record, state, why),
            None => self.moved(record, state, None),
        }
    }

    /// How it stands.
    pub(crate) fn task(&self) -> Task {
        Task {
            id: self.id.to_string(),
            context_id: self.context_id.clone(),
            status: self.status.clone(),
            artifacts: self.artifacts.clone(),
            history: self.history.clone(),
            metadata: Some(self.metadata()),
            more: Map::new(),
        }
    }

    /// Which change of the task was the last one.
    pub(crate) fn generation(&self) -> usize {
        self.updates.len() + 1
    }
}

fn last_words(history: &[Message]) -> Option<String> {
    let said = history.iter().rev().find(|message| message.role == Role::Agent)?;
    Some(said.words()).filter(|words| !words.is_empty())
}

fn name(target: &Target) -> String {
    match target {
        Target::Agent(agent) => agent.to_string(),
        Target::Capability(capability) => format!("whoever can {capability}"),
    }
}
