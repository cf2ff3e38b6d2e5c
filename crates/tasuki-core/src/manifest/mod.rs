// SPDX-License-Identifier: Apache-2.0
//! What an agent says that it can do, how it is reached, and what it can bear. Nothing here
//! fetches a URL or knows whether an agent keeps its word; [`crate::route`] is told that.
//!
//! Reading order: this file, `read` (from strangers), [`schema`], [`fits`] on top of `facts`.

pub mod bounds;
mod facts;
pub mod fits;
mod keywords;
mod measure;
mod problem;
mod read;
pub mod schema;
mod seconds;
mod types;
mod url;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::{Body, Object};
use crate::ids::{AgentId, Capability};

pub use problem::{DEPTH_MAX, PROBLEMS_MAX, Problem};
pub use seconds::Seconds;

/// How large a manifest may be in its canonical form.
pub const MANIFEST_BYTES_MAX: usize = 256 * 1024;
/// How large one schema may be in its canonical form, the shorthand written out.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
pub const CAPABILITIES_MAX: usize = 256;
pub const FALLBACKS_MAX: usize = 32;
pub const MAJORS_MAX: usize = 8;
pub const TAGS_MAX: usize = 64;
pub const TAG_BYTES_MAX: usize = 64;
/// How long a version or the name of a tokenizer may be, in bytes.
pub const WORD_BYTES_MAX: usize = 64;
pub const ROLE_BYTES_MAX: usize = 128;
pub const DESCRIPTION_BYTES_MAX: usize = 4096;
pub const URL_BYTES_MAX: usize = 2048;

// `Deserialize` is for manifests that were accepted before, so that a bound that is lowered one day
// does not make stored ones unreadable; what strangers send goes through `parse`. Defaults are
// written out for the same reason: a stored manifest keeps its meaning.
/// What one agent says it can do: capabilities, role, context window, and how it is reached. Members that this version does not know are kept and passed on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    pub agent_id: AgentId,
    /// Empty for an agent that is only handed work by name.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub capabilities: Vec<CapabilityEntry>,
    /// Where more about this agent can be read. Shown, never fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), url)]
    pub discovery_endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub role: Option<String>,
    /// The version of the agent's own software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub version: Option<String>,
    /// How many tokens the agent's model reads at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub context_window: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub tokenizer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserves: Option<Reserves>,
    /// The majors of the envelope that the agent reads.
    #[serde(default = "current_major")]
    #[schemars(length(min = 1, max = 8))]
    pub accepted_majors: Vec<u32>,
    #[serde(default)]
    pub delivery: Delivery,
    /// How many handoffs the agent works on at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub concurrency: Option<u32>,
    /// Who may take the work if this agent cannot, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub fallbacks: Vec<AgentId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(length(max = 64))]
    pub tags: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
    /// For the agent's owner; the broker does not read it.
    #[serde(default)]
    pub metadata: Object,
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Object,
}

impl Manifest {
    /// Reads what a stranger sent. All faults are reported at once, each with its place; schemas
    /// in the shorthand come out written out, so that nobody can mistake one for JSON Schema.
    pub fn parse(value: Value) -> Result<Self, Vec<Problem>> {
        read::manifest(value)
    }

    /// The manifest as it is stored and served. Parsing it again gives the same manifest.
    #[must_use]
    pub fn body(&self) -> Body {
        Body::of(self)
    }

    /// What the manifest says about one capability.
    #[must_use]
    pub fn capability(&self, name: &Capability) -> Option<&CapabilityEntry> {
        self.capabilities.iter().find(|entry| entry.name == *name)
    }

    /// How long an attempt at this capability may take, if the agent says so.
    #[must_use]
    pub fn work_ms(&self, capability: &Capability) -> Option<u64> {
        self.capability(capability)?.timeout_seconds.map(Seconds::ms)
    }
}

fn current_major() -> Vec<u32> {
    vec![2]
}

/// One thing that an agent can do, and on what terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityEntry {
    pub name: Capability,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub description: Option<String>,
    /// JSON Schema 2020-12, or a map of names to type words such as `{"depth": "int?"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema 2020-12, or a map of names to type words such as `{"sources": "string[]"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<Seconds>,
    /// The share of attempts that the agent promises to complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub reliability_sla: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(length(max = 64))]
    pub tags: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Object,
}

impl CapabilityEntry {
    /// The promised share in parts per million, for comparing in integers.
    #[must_use]
    pub fn sla_ppm(&self) -> Option<u32> {
        // A share is at most 1, so the product fits; a cast of anything stranger saturates.
        self.reliability_sla.map(|share| (share * 1e6).round() as u32)
    }
}

// The three parts below tell the broker what to do. A member of theirs that it does not know is
// refused and not kept: an instruction that nobody follows must not look as if it were followed.

/// The part of the context window that is not for handed-over context, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reserves {
    #[serde(default)]
    pub system_prompt: u32,
    /// What the agent needs for its own work and answer.
    #[serde(default)]
    pub work: u32,
}

/// How a handoff reaches the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Delivery {
    /// The agent asks for work.
    #[default]
    Pull,
    /// The broker posts to this URL.
    Webhook {
        #[schemars(length(max = 2048), url)]
        url: String,
    },
    /// The broker speaks A2A to this URL.
    A2a {
        #[schemars(length(max = 2048), url)]
        url: String,
    },
}

/// How far a sender may depart from a capability's terms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds_min: Option<Seconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds_max: Option<Seconds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub attempts_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub budget_tokens_max: Option<u32>,
}

#[cfg(test)]
mod tests;
