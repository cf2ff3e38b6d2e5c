// SPDX-License-Identifier: Apache-2.0
//! Appending batches with one sync each, and writing down lazily what queries read. A row is
//! written when its handoff has probably come to its end, so a short life costs one row; queries
//! and recovery know how far the rows are and let them catch up.

use super::open::Lock;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use ed25519_dalek::SigningKey;
use rusqlite::{Connection, ErrorCode, params};
use tasuki_core::decide::Replay;
use tasuki_core::document::StoredBody;
use tasuki_core::ids::IdempotencyKey;
use tasuki_core::world::replay_of;
use tasuki_core::{
    AgentId, Document, DocumentId, Event, Handoff, HandoffId, Hash, Position, Task, TaskId,
    Timestamp,
};

use super::acknowledged::Note;
use super::space::Space;
use super::{checkpointer::Checkpointer, documents, rows};
use crate::audit;
use crate::cache::BodyCache;
use crate::clock::Stopwatch;
use crate::live::{Appended, Live};
use crate::machine::{CatchUp, Evicted, Fault, Journal, Written};
use crate::sums::{RowKey, Seal, Sums};
use crate::workers::Workers;
use crate::{Checkpoint, Error, registry};

/// How many changed rows may wait; beyond it a batch also writes some of them.
const LAG_MAX: usize = 8192;
/// How many it then writes: neighbours share pages, so many at once cost less than one by one.
const ROWS_AT_ONCE: usize = 256;
/// How many events may be without a signed checkpoint.
const UNSEALED_MAX: u64 = 4096;
/// How many rows a catch-up of an idle store writes before it looks for work again.
const IDLE_ROWS_MAX: usize = 512;

pub(crate) struct SqliteJournal {
    pub(crate) db: Connection,
    pub(crate) key: SigningKey,
    pub(crate) log: LogHead,
    pub(crate) dirty: Dirty,
    pub(crate) row_key: RowKey,
    /// Over the rows as they are in the database.
    pub(crate) sums: Sums,
    /// Where the last acknowledged position is noted, apart from the log.
    pub(crate) note: Note,
    pub(crate) cache: Arc<BodyCache<Position>>,
    pub(crate) space: Space,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) workers: Workers,
    /// Held as long as anything may be written, so that no other process opens the directory.
    pub(crate) _lock: Lock,
}

/// The log's hash, and how far it is sealed.
#[derive(Clone, Copy)]
pub(crate) struct LogHead {
    pub(crate) hash: Hash,
    pub(crate) position: Position,
    pub(crate) sealed: Position,
}

impl LogHead {
    fn unsealed(&self) -> u64 {
        self.position.0 - self.sealed.0
    }
}

/// Rows that are behind the journal, the longest behind first.
#[derive(Default)]
pub(crate) struct Dirty {
    queue: VecDeque<(Position, Behind)>,
    handoffs: HashSet<HandoffId>,
    tasks: HashSet<TaskId>,
    /// The last event of which nothing is missing in the rows.
    pub(crate) projected: Position,
}

#[derive(Clone)]
enum Behind {
    Handoff(HandoffId),
    Task(TaskId),
    Key(Box<(AgentId, IdempotencyKey, Replay, Timestamp)>),
}

impl Dirty {
    pub(crate) fn note(&mut self, sealed: &tasuki_core::event::Sealed) {
        let at = sealed.position;
        if let Some(id) = sealed.record.handoff_id
            && self.handoffs.insert(id)
        {
            self.queue.push_back((at, Behind::Handoff(id)));
        }
        if self.tasks.insert(sealed.record.task_id) {
            self.queue.push_back((at, Behind::Task(sealed.record.task_id)));
        }
        if let Some((agent, key, replay)) = replay_of(sealed) {
            let row = Box::new((agent.clone(), key.clone(), replay, sealed.record.at));
            self.queue.push_back((at, Behind::Key(row)));
        }
    }

    fn forget(&mut self, behind: &Behind) {
        match behind {
            Behind::Handoff(id) => {
                self.handoffs.remove(id);
            }
            Behind::Task(id) => {
                self.tasks.remove(id);
            }
            Behind::Key(_) => {}
        }
    }
}

impl SqliteJournal {
    fn append(
        &mut self,
        batch: &[Appended],
        live: &Live,
        rows_max: usize,
        seal: bool,
        now: Timestamp,
    ) -> rusqlite::Result<Plan> {
        let mut log = self.log;
        let mut sums = self.sums.clone();
        let mut raised = false;
        {
            let mut insert = rows::append_event(&self.db)?;
            for appended in batch {
                let sealed = &appended.sealed;
                let record = std::str::from_utf8(&appended.encoded).expect("JSON is UTF-8");
                insert.execute(params![
                    rows::sql_position(sealed.position),
                    sealed.previous.map(rows::sql_position),
                    sealed.hash.0,
                    record,
                    appended.body.as_ref().map(tasuki_core::Body::text),
                ])?;
                if let Event::EpochRaised { epoch } = sealed.record.event {
                    rows::raise_epoch(&self.db, epoch, sealed.position)?;
                    raised = true;
                }
                log.hash = audit::extend(log.hash, sealed.hash);
                log.position = sealed.position;
            }
        }
        for appended in batch {
            documents::project(&self.db, &appended.sealed, appended.body.as_ref())?;
        }
        for (tenant, bytes) in stored(batch) {
            rows::add_usage(&self.db, tenant, bytes)?;
        }
        for row in registry::changed(live) {
            let old = rows::registered(&self.db, &self.row_key, &row)?;
            rows::put_registered(&self.db, &row, live.registry.last_pos)?;
            sums.replace(old, rows::registered(&self.db, &self.row_key, &row)?);
        }
        if log.unsealed() >= UNSEALED_MAX || (seal && log.unsealed() > 0) {
            let checkpoint = Checkpoint::sign(log.position, log.hash, now, &self.key);
            rows::put_checkpoint(&self.db, &checkpoint)?;
            log.sealed = log.position;
        }
        let rows = rows_max.min(self.dirty.queue.len());
        Ok(Plan { log, rows, sums, raised, sync_us: 0 })
    }

    /// Writes the rows that are longest behind, as they are now.
    fn project(&self, plan: &mut Plan, live: &Live) -> rusqlite::Result<Position> {
        let (rows, key) = (plan.rows, &self.row_key);
        for (_, behind) in self.dirty.queue.iter().take(rows) {
            match behind {
                Behind::Handoff(id) => {
                    if let Some(handoff) = live.shared_handoff(*id) {
                        let old = rows::live_handoff(&self.db, key, *id)?;
                        rows::put_handoff(&self.db, handoff)?;
                        let counts = !handoff.state.is_terminal();
                        let new = counts.then(|| rows::live_handoff(&self.db, key, *id));
                        plan.sums.replace(old, new.transpose()?.flatten());
                    }
                }
                Behind::Task(id) => {
                    if let Some(task) = live.shared_task(*id) {
                        let old = rows::live_task(&self.db, key, *id)?;
                        rows::put_task(&self.db, task)?;
                        let counts = task.live.is_some() || *id == TaskId::STORE;
                        let new = counts.then(|| rows::live_task(&self.db, key, *id));
                        plan.sums.replace(old, new.transpose()?.flatten());
                    }
                }
                Behind::Key(row) => {
                    let (agent, key, replay, at) = &**row;
                    rows::put_key(&self.db, agent, key, replay, *at)?;
                }
            }
        }
        let projected = match self.dirty.queue.get(rows) {
            Some((first, _)) => Position(first.0 - 1),
            None => live.head,
        };
        if projected > self.dirty.projected {
            rows::put_meta(&self.db, "projected", rows::sql_position(projected))?;
        }
        if projected > self.dirty.projected || plan.raised || plan.sums != self.sums {
            let projected = projected.max(self.dirty.projected);
            let (position, epoch) = (plan.log.position, live.epoch.0);
            let seal = Seal { projected, position, epoch, sums: plan.sums.clone() };
            rows::put_seal(&self.db, &seal, key)?;
        }
        Ok(projected)
    }

    fn write(
        &mut self,
        batch: &[Appended],
        live: &Live,
        rows: CatchUp,
        now: Timestamp,
    ) -> rusqlite::Result<(Plan, Position)> {
        let behind = self.dirty.queue.len();
        let rows_max = match rows {
            CatchUp::Least if behind <= LAG_MAX => 0,
            CatchUp::Least => (behind - LAG_MAX).max(ROWS_AT_ONCE),
            CatchUp::Some => IDLE_ROWS_MAX,
            CatchUp::All => behind,
        };
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let seal = rows != CatchUp::Least && rows_max >= behind;
        let mut plan = self.append(batch, live, rows_max, seal, now)?;
        let projected = self.project(&mut plan, live)?;
        let sync = Stopwatch::start();
        self.db.prepare_cached("COMMIT")?.execute([])?;
        Ok((Plan { sync_us: sync.us(), ..plan }, projected))
    }

    fn written(&mut self, plan: &Plan, projected: Position, live: &Live) -> Evicted {
        self.log = plan.log;
        self.sums.clone_from(&plan.sums);
        self.acknowledge(live.epoch.0, false);
        self.dirty.projected = self.dirty.projected.max(projected);
        let mut evicted = Evicted::default();
        for (_, behind) in self.dirty.queue.drain(..plan.rows).collect::<Vec<_>>() {
            self.dirty.forget(&behind);
            match behind {
                Behind::Handoff(id) => {
                    if live.shared_handoff(id).is_some_and(|h| h.state.is_terminal()) {
                        evicted.handoffs.push(id);
                    }
                }
                Behind::Task(id) => {
                    // The store's own chain goes on without being asked for by its id.
                    let cold = live.shared_task(id).is_some_and(|task| task.live.is_none());
                    if cold && id != TaskId::STORE {
                        evicted.tasks.push(id);
                    }
                }
                Behind::Key(_) => {}
            }
        }
        evicted
    }
}

/// How many bytes of bodies a batch stores for each tenant, less those that it erases.
fn stored(batch: &[Appended]) -> Vec<(&str, i64)> {
    let mut all: Vec<(&str, i64)> = Vec::new();
    let mut add = |tenant, bytes: i64| match all.iter_mut().find(|(known, _)| *known == tenant) {
        Some((_, sum)) => *sum += bytes,
        None => all.push((tenant, bytes)),
    };
    for appended in batch {
        let record = &appended.sealed.record;
        if let Some(body) = &appended.body {
            add(record.actor.tenant(), body.text().len() as i64);
        }
        if let Event::Erased(erased) = &record.event {
            add(erased.tenant.as_str(), -i64::try_from(erased.bytes).unwrap_or(0));
        }
    }
    all
}

/// What a transaction did, to be believed once it is committed.
struct Plan {
    log: LogHead,
    rows: usize,
    sums: Sums,
    /// Whether the epoch was raised.
    raised: bool,
    /// How long its commit took.
    sync_us: u64,
}

impl Journal for SqliteJournal {
    fn load_handoff(&mut self, id: HandoffId) -> Result<Option<Handoff>, Error> {
        rows::handoff(&self.db, id).map_err(super::failed("load a handoff"))
    }

    fn load_task(&mut self, id: TaskId) -> Result<Option<Task>, Error> {
        rows::task(&self.db, id).map_err(super::failed("load a task"))
    }

    fn load_replay(
        &mut self,
        agent: &AgentId,
        key: &IdempotencyKey,
        now: Timestamp,
    ) -> Result<Option<Replay>, Error> {
        let since = super::keys_since(now);
        rows::replay(&self.db, agent, key, since).map_err(super::failed("look a key up"))
    }

    fn load_document(&mut self, id: &DocumentId) -> Result<Option<Document>, Error> {
        documents::document(&self.db, id).map_err(super::failed("load a document"))
    }

    fn load_body(&mut self, at: Position) -> Result<Option<StoredBody>, Error> {
        documents::stored_body(&self.db, at).map_err(super::failed("look a body up"))
    }

    fn commit(
        &mut self,
        batch: &[Appended],
        live: &Live,
        rows: CatchUp,
        now: Timestamp,
    ) -> Result<Written, Fault> {
        let before = self.dirty.queue.len();
        for appended in batch {
            self.dirty.note(&appended.sealed);
        }
        match self.write(batch, live, rows, now) {
            Ok((plan, projected)) => {
                for appended in batch {
                    if let Some(body) = &appended.body {
                        self.cache.put(appended.sealed.position, body.clone());
                    }
                    if let Event::Erased(erased) = &appended.sealed.record.event {
                        self.cache.remove(erased.position);
                    }
                }
                self.checkpointer.wrote(&self.db);
                let evicted = self.written(&plan, projected, live);
                Ok(Written { evicted, sync_us: plan.sync_us })
            }
            Err(error) => {
                for (_, behind) in self.dirty.queue.split_off(before) {
                    self.dirty.forget(&behind);
                }
                Err(self.fault(&error))
            }
        }
    }

    fn save_fold(&mut self, name: &str, at: Position, text: &str) -> Result<(), Error> {
        rows::save_fold(&self.db, name, at, text).map_err(super::failed("save a fold"))
    }

    fn has_room(&mut self, now: Timestamp) -> bool {
        self.space.has_room(now)
    }

    fn free_reserve(&mut self, now: Timestamp) {
        self.space.free_reserve(now);
    }

    fn lag(&self) -> usize {
        self.dirty.queue.len() + usize::from(self.log.unsealed() > 0)
    }

    fn projected(&self) -> Position {
        self.dirty.projected
    }

    fn close(&mut self) {
        self.checkpointer.finish(&self.db);
        self.acknowledge(0, true);
    }
}

impl SqliteJournal {
    /// Notes how far the log goes, before anybody is told. What was noted before still holds if this
    /// cannot be written.
    pub(super) fn acknowledge(&mut self, epoch: u64, closed: bool) {
        let LogHead { position, hash, .. } = self.log;
        let noted = self.note.write(position, epoch, hash, closed);
        if let Err(error) = noted {
            tracing::warn!(%error, "the last acknowledged position could not be noted");
        }
    }

    /// Rolls back where that is certain to leave nothing behind, and gives up where it is not: after
    /// a failed sync the system may have dropped what it was to write, so trying again would lie.
    fn fault(&self, error: &rusqlite::Error) -> Fault {
        let rolled_back = self.db.is_autocommit() || self.db.execute_batch("ROLLBACK").is_ok();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) if rolled_back => Fault::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) if rolled_back => Fault::Busy,
            _ => Fault::Fatal(format!(
                "cannot commit to the data directory: {error}; nothing was acknowledged that is \
                 not on disk; check the disk and start again"
            )),
        }
    }
}
