// SPDX-License-Identifier: Apache-2.0
//! Who waits for whose answer, over all calls that are open, and circles in that.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tasuki_core::commands::{CIRCLE_MAX, Command, EndCircle};
use tasuki_core::report::Note;
use tasuki_core::{AgentId, Body, Handoff, HandoffId, Task};

use crate::engine::Engine;
use crate::error::Error;

/// How many calls are looked at for one circle.
const LOOKED_AT_MAX: usize = 10_000;

/// The calls that are open, by who waits for them.
#[derive(Default)]
pub(super) struct Calls {
    by_sender: BTreeMap<AgentId, BTreeSet<HandoffId>>,
    known: HashMap<HandoffId, Arc<Handoff>>,
}

impl Calls {
    pub(super) fn clear(&mut self) {
        self.by_sender.clear();
        self.known.clear();
    }

    /// Takes note of a handoff as it is now. A call counts if it was made for work that its sender was
    /// at: whoever tells something to many waits for none of them.
    pub(super) fn note(&mut self, handoff: &Arc<Handoff>, task: Option<&Task>) {
        let waits = handoff.answers().is_some() && task.is_some_and(|task| task.under().is_some());
        if waits {
            self.by_sender.entry(handoff.from.clone()).or_default().insert(handoff.id);
            self.known.insert(handoff.id, handoff.clone());
        } else if self.known.remove(&handoff.id).is_some()
            && let Some(theirs) = self.by_sender.get_mut(&handoff.from)
        {
            theirs.remove(&handoff.id);
            if theirs.is_empty() {
                self.by_sender.remove(&handoff.from);
            }
        }
    }

    /// The calls of a circle that this one closes, in order, if it closes one.
    pub(super) fn circle(&self, id: HandoffId) -> Option<Vec<Arc<Handoff>>> {
        let call = self.known.get(&id)?;
        let mut seen = BTreeSet::from([call.from.clone()]);
        let mut open = vec![vec![call.clone()]];
        let mut looked_at = 0;
        while let Some(way) = open.pop() {
            let Some(agent) = way.last().and_then(|last| last.answers()) else { continue };
            if *agent == call.from {
                // Who asks itself knows whether it takes its own work while it waits.
                return (way.len() > 1).then_some(way);
            }
            if way.len() >= CIRCLE_MAX || !seen.insert(agent.clone()) {
                continue;
            }
            for next in self.by_sender.get(agent).into_iter().flatten() {
                looked_at += 1;
                if looked_at > LOOKED_AT_MAX {
                    return None;
                }
                let Some(next) = self.known.get(next) else { continue };
                open.push(way.iter().chain([next]).cloned().collect());
            }
        }
        None
    }
}

impl Engine {
    /// Ends the call that closed a circle, unless one of those in it works on several things at once.
    pub(super) async fn end_circle(&self, circle: &[Arc<Handoff>]) -> Result<(), Error> {
        for call in circle {
            if !self.works_on_one(&call.from).await? {
                return Ok(());
            }
        }
        let each = circle.iter().filter_map(|call| {
            Some(format!("{} waits for {} ({})", call.from.name(), call.answers()?.name(), call.id))
        });
        let text = each.collect::<Vec<_>>().join(", ");
        let calls = circle.iter().map(|call| call.id).collect();
        let end = EndCircle { calls, path: Body::of(&Note { text }) };
        self.one(Command::of_broker(end)).await?;
        Ok(())
    }
}
