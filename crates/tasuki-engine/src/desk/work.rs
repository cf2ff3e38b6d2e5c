// SPDX-License-Identifier: Apache-2.0
//! What a caller may read because of the work that it has: whoever holds a claim may read what its
//! envelope refers to and the memories of the task that it owns, whatever else it may read. A reference
//! gives nobody more than who first made it could read: else anybody could open any memory by sending
//! its name to a friend.

use std::collections::HashSet;
use std::sync::Arc;

use tasuki_core::document::{Document, Kind, Scope};
use tasuki_core::event::Actor;
use tasuki_core::ids::TENANT_DEFAULT;
use tasuki_core::registry::rules::{self, Permission, Wish};
use tasuki_core::{AgentId, DocumentId, Handoff, HandoffId, Task, TaskId, TaskState};
use tasuki_store::{HandoffFilter, Needs, PAGE_MAX, TaskFilter};

use super::Desk;
use crate::error::Error;

/// How many tasks of an agent are looked at for what they refer to.
const TASKS_MAX: usize = 100;

/// The work of a caller: the tasks that it owns, and what it holds.
#[derive(Debug, Default)]
pub(crate) struct Work {
    owned: HashSet<TaskId>,
    held: Vec<(Arc<Handoff>, HashSet<DocumentId>)>,
}

impl Desk {
    /// Those of these documents that the caller may read, by its rules or for its work. `handoff` is
    /// what it reads for, if it says so.
    pub(crate) async fn readable(
        &self,
        documents: &[Arc<Document>],
        handoff: Option<HandoffId>,
    ) -> Result<HashSet<DocumentId>, Error> {
        let mut seen = HashSet::new();
        let mut other = Vec::new();
        for document in documents {
            if self.sees_document(document) {
                seen.insert(document.id.clone());
            } else if self.is_of_tenant(document) {
                other.push(document);
            }
        }
        let Some(me) = self.caller.agent().filter(|_| !other.is_empty()) else { return Ok(seen) };
        let work = self.work_of(me, handoff).await?;
        for document in other {
            if self.needs_for(&work, document).await? {
                seen.insert(document.id.clone());
            }
        }
        Ok(seen)
    }

    fn is_of_tenant(&self, document: &Document) -> bool {
        document.kind == Kind::Memory
            && self.caller.agent().is_some_and(|me| document.id.tenant() == me.tenant())
    }

    async fn needs_for(&self, work: &Work, document: &Document) -> Result<bool, Error> {
        if matches!(&document.scope, Scope::Task(task) if work.owned.contains(task)) {
            return Ok(true);
        }
        for (handoff, refers) in &work.held {
            if refers.contains(&document.id) && self.was_its_to_pass(handoff, document).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What an agent owns and holds now. Naming the handoff makes it one look.
    async fn work_of(&self, me: &AgentId, handoff: Option<HandoffId>) -> Result<Work, Error> {
        let mut work = Work::default();
        let mut held = Vec::new();
        if let Some(id) = handoff {
            held.push(id);
        } else {
            let owned = TaskFilter {
                owner: Some(me.clone()),
                state: Some(TaskState::Open),
                max: TASKS_MAX,
                ..TaskFilter::default()
            };
            for task in self.engine.store.list_tasks(owned).await? {
                work.owned.insert(task.id);
                held.extend(task.live);
            }
        }
        if held.is_empty() {
            return Ok(work);
        }
        let sight =
            self.engine.look(Needs::handoffs(held.iter().copied()).with_envelopes()).await?;
        for id in held {
            let Some(handoff) = sight.handoff(id) else { continue };
            if handoff.state.claim().is_none_or(|claim| claim.agent != *me) {
                continue;
            }
            let owns = |task: &&Arc<Task>| task.owner == *me && task.state == TaskState::Open;
            work.owned.extend(sight.task_of(handoff).filter(owns).map(|task| task.id));
            let envelope = self.engine.envelope_of(&sight, handoff).await?;
            let refers = envelope.map(|envelope| self.referred(&envelope.parts));
            work.held.push((handoff.clone(), refers.unwrap_or_default()));
        }
        Ok(work)
    }

    /// What an envelope has or refers to, of the caller's tenant.
    fn referred(&self, parts: &tasuki_core::envelope::Parts) -> HashSet<DocumentId> {
        let here = parts.context.iter().map(|item| &item.id);
        let ids = here.chain(parts.memory_refs.iter().map(|one| &one.id));
        let tenant = self.caller.tenant();
        ids.filter_map(|id| id.parse::<DocumentId>().ok()).map(|id| id.seen_from(&tenant)).collect()
    }

    /// Whether whoever first referred to a document in the chain of a task could read it.
    async fn was_its_to_pass(&self, held: &Handoff, document: &Document) -> Result<bool, Error> {
        let of_task =
            HandoffFilter { task: Some(held.task_id), max: PAGE_MAX, ..HandoffFilter::default() };
        let mut chain = self.engine.store.list_handoffs(of_task).await?;
        chain.retain(|it| it.hop <= held.hop);
        chain.sort_by_key(|it| std::cmp::Reverse((it.hop, it.id)));
        let ids: Vec<_> = chain.iter().map(|it| it.id).collect();
        let sight = self.engine.look(Needs::handoffs(ids).with_envelopes()).await?;
        let mut first = held.from.clone();
        for handoff in &chain {
            let Some(handoff) = sight.handoff(handoff.id) else { break };
            let envelope = self.engine.envelope_of(&sight, handoff).await?;
            let refers = envelope.is_some_and(|it| self.referred(&it.parts).contains(&document.id));
            if refers {
                first = handoff.from.clone();
            } else if handoff.hop < held.hop {
                break;
            }
        }
        Ok(self.could_read(&first, document))
    }

    /// Whether an agent may read a document by its rules, or because it is its own.
    fn could_read(&self, agent: &AgentId, document: &Document) -> bool {
        let own = document.created_by == Actor::Agent(agent.clone())
            || document.scope == Scope::Agent(agent.clone());
        if own || agent.tenant() != document.id.tenant() {
            return own;
        }
        let registry = self.engine.registry();
        let Some(known) = registry.agents.get(agent) else {
            // Who never had to say who it is, reads everything of the default tenant.
            return self.engine.settings.open && agent.tenant() == TENANT_DEFAULT;
        };
        let project = document.scope.project().map(tasuki_core::ids::Project::as_str);
        let wish = Wish { permission: Permission::Read, target: None, project };
        rules::allow(&known.rules, &wish)
    }
}
