// SPDX-License-Identifier: Apache-2.0
//! What an error of the store means to somebody at a command line.

use tasuki_cli::exit::{Exit, Failure};
use tasuki_store::{OpenError, PostgresError};

pub(crate) fn failure(error: &anyhow::Error) -> Option<Failure> {
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(cause), _) => Some(of_store(cause, error)),
        (None, Some(cause)) => Some(of_postgres(cause)),
        (None, None) => None,
    }
}

fn of_postgres(cause: &PostgresError) -> Failure {
    let exit = match cause {
        PostgresError::Url(_) | PostgresError::Tls(_) => Exit::Usage,
        PostgresError::Unreachable(_) => Exit::Unavailable,
        PostgresError::Failed { .. } => Exit::Io,
        PostgresError::Old(_)
        | PostgresError::Unsafe(_)
        | PostgresError::ReadOnly
        | PostgresError::Replaced { .. }
        | PostgresError::Newer { .. }
        | PostgresError::Damaged(_)
        | PostgresError::Rows(_)
        | PostgresError::Foreign { .. }
        | PostgresError::RowKey
        | PostgresError::NotEmpty => Exit::Refused,
    };
    Failure::new(exit, cause.to_string(), "").next("tasuki doctor --store URL")
}

fn of_store(cause: &OpenError, error: &anyhow::Error) -> Failure {
    let (exit, next) = match cause {
        OpenError::Locked { .. } => (Exit::InUse, "tasuki doctor"),
        OpenError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => {
            (Exit::Refused, "")
        }
        OpenError::Io { .. } | OpenError::Sql { .. } => (Exit::Io, "tasuki doctor"),
        OpenError::TooNew { .. } => (Exit::Refused, "tasuki --version"),
        OpenError::Damaged(_) | OpenError::Lost { .. } => (Exit::Io, "tasuki restore --help"),
        OpenError::Rows { .. } => (Exit::Io, "tasuki rebuild --help"),
        OpenError::Foreign { .. } => (Exit::Refused, "tasuki audit verify --help"),
    };
    let failure = Failure::new(exit, format!("{error:#}"), "");
    if next.is_empty() { failure } else { failure.next(next) }
}
