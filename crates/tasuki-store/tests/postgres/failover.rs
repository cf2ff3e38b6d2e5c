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

/// A broker with a data directory of its own.
async fn broker_in(
    dir: &std::path::Path,
    url: &str,
    like: Option<&crate::stage::Stage>,
) -> crate::stage::Stage {
    let options =
        tasuki_store::PostgresOptions { dir: Some(dir.to_owned()), ..crate::options(url) };
    crate::broker_with(options, like).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_comes_back_is_passed_by_and_nobody_starts_on_it() {
    let primary = Server::start();
    primary.run_sql("postgres", "CREATE DATABASE work").await;
    let standby = Server::standby_of(&primary);
    let (old, new) = (primary.port(), standby.port());
    let url = format!("postgres://postgres@127.0.0.1:{old},127.0.0.1:{new}/work");
    let home = tempfile::tempdir().unwrap();
    let stage = broker_in(home.path(), &url, None).await;
    let id = stage.offered().await;
    let known = stage.claim(id, "coder").await;
    standby.replayed(&primary).await;
    tokio::task::block_in_place(|| {
        primary.down(Signal::KILL);
        standby.promote();
    });
    let after = proof_of(&*insist(&stage, id).await);
    assert!(after.fence > known.fence);
    // The old primary is back, takes writes, and is the first host of the URL.
    tokio::task::block_in_place(|| primary.up());
    for _ in 0..20 {
        stage.offered().await;
    }
    stage.act(id, after, complete("done")).await.unwrap();
    assert_eq!(stage.state(id).await, "completed");

    // A broker that starts now asks both, and one that knows better is not fooled by the old one alone.
    let second = broker(&url, Some(&stage)).await;
    assert_eq!(second.state(id).await, "completed");
    stage.store.close().await;
    let alone = format!("postgres://postgres@127.0.0.1:{old}/work");
    let options = tasuki_store::PostgresOptions {
        dir: Some(home.path().to_owned()),
        ..crate::options(&alone)
    };
    let refused = tasuki_store::Postgres::open(options, stage.clock.clone()).await.err();
    let refused = refused.expect("it was replaced");
    assert!(
        matches!(refused, tasuki_store::PostgresError::Replaced { found: 1, known: 2 }),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_restarts_on_a_second_standby_does_not_repeat_an_epoch() {
    let primary = Server::start();
    primary.run_sql("postgres", "CREATE DATABASE work").await;
    let standbys = [Server::standby_of(&primary), Server::standby_of(&primary)];
    let urls = standbys.each_ref().map(|it| it.url("work"));
    let home = tempfile::tempdir().unwrap();
    let stage = broker_in(home.path(), &primary.url("work"), None).await;
    let id = stage.offered().await;
    for standby in &standbys {
        standby.replayed(&primary).await;
        standby.deafen().await;
    }
    stage.store.close().await;
    let mut last = tasuki_core::ids::Fence(0);
    for (standby, url) in standbys.iter().zip(&urls) {
        tokio::task::block_in_place(|| standby.promote());
        let stage = broker_in(home.path(), url, Some(&stage)).await;
        let proof = proof_of(&*insist(&stage, id).await);
        assert!(proof.fence > last, "both are on timeline 2, and a fence is given once");
        last = proof.fence;
        stage.store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_after_a_failover_no_body_is_shown_for_another() {
    let primary = Server::start();
    primary.run_sql("postgres", "CREATE DATABASE work").await;
    let standby = Server::standby_of(&primary);
    let (old, new) = (primary.port(), standby.port());
    let url = format!(
        "postgres://postgres@127.0.0.1:{old},127.0.0.1:{new}/work?target_session_attrs=read-write"
    );
    let first = broker(&url, None).await;
    let second = broker(&url, Some(&first)).await;
    standby.replayed(&primary).await;
    standby.deafen().await;
    // Lost, and in the first broker's cache.
    let lost = first.offered().await;
    let at = first.handoff(lost).await.envelope_pos;
    tokio::task::block_in_place(|| {
        primary.down(Signal::KILL);
        standby.promote();
    });
    // The second broker is the first to notice, and gives the positions away again.
    let mut given = Vec::new();
    while given.iter().all(|(_, position)| *position < at) {
        let sent = second.send(second.offer(crate::support::to("coder"))).await;
        let done = match sent {
            Ok(done) => done,
            Err(tasuki_store::Error::Unavailable | tasuki_store::Error::Unknown) => continue,
            Err(error) => panic!("{error:?}"),
        };
        let id = done.outcome.handoffs[0];
        given.push((id, second.handoff(id).await.envelope_pos));
    }
    for (id, _) in given {
        let needs = tasuki_store::Needs::handoff(id).with_envelopes();
        let sight = loop {
            match first.store.look(needs.clone()).await {
                Ok(sight) => break sight,
                Err(tasuki_store::Error::Unavailable) => {}
                Err(error) => panic!("{error:?}"),
            }
        };
        let handoff = sight.handoff(id).expect("it is there").clone();
        let shown = sight.envelope(&handoff).unwrap();
        assert_eq!(shown.text(), body(&format!("envelope {id}")).text());
    }
}
