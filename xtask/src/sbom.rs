// SPDX-License-Identifier: Apache-2.0
//! The list of what is in the binaries, as a CycloneDX document: every crate that `tasuki` and
//! `tasuki-tools` are built from, with its version, licence, checksum and what it needs. Made from
//! Cargo's own records, without the network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// What is shipped.
const SHIPPED: &[&str] = &["tasuki", "tasuki-tools"];

/// Writes the document to a file, or prints it.
pub(crate) fn run(root: &Path, to: Option<&str>) -> anyhow::Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    // One platform, so that every machine finds the same and needs no crate of another one.
    let arguments = "metadata --format-version 1 --locked --offline \
                     --filter-platform x86_64-unknown-linux-gnu";
    let ran = Command::new(cargo).args(arguments.split_whitespace()).current_dir(root).output();
    let ran = ran.context("cannot run cargo")?;
    if !ran.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let metadata: Value = serde_json::from_slice(&ran.stdout).context("cargo wrote no JSON")?;
    let lock =
        std::fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let document = document(&metadata, &checksums(&lock)?)?;
    let text = format!("{document:#}\n");
    match to {
        Some(file) => std::fs::write(file, text).with_context(|| format!("cannot write {file}")),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}

/// The checksum of each crate that has one, by name and version.
fn checksums(lock: &str) -> anyhow::Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse().context("cannot read Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let text = |package: &toml::Value, name: &str| {
        package.get(name).and_then(toml::Value::as_str).map(str::to_owned)
    };
    let known = packages.filter_map(|package| {
        let key = (text(package, "name")?, text(package, "version")?);
        Some((key, text(package, "checksum")?))
    });
    Ok(known.collect())
}

fn document(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
) -> anyhow::Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|it| (text(&it["id"]), it)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|it| (text(&it["id"]), it)).collect();
    let mut waiting: Vec<String> = packages
        .iter()
        .filter(|(_, it)| SHIPPED.iter().any(|name| it["name"] == **name))
        .map(|(id, _)| id.clone())
        .collect();
    if waiting.len() != SHIPPED.len() {
        bail!("expected the packages {}", SHIPPED.join(" and "));
    }
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    while let Some(id) = waiting.pop() {
        if needs.contains_key(&id) {
            continue;
        }
        let node = nodes.get(&id).with_context(|| format!("cargo does not say what {id} needs"))?;
        // What only tests need is not shipped.
        let shipped = |dep: &Value| list(&dep["dep_kinds"]).iter().any(|it| it["kind"] != "dev");
        let below: BTreeSet<_> = list(&node["deps"])
            .iter()
            .filter(|it| shipped(it))
            .map(|it| text(&it["pkg"]))
            .collect();
        waiting.extend(below.iter().cloned());
        needs.insert(id, below);
    }
    let reference = |id: &String| {
        let package = &packages[id];
        format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
    };
    let component = |id: &String| {
        let package = &packages[id];
        let key = (text(&package["name"]), text(&package["version"]));
        let mut component = json!({
            "type": if SHIPPED.contains(&key.0.as_str()) { "application" } else { "library" },
            "bom-ref": reference(id), "name": key.0, "version": key.1, "purl": reference(id),
        });
        if let Some(licence) = package["license"].as_str() {
            component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        if let Some(checksum) = checksums.get(&key) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        component
    };
    let mut components: Vec<_> = needs.keys().map(component).collect();
    components.sort_by_key(|it| text(&it["bom-ref"]));
    let mut dependencies: Vec<_> = needs
        .iter()
        .map(|(id, below)| {
            let mut below: Vec<_> = below.iter().map(reference).collect();
            below.sort();
            json!({ "ref": reference(id), "dependsOn": below })
        })
        .collect();
    dependencies.sort_by_key(|it| text(&it["ref"]));
    let main = packages.iter().find(|(_, it)| it["name"] == "tasuki").map(|(id, _)| component(id));
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": main },
        "components": components, "dependencies": dependencies,
    }))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_is_listed_and_what_only_tests_need_is_not() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let dep = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let packages = ["tasuki", "tasuki-tools", "used", "tested"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                { "id": "tasuki", "deps": [dep("used", Value::Null), dep("tested", json!("dev"))] },
                { "id": "tasuki-tools", "deps": [] },
                { "id": "used", "deps": [] },
                { "id": "tested", "deps": [] },
            ] },
        });
        let sums =
            checksums("[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"ab\"");
        let made = document(&metadata, &sums.unwrap()).unwrap();
        let names: Vec<_> =
            made["components"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(names, ["tasuki-tools", "tasuki", "used"]);
        assert_eq!(made["components"][2]["hashes"][0]["content"], "ab");
        assert_eq!(made["components"][2]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(made["dependencies"][1]["dependsOn"], json!(["pkg:cargo/used@1.0.0"]));
    }
}
