// SPDX-License-Identifier: Apache-2.0
//! By which list a filter is answered, the same for every store that keeps rows. A list is an
//! index: what is looked for, the word it is filed under, and the id. Under one word it is in the
//! order of ids, so a page costs what is on it, however rare it is and however much is stored.

use tasuki_core::TaskState;
use tasuki_core::handoff::StateName;

use crate::{HandoffFilter, TaskFilter};

/// What a dead letter is filed under after somebody decided on it. All others are filed under
/// their state.
const REVIEWED: &str = "reviewed";

/// The states of those that are not at their end.
pub(crate) const LIVE: [StateName; 7] = [
    StateName::AwaitingApproval,
    StateName::Scheduled,
    StateName::Pending,
    StateName::Claimed,
    StateName::InProgress,
    StateName::InputRequired,
    StateName::Answered,
];

/// The list that knows most of what a filter asks. What it does not know is looked at row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandoffList {
    To,
    From,
    Tenant,
    /// Those that are not at their end, of all tenants.
    Live,
    /// The table itself: asked for is everything of all tenants, or all that came to some end.
    /// Only the broker asks for that, to go through all of it.
    All,
}

impl HandoffList {
    pub(crate) fn of(filter: &HandoffFilter) -> Self {
        if filter.to.is_some() {
            Self::To
        } else if filter.from.is_some() {
            Self::From
        } else if filter.tenant.is_some() {
            Self::Tenant
        } else if filter.state.is_some_and(|state| LIVE.contains(&state)) {
            Self::Live
        } else {
            Self::All
        }
    }

    pub(crate) fn index(self) -> Option<&'static str> {
        match self {
            Self::To => Some("handoff_to"),
            Self::From => Some("handoff_from"),
            Self::Tenant => Some("handoff_tenant"),
            Self::Live => Some("handoff_live"),
            Self::All => None,
        }
    }
}

/// The words that a filter's handoffs are filed under; none if nothing can be what it asks for.
pub(crate) fn handoff_words(filter: &HandoffFilter) -> Vec<&'static str> {
    let dead = StateName::DeadLettered;
    match (filter.state, filter.unreviewed) {
        (None, false) => {
            StateName::ALL.iter().map(|state| state.as_str()).chain([REVIEWED]).collect()
        }
        (Some(state), false) if state == dead => vec![dead.as_str(), REVIEWED],
        (Some(state), false) => vec![state.as_str()],
        (Some(state), true) if state != dead => Vec::new(),
        (_, true) => vec![dead.as_str()],
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskList {
    Parent,
    Owner,
    /// Of one tenant: others may have a project of that name, too.
    Project,
    /// The same.
    Correlation,
    /// In the order in which they were opened.
    Channel,
    Tenant,
    All,
}

impl TaskList {
    pub(crate) fn of(filter: &TaskFilter) -> Self {
        if filter.channel.is_some() && filter.after.is_some() {
            Self::Channel
        } else if filter.after.is_some() {
            Self::All
        } else if filter.parent.is_some() {
            Self::Parent
        } else if filter.owner.is_some() {
            Self::Owner
        } else if filter.tenant.is_some() && filter.correlation.is_some() {
            Self::Correlation
        } else if filter.tenant.is_some() && filter.project.is_some() {
            Self::Project
        } else if filter.tenant.is_some() {
            Self::Tenant
        } else {
            Self::All
        }
    }

    pub(crate) fn index(self) -> Option<&'static str> {
        match self {
            Self::Parent => Some("task_parent"),
            Self::Owner => Some("task_owner"),
            Self::Project => Some("task_project"),
            Self::Correlation => Some("task_correlation"),
            Self::Channel => Some("task_channel"),
            Self::Tenant => Some("task_tenant"),
            Self::All => None,
        }
    }

    /// Whether it is in the order of ids under each state.
    pub(crate) fn has_words(self) -> bool {
        match self {
            Self::Parent | Self::Owner | Self::Project | Self::Correlation | Self::Tenant => true,
            Self::Channel | Self::All => false,
        }
    }
}

pub(crate) fn task_words(filter: &TaskFilter) -> Vec<&'static str> {
    match filter.state {
        None => TaskState::ALL.iter().map(|state| state.as_str()).collect(),
        Some(state) => vec![state.as_str()],
    }
}

/// What the names of a tenant begin with.
pub(crate) fn tenant_begins(tenant: &tasuki_core::ids::TenantId) -> String {
    match tenant.as_str() {
        tasuki_core::ids::TENANT_DEFAULT => String::new(),
        tenant => format!("{tenant}/"),
    }
}
