// SPDX-License-Identifier: Apache-2.0
//! What A2A 1.0 says, as far as this door reads it: lenient with what comes in (names in either case of
//! the JSON mapping, enumerations in either form, `null` for nothing), strict in what goes out. Members
//! that are not known here are kept and go on with the rest.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Members that are not known here.
pub(crate) type More = Map<String, Value>;

/// `null` is as good as silence.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// An empty text is as good as silence, as it is in the protocol's definition.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.filter(|text| !text.is_empty()))
}

/// A number may come as a text, as queries have it.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    match Option::<Value>::deserialize(from)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            number.as_i64().map(Some).ok_or_else(|| D::Error::custom("expected a whole number"))
        }
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => {
            text.parse().map(Some).map_err(|_| D::Error::custom("expected a whole number"))
        }
        Some(_) => Err(D::Error::custom("expected a whole number")),
    }
}

fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match Option::<Value>::deserialize(from)? {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(Value::String(text)) => match text.as_str() {
            "true" => Ok(true),
            "false" | "" => Ok(false),
            _ => Err(D::Error::custom("expected true or false")),
        },
        Some(_) => Err(D::Error::custom("expected true or false")),
    }
}

/// `null` is data like any other.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Who says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    #[default]
    #[serde(rename = "ROLE_UNSPECIFIED")]
    Unspecified,
    #[serde(rename = "ROLE_USER", alias = "user")]
    User,
    #[serde(rename = "ROLE_AGENT", alias = "agent")]
    Agent,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    #[serde(rename = "TASK_STATE_SUBMITTED", alias = "submitted")]
    Submitted,
    #[serde(rename = "TASK_STATE_WORKING", alias = "working")]
    Working,
    #[serde(rename = "TASK_STATE_COMPLETED", alias = "completed")]
    Completed,
    #[serde(rename = "TASK_STATE_FAILED", alias = "failed")]
    Failed,
    #[serde(rename = "TASK_STATE_CANCELED", alias = "canceled")]
    Canceled,
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED", alias = "input-required")]
    InputRequired,
    #[serde(rename = "TASK_STATE_REJECTED", alias = "rejected")]
    Rejected,
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED", alias = "auth-required")]
    AuthRequired,
}

impl State {
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }

    /// Whether somebody has to say something before it goes on.
    pub(crate) fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// A piece of what is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Bytes, in base 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub(crate) data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub(crate) filename: Option<String>,
    #[serde(
        default,
        alias = "media_type",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "text"
    )]
    pub(crate) media_type: Option<String>,
    #[serde(flatten)]
    pub(crate) more: More,
}

impl Part {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    pub(crate) fn data(data: Value) -> Self {
        Self { data: Some(data), ..Self::default() }
    }

    /// Whether it says one thing, and only one.
    fn is_one(&self) -> bool {
        let said = [self.text.is_some(), self.raw.is_some(), self.url.is_some()];
        said.into_iter().filter(|said| *said).count() + usize::from(self.data.is_some()) == 1
    }
}

/// What one side says to the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Message {
    #[serde(default, alias = "message_id", deserialize_with = "or_default")]
    pub(crate) message_id: String,
    #[serde(
        default,
        alias = "context_id",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "text"
    )]
    pub(crate) context_id: Option<String>,
    #[serde(
        default,
        alias = "task_id",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "text"
    )]
    pub(crate) task_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) role: Role,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub(crate) extensions: Vec<String>,
    #[serde(
        default,
        alias = "reference_task_ids",
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "or_default"
    )]
    pub(crate) reference_task_ids: Vec<String>,
    #[serde(flatten)]
    pub(crate) more: More,
}

impl Message {
    /// What is missing for it to be one.
    pub(crate) fn fault(&self) -> Option<(String, &'static str)> {
        if self.message_id.is_empty() {
            return Some(("message.messageId".into(), "is missing"));
        }
        if self.role != Role::User {
            return Some(("message.role".into(), "expected ROLE_USER: clients speak for users"));
        }
        if self.parts.is_empty() {
            return Some(("message.parts".into(), "expected at least one part"));
        }
        let odd = self.parts.iter().position(|part| !part.is_one())?;
        Some((format!("message.parts[{odd}]"), "expected one of text, raw, url and data"))
    }

    /// All that it says in words.
    pub(crate) fn words(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| part.text.as_deref());
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// What came of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Artifact {
    #[serde(default, alias = "artifact_id", deserialize_with = "or_default")]
    pub(crate) artifact_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "text")]
    pub(crate) description: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub(crate) extensions: Vec<String>,
    #[serde(flatten)]
    pub(crate) more: More,
}

impl Artifact {
    pub(crate) fn is_whole(&self) -> bool {
        !self.artifact_id.is_empty()
            && !self.parts.is_empty()
            && self.parts.iter().all(Part::is_one)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timestamp: Option<String>,
    #[serde(flatten)]
    pub(crate) more: More,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) id: String,
    #[serde(default, alias = "context_id", deserialize_with = "or_default")]
    pub(crate) context_id: String,
    pub(crate) status: Status,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub(crate) artifacts: Vec<Artifact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub(crate) history: Vec<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    #[serde(flatten)]
    pub(crate) more: More,
}

/// The last messages of a task that somebody asked for.
pub(crate) fn cut(mut task: Task, last: Option<i64>) -> Task {
    if let Some(last) = last {
        let keep = usize::try_from(last).unwrap_or(0);
        let drop = task.history.len().saturating_sub(keep);
        task.history.drain(..drop);
    }
    task
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusUpdate {
    pub(crate) task_id: String,
    pub(crate) context_id: String,
    pub(crate) status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArtifactUpdate {
    pub(crate) task_id: String,
    pub(crate) context_id: String,
    pub(crate) artifact: Artifact,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) append: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) last_chunk: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
}

/// One piece of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Piece {
    Task(Task),
    StatusUpdate(StatusUpdate),
    ArtifactUpdate(ArtifactUpdate),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Configuration {
    #[serde(default, alias = "accepted_output_modes", deserialize_with = "or_default")]
    pub(crate) accepted_output_modes: Vec<String>,
    #[serde(default, alias = "task_push_notification_config")]
    pub(crate) task_push_notification_config: Option<Value>,
    #[serde(default, alias = "history_length", deserialize_with = "number")]
    pub(crate) history_length: Option<i64>,
    #[serde(default, alias = "return_immediately", deserialize_with = "flag")]
    pub(crate) return_immediately: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Send {
    #[serde(default, deserialize_with = "text")]
    pub(crate) tenant: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<Message>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) configuration: Configuration,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) metadata: Map<String, Value>,
}

/// Anything that names a task, or a thing of one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Named {
    #[serde(default, deserialize_with = "text")]
    pub(crate) tenant: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<String>,
    #[serde(default, alias = "task_id", deserialize_with = "text")]
    pub(crate) task_id: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "number")]
    pub(crate) history_length: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct List {
    #[serde(default, deserialize_with = "text")]
    pub(crate) tenant: Option<String>,
    #[serde(default, alias = "context_id", deserialize_with = "text")]
    pub(crate) context_id: Option<String>,
    #[serde(default)]
    pub(crate) status: Option<Value>,
    #[serde(default, alias = "page_size", deserialize_with = "number")]
    pub(crate) page_size: Option<i64>,
    #[serde(default, alias = "page_token", deserialize_with = "text")]
    pub(crate) page_token: Option<String>,
    #[serde(default, alias = "history_length", deserialize_with = "number")]
    pub(crate) history_length: Option<i64>,
    #[serde(default, alias = "status_timestamp_after", deserialize_with = "text")]
    pub(crate) status_timestamp_after: Option<String>,
    #[serde(default, alias = "include_artifacts", deserialize_with = "flag")]
    pub(crate) include_artifacts: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    pub(crate) tasks: Vec<Task>,
    pub(crate) next_page_token: String,
    pub(crate) page_size: i64,
    pub(crate) total_size: i64,
}

/// Reads what is asked; the error names the place.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, (String, String)> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| (error.path().to_string(), error.inner().to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_nobody_knows_survive_and_either_case_is_read() {
        let said = json!({
            "message_id": "m-1", "role": "user", "context_id": "", "taskId": null,
            "parts": [{"text": "hi", "media_type": "text/plain", "later": {"x": [1.5, null]}}],
            "newMember": true,
        });
        let message: Message = read(said).unwrap();
        let shown = serde_json::to_value(&message).unwrap();
        assert_eq!(
            shown,
            json!({
                "messageId": "m-1", "role": "ROLE_USER", "newMember": true,
                "parts": [{"text": "hi", "mediaType": "text/plain", "later": {"x": [1.5, null]}}],
            })
        );
        assert_eq!(message.fault(), None);
    }

    #[test]
    fn data_that_is_null_is_data() {
        let part: Part = read(json!({"data": null})).unwrap();
        assert_eq!(part.data, Some(Value::Null));
        assert_eq!(serde_json::to_value(&part).unwrap(), json!({"data": null}));
    }

    #[test]
    fn a_part_that_says_two_things_or_nothing_is_a_fault() {
        for part in [json!({}), json!({"text": "a", "url": "b"})] {
            let said = json!({"messageId": "m", "role": "ROLE_USER", "parts": [part]});
            let message: Message = read(said).unwrap();
            assert_eq!(message.fault().unwrap().0, "message.parts[0]");
        }
    }
}
