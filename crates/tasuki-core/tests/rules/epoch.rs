// SPDX-License-Identifier: Apache-2.0
//! After a restore, nobody who held a claim before it can act.

use tasuki_core::commands::{self, Act, Command};
use tasuki_core::handoff::StateName;
use tasuki_core::ids::Epoch;

use crate::support::{Stage, code, complete};

#[test]
fn raising_the_epoch_makes_older_claims_stale_and_later_fences_higher() {
    let mut stage = Stage::new();
    let handoffs = [stage.offered(), stage.offered()];
    let old = handoffs.map(|handoff| stage.claim(handoff, "coder"));
    stage.act(handoffs[1], old[1], Act::Start).unwrap();
    stage.run(Command::of_broker(commands::RaiseEpoch { epoch: 2 })).unwrap();

    assert_eq!(stage.world.epoch, Epoch(2));
    for (handoff, proof) in handoffs.into_iter().zip(old) {
        assert_eq!(code(stage.act(handoff, proof, complete("done"))), "stale_claim");
        assert_eq!(stage.state(handoff), StateName::Pending);
        assert_eq!(stage.owner(handoff), "planner");
        let new = stage.claim(handoff, "coder");
        assert_eq!(new.fence.epoch(), Epoch(2));
        assert!(old.iter().all(|old| new.fence > old.fence));
        stage.act(handoff, new, complete("done")).unwrap();
    }
}

#[test]
fn a_restore_does_not_count_against_the_handoff() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    for epoch in 2..10 {
        stage.claim(handoff, "coder");
        stage.run(Command::of_broker(commands::RaiseEpoch { epoch })).unwrap();
    }
    assert_eq!(stage.state(handoff), StateName::Pending);
    assert_eq!(stage.handoff(handoff).losses, 0);
}

#[test]
fn an_epoch_rises_whatever_is_asked_for() {
    let mut stage = Stage::new();
    for (asked, given) in [(7, 7), (7, 8), (1, 9)] {
        stage.run(Command::of_broker(commands::RaiseEpoch { epoch: asked })).unwrap();
        assert_eq!(stage.world.epoch, Epoch(given));
    }
}
