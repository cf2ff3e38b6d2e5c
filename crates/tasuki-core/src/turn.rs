// SPDX-License-Identifier: Apache-2.0
//! Turns between those who send to one target. Of each sender, first come is first served; between
//! senders of the same priority, each has its turn, so that one who sends a thousand handoffs at
//! once does not make the others wait for all of them.
//!
//! A turn is a number that is at least the one at the front of the queue, and more than that of the
//! sender's own last one there. It is never above the position of the event that gives it, and never
//! below what waits, so it bounds claims as a position would.

use crate::envelope::Target;
use crate::event::{Enters, Event};
use crate::handoff::{Handoff, PRIORITY_MAX, State};
use crate::ids::{AgentId, HandoffId, Position, Timestamp};

/// Where a handoff waits: with all others for its target that are as urgent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Queue {
    pub to: Target,
    pub urgency_rank: u8,
}

/// The order in which waiting handoffs of one target are claimed: by priority, then by turns, then
/// by when they became ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub urgency_rank: u8,
    pub turn: Position,
    pub ready: Position,
}

/// What decides about a sender's next turn in a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// The turn of the first one that can be claimed and that nobody declined.
    pub first: Option<Position>,
    /// The turn of the last one of the same sender, whether or not it can be claimed now.
    pub own_last: Option<Position>,
}

impl Turns {
    /// The next turn; without one, it is the position of the event itself.
    #[must_use]
    pub fn next(self) -> Option<Position> {
        let after = self.own_last.map(|last| Position(last.0 + 1));
        self.first.map(|first| after.map_or(first, |after| after.max(first)))
    }
}

impl Queue {
    #[must_use]
    pub fn of(to: &Target, priority: u8) -> Self {
        Self { to: to.clone(), urgency_rank: PRIORITY_MAX.saturating_sub(priority) }
    }
}

/// The queue that a handoff enters by an event, and who sent it. A queue that it may enter or not
/// counts too: a turn that is not used does no harm.
pub(crate) fn enters<'e>(
    event: &'e Event,
    handoff: Option<&'e Handoff>,
    now: Timestamp,
) -> Option<(Queue, &'e AgentId)> {
    let own = || handoff.map(|handoff| (Queue::of(&handoff.to, handoff.priority), &handoff.from));
    match event.facts().enters {
        Enters::Nothing => None,
        Enters::Offered(offered) => {
            let waits = !offered.needs_approval
                && offered.contract.after.is_none()
                && offered.not_before.is_none_or(|start| start <= now);
            waits.then(|| (Queue::of(&offered.to, offered.priority), &offered.from))
        }
        Enters::Own => own(),
        Enters::OwnIfHeld => own().filter(|_| handoff.is_some_and(|h| h.state.claim().is_some())),
        Enters::OwnIfScheduled => {
            own().filter(|_| handoff.is_some_and(|h| matches!(h.state, State::Scheduled { .. })))
        }
        Enters::OfAgentIfPending(agent) => {
            let handoff = handoff.filter(|h| matches!(h.state, State::Pending { .. }))?;
            Some((Queue::of(&Target::Agent(agent.clone()), handoff.priority), &handoff.from))
        }
        Enters::Of(to) => handoff.map(|h| (Queue::of(to, h.priority), &h.from)),
    }
}

/// The first of what waits for several targets. Each gives its own in the order of ranks; between
/// targets, the more urgent goes first, and then what has been ready for longer.
#[must_use]
pub fn merge(queues: Vec<Vec<(Rank, HandoffId)>>, max: usize) -> Vec<HandoffId> {
    let mut queues: Vec<_> = queues.into_iter().map(|queue| queue.into_iter().peekable()).collect();
    let mut merged = Vec::new();
    while merged.len() < max {
        let heads = queues.iter_mut().filter_map(|queue| {
            let (rank, _) = queue.peek()?;
            Some(((rank.urgency_rank, rank.ready), queue))
        });
        let Some((_, first)) = heads.min_by_key(|(key, _)| *key) else { break };
        merged.extend(first.next().map(|(_, id)| id));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(first: Option<u64>, own_last: Option<u64>) -> Option<u64> {
        Turns { first: first.map(Position), own_last: own_last.map(Position) }.next().map(|p| p.0)
    }

    #[test]
    fn a_newcomer_stands_beside_the_first_and_a_sender_behind_its_own_last() {
        assert_eq!(turn(None, None), None, "its own position, which is above every turn so far");
        assert_eq!(turn(Some(7), None), Some(7));
        assert_eq!(turn(Some(7), Some(7)), Some(8));
        assert_eq!(turn(Some(7), Some(500)), Some(501));
        assert_eq!(turn(Some(9), Some(3)), Some(9), "a turn that was missed is not made up for");
        assert_eq!(turn(None, Some(500)), None);
    }

    #[test]
    fn between_targets_the_urgent_goes_first_and_then_what_waits_longest() {
        let rank = |urgency_rank, turn, ready| Rank {
            urgency_rank,
            turn: Position(turn),
            ready: Position(ready),
        };
        let one = vec![(rank(4, 1, 10), HandoffId(1)), (rank(4, 2, 11), HandoffId(2))];
        let two = vec![(rank(0, 50, 50), HandoffId(3)), (rank(4, 9, 9), HandoffId(4))];
        let order: Vec<_> = [3, 4, 1, 2].map(HandoffId).into();
        assert_eq!(merge(vec![one.clone(), two.clone()], 9), order);
        assert_eq!(merge(vec![two, one], 2), order[..2]);
    }
}
