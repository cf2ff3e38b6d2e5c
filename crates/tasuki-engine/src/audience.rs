// SPDX-License-Identifier: Apache-2.0
//! For which broker a signed request is. It names the key of one, so that what one broker was sent
//! cannot be sent to another that has the same name. Brokers on one log answer for each other: they
//! share the nonces that were spent, so a request counts once among all of them.

use std::sync::Mutex;

use tasuki_core::Timestamp;
use tasuki_core::identity::PublicKey;
use tasuki_core::ids::KeyId;

use crate::engine::Engine;
use crate::error::Error;

/// How often the keys of other brokers are read at most: a wrong name must not cost a query each time.
const READ_EVERY_MS: u64 = 1000;

/// The keys of brokers on the same log, as they were read last.
#[derive(Default)]
pub(crate) struct Others(Mutex<(Option<Timestamp>, Vec<KeyId>)>);

impl Others {
    /// Whether a key is known to be one of them; `None` if that has to be read.
    fn know(&self, key: KeyId, now: Timestamp) -> Option<bool> {
        let kept = self.0.lock().expect("no holder of this lock panics");
        let (read_at, keys) = &*kept;
        let is_fresh = read_at.is_some_and(|at| now < at.plus_ms(READ_EVERY_MS));
        if keys.contains(&key) { Some(true) } else { is_fresh.then_some(false) }
    }

    fn learn(&self, keys: Vec<KeyId>, now: Timestamp) {
        *self.0.lock().expect("no holder of this lock panics") = (Some(now), keys);
    }
}

impl Engine {
    /// The broker's own key, by which requests name it and what it says is checked.
    #[must_use]
    pub fn broker_key(&self) -> Option<PublicKey> {
        self.settings.signer.as_ref().map(|signer| signer.public()).or(self.settings.key)
    }

    /// Tells the other brokers on the same log by which key this one is named.
    pub async fn introduce(&self) -> Result<(), Error> {
        match self.broker_key() {
            Some(key) => Ok(self.store.introduce(key.id()).await?),
            None => Ok(()),
        }
    }

    /// Whether a request for this broker may be answered here.
    pub(crate) async fn is_meant(&self, audience: KeyId) -> Result<bool, tasuki_store::Error> {
        if self.broker_key().is_some_and(|key| key.id() == audience) {
            return Ok(true);
        }
        let now = self.store.clock().now();
        if let Some(known) = self.others.know(audience, now) {
            return Ok(known);
        }
        let keys = self.store.brokers().await?;
        let is_one = keys.contains(&audience);
        self.others.learn(keys, now);
        Ok(is_one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_read_once_a_second_and_what_is_known_is_kept() {
        let others = Others::default();
        let (one, two, start) = (KeyId(1), KeyId(2), Timestamp(0));
        assert_eq!(others.know(one, start), None);
        others.learn(vec![one], start);
        assert_eq!(others.know(one, start), Some(true));
        assert_eq!(others.know(two, start.plus_ms(999)), Some(false));
        assert_eq!(others.know(two, start.plus_ms(1000)), None);
        assert_eq!(others.know(one, start.plus_ms(9000)), Some(true));
    }
}
