// SPDX-License-Identifier: Apache-2.0
//! What a task owes to the one above it. It is noted when the task is opened, so that a decision
//! about one task never has to read a whole tree; what becomes of a task when the one above it ends
//! is decided one level at a time, from what both of them say of themselves.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::{Budget, Spent};
use crate::event::{Opened, words};
use crate::handoff::{Handoff, Review, State};
use crate::ids::{HandoffId, Hash, TaskId, Timestamp};
use crate::join::TAINTS_MAX;
use crate::refusal::Refusal;
use crate::task::{Task, TaskState};

/// How many tasks may lie above one.
pub const DEPTH_MAX: usize = 64;
/// How many tasks below one are brought into line with it in one step.
pub const BELOW_MAX: usize = 100;

/// What becomes of a task when the one above it ends without it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnParentEnd {
    /// It is cancelled too.
    #[default]
    Cancel,
    /// It goes on by itself.
    LetGo,
}

words!(OnParentEnd { Cancel = "cancel", LetGo = "let_go" });

impl OnParentEnd {
    fn is_cancel(&self) -> bool {
        *self == Self::Cancel
    }
}

/// What a task hangs from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hangs {
    /// The tasks above it, the nearest first.
    pub above: Vec<TaskId>,
    /// The hop of the task above it that it was opened for, if one was under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<HandoffId>,
    /// What becomes of it when that ends without a result.
    #[serde(default, skip_serializing_if = "OnParentEnd::is_cancel")]
    pub on_parent_end: OnParentEnd,
    /// No hop of it may end later than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The dead letter above it that somebody has to decide on before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_hold: Option<HandoffId>,
}

/// The envelope that the first one of a task follows, where the task was opened below another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Follows {
    pub envelope: Hash,
    pub hop: u32,
    /// The handoff that it came with.
    pub handoff: HandoffId,
}

/// What a task owes to the tasks around it, as far as it has to remember it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// What it hangs from. Not known of tasks from before this was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hangs: Option<Arc<Hangs>>,
    /// No hop of it may end later than this, unless somebody decides so who looks at what failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// The dead letter above it that somebody has to decide on before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_hold: Option<HandoffId>,
    /// What it and everything below it may spend in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What it and everything below it has spent.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub spent: Spent,
    /// The tasks that waited for this one and were given what it came to.
    #[serde(default, skip_serializing_if = "no_tasks")]
    pub passed_to: Arc<Vec<TaskId>>,
    /// What it was tainted by until somebody found that it may go on all the same.
    #[serde(default, skip_serializing_if = "no_handoffs")]
    pub cleared: Arc<Vec<HandoffId>>,
}

fn no_handoffs(handoffs: &Arc<Vec<HandoffId>>) -> bool {
    handoffs.is_empty()
}

fn no_tasks(tasks: &Arc<Vec<TaskId>>) -> bool {
    tasks.is_empty()
}

fn is_nothing(spent: &Spent) -> bool {
    *spent == Spent::default()
}

impl Tree {
    pub(crate) fn opened(opened: &Opened) -> Self {
        let hangs = opened.hangs.clone().map(|hangs| Arc::new(*hangs));
        Self {
            deadline: hangs.as_ref().and_then(|hangs| hangs.deadline),
            on_hold: hangs.as_ref().and_then(|hangs| hangs.on_hold),
            hangs,
            ..Self::default()
        }
    }

    pub(crate) fn pass_to(&mut self, task: TaskId) {
        if !self.passed_to.contains(&task) {
            Arc::make_mut(&mut self.passed_to).push(task);
        }
    }

    pub(crate) fn clear(&mut self, source: HandoffId) {
        if !self.cleared.contains(&source) && self.cleared.len() < TAINTS_MAX {
            Arc::make_mut(&mut self.cleared).push(source);
        }
    }

    /// What may still be spent, where somebody set a bound.
    #[must_use]
    pub fn left(&self) -> Option<Budget> {
        self.budget.map(|budget| budget.less(self.spent))
    }

    /// Bounds what may be spent from here on. A bound that is there already is never widened.
    pub(crate) fn bound(&mut self, left: Budget) {
        let given = left.after(self.spent);
        self.budget = Some(self.budget.map_or(given, |before| before.within(given)));
    }

    /// Says how much may be spent from here on, whatever was said before.
    pub(crate) fn budget_anew(&mut self, left: Budget) {
        self.budget = Some(left.after(self.spent));
    }

    /// Waits for a dead letter above it. If that took the place of the one that it waited for before,
    /// it is what the task hangs from by now.
    pub(crate) fn hold(&mut self, letter: HandoffId) {
        let before = self.on_hold.replace(letter);
        if let Some(hangs) = &mut self.hangs
            && before.is_some()
            && hangs.under == before
        {
            Arc::make_mut(hangs).under = Some(letter);
        }
    }

    /// The one who decided on the letter sent it on: the task goes on below what took its place, and
    /// ends no later than that.
    pub(crate) fn resume(
        &mut self,
        under: Option<HandoffId>,
        deadline: Option<Timestamp>,
        until: Option<Timestamp>,
    ) {
        self.on_hold = None;
        // A task that had no bound gets none by this: a hop of it may be under way for longer.
        let anew = |before: Timestamp| deadline.map_or(before, |new| before.max(new));
        self.deadline = self.deadline.map(|before| until.unwrap_or_else(|| anew(before)));
        if let (Some(hangs), Some(_)) = (&mut self.hangs, under) {
            Arc::make_mut(hangs).under = under;
        }
    }
}

impl Hangs {
    /// What a task hangs from that is opened below another. `live` is the handoff of that one which
    /// is not at its end: the task is opened for it if its owner works on it, and ends no later in
    /// any case.
    pub(crate) fn below(
        parent: &Task,
        live: Option<&Handoff>,
        on_parent_end: OnParentEnd,
    ) -> Result<Self, Refusal> {
        let mut above = vec![parent.id];
        above.extend(parent.above());
        if above.len() > DEPTH_MAX {
            return Err(Refusal::TreeTooDeep { task: parent.id, max: DEPTH_MAX });
        }
        // Whoever asked something works on it, too.
        let hop = live.filter(|live| live.state.worker().is_some());
        let deadline = live.map(|live| live.expires_at).or(parent.tree.deadline);
        let (under, on_hold) = (hop.map(|hop| hop.id), parent.holds_back());
        Ok(Self { above, under, on_parent_end, deadline, on_hold })
    }
}

impl Task {
    /// The tasks above it, the nearest first. Of a task from before they were noted, its parent.
    #[must_use]
    pub fn above(&self) -> &[TaskId] {
        match &self.tree.hangs {
            Some(hangs) => &hangs.above,
            None => self.parent_task_id.as_slice(),
        }
    }

    #[must_use]
    pub fn on_parent_end(&self) -> OnParentEnd {
        self.tree.hangs.as_ref().map_or_else(OnParentEnd::default, |hangs| hangs.on_parent_end)
    }

    /// The dead letter for which everything below it has to wait, if there is one: its own, or one
    /// above it.
    #[must_use]
    pub fn holds_back(&self) -> Option<HandoffId> {
        match self.state {
            TaskState::DeadLettered => self.last.or(self.tree.on_hold),
            TaskState::Open | TaskState::Completed | TaskState::Failed | TaskState::Cancelled => {
                self.tree.on_hold
            }
        }
    }

    #[must_use]
    pub fn under(&self) -> Option<HandoffId> {
        self.tree.hangs.as_ref().and_then(|hangs| hangs.under)
    }
}

/// When a dead letter of a task that is sent again must be finished. Whoever sends on what ran out of
/// time gives it time anew, but no more than what is above it has. `above` are the tasks above, the
/// nearest first.
#[must_use]
pub fn time_again<'t>(
    task: &Task,
    above: impl IntoIterator<Item = Above<'t>>,
    now: Timestamp,
) -> Option<Timestamp> {
    let ends = |it: Above<'t>| match it.task.state.is_terminal() {
        true => None,
        false => it.live.map(|live| live.expires_at).or(it.task.tree.deadline),
    };
    let above = above.into_iter().filter_map(ends);
    task.tree.deadline.into_iter().chain(above).find(|limit| *limit > now)
}

/// What follows for a task from how the one above it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is as it should be.
    Stays,
    Cancel,
    /// Nobody gets it until somebody has decided on this dead letter.
    Hold(HandoffId),
    /// It goes on; below this hop, if another took the place of the one that it was opened for, and
    /// until this time at the latest.
    Resume {
        under: Option<HandoffId>,
        deadline: Option<Timestamp>,
        /// When the hop ends below which it goes on: nothing of it may end later.
        until: Option<Timestamp>,
    },
}

/// What is known of a task for those below it.
#[derive(Debug, Clone, Copy)]
pub struct Above<'t> {
    pub task: &'t Task,
    /// The hop that is under way in it.
    pub live: Option<&'t Handoff>,
}

/// What a task owes to one above it: to its parent, or to one above that, if all between them have
/// ended well and so have nothing to say any more. `hop` is the hop of that one which the task was
/// opened for.
#[must_use]
pub fn fate(above: Above<'_>, hop: Option<&Handoff>, child: &Task) -> Fate {
    let parent = above.task;
    if child.state.is_terminal() || !child.above().contains(&parent.id) {
        return Fate::Stays;
    }
    let ended = match parent.state {
        TaskState::Cancelled | TaskState::Failed => true,
        TaskState::Open | TaskState::DeadLettered => hop.is_some_and(came_to_nothing),
        // What ended well has nothing to say any more; what is above it has, if anything is.
        TaskState::Completed if !parent.above().is_empty() => return Fate::Stays,
        TaskState::Completed => false,
    };
    let hold = match (ended, child.on_parent_end()) {
        (true, OnParentEnd::Cancel) => return Fate::Cancel,
        (true, OnParentEnd::LetGo) => None,
        (false, _) => parent.holds_back(),
    };
    match (hold, child.tree.on_hold) {
        (hold, held) if hold == held => Fate::Stays,
        (Some(letter), _) => Fate::Hold(letter),
        (None, letter) => {
            let adopted = above.live.filter(|_| child.under().is_some() && child.under() == letter);
            let under = adopted.map(|live| live.id);
            let hop = above.live.filter(|live| under.or(child.under()) == Some(live.id));
            let until = hop.map(|live| live.expires_at);
            Fate::Resume { under, deadline: above.live.map(|live| live.expires_at), until }
        }
    }
}

/// Whether a hop ended without a result, and nobody takes it up again.
fn came_to_nothing(hop: &Handoff) -> bool {
    match &hop.state {
        State::Cancelled { .. } | State::Aborted { .. } => true,
        State::DeadLettered { review, .. } => matches!(review, Some(Review::Discarded { .. })),
        State::AwaitingApproval
        | State::Scheduled { .. }
        | State::Pending { .. }
        | State::Claimed(_)
        | State::InProgress(_)
        | State::InputRequired(_)
        | State::Answered(_)
        | State::Failed { .. }
        | State::Completed { .. } => false,
    }
}
