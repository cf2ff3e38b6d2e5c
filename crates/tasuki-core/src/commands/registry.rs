// SPDX-License-Identifier: Apache-2.0
//! Changes of who is known. Who may ask for them at all is settled before; that they make sense, and
//! that nobody gets more by them than who asks has itself, is settled here, where nobody can come in
//! between: a join token works once.

use super::{By, Case, Changes, Footprint, HeldBy, Returns, Stated};
use crate::breaker::Limits;
use crate::canonical::Body;
use crate::decide::{Decision, NewEvent, Outcome, View};
use crate::envelope::Target;
use crate::event::{Actor, Event, LossCause};
use crate::handoff::State;
use crate::identity::PublicKey;
use crate::ids::{AgentId, ChannelId, Hash, KeyId, Timestamp, TokenId};
use crate::pipeline::Pipeline;
use crate::quota;
use crate::refusal::Refusal;
use crate::registry::alerts::AlertWish;
use crate::registry::grant::{DEPTH_MAX, Granter, ShownBy};
use crate::registry::names;
use crate::registry::rules::{Effect, PATTERNS_TOTAL_MAX, RULES_MAX, Rule};
use crate::registry::{
    Agent, Change, KEYS_MAX, Origin, PAUSES_MAX, PIPELINE_VERSIONS_MAX, Purpose, Registry,
    SUBSCRIBERS_MAX, Signed, Standing, Tenant, Token,
};

/// A change of who is known, and how the agent that wishes for it showed who it is.
#[derive(Debug, Clone)]
pub struct ChangeRegistry {
    pub shown: Option<ShownBy>,
    pub wish: RegistryWish,
}

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
    /// Sets when the breaker of a target opens, or leaves it to the broker again.
    SetLimits {
        target: Target,
        limits: Option<Limits>,
    },
    /// Lets nothing be claimed of a target, for good or until a time.
    Pause {
        target: Target,
        until: Option<Timestamp>,
    },
    Resume {
        target: Target,
    },
    /// Declares a version of a pipeline.
    DeclarePipeline(Box<Pipeline>),
    /// Records that somebody tried what it may not do.
    NoteDenied {
        agent: AgentId,
        code: String,
        operation: String,
    },
    Alert(Box<AlertWish>),
}

impl Stated for ChangeRegistry {
    fn footprint(&self) -> Footprint<'_> {
        let named = Footprint { store: true, identity: true, ..Footprint::default() };
        match &self.wish {
            // Who is no longer known loses its claims.
            RegistryWish::Revoke { agent, .. }
            | RegistryWish::SetStanding { agent, standing: Standing::Deregistered } => Footprint {
                held: HeldBy::Of(agent),
                returns: Returns::Again,
                breakers: Changes::OfAny,
                reservations: Changes::OfAny,
                ..named
            },
            RegistryWish::SetStanding {
                standing: Standing::Active | Standing::Draining, ..
            }
            | RegistryWish::Publish { .. }
            | RegistryWish::Enroll { .. }
            | RegistryWish::Join { .. }
            | RegistryWish::Rotate { .. }
            | RegistryWish::SetRules { .. }
            | RegistryWish::Subscribe { .. }
            | RegistryWish::Unsubscribe { .. }
            | RegistryWish::IssueToken(_)
            | RegistryWish::RevokeToken(_)
            | RegistryWish::SetTenant(_)
            | RegistryWish::SetLimits { .. }
            | RegistryWish::Pause { .. }
            | RegistryWish::Resume { .. }
            | RegistryWish::DeclarePipeline(_)
            | RegistryWish::Alert(_)
            | RegistryWish::NoteDenied { .. } => named,
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
        // What the broker does by itself, and what anybody does where nobody is asked who it is, is
        // nobody's grant.
        let granter = match case.by {
            By::Agent(agent) => Some(Granter::new(known, agent, self.shown)),
            By::Broker | By::Bearer => None,
        };
        if let Some(agent) = self.names() {
            names::check(known, agent)?;
        }
        let changes = match &self.wish {
            RegistryWish::Publish { agent, manifest, signed, version } => {
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
                may_bring_back(known, granter.as_ref(), agent)?;
                // Every version is kept, and its tenant pays for it.
                quota::check(view, agent.tenant(), 0, manifest.text().len())?;
                let hash = manifest.hash;
                body = Some(manifest);
                vec![Change::ManifestPublished {
                    agent: agent.clone(),
                    manifest: hash,
                    version: last + 1,
                    signed: signed.clone(),
                }]
            }
            RegistryWish::SetStanding { agent, standing } => {
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
                may_bring_back(known, granter.as_ref(), agent)?;
                let mut changes = Vec::new();
                if standing == Standing::Deregistered {
                    released = Some(agent);
                    // Nor does it come back by an invitation from before, or act by what it made.
                    changes.extend(tokens_with(known, now, |token| {
                        token.agent == *agent || token.made_by.as_ref() == Some(agent)
                    }));
                }
                changes.push(Change::StandingSet { agent: agent.clone(), standing });
                changes
            }
            RegistryWish::Enroll { agent, key, rules } => {
                let key = *key;
                let mut rules = rules.as_ref().map(|rules| checked(rules)).transpose()?;
                if let Some(granter) = &granter {
                    granter.may_change_keys(agent, None)?;
                    // Whoever has the key has all of it, and not only what is new.
                    match &mut rules {
                        Some(rules) => *rules = handed_over(granter, rules)?,
                        None => granter.may_become(agent, rules_of(known, agent))?,
                    }
                }
                new_key(known, agent, key, now)?;
                let mut changes =
                    vec![Change::KeyEnrolled { agent: agent.clone(), key, token: None }];
                if let Some(rules) = rules {
                    changes.push(Change::RulesSet { agent: agent.clone(), rules });
                }
                changes
            }
            RegistryWish::Join { token, secret, agent, key } => {
                let fits = |token: &&Token| {
                    token.purpose == Purpose::Join
                        && token.secret == *secret
                        && token.agent == *agent
                        && known.token_counts(token, now)
                };
                let known_token = known.tokens.get(token).map(|token| &**token);
                let invited = known_token.filter(fits).ok_or(Refusal::TokenRefused)?;
                let rules = still_granted(known, invited, now)?;
                let key = *key;
                new_key(known, agent, key, now)?;
                vec![
                    Change::KeyEnrolled { agent: agent.clone(), key, token: Some(*token) },
                    Change::RulesSet { agent: agent.clone(), rules },
                ]
            }
            RegistryWish::Rotate { agent, old, new, grace_ms } => {
                let (old, new) = (*old, *new);
                let mut keys = find(known, agent)?.keys_at(now);
                if !keys.any(|key| key.key.id() == old && key.ends_at.is_none()) {
                    return Err(Refusal::KeyNotFound { agent: agent.clone(), key: old });
                }
                if let Some(granter) = &granter {
                    granter.may_change_keys(agent, Some(old))?;
                    granter.may_become(agent, rules_of(known, agent))?;
                }
                new_key(known, agent, new, now)?;
                let until = now.plus_ms(*grace_ms);
                vec![Change::KeyRotated { agent: agent.clone(), old, new, until }]
            }
            RegistryWish::Revoke { agent, key } => {
                let (agent, key) = (find(known, agent)?, *key);
                if let Some(granter) = &granter {
                    granter.may_change_keys(&agent.id, None)?;
                }
                if !agent.keys.iter().any(|known| known.key.id() == key) {
                    return Err(Refusal::KeyNotFound { agent: agent.id.clone(), key });
                }
                if !agent.keys_at(now).any(|known| known.key.id() == key) {
                    return Ok(Decision::unchanged(repeated()));
                }
                if agent.keys_at(now).all(|known| known.key.id() == key) {
                    released = Some(&agent.id);
                }
                // Who had the key may have made tokens with it, for itself and for others.
                let mut changes = vec![Change::KeyRevoked { agent: agent.id.clone(), key }];
                changes.extend(tokens_with(known, now, |token| {
                    let own = token.purpose == Purpose::Bearer && token.agent == agent.id;
                    own || token.made_from == Some(Origin::Key(key))
                }));
                changes
            }
            RegistryWish::SetRules { agent, rules } => {
                let mut rules = checked(rules)?;
                if let Some(granter) = &granter {
                    rules = granted(known, granter, agent, &rules)?;
                }
                vec![Change::RulesSet { agent: agent.clone(), rules }]
            }
            RegistryWish::Subscribe { channel, agent } => {
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
            RegistryWish::Unsubscribe { channel, agent } => {
                let there = known.channels.get(channel);
                if !there.is_some_and(|there| there.subscribers.contains_key(agent)) {
                    return Ok(Decision::unchanged(repeated()));
                }
                vec![Change::Unsubscribed { channel: channel.clone(), agent: agent.clone() }]
            }
            RegistryWish::IssueToken(token) => {
                vec![Change::TokenIssued(issued(known, granter.as_ref(), token)?)]
            }
            RegistryWish::RevokeToken(id) => {
                let token = known.tokens.get(id).ok_or(Refusal::TokenNotFound(*id))?;
                if token.ended_at.is_some() {
                    return Ok(Decision::unchanged(repeated()));
                }
                vec![Change::TokenRevoked { token: *id }]
            }
            RegistryWish::SetTenant(tenant) => vec![Change::TenantSet(tenant.clone())],
            RegistryWish::SetLimits { target, limits } => {
                if let Some(limits) = limits {
                    limits.check().map_err(Refusal::InvalidTerms)?;
                }
                let before = known.guards.breakers.get(target).and_then(|known| known.own);
                if before == *limits {
                    return Ok(Decision::unchanged(repeated()));
                }
                vec![Change::LimitsSet { target: target.clone(), limits: *limits }]
            }
            RegistryWish::Pause { target, until } => {
                if until.is_some_and(|until| until <= now) {
                    return Err(Refusal::InvalidTerms("until lies in the past".into()));
                }
                let before = known.pause_of(target, now);
                if before.is_some_and(|before| before.until == *until) {
                    return Ok(Decision::unchanged(repeated()));
                }
                if before.is_none() && known.pauses.len() >= PAUSES_MAX {
                    let text = format!("{PAUSES_MAX} targets are paused already");
                    return Err(Refusal::InvalidTerms(text));
                }
                vec![Change::TargetPaused { target: target.clone(), until: *until }]
            }
            RegistryWish::Resume { target } => {
                if !known.pauses.contains_key(target) {
                    return Ok(Decision::unchanged(repeated()));
                }
                vec![Change::TargetResumed { target: target.clone() }]
            }
            RegistryWish::DeclarePipeline(pipeline) => {
                let (name, version) = (&pipeline.name, pipeline.version);
                match known.pipelines.get(&(name.clone(), version)) {
                    Some(before) if **before == **pipeline => {
                        return Ok(Decision::unchanged(repeated()));
                    }
                    Some(_) => {
                        return Err(Refusal::InvalidTerms(format!(
                            "pipeline {name:?} changed, and still calls itself version {version}; \
                             raise its version"
                        )));
                    }
                    None => {}
                }
                if known.pipelines.keys().filter(|(it, _)| it == name).count()
                    >= PIPELINE_VERSIONS_MAX
                {
                    let text = format!("pipeline {name:?} has {PIPELINE_VERSIONS_MAX} versions");
                    return Err(Refusal::InvalidTerms(text));
                }
                vec![Change::PipelineDeclared { pipeline: pipeline.clone() }]
            }
            RegistryWish::Alert(wish) => {
                let Some(change) = wish.decide(known, now)? else {
                    return Ok(Decision::unchanged(repeated()));
                };
                body = wish.body();
                vec![change]
            }
            RegistryWish::NoteDenied { agent, code, operation } => {
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

impl ChangeRegistry {
    /// The agent that becomes known by it.
    fn names(&self) -> Option<&AgentId> {
        match &self.wish {
            RegistryWish::Publish { agent, .. }
            | RegistryWish::Enroll { agent, .. }
            | RegistryWish::Join { agent, .. }
            | RegistryWish::SetRules { agent, .. } => Some(agent),
            RegistryWish::IssueToken(token) => Some(&token.agent),
            RegistryWish::SetStanding { .. }
            | RegistryWish::Rotate { .. }
            | RegistryWish::Revoke { .. }
            | RegistryWish::Subscribe { .. }
            | RegistryWish::Unsubscribe { .. }
            | RegistryWish::RevokeToken(_)
            | RegistryWish::SetTenant(_)
            | RegistryWish::SetLimits { .. }
            | RegistryWish::Pause { .. }
            | RegistryWish::Resume { .. }
            | RegistryWish::DeclarePipeline(_)
            | RegistryWish::Alert(_)
            | RegistryWish::NoteDenied { .. } => None,
        }
    }
}

/// The end of every token that counts and is meant.
fn tokens_with(known: &Registry, now: Timestamp, is_meant: impl Fn(&Token) -> bool) -> Vec<Change> {
    let tokens = known.tokens.values().map(|token| &**token);
    let meant = tokens.filter(|token| token.counts(now) && is_meant(token));
    meant.map(|token| Change::TokenRevoked { token: token.id }).collect()
}

fn rules_of<'r>(known: &'r Registry, agent: &AgentId) -> &'r [Rule] {
    known.agents.get(agent).map_or(&[], |agent| &agent.rules)
}

/// The rules that an agent gets. What it has already and keeps is no grant, as long as it keeps
/// every denial, too.
fn granted(
    known: &Registry,
    granter: &Granter<'_>,
    agent: &AgentId,
    rules: &[Rule],
) -> Result<Vec<Rule>, Refusal> {
    let had = rules_of(known, agent);
    let mut denials = had.iter().filter(|rule| rule.effect == Effect::Deny);
    let keeps_denials = denials.all(|denial| rules.contains(denial));
    let is_new = |rule: &&Rule| !(keeps_denials && had.contains(rule));
    let new: Vec<_> = rules.iter().filter(is_new).cloned().collect();
    granter.covers(&new)?;
    if new.is_empty() {
        return Ok(rules.to_vec());
    }
    checked(&granter.with_denials(rules))
}

/// Who was taken out comes back with all its rights, so whoever lets it back in grants them.
fn may_bring_back(
    known: &Registry,
    granter: Option<&Granter<'_>>,
    agent: &AgentId,
) -> Result<(), Refusal> {
    let out = known.agents.get(agent).filter(|it| it.standing == Standing::Deregistered);
    match (out, granter) {
        (Some(agent), Some(granter)) => granter.gives_all(&agent.rules),
        (None, _) | (_, None) => Ok(()),
    }
}

/// The rules that come with a key of an agent: whoever has it may do all of it.
fn handed_over(granter: &Granter<'_>, rules: &[Rule]) -> Result<Vec<Rule>, Refusal> {
    granter.covers(rules)?;
    checked(&granter.with_denials(rules))
}

/// The rules of an invitation, which must still be its maker's to give: otherwise who loses a right
/// gets it back by an invitation from before.
fn still_granted(known: &Registry, invited: &Token, now: Timestamp) -> Result<Vec<Rule>, Refusal> {
    let Some(maker) = &invited.made_by else { return Ok(invited.rules.clone()) };
    let there = known.agents.get(maker).filter(|maker| maker.standing != Standing::Deregistered);
    let made_by_key = match invited.made_from {
        Some(Origin::Key(key)) => known.holder_of(key, now).is_some(),
        Some(Origin::Token(_)) | None => true,
    };
    if there.is_none() || !made_by_key {
        return Err(Refusal::TokenRefused);
    }
    let shown = invited.made_from.map(|from| match from {
        Origin::Key(key) => ShownBy::Key(key),
        Origin::Token(token) => ShownBy::Token(token),
    });
    let granter = Granter::new(known, maker, shown);
    handed_over(&granter, &invited.rules).map_err(|_| Refusal::TokenRefused)
}

/// A token as it is issued: within what its maker may do, and with where it came from.
fn issued(
    known: &Registry,
    granter: Option<&Granter<'_>>,
    wanted: &Token,
) -> Result<Token, Refusal> {
    let mut token = Token { rules: checked(&wanted.rules)?, ..wanted.clone() };
    let Some(granter) = granter else { return Ok(token) };
    token.made_by = Some(granter.agent.clone());
    token.made_from = granter.origin();
    if known.depth(&token) > DEPTH_MAX {
        return Err(Refusal::TokenTooDeep { max: DEPTH_MAX });
    }
    match token.purpose {
        Purpose::Join => {
            granter.may_change_keys(&token.agent, None)?;
            token.rules = handed_over(granter, &token.rules)?;
        }
        Purpose::Bearer => {
            let has = rules_of(known, &token.agent);
            token.rules = checked(&granter.bearer(&token.agent, has, &token.rules)?)?;
        }
    }
    // What a token makes to act with ends with it.
    if let (Purpose::Bearer, Some(Origin::Token(from))) = (token.purpose, token.made_from) {
        let end = known.tokens.get(&from).and_then(|from| from.expires_at);
        token.expires_at = token.expires_at.into_iter().chain(end).min();
    }
    Ok(token)
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
    let patterns: usize = rules.iter().map(|rule| rule.targets.len() + rule.projects.len()).sum();
    if patterns > PATTERNS_TOTAL_MAX {
        let text = format!("{patterns} patterns in all, at most {PATTERNS_TOTAL_MAX}");
        return Err(Refusal::InvalidRules(text));
    }
    match rules.iter().enumerate().find_map(|(at, rule)| rule.fault().map(|f| (at, f))) {
        Some((at, fault)) => Err(Refusal::InvalidRules(format!("rules[{at}]: {fault}"))),
        None => Ok(rules.to_vec()),
    }
}

/// Whoever is no longer known cannot finish what it holds, so it waits for somebody else at once.
fn release(agent: &AgentId, view: &dyn View) -> Vec<NewEvent> {
    let held = view.held().into_iter().filter_map(|id| view.handoff(id));
    let held = held.filter(|handoff| handoff.state.worker() == Some(agent));
    held.map(|handoff| {
        let event = match &handoff.state {
            State::Answered(_) => Event::KeepEnded,
            state => {
                let fence = state.last_claim().map_or(handoff.fence, |claim| claim.fence);
                Event::LeaseLost { fence, cause: LossCause::Revoked }
            }
        };
        NewEvent::on(handoff, Actor::Broker, event)
    })
    .collect()
}
