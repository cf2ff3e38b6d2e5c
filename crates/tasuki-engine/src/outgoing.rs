// SPDX-License-Identifier: Apache-2.0
//! Work for agents that do not ask for it: the broker claims it for them and has it carried to the
//! URL in their manifest. Claiming goes the same way as for everybody else, so of several brokers on
//! one store one delivers; and the claim with its end is the record of the attempt, so that retries,
//! their pauses and dead letters follow from it as they do for everybody else. Nothing is kept here
//! that a restart would lose. What goes over the wire is the [`Courier`]'s business.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use tasuki_core::event::FailureClass;
use tasuki_core::handoff::StateName;
use tasuki_core::ids::RequestId;
use tasuki_core::manifest::Delivery;
use tasuki_core::registry::rules::Permission;
use tasuki_core::registry::{Agent, Standing};
use tasuki_core::{AgentId, Capability, ClaimId, Handoff, Refusal, Timestamp};
use tasuki_protocol::{Ask, Attach, Claim, Complete, Fail, Heartbeat};
use tasuki_store::Until;
use tokio::sync::{Notify, Semaphore};

use crate::caller::{Caller, Known, ShownBy};
use crate::desk::Desk;
use crate::directory::Listed;
use crate::engine::Engine;
use crate::error::{Error, denied};
use crate::folds::each_in;
use crate::folds::waiters::Topic;
use crate::requests::{FailRequest, Granted, Holder, Proof};

/// How many deliveries may be under way at once, to all agents together.
const UNDER_WAY_MAX: usize = 256;
/// How long an agent may take to answer, unless its lease is shorter.
const ANSWER_MS_MAX: u64 = 25_000;
/// The part of a lease that is left for what follows from an answer, or from none.
const LEASE_KEPT: u64 = 6;
/// How often a lease is extended before it would be over.
const BEATS_PER_LEASE: u64 = 3;
/// How long a worker waits for work before it looks around.
const LOOK_MS: u64 = 60_000;
/// How long it rests after the store refused it.
const REST_MS: u64 = 1_000;
/// The kind of failure when no answer came that says how the work went.
pub const NOT_DELIVERED: &str = "delivery_failed";

/// Carries claimed work to an agent, and its answer back.
#[async_trait]
pub trait Courier: Send + Sync + 'static {
    async fn carry(&self, parcel: Parcel) -> Answer;
}

/// Has work done by an agent that speaks a protocol of its own, however long that takes. The broker holds
/// the claim meanwhile.
#[async_trait]
pub trait Envoy: Send + Sync + 'static {
    /// Follows the work to its end or to a question. It is dropped when the claim is over, and begun
    /// again after a restart.
    async fn follow(&self, errand: &Errand) -> Answer;
    /// The claim is over: the agent need not go on.
    async fn call_off(&self, errand: &Errand);
}

/// Work that an envoy follows.
pub struct Errand {
    pub url: String,
    pub agent: AgentId,
    pub granted: Granted,
    pub proof: Proof,
    /// Whether something may have been sent for it before.
    pub again: bool,
    desk: Desk,
}

/// What an envoy remembers over a restart is attached to the handoff under this name.
const REMEMBERED: &str = "a2a-task";
/// And is of this kind, which is nothing for the sender.
pub const REMEMBERED_KIND: &str = "application/vnd.tasuki.a2a-task+json";

impl Errand {
    /// What was remembered of this handoff last.
    pub async fn remembered(&self) -> Result<Option<Value>, Error> {
        let name = REMEMBERED.parse().expect("the name keeps to its alphabet");
        match self.desk.artifacts(self.granted.handoff.id, Some(&name)).await {
            Ok(found) => Ok(found.artifacts.into_iter().next_back().and_then(|it| it.content)),
            Err(Error::Refused(Refusal::ArtifactNotFound { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn remember(&self, content: Value) -> Result<(), Error> {
        let attach = Attach {
            claim_id: self.proof.claim_id,
            fence: self.proof.fence,
            name: REMEMBERED.parse().expect("the name keeps to its alphabet"),
            kind: REMEMBERED_KIND.into(),
            content,
        };
        self.desk.attach(self.granted.handoff.id, attach).await.map(drop)
    }

    /// Passes on what the agent says of its work.
    pub async fn note(&self, text: String) -> Result<(), Error> {
        let id = self.granted.handoff.id;
        self.desk.progress(id, self.proof, None, Some(text)).await.map(drop)
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.desk.now()
    }

    /// Sleeps by the store's clock.
    pub async fn sleep(&self, ms: u64) {
        let clock = self.desk.engine.store.clock();
        clock.sleep_until(clock.now().plus_ms(ms)).await;
    }
}

/// Claimed work on its way.
#[derive(Debug, Clone)]
pub struct Parcel {
    pub url: String,
    pub granted: Granted,
    pub proof: Proof,
    /// The time by the store's clock, for the broker's signature.
    pub now: Timestamp,
    /// A text that was never used before, for the same.
    pub nonce: String,
}

/// What an agent said.
#[derive(Debug)]
pub enum Answer {
    /// It took the work and will report by itself.
    Accepted,
    Completed(Box<Complete>),
    Failed(Box<Fail>),
    Declined {
        reason: Option<String>,
    },
    /// It cannot go on before somebody has answered.
    Asked(Box<Ask>),
    /// There was no answer, or none that says how the work went.
    Unclear {
        problem: String,
        retry_after_ms: Option<u64>,
    },
}

/// The deliveries to one agent.
#[derive(Default)]
struct Lane {
    posting: AtomicUsize,
    done: Notify,
    /// The version of the manifest by which a worker serves it now; 0 without one.
    served: AtomicU32,
    /// The claims that an envoy follows.
    followed: Mutex<BTreeSet<ClaimId>>,
}

/// One delivery under way; its end makes room for another.
struct Posting(Arc<Lane>);

impl Drop for Posting {
    fn drop(&mut self) {
        self.0.posting.fetch_sub(1, Ordering::AcqRel);
        self.0.done.notify_waiters();
    }
}

impl Engine {
    /// Begins to deliver, and goes on until the broker goes away.
    pub fn start_deliveries(self: &Arc<Self>, courier: Arc<dyn Courier>) {
        self.start_deliveries_with(courier, None);
    }

    /// The same, also to agents that speak a protocol of their own.
    pub fn start_deliveries_with(
        self: &Arc<Self>,
        courier: Arc<dyn Courier>,
        envoy: Option<Arc<dyn Envoy>>,
    ) {
        let office = Office {
            engine: self.clone(),
            courier,
            envoy,
            places: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
            ended: Arc::default(),
        };
        self.start_worker("deliveries", office.run());
    }
}

#[derive(Clone)]
struct Office {
    engine: Arc<Engine>,
    courier: Arc<dyn Courier>,
    envoy: Option<Arc<dyn Envoy>>,
    places: Arc<Semaphore>,
    /// A worker ended.
    ended: Arc<Notify>,
}

impl Office {
    /// Has one worker for each manifest that names a URL. A worker ends by itself when its manifest
    /// is no longer the agent's.
    async fn run(self) {
        let mut known = self.engine.store.registry();
        let mut closing = self.engine.closing.subscribe();
        let mut lanes: HashMap<AgentId, Arc<Lane>> = HashMap::new();
        loop {
            known.mark_unchanged();
            match self.engine.listing().await {
                Ok(listing) => {
                    let registry = self.engine.registry();
                    for (id, listed) in &listing.agents {
                        let agent = registry.agents.get(id).unwrap_or(&listed.agent);
                        let Some(work) = Work::of(listed, agent) else { continue };
                        if work.by_envoy && self.envoy.is_none() {
                            continue;
                        }
                        let lane = lanes.entry(id.clone()).or_default();
                        if lane.served.swap(work.version, Ordering::AcqRel) != work.version {
                            let serving = self.clone().serve(work, lane.clone());
                            let workers = self.engine.store.workers();
                            workers.spawn("deliveries to an agent", Until::Done, serving);
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "who gets deliveries could not be read"),
            }
            tokio::select! {
                _ = closing.wait_for(|closing| *closing) => return,
                () = self.ended.notified() => {}
                changed = known.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Delivers until the manifest is no longer the agent's. If it is again by then, whoever starts
    /// workers hears of it.
    async fn serve(self, work: Work, lane: Arc<Lane>) {
        self.deliver_all(&work, &lane).await;
        let served = &lane.served;
        let gone = served.compare_exchange(work.version, 0, Ordering::AcqRel, Ordering::Acquire);
        if gone.is_ok() {
            self.ended.notify_one();
        }
    }

    async fn deliver_all(&self, work: &Work, lane: &Arc<Lane>) {
        let engine = &self.engine;
        if work.by_envoy {
            self.take_up(work, lane).await;
        }
        while !*engine.closing.borrow() && work.is_current(engine) {
            self.wait_for_room(work, lane).await;
            if *engine.closing.borrow() || !work.is_current(engine) {
                return;
            }
            let request = work.by_envoy.then(|| self.request_id());
            let granted = match work.claim(engine, request, LOOK_MS).await {
                Ok(granted) => granted,
                // Its rules or its manifest changed, or it may not claim.
                Err(Error::Denied(_) | Error::Unauthenticated { .. }) => {
                    self.rest().await;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(agent = %work.agent, %error, "nothing could be claimed");
                    self.rest().await;
                    continue;
                }
            };
            let Some(granted) = granted.into_iter().next() else { continue };
            self.begin(work, lane, granted, false);
        }
    }

    fn begin(&self, work: &Work, lane: &Arc<Lane>, granted: Granted, again: bool) {
        lane.posting.fetch_add(1, Ordering::AcqRel);
        let posting = Posting(lane.clone());
        let (office, work, lane) = (self.clone(), work.clone(), lane.clone());
        // Not watched: a panic here costs this delivery its lease, as it would any other worker.
        tokio::spawn(async move {
            match office.envoy.clone().filter(|_| work.by_envoy) {
                Some(envoy) => office.accompany(&*envoy, &work, &lane, granted, again).await,
                None => office.deliver(&work, granted).await,
            }
            drop(posting);
        });
    }

    /// What claims of this broker's envoys begin with, so that it knows them after a restart.
    fn mark(&self) -> String {
        let key = self.engine.settings.key.map(|key| key.id().to_string());
        format!("envoy:{}:", key.unwrap_or_default())
    }

    fn request_id(&self) -> RequestId {
        let text = format!("{}{:032x}", self.mark(), self.engine.ids.random());
        text.parse().expect("it keeps to its alphabet")
    }

    /// Goes on with what this broker claimed for an agent before it was restarted.
    async fn take_up(&self, work: &Work, lane: &Arc<Lane>) {
        let mark = self.mark();
        let mut found: Vec<RequestId> = Vec::new();
        for state in [StateName::Claimed, StateName::InProgress] {
            let looked = each_in(&*self.engine.store, state, |handoff| {
                let claim = handoff.state.claim().filter(|claim| claim.agent == work.agent);
                let request = claim.and_then(|claim| claim.request_id.clone());
                found.extend(request.filter(|request| request.as_str().starts_with(&mark)));
            });
            if let Err(error) = looked.await {
                tracing::warn!(agent = %work.agent, %error, "what was under way is not known");
            }
        }
        for request in found {
            match work.claim(&self.engine, Some(request), 0).await {
                Ok(granted) => {
                    for granted in granted {
                        self.begin(work, lane, granted, true);
                    }
                }
                Err(error) => tracing::warn!(agent = %work.agent, %error, "a claim is left alone"),
            }
        }
    }

    /// Holds the claim as long as an envoy follows the work.
    async fn accompany(
        &self,
        envoy: &dyn Envoy,
        work: &Work,
        lane: &Lane,
        granted: Granted,
        again: bool,
    ) {
        let engine = &self.engine;
        let handoff = granted.handoff.clone();
        let Some(claim) = handoff.state.claim() else { return };
        let followed = || lane.followed.lock().expect("no holder of this lock panics");
        if !followed().insert(claim.claim_id) {
            return;
        }
        let proof = Proof { claim_id: claim.claim_id, fence: claim.fence };
        let Ok(desk) = work.desk(engine) else { return };
        let again = again || handoff.claims > 1 || !granted.brought.questions.is_empty();
        let (url, agent) = (work.url.clone(), work.agent.clone());
        let errand = Errand { url, agent, granted, proof, again, desk };
        let mut closing = engine.closing.subscribe();
        let answer = tokio::select! {
            biased;
            // It goes on with the claim when it is there again.
            _ = closing.wait_for(|closing| *closing) => return,
            answer = envoy.follow(&errand) => Some(answer),
            () = self.hold(work, &handoff, proof, claim.lease_ms) => None,
        };
        match answer {
            Some(answer) => {
                if let Err(error) = work.settle(engine, &handoff, proof, answer).await {
                    tracing::warn!(handoff = %handoff.id, agent = %work.agent, %error,
                        "an answer could not be taken");
                }
            }
            None => {
                let late = engine.store.clock().now().plus_ms(ANSWER_MS_MAX);
                tokio::select! {
                    () = envoy.call_off(&errand) => {}
                    () = engine.store.clock().sleep_until(late) => {}
                }
            }
        }
        followed().remove(&proof.claim_id);
    }

    /// Extends a lease until the claim is over.
    async fn hold(&self, work: &Work, handoff: &Handoff, proof: Proof, lease_ms: u64) {
        let engine = &self.engine;
        let seat = engine.waiters.take_seat(Topic::Handoff(handoff.id));
        let clock = engine.store.clock();
        let mut beat_at = clock.now();
        loop {
            let news = seat.notify.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if let Ok(Some(now)) = engine.store.handoff(handoff.id).await
                && now.state.claim().is_none_or(|claim| claim.claim_id != proof.claim_id)
            {
                return;
            }
            if clock.now() >= beat_at {
                let beat =
                    Heartbeat { claim_id: proof.claim_id, fence: proof.fence, acknowledge: None };
                let beaten = match work.desk(engine) {
                    Ok(desk) => desk.heartbeat(handoff.id, beat).await.map(drop),
                    Err(error) => Err(error),
                };
                match beaten {
                    Ok(()) | Err(Error::Store(_)) => {}
                    Err(_) => return,
                }
                beat_at = clock.now().plus_ms((lease_ms / BEATS_PER_LEASE).max(1));
            }
            tokio::select! {
                () = news => {}
                () = clock.sleep_until(beat_at) => {}
            }
        }
    }

    /// Waits until the agent may get one more. What it accepted and has not finished counts.
    async fn wait_for_room(&self, work: &Work, lane: &Lane) {
        let engine = &self.engine;
        let mut head = engine.head.clone();
        let mut closing = engine.closing.subscribe();
        let mut known = engine.store.registry();
        loop {
            let done = lane.done.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            head.mark_unchanged();
            engine.observed().await;
            let holding = {
                let records = engine.records.lock().expect("no holder of this lock panics");
                usize::try_from(records.holding(&work.agent)).unwrap_or(usize::MAX)
            };
            let under_way = holding.max(lane.posting.load(Ordering::Acquire));
            if under_way < work.concurrency || !work.is_current(engine) {
                return;
            }
            tokio::select! {
                () = done => {}
                changed = head.changed() => if changed.is_err() { return },
                changed = known.changed() => if changed.is_err() { return },
                _ = closing.wait_for(|closing| *closing) => return,
            }
        }
    }

    async fn rest(&self) {
        let clock = self.engine.store.clock();
        let mut closing = self.engine.closing.subscribe();
        let mut known = self.engine.store.registry();
        known.mark_unchanged();
        tokio::select! {
            () = clock.sleep_until(clock.now().plus_ms(REST_MS)) => {}
            _ = known.changed() => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }

    async fn deliver(&self, work: &Work, granted: Granted) {
        let engine = &self.engine;
        let Some(claim) = granted.handoff.state.claim() else { return };
        let proof = Proof { claim_id: claim.claim_id, fence: claim.fence };
        let handoff = granted.handoff.clone();
        let now = engine.now();
        let left = granted.lease_left_ms.min(granted.work_left_ms);
        let patience = ANSWER_MS_MAX.min(left - left / LEASE_KEPT);
        let nonce = format!("{:032x}", engine.ids.random());
        let url = work.url.clone();
        let parcel = Parcel { url, granted, proof, now, nonce };
        let answer = tokio::select! {
            biased;
            answer = async {
                let _place = self.places.acquire().await;
                self.courier.carry(parcel).await
            } => answer,
            () = engine.store.clock().sleep_until(now.plus_ms(patience)) => Answer::Unclear {
                problem: format!("there was no answer within {patience} ms"),
                retry_after_ms: None,
            },
        };
        if let Err(error) = work.settle(engine, &handoff, proof, answer).await {
            // The claim runs out, or is over already: the log has the rest.
            tracing::warn!(handoff = %handoff.id, agent = %work.agent, %error,
                "an answer could not be taken");
        }
    }
}

/// What is delivered to whom.
#[derive(Clone)]
struct Work {
    agent: AgentId,
    version: u32,
    url: String,
    /// Whether it speaks a protocol of its own.
    by_envoy: bool,
    capabilities: Vec<Capability>,
    concurrency: usize,
}

impl Work {
    fn of(listed: &Listed, known: &Agent) -> Option<Self> {
        let (url, by_envoy) = match &listed.manifest.delivery {
            Delivery::Pull => return None,
            Delivery::Webhook { url } => (url, false),
            Delivery::A2a { url } => (url, true),
        };
        let version = known.manifest.as_ref()?.version;
        let listed_version = listed.agent.manifest.as_ref()?.version;
        if known.standing != Standing::Active || version != listed_version {
            return None;
        }
        let agent = listed.agent.id.clone();
        let tenant = agent.tenant().parse().unwrap_or_default();
        let able = listed.manifest.capabilities.iter();
        Some(Self {
            version,
            url: url.clone(),
            by_envoy,
            capabilities: able.map(|entry| entry.name.seen_from(&tenant)).collect(),
            // Without a word from the agent, one after the other.
            concurrency: listed.manifest.concurrency.map_or(1, |n| usize::try_from(n).unwrap_or(1)),
            agent,
        })
    }

    fn is_current(&self, engine: &Engine) -> bool {
        engine.registry().agents.get(&self.agent).is_some_and(|agent| {
            let version = agent.manifest.as_ref().map(|manifest| manifest.version);
            agent.standing == Standing::Active && version == Some(self.version)
        })
    }

    /// The desk at which the broker acts for the agent: with the agent's rules, and no more.
    fn desk(&self, engine: &Arc<Engine>) -> Result<Desk, Error> {
        if engine.settings.open {
            return Ok(engine.desk(Caller::Anyone));
        }
        let registry = engine.registry();
        let agent = registry.agents.get(&self.agent);
        let agent = agent.filter(|agent| agent.standing != Standing::Deregistered);
        let agent = agent.ok_or_else(|| denied(format!("{} is no longer known", self.agent)))?;
        let known = Known::new(agent, ShownBy::Url, None);
        Ok(engine.desk(Caller::Known(Arc::new(known))))
    }

    /// Claims one, for the agent's name and for what it can do and may claim.
    async fn claim(
        &self,
        engine: &Arc<Engine>,
        request_id: Option<RequestId>,
        wait_ms: u64,
    ) -> Result<Vec<Granted>, Error> {
        let desk = self.desk(engine)?;
        let may = |able: &&Capability| desk.caller().may(Permission::Claim, Some(able.name()));
        let wish = Claim {
            agent: self.agent.clone(),
            capabilities: self.capabilities.iter().filter(may).cloned().collect(),
            max: 1,
            wait_ms,
            lease_ms: None,
            request_id,
            majors: Vec::new(),
        };
        let current = || match self.is_current(engine) {
            true => Ok(()),
            false => Err(denied(format!("{} has another manifest by now", self.agent))),
        };
        desk.claim_if(wish, current).await
    }

    async fn settle(
        &self,
        engine: &Arc<Engine>,
        handoff: &Handoff,
        proof: Proof,
        answer: Answer,
    ) -> Result<(), Error> {
        let desk = self.desk(engine)?;
        match answer {
            Answer::Accepted => Ok(()),
            Answer::Declined { reason } => {
                desk.decline(handoff.id, &self.agent, Some(proof), reason).await.map(drop)
            }
            Answer::Asked(ask) => desk.ask(handoff.id, *ask).await.map(drop),
            Answer::Failed(report) => desk.fail(handoff.id, *report).await.map(drop),
            Answer::Completed(result) => {
                let refused = match engine.check_payload(&result.payload) {
                    Ok(()) => match desk.complete(vec![(handoff.id, *result)]).await {
                        Ok(replies) => replies.into_iter().find_map(Result::err),
                        Err(error) => Some(error),
                    },
                    Err(error) => Some(error),
                };
                match refused {
                    None => Ok(()),
                    // The store's trouble is not the agent's: the lease decides.
                    Some(error @ Error::Store(_)) => Err(error),
                    Some(error) => {
                        let problem = format!("the result was refused: {error}");
                        self.fail(engine, handoff, proof, problem, None).await
                    }
                }
            }
            Answer::Unclear { problem, retry_after_ms } => {
                self.fail(engine, handoff, proof, problem, retry_after_ms).await
            }
        }
    }

    async fn fail(
        &self,
        engine: &Engine,
        handoff: &Handoff,
        proof: Proof,
        message: String,
        retry_after_ms: Option<u64>,
    ) -> Result<(), Error> {
        let shown = tasuki_core::address::Endpoint::parse(&self.url).map(|url| url.shown());
        let report = FailRequest {
            handoff: handoff.id,
            proof,
            by: Some(Holder { agent: self.agent.clone(), signed: None }),
            signed: None,
            class: FailureClass::Retryable,
            kind: NOT_DELIVERED.into(),
            message,
            attempted: Some(format!("POST {}", shown.unwrap_or_default())),
            attempts: None,
            causes: Vec::new(),
            hint: None,
            retry_after_ms,
            details: Default::default(),
            usage: None,
        };
        engine.fail(report).await.map(drop)
    }
}
