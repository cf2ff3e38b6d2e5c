// SPDX-License-Identifier: Apache-2.0
//! Errors in the words of the protocol. What has no word there keeps ours, with the page that explains
//! it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tasuki_front::{Failed, Refused};
use tasuki_protocol::{Code, Problem};

/// Why something was not done.
#[derive(Debug)]
pub(crate) struct Fault {
    kind: Kind,
    message: String,
    /// The problem behind it, if it is one of ours.
    problem: Option<Box<Problem>>,
    fields: Vec<(String, String)>,
}

/// What the protocol has a word for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    TaskNotFound,
    TaskNotCancelable,
    Unsupported,
    ContentType,
    VersionNotSupported,
    Json,
    Request,
    Method,
    Params,
    /// No word of the protocol fits.
    Other,
}

struct Words {
    code: i32,
    status: u16,
    grpc: &'static str,
    reason: &'static str,
}

const fn words(code: i32, status: u16, grpc: &'static str, reason: &'static str) -> Words {
    Words { code, status, grpc, reason }
}

impl Kind {
    const fn words(self) -> Words {
        match self {
            Self::TaskNotFound => words(-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => {
                words(-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE")
            }
            Self::Unsupported => words(-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
            Self::ContentType => {
                words(-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")
            }
            Self::VersionNotSupported => {
                words(-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")
            }
            Self::Json => words(-32700, 400, "INVALID_ARGUMENT", "INVALID_JSON"),
            Self::Request => words(-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            Self::Method => words(-32601, 404, "UNIMPLEMENTED", "METHOD_NOT_FOUND"),
            Self::Params => words(-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            Self::Other => words(-32603, 500, "INTERNAL", "INTERNAL"),
        }
    }
}

impl Fault {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), problem: None, fields: Vec::new() }
    }

    pub(crate) fn params(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        let message = format!("{field}: {problem}");
        let fields = vec![(field, problem)];
        Self { fields, ..Self::new(Kind::Params, message) }
    }

    /// Not there, or not the caller's: nobody is told which.
    pub(crate) fn no_task(id: &str) -> Self {
        Self::new(Kind::TaskNotFound, format!("there is no task {id}"))
    }

    /// There is no such config, or it is not the caller's.
    pub(crate) fn no_push(id: &str) -> Self {
        Self::new(Kind::TaskNotFound, format!("there is no push config {id} of that task"))
    }

    /// What the engine refused, as an answer to something about this task.
    pub(crate) fn about(self, id: &str) -> Self {
        match self.problem.as_ref().and_then(|problem| problem.known()) {
            Some(Code::HandoffNotFound | Code::TaskNotFound) => Self::no_task(id),
            _ => self,
        }
    }

    pub(crate) fn code(&self) -> Option<Code> {
        self.problem.as_ref().and_then(|problem| problem.known())
    }

    /// The same under another word.
    pub(crate) fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    fn words(&self) -> Words {
        let words = self.kind.words();
        let Some(problem) = self.problem.as_ref().filter(|_| self.kind == Kind::Other) else {
            return words;
        };
        let status = problem.status();
        let (grpc, reason) = match status {
            400 | 415 | 422 => ("INVALID_ARGUMENT", "REFUSED"),
            401 => ("UNAUTHENTICATED", "REFUSED"),
            403 => ("PERMISSION_DENIED", "REFUSED"),
            404 => ("NOT_FOUND", "REFUSED"),
            409 | 410 => ("FAILED_PRECONDITION", "REFUSED"),
            413 | 429 | 507 => ("RESOURCE_EXHAUSTED", "REFUSED"),
            503 => ("UNAVAILABLE", "REFUSED"),
            _ => ("INTERNAL", "REFUSED"),
        };
        Words { code: words.code, status, grpc, reason }
    }

    fn details(&self) -> Vec<Value> {
        let words = self.words();
        let mut told = Map::new();
        let mut reason = words.reason.to_owned();
        if let Some(problem) = &self.problem {
            told.insert("code".into(), problem.code.clone().into());
            told.insert("hint".into(), problem.hint.clone().into());
            told.insert("docs".into(), format!("/docs/errors/{}", problem.code).into());
            told.insert("retryable".into(), problem.retryable.to_string().into());
            if self.kind == Kind::Other {
                reason = problem.code.to_ascii_uppercase();
            }
        }
        let domain = match self.kind {
            Kind::Other => "tasuki",
            _ => "a2a-protocol.org",
        };
        let mut info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": domain,
        });
        if !told.is_empty() {
            info["metadata"] = Value::Object(told);
        }
        let mut details = vec![info];
        if !self.fields.is_empty() {
            let of = |(field, problem): &(String, String)| json!({ "field": field, "description": problem });
            let fields: Vec<_> = self.fields.iter().map(of).collect();
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": fields,
            }));
        }
        details
    }

    /// As JSON-RPC has it.
    pub(crate) fn rpc(&self) -> Value {
        let words = self.words();
        json!({ "code": words.code, "message": self.message, "data": self.details() })
    }

    /// The status of a reply to JSON-RPC. What is not about the call itself is said where HTTP says it.
    pub(crate) fn rpc_status(&self) -> StatusCode {
        match self.words().status {
            // Nothing is served at this address.
            404 if self.kind == Kind::Other => StatusCode::NOT_FOUND,
            status @ (401 | 403 | 413 | 421 | 429 | 503 | 507) => {
                StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
            }
            _ => StatusCode::OK,
        }
    }

    fn retry_after_s(&self) -> Option<u64> {
        let ms = self.problem.as_ref()?.details.0.get("retry_after_ms").and_then(Value::as_u64);
        let busy = matches!(self.words().status, 429 | 503 | 507);
        ms.or(busy.then_some(1000)).map(|ms| ms.div_ceil(1000).max(1))
    }

    pub(crate) fn with_retry(&self, mut response: Response) -> Response {
        if let Some(seconds) = self.retry_after_s() {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl IntoResponse for Fault {
    /// As the REST binding has it.
    fn into_response(self) -> Response {
        let words = self.words();
        let body = json!({
            "error": {
                "code": words.status,
                "status": words.grpc,
                "message": self.message,
                "details": self.details(),
            },
        });
        let status = StatusCode::from_u16(words.status).unwrap_or(StatusCode::BAD_REQUEST);
        let mut response = tasuki_front::reply(status, &body);
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        self.with_retry(response)
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        let kind = match problem.known() {
            Some(Code::InvalidJson) => Kind::Json,
            Some(Code::UnsupportedMediaType) => Kind::ContentType,
            Some(Code::TaskNotFound | Code::HandoffNotFound) => Kind::TaskNotFound,
            Some(
                Code::InvalidRequest
                | Code::InvalidPayload
                | Code::InvalidTerms
                | Code::TermsOutOfRange
                | Code::DeadlinePassed
                | Code::SecretFound
                | Code::InvalidEnvelope
                | Code::IdempotencyConflict,
            ) => Kind::Params,
            Some(_) | None => Kind::Other,
        };
        let message = problem.message.clone();
        Self { problem: Some(Box::new(problem)), ..Self::new(kind, message) }
    }
}

impl From<Failed> for Fault {
    fn from(failed: Failed) -> Self {
        failed.0.into()
    }
}

impl From<tasuki_engine::Error> for Fault {
    fn from(error: tasuki_engine::Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<(String, String)> for Fault {
    fn from((field, problem): (String, String)) -> Self {
        Self::params(field, problem)
    }
}

impl Refused for Fault {
    fn code(&self) -> Option<Code> {
        self.code()
    }
}
