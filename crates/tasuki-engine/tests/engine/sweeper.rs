// SPDX-License-Identifier: Apache-2.0
//! What happens by itself when the clock moves.

use tasuki_core::Terms;
use tasuki_core::commands::Proof;
use tasuki_store::ManualClock;

use crate::support::{
    BEGIN, HOUR, Ids, MINUTE, SECOND, Stage, code, failure, new_offer, proof, soon, to, to_any,
    wish,
};

#[tokio::test]
async fn when_a_worker_vanishes_another_finishes_its_work() {
    let stage = Stage::volatile();
    let id = stage.offer(to_any("review")).await;
    let vanished = stage.claim_one(id, "agent-1").await;
    stage.engine.start_work(id, proof(&vanished), None, None).await.unwrap();
    stage.clock.advance_ms(30 * SECOND);
    stage.becomes(id, "pending").await;
    let granted = stage.claim_one(id, "agent-2").await;
    assert!(proof(&granted).fence > proof(&vanished).fence);

    // It was only slow, and comes back.
    assert_eq!(code(stage.engine.heartbeat(id, proof(&vanished), None).await), "stale_claim");
    assert_eq!(code(stage.complete(&vanished, Vec::new()).await), "stale_claim");
    stage.complete(&granted, Vec::new()).await.unwrap();
    let story = stage.story(id).await;
    let tail = ["started", "lease_lost", "claimed", "late_report", "completed"];
    assert_eq!(story[2..], tail);
}

#[tokio::test]
async fn heartbeats_keep_a_claim_until_the_hard_deadline() {
    let stage = Stage::volatile();
    let mut offer = new_offer(to("coder"));
    offer.hop.terms = Some(Terms { work_ms: MINUTE, ..Terms::default() });
    let id = stage.engine.offer(offer).await.unwrap().handoff.id;
    let granted = stage.claim_one(id, "coder").await;
    assert_eq!((granted.lease_left_ms, granted.work_left_ms), (30 * SECOND, MINUTE));
    for left in [40, 20] {
        stage.clock.advance_ms(20 * SECOND);
        let beat = stage.engine.heartbeat(id, proof(&granted), None).await.unwrap();
        assert_eq!(beat.work_left_ms, left * SECOND);
        assert_eq!(beat.lease_left_ms, (left * SECOND).min(30 * SECOND), "never past the end");
    }
    stage.clock.advance_ms(20 * SECOND);
    stage.becomes(id, "pending").await;
    let ended = stage.engine.handoff(id).await.unwrap().attempts[0].ended.clone().unwrap();
    assert_eq!(ended.how.as_str(), "lost_hard_deadline");
}

#[tokio::test]
async fn what_nobody_takes_in_time_becomes_a_dead_letter() {
    let stage = Stage::volatile();
    let mut offer = new_offer(to("coder"));
    offer.hop.expires_in_ms = Some(MINUTE);
    let id = stage.engine.offer(offer).await.unwrap().handoff.id;
    stage.clock.advance_ms(MINUTE);
    stage.becomes(id, "dead_lettered").await;
    let dead = stage.engine.dead_letter(id).await.unwrap();
    assert_eq!(dead.envelope.unwrap().hash, dead.handoff.envelope);
}

#[tokio::test]
async fn work_that_is_to_start_later_starts_later() {
    let stage = Stage::volatile();
    let mut offer = new_offer(to("coder"));
    offer.hop.start_in_ms = Some(HOUR);
    let id = stage.engine.offer(offer).await.unwrap().handoff.id;
    assert!(stage.engine.claim(wish("coder", &[], 0)).await.unwrap().is_empty());
    // Something due earlier comes in while the sweeper waits for the later.
    let other = stage.offer(to("tester")).await;
    stage.claim_one(other, "tester").await;
    stage.clock.advance_ms(30 * SECOND);
    stage.becomes(other, "pending").await;
    assert_eq!(stage.state(id).await, "scheduled");
    stage.clock.advance_ms(HOUR - 30 * SECOND);
    stage.becomes(id, "pending").await;
}

#[tokio::test]
async fn failed_attempts_are_retried_and_then_end_as_a_dead_letter() {
    let stage = Stage::volatile();
    let id = stage.offer(to("coder")).await;
    for attempt in 1..=3_u32 {
        let granted = stage.claim_one(id, "coder").await;
        stage.engine.fail(failure(id, proof(&granted), None)).await.unwrap();
        if attempt < 3 {
            // Full jitter, but never longer than two to the power of the failures.
            stage.clock.advance_ms(2_u64.pow(attempt) * SECOND);
            stage.becomes(id, "pending").await;
        }
    }
    assert_eq!(stage.state(id).await, "dead_lettered", "no wait after the last");
    let dead = stage.engine.dead_letter(id).await.unwrap();
    assert_eq!(dead.reports.len(), 3);
    assert!(dead.reports.iter().all(|(.., report)| report.text().contains("rate_limited")));
}

#[tokio::test]
async fn more_than_one_sweep_takes_is_all_done() {
    const MANY: usize = 1300;
    let stage = Stage::volatile();
    for _ in 0..MANY / 100 {
        let offers = (0..100).map(|_| new_offer(to("coder"))).collect();
        assert!(stage.engine.offer_many(offers).await.unwrap().iter().all(Result::is_ok));
    }
    let mut claimed = 0;
    while claimed < MANY {
        let wish = tasuki_protocol::Claim { max: 100, ..wish("coder", &[], 0) };
        claimed += stage.engine.claim(wish).await.unwrap().len();
    }
    assert_eq!(stage.engine.stats().waiting_handoffs, 0);
    stage.clock.advance_ms(30 * SECOND);
    soon(async {
        while stage.engine.stats().waiting_handoffs < MANY as u64 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_restarted_broker_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (clock, ids) = (ManualClock::at(BEGIN), Ids::seeded(1));
    let stage = Stage::sqlite(dir.path(), clock.clone(), ids.clone()).await;
    let held = stage.offer(to_any("review")).await;
    let granted = stage.claim_one(held, "agent-1").await;
    let mut later = new_offer(to("coder"));
    later.hop.start_in_ms = Some(MINUTE);
    let later = stage.engine.offer(later).await.unwrap().handoff.id;
    stage.engine.close().await;

    clock.advance_ms(MINUTE);
    let stage = Stage::sqlite(dir.path(), clock.clone(), ids.clone()).await;
    stage.becomes(later, "pending").await;
    assert_eq!(stage.state(held).await, "claimed", "a restart grants a full lease");
    stage.engine.heartbeat(held, proof(&granted), None).await.unwrap();
    stage.complete(&granted, Vec::new()).await.unwrap();
    let claimed = soon(stage.engine.claim(wish("coder", &[], MINUTE))).await.unwrap();
    assert_eq!(claimed[0].handoff.id, later);
    stage.engine.close().await;

    let stage = Stage::sqlite(dir.path(), clock, ids).await;
    let Proof { claim_id, fence } = proof(&claimed[0]);
    let shown = stage.engine.handoff(later).await.unwrap();
    let claim = shown.state.claim().unwrap();
    assert_eq!((claim.claim_id, claim.fence), (claim_id, fence));
    assert_eq!(stage.engine.verify(true).await.unwrap().first_bad, None);
    stage.engine.close().await;
}

/// A process that was stopped took no heartbeats, and must not judge by that.
#[tokio::test]
async fn a_broker_that_was_stopped_for_longer_than_a_lease_takes_none_away_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let sqlite = Stage::sqlite(dir.path(), ManualClock::at(BEGIN), Ids::seeded(1)).await;
    for stage in [Stage::volatile(), sqlite] {
        let held = stage.offer(to_any("review")).await;
        let granted = stage.claim_one(held, "agent-1").await;
        let mut later = new_offer(to("coder"));
        later.hop.start_in_ms = Some(MINUTE);
        let later = stage.engine.offer(later).await.unwrap().handoff.id;
        stage.clock.stop_for_ms(MINUTE);
        // By then the sweeper has looked at everything that is due.
        stage.becomes(later, "pending").await;
        assert_eq!(stage.state(held).await, "claimed", "the silence was the broker's");
        let beat = stage.engine.heartbeat(held, proof(&granted), None).await.unwrap();
        assert_eq!(beat.lease_left_ms, 30 * SECOND);
        // From here on it is the holder's.
        stage.clock.advance_ms(30 * SECOND);
        stage.becomes(held, "pending").await;
        stage.engine.close().await;
    }
}

#[tokio::test]
async fn an_export_through_the_engine_verifies_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::sqlite(dir.path(), ManualClock::at(BEGIN), Ids::seeded(1)).await;
    for _ in 0..5 {
        let id = stage.offer(to("coder")).await;
        let granted = stage.claim_one(id, "coder").await;
        stage.complete(&granted, Vec::new()).await.unwrap();
    }
    let mut lines = Vec::new();
    let mut after = tasuki_core::Position(0);
    while let (page, Some(last)) = stage.engine.export(after, 4).await.unwrap() {
        lines.extend(page);
        after = last;
    }
    let verdict = tasuki_store::audit::verify_lines(lines.into_iter().map(Ok));
    assert_eq!((verdict.first_bad, verdict.events, verdict.tasks), (None, 15, 5));
    stage.engine.close().await;
}
