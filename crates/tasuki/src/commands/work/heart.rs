// SPDX-License-Identifier: Apache-2.0
//! Keeps a claim alive, and says when it is over.

use std::time::{Duration, Instant};

use tasuki_protocol as wire;

use super::desk::Desk;
use crate::exit::Failure;
use crate::output::tell;

/// What the broker says when a claim is over.
const OVER: [&str; 4] = ["stale_claim", "task_finished", "wrong_state", "handoff_not_found"];

/// Whether a refusal means that the claim is worth nothing any more.
pub(super) fn is_over(failure: &Failure) -> bool {
    OVER.contains(&failure.code())
}

/// How long a claim still holds, by this machine's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lease {
    lease: Duration,
    lease_end: Instant,
    pub(super) work_end: Instant,
}

impl Lease {
    /// `began` is when the claim was asked for: by the broker's clock the lease began no earlier.
    pub(super) fn of(claimed: &wire::Claimed, began: Instant) -> Self {
        Self {
            lease: Duration::from_millis(claimed.lease_ms),
            lease_end: began + Duration::from_millis(claimed.lease_left_ms),
            work_end: began + Duration::from_millis(claimed.work_left_ms),
        }
    }
}

/// Beats until the claim is over, and returns why. Only the broker's own word ends a claim, and its
/// time: whatever else happens on the way there may have passed by the next beat.
pub(super) async fn beat(desk: &Desk, mut lease: Lease) -> String {
    // The first one comes early enough for a lease of which a part is gone already.
    let mut pause = lease.lease_end.saturating_duration_since(Instant::now()).min(lease.lease) / 3;
    let mut is_away = false;
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        if began > lease.work_end {
            return "the time for this attempt is over".to_owned();
        }
        let patience = (lease.lease / 3).max(Duration::from_millis(200));
        let Ok(answer) = tokio::time::timeout(patience, desk.heartbeat()).await else {
            pause = lease.lease / 10;
            continue;
        };
        match answer {
            Ok(beat) => {
                is_away = false;
                lease.lease_end = began + Duration::from_millis(beat.lease_left_ms);
                lease.work_end = began + Duration::from_millis(beat.work_left_ms);
                pause = (lease.lease / 3).saturating_sub(began.elapsed());
            }
            Err(failure) if is_over(&failure) => return failure.message,
            // The broker will not have it, and may be right about who asks; a lease has its end.
            Err(failure) if !failure.is_retryable() && Instant::now() > lease.lease_end => {
                return failure.message;
            }
            Err(failure) => {
                if !is_away {
                    tell(&format!("{}| a heartbeat was not taken: {}", desk.name, failure.message));
                }
                is_away = true;
                pause = lease.lease / 10;
            }
        }
    }
}
