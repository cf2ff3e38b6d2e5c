// SPDX-License-Identifier: Apache-2.0
//! Workers that panic, and a database whose clock is behind the log.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scratch_postgres::shared;
use tasuki_core::commands::RenewAll;
use tasuki_core::{Command, Terms, Timestamp};
use tasuki_store::postgres::DatabaseClock;
use tasuki_store::{Clock, Failure, ManualClock, Postgres, Store};

use crate::stage::{BEGIN, Stage};
use crate::support::to;
use crate::{broker, options};

/// A clock that panics, once told to, when it is read or when it is set.
struct Treacherous {
    inner: Arc<ManualClock>,
    when_read: AtomicBool,
    when_set: AtomicBool,
}

impl Clock for Treacherous {
    fn now(&self) -> Timestamp {
        assert!(!self.when_read.load(Ordering::Acquire), "by plan");
        self.inner.now()
    }

    fn sleep_until(&self, time: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.inner.sleep_until(time)
    }

    fn not_before(&self, time: Timestamp) {
        self.inner.not_before(time);
    }

    fn set_by(&self, _authority: Timestamp) {
        assert!(!self.when_set.load(Ordering::Acquire), "by plan");
    }
}

/// A safety net only: nothing here takes that long.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.expect("it does not take that long")
}

async fn treacherous() -> (Arc<Treacherous>, Stage) {
    let url = shared().database().await;
    let stage = broker(&url, None).await;
    let (when_read, when_set) = (AtomicBool::default(), AtomicBool::default());
    let clock = Arc::new(Treacherous { inner: ManualClock::at(BEGIN), when_read, when_set });
    let store = Arc::new(Postgres::open(options(&url), clock.clone()).await.unwrap());
    (clock, Stage { store, ..stage })
}

async fn fails_by(store: &dyn Store, worker: &str) {
    let Failure::Worker { worker: found, how } = soon(store.workers().failed()).await else {
        panic!("the store did not fail");
    };
    assert_eq!((found, &*how), (worker, "it panicked: by plan"));
    assert!(store.failure().is_some_and(|reason| reason.contains(worker)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_that_panics_is_a_failure_of_the_broker() {
    let (clock, stage) = treacherous().await;
    stage.offered().await;
    assert_eq!(stage.store.failure(), None);
    let offer = stage.offer(to("coder"));
    clock.when_read.store(true, Ordering::Release);
    stage.send(offer).await.unwrap_err();
    fails_by(&*stage.store, "lane").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upkeep_that_panics_is_a_failure_of_the_broker() {
    let (clock, stage) = treacherous().await;
    clock.when_set.store(true, Ordering::Release);
    fails_by(&*stage.store, "upkeep").await;
}

/// As after the database's clock was set back by an hour: the log is ahead of it by as much.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_runs_out_although_the_databases_clock_is_an_hour_behind_the_log() {
    let url = shared().database().await;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = Timestamp(i64::try_from(since_1970.as_millis()).unwrap());
    let early = broker(&url, None).await;
    let ahead = ManualClock::at(now.plus_ms(60 * 60 * 1000));
    let store = Arc::new(Postgres::open(options(&url), ahead).await.unwrap());
    let ahead = Stage { store, ..early };
    ahead.offered().await;
    ahead.store.close().await;
    let clock = DatabaseClock::start();
    let store = Arc::new(Postgres::open(options(&url), clock).await.unwrap());
    let stage = Stage { store, ..ahead };
    let terms = Terms { lease_ms: 1500, ..Terms::default() };
    let id = stage.offer_to(to("coder"), |offer| offer.terms = terms).await;
    stage.claim(id, "coder").await;
    soon(async {
        while stage.state(id).await != "pending" {
            stage.sweep().await;
        }
    })
    .await;
}

const MINUTE: u64 = 60_000;

/// A broker with a claim on its database, and what the broker was told last.
async fn claimed() -> (String, Stage, tasuki_core::HandoffId) {
    let url = shared().database().await;
    let stage = broker(&url, None).await;
    let id = stage.offered().await;
    stage.claim(id, "coder").await;
    stage.store.looked(stage.now()).await.unwrap();
    (url, stage, id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn brokers_that_were_all_silent_give_every_holder_a_full_lease() {
    let (_, stage, id) = claimed().await;
    let since = stage.now();
    stage.clock.stop_for_ms(MINUTE);
    stage.run(Command::of_broker(RenewAll { since })).await.unwrap();
    stage.sweep().await;
    assert_eq!(stage.state(id).await, "claimed");
    stage.wait_and_sweep(MINUTE).await;
    assert_eq!(stage.state(id).await, "pending", "the next silence is the holder's");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_broker_changes_nothing_where_another_one_was_there() {
    let (url, stage, id) = claimed().await;
    let since = stage.now();
    let other = broker(&url, Some(&stage)).await;
    stage.clock.stop_for_ms(MINUTE);
    other.store.looked(stage.now()).await.unwrap();
    stage.run(Command::of_broker(RenewAll { since })).await.unwrap();
    stage.sweep().await;
    assert_eq!(stage.state(id).await, "pending", "its holder could have been heard there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_during_which_no_broker_was_there_gives_every_holder_a_full_lease() {
    let (url, stage, id) = claimed().await;
    stage.store.close().await;
    stage.clock.stop_for_ms(MINUTE);
    let stage = broker(&url, Some(&stage)).await;
    stage.sweep().await;
    assert_eq!(stage.state(id).await, "claimed");
}
