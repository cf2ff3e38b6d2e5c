// SPDX-License-Identifier: Apache-2.0
//! Reacts to what was committed: wakes waiting claimers, and whoever waits for a handoff or a
//! task. Nothing is told before it is durable.

use std::collections::HashMap;
use std::sync::Arc;

use tasuki_core::event::Sealed;
use tasuki_core::{Position, Target};
use tasuki_store::{Committed, Store};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::observer::Observer;
use crate::waiters::{Topic, Waiters};

pub(crate) async fn run(
    store: Arc<dyn Store>,
    mut committed: broadcast::Receiver<Arc<Committed>>,
    waiters: Arc<Waiters>,
    head: watch::Sender<Position>,
    mut observer: Observer,
) {
    observer.load(&*store).await;
    loop {
        match committed.recv().await {
            Ok(batch) if batch.missed => {
                waiters.wake_everybody();
                observer.start_over(&*store).await;
            }
            Ok(batch) => {
                for event in &batch.events {
                    wake_for(event, &waiters);
                }
                observer.note(&batch.events, &*store).await;
                wake_claimers(&batch, &waiters);
            }
            Err(RecvError::Lagged(_)) => waiters.wake_everybody(),
            Err(RecvError::Closed) => return,
        }
        head.send_replace(store.head());
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
fn wake_claimers(batch: &Committed, waiters: &Waiters) {
    let mut fresh: HashMap<&Target, usize> = HashMap::new();
    for target in batch.events.iter().filter_map(fresh_offer) {
        *fresh.entry(target).or_default() += 1;
    }
    for target in &batch.ready {
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
