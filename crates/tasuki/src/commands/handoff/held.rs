// SPDX-License-Identifier: Apache-2.0
//! What the holder of a claim does with it.

use clap::Args;
use tasuki_core::envelope::{Action, CriterionReport, Envelope, ExpectedOutput};
use tasuki_core::event::FailureClass;
use tasuki_core::ids::Resource;
use tasuki_core::{AgentId, ClaimId, Fence, HandoffId};
use tasuki_protocol as wire;

use super::act;
use super::talk::messages;
use crate::args::{json, millis, words};
use crate::client::Client;
use crate::exit::Exit;
use crate::output::{Facts, Output, span};

/// What shows that somebody holds a claim; `tasuki handoff claim` printed both.
#[derive(Args)]
pub(super) struct Proof {
    /// The claim's id
    #[arg(long, value_name = "CLAIM")]
    pub(super) claim: ClaimId,
    /// The claim's fence
    #[arg(long, value_name = "N", value_parser = fence)]
    pub(super) fence: Fence,
}

fn fence(text: &str) -> Result<Fence, std::num::ParseIntError> {
    text.parse().map(Fence)
}

impl Proof {
    fn held(&self) -> wire::Held {
        wire::Held { claim_id: self.claim, fence: self.fence }
    }
}

#[derive(Args)]
pub(super) struct Held {
    /// The handoff's id
    handoff: HandoffId,
    #[command(flatten)]
    proof: Proof,
}

#[derive(Args)]
pub(super) struct Reserve {
    #[command(flatten)]
    held: Held,
    /// Paths, or patterns of paths such as src/api/**
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<Resource>,
}

impl Reserve {
    pub(super) async fn run(
        self,
        verb: &str,
        client: &Client,
        output: Output,
    ) -> anyhow::Result<Exit> {
        let Held { handoff, proof } = self.held;
        let (claim_id, fence) = (proof.claim, proof.fence);
        let body = wire::Reserve { claim_id, fence, resources: self.resources };
        let reply = client.post(&format!("/v1/handoffs/{handoff}/{verb}"), &body).await?;
        output.reply(&reply, |all: wire::Reservations| {
            let mut held = all.reservations.iter().flat_map(|one| &one.resources).peekable();
            if held.peek().is_none() {
                return "nothing is reserved".to_owned();
            }
            let held: Vec<_> = held.map(ToString::to_string).collect();
            Facts::default().with("handoff", handoff).with("reserved", held.join("\n")).text()
        })?;
        Ok(Exit::Done)
    }
}

#[derive(Args)]
pub(super) struct Start {
    #[command(flatten)]
    held: Held,
    /// Repeat what binds the receiver, where the handoff asks for it: the ids of all constraints of
    /// its envelope, and the address of the expected output
    #[arg(long)]
    read_back: bool,
}

impl Start {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let Held { handoff, proof } = self.held;
        let read_back = if self.read_back {
            let envelope = client.get(&format!("/v1/handoffs/{handoff}/envelope"), &[]).await?;
            let parts = serde_json::from_str::<Envelope>(&envelope)?.parts;
            Some(wire::ReadBack {
                constraints: parts.constraints.iter().map(|constraint| constraint.id).collect(),
                expected_output: parts.expected_output.as_ref().map(ExpectedOutput::hash),
            })
        } else {
            None
        };
        let body =
            wire::Start { claim_id: proof.claim, fence: proof.fence, signed: None, read_back };
        act(client, output, handoff, "start", &body).await
    }
}

impl Held {
    pub(super) async fn release(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        act(client, output, self.handoff, "release", &self.proof.held()).await
    }
}

#[derive(Args)]
pub(super) struct Heartbeat {
    #[command(flatten)]
    held: Held,
    /// Messages up to this number were taken note of
    #[arg(long, value_name = "N")]
    acknowledge: Option<u32>,
}

impl Heartbeat {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let Held { handoff, proof } = self.held;
        let path = format!("/v1/handoffs/{handoff}/heartbeat");
        let body = wire::Heartbeat {
            claim_id: proof.claim,
            fence: proof.fence,
            acknowledge: self.acknowledge,
        };
        let reply = client.post(&path, &body).await?;
        output.reply(&reply, |beat: wire::Beat| {
            let facts = Facts::default()
                .with("handoff", beat.handoff_id)
                .with("lease left", span(beat.lease_left_ms))
                .with("work left", span(beat.work_left_ms))
                .text();
            match beat.messages.as_slice() {
                [] => facts,
                said => format!("{facts}\n\n{}", messages(said)),
            }
        })?;
        Ok(Exit::Done)
    }
}

#[derive(Args)]
pub(super) struct Progress {
    /// The handoff's id
    handoff: HandoffId,
    #[command(flatten)]
    proof: Proof,
    /// How much is done, 0 to 100
    #[arg(long, value_name = "N")]
    percent: Option<u8>,
    /// What is being done
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl Progress {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::Progress {
            claim_id: self.proof.claim,
            fence: self.proof.fence,
            percent: self.percent,
            note: self.note,
        };
        act(client, output, self.handoff, "progress", &body).await
    }
}

#[derive(Args)]
pub(super) struct Complete {
    /// The handoff's id
    handoff: HandoffId,
    #[command(flatten)]
    proof: Proof,
    /// The result: a JSON object with a `type`, in place, as @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    payload: String,
    /// What should follow
    #[arg(
        long,
        value_parser = words::<Action>(&["completed", "needs_review", "changes_requested", "escalated"]),
        default_value = "completed"
    )]
    action: Action,
    /// A handoff to create in the same step: a JSON object with `to` and `payload`, in place or as
    /// @FILE; may be repeated
    #[arg(long = "follow-up", value_name = "JSON")]
    follow_ups: Vec<String>,
    /// Of each criterion that was asked for, whether it is met: a JSON list of objects with
    /// `criterion`, `met` and `evidence`
    #[arg(long, value_name = "JSON")]
    criteria: Option<String>,
    /// A reference that the work had to do without; may be repeated
    #[arg(long = "gap", value_name = "REFERENCE")]
    gaps: Vec<String>,
    /// A gap that came with the work and is none any more; may be repeated
    #[arg(long = "resolved-gap", value_name = "REFERENCE")]
    resolved_gaps: Vec<String>,
    /// For monitoring only: a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// What the attempt used, as JSON: {"input_tokens": 900, "output_tokens": 300, "cost": 0.02}
    #[arg(long, value_name = "JSON")]
    usage: Option<String>,
}

impl Complete {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let follow_ups = self.follow_ups.iter().map(|text| json("--follow-up", text));
        let metadata = self.metadata.map(|text| json("--metadata", &text)).transpose()?;
        let criteria = self.criteria.map(|text| json("--criteria", &text)).transpose()?;
        let criteria: Vec<CriterionReport> = criteria.unwrap_or_default();
        let body = wire::Complete {
            claim_id: self.proof.claim,
            fence: self.proof.fence,
            action: self.action,
            payload: json("--payload", &self.payload)?,
            metadata: metadata.unwrap_or_default(),
            criteria,
            gaps: self.gaps,
            resolved_gaps: self.resolved_gaps,
            usage: self.usage.map(|text| json("--usage", &text)).transpose()?,
            follow_ups: follow_ups.collect::<Result<_, _>>()?,
            signed: None,
        };
        act(client, output, self.handoff, "complete", &body).await
    }
}

#[derive(Args)]
pub(super) struct Fail {
    /// The handoff's id
    handoff: HandoffId,
    #[command(flatten)]
    proof: Proof,
    /// Whether trying again may help
    #[arg(
        long,
        value_parser = words::<FailureClass>(&["retryable", "permanent", "unknown"]),
        default_value = "unknown"
    )]
    class: FailureClass,
    /// A short name for the kind of error, such as rate_limited
    #[arg(long = "type", value_name = "NAME")]
    kind: String,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    message: String,
    /// What was attempted when it failed
    #[arg(long, value_name = "TEXT")]
    attempted: Option<String>,
    /// How often it was tried before giving up
    #[arg(long = "tries", value_name = "N")]
    attempts: Option<u32>,
    /// What led to it, repeated, the nearest cause first
    #[arg(long = "cause", value_name = "TEXT")]
    causes: Vec<String>,
    /// What might fix it; a permanent failure must say it
    #[arg(long, value_name = "TEXT")]
    hint: Option<String>,
    /// Do not try again before this much time has passed
    #[arg(long, value_name = "SPAN", value_parser = millis)]
    retry_after: Option<u64>,
    /// Whatever else a program may want to know: a JSON object
    #[arg(long, value_name = "JSON")]
    details: Option<String>,
    /// What the attempt used, as JSON: {"input_tokens": 900, "output_tokens": 300, "cost": 0.02}
    #[arg(long, value_name = "JSON")]
    usage: Option<String>,
}

impl Fail {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let details = self.details.map(|text| json("--details", &text)).transpose()?;
        let body = wire::Fail {
            claim_id: self.proof.claim,
            fence: self.proof.fence,
            class: self.class,
            kind: self.kind,
            message: self.message,
            attempted: self.attempted,
            attempts: self.attempts,
            causes: self.causes,
            hint: self.hint,
            retry_after_ms: self.retry_after,
            details: details.unwrap_or_default(),
            usage: self.usage.map(|text| json("--usage", &text)).transpose()?,
            signed: None,
        };
        act(client, output, self.handoff, "fail", &body).await
    }
}

#[derive(Args)]
pub(super) struct Decline {
    /// The handoff's id
    handoff: HandoffId,
    /// Who declines
    #[arg(long, value_name = "AGENT")]
    agent: AgentId,
    /// The claim's id, if it was claimed
    #[arg(long, value_name = "CLAIM", requires = "fence")]
    claim: Option<ClaimId>,
    /// The claim's fence
    #[arg(long, value_name = "N", value_parser = fence, requires = "claim")]
    fence: Option<Fence>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Decline {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let body = wire::Decline {
            agent: self.agent,
            claim_id: self.claim,
            fence: self.fence,
            reason: self.reason,
        };
        act(client, output, self.handoff, "decline", &body).await
    }
}
