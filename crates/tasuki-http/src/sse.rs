// SPDX-License-Identifier: Apache-2.0
//! The audit log as server-sent events. An event's id is its position, so a client that comes back
//! with `Last-Event-ID` misses nothing and gets nothing twice.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::{HandoffId, Position, TaskId};
use tasuki_engine::{Desk, Entry};

use crate::auth::At;
use crate::error::Problem;
use crate::json::Params;
use crate::to_wire;

/// How many events are read from the store at a time.
const PAGE: usize = 200;
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Follow {
    /// Only events after this position; `Last-Event-ID` wins over it. From now on by default.
    after: Option<u64>,
    /// Only events of this task.
    task: Option<TaskId>,
    /// Only events of this handoff.
    handoff: Option<HandoffId>,
}

pub(crate) async fn events(
    At(desk): At,
    headers: HeaderMap,
    Params(wish): Params<Follow>,
) -> Result<Response, Problem> {
    let after = start(&desk, &headers, wish.after).await?;
    let wanted = move |entry: &Entry| {
        let record = &entry.sealed.record;
        wish.task.is_none_or(|task| record.task_id == task)
            && wish.handoff.is_none_or(|handoff| record.handoff_id == Some(handoff))
    };
    desk.may_follow()?;
    let watcher = desk.clone();
    let pages = stream::unfold((desk, after), |(desk, after)| async move {
        if !desk.more_events(after).await {
            return None;
        }
        let read = desk.renewed().ok()?.events_with_tasks(after, PAGE).await;
        let (entries, sight) = read.ok()?;
        let last = entries.last().map_or(after, |entry| entry.sealed.position);
        // One look for the page: whoever follows, an event costs no question to the store.
        let sight = Arc::new(sight);
        let entries = entries.into_iter().map(move |entry| (entry, sight.clone()));
        Some((stream::iter(entries), (desk, last)))
    });
    // Who is let in, and what it may see, is asked for each event: rules may change while a page
    // is being read.
    let events = pages
        .flatten()
        .then(move |(entry, sight)| {
            let desk = watcher.clone();
            let wanted = wanted(&entry);
            async move {
                let desk = desk.renewed().ok().filter(|desk| desk.may_follow().is_ok())?;
                let seen = wanted && desk.sees_event(&entry, &sight).await;
                Some(seen.then(|| Ok::<_, Infallible>(as_event(&entry))))
            }
        })
        .take_while(|known| std::future::ready(known.is_some()))
        .filter_map(|event| std::future::ready(event.flatten()));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

async fn start(desk: &Desk, headers: &HeaderMap, after: Option<u64>) -> Result<Position, Problem> {
    let head = desk.head();
    let (field, start) = match headers.get("last-event-id") {
        None => ("after", after.map_or(head, Position)),
        Some(id) => {
            let id = id.to_str().ok().and_then(|id| id.trim().parse().ok());
            let id = id.map(Position);
            let wrong = || Problem::invalid("Last-Event-ID", "expected a position: a number");
            ("Last-Event-ID", id.ok_or_else(wrong)?)
        }
    };
    // Who heard of more than there is would miss what comes until then: the log is another one, or
    // was restored. An event can be read a moment before this broker counts it, and sooner at
    // another broker of the same database, so the log itself is asked.
    if start > head && desk.events(Position(start.0 - 1), 1).await?.is_empty() {
        // Where the log ends is the business of who may count it.
        let problem = match desk.counts_all() {
            true => format!("is {start}, past the end of the log, which is at {head}"),
            false => format!("is {start}, past the end of the log"),
        };
        return Err(Problem::invalid(field, problem));
    }
    Ok(start)
}

fn as_event(entry: &Entry) -> Event {
    let data = serde_json::to_string(&to_wire::event(entry, None));
    Event::default()
        .id(entry.sealed.position.to_string())
        .event(entry.sealed.record.event.kind())
        .data(data.expect("an event has string keys only"))
}
