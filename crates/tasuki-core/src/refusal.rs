// SPDX-License-Identifier: Apache-2.0
//! Every reason to say no. Each has a code that is never reused and a page in `docs/errors/`.

use crate::breaker::BreakerName;
use crate::budget::Budget;
use crate::handoff::StateName;
use crate::ids::{
    AgentId, ArtifactName, ChannelId, DecisionKey, DocumentId, HandoffId, Hash, IdempotencyKey,
    KeyId, Position, Resource, TaskId, TokenId,
};
use crate::registry::rules::Permission;
use crate::secrets::SecretKind;
use crate::task::TaskState;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no task {0}")]
    TaskNotFound(TaskId),
    #[error("there is no handoff {0}")]
    HandoffNotFound(HandoffId),
    #[error("task {task} is owned by {owner}, not by {agent}")]
    NotOwner { task: TaskId, owner: AgentId, agent: AgentId },
    #[error("task {task} is already being handed off by {handoff}")]
    HandoffOpen { task: TaskId, handoff: HandoffId },
    #[error("task {task} is {state}")]
    TaskFinished { task: TaskId, state: TaskState },
    #[error("task {below} below task {task} is not at its end")]
    OpenBelow { task: TaskId, below: TaskId },
    #[error("task {0} moved on while the envelope was being made")]
    TaskMoved(TaskId),
    #[error("the claim on handoff {handoff} no longer holds; the handoff is {state}")]
    StaleClaim { handoff: HandoffId, state: StateName },
    #[error("handoff {handoff} is {state}")]
    AlreadyClaimed { handoff: HandoffId, state: StateName },
    #[error("handoff {handoff} was completed with another result")]
    AlreadyCompleted { handoff: HandoffId },
    #[error("handoff {handoff} is {state}, so it cannot be {wanted}")]
    WrongState { handoff: HandoffId, state: StateName, wanted: &'static str },
    #[error("handoff {handoff} is not meant for {agent}")]
    NotTarget { handoff: HandoffId, agent: AgentId },
    #[error("{agent} declined handoff {handoff} before")]
    AlreadyDeclined { handoff: HandoffId, agent: AgentId },
    #[error("{agent} may not {wish} handoff {handoff}")]
    NotPermitted { handoff: HandoffId, agent: AgentId, wish: &'static str },
    #[error("{agent} may not cancel task {task}")]
    NotPermittedTask { task: TaskId, agent: AgentId },
    #[error("the intent of task {task} is settled and was sent with other words")]
    IntentAltered { task: TaskId },
    #[error("handoff {handoff} has to wait for {first}, which has the same ordering key")]
    OutOfTurn { handoff: HandoffId, first: HandoffId },
    #[error("idempotency key {key:?} was used for another request")]
    IdempotencyConflict { key: IdempotencyKey },
    #[error("handoff {handoff} is {state}, not a dead letter")]
    NotDeadLettered { handoff: HandoffId, state: StateName },
    #[error("dead letter {handoff} was already {decided}")]
    AlreadyReviewed { handoff: HandoffId, decided: &'static str },
    #[error("the deadline has already passed")]
    DeadlinePassed,
    #[error("task {task} has nothing left to spend")]
    BudgetExhausted { task: TaskId, left: Budget },
    #[error("task {task} is on hold until somebody has decided on dead letter {letter}")]
    OnHold { task: TaskId, letter: HandoffId },
    #[error("{} wait for each other's answers in a circle", in_words(path))]
    Deadlock { path: Vec<AgentId>, task: TaskId },
    #[error("task {task} has {max} tasks above it already")]
    TreeTooDeep { task: TaskId, max: usize },
    #[error("{0}")]
    InvalidTerms(String),
    #[error("{0}")]
    InvalidFollowUps(&'static str),
    #[error("handoff {handoff} has {max} counter-offers already")]
    TooManyCounters { handoff: HandoffId, max: usize },
    #[error("{agent} has made no counter-offer for handoff {handoff}")]
    NoCounter { handoff: HandoffId, agent: AgentId },
    #[error("handoff {handoff} must be read back before the claim counts")]
    ReadBackNeeded { handoff: HandoffId, expected: Hash },
    #[error("the result was not held against what was agreed for handoff {handoff}")]
    AgreementNotChecked { handoff: HandoffId },
    #[error("handoff {handoff} waits with no such question")]
    NoQuestion { handoff: HandoffId },
    #[error("the question of handoff {handoff} was answered before")]
    AlreadyAnswered { handoff: HandoffId },
    #[error("handoff {handoff} is kept for {agent}, which asked, for another {left_ms} ms")]
    KeptForAsker { handoff: HandoffId, agent: AgentId, left_ms: u64 },
    #[error("{max} messages to the holder of handoff {handoff} wait to be acknowledged")]
    TooManyMessages { handoff: HandoffId, max: usize },
    #[error("{0}")]
    InvalidArtifact(String),
    #[error("nothing called {name:?} is attached to handoff {handoff}")]
    ArtifactNotFound { handoff: HandoffId, name: ArtifactName },
    #[error("tenant {tenant} has {used} {what}, and may have {limit}")]
    QuotaExceeded { tenant: String, what: &'static str, used: u64, limit: u64 },
    #[error("work stays within its tenant")]
    OtherTenant,
    #[error(
        "nothing more goes to {target} for up to {reset_in_ms} ms: it failed {in_row} times in a row, \
         and its breaker is {state}"
    )]
    TargetUnavailable { target: String, state: BreakerName, in_row: u32, reset_in_ms: u64 },
    #[error("{target} is paused, so nothing is claimed of it")]
    TargetPaused { target: String, left_ms: Option<u64> },
    #[error("{holder} has {resource} for itself, by handoff {handoff}")]
    Reserved { resource: Resource, holder: AgentId, handoff: HandoffId },
    #[error("{0}")]
    InvalidResource(String),
    #[error("{by} decides on dead letter {handoff} for another {left_ms} ms")]
    ReviewTaken { handoff: HandoffId, by: AgentId, left_ms: u64 },
    #[error("task {task} is not tainted by {source_handoff}")]
    NotTainted { task: TaskId, source_handoff: HandoffId },
    #[error("channel {channel} has {max} subscribers already")]
    TooManySubscribers { channel: ChannelId, max: usize },
    #[error("there is no agent {0}")]
    AgentNotFound(AgentId),
    #[error("{0} was drained by somebody else, and does not let itself work again")]
    HeldBack(AgentId),
    #[error("the manifest of {agent} is at version {version}")]
    ManifestMoved { agent: AgentId, version: u32 },
    #[error("{agent} has no key {key} that can be replaced or revoked")]
    KeyNotFound { agent: AgentId, key: KeyId },
    #[error("key {0} is or was somebody's already")]
    KeyTaken(KeyId),
    #[error("{agent} has {max} keys already")]
    TooManyKeys { agent: AgentId, max: usize },
    #[error("there is no token {0}")]
    TokenNotFound(TokenId),
    #[error("the token is not known here, was used, ran out, or is for another agent")]
    TokenRefused,
    #[error("{0}")]
    InvalidRules(String),
    #[error("{agent} may not {permission} towards {target} itself, so it cannot grant that")]
    GrantTooWide { agent: AgentId, permission: Permission, target: String },
    #[error("the keys of {0} are changed with one of its keys or by another administrator")]
    KeyNotShown(AgentId),
    #[error("the token would be made from {max} others, one from another, already")]
    TokenTooDeep { max: usize },
    #[error("{0} is, or looks like, the broker's own name")]
    NameReserved(AgentId),
    #[error("{agent} differs from {there}, who is known, in capitals only")]
    NameTaken { agent: AgentId, there: AgentId },
    #[error("there is no imported chain {0}")]
    ChainNotFound(DocumentId),
    #[error("there is no memory {0}")]
    MemoryNotFound(DocumentId),
    #[error("memory {0} was deleted")]
    MemoryDeleted(DocumentId),
    #[error("memory {id} was superseded by {by}")]
    MemorySuperseded { id: DocumentId, by: DocumentId },
    #[error("{id} is at revision {current}, and the writer has seen revision {expected}")]
    RevisionConflict { id: DocumentId, expected: u32, current: u32 },
    #[error("{key:?} is settled by decision {decision}")]
    DecisionSettled { key: DecisionKey, decision: u32 },
    #[error("{path} speaks of who owns a task, which a shared context cannot say")]
    OwnershipNotShared { path: String },
    #[error("{0}")]
    InvalidDocument(String),
    #[error("{path} looks like {kind}")]
    SecretFound { path: String, kind: SecretKind },
    #[error("task {0} is not at its end, so what was passed on in it is still needed")]
    StillNeeded(TaskId),
    #[error("there is no body at position {0} that could be erased")]
    BodyNotFound(Position),
}

/// Who waits for whom.
fn in_words(path: &[AgentId]) -> String {
    path.iter().map(AgentId::name).collect::<Vec<_>>().join(" -> ")
}

impl Refusal {
    /// The stable code, as in `docs/errors/<code>.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TaskNotFound(_) => "task_not_found",
            Self::HandoffNotFound(_) => "handoff_not_found",
            Self::NotOwner { .. } => "not_owner",
            Self::HandoffOpen { .. } => "handoff_open",
            Self::TaskFinished { .. } => "task_finished",
            Self::OpenBelow { .. } => "open_below",
            Self::TaskMoved(_) | Self::AgreementNotChecked { .. } => "task_moved",
            Self::StaleClaim { .. } => "stale_claim",
            Self::AlreadyClaimed { .. } => "already_claimed",
            Self::AlreadyCompleted { .. } => "already_completed",
            Self::WrongState { .. } => "wrong_state",
            Self::NotTarget { .. } => "not_target",
            Self::AlreadyDeclined { .. } => "already_declined",
            Self::NotPermitted { .. } | Self::NotPermittedTask { .. } | Self::HeldBack(_) => {
                "not_permitted"
            }
            Self::IntentAltered { .. } => "intent_altered",
            Self::OutOfTurn { .. } => "out_of_turn",
            Self::IdempotencyConflict { .. } => "idempotency_conflict",
            Self::NotDeadLettered { .. } => "not_dead_lettered",
            Self::AlreadyReviewed { .. } => "already_reviewed",
            Self::DeadlinePassed => "deadline_passed",
            Self::BudgetExhausted { .. } => "budget_exhausted",
            Self::OnHold { .. } => "on_hold",
            Self::Deadlock { .. } => "deadlock",
            Self::TreeTooDeep { .. } => "tree_too_deep",
            Self::InvalidTerms(_) => "invalid_terms",
            Self::InvalidFollowUps(_) => "invalid_follow_ups",
            Self::TooManyCounters { .. } => "too_many_counters",
            Self::NoCounter { .. } => "no_counter",
            Self::ReadBackNeeded { .. } => "read_back_needed",
            Self::NoQuestion { .. } => "no_question",
            Self::AlreadyAnswered { .. } => "already_answered",
            Self::KeptForAsker { .. } => "kept_for_asker",
            Self::TooManyMessages { .. } => "too_many_messages",
            Self::InvalidArtifact(_) => "invalid_artifact",
            Self::ArtifactNotFound { .. } => "artifact_not_found",
            Self::QuotaExceeded { .. } => "quota_exceeded",
            Self::OtherTenant => "other_tenant",
            Self::TargetUnavailable { .. } => "target_unavailable",
            Self::TargetPaused { .. } => "target_paused",
            Self::Reserved { .. } => "resource_reserved",
            Self::InvalidResource(_) => "invalid_resource",
            Self::ReviewTaken { .. } => "review_taken",
            Self::NotTainted { .. } => "not_tainted",
            Self::TooManySubscribers { .. } => "too_many_subscribers",
            Self::AgentNotFound(_) => "agent_not_found",
            Self::ManifestMoved { .. } => "manifest_moved",
            Self::KeyNotFound { .. } => "key_not_found",
            Self::KeyTaken(_) => "key_taken",
            Self::TooManyKeys { .. } => "too_many_keys",
            Self::TokenNotFound(_) => "token_not_found",
            Self::TokenRefused => "token_refused",
            Self::InvalidRules(_) => "invalid_rules",
            Self::GrantTooWide { .. } => "grant_too_wide",
            Self::KeyNotShown(_) => "key_not_shown",
            Self::TokenTooDeep { .. } => "token_too_deep",
            Self::NameReserved(_) => "name_reserved",
            Self::NameTaken { .. } => "name_taken",
            Self::ChainNotFound(_) => "chain_not_found",
            Self::MemoryNotFound(_) => "memory_not_found",
            Self::MemoryDeleted(_) => "memory_deleted",
            Self::MemorySuperseded { .. } => "memory_superseded",
            Self::RevisionConflict { .. } => "revision_conflict",
            Self::DecisionSettled { .. } => "decision_settled",
            Self::OwnershipNotShared { .. } => "ownership_not_shared",
            Self::InvalidDocument(_) => "invalid_document",
            Self::SecretFound { .. } => "secret_found",
            Self::StillNeeded(_) => "still_needed",
            Self::BodyNotFound(_) => "body_not_found",
        }
    }

    /// What the caller can do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TaskNotFound(_) => "check the id; `tasuki task list` shows the tasks there are",
            Self::HandoffNotFound(_) => {
                "check the id; `tasuki handoff list` shows the handoffs there are"
            }
            Self::NotOwner { .. } => {
                "only the owner hands a task on: let the owner do it, or open a task of your own"
            }
            Self::HandoffOpen { .. } => {
                "complete that handoff with a follow-up, or cancel it, before offering again"
            }
            Self::TaskFinished { .. } => "open a new task for more work",
            Self::OpenBelow { .. } => {
                "let it end, cancel it, or complete with `below: let_go` if it may go on by itself"
            }
            Self::TaskMoved(_) | Self::AgreementNotChecked { .. } => {
                "read the task again and repeat the request"
            }
            Self::StaleClaim { .. } => "stop working on it; claim again if you want more work",
            Self::AlreadyClaimed { .. } => "somebody else was faster or it is over; claim another",
            Self::AlreadyCompleted { .. } => "read the result that was accepted; it stands",
            Self::WrongState { .. } => "read the handoff to see where it is",
            Self::NotTarget { .. } => {
                "claim as the agent it names, or with the capability it asks for"
            }
            Self::AlreadyDeclined { .. } => "leave it to another agent",
            Self::NotPermitted { .. } | Self::NotPermittedTask { .. } => {
                "ask the sender or the one who opened the task"
            }
            Self::IntentAltered { .. } => {
                "leave the intent out: the broker carries the user's words from hop to hop itself"
            }
            Self::OutOfTurn { .. } => "claim the earlier one first",
            Self::IdempotencyConflict { .. } => {
                "use a new key for a new request, or repeat the first request unchanged"
            }
            Self::NotDeadLettered { .. } => {
                "only dead letters are reviewed; see `tasuki dead-letter list`"
            }
            Self::AlreadyReviewed { .. } => "read the dead letter to see what was decided",
            Self::BudgetExhausted { .. } => {
                "complete with what there is; more work needs a task with a budget of its own"
            }
            Self::OnHold { .. } => "decide on that dead letter first; what is below it follows",
            Self::Deadlock { .. } => {
                "complete with what the caller needs to go on, hand the work on instead of calling, or \
                 declare a `concurrency` above 1 in the receiver's manifest if it answers while it waits"
            }
            Self::TreeTooDeep { .. } => "open a task of its own, or do the work where you are",
            Self::DeadlinePassed => "leave it, or offer it with a deadline that lies ahead",
            Self::InvalidTerms(_) => "correct the term and send it again",
            Self::InvalidFollowUps(_) => "correct the follow-ups and complete again",
            Self::TooManyCounters { .. } => "wait until the sender has settled some of them",
            Self::NoCounter { .. } => "read the handoff to see who has made one",
            Self::ReadBackNeeded { .. } => {
                "start with `read_back`: the ids of all constraints, and the address of the expected output"
            }
            Self::NoQuestion { .. } => "read the handoff to see what it asks, if it asks anything",
            Self::AlreadyAnswered { .. } => "read the handoff to see the answer; it stands",
            Self::KeptForAsker { .. } => "claim another, or wait until that time is over",
            Self::TooManyMessages { .. } => "wait until the holder has acknowledged some of them",
            Self::ArtifactNotFound { .. } => "read the handoff's artifacts to see what there is",
            Self::InvalidArtifact(_) => "attach less, or put it elsewhere and attach where it is",
            Self::QuotaExceeded { .. } => {
                "finish some of the work that is under way, or ask the operator for a larger quota"
            }
            Self::OtherTenant => "name an agent or capability of your own tenant",
            Self::TargetUnavailable { .. } => {
                "wait that long, name `fallbacks`, or send to a capability that others have too"
            }
            Self::TargetPaused { .. } => {
                "wait until it is resumed; `tasuki health` shows what is paused, and until when"
            }
            Self::Reserved { .. } => "work on something else, or wait until that handoff has ended",
            Self::InvalidResource(_) => "name paths such as src/api/** or docs/guide.md",
            Self::ReviewTaken { .. } => "leave it to them, or wait until their time is up",
            Self::NotTainted { .. } => "read the task to see what it is tainted by",
            Self::TooManySubscribers { .. } => {
                "use several channels, or name the receivers when publishing"
            }
            Self::AgentNotFound(_) => "check the name; `tasuki agent list` shows who is known",
            Self::HeldBack(_) => "ask an administrator to resume it",
            Self::ManifestMoved { .. } => "read the manifest as it is now and change that one",
            Self::KeyNotFound { .. } => "`tasuki agent show` lists the keys of an agent",
            Self::KeyTaken(_) => "make a new key pair with `tasuki keys new`",
            Self::TooManyKeys { .. } => "revoke one of the keys, or rotate instead of enrolling",
            Self::TokenNotFound(_) => "`tasuki token list` shows the tokens there are",
            Self::TokenRefused => "ask an administrator for a new join token",
            Self::InvalidRules(_) => "correct the rule and send all of them again",
            Self::GrantTooWide { .. } => {
                "grant what you may do yourself, or ask an administrator who may do it"
            }
            Self::KeyNotShown(_) => {
                "sign the request with the key that is replaced, or ask an administrator"
            }
            Self::TokenTooDeep { .. } => "make it with a key, or with a token nearer to one",
            Self::NameReserved(_) | Self::NameTaken { .. } => "choose another name",
            Self::ChainNotFound(_) => "check the id; `tasuki chain list` shows what there is",
            Self::MemoryNotFound(_) => "check the id; `tasuki memory list` shows what there is",
            Self::MemoryDeleted(_) => "write a new memory with another id",
            Self::MemorySuperseded { .. } => "change the memory that took its place",
            Self::RevisionConflict { expected: 0, .. } => {
                "it is there already: edit it, or leave the id out to have a new one"
            }
            Self::RevisionConflict { .. } => {
                "read it as it is now, make the change there, and name that revision"
            }
            Self::DecisionSettled { .. } => {
                "read that decision; to change it, log a new one that supersedes it"
            }
            Self::OwnershipNotShared { .. } => {
                "leave it out: a task changes hands with POST /v1/handoffs and a claim, and the \
                 task queue is shown with the context by itself"
            }
            Self::InvalidDocument(_) => "correct it and send it again",
            Self::SecretFound { .. } => {
                "take the secret out, keep it where secrets are kept, and say where that is"
            }
            Self::StillNeeded(_) => "let the task end, or cancel it, and erase then",
            Self::BodyNotFound(_) => "check the revision, or the handoff, that was named",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::TaskMoved(_)
                | Self::AgreementNotChecked { .. }
                | Self::OutOfTurn { .. }
                | Self::OnHold { .. }
                | Self::HandoffOpen { .. }
                | Self::OpenBelow { .. }
                | Self::QuotaExceeded { .. }
                | Self::TargetUnavailable { .. }
                | Self::TargetPaused { .. }
                | Self::Reserved { .. }
                | Self::ReviewTaken { .. }
                | Self::KeptForAsker { .. }
                | Self::TooManyMessages { .. }
        )
    }
}
