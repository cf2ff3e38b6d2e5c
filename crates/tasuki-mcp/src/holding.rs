// SPDX-License-Identifier: Apache-2.0
//! What is held by whoever might go away. A process that speaks over stdio gives it back when it ends, or
//! keeps it until the lease ends, as it was told. Over HTTP it is what one request was granted, until the
//! answer has gone out; from then on the lease decides.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use serde_json::Map;
use tasuki_engine::operations::claims;

use crate::broker::Broker;
use crate::call::Call;
use crate::handle::Handle;

/// How many claims are remembered; beyond them the lease decides.
const HELD_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Holding {
    /// None where nothing is remembered.
    held: Option<Mutex<HashSet<Handle>>>,
}

impl Holding {
    pub(crate) fn remembering() -> Self {
        Self { held: Some(Mutex::default()) }
    }

    pub(crate) fn begin(&self, handle: Handle) {
        self.with(|held| {
            if held.len() < HELD_MAX {
                held.insert(handle);
            }
        });
    }

    pub(crate) fn end(&self, handle: &Handle) {
        self.with(|held| {
            held.remove(handle);
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        let mut empty = true;
        self.with(|held| empty = held.is_empty());
        empty
    }

    fn take(&self) -> HashSet<Handle> {
        let mut taken = HashSet::new();
        self.with(|held| taken = std::mem::take(held));
        taken
    }

    /// Gives everything back, for others to take at once.
    pub(crate) async fn give_back(self: &Arc<Self>, broker: Arc<dyn Broker>) {
        let call = Call::quiet(broker, self.clone());
        for handle in self.take() {
            // A claim that is over needs nothing more, and if the broker is gone its lease ends.
            if let Err(problem) = call.ask_held::<claims::Release>(&handle, Map::new()).await {
                tracing::warn!(code = problem.code, "a claim was not given back");
            }
        }
    }

    fn with(&self, change: impl FnOnce(&mut HashSet<Handle>)) {
        if let Some(held) = &self.held {
            change(&mut held.lock().expect("no holder of this lock panics"));
        }
    }
}
