// SPDX-License-Identifier: Apache-2.0
//! The keywords of JSON Schema and what each holds. Checks a schema for what would later be misread
//! in silence; whether it makes sense is its author's business.

use serde_json::Value;

use super::problem::{Problems, item, member};
use super::schema::{is_json_schema, looks_short};

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "string", "number", "integer"];

/// What a keyword of JSON Schema holds.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Schema,
    /// A schema, or a list of them as in drafts before 2020-12.
    Items,
    Schemas,
    SchemaMap,
    Type,
    Text,
    Reference,
    Number,
    Count,
    Flag,
    Names,
    List,
    /// Anything, and never a schema.
    Data,
    /// Something that may have schemas in it.
    Other,
}

pub(super) fn form_of(keyword: &str) -> Option<Form> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Form::Schema,
        "items" => Form::Items,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Form::Schemas,
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
            Form::SchemaMap
        }
        "type" => Form::Type,
        "$anchor" | "$comment" | "$dynamicAnchor" | "$id" | "$schema" | "contentEncoding"
        | "contentMediaType" | "description" | "format" | "pattern" | "title" => Form::Text,
        "$dynamicRef" | "$recursiveRef" | "$ref" => Form::Reference,
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => {
            Form::Number
        }
        "maxContains" | "maxItems" | "maxLength" | "maxProperties" | "minContains" | "minItems"
        | "minLength" | "minProperties" => Form::Count,
        "deprecated" | "readOnly" | "uniqueItems" | "writeOnly" => Form::Flag,
        "required" => Form::Names,
        "enum" => Form::List,
        // The second line is OpenAPI's.
        "const" | "default" | "examples" | "$vocabulary" | "example" | "externalDocs" | "xml"
        | "nullable" | "discriminator" => Form::Data,
        "dependencies" | "dependentRequired" => Form::Other,
        _ => return None,
    })
}

/// Whether this may stand as `type`.
pub(super) fn is_type(value: &Value) -> bool {
    let known = |value: &Value| value.as_str().is_some_and(|word| TYPES.contains(&word));
    match value {
        Value::Array(words) => !words.is_empty() && words.iter().all(known),
        word => known(word),
    }
}

pub(super) fn check(schema: &Value, path: &str, problems: &mut Problems) {
    let members = match schema {
        Value::Bool(_) => return,
        Value::Object(members) => members,
        _ => {
            problems.add(path, "expected a schema: an object, true or false");
            return;
        }
    };
    if !is_json_schema(members) && looks_short(members) {
        problems.add(path, "the shorthand inside JSON Schema; write this part as JSON Schema too");
    }
    for (keyword, value) in members {
        check_keyword(keyword, value, &member(path, keyword), problems);
    }
}

fn check_keyword(keyword: &str, value: &Value, path: &str, problems: &mut Problems) {
    let mut expect = |fits: bool, form: &str| {
        if !fits {
            problems.add(path, format!("expected {form}"));
        }
    };
    match (form_of(keyword), value) {
        (Some(Form::Items | Form::Schemas), Value::Array(schemas)) => {
            let empty = schemas.is_empty() && !matches!(keyword, "items" | "prefixItems");
            expect(!empty, "at least one schema");
            for (index, schema) in schemas.iter().enumerate() {
                check(schema, &item(path, index), problems);
            }
        }
        (Some(Form::SchemaMap), Value::Object(schemas)) => {
            for (name, schema) in schemas {
                check(schema, &member(path, name), problems);
            }
        }
        (Some(Form::Schema | Form::Items), schema) => check(schema, path, problems),
        (Some(Form::Schemas), _) => expect(false, "an array of schemas"),
        (Some(Form::SchemaMap), _) => expect(false, "a map of names to schemas"),
        (Some(Form::Type), value) => {
            expect(is_type(value), &format!("one or several of {}", TYPES.join(", ")));
        }
        (Some(Form::Text), value) => expect(value.is_string(), "a string"),
        (Some(Form::Reference), value) => check_reference(value, path, problems),
        (Some(Form::Number), value) => {
            let positive = keyword != "multipleOf" || value.as_f64() > Some(0.0);
            expect(value.is_number() && positive, "a number (of multipleOf: above 0)");
        }
        (Some(Form::Count), value) => expect(is_count(value), "a whole number from 0"),
        (Some(Form::Flag), value) => expect(value.is_boolean(), "true or false"),
        (Some(Form::Names), value) => {
            let names = value.as_array();
            expect(names.is_some_and(|names| names.iter().all(Value::is_string)), "names");
        }
        (Some(Form::List), value) => expect(value.is_array(), "an array"),
        (Some(Form::Data), _) => {}
        (Some(Form::Other) | None, value) => check_references(value, path, problems),
    }
}

fn is_count(value: &Value) -> bool {
    // `2.0` counts as a whole number in JSON Schema.
    value.as_f64().is_some_and(|count| count >= 0.0 && count.fract() == 0.0)
}

fn check_reference(value: &Value, path: &str, problems: &mut Problems) {
    match value.as_str() {
        Some(reference) if reference.starts_with('#') => {}
        Some(_) => problems.add(path, "expected a reference within this schema, beginning with #"),
        None => problems.add(path, "expected a string"),
    }
}

/// Looks for references below a keyword that is not known: a reference could point there.
fn check_references(value: &Value, path: &str, problems: &mut Problems) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let at = member(path, name);
                if matches!(form_of(name), Some(Form::Reference)) && value.is_string() {
                    check_reference(value, &at, problems);
                } else {
                    check_references(value, &at, problems);
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                check_references(value, &item(path, index), problems);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
