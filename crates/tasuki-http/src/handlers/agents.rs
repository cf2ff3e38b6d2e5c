// SPDX-License-Identifier: Apache-2.0

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{Extensions, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::ids::{KeyId, TenantId, TokenId};
use tasuki_core::registry::{Quotas, Standing};
use tasuki_core::{AgentId, Capability};
use tasuki_engine::{Desk, NewToken};

use super::Answer;
use crate::auth::{self, At};
use crate::error::Problem;
use crate::json::{Json, Params, PathId, ok, reply};
use crate::{App, to_wire, wire};
use tasuki_protocol::Code;

pub(crate) async fn publish(At(desk): At, Json(body): Json<wire::Publish>) -> Answer {
    let agent = desk.publish(body.manifest, body.signed, body.version).await?;
    let seen = desk.agent(&agent.id).await?;
    Ok(reply(StatusCode::CREATED, &to_wire::agent(&seen)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// Whose agents; those of one's own tenant without it. Only an administrator of the default
    /// tenant looks elsewhere.
    tenant: Option<TenantId>,
    /// Only agents that can do this.
    capability: Option<Capability>,
    /// Only agents with this tag.
    tag: Option<String>,
    role: Option<String>,
    version: Option<String>,
    /// Only agents that are there, or only those that are not.
    live: Option<bool>,
    /// The least share of the last attempts that ended in a result, in percent.
    reliability: Option<u8>,
    /// How many at most, up to 1000.
    limit: Option<usize>,
}

pub(crate) async fn list(At(desk): At, Params(wish): Params<List>) -> Answer {
    let search = wire::Search {
        tenant: wish.tenant,
        capability: wish.capability,
        tags: wish.tag.into_iter().collect(),
        role: wish.role,
        version: wish.version,
        live: wish.live,
        reliability: wish.reliability,
        limit: wish.limit,
        ..wire::Search::default()
    };
    found(&desk, search).await
}

pub(crate) async fn search(At(desk): At, Json(body): Json<wire::Search>) -> Answer {
    found(&desk, body).await
}

async fn found(desk: &Desk, search: wire::Search) -> Answer {
    let found = desk.discover(search).await?;
    Ok(ok(&wire::Agents { agents: found.iter().map(to_wire::agent).collect() }))
}

pub(crate) async fn catalogue(At(desk): At) -> Answer {
    let search = wire::Search { limit: Some(1000), ..wire::Search::default() };
    let found = desk.discover(search).await?;
    Ok(ok(&to_wire::catalogue(&found, desk.broker_key())))
}

pub(crate) async fn manifest_schema() -> Answer {
    Ok(ok(&schemars::schema_for!(tasuki_core::manifest::Manifest)))
}

pub(crate) async fn show(At(desk): At, PathId(id): PathId<AgentId>) -> Answer {
    Ok(ok(&to_wire::agent(&desk.agent(&id).await?)))
}

pub(crate) async fn drain(
    At(desk): At,
    PathId(id): PathId<AgentId>,
    Json(_): Json<wire::Nothing>,
) -> Answer {
    stand(&desk, &id, Standing::Draining).await
}

pub(crate) async fn resume(
    At(desk): At,
    PathId(id): PathId<AgentId>,
    Json(_): Json<wire::Nothing>,
) -> Answer {
    stand(&desk, &id, Standing::Active).await
}

pub(crate) async fn deregister(
    At(desk): At,
    PathId(id): PathId<AgentId>,
    Json(_): Json<wire::Nothing>,
) -> Answer {
    stand(&desk, &id, Standing::Deregistered).await
}

async fn stand(desk: &Desk, id: &AgentId, standing: Standing) -> Answer {
    let agent = desk.set_standing(id, standing).await?;
    Ok(ok(&to_wire::agent(&desk.agent(&agent.id).await?)))
}

pub(crate) async fn enroll(
    At(desk): At,
    PathId(id): PathId<AgentId>,
    Json(body): Json<wire::Enroll>,
) -> Answer {
    let enrolled = desk.enroll(&id, body.key, body.rules).await?;
    let seen = desk.agent(&enrolled.agent.id).await?;
    Ok(reply(StatusCode::CREATED, &to_wire::agent(&seen)))
}

/// The one call that changes something and asks nobody who it is: the token is the proof.
pub(crate) async fn join(
    State(app): State<App>,
    extensions: Extensions,
    Json(body): Json<wire::Join>,
) -> Answer {
    let joined = app.engine.join(&body.token, body.agent_id, body.key, &body.proof).await;
    let enrolled = joined.map_err(|error| {
        let problem = Problem::from(error);
        if problem.known() == Some(Code::TokenRefused) {
            let from = auth::from(&extensions);
            app.engine.note_stranger(&from, Code::TokenRefused, "/v1/join");
        }
        problem
    })?;
    Ok(reply(StatusCode::CREATED, &to_wire::own_agent(&enrolled.agent)))
}

pub(crate) async fn rotate(
    At(desk): At,
    PathId(id): PathId<AgentId>,
    Json(body): Json<wire::Rotate>,
) -> Answer {
    let enrolled = desk.rotate(&id, body.old, body.key, &body.proof, body.grace_ms).await?;
    Ok(ok(&to_wire::agent(&desk.agent(&enrolled.agent.id).await?)))
}

pub(crate) async fn revoke(
    At(desk): At,
    path: Result<Path<(String, String)>, PathRejection>,
    Json(_): Json<wire::Nothing>,
) -> Answer {
    let Path((agent, key)) = path.map_err(|error| Problem::invalid("path", error.body_text()))?;
    let agent: AgentId = parse("id", &agent)?;
    let key: KeyId = parse("key", &key)?;
    let agent = desk.revoke(&agent, key).await?;
    Ok(ok(&to_wire::agent(&desk.agent(&agent.id).await?)))
}

fn parse<T: std::str::FromStr<Err = tasuki_core::ids::Malformed>>(
    field: &str,
    text: &str,
) -> Result<T, Problem> {
    text.parse().map_err(|error: T::Err| Problem::invalid(field, error.to_string()))
}

pub(crate) async fn set_rules(
    At(desk): At,
    PathId(id): PathId<AgentId>,
    Json(body): Json<wire::SetRules>,
) -> Answer {
    let agent = desk.set_rules(&id, body.rules).await?;
    Ok(ok(&to_wire::agent(&desk.agent(&agent.id).await?)))
}

pub(crate) async fn issue_token(At(desk): At, Json(body): Json<wire::IssueToken>) -> Answer {
    let issued = desk
        .issue_token(NewToken {
            purpose: body.purpose,
            agent: body.agent_id,
            rules: body.rules,
            expires_in_ms: body.expires_in_ms,
        })
        .await?;
    let token = to_wire::token(&issued.token);
    Ok(reply(StatusCode::CREATED, &wire::IssuedToken { token, text: issued.text }))
}

pub(crate) async fn tokens(At(desk): At) -> Answer {
    let tokens = desk.tokens().iter().map(|token| to_wire::token(token)).collect();
    Ok(ok(&wire::Tokens { tokens }))
}

pub(crate) async fn revoke_token(
    At(desk): At,
    PathId(id): PathId<TokenId>,
    Json(_): Json<wire::Nothing>,
) -> Answer {
    Ok(ok(&to_wire::token(&*desk.revoke_token(id).await?)))
}

pub(crate) async fn tenants(At(desk): At) -> Answer {
    let tenants = desk.tenants()?.into_iter().map(to_wire::tenant).collect();
    Ok(ok(&wire::Tenants { tenants }))
}

pub(crate) async fn set_quotas(
    At(desk): At,
    PathId(id): PathId<TenantId>,
    Json(body): Json<Quotas>,
) -> Answer {
    Ok(ok(&to_wire::tenant(desk.set_quotas(id, body).await?)))
}

pub(crate) async fn refusals(At(desk): At) -> Answer {
    let (refusals, count) = desk.refusals()?;
    let refusals = refusals
        .into_iter()
        .map(|refused| wire::Refusal {
            at: refused.at,
            from: refused.from,
            code: refused.code.to_string(),
            named: refused.named,
            path: refused.path,
        })
        .collect();
    Ok(ok(&wire::Refusals { count, refusals }))
}
