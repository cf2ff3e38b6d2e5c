// SPDX-License-Identifier: Apache-2.0
//! Wishes. A command says what somebody wants; [`crate::decide`] says what follows from it.
//! Everything that a decision must not make up by itself (ids, entropy) comes with the command.

use crate::canonical::Body;
use crate::contract::{Checked, Contract};
use crate::document::{Kind, Priority, Scope};
use crate::envelope::{Control, Target};
use crate::event::{Actor, BranchOf, DeadReason, FailureClass, Key, TaintPolicy};
use crate::identity::PublicKey;
use crate::ids::{
    AgentId, Capability, ChannelId, ClaimId, CorrelationId, DecisionKey, DocumentId, Fence,
    HandoffId, Hash, KeyId, OrderingKey, Position, Project, RequestId, Resource, TENANT_DEFAULT,
    TaskId, Timestamp, TokenId,
};
use crate::registry::rules::Rule;
use crate::registry::{Signed, Standing, Tenant, Token};
use crate::report::authored;
use crate::terms::Terms;

/// How many handoffs one completion may create.
pub const FOLLOW_UPS_MAX: usize = 100;
/// How many bodies one command may erase.
pub const ERASED_MAX: usize = 1000;

#[derive(Debug, Clone)]
pub enum Command {
    OpenTask(OpenTask),
    CancelTask {
        task: TaskId,
        by: AgentId,
        reason: Option<Body>,
    },
    Offer(Box<Offer>),
    /// Claims the next waiting handoffs that this agent may take.
    Claim(Claim),
    /// Claims one handoff by its id.
    ClaimOne {
        handoff: HandoffId,
        claim: Claim,
    },
    /// Shows an agent what waits for it, and records that it was shown.
    Peek {
        seeker: Seeker,
        max: usize,
    },
    /// What only the holder of a claim may do.
    Held {
        handoff: HandoffId,
        proof: Proof,
        /// Who asks, where that is known for certain: then it must be the holder.
        by: Option<Holder>,
        act: Act,
    },
    /// Declines a handoff that was not claimed.
    Decline {
        handoff: HandoffId,
        agent: AgentId,
        reason: Option<Body>,
    },
    /// Says on which other terms an agent would take a handoff.
    Counter {
        handoff: HandoffId,
        seeker: Seeker,
        terms: Terms,
        budget_tokens: Option<u32>,
        reason: Body,
    },
    /// Accepts or refuses an agent's counter-offer.
    SettleCounter {
        handoff: HandoffId,
        by: AgentId,
        agent: AgentId,
        accept: bool,
    },
    Approve {
        handoff: HandoffId,
        by: AgentId,
    },
    Reject {
        handoff: HandoffId,
        by: AgentId,
    },
    Cancel {
        handoff: HandoffId,
        by: AgentId,
        reason: Option<Body>,
    },
    Abort {
        handoff: HandoffId,
        by: AgentId,
        reason: Option<Body>,
    },
    /// Sends a dead letter on its way again, to the same target or to another.
    Redrive {
        handoff: HandoffId,
        by: AgentId,
        new: HandoffId,
        to: Option<Target>,
    },
    /// Sends a dead letter on its way again with a new envelope, linked to the old one.
    Amend {
        handoff: HandoffId,
        by: AgentId,
        /// The address of what the reviewer wants changed.
        changed: Hash,
        offer: Box<Offer>,
    },
    /// Keeps others from deciding on a dead letter for a while, or no longer.
    TakeReview {
        handoff: HandoffId,
        by: AgentId,
        until: Option<Timestamp>,
    },
    /// Takes back what a completed handoff produced.
    Retract {
        handoff: HandoffId,
        by: AgentId,
        reason: Body,
        policy: TaintPolicy,
    },
    /// Says that a task is built on something that no longer holds.
    Taint {
        task: TaskId,
        by: AgentId,
        source: HandoffId,
        policy: TaintPolicy,
    },
    ClearTaint {
        task: TaskId,
        by: AgentId,
        source: HandoffId,
        reason: Body,
    },
    /// Lets a handoff go on that waits for other tasks, if enough of them are done.
    Join {
        handoff: HandoffId,
        tasks: Vec<TaskId>,
        /// The handoffs by which some of them came to nothing.
        failed: Vec<HandoffId>,
    },
    /// Tells something to many: a task, and one below it for each receiver, in one step.
    Publish {
        open: OpenTask,
        offers: Vec<Offer>,
    },
    Discard {
        handoff: HandoffId,
        by: AgentId,
        reason: Body,
    },
    /// Ends a constraint of a task, from the envelope after this handoff's on.
    Lift {
        handoff: HandoffId,
        by: AgentId,
        constraint: Hash,
        reason: Body,
    },
    /// Records that a receiver fetched what its envelope had trimmed.
    NoteFetch {
        handoff: HandoffId,
        agent: AgentId,
        memory: DocumentId,
    },
    /// Does what is due: lost leases, retries, deadlines.
    Sweep {
        max: usize,
    },
    /// Gives every holder a full lease, unless a broker was there to hear from it. Nobody was since
    /// the time that is named.
    RenewAll {
        since: Timestamp,
    },
    /// Makes all claims so far stale, after a restore.
    RaiseEpoch {
        epoch: u64,
    },
    /// Changes who is known.
    Registry {
        by: Actor,
        wish: RegistryWish,
    },
    /// Writes, marks or deletes a memory or a shared context.
    Document {
        id: DocumentId,
        by: AgentId,
        wish: DocumentWish,
    },
    /// Removes bodies for good.
    Erase(Box<Erase>),
}

impl Command {
    /// The name of the tenant on whose behalf this is, as far as it says.
    #[must_use]
    pub fn tenant(&self) -> &str {
        let agent = match self {
            Self::OpenTask(open) => &open.owner,
            Self::Offer(offer) => &offer.from,
            Self::Claim(claim) | Self::ClaimOne { claim, .. } => &claim.seeker.agent,
            Self::Peek { seeker, .. } | Self::Counter { seeker, .. } => &seeker.agent,
            Self::Decline { agent, .. } | Self::NoteFetch { agent, .. } => agent,
            Self::Erase(erase) => &erase.by,
            Self::CancelTask { by, .. }
            | Self::Document { by, .. }
            | Self::Lift { by, .. }
            | Self::SettleCounter { by, .. }
            | Self::Approve { by, .. }
            | Self::Reject { by, .. }
            | Self::Cancel { by, .. }
            | Self::Abort { by, .. }
            | Self::Redrive { by, .. }
            | Self::Amend { by, .. }
            | Self::TakeReview { by, .. }
            | Self::Retract { by, .. }
            | Self::Taint { by, .. }
            | Self::ClearTaint { by, .. }
            | Self::Discard { by, .. } => by,
            Self::Publish { open, .. } => &open.owner,
            Self::Held { by: Some(by), .. } => &by.agent,
            Self::Held { by: None, .. } => return TENANT_DEFAULT,
            Self::Sweep { .. }
            | Self::RenewAll { .. }
            | Self::RaiseEpoch { .. }
            | Self::Join { .. } => {
                return TENANT_DEFAULT;
            }
            Self::Registry { by, .. } => {
                return match by {
                    Actor::Agent(agent) => agent.tenant(),
                    Actor::Broker => TENANT_DEFAULT,
                };
            }
        };
        agent.tenant()
    }
}

/// A wish about agents, keys, tokens and tenants.
#[derive(Debug, Clone)]
pub enum RegistryWish {
    /// Publishes a manifest; with `version`, only if the last one was that.
    Publish {
        agent: AgentId,
        manifest: Body,
        signed: Option<Signed>,
        version: Option<u32>,
    },
    SetStanding {
        agent: AgentId,
        standing: Standing,
    },
    /// Enrolls a key by the word of an administrator.
    Enroll {
        agent: AgentId,
        key: PublicKey,
        rules: Option<Vec<Rule>>,
    },
    /// Enrolls a key with a join token.
    Join {
        token: TokenId,
        secret: Hash,
        agent: AgentId,
        key: PublicKey,
    },
    Rotate {
        agent: AgentId,
        old: KeyId,
        new: PublicKey,
        grace_ms: u64,
    },
    Revoke {
        agent: AgentId,
        key: KeyId,
    },
    SetRules {
        agent: AgentId,
        rules: Vec<Rule>,
    },
    Subscribe {
        channel: ChannelId,
        agent: AgentId,
    },
    Unsubscribe {
        channel: ChannelId,
        agent: AgentId,
    },
    IssueToken(Token),
    RevokeToken(TokenId),
    SetTenant(Tenant),
    /// Records that somebody tried what it may not do.
    NoteDenied {
        agent: AgentId,
        code: String,
        operation: String,
    },
}

/// A wish about a document.
#[derive(Debug, Clone)]
pub enum DocumentWish {
    Write(Box<Write>),
    /// Changes what is not text; without a value it stays as it is.
    Mark {
        pinned: Option<bool>,
        priority: Option<Priority>,
    },
    /// Says that another memory has taken this one's place.
    Supersede {
        successor: DocumentId,
    },
    Delete {
        reason: Body,
    },
}

/// A new revision of a document, the first one included.
#[derive(Debug, Clone)]
pub struct Write {
    pub kind: Kind,
    /// What it is about; without it, what it was about before.
    pub scope: Option<Scope>,
    pub content: Body,
    /// The revision that the writer has seen, 0 for none: if there is another by now, nothing is
    /// written. Without it, whatever is there is replaced.
    pub expected: Option<u32>,
    pub pinned: Option<bool>,
    pub priority: Option<Priority>,
    /// The decision that the content adds to the log of a shared context.
    pub settles: Option<Settle>,
    pub key: Option<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    pub key: DecisionKey,
    /// The decision that no longer holds.
    pub supersedes: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct Erase {
    pub by: AgentId,
    pub what: Erasable,
    pub reason: Body,
}

/// Bodies that can be erased, by the events they came with.
#[derive(Debug, Clone)]
pub enum Erasable {
    /// Bodies of a handoff whose task is at its end.
    Handoff { id: HandoffId, at: Vec<Position> },
    /// The text of one revision.
    Revision { id: DocumentId, revision: u32, at: Position },
}

#[derive(Debug, Clone)]
pub struct OpenTask {
    pub task: TaskId,
    pub owner: AgentId,
    /// A body with the member `intent`.
    pub intent: Body,
    pub correlation_id: Option<CorrelationId>,
    pub parent: Option<TaskId>,
    pub coordinator: Option<AgentId>,
    pub channel: Option<ChannelId>,
    pub project: Option<Project>,
    pub key: Option<Key>,
}

#[derive(Debug, Clone)]
pub struct Offer {
    pub handoff: HandoffId,
    pub task: OfferTask,
    pub from: AgentId,
    pub to: Target,
    pub control: Control,
    pub envelope: Body,
    /// The handoff whose envelope this one follows. Lifts that came to it meanwhile must be in it.
    pub after: Option<HandoffId>,
    /// What the envelope says of itself; checked against the task.
    pub hop: u32,
    pub previous: Option<Hash>,
    pub priority: u8,
    pub terms: Terms,
    pub contract: Contract,
    /// Constraints that this hop lifts, and that were lifted since the envelope before.
    pub lifted: Vec<Hash>,
    pub expires_at: Timestamp,
    pub not_before: Option<Timestamp>,
    pub needs_approval: bool,
    pub ordering_key: Option<OrderingKey>,
    /// Why it cannot go on from here, if it cannot: it is kept as a dead letter.
    pub dead_end: Option<DeadReason>,
    pub key: Option<Key>,
}

/// Which task an offer moves.
#[derive(Debug, Clone)]
pub enum OfferTask {
    /// One that is there already; its owner hands it on.
    Existing(TaskId),
    /// A new one, below its parent if it has one.
    New {
        task: TaskId,
        intent: Hash,
        correlation_id: Option<CorrelationId>,
        parent: Option<TaskId>,
        coordinator: Option<AgentId>,
        project: Option<Project>,
        branch_of: Option<BranchOf>,
    },
}

impl OfferTask {
    #[must_use]
    pub fn id(&self) -> TaskId {
        match self {
            Self::Existing(task) | Self::New { task, .. } => *task,
        }
    }
}

/// Who looks for work, and what it can do.
#[derive(Debug, Clone, PartialEq)]
pub struct Seeker {
    pub agent: AgentId,
    pub capabilities: Vec<Capability>,
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub seeker: Seeker,
    /// One random id for each handoff that may be claimed.
    pub claim_ids: Vec<ClaimId>,
    /// A lease other than the terms'; never longer than the hard deadline.
    pub lease_ms: Option<u64>,
    pub request_id: Option<RequestId>,
}

/// Who acts on a claim, and its signature over what it does, if it gave one.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    pub agent: AgentId,
    pub signed: Option<Signed>,
}

/// What shows that somebody is the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    pub claim_id: ClaimId,
    pub fence: Fence,
}

#[derive(Debug, Clone)]
pub enum Act {
    Start,
    /// Starts, having repeated what binds: the address of it.
    ReadBack(Hash),
    Heartbeat,
    Progress {
        percent: Option<u8>,
        note: Option<Body>,
    },
    Complete {
        result: Body,
        follow_ups: Vec<Offer>,
        /// What the result was held against. Where something was agreed, a completion without it
        /// is refused.
        checked: Option<Checked>,
    },
    Fail {
        class: FailureClass,
        failure: Body,
        retry_after_ms: Option<u64>,
        entropy: u64,
    },
    Decline {
        reason: Option<Body>,
    },
    Release,
    /// Takes resources for itself as long as the claim holds.
    Reserve {
        resources: Vec<Resource>,
    },
    Unreserve {
        resources: Vec<Resource>,
    },
}

impl Act {
    /// The word that a signed acknowledgment has for this, and the address of what it covers.
    #[must_use]
    pub fn acknowledgment(&self) -> Option<(&'static str, Option<Hash>)> {
        match self {
            Self::Start => Some(("accepted", None)),
            Self::ReadBack(repeated) => Some(("accepted", Some(*repeated))),
            Self::Complete { result, .. } => Some(("completed", Some(authored(result)))),
            Self::Fail { failure, .. } => Some(("failed", Some(failure.hash))),
            Self::Heartbeat
            | Self::Progress { .. }
            | Self::Decline { .. }
            | Self::Release
            | Self::Reserve { .. }
            | Self::Unreserve { .. } => None,
        }
    }
}

/// Which things a command was about, in the order of its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    pub handoffs: Vec<HandoffId>,
    pub task: Option<TaskId>,
    pub document: Option<DocumentId>,
    /// The command had been carried out before; nothing changed now.
    pub repeated: bool,
}

impl Outcome {
    #[must_use]
    pub fn of(handoff: HandoffId) -> Self {
        Self { handoffs: vec![handoff], ..Self::default() }
    }

    #[must_use]
    pub fn repeated(handoff: HandoffId) -> Self {
        Self { repeated: true, ..Self::of(handoff) }
    }
}
