// SPDX-License-Identifier: Apache-2.0
//! Waits as tasks of the Tasks extension, for clients that declare it: instead of holding a request open
//! they come back and look. A task's id says all that is needed to look again, so no broker remembers
//! one, and any broker can answer after a restart.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::prelude::*;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload,
    TaskStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tasuki_core::{HandoffId, Timestamp};
use tasuki_engine::operations::{claims, handoffs};
use tasuki_protocol::Problem;

use crate::call::{Arguments, Call, handle_of};
use crate::tools::{self, Said};

/// How soon a client may look again.
const POLL_MS: u64 = 1_000;

/// What somebody waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "wait", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Awaited {
    /// That work that was sent ends, or that its holder asks something. Calling it off calls the work off.
    Call { handoff: HandoffId, at: i64 },
    /// The same for somebody who only looks.
    Status { handoff: HandoffId, at: i64 },
    /// That there is work to claim, for so long.
    Claim { asked: Map<String, Value>, at: i64, for_ms: u64 },
}

/// A tool's call that may become a task, without its wait.
pub(crate) fn split(name: &str, arguments: &Arguments) -> Option<(Arguments, u64)> {
    if !matches!(name, "call" | "status" | "claim") {
        return None;
    }
    let wait = arguments.get("wait_ms").map(Value::as_u64);
    let wait = match (name, wait) {
        ("call", None) => u64::MAX,
        // What is no number is for the tool to refuse.
        (_, None | Some(None)) => return None,
        (_, Some(Some(wait))) => wait,
    };
    // A claim of one handoff waits in the broker only.
    if wait == 0 || name == "claim" && arguments.contains_key("handoff_id") {
        return None;
    }
    // How far it must have come is what a task cannot say.
    if name == "status" && arguments.get("until").is_some_and(|until| until == "claimed") {
        return None;
    }
    let mut at_once = arguments.clone();
    at_once.insert("wait_ms".into(), json!(0));
    if name == "claim" {
        // Whoever looks again repeats the claim, and must do it under the same name.
        tools::name_claim(&mut at_once);
    }
    Some((at_once, wait))
}

impl Awaited {
    /// What is still awaited after a tool looked once, if anything is.
    pub(crate) fn after(
        name: &str,
        arguments: &Arguments,
        said: &Said,
        wait_ms: u64,
        agent: Option<String>,
    ) -> Option<Self> {
        let at = now();
        if name == "claim" {
            if said.value["claimed"] != json!(false) {
                return None;
            }
            let mut asked = arguments.clone();
            asked.remove("wait_ms");
            asked.insert("agent".into(), json!(agent?));
            return Some(Self::Claim { asked, at, for_ms: wait_ms.min(crate::call::WAIT_MS_MAX) });
        }
        if is_answer(&said.value) {
            return None;
        }
        let handoff = said.value["handoff_id"].as_str()?.parse().ok()?;
        Some(match name {
            "call" => Self::Call { handoff, at },
            _ => Self::Status { handoff, at },
        })
    }

    fn id(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(json!(self).to_string())
    }

    /// What a task's id says.
    pub(crate) fn read(id: &str) -> Result<Self, Problem> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(id).ok();
        let read = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        read.ok_or_else(|| Problem::invalid("taskId", "is no task of this server's"))
    }

    fn task(&self, status: TaskStatus, says: &str) -> Task {
        let (at, for_ms) = match self {
            Self::Call { at, .. } | Self::Status { at, .. } => (*at, None),
            Self::Claim { at, for_ms, .. } => (*at, Some(*for_ms)),
        };
        let (began, now) = (Timestamp(at).to_string(), Timestamp(now()).to_string());
        let task = Task::new(self.id(), status, began, now);
        let task = task.with_status_message(says).with_poll_interval_ms(POLL_MS);
        match for_ms {
            Some(for_ms) => task.with_ttl_ms(for_ms),
            None => task,
        }
    }

    /// The task that a call became.
    pub(crate) fn begun(&self) -> CreateTaskResult {
        CreateTaskResult::new(self.task(TaskStatus::Working, "waiting"))
    }

    /// Looks again.
    pub(crate) async fn look(&self, call: &Call) -> Result<GetTaskResult, Problem> {
        let (payload, says) = match self {
            Self::Call { handoff, .. } | Self::Status { handoff, .. } => {
                let on = [handoff.to_string()];
                let shown = call.ask::<handoffs::Show>(&on, Map::new()).await?;
                let state = shown["state"].as_str().unwrap_or_default().to_owned();
                let seen = tools::seen(call, &shown).await;
                let payload = match state.as_str() {
                    "cancelled" if matches!(self, Self::Call { .. }) => TaskPayload::Cancelled,
                    _ if is_answer(&seen) => done(Ok(seen.into())),
                    _ => TaskPayload::Working,
                };
                (payload, format!("the work is {state}"))
            }
            Self::Claim { asked, at, for_ms } => match granted(call, asked).await? {
                Some(granted) => (done(tools::claimed(call, &granted).await), "claimed".to_owned()),
                None if now().saturating_sub(*at) >= i64::try_from(*for_ms).unwrap_or(0) => {
                    (done(Ok(tools::nothing_claimed())), "nothing came".to_owned())
                }
                None => (TaskPayload::Working, "nothing waits yet".to_owned()),
            },
        };
        let task = self.task(payload.status(), &says);
        Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
    }

    /// Nobody wants to know any more.
    pub(crate) async fn call_off(&self, call: &Call) -> Result<(), Problem> {
        match self {
            Self::Call { handoff, .. } => {
                let mut asked = Map::new();
                asked.insert("by".into(), json!(call.agent()?));
                asked.insert("reason".into(), json!("whoever called does not want it any more"));
                call.ask::<handoffs::Cancel>(&[handoff.to_string()], asked).await?;
            }
            Self::Status { .. } => {}
            Self::Claim { asked, .. } => {
                if let Some(granted) = granted(call, asked).await? {
                    let handle = handle_of(&granted)?;
                    call.ask_held::<claims::Release>(&handle, Map::new()).await?;
                    call.ended(&handle);
                }
            }
        }
        Ok(())
    }
}

async fn granted(call: &Call, asked: &Map<String, Value>) -> Result<Option<Value>, Problem> {
    let mut granted = call.ask::<claims::Claim>(&[], asked.clone()).await?;
    Ok(granted["claims"].get_mut(0).map(Value::take))
}

/// Whether somebody who waits for work has what it waited for.
fn is_answer(seen: &Value) -> bool {
    seen["finished"] == json!(true) || seen["state"] == json!("input_required")
}

fn done(said: Result<Said, Problem>) -> TaskPayload {
    let result: CallToolResult = tools::result(said);
    let result: JsonObject = match serde_json::to_value(result) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::new(),
    };
    TaskPayload::Completed { result }
}

/// For the client to read; the broker's own clock decides about work.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_from_its_id_and_nothing_else_is_one() {
        let awaited = Awaited::Call { handoff: HandoffId(7), at: 1_800_000_000_000 };
        assert_eq!(Awaited::read(&awaited.id()).unwrap(), awaited);
        for wrong in ["", "x", "e30", "eyJ3YWl0IjoiY2FsbCJ9"] {
            assert!(Awaited::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_waits_becomes_a_task() {
        let given = |value: Value| value.as_object().cloned().unwrap_or_default();
        assert!(split("send", &given(json!({ "wait_ms": 5 }))).is_none());
        assert!(split("claim", &given(json!({}))).is_none());
        assert!(split("claim", &given(json!({ "wait_ms": 0 }))).is_none());
        assert!(split("claim", &given(json!({ "wait_ms": 5, "handoff_id": "x" }))).is_none());
        assert!(split("status", &given(json!({ "wait_ms": "5" }))).is_none());
        let (at_once, wait) = split("claim", &given(json!({ "wait_ms": 5 }))).unwrap();
        assert_eq!((at_once["wait_ms"].clone(), wait), (json!(0), 5));
    }
}
