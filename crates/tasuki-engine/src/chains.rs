// SPDX-License-Identifier: Apache-2.0
//! Whole chains: taken out as one file, and begun anew from one of their hops.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::canonical::{self, Body};
use tasuki_core::chain::{
    self, ChainEvent, ChainFile, LogCheckpoint, Seal, Signer, TASKS_MAX, TaskChain,
};
use tasuki_core::commands::{self, Command, DocumentWish, Write};
use tasuki_core::document::{Kind, Scope};
use tasuki_core::envelope::Said;
use tasuki_core::event::{BranchOf, Key};
use tasuki_core::ids::Project;

use tasuki_core::registry::rules::Permission;
use tasuki_core::{AgentId, DocumentId, Envelope, Handoff, Position, Refusal, Target, TaskId};
use tasuki_protocol::Branch;
use tasuki_store::audit::hex;
use tasuki_store::{DocumentFilter, HandoffFilter, KeptDocument, PAGE_MAX, TaskFilter};

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::keys;
use crate::queries::ChainEntry;
use crate::requests::{FollowUp, Offered};

/// Begins anew from a hop, as another task.
#[derive(Debug, Clone, Serialize)]
pub struct BranchRequest {
    pub task: TaskId,
    pub hop: u32,
    pub by: AgentId,
    /// To somebody else than the hop was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Target>,
    #[serde(skip)]
    pub key: Option<Key>,
}

/// A chain that another broker exported.
#[derive(Debug, Clone)]
pub struct ImportedChain {
    pub kept: KeptDocument,
    /// What it holds; absent if its text was erased.
    pub content: Option<ChainContent>,
}

/// A chain's file, and what is told of it without reading it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChainContent {
    pub task_id: TaskId,
    pub tasks: u64,
    pub events: u64,
    /// The exact text: hashes cover its bytes.
    pub file: String,
}

/// How many chains one listing shows.
const CHAINS_MAX: usize = 100;

impl Desk {
    /// Keeps a chain of another broker for reading. It is no task here: nobody can claim it.
    pub async fn import_chain(
        &self,
        by: &AgentId,
        project: Option<Project>,
        file: String,
    ) -> Result<(ImportedChain, bool), Error> {
        let by = self.caller.speaks_for(by)?;
        self.caller.must_in(Permission::WriteMemory, project.as_ref())?;
        let no_chain = |error| invalid("file", format!("is no exported chain: {error}"));
        let read: ChainFile = serde_json::from_str(&file).map_err(no_chain)?;
        let verdict = chain::verify(&read);
        if let Some(bad) = verdict.first_bad {
            let place = bad.index.map_or_else(String::new, |index| format!("event {index} "));
            return Err(invalid("file", format!("is not intact: {place}{}", bad.problem)));
        }
        let (tasks, events) = (verdict.tasks, verdict.events);
        let hash = canonical::hash(file.as_bytes());
        let content = Body::of(&ChainContent { task_id: read.task_id, tasks, events, file });
        self.engine.check_secrets(&content)?;
        let write = Write {
            kind: Kind::Chain,
            scope: Some(project.map_or_else(|| Scope::Agent(by.clone()), Scope::Project)),
            content,
            expected: None,
            pinned: None,
            priority: None,
            settles: None,
        };
        let id = DocumentId::chain(&self.caller.tenant(), hash);
        // Somebody who may not see it need not learn that it is there; nor is it written anew.
        let known = self.engine.kept(&id, None).await?;
        if known.as_ref().is_some_and(|known| self.sees_document(&known.document)) {
            return Ok((self.imported(&id).await?, true));
        }
        let wish = DocumentWish::Write(Box::new(write));
        self.engine
            .one_document(Command::by(by, commands::ChangeDocument { id: id.clone(), wish }))
            .await?;
        Ok((self.imported(&id).await?, false))
    }

    /// An imported chain that the caller may see.
    pub async fn imported(&self, id: &DocumentId) -> Result<ImportedChain, Error> {
        let id = id.seen_from(&self.caller.tenant());
        let kept = self.engine.kept(&id, None).await?;
        let kept = kept
            .filter(|kept| kept.document.kind == Kind::Chain && self.sees_document(&kept.document));
        Ok(imported(kept.ok_or(Refusal::ChainNotFound(id))?))
    }

    /// Imported chains, the last one first, and where the next page begins.
    pub async fn list_imported(
        &self,
        before: Option<Position>,
        max: usize,
    ) -> Result<(Vec<ImportedChain>, Option<Position>), Error> {
        if !(1..=CHAINS_MAX).contains(&max) {
            return Err(invalid("limit", format!("is {max}, expected 1 to {CHAINS_MAX}")));
        }
        let filter = DocumentFilter {
            tenant: self.caller.tenant(),
            kind: Some(Kind::Chain),
            before,
            max,
            ..DocumentFilter::default()
        };
        let found = self.engine.store.list_documents(filter).await?;
        let next = found.last().filter(|_| found.len() == max).map(|kept| kept.document.last_pos);
        let seen = found.into_iter().filter(|kept| self.sees_document(&kept.document));
        Ok((seen.map(imported).collect(), next))
    }

    /// A task and those below it that the caller may see, as one file.
    pub async fn export_chain(&self, id: TaskId) -> Result<ChainFile, Error> {
        self.task(id).await?;
        let mut tasks = Vec::new();
        let mut last = Position(0);
        let mut open = VecDeque::from([id]);
        while let Some(id) = open.pop_front() {
            if tasks.len() == TASKS_MAX {
                let problem = format!("has more than {TASKS_MAX} tasks below it");
                return Err(invalid("task_id", format!("{problem}; export those one by one")));
            }
            let chain = self.engine.chain(id).await?;
            last = chain.last().map_or(last, |link| last.max(link.entry.sealed.position));
            tasks.push(TaskChain { task_id: id, events: chain.iter().map(event).collect() });
            open.extend(self.below(id).await?);
        }
        let registry = self.engine.registry();
        let keys = chain::signers(&tasks).into_iter().filter_map(|(agent, id)| {
            let known = registry.agents.get(&agent)?;
            let key = known.keys.iter().find(|known| known.key.id() == id)?.key;
            Some(Signer { agent, key })
        });
        let seal = self.engine.settings.signer.as_ref().map(|signer| {
            let signature = signer.sign(&chain::seal_statement(&tasks));
            Seal { key: signer.public(), signature }
        });
        let after = Position(last.0.saturating_sub(1));
        let checkpoint = self.engine.store.checkpoints(after, 1).await?.pop();
        Ok(ChainFile {
            format: chain::FORMAT.into(),
            version: chain::VERSION,
            exported_at: self.now(),
            task_id: id,
            keys: keys.collect(),
            tasks,
            seal,
            checkpoint: checkpoint.map(|checkpoint| LogCheckpoint {
                position: checkpoint.position,
                log_hash: checkpoint.log_hash,
                at: checkpoint.at,
                key: hex(&checkpoint.key),
                signature: hex(&checkpoint.signature),
            }),
        })
    }

    async fn below(&self, id: TaskId) -> Result<Vec<TaskId>, Error> {
        let mut found = Vec::new();
        let mut filter = TaskFilter { parent: Some(id), max: PAGE_MAX, ..TaskFilter::default() };
        loop {
            let page = self.list_tasks(filter.clone()).await?;
            found.extend(page.items.iter().map(|task| task.id));
            match page.next {
                Some(next) if found.len() <= TASKS_MAX => filter.before = Some(next),
                _ => break,
            }
        }
        // The oldest first, as they were opened.
        found.reverse();
        Ok(found)
    }

    /// Begins anew from a hop that the caller may see.
    pub async fn branch(&self, id: TaskId, wish: Branch) -> Result<Offered, Error> {
        let by = self.caller.speaks_for(&wish.by)?;
        let task = self.task(id).await?;
        let to = wish.to.map(|to| self.caller.target(&to));
        let wish = Branch { by, to, ..wish };
        let key = keys::of(&wish, Some(&id.to_string()));
        let mut wish = BranchRequest { task: id, hop: wish.hop, by: wish.by, to: wish.to, key };
        let (handoff, envelope) = self.engine.hop_of(&wish).await?;
        let to = wish.to.clone().unwrap_or_else(|| envelope.to.clone());
        if to.tenant() != self.caller.tenant().as_str() {
            return Err(Refusal::OtherTenant.into());
        }
        self.caller.must_to(Permission::Send, to.name(), task.project.as_ref())?;
        let branched = self.engine.branch(&wish, &handoff, &envelope, to.clone()).await;
        let Err(error) = &branched else { return branched };
        let Some(key) = keys::formerly(wish.key.as_ref(), &wish, error) else { return branched };
        wish.key = Some(key);
        self.engine.branch(&wish, &handoff, &envelope, to).await
    }
}

fn imported(kept: KeptDocument) -> ImportedChain {
    let content = kept.body.as_ref().and_then(|body| serde_json::from_str(body.text()).ok());
    ImportedChain { kept, content }
}

fn event(link: &ChainEntry) -> ChainEvent {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).ok();
    ChainEvent {
        position: link.entry.sealed.position,
        hash: link.entry.sealed.hash,
        record: raw(&link.entry.encoded).unwrap_or_else(|| RawValue::NULL.to_owned()),
        body: link.body.as_ref().and_then(|body| raw(body.text())),
    }
}

impl Engine {
    /// The last handoff of a hop, and what it carries.
    async fn hop_of(&self, wish: &BranchRequest) -> Result<(Arc<Handoff>, Arc<Envelope>), Error> {
        let task = Some(wish.task);
        let mut filter = HandoffFilter { task, max: PAGE_MAX, ..HandoffFilter::default() };
        loop {
            let handoffs = self.list_handoffs(filter.clone()).await?;
            if let Some(found) = handoffs.iter().find(|handoff| handoff.hop == wish.hop) {
                let erased = || invalid("hop", "what this hop carried was erased");
                let envelope = self.envelope_at(found.envelope_pos).await?.ok_or_else(erased)?;
                return Ok((found.clone(), envelope));
            }
            if handoffs.len() < PAGE_MAX {
                let problem = format!("is {}, and the task has no such hop", wish.hop);
                return Err(invalid("hop", problem));
            }
            filter.before = handoffs.last().map(|last| last.id);
        }
    }

    /// Offers what a hop carried as the first hop of a task of its own. What binds comes along as
    /// it was; what the sender said for this hop alone is said again.
    async fn branch(
        &self,
        wish: &BranchRequest,
        handoff: &Handoff,
        envelope: &Envelope,
        to: Target,
    ) -> Result<Offered, Error> {
        let key = wish.key.clone();
        let task = self.task(wish.task).await?;
        let intent = self.intent_of(&task).await?;
        let parts = &envelope.parts;
        let said = Said {
            summary: parts.summary.clone(),
            ask: parts.ask.clone(),
            state: parts.state.clone(),
            tried: parts.tried.clone(),
            assumptions: parts.assumptions.clone(),
            memory_refs: parts.memory_refs.clone(),
            context: parts.context.clone(),
            context_manifest: parts.context_manifest,
            expected_output: parts.expected_output.clone(),
            read_back: handoff.contract.agreement.read_back.is_some(),
            ..Said::default()
        };
        let hop = FollowUp {
            action: envelope.action,
            metadata: envelope.metadata.clone(),
            priority: Some(handoff.priority),
            terms: Some(handoff.terms),
            capability: handoff.contract.agreement.capability.clone(),
            majors: handoff.contract.agreement.majors.clone(),
            budget_tokens: handoff.contract.agreement.budget_tokens,
            said,
            ordering_key: handoff.ordering_key.clone(),
            // It goes on along the same route, and is given the same results.
            stage: handoff.contract.agreement.stage.clone(),
            after: handoff.contract.after.clone(),
            fallbacks: handoff.contract.routing.fallbacks.clone(),
            ..FollowUp::new(to, envelope.payload.clone())
        };
        let origin = BranchOf { task_id: task.id, hop: wish.hop, envelope: handoff.envelope };
        let idempotency_key = key.as_ref().map(|key| key.key.clone());
        let offer = self
            .branch_offer(&task, wish.by.clone(), intent, handoff, origin, hop, idempotency_key)
            .await?;
        let done = self.one(Command::offer(offer).with_key(key)).await?;
        let handoff = done.handoffs.into_iter().next();
        let handoff = handoff.ok_or(Error::Store(tasuki_store::Error::Unknown))?;
        Ok(self.offered(handoff, done.outcome.repeated))
    }
}
