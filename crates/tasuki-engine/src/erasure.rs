// SPDX-License-Identifier: Apache-2.0
//! Erasing what was passed on in a task that has ended: its envelopes, results, notes and reasons.

use std::sync::Arc;

use tasuki_core::commands::{Command, ERASED_MAX, Erasable, Erase};
use tasuki_core::registry::rules::Permission;
use tasuki_core::{AgentId, Event, Handoff, HandoffId, Refusal};

use crate::desk::Desk;
use crate::error::{Error, invalid};

impl Desk {
    /// Removes everything that a handoff carried, for good. Only who administers may.
    pub async fn erase_handoff(
        &self,
        id: HandoffId,
        by: &AgentId,
        reason: String,
    ) -> Result<Arc<Handoff>, Error> {
        let by = self.caller.speaks_for(by)?;
        // Who administers can erase what it may not read.
        let handoff = match self.caller.may(Permission::Administer, None) {
            true => self.engine.handoff(id).await?,
            false => self.handoff(id).await?,
        };
        if handoff.from.tenant() != by.tenant() {
            return Err(Refusal::HandoffNotFound(id).into());
        }
        self.caller.must(Permission::Administer, None)?;
        let reason = self.engine.note(Some(reason))?;
        let reason = reason.ok_or_else(|| invalid("reason", "is needed to erase"))?;
        let task = self.engine.task(handoff.task_id).await?;
        let mut at = vec![handoff.envelope_pos];
        for link in self.engine.chain(handoff.task_id).await? {
            let sealed = &link.entry.sealed;
            let ours = sealed.record.handoff_id == Some(id) || sealed.position == task.intent_pos;
            let is_word = !matches!(sealed.record.event, Event::Erased(_));
            if ours && is_word && link.body.is_some() {
                at.push(sealed.position);
            }
        }
        at.sort_unstable();
        at.dedup();
        at.truncate(ERASED_MAX);
        let erase = Erase { what: Erasable::Handoff { id, at }, reason };
        let erased = self.engine.one_handoff(Command::by(by, erase)).await;
        self.engine.envelopes.forget();
        erased
    }
}
