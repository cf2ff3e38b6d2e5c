// SPDX-License-Identifier: Apache-2.0
//! One call of a tool: who asks, what it may do at the broker, how it tells that it still waits, and
//! what has to be given back if nobody is there any more to take it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Map, Value, json};
use tasuki_engine::Ambient;
use tasuki_engine::operations::{Operation, claims};
use tasuki_protocol::{Code, Problem};

use crate::broker::{self, Broker};
use crate::handle::Handle;
use crate::holding::Holding;

/// What a tool is called with.
pub(crate) type Arguments = Map<String, Value>;

/// How long one call waits at most; a longer wait is another call, or a task of the client's.
pub(crate) const WAIT_MS_MAX: u64 = 60_000;
/// How often somebody who wants to know is told that the wait goes on.
const TELL_EVERY_MS: u64 = 5_000;

/// What of a request's metadata belongs to traces (W3C Trace Context and Baggage).
const TRACING: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// A claim that is being asked for: of one handoff, or of the next work there is.
pub(crate) struct AskedFor {
    pub(crate) one: Option<String>,
    pub(crate) asked: Arguments,
}

pub(crate) struct Call {
    pub(crate) broker: Arc<dyn Broker>,
    holding: Arc<Holding>,
    trace: Map<String, Value>,
    progress: Option<(Peer<RoleServer>, ProgressToken)>,
    told: AtomicU32,
    /// A claim that was asked for, and whose answer nobody has heard of yet.
    asked_for: Mutex<Option<AskedFor>>,
}

impl Call {
    pub(crate) fn of(
        broker: Arc<dyn Broker>,
        holding: Arc<Holding>,
        request: &RequestContext<RoleServer>,
    ) -> Self {
        let token = request.meta.get_progress_token();
        let trace = TRACING.iter().filter_map(|name| {
            let value = request.meta.0.0.get(*name)?.as_str()?;
            Some(((*name).to_owned(), json!(value)))
        });
        Self {
            trace: trace.collect(),
            progress: token.map(|token| (request.peer.clone(), token)),
            ..Self::quiet(broker, holding)
        }
    }

    /// A call that nobody is told about.
    pub(crate) fn quiet(broker: Arc<dyn Broker>, holding: Arc<Holding>) -> Self {
        Self {
            broker,
            holding,
            trace: Map::new(),
            progress: None,
            told: AtomicU32::new(0),
            asked_for: Mutex::new(None),
        }
    }

    /// The agent that calls.
    pub(crate) fn agent(&self) -> Result<String, Problem> {
        self.broker.agent().ok_or_else(|| {
            Problem::new(
                Code::InvalidRequest,
                "nobody knows which agent calls",
                "name it in the server's address, as in http://127.0.0.1:8788/mcp?agent=coder, or \
                 use a token of the agent's",
            )
            .detail("field", "agent")
        })
    }

    /// Carries out an operation.
    pub(crate) async fn ask<O: Operation>(
        &self,
        on: &[String],
        asked: Arguments,
    ) -> Result<Value, Problem> {
        let asked = Value::Object(asked);
        let member = |name: &str| Some(self.trace.get(name)?.as_str()?.to_owned());
        let asking = broker::ask::<O>(&*self.broker, on, &asked);
        read(&Ambient::around(Ambient::read(member), asking).await?)
    }

    /// Puts where a trace comes from into what a hop says of itself, unless it says so already.
    pub(crate) fn traced(&self, hop: &mut Arguments) {
        if self.trace.is_empty() {
            return;
        }
        let metadata = hop.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            for (name, value) in &self.trace {
                metadata.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }

    /// Extends the lease of whoever calls with a handle. The answer has what it should hear of.
    pub(crate) async fn beat(
        &self,
        handle: &Handle,
        acknowledge: Option<Value>,
    ) -> Result<Value, Problem> {
        let mut asked = handle.proof();
        asked.extend(acknowledge.map(|number| ("acknowledge".to_owned(), number)));
        let beat = self.ask::<claims::Heartbeat>(&handle.on(), asked).await;
        self.ends_if_stale(handle, beat)
    }

    /// The same for tools that take a handle besides.
    pub(crate) async fn beat_if_held(
        &self,
        arguments: &mut Arguments,
    ) -> Result<Option<Handle>, Problem> {
        if !arguments.contains_key("claim") {
            return Ok(None);
        }
        let handle = Handle::taken(arguments)?;
        self.beat(&handle, None).await?;
        Ok(Some(handle))
    }

    /// Carries out an operation of a claim's holder.
    pub(crate) async fn ask_held<O: Operation>(
        &self,
        handle: &Handle,
        mut asked: Arguments,
    ) -> Result<Value, Problem> {
        asked.extend(handle.proof());
        let done = self.ask::<O>(&handle.on(), asked).await;
        self.ends_if_stale(handle, done)
    }

    /// Remembers that a claim is held, until it ends.
    pub(crate) fn holds(&self, handle: Handle) {
        self.holding.begin(handle);
    }

    pub(crate) fn ended(&self, handle: &Handle) {
        self.holding.end(handle);
    }

    fn ends_if_stale(
        &self,
        handle: &Handle,
        done: Result<Value, Problem>,
    ) -> Result<Value, Problem> {
        done.map_err(|problem| {
            if problem.known() == Some(Code::StaleClaim) {
                self.holding.end(handle);
                let hint = "this claim is over: stop the work, use nothing of it, and call `claim` for \
                            other work";
                return Problem { hint: hint.into(), ..problem };
            }
            problem
        })
    }

    /// Asks again and again, each time with how long the broker may wait, until the answer is enough or
    /// the time is up. Whoever gave a token for it is told that it still waits.
    pub(crate) async fn until<O: Operation>(
        &self,
        on: &[String],
        mut asked: Arguments,
        wait_ms: u64,
        is_enough: impl Fn(&Value) -> bool + Send + Sync,
    ) -> Result<Value, Problem> {
        let wait_ms = wait_ms.min(WAIT_MS_MAX);
        let mut left = wait_ms;
        let slice = if self.progress.is_some() { TELL_EVERY_MS } else { WAIT_MS_MAX };
        loop {
            let now = left.min(slice);
            asked.insert("wait_ms".into(), json!(now));
            let answer = self.ask::<O>(on, asked.clone()).await?;
            left -= now;
            if left == 0 || is_enough(&answer) {
                return Ok(answer);
            }
            self.tell(&format!("still waiting after {} seconds", (wait_ms - left) / 1000)).await;
        }
    }

    async fn tell(&self, says: &str) {
        let Some((peer, token)) = &self.progress else { return };
        let number = self.told.fetch_add(1, Ordering::Relaxed) + 1;
        let told = ProgressNotificationParam::new(token.clone(), f64::from(number));
        // Who has gone away is told by the end of the request, not by this.
        let _ = peer.notify_progress(told.with_message(says)).await;
    }

    /// Remembers a claim that is being asked for.
    pub(crate) fn asks_for(&self, claim: Option<AskedFor>) {
        *self.asked_for.lock().expect("no holder of this lock panics") = claim;
    }

    /// Gives back what was claimed for somebody who has gone away. The same request id gets the claim
    /// that was granted meanwhile; work that this takes for the first time goes back as well.
    pub(crate) async fn give_back(&self) {
        let asked = self.asked_for.lock().expect("no holder of this lock panics").take();
        let Some(AskedFor { one, mut asked }) = asked else { return };
        asked.insert("wait_ms".into(), json!(0));
        let granted = match one {
            Some(id) => self.ask::<claims::ClaimOne>(&[id], asked).await.map(|one| vec![one]),
            None => self.ask::<claims::Claim>(&[], asked).await.map(|mut granted| {
                granted["claims"].as_array_mut().map(std::mem::take).unwrap_or_default()
            }),
        };
        // What is refused was not claimed.
        for claimed in granted.unwrap_or_default() {
            if let Ok(handle) = handle_of(&claimed)
                && let Err(problem) = self.ask_held::<claims::Release>(&handle, Map::new()).await
            {
                tracing::warn!(code = problem.code, "a claim that nobody took was not given back");
            }
        }
    }
}

/// The handle of what was claimed.
pub(crate) fn handle_of(claimed: &Value) -> Result<Handle, Problem> {
    let part = |name: &str| {
        serde_json::from_value(claimed[name].clone())
            .map_err(|_| Problem::invalid(name, "the broker's answer lacks it"))
    };
    let claim = serde_json::from_value(claimed["claim_id"].clone());
    let fence = serde_json::from_value(claimed["fence"].clone());
    let wrong = |_| Problem::invalid("claim_id", "the broker's answer lacks it");
    Ok(Handle {
        handoff: part("handoff_id")?,
        claim: claim.map_err(wrong)?,
        fence: fence.map_err(wrong)?,
    })
}

/// An answer of the broker.
pub(crate) fn read(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|error| {
        Problem::new(
            Code::Internal,
            format!("the broker's answer cannot be read: {error}"),
            "report it; whether it was done can be seen with `status`",
        )
    })
}
