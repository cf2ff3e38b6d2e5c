// SPDX-License-Identifier: Apache-2.0
//! Everything that follows from a command, or why it is refused. Pure: the store shows what the
//! command needs to see through [`View`], and writes down what comes back.

mod claim;
mod counter;
mod document;
mod erase;
mod escalate;
mod held;
mod join;
mod offer;
mod registry;
mod review;
mod sash;
mod sweep;
mod taint;

use std::collections::HashMap;

use crate::canonical::Body;
use crate::command::{Command, DocumentWish, Erasable, Outcome, Seeker};
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
    /// The handoff that must end before this one may be claimed, because of its ordering key.
    fn ahead_of(&self, handoff: &Handoff) -> Option<HandoffId>;
    /// What this agent holds by a claim with this request id.
    fn held_by_request(&self, agent: &AgentId, request: &RequestId) -> Vec<HandoffId>;
    /// Handoffs to which something is due by `now`, the longest due first.
    fn due(&self, now: Timestamp, max: usize) -> Vec<HandoffId>;
    /// Every handoff that is claimed or in progress.
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

/// What a command must see besides what a store has at hand: things by their id.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reads {
    pub handoff: Option<HandoffId>,
    pub task: Option<TaskId>,
    /// Others that it depends on.
    pub tasks: Vec<TaskId>,
    pub documents: Vec<DocumentId>,
    /// Events whose bodies it must know of.
    pub bodies: Vec<Position>,
}

impl Reads {
    fn task(task: Option<TaskId>) -> Self {
        Self { task, ..Self::default() }
    }

    fn handoff(handoff: HandoffId) -> Self {
        Self { handoff: Some(handoff), ..Self::default() }
    }
}

/// Names what a store has to load before a command is decided. A handoff's task is loaded with it.
#[must_use]
pub fn reads(command: &Command) -> Reads {
    use crate::command::OfferTask;
    match command {
        Command::OpenTask(open) => Reads::task(open.parent),
        Command::Join { handoff, tasks, .. } => {
            Reads { tasks: tasks.clone(), ..Reads::handoff(*handoff) }
        }
        Command::Publish { open, .. } => Reads::task(open.parent),
        Command::CancelTask { task, .. }
        | Command::Taint { task, .. }
        | Command::ClearTaint { task, .. } => Reads::task(Some(*task)),
        Command::Offer(offer) => {
            let task = match &offer.task {
                OfferTask::Existing(task) => Some(*task),
                OfferTask::New { parent, .. } => *parent,
            };
            Reads { handoff: offer.after, ..Reads::task(task) }
        }
        Command::ClaimOne { handoff, .. }
        | Command::Held { handoff, .. }
        | Command::Decline { handoff, .. }
        | Command::Counter { handoff, .. }
        | Command::SettleCounter { handoff, .. }
        | Command::Approve { handoff, .. }
        | Command::Reject { handoff, .. }
        | Command::Cancel { handoff, .. }
        | Command::Abort { handoff, .. }
        | Command::Redrive { handoff, .. }
        | Command::Amend { handoff, .. }
        | Command::TakeReview { handoff, .. }
        | Command::Retract { handoff, .. }
        | Command::Lift { handoff, .. }
        | Command::NoteFetch { handoff, .. }
        | Command::Discard { handoff, .. } => Reads::handoff(*handoff),
        Command::Claim(_)
        | Command::Peek { .. }
        | Command::RenewAll { .. }
        | Command::Sweep { .. }
        | Command::RaiseEpoch { .. }
        | Command::Registry { .. } => Reads::default(),
        Command::Document { id, wish, .. } => {
            let mut documents = vec![id.clone()];
            if let DocumentWish::Supersede { successor } = wish {
                documents.push(successor.clone());
            }
            Reads { documents, ..Reads::default() }
        }
        Command::Erase(erase) => match &erase.what {
            Erasable::Handoff { id, at } => Reads { bodies: at.clone(), ..Reads::handoff(*id) },
            Erasable::Revision { id, at, .. } => {
                Reads { documents: vec![id.clone()], bodies: vec![*at], ..Reads::default() }
            }
        },
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
    fn on(handoff: &Handoff, actor: Actor, event: Event) -> Self {
        Self {
            task: handoff.task_id,
            handoff: Some(handoff.id),
            actor,
            event,
            body: None,
            turn: None,
        }
    }

    fn on_store(actor: Actor, event: Event) -> Self {
        Self { task: TaskId::STORE, handoff: None, actor, event, body: None, turn: None }
    }

    fn with(self, body: Option<Body>) -> Self {
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
        let previous = task.map(|task| task.at);
        (Sealed { position, previous, hash, record }, encoded, self.body)
    }
}

impl Decision {
    fn of(events: Vec<NewEvent>, outcome: Outcome) -> Self {
        Self { events, renewals: Vec::new(), outcome: Ok(outcome) }
    }

    /// Leases that are extended, and nothing else.
    fn renewing(renewals: Vec<HandoffId>) -> Self {
        Self { renewals, ..Self::of(Vec::new(), Outcome::default()) }
    }

    fn unchanged(outcome: Outcome) -> Self {
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
pub fn decide(command: Command, view: &dyn View, now: Timestamp) -> Decision {
    let decided = match command {
        Command::OpenTask(open) => offer::open_task(open, view),
        Command::CancelTask { task, by, reason } => review::cancel_task(task, by, reason, view),
        Command::Offer(offer) => offer::offer(*offer, view, now),
        Command::Claim(wish) => Ok(claim::claim(&wish, view, now)),
        Command::ClaimOne { handoff, claim } => claim::claim_one(handoff, &claim, view, now),
        Command::Peek { seeker, max } => Ok(claim::peek(&seeker, max, view)),
        Command::Held { handoff, proof, by, act } => held::held(handoff, proof, by, act, view, now),
        Command::Decline { handoff, agent, reason } => {
            claim::decline(handoff, agent, reason, view, now)
        }
        Command::Counter { handoff, seeker, terms, budget_tokens, reason } => {
            counter::counter(handoff, &seeker, terms, budget_tokens, reason, view)
        }
        Command::SettleCounter { handoff, by, agent, accept } => {
            counter::settle(handoff, by, agent, accept, view)
        }
        Command::Approve { handoff, by } => review::approve(handoff, by, view),
        Command::Reject { handoff, by } => review::reject(handoff, by, view),
        Command::Cancel { handoff, by, reason } => review::cancel(handoff, by, reason, view),
        Command::Abort { handoff, by, reason } => review::abort(handoff, by, reason, view),
        Command::Redrive { handoff, by, new, to } => {
            review::redrive(handoff, by, new, to, view, now)
        }
        Command::Amend { handoff, by, changed, offer } => {
            review::amend(handoff, by, changed, *offer, view, now)
        }
        Command::TakeReview { handoff, by, until } => review::take(handoff, by, until, view, now),
        Command::Discard { handoff, by, reason } => review::discard(handoff, by, reason, view, now),
        Command::Retract { handoff, by, reason, policy } => {
            taint::retract(handoff, by, reason, policy, view)
        }
        Command::Taint { task, by, source, policy } => taint::taint(task, by, source, policy, view),
        Command::ClearTaint { task, by, source, reason } => {
            taint::clear(task, by, source, reason, view)
        }
        Command::Join { handoff, tasks, failed } => join::join(handoff, &tasks, &failed, view),
        Command::Publish { open, offers } => offer::publish(open, offers, view, now),
        Command::Lift { handoff, by, constraint, reason } => {
            sash::lift(handoff, by, constraint, reason, view)
        }
        Command::NoteFetch { handoff, agent, memory } => {
            sash::note_fetch(handoff, agent, memory, view)
        }
        Command::Sweep { max } => Ok(sweep::sweep(max, view, now)),
        Command::RenewAll { since } => Ok(sweep::renew_all(since, view, now)),
        Command::RaiseEpoch { epoch } => Ok(sweep::raise_epoch(epoch, view)),
        Command::Registry { by, wish } => registry::change(&by, wish, view, now),
        Command::Document { id, by, wish } => document::change(id, by, wish, view),
        Command::Erase(erase) => erase::erase(&erase, view),
    };
    let mut decision = decided.unwrap_or_else(Decision::from);
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

/// Finds a task for somebody. What belongs to another tenant is not there.
fn find_task<'v>(view: &'v dyn View, id: TaskId, by: &AgentId) -> Result<&'v Task, Refusal> {
    let found = view.task(id).filter(|task| task.owner.tenant() == by.tenant());
    found.ok_or(Refusal::TaskNotFound(id))
}

/// Finds a handoff for somebody. What belongs to another tenant is not there.
fn find_handoff<'v>(
    view: &'v dyn View,
    id: HandoffId,
    by: &AgentId,
) -> Result<&'v Handoff, Refusal> {
    let found = view.handoff(id).filter(|handoff| handoff.from.tenant() == by.tenant());
    found.ok_or(Refusal::HandoffNotFound(id))
}
