// SPDX-License-Identifier: Apache-2.0
//! What of the log's lines is looked at. Only those members are read that matter here: a million lines
//! are read in the time in which a tenth of them could be read whole.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::contract::Contract;
use crate::envelope::Target;
use crate::ids::{AgentId, CorrelationId, HandoffId, Hash, Position, TaskId, Timestamp};

/// A line of an export.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    pub(super) event: Option<Exported<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Exported<'a> {
    pub(super) position: Position,
    #[serde(borrow)]
    pub(super) record: &'a RawValue,
    #[serde(borrow)]
    pub(super) body: Option<&'a RawValue>,
}

/// An event, as far as it matters here.
#[derive(Deserialize)]
pub(super) struct Brief<'a> {
    pub(super) task_id: TaskId,
    pub(super) handoff_id: Option<HandoffId>,
    pub(super) at: Timestamp,
    pub(super) kind: &'a str,
    pub(super) change: Option<&'a str>,
    pub(super) from: Option<AgentId>,
    pub(super) to: Option<Target>,
    pub(super) agent: Option<AgentId>,
    pub(super) artifact: Option<Hash>,
    pub(super) opens: Option<Opens>,
    #[serde(default)]
    pub(super) contract: Contract,
    #[serde(default)]
    pub(super) redrive_of: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct Opens {
    pub(super) parent_task_id: Option<TaskId>,
    pub(super) correlation_id: Option<CorrelationId>,
}

/// The events that are looked at. The others are passed over by their first bytes.
const KINDS: [&str; 7] = [
    "transfer_offered",
    "call_offered",
    "claimed",
    "declined",
    "attached",
    "completed",
    "registry_changed",
];

/// Whether the first kind that a text names is one that matters. In a record nothing that somebody
/// wrote stands before its kind, and in a line of an export nothing before its record.
pub(super) fn matters(text: &str) -> bool {
    let Some(at) = memchr::memmem::find(text.as_bytes(), b"\"kind\":\"") else { return false };
    let rest = &text[at + 8..];
    KINDS.iter().any(|kind| rest.strip_prefix(kind).is_some_and(|rest| rest.starts_with('"')))
}

/// The words that somebody wrote into a JSON value, in lower case, each as a number; numbers, and the names of
/// members, are not words.
pub(super) fn words(body: &serde_json::Value, into: &mut Vec<u32>, max: usize) {
    match body {
        serde_json::Value::String(text) => {
            for word in text.split(|letter: char| !letter.is_alphanumeric()) {
                if into.len() >= max {
                    return;
                }
                let is_word = word.chars().count() > 1 && word.chars().any(char::is_alphabetic);
                if is_word {
                    into.push(number(word));
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| words(item, into, max)),
        serde_json::Value::Object(members) => {
            let written = members.iter().filter(|(name, _)| *name != "type");
            written.for_each(|(_, value)| words(value, into, max));
        }
        _ => {}
    }
}

/// FNV-1a over the word in lower case, folded.
fn number(word: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for letter in word.chars() {
        match letter {
            'A'..='Z' => take(letter as u8 + 32),
            _ if letter.is_ascii() => take(letter as u8),
            _ => {
                let mut bytes = [0; 4];
                for lower in letter.to_lowercase() {
                    lower.encode_utf8(&mut bytes).bytes().for_each(&mut take);
                }
            }
        }
    }
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The golden file has every event there is, as it is stored.
    #[test]
    fn every_event_that_matters_is_read_and_no_other() {
        let golden = include_str!("../../tests/golden/events.jsonl");
        let mut seen = std::collections::BTreeSet::new();
        for line in golden.lines() {
            let record: crate::Record = serde_json::from_str(line).unwrap();
            let kind = record.event.kind();
            assert_eq!(matters(line), KINDS.contains(&kind), "{kind}");
            if matters(line) {
                let brief: Brief<'_> = serde_json::from_str(line).unwrap();
                assert_eq!((brief.kind, brief.at), (kind, record.at));
                if let Some((offered, _)) = record.event.offered() {
                    assert_eq!(brief.from.as_ref(), Some(&offered.from));
                    assert_eq!(brief.to.as_ref(), Some(&offered.to));
                    assert_eq!(brief.contract, offered.contract);
                }
                seen.insert(kind);
            }
        }
        assert_eq!(seen.len(), KINDS.len(), "{seen:?}");
    }

    #[test]
    fn words_are_the_same_in_any_case_and_numbers_are_none() {
        let of = |text: &str| {
            let mut found = Vec::new();
            words(&serde_json::json!({ "type": "x", "text": text }), &mut found, 64);
            found
        };
        assert_eq!(of("The Café, 42 a"), of("the CAFÉ"));
        assert_eq!(of("kx7 plan").len(), 2);
    }
}
