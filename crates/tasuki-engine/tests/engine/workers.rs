// SPDX-License-Identifier: Apache-2.0
//! A worker that panics: the broker is no longer ready, at once, and says which one it was.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tasuki_core::Timestamp;
use tasuki_engine::{Engine, Failure, Settings};
use tasuki_store::{Clock, ManualClock, Sqlite, SqliteOptions, Store, Sync, Volatile};

use crate::support::{BEGIN, Ids, new_offer, soon, to, wish};

/// How long the sweeper sleeps at most; the others sleep for longer.
const SWEEPER_SLEEPS_MS: u64 = 500;

/// A clock that panics, once told to, when the writer looks at it or when the sweeper is to sleep.
struct Treacherous {
    inner: Arc<ManualClock>,
    for_the_writer: AtomicBool,
    for_the_sweeper: AtomicBool,
}

impl Treacherous {
    fn start() -> Arc<Self> {
        let (for_the_writer, for_the_sweeper) = (AtomicBool::default(), AtomicBool::default());
        Arc::new(Self { inner: ManualClock::at(BEGIN), for_the_writer, for_the_sweeper })
    }
}

impl Clock for Treacherous {
    fn now(&self) -> Timestamp {
        let writer = std::thread::current().name() == Some("tasuki-writer");
        assert!(!(writer && self.for_the_writer.load(Ordering::Acquire)), "by plan");
        self.inner.now()
    }

    fn sleep_until(&self, time: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let sweeper = time.ms_after(self.inner.now()) <= SWEEPER_SLEEPS_MS;
        assert!(!(sweeper && self.for_the_sweeper.load(Ordering::Acquire)), "by plan");
        self.inner.sleep_until(time)
    }

    fn not_before(&self, time: Timestamp) {
        self.inner.not_before(time);
    }
}

async fn fails_by(engine: &Engine, worker: &str) {
    let Failure::Worker { worker: found, how } = soon(engine.failed()).await else {
        panic!("the store did not fail");
    };
    assert_eq!(found, worker);
    assert_eq!(how, "it panicked: by plan");
    let reason = engine.not_ready().expect("it is not ready any more");
    assert!(reason.contains(found), "{reason}");
}

async fn stores(clock: &Arc<Treacherous>, dir: &std::path::Path) -> [Arc<dyn Store>; 2] {
    let options = SqliteOptions { dir: dir.to_owned(), sync: Sync::Full };
    let sqlite = Sqlite::open(options, clock.clone()).await.unwrap();
    [Arc::new(Volatile::new(clock.clone())), Arc::new(sqlite)]
}

#[tokio::test]
async fn a_broker_whose_writer_panicked_is_not_ready_and_says_why() {
    let (clock, dir) = (Treacherous::start(), tempfile::tempdir().unwrap());
    let [_, sqlite] = stores(&clock, dir.path()).await;
    let engine = Engine::start(sqlite, Ids::seeded(1), Settings::default());
    engine.offer(new_offer(to("coder"))).await.unwrap();
    assert_eq!(engine.not_ready(), None);
    clock.for_the_writer.store(true, Ordering::Release);
    engine.offer(new_offer(to("coder"))).await.unwrap_err();
    fails_by(&engine, "writer").await;
}

#[tokio::test]
async fn a_broker_whose_sweeper_panicked_is_not_ready_and_says_why() {
    let (clock, dir) = (Treacherous::start(), tempfile::tempdir().unwrap());
    for store in stores(&clock, dir.path()).await {
        clock.for_the_sweeper.store(false, Ordering::Release);
        let engine = Engine::start(store, Ids::seeded(1), Settings::default());
        assert_eq!(engine.not_ready(), None);
        clock.for_the_sweeper.store(true, Ordering::Release);
        // Now there is something to wait for.
        engine.offer(new_offer(to("coder"))).await.unwrap();
        engine.claim(wish("coder", &[], 0)).await.unwrap();
        fails_by(&engine, "sweeper").await;
    }
}

#[tokio::test]
async fn a_broker_that_is_closed_or_dropped_has_not_failed() {
    let (clock, dir) = (Treacherous::start(), tempfile::tempdir().unwrap());
    for store in stores(&clock, dir.path()).await {
        let engine = Engine::start(store.clone(), Ids::seeded(1), Settings::default());
        engine.offer(new_offer(to("coder"))).await.unwrap();
        engine.close().await;
        assert_eq!(store.workers().failure(), None);
        let workers = store.workers().clone();
        drop((engine, store));
        assert_eq!(workers.failure(), None);
    }
}
