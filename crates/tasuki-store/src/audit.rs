// SPDX-License-Identifier: Apache-2.0
//! Checking the log. Every event hashes its predecessor in its task; all event hashes together
//! make the log's hash, which checkpoints sign. The same checks run on a live store, on a data
//! directory, and on an exported file that left the broker long ago.

mod looking;
mod mark;

pub(crate) use looking::{Raw, RawEvent, verify};
pub(crate) use mark::Mark;

use std::collections::{BTreeMap, HashMap};

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::canonical;
use tasuki_core::cursor::Epochs;
use tasuki_core::event::{Record, Sealed};
use tasuki_core::{Cursor, Hash, Position, TaskId, Timestamp};

use self::looking::{BodySeen, Looked};
use crate::{Checkpoint, Entry};

/// The log's hash after one more event.
#[must_use]
pub fn extend(log: Hash, event: Hash) -> Hash {
    canonical::hash_linked(log, &event.0)
}

impl Checkpoint {
    /// Signs the log as it is at a position.
    #[must_use]
    pub fn sign(position: Position, log_hash: Hash, at: Timestamp, key: &SigningKey) -> Self {
        let signature = key.sign(&statement(position, log_hash, at)).to_bytes();
        Self { position, log_hash, at, key: key.verifying_key().to_bytes(), signature }
    }

    /// Whether the signature is by the key that is named beside it.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        let statement = statement(self.position, self.log_hash, self.at);
        VerifyingKey::from_bytes(&self.key).is_ok_and(|key| {
            key.verify_strict(&statement, &Signature::from_bytes(&self.signature)).is_ok()
        })
    }
}

/// What a checkpoint's signature covers. The first line keeps it from meaning anything elsewhere.
fn statement(position: Position, log_hash: Hash, at: Timestamp) -> Vec<u8> {
    format!("tasuki checkpoint v1\n{position}\n{log_hash}\n{}\n", at.0).into_bytes()
}

/// The first entry that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("entry {position} {problem}")]
pub struct Finding {
    pub position: Position,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    pub problem: String,
}

/// What was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub events: u64,
    pub tasks: u64,
    pub bodies: u64,
    /// Bodies that were erased on purpose: the log says by whom and why.
    pub erased: u64,
    pub checkpoints: u64,
    /// How many of the last events no checkpoint covers yet.
    pub unsealed: u64,
    /// The keys that signed, in hex.
    pub keys: Vec<String>,
    /// Entries up to here were counted, and not checked again: they were verified before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_before: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<Finding>,
}

/// Takes a log from its first entry on and stops at the first that is wrong.
#[derive(Default)]
pub struct Verifier {
    /// The last entry that was dropped by retention.
    start: u64,
    last: u64,
    log: Hash32,
    chains: HashMap<TaskId, (u32, Hash, Position)>,
    /// Bodies that are not there, until an event is found that erased them.
    lost: BTreeMap<Position, (TaskId, Hash)>,
    verdict: Verdict,
    /// By what the log itself says.
    epochs: Epochs,
    /// The last checkpoint up to which nothing is left open.
    mark: Option<Mark>,
}

struct Hash32(Hash);

impl Default for Hash32 {
    fn default() -> Self {
        Self(Hash::ZERO)
    }
}

impl Verifier {
    /// For a log whose entries up to a position were dropped when its hash was this.
    #[must_use]
    pub fn beginning_after(position: Position, log_hash: Hash) -> Self {
        let (start, last) = (position.0, position.0);
        Self { start, last, log: Hash32(log_hash), ..Self::default() }
    }

    /// What is wrong with a log that must reach up to a position and has ended.
    pub(crate) fn ends_before(&self, end: Position) -> Option<Finding> {
        (self.last < end.0).then(|| Finding {
            position: Position(self.last + 1),
            task_id: None,
            problem: format!("is missing: the log goes on to {end}"),
        })
    }

    /// For a log that was verified up to a checkpoint before.
    pub(crate) fn going_on_after(mark: &Mark) -> Self {
        let mut verifier = Self::beginning_after(mark.position, mark.log_hash);
        verifier.start = mark.start.0;
        verifier.verdict = mark.counted.clone();
        verifier.verdict.verified_before = Some(mark.position);
        verifier.mark = Some(mark.clone());
        verifier
    }

    /// Checks one event and the body that came with it.
    pub fn event(&mut self, entry: Entry, body: Option<&str>) -> Result<(), Finding> {
        self.looked(&Looked::at(entry, body, None, None))
    }

    /// Checks how an entry fits to those before it, and what was seen in it.
    fn looked(&mut self, looked: &Looked) -> Result<(), Finding> {
        let Sealed { position, previous, hash, record } = &looked.entry.sealed;
        let wrong = |problem: String| Finding {
            position: *position,
            task_id: Some(record.task_id),
            problem,
        };
        if position.0 != self.last + 1 {
            return Err(wrong(format!(
                "follows {}: entries are missing or out of order",
                self.last
            )));
        }
        let known = self.chains.get(&record.task_id).copied().or(looked.before());
        // Its predecessor may have been dropped; then only the log's hash speaks for it.
        let dropped = known.is_none() && previous.is_some_and(|at| at.0 <= self.start);
        let index = known.map_or(if dropped { record.index } else { 0 }, |(index, ..)| index + 1);
        if record.index != index || (!dropped && *previous != known.map(|(_, _, at)| at)) {
            return Err(wrong(format!(
                "says it is event {} of its task, expected event {index}",
                record.index
            )));
        }
        if !dropped && looked.link(known.map_or(Hash::ZERO, |(_, hash, _)| hash)) != *hash {
            return Err(wrong("does not have the hash of its content: it was altered".into()));
        }
        match looked.body {
            BodySeen::None => {}
            BodySeen::Unknown => {
                return Err(wrong("has a body that its event does not know".into()));
            }
            BodySeen::Missing(expected) => {
                self.lost.insert(*position, (record.task_id, expected));
            }
            BodySeen::Good => self.verdict.bodies += 1,
            BodySeen::Altered => return Err(wrong("has a body that was altered".into())),
        }
        if let Some((at, body)) = looked.erases() {
            self.erased(at, body);
        }
        if known.is_none() && record.task_id != TaskId::STORE {
            self.verdict.tasks += 1;
        }
        self.chains.insert(record.task_id, (index, *hash, *position));
        self.log.0 = extend(self.log.0, *hash);
        self.last = position.0;
        self.verdict.events += 1;
        self.verdict.unsealed += 1;
        Ok(())
    }

    fn erased(&mut self, at: Position, body: Hash) {
        if self.lost.get(&at).is_some_and(|(_, hash)| *hash == body) {
            self.lost.remove(&at);
            self.verdict.erased += 1;
        } else if self
            .verdict
            .verified_before
            .is_some_and(|before| at <= before && at.0 > self.start)
        {
            // It was still there when it was verified.
            self.verdict.bodies = self.verdict.bodies.saturating_sub(1);
            self.verdict.erased += 1;
        }
    }

    /// Checks a checkpoint; comes right after the event at its position.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Finding> {
        self.sealed_by(checkpoint, checkpoint.is_signed())
    }

    fn sealed_by(&mut self, checkpoint: &Checkpoint, signed: bool) -> Result<(), Finding> {
        let wrong = |problem: &str| Finding {
            position: checkpoint.position,
            task_id: None,
            problem: format!("has a checkpoint that {problem}"),
        };
        if checkpoint.position.0 != self.last {
            return Err(wrong("stands elsewhere in the log: entries are missing"));
        }
        if checkpoint.log_hash != self.log.0 {
            return Err(wrong("does not match the log: entries before it were altered"));
        }
        if !signed {
            return Err(wrong("is not signed by its key"));
        }
        let key = hex(&checkpoint.key);
        if !self.verdict.keys.contains(&key) {
            self.verdict.keys.push(key);
        }
        self.verdict.checkpoints += 1;
        self.verdict.unsealed = 0;
        if self.lost.is_empty() {
            let (start, position) = (Position(self.start), checkpoint.position);
            let counted = Verdict { verified_before: None, ..self.verdict.clone() };
            self.mark = Some(Mark { start, position, log_hash: self.log.0, counted });
        }
        Ok(())
    }

    /// What was found, with the first bad entry if there was one, and from where the next check may
    /// go on if there was none.
    #[must_use]
    pub(crate) fn marked(mut self, first_bad: Option<Finding>) -> (Verdict, Option<Mark>) {
        let mark = self.mark.take();
        let verdict = self.verdict(first_bad);
        let intact = verdict.first_bad.is_none();
        (verdict, mark.filter(|_| intact))
    }

    /// What was found, with the first bad entry if there was one.
    #[must_use]
    pub fn verdict(mut self, first_bad: Option<Finding>) -> Verdict {
        // Of a log that is bad further on, nobody can say what its end would have erased.
        let lost = self.lost.into_iter().next().map(|(position, (task_id, _))| Finding {
            position,
            task_id: Some(task_id),
            problem: "has lost its body, and nothing says that it was erased".into(),
        });
        self.verdict.first_bad = first_bad.or(lost);
        self.verdict
    }
}

/// One line of an exported log. What is not known here cannot be vouched for.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Event {
        position: Position,
        #[serde(default)]
        previous: Option<Position>,
        hash: Hash,
        record: Box<RawValue>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<Box<RawValue>>,
        /// From where to go on after this line. Older exports have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Cursor>,
    },
    Checkpoint {
        position: Position,
        log_hash: Hash,
        at_ms: i64,
        key: String,
        signature: String,
    },
}

/// An event as a line of JSON.
#[must_use]
pub fn event_line(entry: &Entry, body: Option<&str>, cursor: Cursor) -> String {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
    let line = Line::Event {
        position: entry.sealed.position,
        previous: entry.sealed.previous,
        hash: entry.sealed.hash,
        record: raw(&entry.encoded).unwrap_or_else(|| RawValue::NULL.to_owned()),
        body: body.and_then(raw),
        cursor: Some(cursor),
    };
    serde_json::to_string(&line).expect("a line has string keys only")
}

/// A checkpoint as a line of JSON.
#[must_use]
pub fn checkpoint_line(checkpoint: &Checkpoint) -> String {
    let line = Line::Checkpoint {
        position: checkpoint.position,
        log_hash: checkpoint.log_hash,
        at_ms: checkpoint.at.0,
        key: hex(&checkpoint.key),
        signature: hex(&checkpoint.signature),
    };
    serde_json::to_string(&line).expect("a line has string keys only")
}

/// Checks an exported log, line by line.
pub fn verify_lines(lines: impl Iterator<Item = std::io::Result<String>>) -> Verdict {
    let mut verifier = Verifier::default();
    for line in lines {
        let checked = line
            .map_err(|error| error.to_string())
            .and_then(|line| serde_json::from_str(&line).map_err(|error| error.to_string()))
            .map_err(|error| Finding {
                position: Position(verifier.last + 1),
                task_id: None,
                problem: format!("cannot be read: {error}"),
            })
            .and_then(|line| verifier.line(line));
        if let Err(finding) = checked {
            return verifier.verdict(Some(finding));
        }
    }
    verifier.verdict(None)
}

impl Verifier {
    fn line(&mut self, line: Line) -> Result<(), Finding> {
        let unreadable = |position, problem: String| Finding { position, task_id: None, problem };
        match line {
            Line::Event { position, previous, hash, record, body, cursor } => {
                let encoded = record.get().to_owned();
                let record: Record = serde_json::from_str(&encoded)
                    .map_err(|error| unreadable(position, format!("is no record: {error}")))?;
                let entry = Entry { sealed: Sealed { position, previous, hash, record }, encoded };
                self.epochs.note(&entry.sealed);
                // The epochs of entries that were dropped are not known here.
                let known = self.start == 0;
                let told = self.epochs.cursor(position);
                let right = |it: Cursor| it == told || !known && it.position == position;
                if !cursor.is_none_or(right) {
                    return Err(unreadable(position, "has a cursor of another place".into()));
                }
                self.event(entry, body.as_ref().map(|body| body.get()))
            }
            Line::Checkpoint { position, log_hash, at_ms, key, signature } => {
                let (Some(key), Some(signature)) = (unhex(&key), unhex(&signature)) else {
                    return Err(unreadable(position, "has a checkpoint without a key".into()));
                };
                let at = Timestamp(at_ms);
                self.checkpoint(&Checkpoint { position, log_hash, at, key, signature })
            }
        }
    }
}

#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}
