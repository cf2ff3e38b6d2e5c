// SPDX-License-Identifier: Apache-2.0
//! What is remembered. The [`Store`] contract, whole, on this page; [`Sqlite`], [`Postgres`] and
//! [`Volatile`] keep it, and one conformance suite (`tests/conformance`) holds them to it. A store knows no
//! rule: it shows the core what a command needs to see and writes down what the core decided.

pub mod audit;
mod cache;
pub mod clock;
mod codec;
mod counts;
mod documents;
mod feed;
mod images;
pub mod key;
mod listing;
mod live;
mod machine;
mod nonces;
pub mod postgres;
pub mod private;
mod registry;
mod shelf;
mod sight;
mod sqlite;
mod sums;
mod volatile;
pub mod workers;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;
use tasuki_core::commands::Command;
use tasuki_core::cursor::Epochs;
use tasuki_core::decide::Outcome;
use tasuki_core::document::ranking::{Candidates, Question};
use tasuki_core::event::Sealed;
use tasuki_core::handoff::StateName;
use tasuki_core::ids::{ChannelId, CorrelationId, KeyId, Project, TenantId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::Registry;
use tasuki_core::{
    AgentId, Body, Document, DocumentId, Handoff, HandoffId, Position, Refusal, Target, Task,
    TaskId, TaskState, Timestamp,
};
use tokio::sync::{broadcast, watch};

pub use clock::{Clock, ManualClock, SystemClock};
pub use counts::{Count, Counts};
pub use documents::{DocumentFilter, KeptDocument};
pub use feed::{Change, Committed, Timings};
pub use nonces::{Nonce, Spent};
pub use postgres::{Postgres, PostgresError, PostgresOptions};
pub use sight::{Needs, Sight};
pub use sqlite::{Difference, FILE, OpenError, Sqlite, SqliteOptions, Sync, inspect, maintenance};
pub use volatile::{Mishap, Volatile};
pub use workers::{Failure, Until, Workers};

/// How many rows one listing returns at most.
pub const PAGE_MAX: usize = 1000;
/// How many commands may wait for the writer; more are refused as overload.
pub const QUEUE_MAX: usize = 8192;
/// What is kept of where an epoch begins, with the epoch.
pub(crate) const EPOCH: &str = "epoch:";
/// How many commands one call may carry.
pub const COMMANDS_MAX: usize = 1000;

/// Remembers tasks, handoffs, bodies and events. Every method is atomic; a reply means that what
/// it tells is durable.
#[async_trait]
pub trait Store: Send + std::marker::Sync + 'static {
    /// The one clock that decides about leases and deadlines.
    fn clock(&self) -> &Arc<dyn Clock>;

    /// Carries out commands in order, each on its own: one that is refused does not hinder the
    /// next. All replies come after one commit.
    async fn execute(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error>;

    /// Everything that an operation must see, in one look: committed, at least as new as every
    /// reply that came before, and without waiting for what is being written. Of a store in RAM all
    /// of it is of one moment.
    async fn look(&self, needs: Needs) -> Result<Sight, Error>;
    async fn handoff(&self, id: HandoffId) -> Result<Option<Arc<Handoff>>, Error> {
        Ok(self.look(Needs::handoff(id)).await?.handoff(id).cloned())
    }
    async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, Error> {
        Ok(self.look(Needs::task(id)).await?.task(id).cloned())
    }
    async fn list_handoffs(&self, filter: HandoffFilter) -> Result<Vec<Arc<Handoff>>, Error>;
    async fn list_tasks(&self, filter: TaskFilter) -> Result<Vec<Arc<Task>>, Error>;

    /// The bodies that came with the events at these positions; `None` where there is none.
    async fn bodies(&self, at: Vec<Position>) -> Result<Vec<Option<Body>>, Error>;

    /// Memories and shared contexts by their ids, each at a revision or at its last one; `None`
    /// where there is no such thing.
    async fn documents(
        &self,
        wanted: Vec<(DocumentId, Option<u32>)>,
    ) -> Result<Vec<Option<KeptDocument>>, Error>;
    async fn list_documents(&self, filter: DocumentFilter) -> Result<Vec<KeptDocument>, Error>;
    /// How many there are, up to the filter's `max`.
    async fn count_documents(&self, filter: DocumentFilter) -> Result<usize, Error>;
    /// Everything that may answer a question, and what is needed to tell how well it does.
    async fn search_documents(
        &self,
        question: Question,
        filter: DocumentFilter,
    ) -> Result<Candidates, Error>;

    /// Committed events after a position, in order, with the exact bytes that were hashed.
    async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Error>;
    /// The same with what each event is about, which is at least as new as the event.
    async fn changes(&self, after: Position, max: usize) -> Result<Vec<Change>, Error> {
        let entries = self.events(after, max).await?;
        let sight = self.look(Needs::of_events(entries.iter().map(|entry| &entry.sealed))).await?;
        Ok(entries.into_iter().map(|entry| sight.change(entry.sealed)).collect())
    }
    /// The events of one task, from its first to its last.
    async fn chain(&self, task: TaskId) -> Result<Vec<Entry>, Error>;
    /// Where the epochs begin that were raised in this log.
    async fn epochs(&self) -> Result<Epochs, Error>;
    /// Signed checkpoints after a position, in order.
    async fn checkpoints(&self, after: Position, max: usize) -> Result<Vec<Checkpoint>, Error>;

    /// Who is known, as it is committed.
    fn registry(&self) -> watch::Receiver<Arc<Registry>>;
    /// Spends a nonce: of any number of callers with the same one, one is told that it is fresh,
    /// whichever broker they ask, and whether or not it is started anew in between.
    async fn spend(&self, nonce: Nonce) -> Result<Spent, Error>;
    /// Tells brokers on the same store by which key a broker is named, for good. Where there is one
    /// broker only, there is nobody to tell.
    async fn introduce(&self, _key: KeyId) -> Result<(), Error> {
        Ok(())
    }
    /// By which keys the brokers on this store are named, as far as they share the nonces that were
    /// spent.
    async fn brokers(&self) -> Result<Vec<KeyId>, Error> {
        Ok(Vec::new())
    }
    /// Saves what a fold has made of the log up to a position, in place of an older one. It need
    /// not be durable: a fold that finds an older one reads on from there.
    async fn save_fold(&self, name: &'static str, at: Position, text: String) -> Result<(), Error>;
    async fn load_fold(&self, name: &'static str) -> Result<Option<(Position, String)>, Error>;
    /// How many handoffs wait for each of these targets, up to a thousand.
    async fn waiting(&self, targets: Vec<Target>) -> Result<Vec<u64>, Error>;
    /// How much of a tenant, or of all, is in each state that is not the end.
    async fn counts(&self, tenant: Option<TenantId>) -> Result<Counts, Error>;
    /// What a tenant uses now.
    async fn usage(&self, tenant: TenantId) -> Result<Usage, Error>;
    /// Tells other brokers on the same store who was heard of, and returns who was heard of there.
    async fn share_presence(
        &self,
        heard: Vec<(Target, Timestamp)>,
    ) -> Result<Vec<(Target, Timestamp)>, Error>;
    /// The manifests that agents published last, in one look.
    async fn manifests(&self, agents: Vec<AgentId>) -> Result<Vec<Option<Body>>, Error>;

    /// What is committed from now on. A receiver that lags reads [`Store::events`] instead.
    fn subscribe(&self) -> broadcast::Receiver<Arc<Committed>>;
    /// The position of the last committed event.
    fn head(&self) -> Position;
    /// When something is due next, or earlier; a sweep then does it, and learns what comes next.
    fn next_due(&self) -> watch::Receiver<Option<Timestamp>>;

    /// Notes, for other brokers and for later ones on the same store, that a broker looks after
    /// leases at this time.
    async fn looked(&self, _at: Timestamp) -> Result<(), Error> {
        Ok(())
    }

    /// Checks the whole log, from the first event to the last.
    async fn verify(&self) -> Result<audit::Verdict, Error>;
    /// Checks what came to the log since it was last found intact, and all of it if it never was.
    async fn verify_new(&self) -> Result<audit::Verdict, Error>;

    fn stats(&self) -> Stats;
    /// What works for this store and on it. Where one of them fails, the broker cannot go on.
    fn workers(&self) -> &Workers;
    /// Why a command sent now would not be taken, if so.
    fn failure(&self) -> Option<String> {
        self.workers().failure().map(|failure| failure.to_string())
    }
    /// Writes everything down and lets go of the data. Later calls fail with [`Error::Closed`].
    async fn close(&self);
}

/// What a command led to.
pub type Reply = Result<Done, Error>;

#[derive(Debug, Clone)]
pub struct Done {
    pub outcome: Outcome,
    /// The handoffs of the outcome as they are after the command.
    pub handoffs: Vec<Arc<Handoff>>,
    pub task: Option<Arc<Task>>,
    pub document: Option<Arc<Document>>,
}

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("the rules say no")]
    Refused(#[from] Refusal),
    /// Nothing was written; the same call may succeed soon.
    #[error("too many commands are waiting")]
    Overloaded,
    /// Nothing was written; new work is refused until there is room, finishing work is not.
    #[error("the disk is full")]
    DiskFull,
    /// Nothing was written: the database cannot be reached, or did not let the command through in
    /// time. The same call may succeed soon.
    #[error("the database is not available")]
    Unavailable,
    /// Nothing was written: the store is closed or closing.
    #[error("the store is closed")]
    Closed,
    /// Whether it was written is not known.
    #[error("the store failed before it could say whether the command was kept")]
    Unknown,
    #[error("cannot {step}")]
    Failed {
        step: &'static str,
        #[source]
        source: Arc<dyn std::error::Error + Send + std::marker::Sync>,
    },
}

/// An event as it is stored.
#[derive(Debug, Clone)]
pub struct Entry {
    pub sealed: Sealed,
    /// The exact bytes that the hash covers.
    pub encoded: String,
}

/// A signed statement that the log up to a position has a certain hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub position: Position,
    pub log_hash: tasuki_core::Hash,
    pub at: Timestamp,
    pub key: [u8; 32],
    pub signature: [u8; 64],
}

/// Which handoffs to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct HandoffFilter {
    pub tenant: Option<TenantId>,
    pub state: Option<StateName>,
    pub task: Option<TaskId>,
    pub to: Option<Target>,
    pub from: Option<AgentId>,
    /// Only dead letters that nobody has decided on yet.
    pub unreviewed: bool,
    /// Only those before this one, to continue a listing.
    pub before: Option<HandoffId>,
    pub max: usize,
}

/// Which tasks to list, newest first unless they are to begin after a position.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    pub tenant: Option<TenantId>,
    pub state: Option<TaskState>,
    pub owner: Option<AgentId>,
    pub parent: Option<TaskId>,
    /// Only those that were told to many on this channel.
    pub channel: Option<ChannelId>,
    /// Only those that were opened after this position, the oldest first.
    pub after: Option<Position>,
    pub project: Option<Project>,
    /// Only those with this name of their sender's.
    pub correlation: Option<CorrelationId>,
    pub before: Option<TaskId>,
    pub max: usize,
}

/// What a store has done since it was opened, and what it holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stats {
    pub commits: u64,
    pub commands: u64,
    pub events: u64,
    /// Handoffs that are not at their end, and about how much memory they take.
    pub live_handoffs: u64,
    pub live_bytes: u64,
    pub waiting_handoffs: u64,
    pub idempotency_keys: u64,
    /// Rows that queries still have to wait for.
    pub projection_lag: u64,
    pub disk_full: bool,
}

impl HandoffFilter {
    /// Whether a handoff is asked for; what the queries of every backend must agree with.
    #[must_use]
    pub fn lets_through(&self, handoff: &Handoff) -> bool {
        let unreviewed = match &handoff.state {
            tasuki_core::State::DeadLettered { review, .. } => review.is_none(),
            _ => false,
        };
        let tenant = |tenant: &TenantId| tenant.as_str() == handoff.from.tenant();
        self.tenant.as_ref().is_none_or(tenant)
            && self.state.is_none_or(|state| handoff.state.name() == state)
            && self.task.is_none_or(|task| handoff.task_id == task)
            && self.to.as_ref().is_none_or(|to| handoff.to == *to)
            && self.from.as_ref().is_none_or(|from| handoff.from == *from)
            && (!self.unreviewed || unreviewed)
            && self.before.is_none_or(|before| handoff.id < before)
    }
}

impl TaskFilter {
    /// Whether a task is asked for; what the queries of every backend must agree with.
    #[must_use]
    pub fn lets_through(&self, task: &Task) -> bool {
        let tenant = |tenant: &TenantId| tenant.as_str() == task.owner.tenant();
        task.id != TaskId::STORE
            && self.tenant.as_ref().is_none_or(tenant)
            && self.state.is_none_or(|state| task.state == state)
            && self.owner.as_ref().is_none_or(|owner| task.owner == *owner)
            && self.parent.is_none_or(|parent| task.parent_task_id == Some(parent))
            && self.channel.as_ref().is_none_or(|channel| task.channel.as_ref() == Some(channel))
            && self.after.is_none_or(|after| task.intent_pos > after)
            && self.project.as_ref().is_none_or(|project| task.project.as_ref() == Some(project))
            && self.correlation.as_ref().is_none_or(|it| task.correlation_id.as_ref() == Some(it))
            && self.before.is_none_or(|before| task.id < before)
    }
}
