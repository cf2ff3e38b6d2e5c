// SPDX-License-Identifier: Apache-2.0
//! What the holder of a claim does with it.

use clap::Args;
use serde::Serialize;
use tasuki_cli::claims;
use tasuki_core::envelope::{Action, CriterionReport, Envelope, ExpectedOutput};
use tasuki_core::event::FailureClass;
use tasuki_core::ids::Resource;
use tasuki_core::{AgentId, ClaimId, Fence, HandoffId};
use tasuki_protocol as wire;

use super::talk::messages;
use super::{act, moved};
use crate::args::{AGENT, json, millis, words};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{Facts, Output, span};

/// Which claim is meant: the one that this machine remembers, or the one that is shown.
#[derive(Args)]
pub(super) struct Proof {
    /// The claim's id; without it the one that a command of `tasuki work` was started for, or the one
    /// that is remembered from `tasuki handoff claim`
    #[arg(long, value_name = "CLAIM", requires = "fence")]
    claim: Option<ClaimId>,
    /// The claim's fence
    #[arg(long, value_name = "N", value_parser = fence, requires = "claim")]
    fence: Option<Fence>,
    /// Whose remembered claim is meant, where several agents have one
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
    agent: Option<AgentId>,
}

fn fence(text: &str) -> Result<Fence, std::num::ParseIntError> {
    text.parse().map(Fence)
}

impl Proof {
    pub(super) async fn find(
        &self,
        client: &Client,
        handoff: Option<HandoffId>,
    ) -> anyhow::Result<Holding> {
        find(client, self.agent.as_ref(), handoff, self.claim.zip(self.fence)).await
    }
}

async fn find(
    client: &Client,
    agent: Option<&AgentId>,
    handoff: Option<HandoffId>,
    shown: Option<(ClaimId, Fence)>,
) -> anyhow::Result<Holding> {
    let Some((claim_id, fence)) = shown else {
        if let Some(given) = given(agent, handoff) {
            return Ok(given);
        }
        let claim = claims::find(client, agent, handoff).await?;
        let (handoff, claim_id, fence) = (claim.handoff_id, claim.claim_id, claim.fence);
        return Ok(Holding { handoff, claim_id, fence, remembered: Some(claim) });
    };
    let Some(handoff) = handoff else {
        let hint = "name the handoff, or leave --claim and --fence out";
        return Err(Failure::usage("a claim is shown, and its handoff is not named", hint).into());
    };
    Ok(Holding { handoff, claim_id, fence, remembered: None })
}

/// The claim that a command of `tasuki work` was started for, if it is the one that is meant.
fn given(agent: Option<&AgentId>, handoff: Option<HandoffId>) -> Option<Holding> {
    fn named<T: std::str::FromStr>(name: &str) -> Option<T> {
        std::env::var(name).ok()?.parse().ok()
    }
    let own = named::<HandoffId>("TASUKI_HANDOFF")?;
    let is_ours = handoff.is_none_or(|handoff| handoff == own)
        && agent.is_none_or(|agent| named::<AgentId>(AGENT).is_some_and(|own| own == *agent));
    is_ours.then_some(())?;
    let (claim_id, fence) = (named("TASUKI_CLAIM")?, named("TASUKI_FENCE").map(Fence)?);
    Some(Holding { handoff: own, claim_id, fence, remembered: None })
}

/// A claim that somebody works with.
pub(super) struct Holding {
    pub(super) handoff: HandoffId,
    pub(super) claim_id: ClaimId,
    pub(super) fence: Fence,
    remembered: Option<claims::Claim>,
}

impl Holding {
    /// Posts something that the holder says, and shows where the handoff is then.
    pub(super) async fn act<T: Serialize>(
        &self,
        client: &Client,
        output: Output,
        verb: &str,
        body: &T,
    ) -> anyhow::Result<Exit> {
        let reply = self.post(client, verb, body).await?;
        output.reply(&reply, moved)?;
        Ok(Exit::Done)
    }

    /// The same for what ends the claim, which is forgotten then.
    pub(super) async fn end<T: Serialize>(
        &self,
        client: &Client,
        output: Output,
        verb: &str,
        body: &T,
    ) -> anyhow::Result<Exit> {
        let reply = self.post(client, verb, body).await?;
        self.ended();
        output.reply(&reply, moved)?;
        Ok(Exit::Done)
    }

    pub(super) fn ended(&self) {
        claims::forget(self.claim_id);
    }

    /// Posts something that the holder says. What no longer holds is forgotten.
    pub(super) async fn post<T: Serialize>(
        &self,
        client: &Client,
        verb: &str,
        body: &T,
    ) -> anyhow::Result<String> {
        let path = format!("/v1/handoffs/{}/{verb}", self.handoff);
        let reply = client.post(&path, body).await;
        if let (Err(error), Some(claim)) = (&reply, &self.remembered)
            && claims::is_gone(error)
        {
            claims::gone(claim);
        }
        reply
    }
}

#[derive(Args)]
pub(super) struct Held {
    /// The handoff's id; without it the one that is held, if it is only one
    handoff: Option<HandoffId>,
    #[command(flatten)]
    proof: Proof,
}

impl Held {
    pub(super) async fn find(&self, client: &Client) -> anyhow::Result<Holding> {
        self.proof.find(client, self.handoff).await
    }
}

#[derive(Args)]
pub(super) struct Reserve {
    /// Paths, or patterns of paths such as src/api/**; the handoff's id may stand first
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<String>,
    /// The handoff's id; without it the one that is held, if it is only one
    #[arg(long, value_name = "HANDOFF")]
    handoff: Option<HandoffId>,
    #[command(flatten)]
    proof: Proof,
}

impl Reserve {
    pub(super) async fn run(
        self,
        verb: &str,
        client: &Client,
        output: Output,
    ) -> anyhow::Result<Exit> {
        let mut resources = self.resources;
        let first = resources.first().and_then(|text| text.parse().ok());
        if self.handoff.is_none() && first.is_some() {
            resources.remove(0);
        }
        let holding = self.proof.find(client, self.handoff.or(first)).await?;
        let resources: Result<Vec<Resource>, _> = resources.iter().map(|it| it.parse()).collect();
        let resources = resources.map_err(|error| Failure::usage(error.to_string(), ""))?;
        let Holding { handoff, claim_id, fence, .. } = holding;
        let body = wire::Reserve { claim_id, fence, resources };
        let reply = holding.post(client, verb, &body).await?;
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
        let holding = self.held.find(client).await?;
        let Holding { handoff, claim_id, fence, .. } = holding;
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
        let body = wire::Start { claim_id, fence, signed: None, read_back };
        holding.act(client, output, "start", &body).await
    }
}

impl Held {
    pub(super) async fn release(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let holding = self.find(client).await?;
        let body = wire::Held { claim_id: holding.claim_id, fence: holding.fence };
        holding.end(client, output, "release", &body).await
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
        let holding = self.held.find(client).await?;
        let body = wire::Heartbeat {
            claim_id: holding.claim_id,
            fence: holding.fence,
            acknowledge: self.acknowledge,
        };
        let reply = holding.post(client, "heartbeat", &body).await?;
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
    #[command(flatten)]
    held: Held,
    /// How much is done, 0 to 100
    #[arg(long, value_name = "N")]
    percent: Option<u8>,
    /// What is being done
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl Progress {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<Exit> {
        let holding = self.held.find(client).await?;
        let body = wire::Progress {
            claim_id: holding.claim_id,
            fence: holding.fence,
            percent: self.percent,
            note: self.note,
        };
        holding.act(client, output, "progress", &body).await
    }
}

#[derive(Args)]
pub(super) struct Complete {
    #[command(flatten)]
    held: Held,
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
        let holding = self.held.find(client).await?;
        let body = wire::Complete {
            claim_id: holding.claim_id,
            fence: holding.fence,
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
        holding.end(client, output, "complete", &body).await
    }
}

#[derive(Args)]
pub(super) struct Fail {
    #[command(flatten)]
    held: Held,
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
        let holding = self.held.find(client).await?;
        let body = wire::Fail {
            claim_id: holding.claim_id,
            fence: holding.fence,
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
        holding.end(client, output, "fail", &body).await
    }
}

#[derive(Args)]
pub(super) struct Decline {
    /// The handoff's id
    handoff: HandoffId,
    /// Who declines
    #[arg(long, env = AGENT, hide_env_values = true, value_name = "AGENT")]
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
        let shown = self.claim.zip(self.fence);
        let remembered = claims::known(client, &self.agent, self.handoff);
        let shown = shown.or(remembered.map(|claim| (claim.claim_id, claim.fence)));
        let body = wire::Decline {
            agent: self.agent,
            claim_id: shown.map(|(claim, _)| claim),
            fence: shown.map(|(_, fence)| fence),
            reason: self.reason,
        };
        let done = act(client, output, self.handoff, "decline", &body).await;
        if let Some((claim, _)) = shown
            && done.as_ref().map_or_else(claims::is_gone, |_| true)
        {
            claims::forget(claim);
        }
        done
    }
}
