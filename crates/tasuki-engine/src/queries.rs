// SPDX-License-Identifier: Apache-2.0
//! Reading. Nothing here decides or changes anything.

use std::sync::Arc;

use tasuki_core::cursor::{Epochs, Lost};
use tasuki_core::event::DeadReason;
use tasuki_core::handoff::{AttemptEnd, Review, StateName};
use tasuki_core::{
    AgentId, Body, Cursor, Event, Handoff, HandoffId, Position, Refusal, State, Task, TaskId,
    Timestamp,
};
use tasuki_protocol::Missed;
use tasuki_store::audit::{self, Verdict};
use tasuki_store::{Entry, HandoffFilter, Needs, PAGE_MAX, Stats, TaskFilter};

use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::sight::{handoff_in, task_in};

/// A dead letter with what somebody needs to decide on it.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    pub handoff: Arc<Handoff>,
    pub envelope: Option<Body>,
    /// The reports of the attempts that left one, by attempt number.
    pub reports: Vec<(u32, AttemptEnd, Body)>,
    /// Who declined it and said why.
    pub declines: Vec<(AgentId, Body)>,
    /// Why it was discarded.
    pub discarded_because: Option<Body>,
    /// Why an approver said no.
    pub rejected_because: Option<Body>,
}

/// An event of a task with the body that came with it.
#[derive(Debug, Clone)]
pub struct ChainEntry {
    pub entry: Entry,
    pub body: Option<Body>,
}

/// Where a cursor stands in the log, and what is to be said if some of what it names was lost.
#[derive(Debug, Clone)]
pub struct Placed {
    pub position: Position,
    pub missed: Option<Missed>,
}

impl Engine {
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.store.clock().now()
    }

    #[must_use]
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }

    pub async fn handoff(&self, id: HandoffId) -> Result<Arc<Handoff>, Error> {
        handoff_in(&self.look(Needs::handoff(id)).await?, id).cloned()
    }

    pub async fn task(&self, id: TaskId) -> Result<Arc<Task>, Error> {
        task_in(&self.look(Needs::task(id)).await?, id).cloned()
    }

    pub async fn envelope(&self, id: HandoffId) -> Result<(Arc<Handoff>, Option<Body>), Error> {
        let sight = self.look(Needs::handoff(id).with_envelopes()).await?;
        let handoff = handoff_in(&sight, id)?;
        Ok((handoff.clone(), sight.envelope(handoff).cloned()))
    }

    /// The result of a completed handoff.
    pub async fn result(&self, id: HandoffId) -> Result<Option<Body>, Error> {
        let sight = self.look(Needs::handoff(id).with_results()).await?;
        Ok(sight.result(handoff_in(&sight, id)?).cloned())
    }

    /// The results of many handoffs at once; `None` where there is none.
    pub async fn results(&self, handoffs: &[Arc<Handoff>]) -> Result<Vec<Option<Body>>, Error> {
        let at: Vec<Option<Position>> =
            handoffs.iter().map(|handoff| handoff.state.result_pos()).collect();
        let mut bodies =
            self.store.bodies(at.iter().flatten().copied().collect()).await?.into_iter();
        Ok(at.into_iter().map(|at| at.and_then(|_| bodies.next().flatten())).collect())
    }

    pub async fn list_handoffs(&self, filter: HandoffFilter) -> Result<Vec<Arc<Handoff>>, Error> {
        check_page(filter.max)?;
        Ok(self.store.list_handoffs(filter).await?)
    }

    pub async fn list_tasks(&self, filter: TaskFilter) -> Result<Vec<Arc<Task>>, Error> {
        check_page(filter.max)?;
        Ok(self.store.list_tasks(filter).await?)
    }

    pub async fn dead_letter(&self, id: HandoffId) -> Result<DeadLetter, Error> {
        let handoff = self.handoff(id).await?;
        let State::DeadLettered { review, .. } = &handoff.state else {
            let state = handoff.state.name();
            return Err(Refusal::NotDeadLettered { handoff: id, state }.into());
        };
        let discarded_at = match review {
            Some(Review::Discarded { reason_pos }) => Some(*reason_pos),
            Some(Review::Redriven { .. } | Review::Closed { .. }) | None => None,
        };
        let ended: Vec<_> = handoff
            .attempts
            .iter()
            .filter_map(|attempt| attempt.ended.as_ref().map(|ended| (attempt.number, ended)))
            .filter_map(|(number, ended)| ended.report.map(|(at, _)| (number, ended.how, at)))
            .collect();
        let mut at = vec![handoff.envelope_pos];
        at.extend(discarded_at);
        at.extend(ended.iter().map(|(_, _, at)| *at));
        let mut bodies = self.store.bodies(at).await?.into_iter();
        let envelope = bodies.next().flatten();
        let discarded_because = discarded_at.and_then(|_| bodies.next().flatten());
        let reports = ended
            .into_iter()
            .zip(bodies)
            .filter_map(|((number, how, _), body)| body.map(|body| (number, how, body)))
            .collect();
        let declines = match handoff.declined_by.is_empty() {
            true => Vec::new(),
            false => self.declines(&handoff).await?,
        };
        let rejected_because = match &handoff.state {
            State::DeadLettered { reason: DeadReason::Rejected | DeadReason::Deadlock, .. } => {
                self.rejection(&handoff).await?
            }
            _ => None,
        };
        let (discarded, rejected) = (discarded_because, rejected_because);
        Ok(DeadLetter {
            handoff,
            envelope,
            reports,
            declines,
            discarded_because: discarded,
            rejected_because: rejected,
        })
    }

    /// Why an approver said no.
    async fn rejection(&self, handoff: &Handoff) -> Result<Option<Body>, Error> {
        let mut entries = self.store.chain(handoff.task_id).await?;
        entries.retain(|entry| {
            let record = &entry.sealed.record;
            record.handoff_id == Some(handoff.id)
                && matches!(record.event, Event::DeadLettered { because: Some(_), .. })
        });
        Ok(self.with_bodies(entries).await?.pop().and_then(|entry| entry.body))
    }

    async fn declines(&self, handoff: &Handoff) -> Result<Vec<(AgentId, Body)>, Error> {
        let mut entries = self.store.chain(handoff.task_id).await?;
        entries.retain(|entry| entry.sealed.record.handoff_id == Some(handoff.id));
        let told = self.with_bodies(entries).await?.into_iter();
        let declined = |link: ChainEntry| {
            let agent = link.entry.sealed.record.event.facts().declined_by?.clone();
            Some((agent, link.body?))
        };
        Ok(told.filter_map(declined).collect())
    }

    /// Dead letters, newest first.
    pub async fn dead_letters(&self, filter: HandoffFilter) -> Result<Vec<Arc<Handoff>>, Error> {
        let state = Some(StateName::DeadLettered);
        self.list_handoffs(HandoffFilter { state, ..filter }).await
    }

    /// Everything that happened to a task, with the bodies, from the first event to the last.
    pub async fn chain(&self, id: TaskId) -> Result<Vec<ChainEntry>, Error> {
        self.task(id).await?;
        let entries = self.store.chain(id).await?;
        self.with_bodies(entries).await
    }

    async fn with_bodies(&self, entries: Vec<Entry>) -> Result<Vec<ChainEntry>, Error> {
        let at: Vec<_> = entries
            .iter()
            .filter(|entry| entry.sealed.record.event.body().is_some())
            .map(|entry| entry.sealed.position)
            .collect();
        let mut bodies = self.store.bodies(at).await?.into_iter();
        let chain = entries.into_iter().map(|entry| {
            let has_body = entry.sealed.record.event.body().is_some();
            let body = if has_body { bodies.next().flatten() } else { None };
            ChainEntry { entry, body }
        });
        Ok(chain.collect())
    }

    /// The next events of the log, with their bodies.
    pub(crate) async fn links(
        &self,
        after: Position,
        max: usize,
    ) -> Result<Vec<ChainEntry>, Error> {
        self.with_bodies(self.events(after, max).await?).await
    }

    pub async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Error> {
        check_page(max)?;
        Ok(self.store.events(after, max).await?)
    }

    #[must_use]
    pub fn head(&self) -> Position {
        self.store.head()
    }

    /// Where the epochs begin, to tell positions as cursors.
    pub async fn epochs(&self) -> Result<Arc<Epochs>, Error> {
        if let Some(known) = &*self.epochs.borrow() {
            return Ok(known.clone());
        }
        Ok(Arc::new(self.store.epochs().await?))
    }

    /// The position that a cursor stands for. What was raised a moment ago counts, so it is read.
    pub async fn place(&self, field: &'static str, cursor: Cursor) -> Result<Placed, Error> {
        if cursor.epoch.is_none() {
            return Ok(Placed { position: cursor.position, missed: None });
        }
        let epochs = self.store.epochs().await?;
        match epochs.place(cursor) {
            Ok(position) => Ok(Placed { position, missed: None }),
            Err(Lost::Cut { after }) => {
                let missed = Missed { after: cursor, resume_after: epochs.cursor(after) };
                Ok(Placed { position: after, missed: Some(missed) })
            }
            Err(Lost::Unknown) => Err(invalid(field, "is a cursor of another log")),
        }
    }

    /// Waits until there are events after a position, or the log has fallen back. False if the
    /// broker goes away first.
    pub async fn more_events(&self, after: Position) -> bool {
        let mut head = self.head.clone();
        let before = *head.borrow_and_update();
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => false,
            more = head.wait_for(|head| *head > after || *head < before) => more.is_ok(),
        }
    }

    /// The log as lines of JSON after a position, and where to go on; nothing at its end.
    pub async fn export(
        &self,
        after: Position,
        max: usize,
    ) -> Result<(Vec<String>, Option<Position>), Error> {
        check_page(max)?;
        let entries = self.store.events(after, max).await?;
        let Some(last) = entries.last().map(|entry| entry.sealed.position) else {
            return Ok((Vec::new(), None));
        };
        let checkpoints = self.store.checkpoints(after, max).await?;
        let mut checkpoints = checkpoints.into_iter().peekable();
        let epochs = self.epochs().await?;
        let mut lines = Vec::with_capacity(entries.len());
        for ChainEntry { entry, body } in self.with_bodies(entries).await? {
            let at = entry.sealed.position;
            let cursor = epochs.cursor(at);
            lines.push(audit::event_line(&entry, body.as_ref().map(Body::text), cursor));
            while let Some(checkpoint) = checkpoints.next_if(|c| c.position == at) {
                lines.push(audit::checkpoint_line(&checkpoint));
            }
        }
        Ok((lines, Some(last)))
    }

    /// Checks what came to the log since it was last found intact, or all of it.
    pub async fn verify(&self, full: bool) -> Result<Verdict, Error> {
        let verdict = if full { self.store.verify().await } else { self.store.verify_new().await };
        Ok(verdict?)
    }
}

fn check_page(max: usize) -> Result<(), Error> {
    if (1..=PAGE_MAX).contains(&max) {
        return Ok(());
    }
    Err(invalid("limit", format!("is {max}, expected 1 to {PAGE_MAX}")))
}
