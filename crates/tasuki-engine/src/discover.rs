// SPDX-License-Identifier: Apache-2.0
//! Finding agents by what they can do, what goes in and comes out, how they are tagged, whether
//! they are there, and how they fare.

use std::sync::Arc;

use serde_json::Value;
use tasuki_core::manifest::{Manifest, fits};
use tasuki_core::observe::Track;
use tasuki_core::registry::rules::Permission;
use tasuki_core::registry::{Agent, Standing};
use tasuki_core::{AgentId, Body, Capability, Position, Refusal, Target, Timestamp};

use tasuki_protocol::Search;

use crate::desk::Desk;
use crate::directory::{self, Listed};
use crate::engine::Engine;
use crate::error::{Error, invalid};

/// How many agents one search returns at most.
const FOUND_MAX: usize = 1000;
/// How long somebody who looks waits for the records.
const CATCH_UP_MS_MAX: u64 = 1000;

/// An agent as a caller sees it.
#[derive(Debug, Clone)]
pub struct SeenAgent {
    pub agent: Arc<Agent>,
    /// As it was published.
    pub manifest: Option<Body>,
    /// What it says, if that can still be read.
    pub declared: Option<Arc<Manifest>>,
    /// Whether the caller looks after it.
    pub trusted: bool,
    pub live: bool,
    pub last_seen: Option<Timestamp>,
    /// How many handoffs it holds, as far as this broker saw.
    pub holding: u64,
    pub tracks: Vec<(Option<Capability>, Track)>,
}

impl Desk {
    /// Shows an agent of the caller's tenant.
    pub async fn agent(&self, named: &AgentId) -> Result<SeenAgent, Error> {
        self.agent_if(named, |id| self.knows(id) || self.caller.is_operator()).await
    }

    /// An agent that the caller may know, or may send to: whoever hands it work has to know what it
    /// takes, and need not see what others hand it.
    pub async fn reachable(&self, named: &AgentId) -> Result<SeenAgent, Error> {
        let sends = |id: &AgentId| {
            id.tenant() == self.caller.tenant().as_str()
                && self.caller.may(Permission::Send, Some(id.name()))
        };
        self.agent_if(named, |id| self.knows(id) || sends(id)).await
    }

    async fn agent_if(
        &self,
        named: &AgentId,
        may: impl Fn(&AgentId) -> bool,
    ) -> Result<SeenAgent, Error> {
        let id = self.caller.agent_named(named);
        let agent = self.engine.registry().agents.get(&id).cloned();
        let agent = agent.filter(|_| may(&id));
        let agent = agent.ok_or(Refusal::AgentNotFound(id))?;
        self.engine.observed().await;
        let Some(published) = &agent.manifest else { return Ok(self.seen(agent, None)) };
        let listing = self.engine.listing().await?;
        let same = |listed: &&Arc<Listed>| listed.body.hash == published.hash;
        if let Some(listed) = listing.agents.get(&agent.id).filter(same) {
            return Ok(self.seen(agent, Some(listed)));
        }
        // Who was taken out is not listed any more.
        let manifest = self.engine.store.manifests(vec![agent.id.clone()]).await?.pop().flatten();
        let declared = manifest.as_ref().and_then(directory::parsed);
        Ok(SeenAgent { manifest, declared, ..self.seen(agent, None) })
    }

    fn seen(&self, agent: Arc<Agent>, listed: Option<&Arc<Listed>>) -> SeenAgent {
        let target = Target::Agent(agent.id.clone());
        let records = self.engine.records.lock().expect("no holder of this lock panics");
        let from = (agent.id.clone(), None);
        let tracks = records.tracks.range(from..).take_while(|((id, _), _)| *id == agent.id);
        let tracks = tracks.map(|((_, able), track)| (able.clone(), track.clone())).collect();
        SeenAgent {
            manifest: listed.map(|listed| listed.body.clone()),
            declared: listed.map(|listed| listed.manifest.clone()),
            trusted: self.looks_after(&agent.id).is_ok(),
            live: self.engine.presence.is_live(&target, self.now()),
            last_seen: self.engine.presence.last(&target),
            holding: records.holding(&agent.id),
            tracks,
            agent,
        }
    }

    /// Everybody of the caller's tenant who is what is looked for, by name.
    pub async fn discover(&self, search: Search) -> Result<Vec<SeenAgent>, Error> {
        let max = search.limit.unwrap_or(100);
        if !(1..=FOUND_MAX).contains(&max) {
            return Err(invalid("limit", format!("is {max}, expected 1 to {FOUND_MAX}")));
        }
        if search.capability.is_none() && (search.input.is_some() || search.output.is_some()) {
            return Err(invalid("capability", "is needed to compare schemas"));
        }
        let own = self.caller.tenant();
        let tenant = search.tenant.clone().unwrap_or_else(|| own.clone());
        if tenant != own {
            self.operates()?;
        }
        let known = |agent: &AgentId| match tenant == own {
            true => self.knows(agent),
            false => agent.tenant() == tenant.as_str(),
        };
        let capability = search.capability.as_ref().map(|it| it.seen_from(&tenant));
        self.engine.observed().await;
        let listing = self.engine.listing().await?;
        let candidates: Vec<Arc<Listed>> = match &capability {
            Some(capability) => listing.able(capability).to_vec(),
            None => listing.agents.values().cloned().collect(),
        };
        let mut found = Vec::new();
        for listed in candidates {
            if found.len() == max {
                break;
            }
            if known(&listed.agent.id) && self.is_sought(&listed, &search, capability.as_ref()) {
                // Rules and keys may be newer than the manifest.
                let agent = self.engine.registry().agents.get(&listed.agent.id).cloned();
                let agent = agent.unwrap_or_else(|| listed.agent.clone());
                found.push(self.seen(agent, Some(&listed)));
            }
        }
        // Who published nothing is known all the same, by its key or by asking for work, unless
        // something it would have to have published is asked for.
        if asks_nothing(&search) {
            let silent = self.silent(known).into_iter().map(|agent| self.seen(agent, None));
            let sought = silent.filter(|seen| search.live.is_none_or(|live| seen.live == live));
            found.extend(sought.take(max - found.len()));
            found.sort_by(|one, other| one.agent.id.cmp(&other.agent.id));
        }
        Ok(found)
    }

    /// Agents without a manifest: those with a key or rules, and those that are there now and have
    /// neither. Nobody is here who was taken out.
    fn silent(&self, known: impl Fn(&AgentId) -> bool) -> Vec<Arc<Agent>> {
        let registry = self.engine.registry();
        let enrolled = registry.agents.values().filter(|agent| {
            agent.manifest.is_none() && agent.standing != Standing::Deregistered && known(&agent.id)
        });
        let mut silent: Vec<_> = enrolled.cloned().collect();
        for target in self.engine.presence.live(self.now()) {
            let Target::Agent(id) = target else { continue };
            if registry.agents.contains_key(&id) || !known(&id) {
                continue;
            }
            let target = Target::Agent(id.clone());
            let since = self.engine.presence.last(&target).unwrap_or_else(|| self.now());
            silent.push(Arc::new(Agent {
                id,
                standing: Standing::Active,
                held_back: false,
                manifest: None,
                keys: Vec::new(),
                rules: Vec::new(),
                since,
                last_pos: Position(0),
            }));
        }
        silent
    }

    fn is_sought(&self, listed: &Listed, search: &Search, capability: Option<&Capability>) -> bool {
        let manifest = &listed.manifest;
        let entry = capability.and_then(|capability| listed.entry(capability));
        let tagged = |tag: &String| {
            manifest.tags.contains(tag) || entry.is_some_and(|entry| entry.tags.contains(tag))
        };
        let version = match entry {
            Some(entry) => entry.version.as_ref().or(manifest.version.as_ref()),
            None => manifest.version.as_ref(),
        };
        // An agent that says nothing of its schemas may take and give anything.
        let takes = |schema: &Value| {
            let own = entry.and_then(|entry| entry.input_schema.as_ref());
            own.is_none_or(|own| fits::fits_as_named(schema, own).is_ok())
        };
        let gives = |schema: &Value| {
            let own = entry.and_then(|entry| entry.output_schema.as_ref());
            own.is_some_and(|own| fits::fits_as_named(own, schema).is_ok())
        };
        let live = || {
            let target = Target::Agent(listed.agent.id.clone());
            self.engine.presence.is_live(&target, self.now())
        };
        search.tags.iter().all(tagged)
            && search.version.as_ref().is_none_or(|wanted| version == Some(wanted))
            && search.role.as_ref().is_none_or(|wanted| manifest.role.as_ref() == Some(wanted))
            && search.input.as_ref().is_none_or(takes)
            && search.output.as_ref().is_none_or(gives)
            && search.live.is_none_or(|wanted| live() == wanted)
            && search.reliability.is_none_or(|percent| self.fares(listed, capability, percent))
    }

    fn fares(&self, listed: &Listed, capability: Option<&Capability>, percent: u8) -> bool {
        let records = self.engine.records.lock().expect("no holder of this lock panics");
        let track = records.tracks.get(&(listed.agent.id.clone(), capability.cloned()));
        let (successes, tries) = track.map_or((0, 0), Track::recent);
        u64::from(successes) * 100 >= u64::from(tries) * u64::from(percent)
    }
}

impl Engine {
    /// Lets the records catch up with what is committed, so that whoever asks after its work was
    /// done finds it there.
    pub(crate) async fn observed(&self) {
        let head = self.store.head();
        let mut seen = self.head.clone();
        let caught_up = seen.wait_for(|seen| *seen >= head);
        // Records are worth a moment's wait and no more.
        tokio::select! {
            biased;
            _ = caught_up => {}
            () = self.store.clock().sleep_ms(CATCH_UP_MS_MAX) => {}
        }
    }
}

/// Whether nothing is asked that an agent would have to have published.
fn asks_nothing(search: &Search) -> bool {
    search.capability.is_none()
        && search.tags.is_empty()
        && search.version.is_none()
        && search.role.is_none()
        && search.reliability.is_none()
}
