// SPDX-License-Identifier: Apache-2.0
//! What is said, in our terms and back. A message becomes the payload of an offer, and comes out of the
//! envelope as it went in; a result becomes artifacts.

use serde_json::{Map, Value, json};
use tasuki_core::HandoffId;
use tasuki_core::talk::{ArtifactReport, MessageReport};
use tasuki_core::trace::{Context, MEMBERS};

use crate::model::{Artifact, Message, Part, Role};

/// The type of a payload that is a message of this protocol.
pub(crate) const MESSAGE: &str = "a2a.message";
/// The type of a result that is artifacts of this protocol.
const ARTIFACTS: &str = "a2a.artifacts";
/// Where an envelope keeps what of a message is not its payload.
pub(crate) const KEPT: &str = "a2a";
/// What addresses of our memories begin with.
const MEMORY: &str = "tasuki://memories/";

/// The payload that a message becomes, and what is kept beside it. One part that is an object with a
/// `type` is what agents of this broker give each other, so it is the payload itself, and may fit the
/// schema of a capability; the rest of the message goes beside it.
pub(crate) fn payload(message: &Message) -> (Value, Map<String, Value>) {
    let typed = |part: &Part| part.data.as_ref().is_some_and(|data| data["type"].is_string());
    let mut places = message.parts.iter().enumerate().filter(|(_, part)| typed(part));
    if let (Some((place, part)), None) = (places.next(), places.next()) {
        let mut rest = message.clone();
        let payload = part.data.clone().unwrap_or_default();
        rest.parts[place].data = None;
        let kept = [("message", json!(rest)), ("payload_is_part", json!(place))];
        return (payload, kept.map(|(name, value)| (name.to_owned(), value)).into_iter().collect());
    }
    let payload = json!({ "type": MESSAGE, "text": message.words(), "message": message });
    (payload, Map::new())
}

/// The trace that something is said in, by the first of these that names one: the message comes before
/// the request, and that before its headers. What is no context is left out.
pub(crate) fn trace<'a>(
    mut said: impl Iterator<Item = &'a Map<String, Value>>,
) -> Map<String, Value> {
    let is_one = |metadata: &&Map<String, Value>| {
        let text = metadata.get(MEMBERS[0]).and_then(Value::as_str);
        text.is_some_and(|text| text.parse::<Context>().is_ok())
    };
    let Some(metadata) = said.find(is_one) else { return Map::new() };
    let member = |name: &str| Some((name.to_owned(), metadata.get(name)?.clone()));
    MEMBERS.into_iter().filter_map(member).filter(|(_, value)| value.is_string()).collect()
}

/// The message that an envelope was made from, or one that says what it says.
pub(crate) fn message_of(envelope: &Value) -> Message {
    let payload = &envelope["payload"];
    let read = |value: &Value| serde_json::from_value::<Message>(value.clone()).ok();
    if payload["type"] == MESSAGE
        && let Some(message) = read(&payload["message"])
    {
        return message;
    }
    let kept = &envelope["metadata"][KEPT];
    if let (Some(mut message), Some(place)) =
        (read(&kept["message"]), kept["payload_is_part"].as_u64())
        && let Some(part) = usize::try_from(place).ok().and_then(|at| message.parts.get_mut(at))
    {
        part.data = Some(payload.clone());
        return message;
    }
    let mut parts = Vec::new();
    if let Some(intent) = envelope["intent"].as_str() {
        parts.push(Part::text(intent));
    }
    if !payload.is_null() {
        parts.push(Part::data(payload.clone()));
    }
    Message { role: Role::User, parts, ..Message::default() }
}

/// The user's own words. A message without any says so.
pub(crate) fn intent(message: &Message) -> String {
    let words = message.words();
    if words.trim().is_empty() {
        return format!("A message of {} parts without words.", message.parts.len());
    }
    words
}

/// The memories that a message points to by their addresses.
pub(crate) fn memories(message: &Message) -> Vec<Value> {
    let urls = message.parts.iter().filter_map(|part| part.url.as_deref());
    urls.filter_map(|url| url.strip_prefix(MEMORY)).map(|id| json!({ "id": id })).collect()
}

/// The answer that a message gives to a question.
pub(crate) fn answer(message: &Message) -> Value {
    let data: Vec<_> = message.parts.iter().filter_map(|part| part.data.as_ref()).collect();
    match data[..] {
        [one] => one.clone(),
        [] if message.parts.iter().all(|part| part.text.is_some()) => message.words().into(),
        _ => json!({ "type": MESSAGE, "text": message.words(), "message": message }),
    }
}

/// A message as a word to whoever holds the work.
pub(crate) fn word(message: &Message) -> Value {
    let words = message.words();
    let text = match words.trim().is_empty() {
        true => format!("A message of {} parts without words.", message.parts.len()),
        false => words,
    };
    json!({ "text": text, "details": { "message": message } })
}

/// The message that such a word was made from.
pub(crate) fn word_of(report: &MessageReport, id: HandoffId, index: u32) -> Message {
    let kept = report.details.0.get("message").cloned();
    kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_else(|| Message {
        message_id: format!("{id}-word-{index}"),
        parts: vec![Part::text(report.text.clone())],
        ..Message::default()
    })
}

/// A result as artifacts. What is artifacts or parts already is taken as it is; a text alone is one;
/// everything else is data.
pub(crate) fn artifacts_of(payload: &Value, id: &str) -> Vec<Artifact> {
    let kind = payload["type"].as_str().unwrap_or_default();
    let own = |artifacts: &Value| {
        let read: Vec<Artifact> = serde_json::from_value(artifacts.clone()).ok()?;
        // None of them says that everything was attached before.
        read.iter().all(Artifact::is_whole).then_some(read)
    };
    if kind == ARTIFACTS
        && let Some(artifacts) = own(&payload["artifacts"])
    {
        return artifacts;
    }
    let of = |parts: Vec<Part>| Artifact {
        artifact_id: id.to_owned(),
        name: Some(id.to_owned()),
        parts,
        ..Artifact::default()
    };
    if kind == MESSAGE {
        let parts = payload.get("parts").or_else(|| payload["message"].get("parts"));
        let read = parts.and_then(|parts| serde_json::from_value::<Vec<Part>>(parts.clone()).ok());
        if let Some(artifact) = read.map(of).filter(Artifact::is_whole) {
            return vec![artifact];
        }
    }
    let members = payload.as_object().map_or(0, Map::len);
    match payload["text"].as_str() {
        Some(text) if members == 2 => vec![of(vec![Part::text(text)])],
        _ => vec![of(vec![Part {
            media_type: Some("application/json".into()),
            ..Part::data(payload.clone())
        }])],
    }
}

/// Artifacts as a result of ours: one text or one typed object is what agents here give each other, and
/// all else stays what it is.
pub(crate) fn payload_of(artifacts: &[Artifact]) -> Value {
    if let [Artifact { parts, .. }] = artifacts
        && let [part] = &parts[..]
    {
        if let Some(text) = &part.text {
            return json!({ "type": "text", "text": text });
        }
        if let Some(data) = part.data.as_ref().filter(|data| data["type"].is_string()) {
            return data.clone();
        }
    }
    json!({ "type": ARTIFACTS, "artifacts": artifacts })
}

/// What a holder attached; whether it goes on with what is there, and whether that is all of it.
pub(crate) fn attached(report: &ArtifactReport) -> (Artifact, bool, bool) {
    let name = report.name.to_string();
    let said = |member: &str| report.content.get(member).and_then(Value::as_bool);
    let parts = report.content.get("parts").cloned();
    let parts = parts.and_then(|parts| serde_json::from_value::<Vec<Part>>(parts).ok());
    let of = |parts: Vec<Part>| Artifact {
        artifact_id: name.clone(),
        name: Some(name.clone()),
        parts,
        ..Artifact::default()
    };
    if let Some(artifact) = parts.map(of).filter(Artifact::is_whole) {
        let append = said("append").unwrap_or(false);
        return (artifact, append, said("last_chunk").unwrap_or(true));
    }
    let part = match &report.content {
        Value::String(text) => Part::text(text.clone()),
        content => Part::data(content.clone()),
    };
    (of(vec![Part { media_type: Some(report.kind.clone()), ..part }]), false, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(parts: &Value) -> Message {
        serde_json::from_value(json!({
            "messageId": "m", "role": "ROLE_USER", "parts": parts, "later": {"x": 1},
            "metadata": {"a": [1]}, "extensions": ["u"], "referenceTaskIds": ["t"],
        }))
        .unwrap()
    }

    #[test]
    fn a_message_comes_out_of_an_envelope_as_it_went_in() {
        for parts in [
            json!([{"text": "hi"}]),
            json!([{"text": "hi"}, {"data": {"type": "order", "n": 1}, "metadata": {"m": 1}}]),
            json!([{"data": {"type": "a"}}, {"data": {"type": "b"}}]),
            json!([{"data": null}, {"raw": "aGk=", "filename": "f"}, {"url": "https://x/y"}]),
        ] {
            let message = message(&parts);
            let (payload, kept) = payload(&message);
            assert!(payload["type"].is_string());
            let envelope = json!({ "payload": payload, "metadata": { KEPT: kept }, "intent": "x" });
            assert_eq!(message_of(&envelope), message);
        }
    }

    #[test]
    fn one_object_with_a_type_is_the_payload_itself() {
        let message = message(&json!([{"text": "do"}, {"data": {"type": "order", "n": 1}}]));
        assert_eq!(payload(&message).0, json!({"type": "order", "n": 1}));
    }

    #[test]
    fn results_become_artifacts() {
        let text = artifacts_of(&json!({"type": "text", "text": "done"}), "result");
        assert_eq!(text[0].parts, vec![Part::text("done")]);
        let data = artifacts_of(&json!({"type": "done", "n": 1, "text": "x"}), "result");
        assert_eq!(data[0].parts[0].data, Some(json!({"type": "done", "n": 1, "text": "x"})));
        assert_eq!(payload_of(&text), json!({"type": "text", "text": "done"}));
        assert_eq!(payload_of(&data), json!({"type": "done", "n": 1, "text": "x"}));
        let own = json!({"type": "a2a.artifacts", "artifacts": [
            {"artifactId": "a", "parts": [{"text": "x"}], "later": 1},
        ]});
        assert_eq!(artifacts_of(&own, "result")[0].more["later"], 1);
        let two = [text, data].concat();
        assert_eq!(artifacts_of(&payload_of(&two), "result"), two);
    }
}
