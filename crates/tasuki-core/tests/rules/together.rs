// SPDX-License-Identifier: Apache-2.0
//! What hangs together above one hop, whatever anybody does: random wishes of every kind, after each of
//! which the broker does what it does by itself until nothing more follows.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tasuki_core::commands::{Command, Proof};
use tasuki_core::event::Event;
use tasuki_core::handoff::{Handoff, State};
use tasuki_core::ids::HandoffId;

use crate::hangs::{self, ROUNDS_MAX};
use crate::random::pause_ms;
use crate::support::Stage;
use crate::wider::{Wide, wide};

struct Watched {
    stage: Stage,
    claims: Vec<(HandoffId, Proof)>,
    /// Whether something was held back because of what its task is built on.
    blocked: bool,
}

impl Watched {
    fn run(&mut self, command: Command) {
        let seen = self.stage.world.log.len();
        let blocked = hangs::blocked(&self.stage.world);
        let _ = self.stage.run(command);
        hangs::offered_since(&self.stage.world, seen, &blocked);
        for sealed in &self.stage.world.log[seen..] {
            if let (Some(id), Event::Claimed(claimed)) =
                (sealed.record.handoff_id, &sealed.record.event)
            {
                let held = self.stage.handoff(id).on_hold;
                assert_eq!(held, None, "somebody got what is on hold: {id}");
                let proof = Proof { claim_id: claimed.claim_id, fence: claimed.fence };
                self.claims.push((id, proof));
            }
        }
    }

    fn step(&mut self, wish: &Wide, pause_ms: u64) {
        self.stage.wait(pause_ms);
        let Some(command) = wish.command(&mut self.stage, &self.claims) else { return };
        self.run(command);
        self.rest();
        hangs::hold(&self.stage.world);
        let handoffs = self.stage.world.handoffs.values();
        let held = |it: &std::sync::Arc<Handoff>| matches!(it.state, State::AwaitingApproval);
        self.blocked |= handoffs.into_iter().any(|it| it.blocked && held(it));
    }

    /// What the follower does, until nothing more follows.
    fn rest(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let more = hangs::follows(&self.stage);
            if more.is_empty() {
                return;
            }
            more.into_iter().for_each(|command| self.run(command));
        }
        panic!("what follows from a wish never comes to rest");
    }
}

fn play(story: &[(Wide, u64)]) -> Watched {
    let mut watched = Watched { stage: Stage::new(), claims: Vec::new(), blocked: false };
    for (wish, pause_ms) in story {
        watched.step(wish, *pause_ms);
    }
    watched
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_hangs_together_holds_whatever_anybody_does(
        story in proptest::collection::vec((wide(), pause_ms()), 1..60),
    ) {
        play(&story);
    }
}

#[test]
fn random_stories_join_spread_and_hold() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds = BTreeSet::new();
    let mut blocked = false;
    for _ in 0..400 {
        let stories = proptest::collection::vec((wide(), pause_ms()), 30..60);
        let story = stories.new_tree(&mut runner).unwrap().current();
        let watched = play(&story);
        kinds.extend(watched.stage.world.log.iter().map(|sealed| sealed.record.event.kind()));
        blocked |= watched.blocked;
    }
    for kind in ["joined", "wait_over", "passed_to", "tainted", "task_held", "task_resumed"] {
        assert!(kinds.contains(kind), "no story has {kind}: {kinds:?}");
    }
    assert!(blocked, "no story holds anything back");
}
