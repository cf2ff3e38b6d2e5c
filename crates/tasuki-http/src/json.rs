// SPDX-License-Identifier: Apache-2.0
//! JSON in and out. What comes in is read strictly (see `tasuki_core::canonical`) and refused with
//! the path of the first fault.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tasuki_core::envelope::Fault;
use tasuki_core::identity;
use tasuki_engine::Shape;
use tasuki_protocol::{Code, Problem, read};

use crate::App;
use crate::auth::{self, Covered};
use crate::error::Failed;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// What most replies have room in, so that they are not moved while they grow.
const REPLY_BYTES: usize = 1024;
/// How much of a body that is too large is read all the same.
const DRAINED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request body, read strictly.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned + JsonSchema + 'static> FromRequest<App> for Json<T> {
    type Rejection = Failed;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failed> {
        let (parts, body) = request.into_parts();
        // A page in a browser can send a form to the broker, but not JSON without asking first.
        if !is_json(&parts) {
            return Err(Problem::new(
                Code::UnsupportedMediaType,
                "the body must be JSON",
                "send the header content-type: application/json",
            )
            .into());
        }
        let max = app.limits.body_bytes_max;
        let bytes = match tokio::time::timeout(BODY_TIMEOUT, whole(body, max)).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(Problem::new(
                    Code::BodyTooLarge,
                    format!("the body has more than {max} bytes"),
                    "send less at a time, or raise body_bytes_max",
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
        if let Some(Covered(digest)) = parts.extensions.get() {
            let checked = identity::digest::covering(digest.as_deref(), &bytes);
            checked.map_err(|fault| {
                let code = Code::named(fault.code()).unwrap_or(Code::DigestWrong);
                let from = auth::from(&parts.extensions);
                app.engine.note_stranger(&from, code, parts.uri.path());
                Problem::new(code, fault.to_string(), "send the body that was signed")
            })?;
        }
        Ok(Self(parse(&bytes)?))
    }
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

fn is_json(parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or("").trim();
        kind.eq_ignore_ascii_case("application/json")
    })
}

pub(crate) fn parse<T: DeserializeOwned + JsonSchema + 'static>(
    bytes: &[u8],
) -> Result<T, Problem> {
    read::request(bytes, &every_fault::<T>)
}

/// Reads what was looked at as plain JSON before.
pub(crate) fn typed<T: DeserializeOwned + JsonSchema + 'static>(
    body: &Value,
) -> Result<T, Problem> {
    read::typed(body, &every_fault::<T>)
}

/// Everything that keeps a body from being what it must be. Reading it stops at the first fault, its
/// schema does not.
fn every_fault<T: JsonSchema + 'static>(value: &Value) -> Vec<Fault> {
    static SHAPES: Mutex<BTreeMap<TypeId, Option<Arc<Shape>>>> = Mutex::new(BTreeMap::new());
    let shape = {
        let mut shapes = SHAPES.lock().expect("no holder of this lock panics");
        let made = || {
            let schema = serde_json::to_value(schemars::schema_for!(T)).ok()?;
            Shape::of(&schema).map(Arc::new)
        };
        shapes.entry(TypeId::of::<T>()).or_insert_with(made).clone()
    };
    shape.map(|shape| shape.faults(value)).unwrap_or_default()
}

/// Query parameters, with our error shape.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Params<T> {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failed> {
        let read = Query::<T>::from_request_parts(parts, app).await;
        read.map(|Query(params)| Self(params))
            .map_err(|error| Problem::invalid("query", error.body_text()).into())
    }
}

/// An id in a path, with our error shape.
pub(crate) struct PathId<T>(pub(crate) T);

impl<T> FromRequestParts<App> for PathId<T>
where
    T: std::str::FromStr<Err = tasuki_core::ids::Malformed> + Send,
{
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failed> {
        let path = axum::extract::Path::<String>::from_request_parts(parts, app).await;
        let text = path.map_err(|error| Problem::invalid("path", error.body_text()))?.0;
        text.parse().map(Self).map_err(|error: tasuki_core::ids::Malformed| {
            Problem::invalid("id", format!("{text:?} is no id: {error}")).into()
        })
    }
}

pub(crate) fn reply(status: StatusCode, value: &impl Serialize) -> Response {
    let mut bytes = Vec::with_capacity(REPLY_BYTES);
    serde_json::to_writer(&mut bytes, value).expect("a reply has string keys only");
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

pub(crate) fn ok(value: &impl Serialize) -> Response {
    reply(StatusCode::OK, value)
}
