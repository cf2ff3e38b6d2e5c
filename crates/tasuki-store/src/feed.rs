// SPDX-License-Identifier: Apache-2.0
//! The one feed of what was committed. Each event comes with what it was about as it is after it,
//! so that whoever reacts need not look, and each batch with how long it took.

use std::sync::Arc;

use tasuki_core::event::Sealed;
use tasuki_core::{Handoff, Target, Task};

/// A committed batch: what changed, and the targets for which work became claimable.
#[derive(Debug, Default)]
pub struct Committed {
    pub changes: Vec<Change>,
    pub ready: Vec<Target>,
    /// More may have happened than is told here.
    pub missed: bool,
    pub timings: Timings,
}

/// An event, and what it was about as it is after it. What another broker committed is shown as it
/// is when it is read, which may be newer than the event, never older.
#[derive(Debug, Clone)]
pub struct Change {
    pub sealed: Sealed,
    /// `None` only where retention has dropped it since.
    pub task: Option<Arc<Task>>,
    /// The handoff that the event is about, if it is about one.
    pub handoff: Option<Arc<Handoff>>,
}

/// How long the steps of a batch took, in microseconds. Zero where it was not measured: what another
/// broker committed, and what was decided again after the disk was full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// How long the first command waited for the batch to begin.
    pub queue_us: u64,
    pub decide_us: u64,
    /// Writing all of it down, the sync included.
    pub commit_us: u64,
    /// Making it durable: the last statement of the transaction.
    pub sync_us: u64,
}
