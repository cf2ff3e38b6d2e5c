// SPDX-License-Identifier: Apache-2.0
//! A whole chain in one file: every event of a task and of the tasks below it, with what was passed.
//! The file says by itself whether it is whole, far from the broker that wrote it: events hash their
//! predecessors, bodies have the hashes that their events name, envelopes name the one before, and
//! what binds is carried from hop to hop. Signatures are checked with the keys in the file; whose
//! keys they are, the reader has to know from elsewhere.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::canonical::{self, Body};
use crate::envelope::Envelope;
use crate::envelope::chain::{HopReport, report};
use crate::event::{Actor, Event, Offered, Record, link};
use crate::identity::{PublicKey, Signature, statement};
use crate::ids::{AgentId, Hash, KeyId, Position, TaskId, Timestamp};
use crate::registry::Signed;
use crate::report::{Intent, authored};

pub const FORMAT: &str = "tasuki-chain";
pub const VERSION: u32 = 1;
/// How many tasks one file holds.
pub const TASKS_MAX: usize = 1000;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChainFile {
    /// `tasuki-chain`.
    pub format: String,
    pub version: u32,
    pub exported_at: Timestamp,
    /// The task that was asked for.
    pub task_id: TaskId,
    /// That task first, then those below it.
    pub tasks: Vec<TaskChain>,
    /// The public keys of those who signed something in here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Signer>,
    /// The broker's word that the chains ended so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// The first signed checkpoint of the whole log that covers all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<LogCheckpoint>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskChain {
    pub task_id: TaskId,
    pub events: Vec<ChainEvent>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChainEvent {
    pub position: Position,
    pub hash: Hash,
    /// The exact bytes that the hash covers.
    #[schemars(with = "Record")]
    pub record: Box<RawValue>,
    /// Absent if there was none, or if it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<crate::canonical::Object>")]
    pub body: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChainSigner")]
pub struct Signer {
    pub agent: AgentId,
    pub key: PublicKey,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChainSeal")]
pub struct Seal {
    pub key: PublicKey,
    pub signature: Signature,
}

/// A checkpoint: the broker's signature under the hash of the whole log so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogCheckpoint {
    pub position: Position,
    pub log_hash: Hash,
    pub at: Timestamp,
    /// In hex.
    pub key: String,
    pub signature: String,
}

/// What was found in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChainVerdict {
    pub intact: bool,
    pub tasks: u64,
    pub events: u64,
    pub bodies: u64,
    /// Bodies that were erased on purpose, by task and place.
    pub erased: Vec<ErasedBody>,
    /// Every hop whose envelope is there.
    pub hops: Vec<TaskHop>,
    /// Signatures that are right, and those for which the file has no key.
    pub signatures: u64,
    pub signatures_unchecked: u64,
    /// The key that sealed the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_by: Option<PublicKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_bad: Option<BadEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErasedBody {
    pub task_id: TaskId,
    pub index: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskHop {
    pub task_id: TaskId,
    #[serde(flatten)]
    pub report: HopReport,
}

/// The first entry that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BadEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The how-manieth event of its task, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    pub problem: String,
}

/// What the broker signs about a file: where each chain ended.
#[must_use]
pub fn seal_statement(tasks: &[TaskChain]) -> Vec<u8> {
    let ends: Vec<String> = tasks
        .iter()
        .flat_map(|task| {
            let head = task.events.last().map_or(Hash::ZERO, |event| event.hash);
            [task.task_id.to_string(), head.to_string()]
        })
        .collect();
    let parts: Vec<&[u8]> = ends.iter().map(|end| end.as_bytes()).collect();
    statement::statement("chain", &parts)
}

/// Which keys the signatures in these chains name, and of whom.
#[must_use]
pub fn signers(tasks: &[TaskChain]) -> Vec<(AgentId, KeyId)> {
    let mut found = Vec::new();
    for event in tasks.iter().flat_map(|task| &task.events) {
        let Ok(record) = serde_json::from_str::<Record>(event.record.get()) else { continue };
        if let (Event::Acknowledged(acknowledged), Actor::Agent(agent)) =
            (&record.event, &record.actor)
        {
            found.push((agent.clone(), acknowledged.signed.key_id));
        }
        if let Some(envelope) = envelope_of(&record, event)
            && let Some(signed) = envelope.0.signed
        {
            found.push((envelope.0.from_agent, signed.key_id));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Checks a whole file and stops at the first entry that is wrong.
#[must_use]
pub fn verify(file: &ChainFile) -> ChainVerdict {
    let mut verifier = Verifier::new(file);
    let first_bad = verifier.run().err();
    ChainVerdict { intact: first_bad.is_none(), first_bad, ..verifier.verdict }
}

struct Verifier<'f> {
    file: &'f ChainFile,
    /// Envelopes by their address, from all tasks so far.
    envelopes: HashMap<Hash, (Envelope, Body)>,
    verdict: ChainVerdict,
}

/// What is known of a task while its events are read.
#[derive(Default)]
struct Read {
    previous: Option<Hash>,
    /// The last envelope that was offered, whether or not it is still there, and its hop.
    envelope: Option<(Hash, u32)>,
    intent: Option<Hash>,
    parent: Option<TaskId>,
    /// Bodies that are not there, until an event is found that erased them.
    lost: Vec<(u32, Position, Hash)>,
    /// What the holder of a handoff signed as the end of its attempt, until that is told.
    said: Option<(crate::ids::HandoffId, Hash)>,
    /// Which envelope each handoff carries.
    carried: HashMap<crate::ids::HandoffId, Hash>,
}

impl<'f> Verifier<'f> {
    fn new(file: &'f ChainFile) -> Self {
        Self { file, envelopes: HashMap::new(), verdict: ChainVerdict::default() }
    }

    fn run(&mut self) -> Result<(), BadEntry> {
        let whole = |problem: String| BadEntry { task_id: None, index: None, problem };
        let file = self.file;
        if file.format != FORMAT || file.version != VERSION {
            let problem = format!("is {} {}, not {FORMAT} {VERSION}", file.format, file.version);
            return Err(whole(format!("the file {problem}")));
        }
        if file.tasks.first().is_none_or(|first| first.task_id != file.task_id) {
            return Err(whole("the file does not begin with the task that it names".into()));
        }
        for task in &file.tasks {
            self.task(task)?;
            self.verdict.tasks += 1;
        }
        if let Some(seal) = &file.seal {
            if !seal.key.verify(&seal_statement(&file.tasks), &seal.signature) {
                return Err(whole("the seal is not its key's over how these chains end".into()));
            }
            self.verdict.sealed_by = Some(seal.key);
        }
        Ok(())
    }

    fn task(&mut self, task: &TaskChain) -> Result<(), BadEntry> {
        let mut read = Read::default();
        for (index, event) in (0..).zip(&task.events) {
            let wrong = |problem: String| BadEntry {
                task_id: Some(task.task_id),
                index: Some(index),
                problem,
            };
            let record: Record = serde_json::from_str(event.record.get())
                .map_err(|error| wrong(format!("is no record: {error}")))?;
            if record.task_id != task.task_id || record.index != index {
                let said = format!("{} of {}", record.index, record.task_id);
                return Err(wrong(format!(
                    "says it is event {said}: entries are missing or moved"
                )));
            }
            let before = read.previous.unwrap_or(Hash::ZERO);
            if link(before, event.record.get().as_bytes()) != event.hash {
                return Err(wrong("does not have the hash of its content: it was altered".into()));
            }
            read.previous = Some(event.hash);
            self.body(event, &record, &mut read).map_err(&wrong)?;
            self.facts(task.task_id, event, &record, &mut read).map_err(&wrong)?;
            self.verdict.events += 1;
        }
        let Some((index, ..)) = read.lost.first() else { return Ok(()) };
        let problem = "has lost its body, and nothing says that it was erased".into();
        Err(BadEntry { task_id: Some(task.task_id), index: Some(*index), problem })
    }

    fn body(&mut self, event: &ChainEvent, record: &Record, read: &mut Read) -> Result<(), String> {
        match (record.event.body(), &event.body) {
            (None, None) => {}
            (None, Some(_)) => return Err("has a body that its event does not know".into()),
            (Some(hash), None) => read.lost.push((record.index, event.position, hash)),
            (Some(hash), Some(body)) if canonical::hash(body.get().as_bytes()) == hash => {
                self.verdict.bodies += 1;
            }
            (Some(_), Some(_)) => return Err("has a body that was altered".into()),
        }
        if let Event::Erased(erased) = &record.event {
            let is_it = |(_, at, hash): &(u32, Position, Hash)| {
                *at == erased.position && *hash == erased.body
            };
            if let Some(place) = read.lost.iter().position(is_it) {
                let (index, ..) = read.lost.remove(place);
                let task_id = record.task_id;
                self.verdict.erased.push(ErasedBody { task_id, index });
            }
        }
        Ok(())
    }

    fn facts(
        &mut self,
        task: TaskId,
        event: &ChainEvent,
        record: &Record,
        read: &mut Read,
    ) -> Result<(), String> {
        let opened = match &record.event {
            Event::TaskOpened(opened) => Some(opened),
            other => other.offered().and_then(|(offered, _)| offered.opens.as_ref()),
        };
        if let Some(opened) = opened {
            read.intent = Some(opened.intent);
            read.parent = opened.parent_task_id;
        }
        if let Some((offered, _)) = record.event.offered() {
            if let Some(handoff) = record.handoff_id {
                read.carried.insert(handoff, offered.envelope);
            }
            // What is sent on its way again is what was sent before.
            if offered.redrive_of.is_none() {
                self.envelope(task, event, record, offered, read)?;
                read.envelope = Some((offered.envelope, offered.hop));
            }
        }
        if let Event::Acknowledged(said) = &record.event
            && let (Some(handoff), Actor::Agent(agent)) = (record.handoff_id, &record.actor)
        {
            let envelope = read.carried.get(&handoff).copied().unwrap_or(Hash::ZERO);
            let (claim, fence, act) = (said.claim_id, said.fence, &said.act);
            let text = statement::acknowledgment(handoff, envelope, claim, fence, act, said.body);
            self.signature(agent, &said.signed, &text)?;
            read.said = said.body.map(|body| (handoff, body));
        }
        if let Event::Completed { .. } | Event::AttemptFailed { .. } = &record.event
            && let Some((_, said)) = read.said.take_if(|it| Some(it.0) == record.handoff_id)
            && let Some(report) = event.body.as_ref().and_then(|it| Body::stored(it.get().into()))
            && authored(&report) != said
        {
            return Err("reports something else than its holder signed".into());
        }
        Ok(())
    }

    fn envelope(
        &mut self,
        task: TaskId,
        event: &ChainEvent,
        record: &Record,
        offered: &Offered,
        read: &Read,
    ) -> Result<(), String> {
        let Some((envelope, body)) = envelope_of(record, event) else {
            return match event.body {
                // Erased: its link is in the event of the next hop.
                None => Ok(()),
                Some(_) => Err("has a body that is no envelope".into()),
            };
        };
        let same = envelope.task_id == task
            && envelope.from_agent == offered.from
            && envelope.to == offered.to
            && envelope.hop == offered.hop;
        if !same {
            return Err("has an envelope that says something else than its event".into());
        }
        if read.intent.is_some_and(|intent| Intent::address(&envelope.intent) != intent) {
            return Err("has an envelope with another intent than its task".into());
        }
        let (previous, hop) = match (read.envelope, envelope.previous) {
            (Some((hash, hop)), _) => (Some(hash), hop + 1),
            // The first of a task that was called for follows an envelope of the task above.
            (None, Some(above)) => {
                let inside = self.file.tasks.iter().any(|known| Some(known.task_id) == read.parent);
                if inside && !self.envelopes.contains_key(&above) {
                    return Err("follows an envelope that the task above it does not have".into());
                }
                (Some(above), envelope.hop)
            }
            (None, None) => (None, 0),
        };
        if envelope.previous != previous || envelope.hop != hop {
            return Err("does not name the envelope before it".into());
        }
        let before = previous.and_then(|hash| self.envelopes.get(&hash).cloned());
        let known = before.is_some();
        let pair: Vec<_> = before.into_iter().chain([(envelope.clone(), body.clone())]).collect();
        let mut found = report(&pair);
        let Some(mut hop) = found.pop() else { return Ok(()) };
        // Without the one before there is nothing to compare with; the link was looked at above.
        hop.linked |= !known;
        let whole = hop.is_whole();
        let lost = hop.lost_constraints.iter().chain(&hop.altered_constraints).next().cloned();
        self.verdict.hops.push(TaskHop { task_id: task, report: hop });
        if !whole {
            return Err(match lost {
                Some(text) => format!("does not carry a constraint as it was: {text:?}"),
                None => "has another intent than the envelope before it".into(),
            });
        }
        if let Some(signed) = &envelope.signed {
            let text = statement::envelope(envelope.authored());
            self.signature(&envelope.from_agent, signed, &text)?;
        }
        self.envelopes.insert(body.hash, (envelope, body));
        Ok(())
    }

    fn signature(&mut self, agent: &AgentId, signed: &Signed, text: &[u8]) -> Result<(), String> {
        let signer = |known: &&Signer| known.agent == *agent && known.key.id() == signed.key_id;
        match self.file.keys.iter().find(signer) {
            None => self.verdict.signatures_unchecked += 1,
            Some(known) if known.key.verify(text, &signed.signature) => {
                self.verdict.signatures += 1
            }
            Some(_) => return Err(format!("has a signature that is not one of {agent}'s key")),
        }
        Ok(())
    }
}

fn envelope_of(record: &Record, event: &ChainEvent) -> Option<(Envelope, Body)> {
    record.event.offered()?;
    let body = Body::stored(event.body.as_ref()?.get().to_owned())?;
    Some((serde_json::from_str(body.text()).ok()?, body))
}
