// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with an agent elsewhere, and what that means for the attempt.

use serde_json::json;
use tasuki_engine::{Answer, Errand};

/// Why something could not be done there.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nobody answered, or not now.
    Away { problem: String, retry_after_ms: Option<u64> },
    /// What was shown is not taken, or there is nothing to show.
    Credentials(String),
    /// There is no such task.
    NoTask,
    /// The agent said no to the request itself.
    Refused(String),
    /// Its card cannot be used.
    Card(String),
    /// Our own store.
    Store(String),
}

pub(super) fn away(problem: impl Into<String>) -> Trouble {
    Trouble::Away { problem: problem.into(), retry_after_ms: None }
}

impl From<tasuki_engine::Error> for Trouble {
    fn from(error: tasuki_engine::Error) -> Self {
        Self::Store(error.to_string())
    }
}

impl Trouble {
    pub(super) fn answer(self, errand: &Errand) -> Answer {
        let lasting = |kind: &str, message: String, hint: &str| {
            failed(errand, "permanent", kind, &message, Some(hint))
        };
        match self {
            Self::Away { problem, retry_after_ms } => Answer::Unclear { problem, retry_after_ms },
            Self::Store(problem) => Answer::Unclear { problem, retry_after_ms: None },
            Self::NoTask => {
                let problem = "the agent no longer knows of the task".to_owned();
                Answer::Unclear { problem, retry_after_ms: None }
            }
            Self::Credentials(message) => lasting(
                "a2a_credentials",
                message,
                "name credentials of this agent for its origin in the file of a2a_credentials",
            ),
            Self::Refused(message) => {
                lasting("a2a_refused", message, "send what the agent's card says that it takes")
            }
            Self::Card(message) => lasting(
                "a2a_card",
                message,
                "the manifest must name an A2A server whose card can be read and checked",
            ),
        }
    }
}

/// A failure as the agent itself would report it.
pub(super) fn failed(
    errand: &Errand,
    class: &str,
    kind: &str,
    message: &str,
    hint: Option<&str>,
) -> Answer {
    let mut said = json!({
        "claim_id": errand.proof.claim_id,
        "fence": errand.proof.fence,
        "class": class,
        "type": kind,
        "message": message.chars().take(2000).collect::<String>(),
        "attempted": "to have it done over A2A",
    });
    if let Some(hint) = hint {
        said["hint"] = json!(hint);
    }
    match serde_json::from_value(said) {
        Ok(report) => Answer::Failed(Box::new(report)),
        Err(error) => Answer::Unclear { problem: error.to_string(), retry_after_ms: None },
    }
}
