//! A client that offers, claims and completes as one agent.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::broker::Agent;
use crate::{
    http::Http,
    load::{Client, Load},
};

/// How long a client that was told to wait does so. `Retry-After` counts in whole seconds; who
/// floods is not so patient.
const PAUSE: Duration = Duration::from_millis(50);
const TOO_MANY_REQUESTS: u16 = 429;
/// What all offer to and claim from, each in its own tenant.
pub(super) const CAPABILITY: &str = "bench";
const STEPS: usize = 3;

pub(super) struct Worker {
    http: Http,
    offer: Vec<u8>,
    claim: Vec<u8>,
    held: Option<Held>,
    refusals: Arc<Refusals>,
}

#[derive(Deserialize)]
pub(super) struct Claims {
    pub(super) claims: Vec<Held>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Held {
    pub(super) handoff_id: String,
    pub(super) claim_id: String,
    pub(super) fence: u64,
}

#[derive(Clone, Copy)]
enum Step {
    Offer,
    Claim,
    Complete,
}

/// How often clients were told to wait.
#[derive(Default)]
pub(super) struct Refusals([AtomicU64; STEPS]);

/// The same, counted.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Refused {
    pub(super) offer: u64,
    pub(super) claim: u64,
    pub(super) complete: u64,
}

impl Refusals {
    pub(super) fn count(&self) -> Refused {
        let [offer, claim, complete] = &self.0;
        let [offer, claim, complete] =
            [offer, claim, complete].map(|count| count.load(Ordering::Relaxed));
        Refused { offer, claim, complete }
    }
}

impl Worker {
    pub(super) async fn connect(
        address: SocketAddr,
        agent: &Agent,
        payload: &[u8],
        refusals: &Arc<Refusals>,
    ) -> Result<Self> {
        let offer = json!({
            "from_agent": agent.name,
            "to": { "capability": CAPABILITY },
            "intent": "measure the broker",
            "payload": { "type": "bench", "text": str::from_utf8(payload)? },
        });
        let claim = json!({ "agent": agent.name, "capabilities": [CAPABILITY], "wait_ms": 1000 });
        Ok(Self {
            http: Http::connect(address, &agent.proof).await?,
            offer: offer.to_string().into_bytes(),
            claim: claim.to_string().into_bytes(),
            held: None,
            refusals: refusals.clone(),
        })
    }

    /// A worker for each agent.
    pub(super) async fn connect_all(
        address: SocketAddr,
        agents: &[Agent],
        load: &Load,
        refusals: &Arc<Refusals>,
    ) -> Result<Vec<Self>> {
        let mut workers = Vec::new();
        for agent in agents {
            workers.push(Self::connect(address, agent, &load.payload, refusals).await?);
        }
        Ok(workers)
    }
}

impl Client for Worker {
    async fn offer(&mut self) -> Result<()> {
        insist(&mut self.http, &self.refusals, Step::Offer, "/v1/handoffs", &self.offer).await?;
        Ok(())
    }

    async fn claim(&mut self) -> Result<()> {
        // A wait may end without work, where others were faster.
        loop {
            let reply =
                insist(&mut self.http, &self.refusals, Step::Claim, "/v1/claims", &self.claim);
            let mut claims: Claims = serde_json::from_slice(reply.await?)?;
            if let Some(held) = claims.claims.pop() {
                self.held = Some(held);
                return Ok(());
            }
        }
    }

    async fn complete(&mut self) -> Result<()> {
        let held = self.held.take().context("nothing was claimed")?;
        let target = format!("/v1/handoffs/{}/complete", held.handoff_id);
        let body = format!(
            r#"{{"claim_id":"{}","fence":{},"payload":{{"type":"done"}}}}"#,
            held.claim_id, held.fence
        );
        insist(&mut self.http, &self.refusals, Step::Complete, &target, body.as_bytes()).await?;
        Ok(())
    }
}

/// Posts until the broker no longer says to wait.
async fn insist<'h>(
    http: &'h mut Http,
    refusals: &Refusals,
    step: Step,
    target: &str,
    body: &[u8],
) -> Result<&'h [u8]> {
    loop {
        let (status, reply) = http.ask("POST", target, body).await?;
        match status {
            200..300 => break,
            TOO_MANY_REQUESTS => {
                refusals.0[step as usize].fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
            }
            _ => bail!("{target} answered {status}: {}", String::from_utf8_lossy(reply)),
        }
    }
    Ok(http.last())
}
