// SPDX-License-Identifier: Apache-2.0
//! The checks, as they are written down in `conformance/`: read, put together with the blocks and
//! fixtures that they name, and refused where they are not understood. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::embedded;
use super::matcher::{Expect, Schemas};
use super::value::function;

/// The levels of the protocol, each built on those before it.
pub(crate) const LEVELS: [&str; 5] = ["schema", "delivery", "chain", "context", "versioning"];
/// How deep blocks may use blocks.
const BLOCKS_DEEP: usize = 8;

/// All checks, with nothing left to look up.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    pub(crate) suite: String,
    pub(crate) protocol: u32,
    /// Method and path of every operation that is used.
    pub(crate) operations: BTreeMap<String, Operation>,
    pub(crate) schemas: Schemas,
    pub(crate) checks: Vec<Check>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) path: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) id: String,
    pub(crate) level: String,
    /// What is claimed.
    pub(crate) title: String,
    /// Why it matters.
    pub(crate) reason: String,
    /// The rule of `docs/spec/README.md` that it holds an implementation to.
    pub(crate) rule: String,
    pub(crate) steps: Vec<Step>,
}

/// One of: a call (`do`), a look at what is known (`value`), or names for it (`set`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Step {
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) set: Map<String, Value>,
    #[serde(rename = "use", skip_serializing_if = "Option::is_none")]
    block: Option<String>,
    #[serde(rename = "with", skip_serializing_if = "Map::is_empty")]
    given: Map<String, Value>,
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub(crate) operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) path: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) query: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<Value>,
    /// A body as it is, which need not be JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw: Option<String>,
    /// The same call so many times at the same time; `${n}` counts from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_once: Option<u32>,
    /// The call is repeated until it is answered as expected, or until the time is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) within_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<Value>,
    /// Names for what is found at JSON pointers of the answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) save: BTreeMap<String, String>,
}

/// A file with the checks of one level.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    level: String,
    checks: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    title: String,
    reason: String,
    rule: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    suite: String,
    protocol: u32,
    /// Schemas by name, each with its file.
    schemas: BTreeMap<String, String>,
    blocks: BTreeMap<String, Block>,
}

/// Steps that many checks begin with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    #[expect(dead_code, reason = "it is for readers of the file")]
    about: String,
    defaults: Map<String, Value>,
    steps: Vec<Step>,
}

impl Suite {
    /// The suite that this program brings along.
    pub(crate) fn own() -> Result<Self, String> {
        let pages: Vec<_> = embedded::CHECKS.iter().map(|(_, text)| *text).collect();
        let document =
            serde_json::from_str(embedded::OPENAPI).map_err(|error| error.to_string())?;
        Self::put_together(embedded::FRAME, &pages, &document)
    }

    /// A suite as [`Suite::document`] writes it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let suite: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        suite.validate()?;
        Ok(suite)
    }

    pub(crate) fn document(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("a suite is made of JSON") + "\n"
    }

    fn put_together(frame: &str, pages: &[&str], openapi: &Value) -> Result<Self, String> {
        let frame: Frame = parsed("suite.json", frame)?;
        let mut checks = Vec::new();
        for page in pages {
            let page: Page = parsed("a page of checks", page)?;
            for check in page.checks {
                let Written { id, title, reason, rule, steps } = check;
                let steps = with_blocks(&steps, &frame.blocks, BLOCKS_DEEP)
                    .and_then(|steps| steps.into_iter().map(with_files).collect())
                    .map_err(|error| format!("{id}: {error}"))?;
                let level = page.level.clone();
                checks.push(Check { id, level, title, reason, rule, steps });
            }
        }
        let schema = |(name, path): (&String, &String)| {
            Ok((name.clone(), parsed(path, embedded::fixture(path)?)?))
        };
        let suite = Self {
            suite: frame.suite,
            protocol: frame.protocol,
            operations: operations(openapi, &checks),
            schemas: frame.schemas.iter().map(schema).collect::<Result<_, String>>()?,
            checks,
        };
        suite.validate()?;
        Ok(suite)
    }

    /// What cannot be understood would be skipped by whoever does not look closely.
    fn validate(&self) -> Result<(), String> {
        let mut ids = BTreeSet::new();
        for check in &self.checks {
            let Check { id, level, title, reason, rule, steps } = check;
            let wrong = |what: &str| Err(format!("{id}: {what}"));
            if !ids.insert(id) {
                return wrong("another check has the same id");
            }
            if !LEVELS.contains(&&**level) || !id.starts_with(&format!("{level}.")) {
                return wrong("its id does not begin with a level that there is");
            }
            if [title, reason, rule].iter().any(|text| text.trim().is_empty()) {
                return wrong("it needs a title, a reason and a rule");
            }
            if steps.iter().all(|step| step.expect.is_none()) {
                return wrong("it expects nothing, so it could not fail");
            }
            for (number, step) in steps.iter().enumerate() {
                self.validate_step(step)
                    .map_err(|error| format!("{id}, step {}: {error}", number + 1))?;
            }
        }
        Ok(())
    }

    fn validate_step(&self, step: &Step) -> Result<(), String> {
        let kinds = [!step.set.is_empty(), step.operation.is_some(), step.value.is_some()];
        if kinds.iter().filter(|kind| **kind).count() != 1 || step.block.is_some() {
            return Err("a step is one of do, value and set".into());
        }
        if let Some(expect) = &step.expect {
            Expect::read(expect)?;
        }
        if !kinds[0] && step.expect.is_none() {
            return Err("it expects nothing".into());
        }
        if step.body.is_some() && step.raw.is_some() {
            return Err("it has two bodies".into());
        }
        let Some(name) = &step.operation else { return Ok(()) };
        let operation = self.operations.get(name);
        let operation = operation.ok_or_else(|| format!("there is no operation {name}"))?;
        let named: BTreeSet<_> = step.path.keys().map(String::as_str).collect();
        if parameters(&operation.path).collect::<BTreeSet<_>>() != named {
            return Err(format!("{} needs other parameters than {named:?}", operation.path));
        }
        Ok(())
    }
}

fn parsed<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))
}

/// The names in braces of a path.
fn parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn operations(openapi: &Value, checks: &[Check]) -> BTreeMap<String, Operation> {
    let used: BTreeSet<_> =
        checks.iter().flat_map(|check| &check.steps).filter_map(|s| s.operation.as_ref()).collect();
    let mut found = BTreeMap::new();
    for (path, methods) in openapi["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
            if used.contains(&id) {
                found.insert(id, Operation { method: method.to_uppercase(), path: path.clone() });
            }
        }
    }
    found
}

/// Steps with every `use` written out: names for what was given, then the block's own steps.
fn with_blocks(
    steps: &[Step],
    blocks: &BTreeMap<String, Block>,
    deep: usize,
) -> Result<Vec<Step>, String> {
    let mut whole = Vec::new();
    for step in steps {
        let Some(name) = &step.block else {
            whole.push(step.clone());
            continue;
        };
        let block = blocks.get(name).filter(|_| deep > 0);
        let block = block.ok_or_else(|| format!("there is no block {name}"))?;
        if let Some(unknown) = step.given.keys().find(|name| !block.defaults.contains_key(*name)) {
            return Err(format!("the block {name} takes no {unknown}"));
        }
        let mut set = block.defaults.clone();
        set.extend(step.given.clone());
        if !set.is_empty() {
            whole.push(Step { set, ..Step::default() });
        }
        whole.extend(with_blocks(&block.steps, blocks, deep - 1)?);
    }
    Ok(whole)
}

/// A step with the content of every file that it names.
fn with_files(step: Step) -> Result<Step, String> {
    let whole = serde_json::to_value(step).map_err(|error| error.to_string())?;
    serde_json::from_value(filed(whole)?).map_err(|error| error.to_string())
}

fn filed(value: Value) -> Result<Value, String> {
    Ok(match value {
        Value::Array(items) => {
            Value::Array(items.into_iter().map(filed).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => match function(&members) {
            Some(("file", Value::String(name))) => {
                let (path, pointer) = name.split_once('#').unwrap_or((name, ""));
                let whole: Value = parsed(path, embedded::fixture(path)?)?;
                let part = whole.pointer(pointer).cloned();
                part.ok_or_else(|| format!("{path} has nothing at {pointer}"))?
            }
            _ => {
                let member = |(name, value)| Ok((name, filed(value)?));
                Value::Object(members.into_iter().map(member).collect::<Result<_, String>>()?)
            }
        },
        plain => plain,
    })
}

/// The checks without their steps, for listings.
pub(crate) fn listed(check: &Check) -> Value {
    let Check { id, level, title, reason, rule, .. } = check;
    json!({ "id": id, "level": level, "title": title, "reason": reason, "rule": rule })
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;
