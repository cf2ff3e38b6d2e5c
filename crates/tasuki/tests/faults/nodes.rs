// SPDX-License-Identifier: Apache-2.0
//! Two brokers on one PostgreSQL, as users run them: one is killed, the other goes on.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use crate::broker::{BINARY, Broker};
use crate::kill::{Told, check, work};

const ROUNDS: usize = 4;
const WORKERS: usize = 8;

fn start(url: &str, dir: &Path) -> Broker {
    Broker::start_with(dir, |_| Command::new(BINARY), &["--store", url])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_loses_nothing_and_the_others_go_on() {
    let url = scratch_postgres::shared().database().await;
    let home = tempfile::tempdir().unwrap();
    let stays = start(&url, &home.path().join("stays"));
    let told = Arc::new(Told::default());
    for round in 0..ROUNDS {
        let mut goes = start(&url, &home.path().join("goes"));
        told.over.store(false, Ordering::SeqCst);
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let broker = if number % 2 == 0 { &goes } else { &stays };
                tokio::spawn(work(broker.client(), told.clone(), round, number))
            })
            .collect();
        told.steps(60).await;
        goes.kill();
        // The one that is left is not disturbed.
        told.steps(60).await;
        told.over.store(true, Ordering::SeqCst);
        for worker in workers {
            worker.await.unwrap();
        }
        check(&stays.client(), &told).await;
    }
    let completed = told.completions();
    assert!(completed > 10 * ROUNDS, "only {completed} completions: the test does not test");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_offered_at_one_broker_wakes_who_waits_at_another() {
    let url = scratch_postgres::shared().database().await;
    let home = tempfile::tempdir().unwrap();
    let here = start(&url, &home.path().join("here"));
    let there = start(&url, &home.path().join("there"));
    let (here, there) = (here.client(), there.client());
    let waits = {
        let here = here.clone();
        tokio::spawn(async move { here.claim("worker", "r-1", 30_000).await.unwrap().1 })
    };
    // A broker that has the waiting claim says so; only then is there something to wake.
    let (_, offered) = there.offer("k-1", "wake up").await.unwrap();
    let claims = waits.await.unwrap();
    let claim = &claims["claims"][0];
    assert_eq!(claim["handoff_id"], offered["handoff_id"]);
    let (status, answer) = there.complete(claim, "done").await.unwrap();
    assert_eq!(status, 200, "{answer}");
    let id = offered["handoff_id"].as_str().unwrap();
    let wish = json!({ "handoffs": [id], "timeout_ms": 30_000 });
    let (_, waited) = here.post("/v1/wait", &wish).await.unwrap();
    assert_eq!(waited["done"], true, "{waited}");
    assert_eq!(waited["handoffs"][0]["output"]["payload"]["text"], "done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_whose_database_is_away_says_so_and_comes_back_by_itself() {
    let server = scratch_postgres::Server::start();
    let url = server.database().await;
    let home = tempfile::tempdir().unwrap();
    let broker = start(&url, home.path());
    let client = broker.client();
    let (status, _) = client.offer("k-1", "before").await.unwrap();
    assert_eq!(status, 201);
    tokio::task::block_in_place(|| server.down(rustix::process::Signal::INT));
    let (status, problem) = client.offer("k-2", "during").await.unwrap();
    assert_eq!((status, problem["code"].as_str()), (503, Some("store_unavailable")), "{problem}");
    let (status, health) = client.get("/readyz").await.unwrap();
    assert_eq!(status, 503, "{health}");
    tokio::task::block_in_place(|| server.up());
    let (status, answer) = client.offer("k-2", "after").await.unwrap();
    assert_eq!(status, 201, "{answer}");
    let (status, health) = client.get("/readyz").await.unwrap();
    assert_eq!(status, 200, "{health}");
}
