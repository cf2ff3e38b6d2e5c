// SPDX-License-Identifier: Apache-2.0
//! What time does: leases, hard deadlines, retries, start times, expiry.

use tasuki_core::commands::{self, Act, Command, Proof};
use tasuki_core::event::FailureClass;
use tasuki_core::handoff::AttemptEnd;
use tasuki_core::{ClaimId, Event, Fence, State, Terms};
use tasuki_store::Clock;

use crate::stage::{Stage, code, proof_of};
use crate::support::{HOUR, SECOND, agent, body, complete, fail, to, to_any};

const LEASE: u64 = 30 * SECOND;

pub(crate) async fn silence_past_the_lease_gives_the_work_to_another(stage: Stage) {
    let id = stage.offer_to(to_any("review"), |_| {}).await;
    let first = stage.claim(id, "coder").await;
    assert!(stage.wait_and_sweep(LEASE - 1).await.is_empty(), "not a moment too early");
    assert_eq!(stage.wait_and_sweep(1).await, [id]);
    assert_eq!(stage.state(id).await, "pending");
    assert_eq!(stage.task_of(id).await.owner, agent("planner"));

    let second = stage.claim(id, "tester").await;
    assert!(second.fence > first.fence);
    assert_eq!(stage.handoff(id).await.losses, 1);
}

pub(crate) async fn a_late_completion_is_refused_and_recorded_once(stage: Stage) {
    let id = stage.offer_to(to_any("review"), |_| {}).await;
    let late = stage.claim(id, "coder").await;
    stage.wait_and_sweep(LEASE).await;
    let holder = stage.claim(id, "tester").await;
    for _ in 0..2 {
        assert_eq!(code(stage.act(id, late, complete("late")).await), "stale_claim");
    }
    let log = stage.log().await;
    let last = log.last().unwrap();
    let Event::LateReport { fence, report, .. } = last.sealed.record.event else {
        panic!("{last:?}");
    };
    assert_eq!((fence, report), (late.fence, body("late").hash));
    let kept = stage.store.bodies(vec![last.sealed.position]).await.unwrap();
    assert_eq!(kept, [Some(body("late"))]);

    for act in [Act::Start, Act::Heartbeat, Act::Release] {
        assert_eq!(code(stage.act(id, late, act).await), "stale_claim");
    }
    stage.act(id, holder, complete("done")).await.unwrap();
    assert!(stage.handoff(id).await.attempts[0].late);
    let kinds = stage.story(id).await;
    assert_eq!(kinds[2..], ["lease_lost", "claimed", "late_report", "completed"]);
}

pub(crate) async fn a_claim_is_shown_by_both_of_its_halves(stage: Stage) {
    let id = stage.offered().await;
    let held = stage.claim(id, "coder").await;
    let wrong = [
        Proof { claim_id: ClaimId(held.claim_id.0 + 1), ..held },
        Proof { fence: Fence(held.fence.0 + 1), ..held },
        Proof { fence: Fence(held.fence.0 - 1), ..held },
    ];
    for proof in wrong {
        for act in [Act::Start, Act::Heartbeat, Act::Release, complete("done")] {
            assert_eq!(code(stage.act(id, proof, act).await), "stale_claim");
        }
    }
    assert_eq!(stage.story(id).await, ["transfer_offered", "claimed"]);
    stage.act(id, held, complete("done")).await.unwrap();
}

pub(crate) async fn a_late_report_about_something_long_over_is_kept_too(stage: Stage) {
    let id = stage.offer_to(to_any("review"), |_| {}).await;
    let late = stage.claim(id, "coder").await;
    stage.wait_and_sweep(LEASE).await;
    let holder = stage.claim(id, "tester").await;
    stage.act(id, holder, complete("done")).await.unwrap();
    // A listing lets a backend put away what is over.
    let filter = tasuki_store::HandoffFilter { max: 10, ..Default::default() };
    stage.store.list_handoffs(filter).await.unwrap();
    assert_eq!(code(stage.act(id, late, complete("late")).await), "stale_claim");
    assert_eq!(stage.story(id).await.last(), Some(&"late_report"));
    assert!(stage.handoff(id).await.attempts[0].late);
    stage.verified().await;
}

pub(crate) async fn heartbeats_extend_a_lease_without_an_event(stage: Stage) {
    let id = stage.offered().await;
    let proof = stage.claim(id, "coder").await;
    let head = stage.store.head();
    for _ in 0..5 {
        stage.clock.advance_ms(LEASE - 1);
        assert!(stage.sweep().await.is_empty());
        let done = stage.act(id, proof, Act::Heartbeat).await.unwrap();
        let until = done.handoffs[0].state.claim().unwrap().lease_until;
        assert_eq!(until, stage.now().plus_ms(LEASE));
    }
    assert_eq!(stage.store.head(), head);
    assert_eq!(stage.wait_and_sweep(LEASE).await, [id]);
    assert_eq!(code(stage.act(id, proof, Act::Heartbeat).await), "stale_claim");
}

pub(crate) async fn a_hard_deadline_ends_work_that_still_sends_heartbeats(stage: Stage) {
    let id = stage.offer_to(to("coder"), |offer| {
        offer.terms = Terms { work_ms: 50 * SECOND, ..Terms::default() };
    });
    let id = id.await;
    let proof = stage.claim(id, "coder").await;
    stage.clock.advance_ms(25 * SECOND);
    stage.act(id, proof, Act::Heartbeat).await.unwrap();
    stage.clock.advance_ms(25 * SECOND);
    assert_eq!(code(stage.act(id, proof, Act::Heartbeat).await), "stale_claim");
    assert_eq!(stage.sweep().await, [id]);
    let ended = stage.handoff(id).await.attempts[0].ended.clone().unwrap();
    assert_eq!(ended.how, AttemptEnd::LostHardDeadline);
}

pub(crate) async fn a_failed_attempt_is_retried_when_it_is_due(stage: Stage) {
    let id = stage.offered().await;
    let proof = stage.claim(id, "coder").await;
    let failure = body("it broke");
    let act = Act::Fail {
        class: FailureClass::Retryable,
        failure,
        retry_after_ms: Some(7 * SECOND),
        entropy: 0,
    };
    stage.act(id, proof, act).await.unwrap();
    let due = stage.now().plus_ms(7 * SECOND);
    assert_eq!(stage.handoff(id).await.state, State::Scheduled { due });
    assert!(stage.claim_next("coder", 1).await.is_empty());

    assert!(stage.wait_and_sweep(7 * SECOND - 1).await.is_empty());
    assert_eq!(stage.wait_and_sweep(1).await, [id]);
    assert_eq!(stage.claim_next("coder", 1).await, [id]);
    assert_eq!(stage.handoff(id).await.claims, 2);
}

pub(crate) async fn a_start_time_is_waited_for(stage: Stage) {
    let start = stage.now().plus_ms(HOUR);
    let id = stage.offer_to(to("coder"), |offer| offer.not_before = Some(start)).await;
    assert_eq!(stage.state(id).await, "scheduled");
    assert!(stage.wait_and_sweep(HOUR - 1).await.is_empty());
    assert_eq!(stage.wait_and_sweep(1).await, [id]);
    assert_eq!(stage.claim_next("coder", 1).await, [id]);
}

pub(crate) async fn what_nobody_takes_in_time_becomes_a_dead_letter(stage: Stage) {
    let soon = stage.now().plus_ms(SECOND);
    let id = stage.offer_to(to("coder"), |offer| offer.expires_at = soon).await;
    stage.clock.advance_ms(SECOND);
    assert_eq!(code(stage.try_claim(id, "coder").await), "deadline_passed");
    assert_eq!(stage.sweep().await, [id]);
    assert_eq!(stage.story(id).await[1..], ["expired", "dead_lettered"]);
}

pub(crate) async fn one_sweep_takes_no_more_than_it_was_told(stage: Stage) {
    let mut claimed = Vec::new();
    for _ in 0..5 {
        let id = stage.offered().await;
        stage.claim(id, "coder").await;
        claimed.push(id);
        stage.clock.advance_ms(1);
    }
    stage.clock.advance_ms(LEASE);
    let swept =
        stage.run(Command::of_broker(commands::Sweep::now(3))).await.unwrap().outcome.handoffs;
    assert_eq!(swept, claimed[..3], "the longest due first");
    assert_eq!(stage.sweep().await, claimed[3..]);
}

pub(crate) async fn raising_the_epoch_makes_every_claim_stale(stage: Stage) {
    let id = stage.offer_to(to_any("review"), |_| {}).await;
    let old = stage.claim(id, "coder").await;
    for epoch in [2, 3] {
        stage.run(Command::of_broker(commands::RaiseEpoch { epoch })).await.unwrap();
        // A listing lets a backend put away what nobody works on.
        let filter = tasuki_store::TaskFilter { max: 10, ..Default::default() };
        assert_eq!(stage.store.list_tasks(filter).await.unwrap().len(), 1);
    }
    assert_eq!(code(stage.act(id, old, complete("done")).await), "stale_claim");
    let new = proof_of(&stage.try_claim(id, "tester").await.unwrap().handoffs[0]);
    assert!(new.fence > old.fence && new.fence.epoch().0 == 3);
    assert_eq!(stage.handoff(id).await.losses, 0, "a restore counts against nobody");
    stage.act(id, new, fail(FailureClass::Unknown)).await.unwrap();
    stage.verified().await;
}

/// As when a process is stopped while the sweep waits in its queue.
pub(crate) async fn a_sweep_judges_by_the_time_at_which_it_was_asked_for(stage: Stage) {
    let id = stage.offered().await;
    let proof = stage.claim(id, "coder").await;
    let asked = stage.clock.now();
    // Past the lease, and before the hard deadline, after which nothing can be finished.
    stage.clock.advance_ms(10 * 60 * 1000);
    let sweep = |until| Command::of_broker(commands::Sweep { max: 10, until });
    let swept = stage.run(sweep(asked)).await.unwrap();
    assert_eq!(swept.outcome.handoffs, []);
    assert!(stage.handoff(id).await.state.claim().is_some());
    let due = *stage.store.next_due().borrow();
    assert!(due.is_some_and(|due| due <= stage.clock.now()), "it is not forgotten: {due:?}");
    stage.act(id, proof, complete("done")).await.unwrap();
    let id = stage.offered().await;
    stage.claim(id, "coder").await;
    stage.clock.advance_ms(60 * 60 * 1000);
    let swept = stage.run(sweep(stage.clock.now())).await.unwrap();
    assert_eq!(swept.outcome.handoffs, [id]);
}
