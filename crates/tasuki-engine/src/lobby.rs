// SPDX-License-Identifier: Apache-2.0
//! Where doors let callers in. A door has this and not the engine: it learns who asks, leads them to a
//! desk, and can do nothing past it.

use std::sync::Arc;

use tasuki_protocol::Code;

use crate::authenticate::Shown;
use crate::caller::Caller;
use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::Error;
use crate::operations::Kind;

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

    /// Remembers a request that nobody stood behind.
    pub fn note_stranger(&self, from: &str, code: Code, path: &str) {
        self.engine.note_stranger(from, code, path);
    }
}
