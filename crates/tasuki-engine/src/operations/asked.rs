// SPDX-License-Identifier: Apache-2.0
//! From what is asked in the published form to what the engine works with: the broker's defaults are
//! filled in here, and nowhere before.

use tasuki_core::canonical::Object;
use tasuki_core::document::Content;
use tasuki_core::envelope::parts::Form;
use tasuki_core::envelope::{Fault, version};
use tasuki_core::ids::ChannelId;
use tasuki_core::{HandoffId, Target, Terms};
use tasuki_protocol as wire;

use crate as engine;
use crate::Proof;
use crate::error::{Error, invalid};

pub(crate) fn task(body: wire::OpenTask) -> engine::NewTask {
    engine::NewTask {
        owner: body.from_agent,
        intent: body.intent,
        correlation_id: body.correlation_id,
        parent_task_id: body.parent_task_id,
        coordinator: body.coordinator,
        project: body.project,
        on_parent_end: body.on_parent_end,
        key: None,
    }
}

pub fn offer(body: wire::Offer, defaults: Terms) -> engine::NewOffer {
    engine::NewOffer {
        from: body.from_agent,
        task_id: body.task_id,
        intent: body.intent,
        correlation_id: body.correlation_id,
        coordinator: body.coordinator,
        project: body.project,
        key: None,
        hop: follow_up(body.hop, defaults),
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
        terms: body.terms.map(|patch| patch.over(defaults)),
        said: body.said,
        deadline: body.deadline,
        expires_in_ms: body.expires_in_ms,
        needs_approval: body.needs_approval,
        approvers: body.approvers,
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
            coordinator: body.coordinator,
            project: body.project,
            hop,
            key: None,
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
        coordinator: body.coordinator,
        project: body.project,
        hop: engine::FollowUp {
            said: body.said,
            deadline: body.deadline,
            ..engine::FollowUp::new(nobody, body.payload)
        },
        key: None,
    }
}

pub(crate) fn ruling(body: wire::Ruling) -> engine::Ruling {
    match body {
        wire::Ruling::Retry => engine::Ruling::Retry,
        wire::Ruling::Reroute(to) => engine::Ruling::Reroute(to),
        wire::Ruling::Abort(reason) => engine::Ruling::Abort { reason },
    }
}

fn follow_up(body: wire::FollowUp, defaults: Terms) -> engine::FollowUp {
    engine::FollowUp {
        to: body.to,
        control: body.control,
        action: body.action,
        payload: body.payload,
        metadata: body.metadata,
        priority: body.priority,
        terms: body.terms.map(|patch| patch.over(defaults)),
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
        // The desk knows who asks, and whether that may be more.
        instructs: false,
        deadline: body.deadline,
        expires_in_ms: body.expires_in_ms,
        start_in_ms: body.start_in_ms,
        needs_approval: body.needs_approval,
        approvers: body.approvers,
        ordering_key: body.ordering_key,
        on_parent_end: body.on_parent_end,
        budget: body.budget,
    }
}

/// A member that is not known here is a mistake, unless it is one of a newer minor. `at` is where in
/// the request the hop stands.
pub(crate) fn check_members(body: &wire::FollowUp, at: &str) -> Result<(), Error> {
    if let Some(given) = &body.envelope_version {
        let known =
            version::parse(given).is_some_and(|(major, _)| version::MAJORS.contains(&major));
        if !known {
            return Err(Error::Version(given.clone()));
        }
        if version::is_newer_minor(given) {
            return Ok(());
        }
    }
    let unknown = body.more.0.keys();
    let unknown: Vec<_> = unknown.map(|name| Fault::new(format!("{at}/{name}"), UNKNOWN)).collect();
    if unknown.is_empty() { Ok(()) } else { Err(Error::Unknown(unknown)) }
}

/// Where nothing is passed on, every member must be known.
pub(crate) fn check_none(more: &Object) -> Result<(), Error> {
    let unknown = more.0.keys().map(|name| Fault::new(format!("/{name}"), "is not known"));
    let unknown: Vec<_> = unknown.collect();
    if unknown.is_empty() { Ok(()) } else { Err(Error::Unknown(unknown)) }
}

const UNKNOWN: &str = "is not known; a newer minor of envelope_version may bring new members";

fn route(body: wire::Route) -> engine::Route {
    engine::Route { policy: body.policy, key: body.key }
}

pub(crate) fn counter(handoff: HandoffId, body: wire::Counter) -> engine::CounterRequest {
    engine::CounterRequest {
        handoff,
        agent: body.agent,
        capabilities: body.capabilities,
        terms: body.terms,
        budget_tokens: body.budget_tokens,
        reason: body.reason,
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
        wait_ms: body.wait_ms,
    }
}

pub(crate) fn complete(
    handoff: HandoffId,
    body: wire::Complete,
    defaults: Terms,
) -> engine::CompleteRequest {
    engine::CompleteRequest {
        handoff,
        proof: Proof { claim_id: body.claim_id, fence: body.fence },
        by: None,
        signed: body.signed,
        action: body.action,
        payload: body.payload,
        metadata: body.metadata,
        criteria: body.criteria,
        gaps: body.gaps,
        resolved_gaps: body.resolved_gaps,
        usage: body.usage,
        follow_ups: body.follow_ups.into_iter().map(|hop| follow_up(hop, defaults)).collect(),
    }
}

/// The hops of a completion, as [`check_members`] has it.
pub(crate) fn check_follow_ups(body: &wire::Complete) -> Result<(), Error> {
    let mut hops = body.follow_ups.iter().enumerate();
    hops.try_for_each(|(number, hop)| check_members(hop, &format!("/follow_ups/{number}")))
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
        usage: body.usage,
    }
}

/// Half a proof is a mistake, not a decline without one.
pub(crate) fn maybe_proof(body: &wire::Decline) -> Result<Option<Proof>, Error> {
    match (body.claim_id, body.fence) {
        (Some(claim_id), Some(fence)) => Ok(Some(Proof { claim_id, fence })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(invalid("fence", "is needed with claim_id")),
        (None, Some(_)) => Err(invalid("claim_id", "is needed with fence")),
    }
}

pub(crate) fn wait(body: &wire::Wait) -> engine::WaitRequest {
    let handoffs = body.handoffs.iter().copied().map(engine::WaitFor::Handoff);
    let tasks = body.tasks.iter().copied().map(engine::WaitFor::Task);
    engine::WaitRequest {
        these: handoffs.chain(tasks).collect(),
        mode: body.mode,
        until: body.until,
        timeout_ms: body.timeout_ms,
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
        key: None,
    }
}
