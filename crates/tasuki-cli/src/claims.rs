// SPDX-License-Identifier: Apache-2.0
//! Claims that are remembered, so that whoever works by hand need not carry ids, claims and fences
//! from one command to the next.

use serde::{Deserialize, Serialize};
use tasuki_core::{AgentId, ClaimId, Fence, HandoffId};
use tasuki_protocol as wire;

use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::tell;
use crate::state;

const FILE: &str = "claims.json";
/// How many are remembered; the oldest are forgotten first.
const REMEMBERED_MAX: usize = 1000;
/// Between so many claims nobody chooses by hand; only the newest are looked at.
const CHECKED_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub url: String,
    pub agent: AgentId,
    pub handoff_id: HandoffId,
    pub claim_id: ClaimId,
    pub fence: Fence,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Claims {
    #[serde(default)]
    claims: Vec<Claim>,
}

impl Claim {
    fn is_about(&self, url: &str, handoff: HandoffId) -> bool {
        let own = self.handoff_id;
        self.url == url && own == handoff
    }
}

/// Remembers claims, and tells whether they can be found again.
pub fn remember(client: &Client, agent: &AgentId, granted: &[&wire::Claimed]) -> bool {
    if granted.is_empty() {
        return true;
    }
    let changed = state::change(FILE, |all: &mut Claims| {
        for one in granted {
            all.claims.retain(|claim| {
                !claim.is_about(client.url(), one.handoff_id) || claim.agent != *agent
            });
            all.claims.push(Claim {
                url: client.url().to_owned(),
                agent: agent.clone(),
                handoff_id: one.handoff_id,
                claim_id: one.claim_id,
                fence: one.fence,
            });
        }
        let over = all.claims.len().saturating_sub(REMEMBERED_MAX);
        all.claims.drain(..over);
    });
    // The claim holds all the same.
    changed
        .map_err(|failure| tell(&format!("the claim is not remembered: {}", failure.message)))
        .is_ok()
}

pub fn forget(claim: ClaimId) {
    let is_there = |all: &Claims| all.claims.iter().any(|it| it.claim_id == claim);
    if state::read::<Claims>(FILE).is_ok_and(|all| is_there(&all)) {
        // Whoever asks with it later is told that it is stale.
        let _ = state::change(FILE, |all: &mut Claims| {
            all.claims.retain(|one| one.claim_id != claim);
        });
    }
}

/// The claim of an agent on a handoff, if it is remembered.
#[must_use]
pub fn known(client: &Client, agent: &AgentId, handoff: HandoffId) -> Option<Claim> {
    let all = state::read::<Claims>(FILE).ok()?.claims;
    all.into_iter().find(|it| it.is_about(client.url(), handoff) && it.agent == *agent)
}

/// The one remembered claim that is meant.
pub async fn find(
    client: &Client,
    agent: Option<&AgentId>,
    handoff: Option<HandoffId>,
) -> anyhow::Result<Claim> {
    let all = state::read::<Claims>(FILE)?.claims;
    let mut meant: Vec<_> = all
        .into_iter()
        .filter(|claim| claim.url == client.url())
        .filter(|claim| agent.is_none_or(|agent| claim.agent == *agent))
        .filter(|claim| handoff.is_none_or(|handoff| claim.is_about(client.url(), handoff)))
        .collect();
    if meant.len() > 1 {
        meant = still_held(client, meant).await?;
    }
    match meant.len() {
        0 => Err(none(client, agent, handoff).into()),
        1 => Ok(meant.remove(0)),
        _ => Err(several(&meant).into()),
    }
}

/// Leaves out what no longer holds, and says so.
async fn still_held(client: &Client, claims: Vec<Claim>) -> anyhow::Result<Vec<Claim>> {
    let mut held = Vec::new();
    for claim in claims.into_iter().rev().take(CHECKED_MAX) {
        let id = claim.handoff_id;
        let reply = client.get(&format!("/v1/handoffs/{id}"), &[]).await;
        let holds = match reply {
            Ok(reply) => {
                let handoff: wire::Handoff = serde_json::from_str(&reply)?;
                handoff.holder.is_some_and(|holder| holder.fence == claim.fence)
            }
            Err(error) if is_gone(&error) => false,
            Err(error) => return Err(error),
        };
        if holds {
            held.push(claim);
        } else {
            gone(&claim);
        }
    }
    Ok(held)
}

/// Forgets a claim that no longer holds, and says so.
pub fn gone(claim: &Claim) {
    forget(claim.claim_id);
    let (agent, id) = (&claim.agent, claim.handoff_id);
    tell(&format!("note:  {agent}'s claim on {id} no longer holds, and is forgotten"));
}

/// Whether an answer means that a claim is worth nothing any more.
#[must_use]
pub fn is_gone(error: &anyhow::Error) -> bool {
    let code = error.downcast_ref::<Failure>().map(Failure::code);
    matches!(code, Some("stale_claim" | "handoff_not_found"))
}

fn none(client: &Client, agent: Option<&AgentId>, handoff: Option<HandoffId>) -> Failure {
    let of = agent.map(|agent| format!(" of {agent}")).unwrap_or_default();
    let on = handoff.map(|handoff| format!(" on {handoff}")).unwrap_or_default();
    let message = format!("no claim{of}{on} is remembered for the broker at {}", client.url());
    let hint = "claim some work first, or show the claim with --claim and --fence";
    let agent = agent.map_or_else(|| "AGENT".to_owned(), ToString::to_string);
    Failure::usage(message, hint).next(client.command(&format!("handoff claim --agent {agent}")))
}

fn several(claims: &[Claim]) -> Failure {
    let named: Vec<_> =
        claims.iter().map(|claim| format!("{} ({})", claim.handoff_id, claim.agent)).collect();
    let message = format!("{} claims are held: {}", claims.len(), named.join(", "));
    Failure::new(Exit::Usage, message, "name the handoff, or the agent with --agent")
}
