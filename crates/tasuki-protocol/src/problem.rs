// SPDX-License-Identifier: Apache-2.0
//! The one shape of an error.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tasuki_core::canonical::Object;
use tasuki_core::envelope::Fault;

use crate::Code;

/// What every error looks like.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Stable; has a page of its own under `/docs/errors/`.
    // A text, since a newer broker may answer with a code that is not known here.
    pub code: String,
    /// What failed and why.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    #[serde(default)]
    pub details: Object,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_id: String,
}

impl Problem {
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>, hint: &str) -> Self {
        Self {
            code: code.as_str().into(),
            message: message.into(),
            hint: hint.into(),
            retryable: code.is_retryable(),
            details: Object::default(),
            request_id: String::new(),
        }
    }

    /// A field of the request is not what it must be.
    #[must_use]
    pub fn invalid(field: &str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        // A rule that is broken names its place as a shape that does not fit does.
        let path = match field {
            "body" => String::new(),
            field => format!("/{}", field.replace(['.', '['], "/").replace(']', "")),
        };
        Self::new(
            Code::InvalidRequest,
            format!("{field}: {problem}"),
            "correct the field and send the request again; /docs describes every field",
        )
        .detail("field", field)
        .detail("faults", json!([{ "path": path, "problem": problem }]))
    }

    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.0.insert(name.into(), value.into());
        self
    }

    /// Names every fault there is.
    #[must_use]
    pub fn faults(self, faults: &[Fault]) -> Self {
        let told = |fault: &Fault| json!({"path": fault.path, "problem": fault.problem});
        self.detail("faults", faults.iter().map(told).collect::<Vec<Value>>())
    }

    /// Its code, if it is one of those known here.
    #[must_use]
    pub fn known(&self) -> Option<Code> {
        Code::named(&self.code)
    }

    /// Its HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.known().map_or(500, Code::status)
    }
}
