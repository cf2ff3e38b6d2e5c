// SPDX-License-Identifier: Apache-2.0
//! Queries. What they show is committed, and as new as the moment they are asked.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tasuki_core::cursor::Epochs;
use tasuki_core::event::Record;
use tasuki_core::ids::{Epoch, TenantId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::Registry;
use tasuki_core::{AgentId, Body, Hash, Position, Target, TaskId, Timestamp};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::Node;
use super::db::{Often, Value, query};
use super::error::Fault;
use super::rows::{self, sql_position};
use super::sql::{LOOK, READ_BODIES, READ_NEWS};
use crate::clock::{self, Patience};
use crate::live::KEY_MS_MAX;
use crate::{Checkpoint, Committed, EPOCH, Entry, Needs, Sight, codec};

/// How long a question is asked again.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// For how long it matters when somebody was heard of.
const PRESENCE_MS: i64 = 60_000;
/// How many events are checked or copied at a time.
pub(super) const AT_ONCE: usize = 2000;
/// The column of a look that holds a handoff.
const LOOK_DATA: usize = 19;

/// Where a database stands.
pub(super) struct End {
    pub(super) position: Position,
    pub(super) at: Timestamp,
    pub(super) timeline: i64,
    pub(super) server_timeline: i64,
    pub(super) epoch: u64,
    pub(super) live: u64,
    pub(super) waiting: u64,
    pub(super) keys: u64,
    pub(super) events_each: i64,
    pub(super) next_due: Option<Timestamp>,
}

pub(super) async fn end(db: &Client) -> Result<End, Fault> {
    let sql = "SELECT h.position, h.at, h.timeline, h.live, h.waiting, h.keys, s.each, \
                   (SELECT due_at FROM handoff WHERE NOT ended AND due_at IS NOT NULL \
                    ORDER BY due_at LIMIT 1), \
                   ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int8, \
                   h.epoch \
               FROM log_head h, log_start s";
    let row = query(db, sql, &[]).await?.pop();
    let row = row.ok_or_else(|| Fault::Damaged("the log has no end".into()))?;
    Ok(End {
        position: rows::position(row.try_get(0)?),
        at: Timestamp(row.try_get(1)?),
        timeline: row.try_get(2)?,
        live: u64::try_from(row.try_get::<_, i64>(3)?).unwrap_or(0),
        waiting: u64::try_from(row.try_get::<_, i64>(4)?).unwrap_or(0),
        keys: u64::try_from(row.try_get::<_, i64>(5)?).unwrap_or(0),
        events_each: row.try_get(6)?,
        next_due: row.try_get::<_, Option<i64>>(7)?.map(Timestamp),
        server_timeline: row.try_get(8)?,
        epoch: u64::try_from(row.try_get::<_, i64>(9)?).unwrap_or(1),
    })
}

pub(super) async fn database_now(db: &Client) -> Result<Timestamp, Fault> {
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8";
    let row = query(db, sql, &[]).await?.pop();
    let now = row.map(|row| row.try_get(0)).transpose()?;
    now.map(Timestamp).ok_or_else(|| Fault::Damaged("the database has no clock".into()))
}

/// Since when an idempotency key counts.
pub(super) fn keys_since(now: Timestamp) -> Timestamp {
    Timestamp(now.0 - i64::try_from(KEY_MS_MAX).unwrap_or(0))
}

/// Asks again while the database is away: reading twice does no harm, and a pool full of dead
/// connections has to be gone through first.
struct Again(Patience);

impl Again {
    fn new() -> Self {
        Self(Patience::of(PATIENCE))
    }

    async fn with(&mut self, fault: Fault) -> Result<(), Fault> {
        if !fault.is_passing() || self.0.ends_within(PAUSE) {
            return Err(fault);
        }
        clock::pause(PAUSE).await;
        Ok(())
    }
}

impl Node {
    pub(super) async fn ask(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        let mut patience = Again::new();
        loop {
            let asked = async {
                let db = self.pool.get().await?;
                query(&db, sql, values).await
            };
            match asked.await {
                Err(fault) => patience.with(fault).await?,
                answer => return answer,
            }
        }
    }

    /// Asks what is asked often.
    async fn ask_often(
        &self,
        often: &Often,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        let mut patience = Again::new();
        loop {
            let asked = async { self.db().await?.run(often, values).await };
            match asked.await {
                Err(fault) => patience.with(fault).await?,
                answer => return answer,
            }
        }
    }

    /// All images in one statement; bodies that this broker did not write lately in a second one.
    pub(super) async fn look(&self, needs: &Needs) -> Result<Sight, Fault> {
        let mut sight = Sight::default();
        if !needs.handoffs.is_empty() || !needs.tasks.is_empty() {
            let handoffs: Vec<_> = needs.handoffs.iter().copied().map(rows::handoff_uuid).collect();
            let tasks: Vec<_> = needs.tasks.iter().copied().map(rows::task_uuid).collect();
            for row in self.ask_often(&LOOK, &[&handoffs, &tasks]).await? {
                match row.try_get::<_, Option<&str>>(LOOK_DATA)? {
                    Some(_) => sight.put_handoff(Arc::new(rows::handoff_of(&row, LOOK_DATA)?)),
                    None => sight.put_task(Arc::new(rows::task_of(&row)?)),
                }
            }
        }
        let at = needs.bodies_of(&sight);
        let hashes = sight.hashes();
        // By hash: after a failover the same position may be another body's.
        let cached: Vec<_> = at.iter().map(|at| self.cache.get(*hashes.get(at)?)).collect();
        let missing = at.iter().zip(&cached).filter(|(_, body)| body.is_none());
        let missing: Vec<_> = missing.map(|(at, _)| *at).collect();
        sight.put_bodies(&at, cached);
        let read = self.bodies(&missing).await?;
        for (at, body) in missing.iter().zip(&read) {
            let (Some(body), Some(hash)) = (body, hashes.get(at)) else { continue };
            if body.hash != *hash {
                return Err(Fault::Lost("the log is another one than a moment ago".into()));
            }
        }
        sight.put_bodies(&missing, read);
        Ok(sight)
    }

    /// Reads what changed since `registry` was read, or everything after a failover.
    pub(super) async fn read_registry(
        &self,
        db: &Client,
        registry: &mut Arc<Registry>,
    ) -> Result<(), Fault> {
        let sql = "SELECT kind, at, data FROM registry WHERE at > $1";
        let found = query(db, sql, &[(&sql_position(registry.last_pos), Type::INT8)]).await?;
        let is_news = registry.last_pos > Position(0);
        for row in &found {
            let (kind, data): (&str, &str) = (row.try_get(0)?, row.try_get(2)?);
            if is_news && crate::registry::gives_rights(kind) {
                self.identity_read.notify_one();
            }
            let at = rows::position(row.try_get(1)?);
            crate::registry::put(Arc::make_mut(registry), kind, data, at)
                .map_err(|error| Fault::Damaged(format!("the registry holds {error}")))?;
        }
        Ok(())
    }

    pub(super) async fn save_fold(
        &self,
        name: &str,
        at: Position,
        text: &str,
    ) -> Result<(), Fault> {
        let db = self.db().await?;
        let sql = "INSERT INTO kept VALUES ($1, $2, $3)
            ON CONFLICT (name) DO UPDATE SET at = $2, data = $3 WHERE kept.at < $2";
        let at = sql_position(at);
        let values: [Value<'_>; 3] = [(&name, Type::TEXT), (&at, Type::INT8), (&text, Type::TEXT)];
        query(db.client(), sql, &values).await.map(drop)
    }

    pub(super) async fn load_fold(&self, name: &str) -> Result<Option<(Position, String)>, Fault> {
        let sql = "SELECT at, data FROM kept WHERE name = $1";
        let found = self.ask(sql, &[(&name, Type::TEXT)]).await?;
        let read = |row: &Row| Ok((rows::position(row.try_get(0)?), row.try_get(1)?));
        found.first().map(read).transpose()
    }

    pub(super) async fn epochs(&self) -> Result<Epochs, Fault> {
        let sql = "SELECT name, at FROM kept WHERE starts_with(name, $1)";
        let found = self.ask(sql, &[(&EPOCH, Type::TEXT)]).await?;
        let read = |row: &Row| -> Result<_, Fault> {
            let epoch = row.try_get::<_, &str>(0)?.strip_prefix(EPOCH);
            let epoch = epoch.and_then(|epoch| epoch.parse().ok()).unwrap_or(1);
            Ok((Epoch(epoch), rows::position(row.try_get(1)?)))
        };
        Ok(Epochs::new(found.iter().map(read).collect::<Result<_, _>>()?))
    }

    pub(super) async fn waiting(&self, targets: &[Target]) -> Result<Vec<u64>, Fault> {
        let names: Vec<_> = targets.iter().map(rows::target_text).collect();
        let sql = "
            SELECT (SELECT count(*) FROM (SELECT 1 FROM handoff h
                WHERE h.state = 'pending' AND h.target = w.target LIMIT 1000) c)
            FROM unnest($1::text[]) WITH ORDINALITY AS w (target, place) ORDER BY w.place";
        let found = self.ask(sql, &[(&names, Type::TEXT_ARRAY)]).await?;
        let count = |row: &Row| Ok(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0));
        found.iter().map(count).collect()
    }

    pub(super) async fn usage(&self, tenant: &TenantId) -> Result<Usage, Fault> {
        let sql = "SELECT live, bytes FROM usage WHERE tenant = $1";
        let found = self.ask(sql, &[(&tenant.as_str(), Type::TEXT)]).await?;
        let Some(row) = found.first() else { return Ok(Usage::default()) };
        let count = |at| Ok::<_, Fault>(u64::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0));
        Ok(Usage { in_flight: count(0)?, stored_bytes: count(1)? })
    }

    pub(super) async fn share_presence(
        &self,
        heard: &[(Target, Timestamp)],
    ) -> Result<Vec<(Target, Timestamp)>, Fault> {
        let db = self.db().await?;
        let names: Vec<_> = heard.iter().map(|(target, _)| rows::target_text(target)).collect();
        let times: Vec<_> = heard.iter().map(|(_, at)| at.0).collect();
        let sql = "
            INSERT INTO presence SELECT * FROM unnest($1::text[], $2::int8[])
            ON CONFLICT (target) DO UPDATE SET heard = greatest(presence.heard, excluded.heard)";
        let values: [Value<'_>; 2] = [(&names, Type::TEXT_ARRAY), (&times, Type::INT8_ARRAY)];
        query(db.client(), sql, &values).await?;
        let since = self.clock.now().0 - PRESENCE_MS;
        let sql = "SELECT target, heard FROM presence WHERE heard > $1 LIMIT 100000";
        let found = query(db.client(), sql, &[(&since, Type::INT8)]).await?;
        let mut others = Vec::with_capacity(found.len());
        for row in &found {
            if let Some(target) = rows::target_of(row.try_get(0)?) {
                others.push((target, Timestamp(row.try_get(1)?)));
            }
        }
        Ok(others)
    }

    pub(super) async fn manifests(&self, agents: &[AgentId]) -> Result<Vec<Option<Body>>, Fault> {
        let names: Vec<_> = agents.iter().map(AgentId::as_str).collect();
        let sql = "
            SELECT r.body, r.data, r.at FROM unnest($1::text[]) WITH ORDINALITY AS a (name, place)
            LEFT JOIN registry r ON r.kind = 'agent' AND r.name = a.name ORDER BY a.place";
        let found = self.ask(sql, &[(&names, Type::TEXT_ARRAY)]).await?;
        let body = |row: &Row| {
            let Some(text) = row.try_get::<_, Option<String>>(0)? else { return Ok(None) };
            let entry = codec::decode_entry("agent", row.try_get(1)?)
                .map_err(|error| Fault::Damaged(format!("the registry holds {error}")))?;
            let at = rows::position(row.try_get(2)?);
            whole(text, crate::registry::manifest_hash(&entry), at).map(Some)
        };
        found.iter().map(body).collect()
    }

    pub(super) async fn bodies(&self, at: &[Position]) -> Result<Vec<Option<Body>>, Fault> {
        if at.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<_> = at.iter().map(|at| sql_position(*at)).collect();
        let mut found = HashMap::new();
        for row in self.ask_often(&READ_BODIES, &[&wanted]).await? {
            let at = rows::position(row.try_get(0)?);
            if let Some(text) = row.try_get::<_, Option<String>>(1)? {
                let record: Record = serde_json::from_str(row.try_get(2)?)
                    .map_err(|error| Fault::Damaged(format!("entry {at} is no record: {error}")))?;
                found.insert(at, whole(text, record.event.body(), at)?);
            }
        }
        Ok(at.iter().map(|at| found.get(at).cloned()).collect())
    }

    pub(super) async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Fault> {
        let sql = format!("{} WHERE position > $1 ORDER BY position LIMIT $2", rows::EVENT);
        let found = self.ask(&sql, &page(&sql_position(after), &limit(max))).await?;
        found.iter().map(rows::entry_of).collect()
    }

    /// What there is to tell after a position.
    pub(super) async fn news_after(&self, after: Position, max: usize) -> Result<Committed, Fault> {
        let db = self.db().await?;
        let found = db.run(&READ_NEWS, &[&sql_position(after), &limit(max)]).await?;
        drop(db);
        let mut news = Committed::default();
        let mut events = Vec::with_capacity(found.len());
        for row in &found {
            events.push(rows::entry_of(row)?.sealed);
            let ready: Option<Vec<&str>> = row.try_get(4)?;
            news.ready.extend(ready.into_iter().flatten().filter_map(rows::target_of));
        }
        let sight = self.look(&Needs::of_events(&events)).await?;
        news.changes = events.into_iter().map(|sealed| sight.change(sealed)).collect();
        Ok(news)
    }

    /// A task's events, by following the links back from its last one: no index is needed for this.
    pub(super) async fn chain(&self, id: TaskId) -> Result<Vec<Entry>, Fault> {
        let sql = "
            WITH RECURSIVE chain AS (
                SELECT e.position, e.previous, e.hash, e.record FROM task t
                    JOIN event e ON e.position = t.at WHERE t.id = $1
                UNION ALL
                SELECT e.position, e.previous, e.hash, e.record FROM chain c
                    JOIN event e ON e.position = c.previous
            )
            SELECT position, previous, hash, record FROM chain ORDER BY position";
        let found = self.ask(sql, &[(&rows::task_uuid(id), Type::UUID)]).await?;
        found.iter().map(rows::entry_of).collect()
    }

    pub(super) async fn checkpoints(
        &self,
        after: Position,
        max: usize,
    ) -> Result<Vec<Checkpoint>, Fault> {
        let sql = "SELECT position, log_hash, at, key, signature FROM checkpoint \
                   WHERE position > $1 ORDER BY position LIMIT $2";
        let found = self.ask(sql, &page(&sql_position(after), &limit(max))).await?;
        found.iter().map(rows::checkpoint_of).collect()
    }
}

/// A body, if it still has the hash that it must have.
pub(super) fn whole(text: String, hash: Option<Hash>, at: Position) -> Result<Body, Fault> {
    let body = Body::stored(text).filter(|body| Some(body.hash) == hash);
    body.ok_or_else(|| Fault::Damaged(format!("the body of entry {at} is not what was written")))
}

pub(super) fn limit(max: usize) -> i64 {
    i64::try_from(max).unwrap_or(i64::MAX)
}

pub(super) fn page<'v>(after: &'v i64, max: &'v i64) -> [Value<'v>; 2] {
    [(after, Type::INT8), (max, Type::INT8)]
}
