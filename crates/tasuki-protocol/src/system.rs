// SPDX-License-Identifier: Apache-2.0
//! The broker itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::breaker::Limits;
use tasuki_core::ids::{KeyId, TenantId};
use tasuki_core::{Cursor, Target, Timestamp};

/// How much there is: of the whole store for whoever looks after all of it, and otherwise of the
/// caller's tenant.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    pub version: String,
    pub now: Timestamp,
    /// Whose figures these are; absent if they are those of the whole store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    pub live_handoffs: u64,
    /// Bytes of bodies that the tenant has stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    pub disk_full: bool,
    /// How many handoffs are in each state that is not the end, and dead letters that nobody has
    /// decided on.
    #[serde(default)]
    pub handoffs: Vec<StateCount>,
    /// How many tasks are not at their end.
    #[serde(default)]
    pub tasks: Vec<StateCount>,
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStats>,
}

/// How many there are in a state, and how old the oldest of them is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StateCount {
    pub state: String,
    pub count: u64,
    /// When the oldest of them was offered or opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Timestamp>,
    /// How long ago that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_age_ms: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StoreStats {
    /// Where the log ends.
    pub head: Cursor,
    pub commits: u64,
    pub commands: u64,
    pub events: u64,
    /// Events for each commit since the start: above 1 where commits are shared.
    pub mean_batch: f64,
    /// About how much memory the live handoffs take.
    pub live_bytes: u64,
    pub waiting_handoffs: u64,
    pub idempotency_keys: u64,
    pub projection_lag: u64,
    /// How much memory the process takes, where the system can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The id of the broker's key: the audience that signed requests name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broker_key_id: Option<KeyId>,
}

/// How targets fare.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TargetsHealth {
    pub targets: Vec<TargetHealth>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TargetHealth {
    pub target: Target,
    pub live: bool,
    /// `closed`, `open` or `half_open`.
    pub breaker: String,
    /// Somebody paused it: nothing is claimed of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedUntil>,
    /// Handoffs in a row that used up their tries.
    pub exhausted_in_row: u32,
    /// By which numbers its failures count.
    pub limits: Limits,
    /// When something is sent there again; half open, when the one that was let through is over at
    /// the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_in_ms: Option<u64>,
    /// Attempts in a row that failed or were lost.
    pub failures_in_row: u32,
    pub offers: u64,
    /// How many offers came after 0, 1, 2 … hops; the last number is for all beyond.
    pub hops: Vec<u64>,
    /// How much of the budgets was used, in thousandths, where senders said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation_per_mille: Option<u64>,
    /// How complete what was passed was on average, in thousandths, where senders said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completeness_per_mille: Option<u64>,
}

/// When the breaker of an agent opens.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBreaker {
    /// Without them, the broker's own hold again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

/// A request that nobody stood behind.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    pub at: Timestamp,
    pub from: String,
    pub code: String,
    /// The key or token that was named, whoever named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<String>,
    pub path: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Refusals {
    /// How many there were since the broker began; the last of them are listed.
    pub count: u64,
    pub refusals: Vec<Refusal>,
}

/// Lets nothing be claimed of an agent or a capability. Offers to it are taken and wait.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseTarget {
    pub target: Target,
    /// When it ends by itself; without either of the two, when somebody resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The same as a span from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ms: Option<u64>,
}

/// Lets work be claimed of an agent or a capability again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeTarget {
    pub target: Target,
}

/// Until when nothing is claimed of a target.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PausedUntil {
    pub since: Timestamp,
    /// Without it, until somebody resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}
