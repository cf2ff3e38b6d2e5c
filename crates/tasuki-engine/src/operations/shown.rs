// SPDX-License-Identifier: Apache-2.0
//! What the engine knows, in the published form.

mod memories;

use serde_json::value::RawValue;
use tasuki_core::budget::Spent;
use tasuki_core::contract::Contract;
use tasuki_core::cursor::Epochs;
use tasuki_core::event::DeadReason;
use tasuki_core::handoff::Review;
use tasuki_core::identity::PublicKey;
use tasuki_core::manifest::Manifest;
use tasuki_core::observe::Track;
use tasuki_core::registry::Pause;
use tasuki_core::{Body, Capability, Handoff, State, Task, Timestamp};

use tasuki_protocol as wire;
use tasuki_protocol::{Code, Problem};

use crate as engine;

pub use memories::{context, memory, warnings};

pub fn raw(body: &Body) -> Box<RawValue> {
    body.json()
}

pub fn offered(offered: &engine::Offered) -> wire::Offered {
    let engine::Offered { handoff, listening, pause, warnings, .. } = offered;
    let listening = *listening;
    wire::Offered {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        status: "stored".into(),
        correlation_id: handoff.contract.correlation_id.clone(),
        to: handoff.to.clone(),
        listening,
        paused: pause.as_ref().map(paused),
        routed: handoff.contract.routing.routed,
        envelope: handoff.envelope,
        hop: handoff.hop,
        offered_at: handoff.offered_at,
        expires_at: handoff.expires_at,
        warnings: warnings.clone(),
    }
}

pub fn paused(pause: &Pause) -> wire::PausedUntil {
    wire::PausedUntil { since: pause.since, until: pause.until }
}

/// A granted claim. An envelope that is gone or a claim that is not there would be our fault.
pub fn claimed(granted: &engine::Granted) -> Result<wire::Claimed, Problem> {
    let handoff = &granted.handoff;
    let (Some(claim), Some(envelope)) = (handoff.state.claim(), &granted.envelope) else {
        return Err(missing());
    };
    Ok(wire::Claimed {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        correlation_id: handoff.contract.correlation_id.clone(),
        claim_id: claim.claim_id,
        fence: claim.fence,
        attempt: handoff.claims,
        lease_ms: claim.lease_ms,
        lease_left_ms: granted.lease_left_ms,
        work_left_ms: granted.work_left_ms,
        envelope: raw(envelope),
        envelope_hash: handoff.envelope,
        taints: granted.taints.clone(),
        budget: granted.budget,
        delivery: granted
            .delivery
            .as_ref()
            .map(|delivery| wire::Delivery { at: delivery.at, signed: delivery.signed.clone() }),
        questions: granted.brought.questions.clone(),
        messages: granted.brought.messages.clone(),
        earlier_attempts: granted.brought.earlier_attempts.clone(),
        artifacts: granted.brought.artifacts.clone(),
        joined: granted.brought.joined.clone(),
        gaps: granted.brought.gaps.clone(),
        left_out: granted.brought.left_out,
    })
}

pub fn waiting(granted: &engine::Granted) -> Result<wire::Waiting, Problem> {
    Ok(wire::Waiting {
        handoff_id: granted.handoff.id,
        task_id: granted.handoff.task_id,
        correlation_id: granted.handoff.contract.correlation_id.clone(),
        priority: granted.handoff.priority,
        envelope: raw(granted.envelope.as_ref().ok_or_else(missing)?),
    })
}

pub fn erased() -> Problem {
    Problem::new(
        Code::BodyErased,
        "what this handoff carried was erased",
        "the task's events say who erased it and why",
    )
}

pub fn missing() -> Problem {
    Problem::new(
        Code::Internal,
        "the body of this handoff is missing from the store",
        "run `tasuki audit verify` and restore a backup",
    )
}

pub fn moved(handoff: &Handoff) -> wire::Moved {
    wire::Moved {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        state: handoff.state.name().to_string(),
        status: handoff.status().to_string(),
        correlation_id: handoff.contract.correlation_id.clone(),
    }
}

pub fn beat(granted: &engine::Granted) -> wire::Beat {
    wire::Beat {
        handoff_id: granted.handoff.id,
        correlation_id: granted.handoff.contract.correlation_id.clone(),
        lease_left_ms: granted.lease_left_ms,
        work_left_ms: granted.work_left_ms,
        messages: granted.brought.messages.clone(),
        taints: granted.taints.clone(),
        on_hold: granted.on_hold,
    }
}

pub fn asked(handoff: &Handoff) -> Result<wire::AskReply, Problem> {
    let question = handoff.talk.questions().last().ok_or_else(missing)?;
    Ok(wire::AskReply {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        state: handoff.state.name().to_string(),
        status: handoff.status().to_string(),
        correlation_id: handoff.contract.correlation_id.clone(),
        question: question.question,
    })
}

pub fn part<T>(result: Result<T, Problem>) -> wire::Part<T> {
    match result {
        Ok(done) => wire::Part::Done(done),
        Err(error) => wire::Part::Failed { error },
    }
}

pub fn handoff(handoff: &Handoff, now: Timestamp) -> wire::Handoff {
    let (due_at, ended_at) = match &handoff.state {
        State::Scheduled { due } => (Some(*due), None),
        State::Completed { at, .. }
        | State::Cancelled { at }
        | State::DeadLettered { at, .. }
        | State::Aborted { at } => (None, Some(*at)),
        State::AwaitingApproval
        | State::Pending { .. }
        | State::Claimed(_)
        | State::InProgress(_)
        | State::InputRequired(_)
        | State::Answered(_)
        | State::Failed { .. } => (None, None),
    };
    wire::Handoff {
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        state: handoff.state.name().to_string(),
        status: handoff.status().to_string(),
        correlation_id: handoff.contract.correlation_id.clone(),
        from_agent: handoff.from.clone(),
        to: handoff.to.clone(),
        control: handoff.control,
        envelope: handoff.envelope,
        hop: handoff.hop,
        priority: handoff.priority,
        terms: handoff.terms,
        contract: Contract::clone(&handoff.contract),
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
        question: asks(handoff, now),
        kept_for: match &handoff.state {
            State::Answered(kept) => {
                Some(wire::KeptFor { agent: kept.agent.clone(), left_ms: kept.until.ms_after(now) })
            }
            _ => None,
        },
        artifacts: handoff.talk.artifacts().iter().map(|it| it.name.clone()).collect(),
        result: match &handoff.state {
            State::Completed { result, .. } => Some(*result),
            _ => None,
        },
        dead_letter: dead_reason(&handoff.state),
        failures: handoff.failures,
        losses: handoff.losses,
        declined_by: handoff.declined_by.to_vec(),
        tried: handoff.tried.to_vec(),
        ack_left_ms: match &handoff.state {
            State::Pending { ack_by, .. } => ack_by.map(|by| by.ms_after(now)),
            _ => None,
        },
        reviewer: handoff
            .state
            .reviewer()
            .filter(|(_, until)| now < *until)
            .map(|(agent, _)| agent.clone()),
        retracted: matches!(handoff.state, State::Completed { retracted_pos: Some(_), .. }),
        lifted: handoff
            .lifts
            .iter()
            .map(|lift| wire::LiftedConstraint { constraint: lift.constraint, by: lift.by.clone() })
            .collect(),
        trim_regret: handoff.fetched.to_vec(),
        attempts: handoff.attempts.iter().map(attempt).collect(),
    }
}

fn asks(handoff: &Handoff, now: Timestamp) -> Option<wire::Asks> {
    let State::InputRequired(asking) = &handoff.state else { return None };
    let asked = handoff.talk.questions().last()?;
    Some(wire::Asks {
        question: asked.question,
        kind: asked.kind,
        asked_by: asked.asker.clone(),
        answer_left_ms: asking.due_at().ms_after(now),
    })
}

fn dead_reason(state: &State) -> Option<wire::DeadReason> {
    let State::DeadLettered { reason, review, .. } = state else { return None };
    Some(wire::DeadReason {
        reason: reason.to_string(),
        redriven_to: match review {
            Some(Review::Redriven { to, .. }) => Some(*to),
            Some(Review::Discarded { .. } | Review::Closed { .. }) | None => None,
        },
        discarded: matches!(review, Some(Review::Discarded { .. })),
        closed: match review {
            Some(Review::Closed { because }) => Some(because.to_string()),
            Some(Review::Redriven { .. } | Review::Discarded { .. }) | None => None,
        },
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

pub fn task(task: &Task) -> wire::Task {
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
        on_parent_end: task.parent_task_id.map(|_| task.on_parent_end()),
        deadline: task.tree.deadline,
        on_hold: task.tree.on_hold,
        budget: task.tree.left(),
        spent: (task.tree.spent != Spent::default()).then_some(task.tree.spent),
        opened_at: task.opened_at,
        ended_at: task.ended_at,
        live_handoff: task.live,
        events: task.events,
        head: task.head,
    }
}

pub fn event(entry: &engine::Entry, body: Option<&Body>, epochs: &Epochs) -> wire::Event {
    let record = RawValue::from_string(entry.encoded.clone());
    wire::Event {
        position: epochs.cursor(entry.sealed.position),
        hash: entry.sealed.hash,
        record: record.unwrap_or_else(|_| RawValue::NULL.to_owned()),
        body: body.map(raw),
    }
}

pub fn dead_letter(letter: &engine::DeadLetter, now: Timestamp) -> wire::DeadLetter {
    let said = letter.rejected_because.as_ref().and_then(note);
    let circle =
        matches!(letter.handoff.state, State::DeadLettered { reason: DeadReason::Deadlock, .. });
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
        rejected_because: said.clone().filter(|_| !circle),
        waits_in_circle: said.filter(|_| circle),
    }
}

fn note(body: &Body) -> Option<String> {
    let note: tasuki_core::report::Note = serde_json::from_str(body.text()).ok()?;
    Some(note.text)
}

pub fn count<S: std::fmt::Display>(count: &engine::Count<S>, now: Timestamp) -> wire::StateCount {
    wire::StateCount {
        state: count.state.to_string(),
        count: count.count,
        oldest_at: count.oldest,
        oldest_age_ms: count.oldest.map(|oldest| now.ms_after(oldest)),
    }
}

pub fn verdict(verdict: engine::Verdict) -> wire::Verdict {
    wire::Verdict {
        intact: verdict.first_bad.is_none(),
        events: verdict.events,
        tasks: verdict.tasks,
        bodies: verdict.bodies,
        erased: verdict.erased,
        checkpoints: verdict.checkpoints,
        unsealed: verdict.unsealed,
        keys: verdict.keys,
        verified_before: verdict.verified_before,
        first_bad: verdict.first_bad.map(|finding| wire::Finding {
            position: finding.position,
            task_id: finding.task_id,
            problem: finding.problem,
        }),
    }
}

/// An agent as its own self sees it, where there is no desk to ask.
pub fn own_agent(agent: &tasuki_core::registry::Agent) -> wire::Agent {
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

pub fn agent(seen: &crate::SeenAgent) -> wire::Agent {
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

pub fn catalogue(found: &[crate::SeenAgent], broker_key: Option<PublicKey>) -> wire::Catalogue {
    let entry = |seen: &crate::SeenAgent| {
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

pub fn token(token: &tasuki_core::registry::Token) -> wire::TokenInfo {
    wire::TokenInfo {
        token_id: token.id,
        purpose: token.purpose,
        agent_id: token.agent.clone(),
        rules: token.rules.clone(),
        issued_at: token.issued_at,
        expires_at: token.expires_at,
        ended_at: token.ended_at,
        made_by: token.made_by.clone(),
        made_from: token.made_from,
    }
}

pub fn tenant(tenant: tasuki_core::registry::Tenant) -> wire::TenantInfo {
    wire::TenantInfo { tenant_id: tenant.id, quotas: tenant.quotas }
}
