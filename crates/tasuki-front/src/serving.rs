// SPDX-License-Identifier: Apache-2.0
//! A request for an operation, from who asks to what is recorded: the same for every door.

use std::future::Future;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use tasuki_engine::Desk;
use tasuki_engine::operations::{Entry, Given, Reply};
use tasuki_protocol::{Code, Problem, read};
use tracing::Instrument;

use crate::error::Failed;
use crate::gate::RequestId;
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
            if let Err(error) = self.lobby.admit(&caller, facts.kind) {
                return Failed::from(error).into_response();
            }
            let failed = match run(self.lobby.desk(caller.clone())).await {
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

fn query(parts: &Parts) -> &str {
    parts.uri.query().unwrap_or_default()
}
