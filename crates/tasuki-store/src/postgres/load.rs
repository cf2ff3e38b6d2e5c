// SPDX-License-Identifier: Apache-2.0
//! What a batch of commands must see: named by the commands, locked, and read into a [`Live`] that
//! holds nothing else. One lock stands for a task and all its handoffs: the task's row. Waiting for
//! locks happens in the order of ids; whoever looks for work skips what is locked.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tasuki_core::command::{Act, Command, Offer, Seeker};
use tasuki_core::decide::{Replay, View, reads};
use tasuki_core::ids::{Epoch, IdempotencyKey, RequestId};
use tasuki_core::{AgentId, Handoff, HandoffId, Position, Target, Task, TaskId, Timestamp};
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::cursors::Cursors;
use super::error::Fault;
use super::reading;
use super::rows::{self, handoff_uuid, query, target_text, task_uuid};
use crate::live::Live;
use crate::writer::key_of;

/// How many waiting handoffs one batch looks at for one target.
const CANDIDATES_MAX: usize = 1000;

/// What the commands of a batch name.
#[derive(Default)]
pub(super) struct Needs {
    tasks: BTreeSet<TaskId>,
    handoffs: BTreeSet<HandoffId>,
    requests: BTreeSet<(AgentId, RequestId)>,
    keys: Vec<(AgentId, IdempotencyKey)>,
    /// How many handoffs are asked for, by target, and who asks.
    wanted: BTreeMap<String, usize>,
    seekers: BTreeSet<(String, AgentId)>,
    /// Lines that new offers will stand in: target and ordering key.
    lines: BTreeMap<(String, String), i64>,
    sweep: usize,
    everything_held: bool,
}

impl Needs {
    pub(super) fn of<'c>(commands: impl Iterator<Item = &'c Command>) -> Self {
        let mut needs = Self::default();
        for command in commands {
            needs.add(command);
        }
        needs
    }

    fn add(&mut self, command: &Command) {
        let named = reads(command);
        self.tasks.extend(named.task);
        self.handoffs.extend(named.handoff);
        self.keys.extend(key_of(command).map(|(agent, key)| (agent.clone(), key.clone())));
        match command {
            Command::Claim(claim) => {
                let request = claim.request_id.clone();
                self.requests.extend(request.map(|id| (claim.seeker.agent.clone(), id)));
                self.seek(&claim.seeker, claim.claim_ids.len());
            }
            Command::Peek { seeker, max } => self.seek(seeker, *max),
            Command::Sweep { max } => self.sweep += max,
            Command::RaiseEpoch { .. } => self.everything_held = true,
            Command::Offer(offer) => self.line_up(offer),
            Command::Held { act: Act::Complete { follow_ups, .. }, .. } => {
                follow_ups.iter().for_each(|offer| self.line_up(offer));
            }
            _ => {}
        }
    }

    fn line_up(&mut self, offer: &Offer) {
        if let Some(key) = &offer.ordering_key {
            let line = (target_text(&offer.to), key.as_str().to_owned());
            self.lines.entry(line).or_insert(1);
        }
    }

    fn seek(&mut self, seeker: &Seeker, max: usize) {
        let own = std::iter::once(Target::Agent(seeker.agent.clone()));
        let able = seeker.capabilities.iter().cloned().map(Target::Capability);
        for target in own.chain(able) {
            let target = target_text(&target);
            let wanted = self.wanted.entry(target.clone()).or_default();
            *wanted = (*wanted + max).min(CANDIDATES_MAX);
            self.seekers.insert((target, seeker.agent.clone()));
        }
    }
}

/// What was read, and how it was when it was read.
pub(super) struct Loaded {
    pub(super) live: Live,
    pub(super) tasks: HashMap<TaskId, Arc<Task>>,
    pub(super) handoffs: HashMap<HandoffId, Arc<Handoff>>,
    /// Read to know the order of a line, but not ours to change.
    others: HashSet<HandoffId>,
}

impl Loaded {
    /// Locks and reads, inside a transaction that has begun.
    pub(super) async fn read(
        db: &Client,
        needs: &Needs,
        cursors: &Cursors,
        now: Timestamp,
    ) -> Result<Self, Fault> {
        let mut found = Found::default();
        found.named(db, needs).await?;
        found.lock_named(db).await?;
        found.lock_waiting(db, needs, cursors).await?;
        if needs.sweep > 0 {
            found.lock_due(db, needs.sweep, now).await?;
        }
        let mut loaded = Self {
            live: Live::new(Epoch(0), Position(0)),
            tasks: HashMap::new(),
            handoffs: HashMap::new(),
            others: HashSet::new(),
        };
        loaded.read_locked(db, &found).await?;
        Ok(loaded)
    }

    /// Reads what must not change until the commit although nothing of it is locked: keys and the
    /// order of lines, under the lock of the log's end.
    pub(super) async fn read_the_rest(
        &mut self,
        db: &Client,
        needs: &Needs,
        now: Timestamp,
    ) -> Result<(), Fault> {
        self.read_lines(db, needs.lines.clone()).await?;
        self.read_keys(db, &needs.keys, reading::keys_since(now)).await?;
        self.live.keep();
        self.live.ready.clear();
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.handoffs.is_empty()
    }

    async fn read_locked(&mut self, db: &Client, found: &Found) -> Result<(), Fault> {
        let locked: Vec<Uuid> = found.locked.iter().copied().map(task_uuid).collect();
        if locked.is_empty() {
            return Ok(());
        }
        let named: Vec<Uuid> = found.handoffs.keys().copied().map(handoff_uuid).collect();
        // Read after the locks were taken, by statements of their own: what they see is final.
        let task_sql = rows::task_sql("WHERE id = ANY($1)");
        let handoff_sql = "
            SELECT data FROM handoff WHERE id = ANY($1)
            UNION
            SELECT h.data FROM task t JOIN handoff h ON h.id = t.live WHERE t.id = ANY($2)";
        let values: [rows::Value<'_>; 2] =
            [(&named, Type::UUID_ARRAY), (&locked, Type::UUID_ARRAY)];
        let (tasks, handoffs) = futures::try_join!(
            query(db, &task_sql, &values[1..]),
            query(db, handoff_sql, &values)
        )?;
        for row in &tasks {
            let task = Arc::new(rows::task_of(row)?);
            self.tasks.insert(task.id, task.clone());
            self.live.put_task(task.id, Some(task));
        }
        for row in &handoffs {
            let handoff = Arc::new(rows::handoff_of(row, 0)?);
            if self.tasks.contains_key(&handoff.task_id) {
                self.handoffs.insert(handoff.id, handoff.clone());
                self.live.put_handoff(handoff.id, Some(handoff));
            }
        }
        Ok(())
    }

    /// Reads who stands at the front of the lines that the handoffs read so far stand in: as many
    /// as may end in this batch, and the one who is next then.
    async fn read_lines(
        &mut self,
        db: &Client,
        mut members: BTreeMap<(String, String), i64>,
    ) -> Result<(), Fault> {
        for handoff in self.handoffs.values() {
            if let Some(key) = &handoff.ordering_key {
                let line = (target_text(&handoff.to), key.as_str().to_owned());
                *members.entry(line).or_insert(1) += 1;
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
        let values: [rows::Value<'_>; 3] = [
            (&targets, Type::TEXT_ARRAY),
            (&keys, Type::TEXT_ARRAY),
            (&counts, Type::INT8_ARRAY),
        ];
        for row in query(db, sql, &values).await? {
            let handoff = Arc::new(rows::handoff_of(&row, 0)?);
            if !self.handoffs.contains_key(&handoff.id) {
                self.others.insert(handoff.id);
                self.live.put_handoff(handoff.id, Some(handoff));
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
            SELECT DISTINCT i.agent, i.key, i.request, i.task, i.handoff, i.at
            FROM unnest($1::text[], $2::text[]) AS g (agent, key)
            JOIN idempotency i ON i.agent = g.agent AND i.key = g.key
            WHERE i.at > $3";
        let values: [rows::Value<'_>; 3] =
            [(&agents, Type::TEXT_ARRAY), (&words, Type::TEXT_ARRAY), (&since.0, Type::INT8)];
        for row in query(db, sql, &values).await? {
            let (key, replay, at) = rows::replay_of(&row)?;
            self.live.put_replay(key, replay, at, Position(0));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Found {
    /// By handoff, the task whose row has to be locked for it.
    handoffs: BTreeMap<HandoffId, TaskId>,
    named: BTreeSet<TaskId>,
    locked: HashSet<TaskId>,
}

impl Found {
    fn add(&mut self, rows: &[tokio_postgres::Row]) -> Result<(), Fault> {
        for row in rows {
            let handoff = HandoffId(row.try_get::<_, Uuid>(0)?.as_u128());
            let task = TaskId(row.try_get::<_, Uuid>(1)?.as_u128());
            self.handoffs.insert(handoff, task);
        }
        Ok(())
    }

    /// Finds the tasks of the handoffs that are named; a handoff never changes its task.
    async fn named(&mut self, db: &Client, needs: &Needs) -> Result<(), Fault> {
        self.named.extend(&needs.tasks);
        if !needs.handoffs.is_empty() {
            let ids: Vec<_> = needs.handoffs.iter().copied().map(handoff_uuid).collect();
            let sql = "SELECT id, task_id FROM handoff WHERE id = ANY($1)";
            let rows = query(db, sql, &[(&ids, Type::UUID_ARRAY)]).await?;
            self.add(&rows)?;
        }
        if !needs.requests.is_empty() {
            let agents: Vec<_> = needs.requests.iter().map(|(agent, _)| agent.as_str()).collect();
            let ids: Vec<_> = needs.requests.iter().map(|(_, id)| id.as_str()).collect();
            let sql = "
                SELECT h.id, h.task_id FROM unnest($1::text[], $2::text[]) AS g (agent, request)
                JOIN handoff h ON h.holder = g.agent AND h.request_id = g.request
                    AND h.request_id IS NOT NULL";
            let values: [rows::Value<'_>; 2] =
                [(&agents, Type::TEXT_ARRAY), (&ids, Type::TEXT_ARRAY)];
            let rows = query(db, sql, &values).await?;
            self.add(&rows)?;
        }
        if needs.everything_held {
            let sql = "SELECT id, task_id FROM handoff WHERE state IN ('claimed', 'in_progress')";
            let rows = query(db, sql, &[]).await?;
            self.add(&rows)?;
            self.named.insert(TaskId::STORE);
        }
        self.named.extend(self.handoffs.values());
        Ok(())
    }

    /// Waits for the tasks that are named, in the order of their ids, so that no two batches wait
    /// for each other.
    async fn lock_named(&mut self, db: &Client) -> Result<(), Fault> {
        if self.named.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = self.named.iter().copied().map(task_uuid).collect();
        let sql = "SELECT id FROM task WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
        for row in query(db, sql, &[(&ids, Type::UUID_ARRAY)]).await? {
            self.locked.insert(TaskId(row.try_get::<_, Uuid>(0)?.as_u128()));
        }
        Ok(())
    }

    fn add_locked(&mut self, rows: &[tokio_postgres::Row]) -> Result<(), Fault> {
        self.add(rows)?;
        for row in rows {
            self.locked.insert(TaskId(row.try_get::<_, Uuid>(1)?.as_u128()));
        }
        Ok(())
    }

    async fn lock_waiting(
        &mut self,
        db: &Client,
        needs: &Needs,
        cursors: &Cursors,
    ) -> Result<(), Fault> {
        if needs.wanted.is_empty() {
            return Ok(());
        }
        let bounds = cursors.bounds(needs.wanted.keys());
        let targets: Vec<_> = bounds.iter().map(|(target, ..)| target.as_str()).collect();
        let haste: Vec<_> = bounds.iter().map(|(_, haste, _)| *haste).collect();
        let from: Vec<_> = bounds.iter().map(|(.., from)| *from).collect();
        let wanted: Vec<_> =
            bounds.iter().map(|(target, ..)| needs.wanted[target] as i64).collect();
        let values: [rows::Value<'_>; 4] = [
            (&targets, Type::TEXT_ARRAY),
            (&haste, Type::INT2_ARRAY),
            (&from, Type::INT8_ARRAY),
            (&wanted, Type::INT8_ARRAY),
        ];
        let seekers: Vec<_> = needs.seekers.iter().map(|(target, _)| target.as_str()).collect();
        let agents: Vec<_> = needs.seekers.iter().map(|(_, agent)| agent.as_str()).collect();
        let declined: [rows::Value<'_>; 2] =
            [(&seekers, Type::TEXT_ARRAY), (&agents, Type::TEXT_ARRAY)];
        let (waiting, declined) = futures::try_join!(
            query(db, CLAIM, &values),
            query(db, CLAIM_DECLINED, &declined)
        )?;
        self.add_locked(&waiting)?;
        self.add_locked(&declined)
    }

    async fn lock_due(&mut self, db: &Client, max: usize, now: Timestamp) -> Result<(), Fault> {
        let sql = "
            SELECT h.id, h.task_id FROM handoff h JOIN task t ON t.id = h.task_id
            WHERE NOT h.ended AND h.due_at <= $1
            ORDER BY h.due_at LIMIT $2 FOR NO KEY UPDATE OF t SKIP LOCKED";
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let rows = query(db, sql, &[(&now.0, Type::INT8), (&max, Type::INT8)]).await?;
        self.add_locked(&rows)
    }
}

/// What waits and was declined by nobody, from each queue's low-water mark on. Priorities are
/// queues of their own, because each has its own mark.
pub(super) const CLAIM: &str = "
    SELECT c.id, c.task_id
    FROM unnest($1::text[], $2::int2[], $3::int8[], $4::int8[]) AS w (target, haste, mark, wanted),
    LATERAL (
        SELECT h.id, h.task_id FROM handoff h JOIN task t ON t.id = h.task_id
        WHERE h.state = 'pending' AND h.target = w.target AND h.haste = w.haste
            AND h.ready >= w.mark AND h.declined_by = '{}'
            AND (h.ordering_key IS NULL OR NOT EXISTS (
                SELECT 1 FROM handoff e WHERE NOT e.ended AND e.ordering_key IS NOT NULL
                    AND e.target = h.target AND e.ordering_key = h.ordering_key
                    AND e.offered < h.offered))
        ORDER BY h.ready LIMIT w.wanted FOR NO KEY UPDATE OF t SKIP LOCKED
    ) c";

/// What waits and was declined by some, but not by the one who asks. There is little of it, so
/// each seeker gets its own.
const CLAIM_DECLINED: &str = "
    SELECT c.id, c.task_id
    FROM unnest($1::text[], $2::text[]) AS w (target, agent),
    LATERAL (
        SELECT h.id, h.task_id FROM handoff h JOIN task t ON t.id = h.task_id
        WHERE h.state = 'pending' AND h.declined_by <> '{}' AND h.target = w.target
            AND NOT w.agent = ANY (h.declined_by)
            AND (h.ordering_key IS NULL OR NOT EXISTS (
                SELECT 1 FROM handoff e WHERE NOT e.ended AND e.ordering_key IS NOT NULL
                    AND e.target = h.target AND e.ordering_key = h.ordering_key
                    AND e.offered < h.offered))
        ORDER BY h.haste, h.ready LIMIT 100 FOR NO KEY UPDATE OF t SKIP LOCKED
    ) c";

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
}
