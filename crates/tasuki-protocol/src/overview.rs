// SPDX-License-Identifier: Apache-2.0
//! How everything goes, at a glance: what a page or a terminal shows first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::{Target, Timestamp};

/// The numbers of the whole log, and how things stand now; of a tenant, of its own targets.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    pub now: Timestamp,
    /// From an offer to its first claim.
    pub delivery: Latency,
    /// How much of what there was to pass got into envelopes, from 0 to 1, where senders were told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completeness: Option<f64>,
    /// The share of handoffs that ended as dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_rate: Option<f64>,
    /// How many hops chains had on average when their task was completed; of all tenants together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop_depth: Option<f64>,
    /// How full token budgets were, from 0 to 1, where senders were told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_utilisation: Option<f64>,
    /// How many handoffs came to their end, and how many of them as dead letters.
    pub ended: u64,
    pub dead_lettered: u64,
    /// Alerts that are on.
    pub firing: u64,
    /// Targets with something that waits, is worked on, failed or is not sent to, those first that need
    /// somebody most.
    pub targets: Vec<TargetOverview>,
}

/// In seconds, as the bounds of the histogram tell it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TargetOverview {
    pub target: Target,
    /// How many wait to be claimed, and for how long the oldest of them.
    pub queue: u64,
    pub oldest_ms: u64,
    pub inflight: u64,
    pub dead_letters: u64,
    pub failures_in_row: u64,
    /// `closed`, `open` or `half_open`.
    pub breaker: String,
    /// Whether somebody listens for it. Where something waits and nobody does, nobody takes it.
    pub live: bool,
}
