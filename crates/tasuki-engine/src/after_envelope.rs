// SPDX-License-Identifier: Apache-2.0
//! What happens to an envelope after it was made: a constraint of it is lifted, and what it did not
//! pass whole is fetched after all. The envelope stays as it is.

use std::sync::Arc;

use tasuki_core::commands::{self, Command};
use tasuki_core::envelope::Envelope;
use tasuki_core::envelope::inherit::{LiftedSince, may_lift};
use tasuki_core::envelope::parts::{Form, Parts};
use tasuki_core::registry::rules::Permission;
use tasuki_core::report::Note;
use tasuki_core::{AgentId, DocumentId, Handoff, HandoffId, Hash, Refusal, Task, TaskId};
use tasuki_store::{Needs, Sight};

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::memories::SeenMemory;
use crate::sight::task_in;

/// How often a lift is tried again on the envelope that came meanwhile.
const TRIES_MAX: usize = 3;
/// How many times one envelope may have been sent on its way again.
const REDRIVES_MAX: usize = 64;

/// A task, and its last handoff with its envelope, unless that was erased.
type Concern = (Arc<Task>, Option<(Arc<Handoff>, Arc<Envelope>)>);

impl Engine {
    /// What was lifted of a handoff's envelope after it was made, also while the same envelope was
    /// with a dead letter before.
    pub(crate) async fn lifted_since(&self, handoff: &Handoff) -> Result<Vec<LiftedSince>, Error> {
        let mut lifts = handoff.lifts.to_vec();
        let mut earlier = handoff.redrive_of;
        for _ in 0..REDRIVES_MAX {
            let Some(id) = earlier else { break };
            let Some(handoff) = self.store.handoff(id).await? else { break };
            lifts.extend(handoff.lifts.iter().cloned());
            earlier = handoff.redrive_of;
        }
        if lifts.is_empty() {
            return Ok(Vec::new());
        }
        let at = lifts.iter().map(|lift| lift.reason_pos).collect();
        let reasons = self.store.bodies(at).await?;
        let told = lifts.into_iter().zip(reasons).map(|(lift, reason)| {
            let note = reason.and_then(|body| serde_json::from_str::<Note>(body.text()).ok());
            let reason = note.map_or_else(|| "erased".to_owned(), |note| note.text);
            LiftedSince { id: lift.constraint, by: lift.by, reason }
        });
        Ok(told.collect())
    }
}

impl Desk {
    /// Ends a constraint of a task, from its next envelope on. Its issuer may do that, and who opened
    /// the task, whoever holds it now.
    pub async fn lift_constraint(
        &self,
        id: TaskId,
        by: &AgentId,
        constraint: Hash,
        reason: String,
    ) -> Result<Arc<Task>, Error> {
        let by = self.caller.speaks_for(by)?;
        self.caller.must(Permission::Send, None)?;
        let reason = self.engine.note(Some(reason).filter(|reason| !reason.trim().is_empty()))?;
        let reason = reason.ok_or_else(|| invalid("reason", "is needed to lift a constraint"))?;
        for _ in 0..TRIES_MAX {
            let sight = self.engine.look(Needs::task(id).with_envelopes()).await?;
            let (task, last) = self.concerns(&sight, id, &by).await?;
            if task.envelope.is_none() {
                return Err(invalid("constraint", "is none of this task's constraints"));
            }
            let lost = || invalid("id", "the task's last envelope was erased");
            let (last, envelope) = last.ok_or_else(lost)?;
            may_lift(&envelope.parts, constraint, &by, task.decider())
                .map_err(|breach| Error::Envelope(vec![*breach]))?;
            let (handoff, by, reason) = (last.id, by.clone(), reason.clone());
            match self
                .engine
                .one(Command::by(by, commands::Lift { handoff, constraint, reason }))
                .await
            {
                Err(Error::Refused(Refusal::TaskMoved(_))) => {}
                Err(error) => return Err(error),
                Ok(_) => return self.engine.task(id).await,
            }
        }
        Err(Refusal::TaskMoved(id).into())
    }

    /// A task that somebody may speak about, with its last handoff and envelope: it sees it, or
    /// something in it is its own word.
    async fn concerns(&self, sight: &Sight, id: TaskId, by: &AgentId) -> Result<Concern, Error> {
        let task = task_in(sight, id)?;
        let last = match self.engine.last_handoff(sight, task).await? {
            Some(last) => {
                let envelope = self.engine.envelope_of(sight, &last).await?;
                envelope.map(|envelope| (last, envelope))
            }
            None => None,
        };
        let issued = last.as_ref().is_some_and(|(_, envelope)| {
            task.owner.tenant() == by.tenant()
                && envelope.parts.constraints.iter().any(|one| one.issuer == *by)
        });
        if issued || self.sees_task_in(sight, task).await? {
            return Ok((task.clone(), last));
        }
        Err(Refusal::TaskNotFound(id).into())
    }

    /// A memory for a receiver. If its envelope passed less of it than is fetched now, that is
    /// counted, once for each memory.
    pub async fn fetch_memory(
        &self,
        id: &DocumentId,
        revision: Option<u32>,
        detail: Form,
        handoff: Option<HandoffId>,
    ) -> Result<SeenMemory, Error> {
        // Who names a handoff that it cannot see hears so, whatever memory it asks for.
        let handoff = match handoff {
            Some(handoff) => Some(self.handoff(handoff).await?),
            None => None,
        };
        let id = match &handoff {
            Some(handoff) => self.meant(handoff, id).await?,
            None => id.clone(),
        };
        let reads_for = handoff.as_ref().map(|handoff| handoff.id);
        let memory = self.memory_for(&id, revision, reads_for).await?;
        if let Some(handoff) = handoff
            && let Err(error) = self.note_fetch(&handoff, &memory, detail).await
        {
            // What was asked for is there; that it was asked for is worth less.
            tracing::warn!(handoff = %handoff.id, "a fetch was not counted: {error}");
        }
        Ok(memory)
    }

    /// What a reader of a handoff means by a name: `m3` is the third item of its envelope.
    async fn meant(&self, handoff: &Handoff, id: &DocumentId) -> Result<DocumentId, Error> {
        let number = id.name().strip_prefix('m').and_then(|digits| digits.parse::<usize>().ok());
        let Some(place) = number.and_then(|number| number.checked_sub(1)) else {
            return Ok(id.clone());
        };
        let envelope = self.engine.envelope_at(handoff.envelope_pos).await?;
        let named = envelope.as_ref().and_then(|envelope| {
            let here = &envelope.parts.context;
            let passed = |id: &str| here.iter().any(|item| item.id == id);
            let refs = envelope.parts.memory_refs.iter().map(|one| &one.id);
            let refs = refs.filter(|id| !passed(id));
            here.iter().map(|item| &item.id).chain(refs).nth(place)?.parse().ok()
        });
        Ok(named.unwrap_or_else(|| id.clone()))
    }

    /// The memories of which an envelope did not pass all.
    pub async fn trimmed(&self, id: HandoffId) -> Result<Vec<String>, Error> {
        let sight = self.engine.look(Needs::handoff(id).with_envelopes()).await?;
        let handoff = self.handoff_in(&sight, id)?;
        let Some(envelope) = self.engine.envelope_of(&sight, handoff).await? else {
            return Ok(Vec::new());
        };
        let parts = &envelope.parts;
        let here = parts.context.iter().map(|item| &item.id);
        let ids = here.chain(parts.memory_refs.iter().map(|one| &one.id));
        let mut ids: Vec<String> = ids.filter(|id| trimmed(parts, id).is_some()).cloned().collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    async fn note_fetch(
        &self,
        handoff: &Handoff,
        memory: &SeenMemory,
        detail: Form,
    ) -> Result<(), Error> {
        let holder = handoff.attempts.last().map(|attempt| attempt.agent.clone());
        let Some(agent) = self.caller.agent().cloned().or(holder) else { return Ok(()) };
        let received = handoff.attempts.iter().any(|attempt| attempt.agent == agent);
        let memory = memory.kept.document.id.clone();
        if !received || handoff.fetched.contains(&memory) {
            return Ok(());
        }
        let Some(envelope) = self.engine.envelope_at(handoff.envelope_pos).await? else {
            return Ok(());
        };
        if trimmed(&envelope.parts, memory.name()).is_some_and(|passed| passed < Some(detail)) {
            let handoff = handoff.id;
            self.engine.one(Command::by(agent, commands::NoteFetch { handoff, memory })).await?;
        }
        Ok(())
    }
}

/// How much an assembled envelope passed of a memory that it did not pass whole: nothing, a line or
/// a summary. None if it passed all of it, never had it, or nobody assembled it.
fn trimmed(parts: &Parts, memory: &str) -> Option<Option<Form>> {
    parts.context_manifest?;
    let passed = parts.context.iter().find(|item| item.id == memory).map(|item| item.form);
    match passed {
        Some(Form::Full) => None,
        Some(less) => Some(Some(less)),
        None => parts.memory_refs.iter().any(|one| one.id == memory).then_some(None),
    }
}
