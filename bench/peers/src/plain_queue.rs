//! PostgreSQL as a queue: a row for each message, claimed with `FOR UPDATE SKIP LOCKED`.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use tokio_postgres::Statement;

use crate::{
    load::{self, Client, Load, Measured},
    postgres::Database,
};

/// The body is kept out of the row, uncompressed: claiming then rewrites a few bytes, not all.
const SCHEMA: &str = "
    CREATE TABLE queue (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        claimed boolean NOT NULL DEFAULT false,
        body bytea NOT NULL
    );
    ALTER TABLE queue ALTER COLUMN body SET STORAGE EXTERNAL;
    CREATE INDEX queue_ready ON queue (id) WHERE NOT claimed;
";
const OFFER: &str = "INSERT INTO queue (body) VALUES ($1)";
const CLAIM: &str = "
    UPDATE queue SET claimed = true
    WHERE id = (
        SELECT id FROM queue WHERE NOT claimed ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1
    )
    RETURNING id, body
";
const COMPLETE: &str = "DELETE FROM queue WHERE id = $1 AND claimed";
/// A plan made while the table is still empty is kept, and would read the whole table.
const PLANNING: &str = "SET enable_seqscan = off";

/// One round on a new table. The clients share the connections evenly; statements on one
/// connection are pipelined.
pub(crate) async fn measure(
    database: &Database,
    load: &Load,
    connections: u16,
) -> Result<Measured> {
    database.execute(&[SCHEMA]).await.context("cannot make the table")?;
    let mut sessions = Vec::new();
    for _ in 0..connections {
        sessions.push(Arc::new(Session::open(database).await?));
    }
    let body: Arc<[u8]> = load.payload.as_slice().into();
    let clients = (0..usize::from(load.clients))
        .map(|number| RowClient {
            session: Arc::clone(&sessions[number % sessions.len()]),
            body: Arc::clone(&body),
            claimed: 0,
        })
        .collect();
    let measured = load::run(clients, load).await?;
    // Nothing is left that would have to be cleaned while others are measured.
    database.execute(&["DROP TABLE queue"]).await.context("cannot drop the table")?;
    Ok(measured)
}

struct Session {
    client: tokio_postgres::Client,
    offer: Statement,
    claim: Statement,
    complete: Statement,
}

impl Session {
    async fn open(database: &Database) -> Result<Self> {
        let client = database.connect().await?;
        client.batch_execute(PLANNING).await?;
        Ok(Self {
            offer: client.prepare(OFFER).await?,
            claim: client.prepare(CLAIM).await?,
            complete: client.prepare(COMPLETE).await?,
            client,
        })
    }
}

struct RowClient {
    session: Arc<Session>,
    body: Arc<[u8]>,
    claimed: i64,
}

impl Client for RowClient {
    async fn offer(&mut self) -> Result<()> {
        let body: &[u8] = &self.body;
        self.session.client.execute(&self.session.offer, &[&body]).await?;
        Ok(())
    }

    async fn claim(&mut self) -> Result<()> {
        // None is rare but possible: what the statement saw may all be claimed by others by the
        // time it looks again, while their own messages came after it began.
        loop {
            if let Some(row) = self.session.client.query_opt(&self.session.claim, &[]).await? {
                self.claimed = row.try_get(0)?;
                let body: &[u8] = row.try_get(1)?;
                ensure!(body.len() == self.body.len(), "the message came back with another size");
                return Ok(());
            }
        }
    }

    async fn complete(&mut self) -> Result<()> {
        let session = &self.session;
        let rows = session.client.execute(&session.complete, &[&self.claimed]).await?;
        ensure!(rows == 1, "the message was not claimed");
        Ok(())
    }
}
