// SPDX-License-Identifier: Apache-2.0
//! `docs/limits.md`: every bound of the code (a constant whose name ends in `_MAX`), with its value and
//! what its comment says. Bounds that can be set are in the reference of the configuration.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::source::{comment_above, first_sentence};

/// The crates whose bounds somebody outside may meet, and what they are about.
const CRATES: &[(&str, &str)] = &[
    ("tasuki-core", "What may be asked and stored"),
    ("tasuki-protocol", "Requests and replies"),
    ("tasuki-engine", "Waits, lists and what is read for you"),
    ("tasuki-store", "Storage"),
    ("tasuki-front", "Connections"),
    ("tasuki-http", "The HTTP API"),
    ("tasuki-a2a", "Agent2Agent"),
    ("tasuki-mcp", "MCP"),
    ("tasuki-cli", "The command line"),
    ("tasuki", "The program"),
];

pub(crate) fn render(root: &Path) -> anyhow::Result<String> {
    let mut text = String::from(
        "# Limits\n\nMade by `cargo xtask codegen` from the code. Do not edit.\n\n\
         Everything that grows has a bound, so that nobody's mistake becomes somebody else's outage. What is over a bound \
         is refused with an error that names the bound. Those that can be set (`--limits-…`, quotas of a tenant, terms of a \
         handoff) are in the [configuration](reference/configuration.md) and the [guide on identity](guides/identity.md#tenants).\n",
    );
    for (name, title) in CRATES {
        let mut rows = Vec::new();
        let source = root.join("crates").join(name).join("src");
        let mut files = Vec::new();
        rust_files(&source, &mut files)?;
        files.sort();
        for file in files {
            let inside = file.strip_prefix(&source).unwrap_or(&file).display().to_string();
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {inside}"))?;
            rows.extend(bounds(&text).into_iter().map(|row| (inside.clone(), row)));
        }
        if rows.is_empty() {
            continue;
        }
        text += &format!("\n## {title}\n\n| what | at most | where |\n| --- | --- | --- |\n");
        for (file, Bound { name, value, what }) in rows {
            text += &format!("| {what} | {value} | `{name}` in `{file}` |\n");
        }
    }
    ensure!(text.lines().count() > 150, "there are more limits than that: the scan misses some");
    Ok(text)
}

fn rust_files(folder: &Path, files: &mut Vec<std::path::PathBuf>) -> anyhow::Result<()> {
    let listed = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    for entry in listed {
        let path = entry?.path();
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "rs")
            && !path.file_stem().is_some_and(|it| it.to_string_lossy().ends_with("tests"))
        {
            files.push(path);
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Bound {
    name: String,
    value: String,
    what: String,
}

/// The bounds of one file. Constants within functions and tests are no promise to anybody.
fn bounds(source: &str) -> Vec<Bound> {
    let mut known = BTreeMap::new();
    let mut found = Vec::new();
    let tests = source.find("#[cfg(test)]\nmod tests").unwrap_or(source.len());
    for line in source[..tests].lines() {
        let Some((head, expression)) = line.split_once(" = ") else { continue };
        let Some(declared) = head.split_once("const ").filter(|(before, _)| is_visibility(before))
        else {
            continue;
        };
        let Some((name, _)) = declared.1.split_once(':') else { continue };
        let expression = expression.trim_end_matches(';');
        let value = evaluate(expression, &known);
        if let Some(value) = value {
            known.insert(name.to_owned(), value);
        }
        if !name.ends_with("_MAX") {
            continue;
        }
        let item = format!("{}const {name}", declared.0);
        // A comment ends where another constant begins, so one without its own says what its name says.
        let said = comment_above(source, &item);
        let words = name.trim_end_matches("_MAX").to_lowercase().replace('_', " ");
        let what = said.map_or(words, |said| first_sentence(&said).replace('|', "\\|"));
        let value = value.map_or_else(|| format!("`{expression}`"), |value| told(name, value));
        found.push(Bound { name: name.to_owned(), value, what });
    }
    found
}

fn is_visibility(before: &str) -> bool {
    ["", "pub ", "pub(crate) ", "pub(super) "].contains(&before)
}

/// Sums, products and shifts of numbers and of constants of the same file; times in milliseconds.
fn evaluate(expression: &str, known: &BTreeMap<String, u128>) -> Option<u128> {
    let expression = expression.trim();
    let within = |from: &str| expression.strip_prefix(from)?.strip_suffix(')');
    if let Some(seconds) = within("Duration::from_secs(") {
        return evaluate(seconds, known)?.checked_mul(1000);
    }
    if let Some(milliseconds) = within("Duration::from_millis(") {
        return evaluate(milliseconds, known);
    }
    if expression.contains('(') {
        return None;
    }
    if let Some((left, right)) = expression.split_once(" + ") {
        return evaluate(left, known)?.checked_add(evaluate(right, known)?);
    }
    if let Some((left, right)) = expression.rsplit_once(" << ") {
        return evaluate(left, known)?.checked_shl(u32::try_from(evaluate(right, known)?).ok()?);
    }
    if let Some((left, right)) = expression.rsplit_once(" * ") {
        return evaluate(left, known)?.checked_mul(evaluate(right, known)?);
    }
    let digits: String = expression.chars().filter(|it| *it != '_').collect();
    let digits = digits.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    digits.parse().ok().or_else(|| known.get(expression).copied())
}

/// A number in the unit that the constant's name says.
fn told(name: &str, value: u128) -> String {
    let is_time = name.contains("_MS") || name.contains("TIMEOUT") || name.contains("TIME");
    let units: &[(u128, &str)] = if name.contains("BYTES") {
        &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes")]
    } else if is_time {
        &[(3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")]
    } else {
        &[]
    };
    let exact = units.iter().find(|(unit, _)| value >= *unit && value.is_multiple_of(*unit));
    match exact {
        Some((unit, word)) => format!("{} {word}", grouped(value / unit)),
        None => grouped(value),
    }
}

fn grouped(value: u128) -> String {
    let digits = value.to_string();
    let lead = digits.len() % 3;
    let mut parts: Vec<&str> = Vec::new();
    if lead > 0 {
        parts.push(&digits[..lead]);
    }
    parts.extend((lead..digits.len()).step_by(3).map(|at| &digits[at..at + 3]));
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_told_in_their_units() {
        let source = "/// How long one may be. More.\npub const TEXT_BYTES_MAX: usize = 64 * 1024;\n\
                      const PAGE: usize = 1_000;\n/// How many are read.\nconst READ_MAX: usize = 10 * PAGE;\n\
                      pub const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;\nconst FAR_MAX: u64 = other(1);\n";
        let found: Vec<_> = bounds(source).into_iter().map(|it| (it.what, it.value)).collect();
        let expected = [
            ("How long one may be.", "64 KiB"),
            ("How many are read.", "10,000"),
            ("wait ms", "24 h"),
            ("far", "`other(1)`"),
        ];
        assert_eq!(found, expected.map(|(what, value)| (what.to_owned(), value.to_owned())));
    }
}
