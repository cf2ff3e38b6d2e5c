// SPDX-License-Identifier: Apache-2.0
//! A database that goes away in every manner, under load: nothing acknowledged is lost, nothing is
//! done twice, and the brokers go on by themselves.

use futures::future::join_all;
use rustix::process::Signal;
use scratch_postgres::{Server, shared};

use crate::proxy::{CUT_AFTER_COMMIT, CUT_BEFORE_COMMIT, Proxy};
use crate::stage::Stage;
use crate::work::{self, Told};
use crate::{broker, broker_with, options};

const WORKERS: usize = 8;
const TURNS: usize = 25;
const STEPS: usize = WORKERS * TURNS * 3;

/// Lives at two brokers while something happens to their database, after some of the steps.
async fn amid(brokers: [&Stage; 2], told: &Told, trouble: impl AsyncFnOnce()) {
    let workers = (0..WORKERS).map(|n| work::lives(brokers[n % 2].clone(), n, TURNS, told));
    let (_, ()) = tokio::join!(join_all(workers), trouble());
    work::check(brokers[0], told).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_restarts_costs_nothing_but_time() {
    let server = Server::start();
    let url = server.database().await;
    let one = broker(&url, None).await;
    let two = broker(&url, Some(&one)).await;
    let told = Told::default();
    amid([&one, &two], &told, async || {
        for (number, signal) in [Signal::INT, Signal::QUIT].into_iter().enumerate() {
            told.steps(STEPS * (number + 1) / 4).await;
            tokio::task::block_in_place(|| {
                server.down(signal);
                server.up();
            });
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_terminated_are_replaced() {
    let url = shared().database().await;
    let one = broker(&url, None).await;
    let two = broker(&url, Some(&one)).await;
    let told = Told::default();
    let name = url.rsplit('/').next().unwrap();
    let terminate =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    amid([&one, &two], &told, async || {
        for number in 1..=8 {
            told.steps(STEPS * number / 10).await;
            shared().run_sql("postgres", &terminate).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_found_out_about() {
    let url = shared().database().await;
    let proxy = Proxy::to(&url).await;
    let one = broker(&proxy.url, None).await;
    let two = broker(&url, Some(&one)).await;
    let told = Told::default();
    amid([&one, &two], &told, async || {
        for number in 1..=8 {
            told.steps(STEPS * number / 10).await;
            proxy.set(if number % 2 == 0 { CUT_AFTER_COMMIT } else { CUT_BEFORE_COMMIT });
        }
    })
    .await;
    assert!(proxy.cuts() >= 4, "only {} cuts: the test does not test", proxy.cuts());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_breaks_everywhere_at_once_is_got_over() {
    let url = shared().database().await;
    let proxy = Proxy::to(&url).await;
    let one = broker(&proxy.url, None).await;
    let two = broker(&proxy.url, Some(&one)).await;
    let told = Told::default();
    amid([&one, &two], &told, async || {
        for number in 1..=6 {
            told.steps(STEPS * number / 8).await;
            proxy.sever();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_is_too_small_makes_callers_wait_and_no_more() {
    let url = shared().database().await;
    let small = || tasuki_store::PostgresOptions { connections_max: 1, ..options(&url) };
    let one = broker_with(small(), None).await;
    let two = broker_with(small(), Some(&one)).await;
    let told = Told::default();
    amid([&one, &two], &told, async || {
        told.steps(STEPS / 2).await;
        let questions = (0..64).map(|_| {
            one.store.list_tasks(tasuki_store::TaskFilter { max: 10, ..Default::default() })
        });
        assert!(join_all(questions).await.iter().all(Result::is_ok));
    })
    .await;
}

/// A broker that stops in the middle of a transaction holds the log's end; it must not for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_never_ends_is_ended() {
    let url = shared().database().await;
    let stage = broker(&url, None).await;
    let (db, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let begin = "SET idle_in_transaction_session_timeout = '1s'; BEGIN; \
                 SELECT 1 FROM log_head FOR UPDATE";
    db.batch_execute(begin).await.unwrap();
    let told = Told::default();
    work::lives(stage.clone(), 0, 1, &told).await;
    work::check(&stage, &told).await;
    connection.abort();
}
