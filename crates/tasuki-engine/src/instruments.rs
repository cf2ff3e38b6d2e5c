// SPDX-License-Identifier: Apache-2.0
//! What this broker measures of itself, from its start on. Counting takes no lock where work is done.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tasuki_core::assembly::{Receipt, Rung};
use tasuki_core::meter::families::{BATCH, Family, NOTICES, OUTCOMES, RUNGS, SHORT_SECONDS};
use tasuki_core::meter::histogram::Histogram;
use tasuki_core::meter::{Sample, Value};
use tasuki_protocol::Code;
use tasuki_store::{Stats, Timings};

use crate::operations::{self, Entry};

/// How a request ended, as these count it who look after the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Done,
    /// The rules said no, or the request was wrong.
    Refused,
    /// The broker or the world did not do its part.
    Failed,
}

pub(crate) struct Instruments {
    requests: Vec<[AtomicU64; 3]>,
    refusals: Vec<AtomicU64>,
    trimmed: [AtomicU64; 3],
    notices: [AtomicU64; 2],
    commits: Mutex<Commits>,
    /// Since 1970, in milliseconds.
    started_ms: i64,
}

struct Commits {
    batch: Histogram,
    wait: Histogram,
    commit: Histogram,
    sync: Histogram,
}

impl Instruments {
    pub(crate) fn new(started_ms: i64) -> Self {
        let counters = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let requests = operations::all().iter().map(|_| Default::default()).collect();
        Self {
            requests,
            refusals: counters(Code::ALL.len()),
            trimmed: Default::default(),
            notices: Default::default(),
            commits: Mutex::new(Commits {
                batch: Histogram::new(&BATCH),
                wait: Histogram::new(&SHORT_SECONDS),
                commit: Histogram::new(&SHORT_SECONDS),
                sync: Histogram::new(&SHORT_SECONDS),
            }),
            started_ms,
        }
    }

    pub(crate) fn answered(&self, entry: &Entry, ended: Ended, code: Option<Code>) {
        if let Some(counters) = self.requests.get(entry.number) {
            counters[ended as usize].fetch_add(1, Ordering::Relaxed);
        }
        if let Some(counter) = code.and_then(|code| self.refusals.get(code as usize)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An assembly passed less than there was.
    pub(crate) fn assembled(&self, receipt: &Receipt) {
        let [summaries, stubs, listed] = &self.trimmed;
        for demoted in &receipt.demoted {
            let counter = match demoted.rung {
                Rung::Full | Rung::Summary => summaries,
                Rung::Stub => stubs,
                Rung::Listed => listed,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
        listed.fetch_add(receipt.dropped.len() as u64, Ordering::Relaxed);
    }

    pub(crate) fn noticed(&self, sent: bool) {
        self.notices[usize::from(!sent)].fetch_add(1, Ordering::Relaxed);
    }

    /// A batch was committed. What others committed was not measured.
    pub(crate) fn committed(&self, timings: &Timings, events: usize) {
        if *timings == Timings::default() {
            return;
        }
        let mut commits = self.commits.lock().expect("no holder of this lock panics");
        commits.batch.take(&BATCH, events as u64);
        commits.wait.take(&SHORT_SECONDS, timings.queue_us);
        commits.commit.take(&SHORT_SECONDS, timings.commit_us);
        commits.sync.take(&SHORT_SECONDS, timings.sync_us);
    }

    /// Everything, with the broker's name on each series.
    pub(crate) fn samples(&self, broker: &str, stats: &Stats) -> Vec<Sample> {
        let mut all = Vec::new();
        let mut add = |family: Family, own: Option<(&'static str, String)>, value: Value| {
            let mut labels = vec![("broker", broker.to_owned())];
            labels.extend(own);
            all.push(Sample { family, labels, value });
        };
        let version = ("version", env!("CARGO_PKG_VERSION").to_owned());
        add(Family::Build, Some(version), Value::Whole(1));
        for (family, count) in [
            (Family::Commits, stats.commits),
            (Family::Commands, stats.commands),
            (Family::Events, stats.events),
            (Family::Live, stats.live_handoffs),
            (Family::LiveBytes, stats.live_bytes),
            (Family::Lag, stats.projection_lag),
            (Family::DiskFull, u64::from(stats.disk_full)),
        ] {
            add(family, None, Value::Whole(count));
        }
        {
            let commits = self.commits.lock().expect("no holder of this lock panics");
            for (family, counts) in [
                (Family::Batch, &commits.batch),
                (Family::Wait, &commits.wait),
                (Family::Commit, &commits.commit),
                (Family::Sync, &commits.sync),
            ] {
                add(family, None, Value::Counts(counts.clone()));
            }
        }
        let read = |counter: &AtomicU64| Value::Whole(counter.load(Ordering::Relaxed));
        for (entry, counters) in operations::all().iter().zip(&self.requests) {
            for (word, counter) in OUTCOMES.iter().zip(counters) {
                let mut labels = vec![("broker", broker.to_owned())];
                labels.push(("operation", entry.facts.name.to_owned()));
                labels.push(("outcome", (*word).to_owned()));
                all.push(Sample { family: Family::Requests, labels, value: read(counter) });
            }
        }
        let mut add = |family: Family, own: (&'static str, String), value: Value| {
            let labels = vec![("broker", broker.to_owned()), own];
            all.push(Sample { family, labels, value });
        };
        for (code, counter) in Code::ALL.iter().zip(&self.refusals) {
            add(Family::Refusals, ("code", code.as_str().to_owned()), read(counter));
        }
        for (rung, counter) in RUNGS.iter().zip(&self.trimmed) {
            add(Family::Trimmed, ("to", (*rung).to_owned()), read(counter));
        }
        for (result, counter) in NOTICES.iter().zip(&self.notices) {
            add(Family::Notices, ("result", (*result).to_owned()), read(counter));
        }
        all.extend(self.of_process(broker));
        all
    }

    /// What the system says of this process. Where it does not say, there is no series.
    fn of_process(&self, broker: &str) -> Vec<Sample> {
        let sample = |(family, value): (Family, Value)| {
            let labels = vec![("broker", broker.to_owned())];
            Sample { family, labels, value }
        };
        let started = Value::Number(self.started_ms as f64 / 1000.0);
        let told = [
            resident_bytes().map(|bytes| (Family::Memory, Value::Whole(bytes))),
            cpu_seconds().map(|seconds| (Family::Cpu, Value::Number(seconds))),
            open_files().map(|files| (Family::Files, Value::Whole(files))),
            Some((Family::Start, started)),
        ];
        told.into_iter().flatten().map(sample).collect()
    }
}

pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// How many clock ticks a second has in what the kernel tells, on every platform that Linux runs on.
const TICKS: f64 = 100.0;

fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in brackets, and may have blanks.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / TICKS)
}

fn open_files() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}
