// SPDX-License-Identifier: Apache-2.0
//! How often the search for secrets is wrong: it looks at texts that have none, and whatever it finds is
//! a false alarm.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;
use tasuki_core::secrets;

/// `cargo xtask alarms FOLDER`: every text of every file, as JSON where it is that, else line by line.
pub(crate) fn run(folder: &str) -> anyhow::Result<()> {
    let mut seen = Seen::default();
    seen.folder(Path::new(folder))?;
    println!("{} texts, {} bytes", seen.texts, seen.bytes);
    for (kind, count) in &seen.found {
        println!("{kind}: {count}");
    }
    let (certain, likely) = (seen.certain, seen.likely);
    println!("refused (certain): {certain}, told (likely): {likely}");
    Ok(())
}

#[derive(Default)]
struct Seen {
    texts: u64,
    bytes: u64,
    certain: u64,
    likely: u64,
    found: BTreeMap<String, u64>,
}

impl Seen {
    fn folder(&mut self, folder: &Path) -> anyhow::Result<()> {
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry.context("cannot list a folder")?.path();
            if path.is_dir() {
                self.folder(&path)?;
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                self.file(&text);
            }
        }
        Ok(())
    }

    fn file(&mut self, text: &str) {
        if let Ok(value) = serde_json::from_str(text) {
            return self.value(&value);
        }
        for line in text.lines() {
            let value = serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
            self.value(&value);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.texts += 1;
                self.bytes += text.len() as u64;
                for found in secrets::scan(value) {
                    let count =
                        if found.kind.is_certain() { &mut self.certain } else { &mut self.likely };
                    *count += 1;
                    *self.found.entry(found.kind.to_string()).or_default() += 1;
                }
            }
            Value::Array(items) => items.iter().for_each(|value| self.value(value)),
            Value::Object(members) => members.values().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
