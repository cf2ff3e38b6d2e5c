// SPDX-License-Identifier: Apache-2.0

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::{DocumentId, Position, chain};
use tasuki_engine::ImportedChain;

use super::Answer;
use crate::auth::At;
use crate::json::{Json, Params, PathId, ok, reply};
use crate::wire;

pub(crate) async fn import(At(desk): At, Json(body): Json<wire::ImportChain>) -> Answer {
    let (chain, repeated) = desk.import_chain(&body.by, body.project, body.file).await?;
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &shown(&chain)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Only what was imported before this: where the page before ended.
    before: Option<u64>,
    /// How many at most, up to 100.
    limit: Option<usize>,
}

pub(crate) async fn list(At(desk): At, Params(wish): Params<List>) -> Answer {
    let before = wish.before.map(Position);
    let (chains, next) = desk.list_imported(before, wish.limit.unwrap_or(100)).await?;
    Ok(ok(&wire::ImportedChains { chains: chains.iter().map(shown).collect(), next }))
}

pub(crate) async fn show(At(desk): At, PathId(id): PathId<DocumentId>) -> Answer {
    let imported = desk.imported(&id).await?;
    let file = imported.content.as_ref().map(|content| content.file.clone());
    let read = file.as_deref().and_then(|file| serde_json::from_str(file).ok());
    let verdict = read.as_ref().map(chain::verify);
    Ok(ok(&wire::ImportedChainWithFile { chain: shown(&imported), verdict, file }))
}

fn shown(imported: &ImportedChain) -> wire::ImportedChain {
    let document = &imported.kept.document;
    let content = imported.content.as_ref();
    wire::ImportedChain {
        chain_id: document.id.clone(),
        scope: document.scope.clone(),
        imported_by: document.created_by.clone(),
        imported_at: document.created_at,
        task_id: content.map(|content| content.task_id),
        tasks: content.map(|content| content.tasks),
        events: content.map(|content| content.events),
    }
}
