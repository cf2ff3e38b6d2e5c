// SPDX-License-Identifier: Apache-2.0

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::Answer;
use crate::auth::At;
use crate::error::{Failed, Problem};
use crate::json::{ok, reply};
use crate::{App, openapi, page, wire};
use tasuki_protocol::Code;

pub(crate) async fn health() -> Response {
    ok(&wire::Health { status: "ok".into(), reason: None })
}

/// Ready means: a command sent now would be taken.
pub(crate) async fn ready(State(app): State<App>) -> Response {
    match app.engine.not_ready() {
        None => ok(&wire::Health { status: "ready".into(), reason: None }),
        Some(reason) => reply(
            StatusCode::SERVICE_UNAVAILABLE,
            &wire::Health { status: "not_ready".into(), reason: Some(reason) },
        ),
    }
}

pub(crate) async fn stats(At(desk): At) -> Answer {
    let seen = desk.stats().await?;
    let store = seen.store.map(|stats| wire::StoreStats {
        head: desk.head(),
        commits: stats.commits,
        commands: stats.commands,
        events: stats.events,
        mean_batch: stats.events as f64 / stats.commits.max(1) as f64,
        live_bytes: stats.live_bytes,
        waiting_handoffs: stats.waiting_handoffs,
        idempotency_keys: stats.idempotency_keys,
        projection_lag: stats.projection_lag,
        resident_bytes: resident_bytes(),
    });
    let of_tenant = store.is_none();
    Ok(ok(&wire::Stats {
        version: env!("CARGO_PKG_VERSION").into(),
        now: desk.now(),
        live_handoffs: seen.store.map_or(seen.usage.in_flight, |stats| stats.live_handoffs),
        disk_full: seen.disk_full,
        stored_bytes: of_tenant.then_some(seen.usage.stored_bytes),
        tenant: of_tenant.then_some(seen.tenant),
        store,
    }))
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

pub(crate) async fn openapi_json() -> Response {
    let mut response = openapi::text().into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

pub(crate) async fn docs() -> Html<String> {
    Html(page::api())
}

pub(crate) async fn error_page(code: Result<Path<String>, PathRejection>) -> Answer {
    let Ok(Path(code)) = code else { return Err(no_such_route().into()) };
    let Some(code) = Code::named(&code) else { return Err(no_such_route().into()) };
    Ok(Html(page::markdown(code.page())).into_response())
}

pub(crate) fn no_such_route() -> Problem {
    Problem::new(Code::RouteNotFound, "nothing is served here", "see /docs for what is")
}

pub(crate) async fn not_found() -> Failed {
    no_such_route().into()
}

pub(crate) async fn wrong_method() -> Failed {
    Failed(Problem::new(
        Code::MethodNotAllowed,
        "this path does not take that method",
        "see /docs for the methods of each path",
    ))
}
