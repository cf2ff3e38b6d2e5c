// SPDX-License-Identifier: Apache-2.0
//! Several brokers on one database.

use std::collections::BTreeSet;

use futures::future::join_all;
use tasuki_core::commands::{self, Command};
use tasuki_store::PostgresOptions;

use crate::stage::{Stage, code, proof_of};
use crate::support::{complete, to, to_any};
use crate::work::{self, Told};
use crate::{broker, broker_with, open, options};

const BROKERS: usize = 3;

async fn brokers() -> Vec<Stage> {
    let url = scratch_postgres::shared().database().await;
    let mut brokers = vec![broker(&url, None).await];
    for _ in 1..BROKERS {
        brokers.push(broker(&url, brokers.first()).await);
    }
    brokers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brokers_that_start_at_once_on_an_empty_database_all_come_up() {
    let url = scratch_postgres::shared().database().await;
    let opened = join_all((0..6).map(|_| open(&url))).await;
    assert!(opened.iter().all(Result::is_ok), "{:?}", opened.iter().find_map(|o| o.as_ref().err()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_claimers_at_every_broker_each_handoff_has_one_winner() {
    let brokers = brokers().await;
    let mut offered = BTreeSet::new();
    for number in 0..60 {
        offered.insert(brokers[number % BROKERS].offer_to(to_any("review"), |_| {}).await);
    }
    let claimers = (0..24).map(|number| {
        let stage = brokers[number % BROKERS].clone();
        tokio::spawn(async move {
            let mut won = Vec::new();
            loop {
                let some = stage.claim_next(&format!("agent-{number}"), 2).await;
                if some.is_empty() {
                    return won;
                }
                won.extend(some);
            }
        })
    });
    let won: Vec<_> = join_all(claimers).await.into_iter().flat_map(Result::unwrap).collect();
    let distinct: BTreeSet<_> = won.iter().copied().collect();
    assert_eq!((won.len(), distinct), (60, offered), "each once, and none left over");
    brokers[0].verified().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_claimers_of_one_handoff_at_different_brokers_one_wins() {
    let brokers = brokers().await;
    for _ in 0..10 {
        let id = brokers[0].offer_to(to_any("review"), |_| {}).await;
        let racers = (0..9).map(|number| {
            let stage = brokers[number % BROKERS].clone();
            async move { stage.try_claim(id, &format!("agent-{number}")).await }
        });
        let (won, lost): (Vec<_>, Vec<_>) =
            join_all(racers).await.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1);
        assert!(lost.into_iter().all(|result| code(result) == "already_claimed"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_broker_acknowledged_every_other_knows_at_once() {
    let brokers = brokers().await;
    let id = brokers[0].offered().await;
    assert_eq!(brokers[1].state(id).await, "pending");
    let claim = brokers[1].claim_next("coder", 1).await;
    assert_eq!(claim, [id]);
    let proof = proof_of(&*brokers[2].handoff(id).await);
    brokers[2].act(id, proof, complete("done")).await.unwrap();
    assert_eq!(brokers[0].state(id).await, "completed");
    brokers[0].verified().await;
}

/// Whether a subscriber at one broker hears what another commits, in order and once.
async fn hears(there: PostgresOptions, here: PostgresOptions) {
    let writer = broker_with(there, None).await;
    let listener = broker_with(here, Some(&writer)).await;
    let mut news = listener.store.subscribe();
    for _ in 0..20 {
        let id = writer.offered().await;
        let proof = writer.claim(id, "coder").await;
        listener.act(id, proof, complete("done")).await.unwrap();
    }
    let (mut heard, mut ready) = (Vec::new(), 0);
    while heard.len() < 60 {
        let committed = news.recv().await.unwrap();
        heard.extend(committed.changes.iter().map(|change| change.sealed.position.0));
        ready += committed.ready.iter().filter(|target| **target == to("coder")).count();
    }
    assert!(heard.iter().copied().eq(1..=60), "{heard:?}");
    assert_eq!(ready, 20, "who waits for work is told of each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_hears_what_other_brokers_commit() {
    let url = scratch_postgres::shared().database().await;
    hears(options(&url), options(&url)).await;
}

/// A pooler of transactions lets no notification through and keeps no prepared statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_pooler_polling_finds_what_nobody_announced() {
    let url = scratch_postgres::shared().database().await;
    let pooled = |url: &str| PostgresOptions { pooler: true, ..options(url) };
    hears(pooled(&url), pooled(&url)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweepers_at_every_broker_do_what_is_due_once() {
    let brokers = brokers().await;
    let mut ids = Vec::new();
    for _ in 0..30 {
        ids.push(brokers[0].offered().await);
    }
    assert_eq!(brokers[1].claim_next("coder", 30).await.len(), 30);
    brokers[0].clock.advance_ms(60_000);
    let sweeps =
        brokers.iter().map(|stage| stage.run(Command::of_broker(commands::Sweep::now(100))));
    let swept = join_all(sweeps).await.into_iter().map(|done| done.unwrap().outcome.handoffs.len());
    assert_eq!(swept.sum::<usize>(), 30);
    for id in ids {
        assert_eq!(brokers[2].story(id).await, ["transfer_offered", "claimed", "lease_lost"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_lives_at_three_brokers_lose_nothing_and_count_right() {
    let brokers = brokers().await;
    let told = Told::default();
    let workers = (0..12).map(|n| work::lives(brokers[n % BROKERS].clone(), n, 10, &told));
    join_all(workers).await;
    work::check(&brokers[1], &told).await;
    brokers[0].offered().await;
    let stats = brokers[0].store.stats();
    assert_eq!((stats.live_handoffs, stats.waiting_handoffs), (1, 1));
}
