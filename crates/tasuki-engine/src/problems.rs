// SPDX-License-Identifier: Apache-2.0
//! What goes wrong, as every door tells it.

use serde_json::json;
use tasuki_core::envelope::Constraint;
use tasuki_core::envelope::inherit::Breach;
use tasuki_protocol::{Code, Problem};
use tasuki_store::Error as StoreError;

use crate::error::Error;

/// What to do about a request that does not show who it is from.
pub const WHO_HINT: &str = "sign the request with an enrolled key, or send a bearer token; see /docs/errors/unauthenticated";

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Ended { refusal, how, reason } => {
                let problem = Self::from(refusal).detail("ended", how.as_str());
                match reason {
                    Some(reason) => problem.detail("reason", reason),
                    None => problem,
                }
            }
            Error::Invalid { field, problem } => Self::invalid(field, problem),
            Error::Unknown(faults) => {
                let first = faults.first().map_or(("", ""), |it| (&it.path[1..], &it.problem));
                Self::invalid(first.0, first.1).faults(&faults)
            }
            Error::Version(_) => Self::new(
                Code::VersionNotSupported,
                error.to_string(),
                "send an envelope of major 2, or of major 1 in its flat form",
            ),
            Error::Manifest(problems) => {
                let first = problems.first().map_or_else(String::new, |problem| {
                    format!("; the first is {}: {}", problem.path, problem.problem)
                });
                let faults: Vec<serde_json::Value> = problems
                    .iter()
                    .map(|p| json!({"path": p.path, "problem": p.problem}))
                    .collect();
                let message = format!("the manifest has {} faults{first}", problems.len());
                Self::new(
                    Code::InvalidManifest,
                    message,
                    "correct every fault and publish it again",
                )
                .detail("faults", faults)
            }
            Error::Payload { what, faults } => {
                let first = faults.first().map_or_else(String::new, |fault| {
                    format!("; the first fault is at {:?}: {}", fault.path, fault.problem)
                });
                let message = format!("the payload does not fit {what}{first}");
                Self::new(Code::InvalidPayload, message, "correct the payload and send it again")
                    .faults(&faults)
            }
            Error::Trust(faults) => {
                let first = faults.first().map_or_else(String::new, |fault| {
                    format!(": {} {}", fault.path, fault.problem)
                });
                Self::new(
                    Code::TrustRaised,
                    format!("a part of the payload claims more trust than it has{first}"),
                    "pass parts on with the labels they came with, or lower ones",
                )
                .faults(&faults)
            }
            Error::Envelope(breaches) => breached(&breaches),
            Error::TooSmall(small) => {
                let largest = serde_json::to_value(&small.largest).unwrap_or_default();
                Self::new(
                    Code::BudgetTooSmall,
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
                Code::TermsOutOfRange,
                message,
                "offer terms within the range of the receiver's manifest, or choose another",
            ),
            Error::Unauthenticated { code, message } => Self::new(code, message, WHO_HINT),
            Error::Denied(message) => Self::new(
                Code::NotPermitted,
                message,
                "ask an administrator of your tenant for a rule that allows it",
            ),
            Error::Undeclared { .. } => Self::new(
                Code::CapabilityNotDeclared,
                error.to_string(),
                "publish a manifest that names it (`tasuki agent publish`), or leave it out",
            ),
            Error::Quota { message, retry_after_ms } => Self::new(
                Code::QuotaExceeded,
                message,
                "wait for the time in Retry-After and send the request again",
            )
            .detail("retry_after_ms", retry_after_ms),
            Error::CursorLost { cursor, resume_after } => Self::new(
                Code::CursorLost,
                format!(
                    "the end of the log was lost after {cursor} was given out; events may be missing"
                ),
                "go on after resume_after, and read again what you know from events after it",
            )
            .detail("resume_after", resume_after.to_string()),
            Error::Store(StoreError::Refused(refusal)) => refusal.into(),
            Error::Store(StoreError::Overloaded) => Self::new(
                Code::Overloaded,
                "too many commands are waiting; nothing was stored",
                "wait for the time in Retry-After and send the request again",
            ),
            Error::Store(StoreError::DiskFull) => Self::new(
                Code::DiskFull,
                "the disk is full, so no new work is taken; nothing was stored",
                "free some space; work under way can still be finished",
            ),
            Error::Store(StoreError::Closed) => Self::new(
                Code::ShuttingDown,
                "the broker is shutting down; nothing was stored",
                "send the request again when it is back",
            ),
            Error::Store(StoreError::Unavailable) => Self::new(
                Code::StoreUnavailable,
                "the database cannot be reached or is busy; nothing was stored",
                "wait for the time in Retry-After and send the request again",
            ),
            Error::Store(StoreError::Unknown) => Self::new(
                Code::OutcomeUnknown,
                "the broker failed before it could say whether the request was carried out",
                "repeat the request with the same idempotency key, request id or claim",
            ),
            Error::Store(StoreError::Failed { step, source }) => {
                tracing::error!(%step, %source, "the store failed");
                Self::new(
                    Code::Internal,
                    format!("the broker could not {step}"),
                    "look into the broker's log for the request id; `tasuki doctor` checks the store",
                )
            }
        }
    }
}

/// The code is that of the first breach; all of them are named.
fn breached(breaches: &[Breach]) -> Problem {
    let told: Vec<_> = breaches.iter().map(tell).collect();
    let (code, hint, message) = match breaches.first() {
        Some(Breach::Dropped(constraint)) => (
            Code::ConstraintDropped,
            "leave `constraints` out: the broker carries what binds by itself",
            format!("a constraint that binds is missing: {:?}", constraint.text),
        ),
        Some(Breach::Altered { constraint, .. }) => (
            Code::ConstraintAltered,
            "restate it word for word, or leave it out; only its issuer or the coordinator lifts it",
            format!("a constraint that binds was changed: {:?}", constraint.text),
        ),
        Some(Breach::NotYours(constraint)) => (
            Code::ConstraintNotYours,
            "ask its issuer or the coordinator of the task to lift it",
            format!("{} said {:?}, so it is not yours to lift", constraint.issuer, constraint.text),
        ),
        Some(Breach::Settled { key, by }) => (
            Code::DecisionSettled,
            "keep to the decision, or name it in `supersedes` and say why",
            format!("{key:?} is decided already: {:?}, by {}", by.decision, by.by),
        ),
        Some(Breach::Malformed(fault)) => (
            Code::InvalidEnvelope,
            "correct every fault that is named and send it again",
            format!("{} {}", fault.path, fault.problem),
        ),
        None => {
            (Code::InvalidEnvelope, "send it again", "the envelope is not what it must be".into())
        }
    };
    Problem::new(code, message, hint).detail("faults", told)
}

fn tell(breach: &Breach) -> serde_json::Value {
    let about = |code: Code, path: &str, one: &Constraint, problem: &str| {
        json!({
            "code": code.as_str(), "path": path, "problem": problem, "constraint_id": one.id, "text": one.text,
        })
    };
    match breach {
        Breach::Malformed(fault) => json!({
            "code": Code::InvalidEnvelope.as_str(), "path": fault.path, "problem": fault.problem,
        }),
        Breach::Dropped(one) => about(Code::ConstraintDropped, "/constraints", one, "is missing"),
        Breach::Altered { constraint, path } => {
            about(Code::ConstraintAltered, path, constraint, "says something else")
        }
        Breach::NotYours(one) => {
            about(Code::ConstraintNotYours, "/lift_constraints", one, "is another's to lift")
        }
        Breach::Settled { key, by } => json!({
            "code": Code::DecisionSettled.as_str(), "path": "/decisions", "key": key, "decision_id": by.id,
            "problem": format!("is decided already: {}", by.decision),
        }),
    }
}
