// SPDX-License-Identifier: Apache-2.0

use tasuki_core::HandoffId;

use super::Answer;
use crate::auth::At;
use crate::error::Problem;
use crate::json::{Json, PathId, ok};
use crate::{from_wire, to_wire, wire};

pub(crate) async fn claim(At(desk): At, Json(body): Json<wire::Claim>) -> Answer {
    check_capabilities(body.capabilities.len())?;
    let granted = desk.claim(body).await?;
    let claims = granted.iter().map(to_wire::claimed).collect::<Result<_, _>>()?;
    Ok(ok(&wire::Claims { claims }))
}

pub(crate) async fn claim_one(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::ClaimOne>,
) -> Answer {
    check_capabilities(body.capabilities.len())?;
    let granted = desk.claim_one(from_wire::claim_one(id, body)).await?;
    Ok(ok(&to_wire::claimed(&granted)?))
}

pub(crate) async fn peek(At(desk): At, Json(body): Json<wire::Peek>) -> Answer {
    check_capabilities(body.capabilities.len())?;
    let granted = desk.peek(body).await?;
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
