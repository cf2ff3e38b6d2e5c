// SPDX-License-Identifier: Apache-2.0
//! Does what is due: lost leases, retries, start times, deadlines. It sleeps until the store says
//! something is due, by the store's own clock, and looks up often enough to notice that it could not:
//! a process that was stopped must not judge its holders by a silence that was its own.

use std::sync::Arc;
use tasuki_core::breaker::House;
use tasuki_core::commands;

use tasuki_core::{Command, Timestamp};
use tasuki_store::{Error, Store};

/// How many handoffs one sweep takes, so that it does not hold up the commands behind it.
const SWEEP_MAX: usize = 500;
/// How long to leave a store alone that could not sweep.
const AFTER_FAILURE_MS: u64 = 200;
/// How long one sleep lasts at most.
const LOOK_MS: u64 = 500;

pub(crate) async fn run(store: Arc<dyn Store>, house: House) {
    let mut next_due = store.next_due();
    let mut looked = store.clock().now();
    loop {
        let due = *next_due.borrow_and_update();
        let changed = match due {
            None => {
                let changed = next_due.changed().await;
                // Nobody held anything, so nobody can lose it by what was not looked at.
                looked = store.clock().now();
                changed
            }
            Some(at) => tokio::select! {
                changed = next_due.changed() => changed,
                () = store.clock().sleep_until(at.min(looked.plus_ms(LOOK_MS))) => {
                    match look(&*store, house, &mut looked, at).await {
                        Ok(()) => Ok(()),
                        Err(Error::Closed) => return,
                        Err(error) => {
                            tracing::warn!(%error, "sweep failed, trying again");
                            store.clock().sleep_ms(AFTER_FAILURE_MS).await;
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

/// Looks at the clock, and does what is due by it.
async fn look(
    store: &dyn Store,
    house: House,
    looked: &mut Timestamp,
    due: Timestamp,
) -> Result<(), Error> {
    let now = store.clock().now();
    if store.clock().was_silent(*looked, now) {
        let ms = now.ms_after(*looked);
        tracing::warn!(ms, "nobody looked after leases for a while; every holder gets a full one");
        for reply in
            store.execute(vec![Command::of_broker(commands::RenewAll { since: *looked })]).await?
        {
            reply?;
        }
    }
    store.looked(now).await?;
    *looked = now;
    if now >= due { sweep(store, now, house).await } else { Ok(()) }
}

async fn sweep(store: &dyn Store, until: Timestamp, house: House) -> Result<(), Error> {
    loop {
        let sweep = Command::of_broker(commands::Sweep { max: SWEEP_MAX, until }).in_house(house);
        let replies = store.execute(vec![sweep]).await?;
        for reply in replies {
            if reply?.outcome.handoffs.len() < SWEEP_MAX {
                return Ok(());
            }
        }
    }
}
