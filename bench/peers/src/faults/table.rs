//! A table in a shared database: a row for each message, with a status. Handing on is one
//! transaction; nothing looks after a row whose agent is gone.

use std::{rc::Rc, time::Duration};

use anyhow::{Context as _, Result};
use tokio_postgres::Client;

use super::{
    agents::{Hands, Told},
    message::Message,
};
use crate::postgres::Database;

pub(super) const SCHEMA: &str = "
    CREATE TABLE work (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        stage bigint NOT NULL,
        status text NOT NULL DEFAULT 'new',
        body text NOT NULL
    );
    CREATE INDEX work_new ON work (stage, id) WHERE status = 'new';
";
const INSERT: &str = "INSERT INTO work (stage, body) VALUES ($1, $2)";
const TAKE: &str = "
    UPDATE work SET status = 'taken'
    WHERE id = (
        SELECT id FROM work WHERE stage = $1 AND status = 'new'
        ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1
    )
    RETURNING id, body
";
const DONE: &str = "UPDATE work SET status = 'done' WHERE id = $1 AND status = 'taken'";
/// How long an agent waits before it looks again.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Table {
    client: Client,
    stage: i64,
}

impl Table {
    async fn insert(&self, message: &Message) -> Result<()> {
        let stage = i64::try_from(message.stage())?;
        self.client.execute(INSERT, &[&stage, &serde_json::to_string(message)?]).await?;
        Ok(())
    }
}

impl Hands for Table {
    type Place = Rc<Database>;
    type Taken = i64;

    async fn connect(place: &Self::Place, stage: usize) -> Result<Self> {
        Ok(Self { client: place.connect().await?, stage: i64::try_from(stage)? })
    }

    async fn send(&mut self, message: &Message) -> Result<()> {
        self.insert(message).await
    }

    async fn take(&mut self) -> Result<Option<(Message, i64)>> {
        let Some(row) = self.client.query_opt(TAKE, &[&self.stage]).await? else {
            tokio::time::sleep(PAUSE).await;
            return Ok(None);
        };
        let body: &str = row.try_get(1)?;
        Ok(Some((serde_json::from_str(body).context("another message")?, row.try_get(0)?)))
    }

    async fn tell(&mut self, taken: &i64, next: &Message) -> Result<Told> {
        self.client.batch_execute("BEGIN").await?;
        self.insert(next).await?;
        let rows = self.client.execute(DONE, &[taken]).await?;
        self.client.batch_execute(if rows == 1 { "COMMIT" } else { "ROLLBACK" }).await?;
        Ok(Told::Heard)
    }

    async fn finish(&mut self, taken: &i64) -> Result<()> {
        self.client.execute(DONE, &[taken]).await?;
        Ok(())
    }

    async fn die_telling(self, taken: &i64, next: &Message) -> Result<()> {
        self.client.batch_execute("BEGIN").await?;
        self.insert(next).await?;
        self.client.execute(DONE, &[taken]).await?;
        Ok(())
    }

    async fn tell_unheard(mut self, taken: &i64, next: &Message) -> Result<()> {
        self.tell(taken, next).await.map(drop)
    }

    /// The row's status says whether it was heard.
    async fn tell_again(&mut self, taken: &i64, next: &Message) -> Result<Told> {
        self.tell(taken, next).await
    }
}
