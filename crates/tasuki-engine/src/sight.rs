// SPDX-License-Identifier: Apache-2.0
//! Looking once. An operation says what it must see, gets one [`Sight`] of the store, and passes that
//! on: who may see what, what was agreed and what follows are all told from the same images.
//! Envelopes are parsed once, however many operations need them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tasuki_core::envelope::Envelope;
use tasuki_core::{Body, Handoff, HandoffId, Hash, Position, Refusal, Task, TaskId};
use tasuki_store::{Needs, Sight};

use crate::engine::Engine;
use crate::error::Error;

/// How many envelopes are kept parsed, and how much text they may be in all; beyond it all are
/// forgotten. Parsed, an envelope takes several times the size of its text.
const ENVELOPES_MAX: usize = 4096;
const ENVELOPE_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Engine {
    pub(crate) async fn look(&self, needs: Needs) -> Result<Sight, Error> {
        Ok(self.store.look(needs).await?)
    }

    /// The envelope of a handoff, by a look that may have been taken without it.
    pub(crate) async fn envelope_of(
        &self,
        sight: &Sight,
        handoff: &Handoff,
    ) -> Result<Option<Arc<Envelope>>, Error> {
        match sight.envelope(handoff) {
            Some(body) => Ok(Some(self.envelopes.parsed(body)?)),
            None => self.envelope_at(handoff.envelope_pos).await,
        }
    }

    /// The envelope that came with an event, unless it was erased.
    pub(crate) async fn envelope_at(&self, at: Position) -> Result<Option<Arc<Envelope>>, Error> {
        let sight = self.look(Needs::default().and_bodies([at])).await?;
        sight.body(at).map(|body| self.envelopes.parsed(body)).transpose()
    }
}

/// A handoff in sight.
pub(crate) fn handoff_in(sight: &Sight, id: HandoffId) -> Result<&Arc<Handoff>, Error> {
    Ok(sight.handoff(id).ok_or(Refusal::HandoffNotFound(id))?)
}

/// A task in sight.
pub(crate) fn task_in(sight: &Sight, id: TaskId) -> Result<&Arc<Task>, Error> {
    Ok(sight.task(id).ok_or(Refusal::TaskNotFound(id))?)
}

/// Envelopes by their addresses. Only a body that the store still has is looked up here, so what was
/// erased is not found again.
#[derive(Default)]
pub(crate) struct Envelopes(Mutex<Parsed>);

#[derive(Default)]
struct Parsed {
    by_hash: HashMap<Hash, Arc<Envelope>>,
    bytes: usize,
}

impl Envelopes {
    fn parsed(&self, body: &Body) -> Result<Arc<Envelope>, Error> {
        let kept = || self.0.lock().expect("no holder of this lock panics");
        if let Some(known) = kept().by_hash.get(&body.hash) {
            return Ok(known.clone());
        }
        let envelope: Envelope = serde_json::from_str(body.text()).map_err(unreadable)?;
        let envelope = Arc::new(envelope);
        let bytes = body.text().len();
        let mut kept = kept();
        if kept.by_hash.len() >= ENVELOPES_MAX || kept.bytes + bytes > ENVELOPE_BYTES_MAX {
            *kept = Parsed::default();
        }
        if kept.by_hash.insert(body.hash, envelope.clone()).is_none() {
            kept.bytes += bytes;
        }
        Ok(envelope)
    }

    /// What was erased is not kept in memory either.
    pub(crate) fn forget(&self) {
        *self.0.lock().expect("no holder of this lock panics") = Parsed::default();
    }
}

/// An envelope that cannot be read is a fault of the store, and never an envelope without content.
fn unreadable(error: serde_json::Error) -> Error {
    let source = Arc::new(error);
    Error::Store(tasuki_store::Error::Failed { step: "read an envelope", source })
}
