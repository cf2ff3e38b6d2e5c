// SPDX-License-Identifier: Apache-2.0
//! Tokens and credentials as they lie in the log: encrypted (AES-256-GCM) with a key that follows from
//! the broker's own, and bound to the config that they belong to.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::prelude::*;

/// What the key is derived for.
pub(super) const PURPOSE: &str = "a2a push configs";

pub(super) fn seal(secret: &[u8; 32], bound_to: &str, mut text: Vec<u8>) -> Option<String> {
    let key = RandomizedNonceKey::new(&AES_256_GCM, secret).ok()?;
    let nonce = key.seal_in_place_append_tag(Aad::from(bound_to.as_bytes()), &mut text).ok()?;
    let mut sealed = nonce.as_ref().to_vec();
    sealed.extend(text);
    Some(BASE64_STANDARD.encode(sealed))
}

pub(super) fn open(secret: &[u8; 32], bound_to: &str, sealed: &str) -> Option<Vec<u8>> {
    let sealed = BASE64_STANDARD.decode(sealed).ok()?;
    let (nonce, text) = sealed.split_at_checked(NONCE_LEN)?;
    let key = RandomizedNonceKey::new(&AES_256_GCM, secret).ok()?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut text = text.to_vec();
    let opened = key.open_in_place(nonce, Aad::from(bound_to.as_bytes()), &mut text).ok()?;
    Some(opened.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_its_key_where_it_belongs_and_nowhere_else() {
        let sealed = seal(&[7; 32], "handoff/hook", b"secret".to_vec()).unwrap();
        assert!(!sealed.contains("secret"));
        assert_eq!(open(&[7; 32], "handoff/hook", &sealed).unwrap(), b"secret");
        assert!(open(&[8; 32], "handoff/hook", &sealed).is_none());
        assert!(open(&[7; 32], "handoff/other", &sealed).is_none());
        assert!(open(&[7; 32], "handoff/hook", "AAAA").is_none());
    }
}
