// SPDX-License-Identifier: Apache-2.0
//! History in pieces. Events lie in partitions of equal length by position, made ahead of their
//! use and dropped whole when they are old and nothing that still matters lies in them.

use std::sync::atomic::{AtomicI64, Ordering};

use tasuki_core::{Position, Timestamp};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::db::{Value, query};
use super::error::Fault;
use super::rows::{self, sql_position};

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

/// Makes the partition of a position, if it is not there yet. Making it as a table of its own and
/// attaching it lets those who read the log go on.
pub(super) async fn ensure(
    db: &Client,
    partitions: &Partitions,
    position: Position,
) -> Result<(), Fault> {
    let each = partitions.each;
    let needed = sql_position(position) / each + 1;
    for number in partitions.next.load(Ordering::Relaxed)..needed {
        let (from, to) = (number * each, (number + 1) * each);
        let there = format!("SELECT 1 FROM pg_class WHERE oid = to_regclass('event_{number}')");
        if query(db, &there, &[]).await?.is_empty() {
            let sql = format!(
                "CREATE TABLE event_{number} (LIKE event INCLUDING ALL) \
                     WITH (toast_tuple_target = 8160); \
                 ALTER TABLE event ATTACH PARTITION event_{number} \
                     FOR VALUES FROM ({from}) TO ({to})"
            );
            db.batch_execute(&sql).await?;
        }
    }
    partitions.next.fetch_max(needed, Ordering::Relaxed);
    Ok(())
}

/// Makes the next partition before it is needed. Brokers take turns at it.
pub(super) async fn ahead(
    db: &mut Client,
    partitions: &Partitions,
    end: Position,
) -> Result<(), Fault> {
    let next = rows::position(sql_position(end) + partitions.each);
    if partitions.next.load(Ordering::Relaxed) > sql_position(next) / partitions.each {
        return Ok(());
    }
    let transaction = db.build_transaction().start().await?;
    transaction.batch_execute("SET LOCAL lock_timeout = '1s'").await?;
    // Whoever appends holds this lock, and may be making the same partition.
    transaction.batch_execute("SELECT 1 FROM log_head WHERE one FOR UPDATE").await?;
    // What another broker made since then is seen by the look of `ensure`.
    let made = Partitions::new(partitions.each, end);
    ensure(transaction.client(), &made, next).await?;
    transaction.commit().await?;
    partitions.next.fetch_max(made.next.load(Ordering::Relaxed), Ordering::Relaxed);
    Ok(())
}

/// Drops the oldest partitions whose events are all older than a time, as long as none of them
/// belongs to a task that is open, or to a dead letter that nobody has decided on. Returns how many
/// were dropped. Rows of tasks that ended in them go with them.
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
    let Some(row) = query(db, "SELECT position FROM log_start", &[]).await?.pop() else {
        return Ok(false);
    };
    let start: i64 = row.try_get(0)?;
    // The first partition begins at 0, where no event is.
    let number = (start + 1) / each;
    let last = (number + 1) * each - 1;
    // Time does not run backwards in the log, so the last event is the youngest.
    let sql = "
        SELECT e.at < $2, c.log_hash,
            EXISTS (SELECT 1 FROM task t WHERE t.state IN ('open', 'dead_lettered')
                AND t.intent_at <= $1)
            OR EXISTS (SELECT 1 FROM handoff h WHERE h.state = 'dead_lettered'
                AND NOT h.reviewed AND h.offered <= $1)
        FROM event e JOIN checkpoint c ON c.position = e.position WHERE e.position = $1";
    let values: [Value<'_>; 2] = [(&last, Type::INT8), (&before.0, Type::INT8)];
    let Some(row) = query(db, sql, &values).await?.pop() else { return Ok(false) };
    let (old, needed): (bool, bool) = (row.try_get(0)?, row.try_get(2)?);
    if !old || needed {
        return Ok(false);
    }
    let hash: Vec<u8> = row.try_get(1)?;
    delete_ended(db, start, last).await?;
    let transaction = db.build_transaction().start().await?;
    // Dropping waits for whoever reads the log, and others would wait behind it.
    transaction.batch_execute("SET LOCAL lock_timeout = '2s'").await?;
    let values: [Value<'_>; 3] = [(&last, Type::INT8), (&hash, Type::BYTEA), (&start, Type::INT8)];
    let sql = "UPDATE log_start SET position = $1, hash = $2 WHERE position = $3 RETURNING 1";
    if query(transaction.client(), sql, &values).await?.is_empty() {
        // Another broker was faster.
        return Ok(false);
    }
    let sql = "DELETE FROM checkpoint WHERE position < $1";
    query(transaction.client(), sql, &values[..1]).await?;
    transaction.batch_execute(&format!("DROP TABLE event_{number}")).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Deletes the tasks that ended in a partition, with their handoffs, a few at a time. Its events
/// name them, so this needs no index that every task would pay for.
async fn delete_ended(db: &Client, start: i64, last: i64) -> Result<(), Fault> {
    let mut after = start;
    while after < last {
        let sql = format!(
            "{} WHERE position > $1 AND position <= $2 ORDER BY position LIMIT 1000",
            rows::EVENT
        );
        let values: [Value<'_>; 2] = [(&after, Type::INT8), (&last, Type::INT8)];
        let (mut tasks, mut handoffs) = (Vec::new(), Vec::new());
        for row in query(db, &sql, &values).await? {
            let entry = rows::entry_of(&row)?.sealed;
            after = sql_position(entry.position);
            tasks.push(rows::task_uuid(entry.record.task_id));
            handoffs.extend(entry.record.handoff_id.map(rows::handoff_uuid));
        }
        if tasks.is_empty() {
            return Ok(());
        }
        // Handoffs first: what is left of a task that stays would be missed by nobody else.
        let sql = "
            DELETE FROM handoff WHERE id = ANY ($2) AND task_id IN (
                SELECT id FROM task WHERE id = ANY ($1) AND at <= $3
                    AND state IN ('completed', 'failed', 'cancelled'))";
        let values: [Value<'_>; 3] =
            [(&tasks, Type::UUID_ARRAY), (&handoffs, Type::UUID_ARRAY), (&last, Type::INT8)];
        query(db, sql, &values).await?;
    }
    // The tasks go last, in a second pass, because their handoffs were found by them.
    let mut after = start;
    while after < last {
        let sql = format!(
            "{} WHERE position > $1 AND position <= $2 ORDER BY position LIMIT 1000",
            rows::EVENT
        );
        let values: [Value<'_>; 2] = [(&after, Type::INT8), (&last, Type::INT8)];
        let mut tasks = Vec::new();
        for row in query(db, &sql, &values).await? {
            let entry = rows::entry_of(&row)?.sealed;
            after = sql_position(entry.position);
            tasks.push(rows::task_uuid(entry.record.task_id));
        }
        if tasks.is_empty() {
            return Ok(());
        }
        let sql = "DELETE FROM task WHERE id = ANY ($1) AND at <= $2 \
                   AND state IN ('completed', 'failed', 'cancelled')";
        let values: [Value<'_>; 2] = [(&tasks, Type::UUID_ARRAY), (&last, Type::INT8)];
        query(db, sql, &values).await?;
    }
    Ok(())
}
