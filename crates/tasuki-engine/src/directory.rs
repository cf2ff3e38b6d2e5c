// SPDX-License-Identifier: Apache-2.0
//! What agents say that they can do, read once from their manifests and found by capability.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tasuki_core::manifest::{CapabilityEntry, Manifest};
use tasuki_core::registry::{Agent, Registry, Standing};
use tasuki_core::{AgentId, Body, Capability, Position};
use tasuki_store::{PAGE_MAX, Store};
use tokio::sync::Mutex;

use crate::error::Error;
use crate::folds::observer::Declared;

/// An agent with its manifest.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) agent: Arc<Agent>,
    pub(crate) manifest: Arc<Manifest>,
    /// As it was published.
    pub(crate) body: Body,
}

impl Listed {
    pub(crate) fn entry(&self, capability: &Capability) -> Option<&CapabilityEntry> {
        self.manifest.capabilities.iter().find(|entry| entry.name.name() == capability.name())
    }
}

/// Everybody who published a manifest and was not taken out since.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pos: Position,
    pub(crate) agents: BTreeMap<AgentId, Arc<Listed>>,
    by_capability: Arc<HashMap<Capability, Vec<Arc<Listed>>>>,
}

impl Listing {
    pub(crate) fn able(&self, capability: &Capability) -> &[Arc<Listed>] {
        self.by_capability.get(capability).map_or(&[], Vec::as_slice)
    }
}

#[derive(Default)]
pub(crate) struct Directory {
    listing: Mutex<Arc<Listing>>,
    pub(crate) declared: Declared,
}

impl Directory {
    /// The listing as of what is known now. What did not change is not read again.
    pub(crate) async fn listing(
        &self,
        store: &dyn Store,
        registry: &Registry,
    ) -> Result<Arc<Listing>, Error> {
        let mut kept = self.listing.lock().await;
        if kept.pos == registry.changed_pos {
            return Ok(kept.clone());
        }
        let mut agents = BTreeMap::new();
        let mut anew = Vec::new();
        for agent in registry.agents.values() {
            let Some(published) = &agent.manifest else { continue };
            if agent.standing == Standing::Deregistered {
                continue;
            }
            let same = |listed: &&Arc<Listed>| {
                let before = &listed.agent;
                let hash = before.manifest.as_ref().map(|manifest| manifest.hash);
                hash == Some(published.hash) && before.standing == agent.standing
            };
            match kept.agents.get(&agent.id).filter(same) {
                Some(listed) => drop(agents.insert(agent.id.clone(), listed.clone())),
                None => anew.push(agent),
            }
        }
        let changed = !anew.is_empty();
        for some in anew.chunks(PAGE_MAX) {
            let ids = some.iter().map(|agent| agent.id.clone()).collect();
            let bodies = store.manifests(ids).await?;
            for (agent, body) in some.iter().zip(bodies) {
                let listed = body.and_then(|body| listed(agent, body));
                agents.extend(listed.map(|listed| (agent.id.clone(), listed)));
            }
        }
        // Tokens, rules and quotas change too, and mean nothing here.
        if !changed && agents.len() == kept.agents.len() {
            let by_capability = kept.by_capability.clone();
            *kept = Arc::new(Listing { pos: registry.changed_pos, agents, by_capability });
            return Ok(kept.clone());
        }
        let mut by_capability: HashMap<Capability, Vec<Arc<Listed>>> = HashMap::new();
        for (id, listed) in &agents {
            let tenant = id.tenant().parse().unwrap_or_default();
            for entry in &listed.manifest.capabilities {
                let name = entry.name.seen_from(&tenant);
                if name.tenant() != id.tenant() {
                    continue;
                }
                by_capability.entry(name).or_default().push(listed.clone());
            }
        }
        let mut declared = HashMap::new();
        for (capability, able) in &by_capability {
            for listed in able {
                let timeout = listed.entry(capability).and_then(|entry| entry.timeout_seconds);
                if let Some(timeout) = timeout {
                    let key = (listed.agent.id.clone(), capability.clone());
                    declared.insert(key, timeout.ms());
                }
            }
        }
        *self.declared.write().expect("no holder of this lock panics") = declared;
        let by_capability = Arc::new(by_capability);
        *kept = Arc::new(Listing { pos: registry.changed_pos, agents, by_capability });
        Ok(kept.clone())
    }
}

/// A manifest that was stored and cannot be read any more is nobody's: it was checked before.
fn listed(agent: &Arc<Agent>, body: Body) -> Option<Arc<Listed>> {
    let manifest = parsed(&body)?;
    Some(Arc::new(Listed { agent: agent.clone(), manifest, body }))
}

pub(crate) fn parsed(body: &Body) -> Option<Arc<Manifest>> {
    let value = serde_json::from_str(body.text()).ok()?;
    Manifest::parse(value).ok().map(Arc::new)
}
