// SPDX-License-Identifier: Apache-2.0
//! What a receiver gets to read.

use tasuki_core::envelope::VERSION;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{self as wire, Code};

use super::Right::Has;
use super::{Done, Facts, Operation, answer, asked, reads};
use crate::assemble::AssembleRequest;
use crate::desk::Desk;

pub struct Assemble;

impl Operation for Assemble {
    const FACTS: Facts = reads(
        "assemble",
        Has(Permission::Send),
        "Put together what a receiver gets to read within its token budget; nothing is stored",
    )
    .errors(&[&[
        Code::BudgetTooSmall,
        Code::TaskNotFound,
        Code::IntentAltered,
        Code::ConstraintAltered,
        Code::ConstraintDropped,
        Code::ConstraintNotYours,
        Code::DecisionSettled,
        Code::InvalidEnvelope,
    ]]);
    type On = ();
    type In = wire::Assemble;
    type Out = wire::Assembled;

    async fn run(desk: &Desk, (): (), asked: wire::Assemble) -> Done<wire::Assembled> {
        asked::check_none(&asked.more)?;
        let wish = AssembleRequest {
            to: asked.to_agent,
            task_id: asked.task_id,
            intent: asked.intent,
            said: asked.said,
            project: asked.project,
            recent: asked.include_recent,
            pins: asked.include_pins,
            strategy: asked.strategy,
            budget: asked.max_tokens,
            reserved_system_prompt: asked.reserved_system_prompt,
            reserved_work: asked.reserved_work,
            tokenizer: asked.tokenizer,
            role: asked.role,
            payload: asked.payload,
        };
        let put = desk.assemble(&asked.from_agent, wish).await?;
        let receipt = put.assembled.receipt;
        let envelope = wire::EnvelopePreview { intent: put.intent, parts: put.parts };
        let json = serde_json::to_string(&envelope).unwrap_or_default();
        let here = envelope.parts.context.iter().map(|item| item.id.clone());
        let mut memory_refs: Vec<_> =
            here.chain(envelope.parts.memory_refs.iter().map(|one| one.id.clone())).collect();
        memory_refs.sort();
        memory_refs.dedup();
        answer(wire::Assembled {
            envelope_version: VERSION.to_owned(),
            token_count: receipt.token_count,
            memory_refs,
            prompt: put.assembled.prompt,
            envelope_tokens: receipt.tokenizer.count(&json),
            envelope,
            offer: put.said,
            receipt,
        })
    }
}
