// SPDX-License-Identifier: Apache-2.0
//! Memories: writing, finding, marking and erasing them, as one caller may. What a caller may not
//! see is not there.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use tasuki_core::canonical::Body;
use tasuki_core::commands::{self, Command, DocumentWish, Erasable, Erase, Write};
use tasuki_core::document::ranking::{Question, rank};
use tasuki_core::document::{Content, Document, Kind, Priority, Scope};
use tasuki_core::envelope::Payload;
use tasuki_core::event::{Actor, Key};
use tasuki_core::ids::TENANT_DEFAULT;
use tasuki_core::redact::redact;
use tasuki_core::registry::rules::Permission;
use tasuki_core::report::Note;
use tasuki_core::secrets::{self, Finding, Policy};
use tasuki_core::{AgentId, DocumentId, HandoffId, Position, Refusal, TaskState};
use tasuki_protocol::EditMemory;
use tasuki_store::{COMMANDS_MAX, DocumentFilter, Done, KeptDocument, Needs, TaskFilter};

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::keys;
use crate::operations::{self, Facts, asked};

/// The operation by which a failure is reported.
const FAILS: &str = "handoff_fail";
/// How many memories one listing or search returns at most: they come with their texts.
pub const MEMORIES_MAX: usize = 100;
/// How many tasks of a writer are looked at for the one that it works on.
const OWNED_MAX: usize = 100;
/// How often an edit that named no revision is made anew on top of somebody else's.
const EDITS_MAX: usize = 8;

/// A memory that somebody wants kept. Its serialised form is what keys stood for up to 0.1 (see
/// [`crate::keys`]).
#[derive(Debug, Clone, Serialize)]
pub struct NewMemory {
    pub by: AgentId,
    /// The name it is to have; the broker chooses one without it.
    pub id: Option<DocumentId>,
    /// What it is about; the writer itself without it.
    pub scope: Option<Scope>,
    pub content: Content,
    pub pinned: bool,
    pub priority: Priority,
    #[serde(skip)]
    pub key: Option<Key>,
}

/// A memory as a caller sees it.
#[derive(Debug, Clone)]
pub struct SeenMemory {
    pub kept: KeptDocument,
    /// What the revision says, unless it was erased.
    pub content: Option<Content>,
    /// Why it was deleted, if it was.
    pub deleted_because: Option<String>,
    /// How well it answers the question that was asked.
    pub score: Option<i64>,
}

/// What became of a write.
#[derive(Debug, Clone)]
pub struct WrittenMemory {
    pub document: Arc<Document>,
    /// The request had been carried out before.
    pub repeated: bool,
    /// What looks like a secret in it and was stored all the same.
    pub warnings: Vec<Finding>,
}

/// Which memories a caller looks for.
#[derive(Debug, Clone, Default)]
pub struct MemorySearch {
    /// Words to be found, the best answers first; without them, what changed last comes first.
    pub question: Option<String>,
    pub scope: Option<Scope>,
    pub tag: Option<String>,
    pub pinned: Option<bool>,
    pub superseded: bool,
    pub deleted: bool,
    pub before: Option<Position>,
    pub max: usize,
    /// How much text a listing reads at most, in bytes.
    pub bytes_max: Option<usize>,
}

impl Engine {
    /// Looks for secrets in what is to be stored: refuses what is certain, and tells what is
    /// likely, as the operator chose.
    pub(crate) fn check_secrets(&self, body: &Body) -> Result<Vec<Finding>, Error> {
        let value = serde_json::from_str(body.text()).unwrap_or_default();
        let findings = self.settings.secrets.check(&value)?;
        for finding in &findings {
            tracing::warn!(path = %finding.path, kind = %finding.kind, "this looks like a secret");
        }
        Ok(findings)
    }

    /// The same for a whole request, of which anything may be stored. A failure is reported without the
    /// secrets in it: that it is told at all matters more.
    pub(crate) fn no_secrets(&self, facts: &Facts, asked: &mut Value) -> Result<(), Error> {
        if matches!(facts.kind, operations::Kind::Reads) {
            return Ok(());
        }
        if facts.name == FAILS && self.settings.secrets == Policy::Block {
            if self.settings.secrets.check(asked).is_err() {
                redact(asked);
            }
            return Ok(());
        }
        for finding in self.settings.secrets.check(asked)? {
            tracing::warn!(path = %finding.path, kind = %finding.kind, "this looks like a secret");
        }
        Ok(())
    }

    /// The same for what a request is about: a name that somebody chooses is stored like any text.
    pub(crate) fn no_secrets_in_names(
        &self,
        facts: &Facts,
        names: &[&'static str],
        said: &[String],
    ) -> Result<(), Error> {
        if matches!(facts.kind, operations::Kind::Reads) || self.settings.secrets == Policy::Off {
            return Ok(());
        }
        for (name, said) in names.iter().zip(said) {
            for finding in secrets::scan(&Value::from(said.as_str())) {
                if self.settings.secrets == Policy::Block && finding.kind.is_certain() {
                    let path = format!("/{name}");
                    return Err(Refusal::SecretFound { path, kind: finding.kind }.into());
                }
                tracing::warn!(path = %name, kind = %finding.kind, "this looks like a secret");
            }
        }
        Ok(())
    }

    /// The same for what an agent answers that work was delivered to.
    pub(crate) fn check_payload(&self, payload: &Payload) -> Result<(), Error> {
        for finding in self.settings.secrets.check_members(payload.members())? {
            tracing::warn!(path = %finding.path, kind = %finding.kind, "this looks like a secret");
        }
        Ok(())
    }

    pub(crate) async fn one_document(
        &self,
        command: Command,
    ) -> Result<(Arc<Document>, bool), Error> {
        let Done { outcome, document, .. } = self.one(command).await?;
        let document = document.ok_or(Error::Store(tasuki_store::Error::Unknown))?;
        Ok((document, outcome.repeated))
    }

    pub(crate) async fn kept(
        &self,
        id: &DocumentId,
        revision: Option<u32>,
    ) -> Result<Option<KeptDocument>, Error> {
        Ok(self.store.documents(vec![(id.clone(), revision)]).await?.pop().flatten())
    }
}

impl Desk {
    pub async fn remember(&self, new: tasuki_protocol::NewMemory) -> Result<WrittenMemory, Error> {
        let by = self.caller.speaks_for(&new.by)?;
        let said = new.scope.clone().unwrap_or_else(|| Scope::Agent(by.clone()));
        let said = self.scope(said).await?;
        let scope = match new.scope {
            Some(_) => said.clone(),
            None => self.own_scope(&by).await?,
        };
        self.must_write(Permission::WriteMemory, &scope)?;
        let new = tasuki_protocol::NewMemory { by, scope: Some(said.clone()), ..new };
        // What the writer works on by now makes no other wish of it.
        let key = keys::of(&new, None);
        let mut new = NewMemory { key, scope: Some(scope), ..asked::memory(new) };
        let written = self.try_remember(new.clone()).await;
        let Err(error) = &written else { return written };
        let as_said = NewMemory { scope: Some(said), ..new.clone() };
        let Some(key) = keys::formerly(new.key.as_ref(), &as_said, error) else { return written };
        new.key = Some(key);
        self.try_remember(new).await
    }

    async fn try_remember(&self, new: NewMemory) -> Result<WrittenMemory, Error> {
        let content = new.content.body()?;
        let warnings = self.engine.check_secrets(&content)?;
        let id = new.id.unwrap_or_else(|| DocumentId::memory(self.engine.ids.next()));
        let write = Write {
            kind: Kind::Memory,
            scope: new.scope,
            content,
            expected: Some(0),
            pinned: Some(new.pinned),
            priority: Some(new.priority),
            settles: None,
        };
        let wish = DocumentWish::Write(Box::new(write));
        let id = id.seen_from(&self.caller.tenant());
        let change = Command::by(new.by, commands::ChangeDocument { id, wish }).with_key(new.key);
        let (document, repeated) = self.engine.one_document(change).await?;
        Ok(WrittenMemory { document, repeated, warnings })
    }

    pub async fn edit_memory(
        &self,
        id: &DocumentId,
        edit: EditMemory,
    ) -> Result<WrittenMemory, Error> {
        let by = self.caller.speaks_for(&edit.by)?;
        let scope = match edit.scope.clone() {
            Some(scope) => Some(self.scope(scope).await?),
            None => None,
        };
        let edit = EditMemory { by, scope, ..edit };
        for _ in 0..EDITS_MAX {
            match self.try_edit(id, &edit).await {
                // Who named no revision wants its change on top of whatever is there.
                Err(Error::Refused(Refusal::RevisionConflict { .. }))
                    if edit.revision.is_none() => {}
                done => return done,
            }
        }
        Err(Error::Store(tasuki_store::Error::Overloaded))
    }

    async fn try_edit(&self, id: &DocumentId, edit: &EditMemory) -> Result<WrittenMemory, Error> {
        let known = self.writable(id).await?;
        if let Some(scope) = &edit.scope {
            self.must_write(Permission::WriteMemory, scope)?;
        }
        let old = known.body.as_ref().and_then(Content::of);
        let old = old.or_else(|| edit.text.is_some().then(Content::default));
        let old = old.ok_or_else(|| invalid("text", "was erased; give the new one"))?;
        let kept = |new: &Option<String>, old: Option<String>| match new {
            Some(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            None => old,
        };
        let content = Content {
            title: kept(&edit.title, old.title),
            summary: kept(&edit.summary, old.summary),
            text: edit.text.clone().unwrap_or(old.text),
            tags: edit.tags.clone().unwrap_or(old.tags),
        };
        let content = content.body()?;
        let warnings = self.engine.check_secrets(&content)?;
        let write = Write {
            kind: Kind::Memory,
            scope: edit.scope.clone(),
            content,
            expected: Some(edit.revision.unwrap_or(known.document.revision)),
            pinned: None,
            priority: edit.priority,
            settles: None,
        };
        let wish = DocumentWish::Write(Box::new(write));
        let (id, by) = (known.document.id.clone(), edit.by.clone());
        let (document, repeated) = self
            .engine
            .one_document(Command::by(by, commands::ChangeDocument { id, wish }))
            .await?;
        Ok(WrittenMemory { document, repeated, warnings })
    }

    pub async fn pin_memory(
        &self,
        id: &DocumentId,
        by: &AgentId,
        pinned: bool,
    ) -> Result<Arc<Document>, Error> {
        let wish = DocumentWish::Mark { pinned: Some(pinned), priority: None };
        self.change_memory(id, by, wish).await
    }

    /// Says that another memory has taken the place of this one.
    pub async fn supersede_memory(
        &self,
        id: &DocumentId,
        by: &AgentId,
        successor: &DocumentId,
    ) -> Result<Arc<Document>, Error> {
        let successor = self.own_memory(successor).await?.kept.document.id.clone();
        self.change_memory(id, by, DocumentWish::Supersede { successor }).await
    }

    pub async fn delete_memory(
        &self,
        id: &DocumentId,
        by: &AgentId,
        reason: String,
    ) -> Result<Arc<Document>, Error> {
        let reason = self.engine.note(Some(reason))?;
        let reason = reason.ok_or_else(|| invalid("reason", "is needed to delete"))?;
        self.change_memory(id, by, DocumentWish::Delete { reason }).await
    }

    async fn change_memory(
        &self,
        id: &DocumentId,
        by: &AgentId,
        wish: DocumentWish,
    ) -> Result<Arc<Document>, Error> {
        let by = self.caller.speaks_for(by)?;
        let id = self.writable(id).await?.document.id.clone();
        Ok(self
            .engine
            .one_document(Command::by(by, commands::ChangeDocument { id, wish }))
            .await?
            .0)
    }

    /// Removes the text of one revision, or of all of them, for good. Who wrote it may do that, and
    /// who administers.
    pub async fn erase_memory(
        &self,
        id: &DocumentId,
        by: &AgentId,
        revision: Option<u32>,
        reason: String,
    ) -> Result<Arc<Document>, Error> {
        let by = self.caller.speaks_for(by)?;
        let reason = self.engine.note(Some(reason))?;
        let reason = reason.ok_or_else(|| invalid("reason", "is needed to erase"))?;
        let last = self.erasable(id, revision).await?;
        let wanted = revision.map_or(1..=last.revision, |revision| revision..=revision);
        let wanted: Vec<_> =
            wanted.take(COMMANDS_MAX).map(|number| (last.id.clone(), Some(number))).collect();
        let mut commands = Vec::new();
        for kept in self.engine.store.documents(wanted).await?.into_iter().flatten() {
            if kept.revision.written_by != Actor::Agent(by.clone()) {
                self.caller.must(Permission::Administer, None)?;
            }
            let (id, revision) = (last.id.clone(), kept.revision.number);
            let what = Erasable::Revision { id, revision, at: kept.revision.body_pos };
            let erase = Erase { what, reason: reason.clone() };
            commands.push(Command::by(by.clone(), erase));
        }
        let mut document = last;
        for reply in self.engine.execute(commands).await? {
            document = reply?.document.unwrap_or(document);
        }
        Ok(document)
    }

    /// A memory at one of its revisions, or at its last one.
    pub async fn memory(
        &self,
        id: &DocumentId,
        revision: Option<u32>,
    ) -> Result<SeenMemory, Error> {
        self.memory_for(id, revision, None).await
    }

    /// The same for whoever says for which handoff it reads.
    pub(crate) async fn memory_for(
        &self,
        id: &DocumentId,
        revision: Option<u32>,
        handoff: Option<HandoffId>,
    ) -> Result<SeenMemory, Error> {
        let id = id.seen_from(&self.caller.tenant());
        let kept = self.engine.kept(&id, revision).await?;
        let kept = kept.filter(|kept| kept.document.kind == Kind::Memory);
        let documents: Vec<_> = kept.iter().map(|kept| kept.document.clone()).collect();
        let readable = self.readable(&documents, handoff).await?;
        let kept = kept.filter(|kept| readable.contains(&kept.document.id));
        let kept = kept.ok_or(Refusal::MemoryNotFound(id))?;
        let reason = match &kept.document.deleted {
            Some(deleted) => {
                self.engine.store.bodies(vec![deleted.reason_pos]).await?.pop().flatten()
            }
            None => None,
        };
        let note = reason.and_then(|body| serde_json::from_str::<Note>(body.text()).ok());
        Ok(SeenMemory { deleted_because: note.map(|note| note.text), ..seen(kept, None) })
    }

    /// A memory for whoever has just written it, and may not be allowed to read what others wrote:
    /// then it is told without its text.
    pub async fn own_memory(&self, id: &DocumentId) -> Result<SeenMemory, Error> {
        match self.memory(id, None).await {
            Err(Error::Refused(Refusal::MemoryNotFound(_))) => {
                let id = id.seen_from(&self.caller.tenant());
                let kept = match self.writable(&id).await {
                    Err(_) if self.caller.may(Permission::Administer, None) => {
                        self.here(&id, None).await?
                    }
                    kept => kept?,
                };
                Ok(SeenMemory { content: None, ..seen(kept, None) })
            }
            found => found,
        }
    }

    /// Memories by their ids, for somebody who puts many together: `None` where there is none, or
    /// none that the caller may see.
    pub async fn memories(
        &self,
        wanted: Vec<(DocumentId, Option<u32>)>,
    ) -> Result<Vec<Option<SeenMemory>>, Error> {
        let tenant = self.caller.tenant();
        let wanted = wanted.into_iter().map(|(id, revision)| (id.seen_from(&tenant), revision));
        let kept = self.engine.store.documents(wanted.collect()).await?;
        let memories = kept.iter().flatten().filter(|kept| kept.document.kind == Kind::Memory);
        let memories: Vec<_> = memories.map(|kept| kept.document.clone()).collect();
        let readable = self.readable(&memories, None).await?;
        let visible = |kept: &KeptDocument| readable.contains(&kept.document.id);
        Ok(kept.into_iter().map(|kept| Some(seen(kept.filter(visible)?, None))).collect())
    }

    /// What there is, and where the next page begins.
    pub async fn find_memories(
        &self,
        search: MemorySearch,
    ) -> Result<(Vec<SeenMemory>, Option<Position>), Error> {
        let max = search.max;
        if !(1..=MEMORIES_MAX).contains(&max) {
            return Err(invalid("limit", format!("is {max}, expected 1 to {MEMORIES_MAX}")));
        }
        self.look_for(search).await
    }

    /// The same for whoever needs more of them at once, and has a bound of its own.
    pub(crate) async fn look_for(
        &self,
        search: MemorySearch,
    ) -> Result<(Vec<SeenMemory>, Option<Position>), Error> {
        let max = search.max;
        let scope = search.scope.map(|scope| match scope {
            Scope::Agent(agent) => Scope::Agent(self.caller.agent_named(&agent)),
            other => other,
        });
        let filter = DocumentFilter {
            tenant: self.caller.tenant(),
            kind: Some(Kind::Memory),
            scope,
            tag: search.tag,
            pinned: search.pinned,
            superseded: search.superseded,
            deleted: search.deleted,
            before: search.before,
            max,
            bytes_max: search.bytes_max,
        };
        let Some(question) = search.question else {
            let found = self.engine.store.list_documents(filter).await?;
            let next =
                found.last().filter(|_| found.len() == max).map(|kept| kept.document.last_pos);
            let documents: Vec<_> = found.iter().map(|kept| kept.document.clone()).collect();
            let readable = self.readable(&documents, None).await?;
            let visible = found.into_iter().filter(|kept| readable.contains(&kept.document.id));
            return Ok((visible.map(|kept| seen(kept, None)).collect(), next));
        };
        let question = Question::of(&question);
        let found = self.engine.store.search_documents(question.clone(), filter).await?;
        let mut best = rank(&question, found);
        let documents: Vec<_> = best.iter().map(|(document, _)| document.clone()).collect();
        let readable = self.readable(&documents, None).await?;
        best.retain(|(document, _)| readable.contains(&document.id));
        best.truncate(max);
        let wanted = best.iter().map(|(document, _)| (document.id.clone(), None)).collect();
        let kept = self.engine.store.documents(wanted).await?.into_iter();
        let scored = best.iter().zip(kept);
        Ok((
            scored.filter_map(|((_, score), kept)| Some(seen(kept?, Some(*score)))).collect(),
            None,
        ))
    }

    /// How many memories there are in a scope, up to so many.
    pub(crate) async fn count_memories(&self, scope: &Scope, max: usize) -> Result<usize, Error> {
        let filter = DocumentFilter {
            tenant: self.caller.tenant(),
            kind: Some(Kind::Memory),
            scope: Some(scope.clone()),
            max,
            ..DocumentFilter::default()
        };
        Ok(self.engine.store.count_documents(filter).await?)
    }

    /// Where a memory belongs whose writer does not say: to the one task that it works on, or else
    /// to itself.
    async fn own_scope(&self, by: &AgentId) -> Result<Scope, Error> {
        let owned = TaskFilter {
            owner: Some(by.clone()),
            state: Some(TaskState::Open),
            max: OWNED_MAX,
            ..TaskFilter::default()
        };
        let owned = self.engine.store.list_tasks(owned).await?;
        let live: Vec<_> = owned.iter().filter_map(|task| task.live).collect();
        let sight = self.engine.look(Needs::handoffs(live.iter().copied())).await?;
        let holds = |id: &HandoffId| {
            let claim = sight.handoff(*id).and_then(|handoff| handoff.state.claim());
            claim.is_some_and(|claim| claim.agent == *by)
        };
        let mut held = owned.iter().filter(|task| task.live.as_ref().is_some_and(holds));
        Ok(match (held.next(), held.next()) {
            (Some(task), None) if owned.len() < OWNED_MAX => Scope::Task(task.id),
            _ => Scope::Agent(by.clone()),
        })
    }

    /// Whether a caller may read a document: its own, and what its rules let it read.
    pub(crate) fn sees_document(&self, document: &Document) -> bool {
        let Some(me) = self.caller.agent() else {
            return document.id.tenant() == TENANT_DEFAULT;
        };
        let own = document.created_by == Actor::Agent(me.clone())
            || document.scope == Scope::Agent(me.clone());
        document.id.tenant() == me.tenant()
            && (own || self.caller.may_in(Permission::Read, document.scope.project()))
    }

    /// A memory of the caller's tenant, whether or not it may see it.
    async fn here(&self, id: &DocumentId, revision: Option<u32>) -> Result<KeptDocument, Error> {
        let kept = self.engine.kept(id, revision).await?;
        let kept = kept.filter(|kept| {
            kept.document.kind == Kind::Memory && kept.document.id.tenant() == self.tenant()
        });
        Ok(kept.ok_or_else(|| Refusal::MemoryNotFound(id.clone()))?)
    }

    /// Who administers can erase what it may not read.
    async fn erasable(
        &self,
        id: &DocumentId,
        revision: Option<u32>,
    ) -> Result<Arc<Document>, Error> {
        let id = id.seen_from(&self.caller.tenant());
        let document = self.here(&id, revision).await?.document;
        if self.sees_document(&document) || self.caller.may(Permission::Administer, None) {
            return Ok(document);
        }
        Err(Refusal::MemoryNotFound(id).into())
    }

    /// A memory that the caller may change. One that it may not even see is not there.
    async fn writable(&self, id: &DocumentId) -> Result<KeptDocument, Error> {
        let id = id.seen_from(&self.caller.tenant());
        let kept = self.here(&id, None).await?;
        match self.must_write(Permission::WriteMemory, &kept.document.scope) {
            Err(_) if !self.sees_document(&kept.document) => {
                Err(Refusal::MemoryNotFound(id).into())
            }
            Err(denied) => Err(denied),
            Ok(()) => Ok(kept),
        }
    }

    fn tenant(&self) -> String {
        self.caller.tenant().to_string()
    }

    pub(crate) fn must_write(&self, permission: Permission, scope: &Scope) -> Result<(), Error> {
        self.caller.must_in(permission, scope.project())
    }

    /// What a caller means by a scope: an agent is one of its own tenant's, and a task one that it
    /// may see.
    async fn scope(&self, scope: Scope) -> Result<Scope, Error> {
        Ok(match scope {
            Scope::Agent(agent) => Scope::Agent(self.caller.agent_named(&agent)),
            Scope::Task(task) => Scope::Task(self.task(task).await?.id),
            Scope::Project(project) => Scope::Project(project),
        })
    }
}

fn seen(kept: KeptDocument, score: Option<i64>) -> SeenMemory {
    let content = kept.body.as_ref().and_then(Content::of);
    SeenMemory { kept, content, deleted_because: None, score }
}
