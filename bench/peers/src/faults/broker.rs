//! Our own: claims with a lease and a fence, and handing on in the step that completes.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    agents::{Hands, Told},
    message::Message,
};
use crate::{http::Http, proof::Proof, wire::Wire};

const INTENT: &str = "Bring this through five stages.";
const WAIT_MS: u64 = 500;

#[derive(Clone, Copy)]
pub(super) struct Address {
    pub(super) address: SocketAddr,
    pub(super) lease: Duration,
    pub(super) round: u64,
}

pub(super) struct Broker {
    http: Http,
    at: Address,
    stage: usize,
}

pub(super) struct Taken {
    handoff: String,
    claim: Value,
    /// What binds, as it came. Only who says something else has to say it.
    constraints: Vec<String>,
}

#[derive(Deserialize)]
struct Claims {
    claims: Vec<Claimed>,
}

#[derive(Deserialize)]
struct Claimed {
    handoff_id: String,
    claim_id: String,
    fence: u64,
    envelope: Envelope,
}

#[derive(Deserialize)]
struct Envelope {
    payload: Payload,
    constraints: Vec<Constraint>,
}

#[derive(Deserialize)]
struct Payload {
    chain: u32,
    trail: Vec<usize>,
}

#[derive(Deserialize)]
struct Constraint {
    text: String,
}

fn payload(message: &Message) -> Value {
    json!({ "type": "work", "chain": message.chain, "trail": message.trail })
}

impl Broker {
    fn agent(&self, stage: usize) -> String {
        format!("round-{}-stage-{stage}", self.at.round)
    }

    fn completion(&self, taken: &Taken, next: Option<&Message>) -> (String, Vec<u8>) {
        let mut body = taken.claim.clone();
        body["payload"] = json!({ "type": "done" });
        if let Some(next) = next {
            let mut hop =
                json!({ "to": { "agent": self.agent(next.stage()) }, "payload": payload(next) });
            if next.constraints != taken.constraints {
                hop["constraints"] = json!(next.constraints);
            }
            body["follow_ups"] = json!([hop]);
        }
        (format!("/v1/handoffs/{}/complete", taken.handoff), body.to_string().into_bytes())
    }

    /// Sends a request, or a part of it, and is gone.
    async fn leave(self, taken: &Taken, next: &Message, whole: bool) -> Result<()> {
        let (target, body) = self.completion(taken, Some(next));
        let sent = if whole { &body[..] } else { &body[..body.len() / 2] };
        let host = self.at.address;
        let mut request = format!(
            "POST {target} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(sent);
        Wire::connect(host).await?.send(&request).await
    }
}

impl Hands for Broker {
    type Place = Address;
    type Taken = Taken;

    async fn connect(place: &Address, stage: usize) -> Result<Self> {
        let http = Http::connect(place.address, &Proof::Nothing).await?;
        Ok(Self { http, at: *place, stage })
    }

    async fn send(&mut self, message: &Message) -> Result<()> {
        let offer = json!({
            "from_agent": "lead",
            "to": { "agent": self.agent(message.stage()) },
            "intent": INTENT,
            "constraints": message.constraints,
            "payload": payload(message),
        });
        self.http.post("/v1/handoffs", offer.to_string().as_bytes()).await?;
        Ok(())
    }

    async fn take(&mut self) -> Result<Option<(Message, Taken)>> {
        let lease_ms = u64::try_from(self.at.lease.as_millis())?;
        let claim =
            json!({ "agent": self.agent(self.stage), "wait_ms": WAIT_MS, "lease_ms": lease_ms });
        let reply = self.http.post("/v1/claims", claim.to_string().as_bytes()).await?;
        let mut claims: Claims = serde_json::from_slice(reply).context("other claims")?;
        let Some(Claimed { handoff_id, claim_id, fence, envelope }) = claims.claims.pop() else {
            return Ok(None);
        };
        let constraints: Vec<_> = envelope.constraints.into_iter().map(|it| it.text).collect();
        let Payload { chain, trail } = envelope.payload;
        let message = Message { chain, trail, constraints: constraints.clone() };
        let claim = json!({ "claim_id": claim_id, "fence": fence });
        Ok(Some((message, Taken { handoff: handoff_id, claim, constraints })))
    }

    async fn tell(&mut self, taken: &Taken, next: &Message) -> Result<Told> {
        let (target, body) = self.completion(taken, Some(next));
        let (status, reply) = self.http.ask("POST", &target, &body).await?;
        let code = serde_json::from_slice::<Value>(reply)?["code"].clone();
        match (status, code.as_str()) {
            (200, _) | (_, Some("stale_claim")) => Ok(Told::Heard),
            (_, Some("constraint_dropped" | "constraint_altered")) => Ok(Told::Refused),
            _ => bail!("{target} answered {status}: {}", String::from_utf8_lossy(self.http.last())),
        }
    }

    async fn finish(&mut self, taken: &Taken) -> Result<()> {
        let (target, body) = self.completion(taken, None);
        self.http.post(&target, &body).await?;
        Ok(())
    }

    async fn die_telling(self, taken: &Taken, next: &Message) -> Result<()> {
        self.leave(taken, next, false).await
    }

    async fn tell_unheard(self, taken: &Taken, next: &Message) -> Result<()> {
        self.leave(taken, next, true).await
    }

    /// The same completion of the same claim is the same.
    async fn tell_again(&mut self, taken: &Taken, next: &Message) -> Result<Told> {
        self.tell(taken, next).await
    }
}
