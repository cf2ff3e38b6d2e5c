// SPDX-License-Identifier: Apache-2.0
//! The audit log as server-sent events. An event's id is its position, so a client that comes back
//! with `Last-Event-ID` misses nothing and gets nothing twice. Where that cannot be promised, an
//! event `missed` says so, and from where on it can.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::{HandoffId, Hash, Position, TaskId};
use tasuki_engine::{Desk, Entry, Sight};

use crate::auth::At;
use crate::error::Problem;
use crate::json::Params;
use crate::{to_wire, wire};

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
    let begin = (desk, Heard { last: after, hash: None });
    let pages = stream::unfold(begin, |(desk, heard)| async move {
        let (page, heard) = heard.next(&desk).await?;
        Some((stream::iter(page), (desk, heard)))
    });
    // Who is let in, and what it may see, is asked for each event: rules may change while a page
    // is being read.
    let events = pages
        .flatten()
        .then(move |item| {
            let desk = watcher.clone();
            let wanted = match &item {
                Item::Event(entry, _) => wanted(entry),
                Item::Missed { .. } => true,
            };
            async move {
                let desk = desk.renewed().ok().filter(|desk| desk.may_follow().is_ok())?;
                let seen = match &item {
                    Item::Event(entry, sight) => wanted && desk.sees_event(entry, sight).await,
                    Item::Missed { .. } => true,
                };
                Some(seen.then(|| Ok::<_, Infallible>(item.as_event())))
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

/// What a follower is told.
enum Item {
    /// With what was seen in one look for its page: whoever follows, an event costs no question to
    /// the store.
    Event(Box<Entry>, Arc<Sight>),
    /// It cannot be promised that everything up to a position was told; from there on it is.
    Missed { after: Position, resume_after: Position },
}

impl Item {
    fn as_event(&self) -> Event {
        let (id, kind, data) = match self {
            Self::Event(entry, _) => {
                let kind = entry.sealed.record.event.kind();
                (entry.sealed.position, kind, serde_json::to_string(&to_wire::event(entry, None)))
            }
            Self::Missed { after, resume_after } => {
                let missed = wire::Missed { after: *after, resume_after: *resume_after };
                (*resume_after, "missed", serde_json::to_string(&missed))
            }
        };
        let data = data.expect("an event has string keys only");
        Event::default().id(id.to_string()).event(kind).data(data)
    }
}

/// How far a follower has come, and by which event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heard {
    last: Position,
    hash: Option<Hash>,
}

/// Whether the log goes on where a follower stopped.
#[derive(Debug, PartialEq, Eq)]
enum Joint {
    /// It does, with its first event or, where the last one was read again, with the second.
    Whole { again: bool },
    /// What followed is gone: old history was dropped.
    Dropped { resume_after: Position },
    /// Another event stands in its place: a failover of the database lost the end of the log.
    Rewritten,
}

impl Heard {
    /// What comes next, as soon as there is something. Nothing if the stream has to end.
    async fn next(self, desk: &Desk) -> Option<(Vec<Item>, Self)> {
        if !desk.more_events(self.last).await {
            return None;
        }
        let desk = desk.renewed().ok()?;
        let (mut entries, sight) = desk.events_with_tasks(self.read_after(), PAGE).await.ok()?;
        let sight = Arc::new(sight);
        let missed = |resume_after| Item::Missed { after: self.last, resume_after };
        let mut items = Vec::with_capacity(entries.len() + 1);
        let first = entries.first().map(|entry| (entry.sealed.position, entry.sealed.hash));
        match self.joint(first) {
            Joint::Whole { again } => drop(entries.drain(..usize::from(again))),
            Joint::Dropped { resume_after } => items.push(missed(resume_after)),
            Joint::Rewritten => {
                let resume_after = desk.log_kept_until().await.ok()?.min(self.last);
                items.push(missed(resume_after));
                return Some((items, Self { last: resume_after, hash: None }));
            }
        }
        let last = entries.last().map(|entry| &entry.sealed);
        let heard = last.map_or(self, |last| Self { last: last.position, hash: Some(last.hash) });
        let told = |entry| Item::Event(Box::new(entry), sight.clone());
        items.extend(entries.into_iter().map(told));
        Some((items, heard))
    }

    /// The last event is read again where it is known: positions are given a second time after a
    /// failover that lost some.
    fn read_after(self) -> Position {
        Position(self.last.0 - u64::from(self.hash.is_some()))
    }

    fn joint(self, first: Option<(Position, Hash)>) -> Joint {
        match (self.hash, first) {
            (Some(hash), Some((position, found))) if position == self.last => {
                if hash == found {
                    Joint::Whole { again: true }
                } else {
                    Joint::Rewritten
                }
            }
            (_, Some((position, _))) if position.0 > self.last.0 + 1 => {
                Joint::Dropped { resume_after: Position(position.0 - 1) }
            }
            (_, Some(_)) | (None, None) => Joint::Whole { again: false },
            (Some(_), None) => Joint::Rewritten,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Hash = Hash([1; 32]);
    const NEW: Hash = Hash([2; 32]);

    fn at(position: u64, hash: Hash) -> Option<(Position, Hash)> {
        Some((Position(position), hash))
    }

    #[test]
    fn a_log_that_goes_on_says_nothing() {
        let fresh = Heard { last: Position(4), hash: None };
        assert_eq!(fresh.read_after(), Position(4));
        assert_eq!(fresh.joint(at(5, NEW)), Joint::Whole { again: false });
        assert_eq!(fresh.joint(None), Joint::Whole { again: false });
        let known = Heard { last: Position(4), hash: Some(OLD) };
        assert_eq!(known.read_after(), Position(3));
        assert_eq!(known.joint(at(4, OLD)), Joint::Whole { again: true });
        assert_eq!(known.joint(at(5, NEW)), Joint::Whole { again: false }, "only it was dropped");
    }

    #[test]
    fn events_that_were_dropped_are_missed_and_where_to_go_on_is_said() {
        for hash in [None, Some(OLD)] {
            let heard = Heard { last: Position(4), hash };
            let resume_after = Position(8);
            assert_eq!(heard.joint(at(9, NEW)), Joint::Dropped { resume_after });
        }
    }

    #[test]
    fn another_event_in_the_place_of_the_last_one_or_none_means_that_the_log_was_rewritten() {
        let heard = Heard { last: Position(4), hash: Some(OLD) };
        assert_eq!(heard.joint(at(4, NEW)), Joint::Rewritten);
        assert_eq!(heard.joint(None), Joint::Rewritten);
    }
}
