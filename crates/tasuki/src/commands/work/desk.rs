// SPDX-License-Identifier: Apache-2.0
//! What is said to the broker about one claim, again and again while the broker is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use tasuki_core::budget::Used;
use tasuki_core::canonical::Object;
use tasuki_core::envelope::{Action, Envelope, ExpectedOutput};
use tasuki_core::event::FailureClass;
use tasuki_core::{ClaimId, Fence, HandoffId};
use tasuki_protocol as wire;

use super::outcome::Failed;
use crate::client::Client;
use crate::exit::{Exit, Failure};

/// The first pause before a request is repeated, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// A claim and the way to its broker.
pub(super) struct Desk {
    pub(super) client: Arc<Client>,
    pub(super) handoff: HandoffId,
    pub(super) claim_id: ClaimId,
    pub(super) fence: Fence,
    /// How lines about it begin.
    pub(super) name: String,
}

/// Waits longer from try to try.
pub(super) struct Patience {
    pause: Duration,
    until: Instant,
}

impl Patience {
    pub(super) fn until(until: Instant) -> Self {
        Self { pause: PAUSE_MIN, until }
    }

    /// Waits before the next try. Whether there is time for one.
    pub(super) async fn wait(&mut self) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        tokio::time::sleep(self.pause.min(left)).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

/// An error as a failure that says whether to try again.
pub(super) fn failed(error: anyhow::Error) -> Failure {
    error
        .downcast::<Failure>()
        .unwrap_or_else(|error| Failure::new(Exit::Refused, format!("{error:#}"), ""))
}

impl Desk {
    async fn post<T: Serialize>(&self, verb: &str, body: &T) -> Result<String, Failure> {
        let path = format!("/v1/handoffs/{}/{verb}", self.handoff);
        self.client.post(&path, body).await.map_err(failed)
    }

    /// Posts until the broker has an answer, or the time is up. All of it is safe to repeat: by claim
    /// and content.
    async fn insist<T: Serialize>(
        &self,
        verb: &str,
        body: &T,
        until: Instant,
    ) -> Result<String, Failure> {
        let mut patience = Patience::until(until);
        loop {
            match self.post(verb, body).await {
                Err(failure) if failure.is_retryable() && patience.wait().await => {}
                answer => return answer,
            }
        }
    }

    pub(super) async fn heartbeat(&self) -> Result<wire::Beat, Failure> {
        let Self { claim_id, fence, .. } = *self;
        let body = wire::Heartbeat { claim_id, fence, acknowledge: None };
        let answer = self.post("heartbeat", &body).await?;
        serde_json::from_str(&answer).map_err(|error| failed(error.into()))
    }

    /// Says that work has begun, and repeats what binds whoever does it.
    pub(super) async fn start(&self, envelope: &str, until: Instant) -> Result<(), Failure> {
        // An envelope of a later version repeats nothing; where that is asked for, the broker says so.
        let read_back = serde_json::from_str::<Envelope>(envelope).ok().map(|envelope| {
            let parts = envelope.parts;
            wire::ReadBack {
                constraints: parts.constraints.iter().map(|constraint| constraint.id).collect(),
                expected_output: parts.expected_output.as_ref().map(ExpectedOutput::hash),
            }
        });
        let Self { claim_id, fence, .. } = *self;
        let body = wire::Start { claim_id, fence, signed: None, read_back };
        self.insist("start", &body, until).await.map(drop)
    }

    /// What a model reads of it.
    pub(super) async fn prompt(&self, until: Instant) -> Result<String, Failure> {
        let path = format!("/v1/handoffs/{}/prompt", self.handoff);
        let mut patience = Patience::until(until);
        loop {
            match self.client.get(&path, &[]).await.map_err(failed) {
                Err(failure) if failure.is_retryable() && patience.wait().await => {}
                Err(failure) => return Err(failure),
                Ok(text) => {
                    let read: wire::Prompt =
                        serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
                    return Ok(read.prompt);
                }
            }
        }
    }

    pub(super) async fn complete(
        &self,
        payload: &Value,
        usage: Option<&Used>,
        until: Instant,
    ) -> Result<(), Failure> {
        let payload = serde_json::from_value(payload.clone()).map_err(|error| {
            Failure::usage(format!("the result is none: {error}"), "write an object with a `type`")
        })?;
        let body = wire::Complete {
            claim_id: self.claim_id,
            fence: self.fence,
            action: Action::Completed,
            payload,
            metadata: Object::default(),
            criteria: Vec::new(),
            gaps: Vec::new(),
            resolved_gaps: Vec::new(),
            usage: usage.cloned(),
            follow_ups: Vec::new(),
            signed: None,
        };
        self.insist("complete", &body, until).await.map(drop)
    }

    pub(super) async fn fail(
        &self,
        failed: &Failed,
        usage: Option<&Used>,
        until: Instant,
    ) -> Result<(), Failure> {
        let mut details = serde_json::Map::new();
        if let Some(code) = failed.exit_code {
            details.insert("exit_code".into(), json!(code));
        }
        if !failed.stderr.trim().is_empty() {
            details.insert("stderr".into(), json!(failed.stderr.trim_end()));
        }
        let hint = "look at what the command wrote: `details.stderr` has the end of it";
        let mut body = wire::Fail {
            claim_id: self.claim_id,
            fence: self.fence,
            class: failed.class,
            kind: failed.kind.clone(),
            message: failed.message.clone(),
            attempted: None,
            attempts: None,
            causes: Vec::new(),
            hint: (failed.class == FailureClass::Permanent).then(|| hint.into()),
            retry_after_ms: None,
            details: Object(details),
            usage: usage.cloned(),
            signed: None,
        };
        let refused = match self.insist("fail", &body, until).await {
            Err(failure) if !failure.is_retryable() && !super::heart::is_over(&failure) => failure,
            ended => return ended.map(drop),
        };
        // What the command wrote is not fit to be stored, as a secret would be. That it failed is.
        body.message = format!(
            "the command failed ({}); the broker did not take what it wrote: {}",
            failed.kind,
            refused.code()
        );
        body.details.0.remove("stderr");
        body.hint = body.hint.map(|_| "look at what the worker printed".into());
        self.insist("fail", &body, until).await.map(drop)
    }

    pub(super) async fn release(&self, until: Instant) -> Result<(), Failure> {
        let Self { claim_id, fence, .. } = *self;
        self.insist("release", &wire::Held { claim_id, fence }, until).await.map(drop)
    }

    /// How the attempt of this claim has ended, where it has.
    pub(super) async fn ended(&self) -> Option<String> {
        let text = self.client.get(&format!("/v1/handoffs/{}", self.handoff), &[]).await.ok()?;
        let handoff: wire::Handoff = serde_json::from_str(&text).ok()?;
        handoff.attempts.iter().find(|one| one.fence == self.fence)?.ended.clone()
    }
}
