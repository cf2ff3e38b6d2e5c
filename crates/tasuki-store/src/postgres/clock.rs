// SPDX-License-Identifier: Apache-2.0
//! One clock for many brokers: the database's. Each broker counts on from what the database last
//! said, so that deciding needs no question.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tasuki_core::Timestamp;

use crate::clock::{Clock, SystemClock};

pub struct DatabaseClock {
    inner: Arc<SystemClock>,
}

impl DatabaseClock {
    /// Shows the system's time until the database was asked.
    #[must_use]
    pub fn start() -> Arc<Self> {
        Arc::new(Self { inner: SystemClock::start() })
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn sleep_until(&self, time: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.inner.sleep_until(time)
    }

    fn not_before(&self, time: Timestamp) {
        self.inner.not_before(time);
    }

    fn set_by(&self, authority: Timestamp) {
        self.inner.set(authority);
    }
}
