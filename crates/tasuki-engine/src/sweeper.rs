// SPDX-License-Identifier: Apache-2.0
//! Does what is due: lost leases, retries, start times, deadlines. It sleeps until the store says
//! something is due, by the store's own clock.

use std::sync::Arc;
use std::time::Duration;
use tasuki_core::commands;

use tasuki_core::Command;
use tasuki_store::{Error, Store};

/// How many handoffs one sweep takes, so that it does not hold up the commands behind it.
const SWEEP_MAX: usize = 500;
/// How long to leave a store alone that could not sweep.
const AFTER_FAILURE: Duration = Duration::from_millis(200);

pub(crate) async fn run(store: Arc<dyn Store>) {
    let mut next_due = store.next_due();
    loop {
        let due = *next_due.borrow_and_update();
        let changed = match due {
            None => next_due.changed().await,
            Some(at) => tokio::select! {
                changed = next_due.changed() => changed,
                () = store.clock().sleep_until(at) => {
                    match sweep(&*store).await {
                        Ok(()) => Ok(()),
                        Err(Error::Closed) => return,
                        Err(error) => {
                            tracing::warn!(%error, "sweep failed, trying again");
                            tokio::time::sleep(AFTER_FAILURE).await;
                            Ok(())
                        }
                    }
                }
            },
        };
        if changed.is_err() {
            return;
        }
    }
}

async fn sweep(store: &dyn Store) -> Result<(), Error> {
    loop {
        let replies =
            store.execute(vec![Command::of_broker(commands::Sweep { max: SWEEP_MAX })]).await?;
        for reply in replies {
            if reply?.outcome.handoffs.len() < SWEEP_MAX {
                return Ok(());
            }
        }
    }
}
