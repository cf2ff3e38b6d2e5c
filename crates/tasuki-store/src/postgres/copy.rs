// SPDX-License-Identifier: Apache-2.0
//! Moving a whole log from one store to the other. What is copied is the journal, event by event
//! with its hashes and checkpoints; everything else follows from it and is made anew. The copy is
//! verified from its first event to its last before it is used.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tasuki_core::commands;

use tasuki_core::ids::Epoch;
use tasuki_core::registry::Registry;
use tasuki_core::world::replay_of;
use tasuki_core::{Body, Event, Handoff, Hash, Position, Task, Timestamp};

use super::batch::{Counts, End, put_head};
use super::db::Db;
use super::error::Fault;
use super::partitions::{self, Partitions};
use super::reading::{self, AT_ONCE};
use super::{Postgres, PostgresError, PostgresOptions, documents, open, rows};
use crate::Sync::Full;
use crate::audit::{self, Verdict};
use crate::clock::Clock;
use crate::live::{Appended, Live};
use crate::sqlite::maintenance::{self, Item, LogReader, Progress};
use crate::{OpenError, Sqlite, SqliteOptions, Store, registry};

/// Why a copy was not made, by whose fault.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Sqlite(#[from] OpenError),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    #[error("cannot read the copied log: {0}")]
    Store(#[from] crate::Error),
}

fn failed(step: &'static str) -> impl FnOnce(Fault) -> CopyError {
    move |fault| PostgresError::Failed { step, reason: fault.to_string() }.into()
}

/// Copies a data directory that no broker uses into an empty database.
pub async fn from_sqlite(
    dir: &Path,
    options: PostgresOptions,
    clock: Arc<dyn Clock>,
    progress: Progress<'_>,
) -> Result<Verdict, CopyError> {
    // Opening and closing it writes down every row that queries read.
    let source = Sqlite::open(SqliteOptions { dir: dir.to_owned(), sync: Full }, clock.clone());
    source.await?.close().await;
    let source = LogReader::open(dir)?;
    let pool = open::pool(&options, &Arc::default()).await?;
    let mut db = pool.get().await.map_err(|error| failed("connect")(error.into()))?;
    open::check(&db).await?;
    open::migrate(&mut db, options.events_each).await?;
    let end = reading::end(&db).await.map_err(failed("read the log's end"))?;
    if end.position > Position(0) {
        return Err(PostgresError::NotEmpty.into());
    }
    let partitions = Partitions::new(end.events_each, end.position);
    drop(db);
    let db = Db::get(&pool, true).await.map_err(failed("connect"))?;
    let target = &db;
    db.execute("BEGIN").await.map_err(failed("begin the copy"))?;
    let mut copier = Copier::new(&partitions);
    loop {
        let items = source.entries(copier.position, AT_ONCE)?;
        if items.is_empty() {
            break;
        }
        copier.events(target, items).await.map_err(failed("copy events"))?;
        progress(copier.position.0);
    }
    let mut before = None;
    loop {
        let tasks = source.tasks(before, AT_ONCE)?;
        let Some(last) = tasks.last() else { break };
        before = Some(last.id);
        copier.tasks(target, tasks).await.map_err(failed("copy tasks"))?;
    }
    let mut before = None;
    loop {
        let handoffs = source.handoffs(before, AT_ONCE)?;
        let Some(last) = handoffs.last() else { break };
        before = Some(last.id);
        copier.handoffs(target, handoffs).await.map_err(failed("copy handoffs"))?;
    }
    copier.end(target).await.map_err(failed("write the log's end"))?;
    db.execute("COMMIT").await.map_err(failed("commit the copy"))?;
    drop(db);
    pool.close();
    let copy = Postgres::open(options, clock).await?;
    let verdict = copy.verify().await;
    // Claims that were given out before the copy was made are stale, as after a restore.
    let raise = tasuki_core::Command::of_broker(commands::RaiseEpoch { epoch: 0 });
    let raised = copy.execute(vec![raise]).await;
    copy.close().await;
    let verdict = verdict?;
    if let Some(finding) = verdict.first_bad {
        return Err(PostgresError::Damaged(finding).into());
    }
    raised?;
    Ok(verdict)
}

/// Copies a database that no broker uses into an empty data directory.
pub async fn to_sqlite(
    options: PostgresOptions,
    dir: &Path,
    clock: Arc<dyn Clock>,
    progress: Progress<'_>,
) -> Result<Verdict, CopyError> {
    // Nothing is believed but the log, which is verified: rows that were changed are made anew.
    let options = PostgresOptions { believes: true, row_key: None, ..options };
    let source = Postgres::open(options, clock.clone()).await?;
    let mut writer = maintenance::LogWriter::create(dir)?;
    let mut after = Position(0);
    loop {
        let entries = source.events(after, AT_ONCE).await?;
        let Some(last) = entries.last().map(|entry| entry.sealed.position) else { break };
        if let Some(first) =
            entries.first().filter(|first| after.0 == 0 && first.sealed.position.0 > 1)
        {
            let position = first.sealed.position;
            let problem =
                "is the first one left: older history was dropped, so the log cannot move";
            let finding = audit::Finding { position, task_id: None, problem: problem.into() };
            return Err(PostgresError::Damaged(finding).into());
        }
        let at: Vec<_> = entries.iter().map(|entry| entry.sealed.position).collect();
        let bodies = source.bodies(at).await?;
        let seals = source.checkpoints(after, AT_ONCE).await?;
        let seals: Vec<_> = seals.into_iter().filter(|seal| seal.position <= last).collect();
        writer.append(&entries, &bodies, &seals)?;
        after = last;
        progress(after.0);
    }
    source.close().await;
    drop(writer);
    maintenance::rebuild(dir, &*clock, &mut |_| ())?;
    let verdict = maintenance::verify(dir, &mut |_| ())?;
    match verdict.first_bad {
        Some(finding) => Err(OpenError::Damaged(finding).into()),
        None => Ok(verdict),
    }
}

struct Copier<'p> {
    partitions: &'p Partitions,
    /// Only what is not at its end, to count it.
    live: Live,
    position: Position,
    epoch: Epoch,
    registry: Registry,
    /// Bytes of bodies, by tenant.
    bytes: HashMap<String, i64>,
    hash: Hash,
    sealed: Position,
    at: Timestamp,
}

impl<'p> Copier<'p> {
    fn new(partitions: &'p Partitions) -> Self {
        Self {
            partitions,
            live: Live::new(Epoch(1), Position(0)),
            position: Position(0),
            epoch: Epoch(1),
            registry: Registry::default(),
            bytes: HashMap::new(),
            hash: Hash::ZERO,
            sealed: Position(0),
            at: Timestamp(0),
        }
    }

    async fn events(&mut self, db: &Db, items: Vec<Item>) -> Result<(), Fault> {
        let mut batch = Vec::new();
        for item in items {
            match item {
                Item::Event(entry, body) => {
                    let at = entry.sealed.position;
                    let wrong = || Fault::Damaged(format!("the body of entry {at} is no JSON"));
                    let body = body.map(|text| Body::stored(text).ok_or_else(wrong));
                    let encoded = entry.encoded.into_bytes();
                    batch.push(Appended::copied(entry.sealed, encoded, body.transpose()?));
                }
                Item::Checkpoint(checkpoint) => {
                    rows::put_checkpoint(db.client(), &checkpoint).await?;
                    self.sealed = checkpoint.position;
                }
            }
        }
        // The same key may stand for another request a day later; the later one counts.
        let mut keys = HashMap::new();
        let mut known = Vec::new();
        for appended in &batch {
            let record = &appended.sealed.record;
            self.position = appended.sealed.position;
            self.hash = audit::extend(self.hash, appended.sealed.hash);
            self.at = self.at.max(record.at);
            if let Event::EpochRaised { epoch } = record.event {
                self.epoch = Epoch(epoch);
            }
            if let Some(body) = &appended.body {
                let tenant = record.actor.tenant();
                *self.bytes.entry(tenant.to_owned()).or_default() += body.text().len() as i64;
            }
            let changed = self.registry.apply(&appended.sealed);
            let at = Some(appended.sealed.position);
            known.extend(changed.iter().map(|entry| (registry::Row::of(entry), at)));
            if let Some((agent, key, replay)) = replay_of(&appended.sealed) {
                keys.insert((agent, key), (agent, key, replay, record.at));
            }
        }
        partitions::ensure(db.client(), self.partitions, self.position).await?;
        rows::put_events(db, &batch, &[]).await?;
        rows::put_epochs(db.client(), &batch).await?;
        for (row, at) in known {
            rows::put_registered(db.client(), &[row], at).await?;
        }
        for appended in &batch {
            documents::project(db.client(), &appended.sealed, appended.body.as_ref()).await?;
        }
        let keys: Vec<_> = keys.into_values().collect();
        rows::put_keys(db.client(), &keys).await
    }

    async fn tasks(&mut self, db: &Db, tasks: Vec<Arc<Task>>) -> Result<(), Fault> {
        let tasks: Vec<_> = tasks.into_iter().map(|task| (task, None)).collect();
        rows::put_tasks(db, &tasks).await.map(drop)
    }

    async fn handoffs(&mut self, db: &Db, handoffs: Vec<Arc<Handoff>>) -> Result<(), Fault> {
        let handoffs: Vec<_> = handoffs.into_iter().map(|handoff| (handoff, None)).collect();
        rows::put_handoffs(db, &handoffs).await?;
        for (handoff, _) in handoffs {
            if !handoff.state.is_terminal() {
                self.live.put_handoff(handoff.id, Some(handoff));
            }
        }
        self.live.commit();
        Ok(())
    }

    async fn end(&mut self, db: &Db) -> Result<(), Fault> {
        let live = |name: &str| self.live.usage.get(name).map_or(0, |usage| usage.in_flight as i64);
        let used: Vec<_> =
            self.bytes.iter().map(|(name, bytes)| (name.clone(), live(name), *bytes)).collect();
        rows::put_usage(db, &used).await?;
        let counts = self.live.counts();
        let counts = Counts { live: counts.live as i64, waiting: counts.waiting as i64, keys: 0 };
        let end = End {
            position: self.position,
            hash: self.hash,
            sealed: self.sealed,
            at: self.at,
            epoch: self.epoch,
        };
        put_head(db, end, counts, None).await.map(drop)
    }
}
