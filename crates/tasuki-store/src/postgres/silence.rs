// SPDX-License-Identifier: Apache-2.0
//! Whether any broker was there. A holder that finds its broker stopped may be heard by another one on
//! the same database, so a silence counts only if it was everybody's: brokers write down that they look
//! after leases, and a broker that was away, or starts, looks at that first.
//!
//! The note is read before the transaction that renews, without a lock. Two brokers that wake up at the
//! same time may both renew, which does no harm. One that finds a fresh note reads the leases after it,
//! and with them everything that was renewed before the note was written.

use tasuki_core::commands::{RenewAll, Wish};
use tasuki_core::{Command, Position, Timestamp};

use super::Node;
use super::error::Fault;

/// What the note is kept as.
const NAME: &str = "looked";

impl Node {
    pub(super) async fn looked(&self, at: Timestamp) -> Result<(), Fault> {
        self.save_fold(NAME, Position(u64::try_from(at.0).unwrap_or(0)), "").await
    }

    /// When any broker last looked after leases.
    pub(super) async fn last_look(&self) -> Result<Option<Timestamp>, Fault> {
        let kept = self.load_fold(NAME).await?;
        Ok(kept.and_then(|(at, _)| i64::try_from(at.0).ok()).map(Timestamp))
    }

    /// A silence of this broker is none where others were there.
    pub(super) async fn heard_elsewhere(&self, commands: &mut [Command]) -> Result<(), Fault> {
        for command in commands {
            if let Wish::RenewAll(renew) = &mut command.wish
                && let Some(other) = self.last_look().await?
            {
                renew.since = other.max(renew.since);
            }
        }
        Ok(())
    }

    /// As a broker starts: holders that no broker could hear get a full lease.
    pub(super) async fn renew_after_silence(&self) {
        let renewed = async {
            // Where nobody ever looked, nobody holds anything.
            let Some(since) = self.last_look().await? else { return Ok(()) };
            if self.clock.was_silent(since, self.clock.now()) {
                let renewed = self.carry_out(&[Command::of_broker(RenewAll { since })]).await;
                self.tell(renewed.map_err(|error| Fault::Lost(error.to_string()))?);
            }
            Ok::<_, Fault>(())
        };
        if let Err(fault) = renewed.await {
            tracing::warn!(error = %fault, "holders could not be given a lease at the start");
        }
    }
}
