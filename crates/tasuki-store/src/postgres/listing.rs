// SPDX-License-Identifier: Apache-2.0
//! Listings: pages of rows by filter, each by the list that knows most of what is asked.

use std::sync::Arc;

use tasuki_core::ids::TenantId;
use tasuki_core::{Handoff, Task, TaskId, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::Node;
use super::db::Value;
use super::error::Fault;
use super::reading::limit;
use super::rows::{self, sql_position};
use crate::listing::{HandoffList, TaskList, handoff_words, task_words, tenant_begins};
use crate::{Counts, HandoffFilter, TaskFilter, codec};

/// The word that a handoff is filed under, as the indexes spell it.
const HANDOFF_WORD: &str = "(CASE WHEN reviewed THEN 'reviewed' ELSE state END)";

impl Node {
    pub(super) async fn list_handoffs(
        &self,
        filter: &HandoffFilter,
    ) -> Result<Vec<Arc<Handoff>>, Fault> {
        let named = match filter.task {
            None => None,
            Some(task) => {
                let chain = self.chain(task).await?;
                let named = chain.iter().filter_map(|entry| entry.sealed.record.handoff_id);
                Some(named.map(rows::handoff_uuid).collect())
            }
        };
        let Some(query) = handoff_query(filter, named) else { return Ok(Vec::new()) };
        let found = query.read(self).await?;
        found.iter().map(|row| rows::handoff_of(row, 1).map(Arc::new)).collect()
    }

    pub(super) async fn list_tasks(&self, filter: &TaskFilter) -> Result<Vec<Arc<Task>>, Fault> {
        let found = task_query(filter).read(self).await?;
        found.iter().map(|row| rows::task_of(row).map(Arc::new)).collect()
    }

    pub(super) async fn counts(&self, tenant: Option<&TenantId>) -> Result<Counts, Fault> {
        let tenants: Vec<String> = match tenant {
            Some(tenant) => vec![tenant.to_string()],
            None => {
                let found = self.ask("SELECT tenant FROM usage", &[]).await?;
                found.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?
            }
        };
        let begin = |tenant: &String| tenant_begins(&tenant.parse().unwrap_or_default());
        let begin: Vec<_> = tenants.iter().map(begin).collect();
        let mut counts = Counts::default();
        let words: Vec<_> = counts.handoffs.iter().map(|count| count.state.as_str()).collect();
        let values: [Value<'_>; 2] = [(&begin, Type::TEXT_ARRAY), (&words, Type::TEXT_ARRAY)];
        let sql = count_sql("handoff", "from_agent", HANDOFF_WORD, "data");
        for row in self.ask(&sql, &values).await? {
            let oldest: Option<&str> = row.try_get(2)?;
            let oldest = oldest.and_then(|data| codec::decode(data).ok());
            let word: &str = row.try_get(0)?;
            if let Some(count) = counts.handoffs.iter_mut().find(|it| it.state.as_str() == word) {
                let found = u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0);
                count.add(found, oldest.map(|oldest| oldest.offered_at));
            }
        }
        let words: Vec<_> = counts.tasks.iter().map(|count| count.state.as_str()).collect();
        let values: [Value<'_>; 2] = [(&begin, Type::TEXT_ARRAY), (&words, Type::TEXT_ARRAY)];
        let sql = count_sql("task", "owner", "state", "opened_at");
        for row in self.ask(&sql, &values).await? {
            let word: &str = row.try_get(0)?;
            if let Some(count) = counts.tasks.iter_mut().find(|it| it.state.as_str() == word) {
                let found = u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0);
                count.add(found, row.try_get::<_, Option<i64>>(2)?.map(Timestamp));
            }
        }
        Ok(counts)
    }
}

/// Of each tenant how many rows are filed under each word, and something of the oldest of them. The
/// store's own task is nobody's.
fn count_sql(table: &str, by: &str, word: &str, of_oldest: &str) -> String {
    let own = TaskId::STORE.0;
    let filed = format!(
        "FROM {table} WHERE left({by}, strpos({by}, '/')) = t.begins AND {word} = w.word
            AND id <> '{}'",
        Uuid::from_u128(own)
    );
    format!(
        "SELECT w.word, (SELECT count(*) {filed}),
            (SELECT {of_oldest} {filed} ORDER BY id LIMIT 1)
        FROM unnest($1::text[]) AS t (begins), unnest($2::text[]) AS w (word)"
    )
}

/// A query for what a filter asks, and of those only the named ones if they are known by name.
pub(super) fn handoff_query(filter: &HandoffFilter, named: Option<Vec<Uuid>>) -> Option<Query> {
    let words = handoff_words(filter);
    if words.is_empty() {
        return None;
    }
    let list = HandoffList::of(filter);
    let mut query = Query::new("SELECT id, data FROM handoff");
    let merged = list != HandoffList::All && named.is_none();
    if list == HandoffList::Live {
        query.conditions.push_str(" AND NOT ended");
    }
    if let Some(named) = named {
        query.and("id = ANY", named, Type::UUID_ARRAY);
    }
    query.of_tenant("from_agent", filter.tenant.as_ref());
    if let Some(from) = &filter.from {
        query.and("from_agent =", from.as_str().to_owned(), Type::TEXT);
    }
    if let Some(to) = &filter.to {
        query.and("target =", rows::target_text(to), Type::TEXT);
    }
    if let Some(before) = filter.before {
        query.and("id <", rows::handoff_uuid(before), Type::UUID);
    }
    query.filed_under(HANDOFF_WORD, &words, merged);
    query.limit("id DESC", filter.max);
    Some(query)
}

pub(super) fn task_query(filter: &TaskFilter) -> Query {
    let list = TaskList::of(filter);
    let mut query = Query::new(&rows::task_sql(""));
    query.and("id <>", rows::task_uuid(TaskId::STORE), Type::UUID);
    query.of_tenant("owner", filter.tenant.as_ref());
    if let Some(owner) = &filter.owner {
        query.and("owner =", owner.as_str().to_owned(), Type::TEXT);
    }
    if let Some(parent) = filter.parent {
        query.and("parent_task_id =", rows::task_uuid(parent), Type::UUID);
    }
    if let Some(channel) = &filter.channel {
        query.and("channel =", channel.as_str().to_owned(), Type::TEXT);
    }
    if let Some(project) = &filter.project {
        query.and("project =", project.as_str().to_owned(), Type::TEXT);
    }
    if let Some(correlation) = &filter.correlation {
        query.and("correlation_id =", correlation.as_str().to_owned(), Type::TEXT);
    }
    if let Some(before) = filter.before {
        query.and("id <", rows::task_uuid(before), Type::UUID);
    }
    if let Some(after) = filter.after {
        query.and("intent_at >", sql_position(after), Type::INT8);
    }
    query.filed_under("state", &task_words(filter), list.has_words());
    query.limit(if filter.after.is_some() { "intent_at" } else { "id DESC" }, filter.max);
    query
}

/// Conditions that are put together and their values, which are always bound.
pub(super) struct Query {
    select: String,
    conditions: String,
    /// Each once for what is filed under each of these; otherwise all at once.
    arms: Vec<String>,
    end: String,
    values: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Query {
    fn new(select: &str) -> Self {
        Self {
            select: format!("{select} WHERE true"),
            conditions: String::new(),
            arms: Vec::new(),
            end: String::new(),
            values: Vec::new(),
        }
    }

    fn and(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static, kind: Type) {
        self.values.push((Box::new(value), kind));
        self.conditions.push_str(&format!(" AND {condition} (${})", self.values.len()));
    }

    /// Those whose name in a column belongs to a tenant.
    fn of_tenant(&mut self, column: &str, tenant: Option<&TenantId>) {
        if let Some(tenant) = tenant {
            let begins = format!("left({column}, strpos({column}, '/')) =");
            self.and(&begins, tenant_begins(tenant), Type::TEXT);
        }
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
        self.values.push((Box::new(limit(max)), Type::INT8));
        self.end = format!(" ORDER BY {order} LIMIT ${}", self.values.len());
    }

    /// Each arm says its own order and end, since the planner would otherwise rather sort.
    pub(super) fn sql(&self) -> String {
        let Self { select, conditions, arms, end, .. } = self;
        match arms.as_slice() {
            [] => format!("{select}{conditions}{end}"),
            [word] => format!("{select}{conditions}{word}{end}"),
            arms => {
                let arm = |word: &String| format!("({select}{conditions}{word}{end})");
                let arms: Vec<_> = arms.iter().map(arm).collect();
                format!("{}{end}", arms.join(" UNION ALL "))
            }
        }
    }

    pub(super) fn values(&self) -> Vec<Value<'_>> {
        let of = self.values.iter();
        of.map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
    }

    async fn read(&self, node: &Node) -> Result<Vec<Row>, Fault> {
        node.ask(&self.sql(), &self.values()).await
    }
}
