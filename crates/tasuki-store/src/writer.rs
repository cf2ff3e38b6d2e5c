// SPDX-License-Identifier: Apache-2.0
// Long because: it is one thread and all that it does.
//! The one thread that owns the live state. It takes every waiting command as one batch, decides
//! each, makes the whole batch durable with one commit, and only then answers. What "durable"
//! means is the [`Journal`]'s business, so the volatile store and the SQLite store share all this.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tasuki_core::commands::Footprint;
use tasuki_core::decide::{Decision, Outcome, Replay, View};
use tasuki_core::document::StoredBody;
use tasuki_core::ids::{IdempotencyKey, TenantId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::Registry;
use tasuki_core::{
    AgentId, Command, Document, DocumentId, Handoff, HandoffId, Position, Target, Task, TaskId,
    Timestamp, decide,
};
use tokio::sync::{broadcast, oneshot, watch};

use crate::clock::Clock;
use crate::live::{Appended, Live};
use crate::{COMMANDS_MAX, Committed, Done, Error, QUEUE_MAX, Reply, Stats};

/// How many messages one commit takes at most, so that a flood cannot delay the first of them.
const BATCH_MAX: usize = 1024;
/// How many committed batches a slow subscriber may lag behind before it has to read the log.
const COMMITTED_KEPT_MAX: usize = 1024;
/// How long the writer waits for work before it writes down what queries would have to wait for.
const IDLE: Duration = Duration::from_millis(20);
/// How many idempotency keys are kept in RAM; older ones are looked up.
const KEYS_MAX: usize = 1_000_000;

/// Where batches are made durable and cold things are found.
pub(crate) trait Journal: Send + 'static {
    fn load_handoff(&mut self, id: HandoffId) -> Result<Option<Handoff>, Error>;
    fn load_task(&mut self, id: TaskId) -> Result<Option<Task>, Error>;
    fn load_replay(
        &mut self,
        agent: &AgentId,
        key: &IdempotencyKey,
    ) -> Result<Option<Replay>, Error>;
    fn load_document(&mut self, id: &DocumentId) -> Result<Option<Document>, Error>;
    /// What came with an event, to be erased.
    fn load_body(&mut self, at: Position) -> Result<Option<StoredBody>, Error>;
    /// Makes a batch durable, and as much as asked of what queries read. Returns what need not stay
    /// in RAM any longer.
    fn commit(&mut self, batch: &[Appended], live: &Live, rows: CatchUp) -> Result<Evicted, Fault>;
    /// Whether there is room for new work. Finishing work has space of its own.
    fn has_room(&mut self) -> bool;
    /// Frees the space that is kept for finishing work.
    fn free_reserve(&mut self);
    /// How many rows queries would have to wait for.
    fn lag(&self) -> usize;
    /// Keeps a text beside the log.
    fn keep(&mut self, name: &str, at: Position, text: &str) -> Result<(), Error>;
    /// Up to which position everything is where a cold load finds it.
    fn projected(&self) -> Position;
    /// Leaves everything in good order; nothing comes after it.
    fn close(&mut self);
}

/// How much of what queries read is to be written down now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CatchUp {
    /// Only what would otherwise fall too far behind.
    Least,
    /// A piece: nothing else is to be done at the moment.
    Some,
    All,
}

#[derive(Default)]
pub(crate) struct Evicted {
    pub(crate) handoffs: Vec<HandoffId>,
    pub(crate) tasks: Vec<TaskId>,
}

/// Why a batch was not made durable.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Certainly not written: no space.
    Full,
    /// Certainly not written: somebody else holds the file.
    Busy,
    /// Perhaps written, perhaps not. Nothing that follows could be trusted.
    Fatal(String),
}

/// What the thread shows to the outside.
pub(crate) struct Shared {
    pub(crate) committed: broadcast::Sender<Arc<Committed>>,
    pub(crate) next_due: watch::Sender<Option<Timestamp>>,
    pub(crate) failed: watch::Sender<Option<String>>,
    pub(crate) registry: watch::Sender<Arc<Registry>>,
    pub(crate) head: AtomicU64,
    pub(crate) stats: Mutex<Stats>,
}

/// The way to the writer thread.
pub(crate) struct Handle {
    queue: Mutex<Option<SyncSender<Message>>>,
    pub(crate) shared: Arc<Shared>,
}

enum Message {
    Execute(Vec<Command>, oneshot::Sender<Vec<Reply>>),
    Handoff(HandoffId, oneshot::Sender<Result<Option<Arc<Handoff>>, Error>>),
    Task(TaskId, oneshot::Sender<Result<Option<Arc<Task>>, Error>>),
    Snapshot(oneshot::Sender<Snapshot>),
    Waiting(Vec<Target>, oneshot::Sender<Vec<u64>>),
    Usage(TenantId, oneshot::Sender<Usage>),
    Keep(&'static str, Position, String, oneshot::Sender<Result<(), Error>>),
    CatchUp(oneshot::Sender<Result<(), Error>>),
    Close(oneshot::Sender<()>),
}

/// Everything that is in RAM.
type Snapshot = (Vec<Arc<Task>>, Vec<Arc<Handoff>>);

/// Commands whose replies wait for their batch's commit.
struct Executed {
    commands: Vec<Command>,
    replies: Vec<Reply>,
    reply: oneshot::Sender<Vec<Reply>>,
}

impl Handle {
    pub(crate) fn start<J: Journal>(journal: J, live: Live, clock: Arc<dyn Clock>) -> Self {
        let (queue, messages) = sync_channel(QUEUE_MAX);
        let shared = Arc::new(Shared {
            committed: broadcast::Sender::new(COMMITTED_KEPT_MAX),
            next_due: watch::Sender::new(live.next_due()),
            failed: watch::Sender::new(None),
            registry: watch::Sender::new(live.registry.clone()),
            head: AtomicU64::new(live.head.0),
            stats: Mutex::new(Stats::default()),
        });
        let mut writer = Writer {
            journal,
            live,
            clock,
            shared: shared.clone(),
            spilled: false,
            loaded: Evicted::default(),
        };
        std::thread::Builder::new()
            .name("tasuki-writer".into())
            .spawn(move || {
                writer.publish(Stats::default());
                let closed = writer.run(&messages);
                // Whoever waits for the end finds the data let go of.
                drop(writer);
                if let Some(reply) = closed {
                    // Nobody may be waiting any more; the work is done all the same.
                    let _ = reply.send(());
                }
            })
            .expect("the system has room for one more thread");
        Self { queue: Mutex::new(Some(queue)), shared }
    }

    fn send(&self, message: Message) -> Result<(), Error> {
        let queue = self.queue.lock().expect("no holder of this lock panics");
        match queue.as_ref().ok_or(Error::Closed)?.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(Error::Overloaded),
            Err(TrySendError::Disconnected(_)) => Err(Error::Closed),
        }
    }

    async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply))?;
        answer.await.map_err(|_| Error::Unknown)
    }

    pub(crate) async fn execute(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error> {
        if commands.len() > COMMANDS_MAX {
            return Err(Error::Overloaded);
        }
        self.ask(|reply| Message::Execute(commands, reply)).await
    }

    pub(crate) async fn handoff(&self, id: HandoffId) -> Result<Option<Arc<Handoff>>, Error> {
        self.ask(|reply| Message::Handoff(id, reply)).await?
    }

    pub(crate) async fn task(&self, id: TaskId) -> Result<Option<Arc<Task>>, Error> {
        self.ask(|reply| Message::Task(id, reply)).await?
    }

    pub(crate) async fn snapshot(&self) -> Result<Snapshot, Error> {
        self.ask(Message::Snapshot).await
    }

    pub(crate) async fn keep(
        &self,
        name: &'static str,
        at: Position,
        text: String,
    ) -> Result<(), Error> {
        self.ask(|reply| Message::Keep(name, at, text, reply)).await?
    }

    pub(crate) async fn waiting(&self, targets: Vec<Target>) -> Result<Vec<u64>, Error> {
        self.ask(|reply| Message::Waiting(targets, reply)).await
    }

    pub(crate) async fn usage(&self, tenant: TenantId) -> Result<Usage, Error> {
        self.ask(|reply| Message::Usage(tenant, reply)).await
    }

    /// Returns when everything committed before the call can be queried.
    pub(crate) async fn catch_up(&self) -> Result<(), Error> {
        self.ask(Message::CatchUp).await?
    }

    /// Refuses what would read past the writer once the store is closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        let queue = self.queue.lock().expect("no holder of this lock panics");
        if queue.is_some() { Ok(()) } else { Err(Error::Closed) }
    }

    pub(crate) async fn close(&self) {
        let closed = self.ask(Message::Close).await;
        self.queue.lock().expect("no holder of this lock panics").take();
        // A writer that failed or was closed before has nothing left to write down.
        drop(closed);
    }

    pub(crate) async fn failed(&self) -> String {
        let mut failed = self.shared.failed.subscribe();
        let reason = failed.wait_for(Option::is_some).await.ok().and_then(|known| known.clone());
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn stats(&self) -> Stats {
        *self.shared.stats.lock().expect("no holder of this lock panics")
    }
}

struct Writer<J> {
    journal: J,
    live: Live,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    /// Whether idempotency keys were put out of RAM before their time.
    spilled: bool,
    /// What was loaded for this batch, to be let go of after it.
    loaded: Evicted,
}

impl<J: Journal> Writer<J> {
    /// Works until the store is closed, fails, or is dropped. Returns who waits for the end.
    fn run(&mut self, queue: &Receiver<Message>) -> Option<oneshot::Sender<()>> {
        let mut messages = Vec::with_capacity(BATCH_MAX);
        loop {
            if self.journal.lag() == 0 {
                messages.push(queue.recv().ok()?);
            } else {
                match queue.recv_timeout(IDLE) {
                    Ok(first) => messages.push(first),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
            messages.extend(queue.try_iter().take(BATCH_MAX - 1));
            match self.batch(std::mem::take(&mut messages)) {
                Ok(Next::Go) => {}
                Ok(Next::Close(reply)) => {
                    self.journal.close();
                    return Some(reply);
                }
                Err(reason) => {
                    tracing::error!(%reason, "the store failed");
                    self.shared.failed.send_replace(Some(reason));
                    return None;
                }
            }
        }
    }

    fn batch(&mut self, messages: Vec<Message>) -> Result<Next, String> {
        self.forget_keys();
        let before = self.live.head;
        let mut rows = if messages.is_empty() { CatchUp::Some } else { CatchUp::Least };
        let mut close = None;
        let mut batch = Vec::new();
        let mut executed = Vec::with_capacity(messages.len());
        let mut reads = Vec::new();
        let mut catch_ups = Vec::new();
        for message in messages {
            match message {
                Message::Execute(commands, reply) => {
                    let replies = commands.iter().map(|c| self.carry_out(c, &mut batch)).collect();
                    executed.push(Executed { commands, replies, reply });
                }
                Message::Handoff(..)
                | Message::Task(..)
                | Message::Snapshot(_)
                | Message::Waiting(..)
                | Message::Usage(..)
                | Message::Keep(..) => {
                    reads.push(message);
                }
                Message::CatchUp(reply) => {
                    rows = CatchUp::All;
                    catch_ups.push(reply);
                }
                Message::Close(reply) => {
                    rows = CatchUp::All;
                    close = Some(reply);
                }
            }
        }
        let caught_up = match self.commit(&batch, rows) {
            Ok(()) => {
                let commands = executed.iter().map(|e| e.commands.len() as u64).sum();
                self.announce(batch, Stats { commands, ..Stats::default() });
                Ok(())
            }
            Err(Fault::Fatal(reason)) => return Err(reason),
            Err(Fault::Busy) => {
                self.take_back(before);
                for executed in &mut executed {
                    executed.replies.fill_with(|| Err(Error::Overloaded));
                }
                Err(Error::Overloaded)
            }
            Err(Fault::Full) => {
                self.take_back(before);
                self.journal.free_reserve();
                self.rerun_singly(&mut executed)?;
                Err(Error::DiskFull)
            }
        };
        self.answer(reads);
        // A caller that has gone away needs no answer.
        for executed in executed {
            let _ = executed.reply.send(executed.replies);
        }
        for reply in catch_ups {
            let _ = reply.send(caught_up.clone());
        }
        Ok(close.map_or(Next::Go, Next::Close))
    }

    /// Reading comes after the commit, so that nobody sees what a failed one took back.
    fn answer(&mut self, reads: Vec<Message>) {
        for read in reads {
            match read {
                Message::Handoff(id, reply) => drop(reply.send(self.find_handoff(id))),
                Message::Task(id, reply) => drop(reply.send(self.find_task(id))),
                Message::Snapshot(reply) => {
                    let tasks = self.live.tasks().cloned().collect();
                    let handoffs = self.live.handoffs().cloned().collect();
                    drop(reply.send((tasks, handoffs)));
                }
                Message::Waiting(targets, reply) => {
                    let counts = targets.iter().map(|target| self.live.waiting_for(target));
                    drop(reply.send(counts.collect()));
                }
                Message::Usage(tenant, reply) => {
                    // Nobody may be waiting any more.
                    let _ = reply.send(View::usage(&self.live, tenant.as_str()));
                }
                Message::Keep(name, at, text, reply) => {
                    drop(reply.send(self.journal.keep(name, at, &text)));
                }
                Message::Execute(..) | Message::CatchUp(_) | Message::Close(_) => {}
            }
        }
        self.let_go_of_loaded();
        self.live.keep();
    }

    /// Before anything is decided, so that a key counts for as long as was said and not until the
    /// next commit.
    fn forget_keys(&mut self) {
        let projected = self.journal.projected();
        self.spilled |= self.live.forget_keys(self.clock.now(), KEYS_MAX, projected);
    }

    /// After a batch found no space: each command on its own, so that one that still fits is not
    /// refused for the sake of one that does not.
    fn rerun_singly(&mut self, executed: &mut [Executed]) -> Result<(), String> {
        for Executed { commands, replies, .. } in executed {
            replies.clear();
            for command in &*commands {
                let before = self.live.head;
                let mut batch = Vec::new();
                let reply = self.carry_out(command, &mut batch);
                match self.commit(&batch, CatchUp::Least) {
                    Ok(()) => {
                        self.announce(batch, Stats { commands: 1, ..Stats::default() });
                        replies.push(reply);
                    }
                    Err(Fault::Fatal(reason)) => return Err(reason),
                    Err(Fault::Busy | Fault::Full) => {
                        self.take_back(before);
                        replies.push(Err(Error::DiskFull));
                    }
                }
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, command: &Command, batch: &mut Vec<Appended>) -> Reply {
        let footprint = command.footprint();
        if footprint.brings_work && !self.journal.has_room() {
            return Err(Error::DiskFull);
        }
        self.load(&footprint)?;
        self.load_key(command)?;
        let now = self.clock.now();
        let Decision { events, renewals, outcome } = decide(command, &self.live, now);
        for id in renewals {
            self.live.renew(id, now);
        }
        for event in events {
            batch.push(self.live.append(event, now));
        }
        self.done(outcome?)
    }

    fn done(&mut self, outcome: Outcome) -> Reply {
        let mut handoffs = Vec::with_capacity(outcome.handoffs.len());
        for id in &outcome.handoffs {
            handoffs.extend(self.find_handoff(*id)?);
        }
        let task = match outcome.task {
            Some(id) => self.find_task(id)?,
            None => None,
        };
        let document = match &outcome.document {
            Some(id) => self.find_document(id)?,
            None => None,
        };
        Ok(Done { outcome, handoffs, task, document })
    }

    /// Loads what is not in RAM. What waits, is due or is held is live, and so is there; so is the
    /// handoff under way in a task.
    fn load(&mut self, footprint: &Footprint<'_>) -> Result<(), Error> {
        for id in footprint.handoffs {
            if let Some(handoff) = self.find_handoff(*id)? {
                self.load_task(handoff.task_id)?;
            }
        }
        for id in footprint.tasks {
            self.load_task(*id)?;
        }
        for id in &footprint.documents {
            self.find_document(id)?;
        }
        for &at in footprint.bodies {
            if !self.live.knows_body(at)
                && let Some(body) = self.journal.load_body(at)?
            {
                self.live.put_body(at, body);
            }
        }
        Ok(())
    }

    fn load_key(&mut self, command: &Command) -> Result<(), Error> {
        if self.spilled
            && let Some((agent, key)) = command.keyed()
            && tasuki_core::View::replay(&self.live, agent, key).is_none()
            && let Some(replay) = self.journal.load_replay(agent, key)?
        {
            let key = (agent.clone(), key.clone());
            self.live.put_replay(key, replay, self.clock.now(), Position(0));
        }
        Ok(())
    }

    fn find_handoff(&mut self, id: HandoffId) -> Result<Option<Arc<Handoff>>, Error> {
        if let Some(handoff) = self.live.shared_handoff(id) {
            return Ok(Some(handoff.clone()));
        }
        let Some(handoff) = self.journal.load_handoff(id)?.map(Arc::new) else { return Ok(None) };
        self.live.put_handoff(id, Some(handoff.clone()));
        self.loaded.handoffs.push(id);
        Ok(Some(handoff))
    }

    fn find_document(&mut self, id: &DocumentId) -> Result<Option<Arc<Document>>, Error> {
        if let Some(document) = self.live.shared_document(id) {
            return Ok(Some(document.clone()));
        }
        let document = self.journal.load_document(id)?.map(Arc::new);
        if let Some(document) = &document {
            self.live.put_document(document.clone());
        }
        Ok(document)
    }

    fn load_task(&mut self, id: TaskId) -> Result<(), Error> {
        self.find_task(id).map(drop)
    }

    fn find_task(&mut self, id: TaskId) -> Result<Option<Arc<Task>>, Error> {
        if let Some(task) = self.live.shared_task(id) {
            return Ok(Some(task.clone()));
        }
        let Some(task) = self.journal.load_task(id)?.map(Arc::new) else { return Ok(None) };
        self.live.put_task(id, Some(task.clone()));
        self.loaded.tasks.push(id);
        Ok(Some(task))
    }

    fn commit(&mut self, batch: &[Appended], rows: CatchUp) -> Result<(), Fault> {
        if batch.is_empty() && rows == CatchUp::Least {
            return Ok(());
        }
        let evicted = self.journal.commit(batch, &self.live, rows)?;
        for id in evicted.handoffs {
            self.live.put_handoff(id, None);
        }
        for id in evicted.tasks {
            self.live.put_task(id, None);
        }
        Ok(())
    }

    fn take_back(&mut self, head: Position) {
        self.loaded = Evicted::default();
        self.live.take_back(head);
    }

    /// After the commit, and never before it: makes the batch final and tells the outside.
    fn announce(&mut self, batch: Vec<Appended>, mut grew: Stats) {
        self.let_go_of_loaded();
        self.live.keep();
        self.live.known_anew.clear();
        if self.shared.registry.borrow().at != self.live.registry.at {
            self.shared.registry.send_replace(self.live.registry.clone());
        }
        let events: Vec<_> = batch.into_iter().map(|appended| appended.sealed).collect();
        grew.events = events.len() as u64;
        grew.commits = u64::from(!events.is_empty());
        self.publish(grew);
        let ready = std::mem::take(&mut self.live.ready);
        if !events.is_empty() || !ready.is_empty() {
            // Without subscribers there is nobody to tell.
            let _ =
                self.shared.committed.send(Arc::new(Committed { events, ready, missed: false }));
        }
    }

    /// What was loaded to answer a question, and did not change, need not stay.
    fn let_go_of_loaded(&mut self) {
        self.live.forget_documents();
        let projected = self.journal.projected();
        let loaded = std::mem::take(&mut self.loaded);
        for id in loaded.handoffs {
            let cold = |h: &&Arc<Handoff>| h.state.is_terminal() && h.at <= projected;
            if self.live.shared_handoff(id).filter(cold).is_some() {
                self.live.put_handoff(id, None);
            }
        }
        for id in loaded.tasks {
            let cold = |task: &&Arc<Task>| task.live.is_none() && task.at <= projected;
            if self.live.shared_task(id).filter(cold).is_some() {
                self.live.put_task(id, None);
            }
        }
    }

    fn publish(&mut self, grew: Stats) {
        let counts = self.live.counts();
        let disk_full = !self.journal.has_room();
        let mut stats = self.shared.stats.lock().expect("no holder of this lock panics");
        stats.commands += grew.commands;
        stats.events += grew.events;
        stats.commits += grew.commits;
        stats.live_handoffs = counts.live as u64;
        stats.live_bytes = counts.live as u64 * LIVE_BYTES_EACH;
        stats.waiting_handoffs = counts.waiting as u64;
        stats.idempotency_keys = counts.keys as u64;
        stats.projection_lag = self.journal.lag() as u64;
        stats.disk_full = disk_full;
        drop(stats);
        self.shared.head.store(self.live.head.0, Ordering::Release);
        let due = self.live.next_due();
        self.shared.next_due.send_if_modified(|known| std::mem::replace(known, due) != due);
    }
}

/// About what a live handoff and its task take with their index entries; the benchmark prints
/// what was measured.
const LIVE_BYTES_EACH: u64 =
    (size_of::<Handoff>() + size_of::<Task>() + 2 * size_of::<Arc<Task>>() + 400) as u64;

enum Next {
    Go,
    Close(oneshot::Sender<()>),
}

#[cfg(test)]
mod tests;
