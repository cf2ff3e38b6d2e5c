// SPDX-License-Identifier: Apache-2.0
//! Push notifications that clients asked for, as doors need them: set, read, deleted by a caller who may
//! see the task, and told by the broker in that caller's place. What a config says and what is sent is
//! the business of the door whose protocol it is.

use std::sync::Arc;

use tasuki_core::commands::RegistryWish;
use tasuki_core::event::Actor;
use tasuki_core::registry::Standing;
use tasuki_core::registry::pushes::{Push, PushKey, PushSet, PushTaken, PushTold, PushWish};
use tasuki_core::registry::rules::Permission;
use tasuki_core::{Body, Command, HandoffId, TaskId, Timestamp};

use crate::alerting::{Message, Messenger};
use crate::caller::{Caller, Known, ShownBy};
use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, denied, invalid};
use crate::folds::waiters::Topic;
use crate::lobby::Lobby;

impl Desk {
    /// Asks for notifications about the work that begins with a handoff.
    pub async fn set_push(&self, mut set: PushSet, config: Body) -> Result<(), Error> {
        self.handoff(set.key.handoff).await?;
        self.caller.must(Permission::Send, None)?;
        set.owner = self.caller.agent().cloned();
        let wish = RegistryWish::Push(Box::new(PushWish::Set { set, config }));
        self.engine.change(&self.caller, vec![wish]).await
    }

    /// What the caller asked for about a handoff, each with its config.
    pub async fn pushes(&self, handoff: HandoffId) -> Result<Vec<(Arc<Push>, Body)>, Error> {
        self.handoff(handoff).await?;
        let registry = self.engine.registry();
        let own = |push: &&Arc<Push>| {
            push.set.key.handoff == handoff && push.set.owner.as_ref() == self.caller.agent()
        };
        let pushes: Vec<_> = registry.guards.pushes.values().filter(own).cloned().collect();
        let at = pushes.iter().map(|push| push.config_pos).collect();
        let bodies = self.engine.store.bodies(at).await?;
        let kept = pushes.into_iter().zip(bodies);
        Ok(kept.filter_map(|(push, body)| Some((push, body?))).collect())
    }

    /// Whether there was one.
    pub async fn delete_push(&self, handoff: HandoffId, id: &str) -> Result<bool, Error> {
        self.handoff(handoff).await?;
        let key = PushKey { handoff, id: id.to_owned() };
        let registry = self.engine.registry();
        let push = registry.guards.pushes.get(&key);
        if push.is_none_or(|push| push.set.owner.as_ref() != self.caller.agent()) {
            return Ok(false);
        }
        let wish = RegistryWish::Push(Box::new(PushWish::End(key)));
        self.engine.change(&self.caller, vec![wish]).await?;
        Ok(true)
    }

    /// Refuses a URL to which the broker may not connect. A name is held against the rules again when
    /// something is sent, with the addresses that it has by then.
    pub fn check_url(&self, field: &'static str, url: &str) -> Result<(), Error> {
        let endpoint = tasuki_core::address::Endpoint::parse(url);
        let endpoint = endpoint.map_err(|problem| invalid(field, problem))?;
        let guard = &self.engine.settings.guard;
        guard.check_host(&endpoint.host).map_err(|problem| invalid(field, problem))
    }
}

/// What a door needs to tell clients by itself.
#[derive(Clone)]
pub struct Pusher {
    engine: Arc<Engine>,
    messenger: Arc<dyn Messenger>,
    /// Who sends, the same after a restart.
    by: String,
}

impl Pusher {
    #[must_use]
    pub fn new(engine: Arc<Engine>, messenger: Arc<dyn Messenger>) -> Self {
        let by = engine.settings.key.map(|key| key.id().to_string());
        let by = by.unwrap_or_else(|| engine.ids.claim().to_string());
        Self { engine, messenger, by }
    }

    #[must_use]
    pub fn lobby(&self) -> Lobby {
        self.engine.clone().into()
    }

    /// Starts something that works in the background until the broker goes away.
    pub fn start(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.engine.start_worker(name, work);
    }

    /// What there is to tell.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Push>> {
        self.engine.registry().guards.pushes.values().cloned().collect()
    }

    #[must_use]
    pub fn get(&self, key: &PushKey) -> Option<Arc<Push>> {
        self.engine.registry().guards.pushes.get(key).cloned()
    }

    /// Shows what there is to tell, now and whenever it may be something else, until the broker goes away.
    pub async fn follow(&self, mut look: impl FnMut(Vec<Arc<Push>>) + Send) {
        let seat = self.engine.waiters.take_seat(Topic::Task(TaskId::STORE));
        let mut closing = self.engine.closing.subscribe();
        loop {
            // Listening begins before looking, so that nothing slips in between.
            let news = seat.notify.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            look(self.all());
            tokio::select! {
                () = news => {}
                _ = closing.wait_for(|closing| *closing) => return,
            }
        }
    }

    pub async fn config(&self, push: &Push) -> Option<Body> {
        let bodies = self.engine.store.bodies(vec![push.config_pos]).await.ok()?;
        bodies.into_iter().next().flatten()
    }

    /// A desk at which the broker sees what the owner of a config may see by now.
    pub fn desk(&self, push: &Push) -> Result<Desk, Error> {
        let Some(owner) = &push.set.owner else {
            return match self.engine.settings.open {
                true => Ok(self.engine.desk(Caller::Anyone)),
                false => Err(denied("it was asked for by nobody who is known")),
            };
        };
        let registry = self.engine.registry();
        let agent = registry.agents.get(owner);
        let agent = agent.filter(|agent| agent.standing != Standing::Deregistered);
        let agent = agent.ok_or_else(|| denied(format!("{owner} is no longer known")))?;
        let known = Known::new(agent, ShownBy::Url, None);
        Ok(self.engine.desk(Caller::Known(Arc::new(known))))
    }

    /// Takes a config for this broker. Whether it got it.
    pub async fn take(&self, key: &PushKey, ms: u64) -> Result<bool, Error> {
        let until = self.engine.now().plus_ms(ms);
        let taken = PushTaken { key: key.clone(), by: self.by.clone(), until };
        self.wish(PushWish::Take(taken)).await?;
        let push = self.get(key);
        let sender = push.as_ref().and_then(|push| push.sender.as_ref());
        Ok(sender.is_some_and(|(by, _)| *by == self.by))
    }

    /// Whether this broker has a config for itself, for so long at least.
    #[must_use]
    pub fn taken_by_us(&self, push: &Push, for_ms: u64) -> bool {
        let until = self.engine.now().plus_ms(for_ms);
        push.sender.as_ref().is_some_and(|(by, end)| *by == self.by && until < *end)
    }

    pub async fn tell(&self, told: PushTold) -> Result<(), Error> {
        self.wish(PushWish::Tell(told)).await
    }

    pub async fn end(&self, key: &PushKey) -> Result<(), Error> {
        self.wish(PushWish::End(key.clone())).await
    }

    async fn wish(&self, wish: PushWish) -> Result<(), Error> {
        let wish = RegistryWish::Push(Box::new(wish));
        let command = Command::registry(Actor::Broker, None, wish);
        for reply in self.engine.store.execute(vec![command]).await? {
            reply?;
        }
        Ok(())
    }

    /// Posts something, signed by the broker.
    pub async fn post(
        &self,
        url: &str,
        content_type: &'static str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<(), String> {
        let nonce = self.engine.ids.claim().to_string();
        let now = self.engine.now();
        let url = url.to_owned();
        self.messenger.send(Message { url, content_type, headers, body, now, nonce }).await
    }

    /// Sleeps by the store's clock, or until the broker goes away.
    pub async fn sleep(&self, ms: u64) {
        let clock = self.engine.store.clock();
        let mut closing = self.engine.closing.subscribe();
        tokio::select! {
            () = clock.sleep_until(clock.now().plus_ms(ms)) => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.engine.now()
    }

    #[must_use]
    pub fn is_closing(&self) -> bool {
        *self.engine.closing.borrow()
    }
}
