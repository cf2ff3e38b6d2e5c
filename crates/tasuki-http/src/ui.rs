// SPDX-License-Identifier: Apache-2.0
//! The dashboard: files that are built into the broker, and signing in. A token becomes a cookie that
//! no script can read and no other site can send; it holds a token of its own that ends soon.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use tasuki_engine::operations::Operation;
use tasuki_engine::operations::{Given, entry, sessions};
use tasuki_front::{About, Failed, Front, SESSION_COOKIE, bytes, ok};
use tasuki_protocol::{IssuedToken, Nothing, Problem};

/// What pages may load: what came with them, and what this broker answers.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const FILES: [File; 4] = [
    File {
        name: "index.html",
        kind: "text/html; charset=utf-8",
        text: include_str!("../ui/index.html"),
    },
    File {
        name: "app.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("../ui/app.js"),
    },
    File { name: "app.css", kind: "text/css; charset=utf-8", text: include_str!("../ui/app.css") },
    File {
        name: "LICENSE-preact",
        kind: "text/plain; charset=utf-8",
        text: include_str!("../ui/LICENSE-preact"),
    },
];

pub(crate) fn router() -> Router<Front> {
    // Relative, so that they hold below a path of a proxy's, too.
    Router::new()
        .route("/", get(|| async { Redirect::temporary("ui/") }))
        .route("/ui", get(|| async { Redirect::temporary("ui/") }))
        .route("/ui/", get(|headers: HeaderMap| async move { served(&FILES[0], &headers) }))
        .route("/ui/session", post(sign_in).delete(sign_out))
        .route("/ui/{file}", get(file))
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match FILES.iter().find(|file| file.name == name) {
        Some(file) => served(file, &headers),
        None => Failed(crate::routes::no_such_route()).into_response(),
    }
}

fn served(file: &File, headers: &HeaderMap) -> Response {
    // The version names what is built in, so that a browser asks and is not sent the same again.
    let tag = concat!("\"", env!("CARGO_PKG_VERSION"), "-");
    let tag = format!("{tag}{:x}\"", sum(file.text));
    let same = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    let mut response = match same {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => file.text.into_response(),
    };
    let given = response.headers_mut();
    given.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    given.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    given.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        given.insert(header::ETAG, tag);
    }
    response
}

/// Tells one build's file from another's; nobody has to be kept from making two alike.
fn sum(text: &str) -> u64 {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    token: String,
}

async fn sign_in(State(front): State<Front>, request: Request) -> Response {
    match signed_in(&front, request).await {
        Ok(response) => response,
        Err(failed) => failed.into_response(),
    }
}

async fn signed_in(front: &Front, request: Request) -> Result<Response, Failed> {
    let (mut parts, body) = request.into_parts();
    let body = bytes(front, &parts, body).await?;
    let asked: SignIn = serde_json::from_slice(&body)
        .map_err(|_| Problem::invalid("token", "expected {\"token\": \"…\"}"))?;
    let secure = is_secure(front, &parts);
    // The token is what shows who asks, and nothing else that came with the request.
    for name in ["signature", "signature-input", "content-digest", "cookie", "content-length"] {
        parts.headers.remove(name);
    }
    let shown = HeaderValue::from_str(&format!("Bearer {}", asked.token.trim()))
        .map_err(|_| Problem::invalid("token", "is no token"))?;
    parts.headers.insert(header::AUTHORIZATION, shown);
    let entry = entry(&sessions::Open::FACTS);
    let about: About = Ok(Vec::new());
    let run = |desk| async {
        let reply = entry.run(desk, &[], Given::Json(b"{}")).await?;
        let issued: IssuedToken = serde_json::from_slice(&reply.body)
            .map_err(|_| Problem::invalid("token", "was not issued"))?;
        let ends = issued.token.expires_at;
        let lasts = ends.map_or(0, |end| end.ms_after(issued.token.issued_at) / 1000);
        let mut response = ok(&Nothing {});
        set(&mut response, &cookie(&issued.text, lasts, secure));
        Ok(response)
    };
    Ok(front.serve(entry, &about, &parts, run).await)
}

async fn sign_out(State(front): State<Front>, request: Request) -> Response {
    let (parts, _): (Parts, Body) = request.into_parts();
    let secure = is_secure(&front, &parts);
    let entry = entry(&sessions::Close::FACTS);
    let run = |desk| async {
        entry.run(desk, &[], Given::Json(b"{}")).await?;
        Ok(ok(&Nothing {}))
    };
    let about: About = Ok(Vec::new());
    let mut response = front.serve(entry, &about, &parts, run).await;
    // Whatever became of the token, this browser has it no longer.
    set(&mut response, &cookie("", 0, secure));
    response
}

fn cookie(value: &str, lasts_s: u64, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!(
        "{SESSION_COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={lasts_s}{secure}"
    )
}

fn set(response: &mut Response, cookie: &str) {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

/// Whether the browser came by TLS, here or at a proxy before. Whoever lies about it keeps its own
/// cookie from being sent.
fn is_secure(front: &Front, parts: &Parts) -> bool {
    let proxied = parts.headers.get("x-forwarded-proto");
    front.is_secure(parts) || proxied.is_some_and(|proto| proto == "https")
}
