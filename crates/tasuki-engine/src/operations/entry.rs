// SPDX-License-Identifier: Apache-2.0
//! An operation without its types, as doors see it.

use std::sync::OnceLock;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tasuki_core::envelope::Fault;
use tasuki_protocol::read::{self, Form};
use tasuki_protocol::{Code, Members, Problem, schema_of};

use super::{Answer, Facts, On, Operation, Outcome, Public, Right, SchemaOf, Streamed};
use super::{schema, shown};
use crate::desk::Desk;
use crate::lobby::Lobby;
use crate::schemas::Shape;

/// What most replies have room in, so that they are not moved while they grow.
const REPLY_BYTES: usize = 1024;

/// One line of the table.
pub struct Entry {
    pub facts: Facts,
    /// Its place in the table.
    pub number: usize,
    /// What it is about.
    pub on: &'static [&'static str],
    pub asks: SchemaOf,
    pub answers: SchemaOf,
    known: fn() -> Members,
    shape: fn() -> Option<Shape>,
    members: OnceLock<Members>,
    every: OnceLock<Option<Shape>>,
    call: Call,
}

/// How it is carried out.
enum Call {
    Desk(fn(&'static Entry, Desk, &[String], Given<'_>) -> Result<Running, Problem>),
    Lobby(fn(&'static Entry, Lobby, Given<'_>) -> Result<Running, Problem>),
    /// By the door, event by event.
    Streamed,
}

/// An operation that was asked for in a form that can be read.
type Running = BoxFuture<'static, Result<Reply, Problem>>;

/// What is asked, as it comes.
#[derive(Debug, Clone, Copy)]
pub enum Given<'g> {
    Json(&'g [u8]),
    /// A part of something that was read before.
    Value(&'g Value),
    /// The query of a URL.
    Query(&'g str),
}

/// What is answered, as JSON.
#[derive(Debug)]
pub struct Reply {
    pub body: Vec<u8>,
    pub outcome: Outcome,
}

impl Entry {
    pub(super) fn of<O: Operation>() -> Self {
        let call = Call::Desk(at_a_desk::<O>);
        let entry = Self::new::<O::In>(O::FACTS, O::ANSWERS, call);
        Self { on: O::On::NAMES, asks: O::ASKS, ..entry }
    }

    pub(super) fn public<O: Public>() -> Self {
        Self::new::<O::In>(O::FACTS, schema::<O::Out>, Call::Lobby(in_the_lobby::<O>))
    }

    pub(super) fn streamed<O: Streamed>() -> Self {
        Self::new::<O::In>(O::FACTS, O::PIECES, Call::Streamed)
    }

    fn new<In: JsonSchema>(facts: Facts, answers: SchemaOf, call: Call) -> Self {
        Self {
            facts,
            number: 0,
            on: &[],
            asks: schema::<In>,
            answers,
            known: Members::of::<In>,
            shape: shape::<In>,
            members: OnceLock::new(),
            every: OnceLock::new(),
            call,
        }
    }

    /// The codes of its own, besides those that any operation may answer with.
    pub fn errors(&self) -> impl Iterator<Item = Code> {
        self.facts.errors.iter().flat_map(|some| some.iter().copied())
    }

    /// Which members what is asked may have.
    pub fn members(&self) -> &Members {
        self.members.get_or_init(self.known)
    }

    /// Whether there is anything to ask besides what it is about.
    pub fn takes_members(&self) -> bool {
        self.members().names().next().is_some()
    }

    /// Whether nobody is asked who it is.
    pub fn is_public(&self) -> bool {
        self.facts.right == Right::Public
    }

    /// Whether it is answered piece by piece.
    pub fn is_streamed(&self) -> bool {
        matches!(self.call, Call::Streamed)
    }

    /// Carries the operation out for the caller at a desk. `on` has what it is about, in order.
    pub async fn run(
        &'static self,
        desk: Desk,
        on: &[String],
        given: Given<'_>,
    ) -> Result<Reply, Problem> {
        self.may_ask(&desk)?;
        match self.call {
            Call::Desk(call) => call(self, desk, on, given)?.await,
            Call::Lobby(call) => call(self, Lobby { engine: desk.engine }, given)?.await,
            Call::Streamed => Err(shown::missing()),
        }
    }

    /// Carries out an operation that is anybody's.
    pub async fn run_public(
        &'static self,
        lobby: Lobby,
        given: Given<'_>,
    ) -> Result<Reply, Problem> {
        match self.call {
            Call::Lobby(call) => call(self, lobby, given)?.await,
            Call::Desk(_) | Call::Streamed => Err(shown::missing()),
        }
    }

    /// Whether the caller at a desk may ask for it at all.
    pub fn may_ask(&self, desk: &Desk) -> Result<(), Problem> {
        match self.facts.right {
            Right::Has(permission) => Ok(desk.caller.must_somewhere(permission)?),
            Right::Operator => Ok(desk.operates()?),
            Right::Public
            | Right::Known
            | Right::Each(_)
            | Right::Decides(_)
            | Right::LooksAfter(_) => Ok(()),
        }
    }

    /// Reads what is asked, by the one reader there is.
    pub fn asked<T: DeserializeOwned + 'static>(
        &self,
        given: Given<'_>,
        first: impl FnOnce(&mut Value) -> Result<(), Problem>,
    ) -> Result<T, Problem> {
        let every = |value: &Value| self.every_fault(value);
        let form = Form { members: self.members(), every: &every };
        match given {
            Given::Query(text) => read::query(text, &form),
            Given::Json(bytes) => read::request(bytes, &form, first),
            Given::Value(value) => {
                let mut value = value.clone();
                first(&mut value)?;
                read::plain(&value, &form)
            }
        }
    }

    fn every_fault(&self, value: &Value) -> Vec<Fault> {
        let shape = self.every.get_or_init(self.shape);
        shape.as_ref().map(|shape| shape.faults(value)).unwrap_or_default()
    }
}

fn shape<T: JsonSchema>() -> Option<Shape> {
    Shape::of(&schema_of::<T>().to_value())
}

fn at_a_desk<O: Operation>(
    entry: &'static Entry,
    desk: Desk,
    on: &[String],
    given: Given<'_>,
) -> Result<Running, Problem> {
    let names = on;
    let on = O::On::read(names)?;
    // Every text that may be stored comes by here, whatever it is for. The id of some work is no text.
    if on.subject().is_none() {
        desk.engine.no_secrets_in_names(&entry.facts, O::On::NAMES, names)?;
    }
    let asked: O::In = entry.asked(given, |asked| {
        desk.engine.no_secrets(&entry.facts, asked)?;
        Ok(O::first(&desk, asked)?)
    })?;
    let subject = on.subject();
    let run = async move {
        match O::run(&desk, on, asked).await.map(Reply::of) {
            Ok(reply) => Ok(reply),
            Err(problem) => Err(desk.unless_hidden(subject, problem).await),
        }
    };
    Ok(run.boxed())
}

fn in_the_lobby<O: Public>(
    entry: &'static Entry,
    lobby: Lobby,
    given: Given<'_>,
) -> Result<Running, Problem> {
    let asked: O::In = entry.asked(given, |_| Ok(()))?;
    Ok(async move { O::run(&lobby, asked).await.map(Reply::of) }.boxed())
}

impl Reply {
    fn of<T: Serialize>(answer: Answer<T>) -> Self {
        let Answer { said, outcome } = answer;
        let mut body = Vec::with_capacity(REPLY_BYTES);
        serde_json::to_writer(&mut body, &said).expect("a reply has string keys only");
        Self { body, outcome }
    }
}
