// SPDX-License-Identifier: Apache-2.0
//! Live state: everything that is not at its end, in RAM, with the indexes that make claims and
//! sweeps cost the same however much is stored. One thread owns it. Every change goes through
//! `put_handoff` and `put_task`, which keep the indexes and remember how to undo.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tasuki_core::commands::Seeker;
use tasuki_core::decide::{NewEvent, Replay, View};
use tasuki_core::document::{self, StoredBody};
use tasuki_core::event::{self, Event, Sealed};
use tasuki_core::handoff::State;
use tasuki_core::ids::{Epoch, IdempotencyKey, OrderingKey, RequestId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::{self, Registry};
use tasuki_core::turn::{self, Queue, Rank, Turns};
use tasuki_core::world::replay_of;
use tasuki_core::{
    AgentId, Body, Document, DocumentId, Handoff, HandoffId, Position, Target, Task, TaskId,
    Timestamp,
};

use crate::feed::Change;
use crate::images::{AfterImages, Images};

/// How long an idempotency key is remembered.
pub(crate) const KEY_MS_MAX: u64 = 24 * 60 * 60 * 1000;

type Line = (Target, OrderingKey);
type AgentKey = (AgentId, IdempotencyKey);

pub(crate) struct Live {
    tasks: HashMap<TaskId, Arc<Task>>,
    handoffs: HashMap<HandoffId, Arc<Handoff>>,
    /// Claimable now, by target, first rank first.
    waiting: HashMap<Target, BTreeMap<Rank, HandoffId>>,
    /// Everything pending, by target: who sent it, how urgent it is, its turn and since when it is
    /// ready.
    senders: HashMap<Target, BTreeSet<(AgentId, Rank)>>,
    /// Not at their end, by target and ordering key, in offer order: only the first is claimable.
    lines: HashMap<Line, BTreeMap<Position, HandoffId>>,
    due: BTreeSet<(Timestamp, HandoffId)>,
    /// Answers that are kept for the agents that asked.
    kept: HashMap<AgentId, BTreeSet<(Position, HandoffId)>>,
    by_request: HashMap<(AgentId, RequestId), Vec<HandoffId>>,
    replays: HashMap<AgentKey, Replay>,
    replays_by_age: VecDeque<(Timestamp, Position, AgentKey)>,
    waiting_count: usize,
    live_count: usize,
    /// What tenants use, by name.
    pub(crate) usage: HashMap<String, Usage>,
    /// Bytes of bodies that were erased, to be taken from what was stored.
    pub(crate) freed: HashMap<String, u64>,
    /// What was loaded for the commands of this batch. A store writes documents down with their
    /// events, so nothing is lost by forgetting them after it.
    documents: HashMap<DocumentId, Arc<Document>>,
    bodies: HashMap<Position, StoredBody>,
    pub(crate) epoch: Epoch,
    pub(crate) registry: Arc<Registry>,
    /// What is known anew since the last commit, the latest last.
    pub(crate) known_anew: Vec<registry::Entry>,
    pub(crate) head: Position,
    undo: Vec<Undo>,
    /// Targets for which work became claimable since the last commit.
    pub(crate) ready: Vec<Target>,
}

enum Undo {
    Task(TaskId, Option<Arc<Task>>),
    Handoff(HandoffId, Option<Arc<Handoff>>),
    Replay(AgentKey),
    Epoch(Epoch),
    Registry(Arc<Registry>),
    Bytes(String, u64),
    Freed(String, u64),
}

impl Live {
    pub(crate) fn new(epoch: Epoch, head: Position) -> Self {
        Self {
            tasks: HashMap::new(),
            handoffs: HashMap::new(),
            waiting: HashMap::new(),
            senders: HashMap::new(),
            lines: HashMap::new(),
            due: BTreeSet::new(),
            kept: HashMap::new(),
            by_request: HashMap::new(),
            replays: HashMap::new(),
            replays_by_age: VecDeque::new(),
            waiting_count: 0,
            live_count: 0,
            usage: HashMap::new(),
            freed: HashMap::new(),
            documents: HashMap::new(),
            bodies: HashMap::new(),
            epoch,
            registry: Arc::default(),
            known_anew: Vec::new(),
            head,
            undo: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Gives an event the next position and its place in its task's chain, and applies it.
    pub(crate) fn append(&mut self, new: NewEvent, now: Timestamp) -> Appended {
        let position = Position(self.head.0 + 1);
        let task = self.tasks.get(&new.task).map(|task| &**task);
        let (sealed, encoded, body) = new.seal(task, position, now);
        self.apply(&sealed);
        if let Some(body) = &body {
            self.stored(&sealed, body.text().len() as u64);
        }
        self.change_document(&sealed);
        let task = self.tasks.get(&sealed.record.task_id).cloned();
        let handoff = sealed.record.handoff_id.and_then(|id| self.handoffs.get(&id).cloned());
        Appended { sealed, encoded, body, task, handoff }
    }

    /// Counts a body towards what its tenant uses.
    fn stored(&mut self, sealed: &Sealed, bytes: u64) {
        let tenant = sealed.record.actor.tenant();
        self.undo.push(Undo::Bytes(tenant.to_owned(), bytes));
        self.usage_of(tenant).stored_bytes += bytes;
    }

    fn change_document(&mut self, sealed: &Sealed) {
        if let Event::Erased(erased) = &sealed.record.event {
            let tenant = erased.tenant.to_string();
            self.usage_of(&tenant);
            *self.freed.entry(tenant.clone()).or_default() += erased.bytes;
            self.undo.push(Undo::Freed(tenant, erased.bytes));
            if let Some(body) = self.bodies.get_mut(&erased.position) {
                body.erased = true;
            }
        }
        if let Some(id) = sealed.record.event.facts().document {
            let mut known = self.documents.get(id).map(|document| (**document).clone());
            document::apply(sealed, &mut known);
            self.documents.extend(known.map(|document| (id.clone(), Arc::new(document))));
        }
    }

    pub(crate) fn put_document(&mut self, document: Arc<Document>) {
        self.documents.insert(document.id.clone(), document);
    }

    pub(crate) fn shared_document(&self, id: &DocumentId) -> Option<&Arc<Document>> {
        self.documents.get(id)
    }

    pub(crate) fn put_body(&mut self, at: Position, body: StoredBody) {
        self.bodies.insert(at, body);
    }

    pub(crate) fn knows_body(&self, at: Position) -> bool {
        self.bodies.contains_key(&at)
    }

    /// Lets go of what was loaded for a batch.
    pub(crate) fn forget_documents(&mut self) {
        self.documents.clear();
        self.bodies.clear();
    }

    fn usage_of(&mut self, tenant: &str) -> &mut Usage {
        if !self.usage.contains_key(tenant) {
            self.usage.insert(tenant.to_owned(), Usage::default());
        }
        self.usage.get_mut(tenant).expect("it was just put there")
    }

    /// Applies an event that has its place already.
    pub(crate) fn apply(&mut self, sealed: &Sealed) {
        let record = &sealed.record;
        let mut task = self.tasks.get(&record.task_id).cloned();
        let mut handoff = record.handoff_id.and_then(|id| self.handoffs.get(&id).cloned());
        event::apply(sealed, &mut task, &mut handoff);
        if let Some(handoff) = handoff {
            self.put_handoff(handoff.id, Some(handoff));
        }
        if let Some(task) = task {
            self.put_task(task.id, Some(task));
        }
        if let Event::EpochRaised { epoch } = record.event {
            self.undo.push(Undo::Epoch(self.epoch));
            self.epoch = Epoch(epoch);
        }
        self.learn(sealed);
        if let Some((agent, key, replay)) = replay_of(sealed) {
            let key = (agent.clone(), key.clone());
            self.undo.push(Undo::Replay(key.clone()));
            self.put_replay(key, replay, record.at, sealed.position);
        }
        self.head = sealed.position;
    }

    /// Applies the events of a log from its first one on, each with as many bytes as are left of its
    /// body.
    pub(crate) fn apply_all<'e>(&mut self, log: impl Iterator<Item = (&'e Sealed, Option<u64>)>) {
        for (sealed, bytes) in log {
            self.apply(sealed);
            if let Some(bytes) = bytes {
                self.stored(sealed, bytes);
            }
            self.commit();
        }
        self.known_anew.clear();
        self.ready.clear();
    }

    /// Applies an event again after a restart, to those that do not know it yet.
    pub(crate) fn apply_again(&mut self, sealed: &Sealed) {
        let record = &sealed.record;
        let mut task = self.tasks.get(&record.task_id).cloned();
        let task_knows = task.as_ref().is_some_and(|task| task.last_pos >= sealed.position);
        let mut handoff = record.handoff_id.and_then(|id| self.handoffs.get(&id).cloned());
        let handoff_knows = handoff.as_ref().is_some_and(|h| h.last_pos >= sealed.position);
        event::apply(sealed, &mut task, &mut handoff);
        if let Some(handoff) = handoff.filter(|_| !handoff_knows) {
            self.put_handoff(handoff.id, Some(handoff));
        }
        if let Some(task) = task.filter(|_| !task_knows) {
            self.put_task(task.id, Some(task));
        }
        if let Event::EpochRaised { epoch } = record.event {
            self.epoch = self.epoch.max(Epoch(epoch));
        }
        if sealed.position > self.registry.last_pos {
            self.learn(sealed);
        }
        if let Some((agent, key, replay)) = replay_of(sealed) {
            let key = (agent.clone(), key.clone());
            self.put_replay(key, replay, record.at, sealed.position);
        }
        self.head = sealed.position;
    }

    fn learn(&mut self, sealed: &Sealed) {
        if self.registry.is_changed_by(sealed) {
            self.undo.push(Undo::Registry(self.registry.clone()));
            self.known_anew.extend(Arc::make_mut(&mut self.registry).apply(sealed));
        }
    }

    pub(crate) fn renew(&mut self, id: HandoffId, now: Timestamp) {
        if let Some(handoff) = self.handoffs.get(&id) {
            let mut handoff = handoff.clone();
            Arc::make_mut(&mut handoff).renew(now);
            self.put_handoff(id, Some(handoff));
        }
    }

    /// Gives every holder a full lease: a restart is our silence, not theirs.
    pub(crate) fn renew_all(&mut self, now: Timestamp) {
        for id in self.held() {
            self.renew(id, now);
        }
    }

    pub(crate) fn put_task(&mut self, id: TaskId, task: Option<Arc<Task>>) {
        let old = match task {
            Some(task) => self.tasks.insert(id, task),
            None => self.tasks.remove(&id),
        };
        self.undo.push(Undo::Task(id, old));
    }

    pub(crate) fn put_handoff(&mut self, id: HandoffId, handoff: Option<Arc<Handoff>>) {
        let old = self.handoffs.remove(&id);
        if let Some(old) = &old {
            self.unindex(old);
        }
        if let Some(handoff) = handoff {
            self.index(&handoff);
            self.handoffs.insert(id, handoff);
        }
        self.undo.push(Undo::Handoff(id, old));
    }

    pub(crate) fn put_replay(
        &mut self,
        key: (AgentId, IdempotencyKey),
        replay: Replay,
        at: Timestamp,
        position: Position,
    ) {
        self.replays_by_age.push_back((at, position, key.clone()));
        self.replays.insert(key, replay);
    }

    fn index(&mut self, handoff: &Handoff) {
        if handoff.state.is_terminal() {
            return;
        }
        self.live_count += 1;
        self.usage_of(handoff.from.tenant()).in_flight += 1;
        if let Some(at) = handoff.due_at() {
            self.due.insert((at, handoff.id));
        }
        if let Some(rank) = handoff.rank() {
            let senders = self.senders.entry(handoff.to.clone()).or_default();
            senders.insert((handoff.from.clone(), rank));
        }
        if let State::Answered(kept) = &handoff.state {
            let place = (kept.since_pos, handoff.id);
            if self.kept.entry(kept.agent.clone()).or_default().insert(place) {
                self.ready.push(Target::Agent(kept.agent.clone()));
            }
        }
        if let Some((agent, request)) = request_of(handoff) {
            self.by_request.entry((agent, request)).or_default().push(handoff.id);
        }
        match line_of(handoff) {
            None => self.enqueue(handoff),
            Some(line) => {
                let members = self.lines.entry(line).or_default();
                let first = members.first_key_value().map(|(at, id)| (*at, *id));
                members.insert(handoff.offered_pos, handoff.id);
                match first {
                    Some((at, _)) if at < handoff.offered_pos => {}
                    // It was taken out to be changed, or state is loaded out of order: the later
                    // one must step back, and nobody need hear that it could be claimed.
                    Some((_, later)) => {
                        if let Some(later) = self.handoffs.get(&later).cloned()
                            && self.dequeue(&later)
                            && let Some(told) = self.ready.iter().rposition(|to| *to == later.to)
                        {
                            self.ready.remove(told);
                        }
                        self.enqueue(handoff);
                    }
                    None => self.enqueue(handoff),
                }
            }
        }
    }

    fn unindex(&mut self, handoff: &Handoff) {
        if handoff.state.is_terminal() {
            return;
        }
        self.live_count -= 1;
        let usage = self.usage_of(handoff.from.tenant());
        usage.in_flight = usage.in_flight.saturating_sub(1);
        if let Some(at) = handoff.due_at() {
            self.due.remove(&(at, handoff.id));
        }
        if let Some(rank) = handoff.rank()
            && let Some(senders) = self.senders.get_mut(&handoff.to)
        {
            senders.remove(&(handoff.from.clone(), rank));
            if senders.is_empty() {
                self.senders.remove(&handoff.to);
            }
        }
        if let State::Answered(kept) = &handoff.state
            && let Some(theirs) = self.kept.get_mut(&kept.agent)
        {
            theirs.remove(&(kept.since_pos, handoff.id));
            if theirs.is_empty() {
                self.kept.remove(&kept.agent);
            }
        }
        if let Some(key) = request_of(handoff)
            && let Some(held) = self.by_request.get_mut(&key)
        {
            held.retain(|id| *id != handoff.id);
            if held.is_empty() {
                self.by_request.remove(&key);
            }
        }
        self.dequeue(handoff);
        if let Some(line) = line_of(handoff)
            && let Some(members) = self.lines.get_mut(&line)
        {
            members.remove(&handoff.offered_pos);
            let next = members.first_key_value().map(|(_, id)| *id);
            if members.is_empty() {
                self.lines.remove(&line);
            }
            if let Some(next) = next.and_then(|id| self.handoffs.get(&id).cloned()) {
                self.enqueue(&next);
            }
        }
    }

    fn enqueue(&mut self, handoff: &Handoff) {
        if let Some(rank) = handoff.rank() {
            let queue = self.waiting.entry(handoff.to.clone()).or_default();
            if queue.insert(rank, handoff.id).is_none() {
                self.waiting_count += 1;
                self.ready.push(handoff.to.clone());
            }
        }
    }

    /// Whether it stood in the queue.
    fn dequeue(&mut self, handoff: &Handoff) -> bool {
        if let Some(rank) = handoff.rank()
            && let Some(queue) = self.waiting.get_mut(&handoff.to)
            && queue.remove(&rank).is_some()
        {
            self.waiting_count -= 1;
            if queue.is_empty() {
                self.waiting.remove(&handoff.to);
            }
            return true;
        }
        false
    }

    /// Shows everything that is here.
    pub(crate) fn show_all(&self, images: &Images) {
        let usage = |tenant: &String| (tenant.clone(), View::usage(self, tenant));
        images.write().put(AfterImages {
            tasks: self.tasks.iter().map(|(id, task)| (*id, Some(task.clone()))).collect(),
            handoffs: self.handoffs.iter().map(|(id, h)| (*id, Some(h.clone()))).collect(),
            waiting: self.waiting.iter().map(|(to, all)| (to.clone(), all.len() as u64)).collect(),
            usage: self.usage.keys().map(usage).collect(),
        });
    }

    /// Everything that changed since the last commit, as it is now.
    pub(crate) fn after_images(&self, images: &mut AfterImages) {
        for step in &self.undo {
            match step {
                Undo::Task(id, _) => images.tasks.push((*id, self.tasks.get(id).cloned())),
                Undo::Handoff(id, old) => {
                    let new = self.handoffs.get(id);
                    images.handoffs.push((*id, new.cloned()));
                    self.count_after(images, old.as_deref(), new.map(|new| &**new));
                }
                Undo::Bytes(tenant, _) | Undo::Freed(tenant, _) => {
                    images.usage.push((tenant.clone(), View::usage(self, tenant)));
                }
                Undo::Replay(_) | Undo::Epoch(_) | Undo::Registry(_) => {}
            }
        }
    }

    /// What a changed handoff changed in numbers: its queue, in which its neighbours may have moved
    /// up, and what its tenant has under way.
    fn count_after(&self, images: &mut AfterImages, old: Option<&Handoff>, new: Option<&Handoff>) {
        let under_way = |side: Option<&Handoff>| side.is_some_and(|h| !h.state.is_terminal());
        let queued = |h: &&Handoff| h.rank().is_some() || h.ordering_key.is_some();
        // It may wait for somebody else than before.
        for handoff in [old, new].into_iter().flatten().filter(queued) {
            images.waiting.push((handoff.to.clone(), self.waiting_for(&handoff.to)));
        }
        if let Some(handoff) = old.or(new).filter(|_| under_way(old) != under_way(new)) {
            let tenant = handoff.from.tenant();
            images.usage.push((tenant.to_owned(), View::usage(self, tenant)));
        }
    }

    /// Makes the changes since the last call final.
    pub(crate) fn commit(&mut self) {
        self.undo.clear();
    }

    /// Takes the changes since the last commit back. The head is the caller's to restore.
    pub(crate) fn roll_back(&mut self, head: Position) {
        for step in std::mem::take(&mut self.undo).into_iter().rev() {
            match step {
                Undo::Task(id, old) => self.put_task(id, old),
                Undo::Handoff(id, old) => self.put_handoff(id, old),
                Undo::Replay(key) => {
                    self.replays.remove(&key);
                }
                Undo::Epoch(epoch) => self.epoch = epoch,
                Undo::Registry(registry) => self.registry = registry,
                Undo::Bytes(tenant, bytes) => {
                    let usage = self.usage_of(&tenant);
                    usage.stored_bytes = usage.stored_bytes.saturating_sub(bytes);
                }
                Undo::Freed(tenant, bytes) => {
                    let freed = self.freed.entry(tenant).or_default();
                    *freed = freed.saturating_sub(bytes);
                }
            }
        }
        self.undo.clear();
        self.forget_documents();
        self.head = head;
        self.ready.clear();
        self.known_anew.clear();
    }

    /// Forgets idempotency keys that are too old, and beyond `max` the oldest that can be looked
    /// up elsewhere. Says whether any of the latter were forgotten.
    pub(crate) fn forget_keys(&mut self, now: Timestamp, max: usize, kept: Position) -> bool {
        let mut spilled = false;
        while let Some((at, position, key)) = self.replays_by_age.front() {
            let old = at.plus_ms(KEY_MS_MAX) <= now;
            let spills = self.replays.len() > max && *position <= kept;
            if !old && !spills {
                break;
            }
            spilled |= !old;
            self.replays.remove(key);
            self.replays_by_age.pop_front();
        }
        spilled
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(crate) fn shared_task(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(&id)
    }

    pub(crate) fn shared_handoff(&self, id: HandoffId) -> Option<&Arc<Handoff>> {
        self.handoffs.get(&id)
    }

    pub(crate) fn waiting_for(&self, target: &Target) -> u64 {
        self.waiting.get(target).map_or(0, |queue| queue.len() as u64)
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts { live: self.live_count, waiting: self.waiting_count, keys: self.replays.len() }
    }
}

pub(crate) struct Counts {
    pub(crate) live: usize,
    pub(crate) waiting: usize,
    pub(crate) keys: usize,
}

/// An event with its place, the bytes its hash covers, and the body that came with it.
pub(crate) struct Appended {
    pub(crate) sealed: Sealed,
    pub(crate) encoded: Vec<u8>,
    pub(crate) body: Option<Body>,
    /// What it is about, as it is after it.
    task: Option<Arc<Task>>,
    handoff: Option<Arc<Handoff>>,
}

impl Appended {
    /// An event that another store wrote. Nobody is told of it.
    pub(crate) fn copied(sealed: Sealed, encoded: Vec<u8>, body: Option<Body>) -> Self {
        Self { sealed, encoded, body, task: None, handoff: None }
    }

    pub(crate) fn into_change(self) -> Change {
        Change { sealed: self.sealed, task: self.task, handoff: self.handoff }
    }
}

fn line_of(handoff: &Handoff) -> Option<Line> {
    handoff.ordering_key.clone().map(|key| (handoff.to.clone(), key))
}

fn request_of(handoff: &Handoff) -> Option<(AgentId, RequestId)> {
    let claim = handoff.state.claim()?;
    Some((claim.agent.clone(), claim.request_id.clone()?))
}

impl View for Live {
    fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(|task| &**task)
    }

    fn handoff(&self, id: HandoffId) -> Option<&Handoff> {
        self.handoffs.get(&id).map(|handoff| &**handoff)
    }

    fn replay(&self, agent: &AgentId, key: &IdempotencyKey) -> Option<Replay> {
        self.replays.get(&(agent.clone(), key.clone())).cloned()
    }

    fn waiting(&self, seeker: &Seeker, max: usize) -> Vec<HandoffId> {
        let own = std::iter::once(Target::Agent(seeker.agent.clone()));
        let able = seeker.capabilities.iter().cloned().map(Target::Capability);
        let targets: BTreeSet<_> = own.chain(able).collect();
        let open = |id: &HandoffId| {
            self.handoffs.get(id).is_some_and(|h| !h.declined_by.contains(&seeker.agent))
        };
        let first = |queue: &BTreeMap<Rank, HandoffId>| {
            let open = queue.iter().filter(|(_, id)| open(id)).take(max);
            open.map(|(rank, id)| (*rank, *id)).collect()
        };
        let queues = targets.iter().filter_map(|target| self.waiting.get(target)).map(first);
        turn::merge(queues.collect(), max)
    }

    fn kept(&self, agent: &AgentId) -> Vec<HandoffId> {
        self.kept.get(agent).into_iter().flatten().map(|(_, id)| *id).collect()
    }

    fn turns(&self, queue: &Queue, from: &AgentId) -> Turns {
        let bound = |end| Rank {
            urgency_rank: queue.urgency_rank,
            turn: Position(end),
            ready: Position(end),
        };
        let all = bound(0)..=bound(u64::MAX);
        let declined =
            |id: &HandoffId| self.handoffs.get(id).is_some_and(|h| !h.declined_by.is_empty());
        let mut waiting =
            self.waiting.get(&queue.to).into_iter().flat_map(|q| q.range(all.clone()));
        let first = waiting.find(|(_, id)| !declined(id)).map(|(rank, _)| rank.turn);
        let own = (from.clone(), bound(0))..=(from.clone(), bound(u64::MAX));
        let mut own =
            self.senders.get(&queue.to).into_iter().flat_map(|all| all.range(own.clone()));
        Turns { first, own_last: own.next_back().map(|(_, rank)| rank.turn) }
    }

    fn ahead_of(&self, handoff: &Handoff) -> Option<HandoffId> {
        let (at, first) = self.lines.get(&line_of(handoff)?)?.first_key_value()?;
        (*at < handoff.offered_pos).then_some(*first)
    }

    fn held_by_request(&self, agent: &AgentId, request: &RequestId) -> Vec<HandoffId> {
        let mut held =
            self.by_request.get(&(agent.clone(), request.clone())).cloned().unwrap_or_default();
        held.sort_unstable();
        held
    }

    fn due(&self, now: Timestamp, max: usize) -> Vec<HandoffId> {
        self.due.iter().take_while(|(at, _)| *at <= now).take(max).map(|(_, id)| *id).collect()
    }

    fn held(&self) -> Vec<HandoffId> {
        let held = |h: &&Arc<Handoff>| h.state.worker().is_some();
        let mut ids: Vec<_> = self.handoffs.values().filter(held).map(|h| h.id).collect();
        ids.sort_unstable();
        ids
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn usage(&self, tenant: &str) -> Usage {
        let usage = self.usage.get(tenant).copied().unwrap_or_default();
        let freed = self.freed.get(tenant).copied().unwrap_or(0);
        Usage { stored_bytes: usage.stored_bytes.saturating_sub(freed), ..usage }
    }

    fn document(&self, id: &DocumentId) -> Option<&Document> {
        self.documents.get(id).map(|document| &**document)
    }

    fn body(&self, at: Position) -> Option<StoredBody> {
        self.bodies.get(&at).cloned()
    }
}

#[cfg(test)]
mod tests;
