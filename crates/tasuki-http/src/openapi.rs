// SPDX-License-Identifier: Apache-2.0
//! The OpenAPI 3.1 document, made from the table of operations. OpenAPI 3.1 schemas are plain JSON Schema,
//! so the same derive gives them and the published envelope schema (ADR 4).

use std::sync::OnceLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use tasuki_engine::operations::{COMMON_ERRORS, Kind, Right};
use tasuki_protocol::{Code, Problem};

use crate::binding::Binding;
use crate::bindings;

/// Any operation whose request is a body may answer with these.
const BODY_ERRORS: &[Code] = &[
    Code::InvalidJson,
    Code::InvalidRequest,
    Code::BodyTooLarge,
    Code::UnsupportedMediaType,
    Code::RequestTimeout,
    Code::OutcomeUnknown,
];

/// The document as it is committed and served.
#[must_use]
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text =
            serde_json::to_string_pretty(&document()).expect("a document has string keys only");
        text.push('\n');
        text
    })
}

/// The document as a value.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for binding in bindings::all() {
        let operation = operation(&binding, &mut generator);
        let path = paths.entry(binding.path).or_insert_with(|| json!({}));
        path[binding.method] = operation;
    }
    generator.subschema_for::<Problem>();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tasuki",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The handoff broker for AI agents. A 2xx means synced to disk, but for \
                            heartbeats. Every error has the shape of Problem.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": schemas, "securitySchemes": security_schemes() },
        // Where nobody is asked who it is, on a loopback address, nothing is needed.
        "security": [{ "signature": [] }, { "bearer": [] }, { "certificate": [] }, {}],
    })
}

/// How callers show who they are.
fn security_schemes() -> Value {
    json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token, as `tasuki token issue` prints it.",
        },
        "signature": {
            "type": "apiKey",
            "in": "header",
            "name": "Signature",
            "description": "An HTTP message signature (RFC 9421) with an enrolled Ed25519 key and the tag \
                            tasuki-v1 and the broker's key as audience; with Signature-Input and, where there is a body, \
                            Content-Digest.",
        },
        "certificate": {
            "type": "mutualTLS",
            "description": "A client certificate whose Ed25519 key an agent has enrolled.",
        },
    })
}

fn operation(route: &Binding, generator: &mut SchemaGenerator) -> Value {
    let mut parameters = Vec::new();
    for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')) {
        let name = name.trim_end_matches('}');
        let of = route.path.split('/').nth(2).unwrap_or_default().replace('-', " ");
        let of = of.replace("ies", "ys");
        let description = match name {
            "id" => format!("The id of the {}.", of.trim_end_matches('s')),
            name => format!("The {name}."),
        };
        parameters.push(json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string" },
            "description": description,
        }));
    }
    let entry = route.entry;
    if route.is_query() && entry.takes_members() {
        parameters.extend(query_parameters(&(entry.asks)(generator).to_value(), generator));
    }
    let mut operation = json!({
        "operationId": entry.facts.name,
        "summary": entry.facts.summary,
        "tags": [route.path.split('/').nth(2).filter(|_| route.path.starts_with("/v1"))
            .unwrap_or("system")],
        "responses": responses(route, generator),
    });
    if entry.is_public() {
        operation["security"] = json!([]);
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if !route.is_query() {
        operation["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": (entry.asks)(generator) } },
        });
    }
    operation
}

/// Query parameters are a struct whose fields are spread out here.
fn query_parameters(reference: &Value, generator: &mut SchemaGenerator) -> Vec<Value> {
    let name = reference["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    // The struct itself is of no use in the document.
    let Some(schema) = name.and_then(|name| generator.definitions_mut().remove(name)) else {
        return Vec::new();
    };
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    properties
        .iter()
        .map(|(name, schema)| {
            let mut schema = schema.clone();
            let description = schema.as_object_mut().and_then(|s| s.remove("description"));
            let mut parameter = json!({ "name": name, "in": "query", "schema": schema });
            if let Some(description) = description {
                parameter["description"] = description;
            }
            parameter
        })
        .collect()
}

fn responses(route: &Binding, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let entry = route.entry;
    let content = match route.stream {
        None => json!({ "application/json": { "schema": (entry.answers)(generator) } }),
        Some((kinds, _)) => {
            let text = |kind: &str| (kind.to_owned(), json!({ "schema": { "type": "string" } }));
            Value::Object(kinds.split(", ").map(text).collect())
        }
    };
    let success = json!({ "description": "done", "content": content });
    responses.insert(route.success.to_string(), success);
    if route.success == 201 {
        let mut again = responses["201"].clone();
        again["description"] = "the same request was carried out before; this is its reply".into();
        responses.insert("200".into(), again);
    }
    let mut by_status: std::collections::BTreeMap<u16, Vec<&str>> = Default::default();
    let own: Vec<_> = route.entry.errors().collect();
    let stores: &[Code] = match entry.facts.kind {
        Kind::Reads => &[],
        Kind::Brings | Kind::Finishes | Kind::Manages => &[Code::SecretFound],
    };
    for code in own.iter().chain(body_errors(route)).chain(stores).chain(COMMON_ERRORS) {
        by_status.entry(code.status()).or_default().push(code.as_str());
    }
    for (status, mut codes) in by_status {
        codes.sort_unstable();
        codes.dedup();
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        responses.insert(
            status.to_string(),
            json!({
                "description": codes.join(", "),
                "content": { "application/json": { "schema": schema } },
            }),
        );
    }
    if let Some(status) = route.not_now {
        let content = json!({ "application/json": { "schema": (entry.answers)(generator) } });
        responses
            .insert(status.to_string(), json!({ "description": "not now", "content": content }));
    }
    responses.into()
}

fn body_errors(route: &Binding) -> &'static [Code] {
    if route.is_query() { &[] } else { BODY_ERRORS }
}

/// The list of operations as it is committed.
#[must_use]
pub fn operations_text() -> String {
    let mut text =
        serde_json::to_string_pretty(&operations()).expect("a list has string keys only");
    text.push('\n');
    text
}

/// Every operation: what the SDKs' lists are made from. What is asked and answered is named as in the
/// OpenAPI document.
#[must_use]
pub fn operations() -> Value {
    let all = document();
    let listed = bindings::all().into_iter().map(|binding| {
        let entry = binding.entry;
        let facts = &entry.facts;
        let described = &all["paths"][binding.path][binding.method];
        let schema = |content: &Value| {
            let name = content["application/json"]["schema"]["$ref"].as_str();
            name.and_then(|name| name.rsplit('/').next()).map(str::to_owned)
        };
        let success = binding.success.to_string();
        let own: Vec<_> = entry.errors().collect();
        let mut errors: Vec<_> = own.iter().chain(body_errors(&binding)).map(|it| it.as_str()).collect();
        errors.sort_unstable();
        errors.dedup();
        let (right, permission) = right(facts.right);
        let mut members: Vec<_> = entry.members().names().collect();
        members.sort_unstable();
        json!({
            "name": facts.name,
            "summary": facts.summary,
            "kind": facts.kind.as_str(),
            "right": right,
            "permission": permission,
            "roles": facts.right.roles().iter().map(|role| role.as_str()).collect::<Vec<_>>(),
            "waits": facts.waits,
            "streams": entry.is_streamed(),
            "idempotent": idempotent(&binding, &members),
            "on": entry.on,
            "asks": schema(&described["requestBody"]["content"]),
            "members": members,
            "answers": schema(&described["responses"][&success]["content"]),
            "errors": errors,
            "http": { "method": binding.method.to_uppercase(), "path": binding.path, "status": binding.success },
        })
    });
    let mut listed: Vec<Value> = listed.collect();
    listed.sort_by_key(|operation| operation["name"].as_str().map(str::to_owned));
    let common: Vec<_> = COMMON_ERRORS.iter().map(|code| code.as_str()).collect();
    json!({ "version": env!("CARGO_PKG_VERSION"), "common_errors": common, "operations": listed })
}

/// By what a request is safe to repeat: it changes nothing, a key or a request's id makes it so, or
/// what it says.
fn idempotent(binding: &Binding, members: &[&str]) -> &'static str {
    match binding.entry.facts.kind {
        Kind::Reads => "reads",
        _ if members.contains(&"idempotency_key") => "idempotency_key",
        _ if members.contains(&"request_id") => "request_id",
        Kind::Brings | Kind::Finishes | Kind::Manages => "content",
    }
}

fn right(right: Right) -> (&'static str, Option<String>) {
    match right {
        Right::Public => ("public", None),
        Right::Known => ("known", None),
        Right::Has(permission) => ("has", Some(permission.to_string())),
        Right::Each(permission) => ("each", Some(permission.to_string())),
        Right::Decides(permission) => ("decides", Some(permission.to_string())),
        Right::LooksAfter(permission) => ("looks_after", Some(permission.to_string())),
        Right::Operator => ("operator", None),
    }
}
