// SPDX-License-Identifier: Apache-2.0
//! Which request goes where.

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use tasuki_front::{Failed, Front, ok};
use tasuki_protocol::{Code, Problem};

use crate::{bindings, openapi, page, schemas, ui};

pub(crate) fn router() -> Router<Front> {
    let mut router = Router::new();
    for binding in bindings::all() {
        router = router.route(binding.path, binding.handler());
    }
    router
        .merge(ui::router())
        .route("/docs", get(docs))
        .route("/docs/", get(|| async { Redirect::permanent("/docs") }))
        .route("/docs/errors", get(|| async { Redirect::permanent("/docs#errors") }))
        .route("/docs/errors/{code}", get(error_page))
        .route("/v1", get(start))
        .route("/v1/", get(|| async { Redirect::permanent("/v1") }))
        .route("/v1/openapi.json", get(openapi_json))
        .route("/v1/schemas/{name}", get(schemas::serve))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
}

/// Where everything begins, for those who open the address that `tasuki serve` prints.
async fn start() -> Response {
    ok(&serde_json::json!({
        "name": "tasuki",
        "version": env!("CARGO_PKG_VERSION"),
        "links": {
            "docs": "/docs",
            "openapi": "/v1/openapi.json",
            "envelope_schema": "/v1/schemas/envelope.json",
            "event_schema": "/v1/schemas/event.json",
            "manifest_schema": "/v1/schemas/manifest.json",
            "dashboard": "/",
            "health": "/readyz",
            "tasks": "/v1/tasks",
            "handoffs": "/v1/handoffs",
            "dead_letters": "/v1/dead-letters",
            "agents": "/v1/agents",
            "events": "/v1/events",
        },
    }))
}

async fn openapi_json() -> Response {
    let mut response = openapi::text().into_response();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn docs() -> Html<String> {
    Html(page::api())
}

async fn error_page(code: Result<Path<String>, PathRejection>) -> Result<Response, Failed> {
    let Ok(Path(code)) = code else { return Err(no_such_route().into()) };
    let Some(code) = Code::named(&code) else { return Err(no_such_route().into()) };
    Ok(Html(page::markdown(code.page())).into_response())
}

pub(crate) fn no_such_route() -> Problem {
    Problem::new(Code::RouteNotFound, "nothing is served here", "see /docs for what is")
}

async fn not_found() -> Failed {
    no_such_route().into()
}

async fn wrong_method() -> Failed {
    Failed(Problem::new(
        Code::MethodNotAllowed,
        "this path does not take that method",
        "see /docs for the methods of each path",
    ))
}
