// SPDX-License-Identifier: Apache-2.0
//! How an attempt ended, in the words of the agent that made it. Stored as a body; the event
//! carries its hash.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::budget::Used;
use crate::canonical::{self, Body, Object};
use crate::envelope::{Action, CriterionReport, Payload};
use crate::event::FailureClass;
use crate::ids::{HandoffId, Hash, TaskId};

/// What a completed handoff produced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultReport {
    pub handoff_id: HandoffId,
    /// `completed`, or what the sender should do with it: `needs_review`, `changes_requested`.
    pub action: Action,
    pub payload: Payload,
    #[serde(default)]
    pub metadata: Object,
    /// What the broker checked of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verified: Vec<String>,
    /// What the agent says of it, which nobody checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<CriterionReport>,
    /// References that it had to work without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
    /// Those of them that its maker named, where the broker added others that came with the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_gaps: Option<Vec<String>>,
    /// What the attempt used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
}

/// What came of a task, as its owner says who ended it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskResult {
    pub task_id: TaskId,
    pub payload: Payload,
    #[serde(default)]
    pub metadata: Object,
}

/// The address of what a holder said, which is what its signature covers: its report without what
/// the broker found out about it.
#[must_use]
pub fn authored(report: &Body) -> Hash {
    // The writer asks this; most reports need not be read for the answer.
    let added = |member: &str| report.text().contains(&format!("\"{member}\":"));
    if !added("verified") && !added("said_gaps") {
        return report.hash;
    }
    let mut told: serde_json::Value =
        serde_json::from_str(report.text()).expect("canonical JSON is JSON");
    let Some(members) = told.as_object_mut() else { return report.hash };
    let verified = members.remove("verified");
    let said = members.remove("said_gaps");
    match &said {
        Some(serde_json::Value::Array(said)) if said.is_empty() => {
            members.remove("gaps");
        }
        Some(said) => {
            members.insert("gaps".to_owned(), said.clone());
        }
        None => {}
    }
    match (verified, said) {
        (None, None) => report.hash,
        (_, _) => canonical::address(&told),
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailureReport {
    pub handoff_id: HandoffId,
    pub action: Action,
    pub class: FailureClass,
    /// A short name for the kind of error, such as `rate_limited`.
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    /// What was attempted when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempted: Option<String>,
    /// How often the agent tried before it gave up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// What led to it, the nearest cause first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// What might fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    #[serde(default)]
    pub details: Object,
    /// What the attempt used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Used>,
}

/// How long a chain of causes may be, and each of them in bytes.
const CAUSES_MAX: usize = 32;
const CAUSE_BYTES_MAX: usize = 4096;

impl FailureReport {
    /// The first member that does not say what it must for somebody to decide, or contradicts the
    /// rest, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let blank = |text: &str| text.trim().is_empty();
        let wrong = |field, problem: &str| Err((field, problem.to_owned()));
        if blank(&self.kind) {
            return wrong("type", "expected a short name for the kind of error");
        }
        if blank(&self.message) {
            return wrong("message", "expected what went wrong");
        }
        if self.class == FailureClass::Permanent && self.hint.as_deref().is_none_or(blank) {
            let problem =
                "a permanent failure needs what might fix it: nobody will simply try again";
            return wrong("hint", problem);
        }
        if self.class != FailureClass::Retryable && self.retry_after_ms.is_some() {
            return wrong("retry_after_ms", "only a retryable failure is tried again");
        }
        if self.attempts == Some(0) {
            return wrong("attempts", "is 0; a failure has been tried at least once");
        }
        if self.causes.len() > CAUSES_MAX {
            let count = self.causes.len();
            return Err(("causes", format!("has {count}, expected at most {CAUSES_MAX}")));
        }
        match self.causes.iter().any(|cause| cause.is_empty() || cause.len() > CAUSE_BYTES_MAX) {
            true => Err(("causes", format!("expected 1 to {CAUSE_BYTES_MAX} bytes each"))),
            false => Ok(()),
        }
    }
}

/// The user's own words, as a task without a handoff keeps them. Envelopes have the same member,
/// so that either body gives the intent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    pub intent: String,
}

#[derive(Serialize)]
struct Words<'a> {
    intent: &'a str,
}

impl Intent {
    /// The body whose hash stands for the intent at every hop.
    #[must_use]
    pub fn body(text: &str) -> Body {
        Body::of(&Words { intent: text })
    }

    /// Its hash alone.
    #[must_use]
    pub fn address(text: &str) -> Hash {
        canonical::address(&Words { intent: text })
    }
}

/// A free text with the event it explains: a note, a reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub text: String,
}
