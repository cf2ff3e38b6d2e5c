// SPDX-License-Identifier: Apache-2.0
//! Spans on their way out. They wait in a buffer that has an end, so whoever receives them can be as slow
//! as it likes: what does not fit is counted and dropped. Every broker on a store comes to the same
//! spans, and one of them sends; the others keep theirs until they would have heard that it is gone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tasuki_core::Timestamp;
use tasuki_core::meter::families::{DROPS, Family};
use tasuki_core::meter::{Sample, Value};
use tasuki_core::trace::Span;
use tokio::sync::Notify;

use crate::engine::Engine;

/// How many spans wait at most, and how many are sent at once.
pub const SPANS_MAX: usize = 8192;
pub const SPANS_SENT_MAX: usize = 512;
/// How long spans are gathered before they are sent.
const GATHER_MS: u64 = 1_000;
/// For how long one broker sends, from when it said so last, and how often it says so.
const LEAD_MS: u64 = 15_000;
const RENEW_MS: u64 = 5_000;
/// How long the others keep what it should have sent.
const KEEP_MS: u64 = 2 * LEAD_MS;
/// How often the same spans are tried, and how long they rest in between: twice as long each time.
const TRIES_MAX: u32 = 6;
const REST_MS: u64 = 1_000;
const REST_MS_MAX: u64 = 30_000;
/// How long the last ones may take when the broker goes away.
const LAST_MS_MAX: u64 = 2_000;
/// How often the log tells of spans that were dropped.
const TELL_EVERY_MS: u64 = 60_000;
/// What is saved of who sends.
const SENDER: &str = "traces sender";

/// Takes spans to whoever wants them.
#[async_trait]
pub trait SpanExporter: Send + Sync + 'static {
    /// How many of them the receiver did not want.
    async fn export(&self, spans: &[Span]) -> Result<u64, NotExported>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotExported {
    /// It may work another time.
    Later { problem: String, after_ms: Option<u64> },
    /// The receiver will never take these.
    Never { problem: String },
}

/// Why a span was dropped, in the order of [`DROPS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The buffer was full.
    Full,
    /// The receiver could not be reached, however often it was tried.
    NotSent,
    /// The receiver did not want it.
    Refused,
    /// Too many tasks were under way to follow this one.
    NotFollowed,
}

#[derive(Default)]
pub(crate) struct Spans {
    held: Mutex<VecDeque<(Timestamp, Span)>>,
    came: Notify,
    /// Whether this broker sends.
    leads: AtomicBool,
    sent: AtomicU64,
    dropped: [AtomicU64; DROPS.len()],
    told_at: Mutex<Option<Timestamp>>,
}

impl Spans {
    fn held<T>(&self, look: impl FnOnce(&mut VecDeque<(Timestamp, Span)>) -> T) -> T {
        look(&mut self.held.lock().expect("no holder of this lock panics"))
    }

    /// Takes spans in; those that came first stay.
    pub(crate) fn push(&self, spans: Vec<Span>, now: Timestamp) {
        if spans.is_empty() {
            return;
        }
        let beyond = self.held(|held| {
            let room = SPANS_MAX.saturating_sub(held.len());
            let beyond = spans.len().saturating_sub(room);
            held.extend(spans.into_iter().take(room).map(|span| (now, span)));
            beyond
        });
        self.drop_some(Dropped::Full, beyond as u64, now);
        self.came.notify_one();
    }

    /// Whether everything that this broker had to send is sent.
    pub(crate) fn is_done(&self) -> bool {
        self.leads.load(Ordering::Acquire) && self.held(|held| held.is_empty())
    }

    pub(crate) fn drop_some(&self, why: Dropped, count: u64, now: Timestamp) {
        if count == 0 {
            return;
        }
        self.dropped[why as usize].fetch_add(count, Ordering::Relaxed);
        let mut told_at = self.told_at.lock().expect("no holder of this lock panics");
        if told_at.is_none_or(|at| at.plus_ms(TELL_EVERY_MS) <= now) {
            *told_at = Some(now);
            let reason = DROPS[why as usize];
            tracing::warn!(count, reason, "spans were dropped; tasuki_spans_dropped_total counts");
        }
    }

    /// What was sent and what was not, since the broker began.
    pub(crate) fn samples(&self, broker: &str) -> Vec<Sample> {
        let sample = |family, own: Option<(&'static str, String)>, counter: &AtomicU64| {
            let labels = [("broker", broker.to_owned())].into_iter().chain(own).collect();
            Sample { family, labels, value: Value::Whole(counter.load(Ordering::Relaxed)) }
        };
        let reasons = DROPS.iter().zip(&self.dropped).map(|(reason, counter)| {
            sample(Family::SpansDropped, Some(("reason", (*reason).to_owned())), counter)
        });
        std::iter::once(sample(Family::SpansSent, None, &self.sent)).chain(reasons).collect()
    }

    fn next(&self) -> Vec<Span> {
        self.held(|held| held.iter().take(SPANS_SENT_MAX).map(|(_, span)| span.clone()).collect())
    }

    fn forget(&self, count: usize) {
        self.held(|held| drop(held.drain(..count.min(held.len()))));
    }

    fn forget_until(&self, at: Timestamp) {
        self.held(|held| held.retain(|(came, _)| *came > at));
    }
}

impl Engine {
    /// Begins to send spans, if any are recorded.
    pub fn start_traces(self: &Arc<Self>, exporter: Arc<dyn SpanExporter>) {
        if self.settings.tracing.is_some() {
            let sending = Sending { engine: self.clone(), exporter, renewed_at: None };
            self.start_worker("traces", sending.run());
        }
    }
}

struct Sending {
    engine: Arc<Engine>,
    exporter: Arc<dyn SpanExporter>,
    /// When this broker said last that it sends.
    renewed_at: Option<Timestamp>,
}

impl Sending {
    async fn run(mut self) {
        let mut closing = self.engine.closing.subscribe();
        let engine = self.engine.clone();
        tokio::select! {
            () = async {
                loop {
                    engine.spans.came.notified().await;
                    engine.store.clock().sleep_ms(GATHER_MS).await;
                    self.send_all().await;
                }
            } => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
        if engine.spans.leads.load(Ordering::Acquire) {
            // What is left after that is told again after the next start.
            let last = async { while self.send_some().await.is_ok_and(|any| any) {} };
            tokio::select! {
                () = last => {}
                () = engine.store.clock().sleep_ms(LAST_MS_MAX) => {}
            }
        }
    }

    /// Sends until nothing is left to send.
    async fn send_all(&mut self) {
        let (mut tries, spans) = (0, self.engine.spans.clone());
        let clock = self.engine.store.clock().clone();
        while !spans.held(|held| held.is_empty()) {
            if !self.leads().await {
                spans.forget_until(clock.now().minus_ms(KEEP_MS));
                clock.sleep_ms(RENEW_MS).await;
                continue;
            }
            let after_ms = match self.send_some().await {
                Ok(_) => {
                    tries = 0;
                    continue;
                }
                Err(after_ms) => after_ms,
            };
            tries += 1;
            if tries == TRIES_MAX {
                let count = spans.next().len();
                spans.forget(count);
                spans.drop_some(Dropped::NotSent, count as u64, clock.now());
                tries = 0;
            }
            let rest = after_ms.unwrap_or(REST_MS << tries).min(REST_MS_MAX);
            clock.sleep_ms(rest).await;
        }
    }

    /// Sends what came first. Says whether there was any, or how long to wait.
    async fn send_some(&self) -> Result<bool, Option<u64>> {
        let spans = &self.engine.spans;
        let next = spans.next();
        if next.is_empty() {
            return Ok(false);
        }
        let now = self.engine.now();
        match self.exporter.export(&next).await {
            Ok(refused) => {
                let refused = refused.min(next.len() as u64);
                spans.drop_some(Dropped::Refused, refused, now);
                spans.sent.fetch_add(next.len() as u64 - refused, Ordering::Relaxed);
            }
            Err(NotExported::Never { problem }) => {
                tracing::warn!(problem, "the receiver of traces does not take these spans");
                spans.drop_some(Dropped::Refused, next.len() as u64, now);
            }
            Err(NotExported::Later { problem, after_ms }) => {
                tracing::debug!(problem, "spans are sent later");
                return Err(after_ms);
            }
        }
        spans.forget(next.len());
        Ok(true)
    }

    /// Whether this broker is the one that sends. Who said so last is; so two that say so at once are
    /// told apart when they look again.
    async fn leads(&mut self) -> bool {
        let engine = &self.engine;
        let now = engine.now();
        let leads = &engine.spans.leads;
        if self.renewed_at.is_some_and(|at| now < at.plus_ms(RENEW_MS)) {
            return leads.load(Ordering::Acquire);
        }
        let leads = match engine.store.brokers().await {
            Ok(keys) if keys.len() <= 1 => true,
            _ => self.leads_others(now).await,
        };
        self.renewed_at = leads.then_some(now);
        self.engine.spans.leads.store(leads, Ordering::Release);
        leads
    }

    async fn leads_others(&self, now: Timestamp) -> bool {
        let (store, me) = (&self.engine.store, self.engine.broker_name());
        let Ok(known) = store.load_fold(SENDER).await else { return false };
        let known = known.as_ref().and_then(|(_, text)| text.split_once(' '));
        let until = known.and_then(|(_, until)| Some(Timestamp(until.parse().ok()?)));
        let holds = until.is_some_and(|until| now < until);
        let is_me = known.is_some_and(|(who, _)| who == me);
        if holds && !is_me {
            return false;
        }
        let said = format!("{me} {}", now.plus_ms(LEAD_MS).0);
        let written = store.save_fold(SENDER, store.head(), said).await.is_ok();
        holds && written
    }
}

#[cfg(test)]
mod tests {
    use tasuki_core::identity::SecretKey;
    use tasuki_core::trace::Kind;
    use tasuki_store::{ManualClock, Store, Volatile};

    use super::*;
    use crate::{Settings, SystemIds};

    /// A receiver that is never there.
    struct Nowhere;

    #[async_trait]
    impl SpanExporter for Nowhere {
        async fn export(&self, _: &[Span]) -> Result<u64, NotExported> {
            Err(NotExported::Later { problem: "nobody is there".into(), after_ms: None })
        }
    }

    fn span(id: u64) -> Span {
        Span {
            trace: 1,
            id,
            parent: None,
            name: "send coder".into(),
            kind: Kind::Producer,
            start: Timestamp(0),
            end: Timestamp(0),
            attributes: Vec::new(),
            links: Vec::new(),
            marks: Vec::new(),
            marks_dropped: 0,
            error: None,
        }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_what_came_first_stays() {
        let spans = Spans::default();
        let all = SPANS_MAX as u64 + 3;
        spans.push((0..all).map(span).collect(), Timestamp(0));
        assert_eq!(spans.held(|held| held.len()), SPANS_MAX);
        assert_eq!(spans.next().first().map(|span| span.id), Some(0));
        assert_eq!(spans.dropped[Dropped::Full as usize].load(Ordering::Relaxed), 3);
    }

    fn sending(store: &Arc<dyn Store>, seed: u8) -> Sending {
        let key = Some(SecretKey::from_seed([seed; 32]).public());
        let settings = Settings { key, ..Settings::default() };
        let engine = Engine::start(store.clone(), Arc::new(SystemIds), settings);
        Sending { engine, exporter: Arc::new(Nowhere), renewed_at: None }
    }

    #[tokio::test]
    async fn of_two_brokers_one_sends_until_it_is_gone() {
        let clock = ManualClock::at(Timestamp(1_800_000_000_000));
        let store: Arc<dyn Store> = Arc::new(Volatile::new(clock.clone()));
        let (one, other) = (sending(&store, 1), sending(&store, 2));
        // Who says so first looks again before it sends, in case somebody else said so at once.
        assert!(!one.leads_others(store.clock().now()).await);
        assert!(one.leads_others(store.clock().now()).await);
        assert!(!other.leads_others(store.clock().now()).await);
        clock.advance_ms(RENEW_MS);
        assert!(one.leads_others(store.clock().now()).await, "it says so again");
        clock.advance_ms(LEAD_MS - 1);
        assert!(!other.leads_others(store.clock().now()).await);
        clock.advance_ms(1);
        assert!(!other.leads_others(store.clock().now()).await);
        assert!(other.leads_others(store.clock().now()).await);
        assert!(!one.leads_others(store.clock().now()).await, "another took its place");
    }
}
