// SPDX-License-Identifier: Apache-2.0

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::Position;

use super::Answer;
use crate::auth::At;
use crate::json::{Params, ok};
use crate::to_wire;

pub(crate) async fn verify(At(desk): At) -> Answer {
    Ok(ok(&to_wire::verdict(desk.verify().await?)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Export {
    /// Only what comes after this position.
    #[serde(default)]
    after: u64,
}

/// How many events are read from the store at a time.
const PAGE: usize = 500;

/// Streams the log; what was committed after the request began is in it as far as it goes.
pub(crate) async fn export(At(desk): At, Params(wish): Params<Export>) -> Answer {
    let start = Some(Position(wish.after));
    // Refused now, and not in the middle of a stream.
    desk.may_export()?;
    let lines = stream::unfold((desk, start), |(desk, after)| async move {
        match desk.export(after?, PAGE).await {
            Ok((_, None)) => None,
            Ok((lines, next)) => {
                let mut text = lines.join("\n");
                text.push('\n');
                Some((Ok(Bytes::from(text)), (desk, next)))
            }
            // The client sees a broken stream, not a short log that looks whole.
            Err(error) => Some((Err(error), (desk, None))),
        }
    });
    let mut response = Response::new(Body::from_stream(lines));
    let kind = HeaderValue::from_static("application/jsonl");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
