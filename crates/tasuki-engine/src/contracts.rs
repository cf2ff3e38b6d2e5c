// SPDX-License-Identifier: Apache-2.0
//! Who does the work, and on what terms: the receiver is chosen where the sender names a capability
//! and a policy, the input is held against the receiver's schema, and terms that its manifest does
//! not allow are refused before anything is stored.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;
use serde_json::Value;
use tasuki_core::contract::{Agreement, Contract, FALLBACKS_MAX, Fill, Routing};
use tasuki_core::envelope::{
    CriterionReport, Envelope, ExpectedOutput, Fault, Parts, Payload, version,
};
use tasuki_core::manifest::CapabilityEntry;
use tasuki_core::registry::Standing;
use tasuki_core::route::{self, Candidate, Observed, Policy};
use tasuki_core::{AgentId, Body, Capability, Handoff, Target, Terms};

use crate::directory::{Listed, Listing};
use crate::engine::Engine;
use crate::error::{Error, invalid};
use crate::pool::Busy;
use crate::requests::FollowUp;
use crate::schemas::{Held, Schemas};

/// The majors of the envelope that this broker gives where the sender names none.
const MAJORS: &[u32] = version::MAJORS;
/// From how many attempts on an agent's lateness is held against its word.
const LATE_TRIES_MIN: u64 = route::SLA_TRIES_MIN as u64;

/// After how long a tenant that has too much waiting may try again.
const BUSY_MS: u64 = 1000;

/// How a receiver is chosen.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Route {
    pub policy: Policy,
    /// What a sticky choice sticks to.
    pub key: Option<String>,
}

/// A hop with its receiver and its terms settled, as far as the sender can settle them.
pub(crate) struct Settled {
    pub(crate) to: Target,
    pub(crate) terms: Terms,
    pub(crate) contract: Contract,
}

impl Engine {
    pub(crate) async fn listing(&self) -> Result<Arc<Listing>, Error> {
        self.directory.listing(&*self.store, &self.registry()).await
    }

    pub(crate) async fn settle(
        &self,
        from: &AgentId,
        hop: &FollowUp,
        parts: &Parts,
    ) -> Result<Settled, Error> {
        let capability = match &hop.to {
            Target::Capability(capability) => Some(capability.clone()),
            Target::Agent(_) => hop.capability.clone(),
        };
        // Who names an agent and nothing else asks nobody's manifest.
        let listing = match capability {
            Some(_) => self.listing().await?,
            None => Arc::default(),
        };
        let mut agreement = Agreement {
            capability: hop.capability.clone(),
            output_schema: None,
            expected_output: None,
            read_back: None,
            majors: hop.majors.clone(),
            budget_tokens: hop.budget_tokens,
            stage: hop.stage.clone(),
            has_gaps: false,
        };
        let mut routing =
            Routing { fallbacks: hop.fallbacks.clone(), diverted_from: None, routed: None };
        let mut to = hop.to.clone();
        if let (Target::Capability(capability), Some(wish)) = (&hop.to, &hop.route) {
            let able = self.accepting(from, &listing, capability, &hop.payload).await?;
            let able: Vec<_> = able.into_iter().filter(|one| one.agent.id != *from).collect();
            let candidates = self.candidates(capability, &able).await?;
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            if let Some(picked) = route::pick(wish.policy, &candidates, wish.key.as_deref(), turn) {
                to = Target::Agent(picked.agent);
                routing.routed = Some(picked.why);
                agreement.capability = Some(capability.clone());
            }
        }
        let mut terms = hop.terms.unwrap_or(self.settings.terms);
        if let Some(capability) = &capability {
            let entry = self.entry(from, &listing, &to, capability, &hop.payload).await?;
            if let Some((listed, entry)) = &entry {
                if hop.terms.is_none()
                    && let Some(timeout) = entry.timeout_seconds
                {
                    terms.work_ms = timeout.ms();
                }
                in_range(listed, entry, &terms, &agreement)?;
            }
        }
        if let Some(expected) = &parts.expected_output {
            agreement.expected_output = Some(expected.hash());
            if let Some(schema) = &expected.schema {
                self.compiles(from.tenant(), "output_schema", schema).await?;
                agreement.output_schema = Some(Body::of(schema).hash);
            }
        }
        agreement.read_back = hop.said.read_back.then(|| parts.read_back());
        let able = agreement.capability.clone().map(Target::Capability);
        self.add_fallbacks(&to, able, &mut routing.fallbacks).await?;
        let (after, fill) = (hop.after.clone(), Fill::of(&hop.metadata));
        let budget = hop.budget.filter(|budget| !budget.is_empty());
        let approvers = hop.approvers.clone();
        let contract =
            Contract { agreement, routing, after, budget, fill, approvers, ..Contract::default() };
        Ok(Settled { to, terms, contract })
    }

    /// After those that the sender names come those that the receiver's own manifest names, and then
    /// anybody who can do the same.
    async fn add_fallbacks(
        &self,
        to: &Target,
        able: Option<Target>,
        fallbacks: &mut Vec<Target>,
    ) -> Result<(), Error> {
        let Target::Agent(agent) = to else { return Ok(()) };
        let published = self.registry().agents.get(agent).is_some_and(|it| it.manifest.is_some());
        let mut others = Vec::new();
        if published {
            let listing = self.listing().await?;
            let own = listing.agents.get(agent).map(|listed| &listed.manifest.fallbacks[..]);
            let tenant = agent.tenant().parse().ok();
            let seen = |other: &AgentId| match &tenant {
                Some(tenant) => other.seen_from(tenant),
                None => other.clone(),
            };
            others.extend(own.unwrap_or_default().iter().map(seen).map(Target::Agent));
        }
        others.extend(able);
        for other in others {
            let known = fallbacks.contains(&other) || other == *to;
            if !known && fallbacks.len() < FALLBACKS_MAX {
                fallbacks.push(other);
            }
        }
        Ok(())
    }

    /// Who has a capability and takes this input. If somebody has it and nobody takes the input,
    /// the sender hears why.
    async fn accepting(
        &self,
        from: &AgentId,
        listing: &Listing,
        capability: &Capability,
        payload: &Payload,
    ) -> Result<Vec<Arc<Listed>>, Error> {
        let mut first = None;
        let mut able = Vec::new();
        for listed in listing.able(capability) {
            let schema = listed.entry(capability).and_then(|entry| entry.input_schema.as_ref());
            let faults = match schema {
                Some(schema) => self.faults(from.tenant(), schema, payload).await?,
                None => Vec::new(),
            };
            if faults.is_empty() {
                able.push(listed.clone());
            } else {
                first.get_or_insert((listed.agent.id.clone(), faults));
            }
        }
        match first {
            Some((agent, faults)) if able.is_empty() => {
                Err(Error::Payload { what: format!("the input schema of {agent}"), faults })
            }
            _ => Ok(able),
        }
    }

    /// The one whose terms count: the receiver, or, where anybody may claim, somebody who can.
    async fn entry<'l>(
        &self,
        from: &AgentId,
        listing: &'l Listing,
        to: &Target,
        capability: &Capability,
        payload: &Payload,
    ) -> Result<Option<(&'l Listed, &'l CapabilityEntry)>, Error> {
        let Target::Agent(agent) = to else {
            self.accepting(from, listing, capability, payload).await?;
            return Ok(None);
        };
        let Some(listed) = listing.agents.get(agent) else { return Ok(None) };
        let Some(entry) = listed.entry(capability) else {
            let problem = format!("the manifest of {agent} does not have it");
            return Err(invalid("capability", problem));
        };
        let faults = match &entry.input_schema {
            Some(schema) => self.faults(from.tenant(), schema, payload).await?,
            None => Vec::new(),
        };
        if !faults.is_empty() {
            return Err(Error::Payload { what: format!("the input schema of {agent}"), faults });
        }
        Ok(Some((listed, entry)))
    }

    async fn candidates(
        &self,
        capability: &Capability,
        able: &[Arc<Listed>],
    ) -> Result<Vec<Candidate>, Error> {
        let now = self.now();
        let agents: Vec<_> = able.iter().map(|listed| listed.agent.id.clone()).collect();
        let targets: Vec<_> = agents.iter().cloned().map(Target::Agent).collect();
        let waiting = self.store.waiting(targets.clone()).await?;
        let registry = self.registry();
        let records = self.records.lock().expect("no holder of this lock panics");
        let candidates =
            able.iter().zip(targets).zip(waiting).map(|((listed, target), waiting)| {
                let id = &listed.agent.id;
                let entry = listed.entry(capability);
                let sla = entry.and_then(CapabilityEntry::sla_ppm);
                let track = records.tracks.get(&(id.clone(), Some(capability.clone())));
                Candidate {
                    agent: id.clone(),
                    live: self.presence.is_live(&target, now),
                    draining: listed.agent.standing != Standing::Active
                        || registry.pause_of(&target, now).is_some(),
                    load: waiting + records.holding(id),
                    concurrency: listed.manifest.concurrency,
                    observed: track.map(|track| {
                        let (successes, tries) = track.recent();
                        let allowed = sla.map_or(1_000_000, |ppm| 1_000_000 - u64::from(ppm));
                        let late = track.tries >= LATE_TRIES_MIN
                            && sla.is_some()
                            && track.late * 1_000_000 > track.tries * allowed;
                        Observed { tries, successes, sla_breached: late }
                    }),
                    declared_sla_ppm: sla,
                }
            });
        Ok(candidates.collect())
    }

    /// Holds a result against what was agreed, before it goes anywhere.
    pub(crate) async fn check_result(
        &self,
        handoff: &Handoff,
        envelope: Option<&Envelope>,
        result: Told<'_>,
    ) -> Result<Vec<String>, Error> {
        let mut verified = Vec::new();
        let payload = result.payload;
        let tenant = handoff.state.claim().map_or(handoff.from.tenant(), |it| it.agent.tenant());
        if let Some(expected) = agreed_output(handoff, envelope)? {
            if let Some(schema) = &expected.schema {
                let what = "the output schema of the offer";
                self.fits(tenant, what, schema, payload).await?;
            }
            let faults = expected.faults(payload, result.criteria, result.done);
            if !faults.is_empty() {
                return Err(Error::Payload { what: "what the offer expects".into(), faults });
            }
            verified.extend(expected.checked().into_iter().map(str::to_owned));
        }
        let (Some(capability), Some(claim)) = (asked(handoff), handoff.state.claim()) else {
            return Ok(verified);
        };
        let listing = self.listing().await?;
        let entry = listing.agents.get(&claim.agent).and_then(|listed| listed.entry(capability));
        if let Some(schema) = entry.and_then(|entry| entry.output_schema.as_ref()) {
            let what = format!("the output schema of {}", claim.agent);
            self.fits(tenant, &what, schema, payload).await?;
            verified.push("output_schema".to_owned());
        }
        Ok(verified)
    }

    /// Everything that keeps a payload from fitting a schema, worked out where nobody waits for it.
    async fn faults(
        &self,
        tenant: &str,
        schema: &Value,
        payload: &Payload,
    ) -> Result<Vec<Fault>, Error> {
        let (schema, payload) = (schema.clone(), payload.clone());
        self.worked_out(tenant, move |schemas| schemas.hold_payload(&schema, &payload)).await
    }

    /// The same for any value.
    pub(crate) async fn value_faults(
        &self,
        tenant: &str,
        schema: &Value,
        value: &Value,
    ) -> Result<Vec<Fault>, Error> {
        let (schema, value) = (schema.clone(), value.clone());
        self.worked_out(tenant, move |schemas| schemas.hold(&schema, &value)).await
    }

    async fn worked_out(
        &self,
        tenant: &str,
        work: impl FnOnce(&Schemas) -> Held + Send + 'static,
    ) -> Result<Vec<Fault>, Error> {
        let schemas = self.schemas.clone();
        let held = self.pool.run_for(tenant, move || work(&schemas)).await;
        let Held { faults, steps } = held.map_err(|busy| too_much(tenant, &busy))?;
        self.charge(tenant, steps);
        Ok(faults)
    }

    /// Whether a schema can be compiled and held against values.
    pub(crate) async fn compiles(
        &self,
        tenant: &str,
        field: &'static str,
        schema: &Value,
    ) -> Result<(), Error> {
        let (schemas, schema) = (self.schemas.clone(), schema.clone());
        let compiled = self.pool.run_for(tenant, move || schemas.compile(&schema).map(drop)).await;
        let compiled = compiled.map_err(|busy| too_much(tenant, &busy))?;
        compiled.map_err(|problem| invalid(field, problem))
    }

    async fn fits(
        &self,
        tenant: &str,
        what: &str,
        schema: &Value,
        payload: &Payload,
    ) -> Result<(), Error> {
        let faults = self.faults(tenant, schema, payload).await?;
        if faults.is_empty() {
            return Ok(());
        }
        Err(Error::Payload { what: what.to_owned(), faults })
    }

    /// The newest major of the envelope that an agent takes: by its own word now, or by its manifest.
    pub(crate) async fn major_for(&self, agent: &AgentId, majors: &[u32]) -> Result<u32, Error> {
        let published =
            || self.registry().agents.get(agent).is_some_and(|it| it.manifest.is_some());
        let accepted = if majors.is_empty() && published() {
            let listing = self.listing().await?;
            let listed = listing.agents.get(agent);
            listed.map_or_else(Vec::new, |listed| listed.manifest.accepted_majors.clone())
        } else {
            majors.to_vec()
        };
        let none = || invalid("majors", format!("are {accepted:?}, served are {MAJORS:?}"));
        version::serve(&accepted).ok_or_else(none)
    }
}

fn too_much(tenant: &str, _: &Busy) -> Error {
    let message = format!("tenant {tenant} has too many schemas waiting to be checked");
    Error::Quota { message, retry_after_ms: BUSY_MS }
}

/// What somebody says its result is.
#[derive(Clone, Copy)]
pub(crate) struct Told<'r> {
    pub(crate) payload: &'r Payload,
    pub(crate) criteria: &'r [CriterionReport],
    /// Whether the work is finished, and not sent back or up.
    pub(crate) done: bool,
}

/// What was agreed that a result must be.
fn agreed_output<'e>(
    handoff: &Handoff,
    envelope: Option<&'e Envelope>,
) -> Result<Option<&'e ExpectedOutput>, Error> {
    if !handoff.contract.agreement.names_output() {
        return Ok(None);
    }
    match envelope {
        Some(envelope) => Ok(envelope.parts.expected_output.as_ref()),
        // Bodies are erased only after the end, and then nothing is accepted any more.
        None if handoff.state.claim().is_none() => Ok(None),
        None => Err(invalid("handoff_id", "what was agreed cannot be read any more")),
    }
}

pub(crate) fn asked(handoff: &Handoff) -> Option<&Capability> {
    match (&handoff.contract.agreement.capability, &handoff.to) {
        (Some(capability), _) | (None, Target::Capability(capability)) => Some(capability),
        (None, Target::Agent(_)) => None,
    }
}

/// Terms that the receiver's manifest does not allow.
fn in_range(
    listed: &Listed,
    entry: &CapabilityEntry,
    terms: &Terms,
    agreement: &Agreement,
) -> Result<(), Error> {
    let agent = &listed.agent.id;
    let out = |problem: String| Err(Error::OutOfRange(format!("{agent}: {problem}")));
    let given = if agreement.majors.is_empty() { MAJORS } else { &agreement.majors };
    let takes = &listed.manifest.accepted_majors;
    if !given.iter().any(|major| takes.contains(major)) {
        return out(format!("takes envelopes of major {takes:?}, offered are {given:?}"));
    }
    let Some(limits) = &entry.limits else { return Ok(()) };
    let work_ms = terms.work_ms;
    if let Some(min) = limits.timeout_seconds_min.filter(|min| work_ms < min.ms()) {
        return out(format!("needs at least {} ms of work_ms, offered are {work_ms}", min.ms()));
    }
    if let Some(max) = limits.timeout_seconds_max.filter(|max| work_ms > max.ms()) {
        return out(format!("takes at most {} ms of work_ms, offered are {work_ms}", max.ms()));
    }
    if let Some(max) = limits.attempts_max.filter(|max| terms.attempts > *max) {
        return out(format!("takes at most {max} attempts, offered are {}", terms.attempts));
    }
    let budget = agreement.budget_tokens.zip(limits.budget_tokens_max);
    if let Some((budget, max)) = budget.filter(|(budget, max)| budget > max) {
        return out(format!("takes at most {max} budget_tokens, offered are {budget}"));
    }
    Ok(())
}
