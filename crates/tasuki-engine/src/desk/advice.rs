// SPDX-License-Identifier: Apache-2.0
//! What the sender of an offer may want to know about it: that the same work is under way already, that
//! it decides otherwise than its project, that it passes what does not belong into an envelope. Nothing
//! of it keeps an offer back, and that it could not be found out keeps no reply back.

use std::collections::BTreeMap;

use serde_json::Value;
use tasuki_core::assembly::{Warning, WarningCode, advise};
use tasuki_core::envelope::project::is_project;
use tasuki_core::{DocumentId, Handoff, TaskState};
use tasuki_store::{Needs, TaskFilter};

use super::Desk;
use crate::error::Error;
use crate::memories::MEMORIES_MAX;
use crate::requests::{NewOffer, Offered};

/// How many open tasks of a project are looked at for the same words.
const TASKS_MAX: usize = 200;
/// How many warnings one reply carries.
const WARNINGS_MAX: usize = 16;
/// Shorter texts are no copies worth a word.
const COPY_BYTES_MIN: usize = 200;
/// How deep a payload is looked into.
const DEPTH_MAX: usize = 8;

impl Desk {
    /// The same reply, with what its sender may want to know.
    pub(super) async fn advised(&self, new: &NewOffer, mut offered: Offered) -> Offered {
        match self.advice(new, &offered.handoff).await {
            Ok(warnings) => offered.warnings = warnings,
            Err(error) => tracing::debug!("what to say about an offer is not known: {error}"),
        }
        offered
    }

    async fn advice(&self, new: &NewOffer, handoff: &Handoff) -> Result<Vec<Warning>, Error> {
        let mut warnings = self.against_project(new, handoff).await?;
        if new.task_id.is_none() {
            warnings.extend(self.same_words(new, handoff).await?);
        }
        warnings.extend(self.unneeded(new).await?);
        warnings.truncate(WARNINGS_MAX);
        Ok(warnings)
    }

    /// Decisions that go against what the project has decided, where that is not refused.
    async fn against_project(
        &self,
        new: &NewOffer,
        handoff: &Handoff,
    ) -> Result<Vec<Warning>, Error> {
        let keyed = new.hop.said.decisions.iter().filter_map(|it| Some((it, it.key.as_deref()?)));
        let keyed: Vec<_> = keyed.collect();
        if keyed.is_empty() {
            return Ok(Vec::new());
        }
        let sight = self.engine.look(Needs::task(handoff.task_id)).await?;
        let project = sight.task(handoff.task_id).and_then(|task| task.project.clone());
        let rules = self.engine.rules_of(new.from.tenant(), project.as_ref()).await?;
        let Some(rules) = rules.filter(|rules| is_project(&rules.issuer)) else {
            return Ok(Vec::new());
        };
        let told = keyed.into_iter().filter_map(|(new, key)| {
            let settled = rules.against(key, &new.decision)?;
            let (number, decision) = (settled.number, &settled.decision);
            Some(Warning {
                code: WarningCode::AgainstProject,
                id: Some(key.to_owned()),
                text: format!("the project decided otherwise (decision {number}): {decision}"),
            })
        });
        Ok(told.collect())
    }

    /// Open tasks of the same project with the same words of the user.
    async fn same_words(&self, new: &NewOffer, handoff: &Handoff) -> Result<Vec<Warning>, Error> {
        let Some(project) = new.project.clone() else { return Ok(Vec::new()) };
        let sight = self.engine.look(Needs::task(handoff.task_id)).await?;
        let Some(own) = sight.task(handoff.task_id) else { return Ok(Vec::new()) };
        let open = TaskFilter {
            tenant: Some(self.caller.tenant()),
            state: Some(TaskState::Open),
            project: Some(project),
            max: TASKS_MAX,
            ..TaskFilter::default()
        };
        let tasks = self.engine.store.list_tasks(open).await?;
        let same = tasks.iter().filter(|it| {
            it.intent == own.intent
                && it.id != own.id
                && it.parent_task_id.is_none()
                && it.channel.is_none()
        });
        let mut warnings = Vec::new();
        for task in same.take(WARNINGS_MAX) {
            let code = WarningCode::SameIntent;
            // Whoever may not see it hears that it is there, and no more.
            warnings.push(match self.task(task.id).await {
                Ok(task) => Warning {
                    code,
                    id: Some(task.id.to_string()),
                    text: format!("is open with the same words, and {} owns it", task.owner.name()),
                },
                Err(_) => Warning {
                    code,
                    id: None,
                    text: "another task of the project is open with the same words".into(),
                },
            });
        }
        Ok(warnings)
    }

    /// Raw logs, finished reasoning and copies of what can be fetched.
    async fn unneeded(&self, new: &NewOffer) -> Result<Vec<Warning>, Error> {
        let mut texts: Vec<(String, String, &str)> = Vec::new();
        // What was assembled has its warnings in the receipt.
        if new.hop.said.reading.is_none() {
            for item in &new.hop.said.context {
                let kind = item.kind.clone().unwrap_or_default();
                texts.extend(item.text.as_deref().map(|text| (item.id.clone(), kind, text)));
            }
        }
        for (name, value) in new.hop.payload.members() {
            each_text(value, &format!("payload.{name}"), DEPTH_MAX, &mut |path, text| {
                texts.push((path.to_owned(), String::new(), text));
            });
        }
        texts.retain(|(_, _, text)| text.contains('\n') || text.len() >= COPY_BYTES_MIN);
        let copies = self.copies(new, &texts).await?;
        let warned = texts.iter().flat_map(|(id, kind, text)| {
            advise(id, kind, text, copies.get(*text).map(String::as_str))
        });
        Ok(warned.collect())
    }

    /// Which of these texts are those of memories that the same offer refers to.
    async fn copies(
        &self,
        new: &NewOffer,
        texts: &[(String, String, &str)],
    ) -> Result<BTreeMap<String, String>, Error> {
        let said = &new.hop.said;
        let refs = said.memory_refs.iter().map(|one| &one.id);
        let ids = refs.chain(said.context.iter().map(|item| &item.id));
        let mut ids: Vec<DocumentId> = ids.filter_map(|id| id.parse().ok()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.truncate(MEMORIES_MAX);
        let long = |text: &str| text.len() >= COPY_BYTES_MIN;
        if ids.is_empty() || !texts.iter().any(|(_, _, text)| long(text)) {
            return Ok(BTreeMap::new());
        }
        let memories = self.memories(ids.into_iter().map(|id| (id, None)).collect()).await?;
        let found = memories.into_iter().flatten().filter_map(|memory| {
            let text = memory.content?.text;
            long(&text).then(|| (text, format!("memory {}", memory.kept.document.id.name())))
        });
        Ok(found.collect())
    }
}

/// Calls back with every text in a value, and where it stands.
fn each_text<'v>(value: &'v Value, path: &str, depth: usize, found: &mut dyn FnMut(&str, &'v str)) {
    match value {
        Value::String(text) => found(path, text),
        Value::Array(items) if depth > 0 => {
            for (at, item) in items.iter().enumerate() {
                each_text(item, &format!("{path}.{at}"), depth - 1, found);
            }
        }
        Value::Object(members) if depth > 0 => {
            for (name, item) in members {
                each_text(item, &format!("{path}.{name}"), depth - 1, found);
            }
        }
        _ => {}
    }
}
