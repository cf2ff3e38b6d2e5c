// SPDX-License-Identifier: Apache-2.0
//! The writer without its thread: a batch of commands goes in, and what follows from it comes out
//! once it is durable: replies, the changes for the feed, the after-images that readers see, and
//! what became due. It owns the live state and the [`Journal`]; it knows no thread, no channel and
//! no time but what it is told, so a simulation drives the very same machine.

use std::sync::Arc;

use tasuki_core::commands::Footprint;
use tasuki_core::decide::{Decision, Outcome, Replay};
use tasuki_core::document::StoredBody;
use tasuki_core::handoff::Facts;
use tasuki_core::ids::IdempotencyKey;
use tasuki_core::registry::Registry;
use tasuki_core::{
    AgentId, Command, Document, DocumentId, Handoff, HandoffId, Position, Task, TaskId, Timestamp,
    decide,
};

use crate::feed::{Change, Committed};
use crate::images::AfterImages;
use crate::live::{Appended, Live};
use crate::{Done, Error, Reply, Stats};

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
        now: Timestamp,
    ) -> Result<Option<Replay>, Error>;
    fn load_document(&mut self, id: &DocumentId) -> Result<Option<Document>, Error>;
    /// What came with an event, to be erased.
    fn load_body(&mut self, at: Position) -> Result<Option<StoredBody>, Error>;
    /// Makes a batch durable, and as much as asked of what queries read. Returns what need not stay
    /// in RAM any longer.
    fn commit(
        &mut self,
        batch: &[Appended],
        live: &Live,
        rows: CatchUp,
        now: Timestamp,
    ) -> Result<Written, Fault>;
    /// Whether there is room for new work. Finishing work has space of its own.
    fn has_room(&mut self, now: Timestamp) -> bool;
    /// Frees the space that is kept for finishing work.
    fn free_reserve(&mut self, now: Timestamp);
    /// How many rows queries would have to wait for.
    fn lag(&self) -> usize;
    /// Saves what a fold has made of the log so far, in place of what it saved before.
    fn save_fold(&mut self, name: &str, at: Position, text: &str) -> Result<(), Error>;
    /// Up to which position everything is where a cold load finds it.
    fn projected(&self) -> Position;
    /// Leaves everything in good order; nothing comes after it.
    fn close(&mut self);
}

/// How much of what queries read is to be written down now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CatchUp {
    /// Only what would otherwise fall too far behind.
    #[default]
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

/// What a commit did.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) evicted: Evicted,
    /// How long its sync took, in microseconds.
    pub(crate) sync_us: u64,
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

/// The commands of a batch as they were decided, not durable yet. Each group came with one call.
pub(crate) struct Decided {
    groups: Vec<Vec<Command>>,
    replies: Vec<Vec<Reply>>,
    appended: Vec<Appended>,
    before: Position,
    now: Timestamp,
}

/// What follows from a batch. Nothing of it was to be seen before.
#[derive(Default)]
pub(crate) struct Output {
    /// One for each command of each group.
    pub(crate) replies: Vec<Vec<Reply>>,
    pub(crate) committed: Vec<Committed>,
    pub(crate) images: AfterImages,
    /// Who is known from now on, if that changed.
    pub(crate) registry: Option<Arc<Registry>>,
    /// Why rows did not catch up, if they did not.
    pub(crate) not_caught_up: Option<Error>,
}

pub(crate) struct Machine<J> {
    journal: J,
    live: Live,
    /// Whether idempotency keys were put out of RAM before their time.
    spilled: bool,
    /// What was loaded for this batch, to be let go of after it.
    loaded: Evicted,
    stats: Stats,
    /// The last change of the registry that was put out.
    registry_pos: Position,
    /// The time of the last batch.
    now: Timestamp,
}

impl<J: Journal> Machine<J> {
    pub(crate) fn new(journal: J, live: Live) -> Self {
        let registry_pos = live.registry.last_pos;
        let mut machine = Self {
            journal,
            live,
            spilled: false,
            loaded: Evicted::default(),
            stats: Stats::default(),
            registry_pos,
            now: Timestamp(i64::MIN),
        };
        machine.count(0, 0);
        machine
    }

    /// What is in RAM, for the first readers.
    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    pub(crate) fn head(&self) -> Position {
        self.live.head
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.live.next_due()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.stats
    }

    pub(crate) fn lag(&self) -> usize {
        self.journal.lag()
    }

    /// Saves a text beside the log. It follows from the log, so it needs no batch.
    pub(crate) fn save_fold(&mut self, name: &str, at: Position, text: &str) -> Result<(), Error> {
        self.journal.save_fold(name, at, text)
    }

    pub(crate) fn close(&mut self) {
        self.journal.close();
    }

    /// Decides commands one after the other. What follows is in RAM, and seen by nobody until it is
    /// committed.
    pub(crate) fn decide(&mut self, groups: Vec<Vec<Command>>, now: Timestamp) -> Decided {
        self.now = now;
        // Before anything is decided, so that a key counts for as long as was said and not until
        // the next commit.
        let projected = self.journal.projected();
        self.spilled |= self.live.forget_keys(now, KEYS_MAX, projected);
        let before = self.live.head;
        let mut appended = Vec::new();
        let mut replies = Vec::with_capacity(groups.len());
        for group in &groups {
            let decided = group.iter().map(|command| self.carry_out(command, now, &mut appended));
            replies.push(decided.collect());
        }
        Decided { groups, replies, appended, before, now }
    }

    /// Makes a batch durable and says what follows, or takes all of it back. An error is final:
    /// whether the batch was written is not known.
    pub(crate) fn commit(&mut self, decided: Decided, rows: CatchUp) -> Result<Output, String> {
        let Decided { groups, mut replies, appended, before, now } = decided;
        let mut output = Output::default();
        let commands = groups.iter().map(|group| group.len() as u64).sum();
        match self.write(&appended, rows, now) {
            Ok(sync_us) => self.put_out(appended, commands, sync_us, &mut output),
            Err(Fault::Fatal(reason)) => return Err(reason),
            Err(Fault::Busy) => {
                self.roll_back(before);
                replies.iter_mut().flatten().for_each(|reply| *reply = Err(Error::Overloaded));
                output.not_caught_up = Some(Error::Overloaded);
            }
            Err(Fault::Full) => {
                self.roll_back(before);
                self.journal.free_reserve(self.now);
                replies = self.rerun_singly(&groups, now, &mut output)?;
                output.not_caught_up = Some(Error::DiskFull);
            }
        }
        output.replies = replies;
        Ok(output)
    }

    /// After a batch found no space: each command on its own, so that one that still fits is not
    /// refused for the sake of one that does not.
    fn rerun_singly(
        &mut self,
        groups: &[Vec<Command>],
        now: Timestamp,
        output: &mut Output,
    ) -> Result<Vec<Vec<Reply>>, String> {
        let mut all = Vec::with_capacity(groups.len());
        for group in groups {
            let mut replies = Vec::with_capacity(group.len());
            for command in group {
                let before = self.live.head;
                let mut appended = Vec::new();
                let reply = self.carry_out(command, now, &mut appended);
                match self.write(&appended, CatchUp::Least, now) {
                    Ok(sync_us) => {
                        self.put_out(appended, 1, sync_us, output);
                        replies.push(reply);
                    }
                    Err(Fault::Fatal(reason)) => return Err(reason),
                    Err(Fault::Busy | Fault::Full) => {
                        self.roll_back(before);
                        replies.push(Err(Error::DiskFull));
                    }
                }
            }
            all.push(replies);
        }
        Ok(all)
    }

    fn carry_out(
        &mut self,
        command: &Command,
        now: Timestamp,
        appended: &mut Vec<Appended>,
    ) -> Reply {
        let footprint = command.footprint();
        if footprint.brings_work && !self.journal.has_room(now) {
            return Err(Error::DiskFull);
        }
        self.load(&footprint)?;
        self.load_key(command, now)?;
        let Decision { events, renewals, outcome } = decide(command, &self.live, now);
        for id in renewals {
            self.live.renew(id, now);
        }
        for event in events {
            appended.push(self.live.append(event, now));
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
                self.find_task(handoff.task_id)?;
            }
        }
        for id in footprint.all_tasks() {
            self.find_task(id)?;
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

    fn load_key(&mut self, command: &Command, now: Timestamp) -> Result<(), Error> {
        if self.spilled
            && let Some((agent, key)) = command.keyed()
            && tasuki_core::View::replay(&self.live, agent, key).is_none()
            && let Some(replay) = self.journal.load_replay(agent, key, now)?
        {
            let key = (agent.clone(), key.clone());
            self.live.put_replay(key, replay, now, Position(0));
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

    fn find_task(&mut self, id: TaskId) -> Result<Option<Arc<Task>>, Error> {
        if let Some(task) = self.live.shared_task(id) {
            return Ok(Some(task.clone()));
        }
        let Some(task) = self.journal.load_task(id)?.map(Arc::new) else { return Ok(None) };
        self.live.put_task(id, Some(task.clone()));
        self.loaded.tasks.push(id);
        Ok(Some(task))
    }

    /// Returns how long the sync took.
    fn write(&mut self, batch: &[Appended], rows: CatchUp, now: Timestamp) -> Result<u64, Fault> {
        if batch.is_empty() && rows == CatchUp::Least {
            return Ok(0);
        }
        let Written { evicted, sync_us } = self.journal.commit(batch, &self.live, rows, now)?;
        for id in evicted.handoffs {
            self.live.put_handoff(id, None);
        }
        for id in evicted.tasks {
            self.live.put_task(id, None);
        }
        Ok(sync_us)
    }

    fn roll_back(&mut self, head: Position) {
        self.loaded = Evicted::default();
        self.live.roll_back(head);
    }

    /// After the commit, and never before it: makes the batch final and puts it out.
    fn put_out(&mut self, batch: Vec<Appended>, commands: u64, sync_us: u64, output: &mut Output) {
        self.let_go_of_loaded();
        self.live.after_images(&mut output.images);
        self.live.commit();
        self.live.known_anew.clear();
        if self.live.registry.last_pos != self.registry_pos {
            self.registry_pos = self.live.registry.last_pos;
            output.registry = Some(self.live.registry.clone());
        }
        self.count(commands, batch.len() as u64);
        let ready = std::mem::take(&mut self.live.ready);
        if !batch.is_empty() || !ready.is_empty() {
            let changes: Vec<Change> = batch.into_iter().map(Appended::into_change).collect();
            let mut committed = Committed { changes, ready, ..Committed::default() };
            committed.timings.sync_us = sync_us;
            output.committed.push(committed);
        }
    }

    /// What was loaded to answer a question, and did not change, need not stay.
    fn let_go_of_loaded(&mut self) {
        self.live.forget_documents();
        let projected = self.journal.projected();
        let loaded = std::mem::take(&mut self.loaded);
        for id in loaded.handoffs {
            let cold = |h: &&Arc<Handoff>| h.state.is_terminal() && h.last_pos <= projected;
            if self.live.shared_handoff(id).filter(cold).is_some() {
                self.live.put_handoff(id, None);
            }
        }
        for id in loaded.tasks {
            let cold = |task: &&Arc<Task>| task.live.is_none() && task.last_pos <= projected;
            if self.live.shared_task(id).filter(cold).is_some() {
                self.live.put_task(id, None);
            }
        }
    }

    fn count(&mut self, commands: u64, events: u64) {
        let counts = self.live.counts();
        let stats = &mut self.stats;
        stats.commands += commands;
        stats.events += events;
        stats.commits += u64::from(events > 0);
        stats.live_handoffs = counts.live as u64;
        stats.live_bytes = counts.live as u64 * LIVE_BYTES_EACH;
        stats.waiting_handoffs = counts.waiting as u64;
        stats.idempotency_keys = counts.keys as u64;
        stats.projection_lag = self.journal.lag() as u64;
        stats.disk_full = !self.journal.has_room(self.now);
    }
}

/// About what a live handoff and its task take with their index entries; the benchmark prints
/// what was measured.
const LIVE_BYTES_EACH: u64 =
    (size_of::<Handoff>() + size_of::<Facts>() + size_of::<Task>() + 400) as u64;

#[cfg(test)]
mod tests;
