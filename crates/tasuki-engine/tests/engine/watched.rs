// SPDX-License-Identifier: Apache-2.0
//! A store that counts how often it is asked, and answers as badly as it is told to.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tasuki_core::commands::{Command, Wish};
use tasuki_core::cursor::Epochs;
use tasuki_core::document::ranking::{Candidates, Question};
use tasuki_core::ids::TenantId;
use tasuki_core::quota::Usage;
use tasuki_core::registry::Registry;
use tasuki_core::{AgentId, Body, DocumentId, Handoff, Position, Target, Task, TaskId, Timestamp};
use tasuki_store::{
    Change, Checkpoint, Clock, Committed, Counts, DocumentFilter, Entry, Error, HandoffFilter,
    KeptDocument, Needs, Nonce, Reply, Sight, Spent, Stats, Store, TaskFilter, Workers, audit,
};
use tokio::sync::{broadcast, watch};

pub(crate) struct Watched {
    inner: Arc<dyn Store>,
    calls: Mutex<Vec<&'static str>>,
    /// Whether looks and questions for documents fail.
    pub(crate) overloaded: AtomicBool,
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, calls: Mutex::default(), overloaded: AtomicBool::new(false) })
    }

    /// What the store was asked since the last time, in order.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn ask(&self, call: &'static str) -> Result<(), Error> {
        self.note(call);
        match self.overloaded.load(Ordering::Relaxed) {
            true => Err(Error::Overloaded),
            false => Ok(()),
        }
    }

    fn note(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
    }
}

#[async_trait]
impl Store for Watched {
    fn clock(&self) -> &Arc<dyn Clock> {
        self.inner.clock()
    }

    async fn execute(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error> {
        // What is due is done by itself, whoever asks for what.
        if !commands.iter().all(|command| matches!(command.wish, Wish::Sweep(_))) {
            self.note("execute");
        }
        self.inner.execute(commands).await
    }

    async fn look(&self, needs: Needs) -> Result<Sight, Error> {
        self.ask("look")?;
        self.inner.look(needs).await
    }

    async fn list_handoffs(&self, filter: HandoffFilter) -> Result<Vec<Arc<Handoff>>, Error> {
        self.note("list_handoffs");
        self.inner.list_handoffs(filter).await
    }

    async fn list_tasks(&self, filter: TaskFilter) -> Result<Vec<Arc<Task>>, Error> {
        self.note("list_tasks");
        self.inner.list_tasks(filter).await
    }

    async fn bodies(&self, at: Vec<Position>) -> Result<Vec<Option<Body>>, Error> {
        self.note("bodies");
        self.inner.bodies(at).await
    }

    async fn documents(
        &self,
        wanted: Vec<(DocumentId, Option<u32>)>,
    ) -> Result<Vec<Option<KeptDocument>>, Error> {
        self.ask("documents")?;
        self.inner.documents(wanted).await
    }

    async fn list_documents(&self, filter: DocumentFilter) -> Result<Vec<KeptDocument>, Error> {
        self.ask("list_documents")?;
        self.inner.list_documents(filter).await
    }

    async fn count_documents(&self, filter: DocumentFilter) -> Result<usize, Error> {
        self.ask("count_documents")?;
        self.inner.count_documents(filter).await
    }

    async fn search_documents(
        &self,
        question: Question,
        filter: DocumentFilter,
    ) -> Result<Candidates, Error> {
        self.ask("search_documents")?;
        self.inner.search_documents(question, filter).await
    }

    async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Error> {
        self.inner.events(after, max).await
    }

    async fn changes(&self, after: Position, max: usize) -> Result<Vec<Change>, Error> {
        self.inner.changes(after, max).await
    }

    async fn chain(&self, task: TaskId) -> Result<Vec<Entry>, Error> {
        self.note("chain");
        self.inner.chain(task).await
    }

    async fn epochs(&self) -> Result<Epochs, Error> {
        self.inner.epochs().await
    }

    async fn checkpoints(&self, after: Position, max: usize) -> Result<Vec<Checkpoint>, Error> {
        self.inner.checkpoints(after, max).await
    }

    fn registry(&self) -> watch::Receiver<Arc<Registry>> {
        self.inner.registry()
    }

    async fn spend(&self, nonce: Nonce) -> Result<Spent, Error> {
        self.inner.spend(nonce).await
    }

    async fn save_fold(&self, name: &'static str, at: Position, text: String) -> Result<(), Error> {
        self.inner.save_fold(name, at, text).await
    }

    async fn load_fold(&self, name: &'static str) -> Result<Option<(Position, String)>, Error> {
        self.inner.load_fold(name).await
    }

    async fn waiting(&self, targets: Vec<Target>) -> Result<Vec<u64>, Error> {
        self.note("waiting");
        self.inner.waiting(targets).await
    }

    async fn usage(&self, tenant: TenantId) -> Result<Usage, Error> {
        self.inner.usage(tenant).await
    }

    async fn share_presence(
        &self,
        heard: Vec<(Target, Timestamp)>,
    ) -> Result<Vec<(Target, Timestamp)>, Error> {
        self.inner.share_presence(heard).await
    }

    async fn manifests(&self, agents: Vec<AgentId>) -> Result<Vec<Option<Body>>, Error> {
        self.note("manifests");
        self.inner.manifests(agents).await
    }

    async fn counts(&self, tenant: Option<TenantId>) -> Result<Counts, Error> {
        self.note("counts");
        self.inner.counts(tenant).await
    }

    fn subscribe(&self) -> broadcast::Receiver<Arc<Committed>> {
        self.inner.subscribe()
    }

    fn head(&self) -> Position {
        self.inner.head()
    }

    fn next_due(&self) -> watch::Receiver<Option<Timestamp>> {
        self.inner.next_due()
    }

    async fn verify(&self) -> Result<audit::Verdict, Error> {
        self.inner.verify().await
    }

    async fn verify_new(&self) -> Result<audit::Verdict, Error> {
        self.inner.verify_new().await
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn failure(&self) -> Option<String> {
        self.inner.failure()
    }

    fn workers(&self) -> &Workers {
        self.inner.workers()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
