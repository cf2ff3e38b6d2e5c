// SPDX-License-Identifier: Apache-2.0
//! What the rules refuse, as an error.

use serde_json::Value;
use tasuki_core::Refusal;
use tasuki_core::canonical::Object;

use crate::{Code, Problem};

impl From<&Refusal> for Code {
    fn from(refusal: &Refusal) -> Self {
        // The core has no error pages; a test names every refusal there is.
        Self::named(refusal.code()).unwrap_or(Self::Internal)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let problem = Self::new((&refusal).into(), refusal.to_string(), refusal.hint());
        Self { details: details(&refusal), ..problem }
    }
}

/// What a program needs to act on a refusal without reading its text.
fn details(refusal: &Refusal) -> Object {
    let text = |name: &str, value: &dyn std::fmt::Display| {
        (name.to_owned(), Value::String(value.to_string()))
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
        Refusal::OpenBelow { task, below } => vec![text("task_id", task), text("below", below)],
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
        | Refusal::NoQuestion { handoff }
        | Refusal::AlreadyAnswered { handoff }
        | Refusal::TooManyMessages { handoff, .. }
        | Refusal::NoCounter { handoff, .. } => vec![text("handoff_id", handoff)],
        Refusal::NotPermittedTask { task, .. } | Refusal::IntentAltered { task } => {
            vec![text("task_id", task)]
        }
        Refusal::ReadBackNeeded { handoff, expected } => {
            vec![text("handoff_id", handoff), text("expected", expected)]
        }
        Refusal::BudgetExhausted { task, left } => {
            let left = serde_json::to_value(left).unwrap_or_default();
            vec![text("task_id", task), ("left".to_owned(), left)]
        }
        Refusal::OnHold { task, letter } => {
            vec![text("task_id", task), text("handoff_id", letter)]
        }
        Refusal::Deadlock { path, task } => {
            let path = path.iter().map(|agent| Value::from(agent.name())).collect::<Vec<_>>();
            vec![text("task_id", task), ("path".to_owned(), Value::from(path))]
        }
        Refusal::TargetPaused { target, left_ms } => {
            let left = left_ms.map(|left| ("retry_after_ms".to_owned(), left.into()));
            std::iter::once(text("target", target)).chain(left).collect()
        }
        Refusal::TreeTooDeep { task, max } => {
            vec![text("task_id", task), ("max".to_owned(), Value::from(*max))]
        }
        Refusal::OutOfTurn { handoff, first } => {
            vec![text("handoff_id", handoff), text("first", first)]
        }
        Refusal::IdempotencyConflict { key } => vec![text("idempotency_key", key)],
        Refusal::AgentNotFound(agent)
        | Refusal::HeldBack(agent)
        | Refusal::ManifestMoved { agent, .. }
        | Refusal::KeyNotShown(agent)
        | Refusal::TooManyKeys { agent, .. } => vec![text("agent_id", agent)],
        Refusal::GrantTooWide { permission, target, .. } => {
            vec![text("permission", permission), text("target", target)]
        }
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
        Refusal::TargetUnavailable { target, state, in_row, reset_in_ms } => vec![
            text("target", target),
            text("breaker", state),
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
        Refusal::KeptForAsker { handoff, agent, left_ms } => vec![
            text("handoff_id", handoff),
            text("asker", agent),
            ("retry_after_ms".to_owned(), (*left_ms).into()),
        ],
        Refusal::ArtifactNotFound { handoff, name } => {
            vec![text("handoff_id", handoff), text("name", name)]
        }
        Refusal::InvalidResource(_) | Refusal::InvalidArtifact(_) => vec![],
        Refusal::InvalidDocument(_)
        | Refusal::BodyNotFound(_)
        | Refusal::DeadlinePassed
        | Refusal::InvalidTerms(_)
        | Refusal::InvalidFollowUps(_)
        | Refusal::QuotaExceeded { .. }
        | Refusal::OtherTenant
        | Refusal::TokenRefused
        | Refusal::TokenTooDeep { .. }
        | Refusal::NameReserved(_)
        | Refusal::NameTaken { .. }
        | Refusal::InvalidRules(_) => vec![],
    };
    Object(members.into_iter().collect())
}
