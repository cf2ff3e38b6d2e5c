// SPDX-License-Identifier: Apache-2.0
//! Schemas of tools. A tool shows some members of what its operation asks and answers, under the same
//! names and with the same sentences; so they are taken from the published types and cannot drift.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// An object of a tool: its members, and which of them must be there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    members: Map<String, Value>,
    required: Vec<String>,
    definitions: Map<String, Value>,
}

impl Shape {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The named members of a published type. Each stands where it is used, because not every client
    /// follows references.
    pub(crate) fn some_of<T: JsonSchema>(mut self, names: &[&str]) -> Self {
        let inline = |settings: &mut SchemaSettings| settings.inline_subschemas = true;
        let mut generator = SchemaSettings::draft2020_12().with(inline).into_generator();
        let whole = generator.root_schema_for::<T>().to_value();
        let mut known = Map::new();
        members(&whole, &mut known);
        for name in names {
            let member = known.remove(*name);
            debug_assert!(member.is_some(), "{} has no member {name}", T::schema_name());
            self.members.insert((*name).to_owned(), member.unwrap_or(Value::Bool(true)));
        }
        let needed = whole["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let needed = needed.filter(|needed| names.contains(needed)).map(str::to_owned);
        self.required.extend(needed);
        if let Value::Object(definitions) = &whole["$defs"] {
            self.definitions.extend(definitions.clone());
        }
        self
    }

    /// All members of a published type.
    pub(crate) fn all_of<T: JsonSchema>(self) -> Self {
        let whole = schemars::schema_for!(T).to_value();
        let mut known = Map::new();
        members(&whole, &mut known);
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        self.some_of::<T>(&names)
    }

    /// A member of the tool's own.
    pub(crate) fn with(mut self, name: &str, schema: Value) -> Self {
        self.members.insert(name.to_owned(), schema);
        self
    }

    /// A member of the tool's own that must be there.
    pub(crate) fn needs(mut self, name: &str, schema: Value) -> Self {
        self.required.push(name.to_owned());
        self.with(name, schema)
    }

    /// Lets members be left out that the operation needs, because the tool knows them otherwise.
    pub(crate) fn optional(mut self, names: &[&str]) -> Self {
        self.required.retain(|needed| !names.contains(&needed.as_str()));
        self
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// As a schema. What is asked may have no other members; an answer may have more one day.
    pub(crate) fn schema(self, closed: bool) -> Map<String, Value> {
        let mut schema = Map::new();
        schema.insert("type".into(), json!("object"));
        schema.insert("properties".into(), Value::Object(self.members));
        if !self.required.is_empty() {
            schema.insert("required".into(), json!(self.required));
        }
        if closed {
            schema.insert("additionalProperties".into(), json!(false));
        }
        if !self.definitions.is_empty() {
            schema.insert("$defs".into(), Value::Object(self.definitions));
        }
        schema
    }
}

/// The members of an object, also those that it takes over from others.
fn members(schema: &Value, found: &mut Map<String, Value>) {
    if let Value::Object(own) = &schema["properties"] {
        found.extend(own.clone());
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        members(part, found);
    }
}

/// A member that says what it is.
pub(crate) fn text(says: &str) -> Value {
    json!({ "type": "string", "description": says })
}

pub(crate) fn flag(says: &str) -> Value {
    json!({ "type": "boolean", "description": says })
}

#[cfg(test)]
mod tests {
    use tasuki_protocol as wire;

    use super::*;

    #[test]
    fn a_shape_has_the_members_that_are_named_and_no_others() {
        let shape = Shape::new().some_of::<wire::Claim>(&["agent", "wait_ms"]);
        let schema = shape.needs("more", flag("More.")).optional(&["agent"]).schema(true);
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["agent", "more", "wait_ms"]);
        assert_eq!(schema["required"], json!(["more"]));
        assert_eq!(schema["additionalProperties"], json!(false));
    }

    #[test]
    fn what_is_taken_over_from_a_hop_is_found_too() {
        let shape = Shape::new().some_of::<wire::Offer>(&["intent", "to", "payload", "ask"]);
        let schema = Value::Object(shape.schema(true));
        assert!(schema["properties"]["ask"]["description"].is_string(), "{schema}");
        assert!(!schema.to_string().contains("$ref"), "{schema}");
    }
}
