// SPDX-License-Identifier: Apache-2.0
//! Chains of other brokers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::chain::ChainVerdict;
use tasuki_core::document::Scope;
use tasuki_core::event::Actor;
use tasuki_core::ids::Project;
use tasuki_core::{AgentId, Cursor, DocumentId, TaskId, Timestamp};

/// Keeps a chain that another broker exported, for reading.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportChain {
    pub by: AgentId,
    /// Who may read it: those who read the project; without one, whoever imports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// The exact text of the file, since its hashes cover bytes.
    pub file: String,
}

/// An imported chain. It is no task here.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ImportedChain {
    pub chain_id: DocumentId,
    pub scope: Scope,
    pub imported_by: Actor,
    pub imported_at: Timestamp,
    /// The task that it is about, at the broker that exported it; absent if it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ImportedChainWithFile {
    #[serde(flatten)]
    pub chain: ImportedChain,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ChainVerdict>,
    /// The exact text of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ImportedChains {
    pub chains: Vec<ImportedChain>,
    /// Give this as `before` to get the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Cursor>,
}

/// Which imported chains are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListChains {
    /// Only what was imported before this: where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Cursor>,
    /// How many at most, up to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
