// SPDX-License-Identifier: Apache-2.0
//! Opening a data directory: lock it, bring its schema up to date, check the end of its log, load
//! the live rows, replay the events that the rows do not know yet.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tasuki_core::commands;

use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tasuki_core::ids::Epoch;
use tasuki_core::{Command, Hash, Position, TaskId, Timestamp};

use super::acknowledged::{self, Acknowledged, Note};
use super::checkpointer::Checkpointer;
use super::compare::{self, Difference};
use super::journal::{Dirty, LogHead, SqliteJournal};
use super::space::Space;
use super::{
    PAGE_BYTES, Readers, Sqlite, SqliteOptions, Sync, keys_since, loading, maintenance, rows, wal,
};
use crate::audit;
use crate::cache::BodyCache;
use crate::clock::Clock;
use crate::live::Live;
use crate::machine::{CatchUp, Fault, Journal};
use crate::private;
use crate::sums::{RowKey, Seal, Sums};
use crate::workers::Workers;
use crate::writer::Handle;

/// How many events are read at a time.
const REPLAYED_AT_ONCE: usize = 1000;

pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/001_foundation.sql"),
    include_str!("migrations/002_registry.sql"),
    include_str!("migrations/003_documents.sql"),
    include_str!("migrations/004_projects.sql"),
    include_str!("migrations/005_patterns.sql"),
    include_str!("migrations/006_chains.sql"),
    include_str!("migrations/007_lists.sql"),
    include_str!("migrations/008_correlation.sql"),
    include_str!("migrations/009_sums.sql"),
    include_str!("migrations/010_together.sql"),
    include_str!("migrations/011_alerts.sql"),
    include_str!("migrations/012_pushes.sql"),
];

/// The database's name in the data directory.
pub const FILE: &str = "tasuki.db";
/// The file that the process which uses the directory holds locked, with its id in it.
pub(super) const LOCK: &str = "lock";
/// The name of the file that says which database belongs here.
pub(super) const INSTANCE: &str = "instance";

/// Why a data directory cannot be opened. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the data directory {dir} is in use by process {pid}; stop it, or choose another directory \
         with --data"
    )]
    Locked { dir: String, pid: String },
    #[error("cannot {step} in the data directory {dir}; check that it exists and is writable")]
    Io {
        step: &'static str,
        dir: String,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot {step} the database; run `tasuki doctor` on it")]
    Sql {
        step: &'static str,
        #[source]
        source: rusqlite::Error,
    },
    #[error(
        "the data is of schema version {found}, this program knows up to {known}; use the newer \
         program that wrote it"
    )]
    TooNew { found: usize, known: usize },
    #[error(
        "somebody put into the database what acts by itself: {names}; find out who, drop it, and compare \
         the rows with `tasuki audit verify --rows`"
    )]
    Foreign { names: String },
    #[error("the log is damaged: {0}; restore a backup, or run `tasuki audit verify` to see more")]
    Damaged(audit::Finding),
    #[error(
        "the log in {dir} has lost what was acknowledged: {what}; restore a backup, or go on without \
         it with `tasuki rebuild --accept-loss --data {dir}`, after which every claim so far is stale"
    )]
    Lost { dir: String, what: String },
    #[error(
        "rows in {dir} are not what the log says: {}; `tasuki rebuild --data {dir}` makes them anew \
         from the log",
        compare::listed(differences)
    )]
    Rows { dir: String, differences: Vec<Difference> },
}

pub(super) fn sql(step: &'static str) -> impl FnOnce(rusqlite::Error) -> OpenError {
    move |source| OpenError::Sql { step, source }
}

pub(super) fn io<'d>(
    step: &'static str,
    dir: &'d Path,
) -> impl FnOnce(std::io::Error) -> OpenError + 'd {
    move |source| OpenError::Io { step, dir: dir.display().to_string(), source }
}

impl Sqlite {
    /// Opens a data directory, making it if it is not there.
    pub async fn open(options: SqliteOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        tokio::task::spawn_blocking(move || Self::load(&options, clock))
            .await
            .expect("loading does not panic")
    }

    fn load(options: &SqliteOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let dir = &options.dir;
        private::directory(dir).map_err(io("make a directory", dir))?;
        let lock = lock(dir)?;
        let path = dir.join(FILE);
        for name in [FILE, "tasuki.db-wal", "tasuki.db-shm", LOCK, INSTANCE, acknowledged::NAME] {
            private::file(&dir.join(name)).map_err(io("close the files", dir))?;
        }
        check_wal(dir)?;
        let db = connect(&path, options.sync).map_err(sql("open"))?;
        migrate(&db)?;
        check_schema(&db)?;
        let origin = origin(dir, &db)?;
        let told = acknowledged(dir)?;
        // Wherever the database says it is from: it says so itself, and this directory knows better.
        let log = check_end(&db, dir, told.as_ref())?;
        let mut journal = journal(db, &path, dir, log, options.sync, lock)?;
        let mut live = recover(&mut journal, &*clock, dir)?;
        if origin == Origin::Elsewhere {
            let seen = told.map_or(0, |told| told.epoch);
            raise_epoch(&mut journal, &mut live, seen, dir, clock.now())?;
        }
        if origin != Origin::Here {
            claim_instance(dir, &journal.db)?;
        }
        // From here on the log may grow.
        journal.acknowledge(live.epoch.0, false);
        let cache = journal.cache.clone();
        let key = journal.key.clone();
        let workers = journal.workers.clone();
        let writer = Handle::start(journal, live, clock.clone(), &workers);
        let readers = Arc::new(Readers::new(&path));
        let nonces = crate::nonces::Nonces::new(clock.now());
        Ok(Self { writer, clock, cache, readers, nonces, key })
    }
}

/// What keeps other writers from a directory. It is given up by name: a child of this process that was forked
/// and has not begun its own program yet has the file open too, and would keep the lock for that long.
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // What is not given up here is by the end of the process.
        drop(self.0.unlock());
    }
}

/// One process at a time: two writers would each believe their own live state.
pub(super) fn lock(dir: &Path) -> Result<Lock, OpenError> {
    let path = dir.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(io("make a lock file", dir))?;
    if file.try_lock().is_err() {
        let mut pid = String::new();
        // The holder wrote its id; if it cannot be read, the message says less.
        let _ = file.read_to_string(&mut pid);
        return Err(OpenError::Locked { dir: dir.display().to_string(), pid: pid.trim().into() });
    }
    let written = file
        .set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| writeln!(file, "{}", std::process::id()));
    written.map_err(io("write the lock file", dir))?;
    Ok(Lock(file))
}

pub(super) fn connect(path: &Path, sync: Sync) -> rusqlite::Result<Connection> {
    let db = Connection::open(path)?;
    db.busy_timeout(Duration::from_secs(5))?;
    db.pragma_update(None, "page_size", PAGE_BYTES)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    let level = match sync {
        Sync::Full => "FULL",
        Sync::Off => "OFF",
    };
    db.pragma_update(None, "synchronous", level)?;
    db.pragma_update(None, "cache_size", -64 * 1024)?;
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.busy_timeout(Duration::from_secs(5))?;
    db.pragma_update(None, "cache_size", -16 * 1024)?;
    Ok(db)
}

pub(super) fn migrate(db: &Connection) -> Result<(), OpenError> {
    let found: u32 = db
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(sql("read the schema version of"))?;
    let found = found as usize;
    if found > MIGRATIONS.len() {
        return Err(OpenError::TooNew { found, known: MIGRATIONS.len() });
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(found) {
        let script = format!("BEGIN;\n{migration}\nPRAGMA user_version = {};\nCOMMIT;", number + 1);
        db.execute_batch(&script).map_err(sql("bring up to date"))?;
    }
    Ok(())
}

/// Nothing in the database may act by itself or stand in for a table: it would change rows as we write.
fn check_schema(db: &Connection) -> Result<(), OpenError> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let foreign =
            "SELECT type || ' ' || name FROM sqlite_schema WHERE type IN ('trigger', 'view')";
        db.prepare(foreign)?.query_map([], |row| row.get(0))?.collect()
    };
    let names = read().map_err(sql("read the schema of"))?;
    if names.is_empty() { Ok(()) } else { Err(OpenError::Foreign { names: names.join(", ") }) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    New,
    Here,
    Elsewhere,
}

/// A database knows which directory it belongs to. If it was brought here from elsewhere (a
/// backup, a copy), claims that were given out after the copy was made may be in the hands of
/// workers, so the fence epoch must rise.
fn origin(dir: &Path, db: &Connection) -> Result<Origin, OpenError> {
    let here = std::fs::read_to_string(dir.join(INSTANCE)).ok();
    // A directory in which something was acknowledged is not new, whatever was made of its database.
    let used = dir.join(acknowledged::NAME).exists();
    let stored: Option<String> = rows::meta(db, "instance").map_err(sql("read the instance of"))?;
    Ok(match stored {
        None if used => Origin::Elsewhere,
        None => Origin::New,
        Some(_) if here == stored => Origin::Here,
        Some(_) => Origin::Elsewhere,
    })
}

/// Binds database and directory to each other. After the epoch was raised and not before: a crash
/// in between raises it once more, and never not at all.
fn claim_instance(dir: &Path, db: &Connection) -> Result<(), OpenError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the system gives random bytes");
    let instance = audit::hex(&random);
    rows::put_meta(db, "instance", &instance).map_err(sql("name the instance of"))?;
    let written = File::create(dir.join(INSTANCE)).and_then(|mut file| {
        file.write_all(instance.as_bytes())?;
        file.sync_all()
    });
    written.map_err(io("write the instance file", dir))
}

/// Raises the epoch above every one that was seen here, also above one that the log has lost.
fn raise_epoch(
    journal: &mut SqliteJournal,
    live: &mut Live,
    seen: u64,
    dir: &Path,
    now: Timestamp,
) -> Result<(), OpenError> {
    let epoch = live.epoch.0.max(seen) + 1;
    let command = Command::of_broker(commands::RaiseEpoch { epoch });
    let events = tasuki_core::decide(&command, live, now).events;
    let batch: Vec<_> = events.into_iter().map(|event| live.append(event, now)).collect();
    journal
        .commit(&batch, live, CatchUp::Least, now)
        .map_err(fault("raise the fence epoch", dir))?;
    live.commit();
    live.ready.clear();
    Ok(())
}

pub(super) fn fault<'d>(step: &'static str, dir: &'d Path) -> impl FnOnce(Fault) -> OpenError + 'd {
    move |fault| {
        let reason = match fault {
            Fault::Full => "the disk is full".to_owned(),
            Fault::Busy => "somebody else writes to the database".to_owned(),
            Fault::Fatal(reason) => reason,
        };
        io(step, dir)(std::io::Error::other(reason))
    }
}

/// The live state as it was: the rows, and the events that the rows do not know yet.
fn recover(journal: &mut SqliteJournal, clock: &dyn Clock, dir: &Path) -> Result<Live, OpenError> {
    let seal = match rows::seal(&journal.db, &journal.row_key).map_err(sql("read the sums of"))? {
        Some(seal) => seal,
        // An older program wrote it, or another key, or somebody took the sums away: nothing speaks for
        // the rows, so they are made from the log.
        None => maintenance::remake(journal, dir, clock)?,
    };
    if seal.position > journal.log.position {
        let (at, end) = (seal.position, journal.log.position);
        return Err(lost(dir, format!("its rows know entry {at}, and it ends at {end}")));
    }
    let sums = seal.sums.clone();
    let (mut live, found) = load(journal, &seal, clock, dir)?;
    if found != sums {
        let differences = compare::differences(&journal.db, dir, clock)?;
        return Err(OpenError::Rows { dir: dir.display().to_string(), differences });
    }
    journal.sums = sums;
    live.renew_all(clock.now());
    live.commit();
    live.ready.clear();
    Ok(live)
}

fn lost(dir: &Path, what: String) -> OpenError {
    OpenError::Lost { dir: dir.display().to_string(), what }
}

/// A bad frame in the write-ahead log that a whole later batch follows: SQLite would take it for the end.
pub(super) fn check_wal(dir: &Path) -> Result<(), OpenError> {
    let found = wal::damage(&dir.join("tasuki.db-wal"));
    match found.map_err(io("read the write-ahead log", dir))? {
        None => Ok(()),
        Some(frame) => Err(lost(
            dir,
            format!(
                "frame {frame} of tasuki.db-wal is damaged, and batches that were synced follow it"
            ),
        )),
    }
}

pub(super) fn acknowledged(dir: &Path) -> Result<Option<Acknowledged>, OpenError> {
    Acknowledged::read(dir).map_err(io("read what was acknowledged", dir))
}

/// The rows as they are and what follows from the events that they do not know, with the sums over
/// the rows.
pub(super) fn load(
    journal: &mut SqliteJournal,
    seal: &Seal,
    clock: &dyn Clock,
    dir: &Path,
) -> Result<(Live, Sums), OpenError> {
    let head = journal.log.position;
    let last = rows::events(&journal.db, Position(head.0.saturating_sub(1)), 1);
    if let Some(last) = last.map_err(sql("read the end of"))?.first() {
        clock.not_before(last.sealed.record.at);
    }
    let now = clock.now();
    let mut live = Live::new(Epoch(seal.epoch.max(1)), head);
    let sums = load_rows(&journal.db, &journal.row_key, &dir.join(FILE), &mut live, now)
        .map_err(sql("load the live rows of"))?;
    journal.dirty.projected = seal.projected;
    replay(&journal.db, &mut live, &mut journal.dirty).map_err(sql("replay the events of"))?;
    live.head = head;
    live.commit();
    live.ready.clear();
    Ok((live, sums))
}

pub(super) fn journal(
    db: Connection,
    path: &Path,
    dir: &Path,
    log: LogHead,
    sync: Sync,
    lock: Lock,
) -> Result<SqliteJournal, OpenError> {
    let checkpoints = connect(path, sync).map_err(sql("open"))?;
    let workers = Workers::default();
    let key = crate::key::load(dir).map_err(io("read or make broker.key", dir))?;
    let told = acknowledged(dir)?;
    Ok(SqliteJournal {
        db,
        log,
        dirty: Dirty::default(),
        row_key: RowKey::of(&key),
        sums: Sums::default(),
        note: Note::open(dir, told.as_ref()).map_err(io("note what was acknowledged", dir))?,
        key,
        cache: Arc::new(BodyCache::default()),
        space: Space::new(dir),
        checkpointer: Checkpointer::start(checkpoints, &workers),
        workers,
        _lock: lock,
    })
}

/// Checks the last checkpoint and every event after it, and finds the log's hash. It must be the log
/// that was acknowledged, where that is known.
pub(super) fn check_end(
    db: &Connection,
    dir: &Path,
    told: Option<&Acknowledged>,
) -> Result<LogHead, OpenError> {
    let head = check_log(db, told)?;
    match told {
        Some(told) if head.position < told.position => Err(lost(
            dir,
            format!("it ends at entry {}, and {} was acknowledged", head.position, told.position),
        )),
        // Nobody wrote after the broker had ended.
        Some(told) if told.closed && head.position > told.position => {
            let problem = "was added while no broker was running".into();
            let position = Position(told.position.0 + 1);
            Err(OpenError::Damaged(audit::Finding { position, task_id: None, problem }))
        }
        _ => Ok(head),
    }
}

fn check_log(db: &Connection, told: Option<&Acknowledged>) -> Result<LogHead, OpenError> {
    let other = |head: &LogHead| {
        told.is_some_and(|told| head.position == told.position && head.hash != told.log_hash)
    };
    let read = sql("read the end of the log of");
    let last: Option<i64> = db
        .query_row("SELECT max(position) FROM checkpoint", [], |row| row.get(0))
        .optional()
        .map_err(read)?
        .flatten();
    let before = Position(last.map_or(0, |at| u64::try_from(at - 1).unwrap_or(0)));
    let checkpoint = rows::checkpoints(db, before, 1).map_err(sql("read a checkpoint of"))?;
    let mut head = LogHead { hash: Hash::ZERO, position: Position(0), sealed: Position(0) };
    if let Some(checkpoint) = checkpoint.first() {
        let finding = |problem: &str| audit::Finding {
            position: checkpoint.position,
            task_id: None,
            problem: problem.into(),
        };
        if !checkpoint.is_signed() {
            return Err(OpenError::Damaged(finding("has a checkpoint that is not signed")));
        }
        let sealed = event_hash(db, checkpoint.position).optional();
        if sealed.map_err(sql("read the end of the log of"))?.is_none() {
            return Err(OpenError::Damaged(finding("is sealed by a checkpoint and is missing")));
        }
        head.hash = checkpoint.log_hash;
        head.position = checkpoint.position;
        head.sealed = checkpoint.position;
        if other(&head) {
            return Err(OpenError::Damaged(finding("is not the one that was acknowledged")));
        }
    }
    loop {
        let entries =
            rows::events(db, head.position, 1000).map_err(sql("read the end of the log of"))?;
        if entries.is_empty() {
            return Ok(head);
        }
        for entry in entries {
            let sealed = &entry.sealed;
            let finding = |problem: &str| audit::Finding {
                position: sealed.position,
                task_id: Some(sealed.record.task_id),
                problem: problem.into(),
            };
            if sealed.position.0 != head.position.0 + 1 {
                return Err(OpenError::Damaged(finding("follows a gap: entries are missing")));
            }
            let previous = match sealed.previous {
                None => Hash::ZERO,
                Some(at) => event_hash(db, at).map_err(sql("read the end of the log of"))?,
            };
            if tasuki_core::event::link(previous, entry.encoded.as_bytes()) != sealed.hash {
                return Err(OpenError::Damaged(finding("does not have the hash of its content")));
            }
            head.hash = audit::extend(head.hash, sealed.hash);
            head.position = sealed.position;
            if other(&head) {
                return Err(OpenError::Damaged(finding("is not the one that was acknowledged")));
            }
        }
    }
}

fn event_hash(db: &Connection, at: Position) -> rusqlite::Result<Hash> {
    let mut find = db.prepare_cached("SELECT hash FROM event WHERE position = ?")?;
    find.query_row([rows::sql_position(at)], |row| row.get(0)).map(Hash)
}

fn load_rows(
    db: &Connection,
    key: &RowKey,
    path: &Path,
    live: &mut Live,
    now: tasuki_core::Timestamp,
) -> rusqlite::Result<Sums> {
    let mut sums = Sums::default();
    loading::each_live(db, key, path, |(handoff, task, row)| {
        sums.add(row);
        live.put_handoff(handoff.id, Some(handoff));
        if let Some(task) = task {
            live.put_task(task.id, Some(task));
        }
        // There is nothing to go back to.
        live.commit();
        live.ready.clear();
    })?;
    if let Some(task) = rows::task(db, TaskId::STORE)? {
        live.put_task(task.id, Some(Arc::new(task)));
    }
    rows::each_key(db, keys_since(now), |key, replay, at| {
        live.put_replay(key, replay, at, Position(0));
    })?;
    rows::each_live_task(db, key, |row| sums.add(row))?;
    let registry = Arc::make_mut(&mut live.registry);
    rows::load_registry(db, key, registry, |row| sums.add(row))?;
    rows::each_usage(db, |tenant, bytes| {
        live.usage.entry(tenant).or_default().stored_bytes = bytes;
    })?;
    live.commit();
    Ok(sums)
}

/// Applies the events that the rows do not know.
fn replay(db: &Connection, live: &mut Live, dirty: &mut Dirty) -> rusqlite::Result<()> {
    let mut at = dirty.projected;
    while let Some(last) = replay_some(db, live, dirty, at)? {
        at = last;
    }
    Ok(())
}

/// Applies the next events after a position and returns how far it came. A row may know some of
/// them already, because it was written as it was then, so each is skipped by what has it.
pub(super) fn replay_some(
    db: &Connection,
    live: &mut Live,
    dirty: &mut Dirty,
    after: Position,
) -> rusqlite::Result<Option<Position>> {
    let entries = rows::events(db, after, REPLAYED_AT_ONCE)?;
    for entry in &entries {
        let record = &entry.sealed.record;
        if live.shared_task(record.task_id).is_none()
            && let Some(task) = rows::task(db, record.task_id)?
        {
            live.put_task(task.id, Some(Arc::new(task)));
        }
        if let Some(id) = record.handoff_id
            && live.shared_handoff(id).is_none()
            && let Some(handoff) = rows::handoff(db, id)?
        {
            live.put_handoff(id, Some(Arc::new(handoff)));
        }
        live.apply_again(&entry.sealed);
        dirty.note(&entry.sealed);
    }
    live.commit();
    Ok(entries.last().map(|entry| entry.sealed.position))
}
