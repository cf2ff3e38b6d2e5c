// SPDX-License-Identifier: Apache-2.0

use axum::http::StatusCode;
use serde_json::Value;
use tasuki_core::ids::Project;

use super::Answer;
use crate::auth::At;
use crate::json::{self, Json, PathId, ok, reply};
use crate::{to_wire, wire};

pub(crate) async fn show(At(desk): At, PathId(project): PathId<Project>) -> Answer {
    Ok(ok(&to_wire::context(&desk.context(&project).await?)))
}

pub(crate) async fn write(
    At(desk): At,
    PathId(project): PathId<Project>,
    Json(body): Json<Value>,
) -> Answer {
    desk.shares_no_ownership(&body)?;
    let body: wire::WriteContext = json::typed(&body)?;
    let seen = desk.write_context(&project, body).await?;
    Ok(ok(&to_wire::context(&seen)))
}

pub(crate) async fn decide(
    At(desk): At,
    PathId(project): PathId<Project>,
    Json(body): Json<Value>,
) -> Answer {
    desk.shares_no_ownership(&body)?;
    let body: wire::NewDecision = json::typed(&body)?;
    let seen = desk.decide(&project, body).await?;
    Ok(reply(StatusCode::CREATED, &to_wire::context(&seen)))
}
