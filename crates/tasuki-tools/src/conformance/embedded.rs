// SPDX-License-Identifier: Apache-2.0
//! The files of `conformance/` and the fixtures that they name, built into the program. A test
//! compares the lists with the folders.

macro_rules! embedded {
    ($folder:literal, $($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../../../", $folder, "/", $name)))),+]
    };
}

pub(super) const FRAME: &str = include_str!("../../../../conformance/suite.json");

/// The operations that the steps of the checks name, with their methods and paths.
pub(super) const OPENAPI: &str = include_str!("../../../../api/openapi.json");

/// The checks, level by level.
pub(super) const CHECKS: &[(&str, &str)] = embedded!("conformance",
    "1-schema.json"
    "2-delivery.json"
    "3-chain.json"
    "4-context.json"
    "5-versioning.json");

/// The fixtures of `examples/coder-reviewer-tester/`.
pub(super) const FIXTURES: &[(&str, &str)] = embedded!("examples/coder-reviewer-tester",
    "errors/malformed/attempts-no-number.json"
    "errors/malformed/attempts-zero.json"
    "errors/malformed/cause-no-text.json"
    "errors/malformed/causes-no-list.json"
    "errors/malformed/class-in-capitals.json"
    "errors/malformed/class-missing.json"
    "errors/malformed/class-unknown.json"
    "errors/malformed/details-no-object.json"
    "errors/malformed/hint-no-text.json"
    "errors/malformed/member-unknown.json"
    "errors/malformed/message-missing.json"
    "errors/malformed/message-no-text.json"
    "errors/malformed/permanent-with-retry-after.json"
    "errors/malformed/permanent-without-hint.json"
    "errors/malformed/retry-after-as-text.json"
    "errors/malformed/retry-after-negative.json"
    "errors/malformed/type-empty.json"
    "errors/malformed/type-missing.json"
    "errors/malformed/unknown-with-retry-after.json"
    "errors/permanent.json"
    "errors/retryable.json"
    "malformed/action-unknown.json"
    "malformed/constraint-dropped.json"
    "malformed/constraint-made-soft.json"
    "malformed/constraint-softened.json"
    "malformed/intent-replaced.json"
    "malformed/member-unknown.json"
    "malformed/payload-as-text.json"
    "malformed/payload-without-type.json"
    "malformed/receiver-missing.json"
    "messages/1-lead-to-coder.received.json"
    "messages/1-lead-to-coder.sent.json"
    "messages/2-coder-to-reviewer.received.json"
    "messages/2-coder-to-reviewer.sent.json"
    "messages/3-reviewer-to-coder.received.json"
    "messages/3-reviewer-to-coder.sent.json"
    "messages/4-coder-to-tester.received.json"
    "messages/4-coder-to-tester.sent.json"
    "messages/5-broker-to-lead.received.json"
    "messages/6-tester-to-lead.sent.json"
    "schemas/failure.json"
    "schemas/message.json"
    "schemas/shared-context.json"
    "shared-context.json");

/// What an envelope is, as it is published.
const ENVELOPE: (&str, &str) =
    ("api/schemas/envelope.json", include_str!("../../../../api/schemas/envelope.json"));

pub(super) fn fixture(name: &str) -> Result<&'static str, String> {
    let found = FIXTURES.iter().chain([&ENVELOPE]).find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| format!("there is no fixture {name}"))
}
