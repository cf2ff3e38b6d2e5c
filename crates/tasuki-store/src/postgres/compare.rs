// SPDX-License-Identifier: Apache-2.0
//! Whether the rows that brokers believe are what the log says: the log is copied into a data directory
//! beside, which makes all rows from it, and those of the database are held against them.

use std::path::Path;
use std::sync::Arc;

use tasuki_core::{HandoffId, Position, TaskId};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::db::query;
use super::error::Fault;
use super::reading::{self, AT_ONCE, limit};
use super::rows::{self, sql_position};
use super::{CopyError, PostgresError, PostgresOptions, open, to_sqlite};
use crate::clock::Clock;
use crate::sqlite::compare::{self, Difference, Tables};

/// Compares the rows of a database with what follows from its log. `beside` is a directory that is not
/// there yet; what is made in it is the caller's to remove. What brokers change meanwhile is left out.
pub async fn compare_rows(
    options: PostgresOptions,
    beside: &Path,
    clock: Arc<dyn Clock>,
) -> Result<Vec<Difference>, CopyError> {
    // What is seen of the server here is not what a broker has seen.
    let options = PostgresOptions { dir: None, ..options };
    let verdict = to_sqlite(options.clone(), beside, clock.clone(), &mut |_| ()).await?;
    let copied = Position(verdict.events);
    let now = clock.now();
    let mut right = compare::plain(beside, now)?;
    let failed =
        |fault: Fault| PostgresError::Failed { step: "read the rows", reason: fault.to_string() };
    let (there, newer) = read(&options, copied, now).await.map_err(failed)?;
    for key in newer {
        right.remove(&key);
    }
    Ok(compare::compare(&there, &right))
}

type Key = (&'static str, String);

/// All rows, without those that were changed after the log was copied.
async fn read(
    options: &PostgresOptions,
    copied: Position,
    now: tasuki_core::Timestamp,
) -> Result<(Tables, Vec<Key>), Fault> {
    let pool = open::pool(options, &Arc::default()).await;
    let pool = pool.map_err(|error| Fault::Lost(error.to_string()))?;
    let db = pool.get().await?;
    let end = reading::end(&db).await?.position;
    let is_newer = |at: Position| at > copied && at <= end;
    let (mut there, mut newer) = (Tables::new(), Vec::new());
    let mut put = |key: Key, at: Position, value: String| match is_newer(at) {
        true => newer.push(key),
        false => drop(there.insert(key, value)),
    };
    let mut after = Uuid::nil();
    loop {
        let sql = "SELECT id, data, at FROM handoff WHERE id > $1 ORDER BY id LIMIT $2";
        let page = [(&after as _, Type::UUID), (&limit(AT_ONCE) as _, Type::INT8)];
        let found = query(&db, sql, &page).await?;
        for row in &found {
            after = row.try_get(0)?;
            let at = rows::position(row.try_get(2)?);
            let key = ("handoff", HandoffId(after.as_u128()).to_string());
            put(key, at, compare::of_handoff(row.try_get(1)?, now));
        }
        if found.len() < AT_ONCE {
            break;
        }
    }
    let mut before: Option<Uuid> = None;
    loop {
        let sql = rows::task_sql("WHERE $1::uuid IS NULL OR id > $1 ORDER BY id LIMIT $2");
        let page = [(&before as _, Type::UUID), (&limit(AT_ONCE) as _, Type::INT8)];
        let found = query(&db, &sql, &page).await?;
        for row in &found {
            let id: Uuid = row.try_get(0)?;
            before = Some(id);
            let task = rows::task_of(row)?;
            let key = ("task", TaskId(id.as_u128()).to_string());
            put(key, task.last_pos, format!("{task:?}"));
        }
        if found.len() < AT_ONCE {
            break;
        }
    }
    let sql = "SELECT kind, name, data, body, at FROM registry WHERE at > $1";
    for row in query(&db, sql, &[(&(sql_position(Position(0)) - 1), Type::INT8)]).await? {
        let (kind, name): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        let value = compare::of_registered(kind, row.try_get(2)?, row.try_get(3)?);
        put(("registry", format!("{kind}:{name}")), rows::position(row.try_get(4)?), value);
    }
    pool.close();
    Ok((there, newer))
}
