// SPDX-License-Identifier: Apache-2.0
//! Agents, their manifests and their keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tasuki_core::identity::{PublicKey, Signature};
use tasuki_core::ids::{KeyId, TenantId};
use tasuki_core::registry::rules::Rule;
use tasuki_core::registry::{AgentKey, Signed, Standing};
use tasuki_core::{AgentId, Capability, Hash, Timestamp};

/// Publishes an agent's manifest, its first or a new one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// The manifest; its JSON Schema is `/v1/schemas/manifest.json`.
    pub manifest: Value,
    /// The agent's signature over the manifest; needed if the agent has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    /// Publish only if the manifest so far has this version; 0 if there must be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
}

/// An agent as others may see it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    pub agent_id: AgentId,
    pub standing: Standing,
    /// Which one of its manifests this is, from 1; 0 if it has none.
    pub version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// The address of the manifest, which its signature covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_hash: Option<Hash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    pub keys: Vec<EnrolledKey>,
    /// What it may do; shown to itself and to administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Rule>>,
    pub since: Timestamp,
    /// Whether it was heard of within the last minute.
    pub live: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Timestamp>,
    /// How many handoffs it holds, as far as this broker saw.
    pub holding: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed: Vec<Observed>,
}

/// A public key of an agent.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EnrolledKey {
    pub key_id: KeyId,
    #[serde(flatten)]
    pub key: AgentKey,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Agents {
    pub agents: Vec<Agent>,
}

/// Nothing needs to be said beyond the path.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Enrolls a key by the word of an administrator.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Enroll {
    /// The public key.
    pub key: PublicKey,
    /// What the agent may do from now on; as before if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Rule>>,
}

/// Enrolls a key with a join token. Needs no other proof of who asks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// The invitation.
    pub token: String,
    /// Its name.
    pub agent_id: AgentId,
    /// The public key.
    pub key: PublicKey,
    /// A signature by the key over the agent's name and the key.
    pub proof: Signature,
}

/// Replaces a key by a new one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rotate {
    /// The id of the key that is replaced.
    pub old: KeyId,
    /// The public key.
    pub key: PublicKey,
    /// A signature by the new key over the agent's name and the key.
    pub proof: Signature,
    /// How long the old key still counts.
    #[serde(default = "grace")]
    pub grace_ms: u64,
}

fn grace() -> u64 {
    60 * 60 * 1000
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRules {
    /// All rules from now on.
    pub rules: Vec<Rule>,
}

/// Looks for agents. What is silent does not matter.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Search {
    /// Whose agents; those of one's own tenant without it. Only an administrator of the default
    /// tenant looks elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// What it must be able to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// A JSON Schema of what would be sent: the capability must take it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// A JSON Schema of what is needed: what the capability gives must fit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Words to find it by; `kind:log` says what kind it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Which versions of it will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What the receiver is, which says what it wants to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Only those who are there, or only those who are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// The least share of the last attempts that ended in a result, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliability: Option<u8>,
    /// How many at most, up to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// How an agent fares in one capability, beside what it promises.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// Absent for work that named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    pub tries: u64,
    pub successes: u64,
    /// Attempts that were lost by silence or took longer than they might.
    pub losses: u64,
    /// Results that took longer than the agent's own `timeout_seconds`.
    pub late: u64,
    pub mean_ms: u64,
    /// Of the last attempts, at most 64: how many there were and how many ended in a result.
    pub recent_tries: u32,
    pub recent_successes: u32,
    /// What the manifest promises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_sla: Option<f64>,
    /// Whether it falls short of that.
    pub breaks_sla: bool,
}

/// Who can be reached here, for programs that look around.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Catalogue {
    /// The key with which the broker signs what it delivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_key: Option<PublicKey>,
    pub agents: Vec<CatalogueEntry>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CatalogueEntry {
    pub agent_id: AgentId,
    pub capabilities: Vec<Capability>,
    /// Where the agent's page is on this broker.
    pub url: String,
    /// What the manifest names. The broker never asks there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery_endpoint: Option<String>,
    pub live: bool,
}

/// Which agents are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAgents {
    /// Whose agents; those of one's own tenant without it. Only an administrator of the default
    /// tenant looks elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// Only agents that can do this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// Only agents with this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Only agents that are there, or only those that are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// The least share of the last attempts that ended in a result, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<u8>,
    /// How many at most, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
