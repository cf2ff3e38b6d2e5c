// SPDX-License-Identifier: Apache-2.0
//! The JSON Schemas of what is published for others to implement. The same texts are served and
//! committed (`api/schemas`), each under the address that its `$id` names.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, generate::SchemaSettings};
use tasuki_core::manifest::Manifest;
use tasuki_core::{Envelope, Record};
use tasuki_front::Failed;

use crate::routes::no_such_route;

/// Each schema by the name of its file.
static SCHEMAS: LazyLock<[(&str, String); 3]> = LazyLock::new(|| {
    [
        ("envelope.json", text::<Envelope>("envelope.json")),
        ("event.json", text::<Record>("event.json")),
        ("manifest.json", text::<Manifest>("manifest.json")),
    ]
});

fn text<T: JsonSchema>(name: &str) -> String {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    schema.insert("$id".into(), format!("/v1/schemas/{name}").into());
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

/// The schemas, each with the name of its file.
#[must_use]
pub fn schema_texts() -> &'static [(&'static str, String)] {
    SCHEMAS.as_slice()
}

pub(crate) async fn serve(name: Result<Path<String>, PathRejection>) -> Result<Response, Failed> {
    let Ok(Path(name)) = name else { return Err(no_such_route().into()) };
    let found = SCHEMAS.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(no_such_route)?;
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], text.as_str()).into_response())
}
