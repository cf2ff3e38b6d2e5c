// SPDX-License-Identifier: Apache-2.0
//! What is known about a value from the schemas that it satisfies. Knowledge that is not used is
//! only knowledge lost: whatever is not understood here makes the value less known, never wrongly
//! known.

use std::collections::BTreeSet;
use std::ptr;

use serde_json::{Map, Value};

use super::measure::{Edge, Measure, Side, count, same};
use super::types::Types;

/// How many alternatives of one value are told apart.
const CASES_MAX: usize = 512;
/// How many values of one `enum` are looked at one by one; of more, only the types are known.
const VALUES_MAX: usize = 256;

/// One thing that is known about a value.
#[derive(Clone, Copy)]
pub(super) enum Known<'a> {
    /// It satisfies this schema.
    Schema(&'a Value),
    /// It is this.
    Exactly(&'a Value),
}

impl Known<'_> {
    /// Whether this is the very same knowledge, by place and not by content.
    pub(super) fn is(self, other: Known<'_>) -> bool {
        match (self, other) {
            (Self::Schema(one), Known::Schema(other))
            | (Self::Exactly(one), Known::Exactly(other)) => ptr::eq(one, other),
            (Self::Schema(_), Known::Exactly(_)) | (Self::Exactly(_), Known::Schema(_)) => false,
        }
    }
}

/// A schema as a whole, in which references are looked up.
pub(super) struct Document<'a> {
    pub(super) root: &'a Value,
    /// A part has an `$id` of its own: what references mean then depends on where they stand.
    rebased: bool,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let inner = match root {
            Value::Object(members) => members.values().any(|value| mentions(value, "$id")),
            _ => false,
        };
        Self { root, rebased: inner }
    }

    /// The target of a reference that is a JSON pointer (`#`, `#/$defs/a`); anchors are not known.
    pub(super) fn resolve(&self, reference: &Value) -> Option<&'a Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        if self.rebased || pointer.contains('%') {
            return None;
        }
        self.root.pointer(pointer)
    }
}

/// Whether a name occurs as a key anywhere in a value.
pub(super) fn mentions(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(members) => {
            members.contains_key(name) || members.values().any(|inner| mentions(inner, name))
        }
        Value::Array(items) => items.iter().any(|inner| mentions(inner, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// One alternative of a value, with everything that holds in it at once.
#[derive(Clone)]
pub(super) struct Case<'a> {
    pub(super) types: Types,
    exactly: Option<&'a Value>,
    schemas: Vec<&'a Map<String, Value>>,
    /// Whether a property that no schema names is taken not to come.
    only_named: bool,
}

/// What is still to be taken into a case.
#[derive(Clone, Copy)]
enum Choice<'a> {
    Schemas(&'a [Value]),
    Values(&'a [Value]),
}

/// Tells the alternatives of a value apart: `anyOf`, `oneOf`, and the values of an `enum`. Those
/// that contradict themselves are left out. `None` if there are too many, or too many steps to it.
pub(super) fn cases<'a>(
    known: &[Known<'a>],
    document: &Document<'a>,
    only_named: bool,
    steps_left: &mut u32,
) -> Option<Vec<Case<'a>>> {
    let first = Case { types: Types::ANY, exactly: None, schemas: Vec::new(), only_named };
    let mut open = vec![(first, known.to_vec(), Vec::new())];
    let mut done = Vec::new();
    while let Some((mut case, pending, mut choices)) = open.pop() {
        if !case.learn(pending, document, &mut choices, steps_left)? {
            continue;
        }
        let options: Vec<Known<'a>> = match choices.pop() {
            None => {
                done.push(case);
                continue;
            }
            Some(Choice::Schemas(schemas)) => schemas.iter().map(Known::Schema).collect(),
            Some(Choice::Values(values)) => values.iter().map(Known::Exactly).collect(),
        };
        if open.len() + done.len() + options.len() > CASES_MAX {
            return None;
        }
        let branch = |option| (case.clone(), vec![option], choices.clone());
        open.extend(options.into_iter().rev().map(branch));
    }
    Some(done)
}

impl<'a> Case<'a> {
    /// Takes in what holds besides; `false` if it cannot all hold, `None` if it takes too long.
    fn learn(
        &mut self,
        mut pending: Vec<Known<'a>>,
        document: &Document<'a>,
        choices: &mut Vec<Choice<'a>>,
        steps_left: &mut u32,
    ) -> Option<bool> {
        while let Some(known) = pending.pop() {
            *steps_left = steps_left.checked_sub(1)?;
            match known {
                Known::Exactly(value) => {
                    if self.exactly.is_some_and(|before| !same(before, value)) {
                        return Some(false);
                    }
                    self.exactly = Some(value);
                    self.types = self.types.and(Types::of(value));
                }
                Known::Schema(Value::Bool(false)) => return Some(false),
                Known::Schema(Value::Object(schema)) => {
                    // Known already, as in a schema that refers to itself.
                    if self.schemas.iter().any(|before| ptr::eq(*before, schema)) {
                        continue;
                    }
                    self.schemas.push(schema);
                    self.types = self.types.and(Types::admitted(schema));
                    let target = schema.get("$ref").and_then(|to| document.resolve(to));
                    pending.extend(target.map(Known::Schema));
                    pending.extend(schema.get("const").map(Known::Exactly));
                    pending.extend(list(schema, "allOf").iter().map(Known::Schema));
                    for keyword in ["anyOf", "oneOf"] {
                        if schema.get(keyword).is_some_and(Value::is_array) {
                            choices.push(Choice::Schemas(list(schema, keyword)));
                        }
                    }
                    if let Some(Value::Array(values)) = schema.get("enum") {
                        if values.len() <= VALUES_MAX {
                            choices.push(Choice::Values(values));
                        }
                        let types = values.iter().map(Types::of).reduce(Types::or);
                        self.types = self.types.and(types.unwrap_or(Types::NONE));
                    }
                }
                // `true`, and what is no schema at all.
                Known::Schema(_) => {}
            }
            if self.types.is_empty() {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The same case, if the value has one of these types.
    pub(super) fn narrowed(&self, types: Types) -> Self {
        Self { types: self.types.and(types), ..self.clone() }
    }

    /// The value itself, where there is only one.
    pub(super) fn exactly(&self) -> Option<&'a Value> {
        static NULL: Value = Value::Null;
        self.exactly.or((self.types == Types::NULL).then_some(&NULL))
    }

    /// How much there is to look through.
    pub(super) fn weight(&self) -> usize {
        self.schemas.len()
    }

    /// Whether one schema says all of this, word for word.
    pub(super) fn says(&self, said: &[(&str, Option<&Value>)]) -> bool {
        let says =
            |schema: &&Map<_, _>| said.iter().all(|(name, value)| schema.get(*name) == *value);
        self.schemas.iter().any(says)
    }

    pub(super) fn numbers(&self, keyword: &str) -> impl Iterator<Item = f64> {
        self.schemas.iter().filter_map(move |schema| schema.get(keyword)?.as_f64())
    }

    /// The tightest bound of a number on one side.
    pub(super) fn edge(&self, side: Side) -> Option<Edge> {
        let exact = self.exactly.and_then(Value::as_f64).map(|at| Edge::new(side, at, false));
        let closed = self.numbers(side.closed()).map(|at| Edge::new(side, at, false));
        let open = self.numbers(side.open()).map(|at| Edge::new(side, at, true));
        let edge = exact.into_iter().chain(closed).chain(open);
        let edge = edge.reduce(|one, other| if one.implies(other) { one } else { other })?;
        let broken = self.types.meets(Types::FRACTION);
        Some(if broken { edge } else { edge.for_integers() })
    }

    /// The smallest and the largest size that a value can have.
    pub(super) fn size(&self, measure: Measure) -> (u64, Option<u64>) {
        let (min, max) = measure.keywords();
        let counts =
            |keyword| self.schemas.iter().filter_map(move |schema| count(schema.get(keyword)?));
        let exact = || self.exactly.and_then(|value| measure.of(value));
        let mut min = counts(min).chain(exact()).max().unwrap_or(0);
        let mut max = counts(max).chain(exact()).min();
        if measure == Measure::Members {
            min = min.max(self.required().len() as u64);
            if self.others().is_none() {
                let names = self.names().len() as u64;
                max = Some(max.map_or(names, |max| max.min(names)));
            }
        }
        (min, max)
    }

    /// The properties that are always there.
    pub(super) fn required(&self) -> BTreeSet<&'a str> {
        let given = self.exactly.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let required = self.schemas.iter().flat_map(|schema| list(schema, "required"));
        given.map(String::as_str).chain(required.filter_map(Value::as_str)).collect()
    }

    /// The properties that are named.
    pub(super) fn names(&self) -> BTreeSet<&'a str> {
        if let Some(Value::Object(members)) = self.exactly {
            return members.keys().map(String::as_str).collect();
        }
        let named = self.schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
        named.flat_map(Map::keys).map(String::as_str).collect()
    }

    /// What is known of a property; `None` if it never comes.
    pub(super) fn property(&self, name: &str) -> Option<Vec<Known<'a>>> {
        let mut known = Vec::new();
        let named = |schema: &'a Map<String, Value>| schema.get("properties")?.get(name);
        if let Some(Value::Object(members)) = self.exactly {
            known.push(Known::Exactly(members.get(name)?));
        } else if !self.schemas.iter().any(|schema| named(schema).is_some()) {
            return self.others();
        }
        for schema in &self.schemas {
            match named(schema) {
                Some(property) => known.push(Known::Schema(property)),
                None => match additional(schema) {
                    Additional::Closed => return None,
                    Additional::Given(given) => known.push(Known::Schema(given)),
                    Additional::Patterns | Additional::Open => {}
                },
            }
        }
        Some(known)
    }

    /// What is known of properties that are not named; `None` if there are none.
    pub(super) fn others(&self) -> Option<Vec<Known<'a>>> {
        if self.exactly.is_some_and(Value::is_object) {
            return None;
        }
        let mut known = Vec::new();
        let mut announced = false;
        for schema in &self.schemas {
            match additional(schema) {
                Additional::Closed => return None,
                Additional::Given(given) => known.push(Known::Schema(given)),
                Additional::Patterns => announced = true,
                Additional::Open => {}
            }
        }
        (!self.only_named || announced || !known.is_empty()).then_some(known)
    }

    /// How many items are described one by one.
    pub(super) fn prefix_len(&self) -> usize {
        if let Some(Value::Array(items)) = self.exactly {
            return items.len();
        }
        self.schemas.iter().map(|schema| list(schema, "prefixItems").len()).max().unwrap_or(0)
    }

    /// What is known of the item at a place; `None` if there is none.
    pub(super) fn item(&self, index: usize) -> Option<Vec<Known<'a>>> {
        let exact = match self.exactly {
            Some(Value::Array(items)) => Some(items.get(index)?),
            _ => None,
        };
        if self.size(Measure::Items).1.is_some_and(|max| index as u64 >= max) {
            return None;
        }
        let about = |schema: &&'a Map<String, Value>| {
            let own = list(schema, "prefixItems").get(index);
            // A list as `items` is from an older draft, in which it means something else.
            own.or_else(|| schema.get("items").filter(|items| !items.is_array()))
        };
        let known = self.schemas.iter().filter_map(about).map(Known::Schema);
        Some(exact.map(Known::Exactly).into_iter().chain(known).collect())
    }
}

/// What a schema says about properties that it does not name.
enum Additional<'a> {
    Open,
    Closed,
    Given(&'a Value),
    /// Which names the patterns match is not judged.
    Patterns,
}

fn additional(schema: &Map<String, Value>) -> Additional<'_> {
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    match schema.get("additionalProperties") {
        _ if patterns.is_some_and(|patterns| !patterns.is_empty()) => Additional::Patterns,
        Some(Value::Bool(false)) => Additional::Closed,
        Some(given @ Value::Object(_)) => Additional::Given(given),
        _ => Additional::Open,
    }
}

fn list<'a>(schema: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
