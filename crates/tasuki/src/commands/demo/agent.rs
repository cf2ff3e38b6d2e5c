// SPDX-License-Identifier: Apache-2.0
//! Scripted agents: they speak HTTP as any other would, and know their lines.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::exit::Failure;

/// How long an agent waits for work that must be there soon.
const WAIT_MS: u64 = 15_000;

/// The files of `examples/coder-reviewer-tester`, which are what the agents say.
macro_rules! line {
    ($name:literal) => {
        serde_json::from_str::<serde_json::Value>(include_str!(concat!(
            "../../../../../examples/coder-reviewer-tester/",
            $name,
            ".json"
        )))
        .map_err(|error| anyhow::anyhow!("{}: {error}", $name))
    };
}
pub(super) use line;

/// The members of both; those of the second count.
pub(super) fn merged(mut one: Value, other: &Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object()) {
        one.extend(other.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    one
}

#[derive(Clone)]
pub(super) struct Agent {
    pub(super) name: &'static str,
    client: Arc<Client>,
}

/// What an agent has claimed.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) handoff: String,
    pub(super) attempt: u64,
    pub(super) fence: u64,
    pub(super) envelope: Value,
    /// What shows the claim, as every later call needs it.
    proof: Value,
}

impl Agent {
    pub(super) fn new(name: &'static str, client: &Arc<Client>) -> Self {
        Self { name, client: client.clone() }
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.client.get(path, &[]).await?)?)
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.client.post(path, body).await?)?)
    }

    /// Claims the next work, waiting for it.
    pub(super) async fn claim(&self, more: &Value) -> anyhow::Result<Held> {
        let body = merged(json!({ "agent": self.name, "wait_ms": WAIT_MS }), more);
        let reply = self.client.post_waiting("/v1/claims", &body, WAIT_MS).await?;
        let mut reply: Value = serde_json::from_str(&reply)?;
        let claim = reply["claims"][0].take();
        let handoff = claim["handoff_id"].as_str();
        let handoff = handoff.with_context(|| format!("no work came to {} in time", self.name))?;
        Ok(Held {
            handoff: handoff.to_owned(),
            attempt: claim["attempt"].as_u64().unwrap_or_default(),
            fence: claim["fence"].as_u64().unwrap_or_default(),
            proof: json!({ "claim_id": claim["claim_id"], "fence": claim["fence"] }),
            envelope: claim["envelope"].clone(),
        })
    }

    /// Does something with a claim: `start`, `heartbeat`, `complete`, `fail`.
    pub(super) async fn act(&self, held: &Held, verb: &str, more: &Value) -> anyhow::Result<Value> {
        let path = format!("/v1/handoffs/{}/{verb}", held.handoff);
        self.post(&path, &merged(more.clone(), &held.proof)).await
    }

    /// Tries something that must be refused. Returns the code, or that it went through.
    pub(super) async fn is_refused(
        &self,
        held: &Held,
        verb: &str,
        more: &Value,
    ) -> anyhow::Result<String> {
        match self.act(held, verb, more).await {
            Ok(_) => Ok("it was not refused".to_owned()),
            Err(error) => match error.downcast::<Failure>() {
                Ok(failure) => Ok(failure.code().to_owned()),
                Err(error) => Err(error),
            },
        }
    }

    /// Works on a claim with a heartbeat so often, until it is killed.
    pub(super) fn keep_alive(&self, held: &Held, every: Duration) -> JoinHandle<()> {
        let (agent, held) = (self.clone(), held.clone());
        // Not watched: an agent of the demo, whose end the demo notices.
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                if agent.act(&held, "heartbeat", &json!({})).await.is_err() {
                    return;
                }
            }
        })
    }
}

/// The texts and weights of everything that binds, as an envelope has them.
pub(super) fn constraints_of(envelope: &Value) -> Vec<(String, bool)> {
    let none = Vec::new();
    let list = envelope["constraints"].as_array().unwrap_or(&none);
    let known = list.iter().map(|one| {
        let text = one["text"].as_str().unwrap_or_default().to_owned();
        (text, one["hard"].as_bool().unwrap_or_default())
    });
    known.collect()
}
