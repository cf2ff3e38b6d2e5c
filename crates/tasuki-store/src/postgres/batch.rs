// SPDX-License-Identifier: Apache-2.0
//! One transaction for all commands that wait: lock and read what they need, take the log's end,
//! decide each, write, commit, and only then answer. The lock on the log's end is taken last and
//! held until the commit, which is what keeps positions dense and in the order of commits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tasuki_core::command::Outcome;
use tasuki_core::decide::Decision;
use tasuki_core::ids::Epoch;
use tasuki_core::world::replay_of;
use tasuki_core::{
    Command, Handoff, HandoffId, Hash, Position, Target, Task, TaskId, Timestamp, decide,
};
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Node;
use super::error::Fault;
use super::load::{Loaded, Needs};
use super::partitions;
use super::reading;
use super::rows::{self, query, sql_position};
use crate::live::Appended;
use crate::{Checkpoint, Done, Error, Reply, Stats, audit};

/// How long a batch is tried for when the database is away or busy.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How many events may be without a signed checkpoint.
const UNSEALED_MAX: u64 = 4096;

/// Every wait of a transaction has an end, so that a node which stops in the middle of one cannot
/// hold the others up for longer. Set for the transaction alone: a pooler may give the connection
/// to somebody else afterwards.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '20s'; \
     SET LOCAL idle_in_transaction_session_timeout = '5s'";

/// What a transaction did, to be told once it is committed.
#[derive(Default)]
pub(super) struct Written {
    pub(super) replies: Vec<Reply>,
    pub(super) batch: Vec<Appended>,
    pub(super) ready: Vec<Target>,
    pub(super) next_due: Option<Timestamp>,
    pub(super) counts: Counts,
}

#[derive(Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) live: i64,
    pub(super) waiting: i64,
    pub(super) keys: i64,
}

/// The log's end, as it was when it was locked.
struct Head {
    position: Position,
    hash: Hash,
    sealed: Position,
    counts: Counts,
}

impl Node {
    /// Carries out commands until the outcome is certain or patience runs out.
    pub(super) async fn carry_out(&self, commands: &[Command]) -> Result<Written, Error> {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = PAUSE_MIN;
        loop {
            let fault = match self.attempt(commands).await {
                Ok(written) => {
                    self.reachable(None);
                    return Ok(written);
                }
                Err(Attempt::Failed(fault)) => fault,
                Err(Attempt::Unknown { first, hash, written }) => {
                    match self.resolve(first, hash, deadline).await {
                        Some(true) => return Ok(*written),
                        Some(false) => Fault::Lost("the commit did not arrive".into()),
                        None => return Err(Error::Unknown),
                    }
                }
            };
            if let Fault::FailedOver(timeline) = fault {
                self.fail_over(timeline).await?;
                continue;
            }
            if let Fault::Lost(reason) = &fault {
                self.reachable(Some(reason.clone()));
            }
            if !fault.is_passing() || Instant::now() + pause > deadline {
                return Err(fault.during("carry out a batch of commands"));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// After a failover the last writes may be lost, and with them claims that were told: all
    /// claims become stale, and fences rise.
    async fn fail_over(&self, timeline: i64) -> Result<(), Error> {
        tracing::warn!(timeline, "the database failed over; every claim so far is stale");
        self.cursors.forget();
        let epoch = u64::try_from(timeline).unwrap_or(1);
        let raise = [Command::RaiseEpoch { epoch }];
        match self.attempt_on(&raise, Some(timeline)).await {
            // Another node was faster.
            Ok(_) | Err(Attempt::Failed(_)) => Ok(()),
            Err(Attempt::Unknown { .. }) => Ok(()),
        }
    }

    async fn attempt(&self, commands: &[Command]) -> Result<Written, Attempt> {
        self.attempt_on(commands, None).await
    }

    /// One transaction. `failed_over` is the timeline that the log's end does not know yet.
    async fn attempt_on(
        &self,
        commands: &[Command],
        failed_over: Option<i64>,
    ) -> Result<Written, Attempt> {
        let db = self.pool.get().await.map_err(Fault::from)?;
        let done = self.transaction(&db, commands, failed_over).await;
        let (written, first) = match done {
            Ok(done) => done,
            Err(fault) => {
                // A connection whose transaction cannot be ended is not given back to the pool.
                if db.batch_execute("ROLLBACK").await.is_err() {
                    drop(deadpool_postgres::Object::take(db));
                }
                return Err(fault.into());
            }
        };
        match db.batch_execute("COMMIT").await {
            Ok(()) => Ok(written),
            Err(error) => {
                drop(deadpool_postgres::Object::take(db));
                match first {
                    // Nothing was appended: whether leases were renewed is all that is not known.
                    None => Err(Fault::from(error).into()),
                    Some((first, hash)) => {
                        Err(Attempt::Unknown { first, hash, written: Box::new(written) })
                    }
                }
            }
        }
    }

    async fn transaction(
        &self,
        db: &Client,
        commands: &[Command],
        failed_over: Option<i64>,
    ) -> Result<(Written, Option<(Position, Hash)>), Fault> {
        let needs = Needs::of(commands.iter());
        db.batch_execute(BEGIN).await?;
        let mut loaded = Loaded::read(db, &needs, &self.cursors, self.clock.now()).await?;
        let seeking = |c: &Command| {
            matches!(c, Command::Claim(_) | Command::Peek { .. } | Command::Sweep { .. })
        };
        if loaded.is_empty() && commands.iter().all(seeking) {
            // Nobody needs the log's end to be told that there is nothing.
            let replies = commands.iter().map(|_| Ok(nothing())).collect();
            let next_due = next_due(db).await?;
            return Ok((Written { replies, next_due, ..Written::default() }, None));
        }
        let head = self.take_head(db, &mut loaded, failed_over).await?;
        let now = self.clock.now();
        loaded.read_the_rest(db, &needs, now).await?;
        let before = loaded.live.counts();
        let mut batch = Vec::new();
        let mut renewed = BTreeSet::new();
        let mut outcomes = Vec::with_capacity(commands.len());
        for command in commands {
            let Decision { events, renewals, outcome } = decide(command.clone(), &loaded, now);
            for id in renewals {
                loaded.live.renew(id, now);
                renewed.insert(id);
            }
            for event in events {
                batch.push(loaded.live.append(event, now));
            }
            // What later commands change must not show in this reply.
            outcomes.push(outcome.map(|outcome| snapshot(outcome, &loaded)));
        }
        let mut replies = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            replies.push(match outcome {
                Ok(done) => Ok(complete(db, done).await?),
                Err(refusal) => Err(Error::Refused(refusal)),
            });
        }
        let after = loaded.live.counts();
        let counts = Counts {
            live: head.counts.live + after.live as i64 - before.live as i64,
            waiting: head.counts.waiting + after.waiting as i64 - before.waiting as i64,
            keys: head.counts.keys,
        };
        let mut ready = std::mem::take(&mut loaded.live.ready);
        if batch.is_empty() {
            ready.clear();
        }
        let counts =
            self.write(db, &loaded, &batch, &ready, &renewed, &head, counts, now).await?;
        let next_due = next_due(db).await?;
        let first = batch.first().map(|a| (a.sealed.position, a.sealed.hash));
        Ok((Written { replies, batch, ready, next_due, counts }, first))
    }

    /// Locks the log's end, and makes sure that the server is the one that it should be.
    async fn take_head(
        &self,
        db: &Client,
        loaded: &mut Loaded,
        failed_over: Option<i64>,
    ) -> Result<Head, Fault> {
        let row = db.query_typed(TAKE_HEAD, &[]).await?.pop();
        let row = row.ok_or_else(|| Fault::Damaged("the log has no end".into()))?;
        let (known, timeline): (i64, i64) = (row.try_get(5)?, row.try_get(9)?);
        self.saw_timeline(timeline)?;
        match failed_over {
            None if timeline > known => return Err(Fault::FailedOver(timeline)),
            Some(_) if timeline <= known => return Err(Fault::Moved),
            None | Some(_) => {}
        }
        let hash: &[u8] = row.try_get(1)?;
        let epoch: i64 = row.try_get(4)?;
        // Time never runs backwards in the log, whichever node writes.
        self.clock.not_before(Timestamp(row.try_get(3)?));
        let head = Head {
            position: rows::position(row.try_get(0)?),
            hash: hash.try_into().map(Hash).map_err(|_| Fault::Damaged("no hash".into()))?,
            sealed: rows::position(row.try_get(2)?),
            counts: Counts {
                live: row.try_get(6)?,
                waiting: row.try_get(7)?,
                keys: row.try_get(8)?,
            },
        };
        loaded.live.head = head.position;
        loaded.live.epoch = Epoch(u64::try_from(epoch).unwrap_or(1));
        Ok(head)
    }

    #[allow(clippy::too_many_arguments, reason = "what a transaction learnt, written once")]
    async fn write(
        &self,
        db: &Client,
        loaded: &Loaded,
        batch: &[Appended],
        ready: &[Target],
        renewed: &BTreeSet<HandoffId>,
        head: &Head,
        counts: Counts,
        now: Timestamp,
    ) -> Result<Counts, Fault> {
        let changed = Changed::by(loaded, batch, renewed);
        if batch.is_empty() && changed.handoffs.is_empty() {
            return Ok(counts);
        }
        let position = loaded.live.head;
        partitions::ensure(db, &self.partitions, position).await?;
        let mut hash = head.hash;
        let mut seals = Vec::new();
        for appended in batch {
            let at = appended.sealed.position;
            hash = audit::extend(hash, appended.sealed.hash);
            // Where a partition ends the log may begin one day, so its hash there is kept.
            let due = at == position && position.0 - head.sealed.0 >= UNSEALED_MAX;
            if due || self.partitions.ends_at(at) {
                seals.push(Checkpoint::sign(at, hash, now, &self.key));
            }
        }
        let sealed = seals.last().map_or(head.sealed, |checkpoint| checkpoint.position);
        let keys: Vec<_> = batch
            .iter()
            .filter_map(|a| {
                let (agent, key, replay) = replay_of(&a.sealed)?;
                Some((agent, key, replay, a.sealed.record.at))
            })
            .collect();
        let (tasks, handoffs, forgotten, added, (), ()) = futures::try_join!(
            rows::put_tasks(db, &changed.tasks),
            rows::put_handoffs(db, &changed.handoffs),
            rows::forget_keys(db, reading::keys_since(now)),
            rows::put_keys(db, &keys),
            async {
                match batch {
                    [] => Ok(()),
                    batch => rows::put_events(db, batch, ready).await,
                }
            },
            async {
                for checkpoint in &seals {
                    rows::put_checkpoint(db, checkpoint).await?;
                }
                Ok(())
            },
        )?;
        let counts = Counts { keys: counts.keys + added - forgotten, ..counts };
        if !batch.is_empty() {
            put_head(db, position, hash, sealed, now, loaded.live.epoch, counts).await?;
        }
        // The locks make this certain; the statement checks it all the same.
        if tasks != changed.tasks.len() as u64 || handoffs != changed.handoffs.len() as u64 {
            return Err(Fault::Moved);
        }
        Ok(counts)
    }

    /// Whether a commit whose reply was lost took place. The lock on the log's end is free only
    /// when the transaction is over, one way or the other.
    async fn resolve(&self, first: Position, hash: Hash, deadline: Instant) -> Option<bool> {
        let mut pause = PAUSE_MIN;
        loop {
            let asked = async {
                let db = self.pool.get().await?;
                db.batch_execute("BEGIN; SET LOCAL lock_timeout = '5s'").await?;
                db.batch_execute("SELECT 1 FROM log_head FOR UPDATE").await?;
                let sql = "SELECT hash FROM event WHERE position = $1";
                let found = query(&db, sql, &[(&sql_position(first), Type::INT8)]).await?;
                db.batch_execute("ROLLBACK").await?;
                let ours = found.first().map(|row| row.try_get::<_, &[u8]>(0));
                Ok::<_, Fault>(ours.transpose()?.is_some_and(|found| found == hash.0))
            };
            match asked.await {
                Ok(committed) => return Some(committed),
                Err(fault) if Instant::now() + pause > deadline => {
                    tracing::error!(error = %fault, "whether a commit took place is not known");
                    return None;
                }
                Err(_) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Signs the log as it is, if it has gone on since the last checkpoint.
    pub(super) async fn seal(&self) -> Result<(), Fault> {
        let mut db = self.pool.get().await?;
        let transaction = db.build_transaction().start().await?;
        let sql = "SELECT position, hash FROM log_head WHERE sealed < position \
                   FOR UPDATE SKIP LOCKED";
        if let Some(row) = transaction.query_typed(sql, &[]).await?.pop() {
            let hash: &[u8] = row.try_get(1)?;
            let hash = hash.try_into().map(Hash).map_err(|_| Fault::Moved)?;
            let position = rows::position(row.try_get(0)?);
            let checkpoint = Checkpoint::sign(position, hash, self.clock.now(), &self.key);
            rows::put_checkpoint(transaction.client(), &checkpoint).await?;
            transaction.batch_execute("UPDATE log_head SET sealed = position").await?;
        }
        Ok(transaction.commit().await?)
    }

    pub(super) fn grew(&self, written: &Written, commands: usize) {
        let mut stats = self.stats.lock().expect("no holder of this lock panics");
        stats.commands += commands as u64;
        stats.events += written.batch.len() as u64;
        stats.commits += u64::from(!written.batch.is_empty());
        if !written.batch.is_empty() {
            let held = Stats {
                live_handoffs: u64::try_from(written.counts.live).unwrap_or(0),
                waiting_handoffs: u64::try_from(written.counts.waiting).unwrap_or(0),
                idempotency_keys: u64::try_from(written.counts.keys).unwrap_or(0),
                ..*stats
            };
            *stats = held;
        }
    }
}

pub(super) enum Attempt {
    /// Certainly nothing was written.
    Failed(Fault),
    /// The commit was sent and not answered.
    Unknown { first: Position, hash: Hash, written: Box<Written> },
}

impl From<Fault> for Attempt {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

/// Rows that are not what they were, with the version that was read.
struct Changed {
    tasks: Vec<(Arc<Task>, Option<Position>)>,
    handoffs: Vec<(Arc<Handoff>, Option<Position>)>,
}

impl Changed {
    fn by(loaded: &Loaded, batch: &[Appended], renewed: &BTreeSet<HandoffId>) -> Self {
        let tasks: BTreeSet<TaskId> = batch.iter().map(|a| a.sealed.record.task_id).collect();
        let mut handoffs = renewed.clone();
        handoffs.extend(batch.iter().filter_map(|a| a.sealed.record.handoff_id));
        Self {
            tasks: tasks
                .into_iter()
                .filter_map(|id| loaded.live.shared_task(id))
                .map(|task| (task.clone(), loaded.tasks.get(&task.id).map(|old| old.at)))
                .collect(),
            handoffs: handoffs
                .into_iter()
                .filter_map(|id| loaded.live.shared_handoff(id))
                .map(|h| (h.clone(), loaded.handoffs.get(&h.id).map(|old| old.at)))
                .collect(),
        }
    }
}

const TAKE_HEAD: &str = "
    SELECT position, hash, sealed, at, epoch, timeline, live, waiting, keys,
        ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8
    FROM log_head FOR UPDATE";

#[allow(clippy::too_many_arguments, reason = "a row's columns")]
async fn put_head(
    db: &Client,
    position: Position,
    hash: Hash,
    sealed: Position,
    now: Timestamp,
    epoch: Epoch,
    counts: Counts,
) -> Result<(), Fault> {
    let sql = "
        UPDATE log_head SET position = $1, hash = $2, at = $3, epoch = $4, live = $5, waiting = $6,
            sealed = $7, keys = $8,
            timeline = ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8";
    let values: [rows::Value<'_>; 8] = [
        (&sql_position(position), Type::INT8),
        (&&hash.0[..], Type::BYTEA),
        (&now.0, Type::INT8),
        (&i64::try_from(epoch.0).unwrap_or(i64::MAX), Type::INT8),
        (&counts.live, Type::INT8),
        (&counts.waiting, Type::INT8),
        (&sql_position(sealed), Type::INT8),
        (&counts.keys, Type::INT8),
    ];
    query(db, sql, &values).await.map(drop)
}

async fn next_due(db: &Client) -> Result<Option<Timestamp>, Fault> {
    let sql = "SELECT due_at FROM handoff WHERE NOT ended AND due_at IS NOT NULL \
               ORDER BY due_at LIMIT 1";
    let row = db.query_typed(sql, &[]).await?.pop();
    Ok(row.map(|row| row.try_get(0)).transpose()?.map(Timestamp))
}

fn nothing() -> Done {
    Done { outcome: Outcome::default(), handoffs: Vec::new(), task: None }
}

/// The outcome with the things it names, as far as they are at hand.
fn snapshot(outcome: Outcome, loaded: &Loaded) -> Done {
    let handoffs =
        outcome.handoffs.iter().filter_map(|id| loaded.live.shared_handoff(*id)).cloned().collect();
    let task = outcome.task.and_then(|id| loaded.live.shared_task(id)).cloned();
    Done { outcome, handoffs, task }
}

/// A repeated command names what an earlier one made, which nobody had to lock.
async fn complete(db: &Client, mut done: Done) -> Result<Done, Fault> {
    if done.handoffs.len() < done.outcome.handoffs.len() {
        let ids: Vec<Uuid> =
            done.outcome.handoffs.iter().copied().map(rows::handoff_uuid).collect();
        let sql = "SELECT data FROM handoff WHERE id = ANY($1)";
        let mut found = Vec::new();
        for row in query(db, sql, &[(&ids, Type::UUID_ARRAY)]).await? {
            found.push(Arc::new(rows::handoff_of(&row, 0)?));
        }
        let find = |id: &HandoffId| {
            let here = done.handoffs.iter().chain(&found).find(|handoff| handoff.id == *id);
            here.cloned()
        };
        done.handoffs = done.outcome.handoffs.iter().filter_map(find).collect();
    }
    if let Some(id) = done.outcome.task.filter(|_| done.task.is_none()) {
        let sql = rows::task_sql("WHERE id = $1");
        let found = query(db, &sql, &[(&rows::task_uuid(id), Type::UUID)]).await?;
        done.task = found.first().map(rows::task_of).transpose()?.map(Arc::new);
    }
    Ok(done)
}
