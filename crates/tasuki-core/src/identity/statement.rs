// SPDX-License-Identifier: Apache-2.0
//! What agents and the broker sign apart from requests, as the bytes that are signed. A statement
//! stays checkable long after the request that brought it, by anyone who has the public key.
//!
//! Every part is the text that JSON shows for it, so that a stranger can rebuild a statement from
//! what an API returned without knowing how ids are stored. Each of these texts has one spelling.

use crate::ids::{AgentId, ClaimId, Fence, HandoffId, Hash, Timestamp};

/// No signature base of a request begins like this (those begin with a quote), so a signature for
/// the one can never be passed off as a signature for the other.
const DOMAIN: &[u8] = b"tasuki-v1\0";

/// The bytes of a statement. Lengths stand before contents, so two statements have the same bytes
/// only if they have the same kind and the same parts.
#[must_use]
pub fn statement(kind: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = DOMAIN.to_vec();
    for part in std::iter::once(&kind.as_bytes()).chain(parts) {
        let length = u64::try_from(part.len()).expect("no slice is longer than 64 bits can say");
        bytes.extend(length.to_be_bytes());
        bytes.extend(*part);
    }
    bytes
}

/// The sender of a handoff: this envelope is mine.
#[must_use]
pub fn envelope(hash: Hash) -> Vec<u8> {
    of_texts("envelope", &[&hash.to_string()])
}

/// The holder of a claim: this is how it ended. Without a `body` its place stays empty, which no
/// hash is.
#[must_use]
pub fn acknowledgment(
    handoff: HandoffId,
    envelope: Hash,
    claim: ClaimId,
    fence: Fence,
    act: &str,
    body: Option<Hash>,
) -> Vec<u8> {
    let body = body.map(|hash| hash.to_string()).unwrap_or_default();
    let (handoff, envelope) = (handoff.to_string(), envelope.to_string());
    let (claim, fence) = (claim.to_string(), fence.to_string());
    of_texts("acknowledgment", &[&handoff, &envelope, &claim, &fence, act, &body])
}

/// The broker: this envelope was given to this agent.
#[must_use]
pub fn delivery(
    handoff: HandoffId,
    envelope: Hash,
    agent: &AgentId,
    fence: Fence,
    attempt: u32,
    at: Timestamp,
) -> Vec<u8> {
    let (handoff, envelope, fence) = (handoff.to_string(), envelope.to_string(), fence.to_string());
    let (attempt, at) = (attempt.to_string(), at.to_string());
    of_texts("delivery", &[&handoff, &envelope, agent.as_str(), &fence, &attempt, &at])
}

/// An agent: this manifest describes me.
#[must_use]
pub fn manifest(hash: Hash) -> Vec<u8> {
    of_texts("manifest", &[&hash.to_string()])
}

fn of_texts(kind: &str, parts: &[&str]) -> Vec<u8> {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    statement(kind, &parts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_statement_is_its_domain_and_then_lengths_and_contents() {
        let zeros = [0; 7];
        let expected = [
            b"tasuki-v1\0".as_slice(),
            &[zeros.as_slice(), &[4]].concat(),
            b"kind",
            &[zeros.as_slice(), &[2]].concat(),
            b"ab",
            &[zeros.as_slice(), &[0]].concat(),
        ];
        assert_eq!(statement("kind", &[b"ab", b""]), expected.concat());
    }

    #[test]
    fn the_parts_are_the_texts_that_json_shows() {
        let hash = "sha256:0707070707070707070707070707070707070707070707070707070707070707";
        let (handoff, envelope) = (HandoffId(1), Hash([7; 32]));
        assert_eq!(
            acknowledgment(handoff, envelope, ClaimId(2), Fence(3), "complete", Some(envelope)),
            of_texts(
                "acknowledgment",
                &[
                    "handoff_00000000000000000000000001",
                    hash,
                    "claim_00000000000000000000000002",
                    "3",
                    "complete",
                    hash,
                ]
            )
        );
        let agent = "coder".parse().unwrap();
        assert_eq!(
            delivery(handoff, envelope, &agent, Fence(3), 4, Timestamp(1_800_000_000_000)),
            of_texts(
                "delivery",
                &[
                    "handoff_00000000000000000000000001",
                    hash,
                    "coder",
                    "3",
                    "4",
                    "2027-01-15T08:00:00.000Z",
                ]
            )
        );
    }

    #[test]
    fn no_two_kinds_or_splits_of_the_same_bytes_collide() {
        let eight = 1_u64.to_be_bytes();
        let all = [
            statement("ab", &[]),
            statement("a", &[b"b"]),
            statement("", &[b"ab"]),
            statement("", &[b"a", b"b"]),
            statement("", &[b"a", b"b", b""]),
            statement("", &[b"", b"a", b"b"]),
            statement("", &[b"ab", b""]),
            // A part that looks like the length and content of another.
            statement("", &[b"a", &eight, b"b"]),
            statement("", &[&[b"a".as_slice(), &eight, b"b"].concat()]),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn statements_that_differ_in_one_part_differ() {
        let (handoff, other) = (HandoffId(1), HandoffId(2));
        let (hash, zero) = (Hash([7; 32]), Hash::ZERO);
        let (claim, fence) = (ClaimId(1), Fence(1));
        let agent = |name: &str| name.parse::<AgentId>().unwrap();
        let at = Timestamp(0);
        let all = [
            envelope(hash),
            manifest(hash),
            envelope(zero),
            manifest(zero),
            acknowledgment(handoff, hash, claim, fence, "complete", None),
            acknowledgment(other, hash, claim, fence, "complete", None),
            acknowledgment(handoff, zero, claim, fence, "complete", None),
            acknowledgment(handoff, hash, ClaimId(2), fence, "complete", None),
            acknowledgment(handoff, hash, claim, Fence(2), "complete", None),
            acknowledgment(handoff, hash, claim, fence, "fail", None),
            acknowledgment(handoff, hash, claim, fence, "complete", Some(zero)),
            delivery(handoff, hash, &agent("a"), fence, 1, at),
            delivery(other, hash, &agent("a"), fence, 1, at),
            delivery(handoff, zero, &agent("a"), fence, 1, at),
            delivery(handoff, hash, &agent("b"), fence, 1, at),
            delivery(handoff, hash, &agent("a"), Fence(11), 1, at),
            delivery(handoff, hash, &agent("a"), fence, 11, at),
            delivery(handoff, hash, &agent("a"), fence, 1, Timestamp(1)),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    proptest::proptest! {
        #[test]
        fn a_statement_can_be_read_back_in_one_way_only(
            parts in proptest::collection::vec(
                proptest::collection::vec(proptest::num::u8::ANY, 0..12), 1..6),
        ) {
            let kind = "k".repeat(parts[0].len());
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let bytes = statement(&kind, &slices);
            let mut rest = bytes.strip_prefix(DOMAIN).unwrap();
            let mut read = Vec::new();
            while !rest.is_empty() {
                let (length, after) = rest.split_at(8);
                let length = u64::from_be_bytes(length.try_into().unwrap());
                let (part, after) = after.split_at(usize::try_from(length).unwrap());
                read.push(part);
                rest = after;
            }
            proptest::prop_assert_eq!(read[0], kind.as_bytes());
            proptest::prop_assert_eq!(&read[1..], &slices[..]);
        }
    }
}
