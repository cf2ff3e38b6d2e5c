// SPDX-License-Identifier: Apache-2.0
//! Sums over the rows that decide, in a database that brokers share. They are those of `sums.rs`, kept in
//! the log's end, whose lock every transaction that writes holds: so they change with the rows. The
//! secret that they are made with is in a file that all brokers of the database have and the database
//! does not. All rows are summed up when a broker starts, and again and again while it runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tasuki_core::{Handoff, HandoffId, Position, Task, TaskId};
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::db::{Value, query};
use super::error::Fault;
use super::rows::{self, handoff_uuid, sql_position, task_uuid};
use super::{Node, PostgresError, PostgresOptions, seen};
use crate::clock::{self, Clock};
use crate::sums::{RowHash, RowKey, Seal, Sums};
use crate::workers::{Failure, Workers};
use crate::{codec, registry};

/// How many rows are read at a time.
const AT_ONCE: usize = 1000;
/// How long a broker waits before it sums the rows up once more.
const AGAIN: Duration = Duration::from_secs(5 * 60);
/// The same where who is known was read from the rows meanwhile: a row of those gives rights.
const SOON: Duration = Duration::from_secs(10);
/// Where the rows are made anew to find out which differ, in the data directory.
const BESIDE: &str = "compare";

/// A handoff counts until it is at its end.
pub(super) fn handoff(key: &RowKey, id: HandoffId, data: &str) -> RowHash {
    key.row("handoff", &handoff_uuid(id).to_string(), [data.as_bytes()])
}

/// A task counts as long as a handoff of it is under way; the store's own always does.
pub(super) fn counts(task: &Task) -> bool {
    task.live.is_some() || task.id == TaskId::STORE
}

/// `more` is what stands beside the columns, as it is stored.
pub(super) fn task(key: &RowKey, task: &Task, more: Option<&str>) -> RowHash {
    let mut values = Vec::with_capacity(512);
    let mut put = |value: Option<&[u8]>| {
        values.push(u8::from(value.is_some()));
        let value = value.unwrap_or_default();
        values.extend((value.len() as u64).to_le_bytes());
        values.extend(value);
    };
    put(Some(task.state.as_str().as_bytes()));
    put(Some(task.owner.as_str().as_bytes()));
    put(Some(task.opened_by.as_str().as_bytes()));
    put(task.parent_task_id.map(|id| id.0.to_le_bytes()).as_ref().map(<[u8; 16]>::as_slice));
    put(task.correlation_id.as_ref().map(|id| id.as_str().as_bytes()));
    put(Some(&task.intent.0));
    put(task.live.map(|id| id.0.to_le_bytes()).as_ref().map(<[u8; 16]>::as_slice));
    put(task.envelope.as_ref().map(|(hash, _)| hash.0.as_slice()));
    put(Some(&task.head.0));
    put(task.project.as_ref().map(|project| project.as_str().as_bytes()));
    put(task.channel.as_ref().map(|channel| channel.as_str().as_bytes()));
    put(more.map(str::as_bytes));
    for number in [
        sql_position(task.intent_pos),
        task.opened_at.0,
        task.ended_at.map_or(i64::MIN, |at| at.0),
        task.envelope.map_or(-1, |(_, hop)| i64::from(hop)),
        i64::from(task.events),
        sql_position(task.last_pos),
    ] {
        put(Some(&number.to_le_bytes()));
    }
    key.row("task", &task_uuid(task.id).to_string(), [values.as_slice()])
}

fn registered(key: &RowKey, kind: &str, name: &str, at: i64, data: &str) -> RowHash {
    key.row(kind, name, [at.to_le_bytes().as_slice(), data.as_bytes()])
}

/// What the rows of a transaction added when they were read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) handoffs: HashMap<HandoffId, RowHash>,
    pub(super) tasks: HashMap<TaskId, RowHash>,
}

/// What a transaction writes.
pub(super) struct Written<'w> {
    pub(super) handoffs: &'w [(Arc<Handoff>, Option<Position>)],
    pub(super) tasks: &'w [(Arc<Task>, Option<Position>)],
    pub(super) known: &'w [registry::Row],
    /// The last event that it appends.
    pub(super) last: Option<Position>,
}

/// The seal after a transaction: the one before, with the rows as they will be.
pub(super) async fn next(
    db: &Client,
    key: &RowKey,
    before: &Seal,
    read: &Read,
    written: Written<'_>,
) -> Result<Seal, Fault> {
    let Written { handoffs, tasks, known, last } = written;
    let mut seal = before.clone();
    for (new, _) in handoffs {
        let row = (!new.state.is_terminal()).then(|| handoff(key, new.id, &codec::encode(new)));
        seal.sums.replace(read.handoffs.get(&new.id).copied(), row);
    }
    for (new, _) in tasks {
        let row = counts(new).then(|| task(key, new, codec::encode_more(new).as_deref()));
        seal.sums.replace(read.tasks.get(&new.id).copied(), row);
    }
    if !known.is_empty() {
        let kinds: Vec<_> = known.iter().map(|row| row.kind).collect();
        let names: Vec<_> = known.iter().map(|row| row.name.as_str()).collect();
        let sql = "SELECT r.kind, r.name, r.at, r.data FROM registry r \
                   JOIN unnest($1::text[], $2::text[]) AS g (kind, name) \
                   ON r.kind = g.kind AND r.name = g.name";
        let values: [Value<'_>; 2] = [(&kinds, Type::TEXT_ARRAY), (&names, Type::TEXT_ARRAY)];
        for row in query(db, sql, &values).await? {
            let (kind, name) = (row.try_get(0)?, row.try_get(1)?);
            seal.sums.remove(registered(key, kind, name, row.try_get(2)?, row.try_get(3)?));
        }
        let at = sql_position(last.unwrap_or_default());
        known.iter().for_each(|row| {
            seal.sums.add(registered(key, row.kind, &row.name, at, &row.data));
        });
    }
    seal.position = last.unwrap_or(seal.position);
    seal.projected = seal.position;
    Ok(seal)
}

/// The seal at the log's end, if it is one of this key and of this moment.
pub(super) fn read(bytes: Option<&[u8]>, key: &RowKey, end: Position) -> Result<Seal, Fault> {
    let seal = bytes.and_then(|bytes| Seal::read(bytes, key));
    let seal = seal.filter(|seal| seal.position == end);
    seal.ok_or_else(|| {
        Fault::Damaged(
            "the rows of the database bear no seal of this row key for this moment; look with \
             `tasuki doctor --full --store URL`"
                .into(),
        )
    })
}

/// What the database says about its rows, and what they are, as of one moment. `lock` keeps everybody
/// from writing until the transaction ends.
async fn sum_up(
    db: &Client,
    key: &RowKey,
    lock: bool,
) -> Result<(Option<Vec<u8>>, Position, u64, Sums), Fault> {
    let sql = format!(
        "SELECT sums, position, epoch FROM log_head WHERE one{}",
        if lock { " FOR UPDATE" } else { "" }
    );
    let row = query(db, &sql, &[]).await?.pop();
    let row = row.ok_or_else(|| Fault::Damaged("the log has no end".into()))?;
    let (seal, end): (Option<Vec<u8>>, i64) = (row.try_get(0)?, row.try_get(1)?);
    let epoch = u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or(1);
    let mut sums = Sums::default();
    each(db, "SELECT id, data FROM handoff WHERE NOT ended", |row| {
        let id: Uuid = row.try_get(0)?;
        sums.add(handoff(key, HandoffId(id.as_u128()), row.try_get(1)?));
        Ok(())
    })
    .await?;
    // By their handoffs, for which there is an index; a task that no handoff of its own keeps alive is
    // not counted, whatever it says.
    let store = format!("WHERE id = '{}'", task_uuid(TaskId::STORE));
    for rest in ["WHERE id IN (SELECT task_id FROM handoff WHERE NOT ended)", &store] {
        each(db, &rows::task_sql(rest), |row| {
            let read = rows::task_of(row)?;
            if counts(&read) {
                sums.add(task(key, &read, row.try_get(18)?));
            }
            Ok(())
        })
        .await?;
    }
    each(db, "SELECT kind, name, at, data FROM registry", |row| {
        let (kind, name) = (row.try_get(0)?, row.try_get(1)?);
        sums.add(registered(key, kind, name, row.try_get(2)?, row.try_get(3)?));
        Ok(())
    })
    .await?;
    Ok((seal, rows::position(end), epoch, sums))
}

/// Hands every row over, some at a time.
async fn each(
    db: &Client,
    sql: &str,
    mut row: impl FnMut(&tokio_postgres::Row) -> Result<(), Fault>,
) -> Result<(), Fault> {
    db.batch_execute(&format!("DECLARE covered NO SCROLL CURSOR FOR {sql}")).await?;
    loop {
        let some = query(db, &format!("FETCH {AT_ONCE} FROM covered"), &[]).await?;
        some.iter().try_for_each(&mut row)?;
        if some.len() < AT_ONCE {
            return Ok(db.batch_execute("CLOSE covered").await?);
        }
    }
}

/// Whether the rows are what was written, as of one moment.
async fn fits(db: &mut Client, key: &RowKey) -> Result<bool, Fault> {
    let snapshot =
        db.build_transaction().isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
    let transaction = snapshot.read_only(true).start().await?;
    let (seal, end, _, sums) = sum_up(transaction.client(), key, false).await?;
    transaction.rollback().await?;
    let seal = read(seal.as_deref(), key, end);
    Ok(seal.is_ok_and(|seal| seal.sums == sums))
}

/// What acts by itself on our tables or stands in for one: it would change rows as we write them, or
/// show others to who serves than to who sums up.
async fn foreign(db: &Client) -> Result<Vec<String>, Fault> {
    let sql = "WITH named AS (SELECT to_regclass(name)::oid AS id FROM unnest($1::text[]) AS t (name)), \
               ours AS (SELECT id FROM named UNION SELECT i.inhrelid FROM pg_inherits i, named \
                        WHERE i.inhparent = named.id) \
               SELECT 'trigger ' || tgname FROM pg_trigger t, ours \
                   WHERE t.tgrelid = ours.id AND NOT t.tgisinternal \
               UNION ALL SELECT 'rule ' || rulename FROM pg_rewrite r, ours \
                   WHERE r.ev_class = ours.id \
               UNION ALL SELECT 'row security of ' || relname FROM pg_class c, ours \
                   WHERE c.oid = ours.id AND c.relrowsecurity \
               UNION ALL SELECT relname || ', which is no table' FROM pg_class c, ours \
                   WHERE c.oid = ours.id AND c.relkind NOT IN ('r', 'p')";
    let tables = ["log_head", "log_start", "event", "checkpoint", "task", "handoff", "registry"];
    let tables: &[&str] = &tables;
    let found = query(db, sql, &[(&tables, Type::TEXT_ARRAY)]).await?;
    found.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

fn failed(fault: &Fault) -> PostgresError {
    PostgresError::Failed { step: "sum the rows up", reason: fault.to_string() }
}

/// Before a broker serves: the rows are what their seal says, or the start is refused and the rows
/// that differ are named. Rows without a seal are compared with the log once, and sealed.
pub(super) async fn check(
    db: &mut Client,
    options: &PostgresOptions,
    clock: &Arc<dyn Clock>,
) -> Result<Option<RowKey>, PostgresError> {
    if options.believes {
        return Ok(None);
    }
    let found = query(db, "SELECT sums IS NOT NULL, position FROM log_head WHERE one", &[]).await;
    let row = found.map_err(|fault| failed(&fault))?.pop();
    let is_sealed = row.as_ref().is_some_and(|row| row.try_get(0).unwrap_or(false));
    let end = row.map_or(0, |row| row.try_get::<_, i64>(1).unwrap_or(0));
    let Some(secret) = &options.row_key else {
        return if is_sealed { Err(PostgresError::RowKey) } else { Ok(None) };
    };
    let names = foreign(db).await.map_err(|fault| failed(&fault))?;
    if !names.is_empty() {
        return Err(PostgresError::Foreign { names: names.join(", ") });
    }
    let key = RowKey::from_secret(secret);
    let was_sealed = match &options.dir {
        Some(dir) => seen::read(dir).ok().flatten().is_some_and(|seen| seen.rows),
        None => false,
    };
    if is_sealed || (was_sealed && end > 0) {
        if !fits(db, &key).await.map_err(|fault| failed(&fault))? {
            let found = differences(options, clock).await;
            return Err(found.map_or_else(|error| unnamed(&error), PostgresError::Rows));
        }
        return Ok(Some(key));
    }
    if end > 0 {
        match differences(options, clock).await {
            Ok(found) if found.is_empty() => {}
            Ok(found) => return Err(PostgresError::Rows(found)),
            Err(error) => {
                tracing::warn!(%error, "the rows are sealed as they are: they cannot be made anew");
            }
        }
    }
    seal(db, &key).await.map_err(|fault| failed(&fault))?;
    Ok(Some(key))
}

/// Seals the rows as they are, while nobody writes.
async fn seal(db: &mut Client, key: &RowKey) -> Result<(), Fault> {
    let transaction = db.build_transaction().start().await?;
    let (there, position, epoch, sums) = sum_up(transaction.client(), key, true).await?;
    // Another broker may have been faster.
    if there.is_none() {
        let seal = Seal { projected: position, position, epoch, sums }.to_bytes(key);
        let sql = "UPDATE log_head SET sums = $1 WHERE one";
        query(transaction.client(), sql, &[(&seal, Type::BYTEA)]).await?;
    }
    Ok(transaction.commit().await?)
}

/// Rows that were changed, where it cannot be found out which.
fn unnamed(error: &super::CopyError) -> PostgresError {
    tracing::error!(%error, "the rows that differ cannot be named");
    PostgresError::Rows(Vec::new())
}

async fn differences(
    options: &PostgresOptions,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<crate::sqlite::compare::Difference>, super::CopyError> {
    let cannot = |error: std::io::Error| PostgresError::Failed {
        step: "make a directory to compare in",
        reason: error.to_string(),
    };
    let beside = match &options.dir {
        Some(dir) => {
            let beside = dir.join(BESIDE);
            // Left over from a comparison that was interrupted.
            let _ = std::fs::remove_dir_all(&beside);
            crate::private::directory(&beside).map(|()| beside)
        }
        None => crate::private::scratch(),
    };
    let beside = beside.map_err(cannot)?;
    let compared =
        Box::pin(super::compare_rows(options.clone(), &beside.join("rebuilt"), clock.clone()))
            .await;
    let _ = std::fs::remove_dir_all(&beside);
    compared
}

/// Sums the rows up again and again, and ends the broker where they are not what they should be.
pub(super) async fn watch(node: Arc<Node>, key: RowKey, workers: Workers) {
    loop {
        tokio::select! {
            () = clock::pause(AGAIN) => {}
            () = node.identity_read.notified() => {}
        }
        let looked = async {
            let mut db = node.pool.get().await?;
            // A snapshot of a moment in which a primary is replaced may be of no moment at all.
            let fit = fits(&mut db, &key).await? || fits(&mut db, &key).await?;
            Ok::<_, Fault>(fit && foreign(&db).await?.is_empty())
        };
        match looked.await {
            Ok(true) => clock::pause(SOON).await,
            Ok(false) => {
                let problem = "the rows of the database are not what brokers wrote; `tasuki doctor \
                               --full --store URL` names those that differ";
                tracing::error!("{problem}");
                return workers.fail(Failure::Store(problem.into()));
            }
            Err(fault) => {
                tracing::debug!(error = %fault, "the rows could not be summed up");
                // They are looked at as soon as it can be done.
                clock::pause(SOON).await;
                node.identity_read.notify_one();
            }
        }
    }
}
