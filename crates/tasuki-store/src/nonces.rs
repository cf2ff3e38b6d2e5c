// SPDX-License-Identifier: Apache-2.0
//! Nonces of signed requests, each good for once. They count only for as long as their signature
//! does, so two generations are enough: when the older one can no longer matter, it is dropped
//! whole. What a process spent dies with it; the next one refuses every signature that was made
//! before it began, so nothing is good for twice across a restart either.

use std::collections::HashSet;
use std::sync::Mutex;

use sha2::{Digest, Sha256};
use tasuki_core::Timestamp;
use tasuki_core::ids::KeyId;

/// How long a generation takes: longer than any signature counts.
const GENERATION_MS: u64 = 120_000;

/// A nonce as it was presented with a signature that is right.
#[derive(Debug, Clone)]
pub struct Nonce {
    pub key: KeyId,
    pub nonce: String,
    /// When the signature was made, and until when it counts.
    pub created: Timestamp,
    pub expires: Timestamp,
}

impl Nonce {
    pub(crate) fn id(&self) -> u128 {
        let mut hash = Sha256::new();
        hash.update(self.key.0.to_be_bytes());
        hash.update(self.nonce.as_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        u128::from_be_bytes(digest[..16].try_into().expect("sixteen bytes are sixteen bytes"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// It was never seen and is spent now.
    Fresh,
    Replayed,
    /// It may have been spent before this broker began; a new signature will do.
    BeforeStart,
}

pub(crate) struct Nonces {
    began: Timestamp,
    seen: Mutex<Seen>,
}

struct Seen {
    now: HashSet<u128>,
    before: HashSet<u128>,
    turned: Timestamp,
}

impl Nonces {
    pub(crate) fn new(began: Timestamp) -> Self {
        let seen = Seen { now: HashSet::new(), before: HashSet::new(), turned: began };
        Self { began, seen: Mutex::new(seen) }
    }

    pub(crate) fn spend(&self, nonce: &Nonce, now: Timestamp) -> Spent {
        // Signatures are dated by the second, so one of the second in which this broker began may
        // have been made before it did.
        if nonce.created < self.began {
            return Spent::BeforeStart;
        }
        let mut seen = self.seen.lock().expect("no holder of this lock panics");
        if seen.turned.plus_ms(GENERATION_MS) <= now {
            seen.before = std::mem::take(&mut seen.now);
            seen.turned = now;
        }
        let id = nonce.id();
        if seen.before.contains(&id) || !seen.now.insert(id) {
            Spent::Replayed
        } else {
            Spent::Fresh
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(text: &str, created: i64) -> Nonce {
        let created = Timestamp(created);
        Nonce { key: KeyId(7), nonce: text.into(), created, expires: created.plus_ms(60_000) }
    }

    #[test]
    fn a_nonce_is_good_for_once_and_for_one_key() {
        let nonces = Nonces::new(Timestamp(0));
        let now = Timestamp(1000);
        assert_eq!(nonces.spend(&nonce("a", 1000), now), Spent::Fresh);
        assert_eq!(nonces.spend(&nonce("a", 1000), now), Spent::Replayed);
        let other = Nonce { key: KeyId(8), ..nonce("a", 1000) };
        assert_eq!(nonces.spend(&other, now), Spent::Fresh);
    }

    #[test]
    fn a_nonce_is_remembered_for_longer_than_its_signature_counts() {
        let nonces = Nonces::new(Timestamp(0));
        assert_eq!(nonces.spend(&nonce("a", 0), Timestamp(0)), Spent::Fresh);
        for ms in [60_000, 119_000, 121_000, 180_000] {
            assert_eq!(nonces.spend(&nonce("a", 0), Timestamp(ms)), Spent::Replayed);
        }
    }

    #[test]
    fn what_was_signed_before_the_start_is_refused() {
        let nonces = Nonces::new(Timestamp(10_500));
        let now = Timestamp(10_600);
        assert_eq!(nonces.spend(&nonce("a", 9000), now), Spent::BeforeStart);
        assert_eq!(nonces.spend(&nonce("b", 10_000), now), Spent::BeforeStart);
        assert_eq!(nonces.spend(&nonce("c", 11_000), now), Spent::Fresh);
    }
}
