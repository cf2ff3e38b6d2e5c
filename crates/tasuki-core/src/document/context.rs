// SPDX-License-Identifier: Apache-2.0
//! The shared context of a project: where the project stands, what was decided, and what always
//! holds. Who owns a task is not in it and cannot be written into it: ownership moves by handoffs
//! only, so the task queue is looked up whenever the context is read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::content::bounded;
use crate::canonical::Body;
use crate::envelope::ConstraintKind;
use crate::ids::{AgentId, DecisionKey, Timestamp};
use crate::refusal::Refusal;

pub const CONTEXT_BYTES_MAX: usize = 256 * 1024;
pub const DECISIONS_MAX: usize = 1000;
pub const CONSTRAINTS_MAX: usize = 200;
pub const FILES_MAX: usize = 1000;
pub const CHANGES_MAX: usize = 200;
const LINE_BYTES_MAX: usize = 1024;
const WORDS_BYTES_MAX: usize = 4096;

/// A shared context: what all agents of a project read, in one of its revisions. This is the form
/// that is stored and hashed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    #[serde(default)]
    pub state: ProjectState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<ProjectConstraint>,
    /// The decision log, oldest first. What was superseded stays in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
}

/// Where a project stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectState {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent_changes: Vec<String>,
}

/// Something that holds for all work of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectConstraint {
    pub kind: ConstraintKind,
    pub text: String,
}

/// One entry of the decision log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ProjectDecision")]
pub struct Decision {
    /// Its number in the log, from 1.
    pub number: u32,
    /// The question that it settles.
    pub key: DecisionKey,
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub by: AgentId,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<u32>,
}

impl Context {
    /// The body to store, if everything keeps to its bounds.
    pub fn body(&self) -> Result<Body, Refusal> {
        self.state.check()?;
        counted("constraints", self.constraints.len(), CONSTRAINTS_MAX)?;
        for constraint in &self.constraints {
            bounded("constraints", Some(&constraint.text), WORDS_BYTES_MAX)?;
        }
        counted("decisions", self.decisions.len(), DECISIONS_MAX)?;
        for decision in &self.decisions {
            bounded("decision", Some(&decision.decision), WORDS_BYTES_MAX)?;
            bounded("why", decision.why.as_deref(), WORDS_BYTES_MAX)?;
        }
        let body = Body::of(self);
        bounded("the context", Some(body.text()), CONTEXT_BYTES_MAX)?;
        Ok(body)
    }

    /// Reads what [`Context::body`] made. `None` if it is something else.
    #[must_use]
    pub fn of(body: &Body) -> Option<Self> {
        serde_json::from_str(body.text()).ok()
    }

    /// Adds a decision to the log, and notes on the one that it supersedes that it does.
    pub fn log(&mut self, decision: Decision) {
        let superseded = decision.supersedes;
        for old in self.decisions.iter_mut().filter(|old| Some(old.number) == superseded) {
            old.superseded_by = Some(decision.number);
        }
        self.decisions.push(decision);
    }
}

impl ProjectState {
    fn check(&self) -> Result<(), Refusal> {
        bounded("branch", self.branch.as_deref(), LINE_BYTES_MAX)?;
        bounded("summary", self.summary.as_deref(), WORDS_BYTES_MAX)?;
        counted("files", self.files.len(), FILES_MAX)?;
        counted("recent_changes", self.recent_changes.len(), CHANGES_MAX)?;
        for line in self.files.iter().chain(&self.recent_changes) {
            bounded("a file or change", Some(line), LINE_BYTES_MAX)?;
        }
        Ok(())
    }
}

fn counted(name: &str, count: usize, max: usize) -> Result<(), Refusal> {
    if count > max {
        let text = format!("{name} has {count} items, expected at most {max}");
        return Err(Refusal::InvalidDocument(text));
    }
    Ok(())
}

/// Members by which somebody might try to say who owns a task or where it stands.
const OWNERSHIP: &[&str] = &[
    "owner",
    "owners",
    "owned_by",
    "ownership",
    "assignee",
    "assigned_to",
    "holder",
    "claim",
    "claims",
    "claimed_by",
    "task_queue",
    "queue",
    "tasks",
    "task_status",
    "task_state",
    "status",
];

/// Refuses a write that speaks of who owns what: a shared page that agents believe instead of the
/// broker is how work gets two owners.
pub fn without_ownership(written: &Value) -> Result<(), Refusal> {
    fn find(value: &Value, path: &str) -> Option<String> {
        match value {
            Value::Object(members) => members.iter().find_map(|(name, inner)| {
                let here = format!("{path}/{name}");
                let plain = name.to_ascii_lowercase().replace('-', "_");
                if OWNERSHIP.contains(&plain.as_str()) { Some(here) } else { find(inner, &here) }
            }),
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.find_map(|(place, inner)| find(inner, &format!("{path}/{place}")))
            }
            _ => None,
        }
    }
    match find(written, "") {
        Some(path) => Err(Refusal::OwnershipNotShared { path }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ownership_is_found_wherever_it_hides() {
        for (written, path) in [
            (json!({ "owner": "me" }), "/owner"),
            (json!({ "state": { "Task-Queue": [] } }), "/state/Task-Queue"),
            (
                json!({ "state": { "files": [{ "a": { "status": "done" } }] } }),
                "/state/files/0/a/status",
            ),
        ] {
            let refused = without_ownership(&written);
            assert_eq!(refused, Err(Refusal::OwnershipNotShared { path: path.into() }));
        }
        let harmless = json!({ "state": { "branch": "owner", "files": ["status.rs"] } });
        assert_eq!(without_ownership(&harmless), Ok(()));
    }

    #[test]
    fn a_superseded_decision_stays_in_the_log_and_says_by_what() {
        let decision = |number, supersedes| Decision {
            number,
            key: "database".parse().unwrap(),
            decision: format!("choice {number}"),
            why: None,
            by: "lead".parse().unwrap(),
            at: Timestamp(0),
            supersedes,
            superseded_by: None,
        };
        let mut context = Context::default();
        context.log(decision(1, None));
        context.log(decision(2, Some(1)));
        assert_eq!(context.decisions[0].superseded_by, Some(2));
        assert_eq!(context.decisions[1].superseded_by, None);
        assert_eq!(Context::of(&context.body().unwrap()), Some(context));
    }
}
