// SPDX-License-Identifier: Apache-2.0
//! Bodies in and out. What comes in is read whole, within bounds, and held against its signature; what
//! it says is for the table of operations to read.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use tasuki_core::identity;
use tasuki_protocol::{Code, Problem};

use crate::Front;
use crate::auth::{self, Covered};
use crate::error::Failed;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// What most replies have room in, so that they are not moved while they grow.
const REPLY_BYTES: usize = 1024;
/// How much of a body that is too large is read all the same.
const DRAINED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The media type of JSON.
const JSON: &str = "application/json";

/// The body of a request that must have one, as it was signed.
pub async fn bytes(front: &Front, parts: &Parts, body: Body) -> Result<Bytes, Failed> {
    bytes_of(&[JSON], front, parts, body).await
}

/// The same, of one of these media types. None of them may be one that a form can have.
pub async fn bytes_of(
    kinds: &[&str],
    front: &Front,
    parts: &Parts,
    body: Body,
) -> Result<Bytes, Failed> {
    // A page in a browser can send a form to the broker, but not JSON without asking first.
    if !is_one_of(kinds, parts) {
        return Err(Problem::new(
            Code::UnsupportedMediaType,
            "the body must be JSON",
            "send the header content-type: application/json",
        )
        .into());
    }
    let max = front.limits.body_bytes_max;
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, whole(body, max)).await {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return Err(Problem::new(
                Code::BodyTooLarge,
                format!("the body has more than {max} bytes"),
                "send a reference to what is large (/docs/errors/body_too_large), or less at a time",
            )
            .detail("body_bytes_max", max)
            .into());
        }
        Ok(Err(_)) => {
            return Err(Problem::new(
                Code::InvalidRequest,
                "the body ended before it was complete",
                "send the request again",
            )
            .into());
        }
        Err(_) => {
            return Err(Problem::new(
                Code::RequestTimeout,
                "the body did not arrive in time",
                "send the request again",
            )
            .into());
        }
    };
    if let Some(Covered(digest)) = Covered::by(&parts.headers) {
        let checked = identity::digest::covering(digest.as_deref(), &bytes);
        checked.map_err(|fault| {
            let code = Code::named(fault.code()).unwrap_or(Code::DigestWrong);
            let from = auth::from(&parts.extensions);
            front.lobby.note_stranger(&from, code, parts.uri.path());
            Problem::new(code, fault.to_string(), "send the body that was signed")
        })?;
    }
    Ok(bytes)
}

/// Reads a body whole. What is too large is read on and dropped: a client that is still sending
/// when the connection closes never sees why.
async fn whole(mut body: Body, max: usize) -> Result<Bytes, axum::BoxError> {
    let read = Limited::new(&mut body, max).collect().await;
    if read.as_ref().is_err_and(|error| error.is::<LengthLimitError>()) {
        let mut left = DRAINED_BYTES_MAX;
        while let Some(Ok(frame)) = body.frame().await
            && left > 0
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        }
    }
    Ok(read?.to_bytes())
}

fn is_one_of(kinds: &[&str], parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or("").trim();
        kinds.iter().any(|one| kind.eq_ignore_ascii_case(one))
    })
}

/// A reply as JSON.
pub fn reply(status: StatusCode, value: &impl Serialize) -> Response {
    let mut bytes = Vec::with_capacity(REPLY_BYTES);
    serde_json::to_writer(&mut bytes, value).expect("a reply has string keys only");
    written(status, bytes)
}

/// A reply that is JSON already.
pub fn written(status: StatusCode, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static(JSON);
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// A reply of success.
pub fn ok(value: &impl Serialize) -> Response {
    reply(StatusCode::OK, value)
}
