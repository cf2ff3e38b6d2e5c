// SPDX-License-Identifier: Apache-2.0
//! Nonces that all brokers share: spent in a table, many with one statement, before the request
//! that they came with is looked at any further.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tasuki_core::ids::KeyId;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::Node;
use super::db::{Value, query};
use super::error::Fault;
use crate::clock;
use crate::nonces::{Nonce, Spent};

/// How many are spent with one statement.
const AT_ONCE: usize = 512;
/// How many may wait.
pub(super) const QUEUE_MAX: usize = 8192;
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Spend {
    pub(super) nonce: Nonce,
    pub(super) reply: oneshot::Sender<Result<Spent, crate::Error>>,
}

pub(super) async fn spender(node: Arc<Node>, mut queue: mpsc::Receiver<Spend>) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, AT_ONCE).await > 0 {
        let asked = clock::in_time(PATIENCE, spend(&node, &waiting)).await;
        let found = asked.unwrap_or_else(|| Err(Fault::Lost("no answer in time".into())));
        match found {
            Ok(mut fresh) => {
                for Spend { nonce, reply } in waiting.drain(..) {
                    // Of two in one statement, one is fresh.
                    let spent = match fresh.remove(&nonce.id()) {
                        Some(()) => Spent::Fresh,
                        None => Spent::Replayed,
                    };
                    let _ = reply.send(Ok(spent));
                }
            }
            Err(fault) => {
                let error = fault.during("spend nonces");
                for Spend { reply, .. } in waiting.drain(..) {
                    let _ = reply.send(Err(error.clone()));
                }
            }
        }
    }
}

async fn spend(node: &Node, waiting: &[Spend]) -> Result<HashMap<u128, ()>, Fault> {
    let db = node.db().await?;
    let ids: Vec<_> = waiting.iter().map(|one| Uuid::from_u128(one.nonce.id())).collect();
    let until: Vec<_> = waiting.iter().map(|one| one.nonce.expires.0).collect();
    let sql = "
        INSERT INTO nonce SELECT DISTINCT ON (n.id) n.id, n.expires
        FROM unnest($1::uuid[], $2::int8[]) AS n (id, expires)
        ON CONFLICT DO NOTHING RETURNING id";
    let values: [Value<'_>; 2] = [(&ids, Type::UUID_ARRAY), (&until, Type::INT8_ARRAY)];
    let mut fresh = HashMap::new();
    for row in query(db.client(), sql, &values).await? {
        fresh.insert(row.try_get::<_, Uuid>(0)?.as_u128(), ());
    }
    Ok(fresh)
}

/// What the names of brokers' keys begin with among what is kept.
const BROKER: &str = "broker:";

impl Node {
    /// Notes the key of a broker. It is never forgotten: who was told of it may ask any other broker.
    pub(super) async fn introduce(&self, key: KeyId) -> Result<(), Fault> {
        let name = format!("{BROKER}{key}");
        let sql = "INSERT INTO kept VALUES ($1, 0, '') ON CONFLICT (name) DO NOTHING";
        query(self.db().await?.client(), sql, &[(&name, Type::TEXT)]).await.map(drop)
    }

    pub(super) async fn brokers(&self) -> Result<Vec<KeyId>, Fault> {
        let sql = "SELECT name FROM kept WHERE starts_with(name, $1)";
        let found = query(self.db().await?.client(), sql, &[(&BROKER, Type::TEXT)]).await?;
        let mut keys = Vec::with_capacity(found.len());
        for row in &found {
            let id = row.try_get::<_, &str>(0)?.strip_prefix(BROKER);
            keys.extend(id.and_then(|id| id.parse::<KeyId>().ok()));
        }
        Ok(keys)
    }
}

/// How long a nonce is kept after its signature has ended: longer than clocks differ.
const KEPT_MS: i64 = 10 * 60 * 1000;

impl Node {
    pub(super) async fn forget_nonces(&self) -> Result<(), Fault> {
        let db = self.db().await?;
        let before = self.clock.now().0 - KEPT_MS;
        let sql = "DELETE FROM nonce WHERE expires < $1";
        query(db.client(), sql, &[(&before, Type::INT8)]).await.map(drop)
    }
}
