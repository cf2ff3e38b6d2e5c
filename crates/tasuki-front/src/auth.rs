// SPDX-License-Identifier: Apache-2.0
//! Who a request is from.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use tasuki_core::identity::{Request as SignedRequest, message};
use tasuki_engine::{Caller, Shown, WHO_HINT};
use tasuki_protocol::{Code, Problem};

use crate::Front;
use crate::error::Failed;

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
