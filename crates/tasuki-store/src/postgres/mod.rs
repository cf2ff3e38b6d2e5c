// SPDX-License-Identifier: Apache-2.0
//! PostgreSQL as the store of any number of brokers. Nothing is kept in a broker but its place in
//! the log and where its queues begin; each transaction reads what its commands need, and the core
//! decides inside it. Positions are dense and in the order of commits, because every transaction
//! that appends locks the log's end last; what that costs is won back by batching.

mod batch;
mod clock;
mod compare;
mod copy;
mod covered;
mod cursors;
mod db;
mod documents;
mod error;
mod follow;
mod hosts;
mod listing;
mod load;
mod needs;
mod open;
mod partitions;
mod reading;
mod rows;
mod seen;
mod silence;
mod spend;
mod sql;
mod tls;
mod verify;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Pool;
use ed25519_dalek::SigningKey;
use tasuki_core::cursor::Epochs;
use tasuki_core::document::ranking::{Candidates, Question};
use tasuki_core::ids::{KeyId, TenantId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::Registry;
use tasuki_core::{
    AgentId, Body, Command, DocumentId, Handoff, Hash, Position, Target, Task, TaskId, Timestamp,
};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};

use self::batch::Due;
use self::cursors::Cursors;
use self::db::Db;
use self::error::Fault;
use self::partitions::Partitions;
use crate::audit::Verdict;
use crate::cache::BodyCache;
use crate::clock::{Clock, Stopwatch};
use crate::nonces::{Nonce, Spent};
use crate::sums::RowKey;
use crate::workers::{Until, Workers};
use crate::{
    COMMANDS_MAX, Checkpoint, Committed, Counts, DocumentFilter, Entry, Error, HandoffFilter,
    KeptDocument, Needs, QUEUE_MAX, Reply, Sight, Stats, Store, TaskFilter,
};

pub use clock::DatabaseClock;
pub use compare::compare_rows;
pub use copy::{CopyError, from_sqlite, to_sqlite};
pub use open::{
    PostgresError, PostgresOptions, Server, inspect, password_in, with_password, without_password,
};

/// How many commands one transaction takes at most.
const BATCH_MAX: usize = 1024;
/// How many transactions of one broker are under way at once: one reads while another commits.
const LANES: usize = 2;
/// How many commands a batch has at least before the next one need not wait for it. Small batches
/// one after the other grow; side by side they would stay small and cost more.
const PARALLEL_MIN: usize = 256;
/// How many committed batches a slow subscriber may lag behind before it has to read the log.
const COMMITTED_KEPT_MAX: usize = 1024;
/// How often the log is sealed, marks are raised and the clock is set.
const UPKEEP: Duration = Duration::from_secs(1);
/// How often old history is looked for.
const RETENTION_US: u64 = 60 * 60 * 1_000_000;

/// Every statement of a transaction that appends.
const OFTEN: &[&db::Often] = &[
    &sql::LOCK_NAMED,
    &sql::LOCK_HELD,
    &sql::CLAIM,
    &sql::CLAIM_COLD,
    &sql::CLAIM_DECLINED,
    &sql::CLAIM_KEPT,
    &sql::MORE,
    &sql::TURNS,
    &sql::MORE_COLD,
    &sql::MORE_KEPT,
    &sql::LOCK_DUE,
    &sql::READ_TASKS,
    &sql::READ_HANDOFFS,
    &sql::TAKE_HEAD,
    &sql::PUT_HEAD,
    &sql::NEXT_DUE,
    &sql::READ_BODIES,
    &sql::LOOK,
    &sql::READ_NEWS,
    &rows::PUT_TASKS,
    &rows::PUT_HANDOFFS,
    &rows::PUT_EVENTS,
    &rows::PUT_USAGE,
];

/// What the tasks of one broker share.
pub(crate) struct Node {
    pool: Pool,
    /// For the connection that notifications go over.
    way: open::Way,
    /// Whether statements may be prepared: not behind a pooler of transactions.
    prepared: bool,
    /// How a transaction begins.
    begin: String,
    /// The bodies that this broker wrote last, by hash: positions may be given twice.
    cache: BodyCache<Hash>,
    clock: Arc<dyn Clock>,
    key: SigningKey,
    /// What the sums over the rows are made with.
    row_key: Option<RowKey>,
    cursors: Cursors,
    partitions: Partitions,
    committed: broadcast::Sender<Arc<Committed>>,
    next_due: watch::Sender<Option<Timestamp>>,
    /// How often it was told what is due, so that an answer of the database from before is known as one.
    due_told: AtomicU64,
    registry: watch::Sender<Arc<Registry>>,
    /// Whether what is known may have been lost in a failover, so that all of it must be read.
    registry_lost: AtomicBool,
    /// Why the database cannot be used at the moment, if so.
    away: watch::Sender<Option<String>>,
    head: AtomicU64,
    /// The highest timeline that was ever seen: a server on a lower one was replaced.
    timeline: Arc<AtomicI64>,
    /// Both as they are kept in the data directory.
    memory: seen::Memory,
    /// The highest epoch that was ever seen. It rises with every failover.
    epoch: AtomicU64,
    stats: Mutex<Stats>,
    /// Rings when this broker has committed something, for the other brokers to hear of.
    commits: Notify,
    /// Rings when there may be something new in the log.
    news: Notify,
    /// Rings when rows that give rights were read that this broker did not write.
    identity_read: Notify,
    told: Mutex<Told>,
}

/// What subscribers were told of.
#[derive(Clone, Copy)]
struct Told {
    last: Position,
    /// How many failovers this broker went through. What was read or written before the last one
    /// says nothing about the log as it is.
    failovers: u64,
}

impl Node {
    async fn db(&self) -> Result<Db, Fault> {
        Db::get(&self.pool, self.prepared).await
    }

    /// Compares a server with what was seen before.
    fn saw(&self, timeline: i64, epoch: u64, end: Position) -> Result<(), Fault> {
        let known = self.timeline.fetch_max(timeline, Ordering::AcqRel);
        let risen = epoch > self.epoch.fetch_max(epoch, Ordering::AcqRel);
        if timeline > known {
            // What is still connected to the server before is not asked again.
            self.pool.retain(|_, _| false);
        }
        if timeline > known || risen {
            self.start_over(end);
            self.note(timeline, epoch)?;
        }
        if timeline < known {
            return Err(Fault::Lost(format!(
                "the server is on timeline {timeline}, a primary that was replaced: {known} was \
                 seen before"
            )));
        }
        Ok(())
    }

    /// Keeps the highest timeline and epoch in the data directory, before anything is committed on them.
    fn note(&self, timeline: i64, epoch: u64) -> Result<(), Fault> {
        let noted = self.memory.note(timeline, epoch);
        noted.map_err(|error| {
            Fault::Lost(format!("the timeline cannot be noted in the data directory: {error}"))
        })
    }

    /// After a failover positions may be given a second time, so whatever goes by position is
    /// forgotten. What others appended before this broker noticed is not told any more: whoever
    /// waits has to look.
    fn start_over(&self, end: Position) {
        let mut told = self.told.lock().expect("no holder of this lock panics");
        *told = Told { last: end, failovers: told.failovers + 1 };
        self.cursors.forget();
        self.registry_lost.store(true, Ordering::Release);
        self.news.notify_one();
        self.head.store(end.0, Ordering::Release);
        // Without subscribers there is nobody to tell.
        let _ = self.committed.send(Arc::new(Committed { missed: true, ..Committed::default() }));
    }

    /// Notes that the database answered.
    fn reached(&self) {
        self.away.send_if_modified(|known| known.take().is_some());
    }

    /// Notes why it did not.
    fn missed(&self, reason: &str) {
        self.away.send_if_modified(|known| {
            let news = known.as_deref() != Some(reason);
            *known = Some(reason.to_owned());
            news
        });
    }
}

struct Job {
    commands: Vec<Command>,
    waits: Stopwatch,
    reply: oneshot::Sender<Result<Vec<Reply>, Error>>,
}

pub struct Postgres {
    node: Arc<Node>,
    queue: Mutex<Option<mpsc::Sender<Job>>>,
    spending: mpsc::Sender<spend::Spend>,
    lanes: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
    others: Vec<AbortHandle>,
    workers: Workers,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.workers.may_end();
        self.others.iter().for_each(AbortHandle::abort);
    }
}

impl Postgres {
    /// Connects, checks the server, brings the schema up to date and starts to work.
    pub async fn open(
        options: PostgresOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, PostgresError> {
        let cannot = |error: std::io::Error| PostgresError::Failed {
            step: "read the last timeline in the data directory",
            reason: error.to_string(),
        };
        let kept = options.dir.as_deref().map(seen::read).transpose().map_err(cannot)?.flatten();
        let timeline = Arc::new(AtomicI64::new(0));
        let pool = open::pool(&options, &timeline).await?;
        let unreachable = |fault: Fault| match fault {
            Fault::Lost(reason) => PostgresError::Unreachable(reason),
            other => PostgresError::Unreachable(other.to_string()),
        };
        let mut db = pool.get().await.map_err(|error| unreachable(error.into()))?;
        let server = open::check(&db).await?;
        for (name, age) in &server.old_transactions {
            tracing::warn!(%name, age, "a transaction has been open for long; it keeps vacuum from its work");
        }
        open::migrate(&mut db, options.events_each).await?;
        let row_key = covered::check(&mut db, &options, &clock).await?;
        let end = reading::end(&db).await.map_err(unreachable)?;
        // Timelines count within one cluster only.
        let same = kept.filter(|kept| kept.system == server.system);
        let known = end.timeline.max(same.map_or(0, |kept| kept.timeline));
        let known = known.max(timeline.load(Ordering::Acquire));
        if server.timeline < known {
            return Err(PostgresError::Replaced { found: server.timeline, known });
        }
        timeline.store(server.timeline, Ordering::Release);
        // An epoch that the log has lost was given out all the same.
        let epoch = end.epoch.max(kept.map_or(0, |kept| kept.epoch));
        let rows = row_key.is_some() || kept.is_some_and(|kept| kept.rows);
        let first = seen::Seen { system: server.system, timeline: 0, epoch: 0, rows };
        let memory = seen::Memory::new(options.dir.clone(), first);
        memory.note(server.timeline, epoch).map_err(cannot)?;
        // Before anything is done: a broker whose own clock is off must not take anybody's lease.
        clock.set_by(reading::database_now(&db).await.map_err(unreachable)?);
        clock.not_before(end.at);
        drop(db);
        let (queue, jobs) = mpsc::channel(QUEUE_MAX);
        let node = Arc::new(Node {
            pool,
            way: open::Way::to(&options.url, options.ca.as_deref())?,
            prepared: !options.pooler,
            begin: batch::begin(options.pooler),
            cache: BodyCache::default(),
            clock,
            key: options.key,
            row_key: row_key.clone(),
            cursors: Cursors::default(),
            partitions: Partitions::new(end.events_each, end.position),
            committed: broadcast::Sender::new(COMMITTED_KEPT_MAX),
            next_due: watch::Sender::new(end.next_due),
            due_told: AtomicU64::new(0),
            registry: watch::Sender::default(),
            registry_lost: AtomicBool::new(false),
            away: watch::Sender::new(None),
            head: AtomicU64::new(end.position.0),
            timeline,
            memory,
            epoch: AtomicU64::new(epoch),
            stats: Mutex::new(Stats {
                live_handoffs: end.live,
                waiting_handoffs: end.waiting,
                idempotency_keys: end.keys,
                ..Stats::default()
            }),
            commits: Notify::new(),
            news: Notify::new(),
            identity_read: Notify::new(),
            told: Mutex::new(Told { last: end.position, failovers: 0 }),
        });
        let mut registry = Arc::default();
        let db = node.db().await.map_err(unreachable)?;
        node.read_registry(db.client(), &mut registry).await.map_err(unreachable)?;
        node.registry.send_replace(registry);
        drop(db);
        node.renew_after_silence().await;
        let jobs = Arc::new(tokio::sync::Mutex::new(jobs));
        let (spending, spends) = mpsc::channel(spend::QUEUE_MAX);
        let (workers, closed) = (Workers::default(), Until::Closed);
        let lane = |_| workers.spawn("lane", closed, lane(node.clone(), jobs.clone()));
        let lanes = (0..LANES).map(lane).collect();
        let mut others = vec![
            workers.spawn("reader of the log", closed, follow::follow(node.clone())),
            workers.spawn("upkeep", closed, upkeep(node.clone(), options.retain)),
            workers.spawn("keeper of nonces", closed, spend::spender(node.clone(), spends)),
        ];
        if node.prepared {
            others.push(workers.spawn("announcer", closed, follow::announce(node.clone())));
        }
        if let Some(key) = row_key {
            let watching = covered::watch(node.clone(), key, workers.clone());
            others.push(workers.spawn("reader of the rows", closed, watching));
        }
        let others = others.iter().map(JoinHandle::abort_handle).collect();
        let (queue, lanes) = (Mutex::new(Some(queue)), tokio::sync::Mutex::new(lanes));
        Ok(Self { node, queue, spending, lanes, others, workers })
    }

    fn check_open(&self) -> Result<(), Error> {
        let queue = self.queue.lock().expect("no holder of this lock panics");
        queue.as_ref().map(drop).ok_or(Error::Closed)
    }
}

/// Takes every waiting command as one batch, again and again.
async fn lane(node: Arc<Node>, jobs: Arc<tokio::sync::Mutex<mpsc::Receiver<Job>>>) {
    loop {
        let mut jobs = jobs.lock().await;
        let Some(first) = jobs.recv().await else { return };
        let mut commands = first.commands.len();
        let mut batch = vec![first];
        while commands < BATCH_MAX
            && let Ok(job) = jobs.try_recv()
        {
            commands += job.commands.len();
            batch.push(job);
        }
        let alone = (commands < PARALLEL_MIN).then_some(jobs);
        run(&node, batch).await;
        drop(alone);
    }
}

async fn run(node: &Node, batch: Vec<Job>) {
    let queue_us = batch.first().map_or(0, |first| first.waits.us());
    let (commands, replies): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|job| (job.commands, job.reply)).unzip();
    let sizes: Vec<_> = commands.iter().map(Vec::len).collect();
    let mut commands: Vec<Command> = commands.into_iter().flatten().collect();
    let outcome = match node.heard_elsewhere(&mut commands).await {
        Ok(()) => node.carry_out(&commands).await,
        Err(fault) => Err(fault.during("ask whether other brokers were there")),
    };
    // A caller that has gone away needs no answer.
    match outcome {
        Err(error) => {
            for reply in replies {
                let _ = reply.send(Err(error.clone()));
            }
        }
        Ok(mut written) => {
            node.grew(&written, commands.len());
            written.timings.queue_us = queue_us;
            let mut all = std::mem::take(&mut written.replies).into_iter();
            node.tell(written);
            for (reply, size) in replies.into_iter().zip(sizes) {
                let _ = reply.send(Ok(all.by_ref().take(size).collect()));
            }
        }
    }
}

/// Seals the log, raises marks, sets the clock by the database's, and drops old history.
async fn upkeep(node: Arc<Node>, retain: Option<Duration>) {
    let mut last = Stopwatch::start();
    loop {
        crate::clock::pause(UPKEEP).await;
        let kept = async {
            let db = node.db().await?;
            let end = reading::end(db.client()).await?;
            node.saw(end.server_timeline, end.epoch, end.position)?;
            let mut own = node.pool.get().await?;
            partitions::ahead(&mut own, &node.partitions, end.position).await?;
            drop(own);
            node.cursors.raise(db.client()).await?;
            let now = reading::database_now(db.client()).await?;
            node.clock.set_by(now);
            let told = node.due_told.load(Ordering::Acquire);
            let due = db.run(&sql::NEXT_DUE, &[&node.cursors.due_mark()]).await?;
            let at = due.first().map(|row| row.try_get(0)).transpose()?.map(Timestamp);
            node.tell_due(Due::Certainly { at, told });
            drop(db);
            node.forget_nonces().await?;
            node.seal().await
        };
        if let Err(fault) = kept.await {
            tracing::debug!(error = %fault, "upkeep has to wait");
        }
        if let Some(retain) = retain.filter(|_| last.us() >= RETENTION_US) {
            last = Stopwatch::start();
            if let Err(fault) = drop_old(&node, retain).await {
                tracing::warn!(error = %fault, "old history could not be dropped");
            }
        }
    }
}

async fn drop_old(node: &Node, retain: Duration) -> Result<u64, Fault> {
    let mut db = node.pool.get().await?;
    let before = node.clock.now().0 - i64::try_from(retain.as_millis()).unwrap_or(i64::MAX);
    partitions::drop_old(&mut db, &node.partitions, Timestamp(before)).await
}

#[async_trait]
impl Store for Postgres {
    fn clock(&self) -> &Arc<dyn Clock> {
        &self.node.clock
    }

    async fn execute(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error> {
        if commands.len() > COMMANDS_MAX {
            return Err(Error::Overloaded);
        }
        let (reply, answer) = oneshot::channel();
        {
            let queue = self.queue.lock().expect("no holder of this lock panics");
            let queue = queue.as_ref().ok_or(Error::Closed)?;
            let waits = Stopwatch::start();
            queue.try_send(Job { commands, waits, reply }).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => Error::Overloaded,
                mpsc::error::TrySendError::Closed(_) => Error::Closed,
            })?;
        }
        answer.await.map_err(|_| Error::Unknown)?
    }

    async fn look(&self, needs: Needs) -> Result<Sight, Error> {
        self.check_open()?;
        self.node.look(&needs).await.map_err(|fault| fault.during("look"))
    }

    async fn list_handoffs(&self, filter: HandoffFilter) -> Result<Vec<Arc<Handoff>>, Error> {
        self.check_open()?;
        self.node.list_handoffs(&filter).await.map_err(|fault| fault.during("list handoffs"))
    }

    async fn list_tasks(&self, filter: TaskFilter) -> Result<Vec<Arc<Task>>, Error> {
        self.check_open()?;
        self.node.list_tasks(&filter).await.map_err(|fault| fault.during("list tasks"))
    }

    async fn bodies(&self, at: Vec<Position>) -> Result<Vec<Option<Body>>, Error> {
        self.check_open()?;
        self.node.bodies(&at).await.map_err(|fault| fault.during("read bodies"))
    }

    async fn documents(
        &self,
        wanted: Vec<(DocumentId, Option<u32>)>,
    ) -> Result<Vec<Option<KeptDocument>>, Error> {
        self.check_open()?;
        self.node.documents(&wanted).await.map_err(|fault| fault.during("read documents"))
    }

    async fn list_documents(&self, filter: DocumentFilter) -> Result<Vec<KeptDocument>, Error> {
        self.check_open()?;
        self.node.list_documents(&filter).await.map_err(|fault| fault.during("list documents"))
    }

    async fn count_documents(&self, filter: DocumentFilter) -> Result<usize, Error> {
        self.check_open()?;
        self.node.count_documents(&filter).await.map_err(|fault| fault.during("count documents"))
    }

    async fn search_documents(
        &self,
        question: Question,
        filter: DocumentFilter,
    ) -> Result<Candidates, Error> {
        self.check_open()?;
        let found = self.node.search_documents(&question, &filter).await;
        found.map_err(|fault| fault.during("search documents"))
    }

    async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Error> {
        self.check_open()?;
        self.node.events(after, max).await.map_err(|fault| fault.during("read events"))
    }

    async fn chain(&self, task: TaskId) -> Result<Vec<Entry>, Error> {
        self.check_open()?;
        self.node.chain(task).await.map_err(|fault| fault.during("read a task's events"))
    }

    async fn epochs(&self) -> Result<Epochs, Error> {
        self.check_open()?;
        self.node.epochs().await.map_err(|fault| fault.during("read the epochs"))
    }

    async fn checkpoints(&self, after: Position, max: usize) -> Result<Vec<Checkpoint>, Error> {
        self.check_open()?;
        self.node.checkpoints(after, max).await.map_err(|fault| fault.during("read checkpoints"))
    }

    fn registry(&self) -> watch::Receiver<Arc<Registry>> {
        self.node.registry.subscribe()
    }

    async fn introduce(&self, key: KeyId) -> Result<(), Error> {
        self.check_open()?;
        self.node.introduce(key).await.map_err(|fault| fault.during("say by which key it is named"))
    }

    async fn brokers(&self) -> Result<Vec<KeyId>, Error> {
        self.check_open()?;
        self.node.brokers().await.map_err(|fault| fault.during("read the keys of brokers"))
    }

    async fn save_fold(&self, name: &'static str, at: Position, text: String) -> Result<(), Error> {
        self.check_open()?;
        self.node.save_fold(name, at, &text).await.map_err(|fault| fault.during("save a fold"))
    }

    async fn load_fold(&self, name: &'static str) -> Result<Option<(Position, String)>, Error> {
        self.check_open()?;
        self.node.load_fold(name).await.map_err(|fault| fault.during("load a fold"))
    }

    async fn waiting(&self, targets: Vec<Target>) -> Result<Vec<u64>, Error> {
        self.check_open()?;
        self.node.waiting(&targets).await.map_err(|fault| fault.during("count what waits"))
    }

    async fn counts(&self, tenant: Option<TenantId>) -> Result<Counts, Error> {
        self.check_open()?;
        self.node.counts(tenant.as_ref()).await.map_err(|fault| fault.during("count by state"))
    }

    async fn usage(&self, tenant: TenantId) -> Result<Usage, Error> {
        self.check_open()?;
        self.node.usage(&tenant).await.map_err(|fault| fault.during("count what a tenant uses"))
    }

    async fn share_presence(
        &self,
        heard: Vec<(Target, Timestamp)>,
    ) -> Result<Vec<(Target, Timestamp)>, Error> {
        self.check_open()?;
        let shared = self.node.share_presence(&heard).await;
        shared.map_err(|fault| fault.during("share presence"))
    }

    async fn spend(&self, nonce: Nonce) -> Result<Spent, Error> {
        self.check_open()?;
        let (reply, answer) = oneshot::channel();
        let queued = self.spending.try_send(spend::Spend { nonce, reply });
        queued.map_err(|_| Error::Overloaded)?;
        answer.await.map_err(|_| Error::Unavailable)?
    }

    async fn looked(&self, at: Timestamp) -> Result<(), Error> {
        self.check_open()?;
        self.node
            .looked(at)
            .await
            .map_err(|fault| fault.during("note that leases are looked after"))
    }

    async fn manifests(&self, agents: Vec<AgentId>) -> Result<Vec<Option<Body>>, Error> {
        self.check_open()?;
        self.node.manifests(&agents).await.map_err(|fault| fault.during("read manifests"))
    }

    fn subscribe(&self) -> broadcast::Receiver<Arc<Committed>> {
        self.node.committed.subscribe()
    }

    fn head(&self) -> Position {
        Position(self.node.head.load(Ordering::Acquire))
    }

    fn next_due(&self) -> watch::Receiver<Option<Timestamp>> {
        self.node.next_due.subscribe()
    }

    async fn verify(&self) -> Result<Verdict, Error> {
        self.check_open()?;
        self.node.verify().await.map_err(|fault| fault.during("verify the log"))
    }

    async fn verify_new(&self) -> Result<Verdict, Error> {
        self.node.verify_new().await.map_err(|fault| fault.during("verify the log"))
    }

    fn stats(&self) -> Stats {
        *self.node.stats.lock().expect("no holder of this lock panics")
    }

    fn workers(&self) -> &Workers {
        &self.workers
    }

    /// The database may come back, so that it is away is why the broker is not ready, and not why
    /// it must end.
    fn failure(&self) -> Option<String> {
        let failure = self.workers.failure().map(|failure| failure.to_string());
        failure.or_else(|| self.node.away.borrow().clone())
    }

    async fn close(&self) {
        self.workers.may_end();
        let queue = self.queue.lock().expect("no holder of this lock panics").take();
        drop(queue);
        for lane in self.lanes.lock().await.drain(..) {
            // A lane that panicked has nothing left to write down.
            let _ = lane.await;
        }
        if let Err(fault) = self.node.seal().await {
            tracing::debug!(error = %fault, "the log's end is left for another broker to seal");
        }
        self.others.iter().for_each(AbortHandle::abort);
        self.node.pool.close();
    }
}

#[cfg(test)]
mod tests;
