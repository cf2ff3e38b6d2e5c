// SPDX-License-Identifier: Apache-2.0
//! The shared context of a project: everybody who may read the project reads it, few write it. Who
//! owns which task is looked up when it is read and never written into it.

use std::sync::Arc;

use tasuki_core::commands::{self, Command, DocumentWish, Settle, Write};
use tasuki_core::document::context::{Decision, without_ownership};
use tasuki_core::document::{Context, Document, Kind, Revision, Scope};
use tasuki_core::envelope::project::ProjectRules;
use tasuki_core::ids::{Project, TenantId};
use tasuki_core::registry::rules::Permission;
use tasuki_core::secrets::Finding;
use tasuki_core::{AgentId, DocumentId, Handoff, Refusal, Task, TaskState};
use tasuki_protocol::{NewDecision, WriteContext};
use tasuki_store::TaskFilter;

use crate::desk::Desk;
use crate::engine::{Engine, ProjectDecisions};
use crate::error::{Error, denied};

/// How many tasks are shown with a context.
const QUEUE_MAX: usize = 100;
/// How often a write that named no revision is made anew on top of somebody else's.
const WRITES_MAX: usize = 8;

/// A shared context as it is now.
#[derive(Debug, Clone)]
pub struct SeenContext {
    pub project: Project,
    /// Nobody has written it yet if there is no document.
    pub document: Option<Arc<Document>>,
    /// Which of its revisions this is.
    pub revision: Option<Revision>,
    pub context: Context,
    /// Whether the text of the last revision was erased.
    pub erased: bool,
    /// Open tasks of the project that the caller may see, newest first, with the handoff under way.
    pub queue: Vec<(Arc<Task>, Option<Arc<Handoff>>)>,
    /// What looks like a secret in what was just written.
    pub warnings: Vec<Finding>,
}

impl Engine {
    /// What binds a task because of its project, as the shared context says now.
    pub(crate) async fn rules_of(
        &self,
        tenant: &str,
        project: Option<&Project>,
    ) -> Result<Option<Arc<ProjectRules>>, Error> {
        let Some(project) = project else { return Ok(None) };
        let tenant: TenantId = tenant.parse().unwrap_or_default();
        let Some(kept) = self.kept(&DocumentId::context(&tenant, project), None).await? else {
            return Ok(None);
        };
        let context = kept.body.as_ref().and_then(Context::of);
        let refuses = self.settings.project_decisions == ProjectDecisions::Bind;
        let stated_at = kept.revision.written_at;
        let rules = ProjectRules::of(&tenant, project, context.as_ref(), stated_at, refuses);
        Ok(rules.map(Arc::new))
    }
}

impl Desk {
    /// Refuses what speaks of who owns a task, before anything else is looked at.
    pub fn shares_no_ownership(&self, written: &serde_json::Value) -> Result<(), Error> {
        Ok(without_ownership(written)?)
    }

    pub async fn context(&self, project: &Project) -> Result<SeenContext, Error> {
        self.context_at(project, None).await
    }

    /// A shared context at one of its revisions, or at its last one.
    pub async fn context_at(
        &self,
        project: &Project,
        revision: Option<u32>,
    ) -> Result<SeenContext, Error> {
        let may = |permission| self.caller.may_in(permission, Some(project));
        if !may(Permission::Read) && !may(Permission::WriteSharedContext) {
            return Err(denied(format!("reading project {project} is not allowed")));
        }
        let id = DocumentId::context(&self.caller.tenant(), project);
        let kept = self.engine.kept(&id, revision).await?;
        if kept.is_none() && revision.is_some() {
            return Err(Refusal::MemoryNotFound(id).into());
        }
        let context = kept.as_ref().and_then(|kept| kept.body.as_ref()).and_then(Context::of);
        let context = context.unwrap_or_default();
        let erased = kept.as_ref().is_some_and(|kept| kept.revision.erased);
        let (document, revision) = kept.map(|kept| (kept.document, kept.revision)).unzip();
        let open = TaskFilter {
            state: Some(TaskState::Open),
            project: Some(project.clone()),
            max: QUEUE_MAX,
            ..Default::default()
        };
        let mut queue = Vec::new();
        for task in self.list_tasks(open).await?.items {
            let handoff = match task.live {
                Some(id) => self.handoff(id).await.ok(),
                None => None,
            };
            queue.push((task, handoff));
        }
        let (project, warnings) = (project.clone(), Vec::new());
        Ok(SeenContext { project, document, revision, context, erased, queue, warnings })
    }

    async fn stored_context(
        &self,
        project: &Project,
    ) -> Result<(Option<Arc<Document>>, Context), Error> {
        let id = DocumentId::context(&self.caller.tenant(), project);
        let kept = self.engine.store.documents(vec![(id, None)]).await?.pop().flatten();
        let context = kept.as_ref().and_then(|kept| kept.body.as_ref()).and_then(Context::of);
        Ok((kept.map(|kept| kept.document), context.unwrap_or_default()))
    }

    pub async fn write_context(
        &self,
        project: &Project,
        wish: WriteContext,
    ) -> Result<SeenContext, Error> {
        let by = self.writes_context(project, &wish.by)?;
        for _ in 0..WRITES_MAX {
            let (known, mut context) = self.stored_context(project).await?;
            if let Some(state) = wish.state.clone() {
                context.state = state;
            }
            if let Some(constraints) = wish.constraints.clone() {
                context.constraints = constraints;
            }
            let seen = wish.revision.unwrap_or_else(|| revision_of(known.as_deref()));
            match self.put_context(project, &by, &context, seen, None).await {
                Err(Error::Refused(Refusal::RevisionConflict { .. }))
                    if wish.revision.is_none() => {}
                Err(error) => return Err(error),
                Ok(warnings) => {
                    return Ok(SeenContext { warnings, ..self.context(project).await? });
                }
            }
        }
        Err(Error::Store(tasuki_store::Error::Overloaded))
    }

    /// Adds a decision. Somebody else's write in between is no reason to fail, but a decision on
    /// the same question is.
    pub async fn decide(&self, project: &Project, new: NewDecision) -> Result<SeenContext, Error> {
        let by = self.writes_context(project, &new.by)?;
        for _ in 0..WRITES_MAX {
            let (known, mut context) = self.stored_context(project).await?;
            context.log(Decision {
                number: known.as_ref().map_or(0, |known| known.decisions) + 1,
                key: new.key.clone(),
                decision: new.decision.clone(),
                why: new.why.clone(),
                by: by.clone(),
                at: self.now(),
                supersedes: new.supersedes,
                superseded_by: None,
            });
            let settle = Settle { key: new.key.clone(), supersedes: new.supersedes };
            let seen = revision_of(known.as_deref());
            match self.put_context(project, &by, &context, seen, Some(settle)).await {
                Err(Error::Refused(Refusal::RevisionConflict { .. })) => {}
                Err(error) => return Err(error),
                Ok(warnings) => {
                    return Ok(SeenContext { warnings, ..self.context(project).await? });
                }
            }
        }
        Err(Error::Store(tasuki_store::Error::Overloaded))
    }

    async fn put_context(
        &self,
        project: &Project,
        by: &AgentId,
        context: &Context,
        seen: u32,
        settles: Option<Settle>,
    ) -> Result<Vec<Finding>, Error> {
        let content = context.body()?;
        let warnings = self.engine.check_secrets(&content)?;
        let write = Write {
            kind: Kind::Context,
            scope: Some(Scope::Project(project.clone())),
            content,
            expected: Some(seen),
            pinned: None,
            priority: None,
            settles,
        };
        let id = DocumentId::context(&self.caller.tenant(), project);
        let wish = DocumentWish::Write(Box::new(write));
        self.engine
            .one_document(Command::by(by.clone(), commands::ChangeDocument { id, wish }))
            .await?;
        Ok(warnings)
    }

    fn writes_context(&self, project: &Project, by: &AgentId) -> Result<AgentId, Error> {
        let by = self.caller.speaks_for(by)?;
        self.caller.must_in(Permission::WriteSharedContext, Some(project))?;
        Ok(by)
    }
}

fn revision_of(known: Option<&Document>) -> u32 {
    known.map_or(0, |known| known.revision)
}
