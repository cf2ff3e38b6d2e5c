// SPDX-License-Identifier: Apache-2.0
//! The one shape of an error, and the one place where refusals and failures get their HTTP status.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::Refusal;
use tasuki_core::canonical::Object;
use tasuki_core::envelope::inherit::Breach;
use tasuki_core::envelope::{Constraint, Fault};
use tasuki_engine::{Error, StoreError};

use crate::json;

/// What every error looks like.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Stable; has a page of its own under `/docs/errors/`.
    pub code: String,
    /// What failed and why.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    #[serde(default)]
    pub details: Object,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    #[serde(skip)]
    pub(crate) status: u16,
}

macro_rules! codes {
    ($($code:literal $status:literal),+ $(,)?) => {
        /// Every code there is, with its HTTP status and its page.
        pub const CODES: &[(&str, u16, &str)] = &[
            $(($code, $status, include_str!(concat!("../../../docs/errors/", $code, ".md")))),+
        ];
    };
}

codes! {
    "agent_not_found" 404,
    "already_claimed" 409,
    "already_completed" 409,
    "already_declined" 409,
    "already_reviewed" 409,
    "body_erased" 410,
    "body_not_found" 404,
    "body_too_large" 413,
    "budget_too_small" 422,
    "chain_not_found" 404,
    "constraint_altered" 422,
    "constraint_dropped" 422,
    "constraint_not_yours" 403,
    "deadline_passed" 422,
    "decision_settled" 409,
    "digest_missing" 401,
    "digest_wrong" 401,
    "disk_full" 507,
    "handoff_not_found" 404,
    "handoff_open" 409,
    "host_not_allowed" 421,
    "idempotency_conflict" 409,
    "intent_altered" 409,
    "internal" 500,
    "invalid_document" 422,
    "invalid_envelope" 422,
    "invalid_follow_ups" 422,
    "invalid_json" 400,
    "invalid_manifest" 422,
    "invalid_payload" 422,
    "invalid_request" 400,
    "invalid_resource" 400,
    "invalid_rules" 422,
    "invalid_terms" 422,
    "key_not_found" 404,
    "key_taken" 409,
    "manifest_moved" 409,
    "memory_deleted" 409,
    "memory_not_found" 404,
    "memory_superseded" 409,
    "method_not_allowed" 405,
    "no_counter" 409,
    "not_dead_lettered" 409,
    "not_owner" 403,
    "not_permitted" 403,
    "not_tainted" 409,
    "not_target" 403,
    "other_tenant" 422,
    "out_of_turn" 409,
    "outcome_unknown" 503,
    "overloaded" 503,
    "ownership_not_shared" 422,
    "quota_exceeded" 429,
    "rate_limited" 429,
    "read_back_needed" 409,
    "request_timeout" 408,
    "resource_reserved" 409,
    "review_taken" 409,
    "revision_conflict" 409,
    "route_not_found" 404,
    "secret_found" 422,
    "shutting_down" 503,
    "signature_algorithm" 401,
    "signature_components" 401,
    "signature_expired" 401,
    "signature_malformed" 401,
    "signature_missing" 401,
    "signature_not_yet_valid" 401,
    "signature_replayed" 401,
    "signature_too_early" 401,
    "signature_wrong" 401,
    "stale_claim" 409,
    "still_needed" 409,
    "store_unavailable" 503,
    "target_unavailable" 409,
    "task_finished" 409,
    "task_moved" 409,
    "task_not_found" 404,
    "terms_out_of_range" 422,
    "token_invalid" 401,
    "token_not_found" 404,
    "token_refused" 403,
    "too_many_counters" 409,
    "too_many_keys" 409,
    "too_many_subscribers" 409,
    "trust_raised" 422,
    "unauthenticated" 401,
    "unsupported_media_type" 415,
    "version_not_supported" 422,
    "wrong_state" 409,
}

/// The HTTP status of a code.
#[must_use]
pub fn status_of(code: &str) -> u16 {
    CODES.iter().find(|(known, ..)| *known == code).map_or(500, |(_, status, _)| *status)
}

impl Problem {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, hint: &str) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            hint: hint.into(),
            retryable: false,
            details: Object::default(),
            request_id: String::new(),
            status: status_of(code),
        }
    }

    pub(crate) fn retryable(self) -> Self {
        Self { retryable: true, ..self }
    }

    pub(crate) fn detail(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.details.0.insert(name.into(), value.into());
        self
    }

    pub(crate) fn invalid(field: &str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        // A rule that is broken names its place as a shape that does not fit does.
        let path = match field {
            "body" => String::new(),
            field => format!("/{}", field.replace(['.', '['], "/").replace(']', "")),
        };
        let faults = serde_json::json!([{ "path": path, "problem": problem }]);
        Self::new(
            "invalid_request",
            format!("{field}: {problem}"),
            "correct the field and send the request again; /docs describes every field",
        )
        .detail("field", field)
        .detail("faults", faults)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let mut problem = Self::new(refusal.code(), refusal.to_string(), refusal.hint());
        problem.retryable = refusal.is_retryable();
        problem.details = details(&refusal);
        problem
    }
}

/// What a program needs to act on a refusal without reading its text.
fn details(refusal: &Refusal) -> Object {
    let text = |name: &str, value: &dyn std::fmt::Display| {
        (name.to_owned(), serde_json::Value::String(value.to_string()))
    };
    let members = match refusal {
        Refusal::TaskNotFound(task) | Refusal::TaskMoved(task) => vec![text("task_id", task)],
        Refusal::HandoffNotFound(handoff) => vec![text("handoff_id", handoff)],
        Refusal::NotOwner { task, owner, .. } => vec![text("task_id", task), text("owner", owner)],
        Refusal::HandoffOpen { task, handoff } => {
            vec![text("task_id", task), text("handoff_id", handoff)]
        }
        Refusal::TaskFinished { task, state } => {
            vec![text("task_id", task), text("state", state)]
        }
        Refusal::StaleClaim { handoff, state }
        | Refusal::AlreadyClaimed { handoff, state }
        | Refusal::WrongState { handoff, state, .. }
        | Refusal::NotDeadLettered { handoff, state } => {
            vec![text("handoff_id", handoff), text("state", state)]
        }
        Refusal::AlreadyCompleted { handoff }
        | Refusal::AgreementNotChecked { handoff }
        | Refusal::NotTarget { handoff, .. }
        | Refusal::AlreadyDeclined { handoff, .. }
        | Refusal::NotPermitted { handoff, .. }
        | Refusal::AlreadyReviewed { handoff, .. }
        | Refusal::TooManyCounters { handoff, .. }
        | Refusal::NoCounter { handoff, .. } => vec![text("handoff_id", handoff)],
        Refusal::NotPermittedTask { task, .. } | Refusal::IntentAltered { task } => {
            vec![text("task_id", task)]
        }
        Refusal::ReadBackNeeded { handoff, expected } => {
            vec![text("handoff_id", handoff), text("expected", expected)]
        }
        Refusal::OutOfTurn { handoff, first } => {
            vec![text("handoff_id", handoff), text("first", first)]
        }
        Refusal::IdempotencyConflict { key } => vec![text("idempotency_key", key)],
        Refusal::AgentNotFound(agent)
        | Refusal::HeldBack(agent)
        | Refusal::ManifestMoved { agent, .. }
        | Refusal::TooManyKeys { agent, .. } => vec![text("agent_id", agent)],
        Refusal::KeyNotFound { agent, key } => {
            vec![text("agent_id", agent), text("key_id", key)]
        }
        Refusal::KeyTaken(key) => vec![text("key_id", key)],
        Refusal::TokenNotFound(token) => vec![text("token_id", token)],
        Refusal::ChainNotFound(id) => vec![text("chain_id", id)],
        Refusal::MemoryNotFound(id) | Refusal::MemoryDeleted(id) => vec![text("memory_id", id)],
        Refusal::MemorySuperseded { id, by } => {
            vec![text("memory_id", id), text("superseded_by", by)]
        }
        Refusal::RevisionConflict { current, .. } => {
            vec![("current".to_owned(), (*current).into())]
        }
        Refusal::DecisionSettled { key, decision } => {
            vec![text("key", key), ("decision".to_owned(), (*decision).into())]
        }
        Refusal::OwnershipNotShared { path } => vec![text("path", path)],
        Refusal::SecretFound { path, kind } => vec![text("path", path), text("kind", kind)],
        Refusal::StillNeeded(task) => vec![text("task_id", task)],
        Refusal::TargetUnavailable { target, in_row, reset_in_ms } => vec![
            text("target", target),
            ("failed_in_row".to_owned(), (*in_row).into()),
            ("retry_after_ms".to_owned(), (*reset_in_ms).into()),
        ],
        Refusal::Reserved { resource, holder, handoff } => {
            vec![text("resource", resource), text("holder", holder), text("handoff_id", handoff)]
        }
        Refusal::ReviewTaken { handoff, by, left_ms } => vec![
            text("handoff_id", handoff),
            text("reviewer", by),
            ("retry_after_ms".to_owned(), (*left_ms).into()),
        ],
        Refusal::NotTainted { task, source_handoff } => {
            vec![text("task_id", task), text("handoff_id", source_handoff)]
        }
        Refusal::TooManySubscribers { channel, .. } => vec![text("channel", channel)],
        Refusal::InvalidResource(_) => vec![],
        Refusal::InvalidDocument(_)
        | Refusal::BodyNotFound(_)
        | Refusal::DeadlinePassed
        | Refusal::InvalidTerms(_)
        | Refusal::InvalidFollowUps(_)
        | Refusal::QuotaExceeded { .. }
        | Refusal::OtherTenant
        | Refusal::TokenRefused
        | Refusal::InvalidRules(_) => vec![],
    };
    Object(members.into_iter().collect())
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Invalid { field, problem } => Self::invalid(field, problem),
            Error::Manifest(problems) => {
                let first = problems.first().map_or_else(String::new, |problem| {
                    format!("; the first is {}: {}", problem.path, problem.problem)
                });
                let faults: Vec<serde_json::Value> = problems
                    .iter()
                    .map(|p| serde_json::json!({"path": p.path, "problem": p.problem}))
                    .collect();
                let message = format!("the manifest has {} faults{first}", problems.len());
                Self::new("invalid_manifest", message, "correct every fault and publish it again")
                    .detail("faults", faults)
            }
            Error::Payload { what, faults } => {
                let first = faults.first().map_or_else(String::new, |fault| {
                    format!("; the first fault is at {:?}: {}", fault.path, fault.problem)
                });
                let message = format!("the payload does not fit {what}{first}");
                Self::new("invalid_payload", message, "correct the payload and send it again")
                    .detail("faults", self::faults(&faults))
            }
            Error::Trust(faults) => {
                let first = faults.first().map_or_else(String::new, |fault| {
                    format!(": {} {}", fault.path, fault.problem)
                });
                Self::new(
                    "trust_raised",
                    format!("a part of the payload claims more trust than it has{first}"),
                    "pass parts on with the labels they came with, or lower ones",
                )
                .detail("faults", self::faults(&faults))
            }
            Error::Envelope(breaches) => breached(&breaches),
            Error::TooSmall(small) => {
                let largest = serde_json::to_value(&small.largest).unwrap_or_default();
                Self::new(
                    "budget_too_small",
                    format!(
                        "what must be passed needs {} tokens, and there are {}",
                        small.needed, small.budget
                    ),
                    "give a larger budget, or make what takes most room shorter",
                )
                .detail("needed", small.needed)
                .detail("budget", small.budget)
                .detail("largest", largest)
            }
            Error::OutOfRange(message) => Self::new(
                "terms_out_of_range",
                message,
                "offer terms within the range of the receiver's manifest, or choose another",
            ),
            Error::Unauthenticated { code, message } => {
                let mut problem = Self::new(code, message, crate::auth::HINT);
                problem.retryable = matches!(code, "signature_too_early" | "signature_expired");
                problem
            }
            Error::Denied(message) => Self::new(
                "not_permitted",
                message,
                "ask an administrator of your tenant for a rule that allows it",
            ),
            Error::Quota { message, retry_after_ms } => Self::new(
                "quota_exceeded",
                message,
                "wait for the time in Retry-After and send the request again",
            )
            .retryable()
            .detail("retry_after_ms", retry_after_ms),
            Error::Store(StoreError::Refused(refusal)) => refusal.into(),
            Error::Store(StoreError::Overloaded) => Self::new(
                "overloaded",
                "too many commands are waiting; nothing was stored",
                "wait for the time in Retry-After and send the request again",
            )
            .retryable(),
            Error::Store(StoreError::DiskFull) => Self::new(
                "disk_full",
                "the disk is full, so no new work is taken; nothing was stored",
                "free some space; work under way can still be finished",
            )
            .retryable(),
            Error::Store(StoreError::Closed) => Self::new(
                "shutting_down",
                "the broker is shutting down; nothing was stored",
                "send the request again when it is back",
            )
            .retryable(),
            Error::Store(StoreError::Unavailable) => Self::new(
                "store_unavailable",
                "the database cannot be reached or is busy; nothing was stored",
                "wait for the time in Retry-After and send the request again",
            )
            .retryable(),
            Error::Store(StoreError::Unknown) => Self::new(
                "outcome_unknown",
                "the broker failed before it could say whether the request was carried out",
                "repeat the request with the same idempotency key, request id or claim",
            )
            .retryable(),
            Error::Store(StoreError::Failed { step, source }) => {
                tracing::error!(%step, %source, "the store failed");
                Self::new(
                    "internal",
                    format!("the broker could not {step}"),
                    "look into the broker's log for the request id; `tasuki doctor` checks the store",
                )
            }
        }
    }
}

/// Faults as they are told, all of them.
pub(crate) fn faults(faults: &[Fault]) -> Vec<serde_json::Value> {
    let told = |fault: &Fault| serde_json::json!({"path": fault.path, "problem": fault.problem});
    faults.iter().map(told).collect()
}

/// The code is that of the first breach; all of them are named.
fn breached(breaches: &[Breach]) -> Problem {
    let told: Vec<_> = breaches.iter().map(tell).collect();
    let (code, hint, message) = match breaches.first() {
        Some(Breach::Dropped(constraint)) => (
            "constraint_dropped",
            "leave `constraints` out: the broker carries what binds by itself",
            format!("a constraint that binds is missing: {:?}", constraint.text),
        ),
        Some(Breach::Altered { constraint, .. }) => (
            "constraint_altered",
            "restate it word for word, or leave it out; only its issuer or the coordinator lifts it",
            format!("a constraint that binds was changed: {:?}", constraint.text),
        ),
        Some(Breach::NotYours(constraint)) => (
            "constraint_not_yours",
            "ask its issuer or the coordinator of the task to lift it",
            format!("{} said {:?}, so it is not yours to lift", constraint.issuer, constraint.text),
        ),
        Some(Breach::Settled { key, by }) => (
            "decision_settled",
            "keep to the decision, or name it in `supersedes` and say why",
            format!("{key:?} is decided already: {:?}, by {}", by.decision, by.by),
        ),
        Some(Breach::Malformed(fault)) => (
            "invalid_envelope",
            "correct every fault that is named and send it again",
            format!("{} {}", fault.path, fault.problem),
        ),
        None => ("invalid_envelope", "send it again", "the envelope is not what it must be".into()),
    };
    Problem::new(code, message, hint).detail("faults", told)
}

fn tell(breach: &Breach) -> serde_json::Value {
    let about = |code: &str, path: &str, one: &Constraint, problem: &str| {
        serde_json::json!({
            "code": code, "path": path, "problem": problem, "constraint_id": one.id, "text": one.text,
        })
    };
    match breach {
        Breach::Malformed(fault) => serde_json::json!({
            "code": "invalid_envelope", "path": fault.path, "problem": fault.problem,
        }),
        Breach::Dropped(one) => about("constraint_dropped", "/constraints", one, "is missing"),
        Breach::Altered { constraint, path } => {
            about("constraint_altered", path, constraint, "says something else")
        }
        Breach::NotYours(one) => {
            about("constraint_not_yours", "/lift_constraints", one, "is another's to lift")
        }
        Breach::Settled { key, by } => serde_json::json!({
            "code": "decision_settled", "path": "/decisions", "key": key, "decision_id": by.id,
            "problem": format!("is decided already: {}", by.decision),
        }),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = json::reply(status, &self);
        if matches!(status.as_u16(), 429 | 503 | 507) {
            let ms = self.details.0.get("retry_after_ms").and_then(serde_json::Value::as_u64);
            let seconds = ms.unwrap_or(1000).div_ceil(1000).max(1);
            response.headers_mut().insert(axum::http::header::RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(std::sync::Arc::new(self));
        response
    }
}
