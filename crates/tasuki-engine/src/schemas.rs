// SPDX-License-Identifier: Apache-2.0
//! JSON Schemas that agents and senders gave, compiled once and kept while they are used.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};
use tasuki_core::envelope::{Fault, Payload};
use tasuki_core::manifest::bounds::{self, PATTERN_COMPILED_BYTES_MAX};
use tasuki_core::{Hash, canonical};

/// How much compiled schemas may take together, in bytes as far as they can be told. Beyond it the
/// oldest are forgotten.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// What a compiled schema takes for each byte of its text, and for each pattern, at a guess.
const COMPILED_PER_BYTE: usize = 32;
const COMPILED_PER_PATTERN: usize = 16 << 10;
/// How many faults are named.
const FAULTS_MAX: usize = 20;
/// How much of a fault's text is shown: it may quote what was sent.
const FAULT_CHARS_MAX: usize = 300;

#[derive(Default)]
pub(crate) struct Schemas {
    compiled: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    known: HashMap<Hash, Arc<Validator>>,
    /// The oldest first, with what each takes.
    order: VecDeque<(Hash, usize)>,
    bytes: usize,
}

impl Kept {
    fn keep(&mut self, hash: Hash, made: Arc<Validator>, bytes: usize) {
        if self.known.insert(hash, made).is_some() {
            return;
        }
        self.order.push_back((hash, bytes));
        self.bytes += bytes;
        while self.bytes > KEPT_BYTES_MAX
            && let Some((oldest, bytes)) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            self.bytes -= bytes;
        }
    }
}

/// What holding a value against a schema came to.
pub(crate) struct Held {
    pub(crate) faults: Vec<Fault>,
    /// What it took; its tenant pays for it.
    pub(crate) steps: u64,
}

impl Held {
    fn not(problem: String, steps: u64) -> Self {
        Self { faults: vec![Fault { path: String::new(), problem }], steps }
    }
}

impl Schemas {
    /// Compiles a schema, or says what is wrong with it. References to elsewhere are not followed, and
    /// patterns are matched by an engine that takes the same time for each letter.
    pub(crate) fn compile(&self, schema: &Value) -> Result<Arc<Validator>, String> {
        let body = canonical::Body::of(schema);
        let known = self.kept().known.get(&body.hash).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        bounds::check(schema).map_err(|passed| passed.to_string())?;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_COMPILED_BYTES_MAX)
            .dfa_size_limit(PATTERN_COMPILED_BYTES_MAX);
        let options = jsonschema::draft202012::options().with_pattern_options(patterns);
        let made = options.build(schema).map_err(|error| shortened(&error.to_string()))?;
        let made = Arc::new(made);
        let text = body.text();
        let bytes = text.len() * COMPILED_PER_BYTE
            + text.matches("\"pattern").count() * COMPILED_PER_PATTERN;
        self.kept().keep(body.hash, made.clone(), bytes);
        Ok(made)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.compiled.lock().expect("no holder of this lock panics")
    }

    /// Everything that keeps a value from fitting a schema.
    pub(crate) fn hold(&self, schema: &Value, value: &Value) -> Held {
        let validator = match self.compile(schema) {
            Ok(validator) => validator,
            Err(problem) => return Held::not(problem, 0),
        };
        let steps = match bounds::steps(schema, value) {
            Ok(steps) => steps,
            Err(passed) => {
                let problem = format!("holding it against the schema {passed}");
                return Held::not(problem, passed.max);
            }
        };
        if validator.is_valid(value) {
            return Held { faults: Vec::new(), steps };
        }
        if !bounds::can_name_faults(schema, value) {
            let problem = "does not fit, and has too many alternatives to say where";
            return Held::not(problem.to_owned(), steps);
        }
        Held { faults: faults(&validator, value), steps }
    }

    /// The same for a payload. Its `type` is the envelope's business unless the schema speaks of it.
    pub(crate) fn hold_payload(&self, schema: &Value, payload: &Payload) -> Held {
        let speaks_of_type = schema.pointer("/properties/type").is_some();
        let mut members: Map<String, Value> = payload.members().clone();
        if !speaks_of_type {
            members.remove("type");
        }
        self.hold(schema, &Value::Object(members))
    }
}

/// Takes a schema of a stranger in and holds a value against it, as is done for what agents send. Says
/// how many faults were named, or nothing where the schema is not taken.
#[must_use]
pub fn faults_by(schema: &Value, value: &Value) -> Option<usize> {
    let schemas = Schemas::default();
    schemas.compile(schema).ok()?;
    Some(schemas.hold(schema, value).faults.len())
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
        assert_eq!(schemas.hold_payload(&schema, &good).faults, []);
        let bad = payload(json!({ "type": "ask", "depth": "deep" }));
        let faults = schemas.hold_payload(&schema, &bad).faults;
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

    #[test]
    fn what_is_kept_is_bounded_by_its_bytes() {
        let schemas = Schemas::default();
        for number in 0..40 {
            let title = format!("{number} {}", "x".repeat(60_000));
            schemas.compile(&json!({ "title": title, "type": "string" })).unwrap();
        }
        let kept = schemas.kept();
        assert!(kept.bytes <= KEPT_BYTES_MAX && kept.known.len() == kept.order.len());
        assert!((10..40).contains(&kept.known.len()), "{}", kept.known.len());
    }

    #[test]
    fn the_deepest_chains_of_references_that_are_let_through_fit_a_thread() {
        let links: [fn(serde_json::Value) -> serde_json::Value; 8] = [
            |next| next,
            |next| json!({ "allOf": [next] }),
            |next| json!({ "anyOf": [{ "type": "null" }, next] }),
            |next| json!({ "not": { "not": next } }),
            |next| json!({ "if": next, "then": { "type": "string" } }),
            |next| json!({ "properties": { "a": next } }),
            |next| json!({ "prefixItems": [next], "items": { "type": "null" } }),
            |next| json!({ "allOf": [next], "unevaluatedProperties": false }),
        ];
        let work = move || {
            for link in links {
                let schemas = Schemas::default();
                let chain = |length: usize| {
                    let mut defs = serde_json::Map::new();
                    for number in 0..length {
                        let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
                        defs.insert(format!("d{number}"), link(next));
                    }
                    defs.insert(format!("d{length}"), json!({ "type": "string" }));
                    json!({ "$ref": "#/$defs/d0", "$defs": defs })
                };
                let deepest = (1..200).take_while(|it| bounds::check(&chain(*it)).is_ok()).last();
                let deepest = chain(deepest.expect("one link is let through"));
                assert!(schemas.compile(&deepest).is_ok(), "{deepest}");
                for value in [json!("x"), json!(1), json!({ "a": { "a": 1 } }), json!([[[1]]])] {
                    schemas.hold(&deepest, &value);
                }
            }
        };
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        thread.spawn(work).unwrap().join().unwrap();
    }

    /// Run on a stack as small as that of the threads which do this.
    #[test]
    fn the_deepest_schema_and_value_that_are_let_through_fit_a_thread() {
        let work = || {
            let schemas = Schemas::default();
            let inside = (0..12).fold(json!({ "$ref": "#" }), |it, _| json!({ "allOf": [it] }));
            let schema = json!({ "properties": { "a": inside }, "type": "object" });
            let mut deepest = 0;
            for depth in 1..64 {
                let value = (0..depth).fold(json!({}), |it, _| json!({ "a": it }));
                let bad = (0..depth).fold(json!(1), |it, _| json!({ "a": it }));
                if bounds::steps(&schema, &value).is_err() {
                    break;
                }
                deepest = depth;
                assert!(schemas.hold(&schema, &value).faults.is_empty());
                assert_eq!(schemas.hold(&schema, &bad).faults.len(), 1);
            }
            assert!((4..64).contains(&deepest), "{deepest}");
        };
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        thread.spawn(work).unwrap().join().unwrap();
    }
}
