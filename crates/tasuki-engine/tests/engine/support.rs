// SPDX-License-Identifier: Apache-2.0
//! A stage to play stories on: an engine on some store, a clock that only moves when told, ids
//! that count, and short words for the usual requests.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tasuki_core::canonical::Object;
use tasuki_core::commands::Proof;
use tasuki_core::envelope::{Action, Control, Payload, Target};
use tasuki_core::event::{FailureClass, Key};
use tasuki_core::{AgentId, Body, Handoff, HandoffId, Timestamp};
use tasuki_engine::{
    ClaimOneRequest, CompleteRequest, Engine, Error, FailRequest, FollowUp, Granted, IdSource,
    NewOffer, Settings,
};
use tasuki_protocol::Claim;
use tasuki_store::{ManualClock, Sqlite, SqliteOptions, Store, Sync, Volatile};

pub(crate) const SECOND: u64 = 1000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const BEGIN: Timestamp = Timestamp(1_800_000_000_000);
pub(crate) const INTENT: &str = "Add GET /users/{id}.\n  Do not touch auth.";

/// A safety net only: no story waits for time to pass.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what).await.expect("it does not take that long")
}

/// Ids that count, and "random" ones that follow from a seed.
pub(crate) struct Ids {
    count: AtomicU64,
    random: AtomicU64,
}

impl Ids {
    pub(crate) fn seeded(seed: u64) -> Arc<Self> {
        Arc::new(Self { count: AtomicU64::new(0), random: AtomicU64::new(seed) })
    }
}

impl IdSource for Ids {
    fn next(&self) -> u128 {
        u128::from(self.count.fetch_add(1, Ordering::Relaxed)) + 1
    }

    fn random(&self) -> u128 {
        let draw = || split_mix(self.random.fetch_add(GAMMA, Ordering::Relaxed));
        u128::from(draw()) << 64 | u128::from(draw())
    }
}

pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64.
pub(crate) fn split_mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
}

impl Stage {
    pub(crate) fn volatile() -> Self {
        let clock = ManualClock::at(BEGIN);
        Self::on(Arc::new(Volatile::new(clock.clone())), clock, Ids::seeded(1))
    }

    pub(crate) async fn sqlite(dir: &Path, clock: Arc<ManualClock>, ids: Arc<Ids>) -> Self {
        let options = SqliteOptions { dir: dir.to_owned(), sync: Sync::Full };
        let store = Sqlite::open(options, clock.clone()).await.unwrap();
        Self::on(Arc::new(store), clock, ids)
    }

    pub(crate) fn on(store: Arc<dyn Store>, clock: Arc<ManualClock>, ids: Arc<Ids>) -> Self {
        let engine = Engine::start(store.clone(), ids, Settings::default());
        Self { engine, store, clock }
    }

    pub(crate) async fn offer(&self, to: Target) -> HandoffId {
        self.engine.offer(new_offer(to)).await.unwrap().handoff.id
    }

    pub(crate) async fn claim_one(&self, handoff: HandoffId, name: &str) -> Granted {
        let wish = ClaimOneRequest {
            majors: Vec::new(),
            handoff,
            agent: agent(name),
            capabilities: vec!["review".parse().unwrap()],
            lease_ms: None,
            request_id: None,
            wait_ms: 0,
        };
        self.engine.claim_one(wish).await.unwrap()
    }

    /// A claim that waits for a minute, on a worker of its own.
    pub(crate) fn long_poll(
        &self,
        name: &str,
        capabilities: &[&str],
    ) -> tokio::task::JoinHandle<Vec<Granted>> {
        let engine = self.engine.clone();
        let wish = wish(name, capabilities, MINUTE);
        tokio::spawn(async move { engine.claim(wish).await.unwrap() })
    }

    /// Returns when so many commands were carried out: a long poll listens once it has made two.
    pub(crate) async fn commands(&self, count: u64) {
        soon(async {
            while self.store.stats().commands < count {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    pub(crate) async fn complete(
        &self,
        granted: &Granted,
        follow_ups: Vec<FollowUp>,
    ) -> Result<Arc<Handoff>, Error> {
        let request = completion(granted.handoff.id, proof(granted), follow_ups);
        self.engine.complete(vec![request]).await?.pop().unwrap()
    }

    pub(crate) async fn state(&self, id: HandoffId) -> &'static str {
        self.engine.handoff(id).await.unwrap().state.name().as_str()
    }

    /// Returns when a handoff has come to a state by itself.
    pub(crate) async fn becomes(&self, id: HandoffId, state: &str) {
        soon(async {
            let mut after = tasuki_core::Position(0);
            while self.state(id).await != state {
                assert!(self.engine.more_events(after).await);
                after = self.engine.head();
            }
        })
        .await;
    }

    /// What happened to a handoff, in order.
    pub(crate) async fn story(&self, id: HandoffId) -> Vec<&'static str> {
        let log = self.store.events(tasuki_core::Position(0), usize::MAX).await.unwrap();
        let records = log.iter().map(|entry| &entry.sealed.record);
        records.filter(|r| r.handoff_id == Some(id)).map(|r| r.event.kind()).collect()
    }
}

pub(crate) fn agent(name: &str) -> AgentId {
    name.parse().unwrap()
}

/// One agent and no other.
pub(crate) fn to(name: &str) -> Target {
    Target::Agent(agent(name))
}

/// Any agent that can do this.
pub(crate) fn to_any(capability: &str) -> Target {
    Target::Capability(capability.parse().unwrap())
}

pub(crate) fn payload(value: Value) -> Payload {
    let Value::Object(members) = value else { panic!("a payload is an object") };
    members.try_into().unwrap()
}

pub(crate) fn hop(to: Target, control: Control) -> FollowUp {
    let payload = payload(json!({ "type": "code", "files": ["a.rs"] }));
    FollowUp { control, ..FollowUp::new(to, payload) }
}

/// The planner's offer of a new task.
pub(crate) fn new_offer(to: Target) -> NewOffer {
    NewOffer {
        from: agent("planner"),
        task_id: None,
        intent: Some(INTENT.into()),
        correlation_id: None,
        coordinator: None,
        project: None,
        hop: hop(to, Control::Passed),
        key: None,
    }
}

/// An offer that stands for itself under a key.
pub(crate) fn keyed(offer: NewOffer, key: &str) -> NewOffer {
    let request = Body::of(&offer).hash;
    NewOffer { key: Some(Key { key: key.parse().unwrap(), request }), ..offer }
}

pub(crate) fn wish(name: &str, capabilities: &[&str], wait_ms: u64) -> Claim {
    Claim {
        majors: Vec::new(),
        agent: agent(name),
        capabilities: capabilities.iter().map(|name| name.parse().unwrap()).collect(),
        max: 1,
        wait_ms,
        lease_ms: None,
        request_id: None,
    }
}

pub(crate) fn proof(granted: &Granted) -> Proof {
    let claim = granted.handoff.state.claim().unwrap();
    Proof { claim_id: claim.claim_id, fence: claim.fence }
}

pub(crate) fn completion(
    handoff: HandoffId,
    proof: Proof,
    follow_ups: Vec<FollowUp>,
) -> CompleteRequest {
    CompleteRequest {
        criteria: Vec::new(),
        gaps: Vec::new(),
        resolved_gaps: Vec::new(),
        handoff,
        proof,
        by: None,
        signed: None,
        action: Action::Completed,
        payload: payload(json!({ "type": "patch" })),
        metadata: Object::default(),
        follow_ups,
        usage: None,
    }
}

pub(crate) fn failure(
    handoff: HandoffId,
    proof: Proof,
    retry_after_ms: Option<u64>,
) -> FailRequest {
    FailRequest {
        handoff,
        proof,
        by: None,
        signed: None,
        class: FailureClass::Retryable,
        kind: "rate_limited".into(),
        message: "try later".into(),
        attempted: None,
        attempts: None,
        causes: Vec::new(),
        hint: None,
        retry_after_ms,
        details: Object::default(),
        usage: None,
    }
}

pub(crate) fn json_of(body: &Body) -> Value {
    serde_json::from_str(body.text()).unwrap()
}

/// The code of a refusal.
#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    match result {
        Err(Error::Refused(refusal) | Error::Ended { refusal, .. }) => refusal.code(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}
