// SPDX-License-Identifier: Apache-2.0
//! What happens to an envelope after it was made: lifted constraints, and fetches of what it had
//! trimmed.

use tasuki_core::commands::{self, Act, Offer, OfferTask};
use tasuki_core::{Command, HandoffId, Hash};

use crate::stage::{Backend, Stage, code, proof_of};
use crate::support::{agent, body, to};

fn rule() -> Hash {
    body("never on Fridays").hash
}

fn lift(handoff: HandoffId, by: &str) -> Command {
    let reason = body("it is urgent");
    Command::by(agent(by), commands::Lift { handoff, constraint: rule(), reason })
}

fn fetch(handoff: HandoffId, by: &str, memory: &str) -> Command {
    Command::by(agent(by), commands::NoteFetch { handoff, memory: memory.parse().unwrap() })
}

/// The hop that follows a handoff, made by its holder.
async fn next(stage: &Stage, id: HandoffId, lifted: Vec<Hash>) -> Offer {
    let before = stage.handoff(id).await;
    Offer {
        task: OfferTask::Existing(before.task_id),
        from: agent("coder"),
        previous: Some(before.envelope),
        hop: before.hop + 1,
        after: Some(id),
        lifted,
        ..stage.offer(to("tester"))
    }
}

pub(crate) async fn what_is_lifted_must_be_known_to_the_next_hop(stage: Stage) {
    let id = stage.offered().await;
    stage.claim(id, "coder").await;
    stage.run(lift(id, "planner")).await.unwrap();
    assert!(stage.run(lift(id, "planner")).await.unwrap().outcome.repeated);
    let stage = if stage.backend == Backend::Volatile { stage } else { stage.restart().await };
    let lifts = stage.handoff(id).await.lifts.clone();
    assert_eq!((lifts.len(), lifts[0].constraint, &lifts[0].by), (1, rule(), &agent("planner")));
    let reason = stage.store.bodies(vec![lifts[0].reason_pos]).await.unwrap().pop().flatten();
    assert_eq!(reason.unwrap().hash, body("it is urgent").hash);

    let proof = proof_of(&*stage.handoff(id).await);
    let complete =
        |offer| Act::Complete { result: body("done"), follow_ups: vec![offer], checked: None };
    let unaware = next(&stage, id, Vec::new()).await;
    assert_eq!(code(stage.act(id, proof, complete(unaware)).await), "task_moved");
    // A call below the task is bound by what binds the task.
    let parent = stage.handoff(id).await.task_id;
    let mut call = next(&stage, id, Vec::new()).await;
    let OfferTask::New { task, intent, .. } = stage.new_task() else { unreachable!() };
    let parent = Some(parent);
    call.task = OfferTask::New {
        task,
        intent,
        correlation_id: None,
        parent,
        project: None,
        branch_of: None,
        coordinator: None,
        on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
    };
    call.control = tasuki_core::envelope::Control::Awaited;
    assert_eq!(code(stage.send(call).await), "task_moved");

    let aware = next(&stage, id, vec![rule()]).await;
    stage.act(id, proof, complete(aware)).await.unwrap();
    assert_eq!(
        stage.story(id).await,
        ["transfer_offered", "claimed", "constraint_lifted", "completed"]
    );
    // What is lifted is lifted of the last envelope.
    assert_eq!(
        code(
            stage
                .run(Command::by(
                    agent("planner"),
                    commands::Lift {
                        handoff: id,
                        constraint: body("another").hash,
                        reason: body("late")
                    }
                ))
                .await
        ),
        "task_moved"
    );
    stage.verified().await;
}

pub(crate) async fn an_offer_of_what_came_back_knows_what_was_lifted_meanwhile(stage: Stage) {
    let id = stage.offered().await;
    stage.run(lift(id, "planner")).await.unwrap();
    stage.kill(id).await;
    let stage = if stage.backend == Backend::Volatile { stage } else { stage.restart().await };
    let again = |lifted: Vec<Hash>| async {
        let offer = next(&stage, id, lifted).await;
        stage.send(Offer { from: agent("planner"), ..offer }).await
    };
    assert_eq!(code(again(Vec::new()).await), "task_moved");
    again(vec![rule()]).await.unwrap();
}

pub(crate) async fn a_fetch_of_what_was_trimmed_is_counted_once_for_each_memory(stage: Stage) {
    let id = stage.offered().await;
    assert_eq!(code(stage.run(fetch(id, "coder", "ms-1")).await), "not_target");
    let proof = stage.claim(id, "coder").await;
    stage.run(fetch(id, "coder", "ms-1")).await.unwrap();
    assert!(stage.run(fetch(id, "coder", "ms-1")).await.unwrap().outcome.repeated);
    assert_eq!(code(stage.run(fetch(id, "stranger", "ms-2")).await), "not_target");
    let complete = Act::Complete { result: body("done"), follow_ups: Vec::new(), checked: None };
    stage.act(id, proof, complete).await.unwrap();
    let stage = if stage.backend == Backend::Volatile { stage } else { stage.restart().await };
    // Who worked on it may look at it again afterwards.
    stage.run(fetch(id, "coder", "ms-2")).await.unwrap();
    let stage = if stage.backend == Backend::Volatile { stage } else { stage.restart().await };
    let fetched: Vec<_> = stage.handoff(id).await.fetched.iter().map(ToString::to_string).collect();
    assert_eq!(fetched, ["ms-1", "ms-2"]);
    stage.verified().await;
}
