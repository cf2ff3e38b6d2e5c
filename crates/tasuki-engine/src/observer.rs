// SPDX-License-Identifier: Apache-2.0
//! Watches how agents fare. What it knows follows from the log; it is written down now and then
//! with how far it got, and read on from there after a restart, so that every attempt counts once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tasuki_core::event::Sealed;
use tasuki_core::observe::{Facts, Records, Track};
use tasuki_core::{AgentId, Capability, Position, Target};
use tasuki_store::Store;

/// What this is kept as.
const NAME: &str = "records";
const KEEP_EVERY: Duration = Duration::from_secs(10);
/// How many events are read at a time, and how many in all after a restart.
const READ_MAX: usize = 1000;
const BEHIND_MAX: u64 = 200_000;

/// How long agents say that their capabilities take, in milliseconds.
pub(crate) type Declared = Arc<RwLock<HashMap<(AgentId, Capability), u64>>>;

pub(crate) struct Observer {
    pub(crate) records: Arc<Mutex<Records>>,
    pub(crate) declared: Declared,
    kept: Instant,
}

type StoredTracks = Vec<(AgentId, Option<Capability>, Track)>;

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    tracks: StoredTracks,
    targets: Vec<(Target, Facts)>,
    #[serde(default)]
    tainted: bool,
}

/// Also as it was written when there were no more than tracks.
fn stored(text: &str) -> Stored {
    serde_json::from_str(text).unwrap_or_else(|_| Stored {
        tracks: serde_json::from_str(text).unwrap_or_default(),
        targets: Vec::new(),
        tainted: false,
    })
}

impl Observer {
    pub(crate) fn new(records: Arc<Mutex<Records>>, declared: Declared) -> Self {
        Self { records, declared, kept: Instant::now() }
    }

    /// Goes on where the last one stopped.
    pub(crate) async fn load(&mut self, store: &dyn Store) {
        let (at, Stored { tracks, targets, tainted }) = match store.kept(NAME).await {
            Ok(Some((at, text))) => (at, stored(&text)),
            Ok(None) => (Position(0), Stored::default()),
            Err(error) => {
                tracing::debug!(%error, "how agents fared before is not known");
                (store.head(), Stored::default())
            }
        };
        let behind = Position(store.head().0.saturating_sub(BEHIND_MAX));
        {
            let mut records = self.records.lock().expect("no holder of this lock panics");
            let tracks = tracks.into_iter().map(|(agent, capability, t)| ((agent, capability), t));
            *records =
                Records::from(tracks.collect(), targets.into_iter().collect(), at.max(behind));
            records.tainted = tainted;
        }
        self.catch_up(store).await;
    }

    /// After a failover positions are given a second time.
    pub(crate) async fn start_over(&mut self, store: &dyn Store) {
        self.records.lock().expect("no holder of this lock panics").at = store.head();
    }

    pub(crate) async fn note(&mut self, events: &[Sealed], store: &dyn Store) {
        let Some(first) = events.first().map(|event| event.position) else { return };
        if first.0 > self.at().0 + 1 {
            self.catch_up(store).await;
        }
        self.take(events);
        if self.kept.elapsed() >= KEEP_EVERY {
            self.kept = Instant::now();
            self.keep(store).await;
        }
    }

    fn at(&self) -> Position {
        self.records.lock().expect("no holder of this lock panics").at
    }

    fn take(&self, events: &[Sealed]) {
        let declared = self.declared.read().expect("no holder of this lock panics");
        let mut records = self.records.lock().expect("no holder of this lock panics");
        for event in events {
            if event.position > records.at {
                records.note(event, |agent, capability| {
                    declared.get(&(agent.clone(), capability.clone())).copied()
                });
            }
        }
    }

    async fn catch_up(&self, store: &dyn Store) {
        loop {
            let Ok(entries) = store.events(self.at(), READ_MAX).await else { return };
            let count = entries.len();
            let events: Vec<_> = entries.into_iter().map(|entry| entry.sealed).collect();
            self.take(&events);
            if count < READ_MAX {
                return;
            }
        }
    }

    /// What is not written down is read from the log again, so a failure loses nothing.
    async fn keep(&self, store: &dyn Store) {
        let (at, text) = {
            let records = self.records.lock().expect("no holder of this lock panics");
            let tracks = records.tracks.iter();
            let tracks = tracks.map(|((agent, able), t)| (agent.clone(), able.clone(), t.clone()));
            let targets = records.targets.iter().map(|(to, facts)| (to.clone(), facts.clone()));
            let stored = Stored {
                tracks: tracks.collect(),
                targets: targets.collect(),
                tainted: records.tainted,
            };
            (records.at, serde_json::to_string(&stored).unwrap_or_default())
        };
        if let Err(error) = store.keep(NAME, at, text).await {
            tracing::debug!(%error, "how agents fare is written down later");
        }
    }
}
