// SPDX-License-Identifier: Apache-2.0
//! A request for an operation, from who asks to what is recorded: the same for every door.

use std::future::Future;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use tasuki_engine::operations::{Entry, Given, Reply};
use tasuki_engine::{Caller, Desk};
use tasuki_protocol::{Code, Problem, read};
use tracing::Instrument;

use crate::error::Failed;
use crate::gate::RequestId;
use crate::serve::CameBy;
use crate::waits::Waiting;
use crate::{Front, auth, body};

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
            let caller = match auth::authenticate(self, parts).await {
                Ok(caller) => caller,
                Err(failed) => return failed.into_response(),
            };
            if let Err(failed) = self.keeps_place(&caller, parts) {
                return failed.into_response();
            }
            let waiting = match self.wait(entry, &caller, parts) {
                Ok(waiting) => waiting,
                Err(problem) => return Failed(problem).into_response(),
            };
            if let Err(error) = self.lobby.admit(&caller, facts.kind) {
                return Failed::from(error).into_response();
            }
            let failed = match run(self.lobby.desk(caller.clone())).await {
                // A stream counts until its end.
                Ok(response) if entry.is_streamed() => {
                    return response.map(|body| held(body, waiting));
                }
                Ok(response) => return response,
                Err(failed) => failed,
            };
            if let Some(code) = failed.0.known() {
                let mut tried = facts.name.to_owned();
                for part in about.iter().flatten() {
                    tried.push(' ');
                    tried.push_str(part);
                }
                self.lobby.note_denied(&caller, code, &tried).await;
            }
            failed.into_response()
        };
        served.instrument(span).await
    }

    /// Whoever is known keeps its connection. In the places that are kept for those who look after
    /// the broker nobody else is served.
    fn keeps_place(&self, caller: &Caller, parts: &Parts) -> Result<(), Failed> {
        let Some(by) = parts.extensions.get::<CameBy>() else { return Ok(()) };
        if by.seat.is_kept && !self.lobby.looks_after_all(caller) {
            return Err(Problem::new(
                Code::Overloaded,
                "every connection that there may be is in use",
                "wait for the time in Retry-After, or raise limits.connections_max",
            )
            .into());
        }
        by.seat.is_known();
        Ok(())
    }

    /// Counts an operation that waits, or that answers piece by piece.
    fn wait(
        &self,
        entry: &Entry,
        caller: &Caller,
        parts: &Parts,
    ) -> Result<Option<Waiting>, Problem> {
        if !(entry.facts.waits || entry.is_streamed()) || self.lobby.looks_after_all(caller) {
            return Ok(None);
        }
        let limits = self.limits.waits;
        let mut names = Vec::with_capacity(3);
        if let Some(agent) = caller.agent() {
            names.push((format!("agent {agent}"), limits.per_agent));
            names.push((format!("tenant {}", caller.tenant()), limits.per_tenant));
        }
        let from = auth::from(&parts.extensions);
        if limits.per_address > 0 && !from.is_empty() {
            names.push((format!("the address {from}"), limits.per_address));
        }
        self.waits.begin(names).map(Some)
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

/// Where what is asked stands.
pub enum Asked<'r> {
    /// In the query of the URL.
    Query(&'r Parts),
    /// In the body, as JSON.
    Body(&'r Parts, Body),
}

/// A body that holds something until it ends.
fn held(body: Body, waiting: Option<Waiting>) -> Body {
    Body::from_stream(body.into_data_stream().map(move |piece| {
        let _ = &waiting;
        piece
    }))
}

fn query(parts: &Parts) -> &str {
    parts.uri.query().unwrap_or_default()
}
