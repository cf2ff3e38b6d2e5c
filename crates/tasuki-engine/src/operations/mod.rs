// SPDX-License-Identifier: Apache-2.0
//! Everything that can be asked of the broker, in one table. An operation has a name, what it is about,
//! what is asked and answered, how it can fail, what it does to work, which right it needs, whether it
//! may wait, and how it is carried out. Doors bind it to their protocol and add nothing: the HTTP door
//! knows a method, a path and a status for each.
#![allow(clippy::result_large_err, reason = "a problem is moved once, to become a reply")]

pub mod accounts;
pub mod agents;
pub mod alerts;
pub mod asked;
pub mod assembling;
pub mod chains;
pub mod channels;
pub mod claims;
pub mod contexts;
pub mod dead_letters;
mod entry;
pub mod handoffs;
pub mod memories;
mod on;
pub mod open;
pub mod pipelines;
pub mod populations;
pub mod sessions;
pub mod shown;
pub mod streams;
pub mod system;
pub mod talk;
pub mod tasks;

use std::future::Future;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tasuki_core::registry::roles::Role;
use tasuki_core::registry::rules::Permission;
use tasuki_protocol::{Code, Problem};

use crate::desk::Desk;
use crate::error::Error;

pub use entry::{Entry, Given, Reply};
pub use on::{On, Subject};
pub use open::Public;
pub use streams::Streamed;

/// Something that a caller can ask for.
pub trait Operation: 'static {
    const FACTS: Facts;
    /// What it is about, where that is named apart from what is asked: in the path of a URL.
    type On: On;
    type In: DeserializeOwned + JsonSchema + Send + 'static;
    type Out: Serialize + JsonSchema;

    /// What is published of what is asked and answered, where the types do not say it all.
    const ASKS: SchemaOf = schema::<Self::In>;
    const ANSWERS: SchemaOf = schema::<Self::Out>;

    /// Looks at the request before it is read any further.
    fn first(_: &Desk, _: &Value) -> Result<(), Error> {
        Ok(())
    }

    fn run(
        desk: &Desk,
        on: Self::On,
        asked: Self::In,
    ) -> impl Future<Output = Done<Self::Out>> + Send;
}

pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(crate) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// How an operation ends.
pub type Done<T> = Result<Answer<T>, Problem>;

/// What is answered.
#[derive(Debug)]
pub struct Answer<T> {
    pub said: T,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The same request had been carried out before.
    Repeated,
    /// What was asked for is not so now, which is an answer and no error.
    NotNow,
}

/// Answers.
pub(crate) fn answer<T>(said: T) -> Done<T> {
    Ok(Answer { said, outcome: Outcome::Done })
}

/// Answers a request that may have come before.
pub(crate) fn answer_once<T>(said: T, repeated: bool) -> Done<T> {
    let outcome = if repeated { Outcome::Repeated } else { Outcome::Done };
    Ok(Answer { said, outcome })
}

/// What an operation does to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It brings something new.
    Brings,
    /// It carries work under way on to its end, which is allowed whatever a tenant has used up.
    Finishes,
    /// It decides about work, or about who is known, and brings none.
    Manages,
    Reads,
}

impl Kind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Brings => "brings",
            Self::Finishes => "finishes",
            Self::Manages => "manages",
            Self::Reads => "reads",
        }
    }
}

/// Who may ask. The coarse half is decided here, before anything is read; towards which target and in
/// which project is the desk's business, since it follows from what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Anybody; nobody is asked who it is.
    Public,
    /// Whoever is known. What it may not see is not there.
    Known,
    /// Whoever has this permission towards anything at all.
    Has(Permission),
    /// The same, asked for each of many: each is answered for itself.
    Each(Permission),
    /// Whoever has this permission towards the target, or was named to decide about it.
    Decides(Permission),
    /// An agent looks after itself, and who has this permission after others.
    LooksAfter(Permission),
    /// Who looks after the whole broker.
    Operator,
}

impl Right {
    /// The roles that have it, or that may have it towards something.
    #[must_use]
    pub fn roles(self) -> Vec<Role> {
        let has = |role: &Role| match self {
            // What belongs to somebody is its own, whatever its role.
            Self::Public | Self::Known | Self::LooksAfter(_) => true,
            Self::Has(permission) | Self::Each(permission) | Self::Decides(permission) => {
                role.rule().names(permission)
            }
            Self::Operator => *role == Role::Admin,
        };
        Role::ALL.iter().copied().filter(has).collect()
    }
}

/// What is fixed about an operation.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Stable, and the same everywhere: in the API's description, the SDKs, the audit log, spans and
    /// metrics.
    pub name: &'static str,
    pub summary: &'static str,
    pub kind: Kind,
    pub right: Right,
    /// Whether it may wait for something to happen before it answers.
    pub waits: bool,
    /// The codes of its own, besides those that any operation may answer with.
    pub errors: &'static [&'static [Code]],
}

impl Facts {
    const fn new(kind: Kind, name: &'static str, summary: &'static str, right: Right) -> Self {
        Self { name, summary, kind, right, waits: false, errors: &[] }
    }

    pub(crate) const fn waits(self) -> Self {
        Self { waits: true, ..self }
    }

    pub(crate) const fn errors(self, errors: &'static [&'static [Code]]) -> Self {
        Self { errors, ..self }
    }
}

pub(crate) const fn brings(name: &'static str, right: Right, summary: &'static str) -> Facts {
    Facts::new(Kind::Brings, name, summary, right)
}

pub(crate) const fn finishes(name: &'static str, right: Right, summary: &'static str) -> Facts {
    Facts::new(Kind::Finishes, name, summary, right)
}

pub(crate) const fn manages(name: &'static str, right: Right, summary: &'static str) -> Facts {
    Facts::new(Kind::Manages, name, summary, right)
}

pub(crate) const fn reads(name: &'static str, right: Right, summary: &'static str) -> Facts {
    Facts::new(Kind::Reads, name, summary, right)
}

/// Whoever makes an envelope fails in the same ways.
pub(crate) const ENVELOPE_ERRORS: &[Code] = &[
    Code::InvalidPayload,
    Code::SecretFound,
    Code::NotPermitted,
    Code::OtherTenant,
    Code::TermsOutOfRange,
    Code::TrustRaised,
    Code::ConstraintAltered,
    Code::ConstraintDropped,
    Code::ConstraintNotYours,
    Code::DecisionSettled,
    Code::InvalidEnvelope,
    Code::VersionNotSupported,
    Code::InvalidTerms,
    Code::DeadlinePassed,
    Code::DiskFull,
];

/// Besides, whoever offers it on a task.
pub(crate) const OFFER_ERRORS: &[Code] = &[
    Code::TaskNotFound,
    Code::IdempotencyConflict,
    Code::NotOwner,
    Code::HandoffOpen,
    Code::TaskFinished,
    Code::TaskMoved,
    Code::IntentAltered,
    Code::TargetUnavailable,
    Code::TreeTooDeep,
    Code::BudgetExhausted,
    Code::Deadlock,
];

/// Any operation may answer with these.
pub const COMMON_ERRORS: &[Code] = &[
    Code::InvalidRequest,
    Code::NotPermitted,
    Code::Unauthenticated,
    Code::SignatureMissing,
    Code::SignatureMalformed,
    Code::SignatureExpired,
    Code::SignatureNotYetValid,
    Code::SignatureComponents,
    Code::SignatureAlgorithm,
    Code::SignatureWrong,
    Code::SignatureAudience,
    Code::SignatureReplayed,
    Code::SignatureTooEarly,
    Code::DigestMissing,
    Code::DigestWrong,
    Code::TokenInvalid,
    Code::CertificateUnknown,
    Code::CrossSite,
    Code::NameReserved,
    Code::QuotaExceeded,
    Code::HostNotAllowed,
    Code::RateLimited,
    Code::Internal,
    Code::ShuttingDown,
    Code::Overloaded,
    Code::StoreUnavailable,
];

macro_rules! table {
    ($($noun:ident::{$($operation:ident),+ $(,)?}),+ $(,)?) => {
        vec![$($(Entry::of::<$noun::$operation>()),+),+]
    };
}

static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut table = table![
        tasks::{Open, List, Show, Events, Export, Branch, Cancel, Complete, Lift, ClearTaint, Join},
        handoffs::{Offer, OfferBatch, Send, List, Ready, Show, Envelope, Prompt, Wait, Settle, Cancel},
        handoffs::{Abort, Approve, Reject, Erase, Retract},
        claims::{Claim, ClaimOne, Peek, Start, Heartbeat, Progress, Complete, CompleteBatch, Fail},
        claims::{Decline, Release, Counter, Reserve, Unreserve, Reservations},
        talk::{Ask, Questions, Answer, Message, Messages, Attach, Artifacts, PutBack},
        dead_letters::{List, Groups, Show, Redrive, Discard, Reroute, Amend, Answer, Take},
        dead_letters::{DecideMany},
        channels::{Show, Subscribe, Unsubscribe, Publish, Messages},
        pipelines::{List, Start},
        chains::{Import, List, Show},
        memories::{Add, List, Show, Edit, Pin, Unpin, Supersede, Delete, Erase},
        contexts::{Show, Write, Decide},
        agents::{Publish, List, Search, Catalogue, Show, Drain, Resume, Deregister, SetRules},
        agents::{EnrollKey, RotateKey, RevokeKey},
        accounts::{IssueToken, Tokens, RevokeToken, Tenants, SetTenant, Security},
        assembling::{Assemble},
        sessions::{Show, Open, Close},
        alerts::{List, Rules, Silence, Test},
        populations::{Show},
        system::{Verify, Stats, Overview, Targets, SetBreaker, PauseTarget, ResumeTarget},
    ];
    table.extend([
        Entry::public::<open::Join>(),
        Entry::public::<open::Health>(),
        Entry::public::<open::Ready>(),
        Entry::streamed::<streams::Events>(),
        Entry::streamed::<streams::Export>(),
        Entry::streamed::<streams::Changes>(),
        Entry::streamed::<streams::Metrics>(),
    ]);
    for (number, entry) in table.iter_mut().enumerate() {
        entry.number = number;
    }
    table
});

/// Every operation there is.
pub fn all() -> &'static [Entry] {
    &TABLE
}

/// The operation of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.facts.name == name)
}

/// The entry of what has these facts.
///
/// # Panics
/// If it was left out of the table.
#[must_use]
pub fn entry(facts: &Facts) -> &'static Entry {
    named(facts.name).expect("every operation is in the table")
}
