// SPDX-License-Identifier: Apache-2.0
//! How a command ends: the exit codes, and what a failure says. The table of codes in
//! `docs/reference/cli.md` is made from here.

use std::fmt;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Map, Value};
use tasuki_protocol::Problem;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Refused = 1,
    Usage = 2,
    NotFound = 3,
    Conflict = 4,
    Nothing = 5,
    Unavailable = 69,
    Io = 74,
    InUse = 75,
}

impl Exit {
    pub const ALL: [Self; 9] = [
        Self::Done,
        Self::Refused,
        Self::Usage,
        Self::NotFound,
        Self::Conflict,
        Self::Nothing,
        Self::Unavailable,
        Self::Io,
        Self::InUse,
    ];

    /// The `code` of a failure that the command line finds by itself, without the broker.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Usage => "usage",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Nothing => "nothing",
            Self::Unavailable => "unavailable",
            Self::Io => "store_failed",
            Self::InUse => "in_use",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "it was done",
            Self::Refused => {
                "the rules say no, a check found something wrong, or what was waited for ended badly"
            }
            Self::Usage => "the command line or the configuration cannot be understood",
            Self::NotFound => "there is no such task, handoff, file or data directory",
            Self::Conflict => "it conflicts with what happened before (HTTP 409), as a stale claim",
            Self::Nothing => "there was nothing to do, or the wait ended before it was done",
            Self::Unavailable => "no broker answers, or it cannot serve now (HTTP 5xx)",
            Self::Io => "the store failed (an I/O error, damaged data), or a worker of the broker",
            Self::InUse => "another process uses the data directory or the address",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed: what failed and why, what to do, and the next command.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
    hint: String,
    next: Option<String>,
    /// What the broker answered, if it was the broker who refused.
    answer: Option<Box<Answer>>,
}

#[derive(Debug)]
struct Answer {
    code: String,
    /// Word for word.
    text: String,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: hint.into(), next: None, answer: None }
    }

    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message, hint)
    }

    /// Says what to do in other words.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// Names the command that helps.
    pub fn next(self, command: impl Into<String>) -> Self {
        Self { next: Some(command.into()), ..self }
    }

    /// What the broker refused.
    pub fn refused(status: u16, text: String) -> Self {
        let exit = match status {
            404 => Exit::NotFound,
            409 => Exit::Conflict,
            500.. => Exit::Unavailable,
            _ => Exit::Refused,
        };
        let Ok(problem) = serde_json::from_str::<Problem>(&text) else {
            let message = format!("the answer has status {status} and is not the broker's");
            return Self::new(exit, message, "check that --url names a Tasuki broker");
        };
        Self {
            exit,
            next: next_command(&problem),
            message: problem.message,
            hint: problem.hint,
            answer: Some(Box::new(Answer { code: problem.code, text })),
        }
    }

    /// The broker's word for it, or ours.
    pub fn code(&self) -> &str {
        self.answer.as_ref().map_or(self.exit.word(), |answer| &answer.code)
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        let answered = self.answer.as_ref().and_then(|it| serde_json::from_str(&it.text).ok());
        let answered = answered.map(|problem: Problem| problem.retryable);
        answered.unwrap_or(matches!(self.exit, Exit::Unavailable | Exit::InUse))
    }

    /// What may help, in words.
    pub fn advice(&self) -> &str {
        &self.hint
    }

    /// The same shape as the broker's errors.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Shape<'f> {
            code: &'f str,
            message: &'f str,
            hint: &'f str,
            retryable: bool,
            details: Map<String, Value>,
        }
        if let Some(answer) = &self.answer {
            return answer.text.clone();
        }
        let next = self.next.clone().map(|next| ("next".to_owned(), Value::String(next)));
        let shape = Shape {
            code: self.exit.word(),
            message: &self.message,
            hint: &self.hint,
            retryable: matches!(self.exit, Exit::Unavailable | Exit::InUse),
            details: next.into_iter().collect(),
        };
        serde_json::to_string(&shape).expect("a failure has string keys only")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if !self.hint.is_empty() {
            write!(f, "\nhint:  {}", self.hint)?;
        }
        if let Some(next) = &self.next {
            write!(f, "\nnext:  {next}")?;
        }
        match &self.answer {
            Some(answer) => write!(f, "\ncode:  {}", answer.code),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// The command that shows what a refusal is about.
fn next_command(problem: &Problem) -> Option<String> {
    let detail = |name: &str| problem.details.0.get(name).and_then(Value::as_str);
    let command = match problem.code.as_str() {
        "handoff_not_found" => "handoff list".to_owned(),
        "task_not_found" => "task list".to_owned(),
        "internal" | "disk_full" => "doctor".to_owned(),
        "already_reviewed" => format!("dead-letter show {}", detail("handoff_id")?),
        "not_dead_lettered" => "dead-letter list".to_owned(),
        "agent_not_found" => "agent list".to_owned(),
        "token_not_found" => "token list".to_owned(),
        "unauthenticated" => "agent enroll --help".to_owned(),
        _ => match (detail("first"), detail("handoff_id"), detail("task_id")) {
            (Some(handoff), ..) | (None, Some(handoff), _) => format!("handoff show {handoff}"),
            (None, None, Some(task)) => format!("task show {task}"),
            (None, None, None) => return None,
        },
    };
    Some(format!("tasuki {command}"))
}

/// What any error that reached the top means; `known` is asked about those of its own kind. Nothing
/// if the reader of our output went away, which is no failure.
pub fn failure_of(
    error: anyhow::Error,
    known: impl FnOnce(&anyhow::Error) -> Option<Failure>,
) -> Option<Failure> {
    let is_kind = |kind| {
        error.chain().any(|cause| {
            cause.downcast_ref::<std::io::Error>().is_some_and(|cause| cause.kind() == kind)
        })
    };
    if is_kind(std::io::ErrorKind::BrokenPipe) {
        return None;
    }
    let refused = is_kind(std::io::ErrorKind::ConnectionRefused);
    Some(error.downcast::<Failure>().unwrap_or_else(|error| {
        let exit = if refused { Exit::Unavailable } else { Exit::Refused };
        known(&error).unwrap_or_else(|| Failure::new(exit, format!("{error:#}"), ""))
    }))
}
