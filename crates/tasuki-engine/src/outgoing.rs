// SPDX-License-Identifier: Apache-2.0
//! Work for agents that do not ask for it: the broker claims it for them and has it carried to the
//! URL in their manifest. Claiming goes the same way as for everybody else, so of several brokers on
//! one store one delivers; and the claim with its end is the record of the attempt, so that retries,
//! their pauses and dead letters follow from it as they do for everybody else. Nothing is kept here
//! that a restart would lose. What goes over the wire is the [`Courier`]'s business.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use async_trait::async_trait;
use tasuki_core::event::FailureClass;
use tasuki_core::manifest::Delivery;
use tasuki_core::registry::rules::Permission;
use tasuki_core::registry::{Agent, Standing};
use tasuki_core::{AgentId, Capability, Handoff, Timestamp};
use tasuki_protocol::{Claim, Complete, Fail};
use tasuki_store::Until;
use tokio::sync::{Notify, Semaphore};

use crate::caller::{Caller, Known, ShownBy};
use crate::desk::Desk;
use crate::directory::Listed;
use crate::engine::Engine;
use crate::error::{Error, denied};
use crate::requests::{FailRequest, Granted, Holder, Proof};

/// How many deliveries may be under way at once, to all agents together.
const UNDER_WAY_MAX: usize = 256;
/// How long an agent may take to answer, unless its lease is shorter.
const ANSWER_MS_MAX: u64 = 25_000;
/// The part of a lease that is left for what follows from an answer, or from none.
const LEASE_KEPT: u64 = 6;
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
        let office = Office {
            engine: self.clone(),
            courier,
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
        while !*engine.closing.borrow() && work.is_current(engine) {
            self.wait_for_room(work, lane).await;
            if *engine.closing.borrow() || !work.is_current(engine) {
                return;
            }
            let granted = match work.claim(engine).await {
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
            lane.posting.fetch_add(1, Ordering::AcqRel);
            let posting = Posting(lane.clone());
            let (office, work) = (self.clone(), work.clone());
            // Not watched: a panic here costs this delivery its lease, as it would any other worker.
            tokio::spawn(async move {
                office.deliver(&work, granted).await;
                drop(posting);
            });
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
    capabilities: Vec<Capability>,
    concurrency: usize,
}

impl Work {
    fn of(listed: &Listed, known: &Agent) -> Option<Self> {
        let Delivery::Webhook { url } = &listed.manifest.delivery else { return None };
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
    async fn claim(&self, engine: &Arc<Engine>) -> Result<Vec<Granted>, Error> {
        let desk = self.desk(engine)?;
        let may = |able: &&Capability| desk.caller().may(Permission::Claim, Some(able.name()));
        let wish = Claim {
            agent: self.agent.clone(),
            capabilities: self.capabilities.iter().filter(may).cloned().collect(),
            max: 1,
            wait_ms: LOOK_MS,
            lease_ms: None,
            request_id: None,
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
