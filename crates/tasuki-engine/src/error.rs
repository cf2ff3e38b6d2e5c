// SPDX-License-Identifier: Apache-2.0
//! Why the engine did not do what it was asked.

use tasuki_core::Refusal;
use tasuki_store as store;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A field of the request is not what it must be.
    #[error("{field}: {problem}")]
    Invalid { field: &'static str, problem: String },
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

pub(crate) fn invalid(field: &'static str, problem: impl Into<String>) -> Error {
    Error::Invalid { field, problem: problem.into() }
}
