// SPDX-License-Identifier: Apache-2.0
//! What a store must know of a command before it is decided.

use tasuki_core::command::{Act, DocumentWish};
use tasuki_core::ids::IdempotencyKey;
use tasuki_core::{AgentId, Command};

/// Whether a command brings new work. A full disk refuses these and takes the rest.
pub(crate) fn creates(command: &Command) -> bool {
    match command {
        Command::OpenTask(_)
        | Command::Offer(_)
        | Command::Publish { .. }
        | Command::Redrive { .. }
        | Command::Amend { .. } => true,
        Command::Document { wish, .. } => matches!(wish, DocumentWish::Write(_)),
        Command::Held { act: Act::Complete { follow_ups, .. }, .. } => !follow_ups.is_empty(),
        Command::CancelTask { .. }
        | Command::Claim(_)
        | Command::ClaimOne { .. }
        | Command::Peek { .. }
        | Command::Held { .. }
        | Command::Decline { .. }
        | Command::Counter { .. }
        | Command::SettleCounter { .. }
        | Command::Approve { .. }
        | Command::Reject { .. }
        | Command::Cancel { .. }
        | Command::Abort { .. }
        | Command::Discard { .. }
        | Command::TakeReview { .. }
        | Command::Retract { .. }
        | Command::Taint { .. }
        | Command::ClearTaint { .. }
        | Command::Join { .. }
        | Command::Lift { .. }
        | Command::NoteFetch { .. }
        | Command::Sweep { .. }
        | Command::RenewAll { .. }
        | Command::RaiseEpoch { .. }
        | Command::Registry { .. }
        | Command::Erase(_) => false,
    }
}

/// Whose idempotency key a command bears.
pub(crate) fn key_of(command: &Command) -> Option<(&AgentId, &IdempotencyKey)> {
    match command {
        Command::OpenTask(open) | Command::Publish { open, .. } => {
            open.key.as_ref().map(|key| (&open.owner, &key.key))
        }
        Command::Offer(offer) => offer.key.as_ref().map(|key| (&offer.from, &key.key)),
        Command::Document { by, wish: DocumentWish::Write(write), .. } => {
            write.key.as_ref().map(|key| (by, &key.key))
        }
        _ => None,
    }
}
