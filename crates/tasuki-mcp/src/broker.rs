// SPDX-License-Identifier: Apache-2.0
//! Where operations are carried out. A tool does not know whether that is at a desk in this process,
//! which a request over HTTP or an embedded broker leads to, or at a broker elsewhere.

use std::sync::Arc;

use async_trait::async_trait;
use axum::http::request::Parts;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tasuki_core::document::Scope;
use tasuki_core::{Event, HandoffId, Position, Record, TaskId};
use tasuki_engine::operations::{self, Entry, Facts, Given, Operation, Streamed, streams};
use tasuki_engine::{Caller, Desk, Lobby};
use tasuki_front::Front;
use tasuki_protocol::Problem;

/// A broker, as one caller may use it.
#[async_trait]
pub trait Broker: Send + Sync + 'static {
    /// Carries out an operation of the table. The answer is JSON, as the operation wrote it.
    async fn ask(
        &self,
        entry: &'static Entry,
        on: &[String],
        asked: &Value,
    ) -> Result<String, Problem>;

    /// The agent that the caller speaks for, if it said so.
    fn agent(&self) -> Option<String>;

    /// One item each time something happened that may have changed a subject. It ends when the caller
    /// may not know any more, or the broker goes away.
    async fn changes(&self, of: Subject) -> Result<BoxStream<'static, ()>, Problem>;
}

/// What changes are told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Handoff(HandoffId),
    Task(TaskId),
    /// The shared contexts of projects. Which of them, whoever listens finds out by looking.
    Contexts,
}

impl Subject {
    /// Whether an event may have changed it.
    #[must_use]
    pub fn is_of(self, record: &Record) -> bool {
        match self {
            Self::Handoff(handoff) => record.handoff_id == Some(handoff),
            Self::Task(task) => record.task_id == task,
            Self::Contexts => match &record.event {
                Event::DocumentWritten(written) => matches!(written.scope, Scope::Project(_)),
                event => matches!(event, Event::Erased(_)),
            },
        }
    }
}

/// Asks for an operation by its type.
pub(crate) async fn ask<O: Operation>(
    broker: &dyn Broker,
    on: &[String],
    asked: &Value,
) -> Result<String, Problem> {
    broker.ask(entry(&O::FACTS), on, asked).await
}

fn entry(facts: &Facts) -> &'static Entry {
    operations::entry(facts)
}

/// A request over HTTP whose caller is known by now.
pub(crate) struct OverHttp {
    pub(crate) front: Front,
    pub(crate) parts: Parts,
    pub(crate) caller: Caller,
    /// Whom the address names, where nobody has to say who it is.
    pub(crate) named: Option<String>,
}

#[async_trait]
impl Broker for OverHttp {
    async fn ask(
        &self,
        entry: &'static Entry,
        on: &[String],
        asked: &Value,
    ) -> Result<String, Problem> {
        let reply = self.front.ask(entry, &self.caller, &self.parts, on, asked).await?;
        text(reply.body)
    }

    fn agent(&self) -> Option<String> {
        let known = || self.caller.agent().map(ToString::to_string);
        self.named.clone().or_else(known)
    }

    async fn changes(&self, of: Subject) -> Result<BoxStream<'static, ()>, Problem> {
        let held = self.front.hold(entry(&streams::Events::FACTS), &self.caller, &self.parts)?;
        let changes = followed(self.front.lobby.desk(self.caller.clone()), of).await?;
        Ok(changes.inspect(move |()| drop_later(&held)).boxed())
    }
}

/// Keeps what it is given for as long as the closure that calls it lives.
fn drop_later<T>(_: &T) {}

/// A broker in this process whose callers need not say who they are.
pub struct Embedded {
    lobby: Lobby,
    agent: String,
}

impl Embedded {
    pub fn new(lobby: impl Into<Lobby>, agent: String) -> Arc<Self> {
        Arc::new(Self { lobby: lobby.into(), agent })
    }
}

#[async_trait]
impl Broker for Embedded {
    async fn ask(
        &self,
        entry: &'static Entry,
        on: &[String],
        asked: &Value,
    ) -> Result<String, Problem> {
        let desk = self.lobby.desk(Caller::Anyone);
        text(entry.run(desk, on, Given::Value(asked)).await?.body)
    }

    fn agent(&self) -> Option<String> {
        Some(self.agent.clone())
    }

    async fn changes(&self, of: Subject) -> Result<BoxStream<'static, ()>, Problem> {
        followed(self.lobby.desk(Caller::Anyone), of).await
    }
}

fn text(body: Vec<u8>) -> Result<String, Problem> {
    String::from_utf8(body).map_err(|_| Problem::invalid("body", "is not UTF-8"))
}

/// How many events are read from the store at a time.
const PAGE: usize = 200;

/// Follows the log from now on. Where it cannot be promised that every event was seen, that counts as a
/// change: who hears of one looks again.
async fn followed(desk: Desk, of: Subject) -> Result<BoxStream<'static, ()>, Problem> {
    desk.may_follow()?;
    let from = desk.head();
    let pages = stream::unfold((desk, from), move |(desk, mut last)| async move {
        loop {
            if !desk.more_events(last).await {
                return None;
            }
            let desk = desk.renewed().ok()?;
            desk.may_follow().ok()?;
            let (entries, sight) = desk.events_with_tasks(last, PAGE).await.ok()?;
            let Some(newest) = entries.last().map(|entry| entry.sealed.position) else {
                // The end of the log was lost in a failover.
                return Some(((), (desk.clone(), desk.head())));
            };
            let first = entries.first().map_or(last, |entry| entry.sealed.position);
            let mut changed = first > Position(last.0 + 1);
            last = newest;
            for entry in &entries {
                let about = of.is_of(&entry.sealed.record);
                changed |=
                    about && (of == Subject::Contexts || desk.sees_event(entry, &sight).await);
            }
            if changed {
                return Some(((), (desk.clone(), last)));
            }
        }
    });
    Ok(pages.boxed())
}
