// SPDX-License-Identifier: Apache-2.0
//! The whole machine in its plainest form: maps without indexes, every question answered by
//! looking at everything. It is the model that stores are compared with, and what the transition
//! table is rendered from. Too slow for work, simple enough to be believed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::commands::{Command, Seeker};
use crate::decide::{Outcome, Replay, View, decide};
use crate::document::{self, Document, StoredBody};
use crate::envelope::Target;
use crate::event::{self, Actor, Event, Sealed};
use crate::handoff::{Handoff, State};
use crate::ids::{
    AgentId, DocumentId, Epoch, HandoffId, IdempotencyKey, Position, RequestId, TaskId, Timestamp,
};
use crate::quota::Usage;
use crate::refusal::Refusal;
use crate::registry::Registry;
use crate::task::Task;
use crate::turn::{self, Queue, Turns};

#[derive(Debug, Clone)]
pub struct World {
    pub tasks: BTreeMap<TaskId, Arc<Task>>,
    pub handoffs: BTreeMap<HandoffId, Arc<Handoff>>,
    pub log: Vec<Sealed>,
    pub epoch: Epoch,
    pub registry: Registry,
    pub documents: BTreeMap<DocumentId, Document>,
    /// How many bytes came with events.
    bytes: BTreeMap<Position, u64>,
    erased: BTreeSet<Position>,
    replays: BTreeMap<(AgentId, IdempotencyKey), Replay>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            tasks: BTreeMap::new(),
            handoffs: BTreeMap::new(),
            log: Vec::new(),
            epoch: Epoch(1),
            registry: Registry::default(),
            documents: BTreeMap::new(),
            bytes: BTreeMap::new(),
            erased: BTreeSet::new(),
            replays: BTreeMap::new(),
        }
    }
}

impl World {
    /// Decides and applies.
    pub fn execute(&mut self, command: &Command, now: Timestamp) -> Result<Outcome, Refusal> {
        let decision = decide(command, self, now);
        for id in decision.renewals {
            if let Some(handoff) = self.handoffs.get_mut(&id) {
                Arc::make_mut(handoff).renew(now);
            }
        }
        for new in decision.events {
            let position = Position(u64::try_from(self.log.len()).expect("a log fits") + 1);
            let task = self.tasks.get(&new.task);
            let (sealed, _, body) = new.seal(task.map(|task| &**task), position, now);
            let bytes = body.map(|body| body.text().len() as u64);
            self.bytes.extend(bytes.map(|bytes| (position, bytes)));
            self.apply(sealed);
        }
        decision.outcome
    }

    fn apply(&mut self, sealed: Sealed) {
        let record = &sealed.record;
        let mut task = self.tasks.get(&record.task_id).cloned();
        let mut handoff = record.handoff_id.and_then(|id| self.handoffs.get(&id).cloned());
        event::apply(&sealed, &mut task, &mut handoff);
        if let Event::EpochRaised { epoch } = record.event {
            self.epoch = Epoch(epoch);
        }
        self.registry.apply(&sealed);
        if let Event::Erased(erased) = &record.event {
            self.erased.insert(erased.position);
        }
        if let Some(id) = record.event.facts().document {
            let mut known = self.documents.remove(id);
            document::apply(&sealed, &mut known);
            self.documents.extend(known.map(|document| (id.clone(), document)));
        }
        if let Some((agent, key, replay)) = replay_of(&sealed) {
            self.replays.insert((agent.clone(), key.clone()), replay);
        }
        self.tasks.extend(task.map(|task| (task.id, task)));
        self.handoffs.extend(handoff.map(|handoff| (handoff.id, handoff)));
        self.log.push(sealed);
    }
}

/// The idempotency key that an event makes known, and what it stands for.
#[must_use]
pub fn replay_of(sealed: &Sealed) -> Option<(&AgentId, &IdempotencyKey, Replay)> {
    let record = &sealed.record;
    let mut document = None;
    let (agent, key) = match (&record.event, &record.actor) {
        (Event::TaskOpened(opened), _) => (&opened.owner, opened.key.as_ref()?),
        (Event::DocumentWritten(written), Actor::Agent(by)) => {
            document = Some(written.id.clone());
            (by, written.key.as_ref()?)
        }
        (event, _) => {
            let (offered, _) = event.offered()?;
            (&offered.from, offered.key.as_ref()?)
        }
    };
    let (task, handoff) = (record.task_id, record.handoff_id);
    let replay = Replay { request: key.request, task, handoff, document };
    Some((agent, &key.key, replay))
}

impl View for World {
    fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(|task| &**task)
    }

    fn handoff(&self, id: HandoffId) -> Option<&Handoff> {
        self.handoffs.get(&id).map(|handoff| &**handoff)
    }

    fn replay(&self, agent: &AgentId, key: &IdempotencyKey) -> Option<Replay> {
        self.replays.get(&(agent.clone(), key.clone())).cloned()
    }

    fn waiting(&self, seeker: &Seeker, max: usize) -> Vec<HandoffId> {
        let meant = |handoff: &Handoff| match &handoff.to {
            Target::Agent(agent) => *agent == seeker.agent,
            Target::Capability(capability) => seeker.capabilities.contains(capability),
        };
        let mut queues: BTreeMap<&Target, Vec<_>> = BTreeMap::new();
        let open = self.handoffs.values().filter(|h| !h.declined_by.contains(&seeker.agent));
        for handoff in open.filter(|h| meant(h) && self.ahead_of(h).is_none()) {
            let ranked = handoff.rank().map(|rank| (rank, handoff.id));
            queues.entry(&handoff.to).or_default().extend(ranked);
        }
        queues.values_mut().for_each(|queue| queue.sort());
        turn::merge(queues.into_values().collect(), max)
    }

    fn kept(&self, agent: &AgentId) -> Vec<HandoffId> {
        let kept = |handoff: &Arc<Handoff>| match &handoff.state {
            State::Answered(kept) if kept.agent == *agent => Some((kept.since_pos, handoff.id)),
            _ => None,
        };
        let mut kept: Vec<_> = self.handoffs.values().filter_map(kept).collect();
        kept.sort();
        kept.into_iter().map(|(_, id)| id).collect()
    }

    fn turns(&self, queue: &Queue, from: &AgentId) -> Turns {
        let here = self.handoffs.values().filter(|handoff| handoff.to == queue.to);
        let waiting: Vec<_> = here
            .filter_map(|handoff| Some((handoff.rank()?, handoff)))
            .filter(|(rank, _)| rank.urgency_rank == queue.urgency_rank)
            .collect();
        let claimable =
            |handoff: &Handoff| handoff.declined_by.is_empty() && self.ahead_of(handoff).is_none();
        let first = waiting.iter().filter(|(_, h)| claimable(h)).map(|(rank, _)| rank.turn).min();
        let own = waiting.iter().filter(|(_, handoff)| handoff.from == *from);
        Turns { first, own_last: own.map(|(rank, _)| rank.turn).max() }
    }

    fn ahead_of(&self, handoff: &Handoff) -> Option<HandoffId> {
        handoff.ordering_key.as_ref()?;
        self.handoffs
            .values()
            .filter(|other| other.to == handoff.to && other.ordering_key == handoff.ordering_key)
            .find(|other| !other.state.is_terminal() && other.offered_pos < handoff.offered_pos)
            .map(|other| other.id)
    }

    fn held_by_request(&self, agent: &AgentId, request: &RequestId) -> Vec<HandoffId> {
        let held = |h: &Handoff| {
            h.state
                .claim()
                .is_some_and(|c| c.agent == *agent && c.request_id.as_ref() == Some(request))
        };
        self.handoffs.values().filter(|h| held(h)).map(|h| h.id).collect()
    }

    fn due(&self, now: Timestamp, max: usize) -> Vec<HandoffId> {
        let mut due: Vec<_> = self
            .handoffs
            .values()
            .filter_map(|h| h.due_at().filter(|at| *at <= now).map(|at| (at, h.id)))
            .collect();
        due.sort();
        due.into_iter().take(max).map(|(_, id)| id).collect()
    }

    fn held(&self) -> Vec<HandoffId> {
        self.handoffs.values().filter(|h| h.state.worker().is_some()).map(|h| h.id).collect()
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The model keeps no bodies, so it knows nothing of their bytes.
    fn usage(&self, tenant: &str) -> Usage {
        let live = self
            .handoffs
            .values()
            .filter(|handoff| !handoff.state.is_terminal() && handoff.from.tenant() == tenant);
        Usage { in_flight: live.count() as u64, stored_bytes: 0 }
    }

    fn document(&self, id: &DocumentId) -> Option<&Document> {
        self.documents.get(id)
    }

    fn body(&self, at: Position) -> Option<StoredBody> {
        let sealed = self.log.iter().find(|sealed| sealed.position == at)?;
        let bytes = self.bytes.get(&at).filter(|_| !self.erased.contains(&at));
        StoredBody::of(sealed, bytes.copied())
    }
}
