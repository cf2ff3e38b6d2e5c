// SPDX-License-Identifier: Apache-2.0
//! What a schema may cost, told before anything is compiled or held against it: the library that does
//! both can neither count nor stop. Three things are told: whether a schema stays within its bounds,
//! how many steps it takes to say whether a value fits, and how many to say where it does not. The
//! last is more, because alternatives within alternatives are then looked at again and again.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Map, Value};

use super::keywords::{Form, form_of};
use super::{DEPTH_MAX, SCHEMA_BYTES_MAX};
use crate::canonical::Body;

/// How many schemas may be within one.
pub const SCHEMA_NODES_MAX: u64 = 4096;
/// How many schemas there may be once every reference is written out.
pub const SCHEMA_UNFOLDED_MAX: u64 = 50_000;
/// How deep schemas may lie within each other once every reference is written out, as far as it does
/// not lead back: bounds the stack of what compiles them.
pub const UNFOLDED_DEPTH_MAX: u64 = 128;
/// How many letters, classes and repetitions all patterns of a schema may have, counted ones written
/// out.
pub const PATTERN_ATOMS_MAX: u64 = 10_000;
/// How much a compiled pattern may take, in bytes.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 1 << 20;
/// How many steps it may take to say whether a value fits.
pub const VALIDATION_STEPS_MAX: u64 = 2_000_000;
/// How many steps it may take to say where it does not fit.
pub const FAULT_STEPS_MAX: u64 = 200_000;
/// How deep schema and value may be followed together: bounds the stack.
pub const VALIDATION_DEPTH_MAX: u64 = 160;

/// So many bytes of text times atoms of a pattern are one step.
const PATTERN_STEP: u64 = 256;
/// Up to so many items are compared with each other to see that all differ; more are hashed.
const COMPARED_ITEMS_MAX: usize = 15;

/// A bound that was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    pub bound: &'static str,
    pub max: u64,
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "passes the bound {}: at most {} are allowed", self.bound, self.max)
    }
}

const fn passed<T>(bound: &'static str, max: u64) -> Result<T, Passed> {
    Err(Passed { bound, max })
}

/// Whether a schema may be compiled.
pub fn check(schema: &Value) -> Result<(), Passed> {
    if super::problem::check_depth(schema).is_err() {
        return passed("schema_depth", DEPTH_MAX as u64);
    }
    if Body::of(schema).text().len() > SCHEMA_BYTES_MAX {
        return passed("schema_bytes", SCHEMA_BYTES_MAX as u64);
    }
    let book = Book::of(schema)?;
    let whole = book.unfolded(schema, 1, &mut HashMap::new())?;
    if whole.schemas > SCHEMA_UNFOLDED_MAX {
        return passed("schema_unfolded", SCHEMA_UNFOLDED_MAX);
    }
    Ok(())
}

/// How many steps it takes to say whether a value fits a schema that may be compiled.
pub fn steps(schema: &Value, value: &Value) -> Result<u64, Passed> {
    let mut walk = Walk::new(schema, true, VALIDATION_STEPS_MAX)?;
    walk.visit(schema, value, 1, 0).map(|()| walk.steps)
}

/// Whether it can also be said where a value does not fit.
#[must_use]
pub fn can_name_faults(schema: &Value, value: &Value) -> bool {
    let walk = Walk::new(schema, false, FAULT_STEPS_MAX);
    walk.is_ok_and(|mut walk| walk.visit(schema, value, 1, 0).is_ok())
}

/// The schemas within one, and where references lead.
struct Book<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
}

impl<'s> Book<'s> {
    fn of(root: &'s Value) -> Result<Self, Passed> {
        let mut book = Self { root, anchors: HashMap::new() };
        let (mut nodes, mut atoms) = (0, 0_u64);
        let mut waiting = vec![root];
        while let Some(schema) = waiting.pop() {
            nodes += 1;
            if nodes > SCHEMA_NODES_MAX {
                return passed("schema_nodes", SCHEMA_NODES_MAX);
            }
            let Value::Object(members) = schema else { continue };
            for name in ["$anchor", "$dynamicAnchor"] {
                if let Some(anchor) = members.get(name).and_then(Value::as_str) {
                    book.anchors.insert(anchor, schema);
                }
            }
            // A name of its own would change where references lead.
            if !std::ptr::eq(schema, root) && members.contains_key("$id") {
                return passed("schema_ids", 1);
            }
            let own = members.get("pattern").and_then(Value::as_str);
            let of_names = members.get("patternProperties").and_then(Value::as_object);
            let of_names = of_names.into_iter().flat_map(Map::keys).map(String::as_str);
            for pattern in own.into_iter().chain(of_names) {
                atoms = atoms.saturating_add(self::atoms(pattern));
            }
            if atoms > PATTERN_ATOMS_MAX {
                return passed("pattern_atoms", PATTERN_ATOMS_MAX);
            }
            waiting.extend(below(members));
        }
        Ok(book)
    }

    fn resolve(&self, members: &'s Map<String, Value>) -> impl Iterator<Item = &'s Value> {
        let references = ["$ref", "$dynamicRef", "$recursiveRef"];
        references.into_iter().filter_map(|name| {
            let place = members.get(name)?.as_str()?.strip_prefix('#')?;
            match place {
                "" => Some(self.root),
                place if place.starts_with('/') => self.root.pointer(&unescaped(place)),
                anchor => self.anchors.get(anchor).copied(),
            }
        })
    }

    /// How much a schema is with every reference written out, as far as it does not lead back.
    fn unfolded(
        &self,
        schema: &'s Value,
        depth: u64,
        known: &mut HashMap<*const Value, Unfolded>,
    ) -> Result<Unfolded, Passed> {
        let below_it = known.get(&std::ptr::from_ref(schema)).copied();
        let found = below_it.unwrap_or(Unfolded::LEAF);
        if depth + found.height > UNFOLDED_DEPTH_MAX + 1 {
            return passed("schema_unfolded_depth", UNFOLDED_DEPTH_MAX);
        }
        let Value::Object(members) = schema else { return Ok(Unfolded::LEAF) };
        if below_it.is_some() {
            return Ok(found);
        }
        known.insert(schema, Unfolded::LEAF);
        let mut whole = Unfolded::LEAF;
        for part in below(members).chain(self.resolve(members)) {
            let part = self.unfolded(part, depth + 1, known)?;
            whole.schemas = whole.schemas.saturating_add(part.schemas);
            whole.height = whole.height.max(part.height + 1);
        }
        known.insert(schema, whole);
        Ok(whole)
    }
}

/// What a schema is once references are written out.
#[derive(Clone, Copy)]
struct Unfolded {
    schemas: u64,
    /// How many schemas lie within each other, itself included.
    height: u64,
}

impl Unfolded {
    const LEAF: Self = Self { schemas: 1, height: 1 };
}

/// A part of a URL as it is meant.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = digits.filter(|_| *first == b'%');
        if let Some(byte) = code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            bytes.push(byte);
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The schemas right below one.
fn below(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    members.iter().flat_map(|(name, value)| {
        let (one, list, map) = match (form_of(name), value) {
            (Some(Form::Schema | Form::Items), Value::Object(_) | Value::Bool(_)) => {
                (Some(value), None, None)
            }
            (Some(Form::Items | Form::Schemas), Value::Array(list)) => (None, Some(list), None),
            (Some(Form::SchemaMap | Form::Other), Value::Object(map)) => (None, None, Some(map)),
            // What nobody knows is not looked at, but a reference may lead there.
            (None, Value::Object(_)) => (Some(value), None, None),
            _ => (None, None, None),
        };
        let map = map.into_iter().flat_map(Map::values);
        one.into_iter().chain(list.into_iter().flatten()).chain(map)
    })
}

/// The way of a validator through schema and value, without looking whether anything fits.
struct Walk<'s> {
    book: Book<'s>,
    /// Whether what a reference leads to is looked at once for each value.
    remembers: bool,
    seen: HashSet<(*const Value, *const Value, u64)>,
    steps: u64,
    max: u64,
}

impl<'s> Walk<'s> {
    fn new(schema: &'s Value, remembers: bool, max: u64) -> Result<Self, Passed> {
        Ok(Self { book: Book::of(schema)?, remembers, seen: HashSet::new(), steps: 0, max })
    }

    fn spend(&mut self, steps: u64) -> Result<(), Passed> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.max { passed("validation_steps", self.max) } else { Ok(()) }
    }

    fn visit(
        &mut self,
        schema: &'s Value,
        value: &Value,
        weight: u64,
        depth: u64,
    ) -> Result<(), Passed> {
        if depth > VALIDATION_DEPTH_MAX {
            return passed("validation_depth", VALIDATION_DEPTH_MAX);
        }
        self.spend(weight)?;
        let Value::Object(members) = schema else { return Ok(()) };
        // What was not evaluated is found by evaluating the other parts once more.
        let again = members.contains_key("unevaluatedItems")
            || members.contains_key("unevaluatedProperties");
        let inside = if again { weight.saturating_mul(3) } else { weight };
        for (name, part) in members {
            self.keyword(name, part, value, (weight, inside), depth + 1)?;
        }
        let targets: Vec<_> = self.book.resolve(members).collect();
        for target in targets {
            let key = (std::ptr::from_ref(target), std::ptr::from_ref(value), inside);
            if !self.remembers || self.seen.insert(key) {
                self.visit(target, value, inside, depth + 1)?;
            }
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        name: &str,
        part: &'s Value,
        value: &Value,
        (weight, inside): (u64, u64),
        depth: u64,
    ) -> Result<(), Passed> {
        match (name, part, value) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts), _) => {
                parts.iter().try_for_each(|part| self.visit(part, value, inside, depth))
            }
            ("not" | "if" | "then" | "else", part, _) => self.visit(part, value, inside, depth),
            ("dependentSchemas" | "dependencies", Value::Object(parts), Value::Object(_)) => {
                parts.values().try_for_each(|part| self.visit(part, value, inside, depth))
            }
            ("properties", Value::Object(parts), Value::Object(members)) => {
                self.spend(weight.saturating_mul(1 + parts.len() as u64 / 16))?;
                let present =
                    members.iter().filter_map(|(name, value)| Some((parts.get(name)?, value)));
                let present: Vec<_> = present.collect();
                present
                    .into_iter()
                    .try_for_each(|(part, value)| self.visit(part, value, weight, depth))
            }
            ("patternProperties", Value::Object(parts), Value::Object(members)) => {
                for (pattern, part) in parts {
                    let atoms = atoms(pattern);
                    for (name, value) in members {
                        self.spend(weight.saturating_mul(matching(name, atoms)))?;
                        self.visit(part, value, weight, depth)?;
                    }
                }
                Ok(())
            }
            ("additionalProperties" | "unevaluatedProperties", part, Value::Object(members)) => {
                members.values().try_for_each(|value| self.visit(part, value, weight, depth))
            }
            ("propertyNames", part, Value::Object(members)) => {
                let names: Vec<_> = members.keys().map(|name| Value::from(name.as_str())).collect();
                let mut names = names.iter();
                names.try_for_each(|name| self.visit(part, name, weight, depth))?;
                // The names are gone now, and what comes after may lie where they lay.
                self.seen.clear();
                Ok(())
            }
            ("prefixItems" | "items", Value::Array(parts), Value::Array(items)) => {
                let mut both = parts.iter().zip(items);
                both.try_for_each(|(part, value)| self.visit(part, value, weight, depth))
            }
            (
                "items" | "additionalItems" | "contains" | "unevaluatedItems",
                part,
                Value::Array(items),
            ) => items.iter().try_for_each(|value| self.visit(part, value, weight, depth)),
            ("pattern", Value::String(pattern), Value::String(text)) => {
                self.spend(weight.saturating_mul(matching(text, atoms(pattern))))
            }
            ("uniqueItems", Value::Bool(true), Value::Array(items)) => {
                let times = items.len().min(COMPARED_ITEMS_MAX) as u64;
                self.spend(weight.saturating_mul(times.saturating_mul(size(value))))
            }
            ("enum", Value::Array(values), _) => {
                let all = values.len() as u64;
                self.spend(weight.saturating_mul(all.saturating_mul(size(value)) / 8))
            }
            ("const", _, _) => self.spend(weight.saturating_mul(size(value) / 8)),
            _ => Ok(()),
        }
    }
}

/// How many steps it takes to look for a pattern in a text.
fn matching(text: &str, atoms: u64) -> u64 {
    1 + (text.len() as u64).saturating_mul(atoms) / PATTERN_STEP
}

/// How many values a value has.
fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<u64>(),
        Value::String(text) => 1 + text.len() as u64 / 64,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// How large a pattern is once counted repetitions are written out: never less than it really is.
fn atoms(pattern: &str) -> u64 {
    let mut sums = vec![0_u64];
    let mut last = 0_u64;
    let mut chars = pattern.chars().peekable();
    while let Some(next) = chars.next() {
        let atom = match next {
            '(' => {
                sums.push(0);
                last = 0;
                continue;
            }
            ')' => {
                let inside = if sums.len() > 1 { sums.pop().unwrap_or(0) } else { 0 };
                inside.saturating_add(1)
            }
            '{' => {
                let count: String =
                    std::iter::from_fn(|| chars.next_if(|c| c.is_ascii_digit() || *c == ','))
                        .collect();
                let times = count.split(',').filter_map(|n| n.parse::<u64>().ok()).max();
                let sum = sums.last_mut().expect("the whole is never closed");
                *sum = sum.saturating_add(last.saturating_mul(times.unwrap_or(1).max(1)));
                last = 0;
                continue;
            }
            '[' => {
                let mut escaped = false;
                let mut length = 0_u64;
                for c in chars.by_ref() {
                    length += 1;
                    if c == ']' && !escaped && length > 1 {
                        break;
                    }
                    escaped = c == '\\' && !escaped;
                }
                1 + length / 4
            }
            '\\' => {
                // A class of letters of all languages is many ranges.
                let named = matches!(chars.next(), Some('p' | 'P'));
                if named { 64 } else { 1 }
            }
            '.' => 4,
            _ => 1,
        };
        let sum = sums.last_mut().expect("the whole is never closed");
        *sum = sum.saturating_add(atom);
        last = atom;
    }
    sums.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn bound(schema: &Value) -> &'static str {
        check(schema).map_or_else(|passed| passed.bound, |()| "none")
    }

    #[test]
    fn a_schema_over_a_bound_is_told_which() {
        let many: Map<_, _> = (0..5000).map(|n| (format!("p{n}"), json!({}))).collect();
        assert_eq!(bound(&json!({ "properties": many })), "schema_nodes");
        assert_eq!(bound(&json!({ "title": "x".repeat(70_000) })), "schema_bytes");
        let deep = (0..40).fold(json!({}), |inside, _| json!({ "not": inside }));
        assert_eq!(bound(&deep), "schema_depth");
        assert_eq!(bound(&json!({ "pattern": "(a{100}){200}" })), "pattern_atoms");
        assert_eq!(bound(&json!({ "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{12}$" })), "none");
        let named = json!({ "properties": { "a": { "$id": "https://example.org/a" } } });
        assert_eq!(bound(&named), "schema_ids");
    }

    /// Each definition has two references to the next one.
    fn doubling(levels: usize) -> Value {
        let mut defs = Map::new();
        for level in 0..levels {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            defs.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
        }
        defs.insert(format!("d{levels}"), json!({ "type": "string" }));
        json!({ "$ref": "#/$defs/d0", "$defs": defs })
    }

    #[test]
    fn references_are_written_out_up_to_a_limit() {
        assert_eq!(bound(&doubling(10)), "none");
        assert_eq!(bound(&doubling(30)), "schema_unfolded");
        let recursive = json!({
            "type": "object",
            "properties": { "next": { "$ref": "#" }, "all": { "items": { "$ref": "#" } } },
        });
        assert_eq!(bound(&recursive), "none");
    }

    /// Each definition leads to the next one.
    fn chain(links: usize, link: impl Fn(Value) -> Value) -> Value {
        let mut defs = Map::new();
        for number in 0..links {
            let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
            defs.insert(format!("d{number}"), link(next));
        }
        defs.insert(format!("d{links}"), json!({ "type": "string" }));
        json!({ "$ref": "#/$defs/d0", "$defs": defs })
    }

    #[test]
    fn chains_of_references_are_only_so_deep_in_whatever_order_they_stand() {
        assert_eq!(bound(&chain(100, |next| next)), "none");
        assert_eq!(bound(&chain(130, |next| next)), "schema_unfolded_depth");
        assert_eq!(bound(&chain(70, |next| json!({ "not": next }))), "schema_unfolded_depth");
        let anchored: Map<_, _> = (0..1000)
            .map(|n| {
                let next = format!("#a{}", (n + 1) % 1000);
                (format!("a{n:04}"), json!({ "$anchor": format!("a{n}"), "$ref": next }))
            })
            .collect();
        let circle = json!({ "$defs": anchored, "$ref": "#a0" });
        assert_eq!(bound(&circle), "schema_unfolded_depth");
        // What is met at its end first is as deep as it is.
        let mut short_first = chain(1000, |next| next);
        short_first["allOf"] =
            (0..1000).rev().map(|n| json!({ "$ref": format!("#/$defs/d{n}") })).collect();
        assert_eq!(bound(&short_first), "schema_unfolded_depth");
    }

    #[test]
    fn steps_grow_with_schema_and_value_and_end_at_a_bound() {
        let schema = json!({ "items": { "type": "number" } });
        let few = steps(&schema, &json!([1, 2, 3])).unwrap();
        assert!((3..30).contains(&few), "{few}");
        let wide: Vec<_> = (0..100).map(|n| json!({ "const": n })).collect();
        let wide = json!({ "items": { "anyOf": wide } });
        let long = Value::from(vec![1; 100_000]);
        assert_eq!(steps(&wide, &long).unwrap_err().bound, "validation_steps");
        let text = Value::from("a".repeat(1 << 20));
        let pattern = json!({ "pattern": "(a|b){1000}" });
        assert_eq!(steps(&pattern, &text).unwrap_err().bound, "validation_steps");
    }

    #[test]
    fn alternatives_within_alternatives_are_told_by_one_fault_and_not_by_each() {
        let choice = json!({ "$ref": "#/$defs/node" });
        let branch = |kind: &str| {
            json!({
                "properties": { "kind": { "const": kind }, "left": choice, "right": choice },
                "required": ["kind"],
            })
        };
        let branches: Vec<_> = ["a", "b", "c", "d", "e", "f"].map(branch).into();
        let schema = json!({ "$ref": "#/$defs/node", "$defs": { "node": { "anyOf": branches } } });
        let leaf = json!({ "kind": "a" });
        let tree = (0..8).fold(leaf, |tree, _| json!({ "kind": "a", "left": tree }));
        assert!(steps(&schema, &tree).is_ok(), "a tree of alternatives is nothing unusual");
        assert!(!can_name_faults(&schema, &tree));
        assert!(can_name_faults(&schema, &json!({ "kind": "z" })));
    }

    #[test]
    fn what_was_not_evaluated_doubles_with_every_level() {
        let nested = (0..12).fold(
            json!({ "type": "object" }),
            |inside, _| json!({ "allOf": [inside], "unevaluatedProperties": false }),
        );
        let value = json!({ "a": 1 });
        assert!(steps(&nested, &value).is_err() || steps(&nested, &value).unwrap() > 100_000);
    }
}
