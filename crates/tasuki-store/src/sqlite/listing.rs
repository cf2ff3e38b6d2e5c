// SPDX-License-Identifier: Apache-2.0
//! Listings: pages of rows by filter, each by the list that knows most of what is asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Result, Row, params_from_iter};
use tasuki_core::handoff::StateName;
use tasuki_core::ids::TenantId;
use tasuki_core::{Handoff, HandoffId, Task, TaskId, Timestamp};

use super::rows::{self, sql_position};
use crate::listing::{HandoffList, TaskList, handoff_words, task_words, tenant_begins};
use crate::{Counts, HandoffFilter, TaskFilter};

/// The word that a handoff is filed under, as the indexes spell it.
pub(super) const HANDOFF_WORD: &str = "(CASE WHEN reviewed THEN 'reviewed' ELSE state END)";

pub(super) fn handoffs(db: &Connection, filter: &HandoffFilter) -> Result<Vec<Arc<Handoff>>> {
    if let Some(task) = filter.task {
        return handoffs_of(db, task, filter);
    }
    match handoff_query(filter) {
        None => Ok(Vec::new()),
        Some(query) => query.read(db, |row| rows::handoff_of(row).map(Arc::new)),
    }
}

fn handoff_query(filter: &HandoffFilter) -> Option<Query> {
    let words = handoff_words(filter);
    if words.is_empty() {
        return None;
    }
    let list = HandoffList::of(filter);
    let mut query = Query::new("SELECT id, data FROM handoff", list.index());
    if list == HandoffList::Live {
        query.conditions.push_str(" AND ended = 0");
    }
    query.of_tenant("from_agent", filter.tenant.as_ref());
    query.and_maybe("from_agent =", filter.from.as_ref().map(ToString::to_string));
    if let Some(to) = &filter.to {
        let (kind, name) = rows::target(to);
        query.and("to_kind =", kind.to_owned());
        query.and("to_name =", name.to_owned());
    }
    query.and_maybe("id <", filter.before.map(|id| id.to_string()));
    query.filed_under(HANDOFF_WORD, &words, list != HandoffList::All);
    query.limit("id DESC", filter.max);
    Some(query)
}

/// A task's handoffs are those that its events name, so finding them needs no index, which each
/// handoff would pay for.
fn handoffs_of(db: &Connection, id: TaskId, filter: &HandoffFilter) -> Result<Vec<Arc<Handoff>>> {
    let Some(task) = rows::task(db, id)? else { return Ok(Vec::new()) };
    let chain = rows::chain(db, task.last_pos)?;
    let named: BTreeSet<HandoffId> =
        chain.iter().filter_map(|entry| entry.sealed.record.handoff_id).collect();
    let mut found = Vec::new();
    for id in named.into_iter().rev() {
        if found.len() == filter.max {
            break;
        }
        let handoff = rows::handoff(db, id)?.filter(|handoff| filter.lets_through(handoff));
        found.extend(handoff.map(Arc::new));
    }
    Ok(found)
}

pub(super) fn tasks(db: &Connection, filter: &TaskFilter) -> Result<Vec<Arc<Task>>> {
    task_query(filter).read(db, |row| rows::task_of(row).map(Arc::new))
}

fn task_query(filter: &TaskFilter) -> Query {
    let list = TaskList::of(filter);
    let mut query = Query::new(rows::TASK, list.index());
    query.and("id <>", TaskId::STORE.to_string());
    query.of_tenant("owner", filter.tenant.as_ref());
    query.and_maybe("owner =", filter.owner.as_ref().map(ToString::to_string));
    query.and_maybe("parent_task_id =", filter.parent.map(|id| id.to_string()));
    query.and_maybe("project =", filter.project.as_ref().map(ToString::to_string));
    let correlation = filter.correlation.as_ref();
    query.and_maybe("correlation_id =", correlation.map(ToString::to_string));
    query.and_maybe("channel =", filter.channel.as_ref().map(ToString::to_string));
    query.and_maybe("id <", filter.before.map(|id| id.to_string()));
    query.and_maybe("intent_at >", filter.after.map(sql_position));
    query.filed_under("state", &task_words(filter), list.has_words());
    query.limit(if filter.after.is_some() { "intent_at" } else { "id DESC" }, filter.max);
    query
}

/// Adds what a tenant has on disk: dead letters that nobody has decided on, and tasks.
pub(super) fn count(db: &Connection, tenant: &str, counts: &mut Counts) -> Result<()> {
    let begins = tenant_begins(&tenant.parse().unwrap_or_default());
    let oldest = |sql: &str, id: Option<String>| -> Result<Option<Timestamp>> {
        let Some(id) = id else { return Ok(None) };
        db.prepare_cached(sql)?.query_row([id], |row| row.get(0).map(Timestamp)).optional()
    };
    let dead = StateName::DeadLettered;
    if let Some(count) = counts.handoffs_in(dead) {
        let sql = format!(
            "SELECT count(*), min(id) FROM handoff INDEXED BY handoff_tenant \
             WHERE substr(from_agent, 1, instr(from_agent, '/')) = ?1 AND {HANDOFF_WORD} = ?2"
        );
        let mut find = db.prepare_cached(&sql)?;
        let (found, first) = find.query_row([&begins, dead.as_str()], counted)?;
        count.add(found, oldest("SELECT offered_at FROM handoff WHERE id = ?", first)?);
    }
    for count in &mut counts.tasks {
        let sql = "SELECT count(*), min(id) FROM task INDEXED BY task_tenant \
                   WHERE substr(owner, 1, instr(owner, '/')) = ?1 AND state = ?2 AND id <> ?3";
        let mut find = db.prepare_cached(sql)?;
        let values = [&begins, count.state.as_str(), &TaskId::STORE.to_string()];
        let (found, first) = find.query_row(values, counted)?;
        count.add(found, oldest("SELECT opened_at FROM task WHERE id = ?", first)?);
    }
    Ok(())
}

fn counted(row: &Row<'_>) -> Result<(u64, Option<String>)> {
    Ok((u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0), row.get(1)?))
}

/// Every task, the store's own included.
pub(super) fn all_tasks(
    db: &Connection,
    before: Option<TaskId>,
    max: usize,
) -> Result<Vec<Arc<Task>>> {
    let mut query = Query::new(rows::TASK, None);
    query.and_maybe("id <", before.map(|id| id.to_string()));
    query.limit("id DESC", max);
    query.read(db, |row| rows::task_of(row).map(Arc::new))
}

/// Conditions that are put together and their values, which are always bound.
struct Query {
    select: String,
    conditions: String,
    /// Each once for what is filed under each of these; otherwise all at once.
    arms: Vec<String>,
    end: String,
    values: Vec<Value>,
}

impl Query {
    /// A query that may use one index and no other, so that it fails rather than walk the table
    /// should the two ever not fit.
    fn new(select: &str, index: Option<&str>) -> Self {
        let by = index.map_or(" NOT INDEXED".to_owned(), |index| format!(" INDEXED BY {index}"));
        Self {
            select: format!("{select}{by} WHERE 1"),
            conditions: String::new(),
            arms: Vec::new(),
            end: String::new(),
            values: Vec::new(),
        }
    }

    fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        self.conditions.push_str(&format!(" AND {condition} ?{}", self.values.len()));
    }

    fn and_maybe(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.and(condition, value);
        }
    }

    /// Those whose name in a column belongs to a tenant.
    fn of_tenant(&mut self, column: &str, tenant: Option<&TenantId>) {
        let begins = format!("substr({column}, 1, instr({column}, '/')) =");
        self.and_maybe(&begins, tenant.map(tenant_begins));
    }

    /// Those under some words. A list is in order under each word, so one that has them is read at
    /// several places at once and merged.
    fn filed_under(&mut self, column: &str, words: &[&'static str], merged: bool) {
        if merged {
            self.arms = words.iter().map(|word| format!(" AND {column} = '{word}'")).collect();
        } else {
            self.conditions.push_str(&format!(" AND {column} IN ('{}')", words.join("', '")));
        }
    }

    fn limit(&mut self, order: &str, max: usize) {
        self.values.push(i64::try_from(max).unwrap_or(i64::MAX).into());
        self.end = format!(" ORDER BY {order} LIMIT ?{}", self.values.len());
    }

    fn sql(&self) -> String {
        let Self { select, conditions, arms, end, .. } = self;
        let arms = match arms.as_slice() {
            [] => format!("{select}{conditions}"),
            arms => {
                let arm = |word: &String| format!("{select}{conditions}{word}");
                arms.iter().map(arm).collect::<Vec<_>>().join(" UNION ALL ")
            }
        };
        format!("{arms}{end}")
    }

    fn read<T>(&self, db: &Connection, read: impl FnMut(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
        db.prepare_cached(&self.sql())?.query_map(params_from_iter(&self.values), read)?.collect()
    }
}

#[cfg(test)]
mod tests;
