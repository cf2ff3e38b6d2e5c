// SPDX-License-Identifier: Apache-2.0
//! The A2A door: every registered agent as a server of the Agent2Agent protocol at `/agents/{id}` and
//! `/tenants/{tenant}/agents/{id}`, and the broker itself at `/a2a`, as the agent that finds one.
//! Versions 1.0 and 0.3, JSON-RPC and HTTP+JSON, at one address each. It translates and decides
//! nothing: what it tells of a task is told from the log ([`story`]), so nothing is kept here.
#![allow(clippy::result_large_err, reason = "a problem is moved once, to become a reply")]

mod calls;
mod card;
mod endpoint;
mod extension;
mod fault;
mod model;
mod older;
mod ops;
mod out;
mod push;
mod rest;
mod rpc;
mod said;
mod story;
mod stream;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{any, get};
use serde_json::Value;
use tasuki_engine::operations::{Entry, Operation, agents, entry};
use tasuki_engine::{Caller, Desk, PAGE_MAX, SeenAgent};
use tasuki_front::{Failed, Front, origin};
use tasuki_protocol::Search;

pub use out::{Client, Credentials, inbox};
pub use push::start_pushes;

use crate::card::Place;
use crate::endpoint::Endpoint;
use crate::fault::Fault;

/// Where cards are.
const CARD: &str = ".well-known/agent-card.json";
/// Where they were in 0.2, and some clients still look.
const CARD_BEFORE: &str = ".well-known/agent.json";

/// Everything that is served, without the gate that goes around it.
pub fn routes() -> Router<Front> {
    Router::new()
        .route("/agents/{name}", any(agent))
        .route("/agents/{name}/", any(agent))
        .route("/agents/{name}/{*rest}", any(agent_below))
        .route("/tenants/{tenant}/agents/{name}", any(agent_of))
        .route("/tenants/{tenant}/agents/{name}/", any(agent_of))
        .route("/tenants/{tenant}/agents/{name}/{*rest}", any(agent_of_below))
        .route("/a2a", any(broker))
        .route("/a2a/", any(broker))
        .route("/a2a/{*rest}", any(broker_below))
        .route("/.well-known/agent-card.json", get(broker_card))
        .route("/.well-known/agent.json", get(broker_card))
        .route("/.well-known/ai-catalog.json", get(catalogue))
        .route("/.well-known/jwks.json", get(keys))
        .route("/a2a-extension/handoff/v1", get(extension_page))
        .route("/a2a-extension/handoff/v1/schema.json", get(extension_schema))
}

fn named(tenant: Option<String>, name: String) -> Endpoint {
    Endpoint::Agent { tenant, name }
}

async fn agent(State(front): State<Front>, Path(name): Path<String>, asked: Request) -> Response {
    serve(&front, named(None, name), "", asked).await
}

async fn agent_below(
    State(front): State<Front>,
    Path((name, rest)): Path<(String, String)>,
    asked: Request,
) -> Response {
    serve(&front, named(None, name), &rest, asked).await
}

async fn agent_of(
    State(front): State<Front>,
    Path((tenant, name)): Path<(String, String)>,
    asked: Request,
) -> Response {
    serve(&front, named(Some(tenant), name), "", asked).await
}

async fn agent_of_below(
    State(front): State<Front>,
    Path((tenant, name, rest)): Path<(String, String, String)>,
    asked: Request,
) -> Response {
    serve(&front, named(Some(tenant), name), &rest, asked).await
}

async fn broker(State(front): State<Front>, asked: Request) -> Response {
    serve(&front, Endpoint::Broker, "", asked).await
}

async fn broker_below(
    State(front): State<Front>,
    Path(rest): Path<String>,
    asked: Request,
) -> Response {
    serve(&front, Endpoint::Broker, &rest, asked).await
}

async fn serve(front: &Front, at: Endpoint, rest: &str, asked: Request) -> Response {
    let (parts, body) = asked.into_parts();
    let is_card = [CARD, CARD_BEFORE].contains(&rest);
    if is_card && at == Endpoint::Broker {
        return public_card(front, &parts);
    }
    let caller = match front.caller(&parts).await {
        Ok(caller) => caller,
        Err(failed) => return failed.into_response(),
    };
    let place = place(front, &parts, &caller);
    if is_card {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Failed(rest::nothing()).into_response();
        }
        let headers = &parts.headers;
        let run = |desk: Desk| async move {
            let seen = at.seen(&desk).await?;
            let card = seen.map(|seen| place.agent(&seen, &at, false)).unwrap_or_default();
            Ok(card::reply(headers, &of_version(headers, card), !place.closed))
        };
        let served = known_to(front, &agents::Show::FACTS, &caller, &parts, run).await;
        return served.unwrap_or_else(|fault: Fault| fault.into_response());
    }
    match rest {
        "" if parts.method == Method::POST => {
            rpc::serve(front, &caller, at, &parts, body, &place).await
        }
        rest => rest::serve(front, &caller, at, rest, (&parts, body), &place).await,
    }
}

async fn known_to<F>(
    front: &Front,
    facts: &tasuki_engine::operations::Facts,
    caller: &Caller,
    parts: &axum::http::request::Parts,
    run: impl FnOnce(Desk) -> F,
) -> Result<Response, Fault>
where
    F: Future<Output = Result<Response, Fault>>,
{
    let entry: &'static Entry = entry(facts);
    front.serve_known(entry, caller, &Ok(Vec::new()), parts, run).await
}

fn place<'f>(front: &'f Front, parts: &axum::http::request::Parts, caller: &Caller) -> Place<'f> {
    let closed = caller.agent().is_some();
    Place { lobby: &front.lobby, origin: origin(parts), closed }
}

/// The card as a client that names a version wants it: alone, or with what 0.3 looks for.
fn of_version(headers: &HeaderMap, card: Value) -> Value {
    match calls::version(headers, None) {
        Ok(Some(calls::Version::Today)) => card,
        _ => card::with_older(card),
    }
}

/// Anybody may know that the broker is one, and how it wants to be asked.
fn public_card(front: &Front, parts: &axum::http::request::Parts) -> Response {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Failed(rest::nothing()).into_response();
    }
    let closed = !front.lobby.is_open();
    let place = Place { lobby: &front.lobby, origin: origin(parts), closed };
    let card = of_version(&parts.headers, place.broker(&[]));
    card::reply(&parts.headers, &card, true)
}

async fn broker_card(State(front): State<Front>, asked: Request) -> Response {
    let (parts, _) = asked.into_parts();
    public_card(&front, &parts)
}

async fn keys(State(front): State<Front>, asked: Request) -> Response {
    let (parts, _) = asked.into_parts();
    let place = Place { lobby: &front.lobby, origin: origin(&parts), closed: false };
    card::reply(&parts.headers, &place.keys(), true)
}

async fn catalogue(State(front): State<Front>, asked: Request) -> Response {
    let (parts, _) = asked.into_parts();
    let caller = match front.caller(&parts).await {
        Ok(caller) => caller,
        Err(failed) => return failed.into_response(),
    };
    let place = place(&front, &parts, &caller);
    let headers = &parts.headers;
    let run = |desk: Desk| async move {
        let told = place.catalogue(&known(&desk).await?);
        Ok(card::reply(headers, &told, !place.closed))
    };
    let served = known_to(&front, &agents::Catalogue::FACTS, &caller, &parts, run).await;
    served.unwrap_or_else(|fault: Fault| fault.into_response())
}

/// Every agent that a caller may know of.
pub(crate) async fn known(desk: &Desk) -> Result<Vec<SeenAgent>, Fault> {
    let search = Search { limit: Some(PAGE_MAX), ..Search::default() };
    Ok(desk.discover(search).await?)
}

/// Says which extensions are active, if ours was asked for.
pub(crate) fn extend(headers: &HeaderMap, response: &mut Response) {
    let named = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
    let said = named("a2a-extensions").or_else(|| named("x-a2a-extensions"));
    let ours = |said: &str| said.split(',').any(|uri| uri.trim() == extension::URI);
    if said.is_some_and(ours) {
        let active = HeaderValue::from_static(extension::URI);
        response.headers_mut().insert("a2a-extensions", active);
    }
}

async fn extension_page() -> Response {
    let escaped = extension::PAGE.replace('&', "&amp;").replace('<', "&lt;");
    Html(format!("<!doctype html><title>handoff/v1</title><pre>{escaped}</pre>")).into_response()
}

async fn extension_schema() -> Response {
    let kind = HeaderValue::from_static("application/schema+json");
    let mut response = extension::SCHEMA.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
