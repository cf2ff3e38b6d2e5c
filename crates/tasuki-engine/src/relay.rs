// SPDX-License-Identifier: Apache-2.0
//! Reacts to what was committed: wakes waiting claimers, and whoever waits for a handoff or a
//! task. Nothing is told before it is durable.

use std::sync::Arc;

use tasuki_core::{Position, Target};
use tasuki_store::{Committed, Store};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::waiters::{Topic, Waiters};

pub(crate) async fn run(
    store: Arc<dyn Store>,
    mut committed: broadcast::Receiver<Arc<Committed>>,
    waiters: Arc<Waiters>,
    head: watch::Sender<Position>,
) {
    loop {
        match committed.recv().await {
            Ok(batch) => {
                for event in &batch.events {
                    wake_for(event, &waiters);
                }
                for target in &batch.ready {
                    wake_claimer(target, &waiters);
                }
            }
            Err(RecvError::Lagged(_)) => waiters.wake_everybody(),
            Err(RecvError::Closed) => return,
        }
        head.send_replace(store.head());
    }
}

fn wake_for(event: &tasuki_core::event::Sealed, waiters: &Waiters) {
    waiters.wake_all(&Topic::Task(event.record.task_id));
    if let Some(id) = event.record.handoff_id {
        waiters.wake_all(&Topic::Handoff(id));
    }
}

fn wake_claimer(target: &Target, waiters: &Waiters) {
    waiters.wake_one(&Topic::Target(target.clone()));
}
