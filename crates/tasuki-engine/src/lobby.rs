// SPDX-License-Identifier: Apache-2.0
//! Where doors let callers in. A door has this and not the engine: it learns who asks, leads them to a
//! desk, and can do nothing past it.

use std::sync::Arc;

use tasuki_core::identity::{PublicKey, Signature};
use tasuki_core::ids::KeyId;
use tasuki_protocol::Code;

use crate::authenticate::Shown;
use crate::caller::Caller;
use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::Error;
use crate::instruments::Ended;
use crate::operations::{Entry, Kind};

#[derive(Clone)]
pub struct Lobby {
    pub(crate) engine: Arc<Engine>,
}

impl From<Arc<Engine>> for Lobby {
    fn from(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

impl Lobby {
    /// Finds out who a request is from.
    pub async fn authenticate(&self, shown: Shown<'_>) -> Result<Caller, Error> {
        self.engine.authenticate(shown).await
    }

    /// Takes a request of a caller in, unless its tenant makes more of them than it may. Work under
    /// way may always be finished, whatever its tenant has used up.
    pub fn admit(&self, caller: &Caller, kind: Kind) -> Result<(), Error> {
        let admitted = self.engine.admit(caller);
        if kind == Kind::Finishes { Ok(()) } else { admitted }
    }

    /// Whether this is somebody known who looks after the whole broker.
    #[must_use]
    pub fn looks_after_all(&self, caller: &Caller) -> bool {
        caller.agent().is_some() && caller.is_operator()
    }

    /// Whether nobody has to say who it is.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.engine.settings.open
    }

    /// The broker's own signature over what it publishes, and its key. A broker where nobody has to say
    /// who it is does not vouch for anybody.
    #[must_use]
    pub fn vouch(&self, message: &[u8]) -> Option<(PublicKey, Signature)> {
        let signer = self.engine.settings.signer.as_ref()?;
        Some((signer.public(), signer.sign(message)))
    }

    /// A secret for one purpose that only this broker has, and the key that it follows from.
    #[must_use]
    pub fn derived(&self, purpose: &str) -> Option<(KeyId, [u8; 32])> {
        let key = self.engine.settings.own_key.as_ref()?;
        Some((key.public().id(), key.derive(purpose)))
    }

    /// Serves a caller.
    #[must_use]
    pub fn desk(&self, caller: Caller) -> Desk {
        self.engine.desk(caller)
    }

    /// Writes into the audit log that somebody known tried what it may not do. What it tried is the
    /// operation's name, and what that was about.
    pub async fn note_denied(&self, caller: &Caller, code: Code, operation: &str) {
        self.engine.note_denied(caller, code, operation).await;
    }

    /// Counts a request by how it ended.
    pub fn note_answered(&self, entry: &Entry, ended: Ended, code: Option<Code>) {
        self.engine.instruments.answered(entry, ended, code);
    }

    /// Remembers a request that nobody stood behind.
    pub fn note_stranger(&self, from: &str, code: Code, path: &str) {
        self.engine.note_stranger(from, code, path);
    }
}
