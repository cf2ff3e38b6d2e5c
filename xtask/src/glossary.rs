// SPDX-License-Identifier: Apache-2.0
//! `docs/glossary.md`: the nouns, each with the first sentence of the comment on its type, so that
//! the word means in the documents what it means in the code.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::source::{comment_above, first_sentence};

/// A word, the file of the core and the item there whose comment explains it.
type Noun = (&'static str, &'static str, &'static str);

/// The nouns in groups.
const NOUNS: &[(&str, &[Noun])] = &[
    (
        "Who",
        &[
            ("agent", "registry/mod.rs", "pub struct Agent"),
            ("manifest", "manifest/mod.rs", "pub struct Manifest"),
            ("capability", "manifest/mod.rs", "pub struct CapabilityEntry"),
            ("target", "envelope/mod.rs", "pub enum Target"),
            ("routing policy", "route.rs", "pub enum Policy"),
            ("record", "observe.rs", "pub struct Track"),
            ("tenant", "registry/mod.rs", "pub struct Tenant"),
            ("role", "registry/roles.rs", "pub enum Role"),
            ("permission", "registry/rules.rs", "pub enum Permission"),
            ("key", "registry/mod.rs", "pub struct AgentKey"),
            ("token", "registry/mod.rs", "pub struct Token"),
        ],
    ),
    (
        "Work",
        &[
            ("task", "task.rs", "pub struct Task"),
            ("handoff", "handoff.rs", "pub struct Handoff"),
            ("offer", "commands/offer.rs", "pub struct Offer"),
            ("call, transfer", "envelope/mod.rs", "pub enum Control"),
            ("claim", "handoff/state.rs", "pub struct Claim"),
            ("lease", "terms.rs", "pub lease_ms"),
            ("fence", "ids.rs", "pub struct Fence"),
            ("attempt", "handoff/attempt.rs", "pub struct Attempt"),
            ("terms", "terms.rs", "pub struct Terms"),
            ("agreement", "contract.rs", "pub struct Agreement"),
            ("counter-offer", "contract.rs", "pub struct Counter"),
            ("state", "handoff/state.rs", "pub enum StateName"),
            ("status", "handoff/state.rs", "pub enum Status"),
            ("result", "report.rs", "pub struct ResultReport"),
            ("failure", "report.rs", "pub struct FailureReport"),
            ("idempotency key", "event.rs", "pub struct Key"),
            ("reservation", "reserve.rs", "pub struct Reservation"),
        ],
    ),
    (
        "While work goes on",
        &[
            ("question", "talk.rs", "pub struct QuestionReport"),
            ("answer", "talk.rs", "pub struct AnswerReport"),
            ("message", "talk.rs", "pub struct MessageReport"),
            ("artifact", "talk.rs", "pub struct ArtifactReport"),
            ("budget", "budget.rs", "pub struct Budget"),
            ("usage", "budget.rs", "pub struct Used"),
        ],
    ),
    (
        "What is passed",
        &[
            ("envelope", "envelope/mod.rs", "pub struct Envelope"),
            ("hop", "envelope/mod.rs", "pub hop"),
            ("action", "envelope/mod.rs", "pub enum Action"),
            ("constraint", "envelope/constraint.rs", "pub struct Constraint"),
            ("lift", "envelope/parts.rs", "pub struct Lifted"),
            ("decision", "envelope/parts.rs", "pub struct Decision"),
            ("open decision", "envelope/parts.rs", "pub struct OpenDecision"),
            ("history", "envelope/parts.rs", "pub struct Step"),
            ("gap", "envelope/parts.rs", "pub struct Gap"),
            ("taint", "envelope/path.rs", "pub struct Taint"),
            ("trust", "trust.rs", "pub enum Trust"),
            ("expected output", "envelope/parts.rs", "pub struct ExpectedOutput"),
            ("memory", "document/content.rs", "pub struct Content"),
            ("memory reference", "envelope/parts.rs", "pub struct MemoryRef"),
            ("revision", "document/mod.rs", "pub struct Revision"),
            ("scope", "document/mod.rs", "pub enum Scope"),
            ("shared context", "document/context.rs", "pub struct Context"),
            ("receipt", "assembly/receipt.rs", "pub struct Receipt"),
            ("strategy", "assembly/receipt.rs", "pub enum Strategy"),
            ("profile", "assembly/profile.rs", "pub struct Profile"),
            ("prompt tokens", "envelope/parts.rs", "pub prompt_tokens"),
        ],
    ),
    (
        "Several at once",
        &[
            ("channel", "registry/mod.rs", "pub struct Channel"),
            ("publication", "commands/offer.rs", "pub struct Publish"),
            ("join", "join.rs", "pub struct Joining"),
            ("pipeline", "pipeline.rs", "pub struct Pipeline"),
            ("stage", "pipeline.rs", "pub struct Stage"),
        ],
    ),
    (
        "When something goes wrong",
        &[
            ("dead letter", "event.rs", "pub enum DeadReason"),
            ("redrive", "commands/review.rs", "pub struct Redrive"),
            ("discard", "commands/review.rs", "pub struct Discard"),
            ("retraction", "commands/taint.rs", "pub struct Retract"),
            ("breaker", "breaker.rs", "pub struct Breaker"),
            ("pause", "registry/mod.rs", "pub struct Pause"),
            ("finding", "secrets.rs", "pub struct Finding"),
            ("alert", "registry/alerts.rs", "pub struct Alert"),
            ("silence", "registry/alerts.rs", "pub struct Silence"),
        ],
    ),
    (
        "The log",
        &[
            ("audit event", "event.rs", "pub enum Event"),
            ("checkpoint", "chain.rs", "pub struct LogCheckpoint"),
            ("cursor", "cursor.rs", "pub struct Cursor"),
            ("epoch", "ids.rs", "pub struct Epoch"),
        ],
    ),
];

/// The texts that a sender writes: which of them a model reads, and what each is for.
const TEXTS: &[(&str, &str, &str, &str, &str)] = &[
    ("intent", "envelope/mod.rs", "pub intent", "yes", "at every hop, unchanged"),
    ("ask", "envelope/parts.rs", "pub ask", "yes", "this hop"),
    ("summary", "envelope/parts.rs", "pub summary", "yes", "this hop"),
    (
        "payload",
        "envelope/mod.rs",
        "pub struct Payload",
        "yes, unless the reader asks for it apart",
        "this hop",
    ),
    (
        "context",
        "envelope/parts.rs",
        "pub context",
        "yes, within the token budget",
        "this hop; assembled anew for the next",
    ),
    ("metadata", "envelope/mod.rs", "pub metadata", "no", "this hop"),
];

pub(crate) fn render(root: &Path) -> anyhow::Result<String> {
    let explained = |file: &str, item: &str| {
        let path = root.join("crates/tasuki-core/src").join(file);
        let source =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let comment = comment_above(&source, item).with_context(|| format!("in {file}"))?;
        anyhow::Ok(first_sentence(&comment).to_owned())
    };
    let mut text = String::from(
        "# Glossary\n\nMade by `cargo xtask codegen` from the comments of the code. Do not edit.\n\n\
         One word for each thing, the same in the API, the command line, the SDKs and the dashboard.\n",
    );
    for (group, nouns) in NOUNS {
        text += &format!("\n## {group}\n\n| word | what it is |\n| --- | --- |\n");
        for (noun, file, item) in *nouns {
            text += &format!("| {noun} | {} |\n", explained(file, item)?);
        }
    }
    text += "\n## What a sender writes, and what a model reads\n\n\
             | text | what it is for | read by the receiving model | travels |\n| --- | --- | --- | --- |\n";
    for (name, file, item, read, travels) in TEXTS {
        text += &format!("| `{name}` | {} | {read} | {travels} |\n", explained(file, item)?);
    }
    Ok(text)
}
