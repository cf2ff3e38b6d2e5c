// SPDX-License-Identifier: Apache-2.0
//! Agents as people read them.

use clap::Args;
use serde_json::Value;
use tasuki_core::Capability;
use tasuki_core::ids::TenantId;
use tasuki_http::wire;

use crate::client::Client;
use crate::commands::handoff::pretty;
use crate::output::{Facts, Output, span, table};
use crate::rules;

#[derive(Args)]
pub(super) struct List {
    /// Agents of another tenant, for an administrator of the default one
    #[arg(long, value_name = "TENANT")]
    tenant: Option<TenantId>,
    /// Only agents that can do this
    #[arg(long, value_name = "CAPABILITY")]
    capability: Option<Capability>,
    /// Only agents with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only agents that are there now
    #[arg(long)]
    live: bool,
}

impl List {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let query = [
            ("tenant", self.tenant.map(|tenant| tenant.to_string())),
            ("capability", self.capability.map(|capability| capability.to_string())),
            ("tag", self.tag),
            ("live", self.live.then(|| "true".to_owned())),
        ];
        let reply = client.get("/v1/agents", &query).await?;
        output.reply(&reply, |listed: wire::Agents| match listed.agents.as_slice() {
            [] => "no agents".to_owned(),
            agents => rows(agents),
        })
    }
}

fn rows(agents: &[wire::Agent]) -> String {
    let rows = agents.iter().map(|agent| {
        [
            agent.agent_id.to_string(),
            agent.standing.to_string(),
            if agent.live { "yes" } else { "no" }.to_owned(),
            agent.holding.to_string(),
            agent.version.to_string(),
            capabilities(agent).join(", "),
        ]
    });
    table(["agent", "standing", "live", "holding", "manifest", "capabilities"], rows)
}

fn capabilities(agent: &wire::Agent) -> Vec<&str> {
    let entries = agent.manifest.as_ref().and_then(|manifest| manifest["capabilities"].as_array());
    entries.into_iter().flatten().filter_map(|entry| entry["name"].as_str()).collect()
}

/// An agent without its manifest.
pub(in crate::commands) fn text(agent: &wire::Agent) -> String {
    let can = capabilities(agent);
    let facts = Facts::default()
        .with("agent", &agent.agent_id)
        .with("standing", agent.standing)
        .with("since", agent.since)
        .maybe("last seen", agent.last_seen)
        .with("holding", format!("{} handoffs", agent.holding))
        .maybe("manifest", (agent.version > 0).then(|| format!("version {}", agent.version)))
        .maybe("hash", agent.manifest_hash)
        .maybe("signed with", agent.signed.as_ref().map(|signed| signed.key_id))
        .maybe("capabilities", (!can.is_empty()).then(|| can.join(", ")))
        .maybe("rules", agent.rules.as_deref().map(rules::texts));
    format!("{}{}{}", facts.text(), keys(&agent.keys), observed(&agent.observed))
}

/// An agent with all that it says of itself.
pub(super) fn text_whole(agent: &wire::Agent) -> String {
    let manifest = agent.manifest.as_ref().filter(|manifest| !matches!(manifest, Value::Null));
    let manifest = manifest.map(|manifest| format!("\n{}\n", pretty(manifest)));
    format!("{}{}", text(agent), manifest.unwrap_or_default())
}

fn keys(keys: &[wire::EnrolledKey]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let rows = keys.iter().map(|key| {
        [
            key.key_id.to_string(),
            key.key.key.to_string(),
            key.key.enrolled_at.to_string(),
            key.key.ends_at.map(|time| time.to_string()).unwrap_or_default(),
        ]
    });
    format!("\n{}", table(["key", "public key", "enrolled", "ends"], rows))
}

/// What it promises, and how it fares.
fn observed(observed: &[wire::Observed]) -> String {
    if observed.is_empty() {
        return String::new();
    }
    let rows = observed.iter().map(|one| {
        let broken = if one.breaks_sla { " (broken)" } else { "" };
        [
            one.capability.as_ref().map_or_else(|| "none named".into(), ToString::to_string),
            one.tries.to_string(),
            one.successes.to_string(),
            one.losses.to_string(),
            one.late.to_string(),
            span(one.mean_ms),
            one.declared_sla.map(|sla| format!("{sla}{broken}")).unwrap_or_default(),
        ]
    });
    let head = ["capability", "tries", "successes", "losses", "late", "mean", "promised"];
    format!("\n{}", table(head, rows))
}
