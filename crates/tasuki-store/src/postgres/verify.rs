// SPDX-License-Identifier: Apache-2.0
//! Checking the log: pages of it are read while those before are looked at.

use std::collections::HashMap;

use tasuki_core::{Hash, Position};
use tokio::sync::mpsc;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::Node;
use super::error::Fault;
use super::reading::{AT_ONCE, limit, page};
use super::rows::{self, sql_position};
use crate::audit::{self, Finding, Mark, Raw, RawEvent, Verdict, Verifier};

/// How many pages may be read ahead.
const AHEAD_MAX: usize = 2;

impl Node {
    /// Checks the log from where it begins to where it ends now.
    pub(super) async fn verify(&self) -> Result<Verdict, Fault> {
        self.verify_after(None).await
    }

    /// Checks what came since this broker last found the log intact.
    pub(super) async fn verify_new(&self) -> Result<Verdict, Fault> {
        let kept = self.load_fold(&self.verified()).await?;
        self.verify_after(kept.and_then(|(_, text)| Mark::kept(&text, &self.key))).await
    }

    /// Brokers have keys of their own, and each believes what it signed itself.
    fn verified(&self) -> String {
        format!("verified {}", audit::hex(self.key.verifying_key().as_bytes()))
    }

    async fn verify_after(&self, mark: Option<Mark>) -> Result<Verdict, Fault> {
        let row = self.ask("SELECT position, hash FROM log_start", &[]).await?.pop();
        let row = row.ok_or_else(|| Fault::Damaged("the log has no beginning".into()))?;
        let start = rows::position(row.try_get(0)?);
        let sealed = match &mark {
            None => Vec::new(),
            Some(mark) => self.checkpoints(Position(mark.position.0.saturating_sub(1)), 1).await?,
        };
        let mark = mark.filter(|mark| mark.holds(start, sealed.first()));
        let (verifier, after) = match &mark {
            Some(mark) => (Verifier::going_on_after(mark), mark.position),
            None => (Verifier::beginning_after(start, rows::hash(&row, 1)?), start),
        };
        let end = Position(self.head.load(std::sync::atomic::Ordering::Acquire));
        let (pages, mut read) = mpsc::channel::<Vec<Raw>>(AHEAD_MAX);
        let verified = tokio::task::spawn_blocking(move || {
            audit::verify(verifier, Some(end), |each| {
                while let Some(page) = read.blocking_recv() {
                    if !page.into_iter().all(&mut *each) {
                        break;
                    }
                }
                Ok::<_, std::convert::Infallible>(())
            })
        });
        let read = self.read_log(after, pages).await;
        let Ok((verdict, mark)) = verified.await.expect("verifying does not panic");
        read?;
        let (at, text) = Mark::to_keep(mark.as_ref(), end, &self.key);
        // What cannot be kept is checked once more the next time.
        let _ = self.save_fold(&self.verified(), at, &text).await;
        Ok(verdict)
    }

    /// Reads the log after a position, until it ends or nobody wants more.
    async fn read_log(&self, after: Position, to: mpsc::Sender<Vec<Raw>>) -> Result<(), Fault> {
        let mut at = after;
        loop {
            let sql = "SELECT position, previous, hash, record, body FROM event \
                       WHERE position > $1 ORDER BY position LIMIT $2";
            let found = self.ask(sql, &page(&sql_position(at), &limit(AT_ONCE))).await?;
            let mut seals = self.checkpoints(at, AT_ONCE).await?.into_iter().peekable();
            let mut before = self.before(&found, after).await?;
            let mut raw = Vec::with_capacity(found.len());
            for row in &found {
                let position = rows::position(row.try_get(0)?);
                // A checkpoint that was not due yet stands where events are missing.
                while let Some(stray) = seals.next_if(|seal| seal.position < position) {
                    raw.push(Raw::Checkpoint(stray));
                }
                raw.push(match event(row) {
                    Ok(event) => {
                        let before = event.previous.and_then(|at| before.remove(&at));
                        Raw::Event(RawEvent { before, ..event })
                    }
                    Err(fault) => {
                        let problem = format!("cannot be read: {fault}");
                        Raw::Unreadable(Finding { position, task_id: None, problem })
                    }
                });
                while let Some(seal) = seals.next_if(|seal| seal.position == position) {
                    raw.push(Raw::Checkpoint(seal));
                }
                at = position;
            }
            if to.send(raw).await.is_err() || found.len() < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// The hashes and records of those that events follow in their tasks, as far as they were
    /// verified before.
    async fn before(
        &self,
        found: &[Row],
        verified: Position,
    ) -> Result<HashMap<Position, (Hash, String)>, Fault> {
        let mut wanted = Vec::new();
        for row in found {
            let previous: Option<i64> = row.try_get(1)?;
            wanted.extend(previous.filter(|at| *at <= sql_position(verified)));
        }
        let mut before = HashMap::new();
        if wanted.is_empty() {
            return Ok(before);
        }
        let sql = "SELECT position, hash, record FROM event WHERE position = ANY($1)";
        for row in self.ask(sql, &[(&wanted, Type::INT8_ARRAY)]).await? {
            let at = rows::position(row.try_get(0)?);
            before.insert(at, (rows::hash(&row, 1)?, row.try_get(2)?));
        }
        Ok(before)
    }
}

fn event(row: &Row) -> Result<RawEvent, Fault> {
    let previous: Option<i64> = row.try_get(1)?;
    Ok(RawEvent {
        position: rows::position(row.try_get(0)?),
        previous: previous.map(rows::position),
        hash: rows::hash(row, 2)?,
        record: row.try_get(3)?,
        body: row.try_get(4)?,
        before: None,
    })
}
