// SPDX-License-Identifier: Apache-2.0
//! Who a request is from.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use tasuki_core::identity::{Request as SignedRequest, message};
use tasuki_engine::{Caller, Shown, WHO_HINT};
use tasuki_protocol::{Code, Problem};

use crate::error::Failed;
use crate::serve::CameBy;
use crate::{Front, gate};

/// What a signature covers of the body: its digest, or that there is none. Whoever reads the body has
/// to check it.
pub(crate) struct Covered(pub(crate) Option<String>);

impl Covered {
    /// What the signature of a request covers, if it has one.
    pub(crate) fn by(headers: &HeaderMap) -> Option<Self> {
        headers.contains_key("signature-input").then(|| {
            let digest = one(headers, "content-digest").filter(|_| has_body(headers));
            Self(digest.map(str::to_owned))
        })
    }
}

pub(crate) async fn authenticate(front: &Front, request: &Parts) -> Result<Caller, Failed> {
    let headers = &request.headers;
    let from = from(&request.extensions);
    for name in ["signature", "signature-input", "content-digest", "authorization", "host"] {
        if headers.get_all(name).iter().count() > 1 {
            front.lobby.note_stranger(&from, Code::SignatureMalformed, request.uri.path());
            return Err(Problem::new(
                Code::SignatureMalformed,
                format!("the header {name} is there more than once"),
                "send each header once",
            )
            .into());
        }
    }
    let host = one(headers, "host").or_else(|| request.uri.authority().map(|a| a.as_str()));
    let came_by = request.extensions.get::<CameBy>();
    // A browser shows the token of its session by a cookie, which no other site can make it send.
    let session = match headers.contains_key(header::AUTHORIZATION)
        || headers.contains_key("signature-input")
    {
        true => None,
        false => session(headers),
    };
    let port = if came_by.is_some_and(|by| by.secure) { 443 } else { 80 };
    let authority = message::authority(host.unwrap_or_default(), port);
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
        authorization: one(headers, header::AUTHORIZATION.as_str()).or(session.as_deref()),
        certificate: came_by.and_then(|by| by.key).map(|key| key.id()),
        from: &from,
    };
    if shown.signature.is_some() && has_body(headers) && shown.request.content_digest.is_none() {
        front.lobby.note_stranger(&from, Code::DigestMissing, request.uri.path());
        return Err(Problem::new(
            Code::DigestMissing,
            "a signed request with a body needs the header content-digest",
            WHO_HINT,
        )
        .into());
    }
    Ok(front.lobby.authenticate(shown).await?)
}

/// The cookie that has the token of a session at the broker's pages.
pub const SESSION_COOKIE: &str = "tasuki-session";

/// What the cookie shows, as if it had been said in the header for it.
fn session(headers: &HeaderMap) -> Option<String> {
    let mut pairs = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(name, value)| *name == SESSION_COOKIE && !value.is_empty());
    // Two of them are somebody's trick, and neither is believed.
    match (pairs.next(), pairs.next()) {
        (Some((_, token)), None) => Some(format!("Bearer {token}")),
        _ => None,
    }
}

/// From where a request came.
pub(crate) fn from(extensions: &Extensions) -> String {
    address(extensions).map_or_else(String::new, |address| address.to_string())
}

/// The same as an address, where it is one.
pub(crate) fn address(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip())
}

/// Where a request was sent to, such as `https://broker.example:8443`. Whoever is not on this machine
/// came by TLS, which may have ended at a proxy.
#[must_use]
pub fn origin(request: &Parts) -> String {
    let host =
        one(&request.headers, "host").or_else(|| request.uri.authority().map(|it| it.as_str()));
    let host = host.unwrap_or("localhost");
    let secure = request.extensions.get::<CameBy>().is_some_and(|by| by.secure);
    let near = gate::is_near(host);
    format!("{}://{host}", if secure || !near { "https" } else { "http" })
}

fn one<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = one(headers, "content-length").and_then(|length| length.parse::<u64>().ok());
    length.is_some_and(|length| length > 0) || headers.contains_key(header::TRANSFER_ENCODING)
}
