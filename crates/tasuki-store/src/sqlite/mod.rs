// SPDX-License-Identifier: Apache-2.0
//! SQLite as journal and archive. The live state is in RAM; events and bodies are appended with
//! one sync per batch; the tables that people query follow. One file that can be opened, queried,
//! copied and backed up.

mod acknowledged;
mod checkpointer;
pub(crate) mod compare;
mod documents;
pub mod inspect;
mod journal;
mod listing;
mod loading;
pub mod maintenance;
mod open;
mod rows;
mod space;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ed25519_dalek::SigningKey;
use rusqlite::Connection;
use tasuki_core::cursor::Epochs;
use tasuki_core::document::ranking::{Candidates, Question};
use tasuki_core::ids::TenantId;
use tasuki_core::quota::Usage;
use tasuki_core::registry::Registry;
use tasuki_core::{
    AgentId, Body, Command, DocumentId, Handoff, Position, Target, Task, TaskId, Timestamp,
};
use tokio::sync::{broadcast, watch};

use crate::audit::{Mark, Verdict};
use crate::cache::BodyCache;
use crate::clock::Clock;
use crate::images::Images;
use crate::live::KEY_MS_MAX;
use crate::nonces::{Nonce, Nonces, Spent};
use crate::sight::Missing;
use crate::workers::Workers;
use crate::writer::Handle;
use crate::{
    Checkpoint, Committed, Counts, DocumentFilter, Entry, Error, HandoffFilter, KeptDocument,
    Needs, Reply, Sight, Stats, Store, TaskFilter,
};

/// Large pages: a batch's events and bodies lie together, so fewer pages are written for it.
const PAGE_BYTES: u32 = 16 * 1024;
/// The name under which is kept how far the log was verified.
const VERIFIED: &str = "verified";
/// How many queries may read at the same time.
const READERS: usize = 2;

/// Whether a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Every acknowledged step survives a power cut.
    Full,
    /// For measuring what the sync costs: a power cut loses acknowledged steps.
    Off,
}

#[derive(Debug, Clone)]
pub struct SqliteOptions {
    pub dir: PathBuf,
    pub sync: Sync,
}

pub struct Sqlite {
    writer: Handle,
    clock: Arc<dyn Clock>,
    cache: Arc<BodyCache<Position>>,
    readers: Arc<Readers>,
    nonces: Nonces,
    key: SigningKey,
}

pub use compare::Difference;
pub use open::{FILE, OpenError};

/// Read-only connections. A query takes one and gives it back.
struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: tokio::sync::Semaphore,
}

impl Readers {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            idle: Mutex::new(Vec::new()),
            places: tokio::sync::Semaphore::new(READERS),
        }
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self.idle.lock().expect("no holder of this lock panics").pop();
        idle.map_or_else(|| open::reader(&self.path), Ok)
    }

    /// Lets go of the file; queries that come later are refused.
    fn close(&self) {
        self.places.close();
        self.idle.lock().expect("no holder of this lock panics").clear();
    }

    async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        step: &'static str,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let _place = self.places.acquire().await.map_err(|_| Error::Closed)?;
        let readers = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let db = readers.take()?;
            let answer = query(&db);
            readers.idle.lock().expect("no holder of this lock panics").push(db);
            answer
        });
        done.await.map_err(|_| Error::Unknown)?.map_err(failed(step))
    }
}

fn failed(step: &'static str) -> impl FnOnce(rusqlite::Error) -> Error {
    move |error| Error::Failed { step, source: Arc::new(error) }
}

impl Sqlite {
    async fn verify_after(&self, mark: Option<Mark>) -> Result<Verdict, Error> {
        let verify =
            move |db: &Connection| maintenance::verify_after(db, mark.as_ref(), &mut |_| ());
        let (verdict, mark) = self.readers.read("verify the log", verify).await?;
        let (at, text) = Mark::to_keep(mark.as_ref(), self.head(), &self.key);
        // What cannot be kept is checked once more the next time.
        let _ = self.save_fold(VERIFIED, at, text).await;
        Ok(verdict)
    }
}

/// Adds to a sight what is not in RAM. A row is behind only as long as its image is shown, so what
/// was not shown a moment ago is read here as it was then, or newer.
fn cold(
    db: &Connection,
    images: &Images,
    cache: &BodyCache<Position>,
    needs: &Needs,
    missing: &Missing,
    mut sight: Sight,
) -> rusqlite::Result<Sight> {
    for id in &missing.handoffs {
        if let Some(handoff) = rows::handoff(db, *id)? {
            sight.put_handoff(Arc::new(handoff));
        }
    }
    for id in needs.missing(&sight).tasks {
        let shown = images.read().task(id).cloned();
        let task = match shown {
            Some(task) => Some(task),
            None => rows::task(db, id)?.map(Arc::new),
        };
        if let Some(task) = task {
            sight.put_task(task);
        }
    }
    let at = needs.bodies_of(&sight);
    let read = |at: &Position| match cache.get(*at) {
        Some(body) => Ok(Some(body)),
        None => rows::body(db, *at),
    };
    let bodies = at.iter().map(read).collect::<rusqlite::Result<_>>()?;
    sight.put_bodies(&at, bodies);
    Ok(sight)
}

/// Since when an idempotency key counts.
fn keys_since(now: Timestamp) -> Timestamp {
    Timestamp(now.0 - i64::try_from(KEY_MS_MAX).unwrap_or(0))
}

#[async_trait]
impl Store for Sqlite {
    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    async fn execute(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error> {
        self.writer.execute(commands).await
    }

    async fn look(&self, needs: Needs) -> Result<Sight, Error> {
        let mut sight = self.writer.shared.images()?.look(&needs);
        let missing = needs.missing(&sight);
        if missing.is_empty() {
            let at = needs.bodies_of(&sight);
            let bodies = self.bodies(at.clone()).await?;
            sight.put_bodies(&at, bodies);
            return Ok(sight);
        }
        let (shared, cache) = (self.writer.shared.clone(), self.cache.clone());
        let read = move |db: &Connection| cold(db, &shared.images, &cache, &needs, &missing, sight);
        self.readers.read("look", read).await
    }

    async fn list_handoffs(&self, filter: HandoffFilter) -> Result<Vec<Arc<Handoff>>, Error> {
        if let Some(page) = self.writer.shared.images()?.list(&filter) {
            return Ok(page);
        }
        self.writer.catch_up().await?;
        self.readers.read("list handoffs", move |db| listing::handoffs(db, &filter)).await
    }

    async fn list_tasks(&self, filter: TaskFilter) -> Result<Vec<Arc<Task>>, Error> {
        self.writer.catch_up().await?;
        self.readers.read("list tasks", move |db| listing::tasks(db, &filter)).await
    }

    async fn bodies(&self, at: Vec<Position>) -> Result<Vec<Option<Body>>, Error> {
        self.writer.shared.check_open()?;
        let cached: Vec<_> = at.iter().map(|at| self.cache.get(*at)).collect();
        if cached.iter().all(Option::is_some) {
            return Ok(cached);
        }
        let missing: Vec<_> =
            at.iter().zip(&cached).filter(|(_, hit)| hit.is_none()).map(|(at, _)| *at).collect();
        let read = move |db: &Connection| {
            missing.into_iter().map(|at| rows::body(db, at)).collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut found = self.readers.read("read bodies", read).await?.into_iter();
        let fill = |hit: Option<Body>| hit.or_else(|| found.next()?);
        Ok(cached.into_iter().map(fill).collect())
    }

    async fn documents(
        &self,
        wanted: Vec<(DocumentId, Option<u32>)>,
    ) -> Result<Vec<Option<KeptDocument>>, Error> {
        let read = move |db: &Connection| {
            let get = |(id, revision): &(DocumentId, _)| documents::get(db, id, *revision);
            wanted.iter().map(get).collect()
        };
        self.readers.read("read documents", read).await
    }

    async fn list_documents(&self, filter: DocumentFilter) -> Result<Vec<KeptDocument>, Error> {
        self.readers.read("list documents", move |db| documents::list(db, &filter)).await
    }

    async fn count_documents(&self, filter: DocumentFilter) -> Result<usize, Error> {
        self.readers.read("count documents", move |db| documents::count(db, &filter)).await
    }

    async fn search_documents(
        &self,
        question: Question,
        filter: DocumentFilter,
    ) -> Result<Candidates, Error> {
        let search = move |db: &Connection| documents::search(db, &question, &filter);
        self.readers.read("search documents", search).await
    }

    async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Error> {
        self.readers.read("read events", move |db| rows::events(db, after, max)).await
    }

    async fn chain(&self, task: TaskId) -> Result<Vec<Entry>, Error> {
        let Some(task) = self.task(task).await? else { return Ok(Vec::new()) };
        self.readers.read("read a task's events", move |db| rows::chain(db, task.last_pos)).await
    }

    async fn epochs(&self) -> Result<Epochs, Error> {
        self.readers.read("read the epochs", rows::epochs).await
    }

    async fn checkpoints(&self, after: Position, max: usize) -> Result<Vec<Checkpoint>, Error> {
        self.readers.read("read checkpoints", move |db| rows::checkpoints(db, after, max)).await
    }

    fn registry(&self) -> watch::Receiver<Arc<Registry>> {
        self.writer.shared.registry.subscribe()
    }

    async fn save_fold(&self, name: &'static str, at: Position, text: String) -> Result<(), Error> {
        self.writer.save_fold(name, at, text).await
    }

    async fn load_fold(&self, name: &'static str) -> Result<Option<(Position, String)>, Error> {
        self.readers.read("load a fold", move |db| rows::load_fold(db, name)).await
    }

    async fn waiting(&self, targets: Vec<Target>) -> Result<Vec<u64>, Error> {
        let shown = self.writer.shared.images()?;
        Ok(targets.iter().map(|target| shown.waiting(target)).collect())
    }

    async fn counts(&self, tenant: Option<TenantId>) -> Result<Counts, Error> {
        match self.writer.catch_up().await {
            // Counts are for those who find out what is wrong, so a full disk must not keep them
            // back: what is live is counted in RAM, and rows of what has ended follow later.
            Ok(()) | Err(Error::DiskFull) => {}
            Err(error) => return Err(error),
        }
        let (mut counts, tenants) = {
            let shown = self.writer.shared.images()?;
            let tenants =
                tenant.as_ref().map_or_else(|| shown.tenants(), |it| vec![it.to_string()]);
            (shown.count(tenant.as_ref()), tenants)
        };
        let read = move |db: &Connection| {
            for tenant in &tenants {
                listing::count(db, tenant, &mut counts)?;
            }
            Ok(counts)
        };
        self.readers.read("count by state", read).await
    }

    async fn usage(&self, tenant: TenantId) -> Result<Usage, Error> {
        Ok(self.writer.shared.images()?.usage(&tenant))
    }

    /// Nobody else is on this store.
    async fn share_presence(
        &self,
        _: Vec<(Target, Timestamp)>,
    ) -> Result<Vec<(Target, Timestamp)>, Error> {
        self.writer.shared.check_open()?;
        Ok(Vec::new())
    }

    async fn spend(&self, nonce: Nonce) -> Result<Spent, Error> {
        self.writer.shared.check_open()?;
        Ok(self.nonces.spend(&nonce, self.clock.now()))
    }

    async fn manifests(&self, agents: Vec<AgentId>) -> Result<Vec<Option<Body>>, Error> {
        let read = move |db: &Connection| {
            agents.iter().map(|agent| rows::manifest(db, agent)).collect::<rusqlite::Result<_>>()
        };
        self.readers.read("read manifests", read).await
    }

    fn subscribe(&self) -> broadcast::Receiver<Arc<Committed>> {
        self.writer.shared.committed.subscribe()
    }

    fn head(&self) -> Position {
        self.writer.shared.head()
    }

    fn next_due(&self) -> watch::Receiver<Option<Timestamp>> {
        self.writer.shared.next_due.subscribe()
    }

    async fn verify(&self) -> Result<Verdict, Error> {
        self.verify_after(None).await
    }

    async fn verify_new(&self) -> Result<Verdict, Error> {
        let kept = self.load_fold(VERIFIED).await?;
        self.verify_after(kept.and_then(|(_, text)| Mark::kept(&text, &self.key))).await
    }

    fn stats(&self) -> Stats {
        self.writer.shared.stats()
    }

    fn workers(&self) -> &Workers {
        &self.writer.shared.workers
    }

    async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
    }
}
