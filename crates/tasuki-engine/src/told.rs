// SPDX-License-Identifier: Apache-2.0
//! What a claim is told beside the envelope: which attempt it is, what earlier ones learned, what was
//! answered, what is left of the budget. All of that goes on changing, so it is stored with the claim
//! when it is first read, and the same claim reads the same again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tasuki_core::assembly::{Delivery, Tokenizer, Told, plain};
use tasuki_core::canonical::Body;
use tasuki_core::commands::{self, Command};
use tasuki_core::envelope::{Control, Envelope, Target};
use tasuki_core::handoff::Attempt;
use tasuki_core::trust::{self, Trust};
use tasuki_core::{AgentId, Handoff, Task};
use tasuki_store::Needs;

use crate::contracts::asked;
use crate::desk::Desk;
use crate::error::Error;

/// How many taints are named one by one.
const TAINTS_MAX: usize = 8;

/// What a claim is told, and what its reader was like then. Stored as the body of `claim_told`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ClaimPart {
    pub(crate) delivery: Delivery,
    /// What its manifest says it counts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokenizer: Option<Tokenizer>,
    /// What its window takes after its reserves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<u64>,
    /// What was left of the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budget: Option<u64>,
}

impl Desk {
    /// What a claim is told: as it was first read, if it was. Before there is a claim, what the next
    /// one would be told now.
    pub(crate) async fn claim_part(
        &self,
        handoff: &Arc<Handoff>,
        envelope: &Envelope,
    ) -> Result<ClaimPart, Error> {
        if let Some(kept) = self.kept_part(handoff).await? {
            return Ok(kept);
        }
        let part = self.part_now(handoff, envelope).await?;
        let Some(claim) = handoff.state.claim() else { return Ok(part) };
        let told = Body::of(&part);
        let note = commands::NoteTold { handoff: handoff.id, fence: claim.fence, told };
        match self.engine.one_handoff(Command::of_broker(note)).await {
            // Somebody else may have read it at the same time, and been told a moment earlier.
            Ok(now) => Ok(self.kept_part(&now).await?.unwrap_or(part)),
            Err(error) => {
                // What was asked for is there; that it reads the same again is worth less.
                tracing::warn!(handoff = %handoff.id, "what a claim was told was not kept: {error}");
                Ok(part)
            }
        }
    }

    /// What the claim that is held, or the last one of a handoff at its end, was told.
    async fn kept_part(&self, handoff: &Handoff) -> Result<Option<ClaimPart>, Error> {
        let told = last_claim(handoff).and_then(|attempt| attempt.told);
        let Some((at, _)) = told else { return Ok(None) };
        let body = self.engine.store.bodies(vec![at]).await?.pop().flatten();
        Ok(body.and_then(|body| serde_json::from_str(body.text()).ok()))
    }

    async fn part_now(
        &self,
        handoff: &Arc<Handoff>,
        envelope: &Envelope,
    ) -> Result<ClaimPart, Error> {
        let sight = self.engine.look(Needs::task(handoff.task_id)).await?;
        let task = sight.task(handoff.task_id);
        let budget = match task {
            Some(task) => self.engine.left_of(task).await?.and_then(|budget| budget.tokens),
            None => None,
        };
        let listing = self.engine.listing().await?;
        let reader = reader_of(handoff);
        let manifest = reader.and_then(|agent| listing.agents.get(agent)).map(|it| &it.manifest);
        let reserves = manifest.and_then(|m| m.reserves);
        let reserves = reserves.map_or(0, |it| u64::from(it.system_prompt) + u64::from(it.work));
        let window = manifest.and_then(|m| m.context_window).map(u64::from);
        Ok(ClaimPart {
            delivery: self.delivery(task, handoff, envelope, budget).await?,
            tokenizer: manifest.and_then(|m| m.tokenizer.as_deref()).map(Tokenizer::named),
            window: window.map(|window| window.saturating_sub(reserves)),
            budget,
        })
    }

    /// What is told of a handoff and its claim.
    async fn delivery(
        &self,
        task: Option<&Arc<Task>>,
        handoff: &Arc<Handoff>,
        envelope: &Envelope,
        budget: Option<u64>,
    ) -> Result<Delivery, Error> {
        let listing = self.engine.listing().await?;
        let role = listing.agents.get(&handoff.from).and_then(|it| it.manifest.role.clone());
        let mut frame = Vec::new();
        let from = role.map_or_else(
            || handoff.from.name().to_owned(),
            |role| format!("{} ({})", handoff.from.name(), plain(&role)),
        );
        let how = match envelope.control {
            Control::Passed => "you own the task once you claim it",
            Control::Awaited => "the sender waits for your result",
        };
        let action = serde_json::to_value(envelope.action).unwrap_or_default();
        let action = action.as_str().unwrap_or("request").replace('_', " ");
        frame.push(format!("From {from}: {action}, hop {}; {how}.", envelope.hop));
        if let Some(deadline) = envelope.deadline {
            frame.push(format!("Deadline: {deadline}."));
        }
        if let Some(claim) = handoff.state.claim() {
            let (by, until) = (claim.agent.name(), claim.hard_until);
            frame.push(format!("Attempt {}, by {by}; finish by {until}.", handoff.claims));
        }
        if let Some(budget) = budget {
            frame.push(format!("Budget left: {budget} tokens."));
        }
        let taints = task.map(|task| task.taints.clone()).unwrap_or_default();
        if !taints.is_empty() {
            let named: Vec<String> =
                taints.iter().take(TAINTS_MAX).map(|(id, _)| id.to_string()).collect();
            let (number, named) = (taints.len(), named.join(", "));
            frame.push(format!("Built on {number} results that no longer hold: {named}."));
        }
        let mut sections: Vec<(String, Vec<Told>)> = Vec::new();
        let schema = asked(handoff).zip(reader_of(handoff)).and_then(|(capability, agent)| {
            let entry = listing.agents.get(agent)?.entry(capability)?;
            Some((capability.name().to_owned(), entry.output_schema.clone()?))
        });
        if let Some((capability, schema)) = schema {
            let about = format!("output schema of {}", plain(&capability));
            sections.push((
                "Your result must fit".into(),
                vec![Told { about, text: schema.to_string() }],
            ));
        }
        let brought = self.engine.brought(handoff).await?;
        sections.extend(brought.told());
        let left_out = u64::from(brought.left_out);
        Ok(Delivery { frame, payload: None, sections, left_out })
    }
}

/// Who reads a handoff: its holder, or the one agent that it is for.
fn reader_of(handoff: &Handoff) -> Option<&AgentId> {
    match (handoff.state.claim(), &handoff.to) {
        (Some(claim), _) => Some(&claim.agent),
        (None, Target::Agent(agent)) => Some(agent),
        (None, Target::Capability(_)) => last_claim(handoff).map(|attempt| &attempt.agent),
    }
}

/// The claim that is held, or the last one of a handoff at its end.
fn last_claim(handoff: &Handoff) -> Option<&Attempt> {
    let last = handoff.attempts.last()?;
    let held = handoff.state.claim().map(|claim| claim.fence);
    let over = held.is_none() && handoff.state.is_terminal();
    (over || held == Some(last.fence)).then_some(last)
}

/// The payload with what is known of where it comes from.
pub(crate) fn payload(envelope: &Envelope) -> Told {
    let members = envelope.payload.members();
    let kind = members.get("type").and_then(serde_json::Value::as_str).unwrap_or_default();
    let parts = trust::parts(&envelope.payload).unwrap_or_default();
    let least = parts.iter().map(|part| part.trust).min().unwrap_or(Trust::Agent);
    let labelled = if parts.is_empty() { String::new() } else { format!(", {least} at least") };
    let about = format!("{}, by {}{labelled}", plain(kind), envelope.from_agent.name());
    let text = match members.len() {
        0 | 1 => "(nothing but its type)".to_owned(),
        _ => serde_json::to_string_pretty(&members).unwrap_or_default(),
    };
    Told { about, text }
}
