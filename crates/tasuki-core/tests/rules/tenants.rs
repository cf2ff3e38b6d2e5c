// SPDX-License-Identifier: Apache-2.0
//! What belongs to another tenant is not there.

use tasuki_core::commands::{self, Command};
use tasuki_core::handoff::StateName;
use tasuki_core::{HandoffId, Refusal};

use crate::support::{Stage, agent, to, to_any};

fn offered(stage: &mut Stage, from: &str, target: &str) -> HandoffId {
    let task = stage.new_task(None);
    let offer = stage.offer(task, from, to(target));
    stage.send(offer)
}

#[test]
fn agents_of_the_same_name_in_two_tenants_do_not_see_each_others_work() {
    let mut stage = Stage::new();
    let ours = offered(&mut stage, "acme/planner", "acme/coder");
    let theirs = offered(&mut stage, "zeta/planner", "zeta/coder");
    assert_eq!(stage.claim_next("coder", 9), []);
    assert_eq!(stage.claim_next("zeta/coder", 9), [theirs]);
    assert_eq!(stage.claim_next("acme/coder", 9), [ours]);
}

#[test]
fn work_does_not_leave_its_tenant() {
    let mut stage = Stage::new();
    for target in [to("zeta/coder"), to("coder"), to_any("zeta/review")] {
        let task = stage.new_task(None);
        let offer = stage.offer(task, "acme/planner", target);
        assert_eq!(stage.run(Command::offer(offer)), Err(Refusal::OtherTenant));
    }
}

#[test]
fn every_call_about_another_tenants_handoff_finds_nothing() {
    let mut stage = Stage::new();
    let id = offered(&mut stage, "acme/planner", "acme/coder");
    let by = || agent("zeta/coder");
    let nothing = Err(Refusal::HandoffNotFound(id));
    assert_eq!(stage.try_claim(id, "zeta/coder"), nothing);
    assert_eq!(stage.decline(id, "zeta/coder"), nothing);
    assert_eq!(stage.cancel(id, "zeta/coder"), nothing);
    assert_eq!(stage.run(Command::by(by(), commands::Approve { handoff: id })), nothing);
    assert_eq!(
        stage.run(Command::by(
            by(),
            commands::Reject { handoff: id, reason: crate::support::body("no") }
        )),
        nothing
    );
    let abort = Command::by(by(), commands::Abort { handoff: id, reason: None });
    assert_eq!(stage.run(abort), nothing);
    assert_eq!(stage.redrive(id), nothing);
    assert_eq!(stage.discard(id), nothing);
    let task = stage.handoff(id).task_id;
    let cancel = Command::by(by(), commands::CancelTask { task, reason: None, letter: None });
    assert_eq!(stage.run(cancel), Err(Refusal::TaskNotFound(task)));
    let proof = stage.claim(id, "acme/coder");
    let held = Command::held(
        id,
        proof,
        Some(tasuki_core::commands::Holder { agent: by(), signed: None }),
        tasuki_core::commands::Act::Release,
    );
    assert_eq!(stage.run(held), nothing);
    assert_eq!(stage.state(id), StateName::Claimed);
}
