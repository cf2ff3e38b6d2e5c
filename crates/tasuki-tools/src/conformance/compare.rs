// SPDX-License-Identifier: Apache-2.0
//! Comparisons of values that conditions are made of.

use serde_json::Value;

/// How much of a value a finding shows.
const SHOWN_CHARS: usize = 300;

pub(super) fn is_status(wish: &Value, status: u16) -> bool {
    match wish {
        Value::String(class) => {
            class.strip_suffix("xx").and_then(|class| class.parse().ok()) == Some(status / 100)
        }
        Value::Array(any) => any.iter().any(|one| is_status(one, status)),
        number => *number == status,
    }
}

pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

pub(super) fn size(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(members) => Some(members.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

pub(super) fn is_permutation(items: &[Value], others: &[Value]) -> bool {
    let count = |list: &[Value], one: &Value| list.iter().filter(|item| *item == one).count();
    items.len() == others.len() && items.iter().all(|one| count(items, one) == count(others, one))
}

pub(super) fn all_differ(items: &[Value], pointer: &str) -> bool {
    let parts: Vec<_> = items.iter().map(|item| item.pointer(pointer)).collect();
    let differs = |(number, part): (usize, &Option<&Value>)| {
        part.is_some() && !parts[..number].contains(part)
    };
    parts.iter().enumerate().all(differs)
}

/// As much of a value as is worth reading.
pub(super) fn shown(value: &Value) -> String {
    cut(&value.to_string())
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
