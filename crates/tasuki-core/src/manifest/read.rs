// SPDX-License-Identifier: Apache-2.0
//! Reads a manifest that a stranger sent. Deriving would stop at the first fault and say where it
//! is by line; here every member is read by itself, so that one reply names all that is wrong.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::problem::{self, Problem, Problems};
use super::{
    CAPABILITIES_MAX, CapabilityEntry, DESCRIPTION_BYTES_MAX, Delivery, FALLBACKS_MAX, Limits,
    MAJORS_MAX, MANIFEST_BYTES_MAX, Manifest, ROLE_BYTES_MAX, Reserves, Seconds, TAG_BYTES_MAX,
    TAGS_MAX, WORD_BYTES_MAX, bounds, current_major, schema, url,
};
use crate::canonical::{Body, Object};
use crate::ids::AgentId;
use crate::terms::ATTEMPTS_MAX;

pub(super) fn manifest(value: Value) -> Result<Manifest, Vec<Problem>> {
    problem::check_depth(&value).map_err(|problem| vec![problem])?;
    let mut problems = Problems::default();
    check_size(&Body::of(&value), &mut problems);
    let Some(mut members) = Members::of(value, String::new(), &mut problems) else {
        return Err(problems.or(()).expect_err("what is no object was reported"));
    };
    let agent_id: Option<AgentId> = members.needed_name("agent_id");
    let context_window = members.number("context_window", 1..=u32::MAX);
    let read = Manifest {
        // Stands in until the faults are looked at, so that those of the other members are found.
        agent_id: agent_id.clone().unwrap_or_else(nobody),
        capabilities: members.capabilities(),
        discovery_endpoint: members.url("discovery_endpoint"),
        role: members.text("role", ROLE_BYTES_MAX),
        version: members.text("version", WORD_BYTES_MAX),
        context_window,
        tokenizer: members.text("tokenizer", WORD_BYTES_MAX),
        reserves: members.reserves(context_window),
        accepted_majors: members.accepted_majors(),
        delivery: members.delivery(),
        concurrency: members.number("concurrency", 1..=u32::MAX),
        fallbacks: members.fallbacks(agent_id.as_ref()),
        tags: members.tags(),
        description: members.description(),
        metadata: members.object("metadata"),
        more: Object(members.left),
    };
    if problems.is_empty() {
        // A shorthand is longer and deeper once it is written out.
        let written = serde_json::to_value(&read).expect("a manifest has string keys only");
        problem::check_depth(&written).map_err(|problem| vec![problem])?;
        check_size(&Body::of(&written), &mut problems);
    }
    problems.or(read)
}

fn nobody() -> AgentId {
    "nobody".parse().expect("it is a name")
}

fn check_size(body: &Body, problems: &mut Problems) {
    if body.text().len() > MANIFEST_BYTES_MAX {
        problems.add("", format!("larger than {MANIFEST_BYTES_MAX} bytes"));
    }
}

/// An object that is being read: what is asked for is taken out, what is left is not known here.
/// A member that is `null` counts as left out.
struct Members<'a> {
    left: Map<String, Value>,
    path: String,
    problems: &'a mut Problems,
}

impl<'a> Members<'a> {
    fn of(value: Value, path: String, problems: &'a mut Problems) -> Option<Self> {
        match value {
            Value::Object(left) => Some(Self { left, path, problems }),
            _ => {
                problems.add(path, "expected an object");
                None
            }
        }
    }

    fn at(&self, name: &str) -> String {
        problem::member(&self.path, name)
    }

    fn refuse(&mut self, name: &str, problem: impl Into<String>) {
        let path = self.at(name);
        self.problems.add(path, problem);
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    fn needed_name<T: FromStr<Err: fmt::Display>>(&mut self, name: &str) -> Option<T> {
        let path = self.at(name);
        match self.take(name) {
            Some(value) => read_name(&value, path, self.problems),
            None => {
                self.problems.add(path, "missing");
                None
            }
        }
    }

    fn text(&mut self, name: &str, bytes_max: usize) -> Option<String> {
        let path = self.at(name);
        let value = self.take(name)?;
        read_text(value, bytes_max, path, self.problems)
    }

    /// Free text of several lines.
    fn description(&mut self) -> Option<String> {
        match self.take("description")? {
            Value::String(text) if text.len() <= DESCRIPTION_BYTES_MAX => Some(text),
            _ => {
                let problem = format!("expected a string of at most {DESCRIPTION_BYTES_MAX} bytes");
                self.refuse("description", problem);
                None
            }
        }
    }

    fn url(&mut self, name: &str) -> Option<String> {
        let value = self.take(name)?;
        match value.as_str().map_or(Err("expected a string"), url::check) {
            Ok(url) => Some(url.to_owned()),
            Err(problem) => {
                self.refuse(name, problem);
                None
            }
        }
    }

    fn number(&mut self, name: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let path = self.at(name);
        let value = self.take(name)?;
        read_number(&value, range, path, self.problems)
    }

    fn seconds(&mut self, name: &str) -> Option<Seconds> {
        let value = self.take(name)?;
        let seconds = value.as_f64().ok_or("expected a number".to_owned());
        let seconds = seconds.and_then(|s| Seconds::try_from(s).map_err(|e| e.to_string()));
        seconds.map_err(|problem| self.refuse(name, problem)).ok()
    }

    /// The items of an array with their paths; those beyond `max` are not looked at.
    fn items(&mut self, name: &str, max: usize) -> Vec<(String, Value)> {
        let path = self.at(name);
        let items = match self.take(name) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.problems.add(path, "expected an array");
                return Vec::new();
            }
        };
        if items.len() > max {
            self.problems.add(&path, format!("{} items, expected at most {max}", items.len()));
        }
        let items = items.into_iter().take(max).enumerate();
        items.map(|(index, item)| (problem::item(&path, index), item)).collect()
    }

    fn object(&mut self, name: &str) -> Object {
        match self.take(name) {
            None => Object::default(),
            Some(Value::Object(members)) => Object(members),
            Some(_) => {
                self.refuse(name, "expected an object");
                Object::default()
            }
        }
    }

    /// A part of which every member must be known.
    fn part<T>(&mut self, name: &str, read: impl FnOnce(&mut Members<'_>) -> T) -> Option<T> {
        let path = self.at(name);
        let value = self.take(name)?;
        let mut part = Members::of(value, path, self.problems)?;
        let got = read(&mut part);
        let unknown = part.left.iter().filter(|(_, value)| !value.is_null());
        let unknown: Vec<String> = unknown.map(|(name, _)| part.at(name)).collect();
        for path in unknown {
            self.problems.add(path, "not known here");
        }
        Some(got)
    }

    fn tags(&mut self) -> BTreeSet<String> {
        let items = self.items("tags", TAGS_MAX);
        let tags = items
            .into_iter()
            .filter_map(|(path, tag)| read_text(tag, TAG_BYTES_MAX, path, self.problems));
        tags.collect()
    }

    fn accepted_majors(&mut self) -> Vec<u32> {
        let given = self.left.get("accepted_majors").is_some_and(|majors| !majors.is_null());
        if !given {
            return current_major();
        }
        if self.left.get("accepted_majors") == Some(&Value::Array(Vec::new())) {
            self.refuse("accepted_majors", "expected at least one major");
        }
        let mut majors = Vec::new();
        for (path, value) in self.items("accepted_majors", MAJORS_MAX) {
            match read_number(&value, 1..=u32::MAX, path.clone(), self.problems) {
                Some(major) if majors.contains(&major) => self.problems.add(path, "named twice"),
                Some(major) => majors.push(major),
                None => {}
            }
        }
        majors
    }

    fn fallbacks(&mut self, own: Option<&AgentId>) -> Vec<AgentId> {
        let mut fallbacks = Vec::new();
        for (path, value) in self.items("fallbacks", FALLBACKS_MAX) {
            match read_name(&value, path.clone(), self.problems) {
                Some(agent) if own == Some(&agent) => {
                    self.problems.add(path, "an agent cannot be its own fallback");
                }
                Some(agent) if fallbacks.contains(&agent) => self.problems.add(path, "named twice"),
                Some(agent) => fallbacks.push(agent),
                None => {}
            }
        }
        fallbacks
    }

    fn reserves(&mut self, context_window: Option<u32>) -> Option<Reserves> {
        let reserves = self.part("reserves", |part| Reserves {
            system_prompt: part.number("system_prompt", 0..=u32::MAX).unwrap_or(0),
            work: part.number("work", 0..=u32::MAX).unwrap_or(0),
        })?;
        let reserved = u64::from(reserves.system_prompt) + u64::from(reserves.work);
        if context_window.is_some_and(|window| reserved >= window.into()) {
            self.refuse("reserves", "leave nothing of the context window");
        }
        Some(reserves)
    }

    fn delivery(&mut self) -> Delivery {
        let delivery = self.part("delivery", |part| {
            let mode = part.take("mode");
            let mode = mode.as_ref().and_then(Value::as_str);
            let needs_url = matches!(mode, Some("webhook" | "a2a"));
            if needs_url && part.left.get("url").is_none_or(Value::is_null) {
                part.refuse("url", "missing");
            }
            // Without a known mode nobody can say whether there should be a URL.
            let url = if mode == Some("pull") { None } else { part.url("url") };
            match mode {
                Some("pull") => Delivery::Pull,
                Some("webhook") => Delivery::Webhook { url: url.unwrap_or_default() },
                Some("a2a") => Delivery::A2a { url: url.unwrap_or_default() },
                _ => {
                    part.refuse("mode", "expected one of pull, webhook, a2a");
                    Delivery::Pull
                }
            }
        });
        delivery.unwrap_or_default()
    }

    fn capabilities(&mut self) -> Vec<CapabilityEntry> {
        let mut entries: Vec<CapabilityEntry> = Vec::new();
        for (path, value) in self.items("capabilities", CAPABILITIES_MAX) {
            let Some(mut members) = Members::of(value, path, self.problems) else { continue };
            let Some(entry) = members.capability() else { continue };
            if entries.iter().any(|before| before.name == entry.name) {
                members.refuse("name", format!("{} is described twice", entry.name));
            }
            entries.push(CapabilityEntry { more: Object(members.left), ..entry });
        }
        entries
    }

    /// Everything but the members that are not known; `None` if it has no name.
    fn capability(&mut self) -> Option<CapabilityEntry> {
        let name = self.needed_name("name");
        let description = self.description();
        let input_schema = self.schema("input_schema");
        let output_schema = self.schema("output_schema");
        let timeout_seconds = self.seconds("timeout_seconds");
        let reliability_sla = self.share("reliability_sla");
        let version = self.text("version", WORD_BYTES_MAX);
        let tags = self.tags();
        let limits = self.limits(timeout_seconds);
        Some(CapabilityEntry {
            name: name?,
            description,
            input_schema,
            output_schema,
            timeout_seconds,
            reliability_sla,
            version,
            tags,
            limits,
            more: Object::default(),
        })
    }

    fn share(&mut self, name: &str) -> Option<f64> {
        let value = self.take(name)?;
        let share = value.as_f64().filter(|share| *share > 0.0 && *share <= 1.0);
        if share.is_none() {
            self.refuse(name, "expected a number above 0 and at most 1");
        }
        share
    }

    fn schema(&mut self, name: &str) -> Option<Value> {
        let path = self.at(name);
        let value = self.take(name)?;
        match schema::normalise(value) {
            Ok(schema) => {
                if let Err(passed) = bounds::check(&schema) {
                    self.problems.add(path, passed.to_string());
                }
                Some(schema)
            }
            Err(problems) => {
                self.problems.add_below(&path, problems);
                None
            }
        }
    }

    fn limits(&mut self, timeout: Option<Seconds>) -> Option<Limits> {
        self.part("limits", |part| {
            let limits = Limits {
                timeout_seconds_min: part.seconds("timeout_seconds_min"),
                timeout_seconds_max: part.seconds("timeout_seconds_max"),
                attempts_max: part.number("attempts_max", 1..=ATTEMPTS_MAX),
                budget_tokens_max: part.number("budget_tokens_max", 1..=u32::MAX),
            };
            let above = |one: Option<Seconds>, other: Option<Seconds>| {
                one.zip(other).is_some_and(|(one, other)| one > other)
            };
            let (min, max) = (limits.timeout_seconds_min, limits.timeout_seconds_max);
            if above(min, max) {
                part.refuse("timeout_seconds_min", "above timeout_seconds_max");
            } else if above(min, timeout) {
                part.refuse("timeout_seconds_min", "above timeout_seconds");
            } else if above(timeout, max) {
                part.refuse("timeout_seconds_max", "below timeout_seconds");
            }
            limits
        })
    }
}

fn read_name<T>(value: &Value, path: String, problems: &mut Problems) -> Option<T>
where
    T: FromStr<Err: fmt::Display>,
{
    let Some(text) = value.as_str() else {
        problems.add(path, "expected a string");
        return None;
    };
    text.parse().map_err(|wrong: T::Err| problems.add(path, wrong.to_string())).ok()
}

/// A short text of one line.
fn read_text(
    value: Value,
    bytes_max: usize,
    path: String,
    problems: &mut Problems,
) -> Option<String> {
    match value {
        Value::String(text)
            if (1..=bytes_max).contains(&text.len()) && !text.chars().any(char::is_control) =>
        {
            Some(text)
        }
        _ => {
            let problem =
                format!("expected a string of 1 to {bytes_max} bytes without control characters");
            problems.add(path, problem);
            None
        }
    }
}

fn read_number(
    value: &Value,
    range: RangeInclusive<u32>,
    path: String,
    problems: &mut Problems,
) -> Option<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| range.contains(number));
    if number.is_none() {
        let (min, max) = range.into_inner();
        problems.add(path, format!("expected a whole number from {min} to {max}"));
    }
    number
}
