// SPDX-License-Identifier: Apache-2.0
// Long because: it is one transaction, from its first lock to its commit.
//! One transaction for all commands that wait: lock and read what they need, take the log's end,
//! decide each, write, commit, and only then answer. The lock on the log's end is taken last and
//! held until the commit, which is what keeps positions dense and in the order of commits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tasuki_core::commands;

use tasuki_core::decide::Decision;
use tasuki_core::decide::Outcome;
use tasuki_core::ids::Epoch;
use tasuki_core::registry::Registry;
use tasuki_core::world::replay_of;
use tasuki_core::{
    Command, Handoff, HandoffId, Hash, Position, Target, Task, TaskId, Timestamp, decide,
};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::db::{Db, query};
use super::error::Fault;
use super::load::{Loaded, Locked, more_waits, turns_of_offers};
use super::needs::Needs;
use super::rows::{self, sql_position};
use super::sql::{NEXT_DUE, PUT_HEAD, TAKE_HEAD};
use super::{Node, covered, documents, partitions, reading};
use crate::clock::{self, Patience, Stopwatch};
use crate::live::Appended;
use crate::sums::Seal;
use crate::{Checkpoint, Done, Error, Reply, Stats, Timings, audit, registry};

/// How long a batch is tried for when the database is away or busy.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How often a claim looks again for what somebody else had locked.
const LOOKS_MAX: u32 = 6;
/// How many events may be without a signed checkpoint.
const UNSEALED_MAX: u64 = 4096;

/// Every wait of a transaction has an end, so that a node which stops in the middle of one cannot
/// hold the others up for longer. A plan that was made while a table was small must not read all of
/// it when it is large; there is an index for everything that is asked here.
pub(super) const SETTINGS: [(&str, &str); 8] = [
    ("lock_timeout", "5s"),
    ("statement_timeout", "20s"),
    ("idle_in_transaction_session_timeout", "5s"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// A pooler may give the connection to somebody else after the transaction, so there the settings
/// are the transaction's own; elsewhere they are the session's.
pub(super) fn begin(pooler: bool) -> String {
    let mut begin = "BEGIN".to_owned();
    for (name, value) in SETTINGS.iter().filter(|_| pooler) {
        begin += &format!("; SET LOCAL {name} = '{value}'");
    }
    begin
}

/// What a transaction did, to be told once it is committed.
#[derive(Default)]
pub(super) struct Written {
    pub(super) replies: Vec<Reply>,
    pub(super) batch: Vec<Appended>,
    pub(super) ready: Vec<Target>,
    pub(super) due: Due,
    pub(super) counts: Counts,
    /// How many failovers the broker had been through when it decided this.
    pub(super) failovers: u64,
    /// Who is known from now on, if that changed.
    pub(super) registry: Option<Arc<Registry>>,
    pub(super) timings: Timings,
}

#[derive(Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) live: i64,
    pub(super) waiting: i64,
    pub(super) keys: i64,
}

/// The log's end, as it was when it was locked.
struct Head {
    at: Timestamp,
    hash: Hash,
    sealed: Position,
    counts: Counts,
    /// What the rows are, where they are covered.
    rows: Option<Seal>,
}

impl Node {
    /// Carries out commands until the outcome is certain or patience runs out.
    pub(super) async fn carry_out(&self, commands: &[Command]) -> Result<Written, Error> {
        let patience = Patience::of(PATIENCE);
        let mut pause = PAUSE_MIN;
        for tries in 0.. {
            let insist = tries < LOOKS_MAX;
            let fault = match self.attempt_on(commands, None, insist).await {
                Ok(written) => {
                    self.reached();
                    return Ok(written);
                }
                Err(Attempt::Failed(fault)) => fault,
                Err(Attempt::Unknown { first, hash, written }) => {
                    match self.resolve(first, hash).await {
                        Some(true) => return Ok(*written),
                        Some(false) => Fault::Lost("the commit did not arrive".into()),
                        None => return Err(Error::Unknown),
                    }
                }
            };
            match &fault {
                Fault::FailedOver(timeline) => self.fail_over(*timeline).await,
                Fault::Lost(reason) => self.missed(reason),
                _ => {}
            }
            if !fault.is_passing() || patience.ends_within(pause) {
                return Err(fault.during("carry out a batch of commands"));
            }
            clock::pause(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        Err(Error::Unavailable)
    }

    /// After a failover the last writes may be lost, and with them claims that were told: all
    /// claims become stale, and fences rise.
    async fn fail_over(&self, timeline: i64) {
        tracing::warn!(timeline, "the database failed over; every claim so far is stale");
        // Two standbys may both become timeline 2; what this broker has seen is exceeded even so.
        let seen = self.epoch.load(Ordering::Acquire);
        let epoch = u64::try_from(timeline).unwrap_or(1).max(seen + 1);
        let raise = [Command::of_broker(commands::RaiseEpoch { epoch })];
        // If another broker was faster, or this did not get through, the next attempt finds out.
        match self.attempt_on(&raise, Some(timeline), false).await {
            Ok(written) => self.tell(written),
            Err(Attempt::Failed(fault)) => tracing::debug!(error = %fault, "not raised here"),
            Err(Attempt::Unknown { .. }) => {}
        }
    }

    /// One transaction. `failed_over` is the timeline that the log's end does not know yet.
    async fn attempt_on(
        &self,
        commands: &[Command],
        failed_over: Option<i64>,
        insist: bool,
    ) -> Result<Written, Attempt> {
        let db = self.db().await?;
        let prepared = in_time(Box::pin(self.prepare(&db, commands, failed_over, insist))).await;
        match prepared {
            Ok(Prepared { written, writes: None }) => {
                db.execute("ROLLBACK").await?;
                Ok(written)
            }
            Ok(Prepared { written, writes: Some(writes) }) => {
                let first = written.batch.first().map(|a| (a.sealed.position, a.sealed.hash));
                if let Some(timeline) = failed_over
                    && let Err(fault) = self.note(timeline, writes.epoch.0)
                {
                    return Err(give_up(db, fault).await);
                }
                let committing = Stopwatch::start();
                match (in_time(Box::pin(self.write(&db, &written, writes))).await, first) {
                    (Ok(keys), _) => {
                        let counts = Counts { keys, ..written.counts };
                        // The server does not tell the sync from the rest.
                        let commit_us = committing.us();
                        let timings = Timings { commit_us, sync_us: commit_us, ..written.timings };
                        Ok(Written { counts, timings, ..written })
                    }
                    // The connection broke while the commit may have been under way.
                    (Err(Fault::Lost(reason)), Some((first, hash))) => {
                        tracing::warn!(%reason, "a commit was not answered");
                        db.throw_away();
                        Err(Attempt::Unknown { first, hash, written: Box::new(written) })
                    }
                    (Err(fault), _) => Err(give_up(db, fault).await),
                }
            }
            Err(fault) => Err(give_up(db, fault).await),
        }
    }

    /// Locks, reads and decides; writes nothing.
    async fn prepare(
        &self,
        db: &Db,
        commands: &[Command],
        failed_over: Option<i64>,
        insist: bool,
    ) -> Result<Prepared, Fault> {
        let needs = Needs::of(commands.iter());
        let now = self.clock.now();
        let locked = Locked::take(db, &self.begin, &needs, &self.cursors, now).await?;
        let swept = needs.sweep > 0;
        let swept_until = needs.sweep_until.map_or(now, |until| until.min(now));
        if locked.is_empty() && commands.iter().all(|c| c.footprint().only_looks()) {
            self.nothing_missed(db, &needs, &locked, insist).await?;
            // Nobody needs the log's end to be told that there is nothing.
            let replies = commands.iter().map(|_| Ok(nothing())).collect();
            let due = if swept { self.due_after(db, swept_until).await? } else { Due::Same };
            return Ok(Prepared {
                written: Written { replies, due, ..Written::default() },
                writes: None,
            });
        }
        let (mut loaded, head, turns) = futures::try_join!(
            Loaded::read(db, &locked, self.row_key.as_ref()),
            db.run(&TAKE_HEAD, &[]),
            turns_of_offers(db, &needs, &self.cursors),
        )?;
        loaded.know_turns(turns)?;
        let head = self.believe(head, &mut loaded, failed_over)?;
        let failovers = self.told().failovers;
        // Time never runs backwards in the log, whichever broker writes and whatever its clock does.
        let now = self.clock.now().max(head.at);
        // With the log's end in hand nobody else changes who is known. It is read for every batch: what
        // a decision changes of it must stand on all that was changed before, by whichever broker.
        if !self.registry_lost.load(Ordering::Acquire) {
            loaded.live.registry = self.registry.borrow().clone();
        }
        self.read_registry(db.client(), &mut loaded.live.registry).await?;
        loaded.read_the_rest(db, &needs, &self.cursors, now).await?;
        let known_pos = loaded.live.registry.last_pos;
        let before = loaded.live.counts();
        let deciding = Stopwatch::start();
        let mut batch = Vec::new();
        let mut renewed = BTreeSet::new();
        let mut outcomes = Vec::with_capacity(commands.len());
        for command in commands {
            let Decision { events, renewals, outcome } = decide(command, &loaded, now);
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
        let decide_us = deciding.us();
        let hungry = commands.iter().zip(&outcomes).any(|(command, outcome)| {
            let empty = outcome.as_ref().is_ok_and(|done| done.outcome.handoffs.is_empty());
            empty && command.footprint().seeks.is_some_and(|seeks| seeks.takes)
        });
        self.nothing_missed(db, &needs, &locked, insist && hungry).await?;
        let mut replies = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            replies.push(match outcome {
                Ok(done) => Ok(complete(db.client(), done).await?),
                Err(refusal) => Err(Error::Refused(refusal)),
            });
        }
        let after = loaded.live.counts();
        let counts = Counts {
            live: head.counts.live + after.live as i64 - before.live as i64,
            waiting: head.counts.waiting + after.waiting as i64 - before.waiting as i64,
            keys: head.counts.keys,
        };
        let changed = Changed::by(&loaded, &batch, &renewed);
        let due = match changed.handoffs.iter().filter_map(|(h, _)| h.due_at()).min() {
            _ if swept => self.due_after(db, swept_until).await?.or(&changed),
            Some(soonest) => Due::Perhaps(soonest),
            None => Due::Same,
        };
        let ready = std::mem::take(&mut loaded.live.ready);
        let nothing_to_write = batch.is_empty() && changed.handoffs.is_empty();
        let epoch = loaded.live.epoch;
        let changed_registry = loaded.live.registry.last_pos != known_pos;
        let registry = changed_registry.then(|| loaded.live.registry.clone());
        let known = registry::changed(&loaded.live);
        let used = loaded.used();
        let timings = Timings { decide_us, ..Timings::default() };
        let written = Written { replies, batch, ready, due, counts, failovers, registry, timings };
        let forget = swept.then(|| reading::keys_since(now));
        let added = std::mem::take(&mut loaded.added);
        let writes = Writes { head, epoch, now, changed, added, known, used, forget };
        Ok(Prepared { written, writes: (!nothing_to_write).then_some(writes) })
    }

    /// Before somebody is told that nothing waits: looks whether it was only locked.
    async fn nothing_missed(
        &self,
        db: &Db,
        needs: &Needs,
        locked: &Locked,
        insist: bool,
    ) -> Result<(), Fault> {
        if insist && needs.seeks() && more_waits(db, needs, &self.cursors, locked).await? {
            return Err(Fault::Busy("what waits is in other hands just now".into()));
        }
        Ok(())
    }

    /// Makes sure that the server is the one that it should be.
    fn believe(
        &self,
        mut rows: Vec<Row>,
        loaded: &mut Loaded,
        failed_over: Option<i64>,
    ) -> Result<Head, Fault> {
        let row = rows.pop().ok_or_else(|| Fault::Damaged("the log has no end".into()))?;
        let (known, timeline): (i64, i64) = (row.try_get(5)?, row.try_get(9)?);
        let epoch = u64::try_from(row.try_get::<_, i64>(4)?).unwrap_or(1);
        let end = rows::position(row.try_get(0)?);
        self.saw(timeline, epoch, end)?;
        // An epoch that was given out and is not in this log: it was lost with the server before.
        let lost = epoch < self.epoch.load(Ordering::Acquire);
        match failed_over {
            None if timeline > known || lost => return Err(Fault::FailedOver(timeline)),
            Some(_) if timeline <= known && !lost => return Err(Fault::Moved),
            Some(_) => self.start_over(end),
            None => {}
        }
        let seal: Option<&[u8]> = row.try_get(10)?;
        let seal = match &self.row_key {
            Some(key) => Some(covered::read(seal, key, end)?),
            None if seal.is_some() => {
                let problem = "the rows are covered by a row key, which this broker does not have";
                return Err(Fault::Damaged(problem.into()));
            }
            None => None,
        };
        let hash: &[u8] = row.try_get(1)?;
        let at = Timestamp(row.try_get(3)?);
        self.clock.not_before(at);
        let head = Head {
            at,
            hash: hash.try_into().map(Hash).map_err(|_| Fault::Damaged("no hash".into()))?,
            sealed: rows::position(row.try_get(2)?),
            counts: Counts {
                live: row.try_get(6)?,
                waiting: row.try_get(7)?,
                keys: row.try_get(8)?,
            },
            rows: seal,
        };
        loaded.live.head = end;
        loaded.live.epoch = Epoch(epoch);
        Ok(head)
    }

    /// Writes and commits. All statements are sent at once: if one fails, so does the commit.
    async fn write(&self, db: &Db, written: &Written, writes: Writes) -> Result<i64, Fault> {
        let Writes { head, epoch, now, changed, added, known, used, forget } = writes;
        let batch = &written.batch;
        let mut hash = head.hash;
        let mut seals = Vec::new();
        let last = batch.last().map(|appended| appended.sealed.position);
        for appended in batch {
            let at = appended.sealed.position;
            hash = audit::extend(hash, appended.sealed.hash);
            // Where a partition ends the log may begin one day, so its hash there is kept.
            let due = Some(at) == last && at.0 - head.sealed.0 >= UNSEALED_MAX;
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
        if let Some(last) = last {
            partitions::ensure(db.client(), &self.partitions, last).await?;
        }
        rows::put_epochs(db.client(), batch).await?;
        for appended in batch {
            documents::project(db.client(), &appended.sealed, appended.body.as_ref()).await?;
        }
        let rows = match (&self.row_key, &head.rows) {
            (Some(key), Some(before)) => {
                let (handoffs, tasks) = (&*changed.handoffs, &*changed.tasks);
                let written = covered::Written { handoffs, tasks, known: &known, last };
                let seal = covered::next(db.client(), key, before, &added, written).await?;
                Some(Seal { epoch: epoch.0, ..seal }.to_bytes(key))
            }
            _ => None,
        };
        let seal = async {
            let puts = seals.iter().map(|seal| rows::put_checkpoint(db.client(), seal));
            futures::future::try_join_all(puts).await
        };
        let forget = async {
            match forget {
                Some(since) => rows::forget_keys(db.client(), since).await,
                None => Ok(()),
            }
        };
        let end = async {
            match last {
                Some(last) => {
                    let end = End { position: last, hash, sealed, at: now, epoch };
                    put_head(db, end, written.counts, rows.as_deref()).await
                }
                None => {
                    put_sums(db, rows.as_deref()).await?;
                    Ok(written.counts.keys)
                }
            }
        };
        let (.., keys, ()) = futures::try_join!(
            rows::put_tasks(db, &changed.tasks),
            rows::put_handoffs(db, &changed.handoffs),
            rows::put_events(db, batch, &written.ready),
            rows::put_keys(db.client(), &keys),
            rows::put_registered(db.client(), &known, last),
            rows::put_usage(db, &used),
            forget,
            seal,
            end,
            db.execute("COMMIT"),
        )?;
        Ok(keys)
    }

    /// What is due next, after everything that was due by then was done or is in other hands.
    async fn due_after(&self, db: &Db, until: Timestamp) -> Result<Due, Fault> {
        let told = self.due_told.load(Ordering::Acquire);
        let from = self.cursors.due_mark().max(until.0 + 1);
        let row = db.run(&NEXT_DUE, &[&from]).await?.pop();
        let at = row.map(|row| row.try_get(0)).transpose()?.map(Timestamp);
        Ok(Due::Certainly { at, told })
    }

    /// Whether a commit whose reply was lost took place. The lock on the log's end is free only
    /// when the transaction is over, one way or the other.
    async fn resolve(&self, first: Position, hash: Hash) -> Option<bool> {
        let patience = Patience::of(PATIENCE);
        let mut pause = PAUSE_MIN;
        loop {
            match self.ask_outcome(first, hash).await {
                Ok(committed) => return Some(committed),
                Err(fault) if patience.ends_within(pause) => {
                    tracing::error!(error = %fault, "whether a commit took place is not known");
                    return None;
                }
                Err(_) => {
                    clock::pause(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    async fn ask_outcome(&self, first: Position, hash: Hash) -> Result<bool, Fault> {
        let db = self.db().await?;
        let asked = in_time(async {
            db.execute("BEGIN; SET LOCAL lock_timeout = '5s'").await?;
            // A write that is committed here is where the other one must be, too: on the standbys
            // that a commit waits for.
            db.execute("UPDATE log_head SET sealed = sealed WHERE one").await?;
            let sql = "SELECT hash FROM event WHERE position = $1";
            let found = query(db.client(), sql, &[(&sql_position(first), Type::INT8)]).await?;
            db.execute("COMMIT").await?;
            let ours = found.first().map(|row| row.try_get::<_, &[u8]>(0));
            Ok(ours.transpose()?.is_some_and(|found| found == hash.0))
        });
        let answer = asked.await;
        if answer.is_err() {
            db.throw_away();
        }
        answer
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
                .map(|task| (task.clone(), loaded.tasks.get(&task.id).map(|old| old.last_pos)))
                .collect(),
            handoffs: handoffs
                .into_iter()
                .filter_map(|id| loaded.live.shared_handoff(id))
                .map(|h| (h.clone(), loaded.handoffs.get(&h.id).map(|old| old.last_pos)))
                .collect(),
        }
    }
}

/// The log's end after a transaction.
pub(super) struct End {
    pub(super) position: Position,
    pub(super) hash: Hash,
    pub(super) sealed: Position,
    pub(super) at: Timestamp,
    pub(super) epoch: Epoch,
}

pub(super) async fn put_head(
    db: &Db,
    end: End,
    counts: Counts,
    sums: Option<&[u8]>,
) -> Result<i64, Fault> {
    let epoch = i64::try_from(end.epoch.0).unwrap_or(i64::MAX);
    let (position, sealed) = (sql_position(end.position), sql_position(end.sealed));
    let hash = &end.hash.0[..];
    let values: [&(dyn ToSql + Sync); 8] =
        [&position, &hash, &end.at.0, &epoch, &counts.live, &counts.waiting, &sealed, &sums];
    let row = db.run(&PUT_HEAD, &values).await?.pop();
    row.map_or(Ok(0), |row| Ok(row.try_get(0)?))
}

/// Of a transaction that changes rows and appends nothing.
async fn put_sums(db: &Db, sums: Option<&[u8]>) -> Result<(), Fault> {
    let Some(sums) = sums else { return Ok(()) };
    let sql = "UPDATE log_head SET sums = $1 WHERE one";
    query(db.client(), sql, &[(&sums, Type::BYTEA)]).await.map(drop)
}

/// Ends a transaction that came to nothing.
async fn give_up(db: Db, fault: Fault) -> Attempt {
    // A connection whose transaction cannot be ended is not given back to the pool.
    let broken = matches!(fault, Fault::Lost(_)) || in_time(db.execute("ROLLBACK")).await.is_err();
    if broken {
        db.throw_away();
    }
    Attempt::Failed(fault)
}

/// A server that does not answer is gone, whatever the connection says.
async fn in_time<T>(asked: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let answer = clock::in_time(PATIENCE, asked).await;
    answer.unwrap_or_else(|| Err(Fault::Lost("no answer in time".into())))
}

/// A transaction before anything is written.
struct Prepared {
    written: Written,
    /// Nothing where there is nothing to write.
    writes: Option<Writes>,
}

struct Writes {
    head: Head,
    epoch: Epoch,
    now: Timestamp,
    changed: Changed,
    /// What the sums have of what was read.
    added: covered::Read,
    /// Agents, tokens and tenants that changed.
    known: Vec<registry::Row>,
    /// What tenants use more or less than before.
    used: Vec<(String, i64, i64)>,
    /// Keys up to here are forgotten on the way.
    forget: Option<Timestamp>,
}

/// What a transaction knows of when something is due next.
#[derive(Default, Clone, Copy)]
pub(super) enum Due {
    #[default]
    Same,
    /// Then, unless something else is due before.
    Perhaps(Timestamp),
    /// As the database says, asked when this much had been told of what is due.
    Certainly { at: Option<Timestamp>, told: u64 },
}

impl Due {
    /// Takes what this very transaction is about to write into account.
    fn or(self, changed: &Changed) -> Self {
        let own = changed.handoffs.iter().filter_map(|(handoff, _)| handoff.due_at()).min();
        match self {
            Self::Certainly { at, told } => {
                Self::Certainly { at: at.into_iter().chain(own).min(), told }
            }
            other => other,
        }
    }

    /// What is due next, with `told` of what is due so far. An answer of the database that is older than what was told since does not
    /// take that back: the next one will.
    pub(super) fn after(self, known: Option<Timestamp>, told: u64) -> Option<Timestamp> {
        match self {
            Self::Same => known,
            Self::Certainly { at, told: then } if then == told => at,
            Self::Certainly { at, .. } => known.into_iter().chain(at).min(),
            Self::Perhaps(at) => known.into_iter().chain([at]).min(),
        }
    }
}

fn nothing() -> Done {
    Done { outcome: Outcome::default(), handoffs: Vec::new(), task: None, document: None }
}

/// The outcome with the things it names, as far as they are at hand.
fn snapshot(outcome: Outcome, loaded: &Loaded) -> Done {
    let handoffs =
        outcome.handoffs.iter().filter_map(|id| loaded.live.shared_handoff(*id)).cloned().collect();
    let task = outcome.task.and_then(|id| loaded.live.shared_task(id)).cloned();
    let document = outcome.document.as_ref().and_then(|id| loaded.live.shared_document(id));
    let document = document.cloned();
    Done { outcome, handoffs, task, document }
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
    if let Some(id) = done.outcome.document.as_ref().filter(|_| done.document.is_none()) {
        let found = documents::read(db, std::slice::from_ref(id)).await?;
        done.document = found.into_iter().next().map(Arc::new);
    }
    Ok(done)
}
