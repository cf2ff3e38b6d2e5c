// SPDX-License-Identifier: Apache-2.0
//! What a caller gets to see: its own, and what its rules let it read, within its tenant. Everything
//! else is not there.

use std::sync::Arc;

use tasuki_core::cursor::Epochs;
use tasuki_core::ids::{Project, TENANT_DEFAULT};
use tasuki_core::registry::rules::Permission;
use tasuki_core::{
    AgentId, Body, Cursor, Handoff, HandoffId, Position, Refusal, Target, Task, TaskId,
};
use tasuki_protocol::Problem;
use tasuki_store::audit::Verdict;
use tasuki_store::{Entry, HandoffFilter, Needs, PAGE_MAX, Sight, TaskFilter};

use super::{Desk, Page, SeenStats};
use crate::caller::Caller;
use crate::error::{Error, denied};
use crate::operations::Subject;
use crate::queries::{ChainEntry, DeadLetter, Placed};
use crate::requests::{WaitFor, WaitRequest, Waited};

/// How many bytes of results one reply carries at most, unless one alone has more.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many results are read from the store at a time.
const READ_AT_ONCE: usize = 32;

impl Desk {
    /// Whether a caller is part of a handoff, or may read what is none of its own.
    pub(crate) fn sees(&self, handoff: &Handoff, task: Option<&Task>) -> bool {
        let project = task.and_then(|task| task.project.as_ref());
        // Whoever has to decide about it is part of it.
        let coordinator = task.and_then(|task| task.coordinator.as_ref());
        self.sees_parties(handoff.from.tenant(), &handoff.to, project, |me| {
            handoff.from == *me
                || coordinator == Some(me)
                || handoff.contract.approvers.contains(me)
                || handoff.attempts.iter().any(|attempt| attempt.agent == *me)
        })
    }

    fn sees_parties(
        &self,
        tenant: &str,
        to: &Target,
        project: Option<&Project>,
        took_part: impl Fn(&AgentId) -> bool,
    ) -> bool {
        let Some(me) = self.caller.agent() else { return tenant == TENANT_DEFAULT };
        tenant == me.tenant()
            && (matches!(to, Target::Agent(to) if to == me)
                || took_part(me)
                || self.caller.may_to(Permission::Read, to.name(), project))
    }

    /// Whether a caller is part of a task, or may read of every handoff that it went through. The
    /// image of a task from before its parties were noted cannot tell.
    fn sees_task(&self, task: &Task, under_way: Option<&Handoff>) -> Option<bool> {
        let Some(me) = self.caller.agent() else {
            return Some(task.owner.tenant() == TENANT_DEFAULT);
        };
        if task.owner.tenant() != me.tenant() {
            return Some(false);
        }
        let coordinates = task.coordinator.as_ref() == Some(me);
        let part = task.owner == *me || task.opened_by == *me || coordinates;
        if part || self.caller.may_all(Permission::Read) {
            return Some(true);
        }
        if under_way.is_some_and(|handoff| !self.sees(handoff, Some(task))) {
            return Some(false);
        }
        let past = task.past.as_ref().filter(|_| task.live == under_way.map(|it| it.id))?;
        let project = task.project.as_ref();
        let seen = past.iter().all(|parties| {
            let took_part = |me: &AgentId| parties.agents.contains(me);
            self.sees_parties(task.owner.tenant(), &parties.to, project, took_part)
        });
        // Whoever reads of a whole project reads of tasks there that were not handed on yet.
        let handed_on = under_way.is_some() || !past.is_empty();
        let all = || project.is_some() && self.caller.may_in(Permission::Read, project);
        Some(seen && (handed_on || all()))
    }

    /// The same, where the image cannot tell.
    async fn sees_listed(&self, task: &Task) -> Result<bool, Error> {
        let mut of_task =
            HandoffFilter { task: Some(task.id), max: PAGE_MAX, ..Default::default() };
        let project = task.project.as_ref();
        let mut any = project.is_some() && self.caller.may_in(Permission::Read, project);
        loop {
            let handoffs = self.engine.list_handoffs(of_task.clone()).await?;
            if !handoffs.iter().all(|handoff| self.sees(handoff, Some(task))) {
                return Ok(false);
            }
            any |= !handoffs.is_empty();
            if handoffs.len() < PAGE_MAX {
                return Ok(any);
            }
            of_task.before = handoffs.last().map(|last| last.id);
        }
    }

    /// Whether a caller may see a task in sight.
    pub(crate) async fn sees_task_in(&self, sight: &Sight, task: &Task) -> Result<bool, Error> {
        match self.sees_task(task, sight.under_way(task).map(|handoff| &**handoff)) {
            Some(seen) => Ok(seen),
            None => self.sees_listed(task).await,
        }
    }

    /// A handoff in sight, if the caller may see it. What it may not see is not there.
    pub(crate) fn handoff_in<'s>(
        &self,
        sight: &'s Sight,
        id: HandoffId,
    ) -> Result<&'s Arc<Handoff>, Error> {
        let seen = |handoff: &&Arc<Handoff>| {
            self.sees(handoff, sight.task_of(handoff).map(|task| &**task))
        };
        Ok(sight.handoff(id).filter(seen).ok_or(Refusal::HandoffNotFound(id))?)
    }

    /// A task in sight, if the caller may see it.
    pub(crate) async fn task_in<'s>(
        &self,
        sight: &'s Sight,
        id: TaskId,
    ) -> Result<&'s Arc<Task>, Error> {
        let task = sight.task(id).ok_or(Refusal::TaskNotFound(id))?;
        match self.sees_task_in(sight, task).await? {
            true => Ok(task),
            false => Err(Refusal::TaskNotFound(id).into()),
        }
    }

    /// What is said about a problem with something. Who may not see it hears that it is not there,
    /// whatever else is wrong: a reason would tell that it is, and how it is.
    pub(crate) async fn unless_hidden(
        &self,
        subject: Option<Subject>,
        problem: Problem,
    ) -> Problem {
        let Some(subject) = subject.filter(|_| self.caller.agent().is_some()) else {
            return problem;
        };
        let (id, not_there): (_, Error) = match subject {
            Subject::Handoff(id) => (id.to_string(), Refusal::HandoffNotFound(id).into()),
            Subject::Task(id) => (id.to_string(), Refusal::TaskNotFound(id).into()),
        };
        let speaks_of_it = problem.message.contains(&id)
            || serde_json::to_string(&problem.details).is_ok_and(|it| it.contains(&id));
        if !speaks_of_it {
            return problem;
        }
        let seen = match subject {
            Subject::Handoff(id) => self.may_know(id).await,
            Subject::Task(id) => self.task(id).await.map(drop),
        };
        match seen {
            Err(Error::Refused(Refusal::HandoffNotFound(_) | Refusal::TaskNotFound(_))) => {
                not_there.into()
            }
            Ok(()) | Err(_) => problem,
        }
    }

    /// Whether the caller may know of a handoff: it may see it, or it is among those whom it is for.
    async fn may_know(&self, id: HandoffId) -> Result<(), Error> {
        let sight = self.engine.look(Needs::handoff(id)).await?;
        let for_me = sight.handoff(id).is_some_and(|handoff| {
            let among = |target: &Target| match target {
                Target::Agent(agent) => self.caller.agent() == Some(agent),
                Target::Capability(capability) => {
                    capability.tenant() == self.caller.tenant().as_str()
                        && self.caller.may(Permission::Claim, Some(capability.name()))
                }
            };
            among(&handoff.to) || handoff.contract.routing.fallbacks.iter().any(among)
        });
        if for_me { Ok(()) } else { self.handoff_in(&sight, id).map(drop) }
    }

    pub async fn handoff(&self, id: HandoffId) -> Result<Arc<Handoff>, Error> {
        let sight = self.engine.look(Needs::handoff(id)).await?;
        self.handoff_in(&sight, id).cloned()
    }

    pub async fn task(&self, id: TaskId) -> Result<Arc<Task>, Error> {
        let sight = self.engine.look(Needs::task(id)).await?;
        self.task_in(&sight, id).await.cloned()
    }

    /// Waits until more happened to a task than the caller knows of. Whether it did; if not, the time
    /// was up or the broker goes away.
    pub async fn task_moved(&self, id: TaskId, known: u32, wait_ms: u64) -> Result<bool, Error> {
        self.engine.until_moved(self, id, known, wait_ms).await
    }

    /// Whether the broker goes away, so that nothing more comes of a wait.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        *self.engine.closing.borrow()
    }

    /// The result that the owner of a task ended it with.
    pub async fn task_result(&self, task: &Task) -> Result<Option<Body>, Error> {
        let Some(at) = task.result_pos else { return Ok(None) };
        Ok(self.engine.store.bodies(vec![at]).await?.pop().flatten())
    }

    pub async fn envelope(&self, id: HandoffId) -> Result<(Arc<Handoff>, Option<Body>), Error> {
        let sight = self.engine.look(Needs::handoff(id).with_envelopes()).await?;
        let handoff = self.handoff_in(&sight, id)?;
        Ok((handoff.clone(), sight.envelope(handoff).cloned()))
    }

    pub async fn results(&self, handoffs: &[Arc<Handoff>]) -> Result<Vec<Option<Body>>, Error> {
        self.engine.results(handoffs).await
    }

    /// The results of some handoffs, as far as they fit into one reply.
    pub async fn outputs(&self, handoffs: &[Arc<Handoff>]) -> Result<Vec<Option<Body>>, Error> {
        let mut outputs = Vec::with_capacity(handoffs.len());
        let mut bytes = 0;
        for some in handoffs.chunks(READ_AT_ONCE) {
            if bytes >= OUTPUT_BYTES_MAX {
                outputs.resize(handoffs.len(), None);
                break;
            }
            for output in self.results(some).await? {
                let more = output.as_ref().map_or(0, |body| body.text().len());
                let fits = bytes == 0 || bytes + more <= OUTPUT_BYTES_MAX;
                bytes += more;
                outputs.push(output.filter(|_| fits));
            }
        }
        Ok(outputs)
    }

    /// A handoff and its result, if it has one.
    pub async fn handoff_with_result(
        &self,
        id: HandoffId,
    ) -> Result<(Arc<Handoff>, Option<Body>), Error> {
        let sight = self.engine.look(Needs::handoff(id).with_results()).await?;
        let handoff = self.handoff_in(&sight, id)?;
        Ok((handoff.clone(), sight.result(handoff).cloned()))
    }

    pub async fn wait(&self, wish: WaitRequest) -> Result<Vec<Waited>, Error> {
        self.engine.wait_for(Some(self), wish).await
    }

    /// Whether all that is waited for is in sight of the caller.
    pub(crate) async fn sees_all(&self, these: &[WaitFor], sight: &Sight) -> Result<(), Error> {
        for this in these {
            match this {
                WaitFor::Handoff(id) => drop(self.handoff_in(sight, *id)?),
                WaitFor::Task(id) => drop(self.task_in(sight, *id).await?),
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
        // Where neither projects nor coordinators make a difference, the rows themselves tell.
        let minds = self.caller.is_project_scoped() || !self.caller.may_all(Permission::Read);
        let sight = match minds {
            true => {
                let tasks = items.iter().map(|handoff| handoff.task_id);
                self.engine.look(Needs::default().and_tasks(tasks)).await?
            }
            false => Sight::default(),
        };
        let seen =
            |handoff: &Arc<Handoff>| self.sees(handoff, sight.task_of(handoff).map(|task| &**task));
        Ok(Page { items: items.into_iter().filter(seen).collect(), next })
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
        // Whoever reads everything need not look at what is under way.
        let sight = match self.caller.may_all(Permission::Read) {
            true => Sight::default(),
            false => {
                let under_way = found.iter().filter_map(|task| task.live);
                self.engine.look(Needs::handoffs(under_way)).await?
            }
        };
        let mut items = Vec::with_capacity(found.len());
        for task in found {
            if self.sees_task_in(&sight, &task).await? {
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

    /// Whether an event is about something that the caller may see, by a look at the tasks of it and
    /// its neighbours.
    pub async fn sees_event(&self, entry: &Entry, sight: &Sight) -> bool {
        if self.caller.is_operator() {
            return true;
        }
        let record = &entry.sealed.record;
        record.task_id != TaskId::STORE && self.task_in(sight, record.task_id).await.is_ok()
    }

    pub async fn events(&self, after: Position, max: usize) -> Result<Vec<Entry>, Error> {
        self.may_follow()?;
        self.engine.events(after, max).await
    }

    /// Events after a position, with one look at everything that they are about.
    pub async fn events_with_tasks(
        &self,
        after: Position,
        max: usize,
    ) -> Result<(Vec<Entry>, Sight), Error> {
        let entries = self.events(after, max).await?;
        if self.caller.is_operator() {
            return Ok((entries, Sight::default()));
        }
        let mut tasks: Vec<_> = entries.iter().map(|entry| entry.sealed.record.task_id).collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks.retain(|task| *task != TaskId::STORE);
        let sight = self.engine.look(Needs::default().and_tasks(tasks)).await?;
        Ok((entries, sight))
    }

    #[must_use]
    pub fn head(&self) -> Position {
        self.engine.head()
    }

    /// Where the epochs begin, to tell positions as cursors.
    pub async fn epochs(&self) -> Result<Arc<Epochs>, Error> {
        self.engine.epochs().await
    }

    /// The position that a cursor stands for.
    pub async fn place_in_log(&self, field: &'static str, cursor: Cursor) -> Result<Placed, Error> {
        self.engine.place(field, cursor).await
    }

    /// The same for who must have everything from there on, or nothing.
    pub async fn place_whole(
        &self,
        field: &'static str,
        cursor: Cursor,
    ) -> Result<Position, Error> {
        let Placed { position, missed } = self.place_in_log(field, cursor).await?;
        match missed {
            None => Ok(position),
            Some(missed) => Err(Error::CursorLost { cursor, resume_after: missed.resume_after }),
        }
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

    pub async fn verify(&self, full: bool) -> Result<Verdict, Error> {
        self.operates()?;
        self.engine.verify(full).await
    }

    /// What the caller's tenant uses; of the whole store, an operator learns the rest.
    pub async fn stats(&self) -> Result<SeenStats, Error> {
        self.may_follow()?;
        let tenant = self.caller.tenant();
        let usage = self.engine.store.usage(tenant.clone()).await?;
        let all = self.engine.stats();
        let store = self.caller.is_operator().then_some(all);
        let of = store.is_none().then(|| tenant.clone());
        let counts = self.engine.store.counts(of).await?;
        Ok(SeenStats { tenant, usage, disk_full: all.disk_full, counts, store })
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
