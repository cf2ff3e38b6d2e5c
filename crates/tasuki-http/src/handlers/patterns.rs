// SPDX-License-Identifier: Apache-2.0

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use tasuki_core::envelope::{Envelope, Payload};
use tasuki_core::ids::{ChannelId, OrderingKey};
use tasuki_core::reserve::Reservation;
use tasuki_core::{AgentId, Handoff, HandoffId, Position, State, TaskId};
use tasuki_engine::{Chosen, Desk, Proof, Published, Ruling, WaitFor, WaitMode, WaitRequest};
use tasuki_engine::{Joined, Waited};
use tasuki_protocol::Until;

use super::Answer;
use crate::auth::At;
use crate::error::Problem;
use crate::json::{Json, Params, PathId, ok, reply};
use crate::{from_wire, to_wire, wire};

/// Offers, and waits until the receiver has it or has done it.
pub(crate) async fn send(At(desk): At, Json(body): Json<wire::Send>) -> Answer {
    let until = body.until;
    let offered = desk.offer_within(body.offer, body.timeout_ms).await?;
    let waited = desk
        .wait(WaitRequest {
            these: vec![WaitFor::Handoff(offered.handoff.id)],
            mode: WaitMode::All,
            until,
            timeout_ms: body.timeout_ms,
        })
        .await?;
    let Some(Waited::Handoff { handoff, .. }) = waited.into_iter().next() else {
        return Err(to_wire::missing().into());
    };
    let output = desk.results(std::slice::from_ref(&handoff)).await?.pop().flatten();
    let sent = wire::Sent {
        reached: has_reached(&handoff, until),
        listening: desk.listening(&handoff),
        handoff: to_wire::handoff(&handoff, desk.now()),
        output: output.as_ref().map(to_wire::raw),
    };
    let status = if offered.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &sent))
}

/// A dead letter is at its end, and nobody has accepted it.
fn has_reached(handoff: &Handoff, until: Until) -> bool {
    match &handoff.state {
        State::Completed { .. } => true,
        State::Claimed(_) | State::InProgress(_) => until == Until::Claimed,
        _ => false,
    }
}

pub(crate) async fn subscribe(
    At(desk): At,
    PathId(channel): PathId<ChannelId>,
    Json(body): Json<wire::Subscribe>,
) -> Answer {
    let subscribers = desk.subscribe(&channel, &body.agent, true).await?;
    Ok(shown(channel, subscribers))
}

pub(crate) async fn unsubscribe(
    At(desk): At,
    PathId(channel): PathId<ChannelId>,
    Json(body): Json<wire::Subscribe>,
) -> Answer {
    let subscribers = desk.subscribe(&channel, &body.agent, false).await?;
    Ok(shown(channel, subscribers))
}

pub(crate) async fn channel(At(desk): At, PathId(channel): PathId<ChannelId>) -> Answer {
    let subscribers = desk.subscribers(&channel)?;
    Ok(shown(channel, subscribers))
}

fn shown(channel: ChannelId, subscribers: Vec<(AgentId, Position)>) -> Response {
    let subscribers =
        subscribers.into_iter().map(|(agent, since)| wire::Subscriber { agent, since }).collect();
    ok(&wire::Channel { channel, subscribers })
}

pub(crate) async fn publish(
    At(desk): At,
    PathId(channel): PathId<ChannelId>,
    Json(body): Json<wire::Publication>,
) -> Answer {
    let Published { task, mut handoffs, repeated } = desk.publish_on(&channel, body).await?;
    if repeated {
        let mut before = None;
        loop {
            let all = wire::Need::All;
            let page = desk.join_answers(task.id, all, 0, before, tasuki_engine::PAGE_MAX).await?;
            handoffs.extend(page.members.into_iter().filter_map(|(_, last)| last));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        handoffs.sort_by_key(|handoff| handoff.offered);
    }
    let told = |handoff: &Arc<Handoff>| wire::Told {
        to: handoff.to.clone(),
        handoff_id: handoff.id,
        task_id: handoff.task_id,
        listening: desk.listening(handoff),
    };
    let published = wire::Published {
        channel: task.channel.clone().unwrap_or(channel),
        task_id: task.id,
        position: task.intent_at,
        repeated,
        handoffs: handoffs.iter().map(told).collect(),
    };
    let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &published))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// Only what was told after this position; everything without it.
    after: Option<Position>,
    /// How many at most, up to 1000.
    limit: Option<usize>,
}

pub(crate) async fn messages(
    At(desk): At,
    PathId(channel): PathId<ChannelId>,
    Params(wish): Params<After>,
) -> Answer {
    let after = wish.after.unwrap_or(Position(0));
    let told = desk.messages(&channel, after, wish.limit.unwrap_or(100)).await?;
    let mut messages = Vec::with_capacity(told.len());
    for (task, intent) in told {
        let body = desk.message(task.id).await?;
        let payload: Option<Payload> = body
            .and_then(|body| serde_json::from_str::<Envelope>(body.text()).ok())
            .map(|envelope| envelope.payload);
        messages.push(wire::Message {
            position: task.intent_at,
            task_id: task.id,
            from_agent: task.opened_by.clone(),
            published_at: task.opened_at,
            intent: intent.to_string(),
            payload,
        });
    }
    let next = messages.last().map_or(after, |message| message.position);
    Ok(ok(&wire::Messages { messages, next }))
}

pub(crate) async fn join(
    At(desk): At,
    PathId(id): PathId<TaskId>,
    Json(body): Json<wire::Gather>,
) -> Answer {
    let need = body.need;
    let limit = body.limit.unwrap_or(100);
    let joined = desk.join_answers(id, need, body.wait_ms, body.before, limit).await?;
    let Joined { need, receivers, completed, failed, satisfied, members, next, .. } = joined;
    let lasts: Vec<_> = members.iter().filter_map(|(_, last)| last.clone()).collect();
    let mut outputs = super::handoffs::outputs(&desk, &lasts).await?.into_iter();
    let members = members
        .into_iter()
        .map(|(task, last)| {
            let output = last.as_ref().and_then(|_| outputs.next().flatten());
            wire::Member {
                task_id: task.id,
                state: task.state.to_string(),
                to: last.as_ref().map(|last| last.to.clone()),
                handoff_id: last.as_ref().map(|last| last.id),
                output: output.as_ref().map(to_wire::raw),
            }
        })
        .collect();
    Ok(ok(&wire::Gathered {
        task_id: id,
        satisfied,
        need,
        receivers,
        completed,
        failed,
        open: receivers - completed - failed,
        members,
        next,
    }))
}

pub(crate) async fn pipelines(At(desk): At) -> Answer {
    Ok(ok(&*desk.pipelines()))
}

pub(crate) async fn start_pipeline(
    At(desk): At,
    PathId(name): PathId<OrderingKey>,
    Json(body): Json<wire::StartPipeline>,
) -> Answer {
    let offered = Box::pin(desk.start_pipeline(name.as_str(), body)).await?;
    let status = if offered.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(reply(status, &to_wire::offered(&offered.handoff, offered.listening)))
}

pub(crate) async fn reroute(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Reroute>,
) -> Answer {
    again(&desk, id, &body.by, Ruling::Reroute(body.to)).await
}

pub(crate) async fn amend(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Amend>,
) -> Answer {
    let handoff = desk.amend(id, body).await?;
    Ok(reply(StatusCode::CREATED, &to_wire::offered(&handoff, desk.listening(&handoff))))
}

async fn again(desk: &Desk, id: HandoffId, by: &AgentId, ruling: Ruling) -> Answer {
    let handoff = desk.rule(id, by, ruling).await?;
    Ok(reply(StatusCode::CREATED, &to_wire::offered(&handoff, desk.listening(&handoff))))
}

pub(crate) async fn answer(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Answer>,
) -> Answer {
    let handoff = desk.answer(id, &body.by, body.decision).await?;
    Ok(reply(StatusCode::CREATED, &to_wire::offered(&handoff, desk.listening(&handoff))))
}

pub(crate) async fn take_review(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::TakeReview>,
) -> Answer {
    let handoff = desk.take_review(id, &body.by, body.for_ms).await?;
    Ok(ok(&to_wire::handoff(&handoff, desk.now())))
}

pub(crate) async fn decide_many(At(desk): At, Json(body): Json<wire::DecideMany>) -> Answer {
    let dry_run = body.dry_run;
    let chosen = Chosen { handoffs: body.handoffs, fingerprint: body.fingerprint };
    let ruling = from_wire::ruling(body.decision);
    let decided = desk.rule_many(chosen, &body.by, &ruling, dry_run).await?;
    let results = decided
        .into_iter()
        .map(|(handoff_id, outcome)| match outcome {
            Ok(to) => wire::DecidedOne { handoff_id, to_handoff: Some(to.id), error: None },
            Err(error) => {
                let error = Some(Problem::from(error));
                wire::DecidedOne { handoff_id, to_handoff: None, error }
            }
        })
        .collect();
    Ok(ok(&wire::DecidedMany { dry_run, results }))
}

pub(crate) async fn groups(At(desk): At) -> Answer {
    let groups = desk.dead_letter_groups().await?;
    let groups = groups
        .into_iter()
        .map(|group| wire::Group {
            fingerprint: group.fingerprint,
            reason: group.reason.to_string(),
            to: group.to,
            kind: group.kind,
            message: group.message,
            hint: group.hint,
            count: group.count,
            handoffs: group.handoffs,
        })
        .collect();
    Ok(ok(&wire::Groups { groups }))
}

pub(crate) async fn retract(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Retract>,
) -> Answer {
    let handoff = desk.retract(id, &body.by, body.reason, body.policy).await?;
    Ok(ok(&to_wire::handoff(&handoff, desk.now())))
}

pub(crate) async fn clear_taint(
    At(desk): At,
    PathId(id): PathId<TaskId>,
    Json(body): Json<wire::ClearTaint>,
) -> Answer {
    let task = desk.clear_taint(id, &body.by, body.source, body.reason).await?;
    Ok(ok(&to_wire::task(&task)))
}

pub(crate) async fn reserve(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Reserve>,
) -> Answer {
    reserved(&desk, id, body, true).await
}

pub(crate) async fn unreserve(
    At(desk): At,
    PathId(id): PathId<HandoffId>,
    Json(body): Json<wire::Reserve>,
) -> Answer {
    reserved(&desk, id, body, false).await
}

async fn reserved(desk: &Desk, id: HandoffId, body: wire::Reserve, wanted: bool) -> Answer {
    let proof = Proof { claim_id: body.claim_id, fence: body.fence };
    let reservation = desk.reserve(id, proof, body.resources, wanted).await?;
    let reservations = reservation.iter().map(|it| reservation_of(it)).collect();
    Ok(ok(&wire::Reservations { reservations }))
}

pub(crate) async fn reservations(At(desk): At) -> Answer {
    let all = desk.reservations()?;
    let reservations = all.iter().map(|it| reservation_of(it)).collect();
    Ok(ok(&wire::Reservations { reservations }))
}

fn reservation_of(reservation: &Reservation) -> wire::Reservation {
    wire::Reservation {
        handoff_id: reservation.handoff,
        agent: reservation.agent.clone(),
        fence: reservation.fence,
        resources: reservation.resources.clone(),
    }
}

pub(crate) async fn health(At(desk): At) -> Answer {
    let now = desk.now();
    let targets = desk.health()?.into_iter().map(|(target, health)| {
        let state = health.state(now);
        let facts = &health.facts;
        let share = |part: u64, of: u64| (of > 0).then(|| part.saturating_mul(1000) / of);
        wire::TargetHealth {
            target,
            live: health.live,
            breaker: state.name().to_string(),
            exhausted_in_row: health.breaker.as_ref().map_or(0, |breaker| breaker.in_row),
            reset_in_ms: match state {
                tasuki_core::breaker::BreakerState::Open { until } => Some(until.ms_after(now)),
                _ => None,
            },
            failures_in_row: facts.failures_in_row,
            offers: facts.offers,
            hops: facts.hops.clone(),
            utilisation_per_mille: share(facts.tokens, facts.budget),
            completeness_per_mille: (facts.filled > 0)
                .then(|| facts.completeness_per_mille / facts.filled),
        }
    });
    Ok(ok(&wire::TargetsHealth { targets: targets.collect() }))
}
