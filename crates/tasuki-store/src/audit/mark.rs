// SPDX-License-Identifier: Apache-2.0
//! How far a log was verified. It is kept beside the log, signed by the broker that verified it and
//! bound to a signed checkpoint, so that the next check goes on from there.

use ed25519_dalek::{Signature, Signer, SigningKey};
use serde::{Deserialize, Serialize};
use tasuki_core::{Hash, Position};

use super::{Verdict, hex, unhex};
use crate::Checkpoint;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The last entry that was dropped by retention then.
    pub(super) start: Position,
    pub(crate) position: Position,
    pub(super) log_hash: Hash,
    /// What there was up to here.
    pub(super) counted: Verdict,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    mark: String,
    signature: String,
}

/// What the signature covers. The first line keeps it from meaning anything elsewhere.
fn statement(mark: &str) -> Vec<u8> {
    format!("tasuki verified v1\n{mark}\n").into_bytes()
}

impl Mark {
    /// What is kept after a check of a log up to its head: how far the next one need not look, or
    /// after damage, in place of every mark before, that it has to look at everything.
    pub(crate) fn to_keep(
        mark: Option<&Self>,
        head: Position,
        key: &SigningKey,
    ) -> (Position, String) {
        let Some(mark) = mark else { return (Position(head.0 + 1), String::new()) };
        let text = serde_json::to_string(mark).expect("a mark has string keys only");
        let signature = hex(&key.sign(&statement(&text)).to_bytes());
        let kept = Kept { mark: text, signature };
        (mark.position, serde_json::to_string(&kept).expect("it has string keys only"))
    }

    /// Reads what was kept, if this broker signed it.
    pub(crate) fn kept(text: &str, key: &SigningKey) -> Option<Self> {
        let Kept { mark, signature } = serde_json::from_str(text).ok()?;
        let signature = Signature::from_bytes(&unhex(&signature)?);
        key.verifying_key().verify_strict(&statement(&mark), &signature).ok()?;
        serde_json::from_str(&mark).ok()
    }

    /// Whether the log that begins after `start` still has the checkpoint that it was verified up
    /// to.
    pub(crate) fn holds(&self, start: Position, checkpoint: Option<&Checkpoint>) -> bool {
        self.start == start
            && checkpoint.is_some_and(|checkpoint| {
                checkpoint.position == self.position
                    && checkpoint.log_hash == self.log_hash
                    && checkpoint.is_signed()
            })
    }
}
