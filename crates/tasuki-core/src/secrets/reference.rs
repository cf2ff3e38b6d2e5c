// SPDX-License-Identifier: Apache-2.0
//! The scan in its plain form: a search through the text for each thing that is looked for. It says
//! what the scan in one pass must find, and is compiled for tests only.

use serde_json::Value;

use super::shapes::{SHAPES, Shape};
use super::text::{NAMES, beginning, distinct, has_password, is_random, is_web_token};
use super::{FINDINGS_MAX, Finding, LOOK_BYTES_MAX, SecretKind};

/// Looks at every text of a value, names of members included.
pub(super) fn scan(value: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    walk(value, "", &mut findings);
    findings.truncate(FINDINGS_MAX);
    findings
}

fn walk(value: &Value, path: &str, findings: &mut Vec<Finding>) {
    if findings.len() >= FINDINGS_MAX {
        return;
    }
    let finding = |path: &str, kind| Finding { path: shown(path).to_owned(), kind };
    match value {
        Value::String(text) => {
            let mut kinds = in_text(text);
            kinds.dedup();
            findings.extend(kinds.into_iter().map(|kind| finding(path, kind)));
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                walk(item, &format!("{path}/{place}"), findings);
            }
        }
        Value::Object(members) => {
            for (name, inner) in members {
                // A name that is itself a secret must not be told as part of a path.
                let kinds = in_text(name);
                let hidden = !kinds.is_empty();
                findings.extend(kinds.into_iter().map(|kind| finding(path, kind)));
                let shown = if hidden { "…" } else { name.as_str() };
                let here = format!("{path}/{}", shown.replace('~', "~0").replace('/', "~1"));
                if let Value::String(text) = inner
                    && is_secret_name(name)
                    && is_random(text)
                    && in_text(text).is_empty()
                {
                    findings.push(finding(&here, SecretKind::Assignment));
                }
                walk(inner, &here, findings);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn in_text(text: &str) -> Vec<SecretKind> {
    let mut kinds = Vec::new();
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        kinds.push(SecretKind::PrivateKey);
    }
    for shape in SHAPES {
        if text.match_indices(shape.prefix).any(|(at, _)| fits(text, at, shape)) {
            kinds.push(shape.kind);
        }
    }
    if text.match_indices("eyJ").any(|(at, _)| begins_word(text, at) && is_web_token(&text[at..])) {
        kinds.push(SecretKind::WebToken);
    }
    if text.match_indices("://").any(|(at, _)| has_password(&text[at + 3..])) {
        kinds.push(SecretKind::UrlPassword);
    }
    if kinds.is_empty() && text.lines().any(assigns) {
        kinds.push(SecretKind::Assignment);
    }
    kinds
}

fn fits(text: &str, at: usize, shape: &Shape) -> bool {
    let rest = &text.as_bytes()[at + shape.prefix.len()..];
    let rest = &rest[..rest.len().min(LOOK_BYTES_MAX)];
    let run = rest.iter().take_while(|byte| (shape.alphabet)(**byte)).count();
    let rest = &rest[..run];
    // A row of one character stands for a token in documentation.
    begins_word(text, at) && run >= shape.rest_min && distinct(rest) > 4
}

fn begins_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_none_or(|before| !before.is_ascii_alphanumeric())
}

/// Whether a name ends in a word for something that should stay secret.
fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).flat_map(char::to_lowercase).collect();
    NAMES.iter().any(|known| plain.ends_with(known)) || plain == "token"
}

/// `name = value` or `name: value`, with or without quotes.
fn assigns(line: &str) -> bool {
    line.match_indices(['=', ':']).any(|(at, _)| {
        let name = line[..at].trim_end().trim_end_matches(['"', '\'', '`']);
        let start = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
        let name = start.map_or(name, |at| {
            name[at..]
                .trim_start_matches(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
        });
        if !is_secret_name(name) {
            return false;
        }
        let value = beginning(&line[at + 1..]).trim_start_matches(['=', ':', '>', ' ', '\t']);
        let value = value.trim_start_matches(['"', '\'', '`']);
        let end = value.find(|c: char| c.is_whitespace() || "\"'`,;".contains(c));
        is_random(&value[..end.unwrap_or(value.len())])
    })
}
