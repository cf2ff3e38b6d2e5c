// SPDX-License-Identifier: Apache-2.0

use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::HandoffId;
use tasuki_core::assembly::Tokenizer;
use tasuki_core::envelope::VERSION;
use tasuki_engine::AssembleRequest;

use super::Answer;
use crate::auth::At;
use crate::json::{Json, Params, PathId, ok};
use crate::{from_wire, wire};

pub(crate) async fn assemble(At(desk): At, Json(body): Json<wire::Assemble>) -> Answer {
    from_wire::check_none(&body.more)?;
    let wish = AssembleRequest {
        to: body.to_agent,
        task_id: body.task_id,
        intent: body.intent,
        said: body.said,
        project: body.project,
        recent: body.include_recent,
        pins: body.include_pins,
        strategy: body.strategy,
        budget: body.max_tokens,
        reserved_system_prompt: body.reserved_system_prompt,
        reserved_work: body.reserved_work,
        tokenizer: body.tokenizer,
        role: body.role,
    };
    let put = desk.assemble(&body.from_agent, wish).await?;
    let receipt = put.assembled.receipt;
    let envelope = wire::EnvelopePreview { intent: put.intent, parts: put.parts };
    let json = serde_json::to_string(&envelope).unwrap_or_default();
    let here = envelope.parts.context.iter().map(|item| item.id.clone());
    let mut memory_refs: Vec<_> =
        here.chain(envelope.parts.memory_refs.iter().map(|one| one.id.clone())).collect();
    memory_refs.sort();
    memory_refs.dedup();
    Ok(ok(&wire::Assembled {
        envelope_version: VERSION.to_owned(),
        token_count: receipt.token_count,
        memory_refs,
        prompt: put.assembled.prompt,
        envelope_tokens: receipt.tokenizer.count(&json),
        envelope,
        offer: put.said,
        receipt,
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rendering {
    /// The reader's tokenizer or model; `o200k_base` without it.
    tokenizer: Option<String>,
    /// How many tokens it may have; what may be left out is left out until it fits.
    max_tokens: Option<u64>,
}

pub(crate) async fn prompt(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Params(wish): Params<Rendering>,
) -> Answer {
    let tokenizer = wish.tokenizer.unwrap_or_else(|| Tokenizer::O200k.as_str().to_owned());
    let rendered = desk.prompt(id, &tokenizer, wish.max_tokens).await?;
    let url = |memory: String| format!("/v1/memories/{memory}?detail=full&handoff={id}");
    let fetch = desk.trimmed(id).await?.into_iter().map(url).collect();
    Ok(ok(&wire::Prompt {
        prompt: rendered.prompt,
        token_count: rendered.receipt.token_count,
        exact: rendered.receipt.exact,
        fetch,
    }))
}
