// SPDX-License-Identifier: Apache-2.0
//! What a batch of commands must see: named by the commands, locked, and read into a [`Live`] that
//! holds nothing else. One lock stands for a task and all its handoffs: the task's row. Waiting for
//! locks happens in the order of ids; whoever looks for work skips what is locked.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tasuki_core::commands::Seeker;
use tasuki_core::decide::{Replay, View};
use tasuki_core::document::StoredBody;
use tasuki_core::ids::{Epoch, IdempotencyKey, RequestId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::Registry;
use tasuki_core::turn::{Queue, Turns};
use tasuki_core::{
    AgentId, Document, DocumentId, Handoff, HandoffId, Position, Target, Task, TaskId, Timestamp,
};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::cursors::Cursors;
use super::db::{Db, Value, query};
use super::error::Fault;
use super::needs::{Entrance, Needs, entrance};
use super::rows::{self, handoff_uuid, target_text, task_uuid};
use super::sql::{
    CLAIM, CLAIM_COLD, CLAIM_DECLINED, CLAIM_KEPT, LOCK_DUE, LOCK_HELD, LOCK_NAMED, MORE,
    MORE_COLD, MORE_KEPT, READ_HANDOFFS, READ_TASKS, TURNS,
};
use super::{covered, documents, reading};
use crate::live::Live;
use crate::sums::RowKey;

/// What was read, and how it was when it was read.
pub(super) struct Loaded {
    pub(super) live: Live,
    pub(super) tasks: HashMap<TaskId, Arc<Task>>,
    pub(super) handoffs: HashMap<HandoffId, Arc<Handoff>>,
    /// What the sums over the rows have of what was read.
    pub(super) added: covered::Read,
    /// Read to know the order of a line, but not ours to change.
    others: HashSet<HandoffId>,
    /// What decides about the next turns in queues.
    turns: HashMap<Entrance, Turns>,
    /// What tenants with a quota used when the log's end was locked.
    usage: HashMap<String, Usage>,
    /// How many of their handoffs were read that were not at their end.
    loaded_live: HashMap<String, u64>,
}

/// What is locked: tasks, and the handoffs that were asked for by name.
pub(super) struct Locked {
    tasks: Vec<Uuid>,
    named: Vec<Uuid>,
    /// What waited when a statement looked for work.
    candidates: Vec<HandoffId>,
}

impl Locked {
    /// Begins the transaction and takes the locks. All statements are sent at once.
    pub(super) async fn take(
        db: &Db,
        begin: &str,
        needs: &Needs,
        cursors: &Cursors,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let (_, named, hot, cold, declined, kept, due) = futures::try_join!(
            db.execute(begin),
            lock_named(db, needs),
            lock_hot(db, needs, cursors),
            lock_cold(db, needs, cursors),
            lock_declined(db, needs),
            lock_kept(db, needs),
            lock_due(db, needs, cursors, now),
        )?;
        let mut tasks = BTreeSet::new();
        let named_and_found = named.iter().chain(&hot).chain(&cold).chain(&declined);
        for row in named_and_found.chain(&kept).chain(&due) {
            tasks.insert(row.try_get::<_, Uuid>(0)?);
        }
        for row in hot.iter().chain(&cold) {
            cursors.heat(row.try_get(2)?, row.try_get(3)?);
        }
        let mut candidates = Vec::new();
        for row in hot.iter().chain(&cold).chain(&declined) {
            candidates.push(HandoffId(row.try_get::<_, Uuid>(1)?.as_u128()));
        }
        let named = needs.handoffs.iter().copied().map(handoff_uuid).collect();
        Ok(Self { tasks: tasks.into_iter().collect(), named, candidates })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

/// Waits for what is named, in the order of ids, so that no two batches wait for each other. A
/// handoff never changes its task, so finding the task of one needs no lock.
async fn lock_named(db: &Db, needs: &Needs) -> Result<Vec<Row>, Fault> {
    if needs.held.is_none()
        && needs.tasks.is_empty()
        && needs.handoffs.is_empty()
        && needs.requests.is_empty()
    {
        return Ok(Vec::new());
    }
    let tasks: Vec<_> = needs.tasks.iter().copied().map(task_uuid).collect();
    let handoffs: Vec<_> = needs.handoffs.iter().copied().map(handoff_uuid).collect();
    let agents: Vec<_> = needs.requests.iter().map(|(agent, _)| agent.as_str()).collect();
    let requests: Vec<_> = needs.requests.iter().map(|(_, id)| id.as_str()).collect();
    let Some(held) = &needs.held else {
        return db.run(&LOCK_NAMED, &[&tasks, &handoffs, &agents, &requests]).await;
    };
    let held: Vec<_> = held.iter().map(AgentId::as_str).collect();
    db.run(&LOCK_HELD, &[&tasks, &handoffs, &agents, &requests, &held]).await
}

/// Queues with a mark, as the columns of a statement.
struct Hot {
    targets: Vec<String>,
    haste: Vec<i16>,
    marks: Vec<i64>,
    wanted: Vec<i64>,
}

impl Hot {
    fn of(needs: &Needs, cursors: &Cursors) -> Self {
        let queues = cursors.hot(needs.wanted.keys());
        Self {
            wanted: queues.iter().map(|(target, ..)| needs.wanted[target] as i64).collect(),
            haste: queues.iter().map(|(_, haste, _)| *haste).collect(),
            marks: queues.iter().map(|(.., mark)| *mark).collect(),
            targets: queues.into_iter().map(|(target, ..)| target).collect(),
        }
    }
}

/// Ranges of queues without one.
struct Cold {
    targets: Vec<String>,
    first: Vec<i16>,
    last: Vec<i16>,
    wanted: Vec<i64>,
}

impl Cold {
    fn of(needs: &Needs, cursors: &Cursors) -> Self {
        let queues = cursors.cold(needs.wanted.keys());
        Self {
            wanted: queues.iter().map(|(target, ..)| needs.wanted[target] as i64).collect(),
            first: queues.iter().map(|(_, first, _)| *first).collect(),
            last: queues.iter().map(|(.., last)| *last).collect(),
            targets: queues.into_iter().map(|(target, ..)| target).collect(),
        }
    }
}

/// What waits in queues that work is taken from, from their low-water marks on.
async fn lock_hot(db: &Db, needs: &Needs, cursors: &Cursors) -> Result<Vec<Row>, Fault> {
    let hot = Hot::of(needs, cursors);
    if hot.targets.is_empty() {
        return Ok(Vec::new());
    }
    db.run(&CLAIM, &[&hot.targets, &hot.haste, &hot.marks, &hot.wanted]).await
}

/// What decides about the turns of the batch's offers.
pub(super) async fn turns_of_offers(
    db: &Db,
    needs: &Needs,
    cursors: &Cursors,
) -> Result<Vec<Row>, Fault> {
    read_turns(db, &needs.queues, cursors).await
}

async fn read_turns(
    db: &Db,
    entrances: &BTreeSet<Entrance>,
    cursors: &Cursors,
) -> Result<Vec<Row>, Fault> {
    if entrances.is_empty() {
        return Ok(Vec::new());
    }
    let targets: Vec<_> = entrances.iter().map(|(target, ..)| target.as_str()).collect();
    let haste: Vec<_> = entrances.iter().map(|(_, haste, _)| *haste).collect();
    let from: Vec<_> = entrances.iter().map(|(.., from)| from.as_str()).collect();
    let marks: Vec<_> = entrances.iter().map(|(to, haste, _)| cursors.mark(to, *haste)).collect();
    db.run(&TURNS, &[&targets, &haste, &from, &marks]).await
}

/// What waits in all the other queues of the same targets.
async fn lock_cold(db: &Db, needs: &Needs, cursors: &Cursors) -> Result<Vec<Row>, Fault> {
    let cold = Cold::of(needs, cursors);
    if cold.targets.is_empty() {
        return Ok(Vec::new());
    }
    db.run(&CLAIM_COLD, &[&cold.targets, &cold.first, &cold.last, &cold.wanted]).await
}

/// Whether something waits that was skipped because somebody else has it locked just now. Who
/// goes away with nothing would not be told of it when the other one lets go.
pub(super) async fn more_waits(
    db: &Db,
    needs: &Needs,
    cursors: &Cursors,
    locked: &Locked,
) -> Result<bool, Fault> {
    let ours: Vec<_> = locked.candidates.iter().copied().map(handoff_uuid).collect();
    // One more than was found would do, but which one was found is not known by queue.
    let room = ours.len() as i64 + 1;
    let (mut hot, mut cold) = (Hot::of(needs, cursors), Cold::of(needs, cursors));
    hot.wanted.fill(room);
    cold.wanted.fill(room);
    let agents: Vec<_> = needs.seekers.iter().map(AgentId::as_str).collect();
    let (hot, cold, kept) = futures::try_join!(
        async { db.run(&MORE, &[&hot.targets, &hot.haste, &hot.marks, &hot.wanted, &ours]).await },
        async {
            db.run(&MORE_COLD, &[&cold.targets, &cold.first, &cold.last, &cold.wanted, &ours]).await
        },
        async { db.run(&MORE_KEPT, &[&agents, &locked.tasks]).await },
    )?;
    Ok(!hot.is_empty() || !cold.is_empty() || !kept.is_empty())
}

/// What waits and was declined by some, but not by everybody who asks now.
async fn lock_declined(db: &Db, needs: &Needs) -> Result<Vec<Row>, Fault> {
    if needs.wanted.is_empty() {
        return Ok(Vec::new());
    }
    let targets: Vec<_> = needs.wanted.keys().map(String::as_str).collect();
    let agents: Vec<_> = needs.seekers.iter().map(AgentId::as_str).collect();
    db.run(&CLAIM_DECLINED, &[&targets, &agents]).await
}

/// Answers that are kept for those who ask for work now.
async fn lock_kept(db: &Db, needs: &Needs) -> Result<Vec<Row>, Fault> {
    if needs.wanted.is_empty() {
        return Ok(Vec::new());
    }
    let agents: Vec<_> = needs.seekers.iter().map(AgentId::as_str).collect();
    db.run(&CLAIM_KEPT, &[&agents]).await
}

async fn lock_due(
    db: &Db,
    needs: &Needs,
    cursors: &Cursors,
    now: Timestamp,
) -> Result<Vec<Row>, Fault> {
    if needs.sweep == 0 {
        return Ok(Vec::new());
    }
    let max = i64::try_from(needs.sweep).unwrap_or(i64::MAX);
    let until = needs.sweep_until.map_or(now, |until| until.min(now));
    db.run(&LOCK_DUE, &[&until.0, &cursors.due_mark(), &max]).await
}

impl Loaded {
    /// Reads what is locked, by statements of their own that begin after the locks were taken: what
    /// they see is final.
    pub(super) async fn read(
        db: &Db,
        locked: &Locked,
        key: Option<&RowKey>,
    ) -> Result<Self, Fault> {
        let mut loaded = Self {
            live: Live::new(Epoch(0), Position(0)),
            tasks: HashMap::new(),
            handoffs: HashMap::new(),
            added: covered::Read::default(),
            others: HashSet::new(),
            turns: HashMap::new(),
            usage: HashMap::new(),
            loaded_live: HashMap::new(),
        };
        if locked.is_empty() {
            return Ok(loaded);
        }
        let values: [&(dyn ToSql + Sync); 2] = [&locked.named, &locked.tasks];
        let (tasks, handoffs) = futures::try_join!(
            db.run(&READ_TASKS, &values[1..]),
            db.run(&READ_HANDOFFS, &values),
        )?;
        for row in &tasks {
            let task = Arc::new(rows::task_of(row)?);
            if let Some(key) = key.filter(|_| covered::counts(&task)) {
                let row = covered::task(key, &task, row.try_get(18)?);
                loaded.added.tasks.insert(task.id, row);
            }
            loaded.tasks.insert(task.id, task.clone());
            loaded.live.put_task(task.id, Some(task));
        }
        for row in &handoffs {
            let handoff = Arc::new(rows::handoff_of(row, 0)?);
            if loaded.tasks.contains_key(&handoff.task_id) {
                if let Some(key) = key.filter(|_| !handoff.state.is_terminal()) {
                    let row = covered::handoff(key, handoff.id, row.try_get(0)?);
                    loaded.added.handoffs.insert(handoff.id, row);
                }
                loaded.handoffs.insert(handoff.id, handoff.clone());
                loaded.live.put_handoff(handoff.id, Some(handoff));
            }
        }
        // Somebody took one between the look and the lock. It counted towards what was asked for,
        // so something else that waits was left out: look again.
        let waits = |id: &HandoffId| loaded.handoffs.get(id).is_some_and(|h| h.rank().is_some());
        if locked.candidates.iter().all(waits) { Ok(loaded) } else { Err(Fault::Moved) }
    }

    /// Reads what must not change until the commit although nothing of it is locked: keys and the
    /// order of lines, under the lock of the log's end.
    pub(super) async fn read_the_rest(
        &mut self,
        db: &Db,
        needs: &Needs,
        cursors: &Cursors,
        now: Timestamp,
    ) -> Result<(), Fault> {
        if needs.comes_back {
            self.read_turns_of_loaded(db, needs, cursors).await?;
        }
        let db = db.client();
        self.recheck_requests(db, needs).await?;
        self.read_lines(db, needs).await?;
        self.read_keys(db, &needs.keys, reading::keys_since(now)).await?;
        self.read_documents(db, needs).await?;
        self.live.commit();
        self.live.ready.clear();
        self.read_usage(db).await
    }

    /// Of what is read, anything may enter its queue again, that of an agent that made a counter-offer,
    /// or one that it is sent to.
    async fn read_turns_of_loaded(
        &mut self,
        db: &Db,
        needs: &Needs,
        cursors: &Cursors,
    ) -> Result<(), Fault> {
        let mut entrances = BTreeSet::new();
        for handoff in self.handoffs.values() {
            let makers =
                handoff.counters.iter().map(|counter| Target::Agent(counter.agent.clone()));
            let others = handoff.contract.routing.fallbacks.iter().chain(&needs.elsewhere).cloned();
            for to in makers.chain(others).chain([handoff.to.clone()]) {
                entrances.insert(entrance(&Queue::of(&to, handoff.priority), &handoff.from));
            }
        }
        let found = read_turns(db, &entrances, cursors).await?;
        self.know_turns(found)
    }

    pub(super) fn know_turns(&mut self, found: Vec<Row>) -> Result<(), Fault> {
        for row in found {
            let at = |place| row.try_get::<_, Option<i64>>(place).map(|at| at.map(rows::position));
            let turns = Turns { first: at(3)?, own_last: at(4)? };
            self.turns.insert((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?), turns);
        }
        Ok(())
    }

    /// Reads what tenants with a quota use, and notes what of it was read already.
    async fn read_usage(&mut self, db: &Client) -> Result<(), Fault> {
        self.loaded_live =
            self.live.usage.iter().map(|(name, usage)| (name.clone(), usage.in_flight)).collect();
        let limited: Vec<_> = self.live.registry.tenants.keys().map(|id| id.as_str()).collect();
        if limited.is_empty() {
            return Ok(());
        }
        let sql = "SELECT tenant, live, bytes FROM usage WHERE tenant = ANY ($1)";
        for row in query(db, sql, &[(&limited, Type::TEXT_ARRAY)]).await? {
            let count = |value: i64| u64::try_from(value).unwrap_or(0);
            let usage =
                Usage { in_flight: count(row.try_get(1)?), stored_bytes: count(row.try_get(2)?) };
            self.usage.insert(row.try_get(0)?, usage);
        }
        Ok(())
    }

    /// What a batch changed of what tenants use: handoffs and bytes.
    pub(super) fn used(&self) -> Vec<(String, i64, i64)> {
        let change = |(name, usage): (&String, &Usage)| {
            let before = self.loaded_live.get(name).copied().unwrap_or(0);
            let live = usage.in_flight as i64 - before as i64;
            let freed = self.live.freed.get(name).copied().unwrap_or(0);
            (name.clone(), live, usage.stored_bytes as i64 - freed as i64)
        };
        let all = self.live.usage.iter().map(change);
        all.filter(|(_, live, bytes)| *live != 0 || *bytes != 0).collect()
    }

    /// A claim with the same request id may have been granted elsewhere since the locks were taken:
    /// then this one is its repetition.
    async fn recheck_requests(&self, db: &Client, needs: &Needs) -> Result<(), Fault> {
        if needs.requests.is_empty() {
            return Ok(());
        }
        let agents: Vec<_> = needs.requests.iter().map(|(agent, _)| agent.as_str()).collect();
        let requests: Vec<_> = needs.requests.iter().map(|(_, id)| id.as_str()).collect();
        let sql = "
            SELECT h.id FROM unnest($1::text[], $2::text[]) AS g (agent, request)
            JOIN handoff h ON h.holder = g.agent AND h.request_id = g.request
                AND h.request_id IS NOT NULL";
        let values: [Value<'_>; 2] = [(&agents, Type::TEXT_ARRAY), (&requests, Type::TEXT_ARRAY)];
        for row in query(db, sql, &values).await? {
            let id = HandoffId(row.try_get::<_, Uuid>(0)?.as_u128());
            if !self.handoffs.contains_key(&id) {
                return Err(Fault::Moved);
            }
        }
        Ok(())
    }

    /// Reads who stands at the front of the lines that the handoffs read so far stand in: as many
    /// as may end in this batch, and the one who is next then.
    async fn read_lines(&mut self, db: &Client, needs: &Needs) -> Result<(), Fault> {
        let mut members = needs.lines.clone();
        for handoff in self.handoffs.values() {
            if let Some(key) = &handoff.ordering_key {
                let others = handoff.contract.routing.fallbacks.iter().chain(&needs.elsewhere);
                for to in std::iter::once(&handoff.to).chain(others) {
                    let line = (target_text(to), key.as_str().to_owned());
                    *members.entry(line).or_insert(1) += 1;
                }
            }
        }
        if members.is_empty() {
            return Ok(());
        }
        let targets: Vec<_> = members.keys().map(|(target, _)| target.as_str()).collect();
        let keys: Vec<_> = members.keys().map(|(_, key)| key.as_str()).collect();
        let counts: Vec<_> = members.values().copied().collect();
        let sql = "
            SELECT m.data FROM unnest($1::text[], $2::text[], $3::int8[]) AS l (target, key, front),
            LATERAL (
                SELECT data FROM handoff WHERE NOT ended AND ordering_key IS NOT NULL
                    AND target = l.target AND ordering_key = l.key
                ORDER BY offered LIMIT l.front
            ) m";
        let values: [Value<'_>; 3] =
            [(&targets, Type::TEXT_ARRAY), (&keys, Type::TEXT_ARRAY), (&counts, Type::INT8_ARRAY)];
        for row in query(db, sql, &values).await? {
            let handoff = Arc::new(rows::handoff_of(&row, 0)?);
            if !self.handoffs.contains_key(&handoff.id) {
                self.others.insert(handoff.id);
                self.live.put_handoff(handoff.id, Some(handoff));
            }
        }
        Ok(())
    }

    async fn read_documents(&mut self, db: &Client, needs: &Needs) -> Result<(), Fault> {
        if !needs.documents.is_empty() {
            let ids: Vec<_> = needs.documents.iter().cloned().collect();
            for document in documents::read(db, &ids).await? {
                self.live.put_document(Arc::new(document));
            }
        }
        if !needs.bodies.is_empty() {
            let at: Vec<_> = needs.bodies.iter().copied().collect();
            for (at, body) in documents::stored_bodies(db, &at).await? {
                self.live.put_body(at, body);
            }
        }
        Ok(())
    }

    /// Reads what the keys of the batch stand for.
    async fn read_keys(
        &mut self,
        db: &Client,
        keys: &[(AgentId, IdempotencyKey)],
        since: Timestamp,
    ) -> Result<(), Fault> {
        if keys.is_empty() {
            return Ok(());
        }
        let agents: Vec<_> = keys.iter().map(|(agent, _)| agent.as_str()).collect();
        let words: Vec<_> = keys.iter().map(|(_, key)| key.as_str()).collect();
        let sql = "
            SELECT DISTINCT i.agent, i.key, i.request, i.task, i.handoff, i.at, i.document
            FROM unnest($1::text[], $2::text[]) AS g (agent, key)
            JOIN idempotency i ON i.agent = g.agent AND i.key = g.key
            WHERE i.at > $3";
        let values: [Value<'_>; 3] =
            [(&agents, Type::TEXT_ARRAY), (&words, Type::TEXT_ARRAY), (&since.0, Type::INT8)];
        for row in query(db, sql, &values).await? {
            let (key, replay, at) = rows::replay_of(&row)?;
            self.live.put_replay(key, replay, at, Position(0));
        }
        Ok(())
    }
}

impl View for Loaded {
    fn task(&self, id: TaskId) -> Option<&Task> {
        self.live.task(id)
    }
    fn handoff(&self, id: HandoffId) -> Option<&Handoff> {
        self.live.handoff(id)
    }
    fn replay(&self, agent: &AgentId, key: &IdempotencyKey) -> Option<Replay> {
        self.live.replay(agent, key)
    }
    fn waiting(&self, seeker: &Seeker, max: usize) -> Vec<HandoffId> {
        let mut waiting = self.live.waiting(seeker, max + self.others.len());
        waiting.retain(|id| !self.others.contains(id));
        waiting.truncate(max);
        waiting
    }
    fn kept(&self, agent: &AgentId) -> Vec<HandoffId> {
        let mut kept = self.live.kept(agent);
        kept.retain(|id| !self.others.contains(id));
        kept
    }
    fn ahead_of(&self, handoff: &Handoff) -> Option<HandoffId> {
        self.live.ahead_of(handoff)
    }
    fn held_by_request(&self, agent: &AgentId, request: &RequestId) -> Vec<HandoffId> {
        self.live.held_by_request(agent, request)
    }
    fn due(&self, now: Timestamp, max: usize) -> Vec<HandoffId> {
        let mut due = self.live.due(now, max + self.others.len());
        due.retain(|id| !self.others.contains(id));
        due.truncate(max);
        due
    }
    fn held(&self) -> Vec<HandoffId> {
        let mut held = self.live.held();
        held.retain(|id| !self.others.contains(id));
        held
    }
    fn epoch(&self) -> Epoch {
        self.live.epoch()
    }
    /// As it was when the log's end was locked, and what this batch has added since.
    fn turns(&self, queue: &Queue, from: &AgentId) -> Turns {
        let before = self.turns.get(&entrance(queue, from)).copied().unwrap_or_default();
        let now = self.live.turns(queue, from);
        let first = before.first.or(now.first);
        Turns { first, own_last: before.own_last.max(now.own_last) }
    }
    fn registry(&self) -> &Registry {
        self.live.registry()
    }
    /// What was used when the log's end was locked, and what this batch has changed since.
    fn usage(&self, tenant: &str) -> Usage {
        let before = self.usage.get(tenant).copied().unwrap_or_default();
        let now = self.live.usage.get(tenant).copied().unwrap_or_default();
        let freed = self.live.freed.get(tenant).copied().unwrap_or(0);
        let loaded = self.loaded_live.get(tenant).copied().unwrap_or(0);
        Usage {
            in_flight: (before.in_flight + now.in_flight).saturating_sub(loaded),
            stored_bytes: (before.stored_bytes + now.stored_bytes).saturating_sub(freed),
        }
    }
    fn document(&self, id: &DocumentId) -> Option<&Document> {
        self.live.document(id)
    }
    fn body(&self, at: Position) -> Option<StoredBody> {
        self.live.body(at)
    }
}
