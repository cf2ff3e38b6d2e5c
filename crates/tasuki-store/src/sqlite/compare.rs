// SPDX-License-Identifier: Apache-2.0
//! Whether the rows that decide are what the log says: everything is rebuilt beside from the log alone
//! and compared, row by row. It costs as much as reading the whole log, so it is asked for, or done
//! after the sums have shown that something is wrong.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, Row};
use tasuki_core::Timestamp;

use super::open::{self, FILE, OpenError, io, sql};
use super::{Sync, maintenance, rows};
use crate::clock::Clock;
use crate::machine::{CatchUp, Journal};
use crate::sums::{Seal, Sums};
use crate::{codec, private};

/// How many differences are named.
const NAMED_MAX: usize = 20;
/// Where the copies are made, in the data directory itself: it is the owner's alone and has room.
const BESIDE: &str = "compare";

/// A row that is not what the log says.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, thiserror::Error)]
#[error("{table} {row} {problem}")]
pub struct Difference {
    pub table: &'static str,
    pub row: String,
    pub problem: &'static str,
}

/// Differences for a message.
pub(crate) fn listed(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return "their sums do not fit".into();
    }
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Compares the rows of a database with what follows from its log, and names the first that differ.
pub(super) fn differences(
    db: &Connection,
    dir: &Path,
    clock: &dyn Clock,
) -> Result<Vec<Difference>, OpenError> {
    let beside = dir.join(BESIDE);
    // Left over from a comparison that was interrupted.
    let _ = std::fs::remove_dir_all(&beside);
    let found = both(db, &beside, clock);
    std::fs::remove_dir_all(&beside).map_err(io("remove what was compared", dir))?;
    found
}

fn both(db: &Connection, beside: &Path, clock: &dyn Clock) -> Result<Vec<Difference>, OpenError> {
    let (believed, rebuilt) = (beside.join("believed"), beside.join("rebuilt"));
    for dir in [&believed, &rebuilt] {
        private::directory(dir).map_err(io("make a directory", dir))?;
        maintenance::copy(db, &dir.join(FILE))?;
    }
    catch_up(&believed, clock)?;
    maintenance::rebuild_as_is(&rebuilt, clock, open::lock(&rebuilt)?, &mut |_| ())?;
    let now = clock.now();
    let read = |dir: &Path| tables(dir, now, true).map_err(sql("compare the rows of"));
    let (there, right) = (read(&believed)?, read(&rebuilt)?);
    Ok(compare(&there, &right))
}

/// Writes down what the rows do not know yet, and believes them.
fn catch_up(dir: &Path, clock: &dyn Clock) -> Result<(), OpenError> {
    let path = dir.join(FILE);
    let db = open::connect(&path, Sync::Full).map_err(sql("open"))?;
    open::migrate(&db)?;
    let log = open::check_end(&db, dir, None)?;
    let known: i64 = rows::meta(&db, "projected").map_err(sql("read"))?.unwrap_or(0);
    let epoch: i64 = rows::meta(&db, "epoch").map_err(sql("read"))?.unwrap_or(1);
    let lock = open::lock(dir)?;
    let mut journal = open::journal(db, &path, dir, log, Sync::Full, lock)?;
    let seal = Seal {
        projected: tasuki_core::Position(u64::try_from(known).unwrap_or(0)),
        position: log.position,
        epoch: u64::try_from(epoch).unwrap_or(1),
        sums: Sums::default(),
    };
    let (live, _) = open::load(&mut journal, &seal, clock, dir)?;
    let written = journal.commit(&[], &live, CatchUp::All, clock.now());
    written.map(drop).map_err(open::fault("write the rows", dir))
}

/// Rows by table and id, in a form that does not depend on which program wrote them.
pub(crate) type Tables = BTreeMap<(&'static str, String), String>;

/// The rows of a data directory as another store has them too.
pub(crate) fn plain(dir: &Path, now: Timestamp) -> Result<Tables, OpenError> {
    tables(dir, now, false).map_err(sql("compare the rows of"))
}

/// A handoff's row. What cannot be read is compared as it is.
pub(crate) fn of_handoff(data: &str, now: Timestamp) -> String {
    let Ok(mut handoff) = codec::decode(data) else { return data.to_owned() };
    // Heartbeats are not in the log.
    handoff.renew(now);
    codec::encode(&handoff)
}

pub(crate) fn of_registered(kind: &str, data: &str, body: Option<&str>) -> String {
    let value = codec::decode_entry(kind, data).map(|entry| codec::encode_entry(&entry).1);
    format!("{} {body:?}", value.unwrap_or_else(|_| data.to_owned()))
}

/// Makes of a row what is compared.
type Read<'r> = &'r dyn Fn(&Row<'_>) -> rusqlite::Result<((&'static str, String), String)>;

fn tables(dir: &Path, now: Timestamp, columns: bool) -> rusqlite::Result<Tables> {
    let db = open::reader(&dir.join(FILE))?;
    let mut tables = Tables::new();
    let mut each = |sql: &str, read: Read<'_>| -> rusqlite::Result<()> {
        let mut find = db.prepare(sql)?;
        let mut found = find.query([])?;
        while let Some(row) = found.next()? {
            let (key, value) = read(row)?;
            tables.insert(key, value);
        }
        Ok(())
    };
    each("SELECT id, data, state, ended, from_agent, to_name FROM handoff", &|row| {
        let mut value = of_handoff(row.get_ref(1)?.as_str()?, now);
        if columns {
            let all: (String, bool, String, String) =
                (row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
            value += &format!(" {all:?}");
        }
        Ok((("handoff", row.get(0)?), value))
    })?;
    each(rows::TASK, &|row| {
        let key = ("task", row.get(0)?);
        let value = rows::task_of(row).map(|task| format!("{task:?}"));
        Ok((key, value.unwrap_or_else(|error| error.to_string())))
    })?;
    each("SELECT kind, name, data, body FROM registry", &|row| {
        let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
        let (data, body): (String, Option<String>) = (row.get(2)?, row.get(3)?);
        let key = ("registry", format!("{kind}:{name}"));
        Ok((key, of_registered(&kind, &data, body.as_deref())))
    })?;
    Ok(tables)
}

pub(crate) fn compare(there: &Tables, right: &Tables) -> Vec<Difference> {
    let difference = |(table, row): &(&'static str, String), problem| Difference {
        table,
        row: row.clone(),
        problem,
    };
    let changed = there.iter().filter_map(|(key, value)| match right.get(key) {
        None => Some(difference(key, "is not in the log")),
        Some(other) if other != value => Some(difference(key, "was changed")),
        Some(_) => None,
    });
    let missing = right.keys().filter(|key| !there.contains_key(*key));
    changed.chain(missing.map(|key| difference(key, "is missing"))).take(NAMED_MAX).collect()
}
