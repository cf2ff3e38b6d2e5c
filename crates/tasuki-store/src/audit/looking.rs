// SPDX-License-Identifier: Apache-2.0
//! Looking at the entries of a log one by one: reading the record, hashing it and its body. That
//! needs nothing else of the log and is most of the work, so it is done on all cores, while one
//! thread reads on and another puts the pieces together in order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tasuki_core::canonical;
use tasuki_core::event::{Record, Sealed, link};
use tasuki_core::{Event, Hash, Position, TaskId};

use super::{Finding, Mark, Verdict, Verifier};
use crate::{Checkpoint, Entry};

/// How many entries are handed on at a time.
const AT_ONCE: usize = 1024;
/// How many threads look at entries at most.
const LOOKING_MAX: usize = 8;

/// An entry of a log as it is stored.
pub(crate) enum Raw {
    Event(RawEvent),
    Checkpoint(Checkpoint),
    Unreadable(Finding),
}

pub(crate) struct RawEvent {
    pub(crate) position: Position,
    pub(crate) previous: Option<Position>,
    pub(crate) hash: Hash,
    pub(crate) record: String,
    pub(crate) body: Option<String>,
    /// The hash and the record of the event that it follows in its task, where that one was
    /// verified before.
    pub(crate) before: Option<(Hash, String)>,
}

impl RawEvent {
    /// Reads the record.
    pub(crate) fn into_entry(self) -> Result<(Entry, Option<String>), Finding> {
        let Self { position, previous, hash, record: encoded, body, .. } = self;
        let record: Record = serde_json::from_str(&encoded).map_err(|error| Finding {
            position,
            task_id: None,
            problem: format!("cannot be read: {error}"),
        })?;
        Ok((Entry { sealed: Sealed { position, previous, hash, record }, encoded }, body))
    }
}

/// What can be said of the body that came with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodySeen {
    None,
    /// Its event knows of none.
    Unknown,
    Missing(Hash),
    Good,
    Altered,
}

/// An event and what can be said of it alone.
pub(super) struct Looked {
    pub(super) entry: Entry,
    pub(super) body: BodySeen,
    /// The hash that its predecessor probably has, and the one that it has itself after that.
    linked: Option<(Hash, Hash)>,
    before: Option<(TaskId, u32, Hash)>,
}

impl Looked {
    pub(super) fn at(
        entry: Entry,
        body: Option<&str>,
        follows: Option<Hash>,
        before: Option<(TaskId, u32, Hash)>,
    ) -> Self {
        let body = match (entry.sealed.record.event.body(), body) {
            (None, None) => BodySeen::None,
            (None, Some(_)) => BodySeen::Unknown,
            (Some(expected), None) => BodySeen::Missing(expected),
            (Some(expected), Some(body)) if canonical::hash(body.as_bytes()) == expected => {
                BodySeen::Good
            }
            (Some(_), Some(_)) => BodySeen::Altered,
        };
        let linked = follows.map(|previous| (previous, link(previous, entry.encoded.as_bytes())));
        Self { entry, body, linked, before }
    }

    /// The hash that it must have after its predecessor.
    pub(super) fn link(&self, previous: Hash) -> Hash {
        match self.linked {
            Some((assumed, hash)) if assumed == previous => hash,
            Some(_) | None => link(previous, self.entry.encoded.as_bytes()),
        }
    }

    /// The index, hash and position of its predecessor, if that one was verified before.
    pub(super) fn before(&self) -> Option<(u32, Hash, Position)> {
        let (task, index, hash) = self.before?;
        let sealed = &self.entry.sealed;
        (task == sealed.record.task_id).then_some((index, hash, sealed.previous?))
    }

    /// The body that its event says was erased.
    pub(super) fn erases(&self) -> Option<(Position, Hash)> {
        let Event::Erased(erased) = &self.entry.sealed.record.event else { return None };
        Some((erased.position, erased.body))
    }
}

enum Seen {
    Event(Box<Looked>),
    Checkpoint(Checkpoint, bool),
    Unreadable(Finding),
}

/// Looks at neighbours in the log. Most tasks are short, so most predecessors are among them.
fn look(raw: Vec<Raw>) -> Vec<Seen> {
    let first = raw.iter().find_map(|raw| match raw {
        Raw::Event(event) => Some(event.position.0),
        Raw::Checkpoint(_) | Raw::Unreadable(_) => None,
    });
    let hashes: Vec<Hash> = raw
        .iter()
        .filter_map(|raw| match raw {
            Raw::Event(event) => Some(event.hash),
            Raw::Checkpoint(_) | Raw::Unreadable(_) => None,
        })
        .collect();
    // Only a guess: the verifier knows which event it must be.
    let near = |at: Position| {
        let place = at.0.checked_sub(first?)?;
        hashes.get(usize::try_from(place).ok()?).copied()
    };
    let look = |raw| match raw {
        Raw::Event(event) => look_at(event, near),
        Raw::Checkpoint(checkpoint) => {
            let signed = checkpoint.is_signed();
            Seen::Checkpoint(checkpoint, signed)
        }
        Raw::Unreadable(finding) => Seen::Unreadable(finding),
    };
    raw.into_iter().map(look).collect()
}

fn look_at(mut raw: RawEvent, near: impl Fn(Position) -> Option<Hash>) -> Seen {
    let before = raw.before.take();
    let follows = match (raw.previous, &before) {
        (None, _) => Some(Hash::ZERO),
        (Some(_), Some((hash, _))) => Some(*hash),
        (Some(at), None) => near(at),
    };
    // One that was verified before and cannot be read now was altered since, and fits nothing.
    let before = before.and_then(|(hash, record)| {
        let record: Record = serde_json::from_str(&record).ok()?;
        Some((record.task_id, record.index, hash))
    });
    match raw.into_entry() {
        Ok((entry, body)) => {
            Seen::Event(Box::new(Looked::at(entry, body.as_deref(), follows, before)))
        }
        Err(finding) => Seen::Unreadable(finding),
    }
}

/// Verifies what `read` gives, up to the first entry that is wrong; then `read` is told to stop.
/// A log that must reach up to a position says so.
pub(crate) fn verify<E>(
    verifier: Verifier,
    end: Option<Position>,
    read: impl FnOnce(&mut dyn FnMut(Raw) -> bool) -> Result<(), E>,
) -> Result<(Verdict, Option<Mark>), E> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(LOOKING_MAX);
    thread::scope(|scope| {
        let mut to: Vec<SyncSender<Vec<Raw>>> = Vec::new();
        let mut from = Vec::new();
        for _ in 0..threads {
            let (raw, work) = sync_channel(1);
            let (done, seen) = sync_channel(1);
            scope.spawn(move || {
                for raw in work {
                    // Nobody waits for more after the first bad entry.
                    if done.send(look(raw)).is_err() {
                        return;
                    }
                }
            });
            to.push(raw);
            from.push(seen);
        }
        let put_together = scope.spawn(move || put_together(verifier, &from));
        let mut chunk = Vec::with_capacity(AT_ONCE);
        let mut sent = 0;
        let mut send = |chunk: &mut Vec<Raw>| {
            let full = std::mem::replace(chunk, Vec::with_capacity(AT_ONCE));
            sent += 1;
            to[(sent - 1) % threads].send(full).is_ok()
        };
        let read = read(&mut |raw| {
            chunk.push(raw);
            chunk.len() < AT_ONCE || send(&mut chunk)
        });
        if !chunk.is_empty() {
            // Whether somebody still waits for it or not, it is the last one.
            send(&mut chunk);
        }
        drop(to);
        let (verifier, first_bad) = put_together.join().expect("verifying does not panic");
        read?;
        let ends = end.and_then(|end| verifier.ends_before(end));
        Ok(verifier.marked(first_bad.or(ends)))
    })
}

/// Takes from each thread in turn what it looked at, which is the order of the log.
fn put_together(
    mut verifier: Verifier,
    from: &[Receiver<Vec<Seen>>],
) -> (Verifier, Option<Finding>) {
    for seen in from.iter().cycle() {
        let Ok(seen) = seen.recv() else { break };
        for seen in seen {
            let checked = match seen {
                Seen::Event(looked) => verifier.looked(&looked),
                Seen::Checkpoint(checkpoint, signed) => verifier.sealed_by(&checkpoint, signed),
                Seen::Unreadable(finding) => Err(finding),
            };
            if let Err(finding) = checked {
                return (verifier, Some(finding));
            }
        }
    }
    (verifier, None)
}
