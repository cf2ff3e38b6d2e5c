// SPDX-License-Identifier: Apache-2.0
//! Watches what works in the background. A worker that is gone leaves a broker that still answers
//! and no longer does what it promised, so its end, unless it was asked for, is a failure of the
//! broker as a whole: it is no longer ready, and ends. Nothing else starts a thread or a task that
//! is to last.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Why a broker cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// What was to be written down may be there or not, and nothing after it could be trusted.
    #[error("the store failed: {0}")]
    Store(String),
    #[error("the {worker} ended although nothing asked it to: {how}")]
    Worker { worker: &'static str, how: String },
}

/// When a worker may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Not before the store is closed.
    Closed,
    /// When it is done, or what it works for is gone. It must not panic.
    Done,
}

/// The workers of one store and of everything that works on it.
#[derive(Clone, Default)]
pub struct Workers {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    failure: watch::Sender<Option<Failure>>,
    closing: AtomicBool,
}

impl Workers {
    /// Starts a task that is watched. Aborting it is asking it to end.
    pub fn spawn(
        &self,
        worker: &'static str,
        until: Until,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let watching = self.clone();
        let work = faults::in_task(worker, work);
        tokio::spawn(async move {
            let end = AssertUnwindSafe(work).catch_unwind().await;
            watching.ended(worker, until, end);
        })
    }

    /// Starts a thread that is watched.
    pub fn thread(&self, worker: &'static str, until: Until, work: impl FnOnce() + Send + 'static) {
        let watching = self.clone();
        std::thread::Builder::new()
            .name(format!("tasuki-{worker}"))
            .spawn(move || {
                let end = catch_unwind(AssertUnwindSafe(work));
                watching.ended(worker, until, end);
            })
            .expect("the system has room for one more thread");
    }

    /// Workers may end from now on.
    pub fn may_end(&self) {
        self.shared.closing.store(true, Ordering::Release);
    }

    fn ended(&self, worker: &'static str, until: Until, end: Result<(), Box<dyn Any + Send>>) {
        let how = match end {
            Err(panic) => format!("it panicked: {}", said(&*panic)),
            Ok(()) if until == Until::Done || self.shared.closing.load(Ordering::Acquire) => return,
            // It said why before it ended.
            Ok(()) if self.failure().is_some() => return,
            Ok(()) => "it returned".to_owned(),
        };
        tracing::error!(worker, %how, "a worker ended although nothing asked it to");
        self.fail(Failure::Worker { worker, how });
    }

    /// Makes it known that the broker cannot go on. The first reason stays: others follow from it.
    pub fn fail(&self, failure: Failure) {
        self.shared.failure.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(failure);
            first
        });
    }

    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.shared.failure.borrow().clone()
    }

    /// Resolves once there is a reason why the broker cannot go on.
    pub async fn failed(&self) -> Failure {
        let mut failure = self.shared.failure.subscribe();
        let known = failure.wait_for(Option::is_some).await.ok().and_then(|known| known.clone());
        match known {
            Some(known) => known,
            // The sender lives in `self`, so this is not reached.
            None => std::future::pending().await,
        }
    }
}

/// Panics by plan, so that a test of the whole program can see what becomes of it. There is none of
/// this in a build that is shipped.
#[cfg(debug_assertions)]
pub(crate) mod faults {
    use std::future::Future;
    use std::pin::pin;
    use std::task::Poll;

    fn is_planned(worker: &str) -> bool {
        std::env::var("TASUKI_TEST_PANIC").is_ok_and(|planned| planned == worker)
    }

    /// A task panics when it is woken for the first time.
    pub(super) async fn in_task(worker: &'static str, work: impl Future<Output = ()>) {
        let planned = is_planned(worker);
        let mut work = pin!(work);
        let mut began = false;
        std::future::poll_fn(|context| {
            assert!(!(planned && began), "by plan");
            began = true;
            match work.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
    }

    /// A thread panics where it asks.
    pub(crate) fn in_thread(worker: &str) {
        assert!(!is_planned(worker), "by plan");
    }
}

#[cfg(not(debug_assertions))]
pub(crate) mod faults {
    pub(super) fn in_task<W>(_: &'static str, work: W) -> W {
        work
    }

    pub(crate) fn in_thread(_: &str) {}
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(failure: &Failure) -> (&'static str, &str) {
        match failure {
            Failure::Worker { worker, how } => (worker, how),
            Failure::Store(_) => panic!("no store is here"),
        }
    }

    #[tokio::test]
    async fn a_panic_of_a_task_or_a_thread_is_a_failure_that_names_the_worker() {
        for until in [Until::Closed, Until::Done] {
            let workers = Workers::default();
            workers.spawn("sweeper", until, async { panic!("by plan") });
            assert_eq!(how(&workers.failed().await), ("sweeper", "it panicked: by plan"));
            let workers = Workers::default();
            workers.thread("writer", until, || panic!("by plan {}", 2));
            assert_eq!(how(&workers.failed().await), ("writer", "it panicked: by plan 2"));
        }
    }

    #[tokio::test]
    async fn a_worker_that_returns_before_its_time_is_a_failure_and_the_first_one_counts() {
        let workers = Workers::default();
        assert_eq!(workers.failure(), None);
        workers.spawn("relay", Until::Closed, async {}).await.unwrap();
        workers.spawn("follower", Until::Closed, async {}).await.unwrap();
        assert_eq!(how(&workers.failed().await), ("relay", "it returned"));
    }

    #[tokio::test]
    async fn an_end_that_was_asked_for_is_none() {
        let workers = Workers::default();
        workers.spawn("helper", Until::Done, async {}).await.unwrap();
        let aborted = workers.spawn("relay", Until::Closed, std::future::pending());
        aborted.abort();
        assert!(aborted.await.is_err());
        workers.may_end();
        workers.spawn("relay", Until::Closed, async {}).await.unwrap();
        assert_eq!(workers.failure(), None);
    }
}
