// SPDX-License-Identifier: Apache-2.0
//! Idempotency keys, and what they stand for: the address of the wish in its published form (ADR 026).

use serde::Serialize;
use tasuki_core::Refusal;
use tasuki_core::canonical::Body;
use tasuki_core::event::Key;
use tasuki_protocol::Wish;

use crate::error::Error;

/// The key of a request whose names are resolved, if it bears one. `on` is what it is about, where its
/// own members do not say.
pub(crate) fn of(wish: &impl Wish, on: Option<&str>) -> Option<Key> {
    let key = wish.key()?.clone();
    Some(Key { key, request: wish.address(on) })
}

/// The key of something that the broker itself says once, in whatever words.
pub(crate) fn told(name: &str) -> Option<Key> {
    let request = Body::of(&name).hash;
    name.parse().ok().map(|key| Key { key, request })
}

/// What a key stood for up to 0.1: the request as the engine has it, with the broker's defaults. Keys
/// from before an upgrade are there for another day, and one that would be a conflict is compared with
/// this too. To be removed in 0.3.
pub(crate) fn formerly(key: Option<&Key>, request: &impl Serialize, error: &Error) -> Option<Key> {
    match error {
        Error::Refused(Refusal::IdempotencyConflict { .. }) => {
            let key = key?.key.clone();
            Some(Key { key, request: Body::of(request).hash })
        }
        _ => None,
    }
}
