// SPDX-License-Identifier: Apache-2.0
//! Alerts: what holds, what people were told, the rules, and silences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::Timestamp;

/// What holds now, and what people were told.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Alerts {
    /// Those that are on or pending first, then those that ended last.
    pub alerts: Vec<Alert>,
    pub silences: Vec<Silence>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    pub rule: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// `agent:` or `capability:` and the name; absent where the rule is about everything together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// `pending` until it has held for as long as its rule says, then `firing`, then `resolved`.
    pub state: String,
    /// Since when it holds, or held.
    pub since: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What was found last.
    pub value: String,
    pub summary: String,
    /// What to do.
    pub action: String,
    /// Whether a silence keeps people from being told.
    pub silenced: bool,
    /// What people were told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<AlertTold>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AlertTold {
    /// `firing` or `resolved`.
    pub state: String,
    /// Whether every webhook took it.
    pub sent: bool,
    pub tries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Silence {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub since: Timestamp,
    pub until: Timestamp,
    /// Who silenced it: `agent:` and a name, or `broker` where nobody is asked who it is.
    pub by: String,
    pub reason: String,
}

/// The rules, as they are evaluated and as Prometheus would.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AlertRules {
    pub rules: Vec<AlertRule>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AlertRule {
    pub name: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// For how long it has to hold.
    pub for_ms: u64,
    /// Whether each target is looked at by itself.
    pub by_target: bool,
    /// Whether the broker finds out by itself; the others only Prometheus can.
    pub built_in: bool,
    /// The same as an expression of Prometheus.
    pub expression: String,
    pub summary: String,
    /// What to do.
    pub action: String,
}

/// Keeps people from being told of alerts for a while.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SilenceAlert {
    /// Of this rule; without one, of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// About this target, as alerts name it; without one, about all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub target: Option<String>,
    /// For how long from now, in milliseconds; 0 ends a silence.
    #[schemars(range(max = 2_592_000_000_u64))]
    pub for_ms: u64,
    /// Why; it stands in the log.
    #[schemars(length(min = 1))]
    pub reason: String,
}

/// What became of a notice that was sent to try it out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AlertTested {
    pub webhooks: Vec<WebhookTested>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WebhookTested {
    pub url: String,
    pub sent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
