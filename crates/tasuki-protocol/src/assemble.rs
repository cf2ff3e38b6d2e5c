// SPDX-License-Identifier: Apache-2.0
//! Putting together what a receiver gets to read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use tasuki_core::assembly::{LeftOut, Receipt, Strategy, Tokenizer};
use tasuki_core::canonical::Object;
use tasuki_core::envelope::{Parts, Payload, Said};
use tasuki_core::ids::Project;
use tasuki_core::{AgentId, TaskId};

/// Asks for what a receiver should get to read, within its token budget. Nothing is stored.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Assemble {
    /// Who sends it. A task is handed on by its owner.
    pub from_agent: AgentId,
    /// Who is to read it: its manifest says how much it can read, in which tokens, in which role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_agent: Option<AgentId>,
    /// The task that is handed on: its intent, and what it has inherited, is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The user's own words, where there is no task yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Where to look for memories, besides those of the sender and of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// How many of the memories that changed last are considered; those that answer the ask best
    /// are considered too.
    #[serde(default = "recent")]
    #[schemars(range(max = 1000))]
    pub include_recent: usize,
    /// Whether pinned memories travel, whole.
    #[serde(default = "yes")]
    pub include_pins: bool,
    /// How memories are chosen and shortened.
    #[serde(default)]
    pub strategy: Strategy,
    /// How many tokens it may be; without it, the receiver's context window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// What of that the receiver needs for its system prompt, and for its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_system_prompt: Option<u64>,
    /// Tokens that the receiver needs for its own steps and its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_work: Option<u64>,
    /// The receiver's tokenizer or model, such as `o200k_base`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// What the receiver is, which says what it wants to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What is to be sent with it, so that room is kept for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    #[serde(flatten)]
    pub said: Said,
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Object,
}

fn recent() -> usize {
    20
}

fn yes() -> bool {
    true
}

/// What was put together, and what was left out.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AssembleReply")]
pub struct Assembled {
    pub envelope_version: String,
    /// How many tokens the prompt is.
    pub token_count: u64,
    /// The ids of all memories that it has or refers to.
    pub memory_refs: Vec<String>,
    /// What a model reads, as Markdown.
    pub prompt: String,
    /// What an envelope with it will carry.
    pub envelope: EnvelopePreview,
    /// How many tokens that is, as JSON.
    pub envelope_tokens: u64,
    /// What to send in an offer, so that its envelope has this.
    pub offer: Said,
    pub receipt: Receipt,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnvelopePreview {
    pub intent: String,
    #[serde(flatten)]
    pub parts: Parts,
}

/// An envelope as a model reads it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    pub prompt: String,
    pub token_count: u64,
    /// Whether that is the count itself and not an upper bound.
    pub exact: bool,
    /// What it was counted in.
    pub tokenizer: Tokenizer,
    /// How many tokens it could have; absent if nothing bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<u64>,
    /// How many tokens of it are the assembled text, which is the same for every reader with room
    /// for it; the rest is about this handoff and this claim.
    pub assembled_tokens: u64,
    /// Whether the assembled text is less than what its sender saw, for lack of room.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortened: bool,
    /// The same as a message for the system and one for the user, if `form` is `messages`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<PromptMessage>,
    /// What each short name in the text stands for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// What is not in the text.
    #[serde(default, skip_serializing_if = "LeftOut::is_empty")]
    pub left_out: LeftOut,
    /// The ids of what is not in it at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// How many texts about the handoff and the claim are cut or left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub texts_left_out: u64,
    /// Where the rest of what the envelope did not pass whole is. Fetches from here are counted as
    /// the handoff's `trim_regret`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fetch: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One message of a prompt.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PromptMessage {
    /// `system` or `user`.
    pub role: String,
    pub content: String,
}
