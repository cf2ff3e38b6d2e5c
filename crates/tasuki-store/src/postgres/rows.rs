// SPDX-License-Identifier: Apache-2.0
//! Tasks, handoffs and events as rows, many at a time: a batch is written with one statement for
//! each table, whatever its size.

use std::sync::Arc;

use tasuki_core::decide::Replay;
use tasuki_core::event::{Record, Sealed};
use tasuki_core::ids::{IdempotencyKey, Malformed};
use tasuki_core::tree::Tree;
use tasuki_core::{
    AgentId, Event, Handoff, HandoffId, Hash, Position, State, Target, Task, TaskId, Timestamp,
};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::db::{Db, Often, Value, query};
use super::error::Fault;
use crate::live::Appended;
use crate::{Checkpoint, EPOCH, Entry, codec, registry};

type Result<T> = std::result::Result<T, Fault>;

pub(super) fn sql_position(position: Position) -> i64 {
    i64::try_from(position.0).unwrap_or(i64::MAX)
}

pub(super) fn position(value: i64) -> Position {
    Position(u64::try_from(value).unwrap_or(0))
}

pub(super) fn task_uuid(id: TaskId) -> Uuid {
    Uuid::from_u128(id.0)
}

pub(super) fn handoff_uuid(id: HandoffId) -> Uuid {
    Uuid::from_u128(id.0)
}

/// A target as one text, which is what indexes need.
pub(super) fn target_text(target: &Target) -> String {
    match target {
        Target::Agent(agent) => format!("agent:{agent}"),
        Target::Capability(capability) => format!("capability:{capability}"),
    }
}

pub(super) fn target_of(text: &str) -> Option<Target> {
    let (kind, name) = text.split_once(':')?;
    match kind {
        "agent" => name.parse().ok().map(Target::Agent),
        "capability" => name.parse().ok().map(Target::Capability),
        _ => None,
    }
}

pub(super) fn hash(row: &Row, column: usize) -> Result<Hash> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map(Hash).map_err(|_| malformed("a hash that is not 32 bytes long"))
}

fn malformed(what: &str) -> Fault {
    Fault::Damaged(format!("the database holds {what}"))
}

fn parsed<T: std::str::FromStr<Err = Malformed>>(row: &Row, column: usize) -> Result<T> {
    let text: &str = row.try_get(column)?;
    text.parse().map_err(|error: Malformed| malformed(&format!("{text:?}: {error}")))
}

const TASK: &str = "SELECT id, state, owner, opened_by, parent_task_id, correlation_id, intent, \
     intent_at, opened_at, ended_at, live, envelope, envelope_hop, events, head, at, project, channel, more FROM task";

pub(super) fn task_sql(rest: &str) -> String {
    format!("{TASK} {rest}")
}

pub(super) fn task_of(row: &Row) -> Result<Task> {
    let uuid = |column| row.try_get::<_, Option<Uuid>>(column);
    let correlation: Option<&str> = row.try_get(5)?;
    let project: Option<&str> = row.try_get(16)?;
    let envelope = match row.try_get::<_, Option<&[u8]>>(11)? {
        None => None,
        Some(_) => Some(hash(row, 11)?),
    };
    let hop: Option<i64> = row.try_get(12)?;
    let channel: Option<&str> = row.try_get(17)?;
    let mut task = Task {
        id: TaskId(row.try_get::<_, Uuid>(0)?.as_u128()),
        state: parsed(row, 1)?,
        owner: parsed(row, 2)?,
        opened_by: parsed(row, 3)?,
        parent_task_id: uuid(4)?.map(|id| TaskId(id.as_u128())),
        correlation_id: correlation.map(|_| parsed(row, 5)).transpose()?,
        intent: hash(row, 6)?,
        intent_pos: position(row.try_get(7)?),
        opened_at: Timestamp(row.try_get(8)?),
        ended_at: row.try_get::<_, Option<i64>>(9)?.map(Timestamp),
        live: uuid(10)?.map(|id| HandoffId(id.as_u128())),
        envelope: envelope.zip(hop.map(|hop| u32::try_from(hop).unwrap_or(0))),
        events: u32::try_from(row.try_get::<_, i64>(13)?).unwrap_or(u32::MAX),
        head: hash(row, 14)?,
        last_pos: position(row.try_get(15)?),
        channel: channel.map(|_| parsed(row, 17)).transpose()?,
        project: project.map(|_| parsed(row, 16)).transpose()?,
        coordinator: None,
        taints: Vec::new(),
        past: None,
        last: None,
        result_pos: None,
        tree: Tree::default(),
    };
    codec::decode_more(&mut task, row.try_get(18)?)
        .map_err(|error| malformed(&error.to_string()))?;
    Ok(task)
}

pub(super) fn handoff_of(row: &Row, column: usize) -> Result<Handoff> {
    let data: &str = row.try_get(column)?;
    codec::decode(data).map_err(|error| malformed(&error.to_string()))
}

pub(super) const PUT_USAGE: Often = Often {
    sql: "
    INSERT INTO usage SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[])
    ON CONFLICT (tenant) DO UPDATE
    SET live = usage.live + excluded.live, bytes = usage.bytes + excluded.bytes",
    types: &[Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY],
};

/// Adds to what tenants use. The log's end is locked, so nobody else does at the same time.
pub(super) async fn put_usage(db: &Db, used: &[(String, i64, i64)]) -> Result<()> {
    if used.is_empty() {
        return Ok(());
    }
    let tenants: Vec<_> = used.iter().map(|(tenant, ..)| tenant.as_str()).collect();
    let live: Vec<_> = used.iter().map(|(_, live, _)| *live).collect();
    let bytes: Vec<_> = used.iter().map(|(.., bytes)| *bytes).collect();
    db.run(&PUT_USAGE, &[&tenants, &live, &bytes]).await.map(drop)
}

/// Writes agents, tokens and tenants as they are after the event at `at`.
pub(super) async fn put_registered(
    db: &Client,
    known: &[registry::Row],
    at: Option<Position>,
) -> Result<()> {
    let at = sql_position(at.unwrap_or_default());
    for row in known {
        let sql = "
            INSERT INTO registry VALUES ($1, $2, $3, $4,
                (SELECT body FROM event WHERE position = $5))
            ON CONFLICT (kind, name) DO UPDATE
            SET at = excluded.at, data = excluded.data,
                body = coalesce(excluded.body, registry.body)";
        let body_pos = row.body_pos.map(sql_position);
        let values: [Value<'_>; 5] = [
            (&row.kind, Type::TEXT),
            (&row.name, Type::TEXT),
            (&at, Type::INT8),
            (&row.data, Type::TEXT),
            (&body_pos, Type::INT8),
        ];
        query(db, sql, &values).await?;
    }
    Ok(())
}

/// Writes tasks: new ones, and old ones that nobody changed since they were read. If somebody did
/// change one, the statement fails, and the transaction with it.
pub(super) async fn put_tasks(db: &Db, tasks: &[(Arc<Task>, Option<Position>)]) -> Result<()> {
    if tasks.is_empty() {
        return Ok(());
    }
    let all = || tasks.iter().map(|(task, _)| task);
    let ids: Vec<_> = all().map(|task| task_uuid(task.id)).collect();
    let states: Vec<_> = all().map(|task| task.state.as_str()).collect();
    let owners: Vec<_> = all().map(|task| task.owner.as_str()).collect();
    let openers: Vec<_> = all().map(|task| task.opened_by.as_str()).collect();
    let parents: Vec<_> = all().map(|task| task.parent_task_id.map(task_uuid)).collect();
    let correlations: Vec<_> =
        all().map(|task| task.correlation_id.as_ref().map(|id| id.as_str())).collect();
    let intents: Vec<_> = all().map(|task| &task.intent.0[..]).collect();
    let intents_at: Vec<_> = all().map(|task| sql_position(task.intent_pos)).collect();
    let opened: Vec<_> = all().map(|task| task.opened_at.0).collect();
    let ended: Vec<_> = all().map(|task| task.ended_at.map(|at| at.0)).collect();
    let live: Vec<_> = all().map(|task| task.live.map(handoff_uuid)).collect();
    let envelopes: Vec<_> =
        all().map(|task| task.envelope.as_ref().map(|(hash, _)| &hash.0[..])).collect();
    let hops: Vec<_> = all().map(|task| task.envelope.map(|(_, hop)| i64::from(hop))).collect();
    let events: Vec<_> = all().map(|task| i64::from(task.events)).collect();
    let heads: Vec<_> = all().map(|task| &task.head.0[..]).collect();
    let at: Vec<_> = all().map(|task| sql_position(task.last_pos)).collect();
    let known: Vec<_> = tasks.iter().map(|(_, known)| known.map(sql_position)).collect();
    let projects: Vec<_> =
        all().map(|task| task.project.as_ref().map(|project| project.as_str())).collect();
    let channels: Vec<_> =
        all().map(|task| task.channel.as_ref().map(|channel| channel.as_str())).collect();
    let more: Vec<_> = all().map(|task| codec::encode_more(task)).collect();
    let values: [&(dyn ToSql + Sync); 20] = [
        &ids,
        &states,
        &owners,
        &openers,
        &parents,
        &correlations,
        &intents,
        &intents_at,
        &opened,
        &ended,
        &live,
        &envelopes,
        &hops,
        &events,
        &heads,
        &at,
        &known,
        &projects,
        &channels,
        &more,
    ];
    db.run(&PUT_TASKS, &values).await.map(drop)
}

/// `known` is the version that was read; without one the row must not be there. The division fails
/// where the numbers differ.
pub(super) const PUT_TASKS: Often = Often {
    sql: "
    WITH given AS (
        SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[],
            $7::bytea[], $8::int8[], $9::int8[], $10::int8[], $11::uuid[], $12::bytea[],
            $13::int8[], $14::int8[], $15::bytea[], $16::int8[], $17::int8[], $18::text[],
            $19::text[], $20::text[])
        AS g (id, state, owner, opened_by, parent_task_id, correlation_id, intent, intent_at,
            opened_at, ended_at, live, envelope, envelope_hop, events, head, at, known, project,
            channel, more)
    ), changed AS (
        UPDATE task SET state = g.state, owner = g.owner, ended_at = g.ended_at, live = g.live,
            envelope = g.envelope, envelope_hop = g.envelope_hop, events = g.events,
            head = g.head, at = g.at, more = g.more
        FROM given g WHERE g.known IS NOT NULL AND task.id = g.id AND task.at = g.known
        RETURNING 1
    ), added AS (
        INSERT INTO task SELECT id, state, owner, opened_by, parent_task_id, correlation_id, intent,
            intent_at, opened_at, ended_at, live, envelope, envelope_hop, events, head, at, project,
            channel, more
        FROM given WHERE known IS NULL
        RETURNING 1
    )
    SELECT 1 / (((SELECT count(*) FROM changed) + (SELECT count(*) FROM added)
        = cardinality($1))::int)",
    types: &[
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
    ],
};

/// Writes handoffs, by the same rule as [`put_tasks`]. This is also the guarded completion: what
/// was decided counts only if the row still is what the decision saw.
pub(super) async fn put_handoffs(
    db: &Db,
    handoffs: &[(Arc<Handoff>, Option<Position>)],
) -> Result<()> {
    if handoffs.is_empty() {
        return Ok(());
    }
    let all = || handoffs.iter().map(|(handoff, _)| handoff);
    let ids: Vec<_> = all().map(|h| handoff_uuid(h.id)).collect();
    let tasks: Vec<_> = all().map(|h| task_uuid(h.task_id)).collect();
    let states: Vec<_> = all().map(|h| h.state.name().as_str()).collect();
    let ended: Vec<_> = all().map(|h| h.state.is_terminal()).collect();
    let reviewed: Vec<_> =
        all().map(|h| matches!(&h.state, State::DeadLettered { review: Some(_), .. })).collect();
    let from: Vec<_> = all().map(|h| h.from.as_str()).collect();
    let targets: Vec<_> = all().map(|h| target_text(&h.to)).collect();
    let haste: Vec<_> = all().map(|h| h.rank().map(|rank| i16::from(rank.urgency_rank))).collect();
    let ready: Vec<_> = all().map(|h| h.rank().map(|rank| sql_position(rank.ready))).collect();
    let turns: Vec<_> = all().map(|h| h.rank().map(|rank| sql_position(rank.turn))).collect();
    let offered: Vec<_> = all().map(|h| sql_position(h.offered_pos)).collect();
    let keys: Vec<_> = all().map(|h| h.ordering_key.as_ref().map(|key| key.as_str())).collect();
    // An array of arrays would have to be rectangular, so each list travels as one text.
    let declined: Vec<_> = all()
        .map(|h| h.declined_by.iter().map(AgentId::as_str).collect::<Vec<_>>().join("\n"))
        .collect();
    let holders: Vec<_> = all().map(|h| h.state.worker().map(AgentId::as_str)).collect();
    let requests: Vec<_> = all()
        .map(|h| h.state.claim().and_then(|c| c.request_id.as_ref()).map(|id| id.as_str()))
        .collect();
    let due: Vec<_> = all().map(|h| h.due_at().map(|at| at.0)).collect();
    let at: Vec<_> = all().map(|h| sql_position(h.last_pos)).collect();
    let data: Vec<_> = all().map(|h| codec::encode(h)).collect();
    let known: Vec<_> = handoffs.iter().map(|(_, known)| known.map(sql_position)).collect();
    let values: [&(dyn ToSql + Sync); 19] = [
        &ids, &tasks, &states, &ended, &reviewed, &from, &targets, &haste, &ready, &offered, &keys,
        &declined, &holders, &requests, &due, &at, &data, &known, &turns,
    ];
    db.run(&PUT_HANDOFFS, &values).await.map(drop)
}

pub(super) const PUT_HANDOFFS: Often = Often {
    sql: "
    WITH given AS (
        SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bool[], $5::bool[], $6::text[],
            $7::text[], $8::int2[], $9::int8[], $10::int8[], $11::text[], $12::text[], $13::text[],
            $14::text[], $15::int8[], $16::int8[], $17::text[], $18::int8[], $19::int8[])
        AS g (id, task_id, state, ended, reviewed, from_agent, target, haste, ready, offered,
            ordering_key, declined_by, holder, request_id, due_at, at, data, known, turn)
    ), changed AS (
        UPDATE handoff SET state = g.state, ended = g.ended, reviewed = g.reviewed,
            target = g.target, haste = g.haste, ready = g.ready, turn = g.turn,
            declined_by = string_to_array(g.declined_by, E'\\n'), holder = g.holder,
            request_id = g.request_id, due_at = g.due_at, at = g.at, data = g.data
        FROM given g WHERE g.known IS NOT NULL AND handoff.id = g.id AND handoff.at = g.known
        RETURNING 1
    ), added AS (
        INSERT INTO handoff SELECT id, task_id, state, ended, reviewed, from_agent, target, haste,
            ready, offered, ordering_key, string_to_array(declined_by, E'\\n'), holder, request_id,
            due_at, at, data, turn
        FROM given WHERE known IS NULL
        RETURNING 1
    )
    SELECT 1 / (((SELECT count(*) FROM changed) + (SELECT count(*) FROM added)
        = cardinality($1))::int)",
    types: &[
        Type::UUID_ARRAY,
        Type::UUID_ARRAY,
        Type::TEXT_ARRAY,
        Type::BOOL_ARRAY,
        Type::BOOL_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT2_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
    ],
};

/// Appends events. The targets that became claimable stand beside the last one.
pub(super) async fn put_events(db: &Db, batch: &[Appended], ready: &[Target]) -> Result<()> {
    let Some(last) = batch.last().map(|appended| sql_position(appended.sealed.position)) else {
        return Ok(());
    };
    let at: Vec<_> = batch.iter().map(|a| sql_position(a.sealed.position)).collect();
    let previous: Vec<_> = batch.iter().map(|a| a.sealed.previous.map(sql_position)).collect();
    let hashes: Vec<_> = batch.iter().map(|a| &a.sealed.hash.0[..]).collect();
    let times: Vec<_> = batch.iter().map(|a| a.sealed.record.at.0).collect();
    let records: Vec<_> =
        batch.iter().map(|a| std::str::from_utf8(&a.encoded).expect("JSON is UTF-8")).collect();
    let bodies: Vec<_> =
        batch.iter().map(|a| a.body.as_ref().map(tasuki_core::Body::text)).collect();
    let ready: Option<Vec<String>> =
        (!ready.is_empty()).then(|| ready.iter().map(target_text).collect());
    let values: [&(dyn ToSql + Sync); 8] =
        [&at, &previous, &hashes, &times, &records, &bodies, &last, &ready];
    db.run(&PUT_EVENTS, &values).await.map(drop)
}

pub(super) const PUT_EVENTS: Often = Often {
    sql: "
    INSERT INTO event (position, previous, hash, at, record, body, ready)
    SELECT g.*, CASE WHEN g.position = $7 THEN $8::text[] END
    FROM unnest($1::int8[], $2::int8[], $3::bytea[], $4::int8[], $5::text[], $6::text[])
    AS g (position, previous, hash, at, record, body)",
    types: &[
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8,
        Type::TEXT_ARRAY,
    ],
};

/// One row of `idempotency`.
pub(super) type KeyRow<'k> = (&'k AgentId, &'k IdempotencyKey, Replay, Timestamp);

/// Writes keys down, and counts them at the log's end.
pub(super) async fn put_keys(db: &Client, keys: &[KeyRow<'_>]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let agents: Vec<_> = keys.iter().map(|(agent, ..)| agent.as_str()).collect();
    let words: Vec<_> = keys.iter().map(|(_, key, ..)| key.as_str()).collect();
    let requests: Vec<_> = keys.iter().map(|(_, _, replay, _)| &replay.request.0[..]).collect();
    let tasks: Vec<_> = keys.iter().map(|(_, _, replay, _)| task_uuid(replay.task)).collect();
    let handoffs: Vec<_> = keys.iter().map(|(_, _, r, _)| r.handoff.map(handoff_uuid)).collect();
    let at: Vec<_> = keys.iter().map(|(.., at)| at.0).collect();
    let documents: Vec<_> =
        keys.iter().map(|(_, _, r, _)| r.document.as_ref().map(|id| id.as_str())).collect();
    // A key that is there already is one whose day is over.
    let sql = "
        WITH put AS (
            INSERT INTO idempotency SELECT * FROM unnest(
                $1::text[], $2::text[], $3::bytea[], $4::uuid[], $5::uuid[], $6::int8[],
                $7::text[])
            ON CONFLICT (agent, key) DO UPDATE SET request = excluded.request,
                task = excluded.task, handoff = excluded.handoff, at = excluded.at,
                document = excluded.document
            RETURNING xmax = 0 AS added
        )
        UPDATE log_head SET keys = keys + (SELECT count(*) FROM put WHERE added)";
    let values: [Value<'_>; 7] = [
        (&agents, Type::TEXT_ARRAY),
        (&words, Type::TEXT_ARRAY),
        (&requests, Type::BYTEA_ARRAY),
        (&tasks, Type::UUID_ARRAY),
        (&handoffs, Type::UUID_ARRAY),
        (&at, Type::INT8_ARRAY),
        (&documents, Type::TEXT_ARRAY),
    ];
    query(db, sql, &values).await.map(drop)
}

/// Forgets some keys whose day is over.
pub(super) async fn forget_keys(db: &Client, since: Timestamp) -> Result<()> {
    let sql = "
        WITH gone AS (
            DELETE FROM idempotency WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM idempotency WHERE at <= $1 ORDER BY at LIMIT 1000))
            RETURNING 1
        )
        UPDATE log_head SET keys = keys - (SELECT count(*) FROM gone)
        WHERE EXISTS (SELECT 1 FROM gone)";
    query(db, sql, &[(&since.0, Type::INT8)]).await.map(drop)
}

pub(super) fn replay_of(row: &Row) -> Result<((AgentId, IdempotencyKey), Replay, Timestamp)> {
    let key = (parsed(row, 0)?, parsed(row, 1)?);
    let replay = Replay {
        request: hash(row, 2)?,
        task: TaskId(row.try_get::<_, Uuid>(3)?.as_u128()),
        handoff: row.try_get::<_, Option<Uuid>>(4)?.map(|id| HandoffId(id.as_u128())),
        document: match row.try_get::<_, Option<&str>>(6)? {
            None => None,
            Some(_) => Some(parsed(row, 6)?),
        },
    };
    Ok((key, replay, Timestamp(row.try_get(5)?)))
}

pub(super) const EVENT: &str = "SELECT position, previous, hash, record FROM event";

pub(super) fn entry_of(row: &Row) -> Result<Entry> {
    let encoded: String = row.try_get(3)?;
    let record: Record = serde_json::from_str(&encoded)
        .map_err(|error| malformed(&format!("an event that is no record: {error}")))?;
    let sealed = Sealed {
        position: position(row.try_get(0)?),
        previous: row.try_get::<_, Option<i64>>(1)?.map(position),
        hash: hash(row, 2)?,
        record,
    };
    Ok(Entry { sealed, encoded })
}

pub(super) async fn put_checkpoint(db: &Client, checkpoint: &Checkpoint) -> Result<()> {
    let sql = "INSERT INTO checkpoint VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (position) DO NOTHING";
    let values: [Value<'_>; 5] = [
        (&sql_position(checkpoint.position), Type::INT8),
        (&&checkpoint.log_hash.0[..], Type::BYTEA),
        (&checkpoint.at.0, Type::INT8),
        (&&checkpoint.key[..], Type::BYTEA),
        (&&checkpoint.signature[..], Type::BYTEA),
    ];
    query(db, sql, &values).await.map(drop)
}

/// Notes the epochs that were raised, and where they begin.
pub(super) async fn put_epochs(db: &Client, batch: &[Appended]) -> Result<()> {
    for Sealed { position, record, .. } in batch.iter().map(|appended| &appended.sealed) {
        if let Event::EpochRaised { epoch } = &record.event {
            let sql = "INSERT INTO kept VALUES ($1, $2, '')
                ON CONFLICT (name) DO UPDATE SET at = $2";
            let name = format!("{EPOCH}{epoch}");
            let values: [Value<'_>; 2] =
                [(&name, Type::TEXT), (&sql_position(*position), Type::INT8)];
            query(db, sql, &values).await?;
        }
    }
    Ok(())
}

pub(super) fn checkpoint_of(row: &Row) -> Result<Checkpoint> {
    let array = |column: usize| -> Result<&[u8]> { Ok(row.try_get(column)?) };
    let wrong = |_| malformed("a checkpoint whose key or signature has another length");
    Ok(Checkpoint {
        position: position(row.try_get(0)?),
        log_hash: hash(row, 1)?,
        at: Timestamp(row.try_get(2)?),
        key: array(3)?.try_into().map_err(wrong)?,
        signature: array(4)?.try_into().map_err(wrong)?,
    })
}
