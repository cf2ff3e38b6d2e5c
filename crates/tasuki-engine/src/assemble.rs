// SPDX-License-Identifier: Apache-2.0
//! Putting together what a receiver gets to read, within its token budget: who it is, what the task
//! has inherited, which memories there are. The core decides what is kept; a memory that cannot be
//! read becomes a gap, not a failure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tasuki_core::assembly::{
    self, Assembled, Candidate, Gap, Item, Prepared, Priority, Rung, SAID_TOKENS_MAX, Strategy,
    Tokenizer,
};
use tasuki_core::document::{self, Scope};
use tasuki_core::envelope::brief::brief;
use tasuki_core::envelope::inherit::{Hand, inherit};
use tasuki_core::envelope::parts::{ContextItem, ENTRIES_MAX, Form, Freshness, MemoryRef};
use tasuki_core::envelope::said::{NewGap, TextOr};
use tasuki_core::envelope::{Envelope, Parts, Said};
use tasuki_core::ids::Project;
use tasuki_core::registry::rules::Permission;
use tasuki_core::{AgentId, Document, DocumentId, HandoffId, TaskId, Timestamp};
use tasuki_store::Needs;

use crate::desk::Desk;
use crate::engine::check_intent;
use crate::error::{Error, invalid};
use crate::memories::{MEMORIES_MAX, MemorySearch, SeenMemory};

/// How many memories are looked at by recency, and how many by what they say.
const RECENT_MAX: usize = 1000;
const RELEVANT: usize = MEMORIES_MAX;
/// How many pins may travel.
const PINS_MAX: usize = 1000;
/// How many memories are kept ready, with their sizes in tokens, and how much text they may be in
/// all; beyond it all are forgotten. A memory takes several times the size of its text.
const READY_MAX: usize = 8192;
const READY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What is to be put together, and for whom.
#[derive(Debug, Clone, Default)]
pub struct AssembleRequest {
    /// Whose manifest says how much can be read, in which tokens, and in which role.
    pub to: Option<AgentId>,
    /// The task that is handed on: what it has inherited is in it.
    pub task_id: Option<TaskId>,
    /// The user's own words, where there is no task yet.
    pub intent: Option<String>,
    pub said: Said,
    /// Where to look for memories, besides those of the sender and of the task.
    pub project: Option<Project>,
    /// How many of the memories that changed last are considered.
    pub recent: usize,
    /// Whether pinned memories travel.
    pub pins: bool,
    pub strategy: Strategy,
    /// What the receiver can take in all; its window without it, and no limit without that.
    pub budget: Option<u64>,
    pub reserved_system_prompt: Option<u64>,
    pub reserved_work: Option<u64>,
    pub tokenizer: Option<String>,
    pub role: Option<String>,
}

/// What was put together.
#[derive(Debug, Clone)]
pub struct Put {
    pub intent: String,
    /// The parts that an envelope with it will have.
    pub parts: Parts,
    /// What to say in the offer, so that it has them.
    pub said: Said,
    pub assembled: Assembled,
}

/// Memories with everything that does not depend on what they are put together with.
#[derive(Default)]
pub(crate) struct Ready(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    prepared: HashMap<Key, Arc<Prepared>>,
    bytes: usize,
}

/// What makes a memory another one here: its revision, and how it is marked.
type Key = (DocumentId, u32, bool, document::Priority, &'static str);

impl Ready {
    fn prepare(&self, memory: &SeenMemory, tokenizer: Tokenizer) -> Option<Arc<Prepared>> {
        let document = &memory.kept.document;
        let revision = memory.kept.revision.number;
        let key =
            (document.id.clone(), revision, document.pinned, document.priority, tokenizer.as_str());
        let shelf = || self.0.lock().expect("no holder of this lock panics");
        let known = shelf().prepared.get(&key).cloned();
        if let Some(known) = known {
            return Some(known);
        }
        let made = Arc::new(Prepared::new(item(memory)?, tokenizer));
        let bytes = made.item().text.len();
        let mut shelf = shelf();
        if shelf.prepared.len() >= READY_MAX || shelf.bytes + bytes > READY_BYTES_MAX {
            *shelf = Shelf::default();
        }
        if shelf.prepared.insert(key, made.clone()).is_none() {
            shelf.bytes += bytes;
        }
        Some(made)
    }
}

impl Ready {
    /// What may be passed, and what is missing of it.
    fn candidates(
        &self,
        found: &BTreeMap<DocumentId, SeenMemory>,
        words: &BTreeMap<String, Item>,
        mut unresolved: Vec<Gap>,
        tokenizer: Tokenizer,
    ) -> (Vec<Candidate>, Vec<Gap>) {
        let passed = words.values().map(|item| Prepared::new(item.clone(), tokenizer));
        let mut candidates: Vec<_> = passed.map(Candidate::from).collect();
        unresolved.retain(|gap| !words.contains_key(&gap.id));
        for memory in found.values() {
            match self.prepare(memory, tokenizer) {
                Some(prepared) => candidates.push(Candidate { prepared, carried: None }),
                None => unresolved.push(Gap {
                    id: memory.kept.document.id.name().to_owned(),
                    reason: "its text was erased".into(),
                }),
            }
        }
        (candidates, unresolved)
    }
}

fn item(memory: &SeenMemory) -> Option<Item> {
    let Document { id, pinned, priority, .. } = &*memory.kept.document;
    let content = memory.content.as_ref()?;
    Some(Item {
        id: id.name().to_owned(),
        revision: u64::from(memory.kept.revision.number),
        kind: content
            .tags
            .iter()
            .find_map(|tag| tag.strip_prefix("kind:"))
            .unwrap_or("memory")
            .into(),
        // Without a title of its own, its first words would only be there twice.
        title: content.title.clone().unwrap_or_default(),
        summary: content.summary.clone(),
        text: content.text.clone(),
        priority: match priority {
            document::Priority::High => Priority::High,
            document::Priority::Normal => Priority::Normal,
            document::Priority::Low => Priority::Low,
        },
        pinned: *pinned,
        tags: content.tags.iter().cloned().collect(),
        at: memory.kept.revision.written_at,
        source: None,
    })
}

/// Who receives, as far as it is known.
struct Receiver {
    tokenizer: Tokenizer,
    budget: Option<u64>,
    system_prompt: u64,
    work: u64,
    role: Option<String>,
}

impl Desk {
    /// Puts together what a receiver gets to read.
    pub async fn assemble(&self, from: &AgentId, wish: AssembleRequest) -> Result<Put, Error> {
        let from = self.caller.speaks_for(from)?;
        self.caller.must(Permission::Send, None)?;
        let (intent, before, hop, coordinator) = self.place(&wish, &from).await?;
        let hand = Hand { from: &from, coordinator: Some(&coordinator), hop, now: self.now() };
        let before = before.as_deref();
        let parts = before.map(|before| &before.parts);
        let inherited = inherit(parts, &wish.said, hand).map_err(Error::Envelope)?;
        let receiver = self.receiver(&wish, inherited.budget_tokens).await?;
        let (found, unresolved) = self.gather(&wish, &from, &inherited.parts, parts).await?;
        // What the sender was passed and cannot look up, it passes on in the words that it has.
        let words = before.map(|before| only_passed(before, &found)).unwrap_or_default();
        let profiles = &self.engine.settings.profiles;
        let profile = receiver.role.as_deref().and_then(|role| profiles.of(role)).cloned();
        let work = || {
            let (items, unresolved) =
                self.engine.ready.candidates(&found, &words, unresolved, receiver.tokenizer);
            let mut brief = brief(&intent, &inherited.parts);
            // What is missing is said too, and takes room like everything that is said.
            let known = |gap: &&Gap| inherited.parts.gaps.iter().any(|it| it.reference == gap.id);
            let missing = unresolved.iter().filter(|gap| !known(gap));
            brief.gaps.extend(missing.map(|gap| format!("{} ({})", gap.id, gap.reason)));
            let request = assembly::Request {
                brief,
                items,
                unresolved,
                inherited: Vec::new(),
                profile,
                strategy: wish.strategy,
                tokenizer: receiver.tokenizer,
                budget: receiver.budget,
                reserved_system_prompt: receiver.system_prompt,
                reserved_work: receiver.work,
            };
            (assembly::assemble(&request), request.unresolved)
        };
        let (assembled, unresolved) = self.engine.pool.run(work).await;
        let assembled = assembled.map_err(Error::TooSmall)?;
        let said = said(wish.said, &assembled, &found, &words, &unresolved);
        let parts = inherit(parts, &said, hand).map_err(Error::Envelope)?.parts;
        Ok(Put { intent, parts, said, assembled })
    }

    /// The envelope of a handoff as a model reads it, with how many tokens that is.
    /// With a budget, what may be left out is left out until it fits.
    pub async fn prompt(
        &self,
        id: HandoffId,
        tokenizer: &str,
        budget: Option<u64>,
    ) -> Result<Assembled, Error> {
        let sight = self.engine.look(Needs::handoff(id).with_envelopes()).await?;
        let handoff = self.handoff_in(&sight, id)?;
        let Some(envelope) = self.engine.envelope_of(&sight, handoff).await? else {
            return Err(invalid("id", "the envelope was erased"));
        };
        let tokenizer = Tokenizer::named(tokenizer);
        let brought = self.engine.brought(handoff).await?;
        let assembled = |budget: Option<u64>| {
            let items = envelope.parts.context.iter().map(|item| {
                let item = carried_item(item, envelope.created_at);
                Candidate::from(Prepared::new(item, tokenizer))
            });
            assembly::assemble(&assembly::Request {
                brief: brief(&envelope.intent, &envelope.parts),
                items: items.collect(),
                strategy: if budget.is_some() { Strategy::Priority } else { Strategy::Full },
                tokenizer,
                budget,
                ..assembly::Request::default()
            })
        };
        // What was said since comes at the end, with a quarter of what there is room for at most.
        let work = || {
            let room = budget.map_or(SAID_TOKENS_MAX, |budget| (budget / 4).min(SAID_TOKENS_MAX));
            let said = assembly::said(&brought.sections(), tokenizer, room);
            let tokens = tokenizer.count(&said);
            let less = budget.map(|budget| budget.saturating_sub(tokens));
            match assembled(less) {
                Ok(mut whole) => {
                    whole.prompt.push_str(&said);
                    whole.receipt.token_count += tokens;
                    Ok(whole)
                }
                Err(_) => assembled(budget),
            }
        };
        self.engine.pool.run(work).await.map_err(Error::TooSmall)
    }

    async fn place(
        &self,
        wish: &AssembleRequest,
        from: &AgentId,
    ) -> Result<(String, Option<Arc<Envelope>>, u32, AgentId), Error> {
        let Some(id) = wish.task_id else {
            let Some(intent) = &wish.intent else {
                return Err(invalid("intent", "a new task needs the user's own words"));
            };
            check_intent(intent)?;
            return Ok((intent.clone(), None, 0, from.clone()));
        };
        let sight = self.engine.look(Needs::task(id).with_envelopes()).await?;
        let task = self.task_in(&sight, id).await?;
        if let Some(given) = &wish.intent {
            task.keeps_intent(given)?;
        }
        let before = self.engine.last_envelope(&sight, task).await?;
        let intent = self.engine.intent_before(task, before.as_ref()).await?.to_string();
        let hop = task.envelope.map_or(0, |(_, hop)| hop + 1);
        let before = before.map(|before| before.envelope);
        Ok((intent, before, hop, task.decider().clone()))
    }

    async fn receiver(
        &self,
        wish: &AssembleRequest,
        bound: Option<u32>,
    ) -> Result<Receiver, Error> {
        let listing = self.engine.listing().await?;
        let to = wish.to.as_ref().map(|to| self.caller.agent_named(to));
        let listed = to.and_then(|to| listing.agents.get(&to).cloned());
        let manifest = listed.as_ref().map(|listed| &listed.manifest);
        let tokenizer = wish.tokenizer.clone();
        let tokenizer = tokenizer.or_else(|| manifest.and_then(|m| m.tokenizer.clone()));
        let window = manifest.and_then(|m| m.context_window).map(u64::from);
        let asked = wish.budget.or(bound.map(u64::from));
        let reserves = manifest.and_then(|m| m.reserves);
        let (system, work) =
            reserves.map_or((0, 0), |reserves| (reserves.system_prompt, reserves.work));
        Ok(Receiver {
            tokenizer: tokenizer.as_deref().map_or(Tokenizer::Unknown, Tokenizer::named),
            // Both are for everything that the receiver reads and writes; the smaller one counts.
            budget: match (asked, window) {
                (Some(asked), Some(window)) => Some(asked.min(window)),
                (one, other) => one.or(other),
            },
            system_prompt: wish.reserved_system_prompt.unwrap_or(u64::from(system)),
            work: wish.reserved_work.unwrap_or(u64::from(work)),
            role: wish.role.clone().or_else(|| manifest.and_then(|m| m.role.clone())),
        })
    }

    /// Every memory that may matter, each once, and what could not be read. What the envelope before
    /// had or referred to is among them, so that what was trimmed at one hop can be there again at
    /// the next.
    async fn gather(
        &self,
        wish: &AssembleRequest,
        from: &AgentId,
        parts: &Parts,
        before: Option<&Parts>,
    ) -> Result<(BTreeMap<DocumentId, SeenMemory>, Vec<Gap>), Error> {
        let mut found = BTreeMap::new();
        let mut gaps = Vec::new();
        let mut refs = parts.memory_refs.clone();
        for earlier in before.into_iter().flat_map(referred) {
            if !refs.iter().any(|known| known.id == earlier.id) {
                refs.push(earlier);
            }
        }
        self.follow(&refs, &mut found, &mut gaps).await?;
        let own = [Some(Scope::Agent(from.clone())), wish.task_id.map(Scope::Task)];
        let scopes = own.into_iter().flatten().chain(wish.project.clone().map(Scope::Project));
        for scope in scopes {
            let search = MemorySearch { scope: Some(scope.clone()), ..MemorySearch::default() };
            if wish.pins {
                let pinned = MemorySearch { pinned: Some(true), ..search.clone() };
                self.pages(pinned, PINS_MAX, &mut found, &mut gaps).await?;
            }
            self.pages(search.clone(), wish.recent.min(RECENT_MAX), &mut found, &mut gaps).await?;
            if let Some(ask) = parts.ask.clone().filter(|_| wish.recent > 0) {
                let search = MemorySearch { question: Some(ask), max: RELEVANT, ..search };
                match self.find_memories(search).await {
                    Ok((memories, _)) => add(memories, &mut found),
                    Err(error) => gaps.push(unread("memories by what they say", error)?),
                }
            }
        }
        Ok((found, gaps))
    }

    /// Memories that are named: what is missing is a gap.
    async fn follow(
        &self,
        refs: &[MemoryRef],
        found: &mut BTreeMap<DocumentId, SeenMemory>,
        gaps: &mut Vec<Gap>,
    ) -> Result<(), Error> {
        let mut wanted = Vec::new();
        for reference in refs {
            match reference.id.parse::<DocumentId>() {
                Ok(id) => {
                    let pinned = reference.freshness != Freshness::Latest;
                    wanted.push((id, reference.revision.filter(|_| pinned)));
                }
                Err(error) => {
                    gaps.push(Gap { id: reference.id.clone(), reason: error.to_string() });
                }
            }
        }
        for some in wanted.chunks(MEMORIES_MAX) {
            match self.memories(some.to_vec()).await {
                Ok(memories) => {
                    for ((id, _), memory) in some.iter().zip(memories) {
                        let gone = match &memory {
                            None => Some("is not there"),
                            Some(memory) if memory.kept.document.deleted.is_some() => {
                                Some("was deleted")
                            }
                            Some(_) => None,
                        };
                        match (memory, gone) {
                            (Some(memory), None) => add(vec![memory], found),
                            (_, gone) => gaps.push(Gap {
                                id: id.name().to_owned(),
                                reason: gone.unwrap_or("is not there").to_owned(),
                            }),
                        }
                    }
                }
                Err(error) => {
                    for (id, _) in some {
                        gaps.push(unread(id.name(), error.clone())?);
                    }
                }
            }
        }
        Ok(())
    }

    async fn pages(
        &self,
        search: MemorySearch,
        mut left: usize,
        found: &mut BTreeMap<DocumentId, SeenMemory>,
        gaps: &mut Vec<Gap>,
    ) -> Result<(), Error> {
        let mut before = None;
        while left > 0 {
            let max = left.min(MEMORIES_MAX);
            match self.find_memories(MemorySearch { before, max, ..search.clone() }).await {
                Ok((memories, next)) => {
                    add(memories, found);
                    before = next;
                }
                Err(error) => {
                    gaps.push(unread("memories that changed last", error)?);
                    return Ok(());
                }
            }
            if before.is_none() {
                return Ok(());
            }
            left -= max;
        }
        Ok(())
    }
}

/// What an envelope has or refers to.
fn referred(parts: &Parts) -> impl Iterator<Item = MemoryRef> {
    let here = parts.context.iter().map(|item| MemoryRef {
        id: item.id.clone(),
        revision: item.revision,
        freshness: Freshness::Latest,
        title: item.title.clone(),
    });
    here.chain(parts.memory_refs.iter().cloned())
}

/// Texts of an envelope that are no memories which its receiver can look up.
fn only_passed(
    before: &Envelope,
    found: &BTreeMap<DocumentId, SeenMemory>,
) -> BTreeMap<String, Item> {
    let known: HashSet<&str> = found.keys().map(DocumentId::name).collect();
    let texts = before.parts.context.iter().filter(|item| item.text.is_some());
    let texts = texts.filter(|item| !known.contains(item.id.as_str()));
    texts.map(|item| (item.id.clone(), carried_item(item, before.created_at))).collect()
}

fn add(memories: Vec<SeenMemory>, found: &mut BTreeMap<DocumentId, SeenMemory>) {
    for memory in memories {
        found.entry(memory.kept.document.id.clone()).or_insert(memory);
    }
}

/// What cannot be read is missing, and the chain is told so. What could be read a moment later is not
/// missing: whoever asks again gets it.
fn unread(what: &str, error: Error) -> Result<Gap, Error> {
    use tasuki_store::Error as Store;
    match error {
        Error::Store(
            Store::Overloaded
            | Store::Unavailable
            | Store::Closed
            | Store::Unknown
            | Store::DiskFull,
        ) => Err(error),
        error => Ok(Gap { id: what.to_owned(), reason: format!("could not be read: {error}") }),
    }
}

/// What to say in the offer: what was kept, where the rest is, and what could not be read.
fn said(
    said: Said,
    assembled: &Assembled,
    found: &BTreeMap<DocumentId, SeenMemory>,
    words: &BTreeMap<String, Item>,
    unresolved: &[Gap],
) -> Said {
    let receipt = &assembled.receipt;
    let by_name: HashMap<&str, &SeenMemory> =
        found.iter().map(|(id, memory)| (id.name(), memory)).collect();
    let parts: HashMap<&str, &assembly::Carried> =
        assembled.carried.iter().map(|(id, _, carried)| (id.as_str(), carried)).collect();
    let kept = receipt.kept.iter().map(|kept| (&kept.id, kept.rung, kept.pinned));
    let demoted = receipt.demoted.iter().map(|demoted| (&demoted.id, demoted.rung, false));
    let mut context = Vec::new();
    for (id, rung, pinned) in kept.chain(demoted) {
        let carried = parts.get(id.as_str());
        let seen = by_name.get(id.as_str()).and_then(|memory| {
            let content = memory.content.as_ref()?;
            let (line, own) = (content.line(), content.summary.as_deref());
            Some((Some(memory.kept.revision.number), Some(line), own, &content.text))
        });
        let passed = || {
            let item = words.get(id)?;
            let revision = u32::try_from(item.revision).ok().filter(|revision| *revision > 0);
            let title = Some(item.title.clone()).filter(|title| !title.is_empty());
            Some((revision, title, None, &item.text))
        };
        let Some((revision, title, own, text)) = seen.or_else(passed) else { continue };
        let id = id.clone();
        let (form, text) = match rung {
            Rung::Listed => continue,
            Rung::Stub => (Form::Stub, None),
            Rung::Summary => (Form::Summary, Some(summarised(text, own, carried))),
            Rung::Full => (Form::Full, Some(text.clone())),
        };
        context.push(ContextItem { id, revision, form, pinned, title, text });
    }
    let mut memory_refs = said.memory_refs.clone();
    let less = receipt.demoted.iter().map(|one| (&one.id, one.revision));
    let none = receipt.dropped.iter().filter(|one| one.fetch.is_some());
    for (id, revision) in less.chain(none.map(|one| (&one.id, one.revision))) {
        if by_name.contains_key(id.as_str()) && !memory_refs.iter().any(|known| known.id == *id) {
            memory_refs.push(MemoryRef {
                id: id.clone(),
                revision: u32::try_from(revision).ok(),
                freshness: Freshness::Latest,
                title: by_name[id.as_str()].content.as_ref().map(document::Content::line),
            });
        }
    }
    // Those of which something is passed come first; the receipt names the others all the same.
    memory_refs.truncate(ENTRIES_MAX);
    let mut gaps = said.gaps.clone();
    for gap in unresolved {
        gaps.push(TextOr::Full(NewGap {
            reference: gap.id.clone(),
            reason: Some(gap.reason.clone()),
        }));
    }
    let context_manifest = Some(receipt.manifest_hash);
    Said { context, memory_refs, gaps, context_manifest, ..said }
}

/// A memory in less than all of its words: the parts that were chosen, its own summary, or the
/// sentences that say most.
fn summarised(text: &str, own: Option<&str>, carried: Option<&&assembly::Carried>) -> String {
    let places = carried.map(|carried| carried.parts.as_slice()).unwrap_or_default();
    if !places.is_empty() {
        let texts = assembly::parts(text);
        let kept = places.iter().filter_map(|(place, _)| texts.get(*place).copied());
        return kept.collect::<Vec<_>>().join(" … ");
    }
    own.map(str::to_owned).unwrap_or_else(|| {
        assembly::extract(text, &[], assembly::SUMMARY_TOKENS_MAX, Tokenizer::O200k)
    })
}

/// A memory that is in an envelope already.
fn carried_item(item: &ContextItem, at: Timestamp) -> Item {
    let text = item.text.clone().unwrap_or_default();
    Item {
        id: item.id.clone(),
        revision: u64::from(item.revision.unwrap_or(0)),
        kind: "memory".into(),
        title: item.title.clone().unwrap_or_default(),
        summary: None,
        text,
        priority: Priority::Normal,
        pinned: item.pinned,
        tags: Vec::new(),
        at,
        source: None,
    }
}
