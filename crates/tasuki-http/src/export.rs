// SPDX-License-Identifier: Apache-2.0
//! The audit log as lines of JSON.

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::future::BoxFuture;
use futures::{FutureExt, stream};
use tasuki_engine::Desk;
use tasuki_engine::operations::{Entry, Given};
use tasuki_front::Failed;
use tasuki_protocol::ExportLog;

/// How many events are read from the store at a time.
const PAGE: usize = 500;

/// Streams the log; what was committed after the request began is in it as far as it goes.
pub(crate) fn log(
    entry: &'static Entry,
    desk: Desk,
    parts: &Parts,
) -> BoxFuture<'static, Result<Response, Failed>> {
    let given = Given::Query(parts.uri.query().unwrap_or_default());
    let asked = entry.asked(given, |_| Ok(()));
    async move { lines(entry, desk, asked?).await }.boxed()
}

async fn lines(entry: &'static Entry, desk: Desk, asked: ExportLog) -> Result<Response, Failed> {
    // Refused now, and not in the middle of a stream.
    entry.may_ask(&desk)?;
    let start = Some(desk.place_whole("after", asked.after.unwrap_or_default()).await?);
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
