// SPDX-License-Identifier: Apache-2.0
//! Tasks, handoffs and events as rows.

use rusqlite::types::{ToSql, Type, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use tasuki_core::cursor::Epochs;
use tasuki_core::decide::Replay;
use tasuki_core::event::Record;
use tasuki_core::ids::{Epoch, IdempotencyKey};
use tasuki_core::registry::Registry;
use tasuki_core::tree::Tree;
use tasuki_core::{
    AgentId, Body, Handoff, HandoffId, Hash, Position, State, Target, Task, TaskId, Timestamp,
};

use crate::audit::RawEvent;
use crate::sums::{RowHash, RowKey, Seal};
use crate::{Checkpoint, EPOCH, Entry, codec, registry};

type Result<T> = rusqlite::Result<T>;

/// Where the sums of the rows are kept.
const SEAL: &str = "row_sums";

#[derive(Debug, thiserror::Error)]
#[error("the body of entry {0} is not what was written: restore a backup")]
struct AlteredBody(Position);

/// A value in a row that is not what was written there.
pub(super) fn bad<E: std::error::Error + Send + std::marker::Sync + 'static>(
    column: usize,
) -> impl FnOnce(E) -> rusqlite::Error {
    move |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

fn parsed<T: std::str::FromStr<Err = tasuki_core::ids::Malformed>>(
    row: &Row<'_>,
    column: usize,
) -> Result<T> {
    row.get_ref(column)?.as_str()?.parse().map_err(bad(column))
}

fn parsed_maybe<T: std::str::FromStr<Err = tasuki_core::ids::Malformed>>(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<T>> {
    row.get_ref(column)?.as_str_or_null()?.map(|text| text.parse().map_err(bad(column))).transpose()
}

fn position(row: &Row<'_>, column: usize) -> Result<Position> {
    row.get::<_, i64>(column).map(|value| Position(u64::try_from(value).unwrap_or(0)))
}

pub(super) fn sql_position(position: Position) -> i64 {
    i64::try_from(position.0).unwrap_or(i64::MAX)
}

pub(super) const TASK: &str = "SELECT id, state, owner, opened_by, parent_task_id, correlation_id, intent, \
     intent_at, opened_at, ended_at, live, envelope, envelope_hop, events, head, at, project, channel, more FROM task";

pub(super) fn task_of(row: &Row<'_>) -> Result<Task> {
    let envelope: Option<[u8; 32]> = row.get(11)?;
    let hop: Option<u32> = row.get(12)?;
    let more: Option<String> = row.get(18)?;
    let mut task = Task {
        id: parsed(row, 0)?,
        state: parsed(row, 1)?,
        owner: parsed(row, 2)?,
        opened_by: parsed(row, 3)?,
        parent_task_id: parsed_maybe(row, 4)?,
        correlation_id: parsed_maybe(row, 5)?,
        intent: Hash(row.get(6)?),
        intent_pos: position(row, 7)?,
        opened_at: Timestamp(row.get(8)?),
        ended_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
        live: parsed_maybe(row, 10)?,
        envelope: envelope.map(Hash).zip(hop),
        events: row.get(13)?,
        head: Hash(row.get(14)?),
        last_pos: position(row, 15)?,
        channel: parsed_maybe(row, 17)?,
        project: parsed_maybe(row, 16)?,
        coordinator: None,
        taints: Vec::new(),
        past: None,
        last: None,
        result_pos: None,
        tree: Tree::default(),
    };
    codec::decode_more(&mut task, more.as_deref()).map_err(bad(18))?;
    Ok(task)
}

pub(super) fn put_task(db: &Connection, task: &Task) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO task VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
    let mut put = db.prepare_cached(sql)?;
    put.execute(params![
        task.id.to_string(),
        task.state.as_str(),
        task.owner.as_str(),
        task.opened_by.as_str(),
        task.parent_task_id.map(|id| id.to_string()),
        task.correlation_id.as_ref().map(|id| id.as_str()),
        task.intent.0,
        sql_position(task.intent_pos),
        task.opened_at.0,
        task.ended_at.map(|time| time.0),
        task.live.map(|id| id.to_string()),
        task.envelope.map(|(hash, _)| hash.0),
        task.envelope.map(|(_, hop)| hop),
        task.events,
        task.head.0,
        sql_position(task.last_pos),
        task.project.as_ref().map(|project| project.as_str()),
        task.channel.as_ref().map(|channel| channel.as_str()),
        codec::encode_more(task),
    ])?;
    Ok(())
}

pub(super) fn task(db: &Connection, id: TaskId) -> Result<Option<Task>> {
    let mut find = db.prepare_cached(&format!("{TASK} WHERE id = ?"))?;
    find.query_row([id.to_string()], task_of).optional()
}

pub(super) fn put_handoff(db: &Connection, handoff: &Handoff) -> Result<()> {
    let mut put =
        db.prepare_cached("INSERT OR REPLACE INTO handoff VALUES (?,?,?,?,?,?,?,?,?,?)")?;
    let (kind, name) = target(&handoff.to);
    let reviewed = matches!(&handoff.state, State::DeadLettered { review: Some(_), .. });
    put.execute(params![
        handoff.id.to_string(),
        handoff.task_id.to_string(),
        handoff.state.name().as_str(),
        handoff.state.is_terminal(),
        reviewed,
        handoff.from.as_str(),
        kind,
        name,
        handoff.offered_at.0,
        codec::encode(handoff),
    ])?;
    Ok(())
}

pub(super) fn target(to: &Target) -> (&'static str, &str) {
    match to {
        Target::Agent(agent) => ("agent", agent.as_str()),
        Target::Capability(capability) => ("capability", capability.as_str()),
    }
}

pub(super) fn handoff_of(row: &Row<'_>) -> Result<Handoff> {
    codec::decode(row.get_ref(1)?.as_str()?).map_err(bad(1))
}

pub(super) fn handoff(db: &Connection, id: HandoffId) -> Result<Option<Handoff>> {
    let mut find = db.prepare_cached("SELECT id, data FROM handoff WHERE id = ?")?;
    find.query_row([id.to_string()], handoff_of).optional()
}

pub(super) fn put_key(
    db: &Connection,
    agent: &AgentId,
    key: &IdempotencyKey,
    replay: &Replay,
    at: Timestamp,
) -> Result<()> {
    db.prepare_cached("INSERT OR REPLACE INTO idempotency VALUES (?,?,?,?,?,?,?)")?.execute(
        params![
            agent.as_str(),
            key.as_str(),
            replay.request.0,
            replay.task.to_string(),
            replay.handoff.map(|id| id.to_string()),
            at.0,
            replay.document.as_ref().map(|id| id.as_str()),
        ],
    )?;
    Ok(())
}

fn replay_of(row: &Row<'_>, first: usize) -> Result<Replay> {
    Ok(Replay {
        request: Hash(row.get(first)?),
        task: parsed(row, first + 1)?,
        handoff: parsed_maybe(row, first + 2)?,
        document: parsed_maybe(row, first + 3)?,
    })
}

pub(super) fn replay(
    db: &Connection,
    agent: &AgentId,
    key: &IdempotencyKey,
    since: Timestamp,
) -> Result<Option<Replay>> {
    let sql = "SELECT request, task, handoff, document FROM idempotency \
               WHERE agent = ? AND key = ? AND at > ?";
    let mut find = db.prepare_cached(sql)?;
    find.query_row(params![agent.as_str(), key.as_str(), since.0], |row| replay_of(row, 0))
        .optional()
}

pub(super) fn each_key(
    db: &Connection,
    since: Timestamp,
    mut each: impl FnMut((AgentId, IdempotencyKey), Replay, Timestamp),
) -> Result<()> {
    let sql = "SELECT agent, key, request, task, handoff, document, at FROM idempotency \
               WHERE at > ? ORDER BY at";
    let mut known = db.prepare(sql)?;
    let mut rows = known.query([since.0])?;
    while let Some(row) = rows.next()? {
        each((parsed(row, 0)?, parsed(row, 1)?), replay_of(row, 2)?, Timestamp(row.get(6)?));
    }
    Ok(())
}

pub(super) fn append_event(db: &Connection) -> Result<CachedStatement<'_>> {
    db.prepare_cached("INSERT INTO event VALUES (?,?,?,?,?)")
}

const EVENT: &str = "SELECT position, previous, hash, record FROM event";

pub(super) fn entry_of(row: &Row<'_>) -> Result<Entry> {
    Ok(raw_event(row, None)?.into_entry().map_err(bad(3))?.0)
}

/// An event as it is stored.
pub(super) fn raw_event(row: &Row<'_>, body: Option<String>) -> Result<RawEvent> {
    let previous: Option<i64> = row.get(1)?;
    Ok(RawEvent {
        position: position(row, 0)?,
        previous: previous.map(|value| Position(u64::try_from(value).unwrap_or(0))),
        hash: Hash(row.get(2)?),
        record: row.get(3)?,
        body,
        before: None,
    })
}

pub(super) fn events(db: &Connection, after: Position, max: usize) -> Result<Vec<Entry>> {
    let sql = format!("{EVENT} WHERE position > ? ORDER BY position LIMIT ?");
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    db.prepare_cached(&sql)?.query_map(params![sql_position(after), max], entry_of)?.collect()
}

/// A task's events, by following the links back from its last one: no index is needed for this.
pub(super) fn chain(db: &Connection, last: Position) -> Result<Vec<Entry>> {
    let mut find = db.prepare_cached(&format!("{EVENT} WHERE position = ?"))?;
    let mut entries = Vec::new();
    let mut next = Some(last);
    while let Some(at) = next {
        let Some(entry) = find.query_row([sql_position(at)], entry_of).optional()? else { break };
        next = entry.sealed.previous;
        entries.push(entry);
    }
    entries.reverse();
    Ok(entries)
}

/// The body that came with an event, if it still has the hash that its event says.
pub(super) fn body(db: &Connection, at: Position) -> Result<Option<Body>> {
    let mut find = db.prepare_cached("SELECT record, body FROM event WHERE position = ?")?;
    let read = |row: &Row<'_>| {
        let Some(text) = row.get::<_, Option<String>>(1)? else { return Ok(None) };
        let record: Record = serde_json::from_str(row.get_ref(0)?.as_str()?).map_err(bad(0))?;
        whole(Body::stored(text), record.event.body(), at).map(Some)
    };
    Ok(find.query_row([sql_position(at)], read).optional()?.flatten())
}

/// A body that has the hash it must have.
pub(super) fn whole(body: Option<Body>, hash: Option<Hash>, at: Position) -> Result<Body> {
    body.filter(|body| Some(body.hash) == hash).ok_or_else(|| bad(1)(AlteredBody(at)))
}

/// What the row of a live handoff adds to the sums, if there is one.
pub(super) fn live_handoff(
    db: &Connection,
    key: &RowKey,
    id: HandoffId,
) -> Result<Option<RowHash>> {
    let mut find = db.prepare_cached("SELECT id, data FROM handoff WHERE id = ? AND ended = 0")?;
    find.query_row([id.to_string()], |row| handoff_hash(key, row, 0, 1)).optional()
}

/// What a row adds, by the columns of its id and of everything else.
pub(super) fn handoff_hash(key: &RowKey, row: &Row<'_>, id: usize, data: usize) -> Result<RowHash> {
    Ok(key.row("handoff", row.get_ref(id)?.as_str()?, [row.get_ref(data)?.as_bytes()?]))
}

/// A task counts as long as a handoff of it is under way; the store's own always does.
pub(super) fn live_task(db: &Connection, key: &RowKey, id: TaskId) -> Result<Option<RowHash>> {
    let sql = format!("{TASK} WHERE id = ?1 AND (live IS NOT NULL OR ?2)");
    let mut find = db.prepare_cached(&sql)?;
    find.query_row(params![id.to_string(), id == TaskId::STORE], |row| task_hash(key, row))
        .optional()
}

/// Hands over what every task adds that counts.
pub(super) fn each_live_task(
    db: &Connection,
    key: &RowKey,
    mut each: impl FnMut(RowHash),
) -> Result<()> {
    let mut find = db.prepare(&format!("{TASK} INDEXED BY task_live WHERE live IS NOT NULL"))?;
    let mut found = find.query([])?;
    while let Some(row) = found.next()? {
        if row.get_ref(0)?.as_str()? != TaskId::STORE.to_string() {
            each(task_hash(key, row)?);
        }
    }
    live_task(db, key, TaskId::STORE)?.into_iter().for_each(each);
    Ok(())
}

fn task_hash(key: &RowKey, row: &Row<'_>) -> Result<RowHash> {
    let mut values = Vec::with_capacity(512);
    for column in 0..row.as_ref().column_count() {
        let value = row.get_ref(column)?;
        values.push(value.data_type() as u8);
        match value {
            ValueRef::Null => {}
            ValueRef::Integer(number) => values.extend(number.to_le_bytes()),
            ValueRef::Real(number) => values.extend(number.to_le_bytes()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                values.extend((bytes.len() as u64).to_le_bytes());
                values.extend(bytes);
            }
        }
    }
    Ok(key.row("task", row.get_ref(0)?.as_str()?, [values.as_slice()]))
}

fn registered_hash(key: &RowKey, row: &Row<'_>) -> Result<RowHash> {
    let (kind, name) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
    let at = row.get::<_, i64>(2)?.to_le_bytes();
    Ok(key.row(kind, name, [at.as_slice(), row.get_ref(3)?.as_bytes()?]))
}

const REGISTERED: &str = "SELECT kind, name, at, data FROM registry";

/// What a row of who is known adds to the sums, if there is one.
pub(super) fn registered(
    db: &Connection,
    key: &RowKey,
    row: &registry::Row,
) -> Result<Option<RowHash>> {
    let mut find = db.prepare_cached(&format!("{REGISTERED} WHERE kind = ? AND name = ?"))?;
    find.query_row(params![row.kind, row.name], |row| registered_hash(key, row)).optional()
}

pub(super) fn seal(db: &Connection, key: &RowKey) -> Result<Option<Seal>> {
    let kept: Option<Vec<u8>> = meta(db, SEAL)?;
    Ok(kept.and_then(|bytes| Seal::read(&bytes, key)))
}

pub(super) fn put_seal(db: &Connection, seal: &Seal, key: &RowKey) -> Result<()> {
    put_meta(db, SEAL, seal.to_bytes(key))
}

pub(super) fn put_checkpoint(db: &Connection, checkpoint: &Checkpoint) -> Result<()> {
    db.prepare_cached("INSERT OR REPLACE INTO checkpoint VALUES (?,?,?,?,?)")?.execute(params![
        sql_position(checkpoint.position),
        checkpoint.log_hash.0,
        checkpoint.at.0,
        checkpoint.key,
        checkpoint.signature,
    ])?;
    Ok(())
}

pub(super) fn checkpoints(db: &Connection, after: Position, max: usize) -> Result<Vec<Checkpoint>> {
    let sql = "SELECT position, log_hash, at, key, signature FROM checkpoint \
               WHERE position > ? ORDER BY position LIMIT ?";
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| {
        Ok(Checkpoint {
            position: position(row, 0)?,
            log_hash: Hash(row.get(1)?),
            at: Timestamp(row.get(2)?),
            key: row.get(3)?,
            signature: row.get(4)?,
        })
    };
    db.prepare_cached(sql)?.query_map(params![sql_position(after), max], read)?.collect()
}

pub(super) fn put_registered(db: &Connection, row: &registry::Row, at: Position) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO registry \
               VALUES (?, ?, ?, ?, (SELECT body FROM event WHERE position = ?))";
    let body_pos = row.body_pos.map(sql_position);
    let values = params![row.kind, row.name, sql_position(at), row.data, body_pos];
    db.prepare_cached(sql)?.execute(values).map(drop)
}

pub(super) fn load_registry(
    db: &Connection,
    key: &RowKey,
    to: &mut Registry,
    mut each: impl FnMut(RowHash),
) -> Result<()> {
    let mut find = db.prepare_cached(REGISTERED)?;
    let mut rows = find.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, data): (String, String) = (row.get(0)?, row.get(3)?);
        registry::put(to, &kind, &data, position(row, 2)?).map_err(bad(3))?;
        each(registered_hash(key, row)?);
    }
    Ok(())
}

pub(super) fn manifest(db: &Connection, agent: &AgentId) -> Result<Option<Body>> {
    let sql = "SELECT data, body, at FROM registry WHERE kind = 'agent' AND name = ?";
    let mut find = db.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        let Some(text) = row.get::<_, Option<String>>(1)? else { return Ok(None) };
        let entry = codec::decode_entry("agent", row.get_ref(0)?.as_str()?).map_err(bad(0))?;
        whole(Body::stored(text), registry::manifest_hash(&entry), position(row, 2)?).map(Some)
    };
    Ok(find.query_row([agent.as_str()], read).optional()?.flatten())
}

pub(super) fn add_usage(db: &Connection, tenant: &str, bytes: i64) -> Result<()> {
    let sql = "INSERT INTO usage VALUES (?1, ?2) \
               ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + ?2";
    db.prepare_cached(sql)?.execute(params![tenant, bytes]).map(drop)
}

pub(super) fn each_usage(db: &Connection, mut each: impl FnMut(String, u64)) -> Result<()> {
    let mut find = db.prepare_cached("SELECT tenant, bytes FROM usage")?;
    let mut rows = find.query([])?;
    while let Some(row) = rows.next()? {
        each(row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0));
    }
    Ok(())
}

pub(super) fn save_fold(db: &Connection, name: &str, at: Position, text: &str) -> Result<()> {
    let sql = "INSERT INTO kept VALUES (?1, ?2, ?3) \
               ON CONFLICT (name) DO UPDATE SET at = ?2, data = ?3 WHERE at < ?2";
    db.prepare_cached(sql)?.execute(params![name, sql_position(at), text]).map(drop)
}

pub(super) fn load_fold(db: &Connection, name: &str) -> Result<Option<(Position, String)>> {
    let mut find = db.prepare_cached("SELECT at, data FROM kept WHERE name = ?")?;
    find.query_row([name], |row| Ok((position(row, 0)?, row.get(1)?))).optional()
}

/// Notes an epoch and where it begins.
pub(super) fn raise_epoch(db: &Connection, epoch: u64, at: Position) -> Result<()> {
    put_meta(db, "epoch", i64::try_from(epoch).unwrap_or(i64::MAX))?;
    save_fold(db, &format!("{EPOCH}{epoch}"), at, "")
}

pub(super) fn epochs(db: &Connection) -> Result<Epochs> {
    let mut find = db.prepare_cached("SELECT name, at FROM kept WHERE name GLOB ?1 || '*'")?;
    let found = find.query_map([EPOCH], |row| {
        let epoch = row.get::<_, String>(0)?.strip_prefix(EPOCH).and_then(|it| it.parse().ok());
        Ok((Epoch(epoch.unwrap_or(1)), position(row, 1)?))
    });
    Ok(Epochs::new(found?.collect::<Result<_>>()?))
}

pub(super) fn meta<T: rusqlite::types::FromSql>(db: &Connection, name: &str) -> Result<Option<T>> {
    let mut find = db.prepare_cached("SELECT value FROM meta WHERE name = ?")?;
    find.query_row([name], |row| row.get(0)).optional()
}

pub(super) fn put_meta(db: &Connection, name: &str, value: impl ToSql) -> Result<()> {
    db.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?, ?)")?
        .execute(params![name, value])?;
    Ok(())
}
