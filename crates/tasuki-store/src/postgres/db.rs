// SPDX-License-Identifier: Apache-2.0
//! A connection of the pool. Statements that a broker sends all the time are prepared once for each
//! connection. Behind a pooler that gives every transaction another server connection that does
//! not work, so there they are sent unnamed.

use deadpool_postgres::{Object, Pool};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::error::Fault;

/// A value and the type it has in SQL.
pub(super) type Value<'v> = (&'v (dyn ToSql + Sync), Type);

/// A statement that is sent all the time, and the types of its values.
pub(super) struct Often {
    pub(super) sql: &'static str,
    pub(super) types: &'static [Type],
}

pub(super) struct Db {
    client: Object,
    prepared: bool,
}

impl Db {
    /// Takes a connection from the pool. All frequent statements are prepared first, also where
    /// somebody who asked before was interrupted at it: several are sent without waiting in between,
    /// and preparing one then would let the commit overtake it.
    pub(super) async fn get(pool: &Pool, prepared: bool) -> Result<Self, Fault> {
        let client = pool.get().await?;
        if prepared && client.statement_cache.size() < super::OFTEN.len() {
            for often in super::OFTEN {
                client.prepare_typed_cached(often.sql, often.types).await?;
            }
        }
        Ok(Self { client, prepared })
    }

    pub(super) async fn run(
        &self,
        often: &Often,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        if self.prepared {
            let statement = self.client.prepare_typed_cached(often.sql, often.types).await?;
            return Ok(self.client.query(&statement, values).await?);
        }
        let values: Vec<_> = values.iter().copied().zip(often.types.iter().cloned()).collect();
        Ok(self.client.query_typed(often.sql, &values).await?)
    }

    /// Runs statements that return nothing.
    pub(super) async fn execute(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.client.batch_execute(sql).await?)
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// For what may have been left in the middle of a transaction.
    pub(super) fn throw_away(self) {
        drop(Object::take(self.client));
    }
}

/// Asks what is asked seldom, without a named statement.
pub(super) async fn query(db: &Client, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
    Ok(db.query_typed(sql, values).await?)
}
