// SPDX-License-Identifier: Apache-2.0
//! Tokens, tenants, and what strangers tried.

use tasuki_core::ids::{TenantId, TokenId};
use tasuki_core::registry::Quotas;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{self as wire, Code};

use super::Right::{LooksAfter, Operator};
use super::{Done, Facts, Operation, answer, manages, reads, shown};
use crate::accounts::NewToken;
use crate::desk::Desk;

pub struct IssueToken;

impl Operation for IssueToken {
    const FACTS: Facts = manages(
        "token_issue",
        LooksAfter(Permission::Administer),
        "Issue a token; its text is shown this once",
    )
    .errors(&[&[
        Code::AgentNotFound,
        Code::NotPermitted,
        Code::GrantTooWide,
        Code::KeyNotShown,
        Code::TokenTooDeep,
        Code::NameTaken,
        Code::InvalidRules,
    ]]);
    type On = ();
    type In = wire::IssueToken;
    type Out = wire::IssuedToken;

    async fn run(desk: &Desk, (): (), asked: wire::IssueToken) -> Done<wire::IssuedToken> {
        let new = NewToken {
            purpose: asked.purpose,
            agent: asked.agent_id,
            rules: asked.rules,
            expires_in_ms: asked.expires_in_ms,
        };
        let issued = desk.issue_token(new).await?;
        answer(wire::IssuedToken { token: shown::token(&issued.token), text: issued.text })
    }
}

pub struct Tokens;

impl Operation for Tokens {
    const FACTS: Facts = reads(
        "token_list",
        LooksAfter(Permission::Administer),
        "List tokens, newest first, without their secrets",
    );
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Tokens;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Tokens> {
        let tokens = desk.tokens().iter().map(|token| shown::token(token)).collect();
        answer(wire::Tokens { tokens })
    }
}

pub struct RevokeToken;

impl Operation for RevokeToken {
    const FACTS: Facts =
        manages("token_revoke", LooksAfter(Permission::Administer), "Revoke a token at once")
            .errors(&[&[Code::TokenNotFound]]);
    type On = TokenId;
    type In = wire::Nothing;
    type Out = wire::TokenInfo;

    async fn run(desk: &Desk, id: TokenId, _: wire::Nothing) -> Done<wire::TokenInfo> {
        answer(shown::token(&*desk.revoke_token(id).await?))
    }
}

pub struct Tenants;

impl Operation for Tenants {
    const FACTS: Facts = reads("tenant_list", Operator, "List tenants and what they may use")
        .errors(&[&[Code::NotPermitted]]);
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Tenants;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Tenants> {
        let tenants = desk.tenants()?.into_iter().map(shown::tenant).collect();
        answer(wire::Tenants { tenants })
    }
}

pub struct SetTenant;

impl Operation for SetTenant {
    const FACTS: Facts = manages("tenant_set", Operator, "Say what a tenant may use")
        .errors(&[&[Code::NotPermitted]]);
    type On = TenantId;
    type In = Quotas;
    type Out = wire::TenantInfo;

    async fn run(desk: &Desk, id: TenantId, asked: Quotas) -> Done<wire::TenantInfo> {
        answer(shown::tenant(desk.set_quotas(id, asked).await?))
    }
}

pub struct Security;

impl Operation for Security {
    const FACTS: Facts = reads("security_show", Operator, "Show requests that nobody stood behind")
        .errors(&[&[Code::NotPermitted]]);
    type On = ();
    type In = wire::Nothing;
    type Out = wire::Refusals;

    async fn run(desk: &Desk, (): (), _: wire::Nothing) -> Done<wire::Refusals> {
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
        answer(wire::Refusals { count, refusals })
    }
}
