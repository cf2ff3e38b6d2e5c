// SPDX-License-Identifier: Apache-2.0
//! How much there is in each state that somebody or something still has to do something about, and
//! since when the oldest of it is there.

use std::sync::Arc;

use tasuki_core::handoff::StateName;
use tasuki_core::ids::TenantId;
use tasuki_core::{Handoff, Task, TaskState, Timestamp};

use crate::listing::LIVE;
use crate::{HandoffFilter, TaskFilter};

/// The states of tasks that are not at their end.
pub(crate) const OPEN: [TaskState; 2] = [TaskState::Open, TaskState::DeadLettered];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count<S> {
    pub state: S,
    pub count: u64,
    /// When the oldest of them was offered or opened.
    pub oldest: Option<Timestamp>,
}

impl<S> Count<S> {
    pub(crate) fn none(state: S) -> Self {
        Self { state, count: 0, oldest: None }
    }

    pub(crate) fn add(&mut self, count: u64, oldest: Option<Timestamp>) {
        self.count += count;
        self.oldest = [self.oldest, oldest].into_iter().flatten().min();
    }
}

/// Handoffs that are not at their end or are dead letters that nobody has decided on, and tasks that
/// are not at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    pub handoffs: Vec<Count<StateName>>,
    pub tasks: Vec<Count<TaskState>>,
}

impl Default for Counts {
    fn default() -> Self {
        let states = LIVE.into_iter().chain([StateName::DeadLettered]);
        Self {
            handoffs: states.map(Count::none).collect(),
            tasks: OPEN.into_iter().map(Count::none).collect(),
        }
    }
}

impl Counts {
    pub(crate) fn handoffs_in(&mut self, state: StateName) -> Option<&mut Count<StateName>> {
        self.handoffs.iter_mut().find(|count| count.state == state)
    }

    pub(crate) fn tasks_in(&mut self, state: TaskState) -> Option<&mut Count<TaskState>> {
        self.tasks.iter_mut().find(|count| count.state == state)
    }

    /// Counted one by one: what every backend must agree with.
    #[must_use]
    pub fn of<'s>(
        tenant: Option<&TenantId>,
        handoffs: impl IntoIterator<Item = &'s Arc<Handoff>>,
        tasks: impl IntoIterator<Item = &'s Arc<Task>>,
    ) -> Self {
        let mut counts = Self::default();
        let tenant = tenant.cloned();
        let undecided =
            HandoffFilter { tenant: tenant.clone(), unreviewed: true, ..HandoffFilter::default() };
        let all = HandoffFilter { tenant: tenant.clone(), ..HandoffFilter::default() };
        for handoff in handoffs {
            let state = handoff.state.name();
            let filter = if LIVE.contains(&state) { &all } else { &undecided };
            if let Some(count) = counts.handoffs_in(state).filter(|_| filter.lets_through(handoff))
            {
                count.add(1, Some(handoff.offered_at));
            }
        }
        let all = TaskFilter { tenant, ..TaskFilter::default() };
        for task in tasks {
            if let Some(count) = counts.tasks_in(task.state).filter(|_| all.lets_through(task)) {
                count.add(1, Some(task.opened_at));
            }
        }
        counts
    }
}
