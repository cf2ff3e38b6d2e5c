// SPDX-License-Identifier: Apache-2.0
//! What a caller gets to see: its own, and what its rules let it read, within its tenant. Everything
//! else is not there.

use std::sync::Arc;

use tasuki_core::ids::{Project, TENANT_DEFAULT};
use tasuki_core::registry::rules::Permission;
use tasuki_core::{Body, Handoff, HandoffId, Position, Refusal, Target, Task, TaskId};
use tasuki_store::audit::Verdict;
use tasuki_store::{Entry, HandoffFilter, PAGE_MAX, TaskFilter};

use super::{Desk, Page, SeenStats};
use crate::caller::Caller;
use crate::error::{Error, denied};
use crate::queries::{ChainEntry, DeadLetter};
use crate::requests::{WaitFor, WaitRequest, Waited};

impl Desk {
    /// Whether a caller is part of a handoff, or may read what is none of its own.
    pub(super) async fn sees(&self, handoff: &Handoff) -> Result<bool, Error> {
        let project = self.project_of(handoff.task_id).await?;
        Ok(self.sees_in(handoff, project.as_ref()))
    }

    fn sees_in(&self, handoff: &Handoff, project: Option<&Project>) -> bool {
        let Some(me) = self.caller.agent() else {
            return handoff.from.tenant() == TENANT_DEFAULT;
        };
        let part = handoff.from == *me
            || handoff.to == Target::Agent(me.clone())
            || handoff.attempts.iter().any(|attempt| attempt.agent == *me);
        handoff.from.tenant() == me.tenant()
            && (part || self.caller.may_to(Permission::Read, handoff.to.name(), project))
    }

    /// Whether a caller is part of a task, or may read of every handoff that it went through.
    async fn sees_task(&self, task: &Task) -> Result<bool, Error> {
        let Some(me) = self.caller.agent() else {
            return Ok(task.owner.tenant() == TENANT_DEFAULT);
        };
        if task.owner.tenant() != me.tenant() {
            return Ok(false);
        }
        let part = task.owner == *me || task.opened_by == *me;
        if part || self.caller.may_all(Permission::Read) {
            return Ok(true);
        }
        let mut of_task =
            HandoffFilter { task: Some(task.id), max: PAGE_MAX, ..Default::default() };
        // Whoever reads of a whole project reads of tasks there that were not handed on yet.
        let project = task.project.as_ref();
        let mut any = project.is_some() && self.caller.may_in(Permission::Read, project);
        loop {
            let handoffs = self.engine.list_handoffs(of_task.clone()).await?;
            if !handoffs.iter().all(|handoff| self.sees_in(handoff, project)) {
                return Ok(false);
            }
            any |= !handoffs.is_empty();
            if handoffs.len() < PAGE_MAX {
                return Ok(any);
            }
            of_task.before = handoffs.last().map(|last| last.id);
        }
    }

    pub async fn handoff(&self, id: HandoffId) -> Result<Arc<Handoff>, Error> {
        let handoff = self.engine.handoff(id).await?;
        if self.sees(&handoff).await? {
            return Ok(handoff);
        }
        Err(Refusal::HandoffNotFound(id).into())
    }

    pub async fn task(&self, id: TaskId) -> Result<Arc<Task>, Error> {
        let task = self.engine.task(id).await?;
        if self.sees_task(&task).await? {
            return Ok(task);
        }
        Err(Refusal::TaskNotFound(id).into())
    }

    pub async fn envelope(&self, id: HandoffId) -> Result<(Arc<Handoff>, Option<Body>), Error> {
        self.handoff(id).await?;
        self.engine.envelope(id).await
    }

    pub async fn results(&self, handoffs: &[Arc<Handoff>]) -> Result<Vec<Option<Body>>, Error> {
        self.engine.results(handoffs).await
    }

    pub async fn wait(&self, wish: WaitRequest) -> Result<Vec<Waited>, Error> {
        let these = wish.these.clone();
        self.sees_all(&these).await?;
        let waited = self.engine.wait(wish).await?;
        // What was visible when the wait began may not be any more.
        self.renewed()?.sees_all(&these).await?;
        Ok(waited)
    }

    async fn sees_all(&self, these: &[WaitFor]) -> Result<(), Error> {
        for this in these {
            match this {
                WaitFor::Handoff(id) => drop(self.handoff(*id).await?),
                WaitFor::Task(id) => drop(self.task(*id).await?),
            }
        }
        Ok(())
    }

    pub async fn list_handoffs(
        &self,
        filter: HandoffFilter,
    ) -> Result<Page<Handoff, HandoffId>, Error> {
        let max = filter.max;
        let filter = HandoffFilter {
            tenant: Some(self.caller.tenant()),
            to: filter.to.map(|to| self.caller.target(&to)),
            from: filter.from.map(|from| self.caller.agent_named(&from)),
            ..filter
        };
        let items = self.engine.list_handoffs(filter).await?;
        let next = (items.len() == max).then(|| items.last().map(|last| last.id)).flatten();
        let mut seen = Vec::with_capacity(items.len());
        for handoff in items {
            if self.sees(&handoff).await? {
                seen.push(handoff);
            }
        }
        Ok(Page { items: seen, next })
    }

    pub async fn list_tasks(&self, filter: TaskFilter) -> Result<Page<Task, TaskId>, Error> {
        let max = filter.max;
        let filter = TaskFilter {
            tenant: Some(self.caller.tenant()),
            owner: filter.owner.map(|owner| self.caller.agent_named(&owner)),
            ..filter
        };
        let found = self.engine.list_tasks(filter).await?;
        let next = (found.len() == max).then(|| found.last().map(|last| last.id)).flatten();
        let mut items = Vec::with_capacity(found.len());
        for task in found {
            if self.sees_task(&task).await? {
                items.push(task);
            }
        }
        Ok(Page { items, next })
    }

    pub async fn dead_letter(&self, id: HandoffId) -> Result<DeadLetter, Error> {
        self.handoff(id).await?;
        self.engine.dead_letter(id).await
    }

    /// Dead letters, newest first.
    pub async fn dead_letters(
        &self,
        filter: HandoffFilter,
    ) -> Result<Page<Handoff, HandoffId>, Error> {
        let state = Some(tasuki_core::handoff::StateName::DeadLettered);
        self.list_handoffs(HandoffFilter { state, ..filter }).await
    }

    pub async fn chain(&self, id: TaskId) -> Result<Vec<ChainEntry>, Error> {
        self.task(id).await?;
        self.engine.chain(id).await
    }

    /// The log holds what all tenants do, so only who looks after all of them follows all of it.
    pub fn may_follow(&self) -> Result<(), Error> {
        match &self.caller {
            Caller::Anyone => Ok(()),
            Caller::Known(_) => self.caller.must(Permission::Read, None),
        }
    }

    /// Whether an event is about something that the caller may see.
    pub async fn sees_event(&self, entry: &Entry) -> bool {
        if self.caller.is_operator() {
            return true;
        }
        let record = &entry.sealed.record;
        if record.task_id == TaskId::STORE {
            return false;
        }
        self.task(record.task_id).await.is_ok()
    }

    pub async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Error> {
        self.may_follow()?;
        self.engine.events(after, max).await
    }

    #[must_use]
    pub fn head(&self) -> Position {
        self.engine.head()
    }

    /// Up to where a follower may rely on what it heard before the end of the log was lost.
    pub async fn log_kept_until(&self) -> Result<Position, Error> {
        self.may_follow()?;
        self.engine.log_kept_until().await
    }

    pub async fn more_events(&self, after: Position) -> bool {
        self.engine.more_events(after).await
    }

    /// Whether the whole log may be read.
    pub fn may_export(&self) -> Result<(), Error> {
        self.operates()
    }

    /// The whole log, of all tenants.
    pub async fn export(
        &self,
        after: Position,
        max: usize,
    ) -> Result<(Vec<String>, Option<Position>), Error> {
        self.operates()?;
        self.engine.export(after, max).await
    }

    pub async fn verify(&self) -> Result<Verdict, Error> {
        self.operates()?;
        self.engine.verify().await
    }

    /// What the caller's tenant uses; of the whole store, an operator learns the rest.
    pub async fn stats(&self) -> Result<SeenStats, Error> {
        self.may_follow()?;
        let tenant = self.caller.tenant();
        let usage = self.engine.store.usage(tenant.clone()).await?;
        let all = self.engine.stats();
        let store = self.caller.is_operator().then_some(all);
        Ok(SeenStats { tenant, usage, disk_full: all.disk_full, store })
    }

    /// Whether the caller may know how much there is of all tenants together.
    #[must_use]
    pub fn counts_all(&self) -> bool {
        self.caller.is_operator()
    }

    pub(crate) fn operates(&self) -> Result<(), Error> {
        if self.caller.is_operator() {
            return Ok(());
        }
        Err(denied("only an administrator of the default tenant may do that"))
    }
}
