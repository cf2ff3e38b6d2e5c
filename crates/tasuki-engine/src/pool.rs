// SPDX-License-Identifier: Apache-2.0
//! Work that needs the processor and waits for nothing: counting tokens, holding values against
//! schemas. It does not run where requests are waited for, and only so much of it runs at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// How many pieces of work of one tenant may wait for their turn; more are refused.
const WAITING_MAX: usize = 256;

pub(crate) struct Pool {
    places: Arc<Semaphore>,
    /// How many of the places one tenant may have: there is always one for another.
    share: usize,
    tenants: Mutex<HashMap<String, Arc<Line>>>,
    working: Arc<AtomicUsize>,
}

/// What one tenant has in here.
struct Line {
    places: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// A tenant has too much waiting already.
#[derive(Debug)]
pub(crate) struct Busy;

impl Default for Pool {
    /// As many at once as there are processors.
    fn default() -> Self {
        Self::of(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Pool {
    fn of(at_once_max: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(at_once_max)),
            share: at_once_max.saturating_sub(1).max(1),
            tenants: Mutex::default(),
            working: Arc::default(),
        }
    }

    /// How many pieces of work are being done.
    pub(crate) fn working(&self) -> usize {
        self.working.load(Ordering::SeqCst)
    }

    /// Does a piece of work when it is its turn. Meanwhile other requests are served by another
    /// thread; a runtime that has only one has no other requests to serve.
    pub(crate) async fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.places.acquire().await.expect("nobody closes it");
        let _counted = Counted::new(&self.working);
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
            _ => work(),
        }
    }

    /// Does a piece of work for a tenant, on a thread that serves no requests. One tenant never takes
    /// all places, and what it has waiting is bounded. A caller that goes away does not free the place:
    /// the work is, until it ends.
    pub(crate) async fn run_for<T: Send + 'static>(
        &self,
        tenant: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let line = {
            let mut tenants = self.tenants.lock().expect("no holder of this lock panics");
            // Nobody else has one of those that nobody uses.
            tenants.retain(|_, line| Arc::strong_count(line) > 1);
            let made = || {
                let places = Arc::new(Semaphore::new(self.share));
                Arc::new(Line { places, waiting: Arc::default() })
            };
            tenants.entry(tenant.to_owned()).or_insert_with(made).clone()
        };
        if line.waiting.load(Ordering::SeqCst) >= WAITING_MAX {
            return Err(Busy);
        }
        let waits = Counted::new(&line.waiting);
        let share = line.places.clone().acquire_owned().await.expect("nobody closes it");
        let place = self.places.clone().acquire_owned().await.expect("nobody closes it");
        drop(waits);
        let counted = Counted::new(&self.working);
        let done = tokio::task::spawn_blocking(move || {
            let _held = (share, place, counted, line);
            work()
        });
        match done.await {
            Ok(done) => Ok(done),
            // What panics in there panics here: the door answers for it.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// Something that is being done.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(working: &Arc<AtomicUsize>) -> Self {
        working.fetch_add(1, Ordering::SeqCst);
        Self(working.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use futures::FutureExt;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_are_served_while_something_is_worked_out() {
        let pool = Pool::of(1);
        let (tell, told) = mpsc::channel();
        let other = tokio::spawn(async move { tell.send("served").unwrap() });
        // On the one thread that serves, this would wait for ever.
        assert_eq!(pool.run(move || told.recv().unwrap()).await, "served");
        other.await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn only_so_much_is_worked_out_at_once() {
        let pool = Arc::new(Pool::of(2));
        let at_once = Arc::new(AtomicUsize::new(0));
        let many: Vec<_> = (0..16)
            .map(|_| {
                let (pool, at_once) = (pool.clone(), at_once.clone());
                tokio::spawn(async move {
                    let work = || {
                        let others = at_once.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        at_once.fetch_sub(1, Ordering::SeqCst);
                        others
                    };
                    pool.run(work).await
                })
            })
            .collect();
        for one in many {
            assert!(one.await.unwrap() < 2);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_tenant_leaves_a_place_for_another_and_waits_only_so_much() {
        let pool = Pool::of(2);
        let (go, gone) = mpsc::channel::<()>();
        let gone = Arc::new(Mutex::new(gone));
        let mut flood: Vec<_> = (0..WAITING_MAX + 10)
            .map(|_| {
                let gone = gone.clone();
                let work = move || gone.lock().unwrap().recv().is_err();
                Box::pin(pool.run_for("flood", work))
            })
            .collect();
        // One is being done, as many wait as may, and the rest is refused.
        let refused = flood.iter_mut().filter_map(FutureExt::now_or_never).count();
        assert_eq!(refused, 9);
        assert_eq!(pool.run_for("quiet", || 7).await.unwrap(), 7);
        drop((go, flood));
        assert_eq!(pool.run_for("flood", || 7).await.unwrap(), 7);
    }
}
