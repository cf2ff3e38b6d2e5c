// SPDX-License-Identifier: Apache-2.0
//! Watches how agents fare. What it knows follows from the log, and every attempt counts once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tasuki_core::observe::{Facts, Records, Track};
use tasuki_core::{AgentId, Capability, Position, Target};
use tasuki_store::Change;

use super::{Flow, Fold, GO_ON};

/// How long agents say that their capabilities take, in milliseconds.
pub(crate) type Declared = Arc<RwLock<HashMap<(AgentId, Capability), u64>>>;

pub(crate) struct Observer {
    pub(crate) records: Arc<Mutex<Records>>,
    pub(crate) declared: Declared,
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
        let mut records = self.records.lock().expect("no holder of this lock panics");
        *records = Records::from(tracks.collect(), targets.into_iter().collect(), Position(0));
        GO_ON
    }

    async fn apply(&mut self, changes: &[Change], _: &[Target]) -> Flow {
        let declared = self.declared.read().expect("no holder of this lock panics");
        let mut records = self.records.lock().expect("no holder of this lock panics");
        for change in changes {
            records.note(&change.sealed, |agent, capability| {
                declared.get(&(agent.clone(), capability.clone())).copied()
            });
        }
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
