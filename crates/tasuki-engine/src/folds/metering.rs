// SPDX-License-Identifier: Apache-2.0
//! Measures what happens, and says which alerts follow from it. It takes every event of the log once and
//! nothing besides, so every broker comes to the same, after a restart too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tasuki_core::alert::Watch;
use tasuki_core::event::Event;
use tasuki_core::manifest::Manifest;
use tasuki_core::registry::Change as Known;
use tasuki_core::{Position, Target, Timestamp};
use tasuki_store::{Change, Store, Timings};
use tokio::sync::Notify;

use super::{Flow, Fold, GO_ON};
use crate::instruments::Instruments;

/// Events of a time may become known a little later than it.
const GRACE_MS: u64 = 2_000;

/// The watch, and who wants to know when it says something else.
#[derive(Default)]
pub(crate) struct Watched {
    watch: Mutex<Watch>,
    /// Told when an alert began or ended.
    pub(crate) moved: Notify,
    /// Told when what the log knows of alerts changed.
    pub(crate) noted: Notify,
    /// How far it has come, from when it has caught up first.
    at: AtomicU64,
    came: Notify,
    /// How many changes of alerts there were when somebody was told of them last.
    moves: AtomicU64,
}

impl Watched {
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Watch) -> T) -> T {
        read(&self.watch.lock().expect("no holder of this lock panics"))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Watch) -> T) -> T {
        change(&mut self.watch.lock().expect("no holder of this lock panics"))
    }

    /// Looks at the rules up to a time, less what events may come late by.
    pub(crate) fn until(&self, now: Timestamp) {
        let moves = self.change(|watch| {
            watch.until(now.minus_ms(GRACE_MS));
            watch.alerts.moves()
        });
        if self.moves.swap(moves, Ordering::AcqRel) != moves {
            self.moved.notify_one();
        }
    }

    /// Waits until it has taken the log up to this position.
    pub(crate) async fn reaches(&self, head: Position) {
        loop {
            let came = self.came.notified();
            if self.has_reached(head) {
                return;
            }
            came.await;
        }
    }

    pub(crate) fn has_reached(&self, head: Position) -> bool {
        self.at.load(Ordering::Acquire) > head.0
    }
}

pub(crate) struct Metering {
    store: Arc<dyn Store>,
    watched: Arc<Watched>,
    instruments: Arc<Instruments>,
    caught_up: bool,
    at: Position,
}

impl Metering {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        watched: Arc<Watched>,
        instruments: Arc<Instruments>,
    ) -> Self {
        Self { store, watched, instruments, caught_up: false, at: Position(0) }
    }

    /// The capabilities of manifests that were published with these events: their series begin at 0.
    async fn capabilities(&self, changes: &[Change]) -> Vec<Target> {
        let published = changes.iter().filter_map(|change| {
            let Event::RegistryChanged(known) = &change.sealed.record.event else { return None };
            let Known::ManifestPublished { agent, .. } = &**known else { return None };
            Some((change.sealed.position, agent))
        });
        let (at, agents): (Vec<_>, Vec<_>) = published.unzip();
        if at.is_empty() {
            return Vec::new();
        }
        let Ok(bodies) = self.store.bodies(at).await else { return Vec::new() };
        let mut targets = Vec::new();
        for (agent, body) in agents.into_iter().zip(bodies) {
            let tenant = agent.tenant().parse().unwrap_or_default();
            let manifest: Option<Manifest> =
                body.and_then(|body| serde_json::from_str(body.text()).ok());
            let able = manifest.into_iter().flat_map(|manifest| manifest.capabilities);
            targets.extend(able.map(|able| Target::Capability(able.name.seen_from(&tenant))));
        }
        targets
    }

    /// Tells those who wait for it how far it has come.
    fn reached(&mut self) {
        if !self.caught_up {
            return;
        }
        // One more, so that nothing is told from having caught up with an empty log.
        self.watched.at.store(self.at.0 + 1, Ordering::Release);
        self.watched.came.notify_waiters();
    }
}

fn is_about_alerts(event: &Event) -> bool {
    let Event::RegistryChanged(change) = event else { return false };
    matches!(
        **change,
        Known::AlertMoved(_)
            | Known::NoticeTaken(_)
            | Known::NoticeTold(_)
            | Known::AlertSilenced(_)
    )
}

#[async_trait]
impl Fold for Metering {
    fn name(&self) -> Option<&'static str> {
        Some("meters")
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn can_load(&self, saved: &str) -> bool {
        Watch::restored(saved).is_some()
    }

    async fn load(&mut self, saved: Option<String>) -> Flow {
        let watch = saved.as_deref().and_then(Watch::restored).unwrap_or_default();
        self.watched.change(|it| *it = watch);
        GO_ON
    }

    async fn apply(&mut self, changes: &[Change], _: &[Target]) -> Flow {
        let targets = self.capabilities(changes).await;
        self.watched.change(|watch| {
            changes.iter().for_each(|change| watch.note(&change.sealed));
            targets.iter().for_each(|target| watch.registers(target));
        });
        if changes.iter().any(|change| is_about_alerts(&change.sealed.record.event)) {
            self.watched.noted.notify_one();
        }
        if let Some(last) = changes.last() {
            self.at = last.sealed.position;
            self.reached();
        }
        GO_ON
    }

    async fn start_over(&mut self) -> Flow {
        self.watched.change(|watch| *watch = Watch::default());
        self.caught_up = false;
        GO_ON
    }

    async fn caught_up(&mut self) -> Flow {
        self.caught_up = true;
        self.at = self.at.max(self.store.head());
        // What was on before it began is known to whoever writes it down only now.
        self.watched.moved.notify_one();
        self.wake().await
    }

    fn time(&mut self, timings: &Timings, events: usize) {
        self.instruments.committed(timings, events);
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.watched.read(|watch| watch.due().map(|due| due.plus_ms(GRACE_MS)))
    }

    async fn wake(&mut self) -> Flow {
        self.watched.until(self.store.clock().now());
        self.reached();
        GO_ON
    }

    fn save(&self) -> Option<String> {
        self.watched.read(Watch::saved)
    }
}
