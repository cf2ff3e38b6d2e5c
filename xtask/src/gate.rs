// SPDX-License-Identifier: Apache-2.0
//! Schemas that were released bind: what fitted one of them must fit what is published now, or the
//! major must rise. `api/schemas/released` keeps each, as `NAME-MAJOR.json`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value};

const RELEASED: &str = "api/schemas/released";

/// Everything that the schemas of today break.
pub(crate) fn findings(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for entry in fs::read_dir(root.join(RELEASED)).context("cannot list the released schemas")? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let Some((name, major)) = file.strip_suffix(".json").and_then(|name| name.rsplit_once('-'))
        else {
            findings.push(format!("{RELEASED}/{file}: expected NAME-MAJOR.json"));
            continue;
        };
        let current = root.join("api/schemas").join(format!("{name}.json"));
        let (old, new) = (read(&root.join(RELEASED).join(&file))?, read(&current)?);
        for broken in breaks(&old, &new) {
            findings.push(format!(
                "api/schemas/{name}.json: {broken}; that breaks who wrote for major {major}: keep it, \
                 or raise the major and translate"
            ));
        }
    }
    Ok(findings)
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// What of an old schema a new one no longer allows, or asks for besides.
pub(crate) fn breaks(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(Side { root: old, at: old }, Side { root: new, at: new }, "", 0, &mut found);
    found
}

#[derive(Clone, Copy)]
struct Side<'s> {
    root: &'s Value,
    at: &'s Value,
}

impl<'s> Side<'s> {
    fn to(self, at: &'s Value) -> Self {
        let mut at = at;
        while let Some(reference) = at.get("$ref").and_then(Value::as_str) {
            match reference.strip_prefix('#').and_then(|path| self.root.pointer(path)) {
                Some(found) => at = found,
                None => break,
            }
        }
        Self { at, ..self }
    }

    fn properties(self) -> Option<&'s Map<String, Value>> {
        self.at.get("properties").and_then(Value::as_object)
    }

    fn names(self, member: &str) -> Vec<&'s str> {
        let list = self.at.get(member).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The types it allows; none means any.
    fn types(self) -> Vec<&'s str> {
        match self.at.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(_)) => self.names("type"),
            _ => Vec::new(),
        }
    }

    /// The words it allows, as `enum` or as alternatives of one word each.
    fn words(self) -> Option<Vec<&'s str>> {
        if self.at.get("enum").is_some() {
            return Some(self.names("enum"));
        }
        let alternatives = self.at.get("oneOf").or_else(|| self.at.get("anyOf"))?.as_array()?;
        let word = |one: &'s Value| one.get("const").and_then(Value::as_str);
        alternatives.iter().map(word).collect()
    }
}

/// How deep schemas are compared; they refer to themselves.
const DEPTH_MAX: usize = 12;

fn compare(old: Side<'_>, new: Side<'_>, path: &str, depth: usize, found: &mut Vec<String>) {
    let (old, new) = (old.to(old.at), new.to(new.at));
    if depth > DEPTH_MAX || old.at == new.at && old.root == new.root {
        return;
    }
    let shown = if path.is_empty() { "/" } else { path };
    let (was, is) = (old.types(), new.types());
    let narrower =
        |kind: &&&str| !(is.contains(*kind) || **kind == "integer" && is.contains(&"number"));
    if !is.is_empty() && (was.is_empty() || was.iter().any(|kind| narrower(&kind))) {
        found.push(format!("{shown} was of type {was:?} and is of type {is:?}"));
    }
    if let Some(new) = new.words() {
        match old.words() {
            Some(old) => {
                for word in old.iter().filter(|word| !new.contains(word)) {
                    found.push(format!("{shown} no longer takes {word:?}"));
                }
            }
            None => found.push(format!("{shown} takes certain words only")),
        }
    }
    let was_needed = old.names("required");
    for name in new.names("required").iter().filter(|name| !was_needed.contains(name)) {
        found.push(format!("{path}/{name} is required"));
    }
    let closed = |side: Side<'_>| side.at.get("additionalProperties") == Some(&Value::Bool(false));
    if closed(new) && !closed(old) {
        found.push(format!("{shown} no longer takes members that it does not know"));
    }
    for (name, schema) in old.properties().into_iter().flatten() {
        let at = format!("{path}/{name}");
        match new.properties().and_then(|properties| properties.get(name)) {
            Some(now) => compare(old.to(schema), new.to(now), &at, depth + 1, found),
            None => found.push(format!("{at} is gone")),
        }
    }
    if let (Some(was), Some(is)) = (old.at.get("items"), new.at.get("items")) {
        compare(old.to(was), new.to(is), &format!("{path}/*"), depth + 1, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object", "required": ["a"],
            "properties": {
                "a": { "type": "string" }, "n": { "type": "integer" },
                "list": { "type": "array", "items": { "$ref": "#/$defs/Item" } },
                "word": { "oneOf": [{ "const": "x" }, { "const": "y" }] },
            },
            "$defs": { "Item": { "type": "object", "properties": { "id": { "type": "string" } } } },
        })
    }

    fn changed(pointer: &str, value: Value) -> Vec<String> {
        let mut new = schema();
        *new.pointer_mut(pointer).unwrap() = value;
        breaks(&schema(), &new)
    }

    #[test]
    fn what_only_adds_breaks_nothing() {
        assert_eq!(breaks(&schema(), &schema()), Vec::<String>::new());
        let mut new = schema();
        new["properties"]["b"] = json!({ "type": "string" });
        new["properties"]["n"] = json!({ "type": ["number", "null"] });
        new["properties"]["word"]["oneOf"] =
            json!([{ "const": "x" }, { "const": "y" }, { "const": "z" }]);
        new["$defs"]["Item"]["properties"]["title"] = json!({ "type": "string" });
        assert_eq!(breaks(&schema(), &new), Vec::<String>::new());
    }

    #[test]
    fn every_way_to_break_is_seen() {
        for (pointer, value) in [
            ("/properties/a", json!({ "type": "integer" })),
            ("/properties", json!({ "a": { "type": "string" } })),
            ("/required", json!(["a", "n"])),
            ("/properties/word/oneOf", json!([{ "const": "x" }])),
            ("/properties/word", json!({ "enum": ["x"] })),
            ("/$defs/Item/properties/id", json!({ "type": "array" })),
            ("/$defs/Item", json!({ "type": "object", "required": ["id"] })),
            ("/properties/n", json!({ "enum": ["1"] })),
        ] {
            assert!(!changed(pointer, value.clone()).is_empty(), "{pointer} {value}");
        }
        let mut closed = schema();
        closed["additionalProperties"] = json!(false);
        assert_eq!(breaks(&schema(), &closed).len(), 1);
    }
}
