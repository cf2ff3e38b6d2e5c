// SPDX-License-Identifier: Apache-2.0
//! A request for an operation, from who asks to what is recorded: the same for every door.

use std::future::Future;
use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde_json::Value;
use tasuki_engine::operations::{Entry, Given, Reply};
use tasuki_engine::{Ambient, Caller, Desk, Ended};
use tasuki_protocol::{Code, Problem, read};
use tracing::Instrument;

use crate::error::Failed;
use crate::gate::RequestId;
use crate::seats::{Crowded, Whose, network};
use crate::serve::CameBy;
use crate::waits::Waiting;
use crate::{Front, auth, body};

/// Why a request is not served, in whatever form a door tells it.
pub trait Refused {
    /// The code of it, where it has one of ours.
    fn code(&self) -> Option<Code>;
}

impl Refused for Failed {
    fn code(&self) -> Option<Code> {
        self.0.known()
    }
}

/// What a request is about, in the order of the operation.
pub type About = Result<Vec<String>, Problem>;

impl Front {
    /// Serves whoever asks for an operation: finds out who that is, takes it in, lets `run` answer, and
    /// records what was refused.
    pub async fn serve<F>(
        &self,
        entry: &'static Entry,
        about: &About,
        parts: &Parts,
        run: impl FnOnce(Desk) -> F,
    ) -> Response
    where
        F: Future<Output = Result<Response, Failed>>,
    {
        let facts = &entry.facts;
        let id = parts.extensions.get::<RequestId>().map_or("", |id| &id.0);
        let span = tracing::debug_span!("operation", name = facts.name, request_id = id);
        let served = async {
            let caller = match self.caller(parts).await {
                Ok(caller) => caller,
                Err(failed) => return failed.into_response(),
            };
            let served = self.serve_known(entry, &caller, about, parts, run).await;
            served.unwrap_or_else(|failed: Failed| failed.into_response())
        };
        let response = served.instrument(span).await;
        self.count(entry, &response);
        response
    }

    /// Counts a request by how it was answered.
    pub fn count(&self, entry: &Entry, response: &Response) {
        let problem = response.extensions().get::<Arc<Problem>>();
        let ended = match response.status().as_u16() {
            500.. => Ended::Failed,
            400.. => Ended::Refused,
            _ => Ended::Done,
        };
        self.lobby.note_answered(entry, ended, problem.and_then(|problem| problem.known()));
    }

    /// Who a request is from. It keeps its connection while it is being served.
    pub async fn caller(&self, parts: &Parts) -> Result<Caller, Failed> {
        let caller = auth::authenticate(self, parts).await?;
        self.keeps_place(&caller, parts)?;
        Ok(caller)
    }

    /// Serves a caller that was met: takes it in, lets `run` answer, and records what was refused.
    pub async fn serve_known<F, E>(
        &self,
        entry: &'static Entry,
        caller: &Caller,
        about: &About,
        parts: &Parts,
        run: impl FnOnce(Desk) -> F,
    ) -> Result<Response, E>
    where
        F: Future<Output = Result<Response, E>>,
        E: From<Failed> + Refused,
    {
        let held = self.hold(entry, caller, parts).map_err(Failed)?;
        self.lobby.admit(caller, entry.facts.kind).map_err(Failed::from)?;
        let running = run(self.lobby.desk(caller.clone()));
        let failed = match Ambient::around(traced(parts), running).await {
            // A stream counts until its end.
            Ok(response) if entry.is_streamed() => {
                return Ok(response.map(|body| until_its_end(body, held)));
            }
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        let about = about.as_deref().unwrap_or_default();
        self.note(entry, caller, about, failed.code()).await;
        Err(failed)
    }

    /// Carries out one of the operations that a request comes to, where a protocol says in the body
    /// which ones those are: takes it in, and records what was refused.
    pub async fn ask(
        &self,
        entry: &'static Entry,
        caller: &Caller,
        parts: &Parts,
        on: &[String],
        asked: &Value,
    ) -> Result<Reply, Problem> {
        let span = tracing::debug_span!("operation", name = entry.facts.name);
        let asking = async {
            let _held = self.hold(entry, caller, parts)?;
            self.lobby.admit(caller, entry.facts.kind)?;
            let desk = self.lobby.desk(caller.clone());
            let running = entry.run(desk, on, Given::Value(asked));
            let done = Ambient::around(traced(parts), running).await;
            if let Err(problem) = &done {
                self.note(entry, caller, on, problem.known()).await;
            }
            done
        };
        asking.instrument(span).await
    }

    /// Counts an operation that waits, or that answers piece by piece, for as long as what is returned
    /// lives.
    pub fn hold(&self, entry: &Entry, caller: &Caller, parts: &Parts) -> Result<Held, Problem> {
        let waits = entry.facts.waits || entry.is_streamed();
        Ok(Held { _waiting: waits.then(|| self.wait(caller, parts)).transpose()? })
    }

    /// Writes down what somebody known tried and may not do.
    async fn note(&self, entry: &Entry, caller: &Caller, about: &[String], code: Option<Code>) {
        if let Some(code) = code {
            let tried = std::iter::once(entry.facts.name).chain(about.iter().map(String::as_str));
            let tried: Vec<_> = tried.collect();
            self.lobby.note_denied(caller, code, &tried.join(" ")).await;
        }
    }

    /// Whoever is known and asks for something keeps its connection. In the places that are kept for
    /// those who look after the broker nobody else is served.
    fn keeps_place(&self, caller: &Caller, parts: &Parts) -> Result<(), Failed> {
        let Some(by) = parts.extensions.get::<CameBy>() else { return Ok(()) };
        let whose = match caller.agent() {
            None => Whose::Anybodys,
            Some(_) if self.lobby.looks_after_all(caller) => Whose::Keepers,
            Some(agent) => Whose::Agents(agent.clone(), caller.tenant()),
        };
        by.seat.is(whose).map_err(|crowded| match crowded {
            Crowded::All => Failed::from(Problem::new(
                Code::Overloaded,
                "every connection that there may be is in use",
                "wait for the time in Retry-After, or raise limits.connections_max",
            )),
            Crowded::Share(full) => Problem::new(
                Code::QuotaExceeded,
                full,
                "end some of them, or wait for the time in Retry-After and ask again",
            )
            .detail("retry_after_ms", 1000)
            .into(),
        })
    }

    /// Counts somebody who waits, for as long as what is returned lives.
    pub fn wait(&self, caller: &Caller, parts: &Parts) -> Result<Waiting, Problem> {
        if self.lobby.looks_after_all(caller) {
            return self.waits.begin(Vec::new());
        }
        let limits = self.limits.waits;
        let mut names = Vec::with_capacity(3);
        if let Some(agent) = caller.agent() {
            names.push((format!("agent {agent}"), limits.per_agent));
            names.push((format!("tenant {}", caller.tenant()), limits.per_tenant));
        }
        if let Some(from) = auth::address(&parts.extensions)
            && limits.per_address > 0
        {
            names.push((format!("the address {}", network(from)), limits.per_address));
        }
        self.waits.begin(names)
    }

    /// Carries out an operation for the caller at a desk.
    pub async fn carry_out(
        &self,
        entry: &'static Entry,
        desk: Desk,
        about: &About,
        asked: Asked<'_>,
    ) -> Result<Reply, Failed> {
        let on = about.as_ref().map_err(Clone::clone)?;
        match asked {
            Asked::Query(parts) => Ok(entry.run(desk, on, Given::Query(query(parts))).await?),
            Asked::Body(parts, body) => {
                read::no_query(query(parts))?;
                let bytes = body::bytes(self, parts, body).await?;
                Ok(entry.run(desk, on, Given::Json(&bytes)).await?)
            }
        }
    }

    /// Carries out an operation that is anybody's.
    pub async fn carry_out_public(
        &self,
        entry: &'static Entry,
        asked: Asked<'_>,
    ) -> Result<Reply, Failed> {
        let (parts, done) = match asked {
            Asked::Query(parts) => {
                let given = Given::Query(query(parts));
                (parts, entry.run_public(self.lobby.clone(), given).await)
            }
            Asked::Body(parts, body) => {
                read::no_query(query(parts))?;
                let bytes = body::bytes(self, parts, body).await?;
                (parts, entry.run_public(self.lobby.clone(), Given::Json(&bytes)).await)
            }
        };
        done.map_err(|problem| {
            if problem.known() == Some(Code::TokenRefused) {
                let from = auth::from(&parts.extensions);
                self.lobby.note_stranger(&from, Code::TokenRefused, parts.uri.path());
            }
            Failed(problem)
        })
    }
}

/// The trace that a request came in.
fn traced(parts: &Parts) -> Option<Ambient> {
    let header = |name: &str| {
        let mut all = parts.headers.get_all(name).iter();
        let mut joined = all.next()?.to_str().ok()?.to_owned();
        // Lists may come in several headers; two contexts joined are none.
        for more in all {
            joined = format!("{joined},{}", more.to_str().ok()?);
        }
        Some(joined)
    };
    parts.headers.contains_key("traceparent").then(|| Ambient::read(header)).flatten()
}

/// A wait that counts.
#[derive(Debug)]
pub struct Held {
    _waiting: Option<Waiting>,
}

/// Where what is asked stands.
pub enum Asked<'r> {
    /// In the query of the URL.
    Query(&'r Parts),
    /// In the body, as JSON.
    Body(&'r Parts, Body),
}

/// A body that holds something until it ends.
fn until_its_end(body: Body, held: Held) -> Body {
    Body::from_stream(body.into_data_stream().map(move |piece| {
        let _ = &held;
        piece
    }))
}

fn query(parts: &Parts) -> &str {
    parts.uri.query().unwrap_or_default()
}
