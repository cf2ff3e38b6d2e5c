// SPDX-License-Identifier: Apache-2.0
//! One handoff from its offer to its end, and commands that share a commit.

use tasuki_core::commands::{self, Act, Command, OpenTask, Proof};
use tasuki_core::event::Actor;
use tasuki_core::{State, TaskId, TaskState};
use tasuki_store::Error;

use crate::stage::{Stage, code, proof_of};
use crate::support::{agent, body, complete, to, to_any};

pub(crate) async fn offered_work_is_claimed_started_and_completed(stage: Stage) {
    let id = stage.offered().await;
    assert_eq!(stage.state(id).await, "pending");
    assert_eq!(stage.task_of(id).await.owner, agent("planner"));

    let proof = stage.claim(id, "coder").await;
    assert_eq!(stage.state(id).await, "claimed");
    assert_eq!(stage.task_of(id).await.owner, agent("coder"));

    stage.act(id, proof, Act::Start).await.unwrap();
    assert_eq!(stage.state(id).await, "in_progress");

    stage.act(id, proof, complete("done")).await.unwrap();
    let handoff = stage.handoff(id).await;
    let State::Completed { result, result_pos, fence, .. } = handoff.state else {
        panic!("{handoff:?}");
    };
    assert_eq!((result, fence), (body("done").hash, proof.fence));
    let stored = stage.store.bodies(vec![result_pos]).await.unwrap();
    assert_eq!(stored, [Some(body("done"))]);
    let task = stage.task_of(id).await;
    assert_eq!((task.state, task.live), (TaskState::Completed, None));
    assert_eq!(stage.story(id).await, ["transfer_offered", "claimed", "started", "completed"]);

    let actors = stage.log().await.into_iter().map(|entry| entry.sealed.record.actor);
    let expected = ["planner", "coder", "coder", "coder"].map(|name| Actor::Agent(agent(name)));
    assert!(actors.eq(expected));
    stage.verified().await;
}

pub(crate) async fn a_reply_shows_things_as_they_are_after_its_own_command(stage: Stage) {
    let mut offer = stage.offer(to("coder"));
    let id = offer.handoff;
    offer.priority = 7;
    let claim = stage.wish("coder", 1);
    let cancel = Command::by(agent("planner"), commands::Cancel { handoff: id, reason: None });
    let commands = vec![Command::offer(offer), Command::claim_one(id, claim), cancel];
    let replies = stage.store.execute(commands).await.unwrap();
    let seen: Vec<_> =
        replies.into_iter().map(|reply| reply.unwrap().handoffs[0].state.name().as_str()).collect();
    assert_eq!(seen, ["pending", "claimed", "cancelled"]);
}

pub(crate) async fn a_refused_command_does_not_hinder_its_neighbours(stage: Stage) {
    let first = stage.offer(to("coder"));
    let mut misplaced = stage.offer(to("coder"));
    misplaced.priority = 99;
    let last = stage.offer(to("coder"));
    let ids = [&first, &misplaced, &last].map(|offer| offer.handoff);
    let commands = [first, misplaced, last].into_iter().map(Command::offer).collect();
    let mut replies = stage.store.execute(commands).await.unwrap();
    assert_eq!(code(replies.remove(1)), "invalid_terms");
    assert!(replies.iter().all(Result::is_ok));
    assert!(stage.store.handoff(ids[1]).await.unwrap().is_none());
    assert_eq!(stage.claim_next("coder", 10).await, [ids[0], ids[2]]);
}

pub(crate) async fn a_refused_command_leaves_nothing_behind(stage: Stage) {
    let id = stage.offered().await;
    let before = (stage.handoff(id).await, stage.task_of(id).await, stage.store.head());
    let forged = Proof { claim_id: tasuki_core::ClaimId(7), fence: tasuki_core::Fence(7) };
    assert_eq!(code(stage.act(id, forged, complete("x")).await), "stale_claim");
    let cancel = Command::by(agent("stranger"), commands::Cancel { handoff: id, reason: None });
    assert_eq!(code(stage.run(cancel).await), "not_permitted");
    assert_eq!(code(stage.try_claim(id, "tester").await), "not_target");
    assert_eq!((stage.handoff(id).await, stage.task_of(id).await, stage.store.head()), before);
}

pub(crate) async fn completing_and_handing_on_is_one_step(stage: Stage) {
    let id = stage.offered().await;
    let task = stage.handoff(id).await.task_id;
    let done = stage.try_claim(id, "coder").await.unwrap();
    let proof = proof_of(&done.handoffs[0]);
    let mut next = stage.offer(to_any("review"));
    next.task = tasuki_core::commands::OfferTask::Existing(task);
    next.from = agent("coder");
    (next.previous, next.hop) = (Some(done.handoffs[0].envelope), 1);
    let follow = next.handoff;
    let mut bad = next.clone();
    bad.hop = 5;

    let act = |follow_up| Act::Complete {
        result: body("done"),
        follow_ups: vec![follow_up],
        checked: None,
    };
    let before = stage.store.head();
    assert_eq!(code(stage.act(id, proof, act(bad)).await), "task_moved");
    assert_eq!(stage.store.head(), before, "half of a step was taken");

    stage.act(id, proof, act(next)).await.unwrap();
    assert_eq!(stage.state(id).await, "completed");
    assert_eq!(stage.state(follow).await, "pending");
    let task = stage.task_of(follow).await;
    assert_eq!((task.state, task.live), (TaskState::Open, Some(follow)));
    assert_eq!(stage.claim_next("tester", 1).await, [follow]);
    stage.verified().await;
}

pub(crate) async fn cancelling_ends_a_handoff_whoever_holds_it(stage: Stage) {
    let id = stage.offered().await;
    let proof = stage.claim(id, "coder").await;
    let reason = Some(body("not needed"));
    let cancel = Command::by(agent("planner"), commands::Cancel { handoff: id, reason });
    stage.run(cancel.clone()).await.unwrap();
    assert!(stage.run(cancel).await.unwrap().outcome.repeated);
    assert_eq!(code(stage.act(id, proof, complete("done")).await), "stale_claim");
    assert_eq!(stage.state(id).await, "cancelled");
    assert_eq!(stage.task_of(id).await.state, TaskState::Cancelled);
}

pub(crate) async fn a_task_without_a_handoff_is_opened_and_cancelled(stage: Stage) {
    let task = TaskId(stage.next_id());
    let open = OpenTask {
        task,
        intent: body("do it"),
        correlation_id: Some("order 7".parse().unwrap()),
        project: None,
        parent: None,
        coordinator: None,
        channel: None,
        on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
    };
    let done = stage.run(Command::by(agent("planner"), open)).await.unwrap();
    assert_eq!(done.task.unwrap().state, TaskState::Open);
    let cancel =
        Command::by(agent("planner"), commands::CancelTask { task, reason: None, letter: None });
    let done = stage.run(cancel).await.unwrap();
    assert_eq!(done.task.unwrap().state, TaskState::Cancelled);
    assert_eq!(stage.store.task(task).await.unwrap().unwrap().state, TaskState::Cancelled);
}

pub(crate) async fn what_was_never_there_is_not_found(stage: Stage) {
    let (task, handoff) = (TaskId(901), tasuki_core::HandoffId(902));
    assert_eq!(stage.store.task(task).await.unwrap(), None);
    assert_eq!(stage.store.handoff(handoff).await.unwrap(), None);
    assert!(stage.store.chain(task).await.unwrap().is_empty());
    assert_eq!(code(stage.try_claim(handoff, "coder").await), "handoff_not_found");
    let cancel =
        Command::by(agent("planner"), commands::CancelTask { task, reason: None, letter: None });
    assert_eq!(code(stage.run(cancel).await), "task_not_found");
}

pub(crate) async fn a_closed_store_takes_nothing_more(stage: Stage) {
    let id = stage.offered().await;
    stage.store.close().await;
    let sweep = || vec![Command::of_broker(commands::Sweep::now(1))];
    assert!(matches!(stage.store.execute(sweep()).await, Err(Error::Closed)));
    assert!(matches!(stage.store.handoff(id).await, Err(Error::Closed)));
    assert!(matches!(stage.store.task(TaskId(1)).await, Err(Error::Closed)));
    let filter = tasuki_store::HandoffFilter { max: 1, ..Default::default() };
    assert!(matches!(stage.store.list_handoffs(filter).await, Err(Error::Closed)));
    let filter = tasuki_store::TaskFilter { max: 1, ..Default::default() };
    assert!(matches!(stage.store.list_tasks(filter).await, Err(Error::Closed)));
    let first = tasuki_core::Position(1);
    assert!(matches!(stage.store.bodies(vec![first]).await, Err(Error::Closed)));
    assert!(matches!(stage.store.events(first, 1).await, Err(Error::Closed)));
    assert!(matches!(stage.store.chain(TaskId(1)).await, Err(Error::Closed)));
    assert!(matches!(stage.store.checkpoints(first, 1).await, Err(Error::Closed)));
    assert!(matches!(stage.store.verify().await, Err(Error::Closed)));
    stage.store.close().await;
    assert_eq!(stage.store.failure(), None, "closing is no failure");
}
