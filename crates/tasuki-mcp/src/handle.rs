// SPDX-License-Identifier: Apache-2.0
//! A claim in one word. A model copies it from a result into the next call, and any broker can answer
//! that call, because all that a holder has to show is in the word: which handoff, which claim, and its
//! fence. It is no secret of its own: the broker asks who the caller is besides.

use std::fmt;

use base64::prelude::*;
use serde_json::{Map, Value, json};
use tasuki_core::{ClaimId, Fence, HandoffId};
use tasuki_protocol::Problem;

const PREFIX: &str = "claim_";
const BYTES: usize = 16 + 16 + 8;
const SUM_BYTES: usize = 4;

/// What the holder of a claim shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    pub(crate) handoff: HandoffId,
    pub(crate) claim: ClaimId,
    pub(crate) fence: Fence,
}

impl Handle {
    /// Takes the handle out of a tool's arguments.
    pub(crate) fn taken(arguments: &mut Map<String, Value>) -> Result<Self, Problem> {
        match arguments.remove("claim") {
            Some(Value::String(text)) => Self::read(&text),
            Some(_) => Err(Problem::invalid("claim", "expected the text that `claim` returned")),
            None => Err(Problem::invalid("claim", "is missing; `claim` returns it")),
        }
    }

    pub(crate) fn read(text: &str) -> Result<Self, Problem> {
        let bytes = text.trim().strip_prefix(PREFIX).and_then(decoded).ok_or_else(|| {
            let problem = "is no handle; copy the one that the tool `claim` returned, whole";
            Problem::invalid("claim", problem)
        })?;
        let number = |from: usize| {
            let mut part = [0; 16];
            part.copy_from_slice(&bytes[from..from + 16]);
            u128::from_be_bytes(part)
        };
        let mut fence = [0; 8];
        fence.copy_from_slice(&bytes[32..BYTES]);
        Ok(Self {
            handoff: HandoffId(number(0)),
            claim: ClaimId(number(16)),
            fence: Fence(u64::from_be_bytes(fence)),
        })
    }

    /// What the operations of a holder ask for.
    pub(crate) fn proof(&self) -> Map<String, Value> {
        let mut proof = Map::new();
        proof.insert("claim_id".into(), json!(self.claim));
        proof.insert("fence".into(), json!(self.fence));
        proof
    }

    pub(crate) fn on(&self) -> [String; 1] {
        [self.handoff.to_string()]
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handoff, claim, fence } = *self;
        let mut bytes = Vec::with_capacity(BYTES + SUM_BYTES);
        bytes.extend({ handoff.0 }.to_be_bytes());
        bytes.extend({ claim.0 }.to_be_bytes());
        bytes.extend(fence.0.to_be_bytes());
        bytes.extend(sum(&bytes).to_be_bytes());
        write!(f, "{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// The bytes of a handle, if none of them was changed on the way.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
    let (said, found) = bytes.split_at_checked(BYTES)?;
    (found == sum(said).to_be_bytes()).then_some(bytes)
}

/// Tells a handle that was copied wrongly from a claim that is over (FNV-1a); it guards nothing.
fn sum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Handle =
        Handle { handoff: HandoffId(7), claim: ClaimId(u128::MAX - 3), fence: Fence(1 << 40 | 2) };

    #[test]
    fn a_handle_survives_its_text() {
        assert_eq!(Handle::read(&ONE.to_string()).unwrap(), ONE);
        assert_eq!(Handle::read(&format!(" {ONE}\n")).unwrap(), ONE, "as models copy it");
    }

    #[test]
    fn a_handle_that_was_copied_wrongly_is_none() {
        let text = ONE.to_string();
        let swapped = text.replace('_', "-");
        let shorter = &text[..text.len() - 1];
        let longer = format!("{text}A");
        let changed = format!("{}B", shorter);
        for wrong in ["", "claim_", "claim_AAAA", &swapped, shorter, &longer, &changed] {
            let problem = Handle::read(wrong).unwrap_err();
            assert_eq!(problem.code, "invalid_request", "{wrong:?}");
            assert_eq!(problem.details.0["field"], "claim");
        }
    }
}
