// SPDX-License-Identifier: Apache-2.0
//! JSON in and out. What comes in is read strictly (see `tasuki_core::canonical`) and refused with
//! the path of the first fault.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::{BodyExt, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tasuki_core::canonical;

use crate::App;
use crate::error::Problem;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A request body, read strictly.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
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
        let read = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, max).collect()).await;
        let bytes = match read {
            Ok(Ok(collected)) => collected.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
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
        parse(&bytes).map(Self)
    }
}

fn is_json(parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or("").trim();
        kind.eq_ignore_ascii_case("application/json")
    })
}

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value = canonical::parse(bytes).map_err(|error| {
        Problem::new(
            "invalid_json",
            format!("the body cannot be read: {error}"),
            "send one JSON value in UTF-8 without duplicate keys",
        )
    })?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        Problem::invalid(if path == "." { "body" } else { &path }, error.inner().to_string())
    })
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
    let bytes = serde_json::to_vec(value).expect("a reply has string keys only");
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

pub(crate) fn ok(value: &impl Serialize) -> Response {
    reply(StatusCode::OK, value)
}
