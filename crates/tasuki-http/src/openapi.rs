// SPDX-License-Identifier: Apache-2.0
//! The OpenAPI 3.1 document, made from the route table. OpenAPI 3.1 schemas are plain JSON Schema,
//! so the same derive gives them and the published envelope schema (ADR 4).

use std::sync::OnceLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use tasuki_protocol::{Code, Problem};

use crate::routes::{self, BODY_ERRORS, COMMON_ERRORS, Response, Route};

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
    for route in routes::all() {
        let operation = operation(&route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation;
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
        "components": { "schemas": schemas },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
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
    if let Some(query) = route.query {
        parameters.extend(query_parameters(&query(generator).to_value(), generator));
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "tags": [route.path.split('/').nth(2).filter(|_| route.path.starts_with("/v1"))
            .unwrap_or("system")],
        "responses": responses(route, generator),
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(request) = route.request {
        operation["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": request(generator) } },
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

fn responses(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let content = match &route.response {
        Response::Json(schema) => json!({ "application/json": { "schema": schema(generator) } }),
        Response::Text(kind) => json!({ *kind: { "schema": { "type": "string" } } }),
    };
    let success = json!({ "description": "done", "content": content });
    responses.insert(route.success.to_string(), success);
    if route.success == 201 {
        let mut again = responses["201"].clone();
        again["description"] = "the same request was carried out before; this is its reply".into();
        responses.insert("200".into(), again);
    }
    let body: &[Code] = if route.request.is_some() { BODY_ERRORS } else { &[] };
    let mut by_status: std::collections::BTreeMap<u16, Vec<&str>> = Default::default();
    for code in route.errors.iter().chain(body).chain(COMMON_ERRORS) {
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
    if let Some((status, schema)) = route.other {
        let content = json!({ "application/json": { "schema": schema(generator) } });
        responses
            .insert(status.to_string(), json!({ "description": "not now", "content": content }));
    }
    responses.into()
}
