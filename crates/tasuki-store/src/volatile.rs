// SPDX-License-Identifier: Apache-2.0
//! The store kept in RAM, for tests and simulation: the same machine that writes to disk, without
//! a disk and without a thread. It forgets everything when it is dropped, and keeps everything until
//! then. What can go wrong with a disk goes wrong here by plan.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

use async_trait::async_trait;
use tasuki_core::cursor::Epochs;
use tasuki_core::decide::Replay;
use tasuki_core::document::StoredBody;
use tasuki_core::document::ranking::{Candidates, Question};
use tasuki_core::ids::{Epoch, IdempotencyKey, TenantId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::Registry;
use tasuki_core::{
    AgentId, Body, Command, Document, DocumentId, Event, Handoff, HandoffId, Position, Target,
    Task, TaskId, Timestamp,
};
use tokio::sync::{broadcast, watch};

use crate::audit::{Verdict, Verifier};
use crate::clock::Clock;
use crate::listing::LIVE;
use crate::live::{Appended, Live};
use crate::machine::{CatchUp, Fault, Journal, Written};
use crate::nonces::{Nonce, Nonces, Spent};
use crate::shelf::Shelf;
use crate::workers::Workers;
use crate::writer::{Inline, Shared};
use crate::{
    Checkpoint, Committed, Counts, DocumentFilter, Entry, Error, HandoffFilter, KeptDocument,
    Needs, Reply, Sight, Stats, Store, TaskFilter,
};

/// Every event with the body that came with it.
type Log = Vec<(Entry, Option<Body>)>;

pub struct Volatile {
    writer: Inline<InRam>,
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    log: Arc<RwLock<Log>>,
    shelf: Arc<RwLock<Shelf>>,
    nonces: Nonces,
    folds: Arc<Mutex<HashMap<&'static str, (Position, String)>>>,
    planned: Arc<Mutex<Option<Mishap>>>,
}

/// What goes wrong with a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mishap {
    /// There is no space. New work is refused until something was written again.
    Full,
    /// Somebody else holds the file.
    Busy,
    /// The disk fails before it has written anything, and nobody can tell.
    LostBefore,
    /// The disk fails after it has written everything, and nobody can tell.
    LostAfter,
}

impl Volatile {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let live = Live::new(Epoch(1), Position(0));
        Self::with(live, clock, Arc::default(), Arc::default(), Arc::default())
    }

    fn with(
        live: Live,
        clock: Arc<dyn Clock>,
        log: Arc<RwLock<Log>>,
        shelf: Arc<RwLock<Shelf>>,
        folds: Arc<Mutex<HashMap<&'static str, (Position, String)>>>,
    ) -> Self {
        let planned = Arc::default();
        let journal = InRam {
            log: log.clone(),
            shelf: shelf.clone(),
            planned: Arc::clone(&planned),
            has_room: true,
        };
        let nonces = Nonces::new(clock.now());
        let writer = Inline::new(journal, live, clock.clone());
        let shared = writer.shared.clone();
        Self { writer, shared, clock, log, shelf, nonces, folds, planned }
    }

    /// Lets something go wrong with the next commit that has something to write, or with none.
    pub fn plan(&self, mishap: Option<Mishap>) {
        *self.planned.lock().expect("no holder of this lock panics") = mishap;
    }

    /// What a broker finds that is started after this one, whatever became of it: everything that was
    /// written, and every holder with a full lease. This one takes nothing more.
    #[must_use]
    pub fn restarted(&self) -> Self {
        self.writer.close();
        let mut live = Live::new(Epoch(1), Position(0));
        let bytes = |body: &Body| body.text().len() as u64;
        let log = self.read();
        live.apply_all(log.iter().map(|(it, body)| (&it.sealed, body.as_ref().map(bytes))));
        drop(log);
        live.renew_all(self.clock.now());
        live.commit();
        let (log, shelf, folds) = (self.log.clone(), self.shelf.clone(), self.folds.clone());
        Self::with(live, self.clock.clone(), log, shelf, folds)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Log> {
        self.log.read().expect("no holder of this lock panics")
    }

    fn shelf(&self) -> std::sync::RwLockReadGuard<'_, Shelf> {
        self.shelf.read().expect("no holder of this lock panics")
    }
}

/// Where an event is in the log, whose positions begin with 1.
fn place(at: Position) -> usize {
    usize::try_from(at.0).ok().and_then(|at| at.checked_sub(1)).unwrap_or(usize::MAX)
}

struct InRam {
    log: Arc<RwLock<Log>>,
    shelf: Arc<RwLock<Shelf>>,
    planned: Arc<Mutex<Option<Mishap>>>,
    has_room: bool,
}

impl Journal for InRam {
    fn load_handoff(&mut self, _: HandoffId) -> Result<Option<Handoff>, Error> {
        Ok(None)
    }
    fn load_task(&mut self, _: TaskId) -> Result<Option<Task>, Error> {
        Ok(None)
    }
    fn load_replay(
        &mut self,
        _: &AgentId,
        _: &IdempotencyKey,
        _: Timestamp,
    ) -> Result<Option<Replay>, Error> {
        Ok(None)
    }
    fn load_document(&mut self, id: &DocumentId) -> Result<Option<Document>, Error> {
        Ok(self.shelf.read().expect("no holder of this lock panics").document(id))
    }
    fn load_body(&mut self, at: Position) -> Result<Option<StoredBody>, Error> {
        let log = self.log.read().expect("no holder of this lock panics");
        let found = log.get(place(at)).and_then(|(entry, body)| {
            StoredBody::of(&entry.sealed, body.as_ref().map(|body| body.text().len() as u64))
        });
        Ok(found)
    }
    fn commit(
        &mut self,
        batch: &[Appended],
        _: &Live,
        _: CatchUp,
        _: Timestamp,
    ) -> Result<Written, Fault> {
        let mishap = self.planned.lock().expect("no holder of this lock panics").take();
        let lost = || Fault::Fatal("the disk failed by plan".to_owned());
        match mishap {
            Some(Mishap::Full) => {
                self.has_room = false;
                return Err(Fault::Full);
            }
            Some(Mishap::Busy) => return Err(Fault::Busy),
            Some(Mishap::LostBefore) => return Err(lost()),
            Some(Mishap::LostAfter) | None => {}
        }
        let mut shelf = self.shelf.write().expect("no holder of this lock panics");
        let mut log = self.log.write().expect("no holder of this lock panics");
        log.extend(batch.iter().map(|appended| {
            let encoded = String::from_utf8_lossy(&appended.encoded).into_owned();
            (Entry { sealed: appended.sealed.clone(), encoded }, appended.body.clone())
        }));
        for appended in batch {
            shelf.apply(&appended.sealed, appended.body.as_ref());
            if let Event::Erased(erased) = &appended.sealed.record.event
                && let Some((_, body)) = log.get_mut(place(erased.position))
            {
                *body = None;
            }
        }
        self.has_room = true;
        if mishap.is_some() { Err(lost()) } else { Ok(Written::default()) }
    }
    fn save_fold(&mut self, _: &str, _: Position, _: &str) -> Result<(), Error> {
        Ok(())
    }
    fn has_room(&mut self, _: Timestamp) -> bool {
        self.has_room
    }
    fn free_reserve(&mut self, _: Timestamp) {}
    fn lag(&self) -> usize {
        0
    }
    fn projected(&self) -> Position {
        Position(0)
    }
    fn close(&mut self) {}
}

#[async_trait]
impl Store for Volatile {
    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    async fn execute(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error> {
        // Others get a turn meanwhile, as with a store that waits for its disk.
        tokio::task::yield_now().await;
        self.writer.execute(commands)
    }

    async fn look(&self, needs: Needs) -> Result<Sight, Error> {
        let mut sight = self.shared.images()?.look(&needs);
        let at = needs.bodies_of(&sight);
        let bodies = self.bodies(at.clone()).await?;
        sight.put_bodies(&at, bodies);
        Ok(sight)
    }

    async fn list_handoffs(&self, filter: HandoffFilter) -> Result<Vec<Arc<Handoff>>, Error> {
        let shown = self.shared.images()?;
        if let Some(page) = shown.list(&filter) {
            return Ok(page);
        }
        let wanted = shown.handoffs().filter(|handoff| filter.lets_through(handoff));
        let mut handoffs: Vec<_> = wanted.cloned().collect();
        drop(shown);
        handoffs.sort_by_key(|handoff| Reverse(handoff.id));
        handoffs.truncate(filter.max);
        Ok(handoffs)
    }

    async fn list_tasks(&self, filter: TaskFilter) -> Result<Vec<Arc<Task>>, Error> {
        let shown = self.shared.images()?;
        let wanted = shown.tasks().filter(|task| filter.lets_through(task));
        let mut tasks: Vec<_> = wanted.cloned().collect();
        drop(shown);
        match filter.after {
            Some(_) => tasks.sort_by_key(|task| task.intent_pos),
            None => tasks.sort_by_key(|task| Reverse(task.id)),
        }
        tasks.truncate(filter.max);
        Ok(tasks)
    }

    async fn bodies(&self, at: Vec<Position>) -> Result<Vec<Option<Body>>, Error> {
        self.shared.check_open()?;
        let log = self.read();
        let find = |at: Position| log.get(place(at)).and_then(|(_, body)| body.clone());
        Ok(at.into_iter().map(find).collect())
    }

    async fn documents(
        &self,
        wanted: Vec<(DocumentId, Option<u32>)>,
    ) -> Result<Vec<Option<KeptDocument>>, Error> {
        self.shared.check_open()?;
        let shelf = self.shelf();
        Ok(wanted.iter().map(|(id, revision)| shelf.get(id, *revision)).collect())
    }

    async fn list_documents(&self, filter: DocumentFilter) -> Result<Vec<KeptDocument>, Error> {
        self.shared.check_open()?;
        Ok(self.shelf().list(&filter))
    }

    async fn count_documents(&self, filter: DocumentFilter) -> Result<usize, Error> {
        self.shared.check_open()?;
        Ok(self.shelf().list(&DocumentFilter { bytes_max: None, ..filter }).len())
    }

    async fn search_documents(
        &self,
        question: Question,
        filter: DocumentFilter,
    ) -> Result<Candidates, Error> {
        self.shared.check_open()?;
        Ok(self.shelf().search(&question, &filter))
    }

    async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Error> {
        self.shared.check_open()?;
        let skip = usize::try_from(after.0).unwrap_or(usize::MAX);
        Ok(self.read().iter().skip(skip).take(max).map(|(entry, _)| entry.clone()).collect())
    }

    async fn chain(&self, task: TaskId) -> Result<Vec<Entry>, Error> {
        self.shared.check_open()?;
        let of_task = |(entry, _): &&(Entry, _)| entry.sealed.record.task_id == task;
        Ok(self.read().iter().filter(of_task).map(|(entry, _)| entry.clone()).collect())
    }

    async fn epochs(&self) -> Result<Epochs, Error> {
        let mut epochs = Epochs::default();
        let chain = self.chain(TaskId::STORE).await?;
        chain.iter().for_each(|entry| epochs.note(&entry.sealed));
        Ok(epochs)
    }

    async fn checkpoints(&self, _: Position, _: usize) -> Result<Vec<Checkpoint>, Error> {
        self.shared.check_open()?;
        // Nobody checks tomorrow what is gone by then.
        Ok(Vec::new())
    }

    fn registry(&self) -> watch::Receiver<Arc<Registry>> {
        self.shared.registry.subscribe()
    }

    async fn save_fold(&self, name: &'static str, at: Position, text: String) -> Result<(), Error> {
        let mut folds = self.folds.lock().expect("no holder of this lock panics");
        folds.insert(name, (at, text));
        Ok(())
    }

    async fn load_fold(&self, name: &'static str) -> Result<Option<(Position, String)>, Error> {
        Ok(self.folds.lock().expect("no holder of this lock panics").get(name).cloned())
    }

    async fn waiting(&self, targets: Vec<Target>) -> Result<Vec<u64>, Error> {
        let shown = self.shared.images()?;
        Ok(targets.iter().map(|target| shown.waiting(target)).collect())
    }

    async fn counts(&self, tenant: Option<TenantId>) -> Result<Counts, Error> {
        let shown = self.shared.images()?;
        let mut counts = Counts::of(tenant.as_ref(), shown.handoffs(), shown.tasks());
        let live = shown.count(tenant.as_ref());
        counts.handoffs.splice(..LIVE.len(), live.handoffs.into_iter().take(LIVE.len()));
        Ok(counts)
    }

    async fn usage(&self, tenant: TenantId) -> Result<Usage, Error> {
        Ok(self.shared.images()?.usage(&tenant))
    }

    /// Nobody else is on this store.
    async fn share_presence(
        &self,
        _: Vec<(Target, Timestamp)>,
    ) -> Result<Vec<(Target, Timestamp)>, Error> {
        self.shared.check_open()?;
        Ok(Vec::new())
    }

    async fn spend(&self, nonce: Nonce) -> Result<Spent, Error> {
        self.shared.check_open()?;
        Ok(self.nonces.spend(&nonce, self.clock.now()))
    }

    async fn manifests(&self, agents: Vec<AgentId>) -> Result<Vec<Option<Body>>, Error> {
        let registry = self.registry().borrow().clone();
        let log = self.read();
        let manifest = |agent| {
            let published = registry.agents.get(agent)?.manifest.as_ref()?.body_pos;
            let at = |(entry, _): &&(Entry, Option<Body>)| entry.sealed.position == published;
            log.iter().find(at)?.1.clone()
        };
        Ok(agents.iter().map(manifest).collect())
    }

    fn subscribe(&self) -> broadcast::Receiver<Arc<Committed>> {
        self.shared.committed.subscribe()
    }

    fn head(&self) -> Position {
        self.shared.head()
    }

    fn next_due(&self) -> watch::Receiver<Option<Timestamp>> {
        self.shared.next_due.subscribe()
    }

    async fn verify(&self) -> Result<Verdict, Error> {
        self.shared.check_open()?;
        let mut verifier = Verifier::default();
        let mut check = |(entry, body): &(Entry, Option<Body>)| {
            verifier.event(entry.clone(), body.as_ref().map(Body::text))
        };
        let first_bad = self.read().iter().find_map(|event| check(event).err());
        Ok(verifier.verdict(first_bad))
    }

    /// Nothing is kept, so there is nothing to go on after.
    async fn verify_new(&self) -> Result<Verdict, Error> {
        self.verify().await
    }

    fn stats(&self) -> Stats {
        self.shared.stats()
    }

    fn workers(&self) -> &Workers {
        &self.shared.workers
    }

    async fn close(&self) {
        self.writer.close();
    }
}
