// SPDX-License-Identifier: Apache-2.0
//! Who is known: agents with their keys and rules, tokens, and tenants with their quotas. All of it
//! follows from the changes in the log, which belong to the store's own chain. Secrets are not here:
//! of a token there is the hash, of a manifest the address.

pub mod alerts;
pub mod grant;
pub mod names;
pub mod pushes;
pub mod roles;
pub mod rules;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::alerts::{Alert, AlertMoved, Alerts, NoticeTaken, NoticeTold, Silence, Silenced};
use self::pushes::{Push, PushKey, PushSet, PushTaken, PushTold, Pushes};
use self::rules::Rule;
use crate::breaker::{self, Breaker, Limits};
use crate::envelope::Target;
use crate::event::{Actor, Event, Sealed, words};
use crate::identity::{PublicKey, Signature};
use crate::ids::{
    AgentId, ChannelId, HandoffId, Hash, KeyId, Position, TenantId, Timestamp, TokenId,
};
use crate::pipeline::Pipeline;
use crate::reserve::{self, Reservation};

/// How many keys that are not revoked an agent may have: one, and its successor.
pub const KEYS_MAX: usize = 2;

/// Who is known, and what stands in the way of work. The one changes seldom and is looked at by
/// everybody, the other changes with the work, so that each is copied and told apart from the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registry {
    /// Read as if it were the registry itself.
    pub identity: Arc<Identity>,
    pub guards: Arc<Guards>,
    /// The last change of either.
    pub last_pos: Position,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    pub agents: BTreeMap<AgentId, Arc<Agent>>,
    pub tokens: BTreeMap<TokenId, Arc<Token>>,
    pub tenants: BTreeMap<TenantId, Arc<Tenant>>,
    pub channels: BTreeMap<ChannelId, Arc<Channel>>,
    /// Every version of every pipeline that was ever declared: what runs stays on its own.
    pub pipelines: BTreeMap<(String, u32), Arc<Pipeline>>,
    /// Targets of which nothing is claimed until somebody resumes them, or until a time. Whoever waits
    /// for work hears of a change here.
    pub pauses: BTreeMap<Target, Arc<Pause>>,
    /// Whose key this is, revoked ones included: a key is never given to anybody else.
    keys: BTreeMap<KeyId, AgentId>,
    /// The last change of who is known.
    pub changed_pos: Position,
}

/// What keeps work from targets and holders from resources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guards {
    /// Agents that fail, or that count failures by numbers of their own.
    pub breakers: BTreeMap<Target, Arc<Breaker>>,
    /// What holders have for themselves.
    pub reservations: BTreeMap<HandoffId, Arc<Reservation>>,
    /// What people are told of.
    pub alerts: Alerts,
    /// Where clients want to be told what becomes of tasks.
    pub pushes: Pushes,
    /// Claims that show how a target fares.
    probes: BTreeMap<HandoffId, Target>,
}

impl Deref for Registry {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

/// A party that sends or takes work, known by its name, and by its keys where authentication is on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    pub id: AgentId,
    pub standing: Standing,
    /// Somebody else drained it, so it does not let itself work again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Published>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<AgentKey>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    pub since: Timestamp,
    /// The last event about this agent.
    #[serde(rename = "at")]
    pub last_pos: Position,
}

/// Whether an agent gets work.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Active,
    /// It finishes what it has; nothing new is routed to it.
    Draining,
    Deregistered,
}

words!(Standing { Active = "active", Draining = "draining", Deregistered = "deregistered" });

/// The manifest that an agent published last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    pub hash: Hash,
    /// Where the body is kept.
    #[serde(rename = "at")]
    pub body_pos: Position,
    /// Which one of this agent it is, from 1.
    pub version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

/// Whose signature something bears.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Signed {
    pub key_id: KeyId,
    pub signature: Signature,
}

/// A public key of an agent, by which its signatures are checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentKey {
    pub key: PublicKey,
    pub enrolled_at: Timestamp,
    /// From when on it no longer counts: at once if it was revoked, later if it was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

impl AgentKey {
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> bool {
        self.ends_at.is_none_or(|end| now < end)
    }
}

/// A secret that an agent shows instead of a signature, or enrols its first key with. The secret
/// itself is known only to whom it was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    pub id: TokenId,
    pub purpose: Purpose,
    /// The hash of the secret.
    pub secret: Hash,
    /// For whom it speaks, or who may enroll with it.
    pub agent: AgentId,
    /// What it allows at most; for a join token, what the agent will be allowed.
    pub rules: Vec<Rule>,
    pub issued_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Spent or revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Who made it; absent if the broker did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<AgentId>,
    /// What its maker showed. What was made with something ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<Origin>,
}

/// What something was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Key(KeyId),
    Token(TokenId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Authenticates requests.
    Bearer,
    /// Enrolls one key, once.
    Join,
}

words!(Purpose { Bearer = "bearer", Join = "join" });

impl Token {
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> bool {
        self.ended_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// What a tenant may use. Without a number there is no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quotas {
    /// Handoffs that are not at their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// Bytes of envelopes, results and other bodies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// Requests per second, with a second's worth at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
}

/// A group of agents that sees nothing of other groups and has limits of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tenant {
    pub id: TenantId,
    pub quotas: Quotas,
}

/// A name with subscribers: what is published on it reaches each of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Channel {
    pub id: ChannelId,
    /// With the position from which on each of them hears it.
    pub subscribers: BTreeMap<AgentId, Position>,
}

/// Nothing is claimed from a paused target until it is resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    pub target: Target,
    /// Whether it is paused at all; a store has a row for what is over, too.
    pub paused: bool,
    /// From then on it is not paused any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    pub since: Timestamp,
}

/// How many targets may be paused at once.
pub const PAUSES_MAX: usize = 10_000;
/// How many versions of one pipeline are kept.
pub const PIPELINE_VERSIONS_MAX: usize = 1000;

/// How many subscribers a channel may have.
pub const SUBSCRIBERS_MAX: usize = 10_000;

/// A change of who is known, as it is in the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// An agent published a manifest, its first or a new one; the body is the manifest.
    ManifestPublished {
        agent: AgentId,
        manifest: Hash,
        version: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signed: Option<Signed>,
    },
    StandingSet {
        agent: AgentId,
        standing: Standing,
    },
    KeyEnrolled {
        agent: AgentId,
        key: PublicKey,
        /// The join token that was spent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<TokenId>,
    },
    /// A key was replaced; the old one counts until then.
    KeyRotated {
        agent: AgentId,
        old: KeyId,
        new: PublicKey,
        until: Timestamp,
    },
    KeyRevoked {
        agent: AgentId,
        key: KeyId,
    },
    RulesSet {
        agent: AgentId,
        rules: Vec<Rule>,
    },
    TokenIssued(Token),
    TokenRevoked {
        token: TokenId,
    },
    TenantSet(Tenant),
    /// When the breaker of a target opens; without numbers, when any other does.
    LimitsSet {
        target: Target,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
    /// Nothing is claimed of a target from here on, for good or until a time.
    TargetPaused {
        target: Target,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    TargetResumed {
        target: Target,
    },
    /// A version of a pipeline was declared. What begins on it stays on it.
    PipelineDeclared {
        pipeline: Box<Pipeline>,
    },
    Subscribed {
        channel: ChannelId,
        agent: AgentId,
    },
    Unsubscribed {
        channel: ChannelId,
        agent: AgentId,
    },
    /// Somebody who was known tried what it may not do.
    AccessDenied {
        agent: AgentId,
        /// The error's code.
        code: String,
        /// What it tried: an operation, and what that was about. Up to 0.1 a method and a path.
        operation: String,
    },
    AlertMoved(AlertMoved),
    NoticeTaken(NoticeTaken),
    NoticeTold(NoticeTold),
    AlertSilenced(Silenced),
    PushSet(PushSet),
    PushTaken(PushTaken),
    PushTold(PushTold),
    /// It was deleted, or its task is over.
    PushEnded(PushKey),
}

/// One thing that is known; what a store keeps in one row.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Agent(Arc<Agent>),
    Token(Arc<Token>),
    Tenant(Arc<Tenant>),
    Breaker(Arc<Breaker>),
    Channel(Arc<Channel>),
    Reservation(Arc<Reservation>),
    Pause(Arc<Pause>),
    Pipeline(Arc<Pipeline>),
    Alert(Arc<Alert>),
    Silence(Arc<Silence>),
    Push(Arc<Push>),
}

impl Registry {
    /// Whether an event changes anything here.
    #[must_use]
    pub fn is_changed_by(&self, sealed: &Sealed) -> bool {
        let handoff = sealed.record.handoff_id;
        let event = &sealed.record.event;
        matches!(event, Event::RegistryChanged(_) | Event::Reserved { .. })
            || self.breaker_moved(sealed).is_some()
            || handoff.is_some_and(|id| {
                let known = self.guards.reservations.get(&id);
                known.is_some_and(|known| reserve::after(Some(known), sealed).is_some())
            })
    }

    /// Applies a change, if the event is one. Returns what is different.
    pub fn apply(&mut self, sealed: &Sealed) -> Vec<Entry> {
        if !self.is_changed_by(sealed) {
            return Vec::new();
        }
        self.last_pos = sealed.position;
        let Event::RegistryChanged(change) = &sealed.record.event else {
            return self.apply_work(sealed);
        };
        let now = sealed.record.at;
        match &**change {
            Change::ManifestPublished { agent, manifest, version, signed } => {
                let published = Published {
                    hash: *manifest,
                    body_pos: sealed.position,
                    version: *version,
                    signed: signed.clone(),
                };
                self.change_agent(agent, sealed, |agent| {
                    agent.manifest = Some(published);
                    agent.come_back();
                })
            }
            Change::StandingSet { agent, standing } => {
                let other = sealed.record.actor != Actor::Agent(agent.clone());
                self.change_agent(agent, sealed, |agent| {
                    agent.standing = *standing;
                    agent.held_back = other && *standing == Standing::Draining;
                })
            }
            Change::KeyEnrolled { agent, key, token } => {
                let mut changed = Vec::new();
                let spent = token.and_then(|id| self.tokens.get(&id).cloned());
                if let Some(mut token) = spent {
                    Arc::make_mut(&mut token).ended_at = Some(now);
                    changed.push(self.put(Entry::Token(token)));
                }
                let new = AgentKey { key: *key, enrolled_at: now, ends_at: None };
                changed.extend(self.change_agent(agent, sealed, |agent| {
                    agent.keys.push(new);
                    agent.come_back();
                }));
                changed
            }
            Change::KeyRotated { agent, old, new, until } => {
                let new = AgentKey { key: *new, enrolled_at: now, ends_at: None };
                self.change_agent(agent, sealed, |agent| {
                    end_key(agent, *old, *until);
                    agent.keys.push(new);
                })
            }
            Change::KeyRevoked { agent, key } => {
                self.change_agent(agent, sealed, |agent| end_key(agent, *key, now))
            }
            Change::RulesSet { agent, rules } => {
                self.change_agent(agent, sealed, |agent| agent.rules.clone_from(rules))
            }
            Change::TokenIssued(token) => vec![self.put(Entry::Token(Arc::new(token.clone())))],
            Change::TokenRevoked { token } => {
                let Some(mut token) = self.tokens.get(token).cloned() else { return Vec::new() };
                Arc::make_mut(&mut token).ended_at = Some(now);
                vec![self.put(Entry::Token(token))]
            }
            Change::TenantSet(tenant) => vec![self.put(Entry::Tenant(Arc::new(tenant.clone())))],
            Change::LimitsSet { target, limits } => {
                let new = || Arc::new(Breaker::new(target));
                let mut breaker = self.guards.breakers.get(target).cloned().unwrap_or_else(new);
                let changed = Arc::make_mut(&mut breaker);
                changed.own = *limits;
                changed.last_pos = sealed.position;
                vec![self.put(Entry::Breaker(breaker))]
            }
            Change::TargetPaused { target, until } => {
                let (target, until) = (target.clone(), *until);
                let pause = Pause { target, paused: true, until, since: now };
                vec![self.put(Entry::Pause(Arc::new(pause)))]
            }
            Change::TargetResumed { target } => {
                let target = target.clone();
                let pause = Pause { target, paused: false, until: None, since: now };
                vec![self.put(Entry::Pause(Arc::new(pause)))]
            }
            Change::PipelineDeclared { pipeline } => {
                vec![self.put(Entry::Pipeline(Arc::new((**pipeline).clone())))]
            }
            Change::Subscribed { channel, agent } => self.change_channel(channel, |channel| {
                channel.subscribers.entry(agent.clone()).or_insert(sealed.position);
            }),
            Change::Unsubscribed { channel, agent } => self.change_channel(channel, |channel| {
                channel.subscribers.remove(agent);
            }),
            Change::AccessDenied { .. } => Vec::new(),
            Change::AlertMoved(_)
            | Change::NoticeTaken(_)
            | Change::NoticeTold(_)
            | Change::AlertSilenced(_) => {
                let entry = alerts::after(&self.guards.alerts, change, sealed);
                entry.map(|entry| self.put(entry)).into_iter().collect()
            }
            Change::PushSet(_)
            | Change::PushTaken(_)
            | Change::PushTold(_)
            | Change::PushEnded(_) => {
                let entry = pushes::after(&self.guards.pushes, change, sealed);
                entry.map(|entry| self.put(entry)).into_iter().collect()
            }
        }
    }

    /// What follows from work: how targets fare, and what holders have for themselves.
    fn apply_work(&mut self, sealed: &Sealed) -> Vec<Entry> {
        let mut changed = Vec::new();
        if let Some(target) = self.breaker_moved(sealed) {
            let known = self.guards.breakers.get(&target).map(|known| &**known);
            let breaker = breaker::after(known, &target, sealed);
            changed.push(self.put(Entry::Breaker(Arc::new(breaker))));
            if self.guards.breakers.len() > breaker::TARGETS_MAX {
                let oldest =
                    self.guards.breakers.values().min_by_key(|known| known.last_pos).cloned();
                changed.extend(oldest.map(|mut oldest| {
                    let forgotten = Arc::make_mut(&mut oldest);
                    (forgotten.in_row, forgotten.own) = (0, None);
                    self.put(Entry::Breaker(oldest))
                }));
            }
        }
        let handoff = sealed.record.handoff_id;
        let known = handoff.and_then(|id| self.guards.reservations.get(&id)).map(|known| &**known);
        if let Some(reservation) = reserve::after(known, sealed) {
            changed.push(self.put(Entry::Reservation(Arc::new(reservation))));
        }
        changed
    }

    /// The target whose breaker an event moves: by its own word, or because the claim that shows how
    /// the target fares ends with it.
    fn breaker_moved(&self, sealed: &Sealed) -> Option<Target> {
        let facts = sealed.record.event.facts();
        let ends = facts.ends_attempt.is_some() || facts.ends_handoff;
        let probed = sealed.record.handoff_id.filter(|_| ends).and_then(|id| self.probes(id));
        facts.breaker.or(probed).cloned()
    }

    /// The target whose breaker let this handoff through to see how it fares.
    #[must_use]
    pub fn probes(&self, handoff: HandoffId) -> Option<&Target> {
        self.guards.probes.get(&handoff)
    }

    fn change_channel(&mut self, id: &ChannelId, change: impl FnOnce(&mut Channel)) -> Vec<Entry> {
        let new = || Arc::new(Channel { id: id.clone(), subscribers: BTreeMap::new() });
        let mut channel = self.channels.get(id).cloned().unwrap_or_else(new);
        change(Arc::make_mut(&mut channel));
        vec![self.put(Entry::Channel(channel))]
    }

    fn change_agent(
        &mut self,
        id: &AgentId,
        sealed: &Sealed,
        change: impl FnOnce(&mut Agent),
    ) -> Vec<Entry> {
        let known = self.agents.get(id).cloned();
        let mut agent = known.unwrap_or_else(|| Arc::new(Agent::new(id, sealed.record.at)));
        let changed = Arc::make_mut(&mut agent);
        change(changed);
        changed.last_pos = sealed.position;
        vec![self.put(Entry::Agent(agent))]
    }

    /// Puts a thing where it belongs, in place of what was known of it.
    pub fn put(&mut self, entry: Entry) -> Entry {
        let pos = self.last_pos;
        let identity = |registry: &mut Self, put: &dyn Fn(&mut Identity)| {
            let identity = Arc::make_mut(&mut registry.identity);
            put(identity);
            identity.changed_pos = pos;
        };
        match &entry {
            Entry::Agent(agent) => identity(self, &|known| {
                for key in &agent.keys {
                    known.keys.insert(key.key.id(), agent.id.clone());
                }
                known.agents.insert(agent.id.clone(), agent.clone());
            }),
            Entry::Token(token) => identity(self, &|known| {
                known.tokens.insert(token.id, token.clone());
            }),
            Entry::Tenant(tenant) => identity(self, &|known| {
                known.tenants.insert(tenant.id.clone(), tenant.clone());
            }),
            // What is over has a row in the store, and no place here.
            Entry::Channel(channel) => identity(self, &|known| {
                if channel.subscribers.is_empty() {
                    known.channels.remove(&channel.id);
                } else {
                    known.channels.insert(channel.id.clone(), channel.clone());
                }
            }),
            Entry::Pipeline(pipeline) => identity(self, &|known| {
                let key = (pipeline.name.clone(), pipeline.version);
                known.pipelines.insert(key, pipeline.clone());
            }),
            Entry::Pause(pause) => identity(self, &|known| {
                match pause.paused {
                    true => known.pauses.insert(pause.target.clone(), pause.clone()),
                    false => known.pauses.remove(&pause.target),
                };
            }),
            Entry::Alert(alert) => {
                let known = &mut Arc::make_mut(&mut self.guards).alerts.known;
                known.insert(alert.moved.key.clone(), alert.clone());
            }
            Entry::Silence(silence) => {
                let key = (silence.silenced.rule.clone(), silence.silenced.target.clone());
                let silences = &mut Arc::make_mut(&mut self.guards).alerts.silences;
                silences.insert(key, silence.clone());
            }
            // What is over has a row in the store, and no place here.
            Entry::Push(push) => {
                let pushes = &mut Arc::make_mut(&mut self.guards).pushes;
                match push.ended {
                    true => pushes.remove(&push.set.key),
                    false => pushes.insert(push.set.key.clone(), push.clone()),
                };
            }
            Entry::Breaker(breaker) => {
                let guards = Arc::make_mut(&mut self.guards);
                let before = match breaker.matters() {
                    true => guards.breakers.insert(breaker.target.clone(), breaker.clone()),
                    false => guards.breakers.remove(&breaker.target),
                };
                if let Some(probe) = before.and_then(|before| before.probe) {
                    guards.probes.remove(&probe);
                }
                if let Some(probe) = breaker.probe.filter(|_| breaker.matters()) {
                    guards.probes.insert(probe, breaker.target.clone());
                }
            }
            Entry::Reservation(reservation) => {
                let reservations = &mut Arc::make_mut(&mut self.guards).reservations;
                if reservation.resources.is_empty() {
                    reservations.remove(&reservation.handoff);
                } else {
                    reservations.insert(reservation.handoff, reservation.clone());
                }
            }
        }
        entry
    }
}

impl Identity {
    /// Why nothing is claimed of a target, if somebody paused it.
    #[must_use]
    pub fn pause_of(&self, target: &Target, now: Timestamp) -> Option<&Pause> {
        let pause = self.pauses.get(target)?;
        pause.until.is_none_or(|until| now < until).then_some(&**pause)
    }

    /// Whose key this is, and the key, if it counts.
    #[must_use]
    pub fn holder_of(&self, key: KeyId, now: Timestamp) -> Option<(&Arc<Agent>, PublicKey)> {
        let agent = self.agents.get(self.keys.get(&key)?)?;
        let key = agent.keys.iter().find(|known| known.key.id() == key && known.counts(now))?;
        Some((agent, key.key))
    }

    /// Whether somebody has or had this key.
    #[must_use]
    pub fn knows_key(&self, key: KeyId) -> bool {
        self.keys.contains_key(&key)
    }

    #[must_use]
    pub fn quotas(&self, tenant: &str) -> Option<&Quotas> {
        let tenant: TenantId = tenant.parse().ok()?;
        self.tenants.get(&tenant).map(|tenant| &tenant.quotas)
    }
}

impl Agent {
    fn new(id: &AgentId, since: Timestamp) -> Self {
        Self {
            id: id.clone(),
            standing: Standing::Active,
            held_back: false,
            manifest: None,
            keys: Vec::new(),
            rules: Vec::new(),
            since,
            last_pos: Position(0),
        }
    }

    /// Who was taken out and is let in again has work again.
    fn come_back(&mut self) {
        if self.standing == Standing::Deregistered {
            self.standing = Standing::Active;
        }
    }

    /// The keys that count now.
    pub fn keys_at(&self, now: Timestamp) -> impl Iterator<Item = &AgentKey> {
        self.keys.iter().filter(move |key| key.counts(now))
    }
}

/// A key that ended before must not come back.
fn end_key(agent: &mut Agent, id: KeyId, at: Timestamp) {
    if let Some(key) = agent.keys.iter_mut().find(|key| key.key.id() == id) {
        key.ends_at = Some(key.ends_at.map_or(at, |end| end.min(at)));
    }
}
