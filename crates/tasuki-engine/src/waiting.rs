// SPDX-License-Identifier: Apache-2.0
//! Long waits: for work, for a receiver's acceptance, for results. Every wait has a deadline by
//! the store's clock and ends early when the broker goes away.

use std::pin::Pin;
use std::sync::Arc;

use futures::future::{pending, select_all};
use tasuki_core::commands::{Act, Command, Proof, Seeker};
use tasuki_core::handoff::StateName;
use tasuki_core::{Handoff, HandoffId, Refusal, State, Target, TaskId, TaskState, Timestamp};
use tasuki_store::{Needs, Sight};

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::folds::waiters::{Seat, Topic};
use crate::requests::{Until, WaitFor, WaitMode, WaitRequest, Waited};
use crate::sight::{handoff_in, task_in};

/// How many things one call may wait for.
pub(crate) const WAIT_FOR_MAX: usize = 1000;

impl Engine {
    /// Repeats a claim until it gets something or the time is up.
    pub(crate) async fn until_work(
        &self,
        seeker: &Seeker,
        wait_ms: u64,
        command: impl Fn() -> Command,
        still_may: impl Fn() -> Result<(), Error>,
    ) -> Result<Vec<Arc<Handoff>>, Error> {
        let found = self.one(command()).await?.handoffs;
        if !found.is_empty() || wait_ms == 0 {
            return Ok(found);
        }
        let deadline = self.deadline(wait_ms);
        let own = std::iter::once(Target::Agent(seeker.agent.clone()));
        let able = seeker.capabilities.iter().cloned().map(Target::Capability);
        let topics: Vec<_> = own.chain(able).map(Topic::Target).collect();
        let places: Vec<_> =
            topics.iter().map(|topic| self.waiters.take_seat(topic.clone())).collect();
        let mut known = self.store.registry();
        loop {
            // Listening begins before looking, so that nothing slips in between.
            let news = listen(&places);
            known.mark_unchanged();
            // What was allowed when the wait began may not be any more.
            still_may()?;
            // Asked before looking: what ends in between is then looked at again.
            let held_back = self.held_back(seeker);
            let found = self.one(command()).await?.handoffs;
            if !found.is_empty() {
                // The wake-up may have been for work that this claim left behind: pass it on.
                for topic in &topics {
                    self.waiters.wake_one(topic);
                }
                // The rules may have changed while the command waited for its turn.
                if let Err(error) = still_may() {
                    self.give_back(&found).await;
                    return Err(error);
                }
                return Ok(found);
            }
            // Whose breaker holds it back looks again when it no longer does, whatever comes.
            let again = held_back.iter().min().map_or(deadline, |until| *until.min(&deadline));
            let news = async {
                let news = self.wait_for_news(news, again);
                tokio::pin!(news);
                loop {
                    tokio::select! {
                        biased;
                        more = &mut news => return Ok(more),
                        changed = known.changed(), if known.has_changed().is_ok() => {
                            if changed.is_ok() {
                                still_may()?;
                                if held_back != self.held_back(seeker) {
                                    return Ok(true);
                                }
                            }
                        }
                    }
                }
            };
            let more: Result<bool, Error> = news.await;
            // What held it back may be over just when its own time is: it looks once more.
            let over = again == deadline && held_back.iter().all(|until| *until > deadline);
            if !more? && (over || *self.closing.borrow()) {
                return Ok(Vec::new());
            }
        }
    }

    /// Until when an agent gets nothing, or nothing of some kind: because of what it did with the last
    /// ones, or because somebody paused it.
    fn held_back(&self, seeker: &Seeker) -> Vec<Timestamp> {
        let (registry, now) = (self.registry(), self.now());
        let own = Target::Agent(seeker.agent.clone());
        let state = registry.guards.breakers.get(&own).map(|breaker| breaker.state(now));
        let failed = state.filter(|state| state.claims_max() == 0);
        let failed = failed.and_then(|state| state.sends_from());
        let able = seeker.capabilities.iter().cloned().map(Target::Capability);
        let paused = std::iter::once(own).chain(able).filter_map(|target| {
            Some(registry.pause_of(&target, now)?.until.unwrap_or(Timestamp::MAX))
        });
        failed.into_iter().chain(paused).collect()
    }

    /// Repeats a claim of one handoff while its question is not answered, or what is above it is not
    /// decided on, until the time is up.
    pub(crate) async fn until_answered(
        &self,
        id: HandoffId,
        wait_ms: u64,
        command: impl Fn() -> Command,
        still_may: impl Fn() -> Result<(), Error>,
    ) -> Result<Arc<Handoff>, Error> {
        let deadline = self.deadline(wait_ms);
        let place = [self.waiters.take_seat(Topic::Handoff(id))];
        loop {
            let news = listen(&place);
            let claimed = self.one_handoff(command()).await;
            let asks = |refusal: &Refusal| {
                let asked = StateName::InputRequired;
                matches!(refusal, Refusal::WrongState { state, .. } if *state == asked)
                    || matches!(refusal, Refusal::OnHold { .. })
            };
            let waits = matches!(&claimed, Err(Error::Refused(refusal)) if asks(refusal));
            if !waits || wait_ms == 0 || !self.wait_for_news(news, deadline).await {
                return claimed;
            }
            // What was allowed when the wait began may not be any more.
            still_may()?;
        }
    }

    /// Releases what was claimed for somebody who may not have it.
    async fn give_back(&self, claimed: &[Arc<Handoff>]) {
        for handoff in claimed {
            let Some(claim) = handoff.state.claim() else { continue };
            let proof = Proof { claim_id: claim.claim_id, fence: claim.fence };
            let act = Act::Release;
            let release = Command::held(handoff.id, proof, None, act);
            // If it fails, the lease runs out: nobody was told of the claim.
            if let Err(error) = self.one(release).await {
                tracing::warn!(handoff = %handoff.id, %error, "a claim could not be given back");
            }
        }
    }

    /// Waits until all or any of some handoffs and tasks have come far enough.
    pub async fn wait(&self, wish: WaitRequest) -> Result<Vec<Waited>, Error> {
        self.wait_for(None, wish).await
    }

    /// The same, for somebody who must be allowed to see all of them whenever they are looked at.
    pub(crate) async fn wait_for(
        &self,
        desk: Option<&Desk>,
        wish: WaitRequest,
    ) -> Result<Vec<Waited>, Error> {
        if !(1..=WAIT_FOR_MAX).contains(&wish.these.len()) {
            let problem = format!("{} were named, expected 1 to {WAIT_FOR_MAX}", wish.these.len());
            return Err(invalid("handoffs and tasks", problem));
        }
        let deadline = self.deadline(wish.timeout_ms);
        let mut places = Vec::new();
        let mut needs = Needs::default();
        for this in &wish.these {
            places.push(self.waiters.take_seat(match this {
                WaitFor::Handoff(id) => Topic::Handoff(*id),
                WaitFor::Task(id) => Topic::Task(*id),
            }));
            match this {
                WaitFor::Handoff(id) => needs.handoffs.push(*id),
                WaitFor::Task(id) => needs.tasks.push(*id),
            }
        }
        let mut desk = desk.cloned();
        loop {
            let news = listen(&places);
            let sight = self.look(needs.clone()).await?;
            if let Some(desk) = &desk {
                desk.sees_all(&wish.these, &sight).await?;
            }
            let seen = seen(&wish, &sight)?;
            let enough = match wish.mode {
                WaitMode::All => seen.iter().all(Waited::reached),
                WaitMode::Any => seen.iter().any(Waited::reached),
            };
            if enough {
                return Ok(seen);
            }
            let more = self.wait_for_news(news, deadline).await;
            // What was visible when the wait began may not be any more.
            desk = desk.map(|desk| desk.renewed()).transpose()?;
            if !more {
                if let Some(desk) = &desk {
                    desk.sees_all(&wish.these, &sight).await?;
                }
                return Ok(seen);
            }
        }
    }

    /// Waits until more happened to a task than somebody knows of, who must be allowed to see it all
    /// the while. Whether it did; if not, the time was up or the broker goes away.
    pub(crate) async fn until_moved(
        &self,
        desk: &Desk,
        id: TaskId,
        known: u32,
        wait_ms: u64,
    ) -> Result<bool, Error> {
        let deadline = self.deadline(wait_ms);
        let place = [self.waiters.take_seat(Topic::Task(id))];
        let mut desk = desk.clone();
        loop {
            let news = listen(&place);
            if desk.task(id).await?.events > known {
                return Ok(true);
            }
            if !self.wait_for_news(news, deadline).await {
                return Ok(false);
            }
            desk = desk.renewed()?;
        }
    }

    /// When a wait that may last so long has to end.
    pub(crate) fn deadline(&self, wait_ms: u64) -> Timestamp {
        self.store.clock().now().plus_ms(wait_ms.min(self.settings.wait_ms_max))
    }

    /// Whether there was news before the deadline.
    pub(crate) async fn wait_for_news(&self, news: Vec<News<'_>>, deadline: Timestamp) -> bool {
        let mut closing = self.closing.subscribe();
        let any = async {
            if news.is_empty() {
                pending::<()>().await;
            }
            select_all(news).await;
        };
        tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => false,
            () = any => true,
            () = self.store.clock().sleep_until(deadline) => false,
        }
    }
}

pub(crate) type News<'p> = Pin<Box<tokio::sync::futures::Notified<'p>>>;

pub(crate) fn listen(places: &[Seat]) -> Vec<News<'_>> {
    let listening = places.iter().map(|place| {
        let mut news = Box::pin(place.notify.notified());
        news.as_mut().enable();
        news
    });
    listening.collect()
}

/// What a wait sees, in the order asked.
fn seen(wish: &WaitRequest, sight: &Sight) -> Result<Vec<Waited>, Error> {
    let each = wish.these.iter().map(|this| match this {
        WaitFor::Handoff(id) => {
            let handoff = handoff_in(sight, *id)?.clone();
            let reached = handoff_reached(&handoff, wish.until);
            Ok(Waited::Handoff { handoff, reached })
        }
        WaitFor::Task(id) => {
            let task = task_in(sight, *id)?.clone();
            let reached = match (task.state, wish.until) {
                (TaskState::Open, Until::Claimed | Until::InputRequired) => sight
                    .under_way(&task)
                    .is_some_and(|handoff| handoff_reached(handoff, wish.until)),
                (state, _) => state != TaskState::Open,
            };
            Ok(Waited::Task { task, reached })
        }
    });
    each.collect()
}

fn handoff_reached(handoff: &Handoff, until: Until) -> bool {
    match until {
        Until::Settled => handoff.state.is_terminal(),
        Until::Claimed => handoff.state.is_terminal() || handoff.state.worker().is_some(),
        Until::InputRequired => {
            handoff.state.is_terminal() || matches!(handoff.state, State::InputRequired(_))
        }
    }
}
