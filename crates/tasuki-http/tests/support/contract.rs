// SPDX-License-Identifier: Apache-2.0
//! Holds requests and replies against the OpenAPI document, and the document against itself.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};
use tasuki_protocol::Code;

use super::Reply;

static DOCUMENT: LazyLock<Value> = LazyLock::new(tasuki_http::document);

/// The operation that answers a path; a literal path wins over one with a parameter.
fn operation(method: &str, path: &str) -> Option<(&'static str, &'static Value)> {
    let fits = |template: &str| {
        let (mut known, mut given) = (template.split('/'), path.split('/'));
        loop {
            match (known.next(), given.next()) {
                (None, None) => return true,
                (Some(k), Some(g)) if k == g || (k.starts_with('{') && !g.is_empty()) => {}
                _ => return false,
            }
        }
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    fitting.sort_by_key(|(template, _)| template.contains('{'));
    let operation = fitting.first()?.1.get(method)?;
    Some((operation["operationId"].as_str().unwrap(), operation))
}

fn validator(name: String, schema: &Value) -> Arc<Validator> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let made = known.entry(name).or_insert_with(|| {
        // References in a schema begin at the document's root.
        let whole = json!({ "components": DOCUMENT["components"], "allOf": [schema] });
        let made = jsonschema::options().should_validate_formats(true).build(&whole);
        Arc::new(made.expect("the schema is one"))
    });
    made.clone()
}

#[track_caller]
fn fits(name: &str, schema: &Value, value: &Value) {
    let problems: Vec<_> = validator(name.to_owned(), schema)
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(problems.is_empty(), "{name} is not as documented: {problems:?}\n{value}");
}

/// A reply is one that the document announces for its operation.
#[track_caller]
pub(crate) fn check(method: &str, path: &str, reply: &Reply) {
    let problem = reply.status >= 400 && path != "/readyz";
    if problem {
        is_problem(reply);
    }
    let Some((id, operation)) = operation(method, path) else { return };
    let status = reply.status.to_string();
    let documented = &operation["responses"][&status];
    assert!(!documented.is_null(), "{id} does not announce {status}: {}", reply.body);
    let kind = reply.headers["content-type"].to_str().unwrap();
    let kind = kind.split(';').next().unwrap_or(kind);
    let schema = &documented["content"][kind]["schema"];
    assert!(!schema.is_null(), "{id} does not announce {kind} for {status}");
    if kind == "application/json" {
        fits(&format!("{id} {status}"), schema, &reply.body);
    }
    if problem {
        let codes = documented["description"].as_str().unwrap();
        let code = reply.body["code"].as_str().unwrap();
        assert!(codes.split(", ").any(|known| known == code), "{id} does not announce {code}");
    }
}

/// What was accepted is what the document asks for.
#[track_caller]
pub(crate) fn check_request(path: &str, body: &Value) {
    check_request_by("post", path, body);
}

#[track_caller]
pub(crate) fn check_request_by(method: &str, path: &str, body: &Value) {
    let Some((id, operation)) = operation(method, path) else { return };
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    fits(&format!("{id} request"), schema, body);
}

/// One of the document's types, by its name.
#[track_caller]
pub(crate) fn check_type(name: &str, value: &Value) {
    fits(name, &json!({ "$ref": format!("#/components/schemas/{name}") }), value);
}

/// Every error has this shape and no other.
#[track_caller]
fn is_problem(reply: &Reply) {
    let body = &reply.body;
    let mut members: Vec<_> = body.as_object().expect("an error is an object").keys().collect();
    members.sort();
    assert_eq!(members, ["code", "details", "hint", "message", "request_id", "retryable"]);
    for name in ["code", "message", "hint", "request_id"] {
        assert!(body[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {body}");
    }
    assert!(body["retryable"].is_boolean() && body["details"].is_object(), "{body}");
    assert_eq!(body["request_id"], reply.headers["x-request-id"].to_str().unwrap());
    let code = body["code"].as_str().unwrap();
    let known = Code::named(code).unwrap_or_else(|| panic!("{code} has no page"));
    assert_eq!(known.status(), reply.status, "{code}");
    assert_eq!(body["retryable"], known.is_retryable(), "{code}");
}

/// Every operation: its method, its path and its id.
pub(crate) fn table() -> Vec<(String, String, String)> {
    let mut table = Vec::new();
    for (path, operations) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            table.push((method.clone(), path.clone(), id.to_owned()));
        }
    }
    table
}

/// Every operation's id.
pub(crate) fn operations() -> BTreeSet<String> {
    table().into_iter().map(|(.., id)| id).collect()
}

/// The paths that take a body.
pub(crate) fn posts() -> Vec<String> {
    let posts = table().into_iter().filter(|(method, ..)| method == "post");
    posts.map(|(_, path, _)| path).collect()
}

pub(crate) fn operation_id(method: &str, path: &str) -> String {
    operation(method, path).expect("the path is documented").0.to_owned()
}
