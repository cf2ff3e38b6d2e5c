// SPDX-License-Identifier: Apache-2.0
//! What must and must not be done. A constraint is known by the hash of its text, so that a softer
//! wording is another constraint and the missing one is seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;

use super::Fault;
use crate::canonical;
use crate::event::words;
use crate::ids::{AgentId, Hash, Timestamp};

/// How many constraints a task may have, and how long one may be in bytes.
pub const CONSTRAINTS_MAX: usize = 500;
pub const CONSTRAINT_BYTES_MAX: usize = 8 * 1024;

/// A rule that binds every agent of the chain until whoever issued it lifts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Constraint {
    /// The SHA-256 of the text in Unicode's composed form (NFC).
    pub id: Hash,
    pub kind: ConstraintKind,
    pub text: String,
    /// Who said so. It and the task's coordinator may lift the constraint, and nobody else.
    pub issuer: AgentId,
    /// Whether it binds; a preference does not.
    pub hard: bool,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ConstraintKind {
    Must,
    MustNot,
    Budget,
    Format,
    Security,
    Preference,
}

words!(ConstraintKind {
    Must = "must",
    MustNot = "must_not",
    Budget = "budget",
    Format = "format",
    Security = "security",
    Preference = "preference",
});

/// A constraint as somebody states it: by its text, or by the id of one that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stated {
    pub id: Option<Hash>,
    pub kind: Option<ConstraintKind>,
    pub text: Option<String>,
    pub hard: Option<bool>,
}

/// What a list or a map of constraints says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    pub stated: Vec<Stated>,
    /// A map's `max_tokens` and `deadline` are no constraints of their own.
    pub budget_tokens: Option<u32>,
    pub deadline: Option<Timestamp>,
}

/// The id of a text.
#[must_use]
pub fn id_of(text: &str) -> Hash {
    let composed: String = text.nfc().collect();
    canonical::hash(composed.as_bytes())
}

impl Constraint {
    /// A new constraint by somebody.
    #[must_use]
    pub fn new(text: String, kind: ConstraintKind, hard: bool, issuer: AgentId) -> Self {
        Self { id: id_of(&text), kind, text, issuer, hard }
    }

    /// Whether the text is the one that the id stands for.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        id_of(&self.text) == self.id
    }
}

impl Stated {
    /// The constraint that this adds, if it has a text.
    pub(super) fn adds(&self, issuer: &AgentId) -> Option<Constraint> {
        let text = self.text.clone()?;
        let kind = self.kind.unwrap_or_else(|| kind_of(&text));
        let hard = self.hard.unwrap_or(kind != ConstraintKind::Preference);
        Some(Constraint::new(text, kind, hard, issuer.clone()))
    }
}

/// What a text that names no kind is.
fn kind_of(text: &str) -> ConstraintKind {
    let start = text.trim_start().to_lowercase();
    let forbids = ["do not ", "don't ", "don’t ", "never ", "must not ", "no ", "avoid "];
    if forbids.iter().any(|word| start.starts_with(word)) {
        ConstraintKind::MustNot
    } else {
        ConstraintKind::Must
    }
}

/// Reads constraints: a list of texts and objects, or a plain map such as
/// `{"language": "python", "max_tokens": 4000}`. Every fault is named.
pub fn read(given: &Value, path: &str, faults: &mut Vec<Fault>) -> Read {
    match given {
        Value::Array(list) => {
            if list.len() > CONSTRAINTS_MAX {
                faults.push(Fault::new(path, format!("has more than {CONSTRAINTS_MAX} entries")));
                return Read::default();
            }
            let stated = list.iter().enumerate();
            let stated = stated.filter_map(|(n, one)| entry(one, &format!("{path}/{n}"), faults));
            Read { stated: stated.collect(), ..Read::default() }
        }
        Value::Object(map) => read_map(map, path, faults),
        _ => {
            faults.push(Fault::new(path, "expected a list or an object"));
            Read::default()
        }
    }
}

fn entry(one: &Value, path: &str, faults: &mut Vec<Fault>) -> Option<Stated> {
    let members = match one {
        Value::String(text) => {
            return text_of(text, path, faults)
                .map(|text| Stated { text: Some(text), ..Stated::default() });
        }
        Value::Object(members) => members,
        _ => {
            faults.push(Fault::new(path, "expected a text or an object"));
            return None;
        }
    };
    let before = faults.len();
    let mut stated = Stated::default();
    for (name, value) in members {
        let at = format!("{path}/{name}");
        match (name.as_str(), value) {
            ("id", Value::String(id)) => match id.parse() {
                Ok(id) => stated.id = Some(id),
                Err(error) => faults.push(Fault::new(at, format!("{error}"))),
            },
            ("kind", Value::String(kind)) => match kind.parse() {
                Ok(kind) => stated.kind = Some(kind),
                Err(error) => faults.push(Fault::new(at, format!("{error}"))),
            },
            ("text", Value::String(text)) => stated.text = text_of(text, &at, faults),
            ("hard", Value::Bool(hard)) => stated.hard = Some(*hard),
            // Who says so is known; a restated constraint names its issuer, which is not read.
            ("issuer", Value::String(_)) => {}
            ("id" | "kind" | "text" | "issuer", _) => faults.push(Fault::new(at, "is no text")),
            ("hard", _) => faults.push(Fault::new(at, "is neither true nor false")),
            _ => faults.push(Fault::new(at, "is no member of a constraint")),
        }
    }
    if stated.id.is_none() && !members.contains_key("text") {
        faults.push(Fault::new(path, "needs a text, or the id of a constraint that is there"));
    }
    (faults.len() == before).then_some(stated)
}

fn text_of(text: &str, path: &str, faults: &mut Vec<Fault>) -> Option<String> {
    if text.trim().is_empty() {
        faults.push(Fault::new(path, "is empty"));
    } else if text.len() > CONSTRAINT_BYTES_MAX {
        faults.push(Fault::new(path, format!("has more than {CONSTRAINT_BYTES_MAX} bytes")));
    } else {
        return Some(text.to_owned());
    }
    None
}

fn read_map(map: &Map<String, Value>, path: &str, faults: &mut Vec<Fault>) -> Read {
    let mut read = Read::default();
    if map.len() > CONSTRAINTS_MAX {
        faults.push(Fault::new(path, format!("has more than {CONSTRAINTS_MAX} entries")));
        return read;
    }
    for (name, value) in map {
        let at = format!("{path}/{name}");
        match (name.as_str(), value) {
            ("max_tokens", value) => match value.as_u64().and_then(|n| u32::try_from(n).ok()) {
                Some(tokens) => read.budget_tokens = Some(tokens),
                None => faults.push(Fault::new(at, "expected a whole number")),
            },
            ("deadline", value) => match serde_json::from_value(value.clone()) {
                Ok(deadline) => read.deadline = Some(deadline),
                Err(error) => faults.push(Fault::new(at, error.to_string())),
            },
            (_, Value::Array(several)) => {
                for (number, one) in several.iter().enumerate() {
                    let at = format!("{at}/{number}");
                    read.stated.extend(mapped(name, one, &at, faults));
                }
            }
            (_, one) => read.stated.extend(mapped(name, one, &at, faults)),
        }
    }
    read
}

/// One entry of a map. Its name is part of what it says, unless it only says what kind it is.
fn mapped(name: &str, value: &Value, path: &str, faults: &mut Vec<Fault>) -> Option<Stated> {
    let said = match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            faults.push(Fault::new(path, "expected a text, a number, true or false"));
            return None;
        }
    };
    let kind = match name {
        "must" | "do" => Some(ConstraintKind::Must),
        "must_not" | "do_not" | "dont" | "forbidden" => Some(ConstraintKind::MustNot),
        "security" => Some(ConstraintKind::Security),
        "preference" | "preferences" => Some(ConstraintKind::Preference),
        _ => None,
    };
    let text = match kind {
        Some(_) => text_of(&said, path, faults)?,
        None => text_of(&format!("{name}: {said}"), path, faults)?,
    };
    let by_name = || match name {
        "format" | "output_format" | "language" | "style" => Some(ConstraintKind::Format),
        "budget" | "cost" => Some(ConstraintKind::Budget),
        _ => None,
    };
    Some(Stated { kind: kind.or_else(by_name), text: Some(text), ..Stated::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_all(given: &Value) -> Read {
        let mut faults = Vec::new();
        let read = read(given, "/constraints", &mut faults);
        assert_eq!(faults, []);
        read
    }

    #[test]
    fn composed_and_decomposed_text_are_one_constraint_and_a_softer_one_is_another() {
        assert_eq!(id_of("caf\u{e9}"), id_of("cafe\u{301}"));
        assert_ne!(id_of("Never delete data."), id_of("Try not to delete data."));
    }

    #[test]
    fn a_plain_map_is_taken_as_it_stands() {
        let read = read_all(&json!({
            "language": "python", "max_tokens": 4000, "must_not": ["touch prod", "log secrets"],
            "deadline": "2027-01-15T08:00:00Z", "strict": true,
        }));
        assert_eq!(read.budget_tokens, Some(4000));
        assert!(read.deadline.is_some());
        let by = "planner".parse().unwrap();
        let made: Vec<_> = read.stated.iter().map(|one| one.adds(&by).unwrap()).collect();
        let said: Vec<_> = made.iter().map(|c| (c.kind, c.text.as_str())).collect();
        assert_eq!(
            said,
            [
                (ConstraintKind::Format, "language: python"),
                (ConstraintKind::MustNot, "touch prod"),
                (ConstraintKind::MustNot, "log secrets"),
                (ConstraintKind::Must, "strict: true"),
            ]
        );
    }

    #[test]
    fn a_text_says_by_itself_whether_it_forbids() {
        let by = "planner".parse().unwrap();
        let kinds = ["Do not email the customer.", "Use SI units."].map(|text| {
            let read = read_all(&json!([text]));
            read.stated[0].adds(&by).unwrap().kind
        });
        assert_eq!(kinds, [ConstraintKind::MustNot, ConstraintKind::Must]);
    }

    #[test]
    fn every_fault_is_named_with_its_path() {
        let mut faults = Vec::new();
        let given = json!([7, { "kind": "wish", "text": "" }, { "hard": "yes", "colour": 1 }, {}]);
        read(&given, "/constraints", &mut faults);
        let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "/constraints/0",
                "/constraints/1/kind",
                "/constraints/1/text",
                "/constraints/2/colour",
                "/constraints/2/hard",
                "/constraints/2",
                "/constraints/3",
            ]
        );
    }
}
