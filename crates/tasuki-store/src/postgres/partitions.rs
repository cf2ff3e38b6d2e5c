// SPDX-License-Identifier: Apache-2.0
//! History in pieces. Events lie in partitions of equal length by position, made ahead of their
//! use and dropped whole when they are old and nothing that still matters lies in them.

use std::sync::atomic::{AtomicI64, Ordering};

use tasuki_core::{Position, Timestamp};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::db::{Value, query};
use super::error::Fault;
use super::rows::sql_position;

/// How many events lie in one partition, unless the database was set up otherwise.
pub(super) const EVENTS_EACH: u32 = 1 << 20;

pub(super) struct Partitions {
    /// How many events lie in one.
    each: i64,
    /// The number of the first partition that is not known to be there.
    next: AtomicI64,
}

impl Partitions {
    /// For a log that has come so far: what lies before is there, or was dropped.
    pub(super) fn new(each: i64, end: Position) -> Self {
        Self { each, next: AtomicI64::new(sql_position(end) / each) }
    }

    /// Whether a position is the last one of its partition.
    pub(super) fn ends_at(&self, position: Position) -> bool {
        sql_position(position) % self.each == self.each - 1
    }
}

/// Makes the partition of a position, and the one after it, if they are not there yet.
pub(super) async fn ensure(
    db: &Client,
    partitions: &Partitions,
    position: Position,
) -> Result<(), Fault> {
    let each = partitions.each;
    let needed = sql_position(position) / each + 2;
    let next = partitions.next.load(Ordering::Relaxed);
    for number in next..needed {
        let (from, to) = (number * each, (number + 1) * each);
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS event_{number} PARTITION OF event \
             FOR VALUES FROM ({from}) TO ({to}) WITH (toast_tuple_target = 8160)"
        );
        db.batch_execute(&sql).await?;
    }
    partitions.next.fetch_max(needed, Ordering::Relaxed);
    Ok(())
}

/// Drops the oldest partitions whose events are all older than a time, as long as none of them
/// belongs to a task that is open or a dead letter. Returns how many were dropped. Rows of tasks
/// that ended before go with them.
pub(super) async fn drop_old(
    db: &mut Client,
    partitions: &Partitions,
    before: Timestamp,
) -> Result<u64, Fault> {
    let mut dropped = 0;
    while drop_first(db, partitions.each, before).await? {
        dropped += 1;
    }
    Ok(dropped)
}

async fn drop_first(db: &mut Client, each: i64, before: Timestamp) -> Result<bool, Fault> {
    let transaction = db.build_transaction().start().await?;
    let db = transaction.client();
    let sql = "SELECT s.position, h.position FROM log_start s, log_head h FOR UPDATE OF h";
    let Some(row) = query(db, sql, &[]).await?.pop() else { return Ok(false) };
    let (start, head): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    // The first partition begins at 0, where no event is.
    let number = (start + 1) / each;
    let last = (number + 1) * each - 1;
    if last >= head {
        return Ok(false);
    }
    let sql = "
        SELECT max(at) < $2,
            EXISTS (SELECT 1 FROM task t WHERE t.state IN ('open', 'dead_lettered')
                AND t.intent_at <= $1),
            (SELECT log_hash FROM checkpoint WHERE position = $1)
        FROM event WHERE position <= $1";
    let values: [Value<'_>; 2] = [(&last, Type::INT8), (&before.0, Type::INT8)];
    let Some(row) = query(db, sql, &values).await?.pop() else { return Ok(false) };
    let (old, needed): (Option<bool>, bool) = (row.try_get(0)?, row.try_get(1)?);
    let Some(hash) = row.try_get::<_, Option<&[u8]>>(2)? else { return Ok(false) };
    if old != Some(true) || needed {
        return Ok(false);
    }
    let values: [Value<'_>; 2] = [(&last, Type::INT8), (&hash, Type::BYTEA)];
    query(db, "UPDATE log_start SET position = $1, hash = $2", &values).await?;
    let ended = "WITH gone AS (DELETE FROM task WHERE at <= $1 AND state IN \
                     ('completed', 'failed', 'cancelled') RETURNING id) \
                 DELETE FROM handoff WHERE task_id IN (SELECT id FROM gone)";
    query(db, ended, &[(&last, Type::INT8)]).await?;
    query(db, "DELETE FROM checkpoint WHERE position < $1", &[(&last, Type::INT8)]).await?;
    transaction.batch_execute(&format!("DROP TABLE event_{number}")).await?;
    transaction.commit().await?;
    Ok(true)
}
