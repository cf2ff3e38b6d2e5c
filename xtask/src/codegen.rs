// SPDX-License-Identifier: Apache-2.0
//! Files that are made from the code and committed, so that people can read them and reviewers see
//! them change.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use schemars::{JsonSchema, generate::SchemaSettings};
use tasuki_core::manifest::Manifest;
use tasuki_core::{Envelope, Record, table};

/// Every generated file: where it is, from the root of the repository, and what it says.
fn files() -> anyhow::Result<Vec<(&'static str, String)>> {
    Ok(vec![
        ("docs/reference/handoff-states.md", table::render()),
        ("api/openapi.json", tasuki_http::document_text().to_owned()),
        ("api/operations.json", tasuki_http::operations_text()),
        ("api/schemas/envelope.json", schema::<Envelope>()?),
        ("api/schemas/event.json", schema::<Record>()?),
        ("api/schemas/manifest.json", schema::<Manifest>()?),
    ])
}

pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    for (path, content) in files()? {
        let file = root.join(path);
        if fs::read_to_string(&file).is_ok_and(|found| found == content) {
            continue;
        }
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {path}'s folder"))?;
        }
        fs::write(&file, content).with_context(|| format!("cannot write {path}"))?;
        println!("wrote {path}");
    }
    Ok(())
}

pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let is_stale = |path: &str, content: &str| {
        fs::read_to_string(root.join(path)).map_or(true, |found| found != content)
    };
    let files = files()?;
    let stale: Vec<&str> = files
        .iter()
        .filter(|(path, content)| is_stale(path, content))
        .map(|(path, _)| *path)
        .collect();
    if !stale.is_empty() {
        bail!("out of date: {}\nrun `cargo xtask codegen` and commit the result", stale.join(", "));
    }
    Ok(())
}

fn schema<T: JsonSchema>() -> anyhow::Result<String> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let mut text = serde_json::to_string_pretty(&schema)
        .with_context(|| format!("cannot write the schema of {}", T::schema_name()))?;
    text.push('\n');
    Ok(text)
}
