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
use tasuki_core::envelope::{Fault, version};
use tasuki_core::{canonical, identity};
use tasuki_engine::Shape;

use crate::App;
use crate::auth::{self, Covered};
use crate::error::{Problem, faults as told};
use crate::wire;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// What most replies have room in, so that they are not moved while they grow.
const REPLY_BYTES: usize = 1024;
/// How much of a body that is too large is read all the same.
const DRAINED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request body, read strictly.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned + JsonSchema + 'static> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        // A page in a browser can send a form to the broker, but not JSON without asking first.
        if !is_json(&parts) {
            return Err(Problem::new(
                "unsupported_media_type",
                "the body must be JSON",
                "send the header content-type: application/json",
            ));
        }
        let max = app.limits.body_bytes_max;
        let bytes = match tokio::time::timeout(BODY_TIMEOUT, read(body, max)).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return Err(Problem::new(
                    "body_too_large",
                    format!("the body has more than {max} bytes"),
                    "send less at a time, or raise body_bytes_max",
                )
                .detail("body_bytes_max", max));
            }
            Ok(Err(_)) => {
                return Err(Problem::new(
                    "invalid_request",
                    "the body ended before it was complete",
                    "send the request again",
                ));
            }
            Err(_) => {
                return Err(Problem::new(
                    "request_timeout",
                    "the body did not arrive in time",
                    "send the request again",
                )
                .retryable());
            }
        };
        if let Some(Covered(digest)) = parts.extensions.get() {
            let checked = identity::digest::covering(digest.as_deref(), &bytes);
            checked.map_err(|fault| {
                let from = auth::from(&parts.extensions);
                app.engine.note_stranger(&from, fault.code(), parts.uri.path());
                Problem::new(fault.code(), fault.to_string(), "send the body that was signed")
            })?;
        }
        parse(&bytes).map(Self)
    }
}

/// Reads a body whole. What is too large is read on and dropped: a client that is still sending
/// when the connection closes never sees why.
async fn read(mut body: Body, max: usize) -> Result<Bytes, axum::BoxError> {
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
    let read = || {
        let read = canonical::parse(bytes).map_err(|error| {
            Problem::new(
                "invalid_json",
                format!("the body cannot be read: {error}"),
                "send one JSON value in UTF-8 without duplicate keys",
            )
        });
        modernised(read?)
    };
    // Where a fault is costs time to keep track of, so only a request that has one pays for it.
    if let Ok(body) = T::deserialize(read()?) {
        return Ok(body);
    }
    typed(&read()?)
}

/// Reads what was looked at as plain JSON before. Every fault is named, not only the first.
pub(crate) fn typed<T: DeserializeOwned + JsonSchema + 'static>(
    body: &Value,
) -> Result<T, Problem> {
    serde_path_to_error::deserialize(body.clone()).map_err(|error| {
        let mut path = error.path().to_string();
        // An offer is a hop with more beside it, and where a fault of the hop is, the hop knows.
        if path == "."
            && TypeId::of::<T>() == TypeId::of::<wire::Offer>()
            && let Err(error) = serde_path_to_error::deserialize::<_, wire::FollowUp>(body.clone())
        {
            path = error.path().to_string();
        }
        let faults = every_fault::<T>(body);
        let field = match (path.as_str(), faults.first()) {
            (".", Some(first)) if !first.path.is_empty() => first.path[1..].replace('/', "."),
            (".", _) => "body".to_owned(),
            (path, _) => path.to_owned(),
        };
        Problem::invalid(&field, error.inner().to_string()).detail("faults", told(&faults))
    })
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

/// Who still speaks major 1 is understood: its hops are put into the form of today.
fn modernised(mut value: Value) -> Result<Value, Problem> {
    let is_old = |value: &Value| {
        let given = value.get("envelope_version").and_then(Value::as_str);
        given.and_then(version::parse).is_some_and(|(major, _)| major == 1)
    };
    let modern = |value: &mut Value| -> Result<(), Problem> {
        match value.take() {
            Value::Object(flat) => {
                let offer = version::offer_from_1(flat).map_err(|faults| {
                    let message = "the envelope of major 1 is not what it must be";
                    let hint = "correct every fault that is named and send it again";
                    Problem::new("invalid_envelope", message, hint).detail("faults", told(&faults))
                });
                *value = Value::Object(offer?);
                Ok(())
            }
            _ => Ok(()),
        }
    };
    if is_old(&value) {
        modern(&mut value)?;
    }
    for list in ["offers", "follow_ups"] {
        let hops = value.get_mut(list).and_then(Value::as_array_mut);
        for hop in hops.into_iter().flatten().filter(|hop| is_old(hop)) {
            modern(hop)?;
            // Whose task it is, and who hands it on, the claim says.
            if let Value::Object(hop) = hop
                && list == "follow_ups"
            {
                hop.remove("task_id");
                hop.remove("from_agent");
                hop.remove("intent");
                hop.remove("correlation_id");
                hop.remove("project");
            }
        }
    }
    Ok(value)
}

/// Query parameters, with our error shape.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, app).await;
        read.map(|Query(params)| Self(params))
            .map_err(|error| Problem::invalid("query", error.body_text()))
    }
}

/// An id in a path, with our error shape.
pub(crate) struct PathId<T>(pub(crate) T);

impl<T> FromRequestParts<App> for PathId<T>
where
    T: std::str::FromStr<Err = tasuki_core::ids::Malformed> + Send,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = axum::extract::Path::<String>::from_request_parts(parts, app).await;
        let text = path.map_err(|error| Problem::invalid("path", error.body_text()))?.0;
        text.parse().map(Self).map_err(|error: tasuki_core::ids::Malformed| {
            Problem::invalid("id", format!("{text:?} is no id: {error}"))
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
