// SPDX-License-Identifier: Apache-2.0
//! What an operator does with a data directory: verify, export, back up, restore, rebuild.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use tasuki_core::{Body, Handoff, HandoffId, Hash, Position, Task, TaskId};

use super::acknowledged::{self, Note};
use super::journal::{Dirty, LogHead, SqliteJournal};
use super::open::{self, FILE, INSTANCE, OpenError, io, sql};
use super::{Sync, documents, listing, rows};
use crate::audit::{self, Finding, Mark, Raw, Verdict, Verifier};
use crate::clock::Clock;
use crate::machine::{CatchUp, Journal};
use crate::private;
use crate::sums::{Seal, Sums};

/// Called with how many entries are done.
pub type Progress<'p> = &'p mut dyn FnMut(u64);

/// How often progress is told.
const TOLD_EVERY: u64 = 1024;

/// How many events a data directory holds.
pub fn count(dir: &Path) -> Result<u64, OpenError> {
    let db = reader(dir)?;
    let last: Option<i64> = db
        .query_row("SELECT max(position) FROM event", [], |row| row.get(0))
        .map_err(sql("count the events of"))?;
    Ok(last.and_then(|last| u64::try_from(last).ok()).unwrap_or(0))
}

/// Checks the log of a data directory, whether or not a broker is using it.
pub fn verify(dir: &Path, progress: Progress<'_>) -> Result<Verdict, OpenError> {
    verify_log(&reader(dir)?, progress).map_err(sql("read the log of"))
}

/// Writes the log of a data directory as lines of JSON.
pub fn export(dir: &Path, to: &mut dyn Write, progress: Progress<'_>) -> Result<u64, OpenError> {
    let db = reader(dir)?;
    let mut written = Ok(());
    let mut unreadable = None;
    let mut lines = 0;
    let mut put = |line: String| {
        lines += 1;
        written = writeln!(to, "{line}");
        written.is_ok()
    };
    let snapshot = db.unchecked_transaction().map_err(sql("read the log of"))?;
    let epochs = rows::epochs(&db).map_err(sql("read the log of"))?;
    each_entry(&db, Position(0), progress, &mut |raw| {
        let line = match raw {
            Raw::Event(event) => event.into_entry().map(|(entry, body)| {
                let cursor = epochs.cursor(entry.sealed.position);
                audit::event_line(&entry, body.as_deref(), cursor)
            }),
            Raw::Checkpoint(checkpoint) => Ok(audit::checkpoint_line(&checkpoint)),
            Raw::Unreadable(finding) => Err(finding),
        };
        line.map_err(|finding| unreadable = Some(finding)).is_ok_and(&mut put)
    })
    .map_err(sql("read the log of"))?;
    drop(snapshot);
    written.map_err(io("write the export", dir))?;
    unreadable.map_or(Ok(lines), |finding| Err(OpenError::Damaged(finding)))
}

/// Checks a log from its first entry to its last.
fn verify_log(db: &Connection, progress: Progress<'_>) -> rusqlite::Result<Verdict> {
    verify_after(db, None, progress).map(|(verdict, _)| verdict)
}

/// Checks a log, from where it was verified up to before if that still holds. Returns also from
/// where the next check may go on.
pub(super) fn verify_after(
    db: &Connection,
    mark: Option<&Mark>,
    progress: Progress<'_>,
) -> rusqlite::Result<(Verdict, Option<Mark>)> {
    let snapshot = db.unchecked_transaction()?;
    let sealed = match mark {
        None => Vec::new(),
        Some(mark) => rows::checkpoints(db, Position(mark.position.0.saturating_sub(1)), 1)?,
    };
    let mark = mark.filter(|mark| mark.holds(Position(0), sealed.first()));
    let verifier = mark.map_or_else(Verifier::default, Verifier::going_on_after);
    let after = mark.map_or(Position(0), |mark| mark.position);
    let verdict = audit::verify(verifier, None, |each| each_entry(db, after, progress, each))?;
    snapshot.commit()?;
    Ok(verdict)
}

pub(crate) enum Item {
    Event(Box<crate::Entry>, Option<String>),
    Checkpoint(crate::Checkpoint),
}

/// Goes through events and checkpoints in order, in one snapshot, until `each` says stop.
fn each_entry(
    db: &Connection,
    after: Position,
    progress: Progress<'_>,
    each: &mut dyn FnMut(Raw) -> bool,
) -> rusqlite::Result<()> {
    let mut checkpoints = rows::checkpoints(db, after, usize::MAX)?.into_iter().peekable();
    let mut events = db.prepare(
        "SELECT position, previous, hash, record, body FROM event WHERE position > ? \
         ORDER BY position",
    )?;
    let mut before = db.prepare("SELECT hash, record FROM event WHERE position = ?")?;
    let mut found = events.query([rows::sql_position(after)])?;
    let mut done = after.0;
    while let Some(row) = found.next()? {
        let at = Position(row.get::<_, i64>(0)?.try_into().unwrap_or(0));
        let raw = match row.get(4).and_then(|body| rows::raw_event(row, body)) {
            Ok(mut event) => {
                if let Some(previous) = event.previous.filter(|previous| *previous <= after) {
                    let read = |row: &Row<'_>| Ok((Hash(row.get(0)?), row.get(1)?));
                    // What cannot be found or read is not known, and does not fit then.
                    event.before = before.query_row([rows::sql_position(previous)], read).ok();
                }
                Raw::Event(event)
            }
            Err(error) => Raw::Unreadable(Finding {
                position: at,
                task_id: None,
                problem: format!("cannot be read: {error}"),
            }),
        };
        // A checkpoint before this event that was not due yet stands where events are missing.
        while let Some(stray) = checkpoints.next_if(|checkpoint| checkpoint.position < at) {
            if !each(Raw::Checkpoint(stray)) {
                return Ok(());
            }
        }
        if !each(raw) {
            return Ok(());
        }
        while let Some(sealing) = checkpoints.next_if(|checkpoint| checkpoint.position == at) {
            if !each(Raw::Checkpoint(sealing)) {
                return Ok(());
            }
        }
        done += 1;
        if done.is_multiple_of(TOLD_EVERY) {
            progress(done);
        }
    }
    for stray in checkpoints {
        if !each(Raw::Checkpoint(stray)) {
            return Ok(());
        }
    }
    progress(done);
    Ok(())
}

/// Asks SQLite to look at every page. Returns what it found wrong.
pub fn integrity(dir: &Path) -> Result<Vec<String>, OpenError> {
    let db = reader(dir)?;
    let check = |db: &Connection| -> rusqlite::Result<Vec<String>> {
        let mut check = db.prepare("PRAGMA integrity_check(10)")?;
        let lines: Vec<String> =
            check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    };
    check(&db).map_err(sql("check every page of"))
}

/// Writes a consistent copy of the database to a file, while the broker goes on.
pub fn backup(dir: &Path, to: &Path) -> Result<(), OpenError> {
    if to.exists() {
        let exists = io::Error::new(io::ErrorKind::AlreadyExists, "the target file exists");
        return Err(super::open::io("write the backup", to)(exists));
    }
    let part = to.with_extension("part");
    copy(&reader(dir)?, &part)?;
    // The copy belongs to no directory, so that wherever it is put the fence epoch rises.
    Connection::open(&part)
        .and_then(|copy| rows::put_meta(&copy, "instance", "backup"))
        .map_err(sql("mark the copy of"))?;
    finish(&part, to).map_err(super::open::io("write the backup", to))
}

/// Copies a database, what is still in its write-ahead log included.
pub(super) fn copy(db: &Connection, part: &Path) -> Result<(), OpenError> {
    // Left over from a copy that was interrupted.
    let _ = std::fs::remove_file(part);
    db.execute("VACUUM INTO ?", params![part.to_string_lossy()]).map(drop).map_err(sql("copy"))
}

/// Puts a backup into an empty data directory. The first start raises the fence epoch.
pub fn restore(from: &Path, dir: &Path, progress: Progress<'_>) -> Result<Verdict, OpenError> {
    private::directory(dir).map_err(io("make a directory", dir))?;
    let _lock = open::lock(dir)?;
    let to = dir.join(FILE);
    if to.exists() {
        let exists = io::Error::new(io::ErrorKind::AlreadyExists, "there is a database already");
        return Err(io("restore", dir)(exists));
    }
    let source = open::reader(from).map_err(sql("open the backup of"))?;
    let verdict = verify_log(&source, progress).map_err(sql("read the log of"))?;
    if let Some(finding) = &verdict.first_bad {
        return Err(OpenError::Damaged(finding.clone()));
    }
    // What is left of an earlier database would be taken for a part of this one.
    for name in [
        INSTANCE.to_owned(),
        acknowledged::NAME.to_owned(),
        format!("{FILE}-wal"),
        format!("{FILE}-shm"),
    ] {
        match std::fs::remove_file(dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(io("clear the way", dir)(error));
            }
            _ => {}
        }
    }
    let part = dir.join("restore.part");
    copy(&source, &part)?;
    // Nothing of the rows in a backup is believed: the first start makes them from the log that was
    // verified here.
    Connection::open(&part)
        .and_then(|copy| copy.execute("DELETE FROM meta WHERE name = 'row_sums'", []))
        .map_err(sql("take the sums out of"))?;
    finish(&part, &to).map_err(io("copy the backup", dir))?;
    Ok(verdict)
}

/// Makes a written file durable under its final name.
fn finish(part: &Path, to: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    std::fs::rename(part, to)?;
    match to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

/// Throws the projections away and makes them anew from the events.
pub fn rebuild(dir: &Path, clock: &dyn Clock, progress: Progress<'_>) -> Result<u64, OpenError> {
    let lock = open::lock(dir)?;
    open::check_wal(dir)?;
    Ok(rebuild_as_is(dir, clock, lock, progress)?.position.0)
}

/// Goes on with what is left of a damaged log: what was acknowledged after it is given up, and the next
/// start raises the fence epoch above every one that was given out. Returns where the damaged
/// write-ahead log was put, if there was one.
pub fn accept_loss(
    dir: &Path,
    clock: &dyn Clock,
    progress: Progress<'_>,
) -> Result<(u64, Option<PathBuf>), OpenError> {
    let lock = open::lock(dir)?;
    let (wal, mut aside) = (dir.join(format!("{FILE}-wal")), None);
    if open::check_wal(dir).is_err() {
        let kept = dir.join(format!("{FILE}-wal.damaged-{}", clock.now().0));
        std::fs::copy(&wal, &kept).map_err(io("keep the damaged log", dir))?;
        private::file(&kept).map_err(io("keep the damaged log", dir))?;
        aside = Some(kept);
    }
    // A database that belongs to no directory raises the epoch where it is opened.
    match std::fs::remove_file(dir.join(INSTANCE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io("forget the instance", dir)(error));
        }
        _ => {}
    }
    let told = open::acknowledged(dir)?;
    let left = rebuild_as_is(dir, clock, lock, progress)?;
    // From now on what is left is what was acknowledged.
    if let Some(told) = told {
        let mut note = Note::open(dir, Some(&told)).map_err(io("note what was given up", dir))?;
        let written = note.write(left.position, told.epoch, left.hash, true);
        written.map_err(io("note what was given up", dir))?;
    }
    Ok((left.position.0, aside))
}

pub(super) fn rebuild_as_is(
    dir: &Path,
    clock: &dyn Clock,
    lock: open::Lock,
    progress: Progress<'_>,
) -> Result<LogHead, OpenError> {
    let path = dir.join(FILE);
    let db = open::connect(&path, Sync::Full).map_err(sql("open"))?;
    open::migrate(&db)?;
    let log = open::check_end(&db, dir, None)?;
    let mut journal = open::journal(db, &path, dir, log, Sync::Full, lock)?;
    rebuild_rows(&mut journal, dir, clock, progress)?;
    Ok(journal.log)
}

/// Makes the rows from the log where nothing speaks for those that are there.
pub(super) fn remake(
    journal: &mut SqliteJournal,
    dir: &Path,
    clock: &dyn Clock,
) -> Result<Seal, OpenError> {
    let events = journal.log.position;
    if events > Position(0) {
        tracing::warn!(%events, "no seal of this broker is on the rows: they are made anew from the log");
    }
    rebuild_rows(journal, dir, clock, &mut |_| ())
}

fn rebuild_rows(
    journal: &mut SqliteJournal,
    dir: &Path,
    clock: &dyn Clock,
    progress: Progress<'_>,
) -> Result<Seal, OpenError> {
    let verdict = verify_log(&journal.db, &mut |_| ()).map_err(sql("read the log of"))?;
    if let Some(finding) = verdict.first_bad {
        return Err(OpenError::Damaged(finding));
    }
    journal
        .db
        .execute_batch(
            "BEGIN; DELETE FROM task; DELETE FROM handoff; DELETE FROM idempotency; \
         DELETE FROM registry; DELETE FROM usage; \
         INSERT INTO usage SELECT iif(instr(actor, '/') = 0, 'default', \
             substr(actor, 7, instr(actor, '/') - 7)), sum(bytes) \
             FROM (SELECT record ->> '$.actor' AS actor, length(CAST(body AS BLOB)) AS bytes \
                   FROM event WHERE body IS NOT NULL) GROUP BY 1; \
         DELETE FROM meta WHERE name = 'row_sums'; \
         UPDATE meta SET value = 0 WHERE name = 'projected'; COMMIT;",
        )
        .map_err(sql("empty the projections of"))?;
    documents::rebuild(&journal.db).map_err(sql("make the documents anew in"))?;
    (journal.sums, journal.dirty) = (Sums::default(), Dirty::default());
    let mut live = crate::live::Live::new(tasuki_core::ids::Epoch(1), Position(0));
    let mut at = Position(0);
    while let Some(last) = open::replay_some(&journal.db, &mut live, &mut journal.dirty, at)
        .map_err(sql("replay the events of"))?
    {
        at = last;
        let evicted = journal
            .commit(&[], &live, CatchUp::All, clock.now())
            .map_err(open::fault("write the projections", dir))?
            .evicted;
        for id in evicted.handoffs {
            live.put_handoff(id, None);
        }
        for id in evicted.tasks {
            live.put_task(id, None);
        }
        live.commit();
        live.known_anew.clear();
        progress(at.0);
    }
    let seal = Seal {
        projected: journal.log.position,
        position: journal.log.position,
        epoch: live.epoch.0,
        sums: journal.sums.clone(),
    };
    rows::put_seal(&journal.db, &seal, &journal.row_key).map_err(sql("seal the rows of"))?;
    Ok(seal)
}

/// Reads a whole data directory page by page, to copy it.
pub(crate) struct LogReader {
    db: Connection,
}

impl LogReader {
    pub(crate) fn open(dir: &Path) -> Result<Self, OpenError> {
        Ok(Self { db: reader(dir)? })
    }

    /// Events after a position, with their bodies and the checkpoints at them.
    pub(crate) fn entries(&self, after: Position, max: usize) -> Result<Vec<Item>, OpenError> {
        let read = || -> rusqlite::Result<Vec<Item>> {
            let mut items = Vec::new();
            let entries = rows::events(&self.db, after, max)?;
            let last = entries.last().map_or(after, |entry| entry.sealed.position);
            let seals = rows::checkpoints(&self.db, after, max)?;
            for entry in entries {
                let body = rows::body(&self.db, entry.sealed.position)?;
                let body = body.map(|body| body.text().to_owned());
                items.push(Item::Event(Box::new(entry), body));
            }
            let seals = seals.into_iter().filter(|seal| seal.position <= last);
            items.extend(seals.map(Item::Checkpoint));
            Ok(items)
        };
        read().map_err(sql("read the log of"))
    }

    /// Every task, the store's own included, newest first.
    pub(crate) fn tasks(
        &self,
        before: Option<TaskId>,
        max: usize,
    ) -> Result<Vec<Arc<Task>>, OpenError> {
        listing::all_tasks(&self.db, before, max).map_err(sql("read the tasks of"))
    }

    /// Every handoff, newest first.
    pub(crate) fn handoffs(
        &self,
        before: Option<HandoffId>,
        max: usize,
    ) -> Result<Vec<Arc<Handoff>>, OpenError> {
        let filter = crate::HandoffFilter { before, max, ..Default::default() };
        listing::handoffs(&self.db, &filter).map_err(sql("read the handoffs of"))
    }
}

/// Writes a log into a new data directory. The rows follow by [`rebuild`].
pub(crate) struct LogWriter {
    db: Connection,
    _lock: open::Lock,
}

impl LogWriter {
    pub(crate) fn create(dir: &Path) -> Result<Self, OpenError> {
        private::directory(dir).map_err(io("make a directory", dir))?;
        let lock = open::lock(dir)?;
        let path = dir.join(FILE);
        if path.exists() {
            let exists =
                io::Error::new(io::ErrorKind::AlreadyExists, "there is a database already");
            return Err(io("copy the log", dir)(exists));
        }
        let db = open::connect(&path, Sync::Full).map_err(sql("make"))?;
        open::migrate(&db)?;
        Ok(Self { db, _lock: lock })
    }

    pub(crate) fn append(
        &mut self,
        entries: &[crate::Entry],
        bodies: &[Option<Body>],
        seals: &[crate::Checkpoint],
    ) -> Result<(), OpenError> {
        let write = || -> rusqlite::Result<()> {
            let transaction = self.db.unchecked_transaction()?;
            for (entry, body) in entries.iter().zip(bodies) {
                let sealed = &entry.sealed;
                rows::append_event(&transaction)?.execute(params![
                    rows::sql_position(sealed.position),
                    sealed.previous.map(rows::sql_position),
                    sealed.hash.0,
                    entry.encoded,
                    body.as_ref().map(Body::text),
                ])?;
                if let tasuki_core::Event::EpochRaised { epoch } = sealed.record.event {
                    rows::raise_epoch(&transaction, epoch, sealed.position)?;
                }
            }
            for seal in seals {
                rows::put_checkpoint(&transaction, seal)?;
            }
            // It was written elsewhere, so the first start raises the fence epoch.
            rows::put_meta(&transaction, "instance", "copy")?;
            transaction.commit()
        };
        write().map_err(sql("write the log of"))
    }
}

/// Every task there is, for comparing; small stores only.
pub fn dump_tasks(dir: &Path) -> Result<Vec<Arc<Task>>, OpenError> {
    let filter = crate::TaskFilter { max: usize::MAX, ..Default::default() };
    listing::tasks(&reader(dir)?, &filter).map_err(sql("list the tasks of"))
}

fn reader(dir: &Path) -> Result<Connection, OpenError> {
    open::reader(&dir.join(FILE)).map_err(sql("open"))
}

/// Rebuilds all rows of a data directory beside and names those that are not what the log says. A
/// broker may use the directory meanwhile.
pub fn compare_rows(
    dir: &Path,
    clock: &dyn Clock,
) -> Result<Vec<super::compare::Difference>, OpenError> {
    super::compare::differences(&reader(dir)?, dir, clock)
}
