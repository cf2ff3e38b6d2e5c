// SPDX-License-Identifier: Apache-2.0
//! Streams. All of a task tell the same, in the same order, because all are told from the log; a piece's
//! id is its number in the story, so a client that comes back with `Last-Event-ID` misses nothing.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde_json::Value;

use crate::fault::{Fault, Kind};
use crate::model::{Configuration, Piece, cut};
use crate::ops::{Talk, value};
use crate::story::Story;

const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long one look for news takes. Then the caller is asked for again.
const LOOK_MS: u64 = 30_000;

/// How a binding wraps a piece.
pub(crate) type Wrap = Box<dyn Fn(Value) -> Value + Send + Sync>;

struct Reader {
    talk: Talk,
    story: Story,
    /// How many of its updates were told.
    told: usize,
    ended: bool,
}

/// What a message came to, from its first word on.
pub(crate) fn sent(
    talk: Talk,
    story: Story,
    configuration: &Configuration,
    wrap: Wrap,
) -> Response {
    let first = Piece::Task(cut(story.task(), configuration.history_length));
    let ended = story.status.state.is_terminal() || story.status.state.is_interrupted();
    let told = story.updates.len();
    let first = vec![(story.generation(), first)];
    serve(Reader { talk, story, told, ended }, first, wrap)
}

/// What becomes of a task from here on, or from where a client stopped.
pub(crate) fn subscribed(
    talk: Talk,
    story: Story,
    headers: &HeaderMap,
    wrap: Wrap,
) -> Result<Response, Fault> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let last: Option<usize> = last
        .map(str::parse)
        .transpose()
        .map_err(|_| Fault::params("Last-Event-ID", "expected the id of a piece of the stream"))?;
    let ended = story.status.state.is_terminal();
    let Some(last) = last else {
        if ended {
            return Err(Fault::new(
                Kind::Unsupported,
                format!("task {} is at its end; get it instead", story.id),
            ));
        }
        let told = story.updates.len();
        let first = vec![(story.generation(), Piece::Task(story.task()))];
        return Ok(serve(Reader { talk, story, told, ended }, first, wrap));
    };
    let heard = last.saturating_sub(1).min(story.updates.len());
    let first = numbered(&story, heard);
    let told = story.updates.len();
    Ok(serve(Reader { talk, story, told, ended }, first, wrap))
}

/// What was not told yet, each with its number.
pub(crate) fn numbered(story: &Story, told: usize) -> Vec<(usize, Piece)> {
    let rest = story.updates.iter().enumerate().skip(told);
    rest.map(|(place, piece)| (place + 2, piece.clone())).collect()
}

fn serve(reader: Reader, first: Vec<(usize, Piece)>, wrap: Wrap) -> Response {
    let later = stream::unfold(reader, |mut reader| async move {
        let pieces = reader.next().await?;
        Some((stream::iter(pieces), reader))
    });
    let events = stream::iter(first).chain(later.flatten()).map(move |(number, piece)| {
        let data = wrap(value(&piece)).to_string();
        Ok::<_, Infallible>(Event::default().id(number.to_string()).data(data))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

impl Reader {
    /// What comes next, as soon as there is something. Nothing if the stream has to end: the task is
    /// at its end or waits for an answer, the broker goes away, or the caller may not see it any more.
    async fn next(&mut self) -> Option<Vec<(usize, Piece)>> {
        while !self.ended {
            let desk = self.talk.desk.renewed().ok()?;
            let moved =
                desk.task_moved(self.story.task_id, self.story.events, LOOK_MS).await.ok()?;
            self.talk.desk = desk;
            if !moved {
                if self.talk.desk.is_closing() {
                    return None;
                }
                continue;
            }
            self.story = self.talk.find(&self.story.id.to_string()).await.ok()?;
            let news = numbered(&self.story, self.told);
            self.told = self.story.updates.len();
            let state = self.story.status.state;
            self.ended = state.is_terminal() || (state.is_interrupted() && !news.is_empty());
            if !news.is_empty() {
                return Some(news);
            }
        }
        None
    }
}
