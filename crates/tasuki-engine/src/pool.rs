// SPDX-License-Identifier: Apache-2.0
//! Work that needs the processor and waits for nothing: counting tokens, holding values against
//! schemas. It does not run where requests are waited for, and only so much of it runs at once.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

pub(crate) struct Pool(Semaphore);

impl Default for Pool {
    /// As many at once as there are processors.
    fn default() -> Self {
        Self::of(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Pool {
    fn of(at_once_max: usize) -> Self {
        Self(Semaphore::new(at_once_max))
    }

    /// Does a piece of work when it is its turn. Meanwhile other requests are served by another
    /// thread; a runtime that has only one has no other requests to serve.
    pub(crate) async fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.0.acquire().await.expect("nobody closes it");
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
            _ => work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

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
}
