// SPDX-License-Identifier: Apache-2.0
//! What a model reads of a handoff: the text that its sender assembled, and after it this handoff and
//! this claim. The core renders both; here is for whom, in which tokens and within which bound.

use tasuki_core::HandoffId;
use tasuki_core::assembly::{self, LeftOut, PromptForm, Read, Reader, Tokenizer};
use tasuki_store::Needs;

use crate::desk::Desk;
use crate::error::{Error, invalid};
use crate::told::payload;

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
        let part = self.claim_part(handoff, &envelope).await?;
        let reading = envelope.parts.reading.as_ref();
        let tokenizer = match wish.tokenizer.as_deref() {
            Some(name) => Tokenizer::named(name),
            None => part.tokenizer.or(reading.map(|it| it.tokenizer)).unwrap_or(Tokenizer::O200k),
        };
        let said = envelope.parts.prompt_tokens.map(u64::from);
        let said = said.or(reading.and_then(|reading| reading.budget));
        let bound = match (wish.max_tokens, wish.all) {
            (Some(asked), _) => Some(asked),
            (None, true) => None,
            (None, false) => {
                [said.or(part.window), part.window, part.budget].into_iter().flatten().min()
            }
        };
        let mut delivery = part.delivery;
        delivery.payload = (!wish.payload_apart).then(|| payload(&envelope));
        let reader = Reader { tokenizer, available: bound, form: wish.form, all: wish.all };
        let work = || {
            let (intent, parts) = (&envelope.intent, &envelope.parts);
            assembly::prompt(intent, parts, envelope.created_at, &delivery, reader)
        };
        let made = self.engine.pool.run(work).await.map_err(Error::TooSmall)?;
        Ok(Prompt {
            token_count: made.token_count,
            tokenizer,
            bound,
            left_out: made.read.left_out.clone(),
            texts_left_out: made.texts_left_out,
            read: made.read,
            delivery: made.delivery,
        })
    }
}
