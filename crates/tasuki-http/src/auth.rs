// SPDX-License-Identifier: Apache-2.0
//! Who a request is from. Everything under `/v1` is served at a desk for its caller; the documents,
//! the health checks and joining are for everybody.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tasuki_core::identity::{Request as SignedRequest, message};
use tasuki_engine::{Caller, Desk, Shown, WHO_HINT};
use tasuki_protocol::Code;

use crate::App;
use crate::error::{Failed, Problem};

/// What a signature covers of the body: its digest, or that there is none. Whoever reads the body has
/// to check it.
#[derive(Clone)]
pub(crate) struct Covered(pub(crate) Option<String>);

/// Serves the caller of a request.
pub(crate) struct At(pub(crate) Desk);

impl FromRequestParts<App> for At {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failed> {
        let caller = parts.extensions.get::<Caller>().cloned();
        // Every route that is served at a desk lies behind the check below.
        let caller = caller.ok_or_else(|| {
            Problem::new(
                Code::Unauthenticated,
                "the request does not show who it is from",
                WHO_HINT,
            )
        })?;
        Ok(Self(app.engine.desk(caller)))
    }
}

pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let caller = match authenticate(&app, &parts).await {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(),
    };
    if let Err(error) = app.engine.admit(&caller)
        && !finishes(parts.uri.path())
    {
        return Failed::from(error).into_response();
    }
    let mut request = Request::from_parts(parts, body);
    if request.headers().contains_key("signature-input") {
        let covered = has_body(request.headers());
        let digest = one(request.headers(), "content-digest").filter(|_| covered);
        let digest = digest.map(str::to_owned);
        request.extensions_mut().insert(Covered(digest));
    }
    // Both are cheap to keep; the text that names the operation is made for refusals only.
    let (method, uri) = (request.method().clone(), request.uri().clone());
    request.extensions_mut().insert(caller.clone());
    let response = next.run(request).await;
    if let Some(problem) = response.extensions().get::<std::sync::Arc<Problem>>()
        && let Some(code) = problem.known()
    {
        let operation = format!("{method} {}", uri.path());
        app.engine.note_denied(&caller, code, &operation).await;
    }
    response
}

async fn authenticate(app: &App, request: &Parts) -> Result<Caller, Failed> {
    let headers = &request.headers;
    let from = from(&request.extensions);
    for name in ["signature", "signature-input", "content-digest", "authorization", "host"] {
        if headers.get_all(name).iter().count() > 1 {
            app.engine.note_stranger(&from, Code::SignatureMalformed, request.uri.path());
            return Err(Problem::new(
                Code::SignatureMalformed,
                format!("the header {name} is there more than once"),
                "send each header once",
            )
            .into());
        }
    }
    let host = one(headers, "host").or_else(|| request.uri.authority().map(|a| a.as_str()));
    let authority = message::authority(host.unwrap_or_default(), 80);
    let shown = Shown {
        request: SignedRequest {
            method: request.method.as_str(),
            authority: &authority,
            path: request.uri.path(),
            query: request.uri.query(),
            content_digest: one(headers, "content-digest").filter(|_| has_body(headers)),
        },
        signature_input: one(headers, "signature-input"),
        signature: one(headers, "signature"),
        authorization: one(headers, header::AUTHORIZATION.as_str()),
        from: &from,
    };
    if shown.signature.is_some() && has_body(headers) && shown.request.content_digest.is_none() {
        app.engine.note_stranger(&from, Code::DigestMissing, request.uri.path());
        return Err(Problem::new(
            Code::DigestMissing,
            "a signed request with a body needs the header content-digest",
            WHO_HINT,
        )
        .into());
    }
    Ok(app.engine.authenticate(shown).await?)
}

/// Work under way may always be finished, whatever its tenant has used up.
fn finishes(path: &str) -> bool {
    let acts = ["start", "heartbeat", "progress", "complete", "completions", "fail", "release"];
    path.rsplit('/').next().is_some_and(|last| acts.contains(&last))
}

/// From where a request came.
pub(crate) fn from(extensions: &Extensions) -> String {
    let info = extensions.get::<ConnectInfo<SocketAddr>>();
    info.map_or_else(String::new, |info| info.0.ip().to_string())
}

fn one<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = one(headers, "content-length").and_then(|length| length.parse::<u64>().ok());
    length.is_some_and(|length| length > 0) || headers.contains_key(header::TRANSFER_ENCODING)
}
