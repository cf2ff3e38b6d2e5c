// SPDX-License-Identifier: Apache-2.0
//! What becomes of the tasks below one. The core decides it, a bounded number of tasks at a time; here
//! they are found. Each level follows from what the log says of the one above, so the follower goes on
//! with what a crash left unfinished.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tasuki_core::budget::Budget;
use tasuki_core::canonical::Body;
use tasuki_core::commands::{Command, SPREAD_MAX, SettleBelow, SpreadTaint};
use tasuki_core::event::Actor;
use tasuki_core::handoff::AttemptEnd;
use tasuki_core::report::Note;
use tasuki_core::tree::{self, Above, BELOW_MAX, Fate, fate};
use tasuki_core::{Event, Handoff, HandoffId, Refusal, Task, TaskId, TaskState, Timestamp};
use tasuki_store::{Needs, Sight, TaskFilter};

use crate::engine::Engine;
use crate::error::Error;
use crate::requests::Proof;

/// How many tasks are brought into line before a request is answered. The rest follows.
const AT_ONCE_MAX: usize = 1000;

impl Engine {
    /// Brings everything below a task into line with it, as far as that can be waited for.
    pub(crate) async fn settle_tree(&self, root: TaskId) {
        let mut open = VecDeque::from([root]);
        let mut done = 0;
        while let Some(parent) = open.pop_front().filter(|_| done < AT_ONCE_MAX) {
            match self.settle_below(parent).await {
                Ok(moved) => {
                    done += moved.len();
                    open.extend(moved);
                }
                Err(error) => {
                    tracing::warn!(%error, task = %parent, "what is below it follows later");
                    return;
                }
            }
        }
    }

    /// Brings what is below a task into line with it: what is right below, and what is below others
    /// that have ended well. Says which tasks that moved.
    pub(crate) async fn settle_below(&self, id: TaskId) -> Result<Vec<TaskId>, Error> {
        let id = self.with_a_say(id).await?;
        let sight = self.look(Needs::task(id)).await?;
        let Some(parent) = sight.task(id) else { return Ok(Vec::new()) };
        let live = sight.under_way(parent).map(|live| &**live);
        let above = Above { task: parent, live };
        let mut moved = Vec::new();
        let mut open = VecDeque::from([id]);
        while let Some(of) = open.pop_front() {
            let mut filter =
                TaskFilter { parent: Some(of), max: BELOW_MAX, ..TaskFilter::default() };
            loop {
                let page = self.store.list_tasks(filter.clone()).await?;
                moved.extend(self.settle_page(above, &page).await?);
                let ended = page.iter().filter(|task| task.state == TaskState::Completed);
                open.extend(ended.map(|task| task.id));
                match page.last() {
                    Some(last) if page.len() == BELOW_MAX => filter.before = Some(last.id),
                    Some(_) | None => break,
                }
            }
        }
        Ok(moved)
    }

    /// The task whose word counts for what is below one: what ended well leaves it to the next one
    /// above that has not.
    async fn with_a_say(&self, id: TaskId) -> Result<TaskId, Error> {
        let sight = self.look(Needs::task(id)).await?;
        let ended = |task: &&Arc<Task>| task.state == TaskState::Completed;
        let Some(task) = sight.task(id).filter(ended) else { return Ok(id) };
        let above = self.look(Needs::default().and_tasks(task.above().iter().copied())).await?;
        let mut say = id;
        for id in task.above() {
            say = *id;
            if above.task(*id).is_none_or(|task| task.state != TaskState::Completed) {
                break;
            }
        }
        Ok(say)
    }

    async fn settle_page(
        &self,
        above: Above<'_>,
        page: &[Arc<Task>],
    ) -> Result<Vec<TaskId>, Error> {
        let open: Vec<_> = page.iter().filter(|task| !task.state.is_terminal()).collect();
        let hops = self.hops_of(&open).await?;
        let hop = |child: &Task| child.under().and_then(|id| hops.get(&id)).map(|hop| &**hop);
        let fates = open.iter().map(|child| (child.id, fate(above, hop(child), child)));
        let fates: Vec<_> = fates.filter(|(_, fate)| *fate != Fate::Stays).collect();
        if fates.is_empty() {
            return Ok(Vec::new());
        }
        let below: Vec<_> = fates.iter().map(|(id, _)| *id).collect();
        let reason = match fates.iter().any(|(_, fate)| *fate == Fate::Cancel) {
            true => self.why_it_ended(above.task).await?,
            false => None,
        };
        let dead = |task: &&&Arc<Task>| task.state == TaskState::DeadLettered;
        let letters = open.iter().filter(dead).filter_map(|task| task.last);
        let hops = hops.into_keys().chain(letters).collect();
        let settle = SettleBelow { parent: above.task.id, below: below.clone(), hops, reason };
        self.one(Command::of_broker(settle)).await?;
        Ok(below)
    }

    async fn hops_of(
        &self,
        tasks: &[&Arc<Task>],
    ) -> Result<BTreeMap<HandoffId, Arc<Handoff>>, Error> {
        let ids: BTreeSet<_> = tasks.iter().filter_map(|task| task.under()).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let sight = self.look(Needs::handoffs(ids.iter().copied())).await?;
        let found = ids.into_iter().filter_map(|id| Some((id, sight.handoff(id)?.clone())));
        Ok(found.collect())
    }

    /// Why a task, or its last hop, came to nothing, in words for those who work below it.
    async fn why_it_ended(&self, task: &Task) -> Result<Option<Body>, Error> {
        let chain = self.store.chain(task.id).await?;
        let ended = chain.iter().rev().find_map(|entry| {
            let record = &entry.sealed.record;
            let (what, said) = match &record.event {
                Event::TaskCancelled { reason } | Event::Cancelled { reason } => {
                    ("was cancelled", reason.is_some())
                }
                Event::Aborted { reason } => ("was aborted", reason.is_some()),
                Event::Discarded { .. } => ("failed, and was put away", true),
                _ => return None,
            };
            Some((what, said.then_some(entry.sealed.position), &record.actor))
        });
        let Some((what, said, actor)) = ended else { return Ok(None) };
        let said = match said {
            Some(at) => self.store.bodies(vec![at]).await?.pop().flatten(),
            None => None,
        };
        // What the broker said of a task above is said of those below it, too.
        if let (Actor::Broker, Some(said)) = (actor, &said) {
            return Ok(Some(said.clone()));
        }
        let note: Option<Note> = said.and_then(|said| serde_json::from_str(said.text()).ok());
        let why = note.map_or_else(String::new, |note| format!(": {}", note.text));
        Ok(Some(Body::of(&Note { text: format!("task {} above it {what}{why}", task.id) })))
    }

    /// What a task may still spend: as much as it and all those above it allow.
    pub(crate) async fn left_of(&self, task: &Task) -> Result<Option<Budget>, Error> {
        self.left_for(task, None).await
    }

    /// The same, where the task gets a budget anew.
    pub(crate) async fn left_for(
        &self,
        task: &Task,
        anew: Option<Budget>,
    ) -> Result<Option<Budget>, Error> {
        let above = match task.above().is_empty() {
            true => Sight::default(),
            false => self.look(Needs::default().and_tasks(task.above().iter().copied())).await?,
        };
        let above = task.above().iter().filter_map(|id| above.task(*id)).map(|task| &**task);
        let own = anew.or_else(|| task.tree.left());
        let left = own.into_iter().chain(above.filter_map(|task| task.tree.left()));
        Ok(left.reduce(Budget::within))
    }

    /// When a dead letter of a task that is sent again must be finished.
    pub(crate) async fn time_again(&self, task: &Task) -> Result<Option<Timestamp>, Error> {
        let sight = self.look(Needs::default().and_tasks(task.above().iter().copied())).await?;
        let above = task.above().iter().filter_map(|id| sight.task(*id)).map(|task| {
            let live = sight.under_way(task).map(|live| &**live);
            Above { task, live }
        });
        Ok(tree::time_again(task, above, self.now()))
    }

    /// Tells those that are built on what a task came to what taints it. Says whom that was news to.
    pub(crate) async fn spread_taints(&self, id: TaskId) -> Result<Vec<TaskId>, Error> {
        let sight = self.look(Needs::task(id)).await?;
        let Some(task) = sight.task(id).filter(|task| !task.taints.is_empty()) else {
            return Ok(Vec::new());
        };
        let above = task.parent_task_id.into_iter();
        let built: Vec<_> = above.chain(task.tree.passed_to.iter().copied()).collect();
        let mut told = Vec::new();
        for some in built.chunks(SPREAD_MAX) {
            let those = self.look(Needs::default().and_tasks(some.iter().copied())).await?;
            let news = |id: &&TaskId| {
                let to = those.task(**id).filter(|to| task.is_part_of(to));
                to.is_some_and(|to| !to.not_tainted_by(task.taints.iter().copied()).is_empty())
            };
            let to: Vec<_> = some.iter().filter(news).copied().collect();
            if to.is_empty() {
                continue;
            }
            told.extend(&to);
            let spread = SpreadTaint { from: id, to, sources: Vec::new() };
            self.one(Command::of_broker(spread)).await?;
        }
        told.extend(self.spread_below(task).await?);
        Ok(told)
    }

    /// The same for those that were opened below it when it was built on that already.
    async fn spread_below(&self, task: &Task) -> Result<Vec<TaskId>, Error> {
        let mut told = Vec::new();
        let mut filter =
            TaskFilter { parent: Some(task.id), max: SPREAD_MAX, ..TaskFilter::default() };
        loop {
            let page = self.store.list_tasks(filter.clone()).await?;
            let open: Vec<_> = page.iter().filter(|below| !below.state.is_terminal()).collect();
            for some in task.taints.chunks(SPREAD_MAX).filter(|_| !open.is_empty()) {
                let sources: Vec<_> = some.iter().map(|(source, _)| *source).collect();
                let known = self.look(Needs::handoffs(sources.iter().copied())).await?;
                let news = |below: &&&Arc<Task>| {
                    let built = |source: &HandoffId| {
                        known.handoff(*source).is_some_and(|it| below.is_opened_on(task, it))
                    };
                    let by = some.iter().copied().filter(|(source, _)| built(source));
                    !below.not_tainted_by(by).is_empty()
                };
                let to: Vec<_> = open.iter().filter(news).map(|below| below.id).collect();
                if !to.is_empty() {
                    told.extend(&to);
                    let spread = SpreadTaint { from: task.id, to, sources };
                    self.one(Command::of_broker(spread)).await?;
                }
            }
            match page.last() {
                Some(last) if page.len() == SPREAD_MAX => filter.before = Some(last.id),
                Some(_) | None => return Ok(told),
            }
        }
    }

    /// The same, and on to what is built on those, as far as that can be waited for.
    pub(crate) async fn spread_all(&self, from: TaskId) {
        let mut open = VecDeque::from([from]);
        let mut done = 0;
        while let Some(id) = open.pop_front().filter(|_| done < AT_ONCE_MAX) {
            match self.spread_taints(id).await {
                Ok(told) => {
                    done += told.len().max(1);
                    open.extend(told);
                }
                Err(error) => {
                    tracing::warn!(%error, task = %id, "what is built on it is told later");
                    return;
                }
            }
        }
    }

    /// Tells a holder whose claim no longer holds why that is, where somebody said why.
    pub(crate) async fn with_why(&self, error: Error, id: HandoffId, proof: Proof) -> Error {
        let (Error::Refused(refusal) | Error::Store(tasuki_store::Error::Refused(refusal))) =
            &error
        else {
            return error;
        };
        let Refusal::StaleClaim { .. } = refusal else { return error };
        let Ok(Some(handoff)) = self.store.handoff(id).await else { return error };
        let attempt = handoff.attempts.iter().find(|it| it.claim_id == proof.claim_id);
        let Some(ended) = attempt.and_then(|attempt| attempt.ended.as_ref()) else { return error };
        let told = match (ended.how, ended.report) {
            (AttemptEnd::Cancelled | AttemptEnd::Aborted, Some((at, _))) => {
                self.store.bodies(vec![at]).await.ok().and_then(|mut all| all.pop().flatten())
            }
            _ => None,
        };
        let note: Option<Note> = told.and_then(|told| serde_json::from_str(told.text()).ok());
        let (how, reason) = (ended.how, note.map(|note| note.text));
        Error::Ended { refusal: refusal.clone(), how, reason }
    }
}
