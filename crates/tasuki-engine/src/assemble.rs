// SPDX-License-Identifier: Apache-2.0
//! Putting together what a receiver gets to read, within its token budget: who it is, what the task
//! has inherited, which memories there are. The core decides what is kept; a memory that cannot be
//! read becomes a gap, not a failure.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tasuki_core::assembly::{
    self, Assembled, Candidate, Gap, Item, Prepared, Priority, Strategy, Tokenizer,
};
use tasuki_core::document::{self, Scope};
use tasuki_core::envelope::brief::brief;
use tasuki_core::envelope::inherit::{Hand, inherit};
use tasuki_core::envelope::parts::{ContextItem, ENTRIES_MAX, Freshness, MemoryRef};
use tasuki_core::envelope::project::{ISSUER, ProjectRules};
use tasuki_core::envelope::said::{NewGap, TextOr};
use tasuki_core::envelope::{Envelope, Parts, Payload, Said};
use tasuki_core::event::Actor;
use tasuki_core::ids::Project;
use tasuki_core::registry::rules::Permission;
use tasuki_core::trust::Trust;
use tasuki_core::{AgentId, Document, DocumentId, TaskId, Timestamp};
use tasuki_store::Needs;

use crate::desk::Desk;
use crate::engine::check_intent;
use crate::error::{Error, invalid};
use crate::memories::{MEMORIES_MAX, MemorySearch, SeenMemory};
use crate::pins;
use crate::ready::{CONSIDERED_BYTES_MAX, Ready};

/// How many memories are looked at by recency, and how many by what they say.
const RECENT_MAX: usize = 1000;
const RELEVANT: usize = MEMORIES_MAX;
/// How many memories on either side of one that answers the ask are looked at.
const NEIGHBOURS: usize = 8;
/// How many pins may travel.
const PINS_MAX: usize = 1000;
/// Up to how many memories of a scope are counted that are not looked at.
const COUNTED_MAX: usize = 100_000;

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
    /// What is to be sent with it, so that room is kept for it.
    pub payload: Option<Payload>,
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

impl Ready {
    /// What may be passed, and what is missing of it.
    fn candidates(
        &self,
        found: &Found,
        words: &BTreeMap<String, Item>,
        mut unresolved: Vec<Gap>,
        tokenizer: Tokenizer,
    ) -> (Vec<Candidate>, Vec<Gap>) {
        let passed = words.values().map(|item| Prepared::new(item.clone(), tokenizer));
        let mut candidates: Vec<_> = passed.map(Candidate::from).collect();
        unresolved.retain(|gap| !words.contains_key(&gap.id));
        for memory in found.values() {
            match self.prepare(memory, tokenizer, item) {
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
        by: match &memory.kept.revision.written_by {
            Actor::Agent(agent) => Some(agent.name().to_owned()),
            _ => None,
        },
        trust: trust(content.tags.iter().map(String::as_str)),
    })
}

/// Who stands behind a memory: its writer, unless a tag `trust:tool` or `trust:environment` says
/// that it only wrote down what others said. Nothing raises it.
fn trust<'t>(mut tags: impl Iterator<Item = &'t str>) -> Trust {
    let label = tags.find_map(|tag| tag.strip_prefix("trust:")).and_then(|word| word.parse().ok());
    label.unwrap_or(Trust::Agent).min(Trust::Agent)
}

/// Where in a chain the next envelope will stand.
struct Stand {
    intent: String,
    before: Option<Arc<Envelope>>,
    hop: u32,
    coordinator: AgentId,
    project: Option<Project>,
}

/// Memories that may matter, each revision of them once.
pub(crate) type Found = BTreeMap<(DocumentId, u32), SeenMemory>;

#[derive(Default)]
struct Gathered {
    found: Found,
    /// What could not be read.
    gaps: Vec<Gap>,
    /// How many there are where it was looked that nobody looked at.
    not_considered: u64,
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
        if wish.recent > RECENT_MAX {
            let problem = format!("is {}, expected at most {RECENT_MAX}", wish.recent);
            return Err(invalid("include_recent", problem));
        }
        let Stand { intent, before, hop, coordinator, project } = self.place(&wish, &from).await?;
        let now = self.now();
        let rules = self.engine.rules_of(from.tenant(), project.as_ref()).await?;
        let project = rules.as_deref();
        let hand = Hand { from: &from, coordinator: Some(&coordinator), hop, now, project };
        let before = before.as_deref();
        let parts = before.map(|before| &before.parts);
        let inherited = inherit(parts, &wish.said, hand).map_err(Error::Envelope)?;
        let receiver = self.receiver(&wish, inherited.budget_tokens).await?;
        let Gathered { mut found, gaps: unresolved, not_considered } =
            self.gather(&wish, &from, &inherited.parts, parts).await?;
        // What the sender was passed and cannot look up, it passes on in the words that it has.
        let mut words = before.map(|before| only_passed(before, &found)).unwrap_or_default();
        // What its project says, it is told anew.
        words.retain(|id, _| project.is_none() || !id.starts_with(ISSUER));
        words.extend(project.into_iter().flat_map(of_project).map(|item| (item.id.clone(), item)));
        let theirs = theirs(parts, &inherited.parts, [&from, &coordinator]);
        let profiles = &self.engine.settings.profiles;
        let profile = receiver.role.as_deref().and_then(|role| profiles.of(role)).cloned();
        let work = || {
            let others = receiver.system_prompt.saturating_add(receiver.work);
            let room = receiver.budget.map(|budget| budget.saturating_sub(others));
            let over = pins::within(&mut found, &theirs, receiver.tokenizer, room);
            let (items, unresolved) =
                self.engine.ready.candidates(&found, &words, unresolved, receiver.tokenizer);
            let mut brief = brief(&intent, &inherited.parts);
            // What is missing is said too, and takes room like everything that is said.
            let known = |gap: &&Gap| inherited.parts.gaps.iter().any(|it| it.reference == gap.id);
            let missing = unresolved.iter().filter(|gap| !known(gap));
            brief.gaps.extend(missing.map(|gap| format!("{} ({})", gap.id, gap.reason)));
            let asked = wish.payload.as_ref().map_or(0, |payload| {
                let text = serde_json::to_string(payload).unwrap_or_default();
                receiver.tokenizer.count(&text)
            });
            let claim = receiver.budget.map_or(0, |budget| {
                assembly::claim_reserve(budget.saturating_sub(others)).saturating_add(asked)
            });
            let request = assembly::Request {
                reserved_claim: claim,
                brief,
                items,
                unresolved,
                not_considered,
                inherited: Vec::new(),
                profile,
                strategy: wish.strategy,
                tokenizer: receiver.tokenizer,
                budget: receiver.budget,
                reserved_system_prompt: receiver.system_prompt,
                reserved_work: receiver.work,
            };
            (assembly::assemble(&request), request.unresolved, over)
        };
        let (assembled, unresolved, over) = self.engine.pool.run(work).await;
        let mut assembled =
            assembled.map_err(|short| Error::TooSmall(pins::named(short, &found)))?;
        self.engine.instruments.assembled(&assembled.receipt);
        assembled.receipt.warnings.extend(over);
        let said = said(wish.said, &assembled, &unresolved);
        let parts = inherit(parts, &said, hand).map_err(Error::Envelope)?.parts;
        Ok(Put { intent, parts, said, assembled })
    }

    async fn place(&self, wish: &AssembleRequest, from: &AgentId) -> Result<Stand, Error> {
        let Some(id) = wish.task_id else {
            let Some(intent) = &wish.intent else {
                return Err(invalid("intent", "a new task needs the user's own words"));
            };
            check_intent(intent)?;
            return Ok(Stand {
                intent: intent.clone(),
                before: None,
                hop: 0,
                coordinator: from.clone(),
                project: wish.project.clone(),
            });
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
        let (coordinator, project) = (task.decider().clone(), task.project.clone());
        Ok(Stand { intent, before, hop, coordinator, project })
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
            tokenizer: tokenizer.as_deref().map_or(Tokenizer::UNKNOWN, Tokenizer::named),
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
    ) -> Result<Gathered, Error> {
        let mut found = Found::new();
        let mut gaps = Vec::new();
        let mut refs = parts.memory_refs.clone();
        for earlier in before.into_iter().flat_map(referred) {
            if !refs.iter().any(|known| known.id == earlier.id) {
                refs.push(earlier);
            }
        }
        refs.retain(|one| !one.id.starts_with(ISSUER));
        self.follow(&refs, &mut found, &mut gaps).await?;
        let own = [Some(Scope::Agent(from.clone())), wish.task_id.map(Scope::Task)];
        let scopes = own.into_iter().flatten().chain(wish.project.clone().map(Scope::Project));
        // All that a scope may add is asked for at once, and all scopes together.
        let ask = parts.ask.as_deref().filter(|_| wish.recent > 0);
        let looks = scopes.map(|scope| self.look_into(scope, wish, ask));
        let mut seen = Vec::new();
        let mut there = 0_usize;
        for Seen { scope, pins, listed, hits, all } in futures::future::join_all(looks).await {
            let mut readable = |what: &str, seen: Result<Vec<SeenMemory>, Error>| match seen {
                Ok(memories) => Ok(memories),
                Err(error) => unread(what, error).map(|gap| {
                    gaps.push(gap);
                    Vec::new()
                }),
            };
            add(readable("pinned memories", pins)?, &mut found);
            let hits = readable("memories by what they say", hits)?;
            let listed = readable("memories that changed last", listed)?;
            // Whoever may not read all of a scope is not told how much there is.
            let whole = self.caller.may_in(Permission::Read, scope.project());
            there += all?.filter(|_| whole).unwrap_or(0);
            seen.push((scope, listed, hits));
        }
        // The bound is for all scopes together: what changed last, wherever it did.
        let mut newest: Vec<_> = seen.iter().flat_map(|(_, listed, _)| listed).collect();
        newest.sort_by_key(|memory| std::cmp::Reverse(memory.kept.document.last_pos));
        let recent: HashSet<DocumentId> =
            newest.iter().take(wish.recent).map(|it| it.kept.document.id.clone()).collect();
        let scopes: HashSet<Scope> = seen.iter().map(|(scope, _, _)| scope.clone()).collect();
        let mut left = CONSIDERED_BYTES_MAX;
        for (_, listed, hits) in seen {
            let listed = near(listed, &hits, &recent);
            add(within(hits, &mut left), &mut found);
            add(within(listed, &mut left), &mut found);
        }
        let looked_at: HashSet<&DocumentId> = found
            .values()
            .filter(|memory| scopes.contains(&memory.kept.document.scope))
            .map(|memory| &memory.kept.document.id)
            .collect();
        let not_considered = there.saturating_sub(looked_at.len()) as u64;
        Ok(Gathered { found, gaps, not_considered })
    }

    /// What a scope may add: its pins, what changed last, and what answers the ask.
    async fn look_into(&self, scope: Scope, wish: &AssembleRequest, ask: Option<&str>) -> Seen {
        let search = MemorySearch { scope: Some(scope.clone()), ..MemorySearch::default() };
        let look = |search: Option<MemorySearch>| async {
            match search {
                Some(search) => self.look_for(search).await.map(|(memories, _)| memories),
                None => Ok(Vec::new()),
            }
        };
        let pins =
            wish.pins.then(|| MemorySearch { pinned: Some(true), max: PINS_MAX, ..search.clone() });
        let recent = wish.recent;
        let listed = (recent > 0).then(|| MemorySearch {
            // Neighbours of what answers the ask may be older than what is wanted for its time.
            max: if ask.is_some() { RECENT_MAX } else { recent },
            bytes_max: Some(CONSIDERED_BYTES_MAX),
            ..search.clone()
        });
        let hits = ask.map(|ask| MemorySearch {
            question: Some(ask.to_owned()),
            max: RELEVANT,
            ..search.clone()
        });
        let count = self.count_memories(&scope, COUNTED_MAX);
        let (pins, listed, hits, all) = futures::join!(look(pins), look(listed), look(hits), count);
        Seen { scope, pins, listed, hits, all: all.map(Some) }
    }

    /// Memories that are named: what is missing is a gap.
    async fn follow(
        &self,
        refs: &[MemoryRef],
        found: &mut Found,
        gaps: &mut Vec<Gap>,
    ) -> Result<(), Error> {
        let mut wanted = Vec::new();
        for reference in refs {
            match reference.id.parse::<DocumentId>() {
                Ok(id) => {
                    let named = reference.revision;
                    match (reference.freshness, named) {
                        (Freshness::Pinned, _) => wanted.push((id, named)),
                        (Freshness::Both, Some(_)) => {
                            wanted.push((id.clone(), named));
                            wanted.push((id, None));
                        }
                        (Freshness::Latest, _) | (Freshness::Both, None) => wanted.push((id, None)),
                    }
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
                            (Some(memory), None) => insert(memory, found),
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
fn only_passed(before: &Envelope, found: &Found) -> BTreeMap<String, Item> {
    let known: HashSet<&str> = found.keys().map(|(id, _)| id.name()).collect();
    let texts = before.parts.context.iter();
    let texts = texts.filter(|item| item.text.is_some() || !item.excerpts.is_empty());
    let texts = texts.filter(|item| !known.contains(item.id.as_str()));
    texts.map(|item| (item.id.clone(), carried_item(item, before.created_at))).collect()
}

/// What was seen in a scope.
struct Seen {
    scope: Scope,
    /// How many there are.
    all: Result<Option<usize>, Error>,
    pins: Result<Vec<SeenMemory>, Error>,
    listed: Result<Vec<SeenMemory>, Error>,
    hits: Result<Vec<SeenMemory>, Error>,
}

/// Of memories in the order in which they changed, the recent ones, and those beside a hit: an answer
/// is rarely one turn of a conversation.
fn near(
    listed: Vec<SeenMemory>,
    hits: &[SeenMemory],
    recent: &HashSet<DocumentId>,
) -> Vec<SeenMemory> {
    let hits: HashSet<&DocumentId> = hits.iter().map(|hit| &hit.kept.document.id).collect();
    let recent = listed.iter().map(|memory| recent.contains(&memory.kept.document.id));
    let mut wanted: Vec<bool> = recent.collect();
    for (at, memory) in listed.iter().enumerate() {
        if hits.contains(&memory.kept.document.id) {
            let last = (at + NEIGHBOURS).min(listed.len() - 1);
            wanted[at.saturating_sub(NEIGHBOURS)..=last].fill(true);
        }
    }
    let wanted = listed.into_iter().zip(wanted).filter(|(_, wanted)| *wanted);
    wanted.map(|(memory, _)| memory).collect()
}

/// As many of them, the first ones, as there is room for.
fn within(memories: Vec<SeenMemory>, left: &mut usize) -> Vec<SeenMemory> {
    let bytes = |memory: &SeenMemory| memory.content.as_ref().map_or(0, |it| it.text.len());
    let fits = memories.into_iter().take_while(|memory| {
        let rest = left.checked_sub(bytes(memory));
        *left = rest.unwrap_or(0);
        rest.is_some()
    });
    fits.collect()
}

/// Adds memories of which no revision is there.
fn add(memories: Vec<SeenMemory>, found: &mut Found) {
    for memory in memories {
        let id = &memory.kept.document.id;
        let known = found.range((id.clone(), 0)..=(id.clone(), u32::MAX)).next().is_some();
        if !known {
            insert(memory, found);
        }
    }
}

fn insert(memory: SeenMemory, found: &mut Found) {
    let key = (memory.kept.document.id.clone(), memory.kept.revision.number);
    found.entry(key).or_insert(memory);
}

/// The ids of pins that travel whoever pinned them, and whose pins always do.
fn theirs(before: Option<&Parts>, parts: &Parts, agents: [&AgentId; 2]) -> pins::Theirs {
    let carried = before.into_iter().flat_map(|before| &before.context).filter(|it| it.pinned);
    let named = parts.memory_refs.iter().map(|one| &one.id);
    pins::Theirs {
        ids: carried.map(|item| &item.id).chain(named).cloned().collect(),
        agents: agents.into_iter().cloned().collect(),
    }
}

/// What a project has decided, and where it stands, as items that may be passed.
fn of_project(rules: &ProjectRules) -> Vec<Item> {
    let name = rules.issuer.name();
    let item = |id: String, kind: &str, title: String, text: String, at, by: &str| Item {
        id,
        revision: 0,
        kind: kind.into(),
        title,
        summary: None,
        text,
        priority: Priority::Normal,
        pinned: false,
        tags: vec![format!("kind:{kind}")],
        at,
        source: None,
        by: Some(by.to_owned()),
        trust: Trust::Agent,
    };
    let mut items: Vec<Item> = rules
        .settled
        .iter()
        .map(|it| {
            let why = it.why.as_deref().map(|why| format!("\nWhy: {why}")).unwrap_or_default();
            let id = format!("{name}:decision-{}", it.number);
            let text = format!("{}{why}", it.decision);
            item(id, "decision", it.key.to_string(), text, it.at, it.by.name())
        })
        .collect();
    let state = &rules.state;
    let mut lines: Vec<String> = state.summary.iter().cloned().collect();
    lines.extend(state.branch.iter().map(|branch| format!("Branch: {branch}")));
    lines.extend(state.recent_changes.iter().map(|change| format!("- {change}")));
    if !state.files.is_empty() {
        lines.push(format!("Files: {}", state.files.join(", ")));
    }
    if !lines.is_empty() {
        let (id, title) = (format!("{name}:state"), "where the project stands".to_owned());
        items.push(item(id, "project_state", title, lines.join("\n"), rules.stated_at, name));
    }
    items
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
fn said(said: Said, assembled: &Assembled, unresolved: &[Gap]) -> Said {
    let referred = assembled.referred.iter().map(|(id, revision, title)| MemoryRef {
        id: id.clone(),
        revision: u32::try_from(*revision).ok().filter(|revision| *revision > 0),
        freshness: Freshness::Latest,
        title: Some(title.clone()).filter(|title| !title.is_empty()),
    });
    // The names of what is referred to are their places here, so these come first.
    let mut memory_refs: Vec<MemoryRef> = referred.collect();
    let passed = |id: &str| assembled.context.iter().any(|item| item.id == id);
    for given in &said.memory_refs {
        match memory_refs.iter_mut().find(|known| known.id == given.id) {
            Some(known) => *known = given.clone(),
            None if passed(&given.id) => {}
            None => memory_refs.push(given.clone()),
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
    let context_manifest = Some(assembled.receipt.manifest_hash);
    let (context, reading) = (assembled.context.clone(), Some(assembled.reading.clone()));
    Said { context, memory_refs, gaps, context_manifest, reading, ..said }
}

/// A memory that is in an envelope already, in the words that are there.
fn carried_item(item: &ContextItem, at: Timestamp) -> Item {
    let parts: Vec<&str> = item.excerpts.iter().map(|part| part.text.as_str()).collect();
    let lead = item.lead.iter().map(String::as_str);
    let text = item.text.iter().map(String::as_str).chain(lead).chain(parts);
    Item {
        id: item.id.clone(),
        revision: u64::from(item.revision.unwrap_or(0)),
        kind: item.kind.clone().unwrap_or_else(|| "memory".into()),
        title: item.title.clone().unwrap_or_default(),
        summary: None,
        text: text.collect::<Vec<_>>().join("\n"),
        priority: Priority::Normal,
        pinned: item.pinned,
        tags: Vec::new(),
        at,
        source: None,
        by: item.by.clone(),
        trust: item.trust.unwrap_or(Trust::Agent),
    }
}
