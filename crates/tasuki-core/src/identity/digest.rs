// SPDX-License-Identifier: Apache-2.0
//! `Content-Digest` (RFC 9530), with sha-256 and nothing else: it ties a body to a signed request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::Fault;
use super::field;

/// The header value for a body.
#[must_use]
pub fn of(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}

/// Refuses a body that is not the one in the header. The header may name other algorithms, too;
/// they are not looked at, because a match of theirs would prove nothing.
pub fn check(header: &str, body: &[u8]) -> Result<(), Fault> {
    let members = field::dictionary(header).map_err(|why| Fault::DigestWrong(why.into()))?;
    let ours = members.iter().find(|member| member.key == "sha-256").ok_or(Fault::DigestMissing)?;
    let Some(field::Bare::ByteSequence(given)) = &ours.item else {
        return Err(Fault::DigestWrong("sha-256 is not a byte sequence".into()));
    };
    if given[..] != Sha256::digest(body)[..] {
        return Err(Fault::DigestWrong("sha-256 is not that of the body".into()));
    }
    Ok(())
}

/// What a signature of this request has to cover: the checked header, or nothing if there is
/// neither header nor body. A body without a header is refused, because nothing would protect it;
/// whoever fills [`super::Request::content_digest`] should do it with this.
pub fn covering<'a>(header: Option<&'a str>, body: &[u8]) -> Result<Option<&'a str>, Fault> {
    match header {
        Some(header) => check(header, body).map(|()| Some(header)),
        None if body.is_empty() => Ok(None),
        None => Err(Fault::DigestMissing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"hello": "world"}"#;
    const HEADER: &str = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";

    #[track_caller]
    fn refused(header: &str, code: &str) {
        assert_eq!(check(header, BODY).unwrap_err().code(), code, "{header}");
    }

    #[test]
    fn a_known_body_has_its_known_digest() {
        assert_eq!(of(BODY), HEADER);
        assert_eq!(check(HEADER, BODY), Ok(()));
    }

    #[test]
    fn other_algorithms_beside_sha_256_are_ignored() {
        assert_eq!(check(&format!("sha-512=:AAAA:, {HEADER}, md5=?0, x=(a b);c"), BODY), Ok(()));
        refused("sha-512=:AAAA:", "digest_missing");
        refused("", "digest_missing");
    }

    #[test]
    fn a_digest_that_is_wrong_repeated_or_malformed_is_refused() {
        assert_eq!(check(HEADER, b"{}").unwrap_err().code(), "digest_wrong");
        for header in [
            &format!("{HEADER}, {HEADER}"),
            "sha-256",
            "sha-256=::",
            "sha-256=:X48E9qOokqqrvdts8nOJRA==:",
            "sha-256=(:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:)",
            "sha-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=",
            "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=",
            &format!("{HEADER},"),
            &format!("{HEADER}, Ä=1"),
            &format!("{HEADER}, x=\"{}\"", "a".repeat(field::HEADER_BYTES_MAX)),
        ] {
            refused(header, "digest_wrong");
        }
    }

    #[test]
    fn a_body_without_a_digest_is_refused() {
        assert_eq!(covering(None, BODY), Err(Fault::DigestMissing));
        assert_eq!(covering(None, b""), Ok(None));
        assert_eq!(covering(Some(HEADER), BODY), Ok(Some(HEADER)));
        assert_eq!(covering(Some(HEADER), b"").unwrap_err().code(), "digest_wrong");
    }
}
