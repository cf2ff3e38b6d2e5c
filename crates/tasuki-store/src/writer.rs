// SPDX-License-Identifier: Apache-2.0
//! Drivers of the [`Machine`]: the one thread that takes every waiting command as one batch, so that
//! they share one commit, and, for a store that never waits for a disk, whoever asks. Both show and
//! tell what a batch led to before they answer, and never before it is durable.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, RwLockReadGuard, Weak};

use tasuki_core::registry::Registry;
use tasuki_core::{Command, Position, Timestamp};
use tokio::sync::{Notify, broadcast, oneshot, watch};
use tokio::task::AbortHandle;

use crate::clock::{Clock, Stopwatch};
use crate::feed::{Committed, Timings};
use crate::images::{Images, Shown};
use crate::live::Live;
use crate::machine::{CatchUp, Journal, Machine, Output};
use crate::workers::{Failure, Until, Workers, faults};
use crate::{COMMANDS_MAX, Error, QUEUE_MAX, Reply, Stats};

/// How many messages one commit takes at most, so that a flood cannot delay the first of them.
const BATCH_MAX: usize = 1024;
/// How many committed batches a slow subscriber may lag behind before it has to read the log.
const COMMITTED_KEPT_MAX: usize = 1024;
/// For how long nothing may come before what queries would have to wait for is written down.
const IDLE_MS: u64 = 20;

/// What is to be seen of the machine from outside.
pub(crate) struct Shared {
    pub(crate) committed: broadcast::Sender<Arc<Committed>>,
    pub(crate) next_due: watch::Sender<Option<Timestamp>>,
    pub(crate) workers: Workers,
    pub(crate) registry: watch::Sender<Arc<Registry>>,
    pub(crate) head: AtomicU64,
    pub(crate) stats: Mutex<Stats>,
    pub(crate) images: Images,
    /// Cleared when nothing more is answered: the store was closed, or failed.
    open: AtomicBool,
}

impl Shared {
    fn of<J: Journal>(machine: &Machine<J>, workers: Workers) -> Arc<Self> {
        let images = Images::default();
        machine.live().show_all(&images);
        Arc::new(Self {
            committed: broadcast::Sender::new(COMMITTED_KEPT_MAX),
            next_due: watch::Sender::new(machine.next_due()),
            workers,
            registry: watch::Sender::new(machine.live().registry.clone()),
            head: AtomicU64::new(machine.head().0),
            stats: Mutex::new(machine.stats()),
            images,
            open: AtomicBool::new(true),
        })
    }

    /// Shows what a batch led to, and then tells everybody. Replies come after this.
    fn tell<J: Journal>(&self, machine: &Machine<J>, output: &mut Output, timings: Timings) {
        self.images.write().put(std::mem::take(&mut output.images));
        if let Some(registry) = output.registry.take() {
            // Who is known is news to everybody; what stands in the way of work is looked up.
            self.registry.send_if_modified(|known| {
                let news = registry.changed_pos != known.changed_pos;
                *known = registry;
                news
            });
        }
        *self.stats.lock().expect("no holder of this lock panics") = machine.stats();
        self.head.store(machine.head().0, Ordering::Release);
        let due = machine.next_due();
        self.next_due.send_if_modified(|known| std::mem::replace(known, due) != due);
        for mut committed in output.committed.drain(..) {
            let sync_us = committed.timings.sync_us;
            committed.timings = Timings { sync_us, ..timings };
            // Without subscribers there is nobody to tell.
            let _ = self.committed.send(Arc::new(committed));
        }
    }

    fn fail(&self, reason: String) {
        tracing::error!(%reason, "the store failed");
        self.open.store(false, Ordering::Release);
        self.workers.fail(Failure::Store(reason));
    }

    /// Refuses what would read past the writer once the store is closed or failed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.open.load(Ordering::Acquire) { Ok(()) } else { Err(Error::Closed) }
    }

    /// What is committed, without asking the writer.
    pub(crate) fn images(&self) -> Result<RwLockReadGuard<'_, Shown>, Error> {
        self.check_open()?;
        Ok(self.images.read())
    }

    pub(crate) fn head(&self) -> Position {
        Position(self.head.load(Ordering::Acquire))
    }

    pub(crate) fn stats(&self) -> Stats {
        *self.stats.lock().expect("no holder of this lock panics")
    }
}

/// The way to the writer thread, until it is closed.
type Queue = Mutex<Option<SyncSender<(Message, Stopwatch)>>>;

/// The way to the writer thread.
pub(crate) struct Handle {
    queue: Arc<Queue>,
    pub(crate) shared: Arc<Shared>,
    idling: AbortHandle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.workers.may_end();
        self.idling.abort();
    }
}

enum Message {
    Execute(Vec<Command>, oneshot::Sender<Vec<Reply>>),
    SaveFold(&'static str, Position, String, oneshot::Sender<Result<(), Error>>),
    CatchUp(oneshot::Sender<Result<(), Error>>),
    /// Nothing came for a while.
    Idle,
    Close(oneshot::Sender<()>),
}

impl Handle {
    pub(crate) fn start<J: Journal>(
        journal: J,
        live: Live,
        clock: Arc<dyn Clock>,
        workers: &Workers,
    ) -> Self {
        let (queue, messages) = sync_channel(QUEUE_MAX);
        let machine = Machine::new(journal, live);
        let shared = Shared::of(&machine, workers.clone());
        let behind = Arc::new(Notify::new());
        let queue = Arc::new(Mutex::new(Some(queue)));
        let came = Arc::new(AtomicU64::new(0));
        let idling = idle(Arc::downgrade(&queue), behind.clone(), came.clone(), clock.clone());
        let idling = workers.spawn("idle clock", Until::Done, idling).abort_handle();
        let mut writer = Writer { machine, clock, shared: shared.clone(), behind, came };
        workers.thread("writer", Until::Closed, move || {
            let closed = writer.run(&messages);
            // Whoever waits for the end finds the data let go of.
            drop(writer);
            if let Some(reply) = closed {
                // Nobody may be waiting any more; the work is done all the same.
                let _ = reply.send(());
            }
        });
        Self { queue, shared, idling }
    }

    fn send(&self, message: Message) -> Result<(), Error> {
        let queue = self.queue.lock().expect("no holder of this lock panics");
        match queue.as_ref().ok_or(Error::Closed)?.try_send((message, Stopwatch::start())) {
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

    pub(crate) async fn save_fold(
        &self,
        name: &'static str,
        at: Position,
        text: String,
    ) -> Result<(), Error> {
        self.ask(|reply| Message::SaveFold(name, at, text, reply)).await?
    }

    /// Returns when everything committed before the call can be queried.
    pub(crate) async fn catch_up(&self) -> Result<(), Error> {
        self.ask(Message::CatchUp).await?
    }

    pub(crate) async fn close(&self) {
        self.shared.workers.may_end();
        self.shared.open.store(false, Ordering::Release);
        let closed = self.ask(Message::Close).await;
        self.queue.lock().expect("no holder of this lock panics").take();
        // A writer that failed or was closed before has nothing left to write down.
        drop(closed);
    }
}

/// Tells the writer when nothing came for a while, by the store's clock.
async fn idle(
    queue: Weak<Queue>,
    behind: Arc<Notify>,
    came: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
) {
    loop {
        behind.notified().await;
        loop {
            let before = came.load(Ordering::Acquire);
            clock.sleep_ms(IDLE_MS).await;
            if came.load(Ordering::Acquire) == before {
                break;
            }
        }
        let Some(queue) = queue.upgrade() else { return };
        let queue = queue.lock().expect("no holder of this lock panics");
        let Some(queue) = &*queue else { return };
        match queue.try_send((Message::Idle, Stopwatch::start())) {
            Ok(()) => {}
            // With so much to do it is not idle.
            Err(TrySendError::Full(_)) => behind.notify_one(),
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

struct Writer<J> {
    machine: Machine<J>,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    /// Rings when there is something to write down once nothing comes for a while.
    behind: Arc<Notify>,
    /// How many batches came, those that tell of idleness left out.
    came: Arc<AtomicU64>,
}

/// Who waits for what of a batch.
#[derive(Default)]
struct Callers {
    executed: Vec<oneshot::Sender<Vec<Reply>>>,
    caught_up: Vec<oneshot::Sender<Result<(), Error>>>,
    closed: Option<oneshot::Sender<()>>,
}

impl<J: Journal> Writer<J> {
    /// Works until the store is closed, fails, or is dropped. Returns who waits for the end.
    fn run(&mut self, queue: &Receiver<(Message, Stopwatch)>) -> Option<oneshot::Sender<()>> {
        let mut messages = Vec::with_capacity(BATCH_MAX);
        loop {
            if self.machine.lag() > 0 {
                self.behind.notify_one();
            }
            messages.push(queue.recv().ok()?);
            messages.extend(queue.try_iter().take(BATCH_MAX - 1));
            match self.batch(&mut messages) {
                Ok(None) => {}
                Ok(Some(closed)) => {
                    self.machine.close();
                    return Some(closed);
                }
                Err(reason) => {
                    self.shared.fail(reason);
                    return None;
                }
            }
        }
    }

    /// One batch, from the queue to the replies. Returns who waits for the store to be closed.
    fn batch(
        &mut self,
        messages: &mut Vec<(Message, Stopwatch)>,
    ) -> Result<Option<oneshot::Sender<()>>, String> {
        faults::in_thread("writer");
        let queue_us = messages.first().map_or(0, |(_, waited)| waited.us());
        let idle = messages.iter().all(|(message, _)| matches!(message, Message::Idle));
        let mut rows = if idle { CatchUp::Some } else { CatchUp::Least };
        self.came.fetch_add(u64::from(!idle), Ordering::AcqRel);
        let mut callers = Callers::default();
        let mut groups = Vec::with_capacity(messages.len());
        for (message, _) in messages.drain(..) {
            match message {
                Message::Execute(commands, reply) => {
                    groups.push(commands);
                    callers.executed.push(reply);
                }
                Message::Idle => {}
                // A caller that has gone away needs no answer.
                Message::SaveFold(name, at, text, reply) => {
                    let _ = reply.send(self.machine.save_fold(name, at, &text));
                }
                Message::CatchUp(reply) => {
                    rows = CatchUp::All;
                    callers.caught_up.push(reply);
                }
                Message::Close(reply) => {
                    rows = CatchUp::All;
                    callers.closed = Some(reply);
                }
            }
        }
        let watch = Stopwatch::start();
        let decided = self.machine.decide(groups, self.clock.now());
        let decide_us = watch.us();
        let mut output = self.machine.commit(decided, rows)?;
        let commit_us = watch.us() - decide_us;
        let timings = Timings { queue_us, decide_us, commit_us, sync_us: 0 };
        self.shared.tell(&self.machine, &mut output, timings);
        for (caller, replies) in callers.executed.into_iter().zip(output.replies) {
            let _ = caller.send(replies);
        }
        for caller in callers.caught_up {
            let _ = caller.send(output.not_caught_up.clone().map_or(Ok(()), Err));
        }
        Ok(callers.closed)
    }
}

/// The machine without a thread of its own: every call is a batch. One thing at a time, and nothing
/// that only chance decides, so a simulation is played again by its seed.
pub(crate) struct Inline<J> {
    machine: Mutex<Option<Machine<J>>>,
    clock: Arc<dyn Clock>,
    pub(crate) shared: Arc<Shared>,
}

impl<J: Journal> Inline<J> {
    pub(crate) fn new(journal: J, live: Live, clock: Arc<dyn Clock>) -> Self {
        let machine = Machine::new(journal, live);
        let shared = Shared::of(&machine, Workers::default());
        Self { machine: Mutex::new(Some(machine)), clock, shared }
    }

    pub(crate) fn execute(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error> {
        if commands.len() > COMMANDS_MAX {
            return Err(Error::Overloaded);
        }
        let mut slot = self.machine.lock().expect("no holder of this lock panics");
        let machine = slot.as_mut().ok_or(Error::Closed)?;
        let decided = machine.decide(vec![commands], self.clock.now());
        match machine.commit(decided, CatchUp::Least) {
            Ok(mut output) => {
                self.shared.tell(machine, &mut output, Timings::default());
                Ok(output.replies.pop().unwrap_or_default())
            }
            Err(reason) => {
                *slot = None;
                self.shared.fail(reason);
                Err(Error::Unknown)
            }
        }
    }

    pub(crate) fn close(&self) {
        self.shared.workers.may_end();
        self.shared.open.store(false, Ordering::Release);
        let machine = self.machine.lock().expect("no holder of this lock panics").take();
        if let Some(mut machine) = machine {
            machine.close();
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a wait by the real clock is a safety net")]
pub(crate) mod tests;
