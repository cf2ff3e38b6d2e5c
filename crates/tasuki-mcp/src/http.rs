// SPDX-License-Identifier: Apache-2.0
//! The door over HTTP: every message of the protocol is a request of its own, so any broker of several
//! can answer it, and a restart in between is not noticed. Who asks is found out for each, as at the
//! other doors.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures::{StreamExt, stream};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tasuki_core::canonical;
use tasuki_front::{Failed, Front, bytes, ok, origin, reply};
use tasuki_protocol::{Code, Problem};

use crate::broker::OverHttp;
use crate::door::{Asker, Door};
use crate::holding::Holding;

/// Where this door is.
pub const PATH: &str = "/mcp";
/// Where a client finds out how to show who it is (RFC 9728), for the door and for the whole broker.
const METADATA: &str = "/.well-known/oauth-protected-resource";
const METADATA_OF_DOOR: &str = "/.well-known/oauth-protected-resource/mcp";

type Service = StreamableHttpService<Door, NeverSessionManager>;

/// What this door serves.
pub fn routes(front: &Front) -> Router<Front> {
    let config = StreamableHttpServerConfig::default()
        // Each message stands on its own: whatever version it is of, any broker can answer it.
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // The gate around all doors knows which hosts and sites may ask.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(front.limits.body_bytes_max);
    let service: Service =
        StreamableHttpService::new(|| Ok(Door::over_http()), Arc::default(), config);
    let handler = any(move |State(front): State<Front>, request: Request| {
        let service = service.clone();
        async move { serve(front, service, request).await }
    });
    Router::new()
        .route(PATH, handler.clone())
        .route("/mcp/", handler)
        .route(METADATA, get(metadata))
        .route(METADATA_OF_DOOR, get(metadata))
}

async fn serve(front: Front, service: Service, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    if parts.method != Method::POST {
        let problem = Problem::new(
            Code::MethodNotAllowed,
            "every message of MCP is sent with POST here",
            "see docs/guides/mcp.md; there are no sessions to read from or to end",
        );
        let mut response = Failed(problem).into_response();
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let caller = match front.caller(&parts).await {
        Ok(caller) => caller,
        Err(failed) => return challenged(failed.into_response(), &origin(&parts)),
    };
    let bytes = match bytes(&front, &parts, body).await {
        Ok(bytes) => bytes,
        Err(failed) => return failed.into_response(),
    };
    // Two readers must not understand a message differently: a member stands there once.
    if let Err(error) = canonical::parse(&bytes) {
        let error = json!({ "code": -32700, "message": format!("cannot be read: {error}") });
        let says = json!({ "jsonrpc": "2.0", "id": null, "error": error });
        return reply(StatusCode::BAD_REQUEST, &says);
    }
    let named = named(parts.uri.query().unwrap_or_default());
    let broker = Arc::new(OverHttp { front, parts: parts.clone(), caller, named });
    let asker = Asker { broker, granted: Arc::new(Holding::remembering()) };
    let unheard = Unheard(Some(asker.clone()));
    parts.extensions.insert(asker);
    let request = Request::from_parts(parts, Body::from(bytes));
    let answer = service.handle(request).await.map(Body::new);
    unheard.until_sent(answer)
}

/// What a request was granted and its client has not heard of. If the client goes away first, that is
/// given back.
struct Unheard(Option<Asker>);

impl Unheard {
    fn is_sent(&mut self) {
        self.0 = None;
    }

    /// The answer, with which this ends when all of it has gone out.
    fn until_sent(mut self, answer: Response) -> Response {
        let streams = answer.headers().get(header::CONTENT_TYPE);
        let streams = streams.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !streams && self.0.as_ref().is_none_or(|asker| asker.granted.is_empty()) {
            self.is_sent();
            return answer;
        }
        answer.map(|body| {
            let pieces = body.into_data_stream().map(Some);
            let pieces = pieces.chain(stream::once(async { None }));
            let pieces = pieces.filter_map(move |piece| {
                if piece.is_none() {
                    self.is_sent();
                }
                std::future::ready(piece)
            });
            Body::from_stream(pieces)
        })
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if let Some(Asker { broker, granted }) = self.0.take() {
            // What waits gives back by itself what it is granted from now on.
            // Not watched: if it fails, the lease ends.
            tokio::spawn(async move { granted.give_back(broker).await });
        }
    }
}

/// The agent that the address names.
fn named(query: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == "agent").map(|(_, agent)| agent.into_owned())
}

/// Says to whom nobody is known where it is told how to show who it is.
fn challenged(mut response: Response, origin: &str) -> Response {
    if response.status() == StatusCode::UNAUTHORIZED {
        let says = format!("Bearer resource_metadata=\"{origin}{METADATA_OF_DOOR}\"");
        if let Ok(says) = HeaderValue::from_str(&says) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, says);
        }
    }
    response
}

/// How to show who one is. The broker hands out its tokens itself, so no other server is named.
async fn metadata(State(front): State<Front>, request: Request) -> Response {
    if front.lobby.is_open() {
        return Failed(Problem::new(
            Code::RouteNotFound,
            "nobody has to say who it is here",
            "ask without a token",
        ))
        .into_response();
    }
    let (parts, _) = request.into_parts();
    let origin = origin(&parts);
    ok(&json!({
        "resource": format!("{origin}{PATH}"),
        "resource_name": "Tasuki",
        "bearer_methods_supported": ["header"],
        "resource_documentation": format!("{origin}/docs"),
    }))
}
