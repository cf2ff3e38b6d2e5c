// SPDX-License-Identifier: Apache-2.0
//! Tokens as people hold them: `tsk_`, the id's digits, an underscore, and a secret of 256 bits.
//! Only the hash of the secret is kept.

use sha2::{Digest, Sha256};
use tasuki_core::Hash;
use tasuki_core::ids::TokenId;

const PREFIX: &str = "tsk_";
const ID_PREFIX: &str = "token_";
const SECRET_CHARS: usize = 64;

/// A new token's text and the hash of its secret.
pub(crate) fn make(id: TokenId, random: [u128; 2]) -> (String, Hash) {
    let secret = format!("{:032x}{:032x}", random[0], random[1]);
    let id = id.to_string();
    let digits = id.strip_prefix(ID_PREFIX).unwrap_or(&id);
    (format!("{PREFIX}{digits}_{secret}"), hash(&secret))
}

/// The id that a text names, and the hash of the secret in it.
pub(crate) fn parse(text: &str) -> Option<(TokenId, Hash)> {
    let (digits, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let id = format!("{ID_PREFIX}{digits}").parse().ok()?;
    (secret.len() == SECRET_CHARS).then(|| (id, hash(secret)))
}

fn hash(secret: &str) -> Hash {
    Hash(Sha256::digest(secret.as_bytes()).into())
}

/// Compares hashes in a time that does not depend on where they differ.
pub(crate) fn same(one: Hash, other: Hash) -> bool {
    one.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_itself_and_keeps_its_secret() {
        let (text, hash) = make(TokenId(7), [1, 2]);
        assert_eq!(parse(&text), Some((TokenId(7), hash)));
        let other = make(TokenId(7), [1, 3]).1;
        assert!(same(hash, hash) && !same(hash, other));
        for wrong in ["", "tsk_", "tsk_7_x", &text[1..], &text[..text.len() - 1]] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
