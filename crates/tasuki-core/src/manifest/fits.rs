// SPDX-License-Identifier: Apache-2.0
//! Whether what one agent gives is what another takes: will every value that satisfies the
//! producer's schema satisfy the consumer's? Judged from the schemas alone, and on the safe side:
//! what cannot be judged is a mismatch.
//!
//! Judged are types, `enum` and `const`, numeric bounds, lengths and sizes, `required`,
//! `properties`, `additionalProperties`, `items`, `prefixItems`, `uniqueItems`, `allOf`, `anyOf`,
//! and `$ref` by JSON pointer, recursive ones too. A consumer's `oneOf` is read as `anyOf`: that no
//! second branch matches is not judged. The other keywords (`pattern`, `format`, `not`, `if`, …)
//! must stand in the producer's schema word for word. Both schemas are as
//! [`schema::normalise`](super::schema::normalise) gives them.

use std::fmt;
use std::ptr;
use std::slice;

use serde_json::{Map, Value};

use super::facts::{self, Case, Document, Known};
use super::measure::{Edge, Measure, Side, count, same};
use super::problem::{cut, item, member};
use super::types::Types;

/// How many mismatches are reported.
pub const MISMATCHES_MAX: usize = 100;
/// How deep parts are followed, references and alternatives included: bounds the stack.
const DEPTH_MAX: usize = 128;
/// How much work one comparison may take; alternatives within alternatives multiply.
const STEPS_MAX: u32 = 50_000;
/// How many lookups by name count as one step.
const LIGHT: usize = 16;
/// Up to how many items a given list is searched for one that occurs twice.
const UNIQUE_ITEMS_MAX: usize = 256;

/// Where in the value the schemas part (`sources[].title`; the empty path is the whole), and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    pub path: String,
    pub problem: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// Whether every value of `producer` is one of `consumer`. A producer that is open to further
/// properties may send any: it fits neither a closed consumer nor one that has a demand on a
/// property which the producer does not name.
pub fn fits(producer: &Value, consumer: &Value) -> Result<(), Vec<Mismatch>> {
    Judge::new(producer, consumer, false).judge()
}

/// As [`fits`], but takes the producer at its word: unless it says of what kind further properties
/// are, it sends only those that it names. This is what people mean who leave a schema open, and
/// without it no shorthand would fit a consumer with an optional member of its own.
pub fn fits_as_named(producer: &Value, consumer: &Value) -> Result<(), Vec<Mismatch>> {
    Judge::new(producer, consumer, true).judge()
}

struct Judge<'a> {
    producer: Document<'a>,
    consumer: Document<'a>,
    only_named: bool,
    /// What is being judged, from the whole to the part. Met again further inside, it holds if
    /// the rest does: this is how recursive schemas come to an end.
    under_way: Vec<(Vec<Known<'a>>, &'a Value)>,
    depth: usize,
    steps_left: u32,
    /// Counted apart from what is kept: a mismatch that is not kept is one nevertheless.
    failures: u64,
    found: Vec<Mismatch>,
}

impl<'a> Judge<'a> {
    fn new(producer: &'a Value, consumer: &'a Value, only_named: bool) -> Self {
        Self {
            producer: Document::new(producer),
            consumer: Document::new(consumer),
            only_named,
            under_way: Vec::new(),
            depth: 0,
            steps_left: STEPS_MAX,
            failures: 0,
            found: Vec::new(),
        }
    }

    fn judge(mut self) -> Result<(), Vec<Mismatch>> {
        let (producer, consumer) = (self.producer.root, self.consumer.root);
        if producer != consumer {
            self.value(vec![Known::Schema(producer)], consumer, "");
        }
        if self.failures == 0 { Ok(()) } else { Err(self.found) }
    }

    fn fail(&mut self, path: &str, problem: impl Into<String>) {
        self.failures += 1;
        let mismatch = Mismatch { path: path.to_owned(), problem: problem.into() };
        if self.found.len() < MISMATCHES_MAX && !self.found.contains(&mismatch) {
            self.found.push(mismatch);
        }
    }

    /// Whether it goes well; leaves no trace if it does not.
    fn attempt(&mut self, judge: impl FnOnce(&mut Self)) -> bool {
        let (failures, found) = (self.failures, self.found.len());
        judge(self);
        let well = self.failures == failures;
        self.failures = failures;
        self.found.truncate(found);
        well
    }

    /// Whether there is so much work left to spend.
    fn spend(&mut self, steps: usize, path: &str) -> bool {
        let left = u32::try_from(steps).ok().and_then(|steps| self.steps_left.checked_sub(steps));
        self.steps_left = left.unwrap_or(0);
        if left.is_none() {
            self.fail(path, "the schemas are too large to be compared");
        }
        left.is_some()
    }

    /// A value of which this much is known, against what is wanted of it.
    fn value(&mut self, known: Vec<Known<'a>>, wanted: &'a Value, path: &str) {
        if !self.spend(1, path) {
            return;
        }
        let identical = |known: &Known<'a>| match known {
            Known::Schema(schema) => is_identical(schema, wanted),
            Known::Exactly(_) => false,
        };
        let under_way = self.under_way.iter().any(|(before, wanted_before)| {
            ptr::eq(*wanted_before, wanted)
                && before.len() == known.len()
                && before.iter().zip(&known).all(|(one, other)| one.is(*other))
        });
        if under_way || known.iter().any(identical) {
            return;
        }
        let left = &mut self.steps_left;
        let Some(cases) = facts::cases(&known, &self.producer, self.only_named, left) else {
            return self.fail(path, "too many alternatives to be compared");
        };
        self.under_way.push((known, wanted));
        for case in &cases {
            self.case(case, wanted, path);
        }
        self.under_way.pop();
    }

    fn case(&mut self, case: &Case<'a>, wanted: &'a Value, path: &str) {
        if !self.spend(1 + case.weight() / LIGHT, path) {
            return;
        }
        if self.depth == DEPTH_MAX {
            return self.fail(path, "nested too deep to be compared, or refers to itself");
        }
        self.depth += 1;
        match wanted {
            Value::Bool(true) => {}
            Value::Object(schema) => {
                for (keyword, demand) in schema {
                    self.keyword(case, schema, keyword, demand, path);
                }
            }
            _ => self.fail(path, "may be there and is not accepted"),
        }
        self.depth -= 1;
    }

    fn keyword(
        &mut self,
        case: &Case<'a>,
        schema: &'a Map<String, Value>,
        keyword: &str,
        demand: &'a Value,
        path: &str,
    ) {
        let may_be = |types: Types| case.types.meets(types);
        match keyword {
            "$ref" => self.reference(case, demand, path),
            "allOf" => {
                for part in demand.as_array().into_iter().flatten() {
                    self.case(case, part, path);
                }
            }
            "anyOf" | "oneOf" => self.alternatives(case, demand, path),
            "type" => {
                let accepted = Types::admitted(schema);
                if !case.types.is_within(accepted) {
                    self.fail(path, format!("may be {}, expected {accepted}", case.types));
                }
            }
            "const" => self.one_of(case, slice::from_ref(demand), path),
            "enum" if case.says(&[("enum", Some(demand))]) => {}
            "enum" => self.one_of(case, demand.as_array().map_or(&[], Vec::as_slice), path),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
                if may_be(Types::NUMBER) =>
            {
                self.bound(case, keyword, demand, path);
            }
            "multipleOf" if may_be(Types::NUMBER) => self.multiple(case, demand, path),
            "minLength" | "maxLength" if may_be(Types::STRING) => {
                self.size(case, Measure::Text, keyword, demand, path);
            }
            "minItems" | "maxItems" if may_be(Types::ARRAY) => {
                self.size(case, Measure::Items, keyword, demand, path);
            }
            "minProperties" | "maxProperties" if may_be(Types::OBJECT) => {
                self.size(case, Measure::Members, keyword, demand, path);
            }
            "uniqueItems" if may_be(Types::ARRAY) && demand == true => self.unique(case, path),
            "items" | "prefixItems" if may_be(Types::ARRAY) => {
                self.items(case, schema, keyword, path);
            }
            "required" if may_be(Types::OBJECT) => self.required(case, demand, path),
            "properties" if may_be(Types::OBJECT) => self.properties(case, demand, path),
            "additionalProperties" if may_be(Types::OBJECT) => {
                self.additional(case, schema, demand, path);
            }
            _ => self.unjudged(case, schema, keyword, path),
        }
    }

    fn reference(&mut self, case: &Case<'a>, reference: &'a Value, path: &str) {
        match self.consumer.resolve(reference) {
            Some(target) => self.case(case, target, path),
            None => self.fail(path, format!("cannot follow the reference {}", shown(reference))),
        }
    }

    fn alternatives(&mut self, case: &Case<'a>, branches: &'a Value, path: &str) {
        let branches = branches.as_array().map_or(&[][..], Vec::as_slice);
        if let [branch] = branches {
            return self.case(case, branch, path);
        }
        // Each type by itself, for `{"type": ["string", "null"]}` fits no branch as a whole.
        for types in case.types.each() {
            let case = case.narrowed(types);
            let mut branches_left = branches.iter();
            if !branches_left.any(|branch| self.attempt(|judge| judge.case(&case, branch, path))) {
                let all = branches.len();
                self.fail(path, format!("may be {types} and fits none of {all} alternatives"));
            }
        }
    }

    fn one_of(&mut self, case: &Case<'a>, values: &[Value], path: &str) {
        if !self.spend(values.len() / LIGHT, path) {
            return;
        }
        match case.exactly() {
            Some(value) if values.iter().any(|one| same(one, value)) => {}
            Some(value) => {
                self.fail(path, format!("may be {}, which is not accepted", shown(value)));
            }
            None => self.fail(path, "may be another value than those accepted"),
        }
    }

    fn bound(&mut self, case: &Case<'a>, keyword: &str, demand: &Value, path: &str) {
        let side = if keyword.ends_with("inimum") { Side::Below } else { Side::Above };
        let wanted =
            demand.as_f64().map(|at| Edge::new(side, at, keyword.starts_with("exclusive")));
        let known = case.edge(side);
        if !known.zip(wanted).is_some_and(|(known, wanted)| known.implies(wanted)) {
            self.fail(path, format!("may lie beyond {keyword} {demand}"));
        }
    }

    fn multiple(&mut self, case: &Case<'a>, demand: &Value, path: &str) {
        // Remainders are exact for whole numbers only.
        let whole = |number: &f64| number.fract() == 0.0;
        let divides = |of: f64, number: f64| {
            of == number || (whole(&of) && whole(&number) && of != 0.0 && number % of == 0.0)
        };
        let exact = case.exactly().and_then(Value::as_f64);
        let integer = (!case.types.meets(Types::FRACTION)).then_some(1.0);
        let mut known = case.numbers("multipleOf").chain(exact).chain(integer);
        let wanted = demand.as_f64();
        if !wanted.is_some_and(|wanted| known.any(|known| divides(wanted, known))) {
            self.fail(path, format!("may be no multiple of {demand}"));
        }
    }

    fn size(
        &mut self,
        case: &Case<'a>,
        measure: Measure,
        keyword: &str,
        demand: &Value,
        path: &str,
    ) {
        let (min, max) = case.size(measure);
        let names = if measure == Measure::Members { case.names().len() } else { 0 };
        if !self.spend(names / LIGHT, path) {
            return;
        }
        let fits = count(demand).is_some_and(|wanted| {
            if keyword.starts_with("min") {
                min >= wanted
            } else {
                max.is_some_and(|max| max <= wanted)
            }
        });
        if !fits {
            self.fail(path, format!("may lie beyond {keyword} {demand}"));
        }
    }

    fn unique(&mut self, case: &Case<'a>, path: &str) {
        let differ = |items: &Vec<Value>| {
            if items.len() > UNIQUE_ITEMS_MAX {
                return false;
            }
            let mut places = items.iter().enumerate();
            places.all(|(place, item)| !items[..place].iter().any(|before| same(before, item)))
        };
        let exact = case.exactly().and_then(Value::as_array);
        let short = case.size(Measure::Items).1.is_some_and(|max| max <= 1);
        let said = case.says(&[("uniqueItems", Some(&Value::Bool(true)))]);
        if !short && !said && !exact.is_some_and(differ) {
            self.fail(path, "may have the same item twice");
        }
    }

    fn items(
        &mut self,
        case: &Case<'a>,
        schema: &'a Map<String, Value>,
        keyword: &str,
        path: &str,
    ) {
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        let prefix = prefix.map_or(&[][..], Vec::as_slice);
        match schema.get("items") {
            _ if keyword == "prefixItems" => {
                for (index, wanted) in prefix.iter().enumerate() {
                    if let Some(known) = case.item(index) {
                        self.value(known, wanted, &item(path, index));
                    }
                }
            }
            None => {}
            Some(Value::Array(_)) => self.fail(path, "a list as items cannot be judged"),
            Some(wanted) => {
                let described = case.prefix_len().max(prefix.len());
                for index in prefix.len()..described {
                    if let Some(known) = case.item(index) {
                        self.value(known, wanted, &item(path, index));
                    }
                }
                if let Some(known) = case.item(described) {
                    self.value(known, wanted, &format!("{path}[]"));
                }
            }
        }
    }

    fn required(&mut self, case: &Case<'a>, names: &'a Value, path: &str) {
        let names = names.as_array().map_or(&[][..], Vec::as_slice);
        let known = case.required();
        if !self.spend((names.len() + known.len()) / LIGHT, path) {
            return;
        }
        let names = names.iter().filter_map(Value::as_str);
        for name in names.filter(|name| !known.contains(name)) {
            self.fail(&member(path, name), "is required and may be missing");
        }
    }

    fn properties(&mut self, case: &Case<'a>, properties: &'a Value, path: &str) {
        let Some(properties) = properties.as_object() else { return };
        if !self.spend(properties.len() / LIGHT, path) {
            return;
        }
        for (name, wanted) in properties {
            if let Some(known) = case.property(name) {
                self.value(known, wanted, &member(path, name));
            }
        }
    }

    fn additional(
        &mut self,
        case: &Case<'a>,
        schema: &'a Map<String, Value>,
        wanted: &'a Value,
        path: &str,
    ) {
        if *wanted == Value::Bool(true) {
            return;
        }
        let properties = schema.get("properties");
        let names = case.names();
        if !self.spend(names.len() / LIGHT, path) {
            return;
        }
        let is_named = |name: &&str| properties.is_some_and(|named| named.get(*name).is_some());
        for name in names.into_iter().filter(|name| !is_named(name)) {
            if let Some(known) = case.property(name) {
                self.value(known, wanted, &member(path, name));
            }
        }
        let dot = if path.is_empty() { "" } else { "." };
        match case.others() {
            None => {}
            Some(_) if *wanted == Value::Bool(false) => {
                self.fail(path, "may have further properties, which are not accepted");
            }
            Some(known) => self.value(known, wanted, &format!("{path}{dot}*")),
        }
    }

    /// A demand that is met only by the same words on the other side.
    fn unjudged(
        &mut self,
        case: &Case<'a>,
        schema: &'a Map<String, Value>,
        keyword: &str,
        path: &str,
    ) {
        let (concerns, together): (Types, &[&str]) = match keyword {
            "pattern" => (Types::STRING, &["pattern"]),
            "format" => (Types::STRING.or(Types::NUMBER), &["format"]),
            "not" => (case.types, &["not"]),
            "if" => (case.types, &["if", "then", "else"]),
            "contains" => (Types::ARRAY, &["contains", "minContains", "maxContains"]),
            "patternProperties" => (Types::OBJECT, &["patternProperties"]),
            "propertyNames" => (Types::OBJECT, &["propertyNames"]),
            "dependencies" => (Types::OBJECT, &["dependencies"]),
            "dependentRequired" => (Types::OBJECT, &["dependentRequired"]),
            "dependentSchemas" => (Types::OBJECT, &["dependentSchemas"]),
            // What these mean depends on what else is there.
            "unevaluatedItems" => (Types::ARRAY, &[]),
            "unevaluatedProperties" => (Types::OBJECT, &[]),
            "$dynamicRef" | "$recursiveRef" => (case.types, &[]),
            // Says nothing about the value.
            _ => return,
        };
        let said: Vec<_> = together.iter().map(|name| (*name, schema.get(*name))).collect();
        let refers = said.iter().any(|(_, demand)| demand.is_some_and(refers));
        let is_same = !together.is_empty() && !refers && case.says(&said);
        if case.types.meets(concerns) && !is_same {
            self.fail(path, format!("{keyword} cannot be judged and is not the producer's own"));
        }
    }
}

fn shown(value: &Value) -> String {
    cut(value.to_string())
}

/// Whether two schemas are the same and mean the same: a reference leads elsewhere on either side.
fn is_identical(one: &Value, other: &Value) -> bool {
    one == other && !refers(one)
}

fn refers(schema: &Value) -> bool {
    ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|name| facts::mentions(schema, name))
}

#[cfg(test)]
mod tests;
