// SPDX-License-Identifier: Apache-2.0
//! One clock for many brokers: the database's, or the log's where that is ahead, counted on by each
//! broker from what it last learned, so that deciding needs no question. The database's clock may be
//! set back by hours; what is shown goes on all the same, because a time that stands still would keep
//! every lease for as long.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tasuki_core::Timestamp;
use tokio::sync::watch;

use crate::clock::{Clock, SystemClock};

/// How much slower time passes while more is shown than the database shows: one part in so many. It
/// takes back what brokers count too fast, and a lease lasts hardly longer for it.
const SLOWER: i64 = 100;

pub struct DatabaseClock {
    /// Counts on between two readings.
    counter: Arc<dyn Clock>,
    /// By how much more is shown than the counter shows. Who sleeps hears of changes.
    ahead_ms: watch::Sender<i64>,
    /// What the counter showed when the database was last asked.
    asked_at: Mutex<Option<Timestamp>>,
}

impl DatabaseClock {
    /// Shows the system's time until the database was asked.
    #[must_use]
    pub fn start() -> Arc<Self> {
        Self::counting_by(SystemClock::start())
    }

    /// Counts on by another clock than the system's.
    #[must_use]
    pub fn counting_by(counter: Arc<dyn Clock>) -> Arc<Self> {
        let (ahead_ms, asked_at) = (watch::Sender::new(0), Mutex::new(None));
        Arc::new(Self { counter, ahead_ms, asked_at })
    }

    fn shown(&self, ahead_ms: i64) -> Timestamp {
        Timestamp(self.counter.now().0.saturating_add(ahead_ms))
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        self.shown(*self.ahead_ms.borrow())
    }

    fn sleep_until(&self, time: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut changes = self.ahead_ms.subscribe();
        Box::pin(async move {
            loop {
                let ahead_ms = *changes.borrow_and_update();
                if self.shown(ahead_ms) >= time {
                    return;
                }
                let by_counter = Timestamp(time.0.saturating_sub(ahead_ms));
                tokio::select! {
                    () = self.counter.sleep_until(by_counter) => {}
                    // The sender lives in `self`, which outlives this wait.
                    _ = changes.changed() => {}
                }
            }
        })
    }

    fn not_before(&self, time: Timestamp) {
        let at_least = time.0.saturating_sub(self.counter.now().0);
        self.ahead_ms.send_if_modified(|ahead| {
            let more = at_least > *ahead;
            *ahead = at_least.max(*ahead);
            more
        });
    }

    fn set_by(&self, authority: Timestamp) {
        let counted = self.counter.now();
        let before = self.asked_at.lock().expect("no holder of this lock panics").replace(counted);
        let wanted = authority.0.saturating_sub(counted.0);
        self.ahead_ms.send_if_modified(|ahead| {
            let set = match before {
                // Nothing was decided by what was shown so far.
                None => wanted,
                Some(before) => {
                    let back = counted.0.saturating_sub(before.0) / SLOWER;
                    wanted.max(ahead.saturating_sub(back))
                }
            };
            std::mem::replace(ahead, set) != set
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::clock::ManualClock;

    const NOON: Timestamp = Timestamp(1_800_000_000_000);
    const SECOND: u64 = 1000;
    const HOUR: u64 = 60 * 60 * SECOND;

    fn back(time: Timestamp, ms: u64) -> Timestamp {
        Timestamp(time.0 - i64::try_from(ms).unwrap())
    }

    /// A broker's clock that was set by the database's at noon, and what counts it on.
    fn at_noon() -> (Arc<ManualClock>, Arc<DatabaseClock>) {
        let counter = ManualClock::at(NOON.plus_ms(7 * HOUR));
        let clock = DatabaseClock::counting_by(counter.clone());
        clock.set_by(NOON);
        assert_eq!(clock.now(), NOON, "the system's own time does not count");
        (counter, clock)
    }

    #[test]
    fn time_goes_on_after_the_database_was_set_back() {
        let (counter, clock) = at_noon();
        clock.not_before(NOON);
        for second in 1..=30 {
            counter.advance_ms(SECOND);
            clock.set_by(back(NOON, HOUR).plus_ms(second * SECOND));
        }
        assert!(clock.now() >= NOON.plus_ms(29 * SECOND), "a lease of half a minute is over");
    }

    #[test]
    fn what_is_shown_comes_back_to_the_database_in_small_steps() {
        let (counter, clock) = at_noon();
        clock.not_before(NOON.plus_ms(SECOND));
        let mut database = NOON;
        for _ in 0..200 {
            let shown = clock.now();
            counter.advance_ms(SECOND);
            database = database.plus_ms(SECOND);
            clock.set_by(database);
            assert!(clock.now() > shown);
        }
        assert_eq!(clock.now(), database);
    }

    #[tokio::test]
    async fn a_sleeper_hears_that_the_database_was_set_forward() {
        let (_counter, clock) = at_noon();
        let mut sleeping = clock.sleep_until(NOON.plus_ms(HOUR));
        assert!((&mut sleeping).now_or_never().is_none());
        clock.set_by(NOON.plus_ms(2 * HOUR));
        assert!((&mut sleeping).now_or_never().is_some(), "it does not sleep by the old reading");
    }

    #[tokio::test]
    async fn a_sleeper_hears_that_the_log_is_ahead() {
        let (counter, clock) = at_noon();
        let mut sleeping = clock.sleep_until(NOON.plus_ms(HOUR));
        assert!((&mut sleeping).now_or_never().is_none());
        clock.not_before(NOON.plus_ms(HOUR - SECOND));
        assert!((&mut sleeping).now_or_never().is_none());
        counter.advance_ms(SECOND);
        assert!((&mut sleeping).now_or_never().is_some());
    }
}
