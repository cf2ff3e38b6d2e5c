// SPDX-License-Identifier: Apache-2.0
//! The audit log as server-sent events. An event's id is its cursor, so a client that comes back with
//! `Last-Event-ID` misses nothing and gets nothing twice. Where that cannot be promised, an
//! event `missed` says so, and from where on it can.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use tasuki_core::cursor::Epochs;
use tasuki_core::{Cursor, Hash, Position};
use tasuki_engine::operations::{Entry, Given};
use tasuki_engine::{Desk, Entry as Logged, Placed, Sight};
use tasuki_front::Failed;
use tasuki_protocol::Problem;

use crate::{to_wire, wire};

/// How many events are read from the store at a time.
const PAGE: usize = 200;
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often at most somebody is told that something has changed.
const CHANGES_EVERY: Duration = Duration::from_millis(250);

/// Says that something has changed and not what, so that it costs the same for everybody and tells
/// nobody what is not theirs.
pub(crate) fn changes(
    entry: &'static Entry,
    desk: Desk,
    parts: &Parts,
) -> BoxFuture<'static, Result<Response, Failed>> {
    let given = Given::Query(parts.uri.query().unwrap_or_default());
    let asked = entry.asked::<wire::Nothing>(given, |_| Ok(()));
    async move {
        asked?;
        desk.may_follow()?;
        let head = desk.head();
        let told = stream::unfold((desk, head), |(desk, head)| async move {
            if !desk.more_events(head).await {
                return None;
            }
            // What comes within this time is told together. It paces replies and decides nothing.
            tokio::time::sleep(CHANGES_EVERY).await;
            let desk = desk.renewed().ok().filter(|desk| desk.may_follow().is_ok())?;
            let head = desk.head();
            let changed = wire::Changed { now: desk.now() };
            let data = serde_json::to_string(&changed).expect("it has string keys only");
            Some((Ok::<_, Infallible>(Event::default().event("changed").data(data)), (desk, head)))
        });
        Ok(Sse::new(told).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
    }
    .boxed()
}

pub(crate) fn events(
    entry: &'static Entry,
    desk: Desk,
    parts: &Parts,
) -> BoxFuture<'static, Result<Response, Failed>> {
    let given = Given::Query(parts.uri.query().unwrap_or_default());
    let asked = entry.asked(given, |_| Ok(()));
    let headers = parts.headers.clone();
    async move { follow(desk, &headers, asked?).await }.boxed()
}

async fn follow(
    desk: Desk,
    headers: &HeaderMap,
    wish: wire::FollowEvents,
) -> Result<Response, Failed> {
    let (heard, missed) = start(&desk, headers, wish.after).await?;
    let wanted = move |entry: &Logged| {
        let record = &entry.sealed.record;
        wish.task.is_none_or(|task| record.task_id == task)
            && wish.handoff.is_none_or(|handoff| record.handoff_id == Some(handoff))
    };
    desk.may_follow()?;
    let end = (wish.follow == Some(false)).then(|| desk.head());
    let watcher = desk.clone();
    let pages = stream::unfold((desk, heard), move |(desk, heard)| async move {
        if end.is_some_and(|end| heard.last >= end) {
            return None;
        }
        let (page, heard) = heard.next(&desk).await?;
        Some((stream::iter(page), (desk, heard)))
    });
    let first = stream::iter(missed.map(Item::Missed));
    // Who is let in, and what it may see, is asked for each event: rules may change while a page
    // is being read.
    let events = first
        .chain(pages.flatten())
        .then(move |item| {
            let desk = watcher.clone();
            let wanted = match &item {
                Item::Event { entry, .. } => wanted(entry),
                Item::Missed(_) => true,
            };
            async move {
                let desk = desk.renewed().ok().filter(|desk| desk.may_follow().is_ok())?;
                let seen = match &item {
                    Item::Event { entry, sight, .. } => {
                        wanted && desk.sees_event(entry, sight).await
                    }
                    Item::Missed(_) => true,
                };
                Some(seen.then(|| Ok::<_, Infallible>(item.as_event())))
            }
        })
        .take_while(|known| std::future::ready(known.is_some()))
        .filter_map(|event| std::future::ready(event.flatten()));
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Where a follower begins, and what it has to be told first.
async fn start(
    desk: &Desk,
    headers: &HeaderMap,
    after: Option<Cursor>,
) -> Result<(Heard, Option<wire::Missed>), Failed> {
    let head = desk.head();
    let (field, asked) = match headers.get("last-event-id") {
        None => ("after", after),
        Some(id) => {
            let id = id.to_str().ok().and_then(|id| id.trim().parse().ok());
            let wrong = || Problem::invalid("Last-Event-ID", "expected the id of an event");
            ("Last-Event-ID", Some(id.ok_or_else(wrong)?))
        }
    };
    let epochs = desk.epochs().await?;
    let Some(asked) = asked else {
        return Ok((Heard { last: head, told: epochs.cursor(head), hash: None }, None));
    };
    let Placed { position, missed } = desk.place_in_log(field, asked).await?;
    // Who heard of more than there is would miss what comes until then: the log is another one, or
    // was restored. An event can be read a moment before this broker counts it, and sooner at
    // another broker of the same database, so the log itself is asked.
    if position > head && desk.events(Position(position.0 - 1), 1).await?.is_empty() {
        // Where the log ends is the business of who may count it.
        let problem = match desk.counts_all() {
            true => {
                format!("is {asked}, past the end of the log, which is at {}", epochs.cursor(head))
            }
            false => format!("is {asked}, past the end of the log"),
        };
        return Err(Problem::invalid(field, problem).into());
    }
    let told = missed.as_ref().map_or(asked, |missed| missed.resume_after);
    Ok((Heard { last: position, told, hash: None }, missed))
}

/// What a follower is told.
enum Item {
    /// With what was seen in one look for its page: whoever follows, an event costs no question to
    /// the store.
    Event { entry: Box<Logged>, sight: Arc<Sight>, epochs: Arc<Epochs> },
    /// It cannot be promised that everything up to here was told; from there on it is.
    Missed(wire::Missed),
}

impl Item {
    fn as_event(&self) -> Event {
        let (id, kind, data) = match self {
            Self::Event { entry, epochs, .. } => {
                let event = to_wire::event(entry, None, epochs);
                let kind = entry.sealed.record.event.kind();
                (event.position, kind, serde_json::to_string(&event))
            }
            Self::Missed(missed) => (missed.resume_after, "missed", serde_json::to_string(missed)),
        };
        let data = data.expect("an event has string keys only");
        Event::default().id(id.to_string()).event(kind).data(data)
    }
}

/// How far a follower has come, by which event, and as what it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heard {
    last: Position,
    told: Cursor,
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
        let epochs = desk.epochs().await.ok()?;
        let missed = |resume_after| Item::Missed(wire::Missed { after: self.told, resume_after });
        let mut items = Vec::with_capacity(entries.len() + 1);
        let first = entries.first().map(|entry| (entry.sealed.position, entry.sealed.hash));
        match self.joint(first) {
            Joint::Whole { again } => drop(entries.drain(..usize::from(again))),
            Joint::Dropped { resume_after } => items.push(missed(epochs.cursor(resume_after))),
            Joint::Rewritten => {
                let heard = self.cut(&desk).await?;
                items.push(missed(heard.told));
                return Some((items, heard));
            }
        }
        let last = entries.last().map(|entry| &entry.sealed);
        let heard = last.map_or(self, |last| Self {
            last: last.position,
            told: epochs.cursor(last.position),
            hash: Some(last.hash),
        });
        let told = |entry| Item::Event {
            entry: Box::new(entry),
            sight: sight.clone(),
            epochs: epochs.clone(),
        };
        items.extend(entries.into_iter().map(told));
        Some((items, heard))
    }

    /// Where a follower goes on after the end of the log was lost.
    async fn cut(self, desk: &Desk) -> Option<Self> {
        let Placed { position, missed } = desk.place_in_log("after", self.told).await.ok()?;
        // What raised the epoch may not be there yet; then the next event is.
        let last = position.min(self.last);
        let epochs = desk.epochs().await.ok()?;
        let told = missed.map_or_else(|| epochs.cursor(last), |missed| missed.resume_after);
        Some(Self { last, told, hash: None })
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

    fn heard(hash: Option<Hash>) -> Heard {
        Heard { last: Position(4), told: "1-4".parse().unwrap(), hash }
    }

    fn at(position: u64, hash: Hash) -> Option<(Position, Hash)> {
        Some((Position(position), hash))
    }

    #[test]
    fn a_log_that_goes_on_says_nothing() {
        let fresh = heard(None);
        assert_eq!(fresh.read_after(), Position(4));
        assert_eq!(fresh.joint(at(5, NEW)), Joint::Whole { again: false });
        assert_eq!(fresh.joint(None), Joint::Whole { again: false });
        let known = heard(Some(OLD));
        assert_eq!(known.read_after(), Position(3));
        assert_eq!(known.joint(at(4, OLD)), Joint::Whole { again: true });
        assert_eq!(known.joint(at(5, NEW)), Joint::Whole { again: false }, "only it was dropped");
    }

    #[test]
    fn events_that_were_dropped_are_missed_and_where_to_go_on_is_said() {
        for hash in [None, Some(OLD)] {
            let heard = heard(hash);
            let resume_after = Position(8);
            assert_eq!(heard.joint(at(9, NEW)), Joint::Dropped { resume_after });
        }
    }

    #[test]
    fn another_event_in_the_place_of_the_last_one_or_none_means_that_the_log_was_rewritten() {
        let heard = heard(Some(OLD));
        assert_eq!(heard.joint(at(4, NEW)), Joint::Rewritten);
        assert_eq!(heard.joint(None), Joint::Rewritten);
    }
}
