// SPDX-License-Identifier: Apache-2.0
//! Why a signature or a digest is not accepted.

use std::borrow::Cow;

use crate::ids::Timestamp;

/// Why a request does not prove who sent it. The text names no secret and repeats nothing that the
/// sender wrote, so it can be sent back and logged as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("request carries no signature with the tag tasuki-v1")]
    SignatureMissing,
    #[error("cannot read the signature: {0}")]
    SignatureMalformed(Cow<'static, str>),
    #[error("signature expired at {expires} and it is {now}; sign the request again")]
    SignatureExpired { expires: Timestamp, now: Timestamp },
    #[error("signature is from {created} and it is only {now}; set the signer's clock")]
    SignatureNotYetValid { created: Timestamp, now: Timestamp },
    #[error("signature does not cover what it must: {0}")]
    SignatureComponents(&'static str),
    #[error("signature algorithm is not ed25519")]
    SignatureAlgorithm,
    #[error("signature does not fit this request and this key")]
    SignatureWrong,
    #[error("Content-Digest with sha-256 is missing")]
    DigestMissing,
    #[error("cannot accept the Content-Digest: {0}")]
    DigestWrong(Cow<'static, str>),
}

impl Fault {
    /// The stable name of this fault, as it goes over the wire.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::SignatureMissing => "signature_missing",
            Self::SignatureMalformed(_) => "signature_malformed",
            Self::SignatureExpired { .. } => "signature_expired",
            Self::SignatureNotYetValid { .. } => "signature_not_yet_valid",
            Self::SignatureComponents(_) => "signature_components",
            Self::SignatureAlgorithm => "signature_algorithm",
            Self::SignatureWrong => "signature_wrong",
            Self::DigestMissing => "digest_missing",
            Self::DigestWrong(_) => "digest_wrong",
        }
    }
}
