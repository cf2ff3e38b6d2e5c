// SPDX-License-Identifier: Apache-2.0
//! Who is there: an agent that asks for work or reports on it was there just now. Brokers that share
//! a store tell each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tasuki_core::commands::Seeker;
use tasuki_core::{AgentId, Target, Timestamp};
use tasuki_store::{Change, Store};

use super::{Flow, Fold, GO_ON};

/// How long somebody counts as there after it was heard of.
pub(crate) const LIVE_MS: u64 = 60_000;
/// How many are remembered; beyond it those who were not heard of for longest are forgotten.
const SEEN_MAX: usize = 100_000;
/// How often brokers tell each other.
const SHARE_MS: u64 = 2_000;

#[derive(Default)]
pub(crate) struct Presence {
    seen: Mutex<BTreeMap<Target, Seen>>,
}

#[derive(Clone, Copy)]
struct Seen {
    at: Timestamp,
    /// How many wait for work at this moment.
    waiting: u32,
    /// Whether others were told.
    told: bool,
}

impl Presence {
    fn note(&self, target: Target, now: Timestamp, waiting: i32) {
        let mut all = self.seen.lock().expect("no holder of this lock panics");
        if all.len() >= SEEN_MAX {
            all.retain(|_, seen| seen.waiting > 0 || now < seen.at.plus_ms(LIVE_MS));
        }
        let seen = all.entry(target).or_insert(Seen { at: now, waiting: 0, told: false });
        seen.told &= now < seen.at.plus_ms(LIVE_MS / 4);
        seen.at = seen.at.max(now);
        seen.waiting = seen.waiting.saturating_add_signed(waiting);
    }

    /// An agent was heard of.
    pub(crate) fn heard(&self, agent: &AgentId, now: Timestamp) {
        self.note(Target::Agent(agent.clone()), now, 0);
    }

    /// Somebody looks for work, until the guard is dropped.
    pub(crate) fn looks(self: &Arc<Self>, seeker: &Seeker, now: Timestamp) -> Looking {
        let own = std::iter::once(Target::Agent(seeker.agent.clone()));
        let able = seeker.capabilities.iter().cloned().map(Target::Capability);
        let targets: Vec<_> = own.chain(able).collect();
        for target in &targets {
            self.note(target.clone(), now, 1);
        }
        Looking { presence: self.clone(), targets }
    }

    /// When somebody was last heard of who takes work for a target.
    pub(crate) fn last(&self, target: &Target) -> Option<Timestamp> {
        self.seen.lock().expect("no holder of this lock panics").get(target).map(|seen| seen.at)
    }

    /// Whether somebody is there who takes work for a target.
    pub(crate) fn is_live(&self, target: &Target, now: Timestamp) -> bool {
        let all = self.seen.lock().expect("no holder of this lock panics");
        let live = |seen: &Seen| seen.waiting > 0 || now < seen.at.plus_ms(LIVE_MS);
        all.get(target).is_some_and(live)
    }

    /// Whether somebody asks for work for it at this moment.
    pub(crate) fn is_waiting(&self, target: &Target) -> bool {
        let all = self.seen.lock().expect("no holder of this lock panics");
        all.get(target).is_some_and(|seen| seen.waiting > 0)
    }

    /// Everybody who is there.
    pub(crate) fn live(&self, now: Timestamp) -> Vec<Target> {
        let all = self.seen.lock().expect("no holder of this lock panics");
        let live = |seen: &Seen| seen.waiting > 0 || now < seen.at.plus_ms(LIVE_MS);
        all.iter().filter(|(_, seen)| live(seen)).map(|(target, _)| target.clone()).collect()
    }

    fn untold(&self, now: Timestamp) -> Vec<(Target, Timestamp)> {
        let mut all = self.seen.lock().expect("no holder of this lock panics");
        let news = all.iter_mut().filter(|(_, seen)| !seen.told || seen.waiting > 0);
        news.map(|(target, seen)| {
            seen.told = true;
            (target.clone(), if seen.waiting > 0 { now } else { seen.at })
        })
        .collect()
    }
}

/// Somebody who looks for work.
pub(crate) struct Looking {
    presence: Arc<Presence>,
    targets: Vec<Target>,
}

impl Drop for Looking {
    fn drop(&mut self) {
        let mut all = self.presence.seen.lock().expect("no holder of this lock panics");
        for target in &self.targets {
            if let Some(seen) = all.get_mut(target) {
                seen.waiting = seen.waiting.saturating_sub(1);
            }
        }
    }
}

/// Tells other brokers who was heard of here, and hears who was heard of there.
pub(crate) struct Sharing {
    store: Arc<dyn Store>,
    presence: Arc<Presence>,
    share_at: Timestamp,
}

impl Sharing {
    pub(crate) fn new(store: Arc<dyn Store>, presence: Arc<Presence>) -> Self {
        let share_at = store.clock().now().plus_ms(SHARE_MS);
        Self { store, presence, share_at }
    }
}

#[async_trait]
impl Fold for Sharing {
    /// Who is there is heard of from requests and from other brokers, not from the log.
    async fn apply(&mut self, _: &[Change], _: &[Target]) -> Flow {
        GO_ON
    }

    fn wake_at(&self) -> Option<Timestamp> {
        Some(self.share_at)
    }

    async fn wake(&mut self) -> Flow {
        let now = self.store.clock().now();
        self.share_at = now.plus_ms(SHARE_MS);
        match self.store.share_presence(self.presence.untold(now)).await {
            Ok(others) => {
                for (target, at) in others {
                    self.presence.note(target, at, 0);
                }
                GO_ON
            }
            Err(tasuki_store::Error::Closed) => Flow::Break(()),
            Err(error) => {
                tracing::debug!(%error, "presence is not shared");
                GO_ON
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeker() -> Seeker {
        Seeker { agent: "coder".parse().unwrap(), capabilities: vec!["review".parse().unwrap()] }
    }

    #[test]
    fn who_waits_for_work_is_there_and_so_is_who_did_lately() {
        let presence = Arc::new(Presence::default());
        let agent = Target::Agent("coder".parse().unwrap());
        let capability = Target::Capability("review".parse().unwrap());
        assert!(!presence.is_live(&agent, Timestamp(0)));
        let looking = presence.looks(&seeker(), Timestamp(0));
        for target in [&agent, &capability] {
            assert!(presence.is_live(target, Timestamp(1_000_000)), "it still waits");
        }
        drop(looking);
        assert!(presence.is_live(&agent, Timestamp(59_999)));
        assert!(!presence.is_live(&agent, Timestamp(60_000)));
    }

    #[test]
    fn others_are_told_of_news_only() {
        let presence = Arc::new(Presence::default());
        presence.heard(&"coder".parse().unwrap(), Timestamp(0));
        assert_eq!(presence.untold(Timestamp(0)).len(), 1);
        assert_eq!(presence.untold(Timestamp(1)).len(), 0);
        presence.heard(&"coder".parse().unwrap(), Timestamp(20_000));
        assert_eq!(presence.untold(Timestamp(20_000)).len(), 1);
    }
}
