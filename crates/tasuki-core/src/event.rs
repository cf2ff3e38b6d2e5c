// SPDX-License-Identifier: Apache-2.0
// Long because: it is one list of facts.
//! What happened. The state machine's events are the audit events: there is no second audit path
//! to forget. They carry hashes of texts and payloads, never the text, so that a body can be
//! erased and the chain still verifies.

mod facts;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use facts::{Enters, Facts};

use crate::breaker::Limits;
use crate::budget::Spent;
use crate::canonical;
use crate::contract::Contract;
use crate::document::{Erased, Priority, Written};
use crate::envelope::Target;
use crate::handoff::Handoff;
use crate::ids::{
    AgentId, ArtifactName, ChannelId, ClaimId, CorrelationId, DocumentId, Fence, HandoffId, Hash,
    IdempotencyKey, Malformed, OrderingKey, Position, Project, RequestId, TENANT_DEFAULT, TaskId,
    Timestamp,
};
use crate::join::Member;
use crate::registry::{Change, Signed};
use crate::reserve::Resource;
use crate::talk::QuestionKind;
use crate::task::Task;
use crate::terms::Terms;
use crate::tree::{Follows, Hangs};

/// One fact with who, when and where in its task's chain. This is the exact form that is stored,
/// hashed and exported; its golden file is `tests/golden/events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The version of this stored form.
    pub v: u8,
    pub task_id: TaskId,
    /// The how-manieth event of its task this is, from 0.
    pub index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_id: Option<HandoffId>,
    pub at: Timestamp,
    pub actor: Actor,
    /// Whose turn it is by this in the queue that the handoff enters; without it, the position of
    /// the event is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Position>,
    #[serde(flatten)]
    pub event: Event,
}

impl Record {
    pub const VERSION: u8 = 1;

    /// The bytes that are stored and hashed.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Most records have less, so the bytes are not moved while they grow.
        let mut bytes = Vec::with_capacity(1024);
        serde_json::to_writer(&mut bytes, self).expect("a record has string keys only");
        bytes
    }
}

/// Applies an event to its task and its handoff, making them where the event is their beginning.
/// A store that keeps the old ones (to undo a batch) finds them unchanged.
pub fn apply(sealed: &Sealed, task: &mut Option<Arc<Task>>, handoff: &mut Option<Arc<Handoff>>) {
    let record = &sealed.record;
    let opened = match &record.event {
        Event::TaskOpened(opened) => Some(opened),
        event => event.offered().and_then(|(offered, _)| offered.opens.as_ref()),
    };
    if let Some(opened) = opened {
        *task = Some(Arc::new(Task::opened(opened, sealed)));
    } else if record.task_id == TaskId::STORE && task.is_none() {
        *task = Some(Arc::new(Task::of_store(sealed)));
    }
    if let (Some(id), Some((offered, control))) = (record.handoff_id, record.event.offered()) {
        let held = task.as_ref().is_some_and(|task| task.tree.on_hold.is_some());
        let mut made = Handoff::offered(id, offered, control, sealed);
        if held {
            made.hold();
        }
        *handoff = Some(Arc::new(made));
    } else if let Some(handoff) = handoff {
        Arc::make_mut(handoff).apply(sealed);
    }
    if let Some(task) = task {
        Arc::make_mut(task).apply(sealed, handoff.as_deref());
    }
}

/// A record where a store keeps it: its position and its place in the hash chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Sealed {
    pub position: Position,
    /// The position of the same task's event before this one.
    pub previous: Option<Position>,
    pub hash: Hash,
    pub record: Record,
}

/// The hash of an event, from the hash of its predecessor in the task and its stored bytes.
#[must_use]
pub fn link(previous: Hash, encoded: &[u8]) -> Hash {
    canonical::hash_linked(previous, encoded)
}

/// Who caused an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Actor {
    Agent(AgentId),
    /// The broker itself: a lease ran out, a retry came due.
    Broker,
}

impl Actor {
    /// The name of the tenant that what this one stores belongs to.
    #[must_use]
    pub fn tenant(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.tenant(),
            Self::Broker => TENANT_DEFAULT,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "agent:{agent}"),
            Self::Broker => f.write_str("broker"),
        }
    }
}
impl FromStr for Actor {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        match text.strip_prefix("agent:") {
            Some(agent) => Ok(Self::Agent(agent.parse()?)),
            None if text == "broker" => Ok(Self::Broker),
            None => Err(Malformed("expected broker or agent: and a name".into())),
        }
    }
}
impl TryFrom<String> for Actor {
    type Error = Malformed;
    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}
impl From<Actor> for String {
    fn from(actor: Actor) -> Self {
        actor.to_string()
    }
}

/// One fact of the audit log. The state of everything follows from these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A task was opened without a handoff; the body is its intent.
    TaskOpened(Opened),
    TaskCancelled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Hash>,
    },
    /// Its owner, or for a publication the broker, ended it; the body, if any, is the result.
    TaskCompleted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Hash>,
    },
    /// A task above it is a dead letter: nobody gets it before somebody has decided on that.
    TaskHeld {
        letter: HandoffId,
    },
    /// It goes on; below this hop, if another took the place of the one that it was opened for.
    TaskResumed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<HandoffId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
        /// When the hop ends that it goes on below: nothing of it ends later.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// Ownership of the task was offered; the body is the envelope.
    TransferOffered(Box<Offered>),
    /// Work was offered as a task below the sender's own; the body is the envelope.
    CallOffered(Box<Offered>),
    /// A receiver would take it on other terms; the body is the reason.
    Countered(Countered),
    /// The sender took a counter-offer: its terms are the handoff's, which waits for its maker.
    CounterAccepted {
        agent: AgentId,
        terms: Terms,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_tokens: Option<u32>,
    },
    CounterRefused {
        agent: AgentId,
    },
    Approved,
    /// The receiver fetched the envelope without claiming.
    Delivered {
        agent: AgentId,
    },
    /// A start time or a retry came due.
    Readied,
    /// The time is over in which it waits for other tasks: it goes on with what there is.
    WaitOver,
    /// It goes on with what the tasks have come to that it waited for.
    Joined {
        members: Vec<Member>,
    },
    /// What the task came to was given to another that waited for it.
    PassedTo {
        task: TaskId,
    },
    /// The receiver accepted. From here it owns the task.
    Claimed(Claimed),
    Started,
    /// The holder's own signature over what it did next.
    Acknowledged(Acknowledged),
    /// The holder reported progress; the body, if any, is its note.
    Progressed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<u8>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Hash>,
    },
    /// The holder asked and waits for the answer: it keeps the task, and no lease runs. The body is
    /// the question.
    Asked(Asked),
    /// Somebody answered; the body is the answer. Until then the asker alone may claim.
    Answered {
        answer: Hash,
        kept_until: Timestamp,
    },
    /// Nobody answered in time, so the default holds that the asker gave.
    AnswerDefaulted {
        kept_until: Timestamp,
    },
    /// The asker did not come for the answer in time: from here anybody may claim.
    KeepEnded,
    /// A word to whoever holds the work; the body is the message.
    MessageSent {
        number: u32,
        message: Hash,
    },
    /// The holder took note of the messages up to this one.
    MessagesAcknowledged {
        fence: Fence,
        up_to: u32,
    },
    /// The holder attached a piece of work that is there already; the body is the piece.
    Attached(Box<Attached>),
    /// The holder put the work back until a time; the body, if any, is the reason.
    PutBack {
        fence: Fence,
        until: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Hash>,
    },
    /// The body is the result.
    Completed {
        fence: Fence,
        result: Hash,
        /// The transfer by which the task goes on; without it the task is completed too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<HandoffId>,
        /// Calls that were made in the same step.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<HandoffId>,
        /// The target that had failed before and works again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recovers: Option<Target>,
    },
    /// An attempt of the task, or of one below it, said what it used.
    Spent(SpentBy),
    /// The holder declared that its attempt failed; the body is the failure.
    AttemptFailed {
        fence: Fence,
        class: FailureClass,
        failure: Hash,
    },
    /// The receiver does not take the work; the body, if any, is the reason.
    Declined {
        agent: AgentId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Hash>,
    },
    /// The holder gave the work back unfinished.
    Released {
        fence: Fence,
    },
    LeaseLost {
        fence: Fence,
        cause: LossCause,
    },
    RetryScheduled {
        due: Timestamp,
    },
    /// Its deadline passed before it was finished.
    Expired,
    DeadLettered {
        reason: DeadReason,
        /// The agent with which it used up its tries.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        against: Option<Target>,
        /// By which numbers that counts, if not by the usual ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
        /// Why an approver said no; it is the body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<Hash>,
    },
    /// Nobody has to decide on a dead letter any more: its task went on, or ended, without it.
    LetterClosed {
        because: Closed,
    },
    /// Its target could not or would not do it, so somebody else is asked.
    Escalated {
        to: Target,
        reason: DeadReason,
        /// The agent with which it used up its tries.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        against: Option<Target>,
        /// By which numbers that counts, if not by the usual ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
    },
    /// What it produced was taken back after it was completed; the body is the reason.
    Retracted {
        reason: Hash,
    },
    /// What the task is built on no longer holds.
    Tainted {
        source: HandoffId,
        policy: TaintPolicy,
    },
    /// Somebody looked at it and found that the task may go on; the body is the reason.
    TaintCleared {
        source: HandoffId,
        reason: Hash,
        /// Whether the handoff under way was kept back by this alone, and is no longer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        releases: bool,
    },
    Cancelled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Hash>,
    },
    /// The coordinator ended it as failed.
    Aborted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Hash>,
    },
    /// A result or failure came from a claim that no longer holds: refused, and kept here.
    LateReport {
        claim_id: ClaimId,
        fence: Fence,
        report: Hash,
    },
    /// A reviewer sent a dead letter on its way again, as a new handoff.
    Redriven {
        to: HandoffId,
        /// The address of what the reviewer changed; without it, nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<Hash>,
    },
    /// A reviewer decides on a dead letter until then, and nobody else meanwhile.
    ReviewTaken {
        by: AgentId,
        until: Timestamp,
    },
    ReviewReleased,
    /// The holder has these for itself as long as its claim holds.
    Reserved {
        fence: Fence,
        resources: Vec<Resource>,
    },
    /// The holder needs them no longer.
    Unreserved {
        resources: Vec<Resource>,
    },
    /// A reviewer put a dead letter away; the body is the reason.
    Discarded {
        reason: Hash,
    },
    /// The store may have lost its last writes (a restore): older claims are stale from here.
    EpochRaised {
        epoch: u64,
    },
    /// Who is known changed, or what is told of alerts; the body, if any, is the manifest or the reason.
    RegistryChanged(Box<Change>),
    /// A memory or a shared context has a new revision; the body is its content.
    DocumentWritten(Box<Written>),
    DocumentMarked {
        id: DocumentId,
        pinned: bool,
        priority: Priority,
    },
    DocumentSuperseded {
        id: DocumentId,
        by: DocumentId,
    },
    /// A memory was deleted, which leaves a tombstone; the body is the reason.
    DocumentDeleted {
        id: DocumentId,
        reason: Hash,
    },
    /// A body was removed from the store for good; the body of this event is the reason.
    Erased(Box<Erased>),
    /// A constraint of this envelope does not bind the next one any more; the body is the reason.
    ConstraintLifted {
        constraint: Hash,
        reason: Hash,
    },
    /// The receiver fetched a memory of which the envelope had passed less.
    TrimFetched {
        agent: AgentId,
        memory: DocumentId,
    },
    /// What a claim was told beside the envelope when it was first read; the body is what, so that
    /// the same claim reads the same again.
    ClaimTold {
        fence: Fence,
        told: Hash,
    },
}

/// What a holder asked, and on which terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    pub fence: Fence,
    #[serde(rename = "question_kind")]
    pub kind: QuestionKind,
    pub question: Hash,
    /// By when it must be answered; without it, until the hard deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_by: Option<Timestamp>,
    /// Whether the question says what holds if nobody answers in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_default: bool,
    /// For how long the answer is kept for the asker alone.
    pub keep_ms: u64,
    /// Whether the asker comes for the answer by the handoff's id only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_id: bool,
}

/// A piece of work that is there before the result is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attached {
    pub fence: Fence,
    pub name: ArtifactName,
    /// What it is, such as `text/markdown`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which one of its name it is, from 1.
    pub version: u32,
    pub artifact: Hash,
    pub bytes: u64,
}

/// The facts a task starts with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Opened {
    pub owner: AgentId,
    pub intent: Hash,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// Who decides about it when things go wrong; without one, its opener does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator: Option<AgentId>,
    /// The channel on which it was told to many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// The hop of another task from which this one begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_of: Option<BranchOf>,
    /// What it owes to the tasks above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hangs: Option<Box<Hangs>>,
    /// The envelope that its first one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<Follows>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
}

/// Where a task that begins anew comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchOf {
    pub task_id: TaskId,
    pub hop: u32,
    /// The envelope of that hop.
    pub envelope: Hash,
}

/// A name that the sender gives to a request, so that sending it again does not do it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Key {
    pub key: IdempotencyKey,
    /// The hash of the request's body: the same key with another body is a conflict.
    pub request: Hash,
}

/// The facts a handoff starts with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offered {
    /// Present if this offer also opened its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<Opened>,
    pub from: AgentId,
    pub to: Target,
    pub envelope: Hash,
    pub hop: u32,
    pub priority: u8,
    pub terms: Terms,
    #[serde(default, skip_serializing_if = "Contract::is_empty")]
    pub contract: Contract,
    /// Constraints that this hop lifts; the envelope says why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifted: Vec<Hash>,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// Whether it has to be approved for no other reason than what its task is built on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordering_key: Option<OrderingKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// Whether it is let through to see how its target fares.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probe: bool,
    /// The dead letter that this handoff takes the place of, with an envelope of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<HandoffId>,
    /// The dead letter that this handoff sends on its way again, and where its envelope is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redrive_of: Option<Redrive>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Redrive {
    pub handoff_id: HandoffId,
    #[serde(rename = "envelope_at")]
    pub envelope_pos: Position,
    /// Whether the dead letter had opened its task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opened_task: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Countered {
    pub agent: AgentId,
    pub terms: Terms,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<u32>,
    pub reason: Hash,
}

/// What an attempt used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpentBy {
    /// The handoff that was worked on.
    pub by: HandoffId,
    #[serde(flatten)]
    pub used: Spent,
}

/// An agent stands by what it did, in a way that anybody can check who has its public key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acknowledged {
    /// `accepted`, `completed` or `failed`.
    pub act: String,
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// The address of the result or the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Hash>,
    pub signed: Signed,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claimed {
    pub agent: AgentId,
    pub claim_id: ClaimId,
    pub fence: Fence,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    pub lease_ms: u64,
    /// No heartbeat moves the claim past this.
    pub hard_until: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The agent that it is let through for, to see how it fares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Target>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// It may work next time (a timeout, a rate limit).
    Retryable,
    /// It will not work however often it is tried (invalid input, a missing dependency).
    Permanent,
    /// The agent cannot tell; treated as retryable.
    Unknown,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LossCause {
    /// No heartbeat came in time.
    Silence,
    /// The attempt took longer than its terms allow.
    HardDeadline,
    /// The store was restored from a backup after the claim was given.
    Restored,
    /// The holder's last key was revoked, or it was deregistered.
    Revoked,
}

/// Why a handoff became a dead letter: work that somebody has to decide about.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DeadReason {
    /// Every attempt failed.
    AttemptsExhausted,
    /// The agent said that no attempt can succeed.
    PermanentFailure,
    /// Its workers kept vanishing without progress.
    Poison,
    /// Everyone it was meant for declined.
    Declined,
    /// Its deadline passed.
    Expired,
    /// An approver said no.
    Rejected,
    /// Nobody claimed it in time.
    Unacknowledged,
    /// The chain has as many hops as it may have.
    HopLimit,
    /// The same work came to the same target before.
    Cycle,
    /// The task, or one above it, may spend nothing more.
    BudgetExhausted,
    /// Agents waited for each other's answers in a circle, which this call closed.
    Deadlock,
}

/// Why nobody has to decide on a dead letter any more.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Closed {
    /// The owner of the task offered it anew.
    TaskOfferedAnew,
    TaskCancelled,
    TaskCompleted,
}

/// What becomes of work that is built on something that no longer holds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaintPolicy {
    /// It goes on, and everybody is told.
    #[default]
    Flag,
    /// Nobody gets it before somebody has approved.
    Block,
}

macro_rules! words {
    ($type:ty { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that stands for this everywhere: JSON, SQL, CLI, documents.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl std::str::FromStr for $type {
            type Err = $crate::ids::Malformed;
            fn from_str(text: &str) -> Result<Self, $crate::ids::Malformed> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::ids::Malformed(format!(
                        "expected one of {}", [$($word),+].join(", ")
                    ))),
                }
            }
        }
    };
}
pub(crate) use words;

words!(FailureClass { Retryable = "retryable", Permanent = "permanent", Unknown = "unknown" });
words!(TaintPolicy { Flag = "flag", Block = "block" });
words!(LossCause {
    Silence = "silence",
    HardDeadline = "hard_deadline",
    Restored = "restored",
    Revoked = "revoked",
});
words!(Closed {
    TaskOfferedAnew = "task_offered_anew",
    TaskCancelled = "task_cancelled",
    TaskCompleted = "task_completed",
});
words!(DeadReason {
    AttemptsExhausted = "attempts_exhausted",
    PermanentFailure = "permanent_failure",
    Poison = "poison",
    Declined = "declined",
    Expired = "expired",
    Rejected = "rejected",
    Unacknowledged = "unacknowledged",
    HopLimit = "hop_limit",
    Cycle = "cycle",
    BudgetExhausted = "budget_exhausted",
    Deadlock = "deadlock",
});
