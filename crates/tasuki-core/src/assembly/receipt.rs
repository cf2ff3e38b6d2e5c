// SPDX-License-Identifier: Apache-2.0
//! What assembly reports: what was kept and how much of it, what was not and why, and how to get it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::item::Rung;
use super::tokens::Tokenizer;
use crate::envelope::project::ISSUER;
use crate::ids::Hash;

/// What assembly kept, shortened and left out to stay within a token budget. `kept`, `demoted` and `dropped` together are all that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    pub strategy: Strategy,
    pub tokenizer: Tokenizer,
    /// How many tokens the rendered text is.
    pub token_count: u64,
    /// Whether that is the count itself and not an upper bound.
    pub exact: bool,
    /// What the receiver can take in all; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    pub reserved_system_prompt: u64,
    pub reserved_work: u64,
    /// What is kept free for what a claim adds: who sends it, the payload, earlier attempts.
    #[serde(default)]
    pub reserved_claim: u64,
    /// How much of what the reserves leave is used, in thousandths; 0 without a limit.
    pub utilisation_per_mille: u64,
    /// A budget that would have kept everything, reserves included.
    pub budget_for_everything: u64,
    /// The address of the list of everything that there is.
    pub manifest_hash: Hash,
    /// How much of what was asked for, and of what there is where it was looked, was read, in
    /// thousandths.
    pub completeness_per_mille: u64,
    /// How many items there are where it was looked that nobody looked at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_considered: u64,
    /// As much as the strategy passes of an item.
    pub kept: Vec<Kept>,
    /// Less than that.
    pub demoted: Vec<Demoted>,
    /// Nothing.
    pub dropped: Vec<Dropped>,
    /// What could not be read.
    pub unresolved: Vec<Gap>,
    pub warnings: Vec<Warning>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How assembly chooses what to pass: everything, summaries, by priority, or stubs to fetch from.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Everything in full; refused if there is a budget and it does not fit.
    Full,
    /// A line for each item; the receiver fetches what it needs.
    Lazy,
    /// A summary of each item, with its id.
    SummaryRefs,
    /// The best items in full, as many as fit.
    #[default]
    Priority,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    pub id: String,
    pub revision: u64,
    /// Its short name in the text, such as `m3`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub rung: Rung,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Demoted {
    pub id: String,
    pub revision: u64,
    /// Its short name in the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub rung: Rung,
    /// How many parts of a long text were kept, of how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<(u32, u32)>,
    pub reason: Reason,
    /// Where all of it is.
    pub fetch: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    pub id: String,
    pub revision: u64,
    /// By which the receiver can ask for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub reason: Reason,
    /// How many tokens it is in full.
    pub tokens: u64,
    /// Where it is. Absent for lines of the envelope, which the receiver has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<String>,
}

/// Why something was not passed whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "why")]
#[schemars(rename = "TrimReason")]
pub enum Reason {
    /// There was no room.
    Budget,
    /// Another item says the same.
    Duplicate { of: String },
    /// The receiver's role does not want it.
    Role,
}

/// A reference that could not be followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Unresolved")]
pub struct Gap {
    pub id: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReceiptWarning")]
pub struct Warning {
    pub code: WarningCode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    RawLog,
    FinishedReasoning,
    CopyOfSource,
    /// What must always be passed takes most of the room.
    LargeBase,
    /// It decides otherwise than its project has.
    AgainstProject,
    /// Another task of the project that is open has the same words of the user.
    SameIntent,
    /// What a stranger pinned takes more room than pins of strangers may.
    PinOverCap,
    /// Counts are upper bounds, because the receiver's tokenizer is not known.
    InexactCount,
}

/// What must be passed does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{needed} tokens are needed and the budget is {budget}")]
pub struct TooSmall {
    /// The smallest budget that would do, reserves included.
    pub needed: u64,
    pub budget: u64,
    /// What takes most room, the largest first.
    pub largest: Vec<Large>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Large {
    pub part: String,
    pub tokens: u64,
}

/// Where all of an item is.
pub(super) fn fetch(id: &str) -> String {
    // What a project says is a part of its shared context.
    if let Some((project, _)) = id.strip_prefix(ISSUER).and_then(|rest| rest.rsplit_once(':')) {
        return ["/v1/projects/", project, "/context"].concat();
    }
    ["/v1/memories/", id, "?detail=full"].concat()
}
