//! What goes wrong, and when. It is the same for every system: it follows from the seed, the chain,
//! the stage and how often that stage has worked on that chain.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Mutex,
};

use super::message::Message;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The agent is gone before it tells anybody what it did.
    Dies,
    /// It is gone in the middle of telling.
    DiesTelling,
    /// What it tells arrives; the answer does not.
    Unheard,
    /// It takes longer than anybody waits, and then goes on as if nothing had been.
    Stalls,
    /// It passes on a softer wording of what binds.
    Softens,
}

const KINDS: [Fault; 5] =
    [Fault::Dies, Fault::DiesTelling, Fault::Unheard, Fault::Stalls, Fault::Softens];

pub(super) struct Plan {
    seed: u64,
    /// How many of a thousand visits go wrong.
    per_mille: u64,
    visits: Mutex<HashMap<(u32, usize), u32>>,
}

impl Plan {
    pub(super) fn new(seed: u64, per_mille: u64) -> Self {
        Self { seed, per_mille, visits: Mutex::default() }
    }

    /// What happens to the agent that has just taken this message.
    pub(super) fn visit(&self, message: &Message) -> Option<Fault> {
        let place = (message.chain, message.stage());
        let mut visits = self.visits.lock().expect("nobody panics with it");
        let visit = visits.entry(place).or_default();
        *visit += 1;
        self.draw(place, *visit)
    }

    /// Whether nothing goes wrong where a chain is worked on once at each stage.
    pub(super) fn is_smooth(&self, chain: u32, stages: usize) -> bool {
        (0..stages).all(|stage| self.draw((chain, stage), 1).is_none())
    }

    fn draw(&self, place: (u32, usize), visit: u32) -> Option<Fault> {
        let mut hasher = DefaultHasher::new();
        (self.seed, place, visit).hash(&mut hasher);
        let drawn = hasher.finish();
        let kinds = u64::try_from(KINDS.len()).expect("there are five");
        let kind = usize::try_from(drawn / 1000 % kinds).expect("below five");
        (drawn % 1000 < self.per_mille).then(|| KINDS[kind])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_the_same_for_whoever_asks() {
        let message = Message::new(7);
        let draw = || {
            let plan = Plan::new(1, 500);
            (0..20).map(|_| plan.visit(&message)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
        assert!(draw().iter().any(Option::is_some) && draw().iter().any(Option::is_none));
    }

    #[test]
    fn as_many_go_wrong_as_were_asked_for_and_of_all_kinds_alike() {
        let plan = Plan::new(3, 100);
        let drawn: Vec<_> = (0..50_000).filter_map(|chain| plan.draw((chain, 0), 1)).collect();
        assert!((4_500..5_500).contains(&drawn.len()), "{}", drawn.len());
        for kind in KINDS {
            let count = drawn.iter().filter(|one| **one == kind).count();
            assert!((800..1_200).contains(&count), "{kind:?}: {count}");
        }
    }

    #[test]
    fn without_faults_every_chain_is_smooth() {
        assert!((0..100).all(|chain| Plan::new(1, 0).is_smooth(chain, 5)));
        assert!((0..100).all(|chain| !Plan::new(1, 1000).is_smooth(chain, 5)));
    }
}
