// SPDX-License-Identifier: Apache-2.0
//! From what was sent to what the engine is asked.

use tasuki_core::document::Content;
use tasuki_core::envelope::parts::Form;
use tasuki_core::envelope::{Fault, version};
use tasuki_core::ids::ChannelId;
use tasuki_core::{HandoffId, Target, Terms};
use tasuki_engine as engine;
use tasuki_engine::Proof;

use crate::error::{Problem, faults};
use crate::wire;

pub(crate) fn task(body: wire::OpenTask) -> engine::NewTask {
    engine::NewTask {
        owner: body.from_agent,
        intent: body.intent,
        correlation_id: body.correlation_id,
        parent_task_id: body.parent_task_id,
        coordinator: body.coordinator.map(coordinator),
        project: body.project,
        idempotency_key: body.idempotency_key,
    }
}

pub(crate) fn offer(body: wire::Offer, defaults: Terms) -> Result<engine::NewOffer, Problem> {
    Ok(engine::NewOffer {
        from: body.from_agent,
        task_id: body.task_id,
        intent: body.intent,
        correlation_id: body.correlation_id,
        coordinator: body.coordinator.map(coordinator),
        project: body.project,
        idempotency_key: body.idempotency_key,
        hop: follow_up(body.hop, defaults, "")?,
    })
}

fn coordinator(body: wire::Coordinator) -> engine::Coordinator {
    match body {
        wire::Coordinator::Agent(agent) => engine::Coordinator::Agent(agent),
        wire::Coordinator::Role(role) => engine::Coordinator::Role(role),
    }
}

pub(crate) fn publication(
    channel: ChannelId,
    body: wire::Publication,
    defaults: Terms,
) -> engine::Publication {
    // Whom the message names does not count: each receiver is put there.
    let nobody = Target::Agent(body.from_agent.clone());
    let hop = engine::FollowUp {
        action: body.action,
        metadata: body.metadata,
        priority: body.priority,
        terms: body.terms.map(|patch| wish(patch).over(defaults)),
        said: body.said,
        deadline: body.deadline,
        expires_in_ms: body.expires_in_ms,
        needs_approval: body.needs_approval,
        ordering_key: body.ordering_key,
        ..engine::FollowUp::new(nobody, body.payload)
    };
    engine::Publication {
        channel,
        receivers: body.receivers,
        message: engine::NewOffer {
            from: body.from_agent,
            task_id: None,
            intent: Some(body.intent),
            correlation_id: body.correlation_id,
            coordinator: body.coordinator.map(coordinator),
            project: body.project,
            hop,
            idempotency_key: body.idempotency_key,
        },
    }
}

pub(crate) fn pipeline_start(body: wire::StartPipeline) -> engine::NewOffer {
    let nobody = Target::Agent(body.from_agent.clone());
    engine::NewOffer {
        from: body.from_agent,
        task_id: None,
        intent: Some(body.intent),
        correlation_id: body.correlation_id,
        coordinator: body.coordinator.map(coordinator),
        project: body.project,
        hop: engine::FollowUp {
            said: body.said,
            deadline: body.deadline,
            ..engine::FollowUp::new(nobody, body.payload)
        },
        idempotency_key: body.idempotency_key,
    }
}

pub(crate) fn amendment(body: wire::Amend, defaults: Terms) -> engine::Amendment {
    engine::Amendment {
        to: body.to,
        payload: body.payload,
        terms: body.terms.map(|patch| wish(patch).over(defaults)),
        said: body.said,
    }
}

pub(crate) fn ruling(body: wire::Ruling) -> engine::Ruling {
    match body {
        wire::Ruling::Retry => engine::Ruling::Retry,
        wire::Ruling::Reroute(to) => engine::Ruling::Reroute(to),
        wire::Ruling::Abort(reason) => engine::Ruling::Abort { reason },
    }
}

pub(crate) fn need(body: wire::Need) -> engine::Need {
    match body {
        wire::Need::All => engine::Need::All,
        wire::Need::Any => engine::Need::Any,
        wire::Need::Quorum(number) => engine::Need::Quorum(number),
    }
}

/// `at` is where in the request the hop stands.
fn follow_up(body: wire::FollowUp, defaults: Terms, at: &str) -> Result<engine::FollowUp, Problem> {
    check_version(&body, at)?;
    Ok(engine::FollowUp {
        to: body.to,
        control: body.control,
        action: body.action,
        payload: body.payload,
        metadata: body.metadata,
        priority: body.priority,
        terms: body.terms.map(|patch| wish(patch).over(defaults)),
        capability: body.capability,
        route: body.route.map(route),
        fallbacks: body.fallbacks,
        after: body.after,
        stage: None,
        output_schema: body.output_schema,
        majors: body.majors,
        budget_tokens: body.budget_tokens,
        said: body.said,
        more: body.more,
        signed: body.signed,
        deadline: body.deadline,
        expires_in_ms: body.expires_in_ms,
        start_in_ms: body.start_in_ms,
        needs_approval: body.needs_approval,
        ordering_key: body.ordering_key,
    })
}

/// A member that is not known here is a mistake, unless it is one of a newer minor.
fn check_version(body: &wire::FollowUp, at: &str) -> Result<(), Problem> {
    if let Some(given) = &body.envelope_version {
        let known =
            version::parse(given).is_some_and(|(major, _)| version::MAJORS.contains(&major));
        if !known {
            return Err(Problem::new(
                "version_not_supported",
                format!("envelope_version is {given:?}, taken are majors 1 and 2"),
                "send an envelope of major 2, or of major 1 in its flat form",
            ));
        }
        if version::is_newer_minor(given) {
            return Ok(());
        }
    }
    let unknown: Vec<_> =
        body.more.0.keys().map(|name| Fault::new(format!("{at}/{name}"), UNKNOWN)).collect();
    match unknown.first() {
        None => Ok(()),
        Some(first) => {
            Err(Problem::invalid(&first.path[1..], UNKNOWN).detail("faults", faults(&unknown)))
        }
    }
}

const UNKNOWN: &str = "is not known; a newer minor of envelope_version may bring new members";

fn wish(patch: wire::TermsPatch) -> engine::TermsWish {
    engine::TermsWish {
        lease_ms: patch.lease_ms,
        work_ms: patch.work_ms,
        attempts: patch.attempts,
        losses: patch.losses,
        backoff_ms: patch.backoff_ms,
        ack_ms: patch.ack_ms,
    }
}

fn route(body: wire::Route) -> engine::Route {
    engine::Route { policy: body.policy, key: body.key }
}

pub(crate) fn counter(handoff: HandoffId, body: wire::Counter) -> engine::CounterRequest {
    engine::CounterRequest {
        handoff,
        agent: body.agent,
        capabilities: body.capabilities,
        terms: wish(body.terms),
        budget_tokens: body.budget_tokens,
        reason: body.reason,
    }
}

pub(crate) fn search(body: wire::Search) -> engine::Search {
    engine::Search {
        tenant: body.tenant,
        capability: body.capability,
        input: body.input,
        output: body.output,
        tags: body.tags,
        version: body.version,
        role: body.role,
        live: body.live,
        reliability: body.reliability,
        max: body.limit,
    }
}

pub(crate) fn claim(body: wire::Claim) -> engine::ClaimRequest {
    engine::ClaimRequest {
        agent: body.agent,
        capabilities: body.capabilities,
        max: body.max,
        wait_ms: body.wait_ms,
        lease_ms: body.lease_ms,
        request_id: body.request_id,
        majors: body.majors,
    }
}

pub(crate) fn claim_one(handoff: HandoffId, body: wire::ClaimOne) -> engine::ClaimOneRequest {
    engine::ClaimOneRequest {
        handoff,
        agent: body.agent,
        capabilities: body.capabilities,
        lease_ms: body.lease_ms,
        request_id: body.request_id,
        majors: body.majors,
    }
}

pub(crate) fn peek(body: wire::Peek) -> engine::PeekRequest {
    engine::PeekRequest {
        agent: body.agent,
        capabilities: body.capabilities,
        max: body.max,
        majors: body.majors,
    }
}

pub(crate) fn complete(
    handoff: HandoffId,
    body: wire::Complete,
    defaults: Terms,
) -> Result<engine::CompleteRequest, Problem> {
    let hops = body.follow_ups.into_iter().enumerate();
    let follow_ups =
        hops.map(|(number, hop)| follow_up(hop, defaults, &format!("/follow_ups/{number}")));
    Ok(engine::CompleteRequest {
        handoff,
        proof: Proof { claim_id: body.claim_id, fence: body.fence },
        by: None,
        signed: body.signed,
        action: body.action,
        payload: body.payload,
        metadata: body.metadata,
        criteria: body.criteria,
        gaps: body.gaps,
        follow_ups: follow_ups.collect::<Result<_, _>>()?,
    })
}

pub(crate) fn read_back(body: wire::ReadBack) -> engine::ReadBack {
    engine::ReadBack { constraints: body.constraints, expected_output: body.expected_output }
}

pub(crate) fn fail(handoff: HandoffId, body: wire::Fail) -> engine::FailRequest {
    engine::FailRequest {
        handoff,
        proof: Proof { claim_id: body.claim_id, fence: body.fence },
        by: None,
        signed: body.signed,
        class: body.class,
        kind: body.kind,
        message: body.message,
        attempted: body.attempted,
        attempts: body.attempts,
        causes: body.causes,
        hint: body.hint,
        retry_after_ms: body.retry_after_ms,
        details: body.details,
    }
}

/// Half a proof is a mistake, not a decline without one.
pub(crate) fn maybe_proof(body: &wire::Decline) -> Result<Option<Proof>, Problem> {
    match (body.claim_id, body.fence) {
        (Some(claim_id), Some(fence)) => Ok(Some(Proof { claim_id, fence })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(Problem::invalid("fence", "is needed with claim_id")),
        (None, Some(_)) => Err(Problem::invalid("claim_id", "is needed with fence")),
    }
}

pub(crate) fn wait(body: &wire::Wait) -> engine::WaitRequest {
    let handoffs = body.handoffs.iter().copied().map(engine::WaitFor::Handoff);
    let tasks = body.tasks.iter().copied().map(engine::WaitFor::Task);
    engine::WaitRequest {
        these: handoffs.chain(tasks).collect(),
        mode: match body.mode {
            wire::Mode::All => engine::WaitMode::All,
            wire::Mode::Any => engine::WaitMode::Any,
        },
        until: until(body.until),
        timeout_ms: body.timeout_ms,
    }
}

pub(crate) fn until(until: wire::Until) -> engine::Until {
    match until {
        wire::Until::Claimed => engine::Until::Claimed,
        wire::Until::Settled => engine::Until::Settled,
    }
}

pub(crate) fn detail(detail: wire::Detail) -> Form {
    match detail {
        wire::Detail::Stub => Form::Stub,
        wire::Detail::Summary => Form::Summary,
        wire::Detail::Full => Form::Full,
    }
}

pub(crate) fn memory(body: wire::NewMemory) -> engine::NewMemory {
    engine::NewMemory {
        by: body.by,
        id: body.id,
        scope: body.scope,
        content: Content {
            title: body.title,
            summary: body.summary,
            text: body.text,
            tags: body.tags,
        },
        pinned: body.pinned,
        priority: body.priority,
        idempotency_key: body.idempotency_key,
    }
}

pub(crate) fn memory_edit(body: wire::EditMemory) -> engine::MemoryEdit {
    engine::MemoryEdit {
        by: body.by,
        revision: body.revision,
        title: body.title,
        summary: body.summary,
        text: body.text,
        tags: body.tags,
        scope: body.scope,
        priority: body.priority,
    }
}

pub(crate) fn context(body: wire::WriteContext) -> engine::ContextWrite {
    engine::ContextWrite {
        by: body.by,
        revision: body.revision,
        state: body.state,
        constraints: body.constraints,
    }
}

pub(crate) fn decision(body: wire::NewDecision) -> engine::NewDecision {
    engine::NewDecision {
        by: body.by,
        key: body.key,
        decision: body.decision,
        why: body.why,
        supersedes: body.supersedes,
    }
}
