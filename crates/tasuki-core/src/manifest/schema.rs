// SPDX-License-Identifier: Apache-2.0
//! Schemas as agents write them. Two spellings are understood: JSON Schema 2020-12, and a shorthand
//! that maps names to type words. This module tells them apart and writes the shorthand out.
//!
//! **The shorthand.** `{"query": "string", "tags?": "string[]", "author": {"name": "str"}}`.
//! The words are string/str, int/integer, float/number, bool/boolean, array/list, object/dict/map,
//! null/none and any. `[]` behind a word, or brackets around one type, make a list of it. `?`
//! behind a name or a word makes the member optional: it may be left out, it may not be null. A
//! member may also be given as JSON Schema.
//!
//! **Telling them apart.** `true`, `false` and `{}` are JSON Schema. An object is JSON Schema
//!
//! - in any case if it has a member that begins with `$`, an array as `anyOf`, `allOf`, `oneOf` or
//!   `enum`, or as `properties` a map of objects and booleans;
//! - if it has a JSON Schema type as `type`, a `const`, or an object as `properties`, *and* no
//!   member looks like the shorthand: a name that JSON Schema does not know with a type, or a
//!   keyword that never holds text with a type word.
//!
//! Everything else is the shorthand. So `{"type": "string"}` is JSON Schema, and `{"type":
//! "string", "name": "string"}` is the shorthand, since `name` is no keyword. `{"type": "string",
//! "title": "string"}` could be both and is JSON Schema; who means two members writes
//! `{"type": "str", "title": "str"}`, which cannot be JSON Schema.
//!
//! JSON Schema is left as it is. It is only checked for what would later be misread in silence: a
//! keyword of the wrong form, the shorthand in the place of a subschema, and a `$ref` that leaves
//! the schema, because nothing is ever fetched.

use serde_json::{Map, Value, json};

use super::keywords::{Form, check, form_of, is_type};
use super::problem::{self, Problem, Problems, item, member};

/// Longer texts are no type words; bounds how many `[]` can follow one.
const WORD_BYTES_MAX: usize = 32;

/// Gives JSON Schema for either spelling; JSON Schema comes back byte for byte.
pub fn normalise(value: Value) -> Result<Value, Vec<Problem>> {
    problem::check_depth(&value).map_err(|problem| vec![problem])?;
    let mut problems = Problems::default();
    let schema = match value {
        Value::Object(members) if !is_json_schema(&members) => {
            write_out(members, "", &mut problems)
        }
        value => {
            check(&value, "", &mut problems);
            value
        }
    };
    let schema = problems.or(schema)?;
    problem::check_depth(&schema).map_err(|problem| vec![problem])?;
    Ok(schema)
}

pub(super) fn is_json_schema(members: &Map<String, Value>) -> bool {
    let is_array = |name: &&str| members.get(*name).is_some_and(Value::is_array);
    let properties = members.get("properties").and_then(Value::as_object);
    let of_schemas = |map: &Map<_, Value>| map.values().all(|v| v.is_object() || v.is_boolean());
    members.is_empty()
        || members.keys().any(|name| name.starts_with('$'))
        || ["anyOf", "allOf", "oneOf", "enum"].iter().any(is_array)
        || properties.is_some_and(of_schemas)
        || (is_marked(members) && !looks_short(members))
}

/// Whether it has what makes JSON Schema unless something else speaks against it.
fn is_marked(members: &Map<String, Value>) -> bool {
    members.get("type").is_some_and(is_type)
        || members.contains_key("const")
        || members.get("properties").is_some_and(Value::is_object)
}

/// Whether some member could only be meant as the shorthand.
pub(super) fn looks_short(members: &Map<String, Value>) -> bool {
    members.iter().any(|(name, value)| match form_of(name) {
        Some(Form::Text | Form::Type | Form::Reference | Form::Data) => false,
        Some(_) => value.as_str().is_some_and(|text| word(text).is_some()),
        None => !name.starts_with("x-") && has_word(value),
    })
}

fn has_word(value: &Value) -> bool {
    match value {
        Value::String(text) => word(text).is_some(),
        Value::Array(items) => items.len() == 1 && has_word(&items[0]),
        Value::Object(members) => members.values().any(has_word),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn write_out(members: Map<String, Value>, path: &str, problems: &mut Problems) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (written, value) in members {
        let at = member(path, &written);
        let name = written.strip_suffix('?').unwrap_or(&written);
        let (schema, optional) = member_type(value, &at, problems);
        if name.is_empty() {
            problems.add(at, "expected a name");
        } else if properties.insert(name.to_owned(), schema).is_some() {
            problems.add(at, "named twice");
        } else if !optional && name == written {
            required.push(name.to_owned());
        }
    }
    required.sort_unstable();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": true,
    })
}

/// The schema of a member in the shorthand, and whether its type makes it optional.
fn member_type(value: Value, path: &str, problems: &mut Problems) -> (Value, bool) {
    match value {
        Value::String(text) => {
            let (bare, optional) = match text.strip_suffix('?') {
                Some(bare) => (bare, true),
                None => (text.as_str(), false),
            };
            let schema = word(bare).unwrap_or_else(|| {
                problems.add(path, no_word(&text));
                Value::Null
            });
            (schema, optional)
        }
        Value::Array(mut items) if items.len() == 1 => {
            let (of, optional) = member_type(items.remove(0), &item(path, 0), problems);
            if optional {
                problems.add(item(path, 0), "an item cannot be optional");
            }
            (json!({ "type": "array", "items": of }), false)
        }
        Value::Object(members) if !is_json_schema(&members) => {
            (write_out(members, path, problems), false)
        }
        Value::Object(members) => {
            let schema = Value::Object(members);
            check(&schema, path, problems);
            (schema, false)
        }
        // `true` would be JSON Schema, but here it is more likely an example of a value.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            problems.add(path, "expected a type word, a map of names to types, or JSON Schema");
            (Value::Null, false)
        }
    }
}

/// The schema that a type word stands for.
fn word(text: &str) -> Option<Value> {
    if text.len() > WORD_BYTES_MAX {
        return None;
    }
    if let Some(of) = text.strip_suffix("[]") {
        return Some(json!({ "type": "array", "items": word(of)? }));
    }
    let known = match text {
        "string" | "str" => "string",
        "integer" | "int" => "integer",
        "number" | "float" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" => "array",
        "object" | "dict" | "map" => "object",
        "null" | "none" => "null",
        "any" => return Some(json!({})),
        _ => return None,
    };
    Some(json!({ "type": known }))
}

fn no_word(text: &str) -> String {
    let shown: String = text.chars().take(WORD_BYTES_MAX).collect();
    format!(
        "{shown:?} is no type word; expected string, int, number, bool, array, object, null or \
         any, with [] behind it for a list and ? if it is optional"
    )
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "examples read better without a & each")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn becomes(short: Value, schema: Value) {
        assert_eq!(normalise(short).unwrap(), schema);
    }

    #[track_caller]
    fn stays(schema: Value) {
        assert_eq!(normalise(schema.clone()).unwrap().to_string(), schema.to_string());
    }

    #[track_caller]
    fn refused(value: Value, expected: &[(&str, &str)]) {
        let problems = normalise(value).unwrap_err();
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, (path, text)) in problems.iter().zip(expected) {
            assert_eq!(problem.path, *path);
            assert!(problem.problem.contains(text), "{problem}");
        }
    }

    /// What the shorthand for an object with these members is written out as.
    fn object(properties: Value, required: &[&str]) -> Value {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": true,
        })
    }

    #[test]
    fn the_shorthand_is_written_out() {
        becomes(
            json!({"query": "string", "depth": "int"}),
            object(
                json!({"query": {"type": "string"}, "depth": {"type": "integer"}}),
                &["depth", "query"],
            ),
        );
    }

    #[test]
    fn every_word_has_its_type() {
        for (words, schema) in [
            (["string", "str"], json!({"type": "string"})),
            (["int", "integer"], json!({"type": "integer"})),
            (["float", "number"], json!({"type": "number"})),
            (["bool", "boolean"], json!({"type": "boolean"})),
            (["array", "list"], json!({"type": "array"})),
            (["object", "dict"], json!({"type": "object"})),
            (["object", "map"], json!({"type": "object"})),
            (["null", "none"], json!({"type": "null"})),
            (["any", "any"], json!({})),
            (["str[]", "string[]"], json!({"type": "array", "items": {"type": "string"}})),
        ] {
            for word in words {
                becomes(json!({ "a": word }), object(json!({ "a": schema }), &["a"]));
            }
        }
    }

    #[test]
    fn lists_nest_and_brackets_make_one_too() {
        let integers = json!({"type": "array", "items": {"type": "integer"}});
        let table = json!({"type": "array", "items": integers});
        becomes(json!({"a": "int[][]"}), object(json!({ "a": table }), &["a"]));
        becomes(json!({"a": [["int"]]}), object(json!({ "a": table }), &["a"]));
        let people =
            json!({"type": "array", "items": object(json!({"b": {"type": "null"}}), &["b"])});
        becomes(json!({"a": [{"b": "null"}]}), object(json!({ "a": people }), &["a"]));
    }

    #[test]
    fn a_question_mark_makes_a_member_optional() {
        let text = json!({"type": "string"});
        becomes(
            json!({"b?": "string", "a": "string?", "d": "string", "c?": {"x": "string"}}),
            object(
                json!({"a": text, "b": text, "c": object(json!({"x": text}), &["x"]), "d": text}),
                &["d"],
            ),
        );
        refused(json!({"a": "int", "a?": "int"}), &[(r#"["a?"]"#, "named twice")]);
        refused(json!({"?": "int"}), &[(r#"["?"]"#, "expected a name")]);
        refused(json!({"a": ["int?"]}), &[("a[0]", "cannot be optional")]);
    }

    #[test]
    fn json_schema_stays_byte_for_byte() {
        stays(json!(true));
        stays(json!(false));
        stays(json!({}));
        stays(json!({"type": "string"}));
        stays(json!({"type": ["string", "null"], "title": "A title", "x-order": 3}));
        stays(json!({"type": "object", "unit": "metres", "discriminator": {"kind": "string"}}));
        stays(json!({"type": "string", "title": "string", "description": "string"}));
        stays(json!({"properties": {"name": {"type": "string"}}, "name": "string"}));
        stays(json!({"properties": {"query": true}, "required": ["query"]}));
        stays(json!({"$ref": "#/$defs/a", "$defs": {"a": {"minLength": 2.0}}}));
        stays(json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}));
        stays(json!({"anyOf": [{"const": {"$ref": "elsewhere"}}, {"enum": [1, "int"]}]}));
        stays(json!({"type": "object", "properties": {"$ref": {"type": "string"}}}));
    }

    #[test]
    fn members_that_are_named_like_keywords_are_still_members() {
        let check = |short: Value, required: &[&str]| {
            let schema = normalise(short).unwrap();
            assert_eq!(schema["required"], json!(required));
            stays(schema);
        };
        check(json!({"type": "string", "name": "string"}), &["name", "type"]);
        check(json!({"type": "str", "title": "str"}), &["title", "type"]);
        check(json!({"title": "string", "description": "string"}), &["description", "title"]);
        check(json!({"type": "string", "items": "array"}), &["items", "type"]);
        check(json!({"items": {"sku": "string"}, "total": "number"}), &["items", "total"]);
        check(json!({"properties": {"colour": "string"}, "id": "int"}), &["id", "properties"]);
        check(json!({"enum": "string", "format": "string"}), &["enum", "format"]);
        check(json!({"type": "string", "author": {"home": {"city": "str"}}}), &["author", "type"]);
        check(json!({"type": "string?", "const": "bool", "let": "bool"}), &["const", "let"]);
    }

    #[test]
    fn a_member_of_the_shorthand_may_be_json_schema() {
        let depth = json!({"type": "integer", "minimum": 1});
        becomes(
            json!({"depth": depth, "query": "string"}),
            object(json!({"depth": depth, "query": {"type": "string"}}), &["depth", "query"]),
        );
    }

    #[test]
    fn what_is_neither_is_refused_with_its_place() {
        refused(json!("string"), &[("", "expected a schema")]);
        refused(json!(["string"]), &[("", "expected a schema")]);
        refused(json!(null), &[("", "expected a schema")]);
        refused(
            json!({"a": "strng", "b": {"c": 3, "d": true}, "e": []}),
            &[("a", "\"strng\" is no type word"), ("b.c", "type word"), ("b.d", ""), ("e", "")],
        );
        refused(json!({"a": "int".to_owned() + &"[]".repeat(40)}), &[("a", "is no type word")]);
    }

    #[test]
    fn nothing_is_ever_fetched() {
        let elsewhere = "https://example.com/schema.json";
        refused(json!({"$ref": elsewhere}), &[("$ref", "within this schema")]);
        refused(
            json!({
                "type": "object",
                "properties": {"a": {"items": {"$ref": "other.json#/a"}}},
                "x-shared": {"b": [{"$ref": elsewhere}]},
            }),
            &[("properties.a.items.$ref", "within"), ("x-shared.b[0].$ref", "within")],
        );
        refused(json!({"a": "int", "b": {"$dynamicRef": "x"}}), &[("b.$dynamicRef", "within")]);
    }

    #[test]
    fn json_schema_that_would_be_misread_is_refused() {
        refused(
            json!({"type": "object", "properties": {"query": "string"}}),
            &[("properties.query", "expected a schema")],
        );
        refused(
            json!({"type": "object", "properties": {"a": {"hex": "string"}}}),
            &[("properties.a", "the shorthand inside JSON Schema")],
        );
        refused(
            json!({
                "$schema": 1, "type": "strin", "minLength": "3", "maxItems": -1, "multipleOf": 0,
                "required": "a", "anyOf": [], "allOf": {}, "uniqueItems": 1, "properties": [],
                "items": 3, "enum": 4,
            }),
            &[
                ("$schema", "a string"),
                ("allOf", "an array of schemas"),
                ("anyOf", "at least one"),
                ("enum", "an array"),
                ("items", "a schema"),
                ("maxItems", "a whole number"),
                ("minLength", "a whole number"),
                ("multipleOf", "above 0"),
                ("properties", "a map"),
                ("required", "names"),
                ("type", "null, boolean"),
                ("uniqueItems", "true or false"),
            ],
        );
    }

    /// Values made of what schemas and the shorthand are made of.
    fn anything() -> impl Strategy<Value = Value> {
        let names = ["a", "b?", "type", "title", "properties", "items", "enum", "$ref", "const"];
        let texts = ["string", "int[]", "str?", "#", "x"];
        let leaf = prop_oneof![
            prop::sample::select(texts.to_vec()).prop_map(Value::from),
            Just(json!(1)),
            any::<bool>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let name = prop::sample::select(names.to_vec()).prop_map(String::from);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(name, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_written_out_stays(value in anything()) {
            if let Ok(schema) = normalise(value) {
                prop_assert_eq!(normalise(schema.clone()), Ok(schema));
            }
        }
    }
}
