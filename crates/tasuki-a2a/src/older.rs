// SPDX-License-Identifier: Apache-2.0
//! Protocol 0.3 in terms of 1.0 and back. Works on JSON, so that what neither version knows goes through.

use serde_json::{Map, Value, json};

/// The methods of 0.3 and what they are called today.
pub(crate) const METHODS: [(&str, &str); 10] = [
    ("message/send", "SendMessage"),
    ("message/stream", "SendStreamingMessage"),
    ("tasks/get", "GetTask"),
    ("tasks/cancel", "CancelTask"),
    ("tasks/resubscribe", "SubscribeToTask"),
    ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig"),
    ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
    ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"),
    ("tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig"),
    ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"),
];

fn taken(members: &mut Map<String, Value>, name: &str) -> Option<Value> {
    members.remove(name).filter(|value| !value.is_null())
}

/// Gives a member another name.
fn renamed(members: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = members.remove(from) {
        members.insert(to.into(), value);
    }
}

fn each(members: &mut Map<String, Value>, name: &str, change: impl Fn(Value) -> Value) {
    if let Some(Value::Array(list)) = members.get_mut(name) {
        for item in list {
            *item = change(item.take());
        }
    }
}

fn one(members: &mut Map<String, Value>, name: &str, change: impl Fn(Value) -> Value) {
    if let Some(value) = members.get_mut(name).filter(|value| value.is_object()) {
        *value = change(value.take());
    }
}

/// What a client of 0.3 asks, as one of 1.0 would.
pub(crate) fn asked(method: &str, params: Value) -> Value {
    let Value::Object(mut params) = params else { return params };
    match method {
        "SendMessage" | "SendStreamingMessage" => {
            one(&mut params, "message", message_up);
            one(&mut params, "configuration", configuration_up);
        }
        "CreateTaskPushNotificationConfig" => {
            let config = taken(&mut params, "pushNotificationConfig").unwrap_or(Value::Null);
            return config_up(config, params.get("taskId"));
        }
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => {
            renamed(&mut params, "id", "taskId");
            renamed(&mut params, "pushNotificationConfigId", "id");
        }
        "ListTaskPushNotificationConfigs" => renamed(&mut params, "id", "taskId"),
        _ => {}
    }
    Value::Object(params)
}

fn configuration_up(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    // Nothing said: the reply may be early. That was the default, and clients that wait say so.
    let blocking = taken(&mut members, "blocking").and_then(|it| it.as_bool()).unwrap_or(false);
    members.insert("returnImmediately".into(), Value::Bool(!blocking));
    if let Some(config) = taken(&mut members, "pushNotificationConfig") {
        members.insert("taskPushNotificationConfig".into(), config_up(config, None));
    }
    Value::Object(members)
}

fn config_up(config: Value, task: Option<&Value>) -> Value {
    let Value::Object(mut members) = config else { return config };
    if let Some(Value::Object(mut shown)) = taken(&mut members, "authentication") {
        let schemes = taken(&mut shown, "schemes");
        let first = schemes.as_ref().and_then(|schemes| schemes.get(0)).cloned();
        if let (Some(first), false) = (first, shown.contains_key("scheme")) {
            shown.insert("scheme".into(), first);
        }
        members.insert("authentication".into(), Value::Object(shown));
    }
    if let Some(task) = task {
        members.insert("taskId".into(), task.clone());
    }
    Value::Object(members)
}

fn config_down(config: Value) -> Value {
    let Value::Object(mut members) = config else { return config };
    let task = members.remove("taskId").unwrap_or_default();
    if let Some(Value::Object(mut shown)) = taken(&mut members, "authentication") {
        if let Some(scheme) = taken(&mut shown, "scheme") {
            shown.insert("schemes".into(), json!([scheme]));
        }
        members.insert("authentication".into(), Value::Object(shown));
    }
    json!({ "taskId": task, "pushNotificationConfig": members })
}

pub(crate) fn message_up(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    members.remove("kind");
    each(&mut members, "parts", part_up);
    Value::Object(members)
}

fn part_up(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    // Parts of today's form are let through as they are.
    if members.remove("kind").is_none() {
        return Value::Object(members);
    }
    if let Some(Value::Object(mut file)) = taken(&mut members, "file") {
        renamed(&mut file, "bytes", "raw");
        renamed(&mut file, "uri", "url");
        renamed(&mut file, "name", "filename");
        renamed(&mut file, "mimeType", "mediaType");
        members.extend(file);
    }
    Value::Object(members)
}

fn part_down(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    let kind = if members.contains_key("text") {
        "text"
    } else if members.contains_key("data") {
        // There, data is an object.
        if !members["data"].is_object() {
            let data = members["data"].take();
            members.insert("data".into(), json!({ "value": data }));
        }
        "data"
    } else {
        let mut file = Map::new();
        for (today, then) in
            [("raw", "bytes"), ("url", "uri"), ("filename", "name"), ("mediaType", "mimeType")]
        {
            if let Some(value) = members.remove(today) {
                file.insert(then.into(), value);
            }
        }
        members.insert("file".into(), Value::Object(file));
        "file"
    };
    members.insert("kind".into(), kind.into());
    Value::Object(members)
}

fn word(value: &mut Value, prefix: &str) {
    if let Some(text) = value.as_str().and_then(|text| text.strip_prefix(prefix)) {
        *value = Value::String(text.to_ascii_lowercase().replace('_', "-"));
    }
}

fn message_down(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    if let Some(role) = members.get_mut("role") {
        word(role, "ROLE_");
    }
    each(&mut members, "parts", part_down);
    members.insert("kind".into(), "message".into());
    Value::Object(members)
}

fn status_down(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    if let Some(state) = members.get_mut("state") {
        word(state, "TASK_STATE_");
    }
    one(&mut members, "message", message_down);
    Value::Object(members)
}

fn artifact_down(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    each(&mut members, "parts", part_down);
    Value::Object(members)
}

pub(crate) fn task_down(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    one(&mut members, "status", status_down);
    each(&mut members, "artifacts", artifact_down);
    each(&mut members, "history", message_down);
    members.insert("kind".into(), "task".into());
    Value::Object(members)
}

/// A piece of a stream, or what a message is answered with, without its wrapper.
pub(crate) fn piece(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    if let Some(task) = members.remove("task") {
        return task_down(task);
    }
    if let Some(message) = members.remove("message") {
        return message_down(message);
    }
    let (kind, update) = match (members.remove("statusUpdate"), members.remove("artifactUpdate")) {
        (Some(update), _) => ("status-update", update),
        (None, Some(update)) => ("artifact-update", update),
        (None, None) => return Value::Object(members),
    };
    let Value::Object(mut update) = update else { return update };
    if kind == "status-update" {
        let state = update.get("status").and_then(|status| status.get("state"));
        let state = state.and_then(Value::as_str).unwrap_or_default();
        let ends =
            ["COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED", "AUTH_REQUIRED"];
        let last = ends.iter().any(|end| state.strip_prefix("TASK_STATE_") == Some(end));
        update.insert("final".into(), last.into());
        one(&mut update, "status", status_down);
    } else {
        one(&mut update, "artifact", artifact_down);
    }
    update.insert("kind".into(), kind.into());
    Value::Object(update)
}

/// What is asked of a server that speaks 0.3.
pub(crate) fn asks(method: &str, params: Value) -> (&'static str, Value) {
    let then = METHODS.iter().find(|(_, today)| *today == method).map_or("", |(then, _)| *then);
    let Value::Object(mut params) = params else { return (then, params) };
    one(&mut params, "message", message_down);
    one(&mut params, "configuration", |configuration| {
        let Value::Object(mut members) = configuration else { return configuration };
        let early = taken(&mut members, "returnImmediately").and_then(|it| it.as_bool());
        members.insert("blocking".into(), Value::Bool(!early.unwrap_or(false)));
        renamed(&mut members, "taskPushNotificationConfig", "pushNotificationConfig");
        Value::Object(members)
    });
    (then, Value::Object(params))
}

/// A task as 0.3 has it, as it would be told today.
pub(crate) fn task_up(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    members.remove("kind");
    one(&mut members, "status", |status| {
        let Value::Object(mut status) = status else { return status };
        one(&mut status, "message", message_up);
        Value::Object(status)
    });
    each(&mut members, "artifacts", message_up);
    each(&mut members, "history", message_up);
    Value::Object(members)
}

/// What is answered, as 0.3 has it.
pub(crate) fn answered(method: &str, result: Value) -> Value {
    match method {
        "SendMessage" | "SendStreamingMessage" | "SubscribeToTask" => piece(result),
        "GetTask" | "CancelTask" => task_down(result),
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => config_down(result),
        "ListTaskPushNotificationConfigs" => match result {
            Value::Object(mut members) => match members.remove("configs") {
                Some(Value::Array(configs)) => {
                    Value::Array(configs.into_iter().map(config_down).collect())
                }
                _ => Value::Array(Vec::new()),
            },
            result => result,
        },
        "DeleteTaskPushNotificationConfig" => Value::Null,
        "GetExtendedAgentCard" => crate::card::with_older(result),
        "ListTasks" => match result {
            Value::Object(mut members) => {
                each(&mut members, "tasks", task_down);
                Value::Object(members)
            }
            result => result,
        },
        _ => result,
    }
}

/// What a client of the HTTP+JSON binding of 0.3 asks, which said things as gRPC did then.
pub(crate) fn rest_asked(method: &str, params: Value) -> Value {
    let Value::Object(mut params) = params else { return params };
    if method == "CreateTaskPushNotificationConfig" {
        // It has the id beside the config, and the config in another one.
        let id = taken(&mut params, "configId");
        if let Some(Value::Object(mut config)) = taken(&mut params, "config") {
            let mut inner = taken(&mut config, "pushNotificationConfig").unwrap_or_default();
            if let (Some(id), Value::Object(inner)) = (id, &mut inner) {
                inner.entry("id").or_insert(id);
            }
            params.insert("pushNotificationConfig".into(), inner);
        }
        return asked(method, Value::Object(params));
    }
    if let Some(message) = taken(&mut params, "request") {
        params.insert("message".into(), message);
    }
    one(&mut params, "message", |message| {
        let Value::Object(mut members) = message else { return message };
        renamed(&mut members, "content", "parts");
        each(&mut members, "parts", rest_part_up);
        Value::Object(members)
    });
    one(&mut params, "configuration", |configuration| {
        let Value::Object(mut members) = configuration else { return configuration };
        renamed(&mut members, "pushNotification", "pushNotificationConfig");
        Value::Object(members)
    });
    asked(method, Value::Object(params))
}

fn rest_part_up(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    if let Some(Value::Object(mut file)) = taken(&mut members, "file") {
        renamed(&mut file, "fileWithUri", "url");
        renamed(&mut file, "fileWithBytes", "raw");
        renamed(&mut file, "mimeType", "mediaType");
        renamed(&mut file, "name", "filename");
        members.extend(file);
    }
    if let Some(Value::Object(mut data)) = taken(&mut members, "data") {
        let inner = data.remove("data").unwrap_or_default();
        members.insert("data".into(), inner);
    }
    Value::Object(members)
}

/// Only these members: readers of that binding refuse others.
fn only(members: Map<String, Value>, known: &[&str]) -> Map<String, Value> {
    members.into_iter().filter(|(name, _)| known.contains(&name.as_str())).collect()
}

fn rest_part(value: Value) -> Value {
    let Value::Object(mut part) = value else { return value };
    let mut told = Map::new();
    if let Some(metadata) = part.remove("metadata") {
        told.insert("metadata".into(), metadata);
    }
    if let Some(text) = part.remove("text") {
        told.insert("text".into(), text);
    } else if let Some(data) = part.remove("data") {
        // There, data is an object.
        let data = if data.is_object() { data } else { json!({ "value": data }) };
        told.insert("data".into(), json!({ "data": data }));
    } else {
        renamed(&mut part, "url", "fileWithUri");
        renamed(&mut part, "raw", "fileWithBytes");
        renamed(&mut part, "mediaType", "mimeType");
        renamed(&mut part, "filename", "name");
        let file = only(part, &["fileWithUri", "fileWithBytes", "mimeType", "name"]);
        told.insert("file".into(), Value::Object(file));
    }
    Value::Object(told)
}

fn rest_message(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    each(&mut members, "parts", rest_part);
    renamed(&mut members, "parts", "content");
    let known = ["messageId", "contextId", "taskId", "role", "content", "metadata", "extensions"];
    Value::Object(only(members, &known))
}

fn rest_status(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    if members.get("state").is_some_and(|state| state == "TASK_STATE_CANCELED") {
        members.insert("state".into(), "TASK_STATE_CANCELLED".into());
    }
    one(&mut members, "message", rest_message);
    Value::Object(only(members, &["state", "message", "timestamp"]))
}

fn rest_artifact(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    each(&mut members, "parts", rest_part);
    let known = ["artifactId", "name", "description", "parts", "metadata", "extensions"];
    Value::Object(only(members, &known))
}

fn rest_task(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    one(&mut members, "status", rest_status);
    each(&mut members, "artifacts", rest_artifact);
    each(&mut members, "history", rest_message);
    let known = ["id", "contextId", "status", "artifacts", "history", "metadata"];
    Value::Object(only(members, &known))
}

/// A piece of a stream, as that binding had it.
pub(crate) fn rest_piece(value: Value) -> Value {
    let last = piece(value.clone()).get("final").cloned();
    let Value::Object(mut members) = value else { return value };
    one(&mut members, "task", rest_task);
    one(&mut members, "message", rest_message);
    one(&mut members, "statusUpdate", |update| {
        let Value::Object(mut update) = update else { return update };
        one(&mut update, "status", rest_status);
        update.insert("final".into(), last.clone().unwrap_or_default());
        Value::Object(update)
    });
    one(&mut members, "artifactUpdate", |update| {
        let Value::Object(mut update) = update else { return update };
        one(&mut update, "artifact", rest_artifact);
        Value::Object(update)
    });
    Value::Object(members)
}

/// What is answered, as that binding had it.
pub(crate) fn rest_answered(method: &str, result: Value) -> Value {
    match method {
        "SendMessage" => rest_piece(result),
        "GetTask" | "CancelTask" => rest_task(result),
        "ListTasks" => match result {
            Value::Object(mut members) => {
                each(&mut members, "tasks", rest_task);
                Value::Object(members)
            }
            result => result,
        },
        "CreateTaskPushNotificationConfig" | "GetTaskPushNotificationConfig" => rest_config(result),
        "ListTaskPushNotificationConfigs" => match result {
            Value::Object(mut members) => {
                each(&mut members, "configs", rest_config);
                Value::Object(members)
            }
            result => result,
        },
        "DeleteTaskPushNotificationConfig" => result,
        method => answered(method, result),
    }
}

/// A config under the name that it had there.
fn rest_config(value: Value) -> Value {
    let mut config = config_down(value);
    let task = config["taskId"].as_str().unwrap_or_default().to_owned();
    let config = config["pushNotificationConfig"].take();
    let id = config["id"].as_str().unwrap_or_default();
    let name = format!("tasks/{task}/pushNotificationConfigs/{id}");
    json!({ "name": name, "pushNotificationConfig": config })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_of_then_says_means_the_same_today() {
        let params = json!({
            "message": {
                "kind": "message", "messageId": "m", "role": "user", "later": 1,
                "parts": [
                    {"kind": "text", "text": "hi"},
                    {"kind": "file", "file": {"uri": "https://x/y", "name": "y", "mimeType": "a/b"}},
                    {"kind": "data", "data": {"x": 1}, "metadata": {"m": 2}},
                ],
            },
            "configuration": {
                "blocking": true,
                "pushNotificationConfig": {
                    "url": "https://p", "authentication": {"schemes": ["Bearer"], "credentials": "c"},
                },
            },
        });
        assert_eq!(
            asked("SendMessage", params),
            json!({
                "message": {
                    "messageId": "m", "role": "user", "later": 1,
                    "parts": [
                        {"text": "hi"},
                        {"url": "https://x/y", "filename": "y", "mediaType": "a/b"},
                        {"data": {"x": 1}, "metadata": {"m": 2}},
                    ],
                },
                "configuration": {
                    "returnImmediately": false,
                    "taskPushNotificationConfig": {
                        "url": "https://p",
                        "authentication": {"scheme": "Bearer", "credentials": "c"},
                    },
                },
            })
        );
    }

    #[test]
    fn a_part_comes_back_as_it_went() {
        for part in [
            json!({"kind": "text", "text": "hi", "metadata": {"a": 1}}),
            json!({"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain"}}),
            json!({"kind": "data", "data": {"x": [null]}}),
        ] {
            assert_eq!(part_down(part_up(part.clone())), part);
        }
    }

    #[test]
    fn the_rest_binding_of_then_says_things_as_its_grpc_did() {
        let asked = rest_asked(
            "SendMessage",
            json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [
                {"text": "hi"},
                {"file": {"fileWithUri": "https://x/y", "mimeType": "a/b", "name": "y"}},
                {"data": {"data": {"x": 1}}},
            ]}, "configuration": {"blocking": true}}),
        );
        let parts = json!([
            {"text": "hi"},
            {"url": "https://x/y", "mediaType": "a/b", "filename": "y"},
            {"data": {"x": 1}},
        ]);
        assert_eq!(asked["message"]["parts"], parts);
        assert_eq!(asked["configuration"]["returnImmediately"], false);
        let told = rest_answered(
            "GetTask",
            json!({"id": "t", "status": {"state": "TASK_STATE_CANCELED"}, "later": 1,
                "history": [{"messageId": "m", "parts": parts, "referenceTaskIds": ["x"]}]}),
        );
        assert_eq!(
            told,
            json!({"id": "t", "status": {"state": "TASK_STATE_CANCELLED"},
            "history": [{"messageId": "m", "content": [
                {"text": "hi"},
                {"file": {"fileWithUri": "https://x/y", "mimeType": "a/b", "name": "y"}},
                {"data": {"data": {"x": 1}}},
            ]}]})
        );
    }

    #[test]
    fn a_stream_says_when_it_ends() {
        for (state, word, last) in [
            ("TASK_STATE_WORKING", "working", false),
            ("TASK_STATE_INPUT_REQUIRED", "input-required", true),
            ("TASK_STATE_COMPLETED", "completed", true),
        ] {
            let update = json!({"statusUpdate": {"taskId": "t", "status": {"state": state}}});
            let told = piece(update);
            assert_eq!(told["final"], last);
            assert_eq!(told["status"]["state"], word);
            assert_eq!(told["kind"], "status-update");
        }
    }
}
