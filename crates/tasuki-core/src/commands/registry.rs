// SPDX-License-Identifier: Apache-2.0
//! Changes of who is known. Who may wish for them is settled before; that they make sense is
//! settled here, where nobody can come in between: a join token works once.

use super::{By, Case, Changes, Footprint, HeldBy, Returns, Stated};
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome, View};
use crate::event::{Actor, Event, LossCause};
use crate::identity::PublicKey;
use crate::ids::{AgentId, ChannelId, Hash, KeyId, Timestamp, TokenId};
use crate::refusal::Refusal;
use crate::registry::rules::{RULES_MAX, Rule};
use crate::registry::{
    Agent, Change, KEYS_MAX, Purpose, Registry, SUBSCRIBERS_MAX, Signed, Standing, Tenant, Token,
};

/// A wish about agents, keys, tokens and tenants.
#[derive(Debug, Clone)]
pub enum RegistryWish {
    /// Publishes a manifest; with `version`, only if the last one was that.
    Publish {
        agent: AgentId,
        manifest: Body,
        signed: Option<Signed>,
        version: Option<u32>,
    },
    SetStanding {
        agent: AgentId,
        standing: Standing,
    },
    /// Enrolls a key by the word of an administrator.
    Enroll {
        agent: AgentId,
        key: PublicKey,
        rules: Option<Vec<Rule>>,
    },
    /// Enrolls a key with a join token.
    Join {
        token: TokenId,
        secret: Hash,
        agent: AgentId,
        key: PublicKey,
    },
    Rotate {
        agent: AgentId,
        old: KeyId,
        new: PublicKey,
        grace_ms: u64,
    },
    Revoke {
        agent: AgentId,
        key: KeyId,
    },
    SetRules {
        agent: AgentId,
        rules: Vec<Rule>,
    },
    Subscribe {
        channel: ChannelId,
        agent: AgentId,
    },
    Unsubscribe {
        channel: ChannelId,
        agent: AgentId,
    },
    IssueToken(Token),
    RevokeToken(TokenId),
    SetTenant(Tenant),
    /// Records that somebody tried what it may not do.
    NoteDenied {
        agent: AgentId,
        code: String,
        operation: String,
    },
}

impl Stated for RegistryWish {
    fn footprint(&self) -> Footprint<'_> {
        let named = Footprint { store: true, identity: true, ..Footprint::default() };
        match self {
            // Who is no longer known loses its claims.
            Self::Revoke { agent, .. }
            | Self::SetStanding { agent, standing: Standing::Deregistered } => Footprint {
                held: HeldBy::Of(agent),
                returns: Returns::Again,
                reservations: Changes::OfAny,
                ..named
            },
            Self::SetStanding { standing: Standing::Active | Standing::Draining, .. }
            | Self::Publish { .. }
            | Self::Enroll { .. }
            | Self::Join { .. }
            | Self::Rotate { .. }
            | Self::SetRules { .. }
            | Self::Subscribe { .. }
            | Self::Unsubscribe { .. }
            | Self::IssueToken(_)
            | Self::RevokeToken(_)
            | Self::SetTenant(_)
            | Self::NoteDenied { .. } => named,
        }
    }

    fn decide(&self, case: &Case<'_>) -> Result<Decision, Refusal> {
        let (view, now) = (case.view, case.now);
        let known = view.registry();
        let by = match case.by {
            By::Agent(agent) => Actor::Agent(agent.clone()),
            By::Broker | By::Bearer => Actor::Broker,
        };
        let on_store = |change: Change, body: Option<Body>| {
            NewEvent::on_store(by.clone(), Event::RegistryChanged(Box::new(change))).with(body)
        };
        let mut body = None;
        let mut released = None;
        let changes = match self {
            Self::Publish { agent, manifest, signed, version } => {
                let published = known.agents.get(agent).and_then(|agent| agent.manifest.as_ref());
                let last = published.map_or(0, |manifest| manifest.version);
                if published.is_some_and(|published| published.hash == manifest.hash)
                    && known.agents[agent].standing != Standing::Deregistered
                {
                    return Ok(Decision::unchanged(repeated()));
                }
                if version.is_some_and(|expected| expected != last) {
                    return Err(Refusal::ManifestMoved { agent: agent.clone(), version: last });
                }
                let hash = manifest.hash;
                body = Some(manifest);
                vec![Change::ManifestPublished {
                    agent: agent.clone(),
                    manifest: hash,
                    version: last + 1,
                    signed: signed.clone(),
                }]
            }
            Self::SetStanding { agent, standing } => {
                let standing = *standing;
                let found = find(known, agent)?;
                let drains_again = standing == Standing::Draining
                    && by != Actor::Agent(agent.clone())
                    && !found.held_back;
                if found.standing == standing && !drains_again {
                    return Ok(Decision::unchanged(repeated()));
                }
                let own = by == Actor::Agent(agent.clone());
                if own && found.held_back && standing == Standing::Active {
                    return Err(Refusal::HeldBack(agent.clone()));
                }
                let mut changes = Vec::new();
                if standing == Standing::Deregistered {
                    released = Some(agent);
                    changes.extend(tokens_of(known, agent, now));
                }
                changes.push(Change::StandingSet { agent: agent.clone(), standing });
                changes
            }
            Self::Enroll { agent, key, rules } => {
                let key = *key;
                new_key(known, agent, key, now)?;
                let mut changes =
                    vec![Change::KeyEnrolled { agent: agent.clone(), key, token: None }];
                if let Some(rules) = rules {
                    changes.push(Change::RulesSet { agent: agent.clone(), rules: checked(rules)? });
                }
                changes
            }
            Self::Join { token, secret, agent, key } => {
                let fits = |token: &&Token| {
                    token.purpose == Purpose::Join
                        && token.secret == *secret
                        && token.agent == *agent
                        && token.counts(now)
                };
                let known_token = known.tokens.get(token).map(|token| &**token);
                let rules = known_token.filter(fits).ok_or(Refusal::TokenRefused)?.rules.clone();
                let key = *key;
                new_key(known, agent, key, now)?;
                vec![
                    Change::KeyEnrolled { agent: agent.clone(), key, token: Some(*token) },
                    Change::RulesSet { agent: agent.clone(), rules },
                ]
            }
            Self::Rotate { agent, old, new, grace_ms } => {
                let (old, new) = (*old, *new);
                let mut keys = find(known, agent)?.keys_at(now);
                if !keys.any(|key| key.key.id() == old && key.ends_at.is_none()) {
                    return Err(Refusal::KeyNotFound { agent: agent.clone(), key: old });
                }
                new_key(known, agent, new, now)?;
                let until = now.plus_ms(*grace_ms);
                vec![Change::KeyRotated { agent: agent.clone(), old, new, until }]
            }
            Self::Revoke { agent, key } => {
                let (agent, key) = (find(known, agent)?, *key);
                if !agent.keys.iter().any(|known| known.key.id() == key) {
                    return Err(Refusal::KeyNotFound { agent: agent.id.clone(), key });
                }
                if !agent.keys_at(now).any(|known| known.key.id() == key) {
                    return Ok(Decision::unchanged(repeated()));
                }
                if agent.keys_at(now).all(|known| known.key.id() == key) {
                    released = Some(&agent.id);
                }
                // Whoever had the key may have made itself tokens with it.
                let mut changes = vec![Change::KeyRevoked { agent: agent.id.clone(), key }];
                changes.extend(tokens_of(known, &agent.id, now));
                changes
            }
            Self::SetRules { agent, rules } => {
                vec![Change::RulesSet { agent: agent.clone(), rules: checked(rules)? }]
            }
            Self::Subscribe { channel, agent } => {
                let there = known.channels.get(channel);
                if there.is_some_and(|there| there.subscribers.contains_key(agent)) {
                    return Ok(Decision::unchanged(repeated()));
                }
                if there.is_some_and(|there| there.subscribers.len() >= SUBSCRIBERS_MAX) {
                    return Err(Refusal::TooManySubscribers {
                        channel: channel.clone(),
                        max: SUBSCRIBERS_MAX,
                    });
                }
                vec![Change::Subscribed { channel: channel.clone(), agent: agent.clone() }]
            }
            Self::Unsubscribe { channel, agent } => {
                let there = known.channels.get(channel);
                if !there.is_some_and(|there| there.subscribers.contains_key(agent)) {
                    return Ok(Decision::unchanged(repeated()));
                }
                vec![Change::Unsubscribed { channel: channel.clone(), agent: agent.clone() }]
            }
            Self::IssueToken(token) => {
                checked(&token.rules)?;
                vec![Change::TokenIssued(token.clone())]
            }
            Self::RevokeToken(id) => {
                let token = known.tokens.get(id).ok_or(Refusal::TokenNotFound(*id))?;
                if token.ended_at.is_some() {
                    return Ok(Decision::unchanged(repeated()));
                }
                vec![Change::TokenRevoked { token: *id }]
            }
            Self::SetTenant(tenant) => vec![Change::TenantSet(tenant.clone())],
            Self::NoteDenied { agent, code, operation } => {
                vec![Change::AccessDenied {
                    agent: agent.clone(),
                    code: code.clone(),
                    operation: operation.clone(),
                }]
            }
        };
        let mut events: Vec<_> =
            changes.into_iter().map(|c| on_store(c, body.take().cloned())).collect();
        if let Some(agent) = released {
            events.extend(release(agent, view));
        }
        Ok(Decision::of(events, Outcome::default()))
    }
}

/// The end of every bearer token of an agent.
fn tokens_of(known: &Registry, agent: &AgentId, now: Timestamp) -> Vec<Change> {
    let theirs = |token: &&Token| {
        token.purpose == Purpose::Bearer && token.agent == *agent && token.counts(now)
    };
    let tokens = known.tokens.values().map(|token| &**token).filter(theirs);
    tokens.map(|token| Change::TokenRevoked { token: token.id }).collect()
}

fn repeated() -> Outcome {
    Outcome { repeated: true, ..Outcome::default() }
}

fn find<'r>(known: &'r Registry, id: &AgentId) -> Result<&'r Agent, Refusal> {
    known.agents.get(id).map(|agent| &**agent).ok_or_else(|| Refusal::AgentNotFound(id.clone()))
}

fn new_key(
    known: &Registry,
    agent: &AgentId,
    key: PublicKey,
    now: Timestamp,
) -> Result<KeyId, Refusal> {
    if known.knows_key(key.id()) {
        return Err(Refusal::KeyTaken(key.id()));
    }
    let count = known.agents.get(agent).map_or(0, |agent| agent.keys_at(now).count());
    if count >= KEYS_MAX {
        return Err(Refusal::TooManyKeys { agent: agent.clone(), max: KEYS_MAX });
    }
    Ok(key.id())
}

fn checked(rules: &[Rule]) -> Result<Vec<Rule>, Refusal> {
    if rules.len() > RULES_MAX {
        return Err(Refusal::InvalidRules(format!("{} rules, at most {RULES_MAX}", rules.len())));
    }
    match rules.iter().enumerate().find_map(|(at, rule)| rule.fault().map(|f| (at, f))) {
        Some((at, fault)) => Err(Refusal::InvalidRules(format!("rules[{at}]: {fault}"))),
        None => Ok(rules.to_vec()),
    }
}

/// Whoever is no longer known cannot finish what it holds, so it waits for somebody else at once.
fn release(agent: &AgentId, view: &dyn View) -> Vec<NewEvent> {
    let held = view.held().into_iter().filter_map(|id| view.handoff(id));
    held.filter_map(|handoff| {
        let claim = handoff.state.claim().filter(|claim| claim.agent == *agent)?;
        let event = Event::LeaseLost { fence: claim.fence, cause: LossCause::Revoked };
        Some(NewEvent::on(handoff, Actor::Broker, event))
    })
    .collect()
}
