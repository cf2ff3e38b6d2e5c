// SPDX-License-Identifier: Apache-2.0
//! What can be told of a data directory from outside, whether or not a broker uses it.

use std::fs::{File, TryLockError};
use std::path::Path;

use rusqlite::Connection;
use tasuki_core::{Position, Timestamp};

use super::open::{self, FILE, LOCK, MIGRATIONS, OpenError, sql};
use super::rows;

/// What a database says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspection {
    /// The version of its schema, and the newest that this program knows.
    pub schema: usize,
    pub schema_known: usize,
    pub events: u64,
    /// The last event that the tables people query have in them.
    pub projected: u64,
    pub last_event_at: Option<Timestamp>,
    /// Dead letters that nobody has decided on, as far as is projected.
    pub dead_letters: u64,
}

/// The id of the process that uses a data directory, if one does.
#[must_use]
pub fn holder(dir: &Path) -> Option<String> {
    let file = File::open(dir.join(LOCK)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => std::io::read_to_string(file).ok(),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
    .map(|id| id.trim().to_owned())
}

/// Reads the few facts that tell whether a database is as it should be.
pub fn inspect(dir: &Path) -> Result<Inspection, OpenError> {
    let db = open::reader(&dir.join(FILE)).map_err(sql("open"))?;
    facts(&db).map_err(sql("read the facts of"))
}

fn facts(db: &Connection) -> rusqlite::Result<Inspection> {
    let number = |query: &str| -> rusqlite::Result<u64> {
        let found: i64 = db.query_row(query, [], |row| row.get(0))?;
        Ok(u64::try_from(found).unwrap_or(0))
    };
    let schema = number("SELECT user_version FROM pragma_user_version")?;
    let events = number("SELECT coalesce(max(position), 0) FROM event")?;
    let last = rows::events(db, Position(events.saturating_sub(1)), 1)?;
    Ok(Inspection {
        schema: usize::try_from(schema).unwrap_or(usize::MAX),
        schema_known: MIGRATIONS.len(),
        events,
        projected: rows::meta::<i64>(db, "projected")?
            .map_or(0, |at| u64::try_from(at).unwrap_or(0)),
        last_event_at: last.first().map(|entry| entry.sealed.record.at),
        dead_letters: number(
            "SELECT count(*) FROM handoff WHERE state = 'dead_lettered' AND reviewed = 0",
        )?,
    })
}
