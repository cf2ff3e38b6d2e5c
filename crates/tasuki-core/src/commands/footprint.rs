// SPDX-License-Identifier: Apache-2.0
//! What a command must see and may touch, as far as it says before it is decided. A store loads and
//! locks by this and by nothing else; a property test holds it against what decisions really read
//! and wrote.

use super::{Offer, Seeker};
use crate::envelope::Target;
use crate::ids::{AgentId, DocumentId, HandoffId, Position, RequestId, TaskId, Timestamp};
use crate::registry::Registry;
use crate::turn::Queue;

/// Everything named here is borrowed from the command.
#[derive(Debug, Clone, Default)]
pub struct Footprint<'c> {
    /// Tasks that are seen and may change. With each comes the handoff under way in it.
    pub tasks: &'c [TaskId],
    /// More of them, where a command names them in several places.
    pub others: Vec<TaskId>,
    /// Handoffs that are seen and may change. With each comes its task.
    pub handoffs: &'c [HandoffId],
    pub documents: Vec<&'c DocumentId>,
    /// Events whose bodies it must know of.
    pub bodies: &'c [Position],
    /// Whether it adds to the chain of the store itself.
    pub store: bool,
    /// A task that it opens without a handoff.
    pub opens: Option<TaskId>,
    /// Handoffs that it makes, which enter queues and stand in lines.
    pub offers: &'c [Offer],
    /// The work that it looks for. What is found is seen with its task, and may change.
    pub seeks: Option<Seeks<'c>>,
    /// How many handoffs to which something is due are seen with their tasks, and may change.
    pub due: usize,
    /// By when, if not by the time of the decision.
    pub due_until: Option<Timestamp>,
    /// Whose claims are seen with their tasks, and may end.
    pub held: Held<'c>,
    /// Whether what is seen may enter a queue.
    pub returns: Returns<'c>,
    /// Whether agents, keys, tokens, tenants or channels may change.
    pub identity: bool,
    pub breakers: Changes,
    /// Who claims, and may be the one that shows whether it works again.
    pub claims_for: Option<&'c AgentId>,
    pub reservations: Changes,
    /// Whether it brings work or text. A full disk refuses these and takes the rest.
    pub brings_work: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Seeks<'c> {
    pub seeker: &'c Seeker,
    pub max: usize,
    /// What this agent holds by a claim with this request id is seen too.
    pub request: Option<&'c RequestId>,
    /// Whether it takes what it finds, or only looks.
    pub takes: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Held<'c> {
    #[default]
    Nobodys,
    Of(&'c AgentId),
    Everybodys,
}

/// Which queues handoffs that are seen may enter.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Returns<'c> {
    #[default]
    Never,
    /// Its own, those of its fallbacks, or that of an agent that made it a counter-offer.
    Again,
    /// As above, and a new handoff made from it enters its own or this one's.
    Anew { handoff: HandoffId, to: Option<&'c Target> },
}

/// Whether something may change, as far as can be told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Changes {
    #[default]
    Never,
    /// Only what is there about the handoffs that are named.
    OfNamed,
    /// Only what is there.
    OfAny,
    /// What is not there may begin.
    Always,
}

impl<'c> Footprint<'c> {
    #[must_use]
    pub(super) fn of_task(task: &'c TaskId) -> Self {
        Self { tasks: std::slice::from_ref(task), ..Self::default() }
    }

    #[must_use]
    pub(super) fn of_handoff(handoff: &'c HandoffId) -> Self {
        Self { handoffs: std::slice::from_ref(handoff), ..Self::default() }
    }

    /// Every task that it names.
    pub fn all_tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.tasks.iter().chain(&self.others).copied()
    }

    /// Whether the command looks for something and names nothing.
    #[must_use]
    pub fn only_looks(&self) -> bool {
        self.seeks.is_some() || self.due > 0
    }

    /// Whether it may change who is known, what is known of targets, or what holders have for
    /// themselves.
    #[must_use]
    pub fn may_change(&self, known: &Registry) -> bool {
        let reserved = |id: &HandoffId| known.guards.reservations.contains_key(id);
        let breakers = match self.breakers {
            Changes::Never => false,
            Changes::OfNamed => self.handoffs.iter().any(|id| known.probes(*id).is_some()),
            Changes::OfAny => !known.guards.breakers.is_empty(),
            Changes::Always => true,
        };
        let claimant = self.claims_for.map(|agent| Target::Agent(agent.clone()));
        let probes = claimant.is_some_and(|target| known.guards.breakers.contains_key(&target));
        let reservations = match self.reservations {
            Changes::Never => false,
            Changes::OfNamed => self.handoffs.iter().any(reserved),
            Changes::OfAny => !known.guards.reservations.is_empty(),
            Changes::Always => true,
        };
        self.identity || breakers || probes || reservations
    }

    /// The queues that new offers may enter, and who sends them.
    pub fn entrances(&self) -> impl Iterator<Item = (Queue, &'c AgentId)> + use<'c> {
        self.offers
            .iter()
            .flat_map(|offer| targets(offer).map(|to| (Queue::of(to, offer.priority), &offer.from)))
    }
}

/// Where an offer may go: to its target, or to a fallback.
pub fn targets(offer: &Offer) -> impl Iterator<Item = &Target> {
    std::iter::once(&offer.to).chain(&offer.contract.routing.fallbacks)
}
