// SPDX-License-Identifier: Apache-2.0
//! Looking once: an operation names everything that it must see, and gets one [`Sight`] of it. What
//! is seen is committed, and at least as new as every reply that came before the look.

use std::collections::BTreeMap;
use std::sync::Arc;

use tasuki_core::event::Sealed;
use tasuki_core::{Body, Handoff, HandoffId, Hash, Position, State, Task, TaskId};

use crate::feed::Change;

/// What an operation must see. A handoff that is named comes with its task, and a task that is named
/// with the handoff that is under way for it, so nobody looks a second time for those.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    pub handoffs: Vec<HandoffId>,
    pub tasks: Vec<TaskId>,
    /// Bodies by the positions that they came with.
    pub bodies: Vec<Position>,
    /// The envelopes of all handoffs in sight.
    pub envelopes: bool,
    /// The results of all handoffs in sight that are completed.
    pub results: bool,
    /// The intents of all tasks in sight.
    pub intents: bool,
}

impl Needs {
    #[must_use]
    pub fn handoff(id: HandoffId) -> Self {
        Self::handoffs([id])
    }

    #[must_use]
    pub fn task(id: TaskId) -> Self {
        Self { tasks: vec![id], ..Self::default() }
    }

    #[must_use]
    pub fn handoffs(ids: impl IntoIterator<Item = HandoffId>) -> Self {
        Self { handoffs: ids.into_iter().collect(), ..Self::default() }
    }

    #[must_use]
    pub fn and_tasks(mut self, ids: impl IntoIterator<Item = TaskId>) -> Self {
        self.tasks.extend(ids);
        self
    }

    #[must_use]
    pub fn and_bodies(mut self, at: impl IntoIterator<Item = Position>) -> Self {
        self.bodies.extend(at);
        self
    }

    #[must_use]
    pub fn with_envelopes(self) -> Self {
        Self { envelopes: true, ..self }
    }

    #[must_use]
    pub fn with_results(self) -> Self {
        Self { results: true, ..self }
    }

    #[must_use]
    pub fn with_intents(self) -> Self {
        Self { intents: true, ..self }
    }

    /// What some events are about.
    pub(crate) fn of_events<'e>(events: impl IntoIterator<Item = &'e Sealed>) -> Self {
        let mut needs = Self::default();
        for event in events {
            needs.handoffs.extend(event.record.handoff_id);
            needs.tasks.push(event.record.task_id);
        }
        needs.handoffs.sort_unstable();
        needs.handoffs.dedup();
        needs.tasks.sort_unstable();
        needs.tasks.dedup();
        needs
    }

    /// What is named, or the task of what is in sight, and is not in sight itself.
    pub(crate) fn missing(&self, sight: &Sight) -> Missing {
        let handoffs = self.handoffs.iter().filter(|id| !sight.handoffs.contains_key(id));
        let of_handoffs = sight.handoffs.values().map(|handoff| &handoff.task_id);
        let tasks = self.tasks.iter().chain(of_handoffs);
        let mut tasks: Vec<_> = tasks.filter(|id| !sight.tasks.contains_key(id)).copied().collect();
        tasks.sort_unstable();
        tasks.dedup();
        Missing { handoffs: handoffs.copied().collect(), tasks }
    }

    /// The bodies that are wanted of what is in sight, each once.
    pub(crate) fn bodies_of(&self, sight: &Sight) -> Vec<Position> {
        let mut at = self.bodies.clone();
        for handoff in sight.handoffs.values() {
            at.extend(self.envelopes.then_some(handoff.envelope_pos));
            at.extend(handoff.state.result_pos().filter(|_| self.results));
        }
        let intents = sight.tasks.values().filter(|_| self.intents);
        at.extend(intents.map(|task| task.intent_pos));
        at.sort_unstable();
        at.dedup();
        at
    }
}

impl Sight {
    /// The hashes that bodies must have, as far as what is in sight says so.
    pub(crate) fn hashes(&self) -> BTreeMap<Position, Hash> {
        let mut hashes = BTreeMap::new();
        for handoff in self.handoffs.values() {
            hashes.insert(handoff.envelope_pos, handoff.envelope);
            if let State::Completed { result, result_pos, .. } = &handoff.state {
                hashes.insert(*result_pos, *result);
            }
        }
        hashes
    }
}

pub(crate) struct Missing {
    pub(crate) handoffs: Vec<HandoffId>,
    pub(crate) tasks: Vec<TaskId>,
}

impl Missing {
    pub(crate) fn is_empty(&self) -> bool {
        self.handoffs.is_empty() && self.tasks.is_empty()
    }
}

/// What there was of it. What is not in here was not there.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    pub(crate) handoffs: BTreeMap<HandoffId, Arc<Handoff>>,
    pub(crate) tasks: BTreeMap<TaskId, Arc<Task>>,
    pub(crate) bodies: BTreeMap<Position, Body>,
}

impl Sight {
    #[must_use]
    pub fn handoff(&self, id: HandoffId) -> Option<&Arc<Handoff>> {
        self.handoffs.get(&id)
    }

    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(&id)
    }

    #[must_use]
    pub fn task_of(&self, handoff: &Handoff) -> Option<&Arc<Task>> {
        self.task(handoff.task_id)
    }

    /// The handoff that is under way for a task.
    #[must_use]
    pub fn under_way(&self, task: &Task) -> Option<&Arc<Handoff>> {
        self.handoff(task.live?)
    }

    #[must_use]
    pub fn body(&self, at: Position) -> Option<&Body> {
        self.bodies.get(&at)
    }

    #[must_use]
    pub fn envelope(&self, handoff: &Handoff) -> Option<&Body> {
        self.body(handoff.envelope_pos)
    }

    #[must_use]
    pub fn result(&self, handoff: &Handoff) -> Option<&Body> {
        self.body(handoff.state.result_pos()?)
    }

    #[must_use]
    pub fn intent(&self, task: &Task) -> Option<&Body> {
        self.body(task.intent_pos)
    }

    /// An event together with what it is about.
    pub(crate) fn change(&self, sealed: Sealed) -> Change {
        let task = self.task(sealed.record.task_id).cloned();
        let handoff = sealed.record.handoff_id.and_then(|id| self.handoff(id).cloned());
        Change { sealed, task, handoff }
    }

    pub(crate) fn put_handoff(&mut self, handoff: Arc<Handoff>) {
        self.handoffs.insert(handoff.id, handoff);
    }

    pub(crate) fn put_task(&mut self, task: Arc<Task>) {
        self.tasks.insert(task.id, task);
    }

    pub(crate) fn put_bodies(&mut self, at: &[Position], bodies: Vec<Option<Body>>) {
        let found = at.iter().zip(bodies).filter_map(|(at, body)| Some((*at, body?)));
        self.bodies.extend(found);
    }
}
