// SPDX-License-Identifier: Apache-2.0
//! Watches how agents fare. What it knows follows from the log, and every attempt counts once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tasuki_core::handoff::StateName;
use tasuki_core::observe::{Facts, Records, Track};
use tasuki_core::{AgentId, Capability, Target, Timestamp};
use tasuki_store::{Change, Store};

use super::{AGAIN_MS, Flow, Fold, GO_ON, each_in};

/// How long agents say that their capabilities take, in milliseconds.
pub(crate) type Declared = Arc<RwLock<HashMap<(AgentId, Capability), u64>>>;

pub(crate) struct Observer {
    store: Arc<dyn Store>,
    records: Arc<Mutex<Records>>,
    declared: Declared,
    /// When to find out again who holds what, if that could not be read.
    again_at: Option<Timestamp>,
}

impl Observer {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        records: Arc<Mutex<Records>>,
        declared: Declared,
    ) -> Self {
        Self { store, records, declared, again_at: None }
    }

    /// Who holds what, as it is now. Claims that the log tells of again change nothing by that, and
    /// neither do ends: the last thing that happened to a handoff comes last.
    async fn find_holders(&mut self) {
        let mut held = Vec::new();
        for state in [StateName::Claimed, StateName::InProgress] {
            let found = each_in(&*self.store, state, |handoff| {
                held.extend(handoff.state.claim().map(|claim| (handoff.id, claim.agent.clone())));
            });
            if let Err(error) = found.await {
                tracing::debug!(%error, "who holds what is found out later");
                self.again_at = Some(self.store.clock().now().plus_ms(AGAIN_MS));
                return;
            }
        }
        self.again_at = None;
        let mut records = self.records.lock().expect("no holder of this lock panics");
        for (id, agent) in held {
            records.holds(id, &agent);
        }
    }
}

type StoredTracks = Vec<(AgentId, Option<Capability>, Track)>;

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    tracks: StoredTracks,
    targets: Vec<(Target, Facts)>,
}

/// Also as it was written when there were no more than tracks.
fn stored(text: &str) -> Stored {
    serde_json::from_str(text).unwrap_or_else(|_| Stored {
        tracks: serde_json::from_str(text).unwrap_or_default(),
        targets: Vec::new(),
    })
}

#[async_trait]
impl Fold for Observer {
    fn name(&self) -> Option<&'static str> {
        Some("records")
    }

    async fn load(&mut self, saved: Option<String>) -> Flow {
        let Stored { tracks, targets } = saved.map(|text| stored(&text)).unwrap_or_default();
        let tracks = tracks.into_iter().map(|(agent, capability, t)| ((agent, capability), t));
        let known = Records::from(tracks.collect(), targets.into_iter().collect());
        *self.records.lock().expect("no holder of this lock panics") = known;
        self.find_holders().await;
        GO_ON
    }

    async fn apply(&mut self, changes: &[Change], _: &[Target]) -> Flow {
        let declared = self.declared.read().expect("no holder of this lock panics");
        let mut records = self.records.lock().expect("no holder of this lock panics");
        for change in changes {
            records.note(&change.sealed, change.handoff.as_deref(), |agent, capability| {
                declared.get(&(agent.clone(), capability.clone())).copied()
            });
        }
        GO_ON
    }

    /// Claims that were lost with the log's end are nobody's.
    async fn start_over(&mut self) -> Flow {
        self.records.lock().expect("no holder of this lock panics").forget_holders();
        self.find_holders().await;
        GO_ON
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.again_at
    }

    async fn wake(&mut self) -> Flow {
        self.find_holders().await;
        GO_ON
    }

    fn save(&self) -> Option<String> {
        let records = self.records.lock().expect("no holder of this lock panics");
        let tracks = records.tracks.iter();
        let tracks = tracks.map(|((agent, able), t)| (agent.clone(), able.clone(), t.clone()));
        let targets = records.targets.iter().map(|(to, facts)| (to.clone(), facts.clone()));
        let stored = Stored { tracks: tracks.collect(), targets: targets.collect() };
        serde_json::to_string(&stored).ok()
    }
}
