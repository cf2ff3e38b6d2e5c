// SPDX-License-Identifier: Apache-2.0

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::Position;

use super::Answer;
use crate::json::{Params, ok};
use crate::{App, to_wire};

pub(crate) async fn verify(State(app): State<App>) -> Answer {
    Ok(ok(&to_wire::verdict(app.engine.verify().await?)))
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
pub(crate) async fn export(State(app): State<App>, Params(wish): Params<Export>) -> Answer {
    let start = Some(Position(wish.after));
    let lines = stream::unfold((app, start), |(app, after)| async move {
        match app.engine.export(after?, PAGE).await {
            Ok((_, None)) => None,
            Ok((lines, next)) => {
                let mut text = lines.join("\n");
                text.push('\n');
                Some((Ok(Bytes::from(text)), (app, next)))
            }
            // The client sees a broken stream, not a short log that looks whole.
            Err(error) => Some((Err(error), (app, None))),
        }
    });
    let mut response = Response::new(Body::from_stream(lines));
    let kind = HeaderValue::from_static("application/jsonl");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}
