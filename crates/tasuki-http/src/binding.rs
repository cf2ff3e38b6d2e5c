// SPDX-License-Identifier: Apache-2.0
//! One operation over HTTP.

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use futures::future::BoxFuture;
use tasuki_engine::Desk;
use tasuki_engine::operations::{self, Entry, Facts, Operation, Outcome, Public, Reply, Streamed};
use tasuki_front::{About, Asked, Failed, Front, written};
use tasuki_protocol::Problem;

/// How an operation looks here.
#[derive(Clone, Copy)]
pub(crate) struct Binding {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) success: u16,
    /// The status of an answer that says: not now.
    pub(crate) not_now: Option<u16>,
    pub(crate) entry: &'static Entry,
    /// For what is answered piece by piece or as a text, in which forms, and what makes them.
    pub(crate) stream: Option<(&'static str, Stream)>,
}

/// Answers piece by piece.
pub(crate) type Stream =
    fn(&'static Entry, Desk, &Parts) -> BoxFuture<'static, Result<Response, Failed>>;

fn bind(facts: &Facts, method: &'static str, path: &'static str) -> Binding {
    let entry = operations::entry(facts);
    Binding { method, path, success: 200, not_now: None, entry, stream: None }
}

pub(crate) fn get<O: Operation>(path: &'static str) -> Binding {
    bind(&O::FACTS, "get", path)
}

pub(crate) fn post<O: Operation>(path: &'static str) -> Binding {
    bind(&O::FACTS, "post", path)
}

pub(crate) fn put<O: Operation>(path: &'static str) -> Binding {
    bind(&O::FACTS, "put", path)
}

pub(crate) fn patch<O: Operation>(path: &'static str) -> Binding {
    bind(&O::FACTS, "patch", path)
}

pub(crate) fn delete<O: Operation>(path: &'static str) -> Binding {
    bind(&O::FACTS, "delete", path)
}

pub(crate) fn public<O: Public>(method: &'static str, path: &'static str) -> Binding {
    bind(&O::FACTS, method, path)
}

pub(crate) fn streamed<O: Streamed>(
    path: &'static str,
    kind: &'static str,
    stream: Stream,
) -> Binding {
    Binding { stream: Some((kind, stream)), ..bind(&O::FACTS, "get", path) }
}

type Path = Result<RawPathParams, RawPathParamsRejection>;

impl Binding {
    pub(crate) fn created(self) -> Self {
        Self { success: 201, ..self }
    }

    pub(crate) fn not_now(self, status: u16) -> Self {
        Self { not_now: Some(status), ..self }
    }

    /// Whether what is asked stands in the URL.
    pub(crate) fn is_query(&self) -> bool {
        self.method == "get"
    }

    pub(crate) fn handler(self) -> MethodRouter<Front> {
        let method = Method::from_bytes(self.method.to_ascii_uppercase().as_bytes());
        let filter = method.ok().and_then(|method| MethodFilter::try_from(method).ok());
        let filter = filter.expect("the table has known methods only");
        on(filter, move |State(front): State<Front>, path: Path, request: Request| async move {
            self.serve(&front, path, request).await
        })
    }

    async fn serve(self, front: &Front, path: Path, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let asked = match self.is_query() {
            true => Asked::Query(&parts),
            false => Asked::Body(&parts, body),
        };
        if self.entry.is_public() {
            let replied = front.carry_out_public(self.entry, asked).await;
            let response = replied.map_or_else(Failed::into_response, |reply| self.shown(reply));
            front.count(self.entry, &response);
            return response;
        }
        let about: About = match path {
            Ok(path) => Ok(path.iter().map(|(_, text)| text.to_owned()).collect()),
            Err(error) => Err(Problem::invalid("path", error.body_text())),
        };
        let run = |desk| async {
            if let Some((_, stream)) = self.stream {
                return stream(self.entry, desk, &parts).await;
            }
            let reply = front.carry_out(self.entry, desk, &about, asked).await?;
            Ok(self.shown(reply))
        };
        front.serve(self.entry, &about, &parts, run).await
    }

    fn shown(&self, reply: Reply) -> Response {
        let status = match reply.outcome {
            Outcome::Done => self.success,
            Outcome::Repeated => 200,
            Outcome::NotNow => self.not_now.unwrap_or(503),
        };
        written(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), reply.body)
    }
}
