// SPDX-License-Identifier: Apache-2.0
//! What is passed: immutable, addressed by the SHA-256 of its canonical JSON, linked to the
//! envelope before it. The broker fills in identity, hop and link; the sender gives the rest.

pub mod brief;
pub mod chain;
pub mod constraint;
pub mod diff;
mod expected;
pub mod inherit;
pub mod parts;
pub mod path;
pub mod project;
pub mod said;
pub mod version;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::canonical::{self, Body, Object};
use crate::contract::After;
use crate::ids::{
    AgentId, Capability, CorrelationId, Hash, IdempotencyKey, Malformed, NAME_BYTES_MAX, TaskId,
    TenantId, Timestamp,
};
use crate::registry::Signed;

pub use constraint::{Constraint, ConstraintKind};
pub use expected::{CriterionReport, read_back};
pub use parts::{ExpectedOutput, Parts};
pub use path::{HOPS_MAX, Passed, Taint};
pub use said::Said;

/// The version that this broker writes.
pub const VERSION: &str = "2.1";
/// How long the user's intent may be, in bytes.
pub const INTENT_BYTES_MAX: usize = 64 * 1024;

/// What travels with one hop of a task. Members that this version does not know are kept and
/// passed on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// `major.minor`; only the major decides compatibility.
    pub envelope_version: String,
    pub task_id: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<CorrelationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<TaskId>,
    /// How many hops came before this one, counted by the broker.
    pub hop: u32,
    /// The address of the envelope before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Hash>,
    pub from_agent: AgentId,
    pub to: Target,
    /// Whom the sender asked for, where the broker chose the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_to: Option<Target>,
    #[serde(default)]
    pub action: Action,
    pub control: Control,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// When the work must be finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// What the task, with everything below it, could still spend when this was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The user's own words, the same bytes at every hop.
    pub intent: String,
    #[serde(flatten)]
    pub parts: Parts,
    pub payload: Payload,
    /// The hops before this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Passed>,
    /// What this is built on and no longer holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// The tasks whose results come with it: it waits until so many of them have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// For monitoring only; never shown to the receiving model.
    #[serde(default)]
    pub metadata: Object,
    pub created_at: Timestamp,
    /// The sender's signature over what is its own in here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Object,
}

impl Envelope {
    /// The envelope as it is stored and served.
    #[must_use]
    pub fn body(&self) -> Body {
        Body::of(self)
    }
}

impl Envelope {
    /// The address of what the sender itself says: to whom, what, and in whose words. The broker
    /// adds the rest, so this is what the sender signs, and what a receiver checks without having
    /// to trust the broker.
    #[must_use]
    pub fn authored(&self) -> Hash {
        let to = self.asked_to.as_ref().unwrap_or(&self.to);
        authored(&self.from_agent, to, self.action, self.control, &self.intent, &self.payload)
    }
}

/// The address of what a sender says, before there is an envelope. Names are without their tenant:
/// an agent need not know in which one it is.
#[must_use]
pub fn authored(
    from: &AgentId,
    to: &Target,
    action: Action,
    control: Control,
    intent: &str,
    payload: &Payload,
) -> Hash {
    let to = match to {
        Target::Agent(agent) => serde_json::json!({ "agent": agent.name() }),
        Target::Capability(capability) => serde_json::json!({ "capability": capability.name() }),
    };
    let said = serde_json::json!({
        "from_agent": from.name(),
        "to": to,
        "action": action,
        "control": control,
        "intent": intent,
        "payload": payload,
    });
    canonical::address(&said)
}

/// Where something does not fit, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub path: String,
    pub problem: String,
}

impl Fault {
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}

/// Who is to do the work: an agent by its name, or any agent with a capability.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This agent and no other.
    Agent(AgentId),
    /// Any agent that can do this.
    Capability(Capability),
}

impl Target {
    /// The name of the tenant that the work stays within.
    #[must_use]
    pub fn tenant(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.tenant(),
            Self::Capability(capability) => capability.tenant(),
        }
    }

    /// The name without its tenant.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.name(),
            Self::Capability(capability) => capability.name(),
        }
    }

    /// What somebody of a tenant means by this.
    #[must_use]
    pub fn seen_from(&self, tenant: &TenantId) -> Self {
        match self {
            Self::Agent(agent) => Self::Agent(agent.seen_from(tenant)),
            Self::Capability(capability) => Self::Capability(capability.seen_from(tenant)),
        }
    }
}

/// What the sender did, or wants done.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    #[default]
    Request,
    Completed,
    Failed,
    NeedsReview,
    ChangesRequested,
    Escalated,
}

/// Whether the sender gives the task away (a transfer) or stays its owner and waits for the result (a call).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// `transfer`: ownership of the task passes on.
    Passed,
    /// `call`: the sender stays owner of its own task; the work is a task below it.
    Awaited,
}

/// The work product or the request: an object that names its `type`, never a bare string.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Payload(Map<String, Value>);

impl Payload {
    /// All members, `type` among them.
    #[must_use]
    pub fn members(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl TryFrom<Map<String, Value>> for Payload {
    type Error = Malformed;
    fn try_from(members: Map<String, Value>) -> Result<Self, Malformed> {
        let kind = members.get("type").and_then(Value::as_str);
        let fits = |kind: &str| {
            (1..=NAME_BYTES_MAX).contains(&kind.len()) && !kind.chars().any(char::is_control)
        };
        match kind {
            Some(kind) if fits(kind) => Ok(Self(members)),
            Some(_) => Err(Malformed(format!(
                "expected a `type` of 1 to {NAME_BYTES_MAX} bytes without control characters"
            ))),
            None => Err(Malformed("expected a member `type` that is a string".into())),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Map::deserialize(from)?.try_into().map_err(de::Error::custom)
    }
}

impl JsonSchema for Payload {
    fn schema_name() -> Cow<'static, str> {
        "Payload".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "An object that names its type, never a bare string.",
            "required": ["type"],
            "properties": { "type": { "type": "string", "minLength": 1, "maxLength": 128 } },
            "additionalProperties": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> serde_json::Value {
        serde_json::json!({
            "envelope_version": "2.0",
            "task_id": TaskId(1),
            "hop": 0,
            "from_agent": "coder",
            "to": {"agent": "reviewer"},
            "control": "passed",
            "intent": "Add GET /users/{id}.\n  Do not touch auth.",
            "payload": {"type": "code", "files": ["a.rs"]},
            "created_at": "2026-11-15T12:00:00.000Z",
        })
    }

    #[test]
    fn an_envelope_keeps_members_of_a_newer_minor_version() {
        let mut newer = example();
        newer["envelope_version"] = "2.9".into();
        newer["mood"] = "hopeful".into();
        let envelope: Envelope = serde_json::from_value(newer).unwrap();
        assert!(envelope.body().text().contains(r#""mood":"hopeful""#));
    }

    #[test]
    fn every_byte_of_the_intent_is_in_the_address() {
        let one: Envelope = serde_json::from_value(example()).unwrap();
        let mut two = one.clone();
        two.intent = two.intent.replace("  ", " ");
        assert_ne!(one.body().hash, two.body().hash);
        assert_eq!(one.body().hash, one.body().hash);
    }

    #[test]
    fn a_bare_string_is_no_payload() {
        for payload in [serde_json::json!("do it"), serde_json::json!({"text": "no type"})] {
            let mut bad = example();
            bad["payload"] = payload;
            assert!(serde_json::from_value::<Envelope>(bad).is_err());
        }
    }
}
