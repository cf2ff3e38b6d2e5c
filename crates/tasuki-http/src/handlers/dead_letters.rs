// SPDX-License-Identifier: Apache-2.0

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::HandoffId;
use tasuki_engine::HandoffFilter;

use super::{Answer, handoffs};
use crate::auth::At;
use crate::error::Problem;
use crate::json::{Json, Params, PathId, ok, reply};
use crate::{to_wire, wire};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Also those that were decided on.
    #[serde(default)]
    all: bool,
    /// Only dead letters before this one: where the page before ended.
    before: Option<HandoffId>,
    /// How many at most, up to 1000.
    limit: Option<usize>,
}

pub(crate) async fn list(At(desk): At, Params(wish): Params<List>) -> Answer {
    let max = wish.limit.unwrap_or(100);
    let filter = HandoffFilter {
        unreviewed: !wish.all,
        before: wish.before,
        max,
        ..HandoffFilter::default()
    };
    Ok(ok(&handoffs::page(&desk, &desk.dead_letters(filter).await?)))
}

pub(crate) async fn show(At(desk): At, PathId(id): PathId<HandoffId>) -> Answer {
    let letter = desk.dead_letter(id).await?;
    Ok(ok(&to_wire::dead_letter(&letter, desk.now())))
}

pub(crate) async fn redrive(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Approve>,
) -> Answer {
    let handoff = desk.redrive(id, &body.by).await?;
    Ok(reply(StatusCode::CREATED, &to_wire::offered(&handoff, desk.listening(&handoff))))
}

pub(crate) async fn discard(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Decide>,
) -> Answer {
    let reason = body.reason.ok_or_else(|| Problem::invalid("reason", "is needed to discard"))?;
    let handoff = desk.discard(id, &body.by, reason).await?;
    Ok(ok(&to_wire::moved(&handoff)))
}
