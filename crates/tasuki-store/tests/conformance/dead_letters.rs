// SPDX-License-Identifier: Apache-2.0
//! What becomes of work that could not be done.

use tasuki_core::commands::{self, Act, Command};
use tasuki_core::event::{DeadReason, FailureClass};
use tasuki_core::handoff::{Review, StateName};
use tasuki_core::{HandoffId, State, TaskState};
use tasuki_store::HandoffFilter;

use crate::stage::{Stage, code};
use crate::support::{HOUR, MINUTE, agent, body, complete, fail, to_any};

async fn reason(stage: &Stage, id: HandoffId) -> DeadReason {
    match stage.handoff(id).await.state {
        State::DeadLettered { reason, .. } => reason,
        ref other => panic!("{other:?}"),
    }
}

pub(crate) async fn attempts_that_all_fail_lead_to_a_dead_letter(stage: Stage) {
    let id = stage.offered().await;
    for _ in 0..3 {
        let proof = stage.claim(id, "coder").await;
        stage.act(id, proof, fail(FailureClass::Retryable)).await.unwrap();
        stage.wait_and_sweep(MINUTE).await;
    }
    assert_eq!(reason(&stage, id).await, DeadReason::AttemptsExhausted);
    let task = stage.task_of(id).await;
    assert_eq!((task.state, &task.owner), (TaskState::DeadLettered, &agent("planner")));
    let handoff = stage.handoff(id).await;
    let at = handoff.attempts.iter().map(|a| a.ended.as_ref().unwrap().report.unwrap().0);
    let reports = stage.store.bodies(at.collect()).await.unwrap();
    assert_eq!(reports, vec![Some(body("it broke")); 3], "every failure is there to be read");
}

pub(crate) async fn workers_that_keep_vanishing_lead_to_quarantine(stage: Stage) {
    let id = stage.offer_to(to_any("review"), |_| {}).await;
    for name in ["coder", "tester", "coder"] {
        stage.claim(id, name).await;
        stage.wait_and_sweep(MINUTE).await;
    }
    assert_eq!(reason(&stage, id).await, DeadReason::Poison);
    assert_eq!(stage.handoff(id).await.failures, 0, "losses are counted apart");
}

pub(crate) async fn redriving_makes_a_new_handoff_with_the_old_envelope(stage: Stage) {
    let dead = stage.offered().await;
    stage.kill(dead).await;
    let new = stage.redrive(dead).await.unwrap().outcome.handoffs[0];
    let (old, fresh) = (stage.handoff(dead).await, stage.handoff(new).await);
    assert_eq!((fresh.envelope, fresh.envelope_pos), (old.envelope, old.envelope_pos));
    assert_eq!(fresh.redrive_of, Some(dead));
    let State::DeadLettered { review, .. } = &old.state else { panic!("{old:?}") };
    assert_eq!(*review, Some(Review::Redriven { to: new, changed: None }));

    let again = stage.redrive(dead).await.unwrap();
    assert_eq!((again.outcome.repeated, &again.outcome.handoffs), (true, &vec![new]));
    let discard = Command::by(
        agent("person"),
        commands::Discard { handoff: dead, reason: body("pointless") },
    );
    assert_eq!(code(stage.run(discard).await), "already_reviewed");
    let proof = stage.claim(new, "coder").await;
    stage.act(new, proof, complete("done")).await.unwrap();
    assert_eq!(stage.task_of(dead).await.state, TaskState::Completed);
}

pub(crate) async fn discarding_keeps_the_reason_and_ends_the_task(stage: Stage) {
    let dead = stage.offered().await;
    stage.kill(dead).await;
    let discard = || {
        Command::by(agent("person"), commands::Discard { handoff: dead, reason: body("pointless") })
    };
    stage.run(discard()).await.unwrap();
    assert!(stage.run(discard()).await.unwrap().outcome.repeated);
    let old = stage.handoff(dead).await;
    let State::DeadLettered { review: Some(Review::Discarded { reason_pos }), .. } = old.state
    else {
        panic!("{old:?}");
    };
    assert_eq!(stage.store.bodies(vec![reason_pos]).await.unwrap(), [Some(body("pointless"))]);
    assert_eq!(stage.task_of(dead).await.state, TaskState::Failed);
    assert_eq!(code(stage.redrive(dead).await), "already_reviewed");
}

pub(crate) async fn only_dead_letters_are_reviewed(stage: Stage) {
    let id = stage.offered().await;
    assert_eq!(code(stage.redrive(id).await), "not_dead_lettered");
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, complete("done")).await.unwrap();
    assert_eq!(code(stage.redrive(id).await), "not_dead_lettered");
}

pub(crate) async fn dead_letters_are_listed_until_somebody_decides(stage: Stage) {
    let mut dead = Vec::new();
    for _ in 0..3 {
        let id = stage.offered().await;
        stage.kill(id).await;
        dead.push(id);
    }
    let list = |unreviewed| {
        let state = Some(StateName::DeadLettered);
        let filter = HandoffFilter { state, unreviewed, max: 10, ..Default::default() };
        let listed = stage.store.list_handoffs(filter);
        async { listed.await.unwrap().iter().map(|handoff| handoff.id).collect::<Vec<_>>() }
    };
    assert_eq!(list(true).await, [dead[2], dead[1], dead[0]]);
    let reason = body("pointless");
    let discard = Command::by(agent("person"), commands::Discard { handoff: dead[1], reason });
    stage.run(discard).await.unwrap();
    stage.redrive(dead[0]).await.unwrap();
    assert_eq!(list(true).await, [dead[2]]);
    assert_eq!(list(false).await, [dead[2], dead[1], dead[0]]);
}

pub(crate) async fn a_declined_offer_to_one_agent_is_a_dead_letter(stage: Stage) {
    let id = stage.offered().await;
    let reason_given = Some(body("not my work"));
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, Act::Decline { reason: reason_given }).await.unwrap();
    assert_eq!(reason(&stage, id).await, DeadReason::Declined);
    stage.wait_and_sweep(HOUR).await;
    assert_eq!(stage.state(id).await, "dead_lettered", "nobody tries it again by itself");
}
