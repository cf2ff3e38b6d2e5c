// SPDX-License-Identifier: Apache-2.0
//! From what the engine says to what is sent.

mod memories;

use serde_json::value::RawValue;
use tasuki_core::handoff::Review;
use tasuki_core::identity::PublicKey;
use tasuki_core::manifest::Manifest;
use tasuki_core::observe::Track;
use tasuki_core::{Body, Capability, Handoff, State, Task, Timestamp};
use tasuki_engine as engine;

use crate::error::Problem;
use crate::wire;

pub(crate) use memories::{context, memory, warnings};

pub(crate) fn raw(body: &Body) -> Box<RawValue> {
    body.json()
}

pub(crate) fn offered(handoff: &Handoff, listening: bool) -> wire::Offered {
    wire::Offered {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        status: "stored".into(),
        to: handoff.to.clone(),
        listening,
        routed: handoff.contract.routed,
        envelope: handoff.envelope,
        hop: handoff.hop,
        offered_at: handoff.offered_at,
        expires_at: handoff.expires_at,
    }
}

/// A granted claim. An envelope that is gone or a claim that is not there would be our fault.
pub(crate) fn claimed(granted: &engine::Granted) -> Result<wire::Claimed, Problem> {
    let handoff = &granted.handoff;
    let (Some(claim), Some(envelope)) = (handoff.state.claim(), &granted.envelope) else {
        return Err(missing());
    };
    Ok(wire::Claimed {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        claim_id: claim.claim_id,
        fence: claim.fence,
        attempt: handoff.claims,
        lease_ms: claim.lease_ms,
        lease_left_ms: granted.lease_left_ms,
        work_left_ms: granted.work_left_ms,
        envelope: raw(envelope),
        envelope_hash: handoff.envelope,
        taints: granted.taints.clone(),
        delivery: granted
            .delivery
            .as_ref()
            .map(|delivery| wire::Delivery { at: delivery.at, signed: delivery.signed.clone() }),
    })
}

pub(crate) fn waiting(granted: &engine::Granted) -> Result<wire::Waiting, Problem> {
    Ok(wire::Waiting {
        handoff_id: granted.handoff.id,
        task_id: granted.handoff.task_id,
        priority: granted.handoff.priority,
        envelope: raw(granted.envelope.as_ref().ok_or_else(missing)?),
    })
}

pub(crate) fn erased() -> Problem {
    Problem::new(
        "body_erased",
        "what this handoff carried was erased",
        "the task's events say who erased it and why",
    )
}

pub(crate) fn missing() -> Problem {
    Problem::new(
        "internal",
        "the body of this handoff is missing from the store",
        "run `tasuki audit verify` and restore a backup",
    )
}

pub(crate) fn moved(handoff: &Handoff) -> wire::Moved {
    wire::Moved {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        state: handoff.state.name().to_string(),
        status: handoff.status().to_string(),
    }
}

pub(crate) fn beat(granted: &engine::Granted) -> wire::Beat {
    wire::Beat {
        handoff_id: granted.handoff.id,
        lease_left_ms: granted.lease_left_ms,
        work_left_ms: granted.work_left_ms,
    }
}

pub(crate) fn part<T>(result: Result<T, Problem>) -> wire::Part<T> {
    match result {
        Ok(done) => wire::Part::Done(done),
        Err(error) => wire::Part::Failed { error },
    }
}

pub(crate) fn handoff(handoff: &Handoff, now: Timestamp) -> wire::Handoff {
    let (due_at, ended_at) = match &handoff.state {
        State::Scheduled { due } => (Some(*due), None),
        State::Completed { at, .. }
        | State::Cancelled { at }
        | State::DeadLettered { at, .. }
        | State::Failed { aborted: true, at } => (None, Some(*at)),
        State::AwaitingApproval
        | State::Pending { .. }
        | State::Claimed(_)
        | State::InProgress(_)
        | State::Failed { aborted: false, .. } => (None, None),
    };
    wire::Handoff {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        state: handoff.state.name().to_string(),
        status: handoff.status().to_string(),
        from_agent: handoff.from.clone(),
        to: handoff.to.clone(),
        control: handoff.control,
        envelope: handoff.envelope,
        hop: handoff.hop,
        priority: handoff.priority,
        terms: handoff.terms,
        contract: handoff.contract.clone(),
        counters: handoff
            .counters
            .iter()
            .map(|counter| wire::CounterOffer {
                agent: counter.agent.clone(),
                terms: counter.terms,
                budget_tokens: counter.budget_tokens,
            })
            .collect(),
        offered_at: handoff.offered_at,
        expires_at: handoff.expires_at,
        delivered_at: handoff.delivered_at,
        due_at,
        ended_at,
        ordering_key: handoff.ordering_key.clone(),
        redrive_of: handoff.redrive_of,
        holder: handoff.state.claim().map(|claim| wire::Holder {
            agent: claim.agent.clone(),
            fence: claim.fence,
            lease_left_ms: claim.ends_at().ms_after(now),
            work_left_ms: claim.hard_until.ms_after(now),
        }),
        result: match &handoff.state {
            State::Completed { result, .. } => Some(*result),
            _ => None,
        },
        dead_letter: dead_reason(&handoff.state),
        failures: handoff.failures,
        losses: handoff.losses,
        declined_by: handoff.declined_by.clone(),
        tried: handoff.tried.clone(),
        ack_left_ms: handoff.ack_by.map(|by| by.ms_after(now)),
        reviewer: handoff
            .reviewer
            .as_ref()
            .filter(|(_, until)| now < *until)
            .map(|(agent, _)| agent.clone()),
        retracted: handoff.retracted_at.is_some(),
        lifted: handoff
            .lifts
            .iter()
            .map(|lift| wire::LiftedConstraint { constraint: lift.constraint, by: lift.by.clone() })
            .collect(),
        trim_regret: handoff.fetched.clone(),
        attempts: handoff.attempts.iter().map(attempt).collect(),
    }
}

fn dead_reason(state: &State) -> Option<wire::DeadReason> {
    let State::DeadLettered { reason, review, .. } = state else { return None };
    Some(wire::DeadReason {
        reason: reason.to_string(),
        redriven_to: match review {
            Some(Review::Redriven { to, .. }) => Some(*to),
            Some(Review::Discarded { .. }) | None => None,
        },
        discarded: matches!(review, Some(Review::Discarded { .. })),
    })
}

fn attempt(attempt: &tasuki_core::handoff::Attempt) -> wire::Attempt {
    wire::Attempt {
        number: attempt.number,
        agent: attempt.agent.clone(),
        fence: attempt.fence,
        claimed_at: attempt.claimed_at,
        started_at: attempt.started_at,
        ended_at: attempt.ended.as_ref().map(|ended| ended.at),
        ended: attempt.ended.as_ref().map(|ended| ended.how.to_string()),
        late: attempt.late,
    }
}

pub(crate) fn task(task: &Task) -> wire::Task {
    wire::Task {
        task_id: task.id,
        state: task.state.to_string(),
        owner: task.owner.clone(),
        opened_by: task.opened_by.clone(),
        coordinator: task.coordinator.clone(),
        channel: task.channel.clone(),
        taints: task
            .taints
            .iter()
            .map(|(source, policy)| wire::TaintedBy { source: *source, policy: *policy })
            .collect(),
        parent_task_id: task.parent_task_id,
        correlation_id: task.correlation_id.clone(),
        project: task.project.clone(),
        intent: task.intent,
        opened_at: task.opened_at,
        ended_at: task.ended_at,
        live_handoff: task.live,
        events: task.events,
        head: task.head,
    }
}

pub(crate) fn event(entry: &engine::Entry, body: Option<&Body>) -> wire::Event {
    let record = RawValue::from_string(entry.encoded.clone());
    wire::Event {
        position: entry.sealed.position,
        hash: entry.sealed.hash,
        record: record.unwrap_or_else(|_| RawValue::NULL.to_owned()),
        body: body.map(raw),
    }
}

pub(crate) fn dead_letter(letter: &engine::DeadLetter, now: Timestamp) -> wire::DeadLetter {
    wire::DeadLetter {
        handoff: handoff(&letter.handoff, now),
        envelope_content: letter.envelope.as_ref().map(raw),
        reports: letter
            .reports
            .iter()
            .map(|(attempt, ended, report)| wire::Report {
                attempt: *attempt,
                ended: ended.to_string(),
                report: raw(report),
            })
            .collect(),
        declines: letter
            .declines
            .iter()
            .filter_map(|(agent, body)| {
                Some(wire::DeclineReason { agent: agent.clone(), reason: note(body)? })
            })
            .collect(),
        discarded_because: letter.discarded_because.as_ref().and_then(note),
    }
}

fn note(body: &Body) -> Option<String> {
    let note: tasuki_core::report::Note = serde_json::from_str(body.text()).ok()?;
    Some(note.text)
}

pub(crate) fn verdict(verdict: engine::Verdict) -> wire::Verdict {
    wire::Verdict {
        intact: verdict.first_bad.is_none(),
        events: verdict.events,
        tasks: verdict.tasks,
        bodies: verdict.bodies,
        erased: verdict.erased,
        checkpoints: verdict.checkpoints,
        unsealed: verdict.unsealed,
        keys: verdict.keys,
        first_bad: verdict.first_bad.map(|finding| wire::Finding {
            position: finding.position,
            task_id: finding.task_id,
            problem: finding.problem,
        }),
    }
}

/// An agent as its own self sees it, where there is no desk to ask.
pub(crate) fn own_agent(agent: &tasuki_core::registry::Agent) -> wire::Agent {
    let published = agent.manifest.as_ref();
    wire::Agent {
        agent_id: agent.id.clone(),
        standing: agent.standing,
        version: published.map_or(0, |published| published.version),
        manifest: None,
        manifest_hash: published.map(|published| published.hash),
        signed: published.and_then(|published| published.signed.clone()),
        keys: agent
            .keys
            .iter()
            .map(|key| wire::EnrolledKey { key_id: key.key.id(), key: key.clone() })
            .collect(),
        rules: Some(agent.rules.clone()),
        since: agent.since,
        live: false,
        last_seen: None,
        holding: 0,
        observed: Vec::new(),
    }
}

pub(crate) fn agent(seen: &tasuki_engine::SeenAgent) -> wire::Agent {
    let value = seen.manifest.as_ref().and_then(|body| serde_json::from_str(body.text()).ok());
    let own = own_agent(&seen.agent);
    wire::Agent {
        manifest: value,
        rules: own.rules.filter(|_| seen.trusted),
        live: seen.live,
        last_seen: seen.last_seen,
        holding: seen.holding,
        observed: seen
            .tracks
            .iter()
            .map(|(capability, track)| {
                observed(capability.as_ref(), track, seen.declared.as_deref())
            })
            .collect(),
        ..own
    }
}

fn observed(
    capability: Option<&Capability>,
    track: &Track,
    manifest: Option<&Manifest>,
) -> wire::Observed {
    let entry = capability.zip(manifest).and_then(|(capability, manifest)| {
        manifest.capabilities.iter().find(|entry| entry.name.name() == capability.name())
    });
    let (recent_successes, recent_tries) = track.recent();
    let short = |ppm: u32| {
        recent_tries >= tasuki_core::route::SLA_TRIES_MIN
            && u64::from(recent_successes) * 1_000_000 < u64::from(recent_tries) * u64::from(ppm)
    };
    wire::Observed {
        capability: capability.cloned(),
        tries: track.tries,
        successes: track.successes,
        losses: track.losses,
        late: track.late,
        mean_ms: track.mean_ms,
        recent_tries,
        recent_successes,
        declared_sla: entry.and_then(|entry| entry.reliability_sla),
        breaks_sla: entry.and_then(|entry| entry.sla_ppm()).is_some_and(short),
    }
}

pub(crate) fn catalogue(
    found: &[tasuki_engine::SeenAgent],
    broker_key: Option<PublicKey>,
) -> wire::Catalogue {
    let entry = |seen: &tasuki_engine::SeenAgent| {
        let manifest = seen.declared.as_ref()?;
        Some(wire::CatalogueEntry {
            agent_id: seen.agent.id.clone(),
            capabilities: manifest.capabilities.iter().map(|entry| entry.name.clone()).collect(),
            url: format!("/v1/agents/{}", seen.agent.id.name()),
            discovery_endpoint: manifest.discovery_endpoint.clone(),
            live: seen.live,
        })
    };
    wire::Catalogue { broker_key, agents: found.iter().filter_map(entry).collect() }
}

pub(crate) fn token(token: &tasuki_core::registry::Token) -> wire::TokenInfo {
    wire::TokenInfo {
        token_id: token.id,
        purpose: token.purpose,
        agent_id: token.agent.clone(),
        rules: token.rules.clone(),
        issued_at: token.issued_at,
        expires_at: token.expires_at,
        ended_at: token.ended_at,
    }
}

pub(crate) fn tenant(tenant: tasuki_core::registry::Tenant) -> wire::TenantInfo {
    wire::TenantInfo { tenant_id: tenant.id, quotas: tenant.quotas }
}
