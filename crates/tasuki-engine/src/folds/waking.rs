// SPDX-License-Identifier: Apache-2.0
//! Wakes waiting claimers, whoever waits for a handoff or a task, and whoever follows the log.
//! Nothing is told before it is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tasuki_core::event::Sealed;
use tasuki_core::{Position, Target};
use tasuki_store::{Change, Store};
use tokio::sync::watch;

use super::waiters::{Topic, Waiters};
use super::{Flow, Fold, GO_ON};

pub(crate) struct Waking {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) head: watch::Sender<Position>,
}

#[async_trait]
impl Fold for Waking {
    /// It is the last of those that are driven together, so what came before is known by all.
    async fn load(&mut self, _: Option<String>) -> Flow {
        self.head.send_replace(self.store.head());
        GO_ON
    }

    async fn apply(&mut self, changes: &[Change], ready: &[Target]) -> Flow {
        for change in changes {
            wake_for(&change.sealed, &self.waiters);
        }
        wake_claimers(changes, ready, &self.waiters);
        if let Some(last) = changes.last() {
            self.head.send_modify(|head| *head = last.sealed.position.max(*head));
        }
        GO_ON
    }

    async fn start_over(&mut self) -> Flow {
        self.waiters.wake_everybody();
        self.head.send_replace(self.store.head());
        GO_ON
    }
}

fn wake_for(event: &Sealed, waiters: &Waiters) {
    waiters.wake_all(&Topic::Task(event.record.task_id));
    if let Some(id) = event.record.handoff_id {
        waiters.wake_all(&Topic::Handoff(id));
    }
}

/// A fresh offer wakes one waiter: whoever it is may take it. Work that comes back may have been
/// declined by the very one that would be woken, who would keep the news to itself, so it wakes
/// them all.
fn wake_claimers(changes: &[Change], ready: &[Target], waiters: &Waiters) {
    let mut fresh: BTreeMap<&Target, usize> = BTreeMap::new();
    for target in changes.iter().filter_map(|change| fresh_offer(&change.sealed)) {
        *fresh.entry(target).or_default() += 1;
    }
    for target in ready {
        let topic = Topic::Target(target.clone());
        match fresh.get_mut(target).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                waiters.wake_one(&topic);
            }
            None => waiters.wake_all(&topic),
        }
    }
}

/// For whom an event made work claimable that nobody can have declined yet.
fn fresh_offer(event: &Sealed) -> Option<&Target> {
    let (offered, _) = event.record.event.offered()?;
    let later = offered.not_before.is_some_and(|start| start > event.record.at);
    let after = offered.contract.after.is_some();
    let waits = offered.needs_approval || offered.ordering_key.is_some() || later || after;
    (!waits).then_some(&offered.to)
}
