// SPDX-License-Identifier: Apache-2.0
//! JSON Schemas that agents and senders gave, compiled once and kept while they are used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use serde_json::{Map, Value};
use tasuki_core::envelope::{Fault, Payload};
use tasuki_core::{Hash, canonical};

/// How many compiled schemas are kept; beyond it all are forgotten.
const KEPT_MAX: usize = 4096;
/// How many faults are named.
const FAULTS_MAX: usize = 20;
/// How much of a fault's text is shown: it may quote what was sent.
const FAULT_CHARS_MAX: usize = 300;

#[derive(Default)]
pub(crate) struct Schemas {
    compiled: Mutex<HashMap<Hash, Arc<Validator>>>,
}

impl Schemas {
    /// Compiles a schema, or says what is wrong with it. References to elsewhere are not followed.
    pub(crate) fn compile(&self, schema: &Value) -> Result<Arc<Validator>, String> {
        let hash = canonical::address(schema);
        let known =
            self.compiled.lock().expect("no holder of this lock panics").get(&hash).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let made = jsonschema::draft202012::options().build(schema);
        let made = Arc::new(made.map_err(|error| shortened(&error.to_string()))?);
        let mut compiled = self.compiled.lock().expect("no holder of this lock panics");
        if compiled.len() >= KEPT_MAX {
            compiled.clear();
        }
        compiled.insert(hash, made.clone());
        Ok(made)
    }

    /// Everything that keeps a value from fitting a schema.
    pub(crate) fn value_faults(&self, schema: &Value, value: &Value) -> Vec<Fault> {
        match self.compile(schema) {
            Ok(validator) => faults(&validator, value),
            Err(problem) => vec![Fault { path: String::new(), problem }],
        }
    }

    /// Everything that keeps a payload from fitting a schema. A payload's `type` is the envelope's
    /// business unless the schema speaks of it.
    pub(crate) fn faults(&self, schema: &Value, payload: &Payload) -> Vec<Fault> {
        let validator = match self.compile(schema) {
            Ok(validator) => validator,
            Err(problem) => return vec![Fault { path: String::new(), problem }],
        };
        let speaks_of_type = schema.pointer("/properties/type").is_some();
        let mut members: Map<String, Value> = payload.members().clone();
        if !speaks_of_type {
            members.remove("type");
        }
        faults(&validator, &Value::Object(members))
    }
}

fn faults(validator: &Validator, value: &Value) -> Vec<Fault> {
    let faults = validator.iter_errors(value).take(FAULTS_MAX).map(|error| Fault {
        path: error.instance_path().to_string(),
        problem: shortened(&error.to_string()),
    });
    faults.collect()
}

/// A schema of our own, compiled: it names every fault of a value.
pub struct Shape(Validator);

impl Shape {
    /// Without a schema that can be compiled there are no faults to name.
    #[must_use]
    pub fn of(schema: &Value) -> Option<Self> {
        jsonschema::draft202012::options().build(schema).ok().map(Self)
    }

    /// What was sent is not quoted: it may hold a secret.
    #[must_use]
    pub fn faults(&self, value: &Value) -> Vec<Fault> {
        let faults = self.0.iter_errors(value).take(FAULTS_MAX).map(|error| Fault {
            path: error.instance_path().to_string(),
            problem: shortened(&error.masked().to_string()),
        });
        faults.collect()
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(FAULT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn payload(value: Value) -> Payload {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_fault_is_named_with_its_path() {
        let schemas = Schemas::default();
        let schema = json!({
            "type": "object", "required": ["query"],
            "properties": { "query": { "type": "string" }, "depth": { "type": "integer" } },
            "additionalProperties": false,
        });
        let good = payload(json!({ "type": "ask", "query": "q", "depth": 2 }));
        assert_eq!(schemas.faults(&schema, &good), []);
        let bad = payload(json!({ "type": "ask", "depth": "deep" }));
        let faults = schemas.faults(&schema, &bad);
        assert_eq!(faults.len(), 2);
        assert!(faults.iter().any(|fault| fault.path == "/depth"));
    }

    #[test]
    fn references_to_elsewhere_are_not_followed() {
        let schemas = Schemas::default();
        for reference in ["http://127.0.0.1:1/x.json", "file:///etc/passwd"] {
            assert!(schemas.compile(&json!({ "$ref": reference })).is_err(), "{reference}");
        }
    }
}
