// SPDX-License-Identifier: Apache-2.0
//! What the meters must remember of a handoff that is not at its end: whom it is for, where it stands,
//! and since when.

use serde::{Deserialize, Serialize};

use super::Name;
use crate::event::Offered;
use crate::ids::{TaskId, Timestamp};

/// Where a handoff stands, as those count it who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Place {
    /// For a time, an approval, or other tasks.
    Waiting,
    Queued,
    Claimed,
    Working,
    /// For an answer, or for the asker to come for it.
    Asking,
}

impl Place {
    pub(super) fn is_held(self) -> bool {
        match self {
            Self::Claimed | Self::Working | Self::Asking => true,
            Self::Waiting | Self::Queued => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hop {
    pub(super) task: TaskId,
    pub(super) to: Name,
    pub(super) pipeline: Name,
    pub(super) hop: u32,
    pub(super) offered_at: Timestamp,
    pub(super) place: Place,
    /// When it came to its place; while it is held, when it was claimed.
    pub(super) since: Timestamp,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<Name>,
    /// It was claimed before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) delivered: bool,
    /// What keeps it back: that it must be approved, other tasks, one above it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unapproved: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) joins: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) on_hold: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) starts_at: Option<Timestamp>,
}

impl Hop {
    pub(super) fn new(
        task: TaskId,
        to: Name,
        pipeline: Name,
        offered: &Offered,
        at: Timestamp,
    ) -> Self {
        let mut hop = Self {
            task,
            to,
            pipeline,
            hop: offered.hop,
            offered_at: at,
            place: Place::Waiting,
            since: at,
            holder: None,
            delivered: false,
            unapproved: offered.needs_approval,
            joins: offered.contract.after.is_some(),
            on_hold: false,
            starts_at: offered.not_before,
        };
        hop.ready(at);
        hop
    }

    /// Stands in the queue from now on, unless something keeps it back.
    pub(super) fn ready(&mut self, at: Timestamp) {
        let kept = self.unapproved
            || self.joins
            || self.on_hold
            || self.starts_at.is_some_and(|start| start > at);
        self.moves(if kept { Place::Waiting } else { Place::Queued }, at);
    }

    pub(super) fn moves(&mut self, place: Place, at: Timestamp) {
        if !place.is_held() {
            self.holder = None;
        }
        (self.place, self.since) = (place, at);
    }

    /// Goes on waiting, if it stood in the queue.
    pub(super) fn keep_back(&mut self, at: Timestamp) {
        if self.place == Place::Queued {
            self.moves(Place::Waiting, at);
        }
    }
}
