// SPDX-License-Identifier: Apache-2.0

use clap::Args;
use serde_json::value::RawValue;
use tasuki_cli::claims;
use tasuki_core::envelope::brief::brief;
use tasuki_core::ids::RequestId;
use tasuki_core::{AgentId, Capability, Envelope, HandoffId};
use tasuki_protocol as wire;

use crate::args::{AGENT, millis};
use crate::client::{self, Client};
use crate::exit::Exit;
use crate::output::{Facts, Output, span};

#[derive(Args)]
pub(super) struct Claim {
    /// Who claims
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    agent: AgentId,
    /// What the agent can do, besides what is addressed to it by name; may be repeated
    #[arg(long = "capability", value_name = "CAPABILITY")]
    capabilities: Vec<Capability>,
    /// How many to claim at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    max: usize,
    /// How long to wait if there is nothing yet, such as 10s
    #[arg(long, value_name = "SPAN", value_parser = millis, default_value = "0s")]
    wait: u64,
    /// Claim this handoff and no other; with `--wait`, once the question that it waits with is answered
    #[arg(long, value_name = "HANDOFF", conflicts_with = "max")]
    id: Option<HandoffId>,
    /// A lease other than the one in the handoff's terms
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    lease: Option<u64>,
    /// Makes the claim safe to repeat after a lost answer
    #[arg(long, value_name = "ID")]
    request_id: Option<RequestId>,
    /// Which major of the envelope the agent takes; may be repeated; its manifest says so otherwise
    #[arg(long = "major", value_name = "N")]
    majors: Vec<u32>,
}

impl Claim {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        if let Some(id) = self.id {
            let body = wire::ClaimOne {
                agent: self.agent.clone(),
                capabilities: self.capabilities,
                lease_ms: self.lease,
                request_id: self.request_id,
                majors: self.majors,
                wait_ms: self.wait,
            };
            let path = format!("/v1/handoffs/{id}/claim");
            let reply = client.post_waiting(&path, &body, self.wait).await?;
            let claimed: wire::Claimed = serde_json::from_str(&reply)?;
            let kept = claims::remember(client, &self.agent, &[&claimed]);
            output.reply(&reply, |claimed| granted(&claimed, client, kept))?;
            return Ok(Exit::Done);
        }
        let mut body = wire::Claim {
            agent: self.agent,
            capabilities: self.capabilities,
            max: self.max,
            wait_ms: 0,
            lease_ms: self.lease,
            request_id: self.request_id,
            majors: self.majors,
        };
        let ask = async |wait_ms| {
            body.wait_ms = wait_ms;
            let reply = client.post_waiting("/v1/claims", &body, wait_ms).await?;
            let claims = serde_json::from_str::<wire::Claims>(&reply)?.claims;
            Ok((reply, claims))
        };
        let (reply, claims) = client::until(self.wait, ask, |(_, it)| !it.is_empty()).await?;
        let kept = claims::remember(client, &body.agent, &claims.iter().collect::<Vec<_>>());
        output.reply(&reply, |reply: wire::Claims| {
            if reply.claims.is_empty() {
                return nothing(&body.agent, "claim", client);
            }
            let texts: Vec<_> = reply.claims.iter().map(|one| granted(one, client, kept)).collect();
            texts.join("\n")
        })?;
        Ok(if claims.is_empty() { Exit::Nothing } else { Exit::Done })
    }
}

#[derive(Args)]
pub(super) struct Peek {
    /// Who looks
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    agent: AgentId,
    /// What the agent can do, besides what is addressed to it by name; may be repeated
    #[arg(long = "capability", value_name = "CAPABILITY")]
    capabilities: Vec<Capability>,
    /// How many to show at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    max: usize,
}

impl Peek {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::Peek {
            agent: self.agent,
            capabilities: self.capabilities,
            max: self.max,
            majors: Vec::new(),
        };
        let reply = client.post("/v1/claims/peek", &body).await?;
        let waiting = serde_json::from_str::<wire::Peeked>(&reply)?.waiting.len();
        output.reply(&reply, |reply: wire::Peeked| {
            if reply.waiting.is_empty() {
                return nothing(&body.agent, "peek", client);
            }
            let texts: Vec<_> =
                reply.waiting.iter().map(|one| waits(one, &body.agent, client)).collect();
            texts.join("\n")
        })?;
        Ok(if waiting > 0 { Exit::Done } else { Exit::Nothing })
    }
}

fn nothing(agent: &AgentId, verb: &str, client: &Client) -> String {
    let wait = client.command(&format!("handoff claim --agent {agent} --wait 30s"));
    format!("nothing to {verb} for {agent}\nnext: {wait}")
}

/// A claim, and the commands by which it goes on. Where it is remembered they need no proof.
fn granted(claimed: &wire::Claimed, client: &Client, is_remembered: bool) -> String {
    let wire::Claimed { handoff_id: id, claim_id, fence, .. } = claimed;
    let lease = format!(
        "{} ({} left, heartbeats extend it); {} left in all",
        span(claimed.lease_ms),
        span(claimed.lease_left_ms),
        span(claimed.work_left_ms)
    );
    let proof = match is_remembered {
        true => String::new(),
        false => format!(" --claim {claim_id} --fence {fence}"),
    };
    let step =
        |verb: &str, more: &str| client.command(&format!("handoff {verb} {id}{proof}{more}"));
    let facts = Facts::default().with("handoff", id).with("task", claimed.task_id);
    let facts = carried(facts, &claimed.envelope)
        .with("attempt", claimed.attempt)
        .with("lease", lease)
        .with("claim", claim_id)
        .with("fence", fence);
    let next = Facts::default()
        .with("begin", step("start", ""))
        .with("complete", step("complete", r#" --payload '{"type":"result","text":"…"}'"#));
    format!("{}\n{}", facts.text(), next.text())
}

fn waits(waiting: &wire::Waiting, agent: &AgentId, client: &Client) -> String {
    let id = waiting.handoff_id;
    let facts = Facts::default().with("handoff", id).with("task", waiting.task_id);
    carried(facts, &waiting.envelope)
        .with("priority", waiting.priority)
        .with("next", client.command(&format!("handoff claim --agent {agent} --id {id}")))
        .text()
}

/// What matters of an envelope to the one who works on it.
fn carried(facts: Facts, envelope: &RawValue) -> Facts {
    // An envelope of a later version is shown as it is.
    let Ok(read) = serde_json::from_str::<Envelope>(envelope.get()) else {
        return facts.with("envelope", envelope);
    };
    let payload = serde_json::to_string(&read.payload).unwrap_or_default();
    let brief = brief(&read.intent, &read.parts);
    let rules = brief.constraints.iter();
    let rules: Vec<_> = rules.map(|rule| format!("{}: {}", rule.kind, rule.text)).collect();
    facts
        .with("from", read.from_agent)
        .with("intent", read.intent)
        .maybe("constraints", (!rules.is_empty()).then(|| rules.join("\n")))
        .maybe("ask", brief.ask)
        .with("payload", payload)
        .maybe("expected", brief.expected_output.map(|text| text.trim_end().to_owned()))
}
