// SPDX-License-Identifier: Apache-2.0
//! Errors as HTTP replies.

use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tasuki_engine::Error;
use tasuki_protocol::Problem;

use crate::body;

/// What a handler ends with if it does not answer.
#[derive(Debug)]
pub struct Failed(pub Problem);

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let Self(problem) = self;
        let status =
            StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = body::reply(status, &problem);
        // Whatever the reason is, who is told a time is told it where clients look for it.
        let ms = problem.details.0.get("retry_after_ms").and_then(serde_json::Value::as_u64);
        if ms.is_some() || matches!(status.as_u16(), 429 | 503 | 507) {
            let seconds = ms.unwrap_or(1000).div_ceil(1000).max(1);
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(Arc::new(problem));
        response
    }
}
