// SPDX-License-Identifier: Apache-2.0
//! What can go wrong between a broker and its database, by what is to be done about it.

use std::sync::Arc;

use tokio_postgres::error::SqlState;

use crate::Error;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The connection is gone, or the server is going away: certainly nothing was written, unless
    /// the commit was under way.
    #[error("the database cannot be reached: {0}")]
    Lost(String),
    /// Somebody else was in the way; the same again may succeed.
    #[error("the database was busy: {0}")]
    Busy(String),
    /// What was read was changed by somebody else before it was written.
    #[error("a row changed between reading and writing it")]
    Moved,
    /// The server is a new primary since the last commit: every claim must be made stale first.
    #[error("the database failed over to timeline {0}")]
    FailedOver(i64),
    #[error("the database has no space left")]
    Full,
    #[error("{0}")]
    Damaged(String),
    #[error(transparent)]
    Sql(tokio_postgres::Error),
}

impl Fault {
    /// Whether the same transaction may be tried again.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Busy(_) | Self::Moved | Self::FailedOver(_))
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(state) = error.code() else {
            return Self::Lost(root(&error));
        };
        match *state {
            SqlState::T_R_SERIALIZATION_FAILURE
            | SqlState::T_R_DEADLOCK_DETECTED
            | SqlState::LOCK_NOT_AVAILABLE
            | SqlState::IN_FAILED_SQL_TRANSACTION
            | SqlState::QUERY_CANCELED => Self::Busy(root(&error)),
            // This is how a guarded write says that it wrote less than it was given.
            SqlState::DIVISION_BY_ZERO => Self::Moved,
            SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::CANNOT_CONNECT_NOW
            | SqlState::TOO_MANY_CONNECTIONS
            | SqlState::READ_ONLY_SQL_TRANSACTION
            | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Self::Lost(root(&error)),
            SqlState::DISK_FULL | SqlState::OUT_OF_MEMORY => Self::Full,
            _ if state.code().starts_with("08") => Self::Lost(root(&error)),
            _ => Self::Sql(error),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Fault {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => error.into(),
            other => Self::Lost(other.to_string()),
        }
    }
}

impl Fault {
    pub(crate) fn during(self, step: &'static str) -> Error {
        match self {
            Self::Lost(_) | Self::Busy(_) | Self::Moved | Self::FailedOver(_) => {
                tracing::warn!(error = %self, step, "the database did not do as it was asked");
                Error::Unavailable
            }
            Self::Full => Error::DiskFull,
            Self::Damaged(_) | Self::Sql(_) => {
                let source: Arc<dyn std::error::Error + Send + Sync> = match self {
                    Self::Sql(error) => Arc::new(error),
                    other => Arc::new(other),
                };
                Error::Failed { step, source }
            }
        }
    }
}

/// The innermost cause, which says more than "db error".
pub(crate) fn root(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) if db.message().contains("startup parameter: options") => {
            format!("{}; behind a pooler of transactions set store_pooler", db.message())
        }
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => {
            let source = std::error::Error::source(error);
            source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
        }
    }
}
