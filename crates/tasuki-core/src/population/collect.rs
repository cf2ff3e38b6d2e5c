// SPDX-License-Identifier: Apache-2.0
//! Goes over a log once and keeps what the analyses need of it, in memory that is bounded whatever the log's
//! size: of too many handoffs every second one is kept, then every fourth, and so on.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;

use super::line::{self, Brief, Exported, Line};
use super::loops::Loops;
use super::names::{NONE, Name, Names};
use super::series::Series;
use crate::envelope::Target;
use crate::ids::{AgentId, HandoffId, Malformed, Position, TaskId, Timestamp};
use crate::manifest::Manifest;

/// How many handoffs are kept.
pub const HANDOFFS_MAX: usize = 262_144;
/// How many words of a message are looked at.
pub const MESSAGE_WORDS_MAX: usize = 32;
/// How many handoffs are followed that are not claimed yet.
const OPEN_MAX: usize = 131_072;
/// How many tasks, and choices within a session, are remembered: twice this at most.
const REMEMBERED_MAX: usize = 131_072;
/// The tag of an agent, or of a capability, whose users come back to the same agent.
pub const STICKY: &str = "sticky-sessions";

/// A handoff, as far as it is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handed {
    pub(super) position: Position,
    pub(super) at: Timestamp,
    pub(super) task: TaskId,
    pub(super) handoff: HandoffId,
    pub(super) from: Name,
    /// The agent it was offered to by name.
    pub(super) to: Name,
    pub(super) capability: Name,
    pub(super) claimed_by: Name,
    pub(super) refused: bool,
    /// Whether the sender chose the receiver, anew and by itself.
    pub(super) chosen: bool,
    pub(super) session: u64,
    pub(super) words: (u32, u8),
}

impl Handed {
    /// Who got it.
    pub(super) fn receiver(&self) -> Name {
        if self.to == NONE { self.claimed_by } else { self.to }
    }
}

/// What was remembered last, and what before that is forgotten next.
#[derive(Default)]
struct Recent {
    young: HashMap<u64, Name>,
    old: HashMap<u64, Name>,
}

impl Recent {
    fn knows(&self, key: u64) -> bool {
        self.young.contains_key(&key) || self.old.contains_key(&key)
    }

    fn put(&mut self, key: u64, name: Name) -> Option<Name> {
        let known = self.young.get(&key).or_else(|| self.old.get(&key)).copied();
        if self.young.len() >= REMEMBERED_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, name);
        known
    }
}

/// What is known of a log up to where it was read.
pub struct Collected {
    pub(super) events: u64,
    pub(super) offers: u64,
    pub(super) every: u64,
    pub(super) handed: Vec<Handed>,
    pub(super) words: Vec<u32>,
    pub(super) agents: Names,
    pub(super) capabilities: Names,
    pub(super) sticky: HashSet<String>,
    pub(super) loops: Loops,
    pub(super) series: Series,
    /// What agents can do, by their manifests: the first capability of each.
    does: HashMap<Name, Name>,
    open: HashMap<HandoffId, u32>,
    chosen: Recent,
    came_from: Recent,
    last: Position,
}

impl Collected {
    /// With names of agents and capabilities that are declared to be sticky, and of members of payloads
    /// that are numbers to look at, besides those that manifests declare.
    #[must_use]
    pub fn new(sticky: &[String], monitored: &[String]) -> Self {
        Self {
            events: 0,
            offers: 0,
            every: 1,
            handed: Vec::new(),
            words: Vec::new(),
            agents: Names::new(super::AGENTS_MAX),
            capabilities: Names::new(super::CAPABILITIES_MAX),
            sticky: sticky.iter().cloned().collect(),
            loops: Loops::default(),
            series: Series::of(monitored),
            does: HashMap::new(),
            open: HashMap::new(),
            chosen: Recent::default(),
            came_from: Recent::default(),
            last: Position(0),
        }
    }

    /// The position of the last event that was taken.
    #[must_use]
    pub fn last(&self) -> Position {
        self.last
    }

    /// Takes a line of an exported log.
    pub fn line(&mut self, text: &str) -> Result<(), Malformed> {
        if !line::matters(text) {
            // A checkpoint, or an event that is counted and no more.
            self.events += u64::from(text.starts_with("{\"event\":"));
            return match text.starts_with('{') {
                true => Ok(()),
                false => Err(Malformed("expected a line that `tasuki audit export` wrote".into())),
            };
        }
        let wrong = |error: serde_json::Error| Malformed(format!("cannot be read: {error}"));
        let line: Line<'_> = serde_json::from_str(text).map_err(wrong)?;
        let Some(Exported { position, record, body }) = line.event else { return Ok(()) };
        self.note(position, record.get(), body.map(RawValue::get))
    }

    /// Takes the next event of the log, in its stored form, with the body that is stored beside it.
    pub fn note(
        &mut self,
        position: Position,
        record: &str,
        body: Option<&str>,
    ) -> Result<(), Malformed> {
        self.events += 1;
        self.last = position;
        if !line::matters(record) {
            return Ok(());
        }
        let wrong = |error: serde_json::Error| Malformed(format!("is no record: {error}"));
        let brief: Brief<'_> = serde_json::from_str(record).map_err(wrong)?;
        let body = || -> Option<Value> { serde_json::from_str(body?).ok() };
        match brief.kind {
            "transfer_offered" | "call_offered" if brief.redrive_of.is_none() => {
                self.offered(position, &brief, body());
            }
            "claimed" => self.claimed(&brief),
            "declined" => {
                if let Some(handed) = self.opened(&brief) {
                    handed.refused = true;
                }
            }
            "attached" => {
                if let Some(artifact) = brief.artifact {
                    self.loops.attached(brief.task_id, artifact);
                }
            }
            "completed" => self.completed(position, &brief, body()),
            "registry_changed" if brief.change == Some("manifest_published") => {
                if let Some(manifest) = body().and_then(|it| serde_json::from_value(it).ok()) {
                    self.published(&manifest);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn published(&mut self, manifest: &Manifest) {
        if manifest.tags.contains(STICKY) {
            self.sticky.insert(manifest.agent_id.to_string());
        }
        for entry in &manifest.capabilities {
            if entry.tags.contains(STICKY) {
                self.sticky.insert(entry.name.to_string());
            }
            for schema in [&entry.input_schema, &entry.output_schema].into_iter().flatten() {
                let properties = schema.get("properties").and_then(Value::as_object);
                for (name, property) in properties.into_iter().flatten() {
                    if property.get("monitor") == Some(&Value::Bool(true)) {
                        self.series.monitor(name);
                    }
                }
            }
        }
        let agent = self.agents.of(&manifest.agent_id.to_string());
        if let Some(first) = manifest.capabilities.first().filter(|_| agent != NONE) {
            let capability = self.capabilities.of(&first.name.to_string());
            self.does.insert(agent, capability);
        }
    }

    fn offered(&mut self, position: Position, brief: &Brief<'_>, body: Option<Value>) {
        let (Some(sender), Some(target), Some(handoff)) =
            (&brief.from, &brief.to, brief.handoff_id)
        else {
            return;
        };
        self.offers += 1;
        let from = self.agents.of(&sender.to_string());
        let to = match target {
            Target::Agent(agent) => self.agents.of(&agent.to_string()),
            Target::Capability(_) => NONE,
        };
        let said = match target {
            Target::Capability(capability) => Some(capability),
            Target::Agent(_) => brief.contract.agreement.capability.as_ref(),
        };
        let capability = match said {
            Some(capability) => self.capabilities.of(&capability.to_string()),
            None => self.does.get(&to).copied().unwrap_or(NONE),
        };
        let session = session(brief);
        let returns = self.moves(brief, from, to, position);
        let by_sender = to != NONE && brief.contract.routing.routed.is_none();
        let known = by_sender && {
            let key = mixed(session, from, capability);
            self.chosen.put(mixed(key, to, 0), to).is_some()
        };
        let body = body.unwrap_or_default();
        self.series.took(&body["payload"], from, brief.at, (position, brief.task_id, handoff));
        if !self.offers.is_multiple_of(self.every) {
            return;
        }
        let begins = self.words.len();
        for part in ["payload", "ask", "summary"] {
            line::words(&body[part], &mut self.words, begins + MESSAGE_WORDS_MAX);
        }
        let words = (begins as u32, (self.words.len() - begins) as u8);
        let chosen = by_sender && !returns && !known;
        self.handed.push(Handed {
            position,
            at: brief.at,
            task: brief.task_id,
            handoff,
            from,
            to,
            capability,
            claimed_by: NONE,
            refused: false,
            chosen,
            session,
            words,
        });
        if self.open.len() >= OPEN_MAX {
            // Whatever waits for so long is judged by nothing that needs to know who took it.
            let oldest = self.handed.len().saturating_sub(OPEN_MAX / 2) as u32;
            self.open.retain(|_, at| *at >= oldest);
        }
        self.open.insert(handoff, (self.handed.len() - 1) as u32);
        if self.handed.len() == HANDOFFS_MAX {
            self.thin();
        }
    }

    /// Follows a task to its next holder. Returns whether it goes back to where it came from.
    fn moves(&mut self, brief: &Brief<'_>, from: Name, to: Name, position: Position) -> bool {
        if from == NONE || to == NONE {
            return false;
        }
        let task = brief.task_id;
        if brief.kind == "transfer_offered" {
            let handoff = brief.handoff_id.unwrap_or(HandoffId(0));
            self.loops.moves(task, (from, to), position, handoff, brief.at);
        }
        // Kept under the one who may send it back: the same agent may have got it from several.
        let key =
            |holder: Name, other: Name| mixed(task.0 as u64 ^ (task.0 >> 64) as u64, holder, other);
        self.came_from.put(key(from, to), to);
        self.came_from.knows(key(to, from))
    }

    fn opened(&mut self, brief: &Brief<'_>) -> Option<&mut Handed> {
        let at = *self.open.get(&brief.handoff_id?)?;
        self.handed.get_mut(at as usize)
    }

    fn claimed(&mut self, brief: &Brief<'_>) {
        let Some(agent) = brief.agent.as_ref().map(AgentId::to_string) else { return };
        let agent = self.agents.of(&agent);
        if let Some(handed) = self.opened(brief)
            && handed.claimed_by == NONE
        {
            handed.claimed_by = agent;
        }
    }

    fn completed(&mut self, position: Position, brief: &Brief<'_>, body: Option<Value>) {
        let Some(handoff) = brief.handoff_id else { return };
        let holder = self.opened(brief).map(|handed| handed.claimed_by);
        self.open.remove(&handoff);
        if let (Some(holder), Some(body)) = (holder, body) {
            let place = (position, brief.task_id, handoff);
            self.series.took(&body["payload"], holder, brief.at, place);
        }
    }

    /// Leaves out every second handoff, and keeps half as many from here on.
    fn thin(&mut self) {
        self.every *= 2;
        let (old_words, mut at) = (std::mem::take(&mut self.words), 0_usize);
        let words = &mut self.words;
        self.handed.retain_mut(|handed| {
            at += 1;
            let keeps = at % 2 == 0;
            if keeps {
                let (begins, count) = (handed.words.0 as usize, usize::from(handed.words.1));
                handed.words.0 = words.len() as u32;
                words.extend_from_slice(&old_words[begins..begins + count]);
            }
            keeps
        });
        let numbered = self.handed.iter().enumerate();
        let kept: HashMap<HandoffId, u32> =
            numbered.map(|(at, handed)| (handed.handoff, at as u32)).collect();
        self.open = self.open.keys().filter_map(|id| Some((*id, *kept.get(id)?))).collect();
    }

    /// Whether what somebody sends, or who it is sent to, was declared to stay together.
    pub(super) fn is_sticky(&self, handed: &Handed) -> bool {
        let named = |names: &Names, name: Name| {
            names.name(name).is_some_and(|name| self.sticky.contains(name))
        };
        !self.sticky.is_empty()
            && (named(&self.agents, handed.from)
                || named(&self.agents, handed.to)
                || named(&self.capabilities, handed.capability))
    }

    pub(super) fn words_of(&self, handed: &Handed) -> &[u32] {
        let begins = handed.words.0 as usize;
        &self.words[begins..begins + usize::from(handed.words.1)]
    }
}

/// What belongs together: what has the same name for its sender, else the task above, else the task.
fn session(brief: &Brief<'_>) -> u64 {
    let opens = brief.opens.as_ref();
    let named = brief.contract.correlation_id.as_ref();
    let named = named.or_else(|| opens?.correlation_id.as_ref());
    if let Some(name) = named {
        return name.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    }
    let task = opens.and_then(|opens| opens.parent_task_id).unwrap_or(brief.task_id);
    mixed(task.0 as u64 ^ (task.0 >> 64) as u64, 0, 0)
}

fn mixed(key: u64, first: Name, second: Name) -> u64 {
    let names = u64::from(first) << 16 | u64::from(second);
    let hash =
        (key ^ names.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 32)
}
