// SPDX-License-Identifier: Apache-2.0
//! Why the engine did not do what it was asked.

use tasuki_core::envelope::Fault;
use tasuki_core::envelope::inherit::Breach;
use tasuki_core::handoff::AttemptEnd;
use tasuki_core::{AgentId, Capability, Cursor, Refusal};
use tasuki_protocol::Code;
use tasuki_store as store;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A claim no longer holds, and this is why.
    #[error("{refusal}")]
    Ended { refusal: Refusal, how: AttemptEnd, reason: Option<String> },
    /// A field of the request is not what it must be.
    #[error("{field}: {problem}")]
    Invalid { field: &'static str, problem: String },
    /// Members that are not known here.
    #[error("the request has members that are not known")]
    Unknown(Vec<Fault>),
    /// An envelope in a version that is not taken.
    #[error("envelope_version is {0:?}, taken are majors 1 and 2")]
    Version(String),
    /// A manifest is not what it must be; every fault is named.
    #[error("the manifest has {} faults", .0.len())]
    Manifest(Vec<tasuki_core::manifest::Problem>),
    /// A payload does not fit the schema that it must fit.
    #[error("the payload does not fit {what}")]
    Payload { what: String, faults: Vec<Fault> },
    /// Parts of a payload claim more trust than they have.
    #[error("a part of the payload claims more trust than it has")]
    Trust(Vec<Fault>),
    /// A hop drops, alters or contradicts what binds its task, or is malformed; all of it is named.
    #[error("the envelope does not carry what it must")]
    Envelope(Vec<Breach>),
    /// What must be passed does not fit into the receiver's budget.
    #[error(transparent)]
    TooSmall(tasuki_core::assembly::TooSmall),
    /// Terms that the receiver's manifest does not allow.
    #[error("{0}")]
    OutOfRange(String),
    /// Nobody stands behind the request.
    #[error("{message}")]
    Unauthenticated { code: Code, message: String },
    /// The caller may not do that.
    #[error("{0}")]
    Denied(String),
    /// The agent does not say that it can do that.
    #[error("the manifest of {agent} does not name the capability {capability}")]
    Undeclared { agent: AgentId, capability: Capability },
    /// The tenant has used up what it may use.
    #[error("{message}")]
    Quota { message: String, retry_after_ms: u64 },
    /// What a cursor names is not in the log any more.
    #[error("the end of the log was lost after {cursor} was given out")]
    CursorLost { cursor: Cursor, resume_after: Cursor },
    /// The world did not help.
    #[error(transparent)]
    Store(store::Error),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Refused(refusal) => Self::Refused(refusal),
            other => Self::Store(other),
        }
    }
}

pub(crate) fn denied(message: impl Into<String>) -> Error {
    Error::Denied(message.into())
}

pub(crate) fn invalid(field: &'static str, problem: impl Into<String>) -> Error {
    Error::Invalid { field, problem: problem.into() }
}
