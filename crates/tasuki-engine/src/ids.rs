// SPDX-License-Identifier: Apache-2.0
//! Ids and randomness enter here and nowhere else.

use tasuki_core::{ClaimId, HandoffId, TaskId};

pub trait IdSource: Send + Sync + 'static {
    /// A new id that sorts after the ones before it.
    fn next(&self) -> u128;
    /// Bits that nobody can guess.
    fn random(&self) -> u128;
}

impl dyn IdSource {
    pub(crate) fn task(&self) -> TaskId {
        TaskId(self.next())
    }
    pub(crate) fn handoff(&self) -> HandoffId {
        HandoffId(self.next())
    }
    pub(crate) fn claim(&self) -> ClaimId {
        ClaimId(self.random())
    }
    pub(crate) fn entropy(&self) -> u64 {
        u64::try_from(self.random() >> 64).expect("the upper half fits")
    }
}

/// UUIDs of version 7, and a generator in the process that the system seeds: asking the system for
/// each id would be a system call for each request.
pub struct SystemIds;

impl IdSource for SystemIds {
    fn next(&self) -> u128 {
        uuid::Uuid::now_v7().as_u128()
    }

    fn random(&self) -> u128 {
        rand::random()
    }
}
