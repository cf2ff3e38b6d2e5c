// SPDX-License-Identifier: Apache-2.0
//! Tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::ids::TokenId;
use tasuki_core::registry::rules::Rule;
use tasuki_core::registry::{Origin, Purpose};
use tasuki_core::{AgentId, Timestamp};

/// Issues a token.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssueToken {
    /// What it is for: to join, or to act.
    pub purpose: Purpose,
    /// For whom a bearer token speaks; who may enroll with a join token.
    pub agent_id: AgentId,
    /// What it allows at most; for a join token, what the agent may do once it is enrolled.
    pub rules: Vec<Rule>,
    /// The same, from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// A token without its secret.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenInfo {
    pub token_id: TokenId,
    pub purpose: Purpose,
    pub agent_id: AgentId,
    pub rules: Vec<Rule>,
    pub issued_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was spent or revoked, by itself or with the token that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Who made it; absent if the broker did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<AgentId>,
    /// The key or the token that it was made with. What was made with a token ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<Origin>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct IssuedToken {
    #[serde(flatten)]
    pub token: TokenInfo,
    /// The token itself. It is shown this once.
    pub text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    pub tokens: Vec<TokenInfo>,
}
