// SPDX-License-Identifier: Apache-2.0
//! Time enters here and nowhere else: the lints of this crate and of the engine forbid to ask for it
//! elsewhere. [`Clock`] is what decides. [`Stopwatch`], [`Patience`], [`pause`] and [`in_time`] go by
//! the time that really passes: how long something took, and how long to wait for a database that
//! may be gone. Nothing is decided by them but to give up waiting.
#![expect(clippy::disallowed_methods, reason = "this is where time enters")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tasuki_core::Timestamp;
use tasuki_core::terms::SILENCE_MS;
use tokio::sync::watch;

/// The longest single sleep; a longer wait is made of several.
const SLEEP_MS_MAX: u64 = 60 * 60 * 1000;

pub trait Clock: Send + std::marker::Sync + 'static {
    fn now(&self) -> Timestamp;
    /// Waits until the clock shows this time.
    fn sleep_until(&self, time: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Waits for so long by this clock.
    fn sleep_ms(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.sleep_until(self.now().plus_ms(ms))
    }
    /// Makes sure that the clock never shows less than a time that was already written down.
    fn not_before(&self, time: Timestamp);
    /// Whether more time passed between two looks at this clock than the process lived through: it
    /// was stopped, or what it goes by made a step. Whoever asks looks much more often.
    fn was_silent(&self, since: Timestamp, now: Timestamp) -> bool {
        now.ms_after(since) >= SILENCE_MS
    }
    /// Sets the clock by one that many brokers share. Where that one shows less, time goes on all
    /// the same. A clock that is its own authority stays.
    fn set_by(&self, _authority: Timestamp) {}
}

/// The wall clock as it was at the start, moved on by the monotonic clock: a jump of the wall
/// clock changes nothing until the next start.
pub struct SystemClock {
    started: Instant,
    wall_ms_at_start: AtomicI64,
}

impl SystemClock {
    #[must_use]
    pub fn start() -> Arc<Self> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall_ms = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
        Arc::new(Self { started: Instant::now(), wall_ms_at_start: AtomicI64::new(wall_ms) })
    }

    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall_ms_at_start.load(Ordering::Relaxed).saturating_add(self.elapsed_ms()))
    }

    fn sleep_until(&self, time: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let left_ms = time.ms_after(self.now());
                if left_ms == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left_ms.min(SLEEP_MS_MAX))).await;
            }
        })
    }

    fn not_before(&self, time: Timestamp) {
        let at_least = time.0.saturating_sub(self.elapsed_ms());
        self.wall_ms_at_start.fetch_max(at_least, Ordering::Relaxed);
    }
}

/// Measures how long something took. It is told to people and decides nothing, so it is no part of
/// the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Microseconds since it was started.
    pub(crate) fn us(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// For how long something outside is tried again before it counts as gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience(Instant);

impl Patience {
    pub(crate) fn of(span: Duration) -> Self {
        Self(Instant::now() + span)
    }

    /// Whether it is at its end after one more pause.
    pub(crate) fn ends_within(self, pause: Duration) -> bool {
        Instant::now() + pause > self.0
    }
}

/// Leaves something outside alone for a moment.
pub(crate) async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

/// What is answered within a time.
pub(crate) async fn in_time<T>(span: Duration, asked: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(span, asked).await.ok()
}

/// A clock that stands still until a test moves it.
pub struct ManualClock {
    time: watch::Sender<i64>,
    /// When the process was last stopped and went on.
    went_on: AtomicI64,
}

impl ManualClock {
    #[must_use]
    pub fn at(time: Timestamp) -> Arc<Self> {
        Arc::new(Self { time: watch::Sender::new(time.0), went_on: AtomicI64::new(i64::MIN) })
    }

    /// Lets time pass in which nothing here runs.
    pub fn stop_for_ms(&self, ms: u64) {
        self.time.send_modify(|time| {
            *time = Timestamp(*time).plus_ms(ms).0;
            self.went_on.store(*time, Ordering::Release);
        });
    }

    pub fn advance_ms(&self, ms: u64) {
        self.time.send_modify(|time| *time = Timestamp(*time).plus_ms(ms).0);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(*self.time.borrow())
    }

    fn sleep_until(&self, time: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut shown = self.time.subscribe();
        Box::pin(async move {
            // The sender lives in `self`, which outlives this wait.
            let _ = shown.wait_for(|now| *now >= time.0).await;
        })
    }

    /// A story moves time by as much as it likes, so only what it calls a stop is one.
    fn was_silent(&self, since: Timestamp, now: Timestamp) -> bool {
        (since.0 + 1..=now.0).contains(&self.went_on.load(Ordering::Acquire))
    }

    fn not_before(&self, time: Timestamp) {
        self.time.send_modify(|now| *now = (*now).max(time.0));
    }
}
