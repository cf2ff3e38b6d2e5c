// SPDX-License-Identifier: Apache-2.0
//! What a model reads of a handoff: the text that its sender assembled, and after it this handoff and
//! this claim. The core renders both; here is for whom, in which tokens and within which bound.

use std::sync::Arc;

use tasuki_core::assembly::{
    Delivery, LeftOut, PromptForm, Read, Reader, Tokenizer, Told, TooSmall, claim_reserve, deliver,
    read,
};
use tasuki_core::envelope::{Control, Envelope, Target};
use tasuki_core::trust::{self, Trust};
use tasuki_core::{AgentId, Handoff, HandoffId, Task};
use tasuki_store::Needs;

use crate::contracts::asked;
use crate::desk::Desk;
use crate::error::{Error, invalid};

/// How much is told of a handoff and its claim where nothing bounds the reader.
const DELIVERY_TOKENS_MAX: u64 = 64_000;
/// How many taints are named one by one.
const TAINTS_MAX: usize = 8;

/// How somebody wants to read a handoff.
#[derive(Debug, Clone, Default)]
pub struct PromptWish {
    /// The reader's tokenizer or model; what its manifest says without it.
    pub tokenizer: Option<String>,
    /// How many tokens it may have; see [`Desk::prompt`] for what holds without it.
    pub max_tokens: Option<u64>,
    /// All that the envelope has, whatever was chosen and whatever the bound.
    pub all: bool,
    pub form: PromptForm,
    /// Whether the payload is left out, because its reader gets it apart.
    pub payload_apart: bool,
}

/// A handoff as a model reads it.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub read: Read,
    /// What stands after the assembled text.
    pub delivery: String,
    pub token_count: u64,
    pub tokenizer: Tokenizer,
    pub bound: Option<u64>,
    pub left_out: LeftOut,
    /// How many texts of the handoff and the claim were left out.
    pub texts_left_out: u64,
}

impl Desk {
    /// A handoff as a model reads it. Without a bound of its own a reader gets as much as the sender
    /// said, or as its window takes after its reserves, and never more than the budget that is left.
    pub async fn prompt(&self, id: HandoffId, wish: PromptWish) -> Result<Prompt, Error> {
        let sight = self.engine.look(Needs::handoff(id).with_envelopes()).await?;
        let handoff = self.handoff_in(&sight, id)?;
        let Some(envelope) = self.engine.envelope_of(&sight, handoff).await? else {
            return Err(invalid("id", "the envelope was erased"));
        };
        let listing = self.engine.listing().await?;
        let reader = reader_of(handoff);
        let manifest = reader.and_then(|agent| listing.agents.get(agent)).map(|it| &it.manifest);
        let reading = envelope.parts.reading.as_ref();
        let tokenizer =
            match wish.tokenizer.as_deref().or(manifest.and_then(|m| m.tokenizer.as_deref())) {
                Some(name) => Tokenizer::named(name),
                None => reading.map_or(Tokenizer::O200k, |reading| reading.tokenizer),
            };
        let window = manifest.and_then(|m| m.context_window).map(u64::from);
        let reserves = manifest.and_then(|m| m.reserves);
        let reserves = reserves.map_or(0, |it| u64::from(it.system_prompt) + u64::from(it.work));
        let said = envelope.parts.prompt_tokens.map(u64::from);
        let said = said.or(reading.and_then(|reading| reading.budget));
        let window = window.map(|window| window.saturating_sub(reserves));
        let tasks = self.engine.look(Needs::task(handoff.task_id)).await?;
        let task = tasks.task(handoff.task_id);
        let budget = match task {
            Some(task) => self.engine.left_of(task).await?.and_then(|budget| budget.tokens),
            None => None,
        };
        let bound = match (wish.max_tokens, wish.all) {
            (Some(asked), _) => Some(asked),
            (None, true) => None,
            (None, false) => [said.or(window), window, budget].into_iter().flatten().min(),
        };
        let mut delivery = self.delivery(task, handoff, &envelope, budget).await?;
        if wish.payload_apart {
            delivery.payload = None;
        }
        let reader = Reader { tokenizer, available: None, form: wish.form, all: wish.all };
        let work = || fit(&envelope, &delivery, reader, bound);
        self.engine.pool.run(work).await.map_err(Error::TooSmall)
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
            |role| format!("{} ({role})", handoff.from.name()),
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
            let attempt = handoff.attempts.len();
            frame.push(format!(
                "Attempt {attempt}, by {}; finish by {}.",
                claim.agent.name(),
                claim.hard_until
            ));
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
            let about = format!("output schema of {capability}");
            sections.push((
                "Your result must fit".into(),
                vec![Told { about, text: schema.to_string() }],
            ));
        }
        let brought = self.engine.brought(handoff).await?;
        sections.extend(brought.told());
        Ok(Delivery { frame, payload: Some(payload(envelope)), sections })
    }
}

/// Who reads a handoff: its holder, or the one agent that it is for.
fn reader_of(handoff: &Handoff) -> Option<&AgentId> {
    match (handoff.state.claim(), &handoff.to) {
        (Some(claim), _) => Some(&claim.agent),
        (None, Target::Agent(agent)) => Some(agent),
        (None, Target::Capability(_)) => None,
    }
}

/// The payload with what is known of where it comes from.
fn payload(envelope: &Envelope) -> Told {
    let members = envelope.payload.members();
    let kind = members.get("type").and_then(serde_json::Value::as_str).unwrap_or_default();
    let parts = trust::parts(&envelope.payload).unwrap_or_default();
    let least = parts.iter().map(|part| part.trust).min().unwrap_or(Trust::Agent);
    let labelled = if parts.is_empty() { String::new() } else { format!(", {least} at least") };
    let kind: String = kind.chars().filter(|c| !c.is_whitespace()).take(40).collect();
    let about = format!("{kind}, by {}{labelled}", envelope.from_agent.name());
    let text = match members.len() {
        0 | 1 => "(nothing but its type)".to_owned(),
        _ => serde_json::to_string_pretty(&members).unwrap_or_default(),
    };
    Told { about, text }
}

/// Renders both parts within a bound. What a claim adds has a reserve within it and takes what is left.
fn fit(
    envelope: &Envelope,
    delivery: &Delivery,
    reader: Reader,
    bound: Option<u64>,
) -> Result<Prompt, TooSmall> {
    let Reader { tokenizer, form, .. } = reader;
    let mut reserve = bound.map_or(0, claim_reserve);
    loop {
        let available = bound.map(|bound| bound.saturating_sub(reserve));
        let too_small = |short: TooSmall| TooSmall {
            needed: short.needed.saturating_add(reserve),
            budget: bound.unwrap_or(u64::MAX),
            ..short
        };
        let read = read(
            &envelope.intent,
            &envelope.parts,
            envelope.created_at,
            Reader { available, ..reader },
        )
        .map_err(too_small)?;
        let room = bound.map_or(DELIVERY_TOKENS_MAX, |bound| bound - read.token_count.min(bound));
        let (delivered, texts_left_out) = deliver(delivery, &read.mark, form, tokenizer, room);
        let token_count = tokenizer.count(&format!("{}{delivered}", read.text()));
        match bound {
            // The frame is always told: where it needs more than was kept for it, there is more.
            Some(bound) if token_count > bound => reserve += token_count - bound,
            _ => {
                return Ok(Prompt {
                    token_count,
                    tokenizer,
                    bound,
                    left_out: read.left_out.clone(),
                    texts_left_out,
                    read,
                    delivery: delivered,
                });
            }
        }
    }
}
