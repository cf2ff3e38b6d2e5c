// SPDX-License-Identifier: Apache-2.0
//! A piece of work from the user's intent to its end. It has one owner at every event: ownership
//! moves to the receiver when it claims, and back to the sender of that hop when the claim ends
//! without a result.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::envelope::Target;
use crate::event::{Event, Opened, Sealed, TaintPolicy, words};
use crate::handoff::Handoff;
use crate::ids::{
    AgentId, ChannelId, CorrelationId, HandoffId, Hash, Position, Project, TaskId, Timestamp,
};
use crate::refusal::Refusal;
use crate::report::Intent;
use crate::tree::Tree;

/// A piece of work from the user's intent to its end; it has one owner at every moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub state: TaskState,
    pub owner: AgentId,
    /// Who opened it; decides about it when things go wrong.
    pub opened_by: AgentId,
    /// Who decides about it instead of its opener, if somebody does.
    pub coordinator: Option<AgentId>,
    /// The channel on which it was told to many.
    pub channel: Option<ChannelId>,
    pub parent_task_id: Option<TaskId>,
    pub correlation_id: Option<CorrelationId>,
    /// What it belongs to; the tasks below it belong there too.
    pub project: Option<Project>,
    pub intent: Hash,
    /// Where the intent is kept: a body with a member `intent`.
    pub intent_pos: Position,
    pub opened_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// The handoff that is not at its end yet. There is at most one, so there is one owner.
    pub live: Option<HandoffId>,
    /// The last envelope of the chain and its hop.
    pub envelope: Option<(Hash, u32)>,
    /// The handoff that this envelope came with. Not known of tasks from before this was noted.
    pub last: Option<HandoffId>,
    /// Where the result is kept that its owner ended it with.
    pub result_pos: Option<Position>,
    /// What it is built on that no longer holds, and what becomes of that.
    pub taints: Vec<(HandoffId, TaintPolicy)>,
    /// Who took part in its handoffs that are at their end, so that nobody has to list them to tell
    /// who may see the task. Not known of tasks from before this was noted.
    pub past: Option<Arc<Vec<Parties>>>,
    /// What it owes to the tasks around it.
    pub tree: Tree,
    /// How many events there are, and the last one's hash and position.
    pub events: u32,
    pub head: Hash,
    pub last_pos: Position,
}

/// Who took part in a handoff: whom it was for, and the agents that sent or held it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parties {
    pub to: Target,
    pub agents: Vec<AgentId>,
}

impl Parties {
    #[must_use]
    pub fn of(handoff: &Handoff) -> Self {
        let mut agents = vec![handoff.from.clone()];
        for attempt in &handoff.attempts {
            if !agents.contains(&attempt.agent) {
                agents.push(attempt.agent.clone());
            }
        }
        Self { to: handoff.to.clone(), agents }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskState {
    Open,
    /// Its handoff is a dead letter: somebody must decide.
    DeadLettered,
    Completed,
    Failed,
    Cancelled,
}

words!(TaskState {
    Open = "open",
    DeadLettered = "dead_lettered",
    Completed = "completed",
    Failed = "failed",
    Cancelled = "cancelled",
});

impl TaskState {
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Open | Self::DeadLettered => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

impl Task {
    /// A new task, from the event that opened it. That event still has to be applied.
    #[must_use]
    pub fn opened(opened: &Opened, sealed: &Sealed) -> Self {
        Self {
            id: sealed.record.task_id,
            state: TaskState::Open,
            owner: opened.owner.clone(),
            opened_by: opened.owner.clone(),
            coordinator: opened.coordinator.clone(),
            channel: opened.channel.clone(),
            parent_task_id: opened.parent_task_id,
            correlation_id: opened.correlation_id.clone(),
            project: opened.project.clone(),
            intent: opened.intent,
            intent_pos: sealed.position,
            opened_at: sealed.record.at,
            ended_at: None,
            live: None,
            envelope: opened.follows.map(|it| (it.envelope, it.hop)),
            last: opened.follows.map(|it| it.handoff),
            result_pos: None,
            taints: Vec::new(),
            past: Some(Arc::default()),
            tree: Tree::opened(opened),
            events: 0,
            head: Hash::ZERO,
            last_pos: sealed.position,
        }
    }

    /// The chain of the store's own events, which nobody works on.
    pub(crate) fn of_store(sealed: &Sealed) -> Self {
        let broker = "broker".parse::<AgentId>().expect("a plain name");
        let opened = Opened {
            owner: broker,
            intent: Hash::ZERO,
            correlation_id: None,
            parent_task_id: None,
            coordinator: None,
            channel: None,
            project: None,
            branch_of: None,
            hangs: None,
            follows: None,
            key: None,
        };
        Self { state: TaskState::Completed, ..Self::opened(&opened, sealed) }
    }

    /// Moves to where an event leads. A task goes back to the sender of the event's handoff when a
    /// claim ends without a result.
    pub fn apply(&mut self, sealed: &Sealed, handoff: Option<&Handoff>) {
        let record = &sealed.record;
        self.events = record.index + 1;
        self.head = sealed.hash;
        self.last_pos = sealed.position;
        match &record.event {
            Event::TransferOffered(offered) | Event::CallOffered(offered) => {
                self.state = TaskState::Open;
                self.live = record.handoff_id;
                self.envelope = Some((offered.envelope, offered.hop));
                self.last = record.handoff_id;
                match offered.contract.budget {
                    // Who decides on a dead letter may give it a budget anew.
                    Some(budget) if offered.amends.is_some() => self.tree.budget_anew(budget),
                    Some(budget) => self.tree.bound(budget),
                    None => {}
                }
                // Who decides on a dead letter gives it time anew.
                let again = offered.redrive_of.is_some() || offered.amends.is_some();
                self.tree.deadline = self.tree.deadline.map(|until| match again {
                    true => until.max(offered.expires_at),
                    false => until,
                });
            }
            // A claim that must be read back counts when it was.
            Event::Claimed(claimed) => {
                if handoff.is_none_or(|handoff| handoff.contract.agreement.read_back.is_none()) {
                    self.owner = claimed.agent.clone();
                }
            }
            Event::Started => {
                if let Some(claim) = handoff.and_then(|handoff| handoff.state.claim()) {
                    self.owner = claim.agent.clone();
                }
            }
            Event::Completed { next, .. } => {
                self.leave(handoff);
                match next {
                    // What follows a hop ends no later than the hop would have.
                    Some(_) => {
                        self.tree.deadline =
                            handoff.map(|hop| hop.expires_at).or(self.tree.deadline)
                    }
                    None => self.end(TaskState::Completed, record.at),
                }
            }
            Event::AttemptFailed { .. }
            | Event::Declined { .. }
            | Event::Released { .. }
            | Event::PutBack { .. }
            | Event::KeepEnded
            | Event::Escalated { .. }
            | Event::LeaseLost { .. } => self.give_back(handoff),
            Event::Tainted { source, policy } => self.taints.push((*source, *policy)),
            Event::TaintCleared { source, .. } => {
                self.taints.retain(|(it, _)| it != source);
                self.tree.clear(*source);
            }
            Event::DeadLettered { .. } => {
                self.give_back(handoff);
                self.leave(handoff);
                self.state = TaskState::DeadLettered;
            }
            Event::Cancelled { .. } => {
                self.give_back(handoff);
                self.leave(handoff);
                if handoff.is_some_and(|handoff| handoff.opened_task) {
                    self.end(TaskState::Cancelled, record.at);
                }
            }
            Event::Aborted { .. } => {
                self.give_back(handoff);
                self.leave(handoff);
                self.end(TaskState::Failed, record.at);
            }
            Event::Discarded { .. } => {
                // The task may have gone on by another handoff since this one died.
                let last = handoff.map(|handoff| (handoff.envelope, handoff.hop));
                if self.state == TaskState::DeadLettered && self.envelope == last {
                    self.end(TaskState::Failed, record.at);
                }
            }
            Event::TaskCancelled { .. } => self.end(TaskState::Cancelled, record.at),
            Event::TaskCompleted { result } => {
                self.result_pos = result.map(|_| sealed.position);
                self.end(TaskState::Completed, record.at);
            }
            Event::Spent(spent) => self.tree.spent = self.tree.spent.and(spent.used),
            Event::PassedTo { task } => self.tree.pass_to(*task),
            Event::TaskHeld { letter } => self.tree.hold(*letter),
            Event::TaskResumed { under, deadline, until } => {
                self.tree.resume(*under, *deadline, *until);
            }
            Event::TaskOpened(_)
            | Event::Countered(_)
            | Event::CounterAccepted { .. }
            | Event::CounterRefused { .. }
            | Event::Approved
            | Event::Delivered { .. }
            | Event::Readied
            | Event::WaitOver
            | Event::Joined { .. }
            | Event::Progressed { .. }
            // Whoever asks stays the owner, also while the answer is kept for it.
            | Event::Asked(_)
            | Event::Answered { .. }
            | Event::AnswerDefaulted { .. }
            | Event::MessageSent { .. }
            | Event::MessagesAcknowledged { .. }
            | Event::Attached(_)
            | Event::RetryScheduled { .. }
            | Event::Expired
            | Event::LateReport { .. }
            | Event::Redriven { .. }
            | Event::Retracted { .. }
            | Event::ReviewTaken { .. }
            | Event::ReviewReleased
            | Event::LetterClosed { .. }
            | Event::Reserved { .. }
            | Event::Unreserved { .. }
            | Event::EpochRaised { .. }
            | Event::Acknowledged(_)
            | Event::RegistryChanged(_)
            | Event::DocumentWritten(_)
            | Event::DocumentMarked { .. }
            | Event::DocumentSuperseded { .. }
            | Event::DocumentDeleted { .. }
            | Event::ConstraintLifted { .. }
            | Event::TrimFetched { .. }
            | Event::ClaimTold { .. }
            | Event::Erased(_) => {}
        }
    }

    /// Who decides about it when things go wrong.
    #[must_use]
    pub fn decider(&self) -> &AgentId {
        self.coordinator.as_ref().unwrap_or(&self.opened_by)
    }

    /// Whether somebody has to look at what comes next before anybody gets it.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.taints.iter().any(|(_, policy)| *policy == TaintPolicy::Block)
    }

    /// Refuses words that are not the user's own.
    pub fn keeps_intent(&self, given: &str) -> Result<(), Refusal> {
        if Intent::address(given) == self.intent {
            Ok(())
        } else {
            Err(Refusal::IntentAltered { task: self.id })
        }
    }

    fn give_back(&mut self, handoff: Option<&Handoff>) {
        if let Some(handoff) = handoff {
            self.owner = handoff.from.clone();
        }
    }

    /// No handoff is under way any more.
    fn leave(&mut self, handoff: Option<&Handoff>) {
        self.live = None;
        let Some(past) = &mut self.past else { return };
        match handoff.map(Parties::of) {
            Some(parties) if past.contains(&parties) => {}
            Some(parties) => Arc::make_mut(past).push(parties),
            None => self.past = None,
        }
    }

    fn end(&mut self, state: TaskState, at: Timestamp) {
        self.state = state;
        self.ended_at = Some(at);
        self.tree.on_hold = None;
    }
}
