// SPDX-License-Identifier: Apache-2.0

use axum::extract::State;
use tasuki_core::HandoffId;

use super::Answer;
use crate::error::Problem;
use crate::json::{Json, PathId, ok};
use crate::{App, from_wire, to_wire, wire};

pub(crate) async fn claim(State(app): State<App>, Json(body): Json<wire::Claim>) -> Answer {
    check_capabilities(body.capabilities.len())?;
    let granted = app.engine.claim(from_wire::claim(body)).await?;
    let claims = granted.iter().map(to_wire::claimed).collect::<Result<_, _>>()?;
    Ok(ok(&wire::Claims { claims }))
}

pub(crate) async fn claim_one(
    State(app): State<App>,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::ClaimOne>,
) -> Answer {
    check_capabilities(body.capabilities.len())?;
    let granted = app.engine.claim_one(from_wire::claim_one(id, body)).await?;
    Ok(ok(&to_wire::claimed(&granted)?))
}

pub(crate) async fn peek(State(app): State<App>, Json(body): Json<wire::Peek>) -> Answer {
    check_capabilities(body.capabilities.len())?;
    let granted = app.engine.peek(from_wire::peek(body)).await?;
    let waiting = granted.iter().map(to_wire::waiting).collect::<Result<_, _>>()?;
    Ok(ok(&wire::Peeked { waiting }))
}

const CAPABILITIES_MAX: usize = 100;

fn check_capabilities(named: usize) -> Result<(), Problem> {
    if named <= CAPABILITIES_MAX {
        return Ok(());
    }
    let problem = format!("{named} were named, at most {CAPABILITIES_MAX} are allowed");
    Err(Problem::invalid("capabilities", problem))
}
