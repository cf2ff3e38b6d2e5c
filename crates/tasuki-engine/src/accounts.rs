// SPDX-License-Identifier: Apache-2.0
//! Agents, their keys, tokens and tenants, as callers may look after them. An agent looks after
//! itself; an administrator after everybody of its tenant; one of the default tenant after all.

use std::sync::Arc;

use serde_json::Value;
use tasuki_core::address::{Endpoint, Guard};
use tasuki_core::canonical::Body;
use tasuki_core::commands::{Command, RegistryWish};
use tasuki_core::event::Actor;
use tasuki_core::identity::{PublicKey, Signature, statement};
use tasuki_core::ids::{KeyId, TENANT_DEFAULT, TenantId, TokenId};
use tasuki_core::manifest::{Delivery, Manifest, Problem};
use tasuki_core::registry::names::ADMINISTRATOR;
use tasuki_core::registry::rules::{Permission, Rule};
use tasuki_core::registry::{Agent, Purpose, Quotas, Signed, Standing, Tenant, Token};
use tasuki_core::{AgentId, Refusal};

use crate::authenticate::Refused;
use crate::caller::Caller;
use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::{Error, denied, invalid};
use crate::tokens;
use tasuki_protocol::Code;

/// How long a join token counts where nothing is said, and at most.
const JOIN_MS: u64 = 10 * 60 * 1000;
const JOIN_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;
/// How long a bearer token counts where nothing is said, and at most.
const BEARER_MS: u64 = 30 * 24 * 60 * 60 * 1000;
const BEARER_MS_MAX: u64 = 366 * 24 * 60 * 60 * 1000;
/// How long an old key may still count after it was replaced.
const GRACE_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;
/// How long the first administrator's token counts: long enough to enroll a key with it.
const ADMINISTRATOR_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// The agent that the first administrator's token speaks for.
/// Stands for whoever asks where nobody is asked who it is.
const ANYONE: &str = "anyone";

/// A token that is to be issued.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub purpose: Purpose,
    pub agent: AgentId,
    pub rules: Vec<Rule>,
    pub expires_in_ms: Option<u64>,
}

/// So many steps of validation cost a thousandth of a request.
const STEPS_PER_THOUSANDTH: u64 = 100;

/// A token with its text, which is shown this once.
#[derive(Debug, Clone)]
pub struct Issued {
    pub token: Token,
    pub text: String,
}

/// An agent with its new key.
#[derive(Debug, Clone)]
pub struct Enrolled {
    pub agent: Arc<Agent>,
    pub key_id: KeyId,
}

impl Engine {
    /// Takes a request of a caller in, unless its tenant makes more of them than it may.
    pub fn admit(&self, caller: &Caller) -> Result<(), Error> {
        if let Some(agent) = caller.agent() {
            self.presence.heard(agent, self.now());
        }
        let tenant = caller.tenant();
        let registry = self.registry();
        let Some(rate) = registry.quotas(tenant.as_str()).and_then(|q| q.requests_per_second)
        else {
            return Ok(());
        };
        let taken = self.rates.take(&tenant, rate, self.store.clock().now());
        taken.map_err(|retry_after_ms| Error::Quota {
            message: format!("tenant {tenant} makes more than {rate} requests in a second"),
            retry_after_ms,
        })
    }

    /// Charges a tenant that has a rate for steps of validation, as if it had made more requests.
    pub(crate) fn charge(&self, tenant: &str, steps: u64) {
        if let Ok(tenant) = tenant.parse() {
            self.rates.charge(&tenant, steps / STEPS_PER_THOUSANDTH);
        }
    }

    /// How many pieces of work that need the processor are being done.
    pub fn working(&self) -> usize {
        self.pool.working()
    }

    /// Writes into the audit log that somebody known tried what it may not do.
    pub async fn note_denied(&self, caller: &Caller, code: Code, operation: &str) {
        // Whoever passes work on without what binds it is to be known, also where nobody is asked who
        // it is.
        let breaches = [Code::ConstraintDropped, Code::ConstraintAltered, Code::IntentAltered];
        let nobody = breaches.contains(&code).then(|| ANYONE.parse::<AgentId>().ok()).flatten();
        let Some(agent) = caller.agent().or(nobody.as_ref()) else { return };
        // What may not be seen is not there, so looking for it tells as much as being forbidden. The rest
        // ran into a wall that is none of rights.
        let telling = [
            Code::OtherTenant,
            Code::HandoffNotFound,
            Code::TaskNotFound,
            Code::AgentNotFound,
            Code::TokenNotFound,
            Code::NotTarget,
            Code::NotOwner,
            Code::InvalidManifest,
            Code::KeyTaken,
            Code::NameTaken,
            Code::QuotaExceeded,
            Code::SecretFound,
            Code::TokenTooDeep,
            Code::TrustRaised,
        ];
        let is_telling =
            code.status() == 403 || telling.contains(&code) || breaches.contains(&code);
        if !is_telling || !self.denials.first(agent, code.as_str(), self.now()) {
            return;
        }
        // A name in a path may be a secret, too.
        let operation = match self.settings.secrets.check(&Value::from(operation)) {
            Ok(_) => operation.chars().take(200).collect(),
            Err(_) => operation.split(' ').take(1).chain(["…"]).collect::<Vec<_>>().join(" "),
        };
        let wish = RegistryWish::NoteDenied {
            agent: agent.clone(),
            code: code.as_str().to_owned(),
            operation,
        };
        if let Err(error) = self.change(caller, vec![wish]).await {
            tracing::warn!(%agent, %code, %error, "a refusal could not be recorded");
        }
    }

    pub(crate) async fn change(&self, by: &Caller, wishes: Vec<RegistryWish>) -> Result<(), Error> {
        let shown = by.shown();
        let by = by.agent().map_or(Actor::Broker, |agent| Actor::Agent(agent.clone()));
        let command = |wish| Command::registry(by.clone(), shown, wish);
        for reply in self.store.execute(wishes.into_iter().map(command).collect()).await? {
            reply?;
        }
        Ok(())
    }

    /// Makes sure that somebody can administer a broker that asks everybody who it is. Returns the
    /// token of the first administrator if there was none.
    pub async fn first_administrator(&self) -> Result<Option<String>, Error> {
        let administers = |agent: &Arc<Agent>| {
            agent.rules.iter().any(|rule| rule.permissions.contains(&Permission::Administer))
        };
        if self.registry().agents.values().any(administers) {
            return Ok(None);
        }
        let agent: AgentId = ADMINISTRATOR.parse().expect("the name keeps to its alphabet");
        Ok(Some(self.make_administrator(agent).await?))
    }

    /// Makes a new token for the first administrator, whatever became of it, and ends the tokens
    /// that the broker made for it before. For who has the data directory; it is in the log.
    pub async fn recover_administrator(&self) -> Result<String, Error> {
        let agent: AgentId = ADMINISTRATOR.parse().expect("the name keeps to its alphabet");
        let registry = self.registry();
        let mut wishes = Vec::new();
        let before = registry.tokens.values().filter(|token| {
            token.made_by.is_none() && token.agent == agent && token.purpose == Purpose::Bearer
        });
        wishes.extend(before.map(|token| RegistryWish::RevokeToken(token.id)));
        let known = registry.agents.get(&agent);
        if known.is_some_and(|known| known.standing == Standing::Deregistered) {
            let standing = Standing::Active;
            wishes.push(RegistryWish::SetStanding { agent: agent.clone(), standing });
        }
        self.change(&Caller::Anyone, wishes).await?;
        self.make_administrator(agent).await
    }

    async fn make_administrator(&self, agent: AgentId) -> Result<String, Error> {
        let rules = vec![Rule::everything()];
        let ends = Some(ADMINISTRATOR_MS);
        let (text, token) = self.new_token(Purpose::Bearer, &agent, rules.clone(), ends);
        let wishes = vec![RegistryWish::SetRules { agent, rules }, RegistryWish::IssueToken(token)];
        self.change(&Caller::Anyone, wishes).await?;
        Ok(text)
    }

    pub(crate) fn new_token(
        &self,
        purpose: Purpose,
        agent: &AgentId,
        rules: Vec<Rule>,
        expires_in_ms: Option<u64>,
    ) -> (String, Token) {
        let id = TokenId(self.ids.random());
        let (text, secret) = tokens::make(id, [self.ids.random(), self.ids.random()]);
        let now = self.now();
        let token = Token {
            id,
            purpose,
            secret,
            agent: agent.clone(),
            rules,
            issued_at: now,
            expires_at: expires_in_ms.map(|ms| now.plus_ms(ms)),
            ended_at: None,
            made_by: None,
            made_from: None,
        };
        (text, token)
    }

    fn known_agent(&self, id: &AgentId) -> Result<Arc<Agent>, Error> {
        let found = self.registry().agents.get(id).cloned();
        found.ok_or_else(|| Refusal::AgentNotFound(id.clone()).into())
    }

    /// Enrolls a key with a join token. Whoever has the token and the secret key may do it.
    pub async fn join(
        &self,
        token: &str,
        agent: AgentId,
        key: PublicKey,
        proof: &Signature,
    ) -> Result<Enrolled, Error> {
        let (token, secret) = tokens::parse(token.trim()).ok_or(Refusal::TokenRefused)?;
        // The token's tenant counts, so that an agent need not know in which one it will be.
        let tenant = self.registry().tokens.get(&token).map(|token| token.agent.tenant().parse());
        let agent = match tenant {
            Some(Ok(tenant)) => agent.seen_from(&tenant),
            _ => agent,
        };
        possesses(key, &agent, proof)?;
        let wish = RegistryWish::Join { token, secret, agent: agent.clone(), key };
        self.change(&Caller::Anyone, vec![wish]).await?;
        Ok(Enrolled { agent: self.known_agent(&agent)?, key_id: key.id() })
    }
}

/// A key is enrolled only by somebody who can sign with it.
fn possesses(key: PublicKey, agent: &AgentId, proof: &Signature) -> Result<(), Error> {
    let text = statement::statement("enroll", &[agent.name().as_bytes(), key.as_bytes()]);
    if key.verify(&text, proof) {
        return Ok(());
    }
    Err(invalid("proof", "is no signature of this key over the agent's name and the key"))
}

/// Capabilities and fallbacks of a manifest that belong to another tenant than its agent.
fn names_of_others(manifest: &Manifest, agent: &AgentId) -> Vec<Problem> {
    let tenant: TenantId = agent.tenant().parse().unwrap_or_default();
    let problem = |path: String| Problem { path, problem: "belongs to another tenant".into() };
    let capabilities = manifest.capabilities.iter().enumerate();
    let mut problems: Vec<_> = capabilities
        .filter(|(_, entry)| entry.name.seen_from(&tenant).tenant() != agent.tenant())
        .map(|(number, _)| problem(format!("capabilities[{number}].name")))
        .collect();
    let fallbacks = manifest.fallbacks.iter().enumerate();
    problems.extend(
        fallbacks
            .filter(|(_, name)| name.seen_from(&tenant).tenant() != agent.tenant())
            .map(|(number, _)| problem(format!("fallbacks[{number}]"))),
    );
    problems
}

/// A URL to which the broker will not deliver, as far as that can be seen without looking up names.
fn unreachable(manifest: &Manifest, guard: &Guard) -> Option<Problem> {
    let Delivery::Webhook { url } = &manifest.delivery else { return None };
    let checked = match Endpoint::parse(url) {
        Ok(endpoint) => guard.check_host(&endpoint.host),
        Err(problem) => Err(problem.into()),
    };
    let problem = |why| format!("the broker does not deliver there: {why}");
    checked.err().map(|why| Problem { path: "delivery.url".into(), problem: problem(why) })
}

impl Desk {
    /// Writes into the audit log that a part of a batch was refused.
    pub async fn note_denied(&self, code: Code, operation: &str) {
        self.engine.note_denied(&self.caller, code, operation).await;
    }

    /// The same desk for the caller as it is known by now, if it would still be let in.
    pub fn renewed(&self) -> Result<Self, Error> {
        let caller = self.engine.renewed(&self.caller)?;
        Ok(Self { engine: self.engine.clone(), caller })
    }

    /// The agent that a request names, which the caller must look after.
    fn named(&self, named: &AgentId) -> Result<AgentId, Error> {
        let agent = self.caller.agent_named(named);
        self.looks_after(&agent)?;
        Ok(agent)
    }

    /// Whether the caller looks after an agent, by its full name. What belongs to others is not
    /// there.
    pub(crate) fn looks_after(&self, agent: &AgentId) -> Result<(), Error> {
        self.looks_after_by(Permission::Administer, agent)
    }

    fn looks_after_by(&self, permission: Permission, agent: &AgentId) -> Result<(), Error> {
        let own = self.caller.agent() == Some(agent);
        let tenant = self.caller.tenant();
        let within = agent.tenant() == tenant.as_str() || self.caller.is_operator();
        if !within {
            return Err(Refusal::AgentNotFound(agent.clone()).into());
        }
        // A token that takes something away must not get it back by way of its agent.
        if own && !self.caller.has_full_rights() {
            return Err(denied("a token that is narrower than its agent does not look after it"));
        }
        if own {
            return Ok(());
        }
        self.caller.must(permission, Some(agent.name()))
    }

    fn administered(&self, named: &AgentId) -> Result<AgentId, Error> {
        let agent = self.named(named)?;
        self.caller.must(Permission::Administer, Some(agent.name()))?;
        Ok(agent)
    }

    /// Publishes a manifest. It must bear the agent's signature if the agent has a key.
    pub async fn publish(
        &self,
        manifest: serde_json::Value,
        signed: Option<Signed>,
        version: Option<u32>,
    ) -> Result<Arc<Agent>, Error> {
        let body = Body::of(&manifest);
        let manifest = Manifest::parse(manifest).map_err(Error::Manifest)?;
        let agent = self.named(&manifest.agent_id)?;
        let mut problems = names_of_others(&manifest, &agent);
        problems.extend(unreachable(&manifest, &self.engine.settings.guard));
        if !problems.is_empty() {
            return Err(Error::Manifest(problems));
        }
        let now = self.now();
        let known = self.engine.registry().agents.get(&agent).cloned();
        let mut keys = known.iter().flat_map(|agent| agent.keys_at(now));
        match &signed {
            Some(signed) => {
                let key = keys.find(|known| known.key.id() == signed.key_id);
                let right = key.is_some_and(|known| {
                    known.key.verify(&statement::manifest(body.hash), &signed.signature)
                });
                if !right {
                    return Err(denied("the manifest's signature is not one of the agent's key"));
                }
            }
            None if keys.next().is_some() => {
                return Err(denied("an agent that has a key signs its manifest with it"));
            }
            None => {}
        }
        let wish = RegistryWish::Publish { agent: agent.clone(), manifest: body, signed, version };
        self.engine.change(&self.caller, vec![wish]).await?;
        self.engine.known_agent(&agent)
    }

    pub async fn set_standing(
        &self,
        named: &AgentId,
        standing: Standing,
    ) -> Result<Arc<Agent>, Error> {
        let permission = match standing {
            Standing::Active | Standing::Draining => Permission::Operate,
            Standing::Deregistered => Permission::Administer,
        };
        let agent = self.caller.agent_named(named);
        self.looks_after_by(permission, &agent)?;
        let wish = RegistryWish::SetStanding { agent: agent.clone(), standing };
        self.engine.change(&self.caller, vec![wish]).await?;
        self.engine.known_agent(&agent)
    }

    /// Enrolls a key by the word of an administrator.
    pub async fn enroll(
        &self,
        named: &AgentId,
        key: PublicKey,
        rules: Option<Vec<Rule>>,
    ) -> Result<Enrolled, Error> {
        let agent = self.administered(named)?;
        let wish = RegistryWish::Enroll { agent: agent.clone(), key, rules };
        self.engine.change(&self.caller, vec![wish]).await?;
        Ok(Enrolled { agent: self.engine.known_agent(&agent)?, key_id: key.id() })
    }

    /// Replaces a key. The old one counts for a while, so that nothing under way is cut off.
    pub async fn rotate(
        &self,
        named: &AgentId,
        old: KeyId,
        new: PublicKey,
        proof: &Signature,
        grace_ms: u64,
    ) -> Result<Enrolled, Error> {
        let agent = self.named(named)?;
        possesses(new, &agent, proof)?;
        if grace_ms > GRACE_MS_MAX {
            return Err(invalid("grace_ms", format!("is {grace_ms}, at most {GRACE_MS_MAX}")));
        }
        let wish = RegistryWish::Rotate { agent: agent.clone(), old, new, grace_ms };
        self.engine.change(&self.caller, vec![wish]).await?;
        Ok(Enrolled { agent: self.engine.known_agent(&agent)?, key_id: new.id() })
    }

    /// Revokes a key at once. With its last key an agent loses what it holds.
    pub async fn revoke(&self, named: &AgentId, key: KeyId) -> Result<Arc<Agent>, Error> {
        let agent = self.named(named)?;
        let wish = RegistryWish::Revoke { agent: agent.clone(), key };
        self.engine.change(&self.caller, vec![wish]).await?;
        self.engine.known_agent(&agent)
    }

    pub async fn set_rules(&self, named: &AgentId, rules: Vec<Rule>) -> Result<Arc<Agent>, Error> {
        let agent = self.administered(named)?;
        self.engine.known_agent(&agent)?;
        let wish = RegistryWish::SetRules { agent: agent.clone(), rules };
        self.engine.change(&self.caller, vec![wish]).await?;
        self.engine.known_agent(&agent)
    }

    /// Issues a token. A bearer token allows at most what its agent may do, so an agent may issue
    /// its own; who may join is an administrator's to say.
    pub async fn issue_token(&self, new: NewToken) -> Result<Issued, Error> {
        let agent = match new.purpose {
            Purpose::Join => self.administered(&new.agent)?,
            Purpose::Bearer => self.named(&new.agent)?,
        };
        let (usual, max) = match new.purpose {
            Purpose::Join => (JOIN_MS, JOIN_MS_MAX),
            Purpose::Bearer => (BEARER_MS, BEARER_MS_MAX),
        };
        let span = new.expires_in_ms.unwrap_or(usual);
        if !(1..=max).contains(&span) {
            return Err(invalid("expires_in_ms", format!("is {span}, expected 1 to {max}")));
        }
        if new.purpose == Purpose::Bearer {
            self.engine.known_agent(&agent)?;
        }
        let (text, token) = self.engine.new_token(new.purpose, &agent, new.rules, Some(span));
        let id = token.id;
        self.engine.change(&self.caller, vec![RegistryWish::IssueToken(token)]).await?;
        let token = self.engine.registry().tokens.get(&id).cloned();
        let token = Arc::unwrap_or_clone(token.ok_or(Refusal::TokenNotFound(id))?);
        Ok(Issued { token, text })
    }

    pub async fn revoke_token(&self, id: TokenId) -> Result<Arc<Token>, Error> {
        let found = |engine: &Engine| engine.registry().tokens.get(&id).cloned();
        let token = found(&self.engine).ok_or(Refusal::TokenNotFound(id))?;
        // Somebody else's token is not there.
        self.looks_after(&token.agent).map_err(|_| Refusal::TokenNotFound(id))?;
        self.engine.change(&self.caller, vec![RegistryWish::RevokeToken(id)]).await?;
        Ok(found(&self.engine).unwrap_or(token))
    }

    /// The tokens that a caller looks after, the newest first.
    #[must_use]
    pub fn tokens(&self) -> Vec<Arc<Token>> {
        let registry = self.engine.registry();
        let mut tokens: Vec<_> = registry.tokens.values().cloned().collect();
        tokens.retain(|token| self.looks_after(&token.agent).is_ok());
        for token in &mut tokens {
            let ended_at = registry.revoked_at(token);
            if token.ended_at != ended_at {
                Arc::make_mut(token).ended_at = ended_at;
            }
        }
        tokens.sort_by_key(|token| std::cmp::Reverse((token.issued_at, token.id)));
        tokens
    }

    pub async fn set_quotas(&self, tenant: TenantId, quotas: Quotas) -> Result<Tenant, Error> {
        self.operates()?;
        let tenant = Tenant { id: tenant, quotas };
        let wish = RegistryWish::SetTenant(tenant.clone());
        self.engine.change(&self.caller, vec![wish]).await?;
        Ok(tenant)
    }

    /// Tenants with quotas or agents, by name.
    pub fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        self.operates()?;
        let registry = self.engine.registry();
        let mut tenants: std::collections::BTreeMap<TenantId, Quotas> =
            [(TenantId::default(), Quotas::default())].into();
        for agent in registry.agents.keys() {
            tenants.entry(agent.tenant().parse().unwrap_or_default()).or_default();
        }
        for tenant in registry.tenants.values() {
            tenants.insert(tenant.id.clone(), tenant.quotas.clone());
        }
        Ok(tenants.into_iter().map(|(id, quotas)| Tenant { id, quotas }).collect())
    }

    /// Requests that nobody stood behind, the latest last, and how many there were in all.
    pub fn refusals(&self) -> Result<(Vec<Refused>, u64), Error> {
        self.operates()?;
        Ok(self.engine.security.read())
    }

    /// Whether a caller may know an agent: itself, and those of its tenant that it may read of or
    /// look after. Who may drain an agent is told how it then stands.
    pub(crate) fn knows(&self, agent: &AgentId) -> bool {
        match &self.caller {
            Caller::Anyone => agent.tenant() == TENANT_DEFAULT,
            Caller::Known(known) => {
                let allowed = [Permission::Read, Permission::Operate, Permission::Administer]
                    .iter()
                    .any(|permission| self.caller.may(*permission, Some(agent.name())));
                agent.tenant() == known.tenant.as_str() && (known.agent == *agent || allowed)
            }
        }
    }
}
