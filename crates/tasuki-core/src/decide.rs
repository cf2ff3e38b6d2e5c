// SPDX-License-Identifier: Apache-2.0
//! Everything that follows from a command, or why it is refused. Pure: the store shows what the
//! command needs to see through [`View`], and writes down what comes back.

use std::collections::HashMap;

use crate::canonical::Body;
use crate::commands::{Command, Seeker};
use crate::document::{Document, StoredBody};
use crate::event::{self, Actor, Event, Record, Sealed};
use crate::handoff::Handoff;
use crate::ids::{
    AgentId, DocumentId, Epoch, HandoffId, Hash, IdempotencyKey, Position, RequestId, TaskId,
    Timestamp,
};
use crate::quota::Usage;
use crate::refusal::Refusal;
use crate::registry::Registry;
use crate::task::Task;
use crate::turn::{self, Queue, Turns};

/// What a decision may see. A store shows it its own state, inside its own transaction.
pub trait View {
    fn task(&self, id: TaskId) -> Option<&Task>;
    fn handoff(&self, id: HandoffId) -> Option<&Handoff>;
    /// What an idempotency key of this agent stands for.
    fn replay(&self, agent: &AgentId, key: &IdempotencyKey) -> Option<Replay>;
    /// Pending handoffs that this seeker may take now, first rank first.
    fn waiting(&self, seeker: &Seeker, max: usize) -> Vec<HandoffId>;
    /// Handoffs with answers that are kept for this agent, the longest kept first.
    fn kept(&self, agent: &AgentId) -> Vec<HandoffId>;
    /// The handoff that must end before this one may be claimed, because of its ordering key.
    fn ahead_of(&self, handoff: &Handoff) -> Option<HandoffId>;
    /// What this agent holds by a claim with this request id.
    fn held_by_request(&self, agent: &AgentId, request: &RequestId) -> Vec<HandoffId>;
    /// Handoffs to which something is due by `now`, the longest due first.
    fn due(&self, now: Timestamp, max: usize) -> Vec<HandoffId>;
    /// Every handoff that somebody works on, or asked about and may come back to.
    fn held(&self) -> Vec<HandoffId>;
    fn epoch(&self) -> Epoch;
    /// Who is known.
    fn registry(&self) -> &Registry;
    /// What decides about a sender's next turn in a queue.
    fn turns(&self, queue: &Queue, from: &AgentId) -> Turns;
    /// What a tenant uses; asked only for those that have a quota.
    fn usage(&self, tenant: &str) -> Usage;
    fn document(&self, id: &DocumentId) -> Option<&Document>;
    /// The body that came with an event, if one did.
    fn body(&self, at: Position) -> Option<StoredBody>;
}

/// The reply that an idempotency key was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    pub request: Hash,
    pub task: TaskId,
    pub handoff: Option<HandoffId>,
    pub document: Option<DocumentId>,
}

/// Which things a command was about, in the order of its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    pub handoffs: Vec<HandoffId>,
    pub task: Option<TaskId>,
    pub document: Option<DocumentId>,
    /// The command had been carried out before; nothing changed now.
    pub repeated: bool,
}

impl Outcome {
    #[must_use]
    pub fn of(handoff: HandoffId) -> Self {
        Self { handoffs: vec![handoff], ..Self::default() }
    }

    #[must_use]
    pub fn repeated(handoff: HandoffId) -> Self {
        Self { repeated: true, ..Self::of(handoff) }
    }

    pub(crate) fn of_task(task: TaskId) -> Self {
        Self { task: Some(task), ..Self::default() }
    }
}

/// A refusal may still carry events: a late result is refused *and* recorded.
#[derive(Debug)]
pub struct Decision {
    pub events: Vec<NewEvent>,
    /// Leases to extend without an event.
    pub renewals: Vec<HandoffId>,
    pub outcome: Result<Outcome, Refusal>,
}

/// An event that has no place in its chain yet.
#[derive(Debug)]
pub struct NewEvent {
    pub task: TaskId,
    pub handoff: Option<HandoffId>,
    pub actor: Actor,
    pub event: Event,
    pub body: Option<Body>,
    pub turn: Option<Position>,
}

impl NewEvent {
    pub(crate) fn on(handoff: &Handoff, actor: Actor, event: Event) -> Self {
        Self {
            task: handoff.task_id,
            handoff: Some(handoff.id),
            actor,
            event,
            body: None,
            turn: None,
        }
    }

    pub(crate) fn on_task(task: TaskId, actor: Actor, event: Event) -> Self {
        Self { task, handoff: None, actor, event, body: None, turn: None }
    }

    pub(crate) fn on_store(actor: Actor, event: Event) -> Self {
        Self { task: TaskId::STORE, handoff: None, actor, event, body: None, turn: None }
    }

    pub(crate) fn with(self, body: Option<Body>) -> Self {
        Self { body, ..self }
    }

    /// Gives the event its place after the last one of its task. Returns it with the exact bytes
    /// that its hash covers.
    #[must_use]
    pub fn seal(
        self,
        task: Option<&Task>,
        position: Position,
        at: Timestamp,
    ) -> (Sealed, Vec<u8>, Option<Body>) {
        let record = Record {
            v: Record::VERSION,
            task_id: self.task,
            index: task.map_or(0, |task| task.events),
            handoff_id: self.handoff,
            at,
            actor: self.actor,
            turn: self.turn,
            event: self.event,
        };
        let encoded = record.encode();
        let hash = event::link(task.map_or(Hash::ZERO, |task| task.head), &encoded);
        let previous = task.map(|task| task.last_pos);
        (Sealed { position, previous, hash, record }, encoded, self.body)
    }
}

impl Decision {
    pub(crate) fn of(events: Vec<NewEvent>, outcome: Outcome) -> Self {
        Self { events, renewals: Vec::new(), outcome: Ok(outcome) }
    }

    /// Leases that are extended, and nothing else.
    pub(crate) fn renewing(renewals: Vec<HandoffId>) -> Self {
        Self { renewals, ..Self::of(Vec::new(), Outcome::default()) }
    }

    pub(crate) fn unchanged(outcome: Outcome) -> Self {
        Self::of(Vec::new(), outcome)
    }
}

impl From<Refusal> for Decision {
    fn from(refusal: Refusal) -> Self {
        Self { events: Vec::new(), renewals: Vec::new(), outcome: Err(refusal) }
    }
}

/// Says what a command would change, and changes nothing.
#[must_use]
pub fn decide(command: &Command, view: &dyn View, now: Timestamp) -> Decision {
    let mut decision = command.decided(view, now).unwrap_or_else(Decision::from);
    give_turns(&mut decision.events, view, now);
    decision
}

/// Gives what enters a queue its turn there. What is decided together takes turns one after the
/// other.
fn give_turns(events: &mut [NewEvent], view: &dyn View, now: Timestamp) {
    let mut given: HashMap<(Queue, AgentId), Position> = HashMap::new();
    for new in events {
        let handoff = new.handoff.and_then(|id| view.handoff(id));
        let Some((queue, from)) = turn::enters(&new.event, handoff, now) else { continue };
        let mut turns = view.turns(&queue, from);
        let place = (queue, from.clone());
        turns.own_last = turns.own_last.max(given.get(&place).copied());
        let turn = turns.next();
        given.extend(turn.map(|turn| (place, turn)));
        new.turn = turn;
    }
}
