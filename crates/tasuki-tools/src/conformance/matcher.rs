// SPDX-License-Identifier: Apache-2.0
//! Whether an answer is what a step expects, and if not, in which way. Pure.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::compare::{all_differ, cut, is_permutation, is_status, kind_of, shown, size};
use super::condition::{Condition, given};

/// What may differ from run to run.
const ANY: &str = "<any>";
/// How many findings are worth reading.
const FINDINGS_MAX: usize = 5;

/// What a step expects. Everything that it names must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Expect {
    /// A status, a list of them, or a class such as `4xx`.
    #[serde(deserialize_with = "given")]
    status: Option<Value>,
    /// The word of a refusal.
    code: Option<String>,
    /// A part of the body: members that it does not name may have any value.
    #[serde(deserialize_with = "given")]
    body: Option<Value>,
    /// Conditions on what is found at JSON pointers.
    at: BTreeMap<String, Condition>,
    /// For calls at once: how many came back with which status.
    replies: Option<BTreeMap<String, usize>>,
}

/// What came of a step: the status, where there is one, and the value that is looked at.
pub(crate) struct Found<'f> {
    pub(crate) status: Option<u16>,
    pub(crate) body: &'f Value,
}

/// JSON Schemas by name.
pub(crate) type Schemas = BTreeMap<String, Value>;

impl Expect {
    /// Reads an expectation. One that would hold whatever comes is an error.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        let expect = Self::deserialize(value).map_err(|error| error.to_string())?;
        let says = expect.status.is_some()
            || expect.code.is_some()
            || expect.body.is_some()
            || expect.replies.is_some()
            || !expect.at.is_empty();
        if !says {
            return Err("it expects nothing".into());
        }
        match expect.at.iter().find(|(_, condition)| !condition.says_something()) {
            Some((pointer, _)) => Err(format!("it expects nothing at {pointer:?}")),
            None => Ok(expect),
        }
    }

    /// Everything that is not as expected; nothing if all is well.
    pub(crate) fn findings(&self, found: &Found<'_>, schemas: &Schemas) -> Vec<String> {
        let mut findings = Findings { schemas, all: Vec::new() };
        if let Some(wish) = &self.status {
            let status = found.status.unwrap_or_default();
            if !is_status(wish, status) {
                findings.add("status", &format!("{wish}"), &Value::from(status));
            }
        }
        if let Some(code) = &self.code
            && found.body["code"] != **code
        {
            findings.add("/code", &format!("{code:?}"), &found.body["code"]);
        }
        if let Some(body) = &self.body {
            findings.like("", body, found.body);
        }
        if let Some(wish) = &self.replies {
            let mut replies = BTreeMap::new();
            for reply in found.body.as_array().into_iter().flatten() {
                *replies.entry(reply["status"].to_string()).or_insert(0) += 1;
            }
            if replies != *wish {
                let came = serde_json::to_value(&replies).unwrap_or_default();
                findings.add("replies by status", &format!("{wish:?}"), &came);
            }
        }
        findings.conditions("", &self.at, found.body);
        findings.all.truncate(FINDINGS_MAX);
        findings.all
    }
}

struct Findings<'s> {
    schemas: &'s Schemas,
    all: Vec<String>,
}

impl Findings<'_> {
    fn add(&mut self, place: &str, expected: &str, came: &Value) {
        let place = if place.is_empty() { "the body" } else { place };
        self.all.push(format!("{place}: expected {}, got {}", cut(expected), shown(came)));
    }

    fn conditions(&mut self, base: &str, all: &BTreeMap<String, Condition>, value: &Value) {
        for (pointer, condition) in all {
            let place = format!("{base}{pointer}");
            match value.pointer(pointer) {
                Some(part) if condition.absent == Some(true) => {
                    self.add(&place, "nothing there", part);
                }
                Some(part) => self.condition(&place, condition, part),
                None if condition.absent == Some(true) => {}
                None => self.all.push(format!("{place}: nothing is there")),
            }
        }
    }

    fn condition(&mut self, place: &str, wish: &Condition, value: &Value) {
        let mut expect = |holds: bool, words: &str, operand: &Value| {
            if !holds {
                self.add(place, &format!("{words} {operand}"), value);
            }
        };
        if let Some(other) = &wish.equals {
            expect(value == other, "exactly", other);
        }
        if let Some(other) = &wish.not {
            expect(value != other, "anything but", other);
        }
        if let Some(kind) = &wish.kind {
            expect(kind_of(value) == kind, "a value of type", &kind.as_str().into());
        }
        if let Some(part) = &wish.contains {
            expect(contains(value, part), "something with", part);
        }
        if let Some(part) = &wish.lacks {
            expect(!contains(value, part), "something without", part);
        }
        if let Some(start) = &wish.starts_with {
            let starts = value.as_str().is_some_and(|text| text.starts_with(start));
            expect(starts, "a text that begins with", &start.as_str().into());
        }
        if let Some(words) = &wish.one_of {
            let is_one = words.as_array().is_some_and(|words| words.contains(value));
            expect(is_one, "one of", words);
        }
        if let Some(length) = &wish.length {
            let is = size(value).is_some_and(|size| *length == size);
            expect(is, "a length of", length);
        }
        let compared = |bound: &Value| {
            value.as_f64().zip(bound.as_f64()).and_then(|(value, bound)| value.partial_cmp(&bound))
        };
        if let Some(bound) = &wish.at_least {
            expect(compared(bound).is_some_and(Ordering::is_ge), "at least", bound);
        }
        if let Some(bound) = &wish.at_most {
            expect(compared(bound).is_some_and(Ordering::is_le), "at most", bound);
        }
        if let Some(bound) = &wish.more_than {
            expect(compared(bound).is_some_and(Ordering::is_gt), "more than", bound);
        }
        if let Some(bound) = &wish.less_than {
            expect(compared(bound).is_some_and(Ordering::is_lt), "less than", bound);
        }
        let items = value.as_array();
        if let Some(all) = &wish.has_all {
            let has = items.zip(all.as_array());
            let has = has.is_some_and(|(items, all)| all.iter().all(|one| items.contains(one)));
            expect(has, "a list with all of", all);
        }
        if let Some(all) = &wish.same_items {
            let same = items.zip(all.as_array());
            let same = same.is_some_and(|(items, all)| is_permutation(items, all));
            expect(same, "in any order", all);
        }
        if let Some(pointer) = &wish.unique {
            let unique = items.is_some_and(|items| all_differ(items, pointer));
            expect(unique, "values that all differ at", &pointer.as_str().into());
        }
        self.parts(place, wish, value);
    }

    /// The conditions that look into a value.
    fn parts(&mut self, place: &str, wish: &Condition, value: &Value) {
        if let Some(like) = &wish.like {
            self.like(place, like, value);
        }
        let items = value.as_array();
        if let Some(conditions) = &wish.each {
            match items.filter(|items| !items.is_empty()) {
                // A condition on the items of an empty list would hold whatever happens.
                None => self.add(place, "a list with items", value),
                Some(items) => {
                    for (number, item) in items.iter().enumerate() {
                        self.conditions(&format!("{place}/{number}"), conditions, item);
                    }
                }
            }
        }
        if let Some(conditions) = &wish.some {
            let fits = |item: &&Value| {
                let mut alone = Findings { schemas: self.schemas, all: Vec::new() };
                alone.conditions("", conditions, item);
                alone.all.is_empty()
            };
            if items.is_none_or(|items| items.iter().find(fits).is_none()) {
                self.add(place, &format!("an item that fits {conditions:?}"), value);
            }
        }
        if let Some(name) = &wish.fits {
            self.fits(place, name, value);
        }
    }

    fn fits(&mut self, place: &str, name: &str, value: &Value) {
        let Some(schema) = self.schemas.get(name) else {
            return self.all.push(format!("there is no schema {name}"));
        };
        // A date that is none does not fit, either.
        match jsonschema::options().should_validate_formats(true).build(schema) {
            Err(error) => self.all.push(format!("{name} is no schema: {error}")),
            Ok(validator) => {
                for error in validator.iter_errors(value) {
                    let place = format!("{place}{}", error.instance_path());
                    self.all.push(cut(&format!("{place}: does not fit {name}: {error}")));
                }
            }
        }
    }

    /// Compares with a part of what is expected; lists are compared item by item.
    fn like(&mut self, place: &str, wish: &Value, value: &Value) {
        match (wish, value) {
            (Value::String(any), _) if any == ANY => {}
            (Value::Object(wish), Value::Object(members)) => {
                for (name, part) in wish {
                    let place = format!("{place}/{name}");
                    match members.get(name) {
                        Some(member) => self.like(&place, part, member),
                        None => self.all.push(format!("{place}: nothing is there")),
                    }
                }
            }
            (Value::Array(wish), Value::Array(items)) if wish.len() == items.len() => {
                for (number, (part, item)) in wish.iter().zip(items).enumerate() {
                    self.like(&format!("{place}/{number}"), part, item);
                }
            }
            _ if wish == value => {}
            _ => self.add(place, &wish.to_string(), value),
        }
    }
}

/// A text in a text, an item like this in a list, or a member of this name.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::String(text), Value::String(part)) => text.contains(&**part),
        (Value::Object(members), Value::String(name)) => members.contains_key(name),
        (Value::Array(items), part) => items.iter().any(|item| is_like(part, item)),
        _ => false,
    }
}

fn is_like(wish: &Value, value: &Value) -> bool {
    let mut findings = Findings { schemas: &Schemas::new(), all: Vec::new() };
    findings.like("", wish, value);
    findings.all.is_empty()
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;
