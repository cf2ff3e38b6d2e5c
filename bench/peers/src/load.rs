//! The closed loop that every peer gets, and what is kept of it.
//!
//! A client offers, claims and completes in sequence. It may claim what another client offered, and
//! completes what it claimed. Since each offers before it claims, there is always something to
//! claim, so no figure here contains waiting for work.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

/// How long after its time a round may still be finishing before it counts as stuck.
const OVERTIME_SECONDS_MAX: u64 = 30;
const STEP_MICROSECONDS_MAX: u64 = 60_000_000;

/// What every system is given to do.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) clients: u16,
    pub(crate) payload: Vec<u8>,
    pub(crate) seconds: u64,
}

impl Load {
    pub(crate) fn new(clients: u16, payload_bytes: u32, seconds: u64) -> Self {
        Self { clients, payload: text(payload_bytes), seconds }
    }

    /// The same for a number of servers that share the clients. Each gets one at least.
    pub(crate) fn shares(&self, servers: u16) -> impl Iterator<Item = Self> {
        let (each, rest) = (self.clients / servers, self.clients % servers);
        (0..servers).map(move |number| Self {
            clients: (each + u16::from(number < rest)).max(1),
            ..self.clone()
        })
    }

    pub(crate) fn seconds_max(&self) -> Duration {
        Duration::from_secs(self.seconds + OVERTIME_SECONDS_MAX)
    }
}

/// One client with its connection.
pub(crate) trait Client: Send + 'static {
    fn offer(&mut self) -> impl Future<Output = Result<()>> + Send;
    /// Takes any message that is ready and remembers which.
    fn claim(&mut self) -> impl Future<Output = Result<()>> + Send;
    /// Completes the message that was claimed last.
    fn complete(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// One round on one system. `tasuki-tools bench --json` prints the same shape.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) cycles_per_second: f64,
    pub(crate) cycles: u64,
    pub(crate) seconds: f64,
    /// Commands per sync, where the server tells.
    #[serde(default)]
    pub(crate) mean_batch: Option<f64>,
    pub(crate) steps: Steps,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Steps {
    pub(crate) offer: Latency,
    pub(crate) claim: Latency,
    pub(crate) complete: Latency,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Measured {
    /// What several servers did at the same time: the throughputs are added; the times are those
    /// of the slowest.
    pub(crate) fn together(self, other: &Self) -> Self {
        Self {
            cycles_per_second: self.cycles_per_second + other.cycles_per_second,
            cycles: self.cycles + other.cycles,
            seconds: self.seconds.max(other.seconds),
            // A figure of one server.
            mean_batch: None,
            steps: Steps {
                offer: self.steps.offer.or_slower(&other.steps.offer),
                claim: self.steps.claim.or_slower(&other.steps.claim),
                complete: self.steps.complete.or_slower(&other.steps.complete),
            },
        }
    }
}

impl Latency {
    fn or_slower(&self, other: &Self) -> Self {
        Self {
            p50_ms: self.p50_ms.max(other.p50_ms),
            p95_ms: self.p95_ms.max(other.p95_ms),
            p99_ms: self.p99_ms.max(other.p99_ms),
        }
    }
}

/// Lets all clients, already connected, work for the given time.
pub(crate) async fn run<C: Client>(clients: Vec<C>, load: &Load) -> Result<Measured> {
    let start = Instant::now();
    let deadline = start + Duration::from_secs(load.seconds);
    let mut workers = JoinSet::new();
    for client in clients {
        workers.spawn(cycle_until(deadline, client));
    }
    let mut total = Tally::new()?;
    let finish = async {
        while let Some(worker) = workers.join_next().await {
            total.add(&worker.context("a client panicked")??)?;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(load.seconds_max(), finish).await.context("the clients are stuck")??;
    Ok(total.over(start.elapsed()))
}

async fn cycle_until<C: Client>(deadline: Instant, mut client: C) -> Result<Tally> {
    let mut tally = Tally::new()?;
    let mut began = Instant::now();
    while began < deadline {
        client.offer().await.context("cannot offer")?;
        let offered = Instant::now();
        client.claim().await.context("cannot claim")?;
        let claimed = Instant::now();
        client.complete().await.context("cannot complete")?;
        let completed = Instant::now();
        record(&mut tally.offer, offered - began);
        record(&mut tally.claim, claimed - offered);
        record(&mut tally.complete, completed - claimed);
        tally.cycles += 1;
        began = completed;
    }
    Ok(tally)
}

struct Tally {
    cycles: u64,
    offer: Histogram<u64>,
    claim: Histogram<u64>,
    complete: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self> {
        Ok(Self { cycles: 0, offer: histogram()?, claim: histogram()?, complete: histogram()? })
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        self.cycles += other.cycles;
        self.offer.add(&other.offer)?;
        self.claim.add(&other.claim)?;
        self.complete.add(&other.complete)?;
        Ok(())
    }

    fn over(&self, elapsed: Duration) -> Measured {
        let seconds = elapsed.as_secs_f64();
        Measured {
            cycles_per_second: self.cycles as f64 / seconds,
            cycles: self.cycles,
            seconds,
            mean_batch: None,
            steps: Steps {
                offer: latency(&self.offer),
                claim: latency(&self.claim),
                complete: latency(&self.complete),
            },
        }
    }
}

pub(crate) fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, STEP_MICROSECONDS_MAX, 3)?)
}

pub(crate) fn record(histogram: &mut Histogram<u64>, step: Duration) {
    histogram.saturating_record(u64::try_from(step.as_micros()).unwrap_or(u64::MAX));
}

pub(crate) fn latency(histogram: &Histogram<u64>) -> Latency {
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    Latency { p50_ms: at(0.50), p95_ms: at(0.95), p99_ms: at(0.99) }
}

/// Text without repetition: a server that compresses must not gain from it.
fn text(bytes: u32) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
    (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ALPHABET[(state >> 58) as usize]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(u64);

    impl Client for Counter {
        async fn offer(&mut self) -> Result<()> {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(())
        }
        async fn claim(&mut self) -> Result<()> {
            Ok(())
        }
        async fn complete(&mut self) -> Result<()> {
            self.0 += 1;
            anyhow::ensure!(self.0 < 1000, "worked for too long");
            Ok(())
        }
    }

    #[tokio::test]
    async fn the_cycles_of_all_clients_are_counted() {
        let measured = run(vec![Counter(0), Counter(0)], &Load::new(2, 1, 1)).await.unwrap();
        assert!(measured.cycles > 2 && measured.cycles <= 102, "{}", measured.cycles);
        assert!(measured.steps.offer.p50_ms >= 20.0);
        assert!(measured.steps.claim.p50_ms < measured.steps.offer.p50_ms);
    }

    #[test]
    fn servers_share_the_clients_as_evenly_as_they_can() {
        let clients = |servers| -> Vec<u16> {
            Load::new(64, 1, 1).shares(servers).map(|share| share.clients).collect()
        };
        assert_eq!(clients(2), [32, 32]);
        assert_eq!(clients(3), [22, 21, 21]);
    }

    #[test]
    fn the_message_has_the_size_that_was_asked_for() {
        assert_eq!(text(2048).len(), 2048);
    }
}
