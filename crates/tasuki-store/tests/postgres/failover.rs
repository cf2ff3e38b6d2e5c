// SPDX-License-Identifier: Apache-2.0
//! A standby that lost the last writes takes over.

use rustix::process::Signal;
use scratch_postgres::Server;
use tasuki_core::ids::Epoch;

use crate::broker;
use crate::stage::{code, proof_of};
use crate::support::{body, complete};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_that_lost_writes_fences_rise_and_the_old_holder_is_refused() {
    let primary = Server::start();
    primary.run_sql("postgres", "CREATE DATABASE work").await;
    let both = |standby: &Server| {
        format!(
            "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/work?target_session_attrs=read-write",
            primary.port(),
            standby.port()
        )
    };
    let standby = Server::standby_of(&primary);
    let stage = broker(&both(&standby), None).await;
    let held = stage.offered().await;
    let known = stage.claim(held, "coder").await;
    let lost = stage.offered().await;
    standby.replayed(&primary).await;
    // From here on the standby hears of nothing.
    standby.deafen().await;
    let before = stage.claim(lost, "coder").await;
    let gone = stage.offered().await;

    tokio::task::block_in_place(|| {
        primary.down(Signal::KILL);
        standby.promote();
    });
    let mut news = stage.store.subscribe();
    // The broker finds the new primary by itself.
    let after = proof_of(&*insist(&stage, lost).await);
    assert!(after.fence > before.fence && after.fence > known.fence, "fences rise");
    assert_eq!(after.fence.epoch(), Epoch(2));
    assert_eq!(code(stage.act(lost, before, complete("late")).await), "stale_claim");
    assert_eq!(code(stage.act(held, known, complete("late")).await), "stale_claim");
    assert!(stage.store.handoff(gone).await.unwrap().is_none(), "what was lost is not made up");
    let again = stage.claim(held, "coder").await;
    assert!(again.fence > known.fence);
    stage.act(lost, after, complete("done")).await.unwrap();
    // Positions are given a second time: what stood there before the failover is forgotten.
    for _ in 0..5 {
        let new = stage.offered().await;
        let at = stage.handoff(new).await.envelope_pos;
        let envelope = stage.store.bodies(vec![at]).await.unwrap().pop().unwrap().unwrap();
        assert_eq!(envelope.text(), body(&format!("envelope {new}")).text());
        while !heard(&news.recv().await.unwrap(), new) {}
    }
    let verdict = stage.store.verify().await.unwrap();
    assert_eq!(verdict.first_bad, None);
}

fn heard(news: &tasuki_store::Committed, id: tasuki_core::HandoffId) -> bool {
    news.changes.iter().any(|change| change.sealed.record.handoff_id == Some(id))
}

async fn insist(
    stage: &crate::stage::Stage,
    id: tasuki_core::HandoffId,
) -> std::sync::Arc<tasuki_core::Handoff> {
    loop {
        match stage.try_claim(id, "coder").await {
            Ok(done) => return done.handoffs[0].clone(),
            Err(tasuki_store::Error::Unavailable | tasuki_store::Error::Unknown) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_standby_that_never_heard_of_the_first_failover_raises_fences_once_more() {
    let primary = Server::start();
    primary.run_sql("postgres", "CREATE DATABASE work").await;
    let standbys = [Server::standby_of(&primary), Server::standby_of(&primary)];
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}/work?target_session_attrs=read-write",
        primary.port(),
        standbys[0].port(),
        standbys[1].port()
    );
    let stage = broker(&url, None).await;
    let held = stage.offered().await;
    let mut known = stage.claim(held, "coder").await;
    for standby in &standbys {
        standby.replayed(&primary).await;
        standby.deafen().await;
    }
    let mut before = &primary;
    let mut news = stage.store.subscribe();
    for (standby, epoch) in standbys.iter().zip([2, 3]) {
        tokio::task::block_in_place(|| {
            before.down(Signal::KILL);
            standby.promote();
        });
        let after = proof_of(&*insist(&stage, held).await);
        assert_eq!(after.fence.epoch(), Epoch(epoch), "each failover has an epoch of its own");
        assert!(after.fence > known.fence);
        assert_eq!(code(stage.act(held, known, complete("late")).await), "stale_claim");
        while !news.recv().await.unwrap().missed {}
        (known, before) = (after, standby);
    }
    assert_eq!(stage.store.verify().await.unwrap().first_bad, None);
}
