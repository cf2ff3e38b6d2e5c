// SPDX-License-Identifier: Apache-2.0
//! The part of the table that is about work beyond one hop, and about what failed.

use tasuki_core::pipeline::Pipelines;

use super::{ENVELOPE_ERRORS, HELD_ERRORS, OFFER_ERRORS, Route, does, reads};
use crate::handlers::patterns;
use tasuki_protocol::Code;

use crate::wire;

/// Whoever decides on a dead letter fails in the same ways.
const REVIEW_ERRORS: &[Code] = &[
    Code::HandoffNotFound,
    Code::NotDeadLettered,
    Code::AlreadyReviewed,
    Code::ReviewTaken,
    Code::HandoffOpen,
    Code::NotOwner,
    Code::TaskFinished,
    Code::TaskMoved,
    Code::OtherTenant,
    Code::ConstraintAltered,
    Code::ConstraintDropped,
    Code::ConstraintNotYours,
    Code::DecisionSettled,
    Code::InvalidEnvelope,
    Code::InvalidPayload,
    Code::SecretFound,
    Code::TargetUnavailable,
    Code::DiskFull,
];

pub(super) fn routes() -> Vec<Route> {
    let mut routes = sending();
    routes.extend(deciding());
    routes
}

fn sending() -> Vec<Route> {
    vec![
        does::<wire::Send, wire::Sent, _, _>(
            "/v1/handoffs/send",
            "handoff_send",
            "Offer work and wait until the receiver has accepted it, or until there is a result",
            patterns::send,
        )
        .creates()
        .errors(ENVELOPE_ERRORS)
        .errors(OFFER_ERRORS),
        reads::<wire::Channel, _, _>(
            "/v1/channels/{name}",
            "channel_show",
            "Show who hears what is told on a channel",
            patterns::channel,
        )
        .errors(&[Code::InvalidRequest]),
        does::<wire::Subscribe, wire::Channel, _, _>(
            "/v1/channels/{name}/subscribe",
            "channel_subscribe",
            "Hear what is told on a channel from now on",
            patterns::subscribe,
        )
        .errors(&[Code::OtherTenant, Code::TooManySubscribers]),
        does::<wire::Subscribe, wire::Channel, _, _>(
            "/v1/channels/{name}/unsubscribe",
            "channel_unsubscribe",
            "Hear no longer what is told on a channel",
            patterns::unsubscribe,
        )
        .errors(&[Code::OtherTenant]),
        does::<wire::Publication, wire::Published, _, _>(
            "/v1/channels/{name}/publish",
            "channel_publish",
            "Tell something to many: one handoff for each, all in one step",
            patterns::publish,
        )
        .creates()
        .errors(ENVELOPE_ERRORS)
        .errors(OFFER_ERRORS),
        reads::<wire::Messages, _, _>(
            "/v1/channels/{name}/messages",
            "channel_messages",
            "Read what was told on a channel after a position",
            patterns::messages,
        )
        .query::<patterns::After>()
        .errors(&[Code::InvalidRequest, Code::TaskNotFound]),
        does::<wire::Gather, wire::Gathered, _, _>(
            "/v1/tasks/{id}/join",
            "task_join",
            "Collect what the tasks below one have come to, waiting for enough of them",
            patterns::join,
        )
        .errors(&[Code::TaskNotFound]),
        reads::<Pipelines, _, _>(
            "/v1/pipelines",
            "pipeline_list",
            "Show the routes that are declared",
            patterns::pipelines,
        ),
        does::<wire::StartPipeline, wire::Offered, _, _>(
            "/v1/pipelines/{name}/start",
            "pipeline_start",
            "Begin a task along a declared route",
            patterns::start_pipeline,
        )
        .creates()
        .errors(ENVELOPE_ERRORS)
        .errors(OFFER_ERRORS),
    ]
}

fn deciding() -> Vec<Route> {
    vec![
        reads::<wire::Groups, _, _>(
            "/v1/dead-letters/groups",
            "dead_letter_groups",
            "Show dead letters by what they died of",
            patterns::groups,
        ),
        does::<wire::DecideMany, wire::DecidedMany, _, _>(
            "/v1/dead-letters/decide",
            "dead_letter_decide_many",
            "Decide on many dead letters at once, or see which ones it would be",
            patterns::decide_many,
        )
        .errors(&[Code::HandoffNotFound]),
        does::<wire::Reroute, wire::Offered, _, _>(
            "/v1/dead-letters/{id}/reroute",
            "dead_letter_reroute",
            "Send a dead letter to another target",
            patterns::reroute,
        )
        .creates()
        .errors(REVIEW_ERRORS),
        does::<wire::Amend, wire::Offered, _, _>(
            "/v1/dead-letters/{id}/amend",
            "dead_letter_amend",
            "Send a dead letter on its way again with a new envelope, linked to the old one",
            patterns::amend,
        )
        .creates()
        .errors(REVIEW_ERRORS),
        does::<wire::Answer, wire::Offered, _, _>(
            "/v1/dead-letters/{id}/answer",
            "dead_letter_answer",
            "Answer what a dead letter stopped at, and let the work go on with the decision",
            patterns::answer,
        )
        .creates()
        .errors(REVIEW_ERRORS),
        does::<wire::TakeReview, wire::Handoff, _, _>(
            "/v1/dead-letters/{id}/take",
            "dead_letter_take",
            "Keep others from deciding on a dead letter for a while, or give it back",
            patterns::take_review,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::NotDeadLettered,
            Code::AlreadyReviewed,
            Code::ReviewTaken,
        ]),
        does::<wire::Retract, wire::Handoff, _, _>(
            "/v1/handoffs/{id}/retract",
            "handoff_retract",
            "Take back what a completed handoff produced; what is built on it is tainted",
            patterns::retract,
        )
        .errors(&[Code::HandoffNotFound, Code::WrongState, Code::TaskNotFound]),
        does::<wire::ClearTaint, wire::Task, _, _>(
            "/v1/tasks/{id}/clear-taint",
            "task_clear_taint",
            "Say that a task may go on although something that it is built on no longer holds",
            patterns::clear_taint,
        )
        .errors(&[Code::TaskNotFound, Code::NotTainted]),
        does::<wire::Reserve, wire::Reservations, _, _>(
            "/v1/handoffs/{id}/reserve",
            "handoff_reserve",
            "Take files or other resources for the holder, as long as its claim holds",
            patterns::reserve,
        )
        .errors(&[
            Code::HandoffNotFound,
            Code::StaleClaim,
            Code::ReadBackNeeded,
            Code::ResourceReserved,
            Code::InvalidResource,
        ]),
        does::<wire::Reserve, wire::Reservations, _, _>(
            "/v1/handoffs/{id}/unreserve",
            "handoff_unreserve",
            "Give resources up before the claim ends",
            patterns::unreserve,
        )
        .errors(HELD_ERRORS),
        reads::<wire::Reservations, _, _>(
            "/v1/reservations",
            "reservation_list",
            "Show what holders have for themselves",
            patterns::reservations,
        ),
        reads::<wire::TargetsHealth, _, _>(
            "/v1/health/targets",
            "health_targets",
            "Show how targets fare: failures in a row, breakers, hops, and how full budgets were",
            patterns::health,
        ),
    ]
}
