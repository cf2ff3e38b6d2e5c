// SPDX-License-Identifier: Apache-2.0
//! Dead letters: what failed, and what is decided about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tasuki_core::budget::Budget;
use tasuki_core::canonical::Object;
use tasuki_core::envelope::said::NewDecision as SaidDecision;
use tasuki_core::envelope::{Payload, Said};
use tasuki_core::{AgentId, HandoffId, Hash, Target};

use crate::{Handoff, TermsPatch};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeadLetterReason")]
pub struct DeadReason {
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven_to: Option<HandoffId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
    /// Why nobody has to decide on it any more: `task_offered_anew`, `task_cancelled` or
    /// `task_completed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetter {
    #[serde(flatten)]
    pub handoff: Handoff,
    #[schemars(with = "Option<tasuki_core::Envelope>")]
    pub envelope_content: Option<Box<RawValue>>,
    /// What the attempts reported.
    pub reports: Vec<Report>,
    /// Why agents declined it, where they said so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declines: Vec<DeclineReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded_because: Option<String>,
    /// Why an approver said no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_because: Option<String>,
    /// Who waits for whom in the circle that this call closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_in_circle: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeclineReason {
    pub agent: AgentId,
    pub reason: String,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub attempt: u32,
    pub ended: String,
    #[schemars(with = "Object")]
    pub report: Box<RawValue>,
}

/// Sends a dead letter on its way again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveLetter {
    pub by: AgentId,
    /// How long it may take this time. Without it as long as before, and what expired gets at least
    /// the broker's own span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// Sends a dead letter to another target.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reroute {
    pub by: AgentId,
    /// An agent by name, or any agent with a capability.
    pub to: Target,
    /// How long it may take this time. Without it as long as before, and what expired gets at least
    /// the broker's own span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// Sends a dead letter on its way again with a new envelope, linked to the old one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Amend {
    pub by: AgentId,
    /// Another receiver; the same one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Target>,
    /// Another payload; the same one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// How often, how long and within what time it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<TermsPatch>,
    /// How long it may take this time. Without it as long as before, and what expired gets at least
    /// the broker's own span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// What the task may spend from here on, instead of what it might before. What binds the tasks
    /// above it still does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    #[serde(flatten)]
    pub said: Said,
    /// Members that are not known, which is a mistake.
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Object,
}

/// Answers the question that a dead letter stopped at: the decision goes into the task's log, and the
/// work goes on with it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub by: AgentId,
    /// What was decided.
    pub decision: SaidDecision,
    /// How long it may take this time. Without it as long as before, and what expired gets at least
    /// the broker's own span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

/// Keeps others from deciding on a dead letter for a while.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeReview {
    pub by: AgentId,
    /// For how long, at most a day; 0 gives it back.
    pub for_ms: u64,
}

/// What is decided about many dead letters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideMany {
    pub by: AgentId,
    /// What was decided.
    pub decision: Ruling,
    /// How long those that go on may take this time. Without it as long as before, and what expired
    /// gets at least the broker's own span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Which ones, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub handoffs: Vec<HandoffId>,
    /// Which ones, by what they died of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Hash>,
    /// Only say which ones it would be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What a coordinator may decide.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// Again, as it was.
    Retry,
    /// Again, to somebody else.
    Reroute(Target),
    /// No more, for this reason.
    Abort(String),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecidedMany {
    pub dry_run: bool,
    pub results: Vec<DecidedOne>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecidedOne {
    /// The dead letter.
    pub handoff_id: HandoffId,
    /// Where it goes on, or where it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_handoff: Option<HandoffId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::Problem>,
}

/// Dead letters by what they died of, the largest group first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Groups {
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeadLetterGroup")]
pub struct Group {
    pub fingerprint: Hash,
    pub reason: String,
    pub to: Target,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "type")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub count: u64,
    /// Some of them, the newest first.
    pub handoffs: Vec<HandoffId>,
}

/// Which dead letters are listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListDeadLetters {
    /// Also those that were decided on.
    #[serde(default)]
    pub all: bool,
    /// Only dead letters before this one: where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<HandoffId>,
    /// How many at most, up to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
